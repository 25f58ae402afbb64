"""Densities on manifolds: the base class of targets on them, and your own density on a product of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from ..dense.tuning import (
    DenseGradient,
    check_finite,
    check_gradient,
    check_gradient_at,
    check_scale,
    minibatch_variance,
    stiffness,
)
from ..kernels.models import user
from ..samplers._products import MANIFOLDS, Block, Product
from ..samplers.schedules import ConstantStep
from ..utils._numbers import is_count
from ..utils._parameters import positional_parameters
from ._base import Target

# Step as a share of the shortest time scale of the target.
_STEP_SHARE = 0.2
# How much the noise of minibatches may heat the chain, beyond what friction removes.
_NOISE_SHARE = 0.05
# Distance from the start of the second check of gradients.
_AWAY = 0.3


def _product_of_rows(pairs, shape, known, owner):
    """The product that a user's list of (name, rows) specifies, for a state (n_rows, width) of the target ``owner``."""
    example = f'a list of manifolds and their rows, such as [("{known[0]}", {shape[0]})]'
    try:
        blocks = [Block(name, rows, shape[1]) for name, rows in pairs]
        fits = all(block.geometry in known and is_count(block.n_rows) for block in blocks)
    except (TypeError, ValueError):
        fits = False
    if not fits or not blocks:
        raise ValueError(f"geometry={pairs!r} is not available for {owner}; give {example}, of {', '.join(known)}.")
    n_rows = sum(block.n_rows for block in blocks)
    if n_rows != shape[0]:
        raise ValueError(f"geometry={pairs!r} has {n_rows} rows, and {owner} has {shape[0]}; give {example}.")
    return Product(blocks)


def _blocks_of_space(name, space):
    """Shape and blocks of the part ``spaces[name] = (manifold, shape)``."""
    given = f"spaces[{name!r}] = {space!r}"
    try:
        geometry, shape = space
        shape = (shape,) if np.ndim(shape) == 0 else tuple(shape)
        fits = geometry in MANIFOLDS and all(is_count(n) for n in shape)
        fits = fits and len(shape) >= (2 if geometry == "stiefel" else 1)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(
            f"{given} must be a manifold ({', '.join(MANIFOLDS)}) and a shape, such as "
            '("sphere", (3,)), or of a frame ("stiefel", (2, 5)): two orthonormal rows of length 5.'
        )
    shape = tuple(int(n) for n in shape)
    if shape[-1] < 2 and geometry != "euclidean":
        raise ValueError(f"{given}: on a {geometry} of one coordinate nothing can move; give two or more.")
    n_points = int(np.prod(shape[:-1]))
    if geometry != "stiefel":
        return shape, [Block(geometry, n_points, shape[-1])]
    n_rows, width = shape[-2:]
    if n_rows > width:
        turned = (*shape[:-2], width, n_rows)
        raise ValueError(f"{given}: a frame has at most as many rows as columns; ({geometry!r}, {turned}) has.")
    return shape, [Block(geometry, n_rows, width)] * (n_points // n_rows)


class ManifoldTarget(Target):
    """Targets with the gradient of a log density with respect to a manifold's surface measure.

    A subclass implements ``_curvature(gradient, theta)`` besides: about the largest, by which a step size is chosen.
    """

    _offers = (("sphere", "gradient"),)
    _estimates_noise = True
    _geometry = "sphere"

    def _with_geometry(self, geometry):
        copy = type(self)(**self.get_params(deep=False))
        if not isinstance(geometry, str) or geometry == "product":
            known = [name for name, _ in self._offers if name != "product"]
            geometry = _product_of_rows(geometry, self._rows()[2], known, type(self).__name__)
        copy._geometry = geometry
        for _, n_rows, width in (block for block in copy._product().blocks if block.geometry == "stiefel"):
            if n_rows > width:
                raise ValueError(
                    f"{type(self).__name__} cannot have a frame of {n_rows} rows of length {width}, since a frame has "
                    "at most as many rows as columns. Give fewer rows, or another geometry."
                )
        return copy

    def _space(self, geometry):
        return self._geometry

    def _product(self):
        """The product of the target's spaces; a single block if all rows have one geometry."""
        if isinstance(self._geometry, Product):
            return self._geometry
        return Product([Block(self._geometry, *self._rows()[2])])

    def _step_size(self, sampler, dense, points):
        theta, n_batch = points[0], dense.n_batch
        gradient = DenseGradient(dense, theta.shape)
        # A unit velocity crosses the manifold in a time of order 1; a face of the simplex in one of order 1/width, or,
        # where a force presses against it, in the inverse of that force.
        extent = 1.0
        product = self._product()
        for block, force in zip(product.blocks, product.split(gradient(theta)[1]), strict=True):
            if block.geometry == "simplex":
                force = force - force.mean(axis=1, keepdims=True)
                extent = max(extent, block.width**2, (force**2).sum(axis=1).max())
        noise = minibatch_variance(gradient, theta, n_batch, np.random.default_rng(0))
        curvature = self._curvature(gradient, theta) + extent
        return ConstantStep(float(sampler._stable_step(curvature, noise, share=_NOISE_SHARE, reach=_STEP_SHARE)))

    def _mean_square_velocity(self):
        return self._product().dimension()

    def _start(self, sampler):
        return np.concatenate([each.ravel() for each in self._product().start()]).reshape(self._rows()[2])

    def _check_init(self, init):
        self._product().check(init)

    def _public(self, theta, aux, sampler):
        draws = {"x": theta}
        return draws | {"velocity": aux} if aux.size else draws


@positional_parameters
class ManifoldDensity(ManifoldTarget):
    r"""Your own density on a product of spheres, simplices, orthonormal frames and flat spaces.

    Parameters
    ----------
    log_density_and_gradient : function jitted by ``numba.njit``
        ``f(theta, rows, scale, gradient)`` writes the gradient of the log density into ``gradient`` (dim,) and returns
        the log density with respect to the surface measure, up to a constant. ``theta`` (dim,) holds the parts one
        after the other, each in C order. The gradient is that in the surrounding space: samplers project it. Multiply
        every sum over ``rows``, the minibatch, by ``scale``, which is N/n.
    spaces : dict of str to (str, tuple of int)
        The parts by name: the manifold ("sphere", "simplex", "stiefel" or "euclidean") and the shape. The last axis is
        one point, or for a frame the last two (orthonormal rows), and leading axes are copies: ``("stiefel", (4, 2,
        5))`` is four frames of two rows of length 5. Their order is that of ``theta``. A frame of as many rows as
        columns keeps the sign of its start's determinant: no path connects the two signs.
    data : array-like of shape (n_samples, n_columns), default=None
        Rows, from which minibatches are drawn; None for a density without data.
    start : dict of str to array-like, default=None
        Where chains start, for some or all parts. Other parts start with equal coordinates, frames with the first axes,
        flat ones at 0. The automatic step size is computed at the start: choose one where the density is high.
    check_gradient : bool, default=True
        Compare the gradient of each part with a difference of the log density along its manifold, at the start, away
        from it and at some of the draws, and minibatches with all rows, once.

    Attributes
    ----------
    dimension : int
        Dimension of the product, and the mean of the squared velocity.

    See Also
    --------
    sk_sgmcmc.targets.Density : On flat space only, with masses and metrics.

    Notes
    -----
    Draws are named like the parts; ``samples_["velocity"]`` (n_chains, n_kept, dim) are the velocities of samplers
    that keep one, laid out as ``theta``. Their squares add up to `dimension` on average. The mass is the identity on
    all parts: choose units in which they vary by the same order of magnitude, or a step size that suits one part makes
    another slow. ``init`` of `sample` is such a ``theta``, (dim,).

    Examples
    --------
    A direction pulled by the first of two proportions:

    >>> import numba
    >>> import numpy as np
    >>> from sk_sgmcmc import sample
    >>> from sk_sgmcmc.targets import ManifoldDensity
    >>> @numba.njit
    ... def pulled(theta, rows, scale, gradient):
    ...     gradient[:] = 0.0
    ...     gradient[0] = 8.0 * theta[3]
    ...     gradient[3] = 8.0 * theta[0]
    ...     return 8.0 * theta[0] * theta[3]
    >>> target = ManifoldDensity(pulled, {"x": ("sphere", (3,)), "w": ("simplex", (2,))})
    >>> draws = sample(target, "gmc", n_iter=500, random_state=0).samples_
    >>> draws["x"].shape, draws["w"].shape
    ((1, 250, 3), (1, 250, 2))
    """

    log_density_and_gradient: Callable[..., Any]
    spaces: Mapping[str, tuple[str, tuple[int, ...]]]
    data: ArrayLike | None = None
    start: Mapping[str, Any] | None = None
    check_gradient: bool = True

    _offers = (("product", "gradient"),)
    _estimates_noise = False

    def _with_geometry(self, geometry):
        if geometry != "product":
            raise ValueError(f"geometry={geometry!r}: a ManifoldDensity takes its geometry from `spaces`.")
        return self

    def _space(self, geometry):
        return self._product()

    def _parts(self):
        """Shape and blocks of each part, by name."""
        if not isinstance(self.spaces, dict) or not self.spaces:
            raise ValueError(
                f'spaces={self.spaces!r} must be a dict of parts, such as {{"frame": ("stiefel", (2, 5)), '
                '"weights": ("simplex", (3,))}.'
            )
        for name in self.spaces:
            if not isinstance(name, str) or name == "velocity":
                raise ValueError(
                    f'spaces has a part named {name!r}: give a string other than "velocity", which is reserved.'
                )
        return {name: _blocks_of_space(name, space) for name, space in self.spaces.items()}

    def _product(self):
        return Product(block for _, blocks in self._parts().values() for block in blocks)

    @property
    def dimension(self) -> int:
        """Dimension of the product."""
        return self._product().dimension()

    def _signal(self):
        return user.user_signal(self.log_density_and_gradient)

    def _rows(self):
        X = np.zeros((1, 1)) if self.data is None else check_array(self.data, dtype=np.float64, input_name="data")
        return X, np.zeros(0), (sum(int(np.prod(shape)) for shape, _ in self._parts().values()), 1)

    def _curvature(self, gradient, theta):
        # A curved manifold adds to the curvature in the surrounding space by deflecting a force that presses onto it.
        product = self._product()
        pull = [
            np.sqrt((force**2).sum(axis=1).max())
            for block, force in zip(product.blocks, product.split(gradient(theta)[1]), strict=True)
            if block.geometry in ("sphere", "stiefel")
        ]
        return stiffness(gradient, theta, None, np.random.default_rng(0)) + max(pull, default=0.0)

    def _start(self, sampler):
        given = {} if self.start is None else self.start
        parts = self._parts()
        if not isinstance(given, dict) or not set(given) <= set(parts):
            raise ValueError(f"start={given!r} must be a dict of arrays by the names of parts: {', '.join(parts)}.")
        first = []
        for name, (shape, blocks) in parts.items():
            whole = np.concatenate([each.ravel() for each in Product(blocks).start()])
            if name in given:
                try:
                    whole = np.asarray(given[name], dtype=float)
                except (TypeError, ValueError):
                    raise ValueError(f"start[{name!r}]={given[name]!r} must be numbers of shape {shape}.") from None
                if whole.shape != shape:
                    raise ValueError(f"start[{name!r}] has shape {whole.shape}; in spaces it is {shape}.")
                Product(blocks).check(whole, f"start[{name!r}]")
            first.append(whole.ravel())
        return np.concatenate(first)[:, None]

    def _check(self, dense, starts):
        gradient = DenseGradient(dense, starts[0].shape)
        for start in starts:
            check_finite(gradient, start)
        if not self.check_gradient:
            return
        theta = starts[0]
        self._check_parts(gradient, theta, "at the start")
        away = self._product().moved(theta, _AWAY, np.random.default_rng(2))
        if all(np.all(np.isfinite(part)) for part in gradient(away)):
            self._check_parts(gradient, away, "away from the start")
            if dense.n_batch < dense.n_rows:
                check_scale(gradient, away)

    def _check_parts(self, gradient, theta, where):
        """Check the gradient of each part along a direction in which that part can move."""
        product, at = self._product(), 0
        for name, (shape, _) in self._parts().items():
            end = at + int(np.prod(shape))
            own = np.zeros(theta.size)
            own[at:end] = np.random.default_rng(0).standard_normal(end - at)
            check_gradient(gradient, theta, product.project(theta, own), f" of the part {name!r}", where)
            at = end

    def _gradient_checks(self, gradient, draws):
        product = self._product()
        return [check_gradient_at(gradient, draws, product.project)] if self.check_gradient else []

    def _public(self, theta, aux, sampler):
        draws, at = {}, 0
        for name, (shape, _) in self._parts().items():
            end = at + int(np.prod(shape))
            draws[name] = theta[..., at:end, 0].reshape(*theta.shape[:-2], *shape)
            at = end
        return draws | {"velocity": aux[..., 0]} if aux.size else draws
