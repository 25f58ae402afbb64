"""The search for lost topics in burn-in: its kernels, its moves, and when it is made."""

import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA, DMRTopicModel, GammaProcessTopicModel
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.kernels.models.lda import split_merge as kernels
from sk_sgmcmc.kernels.models.lda import whole_tokens
from sk_sgmcmc.metrics import align_topics
from sk_sgmcmc.topic._counts import split_merge
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from tests.corpora import shard_of

K, BETA = 8, 0.2


@pytest.fixture(scope="module")
def planted():
    return make_lda(800, 150, K, document_length=60, doc_topic_prior=0.2, topic_word_prior=0.2, random_state=0)


@pytest.fixture(scope="module")
def documents(planted):
    return shard_of(planted.counts)


def assignments(documents, topics, rng):
    """Topics of tokens given the true topics, after a few sweeps over the documents."""
    words, n = documents.words, documents.n_docs
    docs, z = np.repeat(np.arange(n), np.diff(documents.token_ptr)), rng.integers(K, size=words.size)
    for _ in range(10):
        counts = np.zeros((n, K))
        np.add.at(counts, (docs, z), 1.0)
        weights = (counts[docs] + 0.2) * topics[:, words].T
        ends = np.cumsum(weights, axis=1)
        z = np.minimum((ends < rng.random(words.size)[:, None] * ends[:, -1:]).sum(axis=1), K - 1)
    return z.astype(np.uint16)


def counts_of(documents, z):
    counts = np.zeros((documents.n_words, K))
    np.add.at(counts, (documents.words, z), 1.0)
    return counts


class StopAfter:
    """A callback that ends a fit between two searches."""

    def __init__(self, step):
        self.step = step

    def next_step(self, step):
        return self.step if step < self.step else step + 1

    def __call__(self, estimator, step):
        return step >= self.step


def search(documents, z, groups=None, alpha=None, seed=0):
    alpha = np.full((1, K), 0.2) if alpha is None else alpha
    group, groups = np.zeros(documents.n_docs, dtype=np.int64), np.zeros(K) if groups is None else groups
    rng = np.random.default_rng(seed)
    return split_merge.find_lost_topics(documents, z, counts_of(documents, z), alpha, group, BETA, groups, rng)


def distances(documents, z, topics):
    """Total variation between each true topic and the estimated topic in its place."""
    found = (counts_of(documents, z) + BETA).T
    found /= found.sum(axis=1, keepdims=True)
    return np.abs(topics - found[align_topics(topics, found)]).sum(axis=1) / 2.0


def with_lost_topic(documents, topics, rng):
    """True assignments, but topics 0 and 1 are one, and each document has topic 2 under one of two numbers."""
    z = assignments(documents, topics, rng)
    side = np.repeat(rng.integers(2, size=documents.n_docs), np.diff(documents.token_ptr))
    z[z == 1] = 0
    z[(z == 2) & (side == 1)] = 1
    return z


# ----------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
def test_log_predictive_is_that_of_each_token_given_the_others(dtype):
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, (7, 5))
    counts[3] = 0  # a document without words
    documents = shard_of(counts)
    z = rng.integers(3, size=documents.n_tokens).astype(np.uint16)
    alpha, group = rng.uniform(0.1, 2.0, (2, 3)), np.arange(7) % 2
    table = np.zeros((5, whole_tokens.table_of_counts(np.zeros((5, 3))).shape[1]), dtype=dtype)
    np.add.at(table, (documents.words, z), 1)
    docs, right = np.repeat(np.arange(7), np.diff(documents.token_ptr)), 0.0
    for i, (d, w) in enumerate(zip(docs, documents.words, strict=True)):
        others = np.arange(docs.size) != i
        in_doc = np.bincount(z[others & (docs == d)], minlength=3) + alpha[group[d]]
        of_word = np.bincount(z[others & (documents.words == w)], minlength=3) + 0.3
        mass = np.bincount(z[others], minlength=3) + 5 * 0.3
        right += np.log((in_doc / in_doc.sum()) @ (of_word / mass))
    mass = table[:, :3].sum(axis=0, dtype=np.int64)
    found = kernels.log_predictive(documents.token_ptr, documents.words, z, table, mass, alpha, group, 0.3)
    assert found == pytest.approx(right, rel=1e-12)


def test_log_predictive_does_not_underflow():
    """The product of 5,000 probabilities is far below the smallest number."""
    documents = shard_of(np.full((50, 100), 1))
    z, table = np.zeros(5000, dtype=np.uint16), np.zeros((100, 16), dtype=np.uint16)
    table[:, 0] = 50
    found = kernels.log_predictive(
        documents.token_ptr, documents.words, z, table, np.array([5000]), np.ones((1, 1)), np.zeros(50, dtype=int), 1.0
    )
    assert found == pytest.approx(5000 * np.log(50.0 / 5099.0))


def test_first_axis_is_that_of_a_correspondence_analysis():
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(2), 60) @ rng.dirichlet(np.full(20, 2.0), 2)
    counts = np.array([rng.multinomial(40, row) for row in shares])
    docs, words = np.nonzero(counts)
    times = counts[docs, words]
    docs, words = np.repeat(docs, times).astype(np.int32), np.repeat(words, times).astype(np.int32)
    sizes = [counts.sum(axis=1).astype(float), counts.sum(axis=0).astype(float)]
    scores = rng.standard_normal(60)
    kernels.first_axis(docs, words, 60, 0.0, *sizes, scores, np.empty(20))
    expected = np.outer(*sizes) / counts.sum()
    left = np.linalg.svd((counts - expected) / np.sqrt(expected))[0][:, 0] / np.sqrt(sizes[0])
    assert abs(np.corrcoef(scores, left)[0, 1]) > 1.0 - 1e-6
    assert sizes[0] @ scores == pytest.approx(0.0, abs=1e-8)


# ------------------------------------------------------------------------------------------------------------- moves


def test_a_lost_topic_is_found(planted, documents):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        z = with_lost_topic(documents, planted.components, rng)
        before, n = distances(documents, z, planted.components), z.size
        assert before.max() > 0.4
        assert search(documents, z, seed=seed) == 1
        assert z.size == n and distances(documents, z, planted.components).max() < 0.3


@pytest.mark.parametrize("worth", [split_merge._WORTH, -np.inf])
def test_right_topics_stay(planted, documents, monkeypatch, worth):
    """Few moves are tried, and if all are, none is made."""
    monkeypatch.setattr(split_merge, "_WORTH", worth)
    z = assignments(documents, planted.components, np.random.default_rng(0))
    before = z.copy()
    assert search(documents, z) == 0
    np.testing.assert_array_equal(z, before)


def test_only_exchangeable_topics_take_part(planted, documents):
    z = with_lost_topic(documents, planted.components, np.random.default_rng(0))
    before = z.copy()
    assert search(documents, z, groups=np.arange(K)) == 0
    np.testing.assert_array_equal(z, before)
    assigned = split_merge.Assigned(documents, z, np.ones((1, K)), np.zeros(documents.n_docs, dtype=int), BETA)
    pairs = split_merge.cheap_merges(assigned, np.bincount(z), np.ones((K, K)), np.arange(K) % 2)
    assert len(pairs) == K and all(j % 2 == k % 2 for _, j, k in pairs)


def test_a_sample_of_the_documents_decides(planted, documents, monkeypatch):
    monkeypatch.setattr(split_merge, "_SAMPLE", 15_000)
    monkeypatch.setattr(split_merge, "_SAMPLE_PER_TOPIC", 1)
    rng = np.random.default_rng(0)
    z = with_lost_topic(documents, planted.components, rng)
    sample = split_merge.Assigned(documents, z, np.ones((1, K)), np.zeros(documents.n_docs, dtype=int), BETA)
    sample = sample.sample(15_000, rng)
    assert 14_900 < sample.documents.n_tokens < 15_100
    assert search(documents, z) == 1
    assert distances(documents, z, planted.components).max() < 0.3


def test_empty_topics_and_documents_are_left_alone(documents):
    z = np.zeros(documents.n_tokens, dtype=np.uint16)
    assert search(documents, z) == 0
    empty = shard_of(np.zeros((3, documents.n_words), dtype=int))
    assert search(empty, np.empty(0, dtype=np.uint16)) == 0


# -------------------------------------------------------------------------------------------------------------- fits


@pytest.fixture
def steps(monkeypatch):
    """Steps after which fits search, with success in the first two."""
    made = []

    def find(*args):
        made.append(None)
        return int(len(made) <= 2)

    steps = []
    search = CollapsedChain._search

    def noted(self):
        steps.append(self.step)
        search(self)

    monkeypatch.setattr("sk_sgmcmc.topic._counts.chain.find_lost_topics", find)
    monkeypatch.setattr(CollapsedChain, "_search", noted)
    return steps


def test_searches_end_before_burn_in_and_are_rare_without_success(planted, steps):
    BayesianLDA(K, n_iter=200, random_state=0).fit(planted.counts[:100])
    assert steps == [60, 70, 80]
    steps.clear()
    BayesianLDA(K, n_iter=60, random_state=0).fit(planted.counts[:100])
    assert steps == []
    BayesianLDA(K, n_iter=640, random_state=0).fit(planted.counts[:100])
    assert steps == [60, 300]  # no search has success any more


def test_models_that_distinguish_topics_or_have_weights_do_not_search(planted, steps):
    X = planted.counts[:100]
    names = [f"x{j}" for j in range(X.shape[1])]
    BayesianLDA(K, n_iter=200, random_state=0, seed_words={"x1": 0}).fit(X, feature_names=names)
    BayesianLDA(K, n_iter=200, random_state=0, sampler="gibbs").fit(X * 0.5)
    BayesianLDA(2, n_iter=200, random_state=0).fit(X)
    GammaProcessTopicModel(K, n_iter=200, random_state=0).fit(X)
    assert steps == []
    DMRTopicModel(K, n_iter=200, random_state=0).fit(X, metadata=np.arange(100)[:, None] % 2.0)
    assert steps == [60, 70, 80]


def test_updates_keep_the_topics(planted, steps):
    model = BayesianLDA(K, n_iter=60, random_state=0).fit(planted.counts[:50])
    model.partial_fit(planted.counts[50:200])
    assert steps == []


def test_no_draw_depends_on_threads_or_on_an_interruption(planted):
    X, params = planted.counts[:300], {"n_components": K, "n_iter": 120, "random_state": 0}
    whole = BayesianLDA(**params).fit(X)
    two = BayesianLDA(**params, n_jobs=2).fit(X)
    np.testing.assert_array_equal(whole.components_, two.components_)
    stopped = BayesianLDA(**params, callbacks=StopAfter(46)).fit(X)
    np.testing.assert_array_equal(whole.components_, stopped.set_params(callbacks=None).resume(X).components_)
