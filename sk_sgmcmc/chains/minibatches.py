"""The choice of rows of minibatches.

An *order* is a function of (n_rows, n_batch, new_rng) that returns the minibatches of one epoch, as a sequence.
``new_rng()`` makes the generator of the epoch; orders that need no random numbers do not call it, since a new generator
takes as long as several small steps.
"""

import numpy as np

_AHEAD = 1024  # minibatches whose order one call of `blocks` draws


class Minibatches:
    """The sequence of minibatches of a chain, with a new order in each epoch.

    Each epoch has a random generator of its own, so that drawing minibatches in advance does not change the draws of
    the chain. The length is the number of minibatches left in the epoch.

    Parameters
    ----------
    seed : SeedSequence
        Seed of the chain.
    """

    def __init__(self, seed):
        self.entropy = seed.generate_state(2, np.uint64).tolist()
        self.epoch = 0
        self.left = []

    def __len__(self):
        return len(self.left)

    def forget(self):
        """Drop the rest of the epoch, because the rows have changed."""
        self.left = []

    def _next_epoch(self, n_rows, n_batch, order):
        seed = [*self.entropy, self.epoch]
        self.epoch += 1
        return order(n_rows, n_batch, lambda: np.random.default_rng(seed))

    def next(self, n_rows, n_batch, order):
        """The next minibatch, an item of what ``order`` returns: usually row numbers in ascending order."""
        if not len(self.left):
            self.left = self._next_epoch(n_rows, n_batch, order)
        batch, self.left = self.left[0], self.left[1:]
        return batch

    def ahead(self, n, n_rows, n_batch, order):
        """The next ``n`` minibatches, an array (n, ...), also across epochs; for orders that return an array."""
        parts = [self.left] if len(self.left) else []
        while sum(map(len, parts)) < n:
            parts.append(self._next_epoch(n_rows, n_batch, order))
        batches = np.concatenate(parts)
        self.left = batches[n:]
        return batches[:n]


def whole(n_rows, n_batch, new_rng):
    """Rows in random order, in minibatches of equal size; each epoch leaves out a different random remainder."""
    if n_batch >= n_rows:
        return np.arange(n_rows)[None]
    n_blocks = n_rows // n_batch
    return np.sort(new_rng().permutation(n_rows)[: n_blocks * n_batch].reshape(n_blocks, n_batch), axis=1)


def independent(n_rows, n_batch, new_rng):
    """Rows drawn at random without replacement within a minibatch, independently between minibatches."""
    if n_batch >= n_rows:
        return np.arange(n_rows)[None]
    rng = new_rng()
    return np.sort([rng.permutation(n_rows)[:n_batch] for _ in range(n_rows // n_batch)], axis=1)


def every_row(n_rows, n_batch, new_rng):
    """Rows in random order, each once in an epoch, in minibatches of nearly equal size."""
    if n_batch >= n_rows:
        return [np.arange(n_rows)]
    return [np.sort(rows) for rows in np.array_split(new_rng().permutation(n_rows), -(-n_rows // n_batch))]


def adjacent(n_rows, n_batch, new_rng):
    """Every row once in an epoch, in minibatches of adjacent rows, which are read faster; these come in random order.

    The first row counts as the successor of the last, and the minibatches begin at a random place on this circle.
    """
    rng = new_rng()
    circle = (rng.integers(n_rows) + np.arange(n_rows)) % n_rows
    rows = np.array_split(circle, -(-n_rows // n_batch))
    return [rows[b] for b in rng.permutation(len(rows))]


def blocks(n_rows, n_batch, new_rng, there_and_back=False):
    """First rows of minibatches of adjacent rows, in a shuffled copy of the data that is read as a circle.

    Each epoch draws a new order and a new offset of the minibatches. One call returns about a thousand minibatches, of
    one or several epochs, so that few generators are made. With ``there_and_back``, another epoch follows each of these
    epochs, with the same minibatches in reverse order.
    """
    if n_batch >= n_rows:
        return np.zeros(_AHEAD, dtype=np.int64)
    n_blocks = n_rows // n_batch
    n_drawn = -(-_AHEAD // (n_blocks * (1 + there_and_back)))
    rng = new_rng()
    block = rng.permuted(np.tile(np.arange(n_blocks), (n_drawn, 1)), axis=1)
    # The offset is uniform on the whole circle of rows, so that all rows are equally likely.
    offset = rng.integers(n_rows, size=(n_drawn, 1))
    starts = (offset + block * n_batch) % n_rows
    return np.concatenate([starts, starts[:, ::-1]], axis=1).ravel() if there_and_back else starts.ravel()


def palindromic_blocks(n_rows, n_batch, new_rng):
    """`blocks`, with another epoch after each epoch, which reads the same minibatches in reverse order."""
    return blocks(n_rows, n_batch, new_rng, there_and_back=True)


BATCH_ORDERS = {"shuffled": blocks, "palindromic": palindromic_blocks}  # values of ``batch_order``


def refuse_palindrome(batch_order, with_replacement):
    """Raise if minibatches that are drawn with replacement, which have no order, should be read in one."""
    if batch_order == "palindromic" and with_replacement:
        raise ValueError(
            'batch_order="palindromic" must not be combined with with_replacement=True, which "auto" also means for '
            "samplers that use the variance of the noise: minibatches that are drawn row by row have no order. Set "
            "with_replacement=False, or remove batch_order."
        )
