"""Coherence, exclusivity and diversity of topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ..utils import check_counts
from ..utils._typing import AnyArray, FloatArray, IntArray, MatrixLike


def top_word_indices(topics: ArrayLike, n_words: int = 10) -> IntArray:
    """Column indices of the most probable words of each topic.

    Parameters
    ----------
    topics : array-like of shape (..., n_components, n_features)
        Word probabilities.
    n_words : int, default=10
        Number of top words; at most n_features are returned.

    Returns
    -------
    indices : ndarray of int64, shape (..., n_components, min(n_words, n_features))
        The most probable word comes first. Words of the same probability are in the order of columns.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import top_word_indices
    >>> top_word_indices([[0.1, 0.6, 0.3], [0.5, 0.5, 0.0]], n_words=2).tolist()
    [[1, 2], [0, 1]]
    """
    topics = np.asarray(topics)
    if n_words < 1:
        raise ValueError(f"n_words must be at least 1, got {n_words}.")
    return np.argsort(-topics, axis=-1, kind="stable")[..., :n_words].astype(np.int64)


def _refuse_estimator(topics):
    """Raise if the topics are an estimator or a matrix of counts, since arguments are easily passed in wrong order."""
    if hasattr(topics, "fit"):
        raise TypeError(f"topics is a {type(topics).__name__}; give its components_.")
    if sparse.issparse(topics):
        raise TypeError("topics is a sparse matrix, as counts are; give topics such as components_ first, then X.")


def _as_top_words(topics, n_words, feature_names=None):
    """Column indices of top words, (..., n_components, n_words), from probabilities, column indices or words."""
    _refuse_estimator(topics)
    topics = np.asarray(topics)
    if topics.ndim < 2:
        raise ValueError(f"topics must have at least the axes (n_components, n_features), got shape {topics.shape}.")
    if topics.dtype.kind in "US" or topics.dtype == object:
        if feature_names is None:
            raise ValueError("topics are given as words, so feature_names=<names of the columns of X> is needed.")
        place = {name: j for j, name in enumerate(feature_names)}
        unknown = sorted({word for word in topics.ravel() if word not in place})
        if unknown:
            raise ValueError(f"these words are not among feature_names: {unknown[:5]}; leave them out of the topics.")
        topics = np.array([place[word] for word in topics.ravel()], dtype=np.int64).reshape(topics.shape)
        return topics[..., :n_words]
    if topics.dtype.kind in "iu":
        return topics[..., :n_words].astype(np.int64)
    if np.isnan(topics).any():
        raise ValueError("topics contains NaN.")
    return top_word_indices(topics, n_words)


def coherence(
    topics: ArrayLike,
    X: MatrixLike,
    measure: Literal["npmi", "umass"] = "npmi",
    n_words: int = 10,
    *,
    feature_names: Sequence[str] | AnyArray | None = None,
) -> FloatArray:
    r"""Topic coherence (NPMI or UMass) of each topic's top words.

    It is high if the top words of a topic occur in the same documents. Let :math:`D(w)` be the number of documents that
    contain w, :math:`D(v, w)` the number that contain v and w, and :math:`p = D(\cdot) / D`. The coherence is the mean
    over all pairs of a topic's top words of

    .. math:: \mathrm{NPMI}(v, w) = \frac{\log \frac{p(v, w)}{p(v)\, p(w)}}{-\log p(v, w)}, \qquad
              \mathrm{UMass}(v, w) = \log \frac{D(v, w) + 1}{D(v)},

    where v is the higher-ranked word of the pair.

    Parameters
    ----------
    topics : array-like of shape (..., n_components, n_features) or (..., n_components, n_top)
        Floats are word probabilities, of which the ``n_words`` largest are taken. Integers are columns of X, and
        strings are words, the top word first. Leading axes may be chains and draws.
    X : array-like or sparse of shape (n_samples, n_features)
        Reference documents. Only whether an entry is positive matters.
    measure : {"npmi", "umass"}, default="npmi"
        Measure of coherence.
    n_words : int, default=10
        Number of top words, at least 2.
    feature_names : sequence of str, default=None
        Names of the columns of X. Required if topics are words.

    Returns
    -------
    coherence : ndarray of shape (..., n_components)
        Coherence of each topic. NPMI lies in [-1, 1]. It is never NaN, see Notes.

    Notes
    -----
    A pair of words that never occur together, even if one of them never occurs, has NPMI -1, its limit. A pair of words
    that occur in every document has NPMI 0, because such words carry no information. For UMass, a denominator D(v) = 0
    is set to 1. UMass is then log 1 = 0, since D(v, w) is 0 as well.

    References
    ----------
    G. Bouma (2009), Normalized (pointwise) mutual information in collocation extraction, GSCL. J. Lau, D. Newman and
    T. Baldwin (2014), Machine reading tea leaves, EACL, section 3. D. Mimno et al. (2011), Optimizing semantic
    coherence in topic models, EMNLP, equation 1 (a sum there, a mean here, so that n_words does not set the scale).

    Examples
    --------
    >>> from sk_sgmcmc.metrics import coherence
    >>> X = [[1, 1, 0], [2, 1, 0], [0, 0, 1], [0, 0, 1]]
    >>> coherence([[0, 1], [0, 2]], X).tolist()
    [1.0, -1.0]
    """
    if measure not in ("npmi", "umass"):
        raise ValueError(f'measure must be "npmi" or "umass", got {measure!r}.')
    X = check_counts(X, whom="coherence")
    top = _as_top_words(topics, n_words, feature_names)
    given = np.shape(topics)[-1]
    if top.shape[-1] < 2:
        raise ValueError(f"coherence needs at least 2 top words for each topic, got {top.shape[-1]}; set n_words=10.")
    if np.asarray(topics).dtype.kind == "f" and given != X.shape[1]:
        raise ValueError(f"topics has {given} columns and X has {X.shape[1]}; both need the same vocabulary.")
    if top.min() < 0 or top.max() >= X.shape[1]:
        raise ValueError(f"top words must be columns 0 to {X.shape[1] - 1} of X, got {top.min()} to {top.max()}.")
    n_docs = X.shape[0]
    used, inverse = np.unique(top, return_inverse=True)
    inverse = inverse.reshape(top.shape)
    present = X[:, used].tocsc()
    present.data = np.ones_like(present.data)
    alone = np.diff(present.indptr).astype(np.float64)
    together = np.asarray((present.T @ present).todense(), dtype=np.float64)
    first, second = np.triu_indices(top.shape[-1], k=1)
    v, w = inverse[..., first], inverse[..., second]
    joint, n_v, n_w = together[v, w], alone[v], alone[w]
    if measure == "umass":
        return np.log((joint + 1.0) / np.maximum(n_v, 1.0)).mean(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        npmi = np.log(joint * n_docs / (n_v * n_w)) / -np.log(joint / n_docs)
    npmi = np.where(joint == 0, -1.0, np.where(joint == n_docs, 0.0, npmi))
    return np.clip(npmi, -1.0, 1.0).mean(axis=-1)


def exclusivity(topics: ArrayLike, n_words: int = 10) -> FloatArray:
    r"""Exclusivity of each topic's top words.

    It is the mean of :math:`\phi_{kw} / \sum_j \phi_{jw}` over the top words w of topic k. It is high if other topics
    give these words low probabilities.

    Parameters
    ----------
    topics : array-like of shape (..., n_components, n_features)
        Word probabilities.
    n_words : int, default=10
        Number of top words.

    Returns
    -------
    exclusivity : ndarray of shape (..., n_components)
        Exclusivity of each topic: 1 if other topics give its top words probability 0, and 1 / n_components if all
        topics are the same.

    References
    ----------
    J. Bischof and E. Airoldi (2012), Summarizing topical content with word frequency and exclusivity, ICML, section 2.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import exclusivity
    >>> exclusivity([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]], n_words=2).tolist()
    [0.75, 0.75]
    """
    _refuse_estimator(topics)
    topics = np.asarray(topics)
    if topics.dtype.kind != "f":
        raise ValueError(f"topics must be word probabilities, of a float dtype, got {topics.dtype}; give components_.")
    topics = topics.astype(np.float64, copy=False)
    if topics.ndim < 2 or topics.min(initial=0.0) < 0 or not np.all(np.isfinite(topics)):
        raise ValueError(
            f"topics must be word probabilities of shape (..., n_components, n_features), got shape {topics.shape}."
        )
    total = topics.sum(axis=-2, keepdims=True)
    share = np.divide(topics, total, out=np.zeros_like(topics), where=total > 0)
    return np.take_along_axis(share, top_word_indices(topics, n_words), axis=-1).mean(axis=-1)


def topic_diversity(topics: ArrayLike, n_words: int = 25) -> float | FloatArray:
    r"""Share of distinct words among the top words of all topics, :math:`|\cup_k T_k| / \sum_k |T_k|`.

    Parameters
    ----------
    topics : array-like of shape (..., n_components, n_features)
        Topics as for `coherence`; strings need no feature names here.
    n_words : int, default=25
        Number of top words of each topic.

    Returns
    -------
    diversity : float, or ndarray of the leading shape
        1 if no two topics share a top word, and 1 / n_components if all topics have the same top words.

    References
    ----------
    A. Dieng, F. Ruiz and D. Blei (2020), Topic modeling in embedding spaces, TACL 8, section 6.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import topic_diversity
    >>> topic_diversity([[0.1, 0.6, 0.3], [0.5, 0.5, 0.0]], n_words=2)
    0.75
    """
    _refuse_estimator(topics)
    topics = np.asarray(topics)
    if topics.dtype.kind in "US" or topics.dtype == object:
        topics = np.unique(topics, return_inverse=True)[1].reshape(topics.shape)
    top = _as_top_words(topics, n_words)
    words = np.sort(top.reshape(*top.shape[:-2], -1), axis=-1)
    distinct = 1 + (words[..., 1:] != words[..., :-1]).sum(axis=-1)
    diversity = distinct / words.shape[-1]
    return float(diversity) if diversity.ndim == 0 else diversity
