"""Compilation of functions: two decorators and the table of signatures.

``@helper``
    For a function that only other kernels call. It is compiled into its caller.
``@kernel(SIGNATURE)``
    For a function that Python calls, or that is passed to a runner as an argument. It is compiled once, for that
    signature only, at its first use. Another dtype or memory order raises ``TypeError`` instead of quietly
    compiling a second variant.

Functions are passed as ``numba.types.FunctionType``, because numba then caches the compiled loop on disk. Loops that
take ordinary jitted functions or closures as arguments are compiled again in every process.

Only this module and the loops that take kernels use ``FunctionType`` (numba calls it experimental). Kernels
never raise, they return a status: `OK`, or the code of an error.
"""

import contextlib
import hashlib
import sys
import threading
import warnings
from functools import cache, wraps
from pathlib import Path

import numba
import numpy as np
from numba import types
from numba.core.caching import FunctionCache, IndexDataCacheFile

from ._symbols import OwnNames

OK = 0
NOT_FINITE = 1  # the state became infinite or NaN: the step size is too large

# Sums may be reordered and fused; NaN and inf keep their meaning, which full fastmath would not guarantee.
FAST_SUMS = {"reassoc", "contract"}

RNG = numba.typeof(np.random.default_rng(0))
F8 = types.float64
I8 = types.int64
BOOL = types.boolean


def read_only(dtype, ndim, layout="C"):
    """Array type that accepts both writable and read-only arrays (joblib passes read-only memory maps)."""
    return types.Array(dtype, ndim, layout, readonly=True)


def writable(dtype, ndim, layout="C"):
    """Array type of an output or a state that the kernel changes in place."""
    return types.Array(dtype, ndim, layout)


F1, F2, F3 = (writable(F8, n) for n in (1, 2, 3))
F1_IN, F2_IN = (read_only(F8, n) for n in (1, 2))
I1, I2 = (writable(I8, n) for n in (1, 2))
I1_IN = read_only(I8, 1)

# One signature for every sampler's transition kernels, see ``doc/developer/kernels.rst``:
# (theta, aux, scalars, signal, extra, hyper, rows, rng) -> status
TRANSITION = I8(F2, F3, F1, F2_IN, F1_IN, F1_IN, I1_IN, RNG)
# A geometry's functions for a Metropolis trajectory. `FLOW` moves along the flow of the kinetic energy for a time:
# (theta, momentum, space, time) -> status. `PROJECT` projects a momentum onto the tangent space:
# (theta, momentum, space) -> status. ``space`` is the inverse mass on flat space, and the table of blocks on a product
# of manifolds.
FLOW = I8(F2, F2, F2_IN, F8)
PROJECT = I8(F2, F2, F2_IN)

_lock = threading.RLock()
# Messages about problems with numba's cache on disk, by kind, and the kinds of messages that were already issued.
_troubles, _warned = {}, set()


@cache
def _digest_of(folder):
    """A digest of the text of all modules in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class _CacheFiles:
    """The cache files of one compiled function: an index, and machine code for each signature.

    Their names depend on everything that determines the code. numba names them by the function, and compares the time
    and size of its source file. This is not enough, because the code includes helpers from other files. Besides, numba
    writes the index before the code, so a second process could meanwhile load code of another signature, source text or
    numba version.
    """

    def __init__(self, folder, name, stamp):
        self._folder, self._name, self._stamp = folder, name, stamp
        self._latest = None

    def _of(self, key):
        text = f"{numba.__version__} {_digest_of(Path(__file__).parent)} {key}"
        name = f"{self._name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self._latest = IndexDataCacheFile(self._folder, name, self._stamp)
        return self._latest

    def load(self, key):
        return self._of(key).load(key)

    def save(self, key, data):
        self._of(key).save(key, data)

    def flush(self):
        """Empty the index read last, so that its files are written again."""
        self._latest.flush()


class _GuardedCache(FunctionCache):
    """numba's cache of a function on disk, which treats unreadable files as missing and ignores failed writes.

    No warnings are issued here, because numba calls these methods during compilation, which a warning turned into an
    error would interrupt. `_warn_of_troubles` issues them afterwards.
    """

    def __init__(self, function):
        super().__init__(function)
        impl = self._impl
        self._cache_file = _CacheFiles(self._cache_path, impl.filename_base, impl.locator.get_source_stamp())

    def load_overload(self, sig, target_context):
        try:
            found = super().load_overload(sig, target_context)
            if found is None:
                _say_that_it_compiles()
            return found
        except Exception as error:  # A damaged pickle may raise any exception.
            try:
                self.flush()
            except OSError:
                self.disable()
            _troubles["read"] = (
                f"numba's cache in {self.cache_path} holds files that cannot be read ({_text(error)}); their kernels "
                "were compiled again. If this happens again, delete that folder, or set the environment variable "
                "NUMBA_CACHE_DIR to another folder, writable only by you."
            )
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _troubles["write"] = (
                f"numba's cache in {self.cache_path} cannot be written ({_text(error)}), so kernels are compiled again "
                "in each process. Make room there, or set the environment variable NUMBA_CACHE_DIR to another folder, "
                "writable only by you."
            )


def _say_that_it_compiles():
    """Tell interactive users once per process that kernels are being compiled."""
    if "compiling" in _warned:
        return
    _warned.add("compiling")
    with contextlib.suppress(Exception):  # Never let a failed progress line abort a fit.
        if sys.stderr.isatty() or "ipykernel" in sys.modules:
            sys.stderr.write(
                "\rsk_sgmcmc is compiling, once on each machine; python -m sk_sgmcmc.warm_up does it ahead of time.\n"
            )
            sys.stderr.flush()


def _text(error):
    return f"{type(error).__name__}: {error}"


def _warn_of_troubles():
    """Warn once per process about each kind of problem with the cache."""
    for kind, message in list(_troubles.items()):
        if kind not in _warned:
            _warned.add(kind)  # Before the warning, which may be an error, so that the next call continues.
            warnings.warn(message, RuntimeWarning, stacklevel=3)


def _njit(function, **options):
    """`numba.njit` with a disk cache, or without one if no location is writable."""
    options["error_model"] = "numpy"  # Division by zero must give inf, because kernels never raise.
    dispatcher = numba.njit(nogil=True, pipeline_class=OwnNames, **options)(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT=1
        return function
    try:
        dispatcher._cache = _GuardedCache(function)  # ``cache=True`` would set numba's own class.
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        _troubles["place"] = (
            "numba found no writable place for its cache, so kernels are compiled again in each process; "
            "set the environment variable NUMBA_CACHE_DIR to a folder writable only by you to avoid that."
        )
    return dispatcher


def _interpreted(function):
    """A function for NUMBA_DISABLE_JIT=1, without NumPy's warnings of 1/0, which compiled code does not issue."""

    @wraps(function)
    def quiet(*args):
        with np.errstate(all="ignore"):
            return function(*args)

    return quiet


def helper(function=None, *, fast_sums=False, inline=False):
    """Compile a function that only other kernels call; ``fast_sums`` allows its sums to be reordered."""

    def decorate(function):
        options = {"fastmath": FAST_SUMS} if fast_sums else {}
        if inline:
            options["inline"] = "always"
        return _njit(function, **options)

    return decorate if function is None else decorate(function)


class _Library:
    """The machine code of a kernel, with each address looked up by name only once."""

    def __init__(self, library):
        self._library, self._addresses = library, {}

    def get_pointer_to_function(self, name):
        if name not in self._addresses:
            self._addresses[name] = self._library.get_pointer_to_function(name)
        return self._addresses[name]

    def __getattr__(self, name):
        return getattr(self._library, name)


def _remember_addresses(dispatcher):
    """Cache what numba looks up when a kernel is an argument of a loop.

    By itself, numba checks the signature and looks up two addresses by name at each call of the loop. This takes 100
    microseconds for each kernel, more than a step of a small model.
    """
    search, found = dispatcher.get_compile_result, []

    def get_compile_result(signature):
        for known, result in found:
            if known is signature:  # numba uses one signature object for each loop.
                return result
        result = search(signature)
        result = result._replace(library=_Library(result.library))
        found.append((signature, result))
        return result

    dispatcher.get_compile_result = get_compile_result


class Kernel:
    """A function compiled for one signature at its first use; callable like the function itself.

    Attributes
    ----------
    py_func : callable
        The uncompiled function, for tests and for reading.
    signature : numba signature
        Its only signature.
    """

    def __init__(self, function, signature, name=None, **options):
        self.py_func = function
        self.signature = signature
        self.__name__ = name or function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self._options = options
        self._dispatcher = None

    @property
    def compiled(self):
        """The compiled dispatcher, which runners take as an argument."""
        if self._dispatcher is None:
            # numba does not lock this, and fails if two threads compile the same dispatcher at the same time.
            with _lock:
                if self._dispatcher is None:
                    dispatcher = self._jitted()
                    if dispatcher is self.py_func:
                        self._dispatcher = _interpreted(dispatcher)
                    else:
                        dispatcher.compile(self.signature)
                        dispatcher.disable_compile()
                        _remember_addresses(dispatcher)
                        self._dispatcher = dispatcher
            _warn_of_troubles()
        return self._dispatcher

    def _jitted(self):
        return _njit(self.py_func, **self._options)

    def __call__(self, *args):
        return self.compiled(*args)

    def __reduce__(self):
        # A pickle contains only the kernel's name, no compiled code.
        return _find_kernel, (self.__module__, self.__name__)

    def __repr__(self):
        return f"<kernel {self.__module__}.{self.__name__}>"


def _find_kernel(module, name):
    import importlib

    return getattr(importlib.import_module(module), name)


def kernel(signature, *, fast_sums=False, name=None):
    """Compile a function for one signature, at its first use; see `Kernel`.

    ``name`` is the kernel's name in its module; None: the function's name.
    """

    def decorate(function):
        options = {"fastmath": FAST_SUMS} if fast_sums else {}
        return Kernel(function, signature, name, **options)

    return decorate
