"""BayesianLinearRegression: its law against integrals over grids, its streams, its answers."""

import pickle
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sk_sgmcmc import BayesianLinearRegression, BayesianLogisticRegression
from sk_sgmcmc.dense.tuning import DenseGradient
from sk_sgmcmc.exceptions import ChainDivergedError
from sk_sgmcmc.kernels.models.linear.design import KINKS
from sk_sgmcmc.linear_model import _normal
from sk_sgmcmc.linear_model._design import independent_prior
from sk_sgmcmc.linear_model._normal import NormalDesign, Sums
from sk_sgmcmc.linear_model._prior import HalfT, InverseChiSquared
from sk_sgmcmc.samplers import HMC, SGHMC
from tests.common.compare import StopAt

N_CHAINS = 20
LAWS = {"normal": {}, "laplace": {"prior": "laplace"}, "learnt": {"prior_scale": "auto"}}
LAWS["given noise"] = {"noise_scale_prior": 0.6, "degrees_of_freedom_prior": 5.0}
LAWS["learnt laplace"] = LAWS["laplace"] | LAWS["learnt"]


def rows(n=14, d=2, seed=0):
    """Few rows, so that the posterior is no Gaussian, with columns that are correlated and far from 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ np.array([[1.0, 0.7], [0.0, 0.7]])[:d, :d] + 3.0
    return X, X[:, 0] - 0.4 * X[:, -1] + rng.normal(size=n)


@cache
def moments_on_a_grid(law):
    """Means of coefficients, their squares, |coefficients|, and of log noise, on a grid over (log noise, coefficients).

    Written from the model: the intercept's wide prior integrates to 1 / sqrt(n); scales are integrated on a grid too.
    """
    X, y = rows()
    centred, away = (X - X.mean(axis=0)) / column_units(law, X), y - y.mean()
    noise, t = np.linspace(-1.4, 2.0, 60), np.linspace(-1.0, 1.0, 160)
    b = 4.5 * t**3  # close together at 0, where a learnt scale puts a spike
    s, u, v = np.meshgrid(noise, b, b, indexing="ij")
    rest = (away**2).sum() - 2 * (u * (centred[:, 0] @ away) + v * (centred[:, 1] @ away))
    gram = centred.T @ centred
    rest += u**2 * gram[0, 0] + 2 * u * v * gram[0, 1] + v**2 * gram[1, 1]
    n, unit = len(y), y.std()
    log = -0.5 * rest * np.exp(-2 * s) - (n - 1) * s + log_prior_of_noise(law, s, y)
    x = np.linspace(np.log(unit) - 12.0, np.log(unit) + 12.0, 400)
    hyper = x - np.log1p(np.exp(2 * (x - np.log(unit))))
    if law == "learnt":  # a spike at 0, too narrow for a grid: coefficients are Gaussian given both scales
        of_noise = log_prior_of_noise(law, noise, y) - (n - 1) * noise
        return gaussian_given_scales(noise, of_noise, x, hyper, gram, centred.T @ away, (away**2).sum())
    if law == "learnt laplace":
        size = (np.abs(u[0]) + np.abs(v[0])).ravel()
        prior = sum(np.exp(h - 2 * at - size * np.exp(-at)) for h, at in zip(hyper, x, strict=True))
        log += np.log(prior).reshape(u[0].shape)
    else:
        log -= (np.abs(u) + np.abs(v)) if law == "laplace" else 0.5 * (u**2 + v**2)
    weight = np.exp(log - log.max()) * t[:, None] ** 2 * t**2
    return [np.sum(weight * f) / weight.sum() for f in (u, v, u**2, v**2, np.abs(u), np.abs(v), s)]


def column_units(law, X):
    """A scale that is learnt is that of standardised columns."""
    return X.std(axis=0) if law.startswith("learnt") else np.ones(X.shape[1])


def log_prior_of_noise(law, s, y):
    """Of the log noise: half-Cauchy of median sd(y), unless a scaled inverse chi-squared prior is given."""
    if law == "given noise":
        return -5.0 * s - 0.5 * 5.0 * 0.6**2 * np.exp(-2.0 * s)
    return s - np.log1p(np.exp(2.0 * s) / y.var())


def gaussian_given_scales(noise, of_noise, x, hyper, gram, cross, square):
    """The same moments from those of a Gaussian, at each pair of log noise and log scale."""
    found, weight = [], []
    for (s, own), (log_scale, h) in product(zip(noise, of_noise, strict=True), zip(x, hyper, strict=True)):
        precision = gram * np.exp(-2 * s) + np.exp(-2 * log_scale) * np.eye(2)
        covariance = np.linalg.inv(precision)
        mean = covariance @ cross * np.exp(-2 * s)
        sd = np.sqrt(np.diag(covariance))
        size = stats.foldnorm.mean(np.abs(mean) / sd, scale=sd)
        found.append([*mean, *(mean**2 + sd**2), *size, s])
        rest = (square - cross @ mean) * np.exp(-2 * s)
        weight.append(h + own - 2 * log_scale - 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * rest)
    weight = np.exp(np.array(weight) - np.max(weight))
    return list(weight @ np.array(found) / weight.sum())


def z_scores(law, seed, sampler="gibbs", **more):
    X, y = rows()
    params = {"prior_scale": 1.0, "n_iter": 1000, "burn_in": 150, "thin": 1} | LAWS[law] | more
    model = BayesianLinearRegression(sampler=sampler, n_chains=N_CHAINS, random_state=seed, **params).fit(X, y)
    b, noise = model.samples_["coef"] * column_units(law, X), np.log(model.samples_["noise_scale"])
    found = [b[..., 0], b[..., 1], b[..., 0] ** 2, b[..., 1] ** 2, np.abs(b[..., 0]), np.abs(b[..., 1]), noise]
    means = np.stack([each.mean(axis=1) for each in found], axis=1)
    return (means.mean(axis=0) - moments_on_a_grid(law)) / (means.std(axis=0, ddof=1) / np.sqrt(N_CHAINS))


@pytest.mark.parametrize("law", LAWS)
def test_gibbs_has_the_law_of_the_model(law, global_random_seed):
    assert np.abs(z_scores(law, global_random_seed)).max() < 5.0


def _jacobian_twice(self, x):
    return 2.0 * x - np.log1p(np.exp(2.0 * (x - np.log(self.data.unit))))


def _noise_of_half(self):
    sums, noise = self.data.sums, self.data.noise
    square = sums.residual_square(self.b) + sums.total * (sums.y_mean - self.centre) ** 2
    self.variance = noise.draw(sums.total - 2.0, square, self.variance, self.rng)


def _wrong_shape(self):
    size = np.abs(self.b / self.data.prior_unit) / self.scale
    self.local = 1.0 / self.rng.wald(1.0 / size, 2.0)


@pytest.mark.parametrize(
    "law, name, broken",
    [
        ("normal", "_draw_noise", _noise_of_half),
        ("laplace", "_draw_local", _wrong_shape),
        ("learnt", "_hyper", _jacobian_twice),
    ],
)
def test_a_broken_sweep_is_rejected(law, name, broken, monkeypatch, global_random_seed):
    monkeypatch.setattr(_normal.GibbsChain, name, broken)
    assert np.abs(z_scores(law, global_random_seed)).max() > 6.0


@pytest.mark.parametrize("intercept", [True, False])
def test_kernels_read_a_kink_for_every_coordinate(intercept):
    X, y = rows(60)
    model = BayesianLinearRegression(sampler="hmc", prior="laplace", fit_intercept=intercept, n_iter=2).fit(X, y)
    params = model._design.params(True)
    assert params.size - params[KINKS] == 4 * len(model._design.whitener)


@pytest.mark.parametrize("law", ["normal", "laplace", "given noise"])
def test_hmc_has_the_law_of_the_model(law, global_random_seed):
    z = z_scores(law, global_random_seed, HMC(n_leapfrog=5), n_iter=700, burn_in=100)
    assert np.abs(z).max() < 5.0


def log_inverse_chi_squared(sigma):
    return -0.5 * 0.7**2 / sigma**2 - np.log(sigma)


def log_half_t(sigma):
    return np.log(sigma) - 2.0 * np.log1p(sigma**2 / (3.0 * 0.7**2)) - 0.5 * 0.1**2 / sigma**2


NOISE = [(InverseChiSquared(1.0, 0.7), log_inverse_chi_squared), (HalfT(3.0, 0.7, 0.1), log_half_t)]


@pytest.mark.parametrize(("noise", "log_prior"), NOISE, ids=["inverse chi-squared", "half-t"])
@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_signal_is_the_gradient_of_the_log_posterior_and_unbiased(intercept, control, noise, log_prior):
    X, y = rows(60)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = BayesianLinearRegression(fit_intercept=intercept)
    wide = 50.0 if intercept else None
    sums = Sums.of(X, y, weight, intercept)
    design = NormalDesign(sums, independent_prior(1, 2, 1.3, wide), noise, intercept, control)
    D = len(design.whitener)
    gradient = DenseGradient(model._data_maker(design, HMC(), X, y, weight)[0](10), (D, 1))

    def direct(theta):
        coef, level, sigma = design.coefficients(theta)
        value = weight @ (-0.5 * ((y - X @ coef - level) / sigma) ** 2 - np.log(sigma))
        value += log_prior(sigma) - 0.5 * coef @ coef / 1.3**2
        at_mean = level + coef @ np.average(X, axis=0, weights=weight)
        return value - 0.5 * (at_mean / 50.0) ** 2 if intercept else value

    theta, base = np.random.default_rng(0).standard_normal(D), np.zeros(D)
    value, slope = gradient(theta)
    assert value - gradient(base)[0] == pytest.approx(direct(theta) - direct(base), abs=1e-6)
    seen = [(direct(theta + e) - direct(theta - e)) / 2e-5 for e in 1e-5 * np.eye(D)]
    np.testing.assert_allclose(slope, seen, rtol=1e-4, atol=1e-4)
    parts = [gradient(theta, np.arange(i, i + 10))[1] for i in range(0, 60, 10)]
    np.testing.assert_allclose(np.mean(parts, axis=0), slope, rtol=1e-8, atol=1e-8)


def test_minibatches_agree_with_gibbs():
    X, y = load_diabetes(return_X_y=True)
    exact = BayesianLinearRegression(500.0, random_state=0).fit(X, y)
    model = BayesianLinearRegression(500.0, sampler=SGHMC(), batch_size=50, random_state=0).fit(X, y)
    ours, theirs = model._all_samples["coef"][0], exact._all_samples["coef"][0]
    assert np.all(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 0.25 * theirs.std(axis=0))
    assert np.all(np.abs(np.log(ours.std(axis=0) / theirs.std(axis=0))) < 0.2)


def test_a_stream_has_the_posterior_of_all_its_rows():
    X, y = load_diabetes(return_X_y=True)
    unlike = {"intercept_prior_scale": 1e4, "noise_scale_prior": 77.0, "random_state": 0, "prior_scale": 500.0}
    whole = BayesianLinearRegression(**unlike).fit(X, y)
    streams = {name: BayesianLinearRegression(sampler=name, **unlike) for name in ("gibbs", "sghmc")}
    for model in streams.values():
        for part in (slice(0, 100), slice(100, 101), slice(101, None)):
            model.partial_fit(X[part], y[part])
        assert model.n_samples_seen_ == len(y)
        spread = whole._all_samples["coef"].std(axis=(0, 1))
        assert np.all(np.abs(model.coef_ - whole.coef_) < 0.25 * spread)
        assert model.noise_scale_ == pytest.approx(whole.noise_scale_, rel=0.02)


def test_units_offsets_weights_and_sparse_rows_change_nothing():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:80], y[:80]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    args = {"random_state": 0, "n_iter": 60, "prior_scale": 300.0, "noise_scale_prior": 50.0}
    args["intercept_prior_scale"] = 1e4
    a = BayesianLinearRegression(**args).fit(X, y, sample_weight=weight)
    b = BayesianLinearRegression(**args).fit(X.repeat(weight, axis=0), y.repeat(weight))
    c = BayesianLinearRegression(**args).fit(sparse.csr_array(X), y, sample_weight=weight)
    d = BayesianLinearRegression(**args).fit(X + 1e6, y, sample_weight=weight)
    for other, close in ((b, 1e-6), (c, 1e-6), (d, 1e-3)):
        np.testing.assert_allclose(other.coef_, a.coef_, rtol=close, atol=close * 100)
    np.testing.assert_allclose(d.predict(X + 1e6), a.predict(X), rtol=1e-4)


def test_resume_gives_the_draws_of_one_run():
    X, y = rows(60)
    for sampler in ("gibbs", "sghmc"):
        args = {"sampler": sampler, "n_iter": 40, "random_state": 0}
        whole = BayesianLinearRegression(**args).fit(X, y)
        model = BayesianLinearRegression(**args, callbacks=StopAt(10)).fit(X, y)
        model = pickle.loads(pickle.dumps(model)).set_params(callbacks=None).resume(X, y)
        np.testing.assert_array_equal(model.samples_["coef"], whole.samples_["coef"])


def test_intervals_cover_what_they_say(global_random_seed):
    """Of 90% intervals for coefficients, means and new observations on simulated data, 90% hold the truth."""
    rng = np.random.default_rng(global_random_seed)
    held = []
    for s in range(120):
        X = rng.normal(size=(12, 2))
        coef, sigma = rng.normal(size=2), np.sqrt(5.0 / rng.chisquare(5.0))
        y, new = X @ coef + sigma * rng.normal(size=12), X @ coef + sigma * rng.normal(size=12)
        model = BayesianLinearRegression(
            1.0, n_iter=700, burn_in=100, random_state=s, noise_scale_prior=1.0, degrees_of_freedom_prior=5.0
        ).fit(X, y)
        low, high = np.quantile(model._all_samples["coef"][0], [0.05, 0.95], axis=0)
        _, low_mean, high_mean = model.predict_interval(X[:1], of="mean")
        _, low_new, high_new = model.predict_interval(X[:1])
        of_mean = low_mean[0] < X[0] @ coef < high_mean[0]
        held.append([*((low < coef) & (coef < high)), of_mean, low_new[0] < new[0] < high_new[0]])
    share = np.mean(held, axis=0)
    assert np.all(np.abs(share - 0.9) < 4.0 * np.sqrt(0.09 / 120))


def test_intervals_of_the_default_cover_what_they_say_at_any_noise(global_random_seed):
    """Neither coefficients nor the noise are held up by the prior of the noise, whatever the share of variance."""
    rng = np.random.default_rng(global_random_seed)
    n_sets = 50
    for noise in (0.03, 2.0):
        held = []
        for s in range(n_sets):
            X, coef = rng.normal(size=(15, 3)), rng.normal(size=3)
            coef /= np.linalg.norm(coef)
            y = X @ coef + noise * rng.normal(size=15)
            draws = BayesianLinearRegression(n_iter=200, burn_in=40, random_state=s).fit(X, y)._all_samples
            low, high = np.quantile(draws["coef"][0], [0.05, 0.95], axis=0, method="weibull")
            least, most = np.quantile(draws["noise_scale"], [0.05, 0.95], method="weibull")
            held.append([*((low < coef) & (coef < high)), least < noise < most])
        # Four standard errors of a share.
        assert np.all(np.abs(np.mean(held, axis=0) - 0.9) < 4.0 * np.sqrt(0.09 / n_sets))


@pytest.mark.parametrize("sampler", ["gibbs", "sghmc"])
def test_responses_without_noise_and_fewer_rows_than_columns_have_finite_positive_noise(sampler):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 3))
    for rows_, y in ((X, X @ [1.0, -1.0, 0.5]), (X[:3], X[:3, 0]), (X[:1], X[:1, 0] + 1.0), (X, np.zeros(25))):
        model = BayesianLinearRegression(sampler=sampler, n_iter=200, random_state=0).fit(rows_, y)
        noise = model._all_samples["noise_scale"]
        assert np.isfinite(model.predict(X)).all() and np.isfinite(noise).all() and noise.min() > 0.0
    exact = BayesianLinearRegression(sampler=sampler, random_state=0).fit(X, 5.0 + X @ [1.0, -1.0, 0.5])
    np.testing.assert_allclose(exact.coef_, [1.0, -1.0, 0.5], atol=1e-5)
    assert exact.noise_scale_ < 1e-3 * np.std(X @ [1.0, -1.0, 0.5])


def test_the_best_variance_is_a_mode():
    for prior in (HalfT(1.0, 0.7, 0.1), HalfT(5.0, 20.0), InverseChiSquared(2.0, 0.3)):
        for total, square in ((0.3, 0.1), (1.0, 2.0), (30.0, 1e-3), (30.0, 1e3)):
            at = prior.best(total, square)
            assert prior.derivatives(at)[0] + square / at - total == pytest.approx(
                0.0, abs=1e-8 * (total + square / at)
            )


def test_predictions_are_those_of_the_mixture_over_draws():
    X, y = rows(40)
    model = BayesianLinearRegression(random_state=0, thin=1, n_iter=400).fit(X, y)
    means = model.samples_["coef"][0] @ X[0] + model.samples_["intercept"][0]
    noise = model.samples_["noise_scale"][0]
    mean, std = model.predict(X[:1], return_std=True)
    assert mean[0] == pytest.approx(means.mean())
    assert std[0] == pytest.approx(np.sqrt(means.var() + np.mean(noise**2)))
    _, low, high = model.predict_interval(X[:1], interval=0.8)
    for end, tail in ((low[0], 0.1), (high[0], 0.9)):
        assert stats.norm.cdf(end, means, noise).mean() == pytest.approx(tail, abs=1e-4)
    _, low, high = model.predict_interval(X[:1], of="mean")
    np.testing.assert_allclose([low[0], high[0]], np.quantile(means, [0.05, 0.95], method="weibull"))
    with pytest.raises(ValueError, match="of='all'"):
        model.predict_interval(X, of="all")


@pytest.mark.parametrize(("n_rows", "n_columns"), [(10, 3), (300, 3), (5000, 3), (3000, 30)])
def test_intervals_are_those_of_all_draws_for_every_row(n_rows, n_columns):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns)) * 10.0 ** rng.integers(-3, 4, size=n_columns) + 5.0
    y = 1e3 + X[:, 0] / X[:, 0].std() + rng.normal(size=n_rows)
    model = BayesianLinearRegression(random_state=0, n_iter=400).fit(X, y)
    draws = model._all_samples
    for scale in (1.0, 100.0):  # the second far outside the data
        new = X.mean(axis=0) + scale * (X[:9] - X.mean(axis=0))
        means = new @ draws["coef"][0].T + draws["intercept"][0]
        noise = draws["noise_scale"][0]
        mean, std = model.predict(new, return_std=True)
        np.testing.assert_allclose(mean, means.mean(axis=1), rtol=1e-9)
        np.testing.assert_allclose(std, np.sqrt(means.var(axis=1) + np.mean(noise**2)), rtol=1e-6)
        for interval in (0.9, 0.999):
            _, *ends = model.predict_interval(new, interval)
            for found, tail in zip(ends, ((1 - interval) / 2, (1 + interval) / 2), strict=True):
                below = [stats.norm.cdf(q, m, noise).mean() for q, m in zip(found, means, strict=True)]
                np.testing.assert_allclose(below, tail, rtol=1e-5, atol=2e-8)
    whole = model.predict_interval(X[:7])
    for i in (0, 6):
        np.testing.assert_array_equal(np.ravel(model.predict_interval(X[i : i + 1])), [end[i] for end in whole])
    thin = sparse.csr_array(X[:7])
    for ours, theirs in zip(
        model.predict_interval(thin) + model.predict(thin, True), whole + model.predict(X[:7], True), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_pipeline_gives_spreads_intervals_and_names():
    X, y = rows(60)
    X[:, 1] = np.arange(60) % 2
    columns = make_column_transformer((StandardScaler(), [0]), (OneHotEncoder(drop="first"), [1]))
    pipe = make_pipeline(columns, BayesianLinearRegression(random_state=0, n_iter=100)).fit(X, y)
    Z = pipe[:-1].transform(X)
    for ours, theirs in zip(pipe.predict(X, return_std=True), pipe[-1].predict(Z, return_std=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    mean, low, high = pipe[-1].predict_interval(Z)
    assert np.all((low < mean) & (mean < high))
    names = pipe[:-1].get_feature_names_out()
    table = pipe[-1].coef_table(feature_names=names)
    assert list(table["feature"]) == ["intercept", "standardscaler__x0", "onehotencoder__x1_1.0"]
    assert list(pipe[-1].coef_table()["feature"]) == ["intercept", "x0", "x1"]
    with pytest.raises(ValueError, match=r"feature_names has shape \(3,\); it must hold 2 names"):
        pipe[-1].coef_table(feature_names=["intercept", *names])
    classifier = BayesianLogisticRegression(random_state=0, n_iter=20).fit(Z, np.arange(60) % 3)
    assert list(classifier.coef_table(0.5, feature_names=names)["feature"]) == ["intercept", *names] * 3


def test_what_cannot_be_fitted_is_named():
    X, y = rows(20)
    for bad, match in (
        ({"prior_scale": -1.0}, "prior_scale"),
        ({"prior": "cauchy"}, "prior"),
        ({"sampler": "rhmc"}, "gibbs"),
        ({"prior_scale": 1e-80}, "too small"),
        ({"degrees_of_freedom_prior": 0.0}, "degrees_of_freedom_prior"),
    ):
        with pytest.raises(ValueError, match=match):
            BayesianLinearRegression(**bad).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight"):
        BayesianLinearRegression().fit(X, y, sample_weight=-np.ones(20))
    with pytest.raises(ValueError, match="resume continues"):
        BayesianLinearRegression(n_iter=20).fit(X, y).resume(X + 1.0, y)
    with pytest.raises(ValueError, match="y holds no number at position 3"):
        BayesianLinearRegression().fit(X, np.array([1.0, 2.0, 0.5, None] * 5, dtype=object))
    one, constant = BayesianLinearRegression(n_iter=50, random_state=0), np.full(20, 3.0)
    np.testing.assert_allclose(one.fit(X, constant).predict(X), 3.0, rtol=0.2)


def test_a_column_of_any_size_beside_a_constant_one_has_coordinates_of_its_own():
    X, y = rows(20)
    X[:, 0], X[:, 1] = 0.0, np.where(np.arange(20) == 7, -(2.0**63), X[:, 1])
    model = BayesianLinearRegression(sampler="sghmc", n_iter=50, fit_intercept=np.bool_(False), random_state=0)
    assert np.isfinite(model.fit(X, y).coef_).all()


@pytest.mark.parametrize("noise", [1e200, np.inf, np.nan])
def test_noise_too_large_to_square_is_a_divergence(monkeypatch, noise):
    X, y = rows(20)
    model = BayesianLinearRegression(sampler="sghmc", n_iter=50, random_state=0)
    drawn = BayesianLinearRegression._drawn
    monkeypatch.setattr(BayesianLinearRegression, "_drawn", lambda *args: (*drawn(*args)[:2], np.full((1, 25), noise)))
    with pytest.raises(ChainDivergedError, match="noise is too large"):
        model.fit(X, y)


def test_partial_fit_refuses_other_priors_of_what_the_first_rows_have_set():
    X, y = np.arange(20.0).reshape(10, 2) % 7, np.arange(10.0) % 4
    model = BayesianLinearRegression(n_iter=20).partial_fit(X, y)
    for name, value in {"intercept_prior_scale": 1.0, "noise_scale_prior": 2.0, "degrees_of_freedom_prior": 3}.items():
        before = getattr(model, name)
        with pytest.raises(ValueError, match=f"{name}={value} differs from {name}={before}"):
            model.set_params(**{name: value}).partial_fit(X, y)
        model.set_params(**{name: before})
    model.set_params(prior_scale=0.5, prior="laplace").partial_fit(X, y)  # the sums over all rows follow these
