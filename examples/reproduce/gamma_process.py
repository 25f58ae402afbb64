"""Poisson factor analysis with a gamma process under all samplers: table 4 of Roychowdhury and Parthasarathy (2017).

    python examples/reproduce/gamma_process.py                         # 20 Newsgroups, then the planted topics
    python examples/reproduce/gamma_process.py --corpus reuters21578 --part table

``--part table``
    Corpora of the 2,000 words with the highest document frequency; the earlier 60% of the documents for training; at
    most 100 topics; minibatches of 500 documents, 200 of burn-in and 15 draws, one in 13 of the next 200, since chains
    start by passes that do much of the work (the paper's numbers: ``--n-iter 3000 --thin 100``). Of each test document,
    80% of the tokens are observed and the rest predicted, with the probability averaged over the draws; one in four
    test documents is scored. Batch sizes and step sizes of the paper are in a supplement that is lost; its Reuters
    corpus (RCV1, 804,414 documents, 10,000 words) is not public: ours is Reuters-21578, so its column shows how
    samplers differ and not what the level is. An iteration is a minibatch of assignments, topics, and 20 steps of the
    weights; the last figure is the time of those 20 steps. Seconds are of processor time.
``--part planted``
    Twenty data sets with a known number of topics, 3 to 12 of unequal weights: how often is the posterior mode of the
    number of topics with at least 1% of the weight within one of the truth?
"""

import argparse
import time

import numpy as np

from sk_sgmcmc import GammaProcessTopicModel, datasets
from sk_sgmcmc.metrics import document_completion, split_tokens
from sk_sgmcmc.samplers import SGHMC, SGNHT, SGNPHMC, SGRNPHMC, MonteCarloEM

N_WORDS, N_INNER = 2000, 20
# Perplexity on 20 Newsgroups and Reuters, and seconds per iteration, as printed in the paper.
PAPER = {
    "sghmc": (759, 996, 0.047),
    "sghmc-em": (738, 972, 0.047),
    "sgnht": (757, 979, 0.045),
    "sgnht-em": (719, 968, 0.045),
    "sg-nphmc": (714, 958, 0.049),
    "sg-nphmc-em": (712, 947, 0.049),
    "sgr-nphmc": (723, 952, 0.410),
}
SAMPLERS = {
    "scir": lambda: "scir",
    "sgr-nphmc": lambda: SGRNPHMC(),
    "sg-nphmc-em": lambda: SGNPHMC(mass=MonteCarloEM(n_momenta=50, every=2, adaptive=False)),
    "sg-nphmc": lambda: SGNPHMC(),
    "sghmc": lambda: SGHMC(),
    "sghmc-em": lambda: SGHMC(mass=MonteCarloEM(n_momenta=100, every=2, adaptive=False)),
    "sgnht": lambda: SGNHT(),
    "sgnht-em": lambda: SGNHT(mass=MonteCarloEM(n_momenta=100, every=2, adaptive=False)),
    "gibbs": lambda: "gibbs",
}


def load(corpus):
    """Training and test counts (the earlier 60% and the rest) of the words that are in most training documents."""
    if corpus == "synthetic":
        counts = datasets.make_lda(300, 200, 6, random_state=0).counts
        first = np.arange(300) < 180
    elif corpus == "20newsgroups":
        data = datasets.fetch_20newsgroups_counts()
        counts, first = data.counts, np.asarray(data.metadata["split"]) == "train"
    else:
        data = datasets.fetch_corpus("reuters21578")
        counts = data.counts[np.argsort(np.asarray(data.metadata["date"]), kind="stable")]
        first = np.arange(counts.shape[0]) < 0.6 * counts.shape[0]
    counts = counts.tocsr()
    often = np.argsort(-np.bincount(counts[first].indices, minlength=counts.shape[1]), kind="stable")[:N_WORDS]
    counts = counts[:, np.sort(often)]
    train, test = counts[first], counts[~first][::4]
    return train[np.asarray(train.sum(axis=1)).ravel() > 0], test


def seconds_of_weights(model, n=50):
    """Seconds of one update of the weights, from the state in which the chain stopped."""
    chain = model._chains[0]
    seen = chain.doc_prior.seen.values(chain.data.total_samples)
    began = time.process_time()
    for _ in range(n):
        chain.doc_prior.atoms.move(*seen, np.random.default_rng(0))
    return (time.process_time() - began) / n


def run(name, train, halves, seed, options):
    """Perplexity, seconds per iteration, seconds of the weights in it, and the number of topics."""
    settings = {"n_iter": options.n_iter, "thin": options.thin, "batch_size": min(options.batch, train.shape[0])}
    if name == "gibbs":  # an iteration is a sweep: as many as the passes of the others, both per draw and in burn-in
        n = max(30, options.n_iter * settings["batch_size"] // train.shape[0])
        settings = {"n_iter": n, "thin": max(1, n // 30)}
    if options.assignments == "fresh" and name != "gibbs":
        settings["assignments"] = "fresh"
    model = GammaProcessTopicModel(
        options.topics, sampler=SAMPLERS[name](), n_inner=N_INNER, random_state=seed, **settings
    )
    model.set_params(n_iter=2, thin=1, burn_in=0).fit(train[: settings.get("batch_size", 50)])  # load kernels
    model.set_params(n_iter=settings["n_iter"], thin=settings["thin"], burn_in=0.5)
    began = time.process_time()
    model.fit(train)
    seconds = (time.process_time() - began) / model.n_iter_
    draws, weights = model.samples_["components"][0], model.samples_["weights"][0]
    result = document_completion(*halves, draws, doc_topic_prior=weights[:, None])
    return result.perplexity, seconds, seconds_of_weights(model), model.n_topics_, len(draws)


def table(options):
    """Print the table of one corpus."""
    corpus = "synthetic" if options.smoke else options.corpus
    train, test = load(corpus)
    halves = split_tokens(test, fraction=0.8)
    print(
        f"{corpus}: {train.shape[0]} training and {test.shape[0]} test documents, {train.shape[1]} words, "
        f"{train.sum():.0f} training tokens; at most {options.topics} topics, minibatches of {options.batch}, "
        f"assignments {options.assignments}, seeds {options.seeds}"
    )
    column = {"20newsgroups": 0, "reuters21578": 1}.get(corpus)
    found = {}
    for name in options.samplers:
        rows = np.array([run(name, train, halves, seed, options) for seed in range(options.seeds)])
        found[name] = rows
        mean, error = rows[:, 0].mean(), rows[:, 0].std(ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.nan
        printed = PAPER.get(name, (np.nan,) * 3)
        paper = f"{printed[column]:6.0f} {printed[2]:8.3f}" if column is not None else " " * 15
        print(
            f"{name:12s} {mean:8.2f} ± {error:4.2f}   paper {paper}   {rows[:, 1].mean():8.4f} s an iteration, "
            f"weights {rows[:, 2].mean():.5f} s   topics {rows[:, 3].mean():5.1f}   "
            f"seeds {np.array2string(rows[:, 0], precision=1)}",
            flush=True,
        )
    for one, other in [(f"{name}-em", name) for name in ("sghmc", "sgnht", "sg-nphmc")] + [
        ("sg-nphmc-em", "sgr-nphmc"), *(("scir", name) for name in PAPER), ("scir", "gibbs"),
    ]:  # fmt: skip
        if one in found and other in found and options.seeds > 1:
            gap = found[one][:, 0] - found[other][:, 0]  # with the same seed both start alike
            error = gap.std(ddof=1) / np.sqrt(gap.size)
            print(f"{one} minus {other}: {gap.mean():+.2f} ± {error:.2f}")
    if "sgr-nphmc" in found and "sg-nphmc-em" in found:
        ratios = [found["sgr-nphmc"][:, i].mean() / found["sg-nphmc-em"][:, i].mean() for i in (1, 2)]
        print(f"seconds of sgr-nphmc over those of sg-nphmc-em: {ratios[0]:.2f} an iteration, {ratios[1]:.2f} weights")


def planted(options):
    """Print how often the number of topics is found."""
    n_sets, within = (2 if options.smoke else 20), 0
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        weights = rng.gamma(2.0, 0.15, rng.integers(3, 13))
        data = datasets.make_gamma_process(300, 100, weights=weights, random_state=seed)
        truth = int(np.sum(weights >= 0.01 * weights.sum()))
        model = GammaProcessTopicModel(30, n_iter=40 if options.smoke else 300, random_state=seed).fit(data.counts)
        within += abs(model.n_topics_ - truth) <= 1
        print(f"set {seed:2d}: {truth:2d} topics planted, mode {model.n_topics_:2d}, with probability "
              f"{np.max(model.n_topics_posterior()['probability']):.2f}", flush=True)  # fmt: skip
    print(f"within one of the truth: {within} of {n_sets}")


def main():
    """Both parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=["20newsgroups", "reuters21578"], default="20newsgroups")
    parser.add_argument("--part", choices=["both", "table", "planted"], default="both")
    parser.add_argument("--samplers", nargs="+", choices=list(SAMPLERS), default=list(SAMPLERS))
    parser.add_argument("--assignments", choices=["stored", "fresh"], default="stored")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--n-iter", type=int, default=400)
    parser.add_argument("--thin", type=int, default=13)
    parser.add_argument("--smoke", action="store_true", help="a few seconds")
    options = parser.parse_args()
    if options.smoke:
        options.n_iter, options.thin, options.batch, options.topics, options.seeds = 20, 2, 60, 15, 2
        options.samplers = ["sghmc", "sghmc-em", "sg-nphmc-em", "sgr-nphmc", "scir", "gibbs"]
    if options.part != "planted":
        table(options)
    if options.part != "table":
        planted(options)


if __name__ == "__main__":
    main()
