"""Dirichlet-process mixtures of categorical rows the slow way: dense rows, one law a column or one for all."""

import numpy as np
from scipy.special import gammaln


def log_marginal(rows, likelihood, a, n_levels=None):
    """log probability of dense rows that share a component, the component integrated out; NaN is missing."""
    rows = np.atleast_2d(rows)
    if likelihood == "multinomial":
        tables = [rows.sum(axis=0)]
    else:
        n_levels = 2 if likelihood == "bernoulli" else n_levels
        tables = [np.array([(column == level).sum() for level in range(n_levels)]) for column in rows.T]
    return sum(
        (gammaln(a + n) - gammaln(a)).sum() - gammaln(a * n.size + n.sum()) + gammaln(a * n.size) for n in tables
    )


def partitions(n):
    """All partitions of n rows, as labels in order of appearance."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*labels, k] for labels in found for k in range(max(labels) + 2)]
    return np.array(found)


def log_posterior(labels, X, likelihood, a, prior, n_levels=None):
    """log of the posterior of each partition, up to a constant; ``prior`` is alpha, or shape and rate of its law."""
    out = np.array([sum(log_marginal(X[z == k], likelihood, a, n_levels) for k in range(z.max() + 1)) for z in labels])
    n_clusters = labels.max(axis=1) + 1
    out += [gammaln(np.bincount(z)).sum() for z in labels]
    return out + log_process(n_clusters, len(X), prior)


def log_process(n_clusters, n, prior):
    """log of alpha^K Gamma(alpha) / Gamma(alpha + n), alpha given or integrated over its Gamma law on a grid."""
    if np.isscalar(prior):
        return n_clusters * np.log(prior)
    grid = np.linspace(np.log(1e-9), np.log(200.0), 20_001)
    alpha = np.exp(grid)
    density = prior[0] * grid - prior[1] * alpha + gammaln(alpha) - gammaln(alpha + n)
    return np.array([np.logaddexp.reduce(density + k * grid) for k in range(1, n + 1)])[n_clusters - 1]


def sweep(z, X, likelihood, a, alpha, rng, n_levels=None):
    """Gibbs for each label given all others, slot by slot; a new cluster takes the first free slot. Changes z."""
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        slots = range(max(z[others], default=-1) + 1)
        p = []
        for k in slots:
            rows = X[others & (z == k)]
            both = log_marginal(np.vstack([rows, X[i]]), likelihood, a, n_levels)
            p.append(len(rows) * np.exp(both - log_marginal(rows, likelihood, a, n_levels)))
        p.append(alpha * np.exp(log_marginal(X[i], likelihood, a, n_levels)))
        new = np.searchsorted(np.cumsum(p), rng.random() * np.sum(p), side="right")
        free = next(k for k in range(len(X) + 1) if not np.any(z[others] == k))
        z[i] = free if new == len(p) - 1 else new
    return z
