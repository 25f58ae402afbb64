"""Collapsed Gibbs sampling at a cost linear in the occupied topics: those without tokens form one entry."""

import math

import numpy as np

from ..._jit import F1, F1_IN, F2, F2_IN, F8, I1_IN, I8, OK, RNG, kernel
from .assignments import I4_IN, Z_IN, Z


@kernel(I8(I8, I8, I1_IN, I4_IN, F1_IN, Z, F2, F1, F1_IN, F8, F1_IN, RNG), fast_sums=True)
def sweep_in_use(start, stop, token_ptr, words, weights, z, counts, topic_mass, beta, beta_mass, doc_prior, rng):
    """One sweep over documents start:stop, counts changed after every token.

    p(z = k) is proportional to (n_dk + alpha_k) (n_wk + beta_w) / (n_k + sum_w beta_w), the token itself left out. For
    a topic without tokens that is alpha_k beta_w / sum_w beta_w, so one sum of alpha stands for all of them.

    Parameters
    ----------
    counts : (n_words, n_topics), n_wk of all tokens
    topic_mass : (n_topics,), n_k
    beta, beta_mass : (n_words,) and its sum, the prior of every topic
    """
    n_topics = counts.shape[1]
    used = np.empty(n_topics, np.int64)  # topics with tokens, then the others
    place = np.empty(n_topics, np.int64)
    n_doc = np.zeros(n_topics)
    running = np.empty(n_topics)
    inverse = np.empty(n_topics)
    ahead, behind = 0, n_topics
    idle = 0.0  # sum of alpha over topics without tokens
    for k in range(n_topics):
        inverse[k] = 1.0 / (topic_mass[k] + beta_mass)
        if topic_mass[k] > 0.0:
            used[ahead] = k
            place[k] = ahead
            ahead += 1
        else:
            behind -= 1
            used[behind] = k
            place[k] = behind
            idle += doc_prior[k]
    weighted = weights.shape[0] > 0
    for d in range(start, stop):
        for i in range(token_ptr[d], token_ptr[d + 1]):
            n_doc[z[i]] += weights[i] if weighted else 1.0
        for i in range(token_ptr[d], token_ptr[d + 1]):
            w = words[i]
            k = np.int64(z[i])
            weight = weights[i] if weighted else 1.0
            n_doc[k] -= weight
            counts[w, k] -= weight
            topic_mass[k] -= weight
            inverse[k] = 1.0 / (topic_mass[k] + beta_mass)
            if topic_mass[k] == 0.0:
                ahead -= 1
                other = used[ahead]
                used[place[k]], place[other] = other, place[k]
                used[ahead], place[k] = k, ahead
                idle += doc_prior[k]
            total = 0.0
            for j in range(ahead):
                t = used[j]
                total += (n_doc[t] + doc_prior[t]) * (counts[w, t] + beta[w]) * inverse[t]
                running[j] = total
            target = rng.random() * (total + idle * beta[w] / beta_mass)
            j = 0
            while j < ahead and running[j] <= target:
                j += 1
            if j == ahead and ahead < n_topics:
                target = (target - total) * beta_mass / beta[w]
                while j < n_topics - 1 and doc_prior[used[j]] <= target:
                    target -= doc_prior[used[j]]
                    j += 1
                k = used[j]
                other = used[ahead]
                used[j], place[other] = other, j
                used[ahead], place[k] = k, ahead
                ahead += 1
                idle = 0.0
                for j in range(ahead, n_topics):
                    idle += doc_prior[used[j]]
            else:
                k = used[min(j, ahead - 1)]
            z[i] = k
            n_doc[k] += weight
            counts[w, k] += weight
            topic_mass[k] += weight
            inverse[k] = 1.0 / (topic_mass[k] + beta_mass)
        for i in range(token_ptr[d], token_ptr[d + 1]):
            n_doc[z[i]] = 0.0
    return OK


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
