"""Draws and topics in the forms that other packages read."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..topic._counts.model import CountTopicModel

# Names of the axes of draws; others get ArviZ's own names.
_DIMS = {"components": ["topic", "word"], "doc_topic_prior": ["topic"], "weights": ["topic"]}


def _names(estimator, feature_names):
    n_features = estimator.samples_["components"].shape[-1]
    if feature_names is None and isinstance(estimator, CountTopicModel):  # columns of metadata are not words
        feature_names = estimator._word_names(n_features).astype(str)
    elif feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", np.empty(0))
        # Categories have more cells than columns.
        feature_names = feature_names if len(feature_names) == n_features else np.arange(n_features).astype(str)
    names = np.asarray(feature_names, dtype=object)
    if names.shape != (n_features,):
        raise ValueError(f"feature_names has shape {names.shape}; it must hold {n_features} names.")
    return names.astype(str)


def check_count_model(estimator, who):
    """Raise unless an estimator is a fitted topic model whose topics are probabilities of words."""
    if not isinstance(estimator, CountTopicModel):
        raise TypeError(
            f"{who} shows topics that are probabilities of words, which {type(estimator).__name__} does not have; "
            "give a topic model of counts, such as BayesianLDA."
        )
    check_is_fitted(estimator)


def _columns(estimator, words, names):
    """Indices of the requested words; ascending if ``words`` is a number of top words."""
    if words is None:
        return None
    if isinstance(words, (int, np.integer)) and not isinstance(words, bool):
        if words < 1:
            raise ValueError(f"words={words} must be at least 1 top word of each topic.")
        if not hasattr(estimator, "components_"):
            raise ValueError(
                f"words={words}: {type(estimator).__name__} has no average of components, whose labels change from "
                "draw to draw; give names or indices of columns."
            )
        top = np.argsort(-estimator.components_, axis=1, kind="stable")[:, :words]
        return np.unique(top)
    words = np.atleast_1d(np.asarray(words))
    if words.dtype.kind in "iu":
        bad = words[(words < 0) | (words >= names.size)]
        columns = words
    else:
        place = {name: i for i, name in enumerate(names)}
        bad = [word for word in words.astype(str) if word not in place]
        columns = np.array([place.get(word, 0) for word in words.astype(str)], dtype=int)
    if len(bad) or not len(columns):
        raise ValueError(
            f"words={list(bad)[:5]} are not among the {names.size} words; give names or indices of columns."
        )
    return columns


def to_arviz(estimator, *, words=None, feature_names=None):
    """Draws for ArviZ, with named axes.

    Parameters
    ----------
    estimator : fitted estimator, or result of `sk_sgmcmc.sample`
        With ``samples_``.
    words : int, array-like of str or array-like of int, default=None
        Which words of topics: the given number of top words of each topic, or names, or indices of columns. None
        takes all, without copying the draws; most of ArviZ's functions copy them to float64, so choose some where
        there are thousands.
    feature_names : array-like of str, default=None
        Names of the columns; None takes ``feature_names_in_``, or the indices of the columns.

    Returns
    -------
    data : arviz.InferenceData (ArviZ 0.x) or xarray.DataTree (ArviZ 1.x)
        Group ``posterior``, float32 as kept; topics have the dimensions chain, draw, topic, word.

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import to_arviz
    >>> X = make_lda(n_samples=100, n_features=30, n_components=3, random_state=0).counts
    >>> lda = BayesianLDA(n_components=3, n_chains=2, n_iter=30, random_state=0).fit(X)
    >>> to_arviz(lda, words=2).posterior["components"].dims  # doctest: +SKIP
    ('chain', 'draw', 'topic', 'word')
    """
    if not hasattr(estimator, "samples_"):
        check_is_fitted(estimator)
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ, which is not installed; pip install arviz.") from error
    posterior = dict(estimator.samples_)
    coords = {}
    of_model = hasattr(estimator, "fit")  # the names of a result's parameters are the user's
    if of_model and "components" in posterior:
        names = _names(estimator, feature_names)
        columns = _columns(estimator, words, names)
        if columns is not None:
            posterior["components"] = posterior["components"][..., columns]
            names = names[columns]
        coords = {"topic": np.arange(posterior["components"].shape[2]), "word": names}
    elif words is not None:
        raise ValueError(f"words={words!r} chooses words of topics, which {type(estimator).__name__} does not have.")
    dims = {name: _DIMS[name] for name in posterior if of_model and name in _DIMS}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": posterior}, coords=coords, dims=dims)
    return arviz.from_dict(posterior=posterior, coords=coords, dims=dims)


def to_pyldavis(estimator, X, *, feature_names=None):
    """Arguments of ``pyLDAvis.prepare``.

    Parameters
    ----------
    estimator : fitted topic model
    X : array-like or sparse of shape (n_samples, n_features)
        Counts. Empty documents, and words that occur in none, are left out, since pyLDAvis divides by both totals.
    feature_names : array-like of str, default=None
        Names of the columns; None takes ``feature_names_in_``, or the indices of the columns.

    Returns
    -------
    arguments : dict
        For ``pyLDAvis.prepare(**arguments)``: arrays whose rows sum to 1 in float64, lists, and settings that keep
        the topics' numbers (``sort_topics=False``; pyLDAvis counts from 1), one process, and a map (``mds="mmds"``)
        that is never complex.

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import to_pyldavis
    >>> X = make_lda(n_samples=100, n_features=30, n_components=3, random_state=0).counts
    >>> lda = BayesianLDA(n_components=3, n_iter=30, random_state=0).fit(X)
    >>> to_pyldavis(lda, X)["doc_topic_dists"].shape
    (100, 3)
    """
    check_count_model(estimator, "to_pyldavis")
    names = _names(estimator, feature_names)
    counts = estimator._check_X(X, reset=False).to_csr()
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    frequency = np.asarray(counts.sum(axis=0)).ravel()
    docs, words = np.flatnonzero(lengths > 0), np.flatnonzero(frequency > 0)
    if not docs.size:
        raise ValueError(f"All {lengths.size} documents of X are empty; pass the documents that were fitted.")
    proportions = np.asarray(estimator.transform(X), dtype=np.float64)[docs]
    topics = np.asarray(estimator.components_, dtype=np.float64)[:, words]
    return {
        "topic_term_dists": topics / topics.sum(axis=1, keepdims=True),
        "doc_topic_dists": proportions / proportions.sum(axis=1, keepdims=True),
        "doc_lengths": lengths[docs].tolist(),
        "vocab": names[words].tolist(),
        "term_frequency": frequency[words].tolist(),
        "mds": "mmds",
        "n_jobs": 1,
        "sort_topics": False,
    }
