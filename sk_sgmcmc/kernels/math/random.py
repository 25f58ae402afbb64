"""Draws that NumPy's generator does not offer inside compiled code, or not safely for extreme arguments."""

import numpy as np

from .._jit import helper

# The smallest value of a gamma state. Below it a float64 would become 0, and a row of zeros 0/0; the dynamics cannot
# distinguish it from the exact draw, since a state this small never contributes to a Poisson mixture.
TINY = 1e-300

# Below this shape a gamma draw is made by Ahrens and Dieter's algorithm GS (1974), in logs.
SMALL_SHAPE = 0.05
_INVERSE_E = np.exp(-1.0)


@helper
def _log_of_small_gamma(shape, rng):
    """Logarithm of a Gamma(shape, 1) draw for shape < 1; see `gamma_rows` for the algorithm."""
    b = 1.0 + shape * _INVERSE_E
    while True:
        p = b * (1.0 - rng.random())
        if p <= 1.0:
            log_x = np.log(p) / shape
            # exp(-x) is 1 to all digits below this, and accepts whatever is drawn.
            if log_x < -40.0 or rng.random() < np.exp(-np.exp(log_x)):
                return log_x
        else:
            log_x = np.log(-np.log(max(b - p, 1e-17) / shape))
            if np.log(1.0 - rng.random()) <= (shape - 1.0) * log_x:
                return log_x


@helper
def log_gamma_draw(shape, rng):
    """Logarithm of a Gamma(shape, 1) draw; finite for any shape > 0."""
    if shape >= SMALL_SHAPE:
        draw = rng.standard_gamma(shape)
        if draw > 0.0:
            return np.log(draw)
        return np.log(rng.standard_gamma(shape + 1.0)) + np.log(1.0 - rng.random()) / shape
    return _log_of_small_gamma(shape, rng)


@helper
def gamma_draw(shape, rng):
    """Gamma(shape, 1) draw, never below `TINY`; right for any shape > 0."""
    if shape >= SMALL_SHAPE:
        return max(rng.standard_gamma(shape), TINY)
    return max(np.exp(_log_of_small_gamma(shape, rng)), TINY)


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
