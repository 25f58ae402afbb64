"""Base class of samplers: parameter objects that declare what they need of a model and hand out their kernels."""

from numbers import Real
from typing import Literal

import numpy as np
from sklearn.base import clone

from ..kernels.samplers import simplex
from ..utils._numbers import is_narrow
from ..utils._sklearn import BaseEstimator, Interval, StrOptions
from .schedules import ConstantStep, Schedule

# Parameters that may change while a chain runs. Kernels read them at every step, and the form of the state does not
# depend on their values.
_PACE = ("step_size", "friction", "temperature")

# Samplers whose transition is exact over any time accept an infinite step size, which makes independent draws.
EXACT_STEP_CONSTRAINT = [Interval(Real, 0, np.inf, closed="right"), StrOptions({"auto"}), Schedule]
StepSize = float | Schedule | Literal["auto"]
STEP_SIZE_CONSTRAINT = [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), Schedule]


class Sampler(BaseEstimator):
    """Base class of samplers.

    A sampler contains only parameters, which scikit-learn can clone, search and print. Its kernels do the computations.

    A subclass declares:

    ``_name``
        The name that users may pass as ``sampler=``.
    ``_fits``
        Pairs (geometry, signal): the spaces on which the sampler moves, and the signal that it needs on each.
    ``_n_aux``, ``_n_scalars``
        Number of additional arrays of the shape of theta, and number of scalars, in the state.
    ``_is_lazy``
        Whether rows absent from a minibatch may be updated lazily, because the transition at a constant signal has a
        closed form for any time.
    ``_loop``
        The loop that makes its steps: "dense" for one step per minibatch, "metropolis" for trajectories on all the
        data. Samplers that need their own loop use other names. Models choose a loop with ``_pick_loop``.
    ``_n_trajectories``, ``_n_doc_draws``
        For models that also draw the topic proportions of documents. The first is the number of trajectories of the
        topics for each draw of the proportions; None: the model's ``n_inner``. The second replaces the model's
        ``n_doc_draws`` where that is None.
    ``_reads_all_rows``
        Whether each step reads all the data, for any batch size.
    ``_corrects_steps``
        Whether a Metropolis test removes the error of the step size, so that draws follow the target exactly.
    ``_tunes_step``
        Whether the sampler itself adapts ``step_size="auto"`` in burn-in, so that no curvature need be estimated.
    ``_reads_log_density``
        Whether its kernels read the log density as well as the gradient; otherwise a model need not compute it.
    ``_is_exact``
        Whether its transition at a constant signal is exact over any time, so that the step size may be infinite.
    ``_simplex_step``
        The automatic step size on simplices with few counts, for noisy signals; None if there is none.
    ``_is_splitting``
        Whether the covariance of a Gaussian target is exact for any stable step size, so that only stability limits it.
    ``_keeps_velocity``
        Whether ``aux[0]`` is a velocity of unit variance, from which the temperature of the chain is computed.
    ``_keeps_logs``
        Whether, on a simplex, ``aux[0]`` contains the logarithms of the cells. Cells may be far below the smallest
        float64.
    ``temperature``
        T, if the target is the density to the power 1/T. A parameter of some samplers, and 1 for the others.
    ``_draws_in_time``, ``_particles_per_chain``
        The first is whether the draws of a chain are its states at different times, rather than the particles at its
        end. The second is the number of states that a chain moves together.
    ``_starts_apart``
        Whether `sample` starts chains at random points, which requires a sampler that adapts well enough to leave them.
    ``_n_diverged``, ``_fewer_divergences()``
        After a run, the number of trajectories that diverged after burn-in, and the remedy in words. The number is None
        for samplers that do not count divergences.
    ``_numbers()``
        The numbers that kernels read after the step size, in ``hyper``.
    ``_stable_step(curvature, noise)`` or ``_simplex_schedule(noisy)``
        The automatic step size; without these methods, ``step_size="auto"`` is an error.
    ``_linear_chain(curvatures, h, noise_variances)``
        What a step is on a Gaussian, from which the bias of draws on flat space is predicted; None: not known.
    ``_report(states)``
        Sets fitted attributes from the states of the chains.
    ``_kernels(geometry)``
        The two kernels ``advance`` and ``step``, or for the loop "metropolis" the flow and the projection of a
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
        """Whether the mass is a metric that depends on the state, which requires its own loops."""
        return any(signal == "gradient-metric" for _, signal in self._fits)

    def _pick_loop(self, loops, default=None):
        """The model's loop, or class of chain, for this sampler.

        ``loops`` maps values of `_loop` to loops or classes. Values that it lacks lead to ``default``, or to a KeyError
        if there is no default.
        """
        return loops[self._loop] if default is None else loops.get(self._loop, default)

    @property
    def _has_own_loop(self):
        """Whether steps need the sampler's own loop, rather than one call of `SamplerState.step` each."""
        return self._loop != "dense"

    @property
    def _picks_step(self):
        """Whether ``step_size`` is "auto"."""
        return isinstance(self.get_params(deep=False).get("step_size"), str)

    @property
    def _forgets(self):
        """Whether a step nearly forgets the previous state, given signals without noise."""
        return self._reads_all_rows or (self._is_exact and self._picks_step)

    def _rows_read(self, n_rows, wanted):
        """Number of the ``n_rows`` that a step reads, if ``wanted`` is the size of minibatches."""
        return n_rows if self._reads_all_rows else min(n_rows, wanted)

    def _refuse_blocks(self, instead):
        """Raise if every step reads all rows, so that they cannot come in blocks; ``instead`` names other samplers."""
        if self._reads_all_rows:
            raise ValueError(
                f"{type(self).__name__} reads all data at every step and cannot stream; use sampler={instead} for "
                "partial_fit."
            )

    def _kernels(self, geometry):
        """The transition kernels for a geometry."""
        raise TypeError(f"{type(self).__name__} has no transition on the {geometry}.")

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        """The automatic step size on flat space and on manifolds.

        Parameters
        ----------
        curvature : float
            The largest curvature of the log density, after preconditioning by `_inverse_mass`.
        noise : float
            The largest variance of an entry of the gradient, in the same units.
        share : float
            Relative error of a variance that discretisation or gradient noise may cause.
        reach : float
            Step size of a sampler with momentum, times the square root of the curvature.
        """
        raise self._no_automatic_step()

    def _linear_chain(self, curvatures, h, noise_variances):
        """The `LinearChain` of steps of size h on a Gaussian target; None if there is none, or it is not known.

        Parameters
        ----------
        curvatures : ndarray of shape (n_entries,)
            In coordinates in which the mass, or the preconditioner, is the identity.
        h : float
        noise_variances : ndarray of shape (n_entries,)
            Variances of the errors of the gradient, to which thermostats react.
        """
        return None

    def _simplex_schedule(self, noisy):
        """The automatic schedule for topics, whose shapes are exact or, if ``noisy``, estimated from minibatches."""
        raise self._no_automatic_step()

    def _no_automatic_step(self):
        name = type(self).__name__
        return ValueError(f"{name} has no automatic step size here; set one, for example {name}(step_size=0.01).")

    def _inverse_mass(self, n_entries):
        """The inverse mass or preconditioner that the user set, (n_entries, n_entries); None for the identity."""
        return None

    def _report(self, states):
        """Set fitted attributes from the `SamplerState` of each chain."""

    def _numbers(self):
        """The numbers that follow the step size in `_hyper`."""
        return []

    def _resolved(self, auto_step_size):
        """A fitted copy, with checked parameters and the schedule in ``step_size_``.

        ``auto_step_size`` replaces "auto". None: chains choose the step size later, with `_with_step`.
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
        """The sampler for a posterior of about this precision, whose mass or preconditioner is set unless the user did.

        One step size and one friction, both of about 1, then suit all directions.
        """
        return self

    def _learning_units(self, n_entries, n_burn):
        """The sampler for a posterior of unknown precision; its mass is learnt in burn-in where that is possible."""
        return self

    def _is_compatible(self, other):
        """Whether this sampler can continue a chain of ``other``: only the parameters in `_PACE` may differ."""
        mine, others = self.get_params(deep=False), other.get_params(deep=False)
        return type(self) is type(other) and all(is_same(mine[name], others[name]) for name in mine.keys() - _PACE)

    def _resumed_from(self, present, step, scalars):
        """The fitted copy that continues a chain of the sampler ``present`` at ``step``.

        "auto" keeps the present step size. The chain's ``scalars`` are adjusted in place.
        """
        found = hasattr(present, "step_size_")
        return self._resolved(float(present._hyper(step, step + 1)[0, 0]) if found else None)

    def _with_step(self, step_size, step, scalars):
        """Continue at ``step`` with another automatic step size; the chain's ``scalars`` are adjusted in place."""
        before = self._hyper(0, 1)[0] if hasattr(self, "step_size_") else None
        self.step_size_ = ConstantStep(float(step_size))
        if before is not None:
            self._keep_distance(before, step, scalars)

    def _keep_distance(self, before, step, scalars):
        """Adjust scalars that depend on the step size; ``before`` is the row of `_hyper` before the change."""

    def _state(self, theta, geometry, n_burn):
        """The additional arrays and scalars of the state, (aux, scalars), at the start of a chain."""
        n_aux = max(self._n_aux, 1 if geometry == "simplex" else 0)
        return np.zeros((n_aux, *theta.shape)), np.zeros(self._n_scalars)

    # On a simplex the state consists of positive cells, and each of its columns is proportional to probabilities.
    # Samplers with other coordinates override the methods below.

    def _simplex_start(self, shape, rng):
        """A state drawn from Gamma(shape, 1), both (n_cells, n_columns), or its mean if ``rng`` is None."""
        return shape if rng is None else np.maximum(rng.standard_gamma(shape), simplex.TINY)

    def _simplex_cells(self, theta):
        """The cells of a state, each column up to a factor."""
        return theta

    def _simplex_logs(self, theta, aux):
        """Logarithms of the cells, each column up to a constant; ``aux`` is ``aux[0]`` of the state."""
        return aux if self._keeps_logs and aux.size else np.log(theta)

    def _simplex_extended(self, theta, shape, cells, total):
        """The state extended by new ``cells``.

        They were drawn from Gamma(shape, 1), on a scale on which the cells of theta sum to ``total``.
        """
        return np.vstack([theta, cells])

    def _hyper(self, start, stop):
        """The numbers that kernels read at each step, (stop - start, n_hyper); the step size is the first column."""
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
