"""Base class of estimators with dense rows and a nearly Gaussian posterior: chains in coordinates of unit spread."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral

import numpy as np

from ..base import BaseSGMCMC
from ..chains.chain import DRAW_MEMORY, MAX_AUTO_DRAWS, DrawPlan, stacked_draws
from ..chains.checks import COLLAPSED, FLOW_TOO_SHORT, TOO_WIDE, any_fired, curvature_checks
from ..chains.convergence import MIN_KEPT, limits_of_spread, rounded_up, spread_of
from ..samplers.schedules import ConstantStep
from ..utils._parameters import keyword_parameters
from .chain import make_chains
from .tuning import DenseGradient, inverse_metric, metric_rate, minibatch_variance, stiffness, unit_root

# With ``thin="auto"``, number of draws behind posterior means; ``samples_`` holds a hundred, evenly spaced.
MAX_DRAWS = 1500
# The same for models with more than `_WIDE` coefficients.
WIDE_DRAWS = 200
_WIDE = 2000
_PROBES = 3
_PROBE_ROWS = 5000
_CELLS_PER_STEP = 100_000  # entries of the data in a minibatch of "auto": reading them takes about 50 microseconds
NOISE = 0.05  # share of a variance that minibatches may add
# Time for which particles move, in units in which the posterior relaxes in 1; and steps at most.
_FLOW_TIME, _MOST_FLOW = 60.0, 100_000
# A step under a metric, about 0.4 over the root of a curvature, is at most half the time in which the metric changes.
_METRIC_REACH = 0.8
STIFFEST = 100.0  # a probe lies far outside the posterior of a skew coordinate, which is never stiffer than that
_SPREAD_CELLS = 5e7  # rows times entries that gradients read to see how widely draws spread: a hundredth of a fit
# Entries beyond which coordinates are not whitened: products with gradients then vary too much entry by entry.
_MOST_WHITENED = 1000


@keyword_parameters
class BaseDenseSGMCMC(BaseSGMCMC):
    """Base class of estimators with dense rows, in coordinates of about unit posterior spread.

    Parameters
    ----------
    n_iter : int or None, default=None
        Number of steps (trajectories of `HMC`). None: enough for about 1,500 nearly independent draws after burn-in.

    Attributes
    ----------
    sampler_ : sampler object
        The sampler in use. ``sampler_.step_size_`` is the step size that "auto" chose, in units of whitened
        coordinates.
    batch_size_ : int
        Number of rows in a minibatch.
    n_samples_seen_ : int
        Number of rows seen, including those of earlier calls of `partial_fit`.

    Other Parameters
    ----------------
    with_replacement : bool, default=False
        Whether to draw each minibatch row by row, instead of reading blocks of the rows in an order shuffled once.
    sampler : str, sampler object or None, default=None
        Any sampler on flat space. None: `SGHMC`. Particles (`Blob`, `GFSD`, `GFSF`, `SVGD`, `PSGHMC`) are approximate,
        and their intervals too narrow.
    burn_in : float or int, default=0.5
        Steps to discard at the start, as a fraction (float) or a number (int). Chains start at or near the mode.
    thin : int or "auto", default="auto"
        Keep every ``thin``-th step after burn-in. "auto" keeps at most 100 draws, and averages posterior means,
        predictions and scores over up to fifteen times as many.
    batch_size : int or "auto", default="auto"
        Number of rows in a minibatch. "auto": all rows of a small data set, otherwise as many as keep the noise below
        5% of a posterior variance.
    """

    with_replacement: bool = False

    _offers = (("euclidean", "gradient"), ("euclidean", "gradient-metric"))
    _default_sampler = "sghmc"
    _check_definitions = (*BaseSGMCMC._check_definitions, FLOW_TOO_SHORT, COLLAPSED, TOO_WIDE)

    _parameter_constraints = {**BaseSGMCMC._parameter_constraints, "with_replacement": ["boolean"]}

    def _n_batch(self, sampler, n_rows, width, n_entries, streams):
        """Rows of a minibatch, regardless of the noise of gradients; ``width`` numbers are read for a row."""
        if isinstance(self.batch_size, Integral):
            if not streams:  # the last block of a stream may be shorter than a minibatch
                self._refuse_large_batch(n_rows)
            return sampler._rows_read(n_rows, int(self.batch_size))
        cells = max(_CELLS_PER_STEP, n_entries)
        return n_rows if n_rows * width <= cells else sampler._rows_read(n_rows, max(100, int(cells // width)))

    def _tuned(self, sampler, make_dense, n_rows, width, n_entries, *, streams=False):
        """The data with their batch size, the sampler resolved, and the number of steps."""
        n_batch = self._n_batch(sampler, n_rows, width, n_entries, streams)
        dense = make_dense(n_batch)
        rng = np.random.default_rng(0)
        gradient = DenseGradient(dense, (n_entries, 1))
        if dense.n_rows > _PROBE_ROWS:
            some = rng.choice(dense.n_rows, _PROBE_ROWS, replace=False)

            def probe(theta):
                return gradient(theta, some)
        else:
            probe = gradient
        points = [rng.standard_normal(n_entries) for _ in range(_PROBES)]
        curvatures = [min(max(1.0, stiffness(probe, point, None, rng)), STIFFEST) for point in points]
        while True:
            found, roots = curvatures, [None] * len(points)
            if sampler._uses_metric:
                found, roots = self._in_units_of_metric(replace(dense, n_batch=n_batch), probe, points, curvatures)
            noise = max(
                minibatch_variance(gradient, point, n_batch, rng, root=root)
                for point, root in zip(points, roots, strict=True)
            )
            h, full = self._step_for(sampler, found, noise), self._step_for(sampler, curvatures, 0.0)
            if h > 0.5 * full or n_batch == n_rows or self.batch_size != "auto":
                break
            n_batch = min(n_rows, 2 * n_batch)
        if n_batch != dense.n_batch:
            dense = make_dense(n_batch)
        fitted = sampler._resolved(ConstantStep(float(f"{h:.3g}")))
        return dense, fitted, self._n_steps(fitted, n_entries)

    @staticmethod
    def _in_units_of_metric(dense, probe, points, curvatures):
        """At each point the curvature, or that relative to the metric if larger, and the root of the inverse metric.

        Steps are longer in directions in which the rows of the metric underestimate the curvature. Where the metric
        changes by much more than half within a step, the implicit equations of the step have no solution nearby.
        """
        inverses = [inverse_metric(dense, point) for point in points]
        larger = []
        for point, W, usual in zip(points, inverses, curvatures, strict=True):
            rng = np.random.default_rng(1)
            own = stiffness(probe, point, W, rng), (_METRIC_REACH * metric_rate(dense, point, W, rng)) ** 2
            larger.append(min(max(usual, *own), STIFFEST))
        return larger, [unit_root(W) for W in inverses]

    def _step_for(self, sampler, curvatures, noise):
        """The step size of "auto", from the largest curvature at each probe and the noise of minibatches."""
        try:
            return self._automatic_step(sampler, curvatures, noise)
        except ValueError:
            if sampler._picks_step:
                raise
            return 1.0  # its step size is given; without a rule, no batch size is better than another

    def _automatic_step(self, sampler, curvatures, noise):
        return sampler._stable_step(max(curvatures), noise, share=NOISE)

    def _n_draws(self, n_entries):
        """Draws that ``thin="auto"`` keeps: fewer for wide models, within the memory for draws."""
        most = MAX_DRAWS if n_entries <= _WIDE else WIDE_DRAWS
        return int(max(20, min(most, DRAW_MEMORY // (4 * self.n_chains * n_entries))))

    def _n_steps(self, sampler, n_entries):
        """Steps for about as many nearly independent draws as are kept, after a burn-in of one half."""
        if self.n_iter is not None:
            return int(self.n_iter)
        n_draws = self._n_draws(n_entries)
        if sampler._forgets:
            return 2 * n_draws
        h = float(np.mean(sampler.step_size_(np.arange(1000))))
        if not sampler._draws_in_time:
            return int(min(np.ceil(_FLOW_TIME / h), _MOST_FLOW))
        return 2 * n_draws * int(np.clip(np.ceil(2.0 / h), 1, 50))

    def _seeds_after(self, before):
        """Seeds of a run and of its chains; in a stream they follow from the chains ``before``, so that none recurs."""
        seeds = self._chain_seeds()  # refuses a bad random_state
        if before is None:
            return seeds
        return np.random.SeedSequence(before[0].rng.integers(2**32, size=4).tolist()).spawn(self.n_chains + 1)

    def _make_chains(self, sampler, dense, n_iter, starts, before=None):
        """New chains; ``before`` are those of the earlier blocks of a stream."""
        plan = DrawPlan(n_iter, self.burn_in, self.thin, max_draws=self._n_draws(starts[0].size))
        shuffle_seed, *seeds = self._seeds_after(before)
        return make_chains(seeds, plan, sampler, "euclidean", starts, shuffle_seed, dense)

    def _thinned_draws(self, samples):
        """The draws that become ``samples_``: all of them, but at most `MAX_AUTO_DRAWS` for "auto"."""
        n = next(iter(samples.values())).shape[1]
        if self.thin != "auto" or n <= MAX_AUTO_DRAWS or not self.sampler_._draws_in_time:
            return samples
        chosen = np.linspace(0, n - 1, MAX_AUTO_DRAWS).round().astype(int)
        return {name: value[:, chosen] for name, value in samples.items()}

    def _kept_theta(self, chains):
        """Draws of all chains, (n_chains, n_kept, n_entries)."""
        self.sampler_._report([chain.state for chain in chains])
        return stacked_draws(chains)["theta"][..., 0]

    def _checks(self, chains):
        theta = stacked_draws(chains)["theta"]
        found = [*super()._checks(chains), *self._flow_checks(), *self._collapse_checks(theta)]
        misfit = self._misfit_checks(theta[..., 0], has_settled=not any_fired(found))
        # Chains that lie apart are jointly wide, whatever the spread of each; those in the units of a Gaussian that
        # does not fit have an automatic step that does not either.
        if not any_fired(found) and not (any_fired(misfit) and self.sampler_._picks_step):
            found += self._spread_checks(theta[..., 0], chains[0].data[0])
        return [*found, *misfit]

    def _misfit_checks(self, theta, has_settled):
        """The check that the coordinates of the chains suit their draws (n_chains, n_kept, D), in a list."""
        return []

    def _flow_checks(self):
        """The check that particles have moved for long enough to reach the posterior, in a list."""
        sampler, limit = self.sampler_, FLOW_TOO_SHORT.limit
        if sampler._draws_in_time:
            return []
        time = float(sampler.step_size_(np.arange(self.n_iter_)).sum())
        if time >= limit:
            return [FLOW_TOO_SHORT.passed(time)]
        meaning = (
            f"The draws have not converged: the particles have moved for a time of {time:.2g} (steps times the step "
            f"size, {float(sampler.step_size_(0)):.3g}), and need about {_FLOW_TIME:g}."
        )
        longer = f"n_iter={rounded_up(self.n_iter_ * _FLOW_TIME / time)}"
        remedy = longer if sampler._picks_step else f'step_size="auto", or {longer}'
        return [FLOW_TOO_SHORT.fired(time, meaning, f"Use {remedy}.")]

    def _spread_checks(self, theta, dense):
        """The check that neither long steps nor the noise of minibatches have widened the draws, in a list."""
        sampler = self.sampler_
        if not sampler._draws_in_time or sampler._corrects_steps:
            return []
        n_entries = theta.shape[2]
        gradient = DenseGradient(dense, (n_entries, 1))
        spread = spread_of(gradient, theta, sampler.temperature, _SPREAD_CELLS)
        if spread.ratios is None:
            return []
        name, ratios, limits = "some combination of the parameters", spread.ratios, spread.limits
        if n_entries > _MOST_WHITENED:
            ratios, name = ratios.mean(keepdims=True), "the parameters"
            limits = limits_of_spread(spread.n_effective.min(keepdims=True), 1)
        return curvature_checks(ratios, {"wide": self._narrowing(dense)}, [name] * ratios.size, limits)

    def _narrowing(self, dense):
        """What to type if draws spread too widely."""
        remedies = [f"a step_size smaller than {float(self.sampler_.step_size_(0)):.3g}"]
        if not self.sampler_._picks_step:
            remedies.append('step_size="auto"')
        if dense.n_batch < dense.n_rows:
            remedies.append(f"a batch_size larger than {dense.n_batch}")
        if not getattr(self, "control_variates", True):
            remedies.append("control_variates=True")
        return f"Use {', or '.join(remedies)}."

    def _collapse_checks(self, theta):
        """The check that chains move: in their coordinates standard deviations are near 1; in a list."""
        if theta.shape[1] < MIN_KEPT:
            return []
        spread = np.median(theta.std(axis=1)) / np.sqrt(self.sampler_.temperature)
        if spread >= COLLAPSED.limit:
            return [COLLAPSED.passed(spread)]
        meaning = (
            f"The spread of the posterior has collapsed: within a chain, the standard deviation of draws is "
            f"{spread:.2g} times the one that the curvature predicts ({COLLAPSED.limit} at least)."
        )
        remedy = (
            f"Use a larger n_iter, such as n_iter={self._longer(10)}, or a step size larger than "
            f"{float(self.sampler_.step_size_(0)):.3g}."
        )
        return [COLLAPSED.fired(spread, meaning, remedy)]

    def _remedy(self, found):
        h = self.sampler_.step_size_ if hasattr(self.sampler_, "step_size_") else None
        step = "" if h is None else f", or another step size than {float(h(0)):.3g}"
        return f"Use a larger n_iter, such as n_iter={self._longer(10)}{step}."
