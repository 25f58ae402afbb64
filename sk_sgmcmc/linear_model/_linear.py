"""Bayesian linear regression."""

from __future__ import annotations

from copy import deepcopy
from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone

from ..base import all_or_nothing, fits_anew
from ..chains.chain import DrawPlan, stacked_draws
from ..dense.chain import DenseData
from ..dense.model import MAX_DRAWS, BaseDenseSGMCMC
from ..dense.rows import LARGEST, less_offsets
from ..exceptions import ChainDivergedError
from ..kernels.models.linear import regression
from ..utils._containers import refuse_dask
from ..utils._dask import lazy_for_dask
from ..utils._fingerprint import fingerprint
from ..utils._parameters import keyword_parameters
from ..utils._sklearn import Interval, RegressorMixin, check_is_fitted
from ..utils._tables import aligned
from ..utils._typing import MatrixLike
from ._base import BaseLinearModel
from ._design import check_scale
from ._input import row_offsets
from ._normal import GibbsChain, GibbsData, NormalDesign, Sums
from ._predict import RegressorDrawsMixin, checked_weights, near_rows, numeric_responses, refuse_sizes
from ._predictive import NormalPredictive
from ._prior import HalfT, InverseChiSquared, find_design, typical_scale
from ._stream import copied

_MAX_FEATURES = 5000
_CUBES = 2e10  # bound on n_sweeps * n_features**3, the cost of the sweeps
_FEWEST_DRAWS = 200
_LEAST_NOISE = 1e-3  # size of the residual that the default prior adds, in standard deviations of y


@keyword_parameters
class BayesianLinearRegression(RegressorDrawsMixin, RegressorMixin, BaseLinearModel):
    r"""Bayesian linear regression, with draws of the coefficients and of the noise's standard deviation.

    :math:`y \sim N(b + \beta^\top x, \sigma_y^2)`, with priors on :math:`\beta` and :math:`\sigma_y`.

    Parameters
    ----------
    prior_scale : float or "auto", default="auto"
        Scale :math:`\sigma` of the prior of each coefficient. A number refers to the columns of X as given; `fit` warns
        if the standard deviations of dense columns differ by a factor of 100 or more. "auto" learns the scale from the
        data: for standardised columns if X is dense, so that their units do not matter, and for the columns as given if
        X is sparse. `Gibbs` draws the scale along with the coefficients; other samplers use a point estimate. See
        Notes.
    prior : {"normal", "laplace"}, default="normal"
        Distribution of the coefficients: :math:`N(0, \sigma^2)`, or :math:`e^{-|\beta| / \sigma} / (2 \sigma)`, the
        Bayesian lasso.
    n_iter : int or None, default=None
        Number of steps: sweeps of `Gibbs`, trajectories of `HMC`. None: enough for about 1,500 nearly independent draws
        after burn-in.

    Attributes
    ----------
    noise_scale_ : float
        Posterior mean of the noise's standard deviation.
    prior_scale_ : float
        The scale in use: as given, or the one that "auto" found; with `Gibbs`, its posterior mean. For dense X, "auto"
        finds the scale of the coefficients of standardised columns.
    samples_ : dict of ndarray
        ``"coef"``: (n_chains, n_kept, n_features); ``"intercept"``, ``"noise_scale"`` and ``"prior_scale"``:
        (n_chains, n_kept).
    sampler_ : sampler object
        The sampler in use.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        ``quantity``, ``mean``, split ``r_hat``, ``ess``, ``mcse`` and ``bias`` of the log likelihood, the noise, the
        intercept and coefficients (of many, the 20 least settled), and the scale of the prior if it is drawn. See
        "Warnings and what to do" in the user guide.

    Other Parameters
    ----------------
    noise_scale_prior : float or None, default=None
        Scale of a scaled inverse chi-squared prior of :math:`\sigma_y^2`, which acts like additional residuals of this
        size. None: a half-t prior of :math:`\sigma_y`, half-Cauchy by default, whose scale is the standard deviation of
        y (in a stream, of the first block). It is flat far below that scale, so it does not bias small noise upwards.
        It also adds one residual of a thousandth of that scale, which keeps the noise above 0 if coefficients fit all
        rows exactly.
    degrees_of_freedom_prior : float, default=1
        Degrees of freedom of the noise's prior. If ``noise_scale_prior`` is a number, this is the number of residuals
        that the prior adds.
    intercept_prior_scale : float or None, default=None
        Standard deviation of the wide normal prior of the intercept of centred columns. None: 100 times the root mean
        square of y (in a stream, of the first block). ``intercept_`` refers to the columns as given.
    control_variates : bool, default=True
        Whether minibatches estimate only the difference between the log likelihood and its second-order expansion.
    sampler : str, sampler object or None, default=None
        None: `Gibbs`, which is exact and reads the rows once, or `SGHMC` if ``batch_size`` is a number. Any sampler on
        flat space without a metric is allowed. Particle samplers (`Blob`, `GFSD`, `GFSF`, `SVGD`, `PSGHMC`) are
        approximate, and their intervals are too narrow.
    burn_in : float or int, default=0.5
        Steps to discard at the start, as a fraction (float) or a number (int).
    batch_size : int or "auto", default="auto"
        Number of rows in a minibatch, for samplers that read minibatches. "auto": all rows of a small data set,
        otherwise as many as allow long steps of small bias.

    See Also
    --------
    BayesianPoissonRegressor : Regression of counts.
    sklearn.linear_model.BayesianRidge : Point estimates of both scales, and a Gaussian posterior given these.

    Notes
    -----
    `Gibbs` draws all coefficients together given the noise, and the noise given the coefficients. For
    ``prior="laplace"``, a scale mixture of normal distributions, it also draws the mixing variances (Park and Casella,
    2008). It targets the posterior exactly. A learnt scale has a half-Cauchy prior, whose median moves y by its
    standard deviation for a typical column. The scale is drawn given the coefficients, and again given the ratios of
    coefficients to scale. The half-t prior of the noise is a mixture of scaled inverse chi-squared distributions, whose
    scale is drawn as well (Huang and Wand, 2013). Noise much below a thousandth of the standard deviation of y is
    overestimated, since the default prior adds a residual of this size.

    ``prior_scale="auto"`` standardises dense columns by all rows so far, so that a shift or a change of units changes
    no prediction. Without an intercept, columns are divided by their root mean squares instead.

    `partial_fit` adds the sums over the new rows to the sums over the earlier rows. With `Gibbs`, its posterior is
    exact given all rows. Other samplers read the new rows, and approximate the log likelihood of the earlier ones to
    second order.

    Gradient-based samplers move in whitened coefficients and the logarithm of the noise's standard deviation. For them,
    ``prior_scale="auto"`` and ``prior="laplace"`` are as in `BayesianLogisticRegression`: a point estimate of the
    scale, and a rounded kink.

    References
    ----------
    Park and Casella (2008), The Bayesian lasso, Journal of the American Statistical Association 103. Yu and Meng
    (2011), To center or not to center, Journal of Computational and Graphical Statistics 20. MacKay (1992), Bayesian
    interpolation, Neural Computation 4. Huang and Wand (2013), Simple marginally noninformative prior distributions for
    covariance matrices, Bayesian Analysis 8.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sk_sgmcmc import BayesianLinearRegression
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BayesianLinearRegression(random_state=0).fit(X[:300], y[:300])
    >>> mean, std = model.predict(X[300:], return_std=True)
    >>> mean, low, high = model.predict_interval(X[300:], interval=0.9)
    >>> bool(0.84 < ((low < y[300:]) & (y[300:] < high)).mean() < 0.96)
    True
    """

    intercept_prior_scale: float | None = None
    noise_scale_prior: float | None = None
    degrees_of_freedom_prior: float = 1.0

    _offers = (("any", "conditionals"), ("euclidean", "gradient"))
    _set_by_run = (*BaseLinearModel._set_by_run, "noise_scale_")

    _parameter_constraints = {
        **BaseLinearModel._parameter_constraints,
        "intercept_prior_scale": [Interval(Real, 0, None, closed="neither"), None],
        "noise_scale_prior": [Interval(Real, 0, None, closed="neither"), None],
        "degrees_of_freedom_prior": [Interval(Real, 0, None, closed="neither")],
    }

    def _default_for(self, streams):
        return "gibbs" if isinstance(self.batch_size, str) else self._default_sampler

    # -- fitting -------------------------------------------------------------------------------------------------

    @fits_anew
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model: draw the coefficients and the noise.

        Parameters
        ----------
        X : array-like, sparse matrix or sparse array of shape (n_samples, n_features)
            Features, on any scales.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), default=None
            Each row counts this many times.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For entries that are not finite, parameters out of range, a sampler that does not fit, or a batch larger
            than the data.
        ChainDivergedError
            If a chain becomes infinite or NaN, at too large a step size.
        FitInterrupted
            After Ctrl-C, as a ``KeyboardInterrupt``. The estimator is fitted with the draws made so far; it is
            ``estimator_`` of the exception.
        """
        self._validate_params()
        sampler, pair = self._checked_sampler()
        data = self._checked(X, y, sample_weight)
        rows, new = self._added(data, None)
        return self._run(*self._chains_on_sums(sampler, pair, rows, new, self._chain_seeds()))

    @all_or_nothing
    def partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add further rows; only sums over the rows of earlier calls are kept.

        The chains run when a fitted attribute is first read, with the parameters that the estimator has in this call.
        With ``callbacks`` or ``verbose``, they run in the call itself.

        Parameters
        ----------
        X, y, sample_weight : as for `fit`
            Further rows.

        Returns
        -------
        self : object
            Fitted.
        """
        self._validate_params()
        sampler, pair = self._checked_sampler(streams=True)
        earlier = getattr(self, "_sums", None)
        data = self._checked(X, y, sample_weight, reset=earlier is None)
        if earlier is not None:
            of_first = ("fit_intercept", "intercept_prior_scale", "noise_scale_prior", "degrees_of_freedom_prior")
            self._refuse_changes(of_first, "partial_fit")
        seeds = self._seeds_of_call(0 if earlier is None else self._n_calls)
        rows, new = self._added(data, earlier)
        if pair[1] != "conditionals":
            rows = copied(rows)
        sampler = clone(sampler)  # `set_params` may change the one that was passed

        def prepare(model, seeds=seeds):
            return model._chains_on_sums(sampler, pair, rows, new, seeds, streams=True)

        return self._defer(prepare, lambda model: prepare(model, deepcopy(seeds)))

    @all_or_nothing
    def resume(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # type: ignore[override]
        """Continue a fit that was interrupted or loaded from a checkpoint.

        The draws are the same as without the interruption.

        Parameters
        ----------
        X, y, sample_weight : same type and content as given to `fit`, or to the last `partial_fit`
            The data, which a saved estimator does not contain.

        Returns
        -------
        self : object
            Fitted.
        """
        self._check_resumable()
        return self._resume_on(*self._checked(X, y, sample_weight, reset=False))

    def _data_to_resume(self, X, y, weight):
        return self._conditionals() if self._design is None else super()._data_to_resume(X, y, weight)

    def _checked(self, X, y, sample_weight, reset=True):
        """Rows with a weight above 0, their responses and weights."""
        y, sample_weight = aligned(X, y=y, sample_weight=sample_weight)
        X, y = numeric_responses(self, X, y, reset)
        X = self._checked_rows(X)
        if X.shape[1] > _MAX_FEATURES:
            raise ValueError(
                f"X has {X.shape[1]} features; linear regression sums over their pairs, for at most {_MAX_FEATURES}. "
                "Reduce them first, for example by sklearn.decomposition.TruncatedSVD."
            )
        refuse_sizes("y", np.abs(y).max())
        weight = checked_weights(X, sample_weight)
        used = weight > 0
        return (X, y, weight) if used.all() else (X[used], y[used], weight[used])

    def _added(self, data, earlier):
        """Add (rows, responses, weights) to the ``earlier`` `Sums`, if any.

        Returns the data with offsets subtracted, and their own `Sums`, or None if there are no others.
        """
        X, y, weight = data
        self._fingerprint = fingerprint(X, y, weight)
        if earlier is None:
            self._offsets = row_offsets(X, weight, self.fit_intercept)
            self._set_priors(y, weight)
        X = less_offsets(X, self._offsets)
        new = Sums.of(X, y, weight, self.fit_intercept)
        self._sums = new if earlier is None else earlier + new
        if earlier is None:
            self._standardises = not self._is_given_sparse
            self._scale_unit = (
                self._response_scale if self._standardises else typical_scale(X, weight, self._response_scale)
            )
            self._warn_of_prior(X, weight)
        self._noise = self._noise.with_floor(
            _LEAST_NOISE * (np.sqrt(self._sums.square / self._sums.total) or self._response_scale)
        )
        if self.prior_scale != "auto":
            check_scale("prior_scale", self.prior_scale)
        self.n_samples_seen_ = len(y) + (0 if earlier is None else self.n_samples_seen_)
        self._n_calls = 1 + (0 if earlier is None else self._n_calls)
        return (X, y, weight), None if earlier is None else new

    def _chains_on_sums(self, sampler, pair, data, new, seeds, *, streams=False):
        """New chains given the sums over all rows, and the number of their steps.

        Chains that use gradients read the ``data`` of the last call.
        """
        if pair[1] == "conditionals":
            return self._sweep(sampler, len(data[1]), seeds)
        return self._move(sampler, *data, new, seeds, streams)

    def _set_priors(self, y, weight):
        """Set the priors of the noise and the intercept; scales that are None come from the first rows."""
        mean, largest = np.average(y, weights=weight), float(np.sqrt(np.average(y**2, weights=weight)))
        spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        self._response_scale = spread if spread > 1e-12 * largest else largest or 1.0
        freedom = float(self.degrees_of_freedom_prior)
        if self.noise_scale_prior is None:
            self._noise = HalfT(freedom, float(self._response_scale))
        else:
            self._noise = InverseChiSquared(freedom, min(float(self.noise_scale_prior), LARGEST))
        for name in ("noise_scale_prior", "intercept_prior_scale"):
            check_scale(name, getattr(self, name))
        wide = (
            100.0 * max(largest, self._response_scale)
            if self.intercept_prior_scale is None
            else self.intercept_prior_scale
        )
        self._intercept_scale = min(float(wide), LARGEST) if self.fit_intercept else None

    @property
    def _columns(self):
        """Units of the columns to which the prior's scale refers: their spreads if learnt from dense X, else 1."""
        if self.prior_scale == "auto" and self._standardises:
            return self._sums.scale
        return np.ones(self._sums.scale.size)

    # -- Gibbs ---------------------------------------------------------------------------------------------------

    def _conditionals(self):
        """The `GibbsData` of the chains."""
        scale = None if self.prior_scale == "auto" else min(float(self.prior_scale), LARGEST)
        units = self._columns, scale, self._scale_unit, self._intercept_scale
        return GibbsData(self._sums, self._noise, self.prior == "laplace", *units)

    def _sweep(self, sampler, n_rows, seeds):
        """New chains of `Gibbs`, and the number of their steps; ``n_rows`` is the number of rows of the last call."""
        d = self.n_features_in_
        n_draws = int(np.clip(_CUBES / d**3 / 2, _FEWEST_DRAWS, MAX_DRAWS))
        n_iter = 2 * n_draws if self.n_iter is None else int(self.n_iter)
        plan = DrawPlan(n_iter, self.burn_in, self.thin, max_draws=n_draws)
        chains = [GibbsChain(seed, plan).bind(self._conditionals()) for seed in seeds[1:]]
        self._design, self.sampler_, self.batch_size_ = None, sampler._resolved(None), n_rows
        return chains, n_iter

    # -- gradients -----------------------------------------------------------------------------------------------

    def _move(self, sampler, X, y, weight, new, seeds, streams):
        """New chains that use gradients on these rows; ``new`` are their `Sums`, or None without earlier rows."""

        def make(prior, last=None):  # ignores the last design, which would not speed up the search for the mode
            return NormalDesign(self._sums, prior, self._noise, self.fit_intercept, self.control_variates, new)

        scales = self.prior_scale, self._intercept_scale, self._scale_unit, self._columns
        design, self.prior_scale_ = find_design(make, X, weight, 1, self.prior, *scales)
        return self._chains_in(design, sampler, X, y, weight, seeds, streams=streams)

    def _data_maker(self, design, sampler, X, y, weight):
        Z, residuals = design.read(X.toarray() if sparse.issparse(X) else X, y)
        params = design.params(sampler._reads_log_density)

        def dense(n_batch):
            return DenseData(Z, residuals, weight, params, regression.normal, n_batch, self.with_replacement)

        return dense, len(design.whitener)

    # -- draws ---------------------------------------------------------------------------------------------------

    def _set_fitted(self, chains):
        if self._design is None:
            drawn = stacked_draws(chains)
            coef, noise, scale = (drawn[name] for name in ("coef", "noise", "scale"))
            near = drawn["centre"] - coef @ self._sums.mean
            self.prior_scale_ = float(scale.mean())
        else:
            coef, near, noise = self._drawn(chains)
            if not noise.max() <= LARGEST:
                raise ChainDivergedError(
                    f"The noise is too large to compute with after {chains[0].step} steps of {self.sampler_!r}: its "
                    "step size is too large; try a tenth of it."
                )
            scale = np.full(noise.shape, self.prior_scale_)
        self.coef_prior_scale_ = self.prior_scale_ / self._columns
        self._set_draws(coef, near, noise_scale=noise, prior_scale=scale)
        self.intercept_, self.noise_scale_ = float(self._all_samples["intercept"].mean()), float(noise.mean())

    def _monitored(self, chains):
        samples, sums = self._all_samples, self._sums
        coef, noise = samples["coef"], samples["noise_scale"]
        b = coef * sums.scale
        level = sums.y_mean - self._near_intercepts - coef @ sums.mean
        rest = sums.square - 2.0 * b @ sums.cross + np.einsum("csi,ij,csj->cs", b, sums.gram, b, optimize=True)
        density = -0.5 * (rest / sums.total + level**2) / noise**2 - np.log(noise)
        found = {"log_likelihood": density, "noise_scale": noise, "coef": coef}
        if self.fit_intercept:
            found["intercept"] = samples["intercept"]
        if self._design is None and self.prior_scale == "auto":
            found["prior_scale"] = np.log(samples["prior_scale"])
        return found

    def _checks(self, chains):
        return super()._checks(chains) if self._design is not None else super(BaseDenseSGMCMC, self)._checks(chains)

    def _means(self, eta):
        return eta

    def _log_densities(self, y, means):
        noise = self._all_samples["noise_scale"].reshape(-1)
        return -0.5 * ((y - means) / noise) ** 2 - np.log(noise) - 0.5 * np.log(2.0 * np.pi)

    def _observations(self, means, rng):
        return means + self._all_samples["noise_scale"].reshape(-1) * rng.standard_normal(means.shape)

    def _predictive(self):
        """The predictive distribution of observations at rows less the offsets."""
        check_is_fitted(self, "samples_")
        samples = self._all_samples
        coef, noise = samples["coef"], samples["noise_scale"].reshape(-1)
        return NormalPredictive(coef.reshape(-1, coef.shape[-1]), self._near_intercepts.reshape(-1), noise)

    @lazy_for_dask(draws=())
    def _predicted_means(self, X):
        return self._predictive().mean(near_rows(self, X))

    def _means_and_spreads(self, X):
        return self._predictive().moments(near_rows(self, X))

    def _observation_interval(self, X, tails, exposure):
        mean, (low, high) = self._predictive().quantiles(near_rows(self, X), tails)
        return mean, low, high

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Coefficient of determination R² of the predictions.

        Parameters
        ----------
        X : array-like, sparse matrix or sparse array of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Responses.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            1 at best, 0 for the mean of y.
        """
        for name, given in {"X": X, "y": y, "sample_weight": sample_weight}.items():
            refuse_dask(given, name)
        y, sample_weight = aligned(X, y=y, sample_weight=sample_weight)
        return super().score(X, y, sample_weight)
