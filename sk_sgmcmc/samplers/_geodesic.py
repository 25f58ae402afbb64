"""Samplers on manifolds: spheres, simplices with the Euclidean metric, orthonormal frames, and their products."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal

import numpy as np

from ..kernels.samplers import geodesic
from ..kernels.samplers import geometry as geometry_kernels
from ..utils._parameters import positional_parameters
from ..utils._sklearn import Interval, StrOptions
from ._base import STEP_SIZE_CONSTRAINT, Sampler, StepSize
from ._mass import mass_state, report_acceptance
from ._products import Product

_MANIFOLDS = tuple((name, "gradient") for name in ("sphere", "simplex", "stiefel", "product"))
# ``friction * step_size`` with automatic friction, about the share of the velocity that a step removes. It is large
# enough to dominate the noise of gradients, and small enough for a velocity to persist over several steps.
AUTO_DECAY = 0.1


def _with_blocks(scalars, geometry):
    """The scalars of a state; on a product, they are followed by the table of its blocks, as the kernels expect."""
    return np.concatenate([scalars, geometry.table().ravel()]) if isinstance(geometry, Product) else scalars


@positional_parameters
class _Geodesic(Sampler):
    """Base class of the two stochastic samplers: `SGGMC` is `GSGNHT` with a thermostat of infinite mass."""

    step_size: StepSize = "auto"
    friction: float | Literal["auto"] = "auto"
    gradient_noise: float | Literal["estimated"] = 0.0

    _fits = _MANIFOLDS
    _n_aux = 1
    _n_scalars = 2
    _keeps_velocity = True
    # Factor of the model's estimate of the noise. Kernels read its negative where the user sets a variance.
    _estimate_scale = 1.0
    _parameter_constraints = {
        "step_size": STEP_SIZE_CONSTRAINT,
        "friction": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "gradient_noise": [Interval(Real, 0, None, closed="left"), StrOptions({"estimated"})],
    }

    def _kernels(self, geometry):
        return geodesic.TRANSITIONS[str(geometry)]

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        h = reach / np.sqrt(curvature)
        if noise > 0.0:
            # Noise of variance h^2 V raises the temperature, and friction lowers it at the rate 2 h C. Automatic
            # friction is proportional to 1/h.
            if isinstance(self.friction, str):
                h = min(h, np.sqrt(2.0 * share * AUTO_DECAY / noise))
            elif self.friction > 0.0:
                h = min(h, 2.0 * share * self.friction / noise)
        return h

    def _thermostat(self, friction):
        return friction, np.zeros_like(friction)

    def _state(self, theta, geometry, n_burn):
        aux, scalars = super()._state(theta, geometry, n_burn)
        return aux, _with_blocks(scalars, geometry)

    def _hyper(self, start, stop):
        h = self._step_sizes(start, stop)
        friction = AUTO_DECAY / h if isinstance(self.friction, str) else np.full_like(h, self.friction)
        noise = np.full_like(h, -self._estimate_scale if isinstance(self.gradient_noise, str) else self.gradient_noise)
        return np.ascontiguousarray(np.column_stack([h, friction, noise, *self._thermostat(friction)]))

    def _resumed_from(self, present, step, scalars):
        fitted = super()._resumed_from(present, step, scalars)
        if hasattr(present, "step_size_"):
            fitted._keep_distance(present._hyper(step, step + 1)[0], step, scalars)
        return fitted

    def _keep_distance(self, before, step, scalars):
        """Shift the thermostat by the change of automatic friction since ``before``, a row of `_hyper`."""
        scalars[1] += self._hyper(step, step + 1)[0, 1] - before[1]


@positional_parameters
class SGGMC(_Geodesic):
    r"""Stochastic-gradient geodesic Monte Carlo: Langevin dynamics with a velocity along geodesics.

    Targets the density on the manifold with an error of second order in ``step_size``. This also holds for a noisy
    gradient if the variance of the noise is known or estimated. The chain never leaves the manifold.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one step.
    friction : float or "auto", default="auto"
        :math:`C`, in units of 1/time. "auto" is 0.1 / ``step_size``.
    gradient_noise : float or "estimated", default=0
        :math:`V`, the variance of the noise in each coordinate of the gradient. The injected noise is reduced by it, so
        that the total is right. The noise has to be independent between steps (``with_replacement`` of `sample`):
        the noise of adjacent rows read in turn cancels over an epoch.
        "estimated" uses the model's estimate from each minibatch (empirical Fisher information). If several steps use
        one minibatch (``n_inner`` of `SphericalAdmixtureModel`), its noise adds up over them, and the estimate accounts
        for this. With the stored proportions of that model, minibatches add no noise, and the estimate is 0.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy.

    See Also
    --------
    GSGNHT : With a thermostat, for noise of unknown variance.
    GMC : With a Metropolis step, on all the data.

    Notes
    -----
    A step is A B O B A: geodesic flow over :math:`h/2`; :math:`v \leftarrow e^{-C h/2} v`;
    :math:`v \leftarrow v + \Lambda(x)[h \nabla\log\hat\pi(x) + \sqrt{2 \sinh(hC) - h^2 V} Z]`; then the first two
    parts in reverse order. :math:`\Lambda(x)` projects onto the tangent space, and :math:`\pi` is the density with
    respect to the surface measure. The paper has :math:`2 h C` for :math:`2 \sinh(hC)`, which agrees to second order.
    It writes :math:`\epsilon = \sqrt{\gamma / D}` for :math:`h` and :math:`C = \rho / \epsilon`.
    If :math:`2C < hV`, friction cannot remove all the noise of gradients, and the temperature is above 1.

    References
    ----------
    Liu, Zhu and Song (2016), Stochastic gradient geodesic MCMC methods, NeurIPS, section 3.

    Examples
    --------
    >>> from sk_sgmcmc import sample
    >>> from sk_sgmcmc.targets import RestrictedGaussian
    >>> target = RestrictedGaussian(linear=[[0.0, 0.0, 5.0]])
    >>> draws = sample(target, "sggmc", n_iter=500, random_state=0)
    >>> draws.samples_["x"].shape
    (1, 250, 1, 3)
    """

    _name = "sggmc"


@positional_parameters
class GSGNHT(_Geodesic):
    r"""Geodesic stochastic-gradient Nosé-Hoover thermostat: friction that adapts to the noise.

    Targets the density on the manifold with an error of second order in ``step_size``. The thermostat keeps the mean of
    :math:`v^2` at 1. It thereby removes gradient noise whose variance is unknown, but the same for all coordinates.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one step.
    friction : float or "auto", default="auto"
        :math:`C`, the friction that matches the injected noise. "auto" is 0.1 / ``step_size``.
    gradient_noise : float or "estimated", default=0
        :math:`V`, the known part of the noise, as for `SGGMC`. The thermostat removes the rest. With the stored
        proportions of `SphericalAdmixtureModel`, minibatches add no noise, and "estimated" is 0.
    thermostat : float or None, default=None
        :math:`\xi` at the start. None: the friction. Set a high value if the gradient is very noisy, since :math:`\xi`
        changes by only about :math:`(|v|^2/n - 1) h` in a step.
    thermostat_mass : float, default=1
        Inertia of :math:`\xi`, in units of the manifold's dimension :math:`n`. With a smaller value, :math:`\xi`
        changes faster.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy.

    See Also
    --------
    SGGMC : Without a thermostat.

    Notes
    -----
    The step of `SGGMC`, with :math:`\xi` instead of :math:`C` in the two damping parts. Each half flow also updates
    :math:`\xi \leftarrow \xi + (|v|^2 / n - 1) h / (2 m)`, where :math:`m` is ``thermostat_mass``. The dimension
    :math:`n` of the manifold is :math:`V - 1` for a sphere in :math:`R^V`.

    References
    ----------
    Liu, Zhu and Song (2016), Stochastic gradient geodesic MCMC methods, NeurIPS, section 3 and appendix.
    """

    thermostat: float | None = None
    thermostat_mass: float = 1.0

    _name = "gsgnht"
    _parameter_constraints = {
        **_Geodesic._parameter_constraints,
        "thermostat": [Interval(Real, None, None, closed="neither"), None],
        "thermostat_mass": [Interval(Real, 0, None, closed="neither")],
    }

    def _thermostat(self, friction):
        start = friction if self.thermostat is None else np.full_like(friction, self.thermostat)
        return start, np.full_like(friction, 1.0 / self.thermostat_mass)


@positional_parameters
class GMC(Sampler):
    r"""Geodesic Monte Carlo: Hamiltonian trajectories along geodesics, with a Metropolis step, on all the data.

    Targets the density on the manifold exactly.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one leapfrog step. "auto" adapts it during burn-in to the acceptance rate
        ``target_accept``.
    n_leapfrog : int, default=10
        Number of leapfrog steps of a trajectory.
    jitter : float, default=0.2
        The step size of each trajectory is multiplied by a uniform number on (1 - jitter, 1 + jitter). Otherwise,
        trajectories might always go once around a sphere, back to their start.
    target_accept : float, default=0.85
        Acceptance rate to which ``step_size="auto"`` adapts.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy. If chains adapt them, multiply by ``step_factor_`` of the chain.
    acceptance_rate_ : ndarray of shape (n_chains,)
        Mean probability of acceptance over each chain.

    See Also
    --------
    SGGMC : On minibatches, without a Metropolis step.

    Notes
    -----
    :math:`v = \Lambda(x) Z`, then ``n_leapfrog`` times: :math:`v \leftarrow v + \Lambda(x) \nabla \log\pi(x) h/2`,
    geodesic flow over :math:`h`, and the first update again; accepted with probability
    :math:`\min(1, e^{\Delta [\log\pi - |v|^2/2]})`.

    References
    ----------
    Byrne and Girolami (2013), Geodesic Monte Carlo on embedded manifolds, Scandinavian Journal of Statistics 40.
    """

    step_size: StepSize = "auto"
    n_leapfrog: int = 10
    jitter: float = 0.2
    target_accept: float = 0.85

    _name = "gmc"
    _fits = _MANIFOLDS
    _loop = "metropolis"
    _n_aux = 2
    _reads_all_rows = True
    _corrects_steps = True
    _parameter_constraints = {
        "step_size": STEP_SIZE_CONSTRAINT,
        "n_leapfrog": [Interval(Integral, 1, None, closed="left")],
        "jitter": [Interval(Real, 0, 1, closed="left")],
        "target_accept": [Interval(Real, 0, 1, closed="neither")],
    }

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        return reach / np.sqrt(curvature)

    def _report(self, states):
        report_acceptance(self, states)

    def _kernels(self, geometry):
        return geometry_kernels.MOTIONS[str(geometry)]

    def _state(self, theta, geometry, n_burn):
        scalars = mass_state(None, theta.size, n_burn)
        return np.zeros((self._n_aux, *theta.shape)), _with_blocks(scalars, geometry)

    def _hyper(self, start, stop):
        h = self._step_sizes(start, stop)
        target = self.target_accept if isinstance(self.step_size, str) else 0.0
        return np.column_stack([h, *(np.full_like(h, number) for number in (self.n_leapfrog, self.jitter, target))])
