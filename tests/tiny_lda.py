"""A corpus so small that every assignment can be enumerated, and chains on it."""

import numpy as np

from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.samplers import SCIR
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.document_prior import DocumentPrior
from sk_sgmcmc.topic._counts.word_prior import WordPrior
from sk_sgmcmc.topic._minibatch.chain import MinibatchChain
from tests.corpora import token_corpus
from tests.naive import lda as naive

COUNTS = np.array([[3, 1, 0], [0, 1, 2], [1, 0, 2]])
ALPHA, BETA = np.array([0.4, 0.7]), 0.4
PAIRS = [(0, 0), (0, 2), (1, 2), (2, 2)]
INFINITE = np.inf


def exact_law(counts=COUNTS, alpha=ALPHA, beta=BETA):
    """Means of s_vw = sum_k phi_kv phi_kw over `PAIRS`, and of their squares; no label enters."""
    docs, words = tokens_of(counts)
    n_topics = np.shape(alpha)[-1]
    z, p = naive.posterior_of_assignments(words, docs, counts.shape[1], n_topics, alpha, beta)
    mean, square = naive.moments_of_sum(z, p, PAIRS, words, counts.shape[1], n_topics, beta)
    return np.concatenate([mean, square])


def tokens_of(counts):
    docs, words = np.nonzero(counts)
    repeats = counts[docs, words]
    return np.repeat(docs, repeats), np.repeat(words, repeats)


def statistics(components):
    """(n_draws, n_topics, n_words) to (n_draws, 2 len(PAIRS))."""
    components = np.asarray(components, dtype=float)
    sums = np.stack([(components[:, :, v] * components[:, :, w]).sum(axis=1) for v, w in PAIRS], axis=1)
    return np.hstack([sums, sums**2])


def make_chain(
    seed, step_size, n_iter, *, counts=COUNTS, stored=True, n_batch=None, n_sweeps=(0, 1), thin=1, burn_in=200,
    make=MinibatchChain, alpha=ALPHA, beta=BETA, sampler=None, n_warm=0, doc_prior=None,
):  # fmt: skip
    """A chain bound to the tiny corpus, without warm steps; not run yet."""
    doc_prior = doc_prior or DocumentPrior(alpha, stored)
    n_topics = doc_prior.alpha.size
    data = token_corpus(counts, n_topics, n_batch=n_batch)
    sampler = (sampler or SCIR(step_size=float(step_size)))._resolved(None)
    plan = DrawPlan(n_iter, int(burn_in), thin)
    parts = np.random.SeedSequence(seed), plan, sampler, WordPrior(beta, counts.shape[1], n_topics), doc_prior
    more = (
        {}
        if issubclass(getattr(make, "func", make), CollapsedChain)
        else {"stored": stored, "n_sweeps": n_sweeps, "n_warm": n_warm}
    )
    return make(*parts, init="random", **more).bind(data)


def batch_means(values, n_batches=50):
    n = len(values) // n_batches * n_batches
    return values[:n].reshape(n_batches, -1, values.shape[1]).mean(axis=1)


def spread_ratio(values, exact):
    """Standard deviations of the statistics over the exact ones."""
    half = len(exact) // 2
    sd = np.sqrt(exact[half:] - exact[:half] ** 2)
    return values[:, :half].std(axis=0) / sd
