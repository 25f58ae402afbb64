"""Files that are replaced as a whole, and whose damage is detected.

A file is a pickle of one call, of `restore` with a digest and the bytes of a second pickle. So `joblib.load` and
`pickle.load` read it too, and detect a damaged byte before they unpickle anything of the value.
"""

import hashlib
import os
import pickle
import uuid
from contextlib import suppress

import joblib

from ..exceptions import DamagedFileError

_NAMES = (b"sk_sgmcmc.utils._sealed", b"restore")  # location of `restore`: saved files name it
# The file, in the operations of a pickle: protocol 5; this function; bytes, 32 of them; bytes, whose number is in eight
# bytes; and, after them, the call.
_HEAD = b"\x80\x05c%s\n%s\nC\x20" % _NAMES
_LENGTH, _TAIL = b"\x8e", b"\x86R."
_N_DIGEST, _N_LENGTH = 32, 8


def restore(digest, content):
    """The value whose pickle is ``content``; raises if the digest does not match these bytes."""
    if hashlib.sha256(content).digest() != digest:
        raise DamagedFileError(
            "The file is damaged: its bytes are not those that were saved. Go back to an older copy, or fit again."
        )
    return pickle.loads(content)


def write(value, path):
    """Save a value so that the file at ``path`` is the old one or the new one, whole, whenever the machine stops.

    Several processes may write to one path: the last one wins.
    """
    content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    part = f"{path}.{uuid.uuid4().hex[:12]}.part"
    try:
        with open(part, "xb") as file:
            file.write(_HEAD + hashlib.sha256(content).digest())
            file.write(_LENGTH + len(content).to_bytes(_N_LENGTH, "little"))
            file.write(content)
            file.write(_TAIL)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.remove(part)
        raise
    with suppress(OSError):  # not every system can open a folder
        folder = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read(path):
    """The value saved in a file by `write` or by `joblib.dump`; raises `DamagedFileError` if it is damaged."""
    with open(path, "rb") as file:
        head = file.read(len(_HEAD))
        if not any(name in head for name in _NAMES):  # saved by an earlier version, or by joblib.dump
            return _read_unsealed(path)
        rest = file.read()
    begin = _N_DIGEST + len(_LENGTH) + _N_LENGTH
    content = memoryview(rest)[begin : -len(_TAIL)]
    frame = rest[_N_DIGEST:begin], rest[-len(_TAIL) :]
    if head != _HEAD or frame != (_LENGTH + len(content).to_bytes(_N_LENGTH, "little"), _TAIL):
        raise _damaged(path, "it is cut short, or its frame has changed")
    try:
        return restore(rest[:_N_DIGEST], content)
    except DamagedFileError:
        raise _damaged(path, "its bytes are not those that were saved") from None


def _read_unsealed(path):
    """A file without a checksum, in which only some damage is detected."""
    try:
        return joblib.load(path)
    except Exception as error:
        raise _damaged(path, f"{type(error).__name__}: {error}", " or is not a model that was saved") from error


def _damaged(path, why, alternatively=""):
    return DamagedFileError(
        f"{os.fspath(path)!r} is damaged{alternatively} ({why}). Go back to an older copy, or fit again."
    )
