"""Kernels made from users' functions, and keys of the global values that their compiled code contains as constants."""

import hashlib
import inspect
import types
from functools import lru_cache

import numba
import numpy as np
from numba.extending import is_jitted

from ._jit import Kernel

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def frozen_in(function):
    """A key of the globals, closure and defaults that a function reads, which compiled code contains as constants.

    If the key is unchanged, code compiled before is still valid. The key includes what called functions read, unless
    these are jitted, because numba compiled those separately.
    """
    return _of_function(function, set())


def _of_function(function, seen):
    plain = getattr(function, "py_func", function)
    code = getattr(plain, "__code__", None)
    if code is None or id(code) in seen:
        return id(function)
    seen.add(id(code))
    names = _names(code)
    around = {name: plain.__globals__[name] for name in names if name in plain.__globals__}
    for name, cell in zip(code.co_freevars, plain.__closure__ or (), strict=True):
        try:
            around[name] = cell.cell_contents
        except ValueError:  # The variable is not assigned yet.
            around[name] = None
    around["defaults of"] = plain.__defaults__
    return tuple((name, _of_value(around[name], names, seen)) for name in sorted(around))


def _names(code):
    """Names of globals and attributes in the code of a function and of the functions nested in it."""
    inner = (_names(each) for each in code.co_consts if isinstance(each, types.CodeType))
    return set(code.co_names).union(*inner)


def _of_value(value, names, seen):
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest = hashlib.blake2b(np.ascontiguousarray(value).data, digest_size=16).digest()
        return value.dtype.str, value.shape, digest
    if isinstance(value, _PLAIN):
        return type(value), repr(value)
    if isinstance(value, tuple):
        return tuple(_of_value(each, names, seen) for each in value)
    if isinstance(value, types.ModuleType):
        inside = ((name, getattr(value, name, None)) for name in sorted(names))
        kinds = (*_PLAIN, np.ndarray, tuple)
        return value.__name__, tuple((n, _of_value(v, names, seen)) for n, v in inside if isinstance(v, kinds))
    if isinstance(value, types.FunctionType) and not is_jitted(value):
        return _of_function(value, seen)
    return id(value)


class _UserKernel(Kernel):
    """A kernel that calls a user's function. It is compiled in each process: numba does not cache closures on disk."""

    def __init__(self, make, function, signature):
        self._made_by = make, function, signature
        super().__init__(make(function if is_jitted(function) else numba.njit(function)), signature)

    def _jitted(self):
        return numba.njit(nogil=True, error_model="numpy")(self.py_func)

    def __reduce__(self):
        return kernel_of, self._made_by


def kernel_of(make, function, signature):
    """The kernel ``make(function)`` of a user's function, compiled once per process and key of `frozen_in`."""
    return _remembered(make, function, signature, None if is_jitted(function) else frozen_in(function))


@lru_cache(maxsize=64)
def _remembered(make, function, signature, _frozen):
    return _UserKernel(make, function, signature)


def checked_function(function, name, n_arguments, lack, how):
    """Return a user's function if it takes ``n_arguments`` arguments; otherwise raise an error that states ``lack``."""
    if not callable(function):
        raise TypeError(f"{name} must be a function, got {function!r}. {how}")
    wanted = inspect.signature(getattr(function, "py_func", function)).parameters
    if len(wanted) != n_arguments:
        raise ValueError(
            f"{name}={getattr(function, '__name__', function)} takes {len(wanted)} arguments "
            f"({', '.join(wanted)}), but {lack}. {how}"
        )
    return function
