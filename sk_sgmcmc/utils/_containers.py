"""Objects that are not matrices: Dask collections, containers of several matrices, and objects that nest endlessly."""

from collections.abc import Mapping
from functools import partial

import numpy as np


def is_dask(X):
    """Whether an object is a Dask collection; does not import Dask."""
    return type(X).__module__.partition(".")[0] == "dask"


def is_dask_array(X):
    """Whether an object is a Dask array."""
    return is_dask(X) and type(X).__name__ == "Array"


def refuse_dask(X, name="X"):
    """Raise a `TypeError` for a Dask collection, which NumPy or pandas would silently load into memory.

    Parameters
    ----------
    X : object
        The argument to check, of any type.
    name : str, default="X"
        The name used in the error.
    """
    if not is_dask(X):
        return
    remedy = f"Pass {name}.compute() if the result fits in memory"
    if name == "X" and hasattr(X, "to_dask_array"):
        remedy += "; transform, predict and score_samples also take X.to_dask_array(), block by block"
    elif name == "X" and hasattr(X, "blocks"):
        remedy += ", or one block after another to partial_fit, the first being X.blocks[0].compute()"
    raise TypeError(f"{name} is a Dask {type(X).__name__}, and would have to be loaded into memory here. {remedy}.")


_SINGLE_CELL = {"anndata", "mudata"}
_READABLE = ("__array__", "__array_interface__", "__array_namespace__", "__dataframe__", "toarray", "dtype", "columns")


def refuse_containers(X, name="X"):
    """Raise a `TypeError` for a container of matrices, such as AnnData, and for a Dask collection.

    Parameters
    ----------
    X : object
        The argument to check, of any type. Containers are recognised without importing their libraries.
    name : str, default="X"
        The name used in the error.
    """
    refuse_dask(X, name)
    if _SINGLE_CELL & {kind.__module__.partition(".")[0] for kind in type(X).__mro__}:
        raise TypeError(
            f"`{name}` must be a matrix; got an object of type {type(X).__name__}, which contains several. For raw "
            'counts, pass adata.layers["counts"], or adata.X where they are kept there (log-normalised values are no '
            "counts)."
        )
    if _unpacks_without_end(X):
        raise TypeError(
            f"`{name}` must be a matrix; got an object of type {type(X).__name__}, whose entries are of the same type. "
            "Pass the array, sparse matrix or DataFrame that it contains."
        )


def _unpacks_without_end(X):
    """Whether NumPy would index an object endlessly, since its entries are objects of the same type."""
    plain = isinstance(X, (list, tuple, str, bytes, Mapping, np.ndarray, np.generic))
    if plain or not hasattr(X, "__getitem__") or any(map(partial(hasattr, X), _READABLE)):
        return False
    try:
        return type(X[0]) is type(X) and type(X[0][0]) is type(X)
    except Exception:  # an unknown object may raise anything
        return False
