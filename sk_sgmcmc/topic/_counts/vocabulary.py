"""Alignment of word columns by name, for ``new_features="extend"``."""

import numpy as np
from scipy import sparse

from ...utils import check_counts
from ...utils._sparse import well_formed


def _names(X, estimator):
    """Column names of a frame; raises if the estimator or X has no names, or if a name is repeated."""
    if not hasattr(estimator, "feature_names_in_"):
        raise ValueError(
            'new_features="extend" aligns columns by name, but this estimator was fitted without names; pass a '
            "DataFrame whose columns are the words from the first call on, for example "
            "pandas.DataFrame.sparse.from_spmatrix(counts, columns=vectorizer.get_feature_names_out())."
        )
    if not hasattr(X, "columns"):
        raise ValueError(
            f'new_features="extend" aligns columns by name and needs a DataFrame, got {type(X).__name__}; '
            "pass pandas.DataFrame.sparse.from_spmatrix(counts, columns=vectorizer.get_feature_names_out())."
        )
    names = np.asarray(X.columns, dtype=object)
    if len(set(names)) != names.size:
        raise ValueError("The columns of X have repeated names; each word must have one column.")
    return names


def new_names(X, estimator):
    """Names of the columns of X that are new to the estimator, in their order."""
    known = set(getattr(estimator, "feature_names_in_", ()))
    return np.array([name for name in _names(X, estimator) if name not in known], dtype=object)


def extend_names(estimator, X):
    """Append the names of new columns of X to those of the estimator; the caller then extends the chains."""
    names = new_names(X, estimator)
    if not len(names):
        return
    if np.ndim(estimator.topic_word_prior):
        raise ValueError('new_features="extend" needs one number as topic_word_prior, got an array.')
    check_counts(X, whom=type(estimator).__name__)
    estimator.feature_names_in_ = np.concatenate([estimator.feature_names_in_, names])
    estimator.n_features_in_ = estimator.feature_names_in_.size
    if estimator._feature_names is not None:
        estimator._feature_names = np.concatenate([estimator._feature_names, names])


def aligned_counts(X, estimator):
    """Counts of a frame in the estimator's columns, a csr_array; missing columns are 0, unknown ones are dropped."""
    names = _names(well_formed(X), estimator)
    place = {name: i for i, name in enumerate(estimator.feature_names_in_)}
    is_sparse = hasattr(X, "sparse") and all(
        hasattr(dtype, "subtype") and hasattr(dtype, "fill_value") for dtype in X.dtypes
    )
    counts = sparse.coo_array(X.sparse.to_coo() if is_sparse else np.asarray(X, dtype=np.float64))
    target = np.array([place.get(name, -1) for name in names], dtype=np.int64)[counts.col]
    known = target >= 0
    shape = (counts.shape[0], len(place))
    return sparse.csr_array((counts.data[known], (counts.row[known], target[known])), shape=shape)


def with_new_words(draws, n_kept, share):
    """A wider array for draws of topics, (n_draws, n_topics, n_words + n_new), with the first ``n_kept`` draws.

    In these draws, the new words have the probabilities ``share``, (n_topics, n_new).
    """
    *shape, n_words = draws.shape
    wider = np.empty((*shape, n_words + share.shape[1]), dtype=draws.dtype)
    wider[:n_kept, :, :n_words] = draws[:n_kept] * (1.0 - share.sum(axis=1, keepdims=True))
    wider[:n_kept, :, n_words:] = share
    return wider


def padded(counts, n_words):
    """Counts of words, extended by zeros to ``n_words``."""
    return np.concatenate([counts, np.zeros(n_words - counts.size)])
