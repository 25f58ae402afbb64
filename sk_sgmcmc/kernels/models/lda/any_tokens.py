"""Collapsed Gibbs sampling for LDA with tokens of any weight, any prior of the topics, and topics without columns.

The method is the same as in ``whole_tokens``. Topics have columns in the table of counts, except that topics without
tokens may be set aside without a column. Their weights are their priors times the same number, so all of them are one
entry of a draw. The cost of a token is therefore proportional to the number of columns, not of topics.

The same source makes the kernels for documents whose proportions have a scaled Dirichlet distribution, in which topics
also have a weight of their own in each document, and for words that differ between groups of documents, in which every
word has a weight of its own in each topic. numba drops the branches on arguments that are None before it compiles.
"""

import numpy as np
from numba import types

from ..._jit import F1, F1_IN, F2, F2_IN, F3, I1_IN, I8, RNG, helper, kernel, read_only, writable
from ...math.lanes import GROUP, LANES, pick, prefetch_row, weigh, weigh_scaled, weigh_under
from ...math.random import GOLDEN, mix64
from .assignments import I4_IN, Z

U2_2, U2_3, I4_1 = writable(types.uint16, 2), writable(types.uint16, 3), writable(types.int32, 1)
F4_1_IN, F4_2_IN, F4_3_IN = (read_only(types.float32, n) for n in (1, 2, 3))

DONE = -1
_NOTHING = 1e-9  # sums of counts up to this number are rounding errors of sums of weights
SHORT = 2**16  # number of a word's tokens from which on uint16 overflows
_AHEAD = np.uintp(6)  # tokens by which rows are prefetched
_LOW = np.uint64(0xFFFFFF)
_TO_UNIT = np.float32(2.0**-24)


@helper
def _bring_back(alpha, mass, column, topic, rng):
    """Draw one of the topics set aside, by their priors, and move it to a column without tokens; returns the column."""
    total = 0.0
    for k in range(column.shape[0]):
        if column[k] < 0:
            total += alpha[k]
    target = rng.random() * total
    chosen = -1
    for k in range(column.shape[0]):
        if column[k] < 0 and alpha[k] > 0.0:
            chosen = k
            target -= alpha[k]
            if target < 0.0:
                break
    j = 0
    while topic[j] < 0 or mass[j] > 0.0:
        j += 1
    column[topic[j]] = -1
    column[chosen] = j
    topic[j] = chosen
    return j


@helper
def _per_mass(mass, sums, pull, entry, j):
    """The factor of a word's weight that topic j has in common for all words, given the sum of its counts."""
    if pull is None:
        return 1.0 / (mass + sums[j])
    if mass > _NOTHING:
        return pull[j] / mass
    return entry[j]


@helper
def new_workspace(width):
    """Arrays that a sweep over a table with so many columns writes."""
    return (
        np.zeros(width, np.float32),  # factors of the columns' weights given sums of counts
        np.zeros(width, np.float32),  # the same with one token less
        np.zeros(width, np.float32),  # and with one more, so that no draw waits for a division
        np.zeros(width, np.float32),  # prior of the topics in the document
        np.zeros(width),  # counts of the document, which are zero again after each document
        np.zeros(width, np.float32),  # what all words have in common of the weights
        np.ones(width),  # what a token of the document adds to its counts
        np.full((width + GROUP - 1) // GROUP * GROUP, np.inf, np.float32),  # running sums
        np.zeros(LANES, np.float32),  # their ends
    )


@helper
def sweep_in(
    begin, start, stop, token_ptr, words, weights, z, table, mass, column, topic, alpha, group, beta, row, sums, rng,
    rate, auxiliary, scale, pull, entry, backward, workspace,
):  # fmt: skip
    """Redraw the topic of every token of documents start:stop given all others, beginning at token ``begin``.

    p(k) is proportional to (n_dk + alpha_k) (n_wk + beta_wk) / (n_k + sum_w beta_wk), without the token itself. With
    ``auxiliary``, it is also divided by rate_k + auxiliary_d. With ``scale``, the second fraction is
    (n_wk + beta_wk) scale_wk pull_k / n_k, or if n_k is 0, beta_wk scale_wk entry_k.

    Parameters
    ----------
    weights : (n_tokens,), or (0,) if all tokens weigh 1
    table : (n_words, width), counts of the columns, changed in place
    mass : (width,), sums of the counts over words, changed in place
    column, topic : (n_topics,) and (width,), each topic's column and each column's topic, -1 for none; changed in place
    alpha, group : (n_groups, n_topics), and the row of ``alpha`` for each document, (n_docs,)
    beta : (n_rows,) or (n_rows, width) float32
        Word prior, one number for all topics or one for each column.
    row : (n_words,), row of ``beta`` for each word
    sums : (width,), sums of the word prior over words
    rate, auxiliary : (n_groups, n_topics) and (n_docs,), or None and None
        With them, every topic has a column, and ``alpha`` contains the shapes of a scaled Dirichlet distribution.
    scale, pull, entry : (n_rows, width) float32, (width,) and (width,), or None
        With them, every topic has a column, and ``row`` is the row of ``scale`` as well; see `group_words`.
    backward : bool, or None
        Whether tokens are redrawn from the last one of a document to the first one.
    workspace : tuple of arrays, from `new_workspace`
        Repeated calls, such as one for each document, need not allocate them again.

    Returns
    -------
    next : `DONE`, or the token before which the sweep stopped because no column was free for a topic set aside
    """
    n_topics, width = column.shape[0], table.shape[1]
    weighted = weights.shape[0] > 0
    inverse, less, more, prior, n_doc, factor, share, running, ends = workspace
    n_free = 0
    for j in range(width):
        if topic[j] >= 0:
            n_free += mass[j] == 0.0
            less[j] = _per_mass(mass[j] - 1.0, sums, pull, entry, j)
            inverse[j] = _per_mass(mass[j], sums, pull, entry, j)
            more[j] = _per_mass(mass[j] + 1.0, sums, pull, entry, j)
    aside = 0.0  # sum of alpha over the topics set aside
    last = np.uintp(token_ptr[stop] - 1)
    weight = 1.0
    g = -1
    for d in range(start, stop):
        lo = np.uintp(token_ptr[d])
        hi = np.uintp(token_ptr[d + 1])
        if lo == hi:
            continue
        if group[d] != g:
            g = group[d]
            aside = 0.0
            for k in range(n_topics):
                if column[k] < 0:
                    aside += alpha[g, k]
                else:
                    prior[column[k]] = alpha[g, k]
        if auxiliary is not None:
            for k in range(n_topics):
                j = column[k]
                share[j] = (1.0 + auxiliary[d]) / (rate[g, k] + auxiliary[d])  # of order 1 for any auxiliary
                prior[j] = alpha[g, k] * share[j]
        for i in range(lo, hi):
            if auxiliary is not None:
                n_doc[column[z[i]]] += share[column[z[i]]] * (weights[i] if weighted else 1.0)
            else:
                n_doc[column[z[i]]] += weights[i] if weighted else 1.0
        for j in range(width):
            factor[j] = (n_doc[j] + prior[j]) * inverse[j]
        counter = mix64(np.uint64(rng.random() * 2.0**53))
        for t in range(max(lo, np.uintp(begin)), hi):
            i = t
            if backward is not None:
                i = lo + (hi - np.uintp(1) - t) if backward else t
            if n_free == 0 and aside > 0.0:
                return np.int64(i)
            prefetch_row(table, np.int64(words[min(np.uintp(i) + _AHEAD, last)]))
            if scale is not None:
                ahead = np.int64(row[words[min(np.uintp(i) + _AHEAD, last)]])
                prefetch_row(beta, ahead)
                prefetch_row(scale, ahead)
            w = np.uintp(words[i])
            r = np.int64(row[w])
            old = np.uintp(column[z[i]])
            counter += GOLDEN
            bits = mix64(counter)
            u = np.float32(np.int64(bits >> np.uint64(40))) * _TO_UNIT
            if weighted:
                weight = weights[i]
            own = weight
            if auxiliary is not None:
                own *= share[old]
            if weighted:
                if pull is None:
                    factor_old = np.float32((n_doc[old] - own + prior[old]) / (mass[old] - weight + sums[old]))
                else:
                    left = _per_mass(mass[old] - weight, sums, pull, entry, old)
                    factor_old = np.float32((n_doc[old] - own + prior[old]) * left)
            else:
                factor_old = np.float32((n_doc[old] - own + prior[old]) * less[old])
            rest = 0.0
            if beta.ndim == 1:
                b = beta[r]
                p = factor_old * (np.float32(table[w, old] - weight) + b)
                others = weigh(table, np.int64(w), factor, b, np.int64(old), running, ends)
                rest = aside * b / sums[0]
            elif scale is not None:
                p = factor_old * (np.float32(table[w, old] - weight) + beta[r, old]) * scale[r, old]
                others = weigh_scaled(table, np.int64(w), factor, beta, r, scale, np.int64(old), running, ends)
            else:
                p = factor_old * (np.float32(table[w, old] - weight) + beta[r, old])
                others = weigh_under(table, np.int64(w), factor, beta, r, np.int64(old), running, ends)
            u *= others + p
            within = np.float32(np.int64((bits >> np.uint64(16)) & _LOW)) * _TO_UNIT
            new = np.uintp(pick(running, ends, width, u - p, within))
            # The total share of the topics set aside may be too small for 24 bits.
            if rest > 0.0 and np.float64(mix64(bits) >> np.uint64(11)) * 2.0**-53 * (others + p + rest) < rest:
                new = np.uintp(_bring_back(alpha[g], mass, column, topic, rng))
                aside = 0.0
                for k in range(n_topics):
                    if column[k] < 0:
                        aside += alpha[g, k]
                prior[new] = alpha[g, topic[new]]
            elif u < p or new >= np.uintp(width):
                continue
            if topic[new] < 0:  # The draw is beyond the last topic by rounding.
                continue
            z[i] = topic[new]
            factor[old] = factor_old
            n_doc[old] -= own
            table[w, old] -= weight
            mass[old] -= weight
            n_free += mass[old] == 0.0
            n_free -= mass[new] == 0.0
            if auxiliary is not None:
                n_doc[new] += weight * share[new]
            else:
                n_doc[new] += weight
            table[w, new] += weight
            mass[new] += weight
            if weighted:
                inverse[old] = _per_mass(mass[old], sums, pull, entry, old)
                inverse[new] = _per_mass(mass[new], sums, pull, entry, new)
                factor[new] = (n_doc[new] + prior[new]) * inverse[new]
                continue
            factor[new] = (n_doc[new] + prior[new]) * more[new]
            more[old] = inverse[old]
            inverse[old] = less[old]
            less[old] = _per_mass(mass[old] - 1.0, sums, pull, entry, old)
            less[new] = inverse[new]
            inverse[new] = more[new]
            more[new] = _per_mass(mass[new] + 1.0, sums, pull, entry, new)
        for i in range(lo, hi):
            n_doc[column[z[i]]] = 0.0
    return DONE


def _sweep(
    begin, start, stop, token_ptr, words, weights, z, table, mass, column, topic, alpha, group, beta, row, sums, rng,
    rate, auxiliary, scale, pull, entry, backward,
):  # fmt: skip
    """`sweep_in` with a workspace of its own."""
    return sweep_in(
        begin, start, stop, token_ptr, words, weights, z, table, mass, column, topic, alpha, group, beta, row, sums,
        rng, rate, auxiliary, scale, pull, entry, backward, new_workspace(table.shape[1]),
    )  # fmt: skip


def _signature(table, beta, rate=types.none, auxiliary=types.none):
    return I8(
        I8, I8, I8, I1_IN, I4_IN, F1_IN, Z, table, F1, I4_1, I4_1, F2_IN, I1_IN, beta, I4_IN, F1_IN, RNG, rate,
        auxiliary, types.none, types.none, types.none, types.none,
    )  # fmt: skip


# One kernel for each type of counts, with one word prior or one for each topic.
sweep_short = kernel(_signature(U2_2, F4_1_IN), name="sweep_short")(_sweep)
sweep_long = kernel(_signature(F2, F4_1_IN), name="sweep_long")(_sweep)
sweep_short_under = kernel(_signature(U2_2, F4_2_IN), name="sweep_short_under")(_sweep)
sweep_long_under = kernel(_signature(F2, F4_2_IN), name="sweep_long_under")(_sweep)
# The same for documents with scaled Dirichlet distributions.
scaled_short = kernel(_signature(U2_2, F4_1_IN, F2_IN, F1_IN), name="scaled_short")(_sweep)
scaled_long = kernel(_signature(F2, F4_1_IN, F2_IN, F1_IN), name="scaled_long")(_sweep)
scaled_short_under = kernel(_signature(U2_2, F4_2_IN, F2_IN, F1_IN), name="scaled_short_under")(_sweep)
scaled_long_under = kernel(_signature(F2, F4_2_IN, F2_IN, F1_IN), name="scaled_long_under")(_sweep)


def sweep(begin, start, stop, token_ptr, words, weights, z, table, *rest, rate=None, auxiliary=None):
    """Redraw topics by the kernel for this table and prior; arguments and result are as for `sweep_in`."""
    beta = rest[-4]
    kinds = (sweep_short, sweep_short_under) if table.dtype == np.uint16 else (sweep_long, sweep_long_under)
    if auxiliary is not None:
        kinds = (scaled_short, scaled_short_under) if table.dtype == np.uint16 else (scaled_long, scaled_long_under)
    return kinds[beta.ndim - 1](
        begin, start, stop, token_ptr, words, weights, z, table, *rest, rate, auxiliary, None, None, None, None
    )


# ---------------------------------------------------------------------------------------------- words that differ


def _sweep_groups(
    start, stop, token_ptr, words, weights, z, tables, masses, topics, alpha, group, word_group, beta, row, scales,
    pulls, entries, rng, rate, auxiliary,
):  # fmt: skip
    """`sweep_in` of documents whose words have a distribution of their own in each group ``word_group`` of documents.

    Parameters
    ----------
    tables, masses : (n_groups, n_words, width) and (n_groups, width), as ``table`` and ``mass`` of each group
    topics : (width,), the topics, and -1 beyond the last one
    word_group : (n_docs,)
    beta : (n_words, width) float32
    scales, pulls, entries : (n_groups, n_words, width) float32, (n_groups, width) and (n_groups, width)
    """
    column, workspace = topics[: alpha.shape[1]], new_workspace(topics.size)
    first = start
    while first < stop:
        g = word_group[first]
        last = first + 1
        while last < stop and word_group[last] == g:
            last += 1
        sweep_in(
            0, first, last, token_ptr, words, weights, z, tables[g], masses[g], column, topics, alpha, group, beta, row,
            pulls[g], rng, rate, auxiliary, scales[g], pulls[g], entries[g], None, workspace,
        )  # fmt: skip
        first = last


def _groups_signature(table, rate=types.none, auxiliary=types.none):
    return types.void(
        I8, I8, I1_IN, I4_IN, F1_IN, Z, table, F2, I4_1, F2_IN, I1_IN, I1_IN, F4_2_IN, I4_IN, F4_3_IN, F2_IN, F2_IN,
        RNG, rate, auxiliary,
    )  # fmt: skip


groups_short = kernel(_groups_signature(U2_3), name="groups_short")(_sweep_groups)
groups_long = kernel(_groups_signature(F3), name="groups_long")(_sweep_groups)
scaled_groups_short = kernel(_groups_signature(U2_3, F2_IN, F1_IN), name="scaled_groups_short")(_sweep_groups)
scaled_groups_long = kernel(_groups_signature(F3, F2_IN, F1_IN), name="scaled_groups_long")(_sweep_groups)


def sweep_groups(start, stop, token_ptr, words, weights, z, tables, *rest, rate=None, auxiliary=None):
    """Redraw topics by the kernel for these tables and documents; arguments are as for `_sweep_groups`."""
    kinds = (groups_short, groups_long) if auxiliary is None else (scaled_groups_short, scaled_groups_long)
    kinds[tables.dtype != np.uint16](start, stop, token_ptr, words, weights, z, tables, *rest, rate, auxiliary)
