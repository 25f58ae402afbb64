"""Linear regression: sums over rows, coordinates for gradient-based samplers, and the exact Gibbs sampler."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ..chains.chain import Chain
from ..dense.rows import DenseRows, SparseRows, moments
from ..kernels.models.linear import design as layout
from ._design import Quadratic, check_distance_from_mode, factorised, joined, whitener_of

_MAX_ROUNDS = 200
_CLOSE = 1e-8


@dataclass
class Sums:
    """Weighted sums of squares and products over rows, the sufficient statistics of linear regression.

    Columns are standardised: ``mean`` is subtracted, and they are divided by ``scale``.

    Parameters
    ----------
    total : float
        Sum of the weights.
    mean, scale : ndarray of shape (n_features,)
        Means of the columns, and their standard deviations. Without an intercept, zeros and root mean squares.
    y_mean, square : float
        Mean of the responses (0 without an intercept), and sum of squares about it.
    gram, cross : ndarray of shape (n_features, n_features), (n_features,)
        Sums of products of standardised columns, with each other and with the centred responses.
    """

    total: float
    mean: np.ndarray
    scale: np.ndarray
    y_mean: float
    square: float
    gram: np.ndarray
    cross: np.ndarray

    @classmethod
    def of(cls, X, y, weight, fit_intercept):
        """The sums over rows; X may be dense or sparse."""
        mean, spread, varies = moments(X, weight)
        total = float(weight.sum())
        if not fit_intercept:
            spread = np.sqrt(spread**2 + mean**2)
            varies, mean = spread > 0, np.zeros(mean.size)
        scale = np.where(varies, spread, 1.0)
        y_mean = float(weight @ y / total) if fit_intercept else 0.0
        rows = (DenseRows if isinstance(X, np.ndarray) else SparseRows)(X, mean, scale, False)
        away = y - y_mean
        cross = rows.pull((weight * away)[:, None])[0]
        return cls(total, mean, scale, y_mean, float(weight @ away**2), rows.gram(weight), cross)

    def __add__(self, other):
        """The sums over the rows of both, centred and scaled by their joint means and spreads."""
        total = self.total + other.total
        share = self.total * other.total / total
        x, y = other.mean - self.mean, other.y_mean - self.y_mean
        gram = self._given() + other._given() + share * np.outer(x, x)
        cross = self.cross * self.scale + other.cross * other.scale + share * x * y
        square = self.square + other.square + share * y**2
        spread = np.sqrt(np.maximum(np.diag(gram), 0.0) / total)
        scale = np.where(spread > 0, spread, 1.0)
        back = other.total / total
        return Sums(
            total,
            self.mean + back * x,
            scale,
            self.y_mean + back * y,
            square,
            gram / np.outer(scale, scale),
            cross / scale,
        )

    def _given(self):
        return self.gram * np.outer(self.scale, self.scale)

    def residual_square(self, b):
        """Residual sum of squares for standardised coefficients b, with the intercept that minimises it."""
        return max(self.square - 2.0 * (b @ self.cross) + b @ self.gram @ b, 0.0)


class NormalDesign:
    """Whitened coordinates of the coefficients of standardised columns, the intercept, and the noise's log scale.

    Parameters
    ----------
    sums : Sums
        Sums over all rows, earlier ones included.
    prior : Quadratic
        Prior of the coefficients of the columns as given, and of the intercept at the columns' mean, with a diagonal
        precision.
    noise : InverseChiSquared or HalfT
        Prior of the noise.
    fit_intercept, control_variates : bool
    new : Sums, default=None
        Sums over the rows that chains read. A second-order expansion represents all other rows. None: chains read all
        rows.
    """

    kinks = None  # the `Kinks` of a Laplace prior
    n_predictors = 1
    is_wide, predictor_spread = False, 0.0  # see `DiagonalDesign`

    def __init__(self, sums, prior, noise, fit_intercept, control_variates, new=None):
        self.sums, self.noise, self.fit_intercept, self.control = sums, noise, bool(fit_intercept), control_variates
        d = sums.scale.size
        self.scale, self.shift = sums.scale, sums.mean
        precision = prior.precision.copy()
        precision[:d] /= sums.scale**2
        self.precision = precision
        self._find(precision[:d], precision[d:])
        if new is None or control_variates:
            known = sums if control_variates else None
            gradient, hessian = self._derivatives(known)
        else:
            gradient, hessian = self._derivatives(sums, less=new)
        self._linear = self.whitener.T @ gradient
        self._quadratic = self.whitener.T @ hessian @ self.whitener

    def _find(self, precision, wide):
        """Find the point of the second-order expansion, and the whitener.

        The variance of the noise there is its mode with the coefficients integrated out. With few rows, the mode of the
        joint density lies far from the bulk of the posterior.
        """
        sums, noise = self.sums, self.noise
        variance = max(noise.best(sums.total, sums.square), np.finfo(float).tiny)
        for _ in range(_MAX_ROUNDS):
            unit, root = factorised(sums.gram / variance + np.diag(precision))
            b = unit * linalg.cho_solve((root, True), unit * sums.cross / variance)
            half = whitener_of(unit, root)
            alpha, own = 0.0, 0.0
            if self.fit_intercept:
                own = 1.0 / (sums.total / variance + wide[0])
                alpha = own * sums.total * sums.y_mean / variance
            fitted = ((sums.gram @ half) * half).sum() + sums.total * own
            rest = sums.residual_square(b) + sums.total * (sums.y_mean - alpha) ** 2
            before, variance = variance, noise.best(sums.total, rest + fitted)
            if abs(variance - before) < _CLOSE * before:
                break
        self.sigma = np.sqrt(before)
        self.mode = np.append(b, [alpha] * self.fit_intercept)
        curvature = 2.0 * (rest + fitted) / before + noise.derivatives(before)[1]
        spreads = [np.sqrt(own)] * self.fit_intercept + [1.0 / np.sqrt(curvature)]
        self.whitener = linalg.block_diag(half, np.diag(spreads))

    def _derivatives(self, known, less=None):
        """Gradient and minus the Hessian at the point, of the prior and of the rows in ``known`` but not in ``less``.

        ``known`` and ``less`` are `Sums` or None.
        """
        d, E = self.scale.size, self.sigma**-2
        beta = self.mode
        slope, curvature = self.noise.derivatives(self.sigma**2)
        gradient = np.append(-self.precision * beta, slope)
        hessian = np.diag(np.append(self.precision, curvature))
        for sums, sign in ((known, 1.0), (less, -1.0)):
            if sums is None:
                continue
            unit = self.scale / sums.scale  # the design and these sums may standardise columns differently
            b = beta[:d] / unit
            # The mean residual: these sums are about other means of the columns.
            level = sums.y_mean - (sums.mean - self.shift) / self.scale @ beta[:d]
            level -= beta[d] if self.fit_intercept else 0.0
            pull = (sums.cross - sums.gram @ b) / unit
            moved = (sums.mean - self.shift) / self.scale
            gram = sums.gram / np.outer(unit, unit) + sums.total * np.outer(moved, moved)
            slope = pull + sums.total * level * moved
            rest = sums.residual_square(b) + sums.total * level**2
            if self.fit_intercept:
                slope = np.append(slope, sums.total * level)
                gram = np.block([[gram, sums.total * moved[:, None]], [sums.total * moved[None], sums.total]])
            gradient += sign * np.append(E * slope, E * rest - sums.total)
            hessian[:-1, :-1] += sign * E * gram
            hessian[:-1, -1] += sign * 2.0 * E * slope
            hessian[-1, :-1] += sign * 2.0 * E * slope
            hessian[-1, -1] += sign * 2.0 * E * rest
        return gradient, hessian

    def params(self, with_value):
        """``params`` of the kernel of linear regression, see `Design.params`."""
        head = [self._linear.size, layout.FIRST_ORDER * self.control, layout.FULL, with_value, 0.0]
        E = self.sigma**-2
        noise = np.array([E, E * self.noise.square, *self.noise.tail(self.sigma**2)])
        parts = [self._linear, self._quadratic.ravel(), self.whitener.ravel(), noise]
        kinks = None if self.kinks is None else replace(self.kinks, n_more=self.kinks.n_more + 1)  # noise has no kink
        return joined(head, parts, kinks, False)

    def read(self, X, y):
        """Standardised rows for the kernel, and their residuals at the point of expansion."""
        rows = DenseRows(X, self.shift, self.scale, self.fit_intercept)
        return rows.Z, (y - rows.predict(self.mode[None])[:, 0])[:, None]

    @property
    def summary(self):
        """The Gaussian of the coefficients of the columns as given, and of the intercept at their mean."""
        d, variance = self.scale.size, self.sigma**2
        hessian = np.diag(self.precision)
        hessian[:d, :d] += self.sums.gram / variance
        hessian[d:, d:] += self.sums.total / variance
        units = np.append(self.scale, np.ones(len(self.precision) - d))
        return Quadratic(self.mode / units, hessian * np.outer(units, units))

    def coef_moments(self):
        """Mode and variance of the coefficients, see `Design.coef_moments`."""
        d = self.scale.size
        variance = (self.whitener[:d] ** 2).sum(axis=1)
        return (self.mode[:d] / self.scale)[None], (variance / self.scale**2)[None]

    @property
    def n_entries(self):
        """Number of coordinates."""
        return len(self.whitener)

    def typical_point(self, normal):
        """As `Design.typical_point`."""
        return normal

    def forget_rows(self):
        """As `Design.forget_rows`."""

    def coefficients(self, theta):
        """Convert draws (..., D) to coefficients (..., n_features), intercepts (...) and noise scales (...)."""
        d = self.scale.size
        delta = theta @ self.whitener.T
        coef = (self.mode[:d] + delta[..., :d]) / self.scale
        with np.errstate(over="ignore"):
            sigma = self.sigma * np.exp(delta[..., -1])
        if not self.fit_intercept:
            return coef, np.zeros(coef.shape[:-1]), sigma
        return coef, self.mode[d] + delta[..., d] - coef @ self.shift, sigma

    def checks(self, theta, temperature):
        """The check that draws lie near the mode, see `Design.checks`."""
        return check_distance_from_mode(theta, temperature)


_WIDTH = 1.0  # initial width of the slice of a log scale
_MAX_STEPS = 20  # by which the slice is extended to each side
_SPREAD = 0.5  # standard deviation of the log scales at the start, so that the starts of chains are dispersed


@dataclass(frozen=True)
class GibbsData:
    """Data and priors that the Gibbs sampler reads.

    Parameters
    ----------
    sums : Sums
    noise : InverseChiSquared or HalfT
        Prior of the noise.
    is_laplace : bool
        Whether the prior of the coefficients is Laplace rather than normal.
    columns : ndarray of shape (n_features,)
        Units of the columns: the prior applies to the coefficients times these units.
    scale : float or None
        Scale of the prior of the coefficients. None: drawn.
    unit : float
        Median of the half-Cauchy prior of a scale that is drawn.
    intercept_scale : float or None
        Standard deviation of the intercept's prior at the columns' mean; None without an intercept.
    """

    sums: object
    noise: object
    is_laplace: bool
    columns: np.ndarray
    scale: float
    unit: float
    intercept_scale: float

    @property
    def prior_unit(self):
        """Factor from the coefficients to which the prior's scale refers to those of the sums' standardised columns."""
        return self.sums.scale / self.columns


def slice_draw(log_density, x, rng):
    """One update of a number by slice sampling with stepping out."""
    level = log_density(x) + np.log(1.0 - rng.random())
    low = x - _WIDTH * rng.random()
    high = low + _WIDTH
    for _ in range(_MAX_STEPS):
        if log_density(low) <= level:
            break
        low -= _WIDTH
    for _ in range(_MAX_STEPS):
        if log_density(high) <= level:
            break
        high += _WIDTH
    while True:
        new = low + (high - low) * rng.random()
        if log_density(new) > level or high - low < 1e-12:
            return new
        low, high = (new, high) if new < x else (low, new)


class GibbsChain(Chain):
    """Gibbs sweeps over the noise, the scale of the prior, and the coefficients; parameters are as for `Chain`.

    The coefficients are drawn together given the noise and their prior variances. A Laplace prior is a mixture of
    normal distributions with exponentially distributed variances, which are drawn too. A learnt scale is drawn twice in
    a sweep: given the coefficients, and given the coefficients divided by the scale. It then mixes well whether the
    rows or the prior determine the coefficients.
    """

    def __init__(self, seed, plan):
        super().__init__(seed, plan)
        self.is_started = False

    def bind(self, data):
        super().bind(data)
        if not self.is_started:
            self._start()
        return self

    def _start(self):
        """Draw the first state: a noise variance dispersed about that of the responses, then the coefficients."""
        data, rng = self.data, self.rng
        sums, noise = data.sums, data.noise
        self.is_started = True
        variance = noise.best(sums.total, sums.square)
        self.variance = max(variance, np.finfo(float).tiny) * np.exp(2.0 * _SPREAD * rng.standard_normal())
        self.scale = data.unit * np.exp(_SPREAD * rng.standard_normal()) if data.scale is None else data.scale
        self.local = np.ones(sums.scale.size)  # variances of coefficients over the square of the scale
        if data.is_laplace:
            self.local *= 2.0
        self._draw_coefficients()

    def _draw_coefficients(self):
        sums, rng = self.data.sums, self.rng
        prior = self.scale * np.sqrt(self.local) * self.data.prior_unit
        unit, root = factorised(sums.gram / self.variance + np.diag(prior**-2.0))
        z = linalg.solve_triangular(root, unit * sums.cross / self.variance, lower=True)
        z += rng.standard_normal(z.size)
        self.b = unit * linalg.solve_triangular(root, z, lower=True, trans=1)
        self.centre = 0.0
        if self.data.intercept_scale is not None:
            precision = sums.total / self.variance + self.data.intercept_scale**-2.0
            mean = sums.total * sums.y_mean / self.variance / precision
            self.centre = mean + rng.standard_normal() / np.sqrt(precision)

    def _draw_noise(self):
        sums, noise = self.data.sums, self.data.noise
        square = sums.residual_square(self.b) + sums.total * (sums.y_mean - self.centre) ** 2
        self.variance = max(noise.draw(sums.total, square, self.variance, self.rng), np.finfo(float).tiny)

    def _draw_local(self):
        """Draw the variances of the normal mixture that makes up the Laplace prior."""
        size = np.maximum(np.abs(self.b / self.data.prior_unit) / self.scale, 1e-100)
        self.local = 1.0 / np.maximum(self.rng.wald(1.0 / size, 1.0), 1e-200)

    def _hyper(self, x):
        """Log density of x, the logarithm of a half-Cauchy scale, up to a constant."""
        return x - np.log1p(np.exp(2.0 * (x - np.log(self.data.unit))))

    def _draw_scale(self):
        """Draw the scale given the coefficients, then rescale both together given their ratios."""
        sums, d = self.data.sums, self.b.size
        size = np.abs(self.b / self.data.prior_unit)
        total = size.sum() if self.data.is_laplace else 0.5 * size @ size
        power = 1.0 if self.data.is_laplace else 2.0

        def given_coefficients(x):
            return self._hyper(x) - d * x - total * np.exp(-power * x)

        x = slice_draw(given_coefficients, np.log(self.scale), self.rng)
        linear, square = self.b @ sums.cross / self.variance, self.b @ sums.gram @ self.b / self.variance

        def given_ratios(new):
            times = np.exp(new - x)
            return self._hyper(new) + times * linear - 0.5 * times**2 * square

        moved = slice_draw(given_ratios, x, self.rng)
        self.b = self.b * np.exp(moved - x)
        self.scale = float(np.exp(moved))

    def _advance(self, until):
        with np.errstate(over="ignore"):
            self._draw_noise()
            if self.data.scale is None:
                self._draw_scale()
            if self.data.is_laplace:
                self._draw_local()
            self._draw_coefficients()
        self.step += 1
        if self.plan.wants(self.step):
            self.keep(self.current())

    def current(self):
        """The current state; the intercept "centre" is at the columns' mean."""
        return {
            "coef": self.b / self.data.sums.scale,
            "centre": np.float64(self.centre),
            "noise": np.sqrt(self.variance),
            "scale": np.float64(self.scale),
        }
