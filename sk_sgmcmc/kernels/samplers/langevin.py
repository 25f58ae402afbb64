"""Langevin transitions on flat space; ``signal`` is the gradient of the log posterior."""

import numpy as np

from .._jit import NOT_FINITE, OK, TRANSITION, kernel
from .mass import DIAGONAL, HEAD, kind_of


@kernel(TRANSITION)
def sgld_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """theta <- theta + h P grad + sqrt(2 h T P) Z; hyper = (h, T), P a constant diagonal (the inverse mass)."""
    h = hyper[0]
    noise = np.sqrt(2.0 * h * hyper[1])
    scaled = kind_of(scalars) == DIAGONAL
    width = theta.shape[1]
    for i in range(rows.shape[0]):
        r = rows[i]
        for k in range(width):
            scale = scalars[HEAD + r * width + k] if scaled else 1.0
            x = theta[r, k] + h * scale * signal[i, k] + noise * np.sqrt(scale) * rng.standard_normal()
            if not np.isfinite(x):
                return NOT_FINITE
            theta[r, k] = x
    return OK
