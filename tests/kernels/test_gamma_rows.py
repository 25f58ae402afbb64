"""Gamma draws in rows: the law of Gamma(a + N) with a Poisson number N, and what rejects draws that lack a step."""

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc.kernels.math.random import open_unit
from sk_sgmcmc.kernels.math.vector import log_normal
from sk_sgmcmc.kernels.samplers import simplex
from tests.naive.simplex import small_gamma

N_DRAWS = 60_000
SMALLEST = 1e-290  # what lies below counts as one value


def mixture_cdf(x, shape, mean):
    """Distribution function of Gamma(shape + N), N ~ Poisson(mean)."""
    n = np.arange(stats.poisson(mean).ppf(1.0 - 1e-15) + 1.0) if mean else np.zeros(1)
    return sum(p * stats.gamma(shape + k).cdf(x) for k, p in zip(n, stats.poisson(mean).pmf(n), strict=True))


def has_the_law(draws, shape, mean):
    """Whether draws have the law of the mixture, and as many as expected lie at the bottom and at the top."""
    below = mixture_cdf(SMALLEST, shape, mean)
    for least, share in ((SMALLEST, below), (0.01, mixture_cdf(0.01, shape, mean))):
        if share > 0.0 and stats.binomtest(int(np.sum(draws <= least)), draws.size, share).pvalue < 1e-8:
            return False
    seen = draws[draws > SMALLEST]
    pit = (mixture_cdf(seen, shape, mean) - below) / (1.0 - below)
    return stats.kstest(pit, "uniform").pvalue > 1e-8


def cir_draws(shape, mean, rng):
    """Cells before their factor 1 - e^{-h}, from a state whose Poisson numbers have this mean; three in a row."""
    h = 0.3
    rate = np.exp(-h) / -np.expm1(-h)
    theta = np.full((N_DRAWS // 3, 3), mean / rate)
    rows = np.arange(len(theta))
    simplex.scir_step(theta, np.zeros((0, 1, 1)), np.zeros(1), np.full(theta.shape, shape), np.zeros(3), np.array([h]),
                      rows, rng)  # fmt: skip
    return theta.ravel() / -np.expm1(-h)


@pytest.mark.parametrize("shape", [1e-3, 0.02, 0.3, 0.9, 4.0])
@pytest.mark.parametrize("mean", [0.0, 1e-3, 0.2, 3.0])
def test_a_transition_has_the_law_of_the_mixture(shape, mean, global_random_seed):
    assert has_the_law(cir_draws(shape, mean, np.random.default_rng(global_random_seed)), shape, mean)


def attempts(shape, rng, u=None, v=None):
    """First proposals for the shape, NaN where they are rejected."""
    u = rng.random(N_DRAWS) if u is None else u
    v = rng.random(N_DRAWS) if v is None else v
    logs = [small_gamma(shape, *pair) for pair in zip(u, v, strict=True)]
    return np.exp(np.array([np.nan if each is None else each for each in logs]))


@pytest.mark.parametrize("shape", [0.3, 0.9])
def test_the_test_rejects_draws_without_rejection_or_by_one_number(shape, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    draws = attempts(shape, rng)
    assert has_the_law(draws[~np.isnan(draws)], shape, 0.0)
    unchecked = attempts(shape, rng, v=np.full(N_DRAWS, 1e-300))
    assert not has_the_law(unchecked, shape, 0.0)
    u = rng.random(N_DRAWS)
    by_one = attempts(shape, rng, u=u, v=u)
    assert not has_the_law(by_one[~np.isnan(by_one)], shape, 0.0)


@pytest.mark.parametrize("shape, mean", [(1e-3, 0.01), (0.02, 0.2)])
def test_the_test_rejects_draws_without_their_rare_poisson_numbers(shape, mean, global_random_seed):
    assert not has_the_law(cir_draws(shape, 0.0, np.random.default_rng(global_random_seed)), shape, mean)


def test_the_test_rejects_poisson_numbers_by_the_uniform_of_the_gamma(global_random_seed):
    rng, shape, mean = np.random.default_rng(global_random_seed), 0.02, 0.2
    u = rng.random(N_DRAWS)
    count = stats.poisson(mean).ppf(1.0 - u)
    x = np.where(count > 0, rng.standard_gamma(shape + count), attempts(shape, rng, u=u))
    assert not has_the_law(x[~np.isnan(x)], shape, mean)


def test_logarithms_and_uniforms_of_vector_instructions_are_right():
    x = np.concatenate([np.geomspace(2.0**-53, 1.4, 20_001), 1.0 + np.linspace(-1e-6, 1e-6, 2001)])
    x = x[x != 1.0]
    np.testing.assert_allclose([log_normal(each) for each in x], np.log(x), rtol=1e-14)
    assert log_normal(1.0) == 0.0
    words = [0, 1, 4095, 4096, 2**52, 2**63, 2**64 - 1]
    expected = [((word >> 12) + 0.5) * 2.0**-52 for word in words]
    assert [open_unit(np.uint64(word)) for word in words] == expected
    assert min(expected) > 0.0 and max(expected) < 1.0
