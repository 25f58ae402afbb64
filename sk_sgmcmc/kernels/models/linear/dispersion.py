"""Gradients of Bayesian negative binomial regression, in the coordinates and with the ``params`` of `design`.

The state consists of the m coordinates of the coefficients, and of the logarithm of the dispersion: it is v = v0 +
spread * theta_m. With r = e^-v and z = v + eta, where eta is a row's linear predictor plus its log exposure, the log
likelihood of a count y is

    S(y, v) + y eta - (y + r) log(1 + e^z),  S(y, v) = log Gamma(y + r) - log Gamma(r) + y v.

The sum of S over rows is a function of v alone. It is read from a table, so minibatches add no noise to it. ``y`` of a
row is (count, log exposure, eta at the mode, e^z / (1 + e^z) there, log(1 + e^z) there).

Control variates expand the rest in eta and in the relative change of the dispersion, t = e^(v - v0) - 1. Unlike an
expansion in v, it remains accurate for dispersions near 0, where v spreads widely. Beyond t = e^`FARTHEST` - 1, t stays
constant in the expansion; any function may serve as a control variate, since its exact sum is added.

From ``params[FURTHER]`` on, ``params`` contains v0, the spread, the logarithm of the square of the prior's scale, the
first and second derivatives in t of the rows at the mode, and the table's first v, its step and its number of points.
They are followed by the mixed derivatives of the rows in t and in each of the m coordinates, and by the table: values,
first and second derivatives. Derivatives are 0 where control variates do not use them.
"""

import numpy as np

from ..._jit import NOT_FINITE, helper, kernel
from ...runners import DENSE_SIGNAL
from .design import BLOCK, CONTROL, FURTHER, SECOND_ORDER, add_pull, finish, predict, unwhiten

FIXED = 8  # numbers before the mixed derivatives
FARTHEST = 3.0


@helper
def relative_change(s):
    """t of the control variates, and its derivative, where v is s larger than at the mode."""
    return np.expm1(min(s, FARTHEST)), np.exp(s) if s < FARTHEST else 0.0


@helper
def count_residuals(e, s, y, weight, lo, m, params, r, total):
    """Write r_i, the derivative in the predictor of row lo + i; e_i and s are predictor and v minus those at the mode.

    Adds the derivative in v to ``total[0]``, and returns the log density.
    """
    order, v0 = params[CONTROL], params[int(params[FURTHER])]
    v = v0 + s
    size, size0 = np.exp(-v), np.exp(-v0)
    slope, rest = 0.0, 0.0
    t, rate = relative_change(s)
    for i in range(m):
        w, count, eta0 = weight[lo + i], y[lo + i, 0], y[lo + i, 2]
        z = v + eta0 + e[i]
        small = np.exp(-abs(z))
        p = (1.0 if z > 0.0 else small) / (1.0 + small)
        log_total = max(z, 0.0) + np.log1p(small)
        of_eta = count - (count + size) * p
        of_v = size * log_total - (count + size) * p
        value = count * (eta0 + e[i]) - (count + size) * log_total
        if order != 0.0:
            p0, log_total0 = y[lo + i, 3], y[lo + i, 4]
            first, first_v = count - (count + size0) * p0, size0 * log_total0 - (count + size0) * p0
            of_eta -= first
            of_v -= rate * first_v
            value -= count * eta0 - (count + size0) * log_total0 + first * e[i] + first_v * t
            if order == SECOND_ORDER:
                second = -(count + size0) * p0 * (1.0 - p0)
                mixed = size0 * p0 + second
                second_t = mixed + size0 * (p0 - log_total0) - first_v
                of_eta -= second * e[i] + mixed * t
                of_v -= rate * (mixed * e[i] + second_t * t)
                value -= 0.5 * second * e[i] * e[i] + mixed * e[i] * t + 0.5 * second_t * t * t
        r[i] = w * of_eta
        slope += w * of_v
        rest += w * value
    total[0] += slope
    return rest


@helper
def sum_of_counts(v, params, at, table, total):
    """The sum of S over rows at v; adds its derivative to ``total[0]``.

    Between the points of the table, a polynomial of degree 5 has its values and two derivatives. Before the first
    point, the sum is proportional to e^v, and after the last it is linear.
    """
    first, step, n = params[at + 5], params[at + 6], int(params[at + 7])
    place = (v - first) / step
    if place <= 0.0:
        value = params[table] * np.exp(v - first)
        total[0] += value
        return value
    if place >= n - 1:
        slope = params[table + 2 * n - 1]
        total[0] += slope
        return params[table + n - 1] + slope * (v - first - (n - 1) * step)
    k = int(place)
    t = place - k
    a, b, c = params[table + k], step * params[table + n + k], 0.5 * step * step * params[table + 2 * n + k]
    k += 1
    over = params[table + k] - a - b - c
    over1 = step * params[table + n + k] - b - 2.0 * c
    over2 = step * step * params[table + 2 * n + k] - 2.0 * c
    third = 10.0 * over - 4.0 * over1 + 0.5 * over2
    fourth = -15.0 * over + 7.0 * over1 - over2
    fifth = 6.0 * over - 3.0 * over1 + 0.5 * over2
    total[0] += (b + t * (2.0 * c + t * (3.0 * third + t * (4.0 * fourth + t * 5.0 * fifth)))) / step
    return a + t * (b + t * (c + t * (third + t * (fourth + t * fifth))))


@helper
def _negative_binomial(is_sparse, theta, X, y, weight, params, scale, signal, extra):
    m = theta.shape[0] - 1
    at = int(params[FURTHER])
    delta, pull = np.empty(m), np.zeros(m)
    e, r, of_rows, of_rest = np.empty(BLOCK), np.empty(BLOCK), np.zeros(1), np.zeros(1)
    unwhiten(theta, params, m, 1, delta)
    spread = params[at + 1]
    s = spread * theta[m, 0]
    v = params[at] + s
    rest = 0.0
    for lo in range(0, X.shape[0], BLOCK):
        n = min(BLOCK, X.shape[0] - lo)
        predict(is_sparse, X, lo, n, params, delta, e)
        rest += count_residuals(e, s, y, weight, lo, n, params, r, of_rows)
        add_pull(is_sparse, r, X, lo, n, params, pull)
    status = finish(theta, params, m, 1, scale, delta, pull, rest, signal, extra)
    value = sum_of_counts(v, params, at, at + FIXED + m, of_rest)
    # The square root of the dispersion has a half-Cauchy prior.
    odds = v - params[at + 2]
    small = np.exp(-abs(odds))
    value += 0.5 * v - max(odds, 0.0) - np.log1p(small)
    of_rest[0] += 0.5 - (1.0 if odds > 0.0 else small) / (1.0 + small)
    slope, curvature = params[at + 3], params[at + 4]
    t, rate = relative_change(s)
    along = slope + curvature * t
    value += t * (slope + 0.5 * curvature * t)
    for j in range(m):
        mixed = params[at + FIXED + j]
        signal[j, 0] += mixed * t
        along += mixed * theta[j, 0]
        value += mixed * theta[j, 0] * t
    last = spread * (rate * along + scale * of_rows[0] + of_rest[0])
    signal[m, 0] = last
    extra[0] += value
    return status if np.isfinite(extra[0] + last) else NOT_FINITE


@kernel(DENSE_SIGNAL)
def negative_binomial(theta, X, y, weight, params, scale, signal, extra):
    """Overdispersed counts with a log link."""
    return _negative_binomial(False, theta, X, y, weight, params, scale, signal, extra)


@kernel(DENSE_SIGNAL)
def sparse_negative_binomial(theta, X, y, weight, params, scale, signal, extra):
    """Overdispersed counts with a log link, for sparse rows."""
    return _negative_binomial(True, theta, X, y, weight, params, scale, signal, extra)
