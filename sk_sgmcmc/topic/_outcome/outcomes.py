"""Outcomes of documents: their likelihood given predictors, and draws of its parameters."""

from typing import NamedTuple

import numpy as np
from scipy import linalg

from ...kernels.math import polya_gamma
from ...utils._bit_stable import one_blas_thread

# The noise's variance has the density 1 / variance, and one more residual of this size in standard deviations of y, so
# that it stays above 0 if topics explain all outcomes.
_LEAST_RESIDUAL = 1e-3


class Outcomes(NamedTuple):
    """The outcomes of documents and their covariates, in standard units.

    Parameters
    ----------
    response : ndarray of shape (n_docs,)
        Outcomes; 0 where they are not known.
    is_observed : ndarray of bool, shape (n_docs,)
    covariates : ndarray of shape (n_docs, n_covariates)
        C-contiguous.
    """

    response: np.ndarray
    is_observed: np.ndarray
    covariates: np.ndarray

    @classmethod
    def of(cls, shard):
        """The outcomes of a `Shard`, whose metadata are as from `described`."""
        rows = np.ascontiguousarray(shard.given[shard.group])
        return cls(rows[:, 0].copy(), rows[:, 1] > 0.5, np.ascontiguousarray(rows[:, 2:]))

    @staticmethod
    def described(response, covariates):
        """Outcomes as metadata of documents, (n_docs, 2 + n_covariates); NaN is an outcome that is not known."""
        is_observed = np.isfinite(response)
        return np.column_stack([np.where(is_observed, response, 0.0), is_observed, covariates])


class GaussianOutcome:
    """Outcomes with normal noise: y ~ N(b' theta + c' covariates, variance).

    Parameters
    ----------
    n_topics, n_covariates : int
    prior_scale : float
        Standard deviation of the normal prior of each coefficient, whose mean is 0.

    Attributes
    ----------
    coef : ndarray of shape (n_topics,)
    covariate_coef : ndarray of shape (n_covariates,)
    variance : float
        Of the noise.
    """

    is_binary = False

    def __init__(self, n_topics, n_covariates, prior_scale):
        self.prior_precision = float(prior_scale) ** -2.0
        self.coef, self.covariate_coef = np.zeros(n_topics), np.zeros(n_covariates)
        self.variance = 1.0

    def permute(self, order):
        """Reorder the topics."""
        self.coef = self.coef[order]

    def offset(self, outcomes):
        """The part of the predictor that covariates contribute, (n_docs,)."""
        if not self.covariate_coef.size:
            return np.zeros(outcomes.response.size)
        with one_blas_thread():
            return outcomes.covariates @ self.covariate_coef

    def update(self, theta, outcomes, rng):
        """Draw the parameters given the documents' proportions, (n_docs, n_topics)."""
        seen = outcomes.is_observed
        R, y = np.hstack([theta, outcomes.covariates])[seen], outcomes.response[seen]
        with one_blas_thread():
            self._draw(R, y, rng)

    def _draw(self, R, y, rng):
        rest = y - R @ np.concatenate([self.coef, self.covariate_coef])
        self.variance = (rest @ rest + _LEAST_RESIDUAL**2) / rng.chisquare(y.size + 1.0)
        self._draw_coef((R.T @ R) / self.variance, (R.T @ y) / self.variance, rng)

    def _draw_coef(self, precision, linear, rng):
        """Draw all coefficients from a normal distribution, given the precision matrix of the likelihood."""
        precision[np.diag_indices(len(precision))] += self.prior_precision
        root = linalg.cholesky(precision, lower=True)
        mean = linalg.cho_solve((root, True), linear)
        drawn = mean + linalg.solve_triangular(root, rng.standard_normal(mean.size), lower=True, trans="T")
        self.coef, self.covariate_coef = np.split(drawn, [self.coef.size])

    def draw(self):
        """The parameters as part of a draw: a dict of arrays."""
        return {
            "coef": self.coef.copy(),
            "covariate_coef": self.covariate_coef.copy(),
            "noise_scale": np.sqrt(self.variance),
        }


class BinaryOutcome(GaussianOutcome):
    """Classes 0 and 1: the probability of class 1 is the logistic function of b' theta + c' covariates.

    Parameters and attributes are as for `GaussianOutcome`, except that there is no noise. Coefficients are drawn given
    a Polya-Gamma variable for each document.
    """

    is_binary = True

    def _draw(self, R, y, rng):
        weights = np.empty(y.size)
        polya_gamma.polya_gamma(R @ np.concatenate([self.coef, self.covariate_coef]), rng, weights)
        self._draw_coef(R.T @ (R * weights[:, None]), R.T @ (y - 0.5), rng)

    def draw(self):
        return {"coef": self.coef.copy(), "covariate_coef": self.covariate_coef.copy()}
