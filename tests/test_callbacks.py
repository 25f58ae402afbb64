"""Looking at a fit, ending it early, and going on: the draws are those of a fit that nobody looked at."""

import _thread
import contextlib
import errno
import os
import pickle
import signal
import stat
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sk_sgmcmc import BayesianLDA, BayesianLogisticRegression
from sk_sgmcmc.callbacks import Callback, Checkpoint, HeldOutScore, load_checkpoint
from sk_sgmcmc.chains import run
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.exceptions import FitInterrupted
from sk_sgmcmc.samplers import SGHMC, SGLD, Schedule
from sk_sgmcmc.utils import _files
from tests.common.compare import ROOT, PressCtrlC, StopAt, assert_same_draws, interrupted, run_python
from tests.common.instances import COUNTS, DEFAULTS, ESTIMATORS, classes

# Cases without metadata are about what all estimators share.
pytestmark = pytest.mark.filterwarnings("ignore:No metadata were given")
each = pytest.mark.parametrize("case", ESTIMATORS, ids=lambda case: case.id)
each_class = pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: case.id)
each_stream = pytest.mark.parametrize("case", [c for c in ESTIMATORS if c.streams], ids=lambda case: case.id)
each_count_model = pytest.mark.parametrize("case", COUNTS, ids=lambda case: case.id)


# ----------------------------------------------------------------------------------------------- stopping and resuming


# After the first step, on the way, and after burn-in.
@pytest.mark.parametrize(("step", "how"), [(1, "ctrl-c"), (7, "callback"), (13, "ctrl-c")])
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
    monkeypatch.setattr(run, "PIECE_SECONDS", 0.0)
    data, path = case.data_of(), tmp_path / "model.joblib"
    written = []

    def look(estimator, step):
        if path.exists():
            written.append((load_checkpoint, joblib.load)[step % 2](path))

    model = case.fitted(callbacks=[Checkpoint(path, seconds=0.0), look])
    assert [saved.n_iter_ for saved in written] == list(range(1, len(written) + 1)) and len(written) >= 15
    assert os.listdir(tmp_path) == ["model.joblib"]
    assert_same_draws(case.fitted(), model)
    for saved in (written[0], written[9], written[14]):
        assert np.isfinite(saved.score(*data))
        assert_same_draws(model, saved.resume(*data))


@each_class
def test_a_failing_save_neither_ends_the_fit_nor_touches_the_last_checkpoint(case, tmp_path, monkeypatch):
    data, path = case.data_of(), tmp_path / "model.joblib"

    def look(estimator, step):  # ends each piece after one step, so that there is something to save in between
        return False

    whole = case.fitted(callbacks=[Checkpoint(path, seconds=0.0), look])
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    model = case.new(callbacks=[Checkpoint(path, seconds=0.0), look])
    with pytest.warns(UserWarning, match="model.joblib.*No space left.*keeps the last.*fit goes on") as caught:
        model.fit(*data)
    assert sum("No checkpoint" in str(warning.message) for warning in caught) == 1
    assert_same_draws(whole, model)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["model.joblib"]
    assert np.isfinite(load_checkpoint(path).score(*data))


@pytest.mark.parametrize("error", [pickle.PicklingError, TypeError, RecursionError, MemoryError])
def test_a_state_that_cannot_be_pickled_costs_a_warning_and_not_the_fit(error, tmp_path, monkeypatch):
    def refuse(value, path):
        raise error("cannot pickle this")

    monkeypatch.setattr(_files, "write_checkpoint", refuse)
    case = next(case for case in DEFAULTS if case.id == "logistic")
    save = Checkpoint(tmp_path / "model.joblib", seconds=0.0)
    with pytest.warns(UserWarning, match=f"{error.__name__}: cannot pickle this.*no file yet.*fit goes on"):
        model = case.fitted(callbacks=[save, lambda *args: False])
    assert_same_draws(case.fitted(), model)


class OwnStep(Schedule):
    """A schedule of a function, which may be one that cannot be pickled."""

    def __init__(self, function=None):
        self.function = function

    def __call__(self, step):
        return np.full(np.shape(step), 0.01)


@pytest.mark.parametrize("streams", [False, True])
def test_a_parameter_that_cannot_be_pickled_is_refused_before_the_first_step(streams, tmp_path):
    class Local(BayesianLogisticRegression):
        pass

    case = next(case for case in DEFAULTS if case.id == "logistic")
    data, steps = case.data_of(), []
    callbacks = [Checkpoint(tmp_path / "model.joblib"), lambda estimator, step: steps.append(step)]
    for model, name in (
        (case.new(sampler=SGLD(step_size=OwnStep(lambda step: step))), "`sampler__step_size"),
        (Local(n_iter=20), "its class"),
    ):
        before = set(vars(model.set_params(callbacks=callbacks)))
        with pytest.raises(ValueError, match=f"^{name}.*must be something that can be pickled"):
            (model.partial_fit if streams else model.fit)(*data)
        assert not steps and set(vars(model)) == before and not os.listdir(tmp_path)
        assert (model.set_params(callbacks=None).fit)(*data).n_iter_ > 0  # without a file, it needs no pickle


class Tied:
    """What can be copied, but not pickled."""

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError("tied to this process")


@pytest.mark.xdist_group("loky")
def test_a_parameter_that_cannot_be_sent_to_another_process_is_refused():
    case = next(case for case in DEFAULTS if case.id == "logistic")
    model = case.new(sampler=SGLD(step_size=OwnStep(Tied())), n_chains=2, n_jobs=2)
    before = set(vars(model))
    message = "must be picklable, since chains run in other processes; got TypeError: tied to this process.*in threads"
    with joblib.parallel_config("loky"), pytest.raises(ValueError, match=message):
        model.fit(*case.data_of())
    assert set(vars(model)) == before
    model.fit(*case.data_of())  # in threads


@pytest.mark.parametrize("case", [c for c in DEFAULTS if c.id in ("lda", "sam", "dp")], ids=lambda case: case.id)
def test_held_out_data_that_do_not_fit_are_refused_before_the_first_step(case):
    steps = []
    callbacks = [lambda estimator, step: steps.append(step), HeldOutScore(case.X()[:, :-1], every=5)]
    with pytest.raises(ValueError, match="features"):
        case.new(callbacks=callbacks).fit(*case.data_of())
    assert not steps


@pytest.mark.parametrize("path, match", [("nowhere/fit.joblib", "nowhere.*not a folder"), ("", "is a folder")])
def test_a_path_where_nothing_can_be_saved_is_refused_before_the_fit(path, match, tmp_path):
    case = DEFAULTS[0]
    with pytest.raises(ValueError, match=match):
        case.fitted(callbacks=Checkpoint(tmp_path / path))


def test_the_bytes_are_on_the_disk_before_the_file_takes_its_name(tmp_path, monkeypatch):
    case, done = next(case for case in DEFAULTS if case.id == "logistic"), []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *args: (done.append("replace"), replace(*args)))
    case.fitted(n_iter=2, callbacks=[Checkpoint(tmp_path / "model.joblib", seconds=0.0), lambda *args: False])
    assert done[:3] == (["file", "replace", "folder"] if os.name == "posix" else ["file", "replace", "file"])


@pytest.mark.xdist_group("loky")
def test_checkpoints_are_saved_while_chains_run_in_other_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "FIRST_AWAY_SECONDS", 0.0)
    monkeypatch.setattr(run, "AWAY_SECONDS", (0.0, 0.0))
    case, path, saved = next(case for case in DEFAULTS if case.id == "logistic"), tmp_path / "model.joblib", []
    data = case.data_of()

    class Look(Callback):  # no stops of its own
        def next_step(self, step):
            return 10**9

        def __call__(self, estimator, step):
            saved.append(load_checkpoint(path))
            return False

    # Each piece is one of the chain's own: at first 64 steps.
    params = {"n_iter": 3000, "n_chains": 2, "n_jobs": 2}
    with joblib.parallel_config(backend="loky"):
        model = case.fitted(**params, callbacks=[Checkpoint(path, seconds=0.0), Look(1)])
    whole = case.fitted(**params)
    assert_same_draws(whole, model)
    assert len(saved) >= 3 and 0 < saved[0].n_iter_ < saved[1].n_iter_ < 3000
    for each in saved[:2]:
        assert np.isfinite(each.score(*data))
        assert_same_draws(whole, each.resume(*data))


@pytest.mark.xdist_group("loky")
def test_searches_in_several_processes_may_share_a_checkpoint(tmp_path):
    case, path = next(case for case in DEFAULTS if case.id == "logistic"), tmp_path / "model.joblib"
    X, y = case.data_of()
    model = case.new(n_iter=40, callbacks=[Checkpoint(path, seconds=0.0), StopAt(10**9)])  # a save at each step
    search = GridSearchCV(model, {"prior_scale": [0.5, 1.0]}, cv=2, n_jobs=2, refit=False, error_score="raise")
    search.fit(X, y)
    assert os.listdir(tmp_path) == ["model.joblib"]
    assert load_checkpoint(path).coef_.shape == (1, 5)


class _Gone(BaseException):
    pass


@pytest.mark.parametrize(
    ("case", "method", "error"),
    [(case, method, _Gone) for case in DEFAULTS for method in ("fit", "partial_fit") if case.streams or method == "fit"]
    + [(case, "fit", error) for case in DEFAULTS if case.id == "logistic" for error in (OSError, KeyboardInterrupt)],
    ids=lambda value: getattr(value, "id", getattr(value, "__name__", value)),
)
def test_a_fit_that_ends_on_the_way_leaves_the_estimator_as_it_was(case, method, error):
    def look(estimator, step):
        raise error("enough")

    data = case.data_of()
    new = case.new(callbacks=look)
    with pytest.raises(error, match="enough"):
        getattr(new, method)(*data)
    assert vars(new).keys() == vars(case.new()).keys()
    with pytest.raises(NotFittedError):
        case.answer(new)

    model = getattr(case.new(), method)(*data)
    before = pickle.loads(pickle.dumps(model))
    with pytest.raises(error, match="enough"):
        getattr(model.set_params(callbacks=look), method)(*data)
    assert_same_draws(model, before)
    assert model.n_iter_ == before.n_iter_
    assert getattr(model, "n_samples_seen_", None) == getattr(before, "n_samples_seen_", None)
    for one in (model.set_params(callbacks=None), before):
        getattr(one, method)(*data)
    assert_same_draws(model, before)


def test_an_interrupt_in_a_callback_leaves_classes_and_coefficients_that_belong_together():
    case = next(case for case in DEFAULTS if case.id == "logistic")
    X, y = case.data_of()
    model = case.fitted()
    coef = model.coef_.copy()

    def look(estimator, step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(callbacks=look).fit(X, np.where(y == 1, "a", "b"))
    assert model.classes_.tolist() == [0, 1]
    np.testing.assert_array_equal(model.coef_, coef)


@each_count_model
def test_resume_refuses_other_data(case):
    X = case.X()
    model = case.new(callbacks=StopAt(5)).fit(X)
    before = pickle.dumps(model)
    for other in (X[:50], X[::-1], X[np.arange(90).repeat(2)], 2 * X):
        with pytest.raises(ValueError, match="pass the same again"):
            model.resume(other)
    with pytest.raises(ValueError, match="features"):
        model.resume(X[:, :-1])
    assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="'n_chains' parameter"):
        model.set_params(n_chains=(1, 2)).resume(X)


@each_stream
def test_a_partial_fit_that_fails_on_the_way_moves_nothing(case):
    parts = [[value[i::3] for value in case.data_of()] for i in range(3)]
    models = [case.new(n_chains=2).partial_fit(*parts[0]).partial_fit(*parts[1]) for _ in range(2)]
    assert all(model.n_iter_ for model in models)  # chains of regressions run when an attribute is read

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


def tell(estimator, step):  # that the first step is made
    global told
    if not told:
        print("ready", flush=True)
    told = True


told = False
model.set_params(callbacks=tell)
try:
    model.fit(*data)
except KeyboardInterrupt as error:
    fitted = abs(model.score(*data)) < 1e9, 0 < model.n_iter_ < 10**8
    print("caught", error, len(case.answer(model)), *fitted, flush=True)
"""


_INTERRUPTED = {("lda", 2)}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT between processes")
@pytest.mark.parametrize(
    ("case", "n_jobs"),
    # Each takes a process of its own; tests/faults interrupts logistic regression, and a timer all classes, below.
    [(case, n) for case in DEFAULTS for n in (1, 2) if (case.id, n) in _INTERRUPTED],
    ids=lambda value: getattr(value, "id", value),
)
def test_a_real_interrupt_leaves_a_fitted_estimator(case, n_jobs):
    command = [sys.executable, "-W", "ignore", "-c", CHILD, case.id, str(n_jobs)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline().strip() == "ready"
        time.sleep(0.2)
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
    begun = threading.Event()  # On a busy machine, preparing a fit may take long.
    model = case.new(n_iter=10**8, thin=10**5, callbacks=lambda estimator, step: begun.set())
    handler = signal.getsignal(signal.SIGINT)

    def interrupt():
        begun.wait(60)
        time.sleep(0.1)
        _thread.interrupt_main()

    timer = threading.Thread(target=interrupt)
    timer.start()
    with interrupted():
        model.fit(*data)
    timer.join()
    assert signal.getsignal(signal.SIGINT) is handler
    assert 0 < model.n_iter_ < 10**8 and np.isfinite(model.score(*data))


class Press(Callback):
    """Press Ctrl-C a number of times, at the start of a run or after a number of steps."""

    def __init__(self, step, times=1):
        super().__init__(1)
        self.step, self.times = step, times

    def start(self, estimator):
        self(estimator, 0)

    def __call__(self, estimator, step):
        for _ in range(self.times if step == self.step else 0):
            signal.raise_signal(signal.SIGINT)
        return False


@each_class
@pytest.mark.parametrize("method", ["fit", "partial_fit", "resume"])
def test_an_interrupt_carries_the_estimator(case, method):
    data = case.data_of()
    if method == "partial_fit" and not case.streams:
        return
    new = case.new(callbacks=StopAt(5)).fit(*data) if method == "resume" else case.new()
    with interrupted() as caught:
        getattr(new.set_params(callbacks=Press(0)), method)(*data)  # at the start of the run
    assert caught.value.estimator_ is new and np.all(np.isfinite(case.answer(new)))
    assert "sys.last_value.estimator_" in str(caught.value)
    sent = pickle.loads(pickle.dumps(caught.value))  # from another process, without the draws
    assert type(sent) is FitInterrupted and str(sent) == str(caught.value) and sent.estimator_ is None


def test_an_interrupt_in_a_pipeline_or_search_carries_the_step_that_was_fitted():
    case = next(case for case in DEFAULTS if case.id == "logistic")
    X, y = case.data_of()
    pipeline = make_pipeline(StandardScaler(), case.new(callbacks=Press(3)))
    with interrupted() as caught:
        pipeline.fit(X, y)
    assert caught.value.estimator_ is pipeline[-1]
    answer = pipeline.set_params(bayesianlogisticregression__callbacks=None).predict(X)  # a fitted pipeline
    assert answer.shape == y.shape
    search = GridSearchCV(case.new(callbacks=Press(3)), {"prior_scale": [0.5]}, cv=2)
    with interrupted() as caught:
        search.fit(X, y)
    assert caught.value.estimator_.prior_scale == 0.5 and caught.value.estimator_.n_iter_ == 3


SESSION = """
import signal
from sk_sgmcmc import BayesianGaussian
def press(estimator, step):
    if step == 3:
        signal.raise_signal(signal.SIGINT)

model = BayesianGaussian(n_iter=20, random_state=0, callbacks=press).fit([[0.0], [1.0], [3.0]])
import sys; model = sys.last_value.estimator_
print("kept", model.n_iter_, model.samples_["mean"].shape[0])
"""


def test_an_interrupt_in_an_interactive_session_loses_no_fit():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-i", "-q"],
        input=SESSION, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "kept 3 1" in done.stdout, done.stderr


@each_class
def test_an_interrupt_before_the_first_step_leaves_an_estimator_that_goes_on(case):
    model, data = case.new(callbacks=Press(0)), case.data_of()
    with interrupted():
        model.fit(*data)
    assert model.n_iter_ == 0 and np.all(np.isfinite(case.answer(model)))
    assert_same_draws(case.fitted(), model.set_params(callbacks=None).resume(*data))


@each_class
def test_a_second_interrupt_leaves_the_estimator_as_it_was(case):
    data = case.data_of()
    model = case.new(callbacks=Press(5, times=2))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt) as caught:
            model.fit(*data)
        assert not isinstance(caught.value, FitInterrupted)
        assert vars(model).keys() == vars(case.new()).keys()
    model.set_params(callbacks=StopAt(5)).fit(*data)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.set_params(callbacks=Press(9, times=2)).resume(*data)
    assert not isinstance(caught.value, FitInterrupted) and model.n_iter_ == 5
    assert_same_draws(case.fitted(), model.set_params(callbacks=None).resume(*data))


def test_labels_belong_to_the_draws_of_an_interrupted_resume():
    case = next(case for case in DEFAULTS if case.id == "dp")
    model, X = case.new(callbacks=StopAt(1)).fit(case.X()), case.X()
    with interrupted():
        model.set_params(callbacks=Press(12)).resume(X)
    assert model.n_iter_ == 12
    np.testing.assert_array_equal(model.labels_, model.predict(X))


@pytest.mark.parametrize("method", ["_set_fitted", "_checks"])
def test_an_interrupt_while_draws_are_summed_up_or_checked_loses_nothing(method, monkeypatch):
    case = next(case for case in DEFAULTS if case.id == "logistic")
    model, data = case.new(), case.data_of()
    made = getattr(type(model), method)

    def slowly(self, chains):
        signal.raise_signal(signal.SIGINT)
        return made(self, chains)

    monkeypatch.setattr(type(model), method, slowly)
    with pytest.warns(UserWarning, match="Interrupted after 16 of 16"), pytest.raises(FitInterrupted, match="16 steps"):
        model.fit(*data)
    monkeypatch.undo()
    assert_same_draws(case.fitted(), model)


@pytest.mark.filterwarnings("error")
def test_an_interrupt_leaves_a_fitted_estimator_also_where_warnings_are_errors():
    case = next(case for case in DEFAULTS if case.id == "logistic")
    params = {"prior_scale": "auto"}  # a number would warn of the columns' spreads
    model = case.new(callbacks=Press(7), **params)
    with pytest.raises(FitInterrupted, match="after 7 steps"):
        model.fit(*case.data_of())
    assert_same_draws(case.fitted(**params), model.set_params(callbacks=None).resume(*case.data_of()))


def test_the_interrupt_of_a_fit_inside_a_callback_is_not_taken_for_that_of_the_outer_fit():
    case = next(case for case in DEFAULTS if case.id == "logistic")
    inner = case.new(callbacks=Press(3))
    outer = case.new(callbacks=lambda estimator, step: inner.fit(*case.data_of()))
    with pytest.warns(UserWarning, match="Interrupted"), pytest.raises(FitInterrupted):
        outer.fit(*case.data_of())
    assert inner.n_iter_ == 3
    with pytest.raises(NotFittedError):
        outer.predict(case.X())


@pytest.fixture
def handler_of():
    """Sets a handler of SIGINT, and puts the one before back."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda handler: signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGINT, before)


def test_an_ignored_interrupt_stays_ignored(handler_of):
    case = next(case for case in DEFAULTS if case.id == "logistic")
    handler_of(signal.SIG_IGN)
    model = case.fitted(callbacks=Press(5, times=3))
    assert model.n_iter_ == 16 and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert_same_draws(case.fitted(), model)


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_handler_of_ones_own_is_put_back_and_hears_the_second_interrupt(handler_of, times):
    case, heard = next(case for case in DEFAULTS if case.id == "logistic"), []

    def own(signum, frame):
        heard.append(signum)

    handler_of(own)
    model = case.new(callbacks=Press(5, times=times))
    with contextlib.ExitStack() as stack:
        if times:
            stack.enter_context(interrupted())
        model.fit(*case.data_of())
    assert signal.getsignal(signal.SIGINT) is own and len(heard) == max(0, times - 1)
    assert model.n_iter_ == (5 if times else 16)


def test_a_forked_worker_leaves_the_decision_to_its_parent():
    code = (
        "import os, signal\n"
        "from sk_sgmcmc.chains.interrupts import deferred_interrupt\n"
        "with deferred_interrupt() as stop:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        signal.raise_signal(signal.SIGINT), signal.raise_signal(signal.SIGINT)\n"
        "        os._exit(7 if not stop.is_set() else 1)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), stop.is_set())\n"
    )
    if hasattr(os, "fork"):
        assert run_python(code).split() == ["7", "False"]


@pytest.mark.parametrize("shielded", [False, True])
def test_a_second_interrupt_may_come_at_any_moment_of_the_first_ones_handler(shielded):
    code = f"""
import faulthandler, signal, sys
from sk_sgmcmc.chains.interrupts import deferred_interrupt

faulthandler.dump_traceback_later(60, exit=True)  # which a lock that waits for itself would need
left, ends = 0, []

def trace(frame, event, arg):
    global left
    left -= 1
    if left == 0:
        signal.raise_signal(signal.SIGINT)
    return trace

for moment in range(1, 60):
    left = moment
    try:
        with deferred_interrupt() as stop:
            stop.shielded = {shielded}
            sys.settrace(trace)
            signal.raise_signal(signal.SIGINT)
            sys.settrace(None)
        ends.append((stop.is_set(), stop.pressed_again, left <= 0))
    except KeyboardInterrupt:
        sys.settrace(None)
        ends.append("raised")
nested = [end for end in ends if end == "raised" or end[2]]
assert len(nested) > 3 and len(nested) < len(ends), ends
assert set(nested) == {{(True, True, True) if {shielded} else "raised"}}, ends
"""
    run_python(code)


@each_class
def test_fit_outside_the_main_thread(case):
    model = case.new()
    thread = threading.Thread(target=model.fit, args=case.data_of())
    thread.start()
    thread.join()
    assert_same_draws(case.fitted(), model)


# ------------------------------------------------------------------------------------------------- held-out score


@each_class
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


def test_the_trace_scores_the_present_state_where_assignments_are_fresh():
    X = make_lda(60, 30, 3, random_state=0).counts
    params = {"assignments": "fresh", "batch_size": 20, "n_iter": 60, "burn_in": 10, "thin": 50}
    scorer = HeldOutScore(X, every=5)
    model = BayesianLDA(3, callbacks=scorer, random_state=0, **params).fit(X)
    assert np.unique(model.trace_["score"][2:]).size == 10  # no average that changes with kept draws only


@each_class
def test_a_second_fit_shows_nothing_of_the_first_while_it_runs(case):
    names = set()

    def look(estimator, step):
        names.update(vars(estimator))

    model, data = case.new(), case.data_of()
    model.set_params(callbacks=look).fit(*data)
    in_first, names = names, set()
    model.fit(*data)
    assert {name for name in names - in_first if name.endswith("_")} == set()


@each_class
def test_resume_refuses_parameters_that_it_cannot_follow(case):
    data = case.data_of()
    model = case.new(callbacks=StopAt(5)).fit(*data).set_params(callbacks=None)
    for name, value in {"burn_in": 0.125, "thin": 3, "n_chains": 7}.items():
        before = getattr(model, name)
        with pytest.raises(ValueError, match=rf"{name}={value} differs from {name}={before!r}.*resume.*restore it"):
            model.set_params(**{name: value}).resume(*data)
        model.set_params(**{name: before})
    assert_same_draws(case.fitted(), model.set_params(random_state=5, n_jobs=2).resume(*data))


def test_resume_refuses_another_prior_and_a_sampler_that_was_changed_in_place():
    X, y = classes(2)
    model = BayesianLogisticRegression(sampler=SGLD(0.1), n_iter=20, callbacks=StopAt(5)).fit(X, y)
    model = pickle.loads(pickle.dumps(model))
    for change in ({"prior_scale": 0.5}, {"sampler__step_size": 0.2}):
        name = next(iter(change)).split("__")[0]
        with pytest.raises(ValueError, match=rf"{name}=.* differs from {name}="):
            pickle.loads(pickle.dumps(model)).set_params(**change).resume(X, y)
    assert model.resume(X, y).n_iter_ == 20


@each_class
def test_a_run_is_resumed_at_the_length_it_has(case):
    data = case.data_of()
    model = case.new(callbacks=StopAt(5)).fit(*data)
    planned = model._planned_iter
    with pytest.raises(ValueError, match=f"n_iter={planned + 7}, but resume ends the run of {planned} steps"):
        model.set_params(callbacks=None, n_iter=planned + 7).resume(*data)
    assert model.set_params(n_iter=planned).resume(*data).n_iter_ == planned


@each_count_model
def test_patience_ends_a_run(case):
    X = case.X()
    model = case.new(n_iter=400, callbacks=HeldOutScore(X, every=2, patience=5)).fit(X)
    scores, n_burn = model.trace_["score"], 100
    assert 200 < model.n_iter_ < 400 and model.n_iter_ == 2 * len(scores)
    # Whatever the scores of burn-in were, the run goes on until it has draws.
    assert len(scores) - max(np.argmax(scores) + 1, n_burn) == 5


def test_a_callback_that_ends_burn_in_warns_that_there_is_no_draw():
    X = make_lda(60, 30, 3, random_state=0).counts
    model = BayesianLDA(3, n_iter=100, callbacks=lambda _, step: step >= 40, random_state=0)
    with pytest.warns(ConvergenceWarning, match="ended the fit after 40 of 100 steps, before any draw .* takes 50"):
        model.fit(X)
    X, y = X.toarray(), np.arange(60) % 2
    short = BayesianLogisticRegression(
        sampler=SGHMC(1e-3), n_iter=1000, callbacks=lambda _, step: step >= 560, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="after 560 of 1000 steps: let it wait for longer first"):
        short.fit(X, y)


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


def test_callbacks_are_due_at_multiples_of_every_wherever_a_run_begins():
    score = HeldOutScore(None, every=10)
    assert [score.next_step(step) for step in (0, 9, 10, 13)] == [10, 10, 20, 20]


def test_a_checkpoint_waits_for_its_time(tmp_path):
    X, path = COUNTS[0].X(), tmp_path / "fit.joblib"
    COUNTS[0].new(callbacks=Checkpoint(path, seconds=1e6)).fit(X)
    assert not path.exists()
    COUNTS[0].new(callbacks=Checkpoint(path, seconds=0.0)).fit(X)
    assert path.exists()
