"""User-defined densities on flat space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from ..dense.chain import Metric
from ..dense.tuning import DenseGradient, check_density, check_gradient_at
from ..kernels.models import user
from ..utils._numbers import is_count, real_array
from ..utils._parameters import positional_parameters
from ._base import Target
from ._laplace import MAX_ENTRIES, laplace_approximation, with_control_variates

MANY_ROWS = 10_000  # above which the default sampler reads minibatches
BATCH = 500  # with control variates, 1,000 rows do not increase the effective sample size per step
_REACH = 2.0  # random starts are uniform on (-_REACH, _REACH)
_TRIES = 100  # random starts to try until the density is finite


@positional_parameters
class Density(Target):
    r"""A user-defined density on flat space, given by a jitted function for its logarithm and gradient.

    Parameters
    ----------
    log_density_and_gradient : function jitted by ``numba.njit``
        ``f(theta, rows, scale, gradient)`` writes the gradient of the log density into ``gradient`` (dim,) and returns
        the log density, up to a constant. Multiply every sum over ``rows``, the minibatch, by ``scale``, which is N/n.
    dim : int
        Number of parameters.
    data : array-like of shape (n_samples, n_columns), default=None
        Rows, from which minibatches are drawn. None: a density without data.
    start : array-like of shape (dim,), default=None
        Where chains start. None: at 0, or for `NUTS` at a random point of (-2, 2) for each chain. With data, minibatch
        samplers search for the mode from there, and chains start at that mode, unless `sample` receives ``init``.
    check_gradient : bool, default=True
        Whether to check the function. The gradient is compared with differences of the log density at the start, away
        from it and at some of the draws. Minibatches are compared with all rows once. A metric is checked at the start.
    control_variates : bool or "auto", default="auto"
        Whether minibatches estimate only the difference between the gradient and the gradient at the mode, at the cost
        of a second call per step. "auto": if it reduces the noise of the gradient, according to a normal approximation
        about the mode.
    metric : function jitted by ``numba.njit``, default=None
        For `RHMC` and `SGRNPHMC`: ``f(theta, rows, scale, G, dG)`` writes a positive definite matrix, such as a Fisher
        information, into ``G`` (dim, dim), and its derivative with respect to the k-th parameter into ``dG[k]``
        (dim, dim). With ``metric_is_diagonal`` the shapes are (dim,) and (dim, dim), and ``dG[k, i]`` is the derivative
        of ``G[i]``.
    metric_is_diagonal : bool, default=False
        Whether ``metric`` writes only the diagonal of a diagonal metric.

    Examples
    --------
    >>> import numba
    >>> import numpy as np
    >>> from sk_sgmcmc import sample
    >>> from sk_sgmcmc.targets import Density
    >>> @numba.njit
    ... def location(theta, rows, scale, gradient):
    ...     gradient[0] = -theta[0] / 100.0
    ...     log_density = -0.5 * theta[0] ** 2 / 100.0
    ...     for i in range(rows.shape[0]):
    ...         residual = rows[i, 0] - theta[0]
    ...         gradient[0] += scale * residual
    ...         log_density -= scale * 0.5 * residual**2
    ...     return log_density
    >>> rows = np.random.default_rng(0).normal(3.0, 1.0, size=(500, 1))
    >>> draws = sample(
    ...     Density(location, dim=1, data=rows),
    ...     "hmc",
    ...     n_iter=1000,
    ...     random_state=0,
    ... ).samples_["theta"]
    >>> bool(abs(draws.mean() - rows.mean()) < 0.01)
    True
    """

    log_density_and_gradient: Callable[..., Any]
    dim: int
    data: ArrayLike | None = None
    start: ArrayLike | None = None
    check_gradient: bool = True
    control_variates: bool | Literal["auto"] = "auto"
    metric: Callable[..., Any] | None = None
    metric_is_diagonal: bool = False

    _offers = (("euclidean", "gradient"), ("euclidean", "gradient-metric"))

    def _signal(self, controlled=False):
        return user.user_signal(self.log_density_and_gradient, controlled)

    def _metric(self):
        kernel = user.user_metric(self.metric, bool(self.metric_is_diagonal))
        return Metric(kernel, np.zeros(0), bool(self.metric_is_diagonal))

    def _rows(self):
        if not is_count(self.dim):
            raise ValueError(f"dim={self.dim!r} must be the number of parameters, a whole number of at least 1.")
        if not isinstance(self.control_variates, (bool, np.bool_)) and self.control_variates != "auto":
            raise ValueError(f'control_variates={self.control_variates!r} must be True, False or "auto".')
        X = np.zeros((1, 1)) if self.data is None else check_array(self.data, dtype=np.float64, input_name="data")
        return X, np.zeros(0), (int(self.dim), 1)

    def _prepared(self, dense, start, sampler):
        wanted, minibatches = self.control_variates, dense.n_batch < dense.n_rows
        measures = sampler._picks_step and not sampler._tunes_step
        if self.data is None or not (measures or (wanted and minibatches)):
            return dense, None
        found = (
            laplace_approximation(DenseGradient(dense, start.shape), start.ravel()) if self.dim <= MAX_ENTRIES else None
        )
        if wanted and minibatches:
            dense = with_control_variates(
                dense, start, found, lambda: self._signal(controlled=True), force=wanted is True
            )
        return dense, found

    def _choice(self, batch_size):
        n_rows = self._rows()[0].shape[0]
        if self.data is None or (n_rows <= MANY_ROWS and batch_size == "auto"):
            return "nuts", batch_size
        return "sghmc", min(n_rows, BATCH) if batch_size == "auto" else batch_size

    def _starts(self, sampler, n_chains, dense, rng):
        if self.start is not None or not sampler._starts_apart:
            return [self._start(sampler)]
        return [self._start_near(np.full(self.dim, np.nan), dense, rng) for _ in range(n_chains)]

    def _start_near(self, theta, dense, rng):
        """A start whose NaN entries are drawn uniformly from (-2, 2), repeatedly until the density is finite."""
        open_ = np.isnan(theta)
        gradient = DenseGradient(dense, (self.dim, 1))
        for _ in range(_TRIES):
            found = np.where(open_, rng.uniform(-_REACH, _REACH, theta.size), theta)
            if np.all(np.isfinite(np.append(*gradient(found)))):
                return found[:, None]
            if not open_.any():
                break
        return np.where(open_, 0.0, theta)[:, None]  # `_check` will raise and explain what is not finite

    def _less_noise(self, dense):
        return "" if dense.params.size > self._rows()[1].size else ", Density(..., control_variates=True)"

    def _start(self, sampler):
        start = np.zeros(self.dim) if self.start is None else real_array("start", self.start)
        if start.shape != (self.dim,):
            raise ValueError(f"start has shape {start.shape}; with dim={self.dim} it must be ({self.dim},).")
        return start[:, None]

    def _public(self, theta, aux, sampler):
        return {"theta": theta[..., 0]}

    def _check(self, dense, starts):
        check_density(dense, starts, derivatives=self.check_gradient)

    def _gradient_checks(self, gradient, draws):
        return [check_gradient_at(gradient, draws)] if self.check_gradient else []
