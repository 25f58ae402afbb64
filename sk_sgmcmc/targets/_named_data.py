"""Rows of a log density whose columns have names, which are arguments of the function."""

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from sklearn.utils import check_array

from ..kernels.models import named
from ..utils._alignment import aligned
from ..utils._containers import refuse_containers

_EXACT = 2**53  # whole numbers up to here are float64 numbers
_TYPES = "biuf"  # of NumPy: booleans, whole numbers with and without sign, others


def names_in(data):
    """Names of data in a dict or a table; of an array, none."""
    if isinstance(data, Mapping):
        names = list(data)
    else:
        names = list(data.columns) if hasattr(data, "columns") else []
    return [name for name in names if isinstance(name, str)]


def plain_rows(data):
    """Rows of an array or a table of numbers, as one matrix."""
    if isinstance(data, Mapping):
        raise ValueError(
            "log_density takes rows, but data is a dict: let it take names of data instead, or give a matrix."
        )
    columns = isinstance(data, tuple) and data and np.ndim(data[0]) > 0
    if columns or np.ndim(data) == 1:
        given = f"is a tuple of {len(data)} arrays" if columns else f"has shape {np.shape(data)}"
        raise ValueError(
            f'data {given}. Name its parts, data={{"X": X, "y": y}}, and let log_density take X and y as arguments; or '
            "give one matrix, with a row for each observation: np.column_stack([y, X])."
        )
    return check_array(data, dtype=np.float64, input_name="data", order="C")


def named_rows(data, names):
    """One matrix of the parts of data that have these names, and where they are.

    Returns
    -------
    rows : ndarray of shape (n_samples, n_columns)
    columns : tuple of (name, kind, first column, shape of a row)
    """
    values = aligned(None, **{name: data[name] for name in names})
    parts = {name: _part(name, value) for name, value in zip(names, values, strict=True)}
    lengths = {name: len(part) for name, part in parts.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise ValueError(f"The parts of data must have a row for each observation; they have {shown}.")
    columns, blocks, at = [], [], 0
    for name, part in parts.items():
        kind = {"b": named.BOOLEAN, "f": named.NUMBER}.get(part.dtype.kind, named.WHOLE)
        columns.append((name, kind, at, part.shape[1:]))
        blocks.append(part.reshape(len(part), -1).astype(np.float64))
        at += blocks[-1].shape[1]
    return np.ascontiguousarray(np.concatenate(blocks, axis=1)), tuple(columns)


def _part(name, value):
    """An array of numbers, checked."""
    shown = f"data[{name!r}]"
    refuse_containers(value, shown)
    part = np.asarray(value)
    if part.dtype == object:
        with suppress(TypeError, ValueError):
            part = part.astype(float)  # for example numbers of pandas that may be missing
    if part.dtype.kind not in _TYPES:
        raise ValueError(
            f"{shown} must hold numbers, got {part.dtype}; give categories as whole numbers, such as the codes of "
            "pandas.factorize."
        )
    if part.ndim == 0:
        raise ValueError(f"{shown}={part} has no rows: write a number that all rows share into the function itself.")
    if part.size == 0:
        raise ValueError(f"{shown} is empty, of shape {part.shape}.")
    if part.dtype.kind == "f" and not np.all(np.isfinite(part)):
        where = int(np.flatnonzero(~np.isfinite(part.reshape(len(part), -1)).all(axis=1))[0])
        raise ValueError(f"{shown} holds NaN or infinity, first in row {where}; leave such rows out.")
    if part.dtype.kind in "iu" and max(abs(int(part.min())), abs(int(part.max()))) > _EXACT:
        raise ValueError(f"{shown} holds whole numbers beyond 2**53; subtract their least, or give codes.")
    return part
