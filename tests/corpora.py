"""Documents as chains and sweeps read them, from counts."""

import numpy as np
from scipy import sparse

from sk_sgmcmc.datasets import CountBlocks
from sk_sgmcmc.topic._counts.corpus import InMemoryShards, MemoryMappedShards, TokenCorpus
from sk_sgmcmc.topic._counts.documents import BlockCorpus, MatrixCorpus


def token_corpus(counts, n_topics=1, **params):
    """A `TokenCorpus` in memory; ``params`` as for it."""
    if not isinstance(counts, MatrixCorpus):
        counts = MatrixCorpus.from_counts(sparse.csr_array(counts, dtype=np.float64))
    return TokenCorpus(counts, InMemoryShards, n_topics, **params)


def shard_of(counts, **params):
    """All documents as one `Shard`."""
    return token_corpus(counts, **params).documents


def block_corpus(blocks, n_topics, *, described=None, make=MemoryMappedShards, **params):
    """A `TokenCorpus` of `CountBlocks`, or of a list of blocks."""
    blocks = blocks if isinstance(blocks, CountBlocks) else CountBlocks(blocks)
    return TokenCorpus(BlockCorpus(blocks, described), make, n_topics, **params)
