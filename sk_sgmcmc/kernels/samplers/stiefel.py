"""The Stiefel manifold of orthonormal rows: projection onto its tangent space, and geodesics of the embedded metric.

References
----------
Byrne and Girolami (2013), Geodesic Monte Carlo on embedded manifolds, Scandinavian Journal of Statistics 40,
section 4.3.
"""

import math

import numpy as np

from .._jit import NOT_FINITE, OK, helper
from ..math.arrays import set_to, times, times_transposed


@helper
def project_stiefel(X, V):
    """Rows orthonormal: V <- V - (X V' + V X') X / 2."""
    across = times_transposed(X, V)
    for i in range(X.shape[0]):
        for j in range(X.shape[0]):
            both = 0.5 * (across[i, j] + across[j, i])
            for k in range(X.shape[1]):
                V[i, k] -= both * X[j, k]


@helper
def _exponential(A):
    """Matrix exponential by scaling and squaring of a Taylor polynomial; A is overwritten."""
    n = A.shape[0]
    size = 0.0
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += abs(A[i, j])
        size = max(size, total)
    halvings = 0
    while size > 0.25 and halvings < 60:
        size *= 0.5
        halvings += 1
    result, term = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        result[i, i] = term[i, i] = 1.0
        for j in range(n):
            A[i, j] /= 2.0**halvings
    for k in range(1, 14):
        term = times(term, A)
        for i in range(n):
            for j in range(n):
                term[i, j] /= k
                result[i, j] += term[i, j]
    for _ in range(halvings):
        result = times(result, result)
    return result


@helper
def flow_stiefel(X, V, time):
    """[X V] exp(t [[A, -S], [I, A]]) diag(exp(-tA), exp(-tA)), A = X'V, S = V'V, for columns; here for rows."""
    p = X.shape[0]
    A, S = times_transposed(X, V), times_transposed(V, V)
    block, back = np.zeros((2 * p, 2 * p)), np.empty((p, p))
    for i in range(p):
        block[p + i, i] = time
        for j in range(p):
            block[i, j] = block[p + i, p + j] = time * A[i, j]
            block[i, p + j] = -time * S[i, j]
            back[i, j] = -time * A[i, j]
    both, back = _exponential(block), _exponential(back)
    to_x, to_v = times(both[:, :p], back).T, times(both[:, p:], back).T
    stacked = np.empty((2 * p, X.shape[1]))
    set_to(stacked[:p], X)
    set_to(stacked[p:], V)
    X_new = times(to_x, stacked)
    set_to(V, times(to_v, stacked))
    # Back onto the manifold by a step of Newton's iteration for the polar factor: (3 I - X X') X / 2. It squares the
    # rounding error, which after a flow through thousands of turns is too large.
    gram = times_transposed(X_new, X_new)
    for i in range(p):
        for j in range(p):
            exact = 1.0 if i == j else 0.0
            if not abs(gram[i, j] - exact) < 1e-7:
                return NOT_FINITE
            gram[i, j] = 1.5 * exact - 0.5 * gram[i, j]
    set_to(X, times(gram, X_new))
    project_stiefel(X, V)
    for i in range(p):
        for j in range(X.shape[1]):
            if not (math.isfinite(X[i, j]) and math.isfinite(V[i, j])):
                return NOT_FINITE
    return OK
