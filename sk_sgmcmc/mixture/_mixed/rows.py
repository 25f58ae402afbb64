"""Encoded rows of a table with columns of several kinds, as chains read them."""

import zlib
from dataclasses import dataclass, replace

import numpy as np

from .layout import MixedLayout, repeated_rows, row_hashes


@dataclass(frozen=True, eq=False)
class MixedRows:
    """Rows sorted by their contents, so that the order passed by the user has no effect.

    A row of weight w is stored as m rows of weight w / m, where m is the whole number nearest to w, but at least 1.

    Parameters
    ----------
    cells : ndarray of shape (n_rows, n_columns)
        NaN for missing cells.
    weights : ndarray of shape (n_rows,)
    layout : MixedLayout
    n_batch : int
        Number of rows of a sweep between two returns to Python.
    total : float or None
        As for `RowData`.
    Z : ndarray of shape (n_rows, n_terms), default=None
        Standardised covariates of the rows, intercept last.
    """

    cells: np.ndarray
    weights: np.ndarray
    layout: MixedLayout
    n_batch: int
    total: float | None = None
    Z: np.ndarray | None = None

    @classmethod
    def make(cls, X, sample_weight, order, n_batch, total=None, Z=None):
        """Sort encoded rows X, and repeat them by ``sample_weight``; ``order`` is a `CanonicalOrder`."""
        rows, weights = repeated_rows(len(X), sample_weight)
        X, Z = order.rows(X[rows]), None if Z is None else Z[rows]
        place = np.lexsort([*(() if Z is None else Z.T), weights, row_hashes(order.layout, X)])
        Z = None if Z is None else np.ascontiguousarray(Z[place])
        return cls(np.ascontiguousarray(X[place]), weights[place], order.layout, n_batch, total, Z)

    def joined(self, other):
        """These rows, followed by others of the same layout."""
        return replace(
            self,
            cells=np.concatenate([self.cells, other.cells]),
            weights=np.concatenate([self.weights, other.weights]),
        )

    @property
    def n_rows(self):
        """Number of rows, counting repetitions by weight."""
        return self.weights.size

    @property
    def n_entries(self):
        """Number of cells that are not missing."""
        return int(np.count_nonzero(~np.isnan(self.cells)))

    @property
    def mean_weight(self):
        """Mean weight of the stored rows; 1 if all weights passed by the user are whole."""
        return self.weights.mean()

    def selected(self, rows):
        """Selected rows as encoded cells, without their weights."""
        return self.cells[rows]

    def fingerprint(self):
        """Checksum by which `resume` recognises the data."""
        known = zlib.crc32(self.cells, zlib.crc32(self.weights))
        return known if self.Z is None else zlib.crc32(self.Z, known)
