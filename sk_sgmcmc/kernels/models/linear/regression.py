"""Gradients of Bayesian Poisson and linear regression, in the coordinates and with the ``params`` of `design`.

Poisson regression with a log link differs from `logistic` in the likelihood of a row given its linear predictor. ``y``
is (count, predictor at the mode, exponential of this predictor).

Linear regression has an additional last coordinate t = log(sd of the noise / its value at the expansion point of the
control variates). ``y`` is the residual of each row at this point. After T, ``params`` contains the noise's precision E
at this point, and E times the prior's contribution to the sum of squares. They are followed by the power and the odds
of the prior's term -power log(1 + odds e^{2t}). The quadratic matrix is always given. It contains all that is known
exactly: the prior and, with control variates, the second order of all rows, including the rows of earlier calls.
"""

import numpy as np

from ..._jit import helper, kernel
from ...math.arrays import set_to
from ...runners import DENSE_SIGNAL
from .design import BLOCK, CONTROL, HEAD, SECOND_ORDER, add_pull, finish, predict, predict_dense, pull_dense, unwhiten


@helper
def poisson_residuals(e, y, weight, lo, m, params, r):
    """Write r_i, the derivative in the predictor of row lo + i; e_i is its predictor minus its value at the mode.

    Returns the log density.
    """
    order = params[CONTROL]
    second = 1.0 if order == SECOND_ORDER else 0.0
    rest = 0.0
    for i in range(m):
        w, count, mean0 = weight[lo + i], y[lo + i, 0], y[lo + i, 2]
        mean = mean0 * np.exp(e[i])
        if order != 0.0:
            r[i] = w * (mean0 + second * mean0 * e[i] - mean)
            rest += w * (mean0 * (1.0 + e[i] + 0.5 * second * e[i] * e[i]) - mean)
        else:
            r[i] = w * (count - mean)
            rest += w * (count * (y[lo + i, 1] + e[i]) - mean)
    return rest


@helper
def _poisson(is_sparse, theta, X, y, weight, params, scale, signal, extra):
    D = theta.shape[0]
    delta, pull = np.empty(D), np.zeros(D)
    e, r = np.empty(BLOCK), np.empty(BLOCK)
    unwhiten(theta, params, D, 1, delta)
    rest = 0.0
    for lo in range(0, X.shape[0], BLOCK):
        m = min(BLOCK, X.shape[0] - lo)
        predict(is_sparse, X, lo, m, params, delta, e)
        rest += poisson_residuals(e, y, weight, lo, m, params, r)
        add_pull(is_sparse, r, X, lo, m, params, pull)
    return finish(theta, params, D, 1, scale, delta, pull, rest, signal, extra)


@kernel(DENSE_SIGNAL)
def poisson(theta, X, y, weight, params, scale, signal, extra):
    """Counts with a log link."""
    return _poisson(False, theta, X, y, weight, params, scale, signal, extra)


@kernel(DENSE_SIGNAL)
def sparse_poisson(theta, X, y, weight, params, scale, signal, extra):
    """Counts with a log link, for sparse rows."""
    return _poisson(True, theta, X, y, weight, params, scale, signal, extra)


@kernel(DENSE_SIGNAL)
def normal(theta, X, y, weight, params, scale, signal, extra):
    """A normal response with unknown standard deviation."""
    D = theta.shape[0]
    m = D - 1
    delta, pull, along = np.empty(D), np.zeros(D), np.zeros(m)
    e, r = np.empty(BLOCK), np.empty(BLOCK)
    unwhiten(theta, params, D, 1, delta)
    t = delta[m]
    shrink = np.exp(-2.0 * t)
    at = HEAD + D + 2 * D * D
    E, of_prior, power, odds = params[at], params[at + 1], params[at + 2], params[at + 3]
    control = params[CONTROL] != 0.0
    rest = 0.0
    for lo in range(0, X.shape[0], BLOCK):
        n = min(BLOCK, X.shape[0] - lo)
        predict_dense(X, lo, n, delta[:m], e)
        for i in range(n):
            w, r0 = weight[lo + i], y[lo + i, 0]
            now = r0 - e[i]
            r[i] = w * E * now * shrink
            slope = w * (E * now * now * shrink - 1.0)
            value = -w * (0.5 * E * now * now * shrink + t)
            if control:
                r[i] -= w * E * (r0 - e[i] - 2.0 * t * r0)
                slope -= w * (E * r0 * (r0 - 2.0 * e[i] - 2.0 * t * r0) - 1.0)
                square = now * now - 2.0 * t * r0 * (r0 - 2.0 * e[i]) + 2.0 * t * t * r0 * r0
                value += w * (0.5 * E * square + t)
            pull[m] += slope
            rest += value
        pull_dense(r, X, lo, n, along)
    set_to(pull[:m], along)
    # The quadratic matrix contains the prior up to the second order. The rest is added here.
    pull[m] += of_prior * (shrink - 1.0 + 2.0 * t) / scale
    rest -= 0.5 * of_prior * (shrink - 1.0 + 2.0 * t - 2.0 * t * t) / scale
    share, now = odds / (1.0 + odds), 1.0 / (1.0 + shrink / odds)
    second = 2.0 * share * (1.0 - share)
    pull[m] -= 2.0 * power * (now - share - second * t) / scale
    growth = np.log1p(odds * np.exp(2.0 * t)) - np.log1p(odds)
    rest -= power * (growth - 2.0 * share * t - second * t * t) / scale
    return finish(theta, params, D, 1, scale, delta, pull, rest, signal, extra)
