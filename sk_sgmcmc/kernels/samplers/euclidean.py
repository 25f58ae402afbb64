"""Langevin and Hamiltonian transitions on flat space; ``signal`` is the gradient of the log posterior.

``aux[0]`` is the momentum p, and the rest of ``aux`` is scratch. W is the inverse mass (see `mass`), M the mass, and D
the number of entries. Each step reads one gradient, computed after ``advance``.
"""

import numpy as np

from .._jit import FLOW, NOT_FINITE, OK, PROJECT, TRANSITION, helper, kernel
from .mass import DIAGONAL, HEAD, STARTED, XI, draw_momentum, kind_of, kinetic, learn_mass, times_inverse_mass


@kernel(TRANSITION)
def sgld_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """theta <- theta + h P grad + sqrt(2 h T P) Z; hyper = (h, T), and P is a constant diagonal (the inverse mass)."""
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


@helper
def start(aux, scalars, rng):
    """Draw the momentum before the first step."""
    if scalars[STARTED] == 0.0:
        scalars[STARTED] = 1.0
        draw_momentum(scalars, aux[0], rng)


@helper
def drift(theta, aux, scalars, time):
    """theta += time W p; writes W p into ``aux[1]``; returns the status and p^T W p."""
    p, velocity = aux[0], aux[1]
    times_inverse_mass(scalars, p, velocity)
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            theta[r, k] += time * velocity[r, k]
            if not np.isfinite(theta[r, k]):
                return NOT_FINITE, 0.0
    return OK, kinetic(p, velocity)


@helper
def kick(p, signal, time):
    """p += time grad."""
    for r in range(p.shape[0]):
        for k in range(p.shape[1]):
            p[r, k] += time * signal[r, k]


@helper
def apply_friction(aux, scalars, rate, time, temperature, rng):
    """p <- c p + sqrt(T (1 - c^2)) N(0, M), c = exp(-rate time): friction and its noise, solved exactly."""
    p, noise = aux[0], aux[1]
    draw_momentum(scalars, noise, rng)
    c = np.exp(-rate * time)
    spread = np.sqrt(temperature * (1.0 - c * c))
    for r in range(p.shape[0]):
        for k in range(p.shape[1]):
            p[r, k] = c * p[r, k] + spread * noise[r, k]


@kernel(TRANSITION)
def sghmc_euler(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """p += h grad - h C W p + N(0, 2 h (C T - B)); theta += h W p; hyper = (h, T, C, B), B the noise estimate."""
    h, T, C, B = hyper[0], hyper[1], hyper[2], hyper[3]
    start(aux, scalars, rng)
    p, velocity = aux[0], aux[1]
    times_inverse_mass(scalars, p, velocity)
    noise = np.sqrt(2.0 * h * max(C * T - B, 0.0))
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            p[r, k] += h * (signal[r, k] - C * velocity[r, k]) + noise * rng.standard_normal()
    status, _ = drift(theta, aux, scalars, h)
    learn_mass(scalars, aux[0], aux[1], T, rng)
    return status


@kernel(TRANSITION)
def sghmc_baoab(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Kick h, drift h/2, friction C over h with its noise, drift h/2; hyper = (h, T, C, B).

    The adjacent half kicks of two steps use the same theta and are merged. The variance 2 h B of the gradients' noise
    is subtracted from the noise.
    """
    h, T, C, B = hyper[0], hyper[1], hyper[2], hyper[3]
    start(aux, scalars, rng)
    kick(aux[0], signal, h)
    drift(theta, aux, scalars, 0.5 * h)
    apply_friction(aux, scalars, C, h, max(T - B / C, 0.0), rng)
    status, _ = drift(theta, aux, scalars, 0.5 * h)
    learn_mass(scalars, aux[0], aux[1], T, rng)
    return status


@kernel(TRANSITION)
def half_drift(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Drift h/2, before the gradient is computed."""
    start(aux, scalars, rng)
    status, _ = drift(theta, aux, scalars, 0.5 * hyper[0])
    return status


@kernel(TRANSITION)
def sghmc_aboba(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """After `half_drift`: kick h/2, friction C over h with its noise, kick h/2, drift h/2; hyper = (h, T, C, B)."""
    h, T, C, B = hyper[0], hyper[1], hyper[2], hyper[3]
    kick(aux[0], signal, 0.5 * h)
    apply_friction(aux, scalars, C, h, max(T - B / C, 0.0), rng)
    kick(aux[0], signal, 0.5 * h)
    status, _ = drift(theta, aux, scalars, 0.5 * h)
    learn_mass(scalars, aux[0], aux[1], T, rng)
    return status


@helper
def langevin_without_force(theta, aux, scalars, rate, time, temperature, rng):
    """dp = -rate p dt + sqrt(2 rate T) N(0, M dt), dtheta = W p dt over ``time``, solved exactly; returns the status.

    With x = rate time, a drift over tau = tanh(x / 2) / rate, friction over ``time`` and the same drift again give the
    exact mean, covariance of the momentum, and covariance between the two. Independent noise of variance
    T (2 x - 4 tanh(x / 2)) / rate^2 W completes the position. ``aux[2]`` is scratch.
    """
    x = rate * time
    tau = np.tanh(0.5 * x) / rate
    drift(theta, aux, scalars, tau)
    apply_friction(aux, scalars, rate, time, temperature, rng)
    status, _ = drift(theta, aux, scalars, tau)
    rest = 2.0 * x - 4.0 * np.tanh(0.5 * x)
    if x < 0.1:  # the difference would lose digits
        rest = x**3 * (1.0 / 6.0 - x**2 * (1.0 / 60.0 - x**2 * (17.0 / 10080.0 - x**2 * (31.0 / 181440.0))))
    spread = np.sqrt(temperature * rest) / rate
    draw_momentum(scalars, aux[1], rng)
    times_inverse_mass(scalars, aux[1], aux[2])
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            theta[r, k] += spread * aux[2, r, k]
    return status


@kernel(TRANSITION)
def sghmc_ubu_half(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Langevin dynamics without force over h/2, before the gradient is computed; hyper = (h, T, C, B)."""
    h, T, C, B = hyper[0], hyper[1], hyper[2], hyper[3]
    start(aux, scalars, rng)
    return langevin_without_force(theta, aux, scalars, C, 0.5 * h, max(T - B / C, 0.0), rng)


@kernel(TRANSITION)
def sghmc_ubu(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """After `sghmc_ubu_half`: kick h, and Langevin dynamics without force over h/2; hyper = (h, T, C, B)."""
    h, T, C, B = hyper[0], hyper[1], hyper[2], hyper[3]
    kick(aux[0], signal, h)
    status = langevin_without_force(theta, aux, scalars, C, 0.5 * h, max(T - B / C, 0.0), rng)
    learn_mass(scalars, aux[0], aux[1], T, rng)
    return status


@kernel(TRANSITION)
def sgnht_euler(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """p += h grad - h xi p + sqrt(2 A h) N(0, M); theta += h W p; xi += h (p^T W p / D - T) / mu.

    hyper = (h, T, A, mu). The noise has the covariance of the momentum. With this friction, no other covariance
    preserves the target under every mass.
    """
    h, T, A, mu = hyper[0], hyper[1], hyper[2], hyper[3]
    start(aux, scalars, rng)
    p, noise = aux[0], aux[1]
    draw_momentum(scalars, noise, rng)
    spread = np.sqrt(2.0 * A * h)
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            p[r, k] += h * (signal[r, k] - scalars[XI] * p[r, k]) + spread * noise[r, k]
    status, energy = drift(theta, aux, scalars, h)
    scalars[XI] += h * (energy / theta.size - T) / mu
    learn_mass(scalars, aux[0], aux[1], T, rng)
    return status


@kernel(TRANSITION)
def sgnht_euler_white(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """p += h grad - h xi W p + sqrt(2 A h) Z; theta += h W p; xi += h (p^T W^2 p - T tr W) / (mu tr W).

    hyper = (h, T, A, mu). This is the other pair of friction and noise that preserves the target under every mass.
    """
    h, T, A, mu = hyper[0], hyper[1], hyper[2], hyper[3]
    start(aux, scalars, rng)
    p, velocity = aux[0], aux[1]
    times_inverse_mass(scalars, p, velocity)
    spread = np.sqrt(2.0 * A * h)
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            p[r, k] += h * (signal[r, k] - scalars[XI] * velocity[r, k]) + spread * rng.standard_normal()
    status, _ = drift(theta, aux, scalars, h)
    trace = 0.0
    kind = kind_of(scalars)
    D = theta.size
    for i in range(D):
        trace += 1.0 if kind == 0 else scalars[HEAD + i] if kind == 1 else scalars[HEAD + i * D + i]
    scalars[XI] += h * (kinetic(velocity, velocity) / trace - T) / mu
    learn_mass(scalars, aux[0], aux[1], T, rng)
    return status


@helper
def thermostat(theta, aux, scalars, time, T, mu):
    """Drift, and update xi by the kinetic energy, which the drift leaves unchanged."""
    status, energy = drift(theta, aux, scalars, time)
    scalars[XI] += time * (energy / theta.size - T) / mu
    return status


@kernel(TRANSITION)
def sgnht_half(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Drift and thermostat over h/2, before the gradient is computed."""
    start(aux, scalars, rng)
    return thermostat(theta, aux, scalars, 0.5 * hyper[0], hyper[1], hyper[3])


@kernel(TRANSITION)
def sgnht_aboba(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """After `sgnht_half`: damp e^{-xi h/2}, kick h with noise sqrt(2 A h) N(0, M), damp, drift and thermostat h/2."""
    h, T, A, mu = hyper[0], hyper[1], hyper[2], hyper[3]
    p, noise = aux[0], aux[1]
    draw_momentum(scalars, noise, rng)
    spread = np.sqrt(2.0 * A * h)
    damp = np.exp(-0.5 * h * scalars[XI])
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            p[r, k] = damp * (damp * p[r, k] + h * signal[r, k] + spread * noise[r, k])
    status = thermostat(theta, aux, scalars, 0.5 * h, T, mu)
    learn_mass(scalars, aux[0], aux[1], T, rng)
    return status


@kernel(FLOW)
def flat_flow(theta, momentum, inverse_mass, time):
    """theta += time W p; W is (1, 1) for a multiple of the identity, has theta's shape if diagonal, else (D, D)."""
    D = theta.size
    width = theta.shape[1]
    if inverse_mass.size == 1:
        for r in range(theta.shape[0]):
            for k in range(width):
                theta[r, k] += time * inverse_mass[0, 0] * momentum[r, k]
    elif inverse_mass.size == D:
        for r in range(theta.shape[0]):
            for k in range(width):
                theta[r, k] += time * inverse_mass[r, k] * momentum[r, k]
    else:
        for i in range(D):
            total = 0.0
            for j in range(D):
                total += inverse_mass[i, j] * momentum[j // width, j % width]
            theta[i // width, i % width] += time * total
    return OK


@kernel(PROJECT)
def flat_project(theta, momentum, inverse_mass):
    """Do nothing: on flat space, every momentum is tangent."""
    return OK
