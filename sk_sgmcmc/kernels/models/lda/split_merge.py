"""What moves that split and merge topics need: a topic's first axis, and the probability of tokens given the others."""

import math

import numpy as np
from numba import types

from ..._jit import F1, F1_IN, F2_IN, F8, I1_IN, I8, OK, kernel, read_only
from .assignments import I4_IN, Z_IN

_SMALLEST = 1e-280  # The logarithm of a product of probabilities is taken before it underflows.


@kernel(I8(I4_IN, I4_IN, I8, F8, F1_IN, F1_IN, F1, F1))
def first_axis(docs, words, n_powers, damping, doc_counts, word_counts, doc_scores, word_scores):
    """First axis of the correspondence analysis of the tokens of a topic, by power iterations.

    In each of them, the score of a word is the sum of its tokens' document scores over its count plus ``damping``, and
    then the score of a document likewise. Damping keeps rare words and short documents from forming an axis of their
    own. Scores have mean 0 over tokens.

    Parameters
    ----------
    docs, words : (n_tokens,), the document and the word of each token
    doc_counts, word_counts : (n_docs,) and (n_words,), their numbers of tokens
    doc_scores : (n_docs,), any start; the scores of documents are written into it
    word_scores : (n_words,), written
    """
    n = docs.shape[0]
    for power in range(n_powers + 1):
        mean, square = 0.0, 0.0
        for d in range(doc_counts.shape[0]):
            mean += doc_counts[d] * doc_scores[d] / n
        for d in range(doc_counts.shape[0]):
            doc_scores[d] -= mean
            square += doc_counts[d] * doc_scores[d] ** 2
        if power == n_powers or not square > 0.0:
            break
        scale = math.sqrt(n / square)
        word_scores[:] = 0.0
        for i in range(n):
            word_scores[words[i]] += doc_scores[docs[i]]
        for w in range(word_counts.shape[0]):
            word_scores[w] *= scale / (word_counts[w] + damping)
        doc_scores[:] = 0.0
        for i in range(n):
            doc_scores[docs[i]] += word_scores[words[i]]
        for d in range(doc_counts.shape[0]):
            doc_scores[d] /= doc_counts[d] + damping
    return OK


def _log_predictive(token_ptr, words, z, table, mass, alpha, group, beta):
    """Sum over tokens of the log probability of the word, given its document and the topics of all other tokens.

    Parameters
    ----------
    table : (n_words, width), counts of the topics of each word, and ``mass``, (n_topics,), their sums over words
    alpha, group : (n_groups, n_topics), Dirichlet parameters, and the row for each document, (n_docs,)
    beta : float, Dirichlet parameter of each word
    """
    n_topics = mass.shape[0]
    in_doc, per_mass = np.zeros(n_topics), np.empty(n_topics)
    beta_mass = beta * table.shape[0]
    for k in range(n_topics):
        per_mass[k] = 1.0 / (mass[k] + beta_mass)
    total, product = 0.0, 1.0
    for d in range(token_ptr.shape[0] - 1):
        lo, hi = token_ptr[d], token_ptr[d + 1]
        if lo == hi:
            continue
        others = hi - lo - 1.0
        for k in range(n_topics):
            in_doc[k] = alpha[group[d], k]
            others += in_doc[k]
        for i in range(lo, hi):
            in_doc[z[i]] += 1.0
        for i in range(lo, hi):
            w, own, end = words[i], np.int64(z[i]), 0.0
            for k in range(n_topics):
                end += in_doc[k] * (table[w, k] + beta) * per_mass[k]
            there = table[w, own] + beta
            end -= in_doc[own] * there * per_mass[own]
            end += (in_doc[own] - 1.0) * (there - 1.0) / (mass[own] - 1.0 + beta_mass)
            product *= end / others
            if product < _SMALLEST:
                total += math.log(product)
                product = 1.0
    return total + math.log(product)


def _signature(dtype):
    return F8(I1_IN, I4_IN, Z_IN, read_only(dtype, 2), I1_IN, F2_IN, I1_IN, F8)


# One kernel for each type of counts, see `whole_tokens.table_of_counts`.
log_predictive_short = kernel(_signature(types.uint16), fast_sums=True, name="log_predictive_short")(_log_predictive)
log_predictive_long = kernel(_signature(types.int32), fast_sums=True, name="log_predictive_long")(_log_predictive)


def log_predictive(token_ptr, words, z, table, mass, alpha, group, beta):
    """Call the kernel for this table; arguments are as for `_log_predictive`."""
    of_table = log_predictive_short if table.dtype == np.uint16 else log_predictive_long
    return of_table(token_ptr, words, z, table, mass, alpha, group, beta)
