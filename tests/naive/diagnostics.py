"""Diagnostics of chains and of topics, by loops."""

import itertools
import math

import numpy as np
from scipy import stats


def split(x):
    """(m, n) -> (2 m, n // 2)."""
    half = x.shape[1] // 2
    return np.array([part for chain in x for part in (chain[:half], chain[-half:])])


def rank_normalize(x):
    ranks = stats.rankdata(x.ravel())
    return stats.norm.ppf((ranks - 3 / 8) / (x.size + 1 / 4)).reshape(x.shape)


def r_hat(x):
    n = x.shape[1]
    within = np.mean([np.var(chain, ddof=1) for chain in x])
    between = n * np.var([chain.mean() for chain in x], ddof=1)
    return math.sqrt(((n - 1) / n * within + between / n) / within)


def ess(x):
    """Geyer's initial monotone sequence over chains (m, n), autocovariances by their sums."""
    m, n = x.shape
    cov = np.zeros(n)
    for chain in x:
        c = chain - chain.mean()
        cov += [np.sum(c[: n - t] * c[t:]) / n for t in range(n)]
    cov /= m
    within = cov[0] * n / (n - 1)
    total = cov[0] + (np.var(x.mean(axis=1), ddof=1) if m > 1 else 0.0)
    rho = [1.0] + [1 - (within - c) / total for c in cov[1:]]
    tau, lowest = -1.0, math.inf
    for t in range(0, n - 1, 2):
        pair = rho[t] + rho[t + 1]
        if pair <= 0:
            break
        lowest = min(lowest, pair)
        tau += 2 * lowest
    return m * n / max(tau, 1 / math.log10(m * n))


def coherence(top, present, measure):
    """Mean over pairs; top: columns, present: bool (D, V)."""
    n_docs, values = len(present), []
    for v, w in itertools.combinations(top, 2):
        both, alone_v, alone_w = (present[:, v] & present[:, w]).sum(), present[:, v].sum(), present[:, w].sum()
        if measure == "umass":
            values.append(math.log((both + 1) / max(alone_v, 1)))
        elif both == 0:
            values.append(-1.0)
        elif both == n_docs:
            values.append(0.0)
        else:
            p = both / n_docs
            values.append(math.log(p / (alone_v / n_docs * alone_w / n_docs)) / -math.log(p))
    return np.mean(values)
