"""Matrix completion on orthonormal frames: the factors' directions, their loadings integrated out."""

import math

import numpy as np

from .._jit import NOT_FINITE, OK, helper, kernel
from ..runners import DENSE_SIGNAL


@helper
def solve_posterior(A, b, c, inverse):
    """Cholesky: write A^-1 b into c and A^-1 into ``inverse``; return log |A|, nan if A is not positive definite."""
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
    """Rows x = theta'c + noise with c ~ N(0, diag(tau^2)) integrated out; entries that are nan are not observed.

    theta (rank, width) has orthonormal rows; ``params`` = (sigma, tau_1, ..., tau_rank). With A = sigma^2 diag(1/tau^2)
    + sum_i u_i u_i', b = sum_i u_i x_i over observed i, and the posterior mean c = A^-1 b, a row adds
    b'c / (2 sigma^2) - log|A| / 2, whose gradient in u_i is (x_i - u_i'c) c / sigma^2 - A^-1 u_i.
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
