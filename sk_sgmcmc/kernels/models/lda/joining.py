"""The evidence for joining two topics, from the documents' side."""

import math

import numpy as np

from ..._jit import F1, F1_IN, F2_IN, F8, I1_IN, I8, OK, kernel
from .assignments import I4_IN, Z_IN


@kernel(I8(I1_IN, I4_IN, F1_IN, Z_IN, I1_IN, F2_IN, F1_IN, F1_IN, F8, F1_IN, F1))
def pair_gains(token_ptr, words, weights, z, partner, counts, topic_mass, beta, beta_mass, doc_prior, gains):
    """The documents' evidence for keeping two topics apart, for each topic j whose partner[j] > j.

    The difference of log p(z) between the present assignments and those with both topics merged, plus the entropy of
    the choice between the two for each of their tokens.

    Parameters
    ----------
    partner : (n_topics,), the other topic of a pair, -1 for none
    gains : (n_topics,), written
    """
    n_doc = np.zeros(counts.shape[1])
    gains[:] = 0.0
    weighted = weights.shape[0] > 0
    for d in range(token_ptr.shape[0] - 1):
        for i in range(token_ptr[d], token_ptr[d + 1]):
            n_doc[z[i]] += weights[i] if weighted else 1.0
        for i in range(token_ptr[d], token_ptr[d + 1]):
            j = np.int64(z[i])
            k = partner[j]
            if k < 0:
                continue
            w, weight = words[i], weights[i] if weighted else 1.0
            own = (n_doc[j] - weight + doc_prior[j]) * (counts[w, j] - weight + beta[w])
            own /= topic_mass[j] - weight + beta_mass
            other = (n_doc[k] + doc_prior[k]) * (counts[w, k] + beta[w]) / (topic_mass[k] + beta_mass)
            q = min(max(own / (own + other), 1e-12), 1.0 - 1e-12)
            gains[min(j, k)] -= weight * (q * math.log(q) + (1.0 - q) * math.log(1.0 - q))
        for i in range(token_ptr[d], token_ptr[d + 1]):
            j = np.int64(z[i])
            k = partner[j]
            if k >= 0 and n_doc[j] > 0.0:
                both, prior = n_doc[j] + n_doc[k], doc_prior[j] + doc_prior[k]
                gain = math.lgamma(n_doc[j] + doc_prior[j]) - math.lgamma(doc_prior[j])
                if n_doc[k] > 0.0:
                    gain += math.lgamma(n_doc[k] + doc_prior[k]) - math.lgamma(doc_prior[k])
                gains[min(j, k)] += gain - math.lgamma(both + prior) + math.lgamma(prior)
                n_doc[k] = 0.0
            n_doc[j] = 0.0
    return OK
