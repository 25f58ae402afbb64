"""A young stream: the documents from which its chains restart."""

from typing import NamedTuple

from ...utils import Corpus

# A stream keeps its documents until they hold this many tokens, and restarts from them when they have grown this much.
START_TOKENS = 5_000_000
_GROWTH = 1.25


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
        """A stream of one block; None if the block is too large to be kept."""
        return cls(corpus, corpus.n_tokens) if corpus.n_tokens <= START_TOKENS else None

    def with_block(self, corpus):
        """The stream with another block, from which chains restart if it grew enough; None if it is no longer young."""
        if self.corpus.counts.sum() > START_TOKENS or corpus.n_tokens > START_TOKENS:
            return None
        joined = self.corpus.joined(corpus)
        n_tokens = joined.counts.sum()
        return YoungStream(joined, n_tokens if n_tokens >= _GROWTH * self.begun_at else self.begun_at)
