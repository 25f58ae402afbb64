"""Signals of densities on manifolds: test beds for the geodesic samplers, and the posteriors of their papers.

Each has the signature `DENSE_SIGNAL`, writes the gradient of the log density of all the data (not of its negative) into
``signal``, the log density into ``extra[0]`` and, with at least two rows in the minibatch, an unbiased estimate of
the variance of the gradient's noise, averaged over coordinates, into ``extra[1]``.

In the first two, a row of ``X`` is a linear term of the log density, laid out like ``theta``: data of a von Mises-
Fisher law are such terms, and terms that add up to 0 make the gradient noisy without changing the density.
"""

import math

import numpy as np

from .._jit import NOT_FINITE, OK, helper, kernel
from ..runners import DENSE_SIGNAL


@helper
def add_linear_terms(theta, X, weight, scale, signal, extra):
    """Add the scaled sum of the rows of ``X`` to the gradient, and its product with theta to the log density."""
    width = theta.shape[1]
    n, size = X.shape[0], X.shape[1]
    if size == 0:
        return
    spread = 0.0
    for j in range(size):
        total, squares = 0.0, 0.0
        for i in range(n):
            value = weight[i] * X[i, j]
            total += value
            squares += value * value
        signal[j // width, j % width] += scale * total
        extra[0] += scale * total * theta[j // width, j % width]
        spread += squares - total * total / n
    if n > 1:
        # Sampling n of N rows without replacement: N^2/n times the variance of a row, times (1 - n/N).
        extra[1] = scale * scale * n * max(1.0 - 1.0 / scale, 0.0) * spread / ((n - 1.0) * size)


@kernel(DENSE_SIGNAL)
def restricted_gaussian(theta, X, y, weight, params, scale, signal, extra):
    """sum over rows x of theta of b'x - x'Ax/2; ``params`` = (b of every row, A), both in C order."""
    n_rows, width = theta.shape
    extra[:] = 0.0
    at = n_rows * width
    for r in range(n_rows):
        for i in range(width):
            bent = 0.0
            for j in range(width):
                bent += params[at + i * width + j] * theta[r, j]
            b = params[r * width + i]
            signal[r, i] = b - bent
            extra[0] += (b - 0.5 * bent) * theta[r, i]
    add_linear_terms(theta, X, weight, scale, signal, extra)
    return OK


@kernel(DENSE_SIGNAL)
def exponential_mixture(theta, X, y, weight, params, scale, signal, extra):
    """Rows independent, each of density sum_m exp(c_m'x + a_m); ``params`` = (a_m, c_m) for m = 0, 1, ..."""
    n_rows, width = theta.shape
    n_modes = params.shape[0] // (width + 1)
    extra[:] = 0.0
    for r in range(n_rows):
        largest = -np.inf
        for m in range(n_modes):
            at = m * (width + 1)
            value = params[at]
            for i in range(width):
                value += params[at + 1 + i] * theta[r, i]
            largest = max(largest, value)
        total = 0.0
        signal[r] = 0.0
        for m in range(n_modes):
            at = m * (width + 1)
            value = params[at]
            for i in range(width):
                value += params[at + 1 + i] * theta[r, i]
            share = math.exp(value - largest)
            total += share
            for i in range(width):
                signal[r, i] += share * params[at + 1 + i]
        for i in range(width):
            signal[r, i] /= total
        extra[0] += largest + math.log(total)
    add_linear_terms(theta, X, weight, scale, signal, extra)
    return OK


@kernel(DENSE_SIGNAL)
def chained_vmf_mixture(theta, X, y, weight, params, scale, signal, extra):
    """Data from vMF(v1, kappa) + vMF((v1 + v2)/|v1 + v2|, kappa), half each; theta = (v1, v2), priors vMF(m, kappa0).

    ``params`` = (kappa, kappa0, m). The noise's variance is that of its tangential part.
    """
    width = theta.shape[1]
    kappa, prior_kappa = params[0], params[1]
    length = 0.0
    for i in range(width):
        length += (theta[0, i] + theta[1, i]) ** 2
    length = math.sqrt(length)
    if not length > 0.0:
        return NOT_FINITE
    extra[:] = 0.0
    signal[:] = 0.0
    n, squares = X.shape[0], 0.0
    for s in range(n):
        first, second = 0.0, 0.0
        for i in range(width):
            first += theta[0, i] * X[s, i]
            second += (theta[0, i] + theta[1, i]) * X[s, i]
        second /= length
        gap = kappa * (second - first)
        share = 1.0 / (1.0 + math.exp(-gap)) if gap > -700.0 else 0.0
        largest = max(gap, 0.0)
        extra[0] += (
            scale * weight[s] * (kappa * first + largest + math.log(math.exp(-largest) + math.exp(gap - largest)))
        )
        radial_first, radial_second = 0.0, 0.0
        for i in range(width):
            mean = (theta[0, i] + theta[1, i]) / length
            to_both = weight[s] * kappa * share * (X[s, i] - second * mean) / length
            to_first = weight[s] * kappa * (1.0 - share) * X[s, i] + to_both
            signal[0, i] += to_first
            signal[1, i] += to_both
            squares += to_first * to_first + to_both * to_both
            radial_first += to_first * theta[0, i]
            radial_second += to_both * theta[1, i]
        squares -= radial_first * radial_first + radial_second * radial_second
    # Only the tangential part of the noise moves the chain, and on a circle that may be all of it.
    total = 0.0
    for r in range(2):
        radial = 0.0
        for i in range(width):
            radial += signal[r, i] * theta[r, i]
        for i in range(width):
            total += signal[r, i] * signal[r, i]
            extra[0] += prior_kappa * params[2 + i] * theta[r, i]
            signal[r, i] = scale * signal[r, i] + prior_kappa * params[2 + i]
        total -= radial * radial
    if n > 1:
        spread = (squares - total / n) / (n - 1.0)
        extra[1] = scale * scale * n * max(1.0 - 1.0 / scale, 0.0) * spread / (2.0 * (width - 1.0))
    return OK
