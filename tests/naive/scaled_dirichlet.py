"""Scaled Dirichlet distributions in plain NumPy, written from the equations; rows are documents."""

import numpy as np
from scipy import integrate
from scipy.special import gammaln


def log_density_of_log_auxiliary(t, counts, shape, rate):
    """Log density of t = log u given the counts of a document, up to a constant."""
    return counts.sum() * t - np.sum((shape + counts) * np.log(rate + np.exp(t)))


def moments_of_log_auxiliary(counts, shape, rate):
    """Mean and variance of t = log u given counts."""
    t = np.linspace(-60.0, 60.0, 400_001)
    log_p = counts.sum() * t - np.sum((shape + counts)[:, None] * np.log(rate[:, None] + np.exp(t)), axis=0)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ t
    return mean, p @ (t - mean) ** 2


def mean_given_counts(counts, shape, rate):
    """E[G / sum G] given counts, G_k ~ Gamma(shape_k, rate_k)."""

    def integrand(t, k):
        u = np.exp(t)
        at = log_density_of_log_auxiliary(t, counts, shape, rate) - peak
        return (shape[k] + counts[k]) * u / (rate[k] + u) * np.exp(at)

    peak = max(log_density_of_log_auxiliary(t, counts, shape, rate) for t in np.linspace(-20.0, 20.0, 81))
    values = [integrate.quad(integrand, -200.0, 600.0, args=(k,), points=range(-30, 31, 3), limit=1000)[0]
              for k in range(shape.size)]  # fmt: skip
    return np.array(values) / np.sum(values)


def log_evidence(counts, shape, rate):
    """Log probability of a document's assignments with these counts, the proportions integrated out."""
    n = counts.sum()
    if n == 0:
        return 0.0
    parts = np.sum(gammaln(shape + counts) - gammaln(shape) + shape * np.log(rate)) - gammaln(n)
    total = integrate.quad(
        lambda t: np.exp(log_density_of_log_auxiliary(t, counts, shape, rate)), -100.0, 100.0,
        points=range(-20, 21, 2), limit=1000,
    )  # fmt: skip
    return parts + np.log(total[0])


def log_likelihood(counts, auxiliary, shape, scale):
    """Log likelihood of each topic's counts given the auxiliary variables, (n_topics,)."""
    x = auxiliary[:, None] * scale
    each = gammaln(shape + counts) - gammaln(shape) + counts * np.log(scale) - (shape + counts) * np.log1p(x)
    return each.sum(axis=0)
