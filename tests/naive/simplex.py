"""Transitions on the simplex and on (0, inf) in plain NumPy, written from the papers.

numba's Generator gives NumPy's stream, so that a twin that asks for the same kinds of draws in the same order (row by
row, and in a row column by column, or column by column where a column moves as a whole) gives the same numbers.
"""

import numpy as np
from scipy import stats

from tests.naive.lda import GOLDEN, MASK, mix64

SMALLEST = 1e-300


def small_gamma(shape, u, v):
    """log of the proposal of Ahrens and Dieter's algorithm GS for a shape below 1, None if it is rejected."""
    b = 1.0 + shape / np.e
    p = b * u
    if p <= 1.0:
        log_x = np.log(p) / shape
        return log_x if v <= np.exp(-np.exp(log_x)) else None
    log_x = np.log(-np.log((b - p) / shape))
    return log_x if np.log(v) <= (shape - 1.0) * log_x else None


def log_gamma(shape, rng):
    """log of a Gamma(shape, 1) draw."""
    if shape >= 0.05:
        return np.log(rng.standard_gamma(shape))
    b = 1.0 + shape / np.e
    while True:
        p = b * (1.0 - rng.random())
        if p <= 1.0:
            # One number less where exp(-x) is 1.
            if np.log(p) / shape < -40.0 or rng.random() < np.exp(-(p ** (1.0 / shape))):
                return np.log(p) / shape
        else:
            x = -np.log((b - p) / shape)
            if np.log(1.0 - rng.random()) <= (shape - 1.0) * np.log(x):
                return np.log(x)


def gamma(shape, rng):
    """Gamma(shape, 1) draw."""
    return max(np.exp(log_gamma(shape, rng)), SMALLEST)


def uniforms(rng):
    """Numbers in (0, 1) of the cells of one call, three at a time."""
    counter = mix64(int(rng.random() * 2.0**53))
    while True:
        yield [((mix64((counter + j * GOLDEN) & MASK) >> 12) + 0.5) * 2.0**-52 for j in range(3)]
        counter = (counter + 3 * GOLDEN) & MASK


def mixed_gamma(shape, mean, numbers, rng):
    """Gamma(shape + N, 1) draw, N ~ Poisson(mean): by three uniforms, and by ``rng`` where these leave it open."""
    u, v, w = numbers
    count = poisson(mean, rng) if w <= mean and mean > 1.0 else int(stats.poisson(mean).ppf(1.0 - w))
    if shape + count >= 1.0:
        return rng.standard_gamma(shape + count)
    log_x = small_gamma(shape, u, v)
    return gamma(shape, rng) if log_x is None else np.exp(log_x)


def poisson(mean, rng):
    """Poisson draw, none asked for at mean 0, and its normal limit above 1e12."""
    if mean == 0:
        return 0
    if mean > 1e12:
        return np.floor(mean + np.sqrt(mean) * rng.standard_normal())
    return rng.poisson(mean)


def cells(function, theta, a, rng, rows):
    """Apply function(theta_rk, a_ik, rng) to the cells of ``rows``, row by row."""
    new = theta.copy()
    for i, r in enumerate(rows):
        for k in range(theta.shape[1]):
            new[r, k] = function(theta[r, k], a[i, k], rng)
    return new


def scir(theta, a, h, rng, rows):
    """theta' = (1 - e^{-h}) Gamma(a + P, 1), P ~ Poisson(theta e^{-h} / (1 - e^{-h})); papers.md 003.1."""
    h = np.broadcast_to(h, len(rows))
    new, numbers = theta.copy(), uniforms(rng)
    for i, r in enumerate(rows):
        forgotten = 1.0 - np.exp(-h[i])
        for k in range(theta.shape[1]):
            mean = theta[r, k] * (np.exp(-h[i]) / forgotten)
            new[r, k] = max(forgotten * mixed_gamma(a[i, k], mean, next(numbers), rng), SMALLEST)
    return new


def scir_log(theta, a, h, rng, rows):
    """The same with the draw made in logs; returns (log theta', theta')."""
    forgotten = 1.0 - np.exp(-h)

    def move(x, shape, rng):
        return np.log(forgotten) + log_gamma(shape + poisson(x * np.exp(-h) / forgotten, rng), rng)

    new = cells(move, theta, a, rng, rows)
    log_theta, moved = np.zeros_like(theta), theta.copy()
    log_theta[rows] = new[rows]
    moved[rows] = np.maximum(np.exp(new[rows]), SMALLEST)
    return log_theta, moved


def exponential_ou(theta, m, s, h, rng, rows):
    """log theta' = m + (log theta - m) e^{-h} + s sqrt(1 - e^{-2h}) Z."""
    new = theta.copy()
    for i, r in enumerate(rows):
        for k in range(theta.shape[1]):
            spread = s[k] * np.sqrt(-np.expm1(-2.0 * h))
            new[r, k] = np.exp(m[i, k] + (np.log(theta[r, k]) - m[i, k]) * np.exp(-h) + spread * rng.standard_normal())
    return new


def sgrld(parameterization, theta, a, n, h, rng):
    """One step of every column: shapes ``a`` = prior + estimated counts (n_cells, n_columns), totals ``n``."""
    new = theta.copy()
    for k in range(theta.shape[1]):
        x, shape, total = theta[:, k], a[:, k], n[k]
        if parameterization == "expanded-mean":
            # G^{-1} = diag(theta): gradient (a - 1)/theta - n/sum(theta) - 1, correction +1
            pi = x / x.sum()
            z = rng.standard_normal(x.size)
            new[:, k] = np.abs(x + h * (shape - total * pi - x) + np.sqrt(2.0 * h * x) * z)
        elif parameterization == "expanded-natural":
            pi = np.exp(x) / np.exp(x).sum()
            z = rng.standard_normal(x.size)
            gradient = shape - total * pi - np.exp(x)
            drift = np.exp(-x) * gradient - np.exp(-x)
            new[:, k] = x + h * drift + np.sqrt(2.0 * h * np.exp(-x)) * z
        elif parameterization == "reduced-mean":
            # the full inverse metric (diag pi - pi pi^T)/n, its root applied to all K normals
            z = rng.standard_normal(x.size)
            noise = np.sqrt(x) * z - x * (np.sqrt(x) @ z)
            moved = np.abs(x + h / total * (shape - shape.sum() * x) + np.sqrt(2.0 * h / total) * noise)
            new[:, k] = moved / moved.sum()
        else:
            pi = np.exp(x) / np.exp(x).sum()
            z_last = rng.standard_normal()
            z = rng.standard_normal(x.size - 1)
            drift = ((shape[:-1] - 1.0) / pi[:-1] - (shape[-1] - 1.0) / pi[-1]) / total
            noise = z / np.sqrt(pi[:-1]) - z_last / np.sqrt(pi[-1])
            new[:-1, k] = x[:-1] + h * drift + np.sqrt(2.0 * h / total) * noise
    return new
