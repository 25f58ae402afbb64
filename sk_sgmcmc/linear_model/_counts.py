"""What regressions of counts share: exposures, checks of counts, predictions and scores."""

from __future__ import annotations

from typing import Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import check_consistent_length, column_or_1d

from ..base import all_or_nothing, fits_anew
from ..dense.rows import LARGEST
from ..utils._containers import refuse_dask
from ..utils._numbers import real_array
from ..utils._sklearn import RegressorMixin, _num_samples, check_is_fitted, check_sample_weight
from ..utils._tables import aligned
from ..utils._typing import FloatArray, MatrixLike
from ..utils._warnings import warn_user
from ._base import BaseLinearModel
from ._predict import RegressorDrawsMixin, checked_weights, numeric_responses

LARGEST_MEAN = 1e18  # so that simulated counts fit in int64


class BaseCountRegressor(RegressorDrawsMixin, RegressorMixin, BaseLinearModel):
    """Base class of regressions of counts with a log link and an exposure.

    A subclass implements these methods, besides those that `BaseLinearModel` and `RegressorDrawsMixin` require. Means
    are (n_rows, n_draws):

    - ``_as_rows(X, y, weight, exposure)``: the rows, responses and weights of the likelihood.
    - ``_variances(means)``: variances of new counts under each draw, like ``means``.
    - ``_quantiles(means, tails)``: a list of quantiles of the mixture over draws, (n_rows,) each: the smallest counts
      whose probability reaches each tail.
    """

    _has_exposures = True
    _had_exposure = False  # whether an exposure was passed with the first rows

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    @fits_anew
    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> Self:
        """Fit the model: draw its parameters.

        Parameters
        ----------
        X : array-like, sparse matrix or sparse array of shape (n_samples, n_features)
            Features, on any scales. Sparse rows stay sparse.
        y : array-like of shape (n_samples,)
            Counts, not negative.
        sample_weight : array-like of shape (n_samples,), default=None
            Each row counts this many times.
        exposure : float or array-like of shape (n_samples,), default=None
            Time, area or population in which each count was made; positive. If you pass it, `score`, `partial_fit` and
            `resume` require it too, and predictions without it warn that they are rates.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For entries that are not finite, negative counts, exposures that are not positive, parameters out of range,
            a sampler that does not fit, or a batch larger than the data.
        ChainDivergedError
            If a chain becomes infinite or NaN, at too large a step size.
        FitInterrupted
            After Ctrl-C, as a ``KeyboardInterrupt``. The estimator is fitted with the draws made so far; it is
            ``estimator_`` of the exception.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        return self._start_chains(sampler, self._checked(X, y, sample_weight, exposure), 1)

    @all_or_nothing
    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> Self:
        """Add further rows; the chains run when a fitted attribute is first read.

        They then have the parameters that the estimator has in this call. With ``callbacks`` or ``verbose``, they run
        in the call itself. The notes of the class say what represents the rows of earlier calls.

        Parameters
        ----------
        X, y, sample_weight, exposure : as for `fit`
            Further rows.

        Returns
        -------
        self : object
            Fitted.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        data = self._checked(X, y, sample_weight, exposure, reset=self._stream is None, method="partial_fit")
        return self._add_rows(sampler, data, 1)

    @all_or_nothing
    def resume(  # type: ignore[override]
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> Self:
        """Continue a fit that was interrupted or loaded from a checkpoint.

        The draws are the same as without the interruption.

        Parameters
        ----------
        X, y, sample_weight, exposure : same type and content as given to `fit`, or to the last `partial_fit`
            The data. A saved estimator contains only the rows that `partial_fit` keeps.

        Returns
        -------
        self : object
            Fitted.
        """
        self._check_resumable()
        return self._resume_on(*self._checked(X, y, sample_weight, exposure, reset=False, method="resume"))

    def _checked(self, X, y, sample_weight, exposure, reset=True, method="fit"):
        """Rows, responses and weights of the likelihood."""
        y, sample_weight, exposure = aligned(X, y=y, sample_weight=sample_weight, exposure=exposure)
        X, y = numeric_responses(self, X, y, reset)
        if reset:
            self._had_exposure = exposure is not None
        else:
            self._refuse_forgotten(method, exposure)
            self._refuse_new(method, exposure)
        X = self._checked_rows(X)
        if y.min() < 0:
            raise ValueError(f"y holds {y.min():g}; counts must not be negative.")
        weight = checked_weights(X, sample_weight)
        exposure = None if exposure is None else checked_exposure(exposure, len(y))
        return self._weighted_rows(*self._as_rows(X, y, weight, exposure), 1)

    def _refuse_forgotten(self, method, exposure):
        """Raise if no exposure is passed to ``method``, although one was passed to `fit`."""
        if exposure is None and self._had_exposure:
            more = (
                " In cross-validation and searches, enable metadata routing, which passes the exposure on to `score`: "
                "sklearn.set_config(enable_metadata_routing=True) and "
                "estimator.set_fit_request(exposure=True).set_score_request(exposure=True)."
            )
            raise ValueError(
                f"`exposure` must be passed to `{method}`, as it was to `fit`; got None. Pass exposure= with a number "
                "for each row, or exposure=1 if y counts events in one unit of exposure."
                f"{more if method == 'score' else ''}"
            )

    def _refuse_new(self, method, exposure):
        """Raise if an exposure is passed to ``method``, although none was passed to `fit`."""
        if exposure is not None and not self._had_exposure:
            raise ValueError(
                f"`exposure` must not be passed to `{method}`, since earlier rows were fitted without one. Leave it "
                "out, or start over and pass exposure=1 with those rows if each counts events in one unit of exposure."
            )

    def _warn_of_forgotten(self, method, exposure):
        """Warn if predictions are made without an exposure, although one was passed to `fit`."""
        if exposure is None and self._had_exposure:
            warn_user(
                f"`fit` was given an exposure and `{method}` was not, so predictions are for one unit of exposure: "
                "rates, not counts. Pass exposure= with a number for each row, or exposure=1 for rates without this "
                "warning."
            )

    def _set_fitted(self, chains):
        coef, near, *more = self._drawn(chains)
        self._set_draws(coef[..., 0, :], near[..., 0], **self._further_draws(*more))
        self.intercept_ = float(self._all_samples["intercept"].mean())

    def _further_draws(self):
        """Draws of the model's further parameters, by name, from what the design returns besides the coefficients."""
        return {}

    def _monitored(self, chains):
        coef, near = self._all_samples["coef"], self._near_intercepts
        found = {"log_likelihood": self._log_likelihoods(chains, coef[..., None, :], near[..., None]), "coef": coef}
        return {**found, "intercept": self._all_samples["intercept"]} if self.fit_intercept else found

    @staticmethod
    def _means(eta):
        return np.exp(np.minimum(eta, np.log(LARGEST)))  # `fit` refuses larger counts as well

    @overload
    def predict(
        self, X: MatrixLike, return_std: Literal[False] = False, *, exposure: ArrayLike | None = None
    ) -> FloatArray: ...
    @overload
    def predict(
        self, X: MatrixLike, return_std: Literal[True], *, exposure: ArrayLike | None = None
    ) -> tuple[FloatArray, FloatArray]: ...
    def predict(
        self, X: MatrixLike, return_std: bool = False, *, exposure: ArrayLike | None = None
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean of a new count, averaged over draws.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or Dask array of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of a new count too; not available for Dask arrays.
        exposure : float or array-like of shape (n_samples,), default=None
            Time, area or population in which each count will be made; positive. None: 1 for each row, with a warning if
            an exposure was passed to `fit`. Pass 1 to predict rates without the warning. For a Dask array, leave it out
            and multiply the result.

        Returns
        -------
        mean : ndarray, lazy for a Dask array, of shape (n_samples,)
            Predictions.
        std : ndarray of shape (n_samples,)
            Only with ``return_std=True``. Standard deviation of a new count, which includes both the noise and the
            uncertainty of the mean.
        """
        check_is_fitted(self, "samples_")
        self._warn_of_forgotten("predict", exposure)
        if _is_one(exposure):
            return super().predict(X, return_std)
        mean, std = self._means_and_spreads(X, exposure)
        return (mean, std) if return_std else mean

    def predict_interval(
        self,
        X: MatrixLike,
        interval: float = 0.9,
        *,
        of: Literal["observation", "mean"] = "observation",
        exposure: ArrayLike | None = None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and credible interval for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or sparse array of shape (n_samples, n_features)
            Rows.
        interval : float, default=0.9
            Posterior mass between the two ends.
        of : {"observation", "mean"}, default="observation"
            What the interval covers with that probability: a new count at the row (the posterior predictive
            distribution, noise included), or the mean of such counts.
        exposure : float or array-like of shape (n_samples,), default=None
            Time, area or population in which each count will be made; positive. None: 1 for each row, with a warning if
            an exposure was passed to `fit`.

        Returns
        -------
        mean, low, high : ndarray of shape (n_samples,)
            The interval has equal tails. The ends of an interval of counts are counts, so its mass is at least
            ``interval``.
        """
        check_is_fitted(self, "samples_")
        self._warn_of_forgotten("predict_interval", exposure)
        return self._intervals(X, interval, of, exposure)

    def _means_and_spreads(self, X, exposure=None):
        parts = [
            (means.mean(axis=1), np.sqrt(means.var(axis=1) + self._variances(means).mean(axis=1)))
            for means in self._exposed(X, exposure)
        ]
        mean, std = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, std

    def _observation_interval(self, X, tails, exposure):
        parts = [(means.mean(axis=1), *self._quantiles(means, tails)) for means in self._exposed(X, exposure)]
        mean, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, low, high

    def _log_likelihood_draws(self, X, y, exposure=None):
        self._refuse_forgotten("to_arviz", exposure)
        return super()._log_likelihood_draws(X, y, exposure)

    def _exposed(self, X, exposure):
        """Blocks of means of new counts under each draw, (rows, n_draws), at each row's exposure."""
        if _is_one(exposure):
            yield from self._blocks(X)
            return
        refuse_dask(X)
        exposure, lo = checked_exposure(*aligned(X, exposure=exposure), _num_samples(X)), 0
        for means in self._blocks(X):
            yield np.minimum(means * exposure[lo : lo + len(means), None], LARGEST)
            lo += len(means)

    def score(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> float:
        r"""Share :math:`D^2` of the Poisson deviance that the predictions explain.

        Scikit-learn's ``PoissonRegressor`` has the same score.

        Parameters
        ----------
        X : array-like, sparse matrix or sparse array of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Counts.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        exposure : float or array-like of shape (n_samples,), default=None
            Time, area or population in which each count was made; positive. Required if one was passed to `fit`;
            otherwise None is 1 for each row.

        Returns
        -------
        float
            1 at best, 0 for a constant prediction of the mean of y, and 0 if all y are equal.
        """
        check_is_fitted(self, "samples_")
        for name, given in {"X": X, "y": y, "sample_weight": sample_weight}.items():
            refuse_dask(given, name)
        y, sample_weight, exposure = aligned(X, y=y, sample_weight=sample_weight, exposure=exposure)
        check_consistent_length(X, y, sample_weight)
        y = column_or_1d(real_array("y", y))
        self._refuse_forgotten("score", exposure)
        if exposure is not None:
            exposure = checked_exposure(exposure, y.size)
            y, sample_weight = y / exposure, exposure * check_sample_weight(sample_weight, y, dtype=np.float64)
        used = slice(None) if sample_weight is None else real_array("sample_weight", sample_weight) != 0
        if y.size > 1 and np.all(y[used] == y[used][:1]):
            return 0.0
        return d2_tweedie_score(y, self._predicted_means(X), sample_weight=sample_weight, power=1)


def _is_one(exposure):
    """Whether the exposure is None or the number 1, so that predictions are for one unit."""
    return exposure is None or (np.isscalar(exposure) and exposure == 1)


def checked_exposure(exposure, n_rows):
    """The exposure of each row as float64, (n_rows,); raises unless all are positive and finite."""
    refuse_dask(exposure, "exposure")
    exposure = real_array("exposure", exposure)
    if exposure.shape not in ((), (n_rows,)):
        raise ValueError(
            f"exposure has shape {exposure.shape}; give a number for each of the {n_rows} rows, or one for all."
        )
    exposure = np.broadcast_to(exposure, n_rows)
    bad = np.flatnonzero(~(np.isfinite(exposure) & (exposure > 0)))
    if bad.size:
        raise ValueError(
            f"exposure holds {exposure[bad[0]]:g} at position {bad[0]}; it must be positive and finite. Leave out rows "
            "without exposure."
        )
    return exposure
