"""Samplers on flat space, slowly: one step in NumPy, with the gradient as a function."""

import numpy as np


def sgld(theta, gradient, h, T, P, rng):
    return theta + h * P * gradient(theta) + np.sqrt(2 * h * T * P) * rng.standard_normal(theta.size)


def sghmc_euler(theta, p, gradient, h, T, C, B, M, rng):
    W = np.linalg.inv(M)
    p = p + h * gradient(theta) - h * C * W @ p + np.sqrt(2 * h * (C * T - B)) * rng.standard_normal(theta.size)
    return theta + h * W @ p, p


def apply_friction(p, C, h, T, M, rng):
    c = np.exp(-C * h)
    return c * p + np.sqrt(T * (1 - c**2)) * np.linalg.cholesky(M) @ rng.standard_normal(p.size)


def sghmc_baoab(theta, p, gradient, h, T, C, B, M, rng):
    W = np.linalg.inv(M)
    p = p + h * gradient(theta)
    theta = theta + 0.5 * h * W @ p
    p = apply_friction(p, C, h, T - B / C, M, rng)
    return theta + 0.5 * h * W @ p, p


def sghmc_aboba(theta, p, gradient, h, T, C, B, M, rng):
    W = np.linalg.inv(M)
    theta = theta + 0.5 * h * W @ p
    force = gradient(theta)
    p = apply_friction(p + 0.5 * h * force, C, h, T - B / C, M, rng) + 0.5 * h * force
    return theta + 0.5 * h * W @ p, p


def langevin_without_force(theta, p, C, t, T, M, rng):
    """The integrals of the Ornstein-Uhlenbeck process and of its noise, in the textbook form."""
    L, W, e = np.linalg.cholesky(M), np.linalg.inv(M), np.exp(-C * t)
    cross, position = (1 - e) ** 2 / C, (2 * C * t - 3 + 4 * e - e**2) / C**2
    root = np.sqrt(T) * np.linalg.cholesky([[1 - e**2, cross], [cross, position]])
    first = L @ rng.standard_normal(p.size)
    second = L @ rng.standard_normal(p.size)
    theta = theta + W @ ((1 - e) / C * p + root[1, 0] * first + root[1, 1] * second)
    return theta, e * p + root[0, 0] * first


def sghmc_ubu(theta, p, gradient, h, T, C, B, M, rng):
    theta, p = langevin_without_force(theta, p, C, 0.5 * h, T - B / C, M, rng)
    p = p + h * gradient(theta)
    return langevin_without_force(theta, p, C, 0.5 * h, T - B / C, M, rng)


def sgnht_euler(theta, p, xi, gradient, h, T, A, mu, M, rng):
    W = np.linalg.inv(M)
    noise = np.linalg.cholesky(M) @ rng.standard_normal(p.size)
    p = p + h * gradient(theta) - h * xi * p + np.sqrt(2 * A * h) * noise
    return theta + h * W @ p, p, xi + h * (p @ W @ p / p.size - T) / mu


def sgnht_white(theta, p, xi, gradient, h, T, A, mu, M, rng):
    W = np.linalg.inv(M)
    p = p + h * gradient(theta) - h * xi * W @ p + np.sqrt(2 * A * h) * rng.standard_normal(p.size)
    return theta + h * W @ p, p, xi + h * (p @ W @ W @ p / np.trace(W) - T) / mu


def sgnht_aboba(theta, p, xi, gradient, h, T, A, mu, M, rng):
    W = np.linalg.inv(M)
    theta, xi = theta + 0.5 * h * W @ p, xi + 0.5 * h * (p @ W @ p / p.size - T) / mu
    noise = np.linalg.cholesky(M) @ rng.standard_normal(p.size)
    p = np.exp(-0.5 * h * xi) * p + h * gradient(theta) + np.sqrt(2 * A * h) * noise
    p = np.exp(-0.5 * h * xi) * p
    return theta + 0.5 * h * W @ p, p, xi + 0.5 * h * (p @ W @ p / p.size - T) / mu


def nose_poincare(theta, p, s, q, log_density, gradient, h, T, Q, H0, M):
    """The corrected leapfrog of the Nosé-Poincaré Hamiltonian; the implicit q by the root that is continuous in h."""
    W, g = np.linalg.inv(M), theta.size
    p = p + 0.5 * h * s * gradient(theta)
    c = q + 0.5 * h * (-g * T * (1 + np.log(s)) + 0.5 * p @ W @ p / s**2 + log_density(theta) + H0)
    roots = np.roots([h / (4 * Q), 1.0, -c])
    q = roots[np.argmin(np.abs(roots - c))].real
    new = s * (1 + h * q / (2 * Q)) / (1 - h * q / (2 * Q))
    theta = theta + 0.5 * h * W @ p * (1 / s + 1 / new)
    p = p + 0.5 * h * new * gradient(theta)
    half = p - 0.5 * h * new * gradient(theta)
    q = q + 0.5 * h * (
        H0 + log_density(theta) - g * T * (1 + np.log(new)) + 0.5 * half @ W @ half / new**2 - q**2 / (2 * Q)
    )
    return theta, p, new, q


def nose_poincare_energy(theta, p, s, q, log_density, T, Q, H0, M):
    return s * (
        -log_density(theta) + 0.5 * p @ np.linalg.inv(M) @ p / s**2 + q**2 / (2 * Q) + theta.size * T * np.log(s) - H0
    )


def leapfrog(theta, p, gradient, h, n, M):
    W = np.linalg.inv(M)
    for _ in range(n):
        p = p + 0.5 * h * gradient(theta)
        theta = theta + h * W @ p
        p = p + 0.5 * h * gradient(theta)
    return theta, p
