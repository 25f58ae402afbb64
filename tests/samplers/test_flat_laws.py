"""Samplers on flat space have their laws, with their step sizes and under masses that are not the identity."""

from dataclasses import replace

import numba
import numpy as np
import pytest

from sk_sgmcmc import sample
from sk_sgmcmc.samplers import HMC, NUTS, SGHMC, SGNHT, SGNPHMC, MonteCarloEM
from sk_sgmcmc.samplers._registry import LEARNT_MASS
from sk_sgmcmc.targets import Density, GaussianMean
from tests.cases import N_BATCHES, THRESHOLD, Case, z_scores
from tests.flat_cases import (
    COVARIANCE,
    FLAT_CASES,
    MASS,
    PRECISION,
    TARGET_LAW,
    D,
    FlatCase,
    gradient,
    linear_law,
    moments,
    split_law,
)  # fmt: skip
from tests.naive import euclidean as naive

BROKEN = [pytest.param(case, name, id=f"{key}-{name}") for key, case in FLAT_CASES.items() for name in case.broken]


@pytest.mark.parametrize("case", FLAT_CASES.values(), ids=FLAT_CASES)
def test_sampler_has_its_law(case, global_random_seed):
    assert np.abs(case.z_scores(global_random_seed)).max() < THRESHOLD


@pytest.mark.parametrize("case, name", BROKEN)
def test_broken_variant_is_rejected(case, name, global_random_seed):
    assert np.abs(case.z_scores(global_random_seed, case.broken[name])).max() > 1.3 * THRESHOLD


def bias_slope(case, h, time, seed=0):
    """log2 of the ratio of biases at h and h/2, each moment weighted by its precision; and its standard error."""
    case = replace(case, time=time)
    bias, error = [], []
    for size in (h, h / 2):
        means = case.batch_means(size, np.random.default_rng(seed))
        bias.append(means.mean(axis=0) - TARGET_LAW)
        error.append(means.std(axis=0, ddof=1) / np.sqrt(N_BATCHES))
    assert np.abs(bias[0] / error[0]).max() > 10.0
    weight = bias[0] / error[1] ** 2
    ratio = weight @ bias[1] / (weight @ bias[0])
    slack = np.sqrt(weight**2 @ error[1] ** 2) / (weight @ bias[0]) / ratio / np.log(2.0)
    print(f"{case.sampler!r}: slope of the bias from h={h} to {h / 2}: {-np.log2(ratio):.2f} +- {slack:.2f}")
    return -np.log2(ratio), slack


def test_linear_chains_have_their_covariance_in_closed_form():
    # On a Gaussian "baoab" and "aboba" have no error in the covariance, and the error of "ubu" is of second order. So
    # is Euler's, one better than its order in general: with its kick before its drift it is conjugate to a symmetric
    # step.
    for twin, n_normals in ((naive.sghmc_euler, D), (naive.sghmc_ubu, 4 * D)):
        laws = [split_law(twin, h, 1.5, MASS, n_normals) for h in (0.1, 0.05, 0.025)]
        bias = [np.abs(law - TARGET_LAW).max() for law in laws]
        np.testing.assert_allclose(np.log2(np.divide(bias[:-1], bias[1:])), 2.0, atol=0.2)
    for twin in (naive.sghmc_baoab, naive.sghmc_aboba):
        np.testing.assert_allclose(split_law(twin, 0.8, 1.5, MASS), TARGET_LAW, atol=1e-10)


def bitten(state, rng):
    """SGLD in four steps of h / 4, which draws 4 D numbers."""
    for _ in range(4):
        state = state + 0.025 * gradient(state) + np.sqrt(0.05) * rng.standard_normal(D)
    return state


def test_a_linear_law_counts_the_normal_numbers_of_its_twin():
    def one(theta, rng):
        return naive.sgld(theta, gradient, 0.025, 1.0, 1.0, rng)

    np.testing.assert_allclose(linear_law(bitten, D, n_normals=4 * D), linear_law(one, D), rtol=1e-10)
    for n in (D, 5 * D):
        with pytest.raises(ValueError, match=f"n_normals={n}, but the twin draws"):
            linear_law(bitten, D, n_normals=n)


def test_a_case_without_a_broken_variant_is_refused():
    for make in (lambda: FlatCase(SGHMC(), 0.1, 1.0), lambda: Case(SGHMC(), None, 1.0, broken={})):
        with pytest.raises(ValueError, match="must hold at least one step with a mistake"):
            make()


# Where the bias is large against its error: step size, time, order. The thermostat's splitting is not here: on this
# Gaussian its terms in h^2 and h^4 cancel near h = 0.9 (measured 1.31 +- 0.14 from 0.6 to 0.3), and below, the bias is
# lost in the error; it has a density of its own below.
ORDERS = {
    "sgld, h=0.3": (0.2, 10_000.0, 1),
    "sg-nphmc kinetic": (1.0, 10_000.0, 2),
}


@pytest.mark.parametrize("key", ORDERS)
def test_bias_has_the_order_that_is_claimed(key):
    h, time, order = ORDERS[key]
    slope, slack = bias_slope(FLAT_CASES[key], h, time)
    # A method of the other order would lie around 1.5 on the other side.
    assert slack < 0.3
    assert abs(slope - order) < 0.45


@numba.njit
def bent_well(theta, rows, scale, gradient):
    x, y = theta[0], theta[1]
    gradient[0] = -4.0 * np.tanh(x) - (x - y)
    gradient[1] = -(y - x) - y
    return -4.0 * np.log(np.cosh(x)) - 0.5 * (x - y) ** 2 - 0.5 * y**2


@pytest.mark.parametrize("scheme, steps, order", [("aboba", (0.4, 0.24), 2), ("euler", (0.2, 0.1), 1)])
def test_bias_of_thermostats_has_the_order_that_is_claimed(scheme, steps, order, global_random_seed):
    x, y = np.meshgrid(np.linspace(-8, 8, 401), np.linspace(-8, 8, 401))
    weight = np.exp(-4.0 * np.log(np.cosh(x)) - 0.5 * (x - y) ** 2 - 0.5 * y**2)
    exact = (weight * y**2).sum() / weight.sum()
    bias, error = np.empty(2), np.empty(2)
    for i, h in enumerate(steps):
        args = {"n_iter": 60_000, "n_chains": 20, "burn_in": 0.02, "random_state": global_random_seed}
        draws = sample(Density(bent_well, dim=2), SGNHT(step_size=h, scheme=scheme), **args).samples_["theta"]
        means = (draws[:, :, 1] ** 2).mean(axis=1)
        bias[i], error[i] = means.mean() - exact, means.std(ddof=1) / np.sqrt(20)
    assert abs(bias[0] / error[0]) > 10.0
    slope = np.log(bias[0] / bias[1]) / np.log(steps[0] / steps[1])
    slack = np.hypot(*(error / bias)) / np.log(steps[0] / steps[1])
    print(f"{scheme}: slope {slope:.2f} +- {slack:.2f}")
    assert slack < 0.2
    assert abs(slope - order) < 0.1 + 4.0 * slack < 1.0


@pytest.mark.parametrize("cls", [HMC, NUTS])
def test_a_step_that_is_given_does_not_adapt(cls):
    target, kwargs = GaussianMean(np.zeros((1, 3)), PRECISION), {"n_iter": 200, "burn_in": 100, "random_state": 0}
    draws = [sample(target, cls(0.3, target_accept=rate), **kwargs).samples_["theta"] for rate in (0.5, 0.99)]
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("structure", ["diagonal", "full"])
@pytest.mark.parametrize("cls", [HMC, SGHMC, SGNHT, SGNPHMC])
def test_learnt_masses_keep_the_target(cls, structure, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    target = GaussianMean(rng.normal(size=(1, 3)), PRECISION)
    mean, covariance = target.posterior()
    np.testing.assert_allclose(covariance, COVARIANCE)
    n, h = (2000, 0.4) if cls is HMC else (12_000, 0.15)
    sampler = cls(step_size=h, mass=MonteCarloEM(structure, n_momenta=100))
    result = sample(target, sampler, n_iter=n, burn_in=n // 3, n_chains=N_BATCHES, random_state=global_random_seed)
    values = np.array([moments(chain - mean) for chain in result.samples_["theta"]])
    assert np.abs(z_scores(values, TARGET_LAW)).max() < THRESHOLD
    masses = result.sampler_.inverse_mass_
    assert np.ptp(masses[:, 0]) > 0.0  # each chain learns its own
    assert np.all(result.sampler_.n_momenta_ >= 100)
    eigenvalues = np.linalg.eigvalsh(masses) if structure == "full" else masses
    assert np.all(eigenvalues >= 0.01 - 1e-12) and np.all(eigenvalues <= 100.0 + 1e-9)


def test_a_mass_learnt_at_another_temperature_does_not_run_away(global_random_seed):
    target = GaussianMean(np.random.default_rng(0).standard_normal((20, 2)))
    sampler = SGHMC(mass=MonteCarloEM(n_momenta=200, every=2), temperature=0.1)
    draws = sample(target, sampler, n_iter=10_000, n_chains=4, random_state=global_random_seed)
    assert np.abs(np.log(draws.sampler_.inverse_mass_)).max() < 2.5  # the bounds are at 4.6
    np.testing.assert_allclose(20 * draws.samples_["theta"].var(axis=(0, 1)), 0.1, rtol=0.3)


def test_names_with_em_are_samplers_with_a_learnt_mass():
    for name, make in LEARNT_MASS.items():
        assert make()._name + "-em" == name
        assert isinstance(make().mass, MonteCarloEM) and make().mass is not make().mass


def test_a_learnt_mass_is_frozen_after_burn_in():
    target = GaussianMean(np.zeros((1, 3)), PRECISION)
    one, two = (
        sample(target, SGHMC(step_size=0.2, mass=MonteCarloEM(n_momenta=50)), n_iter=n, burn_in=1000, random_state=0)
        for n in (1500, 4000)
    )
    np.testing.assert_array_equal(one.sampler_.inverse_mass_, two.sampler_.inverse_mass_)
    np.testing.assert_array_equal(one.samples_["theta"], two.samples_["theta"][:, :500])


def test_thermostat_takes_out_noise_that_friction_does_not(global_random_seed):
    # White noise in the gradient, by minibatches drawn with replacement from rows around the same mean.
    rng = np.random.default_rng(global_random_seed)
    target = GaussianMean(rng.normal(size=(200, 3)), np.eye(3))
    _, covariance = target.posterior()
    args = {"batch_size": 2, "with_replacement": True, "n_iter": 40_000, "n_chains": 10, "random_state": 0}
    spread = {}
    for sampler in (SGNHT(step_size=0.005, noise=5.0), SGHMC(step_size=0.005, friction=5.0)):
        draws = sample(target, sampler, **args).samples_["theta"]
        spread[sampler._name] = draws.reshape(-1, 3).var(axis=0).mean() / covariance[0, 0]
    assert abs(spread["sgnht"] - 1.0) < 0.25
    assert spread["sghmc"] > 3.0
