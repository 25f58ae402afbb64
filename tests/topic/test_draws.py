"""Kept draws of topics: conditional means, draws on demand, and the dict that holds them."""

import copy
import pickle

import joblib
import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA, DMRTopicModel, GammaProcessTopicModel
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.metrics import mcse
from sk_sgmcmc.topic._counts import record as kept_record
from sk_sgmcmc.topic._counts.record import Counts, TopicRecord
from sk_sgmcmc.topic._results.topics import largest

K, V = 4, 60
OF_WORDS = np.linspace(0.1, 0.9, 30)[:, None]


@pytest.fixture(scope="module")
def X():
    return make_lda(200, V, K, document_length=60, doc_topic_prior=0.2, random_state=3).counts


def fitted(X, **params):
    return BayesianLDA(K, **{"n_iter": 40, "n_chains": 2, "random_state": 0, **params}).fit(X)


# ------------------------------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.float64])
def test_counts_come_back_as_they_were(share, dtype):
    rng = np.random.default_rng(0)
    counts = (rng.integers(1, 5000, size=(50, 7)) * (rng.random((50, 7)) < share)).astype(dtype)
    if dtype is np.float64:
        counts *= 0.37
    kept, words = Counts(counts), rng.permutation(50)[:30]
    np.testing.assert_array_equal(kept.by_topic(), counts.T)
    np.testing.assert_array_equal(kept.of_words(words), counts[words])
    np.testing.assert_allclose(kept.mass, counts.sum(axis=0))


@pytest.mark.parametrize("largest", [127, 128, 255, 256, 32768])
def test_counts_at_the_bound_of_a_type_come_back_as_they_were(largest):
    counts = np.array([[largest, 1], [largest - 1, 3]], dtype=np.int32)
    np.testing.assert_array_equal(Counts(counts).by_topic(), counts.T)
    np.testing.assert_array_equal(Counts(counts).of_words(np.arange(2)), counts)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 1.0])
def test_counts_with_further_tokens_are_counts_of_all(density, weighted):
    rng = np.random.default_rng(0)
    counts = rng.poisson(3, (40, 7)) * (rng.random((40, 7)) < density) * (1.5 if weighted else 1)
    words, topics = rng.integers(0, 40, 200), rng.integers(0, 7, 200).astype(np.uint16)
    weights = rng.random(200) if weighted else np.empty(0)
    before, record = Counts(counts), TopicRecord(0)
    assert before.mass.sum() == counts.sum()
    record.counts, record.orders, record.steps = [before], [np.arange(7)], [1]
    record.take_in(words, topics, weights)
    after = record.counts[0]
    expected = counts.astype(float)
    np.add.at(expected, (words, topics), weights if weighted else 1.0)
    np.testing.assert_allclose(after.by_topic().T, expected, atol=1e-12)
    np.testing.assert_allclose(after.mass, expected.sum(axis=0))
    np.testing.assert_allclose(after.of_words(np.arange(40)), expected, atol=1e-12)
    np.testing.assert_array_equal(before.by_topic().T, counts)
    none = before.plus(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    np.testing.assert_array_equal(none.by_topic(), before.by_topic())


def record_of(z_of_steps, words, n_words, n_topics, groups=None):
    record = TopicRecord(7)
    for step, z in enumerate(z_of_steps):
        counts = np.zeros((n_words, n_topics))
        np.add.at(counts, (words, z), 1)
        record.add(step, counts, z.astype(np.uint16), lambda: np.zeros(n_topics) if groups is None else groups)
    return record


@pytest.mark.parametrize("prior", [0.1, OF_WORDS, np.repeat(OF_WORDS, 5, axis=1)])
def test_the_mean_over_draws_is_that_of_their_conditional_means(prior):
    rng = np.random.default_rng(0)
    words = rng.integers(30, size=400)
    record = record_of([rng.integers(5, size=400) for _ in range(6)], words, 30, 5)
    orders = np.array([rng.permutation(5) for _ in range(6)])
    words = np.arange(30)
    expected = np.mean([record.mean_of_words(s, prior, words, orders[s]).T for s in range(6)], axis=0)
    np.testing.assert_allclose(record.mean_over(orders, prior), expected, rtol=1e-6)
    np.testing.assert_allclose(expected.sum(axis=1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("at_once", [7, 10_000])
def test_the_mean_of_some_words_is_that_of_the_counts(at_once, monkeypatch):
    monkeypatch.setattr(kept_record, "_WORDS_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    words, z = rng.integers(30, size=400), rng.integers(5, size=400)
    some, order = rng.permutation(30)[:17], rng.permutation(5)
    cells = np.zeros((30, 5)) + 0.3
    np.add.at(cells, (words, z), 1)
    mean = record_of([z], words, 30, 5).mean_of_words(0, 0.3, some, order)
    np.testing.assert_allclose(mean, (cells / cells.sum(axis=0))[some][:, order], rtol=1e-7)
    assert mean.flags.c_contiguous and mean.dtype == np.float64


def test_topics_that_change_places_keep_their_numbers():
    rng = np.random.default_rng(0)
    words, z = rng.integers(30, size=400), rng.integers(4, size=400)
    swap = np.array([1, 0, 2, 3])
    record = record_of([z, z, swap[z], swap[z], z], words, 30, 4)
    np.testing.assert_array_equal(record.orders, [range(4), range(4), swap, swap, range(4)])
    # Topics with priors of their own do not change places.
    record = record_of([z, swap[z]], words, 30, 4, groups=np.arange(4))
    np.testing.assert_array_equal(record.orders, [range(4), range(4)])


def test_new_tokens_get_the_same_topic_in_all_draws():
    rng = np.random.default_rng(0)
    words, z = rng.integers(30, size=400), rng.integers(4, size=400)
    cycle, other = np.array([1, 2, 3, 0]), np.array([2, 0, 1, 3])
    record = record_of([z, cycle[z], other[z]], words, 30, 4)
    np.testing.assert_array_equal(record.orders, [range(4), cycle, other])
    # Topic 2 of the last draw has number 0, topic 0 number 1, and topic 1 number 2.
    record.take_in(np.array([5, 6, 7, 7]), np.array([2, 0, 1, 1], dtype=np.uint16), np.empty(0))
    expected = np.zeros((4, 30))
    np.add.at(expected, (np.append(z, [0, 1, 2, 2]), np.append(words, [5, 6, 7, 7])), 1)
    for counts, order in zip(record.counts, record.orders, strict=True):
        np.testing.assert_array_equal(counts.by_topic()[order], expected)


@pytest.mark.parametrize("n", [1, 5, 19, 20])
def test_the_largest_are_those_of_a_stable_sort(n):
    values = np.random.default_rng(0).integers(0, 6, 20) / 10.0
    np.testing.assert_array_equal(largest(values, n), np.argsort(-values, kind="stable")[:n])


# -------------------------------------------------------------------------------------------------------------- models


@pytest.mark.parametrize("sampler", [None, "scir", "sgrld"])
def test_components_are_the_mean_of_conditional_means(X, sampler):
    model = fitted(X, sampler=sampler)
    draws, c = model._topic_draws, model.reference_chain_
    n_kept = draws.shape[1]
    means = [draws.mean_of_words(c, s, np.arange(V)).T for s in range(n_kept)]
    np.testing.assert_allclose(model.components_, np.mean(means, axis=0), rtol=1e-6)
    # Draws scatter about them.
    values = model.samples_["components"][c].astype(float)
    assert np.all(np.abs(values.mean(axis=0) - model.components_) < 6 * mcse(values[None]) + 0.005)


@pytest.mark.parametrize("model", [BayesianLDA(K), DMRTopicModel(K), GammaProcessTopicModel(6)])
def test_draws_on_demand_are_the_same_each_time_and_after_a_pickle(X, model, tmp_path):
    given = {"metadata": np.arange(200.0)} if isinstance(model, DMRTopicModel) else {}
    model = model.set_params(n_iter=30, n_chains=2, random_state=0).fit(X, **given)
    small = len(pickle.dumps(model.samples_))
    first = model.samples_["components"]
    assert model.samples_["components"] is first  # made once
    assert len(pickle.dumps(model.samples_)) == small  # and not saved
    joblib.dump(model, tmp_path / "model.joblib")
    for other in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib"), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.samples_["components"], first)
        np.testing.assert_array_equal(other.components_, model.components_)
    np.testing.assert_allclose(first.sum(axis=-1), 1.0, atol=1e-5)


def test_a_prior_fitted_in_burn_in_has_no_r_hat(X):
    # Two chains fit different values, which their kept draws cannot change.
    model = fitted(X, n_iter=60)
    prior = model.samples_["doc_topic_prior"]
    assert np.all(prior == prior[:, :1]) and np.any(prior[0] != prior[1])
    table = model.diagnostics_
    assert list(table["quantity"]) == ["log_predictive", "topic_entropy"] and np.all(np.isfinite(table["r_hat"]))


def test_draws_made_once_are_kept_within_memory_and_not_saved(X, monkeypatch):
    model = fitted(X)
    draws, size = model._topic_draws, len(pickle.dumps(model.samples_))
    made, of_record = [], type(draws.records[0]).draw
    monkeypatch.setattr(TopicRecord, "draw", lambda *args: made.append(args[1]) or of_record(*args))
    first = model.transform_draws(X[:1])
    assert len(made) == 20  # of the reference chain alone
    np.testing.assert_array_equal(model.transform_draws(X[:1]), first)
    assert len(made) == 20 and len(pickle.dumps(model.samples_)) == size
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.transform_draws(X[:1]), first)
    whole = model.samples_["components"]
    assert len(made) == 80  # twice for the copies, and the other chain's
    np.testing.assert_array_equal(model.transform_draws(X[:1]), first)
    assert np.shares_memory(draws.kept_draw(0, 0), whole) and not draws._made and len(made) == 80
    monkeypatch.setattr("sk_sgmcmc.topic._draws.DRAW_MEMORY", 3 * K * V * 4)
    model = fitted(X)
    for _ in range(2):
        np.testing.assert_array_equal(model.transform_draws(X[:1]), first)
    assert len(model._topic_draws._made) == 3


def test_samples_behave_as_a_dict(X):
    samples = fitted(X).samples_
    components = samples["components"]
    for other in (dict(samples), {**samples}, samples.copy(), dict(samples.items()), {} | samples):
        assert list(other) == ["components", "doc_topic_prior"]
        assert other["components"] is components
    assert isinstance(samples, dict) and len(samples) == 2 and "components" in samples
    assert samples.get("components") is components and samples.get("coef", 3) == 3
    assert [value.shape[:2] for value in samples.values()] == [(2, 20)] * 2
    assert repr(fitted(X).samples_) == repr(dict(samples))
    with pytest.raises(KeyError, match="coef"):
        samples["coef"]


@pytest.mark.parametrize("read", [dict, lambda s: {**s}, lambda s: {} | s, lambda s: s.pop("components")])
def test_draws_are_made_whichever_way_the_dict_is_read(X, read):
    found = read(fitted(X).samples_)
    found = found["components"] if isinstance(found, dict) else found
    assert found.shape == (2, 20, K, V)


@pytest.mark.parametrize(("n_words", "n_topics"), [(1, 2), (20, 1)])
def test_making_draws_changes_no_answer(n_words, n_topics):
    # One row or one column of counts that are not whole is the same memory in either order.
    X = np.random.default_rng(0).poisson(2.0, size=(25, n_words)) * 0.37
    model = GammaProcessTopicModel(n_topics, n_iter=20, random_state=0).fit(X)
    before = model.perplexity(X), model.transform(X)
    first = model.samples_["components"]
    after = model.perplexity(X), model.transform(X)
    assert before[0] == after[0]
    np.testing.assert_array_equal(before[1], after[1])
    np.testing.assert_array_equal(first, model._topic_draws.array())


def test_draws_that_a_user_puts_there_are_the_ones_in_use(X):
    model = fitted(X)
    usual = model.score(X)
    uniform = np.full_like(model.samples_["components"], 1.0 / V)
    model.samples_["components"] = uniform
    assert model.score(X) == pytest.approx(-np.log(V), rel=1e-5) and usual > -np.log(V)
