"""Agreement of several chains: the reference chain, and which of its components the other chains also found.

Chains that found different modes of the posterior must not be averaged: their mean is a component, such as a topic or a
class, that none of them found. Results therefore come from the reference chain, and intervals are over the draws of all
chains that agree with it.
"""

from dataclasses import dataclass

import numpy as np

from ..utils._numbers import interval_ends


@dataclass(frozen=True, eq=False)
class Agreement:
    """Distances between the components of each chain and of the reference chain.

    Parameters
    ----------
    reference : int
        The chain that supplies all results.
    distances : ndarray of shape (n_chains, n_components)
        Distances between the mean components of each chain and of the reference chain.
    agree : ndarray of bool, shape (n_chains, n_components)
        Whether the two are versions of one component.
    """

    reference: int
    distances: np.ndarray
    agree: np.ndarray

    @classmethod
    def of_one_chain(cls, n_components):
        """The agreement of a single chain with itself."""
        return cls(0, np.zeros((1, n_components)), np.ones((1, n_components), dtype=bool))

    def renumbered(self, order):
        """The agreement with components in another order."""
        return Agreement(self.reference, self.distances[:, order], self.agree[:, order])

    def merged(self, new):
        """The agreement after a merger into components ``new``: a new one has the largest distance of its group.

        Chains agree on a new component if they agree on all components of its group.
        """
        distances = np.zeros((len(self.distances), new.max() + 1))
        np.maximum.at(distances.T, new, self.distances.T)
        disagree = np.zeros(distances.shape, dtype=bool)
        np.logical_or.at(disagree.T, new, ~self.agree.T)
        return Agreement(self.reference, distances, ~disagree)

    def draws_of(self, values, k):
        """Draws of component ``k`` from the chains that agree on it, (n, ...).

        ``values`` are the draws of all chains, (n_chains, n_kept, n_components, ...).
        """
        return values[:, :, k][self.agree[:, k]].reshape(-1, *values.shape[3:])

    def summary(self, values, tails):
        """Interval ends and shares of draws above 0, over the chains that agree.

        Returns
        -------
        ends : ndarray of shape (2, n_components, ...)
        positive : ndarray of shape (n_components, ...)
        """
        draws = [self.draws_of(values, k) for k in range(values.shape[2])]
        ends = np.stack([interval_ends(each, tails) for each in draws], axis=1)
        return ends, np.stack([(each > 0).mean(axis=0) for each in draws])
