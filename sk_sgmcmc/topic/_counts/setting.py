"""What chains of a run are made with, or go on with."""

from copy import copy
from typing import Any, NamedTuple

from ...chains.plans import DrawPlan, StreamPlan
from ...samplers._base import Sampler
from .collapsed_chain import CollapsedTopicChain


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

    def continued(self, chain, turns, **of_prior):
        """An existing chain as it goes on; ``turns`` is whether a stream begins here, after a `fit`."""
        if isinstance(chain, CollapsedTopicChain):
            chain = chain.with_topics(self.sampler)
        if chain.n_words < self.data.n_words:
            chain.extend_vocabulary(self.word_prior, self.data.n_words)
        if turns:
            chain.start_streaming(self.sampler, copy(self.plan), self.n_sweeps, **of_prior)
        else:
            chain.take_sampler(self.sampler, self.n_sweeps, **of_prior)
        return chain
