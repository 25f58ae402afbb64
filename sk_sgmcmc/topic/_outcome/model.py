"""Topic models of documents with an outcome: `TopicRegressor` and `TopicClassifier`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ...base import all_or_nothing, fits_anew
from ...chains.checks import DISPERSION_MATTERS, NOT_IDENTIFIED
from ...chains.convergence import evenly
from ...metrics import doc_topic_proportions
from ...utils._bit_stable import bit_stable_product
from ...utils._containers import refuse_dask
from ...utils._dask import lazy_for_dask
from ...utils._labels import check_labels
from ...utils._mixtures import normal_mixture_quantile
from ...utils._numbers import interval_ends, interval_tails
from ...utils._parameters import keyword_parameters
from ...utils._sklearn import SCALE_CONSTRAINT, ClassifierMixin, RegressorMixin, StrOptions
from ...utils._tables import aligned
from ...utils._typing import AnyArray, FloatArray, MatrixLike, Table
from .._counts.document_prior import first_doc_prior
from .._counts.scaled_dirichlet import ScaledDirichlet
from .._estimator.model import _checked_rows
from .._lda import BayesianLDA
from .._results.covariates import Covariates, checked_outcomes
from .activity_priors import DirichletActivities, FixedActivities, ScaledActivities
from .cut import cut_draws, mean_coefficients
from .document_prior import OutcomePrior
from .outcomes import BinaryOutcome, GaussianOutcome, Outcomes
from .tables import check_dispersion, check_identified, coefficient_table, contrast_table

# Draws of all chains that means of predictions average over, and that their intervals and probabilities do.
_FEW_DRAWS, _N_DRAWS = 10, 50


@keyword_parameters
class TopicOutcomeModel(BayesianLDA):
    """Base of topic models of documents with an outcome.

    A subclass sets ``_outcome`` and implements

    ``_first_response(y)``
        The outcomes of `fit` in standard units; sets what this needs, such as their mean.
    ``_response(y)``
        Further outcomes in the same units, with NaN where they are not known.

    Parameters
    ----------
    dispersion : {"topic", "shared"}, default="topic"
        Prior of the documents' proportions if ``doc_topic_prior="auto"``. "topic": each topic has a dispersion of its
        own, as in `DMRTopicModel`. "shared": a Dirichlet distribution.
    feedback : bool, default=True
        Whether outcomes influence the topics. With False, topics depend on the words alone, and coefficients are drawn
        given these topics.

    Attributes
    ----------
    coef_ : ndarray of shape (n_components,)
        Posterior mean of the topics' coefficients b. There is no intercept, since proportions sum to 1: b_k is the
        outcome of a document that consists of topic k alone, with covariates of 0.
    covariate_coef_ : ndarray of shape (n_covariates,)
        Posterior mean of the covariates' coefficients.
    covariate_names_ : list of str
        Names of the covariates.
    doc_topic_prior_ : ndarray of shape (n_components,)
        Shapes of the activities, the parameters of the Dirichlet distribution if all scales are equal; posterior mean.
    doc_topic_scale_ : ndarray of shape (n_components,)
        Scales of the activities, relative to their geometric mean; 1 with ``dispersion="shared"``.
    samples_ : dict of ndarray
        ``"components"`` as for `BayesianLDA`; ``"coef"``, ``"doc_topic_prior"`` and ``"doc_topic_scale"``: (n_chains,
        n_kept, n_components); with covariates also ``"covariate_coef"``: (n_chains, n_kept, n_covariates).

    Other Parameters
    ----------------
    doc_topic_prior : float, array-like of shape (n_components,) or "auto", default="auto"
        A number or an array is a fixed parameter of a Dirichlet distribution, whatever the ``dispersion``.
    coef_prior_scale : float, default=10
        Standard deviation of the normal prior of each coefficient: in standard deviations of y, about the mean of y,
        for `TopicRegressor`; of the logit for `TopicClassifier`. Coefficients of covariates have it for covariates
        divided by their standard deviations.
    """

    dispersion: Literal["topic", "shared"] = "topic"
    feedback: bool = True
    coef_prior_scale: float = 10.0

    coef_: FloatArray = field(init=False)

    _takes_blocks = False
    _offers = (("any", "conditionals"),)
    _default_sampler = "gibbs"
    _check_definitions = (*BayesianLDA._check_definitions, NOT_IDENTIFIED, DISPERSION_MATTERS)
    _without_topics = ("covariate_coef",)
    _axes_of_draws = {"coef": ["topic"], "doc_topic_scale": ["topic"], "covariate_coef": ["covariate"]}
    _outcome = GaussianOutcome  # The class of the likelihood.
    _covariates = Covariates()
    _response_mean, _response_scale = 0.0, 1.0

    _parameter_constraints = {
        **BayesianLDA._parameter_constraints,
        "dispersion": [StrOptions({"topic", "shared"})],
        "feedback": ["boolean"],
        "coef_prior_scale": SCALE_CONSTRAINT,
    }

    # -- choices ---------------------------------------------------------------------------------------------------

    def _default_for(self, streams):
        return "gibbs"

    def _checked_sampler(self, *, streams=False):
        needed = {"batch_size": "auto", "total_samples": None, "topic_prior": "dirichlet"}
        if self.assignments == "fresh":
            needed["assignments"] = "auto"
        for name, value in needed.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{type(self).__name__} requires collapsed Gibbs sampling of all documents; got "
                    f"{name}={getattr(self, name)!r}. Leave {name}={value!r}."
                )
        return super()._checked_sampler(streams=streams)

    def _document_prior(self, alpha, stored, plan):
        if not isinstance(self.doc_topic_prior, str):
            prior = FixedActivities(alpha, allows_tempering=True)
        elif self.dispersion == "topic":
            prior = ScaledActivities(alpha)
        else:
            prior = DirichletActivities(alpha, allows_tempering=True)
        return OutcomePrior(prior, self._new_outcome(), self.feedback)

    def _new_outcome(self):
        return self._outcome(self.n_components, len(self._covariates.names), self.coef_prior_scale)

    def _refuse_other_way(self, sampler, pair):
        super()._refuse_other_way(sampler, pair)
        self._refuse_changes(("dispersion", "feedback", "coef_prior_scale"), "partial_fit")

    def _refuse_taking_in(self):
        raise ValueError(
            f"partial_fit of a {type(self).__name__} needs the earlier documents, but they were dropped, by "
            "forget_documents or because they exceed keep_documents. Raise keep_documents, or call fit with all "
            "documents."
        )

    # -- fitting ---------------------------------------------------------------------------------------------------

    @fits_anew
    def fit(  # type: ignore[override]
        self,
        X: MatrixLike,
        y: ArrayLike,
        covariates: Any = None,
        *,
        feature_names: Sequence[str] | AnyArray | None = None,
    ) -> Self:
        """Draw topics and coefficients given documents and their outcomes.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts, in memory, as for `BayesianLDA.fit`.
        y : array-like of shape (n_samples,)
            Outcomes of the documents.
        covariates : array-like or DataFrame of shape (n_samples, n_covariates), default=None
            Numbers that also influence the outcome, on any scales, without a constant column.
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the words for all tables, if X has none.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            As for `BayesianLDA.fit`; also for outcomes or covariates that are missing or of another length than X.
        FitInterrupted
            After Ctrl-C, as a ``KeyboardInterrupt``. The estimator is fitted with the draws made so far; it is
            ``estimator_`` of the exception.
        """
        self._validate_params()
        self._checked_sampler()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass the outcome of each "
                "document; for topics alone, use BayesianLDA."
            )
        self._first_response(y)  # Check outcomes before the documents.
        return self._fit(X, feature_names, outcome=y, covariates=covariates)

    def fit_transform(self, X: MatrixLike, y: ArrayLike, covariates: Any = None) -> FloatArray:
        """Fit, and return the topic proportions of the same documents given their words.

        Parameters
        ----------
        X, y, covariates
            As for `fit`.

        Returns
        -------
        proportions : ndarray of shape (n_samples, n_components)
        """
        return self.fit(X, y, covariates).transform(X)

    @all_or_nothing
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        covariates: Any = None,
        *,
        feature_names: Sequence[str] | AnyArray | None = None,
    ) -> Self:
        """Update the fit with more documents, with or without outcomes; see `BayesianLDA.partial_fit`.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts of documents.
        y : array-like of shape (n_samples,), default=None
            Their outcomes. NaN, or None for all documents: not known; such documents still inform the topics. Required
            in the first call of an unfitted estimator.
        covariates : array-like or DataFrame of shape (n_samples, n_covariates), default=None
            Required where y is passed, if the model has covariates.
        feature_names : array-like of str of shape (n_features,), default=None
            As for `fit`. None keeps the names of earlier calls.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            As for `fit`; also after `forget_documents`, or if there are more tokens than ``keep_documents``.
        """
        if not hasattr(self, "_chains"):
            return self.fit(X, y, covariates, feature_names=feature_names)
        self._validate_params()
        self._checked_sampler(streams=True)
        return self._partial_fit(X, feature_names, outcome=y, covariates=covariates)

    @all_or_nothing
    def resume(self, X: MatrixLike, y: ArrayLike, covariates: Any = None) -> Self:  # type: ignore[override]
        """Continue a fit that was interrupted or loaded from a checkpoint.

        Parameters
        ----------
        X, y, covariates : same type and content as given to `fit`, or to the last `partial_fit`

        Returns
        -------
        self : object
            Fitted.
        """
        return self._resume(X, outcome=y, covariates=covariates)

    def _check_X(self, X, *, reset, outcome=None, covariates=None):
        """The checked corpus, with its ``outcome`` and covariates as metadata, which only chains read."""
        refuse_dask(X)
        y, covariates = aligned(X, y=outcome, covariates=covariates)
        corpus = super()._check_X(X, reset=reset)
        if reset:
            self._covariates = Covariates.of(covariates, corpus.n_docs)
            self.covariate_names_ = list(self._covariates.names)
            response = self._first_response(y)
        elif y is None:
            response = np.full(corpus.n_docs, np.nan)
        else:
            response = self._response(y)
        if y is None and covariates is None:
            encoded = np.zeros((corpus.n_docs, len(self._covariates.names)))
        else:
            encoded = self._covariates.encoded(covariates, corpus.n_docs)
        if response.size != corpus.n_docs:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {corpus.n_docs} documents, and y "
                f"{response.size} outcomes; pass one outcome for each document."
            )
        return corpus.with_described(_checked_rows(Outcomes.described(response, encoded), corpus.n_docs))

    def _prepared(self, given):
        return None  # Outcomes are read from the metadata as given.

    # -- draws -----------------------------------------------------------------------------------------------------

    def _set_fitted(self, chains):
        self._collect(chains, chains[0].topic_groups)
        if not self.feedback:
            self._set_cut_draws(chains)
        self._set_units()
        for name in ("coef", "covariate_coef", "doc_topic_prior", "doc_topic_scale"):
            setattr(self, f"{name}_", self.samples_[name][self.reference_chain_].mean(axis=0))
        if not self._covariates.names:
            del self.samples_["covariate_coef"]
        self._mean_prior = self._prior_at(self.reference_chain_)
        self._set_word_prior(chains)

    def _set_cut_draws(self, chains):
        draws, found = self._topic_draws.of_documents, []
        for c, chain in enumerate(chains):
            documents = chain.data.documents
            of_chain = (
                (
                    np.ascontiguousarray(np.asarray(draws.kept_draw(c, s)).T, dtype=np.float64),
                    self.samples_["doc_topic_prior"][c, s].astype(np.float64),
                    1.0 / self.samples_["doc_topic_scale"][c, s],
                )
                for s in range(draws.shape[1])
            )
            seed = [chain.assignment_seed, 1]
            found.append(cut_draws(documents, Outcomes.of(documents), self._new_outcome(), of_chain, seed))
        for name in found[0]:
            self.samples_[name] = np.stack([each[name] for each in found])

    def _set_units(self):
        """Convert the draws of coefficients from standard units."""
        own = self.samples_["covariate_coef"] / self._covariates.scale
        shift = own @ self._covariates.mean
        self.samples_["coef"] = self._response_mean + self._response_scale * (self.samples_["coef"] - shift[..., None])
        self.samples_["covariate_coef"] = self._response_scale * own
        if "noise_scale" in self.samples_:
            self.samples_["noise_scale"] = self._response_scale * self.samples_["noise_scale"]

    def _coords_of_draws(self):
        return {"covariate": self.covariate_names_} if self.covariate_names_ else {}

    def _monitored(self, chains):
        own = {"coef": self.samples_["coef"][[self.reference_chain_]]}
        if "noise_scale" in self.samples_:
            own["noise_scale"] = self.samples_["noise_scale"]
        return super()._monitored(chains) | own

    def _checks(self, chains):
        found = [*super()._checks(chains), check_identified(self)]
        if isinstance(self.doc_topic_prior, str) and self.dispersion == "shared":
            found.append(check_dispersion(self, *self._coefficients_by_dispersion(chains)))
        return found

    def _coefficients_by_dispersion(self, chains):
        """Mean coefficients given the topics, in the units of y, under a shared dispersion and one for each topic."""
        chain = chains[self.reference_chain_]
        documents, phi = chain.data.documents, np.ascontiguousarray(self.components_.T, dtype=np.float64)
        start = first_doc_prior(self.n_components) * np.ones(self.n_components)
        return [
            self._response_scale
            * mean_coefficients(
                documents, Outcomes.of(documents), self._new_outcome(), phi, make(start), [chain.assignment_seed, 2]
            )
            for make in (DirichletActivities, ScaledActivities)
        ]

    # -- priors of documents ---------------------------------------------------------------------------------------

    def _prior_at(self, place):
        """The documents' prior in the draws at ``place``, averaged over them."""
        shape, scale = (self.samples_[f"doc_topic_{name}"][place] for name in ("prior", "scale"))
        return self._prior_of(np.atleast_2d(shape), np.atleast_2d(scale))

    @staticmethod
    def _prior_of(shape, scale):
        shape, scale = shape.astype(np.float64), scale.astype(np.float64)
        if np.all(scale == 1.0):
            return shape.mean(axis=0)[None]
        return ScaledDirichlet.of_means(shape.mean(axis=0)[None], (shape * scale).mean(axis=0)[None])

    def _prior_of_draw(self, data, c, s, docs):
        return self._prior_at((c, s))

    def _prior_in_chain(self, samples, c, chain, data, docs):
        return self._prior_of(samples["doc_topic_prior"][c], samples["doc_topic_scale"][c])

    def _doc_prior(self, corpus, draws=None):
        if draws is None:
            return self._mean_prior
        n_kept = self._topic_draws.shape[1]
        return lambda s: self._prior_at(divmod(int(draws[s]), n_kept))

    def _present_doc_prior(self, chain, corpus):
        own = chain.doc_prior.draw()
        return self._prior_of(own["doc_topic_prior"][None], own["doc_topic_scale"][None])

    # -- results ---------------------------------------------------------------------------------------------------

    def coef_table(self, interval: float = 0.9, *, reference: int | str | None = None) -> Table:
        """Coefficients with their uncertainty, as differences from a reference.

        Parameters
        ----------
        interval : float, default=0.9
            Mass of the central credible interval.
        reference : int or str, default=None
            A topic, by number or name, with which all topics are compared. If None, they are compared with the mean of
            all coefficients, weighted by the topics' shares of the documents: the expected outcome of an average
            document.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic and then per covariate: ``term`` ("topic" or "covariate"), ``topic`` (-1 for covariates),
            ``name``, ``mean``, ``low``, ``high``, and ``positive``, the probability that it is above 0. Rows of
            coefficients that the data do not determine contain NaN.
        """
        check_is_fitted(self)
        place = None if reference is None else self._topic_index("reference", reference)
        return coefficient_table(self, place, interval_tails(interval))

    def contrast(self, a: int | str, b: int | str, interval: float = 0.9) -> Table:
        """The difference between the coefficients of two topics, with its uncertainty.

        Parameters
        ----------
        a, b : int or str
            Topics, by number or name.
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row: ``a``, ``b``, ``mean``, ``low``, ``high`` and ``positive``. It is how much the expected outcome
            rises if the share of topic ``a`` rises from 0 to 1 at the cost of topic ``b``.

        Raises
        ------
        ValueError
            If the data do not determine one of the coefficients.
        """
        check_is_fitted(self)
        places = [self._topic_index(name, given) for name, given in (("a", a), ("b", b))]
        if places[0] == places[1]:
            raise ValueError(f"contrast compares two topics; got {a!r} twice.")
        a, b = places
        return contrast_table(self, a, b, interval_tails(interval))

    def _topic_index(self, name, given):
        names = [str(each) for each in self.topic_names_]
        if isinstance(given, str) and given in names:
            return names.index(given)
        n = len(names)
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and 0 <= given < n:
            return int(given)
        raise ValueError(f"`{name}` must be a topic, 0 to {n - 1} or one of topic_names_; got {given!r}.")

    def _places(self, n_draws):
        """The chain and the index of draws that predictions average over, evenly spaced in all chains.

        Each chain predicts with its own topics and coefficients, so chains in different modes can be averaged.
        """
        n_chains, n_kept = self._topic_draws.shape[:2]
        chosen = evenly(n_kept, -(-n_draws // n_chains))
        return [(c, int(s)) for c in range(n_chains) for s in chosen]

    def _predictors(self, theta, encoded, c, s):
        """Predictors of documents in a draw, in the units of y."""
        found = bit_stable_product(theta, self.samples_["coef"][c, s][:, None])[:, 0]
        if self._covariates.names:
            found = found + bit_stable_product(encoded, self.samples_["covariate_coef"][c, s][:, None])[:, 0]
        return found

    def _documents_to_predict(self, X, covariates):
        """Checked documents, and their covariates as given."""
        check_is_fitted(self)
        (covariates,) = aligned(X, covariates=covariates)
        corpus = self._check_X(X, reset=False)
        return corpus, self._covariates.checked(covariates, corpus.n_docs)

    @lazy_for_dask(row_arguments=("covariates",))
    def _mean_predictors(self, X, covariates):
        """Predictors given the words, (n_docs,): the mean over draws of b'E[theta | words]."""
        corpus, given = self._documents_to_predict(X, covariates)
        draws, counts, total = self._topic_draws.of_documents, corpus.to_csr(), 0.0
        places = self._places(_FEW_DRAWS)
        for c, s in places:
            topics = [lambda used, c=c, s=s: draws.mean_of_words(c, s, used)]
            theta = doc_topic_proportions(counts, topics, self._prior_at((c, s)), n_jobs=self.n_jobs)
            total = total + self._predictors(theta, given, c, s)
        return total / len(places)

    def _predictor_draws(self, X, covariates):
        """Draws of the predictors given the words, (n_docs, n_draws), and the place of each draw."""
        corpus, given = self._documents_to_predict(X, covariates)
        places, n_kept = self._places(_N_DRAWS), self._topic_draws.shape[1]
        parts = self._draws_of_chosen(corpus, np.array([c * n_kept + s for c, s in places]), 0)
        return np.column_stack([self._predictors(t, given, *at) for t, at in zip(parts, places, strict=True)]), places

    def merge_topics(self, groups: Sequence[int] | Sequence[Sequence[int]]) -> Self:
        """Not available: a merged topic would have the coefficients of all its parts."""
        raise ValueError(f"merge_topics is not available for a {type(self).__name__}; fit with fewer topics.")


@keyword_parameters
class TopicRegressor(RegressorMixin, TopicOutcomeModel):
    r"""Regress an outcome of documents on their topics, with intervals that include the uncertainty of the topics.

    Documents have topics as in `BayesianLDA`, and an outcome

    .. math:: y_d \sim N(b^\top \theta_d + c^\top x_d, \sigma^2),

    with topic proportions :math:`\theta_d` and covariates :math:`x_d`. Topics, proportions and coefficients are drawn
    together from their joint posterior. A regression on estimated proportions gives intervals that are too narrow, and
    coefficients that are biased where documents are short.

    See Also
    --------
    TopicClassifier : Two classes instead of a number.
    BayesianLDA.regress : Least squares on estimated proportions, the quick alternative.

    Attributes
    ----------
    noise_scale_ : float
        Posterior mean of :math:`\sigma`.
    samples_ : dict of ndarray
        As for `BayesianLDA`; also ``"coef"``, ``"doc_topic_prior"`` and ``"doc_topic_scale"``: (n_chains, n_kept,
        n_components); with covariates ``"covariate_coef"``: (n_chains, n_kept, n_covariates); ``"noise_scale"``:
        (n_chains, n_kept).

    Notes
    -----
    With ``dispersion="topic"``, :math:`\theta_{dk} = G_{dk} / \sum_l G_{dl}`, with independent activities
    :math:`G_{dk}` from gamma distributions of shape :math:`a_k` and scale :math:`s_k`. Their logarithms have normal
    priors: :math:`\log a_k` about the first value of ``doc_topic_prior="auto"`` with standard deviation 2, and
    :math:`\log s_k` about 0 with standard deviation 1. With "shared", all scales are 1. The noise has the prior
    :math:`p(\sigma^2) \propto 1 / \sigma^2`, and one more residual of a thousandth of the standard deviation of y.

    For the first three quarters of burn-in, the chain ignores the outcomes, because it finds topics sooner without
    them. From then on, a sweep makes these steps, which leave the joint posterior unchanged. (1) For each document,
    given :math:`u_d \sim \mathrm{Gamma}(n_d, \text{rate } \sum_k G_{dk})`, topics of its tokens are proposed by a
    collapsed Gibbs sweep over them, in one order or the other with probability 1/2, since one order alone is not
    reversible. Then activities are proposed given these topics. Both are accepted with probability :math:`\min(1, p(y_d
    \mid \theta'_d) / p(y_d \mid \theta_d))`. (2) Shapes and scales make Metropolis steps given the activities, and
    further ones that move the activities along. (3) Coefficients and noise are drawn given the proportions; for
    `TopicClassifier`, given Polya-Gamma variables.

    With ``feedback=False``, coefficients are drawn once for each kept draw of the topics and of the documents' prior,
    after four such sweeps given this draw. Assignments from the fit would not do: given the words they do not depend on
    the outcomes, and coefficients would shrink.

    References
    ----------
    Blei and McAuliffe (2007), Supervised topic models, NeurIPS. Polson, Scott and Windle (2013), Bayesian inference for
    logistic models using Polya-Gamma latent variables, Journal of the American Statistical Association 108. James,
    Lijoi and Prünster (2009), Posterior analysis for normalized random measures with independent increments,
    Scandinavian Journal of Statistics 36 (the auxiliary variable u). Yu and Meng (2011), To center or not to center,
    Journal of Computational and Graphical Statistics 20 (two kinds of steps of parameters).

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import TopicRegressor
    >>> from sk_sgmcmc.datasets import make_lda
    >>> data = make_lda(
    ...     n_samples=300, n_features=50, n_components=3, random_state=0
    ... )
    >>> y = data.doc_topics @ [0.0, 1.0, 2.0] + np.random.default_rng(0).normal(
    ...     scale=0.1, size=300
    ... )
    >>> model = TopicRegressor(n_components=3, n_iter=400, random_state=0).fit(
    ...     data.counts, y
    ... )
    >>> bool(model.score(data.counts, y) > 0.5)
    True
    """

    noise_scale_: float = field(init=False)

    __metadata_request__score = {"sample_weight": None, "covariates": None}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # Only counts are predicted well.
        return tags

    def _first_response(self, y):
        y = checked_outcomes(y)
        mean, spread = float(y.mean()), float(y.std())
        self._response_mean = mean
        self._response_scale = spread if spread > 1e-12 * max(1e-290, float(np.abs(y).max(initial=0.0))) else 1.0
        return (y - self._response_mean) / self._response_scale

    def _response(self, y):
        return (checked_outcomes(y, may_lack=True) - self._response_mean) / self._response_scale

    def _set_fitted(self, chains):
        super()._set_fitted(chains)
        self.noise_scale_ = float(self.samples_["noise_scale"][self.reference_chain_].mean())

    def predict(self, X: MatrixLike, covariates: Any = None) -> FloatArray:
        """Expected outcomes of documents given their words.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts.
        covariates : array-like or DataFrame of shape (n_samples, n_covariates), default=None
            Required if the model has covariates.

        Returns
        -------
        mean : ndarray, lazy for a Dask array, of shape (n_samples,)
            Averages over draws of all chains.
        """
        return self._mean_predictors(X, covariates=covariates)

    def predict_interval(
        self, X: MatrixLike, interval: float = 0.9, *, covariates: Any = None, of: str = "observation"
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and credible interval of the outcome of each document given its words.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts.
        interval : float, default=0.9
            Posterior mass between the two ends.
        covariates : array-like or DataFrame of shape (n_samples, n_covariates), default=None
            Required if the model has covariates.
        of : {"observation", "mean"}, default="observation"
            What the interval covers: the outcome, noise included, or its expectation given the proportions.

        Returns
        -------
        mean, low, high : ndarray of shape (n_samples,)
        """
        refuse_dask(X)
        if of not in ("observation", "mean"):
            raise ValueError(f'of={of!r} is unknown; use "observation" or "mean".')
        tails = interval_tails(interval)
        draws, places = self._predictor_draws(X, covariates)
        if of == "mean":
            return draws.mean(axis=1), *interval_ends(draws, tails, axis=1)
        noise = np.array([self.samples_["noise_scale"][place] for place in places])
        return draws.mean(axis=1), *(normal_mixture_quantile(draws, noise, tail) for tail in tails)

    def score(  # type: ignore[override]
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, covariates: Any = None
    ) -> float:
        """Coefficient of determination R² of the predictions from words.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts.
        y : array-like of shape (n_samples,)
            Outcomes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the documents.
        covariates : array-like or DataFrame of shape (n_samples, n_covariates), default=None
            Required if the model has covariates.

        Returns
        -------
        float
        """
        refuse_dask(X)
        y, sample_weight = aligned(X, y=y, sample_weight=sample_weight)
        return float(r2_score(y, self.predict(X, covariates), sample_weight=sample_weight))


@keyword_parameters
class TopicClassifier(ClassifierMixin, TopicOutcomeModel):
    r"""Classify documents by their topics, with intervals that include the uncertainty of the topics.

    Documents have topics as in `BayesianLDA`, and one of two classes. The second one, ``classes_[1]``, has the
    probability

    .. math:: p_d = 1 / (1 + \exp(-b^\top \theta_d - c^\top x_d)),

    with topic proportions :math:`\theta_d` and covariates :math:`x_d`. See `TopicRegressor` for the sampler.

    See Also
    --------
    TopicRegressor : A number instead of two classes.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels.
    samples_ : dict of ndarray
        As for `BayesianLDA`; also ``"coef"``, ``"doc_topic_prior"`` and ``"doc_topic_scale"``: (n_chains, n_kept,
        n_components); with covariates ``"covariate_coef"``: (n_chains, n_kept, n_covariates).

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import TopicClassifier
    >>> from sk_sgmcmc.datasets import make_lda
    >>> data = make_lda(
    ...     n_samples=300, n_features=50, n_components=3, random_state=0
    ... )
    >>> y = np.where(data.doc_topics[:, 0] > 0.5, "yes", "no")
    >>> model = TopicClassifier(n_components=3, n_iter=400, random_state=0).fit(
    ...     data.counts, y
    ... )
    >>> bool(model.score(data.counts, y) > 0.8)
    True
    """

    _outcome = BinaryOutcome
    __metadata_request__score = {"sample_weight": None, "covariates": None}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @all_or_nothing
    def partial_fit(  # type: ignore[override]
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        covariates: Any = None,
        *,
        feature_names: Sequence[str] | AnyArray | None = None,
    ) -> Self:
        """Update the fit with more documents, with or without classes; see `TopicRegressor.partial_fit`.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts of documents.
        y : array-like of shape (n_samples,), default=None
            Their labels. NaN, or None for all documents: not known.
        classes : array-like of shape (2,), default=None
            All labels, as for other classifiers. The first call must have documents of both classes.
        covariates : array-like or DataFrame of shape (n_samples, n_covariates), default=None
            Required where y is passed, if the model has covariates.
        feature_names : array-like of str of shape (n_features,), default=None
            As for `fit`.

        Returns
        -------
        self : object
            Fitted.
        """
        if classes is not None:
            known = getattr(self, "classes_", np.unique(classes))
            if not np.array_equal(known, np.unique(classes)) or len(known) != 2:
                raise ValueError(f"`classes` must be {list(known)}, two labels; got {list(classes)}.")
        return super().partial_fit(X, y, covariates, feature_names=feature_names)

    def _first_response(self, y):
        y = _labels_of(y)
        classes, codes = np.unique(y, return_inverse=True)
        if classes.size > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is multiclass: y has {classes.size} "
                "classes. Fit one TopicClassifier for each class against the others, with "
                "sklearn.multiclass.OneVsRestClassifier."
            )
        if classes.size < 2:
            raise ValueError(f"y contains only one class, {classes.tolist()}; pass documents of two classes.")
        self.classes_ = classes
        return codes.astype(np.float64)

    def _response(self, y):
        y = _labels_of(y, may_lack=True)
        response = np.full(y.size, np.nan)
        for code, label in enumerate(self.classes_):
            response[y == label] = code
        lacking = np.array([each is None or each != each for each in y.tolist()])
        unknown = sorted({str(each) for each in y[np.isnan(response) & ~lacking]})
        if unknown:
            raise ValueError(f"y contains the labels {unknown[:5]}, but `fit` saw only {self.classes_.tolist()}.")
        return response

    def predict_proba(self, X: MatrixLike, covariates: Any = None) -> FloatArray:
        """Probabilities of the two classes given the words of documents.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts.
        covariates : array-like or DataFrame of shape (n_samples, n_covariates), default=None
            Required if the model has covariates.

        Returns
        -------
        probabilities : ndarray, lazy for a Dask array, of shape (n_samples, 2)
            Averages over draws of all chains; rows sum to 1.
        """
        return self._probabilities(X, covariates=covariates)

    @lazy_for_dask(lambda self: 2, row_arguments=("covariates",))
    def _probabilities(self, X, covariates):
        draws, _ = self._predictor_draws(X, covariates)
        p = special.expit(draws).mean(axis=1)
        return np.column_stack([1.0 - p, p])

    def predict(self, X: MatrixLike, covariates: Any = None) -> AnyArray:
        """The more probable class of each document given its words.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts.
        covariates : array-like or DataFrame of shape (n_samples, n_covariates), default=None
            Required if the model has covariates.

        Returns
        -------
        labels : ndarray, lazy for a Dask array, of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._labels(X, covariates=covariates)

    @lazy_for_dask(dtype=lambda self: self.classes_.dtype, row_arguments=("covariates",))
    def _labels(self, X, covariates):
        return self.classes_[self._probabilities(X, covariates=covariates).argmax(axis=1)]

    def score(  # type: ignore[override]
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, covariates: Any = None
    ) -> float:
        """Accuracy of the predictions from words.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the documents.
        covariates : array-like or DataFrame of shape (n_samples, n_covariates), default=None
            Required if the model has covariates.

        Returns
        -------
        float
        """
        refuse_dask(X)
        y, sample_weight = aligned(X, y=y, sample_weight=sample_weight)
        return float(accuracy_score(y, self.predict(X, covariates), sample_weight=sample_weight))


def _labels_of(y, may_lack=False):
    """Labels as an array, (n_docs,); raises for infinity, and for NaN unless labels ``may_lack``."""
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f" and (np.isinf(y).any() or (np.isnan(y).any() and not may_lack)):
        raise ValueError("Input y contains NaN or infinity; pass a label for each document.")
    if not may_lack:
        if not y.size:
            raise ValueError("Found array with 0 sample(s) in y; at least one document is required.")
        check_labels(y)
    return y
