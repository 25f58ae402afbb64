"""Base class of targets: data and prior, and the signals that they can give a sampler."""

from numbers import Real

from sklearn.base import BaseEstimator

from ..dense.tuning import auto_step_size


class Target(BaseEstimator):
    """Base class of targets: data and prior, the signals they can give, and how a raw state becomes a draw."""

    _offers = ()
    # Whether the signal includes an estimate of the variance of the gradient's noise.
    _estimates_noise = False

    def _signal(self):
        """The kernel that computes the signal by which samplers move."""
        raise TypeError(f"{type(self).__name__} has no signal.")

    def _check(self, dense, starts):
        """Raise if data or starts are invalid for the target."""

    def _prepared(self, dense, start, sampler):
        """The data in the form that chains read, and a `Laplace` approximation for steps and starts, or None."""
        return dense, None

    def _less_noise(self, dense):
        """Remedies for the noise of minibatches besides more rows, for warnings."""
        return ""

    def _step_size(self, sampler, dense, points):
        """The step size that "auto" stands for, from the first or the worst of some states."""
        return auto_step_size(sampler, dense, points, dense.n_batch)

    def _on(self, geometry):
        """The target on one of the geometries that it offers."""
        return self

    def _space(self, geometry):
        """The geometry as samplers receive it: its name, or a `Product`."""
        return geometry

    def _check_init(self, init):
        """Raise if a user's start lies outside the target's space."""

    def _choice(self, batch_size):
        """Name of the default sampler and rows of its minibatch; None where the geometry decides."""
        return None, batch_size

    def _check_batches(self, n_batch, n_rows):
        """Raise if the target cannot read minibatches."""

    def _starts(self, sampler, init, n_chains, dense, rng):
        """Starts of all chains, or one for all."""
        return [self._start(sampler, None)]

    def _about(self, approximation, n_chains, rng):
        """Starts of all chains, or one for all, given a `Laplace` approximation."""
        return [approximation.mode.reshape(self._rows()[2])]

    def _hidden(self, name):
        """Whether draws of a name are beside the point for diagnostics."""
        return name == "velocity" or name.startswith("log_")

    def _labels(self):
        """Names of the entries of a state on flat space, or None."""
        return None

    def _raise_lost_error(self):
        """Raise an error of a user's function that compiled code called."""

    def _metric(self):
        """The `Metric` of targets that offer one."""
        return None


def _check_positive(**parameters):
    for name, value in parameters.items():
        if not (isinstance(value, Real) and 1e-100 < float(value) < 1e100):
            raise ValueError(f"{name}={value!r} must be a positive number, between 1e-100 and 1e100.")
