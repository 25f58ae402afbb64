"""A mixture of von Mises-Fisher laws after fitting: components and densities of rows."""

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ...directions import has_content
from ...utils import as_precise_as
from .chain import log_densities

_N_SCORED = 100  # at most this many kept draws are averaged


class FittedMixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of a fitted `VonMisesFisherMixture`."""

    def _each_draw(self, rows):
        """Log of weight times density of rows under each component, draw after draw."""
        flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in self.samples_.items()}
        n = len(flat["means"])
        for i in np.unique(np.linspace(0, n - 1, min(n, _N_SCORED)).round().astype(int)):
            means = flat["means"][i].astype(np.float64)
            means /= np.linalg.norm(means, axis=1, keepdims=True)
            yield log_densities(rows, means, np.log(flat["weights"][i]), flat["kappas"][i])

    def _responsibilities(self, rows):
        total, n = 0.0, 0
        for log_density in self._each_draw(rows):
            total = total + np.exp(log_density - logsumexp(log_density, axis=1, keepdims=True))
            n += 1
        return total / n

    def transform(self, X):
        """Probability that each row belongs to each component, averaged over draws.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)

        Returns
        -------
        shares : ndarray of shape (n_samples, n_components)
            Rows sum to 1. An all-zero row has the mean weights.
        """
        check_is_fitted(self)
        return as_precise_as(X, self._responsibilities(self._check_X(X, reset=False)))

    def predict(self, X):
        """The most probable component of each row.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            An all-zero row gets the component of the largest mean weight.
        """
        check_is_fitted(self)
        return self._responsibilities(self._check_X(X, reset=False)).argmax(axis=1)

    def score_samples(self, X):
        """Log predictive density of each row: the log of the density averaged over draws.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            With respect to the surface of the sphere; 0 for an all-zero row, which is not an observation.
        """
        check_is_fitted(self)
        rows = self._check_X(X, reset=False)
        return np.where(has_content(rows), self._log_density(rows), 0.0)  # exactly 0, without rounding error

    def _log_density(self, rows):
        each = [logsumexp(log_density, axis=1) for log_density in self._each_draw(rows)]
        return logsumexp(each, axis=0) - np.log(len(each))

    def score(self, X, y=None):
        """Mean of `score_samples` over rows that are not all-zero; higher is better.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        return float(np.mean(self._log_density(self._scored_rows(X))))
