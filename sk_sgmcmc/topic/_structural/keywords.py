"""Keywords of topics: which words they are, and the state of topics that draw from them and from all words."""

from typing import NamedTuple

import numpy as np

from ...chains.chain import TINY
from ...chains.checks import KEYWORDS_ABANDONED, KEYWORDS_APART
from ...utils import as_table
from ...utils._numbers import interval_ends
from .._results.topics import MAY_BE_RARE, columns_of

BASE = 0.1  # Dirichlet parameter of each keyword among the keywords of its topic, as in keyATM.
_SEED_WEIGHT = 5.0  # Prior counts of a keyword in its topic where chains start.


class Keywords:
    """Keywords as users pass them.

    Parameters
    ----------
    given : dict
        Names of topics to lists of words. Names belong to the first topics, in their order.
    """

    def __init__(self, given):
        form = 'names of topics to lists of words, such as {"Health": ["hospital", "nurse"]}'
        for name, words in given.items():
            if not isinstance(name, str):
                raise ValueError(f"keywords must map {form}; got {name!r} as a name.")
            is_list = isinstance(words, (list, tuple, set, frozenset, np.ndarray)) and len(words) > 0
            if not is_list or not all(isinstance(word, str) for word in words):
                raise ValueError(f"keywords must map {form}; got {words!r} for {name!r}.")
            if len(set(words)) < len(words):
                raise ValueError(f"keywords[{name!r}] must name each word once; got {words!r}.")
        self.topic_names = list(given)
        self.words = [sorted(words) if isinstance(words, (set, frozenset)) else list(words) for words in given.values()]

    def checked(self, n_topics):
        """Return self; raise if there are more names than topics."""
        if len(self.topic_names) > n_topics:
            raise ValueError(
                f"keywords must name at most n_components={n_topics} topics; got {len(self.topic_names)} names. Set "
                f"n_components={len(self.topic_names)} or more."
            )
        return self

    @staticmethod
    def content_of(keywords):
        """What two sets of keywords, which may be None, have in common if they are the same."""
        return None if keywords is None else (keywords.topic_names, keywords.words)

    def places(self, names):
        """The `KeywordPlaces` in a vocabulary; raises for words that are not among the ``names``."""
        topic = np.repeat(np.arange(len(self.words)), [len(words) for words in self.words])
        words = [word for words in self.words for word in words]
        return KeywordPlaces(topic, columns_of(words, names, MAY_BE_RARE))


class KeywordPlaces(NamedTuple):
    """The topic and the word of each keyword, two arrays (n_places,), in ascending order of topics."""

    topic: np.ndarray
    word: np.ndarray

    @property
    def n_topics(self):
        """Number of topics with keywords, which are the first ones."""
        return int(self.topic[-1]) + 1

    def base(self, n_words):
        """Dirichlet parameters of the words of keyword columns, (n_words, n_keyword_topics)."""
        base = np.zeros((n_words, self.n_topics))
        base[self.word, self.topic] = BASE
        return base

    def rows(self, n_words):
        """A word of each row, and the row of each word, (n_words,): a row for each keyword, and one for all others."""
        words = np.unique(self.word)
        row = np.zeros(n_words, dtype=np.int32)
        row[words] = 1 + np.arange(words.size)
        other = np.flatnonzero(row == 0)[:1]  # None if all words are keywords, so that nothing refers to row 0.
        return np.concatenate([other if other.size else words[:1], words]), row

    def as_seeds(self, word_prior, n_words, n_topics):
        """A word prior, (n_words, n_topics), under which keywords start in their topics."""
        prior = np.full((n_words, n_topics), word_prior)
        prior[self.word, self.topic] += _SEED_WEIGHT
        return prior

    def in_columns(self, counts, own):
        """Counts of columns, (n_forms, n_columns).

        Parameters
        ----------
        counts : ndarray of shape (n_forms, n_topics)
            Of topics.
        own : ndarray of shape (n_places, n_groups)
            Tokens of each keyword that come from the keyword column of its topic.
        """
        n_topics, forms, topic = counts.shape[1], self.forms(own.shape[1]), self.topic[:, None]
        columns = np.zeros((len(counts), n_topics + self.n_topics))
        own = np.minimum(own, counts[forms, topic])  # In the middle of a pass, they may be of another moment.
        columns[:, :n_topics] = counts
        columns[forms, topic] -= own
        columns[forms, n_topics + topic] = own
        return columns

    def forms(self, n_groups):
        """The forms of each keyword, (n_places, n_groups)."""
        return self.word[:, None] * n_groups + np.arange(n_groups)

    def mixed(self, columns, rate):
        """Mix the words of columns into words of topics, (n_forms, n_topics), with the rates of keywords as weights."""
        topics = columns[:, : -self.n_topics].copy()
        topics[:, : self.n_topics] *= 1.0 - rate
        topics[:, : self.n_topics] += rate * columns[:, -self.n_topics :]
        return topics

    def index(self, n_words):
        """Index of the place of each word in each topic with keywords, (n_words, n_keyword_topics); -1 for others."""
        index = np.full((n_words, self.n_topics), -1, dtype=np.int32)
        index[self.word, self.topic] = np.arange(self.word.size)
        return index


class DirichletState(NamedTuple):
    """A Dirichlet prior of the words of each column, with parameters ``base`` (n_words, n_columns), of one group."""

    base: np.ndarray

    @property
    def n_groups(self):
        """Number of groups of documents."""
        return 1

    def extended(self, n_words):
        """The state with further words, which have the smallest parameter of their column."""
        more = np.tile(self.base.min(axis=0), (n_words - len(self.base), 1))
        return self._replace(base=np.vstack([self.base, more])) if more.size else self

    def mean(self, counts):
        """Means of the words of columns given counts, (n_words, n_columns)."""
        shapes = counts + self.base
        return shapes / shapes.sum(axis=0)

    def drawn(self, counts, rng):
        """Draw the words of columns given counts."""
        cells = rng.standard_gamma(counts + self.base)
        cells = np.where(self.base > 0.0, np.maximum(cells, TINY), 0.0)
        return cells / cells.sum(axis=0)


class KeywordState(NamedTuple):
    """The prior of topics with keywords, for forms of words.

    Parameters
    ----------
    columns : DirichletState or SpreadState
        Of the words of columns: one for each topic, and one for each topic with keywords.
    places : KeywordPlaces
    counts : ndarray of shape (n_places, n_groups)
        As ``own`` of `KeywordPlaces.in_columns`.
    strength : tuple of float
        Parameters of the beta distribution of rates: of keywords, and of all words.
    rate : ndarray of shape (n_keyword_topics,)
        A draw of the probability that a token of the topic comes from its keywords.
    """

    columns: object
    places: KeywordPlaces
    counts: np.ndarray
    strength: tuple
    rate: np.ndarray

    @property
    def n_groups(self):
        """Number of groups of documents."""
        return self.columns.n_groups

    def extended(self, n_words):
        """The state with further words, which are no keywords."""
        return self._replace(columns=self.columns.extended(n_words))

    def mean(self, counts):
        """Means of the words of topics given counts, as for `SpreadState`."""
        columns = self.places.in_columns(counts, self.counts)
        mass, n_keyword_topics = columns.sum(axis=0), self.places.n_topics
        own, rest = mass[-n_keyword_topics:] + self.strength[0], mass[:n_keyword_topics] + self.strength[1]
        return self.places.mixed(self.columns.mean(columns), own / (own + rest))

    def drawn(self, counts, rng):
        """Draw the words of topics given counts, in the same form."""
        columns = self.places.in_columns(counts, self.counts)
        return self.places.mixed(self.columns.drawn(columns, rng), self.rate)


def check_rates(rate, topic_names):
    """Check that tokens of topics with keywords come from them, given the posterior mean of the rates."""
    few = np.flatnonzero(rate < KEYWORDS_ABANDONED.limit)
    if not few.size:
        return KEYWORDS_ABANDONED.passed(rate.min())
    shown = ", ".join(f"{topic_names[k]} {rate[k]:.2g}" for k in few)
    meaning = (
        f"Topics hardly use their keywords: the share of their tokens that come from keywords is {shown} "
        f"({KEYWORDS_ABANDONED.limit:g} at least), so they may be about something else than their names say."
    )
    remedy = (
        "Check top_words() before you interpret them. Try keywords that are more frequent, or another n_components."
    )
    return KEYWORDS_ABANDONED.fired(rate.min(), meaning, remedy)


def check_company(ratios, places, names, topic_names):
    """Check that keywords occur with the other words of their topics, given the ratios of `KeywordSweeps.company`."""
    apart = np.flatnonzero(ratios < KEYWORDS_APART.limit)
    if not apart.size:
        return KEYWORDS_APART.passed(ratios.min())
    shown = ", ".join(f"{names[places.word[i]]} of {topic_names[places.topic[i]]} {ratios[i]:.2f}" for i in apart)
    meaning = (
        "Some keywords seldom occur with the other words of their topic. In documents with the keyword, the topic is "
        f"as probable as in all documents times: {shown} (1 at least)."
    )
    remedy = "Leave these keywords out, or give them to a topic of their own, and look at top_words()."
    return KEYWORDS_APART.fired(ratios.min(), meaning, remedy)


def keyword_table(model, places, tails):
    """The table of `StructuralTopicModel.keyword_table`."""
    rates, n_topics = model.samples_["keyword_rate"], places.n_topics
    low, high = np.empty((2, n_topics))
    for k in range(n_topics):
        low[k], high[k] = interval_ends(model._agreement.draws_of(rates, k), tails)
    shares = model.word_counts_[places.word] / max(model.word_counts_.sum(), 1.0)
    return as_table(
        {
            "topic": np.arange(n_topics),
            "name": np.asarray(model.topic_names_[:n_topics], dtype=object),
            "rate": model.keyword_rate_,
            "low": low,
            "high": high,
            "n_keywords": np.bincount(places.topic),
            "in_corpus": np.bincount(places.topic, shares),
        }
    )
