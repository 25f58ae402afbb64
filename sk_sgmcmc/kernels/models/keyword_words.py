"""Collapsed Gibbs sampling for topics of which some have keywords: their tokens are drawn from one of two columns.

A topic with keywords has a column of all words and a column of its keywords. A token of the topic comes from the latter
with a probability pi_k ~ Beta(strength of the keywords, strength of all words), which is integrated out. Topic and
column of a token are redrawn together. Other topics have one column. Words may differ between groups of documents.
"""

import numpy as np
from numba import types

from .._jit import F1, F1_IN, F2, F2_IN, F3, I1_IN, I8, RNG, helper, kernel, read_only, writable
from ..math.lanes import GROUP, LANES, pick, prefetch_row, weigh_scaled
from ..math.random import GOLDEN, mix64
from .group_words import NOTHING
from .lda.assignments import I4_IN, Z

U2_3, I4_1_IN = writable(types.uint16, 3), read_only(types.int32, 1)
F4_2_IN, F4_3_IN = (read_only(types.float32, n) for n in (2, 3))

_AHEAD = np.uintp(6)  # tokens by which rows are prefetched
_LOW = np.uint64(0xFFFFFF)
_TO_UNIT = np.float32(2.0**-24)


@helper
def _of_words(mass, offset, pull, entry):
    """The factor that the weights of all words of a column have in common, given the sum of its counts."""
    return pull / (mass + offset) if mass > NOTHING else entry


@helper
def _of_column(own, other, strength, j, t):
    """The probability of column j given the topic, whose other column is t, and the tokens of both."""
    if j == t:
        return 1.0
    return (own + strength[j]) / (own + other + strength[j] + strength[t])


@helper
def _factor(j, t, n_doc, prior, mass, total, offset, pull, entry, strength):
    """What multiplies the weight of a word in column j."""
    words = _of_words(mass[j], offset[j], pull[j], entry[j])
    return np.float32((n_doc[j] + prior[j]) * words * _of_column(total[j], total[t], strength, j, t))


def _sweep(
    start, stop, token_ptr, words, weights, z, columns, tables, masses, total, topic, twin, strength, alpha, group,
    word_group, kappa, scales, offset, pulls, entries, rng, rate, auxiliary,
):  # fmt: skip
    """Redraw topic and column of every token of documents start:stop given all others.

    The weight of column j, which belongs to topic k, for a token of word w in a document of group g is
    (n_dk + alpha_k) (n_gwj + kappa_wj) scale_gwj pull_gj / (n_gj + offset_j) times the share of the column in the
    topic, (n_j + strength_j) / (n_k + strengths), with all counts without the token. Where n_gj is 0, the factor
    pull / (n + offset) is entry_gj.

    Parameters
    ----------
    weights : (n_tokens,), or (0,) if all tokens weigh 1
    z, columns : (n_tokens,), topic and column of each token, changed in place
    tables, masses : (n_groups, n_words, width) and (n_groups, width)
        Counts of the columns in each group, and their sums over words, changed in place.
    total : (width,), sums of the masses over groups, changed in place
    topic, twin : (width,), the topic of each column, -1 beyond the last one; and the other column of its topic, which
        is the column itself if there is none
    strength : (width,)
    alpha, group : (n_priors, n_topics), and the row of ``alpha`` for each document, (n_docs,)
    word_group : (n_docs,), the group of documents
    kappa, scales : (n_words, width) and (n_groups, n_words, width) float32
    offset, pulls, entries : (width,), (n_groups, width) and (n_groups, width)
    rate, auxiliary : (n_priors, n_topics) and (n_docs,), or None and None
        With them, ``alpha`` contains the shapes of a scaled Dirichlet distribution, and the weight of topic k is also
        divided by rate_k + auxiliary_d.
    """
    width = kappa.shape[1]
    weighted = weights.shape[0] > 0
    prior, n_doc, share = np.zeros(width), np.zeros(width), np.ones(width)
    factor = np.zeros(width, np.float32)
    running = np.full((width + GROUP - 1) // GROUP * GROUP, np.inf, np.float32)
    ends = np.zeros(LANES, np.float32)
    last = np.uintp(token_ptr[stop] - 1)
    weight = 1.0
    for d in range(start, stop):
        lo, hi = np.uintp(token_ptr[d]), np.uintp(token_ptr[d + 1])
        if lo == hi:
            continue
        table, mass, scale = tables[word_group[d]], masses[word_group[d]], scales[word_group[d]]
        pull, entry = pulls[word_group[d]], entries[word_group[d]]
        for j in range(width):
            if topic[j] >= 0:
                prior[j] = alpha[group[d], topic[j]]
                if auxiliary is not None:
                    share[j] = (1.0 + auxiliary[d]) / (rate[group[d], topic[j]] + auxiliary[d])
                    prior[j] *= share[j]
                n_doc[j] = 0.0
        for i in range(lo, hi):
            own = share[columns[i]] * (weights[i] if weighted else 1.0)
            n_doc[columns[i]] += own
            if twin[columns[i]] != columns[i]:
                n_doc[twin[columns[i]]] += own
        for j in range(width):
            if topic[j] >= 0:
                factor[j] = _factor(j, twin[j], n_doc, prior, mass, total, offset, pull, entry, strength)
        counter = mix64(np.uint64(rng.random() * 2.0**53))
        for i in range(lo, hi):
            ahead = np.int64(words[min(np.uintp(i) + _AHEAD, last)])
            prefetch_row(table, ahead)
            prefetch_row(kappa, ahead)
            prefetch_row(scale, ahead)
            w, old = np.int64(words[i]), np.int64(columns[i])
            t = np.int64(twin[old])
            counter += GOLDEN
            bits = mix64(counter)
            u = np.float32(np.int64(bits >> np.uint64(40))) * _TO_UNIT
            if weighted:
                weight = weights[i]
            own = weight * share[old]
            kept = factor[t]
            # Without the token: both columns of its topic lose it from the document, one of them from the words.
            gone = total[old] - weight
            of_old = (n_doc[old] - own + prior[old]) * _of_words(mass[old] - weight, offset[old], pull[old], entry[old])
            factor_old = np.float32(of_old * _of_column(gone, total[t], strength, old, t))
            if t != old:
                of_twin = (n_doc[t] - own + prior[t]) * _of_words(mass[t], offset[t], pull[t], entry[t])
                factor[t] = np.float32(of_twin * _of_column(total[t], gone, strength, t, old))
            p = factor_old * (np.float32(table[w, old] - weight) + kappa[w, old]) * scale[w, old]
            others = weigh_scaled(table, w, factor, kappa, w, scale, old, running, ends)
            u *= others + p
            within = np.float32(np.int64((bits >> np.uint64(16)) & _LOW)) * _TO_UNIT
            new = np.int64(pick(running, ends, width, u - p, within))
            if u < p or new >= width or topic[new] < 0:  # The last two happen by rounding.
                factor[t] = kept
                continue
            columns[i] = new
            z[i] = topic[new]
            table[w, old] -= weight
            mass[old] -= weight
            total[old] -= weight
            table[w, new] += weight
            mass[new] += weight
            total[new] += weight
            s = np.int64(twin[new])
            n_doc[old] -= own
            if t != old:
                n_doc[t] -= own
            n_doc[new] += weight * share[new]
            if s != new:
                n_doc[s] += weight * share[new]
            factor[old] = _factor(old, t, n_doc, prior, mass, total, offset, pull, entry, strength)
            factor[t] = _factor(t, old, n_doc, prior, mass, total, offset, pull, entry, strength)
            factor[new] = _factor(new, s, n_doc, prior, mass, total, offset, pull, entry, strength)
            factor[s] = _factor(s, new, n_doc, prior, mass, total, offset, pull, entry, strength)


def _signature(table, rate=types.none, auxiliary=types.none):
    return types.void(
        I8, I8, I1_IN, I4_IN, F1_IN, Z, Z, table, F2, F1, I4_1_IN, I4_1_IN, F1_IN, F2_IN, I1_IN, I1_IN, F4_2_IN,
        F4_3_IN, F1_IN, F2_IN, F2_IN, RNG, rate, auxiliary,
    )  # fmt: skip


keywords_short = kernel(_signature(U2_3), name="keywords_short")(_sweep)
keywords_long = kernel(_signature(F3), name="keywords_long")(_sweep)
scaled_keywords_short = kernel(_signature(U2_3, F2_IN, F1_IN), name="scaled_keywords_short")(_sweep)
scaled_keywords_long = kernel(_signature(F3, F2_IN, F1_IN), name="scaled_keywords_long")(_sweep)


def sweep(start, stop, token_ptr, words, weights, z, columns, tables, *rest, rate=None, auxiliary=None):
    """Redraw topics and columns by the kernel for these tables and documents; arguments are as for `_sweep`."""
    short, long = (
        (keywords_short, keywords_long) if auxiliary is None else (scaled_keywords_short, scaled_keywords_long)
    )
    chosen = short if tables.dtype == np.uint16 else long
    chosen(start, stop, token_ptr, words, weights, z, columns, tables, *rest, rate, auxiliary)
