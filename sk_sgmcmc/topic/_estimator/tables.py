"""Topic tables of models whose components are probabilities of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sklearn.utils.validation import check_is_fitted

from ...utils._numbers import checked_count
from ...utils._typing import AnyArray, Seed, Table
from ...utils.blocks import CountsLike
from .._base import BaseTopicModel
from .._results import documents
from .._results import topics as tables


class TopicsOfWords(BaseTopicModel):
    """A topic model whose ``components_`` are probabilities of words, and which has ``word_counts_``."""

    def top_words(
        self,
        n: int = 10,
        interval: float | None = 0.9,
        *,
        by: Literal["probability", "frex", "lift", "score"] = "probability",
        format: Literal["long", "wide"] = "long",
        feature_names: Sequence[str] | AnyArray | None = None,
    ) -> Table:
        """The words of each topic, with their uncertainty.

        Parameters
        ----------
        n : int, default=10
            Words per topic.
        interval : float or None, default=0.9
            Mass of the central credible interval. None omits its columns, as the format "wide" always does.
        by : {"probability", "frex", "lift", "score"}, default="probability"
            What words are ranked by. "frex" favours words that are frequent in the topic and rare in others. It is the
            harmonic mean of two ranks of the word among the words of the topic: by probability, and by the topic's
            share of the word. "lift" is the probability divided by the word's share of the fitted tokens. "score" is
            the probability times the difference between its logarithm and the mean logarithm over topics.
        format : {"long", "wide"}, default="long"
            One row per topic and word, or one row per rank with a column of words for each topic.
        feature_names : array-like of str, default=None
            Names of the words. None uses the names of `fit`, or the indices of the columns.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            "long": ``topic``, ``name``, ``rank``, ``word``, ``probability`` (as in ``components_``) and the column
            ``by``; with ``interval`` also ``low`` and ``high`` of the probability and ``top_probability``, the share
            of draws in which the word is among the topic's ``n`` most probable ones. These use the draws of all chains
            that agree on the topic. "wide": the names of topics are columns; in LaTeX their underscores need
            ``table.to_latex(escape=True)``.

        References
        ----------
        Bischof and Airoldi (2012), Summarizing topical content with word frequency and exclusivity, ICML, equation 1
        (FREX with weight 1/2). Taddy (2012), On estimation and selection for topic models, AISTATS (lift). Blei and
        Lafferty (2009), Topic models, equation 3 (score).

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianLDA
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> lda = BayesianLDA(2, n_iter=60, random_state=0)
        >>> lda = lda.fit(X, feature_names=["sea", "fish", "moon", "star"])
        >>> np.asarray(lda.top_words(2, by="frex")["word"]).tolist()
        ['moon', 'star', 'sea', 'fish']
        """
        check_is_fitted(self)
        tables.check_choice("by", by, tables.SCORES)
        tables.check_choice("format", format, ("long", "wide"))
        interval = None if format == "wide" else interval
        scores = tables.word_scores(self.components_, by, self.word_counts_)
        names = self._word_names(self.components_.shape[1], feature_names)
        table = tables.word_table(
            self.components_, n, interval, names, self.topic_names_, self._draws_of_topic, scores=scores, by=by
        )
        return tables.wide(table, self.topic_names_) if format == "wide" else table

    def find_topics(self, words: str | Sequence[str], interval: float = 0.9) -> Table:
        """Topics in which some words are probable.

        Parameters
        ----------
        words : str or list of str
            Words of the vocabulary, or indices of columns of X if words have no names. A word that the vocabulary has
            only in lower case is found too.
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic, the best first: ``topic``, ``name``, ``probability`` of the words together in the topic,
            ``low``, ``high``, and ``share``, the topic's share of their occurrences.

        Raises
        ------
        ValueError
            For words that are not in the vocabulary; the message names similar ones.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianLDA
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> lda = BayesianLDA(2, n_iter=60, random_state=0)
        >>> lda = lda.fit(X, feature_names=["sea", "fish", "moon", "star"])
        >>> lda.find_topics("moon")["name"][0]
        '0_moon_star_fish'
        """
        check_is_fitted(self)
        columns = tables.places_of(words, self._word_names(self.components_.shape[1]))
        return tables.found_topics(
            self.components_, columns, self._masses(), interval, self.topic_names_, self._draws_of_topic
        )

    def _masses(self):
        return tables.topic_masses(self.components_, self.word_counts_)

    def topic_info(
        self, X: CountsLike, interval: float = 0.9, *, n_words: int = 5, random_state: Seed = 0, **params: Any
    ) -> Table:
        """What characterises each topic, and how prevalent it is in documents.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Counts.
        interval : float, default=0.9
            Mass of the central credible interval.
        n_words : int, default=5
            Words in ``top_words``.
        random_state, **params
            As for `transform_draws`.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic: ``topic``, ``name``, ``share`` (its mean proportion in the documents of X that have
            words), ``low``, ``high``, ``coherence`` (NPMI in X) and ``exclusivity`` of its ten most probable words,
            ``stability`` (as in ``topic_stability_``), with several chains ``chains_agree``, and ``top_words``.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianLDA
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> lda = BayesianLDA(2, n_iter=60, random_state=0)
        >>> lda = lda.fit(X, feature_names=["sea", "fish", "moon", "star"])
        >>> np.asarray(lda.topic_info(X)["share"]).round(1).tolist()
        [0.5, 0.5]
        """
        n_words = checked_count("n_words", n_words)
        counts, filled, draws = self._table_draws(X, random_state, params, "topic_info")
        return documents.info_table(
            self.components_, counts, documents.mean_proportions(draws, filled), self.topic_stability_,
            self.chains_agree_, n_words, interval, self._word_names(self.components_.shape[1]), self.topic_names_,
        )  # fmt: skip
