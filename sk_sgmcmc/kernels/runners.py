"""The loops that call a sampler's transition with a model's signal, compiled once for each layout of the data.

A runner makes a chunk of steps, never a whole fit, so that Python can report progress, handle Ctrl-C and write
checkpoints between chunks. The length of a chunk never changes a draw, because all randomness comes from ``rng`` in the
order of the steps.
"""

import numpy as np
from numba import types

from ._jit import F1, F1_IN, F2, F2_IN, F3, F8, FLOW, I1_IN, I8, OK, PROJECT, RNG, TRANSITION, helper, kernel
from .math.arrays import set_to
from .samplers.mass import (
    ADAPTED,
    FREEZE_AT,
    HEAD,
    LOG_FACTOR,
    N_ACCEPTED,
    draw_momentum,
    kind_of,
    kinetic,
    learn_mass,
    times_inverse_mass,
)
from .samplers.windows import TAIL, adapt


@helper
def gather(X, y, weight, n_rows, X_batch, y_batch, w_batch, rng):
    """Copy a batch of rows drawn with replacement, by element, which is faster than slices of a few columns."""
    for i in range(w_batch.shape[0]):
        j = rng.integers(0, n_rows)
        for k in range(X.shape[1]):
            X_batch[i, k] = X[j, k]
        for k in range(y.shape[1]):
            y_batch[i, k] = y[j, k]
        w_batch[i] = weight[j]


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
    scale : N/n; X may repeat some rows after its first N, so that a batch can extend past row N
    hypers : (n_steps, n_hyper) the sampler's hyper-parameters at each step, the step size first
    slots : (n_steps,) index at which ``kept`` and ``kept_aux`` store the state after a step, -1 for none
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
            gather(X, y, weight, n_rows, X_batch, y_batch, w_batch, rng)
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
            set_to(kept[slots[t]], theta)
            if kept_aux.shape[0] > 0:
                set_to(kept_aux[slots[t]], aux[0])
    return OK, starts.shape[0]


_RUN_METROPOLIS = types.UniTuple(I8, 2)(
    F2, F3, F1, F2_IN, F2_IN, F1_IN, F1_IN, F2_IN, I1_IN, F3,
    types.FunctionType(FLOW), types.FunctionType(DENSE_SIGNAL), types.FunctionType(PROJECT), RNG,
)  # fmt: skip


@kernel(_RUN_METROPOLIS)
def run_metropolis(theta, aux, scalars, X, y, weight, params, hypers, slots, kept, flow, signal_of, project, rng):
    """Trajectories on all the data, each followed by a Metropolis test; returns (status, trajectories made).

    Parameters
    ----------
    theta, aux, scalars : state, changed in place
        ``aux[0]`` is the momentum, ``scalars`` is as in `mass`. A geometry other than flat space has no mass. A product
        has the table of its blocks after the head.
    X, y, weight, params : data and constants of the model, read by ``signal_of``
    hypers : (n_steps, 4 or 5) step size, number of steps of a trajectory, relative jitter of the step size, target
        acceptance rate (0: does not adapt), and whether the number of steps is drawn uniformly from 1 to this number.
        The step size adapts while the chain has made fewer than ``scalars[FREEZE_AT]`` trajectories.
    slots, kept : as in `run_dense`
    flow, project : the geometry, `FLOW` and `PROJECT`
    signal_of : the model's gradient, its log density in ``extra[0]``
    """
    kind = kind_of(scalars)
    D = theta.size
    p, velocity = aux[0], aux[1]
    gradient, new_gradient = np.empty_like(theta), np.empty_like(theta)
    proposal, end = np.empty_like(theta), np.empty_like(theta)
    extra, new_extra = np.zeros(max(1, theta.shape[1])), np.zeros(max(1, theta.shape[1]))
    status = signal_of(theta, X, y, weight, params, 1.0, gradient, extra)
    if status != OK:
        return status, 0
    for t in range(slots.shape[0]):
        if kind == 1:
            W = scalars[HEAD : HEAD + D].copy().reshape(theta.shape)
        elif kind == 2:
            W = scalars[HEAD : HEAD + D * D].copy().reshape((D, D))
        elif scalars.shape[0] > HEAD:
            W = scalars[HEAD:].copy().reshape(((scalars.shape[0] - HEAD) // 3, 3))  # the blocks of a product
        else:
            W = np.ones((1, 1))
        h = hypers[t, 0] * np.exp(scalars[LOG_FACTOR])
        h *= 1.0 + hypers[t, 2] * (2.0 * rng.random() - 1.0)
        length = int(hypers[t, 1])
        if hypers.shape[1] > 4 and hypers[t, 4] != 0.0:
            length = min(length, 1 + int(rng.random() * length))
        draw_momentum(scalars, p, rng)
        project(theta, p, W)
        times_inverse_mass(scalars, p, velocity)
        before = 0.5 * kinetic(p, velocity) - extra[0]
        set_to(proposal, theta)
        set_to(end, p)
        set_to(new_gradient, gradient)
        status = OK
        for _ in range(length):
            for r in range(end.shape[0]):
                for k in range(end.shape[1]):
                    end[r, k] += 0.5 * h * new_gradient[r, k]
            project(proposal, end, W)
            status = flow(proposal, end, W, h)
            if status == OK:
                status = signal_of(proposal, X, y, weight, params, 1.0, new_gradient, new_extra)
            if status != OK:
                break
            for r in range(end.shape[0]):
                for k in range(end.shape[1]):
                    end[r, k] += 0.5 * h * new_gradient[r, k]
            project(proposal, end, W)
        times_inverse_mass(scalars, end, velocity)
        change = before - 0.5 * kinetic(end, velocity) + new_extra[0]
        # A trajectory that becomes infinite or NaN is rejected.
        rate = min(1.0, np.exp(change)) if status == OK and np.isfinite(change) else 0.0
        if rng.random() < rate:
            set_to(theta, proposal)
            set_to(p, end)
            set_to(gradient, new_gradient)
            set_to(extra, new_extra)
        scalars[N_ACCEPTED] += rate
        if scalars[TAIL] > 0.0:
            adapt(scalars, theta, rate, hypers[t, 0], hypers[t, 3])
        elif hypers[t, 3] > 0.0 and scalars[ADAPTED] < scalars[FREEZE_AT]:
            scalars[ADAPTED] += 1.0
            scalars[LOG_FACTOR] += (rate - hypers[t, 3]) * 2.0 / (10.0 + scalars[ADAPTED]) ** 0.6
        # After a rejection, p is the momentum at the start. Otherwise, the test would select momenta.
        times_inverse_mass(scalars, p, velocity)
        learn_mass(scalars, p, velocity, 1.0, rng)
        if slots[t] >= 0:
            set_to(kept[slots[t]], theta)
    return OK, slots.shape[0]
