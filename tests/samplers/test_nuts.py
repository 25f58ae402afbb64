"""NUTS: its transition against the slow one, its law in closed form and by quadrature, what it learns and reports."""

import numba
import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc import sample
from sk_sgmcmc.kernels._jit import OK
from sk_sgmcmc.kernels.models.conjugate import gaussian_mean
from sk_sgmcmc.kernels.samplers import windows
from sk_sgmcmc.kernels.samplers.nuts import N_STATISTICS, run_nuts
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.samplers import HMC, NUTS
from sk_sgmcmc.samplers._mass import structure_of, window_ends
from sk_sgmcmc.targets import Density, GaussianMean
from tests.cases import N_BATCHES, THRESHOLD, z_scores
from tests.flat_cases import COVARIANCE, MASS, PRECISION, TARGET_LAW, D, log_density, moments
from tests.flat_cases import gradient as slope_of
from tests.naive import nuts as naive


def gaussian(q):
    return log_density(q), slope_of(q)


def transitions(sampler, n, seed, theta=None):
    """Positions by the kernel, from a fixed start."""
    fitted = sampler._resolved(None)
    theta = np.linspace(-1.0, 1.0, D)[:, None].copy() if theta is None else theta
    aux, scalars = fitted._state(theta, "euclidean", 0)
    data = np.zeros((1, D)), np.zeros((1, 0)), np.ones(1), np.concatenate([[0.0], PRECISION.ravel()])
    kept, statistics = np.empty((n, D, 1)), np.empty((n, N_STATISTICS))
    rng = np.random.default_rng(seed)
    status, made = run_nuts(
        theta, aux, scalars, *data, fitted._hyper(0, n), np.arange(n), kept, statistics, gaussian_mean.compiled, rng
    )
    assert (status, made) == (OK, n)
    return kept[..., 0], fitted._statistics(statistics), rng


@pytest.mark.parametrize("mass", [None, [0.5, 1.0, 2.0], MASS], ids=["identity", "diagonal", "full"])
@pytest.mark.parametrize("h, max_depth", [(0.9, 10), (0.1, 10), (0.05, 3)])
def test_kernel_makes_the_transitions_of_the_slow_one(mass, h, max_depth):
    n = 20
    got, seen, rng = transitions(NUTS(step_size=h, mass=mass, max_depth=max_depth), n, 0)
    M = np.eye(D) if mass is None else np.diag(mass) if np.ndim(mass) == 1 else mass
    twin = np.random.default_rng(0)
    statistics = []
    expected = naive.chain(
        gaussian, np.linspace(-1.0, 1.0, D), np.linalg.inv(M), h, max_depth, n, twin, statistics=statistics
    )
    np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-10)
    names = ("lp", "energy", "acceptance_rate", "tree_depth", "n_steps", "diverging")
    np.testing.assert_allclose(np.column_stack([seen[name] for name in names]), statistics, rtol=1e-6, atol=1e-8)
    assert np.all(seen["step_size"] == h)
    assert rng.random() == twin.random()  # as many random numbers


# -------------------------------------------------------------------------------------------------------------- laws


def test_nuts_leaves_a_correlated_gaussian_invariant(global_random_seed):
    draws, *_ = transitions(NUTS(step_size=0.8, mass=MASS), 40_000, global_random_seed)
    batches = draws[: len(draws) // N_BATCHES * N_BATCHES].reshape(N_BATCHES, -1, D)
    assert np.abs(z_scores(np.array([moments(batch) for batch in batches]), TARGET_LAW)).max() < THRESHOLD


def wells(q):
    """Two wells, (1, 1) and (-1, -1), joined by a pass."""
    x, y = q
    slope = np.array([-4.0 * x * (x**2 - 1.0) - 4.0 * (x - y), -4.0 * (y - x)])
    return -((x**2 - 1.0) ** 2) - 2.0 * (x - y) ** 2, slope


@numba.njit
def jitted_wells(theta, rows, scale, gradient):
    x, y = theta[0], theta[1]
    gradient[0] = -4.0 * x * (x**2 - 1.0) - 4.0 * (x - y)
    gradient[1] = -4.0 * (y - x)
    return -((x**2 - 1.0) ** 2) - 2.0 * (x - y) ** 2


def wells_moments(x, y):
    return np.stack([x, y, x**2, x * y, y**2, x**4, np.exp(-4.0 * x**2)], axis=-1)


def wells_law():
    """By quadrature on a grid."""
    x, y = np.meshgrid(np.linspace(-4, 4, 401), np.linspace(-7, 7, 701))
    weight = np.exp(-((x**2 - 1.0) ** 2) - 2.0 * (x - y) ** 2)
    return (weight[..., None] * wells_moments(x, y)).sum(axis=(0, 1)) / weight.sum()


def wells_score(draws):
    batches = draws[: len(draws) // N_BATCHES * N_BATCHES].reshape(N_BATCHES, -1, 2)
    return np.abs(z_scores(wells_moments(batches[..., 0], batches[..., 1]).mean(axis=1), wells_law())).max()


def test_nuts_leaves_two_wells_invariant(global_random_seed):
    sampler = NUTS(step_size=0.5)
    result = sample(Density(jitted_wells, dim=2), sampler, n_iter=60_000, burn_in=0.02, random_state=global_random_seed)
    assert wells_score(result.samples_["theta"][0]) < THRESHOLD


@pytest.mark.parametrize("broken, h", [("", 0.5), ("", 0.95), ("weights", 0.95), ("half step", 0.95), ("square", 0.5)])
def test_the_same_test_rejects_broken_transitions(broken, h, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    score = wells_score(naive.chain(wells, np.ones(2), np.eye(2), h, 10, 32_000, rng, broken))
    assert score > 1.3 * THRESHOLD if broken else score < THRESHOLD


@pytest.mark.parametrize("sampler", [NUTS(mass="diagonal"), NUTS(mass="full"), HMC(mass="diagonal"), HMC(mass="full")])
def test_masses_learnt_in_windows_keep_the_target(sampler, global_random_seed):
    target = GaussianMean(np.zeros((1, 3)), PRECISION)
    result = sample(target, sampler, n_iter=1200, burn_in=400, n_chains=N_BATCHES, random_state=global_random_seed)
    values = np.array([moments(chain) for chain in result.samples_["theta"]])
    assert np.abs(z_scores(values, TARGET_LAW)).max() < THRESHOLD
    masses = result.sampler_.inverse_mass_
    assert np.ptp(masses[:, 0]) > 0.0  # each chain learns its own
    wanted = COVARIANCE if sampler.mass == "full" else np.diag(COVARIANCE)
    np.testing.assert_allclose(masses.mean(axis=0), wanted, atol=0.4)


# -------------------------------------------------------------------------------------------------------- adaptation


def test_windows_double_and_leave_room_for_the_step():
    assert window_ends(1000) == (75, [100, 150, 250, 450, 900])
    assert window_ends(300) == (75, [100, 150, 250])
    assert window_ends(100) == (15, [90])
    assert window_ends(39) == window_ends(np.inf) == (0, [])
    assert structure_of("auto", 10, 1000) == "full"
    assert structure_of("auto", 150, 1000) == "diagonal"
    assert structure_of("auto", 10, 5) == "auto"
    assert structure_of("full", 500, 5) == "full"


@pytest.mark.parametrize("sampler", ["nuts", "hmc"])
@pytest.mark.parametrize("n_iter", [40, 50, 60, 78])
def test_short_burn_ins_find_a_step_that_is_accepted(sampler, n_iter):
    target = GaussianMean(np.zeros((1, 5)))
    result = sample(target, sampler, n_iter=n_iter, n_chains=20, init=np.ones(5), random_state=0)
    assert np.median(result.sampler_.acceptance_rate_) > 0.5 and result.sampler_.acceptance_rate_.min() > 0.1


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_chance_correlations_of_a_window_are_shrunk_and_true_ones_kept(rho):
    d, n = 20, 60
    covariance = rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    draws = np.random.default_rng(0).multivariate_normal(np.zeros(d), covariance, n)
    found = np.cov(draws.T)
    share = windows.shrinkage_of(found, float(n))
    assert share > 0.8 if rho == 0.0 else share < 0.1
    shrunk = (1.0 - share) * found + share * np.diag(np.diag(found))
    condition = [np.linalg.cond(np.linalg.solve(covariance, matrix)) for matrix in (found, shrunk)]
    assert condition[1] < 0.6 * condition[0]


def test_nothing_is_learnt_after_burn_in():
    target = GaussianMean(np.zeros((1, 3)), PRECISION)
    one, two = (sample(target, "nuts", n_iter=n, burn_in=200, random_state=0) for n in (400, 700))
    np.testing.assert_array_equal(one.sampler_.inverse_mass_, two.sampler_.inverse_mass_)
    np.testing.assert_array_equal(one.sampler_.step_factor_, two.sampler_.step_factor_)
    np.testing.assert_array_equal(one.samples_["theta"], two.samples_["theta"][:, :200])


@pytest.mark.parametrize("sampler", ["nuts", "hmc"])
def test_steps_adapt_to_the_acceptance_rate_and_units(sampler):
    target = GaussianMean(np.zeros((1, 3)), np.diag([1e-4, 1.0, 1e4]))
    result = sample(target, sampler, n_iter=1500, n_chains=2, random_state=0)
    assert result.sampler_.mass == "full"
    spread = np.sqrt(np.stack([np.diag(W) for W in result.sampler_.inverse_mass_]))
    np.testing.assert_allclose(spread / [100.0, 1.0, 0.01], 1.0, atol=0.35)
    assert np.all(np.abs(result.sampler_.acceptance_rate_ - 0.87) < 0.12)
    assert effective_sample_size(result.samples_["theta"]).min() > 300


def test_a_given_step_is_left_alone():
    target = GaussianMean(np.zeros((1, 3)), PRECISION)
    result = sample(target, NUTS(step_size=0.3), n_iter=200, random_state=0)
    assert result.sampler_.mass == "auto" and np.all(result.sampler_.step_factor_ == 1.0)


# ------------------------------------------------------------------------------------------------- what it reports


@numba.njit
def funnel(theta, rows, scale, gradient):
    v = theta[0]
    inside = 0.0
    for k in range(1, theta.size):
        inside += theta[k] ** 2
        gradient[k] = -theta[k] * np.exp(-v)
    gradient[0] = -v / 9.0 + 0.5 * inside * np.exp(-v) - 0.5 * (theta.size - 1)
    return -(v**2) / 18.0 - 0.5 * inside * np.exp(-v) - 0.5 * (theta.size - 1) * v


def test_a_mild_funnel_has_its_law(global_random_seed):
    # v ~ N(0, 3^2) is missed in its neck by adapted steps; with two dimensions and short steps the neck is reached.
    result = sample(
        Density(funnel, dim=2), NUTS(step_size=0.03), n_iter=8000, n_chains=4, random_state=global_random_seed
    )
    v = result.samples_["theta"][..., 0]
    pieces = v.reshape(40, -1)
    for found, law in ((pieces, 0.0), (pieces**2, 9.0), (pieces < stats.norm.ppf(0.1, scale=3.0), 0.1)):
        means = found.mean(axis=1)
        assert abs(means.mean() - law) < THRESHOLD * means.std(ddof=1) / np.sqrt(len(means))


def test_deepest_trajectories_and_gradients_are_counted():
    result = sample(GaussianMean(np.zeros((1, 3)), PRECISION), NUTS(step_size=0.01, max_depth=2), n_iter=100)
    assert result.sampler_.n_deepest_.tolist() == [50]
    assert result.sampler_.n_leapfrog_.tolist() == [150]


def test_default_of_densities_is_nuts_from_starts_apart():
    result = sample(Density(jitted_wells, dim=2), n_iter=50, burn_in=0, n_chains=3, random_state=0)
    assert isinstance(result.sampler_, NUTS)
    first = result.samples_["theta"][:, 0]
    assert len(np.unique(first[:, 0])) == 3
    again = sample(Density(jitted_wells, dim=2), n_iter=50, burn_in=0, n_chains=3, n_jobs=2, random_state=0)
    np.testing.assert_array_equal(result.samples_["theta"], again.samples_["theta"])
