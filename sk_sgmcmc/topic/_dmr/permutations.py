"""Permutation test: effects of a covariate compared with those of its permuted values."""

import warnings
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from ...chains.agreement import Agreement
from ...covariates.effects import Counterfactuals, ObservedMetadata, pairs_of
from ...metrics import align_topics, doc_topic_proportions
from ...utils import as_table
from ...utils._numbers import checked_count, interval_tails
from ...utils._seeds import seed_sequence
from ...utils._tables import aligned, rows_of_table
from .proportions import Weights, clusters_of
from .regression import RegressionMean


class Comparison(NamedTuple):
    """The values of a covariate to compare.

    Parameters
    ----------
    covariate : str
    values : list
    pairs : list of tuple of int
        Indices of each value and of its reference.
    """

    covariate: str
    values: list
    pairs: list


class KnownProportions:
    """Proportions of documents in the form of `RecordedProportions`, with a single draw.

    Parameters
    ----------
    theta : ndarray of shape (n_docs, n_topics)
    observed : ObservedMetadata
    """

    keys = salt = None

    def __init__(self, theta, observed):
        self.theta, self.observed = theta, observed
        self.shape = 1, 1, theta.shape[1]
        self.agreement = Agreement.of_one_chain(theta.shape[1])

    def n_docs(self, c, s):
        """Number of documents."""
        return len(self.theta)

    def parts(self):
        """As for `RecordedProportions`."""
        yield 0, 0, slice(None), self.theta


def permuted(column, cluster, rng):
    """An order of documents that permutes a column: within clusters, or of whole clusters if it is constant in each.

    Parameters
    ----------
    column : ndarray of shape (n_docs,)
        Numbers, or indices of levels.
    cluster : ndarray of int, shape (n_docs,), or None
    rng : Generator
    """
    if cluster is None:
        return rng.permutation(column.size)
    first = np.unique(cluster, return_index=True)[1]
    if np.array_equal(column, column[first][cluster], equal_nan=True):
        return first[rng.permutation(first.size)][cluster]
    members = np.argsort(cluster, kind="stable")
    order = np.empty(column.size, dtype=np.int64)
    order[members] = np.lexsort((rng.random(column.size), cluster))
    return order


def with_permuted(metadata, name, order):
    """Metadata in which one column has its rows in another order, in the same form."""
    if isinstance(metadata, Mapping):
        return {**metadata, name: rows_of_table(np.asarray(metadata[name]), order)}
    if hasattr(metadata, "with_columns"):
        return metadata.with_columns(metadata[name][order])
    if hasattr(metadata, "columns"):
        return metadata.assign(**{name: metadata[name].iloc[order].set_axis(metadata.index)})
    if hasattr(metadata, "to_frame"):
        return rows_of_table(metadata, order)
    j = int(name[1:])  # Columns without names are x0, x1 and so on.
    if sparse.issparse(metadata):
        out = sparse.lil_array(metadata)
    else:
        out = np.array(metadata, dtype=getattr(metadata, "dtype", object))
    if out.ndim == 1:
        return out[order]
    out[:, [j]] = out[order][:, [j]]
    return out


def permutation_table(model, X, comparison, metadata, *, groups, n_permutations, refit, interval, random_state):
    """The table of `DMRTopicModel.permutation_test`; ``comparison`` is a tuple (covariate, at, reference)."""
    n_permutations = checked_count("n_permutations", n_permutations)
    tails, (covariate, at, reference) = interval_tails(interval), comparison
    metadata, groups = aligned(X, metadata=metadata, groups=groups)
    corpus, observed = model._described_documents(X, metadata)
    average = Counterfactuals(model._encoder, observed, None)
    values = average.values(covariate, at)
    pairs, values = pairs_of(values, reference, False, lambda value: average.value_of(covariate, value))
    if not pairs:
        raise ValueError(f"at={at!r}: a difference needs two values of {covariate!r}, or a reference.")
    comparison, cluster = Comparison(covariate, values, pairs), clusters_of(groups, corpus.n_docs)
    column = model._encoder.column_of(observed.table, average.place(covariate))[observed.place]
    seeds = seed_sequence(random_state).spawn(n_permutations)
    make = _Refits if refit else _WordsAlone
    test = make(model, X, corpus, observed, comparison, interval, groups)
    own, found, excluded = test.observed_effects(), [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        each = with_permuted(metadata, covariate, permuted(np.asarray(column, dtype=np.float64), cluster, rng))
        difference, excludes = test.effects(each, int(rng.integers(2**31)))
        found.append(difference)
        excluded.append(excludes)
    found = np.array(found)
    low, high = np.quantile(found, tails, axis=0, method="weibull")
    as_large = (1 + (np.abs(found) >= np.abs(own)).sum(axis=0)) / (1 + n_permutations)
    n_topics, held = len(own), np.array([*values, None], dtype=object)[:-1]
    after, before = map(list, zip(*pairs, strict=True))
    columns = {
        "topic": np.repeat(np.arange(n_topics), len(pairs)),
        "name": np.repeat(np.asarray(model.topic_names_, dtype=object), len(pairs)),
        "value": np.tile(held[after], n_topics),
        "reference": np.tile(held[before], n_topics),
        "difference": own.ravel(),
        "permuted_low": low.ravel(),
        "permuted_high": high.ravel(),
        "p_value": as_large.ravel(),
    }
    if refit:
        columns["excluded"] = np.mean(excluded, axis=0).ravel()
    return as_table(columns)


class _Refits:
    """Effects in the fitted model, and in models fitted to permuted metadata.

    The metadata are part of the prior, so a fit also adapts to metadata that mean nothing; only fits from scratch show
    by how much.
    """

    def __init__(self, model, X, corpus, observed, comparison, interval, groups):
        self.model, self.X, self.comparison, self.interval, self.groups = model, X, comparison, interval, groups

    def _table(self, model):
        covariate, values, pairs = self.comparison
        at, reference = [values[i] for i, _ in pairs], values[pairs[0][1]]
        table = model.effects(covariate, at, reference=reference, groups=self.groups, interval=self.interval)
        return [np.asarray(table[name]).reshape(-1, len(pairs)) for name in ("difference", "low", "high")]

    def observed_effects(self):
        """The effects to test, (n_topics, n_pairs)."""
        return self._table(self.model)[0]

    def effects(self, metadata, seed):
        """Effects after a fit to permuted metadata, and whether their intervals exclude 0."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # The fitted model has warned.
            other = clone(self.model).set_params(random_state=seed).fit(self.X, metadata=metadata)
            columns = self._table(other)
        order = align_topics(self.model.components_, other.components_)
        difference, low, high = (each[order] for each in columns)
        return difference, (low > 0) | (high < 0)


class _WordsAlone:
    """Effects in a regression of proportions given the words alone, so that permuting needs no other fit."""

    def __init__(self, model, X, corpus, observed, comparison, interval, groups):
        self.encoder, self.observed, self.comparison = model._encoder, observed, comparison
        parts = [
            doc_topic_proportions(part.to_csr(), [model._mean_of_words], model.doc_topic_prior_, n_jobs=model.n_jobs)
            for part in corpus.corpora()
        ]
        self.theta = np.concatenate(parts)

    def _differences(self, observed):
        covariate, values, pairs = self.comparison
        draws = KnownProportions(self.theta, observed)
        means = RegressionMean(self.encoder, draws, Weights(draws, False)).averages(
            [{covariate: value} for value in values], Counterfactuals(self.encoder, observed, None)
        )[0, 0]
        return np.stack([means[:, a] - means[:, b] for a, b in pairs], axis=1)

    def observed_effects(self):
        """The effects to test, (n_topics, n_pairs)."""
        return self._differences(self.observed)

    def effects(self, metadata, seed):
        """Effects of permuted metadata, and None."""
        return self._differences(ObservedMetadata.of(self.encoder.table(metadata))), None
