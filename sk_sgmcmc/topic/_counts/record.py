"""Records of the counts of assignments, from which draws of topics are made on demand; choice of a reference chain."""

from copy import copy
from functools import cached_property, partial

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...chains.chain import stacked_draws
from ...chains.convergence import evenly
from ...kernels.math import dirichlet
from ...kernels.models.lda import assignments
from ...metrics import align_topics, document_completion, split_tokens
from ...metrics.completion import words_of
from .._draws import AveragedDraws, ConditionalDraws, TopicDraws

# Topics of two consecutive draws are matched only if some topic kept less than this share of its tokens in between.
_STAYS = 0.5
_WORDS_AT_ONCE = 10_000  # Words processed at a time, so that temporary arrays are small.

# Number of kept draws that held-out scores average over; each needs the proportions of all documents.
_SCORED_DRAWS = 10
_REFERENCE_DOCS = 1000  # Number of documents used to choose a reference chain.


class Counts:
    """Counts of assignments, (n_words, n_topics), stored as sparse cells if that takes less memory.

    Parameters
    ----------
    counts : ndarray of shape (n_words, n_topics)
    """

    def __init__(self, counts):
        self.shape = counts.shape
        cells = np.flatnonzero(counts)
        values = counts.ravel()[cells]
        if np.issubdtype(values.dtype, np.integer):
            values = values.astype(np.min_scalar_type(int(values.max(initial=0))))
        index = np.int32 if counts.size < 2**31 else np.int64
        sparse = cells.size * (np.dtype(index).itemsize + values.itemsize)
        self.cells = None
        if sparse < counts.size * 4:
            self.cells, self.values = cells.astype(index), values
        else:
            self.values = counts.astype(values.dtype if values.dtype.kind == "u" else float)

    def extended(self, n_words):
        """The same counts with further words, which have none."""
        if n_words == self.shape[0]:
            return self
        wider = copy(self)
        wider.shape = n_words, self.shape[1]
        if self.cells is None:
            wider.values = np.pad(self.values, ((0, n_words - self.shape[0]), (0, 0)))
        return wider

    def plus(self, place, added):
        """The same counts with ``added`` in some cells, whose numbers word * n_topics + topic are ascending."""
        values = self.values.ravel().astype(np.result_type(self.values, added, np.int64))
        grown, cells = copy(self), None
        vars(grown).pop("mass", None)
        if self.cells is None:
            values[place] += added
        else:
            at = np.searchsorted(self.cells, place)
            known = self.cells[np.minimum(at, self.cells.size - 1)] == place if self.cells.size else at < 0
            values[at[known]] += added[known]
            values = np.insert(values, at[~known], added[~known])
            cells = np.insert(self.cells, at[~known], place[~known].astype(self.cells.dtype))
        if np.issubdtype(values.dtype, np.integer):
            values = values.astype(np.min_scalar_type(int(values.max(initial=0))))
        grown.cells, grown.values = cells, values if cells is not None else values.reshape(self.shape)
        return grown

    def by_topic(self):
        """A copy as float64, (n_topics, n_words)."""
        n_words, n_topics = self.shape
        if self.cells is None:
            return np.array(self.values.T, dtype=np.float64, order="C")
        counts = np.zeros((n_topics, n_words))
        counts[self.cells % n_topics, self.cells // n_topics] = self.values
        return counts

    def of_words(self, words):
        """Counts of some words, float64 of shape (words.size, n_topics)."""
        if self.cells is None:
            return self.values[words].astype(np.float64)
        n_topics = self.shape[1]
        counts = np.zeros((words.size, n_topics))
        first = words.astype(np.int64) * n_topics
        start, stop = np.searchsorted(self.cells, first), np.searchsorted(self.cells, first + n_topics)
        row = np.repeat(np.arange(words.size), stop - start)
        found = np.arange(row.size) + (start - np.concatenate([[0], np.cumsum(stop - start)[:-1]]))[row]
        counts[row, self.cells[found] - first[row]] = self.values[found]
        return counts

    @cached_property
    def mass(self):
        """Sums over words, (n_topics,)."""
        if self.cells is None:
            return self.values.sum(axis=0, dtype=np.float64)
        return np.bincount(self.cells % self.shape[1], self.values, self.shape[1])

    def add_shares(self, mass, order, sums):
        """Divide the counts of each topic by its ``mass``, and add them to ``sums``, with the topics in ``order``.

        Parameters
        ----------
        mass, order : ndarray of shape (n_topics,)
        sums : ndarray of shape (n_topics, n_words)
        """
        n_topics = order.size
        if self.cells is None:
            for place, k in enumerate(order):
                sums[place] += self.values[:, k] / mass[k]
            return
        topics = self.cells % n_topics
        sums[np.argsort(order)[topics], self.cells // n_topics] += self.values / mass[topics]


class TopicRecord:
    """The kept draws of topics of a chain with stored assignments: the counts and the order of topics in each draw.

    Parameters
    ----------
    seed : int
        Seed of the draws made on demand.

    Attributes
    ----------
    counts : list of Counts
        Counts of each kept draw.
    orders : list of ndarray of shape (n_topics,)
        For each kept draw, the indices of its topics in the order of the first draw.
    steps : list of int
        Step of each kept draw.
    """

    def __init__(self, seed):
        self.seed = seed
        self.counts, self.orders, self.steps = [], [], []
        self._last = None

    def __deepcopy__(self, memo):
        """A record that grows independently of this one; both share the counts, which never change."""
        copy = type(self)(self.seed)
        copy.counts, copy.orders, copy.steps, copy._last = (
            list(self.counts), list(self.orders), list(self.steps), self._last,
        )  # fmt: skip
        return copy

    def add(self, step, counts, z, groups, state=None):
        """Keep the counts (n_words, n_topics) of assignments ``z``; only topics of equal ``groups()`` are permuted.

        ``state`` describes the word prior; it is None for a Dirichlet prior.
        """
        n_topics = counts.shape[1]
        order = np.arange(n_topics)
        if self._last is not None:
            had, stayed = np.zeros((2, n_topics), dtype=np.int64)
            assignments.count_staying(self._last, z, had, stayed)
            if np.any(stayed < _STAYS * had):
                order = _matched(self._last, z, groups())
            order = order[self.orders[-1]]
        self._last = z.copy()
        self.counts.append(Counts(counts))
        self.orders.append(order)
        self.steps.append(step)

    def keep_only(self, staying):
        """Drop all draws but those at the indices ``staying``."""
        self.counts, self.orders, self.steps = (
            [values[i] for i in staying] for values in (self.counts, self.orders, self.steps)
        )
        self._last = self._last if staying else None

    def extend(self, n_words, last):
        """Continue with a larger vocabulary, and with the assignments ``last`` of the latest draw and of new tokens."""
        self.counts = [counts.extended(n_words) for counts in self.counts]
        self._last = last

    def take_in(self, words, z, weights):
        """Add the tokens of new documents to all draws, with the topics ``z`` that they have in the present state.

        The draws then describe the same documents. That the topics of new tokens would differ a little from draw to
        draw is neglected; the sweeps that follow replace these draws.
        """
        if not self.counts:
            return
        n_topics = self.counts[0].shape[1]
        cells, which = np.unique(words.astype(np.int64) * n_topics + z, return_inverse=True)
        added = np.bincount(which, weights if weights.size else None, cells.size)
        for s, (counts, order) in enumerate(zip(self.counts, self.orders, strict=True)):
            present = np.empty_like(order)
            present[self.orders[-1]] = order
            place = cells - cells % n_topics + present[cells % n_topics]
            ascending = np.argsort(place, kind="stable")
            self.counts[s] = counts.plus(place[ascending], added[ascending])

    @property
    def last(self):
        """The assignments of the latest draw, or None."""
        return self._last

    def mean_of_words(self, s, word_prior, words, order):
        """Mean of the topics given the assignments of kept draw ``s``, for some words, (words.size, n_topics).

        It is rounded to float32, as draws are.
        """
        counts, out = self.counts[s], np.empty((words.size, order.size))
        mass = counts.mass + self._prior_mass(word_prior)
        for start in range(0, words.size, _WORDS_AT_ONCE):
            part = slice(start, start + _WORDS_AT_ONCE)
            cells = counts.of_words(words[part])
            cells += word_prior if np.ndim(word_prior) == 0 else word_prior[words[part]]
            cells /= mass
            out[part] = cells.astype(np.float32)[:, order]
        return out

    def _prior_mass(self, word_prior):
        """Sums of the word prior over words, (n_topics,)."""
        n_words, n_topics = self.counts[0].shape
        sums = n_words * word_prior if np.ndim(word_prior) == 0 else word_prior.sum(axis=0)
        return np.broadcast_to(sums, n_topics)

    def mean_over(self, orders, word_prior):
        """Mean over the first ``len(orders)`` draws of the topics' mean given the assignments, (n_topics, n_words).

        ``orders`` are the orders of the topics in these draws.
        """
        n_words, n_topics = self.counts[0].shape
        means, inverse = np.zeros((n_topics, n_words)), np.zeros(n_topics)
        prior_mass = self._prior_mass(word_prior)
        for counts, order in zip(self.counts, orders, strict=False):
            mass = counts.mass + prior_mass
            counts.add_shares(mass, order, means)
            inverse += 1.0 / mass[order]
        for k, mean in enumerate(means):
            mean += _prior_of(word_prior, k) * inverse[k]
        means /= len(orders)
        return means

    def draw(self, s, word_prior):
        """Draw topics given the assignments of kept draw ``s``: float32 (n_topics, n_words), in the chain's order."""
        shapes = self.counts[s].by_topic()
        for k, shape in enumerate(shapes):
            shape += _prior_of(word_prior, k)
        out = np.empty(shapes.shape, dtype=np.float32)
        seed = np.random.SeedSequence([self.seed, self.steps[s]]).generate_state(1, np.uint64)[0]
        dirichlet.dirichlet_rows(shapes, seed, out)
        return out


class CountRecord(TopicRecord):
    """A record of a chain whose assignments are not in memory, which matches topics by their counts."""

    def add(self, step, counts, z, groups, state=None):
        """Keep the counts; only topics with equal ``groups()`` are permuted."""
        order = np.arange(counts.shape[1])
        if self._last is not None:
            # This is an upper bound of the tokens that kept their topic.
            stayed = np.minimum(counts, self._last).sum(axis=0, dtype=np.float64)
            if np.any(stayed < _STAYS * self._last.sum(axis=0, dtype=np.float64)):
                cells = self._last + 1e-9, counts + 1e-9
                shares = ((each / each.sum(axis=0)).T for each in cells)
                order = align_topics(*shares, groups=groups())
            order = order[self.orders[-1]]
        self._last = np.array(counts)
        self.counts.append(Counts(counts))
        self.orders.append(order)
        self.steps.append(step)


def _prior_of(word_prior, k):
    """The word prior of topic k, a number or an array (n_words,)."""
    if np.ndim(word_prior) == 0:
        return word_prior
    return word_prior[:, k if word_prior.shape[1] > 1 else 0]


def kept_draws(chains):
    """The chains' kept draws: a dict of arrays (n_chains, n_kept, ...) without the topics, and the `TopicDraws`.

    If a chain has kept none yet, the present states are the only draws.
    """
    records = [chain.record for chain in chains]
    n_kept = min(chain.n_kept for chain in chains)
    if n_kept == 0 or None in records:
        samples = stacked_draws(chains)
        draws = samples.pop("components")
        if not all(chain.has_mean for chain in chains):
            return samples, TopicDraws(draws)
        return samples, AveragedDraws(draws, [chain.mean_topics().T for chain in chains])
    samples = {name: np.stack([chain.kept[name][:n_kept] for chain in chains]) for name in chains[0].kept}
    return samples, ConditionalDraws(
        records, [chain.word_prior.value for chain in chains], n_kept, samples.pop("components", None)
    )


def _matched(before, now, groups):
    """Match topics of the assignments ``before`` and ``now``, within groups, to maximise the number of shared tokens.

    Returns the index of the present topic for each earlier topic, (n_topics,).
    """
    n_topics = groups.size
    shared = np.zeros(n_topics * n_topics, dtype=np.int64)
    for start in range(0, before.size, 10_000_000):
        part = slice(start, start + 10_000_000)
        shared += np.bincount(before[part].astype(np.int64) * n_topics + now[part], minlength=shared.size)
    shared = shared.reshape(n_topics, n_topics)
    order = np.arange(n_topics)
    for value in np.unique(groups):
        same = np.flatnonzero(groups == value)
        order[same] = same[linear_sum_assignment(-shared[np.ix_(same, same)])[1]]
    return order


# ------------------------------------------------------------------------------------------------ the reference chain


def scored_draws(n_draws):
    """Indices of the draws that held-out scores average over."""
    return evenly(n_draws, _SCORED_DRAWS)


def best_chain(means, data, doc_prior_of):
    """The index of the chain whose mean topics predict hidden words best, on up to 1,000 of the fitted documents.

    Parameters
    ----------
    means : ndarray of shape (n_chains, n_topics, n_words)
    data : Shard
    doc_prior_of : callable
        Called with the index of a chain and indices of documents; returns the documents' Dirichlet prior.
    """
    some = evenly(data.n_docs, _REFERENCE_DOCS)
    observed, hidden = split_tokens(data.counts(some))
    if hidden.nnz == 0:
        return 0
    scores = [
        document_completion(observed, hidden, [partial(words_of, mean)], doc_topic_prior=doc_prior_of(c, some)).score
        for c, mean in enumerate(means)
    ]
    return int(np.argmax(scores))
