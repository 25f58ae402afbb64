"""Rows of counts, of 0 and 1, or of categories, as the sparse cells that the mixture's kernels read."""

import zlib
from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Number

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from ...utils import check_counts
from ...utils._numbers import summable
from ...utils._seeds import mix64, row_keys
from ...utils._tables import declared_levels
from ...utils._warnings import warn_of_levels, warn_user

_FAR = 5  # times the second largest code, above which the largest may be a code for "missing"
_ROWS_SEEN, _FEWEST_ROWS, _FEWEST_AT_TOP, _LEAST_AT_TOP = 1000, 20, 5, 0.04
_FILLED, _LARGEST_OF_CODES, _MOST_CODES, _SHARE_OF_COLUMNS = 0.4, 20, 10, 0.75
_ROUNDS = 3  # of hashing rows and levels in turn
_ONE = 2.0**20  # by which weights are multiplied to become whole numbers

_LARGEST_CODE = 2.0**53  # above which float64 cannot represent steps of 1

MULTINOMIAL, CATEGORICAL, BERNOULLI = KINDS = 0, 1, 2
KIND_OF = {"multinomial": MULTINOMIAL, "categorical": CATEGORICAL, "bernoulli": BERNOULLI}


@dataclass(frozen=True, eq=False)
class Cells:
    """The meaning of cells, and their prior.

    Parameters
    ----------
    kind : int
        One of the kinds of `sk_sgmcmc.kernels.models.dirichlet_process.collapsed`.
    block : ndarray of int32, shape (n_cells,)
        The column, or other group, of each cell; probabilities sum to 1 within it.
    prior : ndarray of float64, shape (n_cells + n_blocks,)
        Dirichlet parameter of each cell, then its sum over each block. For 0 and 1, with D columns: shapes of the ones,
        then of the zeros, (2 D,).
    """

    kind: int
    block: np.ndarray
    prior: np.ndarray

    @classmethod
    def make(cls, kind, sizes, prior):
        """Blocks of ``sizes`` cells; ``prior`` is a number, or one for each column."""
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
        """Number of blocks over which counts are also summed; 0 and 1 need none."""
        return self.prior.size - self.n_cells

    @property
    def n_public(self):
        """Number of probabilities of a component that the user sees."""
        return self.n_cells // 2 if self.kind == BERNOULLI else self.n_cells

    def prior_mean(self):
        """Prior mean of a component, (n_public,)."""
        n = self.n_cells
        if self.kind == BERNOULLI:
            return self.prior[: n // 2] / (self.prior[: n // 2] + self.prior[n // 2 :])
        return self.prior[:n] / self.prior[n + self.block]

    def base_log_density(self, X):
        """Log probability of each row under the prior of a component, (n_rows,); X as `encode` gives it."""
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
        """Terms of log densities under components (n_components, n_public): one for each cell, and a constant.

        Returns
        -------
        per_cell : ndarray of shape (n_cells, n_components)
        per_row : ndarray of shape (n_components,)
        """
        p = np.maximum(np.asarray(components, dtype=np.float64).T, 1e-37)
        if self.kind != BERNOULLI:
            return np.log(p), np.zeros(p.shape[1])
        log_zero = np.log(np.maximum(1.0 - p, 1e-17))
        return np.concatenate([np.log(p) - log_zero, -log_zero]), log_zero.sum(axis=0)


@dataclass(frozen=True, eq=False)
class RowData:
    """Rows in the form to which chains are bound, in an order that depends on their contents alone.

    A weight w stands for m rows of weight w / m, where m is the whole number nearest to w, but at least 1.

    Parameters
    ----------
    indptr, cells, entries, values, weights : ndarray
        As in `sk_sgmcmc.kernels.models.dirichlet_process.collapsed`.
    layout : Cells
    n_batch : int
        Rows of a minibatch.
    total : float or None
        Upper bound on the weight of all rows of a stream, to which more are scaled down; None never scales.
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
        """From encoded rows and their weights (None: 1 each)."""
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
            max(1, min(n_batch, order.size)), total,
        )  # fmt: skip

    @property
    def n_rows(self):
        """Number of rows, repetitions by weight included."""
        return self.weights.size

    @property
    def mean_weight(self):
        """Mean weight of the rows; 1 where all are whole."""
        return self.weights.mean()

    def as_csr(self, rows):
        """The given rows, encoded, without their weights."""
        return sparse.csr_array((self.entries, self.cells, self.indptr), shape=(self.n_rows, self.layout.n_cells))[rows]

    def fingerprint(self):
        """A number by which to recognise the data; other rows are very unlikely to share it."""
        known = zlib.crc32(self.cells, zlib.crc32(self.indptr, zlib.crc32(self.values)))
        return zlib.crc32(self.weights, known) if np.any(self.weights != 1.0) else known


def split_weights(sample_weight):
    """How many rows each weight stands for, and the weight of each of these, see `summable`.

    The number is the nearest whole one, but at least 1: whole weights are that many rows, and other rows have weights
    close to 1. Weight 0 stands for no rows.
    """
    weight = np.asarray(sample_weight, dtype=np.float64)
    copies = np.maximum(np.round(weight), weight > 0).astype(np.int64)
    return copies, summable(weight / np.maximum(copies, 1))


# ------------------------------------------------------------------------------------------------------- encoding


def encode_counts(X, whom):
    """Counts as CSR of float64."""
    X = check_counts(X, whom=whom)
    return sparse.csr_array(X)


def warn_of_categories(X):
    """Warn if counts look like codes of categories: a few small codes in each column, whose sums mean nothing.

    Counts fall off towards their largest value, which is rare; the largest code is about as frequent as the others.
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
    # Columns of 0 and 1 may well count something; those of 1 and 2 hardly.
    has_zeros = rows.nnz < n * D
    if limited.mean() < _SHARE_OF_COLUMNS or (has_zeros and np.mean(n_levels > 2) < 0.5):
        return
    codes = np.unique(values[:, np.argmax(limited)]).astype(int).tolist()
    warn_user(
        f"The columns of X hold a few small codes each, such as {codes}, as answers of surveys do, but "
        'likelihood="multinomial" takes them for counts. For categories, use '
        'likelihood="categorical".'
    )


def encode_binary(X, whom):
    """0, 1 and missing as CSR with a 1 in cell d for a 1 in column d, and in cell D + d for a missing entry."""
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
        if codes.size == 2 and X.nnz == n * D:  # codes such as 1 and 2, which binarize would make equal
            shift = f"Pass X - {codes[0]:g}, or use" if codes[1] == codes[0] + 1 else "Use"
            remedy = f'{shift} likelihood="categorical" for the codes {codes[0]:g} and {codes[1]:g}.'
        raise ValueError(
            f'likelihood="bernoulli" needs entries 0, 1, or NaN if missing; X holds {X.data[bad][0]:g}. {remedy}'
        )
    cells = X.indices + D * missing
    encoded = sparse.csr_array((np.ones(X.nnz), cells, X.indptr), shape=(n, 2 * D))
    encoded.sort_indices()
    return encoded


def _columns(X):
    """The columns of a frame or an array as arrays, each with the levels that it declares, if any."""
    if not hasattr(X, "columns"):
        X = np.asarray(X)
        return [(X[:, j], None) for j in range(X.shape[1])]
    out = []
    for j in range(X.shape[1]):
        column = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
        declared = declared_levels(column)
        codes = getattr(getattr(column, "cat", None), "codes", None)
        levels = None if declared is None else np.array([*declared, None], dtype=object)
        # By their codes, if there are any: as an array, whole numbers beside a missing one would become floats.
        values = np.asarray(column, dtype=object) if codes is None else levels[np.asarray(codes)]
        out.append((values, None if levels is None else levels[:-1]))
    return out


def _places_of(values, levels):
    """The places of values among ``levels``, by equality or else as text; -1 for those that are not there."""
    exact, as_text = ({key(level): c for c, level in enumerate(levels)} for key in (_hashable, str))
    return np.array([exact.get(_hashable(v), as_text.get(str(v), -1)) for v in values], dtype=np.int64)


def _hashable(value):
    return value if isinstance(value, Hashable) else str(value)


def is_missing(values):
    """Which entries of an array are NaN, None, or pandas' NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    return np.array([v is None or type(v).__name__ in ("NAType", "NaTType") or v != v for v in values], dtype=bool)


def _as_numbers(values):
    """Values as float64 if all are numbers, else None; text never counts as a number."""
    if values.dtype.kind in "US":
        return None
    if values.dtype.kind == "O" and not all(isinstance(v, (Number, np.bool_)) for v in values):
        return None
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return None


def find_levels(X):
    """The levels of each column: those that it declares, or the sorted values that occur; at least one.

    Returns
    -------
    levels : list of ndarray
    """
    levels = []
    for j, (values, declared) in enumerate(_columns(X)):
        seen = values[~is_missing(values)]
        if declared is not None:
            levels.append(declared if declared.size else np.array([None], dtype=object))
            warn_of_levels(declared, len(set(seen)), len(values), f"Column {_name(X, j)} of X")
            continue
        numbers = _as_numbers(seen)
        if numbers is None:
            levels.append(np.array(sorted({str(v) for v in seen}), dtype=object))
            warn_of_levels(levels[-1], levels[-1].size, len(values), f"Column {_name(X, j)} of X")
            continue
        codes = np.unique(numbers) if numbers.size else np.zeros(1)
        if codes[0] < 0 or np.any(codes != np.floor(codes)) or codes[-1] > _LARGEST_CODE:
            raise ValueError(
                f'likelihood="categorical" needs whole codes from 0 up, strings, or categoricals; column {_name(X, j)} '
                f"of X runs from {codes[0]:g} to {codes[-1]:g}. Mark missing entries by NaN, and cut numbers "
                "into classes, for example with sklearn.preprocessing.KBinsDiscretizer."
            )
        if codes.size > 2 and codes[-1] > _FAR * max(codes[-2], 1):
            warn_user(
                f"Column {_name(X, j)} of X holds the codes {codes[0]:.0f} to {codes[-2]:.0f}, and {codes[-1]:.0f}, "
                f"which counts as a level like the others. If {codes[-1]:.0f} marks missing entries, pass NaN there."
            )
        levels.append(codes.astype(np.int64))
        warn_of_levels(levels[-1], codes.size, len(values), f"Column {_name(X, j)} of X")
    return levels


def _name(X, j):
    """The name of a column, or its index if it has none."""
    return repr(X.columns[j]) if hasattr(X, "columns") else j


def places_of_levels(X, sample_weight, block):
    """Where chains keep each cell: an order of levels that depends neither on their labels nor on the order of rows.

    Cells and rows are hashed in turn, each from the other. Levels that this does not distinguish are in the order of
    their first occurrence.

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_cells)
        Encoded categories, of which all entries are 1.
    sample_weight : ndarray of shape (n_rows,) or None
    block : ndarray of int32, shape (n_cells,)

    Returns
    -------
    places : ndarray of int64, shape (n_cells,)
        A permutation that keeps each cell in its block.
    """
    occurs = sparse.csr_array((np.ones(X.nnz, dtype=np.uint64), X.indices, X.indptr), shape=X.shape)
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    weight = np.round(weight * _ONE).astype(np.uint64)
    cells = mix64(block.astype(np.uint64))
    for _ in range(_ROUNDS):  # sums of unsigned integers wrap round, so that they are exact in any order
        cells = mix64(cells + occurs.T @ (mix64(occurs @ cells) * weight))
    first = np.full(block.size, X.shape[0])
    np.minimum.at(first, X.indices, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)))
    return np.argsort(np.lexsort((first, cells, block)))


def with_cells_at(places, X):
    """Encoded rows whose cells are moved within their blocks."""
    return sparse.csr_array((X.data, places[X.indices], X.indptr), shape=X.shape)


def encode_categories(X, levels):
    """Categories as CSR with a 1 in the cell of each entry's level; a level not among ``levels`` counts as missing."""
    starts = np.concatenate([[0], np.cumsum([len(of) for of in levels])])
    rows, cells, unknown = [], [], []
    for j, (values, _) in enumerate(_columns(X)):
        there = np.flatnonzero(~is_missing(values))
        if levels[j].dtype == object:
            code = _places_of(values[there], levels[j])
        else:
            numbers = _as_numbers(values[there])
            if numbers is None:
                raise ValueError(f"column {j} of X holds text, but held numbers when the mixture was fitted.")
            place = np.minimum(np.searchsorted(levels[j], numbers), len(levels[j]) - 1)
            code = np.where(levels[j][place] == numbers, place, -1)
        if np.any(code < 0):
            unknown.append(f"{values[there][code < 0][0]} in column {_name(X, j)}")
        rows.append(there[code >= 0])
        cells.append(starts[j] + code[code >= 0])
    if unknown:
        warn_user(f"Levels that did not occur when the mixture was fitted count as missing: {', '.join(unknown)}.")
    rows, cells = np.concatenate(rows), np.concatenate(cells)
    shape = (X.shape[0], starts[-1])
    return sparse.csr_array(sparse.coo_array((np.ones(rows.size), (rows, cells)), shape=shape))
