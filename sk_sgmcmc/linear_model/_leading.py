"""Units of the coefficients of many sparse columns, and the few directions in which the posterior is stiffest."""

import numpy as np

from ..chains.convergence import evenly
from ..dense.krylov import Krylov

_SHARES = (0.0, 0.1, 1.0)  # of the likelihood's curvature in the units of columns, tried in turn
_RANKS = (0, 1, 2, 4, 8, 16)  # numbers of leading directions, tried in turn
_DISREGARDED = 4  # number of leading directions without which the shares are compared
_STEPS = 24, 40  # of Lanczos' method, for the units and for the directions; at least twice the largest rank
_MOST_ROWS = 20_000  # rows from which curvatures are measured
_STIFFEST = 50.0  # largest condition number that units are chosen for
# Costs, relative to one product of a coefficient with a row's entry: of the other work for a coefficient in a step, and
# of a coefficient for each leading direction.
_PER_COEFFICIENT, _PER_DIRECTION = 10.0, 1.2


class LeadingDirections:
    """The symmetric map I + U (G_k - I) U^T of the coefficients of each class k, which shrinks r directions.

    Parameters
    ----------
    directions : ndarray of shape (d, r)
        U, orthonormal columns.
    gains : ndarray of shape (r, K)
        Diagonals of G_k, positive.
    """

    def __init__(self, directions, gains):
        self.directions, self.gains = np.ascontiguousarray(directions), gains

    @property
    def rank(self):
        """Number of directions."""
        return self.directions.shape[1]

    def apply(self, b):
        """Map coefficients (..., d, K) in place, in their own precision."""
        return self._scale(b, self.gains - 1.0)

    def undo(self, b):
        """The inverse of `apply`."""
        return self._scale(b, 1.0 / self.gains - 1.0)

    def _scale(self, b, change):
        if self.rank:
            U, change = self.directions.astype(b.dtype), change.astype(b.dtype)
            for each in b.reshape(-1, *b.shape[-2:]):  # one draw at a time, which needs little memory
                each += U @ (change * (U.T @ each))
        return b

    def params(self):
        """The numbers that kernels read: r, U by column of X, and G - I."""
        return np.concatenate([[self.rank], self.directions.ravel(), (self.gains - 1.0).ravel()])


class _Curved:
    """The precision of the coefficients of one class: P + sum over rows of c_i x_i x_i^T, about the centre.

    Parameters
    ----------
    X, T : csr_matrix of shape (n, d), (d, n)
        Rows, and their transpose.
    c : ndarray of shape (n,)
        Curvature of each row.
    precision : ndarray of shape (d,)
        Diagonal of P.
    centred : bool
        Whether an intercept absorbs the mean of the rows, weighted by c.
    """

    def __init__(self, X, T, c, precision, centred):
        self.X, self.T, self.c, self.precision = X, T, c, precision
        self.total = c.sum()
        self.mean = T @ c / self.total if centred and self.total > 0 else np.zeros(X.shape[1])
        self.square = np.maximum(T.multiply(T) @ c - self.mean**2 * self.total, 0.0)

    def product(self, x):
        """Multiply a vector (d,)."""
        back = self.T @ (self.c * (self.X @ x))
        return self.precision * x + back - self.mean * (self.total * (self.mean @ x))

    def along(self, directions):
        """Curvatures along directions (d, r), not necessarily of unit length."""
        e = self.X @ directions - self.mean @ directions
        return self.precision @ directions**2 + self.c @ e**2


def unit_coordinates(X, curvature, precision, square, centred):
    """Units of coefficients, and their leading directions, in which the posterior has small condition number.

    The Hessian of class k is about P_k + X^T C_k X, with C_k diagonal. With more columns than rows, many directions
    have the prior's precision P alone, although each column by itself has a larger curvature. With many more rows,
    columns differ by their curvature. The units are therefore (P + t diag(X^T C X))^(-1/2), with the best of a few t.
    Then the leading eigenvectors of the Hessian's mean over classes are shrunk. Their number is the one that promises
    the least work for a draw, which is proportional to the root of the condition number and to the work for a step.

    Parameters
    ----------
    X : csr_matrix of shape (n, d)
    curvature : ndarray of shape (n, K)
        Minus the second derivative of the log likelihood in each row's predictors.
    precision, square : ndarray of shape (d, K)
        Precision of the prior, and the diagonals of X^T C_k X about the centre.
    centred : bool
        Whether an intercept absorbs the mean of the rows.

    Returns
    -------
    units : ndarray of shape (d, K)
    leading : LeadingDirections
        Coefficients are ``units * leading.apply(theta)``.
    """
    d, K = precision.shape
    work = 2.0 * X.nnz * min(1.0, _MOST_ROWS / X.shape[0])
    some = evenly(X.shape[0], _MOST_ROWS)
    if some.size < X.shape[0]:
        X, curvature = X[some], curvature[some] * (X.shape[0] / some.size)
    T = X.T.tocsr()
    informed = slice(min(1, K - 1), None)  # the first of several turned classes has no curvature
    mean = _Curved(X, T, curvature[:, informed].mean(axis=1), precision[:, informed].mean(axis=1), centred)
    share = min(_SHARES, key=lambda each: _condition(_spectrum(mean, each, _STEPS[0]).values, _DISREGARDED))
    krylov = _spectrum(mean, share, _STEPS[1])
    ranks = [r for r in _RANKS if 2 * r < krylov.values.size]
    steps = np.sqrt([_condition(krylov.values, r) for r in ranks])
    r = ranks[int(np.argmin(steps * (work + d * (_PER_COEFFICIENT + _PER_DIRECTION * np.array(ranks)))))]
    smallest = max(krylov.values[0], krylov.values[max(-1 - r, -krylov.values.size)] / _STIFFEST)
    units = 1.0 / np.sqrt(precision + share * square)
    units[:, informed] /= np.sqrt(smallest)
    directions, gains = krylov.leading(r), np.ones((r, K))
    # Halfway to the smallest curvature, since curvatures are not the same over the whole posterior.
    least = np.sqrt(max(krylov.values[max(-1 - r, -krylov.values.size)] / smallest, 1.0))
    for k in range(K)[informed]:
        own = _Curved(X, T, curvature[:, k], precision[:, k], centred)
        gains[:, k] = np.minimum(1.0, np.sqrt(least / own.along(units[:, [k]] * directions)))
    return units, LeadingDirections(directions, gains)


def _condition(values, r):
    """Condition number without the ``r`` largest of the eigenvalues, which are ascending."""
    return values[max(-1 - r, -values.size)] / values[0]


def _spectrum(curved, share, n_steps):
    """The Krylov space of the Hessian in units of the columns that take this share of the likelihood's curvature."""
    unit = 1.0 / np.sqrt(curved.precision + share * curved.square)
    start = np.random.default_rng(0).standard_normal(unit.size)
    return Krylov(lambda v: unit * curved.product(unit * v), start, n_steps)
