"""Labels of rows given weights and components: the part of the slice sampler that reads rows.

Rows are sparse as in `collapsed`. Component j has the weight ``omega[j]``. The log density of a row under component j
is the sum of entries times ``log_cells[cells, j]``, plus ``log_base[j]``.
"""

import numpy as np
from numba import types

from ..._jit import F1, F1_IN, F2, F2_IN, F8, I1_IN, I8, OK, RNG, kernel, read_only, writable

I4_IN = read_only(types.int32, 1)
I4 = writable(types.int32, 1)


@kernel(I8(I1_IN, F1_IN, I1_IN, I4_IN, F1_IN, F2_IN, F1_IN, F1_IN, I4, RNG), fast_sums=True)
def draw_labels(rows, slices, indptr, cells, entries, log_cells, log_base, omega, z, rng):
    """Draw z[rows] from the components whose weight exceeds each row's slice.

    P(z_i = j) is proportional to 1[omega_j > slice_i] times the density of row i under j. If the slice is negative, it
    is proportional to omega_j times the density.
    """
    K = omega.shape[0]
    p = np.empty(K)
    for m in range(rows.shape[0]):
        i = rows[m]
        for j in range(K):
            p[j] = log_base[j]
        for e in range(indptr[i], indptr[i + 1]):
            w = cells[e]
            x = entries[e]
            for j in range(K):
                p[j] += x * log_cells[w, j]
        largest = -np.inf
        for j in range(K):
            if slices[m] < 0.0:
                p[j] += np.log(max(omega[j], 1e-300))
            elif omega[j] <= slices[m]:
                p[j] = -1e300
            largest = max(largest, p[j])
        total = 0.0
        for j in range(K):
            p[j] = np.exp(p[j] - largest)
            total += p[j]
        target = rng.random() * total
        new = 0
        for j in range(K):
            if p[j] > 0.0:
                new = j
                target -= p[j]
                if target < 0.0:
                    break
        z[i] = new
    return OK


@kernel(I8(I1_IN, F8, I1_IN, I4_IN, F1_IN, F1_IN, I4_IN, F2, F1))
def count_rows(rows, sign, indptr, cells, values, weights, z, counts, sizes):
    """Add rows, times ``sign``, to their clusters: values to ``counts`` (n_cells, K), weights to ``sizes``."""
    for i in rows:
        sizes[z[i]] += sign * weights[i]
        for e in range(indptr[i], indptr[i + 1]):
            counts[cells[e], z[i]] += sign * values[e]
    return OK
