"""Normal prior of coefficients of covariates."""

import numpy as np
from scipy import linalg


class NormalPrior:
    """Normal prior of the coefficients of one topic or class, about their mean.

    Parameters
    ----------
    n_metadata : int
    scales : tuple of float
        Standard deviations of the coefficients of standardised columns, and of the intercept, which is last.
    smooth : list of (columns, precision), default=()
        Columns whose coefficients have a joint prior, and its precision matrix; see `smoothness`.

    Attributes
    ----------
    diagonal : ndarray of shape (n_metadata + 1,)
        Diagonal of the precision matrix.
    coupled : list of (columns, matrix)
        Its other entries, as the off-diagonal parts of blocks.
    """

    def __init__(self, n_metadata, scales, smooth=()):
        self.diagonal = np.append(np.full(n_metadata, scales[0] ** -2.0), scales[1] ** -2.0)
        self.coupled = []
        for columns, precision in smooth:
            self.diagonal[columns] = np.diag(precision)
            self.coupled.append((columns, precision - np.diag(np.diag(precision))))

    def matrix(self):
        """Precision matrix, (n_metadata + 1, n_metadata + 1)."""
        matrix = np.diag(self.diagonal)
        for columns, coupling in self.coupled:
            matrix[np.ix_(columns, columns)] += coupling
        return matrix

    def slope(self, shift):
        """The precision matrix times each row of ``shift``, (n_rows, n_metadata + 1)."""
        slope = self.diagonal * shift
        for columns, coupling in self.coupled:
            slope[:, columns] += shift[:, columns] @ coupling
        return slope

    def penalty(self, shift):
        """The quadratic form of the precision matrix at ``shift``, summed over its rows."""
        penalty = np.sum(self.diagonal * shift**2)
        penalty += sum(np.sum(shift[:, of] * (shift[:, of] @ coupling)) for of, coupling in self.coupled)
        return penalty

    def draw(self, rng):
        """A draw, (n_metadata + 1,)."""
        drawn = rng.standard_normal(self.diagonal.size) / np.sqrt(self.diagonal)
        for columns, coupling in self.coupled:
            root = linalg.cholesky(np.diag(self.diagonal[columns]) + coupling, lower=True)
            drawn[columns] = linalg.solve_triangular(root.T, rng.standard_normal(len(columns)))
        return drawn
