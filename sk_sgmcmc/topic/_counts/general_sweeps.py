"""Collapsed Gibbs sweeps over tokens of any weight, under any prior of the topics."""

import numpy as np

from ...kernels.math import lanes
from ...kernels.models.lda import any_tokens, assignments
from .collapsed import CollapsedSweeps


class GeneralSweeps(CollapsedSweeps):
    """`CollapsedSweeps` where tokens have weights, or where words or topics have priors of their own.

    Parameters
    ----------
    data, z, topic_word_prior
        As for `CollapsedSweeps`.

    Attributes
    ----------
    table : ndarray of shape (n_words, width)
        Counts of the topics that have a column, in padded rows: uint16 if that is enough, else float64.
    mass : ndarray of shape (width,)
        Their sums.
    column, topic : ndarray of shape (n_topics,) and (width,)
        Each topic's column and each column's topic, -1 for none.
    """

    is_fast = False

    def __init__(self, data, z, topic_word_prior):
        self.z = z
        n_words, n_topics = topic_word_prior.shape
        counts = np.zeros((n_words, n_topics))
        assignments.count_assignments(data.words, data.weights, z, counts)
        few = counts.sum(axis=1).max(initial=0.0) < any_tokens.SHORT
        self.dtype = np.uint16 if few and data.weights.size == 0 else np.float64
        self.lay(counts, np.arange(n_topics))
        self.set_topic_word_prior(topic_word_prior)

    def lay(self, counts, topics):
        """Give these topics, which are all that have tokens, columns; ``counts`` is (n_words, n_topics)."""
        self.table = np.zeros((len(counts), lanes.padded(topics.size)), dtype=self.dtype)
        self.table[:, : topics.size] = counts[:, topics]
        self.mass = self.table.sum(axis=0, dtype=np.float64)
        self.topic = np.full(self.mass.size, -1, dtype=np.int32)
        self.topic[: topics.size] = topics
        self.column = np.full(counts.shape[1], -1, dtype=np.int32)
        self.column[topics] = np.arange(topics.size)

    @property
    def counts(self):
        """Tokens of each word in each topic, (n_words, n_topics)."""
        n_topics, used = self.column.size, self.topic >= 0
        if np.array_equal(self.topic[used], np.arange(n_topics)):
            return self.table[:, :n_topics]
        counts = np.zeros((len(self.table), n_topics), dtype=self.dtype)
        counts[:, self.topic[used]] = self.table[:, used]
        return counts

    def set_topic_word_prior(self, topic_word_prior):
        """Go on with another prior, (n_words, n_topics)."""
        self.topic_word_prior = topic_word_prior
        first = topic_word_prior[:, 0]
        differs = np.zeros(first.size, dtype=bool)
        if topic_word_prior.strides[1] != 0:
            differs = np.any(topic_word_prior != first[:, None], axis=1)
        numbers, row = np.unique(first[~differs], return_inverse=True)
        self.row = np.empty(first.size, dtype=np.int32)
        self.row[~differs] = row
        self.beta = numbers.astype(np.float32)
        width = self.mass.size
        if differs.any():  # seeds: few words, each with a row of its own
            self.row[differs] = numbers.size + np.arange(differs.sum())
            rows = np.vstack([np.tile(numbers[:, None], self.column.size), topic_word_prior[differs]])
            self.beta = np.zeros((len(rows), width), dtype=np.float32)
            self.beta[:, : self.column.size] = rows
            self.beta_sums = np.ones(width)
            self.beta_sums[: self.column.size] = topic_word_prior.sum(axis=0)
        else:
            self.beta_sums = np.full(width, float(first.sum()))

    def n_shards(self, data, start=0, stop=None):
        """One: the columns of its table change hands within a sweep."""
        return 1

    def n_parts(self, data):
        """One, for the same reason."""
        return 1

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, whose priors are the rows ``group`` of ``doc_topic_prior``."""
        self._sweep_from(0, data, start, stop, doc_topic_prior, group, rng)

    def _sweep_from(self, begin, data, start, stop, doc_topic_prior, group, rng):
        """`sweep` from token ``begin`` on; returns the token before which it stopped, or `any_tokens.DONE`."""
        return any_tokens.sweep(
            begin, start, stop, data.token_ptr, data.words, data.weights, self.z, self.table, self.mass, self.column,
            self.topic, doc_topic_prior, group, self.beta, self.row, self.beta_sums, rng,
        )  # fmt: skip


def collapsed_sweeps(data, z, topic_word_prior):
    """The fastest sweeps for such tokens and prior."""
    is_fast = topic_word_prior.strides == (0, 0) and data.weights.size == 0
    return (CollapsedSweeps if is_fast else GeneralSweeps)(data, z, topic_word_prior)
