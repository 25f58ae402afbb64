"""Counts of shards that are not in memory, under priors of topics whose words differ between groups or have keywords.

A pass redraws the assignments of all shards given the words of the topics, which makes documents independent of each
other, as in `GivenTopicsStep`. These words are drawn before the pass, given the counts of the last one. What the pass
leaves open is drawn after it: the auxiliary variables u given the sums of y, and how many tokens come from keywords.

The latter needs no state of single tokens. A pass gives a token its topic without its column. Given the topic and the
words, the tokens of one form in one topic come from the keywords with the same probability, each by itself, so that
their number has a binomial distribution. Nothing else depends on which of them they are.
"""

import numpy as np

from ...kernels.math import lanes
from ...kernels.models import group_words
from .._counts.forms import StepInWords
from .._counts.sweeps import ShardCounts
from .keywords import DirichletState


class GroupedShardCounts(ShardCounts):
    """Counts of the assignments of all shards, in forms, under a `GroupedWordPrior`.

    Parameters
    ----------
    word_prior : GroupedWordPrior
    is_whole : bool
        Whether all tokens have weight 1.

    Attributes
    ----------
    sums : ndarray of shape (n_groups, n_columns), or None
        Sums over words of the y under which the last pass was made. None if groups shared their words.
    """

    sums = None

    def __init__(self, word_prior, is_whole):
        super().__init__(word_prior.table(), is_whole)
        self.word_prior = word_prior

    def __getstate__(self):
        unpickled = ("topic_word_prior", "word_prior")
        return {name: value for name, value in self.__dict__.items() if name not in unpickled}

    def rejoin(self, z, word_prior):
        """Share the chain's prior again, after unpickling."""
        super().rejoin(z, word_prior.table())
        self.word_prior = word_prior

    def set_topic_word_prior(self, topic_word_prior):
        """Do nothing, since `word_prior` contains the prior of the words that groups share."""

    def lay(self):
        """Do nothing: these are counts of forms already."""

    def set_weights(self):
        """Do nothing, since words are drawn for each pass."""

    # -- counts ----------------------------------------------------------------------------------------------------

    @property
    def n_tokens(self):
        """Number of tokens, or the sum of their weights."""
        return self.counts.sum()

    @property
    def in_columns(self):
        """Tokens of each form in each column, (n_forms, n_columns)."""
        return self.counts

    @property
    def counts_of_columns(self):
        """Tokens of each word in each column, (n_words, n_columns)."""
        columns = self.in_columns
        return columns.reshape(-1, self.word_prior.n_groups, columns.shape[1]).sum(axis=1, dtype=np.float64)

    @property
    def counts_of_words(self):
        """As for `GroupedSweeps`."""
        return self.counts_of_columns[:, : self.word_prior.n_topics]

    @property
    def tables(self):
        """As for `GroupedSweeps`, float64."""
        columns, n_groups = self.in_columns, self.word_prior.n_groups
        tables = np.zeros((n_groups, len(columns) // n_groups, lanes.padded(columns.shape[1])))
        tables[:, :, : columns.shape[1]] = columns.reshape(-1, n_groups, columns.shape[1]).transpose(1, 0, 2)
        return tables

    @property
    def masses(self):
        """As for `GroupedSweeps`."""
        columns = self.in_columns
        masses = np.zeros((self.word_prior.n_groups, lanes.padded(columns.shape[1])))
        masses[:, : columns.shape[1]] = columns.reshape(-1, len(masses), columns.shape[1]).sum(axis=0)
        return masses

    # -- passes ----------------------------------------------------------------------------------------------------

    @property
    def is_fast(self):
        """Whether groups share their words, and these can be swept by a `CollapsedStep`."""
        return self.word_prior.is_shared and self._of_words().is_fast

    def _of_words(self):
        """Counts of words, whose groups share them, as `ShardCounts` under the prior ``shared``."""
        prior = self.word_prior
        counts = ShardCounts(prior.shared.table(), self.table.dtype == np.int32)
        counts.table[:, : prior.n_topics] = self.counts_of_words
        counts.temperature = self.temperature
        return counts

    def step(self, doc_prior):
        """As `CollapsedSweeps.step`, while groups share their words."""
        return StepInWords(self._of_words().step(doc_prior), self.word_prior.n_groups)

    def drawn_topics(self, rng):
        """Draw the words of topics under which a pass is made, (n_forms, n_topics)."""
        return self._drawn_columns(rng)

    def _drawn_columns(self, rng):
        prior = self.word_prior
        if prior.is_shared:
            drawn = DirichletState(prior.base()).drawn(self.counts_of_columns, rng)
            return np.repeat(drawn, prior.n_groups, axis=0)
        columns = self.in_columns
        drawn, self.sums = prior.spread(columns).drawn_with_sums(columns, rng)
        return drawn

    def finish(self, rng):
        """Draw what a pass has left open: here u given y and the assignments."""
        if self.sums is None:
            return
        prior, width = self.word_prior, self.sums.shape[1]
        mass = self.masses[:, :width]
        drawn = rng.standard_gamma(np.maximum(mass, group_words.NOTHING)) / self.sums
        # Without tokens, from the distribution that `group_words` chooses.
        free = rng.standard_exponential(mass.shape) / np.exp(prior.log_mean).sum(axis=0)
        prior.pulls[:, :width] = np.where(mass > group_words.NOTHING, drawn, free)


class KeywordShardCounts(GroupedShardCounts):
    """Counts of the assignments of all shards, in forms, under a `KeywordWordPrior`.

    Parameters
    ----------
    word_prior, is_whole
        As for `GroupedShardCounts`.

    Attributes
    ----------
    own : ndarray of shape (n_places, n_groups), or None
        Tokens of each keyword that come from the keyword column of its topic. None before the first pass.
    shares : ndarray of shape (n_places, n_groups)
        Their share in the tokens of the keyword in its topic, under the words with which the last pass was made.
    """

    is_fast = False
    own = None

    @property
    def _tokens_of_places(self):
        places, n_groups = self.word_prior.places, self.word_prior.n_groups
        return self.counts[places.forms(n_groups), places.topic[:, None]]

    @property
    def in_columns(self):
        if self.own is None:  # As at the start of `KeywordSweeps`, on average.
            own = self.word_prior.share[:, None] * self._tokens_of_places
        else:
            own = self.own
        return self.word_prior.places.in_columns(self.counts, own)

    @property
    def total(self):
        """Sums over forms of the tokens in each column, (n_columns,)."""
        return self.in_columns.sum(axis=0)

    def company(self):
        """As for `KeywordSweeps`, but None, since documents are not at hand."""
        return None

    def counts_of_keywords(self):
        """As for `KeywordSweeps`."""
        return self.own, self._tokens_of_places.sum(axis=1)

    def drawn_topics(self, rng):
        prior, columns = self.word_prior, self._drawn_columns(rng)
        places, forms, topic = prior.places, prior.places.forms(prior.n_groups), prior.places.topic[:, None]
        own = prior.rate[topic] * columns[forms, prior.n_topics + topic]
        rest = (1.0 - prior.rate[topic]) * columns[forms, topic]
        self.shares = np.divide(own, own + rest, out=np.full(own.shape, 0.5), where=own + rest > 0.0)
        topics = places.mixed(columns, prior.rate)
        topics[:, : places.n_topics] *= prior.boost
        return topics

    def finish(self, rng):
        """Draw also which tokens come from keywords, before u."""
        self.own = thinned(self._tokens_of_places, self.shares, rng)
        super().finish(rng)


def thinned(counts, share, rng):
    """Draw how much of ``counts`` stays if each token stays with probability ``share``; a fraction is one token."""
    whole = np.floor(counts)
    drawn = rng.binomial(whole.astype(np.int64), share).astype(np.float64)
    rest = counts - whole
    return drawn + np.where(rng.random(rest.shape) < share, rest, 0.0) if np.any(rest) else drawn
