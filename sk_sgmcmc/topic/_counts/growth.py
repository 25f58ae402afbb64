"""Updates of a fit by more documents: sweeps over all that are kept, or draws that take in a block by themselves."""

import numpy as np

from ...chains.growth import BLOCK_SWEEPS
from ...chains.lengths import DefaultSweeps
from .corpus import pieces
from .record import Counts

# Sweeps of a fit with stored assignments, by the number of tokens; an update makes as many, times the share of new
# tokens. On short documents, 90% intervals of effects of metadata covered the true effect 68% of the time after 200
# sweeps and 89% after 2,000.
SWEEPS = DefaultSweeps(work=2.5e8, most=2000, usual=200, fewest=100, large=5e6)
# The same of models with metadata, whose document priors are drawn with the topics. The topics' shares of the tokens,
# on which effects depend, then change slowly. In 3 planted corpora of 900,000 tokens with 20 overlapping topics, 90%
# intervals covered 75% of the effects and 67% of the shares after 277 sweeps, 83% and 82% after 1,200, and 87% and 83%
# after 2,400. That was when all of burn-in was approximate and lost topics were not searched for; now it is 86% and
# 92% after 1,110, in 6 corpora.
LONG_SWEEPS = DefaultSweeps(work=1e9, most=2000, usual=200, fewest=200, large=5e6)
HOTTEST = 1.2  # Largest temperature of the first sweeps after documents were added.
TAKING_IN = 20  # Draws that take in blocks after the documents are dropped.
_TOKENS_AT_ONCE = 20_000  # Tokens that get a first topic at a time, to limit memory.


def runs_of(chosen):
    """Ranges (start, stop) of adjacent chosen documents; ``chosen`` is a bool array (n_docs,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]])))
    return edges.reshape(-1, 2).tolist()


def drawn_given_counts(words, shapes, alpha, rng):
    """Topics of tokens drawn given earlier counts, regardless of each other; uint16 (n_tokens,).

    Parameters
    ----------
    words : ndarray of int32, shape (n_tokens,)
    shapes : ndarray of shape (n_words, n_topics)
        Counts plus the prior.
    alpha : ndarray of shape (n_topics,)
    rng : Generator
    """
    z, weights = np.empty(words.size, dtype=np.uint16), alpha / shapes.sum(axis=0)
    for start in range(0, words.size, _TOKENS_AT_ONCE):
        used, place = np.unique(words[start : start + _TOKENS_AT_ONCE], return_inverse=True)
        ends = np.cumsum(shapes[used] * weights, axis=1)
        below = ends[place] < (rng.random(place.size) * ends[place, -1])[:, None]
        z[start : start + place.size] = np.minimum(below.sum(axis=1), alpha.size - 1)
    return z


def grown(before, is_new, lengths, values):
    """An array of tokens extended by ``values`` for the tokens of new documents, in the order of the documents.

    Parameters
    ----------
    before : ndarray of shape (n_old_tokens,)
    is_new : ndarray of bool, shape (n_docs,)
    lengths : ndarray of shape (n_docs,)
        Numbers of tokens.
    values : ndarray of shape (n_new_tokens,)
    """
    of_new = np.repeat(is_new, lengths)
    after = np.empty(of_new.size, dtype=before.dtype)
    after[~of_new], after[of_new] = before, values
    return after


def taken_in(counts, shard, word_prior, priors, alpha, make_sweeps, rng):
    """Counts of a kept draw after it has taken in a block: its tokens are swept given the counts of the draw.

    The counts of earlier documents stay as they are, which the block could hardly change. This costs only sweeps over
    the block, and needs none of the earlier documents.

    Parameters
    ----------
    counts : Counts
        Of the draw.
    shard : Shard
        The block.
    word_prior : ndarray of shape (n_words, n_topics)
    priors : tuple of ndarray
        Priors of groups of documents in this draw, and the group of each document of the block.
    alpha : ndarray of shape (n_topics,)
        Typical value of the Dirichlet parameters.
    make_sweeps : callable
        As `DocumentPrior.block_sweeps`.
    rng : Generator

    Returns
    -------
    Counts
    """
    known = np.zeros(word_prior.shape)
    known[: counts.shape[0]] = counts.by_topic().T
    z = drawn_given_counts(shard.words, word_prior + known, alpha, rng)
    sweeps = make_sweeps(shard, z, word_prior, not np.any(known != np.floor(known)))
    sweeps.add(known)
    for _ in range(BLOCK_SWEEPS):
        for start, stop in pieces(shard.token_ptr):
            sweeps.sweep(shard, start, stop, *priors, rng)
    return Counts(np.asarray(sweeps.counts))


def evenly_spaced(n_kept):
    """Indices of at most `TAKING_IN` draws, the last one among them."""
    return np.unique(np.linspace(n_kept - 1, 0, min(n_kept, TAKING_IN)).round().astype(int)).tolist()
