"""Products of manifolds: their blocks, their laws with broken variants, densities of one's own on them."""

import numba
import numpy as np
import pytest
from scipy import integrate

from sk_sgmcmc import sample
from sk_sgmcmc.kernels import geodesic, geometry
from sk_sgmcmc.kernels._jit import OK, TRANSITION, kernel
from sk_sgmcmc.kernels.signals import manifold
from sk_sgmcmc.manifold_targets import ManifoldDensity, MatrixCompletion, RestrictedGaussian
from sk_sgmcmc.samplers import GMC, GSGNHT, SGGMC
from sk_sgmcmc.samplers._products import Block, Product
from tests.cases import THRESHOLD, z_scores
from tests.kernels.test_geometry import start
from tests.naive import geodesic as naive
from tests.samplers.test_geodesic_laws import N_CHAINS, Broken, statistics

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
    z, heat = product_z(sampler, global_random_seed, 1500 if isinstance(sampler, GMC) else 10_000)
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
    status = geodesic.second_half(geometry.PRODUCT, theta, aux, scalars, signal, extra, hyper, rng)
    scalars[1] += geodesic.squared_norm(aux[0]) * wrong * half
    return status


class EmbeddedGSGNHT(Broken, GSGNHT, step=all_coordinates_free):
    pass


def test_the_temperature_of_a_product_is_exact_and_that_of_all_coordinates_rejected(global_random_seed):
    target = RestrictedGaussian(np.zeros((6, 3)))
    z = []
    for make in (GSGNHT, EmbeddedGSGNHT):
        sampler = make(0.1, 3.0, thermostat_mass=0.2)
        _, heat = statistics(target, sampler, lambda x: (x[..., 0, 0],), 4000, global_random_seed, geometry=PRODUCT)
        z.append(z_scores(heat[:, None], [float(DIMENSION)])[0])
    assert abs(z[0]) < THRESHOLD
    assert abs(z[1]) > 1.3 * THRESHOLD


# ------------------------------------------------------------------------------------------- densities of one's own

KAPPA = 6.0
SPACES = {"x": ("sphere", (3,)), "w": ("simplex", (2,)), "c": ("euclidean", (1,))}


@numba.njit
def coupled(theta, rows, scale, gradient):
    """exp(KAPPA w_1 x_1) on a direction x and proportions w, and c ~ N(2 x_1, 1); rows are linear terms."""
    rest = theta[5] - 2.0 * theta[0]
    gradient[:] = 0.0
    gradient[0] = KAPPA * theta[3] + 2.0 * rest
    gradient[3] = KAPPA * theta[0]
    gradient[5] = -rest
    log_density = KAPPA * theta[3] * theta[0] - 0.5 * rest * rest
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            gradient[j] += scale * rows[i, j]
            log_density += scale * rows[i, j] * theta[j]
    return log_density


def coupled_target(noise=0.0):
    """With linear terms that add up to 0, so that they change nothing but the noise of minibatches."""
    Z = np.random.default_rng(0).standard_normal((2000, 6))
    Z -= Z.mean(axis=0)
    Z = Z @ np.linalg.inv(np.linalg.cholesky(Z.T @ Z / len(Z))).T
    return ManifoldDensity(coupled, SPACES, data=np.sqrt(noise) * Z / len(Z))


def coupled_z(sampler, seed, n_iter, noise=0.0, **kwargs):
    def mean(function):
        def density(w, t):
            return np.exp(KAPPA * (w * t - 1.0))

        total = integrate.dblquad(density, -1, 1, 0, 1)[0]
        return integrate.dblquad(lambda w, t: function(w, t) * density(w, t), -1, 1, 0, 1)[0] / total

    functions = (lambda w, t: t, lambda w, t: t * t, lambda w, t: w, lambda w, t: w * w, lambda w, t: w * t)
    exact = [mean(f) for f in functions]
    exact += [2.0 * exact[0], 1.0 + 4.0 * exact[1], 2.0 * exact[1]]
    result = sample(
        coupled_target(noise), sampler, n_iter=n_iter, n_chains=N_CHAINS, burn_in=0.1, random_state=seed, **kwargs
    )
    draws = result.samples_
    t, w, c = draws["x"][..., 0], draws["w"][..., 0], draws["c"][..., 0]
    means = np.stack([f(w, t).mean(axis=1) for f in functions] + [each.mean(axis=1) for each in (c, c * c, c * t)], 1)
    heat = (draws["velocity"] ** 2).sum(axis=2).mean() if "velocity" in draws else None
    return z_scores(means, exact), heat


NOISY = {"noise": 200.0, "batch_size": 1, "with_replacement": True, "n_iter": 60_000, "thin": 10}


@pytest.mark.parametrize(
    "sampler, options",
    [
        (GMC(0.3, 5), {"n_iter": 3000}),
        (SGGMC(0.02, 4.0), {"n_iter": 30_000, "thin": 5}),
        (SGGMC(0.02, 8.0, 200.0), NOISY),
        (GSGNHT(0.02, 8.0), NOISY),
    ],
    ids=repr,
)
def test_a_density_over_three_spaces_has_its_law(sampler, options, global_random_seed):
    z, heat = coupled_z(sampler, global_random_seed, **options)
    assert np.abs(z).max() < THRESHOLD
    assert heat is None or heat / coupled_target().dimension == pytest.approx(1.0, abs=0.02)


def test_noise_that_is_not_known_is_rejected(global_random_seed):
    z, heat = coupled_z(SGGMC(0.02, 8.0), global_random_seed, **NOISY)
    assert np.abs(z).max() > 1.3 * THRESHOLD
    assert heat / 4.0 > 1.1


def test_parts_have_their_names_and_shapes_and_jobs_change_nothing():
    spaces = {"frames": ("stiefel", (4, 2, 5)), "w": ("simplex", (3, 4)), "x": ("sphere", (3,)), "c": ("euclidean", 2)}

    target = ManifoldDensity(flat, spaces, start={"x": [0.0, 0.0, 1.0]})
    one, two = (sample(target, "gsgnht", n_iter=20, n_chains=2, n_jobs=n, random_state=0).samples_ for n in (1, 2))
    for name, draws in one.items():
        np.testing.assert_array_equal(draws, two[name])
    assert one["frames"].shape == (2, 10, 4, 2, 5) and one["w"].shape == (2, 10, 3, 4)
    assert one["x"].shape == (2, 10, 3) and one["c"].shape == (2, 10, 2) and one["velocity"].shape == (2, 10, 57)
    assert target.dimension == 4 * 7 + 3 * 3 + 2 + 2
    F = one["frames"]
    np.testing.assert_allclose(F @ F.swapaxes(-1, -2), np.broadcast_to(np.eye(2), F.shape[:3] + (2, 2)), atol=1e-12)
    np.testing.assert_allclose(one["w"].sum(-1), 1.0, atol=1e-12)
    assert one["w"].min() >= 0.0


@numba.njit
def flat(theta, rows, scale, gradient):
    gradient[:] = -theta
    return -0.5 * np.sum(theta**2)


def test_the_step_of_auto_suits_every_part():
    drawn = sample(coupled_target(), "gmc", n_iter=1000, random_state=0)
    assert 0.7 < drawn.sampler_.acceptance_rate_[0] < 0.97
    drawn = sample(coupled_target(), "sggmc", n_iter=20_000, random_state=0)
    assert np.mean(np.sum(drawn.samples_["velocity"] ** 2, axis=-1)) / 4.0 == pytest.approx(1.0, abs=0.05)
    noisy = sample(coupled_target(200.0), "sggmc", n_iter=5, batch_size=10, random_state=0)
    assert noisy.sampler_.step_size_(0) < 0.5 * drawn.sampler_.step_size_(0)


# --------------------------------------------------------------------------------------------------------- arguments


@numba.njit
def wrong_slope(theta, rows, scale, gradient):
    gradient[:] = theta
    return -0.5 * np.sum(theta[:2] ** 2)


@pytest.mark.parametrize(
    "spaces, match",
    [
        ([("sphere", (3,))], "must be a dict"),
        ({}, "must be a dict"),
        ({"x": ("cube", (3,))}, "must be a manifold"),
        ({"x": ("sphere", ())}, "must be a manifold"),
        ({"x": ("sphere", (2.5,))}, "must be a manifold"),
        ({"x": "sphere"}, "must be a manifold"),
        ({"x": ("stiefel", (3,))}, "must be a manifold"),
        ({"x": ("stiefel", (3, 2))}, "at most as many rows"),
        ({"x": ("simplex", (3, 1))}, "no more than a point"),
        ({"velocity": ("sphere", (3,))}, "velocity"),
    ],
)
def test_spaces_are_checked(spaces, match):
    with pytest.raises(ValueError, match=match):
        sample(ManifoldDensity(flat, spaces), "gmc", n_iter=5)


def test_starts_gradients_and_noise_are_checked():
    spaces = {"x": ("sphere", (2,)), "c": ("euclidean", (2,))}
    for start_, match in [({"y": [0.0, 1.0]}, "names of parts: x, c"), ({"x": [0.0]}, "spaces says"),
                          ({"x": [1.0, 1.0]}, "off the manifold"), ({"c": [np.nan, 0.0]}, "off the manifold"),
                          ([1.0], "must be a dict")]:  # fmt: skip
        with pytest.raises(ValueError, match=match):
            sample(ManifoldDensity(flat, spaces, start=start_), "gmc", n_iter=5)
    with pytest.raises(ValueError, match="off the manifold"):
        sample(ManifoldDensity(flat, spaces), "gmc", n_iter=5, init=[3.0, 0.0, 0.0, 0.0])
    bad = ManifoldDensity(wrong_slope, spaces, start={"x": [1.0, 0.0], "c": [1.0, 1.0]})
    with pytest.raises(ValueError, match="does not fit the log density"):
        sample(bad, "gmc", n_iter=5)
    with pytest.raises(ValueError, match="estimates it"):
        sample(ManifoldDensity(flat, spaces), SGGMC(gradient_noise="estimated"), n_iter=5)
    with pytest.raises(ValueError, match="parameter spaces"):
        sample(ManifoldDensity(flat, spaces), "gmc", geometry=[("sphere", 1)], n_iter=5)
    with pytest.raises(ValueError, match="none of those of ManifoldDensity: product"):
        sample(ManifoldDensity(flat, spaces), "gmc", geometry="sphere", n_iter=5)


@pytest.mark.parametrize(
    "geometry, match",
    [
        ([("sphere", 2)], "has 2 rows, and RestrictedGaussian has 3"),
        ([("sphere", 2), ("cube", 1)], "give a list of manifolds"),
        ([("sphere", 2), ("euclidean", 1)], "give a list of manifolds"),
        ([("sphere", 2.5), ("simplex", 0.5)], "give a list of manifolds"),
        ("product", "give a list of manifolds"),
        ([], "give a list of manifolds"),
        ([("stiefel", 3)], "at most as many rows"),
    ],
)
def test_lists_of_rows_are_checked(geometry, match):
    with pytest.raises(ValueError, match=match):
        sample(RestrictedGaussian(np.eye(3, 2)), "gmc", geometry=geometry, n_iter=5)


def test_a_target_on_one_manifold_takes_no_product():
    with pytest.raises(ValueError, match="none of those of MatrixCompletion: stiefel"):
        sample(MatrixCompletion(np.eye(3), [1.0], 0.3), "gmc", geometry=[("stiefel", 1)], n_iter=5)
