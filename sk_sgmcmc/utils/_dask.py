"""Support of Dask arrays: methods with results row by row return a lazy Dask array."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial, wraps
from itertools import pairwise
from typing import Any, cast

import numpy as np
from scipy import sparse

from ._containers import is_dask, is_dask_array, refuse_dask
from ._sklearn import check_is_fitted, output_container
from ._sparse import well_formed
from ._tables import rows_of_table
from ._typing import Function


def lazy_for_dask(
    width: Callable[[Any], int | None] | None = None,
    *,
    dtype: Any = np.float64,
    row_arguments: tuple[str, ...] = (),
    draws: tuple[str, ...] | None = None,
) -> Callable[[Function], Function]:
    """Decorate a method with results row by row, so that it returns a lazy Dask array where X is a Dask array.

    The method is called block by block, and only when Dask computes the result. The fitted model is copied at the call,
    without attributes that the method does not need. The copy is one object in the graph, on which all blocks depend.

    Parameters
    ----------
    width : callable, optional
        Function from the estimator to the number of columns of the result. None: one number per row.
    dtype : dtype, callable or None, default=numpy.float64
        Dtype of the result, or a function from the estimator to it. None: the precision of X, as in `as_precise_as`.
    row_arguments : tuple of str, default=()
        Names of arguments with one row for each row of X.
    draws : tuple of str, optional
        Names of the arrays in ``samples_`` that the method reads. None: all of them.

    Returns
    -------
    callable
        The decorator.
    """

    def decorate(method: Function) -> Function:
        @wraps(method)
        def wrapped(self, X, **given):
            if not is_dask_array(X):
                return method(self, X, **given)
            X = _checked_blocks(self, method.__name__, X, given)
            tables = {name: given.pop(name) for name in row_arguments if given.get(name) is not None}
            for name, value in given.items():
                refuse_dask(value, name)
            columns = None if width is None else width(self)
            kind = (np.float32 if X.dtype == np.float32 else np.float64) if dtype is None else dtype
            kind = np.dtype(kind(self) if callable(kind) and not isinstance(kind, type) else kind)
            return _lazy_result(_snapshot(self, draws), method.__name__, X, tables, given, columns, kind)

        return cast(Function, wrapped)

    return decorate


def _checked_blocks(estimator, method, X, given):
    """X with a single block of columns; raises unless the fitted estimator can read its rows."""
    check_is_fitted(estimator)
    container = output_container(estimator, method)
    if container != "default":
        raise TypeError(
            f"X is a Dask array, but the output is set to {container}, which would load it into memory; "
            'use set_output(transform="default").'
        )
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a Dask array of shape {X.shape}; pass one row for each sample.")
    if not (isinstance(X._meta, np.ndarray) or sparse.issparse(X._meta)):
        raise TypeError(f"The blocks of X are of type {type(X._meta).__name__}; pass arrays of NumPy or SciPy.")
    if math.isnan(X.shape[1]):
        raise ValueError("The number of columns of X is unknown; call X.compute_chunk_sizes() first.")
    estimator._refuse_width(X.shape[1], **given)
    if X.numblocks[1] == 1:
        return X
    if sparse.issparse(X._meta):
        raise ValueError(f"X has {X.numblocks[1]} blocks of columns; a row must lie in one: pass X.rechunk({{1: -1}}).")
    return X.rechunk({1: -1})


def _snapshot(estimator, draws):
    """A copy of a fitted estimator that a later fit does not change, without attributes that predictions do not need.

    ``draws`` names the arrays of ``samples_`` to include. None: all.
    """
    model = copy(estimator)
    for name in estimator._unused_by_predictions:
        model.__dict__.pop(name, None)
    if draws is not None:
        model.samples_ = {name: model.samples_[name] for name in draws if name in model.samples_}
    model.n_jobs = 1  # Dask runs blocks in parallel
    return model


def _lazy_result(model, method, X, tables, given, columns, dtype):
    """The Dask array of results, (n_rows, columns), or (n_rows,) if columns is None."""
    from dask import delayed

    width = columns or 1
    compute = partial(_result_of_block, method=method, names=tuple(tables), given=given, width=width, out=dtype)
    lazy = X.map_blocks(
        compute,
        *(_table_blocks(table, name, X) for name, table in tables.items()),
        estimator=delayed(model, pure=False, traverse=False),
        name=f"{method}-{uuid.uuid4().hex}",
        chunks=(X.chunks[0], (width,)),
        dtype=dtype,
        meta=np.empty((0, width), dtype),
    )
    return lazy[:, 0] if columns is None else lazy


def _result_of_block(block, *tables, estimator, method, names, given, width, out, block_id):
    """The results for one block, (n_rows, width)."""
    if block.shape[0] == 0:
        return np.empty((0, width), out)
    try:
        results = getattr(estimator, method)(block, **given, **dict(zip(names, tables, strict=True)))
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Block {block_id[0]} of X: {error}") from error
    return np.asarray(results, dtype=out).reshape(-1, width)


# -- tables with one row for each row of X -------------------------------------------------------------------------


def _table_blocks(table, name, X):
    """A table as a Dask array whose blocks correspond to the blocks of X; a block may be an object of any type."""
    if is_dask_array(table):
        parts = _blocks_of_array(table, name, X)
    elif is_dask(table) and hasattr(table, "to_delayed") and hasattr(table, "to_dask_array"):
        parts = (table.to_frame() if table.ndim == 1 else table).to_delayed()
    else:
        refuse_dask(table, name)
        parts = _pieces(table, name, X)
    if len(parts) != X.numblocks[0]:
        raise ValueError(
            f"{name} has {len(parts)} blocks and X has {X.numblocks[0]}; pass both in blocks of the same rows, for "
            "example from the same partitions."
        )
    import dask.array as da
    from dask.highlevelgraph import HighLevelGraph

    key = f"{name}-{uuid.uuid4().hex}"
    graph = {(key, i, 0): (_unchanged, part.key) for i, part in enumerate(parts)}
    graph = HighLevelGraph.from_collections(key, graph, dependencies=parts)
    return da.Array(graph, key, chunks=(X.chunks[0], (1,)), dtype=object)


def _unchanged(part):
    return part


def _blocks_of_array(table, name, X):
    """The blocks of a Dask array of one or two dimensions, cut at the rows at which X is cut, if these are known."""
    if table.ndim == 1:
        table = table[:, None]
    table = table.rechunk({1: -1})
    if table.chunks[0] != X.chunks[0] and not math.isnan(table.shape[0] + X.shape[0]):
        _refuse_other_length(table.shape[0], X.shape[0], name)
        table = table.rechunk({0: X.chunks[0]})
    return table.to_delayed(optimize_graph=False)[:, 0]


def _pieces(table, name, X):
    """The rows of a table in memory, cut like the blocks of X, as a list of delayed objects."""
    from dask import delayed

    if math.isnan(X.shape[0]):
        raise ValueError(
            f"{name} is in memory, but how many rows a block of X has is unknown; call X.compute_chunk_sizes() first, "
            f"or pass {name} as a Dask array or DataFrame in the same blocks."
        )
    table = well_formed(table, name)
    for column in table.values() if isinstance(table, Mapping) else [table]:
        _refuse_other_length(column.shape[0] if hasattr(column, "shape") else len(column), X.shape[0], name)
    ends = np.cumsum([0, *X.chunks[0]]).tolist()
    pieces = [rows_of_table(table, slice(start, stop)) for start, stop in pairwise(ends)]
    return [delayed(piece, pure=False, traverse=False) for piece in pieces]


def _refuse_other_length(n_rows, n_documents, name):
    if n_rows != n_documents:
        raise ValueError(f"{name} has {n_rows} rows and X has {n_documents}; pass one row of {name} for each.")
