"""Fast collapsed Gibbs sampling for LDA if all tokens have weight 1 and the word prior is one number.

The general method, for weights and any prior, is in ``any_tokens``.
"""

import numpy as np
from numba import types

from ..._jit import F1_IN, F2_IN, F8, I1, I1_IN, I8, OK, RNG, helper, kernel, writable
from ...math.lanes import GROUP, LANES, padded, pick, prefetch_row, raised, shift_of, weigh, weigh_heated
from ...math.random import GOLDEN, mix64
from .assignments import I4_IN, Z

I4_2, U2_2 = writable(types.int32, 2), writable(types.uint16, 2)

SHORT = 2**16  # number of tokens of a word or document from which on uint16 overflows
_AHEAD = np.uintp(6)  # tokens by which rows are prefetched
_LOW = np.uint64(0xFFFFFF)
_TO_UNIT = np.float32(2.0**-24)
_NO_SHARE, NO_DOC_COUNTS = np.empty(0), np.empty((0, 0), dtype=np.uint16)


@helper
def first_from(words, lo, hi, word):
    """The first of the tokens lo:hi, sorted by their words, whose word is at least ``word``; hi if there is none."""
    while lo < hi:
        middle = (lo + hi) >> np.uintp(1)
        if words[middle] < word:
            lo = middle + np.uintp(1)
        else:
            hi = middle
    return lo


def _sweep_by(heated=False, in_part=False):
    """The function that the kernels compile; code for ``power`` or for a part is included only if it is used."""

    def _sweep(
        start, stop, token_ptr, words, z, nwk, nk, alpha, group, beta, rng, power, first, end, share, doc_counts
    ):
        """Redraw the topic of every token of documents start:stop given all others.

        p(k) is proportional to (n_dk + alpha_k) (n_wk + beta) / (n_k + V beta), which is raised to ``power``, with an
        approximation, if ``heated``. The weights of all topics are computed, 16 at a time. Lists of the topics in use
        would be shorter, but the processor cannot predict where a search through them ends. The only unpredictable
        branch is whether the token keeps its topic. Another topic is drawn before this branch in any case, so that a
        wrong prediction costs little. If the token keeps its topic, nothing is written. Each document has its own
        random stream, seeded by ``rng``.

        In a part of the vocabulary, only tokens of the words first:end are redrawn, given the share of each topic's
        mass in this part. Then p(k) is proportional to
        (n_dk + alpha_k) share_k (n_wk + beta) / (n_k + (end - first) beta), where n_k counts only tokens of the part.
        Of other parts, only the counts of documents are read.

        Parameters
        ----------
        nwk : (n_words, width), see `table_of_counts`, changed in place
        nk : (n_topics,), sums of these counts over the words (of the part), changed in place
        alpha, group : (n_groups, n_topics), and the row of ``alpha`` for each document, (n_docs,)
        share : (n_topics,), like ``first`` and ``end`` used only in a part
        doc_counts : (n_docs, width), counts of the assignments, changed in place; counted here if it has no rows
        """
        n_topics = nk.size
        n_words, width = nwk.shape
        beta_mass = ((end - first) if in_part else n_words) * beta
        shift = shift_of(power)
        b = np.float32(beta)
        one = np.float32(1.0)
        # 1 / (n_k + V beta), also with one token less and one more, so that no draw waits for a division.
        inverse = np.zeros(width, np.float32)
        less = np.zeros(width, np.float32)
        more = np.zeros(width, np.float32)
        prior = np.zeros(width, np.float32)
        n_doc = np.zeros(width, np.float32)
        factor = np.zeros(width, np.float32)
        running = np.full((width + GROUP - 1) // GROUP * GROUP, np.inf, np.float32)
        ends = np.zeros(LANES, np.float32)
        for k in range(n_topics):
            mass = share[k] if in_part else 1.0
            less[k] = mass / (nk[k] - 1 + beta_mass)
            inverse[k] = mass / (nk[k] + beta_mass)
            more[k] = mass / (nk[k] + 1 + beta_mass)
        last = np.uintp(token_ptr[stop] - 1)
        g = -1
        for d in range(start, stop):
            # All indices are unsigned, because a signed index costs a test for negative values.
            lo = np.uintp(token_ptr[d])
            hi = np.uintp(token_ptr[d + 1])
            first_token, end_token = lo, hi
            if in_part:
                first_token = first_from(words, lo, hi, first)
                end_token = first_from(words, first_token, hi, end)
                last = end_token - np.uintp(1)
            if first_token == end_token:
                continue  # Do not draw a number from ``rng``.
            if group[d] != g:
                g = group[d]
                for k in range(n_topics):
                    prior[k] = alpha[g, k]
            if in_part and doc_counts.shape[0] > 0:
                for k in range(width):
                    n_doc[k] = doc_counts[d, k]
            else:
                for i in range(lo, hi):
                    n_doc[z[i]] += one
            for k in range(width):
                factor[k] = (n_doc[k] + prior[k]) * inverse[k]
            counter = mix64(np.uint64(rng.random() * 2.0**53))
            for i in range(first_token, end_token):
                prefetch_row(nwk, np.int64(words[min(np.uintp(i) + _AHEAD, last)]))
                w = np.uintp(words[i])
                old = np.uintp(z[i])
                counter += GOLDEN
                bits = mix64(counter)
                u = np.float32(np.int64(bits >> np.uint64(40))) * _TO_UNIT
                factor_old = (n_doc[old] - one + prior[old]) * less[old]
                p = factor_old * (np.float32(nwk[w, old] - 1) + b)
                if heated:
                    p = raised(p, power, shift)
                    others = weigh_heated(nwk, np.int64(w), factor, b, np.int64(old), running, ends, power, shift)
                else:
                    others = weigh(nwk, np.int64(w), factor, b, np.int64(old), running, ends)
                u *= others + p
                within = np.float32(np.int64((bits >> np.uint64(16)) & _LOW)) * _TO_UNIT
                new = np.uintp(pick(running, ends, width, u - p, within))
                if u < p or new >= np.uintp(n_topics):  # The latter occurs by rounding, or if all weights are 0.
                    continue
                z[i] = new
                c = n_doc[new] + one
                factor[old] = factor_old
                factor[new] = (c + prior[new]) * more[new]
                n_doc[old] -= one
                n_doc[new] = c
                nwk[w, old] -= 1
                nwk[w, new] += 1
                n = nk[old] - 1
                nk[old] = n
                more[old] = inverse[old]
                inverse[old] = less[old]
                less[old] = (share[old] if in_part else 1.0) / (n - 1 + beta_mass)
                n = nk[new] + 1
                nk[new] = n
                less[new] = inverse[new]
                inverse[new] = more[new]
                more[new] = (share[new] if in_part else 1.0) / (n + 1 + beta_mass)
            if in_part and doc_counts.shape[0] > 0:
                for k in range(width):
                    doc_counts[d, k] = np.uint16(n_doc[k])
                    n_doc[k] = 0.0
            else:
                for i in range(lo, hi):
                    n_doc[z[i]] = 0.0
        return OK

    return _sweep


def _signature(table):
    of_part = I8, I8, F1_IN, U2_2
    return I8(I8, I8, I1_IN, I4_IN, Z, table, I1, F2_IN, I1_IN, F8, RNG, types.float32, *of_part)


# One kernel for each type of counts, without tempering, with tempering, or for a part of the vocabulary.
sweep_short = kernel(_signature(U2_2), name="sweep_short")(_sweep_by())
sweep_long = kernel(_signature(I4_2), name="sweep_long")(_sweep_by())
sweep_short_heated = kernel(_signature(U2_2), name="sweep_short_heated")(_sweep_by(heated=True))
sweep_long_heated = kernel(_signature(I4_2), name="sweep_long_heated")(_sweep_by(heated=True))
sweep_short_in_part = kernel(_signature(U2_2), name="sweep_short_in_part")(_sweep_by(in_part=True))
sweep_long_in_part = kernel(_signature(I4_2), name="sweep_long_in_part")(_sweep_by(in_part=True))


@kernel(I8(I8, I8, I1_IN, Z, U2_2))
def count_in_documents(start, stop, token_ptr, z, doc_counts):
    """Count the topics of documents start:stop, of fewer than 2^16 tokens each, in ``doc_counts`` (n_docs, width)."""
    for d in range(start, stop):
        for k in range(doc_counts.shape[1]):
            doc_counts[d, k] = 0
        for i in range(token_ptr[d], token_ptr[d + 1]):
            doc_counts[d, z[i]] += np.uint16(1)
    return OK


KERNELS = (
    sweep_short, sweep_long, sweep_short_heated, sweep_long_heated, sweep_short_in_part, sweep_long_in_part,
    count_in_documents,
)  # fmt: skip


def table_of_counts(counts):
    """The table of counts for the kernels, (n_words, width), from counts (n_words, n_topics); padded with zeros.

    The dtype is uint16 if every word has fewer than 2^16 tokens in total, else int32.
    """
    short = counts.sum(axis=1).max(initial=0) < SHORT
    table = np.zeros((counts.shape[0], padded(counts.shape[1])), dtype=np.uint16 if short else np.int32)
    table[:, : counts.shape[1]] = counts
    return table


def sweep(start, stop, token_ptr, words, z, table, nk, alpha, group, beta, rng, temperature=1.0):
    """Redraw the topics of documents start:stop by the kernel for this table; arguments are as for `_sweep_by`.

    Above a temperature of 1, sweeps sample a flatter distribution than the posterior, which is for burn-in only.
    """
    kinds = (sweep_short, sweep_short_heated) if table.dtype == np.uint16 else (sweep_long, sweep_long_heated)
    args = start, stop, token_ptr, words, z, table, nk, alpha, group, beta, rng
    return kinds[temperature > 1.0](*args, np.float32(1.0 / temperature), 0, len(table), _NO_SHARE, NO_DOC_COUNTS)


def sweep_part(start, stop, token_ptr, words, z, table, nk, alpha, group, beta, rng, first, end, share, doc_counts):
    """Redraw the tokens of the words first:end in documents start:stop; arguments are as for `_sweep_by`.

    Words must be sorted within each document.
    """
    sweep_it = sweep_short_in_part if table.dtype == np.uint16 else sweep_long_in_part
    args = start, stop, token_ptr, words, z, table, nk, alpha, group, beta, rng
    return sweep_it(*args, np.float32(1.0), first, end, share, doc_counts)
