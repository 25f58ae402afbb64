"""Collapsed Gibbs sampling for LDA: every token's topic given those of all other tokens."""

import numpy as np

from ..._jit import F1, F1_IN, F2, F2_IN, F8, I1_IN, I8, OK, RNG, kernel, read_only
from .assignments import I4_IN, Z


@kernel(I8(I8, I8, I1_IN, I4_IN, F1_IN, Z, F2, F1, read_only(F8, 2, "A"), F1_IN, F2_IN, I1_IN, RNG), fast_sums=True)
def sweep_collapsed(
    start, stop, token_ptr, words, weights, z, counts, topic_mass, word_prior, prior_mass, doc_prior, group, rng
):
    """One sweep over documents start:stop, counts changed after every token.

    p(z = k) is proportional to (n_dk + alpha_k) (n_wk + beta_wk) / (n_k + sum_w beta_wk), the token itself left out.

    Parameters
    ----------
    counts : (n_words, n_topics), n_wk of all tokens
    topic_mass : (n_topics,), n_k
    word_prior, prior_mass : (n_words, n_topics) and its column sums
    doc_prior, group : (n_groups, n_topics), and its row for each document, (n_docs,)
    """
    n_topics = counts.shape[1]
    n_doc = np.empty(n_topics)
    running = np.empty(n_topics)
    inverse = np.empty(n_topics)
    weighted = weights.shape[0] > 0
    for k in range(n_topics):
        inverse[k] = 1.0 / (topic_mass[k] + prior_mass[k])
    for d in range(start, stop):
        n_doc[:] = 0.0
        prior = doc_prior[group[d]]
        for i in range(token_ptr[d], token_ptr[d + 1]):
            n_doc[z[i]] += weights[i] if weighted else 1.0
        for i in range(token_ptr[d], token_ptr[d + 1]):
            w = words[i]
            k = np.int64(z[i])
            weight = weights[i] if weighted else 1.0
            n_doc[k] -= weight
            counts[w, k] -= weight
            topic_mass[k] -= weight
            inverse[k] = 1.0 / (topic_mass[k] + prior_mass[k])
            total = 0.0
            for j in range(n_topics):
                running[j] = (n_doc[j] + prior[j]) * (counts[w, j] + word_prior[w, j]) * inverse[j]
            for j in range(n_topics):
                total += running[j]
                running[j] = total
            target = rng.random() * total
            k = 0
            while k < n_topics - 1 and running[k] <= target:
                k += 1
            z[i] = k
            n_doc[k] += weight
            counts[w, k] += weight
            topic_mass[k] += weight
            inverse[k] = 1.0 / (topic_mass[k] + prior_mass[k])
    return OK
