"""Random numbers by counting: SplitMix64, whose stream is a function of where it begins, and the same everywhere."""

import numpy as np
from numba import config

from .._jit import helper
from .vector import as_float

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # step of the counter
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


@helper
def mix64(x):
    """SplitMix64's finaliser: scrambles a 64-bit counter."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@helper
def unit(x):
    """A 64-bit word as a number in [0, 1)."""
    return np.float64(x >> np.uint64(11)) * _TO_UNIT


_ONE = np.uint64(0x3FF0000000000000)  # the bits of 1.0


@helper(inline=True)
def open_unit(x):
    """A 64-bit word as a number in (0, 1), multiples of 2^-52 and a half, in vector instructions."""
    return as_float(np.int64((x >> np.uint64(12)) | _ONE)) - (1.0 - 2.0**-53)


def _open_unit_of_python(x):
    """The same in Python, since intrinsics need the compiler."""
    return (int(x) >> 12) * 2.0**-52 + 2.0**-53


if config.DISABLE_JIT:
    open_unit = _open_unit_of_python
