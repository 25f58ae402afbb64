import numpy as np
import pytest
from scipy.signal import lfilter

from sk_sgmcmc.metrics import effective_sample_size, mcse, split_r_hat
from tests.naive import diagnostics as naive


def autoregression(rho, shape, rng):
    """AR(1) from its stationary law, along the second axis."""
    noise = rng.normal(size=shape) * np.sqrt(1 - rho**2)
    noise[:, 0] /= np.sqrt(1 - rho**2)
    return lfilter([1], [1, -rho], noise, axis=1)


@pytest.fixture
def x():
    return autoregression(0.6, (3, 101, 2, 4), np.random.default_rng(0))


@pytest.mark.parametrize("kind", ["mean", "bulk", "tail"])
def test_ess_equals_its_slow_twin(kind, x):
    result = effective_sample_size(x, kind)
    assert result.shape == (2, 4)
    for index in np.ndindex(2, 4):
        one = x[(slice(None), slice(None), *index)]
        if kind == "tail":
            low, high = np.quantile(one, [0.05, 0.95])
            expected = min(naive.ess(naive.split((one <= q).astype(float))) for q in (low, high))
        else:
            part = naive.split(one)
            expected = naive.ess(naive.rank_normalize(part) if kind == "bulk" else part)
        assert result[index] == pytest.approx(expected, rel=1e-9)
        assert effective_sample_size(one, kind) == pytest.approx(expected, rel=1e-9)


def test_r_hat_equals_its_slow_twin(x):
    plain, ranked = split_r_hat(x, rank_normalized=False), split_r_hat(x)
    for index in np.ndindex(2, 4):
        part = naive.split(x[(slice(None), slice(None), *index)])
        assert plain[index] == pytest.approx(naive.r_hat(part), rel=1e-10)
        folded = np.abs(part - np.median(part))
        expected = max(naive.r_hat(naive.rank_normalize(part)), naive.r_hat(naive.rank_normalize(folded)))
        assert ranked[index] == pytest.approx(expected, rel=1e-10)


@pytest.mark.filterwarnings("ignore")
def test_they_agree_with_arviz(x, importorskip):
    arviz = importorskip("arviz")
    one = x[:, :100, 0, 0]  # an even number: what becomes of the middle draw is a matter of taste
    expected = arviz.ess(one), arviz.ess(one, method="mean"), arviz.ess(one, method="tail"), arviz.rhat(one)
    ours = effective_sample_size(one), effective_sample_size(one, "mean"), effective_sample_size(one, "tail")
    np.testing.assert_allclose([*ours, split_r_hat(one)], [float(e) for e in expected], rtol=0.03)


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.5, 0.9])
def test_ess_of_an_autoregression_is_its_closed_form(rho, global_random_seed):
    x = autoregression(rho, (4, 5000, 20), np.random.default_rng(global_random_seed))
    exact = 20000 * (1 - rho) / (1 + rho)
    for kind in ("mean", "bulk"):
        ratio = effective_sample_size(x, kind) / exact
        assert abs(ratio.mean() - 1) < 0.06, (kind, ratio.mean())


def test_ess_of_an_antithetic_chain_stops_at_stans_bound():
    x = np.tile([1.0, -1.0], (2, 50)) + 1e-3 * np.random.default_rng(0).normal(size=(2, 100))
    for kind in ("mean", "bulk"):
        assert effective_sample_size(x, kind) == pytest.approx(200 * np.log10(200))


def test_mcse_is_the_spread_of_means(global_random_seed):
    x = autoregression(0.7, (2, 1000, 400), np.random.default_rng(global_random_seed))
    spread = x.mean(axis=(0, 1)).std(ddof=1)
    assert abs(mcse(x).mean() / spread - 1) < 0.15


def test_mcse_goes_by_the_draws_themselves_and_not_by_their_ranks(x):
    x = np.exp(x)
    expected = x.reshape(-1, 2, 4).std(axis=0, ddof=1) / np.sqrt(effective_sample_size(x, "mean"))
    np.testing.assert_allclose(mcse(x), expected, rtol=1e-12)
    assert np.all(np.abs(effective_sample_size(x, "mean") / effective_sample_size(x, "bulk") - 1) > 1e-3)


@pytest.mark.parametrize("fault", ["another mean", "another scale", "drift", "stuck"])
def test_r_hat_sees_each_fault(fault):
    x = np.random.default_rng(0).normal(size=(4, 500))
    assert split_r_hat(x) < 1.01
    if fault == "another mean":
        x[0] += 1
    elif fault == "another scale":
        x[0] *= 4
        assert split_r_hat(x, rank_normalized=False) < 1.02  # which only the folded draws show
    elif fault == "drift":
        x += np.linspace(0, 2, 500)
    else:
        x[0] = 0.3
    assert split_r_hat(x) > 1.05


def test_heavy_tails_do_not_hide_a_shift():
    x = np.random.default_rng(0).standard_cauchy((4, 500))
    assert split_r_hat(x) < 1.01
    x[0] += 3
    assert split_r_hat(x) > 1.1


def test_what_nothing_can_be_said_of_is_nan():
    same = np.full((2, 50, 1), 0.1)
    for function in (effective_sample_size, split_r_hat, mcse):
        assert np.isnan(function(same)).all()
    broken = np.random.default_rng(0).normal(size=(2, 50, 2))
    broken[0, 3, 1] = np.inf
    for function in (effective_sample_size, split_r_hat, mcse):
        out = function(broken)
        assert np.isfinite(out[0])
        assert np.isnan(out[1])
    apart = np.repeat([[0.1], [0.2]], 50, axis=1)
    assert split_r_hat(apart, rank_normalized=False) == np.inf


def test_blocks_change_nothing(x, monkeypatch):
    from sk_sgmcmc.metrics import diagnostics

    expected = effective_sample_size(x)
    monkeypatch.setattr(diagnostics, "_BLOCK", 700)
    np.testing.assert_allclose(effective_sample_size(x), expected, rtol=1e-13)


def test_bad_input():
    with pytest.raises(ValueError, match=r"\(n_chains, n_draws, ...\)"):
        effective_sample_size(np.zeros(10))
    with pytest.raises(ValueError, match="at least 4 draws"):
        split_r_hat(np.zeros((2, 3)))
    with pytest.raises(ValueError, match='"bulk", "mean" or "tail"'):
        effective_sample_size(np.zeros((2, 10)), "quantile")
    with pytest.raises(TypeError, match="real numbers"):
        mcse(np.zeros((2, 10), dtype=complex))
