"""A corpus as tokens: what chains of count topic models are bound to."""

import zlib

import numpy as np

_MAX_TOKENS = 10**10


class TokenData:
    """A corpus as tokens, document after document; shared by all chains.

    Parameters
    ----------
    corpus : Corpus
    n_batch : int
        Documents in a minibatch.
    total_samples : float
        Documents that the posterior is about: N in the scale N/n.
    n_threads : int
        Threads over the documents of a minibatch; changes no draw.
    start : TokenData or None
        Documents that chains start from, where these are others.
    """

    def __init__(self, corpus, n_batch, total_samples, n_threads=1, start=None):
        total = float(corpus.counts.sum())
        if total > _MAX_TOKENS:
            raise ValueError(
                f"X holds {total:g} tokens, the largest entry being {corpus.counts.max():g}; at most {_MAX_TOKENS:g} "
                "can be held, since every token has a topic. If these are counts, pass parts of them to partial_fit."
            )
        self.token_ptr, self.words, weights = corpus.expand_tokens()
        # Multiples of 2^-20 add up exactly in any order, so counts do not depend on how threads share documents.
        self.weights = np.maximum(np.round(weights * 2.0**20), 1.0) * 2.0**-20
        self.n_words = corpus.n_words
        self.n_batch = n_batch
        self.total_samples = total_samples
        self.n_threads = n_threads
        self.start = start
        self.group = np.zeros(self.n_docs, dtype=np.int64)  # documents of one group share their prior

    @property
    def n_docs(self):
        """Number of documents."""
        return self.token_ptr.size - 1

    def fingerprint(self):
        """A number that other tokens would hardly have, to know the data again."""
        return zlib.crc32(self.words, zlib.crc32(self.token_ptr, zlib.crc32(self.weights)))
