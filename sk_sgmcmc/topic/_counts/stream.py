"""A young stream: the documents from which its chains restart, and how."""

from copy import deepcopy
from typing import NamedTuple

import numpy as np

from ...utils import Corpus
from .heat import temperature

# A stream keeps its documents until they hold this many tokens, and restarts from them when they have grown this much.
START_TOKENS = 5_000_000
_GROWTH = 1.25
SWEEPS = 60  # of a restart


class YoungStream(NamedTuple):
    """The documents of a stream so far.

    Parameters
    ----------
    corpus : Corpus
    begun_at : float
        Tokens that it held when chains last started from it.
    """

    corpus: Corpus
    begun_at: float

    @classmethod
    def begun_with(cls, corpus):
        """A stream of one block, as a copy; None if the block is too large to be kept."""
        return cls(deepcopy(corpus), corpus.n_tokens) if corpus.n_tokens <= START_TOKENS else None

    def with_block(self, corpus):
        """The stream with another block, from which chains restart if it grew enough; None if it is no longer young."""
        if max(self.corpus.n_tokens, corpus.n_tokens) > START_TOKENS:
            return None
        joined = self.corpus.joined(corpus)
        grew = joined.n_tokens >= _GROWTH * self.begun_at
        return YoungStream(joined, joined.n_tokens if grew else self.begun_at)


def grown(young, corpus, first):
    """The stream with another block, or None if it is no longer young, and whether chains restart from it.

    ``first`` is whether the block is the stream's first.
    """
    if first:
        return YoungStream.begun_with(corpus), False
    after = None if young is None else young.with_block(corpus)
    return after, after is not None and after.begun_at > young.begun_at


def refuse_whole_passes(sampler, pair):
    """Raise if a sampler of the topics, which fits by ``pair``, needs all documents at once."""
    if pair[1] == "conditionals":
        raise ValueError(
            f"{type(sampler).__name__} sweeps over all data and cannot stream; "
            'use sampler="scir" or "sgrld" for partial_fit.'
        )


def swept(collapsed, data, doc_prior, rng, after_pass, is_warm):
    """Make the sweeps of a restart; returns the counts (n_words, n_topics) averaged over the last third of them.

    ``after_pass`` is called after each, with their number so far; ``is_warm`` is whether they begin warm.
    """
    group, mean, first = np.zeros(data.n_docs, dtype=np.int64), 0.0, 2 * SWEEPS // 3
    for i in range(SWEEPS):
        if is_warm:
            collapsed.temperature = temperature(doc_prior.size, i, SWEEPS)
        collapsed.sweep(data, 0, data.n_docs, doc_prior[None], group, rng)
        after_pass(i + 1)
        if i >= first:
            mean = mean + collapsed.counts / (SWEEPS - first)
    return mean
