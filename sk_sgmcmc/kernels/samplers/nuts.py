"""Transition and loop of the no-U-turn sampler with multinomial weights."""

import numpy as np
from numba import types

from .._jit import F1, F1_IN, F2, F2_IN, F3, I1_IN, I8, OK, RNG, helper, kernel
from ..math.arrays import set_to
from ..runners import DENSE_SIGNAL
from .mass import ADAPTED, FREEZE_AT, HEAD, LOG_FACTOR, draw_momentum, kind_of
from .windows import N_AFTER, N_DEEPEST, N_DIVERGED, N_LEAPFROG, RATES, TAIL, adapt

MAX_ENERGY_ERROR = 1000.0  # energy error above which a trajectory counts as divergent
# Rows of a subtree's record: momentum and velocity at its first and last points, and the sum of its momenta.
P_FIRST, V_FIRST, P_LAST, V_LAST, P_SUM = range(5)
# Statistics that are kept of a transition, next to its draw.
LOG_DENSITY, ENERGY, RATE, DEPTH, STEPS, DIVERGED, STEP_SIZE = range(7)
N_STATISTICS = 7


@helper
def velocity_of(kind, W, p, out):
    """out = W p, for flat p; W is symmetric, (1, 1), (1, D) or (D, D)."""
    D = p.size
    if kind == 0:
        set_to(out, p)
    elif kind == 1:
        for i in range(D):
            out[i] = W[0, i] * p[i]
    else:
        out[:] = 0.0
        for j in range(D):
            for i in range(D):
                out[i] += W[j, i] * p[j]


@helper
def log_add(a, b):
    """log(exp(a) + exp(b))."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))


@helper
def turns(first_v, last_v, other_p, total):
    """Whether the sum of momenta ``total`` + ``other_p`` points backwards at one of the two ends of its points."""
    forward = backward = 0.0
    for i in range(total.size):
        rho = total[i] + other_p[i]
        forward += first_v[i] * rho
        backward += last_v[i] * rho
    return not (forward > 0.0 and backward > 0.0)


@helper
def join(one, two):
    """Extend the record of a tree by its neighbour's record; returns whether the joint tree makes a U-turn.

    Besides the joint tree, each of the two is checked together with the nearest point of the other. This detects a
    U-turn between two halves that are each as long as a period.
    """
    turned = (
        turns(one[V_FIRST], two[V_LAST], two[P_SUM], one[P_SUM])
        or turns(one[V_FIRST], two[V_FIRST], two[P_FIRST], one[P_SUM])
        or turns(one[V_LAST], two[V_LAST], one[P_LAST], two[P_SUM])
    )
    one[P_LAST] = two[P_LAST]
    one[V_LAST] = two[V_LAST]
    one[P_SUM] += two[P_SUM]
    return turned


# (theta, aux, scalars, X, y, weight, params, hypers, slots, kept, statistics, signal_of, rng)
_RUN_NUTS = types.UniTuple(I8, 2)(
    F2, F3, F1, F2_IN, F2_IN, F1_IN, F1_IN, F2_IN, I1_IN, F3, F2, types.FunctionType(DENSE_SIGNAL), RNG,
)  # fmt: skip


@kernel(_RUN_NUTS)
def run_nuts(theta, aux, scalars, X, y, weight, params, hypers, slots, kept, statistics, signal_of, rng):
    """Transitions of NUTS on all the data; returns (status, transitions made).

    A trajectory doubles, forwards or backwards at random, until it makes a U-turn. Each doubling draws one of its
    points by weight. The state moves to this point with probability min(1, weight of the new half / weight of the old
    half). This leaves the target invariant and favours distant points.

    Parameters
    ----------
    theta, aux, scalars : state, changed in place
        ``aux[0]`` is the last momentum; ``scalars`` as in `mass`, with the tail of `windows`.
    X, y, weight, params : data and constants of the model, read by ``signal_of``
    hypers : (n_steps, 3) step size, largest number of doublings, and the acceptance rate to which the step size adapts
        in burn-in (0: does not adapt)
    slots, kept : as in `run_dense`
    statistics : (n_draws, N_STATISTICS), for each kept transition: log density and energy of the drawn state, mean
        acceptance rate, number of doublings, number of leapfrog steps, whether it diverged, and the step size
    signal_of : the model's gradient, its log density in ``extra[0]``
    """
    kind, D, tail = kind_of(scalars), theta.size, int(scalars[TAIL])
    deepest = int(hypers[0, 1]) if hypers.shape[0] else 0
    gradient = np.empty_like(theta)
    extra = np.zeros(max(1, theta.shape[1]))
    # The two ends of the trajectory, backwards and forwards, and the points drawn from a doubling and from the whole.
    q = np.empty((2, *theta.shape))
    g = np.empty((2, *theta.shape))
    p, v = np.empty((2, D)), np.empty((2, D))
    drawn, drawn_gradient = np.empty_like(theta), np.empty_like(theta)
    # Records of complete subtrees, until a neighbour of the same size is complete, and of the trajectory.
    waiting = np.empty((deepest + 1, 5, D))
    whole = np.empty((5, D))
    status = signal_of(theta, X, y, weight, params, 1.0, gradient, extra)
    if status != OK:
        return status, 0
    value = extra[0]
    for t in range(slots.shape[0]):
        if kind == 1:
            W = scalars[HEAD : HEAD + D].copy().reshape((1, D))
        elif kind == 2:
            W = scalars[HEAD : HEAD + D * D].copy().reshape((D, D))
        else:
            W = np.ones((1, 1))
        h = hypers[t, 0] * np.exp(scalars[LOG_FACTOR])
        draw_momentum(scalars, aux[0], rng)
        for side in range(2):
            set_to(q[side], theta)
            set_to(g[side], gradient)
            set_to(p[side], aux[0].reshape(D))
            velocity_of(kind, W, p[side], v[side])
        energy = 0.5 * np.dot(p[0], v[0]) - value
        own_energy = energy
        whole[P_FIRST] = p[0]
        whole[P_LAST] = p[0]
        whole[P_SUM] = p[0]
        whole[V_FIRST] = v[0]
        whole[V_LAST] = v[0]
        log_weight, grows = 0.0, 1
        rates, n_leapfrog, depth, diverged = 0.0, 0, 0, False
        while depth < deepest:
            side = 1 if rng.random() < 0.5 else 0
            step = h if side == 1 else -h
            if side != grows:  # Records are in the order of the direction of growth.
                grows = side
                for row in range(2):
                    for i in range(D):
                        first = whole[row, i]
                        whole[row, i] = whole[row + 2, i]
                        whole[row + 2, i] = first
            position, force, momentum, velocity = q[side], g[side], p[side], v[side]
            moved = position.reshape(D)
            push = force.reshape(D)
            new_weight, turned, height = -np.inf, False, 0
            drawn_value = drawn_energy = 0.0
            for leaf in range(2**depth):
                for i in range(D):
                    momentum[i] += 0.5 * step * push[i]
                velocity_of(kind, W, momentum, velocity)
                for i in range(D):
                    moved[i] += step * velocity[i]
                status = signal_of(position, X, y, weight, params, 1.0, force, extra)
                for i in range(D):
                    momentum[i] += 0.5 * step * push[i]
                velocity_of(kind, W, momentum, velocity)
                change = energy - 0.5 * np.dot(momentum, velocity) + extra[0]
                n_leapfrog += 1
                if status != OK or not change > -MAX_ENERGY_ERROR:
                    diverged = True
                    break
                rates += min(1.0, np.exp(change))
                new_weight = log_add(new_weight, change)
                if np.log(rng.random()) < change - new_weight:
                    set_to(drawn, position)
                    set_to(drawn_gradient, force)
                    drawn_value = extra[0]
                    drawn_energy = energy - change
                record = waiting[height]
                record[P_FIRST] = momentum
                record[P_LAST] = momentum
                record[P_SUM] = momentum
                record[V_FIRST] = velocity
                record[V_LAST] = velocity
                height += 1
                pairs = leaf + 1
                while pairs % 2 == 0:
                    pairs //= 2
                    height -= 1
                    turned = turned or join(waiting[height - 1], waiting[height])
                if turned:
                    break
            if diverged or turned:
                break
            depth += 1
            if np.log(rng.random()) < new_weight - log_weight:
                set_to(theta, drawn)
                set_to(gradient, drawn_gradient)
                value = drawn_value
                own_energy = drawn_energy
            log_weight = log_add(log_weight, new_weight)
            if join(whole, waiting[0]):
                break
        rate = rates / n_leapfrog
        if scalars[ADAPTED] >= scalars[FREEZE_AT]:
            scalars[tail + N_AFTER] += 1.0
            scalars[tail + N_DIVERGED] += 1.0 if diverged else 0.0
            scalars[tail + N_LEAPFROG] += n_leapfrog
            scalars[tail + N_DEEPEST] += 1.0 if depth == deepest else 0.0
            scalars[tail + RATES] += rate
        adapt(scalars, theta, rate, hypers[t, 0], hypers[t, 2])
        if slots[t] >= 0:
            kept[slots[t]] = theta
            of_draw = statistics[slots[t]]
            of_draw[LOG_DENSITY], of_draw[ENERGY] = value, own_energy
            of_draw[RATE], of_draw[DEPTH] = rate, depth
            of_draw[STEPS], of_draw[DIVERGED], of_draw[STEP_SIZE] = n_leapfrog, 1.0 if diverged else 0.0, h
    return OK, slots.shape[0]
