"""Signals of densities on manifolds, for tests of geodesic samplers, and of the posteriors in their papers.

Each signal has the signature `DENSE_SIGNAL`. It writes the gradient of the log density of all the data (not of its
negative) into ``signal``, and the log density into ``extra[0]``. If the minibatch has at least two rows, ``extra[1]``
is an unbiased estimate of the variance of the gradient's noise, averaged over coordinates.

In the first two signals, a row of ``X`` is a linear term of the log density, in the layout of ``theta``. Data from a
von Mises-Fisher distribution are such terms. Terms that sum to 0 add noise to the gradient without changing the
density.
"""

import math

import numpy as np

from .._jit import NOT_FINITE, OK, helper, kernel
from ..runners import DENSE_SIGNAL


@helper
def add_linear_terms(theta, X, weight, scale, signal, extra):
    """Add the scaled sum of the rows of ``X`` to the gradient, and its inner product with theta to the log density."""
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
        # If n of N rows are drawn without replacement, this is N^2/n times the variance of a row, times (1 - n/N).
        extra[1] = scale * scale * n * max(1.0 - 1.0 / scale, 0.0) * spread / ((n - 1.0) * size)


@kernel(DENSE_SIGNAL)
def restricted_gaussian(theta, X, y, weight, params, scale, signal, extra):
    """log density = sum over rows x of theta of b'x - x'Ax/2; ``params`` = (b of every row, A), in C order."""
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
    """Independent rows x, each with density sum_m exp(c_m'x + a_m); ``params`` = (a_m, c_m) for m = 0, 1, ..."""
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

    ``params`` = (kappa, kappa0, m). ``extra[1]`` is the variance of the tangential part of the noise.
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
    # Only the tangential part of the noise affects the chain. On a circle, this may be all of the noise.
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


@helper
def solve_posterior(A, b, c, inverse):
    """Write A^-1 b into c and A^-1 into ``inverse``; return log |A|, or nan if A is not positive definite."""
    n = b.shape[0]
    L = np.zeros((n, n))
    log_det = 0.0
    for i in range(n):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            if i == j:
                if not total > 0.0:
                    return np.nan
                L[i, i] = math.sqrt(total)
                log_det += math.log(total)
            else:
                L[i, j] = total / L[j, j]
    back = np.empty((n, n))  # L^-1
    for j in range(n):
        for i in range(n):
            total = 1.0 if i == j else 0.0
            for k in range(i):
                total -= L[i, k] * back[k, j]
            back[i, j] = total / L[i, i]
    for i in range(n):
        c[i] = 0.0
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += back[k, i] * back[k, j]
            inverse[i, j] = total
            c[i] += total * b[j]
    return log_det


@kernel(DENSE_SIGNAL)
def factor_completion(theta, X, y, weight, params, scale, signal, extra):
    """Rows x = theta'c + noise with c ~ N(0, diag(tau^2)) integrated out; entries that are nan are missing.

    theta (rank, width) has orthonormal rows and columns u_i; ``params`` = (sigma, tau_1, ..., tau_rank). With sums over
    observed i, let A = sigma^2 diag(1/tau^2) + sum_i u_i u_i' and b = sum_i u_i x_i. The posterior mean is c = A^-1 b.
    A row adds b'c / (2 sigma^2) - log|A| / 2, whose gradient in u_i is (x_i - u_i'c) c / sigma^2 - A^-1 u_i.
    """
    rank, width = theta.shape
    variance = params[0] * params[0]
    A, inverse = np.empty((rank, rank)), np.empty((rank, rank))
    b, c, own = np.empty(rank), np.empty(rank), np.empty((rank, width))
    signal[:] = 0.0
    extra[:] = 0.0
    squares = 0.0
    n = X.shape[0]
    for s in range(n):
        for k in range(rank):
            b[k] = 0.0
            for j in range(rank):
                A[k, j] = variance / (params[1 + k] * params[1 + k]) if k == j else 0.0
        for i in range(width):
            x = X[s, i]
            if not math.isnan(x):
                for k in range(rank):
                    b[k] += theta[k, i] * x
                    for j in range(rank):
                        A[k, j] += theta[k, i] * theta[j, i]
        log_det = solve_posterior(A, b, c, inverse)
        if not math.isfinite(log_det):
            return NOT_FINITE
        value = -0.5 * log_det
        for k in range(rank):
            value += 0.5 * b[k] * c[k] / variance
        extra[0] += scale * weight[s] * value
        for i in range(width):
            x = X[s, i]
            seen = not math.isnan(x)
            if seen:
                for k in range(rank):
                    x -= theta[k, i] * c[k]
            for k in range(rank):
                own[k, i] = 0.0
                if seen:
                    pull = x * c[k] / variance
                    for j in range(rank):
                        pull -= inverse[k, j] * theta[j, i]
                    own[k, i] = weight[s] * pull
                    squares += own[k, i] * own[k, i]
                    signal[k, i] += own[k, i]
    total = 0.0
    for k in range(rank):
        for i in range(width):
            total += signal[k, i] * signal[k, i]
            signal[k, i] *= scale
    if n > 1:
        # As in `add_linear_terms`: N^2/n times the variance of a row, times (1 - n/N).
        spread = (squares - total / n) / (n - 1.0)
        extra[1] = scale * scale * n * max(1.0 - 1.0 / scale, 0.0) * spread / theta.size
    return OK
