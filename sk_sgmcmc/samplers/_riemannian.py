"""Samplers on Euclidean space whose mass is a metric that depends on the position."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal

from ..utils._sklearn import Interval
from ._base import StepSize
from ._euclidean import HMC
from ._thermostats import SGNPHMC

_N_ITERATIONS = [Interval(Integral, 1, None, closed="left")]


class RHMC(HMC):
    r"""Riemannian Hamiltonian Monte Carlo: trajectories under a metric, with a Metropolis test at their ends.

    Targets the posterior exactly, for any ``step_size`` and any metric, up to the ``tolerance`` to which the implicit
    steps are solved. One step of the chain is one trajectory on all the data.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h` of the leapfrog. "auto" adapts it during burn-in to the acceptance rate ``target_accept``.
    n_leapfrog : int, default=10
        Number of leapfrog steps of a trajectory.
    jitter : float, default=0.2
        The step size of each trajectory is multiplied by a uniform number on (1 - jitter, 1 + jitter).
    target_accept : float, default=0.95
        Acceptance rate to which ``step_size="auto"`` adapts. The default is higher than for `HMC`. With long steps, the
        implicit equations have no solution at some points, and a chain may stay there for a long time.
    n_fixed_point : int, default=50
        Maximum number of iterations for each of the two implicit equations of a step.
    tolerance : float, default=1e-9
        Relative change at which iterations end. If an equation is not solved to this tolerance, the trajectory is
        rejected. With 0, there are always ``n_fixed_point`` iterations, as in the reference. Trajectories are then only
        approximately reversible, and draws follow the target only approximately.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy. If chains adapt them, multiply by ``step_factor_`` of the chain.
    acceptance_rate_ : ndarray of shape (n_chains,)
        Share of trajectories that were accepted.

    Notes
    -----
    :math:`H = -\log p(\theta) + \tfrac12 \log |G(\theta)| + \tfrac12 p^\top G(\theta)^{-1} p` with a metric :math:`G`
    from the model: `sk_sgmcmc.targets.Density` takes one; `BayesianLogisticRegression`, `BayesianPoissonRegressor` and
    `BayesianGaussian` use the Fisher information plus the prior's precision. The generalised leapfrog is

    .. math:: p' &= p - \tfrac h2 \nabla_\theta H(\theta, p'), \\
              \theta' &= \theta + \tfrac h2 \bigl( G(\theta)^{-1} + G(\theta')^{-1} \bigr) p', \\
              p'' &= p' - \tfrac h2 \nabla_\theta H(\theta', p') .

    References
    ----------
    Girolami and Calderhead (2011), Riemann manifold Langevin and Hamiltonian Monte Carlo methods, Journal of the Royal
    Statistical Society B 73, section 5.
    """

    _name = "rhmc"
    _loop = "riemannian-metropolis"
    _fits = (("euclidean", "gradient-metric"),)
    _n_aux = 0
    _parameter_constraints = {
        **{name: value for name, value in HMC._parameter_constraints.items() if name not in ("mass", "vary_length")},
        "n_fixed_point": _N_ITERATIONS,
        "tolerance": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        step_size: StepSize = "auto",
        n_leapfrog: int = 10,
        jitter: float = 0.2,
        target_accept: float = 0.95,
        n_fixed_point: int = 50,
        tolerance: float = 1e-9,
    ) -> None:
        self.step_size = step_size
        self.n_leapfrog = n_leapfrog
        self.jitter = jitter
        self.target_accept = target_accept
        self.n_fixed_point = n_fixed_point
        self.tolerance = tolerance

    def _numbers(self):
        adapted = isinstance(self.step_size, str)
        target = self.target_accept if adapted else 0.0
        return [self.n_leapfrog, self.jitter, target, self.n_fixed_point, self.tolerance]


class SGRNPHMC(SGNPHMC):
    r"""Stochastic Riemannian Nosé-Poincaré Hamiltonian Monte Carlo: `SGNPHMC` under a metric.

    Targets the posterior with an error of order ``step_size`` squared. The metric is computed from a fixed subset of
    rows: as many as a minibatch has, and at least five for each coordinate. The subset is the same at every step,
    because the metric must be a function of :math:`\theta` only. Any such function leaves the target invariant.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one step.
    friction : float, default=1
        :math:`C`, friction of the momentum in units of 1/time, with the noise that matches it. 0: deterministic
        dynamics.
    thermostat_friction : float, default=0
        :math:`A`, friction of :math:`q`, with the noise that matches it.
    thermostat_mass : float, default=1
        :math:`Q`, in units of the number of entries.
    drive : {"kinetic", "likelihood"}, default="kinetic"
        Force on :math:`q`; see `SGNPHMC`.
    n_fixed_point : int, default=4
        Number of iterations for each of the two implicit equations of a step. With 1, as in the reference, the error is
        of first order.
    temperature : float, default=1
        :math:`T`: the target is :math:`p^{1/T}`.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy that an estimator keeps in ``sampler_``.

    Notes
    -----
    :math:`H = s [-\log p(\theta) + \tfrac T2 \log |G(\theta)| + \tfrac12 (p/s)^\top G(\theta)^{-1} (p/s) + q^2 / 2Q +
    D T \log s - H_0]`, integrated by the generalised leapfrog of `RHMC`. The steps of :math:`q` and :math:`s`, the
    friction, and the return to the shell :math:`H = 0` are as in `SGNPHMC`.

    References
    ----------
    Roychowdhury, Kulis and Parthasarathy (2016), Robust Monte Carlo sampling using Riemannian Nosé-Poincaré
    Hamiltonian dynamics, ICML. Roychowdhury and Parthasarathy (2017), section 4.
    """

    _name = "sgr-nphmc"
    _loop = "riemannian-dense"
    _fits = (("euclidean", "gradient-metric"), ("euclidean", "block-gradient-metric"))
    _n_aux = 1
    _parameter_constraints = {
        **{name: value for name, value in SGNPHMC._parameter_constraints.items() if name != "mass"},
        "n_fixed_point": _N_ITERATIONS,
    }

    def __init__(
        self,
        step_size: StepSize = "auto",
        friction: float = 1.0,
        thermostat_friction: float = 0.0,
        thermostat_mass: float = 1.0,
        drive: Literal["kinetic", "likelihood"] = "kinetic",
        n_fixed_point: int = 4,
        temperature: float = 1.0,
    ) -> None:
        self.step_size = step_size
        self.friction = friction
        self.thermostat_friction = thermostat_friction
        self.thermostat_mass = thermostat_mass
        self.drive = drive
        self.n_fixed_point = n_fixed_point
        self.temperature = temperature

    def _numbers(self):
        return [*super()._numbers(), self.n_fixed_point]
