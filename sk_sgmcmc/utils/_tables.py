"""Results for users: pandas DataFrames if pandas is installed, else Bunch; values in the precision of the input."""

import numpy as np
from sklearn.utils import Bunch


def as_table(columns):
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
