"""Exceptions raised by users' functions within compiled code.

Kernels never raise, and an exception that crosses the boundary between two kernels would be lost. The kernel of a
user's function therefore catches it and returns a log density that is not finite. It reports the exception to the
`Failures` of the calling thread (see `recorded_in`).
"""

import threading
from contextlib import contextmanager

_thread = threading.local()


class Failures:
    """Exceptions of a user's function in one chain, or in one series of calls.

    Attributes
    ----------
    n : int
        Number of calls that raised.
    first : str
        Type and message of the first exception.
    error : Exception or None
        The first exception; not part of a pickle, since it may refer to any object.
    fatal : BaseException or None
        An exception that does not depend on the point, such as `KeyboardInterrupt` or `MemoryError`.
    """

    def __init__(self):
        self.n, self.first, self.error, self.fatal = 0, "", None, None

    def add(self, error):
        """Count an exception."""
        if isinstance(error, MemoryError) or not isinstance(error, Exception):
            self.fatal = self.fatal or error
            return
        if self.n == 0:
            self.first, self.error = f"{type(error).__name__}: {error}", error
        self.n += 1

    def raise_fatal(self):
        """Raise the fatal exception, which does not count as a rejection, if there was one."""
        if self.fatal is not None:
            fatal, self.fatal = self.fatal, None
            raise fatal

    def __getstate__(self):
        return {**self.__dict__, "error": None}


@contextmanager
def recorded_in(failures):
    """Within this context, record exceptions of users' functions called by this thread in ``failures``."""
    before, _thread.current = current(), failures
    try:
        yield failures
    finally:
        _thread.current = before


def current():
    """The `Failures` in which this thread counts exceptions, or None."""
    return getattr(_thread, "current", None)


_explanations = []  # functions of (theta, rows, params, scale) that repeat a call of a jitted function and let it raise


def explained_by(function):
    """Register a function of (theta, rows, params, scale) that raises like the jitted one; returns its key."""
    _explanations.append(function)
    return len(_explanations) - 1


def report(key, theta, rows, params, scale):
    """Count an exception of a jitted function at a point; the call is repeated in Python to identify the exception."""
    failures = current()
    if failures is None:
        return
    if failures.n > 0:
        failures.n += 1
        return
    try:
        _explanations[key](theta.copy(), rows, params, scale)
    except BaseException as error:
        failures.add(error)
    else:
        failures.add(RuntimeError("an exception that did not occur again"))
