"""Draws of Polya-Gamma variables, given which a logistic likelihood is normal.

A variable omega ~ PG(1, c) has the density of PG(1, 0) times exp(-c^2 omega / 2), up to a factor. Devroye's algorithm
draws 4 omega: by an exponential proposal on the right of a point, and an inverse Gaussian one on the left of it. The
ratio of densities is an alternating series, whose partial sums are bounds, so a proposal is accepted or rejected after
a few terms, exactly.

Reference: Polson, Scott and Windle (2013), Bayesian inference for logistic models using Polya-Gamma latent variables,
Journal of the American Statistical Association 108, section 4 and supplement S6.
"""

import math

from .._jit import F1, F1_IN, I8, OK, RNG, helper, kernel

_AT = 0.64  # where the two proposals meet
_FAR = 60.0  # beyond this, a tail of the inverse Gaussian is negligible


@helper
def _normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@helper
def _coefficient(n, x):
    """Term n of the series of the density at x, by the form that converges faster there."""
    h = n + 0.5
    if x > _AT:
        return math.pi * h * math.exp(-0.5 * h * h * math.pi * math.pi * x)
    return (2.0 / (math.pi * x)) ** 1.5 * math.pi * h * math.exp(-2.0 * h * h / x)


@helper
def _short_inverse_gaussian(z, rng):
    """Draw an inverse Gaussian variable with mean 1 / z and shape 1, given that it is below `_AT`."""
    if z * _AT < 1.0:
        while True:
            e = rng.standard_exponential()
            while e * e > 2.0 * rng.standard_exponential() / _AT:
                e = rng.standard_exponential()
            x = _AT / ((1.0 + _AT * e) * (1.0 + _AT * e))
            if rng.random() <= math.exp(-0.5 * z * z * x):
                return x
    mean = 1.0 / z
    while True:
        y = rng.standard_normal()
        y = mean * y * y
        x = mean + 0.5 * mean * (y - math.sqrt(4.0 * y + y * y))
        if rng.random() > mean / (mean + x):
            x = mean * mean / x
        if 0.0 < x <= _AT:
            return x


@helper
def polya_gamma_draw(c, rng):
    """Draw a PG(1, c) variable."""
    z = 0.5 * abs(c)
    rate = 0.125 * math.pi * math.pi + 0.5 * z * z
    right = 0.5 * math.pi / rate * math.exp(-rate * _AT)
    root = 1.0 / math.sqrt(_AT)
    left = 2.0 * math.exp(-z) * _normal_cdf(root * (_AT * z - 1.0))
    if z < _FAR:
        left += 2.0 * math.exp(z) * _normal_cdf(-root * (_AT * z + 1.0))
    while True:
        if rng.random() * (left + right) < right:
            x = _AT + rng.standard_exponential() / rate
        else:
            x = _short_inverse_gaussian(z, rng)
        total = _coefficient(0, x)
        target, n = rng.random() * total, 0
        while True:
            n += 1
            if n % 2 == 1:
                total -= _coefficient(n, x)
                if target <= total:
                    return 0.25 * x
            else:
                total += _coefficient(n, x)
                if target > total:
                    break


@kernel(I8(F1_IN, RNG, F1))
def polya_gamma(c, rng, out):
    """Write a PG(1, c) draw for each entry of ``c`` into ``out``."""
    for i in range(c.size):
        out[i] = polya_gamma_draw(c[i], rng)
    return OK
