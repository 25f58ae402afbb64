"""Files whose damage is detected: archives of arrays (``.npz``), and checkpoints.

NumPy and SciPy allocate what the header of an array claims, unpack whatever a zip file contains, and accept any index
arrays. The functions here detect damage before they allocate memory, and their errors name the file.
"""

import hashlib
import math
import os
import pickle
import uuid
import zipfile
from contextlib import contextmanager, suppress

import joblib
import numpy as np
from scipy import sparse

from ..exceptions import DamagedFileError
from ._memory import available_memory
from ._sparse import well_formed

# An array of more than `_SMALL` bytes must not be compressed by more than `_RATIO`. The format allows a factor of 1032;
# arrays of counts are compressed by a factor of about 10.
_RATIO, _SMALL = 200, 2**26
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@contextmanager
def naming(path, how):
    """Context that turns errors of reading a file into a ValueError with its path.

    Errors because the file is missing, not readable or a folder are raised unchanged.
    """
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # a damaged archive may raise anything
        raise ValueError(f"{os.fspath(path)!r} cannot be read ({type(error).__name__}: {error}); {how}.") from error


def load_arrays(path, names, *, how="get the file again"):
    """Load arrays of an archive, as a dict by name; arrays whose name ends in "?" are optional.

    Raises
    ------
    ValueError
        If the file is damaged, an array is missing or contains Python objects, or there is too little memory.
    """
    with naming(path, how):
        _refuse_false_sizes(path)
        with np.load(path, allow_pickle=False) as file:
            lacking = [name for name in names if name[-1] != "?" and name not in file]
            if lacking:
                raise ValueError(f"it has no array {lacking[0]!r}, only {', '.join(map(repr, file.files))}")
            return {name.rstrip("?"): file[name.rstrip("?")] for name in names if name.rstrip("?") in file}


def load_sparse(path, *, how="write it by scipy.sparse.save_npz"):
    """Load and check a sparse matrix of numbers that `scipy.sparse.save_npz` saved.

    Raises
    ------
    ValueError
        If the file is damaged, its indices do not describe a matrix, or there is too little memory.
    """
    with naming(path, how):
        _refuse_false_sizes(path)
        X = sparse.load_npz(path)
        if X.dtype.kind not in "biuf":
            raise ValueError(f"its entries are {X.dtype}, not numbers")
        lines = 8 * (sum(X.shape) + 1)  # conversion between formats needs an index for each row or column
        if lines > available_memory():
            raise ValueError(f"its shape {X.shape} takes {lines / 2**30:.3g} GiB, more than there is")
        return well_formed(X, "the matrix")


def _refuse_false_sizes(path):
    """Raise if an array of an archive differs in size from its header, or if all arrays take too much memory."""
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


# -- checkpoints ---------------------------------------------------------------------------------------------------


class _Sealed:
    """A value in pickled form, whose own pickle is a call of `unsealed` with these bytes and their digest.

    `joblib.load` and `pickle.load` can therefore read a checkpoint too, and detect changed bytes before they unpickle
    the value.
    """

    mark = __name__.encode()  # at the beginning of the file, as the module of `unsealed`

    def __init__(self, value):
        self.content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)

    def __reduce__(self):
        return unsealed, (hashlib.sha256(self.content).digest(), self.content)


class _SealReader(pickle.Unpickler):
    """Unpickler that only reads the digest and the content of a sealed file, and refuses all other pickles."""

    def find_class(self, module, name):
        if (module, name) != (__name__, unsealed.__name__):
            raise pickle.UnpicklingError(f"it begins with {module}.{name}")
        return lambda digest, content: (digest, content)


def unsealed(digest, content):
    """The value whose pickle is ``content``; raises if ``digest`` is not the digest of the content."""
    if hashlib.sha256(content).digest() != digest:
        raise DamagedFileError(
            "The file is damaged: its bytes are not those that were saved. Go back to an older copy, or fit again."
        )
    return pickle.loads(content)


@contextmanager
def replacing(path):
    """Context with an open binary file that replaces the file at ``path`` at its end, or leaves it after an error.

    If the machine stops, the file at ``path`` is either the old or the new one, complete. If several processes write to
    the same path, the last one remains.
    """
    part = f"{os.fspath(path)}.{uuid.uuid4().hex[:12]}.part"
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.remove(part)
        raise
    with suppress(OSError):  # some systems cannot open a folder
        folder = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_checkpoint(value, path):
    """Save a value atomically, see `replacing`."""
    with replacing(path) as file:
        pickle.dump(_Sealed(value), file, protocol=pickle.HIGHEST_PROTOCOL)


def read_checkpoint(path):
    """Load a value saved by `write_checkpoint` or `joblib.dump`; raises `DamagedFileError` if the file is damaged."""
    with open(path, "rb") as file:
        is_sealed = _Sealed.mark in file.read(100)
        file.seek(0)
        if not is_sealed:  # saved by joblib.dump, without a digest
            return _read_unsealed(path)
        try:
            digest, content = _SealReader(file).load()
            is_whole = not file.read(1)
        except Exception as error:
            raise _damaged(path, f"{type(error).__name__}: {error}") from error
    if not is_whole:
        raise _damaged(path, "there are bytes after its end")
    try:
        return unsealed(digest, content)
    except DamagedFileError:
        raise _damaged(path, "its bytes are not those that were saved") from None


def _read_unsealed(path):
    """Load a file without a digest, in which some damage stays undetected."""
    try:
        return joblib.load(path)
    except Exception as error:
        raise _damaged(path, f"{type(error).__name__}: {error}", " or is not a model that was saved") from error


def _damaged(path, why, alternatively=""):
    return DamagedFileError(
        f"{os.fspath(path)!r} is damaged{alternatively} ({why}). Go back to an older copy, or fit again."
    )
