"""Draws of the topic proportions of documents given the topics, by collapsed Gibbs sweeps over each document.

Documents are given by distinct words with counts. A count x means floor(x) tokens of weight 1 and one of weight
x - floor(x). Every document has its own random stream, from a key that the caller derives from its content. Neither its
position nor other documents change its draws.
"""

import numpy as np
from numba import types

from ..._jit import F1_IN, F2, F2_IN, I1_IN, I8, OK, kernel, read_only
from ...math.arrays import set_to
from ...math.dirichlet import dirichlet_row
from ...math.random import GOLDEN, mix64, unit
from .assignments import I4_IN, Z

U1_IN = read_only(types.uint64, 1)


@kernel(I8(I1_IN, I4_IN, F1_IN, I1_IN, F2_IN, F2_IN, U1_IN, I8, I8, I8, I8, Z, F2))
def draw_proportions(indptr, words, counts, token_ptr, phi, alpha, keys, fresh, n_sweeps, start, stop, z, theta):
    """Sweep over the tokens of documents start:stop, then draw their proportions.

    For a token of word w, topic k has the weight (n_dk + alpha_k) phi_wk, where n_dk counts the document's other
    tokens. After the sweeps, the proportions are drawn from Dirichlet(n_d + alpha).

    Parameters
    ----------
    indptr, words, counts : (n_docs + 1,), (n_pairs,), (n_pairs,)
        Counts in CSR form.
    token_ptr : (n_pairs + 1,)
        Position of each pair's first token in ``z``.
    phi : (n_words, n_topics)
    alpha : (1, n_topics) or (n_docs, n_topics)
    keys : (n_docs,)
        Keys from which the documents' streams start.
    fresh : int
        1 to start without assignments, so that the first sweep draws each token given those before it. 0 to continue
        from ``z``.
    z : (n_tokens,), changed in place
    theta : (n_docs, n_topics), written at start:stop
    """
    n_topics = phi.shape[1]
    mass, running, cells = np.empty(n_topics), np.empty(n_topics), np.empty(n_topics)
    for d in range(start, stop):
        prior = alpha[d if alpha.shape[0] > 1 else 0]
        counter = mix64(keys[d])
        set_to(mass, prior)
        if not fresh:
            for j in range(indptr[d], indptr[d + 1]):
                left = counts[j]
                for i in range(token_ptr[j], token_ptr[j + 1]):
                    mass[z[i]] += min(left, 1.0)
                    left -= 1.0
        for sweep in range(n_sweeps):
            for j in range(indptr[d], indptr[d + 1]):
                row, left = phi[words[j]], counts[j]
                for i in range(token_ptr[j], token_ptr[j + 1]):
                    weight = min(left, 1.0)
                    left -= 1.0
                    if sweep > 0 or not fresh:
                        mass[z[i]] = max(mass[z[i]] - weight, prior[z[i]])
                    total = 0.0
                    for k in range(n_topics):
                        total += mass[k] * row[k]
                        running[k] = total
                    counter += GOLDEN
                    target = unit(mix64(counter)) * total
                    k = 0
                    while k < n_topics - 1 and running[k] <= target:
                        k += 1
                    z[i] = k
                    mass[k] += weight
        # This stream is separate, so that its start does not depend on the number of tokens.
        total = dirichlet_row(mass, mix64(keys[d] + GOLDEN), cells)
        for k in range(n_topics):
            theta[d, k] = cells[k] / total
    return OK
