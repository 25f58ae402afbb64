import numpy as np
import pytest
from scipy import special, stats

from sk_sgmcmc.metrics import ks_distance, rosenblatt_ks, rosenblatt_transform

SPARSE = np.array([800, 100, 100, 0, 0, 0, 0, 0, 0, 0]) + 0.1
DENSE = np.full(10, 100.1)
PRIOR = np.full(10, 0.1)
# The mean of nine KS distances of 1000 independent uniforms: mean .0275, standard deviation .0027, from theory.
LIMIT = 0.04


def log_dirichlet(alpha, n, rng):
    """Logarithms of gamma draws, right also where the draws would underflow."""
    size = (n, len(alpha))
    return np.log(rng.standard_gamma(np.asarray(alpha) + 1, size)) + np.log(rng.random(size)) / alpha


def cancelling_transform(omega, alpha):
    """The tempting form with 1 - sum of those before; broken for sparse draws."""
    before = np.cumsum(omega, axis=1) - omega
    b = alpha.sum() - np.cumsum(alpha)
    with np.errstate(all="ignore"):
        x = omega / (1 - before)
    return special.betainc(alpha[:-1], b[:-1], np.clip(np.nan_to_num(x[:, :-1]), 0, 1))


@pytest.mark.parametrize("alpha", [SPARSE, DENSE, PRIOR, np.full(6, 0.01)], ids=["sparse", "dense", "prior", "tiny"])
def test_exact_draws_give_uniforms(alpha, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    logs = log_dirichlet(alpha, 1000, rng)
    assert rosenblatt_ks(logs, alpha, log=True) < LIMIT
    z = rosenblatt_transform(logs, alpha, log=True)
    correlation = np.corrcoef(z, rowvar=False) - np.eye(len(alpha) - 1)
    assert np.abs(correlation).max() < 5.5 / np.sqrt(1000)


@pytest.mark.parametrize("alpha", [SPARSE, DENSE, PRIOR], ids=["sparse", "dense", "prior"])
def test_omegas_and_thetas_and_logs_agree(alpha):
    logs = log_dirichlet(alpha, 200, np.random.default_rng(0))
    theta = np.exp(logs)
    expected = rosenblatt_transform(logs, alpha, log=True)
    np.testing.assert_allclose(rosenblatt_transform(theta, alpha), expected, atol=1e-9)
    omega = theta / theta.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rosenblatt_transform(omega, alpha), expected, atol=1e-9)
    np.testing.assert_allclose(rosenblatt_transform(logs - 900, alpha, log=True), expected, atol=1e-9)


def test_ordinary_values_equal_the_beta_distribution():
    omega = np.random.default_rng(0).dirichlet([2, 3, 4.0], 50)
    z = rosenblatt_transform(omega, [2, 3, 4.0])
    np.testing.assert_allclose(z[:, 0], stats.beta(2, 7).cdf(omega[:, 0]), rtol=1e-10)
    np.testing.assert_allclose(z[:, 1], stats.beta(3, 4).cdf(omega[:, 1] / omega[:, 1:].sum(axis=1)), rtol=1e-10)


def test_the_cancelling_form_would_be_rejected():
    logs = log_dirichlet(np.full(6, 0.01), 1000, np.random.default_rng(0))
    omega = special.softmax(logs, axis=1)
    broken = np.mean(ks_distance(cancelling_transform(omega, np.full(6, 0.01))))
    assert broken > 3 * LIMIT > 3 * rosenblatt_ks(logs, np.full(6, 0.01), log=True)


def test_extreme_shapes_stay_right_where_numbers_underflow():
    alpha = np.full(5, 1e-3)
    logs = log_dirichlet(alpha, 2000, np.random.default_rng(0))
    assert (np.exp(logs) == 0).mean() > 0.3  # so it is only to be had in logs
    assert rosenblatt_ks(logs, alpha, log=True) < LIMIT


@pytest.mark.parametrize("wrong", [1.3, 0.7])
def test_another_law_is_far_away(wrong):
    rng = np.random.default_rng(0)
    assert rosenblatt_ks(rng.dirichlet(wrong * DENSE, 5000), DENSE) > 0.03
    assert rosenblatt_ks(rng.dirichlet(DENSE, 5000), DENSE) < 0.018


def test_ks_distance_is_scipys():
    rng = np.random.default_rng(0)
    u = rng.random((100, 3))
    expected = [stats.kstest(column, "uniform").statistic for column in u.T]
    np.testing.assert_allclose(ks_distance(u), expected, rtol=1e-12)
    x = rng.normal(size=50)
    assert ks_distance(x, stats.norm.cdf) == pytest.approx(stats.kstest(x, "norm").statistic, rel=1e-12)


@pytest.mark.parametrize(
    "draws, alpha, options, message",
    [
        ([[0.5, 0.5]], [1, 1, 1], {}, r"give \(n_draws, d\)"),
        ([[1.0]], [1], {}, "d >= 2"),
        ([[0.5, -0.5]], [1, 1], {}, "log=True"),
        ([[0.0, 0.0]], [1, 1], {}, "positive component"),
        ([[0.5, np.nan]], [1, 1], {}, "finite"),
        ([[0.5, 0.5]], [1, 0], {}, "concentration must be positive"),
    ],
)
def test_bad_input(draws, alpha, options, message):
    with pytest.raises(ValueError, match=message):
        rosenblatt_transform(draws, alpha, **options)
    with pytest.raises(ValueError, match="NaN"):
        ks_distance([0.1, np.nan])
