"""Gamma draws for a row of shapes at once, most of them in vector instructions.

Cells of rare words have small shapes, and nearly all draws of topics are draws of such cells. Ahrens and Dieter's
algorithm GS (1974) makes one for a shape a < 1 from two uniform numbers u and v. With b = 1 + a / e and p = b u, the
proposal is

    x = p^(1/a),              accepted if v <= exp(-x),     for p <= 1,
    x = -log((b - p) / a),    accepted if v <= x^(a - 1),   for p > 1.

The smaller a, the more often p <= 1 and x is close to 0, where v <= 1 - x decides without an exponential. These cells
take no branch, so that the compiler draws several at a time. What they leave open is decided one by one.
"""

import numpy as np

from .._jit import helper
from .counter import GOLDEN, mix64, open_unit
from .random import gamma_draw, poisson_draw
from .vector import exp_not_positive, log_normal

_INVERSE_E = np.exp(-1.0)
_PER_CELL = np.uint64(3)  # uniform numbers: u, v, and one for the Poisson number
_STEP = np.uint64((3 * int(GOLDEN)) % 2**64)
_OPEN = -1.0  # in place of a draw that is not decided


@helper
def start_counter(rng):
    """Where the uniform numbers of a call begin."""
    return mix64(np.uint64(rng.random() * 2.0**53))


@helper
def _propose(shape, counter, draw):
    """The draws that need no second look; `_OPEN` in place of the others."""
    for k in range(shape.shape[0]):
        at = counter + np.uint64(k) * _STEP
        u, v = open_unit(mix64(at)), open_unit(mix64(at + GOLDEN))
        a = shape[k]
        p = (1.0 + a * _INVERSE_E) * u
        x = exp_not_positive(log_normal(p) / a)
        draw[k] = x if (a > 0.0) & (a < 1.0) & (p <= 1.0) & (v <= 1.0 - x) else _OPEN


@helper
def _mark_poisson(mean, rate, counter, draw):
    """Set `_OPEN` where a Poisson number of mean rate * mean may be above 0: P(N > 0) is at most its mean."""
    for k in range(mean.shape[0]):
        w = open_unit(mix64(counter + np.uint64(k) * _STEP + GOLDEN + GOLDEN))
        draw[k] = draw[k] if w > mean[k] * rate else _OPEN


@helper
def _poisson_by(w, mean, rng):
    """Poisson number by inversion of the uniform w from above, whose mean is small; by ``rng`` if it is not."""
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
    """The proposal for a cell of shape < 1 by the uniform numbers of the cell; `_OPEN` if it is rejected."""
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
    """Draw Gamma(shape + N) with N ~ Poisson(rate * mean), cell by cell of a row, into ``draw``.

    Parameters
    ----------
    shape, mean : ndarray of shape (n,)
        Shapes are positive.
    rate : float
        If 0, no Poisson number is drawn.
    counter : uint64
        As from `start_counter`.
    draw : ndarray of shape (n,)
        Set; far below any visible number a draw may be 1e-304 instead.
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
