"""Gradients of Bayesian logistic regression with two or more classes, for dense or sparse rows.

``params`` is as in `design`. ``y[:, 0]`` is the class of each row. ``y[:, 1:]`` contains the linear predictors eta at
the mode, the probabilities there (of the second class only if there are two), and the logarithm of the sum of e^eta.
"""

import numpy as np

from ..._jit import helper, kernel
from ...math.vector import exp_not_positive
from ...runners import DENSE_SIGNAL
from .design import (
    BLOCK,
    CONTROL,
    SECOND_ORDER,
    WITH_VALUE,
    add_pull,
    finish,
    predict,
    predict_classes,
    predict_sparse_classes,
    pull_classes,
    pull_sparse_classes,
    unwhiten,
)


@helper
def binary_residuals(e, y, weight, lo, m, params, r):
    """Write r_i, the derivative in the predictor of row lo + i; e_i is its predictor minus its value at the mode.

    Returns the log density.
    """
    order = params[CONTROL]
    second = 1.0 if order == SECOND_ORDER else 0.0
    for i in range(m):
        eta = y[lo + i, 1] + e[i]
        small = exp_not_positive(-abs(eta))
        r[i] = (1.0 if eta > 0.0 else small) / (1.0 + small)
    if order != 0.0:
        for i in range(m):
            p0 = y[lo + i, 2]
            r[i] = weight[lo + i] * (p0 + second * p0 * (1.0 - p0) * e[i] - r[i])
    else:
        for i in range(m):
            r[i] = weight[lo + i] * (y[lo + i, 0] - r[i])
    if params[WITH_VALUE] == 0.0:
        return 0.0
    rest = 0.0
    for i in range(m):
        w, p0 = weight[lo + i], y[lo + i, 2]
        eta = y[lo + i, 1] + e[i]
        log_total = max(eta, 0.0) + np.log1p(np.exp(-abs(eta)))
        if order != 0.0:
            rest += w * (y[lo + i, 3] - log_total + p0 * e[i] + 0.5 * second * p0 * (1.0 - p0) * e[i] * e[i])
        else:
            rest += w * (y[lo + i, 0] * eta - log_total)
    return rest


@helper
def _binary(is_sparse, theta, X, y, weight, params, scale, signal, extra):
    D = theta.shape[0]
    delta, pull = np.empty(D), np.zeros(D)
    e, r = np.empty(BLOCK), np.empty(BLOCK)
    unwhiten(theta, params, D, 1, delta)
    rest = 0.0
    for lo in range(0, X.shape[0], BLOCK):
        m = min(BLOCK, X.shape[0] - lo)
        predict(is_sparse, X, lo, m, params, delta, e)
        rest += binary_residuals(e, y, weight, lo, m, params, r)
        add_pull(is_sparse, r, X, lo, m, params, pull)
    return finish(theta, params, D, 1, scale, delta, pull, rest, signal, extra)


@kernel(DENSE_SIGNAL)
def binary(theta, X, y, weight, params, scale, signal, extra):
    """Two classes, ``y[:, 0]`` in {0, 1}."""
    return _binary(False, theta, X, y, weight, params, scale, signal, extra)


@kernel(DENSE_SIGNAL)
def sparse_binary(theta, X, y, weight, params, scale, signal, extra):
    """Two classes, ``y[:, 0]`` in {0, 1}, for sparse rows."""
    return _binary(True, theta, X, y, weight, params, scale, signal, extra)


@helper
def multinomial_residuals(e, y, weight, lo, n, params, r, top, total):
    """Write r_ki, the derivative in the predictor of class k and row lo + i; returns the log density.

    e contains the predictors minus their values at the mode. Arrays are (classes, rows), so that inner loops are over
    rows. ``top`` and ``total`` are scratch.
    """
    K = e.shape[0]
    order = params[CONTROL]
    for i in range(n):
        top[i] = -np.inf
        total[i] = 0.0
    for k in range(K):
        for i in range(n):
            r[k, i] = y[lo + i, 1 + k] + e[k, i]
            top[i] = max(top[i], r[k, i])
    for k in range(K):
        for i in range(n):
            r[k, i] = exp_not_positive(r[k, i] - top[i])
            total[i] += r[k, i]
    rest = multinomial_value(e, y, weight, lo, n, order, top, total) if params[WITH_VALUE] != 0.0 else 0.0
    if order == 0.0:
        for k in range(K):
            for i in range(n):
                r[k, i] = weight[lo + i] * ((1.0 if y[lo + i, 0] == k else 0.0) - r[k, i] / total[i])
        return rest
    second = 1.0 if order == SECOND_ORDER else 0.0
    mean = top
    for i in range(n):
        mean[i] = 0.0
    for k in range(K):
        for i in range(n):
            mean[i] += y[lo + i, 1 + K + k] * e[k, i]
    for k in range(K):
        for i in range(n):
            p0 = y[lo + i, 1 + K + k]
            r[k, i] = weight[lo + i] * (p0 - r[k, i] / total[i] + second * p0 * (e[k, i] - mean[i]))
    return rest


@helper
def multinomial_value(e, y, weight, lo, n, order, top, total):
    """The log density of rows lo, lo + 1, ..., or the part that control variates do not remove."""
    K = e.shape[0]
    second = 1.0 if order == SECOND_ORDER else 0.0
    value = 0.0
    for i in range(n):
        row = y[lo + i]
        log_total = top[i] + np.log(total[i])
        if order == 0.0:
            label = int(row[0])
            value += weight[lo + i] * (row[1 + label] + e[label, i] - log_total)
            continue
        mean, square = 0.0, 0.0
        for k in range(K):
            mean += row[1 + K + k] * e[k, i]
            square += row[1 + K + k] * e[k, i] * e[k, i]
        value += weight[lo + i] * (row[1 + 2 * K] - log_total + mean + 0.5 * second * (square - mean * mean))
    return value


@kernel(DENSE_SIGNAL)
def multinomial(theta, X, y, weight, params, scale, signal, extra):
    """Several classes, each with a linear predictor."""
    D = theta.shape[0]
    K = D // X.shape[1]
    delta, pull = np.empty(D), np.zeros(D)
    e, r = np.empty((K, BLOCK)), np.empty((K, BLOCK))
    top, total = np.empty(BLOCK), np.empty(BLOCK)
    unwhiten(theta, params, D, K, delta)
    rest = 0.0
    for lo in range(0, X.shape[0], BLOCK):
        n = min(BLOCK, X.shape[0] - lo)
        predict_classes(X, lo, n, delta, e)
        rest += multinomial_residuals(e, y, weight, lo, n, params, r, top, total)
        pull_classes(r, X, lo, n, pull)
    return finish(theta, params, D, K, scale, delta, pull, rest, signal, extra)


@kernel(DENSE_SIGNAL)
def sparse_multinomial(theta, X, y, weight, params, scale, signal, extra):
    """Several classes, each with a linear predictor, for sparse rows."""
    D = theta.shape[0]
    K = (y.shape[1] - 2) // 2
    delta, pull = np.empty(D), np.zeros(D)
    e, r = np.empty((K, BLOCK)), np.empty((K, BLOCK))
    top, total = np.empty(BLOCK), np.empty(BLOCK)
    unwhiten(theta, params, D, K, delta)
    rest = 0.0
    for lo in range(0, X.shape[0], BLOCK):
        n = min(BLOCK, X.shape[0] - lo)
        predict_sparse_classes(X, lo, n, params, delta, e)
        rest += multinomial_residuals(e, y, weight, lo, n, params, r, top, total)
        pull_sparse_classes(r, X, lo, n, params, pull)
    return finish(theta, params, D, K, scale, delta, pull, rest, signal, extra)
