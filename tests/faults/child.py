"""What runs in a process of its own, to be hit there: a fit that is killed, interrupted, or short of disk or memory.

Called with a JSON object. A file ``begun`` in its folder says that the fit has begun; a file ``answer``, what came of
it.
"""

import json
import os
import pickle
import signal
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import joblib
import numpy as np

from sk_sgmcmc import BayesianLogisticRegression, DPCategoricalMixture
from sk_sgmcmc.callbacks import Callback, Checkpoint
from sk_sgmcmc.chains import run
from sk_sgmcmc.exceptions import FitInterrupted

# As many steps as take a few seconds.
MODELS = {
    "logistic": lambda: BayesianLogisticRegression(n_iter=200_000, n_chains=2, random_state=0),
    "dp": lambda: DPCategoricalMixture(n_iter=400, n_chains=2, random_state=0),
}


def data_of(name):
    """What the model is fitted to."""
    rng = np.random.default_rng(0)
    if name == "dp":
        return (rng.poisson(1.0, size=(60, 8)),)
    X = rng.normal(size=(100, 4))
    return X, (X[:, 0] + rng.normal(size=100) > 0).astype(int)


def how_it_runs(where):
    """``n_jobs`` and the context of joblib in which a fit runs in the main process, threads, or other processes."""
    backend = nullcontext() if where in ("main", "threads") else joblib.parallel_config(backend=where)
    return {"n_jobs": 1 if where == "main" else 2}, backend


def small_fit(model):
    """Load the kernels."""
    MODELS[model]().set_params(n_iter=10).fit(*data_of(model))


class Begun(Callback):
    """Says that the fit has begun."""

    def __init__(self, path):
        super().__init__(1)
        self.path = path

    def start(self, estimator):
        self.path.touch()

    def next_step(self, step):
        return 10**12


def write(path, value):
    """Write the answer as a whole."""
    part = path.with_suffix(".tmp")
    part.write_bytes(pickle.dumps(value))
    part.replace(path)


def fit_to_be_killed(folder, model, where):
    """Saves as often as it can until it is killed."""
    run.PIECE_SECONDS = run.FIRST_AWAY_SECONDS = 0.01
    run.AWAY_SECONDS = 0.01, 0.01
    params, backend = how_it_runs(where)
    callbacks = [Begun(folder / "begun"), Checkpoint(folder / "model.joblib", seconds=0.0)]
    with backend:
        MODELS[model]().set_params(**params, callbacks=callbacks).fit(*data_of(model))


def fit_to_be_interrupted(folder, model, where, warm):
    """Answers what an interrupted fit has left: the estimator, the exception, whether all is as it was before."""
    fitting = True

    def hear(signum, frame):  # what comes too late must not hit what checks the fit
        if fitting:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, hear)
    run.PIECE_SECONDS = 0.1  # so that the fit, which is short, has many pieces
    params, backend = how_it_runs(where)
    new = MODELS[model]().set_params(**params, callbacks=[Begun(folder / "begun")])
    before, error = set(vars(new)), None
    with backend:
        if warm:  # the processes have started, so that the signal comes while they work
            # As a fit asks for them: other arguments would start others.
            joblib.Parallel(n_jobs=2, mmap_mode="c")(joblib.delayed(small_fit)(model) for _ in range(4))
        try:
            try:
                new.fit(*data_of(model))
            finally:
                fitting = False
        except KeyboardInterrupt as caught:
            # The second signal may come when the fit has ended, in the line above.
            ended = isinstance(caught.__context__, FitInterrupted) and hasattr(new, "n_iter_")
            error = caught.__context__ if ended else caught
    handler = signal.getsignal(signal.SIGINT) is hear
    write(
        folder / "answer",
        {
            "error": type(error).__name__, "message": str(error), "handler": handler,
            "as before": set(vars(new)) == before, "model": new,
        },
    )  # fmt: skip


def fits_on_a_full_disk(folder, model, seeds):
    """Answers for each seed what is wrong: files may grow no further in the middle of a fit."""
    import resource

    run.PIECE_SECONDS = 0.0
    data, path, answers = data_of(model), folder / "model.joblib", {}
    few = {"n_iter": 300 if model == "logistic" else 40}
    whole = MODELS[model]().set_params(**few).fit(*data)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    for seed in seeds:
        rng = np.random.default_rng(seed)
        path.unlink(missing_ok=True)
        state = {"looks": 0, "last": None}
        full_at = int(rng.integers(1, 5))

        def fill(estimator, step, state=state, full_at=full_at, rng=rng):
            if path.exists() and state["last"] is None and state["looks"] >= full_at:
                state["last"] = path.read_bytes()
                # A later model may be smaller: one of fewer clusters.
                allowed = int(rng.integers(0, len(state["last"]) // 2))
                resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, unlimited[1]))
            state["looks"] += 1

        fitted = MODELS[model]().set_params(**few, callbacks=[Checkpoint(path, seconds=0.0), fill])
        wrong = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fitted.fit(*data)
            except Exception as error:
                wrong.append(f"the fit ended by {error!r}")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        if state["last"] is None:
            wrong.append("the disk was never full")
        elif path.read_bytes() != state["last"]:
            wrong.append("the last checkpoint was touched")
        said = [str(each.message) for each in caught if "No checkpoint could be saved" in str(each.message)]
        if len(said) != 1 or str(path) not in said[0]:
            wrong.append(f"warned {len(said)} times")
        if [each for each in os.listdir(folder) if each.endswith(".part")]:
            wrong.append("a temporary file was left")
        if not wrong and not same_draws(fitted, whole):
            wrong.append("other draws")
        answers[seed] = ", ".join(wrong)
    write(folder / "answer", answers)


def fits_without_memory(folder, seeds):
    """Answers for each seed what is wrong: memory gives out at an allocation of the fit."""
    import resource

    model, data, answers = MODELS["logistic"]().set_params(n_iter=200, thin=1), data_of("logistic"), {}
    whole = model.fit(*data)
    unlimited = resource.getrlimit(resource.RLIMIT_AS)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        # Draws of 200 to 1000 MB, of which a part can be had.
        n_iter, n_features = 2000, int(rng.integers(6_000, 30_000))
        X = rng.normal(size=(20, n_features))
        wide = MODELS["logistic"]().set_params(n_iter=n_iter, thin=1, random_state=seed)
        before, wrong = set(vars(wide)), []
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + int(rng.integers(10, 150)) * 2**20, unlimited[1]))
        try:
            wide.fit(X, np.arange(20) % 2)
            wrong.append("it fitted, with draws of more than the memory")
        except (MemoryError, ValueError) as error:
            if set(vars(wide)) != before:
                wrong.append(f"{error!r} left a part of a fit behind")
        except BaseException as error:
            wrong.append(f"ended by {error!r}")
        finally:
            resource.setrlimit(resource.RLIMIT_AS, unlimited)
        if not same_draws(MODELS["logistic"]().set_params(n_iter=200, thin=1).fit(*data), whole):
            wrong.append("later fits have other draws")
        answers[seed] = ", ".join(wrong)
    write(folder / "answer", answers)


def same_draws(a, b):
    """Whether two fitted models hold the same draws, bit for bit."""
    return a.n_iter_ == b.n_iter_ and all(np.array_equal(a.samples_[name], b.samples_[name]) for name in b.samples_)


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    # Under its own name, by which other processes find what is in here.
    from tests.faults import child

    getattr(child, asked.pop("do"))(Path(asked.pop("folder")), **asked)
