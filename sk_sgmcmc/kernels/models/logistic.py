"""Gradients of Bayesian logistic regression, dense or sparse rows, with or without control variates.

With mode b, whitener T and coordinates theta, the coefficients are b + delta, delta = T theta. ``params`` is a head of
`HEAD` numbers (D, the order of the control variates or 0, whether T is diagonal, whether to compute the log density,
whether sparse rows have an intercept, the position of the kinks or 0, whether A is given although control variates are
of second order), then

* for a full T, T T^T the inverse Hessian at the mode: an offset (D), a quadratic matrix A (D, D), T (D, D);
* for a diagonal one, the root of the inverse of the Hessian's diagonal: an offset (D), the prior's precision (D),
  T (D), and if there is an intercept the point c (columns x classes) to which it refers, a whitener R (classes
  x classes) for it, and the reference r (columns) at which it has its prior: the intercepts of the columns as
  given are b_0 + R theta_0 - c . delta, and the prior has those plus r . delta;

then, if the prior has kinks, four numbers for each entry of delta (the mode b, the inverse scale of its Laplace
distribution or 0, the square of the width over which the kink is rounded, and the precision of the Gaussian that
stands for that prior everywhere else), and then the entries of sparse rows.

With control variates of second order the log posterior is offset . theta - |theta|^2 / 2, or with A if that is given,
plus the part of the likelihood beyond its second order at the mode, and only that part is estimated from the minibatch.
Otherwise the prior's quadratic replaces |theta|^2 / 2, and the part of the likelihood beyond its first order is
estimated, or all of it.

``y[:, 0]`` is the class and ``y[:, 1:]`` the linear predictors of each row at the mode, followed by the probabilities
there, that of the second of two classes, and by the logarithm of the sum of e^eta.

Dense rows are X itself, and T theta is stored class by class. A sparse row is a pair (first, last) of positions in
``params``, which bound its (value, column) pairs; it has one more column, of ones, if ``params[4]`` is not 0, and T
theta is stored column by column, so that the classes of a column are neighbours.
"""

import numpy as np

from .._jit import NOT_FINITE, OK, helper, kernel
from ..math.vector import exp_not_positive
from ..runners import DENSE_SIGNAL

HEAD = 7
CONTROL, DIAGONAL, WITH_VALUE, ONES, KINKS, GIVEN = 1, 2, 3, 4, 5, 6
SECOND_ORDER = 2.0
_NARROW = 8  # columns up to which the loop over rows is the inner one
_BLOCK = 64  # rows whose predictors are computed before their probabilities are


@helper(fast_sums=True)
def dot(x, b, begin, n):
    """Sum of x_j b_{begin + j}."""
    total = 0.0
    for j in range(n):
        total += x[j] * b[begin + j]
    return total


@helper(fast_sums=True)
def unwhiten(theta, params, D, K, delta):
    """delta = T theta; K predictors, which matters for a diagonal."""
    if params[DIAGONAL] != 0.0:
        lo, point = HEAD + 2 * D, HEAD + 3 * D
        for i in range(D):
            delta[i] = params[lo + i] * theta[i, 0]
        if params[ONES] != 0.0:
            root = point + D - K
            for k in range(K):
                delta[D - K + k] = 0.0
                for i in range(K):
                    delta[D - K + k] += params[root + k * K + i] * theta[D - K + i, 0]
            for j in range(0, D - K, K):
                for k in range(K):
                    delta[D - K + k] -= params[point + j + k] * delta[j + k]
        return
    lo = HEAD + D + D * D
    for i in range(D):
        total = 0.0
        for j in range(D):
            total += params[lo + i * D + j] * theta[j, 0]
        delta[i] = total


@helper(fast_sums=True)
def assemble_diagonal(theta, params, D, K, scale, delta, pull, signal):
    """signal = offset + T^T (scale pull - P delta), P the prior's precision; overwrites ``pull``.

    Returns offset . theta - delta P delta / 2, with the prior's intercept at its reference.
    """
    value = 0.0
    prior, lo, point = HEAD + D, HEAD + 2 * D, HEAD + 3 * D
    n_coef = D - K if params[ONES] != 0.0 else D
    for i in range(n_coef):
        a = params[prior + i] * delta[i]
        value += params[HEAD + i] * theta[i, 0] - 0.5 * a * delta[i]
        pull[i] = scale * pull[i] - a
    if params[ONES] != 0.0:
        reference = point + n_coef + K * K
        for k in range(K):
            last = n_coef + k
            there = delta[last]
            for j in range(n_coef // K):
                there += params[reference + j] * delta[j * K + k]
            a = params[prior + last] * there
            value += params[HEAD + last] * theta[last, 0] - 0.5 * a * there
            pull[last] = scale * pull[last] - a
            for j in range(n_coef // K):
                pull[j * K + k] -= params[reference + j] * a + params[point + j * K + k] * pull[last]
    for i in range(D):
        signal[i, 0] = params[HEAD + i] + params[lo + i] * pull[i]
    if params[ONES] != 0.0:
        root = point + D - K
        for k in range(K):
            signal[D - K + k, 0] = params[HEAD + D - K + k]
            for i in range(K):
                signal[D - K + k, 0] += params[root + i * K + k] * pull[D - K + i]
    return value


@helper(fast_sums=True)
def assemble(theta, params, D, scale, pull, signal):
    """signal = offset - A theta + scale T^T pull; returns offset . theta - theta . A theta / 2."""
    value = 0.0
    whole = params[CONTROL] == SECOND_ORDER and params[GIVEN] == 0.0
    for i in range(D):
        if whole:
            a = theta[i, 0]
        else:
            a = 0.0
            for j in range(D):
                a += params[HEAD + D + i * D + j] * theta[j, 0]
        signal[i, 0] = params[HEAD + i] - a
        value += (params[HEAD + i] - 0.5 * a) * theta[i, 0]
    lo = HEAD + D + D * D
    for j in range(D):
        c = scale * pull[j]
        for i in range(D):
            signal[i, 0] += c * params[lo + j * D + i]
    return value


@helper
def add_kinks(params, D, scale, delta, pull):
    """Replace the Gaussian that stands for a Laplace prior by that prior, in ``pull``; returns the change in value."""
    lo, value = int(params[KINKS]), 0.0
    if lo == 0:
        return value
    for j in range(D):
        at = lo + 4 * j
        inverse, precision = params[at + 1], params[at + 3]
        u = params[at] + delta[j]
        root = np.sqrt(u * u + params[at + 2])
        value += 0.5 * precision * u * u - inverse * root
        if inverse > 0.0:
            pull[j] += (precision * u - inverse * u / root) / scale
    return value


@helper
def finish(theta, params, D, K, scale, delta, pull, rest, signal, extra):
    """Gradient and log density from the sums over the minibatch; the status."""
    rounded = add_kinks(params, D, scale, delta, pull)
    if params[DIAGONAL] != 0.0:
        value = assemble_diagonal(theta, params, D, K, scale, delta, pull, signal)
    else:
        value = assemble(theta, params, D, scale, pull, signal)
    # Without the log density this still shows whether everything is finite.
    extra[0] = value + scale * rest + rounded
    check = extra[0]
    for i in range(D):
        check += signal[i, 0]
    return OK if np.isfinite(check) else NOT_FINITE


# ---------------------------------------------------------------------------------------------------- two classes


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


@helper(fast_sums=True)
def predict_dense(X, lo, m, delta, e):
    """e_i = x_{lo + i} . delta for m rows."""
    D = delta.shape[0]
    if D > _NARROW:
        for i in range(m):
            e[i] = dot(X[lo + i], delta, 0, D)
        return
    # Rows too short for vector instructions: several rows at once.
    for i in range(m):
        e[i] = X[lo + i, 0] * delta[0]
    for j in range(1, D):
        for i in range(m):
            e[i] += X[lo + i, j] * delta[j]


@helper(fast_sums=True)
def pull_dense(r, X, lo, m, pull):
    """pull += sum of r_i x_{lo + i} over m rows."""
    if pull.shape[0] <= _NARROW:
        for j in range(pull.shape[0]):
            total = 0.0
            for i in range(m):
                total += r[i] * X[lo + i, j]
            pull[j] += total
        return
    for i in range(m):
        c = r[i]
        x = X[lo + i]
        for j in range(pull.shape[0]):
            pull[j] += c * x[j]


@kernel(DENSE_SIGNAL)
def binary(theta, X, y, weight, params, scale, signal, extra):
    """Two classes, ``y[:, 0]`` in {0, 1}."""
    D = theta.shape[0]
    delta, pull = np.empty(D), np.zeros(D)
    e, r = np.empty(_BLOCK), np.empty(_BLOCK)
    unwhiten(theta, params, D, 1, delta)
    rest = 0.0
    for lo in range(0, X.shape[0], _BLOCK):
        m = min(_BLOCK, X.shape[0] - lo)
        predict_dense(X, lo, m, delta, e)
        rest += binary_residuals(e, y, weight, lo, m, params, r)
        pull_dense(r, X, lo, m, pull)
    return finish(theta, params, D, 1, scale, delta, pull, rest, signal, extra)


@kernel(DENSE_SIGNAL)
def sparse_binary(theta, X, y, weight, params, scale, signal, extra):
    """Two classes, sparse rows."""
    D = theta.shape[0]
    delta, pull = np.empty(D), np.zeros(D)
    e, r = np.empty(_BLOCK), np.empty(_BLOCK)
    unwhiten(theta, params, D, 1, delta)
    ones = params[ONES] != 0.0
    rest = 0.0
    for lo in range(0, X.shape[0], _BLOCK):
        m = min(_BLOCK, X.shape[0] - lo)
        for i in range(m):
            total = delta[D - 1] if ones else 0.0
            for at in range(int(X[lo + i, 0]), int(X[lo + i, 1]), 2):
                total += params[at] * delta[int(params[at + 1])]
            e[i] = total
        rest += binary_residuals(e, y, weight, lo, m, params, r)
        for i in range(m):
            for at in range(int(X[lo + i, 0]), int(X[lo + i, 1]), 2):
                pull[int(params[at + 1])] += r[i] * params[at]
            if ones:
                pull[D - 1] += r[i]
    return finish(theta, params, D, 1, scale, delta, pull, rest, signal, extra)


# ------------------------------------------------------------------------------------------------ several classes


@helper
def softmax(eta, p, with_value):
    """p = softmax(eta); returns the logarithm of the sum of e^eta, or the largest eta."""
    K = p.shape[0]
    top = -np.inf
    for k in range(K):
        top = max(top, eta[k])
    total = 0.0
    for k in range(K):
        p[k] = exp_not_positive(eta[k] - top)
    for k in range(K):
        total += p[k]
    for k in range(K):
        p[k] /= total
    return top + np.log(total) if with_value else top


@helper
def multinomial_residuals(e, y, w, params, p0, p):
    """Write the pull of each class to p, from e, the predictors less those at the mode; returns the log density.

    ``y`` is the row's (class, predictors, probabilities and the predictors' log total at the mode); ``p0`` and ``p``
    are scratch.
    """
    K = e.shape[0]
    label = int(y[0])
    for k in range(K):
        p0[k] = y[1 + k] + e[k]
    log_total = softmax(p0, p, params[WITH_VALUE] != 0.0)
    if params[CONTROL] == 0.0:
        for k in range(K):
            p[k] = w * ((1.0 if k == label else 0.0) - p[k])
        return w * (y[1 + label] + e[label] - log_total)
    mean = 0.0
    for k in range(K):
        p0[k] = y[1 + K + k]
        mean += p0[k] * e[k]
    rest = w * (y[1 + 2 * K] - log_total + mean)
    second = 1.0 if params[CONTROL] == SECOND_ORDER else 0.0
    for k in range(K):
        curve = second * p0[k] * (e[k] - mean)
        rest += 0.5 * w * curve * e[k]
        p[k] = w * (p0[k] - p[k] + curve)
    return rest


@kernel(DENSE_SIGNAL)
def multinomial(theta, X, y, weight, params, scale, signal, extra):
    """Several classes, one linear predictor each."""
    D = theta.shape[0]
    m = X.shape[1]
    K = D // m
    delta, pull = np.empty(D), np.zeros(D)
    e, p, p0 = np.empty(K), np.empty(K), np.empty(K)
    unwhiten(theta, params, D, K, delta)
    rest = 0.0
    for n in range(X.shape[0]):
        for k in range(K):
            e[k] = dot(X[n], delta, k * m, m)
        rest += multinomial_residuals(e, y[n], weight[n], params, p0, p)
        for k in range(K):
            for j in range(m):
                pull[k * m + j] += p[k] * X[n, j]
    return finish(theta, params, D, K, scale, delta, pull, rest, signal, extra)


@kernel(DENSE_SIGNAL)
def sparse_multinomial(theta, X, y, weight, params, scale, signal, extra):
    """Several classes, sparse rows."""
    D = theta.shape[0]
    K = (y.shape[1] - 2) // 2
    delta, pull = np.empty(D), np.zeros(D)
    e, p, p0 = np.empty(K), np.empty(K), np.empty(K)
    unwhiten(theta, params, D, K, delta)
    ones = params[ONES] != 0.0
    rest = 0.0
    for n in range(X.shape[0]):
        first, last = int(X[n, 0]), int(X[n, 1])
        for k in range(K):
            e[k] = delta[D - K + k] if ones else 0.0
        for at in range(first, last, 2):
            value, begin = params[at], int(params[at + 1]) * K
            for k in range(K):
                e[k] += value * delta[begin + k]
        rest += multinomial_residuals(e, y[n], weight[n], params, p0, p)
        for at in range(first, last, 2):
            value, begin = params[at], int(params[at + 1]) * K
            for k in range(K):
                pull[begin + k] += value * p[k]
        if ones:
            for k in range(K):
                pull[D - K + k] += p[k]
    return finish(theta, params, D, K, scale, delta, pull, rest, signal, extra)
