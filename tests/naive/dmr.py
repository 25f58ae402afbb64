"""Dirichlet-multinomial regression in plain NumPy, written from the equations."""

import numpy as np
from scipy.special import digamma, gammaln


def log_likelihood(counts, alpha):
    """log p of topic counts (n_docs, n_topics) under Dirichlet parameters of the same shape."""
    whole, length = alpha.sum(axis=1), counts.sum(axis=1)
    return np.sum(gammaln(whole) - gammaln(whole + length)) + np.sum(gammaln(alpha + counts) - gammaln(alpha))


def gradient(counts, alpha):
    """Its derivative by log(alpha), (n_docs, n_topics)."""
    whole, length = alpha.sum(axis=1, keepdims=True), counts.sum(axis=1, keepdims=True)
    return alpha * (digamma(whole) - digamma(whole + length) + digamma(alpha + counts) - digamma(alpha))


def log_posterior(coef, design, counts, mean, scale):
    """Of coefficients (n_topics, width) under independent normals, up to a constant."""
    return log_likelihood(counts, np.exp(design @ coef.T)) - 0.5 * np.sum(((coef - mean) / scale) ** 2)
