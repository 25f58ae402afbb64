"""Effects of covariates on prevalence: differences between averages over documents with a covariate set to values.

Documents are the rows of any table with metadata, and what is prevalent among them are topics or classes.
"""

from collections.abc import Callable, Mapping
from itertools import combinations
from numbers import Real
from types import NoneType
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..utils import as_table, row_keys
from ..utils._numbers import interval_tails
from ..utils._warnings import warn_user
from .overlap import warn_of_extrapolation

_CELLS_AT_ONCE = 2_000_000  # Cells of prevalence, or of rows of metadata, computed at a time, to limit memory.


class ObservedMetadata(NamedTuple):
    """The distinct rows of a table of metadata, as encoders keep them, with the share of documents that have each.

    Parameters
    ----------
    table : ndarray or csr_array of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows,)
        Shares of the documents.
    place : ndarray of shape (n_documents,)
        Index of each document's row in ``table``.
    """

    table: object
    weights: np.ndarray
    place: np.ndarray | None = None

    @classmethod
    def of(cls, table, weights=None):
        """From the rows of a table, which may repeat, and their weights, which default to 1."""
        weights = np.ones(table.shape[0]) if weights is None else weights
        _, first, place = np.unique(row_keys(sparse.csr_array(table)), return_index=True, return_inverse=True)
        weights = np.bincount(place.ravel(), weights)
        return cls(table[first], weights / weights.sum(), place.ravel().astype(np.int32))

    def extended(self, table):
        """With the rows of further documents."""
        rows = self.table[self.place]
        both = sparse.csr_array(sparse.vstack([rows, table])) if sparse.issparse(rows) else np.vstack([rows, table])
        return ObservedMetadata.of(both)


class Counterfactuals:
    """Documents with some covariates set to values, and all others as observed.

    Parameters
    ----------
    encoder : MetadataEncoder
    observed : ObservedMetadata
    given : dict or None
        Covariates that have a fixed value in all settings.
    """

    def __init__(self, encoder, observed, given):
        if not isinstance(given, (Mapping, NoneType)):
            raise TypeError(f'given={given!r} must be a dict from covariates to values, such as {{"year": 2010}}.')
        self.encoder, self.observed, self.given = encoder, observed, dict(given or {})
        for name, value in self.given.items():
            self.value_of(name, value)

    @classmethod
    def of_model(cls, model, metadata=None, given=None):
        """From a fitted model, for documents with ``metadata``, or for the fitted documents if it is None."""
        check_is_fitted(model)
        if not model._encoder.levels:
            raise ValueError(f"This {type(model).__name__} was fitted without metadata, so nothing has an effect.")
        if metadata is None and model._observed is None:
            raise ValueError("The metadata of a stream are not kept; pass metadata=, the documents to average over.")
        observed = model._observed if metadata is None else ObservedMetadata.of(model._encoder.table(metadata))
        return cls(model._encoder, observed, given)

    def place(self, name):
        """Index of a covariate; raises for an unknown one."""
        names = self.encoder.covariates
        if name in names:
            return names.index(name)
        formula = self.encoder.formula
        uses = "the metadata have" if formula is None else f"formula={formula!r} uses"
        raise ValueError(f"{name!r} is not a covariate; {uses} {', '.join(map(repr, names[:20]))}.")

    def is_number(self, name):
        """Whether a covariate is numeric, without levels."""
        return self.encoder.levels[self.place(name)] is None

    def value_of(self, name, value):
        """A value as encoders keep it, a number or the index of a level; raises for an invalid value."""
        levels = self.encoder.levels[self.place(name)]
        if levels is None:
            if not isinstance(value, (Real, np.number)) or not np.isfinite(value):
                raise ValueError(f"{name!r} is a number, but {value!r} was given; give finite numbers.")
            return float(value)
        if value in levels:
            return levels.index(value)
        shown = ", ".join(repr(getattr(level, "item", lambda level=level: level)()) for level in levels[:20])
        shown += ", ..." if len(levels) > 20 else ""
        raise ValueError(f"{value!r} is not a level of {name!r}; these are {shown}.")

    def values(self, name, at=None):
        """Values of a covariate to compare: ``at`` if it is passed, otherwise all levels, or quartiles of numbers."""
        if at is not None:
            values = list(np.atleast_1d(np.asarray(at, dtype=object)))
            for value in values:
                self.value_of(name, value)
            if len({self.value_of(name, value) for value in values}) < len(values) or not values:
                raise ValueError(f"at={at!r} must hold different values of {name!r}.")
            return values
        j = self.place(name)
        if not self.is_number(name):
            return list(self.encoder.levels[j])
        seen, weights = self.seen(name)
        if seen.size <= 2:
            return seen.tolist()
        reached = np.cumsum(weights)
        ends = [float(seen[np.searchsorted(reached, share - 1e-9)]) for share in (0.25, 0.75)]
        return ends if ends[0] < ends[1] else [float(seen[0]), float(seen[-1])]

    def seen(self, name, where=None):
        """The distinct values of a numeric covariate in the documents, ascending, and their shares.

        If ``where``, a pair of a covariate and a value, is passed, only documents with that value count.
        """
        column = self.encoder.column_of(self.observed.table, self.place(name))
        weights = self.observed.weights
        if where is not None:
            other = self.encoder.column_of(self.observed.table, self.place(where[0]))
            weights = np.where(other == self.value_of(*where), weights, 0.0)
        known = ~np.isnan(column) & (weights > 0.0)
        values, place = np.unique(column[known], return_inverse=True)
        shares = np.bincount(place, weights[known], values.size)
        return values, shares / max(shares.sum(), 1e-300)

    def designs(self, settings, width):
        """Yield the encoded metadata of the documents under some settings at a time.

        Parameters
        ----------
        settings : list of dict
            From covariates to values.
        width : int
            Number of cells per row that the caller computes.

        Yields
        ------
        rows : ndarray or csr_array of shape (n_settings * n_rows, n_columns)
            Distinct rows under each of these settings.
        base : ObservedMetadata
            Shares of the rows, and the row in which each row of ``observed`` has been merged.
        """
        table = self.observed.table
        for name in (*settings[0], *self.given):
            table = self._with(table, name, self.given.get(name, settings[0].get(name)))
        base = ObservedMetadata.of(table, self.observed.weights)
        at_once = max(1, _CELLS_AT_ONCE // (base.weights.size * width))
        for start in range(0, len(settings), at_once):
            tables = []
            for setting in settings[start : start + at_once]:
                table = base.table
                for name, value in setting.items():
                    table = self._with(table, name, value)
                tables.append(table)
            stacked = sparse.csr_array(sparse.vstack(tables)) if sparse.issparse(table) else np.vstack(tables)
            yield self.encoder.encoded_table(stacked), base

    def _with(self, table, name, value):
        return self.encoder.with_value(table, self.place(name), self.value_of(name, value))


def over_draws(coef, answer):
    """Evaluate the function ``answer`` at each draw of the coefficients; returns (n_chains, n_kept, ...)."""
    return np.stack([np.stack([answer(each) for each in chain]) for chain in coef])


class PriorMean:
    """Mean prevalence given covariates alone, before any document is read.

    Parameters
    ----------
    agreement : Agreement
    coef : ndarray of shape (n_chains, n_kept, n_components, width)
        Draws of the coefficients.
    prevalence : callable
        ``prevalence(rows, coef)`` is the prevalence for encoded rows in one draw, (n_rows, n_components).
    """

    observed = None  # It needs no documents.

    def __init__(self, agreement, coef, prevalence):
        self.agreement, self.coef, self.prevalence = agreement, coef, prevalence

    def averages(self, settings, counterfactuals):
        """Draws of the mean prevalence over documents under each setting.

        The result is of shape (n_chains, n_kept, n_components, n_settings).
        """
        parts = []
        for rows, base in counterfactuals.designs(settings, self.coef.shape[2]):

            def answer(each, rows=rows, base=base):
                shares = self.prevalence(rows, each)
                shares = shares.reshape(-1, base.weights.size, shares.shape[1])
                return np.einsum("r,nrk->kn", base.weights, shares)

            parts.append(over_draws(self.coef, answer))
        return np.concatenate(parts, axis=-1)


class Comparison(NamedTuple):
    """The prevalence that effects of covariates compare, and the documents over which it is averaged.

    Parameters
    ----------
    made : callable
        ``made()`` is what is averaged, such as a `PriorMean`.
    average : Counterfactuals
    of : {"population", "documents", "prior", "classes"}
        What the prevalence is the mean of, as for `PrevalenceDisplay <sk_sgmcmc.inspection.PrevalenceDisplay>`.
    labels : dict
        From names of columns to arrays of shape (n_components,): the number of each topic or class, in a column whose
        name says which they are, and their names if they have any, in "name".
    """

    made: Callable
    average: Counterfactuals
    of: str
    labels: dict


def prevalence_at(quantity, average, settings, interval, is_seen_together=False):
    """Mean prevalence under each setting, and the ends of its intervals, each (n_components, n_settings).

    ``is_seen_together`` is as for `warn_of_extrapolation`.
    """
    draws = quantity.averages(settings, average)
    warn_of_extrapolation(quantity, average, settings, "X= and average_over=", is_seen_together=is_seen_together)
    ends, _ = quantity.agreement.summary(draws, interval_tails(interval))
    return draws[quantity.agreement.reference].mean(axis=0), *ends


def effects_of(comparison, covariate, at, *, kind, reference, pairwise, interval):
    """The table of `DMRTopicModel.effects`.

    Parameters
    ----------
    comparison : Comparison
    covariate, at, kind, reference, pairwise, interval
        As for `DMRTopicModel.effects`.
    """
    tails, average = interval_tails(interval), comparison.average
    if kind not in ("difference", "prevalence"):
        raise ValueError(f'kind={kind!r} must be "difference" or "prevalence".')
    if not isinstance(covariate, str) and np.ndim(covariate):
        raise TypeError(f"covariate={covariate!r} must be the name of one covariate.")
    if covariate in average.given:
        raise ValueError(
            f"given={average.given!r} holds {covariate!r} at one value, so it has no effect; leave it out."
        )
    values, pairs = average.values(covariate, at), None
    if kind == "difference":
        pairs, values = pairs_of(values, reference, pairwise, lambda value: average.value_of(covariate, value))
        if not pairs:
            raise ValueError(f"at={at!r}: a difference needs two values of {covariate!r}, or a reference.")
    quantity, settings = comparison.made(), [{covariate: value} for value in values]
    draws = quantity.averages(settings, average)
    lacking = [value for i, value in enumerate(values) if np.isnan(draws[..., i]).any()]
    if lacking:
        at = ", ".join(repr(_item(value)) for value in lacking)
        warn_user(
            f"The documents do not determine the prevalence at {covariate}={at}, so these rows are NaN: no document "
            "has it, or only with some values of the other covariates. Hold the others at such values by given={...}, "
            'or use of="prior".'
        )
    else:
        warn_of_extrapolation(quantity, average, settings, "X= and metadata=", is_contrast=pairs is not None)
    if pairs is None:
        return prevalence_table(draws, values, quantity.agreement, tails, comparison.labels)
    return effect_table(draws, pairs, values, quantity.agreement, tails, comparison.labels)


def _item(value):
    """A value without its NumPy type."""
    return getattr(value, "item", lambda: value)()


def pairs_of(values, reference, pairwise, index_of):
    """Pairs of values to compare, as indices of the value and of its reference, and the list of all values."""
    if pairwise:
        if reference is not None:
            raise ValueError(f"pairwise=True compares all pairs; leave out reference={reference!r}.")
        return [(b, a) for a, b in combinations(range(len(values)), 2)], values
    indices = [index_of(value) for value in values]
    if reference is not None and index_of(reference) not in indices:
        values, indices = [reference, *values], [index_of(reference), *indices]
    first = 0 if reference is None else indices.index(index_of(reference))
    return [(i, first) for i in range(len(values)) if i != first], values


def effect_table(draws, pairs, values, agreement, tails, labels):
    """The table of differences in prevalence between pairs of values, with a row for each topic and pair.

    ``labels`` is as for `Comparison`.
    """
    after, before = map(list, zip(*pairs, strict=True))
    differences = draws[..., after] - draws[..., before]
    (low, high), positive = agreement.summary(differences, tails)
    own = draws[agreement.reference].mean(axis=0)
    n_topics, held = differences.shape[2], np.array([*values, None], dtype=object)[:-1]
    return as_table(
        {name: np.repeat(column, len(pairs)) for name, column in labels.items()}
        | {
            "value": _plain(np.tile(held[after], n_topics)),
            "reference": _plain(np.tile(held[before], n_topics)),
            "prevalence": own[:, after].ravel(),
            "difference": differences[agreement.reference].mean(axis=0).ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
            "positive": np.where(np.isnan(low), np.nan, positive).ravel(),
        }
    )


def prevalence_table(draws, values, agreement, tails, labels):
    """The table of the prevalence at each value, with a row for each topic and value; ``labels`` as above."""
    (low, high), _ = agreement.summary(draws, tails)
    n_topics, n_values = draws.shape[2:]
    return as_table(
        {name: np.repeat(column, n_values) for name, column in labels.items()}
        | {
            "value": _plain(np.tile(np.array([*values, None], dtype=object)[:-1], n_topics)),
            "prevalence": draws[agreement.reference].mean(axis=0).ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
        }
    )


def _plain(values):
    """The values as floats if all of them are numbers, else as objects."""
    numbers = all(isinstance(value, (Real, np.number)) and not isinstance(value, bool) for value in values)
    return values.astype(np.float64) if numbers else values
