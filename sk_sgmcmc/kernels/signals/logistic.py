"""Gradients of Bayesian logistic regression, in coordinates whitened at the mode, with or without control variates.

With mode b, whitener T (T T^T the inverse Hessian at the mode) and coordinates theta, the coefficients are b + T theta.
``params`` = (D, control, then offset (D), quadratic matrix A (D, D), T (D, D)). With control variates the log posterior
is offset . theta - |theta|^2 / 2 plus what the likelihood has beyond its second order at the mode, and only that is
estimated from the minibatch; without, A is the prior's precision in whitened coordinates, and the whole likelihood is
estimated. D = classes x features (1 x features for two classes), class by class. ``y[:, 0]`` is the class and
``y[:, 1:]`` the linear predictors of each row at the mode; for two classes then come the probability and log(1 + e^eta)
there.
"""

import numpy as np

from .._jit import NOT_FINITE, OK, helper, kernel
from ..runners import DENSE_SIGNAL


@helper(fast_sums=True)
def dot(x, b, begin, n):
    """Sum of x_j b_{begin + j}."""
    total = 0.0
    for j in range(n):
        total += x[j] * b[begin + j]
    return total


@helper(fast_sums=True)
def unwhiten(theta, params, D, delta):
    """delta = T theta."""
    lo = 2 + D + D * D
    for i in range(D):
        total = 0.0
        for j in range(D):
            total += params[lo + i * D + j] * theta[j, 0]
        delta[i] = total


@helper(fast_sums=True)
def assemble(theta, params, D, scale, pull, signal):
    """signal = offset - A theta + scale T^T pull; returns offset . theta - theta . A theta / 2."""
    lo = 2 + D + D * D
    value = 0.0
    control = params[1] != 0.0
    for i in range(D):
        if control:
            a = theta[i, 0]
        else:
            a = 0.0
            for j in range(D):
                a += params[2 + D + i * D + j] * theta[j, 0]
        signal[i, 0] = params[2 + i] - a
        value += (params[2 + i] - 0.5 * a) * theta[i, 0]
    for j in range(D):
        for i in range(D):
            signal[i, 0] += scale * params[lo + j * D + i] * pull[j]
    return value


@kernel(DENSE_SIGNAL)
def binary(theta, X, y, weight, params, scale, signal, extra):
    """Two classes, ``y[:, 0]`` in {0, 1}."""
    D = theta.shape[0]
    control = params[1] != 0.0
    delta, pull = np.empty(D), np.zeros(D)
    unwhiten(theta, params, D, delta)
    rest = 0.0
    for n in range(X.shape[0]):
        w = weight[n]
        e = dot(X[n], delta, 0, D)
        eta = y[n, 1] + e
        small = np.exp(-abs(eta))
        p = (1.0 if eta > 0.0 else small) / (1.0 + small)
        log_total = max(eta, 0.0) + np.log1p(small)
        if control:
            p0 = y[n, 2]
            c = p0 * (1.0 - p0)
            r = w * (p0 - p + c * e)
            rest += w * (y[n, 3] - log_total + p0 * e + 0.5 * c * e * e)
        else:
            r = w * (y[n, 0] - p)
            rest += w * (y[n, 0] * eta - log_total)
        for j in range(D):
            pull[j] += r * X[n, j]
    extra[0] = assemble(theta, params, D, scale, pull, signal) + scale * rest
    return OK if np.isfinite(extra[0]) else NOT_FINITE


@kernel(DENSE_SIGNAL)
def multinomial(theta, X, y, weight, params, scale, signal, extra):
    """Several classes, one linear predictor each."""
    D = theta.shape[0]
    m = X.shape[1]
    K = D // m
    control = params[1] != 0.0
    delta, pull = np.empty(D), np.zeros(D)
    e, p, p0 = np.empty(K), np.empty(K), np.empty(K)
    unwhiten(theta, params, D, delta)
    rest = 0.0
    for n in range(X.shape[0]):
        w = weight[n]
        top, top0 = -np.inf, -np.inf
        for k in range(K):
            e[k] = dot(X[n], delta, k * m, m)
            top = max(top, y[n, 1 + k] + e[k])
            top0 = max(top0, y[n, 1 + k])
        total, total0, mean = 0.0, 0.0, 0.0
        for k in range(K):
            p[k] = np.exp(y[n, 1 + k] + e[k] - top)
            p0[k] = np.exp(y[n, 1 + k] - top0)
            total += p[k]
            total0 += p0[k]
        for k in range(K):
            mean += p0[k] / total0 * e[k]
        label = int(y[n, 0])
        log_total = top + np.log(total)
        if control:
            rest += w * (top0 + np.log(total0) - log_total + mean)
        else:
            rest += w * (y[n, 1 + label] + e[label] - log_total)
        for k in range(K):
            share, share0 = p[k] / total, p0[k] / total0
            if control:
                curve = share0 * (e[k] - mean)
                rest += 0.5 * w * curve * e[k]
                r = w * (share0 - share + curve)
            else:
                r = w * ((1.0 if k == label else 0.0) - share)
            for j in range(m):
                pull[k * m + j] += r * X[n, j]
    extra[0] = assemble(theta, params, D, scale, pull, signal) + scale * rest
    return OK if np.isfinite(extra[0]) else NOT_FINITE
