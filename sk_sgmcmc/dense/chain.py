"""Chains of models with dense rows: their data, the compiled loops that make their steps, and particles."""

import time
from dataclasses import dataclass

import numpy as np

from ..chains.chain import Chain
from ..chains.minibatches import BATCH_ORDERS, Minibatches
from ..exceptions import ChainDivergedError
from ..kernels import runners
from ..kernels._failures import Failures, recorded_in
from ..kernels.samplers import nuts, particles, riemannian
from ..samplers.state import SamplerState


class MinibatchLoop:
    """Reads one minibatch per step."""

    def also_kept(self, state):
        """Shapes of the arrays that are kept with each draw in addition to theta, by name."""
        if state.geometry == "euclidean" or not state.aux.shape[0]:
            return {}
        return {"aux": state.theta.shape}

    def run(self, chain, slots, hypers, draws):
        """Make a step for each entry of ``slots`` and keep draws; return (status, number of steps made).

        ``slots`` contains the index of each step in the arrays ``draws``, or -1 for steps that are not kept.
        """
        dense, state = chain.data[0], chain.state
        first, second = state.kernels()
        kept_aux = draws["aux"] if "aux" in draws else np.empty((0, *state.theta.shape))
        return runners.run_dense(
            *chain.read, chain.next_starts(len(slots)), dense.n_batch, dense.n_rows / dense.n_batch, hypers, slots,
            draws["theta"], kept_aux, first, dense.signal.compiled, second, chain.rng,
        )  # fmt: skip


class MetropolisLoop:
    """Metropolis trajectories on all rows."""

    def also_kept(self, state):
        """Nothing else is kept."""
        return {}

    def run(self, chain, slots, hypers, draws):
        """As `MinibatchLoop.run`."""
        first, second = chain.state.kernels()
        signal = chain.data[0].signal.compiled
        return runners.run_metropolis(*chain.read, hypers, slots, draws["theta"], first, signal, second, chain.rng)


class NUTSLoop:
    """Trajectories of the no-U-turn sampler."""

    def also_kept(self, state):
        """Statistics of each trajectory, in the order of `sk_sgmcmc.kernels.samplers.nuts`."""
        return {"statistics": (nuts.N_STATISTICS,)}

    def run(self, chain, slots, hypers, draws):
        """As `MinibatchLoop.run`."""
        signal = chain.data[0].signal.compiled
        return nuts.run_nuts(*chain.read, hypers, slots, draws["theta"], draws["statistics"], signal, chain.rng)


class RiemannianMetropolisLoop(MetropolisLoop):
    """Metropolis trajectories under a metric that depends on the state."""

    def run(self, chain, slots, hypers, draws):
        """As `MinibatchLoop.run`."""
        dense = chain.data[0]
        metric, kernels = dense.metric, (dense.signal.compiled, dense.metric.kernel.compiled)
        return riemannian.run_metropolis(
            *chain.read, metric.params, metric.diagonal, hypers, slots, draws["theta"], *kernels, chain.rng
        )


class RiemannianMinibatchLoop(MinibatchLoop):
    """Reads one minibatch per step, under a metric that depends on the state."""

    def run(self, chain, slots, hypers, draws):
        """As `MinibatchLoop.run`."""
        dense = chain.data[0]
        metric, scale = dense.metric, dense.n_rows / dense.n_batch
        metric_scale = dense.n_rows / len(chain.metric_rows[0])
        return riemannian.run_dense(
            *chain.read, chain.next_starts(len(slots)), dense.n_batch, scale, *chain.metric_rows, metric.params,
            metric_scale, metric.diagonal, hypers, slots, draws["theta"], dense.signal.compiled,
            metric.kernel.compiled, chain.rng,
        )  # fmt: skip


# Loops, by the name that a sampler declares.
LOOPS = {
    "dense": MinibatchLoop(),
    "metropolis": MetropolisLoop(),
    "nuts": NUTSLoop(),
    "riemannian-dense": RiemannianMinibatchLoop(),
    "riemannian-metropolis": RiemannianMetropolisLoop(),
}


# Number of steps in the first piece of a run. Pieces then grow or shrink to take about _PIECE_SECONDS.
_FIRST_PIECE = 64
_PIECE_SECONDS = 0.2
# Least number of rows per entry of the state for a metric. From fewer rows it would be too small in some directions.
_METRIC_ROWS = 5
# Draws of states with more entries are kept as float32.
_WIDE = 10_000


@dataclass(frozen=True, eq=False)
class Metric:
    """A state-dependent metric G on Euclidean space, see `sk_sgmcmc.kernels.samplers.riemannian`.

    Parameters
    ----------
    kernel : kernel
        Computes G and its derivatives.
    params : ndarray
        Constants of the kernel.
    diagonal : bool
        Whether G is diagonal.
    """

    kernel: object
    params: np.ndarray
    diagonal: bool = False


@dataclass(frozen=True, eq=False)
class DenseData:
    """Data and signal of a model, as kernels read them.

    Parameters
    ----------
    X, y : ndarray of shape (n, n_inputs), (n, n_outputs)
        Inputs and outputs.
    weight : ndarray of shape (n,)
        Weights of the rows.
    params : ndarray
        Constants of the model.
    signal : kernel
        Computes the log density and its gradient.
    n_batch : int
        Number of rows in a minibatch.
    with_replacement : bool
        Whether to draw each minibatch row by row, instead of reading contiguous rows of a shuffled copy.
    in_random_order : bool
        Whether the rows are already in random order.
    metric : Metric or None
        Metric, for samplers that need one.
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    params: np.ndarray
    signal: object
    n_batch: int
    with_replacement: bool = False
    in_random_order: bool = False
    metric: object = None

    @property
    def n_rows(self):
        """Number of rows."""
        return self.X.shape[0]

    def in_reading_order(self, rng):
        """Return X, y and weight in shuffled order, so that a minibatch is a contiguous range of rows.

        The first ``n_batch`` rows are repeated at the end, so that minibatches across the end are contiguous too. The
        order is unchanged, without repetition, if minibatches are all rows or drawn with replacement.
        """
        X, y, weight = self.X, self.y, self.weight
        if self.n_batch < self.n_rows and not self.with_replacement:
            order = self.reading_order(rng)
            order = np.concatenate([order, order[: self.n_batch]])
            X, y, weight = X[order], y[order], weight[order]
        return tuple(np.ascontiguousarray(part, dtype=np.float64) for part in (X, y, weight))

    def reading_order(self, rng):
        """Indices of the rows in the order in which minibatches without replacement read them."""
        return np.arange(self.n_rows) if self.in_random_order else rng.permutation(self.n_rows)

    def metric_rows(self, n_entries):
        """X, y and weight of the rows from which the metric of a state of ``n_entries`` is computed.

        These rows are evenly spaced and fixed, so that the metric is a function of theta alone. There are as many as in
        a minibatch, or more if those are too few to estimate the metric.
        """
        n = min(self.n_rows, max(self.n_batch, _METRIC_ROWS * n_entries))
        some = np.linspace(0, self.n_rows - 1, n).round().astype(int)
        return tuple(np.ascontiguousarray(part[some], dtype=np.float64) for part in (self.X, self.y, self.weight))


class DenseChain(Chain):
    """Chain of a model with dense rows.

    Parameters
    ----------
    seed : SeedSequence
    plan : DrawPlan
    sampler : Sampler
        Resolved, so that it has ``step_size_``.
    geometry : str
        Space on which the state lies, such as "euclidean".
    theta : ndarray of shape (n_rows, width)
        Initial state.
    shuffle_seed : int
        Seed of the order of rows. It is the same for all chains, so that they share one shuffled copy.
    batch_order : str, default="shuffled"
        Order of minibatches in an epoch, of `chains.minibatches.BATCH_ORDERS`.

    Attributes
    ----------
    n_failures : int
        Number of exceptions raised by a user's log density; each ended a trajectory.
    first_failure : str
        Description of the first exception.
    """

    _unpickled = ("data", "_rows", "metric_rows")
    n_failures, first_failure = 0, ""

    def __init__(self, seed, plan, sampler, geometry, theta, shuffle_seed, batch_order="shuffled"):
        super().__init__(seed, plan)
        self.state = SamplerState(sampler, self._begin(theta, sampler), geometry, plan.n_burn)
        self.shuffle_seed, self.batch_order = shuffle_seed, batch_order
        self.batches = Minibatches(seed)
        self._piece = _FIRST_PIECE

    @property
    def sampler(self):
        """The sampler in use."""
        return self.state.sampler

    @property
    def theta(self):
        """Current state."""
        return self.state.theta

    @staticmethod
    def state_shape(sampler, shape):
        """Shape of the state of a chain with this sampler, if the parameters of the model have the given shape."""
        return shape

    def _begin(self, theta, sampler):
        """Initial state, given the start ``theta``."""
        return np.array(theta, dtype=np.float64)

    def bind(self, data):
        """Bind to ``data``, a pair of `DenseData` and its rows in reading order (None: compute these)."""
        self.data = data
        dense, rows = data
        if rows is None:
            rows = dense.in_reading_order(np.random.default_rng(self.shuffle_seed))
        self._rows = rows
        if self.sampler._uses_metric:
            self.metric_rows = dense.metric_rows(self.theta.size)
        return self

    def next_starts(self, n):
        """Index of the first row of each of the next ``n`` minibatches; -1 if rows are drawn with replacement."""
        dense = self.data[0]
        if dense.with_replacement and dense.n_batch < dense.n_rows:
            return np.full(n, -1)
        return self.batches.ahead(n, dense.n_rows, dense.n_batch, BATCH_ORDERS[self.batch_order])

    def _advance(self, until):
        n = min(self._piece, until - self.step)
        slots = self.plan.slots(self.step, self.step + n)
        began = time.monotonic()
        with recorded_in(Failures()) as failures:
            status, made = self._make_steps(slots, self.state.hypers(n))
        self._count(failures, status, made)
        self.state.check(status, made)
        self.step += n
        self.state.n_steps = self.step
        self.kept_steps += (self.step - n + 1 + np.flatnonzero(slots >= 0)).tolist()
        self.n_kept = len(self.kept_steps)
        spent = time.monotonic() - began
        if spent < _PIECE_SECONDS:
            self._piece = min(2 * self._piece, 2**20)
        elif spent > 2 * _PIECE_SECONDS:
            self._piece = max(1, self._piece // 2)

    def _count(self, failures, status, made):
        """Count the exceptions of the last piece; raise an error if the sampler could not reject the state."""
        failures.raise_fatal()
        if status and failures.n:
            why = (
                "It did not raise before at the same state, but must depend on its arguments only."
                if self.sampler._corrects_steps
                else f"{type(self.sampler).__name__} has no Metropolis test, so it cannot reject a state where the log "
                'density is not defined. Use a sampler that can, such as sampler="nuts", or a smaller step size, or '
                "parameters that exclude such states (Positive, Simplex, Ordered)."
            )
            raise ChainDivergedError(
                f"The log density raised {failures.first} at step {self.step + made + 1}. {why}"
            ) from failures.error
        self.n_failures += failures.n
        self.first_failure = self.first_failure or failures.first

    @property
    def _loop(self):
        return self.sampler._pick_loop(LOOPS)

    @property
    def read(self):
        """First arguments of every loop: the arrays of the state, the rows, and the constants of the model."""
        return *self.state.arrays, *self._rows, self.data[0].params

    def _make_steps(self, slots, hypers):
        """Make a step for each of ``slots``, as `MinibatchLoop.run`, and keep draws in ``self.kept``."""
        loop = self._loop
        if "theta" not in self.kept:
            dtype = np.float32 if self.theta.size > _WIDE else np.float64
            self.kept["theta"] = np.empty((self.plan.n_draws, *self.theta.shape), dtype=dtype)
            for name, shape in loop.also_kept(self.state).items():
                self.kept[name] = np.empty((self.plan.n_draws, *shape))
        if self.theta.size > _WIDE:
            return self._keep_rounded(loop, slots, hypers)
        return loop.run(self, slots, hypers, self.kept)

    def _keep_rounded(self, loop, slots, hypers):
        """Run the loop with float64 arrays for this piece, then store its draws as float32."""
        keeps = slots >= 0
        piece = {name: np.empty((int(keeps.sum()), *draws.shape[1:])) for name, draws in self.kept.items()}
        own = np.where(keeps, np.cumsum(keeps) - 1, -1)
        status, made = loop.run(self, own, hypers, piece)
        whole = slots[:made][keeps[:made]]
        for name, draws in piece.items():
            self.kept[name][whole] = draws[: whole.size]
        return status, made

    def current(self):
        """Current state, by name, in the form of a draw."""
        state = {"theta": self.theta.copy()}
        return {**state, "aux": self.state.aux[0].copy()} if "aux" in self._loop.also_kept(self.state) else state


class ParticleChain(DenseChain):
    """Interacting particles of a model with dense rows; parameters as for `DenseChain`.

    ``theta`` has shape (n_particles, n_rows, width). The start is an array of this shape, or one point around which
    particles are scattered. The draws are the final particles; earlier states are not kept.
    """

    @staticmethod
    def state_shape(sampler, shape):
        """Shape of the array of all particles, each of the given shape."""
        return (sampler.n_particles, *shape)

    def _begin(self, theta, sampler):
        if np.ndim(theta) == 3:
            return super()._begin(theta, sampler)
        spread = sampler.start_scale
        return theta + spread * self.rng.standard_normal(self.state_shape(sampler, np.shape(theta)))

    def _make_steps(self, slots, hypers):
        dense = self.data[0]
        (step,) = self.state.kernels()
        return particles.run_particles(
            *self.read, self.next_starts(len(slots)), dense.n_batch, dense.n_rows / dense.n_batch, hypers,
            dense.signal.compiled, step, self.rng,
        )  # fmt: skip

    def current(self):
        """Current particles, (n_particles, n_rows, width)."""
        return {"theta": self.theta.copy()}

    def draws(self):
        """Current particles, as `current`."""
        return self.current()


# Classes of chains, by the name of the loop that a sampler declares.
CHAINS = {**dict.fromkeys(LOOPS, DenseChain), "particles": ParticleChain}


def make_chains(seeds, plan, sampler, geometry, starts, shuffle_seed, dense, batch_order="shuffled"):
    """Make a chain for each seed and start; all chains share one copy of the data."""
    rows = dense.in_reading_order(np.random.default_rng(shuffle_seed))
    make = sampler._pick_loop(CHAINS)
    return [
        make(seed, plan, sampler, geometry, start, shuffle_seed, batch_order).bind((dense, rows))
        for seed, start in zip(seeds, starts, strict=True)
    ]
