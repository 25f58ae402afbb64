"""Alignment of topics between draws, and stability of topics."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from ..utils._typing import FloatArray, IntArray


def hellinger_distances(p: ArrayLike, q: ArrayLike) -> FloatArray:
    r"""Hellinger distances :math:`\sqrt{1 - \sum_w \sqrt{p_w q_w}}` between the rows of two matrices.

    Parameters
    ----------
    p : array-like of shape (n_rows, n_features)
        Distributions, whose rows sum to 1.
    q : array-like of shape (n_columns, n_features)
        Distributions, whose rows sum to 1.

    Returns
    -------
    distances : ndarray of shape (n_rows, n_columns)
        Distances between 0 and 1.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import hellinger_distances
    >>> hellinger_distances(
    ...     [[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    ... ).round(2).tolist()
    [[0.0, 1.0, 0.54]]
    """
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    return np.sqrt(np.clip(1.0 - np.sqrt(p) @ np.sqrt(q).T, 0.0, None))


def align_topics(
    reference: ArrayLike,
    topics: ArrayLike,
    *,
    metric: Literal["hellinger", "cosine"] = "hellinger",
    groups: ArrayLike | None = None,
) -> IntArray:
    """Match topics one to one to reference topics so that the sum of distances is smallest.

    Parameters
    ----------
    reference : array-like of shape (n_reference, n_features)
        Reference topics, whose rows sum to 1, or are unit vectors.
    topics : array-like of shape (n_components, n_features), n_components >= n_reference
        Topics to match.
    metric : {"hellinger", "cosine"}, default="hellinger"
        Distance: "hellinger" for distributions (`hellinger_distances`), "cosine" (minus the inner product) for unit
        vectors.
    groups : array-like of shape (n_components,), default=None
        Group of each topic. Only topics of the same group are interchanged, and there must be as many topics as
        references. None: a single group.

    Returns
    -------
    order : ndarray of int64, shape (n_reference,)
        Row i of ``topics[order]`` is the topic that matches row i of ``reference``.

    Notes
    -----
    The assignment is solved exactly (`scipy.optimize.linear_sum_assignment`).

    Examples
    --------
    >>> from sk_sgmcmc.metrics import align_topics
    >>> align_topics(
    ...     [[0.9, 0.1], [0.2, 0.8]], [[0.1, 0.9], [0.7, 0.3]]
    ... ).tolist()
    [1, 0]
    """
    reference, topics = np.asarray(reference), np.asarray(topics)
    if reference.ndim != 2 or topics.ndim != 2 or reference.shape[1] != topics.shape[1]:
        raise ValueError(
            f"reference has shape {reference.shape} and topics {topics.shape}; both must be matrices with "
            "the same number of columns."
        )
    if topics.shape[0] < reference.shape[0]:
        raise ValueError(
            f"{reference.shape[0]} reference topics cannot be matched one to one with {topics.shape[0]} topics; "
            "exchange the two arguments."
        )
    _refuse_metric(metric)
    if groups is not None and np.unique(groups).size > 1:
        if np.shape(groups) != (len(topics),) or len(reference) != len(topics):
            raise ValueError(
                f"groups has shape {np.shape(groups)}; it must hold one value for each of {len(topics)} topics, with "
                f"as many reference topics, not {len(reference)}."
            )
        order = np.arange(len(topics), dtype=np.int64)
        for value in np.unique(groups):
            same = np.flatnonzero(np.equal(groups, value))
            if same.size > 1:
                order[same] = same[align_topics(reference[same], topics[same], metric=metric)]
        return order
    return _matched(_vectors_of(reference, metric), _vectors_of(topics, metric), metric)


def _refuse_metric(metric):
    if metric not in ("hellinger", "cosine"):
        raise ValueError(f'metric={metric!r} must be "hellinger" or "cosine".')


def _vectors_of(topics, metric):
    """Unit vectors of topics, whose inner products give the distances."""
    return np.sqrt(topics) if metric == "hellinger" else topics


def _matched(reference, topics, metric):
    """Order in which the unit vectors ``topics`` match the unit vectors ``reference``."""
    inner = reference @ topics.T
    distances = np.sqrt(np.clip(1.0 - inner, 0.0, None)) if metric == "hellinger" else -inner
    return linear_sum_assignment(distances)[1].astype(np.int64)


def align_draws(
    draws: ArrayLike,
    n_rounds: int = 2,
    *,
    metric: Literal["hellinger", "cosine"] = "hellinger",
    groups: ArrayLike | None = None,
) -> IntArray:
    """Align the topics of all draws of all chains, without a given reference.

    All draws are matched to the last draw of the first chain, and then ``n_rounds - 1`` times to the mean of the
    aligned draws.

    Parameters
    ----------
    draws : array-like of shape (..., n_components, n_features)
        Leading axes are usually (n_chains, n_draws). Rows sum to 1, or are unit vectors.
    n_rounds : int, default=2
        Largest number of rounds of matching, at least 1. Rounds end early when the order no longer changes.
    metric : {"hellinger", "cosine"}, default="hellinger"
        Distance as for `align_topics`.
    groups : array-like of shape (n_components,), default=None
        Group of each topic. Only topics of the same group are interchanged; use it for topics with a prior of their
        own. None: a single group.

    Returns
    -------
    order : ndarray of int64, shape (..., n_components)
        ``numpy.take_along_axis(draws, order[..., None], axis=-2)`` are the aligned draws.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc.metrics import align_draws
    >>> first = [[0.9, 0.1], [0.2, 0.8]]
    >>> second = [[0.3, 0.7], [0.8, 0.2]]  # the same topics, numbered otherwise
    >>> align_draws([first, second]).tolist()
    [[0, 1], [1, 0]]
    """
    draws = np.asarray(draws)
    if draws.ndim < 3 or 0 in draws.shape:
        raise ValueError(f"draws must have the shape (..., n_components, n_features), got {draws.shape}.")
    if n_rounds < 1:
        raise ValueError(f"n_rounds must be at least 1, got {n_rounds}.")
    _refuse_metric(metric)
    *leading, n_topics, n_words = draws.shape
    if groups is not None and np.unique(groups).size > 1:
        order = np.tile(np.arange(n_topics, dtype=np.int64), (*leading, 1))
        for value in np.unique(groups):
            same = np.flatnonzero(np.equal(groups, value))
            if same.size > 1:
                order[..., same] = same[align_draws(draws[..., same, :], n_rounds, metric=metric)]
        return order
    flat = draws.reshape(-1, n_topics, n_words)
    first_chain = int(np.prod(leading[1:]))  # number of draws in the first chain
    reference = flat[first_chain - 1]
    order = None
    for _ in range(n_rounds):
        vectors = _vectors_of(reference.astype(flat.dtype, copy=False), metric)
        new = np.array([_matched(vectors, _vectors_of(draw, metric), metric) for draw in flat])
        if order is not None and np.array_equal(new, order):
            break
        order = new
        reference = np.zeros((n_topics, n_words))
        for draw, places in zip(flat, order, strict=True):
            reference += draw[places]
        reference /= len(flat)
    return order.reshape(*leading, n_topics)


def topic_stability(
    draws: ArrayLike, *, aligned: bool = False, metric: Literal["hellinger", "cosine"] = "hellinger"
) -> FloatArray:
    r"""Similarity of each topic over all draws, between 0 and 1.

    .. math:: \mathrm{stability}_k = 1 - \frac1S \sum_s H(\phi^{(s)}_k, \bar\phi_k),

    where H is the Hellinger distance and :math:`\bar\phi_k` the mean over draws. The stability is 1 if the topic is the
    same in all draws. It is low if chains found different topics, since their mean then resembles none of them.

    Parameters
    ----------
    draws : array-like of shape (..., n_components, n_features)
        Draws of topics, whose rows sum to 1, or are unit vectors.
    aligned : bool, default=False
        Whether the topics already have the same order in all draws. False: align them with `align_draws` first.
    metric : {"hellinger", "cosine"}, default="hellinger"
        Distance: "hellinger" for distributions; "cosine" for unit vectors, whose distance from their mean direction is
        :math:`\sqrt{1 - \cos}`.

    Returns
    -------
    stability : ndarray of shape (n_components,)
        Stability of the topics, in the order of the aligned draws.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import topic_stability
    >>> draws = [
    ...     [[0.9, 0.1], [0.2, 0.8]],
    ...     [[0.9, 0.1], [0.6, 0.4]],
    ... ]  # the first topic stays, the second moves
    >>> topic_stability(draws).round(2).tolist()
    [1.0, 0.85]
    """
    draws = np.asarray(draws)
    if draws.ndim < 3 or 0 in draws.shape:
        raise ValueError(f"draws must have the shape (..., n_components, n_features), got {draws.shape}.")
    flat = draws.reshape(-1, *draws.shape[-2:])
    order = None if aligned else align_draws(draws, metric=metric).reshape(flat.shape[:2])
    ordered = (draw if order is None else draw[order[s]] for s, draw in enumerate(flat))
    mean = np.zeros(flat.shape[1:])
    for draw in ordered:
        mean += draw
    mean /= len(flat)
    if metric == "hellinger":
        root, as_unit = np.sqrt(mean), np.sqrt
    elif metric == "cosine":
        root, as_unit = mean / np.linalg.norm(mean, axis=1, keepdims=True), np.asarray
    else:
        raise ValueError(f'metric={metric!r} must be "hellinger" or "cosine".')
    total = np.zeros(flat.shape[1])
    for s, draw in enumerate(flat):
        draw = np.asarray(draw if order is None else draw[order[s]], dtype=np.float64)
        total += np.sqrt(np.clip(1.0 - (as_unit(draw) * root).sum(axis=1), 0.0, None))
    return 1.0 - total / len(flat)
