"""Kernels of scaled Dirichlet distributions, each compared with a slow twin or an exact distribution."""

import numpy as np
import pytest

from sk_sgmcmc.kernels.models import scaled_dirichlet as kernels
from tests.cases import THRESHOLD
from tests.naive import scaled_dirichlet as naive

SHAPE = np.array([[0.3, 1.2, 0.05], [4.0, 0.02, 9.0]])
RATE = np.array([[0.2, 3.0, 1.0], [1.0, 0.5, 8.0]])
GROUP = np.array([0, 1, 0, 1])
TOKEN_PTR = np.array([0, 10, 13, 13, 40])
Z = np.random.default_rng(0).integers(0, 3, 40).astype(np.uint16)


def doc_counts(weights=None):
    counts = np.zeros((4, 3))
    np.add.at(counts, (np.repeat(np.arange(4), np.diff(TOKEN_PTR)), Z), 1.0 if weights is None else weights)
    return counts


@pytest.mark.parametrize("weighted", [False, True])
def test_auxiliary_variables_are_drawn_from_their_law_given_counts(weighted, global_random_seed):
    weights = np.random.default_rng(1).uniform(0.2, 1.0, 40) if weighted else np.empty(0)
    rng, n = np.random.default_rng(global_random_seed), 20_000
    draws = np.empty((n, 4))
    for draw in draws:
        kernels.draw_auxiliary(0, 4, TOKEN_PTR, weights, Z, SHAPE, RATE, GROUP, rng, draw)
    assert not draws[:, 2].any()  # It has no tokens.
    counts = doc_counts(weights if weighted else None)
    for d in (0, 1, 3):
        mean, variance = naive.moments_of_log_auxiliary(counts[d], SHAPE[GROUP[d]], RATE[GROUP[d]])
        t = np.log(draws[:, d])
        fourth = np.mean((t - mean) ** 4)
        assert abs(t.mean() - mean) < THRESHOLD * np.sqrt(variance / n)
        assert abs(np.mean((t - mean) ** 2) - variance) < THRESHOLD * np.sqrt(fourth / n)


@pytest.mark.parametrize("shape", [[1e-8, 1e-8, 1e-8], [2e4, 1e-8, 3e3]])
def test_auxiliary_variables_of_extreme_shapes_are_finite(shape):
    draws = np.empty(4)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        kernels.draw_auxiliary(
            0, 4, TOKEN_PTR, np.empty(0), Z, np.array([shape] * 2), np.array([[1e-5, 1.0, 1e5]] * 2), GROUP, rng, draws
        )
        assert np.all(np.isfinite(draws)) and np.all(draws[[0, 1, 3]] > 0)


@pytest.mark.parametrize("shape", [[0.3, 1.2, 0.05], [4.0, 0.02, 9.0], [0.01, 0.02, 0.005], [30.0, 5.0, 200.0]])
@pytest.mark.parametrize("rate", [[1.0, 1.0, 1.0], [0.2, 3.0, 1.0], [0.01, 20.0, 1.0]])
def test_means_are_those_of_an_adaptive_integration(shape, rate):
    shape, rate, out = np.array([shape]), np.array([rate]), np.empty((1, 3))
    kernels.mean_proportions(shape, rate, out)
    np.testing.assert_allclose(out[0], naive.mean_given_counts(np.zeros(3), shape[0], rate[0]), rtol=1e-5, atol=1e-9)


def test_proportions_are_drawn_from_their_law_given_counts(global_random_seed):
    counts, n = np.array([3.0, 0.0, 7.0]), 40_000
    theta, rows = np.empty((n, 3)), np.ones((n, 1))
    rng = np.random.default_rng(global_random_seed)
    kernels.draw_given_counts(counts * rows, SHAPE[0] * rows, RATE[0] * rows, rng, theta)
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    mean = naive.mean_given_counts(counts, SHAPE[0], RATE[0])
    z = (theta.mean(axis=0) - mean) / (theta.std(axis=0) / np.sqrt(n))
    assert np.abs(z).max() < THRESHOLD


@pytest.mark.parametrize("weighted", [False, True])
def test_likelihood_and_gradient_equal_their_twin(weighted):
    rng = np.random.default_rng(2)
    weights = rng.uniform(0.2, 1.0, 40) if weighted else np.empty(0)
    auxiliary, counts = np.array([4.0, 0.3, 0.0, 20.0]), doc_counts(weights if weighted else None)
    value, by_shape, by_scale = np.empty(3), np.empty((2, 3)), np.empty((2, 3))

    def of(log_shape, log_scale):
        return naive.log_likelihood(counts, auxiliary, np.exp(log_shape)[GROUP], np.exp(log_scale)[GROUP])

    log_shape, log_scale = np.log(SHAPE), -np.log(RATE)
    arguments = TOKEN_PTR, weights, Z, GROUP, auxiliary, SHAPE, 1.0 / RATE
    kernels.negative_binomial(*arguments, True, value, by_shape, by_scale)
    np.testing.assert_allclose(value, of(log_shape, log_scale), rtol=1e-10)
    for g, k in np.ndindex(2, 3):
        step = np.zeros((2, 3))
        step[g, k] = 1e-5
        for found, ends in (
            (by_shape, [of(log_shape + s * step, log_scale)[k] for s in (1, -1)]),
            (by_scale, [of(log_shape, log_scale + s * step)[k] for s in (1, -1)]),
        ):
            assert found[g, k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-7)


def test_information_is_the_covariance_of_the_gradient(global_random_seed):
    # Counts given the auxiliary variables are negative binomial: the gradient has mean 0 and the information as its
    # covariance.
    rng, n, u = np.random.default_rng(global_random_seed), 20_000, 3.0
    shape, scale = np.array([[0.5, 2.0]]), np.array([[2.0, 0.7]])
    counts = rng.poisson(u * rng.gamma(np.repeat(shape, n, axis=0)) * scale)
    ptr = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
    z = np.repeat(np.tile([0, 1], n), counts.ravel()).astype(np.uint16)
    group = np.arange(n)
    parts = ptr, np.empty(0), z, group, np.full(n, u), np.repeat(shape, n, axis=0), np.repeat(scale, n, axis=0)
    by_shape, by_scale = np.empty((n, 2)), np.empty((n, 2))
    kernels.negative_binomial(*parts, False, np.empty(2), by_shape, by_scale)
    own, common = np.empty((1, 2)), np.empty((1, 2))
    kernels.negative_binomial_information(*parts[:3], np.zeros(n, np.int64), parts[4], shape, scale, own, common)
    for k in range(2):
        # Documents without tokens are skipped; their gradient is that of no count.
        filled = np.diff(ptr) > 0
        slope = np.stack([by_shape[:, k], by_scale[:, k]])
        slope[0, ~filled] = -shape[0, k] * np.log1p(u * scale[0, k])
        slope[1, ~filled] = -shape[0, k] * u * scale[0, k] / (1.0 + u * scale[0, k])
        expected = np.array([[own[0, k], common[0, k]], [common[0, k], common[0, k]]]) / n
        np.testing.assert_allclose(slope @ slope.T / n, expected, rtol=0.1)


PHI = np.random.default_rng(3).dirichlet(np.full(6, 0.5), 3).T.copy()
INDPTR, WORDS = np.array([0, 4, 4, 6]), np.array([0, 2, 3, 5, 1, 4], dtype=np.int32)
COUNTS = np.array([3.0, 1.0, 2.0, 5.0, 0.5, 1.0])


def posterior_mean(rate):
    """Mean proportions of a document of four tokens with the topics fixed, by enumeration of all assignments."""
    z = np.stack(np.meshgrid(*[range(3)] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    topics = np.stack([np.bincount(each, minlength=3) for each in z]).astype(float)
    kinds, place = np.unique(topics, axis=0, return_inverse=True)
    log_p = np.array([naive.log_evidence(each, SHAPE[0], rate) for each in kinds])[place.ravel()]
    p = np.exp(log_p) * PHI[0, z[:, 0]] * np.prod(PHI[3, z[:, 1:]], axis=1)
    means = np.array([naive.mean_given_counts(each, SHAPE[0], rate) for each in kinds])[place.ravel()]
    return (p / p.sum()) @ means


OF_ONE = np.array([0, 2]), np.array([0, 3], dtype=np.int32), np.array([1.0, 3.0])  # its words and counts


@pytest.mark.parametrize("rate", [[2.5, 2.5, 2.5], [0.2, 3.0, 1.0]])
def test_mean_proportions_given_topics_are_those_of_the_posterior(rate):
    theta = np.empty((1, 3))
    kernels.proportions(*OF_ONE, PHI, SHAPE[:1], np.array([rate]), 50_000, 0, 1, theta)
    np.testing.assert_allclose(theta[0], posterior_mean(np.array(rate)), atol=0.01)


def test_mean_proportions_depend_on_the_content_of_a_document_alone():
    shape, rate = SHAPE[[0, 1, 0]], RATE[[0, 1, 0]]
    theta, last, mean = np.empty((3, 3)), np.empty((1, 3)), np.empty((1, 3))
    kernels.proportions(INDPTR, WORDS, COUNTS, PHI, shape, rate, 7, 0, 3, theta)
    # The third document, alone, with another numbering of the words.
    kernels.proportions(np.array([0, 2]), np.array([0, 1], np.int32), COUNTS[4:], PHI[[1, 4]], shape[2:], rate[2:], 7,
                        0, 1, last)  # fmt: skip
    np.testing.assert_array_equal(theta[2], last[0])
    kernels.mean_proportions(shape[1:2], rate[1:2], mean)
    np.testing.assert_array_equal(theta[1], mean[0])  # It has no words.


@pytest.mark.parametrize("rate", [[2.5, 2.5, 2.5], [0.2, 3.0, 1.0]])
def test_draws_of_proportions_given_topics_have_their_law(rate, global_random_seed):
    n, rng = 10_000, np.random.default_rng(global_random_seed)
    draws, rates = np.empty((n, 3)), np.array([rate])
    for i in range(n):
        key = rng.integers(2**63, size=1).astype(np.uint64)
        theta, z = np.empty((1, 3)), np.zeros(4, dtype=np.uint16)
        kernels.draw_proportions(*OF_ONE, np.array([0, 1, 4]), PHI, SHAPE[:1], rates, key, 1, 12, 0, 1, z, theta)
        draws[i] = theta[0]
    error = draws.std(axis=0) / np.sqrt(n)
    assert np.abs((draws.mean(axis=0) - posterior_mean(np.array(rate))) / error).max() < THRESHOLD


def test_draws_of_proportions_go_on_from_their_assignments():
    token_ptr, keys = np.concatenate([[0], np.cumsum(np.ceil(COUNTS).astype(int))]), np.arange(3, dtype=np.uint64)
    z, theta = np.zeros(token_ptr[-1], dtype=np.uint16), np.empty((3, 3))
    kernels.draw_proportions(INDPTR, WORDS, COUNTS, token_ptr, PHI, SHAPE[:1], RATE[:1], keys, 0, 0, 0, 3, z, theta)
    assert not z.any()  # No sweep was made.
    assert theta[0, 0] > 0.5
