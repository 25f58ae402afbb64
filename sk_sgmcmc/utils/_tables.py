"""Tables for users: pandas DataFrames where pandas is installed, else Bunch."""

from sklearn.utils import Bunch


def as_table(columns):
    """Make a table of columns of equal length.

    Parameters
    ----------
    columns : dict of str to array-like of shape (n_rows,)

    Returns
    -------
    pandas.DataFrame, or sklearn.utils.Bunch of the columns where pandas is not installed
    """
    try:
        import pandas
    except ImportError:
        return Bunch(**columns)
    return pandas.DataFrame(columns)
