"""Log density of a row under given topics, by annealed importance sampling of the document's proportions."""

import math

import numpy as np

from ..._jit import F1_IN, F2_IN, F8, I8, RNG, helper, kernel
from .admixture import sizes

_PILOT = 4  # The final run has this many temperatures for each one of the pilot run.
_POWER = 3.0  # Inverse temperatures are (j/n)^3, dense where the prior dominates.


@helper
def _tempered(psi, theta, gram, y, alpha, kappa, t, bent, gradient):
    """Log density sum(alpha psi - e^psi) + t kappa cos with theta = softmax(psi); returns it and kappa cos.

    Writes the gradient in psi.
    """
    largest, total = -np.inf, 0.0
    for k in range(psi.shape[0]):
        largest = max(largest, psi[k])
    for k in range(psi.shape[0]):
        theta[k] = math.exp(psi[k] - largest)
        total += theta[k]
    for k in range(psi.shape[0]):
        theta[k] /= total
    size, along = sizes(theta, gram, y, bent)
    value = kappa * along / size
    log_density = t * value
    for k in range(psi.shape[0]):
        mass = math.exp(min(psi[k], 600.0))
        slope = kappa * (y[k] - along * bent[k] / (size * size)) / size
        # The cosine does not depend on the scale of theta, so theta'slope = 0 and the softmax adds no term.
        gradient[k] = alpha[k] - mass + t * theta[k] * slope
        log_density += alpha[k] * psi[k] - mass
    return log_density, value


@helper
def trajectory(psi, theta, gram, y, alpha, kappa, t, h, n_leapfrog, work, rng):
    """One Hamiltonian trajectory at the inverse temperature t; returns its acceptance rate and kappa cos at its end."""
    bent, gradient, velocity, old = work[0], work[1], work[2], work[3]
    log_density, value = _tempered(psi, theta, gram, y, alpha, kappa, t, bent, gradient)
    n = psi.shape[0]
    energy = log_density
    step = h * (0.8 + 0.4 * rng.random())
    for k in range(n):
        velocity[k] = rng.standard_normal()
        energy -= 0.5 * velocity[k] * velocity[k]
        old[k] = psi[k]
    now, now_value = log_density, value
    for _ in range(n_leapfrog):
        for k in range(n):
            velocity[k] += 0.5 * step * gradient[k]
            psi[k] += step * velocity[k]
        now, now_value = _tempered(psi, theta, gram, y, alpha, kappa, t, bent, gradient)
        for k in range(n):
            velocity[k] += 0.5 * step * gradient[k]
    gain = now - energy
    for k in range(n):
        gain -= 0.5 * velocity[k] * velocity[k]
    chance = math.exp(min(gain, 0.0)) if gain > -1e300 else 0.0
    if rng.random() < chance:
        return chance, now_value
    for k in range(n):
        psi[k] = old[k]
    return chance, value


@kernel(F8(F2_IN, F1_IN, F1_IN, F8, I8, I8, RNG))
def annealed_log_mean(gram, y, alpha, kappa, n_temperatures, n_leapfrog, rng):
    """Estimate of log E[exp(kappa cos(u, v))] over theta ~ Dirichlet(alpha); its exponential is unbiased.

    A pilot run determines a step size for each temperature, so that the final run need not adapt.
    """
    n = alpha.shape[0]
    n_pilot = max(n_temperatures // _PILOT, 1)
    psi, theta, work = np.empty(n), np.empty(n), np.empty((4, n))
    log_steps = np.empty(n_pilot + 1)
    weight = 0.0
    for pilot in range(2):
        n_runs = n_pilot if pilot == 0 else n_temperatures
        log_step = math.log(0.3)
        weight = 0.0
        for k in range(n):
            if alpha[k] < 0.05:
                psi[k] = math.log(rng.standard_gamma(alpha[k] + 1.0)) + math.log(1.0 - rng.random()) / alpha[k]
            else:
                psi[k] = math.log(max(rng.standard_gamma(alpha[k]), 1e-300))
        _, value = _tempered(psi, theta, gram, y, alpha, kappa, 0.0, work[0], work[1])
        before = 0.0
        for j in range(1, n_runs + 1):
            t = (j / n_runs) ** _POWER
            weight += (t - before) * value
            before = t
            if pilot == 1:
                log_step = log_steps[(j * n_pilot) // n_runs]
            chance, value = trajectory(psi, theta, gram, y, alpha, kappa, t, math.exp(log_step), n_leapfrog, work, rng)
            if pilot == 0:
                log_step += 0.3 * (chance - 0.7)
                log_steps[j] = log_step
                if j == 1:
                    log_steps[0] = log_step
    return weight
