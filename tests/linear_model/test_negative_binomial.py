"""BayesianNegativeBinomialRegressor: its posterior, its likelihood at any dispersion, and its predictions."""

import pickle
from functools import cache, partial

import numpy as np
import pytest
from scipy import sparse, special, stats

from sk_sgmcmc import BayesianNegativeBinomialRegressor, BayesianPoissonRegressor
from sk_sgmcmc.dense.tuning import DenseGradient
from sk_sgmcmc.linear_model import _base, _stream
from sk_sgmcmc.linear_model._dispersion import DispersionPrior, DistinctCounts, OverdispersedCounts, rising
from sk_sgmcmc.linear_model._negative_binomial import distribution_function, mixture_quantile
from sk_sgmcmc.samplers import HMC
from tests.common.compare import StopAt

N_CHAINS = 20


def overdispersed(means, dispersion, rng):
    return rng.poisson(means * rng.gamma(1.0 / dispersion, dispersion, size=np.shape(means)))


def rows(n=200, dispersion=0.7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + [0.0, 100.0, 5.0]
    time = rng.uniform(0.5, 3.0, n)
    return X, overdispersed(time * np.exp(1.0 + (X - [0.0, 100.0, 5.0]) @ [0.5, -0.03, 2.0]), dispersion, rng), time


def few():
    """Rows that determine two coefficients and the dispersion so little that the priors' shapes matter."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    time = rng.uniform(0.5, 4.0, 12)
    return X, overdispersed(time * np.exp(X @ [0.7, 0.0]), 0.5, rng), time


def log_pmf(y, means, dispersion):
    """SciPy's log probability of counts with these means."""
    return stats.nbinom.logpmf(y, 1.0 / dispersion, 1.0 / (1.0 + dispersion * means))


def half_cauchy(v, scale=1.0):
    """Log density of v = log(dispersion), where sqrt(dispersion) is half-Cauchy."""
    return stats.halfcauchy.logpdf(np.exp(0.5 * v), scale=scale) + 0.5 * v


@cache
def moments_on_a_grid(prior, width=(0.0, 0.0)):
    """Means and squares of two coefficients and of the log dispersion; kinks are rounded over ``width``."""
    X, y, time = few()
    grid, v = np.linspace(-4.0, 4.0, 81), np.linspace(-16.0, 5.0, 127)
    b = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    means = time * np.exp(b @ X.T)
    log = np.stack([log_pmf(y, means, np.exp(each)).sum(axis=1) for each in v], axis=1) + half_cauchy(v)
    log -= (0.5 * (b**2).sum(axis=1) if prior == "normal" else np.sqrt(b**2 + np.square(width)).sum(axis=1))[:, None]
    weight = special.softmax(log)
    assert weight[:, [0, -1]].sum() < 1e-3
    of_v, of_b = weight.sum(axis=0), weight.sum(axis=1)
    return np.concatenate([of_b @ b, [of_v @ v], of_b @ b**2, [of_v @ v**2], [of_v @ np.exp(0.5 * v)]])


def z_scores(prior, seed):
    X, y, time = few()
    model = BayesianNegativeBinomialRegressor(
        1.0, prior=prior, fit_intercept=False, sampler=HMC(n_leapfrog=5), n_iter=2500, burn_in=300, thin=1,
        n_chains=N_CHAINS, random_state=seed,
    ).fit(X, y, exposure=time)  # fmt: skip
    v = np.log(model.samples_["dispersion"])[..., None]
    b = np.concatenate([model.samples_["coef"], v], axis=-1)
    means = np.concatenate([b, b**2, np.exp(0.5 * v)], axis=2).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(N_CHAINS)
    width = (0.0, 0.0) if prior == "normal" else tuple(model._design.kinks.width[0])
    return (means.mean(axis=0) - moments_on_a_grid(prior, width)) / error


@pytest.mark.parametrize("prior", ["normal", "laplace"])
def test_hmc_draws_from_the_joint_posterior(prior, global_random_seed):
    z = z_scores(prior, global_random_seed)
    assert np.abs(z).max() < 5.0, z


def test_a_wrong_prior_or_a_wrong_table_of_counts_is_rejected(monkeypatch, global_random_seed):
    sound = DispersionPrior.log_square
    monkeypatch.setattr(DispersionPrior, "log_square", property(lambda self: sound.fget(self) + 2.0 * np.log(2.0)))
    assert np.abs(z_scores("normal", global_random_seed)).max() > 6.0
    monkeypatch.setattr(DispersionPrior, "log_square", sound)
    sums = DistinctCounts.sums
    monkeypatch.setattr(DistinctCounts, "sums", lambda self, v: 0.9 * sums(self, v))
    assert np.abs(z_scores("normal", global_random_seed)).max() > 6.0


def test_minibatches_without_an_accept_step_come_near_the_posterior(global_random_seed):
    X, y, time = rows(600)
    exact = BayesianNegativeBinomialRegressor(1.0, sampler="hmc", random_state=1).fit(X, y, exposure=time)
    for given, more in ((X, {}), (X, {"batch_size": 60}), (sparse.csr_array(X), {"control_variates": True})):
        model = BayesianNegativeBinomialRegressor(1.0, random_state=global_random_seed, **more)
        model.fit(given, y, exposure=time)
        for name in ("coef", "dispersion", "intercept"):
            ours, theirs = model._all_samples[name], exact._all_samples[name]
            spread = theirs.std(axis=(0, 1))
            assert np.all(np.abs(ours.mean(axis=(0, 1)) - theirs.mean(axis=(0, 1))) < 0.3 * spread)
            assert np.all(np.abs(np.log(ours.std(axis=(0, 1)) / spread)) < 0.25)


@pytest.mark.parametrize("prior", ["normal", "laplace"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "diagonal"])
@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize("away", [1.0, 40.0])  # on the table of counts, and beyond it
def test_signal_is_the_gradient_of_the_log_posterior_and_unbiased(control, kind, prior, away, monkeypatch):
    X, y, time = rows(150)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if kind != "dense":
        X = X * (np.random.default_rng(0).random(X.shape) < 0.5)
    if kind == "diagonal":
        monkeypatch.setattr(_base, "MAX_ENTRIES", 3)
    monkeypatch.setattr(_base, "_DENSE_SHARE", 1.0)
    given = X if kind == "dense" else sparse.csr_matrix(X)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = BayesianNegativeBinomialRegressor(
        0.7, prior=prior, control_variates=control, dispersion_prior_scale=0.5, n_iter=4, random_state=0
    ).fit(given, y, weight, time)
    design = model._design
    responses = np.column_stack([y, np.log(time)])
    gradient = DenseGradient(model._data_maker(design, HMC(), given, responses, weight)[0](10), (5, 1))

    def direct(theta):
        coef, intercept, dispersion = design.coefficients(theta)
        coef, intercept, v = coef[0], intercept[0], np.log(dispersion)
        eta = X @ coef + intercept + np.log(time)
        value = weight @ (rising(y, v)[0] + y * eta - (y + np.exp(-v)) * np.logaddexp(0.0, v + eta))
        value += half_cauchy(v, 0.5)
        value -= 0.5 * ((intercept + coef @ np.average(X, axis=0, weights=weight)) / 100.0) ** 2
        if prior == "normal":
            return value - 0.5 * coef @ coef / 0.7**2
        return value - np.sqrt(coef**2 + design.kinks.width[0] ** 2).sum() / 0.7

    for sign in (-1.0, 1.0):
        theta, base = np.random.default_rng(0).standard_normal(5), np.zeros(5)
        theta[4] *= sign * away
        value, slope = gradient(theta)
        expected = direct(theta) - direct(base)
        assert value - gradient(base)[0] == pytest.approx(expected, abs=1e-5, rel=1e-7)
        seen = [(direct(theta + e) - direct(theta - e)) / 2e-5 for e in 1e-5 * np.eye(5)]
        np.testing.assert_allclose(slope, seen, rtol=1e-3, atol=1e-3 * away)
        parts = [gradient(theta, np.arange(i, i + 10))[1] for i in range(0, 150, 10)]
        np.testing.assert_allclose(np.mean(parts, axis=0), slope, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("v", [-45.0, -20.0, -9.0, -2.0, 0.0, 3.0, 15.0])
def test_rising_factorials_and_their_derivatives_lose_no_digits(v):
    for y in (0, 1, 2, 7, 300, 20_000):
        x = np.arange(y) * np.exp(v)
        share = x / (1.0 + x)
        expected = np.log1p(x).sum(), share.sum(), (share * (1.0 - share)).sum()
        np.testing.assert_allclose(rising(y, v), expected, rtol=2e-8, atol=1e-12 * y)
    at = np.array([-1e-4, 0.0, 1e-4]) + v
    value, slope, curvature = rising(2.5, at)
    assert slope[1] == pytest.approx((value[2] - value[0]) / 2e-4, rel=1e-4, abs=1e-9)
    assert curvature[1] == pytest.approx((slope[2] - slope[0]) / 2e-4, rel=1e-4, abs=1e-9)


def test_derivatives_of_the_likelihood_are_those_of_its_value():
    _, y, time = rows(40)
    responses, eta = np.column_stack([y, np.log(time)]), np.random.default_rng(1).normal(size=(40, 1))
    each = np.eye(40)

    def value(v, shift=0.0):
        likelihood = OverdispersedCounts(v)
        return np.array([likelihood.value(responses, weight, eta + shift) for weight in each])

    def residual(v):
        return OverdispersedCounts(v).residuals(responses, np.ones(40), eta)

    at, h = -0.3, 1e-4
    first, second, mixed = OverdispersedCounts(at).slopes(responses, eta)
    close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
    close(first, (value(at + h) - value(at - h)) / (2 * h))
    close(second, (value(at + h) - 2 * value(at) + value(at - h)) / h**2, atol=1e-4)
    close(residual(at)[0][:, 0], (value(at, h) - value(at, -h)) / (2 * h))
    close(residual(at)[1][:, 0], -(value(at, h) - 2 * value(at) + value(at, -h)) / h**2, atol=1e-4)
    close(mixed, (residual(at + h)[0] - residual(at - h)[0])[:, 0] / (2 * h))
    slope = OverdispersedCounts(at).curvature_slope(responses, eta)
    close(slope, (residual(at + h)[1] - residual(at - h)[1])[:, 0] / (2 * h))
    means = time * np.exp(eta[:, 0])
    close(OverdispersedCounts(at).each(responses, eta) - special.gammaln(y + 1.0), log_pmf(y, means, np.exp(at)))


def test_derivatives_of_the_prior_are_those_of_a_half_cauchy_density():
    prior, h = DispersionPrior(0.5), 1e-4
    for v in (-5.0, -1.0, 0.0, 2.0):
        low, here, high = (half_cauchy(v + move, 0.5) for move in (-h, 0.0, h))
        expected = (high - low) / (2 * h), (high - 2 * here + low) / h**2
        np.testing.assert_allclose(prior.derivatives(v), expected, atol=1e-6)


def test_the_dispersion_of_the_design_is_that_of_the_marginal_posterior():
    """Nine coefficients of twenty rows: the joint mode underestimates the dispersion, the design's does not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 8))
    y = overdispersed(np.full(20, 8.0), 0.5, rng)
    model = BayesianNegativeBinomialRegressor(5.0, sampler="nuts", random_state=0).fit(X, y)
    v = np.log(model._all_samples["dispersion"])
    assert abs(model._design.mode[-1] - v.mean()) < 1.0 * v.std()


@pytest.mark.parametrize("mean", [0.1, 3.0, 3000.0])
def test_counts_without_overdispersion_have_a_small_dispersion_and_poisson_coefficients(mean):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    y = rng.poisson(mean * np.exp(X @ [0.3, 0.0]))
    model = BayesianNegativeBinomialRegressor(random_state=0).fit(X, y)
    poisson = BayesianPoissonRegressor(random_state=0).fit(X, y)
    spread = poisson._all_samples["coef"].std(axis=(0, 1))
    assert np.all(np.abs(model.coef_ - poisson.coef_) < 0.3 * spread)
    assert model.dispersion_ * mean < 0.5


def test_exposures_move_means_and_weights_count_rows():
    X, y, time = rows(80)
    args = {"random_state": 0, "n_iter": 400}
    a = BayesianNegativeBinomialRegressor(**args).fit(X, y, exposure=2.0)
    b = BayesianNegativeBinomialRegressor(**args).fit(X, y)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-4)
    assert a.intercept_ == pytest.approx(b.intercept_ - np.log(2.0), rel=1e-3)
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    c = BayesianNegativeBinomialRegressor(**args).fit(X, y, weight, time)
    d = BayesianNegativeBinomialRegressor(**args).fit(*(each.repeat(weight, axis=0) for each in (X, y)),
                                                      exposure=time.repeat(weight))  # fmt: skip
    np.testing.assert_allclose(c.coef_, d.coef_, rtol=1e-4)
    assert c.dispersion_ == pytest.approx(d.dispersion_, rel=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"exposure": np.zeros(80)}, "exposure holds 0 at position 0; it must be positive"),
        ({"sample_weight": -np.ones(80)}, "sample_weight must not be negative"),
        ({"y": -np.ones(80)}, "counts must not be negative"),
        ({"y": np.full(80, 1e16)}, r"`y` must hold counts of at most 1e\+15; got 1e\+16.*BayesianLinearRegression"),
        ({"dispersion_prior_scale": 0.0}, "dispersion_prior_scale"),
        ({"dispersion_prior_scale": 1e-80}, "dispersion_prior_scale=1e-80 is too small"),
        ({"sampler": "rhmc"}, "RHMC needs a gradient and a metric"),
    ],
)
def test_wrong_input_is_refused_before_anything_changes(call, message):
    X, y, _ = rows(80)
    model = BayesianNegativeBinomialRegressor(random_state=0, n_iter=40).fit(X, y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    params = {name: value for name, value in call.items() if name in model.get_params()}
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(
            X, call.get("y", y), **{name: call[name] for name in ("exposure", "sample_weight") if name in call}
        )
    assert all(vars(model)[name] is value for name, value in before.items())


def test_saved_runs_continue():
    X, y, time = rows()
    args = {"n_iter": 40, "random_state": 0}
    whole = BayesianNegativeBinomialRegressor(**args).fit(X, y, exposure=time)
    stopped = BayesianNegativeBinomialRegressor(**args, callbacks=StopAt(30)).fit(X, y, exposure=time)
    stopped = pickle.loads(pickle.dumps(stopped)).set_params(callbacks=None)
    with pytest.raises(ValueError, match="`exposure` must be passed to `resume`"):
        stopped.resume(X, y)
    stopped.resume(X, y, exposure=time)
    for name in ("coef", "dispersion"):
        np.testing.assert_array_equal(stopped.samples_[name], whole.samples_[name])


@pytest.mark.parametrize("as_sparse", [False, True])
def test_a_stream_has_the_posterior_of_all_rows(as_sparse, monkeypatch):
    X, y, time = rows()
    X[:60, 2] = 5.0  # constant in the first block
    X = sparse.csr_array(X - [0.0, 100.0, 5.0]) if as_sparse else X
    args = {"random_state": 0, "n_iter": 4000}
    whole = BayesianNegativeBinomialRegressor(**args).fit(X, y, exposure=time)
    stream = BayesianNegativeBinomialRegressor(**args)
    blocks = [(X[part], y[part], time[part]) for part in (slice(60), slice(60, 90), slice(90, None))]
    for each, counts, exposure in blocks:
        stream.partial_fit(each, counts, exposure=exposure)
    assert stream.n_samples_seen_ == 200
    np.testing.assert_allclose(stream._design.mode, whole._design.mode, rtol=1e-5)
    np.testing.assert_allclose(stream.coef_prior_scale_, whole.coef_prior_scale_, rtol=1e-5)
    spread = whole._all_samples["dispersion"].std()
    assert abs(stream.dispersion_ - whole.dispersion_) < 0.2 * spread
    with pytest.raises(ValueError, match="dispersion_prior_scale"):
        stream.set_params(dispersion_prior_scale=3.0).partial_fit(*blocks[0][:2], exposure=blocks[0][2])
    assert stream.n_samples_seen_ == 200
    whole.partial_fit(*blocks[0][:2], exposure=blocks[0][2])
    assert whole.n_samples_seen_ == 260
    monkeypatch.setattr(_stream, "_MAX_NUMBERS_OF_FIT", 100)
    whole = BayesianNegativeBinomialRegressor(n_iter=40, random_state=0).fit(X, y, exposure=time)
    with pytest.raises(ValueError, match="`partial_fit` needs all earlier rows, but `fit` keeps them only if X"):
        whole.partial_fit(*blocks[0][:2], exposure=blocks[0][2])
    assert whole.n_samples_seen_ == 200


def test_predictions_are_those_of_the_mixture_over_draws():
    X, y, time = rows()
    model = BayesianNegativeBinomialRegressor(random_state=0, thin=1, n_iter=400).fit(X, y, exposure=time)
    draws = model._all_samples
    a = draws["dispersion"][0]
    assert model.dispersion_ == pytest.approx(a.mean()) and model.samples_["dispersion"].shape == (1, 200)
    means = time[0] * np.exp(draws["coef"][0] @ X[0] + draws["intercept"][0])
    mean, std = model.predict(X[:1], return_std=True, exposure=time[:1])
    assert mean[0] == pytest.approx(means.mean())
    assert std[0] == pytest.approx(np.sqrt(means.var() + np.mean(means + a * means**2)))
    _, low, high = model.predict_interval(X[:1], interval=0.8, exposure=time[:1])
    for end, tail in ((low[0], 0.1), (high[0], 0.9)):
        below = [stats.nbinom.cdf(end - step, 1.0 / a, 1.0 / (1.0 + a * means)).mean() for step in (1, 0)]
        assert below[0] < tail <= below[1]
    log = model._log_likelihood_draws(X[:1], y[:1], time[:1])[0, :, 0]
    np.testing.assert_allclose(log, log_pmf(y[0], means, a), rtol=1e-8)
    _, counts = model._predictive_draws(
        np.repeat(X[:1], 300, axis=0), np.random.default_rng(0), np.repeat(time[:1], 300)
    )
    assert counts.mean() == pytest.approx(mean[0], rel=0.05) and counts.std() == pytest.approx(std[0], rel=0.05)
    assert {"log_likelihood", "coef[0]", "intercept", "dispersion"} <= set(model.diagnostics_["quantity"])


@pytest.mark.parametrize("means", [[0.0, 1e-9], [3.0, 400.0], [2.0, 1e12], [1e12, 1e12]])
@pytest.mark.parametrize("tail", [0.001, 0.05, 0.5, 0.95])
@pytest.mark.parametrize("n", [1, 100])
def test_quantiles_of_any_mixture_are_the_least_counts_that_hold_the_mass(means, tail, n):
    means = np.repeat(means, n)[None]
    dispersions = np.resize([1e-12, 1.5, 0.3], means.size)
    count = mixture_quantile(means, dispersions, tail)
    assert np.isfinite(count).all() and distribution_function(count, means, dispersions) >= tail
    assert count == 0.0 or distribution_function(count - 1.0, means, dispersions) < tail


def test_intervals_cover_what_they_say(global_random_seed):
    """Of 90% intervals for coefficients, dispersion and new counts on simulated data, 90% hold the truth."""
    rng = np.random.default_rng(global_random_seed)
    held, new = [], []
    for s in range(100):
        X, coef = rng.normal(size=(60, 2)), 0.5 * rng.normal(size=2)
        a = float(np.exp(rng.normal(-0.5, 0.5)))
        model = BayesianNegativeBinomialRegressor(0.5, n_iter=1500, random_state=s)
        model.fit(X, overdispersed(np.exp(1.5 + X @ coef), a, rng))
        draws = np.column_stack([model._all_samples["coef"][0], model._all_samples["dispersion"][0]])
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        held.append((low < [*coef, a]) & ([*coef, a] < high))
        Z = rng.normal(size=(20, 2))
        y = overdispersed(np.exp(1.5 + Z @ coef), a, rng)
        _, low, high = model.predict_interval(Z)
        new.append(np.mean((low <= y) & (y <= high)))
    assert np.all(np.abs(np.mean(held, axis=0) - 0.9) < 4.0 * np.sqrt(0.09 / 100))
    assert 0.88 < np.mean(new) < 0.96
