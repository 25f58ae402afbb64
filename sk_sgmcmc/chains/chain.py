"""Chains: what one has, which of its draws are kept, and how several run side by side.

A chain is numbers only, so that it can be pickled, resumed and sent to another process; the data are bound to it from
outside. How long a piece of it runs never changes a draw.
"""

import time
from concurrent.futures import BrokenExecutor
from copy import deepcopy
from multiprocessing import TimeoutError as PoolTimeoutError

import numpy as np
from joblib import Parallel, delayed, wrap_non_picklable_objects
from joblib.parallel import get_active_backend

from ..utils._progress import progress_bar
from ..utils._warnings import warn_user
from .interrupts import deaf_to_interrupts, deferred_interrupt

# Draws are kept as float32 up to this many bytes over all chains; ``thin="auto"`` keeps fewer rather than more.
DRAW_MEMORY = 512 * 2**20
MAX_AUTO_DRAWS = 100
TINY = 1e-300  # what a cell that underflows is set to, so that no row sums to 0
LOOK_AROUND_SECONDS = 0.5
# In other processes: the first piece, which starts them; bounds of later ones; the share of time that sending may take.
FIRST_AWAY_SECONDS = 0.5
AWAY_SECONDS = 1.0, 10.0
AWAY_SHARE = 0.05
# How long after Ctrl-C and the end of a piece a worker may take to answer.
PATIENCE_SECONDS = 5.0


class DrawPlan:
    """Which steps of a chain are kept.

    Parameters
    ----------
    n_iter : int
        Steps of the chain.
    burn_in : float or int
        A fraction of ``n_iter`` in [0, 1), or a number of steps: what is thrown away at the start.
    thin : int or "auto"
        Every ``thin``-th later step is kept; "auto" keeps at most `MAX_AUTO_DRAWS` within `DRAW_MEMORY`.
    bytes_per_draw : int
        Over all chains.
    max_draws : int
        What "auto" keeps at most.
    """

    def __init__(self, n_iter, burn_in, thin, bytes_per_draw=0, max_draws=MAX_AUTO_DRAWS):
        self.n_iter = int(n_iter)
        self.n_burn = int(burn_in * n_iter) if burn_in < 1 else int(burn_in)
        if self.n_burn >= self.n_iter:
            raise ValueError(
                f"burn_in={burn_in!r} throws away all of the n_iter={n_iter} steps; "
                f"use a burn_in below {n_iter} or a fraction such as 0.5."
            )
        n_left = self.n_iter - self.n_burn
        if thin == "auto":
            n_draws = min(max_draws, max(1, DRAW_MEMORY // max(1, bytes_per_draw)))
            thin = max(1, -(-n_left // n_draws))
        elif thin > n_left:
            raise ValueError(
                f"thin={thin} keeps no draw of the {n_left} steps after burn-in; use a thin of at most {n_left}."
            )
        self.thin = int(thin)
        self.n_draws = n_left // self.thin

    def wants(self, step):
        """Whether the state after ``step`` steps is kept."""
        return step > self.n_burn and (step - self.n_burn) % self.thin == 0

    def used(self, kept_steps):
        """Which of the draws kept after ``kept_steps`` count: all of them."""
        return np.ones(len(kept_steps), dtype=bool)

    def slots(self, start, stop):
        """For the steps start..stop-1 (from 0): the index of the draw kept after each, or -1."""
        after = np.arange(start + 1, stop + 1) - self.n_burn
        return np.where((after > 0) & (after % self.thin == 0), after // self.thin - 1, -1)


class StreamPlan:
    """Which steps of a chain without an end are kept: every one, then every second, every fourth, ... as it grows.

    Parameters
    ----------
    burn_in : float or int
        Fraction of the steps made so far, or number of steps, whose draws do not count.
    bytes_per_draw : int
        Over all chains.
    """

    n_burn = np.inf  # a stream never stops fitting its priors

    def __init__(self, burn_in, bytes_per_draw=0):
        self.burn_in = burn_in
        self.n_draws = int(min(MAX_AUTO_DRAWS, max(2, DRAW_MEMORY // max(1, bytes_per_draw))))
        self.stride = 1

    def wants(self, step):
        """Whether the state after ``step`` steps is kept."""
        return step % self.stride == 0

    def used(self, kept_steps):
        """Which of the draws kept after ``kept_steps`` count: those after burn-in, at least the last."""
        kept_steps = np.asarray(kept_steps)
        n_burn = self.burn_in * kept_steps[-1] if self.burn_in < 1 else self.burn_in
        used = kept_steps > n_burn
        used[-1] = True
        return used


class ChainDivergedError(FloatingPointError, ValueError):
    """A chain left the finite numbers; the message names the step, the parameter and a step size to try."""


class Chain:
    """One Markov chain: state, stream of random numbers, and the draws kept so far.

    Subclasses hold arrays and numbers only, name in ``_unpickled`` what they derive from the data, and implement
    `bind`, `_advance` and `current`.

    Attributes
    ----------
    data : object
        What `bind` was given; not part of a pickle.
    step : int
        Steps made.
    rng : numpy.random.Generator
        The chain's own stream.
    kept : dict of str to ndarray of shape (n_draws, ...)
        Draws kept so far, filled up to ``n_kept``; ``kept_steps`` says after which steps.
    """

    _unpickled = ("data",)
    data = None

    def __init__(self, seed, plan):
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.plan = plan
        self.step = 0
        self.kept = {}
        self.kept_steps = []
        self.n_kept = 0

    def bind(self, data):
        """Give the chain its data, at the start and again after it was pickled."""
        self.data = data
        return self

    def run(self, until, seconds=np.inf, stop=None):
        """Make steps up to step number ``until``, for about ``seconds``, or until the event ``stop`` is set."""
        deadline = time.monotonic() + seconds
        while self.step < until and not (stop is not None and stop.is_set()):
            self._advance(until)
            if time.monotonic() > deadline:
                break
        return self

    def _advance(self, until):
        """Make at least one and at most ``until - self.step`` steps, and count them in ``self.step``."""
        raise TypeError(f"{type(self).__name__} makes no steps.")

    def current(self):
        """The present state as one draw: dict of arrays; does not change the chain."""
        raise TypeError(f"{type(self).__name__} has no draws.")

    def keep(self, draw):
        """Store a draw (dict of arrays); a stream that is full first forgets every second of its draws."""
        if self.n_kept == self.plan.n_draws:
            self.plan.stride *= 2
            staying = [i for i, step in enumerate(self.kept_steps) if self.plan.wants(step)]
            for name, value in self.kept.items():  # into a new array: a `twin` may share the old one
                self.kept[name] = np.empty_like(value)
                self.kept[name][: len(staying)] = value[staying]
            self.kept_steps = [self.kept_steps[i] for i in staying]
            self.n_kept = len(staying)
            if not self.plan.wants(self.step):
                return
        for name, value in draw.items():
            if name not in self.kept:
                self.kept[name] = np.empty((self.plan.n_draws, *np.shape(value)), dtype=np.asarray(value).dtype)
            self.kept[name][self.n_kept] = value
        self.kept_steps.append(self.step)
        self.n_kept += 1

    def draws(self):
        """Kept draws that count, (n, ...) each; the present state where none is kept yet."""
        if self.n_kept == 0:
            return {name: np.asarray(value)[None] for name, value in self.current().items()}
        used = self.plan.used(self.kept_steps)
        return {name: value[: self.n_kept][used] for name, value in self.kept.items()}

    def __getstate__(self):
        state = self.__dict__.copy()
        for name in self._unpickled:
            state.pop(name, None)
        # The state of the generator is plain numbers; a pickled Generator object would tie it to a NumPy version.
        state["rng"] = self.rng.bit_generator.state
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        bits = np.random.PCG64()
        bits.state = state["rng"]
        self.rng = np.random.Generator(bits)

    def twin(self, memo=None):
        """A copy at the same data that moves, and draws, on its own; the two share the draws kept so far.

        Only one of them may go on: draws are added behind those that both count.

        Parameters
        ----------
        memo : dict, optional
            As for `copy.deepcopy`, for several copies that share objects.
        """
        memo = {} if memo is None else memo
        memo |= {id(value): value for value in self.kept.values()}
        twin = deepcopy(self, memo)
        return twin if self.data is None else twin.bind(self.data)

    def copy_for_looking(self):
        """A copy with a stream of its own, to look at the chain without changing it."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        present = self.rng.bit_generator.state["state"]
        twin.rng = np.random.Generator(np.random.PCG64([self.step, present["state"], present["inc"]]))
        return twin


def stacked_draws(chains):
    """The draws of all chains that count, (n_chains, n_kept, ...) each; as many of each as the shortest has."""
    drawn = [chain.draws() for chain in chains]
    n_kept = min(len(value) for draws in drawn for value in draws.values())
    return {name: np.stack([draws[name][:n_kept] for draws in drawn]) for name in drawn[0]}


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
