"""Lanczos' method: eigenvalues, eigenvectors and roots of large symmetric matrices that are known by their products."""

import numpy as np
from scipy import linalg

_DONE = 1e-10  # the method ends when a new vector is this small, relative to the largest eigenvalue found


class Krylov:
    """An orthonormal basis of the space of v, A v, A A v, ..., in which the symmetric matrix A is tridiagonal.

    Each new vector is orthogonalised twice against all earlier ones, so that rounding does not repeat eigenvalues.

    Parameters
    ----------
    product : callable
        ``product(v)`` returns A v.
    start : ndarray of shape (D,)
        The vector v; not zero.
    n_steps : int
        Largest number of products. Memory is ``n_steps * D`` numbers.

    Attributes
    ----------
    basis : ndarray of shape (m, D)
        Orthonormal rows, the first parallel to v.
    values : ndarray of shape (m,)
        Eigenvalues of A in the space (Ritz values), ascending. The outermost ones approach those of A first.
    length : float
        Euclidean length of v.
    """

    def __init__(self, product, start, n_steps):
        self.length = float(np.linalg.norm(start))
        basis = np.empty((min(n_steps, start.size), start.size))
        diagonal, beside = [], []
        new = start / self.length
        while True:
            m = len(diagonal)
            basis[m] = new
            image = product(new)
            diagonal.append(float(new @ image))
            for _ in range(2):
                image = image - basis[: m + 1].T @ (basis[: m + 1] @ image)
            size = float(np.linalg.norm(image))
            if m + 1 == len(basis) or size <= _DONE * max(np.abs(diagonal).max(), *beside, 0.0):
                break
            beside.append(size)
            new = image / size
        self.basis = basis[: len(diagonal)]
        self.values, self._vectors = linalg.eigh_tridiagonal(np.array(diagonal), np.array(beside))

    def leading(self, n):
        """Approximate eigenvectors of the ``n`` largest eigenvalues, orthonormal columns (D, n), the largest first."""
        return self.basis.T @ self._vectors[:, ::-1][:, :n]

    def inverse_root(self):
        """Approximation of A^(-1/2) v, for a positive definite A.

        The error falls geometrically with the number of steps, the faster the smaller the condition number.
        """
        weights = self._vectors[0] / np.sqrt(np.maximum(self.values, np.finfo(float).tiny))
        return self.length * ((self._vectors @ weights) @ self.basis)
