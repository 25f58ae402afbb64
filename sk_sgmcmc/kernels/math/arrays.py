"""Copies and products of small matrices by loops, which compile much faster than NumPy expressions.

If an array is assigned to a slice, numba compiles its message about shapes, which takes seconds in each process.
`numpy.dot` checks layouts at run time and calls BLAS, which is faster only for matrices with hundreds of rows.
"""

import numpy as np

from .._jit import helper


@helper
def set_to(out, values):
    """out[:] = values, of the same shape, in one to three dimensions; the two must not overlap in memory."""
    if out.ndim == 1:
        for i in range(out.shape[0]):
            out[i] = values[i]
    elif out.ndim == 2:
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = values[i, j]
    else:
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                for k in range(out.shape[2]):
                    out[i, j, k] = values[i, j, k]


@helper(fast_sums=True)
def times(A, B):
    """A B."""
    out = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            a = A[i, k]
            for j in range(B.shape[1]):
                out[i, j] += a * B[k, j]
    return out


@helper(fast_sums=True)
def times_transposed(A, B):
    """A B'."""
    out = np.empty((A.shape[0], B.shape[0]))
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            total = 0.0
            for k in range(A.shape[1]):
                total += A[i, k] * B[j, k]
            out[i, j] = total
    return out


@helper
def cholesky(A, L):
    """Write the Cholesky factor of A into the lower triangle of L; returns False if A is not positive definite."""
    D = A.shape[0]
    for j in range(D):
        total = A[j, j]
        for k in range(j):
            total -= L[j, k] * L[j, k]
        if not (total > 0.0 and np.isfinite(total)):
            return False
        L[j, j] = np.sqrt(total)
        for i in range(j + 1, D):
            total = A[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]
    return True


@helper
def solve_positive(L, B):
    """B <- A^{-1} B, given the Cholesky factor L of A."""
    n = L.shape[0]
    for k in range(B.shape[1]):
        for i in range(n):
            for j in range(i):
                B[i, k] -= L[i, j] * B[j, k]
            B[i, k] /= L[i, i]
        for i in range(n - 1, -1, -1):
            for j in range(i + 1, n):
                B[i, k] -= L[j, i] * B[j, k]
            B[i, k] /= L[i, i]
