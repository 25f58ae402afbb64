"""Dirichlet-process mixtures of categorical rows with components integrated out: labels, splits and merges.

Rows are sparse. Row i contains the cells ``cells[indptr[i]:indptr[i + 1]]`` with ``entries``, and has the weight
``weights[i]``; ``values`` are entries times the weight. A row contributes its values to its cluster, but its own label
is drawn with its entries, as for a row of weight 1. The weight thus scales the row's evidence about a cluster, not the
certainty of its label. The meaning of a cell depends on ``kind``:

`MULTINOMIAL`
    A column of counts. All tokens of a row are draws from one distribution with a Dirichlet prior.
`CATEGORICAL`
    A level of a column. Each column, a block of cells, has its own distribution. A missing entry has no cell.
`BERNOULLI`
    For D columns, cell d is a 1 in column d and cell D + d is a missing entry. All other entries are 0.

Clusters occupy slots. ``counts`` (n_cells + n_blocks, n_slots) contains the sums of values over the rows of each
cluster. The last n_blocks rows contain the sums over blocks, except for `BERNOULLI`, which has no such rows. ``sizes``
(n_slots,) contains sums of weights, 0 for a free slot. ``prior`` has the layout of a column of ``counts``. For
`BERNOULLI` it contains the prior shapes of 1 in each column, followed by the prior shapes of 0.

Weights that are not all equal to 1 give a pseudo-posterior, in which the likelihood of row i is sum_j omega_j f_j(x_i)
to the power w_i. For any label z_i, this sum is omega_z f_z(x_i) divided by the probability of z_i. The log probability
of an allocation of rows therefore counts row i w_i times. In the prior of labels, sizes are sums of weights divided by
the mean weight.
"""

from math import lgamma

import numpy as np
from numba import types

from ..._jit import F1, F1_IN, F2, F8, I1, I1_IN, I8, OK, RNG, helper, kernel, read_only, writable
from ...math.arrays import set_to
from ...math.special import MANY, log_rise
from ..split_merge import log_prior_split, members_of, merge, split, unite

I4_IN = read_only(types.int32, 1)
I4 = writable(types.int32, 1)

MULTINOMIAL, CATEGORICAL, BERNOULLI = 0, 1, 2

FREE = -1  # label of a row in no cluster
_SMALLEST = 1e-150


@helper
def add_row(i, sign, slot, indptr, cells, values, weights, kind, block, counts, sizes):
    """Add row i to a slot (``sign`` 1), or remove it (-1)."""
    n_cells = block.shape[0]
    sizes[slot] += sign * weights[i]
    for e in range(indptr[i], indptr[i + 1]):
        counts[cells[e], slot] += sign * values[e]
        if kind != BERNOULLI:
            counts[n_cells + block[cells[e]], slot] += sign * values[e]


@helper(fast_sums=True)
def log_zeros(slot, prior, counts, size):
    """Log probability that a row is 0 in all columns, given the Bernoulli rows in a slot, of total weight ``size``."""
    D = prior.shape[0] // 2
    total = 0.0
    for start in range(0, D, 16):
        above = 1.0
        below = 1.0
        for d in range(start, min(start + 16, D)):
            n = size - counts[D + d, slot]
            above *= prior[D + d] + n - counts[d, slot]
            below *= prior[d] + prior[D + d] + n
        total += np.log(above / below)
    return total


@helper
def log_predictive(i, slot, indptr, cells, entries, kind, prior, block, counts, sizes):
    """Log probability of row i given the rows in a slot, which must not include row i; for a free slot, the prior's."""
    n_cells = block.shape[0]
    total = 0.0
    if kind == BERNOULLI:
        D = n_cells // 2
        total = log_zeros(slot, prior, counts, sizes[slot])
    product = 1.0
    used = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        w = cells[e]
        x = entries[e]
        if kind == BERNOULLI:
            d = w if w < D else w - D
            n = sizes[slot] - counts[D + d, slot]
            zeros = prior[D + d] + n - counts[d, slot]
            product *= (prior[d] + counts[d, slot] if w < D else prior[d] + prior[D + d] + n) / zeros
        else:
            b = n_cells + block[w]
            above = prior[w] + counts[w, slot]
            below = prior[b] + counts[b, slot] + used
            if x == 1.0:
                product *= above / below
            else:
                total += log_rise(above, x) - log_rise(below, x)
            if kind == MULTINOMIAL:
                used += x
        if product < _SMALLEST or product > 1.0 / _SMALLEST:
            total += np.log(product)
            product = 1.0
    return total + np.log(product)


@helper
def rescale(p, top):
    """Divide ``p[:top + 1]`` by its largest entry."""
    largest = 0.0
    for j in range(top + 1):
        largest = max(largest, p[j])
    if largest > 0.0:
        for j in range(top + 1):
            p[j] /= largest


@helper
def times_exponential(p, logs, top):
    """Multiply ``p[:top + 1]`` by exp(logs), up to a common factor; free slots stay 0."""
    largest = -np.inf
    for j in range(top + 1):
        if p[j] > 0.0:
            largest = max(largest, logs[j] + np.log(p[j]))
    for j in range(top + 1):
        if p[j] > 0.0:
            p[j] = np.exp(logs[j] + np.log(p[j]) - largest)


@helper(fast_sums=True)
def slot_weights(
    i, top, free, concentration, indptr, cells, entries, kind, prior, block, counts, sizes, zeros, p, logs
):
    """Conditional weights of row i for the slots 0..top-1 (in p[:top]) and a new cluster (in p[top]).

    ``free`` is a free slot, and ``zeros`` contains `log_zeros` of each slot at its present size.
    """
    n_cells = block.shape[0]
    for j in range(top):
        p[j] = sizes[j]
    p[top] = concentration
    if kind == BERNOULLI:
        for j in range(top):
            logs[j] = zeros[j]
        logs[top] = log_zeros(free, prior, counts, 0.0)
        times_exponential(p, logs, top)
    D = n_cells // 2
    used = 0.0
    since = 0
    for e in range(indptr[i], indptr[i + 1]):
        w = cells[e]
        x = entries[e]
        if kind == BERNOULLI:
            d = w if w < D else w - D
            a, b = prior[d], prior[D + d]
            for j in range(top):
                n = sizes[j] - counts[D + d, j]
                p[j] *= (a + (counts[d, j] if w < D else b + n)) / (b + n - counts[d, j])
            p[top] *= (a + (0.0 if w < D else b)) / b
        else:
            row = n_cells + block[w]
            a, b = prior[w], prior[row]
            if x <= MANY and x == np.floor(x):
                for t in range(int(x)):
                    for j in range(top):
                        p[j] *= (a + t + counts[w, j]) / (b + used + t + counts[row, j])
                    p[top] *= (a + t) / (b + used + t)
                    since += 1
                    if since == 12:
                        rescale(p, top)
                        since = 0
            else:
                for j in range(top):
                    logs[j] = log_rise(a + counts[w, j], x) - log_rise(b + used + counts[row, j], x)
                logs[top] = log_rise(a, x) - log_rise(b + used, x)
                times_exponential(p, logs, top)
            if kind == MULTINOMIAL:
                used += x
        since += 1
        if since >= 12:
            rescale(p, top)
            since = 0


@kernel(I8(I1_IN, I8, I1_IN, I4_IN, F1_IN, F1_IN, F1_IN, I8, F1_IN, I4_IN, F8, I4, F2, F1, F1, I1, RNG))
def sweep_rows(
    rows, first, indptr, cells, entries, values, weights, kind, prior, block, concentration, z, counts, sizes, zeros,
    state, rng,
):  # fmt: skip
    """Redraw the labels of rows[first:], each given all other labels, with components and weights integrated out.

    A row that is `FREE` is only added. The sweep stops before a row if no slot is free.

    Parameters
    ----------
    concentration : float
        Weight of a new cluster relative to ``sizes``: the concentration times the rows' mean weight.
    state : ndarray of int64, shape (2,)
        All slots in use are below ``state[0]``; ``state[1]`` is their number.

    Returns
    -------
    done : int
        The position in ``rows`` after the last row drawn, which is less than ``len(rows)`` if slots ran out.
    """
    n_slots = sizes.shape[0]
    p = np.empty(n_slots + 1)
    logs = np.empty(n_slots + 1)
    top = state[0]
    n_active = state[1]
    done = first
    free = 0
    while free < n_slots and sizes[free] > 0.0:
        free += 1
    while done < rows.shape[0]:
        if free >= n_slots:
            break
        i = rows[done]
        old = np.intp(z[i])
        old_zeros = 0.0
        if old >= 0:
            add_row(i, -1.0, old, indptr, cells, values, weights, kind, block, counts, sizes)
            if sizes[old] == 0.0:
                n_active -= 1
                free = min(free, old)
            elif kind == BERNOULLI:
                old_zeros = zeros[old]
                zeros[old] = log_zeros(old, prior, counts, sizes[old])
        while top > 0 and sizes[top - 1] == 0.0:
            top -= 1
        slot_weights(
            i, top, free, concentration, indptr, cells, entries, kind, prior, block, counts, sizes, zeros, p, logs
        )
        total = 0.0
        for j in range(top + 1):
            total += p[j]
        target = rng.random() * total
        new = 0
        while new < top:
            target -= p[new]
            if target < 0.0:
                break
            new += 1
        if new == top or sizes[new] == 0.0:  # By rounding, the draw may be a free slot, which is a new cluster too.
            new = free
        if sizes[new] == 0.0:
            n_active += 1
        add_row(i, 1.0, new, indptr, cells, values, weights, kind, block, counts, sizes)
        top = max(top, new + 1)
        if kind == BERNOULLI:
            if new == old and old_zeros != 0.0:
                zeros[new] = old_zeros
            else:
                zeros[new] = log_zeros(new, prior, counts, sizes[new])
        z[i] = new
        while free < n_slots and sizes[free] > 0.0:
            free += 1
        done += 1
    state[0] = top
    state[1] = n_active
    return done


@kernel(I8(F1_IN, F2, F1, F1))
def all_log_zeros(prior, counts, sizes, zeros):
    """Set ``zeros`` to `log_zeros` of each slot of Bernoulli rows."""
    for j in range(sizes.shape[0]):
        if sizes[j] > 0.0:
            zeros[j] = log_zeros(j, prior, counts, sizes[j])
    return OK


@helper
def _gain(a, x):
    """log Gamma(a + x) - log Gamma(a); 0 for x = 0."""
    return lgamma(a + x) - lgamma(a) if x > 0.0 else 0.0


@helper
def log_marginal(slot, kind, prior, n_cells, counts, sizes):
    """Log probability of all rows in a slot, with its component integrated out."""
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
    """Assign rows to one of two clusters, one after the other; returns the log probability of the outcome.

    Each row's term is multiplied by the row's weight. The outcome is written into ``side``, or read from it if
    ``given``. Stops if the log probability falls below ``least``.
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
    """Log posterior ratio of two clusters, the columns of ``counts``, to their union, which is written to ``one``."""
    unite(counts, sizes, one, one_size)
    log_ratio = log_prior_split(concentration, mean, sizes, one_size[0])
    log_ratio += log_marginal(0, kind, prior, n_cells, counts, sizes)
    log_ratio += log_marginal(1, kind, prior, n_cells, counts, sizes)
    return log_ratio - log_marginal(0, kind, prior, n_cells, one, one_size)


@kernel(I8(I1_IN, I1_IN, I4_IN, F1_IN, F1_IN, F1_IN, I8, F1_IN, I4_IN, F8, F8, I4, F2, F1, F1, I1, RNG))
def split_merge(
    pair, indptr, cells, entries, values, weights, kind, prior, block, concentration, mean, z, counts, sizes, zeros,
    state, rng,
):  # fmt: skip
    """Metropolis update that proposes a split or a merge, chosen by a ``pair`` of rows. A slot must be free.

    If both rows are in one cluster, a split is proposed. Each of the two starts a cluster, and the other rows join one
    of them in random order, with their conditional probabilities. If the rows are in different clusters, their merge is
    proposed. ``mean`` is the mean weight of rows.

    Counts of a cluster that are not of its rows (earlier blocks of a stream) stay together, with the first row of the
    pair. If two clusters are to be merged, only the cluster of the first row may have such counts.

    Returns
    -------
    outcome : int
        1 if a split was accepted, 2 if a merge was, 0 otherwise.

    References
    ----------
    Dahl (2005), Sequentially-allocated merge-split sampler for conjugate and nonconjugate Dirichlet process mixture
    models, technical report. (With Gibbs passes before the proposal, as in Jain and Neal 2004, clusters of thousands of
    rows were separated so well that hardly any merge was accepted.)
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
        # A merge is accepted if the reverse split is probable enough. Most merges are rejected early.
        least = bar + _log_split(concentration, mean, kind, prior, n_cells, two, two_sizes, one, one_size)
        if least >= 0.0:
            return 0
    members = members_of(z, a, b, i, k, rng)
    # Counts of the first cluster that are not of its rows stay in column 0. The second cluster has none.
    add_row(i, -1.0, 0, indptr, cells, values, weights, kind, block, two, two_sizes)
    add_row(k, -1.0, 0 if a == b else 1, indptr, cells, values, weights, kind, block, two, two_sizes)
    side = np.empty(members.shape[0], np.int8)
    for m in range(members.shape[0]):
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
        free = split(a, k, members, side, two, two_sizes, z, counts, sizes, state)
        if kind == BERNOULLI:
            zeros[free] = log_zeros(free, prior, counts, sizes[free])
    else:
        if least >= log_q:
            return 0
        merge(a, b, k, members, one, one_size, z, counts, sizes, state)
    if kind == BERNOULLI:
        zeros[a] = log_zeros(a, prior, counts, sizes[a])
    return 1 if a == b else 2
