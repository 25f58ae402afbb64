"""Handling of Ctrl-C: as a request to stop between two steps, never within a call, or ignored in worker processes."""

import _thread
import itertools
import os
import signal
import threading
import time
from contextlib import contextmanager, suppress

# How long a worker ignores Ctrl-C after a piece: long enough for its chain to return and the next piece to arrive.
_IGNORE_SECONDS = 60.0
_AGAIN_SECONDS = 0.001  # after which Ctrl-C is tried again if it could not interrupt


@contextmanager
def interrupts_between_calls():
    """Context in which Ctrl-C interrupts before or after the call of a compiled function, not while it begins.

    numba passes a random generator to a compiled function by calling `ctypes.cast`, and does not look whether this call
    raised an exception. A `KeyboardInterrupt` there would end the process with a segmentation fault.

    Does nothing outside the main thread, or if SIGINT is ignored or handled by something other than Python.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return

    def interrupt(signum, frame):
        if _within_ctypes(frame):
            with suppress(RuntimeError):  # no thread can be started, so that this Ctrl-C is lost
                _thread.start_new_thread(_interrupt_again, ())  # `threading.Thread` would wait for locks
        else:
            before(signum, frame)

    try:
        signal.signal(signal.SIGINT, interrupt)
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, before)


def _within_ctypes(frame):
    while frame is not None:
        if frame.f_globals.get("__name__") == "ctypes":
            return True
        frame = frame.f_back
    return False


def _interrupt_again():
    time.sleep(_AGAIN_SECONDS)
    if hasattr(signal, "pthread_kill"):  # not on Windows; unlike `interrupt_main`, it ends a wait of the main thread
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        _thread.interrupt_main()


class Stop:
    """A flag that is set when Ctrl-C is pressed, and counts how often.

    A signal handler may interrupt itself, so no method may wait for a lock. `threading.Event.set` would wait for ever
    if another `~threading.Event.set` of the same thread interrupted it.

    Attributes
    ----------
    pressed_again : bool
        Whether Ctrl-C was pressed a second time, which interrupts at once.
    when_set : callable
        Function without arguments that the signal handler calls.
    shielded : bool
        Whether the second Ctrl-C only sets ``pressed_again``, and the code that set ``shielded`` raises the interrupt
        later. An interrupt while a pool starts or ends may leave a lock held for ever. A third one interrupts at once.
    """

    def __init__(self):
        self.pressed_again = self.shielded = self._is_set = False
        self.when_set = lambda: None
        self._earlier = itertools.count()  # `next` cannot be interrupted halfway, unlike an addition

    def press(self):
        """Set the flag; returns how often it was set before."""
        earlier = next(self._earlier)
        self._is_set = True
        if earlier:
            self.pressed_again = True
        return earlier

    def is_set(self):
        """Whether Ctrl-C was pressed."""
        return self._is_set

    def wait(self, seconds):
        """Wait for Ctrl-C for at most ``seconds``; returns whether it was pressed."""
        until = time.monotonic() + seconds
        while not self._is_set and time.monotonic() < until:
            time.sleep(0.01)
        return self._is_set


@contextmanager
def deferred_interrupt():
    """Context in which Ctrl-C sets a flag, so that chains stop between two steps.

    Does nothing outside the main thread, or if SIGINT is ignored (a job in the background) or handled by something
    other than Python.

    Yields
    ------
    Stop
        Set when Ctrl-C is pressed. Pressing it again interrupts at once, unless ``shielded`` is set.
    """
    stop, owner = Stop(), os.getpid()
    ignored = signal.getsignal(signal.SIGINT) in (None, signal.SIG_IGN)
    if ignored or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    with interrupts_between_calls():
        before = signal.getsignal(signal.SIGINT)

        def request(signum, frame):
            if os.getpid() != owner:  # in a forked worker, which leaves Ctrl-C to its parent
                return
            if stop.press() > (1 if stop.shielded else 0):
                signal.signal(signal.SIGINT, before)
                signal.raise_signal(signal.SIGINT)
            else:
                stop.when_set()

        try:
            signal.signal(signal.SIGINT, request)
            yield stop
        finally:
            if signal.getsignal(signal.SIGINT) is request:
                signal.signal(signal.SIGINT, before)


class _Ignore:
    """A worker's handler of SIGINT that does nothing until ``until``, and then restores the previous one."""

    def __init__(self, before):
        self.before, self.until = before, 0.0

    def __call__(self, signum, frame):
        if time.monotonic() > self.until:
            signal.signal(signal.SIGINT, self.before)
            signal.raise_signal(signal.SIGINT)


@contextmanager
def ignoring_interrupts():
    """Keep a worker process alive when a terminal sends Ctrl-C to the whole process group.

    The worker ignores Ctrl-C within the context and for a while afterwards, since its death while it returns a chain
    would break the pool. Then the previous handler is restored, since the worker may receive other work.
    """
    handler = None
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler in (None, signal.SIG_IGN):
            handler = None
        elif not isinstance(handler, _Ignore):
            handler = _Ignore(handler)
    if handler is None:
        yield
        return
    handler.until = float("inf")
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        handler.until = time.monotonic() + _IGNORE_SECONDS
