"""How a function becomes compiled: two decorators and the table of signatures.

``@helper``
    For a function that only other kernels call. It is compiled into its caller.
``@kernel(SIGNATURE)``
    For a function that Python calls, or that is handed to a runner as an argument. It is compiled once, for that
    signature alone, at its first use. Another dtype or memory order raises ``TypeError`` instead of quietly
    compiling a second variant.

Functions are handed over as ``numba.types.FunctionType``, because numba then keeps the compiled loop on disk: loops
that take ordinary jitted functions or closures as arguments are compiled again in every process.

Only this module and the loops that take kernels know about ``FunctionType`` (numba calls it experimental). Kernels
never raise, they return a status: `OK`, or the code of what went wrong.
"""

import threading
import warnings

import numba
import numpy as np
from numba import types

OK = 0
NOT_FINITE = 1  # the state left the finite numbers: the step size is too large

# Sums may be reordered and fused; NaN and inf keep their meaning, which full fastmath would take from them.
FAST_SUMS = {"reassoc", "contract"}

RNG = numba.typeof(np.random.default_rng(0))
F8 = types.float64
I8 = types.int64
BOOL = types.boolean


def read_only(dtype, ndim, layout="C"):
    """Array type that takes writable and read-only arrays alike (joblib hands out read-only memory maps)."""
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
# What a Metropolis trajectory asks of a geometry: move along the flow of the kinetic energy for a time, and project a
# momentum onto the tangent space. (theta, momentum, space, time) and (theta, momentum, space) -> status; ``space`` is
# the inverse mass on flat space, and the table of blocks on a product of manifolds.
FLOW = I8(F2, F2, F2_IN, F8)
PROJECT = I8(F2, F2, F2_IN)

_lock = threading.RLock()
_cache_warned = False


def _njit(function, **options):
    """`numba.njit` with a disk cache, or without one where no place for it can be written."""
    global _cache_warned
    options["error_model"] = "numpy"  # a division by zero gives inf, as in NumPy; kernels never raise
    try:
        return numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        if not _cache_warned:
            _cache_warned = True
            warnings.warn(
                "numba found no writable place for its cache, so kernels are compiled anew in each process; "
                "set the environment variable NUMBA_CACHE_DIR to a writable folder to avoid that.",
                RuntimeWarning,
                stacklevel=3,
            )
        return numba.njit(nogil=True, **options)(function)


def helper(function=None, *, fast_sums=False, inline=False):
    """Compile a function that only other kernels call; ``fast_sums`` allows its sums to be reordered."""

    def decorate(function):
        options = {"fastmath": FAST_SUMS} if fast_sums else {}
        if inline:
            options["inline"] = "always"
        return _njit(function, **options)

    return decorate if function is None else decorate(function)


class Kernel:
    """A function compiled for one signature at its first use; call it like the function itself.

    Attributes
    ----------
    py_func : callable
        The uncompiled function, for tests and for reading.
    signature : numba signature
        The one signature it takes.
    """

    def __init__(self, function, signature, **options):
        self.py_func = function
        self.signature = signature
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self._options = options
        self._dispatcher = None

    @property
    def compiled(self):
        """The compiled dispatcher, as a runner takes it."""
        if self._dispatcher is None:
            # Two threads that compile the same dispatcher at once break each other (numba keeps no lock here).
            with _lock:
                if self._dispatcher is None:
                    dispatcher = _njit(self.py_func, **self._options)
                    dispatcher.compile(self.signature)
                    dispatcher.disable_compile()
                    self._dispatcher = dispatcher
        return self._dispatcher

    def __call__(self, *args):
        return self.compiled(*args)

    def __reduce__(self):
        # A pickle names the kernel and holds nothing compiled.
        return _find_kernel, (self.__module__, self.__name__)

    def __repr__(self):
        return f"<kernel {self.__module__}.{self.__name__}>"


def _find_kernel(module, name):
    import importlib

    return getattr(importlib.import_module(module), name)


def kernel(signature, *, fast_sums=False):
    """Compile a function for one signature, at its first use; see `Kernel`."""

    def decorate(function):
        options = {"fastmath": FAST_SUMS} if fast_sums else {}
        return Kernel(function, signature, **options)

    return decorate
