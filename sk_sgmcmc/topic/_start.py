"""Where a chain of a topic model starts: assignments by a streaming pass of EM, instead of at random."""

import numpy as np

_N_UPDATES = 5  # EM steps for the proportions of a document
_GROWTH = 0.7  # exponent at which the memory grows
_TOKENS_PER_CALL = 2_000_000
# Up to this many tokens the passes are repeated, and the memory at the start is longer, both in documents.
_SMALL = 5_000_000
_FEW = 200  # topics
_NO_ASSIGNMENTS = np.empty(0, dtype=np.uint16)


def soft_start(data, doc_prior, word_prior, rng, z):
    """Write an assignment of all tokens into ``z`` (n_tokens,).

    Topics are learnt by one or two passes over the documents, each document moving them by a step that shrinks as
    the memory grows; first twice as many topics as wanted, of which the most alike are then joined, which is what
    keeps so fast a start out of poor optima; then one more pass, in which every token also draws a topic.

    Parameters
    ----------
    data : TokenData
    doc_prior : ndarray of shape (n_topics,)
    word_prior : float
    rng : Generator
    z : ndarray of uint16
    """
    n_topics = doc_prior.size
    total = float(data.weights.sum() if data.weights.size else data.words.size)
    if total == 0 or n_topics == 1:
        z[:] = rng.integers(n_topics, size=z.size, dtype=np.uint16)
        return
    small = total < _SMALL
    mean = total / data.n_docs
    window, unit = (400.0, 80.0) if small else (200.0, 40.0)
    # A memory longer than the corpus would let one pass teach nothing.
    window = min(window, max(1.0, data.n_docs / 20.0))
    # A pass costs in proportion to the topics, and joining to their square: with many, one plain pass must do.
    few = n_topics <= _FEW
    topics = SoftTopics(data, 2 * n_topics if few else n_topics, float(doc_prior.mean()), word_prior, total, rng)
    for _ in range((2 if small else 1) if few else 0):
        topics.learn(rng.permutation(data.n_docs), window * mean, unit * mean)
    if few:
        topics.merge(n_topics)
    topics.doc_prior = doc_prior
    topics.learn(rng.permutation(data.n_docs), window * mean, unit * mean, z)


def pieces(token_ptr, tokens=_TOKENS_PER_CALL):
    """Ranges of documents with about ``tokens`` tokens each, so that no kernel runs for long."""
    stop, n_docs = 0, token_ptr.size - 1
    while stop < n_docs:
        start = stop
        stop = int(np.searchsorted(token_ptr, token_ptr[start] + tokens, side="right")) - 1
        stop = min(max(stop, start + 1), n_docs)
        yield start, stop


class SoftTopics:
    """Expected counts of the topics while they are learnt.

    Parameters
    ----------
    data : TokenData
    n_topics : int
    doc_prior, word_prior : float
    total : float
        Tokens of the corpus.
    rng : Generator
    """

    def __init__(self, data, n_topics, doc_prior, word_prior, total, rng):
        self.data, self.word_prior, self.total = data, word_prior, total
        raw = rng.gamma(100.0, 0.01, (data.n_words, n_topics)).astype(np.float32)
        self.raw = raw * np.float32(total / raw.sum(dtype=np.float64))
        self.mass = self.raw.sum(axis=0, dtype=np.float64)
        self.scale, self.seen = np.ones(1), np.zeros(1)
        self.doc_prior = np.full(n_topics, doc_prior)
        self.rng = rng

    def learn(self, order, window, unit, z=_NO_ASSIGNMENTS):
        """One pass over the documents in ``order``; with ``z``, its tokens are assigned."""
        from ..kernels.topic_start import soft_pass

        data = self.data
        n = max(1, int(_TOKENS_PER_CALL * data.n_docs / max(1, data.words.size)))
        for start in range(0, data.n_docs, n):
            soft_pass(
                start, min(start + n, data.n_docs), order, _N_UPDATES, data.token_ptr, data.words, data.weights,
                self.raw, self.mass, self.scale, self.seen, self.doc_prior, self.word_prior, self.total, window,
                _GROWTH, unit, z, self.rng,
            )  # fmt: skip

    def merge(self, n_topics):
        """Join topics until ``n_topics`` are left."""
        from ..kernels.topic_start import merge_topics

        counts = np.ascontiguousarray(self.raw.T) * np.float32(self.scale[0])
        alive = np.ones(self.mass.size, dtype=bool)
        merge_topics(counts, self.mass, n_topics, alive)
        self.raw = np.ascontiguousarray(counts[alive].T)
        self.mass = self.mass[alive]
        self.scale[0] = 1.0
