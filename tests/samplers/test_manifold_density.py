"""Densities of one's own on products of manifolds: their laws, their steps, what is refused."""

import pickle

import numba
import numpy as np
import pytest
from scipy import integrate
from sklearn.base import clone

from sk_sgmcmc import sample
from sk_sgmcmc.exceptions import ChainDivergedError
from sk_sgmcmc.samplers import GMC, GSGNHT, SGGMC
from sk_sgmcmc.targets import ManifoldDensity
from tests.cases import THRESHOLD, z_scores
from tests.samplers.test_geodesic_laws import N_CHAINS

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


NOISY = {"noise": 200.0, "batch_size": 1, "with_replacement": True, "n_iter": 40_000, "thin": 10}


@pytest.mark.parametrize(
    "sampler, options",
    [
        (GMC(0.3, 5), {"n_iter": 3000}),
        (SGGMC(0.02, 4.0), {"n_iter": 20_000, "thin": 5}),
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


@numba.njit
def pressed(theta, rows, scale, gradient):
    """Forces on a sphere, on the first member of a frame and on a simplex, and a flat part; ``rows`` are how strong."""
    force = rows[0]
    gradient[:] = 0.0
    gradient[0], gradient[3], gradient[9] = force[0], force[0], force[1]
    gradient[11] = -force[0] * theta[11]
    return force[0] * (theta[0] + theta[3]) + force[1] * theta[9] - 0.5 * force[0] * theta[11] ** 2


class NoPull(ManifoldDensity):
    """Mistake: the step is that of the density in the surrounding space, in which a linear one has no curvature."""

    def _curvature(self, gradient, theta):
        return 0.0


def pressed_ratios(make, sampler, on_spheres, on_simplex):
    """What the draws have of the exact mean distances from where each force points, and of the flat part's variance."""
    spaces = {"x": ("sphere", 3), "f": ("stiefel", (2, 3)), "w": ("simplex", 2), "c": ("euclidean", 1)}
    start = {"x": [1.0, 0.0, 0.0], "w": [0.9, 0.1]}
    target = make(pressed, spaces, data=[[on_spheres, on_simplex]], start=start)
    draws = sample(target, sampler, n_iter=40_000, n_chains=4, random_state=0).samples_
    along = 1.0 / np.tanh(on_spheres) - 1.0 / on_spheres
    away = 1.0 / on_simplex - 1.0 / np.expm1(on_simplex)  # exponential on (0, 1)
    return np.array([
        (1.0 - draws["x"][..., 0]).mean() / (1.0 - along),
        (1.0 - draws["f"][..., 0, 0]).mean() / (1.0 - along),
        (1.0 - draws["w"][..., 0]).mean() / away,
        on_spheres * (draws["c"] ** 2).mean(),
    ])  # fmt: skip


@pytest.mark.parametrize("on_spheres, on_simplex", [(1000.0, 10.0), (20.0, 40.0)])
@pytest.mark.parametrize("sampler", ["sggmc", "gsgnht"])
def test_the_step_of_auto_suits_the_stiffest_part(sampler, on_spheres, on_simplex):
    np.testing.assert_allclose(pressed_ratios(ManifoldDensity, sampler, on_spheres, on_simplex), 1.0, atol=0.15)


def test_a_step_that_knows_no_force_is_rejected():
    """It is beyond the stability of the flat part."""
    with pytest.raises(ChainDivergedError):
        pressed_ratios(NoPull, "sggmc", 1000.0, 1.0)


def test_the_step_of_auto_is_shorter_under_noise():
    steps = [
        sample(coupled_target(noise), "sggmc", n_iter=5, batch_size=10, random_state=0).sampler_.step_size_(0)
        for noise in (0.0, 200.0)
    ]
    assert steps[1] < 0.5 * steps[0]


# ------------------------------------------------------------------------------------------------------- wide and flat


@numba.njit
def free(theta, rows, scale, gradient):
    gradient[:] = 0.0
    return 0.0


@pytest.mark.parametrize("sampler, n_iter", [("gmc", 1500), (GMC(5000.0), 300), (GMC(1e7), 100)], ids=str)
def test_frames_without_a_force_stay_frames(sampler, n_iter):
    """Where nothing bounds the step, what rounding does in thousands of turns is a rejection."""
    target = ManifoldDensity(free, {"f": ("stiefel", (2, 3))})
    F = sample(target, sampler, n_iter=n_iter, n_chains=4, random_state=0).samples_["f"]
    assert np.abs(F @ F.swapaxes(-1, -2) - np.eye(2)).max() < 1e-12
    assert n_iter < 1000 or (F**2).mean(axis=(0, 1)) == pytest.approx(np.full((2, 3), 1 / 3), abs=0.03)


def test_a_square_frame_keeps_its_determinant():
    target = ManifoldDensity(flat, {"f": ("stiefel", (2, 2))}, start={"f": [[1.0, 0.0], [0.0, -1.0]]})
    np.testing.assert_allclose(np.linalg.det(sample(target, "gmc", n_iter=200, random_state=0).samples_["f"]), -1.0)


# ---------------------------------------------------------------------------------------------------------- objects


def test_a_density_is_cloned_pickled_and_changes_nothing_of_the_users():
    start_ = {"x": np.array([0.0, 1.0])}
    data, spaces = np.ones((4, 2)), {"x": ("sphere", (2,)), "c": ("euclidean", (2,))}
    target = ManifoldDensity(flat, spaces, data=data, start=start_)
    init = np.array([1.0, 0.0, 0.0, 0.0])
    draws = [
        sample(each, "gmc", n_iter=20, init=init, random_state=0).samples_["x"]
        for each in (target, clone(target), pickle.loads(pickle.dumps(target)))
    ]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[0], draws[2])
    assert data.tolist() == np.ones((4, 2)).tolist() and start_["x"].tolist() == [0.0, 1.0]
    assert spaces == {"x": ("sphere", (2,)), "c": ("euclidean", (2,))} and init.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert clone(target).set_params(spaces={"x": ("sphere", 4)}).dimension == 3


# --------------------------------------------------------------------------------------------------------- arguments


@numba.njit
def wrong_slope(theta, rows, scale, gradient):
    gradient[:] = theta
    return -0.5 * np.sum(theta[:2] ** 2)


@numba.njit
def masked(theta, rows, scale, gradient):
    """The slope of a small part has the wrong sign, beside a large one that is right."""
    gradient[0], gradient[1], gradient[2], gradient[3] = -30.0, 0.0, -5000.0 * (theta[2] - 3.0), 0.0
    return 30.0 * theta[0] - 2500.0 * (theta[2] - 3.0) ** 2


@numba.njit
def no_number(theta, rows, scale, gradient):
    gradient[:] = 0.0
    gradient[1] = np.nan
    return 0.0


def test_a_small_part_is_not_hidden_by_a_large_one():
    spaces = {"x": ("sphere", (2,)), "c": ("euclidean", (2,))}
    with pytest.raises(ValueError, match="of the part 'x' does not fit"):
        sample(ManifoldDensity(masked, spaces), "gmc", n_iter=5)


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
        ({"x": ("sphere", (np.inf,))}, "must be a manifold"),
        ({"x": ("simplex", (3, 1))}, "nothing can move"),
        ({"x": ("stiefel", (1, 1))}, "nothing can move"),
        ({"velocity": ("sphere", (3,))}, "velocity"),
        ({1: ("sphere", (3,))}, "give a string"),
    ],
)
def test_spaces_are_checked(spaces, match):
    with pytest.raises(ValueError, match=match):
        sample(ManifoldDensity(flat, spaces), "gmc", n_iter=5)


def test_starts_gradients_and_noise_are_checked():
    spaces = {"x": ("sphere", (2,)), "c": ("euclidean", (2,))}
    for start_, match in [({"y": [0.0, 1.0]}, "names of parts: x, c"), ({"x": [0.0]}, "in spaces it is"),
                          ({"x": [1.0, 1.0]}, "off the manifold"), ({"c": [np.nan, 0.0]}, "off the manifold"),
                          ({"x": "abc"}, "must be numbers of shape"), ([1.0], "must be a dict")]:  # fmt: skip
        with pytest.raises(ValueError, match=match):
            sample(ManifoldDensity(flat, spaces, start=start_), "gmc", n_iter=5)
    with pytest.raises(ValueError, match=r"off the manifold by 8, in its block 0 \(sphere\)"):
        sample(ManifoldDensity(flat, spaces), "gmc", n_iter=5, init=[3.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="a ManifoldDensity takes parts by name"):
        sample(ManifoldDensity(flat, spaces), "gmc", n_iter=5, init={"x": [1.0, 0.0]})
    bad = ManifoldDensity(wrong_slope, spaces, start={"x": [1.0, 0.0], "c": [1.0, 1.0]})
    with pytest.raises(ValueError, match="of the part 'c' does not fit the log density"):
        sample(bad, "gmc", n_iter=5)
    for check in (True, False):
        with pytest.raises(ValueError, match="gradient at the start is nan in entry 1 of theta"):
            sample(ManifoldDensity(no_number, spaces, check_gradient=check), "sggmc", n_iter=5)
    with pytest.raises(ValueError, match="estimates it"):
        sample(ManifoldDensity(flat, spaces), SGGMC(gradient_noise="estimated"), n_iter=5)
    for given in ([("sphere", 1)], []):
        with pytest.raises(ValueError, match="takes its geometry from `spaces`"):
            sample(ManifoldDensity(flat, spaces), "gmc", geometry=given, n_iter=5)
    with pytest.raises(ValueError, match="not available for ManifoldDensity: use product"):
        sample(ManifoldDensity(flat, spaces), "gmc", geometry="sphere", n_iter=5)
