"""Fitting the parameter of a Dirichlet-multinomial."""

import numpy as np
from numba import types

from .._jit import F1, F1_IN, F2_IN, F8, I1_IN, I8, OK, kernel, read_only
from .special import digamma, digamma_difference

# No corpus distinguishes a prior this small or large from its neighbours.
_SMALLEST, _LARGEST = 1e-5, 1e3


@kernel(F1(F2_IN, F1_IN, F1_IN, F8))
def fixed_point(counts, lengths, alpha, prior_shape):
    """One step of Minka's fixed point for the Dirichlet parameter of multinomial counts.

    alpha_k <- alpha_k sum_d [digamma(alpha_k + n_dk) - digamma(alpha_k)] / sum_d [digamma(A + n_d) - digamma(A)], with
    A the sum of alpha, under a Gamma(prior_shape + 1e-3, 1e-3) prior on each that keeps it finite (Minka 2000,
    Estimating a Dirichlet distribution, equation 55).

    Parameters
    ----------
    counts : (n_docs, n_topics)
    lengths : (n_docs,), positive
    alpha : (n_topics,)
    prior_shape : float
        Not below 1, so that topics without counts keep a positive parameter.

    Returns
    -------
    new : (n_topics,)
    """
    n_topics = alpha.shape[0]
    whole = alpha.sum()
    below = 1e-3
    for d in range(lengths.shape[0]):
        below += digamma_difference(whole, lengths[d])
    new = np.empty(n_topics)
    for k in range(n_topics):
        above = 0.0
        for d in range(lengths.shape[0]):
            if counts[d, k] > 0.0:
                above += digamma_difference(alpha[k], counts[d, k])
        new[k] = min(max((alpha[k] * above + prior_shape - 1.0 + 1e-3) / below, _SMALLEST), _LARGEST)
    return new


@kernel(I8(I8, I8, I1_IN, F1_IN, read_only(types.uint16, 1), F1_IN, F1))
def add_statistics(start, stop, token_ptr, weights, z, alpha, sums):
    """Add documents start:stop, given by assignments, to the sums of the same fixed point.

    ``sums`` (n_topics + 1,): sum_d [digamma(alpha_k + n_dk) - digamma(alpha_k)], and last the sum for n_d and A.
    """
    n_topics = alpha.shape[0]
    weighted = weights.shape[0] > 0
    count, at_prior, whole = np.empty(n_topics), np.empty(n_topics), 0.0
    for k in range(n_topics):
        count[k] = 0.0
        at_prior[k] = digamma(alpha[k])
        whole += alpha[k]
    for d in range(start, stop):
        length = 0.0
        for i in range(token_ptr[d], token_ptr[d + 1]):
            weight = weights[i] if weighted else 1.0
            count[z[i]] += weight
            length += weight
        for i in range(token_ptr[d], token_ptr[d + 1]):
            k = z[i]
            if count[k] > 0.0:
                sums[k] += digamma(count[k] + alpha[k]) - at_prior[k]
                count[k] = 0.0
        sums[n_topics] += digamma(length + whole) - digamma(whole)
    return OK
