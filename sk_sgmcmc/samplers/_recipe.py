"""User-defined dynamics, specified by two matrices."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..kernels import _user as user
from ..kernels.samplers import particles, recipe, simplex
from ..utils._numbers import real_array
from ..utils._parameters import positional_parameters
from ..utils._sklearn import Interval, StrOptions
from ._base import STEP_SIZE_CONSTRAINT, StepSize
from ._euclidean import _CONDITIONAL, _Euclidean, overdamped_step
from ._particles import _RULES, _Particles

_HOW = (
    "Pass a function jitted by numba.njit that writes two matrices and their divergences:\n\n"
    "    @numba.njit\n"
    "    def matrices(z, slope, D, Q, div_D, div_Q):\n"
    "        slope[dim:] = z[dim:]   # gradient of the energy of auxiliary variables; slope[:dim] is set already\n"
    "        D[0, 0] = ...           # (m, m), symmetric and positive semi-definite\n"
    "        Q[0, 1] = ...           # (m, m), antisymmetric\n"
    "        div_D[0] = ...          # sum over j of the derivative of D[0, j] along z[j]; div_Q likewise"
)
_DIFFERENCE = 1e-6


@positional_parameters
class _Recipe:
    r"""Base class of recipes: a state with auxiliary variables, and checks of the user's function.

    Parameters
    ----------
    matrices : function jitted by ``numba.njit``
        ``f(z, slope, D, Q, div_D, div_Q)`` receives the state :math:`z` (m,), which consists of the ``dim`` parameters
        followed by the auxiliary variables. It also receives the gradient of the energy of the parameters in
        ``slope[:dim]``. It writes the gradient of the energy of the auxiliary variables into ``slope[dim:]``. It also
        writes the matrices :math:`D` and :math:`Q` (m, m), and their divergences
        :math:`\mathrm{div}_i = \sum_j \partial_j D_{ij}` (m,), likewise for :math:`Q`. Zeros need not be written.
        Symmetries and divergences are checked at the start of chains.
    n_auxiliary : int, default=0
        Number of auxiliary variables, such as momenta and thermostats.
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one step.
    stages : array-like of shape (m,), default=None
        Stage of a step in which each entry of :math:`z` moves. The entries of stage 0 move first. Then the entries of
        stage 1 move given the new values, and so on. None: all at once.
    auxiliary_start : float or array-like of shape (n_auxiliary,), default=0
        Start of the auxiliary variables.
    """

    _reads_log_density = False
    _deterministic = False

    def _kernel(self):
        lack = "a recipe needs the matrices and their divergences"
        return recipe.recipe_kernel(
            user.checked_function(self.matrices, "matrices", 6, lack, _HOW), self._deterministic
        )

    def _stages(self, m):
        stages = np.zeros(m) if self.stages is None else real_array("stages", self.stages)
        if stages.shape != (m,) or not np.all(np.isfinite(stages)) or set(stages) != set(range(int(stages.max()) + 1)):
            raise ValueError(
                f"stages={self.stages!r} must hold {m} whole numbers, without a gap between 0 and the largest."
            )
        return stages

    def _check(self, z):
        """Raise if the matrices at ``z`` are invalid, or if their divergences do not match finite differences."""

        def at(z):
            m = z.size
            out = np.zeros(m), np.zeros((m, m)), np.zeros((m, m)), np.zeros(m), np.zeros(m)
            self.matrices(z, *out)
            return out[1:]

        D, Q, div_D, div_Q = at(z)
        if not (np.allclose(D, D.T) and np.linalg.eigvalsh(D).min() >= -1e-9 * max(1.0, np.abs(D).max())):
            raise ValueError(f"D at the start is not symmetric and positive semi-definite: {D.tolist()}. {_HOW}")
        if not np.allclose(Q, -Q.T):
            raise ValueError(f"Q at the start is not antisymmetric: {Q.tolist()}. {_HOW}")
        for name, given, which in (("div_D", div_D, 0), ("div_Q", div_Q, 1)):
            measured = np.zeros(z.size)
            for j in range(z.size):
                away = np.zeros(z.size)
                away[j] = _DIFFERENCE * max(1.0, abs(z[j]))
                measured += (at(z + away)[which] - at(z - away)[which])[:, j] / (2.0 * away[j])
            if not np.allclose(measured, given, rtol=1e-3, atol=1e-4 * max(1.0, np.abs(given).max())):
                raise ValueError(
                    f"{name} at the start is {given.tolist()}, but finite differences are {measured.tolist()}. {_HOW}"
                )

    def _auxiliaries(self):
        start = real_array("auxiliary_start", self.auxiliary_start)
        if start.shape not in ((), (self.n_auxiliary,)) or not np.all(np.isfinite(start)):
            raise ValueError(
                f"auxiliary_start={self.auxiliary_start!r} must be a finite number, or n_auxiliary={self.n_auxiliary} "
                "of them."
            )
        return np.broadcast_to(start, (self.n_auxiliary,))

    def _begun(self, theta):
        """The scalars of a chain that starts, or whose first particle starts, at theta; checks the function there."""
        z = np.concatenate([theta.ravel(), self._auxiliaries()])
        self._kernel()
        self._check(z)
        return np.concatenate([np.zeros(particles.N_SCALARS), self._stages(z.size)])

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        return overdamped_step(curvature, noise, share)

    def _last_stage(self):
        return 0 if self.stages is None else int(np.max(self.stages))


@positional_parameters
class Recipe(_Recipe, _Euclidean):
    r"""The complete recipe: stochastic-gradient dynamics from a diffusion and a curl matrix.

    Targets :math:`p(z) \propto e^{-H(z)}` with an error of order ``step_size``, for any positive semi-definite
    :math:`D(z)` and antisymmetric :math:`Q(z)`. :math:`H` is the energy of the auxiliary variables minus the log
    posterior.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy.

    Notes
    -----
    :math:`z \leftarrow z + h [\mathrm{div} (D + Q) - (D + Q) \nabla H] + N(0, 2 h D)`. A step costs :math:`m^3`
    operations for each stage, so use this class to try out dynamics, not to run them on models of many parameters.

    References
    ----------
    Ma, Chen and Fox (2015), A complete recipe for stochastic gradient MCMC, NeurIPS, section 2.

    Examples
    --------
    Langevin dynamics on a target of three parameters:

    >>> import numba
    >>> import numpy as np
    >>> from sk_sgmcmc import sample
    >>> from sk_sgmcmc.samplers import Recipe
    >>> from sk_sgmcmc.targets import GaussianMean
    >>> @numba.njit
    ... def langevin(z, slope, D, Q, div_D, div_Q):
    ...     for i in range(z.size):
    ...         D[i, i] = 1.0
    >>> rows = np.random.default_rng(0).normal(size=(20, 3))
    >>> sample(
    ...     GaussianMean(rows), Recipe(langevin), n_iter=5000, random_state=0
    ... ).samples_["theta"].shape
    (1, 2500, 3)
    """

    matrices: Callable[..., Any]
    n_auxiliary: int = 0
    step_size: StepSize = "auto"
    stages: ArrayLike | None = None
    auxiliary_start: float | ArrayLike = 0.0

    _name = "recipe"
    _fits = _CONDITIONAL
    _parameter_constraints = {
        "matrices": [callable],
        "n_auxiliary": [Interval(Integral, 0, None, closed="left")],
        "step_size": STEP_SIZE_CONSTRAINT,
        "stages": ["array-like", None],
        "auxiliary_start": ["array-like", float, int],
    }

    def _numbers(self):
        return [self.n_auxiliary, self._last_stage()]

    def _state(self, theta, geometry, n_burn):
        scalars = self._begun(theta)
        aux = np.zeros((-(-self.n_auxiliary // theta.size), *theta.shape))
        aux.reshape(-1)[: self.n_auxiliary] = self._auxiliaries()
        return aux, scalars

    def _kernels(self, geometry):
        return simplex.no_advance, self._kernel()


@positional_parameters
class ParticleRecipe(_Recipe, _Particles):
    r"""The complete recipe without noise: particles that follow the flow defined by two matrices.

    Approximates the posterior by particles; `Blob` describes the approximation and the draws.

    Parameters
    ----------
    kind : {"det", "fgh"}, default="det"
        Whether the density :math:`q` of the particles acts along :math:`D` only ("det"), or along :math:`Q` as well
        ("fgh"). Both move the density in the same way.
    bandwidth : {"median", "he"}, default="median"
        See `Blob`. Chosen separately for parameters and auxiliary variables.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy.
    bandwidth_ : ndarray of shape (n_chains, 2)
        The last bandwidths of parameters and of auxiliary variables; 0 where there is none.

    Notes
    -----
    "det": :math:`\dot z = D \nabla \log (p / q) + Q \nabla \log p + \mathrm{div}\, Q`; "fgh":
    :math:`\dot z = (D + Q) \nabla \log (p / q)`. "det" moves the density as `Recipe` does.

    References
    ----------
    Liu, Zhuo and Zhu (2019), Understanding MCMC dynamics as flows on the Wasserstein space, ICML, lemma 1 and
    section 5.
    """

    _name = "particle-recipe"
    _deterministic = True
    _parameter_constraints = {
        **Recipe._parameter_constraints,
        "kind": [StrOptions({"det", "fgh"})],
        **_Particles._parameter_constraints,
    }

    def __init__(
        self,
        matrices: Callable[..., Any],
        n_auxiliary: int = 0,
        step_size: StepSize = "auto",
        stages: ArrayLike | None = None,
        auxiliary_start: float | ArrayLike = 0.0,
        kind: Literal["det", "fgh"] = "det",
        n_particles: int = 20,
        bandwidth: Literal["median", "he"] = "median",
        start_scale: float = 1.0,
    ) -> None:
        super().__init__(n_particles, step_size, bandwidth, start_scale)
        self.matrices = matrices
        self.n_auxiliary = n_auxiliary
        self.stages = stages
        self.auxiliary_start = auxiliary_start
        self.kind = kind

    def _numbers(self):
        numbers = [self.n_auxiliary, self._last_stage(), self.kind == "fgh"]
        return [*numbers, _RULES[self.bandwidth], self.start_scale]

    def _state(self, theta, geometry, n_burn):
        scalars = self._begun(theta[0])
        return np.tile(self._auxiliaries(), (1, len(theta), 1)).copy(), scalars

    def _kernels(self, geometry):
        return (self._kernel(),)
