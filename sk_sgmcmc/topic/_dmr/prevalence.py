"""Prevalence of topics, and documents' priors, from draws of the coefficients."""

import numpy as np
from scipy import sparse

from ...utils._rowwise import rowwise_product
from .._counts.answers import scored_draws
from .coefficients import _HIGHEST, _LOWEST

_CELLS_AT_ONCE = 10_000_000


def doc_priors(encoded, coef):
    """Dirichlet parameters exp(x' lambda) of encoded rows, (n_rows, n_topics); ``coef`` has the intercept first."""
    slopes = np.ascontiguousarray(coef[:, 1:].T)
    eta = encoded @ slopes if sparse.issparse(encoded) else rowwise_product(encoded, slopes)
    eta += coef[:, 0]
    np.clip(eta, _LOWEST, _HIGHEST, out=eta)
    return np.exp(eta, out=eta)


def prevalence(encoded, coef):
    """Expected proportions of encoded rows, (n_rows, n_topics)."""
    priors = doc_priors(encoded, coef)
    return priors / priors.sum(axis=1, keepdims=True)


def mean_doc_priors(encoded, coef):
    """Dirichlet parameters averaged over some of the draws ``coef`` of one chain, (n_rows, n_topics)."""
    first, *others = scored_draws(len(coef))
    mean = doc_priors(encoded, coef[first])
    for s in others:  # one at a time: a document may have a row of its own
        mean += doc_priors(encoded, coef[s])
    mean /= 1 + len(others)
    return mean


def over_draws(coef, answer):
    """Values of the function ``answer`` at each draw of the coefficients, (n_chains, n_kept, ...)."""
    return np.stack([np.stack([answer(each) for each in chain]) for chain in coef])


def prevalence_draws(encoded, coef):
    """Yield the prevalence under each draw, (n_chains, n_kept, n, n_topics), for pieces of rows that fit in memory."""
    n = max(1, _CELLS_AT_ONCE // (coef.shape[0] * coef.shape[1] * coef.shape[2]))
    for start in range(0, encoded.shape[0], n):
        yield over_draws(coef, lambda each, rows=encoded[start : start + n]: prevalence(rows, each))
