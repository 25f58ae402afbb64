"""Least squares of an outcome on the posterior means of documents' proportions."""

import numpy as np
from scipy import special

from ...utils._tables import as_table
from ...utils._warnings import warn_user

# Median number of words per document from which on the intervals covered in experiments with planted topics.
_ENOUGH_WORDS = 25


def robust_least_squares(R, y):
    """Coefficients, and their covariance that allows for unequal variances of the residuals (HC1)."""
    inverse = np.linalg.pinv(R.T @ R)
    coef = inverse @ (R.T @ y)
    rest = y - R @ coef
    scores = R * rest[:, None]
    return coef, inverse @ (scores.T @ scores) @ inverse * (y.size / max(1, y.size - R.shape[1]))


def plug_in_table(theta, y, covariates, names, tails, reference):
    """Coefficients of topics, as differences from a reference, and of covariates, with intervals.

    Parameters
    ----------
    theta : ndarray of shape (n_docs, n_topics)
        Posterior means of the proportions.
    y : ndarray of shape (n_docs,)
    covariates : ndarray of shape (n_docs, n_covariates)
    names : tuple of (names of topics, names of covariates)
    tails : tuple of float
        Probabilities of the ends of intervals.
    reference : int or None
        A topic; None: the mean of the coefficients, weighted by the mean proportions.
    """
    n_topics = theta.shape[1]
    centred = covariates - covariates.mean(axis=0)  # which changes no difference between topics
    coef, covariance = robust_least_squares(np.hstack([theta, centred]), y)
    contrasts = np.eye(coef.size)
    contrasts[:n_topics, :n_topics] -= theta.mean(axis=0) if reference is None else np.eye(n_topics)[reference]
    mean = contrasts @ coef
    error = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", contrasts, covariance, contrasts), 0.0))
    low, high = (mean + error * special.ndtri(tail) for tail in tails)
    topics, others = names
    return as_table({
        "term": np.array(["topic"] * n_topics + ["covariate"] * len(others)),
        "topic": np.array([*range(n_topics), *[-1] * len(others)]),
        "name": np.array([*topics, *others], dtype=object),
        "mean": mean,
        "low": low,
        "high": high,
    })  # fmt: skip


def warn_of_short_documents(lengths):
    """Warn if documents are so short that intervals, which ignore the uncertainty of topics, may be too narrow."""
    median = float(np.median(lengths)) if lengths.size else 0.0
    if median < _ENOUGH_WORDS:
        warn_user(
            f"regress ignores the uncertainty of topics, which was harmless in experiments from {_ENOUGH_WORDS} words "
            f"per document on; these documents have {median:g} in the median. TopicRegressor includes the uncertainty."
        )
