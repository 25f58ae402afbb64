"""Corpora in blocks: the law of the chain over shards, the same draws wherever they are made, and refusals."""

import errno
import os
import pickle
import re
import shutil
import signal
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sk_sgmcmc import BayesianLDA, DMRTopicModel, GammaProcessTopicModel
from sk_sgmcmc.callbacks import Checkpoint, HeldOutScore, load_checkpoint
from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.datasets import CountBlocks, make_lda
from sk_sgmcmc.exceptions import FitInterrupted
from sk_sgmcmc.samplers import SCIR, Gibbs
from sk_sgmcmc.topic._counts import corpus as corpora
from sk_sgmcmc.topic._counts import documents
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.corpus import Change, Round, Scratch
from sk_sgmcmc.topic._counts.document_prior import DocumentPrior
from sk_sgmcmc.topic._counts.word_prior import WordPrior
from tests import calibration, tiny_gamma_process
from tests.cases import THRESHOLD, z_scores
from tests.common.compare import mapped_files
from tests.corpora import block_corpus
from tests.tiny_lda import ALPHA, BETA, COUNTS, batch_means, exact_law, statistics

N_STEPS = 10_000


# ------------------------------------------------------------------------------------------------------------ the law


class StaleCounts(CollapsedChain):
    """Mistake: the kept phase goes on like burn-in, each shard with the counts of before the round."""

    def _next_round(self):
        return Round(self.collapsed.step(self.doc_prior), int(self.rng.integers(2**63)), self.collapsed.table)


# Short documents of different words, in which a token's topic depends much on the other documents.
SHORT = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 1, 1]])


def tiny_chain(seed, make=CollapsedChain, shard_tokens=3, beta=BETA, counts=COUNTS):
    blocks = CountBlocks([sparse.csr_array(row[None]) for row in counts], shard_tokens=shard_tokens)
    data = block_corpus(blocks, ALPHA.size)
    plan = DrawPlan(N_STEPS, 100, 1)
    chain = make(
        np.random.SeedSequence(seed), plan, Gibbs()._resolved(None), WordPrior(beta, COUNTS.shape[1], ALPHA.size),
        DocumentPrior(ALPHA), init="random",
    )  # fmt: skip
    return chain.bind(data)


def z_of(seed, counts=COUNTS, **kwargs):
    values = statistics(tiny_chain(seed, counts=counts, **kwargs).run(N_STEPS).draws()["components"])
    return np.abs(z_scores(batch_means(values), exact_law(counts))).max()


def test_a_sample_of_the_documents_does_not_depend_on_the_shards(monkeypatch):
    counts = sparse.csr_array(np.diag(np.arange(1, 24)))  # document d has d + 1 times word d
    monkeypatch.setattr(corpora, "SAMPLE", 60)  # of 276 tokens: every fifth document
    for shard_tokens in (5, 40, 1000):
        data = block_corpus(CountBlocks([counts], shard_tokens=shard_tokens), ALPHA.size)
        np.testing.assert_array_equal(np.unique(data.start.words), np.arange(0, 23, 5))


@pytest.mark.parametrize("shard_tokens", [3, 100])
@pytest.mark.parametrize("counts", [COUNTS, SHORT])
def test_chain_over_shards_has_the_exact_posterior(counts, shard_tokens, global_random_seed):
    assert z_of(global_random_seed, counts, shard_tokens=shard_tokens) < THRESHOLD


def test_priors_word_by_word_have_the_same_law(global_random_seed):
    assert z_of(global_random_seed, beta=np.full((COUNTS.shape[1], 1), BETA)) < THRESHOLD


def test_stale_counts_in_the_kept_phase_are_rejected(global_random_seed):
    assert z_of(global_random_seed, SHORT, make=StaleCounts) > 1.3 * THRESHOLD


def test_counts_are_those_of_the_assignments():
    chain = tiny_chain(0)
    for step in (1, 50, 150):
        chain.run(step)
        counts, words = np.zeros((3, 2)), chain.data.shards.words
        np.add.at(counts, (words, chain.z), 1)
        np.testing.assert_array_equal(chain.collapsed.counts, counts)


def test_changes_have_the_same_sum_in_any_order():
    rng = np.random.default_rng(0)
    parts = [Change(rng.permutation(30)[:n], rng.integers(-300, 300, (n, 4))).compacted() for n in (5, 0, 30)]
    total = np.zeros((30, 4), dtype=np.int32)
    for part in parts:
        part.add_to(total)
    for order in (parts, parts[::-1], [Change.sum_of(parts[:2]), parts[2]]):
        summed = np.zeros((30, 4), dtype=np.int32)
        Change.sum_of(order).add_to(summed)
        np.testing.assert_array_equal(summed, total)


# ----------------------------------------------------------------------------------------- the same draws everywhere


@pytest.fixture(scope="module")
def counts():
    return sparse.csr_array(make_lda(n_samples=240, n_features=60, n_components=3, random_state=0).counts)


PARAMS = {"n_components": 3, "n_iter": 24, "random_state": 0}


@pytest.fixture(scope="module")
def fitted(counts):
    return BayesianLDA(**PARAMS).fit(CountBlocks([counts], shard_tokens=3000))


def same(a, b):
    return all(np.array_equal(a.samples_[name], b.samples_[name]) for name in a.samples_) and np.array_equal(
        a.components_, b.components_
    )


def test_division_into_blocks_and_threads_change_no_draw(counts, fitted, tmp_path):
    parts = [counts[:7], counts[7:7], counts[7:100], counts[100:]]
    assert fitted._chains[0].data.shards_wanted > 3
    paths = [tmp_path / f"{i}.npz" for i in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        sparse.save_npz(path, part)
    mapped = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(counts, name))
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    matrix = sparse.csr_matrix(counts.shape)
    matrix.data, matrix.indices, matrix.indptr = mapped
    for blocks in (parts, paths, lambda: iter(parts), matrix):
        source = CountBlocks(blocks, shard_tokens=3000, folder=tmp_path)
        assert same(BayesianLDA(**PARAMS, n_jobs=2).fit(source), fitted)
    assert isinstance(matrix.data, np.memmap)


def test_result_is_the_ordinary_estimator(counts, fitted):
    blocks = CountBlocks([counts[:50], counts[50:]])
    copy = pickle.loads(pickle.dumps(fitted))
    assert fitted.samples_["components"].shape == (1, 12, 3, 60)
    assert fitted.n_features_in_ == 60 and fitted.n_samples_seen_ == 240
    assert fitted.score(blocks) == fitted.score(counts) == copy.score(counts)
    assert fitted.perplexity(blocks) == fitted.perplexity(counts)
    np.testing.assert_array_equal(fitted.transform(blocks), copy.transform(counts))
    assert len(fitted.top_words(5)["word"]) == 15
    assert copy._chains[0].z is None  # two bytes for each token, which no one needs any more


def test_fit_finds_what_a_fit_in_memory_finds(counts, fitted):
    whole = BayesianLDA(**{**PARAMS, "n_iter": 100}).fit(counts)
    blocks = BayesianLDA(**{**PARAMS, "n_iter": 100}).fit(CountBlocks([counts], shard_tokens=3000))
    assert blocks.perplexity(counts) < 1.01 * whole.perplexity(counts)
    assert blocks.doc_topic_prior_.sum() == pytest.approx(whole.doc_topic_prior_.sum(), rel=0.3)
    assert blocks.topic_word_prior_ == pytest.approx(whole.topic_word_prior_, rel=0.3)


@pytest.mark.parametrize("step", [0, 5, 17])
def test_resume_gives_the_draws_of_an_uninterrupted_fit(step, counts, fitted):
    source = CountBlocks([counts], shard_tokens=3000)
    model = BayesianLDA(**PARAMS, callbacks=lambda _, now: now > step).fit(source)
    assert model.n_iter_ < 24
    model.set_params(callbacks=None)
    other_blocks = CountBlocks([counts[:9], counts[9:]], shard_tokens=3000)
    assert same(pickle.loads(pickle.dumps(model)).resume(other_blocks), fitted)
    assert same(model.resume(source), fitted)
    with pytest.raises(ValueError, match="resume continues with the data"):
        model.resume(CountBlocks([counts[::-1]], shard_tokens=3000))


def test_a_round_cut_in_two_gives_the_same_draws(counts, fitted, monkeypatch):
    monkeypatch.setattr(corpora, "_SHARDS_PER_CALL", 1)
    model = BayesianLDA(**PARAMS)
    model.fit(CountBlocks([counts], shard_tokens=3000))
    assert same(model, fitted)


def test_a_chain_may_be_saved_in_the_middle_of_a_round(counts, fitted, monkeypatch):
    monkeypatch.setattr(corpora, "_SHARDS_PER_CALL", 2)
    chain = fitted_so_far(counts)._chains[0]
    chain._advance(24)
    assert chain.round.next_shard == 2 and chain.step == 9
    copy = pickle.loads(pickle.dumps(chain)).bind(chain.data).run(24)
    np.testing.assert_array_equal(copy.draws()["components"], fitted._chains[0].draws()["components"])


def fitted_so_far(counts, steps=9):
    source = CountBlocks([counts], shard_tokens=3000)
    return BayesianLDA(**PARAMS, callbacks=lambda _, now: now >= steps).fit(source).set_params(callbacks=None)


def test_interrupted_fit_goes_on(counts, fitted):
    def press(_, step):
        if step == 9:
            os.kill(os.getpid(), signal.SIGINT)

    source = CountBlocks([counts], shard_tokens=3000)
    model = BayesianLDA(**PARAMS, callbacks=press)
    with pytest.raises(FitInterrupted), pytest.warns(UserWarning, match="resume"):
        model.fit(source)
    assert model.n_iter_ < 24
    assert same(model.set_params(callbacks=None).resume(source), fitted)


def test_held_out_documents_are_a_matrix(counts):
    source = CountBlocks([counts])
    model = BayesianLDA(**PARAMS, callbacks=HeldOutScore(counts[:20], every=8)).fit(source)
    assert len(model.trace_["score"]) == 3
    with pytest.raises(TypeError, match="needs a matrix in memory"):
        BayesianLDA(**PARAMS, callbacks=HeldOutScore(source, every=8)).fit(source)


def test_progress_tells_shards_and_tokens_a_second(counts, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    BayesianLDA(**PARAMS, verbose=1).fit(CountBlocks([counts], shard_tokens=3000))
    assert re.search(r"step 24 of 24, shard 6 of 6, [\d.]+ million tokens/s", capsys.readouterr().out)


def test_a_checkpoint_continues(counts, fitted, tmp_path):
    path = tmp_path / "model.joblib"
    source = CountBlocks([counts], shard_tokens=3000)
    BayesianLDA(**PARAMS, callbacks=[Checkpoint(path, seconds=0), lambda _, now: now >= 9]).fit(source)
    assert same(load_checkpoint(path).resume(source), fitted)


def test_stream_of_blocks_is_that_of_its_blocks(counts):
    one, other = (BayesianLDA(3, random_state=0) for _ in range(2))
    one.partial_fit(CountBlocks([counts[:100], counts[100:]]))
    other.partial_fit(counts[:100]).partial_fit(counts[100:])
    assert same(one, other)


def test_stream_may_follow(counts, fitted):
    model = pickle.loads(pickle.dumps(fitted)).partial_fit(counts[:80])
    assert model.n_samples_seen_ == 320
    assert model.perplexity(counts) < 1.1 * fitted.perplexity(counts)


def test_weights_seeds_and_chains(counts):
    beta = np.full((3, 60), 0.1)
    beta[1, :5] = 5.0
    half = counts * 0.5
    model = BayesianLDA(3, topic_word_prior=beta, n_iter=10, n_chains=2, random_state=0)
    model.fit(CountBlocks([half[:100], half[100:]], shard_tokens=2000))
    chain = model._chains[0]
    assert chain.collapsed.counts.sum() == pytest.approx(half.sum())
    beside = BayesianLDA(3, topic_word_prior=beta, n_iter=10, n_chains=2, n_jobs=4, random_state=0)
    assert same(beside.fit(CountBlocks([half[:100], half[100:]], shard_tokens=2000)), model)
    assert model.samples_["components"].shape == (2, 5, 3, 60)
    assert np.isfinite(model.perplexity(half))


@pytest.mark.skipif(sys.platform != "linux", reason="/proc as Linux has it")
@pytest.mark.parametrize("n_chains", [1, 2])
@pytest.mark.parametrize("model", [BayesianLDA, GammaProcessTopicModel])
def test_temporary_files_go_when_the_fit_ends(model, n_chains, counts, tmp_path, uncollected):
    source = CountBlocks([counts], folder=tmp_path, shard_tokens=3000)
    model = model(**PARAMS, n_chains=n_chains, n_jobs=2, callbacks=lambda _, step: step == 9).fit(source)
    assert mapped_files(tmp_path)
    model.set_params(callbacks=None).resume(source)
    assert not mapped_files(tmp_path)


def test_empty_documents_and_shards(counts):
    nothing = sparse.csr_array((5, 60))
    model = BayesianLDA(**PARAMS).fit(CountBlocks([nothing, counts[:3], nothing], shard_tokens=20))
    assert np.all(np.isfinite(model.components_))
    assert np.all(np.isfinite(BayesianLDA(**PARAMS).fit(CountBlocks([nothing])).components_))


# ------------------------------------------------------------------------------------------------------------ refusals


def test_other_samplers_are_refused_before_blocks_are_read():
    def unread():
        raise AssertionError("the blocks are read")

    for params in ({"sampler": SCIR()}, {"batch_size": 10}, {"total_samples": 100}):
        with pytest.raises(ValueError, match=r"SCIR reads minibatches .* partial_fit"):
            BayesianLDA(**params).fit(CountBlocks(unread))


def test_chains_in_other_processes_are_refused(counts):
    with joblib.parallel_config("loky"), pytest.raises(ValueError, match="n_chains=2 over CountBlocks share"):
        BayesianLDA(**PARAMS, n_chains=2, n_jobs=2).fit(CountBlocks([counts]))


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="files cannot be reserved here")
@pytest.mark.parametrize("full", ["at first", "meanwhile"])
def test_a_full_disk_is_an_error_before_anything_is_written(full, counts, tmp_path, monkeypatch):
    """Python is killed if it writes to a mapped file for which the disk has no room."""
    if full == "at first":
        room = shutil.disk_usage(tmp_path)._replace(free=6 * int(counts.sum()))
        monkeypatch.setattr(shutil, "disk_usage", lambda path: room)
    else:

        def refuse(*args):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(ValueError, match=r"GiB are free in .*name a folder with more room"):
        BayesianLDA(**PARAMS, n_chains=2).fit(CountBlocks([counts], folder=tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="files cannot be reserved here")
def test_files_have_their_blocks_before_they_are_written(tmp_path, monkeypatch):
    found, reserve = [], os.posix_fallocate

    def look(descriptor, *args):
        reserve(descriptor, *args)
        found.append(os.fstat(descriptor))

    monkeypatch.setattr(os, "posix_fallocate", look)
    array = Scratch(tmp_path, 0).new(np.float64, 100_000)
    array[:] = 1.0
    assert found[0].st_size == 800_000 <= 512 * found[0].st_blocks


@pytest.mark.skipif(sys.platform != "linux", reason="/proc as Linux has it")
@pytest.mark.parametrize("cls", [BayesianLDA, DMRTopicModel])
def test_files_have_no_name_that_a_killed_process_could_leave(cls, counts, tmp_path, uncollected):
    seen = []

    def look(estimator, step):
        seen.append((list(tmp_path.iterdir()), mapped_files(tmp_path)))

    metadata = {"metadata": pd.DataFrame({"x": np.arange(counts.shape[0])})} if cls is DMRTopicModel else {}
    model = cls(**PARAMS, callbacks=look).fit(CountBlocks([counts], folder=tmp_path), **metadata)
    assert seen[0][0] == [] and seen[0][1] >= 3
    assert not mapped_files(tmp_path) and model.n_iter_ == PARAMS["n_iter"]


class Unread:
    """A folder's room that must not be asked for: what is refused before anything is written."""

    def __init__(self, *args):
        raise AssertionError("a file is made")


@pytest.mark.parametrize("where", ["one block", "all blocks", "one of many"])
def test_counts_repeated_so_often_are_refused_before_anything_is_written(where, counts, tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "Scratch", Unread)
    monkeypatch.setattr(documents, "available_memory", lambda: np.inf)
    few = sparse.csr_array(np.full((3, 60), 3e8))
    blocks = {
        "one block": [few], "all blocks": [sparse.csr_array(np.full((3, 60), 1e5))] * 3,
        "one of many": [*[counts] * 300, few],
    }[where]  # fmt: skip
    name = {"one block": "block 0", "all blocks": "X", "one of many": "block 300"}[where]
    with pytest.raises(ValueError, match=rf"^{name} holds .* entries that are not zero.*Scale its counts down"):
        BayesianLDA(**PARAMS).fit(CountBlocks(blocks, folder=tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_block_that_does_not_fit_in_memory_is_refused_by_name(counts, monkeypatch):
    monkeypatch.setattr(documents, "_MANY_TOKENS", 100)
    monkeypatch.setattr(documents, "available_memory", lambda: 4 * counts.sum() / 2)
    with pytest.raises(ValueError, match=r"^block 1 holds .*Pass smaller blocks"):
        BayesianLDA(**PARAMS).fit(CountBlocks([counts[:5], counts]))


def test_counts_above_64_bits_in_all_are_many_tokens():
    assert CountBlocks([sparse.csr_array(np.full((40, 60), 2.0**53))]).n_tokens == 2400 * 2**53


def test_rows_of_length_one_warn_as_in_memory(counts):
    unit = sparse.csr_array(counts.multiply(1.0 / counts.sum(axis=1)[:, None]))
    for X in (unit, CountBlocks([unit[:80], unit[80:80], unit[80:]])):
        with pytest.warns(UserWarning, match="All rows of X have length 1, as tf-idf rows do"):
            BayesianLDA(**PARAMS).fit(X)


class OnlyInMemory(BayesianLDA):
    _takes_blocks = False


def test_models_that_need_a_matrix_are_refused_by_name(counts):
    with pytest.raises(TypeError, match="OnlyInMemory does not take CountBlocks"):
        OnlyInMemory().fit(CountBlocks([counts]))


# ------------------------------------------------------------------------------------------------ the gamma process


def test_gamma_process_over_shards_is_calibrated(global_random_seed):
    ranks = tiny_gamma_process.ranks(global_random_seed, 60, "gibbs", shard_tokens=4)
    assert calibration.p_values(ranks).min() > 1e-5


@pytest.mark.parametrize("sampler", [None, "sghmc"])
def test_gamma_process_finds_the_topics_of_a_fit_in_memory(sampler, counts):
    arguments = {"n_components": 20, "sampler": sampler, "n_iter": 100, "random_state": 0}
    source = CountBlocks([counts[:100], counts[100:]], shard_tokens=3000)
    whole, blocks = GammaProcessTopicModel(**arguments).fit(counts), GammaProcessTopicModel(**arguments).fit(source)
    assert blocks.perplexity(source) < 1.01 * whole.perplexity(counts)
    assert abs(blocks.n_topics_ - whole.n_topics_) <= 1
    assert same(GammaProcessTopicModel(**arguments, n_jobs=2).fit(CountBlocks([counts], shard_tokens=3000)), blocks)
    stream = pickle.loads(pickle.dumps(blocks)).partial_fit(source)
    assert stream.perplexity(counts) < 1.1 * whole.perplexity(counts)


def test_other_width_is_refused_as_everywhere(counts, fitted):
    with pytest.raises(ValueError, match="X has 50 features, but BayesianLDA is expecting 60"):
        fitted.transform(CountBlocks([counts[:, :50]]))
