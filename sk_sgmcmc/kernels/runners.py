"""The loops that call a sampler's transition with a model's signal, compiled once for each data layout.

A runner makes a chunk of steps, never a whole fit: Python looks around in between (progress, Ctrl-C, checkpoint).
The length of a chunk never changes a draw, because all randomness comes from ``rng`` in the order of the steps.
"""

import numpy as np
from numba import types

from ._jit import F1, F1_IN, F2, F2_IN, F3, F8, I1_IN, I8, OK, RNG, TRANSITION, kernel

# (theta, X, y, weight, params, scale, signal, extra) -> status
DENSE_SIGNAL = I8(F2, F2_IN, F2_IN, F1_IN, F1_IN, F8, F2, F1)

_RUN_DENSE = types.UniTuple(I8, 2)(
    F2, F3, F1, F2_IN, F2_IN, F1_IN, F1_IN, I1_IN, I8, F8, F2_IN, I1_IN, F3, F3,
    types.FunctionType(TRANSITION), types.FunctionType(DENSE_SIGNAL), types.FunctionType(TRANSITION), RNG,
)  # fmt: skip


@kernel(_RUN_DENSE)
def run_dense(
    theta,
    aux,
    scalars,
    X,
    y,
    weight,
    params,
    starts,
    n_batch,
    scale,
    hypers,
    slots,
    kept,
    kept_aux,
    advance,
    signal_of,
    step,
    rng,
):
    """Minibatch steps on dense rows; returns (status, number of steps made).

    Parameters
    ----------
    theta, aux, scalars : state, changed in place
    X, y, weight : (N, n_inputs), (N, n_outputs), (N,) data in the order in which batches are read
    params : constants of the model
    starts : (n_steps,) first row of each batch; -1 draws the batch with replacement instead
    n_batch : rows in a batch; the batch is X[start : start + n_batch]
    scale : N/n; X may hold some rows twice, behind its first N, so that a block can run past the end
    hypers : (n_steps, n_hyper) the sampler's numbers at each step, the step size first
    slots : (n_steps,) where the state after a step is kept in ``kept`` and ``kept_aux``, -1 for not
    advance, step, signal_of : the sampler's two transitions and the model's signal
    """
    n_rows = int(scale * n_batch + 0.5)
    rows = np.arange(theta.shape[0])
    signal = np.empty_like(theta)
    extra = np.zeros(max(1, theta.shape[1]))
    nothing = np.zeros(theta.shape[0])
    replace = starts.shape[0] > 0 and starts[0] < 0
    if replace:
        X_batch = np.empty((n_batch, X.shape[1]))
        y_batch = np.empty((n_batch, y.shape[1]))
        w_batch = np.empty(n_batch)
    for t in range(starts.shape[0]):
        advance(theta, aux, scalars, signal, nothing, hypers[t], rows, rng)
        if replace:
            for i in range(n_batch):
                j = rng.integers(0, n_rows)
                X_batch[i] = X[j]
                y_batch[i] = y[j]
                w_batch[i] = weight[j]
            status = signal_of(theta, X_batch, y_batch, w_batch, params, scale, signal, extra)
        else:
            lo = starts[t]
            hi = lo + n_batch
            status = signal_of(theta, X[lo:hi], y[lo:hi], weight[lo:hi], params, scale, signal, extra)
        if status == OK:
            status = step(theta, aux, scalars, signal, extra, hypers[t], rows, rng)
        if status != OK:
            return status, t
        if slots[t] >= 0:
            kept[slots[t]] = theta
            if kept_aux.shape[0] > 0:
                kept_aux[slots[t]] = aux[0]
    return OK, starts.shape[0]
