"""Particle samplers, slowly: sums over pairs, one pair at a time."""

import numpy as np


def median_bandwidth(X):
    M = len(X)
    squares = [np.sum((X[i] - X[j]) ** 2) for i in range(M) for j in range(i)]
    return 0.5 * np.median(squares) / np.log(M + 1) if M > 1 else 1.0


def kernel(x, y, h):
    return np.exp(-np.sum((x - y) ** 2) / (2 * h))


def slope(x, y, h):
    """Gradient of the kernel by its first argument."""
    return -(x - y) / h * kernel(x, y, h)


def interaction(X, h, name, ridge=0.01):
    """Estimate of minus the score at each particle; of SVGD the sum over j of the gradients of K_ij by x_j."""
    M = len(X)
    S = [sum(kernel(X[i], X[j], h) for j in range(M)) for i in range(M)]
    b = np.zeros_like(X)
    for i in range(M):
        for j in range(M):
            if name == "blob":
                b[i] -= slope(X[i], X[j], h) / S[i] + slope(X[i], X[j], h) / S[j]
            elif name == "gfsd":
                b[i] -= slope(X[i], X[j], h) / S[i]
            else:
                b[i] += slope(X[j], X[i], h)
    if name == "gfsf":
        K = np.array([[kernel(x, y, h) for y in X] for x in X])
        b = np.linalg.solve(K + ridge * np.eye(M), b)
    return b


def langevin_flow(X, gradient, step, name):
    h, M = median_bandwidth(X), len(X)
    b, g = interaction(X, h, name), np.array([gradient(x) for x in X])
    if name == "svgd":
        g = np.array([sum(kernel(x, X[j], h) * g[j] for j in range(M)) for x in X])
        return X + step * (g + b) / M
    return X + step * (g + b)


def hamiltonian_flow(X, p, gradient, step, C, m, kind):
    g, push = np.array([gradient(x) for x in X]), interaction(p, median_bandwidth(p), "blob")
    if kind == "fgh":
        g = g + interaction(X, median_bandwidth(X), "blob")
    p = p + step * (g - C * p / m + C * push)
    velocity = p / m
    if kind == "fgh":
        velocity = velocity - interaction(p, median_bandwidth(p), "blob")
    return X + step * velocity, p


def heat_error(X, h, dt=1e-4, dx=1e-3):
    """h^(D + 2) sum_k lambda_k^2 by differences: the Laplacian of the smoothed particles against their flow."""
    D = X.shape[1]

    def density(x, particles):
        return sum(kernel(x, y, h) for y in particles)

    moved = [X + sign * dt * interaction(X, h, "gfsd") for sign in (1, -1)]  # along minus the score
    total = 0.0
    for x in X:
        flow = (density(x, moved[0]) - density(x, moved[1])) / (2 * dt)
        steps = dx * np.eye(D)
        laplacian = sum(density(x + e, X) - 2 * density(x, X) + density(x - e, X) for e in steps) / dx**2
        total += (h * (laplacian - flow)) ** 2
    return total
