"""Samplers whose mass is a metric G(theta) on flat space: implicit leapfrogs, solved by fixed-point iterations.

A metric is a kernel with the signature of a signal. It writes the rows of G (D, D) into ``out``, followed by the rows
of its derivatives dG/dtheta_0, dG/dtheta_1, ..., so that ``out`` is (D + D D, D). A diagonal metric writes its diagonal
(1, D) and the diagonals of the derivatives, (1 + D, D) in all. If ``out`` has no room for derivatives, none are
computed.

v = G^{-1} p / s is the velocity, where s is 1 except for Nosé-Poincaré. The energy is
-L + T log|G| / 2 + p^T G^{-1} p / 2. The force in direction k is d_k L + (v^T dG_k v - T tr(G^{-1} dG_k)) / 2.
"""

import numpy as np
from numba import types

from .._jit import BOOL, F1, F1_IN, F2, F2_IN, F3, F8, I1_IN, I8, NOT_FINITE, OK, RNG, helper, kernel
from ..math.arrays import set_to
from ..runners import DENSE_SIGNAL, gather
from .mass import ADAPTED, FREEZE_AT, H0, LAST_ENERGY, LOG_FACTOR, N_ACCEPTED, Q_MASS, STARTED, Q
from .nose_poincare import S, after_kick, before_drift

METRIC = DENSE_SIGNAL
NOT_SOLVED = 2  # The fixed-point iterations did not converge. Used only in this module.


@helper
def metric_shape(D, diagonal, derivatives):
    """Shape of a metric's output."""
    rows = 1 if diagonal else D
    return rows * (1 + D) if derivatives else rows, D


@helper
def factorise(metric, diagonal, root, inverse):
    """Write the Cholesky factor R of G and G^{-1}, both (D, D), or (1, D) if diagonal; returns (status, log|G|)."""
    D = metric.shape[1]
    log_volume = 0.0
    for i in range(D):
        if diagonal:
            pivot = metric[0, i]
        else:
            pivot = metric[i, i]
            for k in range(i):
                pivot -= root[i, k] * root[i, k]
        if not (pivot > 0.0 and pivot < np.inf):
            return NOT_FINITE, 0.0
        log_volume += np.log(pivot)
        if diagonal:
            root[0, i] = np.sqrt(pivot)
            inverse[0, i] = 1.0 / pivot
            continue
        root[i, i] = np.sqrt(pivot)
        for j in range(i + 1, D):
            value = metric[j, i]
            for k in range(i):
                value -= root[i, k] * root[j, k]
            root[j, i] = value / root[i, i]
            root[i, j] = 0.0
    if not diagonal:
        for c in range(D):  # column c of the inverse: R y = e_c, R^T x = y
            for i in range(D):
                value = 1.0 if i == c else 0.0
                for k in range(c, i):
                    value -= root[i, k] * inverse[k, c]
                inverse[i, c] = value / root[i, i] if i >= c else 0.0
            for i in range(D - 1, -1, -1):
                value = inverse[i, c]
                for k in range(i + 1, D):
                    value -= root[k, i] * inverse[k, c]
                inverse[i, c] = value / root[i, i]
    return OK, log_volume


@helper
def times(matrix, diagonal, x, scale, out):
    """out = scale matrix x, for a full matrix (D, D) or a diagonal (1, D)."""
    D = x.shape[0]
    for i in range(D):
        if diagonal:
            out[i] = scale * matrix[0, i] * x[i]
        else:
            total = 0.0
            for j in range(D):
                total += matrix[i, j] * x[j]
            out[i] = scale * total


@helper
def inner(a, b):
    """a^T b."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@helper
def metric_force(metric, diagonal, inverse, velocity, T, out):
    """out_k = (v^T dG_k v - T tr(G^{-1} dG_k)) / 2."""
    D = velocity.shape[0]
    for k in range(D):
        total = 0.0
        if diagonal:
            for i in range(D):
                total += metric[1 + k, i] * (velocity[i] * velocity[i] - T * inverse[0, i])
        else:
            for i in range(D):
                row = D + k * D + i
                for j in range(D):
                    total += metric[row, j] * (velocity[i] * velocity[j] - T * inverse[i, j])
        out[k] = 0.5 * total


@helper
def kick_explicit(p, momentum, gradient, metric, diagonal, inverse, s, T, time, work):
    """p += time s force, with the force at the velocity of ``momentum``."""
    velocity, force = work[0], work[1]
    times(inverse, diagonal, momentum, 1.0 / s, velocity)
    metric_force(metric, diagonal, inverse, velocity, T, force)
    for i in range(p.shape[0]):
        p[i] += time * s * (gradient[i, 0] + force[i])


@helper
def kick_implicit(p, gradient, metric, diagonal, inverse, s, T, time, n_iter, tolerance, work):
    """Solve p' = p + time s force(p') in place; returns a status."""
    start, new = work[2], work[3]
    set_to(start, p)
    change = 0.0
    for _ in range(n_iter):
        set_to(new, start)
        kick_explicit(new, p, gradient, metric, diagonal, inverse, s, T, time, work)
        change = 0.0
        for i in range(p.shape[0]):
            change = max(change, abs(new[i] - p[i]) / (1.0 + abs(new[i])))
            if not np.isfinite(new[i]):
                return NOT_FINITE
            p[i] = new[i]
        if change <= tolerance:
            return OK
    return NOT_SOLVED if tolerance > 0.0 else OK


@helper
def drift_implicit(
    theta, p, diagonal, inverse, s, s_new, time, n_iter, tolerance, work, place, metric, root, new_inverse, data,
    metric_of,
):  # fmt: skip
    """Solve theta' = theta + time / 2 (G(theta)^{-1} p / s + G(theta')^{-1} p / s') in place; returns a status."""
    X, y, weight, params, scale = data
    D = p.shape[0]
    before, velocity, start = work[0], work[1], work[2]
    extra = np.zeros(1)
    times(inverse, diagonal, p, 1.0 / s, before)
    for i in range(D):  # The first guess assumes a constant metric.
        start[i] = theta[i, 0]
        place[i, 0] = start[i] + time * 0.5 * (1.0 + s / s_new) * before[i]
    for _ in range(n_iter):
        status = metric_of(place, X, y, weight, params, scale, metric, extra)
        if status == OK:
            status, _ = factorise(metric, diagonal, root, new_inverse)
        if status != OK:
            return status
        times(new_inverse, diagonal, p, 1.0 / s_new, velocity)
        change = 0.0
        for i in range(D):
            new = start[i] + 0.5 * time * (before[i] + velocity[i])
            change = max(change, abs(new - place[i, 0]) / (1.0 + abs(new)))
            if not np.isfinite(new):
                return NOT_FINITE
            place[i, 0] = new
        set_to(theta, place)
        if change <= tolerance:
            return OK
    return NOT_SOLVED if tolerance > 0.0 else OK


@helper
def draw_under(root, diagonal, rng, white, out):
    """out ~ N(0, G)."""
    for i in range(out.shape[0]):
        white[i] = rng.standard_normal()
    times(root, diagonal, white, 1.0, out)


_RUN_METROPOLIS = types.UniTuple(I8, 2)(
    F2, F3, F1, F2_IN, F2_IN, F1_IN, F1_IN, F1_IN, BOOL, F2_IN, I1_IN, F3,
    types.FunctionType(DENSE_SIGNAL), types.FunctionType(METRIC), RNG,
)  # fmt: skip


@kernel(_RUN_METROPOLIS)
def run_metropolis(
    theta, aux, scalars, X, y, weight, params, metric_params, diagonal, hypers, slots, kept, signal_of, metric_of, rng
):
    """Trajectories of the generalised leapfrog with a Metropolis test; returns (status, trajectories made).

    Parameters
    ----------
    theta, aux, scalars : state, (D, 1), (n_aux, D, 1), and numbers as in `mass`, changed in place
    X, y, weight, params : data and constants of the model, read by ``signal_of`` and ``metric_of``
    metric_params : constants of the metric
    hypers : (n_steps, 6) step size, number of steps of a trajectory, relative jitter of the step size, acceptance rate
        to which the step size adapts, maximum number of fixed-point iterations, their tolerance (0: make them all)
    slots, kept, signal_of : as in `runners.run_dense`
    """
    D = theta.shape[0]
    metric, new_metric = np.empty(metric_shape(D, diagonal, True)), np.empty(metric_shape(D, diagonal, True))
    shape = metric_shape(D, diagonal, False)
    root, inverse, new_root, new_inverse = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    bare, gradient, new_gradient = np.empty(shape), np.empty((D, 1)), np.empty((D, 1))
    proposal, place, work = np.empty((D, 1)), np.empty((D, 1)), np.empty((4, D))
    p = np.empty(D)
    extra, new_extra, nothing = np.zeros(1), np.zeros(1), np.zeros(1)
    data = (X, y, weight, metric_params, 1.0)
    status = signal_of(theta, X, y, weight, params, 1.0, gradient, extra)
    if status == OK:
        status = metric_of(theta, X, y, weight, metric_params, 1.0, metric, nothing)
    log_volume = 0.0
    if status == OK:
        status, log_volume = factorise(metric, diagonal, root, inverse)
    if status != OK:
        return status, 0
    new_log_volume = 0.0
    for t in range(slots.shape[0]):
        h = hypers[t, 0] * np.exp(scalars[LOG_FACTOR]) * (1.0 + hypers[t, 2] * (2.0 * rng.random() - 1.0))
        n_iter, tolerance = int(hypers[t, 4]), hypers[t, 5]
        draw_under(root, diagonal, rng, work[0], p)
        times(inverse, diagonal, p, 1.0, work[0])
        before = 0.5 * inner(p, work[0]) + 0.5 * log_volume - extra[0]
        set_to(proposal, theta)
        set_to(new_gradient, gradient)
        set_to(new_metric, metric)
        set_to(new_inverse, inverse)
        for _ in range(int(hypers[t, 1])):
            status = kick_implicit(
                p, new_gradient, new_metric, diagonal, new_inverse, 1.0, 1.0, 0.5 * h, n_iter, tolerance, work
            )
            if status == OK:
                inverse_before = new_inverse.copy()
                status = drift_implicit(
                    proposal, p, diagonal, inverse_before, 1.0, 1.0, h, n_iter, tolerance, work, place, bare, new_root,
                    new_inverse, data, metric_of,
                )  # fmt: skip
            if status == OK:
                status = signal_of(proposal, X, y, weight, params, 1.0, new_gradient, new_extra)
            if status == OK:
                status = metric_of(proposal, X, y, weight, metric_params, 1.0, new_metric, nothing)
            if status == OK:
                status, new_log_volume = factorise(new_metric, diagonal, new_root, new_inverse)
            if status != OK:
                break
            kick_explicit(p, p, new_gradient, new_metric, diagonal, new_inverse, 1.0, 1.0, 0.5 * h, work)
        rate = 0.0  # if the trajectory became infinite or NaN, or its equations were not solved
        if status == OK:
            times(new_inverse, diagonal, p, 1.0, work[0])
            change = before - 0.5 * inner(p, work[0]) - 0.5 * new_log_volume + new_extra[0]
            rate = min(1.0, np.exp(change)) if np.isfinite(change) else 0.0
        if rng.random() < rate:
            set_to(theta, proposal)
            set_to(gradient, new_gradient)
            set_to(metric, new_metric)
            set_to(root, new_root)
            set_to(inverse, new_inverse)
            log_volume = new_log_volume
            extra[0] = new_extra[0]
            scalars[N_ACCEPTED] += 1.0
        if hypers[t, 3] > 0.0 and scalars[ADAPTED] < scalars[FREEZE_AT]:
            scalars[ADAPTED] += 1.0
            scalars[LOG_FACTOR] += (rate - hypers[t, 3]) * 2.0 / (10.0 + scalars[ADAPTED]) ** 0.6
        if slots[t] >= 0:
            kept[slots[t]] = theta
    return OK, slots.shape[0]


_RUN_DENSE = types.UniTuple(I8, 2)(
    F2, F3, F1, F2_IN, F2_IN, F1_IN, F1_IN, I1_IN, I8, F8, F2_IN, F2_IN, F1_IN, F1_IN, F8, BOOL, F2_IN, I1_IN, F3,
    types.FunctionType(DENSE_SIGNAL), types.FunctionType(METRIC), RNG,
)  # fmt: skip


@kernel(_RUN_DENSE)
def run_dense(
    theta, aux, scalars, X, y, weight, params, starts, n_batch, scale, metric_X, metric_y, metric_weight, metric_params,
    metric_scale, diagonal, hypers, slots, kept, signal_of, metric_of, rng,
):  # fmt: skip
    """Stochastic Nosé-Poincaré under a metric; returns (status, number of steps made).

    Like `nose_poincare.nose_poincare`, with the potential -L + T log|G| / 2, momentum N(0, T G(theta)), and the
    generalised leapfrog: implicit kick, implicit drift, explicit kick.

    Parameters
    ----------
    theta, aux, scalars, X, y, weight, params, starts, n_batch, scale, slots, kept, signal_of
        As in `runners.run_dense`; ``aux[0]`` is the momentum.
    metric_X, metric_y, metric_weight, metric_params, metric_scale
        Arguments of the metric, the same at every step. The metric is then a function of theta. If it changed with the
        minibatch, the invariant distribution would change.
    hypers : (n_steps, 6) step size, temperature, friction, friction of q, whether the kinetic energy drives q, number
        of fixed-point iterations
    """
    D = theta.shape[0]
    metric, shape = np.empty(metric_shape(D, diagonal, True)), metric_shape(D, diagonal, False)
    root, inverse, new_root, new_inverse = np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape)
    bare, gradient, place, work = np.empty(shape), np.empty((D, 1)), np.empty((D, 1)), np.empty((4, D))
    extra, nothing = np.zeros(1), np.zeros(1)
    p = aux[0].reshape(D)
    velocity = np.empty(D)
    data = (metric_X, metric_y, metric_weight, metric_params, metric_scale)
    replace = starts.shape[0] > 0 and starts[0] < 0
    n_rows = int(scale * n_batch + 0.5)
    if replace:
        X_batch, y_batch = np.empty((n_batch, X.shape[1])), np.empty((n_batch, y.shape[1]))
        w_batch = np.empty(n_batch)
    for t in range(starts.shape[0]):
        if replace:
            gather(X, y, weight, n_rows, X_batch, y_batch, w_batch, rng)
            status = signal_of(theta, X_batch, y_batch, w_batch, params, scale, gradient, extra)
        else:
            lo, hi = starts[t], starts[t] + n_batch
            status = signal_of(theta, X[lo:hi], y[lo:hi], weight[lo:hi], params, scale, gradient, extra)
        log_volume = 0.0
        if status == OK:
            status = metric_of(theta, metric_X, metric_y, metric_weight, metric_params, metric_scale, metric, nothing)
        if status == OK:
            status, log_volume = factorise(metric, diagonal, root, inverse)
        if status != OK:
            return status, t
        h, T, C, A, by_kinetic = hypers[t, 0], hypers[t, 1], hypers[t, 2], hypers[t, 3], hypers[t, 4] != 0.0
        n_iter = int(hypers[t, 5])
        L = extra[0] - 0.5 * T * log_volume
        if scalars[STARTED] == 0.0:
            draw_under(root, diagonal, rng, work[0], p)
            p *= np.sqrt(T)
            scalars[Q] = np.sqrt(T * scalars[Q_MASS]) * rng.standard_normal()
            scalars[S] = 1.0
        else:
            s = scalars[S]
            times(inverse, diagonal, p, 1.0 / s, velocity)
            after_kick(scalars, h, T, D, inner(p, velocity) / s, L, by_kinetic)
            kick_explicit(p, p, gradient, metric, diagonal, inverse, s, T, 0.5 * h, work)
        s = scalars[S]
        times(inverse, diagonal, p, 1.0 / s, velocity)
        total = 0.5 * inner(p, velocity) / s - L + 0.5 * scalars[Q] ** 2 / scalars[Q_MASS] + D * T * np.log(s)
        if scalars[STARTED] == 0.0:
            scalars[STARTED] = 1.0
            scalars[H0] = total
        scalars[LAST_ENERGY] = s * (total - scalars[H0])
        if C > 0.0 or A > 0.0 or by_kinetic:
            c = np.exp(-C * h)
            draw_under(root, diagonal, rng, work[0], velocity)
            for i in range(D):
                p[i] = c * p[i] / s + np.sqrt(T * (1.0 - c * c)) * velocity[i]
            c = np.exp(-A * h)
            scalars[Q] = c * scalars[Q] + np.sqrt(T * scalars[Q_MASS] * (1.0 - c * c)) * rng.standard_normal()
            scalars[S] = s = 1.0
            times(inverse, diagonal, p, 1.0, velocity)
            scalars[H0] = 0.5 * inner(p, velocity) - L + 0.5 * scalars[Q] ** 2 / scalars[Q_MASS]
        status = kick_implicit(p, gradient, metric, diagonal, inverse, s, T, 0.5 * h, n_iter, 0.0, work)
        if status != OK:
            return status, t
        times(inverse, diagonal, p, 1.0 / s, velocity)
        status, new = before_drift(scalars, h, T, D, inner(p, velocity) / s, L, by_kinetic)
        if status == OK:
            status = drift_implicit(
                theta, p, diagonal, inverse, s, new, h, n_iter, 0.0, work, place, bare, new_root, new_inverse, data,
                metric_of,
            )  # fmt: skip
        if status != OK:
            return status, t
        scalars[S] = new
        if slots[t] >= 0:
            kept[slots[t]] = theta
    return OK, starts.shape[0]
