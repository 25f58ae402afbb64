"""Distances between partitions, and point estimates of partitions."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..utils._typing import FloatArray, IntArray


def _xlogx(x):
    return x * np.log(np.maximum(x, 1e-300))


_LOSSES = {"vi": _xlogx, "binder": np.square}


def _contingency(a, b, n_a, n_b):
    return np.bincount(a * n_b + b, minlength=n_a * n_b).reshape(n_a, n_b).astype(np.float64)


def _checked(labels, ndim):
    labels = np.asarray(labels)
    if labels.ndim != ndim or labels.shape[-1] == 0:
        wanted = "(n_samples,)" if ndim == 1 else "(n_draws, n_samples)"
        raise ValueError(f"labels have shape {labels.shape}; it must be {wanted} with at least one sample.")
    return labels


def _checked_loss(loss):
    if loss not in _LOSSES:
        raise ValueError(f"loss={loss!r} must be one of {', '.join(sorted(_LOSSES))}.")
    return _LOSSES[loss]


def partition_distance(a: ArrayLike, b: ArrayLike, loss: Literal["vi", "binder"] = "vi") -> float:
    r"""Distance between two partitions of the same samples.

    Parameters
    ----------
    a, b : array-like of shape (n_samples,)
        Labels of the samples. Only which samples share a label matters.
    loss : {"vi", "binder"}, default="vi"
        Variation of information :math:`H(a) + H(b) - 2 I(a, b)` in nats, or Binder's loss: the share of ordered pairs
        of samples, pairs of a sample with itself included, that share a label in exactly one of the partitions.

    Returns
    -------
    distance : float
        Distance, which is 0 for equal partitions.

    References
    ----------
    Meila (2007), Comparing clusterings: an information based distance, Journal of Multivariate Analysis 98.
    Binder (1978), Bayesian cluster analysis, Biometrika 65.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import partition_distance
    >>> partition_distance([0, 0, 1, 1], [1, 1, 0, 2], loss="binder")
    0.125
    """
    f = _checked_loss(loss)
    a, b = (np.unique(_checked(labels, 1), return_inverse=True)[1] for labels in (a, b))
    if a.size != b.size:
        raise ValueError(f"partitions of {a.size} and of {b.size} samples cannot be compared.")
    table = _contingency(a, b, a.max() + 1, b.max() + 1) / a.size
    distance = f(table.sum(axis=1)).sum() + f(table.sum(axis=0)).sum() - 2 * f(table).sum()
    return float(max(distance, 0.0))


def co_clustering(labels: ArrayLike) -> FloatArray:
    """Share of draws in which each pair of samples is in the same cluster.

    Parameters
    ----------
    labels : array-like of shape (n_draws, n_samples)
        Labels of each draw. Labels of different draws need not correspond.

    Returns
    -------
    together : ndarray of shape (n_samples, n_samples)
        Symmetric matrix with ones on the diagonal.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import co_clustering
    >>> co_clustering([[0, 0, 1], [0, 1, 1]])[0].tolist()
    [1.0, 0.5, 0.0]
    """
    labels = _checked(labels, 2)
    together = np.zeros((labels.shape[1], labels.shape[1]))
    for draw in labels:
        together += draw[:, None] == draw
    return together / len(labels)


def point_partition(
    labels: ArrayLike, loss: Literal["vi", "binder"] = "vi", *, n_candidates: int = 50
) -> tuple[IntArray, float]:
    r"""Point estimate of a partition, with a small mean distance from draws of partitions.

    Parameters
    ----------
    labels : array-like of shape (n_draws, n_samples)
        Labels of each draw. Labels of different draws need not correspond.
    loss : {"vi", "binder"}, default="vi"
        Distance, see `partition_distance`. "vi" gives fewer small clusters.
    n_candidates : int, default=50
        Number of draws, evenly spaced, to try as the partition.

    Returns
    -------
    partition : ndarray of int64, shape (n_samples,)
        Labels 0, 1, ... from the largest cluster to the smallest.
    expected : float
        Mean distance of the partition from the draws.

    Notes
    -----
    The search starts from the candidate with the smallest mean distance. It then merges pairs of clusters, the best
    pair first, as long as this lowers the mean distance.

    References
    ----------
    Wade and Ghahramani (2018), Bayesian cluster analysis: point estimation and credible balls, Bayesian Analysis 13.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import point_partition
    >>> partition, expected = point_partition(
    ...     [[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1]]
    ... )
    >>> partition.tolist()
    [0, 0, 1, 1]
    """
    f = _checked_loss(loss)
    labels = _checked(labels, 2)
    draws = [np.unique(draw, return_inverse=True)[1] for draw in labels]
    sizes = [draw.max() + 1 for draw in draws]
    n = labels.shape[1]

    def tables(candidate, k):
        return [_contingency(candidate, draw, k, s) / n for draw, s in zip(draws, sizes, strict=True)]

    own = np.mean([f(np.bincount(draw) / n).sum() for draw in draws])

    def expected(candidate, k):
        return (
            f(np.bincount(candidate, minlength=k) / n).sum()
            + own
            - 2 * np.mean([f(table).sum() for table in tables(candidate, k)])
        )

    tried = np.unique(np.linspace(0, len(draws) - 1, n_candidates).round().astype(int))
    best = min(tried, key=lambda s: expected(draws[s], sizes[s]))
    partition, k = draws[best].copy(), sizes[best]
    while k > 1:
        # A merge changes the size of a cluster, and its overlaps with each draw's clusters.
        share = np.bincount(partition, minlength=k) / n
        change = f(share[:, None] + share) - f(share)[:, None] - f(share)
        for table in tables(partition, k):
            each = f(table).sum(axis=1)
            joint = f(table[:, None, :] + table[None]).sum(axis=2)
            change -= 2 * (joint - each[:, None] - each) / len(draws)
        change[np.tril_indices(k)] = np.inf
        a, b = np.unravel_index(np.argmin(change), change.shape)
        if not change[a, b] < -1e-12:
            break
        partition[partition == b] = a
        partition[partition > b] -= 1
        k -= 1
    order = np.argsort(-np.bincount(partition, minlength=k), kind="stable")
    rank = np.empty(k, dtype=np.int64)
    rank[order] = np.arange(k)
    return rank[partition], float(max(expected(partition, k), 0.0))
