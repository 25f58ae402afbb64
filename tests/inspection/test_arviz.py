"""ArviZ takes every estimator and what `sample` returns: its summary, its traces and its leave-one-out run on them."""

import types
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import is_regressor
from sklearn.utils import Bunch

from sk_sgmcmc import (
    BayesianLDA,
    BayesianLinearRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    sample,
)
from sk_sgmcmc.inspection import to_arviz
from sk_sgmcmc.targets import DirichletCategorical, GaussianMean
from tests.common.instances import DEFAULTS
from tests.conftest import importorskip

REGRESSIONS = (BayesianLinearRegression, BayesianPoissonRegressor, BayesianNegativeBinomialRegressor)
WITH_ROWS = {"vmf", "logistic", "linear", "poisson", "negative-binomial", "gaussian", "dp", "latent-class"}


@pytest.fixture
def arviz():
    importorskip("matplotlib")
    return importorskip("arviz")


@pytest.fixture(scope="module", params=DEFAULTS, ids=lambda case: case.id)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def model(case):
    return case.fitted(n_chains=2, n_iter=64)  # ArviZ 1's leave-one-out needs more than 25 draws


@pytest.mark.filterwarnings("ignore")  # of short chains, and of quantities that are the same in all draws
def test_summary_and_trace_run(model, arviz):
    data = to_arviz(model, words=2) if hasattr(model, "components_") else to_arviz(model)
    one = min(model.samples_, key=lambda name: model.samples_[name].size)  # ArviZ 1 draws a panel for each number
    assert len(arviz.summary(data, kind="stats")) > 0
    in_one_panel = {"compact": True} if arviz.__version__.startswith("0.") else {}
    arviz.plot_trace(data, var_names=[one], **in_one_panel)
    __import__("matplotlib.pyplot").pyplot.close("all")


def test_draws_are_the_samples_with_names(case, model, arviz):
    posterior = to_arviz(model).posterior
    assert set(posterior.data_vars) == set(model.samples_)
    for name, value in model.samples_.items():
        np.testing.assert_array_equal(posterior[name].values, value)
        assert not any(dim.startswith(name) for dim in posterior[name].dims), f"{name} has unnamed axes"


def test_statistics_of_draws_are_those_of_the_diagnostics(case, model, arviz):
    found = to_arviz(model).sample_stats
    monitored = {name.removeprefix("mean_") for name in model.diagnostics_["quantity"]}
    assert {name.removeprefix("mean_") for name in found.data_vars} <= monitored
    assert len(found.data_vars)
    assert all(found[name].shape == case.draws(model).shape[:2] for name in found.data_vars)


def test_statistics_have_draws_of_their_own(arviz):
    X = np.random.default_rng(0).poisson(1.0, (30, 4))
    lda = BayesianLDA(2, n_iter=100, n_chains=2, random_state=0).fit(X)
    data = to_arviz(lda)
    assert {"log_predictive", "topic_entropy"} <= set(data.sample_stats.data_vars)
    assert data.posterior.sizes["draw"] == 50 and data.sample_stats.sizes["draw"] < 50
    assert data.sample_stats.sizes["chain"] == 2


@pytest.mark.filterwarnings("ignore")  # of Pareto k, in few draws
def test_leave_one_out_runs_where_rows_have_a_likelihood(case, model, arviz):
    given = case.data_of()
    if case.id not in WITH_ROWS:
        with pytest.raises(ValueError, match="score"):
            to_arviz(model, *given)
        return
    data = to_arviz(model, *given)
    (log_likelihood,) = data.log_likelihood.data_vars.values()
    n_rows = given[0].shape[0]
    assert log_likelihood.shape == (*case.draws(model).shape[:2], n_rows)
    if hasattr(model, "score_samples"):
        flat = log_likelihood.values.reshape(-1, n_rows)
        np.testing.assert_allclose(
            logsumexp(flat, axis=0) - np.log(len(flat)), model.score_samples(given[0]), atol=1e-8
        )
    elif is_regressor(model):
        mean = given[0] @ model.samples_["coef"][1, -1] + model.samples_["intercept"][1, -1]
        law = stats.poisson(np.exp(mean)).logpmf
        if case.id == "linear":
            law = stats.norm(mean, model.samples_["noise_scale"][1, -1]).logpdf
        if case.id == "negative-binomial":
            dispersion = model.samples_["dispersion"][1, -1]
            law = stats.nbinom(1.0 / dispersion, 1.0 / (1.0 + dispersion * np.exp(mean))).logpmf
        np.testing.assert_allclose(log_likelihood.values[1, -1], law(given[1]), rtol=1e-6)
    else:
        proba = model.predict_proba(given[0])[np.arange(n_rows), np.searchsorted(model.classes_, given[1])]
        np.testing.assert_allclose(np.exp(log_likelihood.values).mean(axis=(0, 1)), proba, rtol=1e-8)
    name = "elpd_loo" if arviz.__version__.startswith("0.") else "elpd"
    assert np.isfinite(float(getattr(arviz.loo(data), name)))


@pytest.mark.filterwarnings("ignore")
def test_predictive_draws_are_those_of_the_model(case, model, arviz):
    if case.id not in {"logistic", "linear", "poisson", "negative-binomial", "gaussian"}:
        return
    given = case.data_of()
    data = to_arviz(model, *given, random_state=1)
    (name, drawn), *_ = data.posterior_predictive.data_vars.items()
    np.testing.assert_array_equal(data.observed_data[name].values, given[-1])
    if is_regressor(model):
        mean, std = model.predict(given[0], return_std=True)
        np.testing.assert_allclose(
            drawn.values.mean(axis=(0, 1)), mean, atol=5 * std.max() / np.sqrt(drawn[..., 0].size)
        )
    elif name == "y":
        share = (drawn.values == model.classes_[1]).mean(axis=(0, 1))
        p = model.predict_proba(given[0])[:, 1]
        assert np.abs(share - p).mean() < 0.2 and set(np.unique(drawn.values)) <= set(model.classes_)
    else:
        np.testing.assert_allclose(
            drawn.values.mean(axis=(0, 1, 2)), model.mean_, atol=4 * given[0].std(axis=0).max() / 10
        )
        spread = drawn.values.reshape(-1, drawn.shape[-1]).std(axis=0)
        expected = np.sqrt(np.diag(np.linalg.inv(model.precision_)))
        np.testing.assert_allclose(spread, expected, rtol=0.5)
    lists = [array.tolist() for array in given]
    again = to_arviz(model, *lists, random_state=1).posterior_predictive
    np.testing.assert_array_equal(again[name].values, drawn.values)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("target", ["counts", "flat"])
def test_what_sample_returns_is_taken(target, arviz):
    if target == "counts":
        bare = DirichletCategorical(np.repeat([0, 1, 2], [80, 15, 5]), concentration=0.1, n_categories=5)
    else:
        bare = GaussianMean(np.random.default_rng(0).normal(size=(30, 2)))
    result = sample(bare, n_iter=60, n_chains=2, random_state=0)
    data = to_arviz(result)
    assert set(data.posterior.data_vars) == set(result.samples_) and len(arviz.summary(data))
    assert ("sample_stats" in data) == (target == "flat")
    if target == "flat":
        np.testing.assert_array_equal(data.sample_stats["lp"].values, result.log_density_)
        longer = sample(bare, n_iter=600, n_chains=2, random_state=0)  # whose log density is known at some draws only
        assert longer.log_density_.size < 600 and "sample_stats" not in to_arviz(longer)
    with pytest.raises(ValueError, match="pass log_likelihood="):
        to_arviz(result, np.eye(2))
    with pytest.raises(TypeError, match="no samples_"):
        to_arviz(Bunch(a=1))


def test_topics_and_words_are_named(arviz):
    X = np.random.default_rng(0).poisson(1.0, (30, 4))
    names = ["apple", "pear", "plum", "fig"]
    lda = BayesianLDA(2, n_iter=10, random_state=0).fit(X, feature_names=names)
    components = to_arviz(lda, words=["fig"]).posterior["components"]
    assert list(components.coords["topic"].values) == list(lda.topic_names_)
    assert list(components.coords["word"].values) == ["fig"]
    lda.topic_names_ = ["sweet", "sour"]
    one = to_arviz(lda).posterior["components"].sel(topic="sour", word="pear").values
    np.testing.assert_array_equal(one, lda.samples_["components"][:, :, 1, 1])


@pytest.mark.parametrize("id", ["linear", "poisson", "negative-binomial"])
def test_rows_need_responses(id, arviz):
    case = next(case for case in DEFAULTS if case.id == id)
    X, y = case.data_of()
    model = case.fitted()
    with pytest.raises(ValueError, match="give y"):
        to_arviz(model, X)
    with pytest.raises(ValueError, match="inconsistent"):
        to_arviz(model, X, y[1:])


@pytest.mark.parametrize("cls", REGRESSIONS)
def test_rows_have_a_likelihood_in_each_draw_of_the_posterior(cls, arviz):
    X, y = np.arange(40.0)[:, None] / 40, np.arange(40.0) % 3
    model = cls(n_chains=2, random_state=0).fit(X, y)
    data = to_arviz(model, X, y)
    assert data.posterior.sizes["draw"] == data.log_likelihood.sizes["draw"] > model.samples_["coef"].shape[1]


def test_counts_have_the_likelihood_of_their_exposures(arviz):
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(60, 2)), rng.uniform(1.0, 9.0, 60)
    y = rng.poisson(time * np.exp(X @ [0.3, 0.0]))
    model = BayesianPoissonRegressor(random_state=0).fit(X, y, exposure=time)
    data = to_arviz(model, X, y, exposure=time)
    coef, intercept = (data.posterior[name].values[0, 5] for name in ("coef", "intercept"))
    expected = stats.poisson(time * np.exp(X @ coef + intercept)).logpmf(y)
    np.testing.assert_allclose(data.log_likelihood["y"].values[0, 5], expected, rtol=1e-6)
    np.testing.assert_allclose(data.posterior_predictive["y"].mean(), y.mean(), rtol=0.1)
    with pytest.raises(ValueError, match="without X"):
        to_arviz(model, exposure=time)
    with pytest.raises(ValueError, match="does not model counts"):
        to_arviz(BayesianLinearRegression(random_state=0).fit(X, y), X, y, exposure=time)


@pytest.mark.parametrize("cls", REGRESSIONS)
def test_named_columns_raise_no_warning(cls, arviz):
    pandas = importorskip("pandas")
    X, y = pandas.DataFrame({"a": np.arange(40.0) / 40}), np.arange(40.0) % 3
    model = cls(random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_arviz(model, X, y)


@pytest.mark.parametrize("cls", REGRESSIONS)
def test_a_response_that_is_no_number_is_refused(cls, arviz):
    X, y = np.arange(8.0)[:, None], np.arange(8.0)
    model = cls(n_iter=40, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        to_arviz(model, X, np.where(y == 3, np.nan, y))


def test_rows_need_labels_where_the_model_has_them(arviz):
    logistic = next(case for case in DEFAULTS if case.id == "logistic")
    X, y = logistic.data_of()
    model = logistic.fitted()
    for given, message in (((X,), "give y"), ((X, y + 5), "classes"), ((None, y), "without X")):
        with pytest.raises(ValueError, match=message):
            to_arviz(model, *given)


@pytest.mark.parametrize("version", ["0.23.4", "1.0.0"])
def test_each_version_gets_all_groups_in_its_own_way(version, monkeypatch):
    logistic = next(case for case in DEFAULTS if case.id == "logistic")
    fake = types.ModuleType("arviz")
    fake.__version__ = version
    fake.from_dict = lambda *args, **kwargs: (args, kwargs)
    monkeypatch.setitem(__import__("sys").modules, "arviz", fake)
    model = logistic.fitted()  # warns of the columns' spreads
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        args, kwargs = to_arviz(model, *logistic.data_of())
    groups = args[0] if version.startswith("1") else kwargs
    assert {"posterior", "sample_stats", "log_likelihood", "posterior_predictive", "observed_data"} <= set(groups)
