"""Latent class models: kinds of columns, what may not matter, results, covariates and weights."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from sk_sgmcmc import DPCategoricalMixture, LatentClassModel
from sk_sgmcmc.inspection import ProfileDisplay, to_arviz
from sk_sgmcmc.model_selection import search_n_components
from tests.common.compare import assert_same_draws

pd = pytest.importorskip("pandas")
N = 240
SHARES = np.array([0.5, 0.3, 0.2])


def table(seed=0, missing=0.1):
    """Rows of three classes with columns of five kinds, and their classes."""
    rng = np.random.default_rng(seed)
    z = rng.choice(3, N, p=SHARES)
    colours = np.eye(3)[z] * 0.8 + 0.2 / 3
    opinions = np.clip(np.round(rng.normal(np.array([1.0, 2.0, 3.5])[z], 0.7)), 0, 4).astype(int)
    X = pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"])[
                (rng.random((N, 1)) > np.cumsum(colours, axis=1)[:, :2]).sum(axis=1)
            ],
            "votes": rng.random(N) < np.array([0.9, 0.5, 0.1])[z],
            "opinion": pd.Categorical.from_codes(
                opinions, ["never", "rarely", "some", "often", "always"], ordered=True
            ),
            "children": rng.poisson(np.array([2.0, 8.0, 20.0])[z]),
            "income": rng.normal(np.array([30_000.0, 60_000.0, 30_000.0])[z], 8_000.0),
        }
    )
    return X.mask(rng.random(X.shape) < missing) if missing else X, z


def fitted(X, n_components=3, n_iter=300, **params):
    fit_params = {name: params.pop(name) for name in ("metadata", "sample_weight") if name in params}
    model = LatentClassModel(n_components, n_iter=n_iter, random_state=0, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **fit_params)


# --------------------------------------------------------------------------------------------------------------- kinds

INFERRED = {
    "ordinal": pd.Categorical(["a", "b", "c"] * 20, ["c", "b", "a"], ordered=True),
    "categorical": pd.Categorical(["a", "b"] * 30),
    "categorical of text": ["a", "b", None] * 20,
    "categorical of codes": [1, 2, 3] * 20,
    "categorical of codes with missing cells": [1.0, 2.0, np.nan, 5.0] * 15,
    "binary": [True, False] * 30,
    "binary of codes": [1, 2] * 30,
    "binary of nullable": pd.array([True, False, None] * 20, dtype="boolean"),
    "count": np.arange(60),
    "continuous of negative integers": np.arange(60) - 30,
    "continuous": np.arange(60) / 7.0,
    "continuous of whole floats": np.arange(60.0),
}


def test_kinds_are_inferred_from_dtypes_and_told():
    model = fitted(pd.DataFrame(INFERRED), 2, 4)
    assert list(model.column_kinds_) == list(INFERRED)
    for name, kind in model.column_kinds_.items():
        assert kind == name.partition(" ")[0], name
    kinds = dict(zip(model.profile_table()["feature"], model.profile_table()["kind"], strict=True))
    assert kinds == model.column_kinds_


def test_a_dict_overrides_kinds():
    X, _ = table(missing=0)
    X["code"] = np.arange(N) % 4
    model = fitted(X, n_iter=4, columns={"children": "continuous", "code": "ordinal"})
    assert model.column_kinds_["children"] == "continuous" and model.column_kinds_["code"] == "ordinal"
    assert model.column_kinds_["votes"] == "binary"
    assert fitted(X.to_numpy()[:, 3:], n_iter=4, columns={0: "count"}).column_kinds_[0] == "count"


@pytest.mark.parametrize(
    "columns, message",
    [
        ({"age": "count"}, "no column of X"),
        ({"income": "gaussian"}, "kinds are categorical"),
        ({"income": "count"}, "whole numbers"),
        ({"colour": "continuous"}, "must hold numbers"),
        ({"colour": "ordinal"}, "order is unknown"),
        ({"colour": "binary"}, "allows two"),
    ],
)
def test_wrong_kinds_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        LatentClassModel(columns=columns).fit(table(missing=0)[0])


def test_levels_that_did_not_occur_count_as_missing():
    X, _ = table()
    model = fitted(X)
    other = X.head(3).assign(colour="purple")
    with pytest.warns(UserWarning, match="purple in column 'colour' count as missing|purple in column 'colour'"):
        found = model.score_samples(other)
    np.testing.assert_allclose(found, model.score_samples(X.head(3).assign(colour=None)))


# -------------------------------------------------------------------------------------------------- what may not matter


def test_labels_orders_and_units_change_nothing():
    """Names of levels, the order of rows and of columns, and units of measurements; draws follow the new order."""
    X, _ = table()
    model = fitted(X)
    other = X.assign(
        colour=X["colour"].map({"red": "a", "green": "c", "blue": "b"}), income=X["income"] * 0.25 + 1000.0
    )
    other = other[["income", "votes", "colour", "children", "opinion"]].iloc[::-1]
    again = fitted(other)
    np.testing.assert_allclose(again.samples_["weights"], model.samples_["weights"], rtol=1e-9)
    assert (again.labels_[::-1] == model.labels_).all()
    a, b = (each.profile_table() for each in (model, again))
    for name, feature, level in (("mean", "colour", ("green", "c")), ("high", "colour", ("red", "a"))):
        one, two = (
            t[(t["feature"] == feature) & (t["level"] == own)][name].to_numpy()
            for t, own in zip((a, b), level, strict=True)
        )
        np.testing.assert_allclose(one, two, rtol=1e-8)
    income = [t[t["feature"] == "income"] for t in (a, b)]
    scale = np.where(income[0]["statistic"] == "mean", 1000.0, 0.0)
    np.testing.assert_allclose(income[1]["mean"], income[0]["mean"] * 0.25 + scale, rtol=1e-8)
    np.testing.assert_allclose(
        again.score(other), model.score(X) - np.log(0.25) * X["income"].notna().mean(), rtol=1e-8
    )


def test_a_missing_cell_is_a_cell_left_out():
    """A column that is missing in all rows changes nothing but its own profile, which is that of the prior."""
    X, _ = table()
    model, wider = fitted(X), fitted(X.assign(nothing=np.nan))
    np.testing.assert_allclose(model.score_samples(X.assign(income=np.nan)) + 0, model.score_samples(
        X.assign(income=None)))  # fmt: skip
    assert adjusted_rand_score(model.labels_, wider.labels_) > 0.9
    one = model.predict_proba(X.head(1).assign(colour=None, votes=None, opinion=None, children=None, income=None))
    np.testing.assert_allclose(one[0], model.weights_, atol=0.02)


def test_whole_weights_are_repeated_rows_and_zero_weights_no_rows():
    X, _ = table()
    weight = np.arange(N) % 3
    assert_same_draws(fitted(X.iloc[np.repeat(np.arange(N), weight)].reset_index(drop=True)),
                      fitted(X, sample_weight=weight))  # fmt: skip


def test_survey_weights_do_not_depend_on_their_scale():
    X, _ = table()
    weight = 0.5 + np.arange(N) % 4
    one, other = (fitted(X, sample_weight=w, weights="survey") for w in (weight, 1000.0 * weight))
    assert_same_draws(one, other)
    assert_same_draws(fitted(X), fitted(X, sample_weight=np.full(N, 7.0), weights="survey"))


def test_survey_weights_move_the_shares():
    X, z = table()
    weight = np.where(z == 2, 3.0, 1.0)
    model = fitted(X, sample_weight=weight, weights="survey")
    assert model.weights_.max() == pytest.approx(
        weight[z == np.bincount(z, weight).argmax()].sum() / weight.sum(), abs=0.1
    )


# ------------------------------------------------------------------------------------------------------------- results


@pytest.fixture(scope="module")
def model():
    X, _ = table()
    return fitted(X, n_chains=2)


def test_planted_classes_are_found_with_their_profiles(model):
    X, z = table()
    assert adjusted_rand_score(z, model.labels_) > 0.85
    assert (np.diff(model.weights_) < 0).all() and model.weights_ == pytest.approx(SHARES, abs=0.1)
    assert model.chains_agree_.all() and not model.checks_["fired"].any()
    profile = model.profile_table()
    assert list(profile.columns) == [
        "class", "weight", "weight_low", "weight_high", "feature", "kind", "level", "statistic", "mean", "low", "high",
        "overall",
    ]  # fmt: skip
    ends = profile.groupby("class")[["weight_low", "weight", "weight_high"]].first()
    assert (np.diff(ends, axis=1) > 0.0).all()
    shares = model.samples_["weights"].reshape(-1, 3)
    np.testing.assert_allclose(ends["weight_low"], np.quantile(shares, 0.05, axis=0, method="weibull"))
    assert (profile["low"] <= profile["mean"]).all() and (profile["mean"] <= profile["high"]).all()
    truth = {("children", "mean"): [2.0, 8.0, 20.0], ("income", "mean"): [30_000.0, 60_000.0, 30_000.0]}
    for (feature, statistic), values in truth.items():
        rows = profile[(profile["feature"] == feature) & (profile["statistic"] == statistic)]
        width = rows["high"] - rows["low"]
        assert (np.abs(rows["mean"].to_numpy() - values) < 1.5 * width).all()
    income = profile[(profile["feature"] == "income")].set_index("statistic")["overall"]
    assert income["mean"].iloc[0] == pytest.approx(X["income"].mean(), rel=0.05)
    assert income["sd"].iloc[0] == pytest.approx(X["income"].std(), rel=0.1)


def test_draws_have_named_axes(model):
    names = model._coords_of_draws()
    assert model.samples_["components"].shape[2:] == (3, len(names["entry"])) and "colour=red" in names["entry"]
    assert model._axes_of_draws["components"] == ["class", "entry"]


def test_the_display_shows_all_kinds_between_0_and_1(model):
    pytest.importorskip("matplotlib")
    display = ProfileDisplay.from_estimator(model)
    assert display.low.min() >= 0.0 and display.high.max() <= 1.0
    assert any(level.startswith("mean, ") for level in display.levels)
    assert display.axes_[0].get_title(loc="left").startswith("class 0 (")


def test_the_search_compares_numbers_of_classes():
    X, _ = table()
    found = search_n_components(
        LatentClassModel(n_iter=200, random_state=0), X, [1, 3], test_size=0.25, sample_weight=np.ones(N)
    )
    assert found["score"][1] > found["score"][0] + 2.0 * found["difference_error"][0]
    assert found["difference"][1] == 0.0 and found["difference_error"][1] == 0.0
    assert found["entropy"][0] == 1.0 and 0.8 < found["entropy"][1] < 1.0
    assert found["smallest_class"][1] == pytest.approx(0.2, abs=0.08)


def test_several_modes_are_told_and_left_out():
    """Two chains of many classes of noise."""
    X = np.random.default_rng(0).integers(3, size=(60, 4))
    with pytest.warns(ConvergenceWarning, match="found other classes than the chain"):
        model = LatentClassModel(4, n_iter=60, n_chains=3, n_starts=0, random_state=0).fit(X)
    assert not model.chains_agree_.all() and model.chains_agree_.any()


# ---------------------------------------------------------------------------------------------------------- covariates


def covariates(z, seed=1):
    rng = np.random.default_rng(seed)
    party = np.where(rng.random(N) < np.array([0.2, 0.5, 0.8])[z], "right", "left")
    return pd.DataFrame({"age": rng.normal(40.0 + 8.0 * (z == 1), 10.0), "party": party})


def test_covariates_move_membership_and_effects_have_the_truth():
    X, z = table()
    metadata = covariates(z)
    model = fitted(X, metadata=metadata)
    assert model.coef_.shape == (3, 4) and model.metadata_names_ == ["age", "party=left", "party=right"]
    rows = model.diagnostics_.set_index("quantity")
    assert rows.loc["coef[2, 3]", "mean"] == pytest.approx(model.coef_[2, 3]) and rows.loc["coef[0, 0]", "ess"] > 20
    np.testing.assert_allclose(model.samples_["coef"].sum(axis=2), 0.0, atol=1e-9)
    effects = model.effects("party")
    assert list(effects.columns) == [
        "class", "value", "reference", "prevalence", "difference", "low", "high", "positive",
    ]  # fmt: skip
    right = metadata["party"] == "right"
    realised = [np.mean(z[right] == k) - np.mean(z[~right] == k) for k in range(3)]
    assert (np.abs(effects["difference"] - realised) < 0.1).all()
    levels = model.effects("age", at=[30.0, 60.0], kind="prevalence")
    np.testing.assert_allclose(levels.groupby("value")["prevalence"].sum(), 1.0)
    with pytest.raises(ValueError, match="pass metadata="):
        model.predict(X)
    proba = model.predict_proba(X.head(5), metadata=metadata.head(5))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_a_formula_selects_covariates():
    pytest.importorskip("formulaic")
    X, z = table()
    model = fitted(X, metadata=covariates(z), formula="~ party")
    assert model.metadata_names_ == ["party[T.right]"]
    with pytest.raises(ValueError, match="needs metadata"):
        LatentClassModel(formula="~ party").fit(X)
    with pytest.raises(ValueError, match="without metadata, or with columns"):
        fitted(X, n_iter=4).effects("party")
    assert "coef" not in fitted(X, n_iter=4, metadata=covariates(z), formula="~ 1").samples_


def test_rows_of_metadata_are_matched_by_labels():
    X, z = table()
    metadata = covariates(z)
    assert_same_draws(fitted(X, metadata=metadata), fitted(X, metadata=metadata.iloc[::-1]))


# --------------------------------------------------------------------------------------------------- Dirichlet process


def test_the_process_takes_mixed_tables():
    X, z = table()
    mixture = DPCategoricalMixture(likelihood="mixed", n_iter=400, random_state=0).fit(X)
    assert adjusted_rand_score(z, mixture.labels_) > 0.8
    assert mixture.column_kinds_["income"] == "continuous"
    profile = mixture.profile_table()
    assert list(profile.columns)[:6] == ["cluster", "weight", "feature", "kind", "level", "statistic"]
    assert {"red", "green", "blue"} >= set(mixture.top_categories(1)["level"][:0])
    other = X.assign(colour=X["colour"].map({"red": "a", "green": "c", "blue": "b"}), income=X["income"] / 8.0)
    again = DPCategoricalMixture(likelihood="mixed", n_iter=400, random_state=0).fit(other.iloc[::-1])
    assert (again.labels_[::-1] == mixture.labels_).all()
    with pytest.raises(ValueError, match="does not fit"):
        DPCategoricalMixture(likelihood="mixed", sampler="scir").fit(X)


def test_the_process_appends_mixed_rows():
    X, _ = table()
    mixture = DPCategoricalMixture(likelihood="mixed", n_iter=100, random_state=0).fit(X[:200])
    mixture.partial_fit(X[200:])
    assert mixture.n_samples_seen_ == N and np.isfinite(mixture.score(X))
    with pytest.raises(ValueError, match="cannot stream"):
        mixture.forget_rows().partial_fit(X[:50])


def test_arviz_gets_names_of_entries_and_terms():
    arviz = pytest.importorskip("arviz")
    assert arviz
    X, z = table()
    data = to_arviz(fitted(X, n_iter=60, metadata=covariates(z)), words=["0", "1"])
    components = data.posterior["components"]
    assert components.dims[2:] == ("class", "entry") and components["entry"].values[0].startswith("colour=")
    assert "intercept" in data.posterior["coef"]["term"].values
