"""The state of the prior of words that differ between groups, and what it says of words given counts."""

from typing import NamedTuple

import numpy as np

GRID = np.array([1.0, 3.0, 10.0, 30.0, 150.0, 2000.0])  # Concentrations; with the last, groups hardly differ.


class SpreadState(NamedTuple):
    """The prior of words in all groups; see the kernels `group_words`.

    Parameters
    ----------
    which : ndarray of uint8, shape (n_words, n_topics)
        Index of the concentration of each word in each topic.
    log_mean : ndarray of shape (n_words, n_topics)
        Logarithms of the means m.
    pull : ndarray of shape (n_groups, n_topics)
        Auxiliary variables u; 0 for topics without tokens in the group.
    """

    which: np.ndarray
    log_mean: np.ndarray
    pull: np.ndarray

    @property
    def n_groups(self):
        """Number of groups of documents."""
        return len(self.pull)

    def extended(self, n_words):
        """The state with further words, which have the smallest mean of their topic."""
        n_more = n_words - len(self.which)
        if n_more == 0:
            return self
        which = np.vstack([self.which, np.full((n_more, self.which.shape[1]), self.which.max(), dtype=np.uint8)])
        least = np.tile(self.log_mean.min(axis=0), (n_more, 1))
        return self._replace(which=which, log_mean=np.vstack([self.log_mean, least]))

    def _shapes_and_rates(self, counts):
        """Parameters of the gamma variables y given counts of forms; both (n_words, n_groups, n_topics)."""
        n_groups, n_topics = self.pull.shape
        kappa = GRID[self.which]
        shapes = counts.reshape(-1, n_groups, n_topics) + kappa[:, None]
        log_mean = np.maximum(self.log_mean.astype(np.float64), -650.0)
        return shapes, (kappa / np.exp(log_mean))[:, None] + self.pull

    def mean(self, counts):
        """Means of the words of topics given counts, of forms, (n_forms, n_topics), with sums of 1 over each group.

        They are ratios of means, which are close to the means of the ratios.
        """
        y, rates = self._shapes_and_rates(counts)
        y /= rates
        y /= y.sum(axis=0)
        return y.reshape(counts.shape)

    def drawn(self, counts, rng):
        """Draw the words of topics given counts, in the same form."""
        return self.drawn_with_sums(counts, rng)[0]

    def drawn_with_sums(self, counts, rng):
        """The same, and sums of the drawn y over words, (n_groups, n_topics)."""
        shapes, rates = self._shapes_and_rates(counts)
        y = rng.standard_gamma(shapes)
        y /= rates
        sums = y.sum(axis=0)
        y /= sums
        return y.reshape(counts.shape), sums
