"""Kept draws of topics, as counts of their assignments, from which topics are drawn on demand; the reference chain."""

from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...chains.chain import stacked_draws
from ...chains.convergence import evenly
from ...kernels.math import dirichlet
from ...kernels.models.lda import assignments
from ...metrics import align_topics, document_completion, split_tokens
from .._draws import AveragedDraws, ConditionalDraws, TopicDraws

# Topics of two draws are matched only if one of them kept less than this share of its tokens in between.
_STAYS = 0.5
_WORDS_AT_ONCE = 10_000  # so that temporary arrays are small

# Draws that held-out scores average over, evenly spaced over the kept ones; each costs a fit of all documents.
_SCORED_DRAWS = 10
_REFERENCE_DOCS = 1000  # documents used to choose a reference chain


class Counts:
    """Counts of assignments (n_words, n_topics), kept sparse where that takes less memory.

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

    def by_topic(self):
        """A copy as float64, (n_topics, n_words)."""
        n_words, n_topics = self.shape
        if self.cells is None:
            return np.array(self.values.T, dtype=np.float64, order="C")
        counts = np.zeros((n_topics, n_words))
        counts[self.cells % n_topics, self.cells // n_topics] = self.values
        return counts

    def of_words(self, words):
        """Rows of the counts, (words.size, n_topics) of float64."""
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
        """Add counts over the ``mass`` of their topics, topics in ``order``, to ``sums``.

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
    """What a chain with stored assignments keeps of its topics: counts, step by step, and how topics are numbered.

    Parameters
    ----------
    seed : int
        Of the draws made on demand.

    Attributes
    ----------
    counts : list of Counts
    orders : list of ndarray of shape (n_topics,)
        The chain's topics in the order of the first draw.
    """

    def __init__(self, seed):
        self.seed = seed
        self.counts, self.orders, self.steps = [], [], []
        self._last = None

    def __deepcopy__(self, memo):
        """A record that grows independently; the two share the counts, which never change."""
        copy = type(self)(self.seed)
        copy.counts, copy.orders, copy.steps, copy._last = (
            list(self.counts), list(self.orders), list(self.steps), self._last,
        )  # fmt: skip
        return copy

    def add(self, step, counts, z, groups):
        """Keep the counts (n_words, n_topics) of assignments ``z``; only topics of equal ``groups()`` change places."""
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

    def mean_of_words(self, s, word_prior, words, order):
        """Mean of the topics given the assignments of kept draw ``s``, of some words, (words.size, n_topics).

        Rounded to float32, as draws are.
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
        """Sums of the topics' prior over words, (n_topics,)."""
        n_words, n_topics = self.counts[0].shape
        sums = n_words * word_prior if np.ndim(word_prior) == 0 else word_prior.sum(axis=0)
        return np.broadcast_to(sums, n_topics)

    def mean_over(self, orders, word_prior):
        """The mean given the assignments, over the first draws, (n_topics, n_words), topics as in each's ``orders``."""
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
        """Topics drawn given the assignments of kept draw ``s``, float32 (n_topics, n_words), as the chain has them."""
        shapes = self.counts[s].by_topic()
        for k, shape in enumerate(shapes):
            shape += _prior_of(word_prior, k)
        out = np.empty(shapes.shape, dtype=np.float32)
        seed = np.random.SeedSequence([self.seed, self.steps[s]]).generate_state(1, np.uint64)[0]
        dirichlet.dirichlet_rows(shapes, seed, out)
        return out


class CountRecord(TopicRecord):
    """A record of a chain whose assignments are not at hand: topics are recognised by their counts."""

    def add(self, step, counts, z, groups):
        """Keep the counts; only topics of equal ``groups()`` change places."""
        order = np.arange(counts.shape[1])
        if self._last is not None:
            # At most these tokens kept their topic.
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
    """The prior of topic k: a number or (n_words,)."""
    if np.ndim(word_prior) == 0:
        return word_prior
    return word_prior[:, k if word_prior.shape[1] > 1 else 0]


def kept_draws(chains):
    """The chains' kept draws that count: a dict of arrays (n_chains, n_kept, ...), and those of the topics apart.

    Where a chain has kept none yet, its present state is the only draw.
    """
    records = [chain.record for chain in chains]
    n_kept = min(chain.n_kept for chain in chains)
    if n_kept == 0 or None in records:
        samples = stacked_draws(chains)
        draws = samples.pop("components")
        if any(chain.mean is None for chain in chains):
            return samples, TopicDraws(draws)
        return samples, AveragedDraws(draws, [chain.mean_topics().T for chain in chains])
    samples = {name: np.stack([chain.kept[name][:n_kept] for chain in chains]) for name in chains[0].kept}
    return samples, ConditionalDraws(
        records, [chain.word_prior.value for chain in chains], n_kept, samples.pop("components", None)
    )


def _matched(before, now, groups):
    """For each topic of the assignments ``before``, the one of those ``now`` that shares most tokens with it.

    (n_topics,), one to one and within groups, so that the total of shared tokens is largest.
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
    """The chain whose mean topics predict hidden words best, on up to 1000 of the fitted documents.

    Parameters
    ----------
    means : ndarray of shape (n_chains, n_topics, n_words)
    data : Shard
    doc_prior_of : callable
        Function from the index of a chain and those of documents to the documents' Dirichlet prior.
    """
    some = evenly(data.n_docs, _REFERENCE_DOCS)
    observed, hidden = split_tokens(data.counts(some))
    if hidden.nnz == 0:
        return 0
    scores = [
        document_completion(observed, hidden, mean, doc_topic_prior=doc_prior_of(c, some)).score
        for c, mean in enumerate(means)
    ]
    return int(np.argmax(scores))
