"""Several chains side by side, in threads or other processes, with callbacks and Ctrl-C in between."""

import time
from concurrent.futures import BrokenExecutor
from multiprocessing import TimeoutError as PoolTimeoutError

import numpy as np
from joblib import Parallel, delayed, wrap_non_picklable_objects
from joblib.parallel import get_active_backend

from ..utils._progress import progress_bar
from ..utils._warnings import warn_user
from .interrupts import deaf_to_interrupts, deferred_interrupt

LOOK_AROUND_SECONDS = 0.5
# In other processes: the first piece, which starts them; bounds of later ones; the share of time that sending may take.
FIRST_AWAY_SECONDS = 0.5
AWAY_SECONDS = 1.0, 10.0
AWAY_SHARE = 0.05
# How long after Ctrl-C and the end of a piece a worker may take to answer.
PATIENCE_SECONDS = 5.0


def run_chains(chains, n_iter, *, n_jobs=None, verbose=0, callbacks=(), look=None, stop=None):
    """Run chains up to step ``n_iter``, looking around about twice a second (less often at chains in other processes).

    Parameters
    ----------
    chains : list of Chain
        Bound to their data. With a joblib backend of processes they come back as copies.
    n_iter : int
        Last step.
    n_jobs : int or None
        Chains at a time, in threads unless `joblib.parallel_config` says otherwise. Draws do not depend on it.
    verbose : int
        1 shows a progress bar (tqdm where installed).
    callbacks : sequence of callbacks
        See `sk_sgmcmc.callbacks`.
    look : callable, optional
        Given the chains, returns the estimator that callbacks are shown.
    stop : Stop, optional
        From `deferred_interrupt`, where the caller handles Ctrl-C; otherwise it is handled, and warned of, here.

    Returns
    -------
    chains : list of Chain
    interrupted : bool
        Whether Ctrl-C stopped them early.
    """
    if stop is None:
        with deferred_interrupt() as stop:
            chains = _run_pieces(chains, n_iter, n_jobs, verbose, callbacks, look, stop)
        if stop.is_set():
            step = min(chain.step for chain in chains)
            warn_user(f"Interrupted after {step} of {n_iter} steps; what is returned holds the draws made so far.")
        return chains, stop.is_set()
    return _run_pieces(chains, n_iter, n_jobs, verbose, callbacks, look, stop), stop.is_set()


def _run_pieces(chains, n_iter, n_jobs, verbose, callbacks, look, stop):
    bar = progress_bar(verbose, n_iter, min(chain.step for chain in chains))
    shared = getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False)
    stop.shielded = not shared
    # Large arrays reach other processes as memory maps, copied on write.
    with bar, Parallel(n_jobs=n_jobs, prefer="threads", mmap_mode="c") as pool:
        away = None if shared or pool.n_jobs == 1 or len(chains) == 1 else _OtherProcesses(pool, stop)
        while not stop.is_set():
            step = min(chain.step for chain in chains)
            bar.update(step - bar.n)
            if step >= n_iter:
                break
            until = min([n_iter, *(callback.next_step(step) for callback in callbacks)])
            if away:
                chains = away.run(chains, until)
            elif pool.n_jobs == 1 or len(chains) == 1:
                for chain in chains:
                    chain.run(max(until, chain.step), LOOK_AROUND_SECONDS, stop)
            else:
                pool(delayed(chain.run)(max(until, chain.step), LOOK_AROUND_SECONDS, stop) for chain in chains)
            reached = min(chain.step for chain in chains)
            if callbacks and reached > step and any([callback(look(chains), reached) for callback in callbacks]):
                break
    stop.shielded = False
    if not shared and stop.pressed_again:
        raise KeyboardInterrupt
    return chains


class _OtherProcesses:
    """Runs chains in other processes, piece by piece; they come home in between, as copies.

    A piece is long enough that sending chains takes a small share of the time, and short enough that Ctrl-C,
    checkpoints and progress need not wait for long.

    Parameters
    ----------
    pool : joblib.Parallel
    stop : Stop
    """

    def __init__(self, pool, stop):
        self.pool, self.stop = pool, stop
        self.seconds, self.sending = FIRST_AWAY_SECONDS, None

    def run(self, chains, until):
        """Chains after one more piece; those given where Ctrl-C lost it."""
        # A worker that was interrupted before it could turn deaf may leave its task without an answer for ever.
        self.pool.timeout = None
        self.stop.when_set = self._hurry
        turns = -(-len(chains) // self.pool.n_jobs)
        began = time.monotonic()
        try:
            answers = self.pool(
                delayed(_run_away)(_Parcel(chain), chain.data, max(until, chain.step), self.seconds / turns)
                for chain in chains
            )
        except (KeyboardInterrupt, BrokenExecutor, PoolTimeoutError):
            # Ctrl-C reached a worker between two pieces, maybe before it reached us. The last copies are whole.
            if not self.stop.wait(1.0):
                raise
            return chains
        finally:
            self.stop.when_set = lambda: None
        spent = time.monotonic() - began
        ran = max(seconds for _, seconds in answers) * turns
        self._adapt(max(0.0, spent - ran))
        return [_rebind(back, chain.data) for chain, (back, _) in zip(chains, answers, strict=True)]

    def _hurry(self):
        """Give the workers a little longer after Ctrl-C, and none after a second one."""
        self.pool.timeout = -1.0 if self.stop.pressed_again else self.seconds + PATIENCE_SECONDS

    def _adapt(self, sending):
        """Size the next piece; what the first one took beside running was the start of the processes."""
        if self.sending is None:
            self.sending = np.inf
        else:
            self.sending = min(self.sending, sending)
            shortest, longest = AWAY_SECONDS
            self.seconds = min(max(shortest, self.sending / AWAY_SHARE), longest, max(shortest, 2 * self.seconds))


def _rebind(chain, data):
    return chain if chain.data is data else chain.bind(data)


class _Parcel:
    """A chain on its way to another process, as bytes: of arrays joblib would leave a file for each piece."""

    def __init__(self, chain):
        self.chain = chain

    def __reduce__(self):
        return _Parcel, (wrap_non_picklable_objects(self.chain, keep_wrapper=False),)


def _run_away(parcel, data, until, seconds):
    """What a worker does: the chain after a piece, and for how long it ran."""
    with deaf_to_interrupts():
        chain = parcel.chain.bind(data)
        began = time.monotonic()
        chain.run(until, seconds)
        return chain, time.monotonic() - began
