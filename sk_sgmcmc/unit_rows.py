"""Rows that are directions: scaled to unit length, and as the kernels of models on the sphere read them."""

import zlib
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .utils import row_keys


def unit_rows(X, normalize):
    """Rows of unit length as CSR of float64; all-zero rows stay; refuses others unless ``normalize``."""
    rows = sparse.csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    if not normalize and np.any(np.abs(lengths - 1.0) > 1e-4):
        worst = int(np.argmax(np.abs(lengths - 1.0)))
        raise ValueError(
            f"normalize=False needs unit rows, but row {worst} of X has length {lengths[worst]:.6g}; "
            "use normalize=True or sklearn.preprocessing.normalize."
        )
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    rows.data *= np.repeat(scale, np.diff(rows.indptr))
    return rows


def content_keys(rows):
    """A key for each row's content, blind to the last digits, in which scaling to unit length may differ."""
    rounded = rows.copy()
    rounded.data = rounded.data.astype(np.float32).astype(np.float64)
    return row_keys(rounded)


@dataclass(frozen=True, eq=False)
class RowData:
    """Unit rows as the kernels read them, shared by all chains.

    Parameters
    ----------
    ptr, words, values : ndarray
        CSR.
    n_words : int
    n_batch : int
        Rows of a minibatch.
    """

    ptr: np.ndarray
    words: np.ndarray
    values: np.ndarray
    n_words: int
    n_batch: int

    @classmethod
    def from_csr(cls, X, n_batch):
        """From unit rows."""
        parts = X.indptr.astype(np.int64), X.indices.astype(np.int64), np.ascontiguousarray(X.data, dtype=np.float64)
        return cls(*parts, X.shape[1], n_batch)

    def fingerprint(self):
        """A number that other rows would hardly have, to know the data again; blind to the last digits."""
        rounded = self.values.astype(np.float32)
        return zlib.crc32(self.words, zlib.crc32(self.ptr, zlib.crc32(rounded)))

    @property
    def csr(self):
        """The three arrays, in the kernels' order."""
        return self.ptr, self.words, self.values

    def as_csr(self):
        """The rows as a sparse array that shares the memory."""
        return sparse.csr_array((self.values, self.words, self.ptr), shape=(self.n_docs, self.n_words))

    @property
    def n_docs(self):
        """Number of rows."""
        return self.ptr.size - 1
