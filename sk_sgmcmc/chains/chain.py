"""Base class of Markov chains, and which of their steps are kept.

A chain holds only numbers, so that it can be pickled, resumed and sent to another process; the data are bound to it
from outside. How its run is divided into pieces never changes a draw.
"""

import time
from copy import deepcopy

import numpy as np

# Draws are kept as float32 up to this many bytes over all chains; ``thin="auto"`` keeps fewer draws to stay below.
DRAW_MEMORY = 512 * 2**20
MAX_AUTO_DRAWS = 100


class DrawPlan:
    """Which steps of a chain are kept.

    Parameters
    ----------
    n_iter : int
        Steps of the chain.
    burn_in : float or int
        Steps to discard at the start, as a fraction of ``n_iter`` in [0, 1) or a number.
    thin : int or "auto"
        Every ``thin``-th later step is kept; "auto" keeps at most `MAX_AUTO_DRAWS` within `DRAW_MEMORY`.
    bytes_per_draw : int
        Over all chains.
    max_draws : int
        Maximum for "auto".
    """

    streams = False  # whether rows arrive in blocks, so that draws are of different posteriors

    def __init__(self, n_iter, burn_in, thin, bytes_per_draw=0, max_draws=MAX_AUTO_DRAWS):
        self.n_iter = int(n_iter)
        # 0.29 * 100 is a little less than 29.
        self.n_burn = int(burn_in * n_iter + 1e-9) if burn_in < 1 else int(burn_in)
        if self.n_burn >= self.n_iter:
            raise ValueError(
                f"burn_in={burn_in!r} discards all of the n_iter={n_iter} steps; "
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
    """Which steps of an endless chain are kept: every one, then every second, every fourth, ... as it grows.

    Parameters
    ----------
    burn_in : float or int
        Fraction of the steps made so far, or number of steps, whose draws do not count.
    bytes_per_draw : int
        Over all chains.
    """

    n_iter = np.inf  # nobody knows when a stream ends
    n_burn = np.inf  # on a stream, priors are fitted to its end
    streams = True

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


TINY = 1e-300  # replaces a cell that underflows, so that no row sums to 0


class Chain:
    """One Markov chain: state, stream of random numbers, and the draws kept so far.

    Subclasses hold arrays and numbers only, list in ``_unpickled`` what they derive from the data, and implement
    `bind`, `_advance` and `current`.

    Attributes
    ----------
    data : object
        The argument of `bind`; not part of a pickle.
    step : int
        Steps made.
    rng : numpy.random.Generator
        The chain's own stream.
    kept : dict of str to ndarray of shape (n_draws, ...)
        Draws kept so far, filled up to ``n_kept``; ``kept_steps`` lists after which steps.
    """

    _unpickled = ("data",)
    data = None
    progress = ""  # what the progress bar shows next to the number of steps
    failure = None  # the error that made the chain return to an earlier state; its run ends there

    def __init__(self, seed, plan):
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.plan = plan
        self.step = 0
        self.kept = {}
        self.kept_steps = []
        self.n_kept = 0

    def bind(self, data):
        """Bind the chain to its data, at the start and again after unpickling."""
        self.data = data
        return self

    def run(self, until, seconds=np.inf, stop=None):
        """Make steps up to step number ``until``, for about ``seconds``, or until the event ``stop`` is set."""
        deadline = time.monotonic() + seconds
        while self.step < until and not (stop is not None and stop.is_set()):
            self._advance(until)
            if self.failure is not None or time.monotonic() > deadline:
                break
        return self

    def _advance(self, until):
        """Make between one and ``until - self.step`` steps, and count them in ``self.step``."""
        raise TypeError(f"{type(self).__name__} makes no steps.")

    def current(self):
        """The present state as one draw: dict of arrays; does not change the chain."""
        raise TypeError(f"{type(self).__name__} has no draws.")

    def keep(self, draw):
        """Store a draw (dict of arrays); a full stream first drops every second draw."""
        if self.n_kept == self.plan.n_draws:
            self.plan.stride *= 2
            staying = [i for i, step in enumerate(self.kept_steps) if self.plan.wants(step)]
            for name, value in self.kept.items():  # into a new array: a `copy` may share the old one
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

    def restart(self, plan):
        """Drop the draws kept so far, which belong to other data or to another start, and keep new ones by ``plan``."""
        self.plan, self.kept, self.kept_steps, self.n_kept = plan, {}, [], 0

    def checks(self):
        """Results of the checks of its draws that only the chain can make, a list of `Check`."""
        return []

    def draws(self):
        """Kept draws that count, (n, ...) each; the present state if none is kept yet."""
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

    def copy(self, memo=None):
        """A chain bound to the same data that moves and draws independently; the two share the draws kept so far.

        Only one of the two may continue: draws are appended to the shared ones.

        Parameters
        ----------
        memo : dict, optional
            As for `copy.deepcopy`, for several copies that share objects.
        """
        memo = {} if memo is None else memo
        memo |= {id(value): value for value in self.kept.values()}
        other = deepcopy(self, memo)
        return other if self.data is None else other.bind(self.data)

    def shallow_copy(self, kind=None):
        """A chain of this class, or of a ``kind`` with the same attributes, that shares state, stream, data and draws.

        Only one of the two may continue.
        """
        kind = type(self) if kind is None else kind
        other = kind.__new__(kind)
        other.__dict__.update(self.__dict__)
        return other

    def snapshot(self):
        """A copy with its own stream, for inspecting the chain without changing it."""
        shot = self.shallow_copy()
        present = self.rng.bit_generator.state["state"]
        shot.rng = np.random.Generator(np.random.PCG64([self.step, present["state"], present["inc"]]))
        return shot


def stacked_draws(chains):
    """The draws that count of all chains, (n_chains, n_kept, ...) each, cut to the shortest chain."""
    drawn = [chain.draws() for chain in chains]
    n_kept = min(len(value) for draws in drawn for value in draws.values())
    return {name: np.stack([draws[name][:n_kept] for draws in drawn]) for name in drawn[0]}
