"""Functions that the compiler can vectorise, unlike calls of libm."""

import math

from numba import config, types
from numba.extending import intrinsic

from .._jit import helper

_LOG2_E = 1.4426950408889634
# log 2 as the sum of two numbers; whole multiples of the first are exact.
_LOG2_HIGH, _LOG2_LOW = 0.6931471803691238, 1.9082149292705877e-10
# Adding 1.5 * 2^52 rounds to a whole number, which is then in the lowest bits.
_ROUND = 6755399441055744.0
_ROUND_BITS = 0x4338000000000000  # its bits
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)


@intrinsic
def as_float(context, x):
    """The float64 with the bits of an int64."""

    def generate(target, builder, signature, args):
        return builder.bitcast(args[0], target.get_value_type(types.float64))

    return types.float64(types.int64), generate


@intrinsic
def as_int(context, x):
    """The int64 with the bits of a float64."""

    def generate(target, builder, signature, args):
        return builder.bitcast(args[0], target.get_value_type(types.int64))

    return types.int64(types.float64), generate


def _exp_of_python(x):
    """`exp_not_positive` in Python, since intrinsics need the compiler."""
    return math.exp(-700.0 if x < -700.0 else x)


def _log_of_python(x):
    """`log_normal` in Python."""
    return math.log(x)


@helper(inline=True)
def exp_not_positive(x):
    """exp(x) for x <= 0, relative error below 1e-14; e^-700 below x = -700, NaN for NaN.

    With x = k log 2 + r and |r| <= log(2) / 2, e^r is a Taylor polynomial of order 11, and k is added to the exponent.
    """
    x = -700.0 if x < -700.0 else x
    shifted = x * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LOG2_HIGH) - k * _LOG2_LOW
    p = 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * as_float((as_int(shifted) + 1023) << 52)


@helper(inline=True)
def log_normal(x):
    """log(x) for positive x that are neither denormal nor infinite, relative error below 1e-14.

    With x = 2^k m and m in [sqrt(1/2), sqrt(2)), log m = 2 artanh(s) is a series in s = (m - 1) / (m + 1).
    """
    bits = as_int(x)
    # Subtracting the bits of sqrt(1/2) gives the exponent for which m is at least sqrt(1/2).
    k = (bits - _SQRT_HALF_BITS) >> 52
    m = as_float(bits - (k << 52))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 2.0 / 21.0
    p = p * z + 2.0 / 19.0
    p = p * z + 2.0 / 17.0
    p = p * z + 2.0 / 15.0
    p = p * z + 2.0 / 13.0
    p = p * z + 2.0 / 11.0
    p = p * z + 2.0 / 9.0
    p = p * z + 2.0 / 7.0
    p = p * z + 2.0 / 5.0
    p = p * z + 2.0 / 3.0
    p = p * z + 2.0
    # The reverse of the rounding above turns a small whole number into a float without a conversion.
    exponent = as_float(k + _ROUND_BITS) - _ROUND
    return exponent * _LOG2_HIGH + (exponent * _LOG2_LOW + s * p)


if config.DISABLE_JIT:
    exp_not_positive, log_normal = _exp_of_python, _log_of_python
