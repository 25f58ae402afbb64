"""Runs of several chains in threads or processes, with a progress bar, callbacks and Ctrl-C."""

import time
from concurrent.futures import BrokenExecutor
from multiprocessing import TimeoutError as PoolTimeoutError
from pickle import PicklingError

import numpy as np
from joblib import Parallel, delayed, wrap_non_picklable_objects
from joblib.parallel import get_active_backend

from ..utils._warnings import warn_user
from .interrupts import deferred_interrupt, ignoring_interrupts

COMPILING = "compiling"  # shown until the first steps are made


class _Silent:
    n, text = 0, ""

    def update(self, n):
        self.n += n

    def set_postfix_str(self, text):
        self.text = text

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


class _Lines(_Silent):
    """Progress without tqdm: prints a line at each tenth of the steps, with the time left."""

    def __init__(self, total, initial):
        self.total, self.n, self.tenth = total, initial, 10 * initial // max(1, total)
        self.first, self.began = initial, time.monotonic()

    def set_postfix_str(self, text):
        if text == COMPILING:
            print(text, flush=True)
        else:
            self.text = text

    def update(self, n):
        self.n += n
        if 10 * self.n // max(1, self.total) > self.tenth:
            self.tenth = 10 * self.n // max(1, self.total)
            seconds = (self.total - self.n) * (time.monotonic() - self.began) / (self.n - self.first)
            left = [f"{seconds:.0f} s left"] if self.n < self.total else []
            print(f"step {self.n} of {self.total}", *left, *([self.text] if self.text else []), sep=", ", flush=True)


def progress_bar(verbose, total, initial):
    """A progress bar of ``total`` steps, ``initial`` of which are made; it shows nothing unless ``verbose``.

    Without tqdm, it prints lines.
    """
    if not verbose:
        bar = _Silent()
        bar.n = initial
        return bar
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Lines(total, initial)
    return tqdm(total=total, initial=initial, unit="step")


PIECE_SECONDS = 0.5
# For chains in other processes: length of the first piece, which includes their start; bounds of the length of later
# pieces; share of the time that may be spent on sending chains.
FIRST_AWAY_SECONDS = 0.5
AWAY_SECONDS = 1.0, 10.0
AWAY_SHARE = 0.05
# How long a worker may take to return after Ctrl-C, beyond the length of a piece.
PATIENCE_SECONDS = 5.0


def run_chains(chains, n_iter, *, n_jobs=None, verbose=0, callbacks=(), view=None, stop=None):
    """Run chains up to step ``n_iter``, pausing about twice a second (less often for chains in other processes).

    Parameters
    ----------
    chains : list of Chain
        Bound to their data. With a joblib backend of processes, copies are returned.
    n_iter : int
        Last step.
    n_jobs : int or None
        Number of chains that run at a time, in threads unless `joblib.parallel_config` chooses otherwise. Draws do not
        depend on it.
    verbose : int
        Set to 1 for a progress bar.
    callbacks : sequence of callbacks
        See `sk_sgmcmc.callbacks`.
    view : callable, optional
        Function from the chains to the estimator that callbacks receive.
    stop : Stop, optional
        From `deferred_interrupt`, if the caller handles Ctrl-C. None: Ctrl-C is handled here, with a warning.

    Returns
    -------
    chains : list of Chain
    interrupted : bool
        Whether Ctrl-C stopped them early.
    """
    if stop is None:
        with deferred_interrupt() as stop:
            chains = _run_pieces(chains, n_iter, n_jobs, verbose, callbacks, view, stop)
        if stop.is_set():
            step = min(chain.step for chain in chains)
            warn_user(f"Interrupted after {step} of {n_iter} steps; the result contains the draws made so far.")
        return chains, stop.is_set()
    return _run_pieces(chains, n_iter, n_jobs, verbose, callbacks, view, stop), stop.is_set()


def _run_pieces(chains, n_iter, n_jobs, verbose, callbacks, view, stop):
    bar = progress_bar(verbose, n_iter, min(chain.step for chain in chains))
    shared = getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False)
    stop.shielded, started = not shared, False
    # Large arrays reach other processes as memory maps, copied on write.
    with bar, Parallel(n_jobs=n_jobs, prefer="threads", mmap_mode="c") as pool:
        others = None if shared or pool.n_jobs == 1 or len(chains) == 1 else _OtherProcesses(pool, stop)
        while not stop.is_set():
            step = min(chain.step for chain in chains)
            # Kernels are compiled, or read from their cache, within the first piece.
            bar.set_postfix_str(chains[0].progress if started else COMPILING)
            started = True
            bar.update(step - bar.n)
            if step >= n_iter:
                break
            until = min([n_iter, *(callback.next_step(step) for callback in callbacks)])
            if others:
                chains = others.run(chains, until)
            elif pool.n_jobs == 1 or len(chains) == 1:
                for chain in chains:
                    chain.run(max(until, chain.step), PIECE_SECONDS, stop)
            else:
                pool(delayed(chain.run)(max(until, chain.step), PIECE_SECONDS, stop) for chain in chains)
            if any(chain.failure is not None for chain in chains):
                break
            reached = min(chain.step for chain in chains)
            if callbacks and reached > step and any([callback(view(chains), reached) for callback in callbacks]):
                break
    stop.shielded = False
    if not shared and stop.pressed_again:
        raise KeyboardInterrupt
    return chains


class _OtherProcesses:
    """Runs chains in other processes, piece by piece; after each piece, copies of the chains return.

    A piece is long enough that sending chains takes a small share of the time, and short enough that Ctrl-C,
    checkpoints and progress are not delayed for long.

    Parameters
    ----------
    pool : joblib.Parallel
    stop : Stop
    """

    def __init__(self, pool, stop):
        self.pool, self.stop = pool, stop
        self.seconds, self.sending = FIRST_AWAY_SECONDS, None

    def run(self, chains, until):
        """Chains after one more piece, or the chains passed if Ctrl-C destroyed the piece."""
        # A worker that Ctrl-C interrupts before it ignores Ctrl-C may never return from its task, so `_hurry` sets a
        # timeout.
        self.pool.timeout = None
        self.stop.when_set = self._hurry
        turns = -(-len(chains) // self.pool.n_jobs)
        began = time.monotonic()
        try:
            results = self.pool(
                delayed(_run_there)(_Parcel(chain), chain.data, max(until, chain.step), self.seconds / turns)
                for chain in chains
            )
        except PicklingError as error:
            why = str(error.__cause__ or error).strip(' \n"').splitlines()[-1]
            raise ValueError(
                f"The sampler and other parameters must be picklable, since chains run in other processes; got {why}. "
                "Leave out joblib.parallel_config, so that chains run in threads, or define functions and classes at "
                "the top level of a module."
            ) from error
        except (KeyboardInterrupt, BrokenExecutor, PoolTimeoutError):
            # Ctrl-C reached a worker between two pieces, perhaps before it reached this process. The chains are as they
            # were before the piece.
            if not self.stop.wait(1.0):
                raise
            return chains
        finally:
            self.stop.when_set = lambda: None
        spent = time.monotonic() - began
        ran = max(seconds for _, seconds in results) * turns
        self._adapt(max(0.0, spent - ran))
        return [_rebind(back.chain, chain.data) for chain, (back, _) in zip(chains, results, strict=True)]

    def _hurry(self):
        """Limit the time for which workers may continue after the first Ctrl-C, and stop waiting after the second."""
        self.pool.timeout = -1.0 if self.stop.pressed_again else self.seconds + PATIENCE_SECONDS

    def _adapt(self, sending):
        """Choose the length of the next piece from the time spent on ``sending``.

        The time of the first piece is ignored, since it includes the start of the processes.
        """
        if self.sending is None:
            self.sending = np.inf
        else:
            self.sending = min(self.sending, sending)
            shortest, longest = AWAY_SECONDS
            self.seconds = min(max(shortest, self.sending / AWAY_SHARE), longest, max(shortest, 2 * self.seconds))


def _rebind(chain, data):
    return chain if chain.data is data else chain.bind(data)


class _Parcel:
    """A wrapper that sends a chain to another process or back as bytes.

    Otherwise joblib would leave a file of the arrays behind for each piece, and Ray would make arrays read-only.
    """

    def __init__(self, chain):
        self.chain = chain

    def __reduce__(self):
        return _Parcel, (wrap_non_picklable_objects(self.chain, keep_wrapper=False),)


def _run_there(parcel, data, until, seconds):
    """Run a piece in a worker process; returns the chain and the seconds that the piece took."""
    with ignoring_interrupts():
        chain = parcel.chain.bind(data)
        began = time.monotonic()
        chain.run(until, seconds)
        return _Parcel(chain), time.monotonic() - began
