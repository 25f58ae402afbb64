"""Layout of the statistics and parameters of all columns of a table, and densities of rows given parameters."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...kernels.models import mixed_rows as kernels
from ...utils._seeds import mix64
from ...utils._warnings import warn_user
from .._dirichlet_process.cells import MIXED, columns_of, split_weights
from .columns import fitted_column, kinds_of, names_of

_ROUNDS = 3  # each hashes the rows from their levels, then the levels from their rows
_ONE = 2.0**20  # fixed-point scale: weights are hashed as whole multiples of 1 / _ONE


@dataclass(frozen=True, eq=False)
class MixedLayout:
    """The columns of a table.

    Parameters
    ----------
    columns : tuple of Column
    """

    columns: tuple

    kind = MIXED

    @classmethod
    def fit(cls, X, given, weight, priors):
        """Learn the columns of a table X; ``given`` are their kinds, "auto" or a dict, ``weight`` weights of rows."""
        columns = columns_of(X)
        kinds, names = kinds_of(X, given, columns), names_of(X, len(columns))
        weight = np.ones(X.shape[0]) if weight is None else weight
        return cls(
            tuple(
                fitted_column(kind, name, values, declared, weight, priors, j)
                for j, (kind, name, (values, declared)) in enumerate(zip(kinds, names, columns, strict=True))
            )
        )

    @cached_property
    def kinds(self):
        """Kinds of the columns in the kernels, (n_columns,)."""
        return np.array([column.code for column in self.columns], dtype=np.int64)

    @cached_property
    def starts(self):
        """First statistic of each column, and the number of all statistics, (n_columns + 1,)."""
        return np.cumsum([0, *(column.n_stats for column in self.columns)], dtype=np.int64)

    @cached_property
    def prior(self):
        """Parameters of the prior, (n_stats,)."""
        return np.concatenate([column.prior() for column in self.columns]).astype(np.float64)

    @cached_property
    def entry_starts(self):
        """First parameter of each column, and the number of all parameters, (n_columns + 1,)."""
        return np.cumsum([0, *(len(column.entries()) for column in self.columns)], dtype=np.int64)

    @property
    def n_stats(self):
        """Number of statistics of a cluster."""
        return int(self.starts[-1])

    @property
    def n_public(self):
        """Number of parameters of a cluster."""
        return int(self.entry_starts[-1])

    def encode(self, X):
        """Cells of a table, float64 of shape (n_rows, n_columns), with NaN for missing cells and unknown levels."""
        unknown = []
        cells = [
            column.encode(values, unknown) for column, (values, _) in zip(self.columns, columns_of(X), strict=True)
        ]
        if unknown:
            warn_user(f"Levels that did not occur when the model was fitted count as missing: {', '.join(unknown)}.")
        return np.ascontiguousarray(np.stack(cells, axis=1))

    def draw(self, stats, rng):
        """Draw parameters (n_clusters, n_public) given statistics (n_stats, n_clusters)."""
        parts = [
            column.draw(stats[a:b], rng)
            for column, a, b in zip(self.columns, self.starts[:-1], self.starts[1:], strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def prior_mean(self):
        """Parameters at the mean of the prior, (n_public,)."""
        return np.concatenate([column.prior_mean() for column in self.columns])

    def row_constant(self, X):
        """Terms of the log density of encoded rows that are the same for all clusters, (n_rows,)."""
        return sum((column.row_constant(X[:, j]) for j, column in enumerate(self.columns)), np.zeros(len(X)))

    def log_density(self, X, parameters):
        """Log density of encoded rows under each cluster, (n_rows, n_clusters)."""
        parts = zip(self.columns, self.entry_starts[:-1], self.entry_starts[1:], strict=True)
        tables = np.concatenate([column.table(parameters[:, a:b]) for column, a, b in parts])
        out = np.repeat(self.row_constant(X)[:, None], len(parameters), axis=1)
        kernels.log_densities(X, self.kinds, self.starts, np.ascontiguousarray(tables), out)
        return out

    def base_log_density(self, X):
        """Log probability of each encoded row under a cluster drawn from the prior, (n_rows,)."""
        counts, tables = np.zeros((self.n_stats, 1)), np.zeros((self.n_stats, 1))
        kernels.refresh_tables(self.kinds, self.starts, self.prior, counts, tables)
        out = self.row_constant(X)[:, None]
        kernels.log_predictives(np.ascontiguousarray(X), self.kinds, self.starts, tables, out)
        return out[:, 0]

    def entry_names(self):
        """Column, level and statistic of each parameter: indices of columns, and two arrays of objects."""
        owner = np.repeat(np.arange(len(self.columns)), np.diff(self.entry_starts))
        pairs = [pair for column in self.columns for pair in column.entries()]
        levels, statistics = np.empty(len(pairs), dtype=object), np.empty(len(pairs), dtype=object)
        for i, (level, statistic) in enumerate(pairs):
            levels[i], statistics[i] = level, statistic
        return owner, levels, statistics

    def overall(self, weights, draws):
        """Posterior mean of the parameters of all rows, (n_public,); variances include those between clusters.

        ``weights`` (n_draws, n_clusters) and ``draws`` (n_draws, n_clusters, n_public) belong to the clusters.
        """
        weights = weights / weights.sum(axis=1, keepdims=True)
        mean = np.einsum("sk,ske->se", weights, draws)
        for e in np.flatnonzero(self.entry_names()[2] == "sd"):  # its mean is the entry before
            apart = draws[:, :, e - 1] - mean[:, [e - 1]]
            mean[:, e] = np.sqrt(np.einsum("sk,sk->s", weights, draws[:, :, e] ** 2 + apart**2))
        return mean.mean(axis=0)

    def reported(self):
        """Mask of the parameters that tables show: all but the first level of binary columns."""
        parts = [
            np.arange(len(column.entries())) > 0 if column.kind == "binary" else np.ones(len(column.entries()), bool)
            for column in self.columns
        ]
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class CanonicalOrder:
    """Order of columns and nominal levels in chains, so that neither their order nor labels of levels affect draws.

    Parameters
    ----------
    order : ndarray of shape (n_columns,)
        Columns in the order of the chains.
    places : list of ndarray or None
        For each column, in the order passed by the user, the new index of each level.
    layout : MixedLayout
        The layout of the chains.
    entries : ndarray of shape (n_public,)
        Index, among the parameters of chains, of each parameter in the user's order.
    """

    order: np.ndarray
    places: list
    layout: MixedLayout
    entries: np.ndarray

    @classmethod
    def make(cls, layout, X, weight):
        """Find the order from encoded rows X and their weights, by hashes that ignore orders and labels."""
        rows, weight = repeated_rows(len(X), weight)
        places, columns = _hashed(layout, X[rows], weight)
        order = np.argsort(columns, kind="stable")
        moved = [
            column if places[j] is None else column.with_levels_at(places[j]) for j, column in enumerate(layout.columns)
        ]
        own = replace(layout, columns=tuple(moved[j] for j in order))
        rank = np.argsort(order)
        entries = [
            own.entry_starts[rank[j]]
            + (np.arange(len(column.entries())) if places[j] is None else np.asarray(places[j]))
            for j, column in enumerate(layout.columns)
        ]
        return cls(order, places, own, np.concatenate(entries))

    def rows(self, X):
        """Encoded rows in the order of the chains: columns and levels only."""
        out = np.empty_like(X)
        for new, j in enumerate(self.order):
            cells = X[:, j]
            if self.places[j] is not None:
                there = ~np.isnan(cells)
                cells = cells.copy()
                cells[there] = self.places[j][cells[there].astype(np.int64)]
            out[:, new] = cells
        return out


def repeated_rows(n, weight):
    """Indices of rows, repeated by their weights, and the weight of each copy; None gives each of n rows weight 1."""
    if weight is None:
        return np.arange(n), np.ones(n)
    copies, each = split_weights(weight)
    rows = np.repeat(np.arange(n), copies)
    return rows, each[rows]


def row_hashes(layout, X):
    """Hashes of encoded rows, (n_rows,), which do not depend on the order of columns.

    Cells are hashed by their ranks, so that units do not matter.
    """
    total = np.zeros(len(X), dtype=np.uint64)
    for j in range(X.shape[1]):
        total += _cell_hashes(layout, X, j)
    return mix64(total)


def _ranks(cells):
    """Dense ranks of cells as uint64; missing cells have the largest rank."""
    return np.unique(cells, return_inverse=True)[1].reshape(cells.shape).astype(np.uint64)


def _cell_hashes(layout, X, j):
    """Hash of each cell of column j, from its rank and the contents of the column."""
    ranks = _ranks(X[:, j])
    own = mix64(np.array([mix64(ranks).sum(dtype=np.uint64) + np.uint64(layout.columns[j].code)]))
    return mix64(mix64(ranks + np.uint64(1)) + own)


def _hashed(layout, X, weight):
    """New index of each level of nominal columns (None for others), and a hash of each column, from repeated rows."""
    n, p = X.shape
    weight = np.round(weight * _ONE).astype(np.uint64)
    nominal = [column.is_nominal for column in layout.columns]
    codes, hashes = [None] * p, [None] * p
    for j, column in enumerate(layout.columns):
        if not nominal[j]:
            hashes[j] = _cell_hashes(layout, X, j)
            continue
        codes[j] = np.where(np.isnan(X[:, j]), column.n_levels, X[:, j]).astype(np.int64)
        totals = np.zeros(column.n_levels + 1, dtype=np.uint64)
        np.add.at(totals, codes[j], weight)
        hashes[j] = mix64(totals)
    for _ in range(_ROUNDS):  # sums of unsigned integers wrap around, so their order has no effect
        rows = np.zeros(n, dtype=np.uint64)
        for j in range(p):
            rows += hashes[j][codes[j]] if nominal[j] else hashes[j]
        rows = mix64(rows) * weight
        for j in range(p):
            if nominal[j]:
                totals = hashes[j].copy()
                np.add.at(totals, codes[j], rows)
                hashes[j] = mix64(totals)
    places = [None] * p
    columns = np.zeros(p, dtype=np.uint64)
    for j, column in enumerate(layout.columns):
        if nominal[j]:
            first = np.full(column.n_levels, n)
            known = codes[j] < column.n_levels
            np.minimum.at(first, codes[j][known], np.flatnonzero(known))
            places[j] = np.argsort(np.lexsort((first, hashes[j][:-1])))
            columns[j] = mix64(hashes[j].sum(dtype=np.uint64, keepdims=True))[0]
        else:
            columns[j] = hashes[j].sum(dtype=np.uint64)
    return places, columns
