"""Samplers on Euclidean space that follow the gradient of the log posterior."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from ..kernels.samplers import euclidean, simplex
from ..kernels.samplers import mass as mass_kernels
from ..utils._numbers import real_array
from ..utils._parameters import positional_parameters
from ..utils._sklearn import Interval, StrOptions
from ._base import STEP_SIZE_CONSTRAINT, Sampler, StepSize
from ._linear_chain import LinearChain
from ._mass import (
    IN_WINDOWS,
    MonteCarloEM,
    mass_root,
    mass_state,
    report_acceptance,
    report_mass,
    with_learnt_mass,
)

_POSITIVE = [Interval(Real, 0, None, closed="neither")]
_NOT_NEGATIVE = [Interval(Real, 0, None, closed="left")]
_MASS = ["array-like", MonteCarloEM, None]
# For samplers that do not read the log density, so that other parts of a model may be redrawn between two steps.
_CONDITIONAL = (("euclidean", "gradient"), ("euclidean", "conditional-gradient"))
# For samplers that can move several parts of a state independently, each with its own momentum and thermostat.
_IN_BLOCKS = (*_CONDITIONAL, ("euclidean", "block-gradient"))


class _Euclidean(Sampler):
    """Base class of samplers on Euclidean space, whose state contains a mass or preconditioner."""

    _fits = (("euclidean", "gradient"),)
    _n_aux = 2

    def _state(self, theta, geometry, n_burn):
        scalars = mass_state(getattr(self, "mass", None), theta.size, n_burn)
        self._write(scalars, theta.size)
        return np.zeros((self._n_aux, *theta.shape)), scalars

    def _write(self, scalars, n_entries):
        """Write initial values, for example of a thermostat, into the head of ``scalars``."""

    def _in_units_of(self, precision):
        given = self.get_params(deep=False).get("mass", False)
        if given is not None and not (isinstance(given, str) and given == "auto"):
            return self
        return clone(self).set_params(mass=precision)


def overdamped_step(curvature, noise, share):
    """The automatic step size h of a sampler without momentum.

    Discretisation and gradient noise of variance V multiply the variance of the target by about
    1 + h (lambda + V) / 2, where lambda is the curvature.
    """
    return 2.0 * share / (curvature + noise)


class _Kinetic(_Euclidean):
    """Base class of samplers with a momentum and a mass."""

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        h = reach / np.sqrt(curvature)
        friction = self.get_params(deep=False).get("friction")
        # Noise multiplies the temperature by 1 + h V / 2 C. Thermostats have no friction parameter, and need no bound.
        if friction and noise:
            h = min(h, 2.0 * share * friction / noise)
        return h

    def _inverse_mass(self, n_entries):
        mass = getattr(self, "mass", None)
        if mass is None or isinstance(mass, (str, MonteCarloEM)):
            return None
        mass = real_array("mass", mass)
        mass_root(mass, n_entries)
        return np.diag(1.0 / mass) if mass.ndim == 1 else np.linalg.inv(mass)

    def _report(self, states):
        if hasattr(self, "mass"):
            report_mass(self, states)


@positional_parameters
class SGLD(_Euclidean):
    r"""Stochastic-gradient Langevin dynamics; with all the data at every step, the unadjusted Langevin algorithm.

    Targets the posterior with an error of order ``step_size``. On a Gaussian of precision :math:`\lambda` the variance
    is :math:`1 / (\lambda (1 - h \lambda / 2))` exactly, plus :math:`h / (\lambda (2 - h \lambda))` times the variance
    of the gradient.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h` of the drift. Welling and Teh's :math:`\epsilon` is :math:`2h`.
    preconditioner : array-like of shape (n_entries,), default=None
        :math:`P`, a constant diagonal that scales drift and noise. Values near the posterior variances are best.
    temperature : float, default=1
        :math:`T`: the target is :math:`p^{1/T}`.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy that an estimator keeps in ``sampler_``.

    Notes
    -----
    :math:`\theta \leftarrow \theta + h P \nabla \log p(\theta) + \sqrt{2 h T} P^{1/2} Z`.

    References
    ----------
    Welling and Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics, ICML, section 3.
    """

    step_size: StepSize = "auto"
    preconditioner: ArrayLike | None = None
    temperature: float = 1.0

    _name = "sgld"
    _fits = _IN_BLOCKS
    _reads_log_density = False
    _n_aux = 0
    _parameter_constraints = {
        "step_size": STEP_SIZE_CONSTRAINT,
        "preconditioner": ["array-like", None],
        "temperature": _POSITIVE,
    }

    def _numbers(self):
        return [self.temperature]

    def _state(self, theta, geometry, n_burn):
        P = None if self.preconditioner is None else real_array("preconditioner", self.preconditioner)
        if P is not None and P.shape != (theta.size,):
            raise ValueError(f"preconditioner has shape {P.shape}; this model has ({theta.size},) entries.")
        inverse = None if P is None else 1.0 / P
        return np.zeros((0, *theta.shape)), mass_state(inverse, theta.size, n_burn)

    def _in_units_of(self, precision):
        if self.preconditioner is not None:
            return self
        return clone(self).set_params(preconditioner=1.0 / np.diag(precision))

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        return overdamped_step(curvature, noise, share)

    def _inverse_mass(self, n_entries):
        return None if self.preconditioner is None else np.diag(real_array("preconditioner", self.preconditioner))

    def _linear_chain(self, curvatures, h, noise_variances):
        transition = (1.0 - h * curvatures)[:, None, None]
        one = np.ones((curvatures.size, 1, 1))
        return LinearChain(transition, h * one[..., 0], 2.0 * h * self.temperature * one)

    def _kernels(self, geometry):
        return simplex.no_advance, euclidean.sgld_step


@positional_parameters
class SGHMC(_Kinetic):
    r"""Stochastic-gradient Hamiltonian Monte Carlo: momentum with friction.

    Targets the posterior, with an error of order ``step_size`` for ``scheme="euler"`` and of order ``step_size``
    squared for the splittings. On a Gaussian target and without noise in the gradients, "baoab" and "aboba" have the
    exact covariance for any stable step size.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one step.
    friction : float, default=1
        :math:`C`, in units of 1/time.
    scheme : {"baoab", "aboba", "ubu", "euler"}, default="baoab"
        Order of kick (B), drift (A) and friction (O) in a step. In "ubu", U is drift and friction together, which have
        an exact solution. "euler" is the scheme of the paper.
    noise_estimate : float, default=0
        :math:`\hat B = h V / 2`, where V is the variance of the gradient estimate. The injected noise is reduced by it,
        since minibatches add noise already.
    mass : array-like of shape (n_entries,) or (n_entries, n_entries), MonteCarloEM or None, default=None
        :math:`M`. None: the identity.
    temperature : float, default=1
        :math:`T`: the target is :math:`p^{1/T}`.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy that an estimator keeps in ``sampler_``.

    Notes
    -----
    "euler": :math:`p \leftarrow p + h \nabla \log p(\theta) - h C M^{-1} p + N(0, 2 h (C T - \hat B))`,
    :math:`\theta \leftarrow \theta + h M^{-1} p`. The splittings have friction :math:`C p` and noise :math:`2 C T M`,
    solved exactly: :math:`p \leftarrow e^{-Ch} p + \sqrt{T (1 - e^{-2Ch})} \, N(0, M)`. Each needs one gradient per
    step: adjacent half kicks of "baoab" use the same position. U is Langevin dynamics without force over :math:`h / 2`.
    With :math:`x = C h / 2`, it is a drift over :math:`\tau = \tanh(x / 2) / C`, friction over :math:`h / 2`, the same
    drift, and :math:`\theta \leftarrow \theta + \sqrt{T (2 x - 4 \tanh(x / 2))} / C \, N(0, M^{-1})`. A step of "ubu"
    draws four normal numbers for each entry, and of "baoab" one.

    References
    ----------
    Chen, Fox and Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo, ICML, section 3. Chen, Ding and Carin
    (2015), On the convergence of stochastic gradient MCMC algorithms with high-order integrators, NeurIPS. Leimkuhler
    and Matthews (2013), Rational construction of stochastic numerical methods for molecular sampling, AMRX.
    Sanz-Serna and Zygalakis (2021), Wasserstein distance estimates for the distributions of numerical approximations to
    ergodic stochastic differential equations, JMLR 22, for "ubu".
    """

    step_size: StepSize = "auto"
    friction: float = 1.0
    scheme: Literal["baoab", "aboba", "ubu", "euler"] = "baoab"
    noise_estimate: float = 0.0
    mass: ArrayLike | MonteCarloEM | None = None
    temperature: float = 1.0

    _name = "sghmc"
    _fits = _IN_BLOCKS
    _reads_log_density = False
    _parameter_constraints = {
        "step_size": STEP_SIZE_CONSTRAINT,
        "friction": _POSITIVE,
        "scheme": [StrOptions({"baoab", "aboba", "ubu", "euler"})],
        "noise_estimate": _NOT_NEGATIVE,
        "mass": _MASS,
        "temperature": _POSITIVE,
    }

    @property
    def _is_splitting(self):
        return self.scheme != "euler"

    @property
    def _n_aux(self):
        return 3 if self.scheme == "ubu" else 2

    def _numbers(self):
        return [self.temperature, self.friction, self.noise_estimate]

    def _linear_chain(self, curvatures, h, noise_variances):
        C, T, B, step = self.friction, self.temperature, self.noise_estimate, LinearChain.still(curvatures.size)
        if self.scheme == "euler":
            # Friction and noise are those of the identity as the mass.
            if self.mass is not None:
                return None
            return step.then_euler_kick(curvatures, h, 1.0 - h * C, 2.0 * h * max(C * T - B, 0.0)).then_drift(h)
        if self.scheme == "ubu":
            langevin = C, 0.5 * h, max(T - B / C, 0.0)
            return step.then_langevin(*langevin).then_kick(curvatures, h).then_langevin(*langevin)
        damping = np.exp(-C * h), max(T - B / C, 0.0) * (1.0 - np.exp(-2.0 * C * h))
        if self.scheme == "baoab":
            return step.then_kick(curvatures, h).then_drift(0.5 * h).then_damping(*damping).then_drift(0.5 * h)
        halves = step.then_drift(0.5 * h).then_kick(curvatures, 0.5 * h).then_damping(*damping)
        return halves.then_kick(curvatures, 0.5 * h).then_drift(0.5 * h)

    def _kernels(self, geometry):
        return {
            "baoab": (simplex.no_advance, euclidean.sghmc_baoab),
            "aboba": (euclidean.half_drift, euclidean.sghmc_aboba),
            "ubu": (euclidean.sghmc_ubu_half, euclidean.sghmc_ubu),
            "euler": (simplex.no_advance, euclidean.sghmc_euler),
        }[self.scheme]


@positional_parameters
class HMC(_Kinetic):
    r"""Hamiltonian Monte Carlo: trajectories on all the data with a Metropolis test at their ends.

    Targets the posterior exactly, for any ``step_size``. One step of the chain is one trajectory.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h` of the leapfrog. "auto" adapts it during burn-in to the acceptance rate ``target_accept``.
    n_leapfrog : int, default=10
        Number of leapfrog steps of a trajectory; the maximum, unless ``vary_length=False``.
    jitter : float, default=0.2
        The step size of each trajectory is multiplied by a uniform number on (1 - jitter, 1 + jitter), so that
        trajectories do not resonate with the period of any direction.
    target_accept : float, default=0.85
        Acceptance rate to which ``step_size="auto"`` adapts.
    mass : array-like, "auto", "diagonal", "full", MonteCarloEM or None, default="auto"
        :math:`M`, of shape (n_entries,) or (n_entries, n_entries). None: the identity. "diagonal" and "full" are
        learnt from draws in windows of burn-in, each twice as long as the one before. With "auto",
        `sk_sgmcmc.sample` learns a full mass of up to 200 entries, if burn-in has ten steps for each, and a diagonal
        mass otherwise. It uses the identity if you set ``step_size``. Estimators use the identity with "auto", since
        their coordinates have about unit spread.
    vary_length : bool, default=True
        Whether the length of a trajectory is uniform on 1 to ``n_leapfrog`` steps, independently of the state.
        Trajectories of a fixed length near half a period always end on the opposite side of the mode. Means are then
        estimated well, but variances badly. Near a whole period, trajectories return to their start.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy. If chains adapt them, multiply by ``step_factor_`` of the chain.
    acceptance_rate_ : ndarray of shape (n_chains,)
        Mean probability of acceptance over each chain.

    References
    ----------
    Neal (2011), MCMC using Hamiltonian dynamics, Handbook of Markov Chain Monte Carlo, chapter 5.
    """

    step_size: StepSize = "auto"
    n_leapfrog: int = 10
    jitter: float = 0.2
    target_accept: float = 0.85
    mass: ArrayLike | Literal["auto", "diagonal", "full"] | MonteCarloEM | None = "auto"
    vary_length: bool = True

    _name = "hmc"
    _loop = "metropolis"
    _reads_all_rows = True
    _corrects_steps = True
    _tunes_step = True
    _parameter_constraints = {
        "step_size": STEP_SIZE_CONSTRAINT,
        "n_leapfrog": [Interval(Integral, 1, None, closed="left")],
        "jitter": [Interval(Real, 0, 1, closed="left")],
        "target_accept": [Interval(Real, 0, 1, closed="neither")],
        "mass": [*_MASS, StrOptions({"auto", *IN_WINDOWS})],
        "vary_length": ["boolean"],
    }

    def _numbers(self):
        adapted = isinstance(self.step_size, str)
        return [self.n_leapfrog, self.jitter, self.target_accept if adapted else 0.0, self.vary_length]

    def _write(self, scalars, n_entries):
        scalars[mass_kernels.EVERY] = 1.0

    def _learning_units(self, n_entries, n_burn):
        return with_learnt_mass(self, n_entries, n_burn)

    def _kernels(self, geometry):
        return euclidean.flat_flow, euclidean.flat_project

    def _report(self, states):
        super()._report(states)
        report_acceptance(self, states)
