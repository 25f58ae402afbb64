"""What a chain of topics knows of the documents' prior."""

import numpy as np

from ...kernels.math import dirichlet
from .collapsed import fitted_doc_prior


class OneDocPrior:
    """One Dirichlet prior for all documents, fixed or fitted during burn-in; part of `TopicChain`.

    Its parameter is ``doc_topic_prior`` (n_topics,).
    """

    _n_draws = 1  # of the documents' topics that `_end_minibatch` is shown

    def _prior_table(self):
        """The documents' prior, (n_groups, n_topics), and the group of each document, (n_docs,)."""
        return self.doc_topic_prior[None], self.data.group

    def _prior_of(self, docs):
        """The same for a minibatch: rows of the prior, and the row of each of its documents."""
        return self.doc_topic_prior[None], np.zeros(docs.size, dtype=np.int64)

    def _first_prior(self):
        """The prior (n_topics,) that a start goes by."""
        if self.learn_doc_topic_prior:  # what was learnt belongs to the topics of another start
            return np.full(self.n_topics, self.doc_topic_prior.mean())
        return self.doc_topic_prior

    def _fit_prior(self, data, z, first, swept):
        """Fit the prior to first assignments that are not stored; ``swept`` by a few sweeps, or as they began."""
        if self.learn_doc_topic_prior and swept:
            self.doc_topic_prior = fitted_doc_prior(data, z, first)

    def _reorder(self, order):
        """Topics are numbered anew."""
        self.doc_topic_prior = self.doc_topic_prior[order]

    def _end_pass(self):
        """All documents were read once more: fit the prior, after the fifth pass of burn-in and every tenth."""
        if not self.learn_doc_topic_prior or self.step >= self.plan.n_burn or self.n_passes % 10 != 5:
            return
        self.doc_topic_prior = fitted_doc_prior(self.data, self.z, self.doc_topic_prior)
        self.collapsed.prior_changed()

    def _end_minibatch(self, docs, doc_counts):
        """A minibatch was assigned; ``doc_counts`` (n_draws, n_batch, n_topics).

        One damped fixed-point step of the prior on fresh counts of burn-in.
        """
        if not self.learn_doc_topic_prior or self.stored or self.step >= self.plan.n_burn:
            return
        doc_counts = doc_counts[-1]
        lengths = doc_counts.sum(axis=1)
        used = lengths > 0
        new = dirichlet.fixed_point(doc_counts[used], lengths[used], self.doc_topic_prior, 1.0)
        share = docs.size / max(docs.size, self.data.total_samples)
        self.doc_topic_prior = self.doc_topic_prior + max(share, 0.05) * (new - self.doc_topic_prior)
