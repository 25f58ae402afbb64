"""The recipe: known samplers come out of their two matrices, step by step, and wrong matrices are refused."""

import numba
import numpy as np
import pytest
from sklearn.base import clone

from sk_sgmcmc import sample
from sk_sgmcmc.samplers import PSGHMC, SGLD, ConstantStep, ParticleRecipe, Recipe
from sk_sgmcmc.targets import GaussianMean
from tests.cases import THRESHOLD, z_scores
from tests.naive import euclidean as naive
from tests.tiny_lda import batch_means

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 0.5]])
TARGET = GaussianMean(np.zeros((1, 3)), PRECISION)
C, A, MU = 0.7, 0.9, 1.3


def gradient(theta):
    return -PRECISION @ theta


@numba.njit
def langevin(z, slope, D, Q, div_D, div_Q):
    for i in range(z.size):
        D[i, i] = 1.0


@numba.njit
def friction(z, slope, D, Q, div_D, div_Q):
    n = z.size // 2
    for i in range(n):
        slope[n + i] = z[n + i]
        D[n + i, n + i] = C
        Q[i, n + i], Q[n + i, i] = -1.0, 1.0


@numba.njit
def thermostat(z, slope, D, Q, div_D, div_Q):
    n = (z.size - 1) // 2
    for i in range(n):
        p = z[n + i]
        slope[n + i] = p
        D[n + i, n + i] = A
        Q[i, n + i], Q[n + i, i] = -1.0, 1.0
        Q[n + i, 2 * n], Q[2 * n, n + i] = p / (MU * n), -p / (MU * n)
    slope[2 * n] = MU * n * (z[2 * n] - A)
    div_Q[2 * n] = -1.0 / MU


@numba.njit
def cells(z, slope, D, Q, div_D, div_Q):
    for i in range(z.size):
        D[i, i], div_D[i] = z[i], 1.0


@numba.njit
def bent(z, slope, D, Q, div_D, div_Q):
    """The inverse metric of a user: diagonal, each entry a function of the next coordinate and of its own."""
    n = z.size
    for i in range(n):
        D[i, i] = (1.0 + 0.8 * np.sin(2.0 * z[i])) * (1.0 + 0.3 * np.cos(z[(i + 1) % n]))
        div_D[i] = 1.6 * np.cos(2.0 * z[i]) * (1.0 + 0.3 * np.cos(z[(i + 1) % n]))


@numba.njit
def riemannian(z, slope, D, Q, div_D, div_Q):
    """SGRHMC: friction G^-1 and the root of it between parameters and momenta; G^-1 = (1 + sin^2)^2, diagonal."""
    n = z.size // 2
    for i in range(n):
        root = 1.0 + np.sin(z[i]) ** 2
        slope[n + i] = z[n + i]
        D[n + i, n + i] = root**2
        Q[i, n + i], Q[n + i, i] = -root, root
        div_Q[n + i] = 2.0 * np.sin(z[i]) * np.cos(z[i])


def steps(sampler, theta, h, n, slope=gradient, seed=0):
    """States z after each of n steps of a recipe's kernel."""
    fitted, rng = sampler._resolved(ConstantStep(h)), np.random.default_rng(seed)
    theta = np.array(theta)[:, None]
    aux, scalars = fitted._state(theta, "euclidean", 0)
    _, step = fitted._kernels("euclidean")
    out = []
    for t in range(n):
        signal = np.ascontiguousarray(slope(theta[:, 0])[:, None])
        assert (
            step(theta, aux, scalars, signal, np.zeros(1), fitted._hyper(t, t + 1)[0], np.arange(len(theta)), rng) == 0
        )
        out.append(np.concatenate([theta[:, 0], aux.ravel()[: sampler.n_auxiliary]]))
    return np.array(out)


START = np.array([0.3, -0.2, 0.5])
H = 0.1


def test_langevin_dynamics_come_out():
    ours = sample(TARGET, Recipe(langevin, step_size=H), n_iter=50, random_state=0).samples_["theta"]
    np.testing.assert_allclose(ours, sample(TARGET, SGLD(H), n_iter=50, random_state=0).samples_["theta"], rtol=1e-12)


def test_momentum_with_friction_comes_out():
    recipe = Recipe(friction, 3, stages=[1, 1, 1, 0, 0, 0], auxiliary_start=[0.1, 0.2, 0.3])
    theta, p, rng = START, np.array([0.1, 0.2, 0.3]), np.random.default_rng(0)
    for z in steps(recipe, START, H, 20):
        theta, p = naive.sghmc_euler(theta, p, gradient, H, 1.0, C, 0.0, np.eye(3), rng)
        np.testing.assert_allclose(z, np.concatenate([theta, p]), rtol=1e-10, atol=1e-12)


def test_thermostat_comes_out():
    recipe = Recipe(thermostat, 4, stages=[1, 1, 1, 0, 0, 0, 1], auxiliary_start=[0.1, 0.2, 0.3, A])
    theta, p, xi, rng = START, np.array([0.1, 0.2, 0.3]), A, np.random.default_rng(0)
    for z in steps(recipe, START, H, 20):
        theta, p, xi = naive.sgnht_euler(theta, p, xi, gradient, H, 1.0, A, MU, np.eye(3), rng)
        np.testing.assert_allclose(z, np.concatenate([theta, p, [xi]]), rtol=1e-10, atol=1e-12)


def test_riemannian_langevin_dynamics_on_the_simplex_come_out_with_their_correction():
    shape, theta, rng = np.array([3.0, 5.0, 2.0]), np.array([3.0, 5.0, 2.0]), np.random.default_rng(0)
    for z in steps(Recipe(cells), theta, 0.01, 20, slope=lambda x: (shape - 1.0) / x - 1.0):
        theta = theta + 0.01 * (shape - theta) + np.sqrt(0.02 * theta) * rng.standard_normal(3)
        np.testing.assert_allclose(z, theta, rtol=1e-10)


def test_riemannian_momentum_with_friction_comes_out():
    recipe = Recipe(riemannian, 3, stages=[1, 1, 1, 0, 0, 0])
    theta, p, rng = START, np.zeros(3), np.random.default_rng(0)
    for z in steps(recipe, START, 0.05, 20):
        root = 1.0 + np.sin(theta) ** 2
        noise = np.sqrt(0.1) * root * rng.standard_normal(3)
        p = p + 0.05 * (root * gradient(theta) + np.sin(2.0 * theta) - root**2 * p) + noise
        theta = theta + 0.05 * root * p
        np.testing.assert_allclose(z, np.concatenate([theta, p]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["det", "fgh"])
def test_particles_of_the_recipe_are_those_of_the_paper(kind):
    X = np.random.default_rng(0).normal(size=(7, 3))
    ours = ParticleRecipe(friction, 3, H, [1, 1, 1, 0, 0, 0], kind=kind, n_particles=7)._resolved(None)
    theirs = PSGHMC(kind, 7, H, friction=C)._resolved(None)
    results = []
    for sampler in (ours, theirs):
        theta = X.copy()
        aux, scalars = sampler._state(theta[:, :, None], "euclidean", 0)
        (flow,), rng = sampler._kernels("euclidean"), np.random.default_rng(1)
        for t in range(15):
            signal = np.array([gradient(x) for x in theta])
            assert flow(theta, aux, scalars, signal, np.zeros(1), sampler._hyper(t, t + 1)[0], np.arange(7), rng) == 0
        results.append((theta, aux[0]))
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-11)


# ---------------------------------------------------------------------------------------------------------------- law


@numba.njit
def without_correction(z, slope, D, Q, div_D, div_Q):
    bent(z, slope, D, Q, div_D, div_Q)
    div_D[:] = 0.0


class Unchecked(Recipe):
    def _check(self, z):
        pass


def moments_of(recipe, seed):
    """Moments at step sizes h and h / 2, extrapolated to 0, in batches."""
    values = []
    for h in (0.1, 0.05):
        recipe = clone(recipe).set_params(step_size=h)
        draws = sample(TARGET, recipe, n_iter=400_000, thin=4, burn_in=1000, random_state=seed).samples_["theta"][0]
        values.append(batch_means(np.hstack([draws, draws**2, np.sin(2.0 * draws)])))
    return 2.0 * values[1] - values[0]


def test_a_metric_of_ones_own_keeps_the_target(global_random_seed):
    law = np.concatenate([np.zeros(3), np.diag(np.linalg.inv(PRECISION)), np.zeros(3)])
    assert np.abs(z_scores(moments_of(Recipe(bent), global_random_seed), law)).max() < THRESHOLD
    assert np.abs(z_scores(moments_of(Unchecked(without_correction), global_random_seed), law)).max() > 2 * THRESHOLD


# ------------------------------------------------------------------------------------------------------------- errors


@numba.njit
def not_symmetric(z, slope, D, Q, div_D, div_Q):
    D[0, 1] = 1.0


@numba.njit
def not_antisymmetric(z, slope, D, Q, div_D, div_Q):
    Q[0, 1] = Q[1, 0] = 1.0


@pytest.mark.parametrize(
    "recipe, message",
    [
        (Recipe(not_symmetric), "D at the start is not symmetric"),
        (Recipe(not_antisymmetric), "Q at the start is not antisymmetric"),
        (Recipe(without_correction), "div_D at the start"),
        (Recipe(langevin, stages=[0, 0, 2]), "stages=.* must hold 3 whole numbers"),
        (Recipe(lambda z: None), "takes 1 arguments"),
        (ParticleRecipe(not_symmetric), "D at the start is not symmetric"),
    ],
)
def test_what_is_no_recipe_is_refused(recipe, message):
    with pytest.raises(ValueError, match=message):
        sample(TARGET, recipe, n_iter=10)


def test_particles_of_a_recipe_without_auxiliaries():
    @numba.njit
    def langevin(z, slope, D, Q, dD, dQ):
        for i in range(z.size):
            D[i, i] = 1.0

    result = sample(GaussianMean([[0.0, 1.0]]), ParticleRecipe(langevin), n_iter=400, random_state=0)
    assert result.sampler_.bandwidth_.shape == (1, 2)
    np.testing.assert_allclose(result.samples_["theta"].mean(axis=1)[0], [0.0, 1.0], atol=0.05)
