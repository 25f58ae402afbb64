"""A complete sampler on the simplex: cells that are drawn anew at random times."""

import numpy as np
import pytest

from sk_sgmcmc.kernels._jit import NOT_FINITE, OK, TRANSITION, helper, kernel
from sk_sgmcmc.kernels.math.random import gamma_draw
from sk_sgmcmc.samplers._base import EXACT_STEP_CONSTRAINT, Sampler, StepSize
from sk_sgmcmc.samplers.schedules import ConstantStep
from sk_sgmcmc.utils._parameters import positional_parameters
from tests.cases import THRESHOLD, Case, GammaCells
from tests.naive.simplex import gamma

# ---------------------------------------------------------------------------- sk_sgmcmc/kernels/samplers/renewal.py


@helper
def renew(theta, row, shape, time, rng):
    """Draw each cell of a row anew, if one of its random times lies within ``time``."""
    probability = -np.expm1(-time)
    for k in range(theta.shape[1]):
        if rng.random() < probability:
            theta[row, k] = gamma_draw(shape[k], rng)


@kernel(TRANSITION)
def renewal_advance(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Bring rows up to date, over the time ``extra`` since each was last moved, at their constant shape."""
    for i in range(rows.shape[0]):
        renew(theta, rows[i], signal[i], extra[i], rng)
    return OK


@kernel(TRANSITION)
def renewal_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """One step of length h; hyper = (h,)."""
    for i in range(rows.shape[0]):
        for k in range(theta.shape[1]):
            if not signal[i, k] > 0.0:
                return NOT_FINITE
        renew(theta, rows[i], signal[i], hyper[0], rng)
    return OK


# ------------------------------------------------------------------------------- sk_sgmcmc/samplers/_renewal.py


@positional_parameters
class Renewal(Sampler):
    r"""Renewal process: each cell is drawn anew at the times of a Poisson process of rate 1.

    Targets :math:`\mathrm{Gamma}(a, 1)` cell by cell, exactly for any ``step_size`` when the shape :math:`a` is fixed.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h`, the time of one step; ``numpy.inf`` draws all cells anew. "auto" is that where shapes are exact; for
        shapes estimated from minibatches, whose noise no step size lessens, there is none.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy that an estimator keeps in ``sampler_``.

    See Also
    --------
    SCIR : A diffusion with the same stationary law, which averages noisy shapes over time.
    """

    step_size: StepSize = "auto"

    _name = "renewal"
    _fits = (("simplex", "counts"), ("positive", "counts"))
    _is_lazy = True  # `renewal_advance` knows the transition over any time
    _is_exact = True  # so does an infinite one
    _parameter_constraints = {"step_size": EXACT_STEP_CONSTRAINT}

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):  # for `sample`
        if noise:
            raise self._no_automatic_step()
        return np.inf

    def _simplex_schedule(self, noisy):  # for topics
        return ConstantStep(self._stable_step(0.0, float(noisy)))

    def _kernels(self, geometry):
        return renewal_advance, renewal_step


# ----------------------------------------------------------------------------- tests/samplers/test_renewal.py


def renewal(theta, shape, time, rng):
    theta = theta.copy()
    for r, k in np.ndindex(shape.shape):
        if rng.random() < 1.0 - np.exp(-time[r]):
            theta[r, k] = gamma(shape[r, k], rng)
    return theta


def test_kernels_are_their_twin():
    rng, rng_twin = np.random.default_rng(0), np.random.default_rng(0)
    theta, shape = np.ones((4, 3)), np.geomspace(1e-3, 10.0, 12).reshape(4, 3)
    slow, elapsed, rows = theta.copy(), np.array([0.0, 0.5, 1.0, np.inf]), np.arange(4)
    for _ in range(12):
        args = theta, np.zeros((0, 4, 3)), np.zeros(1), shape
        assert renewal_advance(*args, elapsed, np.array([0.3]), rows, rng) == OK
        assert renewal_step(*args, np.zeros(3), np.array([0.3]), rows, rng) == OK
        slow = renewal(renewal(slow, shape, elapsed, rng_twin), shape, np.full(4, 0.3), rng_twin)
        np.testing.assert_allclose(theta, slow, rtol=1e-10)


@kernel(TRANSITION)
def moved_towards_the_draw(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: each cell goes the share 1 - e^{-h} of the way to a draw, where it belongs there with that chance."""
    share = -np.expm1(-hyper[0])
    for r in rows:
        for k in range(theta.shape[1]):
            theta[r, k] += share * (gamma_draw(signal[r, k], rng) - theta[r, k])
    return OK


CASE = Case(
    Renewal(step_size=0.5), GammaCells(np.array([0.2, 0.5, 2.0, 10.0])), 500.0,
    broken={"moved_towards_the_draw": moved_towards_the_draw},
)  # fmt: skip


def test_sampler_has_its_law(global_random_seed):
    assert np.abs(CASE.z_scores(global_random_seed)).max() < THRESHOLD


@pytest.mark.parametrize("name", CASE.broken)
def test_broken_variant_is_rejected(name, global_random_seed):
    assert np.abs(CASE.z_scores(global_random_seed, CASE.broken[name])).max() > 1.3 * THRESHOLD
