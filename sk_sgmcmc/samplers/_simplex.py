"""Samplers on the simplex and on (0, inf)."""

from __future__ import annotations

import numpy as np

from ..kernels.samplers import simplex
from ..utils._parameters import positional_parameters
from ..utils._sklearn import StrOptions
from ._base import EXACT_STEP_CONSTRAINT, STEP_SIZE_CONSTRAINT, Sampler, StepSize
from .schedules import ConstantStep, PolynomialDecay

_FORMS = {"expanded-mean", "expanded-natural", "reduced-mean", "reduced-natural"}


@positional_parameters
class SCIR(Sampler):
    r"""Stochastic Cox-Ingersoll-Ross process, without discretisation error on sparse simplices.

    Targets :math:`\mathrm{Gamma}(a, 1)` cell by cell, exactly for any ``step_size`` if the shape :math:`a` is
    fixed. A column of cells, divided by its sum, is then a draw from :math:`\mathrm{Dirichlet}(a)`. With minibatches,
    :math:`a` is replaced by the unbiased estimate :math:`\hat a = \mathrm{prior} + (N/n) \sum_{i \in S} z_i`.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one transition. For fixed shapes, the autocorrelation after a step is :math:`e^{-h}`.
        With ``numpy.inf``, a step is an exact, independent draw given the shapes. "auto": chosen by the model, and
        reported in ``step_size_`` of the fitted copy.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy that an estimator keeps in ``sampler_``.

    Notes
    -----
    One transition draws :math:`P \sim \mathrm{Poisson}(\theta e^{-h} / (1 - e^{-h}))` and sets
    :math:`\theta \leftarrow (1 - e^{-h}) \, \mathrm{Gamma}(\hat a + P, 1)`. This is the paper's non-central
    chi-squared with :math:`2 \hat a` degrees of freedom, in a form that is valid for every :math:`\hat a > 0`.
    A noisy :math:`\hat a` adds :math:`\frac{1 - e^{-h}}{1 + e^{-h}} \mathrm{Var}[\hat a]` to the variance.
    Cells absent from a minibatch keep a constant shape, so they are updated lazily by one transition over the elapsed
    time. The cost of a step therefore does not depend on the number of cells.

    References
    ----------
    Baker, Fearnhead, Fox and Nemeth (2018), Large-scale stochastic sampling from the probability simplex, NeurIPS,
    section 2.

    Examples
    --------
    >>> from sk_sgmcmc.samplers import SCIR
    >>> SCIR(step_size=0.5)
    SCIR(step_size=0.5)
    """

    step_size: StepSize = "auto"

    _name = "scir"
    _fits = (("simplex", "counts"), ("positive", "counts"))
    _is_lazy = True
    _is_exact = True
    _keeps_logs = True
    _parameter_constraints = {"step_size": EXACT_STEP_CONSTRAINT}

    _simplex_step = 0.1

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        """As in the base class; ``noise`` is the variance of the estimate of a shape, divided by the shape.

        Noise increases the variance of a cell by about h/2 times this ratio, relative to its exact variance. The ratio
        is 0 for exact shapes.
        """
        return 2.0 * share / noise if noise else np.inf

    def _simplex_schedule(self, noisy):
        # With exact shapes, independent draws are best. Noisy shapes have to be averaged over time.
        return PolynomialDecay(0.1, 10.0, 0.33) if noisy else ConstantStep(np.inf)

    def _kernels(self, geometry):
        return simplex.scir_advance, simplex.scir_step


@positional_parameters
class ExponentialOU(Sampler):
    r"""Exponential Ornstein-Uhlenbeck process: exact transitions for log-normal targets on (0, inf).

    Targets :math:`\mathrm{LogNormal}(m, s^2)`, exactly for any ``step_size`` if :math:`m` is fixed.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one transition. With ``numpy.inf``, draws are independent.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy.

    Notes
    -----
    :math:`\log\theta \leftarrow \hat m + (\log\theta - \hat m) e^{-h} + s \sqrt{1 - e^{-2h}} \, Z`. The paper
    suggests geometric Brownian motion here, which has no stationary distribution.

    References
    ----------
    Baker, Fearnhead, Fox and Nemeth (2018), section 5, for the idea of exactly solvable diffusions.
    """

    step_size: StepSize = "auto"

    _name = "exponential-ou"
    _fits = (("positive", "log-location"),)
    _is_exact = True
    _parameter_constraints = {"step_size": EXACT_STEP_CONSTRAINT}

    _stable_step = SCIR._stable_step

    def _kernels(self, geometry):
        return simplex.no_advance, simplex.exponential_ou_step


@positional_parameters
class SGRLD(Sampler):
    r"""Stochastic-gradient Riemannian Langevin dynamics on the simplex.

    Targets :math:`\mathrm{Dirichlet}(a)`, with an error of order ``step_size`` that is largest for cells near 0.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h` of the drift; the noise has variance :math:`2 h G^{-1}`. (:math:`\epsilon` in the papers is
        :math:`2 h`.)
    parameterization : str, default="expanded-mean"
        Coordinates of the simplex: "expanded-mean", "expanded-natural", "reduced-mean" or "reduced-natural". Only
        "expanded-mean" is safe for rare cells. It reflects at 0, while natural coordinates divide by the probability.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy.

    Notes
    -----
    With shape :math:`\hat a`, estimated counts summed over cells :math:`\hat n`, and :math:`\pi` the simplex:

    =================  =====================================================================================
    expanded-mean      :math:`\theta \leftarrow |\theta + h(\hat a - \hat n \pi - \theta) + \sqrt{2h\theta} Z|`
    expanded-natural   :math:`\theta \leftarrow \theta + h(e^{-\theta}(\hat a - \hat n \pi - 1) - 1)
                       + \sqrt{2h} e^{-\theta/2} Z`
    reduced-mean       :math:`\pi \leftarrow \pi + \frac{h}{\hat n}(\hat a - \pi \sum \hat a)
                       + \sqrt{2h/\hat n}(\sqrt\pi Z - \pi \langle\sqrt\pi, Z\rangle)`
    reduced-natural    :math:`\theta_j \leftarrow \theta_j + \frac{h}{\hat n}(\frac{\hat a_j - 1}{\pi_j}
                       - \frac{\hat a_K - 1}{\pi_K}) + \sqrt{2h/\hat n}(Z_j/\sqrt{\pi_j} - Z_K/\sqrt{\pi_K})`
    =================  =====================================================================================

    A "reduced-mean" step may leave the simplex. The state is brought back by absolute values and rescaling to sum 1.

    References
    ----------
    Patterson and Teh (2013), Stochastic gradient Riemannian Langevin dynamics on the probability simplex, NeurIPS,
    sections 3 and 4.
    """

    step_size: StepSize = "auto"
    parameterization: str = "expanded-mean"

    _name = "sgrld"
    _fits = (("simplex", "counts"),)
    _parameter_constraints = {"step_size": STEP_SIZE_CONSTRAINT, "parameterization": [StrOptions(_FORMS)]}

    _simplex_step = 0.001

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        return share / 5.0 / max(noise, 1.0)

    def _simplex_schedule(self, noisy):
        # The paper's schedule with a fifth of its first step: large steps would lead away from our start, which is
        # already good. Small steps also limit the error at the boundary, where a cell that should be 0 stays at about
        # the step size.
        return PolynomialDecay(0.01, 1000.0, 0.55)

    @property
    def _is_natural(self):
        return self.parameterization.endswith("natural")

    def _simplex_start(self, shape, rng):
        if self._is_natural:  # The mean, because the chain would not move from draws of rare cells, which are nearly 0.
            return np.log(shape) - np.log(shape[-1])
        cells = super()._simplex_start(shape, rng)
        return cells / cells.sum(axis=0) if self.parameterization == "reduced-mean" else cells

    def _simplex_cells(self, theta):
        return np.exp(theta - theta.max(axis=0)) if self._is_natural else theta

    def _simplex_logs(self, theta, aux):
        return theta if self._is_natural else super()._simplex_logs(theta, aux)

    def _simplex_extended(self, theta, shape, cells, total):
        if self._is_natural:  # Means of the new cells instead of draws, as in `_simplex_start`.
            top = theta.max(axis=0)
            unit = top + np.log(np.exp(theta - top).sum(axis=0) / total)
            extended = np.vstack([theta, np.log(shape) + unit])
            return extended - extended[-1] if self.parameterization == "reduced-natural" else extended
        if self.parameterization == "reduced-mean":
            extended = np.vstack([theta, cells / total])
            return extended / extended.sum(axis=0)
        return super()._simplex_extended(theta, shape, cells, total)

    @property
    def _n_aux(self):
        return 1 if self.parameterization == "reduced-mean" else 0

    def _kernels(self, geometry):
        step = {
            "expanded-mean": simplex.sgrld_expanded_mean,
            "expanded-natural": simplex.sgrld_expanded_natural,
            "reduced-mean": simplex.sgrld_reduced_mean,
            "reduced-natural": simplex.sgrld_reduced_natural,
        }[self.parameterization]
        return simplex.no_advance, step
