"""Priors of the noise's standard deviation in linear regression."""

from dataclasses import dataclass

import numpy as np


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
