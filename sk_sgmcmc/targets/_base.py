"""What every target is: data and prior, and the signals that they can give a sampler."""

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator

from ..dense.tuning import auto_step_size


class Target(BaseEstimator):
    """Base of all targets: data and prior, the signals they can give, and how a raw state becomes a draw."""

    _offers = ()
    # Whether its signal holds an estimate of the variance of the gradient's noise.
    _estimates_noise = False

    def _signal(self):
        """The kernel that computes what samplers move by."""
        raise TypeError(f"{type(self).__name__} has no signal.")

    def _check(self, dense, starts):
        """Raise where data and starts do not make a target."""

    def _prepared(self, dense, start, sampler):
        """The data as chains read them, and a `Laplace` approximation for steps and starts, or None."""
        return dense, None

    def _less_noise(self, dense):
        """What lessens the noise of minibatches beside more rows, for warnings."""
        return ""

    def _step_size(self, sampler, dense, points):
        """The step size that "auto" means, by the first or the worst of some states."""
        return auto_step_size(sampler, dense, points, dense.n_batch)

    def _on(self, geometry):
        """The target on one of the geometries that it offers."""
        return self

    def _space(self, geometry):
        """What the samplers are told of the geometry: its name, or a `Product`."""
        return geometry

    def _check_init(self, init):
        """Raise where a user's start lies off the target's space."""

    def _metric(self):
        """The `Metric` of targets that offer one."""
        return None


def _check_positive(**parameters):
    for name, value in parameters.items():
        if not (isinstance(value, Real) and 0 < value < np.inf):
            raise ValueError(f"{name}={value!r} must be a positive number.")
