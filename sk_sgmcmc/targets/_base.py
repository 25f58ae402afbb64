"""Base class of targets: data, prior, and the signals that a target offers to samplers."""

from numbers import Real

import numpy as np

from ..dense.automatic_step import auto_step_size
from ..utils._sklearn import BaseEstimator


class Target(BaseEstimator):
    """Base class of targets: data, prior, signals for samplers, and the conversion of a state to a draw.

    A subclass lists the signals that it offers in ``_offers``, as pairs (geometry, signal), the preferred pair first.
    It implements ``_signal`` and

    ``_rows()``
        The rows, the constants that the kernel reads, and the shape of a state; raises if parameters are invalid.
    ``_start(sampler)``
        The state at which chains start.
    ``_public(theta, aux, sampler)``
        Draws by name, given draws of the state ``theta`` and of the sampler's auxiliary variables ``aux``.
    """

    _offers: tuple[tuple[str, str], ...] = ()
    # Whether the signal includes an estimate of the variance of the gradient's noise.
    _estimates_noise = False

    def _signal(self):
        """The kernel that computes the signal for samplers."""
        raise TypeError(f"{type(self).__name__} has no signal.")

    def _check(self, dense, starts):
        """Raise if data or starts are invalid for the target."""

    def _prepared(self, dense, start, sampler):
        """The data for the chains, and a `Laplace` approximation for choosing step size and starts, or None."""
        return dense, None

    def _less_noise(self, dense):
        """Text for warnings: remedies for the noise of minibatches other than more rows."""
        return ""

    def _step_size(self, sampler, dense, points):
        """The step size for "auto", computed at some states, of which targets may use the first or the worst."""
        return auto_step_size(sampler, dense, points, dense.n_batch)

    def _with_geometry(self, geometry):
        """The target on one of the geometries that it offers."""
        return self

    def _space(self, geometry):
        """The geometry that is passed to samplers: a name, or a `Product`."""
        return geometry

    def _check_init(self, init):
        """Raise if a user's start lies outside the target's space."""

    def _choice(self, batch_size):
        """Name of the default sampler (None: depends on the geometry) and batch size."""
        return None, batch_size

    def _check_batches(self, n_batch, n_rows):
        """Raise if the target cannot read minibatches."""

    def _starts(self, sampler, n_chains, dense, rng):
        """One start for each chain, or one for all, if the user passes no ``init``."""
        return [self._start(sampler)]

    def _given_starts(self, init, sampler, n_chains, dense, rng):
        """One start for each chain, or one for all, from the user's ``init``; raises if its shape does not fit."""
        starts = starts_of_array(init, self._rows()[2], sampler, n_chains)
        for start in starts:
            self._check_init(start)
        return starts

    def _dispersed_starts(self, approximation, n_chains, rng):
        """One start for each chain, or one for all, from a `Laplace` approximation."""
        return [approximation.mode.reshape(self._rows()[2])]

    def _hidden(self, name):
        """Whether diagnostics leave out the draws of this name, for example because other draws determine them."""
        return name == "velocity" or name.startswith("log_")

    def _exact(self, samples):
        """Draws (n_chains, n_kept, D) and their exact mean and variance (D,), or None if these are not known."""
        return None

    def _gradient_checks(self, gradient, draws):
        """The check of a user's gradient against the log density at some of the draws (n_draws, D), in a list."""
        return []

    def _mean_square_velocity(self):
        """Expected square of a velocity under the target, or None on flat space."""
        return None

    def _labels(self):
        """Names of the entries of a state on flat space for warnings, or None."""
        return None

    def _more_results(self, samples):
        """Additional attributes of this target's `SampleResult`, given its draws by name."""
        return {}

    def _metric(self):
        """The `Metric` of the target, or None if it offers none."""
        return None


def check_positive(**parameters):
    """Raise unless each parameter is a positive number whose low powers are finite and nonzero in float64."""
    for name, value in parameters.items():
        if not (isinstance(value, Real) and 1e-100 < float(value) < 1e100):
            raise ValueError(f"{name}={value!r} must be a positive number, between 1e-100 and 1e100.")


def starts_of_array(init, shape, sampler, n_chains):
    """Convert the array ``init`` to a list of starts, one for all chains or one for each.

    A start is a state, or for particle samplers the states of all particles.
    """
    try:
        init = np.asarray(init, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"init={init!r} must be an array of shape {shape}; a ManifoldDensity takes parts by name as its start."
        ) from None
    if not np.all(np.isfinite(init)):
        raise ValueError(f"init holds {np.sum(~np.isfinite(init))} numbers that are not finite; give finite ones.")
    if _are_alike(init.shape, shape):
        return [init.reshape(shape)]
    init = np.atleast_1d(init)
    n_particles = sampler._particles_per_chain
    if init.shape[0] == n_particles and _are_alike(init.shape[1:], shape):
        return [init.reshape(-1, *shape)]
    if init.shape[0] == n_chains and _are_alike(init.shape[1:], shape):
        return [each.reshape(shape) for each in init]
    if init.shape[:2] == (n_chains, n_particles) and _are_alike(init.shape[2:], shape):
        return [each.reshape(-1, *shape) for each in init]
    particles = f", {(n_particles, *shape)}, the particles of {sampler!r}," if n_particles > 1 else ""
    raise ValueError(
        f"init has shape {init.shape}; this target needs {shape}{particles} or, with n_chains={n_chains}, one of these "
        f"for each chain, {(n_chains, *shape)}."
    )


def _are_alike(given, shape):
    """Whether an array of shape ``given`` can be a state: flat, or of ``shape`` apart from axes of length 1."""
    given, wanted = ([n for n in each if n != 1] for each in (given, shape))
    return given in (wanted, [int(np.prod(shape))] if wanted else [])
