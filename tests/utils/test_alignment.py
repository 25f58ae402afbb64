import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    DMRTopicModel,
    DPCategoricalMixture,
    sample,
)
from sk_sgmcmc.inspection import to_arviz
from sk_sgmcmc.model_selection import search_n_components
from sk_sgmcmc.utils._tables import aligned
from tests.conftest import importorskip

pandas = importorskip("pandas")

N = 60
RNG = np.random.default_rng(0)
LABELS = [f"row {i}" for i in range(N)]
X = pandas.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "b"], index=LABELS)
Y = pandas.Series(RNG.poisson(2.0, N), index=LABELS)
WEIGHT = pandas.Series(RNG.integers(1, 4, N), index=LABELS)
EXPOSURE = pandas.Series(1.0 + RNG.random(N), index=LABELS)
ORDER = RNG.permutation(N)


def test_rows_are_matched_by_label():
    y, weight, table, array, nothing = aligned(
        X, y=Y.iloc[ORDER], weight={"w": WEIGHT.iloc[ORDER]}, table=X.iloc[ORDER], array=np.arange(N), nothing=None
    )
    assert y.equals(Y) and weight["w"].equals(WEIGHT) and table.equals(X) and nothing is None
    np.testing.assert_array_equal(array, np.arange(N))
    # The numbers of rows are labels too, where both have the same.
    (y,) = aligned(X.reset_index(drop=True), y=Y.reset_index(drop=True).iloc[ORDER])
    np.testing.assert_array_equal(y, Y)


def test_where_X_has_no_labels_the_others_are_matched_with_each_other():
    for form in (X.to_numpy(), sparse.csr_array(X.to_numpy())):
        y, weight = aligned(form, y=Y, weight=WEIGHT.iloc[ORDER])
        assert y is Y and weight.equals(WEIGHT)
        assert aligned(form, y=Y.iloc[ORDER])[0].equals(Y.iloc[ORDER])


def test_other_labels_are_refused():
    with pytest.raises(ValueError, match=r"`y` must have the row labels of X; got the label 'x'.* Pass y.to_numpy\(\)"):
        aligned(X, y=Y.rename({"row 3": "x"}))
    twice = pandas.Series(np.arange(N), index=["a", "b"] * 30)
    (same,) = aligned(twice.to_frame(), y=twice)
    assert same is twice
    with pytest.raises(ValueError, match="where labels repeat"):
        aligned(twice.to_frame(), y=twice.iloc[ORDER])
    assert len(aligned(X, y=Y[:3])[0]) == 3  # other lengths are refused by those who read it


def test_numbers_of_rows_are_no_other_labels():
    with pytest.warns(UserWarning, match="matched by position"):
        (y,) = aligned(X, y=Y.reset_index(drop=True))
    np.testing.assert_array_equal(y, Y)
    with pytest.warns(UserWarning, match="matched by position"):
        (y,) = aligned(X.reset_index(drop=True), y=Y.iloc[ORDER])
    np.testing.assert_array_equal(y, Y.iloc[ORDER])


MODELS = {
    "linear": BayesianLinearRegression(n_iter=20, random_state=0),
    "logistic": BayesianLogisticRegression(n_iter=20, random_state=0),
    "poisson": BayesianPoissonRegressor(n_iter=20, random_state=0),
    "negative binomial": BayesianNegativeBinomialRegressor(n_iter=20, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_linear_models_match_rows_by_label(name):
    model, y = MODELS[name], (Y > 1).astype(int) if name == "logistic" else Y
    takes_exposure = name in ("poisson", "negative binomial")
    given = {"y": y, "sample_weight": WEIGHT, **({"exposure": EXPOSURE} if takes_exposure else {})}
    shuffled = {key: value.iloc[ORDER] for key, value in given.items()}
    model.fit(X, **given)
    first, score = model.samples_["coef"], model.score(X, **given)
    fits = [getattr(model, name) for name in ("fit", "partial_fit", "resume") if hasattr(model, name)]
    for method in fits:
        if method == model.resume:
            model.fit(X, **given)
        method(X, **shuffled)
        if method == model.fit:
            np.testing.assert_array_equal(model.samples_["coef"], first)
            assert model.score(X, **shuffled) == score
    if takes_exposure:
        expected = model.predict(X, exposure=EXPOSURE)
        np.testing.assert_array_equal(model.predict(X, exposure=shuffled["exposure"]), expected)
    for key, value in given.items():
        for method in (*fits, model.score):
            with pytest.raises(ValueError, match=f"`{key}` must have the row labels of X"):
                method(X, **{**given, key: value.rename({"row 3": "x"})})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_of_a_mixture_are_matched_by_label():
    codes = (X > 0).astype(int)
    model = DPCategoricalMixture(likelihood="categorical", n_iter=20, random_state=0)
    first = model.fit(codes, sample_weight=WEIGHT).samples_["weights"]
    np.testing.assert_array_equal(model.fit(codes, sample_weight=WEIGHT.iloc[ORDER]).samples_["weights"], first)
    assert model.score(codes, sample_weight=WEIGHT.iloc[ORDER]) == model.score(codes, sample_weight=WEIGHT)
    for method in (model.fit, model.partial_fit, model.resume, model.score):
        with pytest.raises(ValueError, match="`sample_weight` must have the row labels of X"):
            method(codes, sample_weight=WEIGHT.rename({"row 3": "x"}))


def _log_density(b, X, y):
    return -0.5 * ((y - X @ b) ** 2).sum() - 0.5 * b @ b


def test_data_of_a_log_density_are_matched_by_label():
    draws = [
        sample(_log_density, parameters={"b": (2,)}, data={"X": X, "y": y}, n_iter=20, random_state=0).samples_["b"]
        for y in (Y, Y.iloc[ORDER])
    ]
    np.testing.assert_array_equal(draws[1], draws[0])
    with pytest.raises(ValueError, match="`y` must have the row labels of X"):
        sample(_log_density, parameters={"b": (2,)}, data={"X": X, "y": Y.rename({"row 3": "x"})}, random_state=0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_draws_for_arviz_are_matched_by_label():
    importorskip("arviz")
    model = BayesianPoissonRegressor(n_iter=20, random_state=0).fit(X, Y, exposure=EXPOSURE)
    a, b = (to_arviz(model, X, y, exposure=e) for y, e in ((Y, EXPOSURE), (Y.iloc[ORDER], EXPOSURE.iloc[ORDER])))
    for group, name in (("log_likelihood", "y"), ("observed_data", "y")):
        np.testing.assert_array_equal(a[group][name].values, b[group][name].values)


def test_a_search_matches_metadata_by_label():
    counts = pandas.DataFrame(RNG.poisson(1.0, (N, 8)), index=LABELS)
    metadata = pandas.DataFrame({"group": np.arange(N) % 2}, index=LABELS)
    model = DMRTopicModel(n_iter=8, random_state=0)
    a, b = (search_n_components(model, counts, [2], metadata=m) for m in (metadata, metadata.iloc[ORDER]))
    np.testing.assert_array_equal(a["score"], b["score"])
