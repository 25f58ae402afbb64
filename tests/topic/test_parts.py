"""Collapsed sweeps by parts of the vocabulary: the exact law, whatever the cut; threads change no draw."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import joblib
import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.topic._counts import corpus as corpora
from sk_sgmcmc.topic._counts import sweeps as parts
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.sweeps import CollapsedSweeps, GeneralSweeps
from tests.cases import THRESHOLD, z_scores
from tests.corpora import shard_of
from tests.tiny_lda import batch_means, exact_law, make_chain, statistics

COUNTS = np.array([[2, 1, 0], [0, 1, 2], [1, 0, 2], [1, 1, 0]])
ALPHA, BETA = np.array([0.1, 0.2]), 0.1  # so small that tokens stay together, and shares of small counts matter
N_STEPS = 8000


@pytest.fixture(scope="module")
def law():
    return exact_law(COUNTS, ALPHA, BETA)


@pytest.fixture
def in_parts(monkeypatch):
    """Let every corpus have ``n`` parts."""
    return lambda n: monkeypatch.setattr(parts, "number_of_parts", lambda n_tokens: n)


# --------------------------------------------------------------------------------------------------------- how many


def test_their_number_follows_the_size_and_ends_at_16():
    sizes = 0, 1_999_999, 2_000_000, 10**7, 17 * 10**6, 10**8, 10**12
    assert [parts.number_of_parts(n) for n in sizes] == [1, 1, 4, 6, 8, 16, 16]


@pytest.mark.parametrize("tokens", [[5] * 40, [0, 0, 200, 1, 1, 0, 30], [1], [0, 0], [900, 1, 1, 1, 1]])
def test_they_are_cut_by_tokens(tokens):
    table = np.array(tokens, dtype=np.uint16)[:, None]
    ends = parts.word_cuts(table, 4)
    assert ends[0] == 0 and ends[-1] == len(tokens) and np.all(np.diff(ends) >= 0)
    inside = [sum(tokens[a:b]) for a, b in pairwise(ends)]
    assert sum(inside) == sum(tokens) and max(inside) <= sum(tokens) / 4 + max(tokens)


def test_weighted_tokens_have_one_part():
    counts = make_lda(30, 40, 4, random_state=0).counts * 1.5
    data = shard_of(counts)
    z = np.zeros(data.words.size, dtype=np.uint16)
    assert GeneralSweeps(data, z, np.broadcast_to(0.1, (40, 4))).n_parts(data) == 1


# ------------------------------------------------------------------------------------------------------------- sweeps


@pytest.mark.parametrize("n_parts", [1, 2, 7, 60])
@pytest.mark.parametrize("n_topics, many", [(4, 0), (20, 0), (20, 2**16)])
def test_counts_stay_those_of_the_assignments(n_topics, many, n_parts, in_parts):
    in_parts(n_parts)
    counts = make_lda(90, 40, 4, document_length=60, random_state=0).counts.toarray()
    counts[0, 0] += many  # wider counts, and a document too long for counts of 16 bits
    counts[5] = 0
    data = shard_of(counts.astype(float))
    z = np.random.default_rng(0).integers(n_topics, size=data.words.size, dtype=np.uint16)
    sweeps = CollapsedSweeps(data, z, np.broadcast_to(0.05, (data.n_words, n_topics)))
    before, rng = z.copy(), np.random.default_rng(1)
    for _ in range(2):
        sweeps.sweep_parts(data, np.full((1, n_topics), 0.1), data.group, rng, None)
        expected = np.zeros((data.n_words, n_topics), dtype=np.int64)
        np.add.at(expected, (data.words, z), 1)
        np.testing.assert_array_equal(sweeps.counts, expected)
        np.testing.assert_array_equal(sweeps.topic_mass, expected.sum(axis=0))
    assert np.mean(z != before) > 0.3 and not sweeps.table[:, n_topics:].any()


@pytest.mark.parametrize("length, kept", [(40, True), (4, False)])
def test_counts_of_documents_are_kept_where_they_are_few_and_change_no_draw(length, kept, monkeypatch):
    data = shard_of(make_lda(200, 40, 4, document_length=length, random_state=0).counts)
    found = []
    for bytes_per_token in (parts._BYTES_PER_TOKEN, 0 if kept else 1e9):
        monkeypatch.setattr(parts, "_BYTES_PER_TOKEN", bytes_per_token)
        assert (len(parts._room_for_doc_counts(data, 32)) > 0) is (kept == (bytes_per_token == 6))
        z = np.random.default_rng(0).integers(20, size=data.words.size, dtype=np.uint16)
        sweeps = CollapsedSweeps(data, z, np.broadcast_to(0.05, (data.n_words, 20)))
        alpha = np.full((1, 20), 0.1)
        parts.sweep_by_vocabulary(data, z, sweeps.table, alpha, data.group, 0.05, np.random.default_rng(1), 3)
        found.append(z)
    np.testing.assert_array_equal(*found)


# ---------------------------------------------------------------------------------------------------------------- law


def z_of(law, seed):
    n_iter = N_STEPS + 200
    chain = make_chain(seed, 1.0, n_iter, make=CollapsedChain, counts=COUNTS, alpha=ALPHA, beta=BETA)
    draws = chain.run(n_iter).draws()["components"]
    return np.abs(z_scores(batch_means(statistics(draws)), law)).max()


@pytest.mark.parametrize("n_parts", [2, 3, 5])
def test_sweeps_have_the_exact_law(n_parts, law, global_random_seed, in_parts):
    in_parts(n_parts)  # five parts of three words: some have none
    assert z_of(law, global_random_seed) < THRESHOLD


DRAWN = parts.drawn_shares
MISTAKES = {
    "the mean in place of a draw, as of stale totals": lambda shape, rng: shape / shape.sum(axis=0),
    "equal shares": lambda shape, rng: np.full_like(shape, 1.0 / len(shape)),
    "shares that forget the prior": lambda shape, rng: DRAWN(np.maximum(shape - BETA, 1e-9), rng),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistaken_shares_are_rejected(mistake, law, global_random_seed, in_parts, monkeypatch):
    in_parts(3)
    monkeypatch.setattr(parts, "drawn_shares", MISTAKES[mistake])
    assert z_of(law, global_random_seed) > 1.3 * THRESHOLD


@pytest.mark.parametrize("scale", [1e-5, 1e-2, 1.0, 100.0])
def test_shares_have_their_dirichlet_law_however_small_the_prior(scale, global_random_seed):
    # The last two topics: one without tokens, and one whose tokens are all in one part; the third part has no words.
    shape = scale * np.array([[5.0, 5.0], [95.0, 95.0], [0.0, 0.0], [900.0, 900.0]])
    shape[1, 1] += 3.0
    rng = np.random.default_rng(global_random_seed)
    draws = np.array([parts.drawn_shares(shape, rng) for _ in range(20_000)])
    np.testing.assert_allclose(draws.sum(axis=1), 1.0)
    mean, total = shape / shape.sum(axis=0), shape.sum(axis=0)
    sd = np.sqrt(mean * (1.0 - mean) / (total + 1.0))
    assert np.all(np.abs(draws.mean(axis=0) - mean) <= 5.0 * sd / np.sqrt(len(draws)) + 1e-12)
    often = sd > 0.05
    np.testing.assert_allclose(draws.std(axis=0)[often], sd[often], rtol=0.2)


def test_sweeps_in_parts_approach_the_law_as_fast_as_without(in_parts):
    counts = make_lda(150, 60, 5, document_length=40, doc_topic_prior=0.2, random_state=0).counts
    data, ends = shard_of(counts), []
    for n_parts in (1, 6):
        in_parts(n_parts)
        entropies = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            z = rng.integers(5, size=data.words.size, dtype=np.uint16)
            sweeps = CollapsedSweeps(data, z, np.broadcast_to(0.05, (data.n_words, 5)))
            for _ in range(12):
                sweeps.sweep_parts(data, np.full((1, 5), 0.1), data.group, rng, None)
            shares = sweeps.counts / sweeps.topic_mass
            entropies.append(-np.sum(shares * np.log(np.maximum(shares, 1e-12)), axis=0).mean())
        ends.append((np.mean(entropies), np.var(entropies, ddof=1) / 8))
    (one, v), (other, w) = ends
    assert abs(one - other) < 4 * np.sqrt(v + w)


# -------------------------------------------------------------------------------------------------------------- draws


@pytest.fixture(scope="module")
def corpus():
    return make_lda(400, 100, 4, document_length=60, doc_topic_prior=0.2, random_state=0).counts


def fitted(counts, n_jobs, **params):
    return BayesianLDA(4, n_iter=16, random_state=0, n_jobs=n_jobs, **params).fit(counts)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_no_draw(n_jobs, corpus, in_parts):
    in_parts(5)
    one, several = fitted(corpus, 1), fitted(corpus, n_jobs)
    np.testing.assert_array_equal(one._chains[0].z, several._chains[0].z)
    np.testing.assert_array_equal(one.components_, several.components_)
    np.testing.assert_array_equal(one.samples_["components"], several.samples_["components"])


def test_chains_side_by_side_make_the_same_draws(corpus, in_parts):
    in_parts(5)
    one = fitted(corpus, 1, n_chains=2)
    with joblib.parallel_config("threading"):
        other = fitted(corpus, 4, n_chains=2)
    np.testing.assert_array_equal(one.samples_["components"], other.samples_["components"])


def test_a_chain_may_stop_between_sweeps_and_go_elsewhere(in_parts):
    in_parts(3)
    whole, stopped = (make_chain(0, 1.0, 40, make=CollapsedChain, burn_in=10) for _ in range(2))
    data = stopped.data
    whole.run(40)
    for until in (5, 17, 40):
        stopped = pickle.loads(pickle.dumps(stopped.run(until))).bind(data)
    np.testing.assert_array_equal(whole.z, stopped.z)


def test_early_burn_in_runs_in_shards_and_later_sweeps_in_parts(corpus, in_parts, monkeypatch):
    in_parts(5)
    monkeypatch.setattr(corpora, "_MIN_TOKENS", 1000)
    ways = []
    for way in ("sweep", "step", "sweep_parts"):
        sweep = getattr(CollapsedSweeps, way)

        def noted(self, *args, way=way, sweep=sweep):
            ways.append(way)
            return sweep(self, *args)

        monkeypatch.setattr(CollapsedSweeps, way, noted)
    BayesianLDA(4, n_iter=16, burn_in=6, random_state=0).fit(corpus)
    assert ways == ["step"] * 4 + ["sweep_parts"] * 12  # The fourth is still tempered.


def test_heated_sweeps_do_not_run_in_parts(corpus, in_parts, monkeypatch):
    in_parts(5)
    temperatures, sweep = [], CollapsedSweeps.sweep_parts

    def noted(self, *args):
        temperatures.append(self.temperature)
        sweep(self, *args)

    monkeypatch.setattr(CollapsedSweeps, "sweep_parts", noted)
    fitted(corpus, 1)  # in a single shard, of whose sweeps of burn-in the last are no longer warm
    assert 8 < len(temperatures) < 16 and set(temperatures) == {1.0}


def test_threads_change_no_draw_of_coefficients(corpus, in_parts):
    in_parts(5)
    metadata = np.random.default_rng(0).standard_normal((corpus.shape[0], 1))
    models = [
        DMRTopicModel(4, n_iter=20, random_state=0, n_jobs=n_jobs).fit(corpus, metadata=metadata) for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*(model.coef_ for model in models))
    assert np.isfinite(models[0].perplexity(corpus, metadata=metadata))


def test_threads_of_a_pool_work_on_one_sweep(corpus):
    data, found = shard_of(corpus), []
    with ThreadPoolExecutor(3) as pool:
        for threads in (None, pool):
            z = np.random.default_rng(0).integers(20, size=data.words.size, dtype=np.uint16)
            table = CollapsedSweeps(data, z, np.broadcast_to(0.05, (data.n_words, 20))).table
            alpha, rng = np.full((1, 20), 0.1), np.random.default_rng(1)
            mass = parts.sweep_by_vocabulary(data, z, table, alpha, data.group, 0.05, rng, 4, threads)
            found += [z, table, mass]
    for one, other in zip(found[:3], found[3:], strict=True):
        np.testing.assert_array_equal(one, other)
