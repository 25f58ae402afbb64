"""Prevalence of topics, and documents' priors, from draws of the coefficients."""

import numpy as np
from scipy import sparse

from ...utils._rowwise import rowwise_product
from .._answers.merging import summed
from .._counts.answers import scored_draws
from .coefficients import _HIGHEST, _LOWEST

_CELLS_AT_ONCE = 10_000_000


def doc_priors(encoded, coef, new=None):
    """Dirichlet parameters exp(x' lambda) of encoded rows, (n_rows, n_topics); ``coef`` has the intercept first.

    Where topics have been merged, ``new`` is the index of each one's new topic, whose parameter is the sum of theirs.
    """
    slopes = np.ascontiguousarray(coef[:, 1:].T)
    eta = encoded @ slopes if sparse.issparse(encoded) else rowwise_product(encoded, slopes)
    eta += coef[:, 0]
    np.clip(eta, _LOWEST, _HIGHEST, out=eta)
    np.exp(eta, out=eta)
    return eta if new is None else summed(eta, new, -1)


def prevalence(encoded, coef, new=None):
    """Expected proportions of encoded rows, (n_rows, n_topics)."""
    priors = doc_priors(encoded, coef, new)
    return priors / priors.sum(axis=1, keepdims=True)


def mean_doc_priors(encoded, coef, new=None):
    """Dirichlet parameters averaged over some of the draws ``coef`` of one chain, (n_rows, n_topics)."""
    first, *others = scored_draws(len(coef))
    mean = doc_priors(encoded, coef[first], new)
    for s in others:  # one at a time: a document may have a row of its own
        mean += doc_priors(encoded, coef[s], new)
    mean /= 1 + len(others)
    return mean


def over_draws(coef, answer):
    """Values of the function ``answer`` at each draw of the coefficients, (n_chains, n_kept, ...)."""
    return np.stack([np.stack([answer(each) for each in chain]) for chain in coef])


def prevalence_draws(encoded, coef, new=None):
    """Yield the prevalence under each draw, (n_chains, n_kept, n, n_topics), for pieces of rows that fit in memory."""
    n = max(1, _CELLS_AT_ONCE // (coef.shape[0] * coef.shape[1] * coef.shape[2]))
    for start in range(0, encoded.shape[0], n):
        yield over_draws(coef, lambda each, rows=encoded[start : start + n]: prevalence(rows, each, new))
