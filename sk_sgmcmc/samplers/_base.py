"""Base class of samplers: a parameter object that declares what it needs and names its kernels."""

from numbers import Real
from typing import Literal

import numpy as np
from sklearn.base import clone

from ..kernels.samplers import simplex
from ..utils._numbers import is_narrow
from ..utils._sklearn import BaseEstimator, Interval, StrOptions
from .schedules import ConstantStep, Schedule

# Parameters that may change during a chain: kernels read them at every step, and the state does not depend on them.
_PACE = ("step_size", "friction", "temperature")

# For samplers whose transition is exact over any time: an infinite one forgets the state.
EXACT_STEP_CONSTRAINT = [Interval(Real, 0, np.inf, closed="right"), StrOptions({"auto"}), Schedule]
StepSize = float | Schedule | Literal["auto"]
STEP_SIZE_CONSTRAINT = [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), Schedule]


class Sampler(BaseEstimator):
    """Base class of samplers: parameters that scikit-learn can clone, search and print, and no arithmetic.

    A subclass declares:

    ``_name``
        Its name as a string.
    ``_fits``
        Pairs (geometry, signal): the spaces on which it moves, and the signal that it needs there.
    ``_n_aux``, ``_n_scalars``
        How many arrays of the state's shape, and how many numbers, its state has besides theta.
    ``_is_lazy``
        Whether rows absent from a minibatch may be updated lazily, because the transition at a constant signal is
        known in closed form over any time.
    ``_loop``
        The loop that makes its steps: "dense" for one step per minibatch, "metropolis" for trajectories on all the
        data, and other names for samplers that need a loop of their own. Models choose theirs with `_pick_loop`.
    ``_n_trajectories``, ``_n_doc_draws``
        For models that also draw documents' proportions: trajectories at fixed draws of these, None being as many steps
        as the model's ``n_inner``; and the model's ``n_doc_draws`` if it is None.
    ``_reads_all_rows``
        Whether each step reads all the data, whatever the batch size.
    ``_corrects_steps``
        Whether a Metropolis test makes its draws those of the target, whatever the step size.
    ``_tunes_step``
        Whether it tunes its own step size in burn-in if that is "auto", so that no curvature is measured for it.
    ``_reads_log_density``
        Whether its kernels read the log density besides the gradient; otherwise a model need not compute it.
    ``_is_exact``
        Whether its transition at a constant signal is exact over any time, so that the step size may be infinite.
    ``_simplex_step``
        Step size of "auto" on simplices with few counts, if these are noisy; None if there is none.
    ``_is_splitting``
        Whether it is exact on a Gaussian target for any stable step size, which only stability then bounds.
    ``_keeps_velocity``
        Whether ``aux[0]`` is a velocity of unit variance, from which its temperature is computed.
    ``_keeps_logs``
        Whether on a simplex ``aux[0]`` holds the logarithms of the cells, which go far below the smallest float64.
    ``temperature``
        T, where it targets the density to the power 1/T; a parameter of some, and otherwise 1.
    ``_draws_in_time``, ``_particles_per_chain``
        Whether the draws of a chain are its states at different times, rather than the particles at its end; and the
        number of states that it moves together.
    ``_starts_apart``
        Whether `sample` starts its chains at random points, since it adapts well enough to leave them.
    ``_n_diverged``, ``_fewer_divergences()``
        After a run, how many trajectories diverged after burn-in, and what to do about it; None if it does not count.
    ``_numbers()``
        The numbers that its kernels read after the step size, in ``hyper``.
    ``_stable_step(curvature, noise)`` or ``_simplex_schedule(noisy)``
        The step size of "auto"; without them, "auto" is an error.
    ``_report(states)``
        Sets fitted attributes from the states of its chains.
    ``_kernels(geometry)``
        Its two kernels: ``advance`` and ``step``, or for the loop "metropolis" the flow and the projection of a
        geometry.
    """

    _name = None
    _fits: tuple[tuple[str, str], ...] = ()
    _n_aux = 0
    _n_scalars = 1
    _is_lazy = False
    _loop = "dense"
    _n_trajectories = None
    _n_doc_draws = (4, 1)
    _reads_all_rows = False
    _corrects_steps = False
    _tunes_step = False
    _reads_log_density = True
    _is_exact = False
    _simplex_step = None
    _is_splitting = False
    _keeps_velocity = False
    _keeps_logs = False
    temperature = 1.0
    _draws_in_time = True
    _particles_per_chain = 1
    _starts_apart = False
    _n_diverged: int | None = None
    _parameter_constraints = {}

    @property
    def _uses_metric(self):
        """Whether it moves under a metric that depends on the state, and so has loops of its own."""
        return any(signal == "gradient-metric" for _, signal in self._fits)

    def _pick_loop(self, loops, default=None):
        """The model's loop, or class of chain, for this sampler: ``loops`` maps names of `_loop` to them.

        Loops that are not listed are those of ``default``; without it they are an error.
        """
        return loops[self._loop] if default is None else loops.get(self._loop, default)

    @property
    def _has_own_loop(self):
        """Whether its steps need a loop of its own, rather than one call of `SamplerState.step` each."""
        return self._loop != "dense"

    @property
    def _picks_step(self):
        """Whether its step size is "auto"."""
        return isinstance(self.get_params(deep=False).get("step_size"), str)

    @property
    def _forgets(self):
        """Whether a step leaves little of the state before it, given signals without noise."""
        return self._reads_all_rows or (self._is_exact and self._picks_step)

    def _rows_read(self, n_rows, wanted):
        """How many of the ``n_rows`` a step reads, where minibatches should have ``wanted``."""
        return n_rows if self._reads_all_rows else min(n_rows, wanted)

    def _refuse_blocks(self, instead):
        """Raise if it reads all rows at every step, so that they cannot come in blocks; ``instead`` names others."""
        if self._reads_all_rows:
            raise ValueError(
                f"{type(self).__name__} reads all data at every step and cannot stream; use sampler={instead} for "
                "partial_fit."
            )

    def _kernels(self, geometry):
        """The transition kernels for a geometry."""
        raise TypeError(f"{type(self).__name__} has no transition on the {geometry}.")

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        """The step size of "auto" on flat space and on manifolds.

        Parameters
        ----------
        curvature : float
            The largest curvature, for a state in units of `_inverse_mass`.
        noise : float
            The largest variance of an entry of the gradient, in the same units.
        share : float
            Share of a variance that discretisation or noise may add.
        reach : float
            Step size of a sampler with momentum, times the root of the curvature.
        """
        raise self._no_automatic_step()

    def _simplex_schedule(self, noisy):
        """The schedule of "auto" for topics, given shapes that are exact or ``noisy`` estimates."""
        raise self._no_automatic_step()

    def _no_automatic_step(self):
        name = type(self).__name__
        return ValueError(f"{name} has no automatic step size here; give it one, such as {name}(step_size=0.01).")

    def _inverse_mass(self, n_entries):
        """The given inverse mass or preconditioner, (n_entries, n_entries), or None for the identity."""
        return None

    def _report(self, states):
        """Set fitted attributes from the `SamplerState` of each chain."""

    def _numbers(self):
        """The numbers that follow the step size in `_hyper`."""
        return []

    def _resolved(self, auto_step_size):
        """A fitted copy: parameters checked, ``step_size_`` the schedule in use.

        ``auto_step_size`` is the step size of "auto"; with None, chains find it.
        """
        fitted = clone(self)
        fitted._validate_params()
        for name, value in fitted.get_params(deep=False).items():
            if is_narrow(fitted, name, value):
                setattr(fitted, name, int(value))
        if "step_size" in fitted.get_params(deep=False):
            step_size = auto_step_size if isinstance(fitted.step_size, str) else fitted.step_size
            if isinstance(step_size, Schedule):
                step_size._validate_params()
            elif step_size is not None:
                step_size = ConstantStep(float(step_size))
            if step_size is not None:
                fitted.step_size_ = step_size
        return fitted

    def _in_units_of(self, precision):
        """The sampler to run on a posterior of that precision, with its mass or preconditioner set if none is given.

        One step size and one friction, of about 1, then suit all directions.
        """
        return self

    def _learning_units(self, n_entries, n_burn):
        """The sampler to run where no such precision is known, with a mass that it learns in burn-in if it can."""
        return self

    def _is_compatible(self, other):
        """Whether this sampler can continue a chain of ``other``: they may differ in pace (`_PACE`)."""
        mine, others = self.get_params(deep=False), other.get_params(deep=False)
        return type(self) is type(other) and all(is_same(mine[name], others[name]) for name in mine.keys() - _PACE)

    def _resumed_from(self, present, step, scalars):
        """The fitted copy that continues a chain of ``present`` at ``step``; "auto" is the present step size.

        ``scalars``, the chain's, are changed to match.
        """
        found = hasattr(present, "step_size_")
        return self._resolved(float(present._hyper(step, step + 1)[0, 0]) if found else None)

    def _with_step(self, step_size, step, scalars):
        """Continue at ``step`` with another automatic step size; ``scalars``, the chain's, are changed to match."""
        before = self._hyper(0, 1)[0] if hasattr(self, "step_size_") else None
        self.step_size_ = ConstantStep(float(step_size))
        if before is not None:
            self._keep_distance(before, step, scalars)

    def _keep_distance(self, before, step, scalars):
        """Adjust what else depends on the step size; ``before`` are the previous numbers."""

    def _state(self, theta, geometry, n_burn):
        """Further arrays and numbers of a chain's state, (aux, scalars), at its start."""
        n_aux = max(self._n_aux, 1 if geometry == "simplex" else 0)
        return np.zeros((n_aux, *theta.shape)), np.zeros(self._n_scalars)

    # On a simplex the state is positive cells, columns of which are proportional to probabilities, unless a sampler has
    # coordinates of its own.

    def _simplex_start(self, shape, rng):
        """A state drawn from Gamma(shape, 1), both (n_cells, n_columns), or its mean if ``rng`` is None."""
        return shape if rng is None else np.maximum(rng.standard_gamma(shape), simplex.TINY)

    def _simplex_cells(self, theta):
        """The cells of a state, each column up to a factor."""
        return theta

    def _simplex_logs(self, theta, aux):
        """Logarithms of the cells, each column up to a number, given the state and ``aux[0]`` if it is kept."""
        return aux if self._keeps_logs and aux.size else np.log(theta)

    def _simplex_extended(self, theta, shape, cells, total):
        """A state with new ``cells``, drawn from Gamma(shape, 1), on a scale on which the old add up to ``total``."""
        return np.vstack([theta, cells])

    def _hyper(self, start, stop):
        """(stop - start, n_hyper) numbers that the kernels read at each step, the step size first."""
        steps = self._step_sizes(start, stop) if hasattr(self, "step_size_") else np.zeros(stop - start)
        numbers = self._numbers()
        hyper = np.empty((stop - start, 1 + len(numbers)))
        hyper[:, 0], hyper[:, 1:] = steps, numbers
        return hyper

    def _step_sizes(self, start, stop):
        """The schedule's step sizes, checked because users may write their own."""
        steps = np.asarray(self.step_size_(np.arange(start, stop)), dtype=float)
        smallest, largest = steps.min(initial=np.inf), steps.max(initial=-np.inf)  # NaN if one of them is
        if steps.shape != (stop - start,) or not (smallest > 0 and (self._is_exact or largest < np.inf)):
            raise ValueError(
                f"step_size={self.step_size_!r} gives {steps} at the steps {start} to {stop - 1}; a schedule must give "
                "a positive number for each" + ("." if self._is_exact else ", and a finite one.")
            )
        return steps


def is_same(one, other):
    """Whether two parameters are equal: numbers, strings, arrays, containers, or objects with parameters."""
    if one is other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(value, other[key]) for key, value in one.items())
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if not hasattr(one, "get_params"):
        return np.array_equal(one, other)
    if type(one) is not type(other):
        return False
    others = other.get_params(deep=False)
    return all(is_same(value, others[name]) for name, value in one.get_params(deep=False).items())
