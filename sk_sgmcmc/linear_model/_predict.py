"""Predictions of linear classifiers and regressors, averaged over the draws of their coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, special
from sklearn.utils import Bunch

from ..dense.rows import LARGEST, SMALLEST, less_offsets, refuse_extremes
from ..metrics import effective_sample_size
from ..utils._bit_stable import bit_stable_product, one_blas_thread
from ..utils._containers import refuse_dask
from ..utils._dask import lazy_for_dask
from ..utils._numbers import interval_ends, interval_tails, real_array
from ..utils._sklearn import check_is_fitted, check_sample_weight, validate_data
from ..utils._tables import aligned, as_table, checked_names
from ..utils._typing import AnyArray, FloatArray, MatrixLike, Table
from ._quantiles import row_interval_ends

# A fixed memory layout, so that results are bitwise the same for every layout of the input.
INPUT = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}
_CELLS = 1_000_000  # numbers in a block of predictions
_NARROW = 64  # columns up to which one thread multiplies


def coefficient_table(columns, draws, interval):
    """A table of the columns that name coefficients, and summaries of draws (n_chains, n_kept, n_coefficients)."""
    flat = draws.reshape(-1, draws.shape[-1])
    low, high = interval_ends(flat, interval_tails(interval))
    columns |= {
        "mean": flat.mean(axis=0),
        "sd": flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(flat.shape[1], np.nan),
        "low": low,
        "high": high,
        "p_positive": (flat > 0).mean(axis=0),
    }
    if draws.shape[1] >= 4:
        columns["ess"] = effective_sample_size(draws)
    return as_table(columns)


def _column_names(estimator, feature_names):
    """``feature_names``, or else the names of the columns in `fit`, as an array of objects."""
    known = getattr(estimator, "feature_names_in_", [f"x{j}" for j in range(estimator.n_features_in_)])
    return checked_names(feature_names, estimator.n_features_in_, np.asarray(known, dtype=object))


def predictor_blocks(estimator, X, n_cells):
    """Linear predictors of rows under all draws, in blocks of about ``n_cells`` numbers.

    Yields a slice of rows and their predictors, (n, n_draws), or (n, n_draws * n_classes) for several classes.
    """
    X = near_rows(estimator, X)
    coef = estimator._all_samples["coef"]
    flat, intercept = coef.reshape(-1, coef.shape[-1]), estimator._near_intercepts.reshape(-1)
    step = max(1, n_cells // max(1, flat.shape[0]))
    # Threads of BLAS wait for each other longer than the product of a narrow block takes.
    threads = one_blas_thread if X.shape[1] <= _NARROW else nullcontext
    for lo in range(0, X.shape[0], step):
        rows = slice(lo, lo + step)
        with threads():
            eta = X[rows] @ flat.T if sparse.issparse(X) else bit_stable_product(X[rows], flat.T)
        eta += intercept
        yield rows, eta


def near_rows(estimator, X):
    """Checked rows less the estimator's offsets; dense or sparse."""
    check_is_fitted(estimator, "samples_")
    X = validate_data(estimator, X, reset=False, **INPUT)
    refuse_extremes(X, getattr(estimator, "feature_names_in_", None))
    return less_offsets(X, estimator._offsets)


def _expit(eta):
    """The logistic function, written over ``eta``; several times as fast as SciPy's."""
    with np.errstate(over="ignore"):
        np.exp(np.negative(eta, out=eta), out=eta)
    eta += 1.0
    return np.reciprocal(eta, out=eta)


def _mean_and_ends(draws, tails):
    """Means and interval ends over the last of three axes, (n, m) each."""
    n, m, _ = draws.shape
    rows = draws.reshape(n * m, -1)
    return tuple(each.reshape(n, m) for each in (rows.mean(axis=1), *row_interval_ends(rows, tails)))


class DrawsPredictMixin:
    """Predictions of a classifier from all its draws; ``samples_`` may contain only some of them."""

    def _probabilities(self, X):
        """Yield a slice of rows and their probabilities under all draws, (n, n_draws, n_classes), block by block."""
        for rows, eta in predictor_blocks(self, X, _CELLS):
            if len(self.classes_) == 2:
                p = _expit(eta)
                p = np.stack([1.0 - p, p], axis=-1)
            else:
                p = special.softmax(eta.reshape(len(eta), -1, len(self.classes_)), axis=-1)
            yield rows, p

    def _log_probabilities(self, X):
        """As `_probabilities`, but logarithms, which are finite where probabilities round to 0."""
        for rows, eta in predictor_blocks(self, X, _CELLS):
            if len(self.classes_) == 2:
                yield rows, np.stack([special.log_expit(-eta), special.log_expit(eta)], axis=-1)
            else:
                yield rows, special.log_softmax(eta.reshape(len(eta), -1, len(self.classes_)), axis=-1)

    @lazy_for_dask(lambda self: len(self.classes_), draws=())
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Probabilities of the classes, averaged over draws.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or Dask array of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray, lazy for a Dask array, of shape (n_samples, n_classes)
            Rows sum to 1.
        """
        check_is_fitted(self, "samples_")
        if len(self.classes_) == 2:
            second = np.concatenate([_expit(eta).mean(axis=1) for _, eta in predictor_blocks(self, X, _CELLS)])
            return np.column_stack([1.0 - second, second])
        return np.concatenate([p.mean(axis=1) for _, p in self._probabilities(X)])

    @lazy_for_dask(lambda self: len(self.classes_), draws=())
    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Logarithms of `predict_proba`, which are finite also where probabilities round to 0.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or Dask array of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray, lazy for a Dask array, of shape (n_samples, n_classes)
        """
        logs = [special.logsumexp(each, axis=1) - np.log(each.shape[1]) for _, each in self._log_probabilities(X)]
        return np.minimum(np.concatenate(logs), 0.0)

    @lazy_for_dask(lambda self: None if len(self.classes_) == 2 else len(self.classes_), draws=())
    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Log odds of the averaged probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or Dask array of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray, lazy for a Dask array, of shape (n_samples,) or (n_samples, n_classes)
            For two classes, the log odds of the second class, which are positive where `predict` returns it. For more
            classes, the logarithms of their probabilities.
        """
        logs = self.predict_log_proba(X)
        return logs if logs.shape[1] > 2 else logs[:, 1] - logs[:, 0]

    @lazy_for_dask(dtype=lambda self: self.classes_.dtype, draws=())
    def predict(self, X: MatrixLike) -> AnyArray:
        """The most probable class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or Dask array of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray, lazy for a Dask array, of shape (n_samples,)
            Labels.
        """
        most = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most]

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy of the predicted labels.

        Parameters
        ----------
        X : array-like, sparse matrix or sparse array of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        float
            Share of rows whose label is predicted.
        """
        for name, given in {"X": X, "y": y, "sample_weight": sample_weight}.items():
            refuse_dask(given, name)
        y, sample_weight = aligned(X, y=y, sample_weight=sample_weight)
        return super().score(X, y, sample_weight)  # type: ignore[misc]

    def predict_interval(self, X: MatrixLike, interval: float = 0.9) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and credible interval of the probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix or sparse array of shape (n_samples, n_features)
            Rows.
        interval : float, default=0.9
            Posterior mass between the two ends.

        Returns
        -------
        mean, low, high : ndarray of shape (n_samples, n_classes)
            The interval has equal tails.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from sk_sgmcmc import BayesianLogisticRegression
        >>> X, y = make_classification(100, 4, random_state=0)
        >>> model = BayesianLogisticRegression(random_state=0).fit(X, y)
        >>> mean, low, high = model.predict_interval(X)
        >>> mean.shape, bool(((low <= mean) & (mean <= high)).all())
        ((100, 2), True)
        """
        check_is_fitted(self, "samples_")
        tails = interval_tails(interval)
        parts = [_mean_and_ends(p, tails) for p in self._class_probabilities(X)]
        mean, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
        if len(self.classes_) == 2:
            mean, low, high = (np.hstack([1.0 - other, own]) for own, other in ((mean, mean), (low, high), (high, low)))
        return mean, low, high

    def _class_probabilities(self, X):
        """Yield probabilities of the classes, or of the second of two, (n, n_classes or 1, n_draws), by blocks."""
        if len(self.classes_) == 2:
            for _, eta in predictor_blocks(self, X, _CELLS):
                yield _expit(eta)[:, None]
        else:
            for _, p in self._probabilities(X):
                yield p.transpose(0, 2, 1)

    def _log_likelihood_draws(self, X, y):
        """Log probability of each row's label under each draw, (n_chains, n_kept, n_rows)."""
        if y is None:
            raise ValueError("y=None; the log likelihood is that of labels, so give y beside X.")
        y = np.asarray(y)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y holds {unknown[:5].tolist()}, which are not among the classes {self.classes_.tolist()}."
            )
        label = np.searchsorted(self.classes_, y)
        parts = [logs[np.arange(len(logs)), :, label[rows]] for rows, logs in self._log_probabilities(X)]
        return np.concatenate(parts).T.reshape(*self._all_samples["coef"].shape[:2], -1)

    def _predictive_draws(self, X, rng):
        """The name "y", and a simulated label of each row under each draw, (n_chains, n_kept, n_rows)."""
        parts = []
        for _, p in self._probabilities(X):
            below = np.cumsum(p, axis=2)[..., :-1]
            parts.append((rng.random((*p.shape[:2], 1)) > below).sum(axis=2))
        labels = self.classes_[np.concatenate(parts)]
        return "y", labels.T.reshape(*self._all_samples["coef"].shape[:2], -1)

    def predict_uncertainty(self, X: MatrixLike) -> Bunch:
        r"""Predictive uncertainty, split into an aleatoric and an epistemic part.

        The total is the entropy of the averaged probabilities. Its aleatoric part, which further data would not remove,
        is the average entropy of the draws. The rest, the epistemic part, is the mutual information of label and
        coefficients.

        Parameters
        ----------
        X : array-like, sparse matrix or sparse array of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        Bunch of ndarray of shape (n_samples,)
            ``total``, ``aleatoric`` and ``epistemic``, in nats.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from sk_sgmcmc import BayesianLogisticRegression
        >>> X, y = make_classification(100, 4, random_state=0)
        >>> model = BayesianLogisticRegression(random_state=0).fit(X, y)
        >>> found = model.predict_uncertainty(X)
        >>> sorted(found), found.total.shape
        (['aleatoric', 'epistemic', 'total'], (100,))
        """
        total, noise = [], []
        for _, p in self._probabilities(X):
            total.append(special.entr(p.mean(axis=1)).sum(axis=1))
            noise.append(special.entr(p).sum(axis=2).mean(axis=1))
        total, noise = np.concatenate(total), np.concatenate(noise)
        return Bunch(total=total, aleatoric=noise, epistemic=np.maximum(total - noise, 0.0))

    def coef_table(self, interval: float = 0.9, *, feature_names: Sequence[str] | AnyArray | None = None) -> Table:
        """Coefficients with their uncertainty.

        Parameters
        ----------
        interval : float, default=0.9
            Posterior mass between ``low`` and ``high``.
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the columns of X, without the intercept. None: the names of the data frame passed to `fit`, or
            "x0", "x1" and so on.

        Returns
        -------
        pandas.DataFrame, or Bunch of columns if pandas is not installed
            One row for each class and feature, the intercept first: ``class``, ``feature``, ``mean``, ``sd``, ``low``,
            ``high``, ``p_positive`` (the probability that the coefficient is positive) and ``ess`` (the effective
            sample size, with at least four draws per chain).

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from sk_sgmcmc import BayesianLogisticRegression
        >>> X, y = make_classification(100, 4, random_state=0)
        >>> model = BayesianLogisticRegression(random_state=0).fit(X, y)
        >>> table = model.coef_table()
        >>> len(table["mean"]), bool((table["low"] < table["high"]).all())
        (5, True)
        """
        check_is_fitted(self, "samples_")
        names = _column_names(self, feature_names)
        draws = np.concatenate([self._all_samples["intercept"][..., None], self._all_samples["coef"]], axis=-1)
        labels = self.classes_[1:] if draws.shape[2] == 1 else self.classes_
        if not self.fit_intercept:
            draws = draws[..., 1:]
        else:
            names = ["intercept", *names]
        columns = {
            "class": np.repeat(labels, len(names)),
            "feature": np.tile(np.asarray(names, dtype=object), len(labels)),
        }
        return coefficient_table(columns, draws.reshape(*draws.shape[:2], -1), interval)


def numeric_responses(estimator, X, y, reset):
    """Checked rows, and y as float64."""
    X, y = validate_data(estimator, X, y, reset=reset, **INPUT)
    y = real_array("y", y)
    missing = np.flatnonzero(np.isnan(y))  # None in an array of objects, which scikit-learn's check accepts
    if missing.size:
        raise ValueError(f"y holds no number at position {missing[0]}; leave out rows without a response.")
    return X, y


class RegressorDrawsMixin:
    """Predictions of a regressor from all its draws; ``samples_`` may contain only some of them.

    A subclass implements these methods. Means are (n_rows, n_draws):

    - ``_means(eta)``: means of new observations, given their linear predictors.
    - ``_means_and_spreads(X)``: means and standard deviations of new observations, (n_rows,).
    - ``_observation_interval(X, tails, exposure)``: their means and two quantiles, (n_rows,).
    - ``_log_densities(y, means)``: log densities of observations.
    - ``_observations(means, rng)``: simulated observations.
    """

    def _blocks(self, X):
        """Yield means of new observations under each draw, (n, n_draws), block by block of rows."""
        for _, eta in predictor_blocks(self, X, _CELLS):
            yield self._means(eta)

    def _exposed(self, X, exposure):
        """The blocks of `_blocks`; overridden by a model of counts, which multiplies them by the exposure."""
        return self._blocks(X)

    @lazy_for_dask(draws=())
    def _predicted_means(self, X):
        """Predictions without their standard deviation: a separate method, since a lazy result is a single array."""
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
            Whether to return the standard deviation of a new observation too; not available for Dask arrays.

        Returns
        -------
        mean : ndarray, lazy for a Dask array, of shape (n_samples,)
            Predictions.
        std : ndarray of shape (n_samples,)
            Only with ``return_std=True``. Standard deviation of a new observation, which includes both the noise and
            the uncertainty of the mean.
        """
        if not return_std:
            return self._predicted_means(X)
        refuse_dask(X)
        return self._means_and_spreads(X)

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
            What the interval covers with that probability: a new observation at the row (the posterior predictive
            distribution, noise included), or the mean of such observations.

        Returns
        -------
        mean, low, high : ndarray of shape (n_samples,)
            The interval has equal tails. The ends of an interval of counts are counts, so its mass is at least
            ``interval``.

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
        return self._intervals(X, interval, of)

    def _intervals(self, X, interval, of, exposure=None):
        if of not in ("observation", "mean"):
            raise ValueError(f'of={of!r} is unknown; use "observation" or "mean".')
        tails = interval_tails(interval)
        if of == "observation":
            return self._observation_interval(X, tails, exposure)
        parts = [(means.mean(axis=1), *row_interval_ends(means, tails)) for means in self._exposed(X, exposure)]
        mean, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
        return mean, low, high

    def _log_likelihood_draws(self, X, y, exposure=None):
        """Log density of each row's response under each draw, (n_chains, n_kept, n_rows)."""
        if y is None:
            raise ValueError("y=None; the log likelihood is that of responses, so give y beside X.")
        _, y = numeric_responses(self, X, *aligned(X, y=y), reset=False)
        parts, lo = [], 0
        for means in self._exposed(X, exposure):
            parts.append(self._log_densities(y[lo : lo + len(means), None], means))
            lo += len(means)
        return self._by_chain(parts)

    def _predictive_draws(self, X, rng, exposure=None):
        """The name "y", and a simulated observation of each row under each draw, (n_chains, n_kept, n_rows)."""
        return "y", self._by_chain([self._observations(means, rng) for means in self._exposed(X, exposure)])

    def _by_chain(self, parts):
        """Concatenate blocks (n, n_draws) and reshape them to (n_chains, n_kept, n_rows)."""
        return np.concatenate(parts).T.reshape(*self._all_samples["coef"].shape[:2], -1)

    def coef_table(self, interval: float = 0.9, *, feature_names: Sequence[str] | AnyArray | None = None) -> Table:
        """Coefficients with their uncertainty.

        Parameters
        ----------
        interval : float, default=0.9
            Posterior mass between ``low`` and ``high``.
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the columns of X, without the intercept. None: the names of the data frame passed to `fit`, or
            "x0", "x1" and so on.

        Returns
        -------
        pandas.DataFrame, or Bunch of columns if pandas is not installed
            One row for each feature, the intercept first: ``feature``, ``mean``, ``sd``, ``low``, ``high``,
            ``p_positive`` (the probability that the coefficient is positive) and ``ess`` (the effective sample size,
            with at least four draws per chain).

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
        names = _column_names(self, feature_names)
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
    """Raise if ``largest``, the largest absolute value of an array, is too large or too small to square in float64."""
    if largest > LARGEST:
        raise ValueError(f"{name} holds {largest:.6g}, too large to compute with in float64. Divide it by a constant.")
    if 0 < largest < SMALLEST:
        raise ValueError(
            f"{name} holds no number beyond {largest:.6g}, too small to compute with in float64. Multiply it by a "
            "constant."
        )
