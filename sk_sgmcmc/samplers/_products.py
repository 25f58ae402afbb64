"""Products of manifolds: the layout of their blocks in a state, and points on the manifolds."""

from typing import NamedTuple

import numpy as np

from ..kernels.samplers import geometry

MANIFOLDS = ("sphere", "simplex", "stiefel", "euclidean")


class Block(NamedTuple):
    """Rows of the same width on one manifold: any number of spheres or simplices, or one orthonormal frame."""

    geometry: str
    n_rows: int
    width: int


class Product:
    """A product of manifolds, whose blocks follow each other in the memory of a state.

    Used as ``geometry`` instead of a name. Its ``str`` is "product".

    Parameters
    ----------
    blocks : iterable of Block
    """

    def __init__(self, blocks):
        self.blocks = tuple(blocks)

    def __str__(self):
        return "product"

    def table(self):
        """Geometry, rows and width of each block, (n_blocks, 3), as `sk_sgmcmc.kernels.samplers.geometry` reads it."""
        codes = {name: getattr(geometry, name.upper()) for name in MANIFOLDS}
        return np.array([[codes[block.geometry], *block[1:]] for block in self.blocks], dtype=float)

    def split(self, theta):
        """The blocks of a state or of a gradient, as a list of views of shape (n_rows, width)."""
        ends = np.cumsum([block.n_rows * block.width for block in self.blocks])
        parts = np.split(np.ascontiguousarray(theta).ravel(), ends[:-1])
        return [part.reshape(block[1:]) for part, block in zip(parts, self.blocks, strict=True)]

    def project(self, theta, vector):
        """The tangential part of a vector at theta, as a flat array."""
        x = np.array(theta, dtype=float).reshape(-1, 1)
        v = np.array(vector, dtype=float).reshape(-1, 1)
        geometry.product_project(x, v, self.table())
        return v.ravel()

    def dimension(self):
        """Dimension of the product, which is also the mean squared length of a velocity."""
        return int(geometry.dimension(geometry.PRODUCT, np.zeros((1, 1)), self.table()))

    def start(self):
        """A list with a point of each block, of shape (n_rows, width), from which chains start."""
        return [_START[block.geometry](*block[1:]) for block in self.blocks]

    def moved(self, theta, distance, rng):
        """A point of the product at about ``distance`` from theta in a random direction, in the shape of theta.

        ``distance`` scales the displacement. On a simplex, it is the fraction of the way to a random point.
        """
        parts = [
            _MOVE[block.geometry](x, distance, rng) for block, x in zip(self.blocks, self.split(theta), strict=True)
        ]
        return np.concatenate([part.ravel() for part in parts]).reshape(np.shape(theta))

    def check(self, theta, name="init"):
        """Raise if a point does not lie on the product, which a chain that starts there would never reach."""
        for at, (block, x) in enumerate(zip(self.blocks, self.split(theta), strict=True)):
            off, needed = _DISTANCE_FROM[block.geometry](x), _DESCRIPTION[block.geometry]
            if not off <= 1e-6:
                where = f", in its block {at} ({block.geometry})" if len(self.blocks) > 1 else ""
                raise ValueError(f"{name} lies off the manifold by {off:.3g}{where}; pass {needed}.")


_START = {
    "sphere": lambda n, width: np.full((n, width), width**-0.5),
    "simplex": lambda n, width: np.full((n, width), 1.0 / width),
    "stiefel": np.eye,
    "euclidean": lambda n, width: np.zeros((n, width)),
}


def _displaced(x, distance, rng):
    return x + distance * rng.standard_normal(x.shape)


def _on_spheres(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _orthonormal(x):
    Q, R = np.linalg.qr(x.T)
    return (Q * np.sign(np.diag(R))).T


_MOVE = {
    "sphere": lambda *given: _on_spheres(_displaced(*given)),
    "simplex": lambda x, distance, rng: x + distance * (rng.dirichlet(np.ones(x.shape[1]), len(x)) - x),
    "stiefel": lambda *given: _orthonormal(_displaced(*given)),
    "euclidean": _displaced,
}
_DISTANCE_FROM = {
    "sphere": lambda x: np.abs((x**2).sum(axis=1) - 1.0).max(),
    "simplex": lambda x: max(np.abs(x.sum(axis=1) - 1.0).max(), -x.min()),
    "stiefel": lambda x: np.abs(x @ x.T - np.eye(len(x))).max(),
    "euclidean": lambda x: 0.0 if np.all(np.isfinite(x)) else np.inf,
}
_DESCRIPTION = {
    "sphere": "rows of length 1",
    "simplex": "rows of proportions that add up to 1",
    "stiefel": "orthonormal rows",
    "euclidean": "finite numbers",
}
