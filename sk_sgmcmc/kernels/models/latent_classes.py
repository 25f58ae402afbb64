"""Finite mixtures of rows with columns of several kinds, parameters integrated out: sweeps of labels, global moves.

Rows, kinds, ``starts``, ``prior``, ``counts``, ``tables`` and ``weights`` are as in `mixed_rows`; slot k is class k.
The prior of labels is either a Dirichlet-multinomial distribution, with ``mass`` times the mean weight of rows added to
the size of each class, or, if ``eta`` (n_rows, n_classes) is not empty, independent with log odds ``eta``.
"""

from math import lgamma

import numpy as np
from numba import types

from .._jit import F1, F1_IN, F2, F2_IN, F8, I1_IN, I8, OK, RNG, helper, kernel, writable
from ..math.arrays import set_to
from .mixed_rows import (
    add_log_predictives,
    add_row,
    allocate,
    draw_label,
    log_marginal,
    refresh_row,
    refresh_slot,
)
from .split_merge import members_of

I4 = writable(types.int32, 1)
REJECTED, MOVED, SPLIT, MERGED = 0, 1, 2, 3


@kernel(I8(I8, I8, F2_IN, F1_IN, I1_IN, I1_IN, F1_IN, F2_IN, F8, F8, I4, F2, F2, F1, RNG))
def sweep_rows(first, last, X, weights, kinds, starts, prior, eta, mass, power, z, counts, tables, sizes, rng):
    """Redraw the labels of rows first..last-1, each given all other labels.

    A row with a negative label is only added. Probabilities are raised to ``power``: 1 for the posterior, less for a
    tempered start. ``mass`` is the Dirichlet parameter times the mean weight.
    """
    K = sizes.shape[0]
    logs = np.empty(K)
    kept_counts = np.empty(counts.shape[0])
    kept_tables = np.empty(counts.shape[0])
    for i in range(first, last):
        old = np.intp(z[i])
        kept_size = 0.0
        if old >= 0:
            kept_size = sizes[old]
            for r in range(counts.shape[0]):
                kept_counts[r] = counts[r, old]
                kept_tables[r] = tables[r, old]
            add_row(i, -1.0, old, X, weights, kinds, starts, counts, sizes)
            refresh_row(i, old, X, kinds, starts, prior, counts, tables)
        for k in range(K):
            logs[k] = eta[i, k] if eta.shape[0] > 0 else np.log(max(sizes[k], 0.0) + mass)
        add_log_predictives(i, K, X, kinds, starts, tables, logs)
        if power != 1.0:
            for k in range(K):
                logs[k] *= power
        new = draw_label(logs, K, rng)
        if new == old:  # Restoring is faster than adding, and exact.
            sizes[old] = kept_size
            for r in range(counts.shape[0]):
                counts[r, old] = kept_counts[r]
                tables[r, old] = kept_tables[r]
        else:
            add_row(i, 1.0, new, X, weights, kinds, starts, counts, sizes)
            refresh_row(i, new, X, kinds, starts, prior, counts, tables)
            z[i] = new
    return OK


@helper
def _log_prior(size, mass, mean):
    """Log prior of a class of a total weight, up to a constant of the number of rows."""
    return mean * lgamma((size + mass) / mean)


@helper
def _nth(z, a, b, n):
    """The n-th row with label a or b."""
    for r in range(z.shape[0]):
        if z[r] == a or z[r] == b:
            if n == 0:
                return r
            n -= 1
    return -1


@helper
def _begin(i, k, X, weights, kinds, starts, prior, two, two_tables, two_sizes):
    """Start two clusters with one row each."""
    two[:] = 0.0
    two_sizes[:] = 0.0
    add_row(i, 1.0, 0, X, weights, kinds, starts, two, two_sizes)
    add_row(k, 1.0, 1, X, weights, kinds, starts, two, two_sizes)
    refresh_slot(0, kinds, starts, prior, two, two_tables)
    refresh_slot(1, kinds, starts, prior, two, two_tables)


@helper
def _offset(eta, a, b):
    """Log prior odds of class b against class a for each row; empty if rows have no odds of their own."""
    n = eta.shape[0]
    odds = np.empty(n)
    for r in range(n):
        odds[r] = eta[r, b] - eta[r, a]
    return odds


@helper
def _log_target(slot, size, kinds, starts, prior, eta, mass, mean, counts):
    """Log probability of the rows of a class, and of their labels unless these have odds of their own."""
    labels = _log_prior(size, mass, mean) if eta.shape[0] == 0 else 0.0
    return log_marginal(slot, kinds, starts, prior, counts) + labels


@helper
def _divide(z, c, also, b, n, X, weights, kinds, starts, prior, eta, mass, mean, new, two, tables, sizes, rng):
    """Split the n rows with label c or ``also`` into classes c and b, the columns of ``two``; labels go to ``new``.

    Returns the log target of the two classes, minus the log probability of this split, plus that of drawing its seeds
    in the reverse move.
    """
    first = int(rng.random() * n)
    second = int(rng.random() * (n - 1))
    second += second >= first
    i, k = _nth(z, c, also, first), _nth(z, c, also, second)
    members = members_of(z, c, also, i, k, rng)
    side = np.empty(members.shape[0], np.int8)
    _begin(i, k, X, weights, kinds, starts, prior, two, tables, sizes)
    odds = _offset(eta, c, b)
    gain = -allocate(
        members, side, False, -np.inf, mass, odds, X, weights, kinds, starts, prior, two, tables, sizes, rng
    )
    n_second = 1
    new[i] = c
    new[k] = b
    if eta.shape[0] > 0:
        gain += weights[k] * odds[k]
    for m in range(members.shape[0]):
        r = members[m]
        new[r] = b if side[m] == 1 else c
        if side[m] == 1:
            n_second += 1
            if eta.shape[0] > 0:
                gain += weights[r] * odds[r]
    gain += np.log(n) + np.log(n - 1) - np.log(n_second) - np.log(n - n_second)
    gain += _log_target(0, sizes[0], kinds, starts, prior, eta, mass, mean, two)
    return gain + _log_target(1, sizes[1], kinds, starts, prior, eta, mass, mean, two)


@helper
def _reverse(z, a, b, n_a, n_b, least, X, weights, kinds, starts, prior, eta, mass, two, tables, sizes, rng):
    """Log probability of the split of classes a and b from their union, minus that of drawing its seeds."""
    i = _nth(z, a, a, int(rng.random() * n_a))
    k = _nth(z, b, b, int(rng.random() * n_b))
    members = members_of(z, a, b, i, k, rng)
    side = np.empty(members.shape[0], np.int8)
    for m in range(members.shape[0]):
        side[m] = z[members[m]] == b
    n = n_a + n_b
    seeds = np.log(n_a) + np.log(n_b) - np.log(n) - np.log(n - 1)
    _begin(i, k, X, weights, kinds, starts, prior, two, tables, sizes)
    return seeds + allocate(
        members, side, True, least - seeds, mass, _offset(eta, a, b), X, weights, kinds, starts, prior, two, tables,
        sizes, rng,
    )  # fmt: skip


@kernel(I8(I1_IN, I8, F2_IN, F1_IN, I1_IN, I1_IN, F1_IN, F2_IN, F8, F8, I4, F2, F2, F1, RNG))
def recombine(
    classes, splits_only, X, weights, kinds, starts, prior, eta, mass, mean, z, counts, tables, sizes, rng
):  # fmt: skip
    """Metropolis update of the labels of whole classes a, b and c, given as ``classes``; b differs from a and c.

    With ``splits_only`` 0, class b is merged into a, and class c (with b's rows, if a is c) is split into c and b. With
    ``splits_only`` 1, c is split if b is empty, or else b is merged into c; a is ignored. Splits allocate rows one
    after the other, as in `sk_sgmcmc.kernels.models.dirichlet_process.collapsed.split_merge`. Two seeds are drawn at
    random from the rows that are split; for a merger, the seeds of the reverse split are drawn from the two classes.

    Returns
    -------
    outcome : int
        `REJECTED`, or what was accepted: `MOVED` (mode 0), `SPLIT` or `MERGED`.
    """
    a, b, c = classes[0], classes[1], classes[2]
    if splits_only:
        a = c
    n_a = n_b = n_c = 0
    for r in range(z.shape[0]):
        n_a += z[r] == a
        n_b += z[r] == b
        n_c += z[r] == c
    merges = not splits_only or n_b > 0
    divides = not splits_only or n_b == 0
    also = b if merges and divides and a == c else c  # If a is c, the rows of both are split.
    n_split = n_c + (n_b if also == b else 0)
    if (merges and (n_a == 0 or n_b == 0)) or (divides and n_split < 2):
        return REJECTED
    log_ratio = -np.log(1.0 - rng.random())
    for k in (a, b):
        log_ratio -= _log_target(k, sizes[k], kinds, starts, prior, eta, mass, mean, counts)
    if c != a:
        log_ratio -= _log_target(c, sizes[c], kinds, starts, prior, eta, mass, mean, counts)
    n_stats = counts.shape[0]
    two, two_tables, two_sizes = np.zeros((n_stats, 2)), np.zeros((n_stats, 2)), np.zeros(2)
    one, new = np.zeros((n_stats, 1)), z.copy()
    one_size = 0.0
    if merges:
        for r in range(n_stats):
            one[r, 0] = counts[r, a] + counts[r, b]
        one_size = sizes[a] + sizes[b]
        for r in range(z.shape[0]):
            if z[r] == b:
                new[r] = a
                if eta.shape[0] > 0:
                    log_ratio += weights[r] * (eta[r, a] - eta[r, b])
        if a != c or not divides:
            log_ratio += _log_target(0, one_size, kinds, starts, prior, eta, mass, mean, one)
        if not divides and eta.shape[0] == 0:
            log_ratio += _log_prior(0.0, mass, mean)
    if divides:
        log_ratio += _divide(
            z, c, also, b, n_split, X, weights, kinds, starts, prior, eta, mass, mean, new, two, two_tables, two_sizes,
            rng,
        )  # fmt: skip
    if merges and log_ratio > 0.0:
        other, other_tables, other_sizes = np.zeros((n_stats, 2)), np.zeros((n_stats, 2)), np.zeros(2)
        log_ratio += _reverse(
            z, a, b, n_a, n_b, -log_ratio, X, weights, kinds, starts, prior, eta, mass, other, other_tables,
            other_sizes, rng,
        )  # fmt: skip
    if not log_ratio > 0.0:
        return REJECTED
    if merges:
        set_to(counts[:, a], one[:, 0])
        counts[:, b] = 0.0
        sizes[a] = one_size
        sizes[b] = 0.0
    if divides:
        set_to(counts[:, c], two[:, 0])
        set_to(counts[:, b], two[:, 1])
        sizes[c] = two_sizes[0]
        sizes[b] = two_sizes[1]
    for k in (a, b, c):
        refresh_slot(k, kinds, starts, prior, counts, tables)
    set_to(z, new)
    return MOVED if merges and divides else SPLIT if divides else MERGED
