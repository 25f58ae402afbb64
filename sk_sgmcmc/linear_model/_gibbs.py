"""The exact Gibbs sampler of linear regression."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ..chains.chain import Chain
from ._design import factorised

_WIDTH = 1.0  # of the slices of a log scale
_MAX_STEPS = 20
_SPREAD = 0.5  # of log scales at the start, so that chains start apart


@dataclass(frozen=True)
class GibbsData:
    """What the sampler reads.

    Parameters
    ----------
    sums : Sums
    noise : object of `_noise`
    is_laplace : bool
    columns : ndarray of shape (n_features,)
        Units of the columns: the prior is that of the coefficients times these.
    scale : float or None
        Of the prior of coefficients; None is learnt.
    unit : float
        Median of the half-Cauchy prior of a scale that is learnt.
    intercept_scale : float or None
        Standard deviation of the intercept's prior at the columns' mean; None without intercept.
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
        """Of coefficients, in which the prior has its scale, in units of the sums."""
        return self.sums.scale / self.columns


def slice_draw(log_density, x, rng):
    """One step of slice sampling with stepping out, on the line."""
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
    """Sweeps over the noise, the scale of the prior, and the coefficients; parameters as for `Chain`.

    Coefficients are drawn together given the noise and the prior's variances, which a Laplace prior mixes over an
    exponential distribution. A scale that is learnt is drawn twice in a sweep: given the coefficients, and given
    the coefficients divided by it, so that it mixes whether rows or prior determine them.
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
        """Draw the first state: variances near those of the responses, then coefficients given them."""
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
        """Variances over which normal distributions mix to a Laplace one."""
        size = np.maximum(np.abs(self.b / self.data.prior_unit) / self.scale, 1e-100)
        self.local = 1.0 / np.maximum(self.rng.wald(1.0 / size, 1.0), 1e-200)

    def _hyper(self, x):
        """Log density of the logarithm of a scale, half-Cauchy."""
        return x - np.log1p(np.exp(2.0 * (x - np.log(self.data.unit))))

    def _draw_scale(self):
        """Draw the scale given the coefficients, then both together given their ratios."""
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
        """The present state; the intercept is that of the columns' mean."""
        return {
            "coef": self.b / self.data.sums.scale,
            "centre": np.float64(self.centre),
            "noise": np.sqrt(self.variance),
            "scale": np.float64(self.scale),
        }
