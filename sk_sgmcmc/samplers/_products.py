"""Products of manifolds: the layout of their blocks in a state, and points on them."""

from typing import NamedTuple

import numpy as np

from ..kernels.samplers import geometry

MANIFOLDS = ("sphere", "simplex", "stiefel", "euclidean")


class Block(NamedTuple):
    """Rows of one width on a manifold; each frame is a block, while spheres or simplices may share one."""

    geometry: str
    n_rows: int
    width: int


class Product:
    """A product of manifolds, whose blocks fill a state one after the other in memory order.

    It takes the place of a geometry's name, which is "product".

    Parameters
    ----------
    blocks : iterable of Block
    """

    def __init__(self, blocks):
        self.blocks = tuple(blocks)

    def __str__(self):
        return "product"

    def table(self):
        """(n_blocks, 3): geometry, rows and width, as `sk_sgmcmc.kernels.samplers.geometry` reads it."""
        codes = {name: getattr(geometry, name.upper()) for name in MANIFOLDS}
        return np.array([[codes[block.geometry], *block[1:]] for block in self.blocks], dtype=float)

    def split(self, theta):
        """Views of a state, or of its derivative: one (n_rows, width) for each block."""
        ends = np.cumsum([block.n_rows * block.width for block in self.blocks])
        parts = np.split(np.ascontiguousarray(theta).ravel(), ends[:-1])
        return [part.reshape(block[1:]) for part, block in zip(parts, self.blocks, strict=True)]

    def project(self, theta, vector):
        """The tangential part of a vector at theta, flat."""
        x = np.array(theta, dtype=float).reshape(-1, 1)
        v = np.array(vector, dtype=float).reshape(-1, 1)
        geometry.product_project(x, v, self.table())
        return v.ravel()

    def dimension(self):
        """Dimension of the product, and the mean of a squared velocity."""
        return int(geometry.dimension(geometry.PRODUCT, np.zeros((1, 1)), self.table()))

    def start(self):
        """A point of each block, (n_rows, width)."""
        return [_START[block.geometry](*block[1:]) for block in self.blocks]

    def moved(self, theta, distance, rng):
        """A point of the product in a random direction from theta, in the shape of theta."""
        parts = [
            _MOVE[block.geometry](x, distance, rng) for block, x in zip(self.blocks, self.split(theta), strict=True)
        ]
        return np.concatenate([part.ravel() for part in parts]).reshape(np.shape(theta))

    def check(self, theta, name="init"):
        """Raise if a point lies off the product, to which no draw would ever return."""
        for at, (block, x) in enumerate(zip(self.blocks, self.split(theta), strict=True)):
            off, needed = _DISTANCE_FROM[block.geometry](x), _DESCRIPTION[block.geometry]
            if not off <= 1e-6:
                where = f", in its block {at} ({block.geometry})" if len(self.blocks) > 1 else ""
                raise ValueError(f"{name} lies off the manifold by {off:.3g}{where}; give {needed}.")


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
