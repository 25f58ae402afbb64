"""Linear predictors of a block of rows, and the sum of the rows times their pulls."""

from ..._jit import helper
from .design import ONES

_NARROW = 8  # columns up to which the loop over rows is the inner one
BLOCK = 64  # rows whose predictors are computed before their probabilities are


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


@helper
def predict_sparse(X, lo, m, params, delta, e):
    """The same for sparse rows."""
    last = delta[delta.shape[0] - 1] if params[ONES] != 0.0 else 0.0
    for i in range(m):
        total = last
        for at in range(int(X[lo + i, 0]), int(X[lo + i, 1]), 2):
            total += params[at] * delta[int(params[at + 1])]
        e[i] = total


@helper
def pull_sparse(r, X, lo, m, params, pull):
    """The same for sparse rows."""
    ones = params[ONES] != 0.0
    for i in range(m):
        for at in range(int(X[lo + i, 0]), int(X[lo + i, 1]), 2):
            pull[int(params[at + 1])] += r[i] * params[at]
        if ones:
            pull[pull.shape[0] - 1] += r[i]


@helper
def predict(is_sparse, X, lo, m, params, delta, e):
    """e_i = x_{lo + i} . delta for m rows, as they are stored."""
    if is_sparse:
        predict_sparse(X, lo, m, params, delta, e)
    else:
        predict_dense(X, lo, m, delta, e)


@helper
def add_pull(is_sparse, r, X, lo, m, params, pull):
    """pull += sum of r_i x_{lo + i} over m rows, as they are stored."""
    if is_sparse:
        pull_sparse(r, X, lo, m, params, pull)
    else:
        pull_dense(r, X, lo, m, pull)


@helper(fast_sums=True)
def predict_classes(X, lo, n, delta, e):
    """e_ki = x_{lo + i} . delta_k for n rows; four at once, so that delta is read once for them."""
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
    """pull_k += sum of r_ki x_{lo + i} over n rows; four at once, so that pull is read and written once for them."""
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
