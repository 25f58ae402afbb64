"""`TopicRegressor` and `TopicClassifier`: what they recover, refuse, and answer."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sk_sgmcmc import BayesianLDA, TopicClassifier, TopicRegressor
from sk_sgmcmc.datasets import make_lda
from tests.conftest import importorskip

DATA = make_lda(n_samples=400, n_features=60, n_components=3, document_length=30, random_state=1)
RNG = np.random.default_rng(0)
COVARIATES = RNG.normal([1e4, -3.0], [100.0, 0.01], (400, 2))
SLOPES, OWN, NOISE = np.array([10.0, 12.0, 15.0]), np.array([0.02, 50.0]), 0.5
MEAN = DATA.doc_topics @ SLOPES + COVARIATES @ OWN
Y = MEAN + NOISE * RNG.normal(size=400)
LABELS = np.where(RNG.random(400) < 1 / (1 + np.exp(-3 * (DATA.doc_topics @ [-1.0, 0.0, 1.0]))), "yes", "no")


def order_of(model):
    """Index of the fitted topic of each planted one."""
    similarity = np.sqrt(DATA.components) @ np.sqrt(model.components_).T
    assert sorted(similarity.argmax(axis=1)) == [0, 1, 2]
    return similarity.argmax(axis=1)


@pytest.fixture(scope="module")
def regressor():
    return TopicRegressor(3, n_iter=600, random_state=0).fit(DATA.counts, Y, COVARIATES)


@pytest.fixture(scope="module")
def classifier():
    return TopicClassifier(3, n_iter=600, random_state=0).fit(DATA.counts, LABELS)


# ----------------------------------------------------------------------------------------------------------- recovery


@pytest.mark.parametrize(
    "params", [{}, {"dispersion": "shared"}, {"feedback": False}, {"doc_topic_prior": 0.2}], ids=str
)
def test_planted_coefficients_are_found_in_the_units_of_y_and_of_covariates(params):
    model = TopicRegressor(3, n_iter=600, random_state=0, **params).fit(DATA.counts, Y, COVARIATES)
    order = order_of(model)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        row = model.contrast(int(order[b]), int(order[a]), interval=0.999)
        assert row["low"][0] < SLOPES[b] - SLOPES[a] < row["high"][0]
        assert row["high"][0] - row["low"][0] < 2.0
    own = model.samples_["covariate_coef"][0]
    assert np.all(np.abs(own.mean(axis=0) - OWN) < 5 * own.std(axis=0))
    assert 0.3 < model.noise_scale_ < 0.8
    np.testing.assert_allclose(model.coef_, model.samples_["coef"][0].mean(axis=0))


def test_units_and_offsets_change_nothing(regressor):
    other = TopicRegressor(3, n_iter=600, random_state=0).fit(DATA.counts, 1e6 + 1e3 * Y, COVARIATES * [1e-3, 1e3] + 7)
    np.testing.assert_allclose(
        np.diff(other.samples_["coef"]), 1e3 * np.diff(regressor.samples_["coef"]), rtol=1e-3, atol=1e-2
    )


def test_classes_follow_their_topics(classifier):
    order = order_of(classifier)
    row = classifier.contrast(int(order[2]), int(order[0]), interval=0.99)
    assert row["low"][0] < 6.0 < row["high"][0] and row["low"][0] > 2.0
    assert classifier.classes_.tolist() == ["no", "yes"]
    proba = classifier.predict_proba(DATA.counts)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert classifier.score(DATA.counts, LABELS) > 0.7


def test_short_documents_are_not_shrunk_as_by_least_squares_on_proportions():
    data = make_lda(n_samples=1500, n_features=40, n_components=2, document_length=6, random_state=0)
    y = data.doc_topics @ [0.0, 1.0] + 0.2 * np.random.default_rng(1).normal(size=1500)
    model = TopicRegressor(2, n_iter=800, random_state=0).fit(data.counts, y)
    row = model.contrast(0, 1, interval=0.95)
    # Draws of proportions given the words are measured with error, which shrinks coefficients.
    draws = BayesianLDA(2, random_state=0).fit(data.counts)
    theta = draws.transform_draws(data.counts, 1)[0]
    assert abs(np.diff(LinearRegression().fit(theta, y).coef_)[0] / 2) < 0.8
    assert row["low"][0] < np.sign(row["mean"][0]) < row["high"][0]


# --------------------------------------------------------------------------------------------------------- predictions


def test_predictions_are_from_words_alone_and_their_intervals_cover(regressor):
    new = make_lda(n_samples=400, n_features=60, n_components=3, document_length=30, random_state=1)
    mean, low, high = regressor.predict_interval(new.counts, 0.9, covariates=COVARIATES)
    assert 0.84 < ((low < Y) & (high > Y)).mean() < 0.96
    np.testing.assert_allclose(mean, regressor.predict(new.counts, COVARIATES), atol=0.3)
    _, near, far = regressor.predict_interval(new.counts, 0.9, covariates=COVARIATES, of="mean")
    assert np.all(far - near < high - low)
    assert regressor.score(DATA.counts, Y, covariates=COVARIATES) > 0.85
    one = regressor.predict(new.counts[7:8], COVARIATES[7:8])
    np.testing.assert_array_equal(one, regressor.predict(new.counts, COVARIATES)[7:8])


def test_predictions_average_over_chains_that_each_predict_with_topics_of_their_own():
    # Chains in different modes have different coefficients for the topic of the same number.
    both = TopicRegressor(2, n_chains=2, n_iter=60, random_state=0).fit(DATA.counts, Y)
    alone = []
    for c in range(2):
        one = copy.copy(both)
        one.samples_ = {name: value[c : c + 1] for name, value in both.samples_.items()}
        alone.append(one.predict(DATA.counts))
    predicted = both.predict(DATA.counts)
    away = [np.abs(predicted - other).mean() for other in (np.mean(alone, axis=0), *alone)]
    assert away[0] < 0.5 * min(away[1:])
    mean, low, high = both.predict_interval(DATA.counts)
    np.testing.assert_allclose(mean, both.predict(DATA.counts), atol=0.3)
    assert 0.84 < ((low < Y) & (high > Y)).mean() < 0.96


def test_a_document_without_words_gets_the_mean_of_the_prior(regressor):
    empty = np.zeros((1, 60))
    mean, low, high = regressor.predict_interval(empty, covariates=COVARIATES[:1])
    assert np.isfinite([mean, low, high]).all() and low < mean < high


def test_tables(regressor):
    table = regressor.coef_table()
    assert list(table) == ["term", "topic", "name", "mean", "low", "high", "positive"]
    assert list(table["term"]) == ["topic"] * 3 + ["covariate"] * 2
    assert list(table["topic"]) == [0, 1, 2, -1, -1]
    np.testing.assert_allclose(table["mean"][3:], regressor.samples_["covariate_coef"][0].mean(axis=0))
    shares = regressor.components_ @ np.ones(60) * 0 + regressor._masses() / regressor._masses().sum()
    assert abs(np.asarray(table["mean"])[:3] @ shares) < 1e-9
    against = regressor.coef_table(reference=1)
    assert against["mean"][1] == 0.0
    row = regressor.contrast(0, 1)
    np.testing.assert_allclose(row["mean"][0], against["mean"][0])
    names = regressor.topic_names_
    np.testing.assert_allclose(regressor.contrast(str(names[0]), str(names[1]))["mean"][0], row["mean"][0])


@pytest.mark.parametrize("reference", [None, 1])
def test_regress_is_least_squares_on_the_proportions(reference):
    model = BayesianLDA(3, n_iter=60, random_state=0).fit(DATA.counts)
    table = model.regress(DATA.counts, Y, COVARIATES, reference=reference, interval=0.9)
    R = np.hstack([model.transform(DATA.counts), COVARIATES - COVARIATES.mean(axis=0)])
    coef, *_ = np.linalg.lstsq(R, Y, rcond=None)
    weights = R[:, :3].mean(axis=0) if reference is None else np.eye(3)[reference]
    expected = coef - np.append(np.full(3, coef[:3] @ weights), [0.0, 0.0])
    np.testing.assert_allclose(table["mean"], expected, rtol=1e-6, atol=1e-8)
    inverse, rest = np.linalg.inv(R.T @ R), Y - R @ coef
    covariance = inverse @ (R.T * rest**2) @ R @ inverse * 400 / 395
    contrasts = np.eye(5)
    contrasts[:3, :3] -= weights
    error = np.sqrt(np.diag(contrasts @ covariance @ contrasts.T))
    for name, side in (("low", -1.0), ("high", 1.0)):
        np.testing.assert_allclose(table[name], expected + side * 1.6448536 * error, rtol=1e-6, atol=1e-7)


def test_coefficients_that_the_data_do_not_determine_are_not_reported():
    with pytest.warns(ConvergenceWarning, match="do not determine the coefficients"):
        model = TopicRegressor(8, n_iter=200, random_state=0).fit(DATA.counts[:8], Y[:8])
    table = model.coef_table()
    lacking = np.flatnonzero(np.isnan(np.asarray(table["mean"], dtype=float)))
    assert lacking.size
    with pytest.raises(ValueError, match="do not determine the coefficient of topic"):
        model.contrast(int(lacking[0]), int((lacking[0] + 1) % 8))


# ----------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "requires y"),
        ({"y": Y[:-1]}, "inconsistent numbers of samples"),
        ({"y": np.where(np.arange(400) == 3, np.nan, Y)}, "NaN at position 3"),
        ({"covariates": np.ones((400, 1))}, "constant"),
        ({"covariates": COVARIATES[:-1]}, "a row for each of the 400 documents"),
        ({"covariates": np.full((400, 1), "a", dtype=object)}, "get_dummies"),
    ],
    ids=str,
)
def test_outcomes_and_covariates_that_cannot_be_used_are_refused(change, message):
    given = {"y": Y, "covariates": COVARIATES} | change
    with pytest.raises(ValueError, match=message):
        TopicRegressor(3, n_iter=20).fit(DATA.counts, given["y"], given["covariates"])


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"batch_size": 10}, "batch_size"),
        ({"total_samples": 1e4}, "total_samples"),
        ({"assignments": "fresh"}, "assignments"),
        ({"topic_prior": "normal"}, "topic_prior"),
        ({"sampler": "scir"}, "gibbs"),
    ],
    ids=str,
)
def test_samplers_that_read_minibatches_are_refused(params, name):
    with pytest.raises(ValueError, match=name):
        TopicRegressor(3, **params).fit(DATA.counts, Y)


def test_three_classes_and_one_class_are_refused():
    for labels, message in ((np.arange(400) % 3, "Only binary"), (np.zeros(400), "only one class")):
        with pytest.raises(ValueError, match=message):
            TopicClassifier(3).fit(DATA.counts, labels)


def test_covariates_are_needed_where_the_model_has_them(regressor):
    with pytest.raises(ValueError, match="`covariates` must be passed"):
        regressor.predict(DATA.counts)
    with pytest.raises(ValueError, match="must have the columns"):
        regressor.predict(DATA.counts, COVARIATES[:, :1])
    with pytest.raises(ValueError, match="fitted without covariates"):
        TopicRegressor(3, n_iter=20, random_state=0).fit(DATA.counts, Y).predict(DATA.counts, COVARIATES)
    frame = importorskip("pandas").DataFrame(COVARIATES, columns=["length", "year"])
    named = TopicRegressor(3, n_iter=20, random_state=0).fit(DATA.counts, Y, frame)
    with pytest.raises(ValueError, match=r"columns \['length', 'year'\], in this order; got \['year', 'length'\]"):
        named.predict(DATA.counts, frame[["year", "length"]])
    with pytest.raises(ValueError, match="not available"):
        regressor.merge_topics([0, 1])
    with pytest.raises(ValueError, match="must be a topic"):
        regressor.contrast(0, 3)


# ------------------------------------------------------------------------------------------------------ growing corpora


def test_new_documents_are_taken_in_with_or_without_outcomes():
    model = TopicRegressor(3, n_iter=300, random_state=0).fit(DATA.counts[:300], Y[:300])
    before = model.coef_.copy()
    model.partial_fit(DATA.counts[300:350])
    y = np.where(np.arange(50) % 2, Y[350:], np.nan)
    model.partial_fit(DATA.counts[350:], y)
    assert model.n_samples_seen_ == 400 and not np.array_equal(model.coef_, before)
    prior = model._chains[0].doc_prior
    assert prior.log_activity.shape == (400, 3) and np.isfinite(prior.log_activity).all()
    rows = model._kept.described
    assert rows[:, 1].sum() == 325
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict(DATA.counts), model.predict(DATA.counts))
    model.forget_documents()
    assert model._chains[0].doc_prior.log_activity is None
    with pytest.raises(ValueError, match="needs the earlier documents"):
        model.partial_fit(DATA.counts[:10], Y[:10])


def test_outcomes_are_those_of_their_documents_after_an_update():
    """Documents are sorted inside: outcomes and covariates must move along."""
    model = TopicRegressor(3, n_iter=100, random_state=0).fit(DATA.counts[:200], Y[:200], COVARIATES[:200])
    model.partial_fit(DATA.counts[200:], Y[200:], COVARIATES[200:])
    shard = model._kept.shard
    rows, place = shard.given[shard.group], shard.described.place
    expected = (Y[place] - model._response_mean) / model._response_scale
    np.testing.assert_allclose(rows[:, 0], expected)
    np.testing.assert_array_equal(shard.counts().toarray(), DATA.counts.toarray()[place])


@pytest.mark.parametrize("dispersion", ["topic", "shared"])
def test_the_prior_of_a_draw_is_the_one_that_was_drawn(dispersion):
    model = TopicRegressor(3, n_iter=40, random_state=0, dispersion=dispersion).fit(DATA.counts, Y)
    prior = model._chains[0].doc_prior
    present, _ = prior.prior.sweep_priors(model._kept.shard._replace(described=None))
    (found, _), _ = prior.in_draw(prior.draw(), model._kept.shard)
    if dispersion == "shared":
        np.testing.assert_allclose(found, present)
        return
    np.testing.assert_allclose(found.shape, present.shape)
    # A factor that is common to all rates cancels in the proportions.
    np.testing.assert_allclose(found.rate / found.rate[:, :1], present.rate / present.rate[:, :1])


def test_resume_needs_the_same_outcomes():
    model = TopicRegressor(3, n_iter=40, random_state=0, callbacks=lambda estimator, step: step >= 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(DATA.counts, Y)
    model.set_params(callbacks=None)
    with pytest.raises(ValueError, match="differs from them"):
        model.resume(DATA.counts, Y + 1)
    whole = TopicRegressor(3, n_iter=40, random_state=0).fit(DATA.counts, Y)
    np.testing.assert_array_equal(model.resume(DATA.counts, Y).samples_["coef"], whole.samples_["coef"])


# -------------------------------------------------------------------------------------------------------- scikit-learn


def test_pipelines_grids_and_cross_validation():
    pipeline = make_pipeline(FunctionTransformer(), TopicRegressor(3, n_iter=60, random_state=0))
    assert cross_val_score(pipeline, DATA.counts, Y, cv=2).shape == (2,)
    grid = GridSearchCV(TopicClassifier(3, n_iter=60, random_state=0), {"dispersion": ["topic", "shared"]}, cv=2)
    assert grid.fit(DATA.counts, LABELS).best_estimator_.predict(DATA.counts).shape == (400,)


def test_several_chains_agree_and_topics_keep_their_coefficients():
    model = TopicRegressor(3, n_iter=600, n_chains=2, random_state=0).fit(DATA.counts, Y)
    assert model.chains_agree_.all()
    means = model.samples_["coef"].mean(axis=1)
    np.testing.assert_allclose(np.diff(means[0]), np.diff(means[1]), atol=0.5)


def test_weights_of_words_and_seeds_are_accepted():
    model = TopicRegressor(3, n_iter=60, random_state=0, seed_words={"A": ["w1"]})
    model.fit(DATA.counts * 0.5, Y, feature_names=[f"w{j}" for j in range(60)])
    assert model.topic_names_[0] == "A" and np.isfinite(model.coef_).all()
