"""Base class of the linear models: coordinates, chains, streams and draws of the coefficients."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import field, replace
from numbers import Real
from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.base import clone

from ..chains.chain import DRAW_MEMORY
from ..chains.checks import FAR_FROM_MODE, SORTED_STREAM
from ..dense.chain import DenseData
from ..dense.model import NOISE, STIFFEST, WIDE_DRAWS, BaseDenseSGMCMC
from ..dense.rows import less_offsets, packed, refuse_extremes, refuse_tiny
from ..utils._fingerprint import fingerprint
from ..utils._parameters import keyword_parameters
from ..utils._sklearn import Interval, StrOptions
from ..utils._sparse import canonical
from ..utils._typing import FloatArray
from ._deferred import DefersRuns
from ._design import MAX_ENTRIES, Design, DiagonalDesign, log_likelihoods
from ._input import row_offsets, warn_of_unlike_spreads
from ._prior import all_zero, column_units, find_design
from ._stream import Stream, Summary, Units

# Above this share of nonzero entries, the kernels read sparse rows faster once they are converted to dense ones.
_DENSE_SHARE = 0.3
# With several classes a step is expensive, so fewer draws are kept and fewer steps made. The number of steps may exceed
# `_SEVERAL_STEPS` only where a third of these draws would otherwise not be nearly independent.
_SEVERAL_DRAWS = 300
_SEVERAL_STEPS = 10_000
# Step size of a splitting integrator times the square root of the curvature, at a typical point and at the stiffest. A
# splitting has no error on a Gaussian, so its step only has to be stable.
_USUAL_REACH, _STIFF_REACH = 1.0, 1.4
# In a wide model, a few rows near the boundary between classes are stiffest, and others are at the next draw. Steps may
# therefore be longer.
_WIDE_REACH = 1.5
# Draws that a wide model keeps, for each unit of the spread of a predictor, and bounds of their number.
_DRAWS_PER_SPREAD = 80
_WIDE_DRAWS, _SEVERAL_WIDE_DRAWS = (150, 200), (200, 300)
_TIME_PER_DRAW, _MOST_STEPS_PER_DRAW = 2.0, 25
# In a wide model, numbers of rows that a step may read for each coefficient: they take about twice as long as the rest.
_WIDE_CELLS = 64


def is_wide(X, n_predictors):
    """Whether the coefficients are too many for their Hessian to be factorised."""
    return n_predictors * (X.shape[1] + 1) > MAX_ENTRIES


@keyword_parameters
class BaseLinearModel(DefersRuns, BaseDenseSGMCMC):
    r"""Base class of models whose rows have one linear predictor, or one for each of several classes.

    A subclass sets ``_likelihood`` to one of the likelihoods of `_design`. It implements
    ``_signal(is_sparse, n_predictors)``, which returns the kernel, and ``_metric(design)``. It converts its data to
    (rows, responses, weights) with `_checked_rows` and `_weighted_rows`, and passes them to `_start_chains`.

    To avoid cancellation, ``_offsets`` are subtracted from columns far from 0. ``_near_intercepts`` are the draws of
    the intercepts for these shifted columns; predictions use them because they keep full precision.
    ``samples_["intercept"]`` refers to the columns as given.

    Parameters
    ----------
    prior_scale : float or "auto", default="auto"
        Scale :math:`\sigma` of the prior of each coefficient. A number refers to the columns of X as given; `fit` warns
        if the standard deviations of dense columns differ by a factor of 100 or more. "auto" learns the scale from the
        data: for standardised columns if X is dense, so that their units do not matter, and for the columns as given if
        X is sparse. See Notes.
    prior : {"normal", "laplace"}, default="normal"
        Distribution of the coefficients: :math:`N(0, \sigma^2)`, or :math:`e^{-|\beta| / \sigma} / (2 \sigma)`.
    fit_intercept : bool, default=True
        Whether to fit an intercept.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Posterior mean of the coefficients.
    intercept_ : float
        Posterior mean of the intercept.
    prior_scale_ : float
        The scale in use: as given, or the one that "auto" found. For dense X, "auto" finds the scale of the
        coefficients of standardised columns.
    coef_prior_scale_ : ndarray of shape (n_features,)
        The scale of the prior of each coefficient of the columns as given. If "auto" found ``prior_scale_`` from dense
        X, it is divided by the standard deviations of the columns.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        ``quantity``, ``mean``, split ``r_hat``, ``ess``, ``mcse`` and ``bias`` of the log likelihood, intercepts and
        coefficients (of many, the 20 least settled). See "Warnings and what to do" in the user guide.

    Other Parameters
    ----------------
    control_variates : bool, default=True
        Whether minibatches estimate only the difference between the log likelihood and its second-order expansion at
        the mode.
    """

    prior_scale: float | Literal["auto"] = field(default="auto", kw_only=False)
    prior: Literal["normal", "laplace"] = "normal"
    fit_intercept: bool = True
    intercept_prior_scale: float = 100.0
    control_variates: bool = True

    coef_: FloatArray = field(init=False)
    prior_scale_: float = field(init=False)
    coef_prior_scale_: FloatArray = field(init=False)

    _n_predictors = 1
    _spread = 0.0  # of the predictors of rows in a wide model
    _is_wide = False  # whether the coordinates are those of a `DiagonalDesign`
    _is_mild = False  # whether they are, and the curvature of the likelihood is bounded
    _unused_by_predictions = (*BaseDenseSGMCMC._unused_by_predictions, "_design", "_stream")
    _stream = None  # a `Stream`
    _stream_kind = Stream
    # Parameters that must not change between calls of `partial_fit`.
    _fixed_in_stream = ("fit_intercept", "prior", "prior_scale", "intercept_prior_scale")
    _set_by_run = (
        "batch_size_", "checks_", "coef_", "coef_prior_scale_", "diagnostics_", "intercept_", "n_iter_", "prior_scale_",
        "sampler_", "samples_", "trace_", "_all_samples", "_chains", "_check_results", "_design", "_diagnostics",
        "_near_intercepts", "_planned_iter",
    )  # fmt: skip
    _check_definitions = (*BaseDenseSGMCMC._check_definitions, FAR_FROM_MODE, SORTED_STREAM)

    _parameter_constraints = {
        **BaseDenseSGMCMC._parameter_constraints,
        "prior_scale": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "prior": [StrOptions({"normal", "laplace"})],
        "fit_intercept": ["boolean"],
        "intercept_prior_scale": [Interval(Real, 0, None, closed="neither")],
        "control_variates": ["boolean"],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _n_draws(self, n_entries):
        """Keep fewer draws with several classes, whose steps are expensive, and where predictors are well known.

        The error of a predicted probability, averaged over draws, is proportional to the spread of the predictor.
        """
        most = super()._n_draws(n_entries)
        if self._is_wide and most <= WIDE_DRAWS:
            fewest, most = _WIDE_DRAWS if self._n_predictors == 1 else _SEVERAL_WIDE_DRAWS
            wanted = np.clip(_DRAWS_PER_SPREAD * self._spread, fewest, most)
            return int(max(20, min(wanted, DRAW_MEMORY // (4 * self.n_chains * n_entries))))
        return most if self._n_predictors == 1 else min(most, _SEVERAL_DRAWS)

    def _n_steps(self, sampler, n_entries):
        """Make fewer steps with several classes if the step size is small, for example because a class is rare."""
        n = super()._n_steps(sampler, n_entries)
        if self._is_wide and self.n_iter is None and sampler._is_splitting:
            h = float(np.mean(sampler.step_size_(np.arange(1000))))
            return 2 * self._n_draws(n_entries) * int(np.clip(round(_TIME_PER_DRAW / h), 1, _MOST_STEPS_PER_DRAW))
        if self._n_predictors == 1 or self.n_iter is not None:
            return n
        return min(n, max(_SEVERAL_STEPS, n // 3))

    def _automatic_step(self, sampler, curvatures, noise):
        """Use a larger step where steps are expensive: with several classes, and in wide models.

        The curvature with several classes is much larger at a few points than at the others.
        """
        usual = float(np.median(curvatures))
        takes_long = self._n_predictors > 1 or self._is_mild
        if not takes_long or not sampler._is_splitting or usual >= STIFFEST:
            return super()._automatic_step(sampler, curvatures, noise)
        reach, stiff_reach = (_WIDE_REACH, _WIDE_REACH) if self._is_wide else (_USUAL_REACH, _STIFF_REACH)
        usual = sampler._stable_step(usual, noise, share=NOISE, reach=reach)
        return min(usual, sampler._stable_step(max(curvatures), 0.0, reach=stiff_reach))

    def _n_batch(self, sampler, n_rows, width, n_entries, streams):
        """Read more rows in each step of a wide model, since the many coefficients take long too."""
        return super()._n_batch(sampler, n_rows, width, n_entries * (_WIDE_CELLS if self._is_wide else 1), streams)

    def _checked_rows(self, X):
        """Rows, in canonical form if sparse; raises if numbers are too large, or too small to standardise."""
        self._is_given_sparse = sparse.issparse(X)  # `_weighted_rows` may convert the rows later
        if self._is_given_sparse:
            X = canonical(X)
        names = getattr(self, "feature_names_in_", None)
        refuse_extremes(X, names)
        if self.prior_scale == "auto":
            refuse_tiny(X, names)
        return X

    def _warn_of_prior(self, X, weight):
        """Warn if ``prior_scale`` is a number and the spreads of dense columns differ; X is without its offsets."""
        if self.prior_scale != "auto" and not self._is_given_sparse:
            warn_of_unlike_spreads(X, weight, self.prior_scale, getattr(self, "feature_names_in_", None))

    @staticmethod
    def _weighted_rows(X, y, weight, n_predictors):
        """Rows with a weight above 0, responses and weights; converts the rows to the form that the kernels read."""
        used = weight > 0
        if not used.all():
            X, y, weight = X[used], y[used], weight[used]
        if is_wide(X, n_predictors):
            X = sparse.csr_matrix(X)
        elif sparse.issparse(X) and X.nnz > _DENSE_SHARE * X.shape[0] * X.shape[1]:
            X = X.toarray()
        return X, y, weight

    def _add_rows(self, sampler, data, n_predictors):
        """Add (rows, responses, weights), passed to `partial_fit`, to the stream; chains run when they are needed."""
        if self._stream is None:
            self._begin(data, n_predictors)
            self._stream, self.n_samples_seen_ = self._stream_kind(), 0
        else:
            self._refuse_changes(self._fixed_in_stream, "partial_fit")
        self._refuse_metric(sampler, data[0])
        rows = self._less_offsets(data)
        seeds = self._seeds_of_call(self._stream.n_calls)
        self._stream = self._stream.added(rows, self._summary_of)
        self.n_samples_seen_ += len(data[1])
        sampler = clone(sampler)  # `set_params` may change the one that was passed
        return self._defer(
            lambda model: model._chains_of_stream(sampler, seeds),
            lambda model: model._chains_in(model._first_design(rows), sampler, *rows, deepcopy(seeds), streams=True),
        )

    def _start_chains(self, sampler, data, n_predictors):
        """Run new chains on (rows, responses, weights), passed to `fit`."""
        self._stream = None
        self._begin(data, n_predictors)
        self._refuse_metric(sampler, data[0])
        rows = self._less_offsets(data)
        design = self._first_design(rows)
        self._stream = self._stream_kind.of_fit(rows, lambda rows: self._summary(rows, design))
        self.n_samples_seen_ = len(data[1])
        return self._run(*self._chains_in(design, sampler, *rows, self._chain_seeds()))

    def _begin(self, data, n_predictors):
        """Set what the first rows determine."""
        self._n_predictors = n_predictors
        self._offsets = row_offsets(data[0], data[2], self.fit_intercept)
        self._standardises = self.prior_scale == "auto" and not self._is_given_sparse
        self._warn_of_prior(less_offsets(data[0], self._offsets), data[2])

    def _refuse_metric(self, sampler, X):
        """Raise if the sampler needs the Fisher information and X has too many columns for it."""
        self._kind_of_design(X).refuse_metric(sampler, self._n_predictors * (X.shape[1] + self.fit_intercept))

    def _less_offsets(self, data):
        """Subtract the offsets from the rows, and set the fingerprint of the data."""
        self._fingerprint = fingerprint(*data)
        return less_offsets(data[0], self._offsets), *data[1:]

    def _chains_of_stream(self, sampler, seeds):
        """Chains on all rows of the stream that are in memory, and the number of their steps."""
        self._stream = self._stream.joined()
        rows = self._stream.rows
        return self._chains_in(self._next_design(rows), sampler, *rows, seeds, streams=True)

    def _summary_of(self, rows):
        """The `Summary` of the stream up to these rows, all that are in memory."""
        return self._summary(rows, self._next_design(rows))

    def _summary(self, rows, design):
        """As `_summary_of`, given the design of the rows."""
        last, weight = (None if self._stream is None else self._stream.summary), rows[2].sum()
        is_misled = design.is_bare
        if last is not None:
            is_misled |= last.is_misled or last.is_off(rows, design)
            weight += last.weight
        return Summary(design.summary, design.reference, self._units, weight, is_misled)

    def _next_design(self, rows):
        """The design of all rows in memory; a Gaussian represents the others, if there are any."""
        summary = self._stream.summary
        if summary is None:
            return self._first_design(rows)
        return self._design_of(rows, self._with_units_of_new_columns(rows, summary), summary.reference)

    def _first_design(self, rows):
        """The design of rows under the model's prior; sets the scale of the prior."""
        X, _, weight = rows
        scales = self.prior_scale, self.intercept_prior_scale if self.fit_intercept else None
        columns = column_units(X, weight, self.fit_intercept) if self._standardises else None

        def make(prior, last=None):
            return self._design_of(rows, prior, start=None if last is None else last.mode)

        design, scale = find_design(make, X, weight, self._n_predictors, self.prior, *scales, columns=columns)
        unseen = all_zero(X) if self._standardises else np.zeros(X.shape[1], dtype=bool)
        self._set_units(Units(scale, np.ones(X.shape[1]) if columns is None else columns, unseen))
        return design

    def _set_units(self, units):
        self._units, self.prior_scale_ = units, units.prior_scale
        self.coef_prior_scale_ = units.prior_scale / units.columns

    def _with_units_of_new_columns(self, rows, summary):
        """The Gaussian of the summary, with the prior's unit of columns that vary for the first time.

        In earlier rows such a column equals its offset, so these rows say nothing about its coefficient. Only the
        precision of the prior changes.
        """
        X, _, weight = rows
        last = summary.units
        new = last.unseen & ~all_zero(X)
        square = (X.multiply(X) if sparse.issparse(X) else X**2).T @ weight / weight.sum() if new.any() else 0.0
        columns = np.where(new & (square > 0), np.sqrt(square), 1.0)
        self._set_units(Units(last.prior_scale, last.columns * columns, last.unseen & ~new))
        width = X.shape[1] + self.fit_intercept
        more = np.zeros((self._n_predictors, width))
        more[:, : X.shape[1]] = (columns**2 - 1.0) / last.prior_scale**2
        return summary.gaussian.tighter(more.ravel())

    def _kind_of_design(self, X):
        return DiagonalDesign if is_wide(X, self._n_predictors) else Design

    def _design_of(self, rows, prior, reference=None, start=None):
        """The design of rows under a `Quadratic` prior."""
        kind, k = self._kind_of_design(rows[0]), self._n_predictors
        return kind(*rows, k, prior, self.fit_intercept, self.control_variates, reference, self._likelihood, start)

    def _chains_in(self, design, sampler, X, y, weight, seeds, *, streams=False):
        """New chains in a design, and the number of their steps; X is without its offsets.

        The chains of a wide model start at draws of the Gaussian at the mode, so that they need little burn-in.
        """
        self._is_wide, self._spread = design.is_wide, design.predictor_spread
        self._is_mild = design.is_wide and design.likelihood.is_mild
        n_entries = design.n_entries
        make_dense, width = self._data_maker(design, sampler, X, y, weight)
        dense, fitted, n_iter = self._tuned(
            sampler, make_dense, X.shape[0], width, n_entries, streams=streams, point=design.typical_point
        )
        starts = [np.zeros((n_entries, 1))] * self.n_chains  # the mode
        chains = self._make_chains(fitted, dense, n_iter, starts, seeds)
        if self._is_wide and fitted._draws_in_time:
            for chain in chains:
                away = design.typical_point(chain.rng.standard_normal(n_entries))
                chain.theta[:, 0] += np.sqrt(fitted.temperature) * away
        design.forget_rows()
        self._design, self.sampler_, self.batch_size_ = design, fitted, dense.n_batch
        return chains, n_iter

    def _data_maker(self, design, sampler, X, y, weight):
        """A function that maps the batch size to the kernels' data, and how many numbers the kernels read per row."""
        if sampler._uses_metric:
            X = X.toarray() if sparse.issparse(X) else X
        rows = design.rows(X)
        outputs = design.likelihood.outputs(y, design.eta(rows))
        is_sparse = sparse.issparse(X)
        params = design.params(is_sparse, sampler._reads_log_density)
        signal = self._signal(is_sparse, design.n_predictors)
        if not is_sparse:
            metric = self._metric(design) if sampler._uses_metric else None

            def dense(n_batch):
                return DenseData(rows.Z, outputs, weight, params, signal, n_batch, self.with_replacement, metric=metric)

            return dense, rows.width * design.n_predictors
        data = packed(X, outputs, weight, params, signal, X.shape[0], self.with_replacement)
        return lambda n_batch: replace(data, n_batch=n_batch), 2.0 * design.n_predictors * (X.nnz / X.shape[0] + 1.0)

    def _resume_on(self, X, y, weight):
        """Continue the chains; raises unless rows, responses and weights are those of the fit."""
        self._refuse_other_data(fingerprint(X, y, weight), "X (or y, or sample_weight)")
        data = self._data_to_resume(X, y, weight)
        for chain in self._chains:
            chain.bind(data)
        return self._run(self._chains, self._planned_iter)

    def _data_to_resume(self, X, y, weight):
        """The rows in the form to which the chains are bound."""
        rows = less_offsets(X, self._offsets), y, weight
        if self._stream is not None and self._stream.blocks:
            rows = self._stream.rows
        make_dense, _ = self._data_maker(self._design, self.sampler_, *rows)
        return make_dense(self.batch_size_), None

    def _drawn(self, chains):
        """Draws of the coefficients (n_chains, n_kept, n_predictors, n_features) and of ``_near_intercepts``."""
        return self._design.coefficients(self._kept_theta(chains))

    def _misfit_checks(self, theta, has_settled):
        sampler = self.sampler_
        # Converged draws of a sampler with an accept-reject step are right, however far from the mode they lie.
        is_right = sampler._corrects_steps and has_settled and not sampler._n_diverged
        return self._design.checks(theta, sampler.temperature) if sampler._draws_in_time and not is_right else []

    def _checks(self, chains):
        found = super()._checks(chains)
        return found if self._stream is None else [*found, self._stream.check(self._design)]

    def _log_likelihoods(self, chains, coef, near):
        """Mean log likelihood of some of the rows at some of the draws, for the convergence checks."""
        return log_likelihoods(self._design, chains[0].data[0], coef, near)

    def _set_fitted(self, chains):
        self._set_draws(*self._drawn(chains))
        self.intercept_ = self._all_samples["intercept"].mean(axis=(0, 1))

    def _set_draws(self, coef, near, **more):
        """Set the draws and the posterior mean of the coefficients; ``near`` are the ``_near_intercepts``."""
        self._near_intercepts = near
        far = np.flatnonzero(self._offsets)
        intercept = near - coef[..., far].astype(np.float64) @ self._offsets[far]
        self._all_samples = {"coef": coef, "intercept": intercept, **more}
        self.samples_ = self._thinned_draws(self._all_samples)
        self.coef_ = coef.mean(axis=(0, 1))

    def _monitored(self, chains):
        coef, intercept = (self._all_samples[name] for name in ("coef", "intercept"))
        density = self._log_likelihoods(chains, coef, self._near_intercepts)
        return {"log_likelihood": density, "coef": coef, **({"intercept": intercept} if self.fit_intercept else {})}
