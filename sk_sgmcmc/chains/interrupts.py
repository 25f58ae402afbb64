"""Ctrl-C: where it becomes a request to stop between two steps, and where it must not be heard."""

import os
import signal
import threading
import time
from contextlib import contextmanager

# How long a worker stays deaf to Ctrl-C after a piece: until its chain is home and the next piece has come.
_DEAF_SECONDS = 60.0


class Stop(threading.Event):
    """Set once Ctrl-C was pressed.

    Attributes
    ----------
    pressed_again : bool
        Whether Ctrl-C was pressed a second time, which interrupts at once.
    when_set : callable
        Called inside the signal handler.
    shielded : bool
        Whether the second interrupt waits for whoever set this, who raises it: an interrupt in the middle of a pool
        that starts or ends can leave a lock taken for ever. A third one interrupts at once.
    """

    pressed_again = False
    shielded = False

    def __init__(self):
        super().__init__()
        self.when_set = lambda: None


@contextmanager
def deferred_interrupt():
    """Turn Ctrl-C into an event, so that chains stop between two steps.

    Does nothing outside the main thread, nor where SIGINT is ignored (a job in the background) or handled by something
    other than Python.

    Yields
    ------
    Stop
        Set once Ctrl-C was pressed. Pressing it again interrupts at once, as always.
    """
    stop, owner = Stop(), os.getpid()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):
        yield stop
        return

    def request(signum, frame):
        if os.getpid() != owner:  # a forked worker: the parent decides
            return
        if stop.shielded and not stop.pressed_again:
            stop.pressed_again = stop.is_set()
            stop.set()
            stop.when_set()
        elif stop.is_set():
            stop.pressed_again = True
            signal.signal(signal.SIGINT, before)
            signal.raise_signal(signal.SIGINT)
        else:
            stop.set()
            stop.when_set()

    try:
        signal.signal(signal.SIGINT, request)
        yield stop
    finally:
        if signal.getsignal(signal.SIGINT) is request:
            signal.signal(signal.SIGINT, before)


class _Deaf:
    """A worker's handler of SIGINT that does nothing until ``until``, and then gives way to the one before."""

    def __init__(self, before):
        self.before, self.until = before, 0.0

    def __call__(self, signum, frame):
        if time.monotonic() > self.until:
            signal.signal(signal.SIGINT, self.before)
            signal.raise_signal(signal.SIGINT)


@contextmanager
def deaf_to_interrupts():
    """Keep a worker process alive when a terminal sends Ctrl-C to the whole process group.

    It stays deaf for a while afterwards: dying while it hands its chain back would break the pool. Then the handler
    that was there acts again, since the worker may be given other work.
    """
    handler = None
    if threading.current_thread() is threading.main_thread():
        handler = signal.getsignal(signal.SIGINT)
        if handler in (None, signal.SIG_IGN):
            handler = None
        elif not isinstance(handler, _Deaf):
            handler = _Deaf(handler)
    if handler is None:
        yield
        return
    handler.until = float("inf")
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        handler.until = time.monotonic() + _DEAF_SECONDS
