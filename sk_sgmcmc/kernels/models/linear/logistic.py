"""Gradients of Bayesian logistic regression with two classes, dense or sparse rows.

``params`` is as in `design`. ``y[:, 0]`` is the class and ``y[:, 1:]`` the linear predictor of each row at the mode,
followed by the probability of the second class there and by the logarithm of the sum of e^eta.
"""

import numpy as np

from ..._jit import helper, kernel
from ...math.vector import exp_not_positive
from ...runners import DENSE_SIGNAL
from .design import CONTROL, SECOND_ORDER, WITH_VALUE, finish, unwhiten
from .rows import BLOCK, add_pull, predict


@helper
def binary_residuals(e, y, weight, lo, m, params, r):
    """The pull r_i of row lo + i, from e, its predictor less the one at the mode; returns the log density."""
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
    """Two classes, ``y[:, 0]`` in {0, 1}, sparse rows."""
    return _binary(True, theta, X, y, weight, params, scale, signal, extra)
