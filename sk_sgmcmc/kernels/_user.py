"""Kernels made from users' functions."""

import inspect
from functools import lru_cache

import numba
from numba.extending import is_jitted

from ._frozen import frozen_in
from ._jit import Kernel


class _UserKernel(Kernel):
    """Calls a user's function; compiled in each process, because numba does not cache closures on disk."""

    def __init__(self, make, function, signature):
        self._made_by = make, function, signature
        super().__init__(make(function if is_jitted(function) else numba.njit(function)), signature)

    def _jitted(self):
        return numba.njit(nogil=True, error_model="numpy")(self.py_func)

    def __reduce__(self):
        return kernel_of, self._made_by


def kernel_of(make, function, signature):
    """The kernel ``make(function)`` of a user's function, compiled once per process and values around it."""
    return _remembered(make, function, signature, None if is_jitted(function) else frozen_in(function))


@lru_cache(maxsize=64)
def _remembered(make, function, signature, _frozen):
    return _UserKernel(make, function, signature)


def checked_function(function, name, n_arguments, lack, how):
    """A user's function, if it takes that many arguments; otherwise raises with what it lacks."""
    if not callable(function):
        raise TypeError(f"{name} must be a function, got {function!r}. {how}")
    wanted = inspect.signature(getattr(function, "py_func", function)).parameters
    if len(wanted) != n_arguments:
        raise ValueError(
            f"{name}={getattr(function, '__name__', function)} takes {len(wanted)} arguments "
            f"({', '.join(wanted)}), but {lack}. {how}"
        )
    return function
