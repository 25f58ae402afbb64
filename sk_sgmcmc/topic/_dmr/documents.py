"""Separation of counts and metadata that are columns of one table, and checks of such arguments."""

from collections.abc import Mapping
from numbers import Integral

import numpy as np
from scipy import sparse

from ...utils._sklearn import validate_data
from ...utils._sparse import well_formed


def refuse_table(y):
    """Raise if ``y`` is a table, probably metadata passed by position, which would be ignored; labels are accepted."""
    is_table = isinstance(y, Mapping) or hasattr(y, "collect") or hasattr(y, "columns")
    if isinstance(y, (list, tuple)) and len(y):
        is_table = isinstance(y[0], (list, tuple, Mapping)) or np.ndim(y[0]) > 0
    is_table = is_table or len(getattr(y, "shape", ())) > 1
    if is_table:
        raise ValueError(
            f"y is a table, of type {type(y).__name__}, which would be ignored. If it is metadata, pass metadata=M, as "
            "in fit(X, metadata=M). Only one-dimensional labels may be passed as y."
        )


def taken_apart(model, X, metadata, *, reset):
    """Split an X that may contain metadata into counts, metadata, and the indices of the metadata columns in X."""
    X = model._input(X).table()
    if model.new_features == "extend":
        raise ValueError(
            'new_features="extend" needs metadata separate from X: pass metadata= and leave metadata_columns=None.'
        )
    X = with_columns(X)
    if not reset and metadata is not None and X.shape[1] == model.n_features_in_ - model._metadata_in_X.size:
        return X, metadata, model._metadata_in_X
    validate_data(model, X, skip_check_array=True, reset=reset)
    places = metadata_places(X, model.metadata_columns) if reset else model._metadata_in_X
    counts, columns = parted(X, places)
    return counts, columns if metadata is None else metadata, places


def with_columns(X):
    """X as a two-dimensional array, CSR array or frame, whose columns can be separated."""
    X = well_formed(X)
    if not (hasattr(X, "shape") and hasattr(X, "dtype")) and not hasattr(X, "columns"):
        X = np.array(X, dtype=object)
    if sparse.issparse(X):
        X = sparse.csr_array(X)
    if len(X.shape) != 2:
        raise ValueError(f"Expected 2D array, got an X of shape {X.shape}; pass one row per document.")
    return X


def metadata_places(X, metadata_columns):
    """Indices of the columns of metadata in X."""
    wanted = metadata_columns(X) if callable(metadata_columns) else metadata_columns
    n = X.shape[1]
    if isinstance(wanted, Integral):
        places = np.arange(max(n - wanted, 0), n)
    else:
        names = list(getattr(X, "columns", []))
        places = []
        for each in [wanted] if isinstance(wanted, str) else list(wanted):
            if each in names:
                places.append(names.index(each))
            elif isinstance(each, Integral) and -n <= each < n:
                places.append(int(each) % n)
            else:
                raise ValueError(
                    f"metadata_columns={metadata_columns!r}: X has no column {each!r}. "
                    f"{'Its columns have no names; give indices, or a DataFrame.' if not names else ''}"
                )
        places = np.array(places, dtype=np.int64)
    if not 0 < places.size < n or np.unique(places).size < places.size:
        raise ValueError(
            f"metadata_columns={metadata_columns!r} selects {places.size} of the {n} columns of X; it must "
            "select at least one, none twice, and leave at least one for counts."
        )
    return places


def parted(X, places):
    """Split X into the columns of counts and the columns of metadata, which are at ``places``."""
    words = np.setdiff1d(np.arange(X.shape[1]), places)
    return (X.iloc[:, words], X.iloc[:, places]) if hasattr(X, "iloc") else (X[:, words], X[:, places])
