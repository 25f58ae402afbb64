"""Chains: which draws are kept, and that neither how long a piece runs nor where it runs changes a draw."""

import copy
import os
import pickle
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest

from sk_sgmcmc.chains import chain as chain_module
from sk_sgmcmc.chains import interrupts, run
from sk_sgmcmc.chains.chain import Chain, DrawPlan, StreamPlan
from sk_sgmcmc.chains.interrupts import ignoring_interrupts
from sk_sgmcmc.chains.minibatches import Minibatches, adjacent, every_row, whole
from sk_sgmcmc.chains.run import run_chains
from sk_sgmcmc.dense import chain as dense_chain
from sk_sgmcmc.dense.chain import DenseChain, DenseData
from sk_sgmcmc.exceptions import ChainDivergedError
from sk_sgmcmc.samplers import SCIR, SGRLD
from sk_sgmcmc.targets import DirichletCategorical
from tests.common.compare import run_python


@pytest.mark.parametrize("n_iter, burn_in, thin", [(10, 0.5, 1), (17, 3, 4), (100, 0.25, 7), (5, 0, 5), (9, 0.0, 2)])
def test_plan_keeps_every_thin_th_step_after_burn_in(n_iter, burn_in, thin):
    plan = DrawPlan(n_iter, burn_in, thin)
    n_burn = int(n_iter * burn_in) if isinstance(burn_in, float) else burn_in
    expected = [step for step in range(n_burn + 1, n_iter + 1) if (step - n_burn) % thin == 0]
    assert [step for step in range(1, n_iter + 1) if plan.wants(step)] == expected
    assert plan.n_draws == len(expected)
    for cut in (1, 3, n_iter):  # slots agree with wants, whatever the pieces
        slots = np.concatenate([plan.slots(i, min(i + cut, n_iter)) for i in range(0, n_iter, cut)])
        assert [i + 1 for i in np.flatnonzero(slots >= 0)] == expected
        np.testing.assert_array_equal(slots[slots >= 0], np.arange(len(expected)))
    assert plan.used(expected).all()


@pytest.mark.parametrize("share", [0.29, 0.57, 0.58, 0.07])  # whose products with 100 are a little less or more
def test_a_burn_in_of_so_many_percent_is_as_many_steps(share):
    assert DrawPlan(100, share, 1).n_burn == round(100 * share)


@pytest.mark.parametrize("n_iter", [5000, 5198])
@pytest.mark.parametrize("bytes_per_draw, most", [(0, 100), (10, 100), (2**23, 64), (2**27, 4), (2**40, 1)])
def test_automatic_thinning_keeps_what_memory_holds_and_at_least_a_draw(n_iter, bytes_per_draw, most):
    plan = DrawPlan(n_iter, 0.5, "auto", bytes_per_draw)
    assert 0.5 * most < plan.n_draws <= most <= chain_module.MAX_AUTO_DRAWS
    assert most == 1 or most * bytes_per_draw <= chain_module.DRAW_MEMORY
    assert len([s for s in range(1, n_iter + 1) if plan.wants(s)]) == plan.n_draws


@pytest.mark.parametrize("burn_in, thin, match", [(10, 1, "burn_in"), (50, 1, "burn_in"), (5, 6, "thin")])
def test_plans_that_keep_nothing_are_refused(burn_in, thin, match):
    with pytest.raises(ValueError, match=match):
        DrawPlan(10, burn_in, thin)


def test_chains_travel_as_bytes():
    """Buffers beside a pickle come out read-only in Ray, and a chain must be able to go on."""
    buffers = []
    chain = Counter(0, DrawPlan(10, 0, 1))
    away = pickle.dumps(run._Parcel(chain), protocol=5, buffer_callback=buffers.append)
    with ThreadPoolExecutor(1) as other:  # outside of the main thread, it leaves the handler of Ctrl-C alone
        back, _ = other.submit(run._run_there, pickle.loads(away), None, 10, np.inf).result()
    returned = pickle.loads(pickle.dumps(back, protocol=5, buffer_callback=buffers.append)).chain
    assert not buffers
    assert returned.step == 10 and returned.kept["step"].flags.writeable


class Counter(Chain):
    """A chain whose state is its step."""

    def _advance(self, until):
        self.step += 1
        if self.plan.wants(self.step):
            self.keep({"step": np.array([self.step, self.rng.random()])})

    def current(self):
        return {"step": np.array([self.step, 0.0])}


def test_a_stream_keeps_evenly_spaced_draws_of_all_its_length(monkeypatch):
    monkeypatch.setattr(chain_module, "MAX_AUTO_DRAWS", 8)
    chain = Counter(0, StreamPlan(0.5))
    for n in range(1, 300):
        chain.run(n)
        steps = np.array(chain.kept_steps)
        assert 1 <= chain.n_kept == steps.size <= 8
        assert np.all(np.diff(steps) == chain.plan.stride) and steps[-1] > n - chain.plan.stride
        np.testing.assert_array_equal(chain.kept["step"][: chain.n_kept, 0], steps)
        used = chain.draws()["step"][:, 0]
        assert used.size >= 1 and used[-1] == steps[-1]
        assert np.all(used[:-1] > 0.5 * steps[-1])
    assert chain.plan.stride == 64


def test_the_last_draw_of_a_stream_counts_however_long_its_burn_in():
    np.testing.assert_array_equal(StreamPlan(10).used([4, 8, 12, 16]), [False, False, True, True])
    np.testing.assert_array_equal(StreamPlan(10**6).used([4, 8, 12, 16]), [False, False, False, True])


def test_a_twin_that_runs_changes_nothing_of_the_chain(monkeypatch):
    monkeypatch.setattr(chain_module, "MAX_AUTO_DRAWS", 4)
    chain = Counter(0, StreamPlan(0.0)).run(3)
    before = {name: value.copy() for name, value in chain.draws().items()}
    assert chain.copy().kept["step"] is chain.kept["step"], "draws are copied"
    chain.copy().run(9)  # keeps a fourth draw behind those shared, then drops every second
    for name, value in chain.draws().items():
        np.testing.assert_array_equal(value, before[name])
    np.testing.assert_array_equal(chain.copy().run(9).draws()["step"], chain.run(9).draws()["step"])


def test_a_chain_without_draws_gives_its_present_state():
    chain = Counter(0, DrawPlan(10, 0.5, 1)).run(3)
    np.testing.assert_array_equal(chain.draws()["step"], [[3.0, 0.0]])


def dense(n_batch=7, n_rows=40, replace=False):
    target = DirichletCategorical(np.arange(n_rows) % 4, concentration=0.5)
    X, params, _ = target._rows()
    return DenseData(X, np.zeros((n_rows, 0)), np.ones(n_rows), params, target._signal(), n_batch, replace)


def dense_chains(n_iter=200, n_chains=2, data=None, **kwargs):
    data = data or dense(**kwargs)
    made = [
        DenseChain(seed, DrawPlan(n_iter, 0.25, 3), SCIR(step_size=0.2)._resolved(None), "simplex", np.ones((4, 1)), 5)
        for seed in np.random.SeedSequence(0).spawn(n_chains)
    ]
    return [chain.bind((data, None)) for chain in made]


def draws_of(made):
    return [chain.draws()["theta"] for chain in made]


@pytest.fixture
def expected():
    return draws_of(run_chains(dense_chains(), 200)[0])


@pytest.mark.parametrize("seconds", [0.0, 0.001, 10.0])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_draws_depend_neither_on_looking_around_nor_on_threads(monkeypatch, expected, seconds, n_jobs):
    monkeypatch.setattr(run, "PIECE_SECONDS", seconds)
    np.testing.assert_array_equal(draws_of(run_chains(dense_chains(), 200, n_jobs=n_jobs)[0]), expected)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
@pytest.mark.parametrize("seconds", [0.0, 100.0])
def test_the_length_of_a_piece_in_another_process_changes_no_draw(monkeypatch, backend, seconds):
    monkeypatch.setattr(run, "FIRST_AWAY_SECONDS", seconds)
    monkeypatch.setattr(run, "AWAY_SECONDS", (seconds, seconds))
    made, looks = dense_chains(2000, n_chains=3), Looks([])
    expected, data = draws_of(run_chains(dense_chains(2000, n_chains=3), 2000)[0]), [chain.data for chain in made]
    with joblib.parallel_config(backend=backend):
        made, _ = run_chains(made, 2000, n_jobs=2, callbacks=[looks], view=lambda chains: None)
    np.testing.assert_array_equal(draws_of(made), expected)
    assert len(looks.at) == 1 if seconds else len(looks.at) >= 3
    assert all(chain.data is bound for chain, bound in zip(made, data, strict=True))


class Looks:
    """A callback that asks for stops at some steps, and notes where it looked."""

    def __init__(self, stops):
        self.stops, self.at = stops, []

    def next_step(self, step):
        return min([stop for stop in self.stops if stop > step], default=10**9)

    def __call__(self, estimator, step):
        self.at.append(step)


def test_pieces_in_other_processes_grow_until_sending_is_a_small_share_of_the_time():
    away = run._OtherProcesses(None, None)
    away._adapt(9.0)  # the first piece starts the processes
    assert away.seconds == run.FIRST_AWAY_SECONDS
    seconds = []
    for sending in (0.001, 0.2, 0.2, 0.2):
        away._adapt(sending)
        seconds.append(away.seconds)
    assert seconds == [1.0] * 4  # the shortest: the least that sending took counts
    away.sending = np.inf
    for sending in (0.2, 0.2, 0.2, 0.2):
        away._adapt(sending)
    assert away.seconds == pytest.approx(0.2 / run.AWAY_SHARE)
    away.sending = np.inf
    for _ in range(9):
        away._adapt(100.0)
    assert away.seconds == run.AWAY_SECONDS[1]


class Failing(Counter):
    """In another process, Ctrl-C is pressed at step 5, and the chain never comes home."""

    def __init__(self, how):
        super().__init__(0, DrawPlan(10, 0, 1))
        self.how, self.home = how, os.getpid()

    def _advance(self, until):
        super()._advance(until)
        if self.step == 5 and os.getpid() != self.home:
            for _ in range(2 if self.how == "pressed again" else 1):
                os.kill(self.home, signal.SIGINT)
                time.sleep(0.5)
            if self.how == "exits":
                os._exit(1)
            if self.how == "interrupted":
                raise KeyboardInterrupt
            time.sleep(60)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT between processes")
@pytest.mark.parametrize(
    "backend, how",
    [
        ("loky", "exits"), ("loky", "interrupted"), ("loky", "hangs"), ("loky", "pressed again"),
        ("multiprocessing", "hangs"),
    ],
)  # fmt: skip
def test_where_ctrl_c_costs_a_worker_the_last_copies_of_its_chains_are_kept(monkeypatch, backend, how):
    monkeypatch.setattr(run, "PATIENCE_SECONDS", 0.5)
    made, looks = [Failing(how), Counter(0, DrawPlan(10, 0, 1))], Looks([4])
    began = time.monotonic()
    with joblib.parallel_config(backend=backend):
        if how == "pressed again":
            with pytest.raises(KeyboardInterrupt):
                run_chains(made, 10, n_jobs=2, callbacks=[looks], view=lambda chains: None)
            return
        with pytest.warns(UserWarning, match="Interrupted after 4 of 10"):
            made, interrupted = run_chains(made, 10, n_jobs=2, callbacks=[looks], view=lambda chains: None)
    assert time.monotonic() - began < 50
    assert interrupted and [chain.step for chain in made] == [4, 4]
    expected = Counter(0, DrawPlan(10, 0, 1)).run(10).draws()["step"]
    for chain in run_chains(made, 10)[0]:
        np.testing.assert_array_equal(chain.draws()["step"], expected)


PRESSED_IN_A_CALL = """
import ctypes, signal, sys, time
import numpy as np
from numba import njit
from sk_sgmcmc.chains.interrupts import deferred_interrupt, interrupts_between_calls

@njit
def draw(rng):
    return rng.random()

def press(frame, event, arg):
    if frame.f_code is ctypes.cast.__code__:  # numba calls it between Python and the compiled code
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)

rng = np.random.default_rng(0)
draw(rng)
for context in (interrupts_between_calls, deferred_interrupt):
    drawn, before = None, signal.getsignal(signal.SIGINT)
    try:
        with context() as stop:
            if stop is not None:
                stop.press()  # so that the next one interrupts at once
            sys.setprofile(press)
            drawn = draw(rng)
            time.sleep(60)
    except KeyboardInterrupt:
        print(context.__name__, drawn is not None, signal.getsignal(signal.SIGINT) is before)
"""


def test_ctrl_c_while_a_generator_is_passed_to_compiled_code_waits_for_the_end_of_the_call():
    # An exception there ends the process with a segmentation fault.
    assert run_python(PRESSED_IN_A_CALL).split("\n")[:2] == [
        "interrupts_between_calls True True", "deferred_interrupt True True"
    ]  # fmt: skip


def test_a_worker_hears_ctrl_c_again_some_time_after_its_piece(monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    try:
        with ignoring_interrupts():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)  # still handing its chain back
        with ignoring_interrupts():
            monkeypatch.setattr(interrupts, "_IGNORE_SECONDS", -1.0)
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is before
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with ignoring_interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("first, seconds", [(1, 0.2), (3, 0.0), (1000, 1e9)])
def test_the_length_of_a_piece_changes_no_draw(monkeypatch, expected, first, seconds):
    monkeypatch.setattr(dense_chain, "_FIRST_PIECE", first)
    monkeypatch.setattr(dense_chain, "_PIECE_SECONDS", seconds)
    np.testing.assert_array_equal(draws_of(run_chains(dense_chains(), 200)[0]), expected)


@pytest.mark.parametrize("midway", [1, 37, 111])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_a_chain_pickled_midway_goes_on_with_the_same_draws(expected, midway, copied):
    made = run_chains(dense_chains(), midway)[0]
    again = [copied(chain).bind((dense(), None)) for chain in made]
    np.testing.assert_array_equal(draws_of(run_chains(again, 200)[0]), expected)


def test_a_pickle_holds_neither_data_nor_compiled_code():
    made = run_chains(dense_chains(n_batch=50, n_rows=50_000), 20)[0]
    assert len(pickle.dumps(made[0])) < 30_000
    assert pickle.loads(pickle.dumps(made[0])).data is None


def test_looking_at_a_chain_changes_no_draw(expected):
    made = dense_chains()
    for n in range(20, 201, 20):
        made = run_chains(made, n)[0]
        for chain in made:
            twin = chain.snapshot()
            assert twin.rng.random() != copy.deepcopy(chain).rng.random()
            chain.current()["theta"][:] = 0.0
    np.testing.assert_array_equal(draws_of(made), expected)


@pytest.mark.parametrize("n_rows, n_batch", [(40, 7), (13, 5), (12, 4), (10, 9)])
def test_every_row_is_as_likely_to_be_in_a_minibatch_as_any_other(n_rows, n_batch):
    chain = dense_chains(n_rows=n_rows, n_batch=n_batch, n_chains=1)[0]
    per_epoch, n_epochs = n_rows // n_batch, 4000
    seen = np.zeros(n_rows)
    for _ in range(n_epochs):
        starts = chain.next_starts(per_epoch)
        rows = (starts[:, None] + np.arange(n_batch)) % n_rows
        assert np.unique(rows).size == rows.size  # no row twice in an epoch
        seen += np.bincount(rows.ravel(), minlength=n_rows)
    share = per_epoch * n_batch / n_rows
    if share < 1.0:
        assert np.abs((seen - n_epochs * share) / np.sqrt(n_epochs * share * (1 - share))).max() < 5.0
    else:
        assert np.all(seen == n_epochs)


@pytest.mark.parametrize("n_rows, n_batch", [(40, 7), (12, 4), (10, 9), (5, 5), (3, 8)])
@pytest.mark.parametrize("order", [whole, every_row, adjacent])
def test_an_epoch_reads_no_row_twice_and_in_a_stream_none_is_left_out(order, n_rows, n_batch):
    reader = Minibatches(np.random.SeedSequence(3))
    seen = np.zeros(n_rows)
    for _ in range(200):
        epoch = [reader.next(n_rows, n_batch, order)]
        while len(reader):
            epoch.append(reader.next(n_rows, n_batch, order))
        rows = np.concatenate(epoch)
        sizes = [batch.size for batch in epoch]
        assert np.unique(rows).size == rows.size and max(sizes) <= n_batch
        if order is whole:
            assert sizes == max(1, n_rows // n_batch) * [min(n_batch, n_rows)]
        else:
            assert rows.size == n_rows and max(sizes) - min(sizes) <= 1
        seen += np.bincount(rows, minlength=n_rows)
    assert seen.min() > 0


def test_minibatches_do_not_depend_on_how_far_ahead_they_are_read():
    one_by_one, ahead = (Minibatches(np.random.SeedSequence(4)) for _ in range(2))
    expected = [one_by_one.next(13, 4, whole) for _ in range(20)]
    found = [batch for n in (1, 0, 7, 2, 10) for batch in ahead.ahead(n, 13, 4, whole)]
    np.testing.assert_array_equal(found, expected)
    assert len(ahead) == len(one_by_one)
    ahead.forget()
    assert len(ahead) == 0 and ahead.next(5, 5, whole).tolist() == [0, 1, 2, 3, 4]


def test_rows_in_reading_order_are_all_rows_once_and_the_first_block_again():
    data = dense(n_batch=7, n_rows=40)
    data = DenseData(np.arange(40.0)[:, None], data.y, data.weight, data.params, data.signal, 7)
    X, y, weight = data.in_reading_order(np.random.default_rng(0))
    assert sorted(X[:40, 0]) == list(range(40)) and y.shape == (47, 0) and weight.shape == (47,)
    np.testing.assert_array_equal(X[40:], X[:7])
    assert X[:40, 0].tolist() != list(range(40))


def test_a_chain_that_diverges_says_where_and_what_to_try():
    sampler = SGRLD(step_size=50.0, parameterization="expanded-natural")._resolved(None)
    chain = DenseChain(np.random.SeedSequence(0), DrawPlan(100, 0, 1), sampler, "simplex", np.zeros((4, 1)), 5)
    with pytest.raises(ChainDivergedError, match=r"step \d+.*step_size=5"):
        chain.bind((dense(), None)).run(100)
    assert issubclass(ChainDivergedError, ValueError)
