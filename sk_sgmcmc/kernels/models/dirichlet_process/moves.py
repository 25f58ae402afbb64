"""Moves of whole groups of rows between clusters: Metropolis-Hastings splits and merges with components integrated out.

Arrays are those of `dp_categorical`.

Weights that are not all equal to 1 give a pseudo-posterior, the likelihood of row i being sum_j omega_j f_j(x_i) to the
power w_i. For any label z_i that sum is omega_z f_z(x_i) over the probability of z_i, so that an allocation of rows
counts w_i times the log of that probability. Sizes count labels: sums of weights over their mean.
"""

from math import lgamma

import numpy as np

from ..._jit import F1, F1_IN, F2, F8, I1, I1_IN, I8, RNG, helper, kernel
from ...math.arrays import set_to
from .rows import BERNOULLI, I4, I4_IN, add_row, log_predictive, log_zeros


@helper
def _gain(a, x):
    """log Gamma(a + x) - log Gamma(a), 0 for x = 0."""
    return lgamma(a + x) - lgamma(a) if x > 0.0 else 0.0


@helper
def log_marginal(slot, kind, prior, n_cells, counts, sizes):
    """Log probability of all rows in a slot, its component integrated out."""
    total = 0.0
    if kind == BERNOULLI:
        D = n_cells // 2
        for d in range(D):
            ones = counts[d, slot]
            n = sizes[slot] - counts[D + d, slot]
            total += _gain(prior[d], ones) + _gain(prior[D + d], n - ones) - _gain(prior[d] + prior[D + d], n)
        return total
    for w in range(counts.shape[0]):
        gain = _gain(prior[w], counts[w, slot])
        total += gain if w < n_cells else -gain
    return total


@helper
def _allocate(
    members, side, given, least, indptr, cells, entries, values, weights, kind, prior, block, counts, sizes, rng
):
    """Assign rows to one of two clusters, one after another; returns the log probability of the outcome.

    Each row's term is multiplied by the row's weight.

    ``side`` is set to the outcome, or holds it if ``given``. Stops once the log probability is below ``least``.
    """
    log_q = 0.0
    for m in range(members.shape[0]):
        i = members[m]
        odds = log_predictive(i, 1, indptr, cells, entries, kind, prior, block, counts, sizes)
        odds -= log_predictive(i, 0, indptr, cells, entries, kind, prior, block, counts, sizes)
        odds += np.log(sizes[1] / sizes[0])
        odds = min(max(odds, -600.0), 600.0)
        if not given:
            side[m] = rng.random() * (1.0 + np.exp(-odds)) < 1.0
        log_q -= weights[i] * (np.log1p(np.exp(-odds)) if side[m] == 1 else np.log1p(np.exp(odds)))
        if log_q < least:
            break
        add_row(i, 1.0, side[m], indptr, cells, values, weights, kind, block, counts, sizes)
    return log_q


@helper
def _log_split(concentration, mean, kind, prior, n_cells, counts, sizes, one, one_size):
    """Log of the posterior of two clusters, the columns of ``counts``, over that of their union, written to ``one``."""
    for w in range(counts.shape[0]):
        one[w, 0] = counts[w, 0] + counts[w, 1]
    one_size[0] = sizes[0] + sizes[1]
    log_ratio = np.log(concentration) + lgamma(sizes[0] / mean) + lgamma(sizes[1] / mean) - lgamma(one_size[0] / mean)
    log_ratio *= mean
    log_ratio += log_marginal(0, kind, prior, n_cells, counts, sizes)
    log_ratio += log_marginal(1, kind, prior, n_cells, counts, sizes)
    return log_ratio - log_marginal(0, kind, prior, n_cells, one, one_size)


@kernel(I8(I1_IN, I1_IN, I4_IN, F1_IN, F1_IN, F1_IN, I8, F1_IN, I4_IN, F8, F8, I4, F2, F1, F1, I1, RNG))
def split_merge(
    pair, indptr, cells, entries, values, weights, kind, prior, block, concentration, mean, z, counts, sizes, zeros,
    state, rng,
):  # fmt: skip
    """Propose a split or a merge by a ``pair`` of rows, and accept it with its probability. A slot must be free.

    ``mean`` is the rows' mean weight.

    Two rows of one cluster propose to split it: each founds a cluster, and the others join one of them, in random
    order, with their conditional probabilities. Two rows of different clusters propose to merge these.

    What a cluster holds beyond its rows (earlier blocks of a stream) stays together: it goes with the first row of the
    pair, and of two clusters to be merged, only that of the first row may hold any.

    Returns
    -------
    outcome : int
        1 if a split was accepted, 2 if a merge was, 0 otherwise.

    References
    ----------
    Dahl (2005), Sequentially-allocated merge-split sampler for conjugate and nonconjugate Dirichlet process mixture
    models, technical report. (Gibbs passes before the proposal, as in Jain and Neal 2004, made clusters of thousands of
    rows so well separated that hardly a merge was accepted.)
    """
    n_cells = block.shape[0]
    i = pair[0]
    k = pair[1]
    if i == k or z[i] < 0 or z[k] < 0:
        return 0
    a = np.intp(z[i])
    b = np.intp(z[k])
    bar = np.log(1.0 - rng.random())
    two = np.empty((counts.shape[0], 2))
    two_sizes = np.empty(2)
    set_to(two[:, 0], counts[:, a])
    set_to(two[:, 1], counts[:, b])
    two_sizes[0] = sizes[a]
    two_sizes[1] = sizes[b]
    one = np.empty((counts.shape[0], 1))
    one_size = np.empty(1)
    least = -np.inf
    if a != b:
        # A merge is accepted if the reverse split is probable enough; most fail early.
        least = bar + _log_split(concentration, mean, kind, prior, n_cells, two, two_sizes, one, one_size)
        if least >= 0.0:
            return 0
    n = 0
    for r in range(z.shape[0]):
        if z[r] == a or z[r] == b:
            n += 1
    members = np.empty(n - 2, np.int64)
    n = 0
    for r in range(z.shape[0]):
        if (z[r] == a or z[r] == b) and r != i and r != k:
            j = int(rng.random() * (n + 1))  # shuffled while they are gathered
            members[n] = members[j]
            members[j] = r
            n += 1
    # The first cluster's content beyond rows stays in column 0; the second has none.
    add_row(i, -1.0, 0, indptr, cells, values, weights, kind, block, two, two_sizes)
    add_row(k, -1.0, 0 if a == b else 1, indptr, cells, values, weights, kind, block, two, two_sizes)
    side = np.empty(n, np.int8)
    for m in range(n):
        side[m] = z[members[m]] != a
        add_row(members[m], -1.0, side[m], indptr, cells, values, weights, kind, block, two, two_sizes)
    if a != b and two_sizes[1] > 0.0:
        return 0
    two[:, 1] = 0.0
    two_sizes[1] = 0.0
    add_row(i, 1.0, 0, indptr, cells, values, weights, kind, block, two, two_sizes)
    add_row(k, 1.0, 1, indptr, cells, values, weights, kind, block, two, two_sizes)
    log_q = _allocate(
        members, side, a != b, least, indptr, cells, entries, values, weights, kind, prior, block, two, two_sizes, rng
    )
    if a == b:
        if bar >= _log_split(concentration, mean, kind, prior, n_cells, two, two_sizes, one, one_size) - log_q:
            return 0
        free = 0
        while sizes[free] > 0.0:
            free += 1
        set_to(counts[:, a], two[:, 0])
        set_to(counts[:, free], two[:, 1])
        sizes[a] = two_sizes[0]
        sizes[free] = two_sizes[1]
        z[k] = free
        for m in range(n):
            if side[m] == 1:
                z[members[m]] = free
        state[0] = max(state[0], free + 1)
        state[1] += 1
        if kind == BERNOULLI:
            zeros[free] = log_zeros(free, prior, counts, sizes[free])
    else:
        if least >= log_q:
            return 0
        set_to(counts[:, a], one[:, 0])
        counts[:, b] = 0.0
        sizes[a] = one_size[0]
        sizes[b] = 0.0
        z[k] = a
        for m in range(n):
            z[members[m]] = a
        state[1] -= 1
    if kind == BERNOULLI:
        zeros[a] = log_zeros(a, prior, counts, sizes[a])
    return 1 if a == b else 2
