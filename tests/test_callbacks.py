"""Looking at a fit, ending it early, and going on: the draws are those of a fit that nobody looked at."""

import _thread
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest

from sk_sgmcmc import chains
from sk_sgmcmc.callbacks import Callback, Checkpoint, HeldOutScore
from tests.common.compare import ROOT, PressCtrlC, StopAt, assert_same_draws, interrupted
from tests.common.instances import COUNTS, DEFAULTS, ESTIMATORS

# Cases without metadata are about what all estimators share.
pytestmark = pytest.mark.filterwarnings("ignore:No metadata were given")
each = pytest.mark.parametrize("case", ESTIMATORS, ids=lambda case: case.id)
each_class = pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: case.id)
each_stream = pytest.mark.parametrize("case", [c for c in ESTIMATORS if c.streams], ids=lambda case: case.id)
each_count_model = pytest.mark.parametrize("case", COUNTS, ids=lambda case: case.id)


# ----------------------------------------------------------------------------------------------- stopping and resuming


@pytest.mark.parametrize("how", ["callback", "ctrl-c"])
@pytest.mark.parametrize("step", [1, 7, 13])
@each
def test_a_stopped_fit_goes_on_from_a_file_with_the_same_draws(case, step, how, tmp_path):
    data = case.data_of()
    model = case.new(n_chains=2)
    if how == "callback":
        model.set_params(callbacks=StopAt(step)).fit(*data)
    else:
        with interrupted():
            model.set_params(callbacks=[PressCtrlC(step)]).fit(*data)
    assert model.n_iter_ == step
    assert np.all(np.isfinite(case.answer(model))) and np.isfinite(model.score(*data))
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib")
    assert loaded.resume(*data) is loaded
    assert loaded.n_iter_ == 16 and loaded.callbacks is None
    whole = case.fitted(n_chains=2)
    assert_same_draws(whole, loaded)
    model.set_params(callbacks=None).resume(*data)  # without a file as well
    assert_same_draws(whole, model)


@each
def test_checkpoints_are_whole_and_resume_to_the_same_draws(case, tmp_path, monkeypatch):
    monkeypatch.setattr(chains, "LOOK_AROUND_SECONDS", 0.0)
    data, path = case.data_of(), tmp_path / "model.joblib"
    written = []

    def look(estimator, step):
        if path.exists():
            written.append(joblib.load(path))

    model = case.fitted(callbacks=[Checkpoint(path, seconds=0.0), look])
    assert [saved.n_iter_ for saved in written] == list(range(1, len(written) + 1)) and len(written) >= 15
    assert os.listdir(tmp_path) == ["model.joblib"]
    assert_same_draws(case.fitted(), model)
    for saved in (written[0], written[9], written[14]):
        assert np.isfinite(saved.score(*data))
        assert_same_draws(model, saved.resume(*data))


@each_class
def test_a_failing_save_leaves_the_last_checkpoint(case, tmp_path, monkeypatch):
    data, path = case.data_of(), tmp_path / "model.joblib"

    def look(estimator, step):  # ends each piece after one step, so that there is something to save in between
        return False

    model = case.fitted(callbacks=[Checkpoint(path, seconds=0.0), look])

    def half(value, filename):
        with open(filename, "wb") as file:
            file.write(b"half a")
        raise OSError("disk full")

    monkeypatch.setattr(joblib, "dump", half)
    with pytest.raises(OSError, match="disk full"):
        model.set_params(callbacks=[Checkpoint(path, seconds=0.0), look]).fit(*data)
    assert np.isfinite(joblib.load(path).score(*data))


@pytest.mark.parametrize(
    "case, method",
    [(case, method) for case in DEFAULTS for method in ("fit", "partial_fit") if case.streams or method == "fit"],
    ids=lambda value: getattr(value, "id", value),
)
def test_a_fit_that_fails_on_the_way_leaves_the_estimator_as_it_was(case, method):
    def look(estimator, step):
        raise OSError("disk full")

    data = case.data_of()
    model = getattr(case.new(), method)(*data)
    before = pickle.loads(pickle.dumps(model))
    with pytest.raises(OSError, match="disk full"):
        getattr(model.set_params(callbacks=look), method)(*data)
    assert_same_draws(model, before)
    assert model.n_iter_ == before.n_iter_
    for one in (model.set_params(callbacks=None), before):
        getattr(one, method)(*data)
    assert_same_draws(model, before)


@each_count_model
def test_resume_refuses_other_data(case):
    X = case.X()
    model = case.new(callbacks=StopAt(5)).fit(X)
    before = pickle.dumps(model)
    for other in (X[:50], X[::-1], X[np.arange(90).repeat(2)], 2 * X):
        with pytest.raises(ValueError, match="same X"):
            model.resume(other)
    with pytest.raises(ValueError, match="features"):
        model.resume(X[:, :-1])
    assert pickle.dumps(model) == before


@each_stream
def test_a_partial_fit_that_fails_on_the_way_moves_nothing(case):
    parts = [[value[i::3] for value in case.data_of()] for i in range(3)]
    models = [case.new(n_chains=2).partial_fit(*parts[0]).partial_fit(*parts[1]) for _ in range(2)]

    def fail(estimator, step):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        models[0].set_params(callbacks=[HeldOutScore(*case.data_of(), every=1), fail]).partial_fit(*parts[2])
    assert models[0].n_iter_ == models[1].n_iter_ and not hasattr(models[0], "trace_")
    assert_same_draws(*models)
    models[0].set_params(callbacks=None)
    assert_same_draws(*(model.partial_fit(*parts[2]) for model in models))


# --------------------------------------------------------------------------------------------------------- Ctrl-C

CHILD = """
import sys
from tests.common.instances import ESTIMATORS
case = next(case for case in ESTIMATORS if case.id == sys.argv[1])
data = case.data_of()
model = case.new(n_iter=10**8, thin=10**5, n_chains=2, n_jobs=int(sys.argv[2]))
case.fitted()
print("ready", flush=True)
try:
    model.fit(*data)
except KeyboardInterrupt as error:
    fitted = abs(model.score(*data)) < 1e9, 0 < model.n_iter_ < 10**8
    print("caught", error, len(case.answer(model)), *fitted, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT between processes")
@pytest.mark.parametrize("n_jobs", [1, 2])
@each_class
def test_a_real_interrupt_leaves_a_fitted_estimator(case, n_jobs):
    command = [sys.executable, "-W", "ignore", "-c", CHILD, case.id, str(n_jobs)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline().strip() == "ready"
        time.sleep(0.7)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        answer = child.stdout.read()
        assert child.wait(60) == 0
    assert time.monotonic() - sent < 20
    assert answer.startswith("caught fit was interrupted after") and "90 True True" in answer


@each_class
def test_an_interrupt_from_a_timer_leaves_a_fitted_estimator(case):
    data = case.data_of()
    case.fitted()  # compiled
    model = case.new(n_iter=10**8, thin=10**5)
    handler = signal.getsignal(signal.SIGINT)
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.start()
    with interrupted():
        model.fit(*data)
    timer.join()
    assert signal.getsignal(signal.SIGINT) is handler
    assert 0 < model.n_iter_ < 10**8 and np.isfinite(model.score(*data))


@each_class
def test_fit_outside_the_main_thread(case):
    model = case.new()
    thread = threading.Thread(target=model.fit, args=case.data_of())
    thread.start()
    thread.join()
    assert_same_draws(case.fitted(), model)


# ------------------------------------------------------------------------------------------------- held-out score


@each
def test_the_trace_does_not_change_draws(case):
    data = case.data_of()
    held_out = [part[:30] for part in data]
    model = case.fitted(n_chains=2, callbacks=HeldOutScore(*held_out, every=4))
    assert_same_draws(case.fitted(n_chains=2), model)
    trace = model.trace_
    assert trace["step"] == [4, 8, 12, 16]
    assert np.all(np.diff(trace["seconds"]) > 0) and trace["seconds"][0] > 0
    assert np.all(np.isfinite(trace["score"]))
    model.fit(*data)  # begins anew
    assert model.trace_["step"] == [4, 8, 12, 16]
    again = case.fitted(n_chains=2, callbacks=HeldOutScore(*held_out, every=4))
    assert again.trace_["score"] == model.trace_["score"]
    assert not hasattr(case.fitted(), "trace_")


@each_count_model
def test_the_trace_rises_and_goes_on_after_resume(case):
    X = case.X()
    parts = [HeldOutScore(X, every=1), StopAt(6)]
    model = case.new(n_iter=12, init="random", callbacks=parts).fit(X)
    assert model.trace_["step"] == [1, 2, 3, 4, 5, 6]
    model.set_params(callbacks=HeldOutScore(X, every=1)).resume(X)
    assert model.trace_["step"] == list(range(1, 13))
    assert np.all(np.diff(model.trace_["seconds"]) > 0)
    assert model.trace_["score"][-1] > model.trace_["score"][0]


@each_count_model
def test_patience_ends_a_run(case):
    X = case.X()
    model = case.new(n_iter=400, callbacks=HeldOutScore(X, every=2, patience=5)).fit(X)
    scores = model.trace_["score"]
    assert model.n_iter_ < 400 and model.n_iter_ == 2 * len(scores)
    assert len(scores) - 1 - np.argmax(scores) == 5


@each_count_model
def test_a_function_is_a_callback(case):
    X, seen = case.X(), []

    def look(estimator, step):
        seen.append((step, estimator.get_params()["n_components"]))
        return step == 9

    model = case.new(callbacks=look).fit(X)
    assert seen == [(step, 3) for step in range(1, 10)] and model.n_iter_ == 9
    with pytest.raises(ValueError, match="every=0"):
        Callback(0)


@each_count_model
def test_callbacks_reach_another_process_and_stay_out_of_files(case):
    waiting = case.new(callbacks=HeldOutScore(case.X(), every=5))
    sent = pickle.loads(pickle.dumps(waiting))
    assert sent.callbacks.every == 5
    fitted = sent.fit(case.X())
    saved = pickle.loads(pickle.dumps(fitted))
    assert saved.callbacks is None and saved.trace_ == fitted.trace_ and fitted.callbacks is not None
