"""Dirichlet draws whose numbers depend on a seed alone, not on the version of NumPy: for draws made on demand."""

import numpy as np
from numba import types

from .._jit import F2_IN, I8, OK, helper, kernel, writable
from .counter import GOLDEN, mix64, unit

F4_2 = writable(types.float32, 2)
_LOG_TINY = np.log(1e-300)


@helper
def _positive_unit(x):
    """A 64-bit word as a number in (0, 1]."""
    return 1.0 - unit(x)


@helper
def _standard_gamma(shape, counter):
    """Gamma(shape, 1) draw for shape >= 1 by Marsaglia and Tsang (2000), and the counter after it."""
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        radius = np.sqrt(-2.0 * np.log(_positive_unit(mix64(counter + GOLDEN))))
        normal = radius * np.cos(2.0 * np.pi * unit(mix64(counter + np.uint64(2) * GOLDEN)))
        counter += np.uint64(3) * GOLDEN  # the last number used, so that none serves twice
        v = 1.0 + c * normal
        if v <= 0.0:
            continue
        v = v * v * v
        u = _positive_unit(mix64(counter))
        square = normal * normal
        # The first test implies the second, and spares most draws its two logarithms.
        if u < 1.0 - 0.0331 * square * square or np.log(u) < 0.5 * square + d - d * v + d * np.log(v):
            return d * v, counter


@helper
def dirichlet_row(shapes, counter, row):
    """Write cells proportional to a Dirichlet draw with positive parameters into ``row``; returns their sum.

    A cell is Gamma(a), for a < 1 as Gamma(a + 1) U^(1 / a).
    """
    total, largest, where = 0.0, -np.inf, 0
    for w in range(row.size):
        shape, log_power = shapes[w], 0.0
        if shape < 1.0:
            counter += GOLDEN
            log_power = np.log(_positive_unit(mix64(counter))) / shape
            if log_power < _LOG_TINY:  # below what a float64 holds, whatever the other factor
                row[w] = 0.0
                if log_power > largest:
                    largest, where = log_power, w
                continue
            shape += 1.0
        draw, counter = _standard_gamma(shape, counter)
        row[w] = draw * np.exp(log_power)
        total += row[w]
    if total == 0.0:  # all parameters are tiny: the largest cell has all the mass
        row[where] = total = 1.0
    return total


@kernel(I8(F2_IN, types.uint64, F4_2))
def dirichlet_rows(shapes, seed, out):
    """Write a Dirichlet draw with the parameters of each row of ``shapes``, positive, into the rows of ``out``.

    Each row has a stream of its own.
    """
    row = np.empty(shapes.shape[1])
    for k in range(shapes.shape[0]):
        total = dirichlet_row(shapes[k], mix64(seed ^ mix64(np.uint64(k) + GOLDEN)), row)
        for w in range(row.size):
            out[k, w] = row[w] / total
    return OK
