"""Collapsed Gibbs sampling: the exact reference, and the default of `fit`."""

import numpy as np

from .chain import TopicChain
from .heat import first_temperature, temperature
from .start import pieces


class CollapsedTopicChain(TopicChain):
    """Collapsed Gibbs sampler: a step is a sweep over all documents; topics are drawn when a draw is kept.

    Parameters as for `TopicChain`; assignments are always stored, and every step reads all documents.
    """

    hottest = None  # the temperature of the first sweep, once it is known

    def start_topics(self):
        """Do nothing: topics stay integrated out."""

    def with_topics(self, sampler):
        """A chain that continues from this one, with topics in its state."""
        self._ensure_started()
        chain = self.shallow_copy(TopicChain)
        chain.first_sampler = sampler
        return chain

    def _advance(self, until):
        self._ensure_started()
        data = self.data
        self.collapsed.temperature = self._temperature()
        is_whole = self.next_doc == 0
        if is_whole and self.step < self.plan.n_burn and self.collapsed.n_shards(data) > 1:
            self.collapsed.sweep_shards(data, 0, data.n_docs, *self.doc_prior.table(), self.rng, self._threads())
        elif is_whole and self.collapsed.temperature == 1.0 and self.collapsed.n_parts(data) > 1:
            self.collapsed.sweep_parts(data, *self.doc_prior.table(), self.rng, self._threads())
        else:
            # A piece of a sweep, so that Python can handle an interrupt in between.
            stop = next(pieces(data.token_ptr[self.next_doc :]))[1]
            self.collapsed.sweep(data, self.next_doc, self.next_doc + stop, *self.doc_prior.table(), self.rng)
            self.next_doc = (self.next_doc + stop) % data.n_docs
            if self.next_doc:
                return
        self.n_passes += 1
        self._after_pass()
        self.doc_prior.after_sweep(None, self.assignments.z, self._now())
        self.step += 1
        if self.plan.wants(self.step):
            self.keep(self._kept_draw())

    def _temperature(self):
        """Temperature of the present sweep: above 1 early in burn-in only."""
        if self.hottest is None:
            self.hottest = self._first_temperature()
        return temperature(self.hottest, self.step, self.plan.n_burn)

    def _first_temperature(self):
        """The temperature of the first sweep; 1 where sweeps have no temperature, or no time to cool down."""
        if self.plan.n_burn == 0 or not self.doc_prior.bears_heat or not self.collapsed.is_fast:
            return 1.0
        return first_temperature(self.data.start or self.data, self.n_topics)

    def _kept_draw(self):
        """What the documents' prior learns; topics are drawn from the record on demand."""
        self.record.add(self.step, self.collapsed.counts, self.assignments.z, lambda: self.topic_groups)
        return self.doc_prior.draw()

    def draws(self):
        """Kept draws that count, topics among them, made from the record."""
        if self.n_kept == 0:
            return super().draws()
        topics = [self.record.draw(s, self.word_prior) for s in range(self.n_kept)]
        return {"components": np.stack(topics), **super().draws()}
