"""Eight samplers of the spherical admixture model on text, as in figure 5 of Liu, Zhu and Song (2016).

    python examples/reproduce/sam_20news.py                        # 20 Newsgroups, three groups: figure 5a
    python examples/reproduce/sam_20news.py --corpus wikipedia     # 50 topics: figure 5b, other articles

Two parts, each with the same processor time for every method:

``--part published``
    The published constants: step sizes, frictions, batches, inner steps, draws of the proportions and concentrations;
    fresh proportions; scored by the published recipe, which pools all topics drawn so far and 200 draws of the
    proportions from the prior. This is a best-of-many score, see the user guide: the published step sizes are unstable,
    and single draws score worse than topics that are all alike. What is reproduced is the order of the methods.
``--part stable``
    This package's defaults, scored by annealed importance sampling on the current topics alone, twice, along with the
    temperature of the chain; then the topics of the default sampler.

Time is that of the process, without scoring, so that other programs on the machine have little effect.
"""

import argparse
import time

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import normalize

from sk_sgmcmc import SphericalAdmixtureModel
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.samplers import GSGNHT, SGGMC, GMCApprMH, GMCBGibbs, StochasticVI
from sk_sgmcmc.topic._spherical.results import log_normaliser

N_PRIOR = 200  # proportions drawn from the prior
WINDOW = 8000  # maximum number of topics pooled


def published(corpus, n_docs):
    """The published settings of the eight methods, (sampler, parameters), in the order of figure 5a, best first.

    The authors use gamma and rho: step sqrt(gamma / D), friction rho / step.
    """
    news = corpus == "20news"
    gamma, rho, batch = (1e-2, 1e-2, 50) if news else (1e-1, 5e-1, 100)
    step = np.sqrt(gamma / n_docs)
    draws = {"n_doc_draws": (40, 20)}
    small = {"batch_size": batch, "n_inner": 10, **draws}
    # Published draws of the proportions of the two GMC methods: 15/10 and 15/1, on Wikipedia 5/10 and 10/1.
    return {
        "gSGNHT batch": (GSGNHT(step, rho / step), small),
        "SGGMC batch": (SGGMC(step, rho / step), small),
        "gSGNHT full": (GSGNHT(step, rho / step), {"batch_size": n_docs, "n_inner": 1, **draws}),
        "SGGMC full": (SGGMC(step, rho / step), {"batch_size": n_docs, "n_inner": 1 if news else 10, **draws}),
        "GMC-bGibbs": (GMCBGibbs(2e-5 if news else 5e-6), {"n_doc_draws": (15, 1) if news else (10, 1)}),
        "GMC-apprMH": (GMCApprMH(1e-4 if news else 5e-5), {"n_doc_draws": (15, 10) if news else (5, 10)}),
        "StoVI": (StochasticVI(offset=5.0, exponent=0.8 if news else 1.0), {"batch_size": batch}),
        "VI": ("vi", {}),
    }


def stable(corpus, n_docs):
    """This package's defaults for the same methods, and the published minibatch gradient with a stable step size."""
    batch = 50 if corpus == "20news" else 500
    return {
        "SGGMC full": ("sggmc", {"batch_size": n_docs}),
        "gSGNHT full": ("gsgnht", {"batch_size": n_docs}),
        f"SGGMC batch {batch}": ("sggmc", {"batch_size": batch}),
        f"gSGNHT batch {batch}": ("gsgnht", {"batch_size": batch}),
        f"SGGMC batch {batch}, fresh": ("sggmc", {"batch_size": batch, "proportions": "fresh"}),
        "GMC-bGibbs": ("gmc-b-gibbs", {}),
        "GMC-apprMH": ("gmc-appr-mh", {}),
        "VI": ("vi", {}),
        "StoVI": ("sto-vi", {"batch_size": batch}),
    }


class Watch(Callback):
    """Scores at given processor times; ends the run at the last.

    Parameters
    ----------
    score : callable
        Given the chain, returns what to print.
    seconds : sequence of float
    after_step : callable, optional
        Called with the chain after each step.
    """

    def __init__(self, score, seconds, after_step=None):
        super().__init__(1)
        self.score, self.seconds, self.after_step = score, list(seconds), after_step
        self.spent, self.rows = 0.0, []

    def start(self, estimator):
        """Start the clock."""
        self.clock = time.process_time()

    def __call__(self, estimator, step):
        """Score the chain; the time this takes is not counted."""
        self.spent += time.process_time() - self.clock
        chain = estimator._chains[0]
        if self.after_step is not None:
            self.after_step(chain)
        if self.spent >= self.seconds[len(self.rows)]:
            self.rows.append((self.spent, step, self.score(chain)))
        self.clock = time.process_time()
        return len(self.rows) == len(self.seconds)


class Pool:
    """The published recipe: log mean over pooled topics and over proportions drawn once from the prior."""

    def __init__(self, model, rows, alpha):
        self.model, self.rows = model, rows
        self.theta = np.random.default_rng(0).dirichlet(alpha, N_PRIOR)
        self.parts, self.kept = [], []

    def add(self, chain):
        """One more draw of the topics: the log density of each row, averaged over the proportions."""
        beta = chain.beta
        size = np.sqrt(np.einsum("nk,kj,nj->n", self.theta, beta @ beta.T, self.theta))
        cosine = (self.rows @ beta.T) @ (self.theta / size[:, None]).T
        value = chain.numbers[1] * cosine
        largest = value.max(axis=1)
        self.parts.append(largest + np.log(np.mean(np.exp(value - largest[:, None]), axis=1)))
        del self.parts[:-WINDOW]

    def __call__(self, chain):
        """Pooled log-perplexity, that of the current topics alone, and the temperature."""
        if not self.parts:
            self.add(chain)
        parts = np.array(self.parts)
        largest = parts.max(axis=0)
        pooled = largest + np.log(np.mean(np.exp(parts - largest), axis=0))
        constant = log_normaliser(self.rows.shape[1], chain.numbers[1])
        return -(pooled.mean() + constant), -(parts[-1].mean() + constant), temperature(chain)


def temperature(chain):
    """Squared velocity over the dimension of the manifold; 1 is right, nan where there is none."""
    if chain.sampler._n_aux == 0 or not np.any(chain.state.aux[0]):
        return np.nan
    return float(np.sum(chain.state.aux[0] ** 2) / (chain.beta.shape[0] * (chain.beta.shape[1] - 1.0)))


class Annealed:
    """Log-perplexity of the current topics by annealed importance sampling."""

    def __init__(self, rows, n_temperatures):
        self.rows, self.n_temperatures = rows, n_temperatures

    def __call__(self, chain):
        """Two runs, with different numbers of temperatures, and the temperature of the chain."""
        from sk_sgmcmc.topic._spherical.results import annealed_scores

        runs = [
            -annealed_scores(self.rows, chain.beta, chain.alpha, chain.numbers[1], n).mean()
            for n in (self.n_temperatures, self.n_temperatures + 1)
        ]
        return runs[0], runs[1], temperature(chain)


def run(train, test, settings, K, constants, seconds, make_score, keep_all, seed):
    """Run every method for the same time, print a table, and return the fitted models."""
    models, last = {}, {}
    for label, (sampler, parameters) in settings.items():
        model = SphericalAdmixtureModel(
            K, sampler=sampler, **constants, **parameters, n_iter=10**7, burn_in=10**6, thin=10**6, random_state=seed
        )
        score = make_score(model)
        # A first fit of two steps compiles what is needed, so that compilation is not timed.
        few = {"batch_size": 100} if "batch_size" in parameters else {}
        clone(model).set_params(n_iter=2, burn_in=0, thin=1, **few).fit(train[:100])
        watch = Watch(score, seconds, score.add if keep_all else None)
        try:
            model.set_params(callbacks=watch).fit(train)
        except FloatingPointError as error:
            print(f"{label:24s} diverged: {error}", flush=True)
            continue
        for spent, step, (first, second, heat) in watch.rows:
            print(f"{label:24s}{spent:9.1f}{step:9d}{first:12.1f}{second:12.1f}{heat:10.3g}", flush=True)
        models[label], last[label] = model, watch.rows[-1][2][0]
    order = sorted(last, key=last.get)
    print("order:", " < ".join(order), flush=True)
    return models


def corpora(name, smoke):
    """Training and test rows, names of words, number of topics, and the published concentrations."""
    if smoke:
        from sk_sgmcmc.datasets import load_docstrings

        X = load_docstrings().counts[:220, :300]
        X = normalize(X.log1p())
        return X[:160], X[160:], None, 4, {"kappa0": 600.0, "kappa1": 1800.0, "sigma": 600.0}
    if name == "20news":
        from sk_sgmcmc.datasets import fetch_20news_different

        data = fetch_20news_different()
        given = {"kappa0": 1e4, "kappa1": 3e4, "sigma": 1e4}
        return data.tfidf[data.train], data.tfidf[data.test], data.feature_names, 20, given
    from sk_sgmcmc.datasets import fetch_wikipedia

    data = fetch_wikipedia()
    X = sparse.csr_array(data.counts)
    often = np.asarray((X > 0).mean(axis=0)).ravel()
    some = np.argsort(-np.where(often < 0.06, often, 0.0), kind="stable")[:3000]
    X = X[:, np.sort(some)]
    X = X[np.asarray((X > 0).sum(axis=1)).ravel() > 20]
    idf = np.log(X.shape[0] / (1.0 + np.asarray((X > 0).sum(axis=0)).ravel()))
    X = normalize(X.multiply(idf[None]).tocsr())
    words = data.feature_names[np.sort(some)]
    return X[1000:], X[:1000], words, 50, {"kappa0": 6e3, "kappa1": 2e4, "sigma": 6e3}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=["20news", "wikipedia"], default="20news")
    parser.add_argument("--part", choices=["both", "published", "stable"], default="both")
    parser.add_argument("--only", default="", metavar="TEXT", help="methods whose name contains it")
    parser.add_argument("--seconds", type=float, default=160.0, help="of the processor, for each method")
    parser.add_argument("--checkpoints", type=int, default=6, help="scores of each run, each at twice the seconds")
    parser.add_argument("--scored", type=int, default=300, help="test rows of the annealed scores")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="a few seconds: a small corpus that is always available")
    args = parser.parse_args()
    train, test, words, K, given = corpora(args.corpus, args.smoke)

    def chosen(settings):
        return {label: each for label, each in settings.items() if args.only in label}

    seconds = np.array([0.05]) if args.smoke else args.seconds / 2.0 ** np.arange(args.checkpoints)[::-1]
    constants = {**given, "doc_topic_prior": 10.0}
    alpha = np.full(K, 10.0)
    print(f"{train.shape[0]} rows of {train.shape[1]} words, {test.shape[0]} held out, {K} topics")
    m = np.asarray(train.mean(axis=0)).ravel()
    center = log_normaliser(test.shape[1], given["kappa1"])
    alike = -(given["kappa1"] * float(np.mean(test @ (m / np.linalg.norm(m)))) + center)
    print(f"log-perplexity where all topics are alike: {alike:.2f}")
    if args.part in ("both", "published"):
        print("\nPublished constants; start at random near the mean; pooled and single log-perplexity by prior draws")
        print(f"{'method':24s}{'seconds':>9s}{'steps':>9s}{'pooled':>12s}{'single':>12s}{'|v|^2/n':>10s}")
        settings = chosen(published(args.corpus, train.shape[0]))
        common = {**constants, "init": "random", "proportions": "fresh"}
        run(train, test, settings, K, common, seconds, lambda model: Pool(model, test, alpha), True, args.seed)
    if args.part in ("both", "stable"):
        rows = test[:: max(1, test.shape[0] // args.scored)]
        print(f"\nDefaults; log-perplexity of single draws on {rows.shape[0]} rows by annealing, two runs")
        print(f"{'method':24s}{'seconds':>9s}{'steps':>9s}{'first':>12s}{'second':>12s}{'|v|^2/n':>10s}")
        temperatures = 10 if args.smoke else 400
        models = run(
            train, test, chosen(stable(args.corpus, train.shape[0])), K, constants, seconds,
            lambda model: Annealed(rows, temperatures), False, args.seed,
        )  # fmt: skip
        if "SGGMC full" not in models:
            return
        print("\nTopics by SGGMC: words they stand for, and against")
        table = models["SGGMC full"].top_words(6, feature_names=words)
        kinds, topics, names = (np.asarray(table[name]) for name in ("kind", "topic", "word"))
        for k in range(K):
            lines = [" ".join(map(str, names[(topics == k) & (kinds == kind)])) for kind in ("present", "absent")]
            print(f"{k:3d}  {lines[0]:60s} | {lines[1]}")


if __name__ == "__main__":
    main()
