"""The base class of topic models: names of topics, draws of proportions, topic tables, and agreement of chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from inspect import signature
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..base import BaseSGMCMC
from ..chains.agreement import Agreement
from ..chains.checks import CHAINS_DISAGREE, NO_DRAWS, TOO_FEW_DRAWS, TOPICS_CHANGE, first_of_chains
from ..metrics import topic_stability
from ..utils import as_precise_as
from ..utils._numbers import checked_count, interval_tails
from ..utils._parameters import keyword_parameters
from ..utils._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from ..utils._tables import aligned, checked_names
from ..utils._typing import AnyArray, FloatArray, Seed, Table
from ..utils.blocks import CountsLike
from ._agreement import agreement_checks
from ._draws import TopicDraws, check_at_most_kept
from ._results import documents
from ._results import topics as tables

_N_DRAWS = 20  # Draws of proportions that tables of documents average over.


@keyword_parameters
class BaseTopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseSGMCMC):
    """Base of topic models, whose ``samples_["components"]`` has the shape (n_chains, n_kept, n_topics, n_features).

    A subclass implements `fit` and ``_set_fitted`` (see `BaseSGMCMC`). The latter sets ``components_``, ``samples_``
    and ``_agreement``, which `number_topics` returns. For tables of documents, a subclass also implements
    ``_proportion_draws(X, n_draws, random_state, **params)``, which yields draws of the proportions, and
    ``_filled(X, **params)``, which returns the counts and which documents have words. With ``groups`` of documents,
    ``_proportion_draws`` makes draws that can be averaged over each group.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics.

    Attributes
    ----------
    chains_agree_ : ndarray of bool, shape (n_chains, n_components)
        Whether ``chain_distances_`` is at most 0.25. Intervals of a topic use the draws of the chains that agree on it.
    topic_stability_ : ndarray of shape (n_components,)
        `topic_stability <sk_sgmcmc.metrics.topic_stability>` over all draws of all chains.
    """

    n_components: int = field(default=10, kw_only=False)

    components_: FloatArray = field(init=False)

    _check_definitions = (TOPICS_CHANGE, NO_DRAWS, TOO_FEW_DRAWS, CHAINS_DISAGREE)
    _drifts = (
        "log_predictive",
        1.0,
    )  # Arguments of `Diagnosis.drift`. The quantity approaches its limit ever more slowly.
    _metric = "hellinger"
    _seeds_hint = ""  # A remedy, in the warning, for chains that disagree; it ends in ", ".
    _feature_names = _topic_names = None  # Names of words and topics that the user has set.
    _axes_of_draws = {}  # Names of the axes of arrays in ``samples_``, where other topic models have others.
    _own_topic_names = ()  # Names of the first topics from a parameter of the model.

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def _checks(self, chains):
        own = first_of_chains([chain.checks() for chain in chains])
        return [*super()._checks(chains), *own, *self._agreement_checks()]

    def _agreement_checks(self):
        """Check whether several chains found the same topics."""
        names = self._word_names(self.components_.shape[1])
        names = names if names.dtype.kind in "OU" else None
        in_use = self._topics_in_use()
        return agreement_checks(self._agreement, self.components_, in_use, self._metric, names, self._seeds_hint)

    def _convergence_checks(self, diagnosis):
        name, unit = self._drifts
        found = diagnosis.drift(name, unit)
        if found is None:
            return []
        if not found.is_large:
            return [TOPICS_CHANGE.passed(found.change, found.limit)]
        n, more = self._planned_iter, self._longer(found.factor)
        what = f"{name} in diagnostics_ changes by {found.change:.2%} (1% at most)"
        if unit is not None:
            what = (
                f"the log predictive probability of a word changes by {found.change:.3g}, "
                f"{np.expm1(found.change):.1%} in perplexity (1% at most)"
            )
        meaning = (
            f"The topics still change: between thirds of the kept draws, {what} and by "
            f"{found.change / found.error:.0f} times its standard error."
        )
        remedy = f"About {more / n:.2g} times as many steps would help: set n_iter={more}, not {n}."
        return [TOPICS_CHANGE.fired(found.change, meaning, remedy, found.limit)]

    def _coords_of_draws(self):
        """Labels of the axes of arrays in ``samples_`` other than topics and words, by the name of the axis."""
        return {}

    def _topics_in_use(self):
        """Which topics checks may warn about, a bool array (n_components,)."""
        return np.ones(self.components_.shape[0], dtype=bool)

    # -- names -----------------------------------------------------------------------------------------------------

    def _word_names(self, n_features, given=None):
        """Names of the words: ``given``, or those passed to `fit`, or the column names of its X, or else indices."""
        for names in (given, self._feature_names):
            if names is not None and (given is not None or len(names) == n_features):
                return checked_names(names, n_features)
        return getattr(self, "feature_names_in_", np.arange(n_features))

    @property
    def topic_names_(self) -> AnyArray:
        """Names of the topics, an array of str; by default their numbers and top words, or the names of seeded topics.

        Set it to a list of names, or to a dict from topics to names to set some of them. None restores the defaults.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianLDA
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> lda = BayesianLDA(2, n_iter=60, random_state=0)
        >>> lda = lda.fit(X, feature_names=["sea", "fish", "moon", "star"])
        >>> lda.topic_names_
        array(['0_moon_star_fish', '1_sea_fish_moon'], dtype=object)
        >>> lda.topic_names_ = {0: "sky"}
        >>> lda.topic_names_ = ["sky", "water"]
        >>> lda.get_feature_names_out()
        array(['sky', 'water'], dtype=object)
        """
        check_is_fitted(self)
        if self._topic_names is not None:
            return self._topic_names.copy()
        words = self._word_names(self.components_.shape[1])
        if words.dtype.kind not in "OU":
            return super().get_feature_names_out()
        names = np.array(tables.default_names(self.components_, words), dtype=object)
        names[: len(self._own_topic_names)] = self._own_topic_names
        return names

    @topic_names_.setter
    def topic_names_(self, names: Sequence[str] | Mapping[int, str] | AnyArray | None) -> None:
        if names is None:
            self._topic_names = None
            return
        if isinstance(names, Mapping):
            unknown = [k for k in names if k not in range(self._n_features_out)]
            if unknown:
                raise ValueError(f"topic_names_ names {unknown[:5]}; topics are 0 to {self._n_features_out - 1}.")
            names = [names.get(k, name) for k, name in enumerate(self.topic_names_)]
        if isinstance(names, str):
            raise TypeError(f"topic_names_={names!r} is one name; give a list, or a dict such as {{0: {names!r}}}.")
        names = np.array([str(name) for name in names], dtype=object)
        if len(set(names)) != self._n_features_out:
            raise ValueError(
                f"topic_names_ got {len(names)} names, {len(set(names))} of them different; give one for each of the "
                f"{self._n_features_out} topics."
            )
        self._topic_names = names

    @property
    def _given_topic_names(self):
        """``topic_names_`` if the user has set or passed any of them, else None."""
        return None if self._topic_names is None and not self._own_topic_names else self.topic_names_

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the columns of `transform`: ``topic_names_``.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        names : ndarray of str, shape (n_components,)
        """
        return self.topic_names_

    # -- tables ----------------------------------------------------------------------------------------------------

    def _draws_of_topic(self, k):
        return self._agreement.draws_of(self.samples_["components"], k)

    def transform_draws(
        self, X: CountsLike, n_draws: int | None = None, random_state: Seed = 0, **params: Any
    ) -> FloatArray:
        """Draws of the topic proportions of documents, with the uncertainty of proportions and topics.

        Use the draws for intervals of proportions, not as regressors: the noise of a draw biases the coefficients of a
        regression on it towards 0, even if many draws are pooled. Regressions on `transform`, the posterior mean, do
        not have this bias if the fit has converged.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Counts.
        n_draws : int or None, default=None
            Number of draws, at most the number of the topics' kept draws in the reference chain. Each uses a different
            one of these, evenly spaced. None uses all of them.
        random_state : None, int, RandomState, Generator or SeedSequence, default=0
            Seed. A document's draws depend on the seed and the document's content, not on other documents. Equal
            documents therefore have equal draws. For means over documents and their intervals, use `topics_over_time`,
            in which equal documents have independent draws.
        **params
            Further arguments of `transform`, such as ``metadata``.

        Returns
        -------
        proportions : ndarray of shape (n_draws, n_samples, n_components)
            The last axis sums to 1. Each draw is made given a draw of the topics, by Gibbs sweeps over the document's
            tokens, or for directional data by trajectories on the simplex. An empty document gets draws from the prior.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianLDA
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> lda = BayesianLDA(2, n_iter=60, random_state=0)
        >>> lda = lda.fit(X, feature_names=["sea", "fish", "moon", "star"])
        >>> draws = lda.transform_draws(X[:3])
        >>> draws.shape
        (30, 3, 2)
        >>> low, high = np.quantile(draws, [0.05, 0.95], axis=0, method="weibull")
        """
        self._refuse_unknown(params, "transform_draws")
        check_is_fitted(self)
        if n_draws is not None:
            check_at_most_kept(n_draws, self._topic_draws.shape[1])
        draws = self._proportion_draws(X, n_draws, random_state, **params)
        return as_precise_as(X, np.stack(list(draws)))

    def _refuse_unknown(self, params, method):
        """Raise for keyword arguments of ``method`` that `transform` does not have, as the caller wrote them."""
        known = [name for name in signature(self.transform).parameters if name != "X"]
        for name in params:
            if name not in known:
                also = f" Besides its own arguments, it takes {', '.join(known)}." if known else ""
                raise TypeError(f"{type(self).__name__}: `{method}` got an unexpected keyword argument {name!r}.{also}")

    def _table_draws(self, X, random_state, params, method):
        """The counts, which documents have words, and draws of the proportions to average over documents."""
        self._refuse_unknown(params, method)
        counts, filled = self._filled(X, **params)
        return counts, filled, self._draws_to_average(X, np.zeros(filled.size), random_state, params)

    def _draws_to_average(self, X, groups, random_state, params):
        """Draws of the documents' proportions; given the topics, even equal documents have independent draws."""
        return list(self._proportion_draws(X, _N_DRAWS, random_state, groups=groups, **params))

    def representative_docs(
        self,
        X: CountsLike,
        texts: Sequence[str] | AnyArray | None = None,
        n: int = 5,
        interval: float = 0.9,
        *,
        random_state: Seed = 0,
        **params: Any,
    ) -> Table:
        """The documents with the largest proportion of each topic.

        The proportions of twice as many documents, chosen by `transform`, are drawn and ordered by their means. Of
        documents with equal rows in X only one is listed.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Counts.
        texts : array-like of str, shape (n_samples,), default=None
            The documents, for a column ``text``.
        n : int, default=5
            Documents per topic, fewer if X has fewer different rows.
        interval : float, default=0.9
            Mass of the central credible interval.
        random_state, **params
            As for `transform_draws`.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per document, in decreasing order of ``proportion``: ``topic``, ``name``, ``rank``, ``document``
            (its row in X), ``proportion`` (mean over draws), ``low``, ``high``, and ``text`` if texts are passed.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianLDA
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> lda = BayesianLDA(2, n_iter=60, random_state=0)
        >>> lda = lda.fit(X, feature_names=["sea", "fish", "moon", "star"])
        >>> texts = ["a day at sea", "fishing", "the moon", "stars"] * 10
        >>> np.asarray(lda.representative_docs(X, texts, n=1)["text"]).tolist()
        ['stars', 'fishing']
        """
        n = checked_count("n", n)
        self._refuse_unknown(params, "representative_docs")
        *_, texts = aligned(X, **params, texts=texts)
        counts, filled = self._filled(X, **params)
        texts = documents.checked_texts(texts, filled.size)
        candidates = documents.candidates(np.asarray(self._transform(X, **params)), counts, n)
        some = np.unique(candidates)
        draws = np.stack([each[some] for each in self._proportion_draws(X, _N_DRAWS, random_state, **params)])
        return documents.document_table(candidates, draws, n, texts, interval, self.topic_names_)

    def topic_correlation(
        self, X: CountsLike, interval: float = 0.9, *, random_state: Seed = 0, **params: Any
    ) -> Table:
        """Which topics occur together in documents.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Counts.
        interval : float, default=0.9
            Mass of the central credible interval.
        random_state, **params
            As for `transform_draws`.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per pair of topics: ``topic_a``, ``topic_b``, ``name_a``, ``name_b``, ``correlation`` of their
            proportions over documents (mean over draws), ``low``, ``high``.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianLDA
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> lda = BayesianLDA(2, n_iter=60, random_state=0)
        >>> lda = lda.fit(X, feature_names=["sea", "fish", "moon", "star"])
        >>> np.asarray(lda.topic_correlation(X)["correlation"]).round(1).tolist()
        [-1.0]
        """
        _, filled, draws = self._table_draws(X, random_state, params, "topic_correlation")
        return documents.correlation_table([each[filled] for each in draws], interval, self.topic_names_)

    def topics_over_time(
        self,
        X: CountsLike,
        times: ArrayLike,
        interval: float = 0.9,
        *,
        n_bins: int | None = None,
        of: Literal["documents", "population"] = "documents",
        random_state: Seed = 0,
        **params: Any,
    ) -> Table:
        """How prevalent topics are at different times.

        The default is the mean of the proportions of these documents, whose intervals contain only the uncertainty
        about their topics.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Counts.
        times : array-like of shape (n_samples,)
            Numbers, dates or labels, which are sorted; levels of a categorical column keep their declared order. Texts
            such as "Apr 2020" or "6/4/2020" are read as dates if only one reading is possible. Otherwise they are
            sorted as text, with a warning if they look like dates. A Series is matched to the rows of X by its labels.
        interval : float, default=0.9
            Mass of the central credible interval of the mean over the documents of a time.
        n_bins : int or None, default=None
            Number of periods of equal length, named by their start, that replace the distinct times.
        of : {"documents", "population"}, default="documents"
            Whether means are over these documents, or over the population from which the documents of each time are a
            sample. For a population, documents get random weights in each draw (a Bayesian bootstrap), so intervals
            include the variation between documents.
        random_state, **params
            As for `transform_draws`.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per time and topic: ``time``, ``topic``, ``name``, ``share`` (mean proportion in the time's
            documents that have words), ``low``, ``high``, ``n_documents``.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianLDA
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> lda = BayesianLDA(2, n_iter=60, random_state=0)
        >>> lda = lda.fit(X, feature_names=["sea", "fish", "moon", "star"])
        >>> table = lda.topics_over_time(X, [2000, 2000, 2001, 2001] * 10)
        >>> (
        ...     np.asarray(table["time"]).tolist(),
        ...     np.asarray(table["share"]).round(0).tolist(),
        ... )
        ([2000, 2000, 2001, 2001], [0.0, 1.0, 1.0, 0.0])
        """
        self._refuse_unknown(params, "topics_over_time")
        interval_tails(interval)
        if of not in ("documents", "population"):
            raise ValueError(f'`of` must be "documents" or "population"; got {of!r}.')
        *_, times = aligned(X, **params, times=times)
        counts, filled = self._filled(X, **params)
        different, index = documents.checked_times(times, filled.size, n_bins)
        draws, weights = self._draws_to_average(X, index, random_state, params), None
        if of == "population":
            weights = documents.random_weights(counts, index, len(draws), random_state)
        return documents.time_table(draws, different, index, filled, interval, self.topic_names_, weights)

    # -- several chains --------------------------------------------------------------------------------------------

    @property
    def _agreement(self):
        return Agreement(self.reference_chain_, self.chain_distances_, self.chains_agree_)

    @_agreement.setter
    def _agreement(self, agreement):
        self.reference_chain_ = agreement.reference
        self.chain_distances_, self.chains_agree_ = agreement.distances, agreement.agree

    @property
    def _topic_draws(self):
        return getattr(self.samples_, "topic_draws", None) or TopicDraws(self.samples_["components"])

    @property
    def topic_stability_(self) -> FloatArray:
        """Stability of each topic over all draws of all chains, (n_components,); see `topic_stability`."""
        return topic_stability(self.samples_["components"], aligned=True, metric=self._metric)

    def _of_reference(self, name):
        """Draws of the reference chain, (n_kept, ...)."""
        return self.samples_[name][self.reference_chain_]

    def _flat(self, name):
        """Draws of all chains, one after the other, (n_chains * n_kept, ...)."""
        value = self.samples_[name]
        return value.reshape(-1, *value.shape[2:])
