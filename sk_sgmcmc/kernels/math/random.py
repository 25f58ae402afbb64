"""Draws that NumPy's generator does not offer inside compiled code, or not safely for extreme arguments."""

import numpy as np

from .._jit import helper

# The smallest value of a gamma state. Below it a float64 would become 0, and a row of zeros 0/0; the dynamics cannot
# distinguish it from the exact draw, since a state this small never contributes to a Poisson mixture.
TINY = 1e-300
_LOG_TINY = np.log(TINY)

# Below this shape a gamma draw is made in logs: log G(a) = log G(a + 1) + log(U) / a (Marsaglia & Tsang 2000, note).
SMALL_SHAPE = 0.05


@helper
def log_gamma_draw(shape, rng):
    """Logarithm of a Gamma(shape, 1) draw; finite for any shape > 0."""
    if shape >= SMALL_SHAPE:
        draw = rng.standard_gamma(shape)
        if draw > 0.0:
            return np.log(draw)
    return np.log(rng.standard_gamma(shape + 1.0)) + np.log(1.0 - rng.random()) / shape


@helper
def gamma_draw(shape, rng):
    """Gamma(shape, 1) draw, never below `TINY`; right for any shape > 0."""
    if shape >= SMALL_SHAPE:
        return max(rng.standard_gamma(shape), TINY)
    log_power = np.log(1.0 - rng.random()) / shape
    # G(shape + 1) exceeds 50 about once in 1e20 draws, so most draws for tiny shapes are decided without it.
    if log_power < _LOG_TINY - 4.0:
        return TINY
    return max(np.exp(log_power) * rng.standard_gamma(shape + 1.0), TINY)


@helper
def poisson_draw(mean, rng):
    """Poisson draw as a float; above 1e12 its normal limit, whose error is below float64's rounding there."""
    if mean <= 0.0:
        return 0.0
    if mean > 1e12:
        return np.floor(mean + np.sqrt(mean) * rng.standard_normal())
    return float(rng.poisson(mean))


@helper
def dirichlet_draw(concentration, out, rng):
    """Write a Dirichlet draw into ``out``, by way of logs, so that tiny concentrations leave one cell, not 0/0."""
    largest = -np.inf
    for i in range(out.shape[0]):
        out[i] = log_gamma_draw(concentration[i], rng)
        largest = max(largest, out[i])
    total = 0.0
    for i in range(out.shape[0]):
        out[i] = np.exp(out[i] - largest)
        total += out[i]
    for i in range(out.shape[0]):
        out[i] /= total
