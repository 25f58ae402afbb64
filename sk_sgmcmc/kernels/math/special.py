"""Special functions that numba does not have."""

from math import lgamma

import numpy as np

from .._jit import helper

MANY = 8.0  # whole numbers up to this are multiplied out, others go through lgamma


@helper
def digamma(x):
    """Digamma for x > 0: recurrence up to 6, then the asymptotic series; absolute error below 1e-12 for x > 1e-3."""
    result = 0.0
    while x < 6.0:
        result -= 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    series = f * (1.0 / 12.0 - f * (1.0 / 120.0 - f * (1.0 / 252.0 - f * (1.0 / 240.0 - f / 132.0))))
    return result + np.log(x) - 0.5 / x - series


@helper
def digamma_difference(a, n):
    """digamma(a + n) - digamma(a) without cancellation: a sum of 1/(a + i) for small whole n (exact for tiny a)."""
    if n < 20.0 and n == np.floor(n):
        total = 0.0
        for i in range(int(n)):
            total += 1.0 / (a + i)
        return total
    return digamma(a + n) - digamma(a)


@helper
def log_rise(a, x):
    """log Gamma(a + x) - log Gamma(a), by a product for small whole x."""
    if x <= MANY and x == np.floor(x):
        product = 1.0
        for t in range(int(x)):
            product *= a + t
        return np.log(product)
    return lgamma(a + x) - lgamma(a)


@helper
def trigamma(x):
    """Derivative of digamma for x > 0: recurrence up to 8, then the asymptotic series; relative error below 1e-11."""
    result = 0.0
    while x < 8.0:
        result += 1.0 / (x * x)
        x += 1.0
    f = 1.0 / (x * x)
    series = f * (1.0 / 6.0 - f * (1.0 / 30.0 - f * (1.0 / 42.0 - f * (1.0 / 30.0 - f * 5.0 / 66.0))))
    return result + 1.0 / x + 0.5 * f + series / x
