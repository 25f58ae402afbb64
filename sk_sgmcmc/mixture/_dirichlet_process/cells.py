"""Encode counts, binary data and categories as the sparse matrices that the kernels of the mixture read."""

import zlib
from collections.abc import Hashable
from dataclasses import dataclass, replace
from numbers import Number

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from ...utils import check_counts
from ...utils._numbers import summable
from ...utils._seeds import mix64, row_keys
from ...utils._tables import declared_levels
from ...utils._warnings import warn_of_levels, warn_user

_FAR = 5  # warn that the largest code may mean "missing" if it exceeds this multiple of the second largest
# Limits of `warn_of_categories`.
_ROWS_SEEN, _FEWEST_ROWS, _FEWEST_AT_TOP, _LEAST_AT_TOP = 1000, 20, 5, 0.04
_FILLED, _LARGEST_OF_CODES, _MOST_CODES, _SHARE_OF_COLUMNS = 0.4, 20, 10, 0.75
_ROUNDS = 3  # each hashes the rows from their levels, then the levels from their rows
_ONE = 2.0**20  # fixed-point scale: weights are hashed as whole multiples of 1 / _ONE

_LARGEST_CODE = 2.0**53  # float64 represents all whole numbers up to here

MULTINOMIAL, CATEGORICAL, BERNOULLI, MIXED = 0, 1, 2, 3  # the last one is of `MixedLayout`
KIND_OF = {"multinomial": MULTINOMIAL, "categorical": CATEGORICAL, "bernoulli": BERNOULLI, "mixed": MIXED}


@dataclass(frozen=True, eq=False)
class Cells:
    """Layout of the cells of encoded rows, and the Dirichlet or Beta prior of their probabilities.

    A cell is a column of an encoded row: a word for counts, a level of a column for categories. Binary data with D
    columns have 2 D cells: cell d is a 1 in column d, and cell D + d is a missing entry.

    Parameters
    ----------
    kind : int
        One of the kinds of `sk_sgmcmc.kernels.models.dirichlet_process.collapsed`.
    block : ndarray of int32, shape (n_cells,)
        Group of each cell. Except for binary data, the probabilities of a group sum to 1: all cells are one group for
        counts, and the levels of a column are a group for categories. For binary data it is the column.
    prior : ndarray of float64, shape (n_cells + n_blocks,)
        Dirichlet parameter of each cell, followed by the sums over each group. For binary data, shape (2 D,): the Beta
        parameters of the ones, then of the zeros.
    """

    kind: int
    block: np.ndarray
    prior: np.ndarray

    @classmethod
    def make(cls, kind, sizes, prior):
        """Build the layout of groups with ``sizes`` cells; ``prior`` is one number, or one for each column."""
        if kind == BERNOULLI:
            D = len(sizes)
            ones = np.broadcast_to(prior, D)
            return cls(kind, np.tile(np.arange(D, dtype=np.int32), 2), np.concatenate([ones, ones]).astype(np.float64))
        block = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        by_cell = np.asarray(prior, dtype=np.float64)
        if kind == CATEGORICAL and by_cell.ndim:
            by_cell = by_cell[block]
        by_cell = np.broadcast_to(by_cell, block.size)
        return cls(kind, block, np.concatenate([by_cell, np.bincount(block, by_cell, len(sizes))]))

    @property
    def n_cells(self):
        """Number of cells that rows can refer to."""
        return self.block.size

    @property
    def n_blocks(self):
        """Number of groups whose total counts are stored after the cells; 0 for binary data."""
        return self.prior.size - self.n_cells

    @property
    def n_public(self):
        """Number of probabilities of a component in ``samples_``; binary data have one for each column."""
        return self.n_cells // 2 if self.kind == BERNOULLI else self.n_cells

    def prior_mean(self):
        """Prior mean of a component, (n_public,)."""
        n = self.n_cells
        if self.kind == BERNOULLI:
            return self.prior[: n // 2] / (self.prior[: n // 2] + self.prior[n // 2 :])
        return self.prior[:n] / self.prior[n + self.block]

    def base_log_density(self, X):
        """Log marginal probability of each encoded row under a component drawn from the prior, (n_rows,)."""
        per_row = np.diff(X.indptr)
        rows = np.repeat(np.arange(X.shape[0]), per_row)
        w, x = X.indices, X.data

        def rise(a, x):
            return gammaln(a + x) - gammaln(a)

        if self.kind == BERNOULLI:
            D = self.n_public
            ones, zeros = self.prior[:D], self.prior[D:]
            d = w % D
            other = np.where(w < D, ones[d], ones[d] + zeros[d])
            at_zero = np.log(zeros / (ones + zeros)).sum()
            return at_zero + np.bincount(rows, np.log(other / zeros[d]), X.shape[0])
        out = np.bincount(rows, rise(self.prior[w], x), X.shape[0])
        if self.kind == MULTINOMIAL:
            return out - rise(self.prior[-1], np.bincount(rows, x, X.shape[0]))
        return out - np.bincount(rows, np.log(self.prior[self.n_cells + self.block[w]]), X.shape[0])

    def tables(self, components):
        """Terms that add up to the log density of encoded rows X, ``X @ per_cell + per_row``.

        Parameters
        ----------
        components : array-like of shape (n_components, n_public)
            Probabilities.

        Returns
        -------
        per_cell : ndarray of shape (n_cells, n_components)
            Contribution of each entry of a row.
        per_row : ndarray of shape (n_components,)
            Constant, the same for all rows.
        """
        p = np.maximum(np.asarray(components, dtype=np.float64).T, 1e-37)
        if self.kind != BERNOULLI:
            return np.log(p), np.zeros(p.shape[1])
        log_zero = np.log(np.maximum(1.0 - p, 1e-17))
        return np.concatenate([np.log(p) - log_zero, -log_zero]), log_zero.sum(axis=0)

    def log_density(self, X, components):
        """Log density of encoded rows under each component, (n_rows, n_components)."""
        per_cell, per_row = self.tables(components)
        return X @ per_cell + per_row


@dataclass(frozen=True, eq=False)
class RowData:
    """Encoded rows as chains read them, sorted by their contents so that the order passed by the user has no effect.

    A row of weight w is stored as m rows of weight w / m, where m is the whole number nearest to w, but at least 1.

    Parameters
    ----------
    indptr, cells, entries, values, weights : ndarray
        As in `sk_sgmcmc.kernels.models.dirichlet_process.collapsed`.
    layout : Cells
    n_batch : int
        Number of rows in a minibatch, or more for all rows.
    total : float or None
        Total weight of rows on which the posterior of a stream is conditioned. If more have been seen, earlier rows
        count less, the oldest least. None: all rows count in full.
    """

    indptr: np.ndarray
    cells: np.ndarray
    entries: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    layout: Cells
    n_batch: int
    total: float | None = None

    @classmethod
    def make(cls, X, sample_weight, layout, n_batch, total=None):
        """Sort encoded rows X, and repeat them by ``sample_weight``; None gives every row weight 1."""
        keys = row_keys(X)
        if sample_weight is None:
            order = np.argsort(keys, kind="stable")
            weights = np.ones(order.size)
        else:
            copies, each = split_weights(sample_weight)
            order = np.lexsort([each, keys])
            order = np.repeat(order, copies[order])
            weights = each[order]
        X = X[order]
        entries = summable(X.data)
        values = entries
        if np.any(weights != 1.0):
            values = summable(entries * np.repeat(weights, np.diff(X.indptr)))
        return cls(
            X.indptr.astype(np.int64), X.indices.astype(np.int32), entries, values, weights, layout,
            n_batch, total,
        )  # fmt: skip

    def joined(self, other):
        """These rows, followed by the rows of another `RowData` of the same layout."""
        entries = np.concatenate([self.entries, other.entries])
        is_plain = self.values is self.entries and other.values is other.entries
        return replace(
            self,
            indptr=np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]]),
            cells=np.concatenate([self.cells, other.cells]),
            entries=entries,
            values=entries if is_plain else np.concatenate([self.values, other.values]),
            weights=np.concatenate([self.weights, other.weights]),
        )

    @property
    def n_rows(self):
        """Number of rows, counting repetitions by weight."""
        return self.weights.size

    @property
    def n_entries(self):
        """Number of stored entries of the rows, counting repetitions by weight."""
        return self.cells.size

    @property
    def mean_weight(self):
        """Mean weight of the stored rows; 1 if all weights passed by the user are whole."""
        return self.weights.mean()

    def selected(self, rows):
        """Selected rows as an encoded matrix, without their weights."""
        return sparse.csr_array((self.entries, self.cells, self.indptr), shape=(self.n_rows, self.layout.n_cells))[rows]

    def fingerprint(self):
        """Checksum by which `resume` recognises the data; different rows are very unlikely to share it."""
        known = zlib.crc32(self.cells, zlib.crc32(self.indptr, zlib.crc32(self.values)))
        return zlib.crc32(self.weights, known) if np.any(self.weights != 1.0) else known


def split_weights(sample_weight):
    """Split each weight into a number of copies and the weight of each copy, rounded by `summable`.

    The number of copies is the nearest whole number, but at least 1. A whole weight w becomes w copies of weight 1. A
    row of weight 0 has no copies.
    """
    weight = np.asarray(sample_weight, dtype=np.float64)
    copies = np.maximum(np.round(weight), weight > 0).astype(np.int64)
    return copies, summable(weight / np.maximum(copies, 1))


# ------------------------------------------------------------------------------------------------------- encoding


def encode_counts(X, whom):
    """Check counts and return them as CSR of float64."""
    X = check_counts(X, whom=whom)
    return sparse.csr_array(X)


def warn_of_categories(X):
    """Warn if counts look like codes of categories, which cannot be added up.

    Most columns then contain few distinct small numbers, and the largest of them is common. The largest value of real
    counts is rare.
    """
    n, D = X.shape
    rows = X[:: max(1, n // _ROWS_SEEN)]
    n = rows.shape[0]
    if n < _FEWEST_ROWS or rows.nnz < _FILLED * n * D or np.any(rows.data != np.floor(rows.data)):
        return
    totals = rows.sum(axis=1)
    if rows.data.max() > _LARGEST_OF_CODES or np.all(totals == totals[0]):
        return
    values = rows.toarray()
    tops = values.max(axis=0)
    n_levels = np.array([np.unique(column).size for column in values.T])
    at_top = (values == tops).mean(axis=0)
    limited = (n_levels > 1) & (n_levels <= _MOST_CODES) & (at_top >= max(_LEAST_AT_TOP, _FEWEST_AT_TOP / n))
    # Columns of 0 and 1 are plausible counts. Without any zero they are more likely to be codes.
    has_zeros = rows.nnz < n * D
    if limited.mean() < _SHARE_OF_COLUMNS or (has_zeros and np.mean(n_levels > 2) < 0.5):
        return
    codes = np.unique(values[:, np.argmax(limited)]).astype(int).tolist()
    warn_user(
        f"The columns of X contain a few small codes each, such as {codes}, which look like categories, but "
        'likelihood="multinomial" treats them as counts. For categories, use '
        'likelihood="categorical".'
    )


def encode_binary(X, whom):
    """Encode binary data as CSR: a 1 in cell d for a 1 in column d, or in cell D + d for a missing entry."""
    n, D = X.shape
    X = sparse.csr_array(X) if sparse.issparse(X) else sparse.csr_array(np.asarray(X, dtype=np.float64))
    X = X.astype(np.float64)
    X.sum_duplicates()
    X.eliminate_zeros()
    missing = np.isnan(X.data)
    bad = ~missing & (X.data != 1.0)
    if bad.any():
        codes = np.unique(X.data[~missing])
        remedy = 'Use sklearn.preprocessing.binarize, or likelihood="multinomial" for counts.'
        if codes.size == 2 and X.nnz == n * D:  # binarize would make codes such as 1 and 2 equal
            shift = f"Pass X - {codes[0]:g}, or use" if codes[1] == codes[0] + 1 else "Use"
            remedy = f'{shift} likelihood="categorical" for the codes {codes[0]:g} and {codes[1]:g}.'
        raise ValueError(
            f'likelihood="bernoulli" needs entries 0, 1, or NaN if missing; X holds {X.data[bad][0]:g}. {remedy}'
        )
    cells = X.indices + D * missing
    encoded = sparse.csr_array((np.ones(X.nnz), cells, X.indptr), shape=(n, 2 * D))
    encoded.sort_indices()
    return encoded


def columns_of(X):
    """List of (values, declared levels) of the columns of a table or array; the levels are None if undeclared."""
    if not hasattr(X, "columns"):
        X = np.asarray(X)
        return [(X[:, j], None) for j in range(X.shape[1])]
    out = []
    for j in range(X.shape[1]):
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
        declared = declared_levels(column)
        codes = getattr(getattr(column, "cat", None), "codes", None)
        levels = None if declared is None else np.array([*declared, None], dtype=object)
        # Look levels up by code where possible: conversion would turn whole numbers with missing entries into floats.
        values = np.asarray(column, dtype=object) if codes is None else levels[np.asarray(codes)]
        out.append((values, None if levels is None else levels[:-1]))
    return out


def places_of(values, levels):
    """Index of each value in ``levels``, found by equality or else by its text; -1 for unknown values."""
    exact, as_text = ({key(level): c for c, level in enumerate(levels)} for key in (_hashable, str))
    return np.array([exact.get(_hashable(v), as_text.get(str(v), -1)) for v in values], dtype=np.int64)


def _hashable(value):
    return value if isinstance(value, Hashable) else str(value)


def is_missing(values):
    """Boolean mask of the entries that are NaN, None, NaT or the NA of pandas."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    return np.array([v is None or type(v).__name__ in ("NAType", "NaTType") or v != v for v in values], dtype=bool)


def as_numbers(values):
    """Convert values to float64 if all are numbers, else return None; text such as "1" is not a number."""
    if values.dtype.kind in "US":
        return None
    if values.dtype.kind == "O" and not all(isinstance(v, (Number, np.bool_)) for v in values):
        return None
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return None


def find_levels(X):
    """Find the levels of each column: the declared ones, or else the sorted values that occur.

    Returns
    -------
    levels : list of ndarray
        One array per column, with at least one level.
    """
    levels = []
    for j, (values, declared) in enumerate(columns_of(X)):
        seen = values[~is_missing(values)]
        if declared is not None:
            levels.append(declared if declared.size else np.array([None], dtype=object))
            warn_of_levels(declared, len(set(seen)), len(values), f"Column {name_of(X, j)} of X")
            continue
        numbers = as_numbers(seen)
        if numbers is None:
            levels.append(np.array(sorted({str(v) for v in seen}), dtype=object))
            warn_of_levels(levels[-1], levels[-1].size, len(values), f"Column {name_of(X, j)} of X")
            continue
        codes = np.unique(numbers) if numbers.size else np.zeros(1)
        if codes[0] < 0 or np.any(codes != np.floor(codes)) or codes[-1] > _LARGEST_CODE:
            raise ValueError(
                'likelihood="categorical" needs whole codes from 0 up, strings, or categoricals; column '
                f"{name_of(X, j)} of X runs from {codes[0]:g} to {codes[-1]:g}. Mark missing entries by NaN, and cut "
                "numbers into classes, for example with sklearn.preprocessing.KBinsDiscretizer."
            )
        if codes.size > 2 and codes[-1] > _FAR * max(codes[-2], 1):
            warn_user(
                f"Column {name_of(X, j)} of X holds the codes {codes[0]:.0f} to {codes[-2]:.0f}, and {codes[-1]:.0f}, "
                f"which counts as a level like the others. If {codes[-1]:.0f} marks missing entries, pass NaN there."
            )
        levels.append(codes.astype(np.int64))
        warn_of_levels(levels[-1], codes.size, len(values), f"Column {name_of(X, j)} of X")
    return levels


def name_of(X, j):
    """Name of column j, or its index if X has no column names."""
    return repr(X.columns[j]) if hasattr(X, "columns") else j


def places_of_levels(X, sample_weight, block):
    """Order the levels of each column by the rows in which they occur, so that labels of levels do not affect draws.

    Chains store cells in this order, which does not depend on the order of rows either. Cells and rows are hashed in
    turn, each from the hashes of the other. Levels with equal hashes are in the order of their first occurrence.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_cells)
        Encoded categories; all stored entries are 1.
    sample_weight : ndarray of shape (n_rows,) or None
    block : ndarray of int32, shape (n_cells,)

    Returns
    -------
    places : ndarray of int64, shape (n_cells,)
        New index of each cell: a permutation within each column.
    """
    occurs = sparse.csr_array((np.ones(X.nnz, dtype=np.uint64), X.indices, X.indptr), shape=X.shape)
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    weight = np.round(weight * _ONE).astype(np.uint64)
    cells = mix64(block.astype(np.uint64))
    for _ in range(_ROUNDS):  # sums of unsigned integers wrap around, so their order has no effect
        cells = mix64(cells + occurs.T @ (mix64(occurs @ cells) * weight))
    first = np.full(block.size, X.shape[0])
    np.minimum.at(first, X.indices, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)))
    return np.argsort(np.lexsort((first, cells, block)))


def with_cells_at(places, X):
    """Encoded rows with each cell moved to the index that `places_of_levels` gives it."""
    return sparse.csr_array((X.data, places[X.indices], X.indptr), shape=X.shape)


def encode_categories(X, levels):
    """Encode categories as CSR with a 1 in the cell of each entry's level; unknown levels count as missing."""
    starts = np.concatenate([[0], np.cumsum([len(of) for of in levels])])
    rows, cells, unknown = [], [], []
    for j, (values, _) in enumerate(columns_of(X)):
        there = np.flatnonzero(~is_missing(values))
        if levels[j].dtype == object:
            code = places_of(values[there], levels[j])
        else:
            numbers = as_numbers(values[there])
            if numbers is None:
                raise ValueError(f"column {j} of X holds text, but held numbers when the mixture was fitted.")
            place = np.minimum(np.searchsorted(levels[j], numbers), len(levels[j]) - 1)
            code = np.where(levels[j][place] == numbers, place, -1)
        if np.any(code < 0):
            unknown.append(f"{values[there][code < 0][0]} in column {name_of(X, j)}")
        rows.append(there[code >= 0])
        cells.append(starts[j] + code[code >= 0])
    if unknown:
        warn_user(f"Levels that did not occur when the mixture was fitted count as missing: {', '.join(unknown)}.")
    rows, cells = np.concatenate(rows), np.concatenate(cells)
    shape = (X.shape[0], starts[-1])
    return sparse.csr_array(sparse.coo_array((np.ones(rows.size), (rows, cells)), shape=shape))
