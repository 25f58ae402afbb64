"""``prior_scale="auto"``: the scale found by expansions of the likelihood is that of the search over all scales."""

import numpy as np
import pytest
from scipy import special

from sk_sgmcmc import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)
from sk_sgmcmc.linear_model import _prior


def rows(seed, n=300, size=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 100.0, 0.01, 1.0] + [0.0, 5.0, 0.0, 0.0]
    return X, (X / [1.0, 100.0, 0.01, 1.0]) @ (size * rng.normal(size=4)), rng


def models():
    X, eta, rng = rows(0)
    yield "binary", BayesianLogisticRegression("auto"), X, rng.random(300) < special.expit(eta)
    yield "rare class", BayesianLogisticRegression("auto"), X, rng.random(300) < special.expit(eta - 3.0)
    yield "no effects", BayesianLogisticRegression("auto"), X, rng.integers(2, size=300)
    yield "separable", BayesianLogisticRegression("auto"), X[:60], X[:60, 0] > 0.0
    yield "Poisson", BayesianPoissonRegressor(), X, rng.poisson(np.exp(eta))
    yield "no intercept", BayesianPoissonRegressor(fit_intercept=False), X, rng.poisson(np.exp(eta))
    yield "overdispersed", BayesianNegativeBinomialRegressor(), X, rng.poisson(np.exp(eta) * rng.gamma(2, 0.5, 300))
    yield "normal", BayesianLinearRegression(sampler="sghmc"), X, eta + rng.normal(size=300)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "model", "X", "y"), list(models()), ids=lambda v: v if type(v) is str else "")
def test_expansions_find_the_scale_of_the_search_over_all_scales(name, model, X, y, monkeypatch):
    designs, make = [], _prior._Search.design
    monkeypatch.setattr(_prior._Search, "design", lambda self, *given: [designs.append(1), make(self, *given)][1])
    found = model.set_params(n_iter=10, random_state=0).fit(X, y).prior_scale_
    assert len(designs) <= _prior._MAX_EXPANSIONS or name == "separable"  # may search over all scales
    designs.clear()
    monkeypatch.setattr(_prior._Search, "_fixed_point", lambda self, unit: None)
    assert model.fit(X, y).prior_scale_ == pytest.approx(found, rel=0.03)
    assert len(designs) > 20


@pytest.mark.parametrize("intercept", [True, False])
def test_an_expansion_has_the_slope_of_its_own_design(intercept, monkeypatch):
    X, eta, rng = rows(1)
    slopes, expansion = [], _prior._Expansion

    class Recorded(expansion):
        def __init__(self, posterior, precision, columns, unit):
            super().__init__(posterior, precision, columns, unit)
            slopes.append((-0.5 * np.log(precision[0]), self.slope(-0.5 * np.log(precision[0]))))

    searches, init = [], _prior._Search.__init__
    monkeypatch.setattr(_prior._Search, "__init__", lambda self, *given: [searches.append(self), init(self, *given)][1])
    monkeypatch.setattr(_prior, "_Expansion", Recorded)
    model = BayesianPoissonRegressor(n_iter=10, fit_intercept=intercept, random_state=0)
    model.fit(X, rng.poisson(np.exp(eta)))
    path = _prior._Path(searches[0], 1.0)
    for log_scale, slope in slopes:
        assert path.slope(log_scale) == pytest.approx(slope, rel=1e-6, abs=1e-6)
