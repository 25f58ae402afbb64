"""Geodesic samplers have their laws, and variants with one mistake are rejected by the same tests."""

import numpy as np
import pytest
from scipy import integrate
from sklearn.base import clone

from sk_sgmcmc import sample
from sk_sgmcmc.kernels._jit import FLOW, OK, PROJECT, TRANSITION, kernel
from sk_sgmcmc.kernels.math.special import von_mises_fisher_table
from sk_sgmcmc.kernels.samplers import geodesic
from sk_sgmcmc.kernels.samplers.geometry import SPHERE, move_spheres, project_spheres
from sk_sgmcmc.samplers import GMC, GSGNHT, SGGMC
from sk_sgmcmc.targets import ChainedVonMisesFisher, ExponentialMixture, MatrixCompletion, RestrictedGaussian
from tests.cases import THRESHOLD, z_scores

N_CHAINS = 30


def statistics(target, sampler, function, n_iter, seed, **kwargs):
    """Means over each chain, (N_CHAINS, n_statistics), of ``function`` of the draws, and the squared velocity."""
    result = sample(target, sampler, n_iter=n_iter, n_chains=N_CHAINS, burn_in=0.1, random_state=seed, **kwargs)
    x = result.samples_["x"]
    means = np.stack([np.asarray(value).mean(axis=1) for value in function(x)], axis=-1)
    heat = (result.samples_["velocity"] ** 2).sum(axis=(2, 3)).mean(axis=1) if "velocity" in result.samples_ else None
    return means, heat


class Broken:
    """Another step in the place of the sampler's own."""

    def __init_subclass__(cls, step=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._broken = step

    def _kernels(self, geometry):
        return super()._kernels(geometry)[0], self._broken


@kernel(TRANSITION)
def noise_not_projected(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: the gradient is projected, the noise is not."""
    h = hyper[0]
    decay = np.exp(-0.5 * h * scalars[1])
    velocity = aux[0]
    for r in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            velocity[r, i] = velocity[r, i] * decay + h * signal[r, i]
    project_spheres(theta, velocity, geodesic.blocks_of(scalars))
    for r in range(theta.shape[0]):
        for i in range(theta.shape[1]):
            velocity[r, i] = decay * (velocity[r, i] + np.sqrt(2.0 * np.sinh(h * hyper[1])) * rng.standard_normal())
    return geodesic.half_flow(SPHERE, move_spheres, theta, velocity, scalars, hyper)


@kernel(TRANSITION)
def embedding_size(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake (published code): the thermostat divided by the size of the array, not of the manifold."""
    half = 0.5 * hyper[0] * hyper[4]
    n, dim = theta.size, theta.shape[0] * (theta.shape[1] - 1.0)
    # Both half steps of this step, put right by their difference from the right ones.
    scalars[1] += geodesic.squared_norm(aux[0]) * (1.0 / n - 1.0 / dim) * half
    status = geodesic.second_half(SPHERE, move_spheres, project_spheres, theta, aux, scalars, signal, extra, hyper, rng)
    scalars[1] += geodesic.squared_norm(aux[0]) * (1.0 / n - 1.0 / dim) * half
    return status


class UnprojectedSGGMC(Broken, SGGMC, step=noise_not_projected):
    pass


class EmbeddedGSGNHT(Broken, GSGNHT, step=embedding_size):
    pass


# -------------------------------------------------------------------------------------------------- the toy circle

# E[x] and P(phi > 0) of 5 exp(mu_1'x) + 2 exp(5 mu_2'x), by quadrature.
TOY = np.array([0.446692, -0.257897, 0.338483])
DIRECTIONS = 5.0 * np.array([[0.5, np.sqrt(0.75)], [0.5, -np.sqrt(0.75)]])


def toy(noise=0.0):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((5000, 2))
    Z -= Z.mean(axis=0)
    Z = Z @ np.linalg.inv(np.linalg.cholesky(Z.T @ Z / len(Z))).T  # covariance exactly the identity
    return ExponentialMixture(DIRECTIONS, [1.0, 2.0], linear_terms=np.sqrt(noise) * Z / len(Z))


def toy_z(sampler, seed, n_iter, **kwargs):
    means, heat = statistics(
        toy(1800.0), sampler, lambda x: (x[:, :, 0, 0], x[:, :, 0, 1], x[:, :, 0, 1] > 0), n_iter, seed, **kwargs
    )
    return z_scores(means, TOY), heat


NOISY = {"n_iter": 60_000, "thin": 10, "batch_size": 1, "with_replacement": True}


@pytest.mark.parametrize(
    "sampler", [SGGMC(0.01, 10.0, 1800.0), GSGNHT(0.01, 10.0, 500.0), GSGNHT(0.01, 10.0, thermostat=15.0)], ids=repr
)
def test_toy_circle_under_a_noisy_gradient(sampler, global_random_seed):
    z, heat = toy_z(sampler, global_random_seed, **NOISY)
    assert np.abs(z).max() < THRESHOLD
    assert abs(heat.mean() - 1.0) < 0.03


def test_noise_variance_can_be_estimated(global_random_seed):
    z, heat = toy_z(SGGMC(0.01, 10.0, "estimated"), global_random_seed, **(NOISY | {"batch_size": 10}))
    assert np.abs(z).max() < THRESHOLD
    assert abs(heat.mean() - 1.0) < 0.04


def test_without_the_correction_the_toy_circle_is_rejected(global_random_seed):
    z, heat = toy_z(SGGMC(0.01, 10.0), global_random_seed, **NOISY)
    assert np.abs(z).max() > 1.3 * THRESHOLD
    assert heat.mean() > 1.4


def test_gmc_on_the_toy_circle(global_random_seed):
    z, _ = toy_z(GMC(0.3, 5), global_random_seed, n_iter=4000)
    assert np.abs(z).max() < THRESHOLD


# ------------------------------------------------------------------------------------- von Mises-Fisher and uniform


def vmf_z(sampler, V, kappa, seed, n_iter, n_rows=2, **kwargs):
    rng = np.random.default_rng(V)
    mu = rng.standard_normal((n_rows, V))
    mu /= np.linalg.norm(mu, axis=1, keepdims=True)
    across = np.roll(mu, 1, axis=1)
    across -= np.sum(across * mu, axis=1, keepdims=True) * mu
    out = [np.empty(1) for _ in range(3)]
    von_mises_fisher_table(float(V), np.array([float(kappa)]), *out)
    A = float(out[2][0])
    second = 1.0 - A * (V - 1) / kappa if kappa else 1.0 / V

    def function(x):
        along = np.einsum("csrv,rv->csr", x, mu)
        beside = np.einsum("csrv,rv->csr", x, across / np.linalg.norm(across, axis=1, keepdims=True))
        return along.mean(-1), (along**2).mean(-1), beside.mean(-1), (beside**2).mean(-1)

    target = RestrictedGaussian(kappa * mu)
    means, heat = statistics(target, sampler, function, n_iter, seed, **kwargs)
    if kappa and not isinstance(sampler, GMC):
        # An error of second order in the step size: extrapolated from h and h/2.
        half = clone(sampler).set_params(step_size=sampler.step_size / 2)
        finer, cooler = statistics(target, half, function, 2 * n_iter, seed + 1, **kwargs)
        means, heat = (4.0 * finer - means) / 3.0, (4.0 * cooler - heat) / 3.0
    return z_scores(means, [A, second, 0.0, (1.0 - second) / (V - 1)]), heat


@pytest.mark.parametrize("V, kappa", [(3, 0.0), (3, 5.0), (10, 5.0), (60, 100.0)])
@pytest.mark.parametrize("make", [SGGMC, GSGNHT, GMC])
def test_von_mises_fisher_in_many_dimensions(make, V, kappa, global_random_seed):
    size = 0.3 / np.sqrt(kappa + 1.0)
    sampler = GMC(3 * size, 7) if make is GMC else make(0.5 * size, friction=2.0 / size)
    z, heat = vmf_z(sampler, V, kappa, global_random_seed, 4000 if make is GMC else 12_000, thin=4)
    assert np.abs(z).max() < THRESHOLD
    if heat is not None:
        assert heat.mean() / (2 * (V - 1)) == pytest.approx(1.0, abs=0.03)


def heat_z(sampler, seed):
    """Without a force the temperature is exact at any step size."""
    _, heat = vmf_z(sampler, 3, 0.0, seed, 12_000, thin=4)
    return z_scores(heat[:, None], [4.0])[0]


@pytest.mark.parametrize(
    "sampler, broken",
    [
        (SGGMC(0.3, 3.0), UnprojectedSGGMC(0.3, 3.0)),
        (GSGNHT(0.1, 3.0, thermostat_mass=0.2), EmbeddedGSGNHT(0.1, 3.0, thermostat_mass=0.2)),
    ],
)
def test_temperature_is_right_and_broken_variants_are_rejected(sampler, broken, global_random_seed):
    assert abs(heat_z(sampler, global_random_seed)) < THRESHOLD
    assert abs(heat_z(broken, global_random_seed)) > 1.3 * THRESHOLD


@kernel(PROJECT)
def no_projection(theta, momentum, blocks):
    """Mistake: the momentum is not tangential."""
    return OK


@kernel(FLOW)
def straight_flow(theta, momentum, blocks, time):
    """Mistake: a straight line, then back to the sphere; the momentum is not transported."""
    for r in range(theta.shape[0]):
        theta[r] += time * momentum[r]
        theta[r] /= np.sqrt(np.sum(theta[r] ** 2))
    return OK


@pytest.mark.parametrize("flow, projection", [(None, no_projection), (straight_flow, None)])
def test_broken_gmc_is_rejected(flow, projection, global_random_seed):
    class BrokenGMC(GMC):
        def _kernels(self, geometry):
            own = super()._kernels(geometry)
            return flow or own[0], projection or own[1]

    assert np.abs(vmf_z(GMC(0.4, 4), 3, 5.0, global_random_seed, 8000)[0]).max() < THRESHOLD
    chain_z, _ = vmf_z(BrokenGMC(0.4, 4), 3, 5.0, global_random_seed, 8000)
    assert np.abs(chain_z).max() > 1.3 * THRESHOLD


@pytest.mark.parametrize("make, sizes", [(SGGMC, (0.2, 0.1)), (GSGNHT, (0.5, 0.25))])
def test_bias_is_of_second_order(make, sizes):
    """Of the temperature; a thermostat pins that, and the bias is in the position."""
    target = RestrictedGaussian(np.tile([[0.0, 0.0, 12.0]], (40, 1)))
    bias, error = [], []
    for h in sizes:
        n_iter = int((500 if make is SGGMC else 5000) / h)
        means, heat = statistics(target, make(h, friction=1.0), lambda x: (x[..., 2].mean(-1),), n_iter, 0, thin=4)
        value = heat / 80.0 if make is SGGMC else means[:, 0]
        exact = 1.0 if make is SGGMC else 1.0 / np.tanh(12.0) - 1.0 / 12.0
        bias.append(value.mean() - exact)
        error.append(value.std(ddof=1) / np.sqrt(N_CHAINS))
    assert np.all(np.abs(bias) > 10.0 * np.array(error)), (bias, error)
    slope = np.log2(bias[0] / bias[1])
    assert 1.6 < slope < 2.6, slope


# --------------------------------------------------------------------------------------------- simplex and frames


@pytest.mark.parametrize("sampler", [SGGMC(0.02, 5.0), GSGNHT(0.02, 5.0), GMC(0.1, 8)], ids=repr)
def test_truncated_gaussian_on_the_simplex(sampler, global_random_seed):
    b, A = np.array([3.0, -2.0, 1.0]), np.array([[8.0, 2.0, 0.0], [2.0, 6.0, -1.0], [0.0, -1.0, 4.0]])

    def density(y, x):
        v = np.array([x, y, 1 - x - y])
        return np.exp(b @ v - 0.5 * v @ A @ v)

    functions = (lambda v: v[0], lambda v: v[1], lambda v: v[0] ** 2, lambda v: v[0] * v[2])
    total = integrate.dblquad(density, 0, 1, 0, lambda x: 1 - x)[0]
    exact = [
        integrate.dblquad(lambda y, x, f=f: f(np.array([x, y, 1 - x - y])) * density(y, x), 0, 1, 0, lambda x: 1 - x)[0]
        / total
        for f in functions
    ]
    means, heat = statistics(
        RestrictedGaussian([b], A), sampler, lambda x: [f(np.moveaxis(x[:, :, 0], -1, 0)) for f in functions],
        4000 if isinstance(sampler, GMC) else 30_000, global_random_seed, geometry="simplex", thin=4,
    )  # fmt: skip
    assert np.abs(z_scores(means, exact)).max() < THRESHOLD
    assert heat is None or heat.mean() == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("sampler", [SGGMC(0.05, 3.0), GSGNHT(0.05, 3.0), GMC(0.3, 5)], ids=repr)
def test_a_member_of_a_frame_is_von_mises_fisher_and_the_other_uniform_across(sampler, global_random_seed):
    kappa = 4.0
    A = 1.0 / np.tanh(kappa) - 1.0 / kappa
    second = 1.0 - 2.0 * A / kappa
    means, heat = statistics(
        RestrictedGaussian([[kappa, 0.0, 0.0], [0.0, 0.0, 0.0]]), sampler,
        lambda x: (x[:, :, 0, 0], x[:, :, 0, 0] ** 2, x[:, :, 1, 0] ** 2, x[:, :, 1, 1]),
        1000 if isinstance(sampler, GMC) else 4000, global_random_seed, geometry="stiefel", thin=2,
    )  # fmt: skip
    assert np.abs(z_scores(means, [A, second, 0.5 * (1 - second), 0.0])).max() < THRESHOLD
    assert heat is None or heat.mean() == pytest.approx(3.0, abs=0.15)


# --------------------------------------------------------------------------------------------------------- arguments


def test_geometry_is_checked_and_bad_targets_are_refused():
    target = ExponentialMixture(DIRECTIONS)
    with pytest.raises(ValueError, match="geometry='stiefel'"):
        sample(target, "sggmc", geometry="stiefel")
    with pytest.raises(ValueError, match="does not fit"):
        sample(target, "scir")
    with pytest.raises(ValueError, match="quadratic"):
        sample(RestrictedGaussian([[1.0, 2.0]], np.ones((3, 3))), "gmc")
    with pytest.raises(ValueError, match="unit rows"):
        sample(ChainedVonMisesFisher([[1.0, 2.0]]), "gmc")
    with pytest.raises(ValueError, match="friction"):
        SGGMC(friction=-1.0)._resolved(0.1)


def test_every_default_runs_and_repeats_itself():
    for name in ("gmc", "sggmc", "gsgnht"):
        for geometry in ("sphere", "simplex", "stiefel"):
            a, b = (
                sample(RestrictedGaussian(np.eye(2, 4)), name, geometry=geometry, n_iter=20, random_state=3)
                for _ in range(2)
            )
            np.testing.assert_array_equal(a.samples_["x"], b.samples_["x"])


PRODUCT = [("stiefel", 2), ("simplex", 1), ("sphere", 1)]


@pytest.mark.parametrize("geometry", ["sphere", "simplex", "stiefel", PRODUCT], ids=str)
def test_no_drift_off_the_manifold_in_a_million_steps(geometry):
    pairs = [(geometry, 2)] if isinstance(geometry, str) else geometry
    linear = np.eye(sum(rows for _, rows in pairs), 3)
    result = sample(
        RestrictedGaussian(linear), SGGMC(0.1, 1.0), geometry=geometry, n_iter=1_000_000, burn_in=0, thin=500_000,
        random_state=0,
    )  # fmt: skip
    ends = np.cumsum([rows for _, rows in pairs])[:-1]
    parts = (np.split(result.samples_[name][0, -1], ends) for name in ("x", "velocity"))
    for (name, _), x, v in zip(pairs, *parts, strict=True):
        off = {"sphere": np.sum(x**2, axis=1) - 1, "simplex": x.sum(axis=1) - 1, "stiefel": x @ x.T - np.eye(len(x))}
        slip = {"sphere": np.sum(x * v, axis=1), "simplex": v.sum(axis=1), "stiefel": x @ v.T + v @ x.T}
        assert np.abs(off[name]).max() < 1e-14 and np.abs(slip[name]).max() < 1e-13
        assert name != "simplex" or x.min() >= 0.0


def test_the_step_of_auto_knows_data_faces_and_minibatches():
    data = np.repeat([[1.0, 0.0, 0.0]], 2000, axis=0)
    drawn = sample(RestrictedGaussian(linear=np.zeros((1, 3)), linear_terms=data), "sggmc", n_iter=4000, random_state=0)
    assert drawn.samples_["x"][..., 0].mean() == pytest.approx(0.9995, abs=3e-4)
    for force in (20.0, 100.0):  # exponential on the way to the face
        target = RestrictedGaussian(linear=[[force, 0.0]])
        drawn = sample(target, "sggmc", geometry="simplex", n_iter=20_000, random_state=0)
        assert 1.0 - drawn.samples_["x"][..., 0].mean() == pytest.approx(1.0 / force, rel=0.1)
    noise = 5.0 * np.random.default_rng(0).standard_normal((2000, 3))
    target = RestrictedGaussian(linear=[[5.0, 0.0, 0.0]], linear_terms=noise - noise.mean(axis=0))
    hot = sample(target, SGGMC(), n_iter=2000, batch_size=100, random_state=0)
    dense = {"batch_size": "auto", "n_iter": 10, "random_state": 0}
    assert hot.sampler_.step_size_(0) < 0.01 * sample(target, SGGMC(), **dense).sampler_.step_size_(0)
    taken = [
        sample(target, SGGMC(friction=c), n_iter=5, batch_size=100).sampler_.step_size_(0) for c in (0.0, 1.0, 2.0)
    ]
    assert taken[0] > taken[2] == pytest.approx(2.0 * taken[1])  # against 2 C, not h C; without friction, no limit


def test_a_friction_beyond_all_bounds_draws_velocities_anew():
    target = RestrictedGaussian(linear=[[1.0, 0.0, 0.0]])
    draws = [sample(target, SGGMC(1.0, c), n_iter=500, random_state=0).samples_["x"] for c in (299.0, 1e6)]
    np.testing.assert_allclose(*draws, atol=1e-6)


def test_a_start_off_the_manifold_is_refused():
    for geometry, init in [("sphere", [[1.0, 1.0]]), ("simplex", [[3.0, 0.0]]), ("stiefel", [[1.0, 1.0]])]:
        with pytest.raises(ValueError, match="off the manifold"):
            sample(RestrictedGaussian(linear=[[1.0, 0.0]]), "gmc", geometry=geometry, n_iter=5, init=init)


def test_kernels_read_the_inverse_of_the_mass_of_a_thermostat():
    heavy = GSGNHT(step_size=0.1, thermostat_mass=4.0)._resolved(None)._hyper(0, 3)
    without = SGGMC(step_size=0.1)._resolved(None)._hyper(0, 3)
    np.testing.assert_array_equal(heavy[:, -1], 0.25)
    np.testing.assert_array_equal(without[:, -1], 0.0)  # of infinite mass: it stays


def test_a_thermostat_starts_at_the_friction_or_where_it_is_set():
    friction = np.array([1.0, 3.0])
    np.testing.assert_array_equal(GSGNHT()._thermostat(friction)[0], friction)
    np.testing.assert_array_equal(GSGNHT(thermostat=2.5)._thermostat(friction)[0], [2.5, 2.5])


def test_a_thermostat_keeps_its_distance_from_a_friction_that_changes():
    before, after = (GSGNHT(step_size=0.1, friction=friction)._resolved(None) for friction in (2.0, 5.0))
    scalars = np.array([0.0, 7.0])
    after._keep_distance(before._hyper(0, 1)[0], 0, scalars)
    assert scalars[1] == 10.0


@pytest.mark.parametrize("sampler", [SGGMC(), GSGNHT(), GMC()])
def test_where_nothing_can_move_nothing_does(sampler):
    """The orthonormal frames of one vector in one dimension are two points."""
    draws = sample(MatrixCompletion(np.ones((6, 1)), [1.0], 1.0), sampler, n_iter=20, random_state=0)
    frames = next(iter(draws.samples_.values()))
    np.testing.assert_array_equal(frames, np.broadcast_to(frames.ravel()[0], frames.shape))
    assert abs(frames.ravel()[0]) == 1.0
