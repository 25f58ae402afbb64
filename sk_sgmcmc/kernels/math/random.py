"""Random numbers: SplitMix64 streams, draws that are safe for extreme arguments, and rows of gamma draws.

Cells of rare words have small shapes, and nearly all draws of topics are draws of such cells. Ahrens and Dieter's
algorithm GS (1974) draws a cell with shape a < 1 from two uniform numbers u and v. With b = 1 + a / e and p = b u, the
proposal is

    x = p^(1/a),              accepted if v <= exp(-x),     for p <= 1,
    x = -log((b - p) / a),    accepted if v <= x^(a - 1),   for p > 1.

The smaller a is, the more often p <= 1 and x is close to 0, where v <= 1 - x accepts without an exponential. These
cells need no branch, so the compiler vectorises them. The remaining cells are drawn one by one.
"""

import numpy as np
from numba import config

from .._jit import helper
from .vector import as_float, exp_not_positive, log_normal

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # step of the counter
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


@helper
def mix64(x):
    """SplitMix64's finaliser, which maps a counter to a 64-bit random word."""
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
    """A 64-bit word as a number in (0, 1), of the form (i + 1/2) 2^-52, in vector instructions."""
    return as_float(np.int64((x >> np.uint64(12)) | _ONE)) - (1.0 - 2.0**-53)


def _open_unit_of_python(x):
    """The same in Python, since intrinsics need the compiler."""
    return (int(x) >> 12) * 2.0**-52 + 2.0**-53


if config.DISABLE_JIT:
    open_unit = _open_unit_of_python


# The smallest value of a gamma state. Smaller values would underflow to 0, and a row of zeros would give 0/0. The bound
# does not change the dynamics, since a state this small never contributes to a Poisson mixture.
TINY = 1e-300

# Below this shape, gamma draws use Ahrens and Dieter's algorithm GS (1974), in logarithms.
SMALL_SHAPE = 0.05
_INVERSE_E = np.exp(-1.0)


@helper
def _log_of_small_gamma(shape, rng):
    """Logarithm of a Gamma(shape, 1) draw for shape < 1, by the algorithm described at the top of this file."""
    b = 1.0 + shape * _INVERSE_E
    while True:
        p = b * (1.0 - rng.random())
        if p <= 1.0:
            log_x = np.log(p) / shape
            # Below this, exp(-x) rounds to 1, so the proposal is always accepted.
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
    """Gamma(shape, 1) draw for any shape > 0, never below `TINY`."""
    if shape >= SMALL_SHAPE:
        return max(rng.standard_gamma(shape), TINY)
    return max(np.exp(_log_of_small_gamma(shape, rng)), TINY)


@helper
def poisson_draw(mean, rng):
    """Poisson draw as a float. Above a mean of 1e12 it is a normal draw, whose error is below float64's precision."""
    if mean <= 0.0:
        return 0.0
    if mean > 1e12:
        return np.floor(mean + np.sqrt(mean) * rng.standard_normal())
    return float(rng.poisson(mean))


@helper
def dirichlet_draw(concentration, out, rng):
    """Write a Dirichlet draw into ``out``, computed in logarithms, so that tiny concentrations do not lead to 0/0."""
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


_PER_CELL = np.uint64(3)  # uniform numbers: u, v, and one for the Poisson number
_STEP = np.uint64((3 * int(GOLDEN)) % 2**64)
_OPEN = -1.0  # marks a cell that is not drawn yet


@helper
def start_counter(rng):
    """The counter at which the uniform numbers of a call begin."""
    return mix64(np.uint64(rng.random() * 2.0**53))


@helper
def _propose(shape, counter, draw):
    """Write the draws that the vectorised test accepts, and `_OPEN` for the others."""
    for k in range(shape.shape[0]):
        at = counter + np.uint64(k) * _STEP
        u, v = open_unit(mix64(at)), open_unit(mix64(at + GOLDEN))
        a = shape[k]
        p = (1.0 + a * _INVERSE_E) * u
        x = exp_not_positive(log_normal(p) / a)
        draw[k] = x if (a > 0.0) & (a < 1.0) & (p <= 1.0) & (v <= 1.0 - x) else _OPEN


@helper
def _mark_poisson(mean, rate, counter, draw):
    """Set `_OPEN` where a Poisson number with mean rate * mean may exceed 0, since P(N > 0) is at most the mean."""
    for k in range(mean.shape[0]):
        w = open_unit(mix64(counter + np.uint64(k) * _STEP + GOLDEN + GOLDEN))
        draw[k] = draw[k] if w > mean[k] * rate else _OPEN


@helper
def _poisson_by(w, mean, rng):
    """Poisson number by inversion of the uniform w from the upper tail; from ``rng`` if the mean exceeds 1."""
    if w > mean:
        return 0.0
    if mean > 1.0:
        return poisson_draw(mean, rng)
    term = np.exp(-mean)
    above, count = -np.expm1(-mean), 0.0
    while w < above and term > 1e-20:
        count += 1.0
        term *= mean / count
        above -= term
    return count


@helper
def _accepted(shape, at):
    """The proposal for a cell of shape < 1, from the uniform numbers of the cell; `_OPEN` if it is rejected."""
    u, v = open_unit(mix64(at)), open_unit(mix64(at + GOLDEN))
    b = 1.0 + shape * _INVERSE_E
    p = b * u
    if p <= 1.0:
        x = np.exp(np.log(p) / shape)
        return x if v <= np.exp(-x) else _OPEN
    x = -np.log(max(b - p, 1e-17) / shape)
    return x if np.log(v) <= (shape - 1.0) * np.log(x) else _OPEN


@helper
def mixed_gamma_row(shape, mean, rate, counter, draw, rng):
    """Draw Gamma(shape + N) with N ~ Poisson(rate * mean) for each cell of a row.

    Parameters
    ----------
    shape, mean : ndarray of shape (n,)
        Shapes are positive.
    rate : float
        If 0, no Poisson number is drawn.
    counter : uint64
        From `start_counter`, or from the previous row.
    draw : ndarray of shape (n,)
        Set to the draws. Smaller draws may be replaced by 1e-304.
    rng : Generator

    Returns
    -------
    counter : uint64
        For the next row.
    """
    n = shape.shape[0]
    _propose(shape, counter, draw)
    if rate > 0.0:
        _mark_poisson(mean, rate, counter, draw)
    for k in range(n):
        if draw[k] == _OPEN:
            at = counter + np.uint64(k) * _STEP
            a = shape[k]
            count = 0.0
            if rate > 0.0:
                count = _poisson_by(open_unit(mix64(at + GOLDEN + GOLDEN)), mean[k] * rate, rng)
            if a + count >= 1.0:
                draw[k] = rng.standard_gamma(a + count)
                continue
            draw[k] = _accepted(a, at)
            if draw[k] == _OPEN:
                draw[k] = gamma_draw(a, rng)
    return counter + np.uint64(n) * _STEP
