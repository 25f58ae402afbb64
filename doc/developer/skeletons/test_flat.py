"""A complete sampler on flat space: Langevin dynamics whose noise is shared by neighbouring steps."""

import numpy as np
import pytest

from sk_sgmcmc.kernels._jit import NOT_FINITE, OK, TRANSITION, kernel
from sk_sgmcmc.kernels.samplers import simplex
from sk_sgmcmc.samplers._base import STEP_SIZE_CONSTRAINT, Sampler, StepSize
from sk_sgmcmc.utils._parameters import positional_parameters
from tests.cases import THRESHOLD
from tests.flat_cases import TARGET_LAW, FlatCase, gradient

# -------------------------------------------------------------------- sk_sgmcmc/kernels/samplers/leimkuhler_matthews.py


@kernel(TRANSITION)
def leimkuhler_matthews_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """theta += h grad + sqrt(h T / 2) (R + R'), R' new and R that of the last step, in aux[0]; hyper = (h, T)."""
    h, T = hyper[0], hyper[1]
    spread, last = np.sqrt(0.5 * h * T), aux[0]
    is_first = scalars[0] == 0.0
    scalars[0] = 1.0
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            old = rng.standard_normal() if is_first else last[r, k]
            last[r, k] = rng.standard_normal()
            theta[r, k] += h * signal[r, k] + spread * (old + last[r, k])
            if not np.isfinite(theta[r, k]):
                return NOT_FINITE
    return OK


# ----------------------------------------------------------------------- sk_sgmcmc/samplers/_leimkuhler_matthews.py


@positional_parameters
class LeimkuhlerMatthews(Sampler):
    r"""Langevin dynamics whose noise is shared by neighbouring steps.

    Targets the posterior with an error of second order in ``step_size``; on a Gaussian, exactly for any stable step.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h` of the drift.
    temperature : float, default=1
        :math:`T`: the target is :math:`p^{1/T}`.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy that an estimator keeps in ``sampler_``.

    Notes
    -----
    :math:`\theta \leftarrow \theta + h \nabla \log p(\theta) + \sqrt{h T / 2} \, (R_n + R_{n+1})`.

    References
    ----------
    Leimkuhler and Matthews (2013), Rational construction of stochastic numerical methods for molecular sampling, AMRX.
    """

    step_size: StepSize = "auto"
    temperature: float = 1.0

    _name = "leimkuhler-matthews"
    _fits = (("euclidean", "gradient"), ("euclidean", "conditional-gradient"), ("euclidean", "block-gradient"))
    _n_aux = 1  # R_n; the one number in scalars says whether there is one
    _reads_log_density = False
    _parameter_constraints = {"step_size": STEP_SIZE_CONSTRAINT, "temperature": STEP_SIZE_CONSTRAINT[:1]}

    def _numbers(self):
        return [self.temperature]

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        h = 0.5 * reach**2 / curvature  # it is the limit of a strong friction of "baoab" with the step sqrt(2 h)
        return min(h, 2.0 * share / noise) if noise else h  # a gradient's noise V adds the share h V / 2

    def _kernels(self, geometry):
        return simplex.no_advance, leimkuhler_matthews_step


# --------------------------------------------------------------------- tests/samplers/test_leimkuhler_matthews.py


def leimkuhler_matthews(theta, last, h, T, rng):
    new = rng.standard_normal(theta.size)
    return theta + h * gradient(theta) + np.sqrt(h * T / 2) * (last + new), new


def test_kernel_is_its_twin():
    theta, aux, scalars = np.array([[0.3], [-1.0], [0.7]]), np.zeros((1, 3, 1)), np.ones(1)
    slow, last = theta[:, 0].copy(), np.zeros(3)
    rng, rng_twin = np.random.default_rng(0), np.random.default_rng(0)
    for _ in range(20):
        signal, extra, hyper = gradient(theta), np.zeros(1), np.array([0.2, 0.7])
        assert leimkuhler_matthews_step(theta, aux, scalars, signal, extra, hyper, np.arange(3), rng) == OK
        slow, last = leimkuhler_matthews(slow, last, 0.2, 0.7, rng_twin)
        np.testing.assert_allclose(theta[:, 0], slow, rtol=1e-10)


@kernel(TRANSITION)
def noise_not_shared(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: two new numbers at each step, whose variance is h T in all where 2 h T belongs."""
    for r in rows:
        noise = rng.standard_normal() + rng.standard_normal()
        theta[r, 0] += hyper[0] * signal[r, 0] + np.sqrt(0.5 * hyper[0] * hyper[1]) * noise
    return OK


CASE = FlatCase(LeimkuhlerMatthews(), 0.3, 400.0, TARGET_LAW, broken={"noise_not_shared": noise_not_shared})


def test_sampler_has_its_law(global_random_seed):
    assert np.abs(CASE.z_scores(global_random_seed)).max() < THRESHOLD


@pytest.mark.parametrize("name", CASE.broken)
def test_broken_variant_is_rejected(name, global_random_seed):
    assert np.abs(CASE.z_scores(global_random_seed, CASE.broken[name])).max() > 1.3 * THRESHOLD


def test_automatic_step_is_stable_and_shrinks_with_noise():
    steps = [LeimkuhlerMatthews()._stable_step(4.0, noise) for noise in (0.0, 10.0)]
    np.testing.assert_allclose(steps, [0.02, 0.01])
