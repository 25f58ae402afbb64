"""Metrics of the models for `sk_sgmcmc.kernels.samplers.riemannian`: Fisher information plus the prior."""

import numpy as np

from .._jit import NOT_FINITE, OK, helper, kernel
from ..samplers.riemannian import METRIC
from .linear.design import dot


@helper
def _add_moments(b, weight, third, out):
    """Add weight b b^T to G, and third b_k b b^T to each dG_k if ``out`` has room for derivatives."""
    D = b.shape[0]
    for i in range(D):
        for j in range(i + 1):
            out[i, j] += weight * b[i] * b[j]
    if out.shape[0] > D:
        for k in range(D):
            for i in range(D):
                value = third * b[k] * b[i]
                for j in range(i + 1):
                    out[D + k * D + i, j] += value * b[j]


@helper
def _mirror(out):
    """Copy the lower triangles to the upper ones."""
    D = out.shape[1]
    for block in range(out.shape[0] // D):
        for i in range(D):
            for j in range(i):
                out[block * D + j, i] = out[block * D + i, j]


@kernel(METRIC)
def logistic(theta, X, y, weight, params, scale, out, extra):
    """Fisher information of the rows times ``scale``, plus the prior's precision.

    The coordinates are as in `linear.design`, and ``y`` is as in `linear.logistic`. ``params`` = (prior's precision A
    (D, D), T (D, D)), both whitened. Let b_k be the derivative of the linear predictor of class k, and p_k the
    probability of the class. Then G is the second central moment of b under p, and its derivatives are third moments.
    """
    D = theta.shape[0]
    m = X.shape[1]
    K = D // m
    lo = D * D
    out[:] = 0.0
    for i in range(D):
        for j in range(D):
            out[i, j] = params[i * D + j]
    delta, b, mean = np.zeros(D), np.zeros((K, D)), np.zeros(D)
    centred, p = np.zeros(D), np.zeros(K)
    for i in range(D):
        for j in range(D):
            delta[i] += params[lo + i * D + j] * theta[j, 0]
    for n in range(X.shape[0]):
        w = scale * weight[n]
        b[:] = 0.0
        top = -np.inf
        for k in range(K):
            p[k] = y[n, 1 + k] + dot(X[n], delta, k * m, m)
            top = max(top, p[k])
            for i in range(m):
                at = lo + (k * m + i) * D
                for j in range(D):
                    b[k, j] += X[n, i] * params[at + j]
        if K == 1:
            small = np.exp(-abs(p[0]))
            variance = w * small / (1.0 + small) ** 2  # p (1 - p)
            _add_moments(b[0], variance, -variance * np.tanh(0.5 * p[0]), out)  # tanh(eta / 2) = 2 p - 1
            continue
        total = 0.0
        for k in range(K):
            p[k] = np.exp(p[k] - top)
            total += p[k]
        mean[:] = 0.0
        for k in range(K):
            p[k] /= total
            for j in range(D):
                mean[j] += p[k] * b[k, j]
        for k in range(K):
            for j in range(D):
                centred[j] = b[k, j] - mean[j]
            _add_moments(centred, w * p[k], w * p[k], out)
    _mirror(out)
    return OK


@kernel(METRIC)
def poisson(theta, X, y, weight, params, scale, out, extra):
    """Like `logistic`, for counts with a log link."""
    D = theta.shape[0]
    lo = D * D
    out[:] = 0.0
    for i in range(D):
        for j in range(D):
            out[i, j] = params[i * D + j]
    delta, b = np.zeros(D), np.zeros(D)
    for i in range(D):
        for j in range(D):
            delta[i] += params[lo + i * D + j] * theta[j, 0]
    for n in range(X.shape[0]):
        b[:] = 0.0
        for i in range(D):
            for j in range(D):
                b[j] += X[n, i] * params[lo + i * D + j]
        mean = scale * weight[n] * y[n, 2] * np.exp(dot(X[n], delta, 0, D))
        if not np.isfinite(mean):
            return NOT_FINITE
        _add_moments(b, mean, mean, out)
    _mirror(out)
    return OK


@kernel(METRIC)
def normal_wishart(theta, X, y, weight, params, scale, out, extra):
    """Expected Fisher information with the prior as additional rows, in the coordinates of `conjugate.normal_wishart`.

    Let S = (L L^T)^{-1}, and let e_a be the derivative of L_ij in its coordinate. Entries a = (i, j) and a' = (i', j')
    of L with j = j' have G = nu_n e_a e_a' S_ii', plus nu_n / (2 m_i) for a = a' on the diagonal. The mean has
    G = L L^T.
    """
    D = theta.shape[0]
    freedom = params[1]
    d = 0
    while d + d * (d + 1) // 2 < D:
        d += 1
    root = np.sqrt(freedom)
    row, column = np.empty(D - d, np.int64), np.empty(D - d, np.int64)
    L, R = np.zeros((d, d)), np.zeros((d, d))
    e = np.full(D - d, 1.0 / root)
    a = 0
    for i in range(d):
        for j in range(i + 1):
            row[a], column[a] = i, j
            if j < i:
                L[i, j] = theta[d + a, 0] / root
            else:
                unit = np.sqrt(2.0 * (freedom - i))
                L[i, i] = np.sqrt(freedom - i) / root * np.exp(theta[d + a, 0] / unit)
                e[a] = L[i, i] / unit
            a += 1
    for c in range(d):  # R = L^{-1}
        for i in range(c, d):
            value = 1.0 if i == c else 0.0
            for k in range(c, i):
                value -= L[i, k] * R[k, c]
            R[i, c] = value / L[i, i]
    S = R.T @ R
    out[:] = 0.0
    rates = out.shape[0] > D
    for i in range(d):
        for j in range(d):
            for k in range(d):
                out[i, j] += L[i, k] * L[j, k]
    for a in range(D - d):
        for b in range(D - d):
            if column[a] == column[b]:
                out[d + a, d + b] = freedom * e[a] * e[b] * S[row[a], row[b]]
        if row[a] == column[a]:
            out[d + a, d + a] += 0.5 * freedom / (freedom - row[a])
    if rates:
        for c in range(D - d):
            k, col = row[c], column[c]
            at = D + (d + c) * D
            step = e[c]  # derivative of L_kl in theta_c
            for i in range(d):
                out[at + k, i] += step * L[i, col]
                out[at + i, k] += step * L[i, col]
            for a in range(D - d):
                for b in range(D - d):
                    if column[a] == column[b]:
                        dS = -step * (S[row[a], k] * R[col, row[b]] + R[col, row[a]] * S[row[b], k])
                        # The factors e of diagonal entries are proportional to L_ii.
                        grown = (1.0 if a == c else 0.0) + (1.0 if b == c else 0.0) if k == col else 0.0
                        dS += grown / np.sqrt(2.0 * (freedom - k)) * S[row[a], row[b]]
                        out[at + d + a, d + b] = freedom * e[a] * e[b] * dS
    return OK if np.isfinite(S.sum()) else NOT_FINITE
