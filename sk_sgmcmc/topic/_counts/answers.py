"""Results computed from the draws of a fitted count topic model."""

import numpy as np
from scipy import sparse

from ...metrics import document_completion, split_tokens
from ...utils import as_table
from ...utils._numbers import interval_tails

# Draws that held-out scores average over, evenly spaced over the kept ones; each costs a fit of all documents.
_SCORED_DRAWS = 10
_REFERENCE_DOCS = 1000  # documents used to choose a reference chain


def scored_draws(n_draws):
    """Indices of the draws that held-out scores average over."""
    return np.unique(np.linspace(0, n_draws - 1, _SCORED_DRAWS).round().astype(int))


def best_chain(means, data, doc_prior_of):
    """The chain whose mean topics predict hidden words best, on up to 1000 of the fitted documents.

    Parameters
    ----------
    means : ndarray of shape (n_chains, n_topics, n_words)
    data : TokenData
    doc_prior_of : callable
        Function from the index of a chain and those of documents to the documents' Dirichlet prior.
    """
    some = np.unique(np.linspace(0, data.n_docs - 1, _REFERENCE_DOCS).round().astype(int))
    weights = data.weights if data.weights.size else np.ones(data.words.size)
    counts = sparse.csr_array((weights, data.words, data.token_ptr), shape=(data.n_docs, data.n_words))[some]
    counts.sum_duplicates()
    observed, hidden = split_tokens(counts)
    if hidden.nnz == 0:
        return 0
    scores = [
        document_completion(observed, hidden, mean, doc_topic_prior=doc_prior_of(c, some)).score
        for c, mean in enumerate(means)
    ]
    return int(np.argmax(scores))


def largest(values, n):
    """Indices of the ``n`` largest values, the largest first and equal ones in their order, without sorting all."""
    candidates = np.flatnonzero(values >= np.partition(values, values.size - n)[values.size - n])
    return candidates[np.argsort(-values[candidates], kind="stable")[:n]]


def word_table(components, n, interval, feature_names, draws_of_topic):
    """The most probable words of each topic; intervals from ``draws_of_topic(k)``, (n_draws, n_words)."""
    n_topics, n_features = components.shape
    if not n >= 1:
        raise ValueError(f"n={n} must be at least 1.")
    ends = None if interval is None else interval_tails(interval)
    n = min(int(n), n_features)
    feature_names = np.asarray(feature_names, dtype=object)
    if feature_names.shape != (n_features,):
        raise ValueError(f"feature_names has shape {feature_names.shape}; it must hold {n_features} names.")
    top = np.array([largest(topic, n) for topic in components])
    table = {
        "topic": np.repeat(np.arange(n_topics), n),
        "rank": np.tile(np.arange(1, n + 1), n_topics),
        "word": feature_names[top.ravel()],
        "probability": np.take_along_axis(components, top, axis=1).ravel(),
    }
    if ends is not None:
        low, high, often = np.empty(top.shape), np.empty(top.shape), np.empty(top.shape)
        for k in range(n_topics):
            draws = draws_of_topic(k)
            low[k], high[k] = np.quantile(draws[:, top[k]].astype(np.float64), ends, axis=0)
            bar = np.partition(draws, n_features - n, axis=1)[:, n_features - n, None]
            often[k] = (draws[:, top[k]] >= bar).mean(axis=0)
        table |= {"low": low.ravel(), "high": high.ravel(), "top_probability": often.ravel()}
    return as_table(table)
