"""Products of manifolds: their blocks, and their laws with broken variants."""

import numpy as np
import pytest
from scipy import integrate

from sk_sgmcmc import sample
from sk_sgmcmc.dense import chain as dense_chain
from sk_sgmcmc.kernels._jit import OK, TRANSITION, kernel
from sk_sgmcmc.kernels.models import manifold
from sk_sgmcmc.kernels.samplers import geodesic, geometry
from sk_sgmcmc.kernels.samplers.geometry import move_product, project_product
from sk_sgmcmc.samplers import GMC, GSGNHT, SGGMC
from sk_sgmcmc.samplers._products import Block, Product
from sk_sgmcmc.targets import MatrixCompletion, RestrictedGaussian
from tests.cases import THRESHOLD, z_scores
from tests.kernels.test_geometry import start
from tests.naive import geodesic as naive
from tests.samplers.test_geodesic_laws import Broken, statistics

BLOCKS = [("stiefel", 2, 4), ("euclidean", 1, 3), ("simplex", 2, 5), ("stiefel", 3, 6), ("sphere", 2, 3)]


def whole_start(rng):
    """A point of the product of `BLOCKS` and a velocity there, as columns."""
    x = [start(name, rng, *size)[0] if name in naive.FLOWS and name != "euclidean" else rng.standard_normal(size)
         for name, *size in BLOCKS]  # fmt: skip
    x = np.concatenate([part.ravel() for part in x])[:, None]
    return x, naive.product_project(BLOCKS, x, rng.standard_normal(x.shape))


# --------------------------------------------------------------------------------------------------------- its blocks


def test_flow_projection_and_dimension_are_those_of_the_blocks():
    rng = np.random.default_rng(0)
    x, v = whole_start(rng)
    table = Product(Block(*block) for block in BLOCKS).table()
    expected = naive.product_flow(BLOCKS, x, v, 0.7)
    assert geometry.product_flow(x, v, table, 0.7) == OK
    np.testing.assert_allclose(x, expected[0], atol=1e-11)
    np.testing.assert_allclose(v, expected[1], atol=1e-10)
    w = rng.standard_normal(x.shape)
    expected = naive.product_project(BLOCKS, x, w)
    assert geometry.product_project(x, w, table) == OK
    np.testing.assert_allclose(w, expected, atol=1e-13)
    n = sum(naive.DIMENSIONS[name](*size) for name, *size in BLOCKS)
    assert Product(Block(*block) for block in BLOCKS).dimension() == n == 5 + 3 + 8 + 12 + 4


@pytest.mark.parametrize("mass", [np.inf, 0.3])
def test_stochastic_step_equals_its_twin(mass):
    x, _ = whole_start(np.random.default_rng(1))
    b = np.random.default_rng(2).standard_normal(x.shape)
    h, C, V, xi = 0.07, 2.0, 3.0, (0.5 if mass < 1 else 2.0)
    twin = np.random.default_rng(3)
    expected = naive.chain(BLOCKS, x, lambda y: b - 0.4 * y, h, C, V, xi, mass, 12, twin)
    rng = np.random.default_rng(3)
    table = Product(Block(*block) for block in BLOCKS).table()
    aux, scalars, signal, extra = np.zeros((1, *x.shape)), np.r_[0.0, 0.0, table.ravel()], np.empty_like(x), np.zeros(2)
    params, hyper, rows = np.r_[b.ravel(), 0.4], np.array([h, C, V, xi, 1 / mass]), np.arange(len(x))
    for _ in range(12):
        assert geodesic.product_advance(x, aux, scalars, signal, extra, hyper, rows, rng) == OK
        manifold.restricted_gaussian(x, np.zeros((1, 0)), np.zeros((1, 0)), np.ones(1), params, 1.0, signal, extra)
        assert geodesic.product_step(x, aux, scalars, signal, extra, hyper, rows, rng) == OK
    np.testing.assert_allclose(x, expected[0], atol=1e-9)
    np.testing.assert_allclose(aux[0], expected[1], atol=1e-8)
    assert scalars[1] == pytest.approx(expected[2], rel=1e-8)
    np.testing.assert_array_equal(scalars[2:], table.ravel())
    assert rng.random() == twin.random()


@pytest.mark.parametrize("sampler", [SGGMC(0.05, 3.0), GSGNHT(0.05, 3.0), GMC(0.3, 5, jitter=0.1)], ids=repr)
def test_a_product_of_one_block_has_the_draws_of_that_manifold(sampler):
    target = RestrictedGaussian(np.eye(2, 4))
    for name in ("sphere", "simplex", "stiefel"):
        one, product = (
            sample(target, sampler, geometry=g, n_iter=50, random_state=0).samples_["x"] for g in (name, [(name, 2)])
        )
        np.testing.assert_array_equal(one, product)


# -------------------------------------------------------------------------------------------- blocks of different kinds

PRODUCT = [("sphere", 1), ("stiefel", 2), ("simplex", 1), ("stiefel", 2)]
LINEAR = np.zeros((6, 3))
LINEAR[0, 2], LINEAR[1, 0], LINEAR[4, 1] = 5.0, 4.0, 2.0
LINEAR[3] = 2.0, 0.0, -1.0
DIMENSION = 2 + 3 + 2 + 3


def _moments(kappa):
    """E[t] and E[t^2] of the coordinate along a pull of ``kappa`` on the sphere."""
    first = 1.0 / np.tanh(kappa) - 1.0 / kappa
    return first, 1.0 - 2.0 * first / kappa


def _on_the_simplex(function):
    def density(y, x):
        return np.exp(LINEAR[3] @ [x, y, 1 - x - y])

    total = integrate.dblquad(density, 0, 1, 0, lambda x: 1 - x)[0]
    return integrate.dblquad(lambda y, x: function(x, y) * density(y, x), 0, 1, 0, lambda x: 1 - x)[0] / total


def product_z(sampler, seed, n_iter):
    (a, a2), (b, b2), (c, c2) = (_moments(kappa) for kappa in (5.0, 4.0, 2.0))
    # A second member of a frame is uniform across the first: of what the first leaves of an axis, half is its.
    exact = [a, a2, b, b2, 0.5 * (1 - b2), c, c2, 0.5 * (1 - c2), 0.0]
    exact += [_on_the_simplex(lambda x, y: x), _on_the_simplex(lambda x, y: x * x), _on_the_simplex(lambda x, y: x * y)]

    def function(x):
        return (
            x[:, :, 0, 2], x[:, :, 0, 2] ** 2, x[:, :, 1, 0], x[:, :, 1, 0] ** 2, x[:, :, 2, 0] ** 2, x[:, :, 4, 1],
            x[:, :, 4, 1] ** 2, x[:, :, 5, 1] ** 2, x[:, :, 2, 0] * x[:, :, 4, 1], x[:, :, 3, 0], x[:, :, 3, 0] ** 2,
            x[:, :, 3, 0] * x[:, :, 3, 1],
        )  # fmt: skip

    means, heat = statistics(RestrictedGaussian(LINEAR), sampler, function, n_iter, seed, geometry=PRODUCT, thin=4)
    return z_scores(means, exact), heat


@pytest.mark.parametrize("sampler", [SGGMC(0.03, 4.0), GSGNHT(0.03, 4.0), GMC(0.25, 5)], ids=repr)
def test_each_block_of_a_product_has_its_law(sampler, global_random_seed):
    z, heat = product_z(sampler, global_random_seed, 1500 if isinstance(sampler, GMC) else 6000)
    assert np.abs(z).max() < THRESHOLD
    assert heat is None or heat.mean() / DIMENSION == pytest.approx(1.0, abs=0.02)


class FramesAsSpheres(GMC):
    """Mistake: the rows of a frame move as if each were alone."""

    def _state(self, theta, geometry, n_burn):
        return super()._state(
            theta, Product(b._replace(geometry=_mistaken(b.geometry)) for b in geometry.blocks), n_burn
        )


def _mistaken(name):
    return "sphere" if name == "stiefel" else name


def test_frames_that_move_as_spheres_are_rejected(global_random_seed):
    z, _ = product_z(FramesAsSpheres(0.25, 5), global_random_seed, 1500)
    assert np.abs(z).max() > 1.3 * THRESHOLD


@kernel(TRANSITION)
def all_coordinates_free(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: the thermostat of a product divided by the size of the array."""
    half = 0.5 * hyper[0] * hyper[4]
    wrong = 1.0 / theta.size - 1.0 / geometry.dimension(geometry.PRODUCT, theta, geodesic.blocks_of(scalars))
    # Both half steps of this step, put right by their difference from the right ones.
    scalars[1] += geodesic.squared_norm(aux[0]) * wrong * half
    status = geodesic.second_half(
        geometry.PRODUCT, move_product, project_product, theta, aux, scalars, signal, extra, hyper, rng
    )
    scalars[1] += geodesic.squared_norm(aux[0]) * wrong * half
    return status


class EmbeddedGSGNHT(Broken, GSGNHT, step=all_coordinates_free):
    pass


def test_the_temperature_of_a_product_is_exact_and_that_of_all_coordinates_rejected(global_random_seed):
    target = RestrictedGaussian(np.zeros((6, 3)))
    z = []
    for make in (GSGNHT, EmbeddedGSGNHT):
        sampler = make(0.1, 3.0, thermostat_mass=0.2)
        _, heat = statistics(target, sampler, lambda x: (x[..., 0, 0],), 2000, global_random_seed, geometry=PRODUCT)
        z.append(z_scores(heat[:, None], [float(DIMENSION)])[0])
    assert abs(z[0]) < THRESHOLD
    assert abs(z[1]) > 1.3 * THRESHOLD


# --------------------------------------------------------------------------------------- noise, width and arguments


@pytest.mark.parametrize("geometry", [None, [("sphere", 1), ("simplex", 1)]], ids=str)
def test_the_estimated_noise_is_white_by_itself(geometry):
    """Large minibatches: blocks would cancel over an epoch, and rows drawn anew bring 1 / (1 - n/N) of the estimate."""
    noise = 6.6 * np.random.default_rng(0).standard_normal((40, 6))
    target = RestrictedGaussian(np.zeros((2, 3)), linear_terms=noise - noise.mean(axis=0))
    heat = []
    for sampler, options in [
        (SGGMC(0.002, 10.0, "estimated"), {}),
        (SGGMC(0.002, 10.0, "estimated"), {"with_replacement": False}),
        (SGGMC(0.002, 10.0), {"with_replacement": True}),
    ]:
        result = sample(target, sampler, geometry=geometry, n_iter=40_000, n_chains=4, batch_size=10, random_state=0,
                        **options)  # fmt: skip
        heat.append((result.samples_["velocity"] ** 2).sum(axis=(2, 3)).mean() / 4.0)
    assert heat[0] == pytest.approx(1.0, abs=0.05)
    assert heat[1] < 0.8 and heat[2] > 1.2, heat


def test_wide_states_keep_every_velocity(monkeypatch):
    target = RestrictedGaussian(np.zeros((3400, 3)))
    rounded = sample(target, SGGMC(0.1, 3.0), n_iter=400, burn_in=0, random_state=0).samples_
    heat = (rounded["velocity"] ** 2).sum(axis=(0, 2, 3)) / 6800
    np.testing.assert_allclose(heat, 1.0, atol=0.1)
    monkeypatch.setattr(dense_chain, "_WIDE", 10**9)
    whole = sample(target, SGGMC(0.1, 3.0), n_iter=400, burn_in=0, random_state=0).samples_
    np.testing.assert_array_equal(rounded["velocity"], whole["velocity"])
    np.testing.assert_allclose(rounded["x"], whole["x"], atol=1e-7)


@pytest.mark.parametrize(
    "geometry, match",
    [
        ([("sphere", 2)], "has 2 rows, and RestrictedGaussian has 3"),
        ([("sphere", 2), ("cube", 1)], "give a list of manifolds"),
        ([("sphere", 2), ("euclidean", 1)], "give a list of manifolds"),
        ([("sphere", 2.5), ("simplex", 0.5)], "give a list of manifolds"),
        ("product", "give a list of manifolds"),
        ([], r"geometry=\[\] is not available for RestrictedGaussian"),
        ([("sphere", np.inf)], "give a list of manifolds"),
        ([(["sphere"], 3)], "give a list of manifolds"),
        (np.array([["sphere", "3"]]), "give a list of manifolds"),
        ([("stiefel", 3)], "RestrictedGaussian cannot have a frame of 3 rows of length 2"),
        ("cube", "a list of these, simplex, sphere, stiefel"),
    ],
)
def test_lists_of_rows_are_checked(geometry, match):
    with pytest.raises(ValueError, match=match):
        sample(RestrictedGaussian(np.eye(3, 2)), "gmc", geometry=geometry, n_iter=5)


def test_a_target_on_one_manifold_takes_no_product():
    with pytest.raises(ValueError, match="not available for MatrixCompletion: use stiefel"):
        sample(MatrixCompletion(np.eye(3), [1.0], 0.3), "gmc", geometry=[("stiefel", 1)], n_iter=5)
