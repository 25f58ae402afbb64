"""Updates of topic models and mixtures by `partial_fit`: predictions, cost and coverage, next to a refit to all data.

    python examples/benchmarks/updates.py                      # four corpora, K = 30: a fit to half, ten updates of 10%
    python examples/benchmarks/updates.py --part nothing       # from nothing, in ten blocks
    python examples/benchmarks/updates.py --part limit         # documents are not kept: draws take in the updates
    python examples/benchmarks/updates.py --part coverage      # planted: 90% intervals of topics' shares
    python examples/benchmarks/updates.py --part levels        # planted: 90% intervals of effects of a new level
    python examples/benchmarks/updates.py --part mixture       # planted categories: rows kept, rows streamed, refit
    python examples/benchmarks/updates.py --smoke              # seconds: 1,000 documents, planted

Held-out documents are scored by document completion (`perplexity`), and seconds are processor time of one thread.
``refit`` is `BayesianLDA` fitted to all documents so far. In the last line of a corpus, ``ratio`` is the mean over
updates of the perplexity divided by the perplexity of the refit, and ``last`` is this ratio after the last update.
``cost`` is the time of all updates divided by the time of all refits, or of the last refit with ``--part nothing``.
``--part mixture`` prints the mean log predictive probability of 1,000 other rows, relative to the planted mixture;
the coverage of 90% intervals of category probabilities and of weights; and the seconds of ten updates, or of the fit.
"""

import argparse
import time
import warnings
from copy import deepcopy
from itertools import pairwise

import numpy as np
from _peers import fetched, split
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.base import clone

from sk_sgmcmc import BayesianLDA, DMRTopicModel, DPCategoricalMixture
from sk_sgmcmc.datasets import fetch_corpus, load_docstrings, load_sotu, make_lda
from sk_sgmcmc.metrics import align_topics

CORPORA = "sotu,docstrings,ap,poliblog5k"
N_UPDATES = 10
PARTS = "updates", "nothing", "limit", "coverage", "levels", "mixture"


def load(name):
    """Counts of a corpus, at random split into documents to fit and held-out ones."""
    if name == "planted":
        counts = make_lda(1000, 300, 10, 60, 0.1, 0.05, random_state=0).counts
    else:
        own = {"sotu": load_sotu, "docstrings": load_docstrings}
        counts = (own[name]() if name in own else fetched(fetch_corpus, name)).counts
    return split(counts, 0, n_held_out=800)


def timed(function):
    """Processor seconds of a call."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function()
    return time.process_time() - began


def updates(name, n_topics, part, n_refits):
    """Print a line for each update, and the ratios."""
    X, held_out = load(name)
    begun = 0.0 if part == "nothing" else 0.5
    ends = np.linspace(begun * X.shape[0], X.shape[0], N_UPDATES + 1).astype(int)
    params = {"keep_documents": False} if part == "limit" else {}
    model = BayesianLDA(n_topics, random_state=0, **params)
    spent = [timed(lambda: model.fit(X[: ends[0]]))] if begun else []
    first = model.perplexity(held_out) if begun else np.nan
    print(f"{name}: {X.shape[0]} documents, {int(X.sum())} tokens, K = {n_topics}; first fit {first:.1f}", flush=True)
    ratios, refits, costs = [], [], []
    for i, (start, stop) in enumerate(pairwise(ends)):
        costs.append(timed(lambda start=start, stop=stop: model.partial_fit(X[start:stop])))
        found, line = model.perplexity(held_out), ""
        if n_refits and (i + 1) % max(1, N_UPDATES // n_refits) == 0:
            refit = BayesianLDA(n_topics, random_state=0)
            refits.append(timed(lambda refit=refit, stop=stop: refit.fit(X[:stop])))
            ratios.append(found / refit.perplexity(held_out))
            line = f"   refit {found / ratios[-1]:.1f} ({refits[-1]:.2f} s)"
        print(f"  +{stop - start} documents: {found:.1f} ({costs[-1]:.2f} s){line}", flush=True)
    if not refits:
        return
    whole = sum(costs) / refits[-1] if part == "nothing" else sum(costs) / (sum(refits) * N_UPDATES / len(refits))
    print(f"  ratio {np.mean(ratios):.3f}   last {ratios[-1]:.3f}   cost {whole:.2f}   first fit {sum(spent):.2f} s")


def planted(seed, n_docs, n_words=200, n_topics=6, length=40):
    """Counts, topics, and each topic's share of the tokens."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.1), n_topics)
    tokens = np.array([rng.multinomial(length, theta) for theta in rng.dirichlet(np.full(n_topics, 0.2), n_docs)])
    counts = sum(rng.multinomial(own, topic) for own, topic in zip(tokens.T, topics, strict=True))
    return sparse.csr_array(counts), topics, tokens.sum(axis=0) / tokens.sum()


def coverage(n_corpora, n_updates, n_docs=600, **params):
    """Coverage of 90% intervals of topics' shares of the tokens after updates that double a planted corpus."""
    hits = []
    for seed in range(n_corpora):
        X, topics, truth = planted(seed, 2 * n_docs)
        model = BayesianLDA(6, random_state=seed, **params)
        first = n_docs if n_updates else 2 * n_docs
        timed(lambda model=model, X=X, first=first: model.fit(X[:first]))
        for rows in np.array_split(np.arange(first, 2 * n_docs), n_updates) if n_updates else ():
            timed(lambda model=model, X=X, rows=rows: model.partial_fit(X[rows]))
        order = align_topics(topics, model.components_)
        record = model._chains[0].record
        mass = np.array([each.mass[o] for each, o in zip(record.counts, record.orders, strict=True)])[:, order]
        shares = mass / mass.sum(axis=1, keepdims=True)
        low, high = np.quantile(shares, [0.05, 0.95], axis=0, method="weibull")
        hits.append(np.mean((low <= truth) & (truth <= high)))
    error = np.std(hits, ddof=1) / np.sqrt(n_corpora) if n_corpora > 1 else np.nan
    kept = "documents kept" if not params else "draws take in"
    print(f"{n_updates:3d} updates, {kept}: {np.mean(hits):.3f} ± {error:.3f}, {model.n_iter_} sweeps", flush=True)


def planted_kinds(rng, kinds, topics, n_docs, length=40):
    """Counts of documents of random ``kinds``, a dict from names to Dirichlet parameters, and their metadata."""
    names = rng.choice(list(kinds), size=n_docs)
    tokens = np.array([rng.multinomial(length, rng.dirichlet(kinds[name])) for name in names])
    counts = np.array([sum(map(rng.multinomial, own, topics)) for own in tokens])
    return sparse.csr_array(counts), {"kind": names}


def levels(n_corpora, n_docs=400, n_topics=4):
    """Coverage of 90% intervals of effects of a level that comes in an update by as many documents, and of a refit."""
    hits = {"update": [], "fit to all documents": []}
    for seed in range(n_corpora):
        rng = np.random.default_rng(seed)
        topics = rng.dirichlet(np.full(150, 0.1), n_topics)
        kinds = {name: 0.3 * np.exp(rng.normal(0.0, 0.8, n_topics)) for name in "abc"}
        X, metadata = planted_kinds(rng, {name: kinds[name] for name in "ab"}, topics, n_docs)
        more, own = planted_kinds(rng, {name: kinds[name] for name in "ac"}, topics, n_docs)
        truth = kinds["c"] / kinds["c"].sum() - kinds["a"] / kinds["a"].sum()
        model = DMRTopicModel(n_topics, random_state=seed)
        at_once = clone(model)
        timed(lambda model=model, X=X, metadata=metadata: model.fit(X, metadata=metadata))
        timed(lambda model=model, X=more, metadata=own: model.partial_fit(X, metadata=metadata))
        both = sparse.vstack([X, more]), {"kind": np.concatenate([metadata["kind"], own["kind"]])}
        timed(lambda model=at_once, both=both: model.fit(both[0], metadata=both[1]))
        for name, each in zip(hits, (model, at_once), strict=True):
            table = each.effects("kind", interval=0.9)
            table = table[table["value"] == "c"].sort_values("topic")
            effect = truth[np.argsort(align_topics(topics, each.components_))]
            hits[name].append(np.mean((table["low"] <= effect) & (effect <= table["high"])))
    for name, found in hits.items():
        error = np.std(found, ddof=1) / np.sqrt(n_corpora) if n_corpora > 1 else np.nan
        print(f"effects of a new level, {name}: {np.mean(found):.3f} ± {error:.3f}", flush=True)


def planted_table(seed, n_rows, n_clusters=5, n_columns=10, n_levels=4):
    """Rows of codes, weights and probabilities of the clusters, and a function of the true log probability of rows."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n_clusters, 5.0))
    probabilities = rng.dirichlet(np.full(n_levels, 0.7), size=(n_clusters, n_columns))
    of_rows = probabilities[rng.choice(n_clusters, n_rows, p=weights)]
    ends = np.cumsum(of_rows, axis=2)[:, :, :-1]
    X = (rng.random((n_rows, n_columns, 1)) > ends).sum(axis=2)

    def log_probability(X):
        logs = [np.log(theta[np.arange(n_columns), X]).sum(axis=1) for theta in probabilities]
        return logsumexp(np.array(logs), axis=0, b=weights[:, None])

    return X, weights, probabilities, log_probability


def covered(model, weights, probabilities):
    """Shares of the true probabilities and weights that lie in their 90% intervals, for the slots nearest to them."""
    drawn = model.samples_["components"][0].reshape(len(model.samples_["weights"][0]), -1, *probabilities.shape[1:])
    heavy = np.argsort(-model.samples_["weights"][0].mean(axis=0))[: 2 * len(weights) + 2]
    mean = drawn.mean(axis=0)[heavy]
    rows, columns = linear_sum_assignment(np.square(mean - probabilities[:, None]).sum(axis=(2, 3)))
    slots, shares = heavy[columns], []
    for draws, truth in ((drawn, probabilities[rows]), (model.samples_["weights"][0], weights[rows])):
        low, high = np.quantile(draws[:, slots], [0.05, 0.95], axis=0, method="weibull")
        shares.append(np.mean((low <= truth) & (truth <= high)))
    return shares


def mixture(n_tables, n_rows=1000, **params):
    """Print scores, coverage and seconds of mixtures fitted to half of planted tables and updated ten times."""
    found = {"rows kept": [], "rows streamed": [], "refit": []}
    for seed in range(n_tables):
        X, *truth, log_probability = planted_table(seed, n_rows + 1000)
        X, test = X[:n_rows], X[n_rows:]
        new = DPCategoricalMixture(likelihood="categorical", random_state=seed, **params)
        at_once = clone(new)
        timed(lambda new=new, X=X: new.fit(X[: n_rows // 2]))
        streamed = deepcopy(new).forget_rows()
        seconds = [0.0, 0.0, timed(lambda model=at_once, X=X: model.fit(X))]
        for rows in np.array_split(np.arange(n_rows // 2, n_rows), N_UPDATES):
            for i, model in enumerate((new, streamed)):
                seconds[i] += timed(lambda model=model, X=X, rows=rows: model.partial_fit(X[rows]))
        for each, model, spent in zip(found.values(), (new, streamed, at_once), seconds, strict=True):
            each.append([model.score(test) - log_probability(test).mean(), *covered(model, *truth), spent])
    for name, values in found.items():
        score, of_probabilities, of_weights, spent = np.mean(values, axis=0)
        print(
            f"{name:14s} score {score:.4f}, coverage of probabilities {of_probabilities:.3f}, of weights "
            f"{of_weights:.3f}, {spent:.1f} s",
            flush=True,
        )


def main():
    """Print the chosen part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", default="updates", choices=PARTS)
    parser.add_argument("--corpora", default=CORPORA)
    parser.add_argument("--topics", type=int, default=30)
    parser.add_argument("--refits", type=int, default=N_UPDATES, help="number of fits to all documents so far")
    parser.add_argument("--replicates", type=int, default=30, help="corpora or tables of each line of coverage")
    parser.add_argument("--smoke", action="store_true", help="seconds: 1,000 documents, planted")
    args = parser.parse_args()
    if args.smoke:
        updates("planted", 10, "updates", 1)
        coverage(1, 2, 100)
        levels(1, 60)
        mixture(1, 60, n_iter=20)
        return
    if args.part == "mixture":
        mixture(args.replicates)
        return
    if args.part == "levels":
        levels(args.replicates)
        return
    if args.part == "coverage":
        for n_updates in (0, 1, 10, 60):
            coverage(args.replicates, n_updates)
        coverage(args.replicates, 10, keep_documents=False)
        return
    for name in args.corpora.split(","):
        updates(name, args.topics, args.part, args.refits)


if __name__ == "__main__":
    main()
