"""Splits and merges of clusters: the parts that do not depend on what the rows are.

Clusters occupy slots, the columns of ``counts`` and the entries of ``sizes``, which is 0 for a free slot. ``z``
contains the slot of each row. All slots in use are below ``state[0]``; ``state[1]`` is their number.
"""

from math import lgamma

import numpy as np

from .._jit import helper
from ..math.arrays import set_to


@helper
def unite(counts, sizes, one, one_size):
    """Write the union of two clusters, the columns of ``counts``, to ``one``."""
    for r in range(counts.shape[0]):
        one[r, 0] = counts[r, 0] + counts[r, 1]
    one_size[0] = sizes[0] + sizes[1]


@helper
def log_prior_split(concentration, mean, sizes, united):
    """Log prior ratio of two clusters to their union, of size ``united``, to the power of the rows' mean weight."""
    ratio = np.log(concentration) + lgamma(sizes[0] / mean) + lgamma(sizes[1] / mean) - lgamma(united / mean)
    return ratio * mean


@helper
def members_of(z, a, b, i, k, rng):
    """Rows of the clusters a and b, which may be the same, without rows i and k, in random order."""
    n = 0
    for r in range(z.shape[0]):
        if (z[r] == a or z[r] == b) and r != i and r != k:
            n += 1
    members = np.empty(n, np.int64)
    n = 0
    for r in range(z.shape[0]):
        if (z[r] == a or z[r] == b) and r != i and r != k:
            j = int(rng.random() * (n + 1))  # Members are shuffled as they are collected.
            members[n] = members[j]
            members[j] = r
            n += 1
    return members


@helper
def split(a, k, members, side, two, two_sizes, z, counts, sizes, state):
    """Replace cluster a by the columns of ``two``; row k and members of side 1 go to a free slot, which is returned."""
    free = 0
    while sizes[free] > 0.0:
        free += 1
    set_to(counts[:, a], two[:, 0])
    set_to(counts[:, free], two[:, 1])
    sizes[a] = two_sizes[0]
    sizes[free] = two_sizes[1]
    z[k] = free
    for m in range(members.shape[0]):
        if side[m] == 1:
            z[members[m]] = free
    state[0] = max(state[0], free + 1)
    state[1] += 1
    return free


@helper
def merge(a, b, k, members, one, one_size, z, counts, sizes, state):
    """Replace clusters a and b by their union ``one`` in slot a; slot b is free afterwards."""
    set_to(counts[:, a], one[:, 0])
    counts[:, b] = 0.0
    sizes[a] = one_size[0]
    sizes[b] = 0.0
    z[k] = a
    for m in range(members.shape[0]):
        z[members[m]] = a
    state[1] -= 1
