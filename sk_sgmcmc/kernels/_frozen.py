"""What numba freezes when it compiles a function: the values of names around it."""

import hashlib
import types

import numpy as np
from numba.extending import is_jitted

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def frozen_in(function):
    """A key of the values that a function reads from around it, which compiled code holds as constants.

    Equal keys mean that code compiled before is still right. Functions that are called are keyed by what they read,
    too, unless they are jitted: numba compiled those by itself.
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
        except ValueError:  # not filled yet
            around[name] = None
    around["defaults of"] = plain.__defaults__
    return tuple((name, _of_value(around[name], names, seen)) for name in sorted(around))


def _names(code):
    """Names of globals and attributes in a function's code, and in that of functions within it."""
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
