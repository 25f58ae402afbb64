"""Priors of coefficients, with their scale given or learnt, and of the noise of linear regression."""

from dataclasses import dataclass

import numpy as np

from ..dense.rows import moments
from ._design import Quadratic, check_scale, independent_prior

_ROUNDED = 0.1  # of a posterior standard deviation, the width over which a kink is rounded
_CLOSE = 0.01  # relative change at which fixed points are found
_MAX_ROUNDS = 30
# Scales tried, in units of the median of the hyperprior: from the lowest by factors, at least to the usual highest.
_LOWEST, _USUAL_HIGHEST, _FACTOR, _MAX_SCALES = 1e-6, 1e3, 4.0, 32
_ROUNDS = 2  # of improving the bound of a Laplace prior, before the slope at a scale is computed
_LITTLE = 4.0  # score statistic of a coefficient, below which a wider prior gains nothing by it


@dataclass(frozen=True)
class Kinks:
    """A Laplace prior on coefficients, less the Gaussian with ``precision`` that stands for it elsewhere.

    Parameters
    ----------
    mode, inverse_scale, width, precision : ndarray of shape (n_predictors, n_features)
        Of the columns as given.
    column_scale : ndarray of shape (n_features,)
        Spread by which dense rows are divided.
    n_more : int
        Entries of a linear predictor beside its coefficients, which have no kinks: 1 for an intercept.
    """

    mode: np.ndarray
    inverse_scale: np.ndarray
    width: np.ndarray
    precision: np.ndarray
    column_scale: np.ndarray
    n_more: int

    def rows(self, is_sparse):
        """As the kernels read them: (mode, inverse scale, squared width, precision) of each entry, in their order."""
        unit = 1.0 if is_sparse else self.column_scale
        each = [self.mode * unit, self.inverse_scale / unit, (self.width * unit) ** 2, self.precision / unit**2]
        each = np.stack(np.broadcast_arrays(*each), axis=-1)
        n_predictors, _, four = each.shape
        more = np.zeros((n_predictors, self.n_more, four))
        each = np.concatenate([each, more], axis=1)
        return (each.swapaxes(0, 1) if is_sparse else each).reshape(-1, four)


def half_cauchy_slope(scale, unit):
    """Derivative of the log density of log(scale), scale being half-Cauchy with median ``unit``."""
    return 1.0 - 2.0 * scale**2 / (unit**2 + scale**2)


def typical_scale(X, weight, size=1.0):
    """The scale at which a typical column moves the linear predictor by ``size``."""
    _, spread, varies = moments(X, weight)
    return size / np.sqrt(np.mean(spread[varies] ** 2)) if varies.any() else size


def column_units(X, weight, fit_intercept):
    """By what the columns of X, dense or sparse, are divided to standardise them; 1 for those that do not vary.

    Without an intercept nothing is subtracted from a column, so that its unit is its root mean square.
    """
    mean, spread, varies = moments(X, weight)
    if not fit_intercept:
        spread = np.sqrt(spread**2 + mean**2)
        varies = spread > 0
    return np.where(varies, spread, 1.0)


def all_zero(X):
    """Which columns of X, dense or sparse, hold nothing but zeros."""
    return np.asarray((X != 0).sum(axis=0)).ravel() == 0


def find_design(make, X, weight, n_predictors, prior, prior_scale, intercept_scale, unit=None, columns=None):
    """The design under a prior of given or learnt scale, and that scale.

    Parameters
    ----------
    make : callable
        Gives the design under a `Quadratic`; of an optional second argument, it may start at that design's mode.
    X, weight : ndarray or csr_matrix of shape (n, n_features), ndarray of shape (n,)
        Rows and their weights.
    n_predictors : int
    prior : {"normal", "laplace"}
    prior_scale : float or "auto"
    intercept_scale : float or None
    unit : float, default=None
        Median of the half-Cauchy prior of a scale to be learnt; None is `typical_scale`, or 1 for standardised columns.
    columns : ndarray of shape (n_features,), default=None
        Units of the columns: a scale to be learnt is that of the coefficients times these. None is 1.
    """
    learns = prior_scale == "auto"
    search = _Search(make, (n_predictors, X.shape[1]), prior == "laplace", intercept_scale, columns if learns else None)
    if not learns:
        check_scale("prior_scale", prior_scale)
        if prior == "normal":
            return make(independent_prior(n_predictors, X.shape[1], prior_scale, intercept_scale)), float(prior_scale)
        return search.settled(float(prior_scale)), float(prior_scale)
    if unit is None:
        unit = typical_scale(X, weight) if columns is None else 1.0
    scale = search.mode(unit)
    return search.settled(scale), scale


class _Search:
    """Designs under priors of one scale after another."""

    def __init__(self, make, shape, is_laplace, intercept_scale, columns):
        self.make, self.shape, self.is_laplace, self.intercept_scale = make, shape, is_laplace, intercept_scale
        self.columns = np.ones(shape[1]) if columns is None else columns
        # Root of each coefficient's second moment, in units of the columns, at which the Gaussian bound touches.
        self.centre = None

    def design(self, scale, *start):
        """The design under the Gaussian that is, or bounds, the prior of this scale.

        Also the Gaussian's precision, and the posterior mean and variance, of each coefficient; of standardised columns
        if these have units.
        """
        precision = np.full(self.shape, scale**-2.0)
        if self.is_laplace:
            precision = 1.0 / (scale * (scale if self.centre is None else self.centre)) * np.ones(self.shape)
        given = precision * self.columns**2
        if self.intercept_scale is not None:
            rest = independent_prior(self.shape[0], 0, 1.0, self.intercept_scale).precision
            given = np.column_stack([given, rest])
        found = self.make(Quadratic(np.zeros(given.size), given.ravel()), *start)
        mean, variance = found.coef_moments()
        mean, variance = mean * self.columns, variance * self.columns**2
        self.centre = np.sqrt(mean**2 + variance)
        return found, precision, mean, variance

    def settled(self, scale):
        """The design at this scale; that of a Laplace prior in the Gaussian bound that fits best."""
        found, precision, mean, variance = self.design(scale)
        if not self.is_laplace:
            return found
        for _ in range(_MAX_ROUNDS):
            before = precision
            found, precision, mean, variance = self.design(scale)
            if np.abs(np.log(precision / before)).max() < _CLOSE:
                break
        width, more = _ROUNDED * np.sqrt(variance), int(self.intercept_scale is not None)
        of_columns = self.columns / scale * np.ones(self.shape)
        found.kinks = Kinks(
            mean / self.columns, of_columns, width / self.columns, precision * self.columns**2, found.scale, more
        )
        return found

    def mode(self, unit):
        """The highest mode of the posterior of log(scale).

        There may be several, for example where columns as given differ in size. So the slope is computed over the whole
        range, and its integral compares them.
        """
        path, step = _Path(self, unit), np.log(_FACTOR)
        logs = [np.log(unit * _LOWEST)]
        slopes = [path.slope(logs[0])]
        while len(logs) < _MAX_SCALES and not (logs[-1] > np.log(unit * _USUAL_HIGHEST) and path.has_all):
            logs.append(logs[-1] + step)
            slopes.append(path.slope(logs[-1]))
        slopes = np.array(slopes)
        best = int(np.argmax(np.append(0.0, np.cumsum(slopes[:-1] + slopes[1:]))))
        low, high = (best, best + 1) if slopes[best] > 0 else (best - 1, best)
        if low < 0 or high == len(logs):
            return float(np.exp(logs[best]))
        low, high = logs[low], logs[high]
        # No method that relies on the signs at both ends: the bound of a Laplace prior gets closer with each call.
        while high - low > _CLOSE:
            middle = (low + high) / 2.0
            low, high = (middle, high) if path.slope(middle) > 0 else (low, middle)
        return float(np.exp((low + high) / 2.0))


class _Path:
    """The slope of the log posterior of log(scale) at one scale after another, each design starting from the last.

    ``has_all`` says whether, at the last scale, no coefficient would gain by a wider prior.
    """

    def __init__(self, search, unit):
        self.search, self.unit = search, unit
        self.last, self.before, self.has_all = None, [], False

    def slope(self, log_scale):
        """Derivative of the log posterior of log(scale), up to a positive factor."""
        search, scale = self.search, np.exp(log_scale)
        if search.is_laplace:
            self._guess_centre(log_scale)
            for _ in range(_ROUNDS):
                self._improve_centre(scale)
        self.last, precision, mean, variance = search.design(scale, self.last)
        informed = np.maximum(1.0 / variance - precision, 1e-10 * precision)
        self.has_all = bool(((mean * precision) ** 2 / informed).max(initial=0.0) < _LITTLE)
        if search.is_laplace:
            self.before = [*self.before[-1:], (log_scale, search.centre)]
            slope = search.centre.sum() / scale - search.centre.size
        else:
            slope = ((mean**2 + variance) * precision - 1.0).sum()
        return slope + half_cauchy_slope(scale, self.unit)

    def _guess_centre(self, log_scale):
        """Continue the line through the last two centres, on logarithmic scales; first that of the prior."""
        search = self.search
        if not self.before:
            return
        y, later = self.before[-1]
        growth = 1.0
        if len(self.before) > 1:
            x, earlier = self.before[0]
            growth = np.clip(np.log(later / earlier) / (y - x), 0.0, 1.0)
        search.centre = later * np.exp(growth * (log_scale - y))

    def _improve_centre(self, scale):
        """A Newton step, coefficient by coefficient, towards the centre that the bound at it implies."""
        search, before = self.search, self.search.centre
        self.last, precision, mean, variance = search.design(scale, self.last)
        if before is None:
            return
        # By how much the logarithm of the centre found follows that of the centre given.
        follows = variance * precision * (0.5 * variance + mean**2) / search.centre**2
        search.centre = before * (search.centre / before) ** (1.0 / (1.0 - np.minimum(follows, 0.9)))


@dataclass(frozen=True)
class InverseChiSquared:
    """Scaled inverse chi-squared prior of the noise's variance: as if ``freedom`` residuals of size ``scale``."""

    freedom: float
    scale: float

    @property
    def square(self):
        """Sum of squares of these residuals."""
        return self.freedom * self.scale**2

    def derivatives(self, variance):
        """Derivative of the log density of the log standard deviation, and minus the second one."""
        own = self.square / variance
        return own - self.freedom, 2.0 * own

    def best(self, total, square):
        """The variance at the mode of the log standard deviation, given ``total`` residuals of this sum of squares."""
        return (square + self.square) / (total + self.freedom)

    def draw(self, total, square, variance, rng):
        """The next variance, after this one, given ``total`` residuals of this sum of squares."""
        return (square + self.square) / rng.chisquare(total + self.freedom)

    def tail(self, variance):
        """Of the log density, which has the term -power * log(1 + odds * growth of the variance): power and odds."""
        return 0.0, 1.0

    def with_floor(self, floor):
        """The same: this prior keeps the noise from 0 by itself."""
        return self


@dataclass(frozen=True)
class HalfT:
    """Half-t prior of the noise's standard deviation, flat far below ``scale``; half-Cauchy for one of ``freedom``.

    A residual of size ``floor`` keeps the noise from 0 where coefficients fit all rows.
    """

    freedom: float
    scale: float
    floor: float = 0.0

    @property
    def square(self):
        """Square of that residual."""
        return self.floor**2

    def _odds(self, variance):
        return variance / (self.freedom * self.scale**2)

    def derivatives(self, variance):
        """As `InverseChiSquared.derivatives`."""
        own, odds = self.square / variance, self._odds(variance)
        share = odds / (1.0 + odds)
        return own + 1.0 - (self.freedom + 1.0) * share, 2.0 * (own + (self.freedom + 1.0) * share * (1.0 - share))

    def best(self, total, square):
        """As `InverseChiSquared.best`: the positive root of a quadratic equation."""
        square, unit = square + self.square, self.freedom * self.scale**2
        a, b, c = total + self.freedom, 0.5 * (total - 1.0 - square / unit), square / unit
        root = np.sqrt(b * b + a * c)
        return unit * (c / (b + root) if b > 0 else (root - b) / a)

    def draw(self, total, square, variance, rng):
        """As `InverseChiSquared.draw`: that distribution given its scale, which is drawn first (Huang and Wand)."""
        rate = self.freedom / variance + self.scale**-2.0
        scale = 2.0 * self.freedom * rng.gamma(0.5 * (self.freedom + 1.0)) / rate
        return (square + self.square + scale) / rng.chisquare(total + self.freedom)

    def tail(self, variance):
        """As `InverseChiSquared.tail`."""
        return 0.5 * (self.freedom + 1.0), self._odds(variance)

    def with_floor(self, floor):
        """The same with another floor."""
        return HalfT(self.freedom, self.scale, float(floor))
