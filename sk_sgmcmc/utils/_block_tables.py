"""Metadata that are passed in blocks, joined into one table."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from scipy import sparse

from ._containers import is_dask
from ._sparse import well_formed
from .blocks import load_block


def is_in_tables(metadata):
    """Whether metadata are in blocks: a list of tables, a function that returns them, or a Dask collection."""
    if is_dask(metadata) or (isinstance(metadata, Callable) and not hasattr(metadata, "columns")):
        return True
    return isinstance(metadata, (list, tuple)) and len(metadata) > 0 and _is_table(metadata[0])


def _is_table(x):
    return isinstance(x, Mapping) or hasattr(x, "columns") or hasattr(x, "to_frame") or np.ndim(x) == 2 or is_dask(x)


def joined_metadata(metadata, blocks=None):
    """Join metadata of all documents into one table.

    Parameters
    ----------
    metadata : object
        A table of all documents, or one for each block in a form that `is_in_tables` accepts.
    blocks : CountBlocks or None
        Blocks of counts, whose lengths the tables must have; None to skip this check.

    Returns
    -------
    table : object
        As `MetadataEncoder` takes it; None if ``metadata`` is None.
    """
    if isinstance(metadata, Iterator):
        raise TypeError(
            f"metadata is a {type(metadata).__name__}, which can be read only once; pass a list of tables, one for "
            "each block, or the function that makes it."
        )
    if metadata is None or not is_in_tables(metadata):
        return metadata
    tables, names = [], None
    for i, table in enumerate(_tables(metadata)):
        name = f"metadata of block {i}" if blocks is None else f"metadata of {blocks.name_of(i)}"
        if not (_is_table(table) or np.ndim(table) == 1):
            raise TypeError(
                f"{name} is of type {type(table).__name__}; pass a frame, a dict of columns, an array or a "
                "sparse matrix."
            )
        table = well_formed(load_block(table, name) if is_dask(table) else table, name)
        if blocks is not None and i < len(blocks.sizes):
            _refuse_other_length(table, blocks.sizes[i].n_docs, name, blocks.name_of(i))
        names = _same_columns(table, names, name)
        tables.append(table)
    if blocks is not None and len(tables) != len(blocks.sizes):
        raise ValueError(
            f"metadata has {len(tables)} tables and X has {len(blocks.sizes)} blocks; give one table for each block, "
            "in the same order, or one for all documents."
        )
    return _stacked(tables)


def _tables(metadata):
    if not is_dask(metadata):
        return _made_by(metadata) if isinstance(metadata, Callable) else metadata
    if hasattr(metadata, "to_dask_array"):
        return (metadata.to_frame() if metadata.ndim == 1 else metadata).to_delayed()
    if not hasattr(metadata, "rechunk"):
        raise TypeError(f"metadata is a Dask {type(metadata).__name__}; pass a Dask DataFrame, Series or array.")
    metadata = metadata[:, None] if metadata.ndim == 1 else metadata
    return metadata.rechunk({1: -1}).to_delayed()[:, 0]


def _made_by(function):
    made = function()
    if not isinstance(made, Iterable) or _is_table(made):
        raise TypeError(
            f"The function that makes metadata returned a {type(made).__name__}; it must return an iterator over "
            "tables, one for each block, for example iter([table1, table2])."
        )
    return made


def n_rows(table):
    """Number of rows of a table."""
    column = next(iter(table.values()), []) if isinstance(table, Mapping) else table
    return column.shape[0] if hasattr(column, "shape") else len(column)


def _refuse_other_length(table, n_docs, name, block):
    if n_rows(table) != n_docs:
        raise ValueError(
            f"{name} has {n_rows(table)} rows, but {block} holds {n_docs} documents; give one row for each document."
        )


def _same_columns(table, names, name):
    """Names of the columns, or their number without names; raises if a table differs from the first one."""
    found = list(table) if isinstance(table, Mapping) else list(getattr(table, "columns", []))
    if not found:
        found = 1 if np.ndim(table) < 2 and not sparse.issparse(table) else np.shape(table)[1]
    if names is not None and (set(found) != set(names) if isinstance(found, list) is isinstance(names, list) is True
                              else found != names):  # fmt: skip
        raise ValueError(f"{name} has the columns {found}, but that of the first block {names}; give all the same.")
    return names if names is not None else found


def _stacked(tables):
    """Concatenate tables of one type."""
    first = tables[0]
    if len(tables) == 1:
        return first
    if len({type(table).__module__.partition(".")[0] for table in tables}) > 1:
        kinds = ", ".join(dict.fromkeys(type(table).__name__ for table in tables))
        raise TypeError(f"metadata of the blocks are of different kinds: {kinds}; give all in the same form.")
    if isinstance(first, Mapping):
        return {name: [value for table in tables for value in table[name]] for name in first}
    if sparse.issparse(first):
        return sparse.csr_array(sparse.vstack(tables))
    if hasattr(first, "iloc"):
        import pandas

        return pandas.concat(tables, ignore_index=True)
    if hasattr(first, "columns") or hasattr(first, "to_frame"):
        import polars

        frames = [table.to_frame() if hasattr(table, "to_frame") and not hasattr(table, "columns") else table
                  for table in tables]  # fmt: skip
        return polars.concat([frame.select(frames[0].columns) for frame in frames])
    return np.concatenate([np.asarray(table) if hasattr(table, "dtype") else np.array(table, dtype=object)
                           for table in tables])  # fmt: skip
