"""Which rows the next minibatches hold.

An *order* cuts the rows of one epoch into minibatches: a function of (n_rows, n_batch, new_rng) that returns them in
turn. ``new_rng()`` makes the epoch's generator, which costs as much as several small steps.
"""

import numpy as np

_AHEAD = 1024  # minibatches whose order one call of `blocks` draws


class Minibatches:
    """Reads rows by minibatches, in a new order in each epoch.

    Each epoch has a stream of random numbers of its own, so how far ahead one reads changes no draw of the chain. The
    length is how many minibatches of the epoch are left.

    Parameters
    ----------
    seed : SeedSequence
        The chain's.
    """

    def __init__(self, seed):
        self.entropy = seed.generate_state(2, np.uint64).tolist()
        self.epoch = 0
        self.left = []

    def __len__(self):
        return len(self.left)

    def forget(self):
        """Drop the rest of the epoch, since other rows follow."""
        self.left = []

    def _next_epoch(self, n_rows, n_batch, order):
        seed = [*self.entropy, self.epoch]
        self.epoch += 1
        return order(n_rows, n_batch, lambda: np.random.default_rng(seed))

    def next(self, n_rows, n_batch, order):
        """Rows of the next minibatch, ascending unless the order says otherwise."""
        if not len(self.left):
            self.left = self._next_epoch(n_rows, n_batch, order)
        batch, self.left = self.left[0], self.left[1:]
        return batch

    def ahead(self, n, n_rows, n_batch, order):
        """The next ``n`` minibatches, those of later epochs included, (n, ...); for an order that returns an array."""
        parts = [self.left] if len(self.left) else []
        while sum(map(len, parts)) < n:
            parts.append(self._next_epoch(n_rows, n_batch, order))
        batches = np.concatenate(parts)
        self.left = batches[n:]
        return batches[:n]


def whole(n_rows, n_batch, new_rng):
    """Rows drawn at random, in minibatches of equal size; different ones are left out of each epoch."""
    if n_batch >= n_rows:
        return np.arange(n_rows)[None]
    n_blocks = n_rows // n_batch
    return np.sort(new_rng().permutation(n_rows)[: n_blocks * n_batch].reshape(n_blocks, n_batch), axis=1)


def independent(n_rows, n_batch, new_rng):
    """Different rows drawn at random in each minibatch, whichever were read before."""
    if n_batch >= n_rows:
        return np.arange(n_rows)[None]
    rng = new_rng()
    return np.sort([rng.permutation(n_rows)[:n_batch] for _ in range(n_rows // n_batch)], axis=1)


def every_row(n_rows, n_batch, new_rng):
    """Rows drawn at random, each once in an epoch, in minibatches of nearly equal size."""
    if n_batch >= n_rows:
        return [np.arange(n_rows)]
    return [np.sort(rows) for rows in np.array_split(new_rng().permutation(n_rows), -(-n_rows // n_batch))]


def adjacent(n_rows, n_batch, new_rng):
    """Every row once, in blocks of adjacent rows, which are read faster; the blocks come in random order.

    The first row follows the last, and blocks begin anywhere on this circle.
    """
    rng = new_rng()
    circle = (rng.integers(n_rows) + np.arange(n_rows)) % n_rows
    rows = np.array_split(circle, -(-n_rows // n_batch))
    return [rows[b] for b in rng.permutation(len(rows))]


def blocks(n_rows, n_batch, new_rng):
    """Where blocks begin in a shuffled copy of the rows; a block that passes the end goes on at the beginning.

    The order of the blocks, and their offset, are drawn again for each epoch. One call draws those of as many epochs as
    make about a thousand minibatches, so that few generators are made.
    """
    if n_batch >= n_rows:
        return np.zeros(_AHEAD, dtype=np.int64)
    n_blocks = n_rows // n_batch
    n_epochs = -(-_AHEAD // n_blocks)
    rng = new_rng()
    block = rng.permuted(np.tile(np.arange(n_blocks), (n_epochs, 1)), axis=1)
    # The offset runs over the whole circle of rows, so that all rows are equally likely.
    offset = rng.integers(n_rows, size=(n_epochs, 1))
    return ((offset + block * n_batch) % n_rows).ravel()
