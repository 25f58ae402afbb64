"""Topics of the tokens of a chain's documents, drawn given the topics."""

import numpy as np

from ...kernels.models.lda import assignments
from .lazy_topics import in_blocks

# A thread takes at least this many documents at a time, so that handing them out costs next to nothing.
_MIN_DOCS_PER_THREAD = 32


class Assignments:
    """Assignments of tokens to topics, redrawn for one minibatch of documents at a time.

    Parameters
    ----------
    stored : bool
        Keep the topic of every token, two bytes each; otherwise assignments of a minibatch are drawn afresh.
    n_sweeps : tuple of int
        Gibbs sweeps over a minibatch to discard, and to average over.
    seed : int
        A document's random numbers depend on it, on the step and on the document, not on the thread.

    Attributes
    ----------
    z : ndarray of uint16, shape (n_tokens,)
        The stored assignments; None before the start, and if they are drawn afresh.
    """

    def __init__(self, stored, n_sweeps, seed):
        self.stored = stored
        self.n_sweeps = n_sweeps
        self.seed = seed
        self.z = None

    def __getstate__(self):
        unpickled = ("data", "_row", "_words")
        return {name: value for name, value in self.__dict__.items() if name not in unpickled}

    def bind(self, data):
        """Bind to the documents, a `TokenData`, at the start and again after unpickling."""
        self.data = data
        self._row = np.full(data.n_words, -1, dtype=np.int32)  # each word's index in the minibatch
        self._words = np.empty(data.n_words, dtype=np.int64)

    def without_z(self):
        """A copy that keeps no assignments, bound to nothing."""
        return Assignments(self.stored, self.n_sweeps, self.seed)

    def words_of(self, docs):
        """Words that occur in documents ``docs``, (n_rows,); call it before each `draw`."""
        data = self.data
        return self._words[: assignments.find_active(docs, data.token_ptr, data.words, self._row, self._words)].copy()

    def draw(self, docs, words, cells, total, prior, group, step, *, pool=None, every_draw=False):
        """Make Gibbs sweeps over documents given the topics.

        Parameters
        ----------
        docs, words : ndarray
            Documents, and their words from `words_of`.
        cells, total : ndarray
            Topics (n_words, n_topics), not normalised, of which the rows ``words`` are read; and their sums over words.
        prior, group : ndarray
            As from `DocumentPrior.table`.
        step : int
            The chain's step.
        pool : executor or None
            Threads.
        every_draw : bool
            Count each of the averaged sweeps separately, instead of the last alone.

        Returns
        -------
        counts : ndarray of shape (n_rows, n_topics)
            Counts of words, summed over the averaged sweeps; for stored assignments, the change of these counts.
        doc_counts : ndarray of shape (n_draws, n_docs, n_topics)
        """
        phi, prior_blocks = self._tables(words, cells, total, prior, pool)
        n_draws = self.n_sweeps[1] if every_draw and not self.stored else 1
        doc_counts = np.empty((n_draws, docs.size, prior.shape[1]))
        counts = self._sweep(docs, phi, prior_blocks, prior, group, np.uint64(self.seed + step), doc_counts, pool)
        assignments.clear_active(words, self._row)
        return counts, doc_counts

    @staticmethod
    def _tables(words, cells, total, prior, pool):
        phi = np.empty((words.size, prior.shape[1]), dtype=np.float32)
        prior_blocks = np.empty((words.size, -(-prior.shape[1] // assignments.BLOCK) + 1), dtype=np.float32)

        def work(_, start, stop):
            part = slice(start, stop)
            assignments.topic_tables(cells, words[part], total, prior, phi[part], prior_blocks[part])

        in_blocks(work, *phi.shape, pool)
        return phi, prior_blocks

    def _sweep(self, docs, phi, prior_blocks, prior, group, seed, doc_counts, pool):
        data, sweep = self.data, assignments.draw_assignments.compiled
        z = self.z if self.stored else np.empty(data.words.size, dtype=np.uint16)

        def work(start, stop):
            counts = np.zeros(phi.shape)
            blocks, made_for = prior_blocks, np.full(len(phi) if len(prior) > 1 else 0, -1, dtype=np.int32)
            if made_for.size:
                blocks = np.empty_like(prior_blocks)
            sweep(
                start, stop, docs, data.token_ptr, data.words, data.weights, self._row, phi, blocks, made_for, prior,
                group, seed, int(self.stored), *self.n_sweeps, z, counts, doc_counts,
            )  # fmt: skip
            return counts

        n_threads = min(data.n_threads, docs.size // _MIN_DOCS_PER_THREAD)
        if n_threads <= 1:
            return work(0, docs.size)
        # Cut by tokens, not by documents, so that threads finish together.
        tokens = np.cumsum(data.token_ptr[docs + 1] - data.token_ptr[docs])
        cuts = np.searchsorted(tokens, tokens[-1] * np.arange(1, n_threads) / n_threads)
        cuts = [0, *cuts.tolist(), docs.size]
        first, *others = pool.map(work, cuts[:-1], cuts[1:])
        for part in others:
            first += part
        return first

    def renumber(self, order):
        """Put topics into another order."""
        place = np.empty(order.size, dtype=np.uint16)
        place[order] = np.arange(order.size)
        self.z = place[self.z]
