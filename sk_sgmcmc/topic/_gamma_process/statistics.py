"""Statistics of documents on which the weights depend: numbers of documents above each topic count, and scales."""

import numpy as np

from ...kernels.models import gamma_process


def _draw_scales(docs, lengths, atoms, logs, rng):
    return gamma_process.draw_document_scales(docs, lengths, float(atoms.weights.sum()), *atoms.prior.scale, logs, rng)


class StoredStatistics:
    """Statistics of all documents at their stored assignments.

    Parameters
    ----------
    data : Shard
    n_topics : int

    Attributes
    ----------
    above : ndarray of shape (n_topics, n_levels)
        Number of documents with more than m tokens of a topic, for each topic and level m = 0, 1, ...
    logs : ndarray of shape (n_docs,)
        Scales of the documents, -log(1 - p_d); ``total_log`` is their sum.
    typical : float
        A constant of the magnitude of that sum.
    """

    def __init__(self, data, n_topics):
        self.lengths = data.lengths
        self.docs = np.arange(data.n_docs)
        self.above = self._no_counts(n_topics)
        self.logs, self.total_log = np.zeros(data.n_docs), 0.0
        self.typical = float(np.log1p(self.lengths).sum()) + 1.0

    def _no_counts(self, n_topics):
        """Zeros for all levels up to the longest document; pages that are never written take no memory."""
        return np.zeros((n_topics, int(np.max(self.lengths, initial=0.0)) + 1))

    def used_levels(self):
        """``above`` up to the last level in use, found by bisection, since all levels below it are in use."""
        low, high = 1, self.above.shape[1]
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.above[:, middle].any() else (low, middle)
        return self.above[:, :low]

    def __getstate__(self):
        return {**self.__dict__, "above": self.used_levels()}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.above = self._no_counts(len(state["above"]))
        self.above[:, : state["above"].shape[1]] = state["above"]

    def count(self, data, z, docs, sign):
        """Add documents to the counts, or remove them with ``sign`` -1."""
        gamma_process.count_documents(docs, data.token_ptr, data.weights, z, sign, self.above)

    def read_all(self, data, z, atoms, rng):
        """Count all documents again, and draw the scales of all."""
        self.above = self._no_counts(len(self.above))
        self.count(data, z, self.docs, 1.0)
        self.total_log = _draw_scales(self.docs, self.lengths, atoms, self.logs, rng)

    def summed(self):
        """A part of `SummedStatistics`: ``above`` for the levels in use, ``total_log`` and ``typical``."""
        return self.used_levels().copy(), self.total_log, self.typical

    def redraw(self, docs, atoms, rng):
        """Draw the scales of some documents."""
        before = self.logs[docs].sum()
        self.total_log += _draw_scales(docs, self.lengths, atoms, self.logs, rng) - before

    def values(self, total_samples):
        """The first four arguments of `Atoms.move`: cells, values, ``total_log`` and ``typical``."""
        return *gamma_process.cells_of(self.above), self.total_log, self.typical


def statistics_of(shard, z, n_topics, atoms, rng):
    """The part of `SummedStatistics` of a shard; called where the shard is."""
    seen = StoredStatistics(shard, n_topics)
    seen.read_all(shard, z, atoms, rng)
    return seen.summed()


class SummedStatistics:
    """Statistics of all documents as sums over shards.

    Parameters
    ----------
    parts : list of tuple
        The part of each shard; see `StoredStatistics.summed`.
    """

    def __init__(self, parts):
        self.above = np.zeros((len(parts[0][0]), max(above.shape[1] for above, *_ in parts)))
        for above, *_ in parts:
            self.above[:, : above.shape[1]] += above
        self.total_log = sum(total_log for _, total_log, _ in parts)
        self.typical = sum(typical for *_, typical in parts)

    def used_levels(self):
        """``above``, which contains only levels in use."""
        return self.above

    def permute(self, order):
        """Reorder the topics."""
        self.above = self.above[order]

    def values(self, total_samples):
        """As for `StoredStatistics`."""
        return *gamma_process.cells_of(self.above), self.total_log, self.typical


class AveragedStatistics:
    """Statistics of a stream: averages over minibatches, which forget as fast as the topics, plus fixed statistics.

    Parameters
    ----------
    n_topics : int
    stored : StoredStatistics, SummedStatistics or None
        Statistics of documents whose stored assignments no longer change.
    """

    def __init__(self, n_topics, stored=None):
        self.base = np.zeros((n_topics, 1)) if stored is None else stored.used_levels().copy()
        self.base_log, self.base_typical = (0.0, 1.0) if stored is None else (stored.total_log, stored.typical)
        self.above, self.total_log, self.typical = np.zeros((n_topics, 1)), 0.0, 0.0
        self.n_seen = 0

    def permute(self, order):
        """Reorder the topics."""
        self.above, self.base = self.above[order], self.base[order]

    def begin(self, stored):
        """Begin with the averages of ``stored`` over its documents."""
        n = max(1, stored.logs.size)
        self.above, self.total_log, self.typical = stored.used_levels() / n, stored.total_log / n, stored.typical / n
        self.n_seen = 1

    def remember(self, doc_counts, lengths, least_share, atoms, rng):
        """Update the averages by a minibatch, which gets a weight of at least ``least_share``."""
        docs = np.arange(lengths.size)
        self.n_seen += 1
        share = max(1.0 / self.n_seen, least_share)
        n_levels = int(np.max(doc_counts, initial=0.0)) + 1
        if n_levels > self.above.shape[1]:
            self.above = np.pad(self.above, ((0, 0), (0, n_levels - self.above.shape[1])))
        self.above *= 1.0 - share
        gamma_process.count_rows(doc_counts, share / docs.size, self.above)
        total = _draw_scales(docs, lengths, atoms, np.empty(lengths.size), rng)
        self.total_log += share * (total / docs.size - self.total_log)
        self.typical += (float(np.log1p(lengths[docs]).mean()) - self.typical) / self.n_seen

    def values(self, total_samples):
        """As for `StoredStatistics`, scaled to ``total_samples``."""
        above = np.zeros((len(self.above), max(self.above.shape[1], self.base.shape[1])))
        above[:, : self.above.shape[1]] = total_samples * self.above
        above[:, : self.base.shape[1]] += self.base
        log = total_samples * self.total_log + self.base_log
        return *gamma_process.cells_of(above), log, total_samples * self.typical + self.base_typical
