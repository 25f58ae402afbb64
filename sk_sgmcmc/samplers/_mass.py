"""The mass of a Hamiltonian sampler: set by the user, or learnt in burn-in."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Literal

import numpy as np
from sklearn.base import clone

from ..kernels.samplers import mass as at
from ..kernels.samplers import windows
from ..utils._numbers import real_array
from ..utils._parameters import positional_parameters
from ..utils._sklearn import BaseEstimator, Interval, StrOptions

_MAX_RECORDED = 1000  # at most this many E-step sizes are recorded
IN_WINDOWS = ("diagonal", "full")  # structures of masses learnt from the draws of windows
# Steps of burn-in before the first window, in it, and after the last window (at least).
_FIRST, _SHORTEST, _LAST = 75, 25, 50
# A tenth of burn-in follows the last window, but at most this many steps. With fewer, the step size often ends too
# small.
_MOST_LAST = 100
# With fewer steps of burn-in, no mass is learnt in windows. The step size starts again at ten times its value after
# the last window, and too few steps would be left to adapt it.
_MIN_BURN = 40
_MOST_FULL = 200  # entries up to which "auto" learns a full mass, with ten steps of burn-in for each entry


@positional_parameters
class MonteCarloEM(BaseEstimator):
    r"""Learn the mass of a Hamiltonian sampler from its own momenta, during burn-in.

    After each E-step of :math:`S` momenta the inverse mass moves towards the inverse of their second moment,
    :math:`W \leftarrow (1 - \kappa_k) W + \kappa_k \hat S^{-1}`, :math:`\kappa_k = (1 + k)^{-\mathrm{decay}}`.

    Parameters
    ----------
    structure : {"diagonal", "full"}, default="diagonal"
        Structure of the mass.
    n_momenta : int, default=300
        Number of momenta in the first E-step.
    every : int, default=10
        Number of steps from one stored momentum to the next; `HMC` stores the momentum at the end of each trajectory.

    Other Parameters
    ----------------
    adaptive : bool, default=True
        Whether the E-step grows by the fraction 1 / ``growth`` when an M-step is indistinguishable from Monte Carlo
        noise. The criterion is that :math:`p^\top W p / D` under the new mass lies within ``width`` standard errors of
        its mean. This mean is over stored momenta at intervals of
        1 + Poisson(``spacing`` :math:`i^{\mathrm{spacing\_power}}`).
    growth : float, default=2
        See ``adaptive``.
    spacing, spacing_power : float, default=1 and 0.5
        See ``adaptive``.
    width : float, default=1.96
        See ``adaptive``.
    decay : float, default=0.75
        Exponent of :math:`\kappa_k`, in (0.5, 1].
    shrinkage : float, default=0.1
        Share of the identity, scaled to the mean variance, in :math:`\hat S`.
    bounds : tuple of float, default=(0.01, 100.0)
        Bounds of the eigenvalues of :math:`W`.
    freeze : bool, default=True
        Whether to stop learning after burn-in, so that all kept draws have the same target.

    Notes
    -----
    For each chain, the fitted sampler reports ``inverse_mass_``, the final size of the E-step in ``n_momenta_``, and
    the sizes of all E-steps in ``e_step_sizes_``.

    At stationarity, :math:`p \sim N(0, T M)` for any :math:`M`, so every mass is a fixed point. The update learns from
    discretisation error, gradient noise and the approach to stationarity in :math:`p p^\top / T`. Without shrinkage,
    bounds and freezing, it is a random walk. The inverse of a second moment of :math:`S` momenta is too large by
    :math:`S / (S - D - 1)`; this factor is removed. The paper's interval uses the variance instead of the standard
    error.

    References
    ----------
    Roychowdhury and Parthasarathy (2017), Adaptive Bayesian sampling with Monte Carlo EM, NeurIPS, section 3.

    Examples
    --------
    >>> from sk_sgmcmc.samplers import SGHMC, MonteCarloEM
    >>> SGHMC(mass=MonteCarloEM(structure="full"))
    SGHMC(mass=MonteCarloEM(structure='full'))
    """

    structure: Literal["diagonal", "full"] = "diagonal"
    n_momenta: int = 300
    every: int = 10
    adaptive: bool = True
    growth: float = 2.0
    spacing: float = 1.0
    spacing_power: float = 0.5
    width: float = 1.96
    decay: float = 0.75
    shrinkage: float = 0.1
    bounds: tuple[float, float] = (0.01, 100.0)
    freeze: bool = True

    _parameter_constraints = {
        "structure": [StrOptions({"diagonal", "full"})],
        "n_momenta": [Interval(Integral, 2, None, closed="left")],
        "every": [Interval(Integral, 1, None, closed="left")],
        "adaptive": ["boolean"],
        "growth": [Interval(Real, 0, None, closed="neither")],
        "spacing": [Interval(Real, 0, None, closed="left")],
        "spacing_power": [Interval(Real, 0, None, closed="left")],
        "width": [Interval(Real, 0, None, closed="left")],
        "decay": [Interval(Real, 0.5, 1, closed="right")],
        "shrinkage": [Interval(Real, 0, 1, closed="both")],
        "bounds": [tuple, list],
        "freeze": ["boolean"],
    }

    def _write(self, scalars, n_burn):
        """Write the parameters into the head of ``scalars``; see `sk_sgmcmc.kernels.samplers.mass`."""
        self._validate_params()
        low, high = self.bounds
        if not 0 < low <= 1 <= high:
            raise ValueError(f"bounds={self.bounds!r} must be positive, with 1 between them, such as (0.01, 100).")
        scalars[at.LEARNING] = 1.0
        scalars[at.WANTED], scalars[at.EVERY] = self.n_momenta, self.every
        scalars[at.FREEZE_AT] = n_burn if self.freeze else np.inf
        scalars[at.SHRINKAGE], scalars[at.DECAY] = self.shrinkage, self.decay
        scalars[at.LOWEST], scalars[at.HIGHEST] = low, high
        scalars[at.GROWTH] = self.growth if self.adaptive else np.inf
        scalars[at.SPACING], scalars[at.SPACING_POWER] = self.spacing, self.spacing_power
        scalars[at.WIDTH], scalars[at.NEXT_TEST] = self.width, 1.0


def mass_root(M, n_entries):
    """The square root of a diagonal mass, or the Cholesky factor of a full mass; raises if M is not a valid mass."""
    D = n_entries
    if M.shape not in ((D,), (D, D)):
        raise ValueError(f"mass has shape {M.shape}; for this model, pass ({D},) or ({D}, {D}), or MonteCarloEM().")
    if M.ndim == 1:
        if not (np.all(M > 0) and np.all(np.isfinite(M))):
            raise ValueError(f"mass must be positive and finite; its smallest entry is {M.min():g}.")
        return np.sqrt(M)
    try:
        return np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        raise ValueError("mass must be a positive definite matrix.") from None


def structure_of(mass, n_entries, n_burn):
    """The structure that ``mass="auto"`` learns in windows; any other mass is returned unchanged.

    "auto" is also returned if burn-in is too short, or infinite, as on a stream.
    """
    if not isinstance(mass, str) or mass != "auto" or not _MIN_BURN <= n_burn < np.inf:
        return mass
    return "full" if n_entries <= min(_MOST_FULL, n_burn // 10) else "diagonal"


def with_learnt_mass(sampler, n_entries, n_burn):
    """The sampler with ``mass="auto"`` replaced by the structure to learn; itself if `structure_of` changes nothing."""
    structure = structure_of(sampler.mass, n_entries, n_burn)
    return sampler if structure is sampler.mass else clone(sampler).set_params(mass=structure)


def window_ends(n_burn):
    """The steps before the first window of burn-in, and the steps at which windows end.

    Each window is twice as long as the one before, except that the last one takes the remaining steps.
    """
    if not _MIN_BURN <= n_burn < np.inf:
        return 0, []
    first, shortest, last = _FIRST, _SHORTEST, min(_MOST_LAST, max(_LAST, n_burn // 10))
    if n_burn < first + shortest + last:
        first, last = int(0.15 * n_burn), int(0.1 * n_burn)
        shortest = n_burn - first - last
    ends, end, size = [], first, shortest
    while end + size <= n_burn - last:
        if end + 3 * size > n_burn - last:  # no room for another window: this one takes the remaining steps
            size = n_burn - last - end
        end += size
        ends.append(end)
        size *= 2
    return first, ends


def with_tail(scalars, n_entries, n_burn):
    """The state vector, followed by the tail that `sk_sgmcmc.kernels.samplers.windows` describes.

    The tail lists windows only if the mass is learnt in windows.
    """
    first, ends = window_ends(n_burn) if scalars[at.LEARNING] == at.WINDOWS else (0, [])
    scalars[at.LEARNING] = 0.0
    tail = np.zeros(windows.TAIL_SIZE)
    tail[windows.N_WINDOWS], tail[windows.FIRST] = len(ends), first
    tail[windows.CENTRE] = np.log(10.0)
    scalars[windows.TAIL] = scalars.size
    return np.concatenate([scalars, tail, ends, np.zeros(n_entries)])


def mass_state(mass, n_entries, n_burn):
    """The state vector: its head, and the blocks of the mass, which may be None, an array, or learnt in burn-in."""
    D = n_entries
    if isinstance(mass, str):
        if mass not in IN_WINDOWS:
            return mass_state(None, D, n_burn)
        scalars = mass_state(np.ones(D) if mass == "diagonal" else np.eye(D), D, n_burn)
        scalars[at.LEARNING] = at.WINDOWS
        return with_tail(scalars, D, n_burn)
    learnt = isinstance(mass, MonteCarloEM)
    if learnt:
        M = np.ones(D) if mass.structure == "diagonal" else np.eye(D)
    elif mass is None:
        scalars = np.zeros(at.HEAD)
        scalars[at.FREEZE_AT] = n_burn
        return scalars
    else:
        M = real_array("mass", mass)
    root = mass_root(M, D)
    W, kind = (1.0 / M, at.DIAGONAL) if M.ndim == 1 else (np.linalg.inv(M), at.FULL)
    n_recorded = int(min(n_burn / mass.n_momenta, _MAX_RECORDED)) if learnt else 0  # n_burn is infinite on a stream
    scalars = np.concatenate([np.zeros(at.HEAD), W.ravel(), root.ravel(), np.zeros(W.size + n_recorded)])
    scalars[at.KIND] = kind
    scalars[at.FREEZE_AT] = n_burn
    if learnt:
        mass._write(scalars, n_burn)
    return scalars


def report_mass(sampler, states):
    """Set ``inverse_mass_`` of a fitted sampler from the states of its chains, unless the mass is the identity."""
    D, scalars = states[0].theta.size, [state.scalars for state in states]
    kind = int(scalars[0][at.KIND])
    if not kind:
        return
    m = D if kind == at.DIAGONAL else D * D
    shape = (len(states), D) if kind == at.DIAGONAL else (len(states), D, D)
    sampler.inverse_mass_ = np.stack([s[at.HEAD : at.HEAD + m] for s in scalars]).reshape(shape)
    if isinstance(sampler.mass, MonteCarloEM):
        sampler.n_momenta_ = np.array([int(s[at.WANTED]) for s in scalars])
        sampler.e_step_sizes_ = [s[at.HEAD + 3 * m :][: int(s[at.N_UPDATES])].astype(int) for s in scalars]


def report_acceptance(sampler, states):
    """Set ``step_factor_`` and ``acceptance_rate_`` of a fitted sampler from the states of its chains."""
    scalars = [state.scalars for state in states]
    sampler.step_factor_ = np.exp([s[at.LOG_FACTOR] for s in scalars])
    n_steps = [max(1, state.n_steps) for state in states]
    sampler.acceptance_rate_ = np.array([s[at.N_ACCEPTED] for s in scalars]) / n_steps
