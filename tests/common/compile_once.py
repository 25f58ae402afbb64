"""Each kernel is compiled by one of the processes that run tests side by side; the others wait for it and load it."""

import contextlib
import os
import zlib
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: processes may compile the same kernel
    fcntl = None


class _Locks:
    """Locks between processes, by name: single bytes of one file, which the system frees when a process ends.

    A process waits only for functions that the one it waits for calls, which never go in a circle. Were two names to
    share a byte, the system would see the circle and refuse the lock; the function is then compiled without it.
    """

    def __init__(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._held = {}

    @contextlib.contextmanager
    def of(self, name):
        byte = zlib.crc32(name.encode())
        with contextlib.suppress(OSError):
            if not self._held.get(byte):
                fcntl.lockf(self._file, fcntl.LOCK_EX, 1, byte)
        self._held[byte] = self._held.get(byte, 0) + 1
        try:
            yield
        finally:
            self._held[byte] -= 1
            if not self._held[byte]:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, byte)


def install(folder):
    """Let numba compile under a lock for each function that it keeps on disk, in the folder of its cache."""
    if fcntl is None:
        return
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    locks, compile_alone = _Locks(Path(folder) / "compiling.lock"), Dispatcher.compile

    def compile_once(self, signature):
        if not (hasattr(self._cache, "_cache_file") and self._can_compile):
            return compile_alone(self, signature)
        with global_compiler_lock, locks.of(f"{self._cache.cache_path} {self._cache._impl.filename_base} {signature}"):
            return compile_alone(self, signature)  # looks for it on disk first

    Dispatcher.compile = compile_once
