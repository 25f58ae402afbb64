"""Chain of a Dirichlet-process mixture with weights and components integrated out (collapsed Gibbs sampling)."""

import numpy as np

from ...chains.chain import TINY, Chain, DrawPlan
from ...chains.growth import BLOCK_SWEEPS, in_window
from ...chains.minibatches import Minibatches, adjacent, every_row
from ...kernels.models.dirichlet_process import collapsed as kernels
from ...utils._numbers import summable
from .cells import BERNOULLI

_START_CLUSTERS = 50
_ROWS_PER_START = 8
_SPARE = 16  # least number of free slots after arrays grow
_PAIRS_PER_PASS = 10
# Passes before the first proposals of splits and merges. The random initial clusters are alike, and too many would
# merge.
_FORMING = 10


def dealt(data, n_clusters, rng):
    """Assign rows to clusters at random; return their labels, and the counts and total weights of the clusters."""
    layout = data.layout
    z = rng.integers(n_clusters, size=data.n_rows, dtype=np.int32)
    of_entry = np.repeat(z, np.diff(data.indptr))
    counts = np.zeros((layout.n_cells + layout.n_blocks, n_clusters))
    np.add.at(counts, (data.cells, of_entry), data.values)
    if layout.n_blocks:
        np.add.at(counts, (layout.n_cells + layout.block[data.cells], of_entry), data.values)
    return z, counts, np.bincount(z, data.weights, n_clusters)


class BlockPlan(DrawPlan):
    """Burn-in and thinning of the steps over one block of a stream.

    Parameters
    ----------
    start, n_steps : int
        Number of steps before the block, and over the block.
    burn_in : float or int
        Fraction of the block's steps, or number of the stream's first steps, to discard; at least one step is kept.
    bytes_per_draw : int
    """

    streams = True

    def __init__(self, start, n_steps, burn_in, bytes_per_draw):
        if burn_in >= 1:
            burn_in = min(max(int(burn_in) - start, 0), n_steps - 1)
        super().__init__(n_steps, burn_in, "auto", bytes_per_draw)
        self.start = start

    def wants(self, step):
        """Whether the state after step number ``step`` of the stream is kept."""
        return super().wants(step - self.start)


class ClusterChain(Chain):
    """Base of the chains of Dirichlet-process mixtures: minibatches, and draws with varying numbers of components.

    Parameters
    ----------
    seed : SeedSequence
    plan : DrawPlan or StreamPlan
    layout : Cells
    concentration_prior : tuple of float, or float
        Shape and rate of the Gamma prior of the concentration, or its fixed value.
    """

    _order = staticmethod(every_row)

    def __init__(self, seed, plan, layout, concentration_prior):
        super().__init__(seed, plan)
        self.layout = layout
        self.concentration_prior = concentration_prior
        self.concentration = concentration_prior if np.isscalar(concentration_prior) else 1.0
        self.batches = Minibatches(seed)
        self.begin_block(plan)

    def begin_block(self, plan):
        """Prepare for another block of rows: discard the labels of the last block, and the kept draws."""
        self.z = None
        self.batches.forget()
        self.restart(plan)
        return self

    def forget(self):
        """Drop the rows and their labels; the counts of their clusters and the kept draws stay."""
        self.z, self.data = None, None
        self.batches.forget()
        return self

    def _next_batch(self):
        """Rows of the next minibatch."""
        return self.batches.next(self.data.n_rows, self.data.n_batch, self._order)

    def keep(self, draw):
        """Store a draw; weights and components are padded with zeros to the largest number of components so far."""
        K = len(draw["weights"])
        room = self.kept["weights"].shape[1] if self.kept else K
        for name in ("weights", "components"):
            if room > K:
                short = draw[name]
                draw[name] = np.zeros((room, *short.shape[1:]), dtype=short.dtype)
                draw[name][:K] = short
            elif room < K:
                old = self.kept[name]
                self.kept[name] = np.zeros((len(old), K, *old.shape[2:]), dtype=old.dtype)
                self.kept[name][: self.n_kept, :room] = old[: self.n_kept]
        super().keep(draw)

    def components_given(self, counts, sizes):
        """Draw components given their counts and total weights: float32 of shape (n_components, n_public)."""
        layout, rng = self.layout, self.rng
        prior = layout.prior[:, None]
        if layout.kind == BERNOULLI:
            D = layout.n_public
            ones, there = counts[:D], np.maximum(sizes - counts[D:], counts[:D])
            return rng.beta(prior[:D] + ones, prior[D:] + there - ones).T.astype(np.float32)
        n = layout.n_cells
        cells = np.maximum(rng.standard_gamma(prior[:n] + counts[:n]), TINY)
        starts = np.flatnonzero(np.diff(layout.block, prepend=-1))
        return (cells / np.add.reduceat(cells, starts, axis=0)[layout.block]).T.astype(np.float32)

    def learn_concentration(self, n_clusters, n):
        """Draw the concentration given that ``n`` rows form ``n_clusters`` (Escobar and West 1995, section 6)."""
        if np.isscalar(self.concentration_prior) or not n > 0:
            return
        shape, rate = self.concentration_prior
        rate -= np.log(max(self.rng.beta(self.concentration + 1.0, n), TINY))
        odds = (shape + n_clusters - 1.0) / (n * rate)
        shape += n_clusters - (self.rng.random() * (1.0 + odds) >= odds)
        self.concentration = max(self.rng.gamma(shape) / rate, 1e-10)


class CollapsedChain(ClusterChain):
    """Collapsed Gibbs sampler of the labels; weights and components are drawn only for kept draws.

    A step is a sweep: it draws the label of each row given all others, and then proposes splits and merges of clusters.
    Both leave the posterior unchanged if all weights are whole. Otherwise a row contributes its weight to the counts,
    but its own label is drawn as if its weight were 1. Sweeps are cut into minibatches so that Python regains control
    in between.

    In a stream, rows of earlier blocks are represented by the counts of their clusters. If all rows together weigh more
    than ``data.total``, these counts are scaled down, so that clusters without new rows shrink and vanish.

    Parameters
    ----------
    seed, plan, layout, concentration_prior
        As for `ClusterChain`.
    n_start : int or None
        Number of initial clusters, to which rows are assigned at random. None: one per eight rows, at most 50.
    n_pairs : int
        Number of pairs of rows for which a split or a merge is proposed in each sweep.
    """

    _of_slots = ("counts", "sizes", "zeros")  # arrays whose last axis is that of the slots
    _order = staticmethod(adjacent)  # the order in which rows are visited does not affect the posterior

    def __init__(self, seed, plan, layout, concentration_prior, *, n_start=None, n_pairs=_PAIRS_PER_PASS):
        super().__init__(seed, plan, layout, concentration_prior)
        self.n_start = n_start
        self.n_pairs = n_pairs
        self.left = 0
        self._make_slots(_SPARE)
        self.state = np.zeros(2, dtype=np.int64)
        self.moves = np.zeros(3, dtype=np.int64)  # pairs proposed, splits accepted, merges accepted

    def _make_slots(self, n):
        """Make arrays for n free slots."""
        self.counts = np.zeros((self.layout.n_cells + self.layout.n_blocks, n))
        self.sizes, self.zeros = np.zeros(n), np.zeros(n)

    def restart(self, plan):
        super().restart(plan)
        self.kept_rows = []  # numbers of rows with which the kept draws were made

    def keep(self, draw):
        super().keep(draw)
        self.kept_rows.append(self.data.n_rows)
        recent = self.plan.recent(self.kept_rows)
        if len(recent) < self.n_kept:
            self.keep_only(recent)

    def keep_only(self, staying):
        self.kept_rows = [self.kept_rows[i] for i in staying]
        super().keep_only(staying)

    def can_stream(self, collapses):
        """Whether `partial_fit` can continue the chain; ``collapses``: its sampler integrates components out."""
        return collapses

    def _arrays(self):
        data = self.data
        return (
            data.indptr,
            data.cells,
            data.entries,
            data.values,
            data.weights,
            self.layout.kind,
            self.layout.prior,
            self.layout.block,
        )

    def _rearrange(self, slots):
        """Move the clusters in ``slots`` to the front of larger arrays and drop the others; free slots follow."""
        n = len(slots)
        new = n + max(_SPARE, n // 2)
        rank = np.full(self.sizes.size, -1, dtype=np.int32)
        rank[slots] = np.arange(n)
        for name in self._of_slots:
            old = getattr(self, name)
            grown = np.zeros((*old.shape[:-1], new))
            grown[..., :n] = old[..., slots]
            setattr(self, name, grown)
        if self.z is not None:
            self.z = np.where(self.z >= 0, rank[self.z], -1).astype(np.int32)
        self.state[:] = n

    def _start(self):
        """Initialise the labels of a new block, and the clusters if it is the first."""
        data = self.data
        self.z = np.full(data.n_rows, -1, dtype=np.int32)
        if self.state[1]:  # in a stream, the first sweep assigns new rows to existing clusters
            self._fade()
            return
        n_start = self.n_start or max(1, min(_START_CLUSTERS, data.n_rows // _ROWS_PER_START))
        self._deal(n_start)
        self._rearrange(np.flatnonzero(self.sizes > 0))
        self._recompute_zeros()

    def _deal(self, n_clusters):
        """Assign rows to clusters at random."""
        self.z, self.counts, self.sizes = dealt(self.data, n_clusters, self.rng)
        self.zeros = np.zeros(n_clusters)

    def _recompute_zeros(self):
        if self.layout.kind == BERNOULLI:
            kernels.all_log_zeros(self.layout.prior, self.counts, self.sizes, self.zeros)

    def _fade(self):
        """Scale down the counts of earlier blocks to respect ``data.total``; drop clusters of less than half a row."""
        data = self.data
        if data.total is None:
            return
        earlier = self.sizes.sum()
        room = max(data.total - data.weights.sum(), 0.0)
        if earlier <= room:
            return
        share = room / earlier
        self.counts, self.sizes = summable(self.counts * share, 0.0), summable(self.sizes * share, 0.0)
        self._rearrange(np.flatnonzero(self.sizes >= 0.5 * data.mean_weight))
        self._recompute_zeros()

    def append(self, data, n_new, plan):
        """Continue over rows to which others were appended, and assign these to clusters by a few sweeps.

        Kept draws stay if they were made with most of the present rows.

        Parameters
        ----------
        data : RowData
            The rows so far, followed by ``n_new`` new ones.
        n_new : int
        plan : GrowthPlan
        """
        super().bind(data)
        self.plan = plan
        self.batches.forget()
        self.z = np.concatenate([self.z, np.full(n_new, kernels.FREE, dtype=np.int32)])
        rows = np.arange(data.n_rows - n_new, data.n_rows)
        for _ in range(1 + BLOCK_SWEEPS):  # the first sweep assigns the rows, given those that have a cluster
            for start in range(0, n_new, data.n_batch):
                self._sweep(rows[start : start + data.n_batch])
        self.keep_only(in_window(self.kept_rows, data.n_rows, plan.n_draws))
        return self

    def _sweep(self, rows):
        """Draw the labels of some rows, each given all others, and then the concentration."""
        mean, done = self.data.mean_weight, 0
        while True:
            done = self._sweep_from(rows, done)
            if done == rows.size:
                break
            self._rearrange(np.flatnonzero(self.sizes > 0))
        if self.state[0] > 1.2 * self.state[1] + 4:  # empty slots in between cost as much time as occupied ones
            self._rearrange(np.flatnonzero(self.sizes > 0))
        self.learn_concentration(int(self.state[1]), self.sizes.sum() / mean)

    def _sweep_from(self, rows, first):
        """Draw the labels of ``rows[first:]`` until no slot is free; returns the position after the last row drawn."""
        return kernels.sweep_rows(
            rows, first, *self._arrays(), self.concentration * self.data.mean_weight, self.z, self.counts, self.sizes,
            self.zeros, self.state, self.rng,
        )  # fmt: skip

    def _split_or_merge(self, pair):
        """Propose a split or a merge, chosen by a pair of rows; returns the outcome of the kernel."""
        return kernels.split_merge(
            pair, *self._arrays(), self.concentration, self.data.mean_weight, self.z, self.counts, self.sizes,
            self.zeros, self.state, self.rng,
        )  # fmt: skip

    def _advance(self, until):
        if self.z is None:
            self._start()
        self._sweep(self._next_batch())
        if len(self.batches):
            return
        if self.batches.epoch > _FORMING:
            self._move_groups()
        self.step += 1
        if self.plan.wants(self.step) and self.make_room():
            self.keep(self.current_draw())

    def _move_groups(self):
        if self.data.n_rows < 2:
            return
        for _ in range(self.n_pairs):
            if self.state[1] == self.sizes.size:
                self._rearrange(np.flatnonzero(self.sizes > 0))
            outcome = self._split_or_merge(self.rng.integers(self.data.n_rows, size=2))
            self.moves += 1, outcome == 1, outcome == 2

    def current_draw(self):
        """Draw weights and components given the labels, by the generator of the chain; the largest cluster is first."""
        slots = np.flatnonzero(self.sizes > 0)
        slots = slots[np.argsort(-self.sizes[slots], kind="stable")]
        sizes = self.sizes[slots]
        weights = np.maximum(self.rng.standard_gamma(np.append(sizes, self.concentration)), TINY)
        weights /= weights.sum()
        return {
            "concentration": np.float64(self.concentration),
            "n_clusters": np.int64(slots.size),
            "weights": weights[:-1],
            "components": self.components_given(self.counts[:, slots], sizes),
        }

    def current(self):
        if self.z is None:
            self._start()
        return self.snapshot().current_draw()
