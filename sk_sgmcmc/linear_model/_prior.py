"""Priors of coefficients: their scale, given or learnt, and the kinks of a Laplace distribution."""

from dataclasses import dataclass

import numpy as np

from ..dense.rows import moments
from ._design import Quadratic, check_scale, independent_prior

_ROUNDED = 0.1  # of a posterior standard deviation, the width over which a kink is rounded
_CLOSE = 0.01  # relative change at which fixed points are found
_MAX_ROUNDS = 30
_FACTOR = 4.0  # between scales tried, until two enclose the answer
_MAX_FACTORS = 20


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


def find_design(make, X, weight, n_predictors, prior, prior_scale, intercept_scale, unit=None):
    """The design under a prior of given or learnt scale, and that scale.

    Parameters
    ----------
    make : callable
        Gives the design under a `Quadratic`.
    X, weight : ndarray or csr_matrix of shape (n, n_features), ndarray of shape (n,)
        Rows and their weights.
    n_predictors : int
    prior : {"normal", "laplace"}
    prior_scale : float or "auto"
    intercept_scale : float or None
    unit : float, default=None
        Median of the half-Cauchy prior of a scale to be learnt; None is `typical_scale`.
    """
    search = _Search(make, (n_predictors, X.shape[1]), prior == "laplace", intercept_scale)
    if prior_scale != "auto":
        check_scale("prior_scale", prior_scale)
        if prior == "normal":
            return make(independent_prior(n_predictors, X.shape[1], prior_scale, intercept_scale)), float(prior_scale)
        scale = float(prior_scale)
    else:
        scale = search.mode(typical_scale(X, weight) if unit is None else unit)
    return search.settled(scale), scale


class _Search:
    """Designs under priors of one scale after another."""

    def __init__(self, make, shape, is_laplace, intercept_scale):
        self.make, self.shape, self.is_laplace, self.intercept_scale = make, shape, is_laplace, intercept_scale
        self.centre = None  # root of each coefficient's second moment, at which the Gaussian bound touches

    def design(self, scale):
        """The design under the Gaussian that is, or bounds, the prior of this scale.

        Also the Gaussian's precision, and the posterior mean and variance, of each coefficient.
        """
        precision = np.full(self.shape, scale**-2.0)
        if self.is_laplace:
            precision = 1.0 / (scale * (scale if self.centre is None else self.centre)) * np.ones(self.shape)
        if self.intercept_scale is not None:
            rest = independent_prior(self.shape[0], 0, 1.0, self.intercept_scale).precision
            precision = np.column_stack([precision, rest])
        found = self.make(Quadratic(np.zeros(precision.size), precision.ravel()))
        mean, variance = found.coef_moments()
        self.centre = np.sqrt(mean**2 + variance)
        return found, precision[:, : self.shape[1]], mean, variance

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
        found.kinks = Kinks(mean, np.full(self.shape, 1.0 / scale), width, precision, found.scale, more)
        return found

    def slope(self, scale, unit):
        """Derivative of the log posterior of log(scale), up to a positive factor."""
        _, precision, mean, variance = self.design(scale)
        if self.is_laplace:
            self.design(scale)  # once more, nearer to the best bound
            slope = self.centre.sum() / scale - self.centre.size
        else:
            slope = ((mean**2 + variance) * precision - 1.0).sum()
        return slope + half_cauchy_slope(scale, unit)

    def mode(self, unit):
        """The mode of the posterior of log(scale)."""
        low = high = np.log(unit)
        up = self.slope(unit, unit) > 0
        for _ in range(_MAX_FACTORS):
            if up:
                low, high = high, high + np.log(_FACTOR)
            else:
                low, high = low - np.log(_FACTOR), low
            if (self.slope(np.exp(high if up else low), unit) > 0) != up:
                break
        else:
            return float(np.exp(high if up else low))
        # No method that relies on the signs at both ends: the bound of a Laplace prior gets closer with each call.
        while high - low > _CLOSE:
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.slope(np.exp(middle), unit) > 0 else (low, middle)
        return float(np.exp((low + high) / 2.0))
