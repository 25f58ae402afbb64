"""Do the default intervals of topic models cover the truth? On planted corpora, short and long, clear and overlapping.

    python examples/benchmarks/intervals.py                                  # ten designs, 30 corpora each
    python examples/benchmarks/intervals.py --designs "300 x 15, K=4" --corpora 120
    python examples/benchmarks/intervals.py --n-iter 200                     # another length than the default
    python examples/benchmarks/intervals.py --longer 4                       # each fit again, four times as long
    python examples/benchmarks/intervals.py --designs "5000 x 180, K=20" --corpora 3  # one of the large designs
    python examples/benchmarks/intervals.py --smoke                          # seconds: one design, two corpora

Each corpus is drawn from a Dirichlet-multinomial regression with one binary column of metadata, whose effects are
known. Each line is one design with the default fit of `DMRTopicModel`:

``effects``   coverage of the 90% intervals of `prevalence_difference`, over topics and corpora, and its standard error
              between corpora
``shares``    coverage of the 90% intervals of each topic's share of the tokens
``words``     the same of probabilities of words that are above 0.01
``lost``      share of topics whose draws are of something else: their mean differs from the true topic by more than 0.3
              of the probability. Where documents are long, these are two topics in one, or one topic twice.
``rmse``      root mean square error of the effects
``s``         processor seconds of a fit, one thread
``warned``    share of fits that warned that they have not converged
``false``     with ``--longer``: share of fits that warned although a longer one agrees with it: all effects of the two
              differ by less than a posterior standard deviation
"""

import argparse
import time
import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.metrics import align_topics

INTERVAL = 0.9
FREQUENT = 0.01  # Words above this probability are compared.
LOST = 0.3  # Total variation between a topic and its mean above which it has not been found.


class Design(NamedTuple):
    """Documents, tokens of each, words, topics, the prior of topics' words, and the sum of a document's prior."""

    n_docs: int
    n_tokens: int
    n_words: int
    n_topics: int
    word_prior: float
    doc_sum: float


# The first six were studied when the default length was chosen; the others were not, but the large ones.
DESIGNS = {
    "300 x 15, K=4": Design(300, 15, 100, 4, 0.1, 1.0),
    "2000 x 8, K=5": Design(2000, 8, 200, 5, 0.1, 1.0),
    "500 x 20, K=10": Design(500, 20, 200, 10, 0.1, 1.0),
    "300 x 100, K=10": Design(300, 100, 300, 10, 0.1, 1.0),
    "1000 x 30, K=15": Design(1000, 30, 300, 15, 0.1, 1.5),
    "200 x 200, K=3, overlapping": Design(200, 200, 200, 3, 1.0, 3.0),
    "100 x 200, K=5": Design(100, 200, 500, 5, 0.05, 1.0),
    "2000 x 7, K=3": Design(2000, 7, 100, 3, 0.2, 1.0),
    "400 x 60, K=8, overlapping": Design(400, 60, 200, 8, 0.5, 2.0),
    "1000 x 50, K=30": Design(1000, 50, 600, 30, 0.05, 1.5),
}
LARGE_DESIGNS = {  # A fit takes half a minute, so they are only run by name.
    "2000 x 200, K=20": Design(2000, 200, 3000, 20, 0.1, 1.0),
    "5000 x 180, K=20": Design(5000, 180, 2600, 20, 0.1, 1.0),
    "5000 x 180, K=20, overlapping": Design(5000, 180, 2600, 20, 0.5, 2.0),
    "20000 x 60, K=30": Design(20_000, 60, 3000, 30, 0.1, 1.0),
}


class Corpus(NamedTuple):
    """Counts, the column of metadata, topics, true effects and true shares of the tokens."""

    counts: sparse.csr_array
    column: np.ndarray
    topics: np.ndarray
    effects: np.ndarray
    shares: np.ndarray


def plant(design, seed):
    """Draw a corpus."""
    rng = np.random.default_rng([seed, *design[:4]])
    K = design.n_topics
    topics = rng.dirichlet(np.full(design.n_words, design.word_prior), size=K)
    column = np.arange(design.n_docs) % 2
    base = np.log(design.doc_sum / K) + 0.3 * rng.standard_normal(K)
    alpha = np.exp(base + np.outer([0.0, 1.0], 0.7 * rng.standard_normal(K)))
    expected = alpha / alpha.sum(axis=1, keepdims=True)
    counts, tokens = np.zeros((design.n_docs, design.n_words)), np.zeros(K)
    for d, x in enumerate(column):
        z = rng.multinomial(rng.poisson(design.n_tokens), rng.dirichlet(alpha[x]))
        tokens += z
        for k in np.flatnonzero(z):
            counts[d] += rng.multinomial(z[k], topics[k])
    return Corpus(sparse.csr_array(counts), column, topics, expected[1] - expected[0], tokens / tokens.sum())


def inside(draws, truth):
    """Whether the truth lies in the central interval of the draws, (n_draws, n)."""
    tail = (1.0 - INTERVAL) / 2.0
    low, high = np.quantile(draws, [tail, 1.0 - tail], axis=0, method="weibull")
    return (low <= truth) & (truth <= high)


class Fit(NamedTuple):
    """What a fit says: whether intervals cover, lost topics, effects and their errors, seconds, whether it warned."""

    effects: np.ndarray
    shares: np.ndarray
    words: np.ndarray
    lost: np.ndarray
    means: np.ndarray
    sds: np.ndarray
    seconds: float
    warned: bool
    n_iter: int


def fitted(corpus, n_topics, seed, **params):
    """Fit with default arguments, and compare with the truth."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        model = DMRTopicModel(n_topics, random_state=seed, **params)
        model.fit(corpus.counts, metadata=corpus.column[:, None].astype(float))
        seconds = time.process_time() - began
    order = align_topics(corpus.topics, model.components_)
    coef = model.samples_["coef"][model.reference_chain_][:, order]
    alpha = np.exp(coef @ np.array([[1.0, 1.0], [0.0, 1.0]]))  # (n_draws, n_topics, 2)
    expected = alpha / alpha.sum(axis=1, keepdims=True)
    effects = expected[..., 1] - expected[..., 0]
    counts = [record.by_topic().sum(axis=1) for record in model._chains[0].record.counts]
    orders = model._chains[0].record.orders
    shares = np.array([each[o] for each, o in zip(counts, orders, strict=True)])
    shares = (shares / shares.sum(axis=1, keepdims=True))[:, order]
    topics = model.samples_["components"][model.reference_chain_][:, order]
    k, w = np.nonzero(corpus.topics > FREQUENT)
    apart = np.abs(corpus.topics - topics.mean(axis=0)).sum(axis=1) / 2.0
    return Fit(
        inside(effects, corpus.effects), inside(shares, corpus.shares), inside(topics[:, k, w], corpus.topics[k, w]),
        apart > LOST, effects.mean(axis=0), effects.std(axis=0, ddof=1), seconds,
        any(issubclass(each.category, ConvergenceWarning) for each in caught), model.n_iter_,
    )  # fmt: skip


def share_and_error(by_corpus):
    """A mean over corpora and its standard error, as text; two dashes if there is nothing to average."""
    means = np.array([np.mean(each) for each in by_corpus if each.size])
    if not means.size:
        return "--"
    return f"{means.mean():.3f} ± {means.std(ddof=1) / np.sqrt(len(means)):.3f}"


def report(name, design, n_corpora, n_iter, longer):
    """Print the line of a design; returns its fits."""
    params = {} if n_iter is None else {"n_iter": n_iter}
    fits, errors, false = [], [], []
    for seed in range(n_corpora):
        corpus = plant(design, seed)
        fits.append(fitted(corpus, design.n_topics, seed, **params))
        errors.append(fits[-1].means - corpus.effects)
        if longer:
            again = fitted(corpus, design.n_topics, seed, n_iter=longer * fits[-1].n_iter)
            agree = np.all(np.abs(again.means - fits[-1].means) < fits[-1].sds)
            false.append(fits[-1].warned and agree)
    cells = [
        f"{name:30}",
        *(f"{share_and_error([getattr(fit, kind) for fit in fits]):>15}" for kind in ("effects", "shares", "words")),
        f"{np.mean([fit.lost for fit in fits]):7.2f}",
        f"{np.sqrt(np.mean(np.square(errors))):7.4f}",
        f"{np.mean([fit.seconds for fit in fits]):7.2f}",
        f"{np.mean([fit.warned for fit in fits]):8.2f}",
        f"{np.mean(false):7.2f}" if longer else "",
        f"{fits[0].n_iter:7d}",
    ]
    print("".join(cells), flush=True)
    return fits


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="*", default=list(DESIGNS), help="names of designs")
    parser.add_argument("--corpora", type=int, default=30, help="corpora of each design")
    parser.add_argument("--n-iter", type=int, help="steps of each fit; the default of the model if left out")
    parser.add_argument("--longer", type=int, default=0, help="fit again with so many times the steps")
    parser.add_argument("--smoke", action="store_true", help="seconds: one design, two corpora, 100 steps")
    args = parser.parse_args()
    known, designs, n_corpora, n_iter = DESIGNS | LARGE_DESIGNS, args.designs, args.corpora, args.n_iter
    if args.smoke:
        designs, n_corpora, n_iter = designs[:1], 2, 100
    small = next(iter(DESIGNS.values()))
    fitted(plant(small, 0), small.n_topics, 0, n_iter=20)  # Compile.
    kinds = "".join(f"{kind:>15}" for kind in ("effects", "shares", "words"))
    false = f"{'false':>7}" if args.longer else ""
    print(f"{'design':30}{kinds}{'lost':>7}{'rmse':>7}{'s':>7}{'warned':>8}{false}{'n_iter':>7}")
    fits = [report(name, known[name], n_corpora, n_iter, args.longer) for name in designs]
    pooled = [share_and_error([getattr(fit, kind) for each in fits for fit in each]) for kind in Fit._fields[:3]]
    print(f"{'all':30}" + "".join(f"{each:>15}" for each in pooled))


if __name__ == "__main__":
    main()
