"""Kept draws of words by groups, made on demand, and views of them: of all groups together, and of one group."""

import numpy as np

from .._counts.record import CountRecord, TopicRecord
from .._draws import TopicDraws


class GroupedRecord(TopicRecord):
    """The kept draws of a chain under a `GroupedWordPrior`, as topics of forms.

    Besides counts of forms, it contains the prior at each draw, as from `GroupedWordPrior.state`.
    """

    def __init__(self, seed):
        super().__init__(seed)
        self.states = []

    def __deepcopy__(self, memo):
        other = super().__deepcopy__(memo)
        other.states = list(self.states)
        return other

    def add(self, step, counts, z, groups, state=None):
        super().add(step, counts, z, groups)
        self.states.append(state)

    def keep_only(self, staying):
        super().keep_only(staying)
        self.states = [self.states[i] for i in staying]

    def extend(self, n_words, last):
        """As for `TopicRecord`; new words have the smallest mean of their topic, in draws of earlier documents."""
        super().extend(n_words, last)
        self.states = [state.extended(n_words // state.n_groups) for state in self.states]

    def take_in(self, words, z, weights):
        """Leave the draws as they are, since the prior at each draw belongs to its counts."""

    def _counts(self, s):
        return np.ascontiguousarray(self.counts[s].by_topic().T)

    def mean_of_words(self, s, word_prior, words, order):
        mean = self._mean(s)[np.ix_(words, order)]
        return mean.astype(np.float32).astype(np.float64)

    def _mean(self, s):
        """Means of the topics of forms given draw ``s``, (n_forms, n_topics)."""
        return self.states[s].mean(self._counts(s))

    def mean_over(self, orders, word_prior):
        total = 0.0
        for s, order in enumerate(orders):
            total = total + self._mean(s)[:, order]
        return np.ascontiguousarray(total.T) / len(orders)

    def draw(self, s, word_prior):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, self.steps[s]])))
        return np.ascontiguousarray(self.states[s].drawn(self._counts(s), rng).T, dtype=np.float32)

    def shares(self, s):
        """Share of each group in the tokens of each topic in draw ``s``, (n_groups, n_topics)."""
        counts = self.counts[s].by_topic()
        mass = counts.reshape(len(counts), -1, self.states[s].n_groups).sum(axis=1).T
        total = mass.sum(axis=0)
        return np.where(total > 0, mass / np.where(total > 0, total, 1.0), 1.0 / len(mass))


class GroupedCountRecord(GroupedRecord, CountRecord):
    """A `GroupedRecord` of a chain whose assignments are not in memory."""


class SharedDraws(TopicDraws):
    """Draws of topics over all groups: the words of each group, weighted by its share of the topic's tokens.

    Parameters
    ----------
    of_documents : ConditionalDraws
        Draws of topics of forms, with which documents are compared.
    n_groups : int
    """

    def __init__(self, of_documents, n_groups):
        self._of_documents, self.n_groups = of_documents, n_groups

    @property
    def of_documents(self):
        """Draws of topics of forms."""
        return self._of_documents

    @property
    def orders(self):
        """As for `ConditionalDraws`."""
        return self.of_documents.orders

    @property
    def shape(self):
        *first, n_forms = self.of_documents.shape
        return (*first, n_forms // self.n_groups)

    def _shares(self, c, s):
        """Share of each group in the tokens of each topic, (n_groups, n_topics)."""
        if self.orders is None:  # A state in burn-in, which is no draw.
            return np.full((self.n_groups, self.shape[2]), 1.0 / self.n_groups)
        return self.of_documents.records[c].shares(s)[:, self.orders[c, s]]

    def array(self):
        return np.stack([[self.draw(c, s) for s in range(self.shape[1])] for c in range(self.shape[0])])

    def draw(self, c, s):
        topics = self.of_documents.draw(c, s)
        topics = topics.reshape(len(topics), -1, self.n_groups) * self._shares(c, s).T[:, None]
        return topics.sum(axis=2, dtype=np.float32)

    def mean_of_words(self, c, s, words):
        forms = (words[:, None] * self.n_groups + np.arange(self.n_groups)).ravel()
        found = self.of_documents.mean_of_words(c, s, forms)
        return (found.reshape(words.size, self.n_groups, -1) * self._shares(c, s)).sum(axis=1)

    def mean_of_chain(self, c):
        total, n_kept = 0.0, self.shape[1]
        every = np.arange(self.shape[3])
        for s in range(n_kept):
            total = total + self.mean_of_words(c, s, every).T.astype(np.float64)
        return total / n_kept

    def reorder(self, c, order):
        self.of_documents.reorder(c, order)

    def variances(self, c, words):
        return None


class GroupDraws(TopicDraws):
    """Draws of the topics of one group of documents; parameters are those of `SharedDraws`, and the group's index."""

    def __init__(self, of_documents, n_groups, group):
        self._of_documents, self.n_groups, self.group = of_documents, n_groups, group

    @property
    def shape(self):
        *first, n_forms = self._of_documents.shape
        return (*first, n_forms // self.n_groups)

    def array(self):
        return np.stack([[self.draw(c, s) for s in range(self.shape[1])] for c in range(self.shape[0])])

    def draw(self, c, s):
        return self._of_documents.kept_draw(c, s)[:, self.group :: self.n_groups]
