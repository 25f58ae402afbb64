"""`StructuralTopicModel`: words by group, what it answers, and what it refuses."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from sk_sgmcmc import BayesianLDA, DMRTopicModel, StructuralTopicModel
from sk_sgmcmc.datasets import CountBlocks
from sk_sgmcmc.inspection import WordContrastDisplay, to_pyldavis
from sk_sgmcmc.metrics import align_topics
from sk_sgmcmc.model_selection import search_n_components
from sk_sgmcmc.topic._counts import corpus as corpora
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


# ----------------------------------------------------------------------------------------------------------- in blocks


@pytest.fixture(scope="module")
def in_blocks(data):
    return StructuralTopicModel(**SMALL).fit(CountBlocks([data[0]], shard_tokens=2000), metadata=data[1])


def test_blocks_have_the_topics_of_a_fit_in_memory(data, fitted, in_blocks):
    X, _, phi = data
    assert in_blocks._chains[0].data.shards_wanted == 6 and error(in_blocks, phi) < 0.3
    np.testing.assert_array_equal(in_blocks.word_counts_, X.sum(axis=0))
    order = align_topics(in_blocks.components_, fitted.components_)
    np.testing.assert_allclose(in_blocks.content_components_, fitted.content_components_[:, order], atol=0.02)
    np.testing.assert_allclose(in_blocks.content_components_.sum(axis=2), 1.0)
    assert in_blocks.score(X) == pytest.approx(fitted.score(X), abs=0.01)
    assert in_blocks.word_contrast("left", "right", n=2)["word"].size == 12
    assert in_blocks.content_draws("right").shape == (1, 40, N_TOPICS, N_WORDS)


def test_blocks_of_any_size_files_and_threads_have_the_same_draws(data, in_blocks, tmp_path):
    X, metadata, _ = data
    ends = [0, 7, 7, 100, 300]
    parts = [X[start:stop] for start, stop in pairwise(ends)]
    tables = [few(metadata, slice(start, stop)) for start, stop in pairwise(ends)]
    paths = [tmp_path / f"{i}.npz" for i in range(4)]
    for path, part in zip(paths, parts, strict=True):
        sparse.save_npz(path, part)
    mapped = sparse.csr_array(X.shape)
    for name in ("data", "indices", "indptr"):
        values = getattr(X, name)
        array = np.memmap(tmp_path / name, dtype=values.dtype, mode="w+", shape=values.shape)
        array[:] = values
        setattr(mapped, name, array)
    for n_jobs, (source, about) in enumerate([(parts, tables), (paths, metadata), (mapped, lambda: iter([metadata]))]):
        model = StructuralTopicModel(**SMALL, n_jobs=n_jobs + 1).fit(
            CountBlocks(source, shard_tokens=2000), metadata=about
        )
        assert_same_draws(model, in_blocks)
        np.testing.assert_array_equal(model.content_components_, in_blocks.content_components_)


def test_answers_about_blocks_are_those_in_memory(data, in_blocks):
    X, metadata, _ = data
    blocks, tables = CountBlocks([X[:99], X[99:]]), [few(metadata, slice(99)), few(metadata, slice(99, 300))]
    for about in (tables, metadata):
        np.testing.assert_array_equal(in_blocks.transform(blocks, metadata=about), in_blocks.transform(X))
        assert in_blocks.score(blocks, metadata=about) == in_blocks.score(X)
        assert in_blocks.perplexity(blocks, metadata=about) == in_blocks.perplexity(X)
    np.testing.assert_array_equal(in_blocks.transform(blocks), in_blocks.transform(X))
    with pytest.raises(ValueError, match="other than those of fit"):
        in_blocks.transform(CountBlocks([X[:99]]))
    with pytest.raises(ValueError, match="metadata has 99 rows and X has 300"):
        in_blocks.transform(blocks, metadata=tables[0])


def test_fits_in_blocks_pickle_and_resume(data, in_blocks, monkeypatch):
    X, metadata, _ = data
    copied = pickle.loads(pickle.dumps(in_blocks))
    np.testing.assert_array_equal(copied.transform(X), in_blocks.transform(X))
    assert_same_draws(copied, in_blocks)
    monkeypatch.setattr(corpora, "_SHARDS_PER_CALL", 2)
    for step in (5, 30, 60):
        stopped = StructuralTopicModel(**SMALL, callbacks=PressCtrlC(step))
        with interrupted():
            stopped.fit(CountBlocks([X], shard_tokens=2000), metadata=metadata)
        other = CountBlocks([X[:9], X[9:]], shard_tokens=2000)
        again = pickle.loads(pickle.dumps(stopped)).set_params(callbacks=None)
        with pytest.raises(ValueError, match="resume continues with the data"):
            again.resume(other, metadata={"side": metadata["side"][::-1]})
        chain = again._chains[0]
        chain.bind(again._bound_data(other, metadata=metadata))
        chain._advance(80)
        assert chain.round.next_shard == 2
        resumed = pickle.loads(pickle.dumps(again)).resume(other, metadata=metadata)
        assert_same_draws(resumed, in_blocks)
        np.testing.assert_array_equal(resumed.content_components_, in_blocks.content_components_)


def test_blocks_with_prevalence_chains_weights_and_empty_documents(data):
    X, metadata, phi = data
    nothing = sparse.csr_array((2, N_WORDS))
    about = {name: np.append(values, values[:2]) for name, values in metadata.items()}
    blocks = CountBlocks([X * 0.75, nothing], shard_tokens=2000)
    params = {**SMALL, "formula": "~ side + age", "n_chains": 2}
    model = StructuralTopicModel(**params).fit(blocks, metadata=about)
    np.testing.assert_allclose(model._chains[0].collapsed.counts.sum(), 0.75 * X.sum())
    assert error(model, phi) < 0.5 and model.chains_agree_.all()
    assert len(model.effects("side")["topic"]) == N_TOPICS
    seeded = StructuralTopicModel(**{**SMALL, "n_iter": 30}, seed_words={20: 0})
    assert seeded.fit(CountBlocks([X], shard_tokens=2000), metadata=metadata).components_[:, 20].argmax() == 0


def test_updates_of_blocks_append_them_or_are_refused(data, in_blocks):
    X, metadata, _ = data
    blocks = CountBlocks([X[:200], X[200:]])
    one, other = StructuralTopicModel(**SMALL), StructuralTopicModel(**SMALL)
    one.partial_fit(blocks, metadata=metadata)
    for part in (slice(200), slice(200, 300)):
        other.partial_fit(X[part], metadata=few(metadata, part))
    assert_same_draws(one, other)
    before = pickle.dumps(in_blocks)
    for source in (X[:50], CountBlocks([X[:50]])):
        with pytest.raises(ValueError, match=r"fit does not keep documents in blocks.*Call fit with all documents"):
            in_blocks.partial_fit(source, metadata=few(metadata, slice(50)))
    assert pickle.dumps(in_blocks) == before


# ------------------------------------------------------------------------------------------------------------ refusals


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
    for a, b in (("Conservative", "Liberal"), ("Constitutional Union Party", "Independent Democrats")):
        one = WordContrastDisplay.from_estimator(fitted, "left", "right", topics=[1], n_words=2)
        one.a, one.b = a, b
        one.plot()
        one.figure_.canvas.draw()
        label, frame = one.figure_._supxlabel.get_window_extent(), one.figure_.bbox
        assert frame.x0 <= label.x0 and label.x1 <= frame.x1
    table = fitted.word_contrast("left", "right", topics=[1], n=2)
    np.testing.assert_array_equal(display.log_ratio[0], table["log_ratio"])
    with pytest.raises(TypeError, match="StructuralTopicModel; got a BayesianLDA"):
        WordContrastDisplay.from_estimator(BayesianLDA(2, n_iter=6).fit(X), "left", "right")
    found = to_pyldavis(fitted, X, metadata=metadata)
    assert sum(found["doc_lengths"]) == X.sum() == sum(found["term_frequency"])
    assert len(fitted.topics_over_time(X, np.arange(300) // 150, metadata=metadata)["share"]) == 2 * N_TOPICS
    searched = search_n_components(clone(fitted).set_params(n_iter=20), X, [2, 3], metadata=metadata)
    assert np.isfinite(np.asarray(searched["score"])).all()
