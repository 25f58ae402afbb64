"""Do intervals of a new document's topics cover the truth as often as they promise, at every length of document?

    python examples/reproduce/proportion_intervals.py

Corpora are drawn from latent Dirichlet allocation and fitted by `BayesianLDA`; then new documents of several lengths
are drawn from the same topics, and ``transform_draws`` draws their proportions. Printed for each length: the share of
90% intervals that cover the planted proportion, with its standard error over corpora, and the mean width of the
intervals.
"""

import argparse

import numpy as np

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.metrics import align_topics

MASS, ALPHA = 0.9, 0.3
LENGTHS = (1, 5, 20, 60, 200, 1000)


def intervals(model, counts):
    """Ends of the intervals of proportions of documents, (2, n_documents, n_topics)."""
    return np.quantile(model.transform_draws(counts), [(1 - MASS) / 2, (1 + MASS) / 2], axis=0, method="weibull")


def covered(seed, n_documents, n_iter):
    """For each length, the share of intervals that cover the truth, and their mean width."""
    data = make_lda(
        n_documents, 200, 5, document_length=60, doc_topic_prior=ALPHA, topic_word_prior=0.1, random_state=seed
    )
    model = BayesianLDA(5, doc_topic_prior=ALPHA, topic_word_prior=0.1, n_iter=n_iter, random_state=seed)
    model.fit(data.counts)
    order = align_topics(data.components, model.components_)
    rng = np.random.default_rng(seed)
    rows = []
    for length in LENGTHS:
        planted = rng.dirichlet(np.full(5, ALPHA), 200)
        counts = np.stack([rng.multinomial(length, p / p.sum()) for p in planted @ data.components])
        low, high = intervals(model, counts)[:, :, order]
        rows.append((np.mean((low <= planted) & (planted <= high)), np.mean(high - low)))
    return rows


def main():
    """Fit the corpora and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two small corpora")
    parser.add_argument("--corpora", type=int, default=20)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--n-iter", type=int, default=400)
    options = parser.parse_args()
    if options.smoke:
        options.corpora, options.documents, options.n_iter = 2, 60, 40
    found = np.array([covered(seed, options.documents, options.n_iter) for seed in range(options.corpora)])
    mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
    print(f"{options.corpora} corpora of {options.documents} documents, {100 * MASS:.0f}% intervals of proportions")
    print("tokens   coverage          width")
    for length, one, of in zip(LENGTHS, mean, error, strict=True):
        print(f"{length:6d}   {100 * one[0]:.1f} ± {100 * of[0]:.1f}%   {one[1]:6.3f}")


if __name__ == "__main__":
    main()
