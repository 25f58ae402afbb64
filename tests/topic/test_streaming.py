"""BayesianLDA on streams: `partial_fit`, documents counted, words that appear later."""

import pickle
import signal
import warnings

import joblib
import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.chains import chain as chain_module
from sk_sgmcmc.datasets import CountBlocks, make_lda
from sk_sgmcmc.metrics import hellinger_distances
from sk_sgmcmc.samplers import SGHMC, SGRLD
from sk_sgmcmc.topic._counts.vocabulary import with_new_words
from sk_sgmcmc.topic._minibatch import chain as minibatch_chain
from sk_sgmcmc.topic._minibatch import updates as _stream
from sk_sgmcmc.topic._minibatch.chain import MinibatchChain
from sk_sgmcmc.utils import Corpus
from tests.common.compare import PressCtrlC, assert_same_draws, interrupted
from tests.common.instances import LDA
from tests.conftest import importorskip


@pytest.fixture(scope="module")
def planted():
    data = make_lda(4200, 150, 4, document_length=60, doc_topic_prior=0.2, topic_word_prior=0.1, random_state=5)
    return data.counts[:4000], data.counts[4000:]


def stream(model, X, size=200):
    for start in range(0, X.shape[0], size):
        model.partial_fit(X[start : start + size])
    return model


PARAMS = {"n_components": 4, "topic_word_prior": 0.1, "doc_topic_prior": 0.2, "random_state": 0}


@pytest.mark.parametrize("total", [None, 4000])
@pytest.mark.filterwarnings("ignore:total_samples=4000 is more than ten times")
def test_a_stream_comes_near_to_fit(planted, total):
    X, test = planted
    at_once = BayesianLDA(**PARAMS, n_iter=60).fit(X).perplexity(test)
    model = stream(BayesianLDA(**PARAMS, batch_size=50, total_samples=total), X)
    assert model.n_samples_seen_ == 4000 and model.n_iter_ == 80
    assert model.perplexity(test) < 1.06 * at_once
    early = stream(BayesianLDA(**PARAMS, batch_size=50, total_samples=total), X[:200])
    assert model.perplexity(test) < early.perplexity(test)


def test_a_stream_is_the_same_each_time_and_for_any_n_jobs_and_after_a_file(planted, tmp_path):
    X = planted[0][:600]
    params = {**PARAMS, "n_chains": 2, "batch_size": 50}
    model = stream(BayesianLDA(**params), X)
    assert_same_draws(model, stream(BayesianLDA(**params, n_jobs=3), X))
    part = stream(BayesianLDA(**params), X[:400])
    joblib.dump(part, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    assert_same_draws(model, again.partial_fit(X[400:]))
    # Looking in between changes nothing.
    looked = BayesianLDA(**params)
    for start in range(0, 600, 200):
        looked.partial_fit(X[start : start + 200]).transform(X)
        looked.score(X)
    assert_same_draws(model, looked)


def test_a_young_stream_begins_anew_from_all_its_documents_until_they_are_many(planted, monkeypatch):
    X, test = planted
    monkeypatch.setattr(_stream, "START_TOKENS", X[:400].sum())
    model, begun, last, expected = BayesianLDA(**PARAMS, batch_size=20), [], 0, []
    for start in range(0, 800, 40):
        topics = None if start == 0 else model.components_.copy()
        model.partial_fit(X[start : start + 40])
        steps = np.array(model._chains[0].kept_steps)
        begun.append(steps[0] == 2 * len(begun) + 1)
        if begun[-1]:
            assert len(steps) == 2  # draws from before do not count
            assert (model._young.corpus.to_csr() != X[: start + 40]).nnz == 0
        if start >= 120:  # the topics keep their numbers
            distance = np.sqrt(((np.sqrt(topics)[:, None] - np.sqrt(model.components_)[None]) ** 2).sum(axis=2))
            np.testing.assert_array_equal(distance.argmin(axis=1), np.arange(4))
        tokens = X[: start + 40].sum()
        expected.append(tokens >= 1.25 * last and start <= 400)
        last = tokens if expected[-1] else last
    assert begun == expected and sum(begun) >= 7
    assert model._young is None
    at_once = BayesianLDA(**PARAMS, n_iter=60).fit(X[:800]).perplexity(test)
    assert model.perplexity(test) < 1.06 * at_once


def test_a_young_stream_starts_anew_when_it_has_doubled_and_continues_in_between(monkeypatch):
    X = sparse.csr_array(np.random.default_rng(0).multinomial(100, np.full(60, 1 / 60), size=200))
    made, swept = [], minibatch_chain.swept

    def recorded(collapsed, shard, doc_prior, rng, after_pass, restart, before):
        z = collapsed.z.copy()
        made.append((shard.n_docs, restart, z))
        return swept(collapsed, shard, doc_prior, rng, after_pass, restart, before)

    monkeypatch.setattr(minibatch_chain, "swept", recorded)
    model = BayesianLDA(3, sampler="scir", batch_size=20, random_state=0)
    for start in range(0, 200, 20):
        before = model._chains[0].swept if start else None
        model.partial_fit(X[start : start + 20])
        n_docs, restart, z = made[-1]
        if n_docs == start + 20 and restart.again:  # the documents so far keep their topics
            np.testing.assert_array_equal(z[: before.z.size], before.z)
            assert z.size > before.z.size
    assert [(n, restart.again) for n, restart, _ in made] == [
        (20, False), (40, False), (60, True), (80, False), (100, True), (140, True), (180, False)
    ]  # fmt: skip
    assert made[2][1].n_sweeps == 12 and made[3][1].n_sweeps == 60


@pytest.mark.parametrize(("n_tokens", "n_sweeps"), [(0, 60), (200_000, 60), (450_000, 40), (5_000_000, 30)])
def test_restarts_of_many_tokens_make_fewer_sweeps(n_tokens, n_sweeps):
    assert _stream.restart_of(n_tokens) == (n_sweeps, False)


def test_a_growing_corpus_of_many_tokens_begins_with_new_assignments_when_it_has_tripled(monkeypatch):
    X = sparse.csr_array(np.random.default_rng(0).multinomial(100, np.full(60, 1 / 60), size=200))
    made, swept = [], minibatch_chain.swept

    def recorded(collapsed, shard, doc_prior, rng, after_pass, restart, before):
        made.append((shard.n_docs, restart.again))
        return swept(collapsed, shard, doc_prior, rng, after_pass, restart, before)

    monkeypatch.setattr(minibatch_chain, "swept", recorded)
    monkeypatch.setattr(_stream, "_MANY_TOKENS", 3_000)
    model = BayesianLDA(3, sampler="scir", batch_size=20, random_state=0)
    for start in range(0, 200, 20):
        model.partial_fit(X[start : start + 20])
    assert [n_docs for n_docs, again in made if not again] == [20, 40, 140]
    assert [n_docs for n_docs, again in made if again] == [60, 80, 100, 180]


def test_one_block_larger_than_a_start_needs_is_not_kept(planted, monkeypatch):
    X = planted[0]
    monkeypatch.setattr(_stream, "START_TOKENS", X[:300].sum())
    model = BayesianLDA(**PARAMS, sampler="scir").partial_fit(X[:400])
    assert model._young is None
    assert model.partial_fit(X[400:500])._chains[0].restart_due is None
    assert BayesianLDA(**PARAMS).fit(X[:100]).partial_fit(X[100:200])._young is None


def test_what_a_document_prior_learns_from_fresh_assignments_is_that_of_one_draw(planted):
    # Of a mean of draws it would be spread over more topics: 0.26 to 0.28 each here, where the truth is 0.2.
    model = BayesianLDA(**{**PARAMS, "doc_topic_prior": "auto"}, assignments="fresh", n_iter=150).fit(planted[0][:1000])
    assert np.all(np.abs(model.doc_topic_prior_ / 0.2 - 1.0) < 0.25)


def test_an_interrupted_block_is_resumed(planted):
    X = planted[0][:400]
    model = BayesianLDA(**PARAMS, batch_size=20).partial_fit(X[:200])
    with interrupted():
        model.set_params(callbacks=PressCtrlC(15)).partial_fit(X[200:])
    assert model.n_iter_ == 15 and model.score(X) < 0
    model.set_params(callbacks=None).resume(X[200:])
    assert_same_draws(stream(BayesianLDA(**PARAMS, batch_size=20), X), model)


def test_the_last_of_several_blocks_is_resumed(planted):
    X = planted[0][:400]
    blocks = CountBlocks([sparse.csr_array(X[:200]), sparse.csr_array(X[200:])])
    model = BayesianLDA(**PARAMS, batch_size=20, callbacks=PressCtrlC(15))
    with interrupted():
        model.partial_fit(blocks)
    model.set_params(callbacks=None).resume(blocks)
    assert_same_draws(stream(BayesianLDA(**PARAMS, batch_size=20), X), model)


@pytest.mark.parametrize("case", [case for case in LDA if case.streams], ids=lambda case: case.id)
def test_partial_fit_goes_on_after_fit(case, planted):
    X, test = planted
    fitted = case.new(n_components=4, topic_word_prior=0.1, n_iter=60, batch_size="auto").fit(X[:500])
    before = fitted.perplexity(test)
    topics = fitted.components_.copy()
    stream(fitted, X[500:1500])
    assert fitted.n_samples_seen_ == 1500
    assert fitted.perplexity(test) < 1.08 * before
    # The topics keep their numbers.
    distance = np.sqrt(((np.sqrt(topics)[:, None] - np.sqrt(fitted.components_)[None]) ** 2).sum(axis=2))
    np.testing.assert_array_equal(distance.argmin(axis=1), np.arange(4))
    for _ in range(3):
        fitted.partial_fit(X[:1])  # a block of one document
    assert np.all(np.isfinite(fitted.components_))


@pytest.mark.parametrize("sampler", [None, "scir"])
def test_a_stream_uses_draws_of_the_fit_until_it_has_enough(planted, sampler):
    X, test = planted
    model = BayesianLDA(**PARAMS, sampler=sampler, n_iter=100, n_chains=2).fit(X[:500])
    fitted, before = model.samples_["components"], model.perplexity(test)
    model.set_params(sampler="scir", batch_size=20).partial_fit(X[500:520])
    draws = model.samples_["components"]
    assert draws.shape[1] == 21
    assert np.all(np.isin(draws[0, :-1, 0, 0], fitted[0, :, 0, 0])) and draws[0, -1, 0, 0] not in fitted[0, :, 0, 0]
    np.testing.assert_allclose(model.components_, draws[model.reference_chain_].mean(axis=0), atol=1e-6)
    assert model.perplexity(test) < 1.01 * before
    assert stream(model, X[520:880], 20).samples_["components"].shape[1] == 39  # 19 of its own
    for n_own in (20, 21):
        model.partial_fit(X[:20])
        assert model.samples_["components"].shape[1] == n_own


def test_a_stream_after_a_fit_keeps_its_draws_when_words_are_added():
    X = np.random.default_rng(0).poisson(1.0, (60, 6))
    frame = importorskip("pandas").DataFrame(X, columns=list("abcdef"))
    model = BayesianLDA(**PARAMS, new_features="extend", n_iter=40).fit(frame[list("abcd")])
    model.set_params(sampler="scir").partial_fit(frame)
    assert model.samples_["components"].shape == (1, 21, 4, 6)
    np.testing.assert_allclose(model.samples_["components"].sum(axis=-1), 1.0, rtol=1e-5)


def test_a_stream_longer_than_the_buffer_keeps_evenly_spaced_late_draws(planted, monkeypatch):
    X = planted[0]
    monkeypatch.setattr(chain_module, "MAX_AUTO_DRAWS", 7)
    model = BayesianLDA(**PARAMS, batch_size=20, init="random")  # which never begins anew
    for n_blocks in range(1, 60):
        model.partial_fit(X[20 * n_blocks : 20 * n_blocks + 20])
        chain = model._chains[0]
        steps = np.array(chain.kept_steps)
        assert model.n_iter_ == n_blocks and 1 <= len(steps) <= 7
        assert len(set(np.diff(steps))) <= 1 and steps[-1] > n_blocks - chain.plan.stride
        used = steps[chain.plan.used(steps)]
        assert model.samples_["components"].shape[1] == len(used) >= 1
        assert np.all(used[:-1] > 0.5 * steps[-1])
    assert chain.plan.stride == 8  # 59 steps, room for 7
    np.testing.assert_allclose(model.samples_["components"].sum(axis=-1), 1, rtol=1e-5)


def test_a_total_that_is_far_off_warns_once(planted):
    X = planted[0][:100]
    model = BayesianLDA(**PARAMS, total_samples=10**6)
    with pytest.warns(UserWarning, match="total_samples=1000000 is more than ten times off the 100 documents"):
        model.partial_fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X)  # once is enough
        BayesianLDA(**PARAMS, total_samples=900).partial_fit(X)
        BayesianLDA(**PARAMS).partial_fit(X)
    with pytest.warns(UserWarning, match="ten times"):
        BayesianLDA(**PARAMS, total_samples=5).partial_fit(X)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_the_warning_of_a_total_points_at_the_caller(planted, method):
    with pytest.warns(UserWarning, match="total_samples=1000000 is more than ten times") as caught:
        getattr(BayesianLDA(**PARAMS, total_samples=10**6, n_iter=4), method)(planted[0][:100])
    assert [warning.filename for warning in caught] == [__file__]


def test_total_samples_is_what_counts_are_scaled_to(planted):
    X = planted[0][:200]
    with pytest.warns(UserWarning, match="ten times"):
        model = stream(BayesianLDA(**PARAMS, total_samples=10**5, batch_size=200), X[np.arange(200).repeat(20)])
    cells = model._chains[0].topics.mass.sum()
    expected = X.sum() / 200 * 1e5 + 0.1 * 150 * 4
    assert 0.7 < cells / expected < 1.3


# ------------------------------------------------------------------------------------- parameters set in between

NATURAL, MEAN = SGRLD(parameterization="expanded-natural"), SGRLD(parameterization="reduced-mean")


@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "before, after",
    [
        ("scir", MEAN), ("sgrld", MEAN), ("sgrld", "scir"), (NATURAL, SGRLD(parameterization="reduced-natural")),
        ("sghmc", SGHMC(scheme="euler")), ("sghmc", SGHMC(mass=np.ones(600))),
    ],
    ids=str,
)  # fmt: skip
def test_chains_do_not_go_on_in_other_coordinates(planted, begin, before, after):
    X = planted[0][:60]
    params = {**PARAMS, "topic_word_prior": 1.0, "n_iter": 2}
    model = getattr(BayesianLDA(**params, sampler=before), begin)(X)
    with pytest.raises(ValueError, match=r"(?i)cannot (go on|continue)"):
        model.set_params(sampler=after).partial_fit(X)
    model.set_params(sampler=before).partial_fit(X)


@pytest.mark.parametrize("sampler", ["scir", "sgrld", "sghmc"])
def test_a_stream_takes_a_new_step_size_and_new_sweeps(planted, sampler):
    X = planted[0][:60]
    model, old = (BayesianLDA(**PARAMS, sampler=sampler).partial_fit(X) for _ in range(2))
    model.set_params(sampler__step_size=0.003, n_sweeps=(2, 1)).partial_fit(X)
    chain = model._chains[0]
    assert model.sampler_.step_size_(5) == chain.sampler.step_size_(5) == chain.topics.sampler.step_size_(5) == 0.003
    assert chain.minibatch.n_sweeps == (2, 1)
    assert not np.array_equal(model.components_, old.partial_fit(X).components_)
    model.set_params(sampler__step_size="auto", n_sweeps=(5, 5)).partial_fit(X)
    assert model.sampler_.step_size_(5) == old.partial_fit(X).sampler_.step_size_(5)


# -------------------------------------------------------------------------------------------------- new words


@pytest.fixture
def frames(planted):
    pandas = importorskip("pandas")
    names = np.array([f"w{i:03d}" for i in range(150)])
    X = planted[0].toarray()
    early = pandas.DataFrame(X[:400, :90], columns=names[:90])
    late = pandas.DataFrame(X[400:800, 30:][:, ::-1], columns=names[30:][::-1])
    return early, late


def test_a_stream_keeps_its_own_copy_of_a_block(planted):
    X = planted[0][:400].astype(np.float64)
    params = {**PARAMS, "sampler": "scir"}
    expected = BayesianLDA(**params).partial_fit(X).partial_fit(planted[0][400:800])
    refilled = X.copy()
    model = BayesianLDA(**params).partial_fit(refilled)
    refilled.data[:] = 7.0
    assert_same_draws(model.partial_fit(planted[0][400:800]), expected)


@pytest.mark.parametrize("keeps", [True, False])
def test_further_passes_over_the_same_blocks_count_no_document_twice(planted, monkeypatch, keeps):
    X, test = planted[0][:600], planted[1]
    if not keeps:
        monkeypatch.setattr(_stream, "START_TOKENS", X[:100].sum())
    model = stream(BayesianLDA(**PARAMS, batch_size=50), X)
    once, swept = model.perplexity(test), model._chains[0].swept
    for _ in range(2):
        stream(model, X)
        assert model.n_samples_seen_ == 600 == model._chains[0].data.total_samples
        np.testing.assert_array_equal(model.word_counts_, np.asarray(X.sum(axis=0)).ravel())
    assert model.n_iter_ == 36
    assert model.perplexity(test) < 1.005 * once
    if keeps:
        assert (model._young.corpus.to_csr() != X).nnz == 0
        assert model._chains[0].swept.n_averaged > swept.n_averaged  # sweeps went on from where they ended
        pickle.loads(pickle.dumps(model)).partial_fit(X[:200])
    # Without recognition, the third pass would see three times as many documents.
    counted = stream(BayesianLDA(**PARAMS, batch_size=50), sparse.vstack([X, X[::-1], X[100:], X[:100]]).tocsr())
    assert counted.n_samples_seen_ == 1800


def test_a_restart_that_an_interrupt_prevented_stays_due(planted, monkeypatch):
    X, restart = planted[0][:600], MinibatchChain._restart

    def pressing(chain):
        restart(chain)
        signal.raise_signal(signal.SIGINT)

    model = BayesianLDA(**PARAMS, sampler="scir", n_chains=2, n_jobs=1).partial_fit(X[:500]).partial_fit(X[500:])
    monkeypatch.setattr(MinibatchChain, "_restart", pressing)
    with interrupted():
        model.partial_fit(X[:500])
    monkeypatch.undo()
    first, second = model._chains
    assert first.restart_due is None and second.restart_due == _stream.LONGER_RESTART
    assert second.swept.z.size == X[:500].sum()  # further sweeps over all documents cannot begin from these
    model.partial_fit(X[:500])
    assert [chain.restart_due for chain in model._chains] == [None, None]
    assert [chain.swept.z.size for chain in model._chains] == [X.sum(), X.sum()]


def test_a_tiny_block_that_comes_again_is_another_one(planted):
    X = planted[0]
    model = BayesianLDA(**PARAMS, n_iter=20).partial_fit(X[:100]).partial_fit(X[100:101]).partial_fit(X[100:101])
    assert X[100:101].sum() < 100 and model.n_samples_seen_ == 102


def test_a_block_that_comes_again_with_other_metadata_is_another_one(planted):
    X, kind = planted[0][:200], np.arange(200)[:, None] % 2.0
    model = DMRTopicModel(4, n_iter=20, random_state=0).partial_fit(X, metadata=kind).partial_fit(X, metadata=kind)
    assert model.n_samples_seen_ == 200
    assert model.partial_fit(X, metadata=1.0 - kind).n_samples_seen_ == 400


def test_streams_of_fractions_restart_where_whole_counts_do(planted):
    corpora = [Corpus.from_counts(factor * planted[0][:100]) for factor in (1.0, 0.1)]
    streams, restarts = [_stream.YoungStream.begun_with(each) for each in corpora], []
    for _ in range(6):
        after = [stream.after_block(each) for stream, each in zip(streams, corpora, strict=True)]
        restarts.append([restart is not None for _, restart in after])
        streams = [stream for stream, _ in after]
    assert restarts[0] == [True, True] and all(a == b for a, b in restarts)


def test_new_words_read_no_draw_that_is_not_made_yet():
    draws = np.full((3, 2, 4), np.inf)  # whose product with 0 is NaN, with NumPy's warning
    draws[:1] = 0.25
    wider = with_new_words(draws, 1, np.array([[0.2, 0.0], [0.5, 0.5]]))
    np.testing.assert_allclose(wider[0], [[0.2, 0.2, 0.2, 0.2, 0.2, 0.0], [0, 0, 0, 0, 0.5, 0.5]])
    assert wider.shape == (3, 2, 6)


@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
def test_words_that_appear_later_are_added(frames, begin):
    early, late = frames
    model = BayesianLDA(**PARAMS, new_features="extend", batch_size=50, n_iter=40, n_chains=2)
    getattr(model, begin)(early)
    assert model.components_.shape == (4, 90)
    ignored = model.transform(late)  # words not known are left out, missing ones count as 0
    assert ignored.shape == (400, 4) and model.n_features_in_ == 90
    known = late[[name for name in late.columns if name in set(early.columns)]]
    np.testing.assert_array_equal(ignored, model.transform(known))
    first = model.samples_["components"].copy()
    model.partial_fit(late)
    assert model.components_.shape == (4, 150) and model.n_features_in_ == 150
    assert list(model.feature_names_in_[:90]) == list(early.columns)
    assert list(model.feature_names_in_[90:]) == [name for name in late.columns if name not in set(early.columns)]
    np.testing.assert_allclose(model.samples_["components"].sum(axis=-1), 1, rtol=1e-4)
    assert first.shape[-1] == 90
    for _ in range(8):
        model.partial_fit(late)
    place = {name: i for i, name in enumerate(model.feature_names_in_)}
    frequent = late.sum().drop(early.columns, errors="ignore").nlargest(3).index
    rare = model.components_.max(axis=0)
    assert all(rare[place[name]] > 0.004 for name in frequent)
    # Columns in another order give the same answers.
    np.testing.assert_array_equal(model.transform(late), model.transform(late[late.columns[::-1]]))
    assert model.score(late) == model.score(late[late.columns[::-1]])


def test_names_given_to_a_stream_stay_when_words_are_added(frames):
    early, late = frames
    given = [f"the word {name}" for name in early.columns]
    model = BayesianLDA(**PARAMS, new_features="extend").partial_fit(early, feature_names=given).partial_fit(late)
    names = [*given, *model.feature_names_in_[90:]]
    assert set(model.top_words(150, interval=None)["word"]) == set(names) and len(names) == 150


def test_a_word_of_which_no_token_comes_is_added_to_blocks_that_come_again(frames):
    early, _ = frames
    model = BayesianLDA(**PARAMS, sampler="scir", new_features="extend").partial_fit(early).partial_fit(early)
    assert model._young.is_settled
    model.partial_fit(early.assign(new=0))
    assert model.n_samples_seen_ == 400 and model.components_.shape == (4, 91)
    assert model._chains[0].swept.n_averaged > _stream.SWEEPS and np.all(model.components_[:, 90] < 0.01)


def test_sparse_frames_extend_as_dense_ones_do(frames):
    pandas = importorskip("pandas")
    early, late = frames
    dense = BayesianLDA(**PARAMS, new_features="extend").partial_fit(early).partial_fit(late)
    model = BayesianLDA(**PARAMS, new_features="extend")
    for frame in (early, late):
        model.partial_fit(pandas.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(frame), columns=frame.columns))
    assert_same_draws(dense, model)


def test_a_changed_width_is_refused_unless_extended(frames, planted):
    early, late = frames
    model = BayesianLDA(**PARAMS).partial_fit(early)
    before = pickle.dumps(model)
    for method in ("partial_fit", "transform", "score"):
        with pytest.raises(ValueError, match="feature names"):
            getattr(model, method)(late)
    with pytest.warns(UserWarning, match="valid feature names"), pytest.raises(ValueError, match="expecting 90"):
        model.partial_fit(planted[0])
    assert pickle.dumps(model) == before


def test_extending_without_names_says_what_to_pass(frames, planted):
    early, _ = frames
    X = planted[0][:200]
    model = BayesianLDA(**PARAMS, new_features="extend").partial_fit(early)
    with pytest.raises(ValueError, match="needs a DataFrame"):
        model.partial_fit(X)
    model = BayesianLDA(**PARAMS, new_features="extend").partial_fit(X)
    with pytest.raises(ValueError, match="fitted without names"):
        model.partial_fit(early)


def test_a_refused_block_changes_nothing(frames):
    early, late = frames
    model = BayesianLDA(**PARAMS, new_features="extend", n_iter=30).fit(early)
    before = pickle.dumps(model)
    negative = late.copy()
    negative.iloc[3, 0] = -1  # in a column that is new
    missing = late.astype(float)
    missing.iloc[3, 0] = np.nan
    repeated = late.rename(columns={late.columns[0]: late.columns[1]})
    text = late.astype(object)
    text.iloc[0, 0] = "many"
    for wrong, message in (
        (negative, "Negative"), (missing, "NaN"), (repeated, "repeated"), (text, "many"), (late[:0], "0 sample"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            model.partial_fit(wrong)
        assert pickle.dumps(model) == before
    for params, message in (
        ({"n_components": 5}, "n_components=5"), ({"n_chains": 2}, "n_chains=2"),
        ({"n_sweeps": (1, 0)}, "n_sweeps"), ({"topic_word_prior": np.ones(90)}, "one number"),
        ({"burn_in": -1}, "burn_in"),
    ):  # fmt: skip
        changed = pickle.loads(before).set_params(**params)
        state = pickle.dumps(changed)
        with pytest.raises(ValueError, match=message):
            changed.partial_fit(late)
        assert pickle.dumps(changed) == state


def test_a_block_whose_tokens_are_too_many_adds_no_word(frames):
    early, late = frames
    model = BayesianLDA(**PARAMS, new_features="extend", n_iter=30).fit(early)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"tokens, its largest entry being .* scale its counts down"):
        model.partial_fit(late * 1e10)
    assert pickle.dumps(model) == before
    assert model.partial_fit(late).components_.shape == (4, 150)


@pytest.mark.parametrize("then", ["scir", "sgrld"])
def test_a_collapsed_fit_goes_on_as_a_stream(frames, then):
    early, _ = frames
    model = BayesianLDA(**PARAMS, n_iter=40).fit(early)
    before = model.components_
    model.set_params(sampler=then).partial_fit(early)
    assert type(model.sampler_).__name__ == then.upper()
    assert hellinger_distances(before, model.components_).diagonal().max() < 0.3
    with pytest.raises(ValueError, match="cannot go on as a stream"):
        model.set_params(sampler="gibbs").partial_fit(early)


def test_a_pass_reads_every_document_of_a_block_once(monkeypatch):
    from sk_sgmcmc.topic._minibatch.chain import MinibatchChain

    read, step = [], MinibatchChain.one_step
    monkeypatch.setattr(MinibatchChain, "one_step", lambda self, docs: (read.extend(docs), step(self, docs)))
    X = make_lda(n_samples=90, n_features=30, n_components=3, random_state=0).counts
    for n_batch in (60, "auto"):
        read.clear()
        BayesianLDA(3, sampler="scir", batch_size=n_batch, random_state=0).partial_fit(X)
        assert sorted(read) == list(range(90))


def test_documents_of_fit_that_come_again_warn():
    X = make_lda(60, 30, 3, random_state=0).counts
    model = BayesianLDA(3, n_iter=20, random_state=0).fit(X).set_params(sampler="scir")
    with pytest.warns(UserWarning, match="the documents that fit was given, which count twice"):
        model.partial_fit(X)
