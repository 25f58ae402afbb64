"""Priors of smooth functions: how far a spline or a polynomial varies over the range of its covariate."""

import ast
import re

import numpy as np

BASES = "bs", "cc", "cr", "cs", "poly"
_POINTS = 200  # of the grid on which a function is compared with its neighbours
_LEAST = 1e-9  # smallest eigenvalue, relative to the diagonal, of what counts as proper
# Variance of the difference between the two ends of a function: that of a straight line between one standard deviation
# of the covariate below its mean and one above, with the prior of a coefficient of a standardised column.
END_TO_END = 4.0


def is_basis(expression):
    """Whether an expression of a formula is a call of one of the `BASES`."""
    try:
        node = ast.parse(re.sub("`[^`]+`", "None", expression).strip(), mode="eval").body
    except SyntaxError:
        return False
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BASES


def grid(values):
    """Points at which functions of a covariate are evaluated: even ones over its range, and its quantiles."""
    some = np.quantile(values, np.linspace(0.0, 1.0, _POINTS + 1))
    return np.unique(np.concatenate([np.linspace(values.min(), values.max(), _POINTS + 1), some]))


class Smoothness:
    r"""Prior precision of the coefficients b of functions f(x) = sum_j b_j B_j(x) of one covariate.

    Over the range of x, shifted and scaled to [0, 1], minus the log density is

    .. math:: \frac{1}{2 \sigma^2} \int_0^1 \frac{f'(u)^2}{4} du + \frac{\bar f^2}{2 \sigma_0^2}

    up to a constant: f is a Brownian motion, whose ends differ by a normal of standard deviation 2 sigma, restricted to
    the span of the basis. It does not depend on which basis spans these functions. The mean of f over the range,
    :math:`\bar f`, is penalised only where the intercept does not absorb it, or where no other term of the density
    depends on it.

    Parameters
    ----------
    columns : list of int
        Encoded columns with these coefficients.
    points : ndarray of shape (n_points,)
        Values of x, ascending.
    basis : ndarray of shape (n_points, n_columns)
        The functions B at these points.
    alone : bool
        Whether f is added to the intercept as it is, not multiplied by other columns.
    spread : float
        Standard deviation of what f is multiplied by; 1 if it is only 0 and 1.
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
            Prior standard deviations of coefficients, sigma, and of the intercept.
        column_scale : ndarray of shape (n_metadata,)
            By what columns are divided.
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
