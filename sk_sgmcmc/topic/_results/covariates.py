"""Outcomes of documents, and covariates: numbers that influence the outcome beside the topics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d

from ...utils._numbers import real_array


class Covariates(NamedTuple):
    """The columns of the covariates of a fit.

    Parameters
    ----------
    names : tuple of str
    mean, scale : ndarray of shape (n_covariates,)
        Means and standard deviations of the columns.
    """

    names: tuple = ()
    mean: np.ndarray = np.zeros(0)
    scale: np.ndarray = np.ones(0)

    @classmethod
    def of(cls, covariates, n_docs):
        """The columns of a table, (n_docs, n_covariates), or none for None."""
        if covariates is None:
            return cls()
        table = _table(covariates, n_docs)
        names = [str(name) for name in getattr(covariates, "columns", range(table.shape[1]))]
        mean, scale = table.mean(axis=0), table.std(axis=0)
        size = np.maximum(np.abs(table).max(axis=0), 1e-290)
        constant = [name for name, spread, most in zip(names, scale, size, strict=True) if not spread > 1e-12 * most]
        if constant:
            raise ValueError(
                f"The covariates {constant} are constant. Leave them out: topics have a coefficient each, which "
                "includes the intercept."
            )
        return cls(tuple(names), mean, scale)

    def checked(self, covariates, n_docs):
        """The covariates of ``n_docs`` documents as given, (n_docs, n_covariates)."""
        if covariates is None:
            if self.names:
                raise ValueError(f"`covariates` must be passed, with the columns {list(self.names)}; got None.")
            return np.zeros((n_docs, 0))
        if not self.names:
            raise ValueError("This model was fitted without covariates; fit with covariates=, or leave them out.")
        table = _table(covariates, n_docs)
        names = [str(name) for name in getattr(covariates, "columns", self.names)]
        if table.shape[1] != len(self.names) or tuple(names) != self.names:
            raise ValueError(f"`covariates` must have the columns {list(self.names)}, in this order; got {names}.")
        return table

    def encoded(self, covariates, n_docs):
        """The covariates of ``n_docs`` documents in standard units."""
        return (self.checked(covariates, n_docs) - self.mean) / self.scale


def _table(covariates, n_docs):
    try:
        table = check_array(covariates, dtype=np.float64, input_name="covariates", ensure_min_features=1)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(
            "`covariates` must be numbers. Turn categories into columns of 0 and 1 first, without one of them, for "
            "example by pandas.get_dummies(table, drop_first=True)."
        ) from error
    if len(table) != n_docs:
        raise ValueError(f"`covariates` must have a row for each of the {n_docs} documents; got {len(table)} rows.")
    return table


def checked_outcomes(y, n_docs=None, *, may_lack=False):
    """Outcomes as float64, (n_docs,); ``may_lack`` says whether NaN is allowed."""
    y = real_array("y", column_or_1d(y, warn=True))
    if not y.size:
        raise ValueError("Found array with 0 sample(s) in y; at least one document is required.")
    wrong = np.isinf(y) if may_lack else ~np.isfinite(y)
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"y contains {'infinity' if np.isinf(y[place]) else 'NaN'} at position {place}; leave documents without an "
            "outcome out."
        )
    if n_docs is not None and y.size != n_docs:
        raise ValueError(f"X has {n_docs} documents, and y {y.size} outcomes; pass one outcome for each document.")
    return y
