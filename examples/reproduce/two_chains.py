"""What do two chains of topics in different modes give? State of the Union addresses since 1900, 30 topics.

    python examples/reproduce/two_chains.py

Printed for each topic, those furthest apart first: the Hellinger distance between the two chains' mean topics, the
distance of ``components_`` to the nearer of them (0 where it is one chain's topic, large where it is a mixture that
neither chain has), and the top words of ``components_`` and of both chains. Then the warning.

Needs the data described by `sk_sgmcmc.datasets.fetch_corpus`, except with ``--smoke``.
"""

import argparse
import warnings

import numpy as np

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import fetch_sotu_paragraphs, make_lda
from sk_sgmcmc.metrics import hellinger_distances

FIRST_YEAR, MIN_PARAGRAPHS = 1900, 10


def addresses():
    """Counts of the paragraphs since 1900, and the words that occur in enough of them."""
    data = fetch_sotu_paragraphs()
    counts = data.counts.tocsr()[np.asarray(data.metadata["year"]).astype(int) >= FIRST_YEAR]
    common = np.asarray((counts > 0).sum(axis=0)).ravel() >= MIN_PARAGRAPHS
    return counts[:, common], np.asarray(data.feature_names)[common]


def distance(p, q):
    """Hellinger distance of two topics."""
    return hellinger_distances(p[None], q[None])[0, 0]


def main():
    """Print the table and the warning."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small synthetic documents, fewer topics than planted")
    parser.add_argument("--components", type=int, default=30)
    parser.add_argument("--words", type=int, default=6)
    parser.add_argument("--n-jobs", type=int, default=None)
    options = parser.parse_args()
    n_iter = None
    if options.smoke:
        data = make_lda(300, 100, 5, random_state=0)
        counts, words, options.components, n_iter = data.counts, np.asarray(data.feature_names), 4, 30
    else:
        counts, words = addresses()
    print(f"{counts.shape[0]} documents, {counts.shape[1]} words, {int(counts.sum())} tokens")
    model = BayesianLDA(options.components, n_chains=2, n_iter=n_iter, n_jobs=options.n_jobs, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(counts)
    chains = model.samples_["components"].mean(axis=1, dtype=np.float64)
    apart = np.array([distance(*pair) for pair in zip(*chains, strict=True)])
    mixed = np.array([min(distance(topic, c[k]) for c in chains) for k, topic in enumerate(model.components_)])

    def top(topic):
        return " ".join(words[np.argsort(-topic)[: options.words]])

    print("topic  chains apart  components_ from a chain  top words of components_ | chain 0 | chain 1")
    for k in np.argsort(-apart):
        tops = " | ".join(top(topic) for topic in (model.components_[k], *chains[:, k]))
        print(f"{k:5d} {apart[k]:13.2f} {mixed[k]:25.2f}  {tops}")
    print(f"\ncomponents_ further than 0.1 from both chains: {(mixed > 0.1).sum()} of {len(mixed)} topics")
    print("warned: " + ("\n".join(str(warning.message) for warning in caught) or "nothing"))


if __name__ == "__main__":
    main()
