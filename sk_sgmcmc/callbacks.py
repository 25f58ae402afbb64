"""What can look at a fit while it runs: held-out scores, checkpoints, or a function of one's own.

Pass one or several as ``callbacks=`` of an estimator. A function is called after every step, as
``function(estimator, step)``, and ends the run by returning True. They look at copies, so a chain's draws are the same
with and without them.
"""

import os
import time

import joblib
import numpy as np


class Callback:
    """Base of callbacks.

    Parameters
    ----------
    every : int
        Steps between two calls.
    """

    def __init__(self, every):
        if every < 1:
            raise ValueError(f"every={every} must be a number of steps of at least 1.")
        self.every = every

    def start(self, estimator):
        """Called once, before the first step of a run."""

    def next_step(self, step):
        """The next step at which to stop and look."""
        return (step // self.every + 1) * self.every

    def __call__(self, estimator, step):
        """Look at the estimator after ``step`` steps; return True to end the run early."""
        return False


class _Function(Callback):
    """A plain function as a callback, called after every step."""

    def __init__(self, function):
        super().__init__(1)
        self.function = function

    def __call__(self, estimator, step):
        return bool(self.function(estimator, step))


def as_callbacks(callbacks):
    """The list of `Callback` that a user's ``callbacks=`` argument means."""
    if callbacks is None:
        return []
    found = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    for callback in found:
        if not callable(callback):
            raise TypeError(
                f"callbacks={callbacks!r} must be a callback from sk_sgmcmc.callbacks, a function of (estimator, "
                "step), or a list of them."
            )
    return [callback if isinstance(callback, Callback) else _Function(callback) for callback in found]


class HeldOutScore(Callback):
    """Trace of the held-out score while fitting, left in ``trace_`` of the estimator.

    Parameters
    ----------
    X, y : as for ``score``
        Data that are not fitted.
    every : int, default=10
        Steps between two scores.
    patience : int or None, default=None
        End the run when the best score is this many scores old; None never does.
    **given
        What else ``score`` is to be given, for example ``metadata`` or ``n_temperatures``.

    Notes
    -----
    ``trace_`` is a dict with lists ``step``, ``seconds`` (of fitting, scores not counted) and ``score``, the score of
    the present state alone, not averaged over draws.
    """

    def __init__(self, X, y=None, *, every=10, patience=None, **given):
        super().__init__(every)
        self.X, self.y, self.given = X, y, given
        self.patience = patience

    def start(self, estimator):
        """Go on with an existing trace, or begin one."""
        self._split = None
        self._last = None
        if not hasattr(estimator, "trace_") or estimator._chains[0].step == 0:
            estimator.trace_ = {"step": [], "seconds": [], "score": []}
        self._clock = time.monotonic()
        self._seconds = estimator.trace_["seconds"][-1] if estimator.trace_["seconds"] else 0.0

    def __call__(self, estimator, step):
        """Score the present state."""
        if step % self.every or step == self._last:
            return False
        self._last = step
        self._seconds += time.monotonic() - self._clock
        trace = estimator.trace_
        trace["step"].append(int(step))
        trace["seconds"].append(self._seconds)
        trace["score"].append(float(estimator._score_now(self)))
        self._clock = time.monotonic()
        return self.patience is not None and len(trace["score"]) - 1 - int(np.argmax(trace["score"])) >= self.patience


class Checkpoint(Callback):
    """Save the estimator to a file now and then; `joblib.load` it and call ``resume(X)`` to go on.

    Parameters
    ----------
    path : str or path-like
        File, replaced as a whole each time, so that it is valid whenever the machine stops.
    seconds : float, default=60
        Time between two saves.
    """

    def __init__(self, path, seconds=60.0):
        super().__init__(1)
        self.path = os.fspath(path)
        self.seconds = seconds

    def start(self, estimator):
        """Start the clock."""
        self._saved_at = time.monotonic()

    def next_step(self, step):
        """Never asks for a stop of its own: any pause between two pieces will do."""
        return np.iinfo(np.int64).max

    def __call__(self, estimator, step):
        """Save if it is time."""
        if time.monotonic() - self._saved_at >= self.seconds:
            estimator._set_fitted(estimator._chains)
            estimator.n_iter_ = step
            joblib.dump(estimator, self.path + ".part")
            os.replace(self.path + ".part", self.path)
            self._saved_at = time.monotonic()
        return False
