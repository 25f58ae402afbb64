"""Chains of topics whose documents' prior follows metadata."""

import numpy as np

from ._chain import TopicChain
from ._coefficients import STEPS_PER_PASS, Coefficients
from ._gibbs import GibbsTopicChain
from ._prior import OneDocPrior

_FIT_AT = (2, 5, 10)  # passes of burn-in after which coefficients go to their mode given the assignments
_GIBBS_FIT_EVERY = 5  # passes


class MetadataPrior(OneDocPrior):
    """A Dirichlet prior for each group of documents, exp(metadata @ coefficients); part of a `TopicChain`.

    Parameters
    ----------
    *args, **params
        As for `TopicChain`; ``doc_topic_prior`` is the exponential of the intercepts' prior mean.
    coef_sampler, n_metadata, scales
        As for `Coefficients`.
    """

    _unpickled = (*TopicChain._unpickled, "_table", "_batch_rows")
    _table = None

    def __init__(self, *args, coef_sampler, n_metadata, scales, **params):
        super().__init__(*args, **params)
        self.coefficients = Coefficients(coef_sampler, self.stored, self.doc_topic_prior, n_metadata, scales)

    def bind(self, data):
        self._table = None
        return super().bind(data)

    @property
    def _n_draws(self):
        return 1 if self.stored else self.n_sweeps[1]

    def _prior_table(self):
        if self._table is None:
            self._table = self.coefficients.doc_priors(self.data.rows)
        return self._table, self.data.group

    def _prior_of(self, docs):
        if self.stored:
            table, group = self._prior_table()
            return table, group[docs]
        groups, group = np.unique(self.data.group[docs], return_inverse=True)
        self._batch_rows = self.data.rows.take(groups), group.astype(np.int64)
        return self.coefficients.doc_priors(self._batch_rows[0]), self._batch_rows[1]

    def _fit_prior(self, data, z, first, swept):
        self.coefficients.reset()
        self._maximise(data, z)

    def _reorder(self, order):
        super()._reorder(order)
        self.coefficients.reorder(order)

    # -- all documents' assignments at hand -----------------------------------------------------------------------

    def _end_pass(self):
        pairs = document_pairs(self.data, self.z, self.n_topics)
        if self.step < self.plan.n_burn and self.n_passes in _FIT_AT:
            self._maximise(self.data, self.z, pairs)
        else:
            if self.coefficients.whitener is None or (self.step < self.plan.n_burn and self.n_passes % 10 == 0):
                self._precondition(self.data.rows, pairs[3], self.data.group)
            for _ in range(STEPS_PER_PASS):
                self.coefficients.move(
                    self.data.rows, lambda prior: likelihood(pairs, self.data.group, prior)[1], self.rng
                )
        self._prior_changed()

    def _prior_changed(self):
        self._table = None
        if self.collapsed is not None:
            self.collapsed.prior_changed()

    def _precondition(self, rows, lengths, group, scale=1.0):
        from ..kernels.signals.dmr import expected_tables

        prior = self.coefficients.doc_priors(rows)
        curvature = np.empty_like(prior)
        expected_tables(lengths, group, prior, curvature)
        self.coefficients.precondition(rows, curvature * scale)

    def _maximise(self, data, z, pairs=None):
        pairs = document_pairs(data, z, self.n_topics) if pairs is None else pairs
        self._precondition(data.rows, pairs[3], data.group)
        self.coefficients.maximise(data.rows, lambda prior: likelihood(pairs, data.group, prior, with_value=True))
        self._precondition(data.rows, pairs[3], data.group)

    # -- minibatches ----------------------------------------------------------------------------------------------

    def _end_minibatch(self, docs, doc_counts):
        if self.stored:
            if not len(self.batches):
                self.n_passes += 1
                self._end_pass()
            return
        rows, group = self._batch_rows
        n_draws = len(doc_counts)
        flat = doc_counts.reshape(-1, self.n_topics)
        doc, topic = np.nonzero(flat)
        lengths = flat.sum(axis=1)
        ptr = np.concatenate([[0], np.cumsum(np.bincount(doc, minlength=len(flat)))])
        pairs = ptr, topic.astype(np.uint16), flat[doc, topic], lengths
        scale, groups = self.data.total_samples / docs.size / n_draws, np.tile(group, n_draws)
        n = self.coefficients.n_steps
        # A stream grows, and so does what it knows; in a fit the start knew all documents.
        if self.coefficients.whitener is None or (np.isinf(self.plan.n_burn) and n >= 16 and n & (n - 1) == 0):
            self._precondition(rows, lengths, groups, scale)
        self.coefficients.move(rows, lambda prior: scale * likelihood(pairs, groups, prior)[1], self.rng)

    def start_streaming(self, sampler, plan, n_sweeps):
        super().start_streaming(sampler, plan, n_sweeps)
        self.coefficients.use(False)

    def _public(self, topics):
        return {**super()._public(topics), "coef": self.coefficients.value.copy()}


class DMRChain(MetadataPrior, TopicChain):
    """Topics by a simplex sampler, assignments by Gibbs sweeps, coefficients by a sampler on flat space."""


class DMRGibbsChain(MetadataPrior, GibbsTopicChain):
    """Collapsed Gibbs sampling of assignments; coefficients at their mode given these, taken anew now and then."""

    def _end_pass(self):
        if self.n_passes in _FIT_AT or self.n_passes % _GIBBS_FIT_EVERY == 0:
            self._maximise(self.data, self.z)
            self._prior_changed()


def document_pairs(data, z, n_topics):
    """The documents' topics as counts: ``ptr``, ``topic``, ``count``, and the documents' lengths."""
    from ..kernels.signals.dmr import count_pairs

    ptr = np.empty(data.n_docs + 1, dtype=np.int64)
    topic, count = np.empty(0, dtype=np.uint16), np.empty(0)
    count_pairs(data.token_ptr, data.weights, z, n_topics, ptr, topic, count)
    if ptr[-1]:
        topic, count = np.empty(ptr[-1], dtype=np.uint16), np.empty(ptr[-1])
        count_pairs(data.token_ptr, data.weights, z, n_topics, ptr, topic, count)
    owner = np.repeat(np.arange(data.n_docs), np.diff(ptr))
    return ptr, topic, count, np.bincount(owner, count, minlength=data.n_docs).astype(np.float64)


def likelihood(pairs, group, prior, with_value=False):
    """Log likelihood of documents' topics under their groups' priors, and its derivatives by the logarithms."""
    from ..kernels.signals.dmr import dirichlet_multinomial

    residual = np.empty_like(prior)
    value = dirichlet_multinomial(*pairs[:3], group, prior, with_value, residual)
    return value, residual
