"""Particle samplers: many states that follow a deterministic flow and repel each other."""

from __future__ import annotations

from numbers import Integral
from typing import Literal

import numpy as np

from ..kernels.samplers import particles
from ..utils._parameters import positional_parameters
from ..utils._sklearn import Interval, StrOptions
from ._base import STEP_SIZE_CONSTRAINT, StepSize
from ._euclidean import _CONDITIONAL, _NOT_NEGATIVE, _POSITIVE, _Euclidean, _Kinetic, overdamped_step

_RULES = {"median": 0, "he": 1}  # codes as in `sk_sgmcmc.kernels.samplers.particles`


@positional_parameters
class _Particles(_Euclidean):
    r"""Base class of particle samplers: the number of particles, their start, and the kernel of their interaction.

    ``n_chains`` is the number of independent systems of particles.

    Parameters
    ----------
    n_particles : int, default=20
        :math:`M`, the number of particles of a system.
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one step.
    bandwidth : {"median", "he"}, default="median"
        Rule for :math:`s^2` of the kernel. "median": half the median squared distance between two particles, divided by
        :math:`\log(M + 1)`. "he": the bandwidth whose smoothed density follows the heat equation (HE) best. It is
        searched on the logarithmic scale by one update per step, within a factor of 4 of the median rule.
    start_scale : float, default=1
        The starts of particles are drawn independently from a normal distribution with this standard deviation around
        the start of the model or target.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy.
    bandwidth_ : ndarray of shape (n_chains, 2)
        The last bandwidths of positions and of momenta; 0 where there is none.
    """

    n_particles: int = 20
    step_size: StepSize = "auto"
    bandwidth: Literal["median", "he"] = "median"
    start_scale: float = 1.0

    _fits = _CONDITIONAL
    _loop = "particles"
    _reads_log_density = False
    _draws_in_time = False
    _n_aux = 0
    _interaction = 0  # code as in `sk_sgmcmc.kernels.samplers.particles`
    _parameter_constraints = {
        "n_particles": [Interval(Integral, 1, None, closed="left")],
        "step_size": STEP_SIZE_CONSTRAINT,
        "bandwidth": [StrOptions(set(_RULES))],
        "start_scale": _POSITIVE,
    }

    @property
    def _particles_per_chain(self):
        return self.n_particles

    def _numbers(self):
        return [self._interaction, _RULES[self.bandwidth], getattr(self, "ridge", 0.0)]

    def _state(self, theta, geometry, n_burn):
        return np.zeros((self._n_aux, len(theta), theta[0].size)), np.zeros(particles.N_SCALARS)

    def _kernels(self, geometry):
        return (particles.langevin_flow,)

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        return overdamped_step(curvature, noise, share)

    def _report(self, states):
        scalars = np.stack([state.scalars for state in states])
        self.bandwidth_ = scalars[:, particles.POSITIONS : particles.N_SCALARS]


@positional_parameters
class Blob(_Particles):
    r"""The blob method: the flow of Langevin dynamics, followed by particles that repel each other.

    Approximates the posterior by particles, and better with more of them. With finitely many particles, the posterior
    is not invariant; a single particle converges to the mode. The fixed point does not depend on ``step_size``. The
    draws are the particles after the last step, and arrays in ``samples_`` have the shape (n_chains, n_particles, ...).
    ``burn_in`` and ``thin`` have no effect.

    Notes
    -----
    :math:`x_i \leftarrow x_i + h (\nabla \log p(x_i) + b_i)` with :math:`K_{ij} = \exp(-|x_i - x_j|^2 / 2 s^2)`,
    :math:`S_i = \sum_j K_{ij}` and :math:`b_i = s^{-2} \sum_j K_{ij} (x_i - x_j) (1/S_i + 1/S_j)`, which estimates
    :math:`-\nabla \log q`. All particles read the same minibatch. A step costs :math:`M` gradients, and two matrix
    products of :math:`2 M^2 D` operations each.

    References
    ----------
    Carrillo, Craig and Patacchini (2019), A blob method for diffusion, Calculus of Variations 58. Liu, Zhuo, Cheng,
    Zhang and Zhu (2019), Understanding and accelerating particle-based variational inference, ICML, sections 3 and 5.
    """

    _name = "blob"


@positional_parameters
class GFSD(_Particles):
    r"""Gradient flow with a smoothed density: `Blob` with half of its repulsion.

    Approximates the posterior by particles; `Blob` describes the approximation and the draws.

    Notes
    -----
    :math:`b_i = s^{-2} \sum_j K_{ij} (x_i - x_j) / S_i`, the score of the density smoothed by the kernel.

    References
    ----------
    Liu, Zhuo, Cheng, Zhang and Zhu (2019), Understanding and accelerating particle-based variational inference, ICML,
    section 3.
    """

    _name = "gfsd"
    _interaction = 1


@positional_parameters
class GFSF(_Particles):
    r"""Gradient flow with smoothed test functions.

    Approximates the posterior by particles; `Blob` describes the approximation and the draws.

    Parameters
    ----------
    ridge : float, default=0.01
        :math:`\rho`, added to the diagonal of the kernel matrix before the linear system is solved.

    Notes
    -----
    :math:`b = (K + \rho I)^{-1} B` with :math:`B_i = s^{-2} \sum_j K_{ij} (x_i - x_j)`.

    References
    ----------
    Liu, Zhuo, Cheng, Zhang and Zhu (2019), Understanding and accelerating particle-based variational inference, ICML,
    section 3.
    """

    ridge: float = 0.01

    _name = "gfsf"
    _interaction = 2
    _parameter_constraints = {**_Particles._parameter_constraints, "ridge": _POSITIVE}


@positional_parameters
class SVGD(_Particles):
    r"""Stein variational gradient descent.

    Approximates the posterior by particles; `Blob` describes the approximation and the draws.

    Notes
    -----
    :math:`x_i \leftarrow x_i + \frac hM \sum_j \bigl[ K_{ij} \nabla \log p(x_j) + s^{-2} K_{ij} (x_i - x_j) \bigr]`.
    :math:`K_{ij}` is small between distant particles, so the weights :math:`K_{ij} / M` of the gradients sum to less
    than 1, and a step is shorter than one of `Blob`.

    References
    ----------
    Liu and Wang (2016), Stein variational gradient descent, NeurIPS, algorithm 1.
    """

    _name = "svgd"
    _interaction = 3


@positional_parameters
class PSGHMC(_Particles):
    r"""Particles that follow the flow of stochastic-gradient Hamiltonian Monte Carlo: momentum, friction, no noise.

    Approximates the posterior by particles; `Blob` describes the approximation and the draws.

    Parameters
    ----------
    kind : {"det", "fgh"}, default="det"
        "det" replaces the noise of `SGHMC` by the score of the momenta. "fgh" is the fibre-gradient Hamiltonian flow,
        in which the scores of positions and momenta also drive each other.
    friction : float, default=1
        :math:`C`, in units of mass/time.
    mass : float, default=1
        :math:`m`, the same for every momentum.

    Notes
    -----
    With :math:`b` as in `Blob`, of the positions or of the momenta, and :math:`f` 1 for "fgh" and 0 for "det":

    .. math::
       p &\leftarrow p + h \, [\nabla \log p(\theta) + f b(\theta) - C p / m + C b(p)], \\
       \theta &\leftarrow \theta + h \, [p / m - f b(p)],

    where the second update uses the new momenta. "fgh" without friction is then a symplectic step of the Hamiltonian
    :math:`\sum_i [-\log p(\theta_i) + p_i^2 / 2m + \log S_i(\theta) + \log S_i(p)]`. The step of the paper uses the old
    momenta. :math:`\Sigma` in the paper is :math:`m`.

    References
    ----------
    Liu, Zhuo and Zhu (2019), Understanding MCMC dynamics as flows on the Wasserstein space, ICML, section 5.
    """

    _n_aux = 2
    _parameter_constraints = {
        **_Particles._parameter_constraints,
        "kind": [StrOptions({"det", "fgh"})],
        "friction": _NOT_NEGATIVE,
        "mass": _POSITIVE,
    }

    def __init__(
        self,
        kind: Literal["det", "fgh"] = "det",
        n_particles: int = 20,
        step_size: StepSize = "auto",
        bandwidth: Literal["median", "he"] = "median",
        start_scale: float = 1.0,
        friction: float = 1.0,
        mass: float = 1.0,
    ) -> None:
        super().__init__(n_particles, step_size, bandwidth, start_scale)
        self.kind = kind
        self.friction = friction
        self.mass = mass

    @property
    def _name(self):
        return f"psghmc-{self.kind}"

    def _numbers(self):
        return [*super()._numbers(), self.friction, self.mass, self.kind == "fgh"]

    def _kernels(self, geometry):
        return (particles.hamiltonian_flow,)

    _stable_step = _Kinetic._stable_step

    def _inverse_mass(self, n_entries):
        return np.eye(n_entries) / self.mass
