"""Signals of Dirichlet-multinomial regression, where each group of documents has its own topic prior.

The topic counts of a document have a Dirichlet-multinomial distribution with parameter exp(eta), which is shared within
a group of documents. The likelihood depends only on the distinct counts within a group. They are stored as ``at``, the
index g n_topics + k of group g and topic k, ``count``, and ``times``, the number of documents of the group with this
count. Likewise, ``group``, ``length`` and ``docs`` store the distinct lengths of documents and their numbers. All of
these are in the order of the groups. Many documents of a group have equal counts, so these lists are much shorter than
a list of all documents.
"""

import math

import numpy as np
from numba import types

from .._jit import BOOL, F1, F1_IN, F2, F2_IN, F8, I1, I1_IN, I8, OK, helper, kernel, read_only
from ..math.special import digamma, digamma_difference, log_rise, trigamma

Z_IN = read_only(types.uint16, 1)
_MOST = 32  # Counts below this are collected by group.
_FEW = 20.0  # counts below which a product of factors replaces a ratio of gamma functions


@kernel(I8(I1_IN, F1_IN, Z_IN, I1_IN, I8, I1, F1, F1))
def count_cells(token_ptr, weights, z, group, n_topics, at, count, times):
    """Count the topics of documents sorted by ``group``; writes as many cells as fit, and returns their number.

    Parameters
    ----------
    at, count, times : (room,), written
    """
    in_doc = np.zeros(n_topics)
    seen = np.empty(n_topics + 1, np.int64)
    often = np.zeros((n_topics, _MOST))  # number of the group's documents with n tokens of topic k
    largest = np.zeros(n_topics, np.int64)
    found = np.empty(n_topics + 1, np.int64)
    weighted = weights.shape[0] > 0
    room = at.shape[0]
    n_docs = token_ptr.shape[0] - 1
    m, n_found = 0, 0
    for d in range(n_docs):
        first = group[d] * n_topics
        last_of_group = d + 1 == n_docs or group[d + 1] != group[d]
        alone = last_of_group and n_found == 0
        n = 0
        for i in range(token_ptr[d], token_ptr[d + 1]):
            k = np.intp(z[i])
            seen[n] = k  # No branch, since the processor could not predict it.
            n += in_doc[k] == 0.0
            in_doc[k] += weights[i] if weighted else 1.0
        for j in range(n):
            k = seen[j]
            c = in_doc[k]
            in_doc[k] = 0.0
            if alone or c >= _MOST or (weighted and c != math.floor(c)):
                if m < room:
                    at[m], count[m], times[m] = first + k, c, 1.0
                m += 1
                continue
            found[n_found] = k
            n_found += largest[k] == 0
            largest[k] = max(largest[k], np.intp(c))
            often[k, np.intp(c)] += 1.0
        if last_of_group:
            for j in range(n_found):
                k = found[j]
                for c in range(1, largest[k] + 1):
                    if often[k, c] > 0.0:
                        if m < room:
                            at[m], count[m], times[m] = first + k, c, often[k, c]
                        often[k, c] = 0.0
                        m += 1
                largest[k] = 0
            n_found = 0
    return m


@kernel(F8(I1_IN, F1_IN, F1_IN, I1_IN, F1_IN, F1_IN, F2_IN, BOOL, F2), fast_sums=True)
def dirichlet_multinomial(at, count, times, group, length, docs, alpha, with_value, residual):
    r"""Log likelihood of the documents' topics, and its derivative in eta = log(alpha).

    .. math:: \log p = \sum_d \Bigl[ \log\Gamma(A_d) - \log\Gamma(A_d + n_d)
              + \sum_k \log\Gamma(\alpha_{dk} + n_{dk}) - \log\Gamma(\alpha_{dk}) \Bigr], \qquad
              r_{gk} = \alpha_{gk} \sum_{d \in g} \bigl[ \psi(A_d) - \psi(A_d + n_d)
              + \psi(\alpha_{dk} + n_{dk}) - \psi(\alpha_{dk}) \bigr].

    For small counts, differences of digamma functions are computed as sums of reciprocals, which are exact for any
    alpha.

    Parameters
    ----------
    at, count, times, group, length, docs : distinct counts and lengths, as described at the top of this file
    alpha : (n_groups, n_topics)
    with_value : whether to compute the log likelihood
    residual : (n_groups, n_topics), written

    Returns
    -------
    value : the log likelihood, or 0 without ``with_value``
    """
    n_groups, n_topics = alpha.shape
    value = 0.0
    i, j = 0, 0
    for g in range(n_groups):  # Group by group, so that each row is read and written once.
        whole = 0.0
        for k in range(n_topics):
            whole += alpha[g, k]
            residual[g, k] = 0.0
        before, reached, rise = -1, 0.0, 0.0
        while i < at.shape[0] and at[i] < (g + 1) * n_topics:
            k = at[i] - g * n_topics
            a, n = alpha[g, k], count[i]
            if at[i] == before and reached < n < _FEW and n - reached == math.floor(n - reached):
                for m in range(int(n - reached)):  # Continue from the smaller count.
                    rise += 1.0 / (a + reached + m)
            else:
                rise = digamma_difference(a, n)
            before, reached = at[i], n
            residual[g, k] += times[i] * rise
            if with_value:
                value += times[i] * log_rise(a, n)
            i += 1
        # For small parameters, the difference of two digammas would cancel.
        at_whole = digamma(whole) if whole > 1e-3 else 0.0
        below = 0.0
        while j < group.shape[0] and group[j] == g:
            rise = digamma(whole + length[j]) - at_whole if whole > 1e-3 else digamma_difference(whole, length[j])
            below += docs[j] * rise
            if with_value:
                value -= docs[j] * log_rise(whole, length[j])
            j += 1
        for k in range(n_topics):
            residual[g, k] = alpha[g, k] * (residual[g, k] - below)
    return value


@helper(fast_sums=True)
def _sums_of_rows(alpha):
    sums = np.zeros(alpha.shape[0])
    for g in range(alpha.shape[0]):
        total = 0.0
        for k in range(alpha.shape[1]):
            total += alpha[g, k]
        sums[g] = total
    return sums


@helper
def _trigamma_fall(a, n):
    """trigamma(a) - trigamma(a + n), computed as a sum for small whole n."""
    if n < _FEW and n == math.floor(n):
        total = 0.0
        for i in range(int(n)):
            total += 1.0 / ((a + i) * (a + i))
        return total
    return trigamma(a) - trigamma(a + n)


@kernel(I8(I1_IN, F1_IN, F1_IN, I1_IN, F1_IN, F1_IN, F2_IN, F2, F1, F2))
def dirichlet_information(at, count, times, group, length, docs, alpha, own, common, tables):
    r"""Parts of the information about eta = log(alpha), summed over the documents of each group.

    Minus the second derivatives of the log likelihood have the expectation of
    :math:`\mathrm{diag}(\mathrm{own}) - \mathrm{common}\, \alpha \alpha^\top` with

    .. math:: \mathrm{own}_{gk} = \alpha_{gk}^2 \sum_{d \in g} \psi'(\alpha_{gk}) - \psi'(\alpha_{gk} + n_{dk}), \qquad
              \mathrm{common}_g = \sum_{d \in g} \psi'(A_g) - \psi'(A_g + n_d).

    For whole counts, they are bounded by the diagonal matrix of
    :math:`\mathrm{tables}_{gk} = \alpha_{gk} \sum_{d \in g} \psi(A_g + n_d) - \psi(A_g)`, the expected number of times
    that documents draw topic k from the prior.

    Parameters
    ----------
    at, count, times, group, length, docs, alpha
        As for `dirichlet_multinomial`.
    own, common, tables : (n_groups, n_topics), (n_groups,), (n_groups, n_topics), written
    """
    n_groups, n_topics = alpha.shape
    below = np.zeros(n_groups)
    whole = _sums_of_rows(alpha)
    parameters, information = alpha.ravel(), own.ravel()
    information[:] = 0.0
    common[:] = 0.0
    for i in range(at.shape[0]):
        a = parameters[at[i]]
        information[at[i]] += times[i] * a * a * _trigamma_fall(a, count[i])
    for i in range(group.shape[0]):
        g = group[i]
        common[g] += docs[i] * _trigamma_fall(whole[g], length[i])
        below[g] += docs[i] * digamma_difference(whole[g], length[i])
    for g in range(n_groups):
        for k in range(n_topics):
            tables[g, k] = alpha[g, k] * below[g]
    return OK
