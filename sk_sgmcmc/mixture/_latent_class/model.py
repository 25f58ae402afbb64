"""Latent class models: a fixed number of classes of rows, with columns of several kinds and covariates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ...base import BaseSGMCMC, all_or_nothing, fits_anew
from ...chains.chain import DrawPlan
from ...chains.checks import EMPTY_CLASSES, SEVERAL_MODES, TOO_FEW_ITEMS
from ...chains.lengths import DefaultSweeps
from ...covariates.effects import ObservedMetadata
from ...covariates.formula import FormulaEncoder, is_constant
from ...covariates.metadata import MetadataEncoder, NoCovariates
from ...covariates.prior import NormalPrior
from ...exceptions import FitInterrupted
from ...utils._containers import refuse_containers
from ...utils._numbers import real_array
from ...utils._parameters import keyword_parameters
from ...utils._sklearn import SCALE_CONSTRAINT, DensityMixin, Interval, StrOptions, check_sample_weight
from ...utils._tables import aligned, checked_names
from ...utils._typing import AnyArray, Columns, MatrixLike
from .._dirichlet_process.input import checked_table, scaled_to_effective_size
from .._mixed.columns import Priors
from .._mixed.layout import CanonicalOrder, MixedLayout
from .._mixed.rows import MixedRows
from .chain import ClassChain
from .checks import latent_class_checks
from .membership import Regression, Shares
from .results import FittedLatentClasses

_SWEEPS = DefaultSweeps(work=4e7, most=8000, usual=200, fewest=60, large=2e6)  # by the number of cells
_BATCH = 20_000  # number of rows of a sweep between two returns to Python
_MOST_WEIGHT = 1000  # largest mean of replication weights beyond _MANY_ROWS rows
_MANY_ROWS = 2 * 10**6


@keyword_parameters
class LatentClassModel(FittedLatentClasses, DensityMixin, BaseSGMCMC):  # type: ignore[misc]
    r"""Find a fixed number of latent classes of rows, in tables with columns of any kind.

    Row i belongs to class :math:`z_i`. Given its class, the cells of a row are independent, and each column has a
    distribution of its own kind with a conjugate prior. Classes have shares :math:`\pi \sim \mathrm{Dirichlet}(a,
    \ldots, a)`, or with covariates :math:`x_i` (with a 1 for the intercept) probabilities
    :math:`p(z_i = k) \propto \exp(x_i^\top \beta_k)`.

    Parameters
    ----------
    n_components : int, default=2
        Number of classes.
    columns : "auto" or dict, default="auto"
        Kinds of the columns, by name (or index if X has no names): "categorical", "ordinal", "binary", "count" or
        "continuous". Kinds of other columns are inferred, see Notes; ``column_kinds_`` tells the result.
    formula : str, default=None
        Covariates of membership, as an R formula of columns of ``metadata`` such as ``"~ age + party"``. Requires the
        package formulaic. None uses the columns of metadata as they are, if metadata are passed.
    weights : {"replication", "survey"}, default="replication"
        What ``sample_weight`` means, as in `DPCategoricalMixture`: numbers of equal rows, or how many people a
        respondent represents, relative to others. Survey weights are scaled to sum to their effective sample size.
    n_iter : int or None, default=None
        Number of sweeps. None: 8,000 over up to 5,000 cells, 40 million over their number for more, but at least 200,
        or 60 from two million cells on.
    n_chains : int, default=2
        Number of independent chains. Two are needed to notice that the posterior has several modes.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Posterior mean of the share of each class, in descending order for the best chain. With covariates, shares are
        averages over the fitted rows.
    labels_ : ndarray of shape (n_samples,)
        Most probable class of each fitted row, as from `predict`.
    column_kinds_ : dict
        Kind of each column.
    coef_ : ndarray of shape (n_components, n_metadata + 1)
        With covariates, posterior mean of their coefficients, for the metadata as passed; the intercept first. They are
        centred: columns sum to 0 over classes.
    metadata_names_ : list of str
        Names of the columns of ``coef_`` after the intercept.
    samples_ : dict of ndarray
        ``"weights"`` of shape (n_chains, n_kept, n_components), and ``"components"`` of shape (n_chains, n_kept,
        n_components, n_entries), with an entry for each level, for the mean of a count, and for the mean and the
        standard deviation of a continuous column. With covariates also ``"coef"`` of shape (n_chains, n_kept,
        n_components, n_metadata + 1). Classes are aligned over draws and chains.
    chains_agree_ : ndarray of bool, shape (n_chains,)
        Whether a chain found the same classes as the chain with the largest mean log posterior. Results use only chains
        that do.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        ``quantity``, ``mean``, split ``r_hat``, ``ess`` and ``mcse`` of the log likelihood of some rows, the log
        posterior of the labels, the entropy of the shares, and, if all chains agree, the shares and the coefficients of
        covariates (``coef[class, term]``, the intercept first). See "Warnings and what to do" in the user guide.

    Other Parameters
    ----------------
    weight_concentration_prior : float, default=1.0
        :math:`a`, the Dirichlet parameter of the shares.
    category_prior : float or array-like of shape (n_features,), default=0.5
        Dirichlet parameter of each level of categorical and binary columns.
    ordinal_prior : float, default=2.0
        Number of rows that the prior of each continuation ratio of ordinal columns counts.
    count_prior : float, default=1.0
        Shape of the gamma prior of the means of counts.
    continuous_prior : tuple of three float, default=(0.1, 2.0, 0.5)
        For continuous columns in standard units: number of rows that the prior of the mean counts, and shape and scale
        of the inverse gamma prior of the variance.
    metadata_prior_scale : float, default=1.0
        Standard deviation of the prior of each coefficient of covariates, in units of the standardised columns.
    intercept_prior_scale : float, default=2.0
        Standard deviation of the prior of each intercept.
    n_starts : int, default=10
        Number of tempered runs over a sample of the rows, of which each chain continues the best.
    sampler : str, sampler object or None, default=None
        `Gibbs`, which is the default.
    thin : int or "auto", default="auto"
        Keep every ``thin``-th sweep after burn-in. "auto" keeps at most 100 draws of a chain.
    batch_size : "auto"
        Not used: sweeps read all rows.

    See Also
    --------
    DPCategoricalMixture : Clusters without a fixed number.
    sk_sgmcmc.model_selection.search_n_components : Compare numbers of classes.

    Notes
    -----
    *Kinds of columns.* "auto" takes ordered categoricals as ordinal, other categoricals and text as categorical,
    booleans and whole numbers with two values as binary, whole numbers with up to ten values as categorical, integers
    with more values as counts (continuous if some are negative), and all other numbers as continuous. Whole numbers
    that are stored as floats, as columns with missing cells are, count as whole numbers up to ten values. Missing cells
    are left out of the likelihood, exactly.

    - categorical and binary: a Dirichlet prior of the probabilities of the levels.
    - ordinal: continuation ratios. A row that reaches level l stops there with probability :math:`q_l`, with a beta
      prior centred on the share in all rows. This prior is proper and conjugate; it allows any distribution, and a
      class with few rows is drawn towards the answers of all rows. The order matters: an answer at a high level makes
      all levels above the ones that it passed more probable. The model changes if the order is reversed.
    - count: Poisson with a gamma prior of the mean, centred on the mean of all rows.
    - continuous: normal, with a normal-inverse-gamma prior in units of the mean and standard deviation of all rows, so
      units do not matter.

    *Sampler.* `Gibbs` draws the class of each row given all others, with parameters and shares integrated out. After
    each sweep, two updates of whole classes are proposed: a class is divided and two are merged at the same time, and a
    class is divided into an empty one or merged, by sequential allocation as in `DPCategoricalMixture`. All leave the
    posterior unchanged. Coefficients of covariates are drawn by Polya-Gamma augmentation. Chains start from the best of
    ``n_starts`` tempered runs.

    *Labels.* Draws are aligned by an assignment problem: a class is compared with others by the rows that it contains.

    Weights that are not whole numbers give a pseudo-posterior, as described for `DPCategoricalMixture`.

    References
    ----------
    Dahl (2005), Sequentially-allocated merge-split sampler for conjugate and nonconjugate Dirichlet process mixture
    models. Polson, Scott and Windle (2013), Bayesian inference for logistic models using Polya-Gamma latent variables,
    JASA 108. Tutz (1991), Sequential models in categorical regression, Computational Statistics and Data Analysis 11.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import LatentClassModel
    >>> rng = np.random.default_rng(0)
    >>> z = np.repeat([0, 1], [60, 40])
    >>> answers = rng.random((100, 5)) < np.where(z == 0, 0.9, 0.1)[:, None]
    >>> X = np.column_stack([answers, rng.normal(20.0 + 30.0 * z, 5.0)])
    >>> model = LatentClassModel(2, random_state=0).fit(X)
    >>> (
    ...     model.weights_.round(1).tolist(),
    ...     model.column_kinds_[0],
    ...     model.column_kinds_[5],
    ... )
    ([0.6, 0.4], 'binary', 'continuous')
    """

    n_components: int = field(default=2, kw_only=False)
    n_chains: int = 2
    columns: Literal["auto"] | Mapping[Any, str] = "auto"
    formula: str | None = None
    weights: Literal["replication", "survey"] = "replication"
    weight_concentration_prior: float = 1.0
    category_prior: float | ArrayLike = 0.5
    ordinal_prior: float = 2.0
    count_prior: float = 1.0
    continuous_prior: tuple[float, float, float] = (0.1, 2.0, 0.5)
    metadata_prior_scale: float = 1.0
    intercept_prior_scale: float = 2.0
    n_starts: int = 10

    _offers = (("any", "conditionals"),)
    _default_sampler = "gibbs"
    _unused_by_predictions = (*BaseSGMCMC._unused_by_predictions, "labels_")
    _check_definitions = (*BaseSGMCMC._check_definitions, TOO_FEW_ITEMS, EMPTY_CLASSES, SEVERAL_MODES)
    _axes_of_draws = {"weights": ["class"], "components": ["class", "entry"], "coef": ["class", "term"]}

    _parameter_constraints = {
        **BaseSGMCMC._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "columns": [StrOptions({"auto"}), dict],
        "formula": [str, None],
        "weights": [StrOptions({"replication", "survey"})],
        "weight_concentration_prior": [Interval(Real, 0, None, closed="neither")],
        "category_prior": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "ordinal_prior": [Interval(Real, 0, None, closed="neither")],
        "count_prior": [Interval(Real, 0, None, closed="neither")],
        "continuous_prior": [tuple, list],
        "metadata_prior_scale": SCALE_CONSTRAINT,
        "intercept_prior_scale": SCALE_CONSTRAINT,
        "n_starts": [Interval(Integral, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # -- fitting -------------------------------------------------------------------------------------------------

    @fits_anew
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        metadata: Columns | None = None,
        feature_names: Sequence[str] | AnyArray | None = None,
    ) -> Self:
        """Sample the classes given rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows, with NaN or None for missing cells. Neither their order nor the order of columns matters.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, with the meaning set by the parameter ``weights``; 0 leaves a row out. None: all weights are 1.
        metadata : DataFrame, dict of columns or array-like of shape (n_samples, n_columns), default=None
            Covariates of membership.
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the columns in tables of results, if X has none.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For cells that the kinds of columns do not allow, parameters out of range, or a formula without metadata.
        FitInterrupted
            After Ctrl-C; it is a subclass of ``KeyboardInterrupt``. The estimator is fitted with the draws made so far,
            and is also ``estimator_`` of the exception.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        X, metadata, weight = self._checked_input(X, metadata, sample_weight)
        cells = self._layout.encode(X)
        if np.isnan(cells).all():
            raise ValueError("All cells of X are missing; pass rows with at least one answer.")
        self._refuse_large_batch(len(cells))
        self._feature_names = checked_names(feature_names, self.n_features_in_)
        encoder = self._new_encoder(metadata)
        self._encoder = encoder.fit(metadata)
        self._observed = None
        if encoder.n_metadata:
            self._observed = ObservedMetadata.of(encoder.table(metadata), weight)
            self.metadata_names_ = list(encoder.names)
        self._order = CanonicalOrder.make(self._layout, cells, weight)
        data = self._row_data(cells, weight, metadata)
        self._fingerprint = data.fingerprint()
        self.sampler_ = sampler._resolved(None)
        n_iter = self.n_iter or _SWEEPS.of(data.n_entries)
        plan = DrawPlan(n_iter, self.burn_in, self.thin, self._bytes_per_draw())
        membership = self._membership()
        chains = [
            ClassChain(seed, plan, self._order.layout, membership, n_starts=self.n_starts).bind(data)
            for seed in self._chain_seeds()[1:]
        ]
        self._with_y = y is not None
        return self._labelled(lambda: self._run(chains, n_iter), cells, metadata)

    def _labelled(self, run, cells, metadata):
        """Run chains, and set the labels of the encoded rows also after Ctrl-C."""
        try:
            run()
        except FitInterrupted:
            self.labels_ = self._classes_of(cells, metadata)
            raise
        self.labels_ = self._classes_of(cells, metadata)
        return self

    def _checked_input(self, X, metadata, sample_weight):
        """Check rows, metadata and weights, and learn the columns."""
        priors = self._priors()
        metadata, sample_weight = aligned(X, metadata=metadata, sample_weight=sample_weight)
        refuse_containers(X)
        X = checked_table(self, X, reset=True)
        if np.ndim(priors.category) and np.shape(priors.category) != (X.shape[1],):
            raise ValueError(
                f"category_prior has shape {np.shape(priors.category)}; it must be a number, or one for each of the "
                f"{X.shape[1]} columns."
            )
        weight = self._checked_weights(X, sample_weight)
        if metadata is None and self.formula is not None and not is_constant(self.formula):
            raise ValueError(f"formula={self.formula!r} needs metadata; pass metadata=, a DataFrame of its columns.")
        self._layout = MixedLayout.fit(X, self.columns, weight, priors)
        self.column_kinds_ = {column.name: column.kind for column in self._layout.columns}
        return X, metadata, weight

    def _checked_weights(self, X, sample_weight):
        if sample_weight is None:
            return None
        rows = np.broadcast_to(np.int8(0), (X.shape[0], 1))
        weight = check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        if not weight.max() > 0:
            raise ValueError("sample_weight must have at least one non-zero number.")
        if self.weights == "survey":
            weight = scaled_to_effective_size(weight)
        total = weight.sum()
        if total > max(_MANY_ROWS, _MOST_WEIGHT * weight.size):
            raise ValueError(
                f"sample_weight sums to {total:g} for only {weight.size} rows; a weight w stands for w equal rows, and "
                'so many take hours. For survey weights that sum to a population, use weights="survey". Otherwise '
                f"scale the weights down, say sample_weight / {total / _MANY_ROWS:.2g}, which widens the posterior."
            )
        return weight

    def _priors(self):
        category = real_array("category_prior", self.category_prior)
        if not np.all(category > 0) or not np.all(np.isfinite(category)) or category.ndim > 1:
            raise ValueError(
                f"category_prior={self.category_prior!r} must be a positive number, or one for each column."
            )
        given = self.continuous_prior
        if len(given) != 3 or not all(isinstance(v, Real) and 0 < v < np.inf for v in given):
            raise ValueError(
                f"continuous_prior={given!r} must be three positive numbers, such as (0.1, 2.0, 0.5): rows that count "
                "for the mean, and shape and scale of the inverse gamma prior of the variance."
            )
        return Priors(category, float(self.ordinal_prior), float(self.count_prior), tuple(map(float, given)))

    def _new_encoder(self, metadata):
        if metadata is None or (self.formula is not None and is_constant(self.formula)):
            return NoCovariates()
        return MetadataEncoder() if self.formula is None else FormulaEncoder(self.formula)

    def _membership(self):
        if not self._encoder.n_metadata:
            return Shares(self.n_components, self.weight_concentration_prior)
        scales = self.metadata_prior_scale, self.intercept_prior_scale
        prior = NormalPrior(self._encoder.n_metadata, scales, self._encoder.smooth_precisions(scales))
        return Regression(self.n_components, prior.matrix())

    def _row_data(self, cells, weight, metadata):
        Z = self._standardised(metadata, len(cells)) if self._encoder.n_metadata else None
        return MixedRows.make(cells, weight, self._order, _BATCH, Z=Z)

    def _bytes_per_draw(self):
        return 8 * self.n_chains * self.n_components * (self._layout.n_public + self._encoder.n_metadata + 3)

    def _bound_data(self, X, sample_weight=None, metadata=None):
        metadata, sample_weight = aligned(X, metadata=metadata, sample_weight=sample_weight)
        X = checked_table(self, X, reset=False)
        self._refuse_lacking(metadata)
        data = self._row_data(self._layout.encode(X), self._checked_weights(X, sample_weight), metadata)
        self._refuse_other_data(data.fingerprint(), "X (or sample_weight or metadata)")
        return data

    @all_or_nothing
    def resume(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        metadata: Columns | None = None,
    ) -> Self:
        """Continue a fit that was interrupted or loaded from a checkpoint.

        The draws equal those of an uninterrupted call.

        Parameters
        ----------
        X : same type and content as passed to ``fit``
            The data.
        y : ignored
        sample_weight, metadata : same as passed with X, default=None

        Returns
        -------
        self : object
            Fitted.
        """
        self._check_resumable()
        cells, (own,) = self._layout.encode(checked_table(self, X, reset=False)), aligned(X, metadata=metadata)
        return self._labelled(lambda: self._resume(X, sample_weight, metadata), cells, own)

    def _checks(self, chains):
        return [*super()._checks(chains), *latent_class_checks(self, chains)]
