"""Predictions of linear regressors: means, spreads and intervals over the draws of their coefficients."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np

from ..dense.rows import LARGEST, SMALLEST
from ..utils._alignment import aligned
from ..utils._by_rows import by_rows
from ..utils._dask import refuse_dask
from ..utils._numbers import interval_ends, interval_tails, real_array
from ..utils._sklearn import check_is_fitted, check_sample_weight, validate_data
from ..utils._typing import FloatArray, MatrixLike, Table
from ._predict import INPUT, coefficient_table, predictor_blocks

_CELLS = 4_000_000  # numbers in a block of predictions


def numeric_responses(estimator, X, y, reset):
    """Checked rows, and y as float64."""
    X, y = validate_data(estimator, X, y, reset=reset, **INPUT)
    y = real_array("y", y)
    missing = np.flatnonzero(np.isnan(y))  # None among objects, which scikit-learn's check lets through
    if missing.size:
        raise ValueError(f"y holds no number at position {missing[0]}; leave out rows without a response.")
    return X, y


class RegressorDrawsMixin:
    """Predictions from all kept draws, of which ``samples_`` may hold a part.

    A subclass gives ``_means(eta)``, the means of new observations; ``_variances(means)``, their variances given the
    draw; ``_quantile(means, tail)``, that of the mixture over draws; ``_log_densities(y, means)`` of observations; and
    ``_observations(means, rng)``, new ones.
    """

    def _blocks(self, X):
        """Blocks of means of new observations under each draw, (rows, n_draws)."""
        for _, eta in predictor_blocks(self, X, _CELLS):
            yield self._means(eta)

    def _exposed(self, X, exposure):
        """The blocks of `_blocks`; a model of counts multiplies them by each row's exposure."""
        return self._blocks(X)

    @by_rows(draws=())
    def _predicted_means(self, X):
        """The prediction without its spread; a method by itself, because a lazy answer is one array."""
        return np.concatenate([means.mean(axis=1) for means in self._blocks(X)])

    @overload
    def predict(self, X: MatrixLike, return_std: Literal[False] = False) -> FloatArray: ...
    @overload
    def predict(self, X: MatrixLike, return_std: Literal[True]) -> tuple[FloatArray, FloatArray]: ...
    def predict(self, X: MatrixLike, return_std: bool = False) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean of a new observation, averaged over draws.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or Dask array of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of a new observation too. Dask arrays have means only.

        Returns
        -------
        mean : ndarray, lazy for a Dask array, of shape (n_samples,)
            Predictions.
        std : ndarray of shape (n_samples,)
            Only with ``return_std=True``: of a new observation, so it holds both the noise and the uncertainty of the
            mean.
        """
        if not return_std:
            return self._predicted_means(X)
        refuse_dask(X)
        return self._means_and_spreads(self._blocks(X))

    def _means_and_spreads(self, blocks):
        parts = []
        for means in blocks:
            noise = np.broadcast_to(self._variances(means), means.shape).mean(axis=1)
            parts.append((means.mean(axis=1), np.sqrt(means.var(axis=1) + noise)))
        mean, std = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, std

    def predict_interval(
        self, X: MatrixLike, interval: float = 0.9, *, of: Literal["observation", "mean"] = "observation"
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and credible interval for each row.

        Parameters
        ----------
        X : array-like, sparse matrix or sparse array of shape (n_samples, n_features)
            Rows.
        interval : float, default=0.9
            Posterior mass between the two ends.
        of : {"observation", "mean"}, default="observation"
            What the interval holds with that probability: a new observation at the row (the posterior predictive
            distribution, noise included), or the mean of such observations.

        Returns
        -------
        mean, low, high : ndarray of shape (n_samples,)
            The interval has equal tails. The ends of an interval of counts are counts, and hold at least its mass.

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from sk_sgmcmc import BayesianLinearRegression
        >>> X, y = make_regression(100, 3, noise=5.0, random_state=0)
        >>> model = BayesianLinearRegression(n_iter=300, random_state=0).fit(X, y)
        >>> mean, low, high = model.predict_interval(X, 0.9)
        >>> bool(80 <= ((low <= y) & (y <= high)).sum())  # of 100 observations
        True
        """
        return self._intervals(self._blocks(X), interval, of)

    def _intervals(self, blocks, interval, of):
        if of not in ("observation", "mean"):
            raise ValueError(f'of={of!r} is unknown; use "observation" or "mean".')
        tails, parts = interval_tails(interval), []
        for means in blocks:
            if of == "mean":
                ends = interval_ends(means, tails, axis=1)
            else:
                ends = [self._quantile(means, tail) for tail in tails]
            parts.append((means.mean(axis=1), *ends))
        mean, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, low, high

    def _log_likelihood_draws(self, X, y, exposure=None):
        """Log density of each row's response in each draw, (n_chains, n_kept, n_rows)."""
        if y is None:
            raise ValueError("y=None; the log likelihood is that of responses, so give y beside X.")
        _, y = numeric_responses(self, X, *aligned(X, y=y), reset=False)
        parts, lo = [], 0
        for means in self._exposed(X, exposure):
            parts.append(self._log_densities(y[lo : lo + len(means), None], means))
            lo += len(means)
        return self._by_chain(parts)

    def _predictive_draws(self, X, rng, exposure=None):
        """Name, and a new observation at each row in each draw, (n_chains, n_kept, n_rows)."""
        return "y", self._by_chain([self._observations(means, rng) for means in self._exposed(X, exposure)])

    def _by_chain(self, parts):
        """Blocks (rows, n_draws) as (n_chains, n_kept, n_rows)."""
        return np.concatenate(parts).T.reshape(*self._all_samples["coef"].shape[:2], -1)

    def coef_table(self, interval: float = 0.9) -> Table:
        """Coefficients with their uncertainty.

        Parameters
        ----------
        interval : float, default=0.9
            Posterior mass between ``low`` and ``high``.

        Returns
        -------
        pandas.DataFrame, or Bunch of columns if pandas is not installed
            One row for each feature, the intercept first: ``feature``, ``mean``, ``sd``, ``low``, ``high``,
            ``p_positive`` (the probability that the coefficient is positive) and ``ess`` (the effective number of
            draws, if at least four were kept).

        Examples
        --------
        >>> from sklearn.datasets import make_regression
        >>> from sk_sgmcmc import BayesianLinearRegression
        >>> X, y = make_regression(100, 3, noise=5.0, random_state=0)
        >>> model = BayesianLinearRegression(n_iter=300, random_state=0).fit(X, y)
        >>> len(model.coef_table()["mean"])
        4
        """
        check_is_fitted(self, "samples_")
        names = [*getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])]
        draws = self._all_samples["coef"]
        if self.fit_intercept:
            names = ["intercept", *names]
            draws = np.concatenate([self._all_samples["intercept"][..., None], draws], axis=-1)
        return coefficient_table({"feature": np.asarray(names, dtype=object)}, draws, interval)


def checked_weights(X, sample_weight):
    """Weights of rows; raises if one is negative, or the largest is too large or too small to compute with."""
    weight = check_sample_weight(sample_weight, X, dtype=np.float64).copy()
    if weight.min() < 0:
        raise ValueError(f"sample_weight must not be negative; its smallest entry is {weight.min():g}.")
    refuse_sizes("sample_weight", weight.max())
    return weight


def refuse_sizes(name, largest):
    """Raise if the largest size of numbers, unless they are all 0, is too large or too small to square in float64."""
    if largest > LARGEST:
        raise ValueError(f"{name} holds {largest:.6g}, too large to compute with in float64. Divide it by a constant.")
    if 0 < largest < SMALLEST:
        raise ValueError(
            f"{name} holds no number beyond {largest:.6g}, too small to compute with in float64. Multiply it by a "
            "constant."
        )
