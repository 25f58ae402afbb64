"""The passes of EM before burn-in, from which sweeps start."""

import numpy as np

from sk_sgmcmc.metrics import hellinger_distances
from sk_sgmcmc.topic._counts.corpus import Shard
from sk_sgmcmc.topic._counts.start import learnt_topics


def planted(n_docs, length, n_topics, n_words):
    """Topics, and documents drawn from them as tokens."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(n_words, 0.2), n_topics)
    tokens = rng.multinomial(length, rng.dirichlet(np.full(n_topics, 0.1), n_docs))
    z = np.repeat(np.tile(np.arange(n_topics), n_docs), tokens.ravel())
    words = np.empty(z.size, dtype=np.int32)
    for k, topic in enumerate(topics):
        words[z == k] = rng.choice(n_words, np.sum(z == k), p=topic)
    words = np.sort(words.reshape(n_docs, length), axis=1).ravel()
    ptr = length * np.arange(n_docs + 1)
    return topics, Shard(ptr, words, np.empty(0), 0, n_words)


def test_more_documents_learn_no_worse_topics(global_random_seed):
    # With all 120,000 documents, topics come no closer than .35.
    topics, data = planted(120_000, 50, 20, 2000)
    rng = np.random.default_rng(global_random_seed)
    z = rng.integers(20, size=data.words.size, dtype=np.uint16)
    soft = learnt_topics(data, np.full((1, 20), 0.1), data.group, 0.01, rng, z)
    learnt = (soft.raw / soft.raw.sum(axis=0)).T.astype(float)
    assert np.median(hellinger_distances(topics, learnt).min(axis=1)) < 0.33
