"""`StructuralTopicModel`: words by group, what it answers, and what it refuses."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from sk_sgmcmc import BayesianLDA, DMRTopicModel, StructuralTopicModel
from sk_sgmcmc.inspection import WordContrastDisplay, to_pyldavis
from sk_sgmcmc.metrics import align_topics
from sk_sgmcmc.model_selection import search_n_components
from tests.common.compare import PressCtrlC, assert_same_draws, interrupted

N_WORDS, N_TOPICS = 30, 3
SMALL = {"n_components": N_TOPICS, "formula": "~ 1", "content": "side", "n_iter": 80, "random_state": 0}
SIDES = np.array(["left", "right", "green"], dtype=object)


def planted(n_docs, seed, length=40, sides=2):
    """Counts, metadata, and topics by group; in each topic, one group has two words that others seldom use."""
    rng = np.random.default_rng(seed)
    base = np.random.default_rng(7).dirichlet(np.full(N_WORDS, 0.3), N_TOPICS) + 0.003
    phi = np.tile(base, (sides, 1, 1))
    for g in range(sides):
        for k in range(N_TOPICS):
            phi[g, k, (10 * k + 2 * g, 10 * k + 2 * g + 1)] += 0.2
    phi /= phi.sum(axis=2, keepdims=True)
    side = rng.integers(sides, size=n_docs)
    theta = rng.dirichlet(np.full(N_TOPICS, 0.3), n_docs)
    X = np.array([rng.multinomial(length, t @ phi[g]) for t, g in zip(theta, side, strict=True)])
    return sparse.csr_array(X), {"side": SIDES[side], "age": rng.normal(size=n_docs)}, phi


@pytest.fixture(scope="module")
def data():
    return planted(300, 0)


@pytest.fixture(scope="module")
def fitted(data):
    X, metadata, _ = data
    return StructuralTopicModel(**SMALL).fit(X, metadata=metadata)


def few(metadata, rows):
    return {name: values[rows] for name, values in metadata.items()}


def error(model, phi):
    """Mean absolute error of the log ratios of frequent words between the first two groups, topics matched."""
    order = align_topics(phi.mean(axis=0), model.components_)
    found = model.content_components_[:2, order]
    frequent = phi[:2].min(axis=0) > 0.004
    return np.abs(np.log(found[0] / found[1]) - np.log(phi[0] / phi[1]))[frequent].mean()


def test_topics_of_groups_are_found(data, fitted):
    X, _, phi = data
    assert list(fitted.groups_) == ["left", "right"]
    assert fitted.content_components_.shape == (2, N_TOPICS, N_WORDS)
    assert fitted.samples_["components"].shape == (1, 40, N_TOPICS, N_WORDS)
    for values in (fitted.components_, fitted.content_components_, fitted.samples_["components"]):
        np.testing.assert_allclose(values.sum(axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(fitted.components_, fitted.samples_["components"][0].mean(axis=0), atol=0.02)
    np.testing.assert_array_equal(fitted.word_counts_, X.sum(axis=0))
    assert fitted.n_features_in_ == N_WORDS and error(fitted, phi) < 0.5


def test_predictions_use_the_words_of_the_group(data, fitted):
    X, metadata, _ = data
    theta = fitted.transform(X)
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    np.testing.assert_array_equal(theta[:5], fitted.transform(X[:5], metadata=few(metadata, slice(5))))
    new, about, _ = planted(300, 1)
    other = {**about, "side": np.where(about["side"] == "left", "right", "left")}
    assert fitted.score(new, metadata=about) > fitted.score(new, metadata=other) + 0.1
    shared = DMRTopicModel(N_TOPICS, formula="~ age", n_iter=80, random_state=0).fit(X, metadata=metadata)
    assert fitted.perplexity(new, metadata=about) < 0.97 * shared.perplexity(new, metadata=about)
    draws = fitted.transform_draws(X[:20], metadata=few(metadata, slice(20)))
    assert draws.shape == (40, 20, N_TOPICS) and np.abs(draws.mean(axis=0) - theta[:20]).mean() < 0.06


def test_tables_of_words(data, fitted):
    phi = data[2]
    order = align_topics(phi.mean(axis=0), fitted.components_)
    table = fitted.word_contrast("left", "right", n=2)
    assert list(table) == ["topic", "name", "word", "log_ratio", "low", "high", "a", "b"]
    for true, k in enumerate(order):
        own = np.asarray(table["topic"]) == k
        assert sorted(np.asarray(table["word"])[own].tolist()) == [10 * true + i for i in range(4)]
        ratio = np.asarray(table["log_ratio"])[own]
        assert np.all(ratio[:2] > 0.5) and np.all(ratio[2:] < -0.5)
        low, high = np.asarray(table["low"])[own], np.asarray(table["high"])[own]
        assert np.all(low < ratio) and np.all(ratio < high)
    topic, word = np.asarray(table["topic"]), np.asarray(table["word"], dtype=int)
    for g, name in enumerate("ab"):
        np.testing.assert_array_equal(table[name], fitted.content_components_[g, topic, word])
    back = fitted.word_contrast("right", "left", topics=[0], n=2)
    first = np.asarray(table["topic"]) == 0
    np.testing.assert_allclose(np.sort(back["log_ratio"]), np.sort(-np.asarray(table["log_ratio"])[first]), rtol=1e-6)
    draws = fitted.content_draws("right")
    assert draws.shape == (1, 40, N_TOPICS, N_WORDS)
    np.testing.assert_allclose(draws[0].mean(axis=0), fitted.content_components_[1], atol=0.03)
    words = fitted.top_words(3, group="left")
    k = int(np.asarray(words["topic"])[0])
    np.testing.assert_allclose(words["probability"][0], fitted.content_components_[0, k].max())
    assert np.all(np.asarray(words["low"]) <= np.asarray(words["high"]))
    assert len(fitted.top_words(3, format="wide", group="right")) == 3
    assert len(fitted.top_words(3)["topic"]) == 9
    info = fitted.topic_info(data[0], metadata=data[1])
    assert np.isfinite(np.asarray(info["coherence"])).all()


def test_without_content_it_is_dmr(data):
    X, metadata, _ = data
    params = {"n_components": N_TOPICS, "formula": "~ age", "n_iter": 20, "random_state": 0}
    assert_same_draws(
        DMRTopicModel(**params).fit(X, metadata=metadata), StructuralTopicModel(**params).fit(X, metadata=metadata)
    )


def test_prevalence_and_dispersion_go_with_content(data):
    X, metadata, phi = data
    params = {**SMALL, "formula": "~ side + age", "dispersion": "topic"}
    model = StructuralTopicModel(**params).fit(X, metadata=metadata)
    assert error(model, phi) < 0.5 and model.coef_.shape == (N_TOPICS, 3)
    assert len(model.effects("side")["topic"]) == N_TOPICS
    assert np.isfinite(
        np.asarray(model.effects("age", X=X[:50], metadata=few(metadata, slice(50)))["difference"])
    ).all()
    assert len(model.permutation_test(X, "side", metadata=metadata, refit=False, n_permutations=9)["p_value"]) == 3


def test_a_group_with_few_documents_has_the_words_of_all():
    X, metadata, _ = planted(303, 2, sides=3)
    rare = np.flatnonzero(metadata["side"] == "green")[3:]
    X, metadata = X[np.delete(np.arange(303), rare)], few(metadata, np.delete(np.arange(303), rare))
    model = StructuralTopicModel(**SMALL).fit(X, metadata=metadata)
    assert list(model.groups_) == ["green", "left", "right"]
    apart = np.abs(model.content_components_ - model.components_).sum(axis=2)
    assert np.all(apart[0] < 1.0)
    assert np.isfinite(model.perplexity(X, metadata=metadata))


def test_levels_that_are_declared_are_groups(data):
    pd = pytest.importorskip("pandas")
    X, metadata, _ = data
    frame = pd.DataFrame({"side": pd.Categorical(metadata["side"], categories=["right", "none", "left"])})
    model = StructuralTopicModel(**{**SMALL, "n_iter": 30}).fit(X, metadata=frame)
    assert list(model.groups_) == ["right", "none", "left"]
    assert np.isfinite(model.content_components_).all()
    assert np.isfinite(model.transform(X[:2], metadata={"side": ["none", "left"]})).all()


def test_fits_pickle_resume_and_run_in_chains(data, fitted):
    X, metadata, _ = data
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(copied.samples_["components"], fitted.samples_["components"])
    for step in (20, 60):
        stopped = clone(fitted).set_params(callbacks=PressCtrlC(step))
        with interrupted():
            stopped.fit(X, metadata=metadata)
        again = pickle.loads(pickle.dumps(stopped))
        resumed = again.resume(X, metadata=metadata)
        assert_same_draws(fitted, resumed)
        np.testing.assert_array_equal(resumed.content_components_, fitted.content_components_)
    two = StructuralTopicModel(**SMALL, n_chains=2).fit(X, metadata=metadata)
    threads = StructuralTopicModel(**SMALL, n_chains=2, n_jobs=2).fit(X, metadata=metadata)
    assert_same_draws(two, threads)
    assert two.samples_["components"].shape[0] == 2 and two.chains_agree_.all()
    assert len(two.word_contrast("left", "right", n=2)["topic"]) == 12


def test_updates_append_documents(data):
    X, metadata, phi = data
    model = StructuralTopicModel(**SMALL).fit(X[:200], metadata=few(metadata, slice(200)))
    model.partial_fit(X[200:], metadata=few(metadata, slice(200, 300)))
    assert model.n_samples_seen_ == 300 and error(model, phi) < 0.5
    np.testing.assert_array_equal(model.word_counts_, X.sum(axis=0))
    chain = model._chains[0]
    np.testing.assert_array_equal(chain.collapsed.counts.sum(), X.sum())
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.content_components_, model.content_components_)
    model.forget_documents()
    before = model.components_
    with pytest.raises(ValueError, match="content"):
        model.partial_fit(X[:50], metadata=few(metadata, slice(50)))
    assert model.components_ is before


def test_new_words_are_added(data):
    pd = pytest.importorskip("pandas")
    X, metadata, _ = data
    names = [f"w{i}" for i in range(N_WORDS)]
    frame = pd.DataFrame(X.toarray(), columns=names)
    model = StructuralTopicModel(**SMALL, new_features="extend").fit(frame.iloc[:, :28], metadata=metadata)
    more, about, _ = planted(100, 3)
    model.partial_fit(pd.DataFrame(more.toarray(), columns=names), metadata=about)
    assert model.components_.shape == (N_TOPICS, N_WORDS) and model.content_components_.shape[2] == N_WORDS
    assert "w29" in set(model.feature_names_in_)
    np.testing.assert_allclose(model.content_components_.sum(axis=2), 1.0)


def test_seed_words_and_fractional_counts(data):
    X, metadata, _ = data
    model = StructuralTopicModel(**{**SMALL, "n_iter": 30}, seed_words={20: 0}).fit(X, metadata=metadata)
    assert model.components_[:, 20].argmax() == 0
    half = StructuralTopicModel(**{**SMALL, "n_iter": 30}).fit(X * 0.75, metadata=metadata)
    np.testing.assert_allclose(half._chains[0].collapsed.counts.sum(), 0.75 * X.sum())


def test_what_does_not_fit_is_refused(data, fitted):
    X, metadata, _ = data
    make = StructuralTopicModel
    with pytest.raises(ValueError, match="'side' must be a column of metadata"):
        make(**SMALL).fit(X, metadata={"age": metadata["age"]})
    with pytest.raises(ValueError, match="content='side'"):
        make(2, content="side").fit(X)
    with pytest.raises(ValueError, match="no missing values"):
        make(**SMALL).fit(X[:2], metadata={"side": ["left", None]})
    with pytest.raises(ValueError, match="collapsed Gibbs"):
        make(**SMALL, sampler="scir").fit(X, metadata=metadata)
    with pytest.raises(ValueError, match="side=blue"):
        fitted.transform(X[:1], metadata={"side": ["blue"]})
    with pytest.raises(ValueError, match="other than those of fit"):
        fitted.transform(X[:7])
    with pytest.raises(ValueError, match="Groups are 'left', 'right'; got 'blue'"):
        fitted.word_contrast("left", "blue")
    with pytest.raises(ValueError, match="twice"):
        fitted.word_contrast("left", "left")
    with pytest.raises(ValueError, match="topics"):
        fitted.word_contrast("left", "right", topics=[3])
    with pytest.raises(ValueError, match="merge_topics"):
        fitted.merge_topics([0, 1])
    plain = make(2, formula="~ age", n_iter=6, random_state=0).fit(X, metadata=metadata)
    with pytest.raises(ValueError, match="fit with content="):
        plain.word_contrast("left", "right")
    assert isinstance(plain.merge_topics([0, 1]), BayesianLDA)


def test_displays_export_and_search_take_it(data, fitted):
    pytest.importorskip("matplotlib")
    X, metadata, _ = data
    display = WordContrastDisplay.from_estimator(fitted, "left", "right", topics=[1, 0], n_words=2)
    assert [len(words) for words in display.words] == [4, 4] and len(display.axes_) == 2
    assert display.ax_ is display.axes_[0]
    table = fitted.word_contrast("left", "right", topics=[1], n=2)
    np.testing.assert_array_equal(display.log_ratio[0], table["log_ratio"])
    with pytest.raises(TypeError, match="StructuralTopicModel; got a BayesianLDA"):
        WordContrastDisplay.from_estimator(BayesianLDA(2, n_iter=6).fit(X), "left", "right")
    found = to_pyldavis(fitted, X, metadata=metadata)
    assert sum(found["doc_lengths"]) == X.sum() == sum(found["term_frequency"])
    assert len(fitted.topics_over_time(X, np.arange(300) // 150, metadata=metadata)["share"]) == 2 * N_TOPICS
    searched = search_n_components(clone(fitted).set_params(n_iter=20), X, [2, 3], metadata=metadata)
    assert np.isfinite(np.asarray(searched["score"])).all()
