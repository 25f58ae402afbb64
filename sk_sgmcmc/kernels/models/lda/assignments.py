"""Topic assignments: draws for a minibatch of documents given the topics, and counts of unchanged assignments.

Tokens are stored document after document, in ``token_ptr`` (n_docs + 1,), ``words`` (n_tokens,) int32, and ``weights``
(n_tokens,), which is empty if every token has weight 1. A minibatch is a list ``docs`` of documents. Its distinct words
are the active rows. ``slot`` (n_words,) contains the index of each word among them, or -1.

Every document has its own random stream, a SplitMix64 counter seeded by (seed, document). Neither the order of
documents nor the number of threads therefore changes a draw.
"""

import numpy as np
from numba import types

from ..._jit import F1_IN, F2, F2_IN, F3, I1, I1_IN, I8, OK, helper, kernel, read_only, writable
from ...math.random import GOLDEN, mix64, unit

I4_IN = read_only(types.int32, 1)
I4 = writable(types.int32, 1)
Z = writable(types.uint16, 1)  # assignments: up to 65,535 topics
Z_IN = read_only(types.uint16, 1)
F4_2 = writable(types.float32, 2)
F4_2_IN = read_only(types.float32, 2)
U8 = types.uint64

BLOCK = 16  # topics whose prior weights are summed for each word


@kernel(I8(I1_IN, I1_IN, I4_IN, I4, I1))
def find_active(docs, token_ptr, words, slot, rows):
    """Write the distinct words of a minibatch into ``rows``, and their indices into ``slot``; returns their number.

    ``slot`` must be -1 everywhere before; see `clear_active`.
    """
    n_active = 0
    for d in docs:
        for i in range(token_ptr[d], token_ptr[d + 1]):
            w = words[i]
            if slot[w] < 0:
                slot[w] = n_active
                rows[n_active] = w
                n_active += 1
    return n_active


@kernel(I8(I1_IN, I4))
def clear_active(rows, slot):
    """Undo `find_active`."""
    for w in rows:
        slot[w] = -1
    return OK


@helper(inline=True)
def _prior_sums(prior, phi_row, blocks):
    """Write sums of prior times phi over `BLOCK` topics at a time, and last the total, in the type of ``blocks``."""
    n_topics = prior.shape[0]
    n_blocks = blocks.shape[0] - 1
    whole = 0.0
    for block in range(n_blocks):
        part = 0.0
        for k in range(block * BLOCK, min(block * BLOCK + BLOCK, n_topics)):
            part += prior[k] * phi_row[k]
        blocks[block] = part
        whole += part
    blocks[n_blocks] = whole


@kernel(I8(F2_IN, I1_IN, F1_IN, F2_IN, F4_2, F4_2))
def topic_tables(theta, rows, total, doc_topic_prior, phi, prior_blocks):
    """Tables of the active words: ``phi`` = theta[rows] / total, and sums of the document prior times ``phi``.

    ``prior_blocks`` (n_active, n_blocks + 1) contains the sums over `BLOCK` topics at a time, and last the total. If
    ``doc_topic_prior`` (n_groups, n_topics) has several rows, `draw_assignments` computes these sums.
    """
    n_topics = theta.shape[1]
    inverse = np.empty(n_topics)
    for k in range(n_topics):
        inverse[k] = 1.0 / total[k]
    for i in range(rows.shape[0]):
        r = rows[i]
        for k in range(n_topics):
            phi[i, k] = theta[r, k] * inverse[k] + 1e-30
        if doc_topic_prior.shape[0] == 1:
            _prior_sums(doc_topic_prior[0], phi[i], prior_blocks[i])
    return OK


@helper
def _from_prior(target, phi_row, blocks, doc_topic_prior):
    """Topic at which the running sum of doc_topic_prior phi exceeds ``target``; the last if none does by rounding."""
    n_topics = doc_topic_prior.shape[0]
    block = 0
    while block < blocks.shape[0] - 2 and target >= blocks[block]:
        target -= blocks[block]
        block += 1
    k = block * BLOCK
    last = min(k + BLOCK, n_topics) - 1
    while k < last:
        target -= doc_topic_prior[k] * phi_row[k]
        if target < 0.0:
            break
        k += 1
    return k


@kernel(
    I8(I8, I8, I1_IN, I1_IN, I4_IN, F1_IN, I4_IN, F4_2_IN, F4_2, I4, F2_IN, I1_IN, U8, I8, I8, I8, Z, F2, F3),
    fast_sums=True,
)
def draw_assignments(
    start,
    stop,
    docs,
    token_ptr,
    words,
    weights,
    slot,
    phi,
    prior_blocks,
    made_for,
    doc_topic_prior,
    group,
    seed,
    stored,
    n_burn,
    n_keep,
    z,
    counts,
    doc_counts,
):
    """Gibbs sweeps over documents docs[start:stop] given the topics.

    The weight of topic k for a token of word w is n_dk phi_kw + prior_k phi_kw. The first part is summed over the few
    topics of the document. The second is summed over blocks of topics, once for each distinct word and group of
    documents. The cost of a token therefore depends on the number of topics in its document, not on all topics.

    Parameters
    ----------
    prior_blocks, made_for : (n_active, n_blocks + 1), (n_active,) or (0,)
        If the prior has one row, the sums of `topic_tables`, and an empty ``made_for``. Otherwise arrays in which sums
        are computed on demand, and the group for which each row was computed, -1 for none. Threads must not share these
        arrays. Documents of a group should be adjacent.
    doc_topic_prior : (n_groups, n_topics)
    group : (n_batch,)
        Row of the prior for each document of the minibatch.
    stored : int
        1 if ``z`` contains the assignments of all tokens of the corpus. Sweeps start from these and replace them, and
        ``counts`` changes by the new counts minus the old ones. 0 if ``z`` is scratch for new assignments. Then the sum
        of counts over the kept sweeps is added to ``counts``.
    n_burn, n_keep : int
        Number of sweeps to discard, and to count. Of stored assignments, only the last sweep is counted.
    counts : ndarray of shape (n_active, n_topics)
        Changed in place.
    doc_counts : ndarray of shape (n_draws, n_batch, n_topics)
        Set to the documents' counts after each of the last ``n_draws`` sweeps. These are draws rather than their mean,
        which would be spread over more topics than any draw.
    """
    n_topics = phi.shape[1]
    n_blocks = prior_blocks.shape[1] - 1
    topic = np.empty(n_topics, np.int32)  # the document's topics, in arbitrary order
    mass_of = np.empty(n_topics)  # the weight of each of these topics
    place = np.full(n_topics, -1, np.int32)  # index of each topic in ``topic``, -1 if it is absent
    weighted = weights.shape[0] > 0
    sweeps = n_burn + n_keep
    n_draws = doc_counts.shape[0]
    grouped = made_for.shape[0] > 0
    for b in range(start, stop):
        d = docs[b]
        lo = token_ptr[d]
        hi = token_ptr[d + 1]
        g = np.int32(group[b])
        prior = doc_topic_prior[g]
        n = 0
        doc_counts[:, b] = 0.0
        counter = mix64(seed ^ mix64(np.uint64(d) + GOLDEN))
        if stored:
            for i in range(lo, hi):
                k = np.intp(z[i])
                weight = weights[i] if weighted else 1.0
                j = place[k]
                if j < 0:
                    place[k] = n
                    topic[n] = k
                    mass_of[n] = weight
                    n += 1
                else:
                    mass_of[j] += weight
        for sweep in range(sweeps):
            for i in range(lo, hi):
                r = slot[words[i]]
                weight = weights[i] if weighted else 1.0
                if grouped and made_for[r] != g:
                    made_for[r] = g
                    _prior_sums(prior, phi[r], prior_blocks[r])
                mass = 0.0
                for j in range(n):
                    mass += mass_of[j] * phi[r, topic[j]]
                counter += GOLDEN
                target = unit(mix64(counter))
                drawn = stored or sweep > 0
                old = 0
                j_old = -1
                if drawn:
                    # The present topic, without this token, comes first. If it is kept, nothing is written.
                    old = np.intp(z[i])
                    j_old = place[old]
                    mass -= weight * phi[r, old]
                    target *= mass + prior_blocks[r, n_blocks]
                    target -= (mass_of[j_old] - weight) * phi[r, old]
                    if target < 0.0:
                        if sweep >= n_burn and not stored:
                            counts[r, old] += weight
                        continue
                else:
                    target *= mass + prior_blocks[r, n_blocks]
                new = -1
                for j in range(n):
                    if j != j_old:
                        target -= mass_of[j] * phi[r, topic[j]]
                        if target < 0.0:
                            new = np.intp(topic[j])
                            break
                if new < 0:
                    new = _from_prior(target, phi[r], prior_blocks[r], prior)
                if not stored and sweep >= n_burn:
                    counts[r, new] += weight
                if drawn:
                    if new == old:
                        continue
                    mass_of[j_old] -= weight
                    if mass_of[j_old] == 0.0:
                        n -= 1
                        place[topic[n]] = j_old
                        topic[j_old] = topic[n]
                        mass_of[j_old] = mass_of[n]
                        place[old] = -1
                if stored:
                    counts[r, old] -= weight
                    counts[r, new] += weight
                z[i] = new
                j = place[new]
                if j < 0:
                    place[new] = n
                    topic[n] = new
                    mass_of[n] = weight
                    n += 1
                else:
                    mass_of[j] += weight
            if sweep >= sweeps - n_draws:
                for j in range(n):
                    doc_counts[sweep - sweeps + n_draws, b, topic[j]] = mass_of[j]
        for j in range(n):
            place[topic[j]] = -1
    return OK


@kernel(I8(I4_IN, F1_IN, Z, F2))
def count_assignments(words, weights, z, counts):
    """Add the weights of tokens to ``counts`` (n_words, n_topics) at their assigned topics."""
    weighted = weights.shape[0] > 0
    for i in range(words.shape[0]):
        counts[words[i], z[i]] += weights[i] if weighted else 1.0
    return OK


_HALF = np.int64(32)  # bits of each of the two counts in a number
_PIECE = 2**20  # tokens per group, whose number must fit into 32 bits


@kernel(I8(Z_IN, Z_IN, I1, I1))
def count_staying(before, now, had, kept):
    """Add to ``had`` (n_topics,) the number of each topic's tokens before, and to ``kept`` the number that stayed.

    Both are counted in one 64-bit number, which halves the additions. Adjacent tokens often have the same topic, and
    additions to the same number wait for each other, so four numbers are used in turn.
    """
    counts = np.zeros((4, had.size), np.int64)
    for start in range(0, before.size, _PIECE):
        for i in range(np.uintp(start), np.uintp(min(start + _PIECE, before.size))):
            counts[np.uintp(i) & np.uintp(3), np.uintp(before[i])] += np.int64(1) + (
                np.int64(now[i] == before[i]) << _HALF
            )
        for turn in range(4):
            for k in range(had.size):
                had[k] += counts[turn, k] & ((np.int64(1) << _HALF) - 1)
                kept[k] += counts[turn, k] >> _HALF
                counts[turn, k] = 0
    return OK
