"""Structural topic models: prevalence follows metadata, words differ between groups, and topics have keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...chains.checks import KEYWORDS_ABANDONED, KEYWORDS_APART, SEEDS_LOST
from ...covariates.formula import is_constant
from ...covariates.metadata import NoCovariates, columns_of, is_missing, levels_of
from ...utils._numbers import indices, interval_tails
from ...utils._parameters import keyword_parameters
from ...utils._typing import AnyArray, FloatArray, Table
from .._counts.forms import Forms, of_words
from .._counts.word_prior import check_seeds
from .._dmr.model import DMRTopicModel
from .._results import topics as tables
from .contrasts import contrast_table
from .keyword_prior import KeywordWordPrior
from .keywords import Keywords, check_company, check_rates, keyword_table
from .record import GroupDraws, SharedDraws
from .word_prior import GroupedWordPrior


@keyword_parameters
class StructuralTopicModel(DMRTopicModel):
    r"""Find topics whose prevalence depends on metadata, whose words differ between groups, or that have keywords.

    Prevalence is as in `DMRTopicModel`. With ``content``, the words of topic k in group g have the probabilities
    :math:`\phi_{gkw} = y_{gkw} / \sum_v y_{gkv}`, with :math:`y_{gkw}` from a gamma distribution of shape
    :math:`\kappa_{kw}` and mean :math:`m_{kw} \sim \mathrm{Gamma}(\beta, 1)`. The concentration :math:`\kappa_{kw}` of
    each word in each topic is drawn from the values 1, 3, 10, 30, 150 and 2,000, with probabilities that are learnt:
    most words are the same in all groups, and a few differ much. In a group with few documents, the words of a topic
    are about those of all groups.

    With ``keywords``, the first topics have keywords. A token of topic k comes with probability :math:`\pi_k` from a
    distribution of the keywords of the topic alone, and otherwise from a distribution of all words, which may be
    keywords too. Topics without keywords are as before.

    Parameters
    ----------
    content : str, default=None
        Name of the column of metadata whose values are the groups. None: words do not differ, as in `DMRTopicModel`.
    keywords : dict, default=None
        Names of the first topics, in this order, to lists of their keywords, such as
        ``{"Health": ["hospital", "nurse"]}``. Requires feature names: names of the columns of X, or ``feature_names``
        of `fit`. The names appear in ``topic_names_``. A word may be a keyword of several topics.

    Attributes
    ----------
    groups_ : ndarray of shape (n_groups,)
        Values of the column ``content``, sorted, or in the order that a categorical column declares.
    content_components_ : ndarray of shape (n_groups, n_components, n_features)
        Posterior mean of the topics in each group.
    components_ : ndarray of shape (n_components, n_features)
        Posterior mean of the topics over all groups, which are weighted by their shares of the topic's tokens.
    keyword_rate_ : ndarray of shape (n_keyword_topics,)
        Posterior mean of :math:`\pi_k`. See `keyword_table` for intervals.
    samples_ : dict of ndarray
        As for `DMRTopicModel`; ``"components"`` are the topics over all groups. With ``keywords`` also
        ``"keyword_rate"``, (n_chains, n_kept, n_keyword_topics).

    Notes
    -----
    With ``content`` or ``keywords``, topics are drawn by Gibbs sampling. Given
    :math:`u_{gk} \sim \mathrm{Gamma}(N_{gk}, \text{rate } \sum_w y_{gkw})`, with :math:`N_{gk}` tokens of the topic in
    the group, words are independent. With y integrated out, a token of word w goes to topic k with a probability
    proportional to

    .. math:: (n_{dk} + \alpha_{dk}) \frac{n_{gkw} + \kappa_{kw}}{\kappa_{kw} / m_{kw} + u_{gk}}
              \frac{u_{gk}}{N_{gk}},

    with all counts without the token. After each pass, or after up to ten if words and topics are many for the number
    of tokens, each :math:`m_{kw}` is drawn by slice sampling, each :math:`\kappa_{kw}` from its grid, and then
    :math:`u`. All updates leave the posterior unchanged. In the first 60% of burn-in, groups share their words, so
    chains start from the topics of DMR. :math:`\beta` is ``topic_word_prior``, which "auto" fits in this part.

    Over `CountBlocks` and Dask arrays, words y and distributions of keywords are drawn before each pass, and
    assignments given these. After it, :math:`u` is drawn given y, and how many tokens come from keywords given the
    topics of all tokens. This has the same posterior, of which successive draws are more alike. `partial_fit` after
    such a `fit` is refused, since it needs the earlier documents.

    `transform`, `score` and all other methods that take documents use the words of each document's group, so new
    documents need their ``metadata`` with ``content``.

    With ``keywords``, :math:`\pi_k \sim \mathrm{Beta}(1, 1)`, and without ``content`` the distribution of the keywords
    is Dirichlet(0.1). It is the base model of Eshima, Imai and Sasaki (2024). All of these are integrated out, and a
    step redraws the topic of a token together with which of the two distributions it comes from. With ``content``, both
    have the prior above, with 0.1 instead of :math:`\beta` for keywords. `fit` warns if few tokens of a topic come from
    its keywords, if its keywords are more probable in another topic, or if they seldom occur with its other words: then
    the topic may be another one than its name says.

    References
    ----------
    Roberts, Stewart and Airoldi (2016), A model of text for experimentation in the social sciences, Journal of the
    American Statistical Association 111 (prevalence and content covariates). Eisenstein, Ahmed and Xing (2011), Sparse
    additive generative models of text, ICML. Eshima, Imai and Sasaki (2024), Keyword-assisted topic models, American
    Journal of Political Science 68. James, Lijoi and Prünster (2009), Posterior analysis for normalized random
    measures with independent increments, Scandinavian Journal of Statistics 36 (the auxiliary variable u).

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import StructuralTopicModel
    >>> X = np.array(
    ...     [[4, 3, 0, 0], [5, 0, 2, 0], [0, 0, 4, 4], [0, 4, 0, 3]] * 10
    ... )
    >>> metadata = {"party": ["green", "red"] * 20}
    >>> model = StructuralTopicModel(
    ...     2, formula="~ 1", content="party", n_iter=60, random_state=0
    ... )
    >>> model = model.fit(
    ...     X, metadata=metadata, feature_names=["sea", "fish", "moon", "star"]
    ... )
    >>> model.content_components_.shape
    (2, 2, 4)
    >>> model.groups_.tolist()
    ['green', 'red']
    """

    content: str | None = None
    keywords: Mapping[str, Any] | None = None

    _parameter_constraints = {**DMRTopicModel._parameter_constraints, "content": [str, None], "keywords": [dict, None]}
    _check_definitions = (*DMRTopicModel._check_definitions, SEEDS_LOST, KEYWORDS_ABANDONED, KEYWORDS_APART)
    _unused_by_predictions = (*DMRTopicModel._unused_by_predictions, "_group_of_documents")
    _fitted_content = None  # The parameter ``content`` in `fit`.
    _group_of_documents = None  # Index of the group of each document of `fit`.
    _fitted_keywords = None  # The `Keywords` of the fit.

    # -- checks ----------------------------------------------------------------------------------------------------

    def _begin(self, feature_names=None):
        super()._begin(feature_names)
        self._fitted_content = self.content
        self._fitted_keywords = self._checked_keywords()

    def _validate_params(self):
        super()._validate_params()
        self._checked_keywords()

    def _checked_keywords(self):
        if not self.keywords:
            return None
        if self.seed_words:
            raise ValueError("keywords and seed_words must not be passed together; put all words into keywords.")
        return Keywords(self.keywords).checked(self.n_components)

    @property
    def _restriction(self):
        """The name of a parameter that requires collapsed Gibbs sampling; None if none is set."""
        return "content" if self.content is not None else "keywords" if self.keywords else None

    def _checked_sampler(self, *, streams=False):
        fitting = super()._checked_sampler(streams=streams)
        given = self._restriction
        if given and not self._collapses(fitting[0]):
            raise ValueError(
                f"`{given}` requires collapsed Gibbs sampling; got {type(fitting[0]).__name__}. Leave sampler=None, "
                f'batch_size and assignments at "auto" and total_samples=None, or set {given}=None.'
            )
        return fitting

    def _refuse_other_way(self, sampler, pair):
        super()._refuse_other_way(sampler, pair)
        if self.content != self._fitted_content:
            raise ValueError(
                f"`content` must stay as it was in fit, {self._fitted_content!r}; got {self.content!r}. Set it back, "
                "or call fit to start over."
            )
        if Keywords.content_of(self._checked_keywords()) != Keywords.content_of(self._fitted_keywords):
            raise ValueError("`keywords` must stay as they were in fit. Set them back, or call fit to start over.")

    def _new_encoder(self):
        # Without covariates of prevalence, groups may still differ in their words.
        return NoCovariates() if self.formula is not None and is_constant(self.formula) else super()._new_encoder()

    # -- documents -------------------------------------------------------------------------------------------------

    @property
    def _n_groups(self):
        return 1 if self.content is None else len(self.groups_)

    def _in_forms(self, corpus, metadata, reset):
        if self.content is None:
            return corpus
        if metadata is None:
            if reset:
                raise ValueError(f"`metadata` must have the column content={self.content!r}; got None.")
            return corpus.in_forms(Forms(self._group_of_documents, self._n_groups))
        group = self._groups_of(metadata, reset)
        if group.size != corpus.n_docs:
            raise ValueError(
                f"metadata has {group.size} rows and X has {corpus.n_docs}; give one row of metadata for each document."
            )
        if reset:
            self._group_of_documents = group
        return corpus.in_forms(Forms(group, self._n_groups))

    def _refuse_no_metadata(self):
        if self.content is not None:
            raise ValueError(
                f"`metadata` must be passed with documents other than those of fit, since their words depend on "
                f"{self.content!r}; got None."
            )
        super()._refuse_no_metadata()

    def _groups_of(self, metadata, reset):
        """Index of the group of each row of metadata; sets ``groups_`` if they are those of `fit`."""
        name = self.content
        names, columns = columns_of(metadata)
        if names is None or name not in names:
            has = "no names of columns" if names is None else f"the columns {names}"
            raise ValueError(f"content={name!r} must be a column of metadata, which has {has}.")
        column = columns[names.index(name)]
        if any(is_missing(value) for value in column):
            raise ValueError(
                f"The column content={name!r} must have no missing values; leave these documents out, or give them a "
                "group of their own."
            )
        if reset:
            levels = levels_of(column, name)
            self.groups_ = np.array([getattr(each, "item", lambda each=each: each)() for each in levels], dtype=object)
        place = {level: i for i, level in enumerate(self.groups_)}
        unknown = list(dict.fromkeys(str(value) for value in column if value not in place))
        if unknown:
            raise ValueError(
                f"Documents with {name}={', '.join(unknown[:5])} have no topics, since {name!r} was "
                f"{', '.join(map(str, self.groups_))} in fit. Leave them out, or fit with documents of that group."
            )
        return np.array([place[value] for value in column], dtype=np.int64)

    def _n_words_of(self, corpus):
        return corpus.n_words // self._n_groups

    def _of_words(self, counts):
        return of_words(counts, self._n_groups)

    def _filled(self, X, **given):
        counts, filled = super()._filled(X, **given)
        if self.content is None:
            return counts, filled
        words = counts.tocoo()
        summed = type(counts)(
            (words.data, (words.row, words.col // self._n_groups)), shape=(counts.shape[0], self.n_features_in_)
        )
        return summed, filled

    # -- topics ----------------------------------------------------------------------------------------------------

    def _word_prior(self, value, n_words, is_fitted):
        if self._fitted_keywords is not None:
            places = self._fitted_keywords.places(self._word_names(n_words // self._n_groups))
            return KeywordWordPrior(value, n_words, self.n_components, self._n_groups, places, is_fitted)
        if self.content is None:
            return super()._word_prior(value, n_words, is_fitted)
        return GroupedWordPrior(value, n_words, self.n_components, self._n_groups, is_fitted)

    def _in_words(self, draws, means):
        if self.content is None:
            return draws, means
        shared = SharedDraws(draws, self._n_groups)
        own = means[self.reference_chain_].astype(np.float64)
        own = own.reshape(len(own), -1, self._n_groups).transpose(2, 0, 1)
        self.content_components_ = own / own.sum(axis=2, keepdims=True)
        return shared, [shared.mean_of_chain(c) for c in range(len(means))]

    def _mean_of_words(self, words):
        if self.content is None:
            return super()._mean_of_words(words)
        return self.content_components_[words % self._n_groups, :, words // self._n_groups]

    def _word_shares(self):
        return np.repeat(super()._word_shares(), self._n_groups)

    def _append(self, corpus, is_known, word_prior):
        found = super()._append(corpus, is_known, word_prior)
        self._group_of_documents = None  # The documents are no longer those of one call.
        return found

    def _refuse_taking_in(self):
        given = self._restriction
        if given:
            raise ValueError(
                f"partial_fit needs the earlier documents with {given}=, but they are not kept: fit does not keep "
                "documents in blocks, and forget_documents and documents beyond keep_documents drop them. Call fit "
                "with all documents, in blocks if need be; or raise keep_documents, and pass all documents to "
                "partial_fit of a new estimator."
            )

    # -- keywords --------------------------------------------------------------------------------------------------

    @property
    def _own_topic_names(self):
        return super()._own_topic_names if self._fitted_keywords is None else self._fitted_keywords.topic_names

    def _set_fitted(self, chains):
        super()._set_fitted(chains)
        if self._fitted_keywords is not None:
            n_kept = self.samples_["coef"].shape[1]
            rates = [
                [state.rate for state in chain.record.states[:n_kept]] or [chain.word_prior.rate] for chain in chains
            ]
            self.samples_["keyword_rate"] = np.array(rates)
            self.keyword_rate_ = self.samples_["keyword_rate"][self.reference_chain_].mean(axis=0)

    def _checks(self, chains):
        found = super()._checks(chains)
        if self._fitted_keywords is None:
            return found
        names = self._word_names(self.components_.shape[1])
        places = self._fitted_keywords.places(names)
        lost = check_seeds(tuple(places), self.components_, names, self.topic_names_, "keywords")
        found = [*found, lost, check_rates(self.keyword_rate_, self.topic_names_)]
        ratios = chains[self.reference_chain_].collapsed.company()
        return found if ratios is None else [*found, check_company(ratios, places, names, self.topic_names_)]

    def keyword_table(self, interval: float = 0.9) -> Table:
        """How often the tokens of each topic come from its keywords, with uncertainty.

        Parameters
        ----------
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic with keywords: ``topic``, ``name``, ``rate`` (as in ``keyword_rate_``), ``low``, ``high``,
            ``n_keywords``, and ``in_corpus``, the share of the keywords in all tokens of the fitted documents.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import StructuralTopicModel
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 0, 2, 0], [0, 0, 4, 4], [0, 4, 0, 3]] * 10
        ... )
        >>> model = StructuralTopicModel(
        ...     2,
        ...     formula="~ 1",
        ...     keywords={"Water": ["sea"]},
        ...     n_iter=60,
        ...     random_state=0,
        ... )
        >>> model = model.fit(X, feature_names=["sea", "fish", "moon", "star"])
        >>> model.keyword_table()["name"].tolist()
        ['Water']
        """
        check_is_fitted(self)
        if self._fitted_keywords is None:
            raise ValueError('This model has no keywords; fit with keywords=, such as {"Health": ["hospital"]}.')
        places = self._fitted_keywords.places(self._word_names(self.components_.shape[1]))
        return keyword_table(self, places, interval_tails(interval))

    def _group_index(self, group):
        if self.content is None:
            raise ValueError("Words do not differ between groups; fit with content=, the name of a column of metadata.")
        found = [i for i, level in enumerate(self.groups_) if level == group]
        if not found:
            raise ValueError(f"Groups are {', '.join(map(repr, self.groups_))}; got {group!r}.")
        return found[0]

    def content_draws(self, group: Any) -> FloatArray:
        """Draws of the topics in one group of documents.

        Parameters
        ----------
        group : object
            One of ``groups_``.

        Returns
        -------
        draws : ndarray of float32, shape (n_chains, n_kept, n_components, n_features)
            Rows sum to 1; as ``samples_["components"]``, which are the topics over all groups.
        """
        check_is_fitted(self)
        return GroupDraws(self._topic_draws.of_documents, self._n_groups, self._group_index(group)).array()

    def top_words(
        self,
        n: int = 10,
        interval: float | None = 0.9,
        *,
        by: Literal["probability", "frex", "lift", "score"] = "probability",
        format: Literal["long", "wide"] = "long",
        feature_names: Sequence[str] | AnyArray | None = None,
        group: Any = None,
    ) -> Table:
        """The words of each topic, with their uncertainty; see `BayesianLDA.top_words`.

        Parameters
        ----------
        n, interval, by, format, feature_names
            As for `BayesianLDA.top_words`.
        group : object, default=None
            One of ``groups_``, for the words of the topics in this group of documents. None: over all groups.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
        """
        if group is None:
            return super().top_words(n, interval, by=by, format=format, feature_names=feature_names)
        check_is_fitted(self)
        g = self._group_index(group)
        tables.check_choice("by", by, tables.SCORES)
        tables.check_choice("format", format, ("long", "wide"))
        interval = None if format == "wide" else interval
        components, draws = self.content_components_[g], None
        if interval is not None:
            draws = partial(self._agreement.draws_of, self.content_draws(group))
        scores = tables.word_scores(components, by, self.word_counts_)
        names = self._word_names(components.shape[1], feature_names)
        table = tables.word_table(components, n, interval, names, self.topic_names_, draws, scores=scores, by=by)
        return tables.wide(table, self.topic_names_) if format == "wide" else table

    def word_contrast(
        self, a: Any, b: Any, topics: Sequence[int] | int | None = None, n: int = 10, interval: float = 0.9
    ) -> Table:
        r"""The words of a topic that differ most between two groups of documents, with their uncertainty.

        Parameters
        ----------
        a, b : object
            Two of ``groups_``.
        topics : int or list of int, default=None
            Topics to compare. None: all.
        n : int, default=10
            Number of words per topic that are more probable in ``a``, and at most as many that are more probable in
            ``b``.
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic and word: ``topic``, ``name``, ``word``, ``log_ratio`` (posterior mean of the logarithm of
            the probability in ``a`` divided by that in ``b``), ``low``, ``high``, ``a`` and ``b`` (posterior means of
            the probabilities). Words of ``a`` come first, then those of ``b``. They are ranked by the posterior mean of
            ``log_ratio`` divided by its standard deviation, which favours differences that are both large and certain.

        References
        ----------
        Monroe, Colaresi and Quinn (2008), Fightin' words: lexical feature selection and evaluation for identifying the
        content of political conflict, Political Analysis 16 (the ranking).

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import StructuralTopicModel
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 0, 2, 0], [0, 0, 4, 4], [0, 4, 0, 3]] * 10
        ... )
        >>> metadata = {"party": np.array(["green", "red"] * 20)}
        >>> model = StructuralTopicModel(
        ...     2, formula="~ 1", content="party", n_iter=60, random_state=0
        ... )
        >>> model = model.fit(
        ...     X, metadata=metadata, feature_names=["sea", "fish", "moon", "star"]
        ... )
        >>> list(model.word_contrast("green", "red", topics=0, n=1))
        ['topic', 'name', 'word', 'log_ratio', 'low', 'high', 'a', 'b']
        """
        check_is_fitted(self)
        places = [self._group_index(group) for group in (a, b)]
        if places[0] == places[1]:
            raise ValueError(f"word_contrast compares two groups; got {a!r} twice.")
        chosen = np.arange(self._n_features_out) if topics is None else topics
        return contrast_table(
            self, places, indices("topics", chosen, self._n_features_out), n, interval_tails(interval)
        )

    def merge_topics(self, groups: Sequence[int] | Sequence[Sequence[int]]) -> Self:
        """Join topics in all draws; see `DMRTopicModel.merge_topics`. Refused with ``content`` or ``keywords``.

        Parameters
        ----------
        groups : list of int, or list of lists of int
            Topics that become one.

        Returns
        -------
        merged : StructuralTopicModel
        """
        given = self._restriction
        if given:
            raise ValueError(f"merge_topics is not available with {given}=; fit with fewer topics, or {given}=None.")
        return super().merge_topics(groups)
