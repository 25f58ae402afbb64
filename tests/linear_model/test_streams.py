"""Streams of regressions: all rows in memory are fitted as by `fit`, when an attribute is first read."""

import pickle
import signal
import warnings
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)
from sk_sgmcmc.exceptions import ChainDivergedError, FitInterrupted
from sk_sgmcmc.linear_model._base import BaseLinearModel
from sk_sgmcmc.samplers import SGHMC
from tests.common.compare import StopAt, assert_same_draws
from tests.common.instances import classes

SHORT = {"n_iter": 60, "random_state": 0}
MEMORY = "sk_sgmcmc.linear_model._stream._MAX_NUMBERS_KEPT"


def scaled_classes(n_classes):
    X, y = classes(n_classes)
    return X / X.std(axis=0), y


def counts(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, rng.poisson(np.exp(1.0 + X @ [0.5, -0.3, 0.0]))


MODELS = {
    "binary": lambda: (BayesianLogisticRegression(**SHORT), *scaled_classes(2)),
    "three classes": lambda: (BayesianLogisticRegression("auto", **SHORT), *classes(3)),
    "laplace": lambda: (BayesianLogisticRegression("auto", prior="laplace", **SHORT), *classes(2)),
    "poisson": lambda: (BayesianPoissonRegressor(**SHORT), *counts()),
    "negative binomial": lambda: (BayesianNegativeBinomialRegressor(**SHORT), *counts()),
    "gibbs": lambda: (BayesianLinearRegression(**SHORT), *counts()),
    "normal": lambda: (BayesianLinearRegression(sampler="sghmc", **SHORT), *counts()),
}
each_model = pytest.mark.parametrize("name", MODELS)


def in_blocks(model, X, y, blocks, read=lambda model: None):
    """The model, passed the rows block by block, and what ``read`` reads after each."""
    more = {"classes": np.unique(y)} if hasattr(model, "predict_proba") else {}
    for block in blocks:
        read(model.partial_fit(X[block], y[block], **more))
    return model


def thirds(y):
    return np.array_split(np.arange(len(y)), 3)


@pytest.fixture
def runs(monkeypatch):
    """The models whose chains have run, one entry for each run."""
    found, run = [], BaseLinearModel._run
    monkeypatch.setattr(BaseLinearModel, "_run", lambda self, *args: [found.append(self), run(self, *args)][1])
    return found


@each_model
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_chains_run_when_a_fitted_attribute_is_first_read(name, runs):
    new, X, y = MODELS[name]()
    fitted = clone(new).fit(X, y)
    known = {
        "trace_",
        "checks_",
        "diagnostics_",
        "_distinct",
        "_units",
        "_is_wide",
        "_is_mild",
        "_spread",
        *type(new)._set_by_run,
    }
    runs.clear()
    for attribute in sorted(type(new)._set_by_run):
        model = in_blocks(clone(new), X, y, thirds(y))
        assert not runs and model.n_samples_seen_ == len(y) and model.n_features_in_ == X.shape[1]
        assert set(vars(fitted)) - set(vars(model)) <= known, "an attribute of a run is missing from _set_by_run"
        assert hasattr(model, attribute) == (attribute != "trace_")
        assert runs == [model]
        hasattr(model, "coef_"), model.predict(X)
        assert runs == [model]
        runs.clear()


@each_model
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_draws_do_not_depend_on_when_they_were_read(name):
    new, X, y = MODELS[name]()
    never = in_blocks(clone(new), X, y, thirds(y))
    assert_same_draws(in_blocks(clone(new), X, y, thirds(y), read=lambda model: model.coef_), never)
    assert_same_draws(in_blocks(clone(new), X, y, thirds(y), read=lambda model: pickle.dumps(model)), never)
    each = []
    in_blocks(clone(new), X, y, thirds(y), read=lambda model: each.append(copy(model)))
    assert_same_draws(each[-1], never)
    assert not np.array_equal(each[0].coef_, each[1].coef_)


@each_model
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_in_memory_are_fitted_as_by_fit(name):
    new, X, y = MODELS[name]()
    stream, whole = in_blocks(clone(new), X, y, thirds(y)), clone(new).fit(X, y)
    if hasattr(stream, "_sums"):  # the priors of the noise and the intercept come from the first rows
        np.testing.assert_allclose(stream._sums.gram, whole._sums.gram, rtol=1e-9)
        return
    assert stream.prior_scale_ == pytest.approx(whole.prior_scale_, rel=0.02)  # of a search
    np.testing.assert_allclose(stream.coef_prior_scale_, whole.coef_prior_scale_, rtol=0.02)
    np.testing.assert_allclose(stream._design.mode, whole._design.mode, rtol=0.02, atol=0.01)
    if name != "negative binomial":
        np.testing.assert_allclose(stream._design.whitener, whole._design.whitener, rtol=0.02, atol=0.01)


@each_model
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_run_has_the_rows_and_parameters_of_the_call(name):
    new, X, y = MODELS[name]()
    plain = in_blocks(clone(new), X, y, thirds(y))
    model, rows, responses = clone(new), np.empty_like(X), np.empty_like(y)
    model.set_params(sampler=SGHMC(0.1) if name != "gibbs" else None)
    plain.set_params(sampler=SGHMC(0.1) if name != "gibbs" else None).partial_fit(X, y)
    for block in (*thirds(y), np.arange(len(y))):  # the caller fills the same arrays again
        part = rows[: len(block)], responses[: len(block)]
        part[0][:], part[1][:] = X[block], y[block]
        model.partial_fit(*part, **({"classes": np.unique(y)} if hasattr(model, "predict_proba") else {}))
    rows[:], responses[:] = 0.0, 0
    if name != "gibbs":
        model.set_params(sampler__step_size=1e-6)
    model.set_params(n_iter=3, n_chains=2, random_state=5)
    assert_same_draws(model, plain)
    assert model.n_iter == 3 and model.n_iter_ == 60


def test_a_failed_run_is_reported_at_each_read_and_another_call_mends_it():
    X, y = counts()
    model = BayesianPoissonRegressor(sampler=SGHMC(1e6), **SHORT).partial_fit(X[:60], y[:60])
    for _ in range(2):
        with pytest.raises(ChainDivergedError, match="step size"):
            model.coef_
    assert model.n_samples_seen_ == 60
    model.set_params(sampler=None).partial_fit(X[60:], y[60:])
    assert np.all(np.isfinite(model.coef_)) and model.n_samples_seen_ == 120


def test_an_interrupted_run_is_resumed_with_the_rows_of_the_last_call():
    X, y = scaled_classes(2)
    whole = in_blocks(BayesianLogisticRegression(**SHORT), X, y, thirds(y))
    stopped = in_blocks(BayesianLogisticRegression(**SHORT), X, y, thirds(y))

    def press(estimator, step):
        if step >= 20:
            signal.raise_signal(signal.SIGINT)

    stopped.set_params(callbacks=press)  # only of the run that waits
    with pytest.warns(UserWarning, match="Interrupted after"), pytest.raises(FitInterrupted):
        stopped.coef_
    assert stopped.n_iter_ < 60
    last = X[thirds(y)[-1]], y[thirds(y)[-1]]
    assert_same_draws(stopped.set_params(callbacks=None).resume(*last), whole)


def test_callbacks_see_the_run_of_each_call(runs):
    X, y = scaled_classes(2)
    stops = StopAt(20)
    model = in_blocks(BayesianLogisticRegression(callbacks=stops, **SHORT), X, y, thirds(y))
    assert len(runs) == 3 and vars(model)["n_iter_"] == 20
    last = X[thirds(y)[-1]], y[thirds(y)[-1]]
    resumed = pickle.loads(pickle.dumps(model)).resume(*last)
    assert_same_draws(resumed, in_blocks(BayesianLogisticRegression(**SHORT), X, y, thirds(y)))


def test_a_new_fit_forgets_the_run_that_waits(runs):
    X, y = scaled_classes(2)
    model = in_blocks(BayesianLogisticRegression(**SHORT), X, y, thirds(y)).fit(X, y)
    assert len(runs) == 1
    assert_same_draws(model, BayesianLogisticRegression(**SHORT).fit(X, y))


def test_names_of_unfitted_models_and_of_attributes_that_do_not_exist():
    with pytest.raises(AttributeError, match="has no attribute 'coef_'"):
        BayesianLogisticRegression().coef_
    with pytest.raises(AttributeError, match="'diagnostics_' before it is fitted"):
        BayesianLogisticRegression().diagnostics_
    X, y = counts()
    with pytest.raises(AttributeError, match="has no attribute 'coeff_'"):
        BayesianPoissonRegressor(**SHORT).partial_fit(X, y).coeff_


def test_a_sampler_without_a_metric_for_wide_rows_is_refused_by_the_call():
    X, y = scaled_classes(2)
    wide = sparse.csr_array(np.hstack([X, np.zeros((len(X), 1000))]))
    model = BayesianLogisticRegression(sampler="sgr-nphmc", **SHORT)
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="needs the Fisher information"):
            method(wide, y)


# ------------------------------------------------------------------------------------------- more rows than memory


def sorted_blocks(n=100, n_blocks=2):
    """Rows of two classes, and blocks of their indices, sorted by class; the first of two blocks is one class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(X[:, 1] - X[:, 0]))).astype(int)
    order = np.argsort(y, kind="stable")
    return X, y, np.split(order, [np.sum(y == 0)]) if n_blocks == 2 else np.array_split(order, n_blocks)


def assert_near(stream, whole, share):
    """Means of a stream lie within this share of a posterior standard deviation of those of a whole fit."""
    for name in ("coef", "intercept"):
        each, all_ = stream._all_samples[name], whole._all_samples[name]
        assert np.all(np.abs(each.mean((0, 1)) - all_.mean((0, 1))) < share * all_.std((0, 1)))
        assert np.all(np.abs(np.log(each.std((0, 1)) / all_.std((0, 1)))) < 0.2)


@pytest.mark.parametrize("n_blocks", [2, 5])
def test_a_stream_of_rows_sorted_by_class_comes_near_the_fit_to_all(n_blocks):
    X, y, blocks = sorted_blocks(n_blocks=n_blocks)
    whole = BayesianLogisticRegression(random_state=0).fit(X, y)
    assert_near(in_blocks(BayesianLogisticRegression(random_state=0), X, y, blocks), whole, 0.2)


@pytest.mark.parametrize("kind", [BayesianLogisticRegression, BayesianPoissonRegressor])
def test_a_gaussian_represents_rows_that_memory_does_not_hold(kind, monkeypatch):
    X, y = counts(1200)
    y = y > 2 if kind is BayesianLogisticRegression else y
    whole = kind(1.0, random_state=0).fit(X, y)
    monkeypatch.setattr(MEMORY, 1000)
    for order in (np.arange(1200), np.argsort(X[:, 0])):
        model = in_blocks(kind(1.0, random_state=0), X, y, np.array_split(order, 12))
        assert_near(model, whole, 0.3)
        assert model._stream.summary.weight + model._stream.rows[2].sum() == 1200
        assert model._stream.rows[0].size <= 1000
        never = in_blocks(kind(1.0, **SHORT), X, y, np.array_split(order, 12))
        always = in_blocks(kind(1.0, **SHORT), X, y, np.array_split(order, 12), read=lambda model: model.coef_)
        assert_same_draws(never, always)


def test_rows_of_fit_are_represented_by_a_gaussian():
    X, y = scaled_classes(2)
    X, y = np.tile(X, (4, 1)), np.tile(y, 4)
    rows = np.random.default_rng(0).permutation(len(X))
    whole = BayesianLogisticRegression(random_state=0).fit(X, y)
    model = BayesianLogisticRegression(random_state=0).fit(X[rows[:400]], y[rows[:400]])
    assert not model._stream.blocks
    assert_near(model.partial_fit(X[rows[400:]], y[rows[400:]]), whole, 0.6)


def test_a_column_that_varies_only_after_rows_were_discarded_gets_its_unit(monkeypatch):
    X, y = counts(300)
    X[:200, 2] = 0.0
    monkeypatch.setattr(MEMORY, 400)
    models = []
    for unit in (1.0, 1e6):
        blocks = np.array_split(np.arange(300), 6)
        models.append(in_blocks(BayesianPoissonRegressor(random_state=0), X * [1.0, 1.0, unit], y, blocks))
    first, second = (model.coef_prior_scale_[2] * unit for model, unit in zip(models, (1.0, 1e6), strict=True))
    assert second == pytest.approx(first, rel=1e-6)
    np.testing.assert_allclose(models[1].coef_[2] * 1e6, models[0].coef_[2], atol=0.01)


def test_a_sorted_stream_of_more_rows_than_memory_warns_at_each_later_read(monkeypatch):
    X, y, blocks = sorted_blocks(400, 8)
    monkeypatch.setattr(MEMORY, 500)
    model = in_blocks(BayesianLogisticRegression(n_iter=100, random_state=0), X, y, blocks[:4])
    shuffled = np.array_split(np.random.default_rng(0).permutation(400), 8)
    for block in (*blocks[4:], *shuffled):
        model.partial_fit(X[block], y[block])
        with pytest.warns(ConvergenceWarning, match=r"lack a class, or come sorted.*Shuffle the rows.*call fit"):
            model.coef_
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        in_blocks(BayesianLogisticRegression(n_iter=100, random_state=0), X, y, shuffled).coef_
        model.fit(X, y).partial_fit(X[shuffled[0]], y[shuffled[0]]).coef_
    assert not [each for each in caught if "sorted" in str(each.message)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_more_rows_a_gaussian_represents_the_sooner_it_is_off(monkeypatch):
    X, y, blocks = sorted_blocks(400, 8)
    monkeypatch.setattr(MEMORY, 500)
    model = in_blocks(BayesianLogisticRegression(n_iter=20, random_state=0), X, y, blocks[:5])
    design, summary = model._design, model._stream.summary
    assert summary.is_off(model._stream.rows, design)
    assert not replace(summary, weight=1e-6).is_off(model._stream.rows, design)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_wide_stream_that_lacks_a_class_is_fitted_as_a_whole_or_warns(monkeypatch):
    X, y, blocks = sorted_blocks(60)
    X = sparse.csr_array(np.hstack([X, np.random.default_rng(1).normal(size=(60, 1000)) / 30.0]))
    new = BayesianLogisticRegression(sampler=SGHMC(step_size=0.1), n_iter=400, random_state=0)
    whole, model = clone(new).fit(X, y), in_blocks(clone(new), X, y, blocks)
    assert np.abs(model.intercept_ - whole.intercept_) < 1.0
    monkeypatch.setattr(MEMORY, 1000)
    with pytest.warns(ConvergenceWarning, match="lack a class"):
        in_blocks(clone(new), X, y, blocks).coef_


def test_the_rows_of_a_later_call_may_be_fewer_than_a_minibatch():
    X, y = scaled_classes(2)
    model = BayesianLogisticRegression(batch_size=20, n_iter=20, random_state=0).fit(X, y)
    assert model.partial_fit(X[:7], y[:7]).batch_size_ == 7
    assert BayesianLogisticRegression(batch_size=20, n_iter=20).partial_fit(X[:7], y[:7]).batch_size_ == 7
