"""Samplers and variational methods for the spherical admixture model only."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np

from ..kernels.samplers import geometry as geometry_kernels
from ..utils._parameters import positional_parameters
from ..utils._sklearn import Interval
from ._base import STEP_SIZE_CONSTRAINT, Sampler, StepSize

_PAIR = (("sphere", "admixture"),)


@positional_parameters
class GMCApprMH(Sampler):
    r"""Geodesic Monte Carlo for topics, with an approximate Metropolis test over several draws of each document.

    Targets the posterior of the topics only approximately, for any step size. The log density is replaced by its mean
    over draws of the proportions of documents, which ignores that their normaliser changes with the topics. Use it for
    comparison only.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        Time of one leapfrog step. "auto" adapts it to an acceptance rate of 0.8 during burn-in.
    n_leapfrog : int, default=10
        Number of leapfrog steps of a trajectory.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy.

    See Also
    --------
    GMCBGibbs : Exact, with one draw of each document at a time.

    References
    ----------
    Liu, Zhu and Song (2016), Stochastic gradient geodesic MCMC methods, NeurIPS, section 5.2.
    """

    step_size: StepSize = "auto"
    n_leapfrog: int = 10

    _name = "gmc-appr-mh"
    _fits = _PAIR
    _n_aux = 0
    _n_scalars = 0
    _loop = "metropolis"
    _reads_all_rows = True
    _n_doc_draws = (5, 10)
    _n_trajectories = 1
    # Parameters of `GMC` that are constants here.
    jitter = 0.0
    target_accept = 0.8
    _parameter_constraints = {
        "step_size": STEP_SIZE_CONSTRAINT,
        "n_leapfrog": [Interval(Integral, 1, None, closed="left")],
    }

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        return reach / np.sqrt(curvature)

    def _kernels(self, geometry):
        return geometry_kernels.sphere_flow, geometry_kernels.sphere_project


class GMCBGibbs(GMCApprMH):
    r"""Blockwise Gibbs sampling of documents and of topics, each by geodesic Monte Carlo given the other.

    Targets the posterior exactly.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        Time of one leapfrog step. "auto" adapts it to an acceptance rate of 0.8 during burn-in.
    n_leapfrog : int, default=10
        Number of leapfrog steps of a trajectory.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy.

    See Also
    --------
    SGGMC : On minibatches, without a Metropolis step.

    References
    ----------
    Liu, Zhu and Song (2016), Stochastic gradient geodesic MCMC methods, NeurIPS, section 5.2.
    """

    _name = "gmc-b-gibbs"
    _n_doc_draws = (4, 1)
    _n_trajectories = 2


@positional_parameters
class VariationalInference(Sampler):
    r"""Mean-field variational inference with von Mises-Fisher topics and Dirichlet proportions, one sweep per step.

    Targets no distribution: it maximises an approximate lower bound. Kept draws are the mean directions of the topics
    during the optimisation, and contain no information about the uncertainty of topics.

    Parameters
    ----------
    n_inner : int, default=10
        Number of steps of gradient ascent for each document in a sweep.

    See Also
    --------
    StochasticVI : On minibatches.

    References
    ----------
    Reisinger, Waters, Silverthorn and Mooney (2010), Spherical topic models, ICML, section 4.
    """

    n_inner: int = 10

    _name = "vi"
    _loop = "variational"
    _fits = _PAIR
    _n_aux = 0
    _n_scalars = 0
    _reads_all_rows = True
    _parameter_constraints = {"n_inner": [Interval(Integral, 1, None, closed="left")]}

    def _share(self, step):
        """Step size in (0, 1] towards the topics of the minibatch at a step; None: replace the topics by these."""


@positional_parameters
class StochasticVI(Sampler):
    r"""Stochastic variational inference on minibatches, with steps of decreasing size towards the topics of each.

    Targets no distribution, like `VariationalInference`.

    Parameters
    ----------
    n_inner : int, default=10
        Number of steps of gradient ascent for each document.
    offset : float, default=5
        :math:`\tau` in the size :math:`(t + \tau)^{-g}` of step t.
    exponent : float, default=0.8
        :math:`g` in the size of step t.

    See Also
    --------
    VariationalInference : On all the data.

    References
    ----------
    Hoffman, Blei, Wang and Paisley (2013), Stochastic variational inference, JMLR 14.
    """

    n_inner: int = 10
    offset: float = 5.0
    exponent: float = 0.8

    _name = "sto-vi"
    _loop = "variational"
    _fits = _PAIR
    _n_aux = 0
    _n_scalars = 0
    _parameter_constraints = {
        "n_inner": [Interval(Integral, 1, None, closed="left")],
        "offset": [Interval(Real, 0, None, closed="neither")],
        "exponent": [Interval(Real, 0, 1, closed="right")],
    }

    def _share(self, step):
        return min(1.0, (step + self.offset) ** -self.exponent)
