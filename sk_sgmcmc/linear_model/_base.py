"""Base class of the linear models with a link: coordinates, chains, streams and draws of the coefficients."""

from dataclasses import replace
from numbers import Real

import numpy as np
from scipy import sparse

from ..dense.chain import DenseData
from ..dense.model import BaseDenseSGMCMC
from ..dense.rows import less_offsets, packed, refuse_extremes
from ..utils._fingerprint import fingerprint
from ..utils._sklearn import Interval, StrOptions
from ..utils._sparse import canonical
from ._design import MAX_ENTRIES, Design
from ._diagonal import DiagonalDesign
from ._prior import find_design
from ._rows import log_likelihoods, row_offsets

# Above this share of nonzero entries, sparse rows are read faster as dense ones.
_DENSE_SHARE = 0.3
_SEVERAL_DRAWS = 500


class BaseLinearModel(BaseDenseSGMCMC):
    """Base class of models whose rows have one linear predictor, or one for each of several classes.

    A subclass has a ``_likelihood`` of `_likelihoods`; implements ``_signal(is_sparse, n_rows)``, the kernel, and
    ``_metric(design)``; and turns its data into (rows, responses, weights), see `_usable`, for `_start`.
    """

    _n_predictors = 1
    _unneeded_by_answers = (*BaseDenseSGMCMC._unneeded_by_answers, "_design")

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
        """Fewer for several classes, whose steps are dear."""
        most = super()._n_draws(n_entries)
        return most if self._n_predictors == 1 else min(most, _SEVERAL_DRAWS)

    def _usable(self, X):
        """Rows in the form in which they are read; raises for numbers that are too large."""
        if sparse.issparse(X):
            X = canonical(X)
        refuse_extremes(X, getattr(self, "feature_names_in_", None))
        return X

    @staticmethod
    def _used(X, y, weight, n_rows):
        """Rows with a weight above 0, their responses and weights; sparse where the kernels read them so."""
        used = weight > 0
        if not used.all():
            X, y, weight = X[used], y[used], weight[used]
        if n_rows * (X.shape[1] + 1) > MAX_ENTRIES:
            X = sparse.csr_matrix(X)
        elif sparse.issparse(X) and X.nnz > _DENSE_SHARE * X.shape[0] * X.shape[1]:
            X = X.toarray()
        return X, y, weight

    def _start(self, sampler, data, n_rows, before, n_seen):
        """Run chains on (rows, responses, weights); in a stream they go on from the chains ``before``."""
        X, y, weight = data
        self._n_predictors = n_rows
        self._fingerprint = fingerprint(X, y, weight)
        if before is None:
            self._offsets = row_offsets(X, weight, self.fit_intercept)
        elif self.fit_intercept != self._design.fit_intercept:
            raise ValueError(
                f"fit_intercept={self.fit_intercept} differs from that of the earlier rows; partial_fit continues "
                "with the same coefficients. Call fit to start afresh."
            )
        X = less_offsets(X, self._offsets)
        kind = DiagonalDesign if n_rows * (X.shape[1] + 1) > MAX_ENTRIES else Design
        reference = None if before is None else self._design.reference

        def make(prior):
            return kind(
                X, y, weight, n_rows, prior, self.fit_intercept, self.control_variates, reference, self._likelihood
            )

        if before is None:
            wide = self.intercept_prior_scale if self.fit_intercept else None
            design, self.prior_scale_ = find_design(make, X, weight, n_rows, self.prior, self.prior_scale, wide)
        else:
            design = make(self._design.summary)
        make_dense, width = self._reader(design, sampler, X, y, weight)
        streams = before is not None
        dense, fitted, n_iter = self._tuned(sampler, make_dense, X.shape[0], width, design.mode.size, streams=streams)
        starts = [np.zeros((design.mode.size, 1)) for _ in range(self.n_chains)]
        goes_on = before is not None and len(before) == self.n_chains and self._is_alike(before[0], fitted)
        if goes_on:
            starts = [self._carried(chain.theta, design) for chain in before]
        chains = self._make_chains(fitted, dense, n_iter, starts, before)
        self._design, self.sampler_ = design, fitted
        self.batch_size_, self.n_samples_seen_ = dense.n_batch, n_seen + X.shape[0]
        return self._run(chains, n_iter)

    @staticmethod
    def _is_alike(chain, sampler):
        """Whether a sampler can continue from the state of a chain: both have one particle, or equally many."""
        if sampler._runner != "particles":
            return chain.theta.ndim == 2
        return chain.theta.ndim == 3 and len(chain.theta) == sampler.n_particles

    def _carried(self, theta, design):
        """A state, or that of each particle, in the coordinates of another design."""
        if theta.ndim == 3:
            return np.stack([self._carried(each, design) for each in theta])
        return design.theta_of(*self._design.coefficients(theta[:, 0]))[:, None]

    def _reader(self, design, sampler, X, y, weight):
        """A function from the batch size to the data for the kernels, and how many numbers they read for a row."""
        if sampler._uses_metric:
            if isinstance(design, DiagonalDesign):
                raise ValueError(
                    f"sampler={sampler!r} needs the Fisher information at every step, which is implemented for up to "
                    f"{MAX_ENTRIES} coefficients; these data have {design.mode.size}. Use another, such as 'hmc'."
                )
            X = X.toarray() if sparse.issparse(X) else X
        rows = design.rows(X)
        outputs = self._likelihood.outputs(y, design.eta(rows))
        is_sparse = sparse.issparse(X)
        params = design.params(is_sparse, sampler._reads_log_density)
        signal = self._signal(is_sparse, design.n_rows)
        if not is_sparse:
            metric = self._metric(design) if sampler._uses_metric else None

            def dense(n_batch):
                return DenseData(rows.Z, outputs, weight, params, signal, n_batch, self.with_replacement, metric=metric)

            return dense, rows.width * design.n_rows
        data = packed(X, outputs, weight, params, signal, X.shape[0], self.with_replacement)
        return lambda n_batch: replace(data, n_batch=n_batch), 2.0 * design.n_rows * (X.nnz / X.shape[0] + 1.0)

    def _resume_on(self, X, y, weight):
        """Go on with the chains, given the same rows, responses and weights again."""
        self._refuse_other_data(fingerprint(X, y, weight), "X (or y, or sample_weight)")
        X = less_offsets(X, self._offsets)
        dense = self._reader(self._design, self.sampler_, X, y, weight)[0](self.batch_size_)
        for chain in self._chains:
            chain.bind((dense, None))
        return self._run(self._chains, self._planned_iter)

    def _drawn(self, chains):
        """Draws of coefficients (n_chains, n_kept, n_rows, n_features), and of intercepts of columns less offsets."""
        theta = self._kept_theta(chains)
        if self.sampler_._draws_in_time:
            self._design.warn_if_far(theta, self.sampler_.temperature)
        return self._design.coefficients(theta)

    def _log_likelihoods(self, chains, coef, near):
        return log_likelihoods(self._design, chains[0].data[0], coef, near)

    def _set_fitted(self, chains):
        coef, self._near_intercepts = self._drawn(chains)
        far = np.flatnonzero(self._offsets)
        intercept = self._near_intercepts - coef[..., far].astype(np.float64) @ self._offsets[far]
        self._all_samples = {"coef": coef, "intercept": intercept}
        self.samples_ = self._shown(self._all_samples)
        self.coef_, self.intercept_ = coef.mean(axis=(0, 1)), intercept.mean(axis=(0, 1))

    def _monitored(self, chains):
        coef, intercept = (self._all_samples[name] for name in ("coef", "intercept"))
        density = self._log_likelihoods(chains, coef, self._near_intercepts)
        return {"log_likelihood": density, "coef": coef, **({"intercept": intercept} if self.fit_intercept else {})}
