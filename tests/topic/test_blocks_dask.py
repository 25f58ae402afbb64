"""Corpora in blocks on Dask: the same draws as on this machine, also when workers are lost."""

import asyncio
import os
import pickle
import signal
import time
from itertools import pairwise

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from sk_sgmcmc import BayesianLDA, DMRTopicModel, GammaProcessTopicModel, StructuralTopicModel
from sk_sgmcmc.datasets import CountBlocks, make_lda
from sk_sgmcmc.exceptions import WorkersLostError
from sk_sgmcmc.topic._counts import dask_shards
from sk_sgmcmc.utils import _futures
from tests.common.clusters import TIMEOUT, forked_workers, new_cluster
from tests.conftest import importorskip

distributed = importorskip("distributed")
dask = importorskip("dask")
da = importorskip("dask.array")

pytestmark = [pytest.mark.xdist_group("dask"), pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed")]
PARAMS = {"n_components": 3, "n_iter": 8, "random_state": 0}
LONGER = {**PARAMS, "n_iter": 14}


def in_this_process(**kwargs):
    return distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50, **kwargs
    )


@pytest.fixture(scope="module", autouse=True)
def no_scheduler_is_left_behind():
    """A client whose cluster was killed leaves its scheduler as Dask's default."""
    yield
    dask.config.config.pop("scheduler", None)


@pytest.fixture(scope="module", autouse=True)
def workers_start_in_a_moment():
    with forked_workers():
        yield


@pytest.fixture
def client(two_dask_workers):
    with distributed.Client(two_dask_workers, timeout=TIMEOUT) as client:
        client.wait_for_workers(2, timeout=TIMEOUT)
        yield client


@pytest.fixture(scope="module")
def counts():
    return sparse.csr_array(make_lda(n_samples=240, n_features=60, n_components=3, random_state=0).counts)


def blocks_of(counts):
    return [counts[:7], counts[7:7], counts[7:100], counts[100:]]


@pytest.fixture(scope="module")
def local(counts):
    return BayesianLDA(**PARAMS).fit(CountBlocks([counts], shard_tokens=3000))


@pytest.fixture(scope="module")
def local_longer(counts):
    return BayesianLDA(**LONGER).fit(CountBlocks([counts], shard_tokens=3000))


def same(a, b):
    return all(np.array_equal(a.samples_[name], b.samples_[name]) for name in a.samples_) and np.array_equal(
        a.components_, b.components_
    )


def dask_array(counts):
    parts = [dask.delayed(part) for part in blocks_of(counts)]
    arrays = [da.from_delayed(p, shape=(np.nan, 60), meta=sparse.csr_array((0, 60)), dtype=float) for p in parts]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def on_dask(model):
    return type(model._chains[0].data._make).__name__ == "partial"


def test_two_processes_give_the_draws_of_one(client, counts, local, tmp_path):
    paths = [tmp_path / f"{i}.npz" for i in range(4)]
    for path, part in zip(paths, blocks_of(counts), strict=True):
        sparse.save_npz(path, part)
    for blocks in (paths, blocks_of(counts), lambda: iter(blocks_of(counts)), dask_array(counts)):
        model = BayesianLDA(**PARAMS).fit(CountBlocks(blocks, shard_tokens=3000))
        assert on_dask(model) and same(model, local)


def test_nothing_is_left_on_the_cluster(client, counts, monkeypatch):
    monkeypatch.setattr(_futures, "_POLL_SECONDS", 0.01)  # so that waiting is in vain, as it is in long rounds
    model = BayesianLDA(**PARAMS, n_chains=2).fit(CountBlocks(blocks_of(counts), shard_tokens=3000))
    for _ in range(100):  # the client tells what it needs no more in the background
        left = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))
        if not left:
            break
        time.sleep(0.1)
    assert on_dask(model) and not left


def test_chains_in_threads_share_the_workers(client, counts):
    source, arguments = CountBlocks(blocks_of(counts), shard_tokens=3000), {**PARAMS, "n_chains": 2, "n_jobs": 2}
    model = BayesianLDA(**arguments).fit(source)
    assert on_dask(model)
    client.close()
    assert same(BayesianLDA(**arguments).fit(source), model)


def test_places_follow_threads_and_may_be_none():
    assert dask_shards.places_of({"a": 2, "b": 1}, 6) == ["a", "a", "a", "a", "b", "b"]
    assert dask_shards.places_of({}, 2) == [None, None]


def test_weighted_tokens(client, counts):
    half = CountBlocks([0.5 * counts[:80], counts[80:]], shard_tokens=3000)
    model = BayesianLDA(**PARAMS).fit(half)
    client.close()
    assert same(BayesianLDA(**PARAMS).fit(half), model)


def test_the_gamma_process(client, counts):
    source, arguments = CountBlocks([counts], shard_tokens=3000), {"n_components": 9, "n_iter": 8, "random_state": 0}
    model = GammaProcessTopicModel(**arguments).fit(source)
    assert on_dask(model)
    client.close()
    assert same(GammaProcessTopicModel(**arguments).fit(source), model)


ENDS = (0, 7, 7, 100, 240)  # of `blocks_of`


def columns():
    """Metadata of the 240 documents."""
    party = np.array(["whig", "tory", "free soil"])[np.arange(240) % 3]
    return {"party": list(party), "year": list(1900.0 + np.arange(240) % 20)}


def test_regression_on_metadata(client, counts):
    blocks, years = CountBlocks(blocks_of(counts), shard_tokens=3000), np.array(columns()["year"])[:, None]
    tables = [{name: values[start:stop] for name, values in columns().items()} for start, stop in pairwise(ENDS)]
    model = DMRTopicModel(**PARAMS).fit(blocks, metadata=tables)
    rows = da.from_array(years, chunks=((7, 93, 140), 1))
    X = da.from_array(counts, chunks=((7, 93, 140), -1), asarray=False)
    of_years = DMRTopicModel(**PARAMS).fit(X, metadata=rows)
    assert on_dask(model) and of_years.score(X, metadata=rows) == of_years.score(counts, metadata=years)
    np.testing.assert_array_equal(of_years.predict_prevalence(rows), of_years.predict_prevalence(years))
    with pytest.raises(ValueError, match="metadata of block 0 has 7 rows, but block 0 holds 100 documents"):
        DMRTopicModel(**PARAMS).fit(X.rechunk({0: (100, 140)}), metadata=rows)
    by_party = model.effects("party")["low"]  # From counts of documents that the workers have sent.
    client.close()
    here = DMRTopicModel(**PARAMS).fit(blocks, metadata=columns())
    assert same(here, model) and np.array_equal(here.effects("party")["low"], by_party)
    assert same(DMRTopicModel(**PARAMS).fit(CountBlocks([counts]), metadata=years), of_years)


KEYWORDS = {"keywords": {"A": ["w3", "w4"]}}


@pytest.mark.parametrize("more", [{"content": "party"}, KEYWORDS, {"content": "party", **KEYWORDS}])
def test_words_by_group_and_keywords(more, client, counts):
    model = StructuralTopicModel(**PARAMS, formula="~ 1", **more)
    names = [f"w{j}" for j in range(60)]
    blocks, given = CountBlocks(blocks_of(counts), shard_tokens=3000), {"feature_names": names}
    tables = [{"party": columns()["party"][start:stop]} for start, stop in pairwise(ENDS)]
    there = clone(model).fit(blocks, metadata=tables, **given)
    assert on_dask(there)
    assert there.score(dask_array(counts), metadata=tables) == there.score(counts, metadata=columns())
    if model.content:
        with pytest.raises(ValueError, match="other than those of fit"):
            there.transform(dask_array(counts))
    client.close()
    here = clone(model).fit(CountBlocks([counts], shard_tokens=3000), metadata=columns(), **given)
    assert same(here, there)
    np.testing.assert_array_equal(here.transform(counts, metadata=columns()), there.transform(counts))


def test_metadata_in_a_dask_frame(client, counts):
    pandas, dd = importorskip("pandas"), importorskip("dask.dataframe")
    table, blocks = pandas.DataFrame(columns()), CountBlocks(blocks_of(counts), shard_tokens=3000)
    parts = [dask.delayed(table[start:stop]) for start, stop in pairwise(ENDS)]
    lazy = dd.from_delayed(parts, meta=table[:0], verify_meta=False)
    model = DMRTopicModel(**PARAMS).fit(blocks, metadata=lazy)
    assert same(DMRTopicModel(**PARAMS).fit(blocks, metadata=table), model)


def test_chains_side_by_side_through_joblib(client, counts):
    arguments = {**PARAMS, "n_chains": 2}
    here = BayesianLDA(**arguments).fit(counts)
    with joblib.parallel_config("dask", wait_for_workers_timeout=TIMEOUT):
        there = BayesianLDA(**arguments, n_jobs=2).fit(counts)
    assert same(there, here)


def test_a_dask_array_is_taken_as_it_is(client, counts):
    X = dask_array(counts)
    model = BayesianLDA(**PARAMS).fit(X)
    assert model.n_samples_seen_ == 240 and on_dask(model)
    assert model.score(X) == model.score(counts)
    assert BayesianLDA(3, random_state=0).partial_fit(X).n_samples_seen_ == 240


def test_without_a_client_it_runs_here_and_says_so(counts, local):
    with pytest.warns(UserWarning, match="there is no Dask client"):
        model = BayesianLDA(**PARAMS).fit(CountBlocks(dask_array(counts), shard_tokens=3000))
    assert same(model, local)


def test_columns_in_several_chunks_are_refused(counts):
    with pytest.raises(ValueError, match="one chunk of columns"):
        BayesianLDA().fit(da.from_array(np.ones((4, 6)), chunks=(2, 3)))


def test_faulty_blocks_are_named(client, counts, tmp_path):
    with pytest.raises(ValueError, match="smallest entry of block 0 is -"):
        BayesianLDA().fit(dask_array(-counts))
    with pytest.raises(ValueError, match=r"block 1 \('nowhere.npz'\) cannot be read"):
        sparse.save_npz(tmp_path / "a.npz", counts)
        BayesianLDA().fit(CountBlocks([tmp_path / "a.npz", "nowhere.npz"]))
    dense = da.from_array(np.ones((4, 6)), chunks=(2, 6))
    with pytest.raises(TypeError, match=r"block 0 is of type ndarray.*X\.map_blocks\(scipy\.sparse\.csr_array\)"):
        BayesianLDA().fit(dense)
    assert CountBlocks(dense.map_blocks(sparse.csr_array)).shape == (4, 6)
    with pytest.raises(ValueError, match=r"Expected 2D array, got a Dask array of shape \(5,\)"):
        BayesianLDA().fit(da.ones(5))


def test_blocks_that_change_are_noticed_on_workers(client, counts):
    first = [counts[:100], counts[100:]]
    for other, message in [
        ([counts[:100], counts[100:][::-1]], "block 1 has changed"),
        (first[:1], "only 1 of 2 blocks were there"),
        ([*first, counts], "there were more than 2 blocks"),
    ]:
        turns = iter([first, other])
        with pytest.raises(ValueError, match=f"a second time, {message}"):
            BayesianLDA(**PARAMS).fit(CountBlocks(lambda turns=turns: next(turns)))


def test_an_asynchronous_client_is_refused_but_in_a_thread(counts, local):
    source = CountBlocks([counts], shard_tokens=3000)

    async def fit():
        async with in_this_process(asynchronous=True) as cluster, distributed.Client(cluster, asynchronous=True):
            with pytest.raises(TypeError, match=r"is asynchronous.*asyncio\.to_thread"):
                BayesianLDA(**PARAMS).fit(source)
            return await asyncio.to_thread(BayesianLDA(**PARAMS).fit, source)

    model = asyncio.run(fit())
    assert on_dask(model) and same(model, local)


def test_a_task_does_not_wait_for_tasks(counts, local):
    source = CountBlocks([counts], shard_tokens=3000)
    with in_this_process() as cluster, distributed.Client(cluster) as client:
        model = client.submit(BayesianLDA(**PARAMS).fit, source).result(timeout=TIMEOUT)
    assert same(model, local) and not on_dask(model)


def test_resume_on_dask_of_a_fit_here(client, counts, local):
    source = CountBlocks([counts], shard_tokens=3000)
    model = BayesianLDA(**PARAMS, callbacks=lambda _, step: step > 5).fit(source)
    copy = pickle.loads(pickle.dumps(model)).set_params(callbacks=None)
    assert same(model.set_params(callbacks=None).resume(source), local)
    client.close()
    assert same(copy.resume(source), local)


def test_a_round_begun_here_ends_there(two_dask_workers, counts, local, monkeypatch):
    from sk_sgmcmc.topic._counts import corpus as corpora

    monkeypatch.setattr(corpora, "_SHARDS_PER_CALL", 2)
    source = CountBlocks([counts], shard_tokens=3000)
    model = BayesianLDA(**PARAMS, callbacks=lambda _, step: step > 5).fit(source).set_params(callbacks=None)
    model._chains[0]._advance(8)
    assert model._chains[0].round.next_shard == 2
    with distributed.Client(two_dask_workers, timeout=TIMEOUT):
        assert same(model.resume(source), local)


class Kill:
    """Kill a worker at these steps."""

    def __init__(self, client, steps):
        self.client, self.steps, self.killed = client, list(steps), 0

    def __call__(self, estimator, step):
        if self.steps and step >= self.steps[0]:
            self.steps.pop(0)
            workers = self.client.run(os.getpid)
            os.kill(next(iter(workers.values())), signal.SIGKILL)
            self.killed += 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX")
def test_workers_killed_at_five_rounds_change_no_draw(counts, local_longer):
    rounds = np.sort(np.random.default_rng(0).choice(np.arange(1, 13), 5, replace=False))
    with new_cluster() as cluster, distributed.Client(cluster, timeout=TIMEOUT) as client:
        kill = Kill(client, rounds)
        model = BayesianLDA(**LONGER, callbacks=kill).fit(CountBlocks(blocks_of(counts), shard_tokens=3000))
    assert kill.killed == 5
    assert same(model, local_longer)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX")
@pytest.mark.parametrize(
    "model, metadata",
    [
        (DMRTopicModel(**LONGER), {"metadata": columns()}),
        (GammaProcessTopicModel(n_components=9, n_iter=14, random_state=0), {}),
        (
            StructuralTopicModel(**LONGER, formula="~ 1", content="party", **KEYWORDS),
            {"metadata": columns(), "feature_names": [f"w{j}" for j in range(60)]},
        ),
    ],
    ids=["coefficients", "weights", "words"],
)
def test_killed_workers_change_no(model, metadata, counts):
    here = clone(model).fit(CountBlocks([counts], shard_tokens=3000), **metadata)
    with new_cluster() as cluster, distributed.Client(cluster, timeout=TIMEOUT) as client:
        kill = Kill(client, [2, 11])
        model.set_params(callbacks=kill).fit(CountBlocks(blocks_of(counts), shard_tokens=3000), **metadata)
    assert kill.killed == 2
    assert same(model, here)


@pytest.mark.slow
def test_workers_that_join_late_change_no_draw(counts, local):
    seen, places = [], []
    with new_cluster(1) as cluster, distributed.Client(cluster, timeout=TIMEOUT) as client:

        def join(estimator, step):
            if step == 3:
                cluster.scale(3)
                client.wait_for_workers(3, timeout=TIMEOUT)
            seen.append(len(client.nthreads()))
            if step < 6:
                places.append(set(estimator._chains[0].data.shards.places))

        model = BayesianLDA(**PARAMS, callbacks=join).fit(CountBlocks(blocks_of(counts), shard_tokens=3000))
    assert seen[0] == 1 and seen[-1] == 3
    assert [len(each) for each in places] == [1, 1, 1, 3, 3]
    assert same(model, local)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX")
def test_without_any_worker_the_last_checkpoint_stays(counts, local_longer, monkeypatch):
    monkeypatch.setattr(_futures, "PATIENCE_SECONDS", 1.0)
    source = CountBlocks(blocks_of(counts), shard_tokens=3000)
    with new_cluster(1) as cluster, distributed.Client(cluster, timeout=TIMEOUT) as client:

        def close(estimator, step):
            if step == 12:
                cluster.scale(0)
                client.sync(cluster._correct_state)

        model = BayesianLDA(**LONGER, callbacks=close)
        with pytest.raises(WorkersLostError, match="after 10 of 14 steps, and resume"):
            model.fit(source)
        assert model.n_iter_ == 10 and model.components_.shape == (3, 60)
        with pytest.raises(WorkersLostError, match="no worker"):
            model.set_params(callbacks=None).resume(source)
    assert same(pickle.loads(pickle.dumps(model)).resume(source), local_longer)
    assert same(model.resume(source), local_longer)
