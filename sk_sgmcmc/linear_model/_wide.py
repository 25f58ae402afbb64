"""The posterior of many coefficients by its products only: its mode, and the Gaussian closest to it."""

import numpy as np

from ..dense.krylov import Krylov
from ._newton import conjugate_gradients, truncated_newton

_GAIN = 1e-9  # relative gain in log posterior below which the search for the mode stops
_DRAW_STEPS = 24  # products with the Hessian from which a draw is made
# For averaging the Hessian over a Gaussian: the width of the points in each iteration in standard deviations, the
# largest move of the mean in an iteration, in the same units per coefficient, and the accuracy of a move.
_WIDTHS = (0.5, 0.7, 1.0, 1.0)
_REACH = 0.5
_RESIDUAL = 0.1
_KEPT = 4  # number of latest points over which the Hessian is averaged


class WidePosterior:
    """The log posterior of coefficients (D,), column by column with the classes of a column next to each other.

    Parameters
    ----------
    rows : SparseRows
    y, weight : ndarray of shape (n,)
    n_predictors : int
    likelihood : Classes or Counts
    mean, precision : ndarray of shape (D,)
        Of the Gaussian prior.

    Attributes
    ----------
    mode : ndarray of shape (D,)
        Set by `find_mode`.
    mean : ndarray of shape (D,)
        Mean of the Gaussian; the mode before `average` was called.
    sides : list of ndarray
        What `Classes.curvature` reads of each row, at the points over which the Hessian is averaged.
    spread : float
        Root mean square standard deviation of the predictors under the Gaussian, less what all classes share.
    """

    def __init__(self, rows, y, weight, n_predictors, likelihood, mean, precision):
        self.rows, self.y, self.weight, self.K, self.likelihood = rows, y, weight, n_predictors, likelihood
        self.prior_mean, self.precision = mean, precision
        square = rows.squares(likelihood.largest_curvature(y, weight, n_predictors)).T.ravel()
        self.unit = 1.0 / np.sqrt(np.maximum(square, 0.0) + precision)

    def predict(self, b):
        """Linear predictors (n, K) of coefficients by column."""
        return self.rows.predict(b.reshape(-1, self.K).T)

    def pull(self, r):
        """The transpose of `predict`."""
        return self.rows.pull(r).T.ravel()

    def find_mode(self, start):
        """Set the mode by truncated Newton steps from ``start`` (D,)."""

        def at(u):
            b = self.prior_mean + self.unit * u
            eta = self.predict(b)
            r, p = self.likelihood.residuals(self.y, self.weight, eta)
            value = 0.5 * self.precision @ (b - self.prior_mean) ** 2
            value -= self.likelihood.value(self.y, self.weight, eta)
            return value, -self.unit * self._slope(b, r), lambda v: self._product(v, [p])

        u = truncated_newton(at, (start - self.prior_mean) / self.unit, _GAIN)
        self.mode = self.mean = self.prior_mean + self.unit * u
        self.sides = [self.likelihood.residuals(self.y, self.weight, self.predict(self.mode))[1]]

    def _slope(self, b, r):
        """Gradient of the log posterior, given the residuals."""
        return self.pull(r) - self.precision * (b - self.prior_mean)

    def _product(self, v, sides):
        """Minus the Hessian in units of `unit`, averaged over ``sides``, times a vector."""
        away = self.predict(self.unit * v)
        curved = sum(self.likelihood.curved(self.weight, p, away) for p in sides) / len(sides)
        return self.unit * (self.precision * self.unit * v + self.pull(curved))

    def average(self):
        """Replace the mode by the mean of a variational Gaussian, and its Hessian by the average over this Gaussian.

        The posterior of many coefficients is skewed: far from the mode, predictors of the rows are larger. Curvatures
        at points about the mode would not be those of the posterior. Each iteration uses one pair of antithetic points,
        since the average over rows needs no more.
        """
        rng = np.random.default_rng(0)
        for width in _WIDTHS:
            away = self.predict(width * self.draw(rng.standard_normal(self.unit.size)))
            self.spread = float(np.sqrt(np.mean((away - away.mean(axis=1, keepdims=True) * (self.K > 1)) ** 2))) / width
            eta = self.predict(self.mean)
            found = [self.likelihood.residuals(self.y, self.weight, eta + sign * away) for sign in (1.0, -1.0)]
            if not all(np.all(np.isfinite(each)) for pair in found for each in pair):
                break
            slope = self.unit * self._slope(self.mean, 0.5 * (found[0][0] + found[1][0]))
            self.sides = [*self.sides, found[0][1], found[1][1]][-_KEPT:]
            step = conjugate_gradients(lambda v: self._product(v, self.sides), slope, _RESIDUAL * np.linalg.norm(slope))
            moved = np.sqrt(max(slope @ step, 1e-300) / step.size)
            self.mean = self.mean + self.unit * step * min(1.0, _REACH / moved)

    def draw(self, normal):
        """Map standard normal numbers (D,) to a draw of the Gaussian, relative to its mean."""
        return self.unit * Krylov(lambda v: self._product(v, self.sides), normal, _DRAW_STEPS).inverse_root()
