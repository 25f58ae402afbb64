"""One order of the classes over all draws and chains, and the chains that found the same classes."""

import numpy as np
from scipy.special import logsumexp

from ...metrics import align_draws, align_topics, hellinger_distances

_ROWS = 400  # largest number of rows by whose classes draws are compared
# Two chains found the same class if the distributions of its rows are closer than this Hellinger distance.
ALIKE = 0.35
_LEAST_SHARE = 0.01  # smaller classes are not compared


def responsibilities(log_weight):
    """Probability of each class given the row, from logs of weight times density."""
    return np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))


def rows_of_classes(proba):
    """The distribution over rows of each class (n_classes, n_rows), from the classes of rows (n_rows, n_classes)."""
    held = proba.T + 1e-12
    return held / held.sum(axis=1, keepdims=True)


def compared_rows(n):
    """Indices of the rows by which classes are compared."""
    return np.unique(np.linspace(0, n - 1, min(n, _ROWS)).round().astype(int))


def align_chains(rows, weights, scores):
    """Order of the classes in all draws, and whether each chain found the classes of the best chain.

    Draws are aligned within each chain, then chains are matched as a whole to the best one, so that no draw is matched
    to a mixture of modes. The largest class of the best chain is the first.

    Parameters
    ----------
    rows : ndarray of shape (n_chains, n_kept, n_classes, n_rows)
        Distributions over rows, as from `rows_of_classes`.
    weights : ndarray of shape (n_chains, n_kept, n_classes)
        Shares of the classes.
    scores : ndarray of shape (n_chains,)
        Mean log posterior of each chain.

    Returns
    -------
    order : ndarray of int64, shape (n_chains, n_kept, n_classes)
    agree : ndarray of bool, shape (n_chains,)
    distances : ndarray of shape (n_chains, n_classes)
        Hellinger distance between each class and that of the best chain.
    """
    n_chains, best = len(rows), int(np.argmax(scores))
    order = np.stack([align_draws(chain[None])[0] for chain in rows])
    means = np.stack([np.take_along_axis(chain, own[..., None], axis=1).mean(axis=0) for chain, own in zip(
        rows, order, strict=True)])  # fmt: skip
    shares = np.stack([np.take_along_axis(each, own, axis=1).mean(axis=0) for each, own in zip(
        weights, order, strict=True)])  # fmt: skip
    first = np.argsort(-shares[best], kind="stable")
    target, share = means[best][first], shares[best][first]
    distances = np.zeros((n_chains, len(first)))
    for c in range(n_chains):
        places = first if c == best else align_topics(target, means[c])
        order[c] = order[c][:, places]
        distances[c] = np.diag(hellinger_distances(target, means[c][places]))
    compared = share >= _LEAST_SHARE
    agree = np.all(distances[:, compared] <= ALIKE, axis=1)
    agree[best] = True
    return order, agree, distances
