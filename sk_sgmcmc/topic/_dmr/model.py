"""Dirichlet-multinomial regression: topics whose prevalence follows metadata of the documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ...base import all_or_nothing, fits_anew
from ...chains.checks import CLIPPED_PREDICTOR, INTERCEPTS_NOT_CONVERGED
from ...chains.growth import FEWEST_SHARE
from ...covariates.effects import ObservedMetadata, effects_of
from ...covariates.formula import FormulaEncoder
from ...covariates.metadata import MetadataEncoder
from ...samplers._base import Sampler
from ...samplers._registry import make_sampler
from ...utils._dask import lazy_for_dask
from ...utils._numbers import interval_tails
from ...utils._parameters import keyword_parameters
from ...utils._sklearn import SCALE_CONSTRAINT, Interval, StrOptions
from ...utils._tables import aligned
from ...utils._typing import AnyArray, Columns, FloatArray, Seed, Table
from ...utils._warnings import warn_user
from ...utils.blocks import CountsLike
from ...utils.corpus import warn_of_other_values
from .._counts.documents import MatrixCorpus
from .._counts.growth import LONG_SWEEPS
from .._lda import BayesianLDA
from .._results.topics import new_topics, refuse_merged
from .comparison import comparison_of
from .dispersion import DISPERSIONS
from .document_prior import (
    COEF_SAMPLER,
    L_BFGS,
    checked_coef_sampler,
    refuse_optimised,
)
from .documents import refuse_table, taken_apart
from .intercepts import check_intercepts, mean_intercepts
from .permutations import permutation_table
from .prevalence import (
    are_clipped,
    check_clipped,
    coefficient_table,
    difference_table,
    predicted_prevalence,
    prior_draws,
)  # fmt: skip
from .proportions import RecordedCounts


@keyword_parameters
class DMRTopicModel(BayesianLDA):
    r"""Find topics whose prevalence depends on metadata of the documents: Dirichlet-multinomial regression.

    Documents with metadata :math:`x_d` (with a 1 for the intercept) have topic proportions
    :math:`\theta_d \sim \mathrm{Dirichlet}(\alpha_d)`, :math:`\alpha_{dk} = \exp(x_d^\top \lambda_k)`. Topics
    :math:`\phi_k \sim \mathrm{Dirichlet}(\beta)` and tokens are as in `BayesianLDA`. The coefficients
    :math:`\lambda_k` have independent normal priors.

    Parameters
    ----------
    formula : str, default=None
        The terms that have coefficients, as an R formula such as ``"~ party * bs(year, df=4)"``, for metadata in a
        DataFrame or dict. Requires the package formulaic. None uses the columns of metadata as they are.
    metadata_prior_scale : float, default=1
        Standard deviation of the prior of each coefficient, in units of the standardised columns (see Notes).
    dispersion : {"shared", "topic"}, default="shared"
        Whether the proportions of documents have Dirichlet distributions, or scaled Dirichlet distributions, in which
        each topic has a dispersion of its own (see Notes). "topic" requires collapsed Gibbs sampling of documents in
        memory, the default.
    metadata_columns : int, str, list or callable, default=None
        Which columns of X are metadata if no ``metadata=`` is passed; the others are counts. An int means the last
        ones. Otherwise pass names of columns of a DataFrame, or indices. A callable receives X and returns names or
        indices.
    handle_unknown : {"warn", "ignore", "error"}, default="warn"
        What to do about missing values, and about levels absent from `fit`. "warn" and "ignore" give them no effect
        (the prior mean), with or without a warning: a missing number counts as the mean, and with a formula an unknown
        level as the average of all levels. "error" refuses them. "ignore" also accepts new documents without
        ``metadata=``. `partial_fit` learns new levels, unless they are refused.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components, n_metadata + 1)
        Posterior mean of the coefficients in the reference chain, for the metadata as given; the intercept first. With
        ``dispersion="topic"``, those of the logarithms of the mean activities (see Notes).
    dispersion_coef_ : ndarray of shape (n_components, n_metadata + 1)
        With ``dispersion="topic"``, posterior mean of the coefficients of the logarithms of the dispersions, on the
        same scale; columns sum to 0.
    metadata_names_ : list of str
        Names of the columns of ``coef_`` after the intercept: "year", or "party=Whig" for a level. With a formula they
        are the names of its terms.
    samples_ : dict of ndarray
        ``"components"`` as in `BayesianLDA`, and ``"coef"`` of shape (n_chains, n_kept, n_components, n_metadata + 1);
        with ``dispersion="topic"`` also ``"dispersion_coef"`` of the same shape.
    doc_topic_prior_ : ndarray of shape (n_components,)
        Mean of the documents' Dirichlet parameters, which is the prior of documents without metadata. With
        ``dispersion="topic"``, mean of the shapes :math:`a_{dk}`.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        ``quantity``, ``mean``, split ``r_hat``, ``ess`` and ``mcse`` of the log predictive of some fitted documents,
        the entropy of the topics' shares, the mean sum of the documents' priors, and the mean intercept of centred
        metadata. See "Warnings and what to do" in the user guide.
    n_features_in_, feature_names_in_
        See scikit-learn. Columns of metadata in X are among them.

    Other Parameters
    ----------------
    spline_prior : {"smooth", "independent"}, default="smooth"
        Prior of the coefficients of each spline or polynomial of the formula (``bs``, ``cc``, ``cr``, ``cs``,
        ``poly``). "smooth": the function varies smoothly over the range of its covariate (see Notes). "independent":
        the coefficients are independent, as all others are.
    intercept_prior_scale : float, default=1
        Standard deviation of the prior of each intercept, whose mean is the logarithm of ``doc_topic_prior``. If it is
        large, such as 10, topics of short documents can lose all their tokens.
    dispersion_prior_scale : float, default=1
        With ``dispersion="topic"``, standard deviation of the prior of each coefficient of the dispersions, for
        standardised columns. Near 0, all dispersions are equal, as with "shared".
    coef_sampler : {"sgld", "sghmc", "sgnht", "sg-nphmc", "l-bfgs"}, sampler object or None, default=None
        Sampler of the coefficients; ``sampler`` has no influence on them.

        - `SGLD`, `SGHMC`, `SGNHT` or `SGNPHMC` move in coordinates in which one step size suits all coefficients.
        - "l-bfgs" draws none. After each pass, it optimises the coefficients given the assignments (Mimno and
          McCallum), which must be stored. The result is a point estimate: its draws differ only because assignments do,
          so intervals of coefficients, prevalences and effects are too narrow.
        - None selects `SGHMC` with stored assignments and `SGNHT` with fresh ones; with ``dispersion="topic"``, it must
          be None.
    doc_topic_prior : float, array-like of shape (n_components,) or "auto", default="auto"
        Exponential of the prior mean of the intercepts. "auto" is 0.1, or 15 over the number of topics if there are
        more than 150.
    assignments : {"auto", "stored", "fresh"}, default="auto"
        Whether to keep the topics of tokens between steps, as in `BayesianLDA`. With "stored", the coefficients move
        after each pass over the documents, by the gradient on all of them. With "fresh", they move at each minibatch,
        by its gradient scaled by N/n.
    new_features : {"error", "extend"}, default="error"
        What to do with documents that have other columns, as in `BayesianLDA`. "extend" requires metadata separate from
        X.

    Notes
    -----
    Columns of a DataFrame, or of an array of objects, that do not contain numbers become one column of 0 and 1 per
    level. For a categorical column, these are the levels that it declares. Numbers are standardised, unless a column
    contains only 0 and 1; a sparse matrix is read as numbers. ``coef_`` belongs to the numbers as given.

    The linear predictor :math:`x_d^\top \lambda_k` is clipped to [-20, 10] wherever priors of documents are computed.
    `fit` warns if kept draws reach a bound on the documents' metadata.

    With topics' assignments z, the log posterior of the coefficients has the gradient

    .. math:: g_{kt} = \frac{N}{n} \sum_{d} x_{dt} \alpha_{dk} \bigl[ \psi(\alpha_{d\cdot})
              - \psi(\alpha_{d\cdot} + n_d) + \psi(\alpha_{dk} + n_{dk}) - \psi(\alpha_{dk}) \bigr]
              - (\lambda_{kt} - \mu_{kt}) / \sigma_t^2,

    with the digamma functions averaged over draws of z. The sampler works in coordinates in which the posterior given z
    is about standard normal. They are whitened during burn-in by the information about the coefficients, jointly over
    topics up to 600 coefficients, otherwise topic by topic. Entries of the gradient in these coordinates are clipped to
    [-4, 4] (wider in minibatches, by their noise), because exponentials are steep on one side. Documents with the same
    metadata form a group, whose prior is computed once.

    With ``dispersion="topic"``, the proportions are :math:`\theta_{dk} = G_{dk} / \sum_l G_{dl}` with independent
    activities :math:`G_{dk} \sim \mathrm{Gamma}(a_{dk}, s_{dk})` of shape :math:`a_{dk} = \exp(x_d^\top \lambda_k)` and
    scale :math:`s_{dk} = \exp(x_d^\top \gamma_k)`. This is a scaled Dirichlet distribution, and if all scales are
    equal, a Dirichlet distribution. The :math:`\lambda_k` have the priors above, and the :math:`\gamma_k` independent
    normals with mean 0 (smooth ones where :math:`\lambda_k` has them). The scale is the dispersion of a topic: the
    ratio of the variance of its activity to the mean. A factor common to all topics cancels, so ``dispersion_coef`` is
    :math:`\gamma_k` minus its mean over topics. ``coef`` is that plus :math:`\lambda_k`: the coefficients of
    :math:`\log E[G_{dk}]`.

    Given :math:`u_d \sim \mathrm{Gamma}(n_d, \text{rate } \sum_k G_{dk})`, topics are independent. With G integrated
    out, the weight of topic k for a token is :math:`(n_{dk} + a_{dk}) / (1/s_{dk} + u_d)` times that of the word, and
    :math:`n_{dk}` is negative binomial. Each pass draws all :math:`u_d` given the assignments, exactly, since their
    logarithms have log-concave densities; then the assignments given :math:`u_d`. After every second pass, with new
    :math:`u_d`, each topic's coefficients make a trajectory of Hamiltonian Monte Carlo, in whitened coordinates that
    are chosen during burn-in. All updates leave the posterior unchanged.

    The smooth prior of a function f of one covariate, a spline or polynomial of the formula, is the distribution of a
    Brownian motion over the fitted range, restricted to the span of the basis. With u the covariate scaled to [0, 1],
    minus its log density is :math:`\int_0^1 f'(u)^2 du / (8 \sigma^2)`, with :math:`\sigma` the
    ``metadata_prior_scale``. In an interaction, f is multiplied by the other columns, and its mean over the range has
    the prior :math:`N(0, \sigma^2)`. If the basis contains the constant, the mean of f has the prior of the intercept's
    deviation. The smooth prior replaces the independent normals in all gradients and coordinates.

    References
    ----------
    Mimno and McCallum (2008), Topic models conditioned on arbitrary features with Dirichlet-multinomial regression,
    UAI. Welling and Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics, ICML, section 3. Chen, Fox
    and Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo, ICML, section 3. Patterson and Teh (2013),
    Stochastic gradient Riemannian Langevin dynamics on the probability simplex, NeurIPS, section 4. Monti,
    Mateu-Figueras and Pawlowsky-Glahn (2011), Notes on the scaled Dirichlet distribution, in Compositional Data
    Analysis: Theory and Applications, Wiley.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import DMRTopicModel
    >>> from sk_sgmcmc.datasets import make_lda
    >>> X = make_lda(
    ...     n_samples=200, n_features=50, n_components=3, random_state=0
    ... ).counts
    >>> year = np.arange(200.0)
    >>> dmr = DMRTopicModel(n_components=3, n_iter=50, random_state=0).fit(
    ...     X, metadata=year
    ... )
    >>> dmr.coef_.shape
    (3, 2)
    >>> dmr.predict_prevalence([[1900.0], [1950.0]]).shape
    (2, 3)
    """

    formula: str | None = None
    spline_prior: Literal["smooth", "independent"] = "smooth"
    metadata_prior_scale: float = 1.0
    intercept_prior_scale: float = 1.0
    dispersion: Literal["shared", "topic"] = "shared"
    dispersion_prior_scale: float = 1.0
    metadata_columns: int | str | Sequence[int] | Sequence[str] | AnyArray | Callable[[Any], Any] | None = None
    handle_unknown: Literal["warn", "ignore", "error"] = "warn"
    coef_sampler: str | Sampler | None = None

    # With metadata routing enabled, scikit-learn passes metadata to every method that takes them.
    __metadata_request__fit = {"metadata": True}
    __metadata_request__partial_fit = {"metadata": True}
    __metadata_request__transform = {"metadata": True}
    __metadata_request__score = {"metadata": True}

    _takes_blocks, _default_sweeps = True, LONG_SWEEPS
    _unused_by_predictions = (*BayesianLDA._unused_by_predictions, "_counts_before_merger")
    _documents = None  # Checksum of the documents of `fit`, if they have metadata.
    _fitted_dispersion = "shared"  # The parameter ``dispersion`` in `fit`.
    _check_definitions = (*BayesianLDA._check_definitions, CLIPPED_PREDICTOR, INTERCEPTS_NOT_CONVERGED)

    _parameter_constraints = {
        **BayesianLDA._parameter_constraints,
        "coef_sampler": [str, Sampler, None],
        "formula": [str, None],
        "spline_prior": [StrOptions({"smooth", "independent"})],
        "metadata_prior_scale": SCALE_CONSTRAINT,
        "intercept_prior_scale": SCALE_CONSTRAINT,
        "dispersion": [StrOptions(set(DISPERSIONS))],
        "dispersion_prior_scale": SCALE_CONSTRAINT,
        "metadata_columns": [Interval(Integral, 1, None, closed="left"), str, list, tuple, np.ndarray, callable, None],
        "handle_unknown": [StrOptions({"warn", "ignore", "error"})],
    }

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``sampler__...`` and ``coef_sampler__...`` also work if the sampler is a name or None.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator, or of its samplers.

        Returns
        -------
        self : object
        """
        if any(key.startswith("coef_sampler__") for key in params):
            sampler = params.get("coef_sampler", self.coef_sampler)
            if isinstance(sampler, str) and sampler == L_BFGS:
                raise ValueError('coef_sampler="l-bfgs" has no parameters; pass one of the samplers in its place.')
            if sampler is None or isinstance(sampler, str):
                params = {**params, "coef_sampler": make_sampler(sampler or COEF_SAMPLER)}
        return super().set_params(**params)

    # -- fitting -------------------------------------------------------------------------------------------------

    @fits_anew
    def fit(
        self,
        X: CountsLike,
        y: Any = None,
        *,
        metadata: Columns | None = None,
        feature_names: Sequence[str] | AnyArray | None = None,
    ) -> Self:
        """Draw topics and coefficients given documents and their metadata.

        Parameters
        ----------
        X : array-like, sparse, DataFrame, `CountBlocks` or Dask array of shape (n_samples, n_features)
            Counts, as for `BayesianLDA`; with ``metadata_columns`` and no ``metadata``, also columns of metadata.
        y : ignored
            One-dimensional labels, as a pipeline passes them. A table is refused: pass metadata by name.
        metadata : DataFrame, dict of columns, array-like or sparse of shape (n_samples, n_columns), default=None
            One row per document. If X and metadata are pandas frames, rows are matched by their labels. For counts in
            blocks, it may also be a list of tables, one for each block, a function that returns an iterator over them,
            or a Dask DataFrame, Series or array.
        feature_names : array-like of str of shape (n_words,), default=None
            As for `BayesianLDA.fit`.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            As for `BayesianLDA.fit`; also for metadata of another length than X, infinite numbers, and, with
            ``handle_unknown="error"``, missing values.
        FitInterrupted
            After Ctrl-C, as a ``KeyboardInterrupt``. The estimator is fitted with the draws made so far; it is
            ``estimator_`` of the exception.
        """
        self._validate_params()
        self._checked_sampler()  # Check all parameters before the data.
        refuse_table(y)
        DISPERSIONS[self.dispersion].refuse_blocks(self._input(X))
        return self._fit(X, feature_names, metadata=metadata)

    def fit_transform(self, X: CountsLike, y: Any = None, *, metadata: Columns | None = None) -> FloatArray:
        """Fit, and return the topic proportions of the same documents.

        Parameters
        ----------
        X, y, metadata
            As for `fit`.

        Returns
        -------
        proportions : ndarray of shape (n_samples, n_components)
        """
        return self.fit(X, y, metadata=metadata).transform(X, metadata=metadata)

    @all_or_nothing
    def partial_fit(
        self,
        X: CountsLike,
        y: Any = None,
        *,
        metadata: Columns | None = None,
        feature_names: Sequence[str] | AnyArray | None = None,
    ) -> Self:
        """Update the fit with more documents; see `BayesianLDA.partial_fit`.

        Columns of metadata, and the means and deviations that standardise them, are those of the first block. New
        levels get coefficients of their own, with a warning unless ``handle_unknown="ignore"``. Earlier draws,
        which lack these, are dropped, and the update makes at least a fifth of the sweeps of a fit. In a stream of
        minibatches, with a ``formula``, or once documents are dropped, new levels have no effect, unless a categorical
        column of the first block declares them.

        In a stream of minibatches after a `fit` with stored assignments, the log likelihood of the coefficients given
        its documents is replaced by its second-order expansion about the coefficients at the end of that fit.

        Parameters
        ----------
        X, y, metadata
            As for `fit`.
        feature_names : array-like of str of shape (n_features,), default=None
            As for `fit`. None keeps the names of earlier calls.

        Returns
        -------
        self : object
            Fitted.
        """
        self._validate_params()
        self._checked_sampler(streams=True)
        refuse_table(y)
        for block, own in self._input(X).parts(metadata):
            self._partial_fit(block, feature_names, metadata=own, may_lack=False)
        self.__dict__.pop("_last_table", None)
        self.__dict__.pop("_new_levels", None)
        self._documents = None
        if self._kept is None:
            self._observed = None  # It would contain only the metadata of some blocks.
        return self

    def _check_update(self, X, metadata=None, may_lack=False):
        corpus, table, _ = self._counts_and_metadata(X, metadata, reset=False)
        self._new_levels = {}
        if table is not None and self.handle_unknown != "error" and self._appends(corpus):
            # A new encoder, so that an update that is refused below leaves the present one.
            self._encoder, self._new_levels = self._encoder.with_levels_of(table)
        return super()._check_update(X, metadata=metadata, may_lack=may_lack)

    def _append(self, corpus, is_known, word_prior):
        table, new_levels = self.__dict__.pop("_last_table"), self.__dict__.pop("_new_levels")
        self._documents = None  # The documents are no longer those of one call.
        if new_levels:
            self._begin_levels(new_levels, corpus)
        if not is_known and self._observed is not None:
            self._observed = None if table is None else self._observed.extended(table)
        return super()._append(corpus, is_known, word_prior)

    def _begin_levels(self, new_levels, corpus):
        """Give coefficients to new levels of the metadata of ``corpus``, and drop all draws, which lack them."""
        encoder = self._encoder
        self.metadata_names_ = list(encoder.names)
        if self._observed is not None:
            self._observed = self._observed._replace(table=encoder.widened(self._observed.table))
        self._kept = self._kept.with_given(encoder.widened(self._kept.shard.given))
        for chain in self._chains:
            chain.doc_prior.widen(self._document_prior(chain.doc_prior.alpha, True, chain.plan))
            chain.keep_only([])
        # Enough sweeps that `FEWEST_DRAWS` are kept, even if the block is small.
        self._pending = max(self._pending, FEWEST_SHARE * (self._kept.n_tokens + corpus.n_tokens) - corpus.n_tokens)
        if self.handle_unknown == "warn":
            what = "; ".join(f"{name!r}: {', '.join(map(repr, map(str, new)))}" for name, new in new_levels.items())
            warn_user(f"metadata has new levels in {what}. They get coefficients of their own from this update on.")

    @all_or_nothing
    def resume(self, X: CountsLike, y: Any = None, *, metadata: Columns | None = None) -> Self:
        """Continue a fit that was interrupted or loaded from a checkpoint.

        Parameters
        ----------
        X, y, metadata : same type and content as given to `fit`

        Returns
        -------
        self : object
            Fitted.
        """
        refuse_table(y)
        self._resume(X, metadata=metadata, may_lack=False)
        self.__dict__.pop("_last_table", None)
        return self

    def _validate_params(self):
        super()._validate_params()
        self._new_encoder()

    def _checked_sampler(self, *, streams=False):
        fitting = super()._checked_sampler(streams=streams)
        if streams and self._optimises and not self._collapses(fitting[0]):
            refuse_optimised("`partial_fit` draws them minibatch by minibatch")
        self._checked_coef_sampler()
        collapses, name = self._collapses(fitting[0]), type(fitting[0]).__name__
        DISPERSIONS[self.dispersion].refuse_sampler(name, collapses, self.coef_sampler)
        return fitting

    @property
    def _optimises(self):
        return isinstance(self.coef_sampler, str) and self.coef_sampler == L_BFGS

    def _checked_coef_sampler(self):
        return checked_coef_sampler(COEF_SAMPLER if self.coef_sampler is None else self.coef_sampler)

    def _streaming_params(self):
        return {"coef_sampler": None if self.coef_sampler is None else self._checked_coef_sampler()}

    def _refuse_other_way(self, sampler, pair):
        super()._refuse_other_way(sampler, pair)
        if self.dispersion != self._fitted_dispersion:
            raise ValueError(
                f"`dispersion` must stay as it was in fit; got {self.dispersion!r}. Set it back, or call fit to start "
                "over."
            )
        self._dispersion.refuse_other_coef_sampler(self._chains[0], **self._streaming_params())

    def _document_prior(self, alpha, stored, plan):
        if self._optimises and not stored:
            refuse_optimised("here they are drawn minibatch by minibatch")
        scales = self.metadata_prior_scale, self.intercept_prior_scale
        prior = self._dispersion.document_prior(
            alpha, stored, self._encoder, None if self.coef_sampler is None else self._checked_coef_sampler(), scales,
            self.dispersion_prior_scale, self.spline_prior == "smooth",
        )  # fmt: skip
        prior.records_documents = self.keep_documents is not False and bool(self._encoder.levels)
        return prior

    def _begin(self, feature_names=None):
        super()._begin(feature_names)
        self._fitted_dispersion = self.dispersion

    @property
    def _dispersion(self):
        """What the fitted dispersion implies for the documents' priors."""
        return DISPERSIONS[self._fitted_dispersion]

    # -- documents -----------------------------------------------------------------------------------------------

    def _check_X(self, X, *, reset, metadata=None, may_lack=True):
        """The checked corpus with encoded metadata, which it ``may_lack`` if nothing is learnt from the documents."""
        corpus, metadata, places = self._counts_and_metadata(X, metadata, reset=reset)
        if reset and metadata is None and self.formula is None:
            warn_user(
                f"No metadata were given, so this {type(self).__name__} is plain latent Dirichlet allocation with a "
                "learnt prior. Pass metadata=, one row per document, or set metadata_columns; or use BayesianLDA."
            )
        if reset:
            self._metadata_in_X = places
            self._encoder = self._new_encoder().fit(metadata)
            self.metadata_names_ = list(self._encoder.names)
        if metadata is not None and not self._encoder.takes_metadata:
            raise ValueError(f"This {type(self).__name__} was fitted without metadata; fit it with metadata first.")
        if metadata is None and not reset:
            described = self._known_metadata(corpus, may_lack)
        else:
            described = self._encoder.encode(metadata, corpus.n_docs, self.handle_unknown)
        if reset:
            self._observed = None if metadata is None else ObservedMetadata.of(self._encoder.table(metadata))
            self._documents = None if metadata is None else corpus.checksum
        elif not may_lack:
            self._last_table = None if metadata is None else self._encoder.table(metadata)
        return self._in_forms(corpus, metadata, reset).with_described(described)

    def _new_encoder(self):
        """The encoder of metadata, not fitted; raises if it cannot follow the formula."""
        return MetadataEncoder() if self.formula is None else FormulaEncoder(self.formula)

    def _in_forms(self, corpus, metadata, reset):
        """The corpus with the words that the word prior knows; ``metadata`` is None for the documents of `fit`."""
        return corpus

    def _counts_and_metadata(self, X, metadata, *, reset):
        """The checked corpus, the table of metadata or None, and the indices of the columns of metadata in X."""
        (metadata,) = aligned(X, metadata=metadata)
        in_X = self.metadata_columns is not None and metadata is None if reset else self._metadata_in_X is not None
        if in_X:
            counts, metadata, places = taken_apart(self, X, metadata, reset=reset)
            corpus = MatrixCorpus.from_counts(counts, whom=type(self).__name__)
            if reset:
                warn_of_other_values(corpus, type(self).__name__)
        else:
            corpus, places = super()._check_X(X, reset=reset), None
        return corpus, corpus.joined_metadata(metadata), places

    def _described_documents(self, X, metadata):
        """Checked documents for `effects`, with encoded metadata, and their `ObservedMetadata`."""
        corpus, metadata, _ = self._counts_and_metadata(X, metadata, reset=False)
        if metadata is not None:
            described = self._encoder.encode(metadata, corpus.n_docs, self.handle_unknown)
            corpus = self._in_forms(corpus, metadata, False).with_described(described)
            return corpus, ObservedMetadata.of(self._encoder.table(metadata))
        if self._observed is None or corpus.checksum != self._documents:
            raise ValueError("`metadata` must be passed with documents other than those of fit; got None.")
        described = self._encoder.encoded_table(self._observed.table)[self._observed.place]
        return self._in_forms(corpus, None, False).with_described(described), self._observed

    def _known_metadata(self, corpus, may_lack):
        """Encoded metadata of documents for which none were passed: those of `fit` if the documents are the same."""
        fitted = self._observed
        if fitted is not None and fitted.place is not None and corpus.checksum == self._documents:
            return self._encoder.encoded_table(fitted.table)[fitted.place]
        self._refuse_no_metadata()
        return None if may_lack else self._encoder.encode(None, corpus.n_docs, self.handle_unknown)

    def _refuse_no_metadata(self):
        """Raise where documents without metadata are not accepted."""
        if self._encoder.levels and self.handle_unknown != "ignore":
            raise ValueError(
                "`metadata` must be passed with documents other than those of fit; got None. Pass metadata=M, with one "
                'row for each document; or set handle_unknown="ignore", and documents without metadata get the mean '
                "prior of the fitted ones. Searches and pipelines of scikit-learn pass metadata on after "
                "sklearn.set_config(enable_metadata_routing=True)."
            )

    def _prepared(self, given):
        return self._encoder.rows(given)

    def _refuse_width(self, n_columns, metadata=None, **given):
        # X may lack its columns of metadata if these are passed separately.
        absent = 0 if self._metadata_in_X is None or metadata is None else self._metadata_in_X.size
        if n_columns != self.n_features_in_ - absent:
            super()._refuse_width(n_columns, **given)
        if metadata is None and self._metadata_in_X is None:
            self._refuse_no_metadata()  # Blocks of a lazy array cannot be recognised as the fitted documents.

    @lazy_for_dask(
        lambda self: len(self.components_), dtype=None, row_arguments=("metadata",), draws=("coef", "dispersion_coef")
    )
    def transform(self, X: CountsLike, *, metadata: Columns | None = None) -> FloatArray:
        """Topic proportions of documents.

        Parameters
        ----------
        X : array-like, sparse, DataFrame, `CountBlocks` or Dask array of shape (n_samples, n_features)
            Counts, as for `fit`.
        metadata : as for `fit`, default=None
            With a Dask array, it may also be a Dask DataFrame, Series or array, in blocks of the same documents. None,
            if X has no columns of metadata, uses the metadata passed to `fit` if X equals the X passed to `fit`. For
            other documents None is refused, unless ``handle_unknown="ignore"``, which gives them the mean prior of the
            fitted documents. All methods that take documents follow this rule.

        Returns
        -------
        proportions : ndarray, lazy for a Dask array, of shape (n_samples, n_components)
            Fast approximation of the posterior means given the mean of the topics and of the documents' priors, as in
            `BayesianLDA.transform`. Rows sum to 1; an empty document gets its prior.
        """
        return self._transform(X, metadata=metadata)

    def score(self, X: CountsLike, y: Any = None, *, metadata: Columns | None = None) -> float:
        r"""Mean log predictive probability of a hidden token by document completion, averaged over draws.

        Parameters
        ----------
        X, y, metadata
            As for `fit`; without metadata as in `transform`.

        Returns
        -------
        score : float
            Higher is better; see `BayesianLDA.score`. Each draw has its own prior for each document.
        """
        refuse_table(y)
        return self._completion(X, metadata=metadata).score

    def perplexity(self, X: CountsLike, *, metadata: Columns | None = None) -> float:
        """Perplexity of hidden tokens, ``exp(-score(X))``; lower is better.

        Parameters
        ----------
        X, metadata
            As for `score`.

        Returns
        -------
        perplexity : float
        """
        return self._completion(X, metadata=metadata).perplexity

    # -- prevalence and coefficients ---------------------------------------------------------------------------

    def coef_table(self, interval: float = 0.9) -> Table:
        """Coefficients with their uncertainty.

        Parameters
        ----------
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per coefficient: ``topic``, ``name``, ``term`` ("intercept" or a column of the metadata), ``mean``
            (as in ``coef_``), ``low``, ``high``, and ``positive``, the probability that it is above 0. The last three
            use the draws of all chains that agree on the topic. With ``dispersion="topic"``, the coefficients of the
            dispersions follow, and a column ``parameter`` contains "coef" or "dispersion_coef".

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DMRTopicModel
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> metadata = {"party": np.array(["green", "green", "red", "red"] * 10)}
        >>> model = DMRTopicModel(
        ...     2, n_iter=500, intercept_prior_scale=1, random_state=0
        ... ).fit(X, metadata=metadata)
        >>> len(
        ...     model.coef_table()["mean"]
        ... )  # an intercept and two parties, of two topics
        6
        """
        check_is_fitted(self)
        if self._merged_into is not None:
            raise ValueError(
                "Merged topics have no coefficients: their Dirichlet parameters are sums of exponentials. Use effects, "
                "predict_prevalence or prevalence_difference, which are exact; or the coef_table of the estimator that "
                "was merged."
            )
        return coefficient_table(self, interval_tails(interval))

    @overload
    def predict_prevalence(self, metadata: Columns, interval: None = None) -> FloatArray: ...
    @overload
    def predict_prevalence(self, metadata: Columns, interval: float) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    def predict_prevalence(
        self, metadata: Columns, interval: float | None = None
    ) -> FloatArray | tuple[FloatArray, FloatArray, FloatArray]:
        r"""Expected topic proportions of documents with given metadata, before any of their words is read.

        Parameters
        ----------
        metadata : as for `fit`
            One row per prediction.
        interval : float or None, default=None
            Mass of the central credible interval, for example 0.9.

        Returns
        -------
        prevalence : ndarray of shape (n_rows, n_components)
            Posterior mean of :math:`\alpha_{k} / \sum_l \alpha_{l}`; rows sum to 1. With ``interval`` a tuple (mean,
            low, high) of such arrays. The interval is for the expectation, not for a document's own proportions. The
            mean is over draws of the reference chain. The interval of a topic uses the draws of all chains that agree
            on it. With ``dispersion="topic"``, the expectation is computed by numerical integration.
        """
        return predicted_prevalence(self, metadata, interval)

    def doc_topic_priors(self, metadata: Columns) -> FloatArray:
        r"""Dirichlet parameters of documents with given metadata, under each draw.

        Parameters
        ----------
        metadata : as for `fit`
            One row per document.

        Returns
        -------
        priors : ndarray of shape (n_draws, n_rows, n_components)
            :math:`\exp(x_d^\top \lambda_k)`, with the draws of all chains in sequence, in the form that
            `sk_sgmcmc.metrics.document_completion` takes as ``doc_topic_prior``.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DMRTopicModel
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> metadata = {"party": np.array(["green", "green", "red", "red"] * 10)}
        >>> model = DMRTopicModel(
        ...     2, n_iter=500, intercept_prior_scale=1, random_state=0
        ... ).fit(X, metadata=metadata)
        >>> model.doc_topic_priors({"party": ["green", "red"]}).shape[-2:]
        (2, 2)
        """
        return prior_draws(self, metadata)

    def prevalence_difference(self, metadata_a: Columns, metadata_b: Columns, interval: float = 0.9) -> Table:
        """How much more prevalent topics are in one group of documents than in another.

        Parameters
        ----------
        metadata_a, metadata_b : as for `fit`
            Rows of the two groups, over which prevalence is averaged.
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic: ``topic``, ``name``, ``difference`` (posterior mean of a minus b, in the reference
            chain), ``low``, ``high``, and ``positive``, the probability that it is above 0, over all chains that agree
            on the topic.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DMRTopicModel
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> metadata = {"party": np.array(["green", "green", "red", "red"] * 10)}
        >>> model = DMRTopicModel(
        ...     2, n_iter=500, intercept_prior_scale=1, random_state=0
        ... ).fit(X, metadata=metadata)
        >>> table = model.prevalence_difference(
        ...     {"party": ["green"]}, {"party": ["red"]}
        ... )
        >>> bool(np.abs(table["difference"]).min() > 0.5)
        True
        """
        return difference_table(self, (metadata_a, metadata_b), interval_tails(interval))

    def effects(
        self,
        covariate: str,
        at: Any = None,
        *,
        of: Literal["population", "documents", "prior"] = "population",
        kind: Literal["difference", "prevalence"] = "difference",
        reference: Any = None,
        pairwise: bool = False,
        given: Mapping[str, Any] | None = None,
        groups: ArrayLike | None = None,
        X: CountsLike | None = None,
        metadata: Columns | None = None,
        interval: float = 0.9,
        random_state: Seed = 0,
    ) -> Table:
        r"""Effect of a covariate on the prevalence of topics, averaged over documents.

        In the metadata of all documents the covariate is set to one value and then to another, with everything else as
        it was observed, and the mean topic proportions are compared. By default, they come from a regression of the
        documents' proportions on their metadata in each draw (see Notes).

        Parameters
        ----------
        covariate : str
            A column of metadata; "x0", "x1" and so on if they have no names.
        at : value or list of values, default=None
            Values to compare. None selects all levels, or the first and third quartiles of numbers, or both numbers if
            there are only two.
        of : {"population", "documents", "prior"}, default="population"
            Mean proportions to compare.

            - "population": of the population from which the documents are a sample. The documents get random weights in
              each draw (a Bayesian bootstrap), so intervals include the variation between documents.
            - "documents": of these documents themselves, all with equal weights. Intervals contain only the uncertainty
              about their topics, and are narrow.
            - "prior": of the documents' prior, before any of their words is read. This needs no documents, but relies
              on the form of the prior: where topics differ in how unevenly they are spread over documents, its mean
              differs from that of the documents.
        kind : {"difference", "prevalence"}, default="difference"
            Contrasts between values, or the prevalence at each.
        reference : value, default=None
            Value with which the others are compared. None: the first of ``at``.
        pairwise : bool, default=False
            Compare all pairs of values, the later with the earlier.
        given : dict, default=None
            Fixed values of other covariates, such as ``{"party": "Whig"}``.
        groups : array-like of shape (n_documents,), default=None
            Labels of clusters of documents, for ``of="population"``: the documents of a cluster get one weight
            together. Pass it if documents were not sampled one by one, for example paragraphs of the same speech. None:
            each document has a weight of its own.
        X : as for `fit`, default=None
            Documents to use in place of those that were fitted, with their ``metadata``, or without if they are those
            of `fit`. Their proportions are drawn given the topics of the reference chain.
        metadata : as for `fit`, default=None
            Metadata of X. Without X, metadata of the documents over which to average; the regression is still on the
            fitted documents. None: the fitted documents.
        interval : float, default=0.9
            Mass of the central credible interval.
        random_state : None, int, RandomState, Generator or SeedSequence, default=0
            Seed of proportions and weights. ``n_jobs`` does not affect them.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic and contrast: ``topic``, ``name``, ``value``, ``reference``, ``prevalence`` (at the
            value), ``difference`` (posterior mean of the prevalence at the value less that at the reference, in the
            reference chain), ``low``, ``high``, and ``positive``, the probability that the difference is above 0, over
            all chains that agree on the topic. With ``kind="prevalence"`` one row per topic and value: ``topic``,
            ``name``, ``value``, ``prevalence``, ``low``, ``high``. Numbers are NaN where the documents do not determine
            the regression, such as at a level that none of them has.

        Raises
        ------
        ValueError
            For invalid arguments, and if the topics of the fitted documents are not known and no X is passed.

        Notes
        -----
        In each kept draw, the proportions :math:`\theta_d` of all documents are drawn given words and metadata, and
        weights w from a Dirichlet distribution with all parameters 1. The coefficients
        :math:`B = \arg\min_B \sum_d w_d \lVert \theta_d - B^\top x_d \rVert^2` then give the mean proportions
        :math:`\sum_d w_d B^\top x_d(v)`, where :math:`x_d(v)` has the covariate set to v. The columns of x are those of
        the model: the terms of ``formula``, or the columns of metadata. With a single categorical covariate, the
        difference is that between the weighted means of two groups of documents. A regression line is not bounded by 0
        and 1.

        The regression extrapolates where a level was seen only in a narrow range of a number, or only with some levels
        of another covariate. There is a warning if most documents over which to average lie elsewhere, unless so few
        documents have the level that they may miss the others by chance. Two covariates that are both numbers, with
        more than two values each, are not checked.

        The counts of topics in each document are recorded with the kept draws of a fit that stores assignments, also
        for `CountBlocks` and in updates by `partial_fit`. Beyond 512 MiB fewer draws are recorded. After an update, the
        draws are those made with all documents. If these are fewer than 20, earlier draws contribute with the documents
        that they have. `forget_documents` drops the counts, and ``keep_documents=False`` does not record them. Pass X
        then, and also after streams by minibatches and for ``topic_prior="normal"``.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DMRTopicModel
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> metadata = {"party": np.array(["green", "green", "red", "red"] * 10)}
        >>> model = DMRTopicModel(
        ...     2, n_iter=500, intercept_prior_scale=1, random_state=0
        ... ).fit(X, metadata=metadata)
        >>> table = model.effects("party")
        >>> table["value"][0], table["reference"][0], bool(table["low"][0] > 0.5)
        ('red', 'green', True)
        """
        comparison = comparison_of(self, of, X, metadata, groups, given, random_state)
        return effects_of(
            comparison, covariate, at, kind=kind, reference=reference, pairwise=pairwise, interval=interval
        )

    def _comparison(self, of=None, X=None, metadata=None, groups=None, given=None):
        """The `Comparison` that displays show, with the arguments of `effects`."""
        return comparison_of(self, "population" if of is None else of, X, metadata, groups, given, 0)

    def permutation_test(
        self,
        X: CountsLike,
        covariate: str,
        at: Any = None,
        *,
        metadata: Columns,
        reference: Any = None,
        groups: ArrayLike | None = None,
        n_permutations: int = 20,
        refit: bool = True,
        interval: float = 0.9,
        random_state: Seed = 0,
    ) -> Table:
        """Compare effects with those that the model finds after the values of the covariate were permuted.

        Permuted values have no relation to the words. Of the 90% intervals of their effects, 10% should exclude 0.

        Parameters
        ----------
        X : as for `fit`
            The documents of `fit`.
        covariate, at, reference, groups
            As for `effects`. With ``groups``, a covariate that is constant within clusters is permuted between
            clusters, and any other within them.
        metadata : as for `fit`
            The metadata of `fit`, as one table.
        n_permutations : int, default=20
            Number of permutations.
        refit : bool, default=True
            Whether to fit the model to each permutation, which takes as long as so many fits. Since metadata are part
            of the prior, this alone repeats all of the analysis. False regresses proportions given the words alone,
            under the mean prior of the documents, in a fraction of a second; topics stay those of this fit, and
            intervals of effects are not checked.
        interval : float, default=0.9
            Mass of all intervals.
        random_state : None, int, RandomState, Generator or SeedSequence, default=0
            Seed of permutations and fits.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic and contrast: ``topic``, ``name``, ``value``, ``reference``, ``difference`` (as from
            `effects`; with ``refit=False`` from the regression described above), ``permuted_low`` and
            ``permuted_high`` (central interval of the permuted differences), ``p_value`` (share of differences, this
            one among them, that are at least as large in absolute value), and with fits ``excluded``, the share of
            permutations in which the interval of `effects` excludes 0. Topics of other fits are matched to those of
            this one.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DMRTopicModel
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> metadata = {"party": np.array(["green", "green", "red", "red"] * 10)}
        >>> model = DMRTopicModel(
        ...     2, n_iter=500, intercept_prior_scale=1, random_state=0
        ... ).fit(X, metadata=metadata)
        >>> table = model.permutation_test(
        ...     X, "party", metadata=metadata, n_permutations=99, refit=False
        ... )
        >>> float(table["p_value"][0])
        0.01
        """
        refuse_merged(self)
        check_is_fitted(self)
        return permutation_table(
            self, X, (covariate, at, reference), metadata, groups=groups, n_permutations=n_permutations, refit=refit,
            interval=interval, random_state=random_state,
        )  # fmt: skip

    def _recorded_counts(self):
        """The `RecordedCounts` of the fitted documents, or None if they are not known."""
        if self._merged_into is not None:
            return self._counts_before_merger
        return RecordedCounts.of_chains(self._chains, self._topic_draws.orders)

    # -- merged topics ---------------------------------------------------------------------------------------------

    _merged_into = None  # Index of the new topic of each topic with coefficients, after a merger.
    _counts_before_merger = None

    @property
    def _coef_draws(self):
        """Draws of the coefficients of topics before any merger, (n_chains, n_kept, n_topics, width)."""
        return self._dispersion.joined(self.samples_) if self._merged_into is None else self._unmerged_coef

    @property
    def _flat_coef(self):
        draws = self._coef_draws
        return draws.reshape(-1, *draws.shape[2:])

    def merge_topics(self, groups: Sequence[int] | Sequence[Sequence[int]]) -> Self:
        """Join topics into one, in all draws.

        Parameters
        ----------
        groups : list of int, or list of lists of int
            Topics that become one, such as ``[0, 3]`` or ``[[0, 3], [1, 7, 8]]``.

        Returns
        -------
        merged : DMRTopicModel
            A fitted estimator with fewer topics; this one is unchanged. See `BayesianLDA.merge_topics`. In each draw, a
            document's Dirichlet parameter of a new topic is the sum of the parameters of its group. Prevalences add up,
            so `transform`, `predict_prevalence`, `prevalence_difference` and `effects` are exact. The logarithm of such
            a sum is not linear in the metadata, so the new topics have no coefficients: only this estimator has
            ``coef_``, ``samples_["coef"]`` and `coef_table`. With ``dispersion="topic"``, prevalences are exact too,
            but `transform` and `score` approximate a sum of activities by a gamma variable of equal mean and variance.
        """
        merged = super().merge_topics(groups)
        new = new_topics(groups, self._n_features_out)
        merged._unmerged_coef, merged._counts_before_merger = self._coef_draws, self._recorded_counts()
        merged._merged_into = new if self._merged_into is None else new[self._merged_into]
        for name in self._dispersion.names:
            merged.__dict__.pop(f"{name}_", None)
        return merged

    # -- draws -----------------------------------------------------------------------------------------------------

    def _coords_of_draws(self):
        if self._merged_into is not None:
            return {}
        return {"term": ["intercept", *map(str, self.metadata_names_)]}

    def _monitored(self, chains):
        coef = self.samples_["coef"]
        found = {**super()._monitored(chains), "mean_intercept": mean_intercepts(chains[0].data, coef)}
        if self._merged_into is not None:
            return found
        # Topics of other chains may differ, so the coefficients are those of the reference chain.
        return found | {name: self.samples_[name][[self.reference_chain_]] for name in self._dispersion.names}

    def _set_fitted(self, chains):
        self._merged_into = None
        self._collect(chains, chains[0].topic_groups)
        for name in self._dispersion.names:
            self.samples_[name] = self._encoder.as_given(self.samples_[name])
            setattr(self, f"{name}_", self.samples_[name][self.reference_chain_].mean(axis=0))
        data, mean_of = chains[0].data, self._dispersion.mean_arrays
        self._mean_priors = np.stack([data.mean_of(partial(mean_of, draws=each)) for each in self._coef_draws])
        self._doc_priors = self._mean_priors[:, : len(self.coef_)]
        self.doc_topic_prior_ = self._doc_priors[self.reference_chain_].copy()
        self._set_word_prior(chains)

    def _checks(self, chains):
        data = chains[0].data
        coef = self._dispersion.shape_coef(self._coef_draws)
        shares = np.max([data.mean_of(partial(are_clipped, coef=each)) for each in coef], axis=0)
        found = [*super()._checks(chains), check_clipped(shares)]
        if chains[0].plan.streams or not self.sampler_._draws_in_time:
            return found
        return [*found, *check_intercepts(mean_intercepts(data, self.samples_["coef"]), self._longer(10))]

    def _prior_in_chain(self, samples, c, chain, data, docs):
        means = {name: samples[name][c].mean(axis=0) for name in self._dispersion.names}
        arrays = self._dispersion.arrays(data.given, self._as_given(means))
        return self._dispersion.of_means(arrays[data.group[docs]])

    def _as_given(self, draw):
        """The parameters of a draw of a chain, for the metadata as given."""
        return self._dispersion.joined({name: self._encoder.as_given(draw[name]) for name in self._dispersion.names})

    def _prior_of_draw(self, data, c, s, docs):
        return self._dispersion.priors(data.given[data.group[docs]], self._dispersion.joined(self.samples_, (c, s)))

    def _doc_prior(self, corpus, draws=None):
        dispersion, new = self._dispersion, self._merged_into
        if corpus.described is None:
            chains = np.array([self.reference_chain_]) if draws is None else draws // self._topic_draws.shape[1]
            priors = [dispersion.of_means(self._mean_priors[[c]], new) for c in chains]
            return priors[0] if draws is None else priors.__getitem__
        if draws is not None:
            coef = self._flat_coef
            return lambda s: dispersion.priors(corpus.described, coef[draws[s]], new)
        return dispersion.of_means(
            dispersion.mean_arrays(corpus.described, self._coef_draws[self.reference_chain_]), new
        )

    def _present_doc_prior(self, chain, corpus):
        parameters = [self._as_given(prior.draw()) for prior in chain.document_priors]

        def arrays_of(described):
            return np.mean([self._dispersion.arrays(described, each) for each in parameters], axis=0)

        of = chain.data.mean_of(arrays_of)[None] if corpus.described is None else arrays_of(corpus.described)
        return self._dispersion.of_means(of)

    def _word_names(self, n_features, given=None):
        names = super()._word_names(n_features, given)
        return names if names.size == n_features else np.delete(names, self._metadata_in_X)
