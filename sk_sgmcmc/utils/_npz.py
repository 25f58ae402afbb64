"""Archives of arrays (``.npz``), read with checks.

NumPy and SciPy allocate what the header of an array claims, unpack whatever a zip file holds, and take any index
arrays. Here, damage is refused before anything is allocated, and the error names the file.
"""

import math
import os
import zipfile
from contextlib import contextmanager

import numpy as np
from scipy import sparse

from ._memory import available_memory
from ._sparse import well_formed

# Zip stores at most 1032 bytes in one; counts, by a factor of about ten.
_RATIO, _SMALL = 200, 2**26
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@contextmanager
def naming(path, how):
    """Errors of reading a file, of whatever kind, become a ValueError with its name; a missing file stays one."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # a damaged archive may raise anything
        raise ValueError(f"{os.fspath(path)!r} cannot be read ({type(error).__name__}: {error}); {how}.") from error


def load_arrays(path, names, *, how="get the file again"):
    """Arrays of an archive by name, a dict; those with names that end in "?" may be missing.

    Raises
    ------
    ValueError
        If the file is damaged, an array is missing or holds objects, or they take more memory than there is.
    """
    with naming(path, how):
        _refuse_false_sizes(path)
        with np.load(path, allow_pickle=False) as file:
            lacking = [name for name in names if name[-1] != "?" and name not in file]
            if lacking:
                raise ValueError(f"it has no array {lacking[0]!r}, only {', '.join(map(repr, file.files))}")
            return {name.rstrip("?"): file[name.rstrip("?")] for name in names if name.rstrip("?") in file}


def load_sparse(path, *, how="write it by scipy.sparse.save_npz"):
    """A sparse matrix of numbers that `scipy.sparse.save_npz` saved, checked.

    Raises
    ------
    ValueError
        If the file is damaged, its indices do not describe a matrix, or it takes more memory than there is.
    """
    with naming(path, how):
        _refuse_false_sizes(path)
        X = sparse.load_npz(path)
        if X.dtype.kind not in "biuf":
            raise ValueError(f"its entries are {X.dtype}, not numbers")
        lines = 8 * (sum(X.shape) + 1)  # in another format, each row and column takes a number
        if lines > available_memory():
            raise ValueError(f"its shape {X.shape} takes {lines / 2**30:.3g} GiB, more than there is")
        return well_formed(X, "the matrix")


def _refuse_false_sizes(path):
    """Raise if an array of an archive is not of the size that its header claims, or if all take too much memory."""
    with zipfile.ZipFile(path) as archive:
        total = 0
        for member in archive.infolist():
            packed, size = member.compress_size, member.file_size
            if size > _SMALL and size > _RATIO * packed:
                raise ValueError(f"{member.filename} claims {size / 2**30:.3g} GiB in {packed} bytes")
            total += size
            if member.filename.endswith(".npy"):
                _refuse_false_header(archive, member)
    if total > available_memory():
        raise ValueError(f"its arrays take {total / 2**30:.3g} GiB, more than there is")


def _refuse_false_header(archive, member):
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"{member.filename} has a header of version {version}")
        shape, _, dtype = _HEADERS[version](file)
        if dtype.hasobject:
            raise ValueError(f"{member.filename} holds Python objects, which are not read")
        claimed = math.prod(shape) * dtype.itemsize
        if claimed != member.file_size - file.tell():
            raise ValueError(
                f"{member.filename} claims the shape {shape}, {claimed} bytes, but holds {member.file_size} in all"
            )
