"""Smoothness priors of splines and polynomials in formulas."""

import ast
import re

import numpy as np

BASES = "bs", "cc", "cr", "cs", "poly"
_POINTS = 200  # Intervals of the grid on which differences of a function are penalised.
_LEAST_GAP = 1e-9  # Smallest distance between two of its points, as a share of the range.
_LEAST = 1e-9  # Smallest eigenvalue, relative to the diagonal, of a precision matrix that counts as proper.
# Prior variance of the difference between the two ends of a function, in units of sigma squared. A straight line with
# the prior of a standardised column has this variance between one standard deviation below the mean and one above.
END_TO_END = 4.0


def is_basis(expression):
    """Whether an expression of a formula is a call of one of the `BASES`."""
    try:
        node = ast.parse(re.sub("`[^`]+`", "None", expression).strip(), mode="eval").body
    except SyntaxError:
        return False
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BASES


def grid(values):
    """Points at which to evaluate functions of a covariate: evenly spaced ones over its range, and its quantiles."""
    some = np.quantile(values, np.linspace(0.0, 1.0, _POINTS + 1))
    points = np.unique(np.concatenate([np.linspace(values.min(), values.max(), _POINTS + 1), some]))
    # Two points that differ by rounding have no slope between them.
    return points[np.append(True, np.diff(points) > _LEAST_GAP * (points[-1] - points[0]))]


class Smoothness:
    r"""Prior precision of the coefficients b of functions f(x) = sum_j b_j B_j(x) of one covariate.

    Over the range of x, shifted and scaled to [0, 1], minus the log density is

    .. math:: \frac{1}{2 \sigma^2} \int_0^1 \frac{f'(u)^2}{4} du + \frac{\bar f^2}{2 \sigma_0^2}

    up to a constant. So f is a Brownian motion restricted to the span of the basis, and the difference between its ends
    has standard deviation 2 sigma. The prior depends on the span alone, not on the basis. The mean of f over the range,
    :math:`\bar f`, is penalised only if the intercept does not absorb it, or if the first term leaves the prior
    improper.

    Parameters
    ----------
    columns : list of int
        Indices of the encoded columns with these coefficients.
    points : ndarray of shape (n_points,)
        Values of x, ascending.
    basis : ndarray of shape (n_points, n_columns)
        The functions B at these points.
    alone : bool
        Whether f is a main effect, which is not multiplied by other columns.
    spread : float
        Standard deviation of the factor by which f is multiplied; 1 if its values are 0 and 1.
    """

    def __init__(self, columns, points, basis, alone, spread):
        self.columns, self.alone, self.spread = np.array(columns), alone, spread
        u = (points - points[0]) / (points[-1] - points[0])
        steps = np.diff(basis, axis=0) / np.sqrt(END_TO_END * np.diff(u))[:, None]
        mean = np.diff(u) @ (basis[1:] + basis[:-1]) / 2.0
        self.roughness, self.level = steps.T @ steps, np.outer(mean, mean)
        self.has_level = not alone or not _is_proper(self.roughness)

    @property
    def is_proper(self):
        """Whether each coefficient has a finite prior variance."""
        return _is_proper(self.roughness + self.level)

    def precision(self, scales, column_scale):
        """Prior precision of the coefficients of standardised columns.

        Parameters
        ----------
        scales : tuple of float
            Prior standard deviations of the coefficients, sigma, and of the intercept, sigma_0 of a main effect.
        column_scale : ndarray of shape (n_metadata,)
            Standard deviations by which columns are divided.
        """
        matrix = self.roughness * scales[0] ** -2.0
        if self.has_level:
            matrix = matrix + self.level * scales[1 if self.alone else 0] ** -2.0
        own = column_scale[self.columns]
        return matrix * self.spread**2 / np.outer(own, own)


def _is_proper(matrix):
    root = np.sqrt(np.diag(matrix))
    if not root.all():
        return False
    return bool(np.linalg.eigvalsh(matrix / np.outer(root, root))[0] > _LEAST)
