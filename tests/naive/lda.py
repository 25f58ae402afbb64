"""Topic assignments in plain Python, written from the equations: one token after the other, all topics at once.

The documents' streams are SplitMix64 counters, here with Python's whole numbers. Topic k of a token of word w has the
weight (n_dk + alpha_k) phi_kw; the draw's number in [0, 1) first runs through the token's topic so far (the token
itself left out), then through the other topics present in the document, in the order in which they are listed, then
through alpha_k phi_kw, so that equal numbers give equal topics.
"""

import numpy as np

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix64(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def stream(seed, document):
    """Numbers in [0, 1) of one document."""
    counter = mix64(seed ^ mix64((int(document) + GOLDEN) & MASK))
    while True:
        counter = (counter + GOLDEN) & MASK
        yield (mix64(counter) >> 11) * 2.0**-53


BLOCK = 16


def topic_tables(cells, total, alpha):
    """phi (n_words, n_topics), and sums of alpha phi over blocks of topics and over all, in float32."""
    phi = (cells / total + 1e-30).astype(np.float32)
    weights = alpha * phi.astype(float)
    blocks = [weights[:, i : i + BLOCK].sum(axis=1) for i in range(0, weights.shape[1], BLOCK)]
    return phi, np.stack([*blocks, weights.sum(axis=1)], axis=1).astype(np.float32)


class Present:
    """The topics of a document in a list: a new one goes to the end, the last one fills the place of one that left."""

    def __init__(self, n_topics):
        self.weight = np.zeros(n_topics)
        self.order = []

    def add(self, k, weight):
        if self.weight[k] == 0:
            self.order.append(k)
        self.weight[k] += weight

    def take(self, k, weight):
        self.weight[k] -= weight
        if self.weight[k] == 0:
            i = self.order.index(k)
            self.order[i] = self.order[-1]
            self.order.pop()


def draw_topic(u, present, phi_w, blocks_w, alpha, old, weight):
    """Topic of one token by the number u; ``old`` is its topic so far, or None."""
    order = present.order if old is None else [old, *(k for k in present.order if k != old)]
    parts = [(present.weight[k] - (weight if k == old else 0.0)) * float(phi_w[k]) for k in order]
    target = u * (sum(parts) + float(blocks_w[-1]))
    for k, part in zip(order, parts, strict=True):
        target -= part
        if target < 0:
            return k
    block = 0
    while block < len(blocks_w) - 2 and target >= blocks_w[block]:
        target -= float(blocks_w[block])
        block += 1
    for k in range(block * BLOCK, min((block + 1) * BLOCK, len(alpha))):
        target -= alpha[k] * float(phi_w[k])
        if target < 0:
            return k
    return k


def draw_assignments(docs, phi, blocks, alpha, seed, z, n_burn=0, n_keep=1, fresh=False):
    """Sweeps over ``docs``, a list of (document, [(place of token, word, weight), ...]).

    ``z`` is changed in place where assignments are stored. Returns the change of the counts (n_words, n_topics) (or,
    if fresh, their sum over the kept sweeps) and the documents' counts after the last sweep.
    """
    n_topics = phi.shape[1]
    counts = np.zeros(phi.shape)
    doc_counts = np.zeros((len(docs), n_topics))
    for b, (d, tokens) in enumerate(docs):
        numbers = stream(seed, d)
        present = Present(n_topics)
        if not fresh:
            for i, w, weight in tokens:
                present.add(z[i], weight)
                counts[w, z[i]] -= weight
        for sweep in range(n_burn + n_keep):
            for i, w, weight in tokens:
                old = int(z[i]) if not fresh or sweep > 0 else None
                new = draw_topic(next(numbers), present, phi[w], blocks[w], alpha, old, weight)
                if new != old:
                    if old is not None:
                        present.take(old, weight)
                    present.add(new, weight)
                z[i] = new
            if fresh and sweep >= n_burn:
                for i, w, weight in tokens:
                    counts[w, z[i]] += weight
        if not fresh:
            for i, w, weight in tokens:
                counts[w, z[i]] += weight
        doc_counts[b] = present.weight
    return counts, doc_counts


def sweep_collapsed(token_ptr, words, weights, z, alpha, group, word_prior, topic, rng, share=None):
    """One collapsed sweep: p(z = k) in proportion to (n_dk + alpha_k) (n_wk + beta_wk) / (n_k + beta_k).

    With ``share``, (n_docs, n_topics), the topics of each document are also weighted by its row.

    ``z`` and ``topic``, which holds each column's topic or -1, are changed in place; topics without a column are drawn
    together, and then take that of the first topic without tokens.
    """
    n_topics, width = alpha.shape[1], topic.size
    for d in np.flatnonzero(np.diff(token_ptr)):
        counter = mix64(int(rng.random() * 2.0**53))
        for i in range(token_ptr[d], token_ptr[d + 1]):
            counter = (counter + GOLDEN) & MASK
            bits = mix64(counter)
            first, second = (bits >> 40) / 2.0**24, (bits >> 16 & 0xFFFFFF) / 2.0**24
            others = np.arange(z.size) != i
            same, inside = others & (words == words[i]), np.flatnonzero(others[: token_ptr[d + 1]])
            inside = inside[inside >= token_ptr[d]]
            n_wk, n_k, n_dk = (np.bincount(z[at], weights[at], n_topics) for at in (same, others, inside))
            p = (n_dk + alpha[group[d]]) * (n_wk + word_prior[words[i]]) / (n_k + word_prior.sum(axis=0))
            p = p if share is None else p * share[d]
            columns = np.where(topic >= 0, p[topic], 0.0)
            aside = np.setdiff1d(np.arange(n_topics), topic)
            rest = p[aside].sum()
            if rest > 0 and (mix64(bits) >> 11) * 2.0**-53 * p.sum() < rest:
                prior = alpha[group[d], aside]
                new = aside[np.searchsorted(np.cumsum(prior), rng.random() * prior.sum(), side="right")]
                n_k[z[i]] += weights[i]
                topic[np.flatnonzero((topic >= 0) & (n_k[topic] == 0))[0]] = new
                z[i] = new
                continue
            u, stay = first * columns.sum(), p[z[i]]
            if u < stay:
                continue
            columns[topic == z[i]] = 0.0
            columns = columns.reshape(width // BLOCK, BLOCK)
            lane = int(np.searchsorted(np.cumsum(columns.sum(axis=0)), u - stay, side="right"))
            sums = np.cumsum(columns[:, lane])
            z[i] = topic[lane + BLOCK * int(np.searchsorted(sums, second * sums[-1], side="right"))]


# ---------------------------------------------------------------------------------------------- tiny exact posteriors


def all_assignments(n_tokens, n_topics):
    """Every assignment of the tokens, (n_topics ** n_tokens, n_tokens)."""
    codes = np.arange(n_topics**n_tokens)
    return np.stack([codes // n_topics**i % n_topics for i in range(n_tokens)], axis=1)


def log_joint(z, words, docs, n_words, n_topics, alpha, beta):
    """log p(z, words) of each row of ``z`` up to a constant, topics and proportions integrated out.

    ``alpha`` is one row for all documents, or one for each.
    """
    from scipy.special import gammaln

    alpha = np.broadcast_to(alpha, (docs.max() + 1, n_topics))
    log_p = np.zeros(len(z))
    for k in range(n_topics):
        mine = z == k
        for w in range(n_words):
            log_p += gammaln(beta + mine[:, words == w].sum(axis=1))
        log_p -= gammaln(n_words * beta + mine.sum(axis=1))
        for d in np.unique(docs):
            log_p += gammaln(alpha[d, k] + mine[:, docs == d].sum(axis=1))
    return log_p


def posterior_of_assignments(words, docs, n_words, n_topics, alpha, beta):
    """All assignments and their probabilities."""
    z = all_assignments(len(words), n_topics)
    log_p = log_joint(z, words, docs, n_words, n_topics, alpha, beta)
    p = np.exp(log_p - log_p.max())
    return z, p / p.sum()


def moments_of_sum(z, p, word_pairs, words, n_words, n_topics, beta):
    """E of s_vw = sum_k phi_kv phi_kw and of its square, for each pair (v, w): both do not depend on labels.

    Given z, topics are independent Dirichlets, whose mixed moments are ratios of rising factorials.
    """
    shapes = np.stack(
        [[beta + ((z == k) & (words == w)).sum(axis=1) for w in range(n_words)] for k in range(n_topics)]
    ).transpose(2, 0, 1)  # (n_assignments, n_topics, n_words)

    def moment(powers):
        """E prod_w phi_w^powers_w for each assignment and topic."""
        from scipy.special import gammaln

        powers = np.asarray(powers)
        a = shapes
        log_m = gammaln(a + powers).sum(axis=2) - gammaln(a).sum(axis=2)
        log_m += gammaln(a.sum(axis=2)) - gammaln(a.sum(axis=2) + powers.sum())
        return np.exp(log_m)

    mean, square = [], []
    for v, w in word_pairs:
        powers = np.zeros(n_words)
        powers[v] += 1
        powers[w] += 1
        first, second = moment(powers), moment(2 * powers)
        mean.append(p @ first.sum(axis=1))
        cross = first.sum(axis=1) ** 2 - (first**2).sum(axis=1)
        square.append(p @ (second.sum(axis=1) + cross))
    return np.array(mean), np.array(square)
