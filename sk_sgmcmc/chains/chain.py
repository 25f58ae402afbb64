"""Base class of Markov chains, and the plans of which draws they keep.

A chain contains only numbers and arrays, so that it can be pickled, resumed and sent to another process. Its data are
bound to it separately. The division of a run into pieces never changes a draw.
"""

import time
from copy import deepcopy

import numpy as np

# Bytes that the draws kept by ``thin="auto"`` or on a stream may take, over all chains.
DRAW_MEMORY = 512 * 2**20
MAX_AUTO_DRAWS = 100
ENOUGH_DRAWS = 20  # From this number on, a stream uses only draws of its own, not of the fit before.


class DrawPlan:
    """The steps of a chain after which a draw is kept.

    Parameters
    ----------
    n_iter : int
        Number of steps of the chain.
    burn_in : float or int
        Steps to discard at the start, as a fraction of ``n_iter`` in [0, 1) or a number.
    thin : int or "auto"
        Keep a draw after every ``thin``-th step after burn-in. "auto" keeps at most ``max_draws``, within
        `DRAW_MEMORY`.
    bytes_per_draw : int
        Size of a draw, summed over all chains.
    max_draws : int
        Maximum number of draws for "auto".
    """

    streams = False  # whether rows arrive in blocks, so that draws are of different posteriors
    first_step = 0  # number of steps that the chain has made before
    hottest = np.inf  # largest temperature of tempered steps

    def __init__(self, n_iter, burn_in, thin, bytes_per_draw=0, max_draws=MAX_AUTO_DRAWS):
        self.n_iter = int(n_iter)
        # In floating point, 0.29 * 100 is a little less than 29.
        self.n_burn = int(burn_in * n_iter + 1e-9) if burn_in < 1 else int(burn_in)
        if self.n_burn >= self.n_iter:
            raise ValueError(
                f"burn_in={burn_in!r} discards all of the n_iter={n_iter} steps; "
                f"use a burn_in below {n_iter} or a fraction such as 0.5."
            )
        n_left = self.n_iter - self.n_burn
        if thin == "auto":
            thin = max(1, -(-n_left // self.most_draws(bytes_per_draw, max_draws)))
        elif thin > n_left:
            raise ValueError(
                f"thin={thin} keeps no draw of the {n_left} steps after burn-in; use a thin of at most {n_left}."
            )
        self.thin = int(thin)
        self.n_draws = n_left // self.thin

    @staticmethod
    def most_draws(bytes_per_draw, max_draws=MAX_AUTO_DRAWS):
        """Largest number of draws for "auto"."""
        return int(min(max_draws, max(1, DRAW_MEMORY // max(1, bytes_per_draw))))

    def wants(self, step):
        """Whether the state after ``step`` steps is kept."""
        return step > self.n_burn and (step - self.n_burn) % self.thin == 0

    def used(self, kept_steps):
        """Whether each of the draws kept after ``kept_steps`` is used in results: all are."""
        return np.ones(len(kept_steps), dtype=bool)

    def recent(self, sizes):
        """Indices of the draws that are of the present data, given the ``sizes`` of their data: all are."""
        return list(range(len(sizes)))

    def uses_fit(self, kept_steps):
        """Whether a stream still uses draws of the fit that it continues; False, since this plan is of no stream."""
        return False

    def slots(self, start, stop):
        """Index of the draw that is kept after each of the steps start..stop-1 (counted from 0), or -1 for none."""
        after = np.arange(start + 1, stop + 1) - self.n_burn
        return np.where((after > 0) & (after % self.thin == 0), after // self.thin - 1, -1)


class StreamPlan:
    """The steps of a chain on a stream after which a draw is kept.

    A draw is kept after every step at first. Each time the array is full, every second draw is dropped, and the
    interval between later ones doubles. Draws of a fit that the stream continues are used until the stream has
    `ENOUGH_DRAWS` of its own.

    Parameters
    ----------
    burn_in : float or int
        Fraction of the steps made so far, or number of steps, whose draws are not used in results.
    bytes_per_draw : int
        Size of a draw, summed over all chains.
    first_step : int, default=0
        Number of steps that the chain made in `fit`.
    """

    n_iter = np.inf  # the length of a stream is unknown
    n_burn = np.inf  # priors are fitted as long as a stream lasts
    streams = True

    def __init__(self, burn_in, bytes_per_draw=0, first_step=0):
        self.burn_in, self.first_step = burn_in, first_step
        self.n_draws = int(min(MAX_AUTO_DRAWS, max(2, DRAW_MEMORY // max(1, bytes_per_draw))))
        self.stride = 1

    def wants(self, step):
        """Whether the state after ``step`` steps is kept."""
        return step % self.stride == 0

    def staying(self, kept_steps):
        """Indices of the draws that stay if the array is full, which doubles the interval between later ones."""
        self.stride *= 2
        is_used = self.used(kept_steps)
        return [i for i, step in enumerate(kept_steps) if (is_used[i] if step <= self.first_step else self.wants(step))]

    def used(self, kept_steps):
        """Whether each of the draws kept after ``kept_steps`` is used in results.

        These are the draws after burn-in, and the last one. Draws of the fit are used as well until there are enough.
        """
        kept_steps = np.asarray(kept_steps)
        n_burn = self.burn_in * kept_steps[-1] if self.burn_in < 1 else self.burn_in
        is_own = kept_steps > self.first_step
        used = is_own & (kept_steps > n_burn)
        used[-1] = True
        return used if used.sum() >= ENOUGH_DRAWS else used | ~is_own

    def recent(self, sizes):
        """Indices of the draws to keep, given the ``sizes`` of their data: all, since a stream keeps no data."""
        return list(range(len(sizes)))

    def uses_fit(self, kept_steps):
        """Whether results use draws of the fit that the stream continues."""
        return len(kept_steps) > 0 and kept_steps[0] <= self.first_step and bool(self.used(kept_steps)[0])


TINY = 1e-300  # replaces a cell that underflows, so that no row sums to 0


class Chain:
    """One Markov chain: its state, its random generator, and the draws kept so far.

    Subclasses contain only arrays and numbers, list in ``_unpickled`` the attributes that they derive from the data,
    and implement `bind`, `_advance` and `current`.

    Attributes
    ----------
    data : object
        The argument of `bind`; not part of a pickle.
    step : int
        Number of steps made.
    rng : numpy.random.Generator
        The chain's own generator.
    kept : dict of str to ndarray of shape (n_draws, ...)
        Kept draws, of which the first ``n_kept`` are filled in. ``kept_steps`` are the steps after which they were
        kept.
    """

    _unpickled = ("data",)
    data = None
    progress = ""  # what the progress bar shows next to the number of steps
    failure = None  # the error after which the chain returned to an earlier state, and which ends the run

    def __init__(self, seed, plan):
        self.rng = np.random.Generator(np.random.PCG64(seed))
        self.plan = plan
        self.step = 0
        self.kept = {}
        self.kept_steps = []
        self.n_kept = 0

    def bind(self, data):
        """Bind the chain to its data, at the start and again after unpickling; returns the chain."""
        self.data = data
        return self

    def run(self, until, seconds=np.inf, stop=None):
        """Make steps up to step number ``until``, for about ``seconds`` at most, or until ``stop`` is set."""
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
        """The present state as one draw, a dict of arrays; does not change the chain."""
        raise TypeError(f"{type(self).__name__} has no draws.")

    def keep(self, draw):
        """Store a draw, a dict of arrays, unless `make_room` returns False."""
        if not self.make_room():
            return
        for name, value in draw.items():
            if name not in self.kept:
                self.kept[name] = np.empty((self.plan.n_draws, *np.shape(value)), dtype=np.asarray(value).dtype)
            self.kept[name][self.n_kept] = value
        self.kept_steps.append(self.step)
        self.n_kept += 1

    def make_room(self):
        """Drop draws according to the plan if no more fit in; returns whether the present draw is still wanted."""
        if self.n_kept < self.plan.n_draws:
            return True
        self.keep_only(self.plan.staying(self.kept_steps))
        return self.plan.wants(self.step)

    def keep_only(self, staying):
        """Drop all kept draws but those at the indices ``staying``, and make room for as many as the plan keeps."""
        if not staying:
            self.kept = {}  # Later draws may have other shapes.
        for name, value in self.kept.items():  # into a new array, since a `copy` of the chain may share the old one
            self.kept[name] = np.empty((self.plan.n_draws, *value.shape[1:]), dtype=value.dtype)
            self.kept[name][: len(staying)] = value[staying]
        self.kept_steps = [self.kept_steps[i] for i in staying]
        self.n_kept = len(staying)

    def restart(self, plan):
        """Drop the kept draws, for example because the data have changed, and keep later ones according to ``plan``."""
        self.plan, self.kept, self.kept_steps, self.n_kept = plan, {}, [], 0

    def checks(self):
        """Results of the checks that need the chain itself, not only its draws, a list of `Check`."""
        return []

    def draws(self):
        """The kept draws that results use, a dict of arrays (n, ...); the present state if no draw is kept yet."""
        if self.n_kept == 0:
            return {name: np.asarray(value)[None] for name, value in self.current().items()}
        used = self.plan.used(self.kept_steps)
        return {name: value[: self.n_kept][used] for name, value in self.kept.items()}

    def __getstate__(self):
        state = self.__dict__.copy()
        for name in self._unpickled:
            state.pop(name, None)
        # The state of the generator consists of plain numbers; a pickled Generator would depend on the NumPy version.
        state["rng"] = self.rng.bit_generator.state
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        bits = np.random.PCG64()
        bits.state = state["rng"]
        self.rng = np.random.Generator(bits)

    def copy(self, memo=None):
        """A copy with a state and generator of its own, bound to the same data; the two share the arrays of kept draws.

        Only one of the two may continue, since it writes later draws into these arrays.

        Parameters
        ----------
        memo : dict, optional
            As for `copy.deepcopy`. Pass the same one for chains that share objects, so that their copies do so too.
        """
        memo = {} if memo is None else memo
        memo |= {id(value): value for value in self.kept.values()}
        other = deepcopy(self, memo)
        return other if self.data is None else other.bind(self.data)

    def shallow_copy(self, kind=None):
        """A chain that shares its state, generator, data and draws with this one; only one of the two may continue.

        ``kind`` is the class of the new chain, with the same attributes. None: the class of this chain.
        """
        kind = type(self) if kind is None else kind
        other = kind.__new__(kind)
        other.__dict__.update(self.__dict__)
        return other

    def snapshot(self):
        """A shallow copy with a generator of its own, to draw from without changing the draws of the chain."""
        shot = self.shallow_copy()
        present = self.rng.bit_generator.state["state"]
        shot.rng = np.random.Generator(np.random.PCG64([self.step, present["state"], present["inc"]]))
        return shot


def stacked_draws(chains):
    """The draws of all chains that results use, a dict of arrays (n_chains, n_kept, ...), cut to the shortest chain."""
    drawn = [chain.draws() for chain in chains]
    n_kept = min(len(value) for draws in drawn for value in draws.values())
    return {name: np.stack([draws[name][:n_kept] for draws in drawn]) for name in drawn[0]}
