"""Products of manifolds: what a user says of one, where its blocks lie in a state, and what lies on it."""

from typing import NamedTuple

import numpy as np

MANIFOLDS = ("sphere", "simplex", "stiefel", "euclidean")


class Block(NamedTuple):
    """Rows of one width that lie on a manifold together; a frame is one block, spheres and simplices may share one."""

    geometry: str
    n_rows: int
    width: int


class Product:
    """A product of manifolds, whose blocks fill a state one behind the other in memory order.

    It stands where a geometry is called by its name, which is "product".

    Parameters
    ----------
    blocks : iterable of Block
    """

    def __init__(self, blocks):
        self.blocks = tuple(blocks)
        for block in self.blocks:
            if block.geometry == "stiefel" and block.n_rows > block.width:
                raise ValueError(
                    f"A frame of {block.n_rows} rows in {block.width} dimensions; it has at most as many rows as "
                    "columns."
                )

    def __str__(self):
        return "product"

    def table(self):
        """(n_blocks, 3): geometry, rows and width, as `sk_sgmcmc.kernels.geometry` reads it."""
        from ..kernels import geometry

        codes = {name: getattr(geometry, name.upper()) for name in MANIFOLDS}
        return np.array([[codes[block.geometry], *block[1:]] for block in self.blocks], dtype=float)

    def split(self, theta):
        """Views of a state, or of its derivative: one (n_rows, width) for each block."""
        ends = np.cumsum([block.n_rows * block.width for block in self.blocks])
        parts = np.split(np.ascontiguousarray(theta).ravel(), ends[:-1])
        return [part.reshape(block[1:]) for part, block in zip(parts, self.blocks, strict=True)]

    def project(self, theta, vector):
        """The part of a vector that is tangential at theta, flat."""
        from ..kernels import geometry

        x = np.array(theta, dtype=float).reshape(-1, 1)
        v = np.array(vector, dtype=float).reshape(-1, 1)
        geometry.product_project(x, v, self.table())
        return v.ravel()

    def dimension(self):
        """How many squares of standard normals a squared velocity is made of."""
        from ..kernels import geometry

        return geometry.dimension(geometry.PRODUCT, np.zeros((1, 1)), self.table())

    def start(self):
        """A point of each block, one (n_rows, width) for each."""
        return [_START[block.geometry](*block[1:]) for block in self.blocks]

    def check(self, theta, name="init"):
        """Raise where a point lies off the product, which no draw would ever come back to."""
        for (geometry, *_), x in zip(self.blocks, self.split(theta), strict=True):
            off, needed = _OFF[geometry](x), _NEEDED[geometry]
            if not off <= 1e-6:
                raise ValueError(f"{name} lies off the manifold by {off:.3g}; give {needed}.")


_START = {
    "sphere": lambda n, width: np.full((n, width), width**-0.5),
    "simplex": lambda n, width: np.full((n, width), 1.0 / width),
    "stiefel": np.eye,
    "euclidean": lambda n, width: np.zeros((n, width)),
}
_OFF = {
    "sphere": lambda x: np.abs((x**2).sum(axis=1) - 1.0).max(),
    "simplex": lambda x: max(np.abs(x.sum(axis=1) - 1.0).max(), -x.min()),
    "stiefel": lambda x: np.abs(x @ x.T - np.eye(len(x))).max(),
    "euclidean": lambda x: 0.0 if np.all(np.isfinite(x)) else np.inf,
}
_NEEDED = {
    "sphere": "rows of length 1",
    "simplex": "rows of proportions that add up to 1",
    "stiefel": "orthonormal rows",
    "euclidean": "finite numbers",
}


def product_of_rows(pairs, shape, known, owner):
    """The product that a list of pairs (name, rows) makes of the rows of a state (n_rows, width).

    Parameters
    ----------
    pairs : list of (str, int)
    shape : (int, int)
    known : collection of str
        The manifolds that the target is defined on.
    owner : str
        The target's name, for errors.
    """
    example = f'a list of manifolds and their rows, such as [("{known[0]}", {shape[0]})]'
    try:
        blocks = [Block(name, int(rows), shape[1]) for name, rows in pairs]
        whole = all(block.n_rows == rows and block.n_rows > 0 for block, (_, rows) in zip(blocks, pairs, strict=True))
    except (TypeError, ValueError):
        blocks, whole = [], False
    if not blocks or not whole or not {block.geometry for block in blocks} <= set(known):
        raise ValueError(f"geometry={pairs!r} is none of {owner}; give {example}, of {', '.join(known)}.")
    if sum(block.n_rows for block in blocks) != shape[0]:
        raise ValueError(
            f"geometry={pairs!r} has {sum(block.n_rows for block in blocks)} rows, and {owner} has {shape[0]}; "
            f"give {example}."
        )
    return Product(blocks)


def blocks_of_space(name, space):
    """The blocks that ``spaces[name] = (manifold, shape)`` means; leading axes are copies.

    The last axis is one point of a sphere, simplex or flat space; the last two are one frame.
    """
    try:
        geometry, shape = space
        shape = (shape,) if np.ndim(shape) == 0 else tuple(shape)
        fits = geometry in MANIFOLDS and all(int(n) == n and n > 0 for n in shape)
        fits = fits and len(shape) >= (2 if geometry == "stiefel" else 1)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            f"spaces[{name!r}] = {space!r} must be a manifold ({', '.join(MANIFOLDS)}) and a shape, such as "
            '("sphere", (3,)), or of a frame ("stiefel", (2, 5)): two orthonormal rows of length 5.'
        )
    if shape[-1] < 2 and geometry in ("sphere", "simplex"):
        raise ValueError(f"spaces[{name!r}] = {space!r}: a {geometry} of one coordinate is no more than a point.")
    whole = tuple(int(n) for n in shape)
    n_points = int(np.prod(whole[:-1]))
    if geometry != "stiefel":
        return whole, [Block(geometry, n_points, whole[-1])]
    frame = Block(geometry, *whole[-2:])
    return whole, [frame] * (n_points // frame.n_rows)
