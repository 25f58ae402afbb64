"""Stochastic Nosé-Poincaré transition on flat space.

The Hamiltonian is H = s [-L + (p/s)^T W (p/s) / 2 + q^2 / 2Q + g T log s - H0], with g = D degrees of freedom. On the
shell H = 0, for any H0, the distribution of (theta, p/s, q) is the target times N(0, T M) N(0, T Q). Random kicks leave
the shell. After the friction, s is therefore reset to 1 and H0 to the energy, which changes nothing on the shell.
"""

import numpy as np

from .._jit import NOT_FINITE, OK, TRANSITION, helper, kernel
from .euclidean import kick
from .mass import (
    DECAY,
    H0,
    LAST_ENERGY,
    LEARNING,
    N_UPDATES,
    Q_MASS,
    Q_SQUARES,
    STARTED,
    XI,
    Q,
    draw_momentum,
    kinetic,
    learn_mass,
    times_inverse_mass,
)

S = XI  # The time scale s is stored in place of a thermostat's friction.


@helper
def _learn_q(scalars, updates_before, T, D):
    """Update the running second moment of q; after each M-step of the mass, move Q towards it."""
    if scalars[LEARNING] == 0.0:
        return
    scalars[Q_SQUARES] += 0.05 * (scalars[Q] * scalars[Q] / T - scalars[Q_SQUARES])
    if scalars[N_UPDATES] > updates_before:
        kappa = (1.0 + updates_before) ** (-scalars[DECAY])
        wanted = min(max(scalars[Q_SQUARES], 0.1 * D), 10.0 * D)
        scalars[Q_MASS] += kappa * (wanted - scalars[Q_MASS])


@helper
def after_kick(scalars, h, T, D, energy, L, by_kinetic):
    """Second half step of q, explicit; ``energy`` = (p/s)^T W (p/s), and L is the log density at the same state."""
    q = scalars[Q]
    if by_kinetic:
        force = energy - D * T
    else:
        force = scalars[H0] + L - D * T * (1.0 + np.log(scalars[S])) + 0.5 * energy - 0.5 * q * q / scalars[Q_MASS]
    scalars[Q] = q + 0.5 * h * force


@helper
def before_drift(scalars, h, T, D, energy, L, by_kinetic):
    """First half step of q (the root that is continuous in h), and full step of s; returns (status, new s)."""
    s, Q_m = scalars[S], scalars[Q_MASS]
    if by_kinetic:
        scalars[Q] += 0.5 * h * (energy - D * T)
        return OK, s * np.exp(h * scalars[Q] / Q_m)
    c = scalars[Q] + 0.5 * h * (-D * T * (1.0 + np.log(s)) + 0.5 * energy + L + scalars[H0])
    discriminant = 1.0 + h * c / Q_m
    if not discriminant >= 0.0:
        return NOT_FINITE, s
    scalars[Q] = 2.0 * c / (1.0 + np.sqrt(discriminant))
    turn = 0.5 * h * scalars[Q] / Q_m
    if not abs(turn) < 1.0:
        return NOT_FINITE, s
    return OK, s * (1.0 + turn) / (1.0 - turn)


@kernel(TRANSITION)
def nose_poincare(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Second half of the last step and first half of the next, at the same theta.

    hyper = (h, T, C, A, kinetic): C is the friction of p/s and A the friction of q, each with its noise. If ``kinetic``
    is not 0, the kinetic energy drives q. On the shell this is equivalent to the log density ``extra[0]``, but without
    the noise of a minibatch.
    """
    h, T, C, A = hyper[0], hyper[1], hyper[2], hyper[3]
    by_kinetic = hyper[4] != 0.0
    p, velocity = aux[0], aux[1]
    D = theta.size
    L = extra[0]
    if scalars[STARTED] == 0.0:
        draw_momentum(scalars, p, rng)
        for r in range(p.shape[0]):
            for k in range(p.shape[1]):
                p[r, k] *= np.sqrt(T)
        scalars[Q] = np.sqrt(T * scalars[Q_MASS]) * rng.standard_normal()
        scalars[S] = 1.0
    else:
        s = scalars[S]
        times_inverse_mass(scalars, p, velocity)
        after_kick(scalars, h, T, D, kinetic(p, velocity) / (s * s), L, by_kinetic)
        kick(p, signal, 0.5 * h * s)
    Q_m = scalars[Q_MASS]
    s = scalars[S]
    times_inverse_mass(scalars, p, velocity)
    total = 0.5 * kinetic(p, velocity) / (s * s) - L + 0.5 * scalars[Q] ** 2 / Q_m + D * T * np.log(s)
    if scalars[STARTED] == 0.0:
        scalars[STARTED] = 1.0
        scalars[H0] = total
    scalars[LAST_ENERGY] = s * (total - scalars[H0])
    if C > 0.0 or A > 0.0 or by_kinetic or scalars[LEARNING] != 0.0:
        # Reset s = 1 and H = 0, then friction with its noise on p/s and q.
        c = np.exp(-C * h)
        spread = np.sqrt(T * (1.0 - c * c))
        draw_momentum(scalars, velocity, rng)
        for r in range(p.shape[0]):
            for k in range(p.shape[1]):
                p[r, k] = c * p[r, k] / s + spread * velocity[r, k]
        c = np.exp(-A * h)
        scalars[Q] = c * scalars[Q] + np.sqrt(T * Q_m * (1.0 - c * c)) * rng.standard_normal()
        scalars[S] = s = 1.0
        updates = scalars[N_UPDATES]
        learn_mass(scalars, p, velocity, T, rng)
        _learn_q(scalars, updates, T, D)
        Q_m = scalars[Q_MASS]
        times_inverse_mass(scalars, p, velocity)
        scalars[H0] = 0.5 * kinetic(p, velocity) - L + 0.5 * scalars[Q] ** 2 / Q_m
    kick(p, signal, 0.5 * h * s)
    times_inverse_mass(scalars, p, velocity)
    status, new = before_drift(scalars, h, T, D, kinetic(p, velocity) / (s * s), L, by_kinetic)
    if status != OK:
        return status
    time = 0.5 * h * (1.0 / s + 1.0 / new)
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            theta[r, k] += time * velocity[r, k]
            if not np.isfinite(theta[r, k]):
                return NOT_FINITE
    scalars[S] = new
    return OK
