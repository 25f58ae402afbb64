"""How a chain of topics goes on under new circumstances: as a stream, with more words, in another order."""

import numpy as np


class RenewableChain:
    """Part of `TopicChain`: what changes its data's or its topics' layout."""

    def start_streaming(self, sampler, plan, n_sweeps, **of_prior):
        """Go over from stored to fresh assignments: the stored ones stay in the shapes, as counts."""
        if not self.is_started:
            self._start()
        if self.topics is None:
            self._start_topics()
        self.topics.all_up_to_date(self._shape_of(np.arange(self.n_words)), self._hyper(), self.rng)
        self.doc_prior.stream(self.z)
        self.stored, self.z, self.plan, self.n_warm = False, None, plan, 0
        self.take_sampler(sampler, n_sweeps, **of_prior)
        self.kept, self.kept_steps, self.n_kept = {}, [], 0
        self.scaled_for = 0.0

    def take_sampler(self, sampler, n_sweeps, **of_prior):
        """Go on with another step size of the same sampler, other sweeps over a minibatch, and of the prior."""
        self.sampler = self.topics.state.sampler = sampler
        self.n_sweeps = n_sweeps
        self.doc_prior.use(**of_prior)

    def renumber(self, order):
        """Put topics on flat space and stored assignments into another order."""
        place = np.empty(self.n_topics, dtype=np.uint16)
        place[order] = np.arange(self.n_topics)
        self.z = place[self.z]
        self.counts = np.ascontiguousarray(self.counts[:, order])
        self.doc_prior.renumber(order)
        self.topics.renumber(order)

    def extend_vocabulary(self, word_prior, n_words):
        """Go on with ``n_words`` words: the new ones start with prior draws, also in the draws kept."""
        if self.topics is None:
            self._start_topics()
        n_old, self.n_words, self.word_prior = self.n_words, n_words, word_prior
        new = np.ascontiguousarray(self.topic_word_prior[n_old:])
        if self.counts is not None:
            self.counts = np.vstack([self.counts, np.zeros(new.shape)])
        share = self.topics.extend(new, self.rng).T.astype(np.float32)
        if "components" in self.kept:
            old = self.kept["components"]
            grown = np.empty((*old.shape[:2], n_words), dtype=old.dtype)
            grown[: self.n_kept, :, :n_old] = old[: self.n_kept] * (1.0 - share.sum(axis=1, keepdims=True))
            grown[..., n_old:] = share
            self.kept["components"] = grown
