"""A complete sampler on a manifold: Langevin dynamics along great circles."""

import numpy as np

from sk_sgmcmc import sample
from sk_sgmcmc.kernels._jit import OK, TRANSITION, kernel
from sk_sgmcmc.kernels.samplers import simplex
from sk_sgmcmc.kernels.samplers.geometry import move_spheres, project_spheres
from sk_sgmcmc.samplers._base import STEP_SIZE_CONSTRAINT, Sampler, StepSize
from sk_sgmcmc.targets import RestrictedGaussian
from sk_sgmcmc.utils._parameters import positional_parameters
from tests.cases import THRESHOLD, z_scores
from tests.naive import geodesic as naive

# -------------------------------------------------------------------- sk_sgmcmc/kernels/samplers/geodesic_langevin.py


@kernel(TRANSITION)
def sphere_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Geodesic flow over 1 along the projection of h grad + sqrt(2 h) Z; aux[0] is scratch, hyper = (h,)."""
    h, velocity, no_blocks = hyper[0], aux[0], np.empty((0, 3))
    spread = np.sqrt(2.0 * h)
    for r in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            velocity[r, i] = h * signal[r, i] + spread * rng.standard_normal()
    project_spheres(theta, velocity, no_blocks)
    return move_spheres(theta, velocity, no_blocks, 1.0)


# ----------------------------------------------------------------------- sk_sgmcmc/samplers/_geodesic_langevin.py


@positional_parameters
class GeodesicLangevin(Sampler):
    r"""Langevin dynamics along great circles of unit spheres.

    Targets the density on the spheres with an error of first order in ``step_size``; never leaves them.

    Parameters
    ----------
    step_size : float, schedule or "auto", default="auto"
        :math:`h` of the drift.

    Attributes
    ----------
    step_size_ : schedule
        The step sizes in use, on the fitted copy that an estimator keeps in ``sampler_``.

    See Also
    --------
    SGGMC : The same with a velocity, whose error is of second order.

    Notes
    -----
    The geodesic flow over the time 1 along :math:`\Lambda(x) [h \nabla \log p(x) + \sqrt{2 h} Z]`, where
    :math:`\Lambda(x)` projects onto the tangent space.
    """

    step_size: StepSize = "auto"

    _name = "geodesic-langevin"
    _fits = (("sphere", "gradient"),)
    _n_aux = 1
    _reads_log_density = False
    _parameter_constraints = {"step_size": STEP_SIZE_CONSTRAINT}

    def _stable_step(self, curvature, noise, *, share=0.05, reach=0.4):
        # Variances are those of the target times 1 + h (curvature + noise) / 2.
        return 2.0 * share / (curvature + noise)

    def _kernels(self, geometry):
        return simplex.no_advance, {"sphere": sphere_step}[geometry]


# --------------------------------------------------------------------- tests/samplers/test_geodesic_langevin.py

MEAN = 5.0 * np.eye(3)[:2]  # of two von Mises-Fisher laws, times their concentrations
LAW = [1.0 / np.tanh(5.0) - 0.2, 1.0 - 0.4 * (1.0 / np.tanh(5.0) - 0.2)]  # E[m'x], E[(m'x)^2]


def geodesic_langevin(x, gradient, h, rng):
    velocity = naive.sphere_project(x, h * gradient + np.sqrt(2.0 * h) * rng.standard_normal(x.shape))
    return naive.sphere_flow(x, velocity, 1.0)[0]


def test_kernel_is_its_twin():
    theta, aux, scalars = np.eye(3)[1:].copy(), np.zeros((1, 2, 3)), np.zeros(1)
    rng, rng_twin = np.random.default_rng(0), np.random.default_rng(0)
    slow = theta.copy()
    for _ in range(20):
        assert sphere_step(theta, aux, scalars, MEAN, np.zeros(2), np.array([0.1]), np.arange(2), rng) == OK
        slow = geodesic_langevin(slow, MEAN, 0.1, rng_twin)
        np.testing.assert_allclose(theta, slow, rtol=1e-9, atol=1e-12)


def law_z(make, seed):
    """z-scores of the moments of 30 chains, extrapolated from h, h / 2 and h / 4."""
    values = []
    for halvings in range(3):
        n_iter = 2000 * 2**halvings
        draws = sample(
            RestrictedGaussian(MEAN), make(0.04 / 2**halvings), n_iter=n_iter, burn_in=0.1, thin=4 * 2**halvings,
            n_chains=30, random_state=seed + halvings,
        )  # fmt: skip
        along = (draws.samples_["x"] * MEAN / 5.0).sum(axis=-1)
        values.append(np.stack([along.mean(axis=(1, 2)), (along**2).mean(axis=(1, 2))], axis=-1))
    return z_scores((8.0 * values[2] - 6.0 * values[1] + values[0]) / 3.0, LAW)


@kernel(TRANSITION)
def noise_of_epsilon(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: noise of variance h where 2 h belongs."""
    for r in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            aux[0, r, i] = hyper[0] * signal[r, i] + np.sqrt(hyper[0]) * rng.standard_normal()
    project_spheres(theta, aux[0], np.empty((0, 3)))
    return move_spheres(theta, aux[0], np.empty((0, 3)), 1.0)


class Broken(GeodesicLangevin):
    def _kernels(self, geometry):
        return simplex.no_advance, noise_of_epsilon


def test_sampler_has_its_law(global_random_seed):
    assert np.abs(law_z(GeodesicLangevin, global_random_seed)).max() < THRESHOLD


def test_broken_variant_is_rejected(global_random_seed):
    assert np.abs(law_z(Broken, global_random_seed)).max() > 1.3 * THRESHOLD
