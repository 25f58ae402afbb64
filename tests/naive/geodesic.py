"""Slow geodesic steps, written from the papers' equations."""

from functools import partial

import numpy as np
from scipy.linalg import expm


def sphere_project(x, v):
    return v - np.sum(x * v, axis=1, keepdims=True) * x


def sphere_flow(x, v, t):
    a = np.linalg.norm(v, axis=1, keepdims=True)
    return x * np.cos(a * t) + v / a * np.sin(a * t), -a * x * np.sin(a * t) + v * np.cos(a * t)


def simplex_project(x, v):
    return v - v.mean(axis=1, keepdims=True)


def simplex_flow(x, v, t):
    out = []
    for a, b in zip(x, v, strict=True):
        a, b, left, n = a.copy(), b.copy(), t, len(a)
        while True:
            times = np.where(b < 0, a / np.where(b < 0, -b, 1.0), np.inf)
            j = times.argmin()
            if times[j] >= left:
                break
            a = a + times[j] * b
            a[j] = 0.0
            left -= times[j]
            normal = -np.full(n, 1.0 / n)
            normal[j] += 1.0
            normal /= np.linalg.norm(normal)
            b = b - 2.0 * (b @ normal) * normal
        out.append((a + left * b, b))
    return np.array([a for a, _ in out]), np.array([b for _, b in out])


def stiefel_project(X, V):
    X, V = X.T, V.T
    return (V - 0.5 * X @ (X.T @ V + V.T @ X)).T


def stiefel_flow(X, V, t):
    X, V = X.T, V.T
    p = X.shape[1]
    A, S = X.T @ V, V.T @ V
    block = expm(t * np.block([[A, -S], [np.eye(p), A]]))
    both = np.hstack([X, V]) @ block @ np.kron(np.eye(2), expm(-t * A))
    return both[:, :p].T, both[:, p:].T


def _blocks(product, x):
    """Parts of a product, [(name, rows, width), ...], each (name, (rows, width))."""
    ends = np.cumsum([rows * width for _, rows, width in product])
    return [(b[0], p.reshape(b[1:])) for b, p in zip(product, np.split(x.ravel(), ends[:-1]), strict=True)]


def product_project(product, x, v):
    parts = [PROJECTIONS[n](a, b) for (n, a), (_, b) in zip(_blocks(product, x), _blocks(product, v), strict=True)]
    return np.concatenate([part.ravel() for part in parts]).reshape(x.shape)


def product_flow(product, x, v, t):
    moved = [FLOWS[n](a, b, t) for (n, a), (_, b) in zip(_blocks(product, x), _blocks(product, v), strict=True)]
    return tuple(
        np.concatenate([part.ravel() for part in parts]).reshape(x.shape) for parts in zip(*moved, strict=True)
    )


FLOWS = {"sphere": sphere_flow, "simplex": simplex_flow, "stiefel": stiefel_flow}
FLOWS["euclidean"] = lambda x, v, t: (x + t * v, v)
PROJECTIONS = {"sphere": sphere_project, "simplex": simplex_project, "stiefel": stiefel_project}
PROJECTIONS["euclidean"] = lambda x, v: v
DIMENSIONS = {
    "sphere": lambda n, width: n * (width - 1),
    "simplex": lambda n, width: n * (width - 1),
    "stiefel": lambda n, width: n * width - n * (n + 1) // 2,
    "euclidean": lambda n, width: n * width,
}


def _geometry(geometry, shape):
    """Flow, projection and dimension of a geometry by its name, or of a product by its blocks."""
    if isinstance(geometry, str):
        return FLOWS[geometry], PROJECTIONS[geometry], DIMENSIONS[geometry](*shape)
    dim = sum(DIMENSIONS[name](rows, width) for name, rows, width in geometry)
    return partial(product_flow, geometry), partial(product_project, geometry), dim


def chain(geometry, x, gradient, h, C, V, xi, mass, n_steps, rng):
    """A B O B A; ``mass`` of the thermostat, infinite for SGGMC. Returns x, v and xi."""
    flow, project, dim = _geometry(geometry, x.shape)
    v = project(x, rng.standard_normal(x.shape))
    for _ in range(n_steps):
        x, v = flow(x, v, h / 2)
        xi = xi + (np.sum(v**2) / dim - 1.0) * h / 2 / mass
        v = v * np.exp(-xi * h / 2)
        v = v + project(x, h * gradient(x) + np.sqrt(2 * np.sinh(h * C) - h**2 * V) * rng.standard_normal(x.shape))
        v = v * np.exp(-xi * h / 2)
        x, v = flow(x, v, h / 2)
        xi = xi + (np.sum(v**2) / dim - 1.0) * h / 2 / mass
    return x, v, xi
