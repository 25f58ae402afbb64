"""BayesianPoissonRegressor, and what it shares with logistic regression: Laplace priors and learnt scales."""

import pickle
import warnings
from functools import cache, partial

import numpy as np
import pytest
from scipy import sparse, special, stats
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import cross_val_score

from sk_sgmcmc import BayesianLogisticRegression, BayesianPoissonRegressor
from sk_sgmcmc.dense.tuning import DenseGradient
from sk_sgmcmc.linear_model import _predict, _prior
from sk_sgmcmc.linear_model._design import COUNTS, Design, DiagonalDesign, independent_prior
from sk_sgmcmc.samplers import HMC
from sk_sgmcmc.utils._mixtures import poisson_mixture_quantiles
from tests.common.compare import StopAt

N_CHAINS = 20
MODELS = {"poisson": BayesianPoissonRegressor, "logistic": BayesianLogisticRegression}


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + [0.0, 100.0, 5.0]
    return X, rng.poisson(np.exp(1.0 + (X - [0.0, 100.0, 5.0]) @ [0.5, -0.03, 2.0]))


def few(model):
    """Rows that determine two coefficients so little that the prior's shape matters."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(8, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    eta = X @ [0.7, 0.0]
    return X, rng.poisson(np.exp(eta)) if model == "poisson" else (np.arange(8) % 2 == (eta > 0)).astype(int)


@cache
def moments_on_a_grid(model, prior, width=(0.0, 0.0)):
    """Means, squares and sizes of two coefficients without intercept; kinks are rounded over ``width``."""
    X, y = few(model)
    grid = np.linspace(-6.0, 6.0, 601)
    b = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    eta = b @ X.T
    log = (y * eta - (np.exp(eta) if model == "poisson" else np.logaddexp(0.0, eta))).sum(axis=1)
    log -= 0.5 * (b**2).sum(axis=1) if prior == "normal" else np.sqrt(b**2 + np.square(width)).sum(axis=1)
    weight = special.softmax(log)
    return weight @ np.concatenate([b, b**2, np.abs(b)], axis=1)


def z_scores(model, prior, seed):
    fitted = MODELS[model](
        1.0, prior=prior, fit_intercept=False, sampler=HMC(n_leapfrog=5), n_iter=600, burn_in=100, thin=1,
        n_chains=N_CHAINS, random_state=seed,
    ).fit(*few(model))  # fmt: skip
    b = fitted.samples_["coef"].reshape(N_CHAINS, -1, 2)
    width = (0.0, 0.0) if prior == "normal" else tuple(fitted._design.kinks.width[0])
    means = np.concatenate([b, b**2, np.abs(b)], axis=2).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(N_CHAINS)
    return (means.mean(axis=0) - moments_on_a_grid(model, prior, width)) / error, width


@pytest.mark.parametrize("prior", ["normal", "laplace"])
@pytest.mark.parametrize("model", MODELS)
def test_hmc_has_the_law_of_the_model(model, prior, global_random_seed):
    z, width = z_scores(model, prior, global_random_seed)
    assert np.abs(z).max() < 5.0
    sharp, rounded = moments_on_a_grid(model, prior), moments_on_a_grid(model, prior, width)
    sd = [np.sqrt(each[2:4] - each[:2] ** 2) for each in (sharp, rounded)]
    assert np.all(np.abs(sd[1] / sd[0] - 1.0) < 0.02)
    assert np.all(np.abs(rounded[:2] - sharp[:2]) < 0.02 * sd[0])


def test_a_prior_of_another_scale_or_shape_is_rejected(monkeypatch, global_random_seed):
    plain = independent_prior

    def half(n_rows, n_features, scale, wide):
        return plain(n_rows, n_features, 0.5 * scale, wide)

    monkeypatch.setattr(_prior, "independent_prior", half)
    assert np.abs(z_scores("poisson", "normal", global_random_seed)[0]).max() > 6.0
    monkeypatch.setattr(_prior, "independent_prior", plain)
    # The Gaussian that stands for the prior is not taken away again.
    sound = _prior.Kinks.rows
    monkeypatch.setattr(_prior.Kinks, "rows", lambda self, is_sparse: sound(self, is_sparse) * [1.0, 1.0, 1.0, 0.0])
    assert np.abs(z_scores("poisson", "laplace", global_random_seed)[0]).max() > 6.0


@pytest.mark.parametrize("prior", ["normal", "laplace"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "diagonal"])
@pytest.mark.parametrize("control", [True, False])
def test_signal_is_the_gradient_of_the_log_posterior_and_unbiased(control, kind, prior):
    X, y = rows(150)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if kind != "dense":
        X = X * (np.random.default_rng(0).random(X.shape) < 0.5)
    given = X if kind == "dense" else sparse.csr_matrix(X)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))

    def make(of_prior):
        kind_of = DiagonalDesign if kind == "diagonal" else Design
        return kind_of(given, y, weight, 1, of_prior, True, control, None, COUNTS)

    design, _ = _prior.find_design(make, given, weight, 1, prior, 0.7, 100.0)
    model = BayesianPoissonRegressor()
    gradient = DenseGradient(model._data_maker(design, HMC(), given, y, weight)[0](10), (4, 1))

    def direct(theta):
        coef, intercept = (each[0] for each in design.coefficients(theta))
        eta = X @ coef + intercept
        value = weight @ (y * eta - np.exp(eta))
        value -= 0.5 * ((intercept + coef @ np.average(X, axis=0, weights=weight)) / 100.0) ** 2
        if prior == "normal":
            return value - 0.5 * coef @ coef / 0.7**2
        return value - np.sqrt(coef**2 + design.kinks.width[0] ** 2).sum() / 0.7

    theta, base = np.random.default_rng(0).standard_normal(4), np.zeros(4)
    value, slope = gradient(theta)
    assert value - gradient(base)[0] == pytest.approx(direct(theta) - direct(base), abs=1e-5)
    seen = [(direct(theta + e) - direct(theta - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(slope, seen, rtol=1e-3, atol=1e-3)
    parts = [gradient(theta, np.arange(i, i + 10))[1] for i in range(0, 150, 10)]
    np.testing.assert_allclose(np.mean(parts, axis=0), slope, rtol=1e-8, atol=1e-8)


def test_mode_is_scikit_learns_estimate():
    X, y = rows()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = BayesianPoissonRegressor(2.0, n_iter=20, intercept_prior_scale=1e6).fit(X, y)
    coef, intercept = ours._design.coefficients(np.zeros(4))
    theirs = PoissonRegressor(alpha=1.0 / (len(y) * 4.0), tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(coef[0], theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(intercept[0], theirs.intercept_, atol=1e-5)
    score = ours.score(X, y)
    deviance = [mean_poisson_deviance(y, each) for each in (ours.predict(X), np.full(len(y), y.mean()))]
    assert score == pytest.approx(1.0 - deviance[0] / deviance[1])


def test_exposures_are_weights_of_rates_and_weights_count_rows():
    X, y = rows(80)
    time = np.random.default_rng(0).uniform(0.5, 3.0, len(y))
    args = {"random_state": 0, "n_iter": 200}
    a = BayesianPoissonRegressor(**args).fit(X, y, exposure=time)
    b = BayesianPoissonRegressor(**args).fit(X, y / time, sample_weight=time)
    np.testing.assert_array_equal(a.coef_, b.coef_)
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    c = BayesianPoissonRegressor(**args).fit(X, y, sample_weight=weight)
    d = BayesianPoissonRegressor(**args).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(c.coef_, d.coef_, rtol=1e-4)
    for bad, match in (({"exposure": np.zeros(80)}, "exposure"), ({"sample_weight": -time}, "sample_weight")):
        with pytest.raises(ValueError, match=match):
            BayesianPoissonRegressor(**args).fit(X, y, **bad)
    with pytest.raises(ValueError, match="counts must not be negative"):
        BayesianPoissonRegressor(**args).fit(X, y - 100.0)


def test_minibatches_streams_and_saved_runs(global_random_seed):
    X, y = (np.tile(each, (4,) + (1,) * (each.ndim - 1)) for each in rows())
    exact = BayesianPoissonRegressor(1.0, sampler="hmc", random_state=1).fit(X, y)
    batch = BayesianPoissonRegressor(1.0, batch_size=50, random_state=global_random_seed).fit(X, y)
    stream = BayesianPoissonRegressor(1.0, random_state=global_random_seed).partial_fit(X[:300], y[:300])
    stream.partial_fit(X[300:], y[300:])
    spread = exact._all_samples["coef"].std(axis=(0, 1))
    for model in (batch, stream):
        assert np.all(np.abs(model.coef_ - exact.coef_) < 0.3 * spread)
        assert np.all(np.abs(np.log(model._all_samples["coef"].std(axis=(0, 1)) / spread)) < 0.25)
    args = {"n_iter": 40, "random_state": 0}
    whole = BayesianPoissonRegressor(**args).fit(X, y)
    stopped = BayesianPoissonRegressor(**args, callbacks=StopAt(10)).fit(X, y)
    stopped = pickle.loads(pickle.dumps(stopped)).set_params(callbacks=None).resume(X, y)
    np.testing.assert_array_equal(stopped.samples_["coef"], whole.samples_["coef"])


def test_a_stream_that_begins_with_zeros_comes_near_the_fit_to_all():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = rng.poisson(np.exp(1.0 + X @ [0.5, -0.3, 0.0]))
    whole = BayesianPoissonRegressor(1.0, random_state=0).fit(X, y)
    order = np.argsort(y, kind="stable")
    stream = BayesianPoissonRegressor(1.0, random_state=0)
    for block in np.split(order, [np.sum(y == 0)]):
        stream.partial_fit(X[block], y[block])
    assert abs(stream.intercept_ - whole.intercept_) < 0.5 * whole.samples_["intercept"].std()


def test_predictions_are_those_of_the_mixture_over_draws():
    X, y = rows()
    model = BayesianPoissonRegressor(random_state=0, thin=1, n_iter=400).fit(X, y)
    means = np.exp(model.samples_["coef"][0] @ X[0] + model.samples_["intercept"][0])
    mean, std = model.predict(X[:1], return_std=True)
    assert mean[0] == pytest.approx(means.mean())
    assert std[0] == pytest.approx(np.sqrt(means.var() + means.mean()))
    _, low, high = model.predict_interval(X[:1], interval=0.8)
    for end, tail in ((low[0], 0.1), (high[0], 0.9)):
        below = [stats.poisson.cdf(end - step, means).mean() for step in (1, 0)]
        assert below[0] < tail <= below[1]


def test_predictions_at_an_exposure_are_those_of_larger_means():
    X, y = rows()
    time = np.random.default_rng(0).uniform(0.5, 300.0, len(y))
    model = BayesianPoissonRegressor(random_state=0, n_iter=200).fit(X, y, exposure=time)
    draws = model._all_samples
    means = time[:, None] * np.exp(X @ draws["coef"][0].T + draws["intercept"][0])
    mean, std = model.predict(X, return_std=True, exposure=time)
    np.testing.assert_allclose(mean, means.mean(axis=1))
    np.testing.assert_allclose(std, np.sqrt(means.var(axis=1) + means.mean(axis=1)))
    rate = model.predict(X, exposure=1)
    np.testing.assert_allclose(model.predict(X, exposure=time), time * rate)
    _, low, high = model.predict_interval(X, of="mean", exposure=time)
    for end, same in zip((low, high), model.predict_interval(X, of="mean", exposure=1)[1:], strict=True):
        np.testing.assert_allclose(end, time * same)
    _, low, high = model.predict_interval(X[:1], exposure=time[:1])
    for end, tail in ((low[0], 0.05), (high[0], 0.95)):
        below = [stats.poisson.cdf(end - step, means[0]).mean() for step in (1, 0)]
        assert below[0] < tail <= below[1]
    rates = model.score(X, y / time, sample_weight=time, exposure=1)
    assert model.score(X, y, exposure=time) == pytest.approx(rates)
    np.testing.assert_allclose(model.predict(X, exposure=2), 2 * rate)
    bad = [(time[:-1], r"shape \(199,\); give a number for each of the 200 rows"), (-time, "holds -.* at position 0")]
    for given, message in (*bad, (np.where(np.arange(len(y)) == 3, np.nan, time), "holds nan at position 3")):
        for call in (model.predict, model.predict_interval, partial(model.score, y=y), partial(model.fit, y=y)):
            with pytest.raises(ValueError, match=message):
                call(X, exposure=given)


def test_exposures_of_all_blocks_of_rows_count(monkeypatch):
    X, y = rows(90)
    time = np.random.default_rng(0).uniform(0.5, 300.0, len(y))
    model = BayesianPoissonRegressor(random_state=0, n_iter=200).fit(X, y, exposure=time)
    whole = model.predict(X, True, exposure=time), model.predict_interval(X, exposure=time)
    monkeypatch.setattr(_predict, "_CELLS", 20 * model._near_intercepts.size)
    parts = model.predict(X, True, exposure=time), model.predict_interval(X, exposure=time)
    for ours, theirs in zip(parts, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_an_exposure_that_is_forgotten_is_refused_or_told():
    X, y = rows(80)
    time = np.random.default_rng(0).uniform(0.5, 3.0, len(y))
    args = {"random_state": 0, "n_iter": 100}
    model = BayesianPoissonRegressor(**args).fit(X, y, exposure=time)
    with pytest.raises(ValueError, match=r"`exposure` must be passed to `score`.*exposure=1.*set_score_request"):
        model.score(X, y)
    for call in (model.predict, model.predict_interval, partial(model.predict, return_std=True)):
        with pytest.warns(UserWarning, match="rates, not counts. Pass exposure="):
            told = call(X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(told, call(X, exposure=1))
    with pytest.raises(ValueError, match="must be passed to `to_arviz`"):
        model._log_likelihood_draws(X, y)
    for method in ("partial_fit", "resume"):
        with pytest.raises(ValueError, match=f"`exposure` must be passed to `{method}`"):
            getattr(model, method)(X, y)
    before = model.coef_
    model.partial_fit(X, y, exposure=time)
    assert model.n_samples_seen_ == 160 and not np.array_equal(model.coef_, before)
    plain = BayesianPoissonRegressor(**args).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        plain.score(X, y), plain.predict(X), plain.predict_interval(X, exposure=time)
    for method in ("partial_fit", "resume"):
        with pytest.raises(ValueError, match=f"must not be passed to `{method}`"):
            getattr(plain, method)(X, y, exposure=time)
    scores = cross_val_score(BayesianPoissonRegressor(**args), X, y, params={"exposure": time}, cv=2, error_score=-7.0)
    np.testing.assert_array_equal(scores, -7.0)  # without metadata routing, scores are refused


def test_intervals_cover_what_they_say(global_random_seed):
    """Of 90% intervals for coefficients on simulated data, 90% hold the truth."""
    rng = np.random.default_rng(global_random_seed)
    held = []
    for s in range(100):
        X, coef = rng.normal(size=(25, 2)), 0.5 * rng.normal(size=2)
        y = rng.poisson(np.exp(0.5 + X @ coef))
        model = BayesianPoissonRegressor(0.5, n_iter=1500, random_state=s).fit(X, y)
        low, high = np.quantile(model._all_samples["coef"][0], [0.05, 0.95], axis=0)
        held.append((low < coef) & (coef < high))
    assert np.all(np.abs(np.mean(held, axis=0) - 0.9) < 4.0 * np.sqrt(0.09 / 100))


@pytest.mark.parametrize("prior", ["normal", "laplace"])
def test_a_learnt_scale_is_that_of_the_coefficients(prior):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 30))
    for truth in (0.05, 0.4):
        coef = truth * (rng.normal(size=30) if prior == "normal" else rng.laplace(size=30))
        y = (rng.random(2000) < special.expit(X @ coef)).astype(int)
        model = BayesianLogisticRegression("auto", prior=prior, n_iter=20, random_state=0).fit(X, y)
        size = np.sqrt(np.mean(coef**2)) if prior == "normal" else np.mean(np.abs(coef))
        assert model.prior_scale_ == pytest.approx(size, rel=0.35)


def test_a_learnt_scale_maximises_its_posterior():
    """Two coefficients and no intercept: the evidence by integration over a grid."""
    X, y = few("logistic")
    X = np.repeat(X, 6, axis=0)
    X /= np.sqrt(np.mean(X**2, axis=0))  # as the model does, without an intercept
    y = np.random.default_rng(0).binomial(1, special.expit(X @ [1.0, -0.8]))
    model = BayesianLogisticRegression("auto", fit_intercept=False, n_iter=20, random_state=0)
    model.fit(X * [1.0, 50.0], y)
    grid = np.linspace(-6.0, 6.0, 301)
    b = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    log = (y * (b @ X.T) - np.logaddexp(0.0, b @ X.T)).sum(axis=1)
    unit, scales = 1.0, np.exp(np.linspace(-3.0, 2.0, 101))
    posterior = [
        special.logsumexp(log - 0.5 * (b**2).sum(axis=1) / t**2) - 2.0 * np.log(t) + np.log(t / (1.0 + (t / unit) ** 2))
        for t in scales
    ]
    assert np.log(model.prior_scale_ / scales[int(np.argmax(posterior))]) == pytest.approx(0.0, abs=0.12)


@pytest.mark.parametrize("means", [[0.0, 1e-9], [3.0, 400.0], [2.0, 1e30], [1e30, 1e30]])
@pytest.mark.parametrize("tail", [0.05, 0.5, 0.95])
def test_quantiles_of_any_mixture_are_the_least_counts_that_hold_the_mass(means, tail):
    count = poisson_mixture_quantiles(np.array([means]), [tail])[0][0]
    assert np.isfinite(count) and special.pdtr(count, means).mean() >= tail
    below = np.minimum(count - 1.0, np.nextafter(count, 0.0))
    assert count == 0.0 or special.pdtr(below, means).mean() < tail


def test_predictions_beyond_any_count_are_finite_and_equal_counts_explain_nothing():
    X = np.random.default_rng(0).normal(size=(8, 2))
    model = BayesianPoissonRegressor(n_iter=50, random_state=0)
    with pytest.raises(NotFittedError):
        model.score(X, np.zeros(8))
    model.fit(X, np.zeros(8))
    assert model.score(X, np.zeros(8)) == 0.0 and model.score(X, np.full(8, 3.0)) == 0.0
    for values in (model.predict(1e6 * X), *model.predict(1e6 * X, return_std=True), *model.predict_interval(1e6 * X)):
        assert np.isfinite(values).all()
