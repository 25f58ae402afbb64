"""Topic counts of single documents at kept draws, from which their proportions are drawn later."""

from copy import copy

import numpy as np
from scipy import sparse

from ...chains.chain import DRAW_MEMORY

_CELLS_AT_ONCE = 4_000_000  # Cells of the table of counts that are made at a time, to limit memory.
_FEWEST = 10  # If the limit of memory leaves fewer draws than this, none are recorded: intervals need several.


def counted(shard, z, n_topics):
    """Topic counts of the documents of a `Shard`, a csr_array (n_docs, n_topics), and each document's place in X."""
    lengths, parts = np.diff(shard.token_ptr), []
    at_once = max(1, _CELLS_AT_ONCE // n_topics)
    for start in range(0, max(1, shard.n_docs), at_once):  # A shard may be empty.
        own = lengths[start : start + at_once]
        tokens = slice(int(shard.token_ptr[start]), int(shard.token_ptr[start + own.size]))
        cells = np.repeat(np.arange(own.size) * n_topics, own) + z[tokens]
        weights = shard.weights[tokens] if shard.weights.size else None
        table = np.bincount(cells, weights, own.size * n_topics)
        if weights is None:
            table = table.astype(np.min_scalar_type(int(table.max(initial=0))))
        parts.append(sparse.csr_array(table.reshape(own.size, n_topics)))
    return _stacked(parts), shard.described.place


class DocumentCounts:
    """Topic counts of all documents in one draw, with as few bytes as they take.

    Parameters
    ----------
    parts : list of tuple
        Of each shard, as `counted` returns it.
    """

    def __init__(self, parts):
        rows = _stacked([counts for counts, _ in parts])
        rows = rows[np.argsort(np.concatenate([place for _, place in parts]))]
        self.n_docs, self.n_topics = rows.shape
        self.sizes = _small(np.diff(rows.indptr))
        self.topics, self.values = _small(rows.indices), _small(rows.data)

    @property
    def nbytes(self):
        """Number of bytes."""
        return self.sizes.nbytes + self.topics.nbytes + self.values.nbytes

    def tables(self, at_once):
        """Yield the counts of ``at_once`` documents at a time, float64 (n, n_topics), in the order of X."""
        ptr = np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])
        for start in range(0, self.n_docs, at_once):
            own = self.sizes[start : start + at_once]
            cells, table = slice(ptr[start], ptr[start + own.size]), np.zeros((own.size, self.n_topics))
            table[np.repeat(np.arange(own.size), own), self.topics[cells]] = self.values[cells]
            yield table


def _stacked(parts):
    return parts[0] if len(parts) == 1 else sparse.csr_array(sparse.vstack(parts))


def _small(values):
    """An array of whole numbers in the smallest type that contains them; other numbers as float32."""
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


class DocumentRecord:
    """The topic counts of the documents at the kept draws of a chain, within a limit of memory.

    Beyond the limit every second recorded draw is dropped, and later ones are recorded half as often.

    Parameters
    ----------
    most_bytes : int, default=DRAW_MEMORY
        The limit.

    Attributes
    ----------
    counts : dict
        `DocumentCounts` by the step of the draw.
    exceeded : bool
        Whether even a few draws exceed the limit, so that none are recorded.
    """

    def __init__(self, most_bytes=DRAW_MEMORY):
        self.most_bytes, self.counts, self.exceeded = most_bytes, {}, False
        self._number, self._every, self._n_offered, self._n_bytes = {}, 1, 0, 0

    def __deepcopy__(self, memo):
        """A record that grows independently of this one; both share the counts, which never change."""
        other = copy(self)
        other.counts, other._number = dict(self.counts), dict(self._number)
        return other

    def offer(self, step, count):
        """Record the draw after ``step`` steps, unless it is to be left out; ``count()`` returns its parts."""
        number = self._n_offered
        self._n_offered += 1
        if self.exceeded or number % self._every:
            return
        self.counts[step], self._number[step] = DocumentCounts(count()), number
        self._n_bytes += self.counts[step].nbytes
        while self._n_bytes > self.most_bytes:
            self._every *= 2
            self.keep_only([step for step in self.counts if self._number[step] % self._every == 0])
            if len(self.counts) < _FEWEST:
                self.exceeded = True
                self.keep_only([])

    def keep_only(self, steps):
        """Drop all draws but those after ``steps``."""
        staying = set(steps)
        self.counts = {step: value for step, value in self.counts.items() if step in staying}
        self._number = {step: value for step, value in self._number.items() if step in staying}
        self._n_bytes = sum(each.nbytes for each in self.counts.values())
