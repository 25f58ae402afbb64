"""Tables: results as DataFrames, and arguments whose rows are matched to the rows of X by their labels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import Bunch

from ._containers import is_dask
from ._typing import Table
from ._warnings import warn_user


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
        return _Columns(**columns)
    return pandas.DataFrame(columns)


class _Columns(Bunch):
    """Columns of a table by name, where pandas is not installed."""

    def __getitem__(self, name):
        if isinstance(name, list):
            raise TypeError(
                "Without pandas, tables are dictionaries of columns, and several columns at once cannot be chosen. "
                "Install pandas: pip install pandas."
            )
        return super().__getitem__(name)


def as_precise_as(X, values):
    """The values, converted to float32 if X is an array or a sparse matrix of float32."""
    # A DataFrame has no dtype, but may have a column named "dtype".
    dtype = None if hasattr(X, "columns") else getattr(X, "dtype", None)
    return values.astype(np.float32) if dtype == np.float32 else values


def rows_of_table(table, rows):
    """Rows of a DataFrame, an array, a list or a dict of columns, by position."""
    if isinstance(table, Mapping):
        return {name: rows_of_table(column, rows) for name, column in table.items()}
    if sparse.issparse(table):
        return sparse.csr_array(table)[rows]
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def declared_levels(column):
    """The ordered levels of a categorical column of pandas or an Enum column of polars; None for other columns."""
    dtype = getattr(column, "dtype", None)
    return list(dtype.categories) if type(dtype).__name__ in ("CategoricalDtype", "Enum") else None


def checked_names(names, n_features, otherwise=None):
    """Names of columns as an array of objects, or ``otherwise`` for None; raises unless there are ``n_features``."""
    if names is None:
        return otherwise
    names = np.asarray(names, dtype=object)
    if names.shape != (n_features,):
        raise ValueError(f"feature_names has shape {names.shape}; it must hold {n_features} names.")
    return names


def aligned(X, /, **given):
    """Arguments with a value for each row of X, with their rows in the order of X.

    Rows are matched by their labels, which are the index of a pandas DataFrame or Series, or by position if either side
    has no labels. If X has none, the first other argument that has labels takes its place.

    Parameters
    ----------
    X : object
        Data of any type.
    **given : object
        Arguments by name, such as metadata, responses, weights and times. DataFrames, Series and dicts of columns are
        aligned; anything else is returned unchanged.

    Returns
    -------
    tuple of object
        The arguments, with labelled ones in the order of X. Arguments whose length differs from that of X are returned
        unchanged; later checks reject them.

    Raises
    ------
    ValueError
        If labels differ from those of X, or if repeated labels are in another order.
    """
    parts = [("X", X), *given.items()]
    parts += [(f"{name}[{key!r}]", part) for name, value in given.items() for key, part in _columns(value).items()]
    whose, labels = next(((name, part.index) for name, part in parts if _has_labels(part)), (None, None))
    if labels is None:
        return tuple(given.values())
    return tuple(
        {key: _in_order(part, labels, f"{name}[{key!r}]", whose) for key, part in value.items()}
        if isinstance(value, Mapping)
        else _in_order(value, labels, name, whose)
        for name, value in given.items()
    )


def _columns(value):
    return value if isinstance(value, Mapping) else {}


def _has_labels(part):
    return hasattr(part, "iloc") and hasattr(part, "index") and not is_dask(part)


def _is_default(labels):
    """Whether labels are only row numbers: 0, 1, and so on."""
    return type(labels).__name__ == "RangeIndex" and labels.start == 0 and labels.step == 1


def _in_order(part, labels, name, whose):
    """Rows of an argument in the order of ``labels``, the labels of the argument ``whose``."""
    if not _has_labels(part) or not len(labels):
        return part
    own = part.index
    if len(own) != len(labels) or own.equals(labels):
        return part
    if own.is_unique and labels.is_unique:
        places = own.get_indexer(labels)
        if (places >= 0).all():
            return part.iloc[places]
    remedy = f"Pass {name}.to_numpy() if its rows are in the order of {whose}."
    if _is_default(own) or _is_default(labels):
        warn_user(
            f"`{name}` and {whose} have different row labels, such as {own[0]!r} and {labels[0]!r}. On one side "
            f"they are numbers of rows, so rows are matched by position. {remedy}"
        )
        return part
    if own.is_unique and labels.is_unique:
        unknown = own[~own.isin(labels)][0]
        raise ValueError(
            f"`{name}` must have the row labels of {whose}; got the label {unknown!r}, which {whose} lacks. {remedy}"
        )
    raise ValueError(
        f"`{name}` must have the row labels of {whose}, in the same order where labels repeat; got other labels, or "
        f"another order. {remedy}"
    )
