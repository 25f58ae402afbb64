"""Tables: results for users, pandas DataFrames if pandas is installed, else Bunch; and rows of what users give."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import Bunch

from ._typing import Table


def as_table(columns: Mapping[str, ArrayLike]) -> Table:
    """Make a table of columns of equal length.

    Parameters
    ----------
    columns : dict of str to array-like of shape (n_rows,)

    Returns
    -------
    pandas.DataFrame, or sklearn.utils.Bunch of the columns if pandas is not installed
    """
    try:
        import pandas
    except ImportError:
        return Bunch(**columns)
    return pandas.DataFrame(columns)


def as_precise_as(X, values):
    """The values, in single precision if X is an array or a sparse matrix of single precision."""
    # A frame has no dtype, but may well have a column named "dtype".
    dtype = None if hasattr(X, "columns") else getattr(X, "dtype", None)
    return values.astype(np.float32) if dtype == np.float32 else values


def rows_of_table(table, rows):
    """Rows of a frame, an array, a list or a dict of columns."""
    if isinstance(table, Mapping):
        return {name: rows_of_table(column, rows) for name, column in table.items()}
    if sparse.issparse(table):
        return sparse.csr_array(table)[rows]
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def declared_levels(column):
    """The levels that a column declares, in their order (as a categorical of pandas, or an Enum of polars), or None."""
    dtype = getattr(column, "dtype", None)
    return list(dtype.categories) if type(dtype).__name__ in ("CategoricalDtype", "Enum") else None


def checked_names(names, n_features, otherwise=None):
    """Names of columns as an array of objects, or ``otherwise`` for None; raises unless there is one for each."""
    if names is None:
        return otherwise
    names = np.asarray(names, dtype=object)
    if names.shape != (n_features,):
        raise ValueError(f"feature_names has shape {names.shape}; it must hold {n_features} names.")
    return names
