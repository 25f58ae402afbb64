"""Predictions of linear regressors: means, spreads and intervals over the draws of their coefficients."""

import numpy as np
from scipy import sparse

from ..dense.rows import less_offsets, refuse_extremes
from ..metrics import effective_sample_size
from ..utils._dask import by_rows, refuse_dask
from ..utils._numbers import interval_tails, real_array
from ..utils._rowwise import rowwise_product
from ..utils._sklearn import check_is_fitted, check_sample_weight, validate_data
from ..utils._tables import as_table
from ._predict import INPUT

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
    draw; and ``_quantile(means, tail)``, that of the mixture over draws.
    """

    def _blocks(self, X):
        """Blocks of means of new observations under each draw, (rows, n_draws)."""
        check_is_fitted(self, "samples_")
        X = validate_data(self, X, reset=False, **INPUT)
        refuse_extremes(X, getattr(self, "feature_names_in_", None))
        coef = self._all_samples["coef"]
        flat, intercept = coef.reshape(-1, coef.shape[-1]), self._near_intercepts.reshape(-1)
        step = max(1, _CELLS // max(1, flat.shape[0]))
        for lo in range(0, X.shape[0], step):
            near = less_offsets(X[lo : lo + step], self._offsets)
            eta = near @ flat.T if sparse.issparse(near) else rowwise_product(near, flat.T)
            yield self._means(eta + intercept)

    @by_rows(draws=())
    def _predicted_means(self, X):
        """The prediction without its spread; a method by itself, because a lazy answer is one array."""
        return np.concatenate([means.mean(axis=1) for means in self._blocks(X)])

    def predict(self, X, return_std=False):
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
        parts = []
        for means in self._blocks(X):
            noise = np.broadcast_to(self._variances(means), means.shape).mean(axis=1)
            parts.append((means.mean(axis=1), np.sqrt(means.var(axis=1) + noise)))
        mean, std = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, std

    def predict_interval(self, X, interval=0.9, *, of="observation"):
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
        """
        if of not in ("observation", "mean"):
            raise ValueError(f'of={of!r} is unknown; use "observation" or "mean".')
        tails = interval_tails(interval)
        parts = []
        for means in self._blocks(X):
            ends = np.quantile(means, tails, axis=1) if of == "mean" else [self._quantile(means, t) for t in tails]
            parts.append((means.mean(axis=1), *ends))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def coef_table(self, interval=0.9):
        """Coefficients with their uncertainty.

        Parameters
        ----------
        interval : float, default=0.9
            Posterior mass between ``low`` and ``high``.

        Returns
        -------
        pandas.DataFrame, or Bunch of columns if pandas is not installed
            One row for each feature, the intercept first: mean, sd, low, high, the probability of being positive, and
            the effective number of draws.
        """
        check_is_fitted(self, "samples_")
        names = [*getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])]
        draws = self._all_samples["coef"]
        if self.fit_intercept:
            names = ["intercept", *names]
            draws = np.concatenate([self._all_samples["intercept"][..., None], draws], axis=-1)
        flat = draws.reshape(-1, draws.shape[-1])
        low, high = np.quantile(flat, interval_tails(interval), axis=0)
        columns = {
            "feature": np.asarray(names, dtype=object),
            "mean": flat.mean(axis=0),
            "sd": flat.std(axis=0),
            "low": low,
            "high": high,
            "p_positive": (flat > 0).mean(axis=0),
        }
        if draws.shape[1] >= 4:
            columns["ess"] = effective_sample_size(draws)
        return as_table(columns)

    def _set_samples(self, coef, near, **more):
        """Draws of coefficients (n_chains, n_kept, n_features) and of the intercepts of columns less offsets."""
        self._near_intercepts = near
        far = np.flatnonzero(self._offsets)
        intercept = near - coef[..., far].astype(np.float64) @ self._offsets[far]
        self._all_samples = {"coef": coef, "intercept": intercept, **more}
        self.samples_ = self._shown(self._all_samples)
        self.coef_, self.intercept_ = coef.mean(axis=(0, 1)), float(intercept.mean())


def positive_weights(X, sample_weight, name="sample_weight"):
    """Weights of rows, checked; at least one is positive."""
    weight = check_sample_weight(sample_weight, X, dtype=np.float64).copy()
    if weight.min() < 0:
        raise ValueError(f"{name} must not be negative; its smallest entry is {weight.min():g}.")
    return weight
