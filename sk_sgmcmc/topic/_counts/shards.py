"""Shards: ranges of documents that burn-in processes side by side, each with a copy of the topics of its own.

How many there are follows from the sizes of the corpus and of the topics, never from the number of threads, and each
has a random stream of its own. So threads change no draw.
"""

from threading import Lock

import numpy as np

_MOST = 16  # with as many, burn-in was seen to end where it ends with one
_MIN_TOKENS = 100_000  # of a shard
# Cells of a copy of the topics per token of a shard: copying stays a small part of the time, and all copies together
# hold no more cells than this times the tokens.
_CELLS_PER_TOKEN = 4


def number_of_shards(n_tokens, n_cells):
    """Number of shards for documents of ``n_tokens`` in all, and topics of ``n_cells``; 1 for small corpora."""
    least = max(_MIN_TOKENS, n_cells / _CELLS_PER_TOKEN)
    return int(min(max(n_tokens // least, 1), _MOST))


def cuts(token_ptr, n_shards):
    """Ends of the shards, (n_shards + 1,), cut by tokens, as the lengths of documents differ."""
    inner = token_ptr[0] + (token_ptr[-1] - token_ptr[0]) * np.arange(1, n_shards) // n_shards
    return np.concatenate([[0], np.searchsorted(token_ptr, inner), [token_ptr.size - 1]])


def streams(rng, n_shards):
    """Random streams of the shards, derived from ``rng``."""
    return [np.random.Generator(np.random.PCG64(seed)) for seed in rng.integers(2**63, size=n_shards)]


def side_by_side(work, n_shards, pool):
    """Call ``work(i)`` for each shard, in the threads of ``pool`` or, if it is None, one after the other."""
    for _ in map(work, range(n_shards)) if pool is None else pool.map(work, range(n_shards)):
        pass


class Merger:
    """Counts that shards change on copies of their own, put together when all have ended.

    Parameters
    ----------
    *counts : ndarray
        Whole numbers, as all shards find them; changed by `finish` only.
    """

    def __init__(self, *counts):
        self.counts = counts
        self.sums = [each.copy() for each in counts]
        self.lock = Lock()

    def copies(self):
        """Copies for one shard."""
        return [each.copy() for each in self.counts]

    def add(self, copies):
        """Add what a shard has changed; in any order, as whole numbers have the same sum."""
        with self.lock:
            for total, changed, before in zip(self.sums, copies, self.counts, strict=True):
                # Unsigned differences may wrap around; their sum comes out right.
                total += changed
                total -= before

    def finish(self):
        """Write the changes of all shards into the counts."""
        for total, counts in zip(self.sums, self.counts, strict=True):
            counts[...] = total
