"""Chain of a Dirichlet-process mixture of rows with columns of several kinds."""

import numpy as np

from ...kernels.models import mixed_rows
from ...kernels.models.dirichlet_process import mixed as kernels
from .collapsed import CollapsedChain


class MixedChain(CollapsedChain):
    """`CollapsedChain` for `MixedRows`: the same moves, with statistics of columns of any kind.

    All rows of the clusters are in ``data``: mixed rows are not streamed.

    Parameters
    ----------
    seed, plan, layout, concentration_prior, n_start, n_pairs
        As for `CollapsedChain`; ``layout`` is a `MixedLayout`.
    """

    _of_slots = ("counts", "sizes", "tables")

    def _make_slots(self, n):
        self.counts, self.tables = np.zeros((self.layout.n_stats, n)), np.zeros((self.layout.n_stats, n))
        self.sizes = np.zeros(n)

    def _columns(self):
        return self.layout.kinds, self.layout.starts, self.layout.prior

    def _deal(self, n_clusters):
        self.z = self.rng.integers(n_clusters, size=self.data.n_rows, dtype=np.int32)
        self._make_slots(n_clusters)
        self._recount()

    def _recount(self):
        mixed_rows.count_rows(
            self.z, self.data.cells, self.data.weights, *self._columns(), self.counts, self.tables, self.sizes
        )

    def _recompute_zeros(self):
        mixed_rows.refresh_tables(*self._columns(), self.counts, self.tables)

    def _sweep_from(self, rows, first):
        return kernels.sweep_rows(
            rows, first, self.data.cells, self.data.weights, *self._columns(),
            self.concentration * self.data.mean_weight, self.z, self.counts, self.tables, self.sizes, self.state,
            self.rng,
        )  # fmt: skip

    def _move_groups(self):
        self._recount()  # removes rounding errors of sums of continuous cells
        super()._move_groups()

    def _split_or_merge(self, pair):
        return kernels.split_merge(
            pair, self.data.cells, self.data.weights, *self._columns(), self.concentration, self.data.mean_weight,
            self.z, self.counts, self.tables, self.sizes, self.state, self.rng,
        )  # fmt: skip

    def components_given(self, counts, sizes):
        """As for `CollapsedChain`, but float64: measurements may have a large mean and a small spread."""
        return self.layout.draw(counts, self.rng)
