"""Chain of a latent class model: labels of rows, with the parameters of the classes integrated out."""

from copy import deepcopy

import numpy as np
from scipy.special import gammaln

from ...chains.chain import Chain
from ...kernels.models import latent_classes as kernels
from ...kernels.models import mixed_rows

_START_ROWS = 2000  # largest number of rows from which starts are compared
_STARTS, _WARM_SWEEPS, _COLD_SWEEPS = 10, 15, 10
_COOLEST = 0.1  # power of the first tempered sweep of a start
_MOVES = 2  # updates of whole classes in a sweep, every second one a split or a merger alone
_MOST_FOR_MOVES = 200_000  # with more rows, there is one such update in a sweep


class ClassChain(Chain):
    """Collapsed Gibbs sampler of the classes of rows.

    A step is a sweep: it draws the label of each row given all others, then moves rows of whole classes by Metropolis
    updates, and draws the coefficients of covariates. Parameters of classes are drawn for kept draws only. Sweeps are
    cut into batches of rows, so that Python regains control in between.

    The chain starts from the best of several tempered runs over a sample of the rows.

    Parameters
    ----------
    seed : SeedSequence
    plan : DrawPlan
    layout : MixedLayout
    membership : Shares or Regression
    n_starts : int
        Number of tempered runs. 0: labels are drawn at random.
    n_moves : int
        Number of updates of whole classes in a sweep.
    """

    _unpickled = ("data", "odds")

    def __init__(self, seed, plan, layout, membership, *, n_starts=_STARTS, n_moves=_MOVES):
        super().__init__(seed, plan)
        self.layout, self.membership = layout, deepcopy(membership)
        self.n_starts, self.n_moves = n_starts, n_moves
        K = membership.n_classes
        self.counts, self.tables = np.zeros((layout.n_stats, K)), np.zeros((layout.n_stats, K))
        self.sizes = np.zeros(K)
        self.z = None
        self.at = 0  # first row of the next batch of the sweep
        self.moves = np.zeros(4, dtype=np.int64)  # outcomes of `recombine`
        self.odds = None

    @property
    def n_classes(self):
        """Number of classes."""
        return self.sizes.size

    def bind(self, data):
        """As for `Chain`."""
        super().bind(data)
        self.odds = self.membership.odds(data)
        return self

    # -- start -----------------------------------------------------------------------------------------------------

    def _start(self):
        data, K = self.data, self.n_classes
        self.z = np.full(data.n_rows, -1, dtype=np.int32)
        rows = np.arange(data.n_rows)
        if data.n_rows > _START_ROWS:
            rows = np.sort(self.rng.choice(data.n_rows, _START_ROWS, replace=False))
        cells, weights = np.ascontiguousarray(data.cells[rows]), data.weights[rows]
        best, labels = -np.inf, None
        for _ in range(max(self.n_starts, 1) if K > 1 else 1):
            z = self.rng.integers(K, size=rows.size).astype(np.int32)
            if self.n_starts and K > 1:
                found = self._tempered(z, cells, weights)
                if found <= best:
                    continue
                best = found
            labels = z
        self.z[rows] = labels
        self._recount()

    def _tempered(self, z, cells, weights):
        """Sweep over rows at decreasing temperatures, changing the labels ``z``; returns their log probability."""
        layout, K = self.layout, self.n_classes
        mass = weights.mean() * self.membership.concentration
        counts, tables, sizes = np.zeros_like(self.counts), np.zeros_like(self.tables), np.zeros(K)
        columns = layout.kinds, layout.starts, layout.prior
        mixed_rows.count_rows(z, cells, weights, *columns, counts, tables, sizes)
        none = np.empty((0, 0))
        powers = np.append(np.linspace(_COOLEST, 1.0, _WARM_SWEEPS), np.ones(_COLD_SWEEPS))
        for power in powers:
            kernels.sweep_rows(
                0, len(z), cells, weights, *columns, none, mass, power, z, counts, tables, sizes, self.rng
            )
        marginals = np.empty(K)
        mixed_rows.log_marginals(*columns, counts, marginals)
        mean = weights.mean()
        return marginals.sum() + mean * gammaln((sizes + mass) / mean).sum()

    def _recount(self):
        data, layout = self.data, self.layout
        mixed_rows.count_rows(
            self.z, data.cells, data.weights, layout.kinds, layout.starts, layout.prior, self.counts, self.tables,
            self.sizes,
        )  # fmt: skip

    # -- steps -----------------------------------------------------------------------------------------------------

    @property
    def _mass(self):
        return self.membership.concentration * self.data.mean_weight

    def _advance(self, until):
        if self.z is None:
            self._start()
        data, layout = self.data, self.layout
        if self.at == 0:
            self._recount()  # removes rounding errors of sums of continuous cells
        last = min(self.at + data.n_batch, data.n_rows)
        kernels.sweep_rows(
            self.at, last, data.cells, data.weights, layout.kinds, layout.starts, layout.prior, self.odds, self._mass,
            1.0, self.z, self.counts, self.tables, self.sizes, self.rng,
        )  # fmt: skip
        self.at = last
        if last < data.n_rows:
            return
        self.at = 0
        self._move_classes()
        self.membership.update(data, self.z, self.sizes, self.rng)
        self.odds = self.membership.odds(data)
        self.step += 1
        if self.plan.wants(self.step):
            self.keep(self.current_draw())

    def _move_classes(self):
        """Propose to divide, merge and recombine whole classes."""
        K, data, layout = self.n_classes, self.data, self.layout
        if K < 2 or data.n_rows < 3:
            return
        n_moves = self.n_moves if data.n_rows <= _MOST_FOR_MOVES else min(self.n_moves, 1)
        for i in range(n_moves):
            b = self.rng.integers(K)
            a, c = ((b + 1 + self.rng.integers(K - 1, size=2)) % K).tolist()
            outcome = kernels.recombine(
                np.array([a, b, c], dtype=np.int64), i % 2, data.cells, data.weights, layout.kinds, layout.starts,
                layout.prior, self.odds, self._mass, data.mean_weight, self.z, self.counts, self.tables, self.sizes,
                self.rng,
            )  # fmt: skip
            self.moves[outcome] += 1

    # -- draws -----------------------------------------------------------------------------------------------------

    def log_posterior(self):
        """Log probability of rows and labels, with the parameters of the classes integrated out, up to a constant."""
        layout, marginals = self.layout, np.empty(self.n_classes)
        mixed_rows.log_marginals(layout.kinds, layout.starts, layout.prior, self.counts, marginals)
        return marginals.sum() + self.membership.log_label_prior(self.data, self.z, self.sizes)

    def current_draw(self):
        """Draw shares and parameters of the classes given the labels, by the generator of the chain."""
        return {
            **self.membership.draw(self.data, self.sizes, self.rng),
            "components": self.layout.draw(self.counts, self.rng),
            "sizes": self.sizes.copy(),
            "log_posterior": np.float64(self.log_posterior()),
        }

    def current(self):
        """As for `Chain`."""
        if self.z is None:
            self._start()
        return self.snapshot().current_draw()
