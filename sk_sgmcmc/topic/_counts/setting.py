"""What the chains of a run are made with, or continue with."""

from copy import copy
from typing import Any, NamedTuple

from ...chains.chain import DrawPlan, StreamPlan
from ...samplers._base import Sampler


class Setting(NamedTuple):
    """What all chains of a run share.

    Parameters
    ----------
    data : TokenData or BlockData
        The documents.
    plan : DrawPlan or StreamPlan
    sampler : Sampler
        That of the topics, resolved.
    word_prior, stored, n_sweeps, init, flat
        As for `TopicChain`.
    """

    data: Any
    plan: DrawPlan | StreamPlan
    sampler: Sampler
    word_prior: Any
    stored: bool
    n_sweeps: tuple
    init: str
    flat: dict | None

    def new_chain(self, make, seed, doc_prior, **more):
        """A chain, not bound to the documents yet; ``make`` is its class, and ``more`` are further arguments."""
        return make(
            seed, copy(self.plan), self.sampler, self.word_prior, self.data.n_words, doc_prior, stored=self.stored,
            n_sweeps=self.n_sweeps, init=self.init, flat=self.flat, **more,
        )  # fmt: skip

    def continued(self, chain, begins_stream, **of_prior):
        """The chain with which an existing one goes on; ``begins_stream``: it has run in `fit`, and streams from here.

        ``of_prior`` are the arguments of `DocumentPrior.use`.
        """
        chain = chain.with_topics(self.sampler)
        if chain.n_words < self.data.n_words:
            chain.extend_vocabulary(self.word_prior, self.data.n_words)
        if begins_stream:
            chain.start_streaming(self.sampler, copy(self.plan), self.n_sweeps, **of_prior)
        else:
            chain.take_sampler(self.sampler, self.n_sweeps, **of_prior)
        return chain
