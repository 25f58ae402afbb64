"""Particle kernels against their slow twins: the interaction, both flows, and the HE bandwidth in any dimension."""

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc.kernels.samplers import particles as at
from sk_sgmcmc.samplers import GFSD, GFSF, PSGHMC, SVGD, Blob
from tests.naive import particles as naive

SAMPLERS = {"blob": Blob(), "gfsd": GFSD(), "gfsf": GFSF(), "svgd": SVGD()}
each_interaction = pytest.mark.parametrize("name", SAMPLERS)


def gradient(x):
    return -x + 0.3 * np.sin(2.0 * x[::-1])


def cloud(M=7, D=3, seed=0):
    return np.random.default_rng(seed).normal(size=(M, D)) * np.linspace(0.5, 2.0, D)


def stepper(sampler, X, step):
    """A function that makes one step of the sampler's kernel on X in place; (function, aux, scalars)."""
    fitted = sampler._resolved(step)
    aux, scalars = fitted._state(X[:, :, None], "euclidean", 0)
    (flow,) = fitted._kernels("euclidean")
    hyper, rng = fitted._hyper(0, 1)[0], np.random.default_rng(5)

    def advance():
        signal = np.array([gradient(x) for x in X])
        assert flow(X, aux, scalars, signal, np.zeros(1), hyper, np.arange(len(X)), rng) == 0

    return advance, aux, scalars


def interact(X, interaction, rule, scalars):
    return at.interact(X, interaction, rule, 0.01, scalars, at.POSITIONS)[0]


@pytest.mark.parametrize("shift", [0.0, 1e4])
@each_interaction
def test_interaction_is_the_double_loop_wherever_the_particles_are(name, shift):
    X, scalars = cloud(9, 4), np.zeros(at.N_SCALARS)
    b = interact(X + shift, SAMPLERS[name]._interaction, at.MEDIAN, scalars)
    assert scalars[at.POSITIONS] == pytest.approx(naive.median_bandwidth(X), rel=1e-8)
    slow = naive.interaction(X, naive.median_bandwidth(X), name)
    np.testing.assert_allclose(b, slow, rtol=1e-10 if shift == 0.0 else 1e-6, atol=1e-12 if shift == 0.0 else 1e-7)


@each_interaction
def test_langevin_flow_is_its_twin(name):
    X = cloud()
    slow = X.copy()
    advance, _, _ = stepper(SAMPLERS[name], X, 0.1)
    for _ in range(10):
        advance()
        slow = naive.langevin_flow(slow, gradient, 0.1, name)
        np.testing.assert_allclose(X, slow, rtol=1e-9)


@pytest.mark.parametrize("kind", ["det", "fgh"])
def test_hamiltonian_flow_is_its_twin(kind):
    X = cloud()
    slow, p = X.copy(), np.sqrt(0.5) * np.random.default_rng(5).standard_normal(X.shape)
    advance, aux, _ = stepper(PSGHMC(kind, friction=0.7, mass=0.5), X, 0.1)
    for _ in range(10):
        advance()
        slow, p = naive.hamiltonian_flow(slow, p, gradient, 0.1, 0.7, 0.5, kind)
        np.testing.assert_allclose(X, slow, rtol=1e-8)
        np.testing.assert_allclose(aux[0], p, rtol=1e-8)


def test_blob_is_the_gradient_of_an_energy():
    # -sum_k log S_k at a fixed bandwidth: what makes the flow of fGH Hamiltonian.
    X, h = cloud(), 0.8
    b = naive.interaction(X, h, "blob")

    def energy(X):
        return sum(np.log(sum(naive.kernel(x, y, h) for y in X)) for x in X)

    for i in range(3):
        for k in range(3):
            e = np.zeros_like(X)
            e[i, k] = 1e-5
            assert -(energy(X + e) - energy(X - e)) / 2e-5 == pytest.approx(b[i, k], abs=1e-8)


def log_heat_error(X, h):
    _, G, squares = at.gram(X)
    return at.log_heat_error(G, squares, X.shape[1], h)


def search(X, previous, n):
    _, G, squares = at.gram(X)
    for _ in range(n):
        previous = at.he_bandwidth(G, squares, X.shape[1], previous)
    return previous, at.median_bandwidth(squares)


@pytest.mark.parametrize("D", [1, 3])
@pytest.mark.parametrize("h", [0.2, 1.0, 5.0])
def test_heat_error_is_that_of_differences(D, h):
    X = cloud(8, D)
    assert log_heat_error(X, h) == pytest.approx(np.log(naive.heat_error(X, h)), rel=1e-4)


def test_he_search_ends_at_the_lowest_error_nearby():
    side = stats.norm.ppf((np.arange(6) + 0.5) / 6)
    X = np.array([[x, y] for x in side for y in side])
    h, median = search(X, 0.0, 60)
    grid = h * np.exp(np.linspace(-0.3, 0.3, 61))
    errors = [log_heat_error(X, each) for each in grid]
    assert abs(np.log(grid[np.argmin(errors)] / h)) < 0.02
    assert median / 4.0 < h < median


def test_he_bandwidth_in_57540_dimensions_is_finite_and_repels():
    # The density itself underflows there: (1/h)^(D/2) is 0 or inf in float64 for any h that is not close to 1.
    X = np.random.default_rng(0).normal(size=(20, 57_540))
    assert (1.0 / naive.median_bandwidth(X)) ** (57_540 / 2) == 0.0
    for size in (1e-3, 1.0, 1e3):
        h, median = search(size * X, 0.0, 40)
        assert np.isfinite(log_heat_error(size * X, h))
        # So many dimensions have no lowest error but that of no bandwidth at all: the limit holds it.
        assert h == pytest.approx(median / 4.0)
        b = interact(size * X, at.BLOB, at.HE, np.zeros(at.N_SCALARS))
        assert np.all(np.isfinite(b)) and np.linalg.norm(b) > 0.0


def test_particles_at_one_place_and_a_single_one_feel_nothing():
    for X in (np.ones((5, 3)), np.ones((1, 3))):
        for rule in (at.MEDIAN, at.HE):
            np.testing.assert_array_equal(interact(X, at.BLOB, rule, np.zeros(at.N_SCALARS)), 0.0)
