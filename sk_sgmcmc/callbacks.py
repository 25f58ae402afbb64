"""Callbacks of a fit: held-out scores, checkpoints, or a function of your own.

Pass one or several as ``callbacks=`` of an estimator. A function is called after every step as
``function(estimator, step)``, and ends the run by returning True. Callbacks do not change draws. Attributes that are
computed from draws, such as ``components_``, are set at the end of the run only.
"""

from __future__ import annotations

import os
import pickle
import time
from copy import copy
from inspect import signature
from typing import Any

import numpy as np

from .utils import _files
from .utils._typing import Path, StepFunction
from .utils._warnings import warn_user

_LONGEST = 60  # characters of a value in a repr
_TASKS = 20  # tasks of a run that scikit-learn's callbacks see


class Callback:
    """Base class of callbacks.

    Parameters
    ----------
    every : int
        Number of steps between two calls.
    """

    def __init__(self, every: int) -> None:
        if every < 1:
            raise ValueError(f"every={every} must be a number of steps of at least 1.")
        self.every = every

    def __repr__(self) -> str:
        given = []
        for name, parameter in signature(type(self)).parameters.items():
            value = getattr(self, name, None)
            if parameter.kind is parameter.VAR_KEYWORD:
                given += [f"{key}={_short(each)}" for key, each in (value or {}).items()]
            elif value is not parameter.default:
                given.append(f"{name}={_short(value)}")
        return f"{type(self).__name__}({', '.join(given)})"

    def start(self, estimator: Any) -> None:
        """Prepare for a run; called once, before the first step."""

    def next_step(self, step: int) -> int:
        """The next step after which the callback has to be called."""
        return (step // self.every + 1) * self.every

    def __call__(self, estimator: Any, step: int) -> bool:
        """Inspect the estimator after ``step`` steps; return True to end the run early."""
        return False


def _short(value):
    """A short repr of a value: of arrays and long values only the type, with the shape if there is one."""
    if hasattr(value, "shape"):
        return f"<{type(value).__name__} of shape {tuple(value.shape)}>"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"<{type(value).__name__}>"


class _Function(Callback):
    """A plain function as a callback, called after every step."""

    def __init__(self, function: StepFunction) -> None:
        super().__init__(1)
        self.function = function

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, estimator: Any, step: int) -> bool:
        return bool(self.function(estimator, step))


def as_callbacks(callbacks):
    """The user's ``callbacks=`` argument as a list of `Callback`."""
    if callbacks is None:
        return []
    found = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for callback in found:
        if not callable(callback) or isinstance(callback, type):
            raise TypeError(
                f"callbacks={callbacks!r} must be a callback from sk_sgmcmc.callbacks, a function of (estimator, "
                "step), or a list of them."
            )
    return [callback if isinstance(callback, Callback) else _Function(callback) for callback in found]


class HeldOutScore(Callback):
    """Trace the held-out score during a fit, in ``trace_`` of the estimator.

    Parameters
    ----------
    X, y : as for ``score``
        Held-out data.
    every : int, default=10
        Number of steps between two scores.
    patience : int or None, default=None
        End the run after this many scores since the best one, counted after burn-in only; the estimator is fitted with
        the draws kept by then. None: never end it early.
    **given
        Other arguments of ``score``, for example ``metadata`` or ``n_temperatures``.

    Notes
    -----
    ``trace_`` is a dict of the lists ``step``, ``seconds`` (time of fitting, without the time of scoring) and
    ``score``: the score of the present state of the first chain, not averaged over draws.
    """

    def __init__(self, X: Any, y: Any = None, *, every: int = 10, patience: int | None = None, **given: Any) -> None:
        super().__init__(every)
        self.X, self.y, self.given = X, y, given
        self.patience = patience

    def start(self, estimator: Any) -> None:
        """Continue an existing trace, or start a new one; raise if the held-out data do not fit the estimator."""
        self._held_out = estimator._held_out(self.X, self.y, **self.given)  # checked once, not at each score
        self._last = None
        if not hasattr(estimator, "trace_") or estimator._chains[0].step == 0:
            estimator.trace_ = {"step": [], "seconds": [], "score": []}
        self._clock = time.monotonic()
        self._seconds = estimator.trace_["seconds"][-1] if estimator.trace_["seconds"] else 0.0

    def __call__(self, estimator: Any, step: int) -> bool:
        """Score the present state."""
        if step % self.every or step == self._last:
            return False
        self._last = step
        self._seconds += time.monotonic() - self._clock
        trace = estimator.trace_
        trace["step"].append(int(step))
        trace["seconds"].append(self._seconds)
        trace["score"].append(float(estimator._present_score(self._held_out)))
        self._clock = time.monotonic()
        if self.patience is None:
            return False
        plan = estimator._chains[0].plan
        n_burn = 0 if plan.streams else np.searchsorted(trace["step"], plan.n_burn, side="right")
        return len(trace["score"]) - max(int(np.argmax(trace["score"])) + 1, n_burn) >= self.patience


class FitTasks(Callback):
    """Report a run to the callbacks of scikit-learn (1.9 or later), as about 20 consecutive tasks.

    Those callbacks receive the training data, and an estimator fitted with the draws so far. For models without y they
    receive zeros, since `sklearn.callback.ScoringMonitor` computes no score where y is None.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted.
    n_iter : int
        Number of steps of the run.
    X, y : training data
    metadata : dict
        Other arguments of ``fit`` that ``score`` takes too.
    """

    def __init__(self, estimator: Any, n_iter: int, X: Any, y: Any, metadata: dict[str, Any]) -> None:
        super().__init__(-(-n_iter // _TASKS))
        self.n_iter = n_iter
        self.given = {"X": X, "y": (lambda: np.zeros(_n_rows(X))) if y is None else y, "metadata": metadata}
        self.context = estimator._init_callback_context(max_subtasks=-(-n_iter // self.every))

    def start(self, estimator: Any) -> None:
        """Report the start of the fit and of its first task."""
        self.context.call_on_fit_task_begin(estimator=estimator, **self.given)
        self._begin(estimator)

    def _begin(self, estimator):
        self.task = self.context.subcontext(task_name="steps")
        self.task.call_on_fit_task_begin(estimator=estimator, **self.given)

    def __call__(self, estimator: Any, step: int) -> bool:
        """Report the end of a task and the start of the next one; return True if a callback asks to stop."""
        if step % self.every and step < self.n_iter:
            return False
        stop = self.task.call_on_fit_task_end(
            estimator=estimator, reconstruction_attributes=lambda: _fitted_so_far(estimator), **self.given
        )
        if step < self.n_iter and not stop:
            self._begin(estimator)
        return stop

    def finish(self, estimator: Any) -> None:
        """Report the end of the fit."""
        self.context.call_on_fit_task_end(estimator=estimator, reconstruction_attributes=dict, **self.given)


def _n_rows(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _fitted_so_far(estimator):
    """The attributes that fitting the estimator with the draws so far would set or change, by name."""
    shown = copy(estimator)
    shown._set_fitted(estimator._chains)
    before = vars(estimator)
    return {name: value for name, value in vars(shown).items() if name not in before or before[name] is not value}


class Checkpoint(Callback):
    """Save the estimator to a file at intervals, to load with `load_checkpoint` and continue with ``resume(X)``.

    Parameters
    ----------
    path : str or path-like
        File in a folder that exists. Each save replaces the whole file, so that it is valid even if the machine stops.
        Several fits may share the file, such as those of ``GridSearchCV(n_jobs=2)``. It then contains the model that
        was saved last.
    seconds : float, default=60
        Minimum time between two saves.

    See Also
    --------
    load_checkpoint : Read the file.

    Notes
    -----
    If a parameter cannot be pickled, ``fit`` raises an error before its first step. If a later save fails for any
    reason, such as a full disk, ``fit`` warns once, continues, and tries again; the file still contains the model of
    the last successful save. If the machine stops during a save, a file that ends in ``.part`` may be left next to it,
    which you may delete.

    Loading a pickle runs the code that it names: load only files from a source that you trust.
    """

    def __init__(self, path: Path, seconds: float = 60.0) -> None:
        super().__init__(1)
        self.path = os.fspath(path)
        self.seconds = seconds

    def start(self, estimator: Any) -> None:
        """Start the clock; raise if nothing can be saved at the path, or a parameter cannot be pickled."""
        folder = os.path.dirname(self.path) or os.curdir
        if not os.path.isdir(folder):
            raise ValueError(
                f"path={self.path!r} lies in {folder!r}, which is not a folder; create it, or pass another path."
            )
        if os.path.isdir(self.path):
            raise ValueError(f"path={self.path!r} is a folder; pass the name of a file in it, such as 'fit.joblib'.")
        _refuse_what_no_file_can_hold(estimator)
        self._saved_at = time.monotonic()
        self._warned = False

    def next_step(self, step: int) -> int:
        """No particular step: the callback may be called after any piece."""
        return np.iinfo(np.int64).max

    def __call__(self, estimator: Any, step: int) -> bool:
        """Save if ``seconds`` have passed."""
        if time.monotonic() - self._saved_at >= self.seconds:
            try:
                estimator._set_fitted(estimator._chains)
                estimator.n_iter_ = step
                _files.write_checkpoint(estimator, self.path)
            except Exception as error:  # of any kind: a failed save must not end the fit
                self._warn_once(error)
            self._saved_at = time.monotonic()
        return False

    def _warn_once(self, error):
        if self._warned:
            return
        self._warned = True
        last = "the file keeps the last one saved" if os.path.exists(self.path) else "there is no file yet"
        warn_user(
            f"No checkpoint could be saved to {self.path!r} ({type(error).__name__}: {error}); {last}. The fit goes on "
            f"and tries again every {self.seconds:g} seconds: free some space, or press Ctrl-C, which leaves a fitted "
            "estimator (`estimator_` of the exception), and save it elsewhere with joblib.dump."
        )


def _refuse_what_no_file_can_hold(estimator):
    """Raise if the class or a parameter of an estimator cannot be pickled; callbacks, which are not saved, may fail."""
    params = {"its class": type(estimator)}
    params |= {f"`{name}`": value for name, value in estimator.get_params(deep=True).items() if name != "callbacks"}
    # Nested parameters come first, since their error is more specific.
    for name in sorted(params, key=lambda name: -name.count("__")):
        try:
            pickle.dumps(params[name])
        except Exception as error:
            raise ValueError(
                f"{name} must be something that can be pickled, since Checkpoint saves the estimator; got "
                f"{_short(params[name])} ({type(error).__name__}: {error}). Define functions and classes at the top "
                "level of a module instead of a lambda or inside a function, or leave out Checkpoint."
            ) from error


def load_checkpoint(path: Path) -> Any:
    """Load an estimator saved by `Checkpoint`, and detect damage to the file.

    `joblib.load` reads the file too, and detects changed bytes. This function raises the same error for every kind of
    damage.

    Parameters
    ----------
    path : str or path-like
        File saved by `Checkpoint`, of this or an earlier version, or by `joblib.dump`. Only `Checkpoint` writes a
        checksum, so changed bytes in a file of `joblib.dump` may go undetected.

    Returns
    -------
    estimator : estimator
        Fitted with the draws up to the save. ``resume(X)`` continues from there.

    Raises
    ------
    DamagedFileError
        A ``ValueError``: bytes are missing or differ from those that were saved.

    Notes
    -----
    Loading a pickle runs the code that it names: load only files from a source that you trust. The checksum guards
    against accidents, not against malice.
    """
    return _files.read_checkpoint(path)
