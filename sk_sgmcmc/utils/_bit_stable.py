"""Results that do not depend, to the last bit, on how many rows are computed together, nor on the threads of BLAS."""

from contextlib import contextmanager
from functools import cache
from threading import Lock

import numpy as np
from scipy.special import logsumexp

_TILE = 16  # rows; a multiple of what the kernels of BLAS keep in registers, which treat remaining rows differently


_lock, _limits = Lock(), []  # threads of Python that are within `one_blas_thread`, of which the first sets the limit


@cache
def _libraries():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looking for libraries takes milliseconds


@contextmanager
def one_blas_thread():
    """Within it, BLAS uses one thread in this process, whichever threads of Python enter and leave it."""
    with _lock:
        _limits.append(_limits[-1] if _limits else _libraries().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()


def bit_stable_product(A, B):
    """The matrix product of dense A and B, with every row of A in a full tile.

    Parameters
    ----------
    A : ndarray of shape (n_rows, n)
    B : ndarray of shape (n, m)

    Returns
    -------
    ndarray of float64, shape (n_rows, m)
    """
    n_rows = len(A)
    whole = n_rows - n_rows % _TILE
    out = np.empty((n_rows, B.shape[1]))
    np.matmul(A[:whole], B, out=out[:whole])
    if whole < n_rows:
        tile = np.zeros((_TILE, A.shape[1]))
        tile[: n_rows - whole] = A[whole:]
        out[whole:] = (tile @ B)[: n_rows - whole]
    return out


def log_mean_exp(draws):
    """Log of the mean over draws of exp, for each row.

    Parameters
    ----------
    draws : list of ndarray, shape (n_rows,) each

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    draws = np.stack(draws)
    # NumPy adds up a single column in pairs, and several columns one row after the other.
    columns = np.repeat(draws, 2, axis=1) if draws.shape[1] == 1 else draws
    return logsumexp(columns, axis=0)[: draws.shape[1]] - np.log(len(draws))
