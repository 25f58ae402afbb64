"""Signals of Dirichlet-multinomial regression: documents' topics as counts, under a prior for each document.

Documents are draws of a Dirichlet-multinomial law whose parameter, exp(eta), is shared within a group. Counts
are pairs, document after document: ``ptr`` (n_docs + 1,), and ``topic`` and ``count`` (n_pairs,).
"""

import math

import numpy as np
from numba import types

from .._jit import BOOL, F1, F1_IN, F2, F2_IN, F8, I1, I1_IN, I8, OK, helper, kernel, read_only, writable
from ..math.special import digamma, digamma_difference, log_rise, trigamma

Z_IN = read_only(types.uint16, 1)
Z = writable(types.uint16, 1)
_FEW = 20.0  # counts up to which a product of factors replaces a ratio of gamma functions


@kernel(I8(I1_IN, F1_IN, Z_IN, I8, I1, Z, F1))
def count_pairs(token_ptr, weights, z, n_topics, ptr, topic, count):
    """Count the topics of each document: writes ``ptr``, and as many pairs as fit; returns their number."""
    in_doc = np.zeros(n_topics)
    seen = np.empty(n_topics, np.uint16)
    weighted = weights.shape[0] > 0
    m = 0
    ptr[0] = 0
    for d in range(token_ptr.shape[0] - 1):
        n = 0
        for i in range(token_ptr[d], token_ptr[d + 1]):
            k = z[i]
            if in_doc[k] == 0.0:
                seen[n] = k
                n += 1
            in_doc[k] += weights[i] if weighted else 1.0
        for j in range(n):
            if m + j < topic.shape[0]:
                topic[m + j] = seen[j]
                count[m + j] = in_doc[seen[j]]
            in_doc[seen[j]] = 0.0
        m += n
        ptr[d + 1] = m
    return m


@kernel(F8(I1_IN, Z_IN, F1_IN, I1_IN, F2_IN, BOOL, F2))
def dirichlet_multinomial(ptr, topic, count, group, alpha, with_value, residual):
    r"""Log likelihood of the documents' topics, and its derivative in eta = log(alpha).

    .. math:: \log p = \sum_d \Bigl[ \log\Gamma(A_d) - \log\Gamma(A_d + n_d)
              + \sum_k \log\Gamma(\alpha_{dk} + n_{dk}) - \log\Gamma(\alpha_{dk}) \Bigr], \qquad
              r_{gk} = \alpha_{gk} \sum_{d \in g} \bigl[ \psi(A_d) - \psi(A_d + n_d)
              + \psi(\alpha_{dk} + n_{dk}) - \psi(\alpha_{dk}) \bigr].

    Differences of digamma functions are sums of reciprocals for small counts, exact for any alpha.

    Parameters
    ----------
    ptr, topic, count : pairs of the documents
    group : (n_docs,)
    alpha : (n_groups, n_topics)
    with_value : whether to compute the log likelihood
    residual : (n_groups, n_topics), written

    Returns
    -------
    value : the log likelihood; 0 without ``with_value``
    """
    n_groups, n_topics = alpha.shape
    whole, at_whole, below = np.zeros(n_groups), np.empty(n_groups), np.zeros(n_groups)
    for g in range(n_groups):
        for k in range(n_topics):
            whole[g] += alpha[g, k]
            residual[g, k] = 0.0
        at_whole[g] = digamma(whole[g])
    value = 0.0
    for d in range(group.shape[0]):
        g = group[d]
        length = 0.0
        for j in range(ptr[d], ptr[d + 1]):
            k = topic[j]
            length += count[j]
            residual[g, k] += digamma_difference(alpha[g, k], count[j])
            if with_value:
                value += log_rise(alpha[g, k], count[j])
        if length > 0.0:
            if whole[g] > 1e-3:
                below[g] += digamma(whole[g] + length) - at_whole[g]
            else:
                below[g] += digamma_difference(whole[g], length)
            if with_value:
                value -= log_rise(whole[g], length)
    for g in range(n_groups):
        for k in range(n_topics):
            residual[g, k] = alpha[g, k] * (residual[g, k] - below[g])
    return value


@helper
def _trigamma_fall(a, n):
    """trigamma(a) - trigamma(a + n), by a sum for small whole n."""
    if n < _FEW and n == math.floor(n):
        total = 0.0
        for i in range(int(n)):
            total += 1.0 / ((a + i) * (a + i))
        return total
    return trigamma(a) - trigamma(a + n)


@kernel(I8(I1_IN, Z_IN, F1_IN, I1_IN, F2_IN, F2, F1, F2))
def dirichlet_information(ptr, topic, count, group, alpha, own, common, tables):
    r"""Parts of the information about eta = log(alpha), summed over the documents of each group.

    Minus the second derivatives of the log likelihood have the expectation of
    :math:`\mathrm{diag}(\mathrm{own}) - \mathrm{common}\, \alpha \alpha^\top` with

    .. math:: \mathrm{own}_{gk} = \alpha_{gk}^2 \sum_{d \in g} \psi'(\alpha_{gk}) - \psi'(\alpha_{gk} + n_{dk}), \qquad
              \mathrm{common}_g = \sum_{d \in g} \psi'(A_g) - \psi'(A_g + n_d),

    and, for whole counts, are never above the diagonal
    :math:`\mathrm{tables}_{gk} = \alpha_{gk} \sum_{d \in g} \psi(A_g + n_d) - \psi(A_g)`, the expected number of times
    that documents draw topic k from the prior.

    Parameters
    ----------
    ptr, topic, count, group, alpha
        As for `dirichlet_multinomial`.
    own, common, tables : (n_groups, n_topics), (n_groups,), (n_groups, n_topics), written
    """
    n_groups, n_topics = alpha.shape
    whole, below = np.zeros(n_groups), np.zeros(n_groups)
    own[:] = 0.0
    common[:] = 0.0
    for g in range(n_groups):
        for k in range(n_topics):
            whole[g] += alpha[g, k]
    for d in range(group.shape[0]):
        g = group[d]
        length = 0.0
        for j in range(ptr[d], ptr[d + 1]):
            a = alpha[g, topic[j]]
            length += count[j]
            own[g, topic[j]] += a * a * _trigamma_fall(a, count[j])
        if length > 0.0:
            common[g] += _trigamma_fall(whole[g], length)
            below[g] += digamma_difference(whole[g], length)
    for g in range(n_groups):
        for k in range(n_topics):
            tables[g, k] = alpha[g, k] * below[g]
    return OK
