"""Dirichlet-process mixtures of categorical rows: clustering without a fixed number of clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ...base import BaseSGMCMC, all_or_nothing, fits_anew
from ...chains.chain import DrawPlan
from ...chains.growth import is_within, known_with, planned_update
from ...chains.lengths import DefaultSweeps
from ...exceptions import FitInterrupted
from ...utils._parameters import keyword_parameters
from ...utils._sklearn import DensityMixin, Interval, StrOptions
from ...utils._tables import checked_names
from ...utils._typing import AnyArray, MatrixLike
from .cells import MIXED
from .collapsed import BlockPlan, CollapsedChain
from .input import MAX_ROWS, CheckedInput
from .mixed import MixedChain
from .results import FittedDPMixture
from .slice import StickChain

_BATCH = 10_000  # default number of rows in a minibatch
_PASSES = DefaultSweeps(work=4e7, most=2000, usual=200, fewest=60, large=2e6)  # by the number of stored entries
_FIRST_PASSES, _STREAM_PASSES = 50, 10  # passes over the first block of a stream, and over each later block
_LIKELIHOODS = ("multinomial", "bernoulli", "categorical", "mixed")


def collapses(pair):
    """Whether a sampler with this pair (geometry, signal) integrates components out."""
    return pair[1] == "conditionals"


def _weight_of_all(X, weight):
    """Total weight of the rows; ``weight=None`` gives each row weight 1."""
    return float(X.shape[0]) if weight is None else float(weight.sum())


def _steps_of_a_pass(pair, data):
    """Number of steps in one pass over the rows."""
    return 1 if collapses(pair) else -(-data.n_rows // data.n_batch)


@keyword_parameters
class DPCategoricalMixture(  # type: ignore[misc]
    CheckedInput, FittedDPMixture, DensityMixin, BaseSGMCMC
):
    r"""Cluster counts, binary data or categories, without fixing the number of clusters.

    A Dirichlet-process mixture. Row i belongs to component :math:`z_i \sim \mathrm{Categorical}(\omega)`, with
    stick-breaking weights :math:`\omega_j = v_j \prod_{l<j} (1 - v_l)`, :math:`v_j \sim \mathrm{Beta}(1,
    \alpha)`, :math:`\alpha \sim \mathrm{Gamma}`. Its entries follow the component's probabilities, which have a
    Dirichlet prior.

    Parameters
    ----------
    likelihood : {"multinomial", "bernoulli", "categorical", "mixed"}, default="multinomial"
        Type of the entries of ``X``. Missing entries are ignored.

        - "multinomial": a count. All counts of a row are draws from one distribution over the columns.
        - "bernoulli": 0 or 1, or NaN if missing; columns are independent.
        - "categorical": a category of its column; columns are independent. Pass whole codes from 0 up, strings or
          pandas categoricals, with NaN or None if missing. The levels of a column are those that occur, or those that a
          categorical dtype declares. How they are labelled does not matter.
        - "mixed": columns of several kinds, with the priors of `LatentClassModel`. Requires `Gibbs`.
    columns : "auto" or dict, default="auto"
        For "mixed": kinds of the columns, as in `LatentClassModel`.
    concentration_prior : tuple of two float, or float, default=(1.0, 1.0)
        Shape and rate of the Gamma prior of :math:`\alpha`; a number is :math:`\alpha` itself.
    category_prior : float or array-like of shape (n_features,), default=0.5
        Dirichlet parameter of every entry of a component's probabilities, or of the entries of each column.
    weights : {"replication", "survey"}, default="replication"
        What ``sample_weight`` means; see Notes.

        - "replication": numbers of equal rows. A weight of 2 is the same row twice, and the number of observations is
          the sum of the weights.
        - "survey": how many people a respondent represents, relative to others. Weights are scaled to sum to their
          effective sample size, so their scale does not affect the width of the posterior.
    n_iter : int or None, default=None
        Number of steps: minibatches, or sweeps of `Gibbs` and `SliceGibbs`. None: 2,000 passes over rows with at most
        20,000 entries in all, 40 million over their number for more, but at least 200, or 60 from two million entries
        on.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters in the point partition; `predict` assigns rows to these.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row of the last `fit` or `partial_fit`, as from `predict`; 0 is the largest cluster.
    weights_ : ndarray of shape (n_clusters,)
        Posterior mean of the weight of each cluster.
    partition_loss_ : float
        Mean distance between the point partition and the partitions of the draws.
    samples_ : dict of ndarray
        ``"concentration"`` and ``"n_clusters"`` (number of components that have rows), of shape (n_chains, n_kept);
        ``"weights"`` of shape (n_chains, n_kept, n_slots); and ``"components"``, float32 of shape (n_chains, n_kept,
        n_slots, n_entries). Weights sum to less than 1: the remainder is the weight of all components without rows. The
        first ``n_clusters_`` slots are the components that best match the clusters. An empty slot has weight 0 and the
        prior mean. Entries are columns (for "bernoulli", the probability of a 1), or levels, column after column.
    categories_ : list of ndarray
        Levels of each column. Only for "categorical".
    column_kinds_ : dict
        Kind of each column. Only for "mixed".
    n_samples_seen_ : int
        Number of rows since the last `fit`, or the first `partial_fit`; the rows of a block that `partial_fit`
        recognises count once.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        ``quantity``, ``mean``, split ``r_hat``, ``ess`` and ``mcse`` of the log likelihood, the number of clusters, the
        entropy of the weights, and the concentration unless it is fixed. See "Warnings and what to do" in the user
        guide.

    Other Parameters
    ----------------
    partition_loss : {"vi", "binder"}, default="vi"
        Distance between partitions. The point partition minimises its mean over draws; see
        `sk_sgmcmc.metrics.point_partition`.
    assignments : {"auto", "stored", "fresh"}, default="auto"
        "stored" (selected by "auto") keeps the label of every row. Weights and components are then drawn given the
        counts of all rows. "fresh" scales the counts of a minibatch of n rows by N/n instead, as in Baker et al. This
        is noisier, and unnecessary for data that fit in memory.
    total_samples : float or None, default=None
        For `partial_fit`: the total weight of rows on which the posterior is conditioned. If more have been seen,
        earlier rows count less, the oldest least. Rows are then streamed. None: all rows count in full.
    keep_rows : bool, int or "auto", default="auto"
        Whether a default fit keeps its rows and their labels, 12 to 20 bytes a stored entry and 20 bytes a row, also in
        a pickle, so that `partial_fit` can continue from them. A number is the largest number of stored entries to
        keep; "auto" is 20 million. A row that is repeated by its weight is stored repeatedly. `forget_rows` drops them.
    sampler : str, sampler object or None, default=None
        Sampler of the clusters.

        - `Gibbs` integrates weights and components out. It is the default unless ``assignments="fresh"``.
        - `SCIR` (the default for ``assignments="fresh"``), `SGRLD` and `SliceGibbs` sample labels by slices. `SCIR` and
          `SGRLD` move weights and components; `SliceGibbs` draws them exactly, given all rows. These samplers mix more
          slowly than `Gibbs`: chains can stay at too many clusters for thousands of sweeps. `SGRLD` is approximate, and
          its intervals are far too narrow at the default step size and number of steps.

        Set ``sampler__step_size`` to tune `SCIR`.
    thin : int or "auto", default="auto"
        Keep every ``thin``-th step after burn-in. "auto" keeps at most 100 draws, within 512 MiB.
    batch_size : int or "auto", default="auto"
        Number of rows in a minibatch of `SCIR` and `SGRLD`. "auto": 10,000, or all if there are fewer.

    See Also
    --------
    BayesianLDA : Topic model, in which each row mixes several components.
    LatentClassModel : A fixed number of classes, and covariates of membership.

    Notes
    -----
    `Gibbs` draws the labels of all rows one after another, :math:`p(z_i = j) \propto n_j \, p(x_i \mid x_k : z_k = j)`
    and :math:`p(z_i = \mathrm{new}) \propto \alpha \, p(x_i)`. It draws :math:`\alpha` given the number of clusters
    (Escobar and West). After each sweep except the first ten, ten pairs of rows are drawn. If both rows are in one
    cluster, a split is proposed, otherwise a merge of their clusters, by sequential allocation (Dahl). These proposals
    escape from modes in which updates of single labels get stuck. All of these moves leave the posterior unchanged.
    Chains start with rows assigned at random to at most 50 clusters.

    With `SliceGibbs`, `SCIR` and `SGRLD`, sticks and components are part of the state, and labels are drawn by slice
    sampling. Slices are :math:`u_i \sim U(0, \omega_{z_i})`. Sticks are broken off until the remaining weight is below
    all slices, and :math:`p(z_i = j) \propto 1[\omega_j > u_i] \, p(x_i \mid \theta_j)`. Given the labels, sticks have
    the Beta parameters :math:`(1 + m_j, \alpha + \sum_{l>j} m_l)`, and components have the Dirichlet parameters of the
    prior plus the counts of their rows. Here :math:`m` counts the labels of all rows, or N/n times those of the
    minibatch. `SliceGibbs` leaves the posterior unchanged, and so does `SCIR` with stored labels: its automatic step
    size is then infinite, which is an exact draw.

    *Weights.* A weight w is represented by m equal rows of weight w / m, where m is the whole number nearest to w, but
    at least 1. Each of them has its own label, and contributes w / m to the counts by which weights, components and
    other labels are drawn. Its own label is drawn as if its weight were 1, with :math:`n_j` a sum of weights and
    :math:`\alpha` times their mean. So a whole weight w has exactly the effect of w rows, and a row of weight 0 has
    none. In between, this approximates the pseudo-posterior :math:`p(\omega, \theta) \prod_i (\sum_j \omega_j
    f(x_i | \theta_j))^{w_i}`.

    With ``weights="survey"``, weights are multiplied by :math:`\sum w / \sum w^2`. They then sum to Kish's effective
    sample size :math:`(\sum w)^2 / \sum w^2`, the number of rows of equal weight that estimate a mean as precisely.
    This gives a pseudo-posterior (Savitsky and Toth). It is centred on the population, but its intervals are
    approximate: they allow for unequal weights, but not for strata or clusters of the sampling design. `partial_fit`
    scales the weights of each call separately.

    The time of a step is proportional to the number of components times the number of non-zeros in the minibatch (of
    all entries for "bernoulli"). It grows with the sum of replication weights.

    References
    ----------
    Baker, Fearnhead, Fox and Nemeth (2018), Large-scale stochastic sampling from the probability simplex, NeurIPS,
    section 4.2. Dahl (2005), Sequentially-allocated merge-split sampler for conjugate and nonconjugate Dirichlet
    process mixture models. Escobar and West (1995), Bayesian density estimation and inference using mixtures, JASA
    90. Kalli, Griffin and Walker (2011), Slice sampling mixture models, Statistics and Computing 21. Kish (1965),
    Survey sampling. Savitsky and Toth (2016), Bayesian estimation under informative sampling, Electronic Journal of
    Statistics 10.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import DPCategoricalMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate(
    ...     [rng.random((60, 12)) < 0.9, rng.random((40, 12)) < 0.1]
    ... ).astype(float)
    >>> mixture = DPCategoricalMixture(
    ...     likelihood="bernoulli", random_state=0
    ... ).fit(X)
    >>> np.bincount(mixture.labels_).tolist()
    [60, 40]
    """

    likelihood: Literal["multinomial", "bernoulli", "categorical", "mixed"] = "multinomial"
    columns: Literal["auto"] | Mapping[Any, str] = "auto"
    concentration_prior: float | tuple[float, float] = (1.0, 1.0)
    category_prior: float | ArrayLike = 0.5
    weights: Literal["replication", "survey"] = "replication"
    partition_loss: Literal["vi", "binder"] = "vi"
    assignments: Literal["auto", "stored", "fresh"] = "auto"
    total_samples: float | None = None
    keep_rows: bool | int | Literal["auto"] = "auto"

    _offers = (("simplex", "counts"), ("any", "conditionals"), ("any", "slices"))
    _default_sampler = "scir"
    _unused_by_predictions = (*BaseSGMCMC._unused_by_predictions, "labels_", "_kept", "_known")

    _parameter_constraints = {
        **BaseSGMCMC._parameter_constraints,
        "likelihood": [StrOptions(set(_LIKELIHOODS))],
        "columns": [StrOptions({"auto"}), dict],
        "concentration_prior": [Interval(Real, 0, None, closed="neither"), tuple, list],
        "category_prior": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "weights": [StrOptions({"replication", "survey"})],
        "assignments": [StrOptions({"auto", "stored", "fresh"})],
        "partition_loss": [StrOptions({"vi", "binder"})],
        "total_samples": [Interval(Real, 1, 1e15, closed="both"), None],
        "keep_rows": ["boolean", Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        has_levels = self.likelihood in ("categorical", "mixed")
        tags.input_tags.sparse = not has_levels
        tags.input_tags.positive_only = self.likelihood != "mixed"
        tags.input_tags.allow_nan = self.likelihood != "multinomial"
        tags.input_tags.categorical = has_levels
        tags.input_tags.string = has_levels
        return tags

    # -- fitting -------------------------------------------------------------------------------------------------

    @fits_anew
    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        feature_names: Sequence[str] | AnyArray | None = None,
    ) -> Self:
        """Sample the clusters given rows.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Rows, with entries as ``likelihood`` requires. Their order does not matter.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, with the meaning set by the parameter ``weights``; 0 leaves a row out. None: all weights are 1.
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the columns in tables of results, if X has none.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For rows that ``likelihood`` does not allow, parameters out of range, an unsupported sampler, or a batch
            larger than the data.
        ChainDivergedError
            If the state of a chain becomes infinite or NaN, because the step size is too large.
        FitInterrupted
            After Ctrl-C; it is a subclass of ``KeyboardInterrupt``. The estimator is fitted with the draws made so far,
            and is also ``estimator_`` of the exception.
        """
        return self._fit(X, y, sample_weight, feature_names)

    def _fit(self, X, y, sample_weight, feature_names):
        self._validate_params()
        sampler, pair = self._checked_sampler()
        concentration = self._checked_concentration()
        X, weight = self._checked_rows(X, sample_weight, reset=True)
        self._feature_names = checked_names(feature_names, self.n_features_in_)
        n_batch = self._n_batch(sampler, pair, X.shape[0])
        data = self._taken(X, weight, n_batch, None)
        n_iter = self.n_iter or self._n_steps(pair, data)
        plan = DrawPlan(n_iter, self.burn_in, self.thin, self._bytes_per_draw())
        chains = self._new_chains(sampler, pair, plan, concentration, streaming=False)
        self.n_samples_seen_, self._weight_seen = X.shape[0], _weight_of_all(X, weight)
        self._with_y = y is not None
        self._drop_rows()
        if collapses(pair) and is_within(self.keep_rows, data.n_entries):
            self._kept, self._known = data, known_with(self._known, self._digest(X, weight))
        return self._fit_rows([chain.bind(data) for chain in chains], n_iter, X)

    @all_or_nothing
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        feature_names: Sequence[str] | AnyArray | None = None,
    ) -> Self:
        """Update the fit with more rows.

        By default, the rows of `fit` and of earlier calls are kept with their labels. A call appends the rows of X,
        draws their labels, and sweeps five times over them. Once there are 5% more stored entries, it makes sweeps over
        all rows: as many as a default fit, times the share of new entries. The first half of them is not kept. The
        first call of an unfitted estimator is a `fit`. Kept draws are the latest 100 that were made with at least 80%
        of the present rows, but never fewer than 20, if there are so many. ``n_iter``, ``burn_in`` and ``thin`` only
        affect the first call.

        Rows are kept up to a number of stored entries, ``keep_rows``. Beyond it, after `forget_rows`, with
        ``total_samples`` and with a minibatch sampler (``assignments="fresh"``, ``sampler="scir"`` or "sgrld"), rows
        are streamed instead. The chains make ten passes over the rows of X, or fifty in the first call of a stream.
        Rows of earlier calls stay in their last clusters. They count in full while the total weight of all rows is at
        most ``total_samples``, and less beyond that. New clusters can then form, and clusters without new rows vanish.
        Kept draws are draws of this call only. ``n_iter`` and ``thin`` are ignored, and ``burn_in`` is a share of the
        steps of each call, or a number of steps from the first call on.

        While rows are kept, a repeated block of at least 100 stored entries, with the same rows and weights in the same
        order, is recognised. Its rows are not counted again, but cause further sweeps over all rows. A stream counts
        every block.

        The first call sets the levels of categories: the levels that occur, or that its dtype declares. Other levels
        count as missing, with a warning. A change of the step size takes effect in the next call. Changing the sampler,
        ``likelihood`` or ``n_chains`` raises an error.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Rows, as for `fit`.
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            As for `fit`. Survey weights of each call are scaled separately.
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the columns, as for `fit`; None keeps the names of earlier calls.

        Returns
        -------
        self : object
            Fitted. ``labels_`` contains the clusters of the rows of X. Clusters are numbered by size again.
        """
        self._validate_params()
        sampler, pair = self._checked_sampler(streams=True)
        if pair[1] == "slices":
            raise ValueError(
                f"{type(sampler).__name__} draws components from all rows and cannot stream; "
                'use sampler="gibbs", "scir" or "sgrld" for partial_fit.'
            )
        first, grows = not hasattr(self, "_chains"), collapses(pair) and self.total_samples is None
        if first and grows:
            return self._fit(X, y, sample_weight, feature_names)
        concentration = self._checked_concentration()
        if not first:
            self._refuse_other_kind(sampler, collapses(pair))
            self._refuse_other_chains(sampler, self.sampler_)
        X, weight = self._checked_rows(X, sample_weight, reset=first)
        self._feature_names = checked_names(feature_names, self.n_features_in_, self._feature_names)
        self._with_y = y is not None
        if grows and self._kept is not None:
            block, digest = self._taken(X, weight, _BATCH, None), self._digest(X, weight)
            is_known = digest in self._known
            if is_within(self.keep_rows, self._kept.n_entries + (0 if is_known else block.n_entries)):
                self._count(X, weight, is_known)
                self._known = known_with(self._known, digest)
                return self._append(X, block, is_known)
        self._drop_rows()
        self._count(X, weight)
        return self._stream(X, weight, sampler, pair, concentration)

    def _count(self, X, weight, is_known=False):
        """Add rows to those seen, unless they ``is_known``."""
        if not is_known:
            self.n_samples_seen_ = X.shape[0] + (self.n_samples_seen_ if hasattr(self, "_chains") else 0)
            self._weight_seen += _weight_of_all(X, weight)

    def _append(self, X, block, is_known):
        """Append a block to the rows that are kept, unless it ``is_known``, and make the sweeps that are due."""
        n_new = 0 if is_known else block.n_rows
        self._kept = self._kept if is_known else self._kept.joined(block)
        sizes = self._pending, block.n_entries, self._kept.n_entries
        plan, self._pending = planned_update(_PASSES, self._chains[0], *sizes, self._bytes_per_draw())
        chains = [chain.append(self._kept, n_new, copy(plan)) for chain in self._chains]
        return self._fit_rows(chains, plan.n_iter, X)

    def _stream(self, X, weight, sampler, pair, concentration):
        """Make passes over the rows of a block, while earlier rows stay in their clusters."""
        if self._layout.kind == MIXED:
            raise ValueError(
                'With likelihood="mixed", partial_fit appends to rows that are kept, and cannot stream them. Set '
                "keep_rows=True and total_samples=None, and do not call forget_rows."
            )
        first, fresh = not hasattr(self, "_chains"), not collapses(pair)
        total = self.total_samples or (self._weight_seen if fresh else None)
        data = self._taken(X, weight, self._n_batch(sampler, pair, np.inf), total)
        n_steps = (_FIRST_PASSES if first else _STREAM_PASSES) * _steps_of_a_pass(pair, data)
        start = 0 if first else self._chains[0].step
        plan = BlockPlan(start, n_steps, self.burn_in, self._bytes_per_draw())
        if first:
            chains = self._new_chains(sampler, pair, plan, concentration, streaming=True)
        else:
            chains = [chain.begin_block(plan) for chain in self._chains]
            if fresh:
                self.sampler_ = self._resolved_sampler(sampler, stored=False)
                for chain in chains:
                    chain.sampler = self.sampler_
        return self._fit_rows([chain.bind(data) for chain in chains], start + n_steps, X)

    def forget_rows(self) -> Self:
        """Drop the rows and their labels, for privacy or to make the estimator small.

        All results stay as they are, also ``labels_``. `resume` is refused, and a repeated block is no longer
        recognised. From then on, `partial_fit` streams: earlier rows stay in their last clusters. Clusters of these
        rows cannot split, intervals are too narrow, and draws from before a call no longer count.

        Returns
        -------
        self : object
        """
        check_is_fitted(self, "_chains")
        self._drop_rows()
        self._forgot = True
        for chain in self._chains:
            chain.forget()
        return self

    def _drop_rows(self):
        """Keep no rows for `partial_fit` to append to."""
        self._kept, self._known, self._pending, self._forgot = None, frozenset(), 0.0, False

    def _fit_rows(self, chains, n_iter, X):
        try:
            self._run(chains, n_iter)
        except FitInterrupted:
            self._label(X)
            raise
        return self._label(X)

    def _label(self, X):
        self.labels_ = self._most_probable(X)
        return self

    @all_or_nothing
    def resume(self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Continue a fit or update that was interrupted or loaded from a checkpoint.

        The draws equal those of an uninterrupted call. After `forget_rows`, this call is refused.

        Parameters
        ----------
        X : same type and content as passed to ``fit``, or to the ``partial_fit`` that was interrupted
            The data.
        y : ignored
        sample_weight : same as passed with X, default=None

        Returns
        -------
        self : object
            Fitted.
        """
        try:
            self._resume(X, sample_weight)
        except FitInterrupted:
            self._label(self._encoded(X))
            raise
        return self._label(self._encoded(X))

    # -- sampler and number of steps -------------------------------------------------------------------------------

    def _offered(self):
        return (("any", "conditionals"),) if self.likelihood == "mixed" else self._offers

    def _default_for(self, streams):
        return self._default_sampler if self.assignments == "fresh" else "gibbs"

    @staticmethod
    def _resolved_sampler(sampler, *, stored):
        step_size = np.inf if stored and sampler._is_exact else sampler._simplex_step
        if step_size is None and sampler._picks_step:
            raise sampler._no_automatic_step()
        return sampler._resolved(step_size)

    def _new_chains(self, sampler, pair, plan, concentration, *, streaming):
        seeds = self._chain_seeds()[1:]
        if collapses(pair):
            self.sampler_ = sampler._resolved(None)
            if self._layout.kind == MIXED:
                return [MixedChain(seed, plan, self._order.layout, concentration) for seed in seeds]
            return [CollapsedChain(seed, plan, self._layout, concentration) for seed in seeds]
        if getattr(sampler, "parameterization", "expanded-mean") != "expanded-mean":
            raise ValueError(
                f'sampler must have parameterization="expanded-mean", because the number of components varies; '
                f"got {sampler!r}."
            )
        stored = pair[1] == "slices" or (self.assignments != "fresh" and not streaming)
        self.sampler_ = self._resolved_sampler(sampler, stored=stored)
        return [StickChain(seed, plan, self._layout, concentration, self.sampler_, stored=stored) for seed in seeds]

    def _n_batch(self, sampler, pair, n):
        self._refuse_large_batch(n)
        if collapses(pair):  # rows of a sweep between two returns to Python
            return _BATCH
        return sampler._rows_read(MAX_ROWS, _BATCH if isinstance(self.batch_size, str) else int(self.batch_size))

    def _n_steps(self, pair, data):
        return _PASSES.of(data.n_entries) * _steps_of_a_pass(pair, data)

    def _bytes_per_draw(self):
        return 4 * self.n_chains * 50 * self._layout.n_public
