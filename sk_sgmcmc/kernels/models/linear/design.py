"""Coordinates of linear models about their mode, and the gradient as a sum over the rows of a minibatch.

With mode b, whitener T and coordinates theta, the coefficients are b + delta, delta = T theta. ``params`` begins with a
head of `HEAD` numbers:

* the number of coordinates D;
* the order of the control variates, or 0;
* the form of T: full, diagonal or upper triangular;
* whether to compute the log density;
* whether sparse rows have an intercept;
* the position of the kinks, or 0;
* whether A is given although control variates are of second order;
* the position of the numbers of a further parameter of the model, or 0;
* the position of the leading directions, or 0.

For a full or triangular T, the head is followed by an offset (D), a quadratic matrix A (D, D), and T (D, D). T T^T is
the inverse Hessian at the mode.

A diagonal T is the root of the inverse of the Hessian's diagonal in reflected classes (see `turn`). The head is then
followed by an offset (D), the prior's precision (D), and T (D). If there is an intercept, three arrays follow:

* the point c (columns x reflected classes) to which the intercept refers;
* its whitener R (reflected classes x reflected classes);
* the reference r (columns) at which it has its prior.

The reflected intercepts of the columns as given are b_0 + R theta_0 - c . T theta. The prior applies to these plus
r . delta.

Leading directions, which a diagonal T may have, are given by their number n, an orthonormal matrix U (columns x n), and
their changes (n x reflected classes). The coordinates theta_k of reflected class k are first mapped to
theta_k + U diag(change_k) U^T theta_k, and then multiplied by T.

If the prior has kinks, four numbers for each entry of delta follow:

* the mode b;
* the inverse scale of the Laplace distribution, or 0;
* the square of the width over which the kink is rounded;
* the precision of the Gaussian that replaces this prior everywhere else.

If the model has a further parameter, its numbers follow. The last part of ``params`` contains the entries of sparse
rows.

With control variates of second order, the log posterior is offset . theta - |theta|^2 / 2 plus a remainder, the part of
the likelihood beyond its second order at the mode. If A is given, theta . A theta / 2 replaces |theta|^2 / 2. With
control variates of first order or none, the quadratic form is the prior's. The remainder is then the part of the
likelihood beyond its first order, or all of it. Only the remainder is estimated from the minibatch.

Dense rows are X itself, and T theta is stored class by class. A sparse row is a pair (first, last) of positions in
``params``, which delimit its (value, column) pairs. It has an additional column of ones if ``params[4]`` is not 0. For
sparse rows, T theta is stored column by column, so that the classes of a column are adjacent.
"""

import numpy as np

from ..._jit import NOT_FINITE, OK, helper

HEAD = 9
CONTROL, FORM, WITH_VALUE, ONES, KINKS, GIVEN, FURTHER, LEADING = 1, 2, 3, 4, 5, 6, 7, 8
FULL, DIAGONAL, UPPER = 0.0, 1.0, 2.0  # forms of T
FIRST_ORDER, SECOND_ORDER = 1.0, 2.0  # the part of the likelihood that control variates remove


@helper(fast_sums=True)
def turn(values, D, K):
    """Reflect the K classes of each column so that the first coordinate is their sum / sqrt(K); its own inverse.

    Adding the same number to all classes does not change the probabilities, so only the prior bounds this direction. It
    is about sqrt(rows) times as wide as the others. The Hessian's diagonal shows this width only in this coordinate.
    """
    if K == 1:
        return
    share = 1.0 / np.sqrt(K)
    for at in range(0, D, K):
        total = 0.0
        for k in range(K):
            total += values[at + k]
        first = share * total
        away = share * (values[at] - first) / (1.0 - share)
        values[at] = first
        for k in range(1, K):
            values[at + k] += away


@helper(fast_sums=True)
def shrink_leading(values, params, D, K):
    """values_k += U diag(change_k) U^T values_k for the coefficients of each reflected class k."""
    at = int(params[LEADING])
    if at == 0:
        return
    n = int(params[at])
    d = (D - K if params[ONES] != 0.0 else D) // K
    change = params[at + 1 + d * n : at + 1 + d * n + n * K]
    if K == 1:
        along = np.zeros(n)
        for j in range(d):
            row, value = params[at + 1 + j * n : at + 1 + (j + 1) * n], values[j]
            for i in range(n):
                along[i] += row[i] * value
        for i in range(n):
            along[i] *= change[i]
        for j in range(d):
            row, total = params[at + 1 + j * n : at + 1 + (j + 1) * n], 0.0
            for i in range(n):
                total += row[i] * along[i]
            values[j] += total
        return
    both = np.zeros((n, K))
    for j in range(d):
        own = values[j * K : (j + 1) * K]
        for i in range(n):
            u, sums = params[at + 1 + j * n + i], both[i]
            for k in range(K):
                sums[k] += u * own[k]
    for i in range(n):
        for k in range(K):
            both[i, k] *= change[i * K + k]
    for j in range(d):
        own = values[j * K : (j + 1) * K]
        for i in range(n):
            u, sums = params[at + 1 + j * n + i], both[i]
            for k in range(K):
                own[k] += u * sums[k]


@helper(fast_sums=True)
def unwhiten(theta, params, D, K, delta):
    """delta = T theta; the number K of predictors is used if T is diagonal."""
    if params[FORM] == DIAGONAL:
        lo, point = HEAD + 2 * D, HEAD + 3 * D
        for i in range(D):
            delta[i] = theta[i, 0]
        shrink_leading(delta, params, D, K)
        for i in range(D):
            delta[i] *= params[lo + i]
        if params[ONES] != 0.0:
            root = point + D - K
            for k in range(K):
                delta[D - K + k] = 0.0
                for i in range(K):
                    delta[D - K + k] += params[root + k * K + i] * theta[D - K + i, 0]
            for j in range(0, D - K, K):
                for k in range(K):
                    delta[D - K + k] -= params[point + j + k] * delta[j + k]
        turn(delta, D, K)
        return
    lo = HEAD + D + D * D
    for i in range(D):
        first = i if params[FORM] == UPPER else 0
        row, own = params[lo + i * D + first : lo + (i + 1) * D], theta[first:, 0]
        total = 0.0
        for j in range(D - first):
            total += row[j] * own[j]
        delta[i] = total


@helper(fast_sums=True)
def assemble_diagonal(theta, params, D, K, scale, delta, pull, signal):
    """signal = offset + T^T (scale pull - P delta) in reflected classes, P the prior's precision; overwrites ``pull``.

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
                pull[j * K + k] -= params[reference + j] * a
    turn(pull, D, K)
    if params[ONES] != 0.0:
        for j in range(0, n_coef, K):
            for k in range(K):
                pull[j + k] -= params[point + j + k] * pull[n_coef + k]
    if params[ONES] != 0.0:
        root = point + D - K
        for k in range(K):
            signal[D - K + k, 0] = params[HEAD + D - K + k]
            for i in range(K):
                signal[D - K + k, 0] += params[root + i * K + k] * pull[D - K + i]
    for i in range(n_coef):
        pull[i] *= params[lo + i]
    shrink_leading(pull, params, D, K)
    for i in range(n_coef):
        signal[i, 0] = params[HEAD + i] + pull[i]
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
        c, first = scale * pull[j], j if params[FORM] == UPPER else 0
        row, own = params[lo + j * D + first : lo + (j + 1) * D], signal[first:, 0]
        for i in range(D - first):
            own[i] += c * row[i]
    return value


@helper
def add_kinks(params, D, scale, delta, pull):
    """Replace the Gaussian approximation of a Laplace prior by this prior in ``pull``; returns the change in value."""
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
    """Write the gradient and the log density from the sums over the minibatch; returns the status."""
    rounded = add_kinks(params, D, scale, delta, pull)
    if params[FORM] == DIAGONAL:
        value = assemble_diagonal(theta, params, D, K, scale, delta, pull, signal)
    else:
        value = assemble(theta, params, D, scale, pull, signal)
    # Even if the log density is not computed, this shows whether everything is finite.
    extra[0] = value + scale * rest + rounded
    check = extra[0]
    for i in range(D):
        check += signal[i, 0]
    return OK if np.isfinite(check) else NOT_FINITE


_NARROW = 8  # number of columns up to which the inner loop is over rows
BLOCK = 64  # rows whose predictors are computed before their probabilities


@helper(fast_sums=True)
def dot(x, b, begin, n):
    """Sum of x_j b_{begin + j}."""
    total = 0.0
    for j in range(n):
        total += x[j] * b[begin + j]
    return total


@helper(fast_sums=True)
def predict_dense(X, lo, m, delta, e):
    """e_i = x_{lo + i} . delta for m rows."""
    D = delta.shape[0]
    if D > _NARROW:
        for i in range(m):
            e[i] = dot(X[lo + i], delta, 0, D)
        return
    # These rows are too short for vector instructions, so several rows are processed at once.
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


@helper(fast_sums=True)
def predict_sparse(X, lo, m, params, delta, e):
    """`predict_dense` for sparse rows."""
    last = delta[delta.shape[0] - 1] if params[ONES] != 0.0 else 0.0
    for i in range(m):
        total = last
        pairs = params[int(X[lo + i, 0]) : int(X[lo + i, 1])]
        for at in range(pairs.shape[0] // 2):
            total += pairs[2 * at] * delta[int(pairs[2 * at + 1])]
        e[i] = total


@helper
def pull_sparse(r, X, lo, m, params, pull):
    """`pull_dense` for sparse rows."""
    ones = params[ONES] != 0.0
    for i in range(m):
        c = r[i]
        pairs = params[int(X[lo + i, 0]) : int(X[lo + i, 1])]
        for at in range(pairs.shape[0] // 2):
            pull[int(pairs[2 * at + 1])] += c * pairs[2 * at]
        if ones:
            pull[pull.shape[0] - 1] += c


@helper
def predict(is_sparse, X, lo, m, params, delta, e):
    """e_i = x_{lo + i} . delta for m rows, dense or sparse."""
    if is_sparse:
        predict_sparse(X, lo, m, params, delta, e)
    else:
        predict_dense(X, lo, m, delta, e)


@helper
def add_pull(is_sparse, r, X, lo, m, params, pull):
    """pull += sum of r_i x_{lo + i} over m rows, dense or sparse."""
    if is_sparse:
        pull_sparse(r, X, lo, m, params, pull)
    else:
        pull_dense(r, X, lo, m, pull)


@helper(fast_sums=True)
def predict_classes(X, lo, n, delta, e):
    """e_ki = x_{lo + i} . delta_k for n rows; four rows at once, so that delta is read once for all four."""
    m, whole = X.shape[1], n - n % 4
    for i in range(0, whole, 4):
        x0, x1, x2, x3 = X[lo + i], X[lo + i + 1], X[lo + i + 2], X[lo + i + 3]
        for k in range(e.shape[0]):
            d = delta[k * m : (k + 1) * m]
            e0, e1, e2, e3 = 0.0, 0.0, 0.0, 0.0
            for j in range(m):
                e0 += x0[j] * d[j]
                e1 += x1[j] * d[j]
                e2 += x2[j] * d[j]
                e3 += x3[j] * d[j]
            e[k, i], e[k, i + 1], e[k, i + 2], e[k, i + 3] = e0, e1, e2, e3
    for i in range(whole, n):
        for k in range(e.shape[0]):
            e[k, i] = dot(X[lo + i], delta, k * m, m)


@helper(fast_sums=True)
def pull_classes(r, X, lo, n, pull):
    """pull_k += sum of r_ki x_{lo + i} over n rows; four rows at once, so that pull is accessed once for all four."""
    m, whole = X.shape[1], n - n % 4
    for i in range(0, whole, 4):
        x0, x1, x2, x3 = X[lo + i], X[lo + i + 1], X[lo + i + 2], X[lo + i + 3]
        for k in range(r.shape[0]):
            own = pull[k * m : (k + 1) * m]
            r0, r1, r2, r3 = r[k, i], r[k, i + 1], r[k, i + 2], r[k, i + 3]
            for j in range(m):
                own[j] += r0 * x0[j] + r1 * x1[j] + r2 * x2[j] + r3 * x3[j]
    for i in range(whole, n):
        for k in range(r.shape[0]):
            for j in range(m):
                pull[k * m + j] += r[k, i] * X[lo + i, j]


@helper(fast_sums=True)
def predict_sparse_classes(X, lo, n, params, delta, e):
    """`predict_classes` for sparse rows, with ``delta`` stored column by column.

    Slices let the inner loop use vector instructions. Four entries at once, so that the sums are accessed once for all.
    """
    K = e.shape[0]
    own = np.empty(K)
    last = delta[delta.shape[0] - K :]
    for i in range(n):
        pairs = params[int(X[lo + i, 0]) : int(X[lo + i, 1])]
        whole = pairs.shape[0] - pairs.shape[0] % 8
        for k in range(K):
            own[k] = last[k] if params[ONES] != 0.0 else 0.0
        for at in range(0, whole, 8):
            x0, x1, x2, x3 = pairs[at], pairs[at + 2], pairs[at + 4], pairs[at + 6]
            b0, b1, b2, b3 = int(pairs[at + 1]), int(pairs[at + 3]), int(pairs[at + 5]), int(pairs[at + 7])
            d0, d1 = delta[b0 * K : (b0 + 1) * K], delta[b1 * K : (b1 + 1) * K]
            d2, d3 = delta[b2 * K : (b2 + 1) * K], delta[b3 * K : (b3 + 1) * K]
            for k in range(K):
                own[k] += x0 * d0[k] + x1 * d1[k] + x2 * d2[k] + x3 * d3[k]
        for at in range(whole, pairs.shape[0], 2):
            x, b = pairs[at], int(pairs[at + 1])
            d = delta[b * K : (b + 1) * K]
            for k in range(K):
                own[k] += x * d[k]
        for k in range(K):
            e[k, i] = own[k]


@helper(fast_sums=True)
def pull_sparse_classes(r, X, lo, n, params, pull):
    """`pull_classes` for sparse rows, with ``pull`` stored column by column."""
    K = r.shape[0]
    own = np.empty(K)
    last = pull[pull.shape[0] - K :]
    for i in range(n):
        for k in range(K):
            own[k] = r[k, i]
        pairs = params[int(X[lo + i, 0]) : int(X[lo + i, 1])]
        for at in range(0, pairs.shape[0], 2):
            x, b = pairs[at], int(pairs[at + 1])
            there = pull[b * K : (b + 1) * K]
            for k in range(K):
                there[k] += x * own[k]
        if params[ONES] != 0.0:
            for k in range(K):
                last[k] += own[k]
