"""Chain of a Dirichlet-process mixture with sticks and components in the state (minibatch slice sampling)."""

import numpy as np
from scipy.special import gammaln

from ...chains.chain import TINY
from ...kernels.models.dirichlet_process import slice as kernels
from ...samplers.state import SamplerState
from ...utils._warnings import warn_user
from .cells import BERNOULLI
from .collapsed import ClusterChain, dealt

_START_CLUSTERS = 20
_MOST = 5000  # largest number of sticks
_LOWEST = np.log(1e-10)  # lower limit of log alpha


class StickChain(ClusterChain):
    r"""Slice sampler of labels, with sticks and components moved by a sampler on the simplex.

    A step draws the labels of a minibatch, each given a slice below the weight of its component. The transition of the
    sampler then moves sticks and components. Sticks have the Beta parameters :math:`(1 + m_j, \alpha + \sum_{l > j}
    m_l)`; the Dirichlet parameters of components are the prior plus the counts of their rows. Last, the step draws the
    concentration given the sticks. A sampler that redraws sticks given the labels draws the concentration before them,
    given the labels alone.

    Sticks beyond the last component in use are not part of the state. They and their components are drawn from the
    prior when slices require them.

    Parameters
    ----------
    seed, plan, layout, concentration_prior
        As for `ClusterChain`.
    sampler : Sampler
        Resolved. `SliceGibbs` draws sticks and components exactly from their conditionals.
    stored : bool
        Whether the labels of all rows are kept, so that :math:`m` counts all rows. Otherwise :math:`m` counts the rows
        of the minibatch, scaled by N/n.
    n_start : int or None
        Number of initial components, to which rows are assigned at random. None: one per four rows, at most 20.
    """

    def __init__(self, seed, plan, layout, concentration_prior, sampler, *, stored, n_start=None):
        super().__init__(seed, plan, layout, concentration_prior)
        self.sampler = sampler
        self.stored = stored
        self.n_start = n_start
        self.theta = None
        self.totals = None
        self.is_truncated = False  # whether the largest number of sticks was too few
        D = layout.n_public
        # Groups of cells whose probabilities sum to 1.
        if layout.kind == BERNOULLI:
            self.groups = [np.array([d, D + d]) for d in range(D)]
        else:
            self.groups = np.split(np.arange(D), np.flatnonzero(np.diff(layout.block)) + 1)

    def can_stream(self, collapses):
        """As `CollapsedChain.can_stream`; a chain with stored labels cannot stream."""
        return not collapses and not self.stored

    @property
    def n_components(self):
        """Number of components in the state."""
        return self.sticks.shape[1]

    @property
    def redraws(self):
        """Whether each step draws sticks and components exactly from their conditionals given the labels."""
        return self.sampler._reads_all_rows

    def _start(self):
        data = self.data
        self.z = np.full(data.n_rows, -1, dtype=np.int32)
        if self.theta is not None:
            return
        z, counts, sizes = dealt(data, self.n_start or min(_START_CLUSTERS, max(1, data.n_rows // 4)), self.rng)
        if self.stored:
            self.z = z
        shape = self._shapes(counts[: self.layout.n_cells], sizes)
        self.sticks = np.maximum(self.rng.standard_gamma(self._stick_shapes(sizes)), TINY)
        self.theta = np.maximum(self.rng.standard_gamma(shape), TINY)

    # -- state -----------------------------------------------------------------------------------------------------

    def _shapes(self, counts, sizes):
        """Posterior Dirichlet or Beta parameters of the cells of each component, (n_cells, K)."""
        prior = self.layout.prior[: self.layout.n_cells, None]
        if self.layout.kind != BERNOULLI:
            return prior + counts
        D = self.layout.n_public
        return prior + np.concatenate([counts[:D], np.maximum(sizes - counts[:D] - counts[D:], 0.0)])

    def _stick_shapes(self, sizes):
        after = np.cumsum(sizes[::-1])[::-1] - sizes
        return np.stack([1.0 + sizes, self.concentration + after])

    def _omega(self):
        v = self.sticks[0] / self.sticks.sum(axis=0)
        with np.errstate(divide="ignore"):
            before = np.concatenate([[0.0], np.cumsum(np.log1p(-np.minimum(v, 1.0 - 1e-16)))])
        return v * np.exp(before[:-1]), np.exp(before[-1])

    def _break_sticks(self, smallest):
        """Add sticks and components from the prior until the remaining weight is below ``smallest``; return weights."""
        omega, rest = self._omega()
        new = []
        while rest >= smallest and omega.size + len(new) < _MOST:
            pair = np.maximum(self.rng.standard_gamma([1.0, self.concentration]), TINY)
            new.append(pair)
            rest *= pair[1] / pair.sum()
        if rest >= smallest and not self.is_truncated:
            self.is_truncated = True
            warn_user(
                f"The process was cut off after {_MOST} components, beyond which lies {rest:.1%} of the weight: the "
                f"concentration, {self.concentration:.3g}, is too large for the slice sampler. Use a smaller "
                'concentration_prior, or sampler="gibbs" with assignments="stored".'
            )
        if not new:
            return omega
        prior = self.layout.prior[: self.layout.n_cells, None]
        theta = np.maximum(self.rng.standard_gamma(np.repeat(prior, len(new), axis=1)), TINY)
        self.sticks = np.ascontiguousarray(np.concatenate([self.sticks, np.array(new).T], axis=1))
        self.theta = np.ascontiguousarray(np.concatenate([self.theta, theta], axis=1))
        return self._omega()[0]

    def _forget_unused(self):
        """Drop the components after the last one that a row uses, and return the number that is left."""
        last = int(self.z.max()) + 1
        if self._has_rows_without_label():  # keep components with an expected half row or more for these rows
            heavy = np.flatnonzero(self._omega()[0] * self._total() >= 0.5)
            last = max(last, int(heavy.max(initial=0)) + 1)
        self.sticks = np.ascontiguousarray(self.sticks[:, :last])
        self.theta = np.ascontiguousarray(self.theta[:, :last])
        return last

    def _has_rows_without_label(self):
        """Whether rows exist that have not been visited yet, or that belong to earlier blocks of a stream."""
        return bool(self.z.min() < 0) or self._total() > self.data.weights.sum()

    def _total(self):
        """Total weight of all rows, N."""
        data = self.data
        return data.weights.sum() if data.total is None else data.total

    def _probabilities(self):
        """Components as probabilities, (n_public, K)."""
        p = np.empty_like(self.theta)
        for group in self.groups:
            p[group] = self.theta[group] / self.theta[group].sum(axis=0)
        return p[: self.layout.n_public]

    # -- steps -----------------------------------------------------------------------------------------------------

    def _advance(self, until):
        if self.z is None:
            self._start()
        data, rows = self.data, self._next_batch()
        known = self.z[rows] >= 0
        omega, _ = self._omega()
        slices = np.full(rows.size, -1.0)
        slices[known] = self.rng.random(known.sum()) * omega[self.z[rows[known]]]
        if known.any():
            omega = self._break_sticks(slices[known].min())
        log_cells, log_base = self.layout.tables(self._probabilities().T)
        arrays = data.indptr, data.cells, data.values, data.weights
        counts, sizes = self._counts_without(rows, arrays)
        kernels.draw_labels(
            rows, slices, data.indptr, data.cells, data.entries, np.ascontiguousarray(log_cells), log_base, omega,
            self.z, self.rng,
        )  # fmt: skip
        kernels.count_rows(rows, 1.0, *arrays, self.z, counts, sizes)
        last = self._forget_unused()
        counts, sizes = np.ascontiguousarray(counts[:, :last]), sizes[:last]
        self.totals = counts, sizes
        if not self.stored:
            scale = self._total() / data.weights[rows].sum()
            counts, sizes = counts * scale, sizes * scale
        learns = not np.isscalar(self.concentration_prior)
        if learns and self.redraws:
            self._concentration_given_labels(sizes)
        self._move(counts, sizes)
        if learns and not self.redraws:
            shape, rate = self.concentration_prior
            v = self.sticks[0] / self.sticks.sum(axis=0)
            rate -= np.log1p(-np.minimum(v, 1.0 - 1e-16)).sum()
            self.concentration = max(self.rng.gamma(shape + last) / rate, 1e-10)
        self.step += 1
        if self.plan.wants(self.step):
            self.keep(self.current_draw())

    def _concentration_given_labels(self, sizes):
        """Slice-sample log alpha with the sticks integrated out; the step is exact because they are redrawn next.

        Given the sticks instead, the chain can stay at a small alpha and sticks near 1 for thousands of sweeps.
        """
        shape, rate = self.concentration_prior
        after = np.cumsum(sizes[::-1])[::-1] - sizes

        def log_density(x):
            if x < _LOWEST:  # under a vague prior, few labels do not bound alpha away from 0
                return -np.inf
            alpha = np.exp(x)
            of_labels = gammaln(alpha + after) - gammaln(1.0 + alpha + after + sizes)
            return (shape + sizes.size) * x - rate * alpha + of_labels.sum()

        x = max(np.log(self.concentration), _LOWEST)
        bar = log_density(x) - self.rng.standard_exponential()
        low = x - 2.0 * self.rng.random()
        high = low + 2.0
        while log_density(low) > bar:
            low -= 2.0
        while log_density(high) > bar:
            high += 2.0
        while True:
            proposal = low + (high - low) * self.rng.random()
            if log_density(proposal) >= bar:
                break
            low, high = (proposal, high) if proposal < x else (low, proposal)
        self.concentration = max(float(np.exp(proposal)), 1e-10)

    def _counts_without(self, rows, arrays):
        """Counts and total weights of the components over all rows but ``rows``; zeros if labels are not stored."""
        K = self.n_components
        counts, sizes = np.zeros((self.layout.n_cells, K)), np.zeros(K)
        if not self.stored:
            return counts, sizes
        if self.totals is None:
            kernels.count_rows(np.arange(self.data.n_rows), 1.0, *arrays, self.z, counts, sizes)
        else:
            before = self.totals[1].size
            counts[:, :before], sizes[:before] = self.totals
        kernels.count_rows(rows, -1.0, *arrays, self.z, counts, sizes)
        return counts, sizes

    def _move(self, counts, sizes):
        """Move sticks and components by the transition of the sampler, given the counts."""
        shapes, stick_shapes = self._shapes(counts, sizes), self._stick_shapes(sizes)
        hyper = np.minimum(self.sampler._hyper(self.step, self.step + 1)[0], 1e300)
        self.sticks = self._moved(self.sticks, stick_shapes, stick_shapes - [[1.0], [self.concentration]], hyper)
        if self.sampler._is_lazy or self.redraws:  # each cell moves independently
            if self.stored:
                for group in self.groups:
                    self.theta[group] = self._with_total(self.theta[group], shapes[group])
            self.theta = self._transit(self.theta, shapes, np.empty(0), hyper)
            return
        prior = self.layout.prior[: self.layout.n_cells, None]
        for group in self.groups:
            self.theta[group] = self._moved(self.theta[group], shapes[group], (shapes - prior)[group], hyper)

    def _moved(self, theta, shape, counted, hyper):
        if self.stored:
            theta = self._with_total(theta, shape)
        return self._transit(theta, shape, counted.sum(axis=0), hyper)

    def _with_total(self, theta, shape):
        """Redraw the sum of each column from its Gamma distribution; only the proportions carry information."""
        return theta * (np.maximum(self.rng.standard_gamma(shape.sum(axis=0)), TINY) / theta.sum(axis=0))

    def _transit(self, theta, shape, extra, hyper):
        state = SamplerState(
            self.sampler, np.ascontiguousarray(theta), "positive", n_steps=self.step, name="The components"
        )
        state.step(np.ascontiguousarray(shape), extra, self.rng, hyper=hyper)
        return state.theta

    # -- draws -----------------------------------------------------------------------------------------------------

    def current_draw(self):
        """Current weights and components, in decreasing order of weight."""
        omega, _ = self._omega()
        order = np.argsort(-omega, kind="stable")
        occupied = np.unique(self.z[self.z >= 0]).size
        return {
            "concentration": np.float64(self.concentration),
            "n_clusters": np.int64(max(1, occupied)),
            "weights": omega[order],
            "components": self._probabilities().T[order].astype(np.float32),
        }

    def current(self):
        if self.z is None:
            self._start()
        return self.current_draw()
