"""`StructuralTopicModel` with keywords: what it finds, what it answers, and what it refuses."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import StructuralTopicModel
from sk_sgmcmc.datasets import CountBlocks
from sk_sgmcmc.inspection import KeywordDisplay, to_arviz
from sk_sgmcmc.topic._structural.keywords import KeywordPlaces
from tests.common.compare import PressCtrlC, assert_same_draws, interrupted

N_WORDS, N_TOPICS = 30, 4
NAMES = np.array([f"w{j:02d}" for j in range(N_WORDS)])
KEYWORDS = {"Second": ["w08", "w09"], "First": ["w00", "w01"]}
SMALL = {"n_components": N_TOPICS, "formula": "~ 1", "keywords": KEYWORDS, "n_iter": 80, "random_state": 0}


def planted(n_docs, seed, length=40):
    """Counts, metadata, and topics, each of which has 7 words of its own and all others seldom."""
    rng = np.random.default_rng(seed)
    phi = np.full((N_TOPICS, N_WORDS), 0.01)
    for k in range(N_TOPICS):
        phi[k, 7 * k : 7 * k + 7] += np.random.default_rng(k).dirichlet(np.full(7, 2.0))
    phi /= phi.sum(axis=1, keepdims=True)
    theta = rng.dirichlet(np.full(N_TOPICS, 0.3), n_docs)
    X = np.array([rng.multinomial(length, row) for row in theta @ phi])
    return sparse.csr_array(X), {"side": rng.choice(["left", "right"], n_docs), "age": rng.normal(size=n_docs)}, phi


@pytest.fixture(scope="module")
def data():
    return planted(300, 0)


@pytest.fixture(scope="module")
def fitted(data):
    return StructuralTopicModel(**SMALL).fit(data[0], feature_names=NAMES)


def few(metadata, rows):
    return {name: values[rows] for name, values in metadata.items()}


def test_topics_are_what_their_keywords_name(data, fitted):
    X, _, phi = data
    assert fitted.topic_names_[:2].tolist() == ["Second", "First"]
    assert np.abs(fitted.components_[0] - phi[1]).sum() < 0.25
    assert np.abs(fitted.components_[1] - phi[0]).sum() < 0.25
    np.testing.assert_allclose(fitted.components_.sum(axis=1), 1.0)
    np.testing.assert_allclose(fitted.samples_["components"].sum(axis=-1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(fitted.components_, fitted.samples_["components"][0].mean(axis=0), atol=0.01)
    np.testing.assert_array_equal(fitted.word_counts_, X.sum(axis=0))
    np.testing.assert_allclose(fitted.transform(X[:9]).sum(axis=1), 1.0)
    assert fitted.transform_draws(X[:9]).shape == (40, 9, N_TOPICS)


def test_rates_and_their_table(data, fitted):
    X = data[0]
    assert fitted.samples_["keyword_rate"].shape == (1, 40, 2)
    np.testing.assert_allclose(fitted.keyword_rate_, fitted.samples_["keyword_rate"][0].mean(axis=0))
    table = fitted.keyword_table()
    assert list(table) == ["topic", "name", "rate", "low", "high", "n_keywords", "in_corpus"]
    rate, low, high = (np.asarray(table[name]) for name in ("rate", "low", "high"))
    assert np.all(low < rate) and np.all(rate < high) and np.all(low > 0.01)
    share = [X[:, [8, 9]].sum(), X[:, [0, 1]].sum()]
    np.testing.assert_allclose(table["in_corpus"], np.array(share) / X.sum())
    # Keywords have at least the probability in a topic that it draws them with.
    in_topic = [fitted.components_[0, [8, 9]].sum(), fitted.components_[1, [0, 1]].sum()]
    assert np.all(in_topic >= rate - 0.01)


def test_it_goes_with_content_prevalence_and_dispersion(data):
    X, metadata, phi = data
    params = {**SMALL, "content": "side", "formula": "~ age", "dispersion": "topic"}
    model = StructuralTopicModel(**params).fit(X, metadata=metadata, feature_names=NAMES)
    assert np.abs(model.components_[0] - phi[1]).sum() < 0.3
    assert model.content_components_.shape == (2, N_TOPICS, N_WORDS)
    assert model.content_draws("left").shape == (1, 40, N_TOPICS, N_WORDS)
    assert len(model.effects("age")["topic"]) == N_TOPICS
    assert len(model.word_contrast("left", "right", n=1)["topic"]) >= N_TOPICS
    np.testing.assert_allclose(model.transform(X[:5], metadata=few(metadata, slice(5))).sum(axis=1), 1.0)
    assert model.perplexity(X, metadata=metadata) < N_WORDS


def test_fits_pickle_resume_and_run_in_chains(data, fitted):
    X, metadata, _ = data
    again = pickle.loads(pickle.dumps(fitted))
    assert_same_draws(again, fitted)
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    for params in (SMALL, {**SMALL, "content": "side"}):
        given = {"metadata": metadata, "feature_names": NAMES}
        whole = StructuralTopicModel(**params).fit(X, **given)
        for step in (10, 60):
            stopped = StructuralTopicModel(**params, callbacks=PressCtrlC(step))
            with interrupted():
                stopped.fit(X, **given)
            resumed = pickle.loads(pickle.dumps(stopped)).resume(X, metadata=metadata)
            assert_same_draws(resumed, whole)
            np.testing.assert_array_equal(resumed.components_, whole.components_)
    two = StructuralTopicModel(**SMALL, n_chains=2).fit(X, feature_names=NAMES)
    assert two.samples_["keyword_rate"].shape == (2, 40, 2)
    assert np.all(two.chains_agree_[:, :2])
    threads = StructuralTopicModel(**SMALL, n_chains=2, n_jobs=2).fit(X, feature_names=NAMES)
    assert_same_draws(two, threads)


def test_updates_append_documents_and_words(data):
    pd = pytest.importorskip("pandas")
    X, _, phi = data
    frame = pd.DataFrame(X.toarray(), columns=NAMES)
    model = StructuralTopicModel(**SMALL, new_features="extend").fit(frame.iloc[:200, :28])
    model.partial_fit(frame.iloc[200:])
    assert model.n_samples_seen_ == 300 and model.components_.shape == (N_TOPICS, N_WORDS)
    assert np.abs(model.components_[0] - phi[1]).sum() < 0.3
    assert model.samples_["keyword_rate"].shape[2] == 2
    assert np.isfinite(model.perplexity(frame))


def test_fractional_counts(data):
    half = StructuralTopicModel(**{**SMALL, "n_iter": 30}).fit(data[0] * 0.75, feature_names=NAMES)
    np.testing.assert_allclose(half._chains[0].collapsed.total.sum(), 0.75 * data[0].sum())
    np.testing.assert_allclose(half._chains[0].collapsed.counts.sum(), 0.75 * data[0].sum())


@pytest.mark.parametrize("more", [{}, {"content": "side", "formula": "~ age"}], ids=["alone", "with content"])
def test_blocks_have_the_topics_of_a_fit_in_memory(more, data):
    X, metadata, phi = data
    params, given = {**SMALL, **more}, {"metadata": metadata, "feature_names": NAMES}
    blocks = CountBlocks([X], shard_tokens=2000)
    model = StructuralTopicModel(**params).fit(blocks, **given)
    whole = StructuralTopicModel(**params).fit(X, **given)
    assert model._chains[0].data.shards_wanted == 6
    assert np.abs(model.components_[0] - phi[1]).sum() < 0.3 and np.abs(model.components_[1] - phi[0]).sum() < 0.3
    np.testing.assert_allclose(model.components_[:2], whole.components_[:2], atol=0.02)
    np.testing.assert_allclose(model.keyword_rate_, whole.keyword_rate_, atol=0.05)
    np.testing.assert_array_equal(model.word_counts_, X.sum(axis=0))
    assert model.score(X, metadata=metadata) == pytest.approx(whole.score(X, metadata=metadata), abs=0.01)
    assert np.isfinite(np.asarray(model.keyword_table()["low"])).all()
    # Other blocks, threads and an interruption change nothing.
    others = CountBlocks([X[:7], X[7:7], X[7:]], shard_tokens=2000)
    assert_same_draws(StructuralTopicModel(**params, n_jobs=2).fit(others, **given), model)
    for step in (10, 60):
        stopped = StructuralTopicModel(**params, callbacks=PressCtrlC(step))
        with interrupted():
            stopped.fit(blocks, **given)
        resumed = pickle.loads(pickle.dumps(stopped)).resume(others, metadata=metadata)
        assert_same_draws(resumed, model)
        np.testing.assert_array_equal(resumed.components_, model.components_)
    with pytest.raises(ValueError, match="Call fit with all documents"):
        model.partial_fit(X[:50], metadata=few(metadata, slice(50)))


def test_fractional_counts_in_blocks(data):
    blocks = CountBlocks([data[0] * 0.75], shard_tokens=2000)
    half = StructuralTopicModel(**{**SMALL, "n_iter": 30}).fit(blocks, feature_names=NAMES)
    np.testing.assert_allclose(half._chains[0].collapsed.total.sum(), 0.75 * data[0].sum())
    assert np.all(half.keyword_rate_ > 0.1)


def test_columns_hold_the_tokens_of_topics():
    places = KeywordPlaces(np.array([0, 0, 1]), np.array([0, 2, 2]))
    counts = np.random.default_rng(0).integers(1, 9, size=(6, 3)).astype(float)  # of three words in two groups
    columns = places.in_columns(counts, np.array([[1.0, 0.0], [99.0, 1.0], [0.0, 0.0]]))
    assert columns.shape == (6, 5) and columns.min() == 0
    np.testing.assert_array_equal(columns[:, :3] + np.pad(columns[:, 3:], ((0, 0), (0, 1))), counts)
    np.testing.assert_array_equal(columns[:, 3], [1, 0, 0, 0, counts[4, 0], 1])


def test_a_topic_that_abandons_its_keywords_is_named(data):
    X = data[0].toarray()
    X[:, 29] = 0
    X[:3, 29] = 1  # three tokens
    with pytest.warns(ConvergenceWarning, match="hardly use their keywords.*Rare 0.00"):
        model = StructuralTopicModel(**{**SMALL, "n_iter": 600, "keywords": {"Rare": ["w29"]}})
        model.fit(X, feature_names=NAMES)
    table = model.checks_
    assert {"keywords_abandoned", "seeds_lost"} <= set(table["check"])


def test_keywords_that_do_not_occur_with_their_topic_are_named(data):
    keywords = {"Mixed": ["w08", "w09", "w01"], "Right": ["w14", "w15"]}
    with pytest.warns(ConvergenceWarning, match="seldom occur with the other words.* of Mixed 0.9.*1 at least"):
        StructuralTopicModel(**{**SMALL, "keywords": keywords}).fit(data[0], feature_names=NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = StructuralTopicModel(**{**SMALL, "n_iter": 600}).fit(data[0], feature_names=NAMES)
    assert "keywords_apart" in set(model.checks_["check"])


def test_the_company_of_keywords_is_a_ratio_of_shares(fitted, data):
    sweeps, X = fitted._chains[0].collapsed, data[0].toarray()
    doc, z, w = np.repeat(np.arange(len(X)), X.sum(axis=1)), sweeps.z, sweeps.words
    other, has = ~np.isin(w, [8, 9]), X[doc, 8] > 0
    share = np.mean(z[other & has] == 0) / np.mean(z[other] == 0)
    assert sweeps.company()[0] == pytest.approx(share)


def test_what_does_not_fit_is_refused(data, fitted):
    X = data[0]

    def fit(keywords, n_components=N_TOPICS, **params):
        model = StructuralTopicModel(n_components, formula="~ 1", keywords=keywords, n_iter=6, random_state=0, **params)
        return model.fit(X, feature_names=NAMES)

    with pytest.raises(ValueError, match="'w99'"):
        fit({"A": ["w99"]})
    for wrong in ({"A": "w01"}, {"A": []}, {"A": [3]}, {3: ["w01"]}, {"w01": 0}):
        with pytest.raises(ValueError, match="names of topics to lists of words"):
            fit(wrong)
    with pytest.raises(ValueError, match="each word once"):
        fit({"A": ["w01", "w01"]})
    with pytest.raises(ValueError, match="n_components=1"):
        fit(KEYWORDS, 1)
    with pytest.raises(ValueError, match="together"):
        fit(KEYWORDS, seed_words={"w03": 3})
    with pytest.raises(ValueError, match="`keywords` requires collapsed Gibbs"):
        fit(KEYWORDS, sampler="scir")
    with pytest.raises(ValueError, match="merge_topics is not available with keywords="):
        fitted.merge_topics([0, 1])
    with pytest.raises(ValueError, match="fit with keywords="):
        fit(None).keyword_table()
    other = pickle.loads(pickle.dumps(fitted)).set_params(keywords={"First": ["w00"]})
    with pytest.raises(ValueError, match="`keywords` must stay"):
        other.partial_fit(X[:5])


def test_displays_and_export_take_it(fitted):
    pytest.importorskip("matplotlib")
    display = KeywordDisplay.from_estimator(fitted)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["Second", "First"]
    np.testing.assert_allclose(display.rate, fitted.keyword_rate_)
    with pytest.raises(TypeError, match="StructuralTopicModel; got a dict"):
        KeywordDisplay.from_estimator({})
    pytest.importorskip("arviz")
    assert to_arviz(fitted)["posterior"]["keyword_rate"].dims[2:] == ("keyword_topic",)
