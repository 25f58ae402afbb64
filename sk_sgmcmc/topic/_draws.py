"""Kept draws of topics of all chains, as arrays or made on demand from the records of the chains."""

from weakref import ref

import numpy as np

from ..chains.chain import DRAW_MEMORY
from ..chains.convergence import evenly
from ..metrics import align_draws
from ..metrics.completion import words_of
from ..utils._numbers import checked_count

_SPREAD_DRAWS = 20  # Evenly spaced draws of a chain from which distances and variances are estimated.


def unit_rows(topics, metric):
    """Topics as unit vectors whose inner product measures their similarity, over the last axis."""
    if metric == "hellinger":
        return np.sqrt(topics / topics.sum(axis=-1, keepdims=True))
    return topics / np.linalg.norm(topics, axis=-1, keepdims=True)


class Samples(dict):
    """A dict of draws that makes ``"components"`` when they are first read, and does not pickle them.

    Parameters
    ----------
    values : dict of ndarray
        All other draws.
    topic_draws : TopicDraws
    """

    def __init__(self, values, topic_draws):
        super().__init__({"components": None, **values})
        self.topic_draws = topic_draws

    def __getitem__(self, name):
        value = super().__getitem__(name)
        if value is None and name == "components":
            value = self.topic_draws.array()
            super().__setitem__(name, value)
        return value

    def __setitem__(self, name, value):
        if name == "components":
            self.topic_draws = TopicDraws(value)
        super().__setitem__(name, value)

    def __iter__(self):
        # With this method overridden, `dict(samples)` calls `__getitem__` instead of copying entries not made yet.
        return super().__iter__()

    def __repr__(self):
        return repr(self.copy())

    def __reduce__(self):
        return Samples, ({name: value for name, value in super().items() if name != "components"}, self.topic_draws)

    def get(self, name, default=None):
        """As `dict.get`."""
        present = super().get(name, default)
        return self[name] if present is None and name in self else present

    def values(self):
        """As `dict.values`, but a list."""
        return [self[name] for name in self]

    def items(self):
        """As `dict.items`, but a list."""
        return [(name, self[name]) for name in self]

    def pop(self, name, *default):
        """As `dict.pop`."""
        if name in self:
            self[name]
        return super().pop(name, *default)

    def copy(self):
        """A plain dict of the same arrays."""
        return dict(self.items())


class TopicDraws:
    """Draws of topics as an array, (n_chains, n_kept, n_topics, n_features).

    Parameters
    ----------
    components : ndarray
    """

    orders = None  # Order of the topics in each draw, (n_chains, n_kept, n_topics), if the chains recorded it.

    def __init__(self, components):
        self._components = components

    @property
    def of_documents(self):
        """The draws with which the words of documents are compared."""
        return self

    @property
    def shape(self):
        """(n_chains, n_kept, n_topics, n_features)."""
        return self._components.shape

    def array(self):
        """All draws."""
        return self._components

    def draw(self, c, s):
        """Draw ``s`` of chain ``c``, (n_topics, n_features)."""
        return self._components[c, s]

    def kept_draw(self, c, s):
        """As `draw`, but draws made on demand are cached, up to `DRAW_MEMORY`; for callers that read draws again."""
        return self.draw(c, s)

    def mean_of_words(self, c, s, words):
        """Mean of the topics given the rest of the chain's state in draw ``s``, for some words, (n_words, n_topics).

        If this mean is not known, the draw itself is returned. Both have the precision of a draw.
        """
        return words_of(self._components[c, s], words)

    def mean_of_chain(self, c):
        """Mean over kept draws, (n_topics, n_features) of float64."""
        return self._components[c].mean(axis=0, dtype=np.float64)

    def n_tokens(self, c):
        """Numbers of tokens of the topics in each draw of chain ``c``, (n_kept, n_topics); None if not recorded."""
        return None

    def align(self, c, metric, groups, n_rounds):
        """Align the topics of all draws of a chain, in place; returns the order of each draw, (n_kept, n_topics)."""
        orders = align_draws(self._components[c : c + 1], n_rounds, metric=metric, groups=groups)[0]
        for s, order in enumerate(orders):
            if not np.array_equal(order, np.arange(order.size)):
                self._components[c, s] = self._components[c, s][order]
        return orders

    def reorder(self, c, order):
        """Put the topics of chain ``c`` into another order, in place."""
        self._components[c] = self._components[c][:, order]

    def variances(self, c, words):
        """Means, variances, and half the mean squared differences of consecutive draws of chain ``c``, for some words.

        A tuple of three arrays (n_topics, words.size); None for draws made on demand, which are exact given the counts.
        """
        some = evenly(self.shape[1], _SPREAD_DRAWS)
        draws = np.stack([words_of(self._components[c, s], words).T for s in some]).astype(np.float64)
        return draws.mean(axis=0), draws.var(axis=0, ddof=1), (np.diff(draws, axis=0) ** 2).mean(axis=0) / 2.0


class AveragedDraws(TopicDraws):
    """Draws of chains that average the conditional means of their topics as they run.

    Parameters
    ----------
    components : ndarray
    means : list of ndarray of shape (n_topics, n_features)
        Average of each chain, with the topics in the order of its last draw.
    """

    def __init__(self, components, means):
        super().__init__(components)
        self.means = means

    def mean_of_chain(self, c):
        return self.means[c]

    def align(self, c, metric, groups, n_rounds):
        orders = super().align(c, metric, groups, n_rounds)
        self.means[c] = self.means[c][orders[-1]]
        return orders

    def reorder(self, c, order):
        super().reorder(c, order)
        self.means[c] = self.means[c][order]


class ConditionalDraws(TopicDraws):
    """Draws of chains that record the counts of their assignments.

    Parameters
    ----------
    records : list of TopicRecord
        Record of each chain, of which the first ``n_kept`` draws are used.
    word_priors : list of float or ndarray
        Word prior of each chain, as for `WordPrior`.
    n_kept : int
    components : ndarray or None
        The draws, if chains kept them. None: draws are made from the records.
    """

    def __init__(self, records, word_priors, n_kept, components=None):
        super().__init__(components)
        self.records, self.word_priors = records, word_priors
        self.orders = np.array([record.orders[:n_kept] for record in records])  # (n_chains, n_kept, n_topics)
        self._forget_made()

    def _forget_made(self):
        """Drop the draws made on demand: single ones in ``_made``, and ``_array``, a weak reference to all of them."""
        self._made, self._array = {}, lambda: None

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in ("_made", "_array")}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._forget_made()

    @property
    def shape(self):
        return (*self.orders.shape, self.records[0].counts[0].shape[0])

    def array(self):
        if self._components is not None:
            return self._components
        out = np.empty(self.shape, dtype=np.float32)
        for c, s in np.ndindex(*out.shape[:2]):
            out[c, s] = self._made[c, s] if (c, s) in self._made else self.draw(c, s)
        self._made, self._array = {}, ref(out)
        return out

    def draw(self, c, s):
        if self._components is not None:
            return self._components[c, s]
        return self.records[c].draw(s, self.word_priors[c])[self.orders[c, s]]

    def kept_draw(self, c, s):
        whole = self._array()
        if self._components is not None or whole is not None:
            return (self._components if whole is None else whole)[c, s]
        made = self._made.get((c, s))
        if made is None:
            made = self.draw(c, s)
            if (len(self._made) + 1) * made.nbytes <= DRAW_MEMORY:
                self._made[c, s] = made
        return made

    def variances(self, c, words):
        return None if self._components is None else super().variances(c, words)

    def mean_of_words(self, c, s, words):
        return self.records[c].mean_of_words(s, self.word_priors[c], words, self.orders[c, s])

    def mean_of_chain(self, c):
        return self.records[c].mean_over(self.orders[c], self.word_priors[c])

    def n_tokens(self, c):
        counts = self.records[c].counts
        return np.array([counts[s].mass[order] for s, order in enumerate(self.orders[c])])

    def align(self, c, metric, groups, n_rounds):
        """As for `TopicDraws`, but the orders come from the records; the other arguments are ignored."""
        orders = self.orders[c].copy()
        if self._components is not None:
            for s, order in enumerate(orders):
                self._components[c, s] = self._components[c, s][order]
        return orders

    def reorder(self, c, order):
        self.orders[c] = self.orders[c][:, order]
        self._forget_made()
        if self._components is not None:
            self._components[c] = self._components[c][:, order]


def check_at_most_kept(n_draws, n_kept):
    """Raise unless ``n_draws`` is a number from 1 to ``n_kept``."""
    n_draws = checked_count("n_draws", n_draws)
    if n_draws > n_kept:
        raise ValueError(
            f"n_draws must be at most {n_kept}, the number of kept draws of the topics; got {n_draws}. Pass "
            "n_draws=None for all of them, or keep more: fit with a larger n_iter or a smaller thin."
        )


def chosen_draws(n_kept, n_draws):
    """Indices of at most ``n_draws`` kept draws, evenly spaced; all of them if it is None."""
    if n_draws is not None:
        n_draws = checked_count("n_draws", n_draws)
    return evenly(n_kept, n_kept if n_draws is None else n_draws)
