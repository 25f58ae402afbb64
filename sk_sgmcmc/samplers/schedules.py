"""Schedules of step sizes."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from ..utils._parameters import positional_parameters
from ..utils._sklearn import BaseEstimator, Interval
from ..utils._typing import FloatArray

_POSITIVE = [Interval(Real, 0, None, closed="neither")]


class Schedule(BaseEstimator):
    """Base class of schedules: call one with step indices (from 0) to get step sizes of the same shape."""

    _parameter_constraints = {}

    def __call__(self, step: ArrayLike) -> FloatArray:
        """Step sizes at the step indices ``step``, an int or array; same shape."""
        raise TypeError(f"{type(self).__name__} is not a schedule itself; pass a subclass.")


@positional_parameters
class ConstantStep(Schedule):
    """The same step size at every step: h_t = ``step_size``.

    Parameters
    ----------
    step_size : float
        The step size, in units of the diffusion's time; ``numpy.inf`` for samplers that are exact over any time.
    """

    step_size: float

    _parameter_constraints = {"step_size": [Interval(Real, 0, np.inf, closed="right")]}

    def __call__(self, step: ArrayLike) -> FloatArray:
        """Step sizes at the step indices ``step``, an int or array; same shape."""
        return np.full(np.shape(step), float(self.step_size))


@positional_parameters
class PolynomialDecay(Schedule):
    r"""Step sizes that decay as a power: :math:`h_t = h_0 (1 + t / \tau)^{-\kappa}`.

    Parameters
    ----------
    initial : float, default=0.1
        :math:`h_0`, the first step size.
    offset : float, default=1000
        :math:`\tau`, the number of steps after which the decay sets in.
    exponent : float, default=0.55
        :math:`\kappa`. The Robbins-Monro conditions require values in (0.5, 1]. Smaller values keep the chain moving
        for longer.

    References
    ----------
    Welling and Teh (2011), Bayesian learning via stochastic gradient Langevin dynamics, ICML, section 3.
    """

    initial: float = 0.1
    offset: float = 1000.0
    exponent: float = 0.55

    _parameter_constraints = {
        "initial": _POSITIVE,
        "offset": _POSITIVE,
        "exponent": [Interval(Real, 0, None, closed="left")],
    }

    def __call__(self, step: ArrayLike) -> FloatArray:
        """Step sizes at the step indices ``step``, an int or array; same shape."""
        return float(self.initial) * (1.0 + np.asarray(step, dtype=float) / self.offset) ** (-self.exponent)


@positional_parameters
class CyclicalStep(Schedule):
    r"""Cosine cycles: :math:`h_t = h_0 \, [\cos(\pi (t \bmod L) / L) + 1] / 2`, with a floor.

    Large steps at the start of a cycle move the chain out of a mode. Small steps at the end sample the mode that it has
    reached.

    Parameters
    ----------
    initial : float, default=0.1
        :math:`h_0`, the largest step size.
    cycle_length : int, default=1000
        :math:`L`, the number of steps in a cycle.
    floor : float, default=0.01
        The smallest step size, as a fraction of the largest.

    References
    ----------
    Zhang, Li, Zhang, Chen and Wilson (2020), Cyclical stochastic gradient MCMC for Bayesian deep learning, ICLR,
    section 3.
    """

    initial: float = 0.1
    cycle_length: int = 1000
    floor: float = 0.01

    _parameter_constraints = {
        "initial": _POSITIVE,
        "cycle_length": [Interval(Integral, 1, None, closed="left")],
        "floor": [Interval(Real, 0, 1, closed="both")],
    }

    def __call__(self, step: ArrayLike) -> FloatArray:
        """Step sizes at the step indices ``step``, an int or array; same shape."""
        phase = (np.asarray(step) % self.cycle_length) / self.cycle_length
        return float(self.initial) * np.maximum(0.5 * (np.cos(np.pi * phase) + 1.0), self.floor)
