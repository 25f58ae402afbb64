"""Base class of estimators with dense rows and a nearly Gaussian posterior: chains in whitened coordinates."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Literal

import numpy as np

from ..base import BaseSGMCMC
from ..chains.chain import DRAW_MEMORY, MAX_AUTO_DRAWS, DrawPlan, stacked_draws
from ..chains.checks import COLLAPSED, FLOW_TOO_SHORT, TOO_WIDE, any_fired, curvature_checks
from ..chains.convergence import MIN_KEPT, limits_of_spread, rounded_up, spread_of
from ..chains.minibatches import BATCH_ORDERS, refuse_palindrome
from ..samplers.schedules import ConstantStep
from ..utils._parameters import keyword_parameters
from ..utils._sklearn import StrOptions
from .automatic_step import LONGEST_SHARE, longest_step
from .bias import bias_under
from .chain import make_chains
from .tuning import DenseGradient, inverse_metric, metric_rate, minibatch_variance, stiffness, unit_root

# Number of draws averaged in posterior means with ``thin="auto"``; ``samples_`` contains 100 of them, evenly spaced.
MAX_DRAWS = 1500
# As MAX_DRAWS, for models with more than `_WIDE` coefficients.
WIDE_DRAWS = 200
_WIDE = 2000
_PROBES = 3
_PROBE_ROWS = 5000
_EXCURSION = 5.0  # of the squared distance from the mode above its mean, in standard deviations
NOISE = 0.05  # share of a posterior variance that the noise of minibatches may add
# Time for which particles move, in units of the relaxation time of the posterior, and largest number of steps.
_FLOW_TIME, _MOST_FLOW = 60.0, 100_000
# Limits a step under a metric, 0.4 over the square root of a curvature, to half the time scale of the metric.
_METRIC_REACH = 0.8
STIFFEST = 100.0  # upper limit of curvatures: in skew coordinates, probes can lie far outside the posterior
_SPREAD_CELLS = 5e7  # rows times entries that the check of the spread of draws reads, about 1% of a fit
# States with more entries are not whitened, and their spread is checked on average only, as entries vary too much.
_MOST_WHITENED = 1000


@keyword_parameters
class BaseDenseSGMCMC(BaseSGMCMC):
    """Base class of estimators with dense rows, in coordinates with a posterior spread of about 1.

    Parameters
    ----------
    n_iter : int or None, default=None
        Number of steps (trajectories of `HMC`). None: enough for about 1,500 nearly independent draws after burn-in.

    Attributes
    ----------
    sampler_ : sampler object
        The sampler of the fit. ``sampler_.step_size_`` is its step size, in whitened coordinates, also if chosen by
        "auto".
    batch_size_ : int
        Number of rows in a minibatch.
    n_samples_seen_ : int
        Number of rows seen, including those of earlier calls of `partial_fit`.

    Other Parameters
    ----------------
    with_replacement : bool, default=False
        Whether to draw each minibatch with replacement, instead of reading the rows in an order that is shuffled once.
    batch_order : {"shuffled", "palindromic"}, default="shuffled"
        Order in which an epoch reads the minibatches of rows without replacement. "shuffled": a new random order in
        each epoch. "palindromic": each second epoch reads the minibatches of the epoch before in reverse order.
    sampler : str, sampler object or None, default=None
        Any sampler on Euclidean space. None: `SGHMC`. Particle samplers (`Blob`, `GFSD`, `GFSF`, `SVGD`, `PSGHMC`) are
        approximate, and their intervals are too narrow.
    burn_in : float or int, default=0.5
        Steps to discard at the start, as a fraction (float) or a number (int). Chains start at or near the mode.
    thin : int or "auto", default="auto"
        Keep every ``thin``-th step after burn-in. "auto" keeps at most 100 draws, and averages posterior means,
        predictions and scores over up to fifteen times as many.
    batch_size : int or "auto", default="auto"
        Number of rows in a minibatch. "auto": all rows of a small data set, otherwise as many as allow long steps of
        small bias.
    """

    with_replacement: bool = False
    batch_order: Literal["shuffled", "palindromic"] = "shuffled"

    _offers = (("euclidean", "gradient"), ("euclidean", "gradient-metric"))
    _default_sampler = "sghmc"
    # Entries of the data in the first automatic minibatch, which take about as long to read as the rest of a step. If
    # their noise is too large, minibatches are doubled.
    _cells_per_step = 2_000
    _check_definitions = (*BaseSGMCMC._check_definitions, FLOW_TOO_SHORT, COLLAPSED, TOO_WIDE)

    _parameter_constraints = {
        **BaseSGMCMC._parameter_constraints,
        "with_replacement": ["boolean"],
        "batch_order": [StrOptions(set(BATCH_ORDERS))],
    }

    def _validate_params(self):
        super()._validate_params()
        refuse_palindrome(self.batch_order, self.with_replacement)

    def _n_batch(self, sampler, n_rows, width, n_entries, streams):
        """Number of rows in a minibatch before the noise of gradients is known; a row has ``width`` numbers."""
        if isinstance(self.batch_size, Integral):
            if not streams:  # the last block of a stream may be shorter than a minibatch
                self._refuse_large_batch(n_rows)
            return sampler._rows_read(n_rows, int(self.batch_size))
        cells = max(self._cells_per_step, n_entries)
        return n_rows if n_rows * width <= cells else sampler._rows_read(n_rows, max(100, int(cells // width)))

    def _tuned(self, sampler, make_dense, n_rows, width, n_entries, *, streams=False, point=np.asarray):
        """Choose the batch size, step size and number of steps; return (DenseData, resolved sampler, n_iter).

        ``point`` maps standard normal numbers (n_entries,) to a point at which curvatures and noise are measured.
        """
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
        points = [point(rng.standard_normal(n_entries)) for _ in range(_PROBES)]
        curvatures = [min(max(1.0, stiffness(probe, point, None, rng)), STIFFEST) for point in points]
        picks_batch = self.batch_size == "auto"
        reaches = (1.0, np.sqrt(1.0 + _EXCURSION * np.sqrt(2.0 / n_entries))) if picks_batch else (1.0,)
        while True:
            found, roots = curvatures, [None] * len(points)
            if sampler._uses_metric:
                found, roots = self._in_units_of_metric(replace(dense, n_batch=n_batch), probe, points, curvatures)
            # As far from the mode as long chains go, a variance may grow with the square of the distance, not faster:
            # otherwise the minibatch grows.
            noise = max(
                minibatch_variance(gradient, far * point, n_batch, rng, root=root) / far**2
                for far in reaches
                for point, root in zip(points, roots, strict=True)
            )
            h, full = self._step_for(sampler, found, noise), self._step_for(sampler, curvatures, 0.0)
            if sampler._picks_step:
                h = self._longest_step(sampler, curvatures, noise, replace(dense, n_batch=n_batch), usual=h)
            if h > 0.5 * full or n_batch == n_rows or not picks_batch:
                break
            n_batch = min(n_rows, 2 * n_batch)
        if n_batch != dense.n_batch:
            dense = make_dense(n_batch)
        fitted = sampler._resolved(ConstantStep(float(f"{h:.3g}")))
        return dense, fitted, self._n_steps(fitted, n_entries)

    def _longest_step(self, sampler, curvatures, noise, dense, usual):
        """The longest step whose predicted bias is small, or ``usual`` where the bias cannot be predicted."""
        if getattr(sampler, "mass", None) is not None or sampler._inverse_mass(1) is not None:
            return usual  # curvatures are measured for the identity
        n_batches = np.inf if dense.with_replacement else dense.n_rows / dense.n_batch
        largest = max(curvatures)
        limits = self._automatic_step(sampler, curvatures, 0.0), sampler._stable_step(largest, 0.0, share=LONGEST_SHARE)
        return longest_step(sampler, largest, noise, n_batches, self.batch_order, max(limits)) or usual

    @staticmethod
    def _in_units_of_metric(dense, probe, points, curvatures):
        """Curvature at each point for a sampler under the metric, and the roots of the inverse metrics.

        The curvature is the largest of the curvature without the metric, the curvature relative to the metric, and a
        limit from the rate of change of the metric. The second matters in directions in which the rows of the metric
        underestimate the curvature. The third is needed because the implicit equations of a step have no nearby
        solution if the metric changes by much more than half within the step.
        """
        inverses = [inverse_metric(dense, point) for point in points]
        larger = []
        for point, W, usual in zip(points, inverses, curvatures, strict=True):
            rng = np.random.default_rng(1)
            own = stiffness(probe, point, W, rng), (_METRIC_REACH * metric_rate(dense, point, W, rng)) ** 2
            larger.append(min(max(usual, *own), STIFFEST))
        return larger, [unit_root(W) for W in inverses]

    def _step_for(self, sampler, curvatures, noise):
        """Automatic step size from the curvatures at all probes and the noise of minibatches; 1 without a rule."""
        try:
            return self._automatic_step(sampler, curvatures, noise)
        except ValueError:
            if sampler._picks_step:
                raise
            return 1.0  # the user set the step size; any value makes `_tuned` accept the batch size

    def _automatic_step(self, sampler, curvatures, noise):
        return sampler._stable_step(max(curvatures), noise, share=NOISE)

    def _n_draws(self, n_entries):
        """Number of draws that ``thin="auto"`` keeps: fewer for wide models, and within the memory for draws."""
        most = MAX_DRAWS if n_entries <= _WIDE else WIDE_DRAWS
        return int(max(20, min(most, DRAW_MEMORY // (4 * self.n_chains * n_entries))))

    def _n_steps(self, sampler, n_entries):
        """Number of steps so that kept draws are nearly independent, after a burn-in of one half."""
        if self.n_iter is not None:
            return int(self.n_iter)
        n_draws = self._n_draws(n_entries)
        if sampler._forgets:
            return 2 * n_draws
        h = float(np.mean(sampler.step_size_(np.arange(1000))))
        if not sampler._draws_in_time:
            return int(min(np.ceil(_FLOW_TIME / h), _MOST_FLOW))
        return 2 * n_draws * int(np.clip(np.ceil(2.0 / h), 1, 50))

    def _seeds_of_call(self, n_earlier):
        """Seeds of a run and of its chains after ``n_earlier`` calls of `fit` and `partial_fit`, new for each call."""
        seeds = self._chain_seeds()
        if n_earlier == 0:
            return seeds
        entropy = [*seeds[0].generate_state(4).tolist(), n_earlier]
        return np.random.SeedSequence(entropy).spawn(self.n_chains + 1)

    def _make_chains(self, sampler, dense, n_iter, starts, seeds):
        """Make new chains; the first of the ``seeds`` is that of the order of the rows."""
        plan = DrawPlan(n_iter, self.burn_in, self.thin, max_draws=self._n_draws(starts[0].size))
        shuffle_seed, *seeds = seeds
        return make_chains(seeds, plan, sampler, "euclidean", starts, shuffle_seed, dense, self.batch_order)

    def _thinned_draws(self, samples):
        """Draws for ``samples_``: all kept draws, or at most `MAX_AUTO_DRAWS` of them with ``thin="auto"``."""
        n = next(iter(samples.values())).shape[1]
        if self.thin != "auto" or n <= MAX_AUTO_DRAWS or not self.sampler_._draws_in_time:
            return samples
        chosen = np.linspace(0, n - 1, MAX_AUTO_DRAWS).round().astype(int)
        return {name: value[:, chosen] for name, value in samples.items()}

    def _kept_theta(self, chains):
        """Kept draws of all chains, (n_chains, n_kept, n_entries); also sets fitted attributes of the sampler."""
        self.sampler_._report([chain.state for chain in chains])
        return stacked_draws(chains)["theta"][..., 0]

    def _diagnosis(self, chains):
        diagnosis = super()._diagnosis(chains)
        diagnosis.add_bias(bias_under(self.sampler_, chains))
        return diagnosis

    def _checks(self, chains):
        theta = stacked_draws(chains)["theta"]
        found = [*super()._checks(chains), *self._flow_checks(), *self._collapse_checks(theta)]
        misfit = self._misfit_checks(theta[..., 0], has_settled=not any_fired(found))
        # Skip the check of the spread if another check explains a wide spread: chains that disagree are jointly wide,
        # and an automatic step size is unsuitable if the Gaussian that defines the coordinates is.
        if not any_fired(found) and not (any_fired(misfit) and self.sampler_._picks_step):
            found += self._spread_checks(theta[..., 0], chains[0].data[0])
        return [*found, *misfit]

    def _misfit_checks(self, theta, has_settled):
        """List with the check that the coordinates of the chains suit their draws (n_chains, n_kept, D)."""
        return []

    def _flow_checks(self):
        """List with the check that particles have moved for long enough to reach the posterior."""
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
        """List with the checks that neither the step size nor the noise of minibatches has widened the draws."""
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
        """Remedy in the warning that draws spread too widely."""
        remedies = [f"a step_size smaller than {float(self.sampler_.step_size_(0)):.3g}"]
        if not self.sampler_._picks_step:
            remedies.append('step_size="auto"')
        if dense.n_batch < dense.n_rows:
            remedies.append(f"a batch_size larger than {dense.n_batch}")
        if not getattr(self, "control_variates", True):
            remedies.append("control_variates=True")
        return f"Use {', or '.join(remedies)}."

    def _collapse_checks(self, theta):
        """List with the check that the chains move: standard deviations of draws should be near 1."""
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
