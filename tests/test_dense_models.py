"""What the estimators on dense rows promise beside scikit-learn's checks: seeds, threads, resuming, searching."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sk_sgmcmc import BayesianGaussian, BayesianLogisticRegression, chains
from sk_sgmcmc.samplers import SGHMC, SGLD
from tests.common.compare import StopAt, assert_same_draws
from tests.common.dense import DENSE_MODELS

each = pytest.mark.parametrize("name", DENSE_MODELS)
CHECKED = [BayesianLogisticRegression(n_iter=400), BayesianGaussian(n_iter=400)]


@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def case(name, **params):
    estimator, data = DENSE_MODELS[name]
    return clone(estimator).set_params(**params), *data()


@each
def test_draws_depend_on_the_seed_alone(name, monkeypatch):
    model, X, y = case(name, n_chains=3)
    model.fit(X, y)
    assert all(np.all(np.isfinite(value)) for value in model.samples_.values())
    assert_same_draws(model, case(name, n_chains=3, n_jobs=2)[0].fit(X, y))
    monkeypatch.setattr(chains, "LOOK_AROUND_SECONDS", 0.0)
    assert_same_draws(model, case(name, n_chains=3)[0].fit(X, y))
    other = case(name, n_chains=3, random_state=1)[0].fit(X, y)
    assert all(not np.array_equal(value, other.samples_[key]) for key, value in model.samples_.items())
    first = case(name)[0].fit(X, y)
    for key, value in first.samples_.items():
        np.testing.assert_array_equal(value[0], model.samples_[key][0])


@each
def test_a_stopped_fit_goes_on_from_a_pickle_with_the_same_draws(name):
    model, X, y = case(name, callbacks=StopAt(20), n_chains=2)
    model.fit(X, y)
    assert model.n_iter_ < 60
    again = pickle.loads(pickle.dumps(model)).resume(X, y)
    assert_same_draws(case(name, n_chains=2)[0].fit(X, y), again)
    assert again.n_iter_ == 60


@each
def test_step_size_is_reported_and_set_however_the_sampler_was_given(name):
    model, X, y = case(name)
    model.fit(X, y)
    assert model.sampler_ is not model.sampler
    assert np.isfinite(model.sampler_.step_size_(0)) and model.batch_size_ <= len(X)
    model = case(name, sampler=None)[0].set_params(sampler__step_size=0.02)
    assert model.fit(X, y).sampler_.step_size_(0) == 0.02


@each
def test_bad_parameters_are_named(name):
    for bad in ({"batch_size": 10_000}, {"sampler": "scir"}, {"n_iter": 0}, {"burn_in": 100}, {"with_replacement": 3}):
        model, X, y = case(name, **bad)
        with pytest.raises(ValueError, match=next(iter(bad))):
            model.fit(X, y)


def test_a_sampler_that_does_not_fit_is_refused_with_those_that_do():
    with pytest.raises(ValueError, match="sghmc"):
        BayesianLogisticRegression(sampler="scir").fit(None, None)


def test_grid_search_over_samplers_in_a_pipeline():
    _, X, y = case("logistic")
    pipeline = make_pipeline(StandardScaler(), BayesianLogisticRegression(n_iter=60, random_state=0))
    grid = {
        "bayesianlogisticregression__sampler": [None, "sgld", SGHMC(friction=2.0)],
        "bayesianlogisticregression__sampler__step_size": [0.05, 0.1],
    }
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2, error_score="raise").fit(X, y)
    assert len(search.cv_results_["mean_test_score"]) == 6
    assert search.best_score_ > 0.7


def test_chains_that_disagree_are_told():
    _, X, y = case("logistic")
    model = BayesianLogisticRegression(sampler=SGLD(1e-5), n_chains=4, n_iter=400, random_state=0)
    with pytest.warns(ConvergenceWarning, match="R-hat"):
        model.fit(X, y)
