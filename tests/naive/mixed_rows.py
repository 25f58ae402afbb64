"""Clusters of rows with columns of several kinds the slow way: each predictive probability from the rows themselves."""

from itertools import product

import numpy as np
from scipy import stats
from scipy.special import gammaln


def log_predictive(kind, cell, others, prior):
    """log probability of a cell given the other cells of its cluster (no missing ones); ``prior`` depends on the kind.

    categorical: Dirichlet parameters; ordinal: beta parameters (n_levels - 1, 2) of stopping and going on; count: shape
    and rate; continuous: rows that the prior mean 0 counts, and shape and scale of the variance.
    """
    n = len(others)
    if kind == "categorical":
        return np.log(prior[int(cell)] + np.sum(others == cell)) - np.log(np.sum(prior) + n)
    if kind == "ordinal":
        total = 0.0
        for level, (stop, go) in enumerate(prior):
            stopped, went = np.sum(others == level), np.sum(others > level)
            both = stop + go + stopped + went
            if cell == level:
                return total + np.log((stop + stopped) / both)
            total += np.log((go + went) / both)
        return total
    if kind == "count":
        shape, rate = prior[0] + np.sum(others), prior[1] + n
        return stats.nbinom.logpmf(cell, shape, rate / (rate + 1.0)) + gammaln(cell + 1.0)
    strength, shape, scale = prior
    mean = np.sum(others) / (strength + n)
    scale = scale + 0.5 * (np.sum(others**2) - (strength + n) * mean**2)
    shape, strength = shape + n / 2.0, strength + n
    return stats.t.logpdf(cell, 2.0 * shape, mean, np.sqrt(scale * (strength + 1.0) / (shape * strength)))


def log_marginal(rows, kinds, priors):
    """log probability of rows (n, n_columns) that share a cluster; NaN is missing."""
    total = 0.0
    for j, (kind, prior) in enumerate(zip(kinds, priors, strict=True)):
        cells = rows[:, j][~np.isnan(rows[:, j])]
        total += sum(log_predictive(kind, cells[i], cells[:i], prior) for i in range(len(cells)))
    return total


def labelings(n, n_classes):
    """All labels of n rows, (n_classes**n, n)."""
    return np.array(list(product(range(n_classes), repeat=n)))


def log_posterior(labels, X, kinds, priors, n_classes, concentration, odds=None):
    """log posterior of each labelling, up to a constant; ``odds`` (n, n_classes) replaces the prior of shares."""
    known, out = {}, np.empty(len(labels))
    for i, z in enumerate(labels):
        out[i] = 0.0
        for k in range(n_classes):
            members = tuple(np.flatnonzero(z == k))
            if members not in known:
                known[members] = log_marginal(X[list(members)], kinds, priors) if members else 0.0
            out[i] += known[members] + (gammaln(len(members) + concentration) if odds is None else 0.0)
        if odds is not None:
            out[i] += odds[np.arange(len(z)), z].sum()
    return out
