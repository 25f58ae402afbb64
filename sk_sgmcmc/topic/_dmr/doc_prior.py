"""Chains of topics whose documents' prior follows metadata."""

import numpy as np

from ...kernels.models import dmr
from .._counts.chain import TopicChain
from .._counts.doc_prior import OneDocPrior
from .._counts.gibbs import GibbsTopicChain
from .coefficients import STEPS_PER_PASS, Coefficients, LeftBehind

# Passes of burn-in after which coefficients go to their mode given the assignments, and after which their coordinates
# are chosen anew.
_FIT_AT, _PRECONDITION_AT = (2, 10), (5, 20, 40, 80)


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
            adapts = self.step < self.plan.n_burn and self.n_passes in _PRECONDITION_AT
            if self.coefficients.whitener is None or adapts:
                self._precondition(self.data.rows, pairs, self.data.group)
            rng = self._coef_rng()
            for _ in range(STEPS_PER_PASS):
                self.coefficients.move(self.data.rows, lambda prior: likelihood(pairs, self.data.group, prior)[1], rng)
        self._prior_changed()

    def _coef_rng(self):
        """A stream of the coefficients' own: with coefficients that stand still, the chain is that of LDA."""
        return np.random.default_rng([self.sweep_seed, self.step])

    def _prior_changed(self):
        old, self._table = self._table, None
        if self.collapsed is not None and not (old is not None and np.allclose(old, self._prior_table()[0], rtol=1e-6)):
            self.collapsed.prior_changed()

    def _precondition(self, rows, pairs, group, scale=1.0, jointly=True):
        prior = self.coefficients.doc_priors(rows)
        self.coefficients.precondition(rows, prior, information(pairs, group, prior), scale, jointly)

    def _maximise(self, data, z, pairs=None):
        pairs = document_pairs(data, z, self.n_topics) if pairs is None else pairs
        self._precondition(data.rows, pairs, data.group, jointly=False)
        self.coefficients.maximise(data.rows, lambda prior: likelihood(pairs, data.group, prior, with_value=True))
        self._precondition(data.rows, pairs, data.group)

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
        ptr = np.concatenate([[0], np.cumsum(np.bincount(doc, minlength=len(flat)))])
        pairs = ptr, topic.astype(np.uint16), flat[doc, topic]
        scale, groups = self.data.total_samples / docs.size / n_draws, np.tile(group, n_draws)
        n = self.coefficients.state.n_steps
        # A stream grows, and so does what it knows; in a fit the start knew all documents.
        if self.coefficients.whitener is None or (np.isinf(self.plan.n_burn) and n >= 16 and n & (n - 1) == 0):
            self._precondition(rows, pairs, groups, scale, jointly=False)
        self.coefficients.move(
            rows, lambda prior: scale * likelihood(pairs, groups, prior)[1], self._coef_rng(), scale * n_draws
        )

    # -- streams --------------------------------------------------------------------------------------------------

    left_behind = None  # of a chain loaded from a file, which has no documents

    def __getstate__(self):
        state = super().__getstate__()
        state["left_behind"] = self._what_stays() if self.step >= getattr(self.plan, "n_iter", np.inf) else None
        return state

    def _what_stays(self):
        """What the documents with stored assignments say of the coefficients, for a stream that goes on from them."""
        if not self.stored or self.data is None:
            return self.left_behind
        pairs, prior = document_pairs(self.data, self.z, self.n_topics), self.coefficients.doc_priors(self.data.rows)
        return LeftBehind(self.coefficients, self.data.rows, prior, information(pairs, self.data.group, prior))

    def start_streaming(self, sampler, plan, n_sweeps):
        if not self.is_started:
            self._start()
        stays = self._what_stays()
        super().start_streaming(sampler, plan, n_sweeps)
        self.coefficients.use(False)
        self.coefficients.held, self.left_behind = stays, None

    def _public(self, topics):
        return {**super()._public(topics), "coef": self.coefficients.value.copy()}


class DMRChain(MetadataPrior, TopicChain):
    """Topics by a simplex sampler, assignments by Gibbs sweeps, coefficients by a sampler on flat space."""


class DMRGibbsChain(MetadataPrior, GibbsTopicChain):
    """Collapsed Gibbs sampling of assignments, coefficients by a sampler on flat space."""

    _with_topics = DMRChain


def document_pairs(data, z, n_topics):
    """The documents' topics as counts: ``ptr``, ``topic``, ``count``."""
    ptr = np.empty(data.n_docs + 1, dtype=np.int64)
    room = min(z.size, 16 * data.n_docs)  # most often enough
    while True:
        topic, count = np.empty(room, dtype=np.uint16), np.empty(room)
        n_pairs = dmr.count_pairs(data.token_ptr, data.weights, z, n_topics, ptr, topic, count)
        if n_pairs <= room:
            return ptr, topic[:n_pairs], count[:n_pairs]
        room = n_pairs


def likelihood(pairs, group, prior, with_value=False):
    """Log likelihood of documents' topics under their groups' priors, and its derivatives by the logarithms."""
    residual = np.empty_like(prior)
    value = dmr.dirichlet_multinomial(*pairs, group, prior, with_value, residual)
    return value, residual


def information(pairs, group, prior):
    """Parts of the information about the logarithms of the groups' priors; see `dirichlet_information`."""
    own, common, tables = np.empty_like(prior), np.empty(len(prior)), np.empty_like(prior)
    dmr.dirichlet_information(*pairs, group, prior, own, common, tables)
    return own, common, tables, likelihood(pairs, group, prior)[1]
