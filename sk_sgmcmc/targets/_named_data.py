"""Data that a user's log density takes by name, converted to a matrix of rows and a vector of constants."""

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from sklearn.utils import check_array

from ..kernels.models import named
from ..utils._containers import refuse_containers
from ..utils._tables import aligned

_EXACT = 2**53  # float64 represents whole numbers up to here exactly
_TYPES = "biuf"  # kinds of NumPy dtypes: booleans, signed and unsigned integers, floating-point numbers


def names_in(data):
    """Names of the data: keys of a dict or columns of a table. An array has none."""
    if isinstance(data, Mapping):
        names = list(data)
    else:
        names = list(data.columns) if hasattr(data, "columns") else []
    return [name for name in names if isinstance(name, str)]


def plain_rows(data):
    """The rows of an array or a table of numbers as one float64 matrix."""
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
    """The data of these names as a matrix of the observations and a vector of the constants.

    Observations are arrays that share the length of their first axis. If arrays have several lengths, observations are
    those of the length with the most rows in total. Numbers and other arrays are constants. The distinction matters
    only for minibatches, which consist of rows of the observations.

    Returns
    -------
    rows : ndarray of shape (n_samples, n_columns)
    columns : tuple of (name, kind, first column, shape of a row)
    constants : ndarray of shape (n_constants,)
    fixed : tuple of (name, kind, first constant, shape)
    """
    parts, observed = arrays_of(data, names)
    n_rows = len(parts[observed[0]]) if observed else 1
    columns, fixed, blocks, constants = [], [], [np.zeros((n_rows, 0))], [np.zeros(0)]
    for name, part in parts.items():
        kind = {"b": named.BOOLEAN, "f": named.NUMBER}.get(part.dtype.kind, named.WHOLE)
        if name in observed:
            columns.append((name, kind, sum(block.shape[1] for block in blocks), part.shape[1:]))
            blocks.append(part.reshape(n_rows, -1).astype(np.float64))
        else:
            fixed.append((name, kind, sum(block.size for block in constants), part.shape))
            constants.append(part.ravel().astype(np.float64))
    rows = np.concatenate(blocks, axis=1) if observed else np.zeros((1, 1))
    return np.ascontiguousarray(rows), tuple(columns), np.concatenate(constants), tuple(fixed)


def arrays_of(data, names):
    """The data of these names as a dict of arrays, and the names of the observations, whose rows are aligned."""
    parts = {name: _array(name, data[name]) for name in names}
    lengths = [len(part) for part in parts.values() if part.ndim]
    n_rows = max(lengths, key=lambda n: (n * lengths.count(n), n), default=1)
    observed = [name for name, part in parts.items() if part.ndim and len(part) == n_rows]
    values = aligned(None, **{name: data[name] for name in observed})
    return parts | {name: _array(name, value) for name, value in zip(observed, values, strict=True)}, observed


def _array(name, value):
    """Convert a value to an array of numbers; raises if it is empty, not numeric or not finite."""
    shown = f"data[{name!r}]"
    refuse_containers(value, shown)
    part = np.asarray(value)
    if part.dtype == object:
        with suppress(TypeError, ValueError):
            part = part.astype(float)  # for example nullable numbers of pandas
    if part.dtype.kind not in _TYPES:
        raise ValueError(
            f"{shown} must hold numbers, got {part.dtype}; give categories as whole numbers, such as the codes of "
            "pandas.factorize."
        )
    if part.size == 0:
        raise ValueError(f"{shown} is empty, of shape {part.shape}.")
    if part.ndim == 0 and not np.isfinite(part):
        raise ValueError(f"{shown} must be finite; got {part}.")
    if part.dtype.kind == "f" and not np.all(np.isfinite(part)):
        where = int(np.flatnonzero(~np.isfinite(part.reshape(len(part), -1)).all(axis=1))[0])
        raise ValueError(f"{shown} holds NaN or infinity, first in row {where}; leave such rows out.")
    if part.dtype.kind in "iu" and max(abs(int(part.min())), abs(int(part.max()))) > _EXACT:
        raise ValueError(f"{shown} holds whole numbers beyond 2**53; subtract their least, or give codes.")
    return part
