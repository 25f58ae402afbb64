"""Linear regression: what rows say, as sums, and coordinates that suit a sampler."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ..dense.rows import DenseRows, SparseRows, moments
from ..kernels.models.linear import design as layout
from ._design import check_distance_from_mode, factorised, joined, whitener_of

_MAX_ROUNDS = 200
_CLOSE = 1e-8


@dataclass
class Sums:
    """Weighted sums over rows, about their means if there is an intercept, in units of ``scale``.

    Parameters
    ----------
    total : float
        Of the weights.
    mean, scale : ndarray of shape (n_features,)
        Of the columns; a mean of 0 without an intercept.
    y_mean, square : float
        Mean of the responses, and sum of squares about it.
    gram, cross : ndarray of shape (n_features, n_features), (n_features,)
        Of standardised columns, with each other and with the responses.
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
        """Sums over rows; X dense or sparse."""
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
        """Sums over the rows of both."""
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
        """Sum of squares of the residuals, the intercept being at its best, under standardised coefficients."""
        return max(self.square - 2.0 * (b @ self.cross) + b @ self.gram @ b, 0.0)


class NormalDesign:
    """Coordinates of the coefficients of standardised columns, the intercept, and the noise's log scale.

    Parameters
    ----------
    sums : Sums
        Of all rows, earlier ones included.
    prior : Quadratic
        Of the coefficients of the columns as given, and the intercept at the columns' mean, with a diagonal precision.
    noise : object of `_noise`
    fit_intercept, control_variates : bool
    new : Sums, default=None
        Of the rows that chains read, where they are not all: second order stands for the others.
    """

    kinks = None  # of a prior with kinks, see `_prior`
    n_predictors = 1

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
        """The point about which second orders are taken, and the whitener.

        The noise's variance is the mode with coefficients integrated out: with few rows, that of the joint density lies
        far from where the posterior is.
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
        self.unwhitener = linalg.block_diag(root.T / unit, np.diag(np.reciprocal(spreads)))

    def _derivatives(self, known, less=None):
        """Gradient and minus the Hessian at the point, of the prior and of rows in ``known`` but not in ``less``."""
        d, E = self.scale.size, self.sigma**-2
        beta = self.mode
        slope, curvature = self.noise.derivatives(self.sigma**2)
        gradient = np.append(-self.precision * beta, slope)
        hessian = np.diag(np.append(self.precision, curvature))
        for sums, sign in ((known, 1.0), (less, -1.0)):
            if sums is None:
                continue
            unit = self.scale / sums.scale  # standardised here, standardised there
            b = beta[:d] / unit
            # The intercept there, of columns about another mean.
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
        """As `Design.params`, for the kernel of linear regression."""
        head = [self._linear.size, layout.FIRST_ORDER * self.control, layout.FULL, with_value, 0.0]
        E = self.sigma**-2
        noise = np.array([E, E * self.noise.square, *self.noise.tail(self.sigma**2)])
        parts = [self._linear, self._quadratic.ravel(), self.whitener.ravel(), noise]
        kinks = None if self.kinks is None else replace(self.kinks, n_more=self.kinks.n_more + 1)  # the noise's
        return joined(head, parts, kinks, False)

    def read(self, X, y):
        """Rows as the kernel reads them, and their residuals at the point."""
        rows = DenseRows(X, self.shift, self.scale, self.fit_intercept)
        return rows.Z, (y - rows.predict(self.mode[None])[:, 0])[:, None]

    def coef_moments(self):
        """As `Design.coef_moments`."""
        d = self.scale.size
        variance = (self.whitener[:d] ** 2).sum(axis=1)
        return (self.mode[:d] / self.scale)[None], (variance / self.scale**2)[None]

    def coefficients(self, theta):
        """Draws (..., D) as coefficients (..., n_features), intercepts (...) and standard deviations of the noise."""
        d = self.scale.size
        delta = theta @ self.whitener.T
        coef = (self.mode[:d] + delta[..., :d]) / self.scale
        with np.errstate(over="ignore"):
            sigma = self.sigma * np.exp(delta[..., -1])
        if not self.fit_intercept:
            return coef, np.zeros(coef.shape[:-1]), sigma
        return coef, self.mode[d] + delta[..., d] - coef @ self.shift, sigma

    def theta_of(self, coef, intercept, sigma):
        """The inverse of `coefficients`, for one draw."""
        b = coef * self.scale
        if self.fit_intercept:
            b = np.append(b, intercept + coef @ self.shift)
        return self.unwhitener @ np.append(b - self.mode, np.log(sigma / self.sigma))

    def checks(self, theta, temperature):
        """As `Design.checks`."""
        return check_distance_from_mode(theta, temperature)
