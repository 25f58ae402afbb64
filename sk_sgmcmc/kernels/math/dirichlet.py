"""Dirichlet distributions: fitting their parameter, and draws that depend on a seed alone, not on NumPy's version."""

import numpy as np
from numba import types

from .._jit import F1, F1_IN, F2_IN, F8, I1_IN, I8, OK, helper, kernel, read_only, writable
from .random import GOLDEN, mix64, unit
from .special import digamma, digamma_difference

# Bounds of the parameters. Beyond them, the likelihood of any corpus is practically constant.
_SMALLEST, _LARGEST = 1e-5, 1e3


@kernel(F1(F2_IN, F1_IN, F1_IN, F8))
def fixed_point(counts, lengths, alpha, prior_shape):
    """One step of Minka's fixed point for the Dirichlet parameter of multinomial counts.

    alpha_k <- alpha_k sum_d [digamma(alpha_k + n_dk) - digamma(alpha_k)] / sum_d [digamma(A + n_d) - digamma(A)], with
    A the sum of alpha (Minka 2000, Estimating a Dirichlet distribution, equation 55). A Gamma(prior_shape + 1e-3, 1e-3)
    prior on each alpha_k keeps it finite.

    Parameters
    ----------
    counts : (n_docs, n_topics)
    lengths : (n_docs,), positive
    alpha : (n_topics,)
    prior_shape : float
        At least 1, so that topics without counts keep a positive parameter.

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
    """Add documents start:stop, given by their assignments, to the sums of `fixed_point`.

    ``sums`` (n_topics + 1,) contains sum_d [digamma(alpha_k + n_dk) - digamma(alpha_k)] for each topic, and last the
    same sum for n_d and A.
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


F4_2 = writable(types.float32, 2)
_LOG_TINY = np.log(1e-300)


@helper
def _positive_unit(x):
    """A 64-bit word as a number in (0, 1]."""
    return 1.0 - unit(x)


@helper
def _standard_gamma(shape, counter):
    """Gamma(shape, 1) draw for shape >= 1 (Marsaglia and Tsang 2000); returns it and the counter after it."""
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        radius = np.sqrt(-2.0 * np.log(_positive_unit(mix64(counter + GOLDEN))))
        normal = radius * np.cos(2.0 * np.pi * unit(mix64(counter + np.uint64(2) * GOLDEN)))
        counter += np.uint64(3) * GOLDEN  # past the last number used, so that none is used twice
        v = 1.0 + c * normal
        if v <= 0.0:
            continue
        v = v * v * v
        u = _positive_unit(mix64(counter))
        square = normal * normal
        # The first test implies the second, and avoids its two logarithms for most draws.
        if u < 1.0 - 0.0331 * square * square or np.log(u) < 0.5 * square + d - d * v + d * np.log(v):
            return d * v, counter


@helper
def dirichlet_row(shapes, counter, row):
    """Write cells proportional to a Dirichlet draw with positive parameters into ``row``; returns their sum.

    A cell is Gamma(a); if a < 1, it is drawn as Gamma(a + 1) U^(1 / a).
    """
    total, largest, where = 0.0, -np.inf, 0
    for w in range(row.size):
        shape, log_power = shapes[w], 0.0
        if shape < 1.0:
            counter += GOLDEN
            log_power = np.log(_positive_unit(mix64(counter))) / shape
            if log_power < _LOG_TINY:  # The product underflows in any case.
                row[w] = 0.0
                if log_power > largest:
                    largest, where = log_power, w
                continue
            shape += 1.0
        draw, counter = _standard_gamma(shape, counter)
        row[w] = draw * np.exp(log_power)
        total += row[w]
    if total == 0.0:  # All parameters are tiny. The largest cell receives all the mass.
        row[where] = total = 1.0
    return total


@kernel(I8(F2_IN, types.uint64, F4_2))
def dirichlet_rows(shapes, seed, out):
    """Write a Dirichlet draw for each row of ``shapes``, its positive parameters, into the same row of ``out``.

    Each row has its own random stream.
    """
    row = np.empty(shapes.shape[1])
    for k in range(shapes.shape[0]):
        total = dirichlet_row(shapes[k], mix64(seed ^ mix64(np.uint64(k) + GOLDEN)), row)
        for w in range(row.size):
            out[k, w] = row[w] / total
    return OK
