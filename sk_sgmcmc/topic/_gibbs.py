"""The exact reference: collapsed Gibbs sampling."""

import numpy as np

from ..samplers._base import load_kernel
from ._chain import TopicChain

# Tokens in one kernel call, so that Python looks around a few times a second.
_TOKENS_PER_CALL = 2_000_000


class GibbsTopicChain(TopicChain):
    """Collapsed Gibbs sampler, a sweep over all documents a step; topics are drawn when a draw is kept.

    Parameters as for `TopicChain`; assignments are always stored and all documents read.
    """

    def _start_topics(self, counts, shape_mass):
        self.topics = "collapsed"
        self.next_doc = 0
        self.n_warm = 0

    def _advance(self, until):
        data = self.data
        first = self.next_doc
        stop = int(np.searchsorted(data.token_ptr, data.token_ptr[first] + _TOKENS_PER_CALL, side="right")) - 1
        self.next_doc = min(max(stop, first + 1), data.n_docs)
        load_kernel("signals.lda_collapsed.sweep_collapsed")(
            first, self.next_doc, data.token_ptr, data.words, data.weights, self.z, self.counts,
            self.counts.sum(axis=0), self.topic_word_prior, self.topic_word_prior.sum(axis=0), self.doc_topic_prior,
            self.rng,
        )  # fmt: skip
        if self.next_doc < data.n_docs:
            return
        self.next_doc = 0
        if self.learn_doc_topic_prior and self.step < self.plan.n_burn:
            self._learn_doc_topic_prior(np.arange(data.n_docs), self._doc_counts())
        self.step += 1
        if self.plan.wants(self.step):
            self.keep(self._public(None))

    def _doc_counts(self):
        data = self.data
        counts = np.zeros((data.n_docs, self.n_topics))
        doc_of = np.repeat(np.arange(data.n_docs, dtype=np.int32), np.diff(data.token_ptr))
        load_kernel("signals.lda.count_assignments")(doc_of, data.weights, self.z, counts)
        return counts

    def _public(self, topics):
        cells = np.maximum(self.rng.standard_gamma(self.topic_word_prior + self.counts), 1e-300)
        draw = {"components": np.ascontiguousarray((cells / cells.sum(axis=0)).T, dtype=np.float32)}
        if self.learn_doc_topic_prior:
            draw["doc_topic_prior"] = self.doc_topic_prior.copy()
        return draw

    def current(self):
        return self.copy_for_looking()._public(None)
