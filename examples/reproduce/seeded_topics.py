"""Do seeded topics end on their seeds? Planted topics, some seeded through a (K, V) prior, counted over data sets.

    python examples/reproduce/seeded_topics.py                     # the default sampler, both starts
    python examples/reproduce/seeded_topics.py --samplers scir sgrld fresh sghmc psghmc-det partial_fit dmr

Each data set has 10 planted topics over 500 words. Four of the topics that are fitted, numbers 0 to 3, are given a few
words of four planted topics chosen at random: distinctive words, as a user would pick, with a number of pseudo-counts
each beside a prior of 0.01. A seeded topic has landed if it is, of all fitted topics, the nearest to the planted one
(Hellinger) and all its seeds are among its 20 most probable words. Printed: how many of the seeded topics landed.
"""

import argparse

import numpy as np

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.metrics import hellinger_distances

PRIOR, N_SEEDED, N_TOP = 0.01, 4, 20
# How to fit, by the name of a sampler or of a method.
WAYS = {
    "gibbs": {},
    "scir": {"sampler": "scir"},
    "sgrld": {"sampler": "sgrld"},
    "fresh": {"assignments": "fresh"},
    "sgld": {"sampler": "sgld"},
    "sghmc": {"sampler": "sghmc"},
    "normal": {"topic_prior": "normal"},
    "psghmc-det": {"sampler": "psghmc-det"},
    "partial_fit": {},
    "dmr": {},
}


def seeds_of(topics, n_topics, rng):
    """Planted topics that are seeded, and 3 to 5 distinctive words of each: likely in it, and more than in others."""
    share = topics / topics.sum(axis=0)
    chosen = rng.permutation(len(topics))[:n_topics]
    words = []
    for j in chosen:
        likely = np.argsort(-topics[j])[:12]
        words.append(likely[np.argsort(-share[j, likely], kind="stable")][: rng.integers(3, 6)])
    return chosen, words


def landed(fitted, topics, chosen, words):
    """Which seeded topics ended up where their seeds are."""
    distances = hellinger_distances(topics[chosen], fitted)
    top = np.argsort(-fitted, axis=1)[:, :N_TOP]
    return [
        bool(distances[k].argmin() == k and np.isin(seeds, top[k]).all()) for k, seeds in enumerate(words)
    ]  # fmt: skip


def fit(way, X, prior, init, seed, n_iter):
    """Topics fitted by one of the methods."""
    params = {"topic_word_prior": prior, "init": init, "random_state": seed, "n_iter": n_iter, **WAYS[way]}
    if way == "dmr":
        return DMRTopicModel(len(prior), **params).fit(X, metadata=np.arange(X.shape[0]) % 2).components_
    model = BayesianLDA(len(prior), **params)
    if way != "partial_fit":
        return model.fit(X).components_
    for block in np.array_split(np.arange(X.shape[0]), 4):
        model.partial_fit(X[block])
    return model.components_


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="one small data set")
    parser.add_argument("--samplers", nargs="+", choices=WAYS, default=["gibbs"])
    parser.add_argument("--seeds", type=int, default=10, help="data sets")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--n-iter", type=int, default=None)
    options = parser.parse_args()
    if options.smoke:
        options.seeds, options.documents, options.n_iter = 1, 200, 20
    print(f"{'sampler':12s} {'start':8s} " + " ".join(f"{n:>12g}" for n in (0.5, 5, 50)))
    for way in options.samplers:
        for init in ("soft", "random"):
            counts = []
            for n in (0.5, 5.0, 50.0):
                hits = []
                for seed in range(options.seeds):
                    data = make_lda(
                        options.documents, 500, 10, document_length=80, doc_topic_prior=0.1, topic_word_prior=0.05,
                        random_state=seed,
                    )  # fmt: skip
                    chosen, words = seeds_of(data.components, N_SEEDED, np.random.default_rng(seed))
                    prior = np.full((10, 500), PRIOR)
                    for k, seeds in enumerate(words):
                        prior[k, seeds] = n
                    fitted = fit(way, data.counts, prior, init, seed, options.n_iter)
                    hits += landed(fitted, data.components, chosen, words)
                counts.append(f"{sum(hits)} of {len(hits)}")
            print(f"{way:12s} {init:8s} " + " ".join(f"{text:>12s}" for text in counts), flush=True)


if __name__ == "__main__":
    main()
