"""A prior of documents that follows their metadata."""

from copy import copy

import numpy as np

from ...kernels.models import dmr
from .._counts.doc_prior import DocumentPrior
from .coefficients import STEPS_PER_PASS, Coefficients, QuadraticSummary

# Passes of burn-in after which coefficients move to their mode given the assignments, and after which their coordinates
# are chosen again.
_FIT_AT, _PRECONDITION_AT = (2, 10), (5, 20, 40, 80)


class MetadataPrior(DocumentPrior):
    """A Dirichlet prior for each group of documents, exp(metadata @ coefficients).

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Exponential of the prior mean of the intercepts.
    stored : bool
        As for `DocumentPrior`.
    coef_sampler, n_metadata, scales
        As for `Coefficients`.
    """

    reads_every_draw = True
    _unpickled = (*DocumentPrior._unpickled, "_table", "_batch_rows")
    _table = None
    held = None  # summary of the documents with stored assignments, made when these are dropped

    def __init__(self, alpha, stored, *, coef_sampler, n_metadata, scales):
        super().__init__(alpha, stored)
        self.coefficients = Coefficients(coef_sampler, stored, self.alpha, n_metadata, scales)

    def bind(self, data):
        self._table = None
        super().bind(data)

    def begin(self, data, z, alpha, rng, swept=True):
        if not self.stored:
            self.coefficients.reset()
            self._maximise(data, z)

    def table(self, docs=None):
        if docs is None or self.stored:
            if self._table is None:
                self._table = self.coefficients.doc_priors(self.data.rows)
            return self._table, self.data.group if docs is None else self.data.group[docs]
        groups, group = np.unique(self.data.group[docs], return_inverse=True)
        self._batch_rows = self.data.rows.take(groups), group.astype(np.int64)
        return self.coefficients.doc_priors(self._batch_rows[0]), self._batch_rows[1]

    def renumber(self, order):
        super().renumber(order)
        self.coefficients.reorder(order)

    def draw(self):
        return {"coef": self.coefficients.value.copy()}

    # -- stored assignments of all documents ----------------------------------------------------------------------

    def after_pass(self, z, now, collapsed):
        """Move the coefficients; after some passes of burn-in, to their mode or in newly chosen coordinates."""
        pairs = document_pairs(self.data, z, self.alpha.size)
        if now.burns_in and now.n_passes in _FIT_AT:
            self._maximise(self.data, z, pairs)
        else:
            adapts = now.burns_in and now.n_passes in _PRECONDITION_AT
            if self.coefficients.whitener is None or adapts:
                self._precondition(self.data.rows, pairs, self.data.group)
            rng = self._stream_of(now)
            for _ in range(STEPS_PER_PASS):
                self.coefficients.move(self.data.rows, lambda prior: likelihood(pairs, self.data.group, prior)[1], rng)
        self._table = None

    def after_epoch(self, z, now):
        self.after_pass(z, now, None)

    @staticmethod
    def _stream_of(now):
        """The coefficients' own random stream, so that with fixed coefficients the chain is that of LDA."""
        return np.random.default_rng([now.seed, now.step])

    def _precondition(self, rows, pairs, group, scale=1.0, jointly=True):
        prior = self.coefficients.doc_priors(rows)
        self.coefficients.precondition(rows, prior, information(pairs, group, prior), scale, jointly)

    def _maximise(self, data, z, pairs=None):
        pairs = document_pairs(data, z, self.alpha.size) if pairs is None else pairs
        self._precondition(data.rows, pairs, data.group, jointly=False)
        self.coefficients.maximise(data.rows, lambda prior: likelihood(pairs, data.group, prior, with_value=True))
        self._precondition(data.rows, pairs, data.group)

    # -- minibatches ----------------------------------------------------------------------------------------------

    def after_minibatch(self, docs, doc_counts, z, now):
        if self.stored:
            return
        rows, group = self._batch_rows
        n_draws = len(doc_counts)
        flat = doc_counts.reshape(-1, self.alpha.size)
        doc, topic = np.nonzero(flat)
        ptr = np.concatenate([[0], np.cumsum(np.bincount(doc, minlength=len(flat)))])
        pairs = ptr, topic.astype(np.uint16), flat[doc, topic]
        scale, groups = self.data.total_samples / docs.size / n_draws, np.tile(group, n_draws)
        n = self.coefficients.state.n_steps
        # The information in a stream grows; in a fit the start used all documents.
        if self.coefficients.whitener is None or (np.isinf(now.n_burn) and n >= 16 and n & (n - 1) == 0):
            self._precondition(rows, pairs, groups, scale, jointly=False)
        self.coefficients.move(
            rows, lambda prior: scale * likelihood(pairs, groups, prior)[1], self._stream_of(now), scale * n_draws
        )

    # -- streams --------------------------------------------------------------------------------------------------

    def saved(self, z):
        saved = copy(self)
        saved.held = None if z is None else self._summary(z)
        return saved

    def _summary(self, z):
        """Log likelihood of the coefficients given stored assignments, for a stream that continues from them."""
        if not self.stored or self.data is None:
            return self.held
        pairs, prior = document_pairs(self.data, z, self.alpha.size), self.coefficients.doc_priors(self.data.rows)
        return QuadraticSummary(self.coefficients, self.data.rows, prior, information(pairs, self.data.group, prior))

    def stream(self, z):
        summary = self._summary(z)
        super().stream(z)
        self.coefficients.use(False)
        self.coefficients.held, self.held = summary, None


def document_pairs(data, z, n_topics):
    """Counts of the documents' topics, in sparse form: ``ptr``, ``topic``, ``count``."""
    ptr = np.empty(data.n_docs + 1, dtype=np.int64)
    room = min(z.size, 16 * data.n_docs)  # usually enough
    while True:
        topic, count = np.empty(room, dtype=np.uint16), np.empty(room)
        n_pairs = dmr.count_pairs(data.token_ptr, data.weights, z, n_topics, ptr, topic, count)
        if n_pairs <= room:
            return ptr, topic[:n_pairs], count[:n_pairs]
        room = n_pairs


def likelihood(pairs, group, prior, with_value=False):
    """Log likelihood of documents' topics under their groups' priors, and its derivatives by the log priors."""
    residual = np.empty_like(prior)
    value = dmr.dirichlet_multinomial(*pairs, group, prior, with_value, residual)
    return value, residual


def information(pairs, group, prior):
    """Parts of the information about the logarithms of the groups' priors; see `dirichlet_information`."""
    own, common, tables = np.empty_like(prior), np.empty(len(prior)), np.empty_like(prior)
    dmr.dirichlet_information(*pairs, group, prior, own, common, tables)
    return own, common, tables, likelihood(pairs, group, prior)[1]
