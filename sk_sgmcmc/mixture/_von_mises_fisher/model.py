"""Mixtures of von Mises-Fisher distributions: clusters of directions."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, xlogy
from sklearn.utils.validation import check_is_fitted

from ...base import BaseSGMCMC, all_or_nothing, fits_anew
from ...chains.chain import DrawPlan, StreamPlan, stacked_draws
from ...chains.checks import NEVER_MOVED, TOO_FAST, TOO_FEW_COMPONENTS
from ...chains.convergence import evenly
from ...directions import RowData, check_movement, check_unit_rows, check_velocities, has_content, rows_with_content
from ...metrics import align_draws
from ...utils import as_precise_as
from ...utils._bit_stable import log_mean_exp
from ...utils._dask import lazy_for_dask
from ...utils._numbers import real_array
from ...utils._parameters import keyword_parameters
from ...utils._sklearn import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    DensityMixin,
    Interval,
    StrOptions,
    TransformerMixin,
)
from ...utils._typing import FloatArray, IntArray, MatrixLike
from .chain import MixtureChain, MixturePrior, log_densities

_N_ITER = 400
_N_SCORED = 100  # largest number of kept draws averaged for predictions
_SEEN_ROWS = 300  # number of rows from which diagnostics compute the log likelihood
_SMALL = 5000  # largest number of rows in one automatic minibatch of all rows


@keyword_parameters
class VonMisesFisherMixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, DensityMixin, BaseSGMCMC):
    r"""Bayesian mixture of von Mises-Fisher distributions, which clusters unit vectors by direction.

    :math:`z_i \sim \mathrm{Categorical}(\pi)` and :math:`x_i \sim \mathrm{vMF}(\mu_{z_i}, \kappa_{z_i})`, with the
    priors :math:`\pi \sim \mathrm{Dirichlet}(a, \ldots, a)` or a stick-breaking process,
    :math:`\mu_k \sim \mathrm{vMF}(m, \kappa_0)`, and, for learnt concentrations, :math:`\log\kappa_k \sim N(\log V,
    s^2)`. Here
    :math:`\mathrm{vMF}(\mu, \kappa)` is the von Mises-Fisher distribution, whose density at a unit vector :math:`x` is
    proportional to :math:`e^{\kappa \mu' x}`, and :math:`V` is the number of features.

    Parameters
    ----------
    n_components : int, default=8
        Number of components. A Dirichlet process is truncated at this number.
    kappa : float, array-like of shape (n_components,) or "auto", default="auto"
        Concentrations :math:`\kappa_k`: one number for all components, or one for each. "auto" learns one for each.
        Components with different fixed concentrations are not permuted between draws.
    weight_concentration_prior : float, default=1.0
        :math:`a` in either prior of the weights. Small values favour a few large components.
    weight_concentration_prior_type : {"dirichlet_distribution", "dirichlet_process"}, default="dirichlet_distribution"
        Prior of the weights: a Dirichlet distribution, or stick breaking. The latter is :math:`\pi_k = b_k \prod_{j<k}
        (1 - b_j)` with :math:`b_k \sim \mathrm{Beta}(1, a)`, which gives superfluous components almost no weight.
    normalize : bool, default=True
        Whether to scale rows to unit length. False: rows of other lengths raise an error.
    n_iter : int or None, default=None
        Number of steps. None: 400.

    Attributes
    ----------
    means_ : ndarray of shape (n_components, n_features)
        Mean direction of each component over the draws, scaled to unit length.
    weights_, kappas_ : ndarray of shape (n_components,)
        Posterior means of the weights and concentrations.
    n_clusters_ : int
        Median over draws of the number of components that have rows.
    labels_ : ndarray of shape (n_samples,)
        Component of each row of the last `fit` or `partial_fit`, as from `predict`.
    samples_ : dict of ndarray
        ``"means"``, float32 of shape (n_chains, n_kept, n_components, n_features); ``"weights"`` and ``"kappas"``, of
        shape (n_chains, n_kept, n_components); and ``"n_clusters"``, of shape (n_chains, n_kept). Components are
        aligned across draws and chains.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        ``quantity``, ``mean``, split ``r_hat``, ``ess`` and ``mcse`` of the log likelihood, the entropy of the weights,
        and the number of clusters. See "Warnings and what to do" in the user guide.

    Other Parameters
    ----------------
    kappa0 : float, default=0.0
        Concentration of the prior of the means around the mean direction of the data; 0 is uniform on the sphere.
    kappa_prior_scale : float, default=3.0
        :math:`s`, the prior standard deviation of the logarithm of learnt concentrations.
    n_inner : int, default=10
        Number of steps of the sampler of the means between draws of the labels. Together they are one step of
        ``n_iter``.
    sampler : str, sampler object or None, default=None
        Sampler of the means given labels: `SGGMC`, `GSGNHT`, `GMC`, or `Gibbs`, which draws them exactly. None:
        `SGGMC`.
    batch_size : int or "auto", default="auto"
        Number of rows whose labels are redrawn in a step. "auto": all of up to 5,000 rows, otherwise an eighth of the
        rows but at least 5,000. The batch size affects how fast the chain mixes, but not its stationary distribution.

    See Also
    --------
    SphericalAdmixtureModel : Topic model on the sphere, in which each row mixes several directions.

    Notes
    -----
    Each step draws the labels of a minibatch given everything else, and weights and concentrations (the latter by slice
    sampling) given the labels of all rows. It then moves the means, whose log density given labels is :math:`\sum_k
    (\kappa_k \sum_{i: z_i = k} x_i + \kappa_0 m)'\mu_k`. Labels are stored, so this targets the posterior for any batch
    size: exactly with `GMC` and `Gibbs`, with an error of second order in the step size otherwise. ``step_size="auto"``
    is 0.2 over the square root of the largest curvature, updated during burn-in. Chains start from
    expectation-maximisation. The prior of a learnt concentration is truncated at :math:`10^8`, or at :math:`1000 V` if
    that is more; clusters of equal rows reach this limit. In `partial_fit`, rows of earlier calls keep their labels.

    References
    ----------
    Banerjee, Dhillon, Ghosh and Sra (2005), Clustering on the unit hypersphere using von Mises-Fisher distributions,
    JMLR 6. Gopal and Yang (2014), Von Mises-Fisher clustering models, ICML. Liu, Zhu and Song (2016), Stochastic
    gradient geodesic MCMC methods, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import VonMisesFisherMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(3), 50, axis=0) + 0.2 * rng.standard_normal(
    ...     (150, 3)
    ... )
    >>> mixture = VonMisesFisherMixture(3, n_iter=100, random_state=0).fit(X)
    >>> np.bincount(mixture.labels_).tolist()
    [50, 50, 50]
    """

    n_components: int = field(default=8, kw_only=False)
    kappa: float | ArrayLike | Literal["auto"] = "auto"
    kappa0: float = 0.0
    kappa_prior_scale: float = 3.0
    weight_concentration_prior: float = 1.0
    weight_concentration_prior_type: Literal["dirichlet_distribution", "dirichlet_process"] = "dirichlet_distribution"
    normalize: bool = True
    n_inner: int = 10

    _offers = (("sphere", "gradient"), ("any", "conditionals"))
    _default_sampler = "sggmc"
    _unused_by_predictions = (*BaseSGMCMC._unused_by_predictions, "labels_")

    _check_definitions = (*BaseSGMCMC._check_definitions, TOO_FAST, NEVER_MOVED, TOO_FEW_COMPONENTS)

    _parameter_constraints = {
        **BaseSGMCMC._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "kappa": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "kappa0": [Interval(Real, 0, None, closed="left")],
        "kappa_prior_scale": [Interval(Real, 0, None, closed="neither")],
        "weight_concentration_prior": [Interval(Real, 0, None, closed="neither")],
        "weight_concentration_prior_type": [StrOptions({"dirichlet_distribution", "dirichlet_process"})],
        "normalize": ["boolean"],
        "n_inner": [Interval(Integral, 1, None, closed="left")],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self):
        return self.means_.shape[0]

    # -- fitting -------------------------------------------------------------------------------------------------

    @fits_anew
    def fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Sample the components given rows.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, scaled to unit length unless ``normalize=False``. All-zero rows are ignored.
        y : ignored

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For entries that are not finite, rows of other lengths than 1 with ``normalize=False``, parameters out of
            range, an unsupported sampler, or a batch larger than the data.
        ChainDivergedError
            If the state of a chain becomes infinite or NaN, because the step size is too large.
        FitInterrupted
            After Ctrl-C; it is a subclass of ``KeyboardInterrupt``. The estimator is fitted with the draws made so far,
            and is also ``estimator_`` of the exception.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        rows = self._check_X(X, reset=True)
        plan = DrawPlan(self.n_iter or _N_ITER, self.burn_in, self.thin, self._bytes_per_draw())
        data = self._taken(rows, sampler)
        return self._run(self._new_chains(rows, data, sampler, lambda: plan), plan.n_iter)

    @all_or_nothing
    def partial_fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Continue the chains with more rows, which are visited once.

        Rows of earlier calls keep their labels, and count in full. Priors are set in the first call. A change of the
        step size or friction takes effect in the next call. Changing the sampler, ``n_components`` or ``n_chains``
        raises an error.

        A call makes one step per minibatch, so ``n_iter`` is ignored. ``thin`` is ignored too: at most 100 draws are
        kept, evenly spaced over all calls. ``burn_in`` is a share, or a number, of all steps so far.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, as for `fit`.
        y : ignored

        Returns
        -------
        self : object
            Fitted.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        first = not hasattr(self, "_chains")
        if not first:
            chain = self._chains[0]
            self._refuse_other_chains(sampler, chain.sampler, n_components=chain.n_components)
        rows = self._check_X(X, reset=first)
        data = self._taken(rows, sampler, streaming=True)

        def plan():
            return StreamPlan(self.burn_in, self._bytes_per_draw())

        if first:
            chains = self._new_chains(rows, data, sampler, plan)
        else:
            chains = [chain.forget_rows().bind(data) for chain in self._chains]
            for chain in chains:
                chain.take_sampler(sampler)
                if not chain.plan.streams:
                    chain.restart(plan())
        return self._run(chains, chains[0].step + max(1, rows.shape[0] // self._n_batch_))

    def _bytes_per_draw(self):
        return 4 * self.n_chains * self.n_components * self.n_features_in_

    def _taken(self, rows, sampler, streaming=False):
        """Convert rows to the data of the chains, and record the minibatch size and a fingerprint."""
        n = rows.shape[0]
        automatic = isinstance(self.batch_size, str)
        if not streaming:
            self._refuse_large_batch(n)
        n_batch = (n if n <= _SMALL else max(_SMALL, n // 8)) if automatic else int(self.batch_size)
        data = RowData.from_csr(rows, sampler._rows_read(n, n_batch))
        self._n_batch_, self._fingerprint = data.n_batch, data.fingerprint()
        return data

    def _new_chains(self, rows, data, sampler, plan):
        prior = self._prior(rows)
        auto = sampler._picks_step
        return [
            # Each chain needs its own copy of the sampler, because it adapts its own step size.
            MixtureChain(
                seed, plan(), sampler._resolved(None), prior, self.n_components, n_inner=self.n_inner, auto=auto
            ).bind(data)
            for seed in self._chain_seeds()[1:]
        ]

    def _prior(self, rows):
        K, V = self.n_components, rows.shape[1]
        kappas = None
        if not isinstance(self.kappa, str):
            kappas = real_array("kappa", self.kappa)
            if kappas.shape not in ((), (K,)) or not np.all(kappas > 0) or not np.all(np.isfinite(kappas)):
                raise ValueError(f'kappa={self.kappa!r} must be a positive number, {K} of them, or "auto".')
            kappas = np.broadcast_to(kappas, (K,)).copy()
        center = np.asarray(rows.sum(axis=0), dtype=np.float64).ravel()
        center = self.kappa0 * center / max(np.linalg.norm(center), 1e-12)
        return MixturePrior(
            center, float(self.weight_concentration_prior),
            self.weight_concentration_prior_type == "dirichlet_process", kappas,
            (float(np.log(V)), float(self.kappa_prior_scale)),
        )  # fmt: skip

    def _set_fitted(self, chains):
        samples = stacked_draws(chains)
        order = align_draws(samples["means"], metric="cosine", groups=chains[0].prior.kappas)
        samples["means"] = np.take_along_axis(samples["means"], order[..., None], axis=2)
        for name in ("weights", "kappas"):
            samples[name] = np.take_along_axis(samples[name], order, axis=2)
        self.samples_ = samples
        mean = samples["means"].mean(axis=(0, 1), dtype=np.float64)
        self.means_ = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        self.weights_, self.kappas_ = (samples[name].mean(axis=(0, 1)) for name in ("weights", "kappas"))
        self.n_clusters_ = int(np.median(samples["n_clusters"]))
        self.sampler_ = chains[0].sampler
        self.sampler_._report([chain.state for chain in chains])
        self.labels_ = self._responsibilities(chains[0].data.as_csr()).argmax(axis=1)

    # -- rows ------------------------------------------------------------------------------------------------------

    def _check_X(self, X, *, reset):
        return check_unit_rows(self, X, reset=reset)

    def _scored_rows(self, X):
        return rows_with_content(self._check_X(X, reset=False))

    def _bound_data(self, X, y=None):
        data = RowData.from_csr(self._check_X(X, reset=False), self._n_batch_)
        self._refuse_other_data(data.fingerprint())
        return data

    def _monitored(self, chains):
        rows = chains[0].data.as_csr()
        full = np.flatnonzero(has_content(rows))
        rows, samples = rows[full[evenly(full.size, _SEEN_ROWS)]] if full.size else rows, self.samples_
        density = np.empty(samples["n_clusters"].shape)
        for at in np.ndindex(*density.shape):
            means = samples["means"][at].astype(np.float64)
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            log_weights = np.log(np.maximum(samples["weights"][at], 1e-300))
            density[at] = logsumexp(log_densities(rows, means, log_weights, samples["kappas"][at]), axis=1).mean()
        entropy = -xlogy(samples["weights"], samples["weights"]).sum(axis=2)
        resultant = np.linalg.norm(samples["means"].mean(axis=2, dtype=np.float64), axis=-1)
        found = {"log_likelihood": density, "mean_resultant": resultant, "weight_entropy": entropy}
        return {**found, "n_clusters": samples["n_clusters"]}

    def _checks(self, chains):
        found = [*super()._checks(chains), *check_velocities(chains), *check_movement(self.samples_["means"])]
        K = self.n_components
        if not (chains[0].prior.is_process and K > 1):
            return found
        share = np.mean(self.samples_["n_clusters"] == K)
        if not share > TOO_FEW_COMPONENTS.limit:
            return [*found, TOO_FEW_COMPONENTS.passed(share)]
        meaning = (
            f"All {K} components are in use in {share:.0%} of the draws, so n_components={K} limits the number of "
            "clusters."
        )
        return [*found, TOO_FEW_COMPONENTS.fired(share, meaning, "Set a larger n_components.")]

    def _each_draw(self, rows, n_draws=_N_SCORED):
        """Yield the log of weight times density of rows under each component, for at most ``n_draws`` draws."""
        flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in self.samples_.items()}
        n = len(flat["means"])
        for i in np.unique(np.linspace(0, n - 1, min(n, n_draws)).round().astype(int)):
            means = flat["means"][i].astype(np.float64)
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            yield log_densities(rows, means, np.log(flat["weights"][i]), flat["kappas"][i])

    def _responsibilities(self, rows):
        total, n = 0.0, 0
        for log_density in self._each_draw(rows):
            total = total + np.exp(log_density - logsumexp(log_density, axis=1, keepdims=True))
            n += 1
        return total / n

    @lazy_for_dask(lambda self: len(self.means_), dtype=None)
    def transform(self, X: MatrixLike) -> FloatArray:
        """Probability that each row belongs to each component, averaged over draws.

        Parameters
        ----------
        X : array-like, sparse or Dask array of shape (n_samples, n_features)

        Returns
        -------
        shares : ndarray, lazy for a Dask array, of shape (n_samples, n_components)
            Rows sum to 1. For an all-zero row: the mean weights over the draws.
        """
        check_is_fitted(self)
        return as_precise_as(X, self._responsibilities(self._check_X(X, reset=False)))

    @lazy_for_dask(dtype=np.intp)
    def predict(self, X: MatrixLike) -> IntArray:
        """Assign each row to its most probable component.

        Parameters
        ----------
        X : array-like, sparse or Dask array of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray, lazy for a Dask array, of shape (n_samples,)
            An all-zero row gets the component with the largest mean weight.
        """
        check_is_fitted(self)
        return self._responsibilities(self._check_X(X, reset=False)).argmax(axis=1)

    @lazy_for_dask()
    def score_samples(self, X: MatrixLike) -> FloatArray:
        """Log predictive density of each row: the log of the density averaged over draws.

        Parameters
        ----------
        X : array-like, sparse or Dask array of shape (n_samples, n_features)

        Returns
        -------
        log_density : ndarray, lazy for a Dask array, of shape (n_samples,)
            Density with respect to the surface measure of the sphere. An all-zero row is not an observation and gets 0.
        """
        check_is_fitted(self)
        rows = self._check_X(X, reset=False)
        return np.where(has_content(rows), self._log_density(rows), 0.0)  # exactly 0, without rounding error

    def _log_likelihood_draws(self, X, y=None):
        """Log density of each row in each draw, (n_chains, n_kept, n_rows)."""
        n_chains, n_kept = self.samples_["n_clusters"].shape
        rows = self._check_X(X, reset=False)
        each = np.stack([logsumexp(part, axis=1) for part in self._each_draw(rows, n_chains * n_kept)])
        return np.where(has_content(rows), each, 0.0).reshape(n_chains, n_kept, -1)

    def _log_density(self, rows):
        return log_mean_exp([logsumexp(log_density, axis=1) for log_density in self._each_draw(rows)])

    def score(self, X: MatrixLike, y: Any = None) -> float:
        """Mean of `score_samples` over rows with a non-zero entry; higher is better.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        return float(np.mean(self._log_density(self._scored_rows(X))))
