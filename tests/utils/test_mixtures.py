"""Quantiles of mixtures against sums over all components, and order statistics against NumPy."""

import numpy as np
import pytest
from scipy import optimize, special

from sk_sgmcmc.linear_model._quantiles import row_quantiles
from sk_sgmcmc.utils import _mixtures
from sk_sgmcmc.utils._mixtures import central_moments, normal_mixture_quantile, poisson_mixture_quantiles

TAILS = [1e-4, 0.05, 0.5, 0.95, 0.9999]


def test_moments_are_those_of_numpy():
    values = np.random.default_rng(0).exponential(size=(7, 50_000))  # blocks of two rows
    centre, moments = central_moments(values)
    np.testing.assert_allclose(centre, values.mean(axis=1))
    for order in range(2, 9):
        np.testing.assert_allclose(moments[order], ((values.T - centre) ** order).mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("mean", [1e-6, 0.01, 0.3, 3.0, 50.0, 1e4, 1e7, 1e11])
def test_poisson_quantiles_are_the_least_counts_that_reach_the_tail(mean):
    rng = np.random.default_rng(0)
    for relative, n_draws in ((0.0, 30), (0.001, 30), (0.02, 30), (0.3, 30), (2.0, 30), (0.02, 1)):
        for spread in (relative, relative / np.sqrt(mean)):  # of means, and of means in units of the noise
            level = mean * np.exp(rng.normal(size=(40, 1)))
            means = level * np.exp(min(spread, 5.0) * rng.normal(size=(40, n_draws)))
            for tail, counts in zip(TAILS, poisson_mixture_quantiles(means, TAILS), strict=True):
                assert np.all(special.pdtr(counts[:, None], means).mean(axis=1) >= tail)
                some = np.flatnonzero(counts > 0)
                assert np.all(special.pdtr(counts[some, None] - 1.0, means[some]).mean(axis=1) < tail)


def test_poisson_quantiles_seldom_need_every_draw(monkeypatch):
    evaluated = []

    def spy(means, counts, tail, by_draws=_mixtures._poisson_by_draws):
        evaluated.append(len(means))
        return by_draws(means, counts, tail)

    monkeypatch.setattr(_mixtures, "_poisson_by_draws", spy)
    rng = np.random.default_rng(0)
    for mean in (0.01, 1.0, 100.0, 1e4, 1e6):
        level = mean * np.exp(rng.normal(size=(1000, 1)))
        poisson_mixture_quantiles(level + 0.05 * np.sqrt(level) * rng.normal(size=(1000, 200)), [0.05, 0.95])
    assert sum(evaluated) < 0.002 * 10_000


def test_poisson_quantiles_at_the_ends():
    low, high = poisson_mixture_quantiles(np.zeros((3, 5)), [0.05, 0.95])
    assert not low.any() and not high.any()
    low, high = poisson_mixture_quantiles(np.full((2, 3), 5.0), [1e-17, 1.0])
    assert not low.any() and np.all(np.isfinite(high))


@pytest.mark.parametrize("spread", [0.0, 0.01, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("variation", [0.0, 0.02, 0.3])
def test_normal_quantiles_are_roots_of_the_mean_distribution(spread, variation):
    rng = np.random.default_rng(0)
    means, scales = 1e3 + spread * rng.normal(size=(10, 99)), np.exp(variation * rng.normal(size=99))
    for tail in TAILS:
        roots = [
            optimize.brentq(lambda q, m=m, tail=tail: special.ndtr((q - m) / scales).mean() - tail, 500.0, 1500.0)
            for m in means
        ]
        for start in (None, np.array(roots) + 0.1):
            np.testing.assert_allclose(normal_mixture_quantile(means, scales, tail, start), roots, atol=1e-7, rtol=0)
    one = normal_mixture_quantile(means[:, :1], scales[:1], 0.05)
    np.testing.assert_allclose(one, means[:, 0] + scales[0] * special.ndtri(0.05))


def test_a_row_alone_has_the_same_quantiles():
    rng = np.random.default_rng(0)
    means = np.exp(rng.normal(size=(300, 1)) + 0.2 * rng.normal(size=(300, 700)))
    scales = np.exp(0.1 * rng.normal(size=700))
    normal, counts = normal_mixture_quantile(means, scales, 0.9), poisson_mixture_quantiles(means, [0.9])[0]
    for i in (0, 143, 299):
        assert normal_mixture_quantile(means[i : i + 1], scales, 0.9)[0] == normal[i]
        assert poisson_mixture_quantiles(means[i : i + 1], [0.9])[0][0] == counts[i]


@pytest.mark.parametrize("n_draws", [1, 2, 3, 19, 100, 1500])
@pytest.mark.parametrize("mass", [0.01, 0.5, 0.9, 0.999])
def test_quantiles_of_rows_are_those_of_numpy(n_draws, mass):
    rng = np.random.default_rng(0)
    tails = [(1 - mass) / 2, (1 + mass) / 2]
    normal = rng.normal(size=(50, n_draws))
    for draws in (normal, np.exp(3.0 * normal), -np.exp(9.0 * normal), np.round(normal), 0.0 * normal):
        theirs = np.quantile(draws, tails, axis=1, method="weibull")
        np.testing.assert_array_equal(row_quantiles(draws, tails), theirs)
