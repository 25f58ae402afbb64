"""Parts of the vocabulary, by which threads share an exact collapsed sweep.

Topics integrated out, a token's topic depends on all other tokens through the counts of its document, those of its word
and those of the topics. The latter depend on every token, so that tokens are redrawn one after the other. Cut the words
into parts: the mass of a Dirichlet topic is shared among them by a Dirichlet law, and within each part its words have a
Dirichlet law of their own. Given these shares, which are drawn from the counts, a token depends on the counts of its
document, of its word and of the topics within its part. So blocks of documents and words, no two of which have a
document or a part in common, are redrawn side by side; in as many rounds as there are parts, every document meets every
part. The law of the assignments is left unchanged, and as the shares are few numbers, each known from many tokens, a
sweep mixes about as well as one that integrates them out, too.

How many parts there are follows from the size of the corpus, never from the number of threads, and each block has a
random stream of its own. So threads change no draw.
"""

from itertools import pairwise

import numpy as np

from ...kernels.models.lda import whole_tokens
from ...utils._memory import available_memory
from . import shards

_LEAST, _MOST = 4, 16
_LARGE = 2_000_000  # tokens from which there are parts
_TOKENS_PER_BLOCK = 250_000
# Counts of topics of each document are kept while a sweep lasts if they take no more than this for each token, and no
# more than this share of the memory that is free.
_BYTES_PER_TOKEN, _MEMORY_SHARE = 6, 0.25


def number_of_parts(n_tokens):
    """Number of parts for a corpus of ``n_tokens``; 1 for small ones."""
    if n_tokens < _LARGE:
        return 1
    return int(np.clip(np.sqrt(n_tokens / _TOKENS_PER_BLOCK), _LEAST, _MOST))


def cuts(table, n_parts):
    """First words of the parts and the number of words, (n_parts + 1,), cut by the tokens in ``table``."""
    tokens = np.concatenate([[0], np.cumsum(table.sum(axis=1, dtype=np.int64))])
    ends = np.searchsorted(tokens, tokens[-1] * np.arange(n_parts + 1) // n_parts)
    ends[0], ends[-1] = 0, len(table)
    return ends


def drawn_shares(shape, rng):
    """Shares of each topic's mass, drawn from Dirichlet laws with the columns of ``shape``, (n_parts, n_topics).

    By way of logarithms: where a topic has no tokens, and its prior is small, draws are smaller than a float64 can be.
    """
    logs, is_there = np.full(shape.shape, -np.inf), shape > 0  # a part without words has no share
    known = shape[is_there]
    logs[is_there] = np.log(rng.standard_gamma(known + 1.0)) + np.log1p(-rng.random(known.size)) / known
    share = np.exp(logs - logs.max(axis=0))
    return share / share.sum(axis=0)


def sweep(data, z, table, doc_topic_prior, group, beta, rng, n_parts, pool=None):
    """Redraw the topic of every token, exactly; returns the number of tokens of each topic, (n_topics,).

    Parameters
    ----------
    data : TokenData
    z, table : ndarray
        Assignments, and their counts as from `whole_tokens.table_of_counts`; changed in place.
    doc_topic_prior, group : ndarray
        As from `DocumentPrior.table`.
    beta : float
    rng : Generator
    n_parts : int
    pool : executor or None
        Threads over the blocks of a round.
    """
    n_topics = doc_topic_prior.shape[1]
    docs, words = shards.cuts(data.token_ptr, n_parts), cuts(table, n_parts)
    n_words = np.diff(words)
    mass = np.stack([table[a:b, :n_topics].sum(axis=0, dtype=np.int64) for a, b in pairwise(words)])
    doc_counts = _room_for_doc_counts(data, table.shape[1])

    def count(i):
        whole_tokens.count_in_documents(docs[i], docs[i + 1], data.token_ptr, z, doc_counts)

    if len(doc_counts):
        shards.side_by_side(count, n_parts, pool)
    for turn in range(n_parts):
        share = drawn_shares(mass + beta * n_words[:, None], rng)
        streams = shards.streams(rng, n_parts)

        def redraw(i, turn=turn, share=share, streams=streams):
            part = (i + turn) % n_parts
            whole_tokens.sweep_part(
                docs[i], docs[i + 1], data.token_ptr, data.words, z, table, mass[part], doc_topic_prior, group, beta,
                streams[i], words[part], words[part + 1], share[part], doc_counts,
            )  # fmt: skip

        shards.side_by_side(redraw, n_parts, pool)
    return mass.sum(axis=0)


def _room_for_doc_counts(data, width):
    """An array for the counts of topics of each document, without rows if there is no room; it changes no draw."""
    longest = np.diff(data.token_ptr).max(initial=0)
    room = min(_BYTES_PER_TOKEN * data.n_tokens, _MEMORY_SHARE * available_memory())
    if width * whole_tokens.NO_DOC_COUNTS.itemsize * data.n_docs > room or longest >= whole_tokens.SHORT:
        return whole_tokens.NO_DOC_COUNTS
    return np.empty((data.n_docs, width), dtype=np.uint16)
