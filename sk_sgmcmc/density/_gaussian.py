"""A Gaussian with unknown mean and precision."""

from __future__ import annotations

from dataclasses import field
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, special, stats
from sklearn.utils import Bunch

from ..base import all_or_nothing, fits_anew
from ..dense.chain import DenseData, Metric
from ..dense.model import BaseDenseSGMCMC
from ..dense.rows import refuse_extremes
from ..exceptions import ChainDivergedError
from ..kernels.models import conjugate, metrics
from ..utils._dask import lazy_for_dask
from ..utils._fingerprint import fingerprint
from ..utils._numbers import checked_count
from ..utils._parameters import keyword_parameters
from ..utils._seeds import seed_sequence
from ..utils._sklearn import DensityMixin, Interval, check_is_fitted, validate_data
from ..utils._typing import FloatArray, MatrixLike, Seed
from ._normal_wishart import checked_prior, inverse_scale_root, updated

_CELLS = 5_000_000  # rows times draws times features that are evaluated at once, to limit memory


@keyword_parameters
class BayesianGaussian(DensityMixin, BaseDenseSGMCMC):
    r"""Gaussian distribution of rows, with posterior draws of its mean and precision.

    The model is :math:`x_i \sim N(\mu, \Lambda^{-1})`, with the normal-Wishart prior
    :math:`\mu \mid \Lambda \sim N(m_0, (\kappa_0 \Lambda)^{-1})`,
    :math:`\Lambda \sim \mathrm{Wishart}(\nu_0, (\nu_0 C_0)^{-1})`, so that :math:`C_0^{-1}` is the prior mean of
    :math:`\Lambda`. The exact posterior is known (`exact_posterior`), so samplers can be tested on this model.

    Parameters
    ----------
    mean_prior : array-like of shape (n_features,), default=None
        :math:`m_0`. None: the mean of X.
    mean_precision_prior : float, default=0.01
        :math:`\kappa_0`; 0 is a flat prior on the mean.
    degrees_of_freedom_prior : float, default=None
        :math:`\nu_0 > d - 1`. None: d, the number of features.
    covariance_prior : array-like of shape (n_features, n_features), default=None
        :math:`C_0`. None: the diagonal of the covariance of X.
    sampler : str, sampler object or None, default=None
        Any sampler on Euclidean space. None: `SGHMC`. Particle samplers (`Blob`, `GFSD`, `GFSF`, `SVGD`, `PSGHMC`) are
        approximate, and their intervals are too narrow.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Posterior mean of :math:`\mu`.
    precision_ : ndarray of shape (n_features, n_features)
        Posterior mean of :math:`\Lambda`.
    samples_ : dict of ndarray
        ``"mean"``, of shape (n_chains, n_kept, n_features), and ``"precision"``, of shape (n_chains, n_kept,
        n_features, n_features).
    sampler_ : sampler object
        The sampler of the fit. ``sampler_.step_size_`` is its step size, in standardised coordinates, also if chosen by
        "auto".
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        ``quantity``, ``mean``, split ``r_hat``, ``ess``, ``mcse`` and ``bias`` of the log likelihood, the log
        determinant of the precision, and entries of the mean. See "Warnings and what to do" in the user guide.

    Notes
    -----
    The state of the chain is :math:`\mu` and the lower root :math:`L` of :math:`\Lambda = L L^\top`, with the logarithm
    of its diagonal. Rows are standardised by the mean and scale of the exact posterior. Coordinates are in units of
    their posterior standard deviations, so that one step size suits all data and priors.

    References
    ----------
    Roychowdhury and Parthasarathy (2017), Adaptive Bayesian sampling with Monte Carlo EM, NeurIPS, section 4.1.
    Gelman et al. (2013), Bayesian data analysis, section 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import BayesianGaussian
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = BayesianGaussian(random_state=0).fit(X)
    >>> model.samples_["precision"].shape
    (1, 100, 2, 2)
    """

    mean_prior: ArrayLike | None = field(default=None, kw_only=False)
    mean_precision_prior: float = field(default=0.01, kw_only=False)
    degrees_of_freedom_prior: float | None = field(default=None, kw_only=False)
    covariance_prior: ArrayLike | None = field(default=None, kw_only=False)

    _parameter_constraints = {
        **BaseDenseSGMCMC._parameter_constraints,
        "mean_prior": ["array-like", None],
        "mean_precision_prior": [Interval(Real, 0, None, closed="left")],
        "degrees_of_freedom_prior": [Interval(Real, 0, None, closed="neither"), None],
        "covariance_prior": ["array-like", None],
    }

    @fits_anew
    def fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Sample the mean and the precision given rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, at least two.
        y : ignored

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For entries that are not finite, fewer than two rows, parameters out of range, an unsupported sampler, or a
            batch larger than the data.
        ChainDivergedError
            If the state of a chain becomes infinite or NaN, because the step size is too large.
        FitInterrupted
            After Ctrl-C; it is a subclass of ``KeyboardInterrupt``. The estimator is fitted with the draws made so far,
            and is also ``estimator_`` of the exception.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        X = self._checked_rows(X, ensure_min_samples=2)
        return self._start_chains(sampler, X)

    @all_or_nothing
    def partial_fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Continue with more rows: their prior is the exact posterior given the rows of earlier calls.

        Prior parameters are set in the first call; any that are None are computed from its rows. Chains start near the
        new mode.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; at least two in the first call.
        y : ignored

        Returns
        -------
        self : object
            Fitted.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        first = not hasattr(self, "_chains")
        X = self._checked_rows(X, reset=first, ensure_min_samples=2 if first else 1)
        return self._start_chains(sampler, X) if first else self._continue_chains(sampler, X)

    def _start_chains(self, sampler, X):
        given = self.mean_prior, self.mean_precision_prior, self.degrees_of_freedom_prior, self.covariance_prior
        self._prior, self.n_samples_seen_, self._n_calls = checked_prior(X, *given), len(X), 1
        return self._run_on(sampler, X)

    def _checked_rows(self, X, **kwargs):
        """Check rows and convert them to one memory layout, so that draws do not depend on the layout of the input."""
        X = validate_data(self, X, dtype=np.float64, order="C", **kwargs)
        refuse_extremes(X, getattr(self, "feature_names_in_", None))
        return X

    def _continue_chains(self, sampler, X):
        self._prior, self.n_samples_seen_ = self._posterior, self.n_samples_seen_ + len(X)
        self._n_calls += 1
        return self._run_on(sampler, X)

    def _run_on(self, sampler, X):
        """Run chains on rows."""
        n_earlier = self._n_calls - 1
        self._posterior = law = updated(self._prior, X)
        # In standardised units, the posterior mean of the precision is the identity, and that of the mean is 0.
        self._root, self._centre = inverse_scale_root(law) / np.sqrt(law.nu), law.mean
        self._fingerprint = fingerprint(X)
        Z, d = self._standardised(X), X.shape[1]
        n_entries = d + d * (d + 1) // 2
        dense, self.sampler_, n_iter = self._tuned(
            sampler, lambda n_batch: self._dense(Z, n_batch), len(Z), d, n_entries, streams=n_earlier > 0
        )
        self.batch_size_ = dense.n_batch
        starts = [np.zeros((n_entries, 1)) for _ in range(self.n_chains)]
        return self._run(
            self._make_chains(self.sampler_, dense, n_iter, starts, self._seeds_of_call(n_earlier)), n_iter
        )

    def _standardised(self, X):
        return np.ascontiguousarray(linalg.solve_triangular(self._root, (X - self._centre).T, lower=True).T)

    def _dense(self, Z, n_batch):
        prior = self._prior
        half = linalg.solve_triangular(self._root, prior.inverse_scale, lower=True)
        inverse_scale = linalg.solve_triangular(self._root, half.T, lower=True)
        mean = self._standardised(prior.mean[None])[0]
        law = self._posterior
        params = np.concatenate([[law.kappa, law.nu, prior.nu, prior.kappa], mean, inverse_scale.ravel()])
        signal = conjugate.normal_wishart
        metric = Metric(metrics.normal_wishart, params)
        y, weight = np.zeros((len(Z), 0)), np.ones(len(Z))
        return DenseData(Z, y, weight, params, signal, n_batch, self.with_replacement, metric=metric)

    def _bound_data(self, X, y=None):
        X = self._checked_rows(X, reset=False)
        self._refuse_other_data(fingerprint(X))
        return self._dense(self._standardised(X), self.batch_size_), None

    def _set_fitted(self, chains):
        theta = self._kept_theta(chains)
        d, nu = self.n_features_in_, self._posterior.nu
        mean = theta[..., :d] / np.sqrt(self._posterior.kappa) @ self._root.T + self._centre
        L = np.zeros((*theta.shape[:-1], d, d))
        rows, columns = np.tril_indices(d)
        L[..., rows, columns] = theta[..., d:]
        i = np.arange(d)
        back = linalg.solve_triangular(self._root, np.eye(d), lower=True).T
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            L[..., i, i] = np.sqrt(nu - i) * np.exp(L[..., i, i] / np.sqrt(2.0 * (nu - i)))
            L /= np.sqrt(nu)
            log_det = 2.0 * np.log(L[..., i, i] / np.diag(self._root)).sum(axis=-1)
            L = back @ L
            precision = L @ np.swapaxes(L, -1, -2)
        if not np.all(np.isfinite(precision)):
            raise ChainDivergedError(
                f"A precision is too large for float64 after {chains[0].step} steps of {self.sampler_!r}: its "
                "step size is too large; try a tenth of it."
            )
        self._all_samples, self._log_det = {"mean": mean, "precision": precision}, log_det
        self.samples_ = self._thinned_draws(self._all_samples)
        self.mean_, self.precision_ = mean.mean(axis=(0, 1)), precision.mean(axis=(0, 1))

    def _monitored(self, chains):
        mean, precision = (self._all_samples[name] for name in ("mean", "precision"))
        X = chains[0].data[0].X @ self._root.T + self._centre  # in the units of the input
        away, centre = X - X.mean(axis=0), X.mean(axis=0) - mean
        square = np.einsum("csij,ij->cs", precision, away.T @ away / len(X))
        square += np.einsum("csi,csij,csj->cs", centre, precision, centre)
        density = 0.5 * (self._log_det - square - X.shape[1] * np.log(2.0 * np.pi))
        return {"log_likelihood": density, "log_det_precision": self._log_det, "mean": mean}

    def exact_posterior(self, X: ArrayLike) -> Bunch:
        r"""Exact normal-Wishart posterior given rows, under the prior of the last `fit` or `partial_fit`.

        After `partial_fit`, this prior includes the rows of all calls before the last.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Bunch
            ``mean``, ``mean_precision`` (:math:`\kappa`), ``degrees_of_freedom`` and ``scale`` of the Wishart
            distribution, and ``precision``, its mean.
        """
        check_is_fitted(self, "samples_")
        X = self._checked_rows(X, reset=False)
        law = updated(self._prior, X)
        root = inverse_scale_root(law)
        half = linalg.solve_triangular(root, np.eye(len(root)), lower=True)
        scale = half.T @ half
        return Bunch(
            mean=law.mean,
            mean_precision=law.kappa,
            degrees_of_freedom=law.nu,
            scale=scale,
            precision=law.nu * scale,
        )

    def exact_samples(self, X: ArrayLike, n_draws: int = 1000, random_state: Seed = None) -> Bunch:
        """Independent draws from the exact posterior, for comparison with ``samples_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        n_draws : int, default=1000
            Number of draws.
        random_state : int, Generator or None, default=None
            Seed.

        Returns
        -------
        Bunch
            ``mean``, of shape (n_draws, n_features), and ``precision``, of shape (n_draws, n_features, n_features).

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianGaussian
        >>> X = np.random.default_rng(0).normal(size=(50, 2))
        >>> model = BayesianGaussian(random_state=0).fit(X)
        >>> model.exact_samples(X, n_draws=100, random_state=0)["mean"].shape
        (100, 2)
        """
        n_draws = checked_count("n_draws", n_draws)
        law = self.exact_posterior(X)
        rng = np.random.default_rng(seed_sequence(random_state))
        d = law.mean.size
        precision = stats.wishart(law.degrees_of_freedom, law.scale).rvs(n_draws, random_state=rng)
        precision = np.reshape(precision, (n_draws, d, d))
        root = np.linalg.cholesky(precision)
        z = rng.standard_normal((n_draws, d, 1))
        noise = np.linalg.solve(np.swapaxes(root, -1, -2), z)[..., 0] / np.sqrt(law.mean_precision)
        return Bunch(mean=law.mean + noise, precision=precision)

    @lazy_for_dask(draws=())
    def score_samples(self, X: MatrixLike) -> FloatArray:
        """Log predictive density of each row: the log of the density averaged over draws.

        Parameters
        ----------
        X : array-like or Dask array of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray, lazy for a Dask array, of shape (n_samples,)
            Log densities, in nats.
        """
        check_is_fitted(self, "samples_")
        return self._log_density(self._checked_rows(X, reset=False))

    def _log_density(self, X):
        return np.concatenate(
            [special.logsumexp(part, axis=1) - np.log(part.shape[1]) for part in self._log_densities(X)]
        )

    def _log_densities(self, X):
        """Yield the log density of consecutive rows in each draw, (n, n_draws), some rows at a time."""
        d = X.shape[1]
        mean = self._all_samples["mean"].reshape(-1, d)
        try:
            root = np.linalg.cholesky(self._all_samples["precision"].reshape(-1, d, d))
        except np.linalg.LinAlgError:
            raise ValueError(
                "A draw of the precision is not positive definite in float64, so that X has no density "
                "under it: fit again with a step_size smaller than "
                f"{float(self.sampler_.step_size_(0)):.3g}, or with larger priors."
            ) from None
        constant = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1) - 0.5 * d * np.log(2.0 * np.pi)
        step = max(1, _CELLS // (len(mean) * d))
        for lo in range(0, len(X), step):
            away = X[lo : lo + step, None, :] - mean
            z = np.einsum("nsi,sij->nsj", away, root)
            yield constant - 0.5 * (z**2).sum(axis=2)

    def _log_likelihood_draws(self, X, y=None):
        """Log density of each row in each draw, (n_chains, n_kept, n_rows)."""
        X = self._checked_rows(X, reset=False)
        return np.concatenate(list(self._log_densities(X))).T.reshape(*self._all_samples["mean"].shape[:2], -1)

    def _predictive_draws(self, X, rng):
        """Name and draws of replicated rows, one for each row of X: ("x", (n_chains, n_kept, n_rows, n_features))."""
        n_rows = len(self._checked_rows(X, reset=False))
        mean, precision = self._all_samples["mean"], self._all_samples["precision"]
        root = np.linalg.cholesky(precision)
        z = rng.standard_normal((*mean.shape[:2], n_rows, mean.shape[2]))
        return "x", mean[:, :, None] + np.swapaxes(
            np.linalg.solve(np.swapaxes(root, -1, -2), np.swapaxes(z, -1, -2)), -1, -2
        )

    def score(self, X: MatrixLike, y: Any = None) -> float:
        """Mean of `score_samples` over rows; higher is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored

        Returns
        -------
        float
            Mean log density, in nats.
        """
        check_is_fitted(self, "samples_")
        return float(self._log_density(self._checked_rows(X, reset=False)).mean())
