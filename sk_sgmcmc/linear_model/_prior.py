"""Priors of coefficients, with a given or learnt scale, and of the noise of linear regression."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..dense.rows import moments
from ._design import Quadratic, check_scale, factorised, independent_prior

_ROUNDED = 0.1  # width over which a kink is rounded, in posterior standard deviations
_CLOSE = 0.01  # relative change at which fixed-point iterations and the search for a scale stop
_MAX_ROUNDS = 30
_MAX_EXPANSIONS = 12  # of the likelihood, each at the best scale under the last one
# Grid of scales in units of the median of the hyperprior: a geometric sequence from the lowest, past the usual highest.
_LOWEST, _USUAL_HIGHEST, _FACTOR, _MAX_SCALES = 1e-6, 1e3, 4.0, 32
_ROUNDS = 2  # updates of the Gaussian bound of a Laplace prior before the slope at a scale is computed
_LITTLE = 4.0  # score statistic of a coefficient below which a wider prior would hardly improve its fit


@dataclass(frozen=True)
class Kinks:
    """Correction from the Gaussian of a design to the Laplace prior with rounded kinks.

    Parameters
    ----------
    mode, inverse_scale, width, precision : ndarray of shape (n_predictors, n_features)
        For coefficients of the columns as given: mode of the posterior, inverse scale of the Laplace prior, width over
        which its kink is rounded, and precision of the Gaussian that replaces it in the design.
    column_scale : ndarray of shape (n_features,)
        Spread by which dense rows are divided.
    n_more : int
        Number of entries of a linear predictor after its coefficients, which have no kinks: 1 for an intercept.
    """

    mode: np.ndarray
    inverse_scale: np.ndarray
    width: np.ndarray
    precision: np.ndarray
    column_scale: np.ndarray
    n_more: int

    def rows(self, is_sparse):
        """Rows (mode, inverse scale, squared width, precision) of each entry, in the order of the kernels' state."""
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
    """The coefficient with which one standard deviation of a typical column moves the linear predictor by ``size``."""
    _, spread, varies = moments(X, weight)
    return size / np.sqrt(np.mean(spread[varies] ** 2)) if varies.any() else size


def column_units(X, weight, fit_intercept):
    """Standard deviations of the columns of X, dense or sparse; 1 for columns that do not vary.

    Without an intercept nothing is subtracted from a column, so its unit is its root mean square.
    """
    mean, spread, varies = moments(X, weight)
    if not fit_intercept:
        spread = np.sqrt(spread**2 + mean**2)
        varies = spread > 0
    return np.where(varies, spread, 1.0)


def all_zero(X):
    """Mask (n_features,) of the columns of X, dense or sparse, that contain only zeros."""
    return np.asarray((X != 0).sum(axis=0)).ravel() == 0


def find_design(make, X, weight, n_predictors, prior, prior_scale, intercept_scale, unit=None, columns=None):
    """The design under a prior of given or learnt scale, and that scale.

    Parameters
    ----------
    make : callable
        ``make(prior, last=None)`` returns the design under a `Quadratic` prior. Its search may start at the mode of the
        design ``last``.
    X, weight : ndarray or csr_matrix of shape (n, n_features), ndarray of shape (n,)
        Rows and their weights.
    n_predictors : int
    prior : {"normal", "laplace"}
    prior_scale : float or "auto"
    intercept_scale : float or None
    unit : float, default=None
        Median of the half-Cauchy prior of a learnt scale. None: `typical_scale`, or 1 if ``columns`` are passed.
    columns : ndarray of shape (n_features,), default=None
        Units of the columns: a learnt scale refers to the coefficients times these units. None: 1.
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
    """Designs under priors of different scales, and the search for the best scale.

    For a Laplace prior, the Gaussian bound found at one scale is the start at the next.
    """

    def __init__(self, make, shape, is_laplace, intercept_scale, columns):
        self.make, self.shape, self.is_laplace, self.intercept_scale = make, shape, is_laplace, intercept_scale
        self.columns, self.is_standardised = np.ones(shape[1]) if columns is None else columns, columns is not None
        # Root of each coefficient's posterior second moment, where the Gaussian bound touches the Laplace prior; for
        # coefficients times the units of the columns.
        self.centre = None

    def design(self, scale, *start):
        """The design under a Gaussian: the prior of this scale, or a bound of it.

        Returns the design, the Gaussian's precision, and the posterior mean and variance of each coefficient, times the
        units of the columns.
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
        """The design at this scale; for a Laplace prior, under the Gaussian bound that fits best and with `Kinks`."""
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
        """The scale at the highest mode of the posterior of log(scale)."""
        if self.is_standardised and not self.is_laplace and self.shape[0] == 1:
            scale = self._fixed_point(unit)
            if scale is not None:
                return scale
        path = _Path(self, unit)
        return float(np.exp(highest_mode(path.slope, unit, lambda: path.has_all)))

    def _fixed_point(self, unit):
        """The scale that is best under the second-order expansion of the likelihood at its own design.

        The slope at the design's own scale is then the same as `_Path.slope`. None if no scale is found in a few
        rounds, or if there are too many coefficients for the expansion.
        """
        log_scale, design = np.log(unit), None
        for _ in range(_MAX_EXPANSIONS):
            design, precision, _, _ = self.design(np.exp(log_scale), design)
            posterior = design.summary
            if posterior.precision.ndim == 1:
                return None
            expansion = _Expansion(posterior, precision[0], self.columns, unit)
            before, log_scale = log_scale, highest_mode(expansion.slope, unit, lambda: True)
            if abs(log_scale - before) < _CLOSE:
                return float(np.exp(log_scale))
        return None


def highest_mode(slope, unit, has_all):
    """The log scale at the highest mode of a log posterior with this ``slope``, a function of log(scale).

    There may be several modes, for example if columns as given differ in size. The slope is therefore computed over the
    whole range of scales, and its integral compares the modes. ``has_all()`` says whether the range may end at the
    usual highest scale.
    """
    step = np.log(_FACTOR)
    logs = [np.log(unit * _LOWEST)]
    slopes = [slope(logs[0])]
    while len(logs) < _MAX_SCALES and not (logs[-1] > np.log(unit * _USUAL_HIGHEST) and has_all()):
        logs.append(logs[-1] + step)
        slopes.append(slope(logs[-1]))
    slopes = np.array(slopes)
    best = int(np.argmax(np.append(0.0, np.cumsum(slopes[:-1] + slopes[1:]))))
    low, high = (best, best + 1) if slopes[best] > 0 else (best - 1, best)
    if low < 0 or high == len(logs):
        return logs[best]
    low, high = logs[low], logs[high]
    # Plain bisection: methods that rely on the slopes at both ends fail, since the bound of a Laplace prior improves
    # with each call.
    while high - low > _CLOSE:
        middle = (low + high) / 2.0
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return (low + high) / 2.0


class _Expansion:
    """The slope of the log posterior of log(scale) if the log likelihood is quadratic; for one linear predictor.

    Parameters
    ----------
    posterior : Quadratic
        Gaussian of the coefficients of the columns as given, and of the intercept, under a normal prior with mean 0.
    precision : ndarray of shape (n_features,)
        Precision of that prior, for coefficients times the units of the columns.
    columns : ndarray of shape (n_features,)
        Units of the columns.
    unit : float
        Median of the half-Cauchy prior of the scale.
    """

    def __init__(self, posterior, precision, columns, unit):
        d = columns.size
        units = np.append(columns, np.ones(len(posterior.mean) - d))
        self.information = posterior.precision / np.outer(units, units)  # of coefficients times units
        self.pull = self.information @ (posterior.mean * units)
        self.information[np.arange(d), np.arange(d)] -= precision
        self.n_coef, self.unit = d, unit

    def slope(self, log_scale):
        """As `_Path.slope`."""
        precision, d = np.exp(-2.0 * log_scale), self.n_coef
        total = self.information.copy()
        total[np.arange(d), np.arange(d)] += precision
        each, root = factorised(total)
        mean = each * linalg.cho_solve((root, True), each * self.pull)
        variance = each**2 * (linalg.solve_triangular(root, np.eye(len(root)), lower=True) ** 2).sum(axis=0)
        slope = ((mean[:d] ** 2 + variance[:d]) * precision - 1.0).sum()
        return slope + half_cauchy_slope(np.exp(log_scale), self.unit)


class _Path:
    """The slope of the log posterior of log(scale) along a sequence of scales; each design starts from the last one.

    ``has_all`` says whether, at the last scale, a wider prior would not improve the fit of any coefficient.
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
        """Extrapolate the centre of the bound from the last two scales, linearly in the logarithms."""
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
        """Make a Newton step of each coefficient's centre towards the fixed point of the bound's update."""
        search, before = self.search, self.search.centre
        self.last, precision, mean, variance = search.design(scale, self.last)
        if before is None:
            return
        # Derivative of the logarithm of the updated centre with respect to the logarithm of the previous one.
        follows = variance * precision * (0.5 * variance + mean**2) / search.centre**2
        search.centre = before * (search.centre / before) ** (1.0 / (1.0 - np.minimum(follows, 0.9)))


@dataclass(frozen=True)
class InverseChiSquared:
    """Scaled inverse chi-squared prior of the noise's variance, which acts like ``freedom`` residuals of ``scale``."""

    freedom: float
    scale: float

    @property
    def square(self):
        """Sum of squares of the residuals that the prior adds."""
        return self.freedom * self.scale**2

    def derivatives(self, variance):
        """First, and minus the second, derivative of the log density of the log standard deviation."""
        own = self.square / variance
        return own - self.freedom, 2.0 * own

    def best(self, total, square):
        """The variance at the mode of the log standard deviation, given the number and sum of squares of residuals."""
        return (square + self.square) / (total + self.freedom)

    def draw(self, total, square, variance, rng):
        """Draw the next variance, given the current one and the number and sum of squares of residuals."""
        return (square + self.square) / rng.chisquare(total + self.freedom)

    def tail(self, variance):
        """Power and odds of the term -power * log(1 + odds * growth of the variance) of the log density."""
        return 0.0, 1.0

    def with_floor(self, floor):
        """Return this prior, which needs no floor to keep the noise above 0."""
        return self


@dataclass(frozen=True)
class HalfT:
    """Half-t prior of the noise's standard deviation, flat far below ``scale``; half-Cauchy if ``freedom`` is 1.

    An added residual of size ``floor`` keeps the noise above 0 if coefficients fit all rows exactly.
    """

    freedom: float
    scale: float
    floor: float = 0.0

    @property
    def square(self):
        """Square of the residual that the prior adds."""
        return self.floor**2

    def _odds(self, variance):
        return variance / (self.freedom * self.scale**2)

    def derivatives(self, variance):
        """The derivatives of the log density, see `InverseChiSquared.derivatives`."""
        own, odds = self.square / variance, self._odds(variance)
        share = odds / (1.0 + odds)
        return own + 1.0 - (self.freedom + 1.0) * share, 2.0 * (own + (self.freedom + 1.0) * share * (1.0 - share))

    def best(self, total, square):
        """The variance at the mode, here the positive root of a quadratic equation; see `InverseChiSquared.best`."""
        square, unit = square + self.square, self.freedom * self.scale**2
        a, b, c = total + self.freedom, 0.5 * (total - 1.0 - square / unit), square / unit
        root = np.sqrt(b * b + a * c)
        return unit * (c / (b + root) if b > 0 else (root - b) / a)

    def draw(self, total, square, variance, rng):
        """Draw the next variance from an inverse chi-squared distribution, whose scale is drawn first (Huang, Wand)."""
        rate = self.freedom / variance + self.scale**-2.0
        scale = 2.0 * self.freedom * rng.gamma(0.5 * (self.freedom + 1.0)) / rate
        return (square + self.square + scale) / rng.chisquare(total + self.freedom)

    def tail(self, variance):
        """Power and odds, see `InverseChiSquared.tail`."""
        return 0.5 * (self.freedom + 1.0), self._odds(variance)

    def with_floor(self, floor):
        """The same prior with another floor."""
        return HalfT(self.freedom, self.scale, float(floor))
