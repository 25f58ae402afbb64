"""Densities on manifolds: the base class of such targets, and user-defined densities on products of manifolds."""

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

# Step size as a share of the shortest time scale of the target.
_STEP_SHARE = 0.2
# Relative increase of the temperature by the noise of minibatches that the automatic step size allows.
_NOISE_SHARE = 0.05
# Distance from the start at which gradients are checked a second time.
_AWAY = 0.3


def _product_of_rows(pairs, shape, known, owner):
    """The `Product` of a user's list of (manifold, rows), for a state (n_rows, width) of the target ``owner``."""
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
    """Shape and list of `Block` of the part ``spaces[name] = (manifold, shape)``."""
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
    """Targets on manifolds, with a log density with respect to the surface measure and its gradient.

    A subclass also implements ``_curvature(gradient, theta)``: an estimate of the largest curvature of the log density,
    from which the automatic step size is computed.
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
        """The `Product` of the target's spaces; a single block if all rows have the same geometry."""
        if isinstance(self._geometry, Product):
            return self._geometry
        return Product([Block(self._geometry, *self._rows()[2])])

    def _step_size(self, sampler, dense, points):
        theta, n_batch = points[0], dense.n_batch
        gradient = DenseGradient(dense, theta.shape)
        # At unit velocity, a chain crosses a manifold in a time of order 1. It reaches a face of the simplex in a time
        # of order 1/width, or if a force presses against the face, in a time of the inverse of that force.
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
    r"""A user-defined density on a product of spheres, simplices, orthonormal frames and flat spaces.

    Parameters
    ----------
    log_density_and_gradient : function jitted by ``numba.njit``
        ``f(theta, rows, scale, gradient)`` writes the gradient of the log density into ``gradient`` (dim,) and returns
        the log density with respect to the surface measure, up to a constant. ``theta`` (dim,) contains the parts one
        after the other, each in C order. Write the gradient in the ambient space; samplers project it. Multiply every
        sum over ``rows``, the minibatch, by ``scale``, which is N/n.
    spaces : dict of str to (str, tuple of int)
        Manifold ("sphere", "simplex", "stiefel" or "euclidean") and shape of each part by name, in the order of
        ``theta``. The last axis of a shape is one point. For a frame, the last two axes are its orthonormal rows.
        Leading axes are copies: ``("stiefel", (4, 2, 5))`` is four frames of two rows of length 5. A frame of as many
        rows as columns keeps the sign of its start's determinant, since no path connects the two signs.
    data : array-like of shape (n_samples, n_columns), default=None
        Rows, from which minibatches are drawn. None: a density without data.
    start : dict of str to array-like, default=None
        Where chains start, for some or all parts. By default, points of spheres and simplices have equal coordinates,
        frames consist of the first axes, and flat parts are 0. The automatic step size is computed at the start, so
        choose a start where the density is high.
    check_gradient : bool, default=True
        Whether to check the function. The gradient of each part is compared with a difference of the log density along
        its manifold, at the start, away from it and at some of the draws. Minibatches are compared with all rows once.

    Attributes
    ----------
    dimension : int
        Dimension of the product. It is also the expected squared norm of the velocity.

    See Also
    --------
    sk_sgmcmc.targets.Density : A density on flat space only, with masses and metrics.

    Notes
    -----
    Draws have the names of the parts. ``samples_["velocity"]`` (n_chains, n_kept, dim) contains the velocities of
    samplers that keep them, laid out like ``theta``. Their squares sum to `dimension` on average. The mass is the
    identity on all parts. Choose units in which all parts vary by the same order of magnitude; otherwise a step size
    that suits one part makes another slow. ``init`` of `sample` is an array like ``theta``, (dim,).

    Examples
    --------
    A direction that depends on the first of two proportions:

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
    >>> target = ManifoldDensity(
    ...     pulled, {"x": ("sphere", (3,)), "w": ("simplex", (2,))}
    ... )
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
        # The force normal to a curved manifold adds to the curvature of the log density in the ambient space.
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
        """Check the gradient of each part along a random tangent direction of that part."""
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
