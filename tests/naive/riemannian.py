"""Riemannian steps on flat space, slowly: ``metric(theta)`` gives G (D, D) and its derivatives dG (D, D, D)."""

import numpy as np


def force(theta, p, s, gradient, metric, T=1.0):
    G, dG = metric(theta)
    v = np.linalg.solve(G, p) / s
    return gradient(theta) + 0.5 * np.array([v @ d @ v - T * np.trace(np.linalg.solve(G, d)) for d in dG])


def kick(theta, p, s, gradient, metric, T, time, n):
    new = p
    for _ in range(n):
        new = p + time * s * force(theta, new, s, gradient, metric, T)
    return new


def drift(theta, p, s, s_new, metric, time, n):
    before = np.linalg.solve(metric(theta)[0], p) / s
    new = theta + 0.5 * time * (1 + s / s_new) * before
    for _ in range(n):
        new = theta + 0.5 * time * (before + np.linalg.solve(metric(new)[0], p) / s_new)
    return new


def leapfrog(theta, p, gradient, metric, h, n):
    p = kick(theta, p, 1.0, gradient, metric, 1.0, 0.5 * h, n)
    theta = drift(theta, p, 1.0, 1.0, metric, h, n)
    return theta, p + 0.5 * h * force(theta, p, 1.0, gradient, metric)


def energy(theta, p, log_density, metric, T=1.0):
    G, _ = metric(theta)
    return -log_density(theta) + 0.5 * T * np.linalg.slogdet(G)[1] + 0.5 * p @ np.linalg.solve(G, p)


def rhmc(theta, log_density, gradient, metric, h, n_leapfrog, n, rng):
    rng.random()  # of the jitter
    p = np.linalg.cholesky(metric(theta)[0]) @ rng.standard_normal(theta.size)
    new, end = theta, p
    for _ in range(n_leapfrog):
        new, end = leapfrog(new, end, gradient, metric, h, n)
    change = energy(theta, p, log_density, metric) - energy(new, end, log_density, metric)
    return new if rng.random() < np.exp(min(0.0, change)) else theta


def nose_poincare(theta, p, s, q, log_density, gradient, metric, h, T, Q, H0, n):
    """The leapfrog of H = s [energy(theta, p / s) + q^2 / 2Q + D T log s - H0]."""
    g = theta.size

    def rate(theta, s):  # of q, without its own square: (p/s)^T G^{-1} (p/s) / 2 - D T (1 + log s) - U + H0
        return p @ np.linalg.solve(metric(theta)[0], p) / s**2 - g * T * (1 + np.log(s)) + H0 - energy(
            theta, p / s, log_density, metric, T
        )  # fmt: skip

    p = kick(theta, p, s, gradient, metric, T, 0.5 * h, n)
    c = q + 0.5 * h * rate(theta, s)
    roots = np.roots([h / (4 * Q), 1.0, -c])
    q = roots[np.argmin(np.abs(roots - c))].real
    new = s * (1 + h * q / (2 * Q)) / (1 - h * q / (2 * Q))
    theta = drift(theta, p, s, new, metric, h, n)
    q = q + 0.5 * h * (rate(theta, new) - q**2 / (2 * Q))
    return theta, p + 0.5 * h * new * force(theta, p, new, gradient, metric, T), new, q


def nose_poincare_energy(theta, p, s, q, log_density, metric, T, Q, H0):
    return s * (energy(theta, p / s, log_density, metric, T) + q**2 / (2 * Q) + theta.size * T * np.log(s) - H0)


def nose_hoover(theta, p, q, gradient, metric, h, T, C, A, Q, n, rng):
    """One step from s = 1, q driven by the kinetic energy: friction and its noise, kick, drift, kick; returns p / s."""
    g = theta.size
    c, a = np.exp(-C * h), np.exp(-A * h)
    p = c * p + np.sqrt(T * (1 - c**2)) * np.linalg.cholesky(metric(theta)[0]) @ rng.standard_normal(g)
    q = a * q + np.sqrt(T * Q * (1 - a**2)) * rng.standard_normal()
    p = kick(theta, p, 1.0, gradient, metric, T, 0.5 * h, n)
    q = q + 0.5 * h * (p @ np.linalg.solve(metric(theta)[0], p) - g * T)
    s = np.exp(h * q / Q)
    theta = drift(theta, p, 1.0, s, metric, h, n)
    q = q + 0.5 * h * (p @ np.linalg.solve(metric(theta)[0], p) / s**2 - g * T)
    return theta, (p + 0.5 * h * s * force(theta, p, s, gradient, metric, T)) / s, q
