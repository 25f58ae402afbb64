"""The gamma process topic model, document by document and in plain NumPy."""

import numpy as np
from scipy.special import gammaincc, gammaln


def log_density(theta, doc_counts, p, prior):
    """Log posterior density of (log E, log T, log a, log c) given each document's topic counts and p, up to a constant.

    Every document's activities are integrated out: n_dk is negative binomial with shape r_k.
    """
    K = prior.n_atoms
    E, T = np.exp(theta[:K]), np.exp(theta[K : 2 * K])
    a, c = np.exp(theta[2 * K :])
    r = E * np.exp(-T)
    total = np.sum(gammaln(doc_counts + r) - gammaln(r) + r * np.log1p(-p)[:, None])
    total += np.sum(np.log(c) - c * E)
    total += np.sum(np.log(a / prior.n_rounds) + np.log(gammaincc(prior.n_rounds, a * T)))
    for value, (shape, rate), unit in ((a, prior.concentration, K / prior.n_rounds), (c, prior.rate, 1.0)):
        total += (shape - 1.0) * np.log(value) - rate * unit * value
    return total + theta.sum()  # the volume of the logarithms


def chinese_restaurant(n, r, rng):
    """Number of tables after n customers with concentration r."""
    return sum(rng.random() < r / (r + i) for i in range(n))
