"""Rows of a table with columns of several kinds, in clusters whose parameters are integrated out.

Row i has the cells ``X[i]``, NaN if missing, and the weight ``weights[i]``. Each column has a kind, with conjugate
priors, so that a cluster is described by sufficient statistics. Column j occupies the rows ``starts[j]`` to
``starts[j + 1]`` of three arrays with the same layout: ``prior`` (n_stats,), ``counts`` (n_stats, n_slots), the
statistics of each cluster, and ``tables`` (n_stats, n_slots), derived from both, from which predictive probabilities
are read.

`CATEGORICAL`, L levels, cells 0 to L - 1
    Dirichlet prior. Statistics: the weight in each level, then their sum.
`ORDINAL`, L levels in order, cells 0 to L - 1
    Continuation ratios: a row that reaches level l stops there with probability q_l, which has a beta prior.
    Statistics: for each level the weight of rows that stop there, then for each level the weight that goes on.
`COUNT`, cells 0, 1, and so on
    Poisson with a gamma prior of the rate. Statistics: total weight, weighted sum, two cells of padding. The prior is
    the rate and the shape of the gamma distribution. Terms log x! are left out: they are the same in all clusters.
`CONTINUOUS`
    Normal with a normal-inverse-gamma prior, of mean 0. Statistics: total weight, weighted sums of x and x squared, one
    cell of padding. The prior is the number of rows that it counts for the mean, and the shape and the scale of the
    inverse gamma distribution of the variance.

Weights are handled as in `sk_sgmcmc.kernels.models.dirichlet_process.collapsed`: they multiply statistics, while a
row's own label is drawn as if its weight were 1.
"""

from math import lgamma

import numpy as np
from numba import types

from .._jit import F1_IN, F2, F2_IN, I1_IN, I8, OK, helper, kernel, read_only

CATEGORICAL, ORDINAL, COUNT, CONTINUOUS = 0, 1, 2, 3
I4_IN = read_only(types.int32, 1)
_LOG_PI = 1.1447298858494002
_LEAST = 1e-300


@helper
def add_row(i, sign, slot, X, weights, kinds, starts, counts, sizes):
    """Add row i to a slot (``sign`` 1), or remove it (-1)."""
    w = sign * weights[i]
    sizes[slot] += w
    for j in range(kinds.shape[0]):
        x = X[i, j]
        if np.isnan(x):
            continue
        s = starts[j]
        if kinds[j] == CATEGORICAL:
            counts[s + int(x), slot] += w
            counts[starts[j + 1] - 1, slot] += w
        elif kinds[j] == ORDINAL:
            level = int(x)
            above = s + (starts[j + 1] - s) // 2
            counts[s + level, slot] += w
            for passed in range(level):
                counts[above + passed, slot] += w
        else:
            counts[s, slot] += w
            counts[s + 1, slot] += w * x
            if kinds[j] == CONTINUOUS:
                counts[s + 2, slot] += w * x * x


@helper
def refresh_column(j, slot, kinds, starts, prior, counts, tables):
    """Compute the table of a column in a slot from its statistics."""
    s = starts[j]
    end = starts[j + 1]
    if kinds[j] == CATEGORICAL:
        for r in range(s, end - 1):
            tables[r, slot] = np.log(prior[r] + counts[r, slot])
        tables[end - 1, slot] = -np.log(prior[end - 1] + counts[end - 1, slot])
    elif kinds[j] == ORDINAL:
        n = (end - s) // 2
        reached = 0.0  # log probability of reaching the level
        for r in range(s, s + n - 1):
            a = prior[r] + counts[r, slot]
            b = prior[r + n] + counts[r + n, slot]
            both = np.log(a + b)
            tables[r, slot] = reached + np.log(a) - both
            reached += np.log(b) - both
        tables[s + n - 1, slot] = reached
    elif kinds[j] == COUNT:
        rate = prior[s] + counts[s, slot]
        shape = prior[s + 1] + counts[s + 1, slot]
        tables[s, slot] = shape
        tables[s + 1, slot] = shape * np.log(rate / (rate + 1.0)) - lgamma(shape)
        tables[s + 2, slot] = np.log(rate + 1.0)
    else:
        n = prior[s] + counts[s, slot]
        shape = prior[s + 1] + 0.5 * counts[s, slot]
        scale = prior[s + 2] + 0.5 * max(counts[s + 2, slot] - counts[s + 1, slot] ** 2 / n, 0.0)
        spread = 2.0 * scale * (n + 1.0) / n
        tables[s, slot] = lgamma(shape + 0.5) - lgamma(shape) - 0.5 * (_LOG_PI + np.log(spread))
        tables[s + 1, slot] = counts[s + 1, slot] / n
        tables[s + 2, slot] = 1.0 / spread
        tables[s + 3, slot] = shape + 0.5


@helper
def refresh_row(i, slot, X, kinds, starts, prior, counts, tables):
    """Compute the tables of a slot for the columns in which row i, just added or removed, is not missing."""
    for j in range(kinds.shape[0]):
        x = X[i, j]
        if np.isnan(x):
            continue
        if kinds[j] == CATEGORICAL:
            r = starts[j] + int(x)
            end = starts[j + 1] - 1
            tables[r, slot] = np.log(prior[r] + counts[r, slot])
            tables[end, slot] = -np.log(prior[end] + counts[end, slot])
        else:
            refresh_column(j, slot, kinds, starts, prior, counts, tables)


@helper
def refresh_slot(slot, kinds, starts, prior, counts, tables):
    """Compute all tables of a slot."""
    for j in range(kinds.shape[0]):
        refresh_column(j, slot, kinds, starts, prior, counts, tables)


@helper
def add_log_predictives(i, n_slots, X, kinds, starts, tables, logs):
    """Add to ``logs`` the log probability of row i given the rows in each slot, of which it must not be one."""
    for j in range(kinds.shape[0]):
        x = X[i, j]
        if np.isnan(x):
            continue
        s = starts[j]
        if kinds[j] == CATEGORICAL:
            r = s + int(x)
            end = starts[j + 1] - 1
            for k in range(n_slots):
                logs[k] += tables[r, k] + tables[end, k]
        elif kinds[j] == ORDINAL:
            r = s + int(x)
            for k in range(n_slots):
                logs[k] += tables[r, k]
        elif kinds[j] == COUNT:
            for k in range(n_slots):
                logs[k] += lgamma(tables[s, k] + x) + tables[s + 1, k] - x * tables[s + 2, k]
        else:
            for k in range(n_slots):
                apart = x - tables[s + 1, k]
                logs[k] += tables[s, k] - tables[s + 3, k] * np.log1p(apart * apart * tables[s + 2, k])


@helper
def _gain(a, x):
    """log Gamma(a + x) - log Gamma(a); 0 for x = 0."""
    return lgamma(a + x) - lgamma(a) if x > 0.0 else 0.0


@helper
def log_marginal(slot, kinds, starts, prior, counts):
    """Log probability of all rows in a slot, with the parameters of the cluster integrated out."""
    total = 0.0
    for j in range(kinds.shape[0]):
        s = starts[j]
        end = starts[j + 1]
        if kinds[j] == CATEGORICAL:
            for r in range(s, end - 1):
                total += _gain(prior[r], counts[r, slot])
            total -= _gain(prior[end - 1], counts[end - 1, slot])
        elif kinds[j] == ORDINAL:
            n = (end - s) // 2
            for r in range(s, s + n - 1):
                a, b = counts[r, slot], counts[r + n, slot]
                total += _gain(prior[r], a) + _gain(prior[r + n], b) - _gain(prior[r] + prior[r + n], a + b)
        elif kinds[j] == COUNT:
            rate = prior[s] + counts[s, slot]
            shape = prior[s + 1] + counts[s + 1, slot]
            total += _gain(prior[s + 1], counts[s + 1, slot]) + prior[s + 1] * np.log(prior[s]) - shape * np.log(rate)
        else:
            n = prior[s] + counts[s, slot]
            shape = prior[s + 1] + 0.5 * counts[s, slot]
            scale = prior[s + 2] + 0.5 * max(counts[s + 2, slot] - counts[s + 1, slot] ** 2 / n, 0.0)
            total += _gain(prior[s + 1], 0.5 * counts[s, slot]) + 0.5 * np.log(prior[s] / n)
            total += prior[s + 1] * np.log(prior[s + 2]) - shape * np.log(scale)
            total -= 0.5 * counts[s, slot] * (np.log(2.0) + _LOG_PI)
    return total


@kernel(I8(I4_IN, F2_IN, F1_IN, I1_IN, I1_IN, F1_IN, F2, F2, types.Array(types.float64, 1, "C")))
def count_rows(z, X, weights, kinds, starts, prior, counts, tables, sizes):
    """Compute statistics, tables and sizes of all slots from the labels ``z``; negative labels are in no slot."""
    counts[:] = 0.0
    sizes[:] = 0.0
    for i in range(z.shape[0]):
        if z[i] >= 0:
            add_row(i, 1.0, z[i], X, weights, kinds, starts, counts, sizes)
    for k in range(sizes.shape[0]):
        refresh_slot(k, kinds, starts, prior, counts, tables)
    return OK


@kernel(I8(I1_IN, I1_IN, F1_IN, F2_IN, F2))
def refresh_tables(kinds, starts, prior, counts, tables):
    """Compute the tables of all slots from their statistics."""
    for k in range(counts.shape[1]):
        refresh_slot(k, kinds, starts, prior, counts, tables)
    return OK


@kernel(I8(F2_IN, I1_IN, I1_IN, F2_IN, F2))
def log_predictives(X, kinds, starts, tables, out):
    """Add to ``out`` (n_rows, n_slots) the log probability of each row given the rows in each slot."""
    for i in range(X.shape[0]):
        add_log_predictives(i, tables.shape[1], X, kinds, starts, tables, out[i])
    return OK


@kernel(I8(I1_IN, I1_IN, F1_IN, F2_IN, types.Array(types.float64, 1, "C")))
def log_marginals(kinds, starts, prior, counts, out):
    """Write `log_marginal` of each slot to ``out``."""
    for k in range(counts.shape[1]):
        out[k] = log_marginal(k, kinds, starts, prior, counts)
    return OK


@kernel(I8(F2_IN, I1_IN, I1_IN, F2_IN, F2))
def log_densities(X, kinds, starts, tables, out):
    """Add to ``out`` (n_rows, n_components) the log density of each row given parameters of components.

    ``tables`` (n_stats, n_components) contains log probabilities of levels; for counts log rate and rate; and for
    continuous columns the log density at the mean, the mean, and one over the standard deviation.
    """
    K = tables.shape[1]
    for i in range(X.shape[0]):
        for j in range(kinds.shape[0]):
            x = X[i, j]
            if np.isnan(x):
                continue
            s = starts[j]
            if kinds[j] == COUNT:
                for k in range(K):
                    out[i, k] += x * tables[s, k] - tables[s + 1, k]
            elif kinds[j] == CONTINUOUS:
                for k in range(K):
                    apart = (x - tables[s + 1, k]) * tables[s + 2, k]
                    out[i, k] += tables[s, k] - 0.5 * apart * apart
            else:
                r = s + int(x)
                for k in range(K):
                    out[i, k] += tables[r, k]
    return OK


@helper
def draw_label(logs, n_slots, rng):
    """Draw an index with probability proportional to exp(logs[:n_slots])."""
    largest = -np.inf
    for k in range(n_slots):
        largest = max(largest, logs[k])
    total = 0.0
    for k in range(n_slots):
        logs[k] = np.exp(logs[k] - largest)
        total += logs[k]
    target = rng.random() * total
    chosen = 0
    for k in range(n_slots):
        if logs[k] > 0.0:
            chosen = k
            target -= logs[k]
            if target < 0.0:
                break
    return chosen


@helper
def allocate(members, side, given, least, mass, offset, X, weights, kinds, starts, prior, counts, tables, sizes, rng):
    """Assign rows to one of two clusters, one after the other; returns the log probability of the outcome.

    The prior odds of the second cluster are (sizes[1] + mass) / (sizes[0] + mass), or exp(offset[i]) for row i, unless
    ``offset`` is empty. Each row's term is multiplied by the row's weight. The outcome is written into ``side``, or
    read from it if ``given``. Stops if the log probability falls below ``least``.
    """
    log_q = 0.0
    logs = np.empty(2)
    for m in range(members.shape[0]):
        i = members[m]
        if offset.shape[0] > 0:
            logs[0] = 0.0
            logs[1] = offset[i]
        else:
            logs[0] = np.log(sizes[0] + mass)
            logs[1] = np.log(sizes[1] + mass)
        add_log_predictives(i, 2, X, kinds, starts, tables, logs)
        odds = min(max(logs[1] - logs[0], -600.0), 600.0)
        if not given:
            side[m] = rng.random() * (1.0 + np.exp(-odds)) < 1.0
        log_q -= weights[i] * (np.log1p(np.exp(-odds)) if side[m] == 1 else np.log1p(np.exp(odds)))
        if log_q < least:
            break
        k = np.intp(side[m])
        add_row(i, 1.0, k, X, weights, kinds, starts, counts, sizes)
        refresh_row(i, k, X, kinds, starts, prior, counts, tables)
    return log_q
