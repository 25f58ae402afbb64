"""Kinds of columns: how cells become numbers, what their priors are, and how their parameters are drawn.

Each kind is a class with the same methods. Its conjugate updates are in `sk_sgmcmc.kernels.models.mixed_rows`, whose
layout of statistics it follows.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import gammaln

from ...chains.chain import TINY
from ...dense.rows import LARGEST
from ...utils._warnings import warn_of_levels
from .._dirichlet_process.cells import as_numbers, is_missing, places_of, split_weights

_MOST_CODES = 10  # whole numbers with more distinct values are counts or continuous, not codes of categories
_LARGEST_COUNT = 2.0**40
# As in `sk_sgmcmc.kernels.models.mixed_rows`, which is compiled at its first use.
CATEGORICAL, ORDINAL, COUNT, CONTINUOUS = 0, 1, 2, 3
KINDS = ("categorical", "ordinal", "binary", "count", "continuous")


@dataclass(frozen=True)
class Priors:
    """Priors of the parameters of clusters.

    Parameters
    ----------
    category : float or ndarray of shape (n_columns,)
        Dirichlet parameter of each level of categorical and binary columns.
    ordinal : float
        Number of rows that the prior of a continuation ratio counts, centred on the ratio in all rows.
    count : float
        Shape of the gamma prior of a rate, whose mean is the mean of all rows.
    continuous : tuple of three float
        For standardised columns: number of rows that the prior of the mean, 0, counts, and shape and scale of the
        inverse gamma prior of the variance.
    """

    category: object = 0.5
    ordinal: float = 2.0
    count: float = 1.0
    continuous: tuple = (0.1, 2.0, 0.5)

    def category_of(self, j):
        """Dirichlet parameter of column j."""
        return float(self.category if np.ndim(self.category) == 0 else self.category[j])


class Column:
    """A column of a table, as fitted.

    Parameters
    ----------
    name : object
        Name or index, for messages and tables.
    """

    kind = ""
    code = -1  # kind in the kernels
    is_nominal = False  # whether the order of the levels is arbitrary

    def encode(self, values, unknown):
        """Cells as float64, NaN if missing; descriptions of unknown levels are appended to the list ``unknown``."""
        there = ~is_missing(values)
        out = np.full(values.shape[0], np.nan)
        numbers = as_numbers(values[there])
        if numbers is None:
            raise ValueError(f"Column {self.name!r} of X is {self.kind} and must hold numbers; it holds text.")
        out[there] = self._checked(numbers)
        return out

    def row_constant(self, cells):
        """Terms of the log density of cells that are the same in all clusters."""
        return np.zeros(cells.size)


@dataclass(frozen=True, eq=False)
class CategoricalColumn(Column):
    """Levels without order, with a Dirichlet prior of their probabilities.

    Parameters
    ----------
    name : object
    levels : ndarray
    concentration : float
        Dirichlet parameter of each level.
    """

    name: object
    levels: np.ndarray
    concentration: float = 0.5

    kind = "categorical"
    code = CATEGORICAL
    is_nominal = True

    @classmethod
    def fit(cls, name, values, declared, weight, priors, j):
        """Learn levels."""
        return cls(name, levels_of(name, values, declared, cls.kind), priors.category_of(j))

    @property
    def n_levels(self):
        """Number of levels."""
        return len(self.levels)

    @property
    def n_stats(self):
        """Number of statistics."""
        return self.n_levels + 1

    def prior(self):
        """Parameters of the prior, in the layout of the statistics."""
        return np.append(np.full(self.n_levels, self.concentration), self.n_levels * self.concentration)

    def encode(self, values, unknown):
        """As for `Column`: indices of levels."""
        there = np.flatnonzero(~is_missing(values))
        out = np.full(values.shape[0], np.nan)
        if self.levels.dtype == object:
            code = places_of(values[there], self.levels)
        else:
            numbers = as_numbers(values[there])
            if numbers is None:
                raise ValueError(f"Column {self.name!r} of X holds text, but held numbers when the model was fitted.")
            place = np.minimum(np.searchsorted(self.levels, numbers), self.n_levels - 1)
            code = np.where(self.levels[place] == numbers, place, -1)
        if np.any(code < 0):
            unknown.append(f"{values[there][code < 0][0]} in column {self.name!r}")
        out[there] = np.where(code >= 0, code, np.nan)
        return out

    def entries(self):
        """Level and statistic of each parameter."""
        return [(level, "probability") for level in self.levels]

    def draw(self, stats, rng):
        """Draw parameters (n_clusters, n_entries) given statistics (n_stats, n_clusters)."""
        shape = self.prior()[:-1, None] + stats[:-1]
        cells = np.maximum(rng.standard_gamma(shape), TINY)
        return (cells / cells.sum(axis=0)).T

    def table(self, parameters):
        """Parameters (n_clusters, n_entries) as `log_densities` of the kernels reads them."""
        logs = np.log(np.maximum(parameters, TINY)).T
        return np.concatenate([logs, np.zeros((1, len(parameters)))])

    def prior_mean(self):
        """Prior mean of the parameters."""
        return np.full(self.n_levels, 1.0 / self.n_levels)

    def with_levels_at(self, places):
        """The column with its levels in another order: level l becomes level ``places[l]``."""
        return replace(self, levels=self.levels[np.argsort(places)])


@dataclass(frozen=True, eq=False)
class BinaryColumn(CategoricalColumn):
    """Two levels, whose second one results report; a beta prior."""

    kind = "binary"

    @classmethod
    def fit(cls, name, values, declared, weight, priors, j):
        """Learn levels."""
        levels = levels_of(name, values, declared, cls.kind)
        if len(levels) > 2:
            raise ValueError(
                f"Column {name!r} of X has {len(levels)} levels, such as {levels[0]!r}, {levels[1]!r} and "
                f'{levels[2]!r}, but columns={{{name!r}: "binary"}} allows two. Use "categorical" or "ordinal".'
            )
        return cls(name, _with_other(levels), priors.category_of(j))


def _with_other(levels):
    """Two levels: a column of 0, 1, False or True alone gets the other one, and any other single level a blank one."""
    if len(levels) == 2:
        return levels
    only = levels[0]
    if levels.dtype == object and isinstance(only, (bool, np.bool_)):
        return np.array([False, True], dtype=object)
    if levels.dtype != object:
        return np.array([0, 1] if only in (0, 1) else [only, only + 1])
    return np.array([only, None], dtype=object)


@dataclass(frozen=True, eq=False)
class OrdinalColumn(CategoricalColumn):
    """Levels in order, with beta priors of continuation ratios, centred on the ratios in all rows.

    Parameters
    ----------
    ratios : ndarray of shape (n_levels - 1,)
        Share of the rows at each level among those that reach it, in all rows.
    strength : float
        Number of rows that the prior counts.
    """

    ratios: np.ndarray = field(default_factory=lambda: np.zeros(0))
    strength: float = 2.0

    kind = "ordinal"
    code = ORDINAL
    is_nominal = False

    @classmethod
    def fit(cls, name, values, declared, weight, priors, j):
        """Learn levels and ratios."""
        if declared is None and as_numbers(values[~is_missing(values)]) is None:
            raise ValueError(
                f"Column {name!r} of X holds text, whose order is unknown, but is to be ordinal. Pass an ordered "
                "categorical of pandas, or numbers."
            )
        plain = cls(name, levels_of(name, values, declared, cls.kind))
        codes = plain.encode(values, [])
        known = ~np.isnan(codes)
        n = np.bincount(codes[known].astype(np.int64), weight[known], plain.n_levels)
        reached = np.cumsum(n[::-1])[::-1]
        return replace(plain, ratios=(n[:-1] + 0.5) / (reached[:-1] + 1.0), strength=float(priors.ordinal))

    @property
    def n_stats(self):
        """Number of statistics."""
        return 2 * self.n_levels

    def prior(self):
        """Parameters of the prior, in the layout of the statistics; the last level has none."""
        stop = np.append(self.strength * self.ratios, 1.0)
        return np.concatenate([stop, np.append(self.strength * (1.0 - self.ratios), 1.0)])

    def draw(self, stats, rng):
        """As for `CategoricalColumn`."""
        prior, n = self.prior()[:, None], self.n_levels
        ratios = rng.beta(prior[: n - 1] + stats[: n - 1], prior[n:-1] + stats[n:-1])
        return self._probabilities(ratios.T)

    @staticmethod
    def _probabilities(ratios):
        """Probabilities of levels (..., n_levels) from continuation ratios (..., n_levels - 1)."""
        ends = (*ratios.shape[:-1], 1)
        reached = np.cumprod(np.concatenate([np.ones(ends), 1.0 - ratios], axis=-1), axis=-1)
        return reached * np.concatenate([ratios, np.ones(ends)], axis=-1)

    def table(self, parameters):
        """As for `CategoricalColumn`."""
        logs = np.log(np.maximum(parameters, TINY)).T
        return np.concatenate([logs, np.zeros_like(logs)])

    def prior_mean(self):
        """Prior mean of the parameters."""
        return self._probabilities(self.ratios)


@dataclass(frozen=True, eq=False)
class CountColumn(Column):
    """Counts, Poisson with a gamma prior of the rate, whose mean is the mean of all rows.

    Parameters
    ----------
    name : object
    mean : float
        Prior mean of the rate.
    shape : float
        Shape of the prior.
    """

    name: object
    mean: float
    shape: float = 1.0

    kind = "count"
    code = COUNT
    n_stats = 4

    @classmethod
    def fit(cls, name, values, declared, weight, priors, j):
        """Learn the mean."""
        plain = cls(name, 1.0)
        cells = plain.encode(values, [])
        known = ~np.isnan(cells)
        total = weight[known].sum()
        mean = (weight[known] @ cells[known] + 0.5) / (total + 1.0) if total > 0 else 1.0
        return cls(name, float(mean), float(priors.count))

    def _checked(self, numbers):
        bad = (numbers < 0) | (numbers != np.floor(numbers)) | ~np.isfinite(numbers) | (numbers > _LARGEST_COUNT)
        if bad.any():
            raise ValueError(
                f"Column {self.name!r} of X is a count, and must hold whole numbers from 0 to 2^40; it holds "
                f'{numbers[bad][0]:g}. Use columns={{{self.name!r}: "continuous"}} for measurements.'
            )
        return numbers

    def prior(self):
        """Parameters of the prior, in the layout of the statistics."""
        return np.array([self.shape / self.mean, self.shape, 0.0, 0.0])

    def row_constant(self, cells):
        """As for `Column`: minus log x!."""
        return np.where(np.isnan(cells), 0.0, -gammaln(np.where(np.isnan(cells), 0.0, cells) + 1.0))

    def entries(self):
        """As for `CategoricalColumn`."""
        return [("", "mean")]

    def draw(self, stats, rng):
        """As for `CategoricalColumn`."""
        rate, shape = self.prior()[:2]
        return np.maximum(rng.standard_gamma(shape + stats[1]) / (rate + stats[0]), TINY)[:, None]

    def table(self, parameters):
        """As for `CategoricalColumn`."""
        rates = np.maximum(parameters[:, 0], TINY)
        return np.stack([np.log(rates), rates, np.zeros_like(rates), np.zeros_like(rates)])

    def prior_mean(self):
        """Prior mean of the parameters."""
        return np.array([self.mean])


@dataclass(frozen=True, eq=False)
class ContinuousColumn(Column):
    """Measurements, normal with a normal-inverse-gamma prior in units of the mean and standard deviation of all rows.

    Parameters
    ----------
    name : object
    shift, scale : float
        Mean and standard deviation of all rows.
    priors : tuple of three float
        As ``continuous`` of `Priors`.
    """

    name: object
    shift: float
    scale: float
    priors: tuple = (0.1, 2.0, 0.5)

    kind = "continuous"
    code = CONTINUOUS
    n_stats = 4

    @classmethod
    def fit(cls, name, values, declared, weight, priors, j):
        """Learn units."""
        cells = cls(name, 0.0, 1.0).encode(values, [])
        known = ~np.isnan(cells)
        shift, scale = 0.0, 1.0
        if known.any() and weight[known].sum() > 0:
            copies, each = split_weights(weight[known])
            each, cells = np.repeat(each, copies), np.repeat(cells[known], copies)
            first, total = cells.min(), math.fsum(each)
            shift = first + math.fsum(each * (cells - first)) / total  # `fsum` is exact, so order has no effect
            apart = np.abs(cells - shift)
            furthest = max(apart.max(), 1e-300)
            spread = furthest * math.sqrt(math.fsum(each * (apart / furthest) ** 2) / total)  # squares may underflow
            scale = spread if spread > 1e-12 * np.abs(cells).max() else max(abs(shift), 1.0)
        return cls(name, float(shift), float(scale), tuple(map(float, priors.continuous)))

    def _checked(self, numbers):
        if not np.all(np.abs(numbers) <= LARGEST):
            raise ValueError(
                f"Column {self.name!r} of X must hold finite numbers up to {LARGEST:g}, or NaN where missing; it holds "
                f"{numbers[~(np.abs(numbers) <= LARGEST)][0]:g}."
            )
        return (numbers - self.shift) / self.scale

    def prior(self):
        """Parameters of the prior, in the layout of the statistics."""
        return np.append(self.priors, 0.0)

    def row_constant(self, cells):
        """As for `Column`: the density refers to the units of the column."""
        return np.where(np.isnan(cells), 0.0, -np.log(self.scale))

    def entries(self):
        """As for `CategoricalColumn`."""
        return [("", "mean"), ("", "sd")]

    def draw(self, stats, rng):
        """As for `CategoricalColumn`; parameters are in the units of the column."""
        n0, shape, scale = self.priors
        n = n0 + stats[0]
        mean = stats[1] / n
        scale = scale + 0.5 * np.maximum(stats[2] - n * mean**2, 0.0)
        variance = scale / np.maximum(rng.standard_gamma(shape + 0.5 * stats[0]), TINY)
        mean = mean + np.sqrt(variance / n) * rng.standard_normal(mean.size)
        return np.stack([self.shift + self.scale * mean, self.scale * np.sqrt(variance)], axis=1)

    def table(self, parameters):
        """As for `CategoricalColumn`."""
        mean = (parameters[:, 0] - self.shift) / self.scale
        sd = np.maximum(parameters[:, 1] / self.scale, TINY)
        return np.stack([-np.log(sd) - 0.5 * np.log(2.0 * np.pi), mean, 1.0 / sd, np.zeros_like(sd)])

    def prior_mean(self):
        """Prior mean of the mean, and the standard deviation at the prior mean of the variance."""
        _, shape, scale = self.priors
        return np.array([self.shift, self.scale * np.sqrt(scale / max(shape - 1.0, 0.5))])


_CLASSES = {each.kind: each for each in (CategoricalColumn, OrdinalColumn, BinaryColumn, CountColumn, ContinuousColumn)}


def fitted_column(kind, name, values, declared, weight, priors, j):
    """A column of a kind, one of `KINDS`, with what it learns from its values."""
    return _CLASSES[kind].fit(name, values, declared, weight, priors, j)


def levels_of(name, values, declared, kind):
    """Levels of a column: the declared ones, or else those that occur, sorted; at least one."""
    seen = values[~is_missing(values)]
    if declared is not None:
        found = np.array([*declared, None], dtype=object)[:-1]
        n_seen = len(set(seen.tolist()))
    else:
        numbers = None if all(isinstance(v, (bool, np.bool_)) for v in seen.tolist()) else as_numbers(seen)
        if numbers is not None:
            found = np.unique(numbers)
            is_whole = np.all((found == np.floor(found)) & (np.abs(found) < 2.0**53))
            found = found.astype(np.int64) if is_whole else found
        elif len(seen) and isinstance(seen[0], (bool, np.bool_)):
            found = np.array([False, True, None], dtype=object)[:-1]
        else:
            found = np.array([*sorted({str(v) for v in seen}), None], dtype=object)[:-1]
        n_seen = len(found)
    warn_of_levels(found, n_seen, len(values), f"Column {name!r} of X")
    return found if len(found) else np.array([None], dtype=object)


def inferred_kind(column, values, declared):
    """The kind of a column, from its dtype and its values.

    Parameters
    ----------
    column : Series or ndarray
        The column as passed.
    values : ndarray
        Its values.
    declared : list or None
        Levels that its dtype declares.
    """
    if declared is not None:
        return "ordinal" if getattr(column.dtype, "ordered", False) else "categorical"
    seen = values[~is_missing(values)]
    dtype_kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if dtype_kind == "b" or (len(seen) and all(isinstance(v, (bool, np.bool_)) for v in seen.tolist())):
        return "binary"
    numbers = as_numbers(seen)
    if numbers is None or (not len(seen) and dtype_kind not in "iuf"):
        return "categorical"
    is_whole = np.all(numbers == np.floor(numbers)) and np.all(np.isfinite(numbers))
    if not is_whole or not len(seen):
        return "continuous"
    n_levels = np.unique(numbers).size
    if n_levels <= 2 and numbers.min() >= 0:
        return "binary"
    if n_levels <= _MOST_CODES and numbers.min() >= 0:
        return "categorical"
    is_float = dtype_kind == "f" or (dtype_kind == "O" and any(isinstance(v, float) for v in seen.tolist()))
    return "continuous" if is_float or numbers.min() < 0 or numbers.max() > _LARGEST_COUNT else "count"


def columns_as_given(X):
    """The columns of a table or array as passed, for their dtypes."""
    if hasattr(X, "iloc"):
        return [X.iloc[:, j] for j in range(X.shape[1])]
    if hasattr(X, "columns"):
        return [X[:, j] for j in range(X.shape[1])]
    return list(np.asarray(X).T)


def kinds_of(X, given, columns):
    """The kind of each column: as ``given`` by name or index, or else inferred.

    Parameters
    ----------
    X : DataFrame or array of shape (n_rows, n_columns)
    given : "auto" or dict
    columns : list of (values, declared levels)

    Returns
    -------
    kinds : list of str
    """
    names = list(X.columns) if hasattr(X, "columns") else list(range(len(columns)))
    given = {} if isinstance(given, str) else dict(given)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(f"columns={given!r} names {unknown[0]!r}, which is no column of X; these are {names[:20]}.")
    wrong = {kind for kind in given.values() if kind not in KINDS}
    if wrong:
        raise ValueError(
            f"columns={given!r} has the kind {sorted(map(str, wrong))[0]!r}; kinds are {', '.join(KINDS)}."
        )
    passed = columns_as_given(X)
    return [
        given.get(name) or inferred_kind(each, values, declared)
        for name, each, (values, declared) in zip(names, passed, columns, strict=True)
    ]


def names_of(X, n_columns):
    """Names of the columns, or their indices."""
    return list(X.columns) if hasattr(X, "columns") else list(range(n_columns))
