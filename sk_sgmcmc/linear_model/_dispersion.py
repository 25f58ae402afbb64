"""Negative binomial regression: the likelihood at a dispersion, and coordinates of coefficients and dispersion."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from ..dense.rows import LARGEST, SMALLEST
from ..kernels.models.linear import design as layout
from ._design import check_distance_from_mode

_SHIFT = 8  # arguments of asymptotic series are at least this large
_SMALL = 1e-6  # dispersion times count below which two terms of the expansion at 0 suffice
_TABLE_STEP, _TABLE_END = 0.1, 18.0  # beyond this log dispersion, the table's function is linear
_TABLE_CELLS = 200_000  # counts times points that are computed at once
_LEAST_CURVATURE = 0.25  # of the log dispersion; the prior alone has 1/8 at its mode
_LONGEST_STEP, _MAX_STEPS = 2.0, 50  # of the search for the log dispersion
_MAX_ROUNDS, _CLOSE = 20, 0.02  # the search ends if the log dispersion moves by less, in its standard deviations


def rising(y, v):
    r"""log Gamma(y + r) - log Gamma(r) + y v with r = e^-v, and its first and second derivative in v.

    This is the sum of log(1 + j e^v) over j < y, for whole y. Both arguments broadcast.
    """
    y, v = np.broadcast_arrays(np.asarray(y, dtype=float), v)
    r = np.exp(-v)
    x = r + _SHIFT
    # Differences of asymptotic series, each without cancellation however large r is.
    value = (x - 0.5) * np.log1p(y / x) + y * np.log((x + y) / r) - y + _log_gamma_tail(x + y) - _log_gamma_tail(x)
    first = np.log1p(y / x) + _digamma_tail(x + y) - _digamma_tail(x)
    second = _trigamma(x + y) - _trigamma(x)
    for k in range(_SHIFT):
        low, high = r + k, r + k + y
        value -= np.log1p(y / low)
        first += y / (low * high)
        second -= y * (low + high) / (low * high) ** 2
    value, slope, curvature = value, y - r * first, r * first + r**2 * second
    a, pairs, squares = np.exp(v), 0.5 * y * (y - 1.0), (y - 1.0) * y * (2.0 * y - 1.0) / 6.0
    near = a * y < _SMALL
    value = np.where(near, a * pairs - 0.5 * a**2 * squares, value)
    slope = np.where(near, a * pairs - a**2 * squares, slope)
    return value, slope, np.where(near, a * pairs - 2.0 * a**2 * squares, curvature)


def _log_gamma_tail(x):
    f = x**-2.0
    return (1.0 / 12.0 - f * (1.0 / 360.0 - f * (1.0 / 1260.0 - f * (1.0 / 1680.0 - f / 1188.0)))) / x


def _digamma_tail(x):
    f = x**-2.0
    return -0.5 / x - f * (1.0 / 12.0 - f * (1.0 / 120.0 - f * (1.0 / 252.0 - f * (1.0 / 240.0 - f / 132.0))))


def _trigamma(x):
    f = x**-2.0
    series = f * (1.0 / 6.0 - f * (1.0 / 30.0 - f * (1.0 / 42.0 - f * (1.0 / 30.0 - f * 5.0 / 66.0))))
    return (1.0 + series) / x + 0.5 * f


class DistinctCounts:
    """The distinct counts of the rows, and their total weights: all that `rising` needs of the rows.

    Parameters
    ----------
    counts, weight : ndarray of shape (n,)
    """

    def __init__(self, counts, weight):
        self.counts, place = np.unique(counts, return_inverse=True)
        self.weight = np.bincount(place, weights=weight)

    def sums(self, v):
        """Weighted sums of `rising` and of its two derivatives, each (v.size,)."""
        out, step = np.empty((3, v.size)), max(1, _TABLE_CELLS // self.counts.size)
        for lo in range(0, v.size, step):
            part = slice(lo, lo + step)
            out[:, part] = [self.weight @ each for each in rising(self.counts[:, None], v[part])]
        return out

    def table(self):
        """First log dispersion, step, number of points, and `sums` at the points, as the kernels read them."""
        first = np.log(_SMALL / max(1.0, self.counts[-1]))
        v = first + _TABLE_STEP * np.arange(int((_TABLE_END - first) / _TABLE_STEP) + 2)
        return np.array([first, _TABLE_STEP, v.size]), self.sums(v).ravel()


class OverdispersedCounts:
    """Negative binomial likelihood with a log link, at a given dispersion.

    Responses (n, 2) are counts and logarithms of exposures.

    Parameters
    ----------
    log_dispersion : float
    """

    is_mild = False

    def __init__(self, log_dispersion):
        self.log_dispersion = log_dispersion
        with np.errstate(over="ignore"):
            self.size = np.exp(-log_dispersion)

    def _at(self, y, eta):
        """Predictor plus log exposure, and probability and log normaliser of the binomial's odds; all (n,)."""
        eta = eta[:, 0] + y[:, 1]
        z = self.log_dispersion + eta
        return eta, special.expit(z), np.logaddexp(0.0, z)

    def value(self, y, weight, eta):
        """Weighted log likelihood given linear predictors (n, 1), without terms that depend on no predictor."""
        eta, _, total = self._at(y, eta)
        with np.errstate(invalid="ignore"):
            return weight @ (y[:, 0] * eta - (y[:, 0] + self.size) * total)

    def each(self, y, eta):
        """Log likelihood of each row, without the factorial."""
        eta, _, total = self._at(y, eta)
        return rising(y[:, 0], self.log_dispersion)[0] + y[:, 0] * eta - (y[:, 0] + self.size) * total

    def residuals(self, y, weight, eta):
        """Derivative of `value` with respect to the predictors, and what `curvature` reads; shaped like ``eta``."""
        _, p, _ = self._at(y, eta)
        both = (y[:, 0] + self.size) * p
        return (weight * (y[:, 0] - both))[:, None], (both * (1.0 - p))[:, None]

    @staticmethod
    def curvature(weight, own):
        """Minus the second derivative of `value` with respect to the predictor, from the result of `residuals`."""
        return weight[:, None] * own

    @staticmethod
    def curved(weight, own, away):
        """As `Classes.curved`."""
        return weight[:, None] * own * away

    def largest_curvature(self, y, weight, n_predictors):
        """A rough value of `curvature` before any predictor is known."""
        mean = np.maximum(y[:, 0], np.average(y[:, 0], weights=weight))
        return (weight * mean / (1.0 + mean / self.size))[:, None]

    @staticmethod
    def start(y, weight):
        """Logarithm of the mean rate, at which the search for the mode starts."""
        return np.log(max(weight @ y[:, 0], 0.5)) - np.log(weight @ np.exp(y[:, 1]))

    def outputs(self, y, eta):
        """Columns that the kernels read; see `kernels.models.linear.dispersion`."""
        return np.column_stack([y, *self._at(y, eta)])

    @staticmethod
    def responses(outputs):
        """The responses in the columns of `outputs`."""
        return outputs[:, :2]

    def slopes(self, y, eta):
        """Derivatives of each row's `value` with respect to the log dispersion: first, second, and mixed; all (n,)."""
        _, p, total = self._at(y, eta)
        both = (y[:, 0] + self.size) * p
        mixed = self.size * p - both * (1.0 - p)
        return self.size * total - both, mixed + self.size * (p - total), mixed

    def curvature_slope(self, y, eta):
        """Derivative of each row's `curvature` with respect to the log dispersion, (n,)."""
        _, p, _ = self._at(y, eta)
        return p * (1.0 - p) * ((y[:, 0] + self.size) * (1.0 - 2.0 * p) - self.size)


@dataclass(frozen=True)
class DispersionPrior:
    """Half-Cauchy prior of the square root of the dispersion, whose median is ``scale``."""

    scale: float

    @property
    def log_square(self):
        """Logarithm of the square of the scale, the median of the log dispersion."""
        return 2.0 * np.log(self.scale)

    def derivatives(self, v):
        """First and second derivative of the log density of the log dispersion v."""
        share = special.expit(v - self.log_square)
        return 0.5 - share, -share * (1.0 - share)


class DispersedDesign:
    """Coordinates of the coefficients, as in the design at one dispersion, and of the log dispersion as the last one.

    Coefficients and dispersion are orthogonal in the expected Fisher information, so they are whitened separately.

    Parameters
    ----------
    make : callable
        ``make(likelihood, start)`` returns the `Design` or `DiagonalDesign` of the rows under a likelihood.
    X, y, weight : ndarray or csr_matrix of shape (n, n_features), ndarray of shape (n, 2), ndarray of shape (n,)
        Rows, counts with log exposures, and weights.
    distinct : DistinctCounts
        The distinct counts in ``y``.
    prior : DispersionPrior
    start : ndarray of shape (D,), default=None
        Where the search for the mode starts: coefficients and log dispersion.

    Attributes
    ----------
    mode : ndarray of shape (D,)
        Coefficients of standardised columns, and log dispersion. The dispersion is the one at the mode with the
        coefficients integrated out by the Gaussian at theirs. With few rows, the joint mode lies far from the bulk.
    spread : float
        Standard deviation of the log dispersion by which its coordinate is scaled.
    """

    n_predictors = 1

    def __init__(self, make, X, y, weight, distinct, prior, start=None):
        self.distinct, self.dispersion_prior = distinct, prior
        before, v = (None, prior.log_square) if start is None else (start[:-1], start[-1])
        for _ in range(_MAX_ROUNDS):
            self.coefficient_design = inner = make(OverdispersedCounts(v), before)
            rows = inner.rows(X)
            eta = inner.eta(rows)
            best, self.spread = self._find(v, y, weight, eta, inner.predictor_variances(rows))
            if abs(best - v) < _CLOSE * self.spread:
                break
            before, v = inner.mode, best
        self.mode = np.append(inner.mode, v)
        first, second, mixed = inner.likelihood.slopes(y, eta)
        self._slopes = weight @ first, weight @ (second - first)  # in the relative change of the dispersion
        self._mixed = rows.pull((weight * mixed)[:, None]).ravel()

    def _find(self, v, y, weight, eta, variances):
        """The log dispersion at its mode given the predictors of the rows, and its standard deviation."""
        for _ in range(_MAX_STEPS):
            likelihood = OverdispersedCounts(v)
            _, slope, curvature = self.distinct.sums(np.array([v]))[:, 0]
            of_rows, of_prior = likelihood.slopes(y, eta), self.dispersion_prior.derivatives(v)
            slope += weight @ of_rows[0] + of_prior[0]
            slope -= 0.5 * (weight * variances) @ likelihood.curvature_slope(y, eta)
            curvature += weight @ of_rows[1] + of_prior[1]
            spread = 1.0 / np.sqrt(max(-curvature, _LEAST_CURVATURE))
            step = float(np.clip(slope * spread**2, -_LONGEST_STEP, _LONGEST_STEP))
            v += step
            if abs(step) < 0.1 * _CLOSE * spread:
                break
        return v, spread

    @property
    def likelihood(self):
        """The likelihood at the dispersion of the mode."""
        return self.coefficient_design.likelihood

    @property
    def prior(self):
        """Prior of the coefficients."""
        return self.coefficient_design.prior

    @property
    def summary(self):
        """The Gaussian of the coefficients at the dispersion of the mode."""
        return self.coefficient_design.summary

    @property
    def scale(self):
        """Spreads of the columns."""
        return self.coefficient_design.scale

    @property
    def shift(self):
        """Means that are subtracted from dense columns."""
        return self.coefficient_design.shift

    @property
    def is_bare(self):
        """As `DiagonalDesign.is_bare`."""
        return self.coefficient_design.is_bare

    @property
    def predictor_spread(self):
        """As `DiagonalDesign.predictor_spread`."""
        return self.coefficient_design.predictor_spread

    @property
    def is_wide(self):
        """As `DiagonalDesign.is_wide`."""
        return self.coefficient_design.is_wide

    @property
    def kinks(self):
        """The `Kinks` of a Laplace prior of the coefficients, or None."""
        return self.coefficient_design.kinks

    @kinks.setter
    def kinks(self, value):
        self.coefficient_design.kinks = value

    def rows(self, X):
        """The rows in standardised columns."""
        return self.coefficient_design.rows(X)

    def eta(self, rows):
        """Linear predictors at the mode."""
        return self.coefficient_design.eta(rows)

    def coef_moments(self):
        """As `Design.coef_moments`."""
        return self.coefficient_design.coef_moments()

    def params(self, is_sparse, with_value):
        """As `Design.params`, with the numbers of the dispersion."""
        inner = self.coefficient_design
        of_coef = inner.params(is_sparse, with_value)
        order = of_coef[layout.CONTROL]
        slope, curvature = (each * (order >= least) for each, least in zip(self._slopes, (1, 2), strict=True))
        mixed = np.zeros(inner.mode.size)
        if order == layout.SECOND_ORDER:
            mixed = inner.whitener.T @ self._mixed
        head, table = self.distinct.table()
        of_coef[layout.FURTHER] = of_coef.size
        own = [self.mode[-1], self.spread, self.dispersion_prior.log_square, slope, curvature, *head]
        return np.concatenate([of_coef, own, mixed, table])

    def coefficients(self, theta):
        """Convert draws (..., D) to coefficients and intercepts, as `Design.coefficients`, and dispersions (...)."""
        with np.errstate(over="ignore"):
            dispersion = np.exp(self.mode[-1] + self.spread * theta[..., -1])
        return *self.coefficient_design.coefficients(theta[..., :-1]), np.clip(dispersion, SMALLEST, LARGEST)

    @property
    def n_entries(self):
        """Number of coordinates, the dispersion included."""
        return self.mode.size

    def typical_point(self, normal):
        """As `DiagonalDesign.typical_point`; the dispersion is independent."""
        return np.append(self.coefficient_design.typical_point(normal[:-1]), normal[-1])

    def forget_rows(self):
        """As `DiagonalDesign.forget_rows`."""
        self.coefficient_design.forget_rows()

    def checks(self, theta, temperature):
        """The check that draws lie near the mode, see `Design.checks`."""
        inner = self.coefficient_design.checks(theta[..., :-1], temperature)
        return check_distance_from_mode(theta, temperature) if inner else inner
