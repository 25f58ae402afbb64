"""Dirichlet-process mixtures of categorical rows the slow way: dense rows, one law a column or one for all."""

from itertools import permutations, product

import numpy as np
from scipy.special import gammaln


def log_marginal(rows, likelihood, a, n_levels=None, weights=None):
    """log probability of dense rows that share a component, the component integrated out; NaN is missing.

    The likelihood of each row is taken to the power of its weight.
    """
    rows = np.atleast_2d(rows)
    weights = np.ones(len(rows)) if weights is None else weights
    if likelihood == "multinomial":
        tables = [weights @ rows]
    else:
        n_levels = 2 if likelihood == "bernoulli" else n_levels
        tables = [np.array([weights @ (column == level) for level in range(n_levels)]) for column in rows.T]
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


# ------------------------------------------------------------------------------------------------ rows with weights


class WeightedChain:
    """What a chain does with weighted rows, as matrices over all partitions of them.

    Parameters
    ----------
    X : ndarray of shape (n, n_columns)
        Rows in the order in which the chain reads them.
    weights : ndarray of shape (n,)
    likelihood, a, n_levels
        As for `log_marginal`.
    alpha : float
    """

    def __init__(self, X, weights, likelihood, a, alpha, n_levels=None):
        self.X, self.weights, self.alpha = X, np.asarray(weights), alpha
        self.law = likelihood, a, n_levels
        self.partitions = partitions(len(X))
        self.number = {tuple(z): s for s, z in enumerate(self.partitions)}
        self.known = {}

    def find(self, z):
        """The number of a partition, whatever its labels."""
        names = {}
        return self.number[tuple(names.setdefault(k, len(names)) for k in z)]

    def predictive(self, rows, new):
        """log probability of a whole row given weighted rows: numbers of them."""
        key = (*sorted(rows), new.tobytes())
        if key not in self.known:
            both, weights = np.vstack([self.X[rows], new]), self.weights[rows]
            self.known[key] = log_marginal(both, *self.law, np.append(weights, 1.0))
            self.known[key] -= log_marginal(self.X[rows], *self.law, weights)
        return self.known[key]

    def sweeps(self):
        """One pass over the rows, which begins anywhere: each label is that of a whole row given weighted others."""
        n, new = len(self.X), self.alpha * self.weights.mean()
        each = []
        for i in range(n):
            step = np.zeros((len(self.partitions),) * 2)
            for s, z in enumerate(self.partitions):
                others = np.delete(np.arange(n), i)
                for k in [*np.unique(z[others]), n]:
                    rows = others[z[others] == k]
                    share = self.weights[rows].sum() if k < n else new
                    to = z.copy()
                    to[i] = k
                    step[s, self.find(to)] += share * np.exp(self.predictive(rows, self.X[i]))
            each.append(step / step.sum(axis=1, keepdims=True))
        passes = [np.linalg.multi_dot([each[(first + i) % n] for i in range(n)]) for first in range(n)]
        return np.mean(passes, axis=0)

    def log_evidence(self, z):
        """What splits and merges are accepted by: the pseudo-evidence of the labels, up to their own entropy."""
        mean = self.weights.mean()
        out = 0.0
        for k in np.unique(z):
            rows = np.flatnonzero(z == k)
            out += mean * (np.log(self.alpha) + gammaln(self.weights[rows].sum() / mean))
            out += log_marginal(self.X[rows], *self.law, self.weights[rows])
        return out

    def allocations(self, i, k, members):
        """Every way for ``members``, in this order, to join row i or row k: (joined, log probability, weighted)."""
        if not members:
            return [((), 0.0, 0.0)]
        ways = []
        *before, last = members
        for sides, log_q, weighted in self.allocations(i, k, before):
            groups = [np.array([founder, *(m for m, s in zip(before, sides, strict=True) if s == side)])
                      for side, founder in ((0, i), (1, k))]  # fmt: skip
            logs = [np.log(self.weights[g].sum()) + self.predictive(g, self.X[last]) for g in groups]
            for side in (0, 1):
                log_p = logs[side] - np.logaddexp(*logs)
                ways.append(((*sides, side), log_q + log_p, weighted + self.weights[last] * log_p))
        return ways

    def moves(self):
        """One pair of rows that proposes a split or a merge."""
        n = len(self.X)
        step = np.zeros((len(self.partitions),) * 2)
        evidence = np.array([self.log_evidence(z) for z in self.partitions])
        for s, z in enumerate(self.partitions):
            for i, k in product(range(n), repeat=2):
                orders = list(permutations(m for m in range(n) if z[m] in (z[i], z[k]) and m not in (i, k)))
                for members in orders if i != k else ():
                    for sides, log_q, weighted in self.allocations(i, k, list(members)):
                        split = z.copy()
                        split[[i, k]], split[list(members)] = (n, n + 1), n + np.array(sides, dtype=int)
                        merged = np.where(split >= n, n, split)
                        log_ratio = evidence[self.find(split)] - evidence[self.find(merged)] - weighted
                        p = 1.0 / (n * n * len(orders))
                        if z[i] == z[k]:
                            step[s, self.find(split)] += p * np.exp(log_q) * min(1.0, np.exp(log_ratio))
                        elif np.array_equal(split == n, (z == z[i])):
                            step[s, self.find(merged)] += p * min(1.0, np.exp(-log_ratio))
            step[s, s] += 1.0 - step[s].sum()
        return step

    def stationary(self, n_pairs=0):
        """The law of labels under passes, each followed by ``n_pairs`` moves."""
        step = self.sweeps()
        if n_pairs:
            step = step @ np.linalg.matrix_power(self.moves(), n_pairs)
        return np.linalg.matrix_power(step, 2**14)[0]

    def predicted(self, new):
        """Of each partition, the probability of a row, shares of clusters going by weights."""
        nothing = np.array([], dtype=int)
        out = np.full(len(self.partitions), self.alpha * np.exp(self.predictive(nothing, new)))
        for s, z in enumerate(self.partitions):
            for k in np.unique(z):
                rows = np.flatnonzero(z == k)
                out[s] += self.weights[rows].sum() * np.exp(self.predictive(rows, new))
        return out / (self.alpha + self.weights.sum())


def pseudo_posterior(X, weights, a, alpha, new, rng, n_draws=20_000, n_tail=40):
    """Of rows of counts, under p(omega, theta) prod_i (sum_j omega_j f(x_i | theta_j))^w_i, by importance sampling.

    Returns
    -------
    means : ndarray
        Probability of each pair of rows to be in one component, labels being drawn as those of whole rows, and the
        probability of the row ``new``.
    errors : ndarray
        Their standard errors.
    """
    n = len(X)
    i, k = np.triu_indices(n, 1)
    labels = partitions(n)
    log_p = log_posterior(labels, X, "multinomial", a, alpha)
    drawn = rng.multinomial(n_draws, np.exp(log_p - np.logaddexp.reduce(log_p)))
    log_weights, values = [], []
    for z, m in zip(labels[drawn > 0], drawn[drawn > 0], strict=True):
        sizes = np.bincount(z)
        shares = rng.dirichlet(np.append(sizes, alpha), m)
        sticks = rng.beta(1.0, alpha, (m, n_tail))
        tail = sticks * np.cumprod(np.concatenate([np.ones((m, 1)), 1.0 - sticks[:, :-1]], axis=1), axis=1)
        omega = np.concatenate([shares[:, :-1], shares[:, -1:] * tail], axis=1)
        shapes = np.stack([a + X[z == c].sum(axis=0) for c in range(len(sizes))] + [np.full(X.shape[1], a)] * n_tail)
        theta = np.maximum(rng.gamma(np.broadcast_to(shapes, (m, *shapes.shape))), 1e-300)
        log_theta = np.log(theta / theta.sum(axis=2, keepdims=True))
        logs = log_theta @ X.T + np.log(np.maximum(omega, 1e-300))[:, :, None]
        each = np.logaddexp.reduce(logs, axis=1)
        shares = np.exp(logs - each[:, None])
        together = np.einsum("mci,mcj->mij", shares, shares)[:, i, k]
        predicted = (omega * np.exp(log_theta @ new)).sum(axis=1)
        log_weights.append(each @ (weights - 1.0))
        values.append(np.column_stack([together, predicted]))
    log_weights, values = np.concatenate(log_weights), np.concatenate(values)
    p = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    return p @ values, np.sqrt(p**2 @ (values - p @ values) ** 2)
