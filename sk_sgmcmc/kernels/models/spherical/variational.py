"""Mean-field variational inference for the spherical admixture model.

q(theta_d) is Dirichlet(a_d), and q(beta_k) is vMF(mu_k, xi). The concentration xi is the same for all topics, equal to
the sigma of their prior.

The expected cosine of a document and its mean direction has no closed form. As in the model's first paper, it is
replaced by the ratio of expectations, with A = A_V(xi) the mean length of a topic:

    rho = A a'y / sqrt(Q),    Q = a_0 / (a_0 + 1) [a_0 + (1 - A^2) |a|^2 + A^2 a'G a],    y = mu v, G = mu mu'

References
----------
Reisinger, Waters, Silverthorn and Mooney (2010), Spherical topic models, ICML, section 4.
"""

import math

import numpy as np

from ..._jit import F1, F1_IN, F2, F2_IN, F8, I1_IN, I8, OK, helper, kernel
from ...math.arrays import set_to
from ...math.special import digamma, trigamma


@helper
def expected_cosine(a, gram, y, mean_length, bent):
    """Write G a into ``bent``; return rho, a_0 and Q."""
    total, squares, across, along = 0.0, 0.0, 0.0, 0.0
    for k in range(a.shape[0]):
        bent[k] = 0.0
        for j in range(a.shape[0]):
            bent[k] += gram[k, j] * a[j]
        total += a[k]
        squares += a[k] * a[k]
        across += a[k] * bent[k]
        along += a[k] * y[k]
    A2 = mean_length * mean_length
    Q = total / (total + 1.0) * (total + (1.0 - A2) * squares + A2 * across)
    return mean_length * along / math.sqrt(Q), total, Q


@helper
def document_bound(a, gram, y, alpha, kappa, mean_length, bent):
    """Lower bound of a document up to a constant: kappa rho - KL(Dirichlet(a) | Dirichlet(alpha))."""
    rho, total, _ = expected_cosine(a, gram, y, mean_length, bent)
    bound = kappa * rho - math.lgamma(total)
    psi_total = digamma(total)
    for k in range(a.shape[0]):
        bound += math.lgamma(a[k]) + (alpha[k] - a[k]) * (digamma(a[k]) - psi_total)
    return bound


@helper
def document_gradient(a, gram, y, alpha, kappa, mean_length, bent, gradient):
    """Gradient of `document_bound` in a."""
    rho, total, Q = expected_cosine(a, gram, y, mean_length, bent)
    A2 = mean_length * mean_length
    inner = Q * (total + 1.0) / total
    outer = total / (total + 1.0)
    slack = 0.0
    for k in range(a.shape[0]):
        slack += alpha[k] - a[k]
    tri_total = trigamma(total)
    for k in range(a.shape[0]):
        dQ = inner / (total + 1.0) ** 2 + outer * (1.0 + 2.0 * (1.0 - A2) * a[k] + 2.0 * A2 * bent[k])
        gradient[k] = kappa * (mean_length * y[k] / math.sqrt(Q) - 0.5 * rho * dQ / Q)
        gradient[k] += (alpha[k] - a[k]) * trigamma(a[k]) - slack * tri_total


@kernel(I8(F2_IN, F2_IN, F1_IN, F8, F8, I1_IN, F2, F1, I8, F2, F2, F8))
def ascend_documents(gram, products, alpha, kappa, mean_length, docs, a, step_sizes, n_inner, share, across, scale):
    """Gradient ascent in log a with backtracking, and sums for the topics' gradient.

    The gradient in mu of the documents' part of the bound, times ``scale``, is share'v - across mu, with ``share``
    (n_batch, n_topics) and ``across`` (n_topics, n_topics).
    """
    n_topics = alpha.shape[0]
    bent, gradient, trial = np.empty(n_topics), np.empty(n_topics), np.empty(n_topics)
    across[:] = 0.0
    for s in range(docs.shape[0]):
        d = docs[s]
        own = a[d]
        bound = document_bound(own, gram, products[s], alpha, kappa, mean_length, bent)
        for _ in range(n_inner):
            document_gradient(own, gram, products[s], alpha, kappa, mean_length, bent, gradient)
            for _ in range(30):
                for k in range(n_topics):
                    move = min(max(step_sizes[d] * own[k] * gradient[k], -1.0), 1.0)
                    trial[k] = min(max(own[k] * math.exp(move), 1e-3), 1e7)
                value = document_bound(trial, gram, products[s], alpha, kappa, mean_length, bent)
                if value >= bound:
                    set_to(own, trial)
                    bound = value
                    step_sizes[d] *= 1.5
                    break
                step_sizes[d] *= 0.3
        rho, total, Q = expected_cosine(own, gram, products[s], mean_length, bent)
        for k in range(n_topics):
            share[s, k] = scale * kappa * mean_length * own[k] / math.sqrt(Q)
            factor = scale * kappa * rho * mean_length * mean_length * total / (total + 1.0) * own[k] / Q
            for j in range(n_topics):
                across[k, j] += factor * own[j]
    return OK


@kernel(F8(F2_IN, F2_IN, F1_IN, F8, F8, F2_IN))
def documents_bound(gram, products, alpha, kappa, mean_length, a):
    """Sum of `document_bound` over documents, for tests."""
    bent, total = np.empty(alpha.shape[0]), 0.0
    for s in range(a.shape[0]):
        total += document_bound(a[s], gram, products[s], alpha, kappa, mean_length, bent)
    return total
