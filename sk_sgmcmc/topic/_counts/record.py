"""Kept draws of topics as the counts of their assignments, from which topics are drawn on demand."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...chains.chain import stacked_draws
from ...kernels.math import dirichlet_rows
from ...kernels.models.lda import staying
from .._draws import AveragedDraws, ConditionalDraws, TopicDraws

# Topics of two draws are matched only if one of them kept less than this share of its tokens in between.
_STAYS = 0.5


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
            self.values = counts.astype(np.min_scalar_type(-int(counts.max())) if values.dtype.kind == "u" else float)

    def dense(self):
        """As float64, (n_words, n_topics)."""
        if self.cells is None:
            return self.values.astype(np.float64)
        counts = np.zeros(self.shape[0] * self.shape[1])
        counts[self.cells] = self.values
        return counts.reshape(self.shape)

    def add_shares(self, prior_mass, order, sums):
        """Add counts over the mass of their topics, topics in ``order``, to ``sums``; returns the topics' masses.

        Parameters
        ----------
        prior_mass, order : ndarray of shape (n_topics,)
        sums : ndarray of shape (n_words * n_topics,)
        """
        n_topics = order.size
        if self.cells is None:
            mass = self.values.sum(axis=0) + prior_mass
            sums += (self.values / mass)[:, order].ravel()
            return mass
        topics = self.cells % n_topics
        mass = np.bincount(topics, self.values, n_topics) + prior_mass
        sums[self.cells - topics + np.argsort(order)[topics]] += self.values / mass[topics]
        return mass


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
        copy = TopicRecord(self.seed)
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
            staying.count_staying(self._last, z, had, stayed)
            if np.any(stayed < _STAYS * had):
                order = _moved(self._last, z, groups())
            order = order[self.orders[-1]]
        self._last = z.copy()
        self.counts.append(Counts(counts))
        self.orders.append(order)
        self.steps.append(step)

    def mean(self, s, word_prior):
        """Mean of the topics given the assignments of kept draw ``s``, (n_topics, n_words), as the chain has them."""
        cells = self.counts[s].dense() + word_prior
        cells /= cells.sum(axis=0)
        return cells.T

    def mean_over(self, orders, word_prior):
        """The same averaged over the first draws, (n_topics, n_words), topics of each in its row of ``orders``."""
        n_words, n_topics = self.counts[0].shape
        sums, inverse = np.zeros(n_words * n_topics), np.zeros(n_topics)
        prior_mass = np.broadcast_to(word_prior, (n_words, n_topics)).sum(axis=0)
        for counts, order in zip(self.counts, orders, strict=False):
            mass = counts.add_shares(prior_mass, order, sums)
            inverse += 1.0 / mass[order]
        cells = sums.reshape(n_words, n_topics) + word_prior * inverse
        return np.ascontiguousarray(cells.T / len(orders))

    def draw(self, s, word_prior):
        """Topics drawn given the assignments of kept draw ``s``, float32 (n_topics, n_words), as the chain has them."""
        shapes = np.ascontiguousarray((self.counts[s].dense() + word_prior).T)
        out = np.empty(shapes.shape, dtype=np.float32)
        seed = np.random.SeedSequence([self.seed, self.steps[s]]).generate_state(1, np.uint64)[0]
        dirichlet_rows.dirichlet_rows(shapes, seed, out)
        return out


def kept_draws(chains):
    """The chains' kept draws that count: a dict of arrays (n_chains, n_kept, ...), and those of the topics apart.

    Where a chain has kept none yet, its present state is the only draw.
    """
    records = [getattr(chain, "record", None) for chain in chains]
    n_kept = min(chain.n_kept for chain in chains)
    if n_kept == 0 or None in records:
        samples = stacked_draws(chains)
        draws = samples.pop("components")
        if any(getattr(chain, "mean", None) is None for chain in chains):
            return samples, TopicDraws(draws)
        return samples, AveragedDraws(draws, [chain.present_topics().T for chain in chains])
    samples = {name: np.stack([chain.kept[name][:n_kept] for chain in chains]) for name in chains[0].kept}
    return samples, ConditionalDraws(
        records, [chain.word_prior for chain in chains], n_kept, samples.pop("components", None)
    )


def _moved(before, now, groups):
    """Topics ``now`` that share most tokens with those ``before``, (n_topics,), one to one within groups."""
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
