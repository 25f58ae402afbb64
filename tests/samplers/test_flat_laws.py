"""Samplers on flat space have their laws, with their step sizes and under masses that are not the identity."""

import numpy as np
import pytest

from sk_sgmcmc import sample
from sk_sgmcmc.samplers import HMC, SGHMC, SGNHT, SGNPHMC, MonteCarloEM
from sk_sgmcmc.samplers._registry import LEARNT_MASS
from sk_sgmcmc.targets import GaussianMean
from tests.cases import N_BATCHES, THRESHOLD, z_scores
from tests.flat_cases import COVARIANCE, FLAT_CASES, PRECISION, TARGET_LAW, FlatCase, moments

BROKEN = [pytest.param(case, name, id=f"{key}-{name}") for key, case in FLAT_CASES.items() for name in case.broken]


@pytest.mark.parametrize("case", FLAT_CASES.values(), ids=FLAT_CASES)
def test_sampler_has_its_law(case, global_random_seed):
    assert np.abs(case.z_scores(global_random_seed)).max() < THRESHOLD


@pytest.mark.parametrize("case, name", BROKEN)
def test_broken_variant_is_rejected(case, name, global_random_seed):
    assert np.abs(case.z_scores(global_random_seed, case.broken[name])).max() > 1.3 * THRESHOLD


def bias_slopes(case, h, time, seed=0):
    """log2 of the ratio of biases at h and h/2, where both exceed ten standard errors."""
    case = FlatCase(case.sampler, h, time)
    bias, error = [], []
    for size in (h, h / 2):
        means = case.batch_means(size, np.random.default_rng(seed))
        bias.append(means.mean(axis=0) - TARGET_LAW)
        error.append(means.std(axis=0, ddof=1) / np.sqrt(N_BATCHES))
    bias, error = np.array(bias), np.array(error)
    seen = np.all(np.abs(bias) > 10.0 * error, axis=0)
    slopes = np.log2(np.abs(bias[0, seen] / bias[1, seen]))
    print(f"{case.sampler!r}: slopes of the bias at h={h}: {np.round(slopes, 2)}")
    return slopes


# Where the bias is large against its error: step size, time, order.
ORDERS = {
    "sgld, h=0.3": (0.4, 20_000.0, 1),
    "sghmc aboba": (1.2, 20_000.0, 2),
    "sgnht aboba": (1.2, 20_000.0, 2),
    "sgnht euler": (0.2, 20_000.0, 1),
    "sg-nphmc kinetic": (1.0, 20_000.0, 2),
}


@pytest.mark.parametrize("key", ORDERS)
def test_bias_has_the_order_that_is_claimed(key):
    h, time, order = ORDERS[key]
    slopes = bias_slopes(FLAT_CASES[key], h, time)
    assert slopes.size > 0
    # Of a method of the other order they would lie around 1.5 on the other side.
    assert abs(np.median(slopes) - order) < 0.45


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
    mean, covariance = target.posterior()
    args = {"batch_size": 2, "with_replacement": True, "n_iter": 40_000, "n_chains": 10, "random_state": 0}
    spread = {}
    for sampler in (SGNHT(step_size=0.005, noise=5.0), SGHMC(step_size=0.005, friction=5.0)):
        draws = sample(target, sampler, **args).samples_["theta"]
        spread[sampler._name] = draws.reshape(-1, 3).var(axis=0).mean() / covariance[0, 0]
    assert abs(spread["sgnht"] - 1.0) < 0.25
    assert spread["sghmc"] > 3.0
