"""Computations whose results are bit for bit the same for any number of rows at a time, and any BLAS threads."""

from contextlib import contextmanager
from functools import cache
from threading import Lock

import numpy as np
from scipy.special import logsumexp

# Rows of a tile. BLAS treats the rows that remain after full register blocks differently; this is a multiple of the
# sizes of these blocks.
_TILE = 16


# An entry for each Python thread within `one_blas_thread`; the first thread sets the limit, and the last removes it.
_lock, _limits = Lock(), []


@cache
def _libraries():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # cached, since the search for libraries takes milliseconds


@contextmanager
def one_blas_thread():
    """Context in which BLAS uses one thread in this process; several Python threads may be within it at a time."""
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
    """The matrix product of dense A and B, in which a row of the result does not depend on the other rows of A.

    Rows are multiplied in full tiles; the last tile is filled up with zeros.

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
    # NumPy sums a single column pairwise, but several columns row by row, so a single column is duplicated.
    columns = np.repeat(draws, 2, axis=1) if draws.shape[1] == 1 else draws
    return logsumexp(columns, axis=0)[: draws.shape[1]] - np.log(len(draws))
