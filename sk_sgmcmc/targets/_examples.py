"""Example targets on spheres, flat simplices, orthonormal frames, and products of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from ..kernels.models import manifold
from ..utils._numbers import is_count, real_array
from ..utils._parameters import positional_parameters
from ..utils._typing import FloatArray
from ._base import check_positive
from ._manifold_density import ManifoldDensity, ManifoldTarget

__all__ = ["ChainedVonMisesFisher", "ExponentialMixture", "ManifoldDensity", "MatrixCompletion", "RestrictedGaussian"]


def _linear_terms(terms, n_columns):
    if terms is None:
        return np.zeros((1, 0))
    X = check_array(terms, dtype=np.float64, ensure_min_samples=1, input_name="linear_terms")
    if X.shape[1] != n_columns:
        raise ValueError(
            f"linear_terms has {X.shape[1]} columns; give one for each of the {n_columns} coordinates of x."
        )
    return X


@positional_parameters
class RestrictedGaussian(ManifoldTarget):
    r"""A Gaussian restricted to a manifold: :math:`\log\pi(x) = \sum_r (b_r'x_r - x_r'A x_r / 2) + \sum_i t_i'x`.

    On the sphere it is a product of Fisher-Bingham distributions, or without :math:`A` of von Mises-Fisher
    distributions; on the flat simplex a truncated Gaussian; on orthonormal frames a matrix von Mises-Fisher or Bingham
    distribution. On a product such as ``geometry=[("stiefel", 2), ("stiefel", 2), ("simplex", 1)]``, its rows are two
    frames and a simplex, in this order.

    Parameters
    ----------
    linear : array-like of shape (n_rows, width)
        Linear coefficients :math:`b`, one row for each sphere, simplex or vector of the frame.
    quadratic : array-like of shape (width, width), default=None
        Symmetric matrix :math:`A`. None: zeros.
    linear_terms : array-like of shape (n_terms, n_rows * width), default=None
        Vectors :math:`t_i`, which are the rows of minibatches. They act as data; if they sum to 0, they only add noise
        to the gradient.
    """

    linear: ArrayLike
    quadratic: ArrayLike | None = None
    linear_terms: ArrayLike | None = None

    _offers = tuple((name, "gradient") for name in ("sphere", "simplex", "stiefel", "product"))

    def _signal(self):
        return manifold.restricted_gaussian

    def _rows(self):
        b = check_array(self.linear, dtype=np.float64, ensure_min_features=2, input_name="linear")
        A = np.zeros((b.shape[1],) * 2) if self.quadratic is None else real_array("quadratic", self.quadratic)
        if A.shape != (b.shape[1],) * 2 or not np.allclose(A, A.T) or not np.all(np.isfinite(A)):
            raise ValueError(
                f"quadratic must be a finite symmetric matrix of shape {(b.shape[1],) * 2}, got shape {A.shape}."
            )
        params = np.concatenate([b.ravel(), (0.5 * (A + A.T)).ravel()])
        return _linear_terms(self.linear_terms, b.size), params, b.shape

    def _curvature(self, gradient, theta):
        terms, params, (n_rows, width) = self._rows()
        b, A = params[: n_rows * width].reshape(n_rows, width), params[n_rows * width :].reshape(width, width)
        if terms.size:
            b = b + terms.sum(axis=0).reshape(b.shape)
        product = self._product()
        curved = [
            np.linalg.norm(pull, axis=1).max()
            for block, pull in zip(product.blocks, product.split(b), strict=True)
            if block.geometry != "simplex"
        ]
        return np.linalg.norm(A, 2) * (2.0 if curved else 1.0) + max(curved, default=0.0)


@positional_parameters
class ExponentialMixture(ManifoldTarget):
    r"""A mixture of von Mises-Fisher distributions on each of several spheres.

    The density of each row is :math:`\pi(x) \propto \sum_m w_m e^{c_m'x}`, which may also be used on simplices.

    Parameters
    ----------
    directions : array-like of shape (n_modes, width)
        Vectors :math:`c_m`, each a concentration times a mean direction.
    weights : array-like of shape (n_modes,), default=None
        Weights :math:`w_m` of the exponentials, not of normalised densities. None: ones.
    n_rows : int, default=1
        Number of independent copies.
    linear_terms : array-like of shape (n_terms, n_rows * width), default=None
        As for `RestrictedGaussian`.
    """

    directions: ArrayLike
    weights: ArrayLike | None = None
    n_rows: int = 1
    linear_terms: ArrayLike | None = None

    _offers = (("sphere", "gradient"), ("simplex", "gradient"), ("product", "gradient"))

    def _signal(self):
        return manifold.exponential_mixture

    def _rows(self):
        c = check_array(self.directions, dtype=np.float64, ensure_min_features=2, input_name="directions")
        w = np.ones(len(c)) if self.weights is None else real_array("weights", self.weights)
        if w.shape != (len(c),) or not np.all(w > 0) or not np.all(np.isfinite(w)):
            raise ValueError(f"weights={self.weights!r} must be {len(c)} positive numbers, one for each direction.")
        if not is_count(self.n_rows):
            raise ValueError(f"n_rows={self.n_rows!r} must be a whole number of at least 1.")
        shape = (self.n_rows, c.shape[1])
        return _linear_terms(self.linear_terms, shape[0] * shape[1]), np.column_stack([np.log(w), c]).ravel(), shape

    def _curvature(self, gradient, theta):
        terms, _, shape = self._rows()
        size = np.linalg.norm(np.asarray(self.directions, dtype=float), axis=1).max()
        pull = np.linalg.norm(terms.sum(axis=0).reshape(shape), axis=1).max() if terms.size else 0.0
        return size + size**2 / 4.0 + pull


@positional_parameters
class ChainedVonMisesFisher(ManifoldTarget):
    r"""Posterior of two directions, given data about the first direction and about the normalised sum.

    :math:`x_i \sim \frac12 \mathrm{vMF}(v_1, \kappa) + \frac12 \mathrm{vMF}(\mu, \kappa)` with
    :math:`\mu \propto v_1 + v_2`, and :math:`v_1, v_2 \sim \mathrm{vMF}(e_1, \kappa_0)`. The data do not say which
    component belongs to :math:`v_1`, so the posterior has two modes.

    Parameters
    ----------
    directions : array-like of shape (n_samples, width)
        Unit rows :math:`x_i`.
    kappa : float, default=20
        Concentration :math:`\kappa` of the data.
    prior_kappa : float, default=20
        Concentration :math:`\kappa_0` of the prior.

    References
    ----------
    Liu, Zhu and Song (2016), Stochastic gradient geodesic MCMC methods, NeurIPS, section 5.1.
    """

    directions: ArrayLike
    kappa: float = 20.0
    prior_kappa: float = 20.0

    def _signal(self):
        return manifold.chained_vmf_mixture

    def _rows(self):
        X = check_array(self.directions, dtype=np.float64, ensure_min_features=2, input_name="directions")
        if not np.allclose(np.linalg.norm(X, axis=1), 1.0, atol=1e-6):
            raise ValueError("directions must be unit rows; sklearn.preprocessing.normalize makes them.")
        check_positive(kappa=self.kappa, prior_kappa=self.prior_kappa)
        return (
            X,
            np.array([self.kappa, self.prior_kappa, 1.0, *np.zeros(X.shape[1] - 1)], dtype=np.float64),
            (2, X.shape[1]),
        )

    def _curvature(self, gradient, theta):
        n = len(np.asarray(self.directions))
        return n * self.kappa + self.prior_kappa

    def _start(self, sampler):
        X, _, (_, width) = self._rows()
        mean = X.mean(axis=0)
        if np.linalg.norm(mean) < 1e-6:  # the data have no mean direction: use the prior's
            mean = np.eye(width)[0]
        # The density has a saddle where both directions are equal. Turning the second by about 0.1 rad avoids it.
        turned = mean + 0.1 * np.linalg.norm(mean) * np.eye(width)[-1]
        return np.array([mean / np.linalg.norm(mean), turned / np.linalg.norm(turned)])


@positional_parameters
class MatrixCompletion(ManifoldTarget):
    r"""Posterior of the factors of a partially observed low-rank matrix: :math:`x_i = \sum_k c_{ik} u_k + e_i`.

    The directions :math:`u_k` are the rows of an orthonormal frame with a uniform prior on the Stiefel manifold. The
    loadings :math:`c_{ik} \sim N(0, \tau_k^2)` are integrated out, and the noise is :math:`e_i \sim N(0, \sigma^2 I)`.
    Minibatches consist of rows of the matrix.

    Parameters
    ----------
    matrix : array-like of shape (n_samples, n_features)
        The matrix :math:`x`, with NaN for unobserved entries.
    factor_scales : array-like of shape (rank,)
        Standard deviations :math:`\tau_k` of the loadings. They should all differ, since directions with equal scales
        are identified only up to rotation.
    noise_scale : float
        Standard deviation :math:`\sigma` of the noise.
    """

    matrix: ArrayLike
    factor_scales: ArrayLike
    noise_scale: float

    _offers = (("stiefel", "gradient"),)

    _geometry = "stiefel"

    def _signal(self):
        return manifold.factor_completion

    def _rows(self):
        X = check_array(self.matrix, dtype=np.float64, ensure_all_finite="allow-nan", input_name="matrix")
        scales = real_array("factor_scales", self.factor_scales)
        if scales.ndim != 1 or not 1 <= scales.size <= X.shape[1] or not np.all(scales > 0):
            raise ValueError(
                f"factor_scales={self.factor_scales!r} must be positive numbers, one for each of at most "
                f"{X.shape[1]} factors."
            )
        check_positive(noise_scale=self.noise_scale)
        return X, np.array([self.noise_scale, *scales], dtype=np.float64), (scales.size, X.shape[1])

    def _curvature(self, gradient, theta):
        X, params, _ = self._rows()
        # Twice the largest eigenvalue of X'X, with unobserved entries set to 0, over the variance of the noise.
        filled = np.nan_to_num(X)
        return 2.0 * np.linalg.norm(filled, 2) ** 2 / params[0] ** 2

    def _start(self, sampler):
        X, _, shape = self._rows()
        right = np.linalg.svd(np.nan_to_num(X), full_matrices=False)[2]
        frame = np.zeros(shape)
        frame[: len(right)] = right[: shape[0]]
        # With fewer rows than factors, complete the directions found to an arbitrary frame.
        return np.linalg.qr(np.vstack([frame, np.eye(shape[1])])[: shape[0] + shape[1]].T)[0].T[: shape[0]].copy()

    def complete(self, frames: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation of the complete matrix.

        Parameters
        ----------
        frames : array-like of shape (n_draws, rank, n_features)
            Draws of the frame.

        Returns
        -------
        mean, deviation : ndarray of shape (n_samples, n_features)
            Posterior mean and standard deviation of the matrix without its noise.
        """
        X, params, _ = self._rows()
        seen, filled = np.isfinite(X).astype(float), np.nan_to_num(X)
        variance, ratio = params[0] ** 2, np.diag((params[0] / params[1:]) ** 2)
        total, square = np.zeros(X.shape), np.zeros(X.shape)
        for u in np.asarray(frames, dtype=float):
            A = ratio + np.einsum("ni,ki,ji->nkj", seen, u, u, optimize=True)
            inverse = np.linalg.inv(A)
            mean = np.einsum("nkj,nj->nk", inverse, filled @ u.T) @ u
            total += mean
            square += mean**2 + variance * np.einsum("ki,nkj,ji->ni", u, inverse, u, optimize=True)
        n = len(frames)
        return total / n, np.sqrt(np.maximum(square / n - (total / n) ** 2, 0.0))
