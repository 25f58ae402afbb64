"""Topic proportions of documents with the topics fixed, and the predictive probability of their words.

These kernels compute the fixed-point iteration of `sk_sgmcmc.metrics.document_completion`. Each document is processed
separately, by the same operations in the same order. Any division of the documents over calls or threads therefore
gives the same bits.

All updates except the last use single precision, on a copy of the rows of the document's words that fits in the
processor's cache. This is about twice as fast, and the proportions differ by less than 1e-6.
"""

import numpy as np
from numba import types

from ._jit import F1, F1_IN, F2, F2_IN, I1_IN, I8, OK, helper, kernel, read_only

W1_IN = read_only(types.int32, 1)


_PADDING = 32  # single-precision rows are whole numbers of vectors, two at a time
_LEAST, _MOST = 1e-30, 1e30  # Numbers between these are safe in single precision.


@helper(fast_sums=True)
def _one_update(lo, hi, words, counts, phi, weight, share):
    """share_k = sum_w c_w phi_wk / (sum_l weight_l phi_wl), over the words lo:hi of one document.

    Four words are processed at a time, so that ``weight`` and ``share`` are read from memory once for four words.
    """
    n_topics = weight.size
    zero = weight.dtype.type(0.0)
    for k in range(n_topics):
        share[k] = zero
    j = lo
    while j + 4 <= hi:
        a, b, c, d = phi[words[j]], phi[words[j + 1]], phi[words[j + 2]], phi[words[j + 3]]
        ta = tb = tc = td = zero
        for k in range(n_topics):
            ta += weight[k] * a[k]
            tb += weight[k] * b[k]
            tc += weight[k] * c[k]
            td += weight[k] * d[k]
        # A word that is impossible under every topic has total 0 and is left out.
        sa = counts[j] / ta if ta > zero else zero
        sb = counts[j + 1] / tb if tb > zero else zero
        sc = counts[j + 2] / tc if tc > zero else zero
        sd = counts[j + 3] / td if td > zero else zero
        for k in range(n_topics):
            share[k] += sa * a[k] + sb * b[k] + sc * c[k] + sd * d[k]
        j += 4
    while j < hi:
        a = phi[words[j]]
        ta = zero
        for k in range(n_topics):
            ta += weight[k] * a[k]
        sa = counts[j] / ta if ta > zero else zero
        for k in range(n_topics):
            share[k] += sa * a[k]
        j += 1


@helper
def _scaled_row(row, out):
    """Write a row divided by its largest entry: small entries do not underflow, and updates do not depend on scale."""
    largest = 0.0
    for k in range(row.size):
        largest = max(largest, row[k])
    factor = 1.0 / largest if largest > 0.0 else 0.0
    for k in range(row.size):
        out[k] = row[k] * factor


@kernel(I8(I1_IN, W1_IN, F1_IN, F2_IN, F2_IN, I8, I8, I8, F2), fast_sums=True)
def proportions(indptr, words, counts, phi, alpha, n_updates, start, stop, theta):
    """Topic proportions of the documents start:stop, written into theta[start:stop].

    Parameters
    ----------
    indptr, words, counts : arrays of shapes (n_docs + 1,), (n_pairs,), (n_pairs,)
        Counts in CSR form.
    phi : ndarray of shape (n_words, n_topics)
        Probability of a word in a topic, word-major.
    alpha : ndarray of shape (1, n_topics) or (n_docs, n_topics)
        Dirichlet prior of the proportions, one row for all or one for each document.
    n_updates : int
        Number of fixed-point updates. There is no early stop, because the metric's definition fixes the number.
    start, stop : int
        Range of documents.
    theta : ndarray of shape (n_docs, n_topics)
        Written.
    """
    n_topics = phi.shape[1]
    width = -(-n_topics // _PADDING) * _PADDING
    longest = 0
    for d in range(start, stop):
        longest = max(longest, indptr[d + 1] - indptr[d])
    weight, share = np.empty(n_topics), np.empty(n_topics)
    # These are in single precision, and zero beyond the last topic. Loops compile faster than zeros and arange.
    rows, row_counts, places = (
        np.empty((longest, width), np.float32),
        np.empty(longest, np.float32),
        np.empty(longest, np.int32),
    )
    weight_4, prior_4, share_4 = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    for j in range(longest):
        places[j] = j
        for k in range(n_topics, width):
            rows[j, k] = 0.0
    for k in range(n_topics, width):
        weight_4[k] = prior_4[k] = 0.0
    for d in range(start, stop):
        prior = alpha[d if alpha.shape[0] > 1 else 0]
        lo, hi = indptr[d], indptr[d + 1]
        length = 0.0
        for j in range(lo, hi):
            length += counts[j]
        least, most = 1.0, length
        for k in range(n_topics):
            weight[k] = length / n_topics + prior[k]
            least, most = min(least, prior[k]), max(most, weight[k])
        n_left = n_updates
        if least > _LEAST and most < _MOST:
            for j in range(lo, hi):
                _scaled_row(phi[words[j]], rows[j - lo])
                row_counts[j - lo] = counts[j]
            for k in range(n_topics):
                weight_4[k], prior_4[k] = weight[k], prior[k]
            while n_left > 1:
                _one_update(0, hi - lo, places, row_counts, rows, weight_4, share_4)
                for k in range(width):
                    weight_4[k] = share_4[k] * weight_4[k] + prior_4[k]
                n_left -= 1
            for k in range(n_topics):
                weight[k] = weight_4[k]
        while n_left > 0:
            _one_update(lo, hi, words, counts, phi, weight, share)
            for k in range(n_topics):
                weight[k] = share[k] * weight[k] + prior[k]
            n_left -= 1
        total = 0.0
        for k in range(n_topics):
            total += weight[k]
        for k in range(n_topics):
            theta[d, k] = weight[k] / total
    return OK


@kernel(I8(I1_IN, W1_IN, F2_IN, F2_IN, I8, I8, F1), fast_sums=True)
def word_probabilities(indptr, words, phi, theta, start, stop, out):
    """Probability sum_k theta_dk phi_wk of each pair of the documents start:stop, written into ``out``.

    Parameters
    ----------
    indptr, words : arrays of shapes (n_docs + 1,), (n_pairs,)
    phi : ndarray of shape (n_words, n_topics)
    theta : ndarray of shape (n_docs, n_topics)
    start, stop : int
    out : ndarray of shape (n_pairs,)
        Written at the pairs of these documents.
    """
    for d in range(start, stop):
        for j in range(indptr[d], indptr[d + 1]):
            row = phi[words[j]]
            p = 0.0
            for k in range(row.size):
                p += theta[d, k] * row[k]
            out[j] = p
    return OK
