"""What every sampler is: a parameter object that declares what it needs and names its kernels."""

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, clone

from ..utils._sklearn import Interval, StrOptions
from .schedules import ConstantStep, Schedule

# What may change while a chain goes on: kernels read these at every step, and a chain's state does not depend on them.
_PACE = ("step_size", "friction", "temperature")

# Of samplers whose transition is exact over any time: an infinite one forgets the state.
EXACT_STEP_CONSTRAINT = [Interval(Real, 0, np.inf, closed="right"), StrOptions({"auto"}), Schedule]
STEP_SIZE_CONSTRAINT = [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), Schedule]


class Sampler(BaseEstimator):
    """Base of all samplers: parameters that scikit-learn can clone, search and print, and no arithmetic.

    A subclass declares:

    ``_name``
        How a string names it.
    ``_fits``
        Pairs (geometry, signal): the spaces it can move on and what a model must tell it there.
    ``_n_aux``, ``_n_scalars``
        How many further arrays of the state's shape, and how many numbers, its state has.
    ``_waits``
        Whether a row that a minibatch does not speak of may wait and be brought up to date later, because the
        transition at a constant signal is known in closed form over any time.
    ``_runner``
        Which loop of `sk_sgmcmc.kernels.runners` runs it: "dense", "metropolis" or "particles".
    ``_full_batch``
        Whether it reads all the data at every step, whatever the batch size.
    ``_overdamped``
        Whether it has no momentum, so that its step size is a time over a curvature and not over the root of one.
    ``_reads_log_density``
        Whether its kernels read the log density beside the gradient; a model may then save its computation.
    ``_is_exact``
        Whether its transition at a constant signal is exact over any time, so that a step size may be infinite.
    ``_coordinates``
        "linear" if a simplex is the normalised state, "log" if it is the state's softmax.
    ``_kernels(geometry)``
        Its two kernels: ``advance`` and ``step``, or for the runner "metropolis" the flow and the projection of a
        geometry.
    """

    _name = None
    _fits = ()
    _n_aux = 0
    _n_scalars = 1
    _waits = False
    _runner = "dense"
    _full_batch = False
    _overdamped = False
    _reads_log_density = True
    _is_exact = False
    _coordinates = "linear"
    _parameter_constraints = {}

    @property
    def _uses_metric(self):
        """Whether it moves under a metric that depends on the state, and so has runners of its own."""
        return any(signal == "gradient-metric" for _, signal in self._fits)

    def _kernels(self, geometry):
        """The transition kernels for a geometry."""
        raise TypeError(f"{type(self).__name__} has no transition on the {geometry}.")

    def _resolved(self, auto_step_size):
        """A fitted copy: parameters checked, ``step_size_`` the schedule in use ("auto" is given by the model)."""
        fitted = clone(self)
        fitted._validate_params()
        if "step_size" in fitted.get_params(deep=False):
            step_size = auto_step_size if isinstance(fitted.step_size, str) else fitted.step_size
            if isinstance(step_size, Schedule):
                step_size._validate_params()
            fitted.step_size_ = step_size if isinstance(step_size, Schedule) else ConstantStep(float(step_size))
        return fitted

    def _in_units_of(self, precision):
        """The sampler to run on a posterior of that precision: its own mass or preconditioner, where none is given.

        One step size and one friction, of about 1, then suit all directions.
        """
        return self

    def _continues(self, other):
        """Whether a chain of ``other`` can go on by this sampler: the same one, but for its step size and friction."""
        mine, others = self.get_params(deep=False), other.get_params(deep=False)
        return type(self) is type(other) and all(_is_same(mine[name], others[name]) for name in mine.keys() - _PACE)

    def _goes_on_from(self, present, step, scalars):
        """The fitted copy that goes on at ``step`` with a chain of ``present``; "auto" is the present step size.

        ``scalars``, the chain's, are changed to fit.
        """
        return self._resolved(float(present._hyper(step, step + 1)[0, 0]))

    def _state(self, theta, geometry, n_burn):
        """Further arrays and numbers of a chain's state, (aux, scalars), at its start."""
        n_aux = max(self._n_aux, 1 if geometry == "simplex" else 0)
        return np.zeros((n_aux, *theta.shape)), np.zeros(self._n_scalars)

    def _hyper(self, start, stop):
        """(stop - start, n_hyper) numbers that the kernels read at each step, the step size first."""
        if not hasattr(self, "step_size_"):
            return np.zeros((stop - start, 1))
        return np.ascontiguousarray(self._step_sizes(start, stop)[:, None])

    def _step_sizes(self, start, stop):
        """The schedule's step sizes, which one of a user's own may get wrong."""
        steps = np.asarray(self.step_size_(np.arange(start, stop)), dtype=float)
        usable = (steps > 0) & (np.isfinite(steps) | self._is_exact)
        if steps.shape != (stop - start,) or not np.all(usable):
            raise ValueError(
                f"step_size={self.step_size_!r} gives {steps} at the steps {start} to {stop - 1}; a schedule must give "
                "a positive number for each" + ("." if self._is_exact else ", and a finite one.")
            )
        return steps


def _is_same(one, other):
    """Whether two parameters are equal: numbers, strings, arrays, or objects with parameters of their own."""
    if not hasattr(one, "get_params"):
        return np.array_equal(one, other)
    if type(one) is not type(other):
        return False
    others = other.get_params(deep=False)
    return all(_is_same(value, others[name]) for name, value in one.get_params(deep=False).items())
