"""Thermostats on Euclidean space: samplers that adapt to the noise of gradients."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..kernels.samplers import euclidean, nose_poincare, simplex
from ..kernels.samplers import mass as mass_kernels
from ..utils._parameters import positional_parameters
from ..utils._sklearn import StrOptions
from ._base import STEP_SIZE_CONSTRAINT, StepSize
from ._euclidean import _IN_BLOCKS, _MASS, _NOT_NEGATIVE, _POSITIVE, _Kinetic
from ._linear_chain import LinearChain, thermostatted
from ._mass import MonteCarloEM


@positional_parameters
class SGNHT(_Kinetic):
    r"""Stochastic-gradient Nosé-Hoover thermostat: friction that adapts to the noise of gradients.

    Targets the posterior under any mass, with an error of order ``step_size`` ("euler") or ``step_size`` squared
    ("aboba"), even if the gradient has white noise of unknown constant variance. A scalar friction removes only noise
    whose covariance is proportional to the mass. With other noise, the temperature is too high in some directions and
    too low in others, unless the mass is learnt. The noise is not white if adjacent rows are read in turn; see
    ``with_replacement``.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one step.
    noise : float, default=1
        :math:`A`, the injected noise. The mean of the thermostat :math:`\xi` is :math:`A` plus the contribution of
        gradient noise.
    scheme : {"aboba", "euler"}, default="aboba"
        Symmetric splitting, or the paper's Euler step.
    form : {"mass", "white"}, default="mass"
        Friction and noise, in one of the two forms that are valid under a mass. "mass": friction :math:`\xi p` with
        noise :math:`2 A M`. "white": friction :math:`\xi M^{-1} p` with noise :math:`2 A I`, only with
        ``scheme="euler"``.
    thermostat_mass : float, default=1
        :math:`\mu`. With a smaller value, :math:`\xi` changes faster.
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
    "mass": :math:`\dot p = \nabla \log p - \xi p + N(0, 2 A M)`, :math:`\mu \dot\xi = p^\top M^{-1} p / D - T`.
    "white": :math:`\dot p = \nabla \log p - \xi M^{-1} p + N(0, 2 A)`,
    :math:`\mu \dot\xi = p^\top M^{-2} p / \operatorname{tr} M^{-1} - T`. The form printed in the reference, friction
    :math:`\xi M^{-1} p` with :math:`\dot\xi = p^\top M^{-1} p / D - 1`, leaves the target invariant only if
    :math:`M \propto I`.

    References
    ----------
    Ding, Fang, Babbush, Chen, Skeel and Neven (2014), Bayesian sampling using stochastic gradient thermostats,
    NeurIPS, section 3. Roychowdhury and Parthasarathy (2017), algorithm 2.
    """

    step_size: StepSize = "auto"
    noise: float = 1.0
    scheme: Literal["aboba", "euler"] = "aboba"
    form: Literal["mass", "white"] = "mass"
    thermostat_mass: float = 1.0
    mass: ArrayLike | MonteCarloEM | None = None
    temperature: float = 1.0

    _name = "sgnht"
    _fits = _IN_BLOCKS
    _reads_log_density = False
    _parameter_constraints = {
        "step_size": STEP_SIZE_CONSTRAINT,
        "noise": _POSITIVE,
        "scheme": [StrOptions({"aboba", "euler"})],
        "form": [StrOptions({"mass", "white"})],
        "thermostat_mass": _POSITIVE,
        "mass": _MASS,
        "temperature": _POSITIVE,
    }

    def _numbers(self):
        return [self.temperature, self.noise, self.thermostat_mass]

    def _write(self, scalars, n_entries):
        scalars[mass_kernels.XI] = self.noise

    def _linear_chain(self, curvatures, h, noise_variances):
        if self.form == "white" and self.mass is not None:
            return None
        A, T, still = self.noise, self.temperature, LinearChain.still(curvatures.size)

        def euler(friction):
            return still.then_euler_kick(curvatures, h, 1.0 - h * friction, 2.0 * A * h).then_drift(h)

        def aboba(friction):
            damp = np.exp(-0.5 * h * friction)
            drifted = still.then_drift(0.5 * h).then_damping(damp, 0.0).then_kick(curvatures, h)
            return drifted.then_damping(damp, damp * damp * 2.0 * A * h).then_drift(0.5 * h)

        return thermostatted({"euler": euler, "aboba": aboba}[self.scheme], noise_variances, T, A / T)

    def _kernels(self, geometry):
        if self.form == "white":
            if self.scheme != "euler":
                raise ValueError('form="white" has no symmetric splitting; use scheme="euler" with it, or form="mass".')
            return simplex.no_advance, euclidean.sgnht_euler_white
        if self.scheme == "euler":
            return simplex.no_advance, euclidean.sgnht_euler
        return euclidean.sgnht_half, euclidean.sgnht_aboba


@positional_parameters
class SGNPHMC(_Kinetic):
    r"""Stochastic Nosé-Poincaré Hamiltonian Monte Carlo: a second-order thermostat that rescales time.

    Targets the posterior with an error of order ``step_size`` squared.

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
        :math:`Q`, in units of the number of entries; learnt together with ``mass``.
    drive : {"kinetic", "likelihood"}, default="kinetic"
        Force on :math:`q`: computed from the kinetic energy, or, as in the paper, from the log density and :math:`H_0`.
        The two are equal where :math:`H = 0`. On minibatches, "likelihood" adds the noise of the log density.
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
    :math:`H = s [-\log p(\theta) + \tfrac12 (p/s)^\top W (p/s) + q^2 / 2Q + D T \log s - H_0]`, with :math:`W = M^{-1}`
    and :math:`H_0` such that :math:`H = 0` at the start. The step, which corrects the printed one, is

    .. math::
       p &\leftarrow p + \tfrac h2 s \nabla \log p(\theta) \\
       q &\leftarrow \text{the root of } \tfrac{h}{4Q} q'^2 + q' - q
           - \tfrac h2 \bigl[ -D T (1 + \log s) + \tfrac12 (p/s)^\top W (p/s) + \log p(\theta) + H_0 \bigr] \\
       s' &= s \, \frac{1 + h q / 2Q}{1 - h q / 2Q}, \qquad \theta \leftarrow \theta + \tfrac h2 W p \, (1/s + 1/s') \\
       p &\leftarrow p + \tfrac h2 s' \nabla \log p(\theta) \\
       q &\leftarrow q + \tfrac h2 \bigl[ H_0 + \log p(\theta) - D T (1 + \log s')
           + \tfrac12 (p/s')^\top W (p/s') - q^2 / 2Q \bigr] .

    Friction acts between two steps. Afterwards, :math:`s` is reset to 1 and :math:`H_0` to the energy. On the shell
    :math:`H = 0`, the distribution of :math:`(\theta, p/s, q)` does not depend on either. The noise of minibatches
    therefore cannot drive the chain off the shell. ``drive="kinetic"`` replaces the brackets by
    :math:`(p/s)^\top W (p/s) - D T`, which equals them on the shell.

    References
    ----------
    Roychowdhury, Kulis and Parthasarathy (2016), Robust Monte Carlo sampling using Riemannian Nosé-Poincaré
    Hamiltonian dynamics, ICML. Roychowdhury and Parthasarathy (2017), equation 7.
    """

    step_size: StepSize = "auto"
    friction: float = 1.0
    thermostat_friction: float = 0.0
    thermostat_mass: float = 1.0
    drive: Literal["kinetic", "likelihood"] = "kinetic"
    mass: ArrayLike | MonteCarloEM | None = None
    temperature: float = 1.0

    _name = "sg-nphmc"
    _fits = (("euclidean", "gradient"), ("euclidean", "block-gradient"))
    _parameter_constraints = {
        "step_size": STEP_SIZE_CONSTRAINT,
        "friction": _NOT_NEGATIVE,
        "thermostat_friction": _NOT_NEGATIVE,
        "thermostat_mass": _POSITIVE,
        "drive": [StrOptions({"kinetic", "likelihood"})],
        "mass": _MASS,
        "temperature": _POSITIVE,
    }

    def _numbers(self):
        return [self.temperature, self.friction, self.thermostat_friction, self.drive == "kinetic"]

    def _write(self, scalars, n_entries):
        scalars[mass_kernels.Q_MASS] = scalars[mass_kernels.Q_SQUARES] = self.thermostat_mass * n_entries

    def _kernels(self, geometry):
        return simplex.no_advance, nose_poincare.nose_poincare
