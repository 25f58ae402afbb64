"""Updates of a fit by more documents: sweeps over all that are kept, or draws that take in a block by themselves."""

import numpy as np

from ...chains.chain import MAX_AUTO_DRAWS, DrawPlan
from ...chains.lengths import DefaultSweeps
from .corpus import pieces
from .record import Counts
from .sweeps import GeneralSweeps, sweeps_of

KEPT_TOKENS = 20_000_000  # Most tokens that ``keep_documents="auto"`` keeps.
# Sweeps of a fit with stored assignments, by the number of tokens; an update makes as many, times the share of new
# tokens. On short documents, 90% intervals of effects of metadata covered the true effect 68% of the time after 200
# sweeps and 89% after 2,000.
SWEEPS = DefaultSweeps(work=2.5e8, most=2000, usual=200, fewest=100, large=5e6)
_DUE = 0.05  # An update sweeps over all documents once the new tokens are this share of those before.
BLOCK_SWEEPS = 5  # Sweeps over a new block alone.
_HOTTEST = 1.2  # Highest temperature of the first sweeps after documents were added.
# Kept draws: those made with at least this share of the present documents, but at least this many.
_SHARE, _FEWEST = 0.8, 20
TAKING_IN = 20  # Draws that take in blocks after the documents are dropped.
_TOKENS_AT_ONCE = 20_000  # Tokens that get a first topic at a time, to limit memory.


class GrowthPlan(DrawPlan):
    """The steps after which draws are kept in an update of a fit: a window of the latest draws.

    The first half of the steps is burn-in, in which the temperature falls from at most 1.2 to 1.

    Parameters
    ----------
    first_step : int
        Number of steps that the chain has made before.
    n_sweeps : int
        Number of steps of the update.
    bytes_per_draw : int
        As for `DrawPlan`.
    thin : int, default=1
        Sweeps from one kept draw to the next.
    tempers : bool, default=True
        Whether the temperature is raised.
    """

    streams = True

    def __init__(self, first_step, n_sweeps, bytes_per_draw, thin=1, tempers=True):
        super().__init__(max(2, n_sweeps), 0.5, 1, bytes_per_draw)
        self.n_draws, self.thin = self.most_draws(bytes_per_draw), thin
        self.first_step, self.hottest = first_step, _HOTTEST if tempers else 1.0
        self.n_burn, self.n_iter = first_step + n_sweeps // 2, first_step + n_sweeps

    def staying(self, kept_steps):
        """Indices of the draws that stay if another one is kept: all but the oldest."""
        return list(range(1, len(kept_steps)))


def in_window(sizes, n_docs):
    """Indices of the draws to keep, given the numbers of documents with which they were made, oldest first."""
    recent = np.asarray(sizes) >= _SHARE * n_docs
    recent[-_FEWEST:] = True
    return np.flatnonzero(recent).tolist()


def n_sweeps_due(pending, n_tokens):
    """Number of sweeps over all documents, given the number of tokens that came since the last ones; 0 for few."""
    if not pending > 0 or pending < _DUE * (n_tokens - pending):
        return 0
    return int(np.ceil(SWEEPS.of(n_tokens) * pending / n_tokens))


def thinning(n_tokens):
    """Sweeps from one kept draw to the next, as in a default fit that keeps the second half of its sweeps."""
    return max(1, SWEEPS.of(n_tokens) // (2 * MAX_AUTO_DRAWS))


def pending_after(unmade, n_tokens):
    """The number of tokens for which ``unmade`` sweeps would be due, where Ctrl-C prevented these sweeps."""
    return unmade / SWEEPS.of(n_tokens) * n_tokens


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


def taken_in(counts, shard, word_prior, priors, alpha, rng):
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
        Dirichlet parameters of groups of documents in this draw, and the group of each document of the block.
    alpha : ndarray of shape (n_topics,)
        Typical value of these parameters.
    rng : Generator

    Returns
    -------
    Counts
    """
    known = np.zeros(word_prior.shape)
    known[: counts.shape[0]] = counts.by_topic().T
    z = drawn_given_counts(shard.words, word_prior + known, alpha, rng)
    has_fractions = np.any(known != np.floor(known))
    sweeps = (GeneralSweeps if has_fractions else sweeps_of)(shard, z, word_prior)
    sweeps.add(known)
    for _ in range(BLOCK_SWEEPS):
        for start, stop in pieces(shard.token_ptr):
            sweeps.sweep(shard, start, stop, *priors, rng)
    return Counts(np.asarray(sweeps.counts))


def evenly_spaced(n_kept):
    """Indices of at most `TAKING_IN` draws, the last one among them."""
    return np.unique(np.linspace(n_kept - 1, 0, min(n_kept, TAKING_IN)).round().astype(int)).tolist()
