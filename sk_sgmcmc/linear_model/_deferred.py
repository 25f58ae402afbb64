"""Runs of chains that wait until an attribute that they set is read, so that a stream does not pay for unread draws."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base import all_or_nothing
from ..samplers._base import is_same


@dataclass(frozen=True)
class Deferred:
    """A run that waits.

    Parameters
    ----------
    prepare : callable
        ``prepare(estimator)`` returns the chains and the number of their steps.
    parameters : dict
        Parameters of the estimator when the run was deferred, and under which it will run.
    """

    prepare: Callable
    parameters: dict[str, Any]

    @contextmanager
    def parameters_of(self, estimator):
        """Set the parameters of the run, and afterwards those that the estimator has now."""
        present = {name: getattr(estimator, name) for name in self.parameters}
        vars(estimator).update(self.parameters)
        try:
            yield
        finally:
            vars(estimator).update(present)


class DefersRuns:
    """An estimator whose `_defer` lets a run wait until one of the attributes ``_set_by_run`` is read."""

    _set_by_run: tuple[str, ...] = ()
    # Parameters of the last deferred run. `_made_with` lacks n_iter, and is also set by `fit`, which makes no check.
    _checked_with: dict[str, Any] | None = None

    def _defer(self, prepare, check):
        """Forget the attributes of the last run; the next one waits, except for callbacks and a progress bar.

        ``prepare(estimator)`` returns its chains and the number of their steps, and must not depend on the time of the
        call. Copies and saved estimators run them first. If parameters have changed since the last call,
        ``check(estimator)`` makes similar chains at once, so that it raises where the run would.
        """
        shaping = self._shaping()
        parameters = {**shaping, "n_iter": self.n_iter}
        if not is_same(parameters, self._checked_with):
            check(self)
        self._checked_with = parameters
        for name in self._set_by_run:
            self.__dict__.pop(name, None)
        self._made_with, self._deferred = shaping, Deferred(prepare, parameters)
        return self._run_deferred() if self.callbacks is not None or self.verbose else self

    @all_or_nothing
    def _run_deferred(self):
        deferred = self.__dict__.pop("_deferred")
        with deferred.parameters_of(self):
            return self._run(*deferred.prepare(self))

    if not TYPE_CHECKING:  # otherwise type checkers would accept every name

        def __getattr__(self, name):
            """Called for attributes that do not exist, and for properties that raise AttributeError."""
            if name in self._set_by_run and "_deferred" in self.__dict__:
                self._run_deferred()
            return super().__getattribute__(name)

    def __getstate__(self):
        if "_deferred" in self.__dict__:
            self._run_deferred()
        return super().__getstate__()
