"""Checks of sparse matrices, before any code of SciPy, scikit-learn or ours reads them.

SciPy's containers accept any index arrays, and its compiled code, like ours, does not check that indices lie inside the
matrix. A damaged matrix would crash the process, or be read as other data.
"""

import numpy as np
from scipy import sparse

from ._containers import refuse_containers


def well_formed(X, name="X"):
    """Check a sparse matrix; dense data are returned unchanged, and Dask collections and containers raise an error.

    Parameters
    ----------
    X : object
        Not modified, not even its flags.
    name : str, default="X"
        The name used in errors.

    Returns
    -------
    X : object
        X itself, or its content in another container if its index arrays have different dtypes, or dtypes that compiled
        code does not accept, or if sums of its small integers could overflow.

    Raises
    ------
    ValueError
        If index arrays do not describe a matrix of this shape; the message names the fault and a remedy.
    TypeError
        For a Dask collection, which has to be computed first, and for containers such as AnnData.
    """
    refuse_containers(X, name)
    if not sparse.issparse(X):
        return X
    if len(X.shape) != 2:
        raise ValueError(f"Expected 2D array, got {name} of shape {X.shape}; pass one row for each sample.")
    return _CHECKS[X.format](X, name)


def canonical(X):
    """A CSR matrix with sorted columns and no duplicates, in a new container; copied only if necessary."""
    X = type(X)(X)  # without the flags of X, which may be wrong
    if not X.has_canonical_format:
        X = X.astype(_wide(X.dtype))
        X.sum_duplicates()
    return X


def _wide(dtype):
    """A dtype in which sums of duplicates do not overflow."""
    return np.result_type(dtype, np.int64) if dtype.kind in "iu" else dtype


def _refuse(name, what, kind="csr"):
    look = f"{name}.check_format(full_check=True) looks for such faults; " if kind in ("csr", "csc") else ""
    raise ValueError(
        f"{name} is a damaged sparse matrix: {what}. Build it again from its entries, for example by "
        f"scipy.sparse.csr_array((values, (rows, columns)), shape=...); {look}do not write into index arrays."
    )


def _check_integers(X, name, parts, n_dims=1):
    for part in parts:
        array = getattr(X, part)
        if getattr(array, "ndim", None) != n_dims or array.dtype.kind not in "iu":
            form = f"{getattr(array, 'dtype', type(array).__name__)} of shape {np.shape(array)}"
            _refuse(name, f"{name}.{part} is {form}; it must be whole numbers in {n_dims} dimension", X.format)


def _compressed(X, name):
    """Check a CSR, CSC or BSR matrix."""
    _check_integers(X, name, ("indptr", "indices"))
    lines, others = ("row", "columns") if X.format != "csc" else ("column", "rows")
    n_lines, n_others = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        if X.data.ndim != 3 or 0 in X.data.shape[1:] or X.shape[0] % X.data.shape[1] or X.shape[1] % X.data.shape[2]:
            _refuse(name, f"its blocks, {name}.data of shape {X.data.shape}, do not tile the shape {X.shape}", "bsr")
        lines, others = "row of blocks", "columns of blocks"
        n_lines, n_others = n_lines // X.data.shape[1], n_others // X.data.shape[2]
    elif X.data.ndim != 1:
        _refuse(name, f"{name}.data has shape {X.data.shape}; it must have one dimension", X.format)
    ptr, indices = X.indptr, X.indices
    if ptr.size != n_lines + 1:
        _refuse(name, f"{name}.indptr has {ptr.size} entries, but {n_lines} {lines}s need {n_lines + 1}")
    if len(indices) != len(X.data):
        _refuse(name, f"{name}.indices has {len(indices)} entries and {name}.data {len(X.data)}", X.format)
    if ptr[0] != 0:
        _refuse(name, f"{name}.indptr begins with {ptr[0]} instead of 0", X.format)
    falls = np.flatnonzero(ptr[1:] < ptr[:-1])
    if falls.size:
        i = falls[0]
        _refuse(name, f"{name}.indptr falls from {ptr[i]} to {ptr[i + 1]} at {lines} {i}", X.format)
    if ptr[-1] > len(indices):
        _refuse(name, f"{name}.indptr ends at {ptr[-1]}, but only {len(indices)} entries are stored", X.format)
    used = indices[: int(ptr[-1])]
    if used.size and (used.min() < 0 or used.max() >= n_others):
        i = np.flatnonzero((used < 0) | (used >= n_others))[0]
        at = np.searchsorted(ptr, i, side="right") - 1
        _refuse(name, f"{name}.indices holds {used[i]} in {lines} {at}, but {name} has {n_others} {others}", X.format)
    ordinary = ptr.dtype == indices.dtype and ptr.dtype.isnative and ptr.dtype in (np.int32, np.int64)
    if ordinary:
        return X
    wide = np.int32 if max(len(indices), *X.shape) <= np.iinfo(np.int32).max else np.int64
    return type(X)((X.data[: used.size], used.astype(wide), ptr.astype(wide)), shape=X.shape)


def _coordinates(X, name):
    coords = X.coords if hasattr(X, "coords") else (X.row, X.col)
    sizes = [np.shape(part) for part in (*coords, X.data)]
    if len(coords) != 2 or len(set(sizes)) > 1 or len(sizes[0]) != 1:
        _refuse(name, f"its rows, columns and values have the shapes {sizes}, which must be the same", "coo")
    for part, what, n in zip(coords, ("row", "column"), X.shape, strict=True):
        if part.dtype.kind not in "iu":
            _refuse(name, f"its {what}s are {part.dtype}; they must be whole numbers", "coo")
        if part.size and (part.min() < 0 or part.max() >= n):
            bad = part[(part < 0) | (part >= n)][0]
            _refuse(name, f"it has an entry in {what} {bad}, but {n} {what}s", "coo")
    return X.astype(_wide(X.dtype), copy=False)  # conversion to another format sums duplicate entries


def _diagonals(X, name):
    _check_integers(X, name, ("offsets",))
    if X.data.ndim != 2 or len(X.data) != len(X.offsets) or np.unique(X.offsets).size < len(X.offsets):
        _refuse(name, f"{name}.data of shape {X.data.shape} does not fit the {len(X.offsets)} {name}.offsets", "dia")
    return X


def _lists(X, name):
    if len(X.rows) != X.shape[0] or list(map(len, X.rows)) != list(map(len, X.data)):
        _refuse(name, f"the lists in {name}.rows and {name}.data have different lengths", "lil")
    try:
        columns = [int(column) for row in X.rows for column in row]
    except (TypeError, ValueError):
        _refuse(name, f"{name}.rows holds something other than whole numbers", "lil")
    if columns and not 0 <= min(columns) <= max(columns) < X.shape[1]:
        bad = next(column for column in columns if not 0 <= column < X.shape[1])
        _refuse(name, f"it has an entry in column {bad}, but {X.shape[1]} columns", "lil")
    return X


def _dictionary(X, name):
    for key in X.keys():  # noqa: SIM118 - of this class the matrix itself iterates over rows
        if not all(0 <= place < n for place, n in zip(key, X.shape, strict=True)):
            _refuse(name, f"it has an entry at {key}, outside of its shape {X.shape}", "dok")
    return X


_CHECKS = {
    **dict.fromkeys(("csr", "csc", "bsr"), _compressed),
    "coo": _coordinates,
    "dia": _diagonals,
    "lil": _lists,
    "dok": _dictionary,
}
