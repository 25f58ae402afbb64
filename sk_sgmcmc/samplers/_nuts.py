"""The no-U-turn sampler."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..kernels.samplers import nuts, windows
from ..utils._parameters import positional_parameters
from ..utils._sklearn import Interval, StrOptions
from ._base import STEP_SIZE_CONSTRAINT, StepSize
from ._euclidean import _Kinetic
from ._mass import IN_WINDOWS, report_mass, with_learnt_mass, with_tail


@positional_parameters
class NUTS(_Kinetic):
    r"""No-U-turn sampler: Hamiltonian trajectories on all the data that stop when they turn back.

    Targets the posterior exactly, for any ``step_size``. One step of the chain is one trajectory.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h` of the leapfrog. "auto" adapts it during burn-in to ``target_accept`` by dual averaging.
    target_accept : float, default=0.8
        Mean acceptance rate over a trajectory to which ``step_size="auto"`` adapts. If trajectories diverge, set it to
        0.95 or 0.99.
    max_depth : int, default=10
        Maximum number of doublings of a trajectory; 10 allows :math:`2^{10} - 1` leapfrog steps.
    mass : array-like, "auto", "diagonal", "full" or None, default="auto"
        :math:`M`, of shape (n_entries,) or (n_entries, n_entries). None: the identity. "diagonal" and "full" are
        learnt from draws in windows of burn-in, each twice as long as the one before. With "auto",
        `sk_sgmcmc.sample` learns a full mass of up to 200 entries, if burn-in has ten steps for each, and a diagonal
        mass otherwise. It uses the identity if you set ``step_size``. Estimators use the identity with "auto", since
        their coordinates have about unit spread.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy. If chains adapt them, multiply by ``step_factor_`` of the chain.
    acceptance_rate_ : ndarray of shape (n_chains,)
        Mean acceptance rate after burn-in.
    n_divergences_ : ndarray of shape (n_chains,)
        Number of divergent trajectories after burn-in: trajectories whose energy changed by more than 1,000. Even a few
        mean that the chains miss a part of the posterior where the curvature is too strong for the step size.
    n_deepest_ : ndarray of shape (n_chains,)
        Number of trajectories after burn-in that were truncated at ``max_depth``.
    n_leapfrog_ : ndarray of shape (n_chains,)
        Number of leapfrog steps after burn-in. Each computes one gradient.
    inverse_mass_ : ndarray of shape (n_chains, n_entries) or (n_chains, n_entries, n_entries)
        Inverse of the mass that each chain uses, if it is not the identity.

    References
    ----------
    Hoffman and Gelman (2014), The no-U-turn sampler, JMLR. Betancourt (2017), A conceptual introduction to Hamiltonian
    Monte Carlo, arXiv:1701.02434, appendix A: multinomial weights, biased progressive sampling and the generalised
    criterion of a U-turn.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import sample
    >>> from sk_sgmcmc.samplers import NUTS
    >>> from sk_sgmcmc.targets import GaussianMean
    >>> target = GaussianMean(np.random.default_rng(0).normal(size=(20, 2)))
    >>> result = sample(
    ...     target, NUTS(target_accept=0.9), n_iter=500, random_state=0
    ... )
    >>> result.sampler_.n_divergences_
    array([0])
    """

    step_size: StepSize = "auto"
    target_accept: float = 0.8
    max_depth: int = 10
    mass: ArrayLike | Literal["auto", "diagonal", "full"] | None = "auto"

    _name = "nuts"
    _loop = "nuts"
    _reads_all_rows = True
    _corrects_steps = True
    _starts_apart = True
    _tunes_step = True
    _parameter_constraints = {
        "step_size": STEP_SIZE_CONSTRAINT,
        "target_accept": [Interval(Real, 0, 1, closed="neither")],
        "max_depth": [Interval(Integral, 1, 20, closed="both")],
        "mass": ["array-like", None, StrOptions({"auto", *IN_WINDOWS})],
    }

    def _numbers(self):
        return [self.max_depth, self.target_accept if isinstance(self.step_size, str) else 0.0]

    def _state(self, theta, geometry, n_burn):
        aux, scalars = super()._state(theta, geometry, n_burn)
        return aux, scalars if scalars[windows.TAIL] else with_tail(scalars, theta.size, n_burn)

    @property
    def _n_diverged(self):
        return int(self.n_divergences_.sum())

    def _fewer_divergences(self):
        more = min(0.99, 0.5 * (1.0 + self.target_accept))
        return (
            f"Try NUTS(target_accept={more:.3g}), or other coordinates, such as differences from a mean in units of "
            "their scale."
        )

    def _learning_units(self, n_entries, n_burn):
        return with_learnt_mass(self, n_entries, n_burn)

    def _statistics(self, kept):
        """Sample statistics under the names of ArviZ, from the array (..., `nuts.N_STATISTICS`) of the kernel."""
        return {
            "lp": kept[..., nuts.LOG_DENSITY],
            "energy": kept[..., nuts.ENERGY],
            "acceptance_rate": kept[..., nuts.RATE],
            "tree_depth": kept[..., nuts.DEPTH].astype(int),
            "n_steps": kept[..., nuts.STEPS].astype(int),
            "diverging": kept[..., nuts.DIVERGED] > 0,
            "step_size": kept[..., nuts.STEP_SIZE],
        }

    def _report(self, states):
        report_mass(self, states)
        tails = np.array([state.scalars[int(state.scalars[windows.TAIL]) :][: windows.TAIL_SIZE] for state in states])
        self.step_factor_ = np.exp([state.scalars[windows.LOG_FACTOR] for state in states])
        self.acceptance_rate_ = tails[:, windows.RATES] / np.maximum(tails[:, windows.N_AFTER], 1.0)
        for name, at in (
            ("n_divergences_", windows.N_DIVERGED),
            ("n_deepest_", windows.N_DEEPEST),
            ("n_leapfrog_", windows.N_LEAPFROG),
        ):
            setattr(self, name, tails[:, at].astype(int))
