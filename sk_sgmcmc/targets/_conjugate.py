"""Targets whose posterior is known exactly."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from ..kernels.models import conjugate
from ..samplers.schedules import ConstantStep
from ..utils._numbers import is_count, real_array
from ..utils._parameters import positional_parameters
from ..utils._typing import FloatArray
from ._base import Target, check_positive


class _CellTarget(Target):
    """Targets whose posterior cells are independent, up to normalisation."""

    def _step_size(self, sampler, dense, points):
        # The variance of a gamma shape that a minibatch estimates is about N/n times the shape.
        noise = dense.n_rows / dense.n_batch if dense.n_batch < dense.n_rows else 0.0
        return ConstantStep(min(1.0, sampler._stable_step(1.0, noise)))


@positional_parameters
class DirichletCategorical(_CellTarget):
    r"""Posterior of category probabilities: :math:`\omega \sim \mathrm{Dirichlet}(\alpha + \sum_i z_i)`.

    Parameters
    ----------
    categories : array-like of int, shape (n_samples,)
        Category of each observation, from 0.
    concentration : float or array-like of shape (n_categories,), default=0.1
        Concentration :math:`\alpha` of the prior.
    n_categories : int, default=None
        Number of categories. None: the size of ``concentration`` if it is an array, else one more than the largest
        code.
    """

    categories: ArrayLike
    concentration: float | ArrayLike = 0.1
    n_categories: int | None = None

    _offers = (("simplex", "counts"),)

    def _signal(self):
        return conjugate.dirichlet_categorical

    def _checked(self):
        codes = np.asarray(self.categories)
        if codes.ndim != 1 or codes.size == 0 or not np.issubdtype(codes.dtype, np.integer) or codes.min() < 0:
            raise ValueError(
                "categories must be a non-empty vector of integer codes from 0; "
                "numpy.unique(labels, return_inverse=True)[1] makes one."
            )
        alpha = real_array("concentration", self.concentration)
        if self.n_categories is not None and not is_count(self.n_categories):
            raise ValueError(f"n_categories={self.n_categories!r} must be a whole number of at least 1, or None.")
        n = alpha.size if alpha.ndim else (self.n_categories or int(codes.max()) + 1)
        alpha = np.broadcast_to(alpha, n).copy() if alpha.ndim == 0 else alpha
        if alpha.ndim != 1 or not np.all(alpha > 0) or not np.all(np.isfinite(alpha)):
            raise ValueError(f"concentration must be positive and finite, got {self.concentration!r}.")
        if codes.max() >= n or (self.n_categories is not None and self.n_categories != n):
            raise ValueError(
                f"categories holds the code {codes.max()} and n_categories is {self.n_categories}, but concentration "
                f"has {n} entries; give one for each category."
            )
        return codes, alpha

    def posterior_concentration(self) -> FloatArray:
        """Concentration of the exact posterior, shape (n_categories,)."""
        codes, alpha = self._checked()
        return alpha + np.bincount(codes, minlength=alpha.size)

    def _rows(self):
        codes, alpha = self._checked()
        return codes.astype(float)[:, None], alpha, (alpha.size, 1)

    def _start(self, sampler):
        _, alpha, shape = self._rows()
        return sampler._simplex_start(np.full(shape, 1.0 / alpha.size), None)

    def _public(self, theta, aux, sampler):
        log_theta = sampler._simplex_logs(theta, aux)[..., 0]
        log_total = np.logaddexp.reduce(log_theta, axis=-1, keepdims=True)
        return {"omega": np.exp(log_theta - log_total), "log_omega": log_theta - log_total}

    def _exact(self, samples):
        a = self.posterior_concentration()
        mean = a / a.sum()
        return samples["omega"], mean, mean * (1.0 - mean) / (a.sum() + 1.0)


@positional_parameters
class GammaPoisson(_CellTarget):
    r"""Posterior of Poisson rates: :math:`\lambda_j \sim \mathrm{Gamma}(a_0 + \sum_i x_{ij}, \; b_0 + N)`.

    Parameters
    ----------
    counts : array-like of shape (n_samples, n_rates)
        Observed counts :math:`x`.
    shape : float, default=1
        Shape :math:`a_0` of the prior.
    rate : float, default=1
        Rate :math:`b_0` of the prior.
    """

    counts: ArrayLike
    shape: float = 1.0
    rate: float = 1.0

    _offers = (("positive", "counts"),)

    def _signal(self):
        return conjugate.gamma_poisson

    def _rows(self):
        X = check_array(self.counts, dtype=np.float64, input_name="counts")
        if X.min() < 0:
            raise ValueError(f"counts must not be negative; the smallest is {X.min():g}.")
        check_positive(shape=self.shape, rate=self.rate)
        return X, np.array([float(self.shape)]), (X.shape[1], 1)

    def _start(self, sampler):
        X, params, shape = self._rows()
        return np.full(shape, params[0] + X.sum() / X.shape[1])

    def _public(self, theta, aux, sampler):
        return {"rate": theta[..., 0] / (self.rate + np.shape(self.counts)[0])}

    def _exact(self, samples):
        X, params, _ = self._rows()
        a, b = params[0] + X.sum(axis=0), self.rate + len(X)
        return samples["rate"], a / b, a / b**2


@positional_parameters
class LogNormalMedian(_CellTarget):
    r"""Posterior of the medians of log-normal data whose spread is known.

    With :math:`\log x_{ij} \sim N(\mu_j, s_x^2)` and :math:`\mu_j \sim N(m_0, s_0^2)`, the median
    :math:`e^{\mu_j}` has a log-normal posterior.

    Parameters
    ----------
    values : array-like of shape (n_samples, n_medians)
        Observed positive values :math:`x`.
    log_scale : float, default=1
        Known standard deviation :math:`s_x` of the logarithms.
    prior_location, prior_scale : float, default=0 and 10
        Mean :math:`m_0` and standard deviation :math:`s_0` of the prior of :math:`\mu_j`.
    """

    values: ArrayLike
    log_scale: float = 1.0
    prior_location: float = 0.0
    prior_scale: float = 10.0

    _offers = (("positive", "log-location"),)

    def _signal(self):
        return conjugate.log_normal_median

    def _rows(self):
        X = check_array(self.values, dtype=np.float64, input_name="values")
        if X.min() <= 0:
            raise ValueError(f"values must be positive; the smallest is {X.min():g}.")
        check_positive(log_scale=self.log_scale, prior_scale=self.prior_scale)
        if not (isinstance(self.prior_location, Real) and np.isfinite(self.prior_location)):
            raise ValueError(f"prior_location={self.prior_location!r} must be a finite number.")
        prior, each = float(self.prior_scale) ** -2, float(self.log_scale) ** -2
        posterior = prior + X.shape[0] * each
        params = np.array([self.prior_location, prior, each, posterior, posterior**-0.5], dtype=np.float64)
        return np.log(X), params, (X.shape[1], 1)

    def _start(self, sampler):
        X, _, shape = self._rows()
        return np.exp(X.mean(axis=0)).reshape(shape)

    def _public(self, theta, aux, sampler):
        return {"median": theta[..., 0]}

    def _exact(self, samples):
        X, (location, prior, each, posterior, _), _ = self._rows()
        mean = (prior * location + each * X.sum(axis=0)) / posterior
        return np.log(samples["median"]), mean, np.full_like(mean, 1.0 / posterior)


@positional_parameters
class GaussianMean(Target):
    r"""Gaussian posterior of the mean of Gaussian rows of known precision.

    Parameters
    ----------
    rows : array-like of shape (n_samples, dim)
        Observations.
    precision : array-like of shape (dim, dim), default=None
        Precision matrix :math:`\Lambda` of an observation. None: the identity.
    prior_precision : float, default=0
        Precision of the independent normal priors of the entries of the mean, which are centred at 0.
    """

    rows: ArrayLike
    precision: ArrayLike | None = None
    prior_precision: float = 0.0

    _offers = (("euclidean", "gradient"),)

    def _signal(self):
        return conjugate.gaussian_mean

    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """Mean (dim,) and covariance (dim, dim) of the exact posterior."""
        X, params, (dim, _) = self._rows()
        each = params[1:].reshape(dim, dim)
        total = len(X) * each + params[0] * np.eye(dim)
        return np.linalg.solve(total, each @ X.sum(axis=0)), np.linalg.inv(total)

    def _rows(self):
        X = check_array(self.rows, dtype=np.float64, input_name="rows")
        each = np.eye(X.shape[1]) if self.precision is None else real_array("precision", self.precision)
        d = X.shape[1]
        if each.shape != (d, d) or not np.allclose(each, each.T) or not np.linalg.eigvalsh(each).min() > 0:
            raise ValueError(f"precision must be a symmetric positive definite matrix ({d}, {d}), got {each.tolist()}.")
        if not (isinstance(self.prior_precision, Real) and 0 <= self.prior_precision < np.inf):
            raise ValueError(f"prior_precision={self.prior_precision!r} must be a number of at least 0.")
        return X, np.concatenate([[float(self.prior_precision)], each.ravel()]), (d, 1)

    def _start(self, sampler):
        X, _, shape = self._rows()
        return X.mean(axis=0).reshape(shape)

    def _public(self, theta, aux, sampler):
        return {"theta": theta[..., 0]}
