"""Signals of the spherical admixture model for its topics, in K dimensions.

Documents are unit rows v_d of a CSR matrix, topics are unit rows beta_k, and a document's mean direction is
u = beta' theta. The distribution of theta depends on beta only through the Gram matrix G = beta beta' and the products
y = beta v, since |u|^2 = theta' G theta and u'v = theta'y. The gradient in the topics is a sparse sum W'v plus a K x K
matrix times beta. No dense array of size documents x words is allocated.
"""

import math

import numpy as np

from ..._jit import F1, F1_IN, F2, F2_IN, F8, I1_IN, I8, OK, helper, kernel, read_only
from ...math.arrays import set_to
from ...math.special import bessel_ratio, log_vmf_normaliser

F3_IN = read_only(F8, 3)


@helper(fast_sums=True)
def sparse_products(beta, ptr, words, values, docs, out):
    """out[s, k] = beta_k' v_s for the documents ``docs``."""
    for s in range(docs.shape[0]):
        lo, hi = ptr[docs[s]], ptr[docs[s] + 1]
        for k in range(beta.shape[0]):
            total = 0.0
            row = beta[k]
            for j in range(lo, hi):
                total += values[j] * row[words[j]]
            out[s, k] = total


@helper
def gram_matrix(beta, gram):
    """gram = beta beta'."""
    set_to(gram, np.dot(beta, beta.T))


@helper(fast_sums=True)
def sizes(theta, gram, y, bent):
    """Write G theta into ``bent``; return |u| and u'v."""
    n = theta.shape[0]
    square, along = 0.0, 0.0
    for k in range(n):
        total = 0.0
        for j in range(n):
            total += gram[k, j] * theta[j]
        bent[k] = total
        square += total * theta[k]
        along += theta[k] * y[k]
    return math.sqrt(max(square, 1e-300)), along


@helper(fast_sums=True)
def add_document_terms(gram, products, draws, kappa, scale, share, across):
    """Sum over documents s and draws n of scale kappa / N times u'v / |u|; its gradient is share'v - across beta.

    share[s] = scale kappa mean_n theta / |u|, across = scale kappa sum_s mean_n theta theta' u'v / |u|^3. Returns this
    sum, and the sum of squared norms of the gradients of single documents.
    """
    n_topics = gram.shape[0]
    bent = np.empty(n_topics)
    total, squares = 0.0, 0.0
    across[:] = 0.0
    n_draws = draws.shape[1]
    each = scale * kappa / n_draws
    for s in range(draws.shape[0]):
        share[s] = 0.0
        for n in range(n_draws):
            theta = draws[s, n]
            size, along = sizes(theta, gram, products[s], bent)
            cosine = along / size
            total += each * cosine
            own = 0.0
            for k in range(n_topics):
                share[s, k] += each * theta[k] / size
                own += theta[k] * theta[k]
                factor = each * theta[k] * cosine / (size * size)
                for j in range(n_topics):
                    across[k, j] += factor * theta[j]
            squares += kappa * kappa * own * max(1.0 - cosine * cosine, 0.0) / (size * size * n_draws)
    return total, squares


@helper(fast_sums=True)
def add_changes(gram, products, before, terms, kappa, lag, share, across):
    """Add ``lag`` times the change of the gradient since documents were last visited, at their previous proportions.

    ``before`` (n_docs, n_topics) contains these proportions, and ``terms`` (n_docs, 2) the 1/|u| and cos(u, v) of that
    time. The change of theta v'/|u| is added to ``share``, and the change of theta theta' cos/|u|^2 to ``across``.
    Returns the sum of squared norms of the changes of single documents.
    """
    n_topics = gram.shape[0]
    bent = np.empty(n_topics)
    squares = 0.0
    for s in range(before.shape[0]):
        theta = before[s]
        size, along = sizes(theta, gram, products[s], bent)
        over, cosine = 1.0 / size, along / size
        ahead = over - terms[s, 0]
        aside = over * over * cosine - terms[s, 0] * terms[s, 0] * terms[s, 1]
        own = 0.0
        for k in range(n_topics):
            share[s, k] += lag * kappa * ahead * theta[k]
            own += theta[k] * theta[k]
            for j in range(n_topics):
                across[k, j] += lag * kappa * aside * theta[k] * theta[j]
        # |ahead v - aside u|^2, where v has length 1.
        change = ahead * ahead - 2.0 * ahead * aside * along + aside * aside * size * size
        squares += kappa * kappa * own * max(change, 0.0)
    return squares


@helper
def admixture_gradient(
    beta,
    ptr,
    words,
    values,
    docs,
    draws,
    prior,
    center,
    scale,
    others,
    others_across,
    before,
    terms,
    lag,
    gram,
    products,
    share,
    across,
    signal,
    extra,
):
    """Gradient of the log posterior of the topics, given draws of the documents' theta, into ``signal``.

    ``prior`` = (kappa0, kappa1, sigma). ``others`` (n_topics, n_words) and ``others_across`` (n_topics, n_topics) are
    the terms of the documents not in ``docs``, without kappa1, at their last visit (see `exchange_documents`).
    ``others`` without rows adds nothing.

    ``before``, ``terms`` and ``lag`` are as in `add_changes`. They correct for the change of the topics since the other
    documents were visited. ``lag`` is 0, or the number of other documents divided by the number of ``docs``.

    ``extra`` = (log density of the documents ``docs`` and of the topics up to a constant, variance of the gradient's
    noise averaged over coordinates).
    """
    n_topics, n_words = beta.shape
    gram_matrix(beta, gram)
    sparse_products(beta, ptr, words, values, docs, products)
    total, squares = add_document_terms(gram, products, draws, prior[1], scale, share, across)
    stored = others.shape[0] > 0
    if stored:
        across += prior[1] * others_across
    changes = 0.0
    if lag > 0.0:
        changes = add_changes(gram, products, before, terms, prior[1], lag, share, across)
    set_to(signal, np.dot(across, beta))
    norm = 0.0
    for k in range(n_topics):
        for w in range(n_words):
            signal[k, w] = (prior[1] * others[k, w] if stored else 0.0) - signal[k, w]
    for s in range(docs.shape[0]):
        for k in range(n_topics):
            weight = share[s, k]
            for j in range(ptr[docs[s]], ptr[docs[s] + 1]):
                signal[k, words[j]] += weight * values[j]
    n_docs = docs.shape[0]
    extra[1] = 0.0
    if scale > 1.0 and n_docs > 1:
        for k in range(n_topics):
            for w in range(n_words):
                norm += signal[k, w] * signal[k, w]
        # ``squares`` is a sum over documents, and ``norm`` the squared norm of the scaled sum. ``spread`` is the
        # variance of a row, from which the variance of the estimate follows.
        spread = (squares - norm / (scale * scale * n_docs)) / (n_docs - 1.0)
        extra[1] = scale * scale * n_docs * (1.0 - 1.0 / scale) * max(spread, 0.0) / (n_topics * n_words)
    elif lag > 0.0:
        # lag + 1 = N/n. The mean change is not noise, but it is small.
        extra[1] = lag * (lag + 1.0) * changes / (n_topics * n_words)
    # With the mean direction integrated out, the log prior is -log c(|kappa0 m + sigma sum beta|).
    mean = prior[0] * center
    for k in range(n_topics):
        mean += prior[2] * beta[k]
    length = math.sqrt(np.dot(mean, mean))
    extra[0] = total - log_vmf_normaliser(float(n_words), length)
    if length > 0.0:
        pull = prior[2] * bessel_ratio(float(n_words), length) / length
        for k in range(n_topics):
            for w in range(n_words):
                signal[k, w] += pull * mean[w]


@kernel(I8(F2_IN, I1_IN, I1_IN, F1_IN, I1_IN, F3_IN, F1_IN, F1_IN, F8, F2_IN, F2_IN, F2_IN, F2_IN, F8, F2, F2, F1))
def admixture_signal(
    beta,
    ptr,
    words,
    values,
    docs,
    draws,
    prior,
    center,
    scale,
    others,
    others_across,
    before,
    terms,
    lag,
    across,
    signal,
    extra,
):
    """`admixture_gradient`, callable from Python; writes ``across``, whose largest eigenvalue is the stiffness."""
    n_topics = beta.shape[0]
    gram, products = np.empty((n_topics, n_topics)), np.empty((docs.shape[0], n_topics))
    share = np.empty_like(products)
    topics = beta.copy()
    admixture_gradient(
        topics, ptr, words, values, docs, draws, prior, center, scale, others, others_across, before, terms, lag, gram,
        products, share, across, signal, extra,
    )  # fmt: skip
    return OK


@kernel(I8(F2_IN, I1_IN, I1_IN, F1_IN, I1_IN, F2_IN, F2, F8, F2, F2))
def exchange_documents(beta, ptr, words, values, docs, theta, terms, sign, others, others_across):
    """Add documents to the sums over documents (``sign`` 1), or remove their terms (-1).

    Parameters
    ----------
    docs : indices of these documents
    theta : (n_docs, n_topics), proportions of all documents
    terms : (n_docs, 2), 1/|u| and cos(u, v) of each document, written for added documents
    others, others_across : sums of theta v' / |u| and of theta theta' cos / |u|^2; changed in place
    """
    n_topics = beta.shape[0]
    if sign > 0.0:
        gram, products = np.empty((n_topics, n_topics)), np.empty((docs.shape[0], n_topics))
        topics, bent = beta.copy(), np.empty(n_topics)
        gram_matrix(topics, gram)
        sparse_products(topics, ptr, words, values, docs, products)
        for s in range(docs.shape[0]):
            size, along = sizes(theta[docs[s]], gram, products[s], bent)
            terms[docs[s], 0], terms[docs[s], 1] = 1.0 / size, along / size
    for s in range(docs.shape[0]):
        d = docs[s]
        over_size, cosine = terms[d, 0], terms[d, 1]
        for k in range(n_topics):
            weight = sign * over_size * theta[d, k]
            for j in range(ptr[d], ptr[d + 1]):
                others[k, words[j]] += weight * values[j]
            for j in range(n_topics):
                others_across[k, j] += weight * over_size * cosine * theta[d, j]
    return OK


@kernel(I8(F2_IN, I1_IN, I1_IN, F1_IN, I1_IN, F2, F2))
def document_products(beta, ptr, words, values, docs, gram, products):
    """Write the Gram matrix of the topics, and their products with the documents ``docs``."""
    topics = beta.copy()
    gram_matrix(topics, gram)
    sparse_products(topics, ptr, words, values, docs, products)
    return OK
