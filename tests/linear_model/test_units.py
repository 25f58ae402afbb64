"""Units of columns and responses change no prediction where scales are learnt; a number that cannot suit all warns."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)
from sk_sgmcmc.linear_model import _base
from tests.conftest import importorskip

RUN = {"random_state": 0, "n_iter": 120}
# The same seed and coordinates give the same draws but for rounding; another prior moves them by far more than this.
CLOSE = 1e-3


def plain(n=150):
    """Two columns with an effect, one without, and a constant one."""
    X = np.random.default_rng(0).normal(size=(n, 4))
    X[:, 1] += 0.5 * X[:, 0]
    X[:, 3] = 1.0
    return X, 0.6 * X[:, 0] - 0.3 * X[:, 1]


def counts():
    X, eta = plain()
    return X, np.random.default_rng(1).poisson(np.exp(1.0 + eta))


def responses():
    X, eta = plain()
    return X, eta + 0.5 * np.random.default_rng(1).normal(size=len(X))


def classes(n_classes=2):
    X, eta = plain()
    return X, np.digitize(eta + np.random.default_rng(1).logistic(size=len(X)), [0.0, 1.0][: n_classes - 1])


MODELS = {
    "poisson": (BayesianPoissonRegressor, {}, counts),
    "negative binomial": (BayesianNegativeBinomialRegressor, {}, counts),
    "linear, Gibbs": (BayesianLinearRegression, {}, responses),
    "linear, gradients": (BayesianLinearRegression, {"sampler": "sghmc"}, responses),
    "logistic": (BayesianLogisticRegression, {"prior_scale": "auto"}, classes),
    "multinomial": (BayesianLogisticRegression, {"prior_scale": "auto"}, lambda: classes(3)),
}
CHANGES = {
    "wide": ([1e6, 1.0, 1e-6, 1.0], 0.0),
    "narrow": ([1e-6, 1e6, 1.0, 1e6], 0.0),
    "shifted": ([1.0, 1e3, 1e6, 1e-6], [1e6, 0.0, 1e6, 1e6]),
}


def predictions(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


def change_in_sds(models, rows):
    """Largest change of a prediction between two fits, in units of its standard deviation over draws."""
    of_mean = {} if hasattr(models[0], "classes_") else {"of": "mean"}
    _, low, high = models[0].predict_interval(rows[0], 0.68, **of_mean)
    first, second = (predictions(model, X) for model, X in zip(models, rows, strict=True))
    return np.max(np.abs(second - first) / (0.5 * (high - low)))


@pytest.mark.parametrize("prior", ["normal", "laplace"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", MODELS)
def test_units_and_offsets_change_no_prediction(name, change, prior):
    kind, args, data = MODELS[name]
    X, y = data()
    scale, shift = np.array(change[0]), change[1]
    rows = X, X * scale + shift
    weight = np.random.default_rng(2).integers(1, 3, len(y))
    models = [kind(**RUN, **args, prior=prior).fit(each, y, sample_weight=weight) for each in rows]
    assert change_in_sds(models, rows) < CLOSE
    np.testing.assert_allclose(models[1].coef_prior_scale_[:3] * scale[:3], models[0].coef_prior_scale_[:3], rtol=0.02)


@pytest.mark.parametrize("name", MODELS)
def test_units_change_no_prediction_of_a_stream(name):
    """Also of a column that varies from the second block on."""
    kind, args, data = MODELS[name]
    X, y = data()
    X[:60, 1] = 0.0
    scale = np.array([1e6, 1e-6, 1.0, 1.0])
    rows, models = (X, X * scale), []
    for each in rows:
        model = kind(**RUN, **args)
        for block in np.split(np.arange(len(y)), [60, 100]):
            model.partial_fit(each[block], y[block])
        models.append(model)
    assert change_in_sds(models, rows) < CLOSE
    np.testing.assert_allclose(models[1].coef_prior_scale_[:2] * scale[:2], models[0].coef_prior_scale_[:2], rtol=0.02)


@pytest.mark.parametrize("name", ["poisson", "linear, Gibbs", "logistic"])
def test_units_change_nothing_without_an_intercept_and_for_one_column(name):
    kind, args, data = MODELS[name]
    X, y = data()
    for some, more in (([0, 1, 3], {"fit_intercept": False}), ([0], {})):
        rows = X[:, some], X[:, some] * np.array([1e-6, 1e6, 1e3])[: len(some)]
        assert change_in_sds([kind(**RUN, **args, **more).fit(each, y) for each in rows], rows) < CLOSE


def test_effects_in_unlike_units_are_found():
    rng = np.random.default_rng(0)
    metres, share = 1000.0 * rng.normal(size=300), 0.01 * rng.normal(size=300)
    X, eta = np.column_stack([metres, share]), 0.0005 * metres + 80.0 * share
    y = rng.poisson(np.exp(1.0 + eta))
    normal = eta + 0.3 * rng.normal(size=300)
    for prior in ("normal", "laplace"):
        for given in (X, sparse.csr_array(X)):  # the search for one scale for columns as given covers the range
            model = BayesianPoissonRegressor(prior=prior, random_state=0).fit(given, y)
            sd = model.samples_["coef"].std(axis=(0, 1))
            assert np.all(np.abs(model.coef_ - [0.0005, 80.0]) < 4.0 * sd) and model.coef_[1] > 10.0 * sd[1]
        assert BayesianLinearRegression(prior=prior, random_state=0).fit(X, normal).score(X, normal) > 0.9


@pytest.mark.parametrize("wide", [False, True], ids=["factorised", "diagonal"])
def test_what_the_user_passes_decides_whether_columns_are_standardised(wide, monkeypatch):
    """Not how rows are stored: dense ones as sparse ones in wide models, sparse ones with few zeros as dense ones."""
    X, y = counts()
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.6, X, 0.0) * [1.0, 100.0, 0.1, 1.0]
    if wide:
        monkeypatch.setattr(_base, "MAX_ENTRIES", 3)
    dense, few_zeros = BayesianPoissonRegressor(**RUN).fit(X, y), BayesianPoissonRegressor(**RUN)
    few_zeros.fit(sparse.csr_array(X), y)
    monkeypatch.setattr(_base, "_DENSE_SHARE", 1.0)
    as_sparse = BayesianPoissonRegressor(**RUN).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(dense.coef_prior_scale_ * X.std(axis=0), dense.prior_scale_)
    np.testing.assert_allclose(as_sparse.coef_prior_scale_, as_sparse.prior_scale_)
    assert few_zeros.prior_scale_ == pytest.approx(as_sparse.prior_scale_, rel=0.02)
    pandas = importorskip("pandas")
    frame = BayesianPoissonRegressor(**RUN).fit(pandas.DataFrame(X), y)
    np.testing.assert_array_equal(frame.coef_, dense.coef_)
    # Of standardised columns, one scale serves both.
    Z = X[:, :3] / X[:, :3].std(axis=0)
    models = [BayesianPoissonRegressor(**RUN).fit(each, y) for each in (Z, sparse.csr_array(Z))]
    assert models[1].prior_scale_ == pytest.approx(models[0].prior_scale_, rel=0.02)


@pytest.mark.parametrize("name", ["poisson", "linear, Gibbs", "logistic"])
def test_a_number_for_columns_of_unlike_spreads_warns_once_and_means_the_columns_as_given(name):
    pandas = importorskip("pandas")
    kind, args, data = MODELS[name]
    X, y = data()
    unlike = pandas.DataFrame(X * [1.0, 1e-3, 1.0, 1.0], columns=["a", "share", "b", "one"])
    model = kind(**(RUN | args | {"prior_scale": 2.0}))
    with pytest.warns(
        UserWarning, match=r"Columns \d \('[ab]'\) and 1 \('share'\).*prior_scale=2 .*\"auto\".*StandardS"
    ):
        model.partial_fit(unlike, y)
    np.testing.assert_array_equal(model.coef_prior_scale_, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The draws have not converged")
        model.partial_fit(unlike, y)
        kind(**(RUN | args | {"prior_scale": 2.0})).fit(X * [10.0, 1.0, 1.0, 1.0], y)
        kind(**(RUN | args | {"prior_scale": 2.0})).fit(sparse.csr_array(unlike.to_numpy()), y)
        kind(**(RUN | args | {"prior_scale": "auto"})).fit(unlike, y)


def test_the_size_of_responses_changes_nothing_but_their_units():
    X, y = responses()
    for sampler in ("gibbs", "sghmc"):
        models = [BayesianLinearRegression(sampler=sampler, **RUN).fit(X, y * size) for size in (1.0, 1e-70, 1e70)]
        for model, size in zip(models[1:], (1e-70, 1e70), strict=True):
            np.testing.assert_allclose(model.coef_, size * models[0].coef_, rtol=1e-6)
            assert model.noise_scale_ == pytest.approx(size * models[0].noise_scale_)


@pytest.mark.parametrize("name", ["poisson", "linear, Gibbs", "logistic"])
def test_numbers_too_small_to_square_are_refused_as_too_large_ones_are(name):
    kind, args, data = MODELS[name]
    X, y = data()
    for given in (X * [1.0, 1e-200, 1.0, 1.0], sparse.csr_array(X * [1.0, 1e-200, 1.0, 1.0])):
        with pytest.raises(ValueError, match=r"Column 1 of X holds no number beyond .*e-200.*MaxAbsScaler"):
            kind(**RUN, **args).fit(given, y)
    with pytest.raises(ValueError, match=r"sample_weight.* holds no number beyond 1e-200"):
        kind(**RUN, **args).fit(X, y, sample_weight=np.full(len(y), 1e-200))
    if name == "linear, Gibbs":
        for size in (1e-160, 1e-200):
            with pytest.raises(ValueError, match=r"y holds no number beyond .*Multiply it"):
                kind(**RUN, **args).fit(X, y * size)
    assert np.isfinite(kind(**RUN, **args).fit(X * 0.0, y).coef_).all()
