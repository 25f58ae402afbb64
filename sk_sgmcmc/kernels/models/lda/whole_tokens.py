"""Collapsed Gibbs sampling for LDA if all tokens weigh 1 and the topics' prior is one number: the fast method.

The general method, for weights and any prior, is in ``collapsed``.
"""

import numpy as np
from numba import types

from ..._jit import F2_IN, F8, I1, I1_IN, I8, OK, RNG, kernel, writable
from .assignments import I4_IN, Z

BLOCK = 16  # topics whose weights are kept summed for each word
I4_2 = writable(types.int32, 2)
F4_1 = writable(types.float32, 1)
F4_2 = writable(types.float32, 2)


@kernel(I8(I8, I8, I1_IN, I4_IN, Z, I4_2, I1, F2_IN, I1_IN, F8, F4_1, I1, I1, F4_2, RNG), fast_sums=True)
def sweep_whole_tokens(start, stop, token_ptr, words, z, nwk, nk, alpha, group, beta, inv, clock, stamp, tails, rng):
    """Redraw the topic of every token of documents start:stop given all others.

    p(k) is (n_dk + alpha_k)(n_wk + beta) / (n_k + V beta). The part with n_dk is summed over the document's few topics.
    The part with alpha_k is kept for each word, in blocks of 16 topics, and updated with every change; this requires
    fixed normalisers, so they are frozen for ``clock[2]`` tokens, and a Metropolis-Hastings step on the two topics
    concerned (which almost never rejects) corrects them. That is exact for normalisers that stay fixed; freezing them
    anew from the present state is adaptation, an error of order 1/n_k, and belongs to burn-in. The token's present
    topic comes first in the inverse distribution function: if it is kept, nothing is written, and the sum over topics
    serves the next token of the same word.

    Parameters
    ----------
    nwk, nk : (n_words, n_topics) int32 and (n_topics,), the counts of all tokens, changed in place
    alpha, group : (n_groups, n_topics), and its row for each document, (n_docs,); documents of one group should be
        adjacent, since the sums for a word are recomputed for another group
    inv : (n_topics,) float32, 1 / (n_k + V beta) when last frozen
    clock : (4,) number of the freeze, tokens since, tokens for which it holds, and whether ``inv`` is then recomputed
        (1) or stays (0) and only the sums are recomputed; ``clock[1] = clock[2]`` requests that at once
    stamp : (n_words,) the freeze and group for which a row of ``tails`` was computed
    tails : (n_words, n_blocks + 1) float32, the alpha part of each word by blocks, and its sum
    """
    K = nk.size
    V = nwk.shape[0]
    nb = (K + BLOCK - 1) // BLOCK
    vb = V * beta
    b32 = np.float32(beta)
    one = np.float32(1)
    lk = np.empty(K, np.uint16)
    lc = np.empty(K, np.int32)
    lw = np.empty(K, np.float32)
    pos = np.full(K, -1, np.int32)
    ai = np.empty(nb * BLOCK, np.float32)
    ai[:] = 0
    g = -1
    for d in range(start, stop):
        lo = token_ptr[d]
        hi = token_ptr[d + 1]
        if clock[1] >= clock[2]:
            clock[0] += 1
            clock[1] = 0
            g = -1
            if clock[3] != 0:
                for k in range(K):
                    inv[k] = 1.0 / (nk[k] + vb)
        if group[d] != g:
            g = group[d]
            for k in range(K):
                ai[k] = alpha[g, k] * inv[k]
        clock[1] += hi - lo
        version = clock[0] * alpha.shape[0] + g
        n = 0
        for i in range(lo, hi):
            k = z[i]
            j = pos[k]
            if j < 0:
                pos[k] = n
                lk[n] = k
                lc[n] = 1
                n += 1
            else:
                lc[j] += 1
        for j in range(n):
            lw[j] = lc[j] * inv[lk[j]]
        prev = np.uintp(V)
        changed = True
        s = np.float32(0)
        for i in range(lo, hi):
            w = np.uintp(words[i])
            old = np.uintp(z[i])
            if stamp[w] != version:
                stamp[w] = version
                q = np.float32(0)
                for b in range(nb):
                    t = np.float32(0)
                    for k in range(b * BLOCK, min(b * BLOCK + BLOCK, K)):
                        t += ai[k] * (np.float32(nwk[w, k]) + b32)
                    tails[w, b] = t
                    q += t
                tails[w, nb] = q
            if w != prev or changed:
                s = np.float32(0)
                for j in range(n):
                    s += lw[j] * (np.float32(nwk[w, lk[j]]) + b32)
                prev = w
                changed = False
            u = np.float32(rng.random())
            jo = np.int64(pos[old])
            nw = np.float32(nwk[w, old]) + b32
            p = (lw[jo] - inv[old]) * (nw - one)
            u *= s - lw[jo] * nw + p + tails[w, nb] - ai[old]
            if u < p:
                continue
            u -= p
            new = old
            for j in range(n):
                if j != jo:
                    u -= lw[j] * (np.float32(nwk[w, lk[j]]) + b32)
                    if u < 0:
                        new = np.uintp(lk[j])
                        break
            if u >= 0:
                b = 0
                bo = np.int64(old >> 4)
                while b < nb - 1:
                    t = tails[w, b]
                    if b == bo:
                        t -= ai[old]
                    if u < t:
                        break
                    u -= t
                    b += 1
                k = b * BLOCK
                end = min(k + BLOCK, K) - 1
                while k < end:
                    t = ai[k] * (np.float32(nwk[w, k]) + b32)
                    if k == old:
                        t -= ai[k]
                    u -= t
                    if u < 0:
                        break
                    k += 1
                new = np.uintp(k)
            if new == old:
                continue
            # frozen normalisers are proposals only
            ro = (nk[old] - 1 + vb) * inv[old]
            rn = (nk[new] + vb) * inv[new]
            if ro < rn and rng.random() * rn >= ro:
                continue
            nwk[w, old] -= 1
            nk[old] -= 1
            tails[w, old >> 4] -= ai[old]
            tails[w, nb] -= ai[old]
            c = lc[jo] - 1
            lc[jo] = c
            lw[jo] = c * inv[old]
            if c == 0:
                n -= 1
                last = lk[n]
                lk[jo] = last
                lc[jo] = lc[n]
                lw[jo] = lw[n]
                pos[last] = jo
                pos[old] = -1
            changed = True
            z[i] = new
            nwk[w, new] += 1
            nk[new] += 1
            tails[w, new >> 4] += ai[new]
            tails[w, nb] += ai[new]
            jj = pos[new]
            if jj < 0:
                pos[new] = n
                lk[n] = new
                lc[n] = 1
                lw[n] = inv[new]
                n += 1
            else:
                c = lc[jj] + 1
                lc[jj] = c
                lw[jj] = c * inv[new]
        for j in range(n):
            pos[lk[j]] = -1
    return OK
