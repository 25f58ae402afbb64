"""Dirichlet-process mixtures of rows with columns of several kinds: sweeps of labels, splits and merges.

Rows, kinds, ``starts``, ``prior``, ``counts``, ``tables`` and ``weights`` are as in
`sk_sgmcmc.kernels.models.mixed_rows`. Clusters occupy slots, and ``sizes`` is 0 for a free slot, as in `collapsed`.
"""

import numpy as np
from numba import types

from ..._jit import F1, F1_IN, F2, F2_IN, F8, I1, I1_IN, I8, RNG, helper, kernel, writable
from ...math.arrays import set_to
from ..mixed_rows import (
    add_log_predictives,
    add_row,
    allocate,
    draw_label,
    log_marginal,
    refresh_row,
    refresh_slot,
)
from ..split_merge import log_prior_split, members_of, merge, split, unite

I4 = writable(types.int32, 1)


@kernel(I8(I1_IN, I8, F2_IN, F1_IN, I1_IN, I1_IN, F1_IN, F8, I4, F2, F2, F1, I1, RNG))
def sweep_rows(
    rows, first, X, weights, kinds, starts, prior, concentration, z, counts, tables, sizes, state, rng
):  # fmt: skip
    """Redraw the labels of rows[first:], as `collapsed.sweep_rows`."""
    n_slots = sizes.shape[0]
    logs = np.empty(n_slots)
    top = state[0]
    n_active = state[1]
    done = first
    free = 0
    while free < n_slots and sizes[free] > 0.0:
        free += 1
    if free < n_slots:
        counts[:, free] = 0.0
        refresh_slot(free, kinds, starts, prior, counts, tables)
    while done < rows.shape[0]:
        if free >= n_slots:
            break
        i = rows[done]
        old = np.intp(z[i])
        if old >= 0:
            add_row(i, -1.0, old, X, weights, kinds, starts, counts, sizes)
            if sizes[old] <= 0.0:
                sizes[old] = 0.0
                counts[:, old] = 0.0  # sums of continuous cells leave rounding errors
                n_active -= 1
                free = min(free, old)
                refresh_slot(old, kinds, starts, prior, counts, tables)
            else:
                refresh_row(i, old, X, kinds, starts, prior, counts, tables)
        while top > 0 and sizes[top - 1] == 0.0:
            top -= 1
        end = max(top, free + 1)
        for k in range(end):
            logs[k] = np.log(sizes[k]) if sizes[k] > 0.0 else -np.inf
        logs[free] = np.log(concentration)
        add_log_predictives(i, end, X, kinds, starts, tables, logs)
        new = draw_label(logs, end, rng)
        if sizes[new] == 0.0:
            n_active += 1
        add_row(i, 1.0, new, X, weights, kinds, starts, counts, sizes)
        refresh_row(i, new, X, kinds, starts, prior, counts, tables)
        top = max(top, new + 1)
        z[i] = new
        moved = False
        while free < n_slots and sizes[free] > 0.0:
            free += 1
            moved = True
        if moved and free < n_slots:
            counts[:, free] = 0.0
            refresh_slot(free, kinds, starts, prior, counts, tables)
        done += 1
    state[0] = top
    state[1] = n_active
    return done


@helper
def _log_split(concentration, mean, kinds, starts, prior, counts, sizes, one, one_size):
    """Log posterior ratio of two clusters, the columns of ``counts``, to their union, which is written to ``one``."""
    unite(counts, sizes, one, one_size)
    log_ratio = log_prior_split(concentration, mean, sizes, one_size[0])
    log_ratio += log_marginal(0, kinds, starts, prior, counts) + log_marginal(1, kinds, starts, prior, counts)
    return log_ratio - log_marginal(0, kinds, starts, prior, one)


@kernel(I8(I1_IN, F2_IN, F1_IN, I1_IN, I1_IN, F1_IN, F8, F8, I4, F2, F2, F1, I1, RNG))
def split_merge(
    pair, X, weights, kinds, starts, prior, concentration, mean, z, counts, tables, sizes, state, rng
):  # fmt: skip
    """Metropolis update that proposes a split or a merge, chosen by a ``pair`` of rows, as `collapsed.split_merge`.

    A slot must be free. All rows of the clusters must be in ``z``: there are no counts of earlier blocks.
    """
    i = pair[0]
    k = pair[1]
    if i == k or z[i] < 0 or z[k] < 0:
        return 0
    a = np.intp(z[i])
    b = np.intp(z[k])
    bar = np.log(1.0 - rng.random())
    n_stats = counts.shape[0]
    two, two_tables, two_sizes = np.zeros((n_stats, 2)), np.zeros((n_stats, 2)), np.zeros(2)
    one, one_size = np.zeros((n_stats, 1)), np.zeros(1)
    least = -np.inf
    if a != b:
        set_to(two[:, 0], counts[:, a])
        set_to(two[:, 1], counts[:, b])
        two_sizes[0] = sizes[a]
        two_sizes[1] = sizes[b]
        least = bar + _log_split(concentration, mean, kinds, starts, prior, two, two_sizes, one, one_size)
        if least >= 0.0:
            return 0
        two[:] = 0.0
        two_sizes[:] = 0.0
    members = members_of(z, a, b, i, k, rng)
    side = np.empty(members.shape[0], np.int8)
    for m in range(members.shape[0]):
        side[m] = z[members[m]] != a
    add_row(i, 1.0, 0, X, weights, kinds, starts, two, two_sizes)
    add_row(k, 1.0, 1, X, weights, kinds, starts, two, two_sizes)
    refresh_slot(0, kinds, starts, prior, two, two_tables)
    refresh_slot(1, kinds, starts, prior, two, two_tables)
    log_q = allocate(
        members, side, a != b, least, 0.0, np.empty(0), X, weights, kinds, starts, prior, two, two_tables, two_sizes,
        rng,
    )  # fmt: skip
    if a == b:
        if bar >= _log_split(concentration, mean, kinds, starts, prior, two, two_sizes, one, one_size) - log_q:
            return 0
        b = split(a, k, members, side, two, two_sizes, z, counts, sizes, state)
        outcome = 1
    else:
        if least >= log_q:
            return 0
        merge(a, b, k, members, one, one_size, z, counts, sizes, state)
        outcome = 2
    refresh_slot(a, kinds, starts, prior, counts, tables)
    refresh_slot(b, kinds, starts, prior, counts, tables)
    return outcome
