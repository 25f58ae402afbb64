"""Topics of a chain with fresh assignments without the noise of their draws: conditional means, averaged over time."""

import numpy as np

_LEAST = 1e-6  # of the scale, at which it is applied, so that float32 holds the numbers


class MeanTopics:
    r"""The conditional mean of lazily updated topics given the shapes that minibatches estimated, and its average.

    A step of length :math:`h` at shapes :math:`\hat a` moves the mean of every cell to
    :math:`e^{-h} m + (1 - e^{-h}) \hat a`, where :math:`\hat a` exceeds the shape between minibatches, the base, in the
    words of the minibatch only. So what :math:`m` has beyond the base is kept as a matrix that a step changes in these
    words, times a number.

    Parameters
    ----------
    beyond : ndarray of shape (n_words, n_topics)
        What the first shapes have beyond the base.
    worth : float
        Steps that these stand for in the average.
    step : int
        Present step of the chain.
    """

    def __init__(self, beyond, worth, step):
        self.beyond, self.scale = np.array(beyond, dtype=np.float32), 1.0
        self.average = self.beyond.copy() if worth > 0 else None
        self.time, self.seen = float(worth), step

    def add(self, rows, counts, forgotten):
        """A step at shapes that have ``counts`` (n_rows, n_topics) beyond the base, and forgets a share."""
        self.scale *= 1.0 - forgotten
        if self.scale < _LEAST:
            self.beyond *= np.float32(self.scale)
            self.scale = 1.0
        self.beyond[rows] += (forgotten / self.scale) * counts

    def look(self, step):
        """Take the present mean into the average, in which weights grow in proportion to time."""
        passed, self.seen = step - self.seen, step
        self.time += passed
        if self.average is None:
            self.average, self.time = self.beyond * np.float32(self.scale), 0.0
        elif passed:
            weight = 2.0 * passed / (self.time + passed)
            self.average *= np.float32(1.0 - weight)
            self.average += np.float32(weight * self.scale) * self.beyond

    def topics(self, base):
        """The average as topics (n_words, n_topics), whose columns sum to 1; ``base`` is the shape of all words."""
        cells = base + (self.scale * self.beyond if self.average is None else self.average)
        return cells / cells.sum(axis=0)

    def present(self, base):
        """The present mean likewise."""
        cells = base + self.scale * self.beyond
        return cells / cells.sum(axis=0)

    def extend(self, n_new):
        """Append words that no minibatch has held."""
        new = np.zeros((n_new, self.beyond.shape[1]), dtype=np.float32)
        self.beyond = np.vstack([self.beyond, new])
        self.average = None if self.average is None else np.vstack([self.average, new])
