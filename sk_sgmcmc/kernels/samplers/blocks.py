"""Steps of a state in blocks that have their own momenta, masses and thermostats but share one gradient."""

import numpy as np
from numba import types

from .._jit import F1, F1_IN, F2, F2_IN, F3, I1_IN, I8, OK, RNG, TRANSITION, kernel
from ..runners import DENSE_SIGNAL

N_BLOCKS = 3


@kernel(
    I8(
        F2, types.UniTuple(F3, N_BLOCKS), types.UniTuple(F1, N_BLOCKS), I1_IN, F2_IN, F2_IN, F1_IN, F1_IN, F1_IN, I8,
        types.FunctionType(TRANSITION), types.FunctionType(DENSE_SIGNAL), types.FunctionType(TRANSITION), RNG,
    )
)  # fmt: skip
def run_blocks(theta, aux, scalars, cuts, X, y, weight, params, hyper, n_steps, advance, signal_of, step, rng):
    """Make ``n_steps`` steps on the same data; returns the status.

    Parameters
    ----------
    theta : (n, 1), changed in place
        Block b is theta[cuts[b]:cuts[b + 1]].
    aux, scalars : tuples with one array for each block
        As in `TRANSITION`.
    X, y, weight, params : read by ``signal_of``
    hyper : the sampler's hyper-parameters, the step size first
    advance, step, signal_of : the sampler's two transitions and the model's signal
    """
    rows = np.arange(theta.shape[0])
    signal = np.empty_like(theta)
    nothing = np.zeros(theta.shape[0])
    extra = np.zeros(1)
    for _ in range(n_steps):
        for b in range(N_BLOCKS):
            lo, hi = cuts[b], cuts[b + 1]
            advance(theta[lo:hi], aux[b], scalars[b], signal[lo:hi], nothing, hyper, rows[: hi - lo], rng)
        status = signal_of(theta, X, y, weight, params, 1.0, signal, extra)
        if status != OK:
            return status
        for b in range(N_BLOCKS):
            lo, hi = cuts[b], cuts[b + 1]
            status = step(theta[lo:hi], aux[b], scalars[b], signal[lo:hi], extra, hyper, rows[: hi - lo], rng)
            if status != OK:
                return status
    return OK
