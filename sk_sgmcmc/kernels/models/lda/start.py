"""A fast start for count topic models: one pass of online EM, and merging of topics.

Nothing here is a sampler. It computes an assignment of all tokens, before burn-in. From this start, a chain needs tens
of sweeps less than from a random assignment.
"""

import numpy as np
from numba import types

from ..._jit import BOOL, F1, F1_IN, F2_IN, F8, I1_IN, I8, OK, RNG, helper, kernel, read_only, writable
from ...math.arrays import set_to

BLOCK = 16  # number of topics whose weights are summed before the search for one of them
_GAP = 128  # entries before and after the buffer

F4_1 = writable(types.float32, 1)
F4_2 = writable(types.float32, 2)
F4_2_IN = read_only(types.float32, 2)
I4_IN = read_only(types.int32, 1)
U2_1 = writable(types.uint16, 1)
B1 = writable(BOOL, 1)


@helper
def isolated_buffer(n):
    """An array of float32 that is far from any other array in memory.

    A compiled loop that sums and also writes takes another path, with different rounding, if the array it writes begins
    within a few vectors behind the array it reads. Whether small arrays do so depends on which memory happens to be
    free.
    """
    return np.empty(n + 2 * _GAP, np.float32)[_GAP : _GAP + n]


@kernel(
    I8(I8, I8, I1_IN, I8, I1_IN, I4_IN, F1_IN, F4_2, F1, F1, F1, F2_IN, I1_IN, F8, F8, F8, F8, F8, U2_1, RNG),
    fast_sums=True,
)
def soft_pass(
    start,
    stop,
    order,
    n_updates,
    token_ptr,
    words,
    weights,
    raw,
    mass,
    scale,
    seen,
    alpha,
    group,
    beta,
    total,
    window,
    growth,
    unit,
    z,
    rng,
):
    """One pass over documents order[start:stop]: EM for a document's proportions, then a decayed step of the topics.

    ``raw * scale[0]`` (n_words, n_topics) contains the expected counts of the whole corpus (``total`` tokens), and
    ``mass`` their column sums. ``alpha`` (n_groups, n_topics) contains the document priors, and ``group`` the row for
    each document. The step size is (tokens of the document) / (memory), where the memory grows from ``window`` tokens
    as (1 + seen / (10 unit))**growth. The decay is applied to ``scale`` alone, so the words that a document lacks cost
    nothing. Equal words of a document are adjacent. If ``z`` (n_tokens,) is not empty, the topic of every token is also
    drawn in proportion to its expectations.
    """
    V, K = raw.shape
    n_blocks = (K + BLOCK - 1) // BLOCK
    assigns = z.shape[0] > 0
    expected, block = isolated_buffer(K), isolated_buffer(n_blocks)
    weighted = weights.shape[0] > 0
    vb, b32 = V * beta, np.float32(beta)
    longest = 1
    for b in range(start, stop):
        d = order[b]
        longest = max(longest, token_ptr[d + 1] - token_ptr[d])
    ids, cnt = np.empty(longest, np.int32), isolated_buffer(longest)
    a, share, own, inv, prior = (
        isolated_buffer(K),
        isolated_buffer(K),
        isolated_buffer(K),
        isolated_buffer(K),
        isolated_buffer(K),
    )
    if start < stop:
        set_to(prior, alpha[group[order[start]]])
    for b in range(start, stop):
        d = order[b]
        lo, hi = token_ptr[d], token_ptr[d + 1]
        if lo == hi:
            continue
        if alpha.shape[0] > 1:
            set_to(prior, alpha[group[d]])
        n = 0
        length = 0.0
        for i in range(lo, hi):
            weight = weights[i] if weighted else 1.0
            length += weight
            if n > 0 and words[i] == ids[n - 1]:
                cnt[n - 1] += weight
            else:
                ids[n] = words[i]
                cnt[n] = weight
                n += 1
        s = scale[0]
        s32 = np.float32(s)
        total_prior, is_flat = 0.0, True
        for k in range(K):
            inv[k] = 1.0 / (mass[k] + vb)
            own[k] = length / K
            total_prior += prior[k]
            is_flat = is_flat and prior[k] == prior[0]
        if not is_flat:  # A document begins without the topics that its prior excludes.
            for k in range(K):
                own[k] = length * prior[k] / total_prior
        for _ in range(n_updates):
            base = np.float32(0)
            for k in range(K):
                t = (own[k] + prior[k]) * inv[k]
                base += t
                a[k] = t * s32
                share[k] = 0
            base *= b32
            spread = np.float32(0)
            for j in range(n):
                w = np.uintp(ids[j])
                p = np.float32(0)
                for k in range(K):
                    p += a[k] * raw[w, k]
                r = cnt[j] / (p + base)
                spread += r
                for k in range(K):
                    share[k] += r * raw[w, k]
            spread *= b32
            for k in range(K):
                own[k] = (own[k] + prior[k]) * inv[k] * (s32 * share[k] + spread)
        memory = window * (1.0 + seen[0] / (10.0 * unit)) ** growth
        rho = min(length / memory, 0.5)
        seen[0] += length
        kept = s * (1 - rho)
        gain = np.float32(rho * total / length / kept)
        base = np.float32(0)
        for k in range(K):
            t = (own[k] + prior[k]) * inv[k]
            base += t
            a[k] = t
            share[k] = 0
        base *= b32
        token = lo
        for j in range(n):
            w = np.uintp(ids[j])
            p = np.float32(0)
            for k in range(K):
                p += a[k] * raw[w, k]
            r = cnt[j] / (p * s32 + base)
            for k in range(K):
                x = r * a[k] * (raw[w, k] * s32 + b32)
                expected[k] = x
                share[k] += x
                raw[w, k] += gain * x
            if assigns:
                for i in range(n_blocks):
                    t = np.float32(0)
                    for k in range(i * BLOCK, min(i * BLOCK + BLOCK, K)):
                        t += expected[k]
                    block[i] = t
                while token < hi and words[token] == ids[j]:
                    u = np.float32(rng.random()) * cnt[j]
                    i = 0
                    while i < n_blocks - 1 and u >= block[i]:
                        u -= block[i]
                        i += 1
                    k = i * BLOCK
                    last = min(k + BLOCK, K) - 1
                    while k < last:
                        u -= expected[k]
                        if u < 0:
                            break
                        k += 1
                    z[token] = k
                    token += 1
        for k in range(K):
            mass[k] = mass[k] * (1 - rho) + rho * total / length * share[k]
        scale[0] = kept
        if kept < 1e-12:  # Rescale before float32 overflows.
            f = np.float32(kept)
            for w in range(V):
                for k in range(K):
                    raw[w, k] *= f
            scale[0] = 1.0
    return OK


@helper(fast_sums=True)
def _merge_cost(roots, n, i, j):
    t = np.float32(0)
    for w in range(roots.shape[1]):
        t += roots[i, w] * roots[j, w]
    return n[i] * n[j] / (n[i] + n[j]) * max(0.0, 1.0 - t / np.sqrt(n[i] * n[j]))


@kernel(I8(F4_2, F1, I8, I8, B1), fast_sums=True)
def merge_topics(counts, n, n_left, n_fixed, alive):
    """Merge the cheapest pair of topics (rows of ``counts``, sums ``n``) until ``n_left`` are alive.

    The first ``n_fixed`` (at most ``n_left``) topics stay. Others may be merged into them, but they are not merged with
    each other.

    The cost is the squared Hellinger distance, weighted as in Ward's method. It is close to the information lost, and
    needs no logarithms. Starting with twice the number of topics and merging them avoids poor local optima.
    """
    K1, V = counts.shape
    roots, cost = np.empty((K1, V), np.float32), np.empty((K1, K1))
    for i in range(K1):
        alive[i] = True
        for w in range(V):
            roots[i, w] = np.sqrt(counts[i, w])
        for j in range(K1):
            cost[i, j] = np.inf
    for i in range(n_fixed, K1):
        for j in range(i):
            cost[i, j] = _merge_cost(roots, n, i, j)
    for _ in range(K1 - n_left):
        best, gone, stays = np.inf, 1, 0
        for i in range(K1):
            for j in range(i):
                if cost[i, j] < best:
                    best, gone, stays = cost[i, j], i, j
        for w in range(V):
            counts[stays, w] += counts[gone, w]
            roots[stays, w] = np.sqrt(counts[stays, w])
        n[stays] += n[gone]
        alive[gone] = False
        for i in range(K1):
            cost[gone, i] = cost[i, gone] = 1e300
        for i in range(K1):
            if alive[i] and i != stays and max(i, stays) >= n_fixed:
                cost[max(i, stays), min(i, stays)] = _merge_cost(roots, n, stays, i)
    return OK
