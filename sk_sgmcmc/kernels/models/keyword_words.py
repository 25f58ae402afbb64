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


def _sweep(
    start, stop, token_ptr, words, weights, z, columns, tables, masses, total, topic, twin, strength, alpha, group,
    word_group, kappa, row, scales, offset, pulls, entries, rng, rate, auxiliary,
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
    kappa, scales : (n_rows, width) and (n_groups, n_rows, width) float32
    row : (n_words,), row of ``kappa`` and ``scales`` for each word
    offset, pulls, entries : (width,), (n_groups, width) and (n_groups, width)
    rate, auxiliary : (n_priors, n_topics) and (n_docs,), or None and None
        With them, ``alpha`` contains the shapes of a scaled Dirichlet distribution, and the weight of topic k is also
        divided by rate_k + auxiliary_d.
    """
    width = kappa.shape[1]
    weighted = weights.shape[0] > 0
    prior, n_doc, share = np.zeros(width), np.zeros(width), np.ones(width)
    # As in `any_tokens`: factors given the sums of counts, with a token less, and with one more, so that no draw waits
    # for a division. First of words in columns, and then of columns in topics, as numerators and inverse denominators.
    inverse, less, more = np.zeros(width), np.zeros(width), np.zeros(width)
    own, both, unit = np.ones(width), np.ones(width), np.zeros(width)  # These are constant if a topic has one column.
    of_topic, topic_less, topic_more = np.ones(width), np.ones(width), np.ones(width)
    factor = np.zeros(width, np.float32)
    running = np.full((width + GROUP - 1) // GROUP * GROUP, np.inf, np.float32)
    ends = np.zeros(LANES, np.float32)
    last = np.uintp(token_ptr[stop] - 1)
    weight, g = 1.0, -1
    for d in range(start, stop):
        lo, hi = np.uintp(token_ptr[d]), np.uintp(token_ptr[d + 1])
        if lo == hi:
            continue
        is_new, g = word_group[d] != g, word_group[d]
        table, mass, scale, pull, entry = tables[g], masses[g], scales[g], pulls[g], entries[g]
        if is_new:
            for j in range(width):
                inverse[j] = _of_words(mass[j], offset[j], pull[j], entry[j])
                less[j] = _of_words(mass[j] - 1.0, offset[j], pull[j], entry[j])
                more[j] = _of_words(mass[j] + 1.0, offset[j], pull[j], entry[j])
                if twin[j] != j:
                    own[j], unit[j] = total[j] + strength[j], 1.0
                    both[j] = own[j] + total[twin[j]] + strength[twin[j]]
                    of_topic[j], topic_more[j] = 1.0 / both[j], 1.0 / (both[j] + 1.0)
                    topic_less[j] = 1.0 / (both[j] - 1.0)
        for j in range(width):
            if topic[j] >= 0:
                prior[j] = alpha[group[d], topic[j]]
                if auxiliary is not None:
                    share[j] = (1.0 + auxiliary[d]) / (rate[group[d], topic[j]] + auxiliary[d])
                    prior[j] *= share[j]
                n_doc[j] = 0.0
        for i in range(lo, hi):
            of_doc = share[columns[i]] * (weights[i] if weighted else 1.0)
            n_doc[columns[i]] += of_doc
            if twin[columns[i]] != columns[i]:
                n_doc[twin[columns[i]]] += of_doc
        for j in range(width):
            factor[j] = (n_doc[j] + prior[j]) * inverse[j] * own[j] * of_topic[j]
        counter = mix64(np.uint64(rng.random() * 2.0**53))
        for i in range(lo, hi):
            ahead = np.int64(words[min(np.uintp(i) + _AHEAD, last)])
            prefetch_row(table, ahead)
            prefetch_row(kappa, np.int64(row[ahead]))
            prefetch_row(scale, np.int64(row[ahead]))
            w, old = np.int64(words[i]), np.int64(columns[i])
            r, t = np.int64(row[w]), np.int64(twin[old])
            counter += GOLDEN
            bits = mix64(counter)
            u = np.float32(np.int64(bits >> np.uint64(40))) * _TO_UNIT
            if weighted:
                weight = weights[i]
            of_doc, gone = weight * share[old], weight * unit[old]
            kept = factor[t]
            # Without the token: both columns of its topic lose it from the document, one of them from the words.
            words_left, topic_left = less[old], topic_less[old]
            if weighted:
                words_left = _of_words(mass[old] - weight, offset[old], pull[old], entry[old])
                topic_left = 1.0 / (both[old] - gone)
            factor_old = np.float32((n_doc[old] - of_doc + prior[old]) * words_left * (own[old] - gone) * topic_left)
            if t != old:
                factor[t] = np.float32((n_doc[t] - of_doc + prior[t]) * inverse[t] * own[t] * topic_left)
            p = factor_old * (np.float32(table[w, old] - weight) + kappa[r, old]) * scale[r, old]
            others = weigh_scaled(table, w, factor, kappa, r, scale, old, running, ends)
            u *= others + p
            within = np.float32(np.int64((bits >> np.uint64(16)) & _LOW)) * _TO_UNIT
            new = np.int64(pick(running, ends, width, u - p, within))
            if u < p or new >= width or topic[new] < 0:  # The last two happen by rounding.
                if t != old:
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
            factor[old] = factor_old
            n_doc[old] -= of_doc
            own[old] -= gone
            more[old], inverse[old] = inverse[old], words_left
            less[old] = _of_words(mass[old] - 1.0, offset[old], pull[old], entry[old])
            if t != old:
                n_doc[t] -= of_doc
                both[old] -= gone
                topic_more[old], of_topic[old], topic_less[old] = of_topic[old], topic_left, 1.0 / (both[old] - 1.0)
                both[t], of_topic[t] = both[old], of_topic[old]
                topic_less[t], topic_more[t] = topic_less[old], topic_more[old]
            s = np.int64(twin[new])
            of_doc, come = weight * share[new], weight * unit[new]
            n_doc[new] += of_doc
            own[new] += come
            less[new], inverse[new] = inverse[new], more[new]
            if weighted:
                inverse[new] = _of_words(mass[new], offset[new], pull[new], entry[new])
            more[new] = _of_words(mass[new] + 1.0, offset[new], pull[new], entry[new])
            if s != new:
                n_doc[s] += of_doc
                both[new] += come
                topic_less[new], of_topic[new] = of_topic[new], topic_more[new]
                if weighted:
                    of_topic[new] = 1.0 / both[new]
                topic_more[new] = 1.0 / (both[new] + 1.0)
                both[s], of_topic[s] = both[new], of_topic[new]
                topic_less[s], topic_more[s] = topic_less[new], topic_more[new]
                factor[s] = (n_doc[s] + prior[s]) * inverse[s] * own[s] * of_topic[s]
            factor[new] = (n_doc[new] + prior[new]) * inverse[new] * own[new] * of_topic[new]


def _signature(table, rate=types.none, auxiliary=types.none):
    return types.void(
        I8, I8, I1_IN, I4_IN, F1_IN, Z, Z, table, F2, F1, I4_1_IN, I4_1_IN, F1_IN, F2_IN, I1_IN, I1_IN, F4_2_IN,
        I4_IN, F4_3_IN, F1_IN, F2_IN, F2_IN, RNG, rate, auxiliary,
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
