"""DMRTopicModel: metadata in every form, routing, bad metadata, answers, streams."""

import datetime
import pickle
import warnings
from copy import copy

import joblib
import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.covariates.metadata import MetadataEncoder
from sk_sgmcmc.datasets import make_dmr
from sk_sgmcmc.inspection import to_pyldavis
from sk_sgmcmc.samplers import SGHMC, SGNHT, Blob
from sk_sgmcmc.topic._dmr.prevalence import are_clipped
from tests.common.compare import PressCtrlC, assert_same_draws, interrupted
from tests.conftest import importorskip

DATA = make_dmr(120, 30, 3, 2, 25, random_state=0)
X = DATA.counts
YEAR = 1900.0 + 30 * DATA.metadata[:, 0]
PARTY = np.where(DATA.metadata[:, 1] > 0, "whig", "tory")
TABLE = {"year": YEAR, "party": PARTY}
SMALL = {"n_components": 3, "n_iter": 16, "random_state": 0}


def fitted(metadata=None, **params):
    return DMRTopicModel(**{**SMALL, **params}).fit(X, metadata=TABLE if metadata is None else metadata)


@pytest.fixture(scope="module")
def model():
    return fitted()


# ------------------------------------------------------------------------------------------------ forms of metadata


def object_rows():
    return [[float(year), party] for year, party in zip(YEAR, PARTY, strict=True)]


def test_names_and_shapes(model):
    assert model.metadata_names_ == ["year", "party=tory", "party=whig"]
    assert model.coef_.shape == (3, 4) and model.samples_["coef"].shape == (1, 8, 3, 4)
    np.testing.assert_allclose(model.coef_, model.samples_["coef"].mean(axis=(0, 1)))
    assert model.doc_topic_prior_.shape == (3,)
    assert list(model.get_feature_names_out()) == [f"dmrtopicmodel{k}" for k in range(3)]


def test_the_form_of_metadata_changes_no_draw(model):
    pandas = importorskip("pandas")
    frame = pandas.DataFrame(TABLE)
    for metadata in (
        frame, frame.astype({"party": "category"}), frame.astype({"year": "Float64"}), object_rows(),
        np.array(object_rows(), dtype=object),
    ):  # fmt: skip
        assert_same_draws(model, fitted(metadata))
    numbers = np.column_stack([YEAR, PARTY == "whig"]).astype(float)
    as_numbers = fitted(numbers)
    frame = pandas.DataFrame({"year": YEAR, "whig": PARTY == "whig"})
    forms = [numbers.tolist(), np.asfortranarray(numbers), sparse.csc_matrix(numbers), sparse.coo_array(numbers), frame]
    for metadata in forms:
        again = fitted(metadata)
        for name, value in as_numbers.samples_.items():
            np.testing.assert_allclose(again.samples_[name], value, rtol=1e-4, atol=1e-6)
    assert_same_draws(fitted(YEAR), fitted(YEAR[:, None]))
    assert_same_draws(fitted(PARTY), fitted(pandas.Series(PARTY, name="x0")))


def test_polars_columns_of_every_type_are_what_pandas_columns_are():
    pandas, polars = importorskip("pandas"), importorskip("polars")
    year, party = np.round(YEAR), PARTY.tolist()
    given = pandas.DataFrame({"year": year, "party": party})
    model = fitted(given)
    text = polars.DataFrame({"year": year, "party": party})
    level = polars.col("party")
    frames = [
        text,
        text.with_columns(polars.col("year").cast(polars.Int16)),
        text.with_columns(polars.col("year").cast(polars.Decimal(12, 4))),
        text.with_columns(level.cast(polars.Categorical)),
        text.with_columns(level.cast(polars.Enum(["tory", "whig"]))),
        {"year": text["year"], "party": text["party"]},
    ]
    for frame in frames:
        again = fitted(frame)
        assert again.metadata_names_ == ["year", "party=tory", "party=whig"]
        assert_same_draws(model, again)
        # Fitted on one kind of frame, asked with the other.
        np.testing.assert_array_equal(model.predict_prevalence(frame), again.predict_prevalence(given))
        np.testing.assert_array_equal(model.transform(X, metadata=frame), again.transform(X, metadata=given))
    assert_same_draws(fitted(given[["party"]]), fitted(text["party"]))
    assert_same_draws(fitted(PARTY == "whig"), fitted(text.select(level == "whig")))
    declared = fitted(text.select(level.cast(polars.Enum(["green", "whig", "tory"]))))
    assert declared.metadata_names_ == ["party=green", "party=whig", "party=tory"]
    # Among the columns of X.
    inside = polars.DataFrame(X.toarray(), schema=[f"w{j}" for j in range(30)]).hstack(text)
    for columns in (2, ["year", "party"]):
        with_words = DMRTopicModel(**SMALL, metadata_columns=columns).fit(inside)
        assert_same_draws(model, with_words)
        assert with_words.score(inside) == model.score(X, metadata=given)


def test_polars_nulls_are_missing_and_what_cannot_be_used_is_named():
    polars = importorskip("polars")
    holes = polars.DataFrame({"g": [None, "u"] * 60, "k": [1, None] * 60, "b": [True, None, False] * 40})
    with pytest.warns(UserWarning, match="60 missing values in 'g'; 60 missing values in 'k'; 40 missing .* 'b'"):
        assert fitted(holes).metadata_names_ == ["g=u", "k", "b"]
    dates = polars.DataFrame({"day": [datetime.date(1900, 1, 1)] * 120})
    with pytest.raises(ValueError, match=r"column 'day' is of type Date.*turn it into a number"):
        fitted(dates)
    with pytest.raises(ValueError, match=r"column 'day' is of type datetime64.*turn it into a number"):
        fitted({"day": np.full(120, np.datetime64("1900-01-01"))})
    with pytest.raises(ValueError, match="column 'both' must hold numbers, texts"):
        fitted(polars.DataFrame({"both": [[1, 2]] * 120}))
    with pytest.raises(TypeError, match=r"LazyFrame.*metadata.collect\(\)"):
        fitted(polars.LazyFrame(TABLE))


def test_coefficients_belong_to_the_metadata_as_given():
    # Another unit and origin of the year: the same draws of topics, coefficients converted.
    one, other = fitted(YEAR), fitted(10.0 * (YEAR - 1900.0))
    np.testing.assert_allclose(one.components_, other.components_, rtol=1e-4)
    np.testing.assert_allclose(one.coef_[:, 1], 10.0 * other.coef_[:, 1], rtol=1e-6)
    np.testing.assert_allclose(one.coef_[:, 0] + 1900.0 * one.coef_[:, 1], other.coef_[:, 0], rtol=1e-6)
    np.testing.assert_allclose(one.predict_prevalence([[1950.0]]), other.predict_prevalence([[500.0]]), rtol=1e-6)


def test_order_of_documents_and_of_named_columns_does_not_count(model):
    pandas = importorskip("pandas")
    frame = pandas.DataFrame({"unused": 0, "party": PARTY, "year": YEAR})
    order = np.random.default_rng(0).permutation(120)
    np.testing.assert_array_equal(model.transform(X, metadata=frame), model.transform(X, metadata=TABLE))
    np.testing.assert_array_equal(
        model.transform(X[order], metadata=frame.iloc[order]), model.transform(X, metadata=TABLE)[order]
    )
    assert model.score(X[order], metadata=frame.iloc[order]) == pytest.approx(model.score(X, metadata=TABLE), abs=1e-12)


def test_columns_of_X_are_the_same_as_metadata_beside_it(model):
    pandas = importorskip("pandas")
    words = [f"w{j}" for j in range(30)]
    frame = pandas.DataFrame(X.toarray(), columns=words).assign(year=YEAR, party=PARTY)
    for columns in (2, ["year", "party"], [30, 31], lambda X: ["year", "party"]):
        inside = DMRTopicModel(**SMALL, metadata_columns=columns).fit(frame)
        assert_same_draws(model, inside)
        assert inside.n_features_in_ == 32 and inside.score(frame) == model.score(X, metadata=TABLE)
        assert set(inside.top_words(3)["word"]) <= set(words)
        np.testing.assert_array_equal(inside.transform(frame[words], metadata=frame[["year", "party"]]),
                                      inside.transform(frame))  # fmt: skip
    first = DMRTopicModel(**SMALL, metadata_columns="year").fit(frame[["year", *words]])
    assert first.metadata_names_ == ["year"] and first.components_.shape == (3, 30)
    stacked = sparse.hstack([X, sparse.csr_array(YEAR[:, None])], format="csc")
    stacked = DMRTopicModel(**SMALL, metadata_columns=1).fit(stacked)
    np.testing.assert_allclose(stacked.samples_["coef"], fitted(YEAR).samples_["coef"], rtol=1e-6)
    # Where metadata are passed, X is all counts.
    assert_same_draws(model, DMRTopicModel(**SMALL, metadata_columns=2).fit(X, metadata=TABLE))


def test_without_metadata_it_is_a_topic_model_with_a_learnt_prior():
    with pytest.warns(UserWarning, match="No metadata were given.*plain latent.*metadata=.*BayesianLDA") as caught:
        plain = DMRTopicModel(**SMALL).fit(X)
    assert "sk_sgmcmc" not in caught[0].filename.split("/")[-2]
    assert plain.coef_.shape == (3, 1)
    np.testing.assert_allclose(np.exp(plain.coef_[:, 0]), plain.doc_topic_prior_, rtol=0.1)
    with pytest.raises(ValueError, match="fitted without metadata"):
        plain.transform(X, metadata=TABLE)
    with pytest.raises(ValueError, match="need metadata"):
        plain.predict_prevalence(TABLE)


def tables():
    """Metadata in the forms that a user may pass as the second argument."""
    numbers = np.column_stack([YEAR, PARTY == "whig"]).astype(float)
    pandas, polars = importorskip("pandas"), importorskip("polars")
    return [
        numbers, numbers[:, :1], numbers.tolist(), list(numbers), object_rows(), sparse.csr_array(numbers),
        sparse.coo_matrix(numbers), TABLE, pandas.DataFrame(TABLE), polars.DataFrame(TABLE),
        polars.LazyFrame(TABLE), list(map(dict, [{"year": year} for year in YEAR])),
    ]  # fmt: skip


def test_metadata_in_the_place_of_y_are_refused_with_what_to_type(model):
    before = pickle.dumps(model)
    for table in tables():
        for method in ("fit", "fit_transform", "partial_fit", "score"):
            with pytest.raises(ValueError, match=r"pass metadata=M"):
                getattr(model, method)(X, table)
        with pytest.raises(ValueError, match=r"pass metadata=M"):
            model.resume(X, table, metadata=TABLE)
    for method in ("transform", "perplexity"):  # they take no y
        with pytest.raises(TypeError, match="positional"):
            getattr(model, method)(X, TABLE)
    assert pickle.dumps(model) == before


def test_labels_in_the_place_of_y_pass(model):
    pandas, polars = importorskip("pandas"), importorskip("polars")
    for labels in (PARTY, PARTY.tolist(), YEAR, pandas.Series(PARTY), polars.Series(PARTY), [], None):
        again = DMRTopicModel(**SMALL).fit(X, labels, metadata=TABLE)
        assert_same_draws(model, again)
        assert again.score(X, labels, metadata=TABLE) == model.score(X, metadata=TABLE)


def test_no_warning_where_metadata_are_given_or_the_stream_goes_on():
    stream = DMRTopicModel(**SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted().transform(X, metadata=TABLE)
        DMRTopicModel(**SMALL, metadata_columns=1).fit(sparse.hstack([X, YEAR[:, None]], format="csr"))
    with pytest.warns(UserWarning, match="No metadata were given"):
        stream.partial_fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.partial_fit(X)


# ------------------------------------------------------------------------------------------------- bad metadata


@pytest.mark.parametrize("name", ["metadata_prior_scale", "intercept_prior_scale"])
def test_a_prior_too_narrow_for_its_precision_is_refused(name):
    with pytest.raises(ValueError, match=name):
        DMRTopicModel(n_components=2, n_iter=5, **{name: 1e-300}).fit(np.ones((3, 4)), metadata=[[1], [2], [3]])


def test_a_column_without_any_value_has_no_effect():
    X = np.random.default_rng(0).poisson(0.5, (20, 10))
    with pytest.warns(UserWarning, match="20 missing values"):
        model = DMRTopicModel(n_components=2, n_iter=5, random_state=0).fit(X, metadata=[[None]] * 20)
    assert np.all(np.isfinite(model.components_))


def test_unknown_levels_and_missing_values_have_no_effect_and_warn(model):
    with pytest.warns(UserWarning, match="unknown levels in 'party': 'green'.*prior mean") as caught:
        answer = model.predict_prevalence({"year": [1900.0], "party": ["green"]})
    assert "sk_sgmcmc" not in caught[0].filename.split("/")[-2]
    alpha = np.exp(model.samples_["coef"][0] @ [1.0, 1900.0, 0.0, 0.0])
    np.testing.assert_allclose(answer[0], (alpha / alpha.sum(axis=1, keepdims=True)).mean(axis=0), rtol=1e-6)
    with pytest.warns(UserWarning, match="1 missing values in 'year'; 1 missing values in 'party'"):
        missing = model.predict_prevalence([[np.nan, None]])
    one = model.predict_prevalence({"year": 1900.0, "party": PARTY[0]})
    np.testing.assert_array_equal(one, model.predict_prevalence({"year": [1900.0], "party": [PARTY[0]]}))
    with pytest.raises(ValueError, match="no rows"):
        model.predict_prevalence({"year": [], "party": []})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet = fitted(handle_unknown="ignore").predict_prevalence([[YEAR.mean(), "green"]])
    np.testing.assert_allclose(missing, quiet, rtol=1e-6)
    strict = fitted(handle_unknown="error")
    before = pickle.dumps(strict)
    for metadata in ({"year": YEAR, "party": np.full(120, "green")}, {"year": YEAR * np.nan, "party": PARTY}):
        for method in ("fit", "partial_fit", "transform", "score", "perplexity"):
            if method == "fit" and metadata["party"][0] == "green":
                continue
            with pytest.raises(ValueError, match=r"unknown levels|missing values"):
                getattr(strict, method)(X, metadata=metadata)
    assert pickle.dumps(strict) == before


BAD = [
    ({"year": YEAR[:5], "party": PARTY[:5]}, "5 rows and X has 120"),
    ({"year": YEAR, "party": PARTY[:5]}, "different lengths"),
    ({"year": np.full(120, np.inf), "party": PARTY}, "infinity"),
    (np.zeros((120, 0)), "at least one column"),
    (np.zeros((2, 3, 4)), "shape"),
    (sparse.csr_array(np.full((120, 70), np.nan)), "finite"),
    ({"year": np.full(120, np.datetime64("2000")), "party": PARTY}, "datetime64.*number"),
    ({}, "no columns"),
    ([{"year": 1}] * 120, "simple values"),
]


@pytest.mark.parametrize("metadata, message", BAD)
def test_bad_metadata_are_refused_and_nothing_is_changed(metadata, message):
    model = fitted()
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.fit(X, metadata=metadata)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    "metadata, message",
    [
        (YEAR, "1 columns, but the model was fitted with 2"),
        ({"year": YEAR}, r"lacks the columns \['party'\]"),
        ({"year": PARTY, "party": PARTY}, "fitted as numbers"),
    ],
)
def test_other_columns_than_those_fitted_are_refused(model, metadata, message):
    for method in (model.transform, model.score, model.perplexity, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            method(X, metadata=metadata)


@pytest.mark.parametrize(
    "params, message",
    [
        ({"metadata_columns": 30}, "at least one for counts"),
        ({"metadata_columns": ["year"]}, "no column 'year'"),
        ({"metadata_columns": [0, 0]}, "none twice"),
        ({"metadata_columns": 0}, "metadata_columns"),
        ({"metadata_columns": 1, "new_features": "extend"}, "metadata separate from X"),
        ({"coef_sampler": "scir"}, "sgld"),
        ({"coef_sampler": "hmc"}, "no log density"),
        ({"coef_sampler": "lbfgs"}, '"sg-nphmc" or "l-bfgs", or a sampler object; got \'lbfgs\''),
        ({"coef_sampler": "l-bfgs", "sampler": "scir", "assignments": "fresh"}, 'with assignments="stored"'),
        ({"coef_sampler": "sghmc-em"}, "no mass is left to learn"),
        ({"metadata_prior_scale": 0.0}, "metadata_prior_scale"),
        ({"handle_unknown": "guess"}, "handle_unknown"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        DMRTopicModel(**SMALL, **params).fit(X)


def test_too_large_steps_of_the_coefficients_say_what_to_try():
    with pytest.raises(FloatingPointError, match=r"coef_sampler=SGHMC.*try step_size"):
        fitted(coef_sampler=SGHMC(1e200), n_iter=60)


def test_many_levels_are_kept_sparse_and_encode_the_same():
    rng = np.random.default_rng(0)
    many = {"address": rng.integers(0, 80, 200).astype(str), "year": rng.normal(size=200)}
    encoder = MetadataEncoder().fit(many)
    encoded = encoder.encode(many, 200, "error")
    assert sparse.issparse(encoded)
    levels = sorted(set(many["address"]))
    expected = np.column_stack([many["address"][:, None] == levels, many["year"]])
    np.testing.assert_array_equal(encoded.toarray(), expected)
    dense = encoder.rows(expected)
    some = encoder.rows(encoded)
    B, R = rng.normal(size=(3, encoder.n_metadata + 1)), rng.random((200, 3))
    np.testing.assert_allclose(some.predict(B), dense.predict(B), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(some.pull(R), dense.pull(R), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(some.squares(R), dense.squares(R), rtol=1e-9, atol=1e-9)
    coupling = dense.coupling(R[:, :2], R[:, 2])
    np.testing.assert_allclose(some.coupling(R[:, :2], R[:, 2]), coupling, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(coupling[0, :, 1], dense.gram(R[:, 0] * R[:, 1] * R[:, 2]), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(some.take([3, 5]).predict(B), dense.predict(B)[[3, 5]], rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------------------------------- pipelines and searches

TEXTS = np.array(["river water bank fish", "bank money loan money", "fish water river boat", "loan bank money"] * 9)
KIND = np.array(["nature", "economy", "nature", "economy"] * 9)


def test_pipeline_with_routing_off():
    pipeline = make_pipeline(CountVectorizer(), DMRTopicModel(2, n_iter=8, random_state=0))
    pipeline.fit(TEXTS, dmrtopicmodel__metadata=KIND)
    assert pipeline[-1].metadata_names_ == ["x0=economy", "x0=nature"]
    assert pipeline.transform(TEXTS).shape == (36, 2)  # without metadata: the mean prior
    # The way that carries them through every method: columns of X.
    pandas = importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "kind": KIND, "year": np.arange(36.0)})
    both = ColumnTransformer(
        [("words", CountVectorizer(), "text"), ("kind", OneHotEncoder(), ["kind"]),
         ("year", FunctionTransformer(), ["year"])]
    )  # fmt: skip
    pipeline = make_pipeline(both, DMRTopicModel(2, n_iter=8, random_state=0, metadata_columns=3)).fit(frame)
    assert pipeline[-1].coef_.shape == (2, 4) and pipeline[-1].components_.shape == (2, 7)
    counts = CountVectorizer().fit_transform(TEXTS)
    metadata = np.column_stack([KIND == "economy", KIND == "nature", np.arange(36.0)]).astype(float)
    beside = DMRTopicModel(2, n_iter=8, random_state=0).fit(counts, metadata=metadata)
    np.testing.assert_allclose(pipeline.transform(frame), beside.transform(counts, metadata=metadata), rtol=1e-5)
    assert pipeline.score(frame) == pytest.approx(beside.score(counts, metadata=metadata), rel=1e-6)


def test_grid_search_with_routing_off():
    pandas = importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "kind": KIND})
    both = ColumnTransformer([("words", CountVectorizer(), "text"), ("kind", OneHotEncoder(), ["kind"])])
    pipeline = make_pipeline(both, DMRTopicModel(2, n_iter=8, random_state=0, metadata_columns=2))
    grid = {"dmrtopicmodel__sampler": ["scir", "gibbs"], "dmrtopicmodel__metadata_prior_scale": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(frame)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_estimator_.transform(frame).shape == (36, 2)
    # metadata= reaches fit, split by rows, but not score.
    counts = CountVectorizer().fit_transform(TEXTS)
    search = GridSearchCV(DMRTopicModel(2, n_iter=8, random_state=0), {"coef_sampler": ["sgld", "sgnht"]}, cv=2)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        search.set_params(error_score="raise").fit(counts, metadata=KIND)
    search.set_params(estimator__handle_unknown="ignore").fit(counts, metadata=KIND)
    assert search.best_estimator_.coef_.shape == (2, 3)
    # Samplers' parameters are searched whether they are names, None or objects.
    grid = {"coef_sampler__step_size": [0.1, 0.2], "sampler__step_size": [0.5]}
    with pytest.warns(UserWarning, match="No metadata were given"):
        assert GridSearchCV(search.estimator, grid, cv=2, error_score="raise").fit(counts).best_score_ < 0


def test_pipeline_with_routing_on():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(CountVectorizer(), DMRTopicModel(2, n_iter=8, random_state=0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)  # of eight sweeps
            routed = pipeline.fit(TEXTS, metadata=KIND).transform(TEXTS, metadata=KIND)
            again = pipeline.fit_transform(TEXTS, metadata=KIND)
        counts = CountVectorizer().fit_transform(TEXTS)
        alone = DMRTopicModel(2, n_iter=8, random_state=0).fit(counts, metadata=KIND)
        np.testing.assert_array_equal(routed, alone.transform(counts, metadata=KIND))
        np.testing.assert_array_equal(routed, again)
        assert pipeline.score(TEXTS, metadata=KIND) == alone.score(counts, metadata=KIND)
        # A user may ask for something else.
        quiet = DMRTopicModel().set_fit_request(metadata=False)
        assert quiet.get_metadata_routing().fit.requests["metadata"] is False


def test_grid_search_with_routing_on():
    with sklearn.config_context(enable_metadata_routing=True):
        model = DMRTopicModel(2, n_iter=8, random_state=0)
        pipeline = make_pipeline(CountVectorizer(), model)
        grid = {"dmrtopicmodel__metadata_prior_scale": [0.1, 1.0]}
        search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(TEXTS, metadata=KIND)
        assert search.best_estimator_[-1].coef_.shape == (2, 3)
        if not search.get_metadata_routing().consumes("score", ["metadata"]):
            return  # scikit-learn 1.6 scores without metadata
        assert search.score(TEXTS, metadata=KIND) < 0
        # Scores are made with the metadata of the documents scored.
        fold = cross_val_score(pipeline, TEXTS, params={"metadata": KIND}, cv=2, error_score="raise")
        half = pipeline.fit(TEXTS[18:], metadata=KIND[18:]).score(TEXTS[:18], metadata=KIND[:18])
        assert fold[0] == half


# ------------------------------------------------------------------------------------------------------- answers


def test_prevalence_is_that_of_the_draws(model):
    mean, low, high = model.predict_prevalence(TABLE, interval=0.9)
    assert mean.shape == (120, 3)
    np.testing.assert_allclose(mean.sum(axis=1), 1)
    np.testing.assert_array_equal(mean, model.predict_prevalence(TABLE))
    priors = model.doc_topic_priors(TABLE)
    assert priors.shape == (8, 120, 3)
    shares = priors / priors.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(mean, shares.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose([low, high], np.quantile(shares, [0.05, 0.95], axis=0, method="weibull"), rtol=1e-6)
    np.testing.assert_allclose(model.doc_topic_prior_, priors.mean(axis=(0, 1)), rtol=1e-6)
    eta = model.samples_["coef"][0, 3, 1] @ [1.0, YEAR[7], PARTY[7] == "tory", PARTY[7] == "whig"]
    assert priors[3, 7, 1] == pytest.approx(np.exp(eta))
    with pytest.raises(ValueError, match="interval"):
        model.predict_prevalence(TABLE, interval=90)


def test_the_prior_of_documents_counts_documents_and_not_groups():
    party = np.where(np.arange(120) < 10, "tory", "whig")
    model = fitted({"party": party})
    priors = model.doc_topic_priors({"party": party})
    np.testing.assert_allclose(model.doc_topic_prior_, priors.mean(axis=(0, 1)), rtol=1e-6)


def test_tables(model):
    importorskip("pandas")
    table = model.coef_table(interval=0.8)
    assert list(table.columns) == ["topic", "name", "term", "mean", "low", "high", "positive"]
    assert len(table) == 12 and table["name"].tolist() == np.repeat(model.topic_names_, 4).tolist()
    assert list(table["term"][:4]) == ["intercept", *model.metadata_names_]
    np.testing.assert_allclose(table["mean"], model.coef_.ravel())
    draws = model.samples_["coef"].reshape(8, 12)
    np.testing.assert_allclose([table["low"], table["high"]], np.quantile(draws, [0.1, 0.9], axis=0, method="weibull"))
    np.testing.assert_allclose(table["positive"], (draws > 0).mean(axis=0))
    whig, tory = ({"year": YEAR, "party": np.full(120, name)} for name in ("whig", "tory"))
    difference = model.prevalence_difference(whig, tory)
    assert difference["name"].tolist() == model.topic_names_.tolist()
    expected = model.predict_prevalence(whig).mean(axis=0) - model.predict_prevalence(tory).mean(axis=0)
    np.testing.assert_allclose(difference["difference"], expected, atol=1e-12)
    a, b = (
        (priors / priors.sum(axis=2, keepdims=True)).mean(axis=1)
        for priors in (model.doc_topic_priors(whig), model.doc_topic_priors(tory))
    )
    np.testing.assert_allclose(
        [difference["low"], difference["high"]], np.quantile(a - b, [0.05, 0.95], axis=0, method="weibull"), atol=1e-12
    )
    np.testing.assert_allclose(difference["positive"], (a > b).mean(axis=0))
    same = model.prevalence_difference(whig, whig)
    assert np.all(same["difference"] == 0)


def test_documents_without_words_get_the_prior_of_their_metadata(model):
    empty = sparse.csr_array((2, 30))
    given = {"year": YEAR[:2], "party": PARTY[:2]}
    priors = model.doc_topic_priors(given).mean(axis=0)
    np.testing.assert_allclose(
        model.transform(empty, metadata=given), priors / priors.sum(axis=1, keepdims=True), rtol=1e-9
    )
    plain = model.doc_topic_prior_ / model.doc_topic_prior_.sum()
    ignoring = copy(model).set_params(handle_unknown="ignore")
    np.testing.assert_allclose(ignoring.transform(empty), [plain, plain], rtol=1e-9)


def test_metadata_of_the_fitted_documents_are_known(model, tmp_path):
    joblib.dump(model, tmp_path / "model")
    loaded = joblib.load(tmp_path / "model")
    times = np.arange(len(YEAR)) % 3
    for each in (model, loaded):
        for method, *args in (
            ("transform",), ("transform_draws", 3), ("topic_info",), ("topics_over_time", times), ("perplexity",),
            ("topic_correlation",), ("representative_docs",), ("score",),
        ):  # fmt: skip
            found, given = (getattr(each, method)(form, *args, **more) for form, more in
                            ((X.copy(), {}), (X, {"metadata": TABLE})))  # fmt: skip
            np.testing.assert_equal(np.asarray(found), np.asarray(given))
    np.testing.assert_equal(to_pyldavis(model, X), to_pyldavis(model, X, metadata=TABLE))
    np.testing.assert_array_equal(model.merge_topics([0, 1]).transform(X),
                                  model.merge_topics([0, 1]).transform(X, metadata=TABLE))  # fmt: skip


@pytest.mark.parametrize("method", ["transform", "transform_draws", "topic_info", "topics_over_time", "score",
                                    "topic_correlation", "representative_docs", "perplexity"])  # fmt: skip
def test_metadata_of_other_documents_are_required(method, model):
    other = X[::-1].copy()
    args = (np.zeros(len(YEAR)),) if method == "topics_over_time" else ()
    with pytest.raises(ValueError, match=r"Pass metadata=M, with one row for each document; or set handle_unknown"):
        getattr(model, method)(other, *args)
    assert getattr(copy(model).set_params(handle_unknown="ignore"), method)(other, *args) is not None
    reversed_table = {name: column[::-1] for name, column in TABLE.items()}
    assert getattr(model, method)(other, *args, metadata=reversed_table) is not None


def test_metadata_of_a_stream_are_required():
    model = DMRTopicModel(**SMALL).partial_fit(X, metadata=TABLE)
    for method in (model.transform, model.partial_fit, model.score):
        with pytest.raises(ValueError, match="Pass metadata=M"):
            method(X)
    plain = DMRTopicModel(**SMALL)
    with pytest.warns(UserWarning, match="No metadata were given"):
        plain.fit(X)
    assert plain.transform(X[:2]).shape == (2, 3)


def test_rows_of_metadata_are_matched_by_label():
    pandas = importorskip("pandas")
    labels = [f"document {i}" for i in range(len(YEAR))]
    counts, table = (
        pandas.DataFrame(X.toarray(), index=labels),
        pandas.DataFrame(TABLE, index=labels),
    )
    shuffled = table.sample(frac=1.0, random_state=0)
    model = DMRTopicModel(**SMALL).fit(counts, metadata=table)
    for form in (shuffled, {name: shuffled[name] for name in shuffled}):
        same = DMRTopicModel(**SMALL).fit(counts, metadata=form)
        np.testing.assert_array_equal(same.samples_["coef"], model.samples_["coef"])
        np.testing.assert_array_equal(model.transform(counts, metadata=form), model.transform(counts))
    times = pandas.Series(np.arange(len(YEAR)) // 40, index=labels)
    a, b = (model.topics_over_time(counts, each) for each in (times, times[shuffled.index]))
    np.testing.assert_array_equal(np.asarray(a["share"]), np.asarray(b["share"]))
    texts = pandas.Series(labels, index=labels)[shuffled.index]
    docs = model.representative_docs(counts, texts)
    assert np.asarray(docs["text"]).tolist() == [labels[i] for i in docs["document"]]
    for method in (model.fit, model.partial_fit, model.resume, model.transform, model.score, model.topic_info):
        with pytest.raises(ValueError, match="`metadata` must have the row labels of X; got the label 'other'"):
            method(counts, metadata=table.rename(index={labels[3]: "other"}))


def test_metadata_help_where_little_is_observed():
    data = make_dmr(800, 60, 4, 2, 12, metadata_prior_scale=1.5, random_state=3)
    dmr = DMRTopicModel(4, topic_word_prior=0.1, n_iter=60, random_state=0)
    dmr.fit(data.counts[:600], metadata=data.metadata[:600])
    with_metadata = dmr.perplexity(data.counts[600:], metadata=data.metadata[600:])
    dmr.set_params(handle_unknown="ignore")
    assert with_metadata < 0.97 * dmr.perplexity(data.counts[600:])


# ------------------------------------------------------------------------------------------- chains and streams


@pytest.mark.parametrize(
    "params",
    [{}, {"assignments": "fresh", "batch_size": 30}, {"sampler": "gibbs"}, {"coef_sampler": "l-bfgs", "n_chains": 2}],
    ids=str,
)
def test_resume_gives_the_draws_of_an_uninterrupted_fit(params, tmp_path):
    whole = fitted(**params)
    stopped = DMRTopicModel(**SMALL, **params, callbacks=PressCtrlC(9))
    with interrupted():
        stopped.fit(X, metadata=TABLE)
    again = pickle.loads(pickle.dumps(stopped))
    assert_same_draws(whole, again.resume(X, metadata=TABLE))
    with pytest.raises(ValueError, match="pass the same again"):
        again.resume(X, metadata={"year": YEAR, "party": PARTY[::-1]})


def test_coefficients_of_all_particles_move_after_whole_passes():
    model = fitted(sampler=Blob(n_particles=3), batch_size=20, n_iter=14, burn_in=0)  # of 6 minibatches
    assert [particle.n_passes for particle in model._chains[0].particles] == [2, 2, 2]


def test_held_out_scores_take_metadata():
    follow = HeldOutScore(X, every=8, metadata=TABLE)
    fitted(callbacks=follow)
    plain = HeldOutScore(X, every=8)
    fitted(callbacks=plain)
    model = fitted(callbacks=follow)
    assert len(model.trace_["score"]) == 2 and np.all(np.isfinite(model.trace_["score"]))


@pytest.mark.parametrize("init", ["soft", "random"])
def test_a_stream_learns_coefficients(init):
    pandas = importorskip("pandas")
    data = make_dmr(1500, 60, 3, 2, 40, random_state=1)
    party = pandas.Categorical(np.where(data.metadata[:, 1] > 0, "whig", "tory"), categories=["tory", "whig", "green"])
    frame = pandas.DataFrame({"number": data.metadata[:, 0], "party": party})
    model = DMRTopicModel(3, topic_word_prior=0.1, init=init, batch_size=50, random_state=0)
    for start in range(0, 1500, 250):
        model.partial_fit(data.counts[start : start + 250], metadata=frame[start : start + 250])
    assert model.metadata_names_ == ["number", "party=tory", "party=whig", "party=green"]
    assert np.all(np.isfinite(model.coef_))
    if init == "soft":
        from sk_sgmcmc.metrics import align_topics

        order = align_topics(data.components, model.components_)
        assert np.corrcoef(model.coef_[order, 1], data.coef[:, 1])[0, 1] > 0.9
    # A block of which nothing is known.
    with pytest.raises(ValueError, match="Pass metadata=M"):
        model.partial_fit(data.counts[:50])
    model.set_params(handle_unknown="ignore").partial_fit(data.counts[:50])


def test_a_stream_takes_another_pace_of_its_coefficients_and_no_other_sampler():
    draws = []
    for step_size in (1e-3, 0.1):
        model = DMRTopicModel(**SMALL, sampler="scir", coef_sampler=SGNHT(1e-3)).partial_fit(X, metadata=TABLE)
        model.set_params(coef_sampler__step_size=step_size).partial_fit(X, metadata=TABLE)
        draws.append(model.samples_["coef"])
    assert not np.array_equal(*draws)
    for other in (SGHMC(0.1), None):
        with pytest.raises(ValueError, match=r"(?i)cannot (go on|continue)"):
            model.set_params(coef_sampler=other).partial_fit(X, metadata=TABLE)


def test_a_stream_cannot_optimise_coefficients():
    model = fitted(coef_sampler="l-bfgs").set_params(sampler="scir")
    before = model.coef_
    with pytest.raises(ValueError, match='"l-bfgs" needs the assignments of all documents'):
        model.partial_fit(X, metadata=TABLE)
    with pytest.raises(ValueError, match="has no parameters"):
        model.set_params(coef_sampler__step_size=0.1)
    with pytest.raises(ValueError, match=r"(?i)cannot (go on|continue)"):
        model.set_params(coef_sampler=None).partial_fit(X, metadata=TABLE)
    assert model.coef_ is before
    assert model.set_params(coef_sampler="l-bfgs", sampler=None).partial_fit(X, metadata=TABLE).coef_ is not before


def test_coefficients_at_the_bounds_of_the_linear_predictor_warn():
    words = np.kron(np.eye(2), np.full((30, 4), 5.0))
    metadata = np.repeat([0.0, 1.0], 30)
    with pytest.warns(UserWarning, match=r"reach the bounds of the linear predictor, \[-20, 10\]"):
        DMRTopicModel(2, n_iter=40, metadata_prior_scale=100.0, intercept_prior_scale=100.0, random_state=0).fit(
            words, metadata=metadata
        )
    shares = are_clipped(np.array([[0.0], [1.0]]), np.array([[[-1.0, -18.9], [0.0, 2.0]]]))
    np.testing.assert_array_equal(shares, [[0.0, 0.0], [0.0, 0.0]])
    shares = are_clipped(np.array([[0.0], [1.0]]), np.array([[[-1.0, -19.5], [0.0, 12.0]]]))
    np.testing.assert_array_equal(shares, [[0.0, 0.0], [1.0, 1.0]])


def test_a_stream_goes_on_from_fit():
    model = fitted(n_iter=40)
    before = model.coef_
    model.partial_fit(X, metadata=TABLE)
    assert np.all(np.isfinite(model.coef_)) and not np.array_equal(before, model.coef_)


@pytest.mark.parametrize("has_metadata", [True, False])
def test_intercepts_about_which_documents_say_nothing_warn(has_metadata):
    # One-token documents leave the sum of two intercepts its prior, a normal with standard deviation 14.
    quiet = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        counts, metadata = np.eye(5, dtype=int)[rng.integers(5, size=12)], rng.normal(size=12)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = DMRTopicModel(2, n_iter=200, intercept_prior_scale=10.0, random_state=seed)
            model.fit(counts, metadata=metadata if has_metadata else None)
        coef = model.samples_["coef"].astype(float)
        at_mean = coef[..., 0] + (coef[..., 1] * metadata.mean() if has_metadata else 0.0)
        row = model.diagnostics_["quantity"] == "mean_intercept"
        assert model.diagnostics_["mean"][row].item() == pytest.approx(at_mean.mean(), abs=1e-6)
        if not any("The intercepts have not converged" in str(each.message) for each in caught):
            quiet.append(at_mean.sum(axis=-1).std())
    assert len(quiet) < 4 and all(spread > 7.0 for spread in quiet)  # what passes has about the right spread


def test_intercepts_of_usual_corpora_do_not_warn():
    for seed in range(3):
        data = make_dmr(200, 60, 4, 2, 20, random_state=seed)
        model = DMRTopicModel(4, n_iter=200, random_state=seed).fit(data.counts, metadata=data.metadata)
        assert not dict(zip(model.checks_["check"], model.checks_["fired"], strict=True))["intercepts_not_converged"]
        assert model.diagnostics_["mcse"][model.diagnostics_["quantity"] == "mean_intercept"].item() < 0.1


def test_metadata_too_large_to_compute_with_are_refused_by_their_column():
    for metadata in ({"year": [2000.0, 1e300, 2001.0, 1.0]}, sparse.csr_array([[0.0], [1e300], [1.0], [2.0]])):
        with pytest.raises(ValueError, match=r"Column 0 of metadata .*holds 1e\+300.*larger units"):
            DMRTopicModel(2, n_iter=2).fit(np.ones((4, 3)), metadata=metadata)


@pytest.mark.parametrize("metadata", [{"year": []}, np.zeros((0, 2)), sparse.csr_array((0, 2))])
def test_metadata_without_rows_are_refused(metadata):
    with warnings.catch_warnings(), pytest.raises(ValueError, match="metadata has no rows; give one for each document"):
        warnings.simplefilter("error")
        DMRTopicModel(2, n_iter=2).fit(np.ones((1, 3)), metadata=metadata)


@pytest.mark.parametrize(
    "name", ["coef_table", "predict_prevalence", "doc_topic_priors", "prevalence_difference", "effects"]
)
def test_answers_about_metadata_need_a_fit(name):
    given = {"coef_table": (), "prevalence_difference": ([[1.0]], [[2.0]]), "effects": ("x0",)}.get(name, ([[1.0]],))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(DMRTopicModel(), name)(*given)
