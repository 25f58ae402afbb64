"""What the estimators on dense rows promise beside the common checks: tuned steps, batches, chains that disagree."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sk_sgmcmc import (
    BayesianGaussian,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)
from sk_sgmcmc.dense.model import BaseDenseSGMCMC
from sk_sgmcmc.samplers import SGHMC, SGLD, SGNHT
from tests.common.instances import ESTIMATORS, classes

DENSE = [case for case in ESTIMATORS if isinstance(case.estimator, BaseDenseSGMCMC)]
each = pytest.mark.parametrize("case", DENSE, ids=lambda case: case.id)


@each
def test_the_step_size_and_the_batch_that_were_chosen_are_reported(case):
    model = case.fitted()
    if hasattr(model.sampler_, "step_size_"):
        assert np.isfinite(model.sampler_.step_size_(0))
    assert 1 <= model.batch_size_ <= len(case.X())


@each
def test_bad_batches_and_replacement_are_named(case):
    for bad in ({"batch_size": 10_000}, {"with_replacement": 3}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            case.fitted(**bad)


def test_grid_search_over_samplers_in_a_pipeline():
    X, y = classes(2)
    pipeline = make_pipeline(StandardScaler(), BayesianLogisticRegression(n_iter=60, random_state=0))
    grid = {
        "bayesianlogisticregression__sampler": [None, "sgld", SGHMC(friction=2.0)],
        "bayesianlogisticregression__sampler__step_size": [0.05, 0.1],
    }
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert len(search.cv_results_["mean_test_score"]) == 6
    assert search.best_score_ > 0.7


@pytest.mark.parametrize("case", [c for c in DENSE if "particles" not in c.id], ids=lambda case: case.id)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_blocks_of_a_stream_reuse_no_random_numbers(case):
    increments = []
    model = case.new(n_chains=1, n_iter=600, burn_in=0, thin=1)
    for n_chains in (1, 2, 2):
        model.set_params(n_chains=n_chains).partial_fit(*case.data_of())
        draws = next(iter(model.samples_.values()))[0].reshape(600, -1)
        increments.append(np.diff(draws[:, 0]))
    correlation = np.corrcoef(increments)
    assert np.abs(correlation[np.triu_indices(3, 1)]).max() < 0.3


def test_chains_that_disagree_warn():
    X, y = classes(2)
    model = BayesianLogisticRegression(sampler=SGLD(1e-5), n_chains=4, n_iter=400, random_state=0)
    with pytest.warns(ConvergenceWarning, match="R-hat"):
        model.fit(X, y)


def test_a_collapsed_spread_warns():
    X, y = classes(2)
    with pytest.warns(ConvergenceWarning, match="collapsed"):
        BayesianLogisticRegression(sampler=SGLD(1e-5), n_iter=400, random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        BayesianLogisticRegression(random_state=0).fit(X, y)


def heated_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    return X, X @ [1.0, -1.0, 0.0], rng


@pytest.mark.parametrize("sampler", [SGLD(1.5), SGLD(2.5), SGNHT(1.5)], ids=repr)
def test_long_steps_that_widen_the_draws_warn(sampler):
    X, eta, rng = heated_rows()
    y = (rng.random(100) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    model = BayesianLogisticRegression(sampler=sampler, random_state=0)
    message = r'too wide: .*Use a step_size smaller than \S+, or step_size="auto"\.'
    with pytest.warns(ConvergenceWarning, match=message):
        model.fit(X, y)
    with pytest.warns(ConvergenceWarning, match=message):
        clone(model).partial_fit(X, y).n_iter_


def test_minibatches_that_widen_the_draws_warn():
    X, eta, rng = heated_rows()
    y = (rng.random(100) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    model = BayesianLogisticRegression(sampler=SGHMC(0.2), batch_size=1, control_variates=False, random_state=0)
    with pytest.warns(ConvergenceWarning, match="batch_size larger than 1, or control_variates=True"):
        model.fit(X, y)


def test_regressions_and_gaussians_warn_of_wide_draws_too():
    X, eta, rng = heated_rows()
    fits = (
        (BayesianLinearRegression(sampler=SGLD(1.5)), (X, eta + rng.normal(size=100))),
        (BayesianPoissonRegressor(sampler=SGLD(1.5)), (X, rng.poisson(np.exp(1.0 + eta / 3.0)))),
        (BayesianNegativeBinomialRegressor(sampler=SGLD(1.5)), (X, rng.negative_binomial(3, 0.3, 100))),
        (BayesianGaussian(sampler=SGLD(0.9)), (X,)),
    )
    for model, data in fits:
        with pytest.warns(ConvergenceWarning, match="draws of some combination of the parameters are too wide"):
            model.set_params(random_state=0).fit(*data)


def test_a_temperature_does_not_warn_of_wide_draws():
    X, eta, _ = heated_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for temperature in (0.5, 9.0):
            BayesianLogisticRegression(sampler=SGHMC(temperature=temperature), random_state=0).fit(X, eta > 0.3)


def test_a_metric_that_rounding_makes_singular_still_gives_a_step():
    X = np.array([[1.0, 1.0, 2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0, 3.0, 1.0], [2.0, 3.0, 0.0, 0.0, 1.0, 1.0]])
    model = BayesianPoissonRegressor(sampler="rhmc", n_iter=20, random_state=0).fit(X, [0, 0, 0])
    assert np.all(np.isfinite(model.samples_["coef"]))
    assert np.all(model.predict(X) < 1.0)
