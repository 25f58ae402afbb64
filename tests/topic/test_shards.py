"""Burn-in in shards of documents: threads change no draw, and what is kept has the exact law."""

from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.topic._counts import chain as chains
from sk_sgmcmc.topic._counts import corpus as shards
from sk_sgmcmc.topic._counts import start
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.document_prior import DocumentPrior
from sk_sgmcmc.topic._counts.sweeps import CollapsedSweeps
from sk_sgmcmc.topic._counts.word_prior import WordPrior
from sk_sgmcmc.topic._minibatch import chain as minibatch_chains
from tests.cases import THRESHOLD, z_scores
from tests.corpora import shard_of, token_corpus
from tests.tiny_lda import batch_means, exact_law, make_chain, statistics

# Short documents, each a shard: there, stale counts are furthest from the true ones.
COUNTS = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 0], [0, 1, 1]])
N_STEPS = 16_000


@pytest.fixture(scope="module")
def law():
    return exact_law(COUNTS)


@pytest.fixture(scope="module")
def corpus():
    """So large that burn-in takes several shards."""
    counts = make_lda(2500, 300, 4, document_length=130, doc_topic_prior=0.2, random_state=0).counts
    assert shards.number_of_shards(counts.sum(), 300 * 16) == 3
    return counts


@pytest.fixture
def in_three(monkeypatch):
    """Three shards whatever the size."""
    cut_into(3, monkeypatch)


def cut_into(n, monkeypatch):
    for module in (shards, start, minibatch_chains):
        monkeypatch.setattr(module, "number_of_shards", lambda n_tokens, n_cells: n)


# --------------------------------------------------------------------------------------------------------- how many


def test_their_number_follows_the_sizes():
    assert [shards.number_of_shards(n, 1000) for n in (0, 199_999, 200_000, 10**6, 10**9)] == [1, 1, 2, 10, 16]
    assert shards.number_of_shards(10**7, 10**6 * 208) == 1  # copies would be larger than the corpus


@pytest.mark.parametrize("n_tokens", [10**5, 10**6, 10**7, 10**8])
@pytest.mark.parametrize("n_cells", [10**4, 10**6, 10**8])
def test_their_copies_take_a_bounded_share_of_memory(n_tokens, n_cells):
    n = shards.number_of_shards(n_tokens, n_cells)
    assert n == 1 or n * n_cells <= 4 * n_tokens


@pytest.mark.parametrize("lengths", [[5] * 40, [0, 0, 200, 1, 1, 0, 30], [1], [0, 0]])
def test_they_are_cut_by_tokens(lengths):
    token_ptr = 7 + np.concatenate([[0], np.cumsum(lengths)])
    ends = shards.cuts(token_ptr, 4)
    assert ends[0] == 0 and ends[-1] == len(lengths) and np.all(np.diff(ends) >= 0)
    assert np.diff(token_ptr[ends]).max() <= sum(lengths) / 4 + max(lengths)
    np.testing.assert_array_equal(ends, shards.cuts(token_ptr - 7, 4))


# ------------------------------------------------------------------------------------------------------------- sweeps


def sweep_side_by_side(corpus, sweeps, start, stop, rng):
    """Sweep documents start:stop in three shards."""
    part = corpus.shards.part(start, stop, 3)
    prior = DocumentPrior(np.full(sweeps.counts.shape[1], 0.1))
    now = shards.Round(sweeps.step(prior), int(rng.integers(2**63)), sweeps.table)
    while now.next_shard < 3:
        part.proceed(now, sweeps.z, None)
    sweeps.take(now.sums)


@pytest.mark.parametrize("n_topics, many", [(4, 0), (20, 0), (20, 2**16)])
def test_merged_counts_are_those_of_the_assignments(n_topics, many, in_three):
    counts = make_lda(90, 40, 4, document_length=60, random_state=0).counts.toarray()
    counts[0, 0] += many  # wider counts
    corpus = token_corpus(counts)
    data = corpus.documents
    z = np.random.default_rng(0).integers(n_topics, size=data.words.size, dtype=np.uint16)
    sweeps = CollapsedSweeps(data, z, np.broadcast_to(0.05, (data.n_words, n_topics)))
    assert sweeps.table.dtype == (np.int32 if many else np.uint16)
    rng = np.random.default_rng(1)
    for first, last in [(0, 90), (0, 50), (50, 90)]:
        sweep_side_by_side(corpus, sweeps, first, last, rng)
        expected = np.zeros((data.n_words, n_topics), dtype=np.int64)
        np.add.at(expected, (data.words, z), 1)
        np.testing.assert_array_equal(sweeps.counts, expected)
        np.testing.assert_array_equal(sweeps.topic_mass, expected.sum(axis=0))


def test_a_range_of_documents_leaves_the_others(in_three):
    corpus = token_corpus(make_lda(30, 40, 4, random_state=0).counts)
    data = corpus.documents
    z = np.zeros(data.words.size, dtype=np.uint16)
    sweeps = CollapsedSweeps(data, z, np.broadcast_to(0.05, (data.n_words, 4)))
    sweep_side_by_side(corpus, sweeps, 10, 20, np.random.default_rng(1))
    lo, hi = data.token_ptr[[10, 20]]
    assert not z[:lo].any() and not z[hi:].any() and z[lo:hi].any()


# -------------------------------------------------------------------------------------------------------------- start


def started(counts, n_topics, pool=None):
    doc_prior, word_prior = DocumentPrior(np.full(n_topics, 0.1)), WordPrior(0.01, counts.shape[1], n_topics)
    corpus, rng = token_corpus(counts, n_topics), np.random.default_rng(0)
    return start.first_assignments(corpus, doc_prior, word_prior, "soft", False, rng, pool)[0]


def test_the_last_pass_of_the_start_gives_every_token_a_topic(in_three):
    counts = make_lda(200, 100, 4, document_length=80, doc_topic_prior=0.1, random_state=0).counts
    z = started(counts, 4)
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_array_equal(z, started(counts, 4, pool))
    words = shard_of(counts).words
    table = np.zeros((100, 4))
    np.add.at(table, (words, z), 1)
    assert z.max() == 3
    assert (table.max(axis=1).sum() / table.sum()) > 0.5  # topics of all shards are the same ones


def test_the_start_does_not_depend_on_where_memory_is_free():
    counts = make_lda(300, 300, 10, document_length=60, random_state=0).counts
    data = shard_of(counts)
    noise, learnt = np.random.default_rng(), set()
    for n_topics in (18, 20, 22):
        for _ in range(40):
            taken = [np.empty(size, np.float32) for size in noise.integers(1, 200, size=2000)]
            noise.shuffle(taken)
            del taken[::2]
            topics = start.SoftTopics(data, n_topics, 0.1, 0.01, float(data.words.size), np.random.default_rng(0))
            topics.memory = 200.0, 40.0
            topics.learn(np.arange(data.n_docs))
            learnt.add((n_topics, topics.raw.tobytes()))
    assert len(learnt) == 3


def test_a_pass_that_begins_with_an_empty_document_is_the_pass_without_it():
    # The documents' prior was read before it was set, so that the same seed gave other draws, or NaN.
    counts = make_lda(30, 40, 4, random_state=0).counts.toarray()
    counts[0] = 0
    data, learnt = shard_of(counts), []
    for first in (0, 1):
        topics = start.SoftTopics(data, 8, 0.37, 0.01, float(data.words.size), np.random.default_rng(0))
        topics.memory = 200.0, 40.0
        topics.learn(np.arange(first, data.n_docs))
        learnt.append(topics.raw)
    np.testing.assert_array_equal(*learnt)


def test_a_start_of_one_pass_is_not_cut(in_three, monkeypatch):
    # Its shards would have learnt nothing together.
    counts = make_lda(30, 40, 4, random_state=0).counts
    monkeypatch.setattr(start.SoftTopics, "learn_in_shards", None)
    assert started(counts, start._FEW + 1).max() > 4


@pytest.mark.parametrize(
    ("only_sweeps", "n_topics", "way"), [(True, 125, "soft"), (True, 126, "random"), (False, 201, "soft")]
)
def test_many_topics_start_at_random_where_only_sweeps_follow(only_sweeps, n_topics, way):
    prior = DocumentPrior(np.full(n_topics, 0.1))
    chain = make_chain(0, 1.0, 10, doc_prior=prior, burn_in=5, n_warm=5 if only_sweeps else 2)
    assert chain._start_by() == "random"
    chain.init = "soft"
    assert chain._start_by() == way


def test_a_default_fit_of_many_topics_divides_a_few(monkeypatch):
    learnt = []

    def recorded(data, prior, *rest):
        learnt.append(prior.shape[1])
        return learn(data, prior, *rest)

    learn = start.learnt_topics
    monkeypatch.setattr(start, "learnt_topics", recorded)
    counts = make_lda(30, 40, 4, random_state=0).counts
    model = BayesianLDA(chains.MOST_SOFT + 1, n_iter=10, random_state=0).fit(counts)
    assert learnt == [16] and model._chains[0].hottest == 1.0
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
    BayesianLDA(chains.MOST_SOFT + 1, n_iter=10, init="random", random_state=0).fit(counts)
    assert learnt == [16]


def test_divided_topics_stay_within_a_document_and_fill_all_numbers():
    rng, token_ptr = np.random.default_rng(0), np.arange(0, 4001, 10)
    coarse = rng.integers(3, size=4000).astype(np.uint16)
    z = coarse.copy()
    start.divide(z, token_ptr, 3, 8, rng)
    parent = np.repeat([0, 1, 2], [2, 3, 3])
    np.testing.assert_array_equal(parent[z], coarse)
    np.testing.assert_array_equal(np.unique(z), np.arange(8))
    docs = np.repeat(np.arange(400), 10)
    assert np.unique(np.column_stack([docs, coarse, z]), axis=0).shape[0] == len(
        np.unique(np.column_stack([docs, coarse]), axis=0)
    )


# -------------------------------------------------------------------------------------------------------------- draws


def fitted(counts, n_jobs, sampler=None, **params):
    return BayesianLDA(4, sampler=sampler, n_iter=16, random_state=0, n_jobs=n_jobs, **params).fit(counts)


@pytest.mark.parametrize("sampler", [None, "scir"])
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_no_draw(n_jobs, sampler, corpus):
    one, several = fitted(corpus, 1, sampler), fitted(corpus, n_jobs, sampler)
    np.testing.assert_array_equal(one._chains[0].z, several._chains[0].z)
    np.testing.assert_array_equal(one.components_, several.components_)


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_backends_change_no_draw(backend, corpus):
    one = fitted(corpus, 1, n_chains=2)
    with joblib.parallel_config(backend):
        other = fitted(corpus, 4, n_chains=2)
    np.testing.assert_array_equal(one.samples_["components"], other.samples_["components"])


def test_resume_goes_on_as_if_it_had_not_stopped(corpus):
    whole = fitted(corpus, 2)
    parts = fitted(corpus, 1)
    np.testing.assert_array_equal(whole.components_, parts.components_)
    later = [model.resume(corpus, 5).components_ for model in (whole, parts)]
    np.testing.assert_array_equal(*later)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_chain_may_stop_in_burn_in(n_threads, in_three):
    chains = [make_chain(0, 1.0, 40, make=CollapsedChain, burn_in=30) for _ in range(2)]
    chains[0].run(40)
    if n_threads == 2:
        chains[1]._pool = ThreadPoolExecutor(2)
    for until in (1, 7, 30, 40):
        chains[1].run(until)
    np.testing.assert_array_equal(chains[0].z, chains[1].z)


# ---------------------------------------------------------------------------------------------------------------- law


class Stale(CollapsedChain):
    """Mistake: shards in the kept phase too."""

    def _advance(self, until):
        n_burn, self.plan.n_burn = self.plan.n_burn, 2 * self.plan.n_iter
        wants, self.plan.wants = self.plan.wants, lambda step: step > n_burn
        super()._advance(until)
        self.plan.n_burn, self.plan.wants = n_burn, wants


def z_of(law, seed, make):
    chain = make_chain(seed, 1.0, N_STEPS + 200, make=make, counts=COUNTS).run(N_STEPS + 200)
    return np.abs(z_scores(batch_means(statistics(chain.draws()["components"])), law)).max()


@pytest.mark.parametrize("n_shards", [1, 2, 6])
def test_what_is_kept_has_the_exact_law(n_shards, law, global_random_seed, monkeypatch):
    cut_into(n_shards, monkeypatch)
    assert z_of(law, global_random_seed, CollapsedChain) < THRESHOLD


def test_stale_counts_in_the_kept_phase_are_rejected(law, global_random_seed, monkeypatch):
    cut_into(6, monkeypatch)
    assert z_of(law, global_random_seed, Stale) > 1.3 * THRESHOLD
