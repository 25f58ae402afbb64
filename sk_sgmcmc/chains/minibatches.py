"""Which rows a minibatch holds."""

import numpy as np


class Minibatches:
    """Rows in random order, cut into minibatches that are read in ascending order; its length is how many are left."""

    def __init__(self):
        self.left = []

    def __len__(self):
        return len(self.left)

    def forget(self):
        """Drop those planned for the rest of an epoch, as other rows follow."""
        self.left = []

    def next(self, n_rows, n_batch, rng, *, leaves_none):
        """Rows of the next minibatch, (n_batch,).

        Parameters
        ----------
        n_rows, n_batch : int
        rng : Generator
            Used once per epoch.
        leaves_none : bool
            Whether an epoch reads every row, in minibatches of nearly equal size, as a stream must; otherwise it omits
            the rows that do not fill a minibatch, different ones in each epoch.
        """
        if n_batch >= n_rows:
            return np.arange(n_rows)
        if not self.left:
            n_blocks, order = n_rows // n_batch, rng.permutation(n_rows)
            if leaves_none:
                n_blocks = -(-n_rows // n_batch)
            else:
                order = order[: n_blocks * n_batch]
            self.left = [np.sort(block) for block in np.array_split(order, n_blocks)]
        batch, self.left = self.left[0], self.left[1:]
        return batch
