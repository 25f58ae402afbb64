"""The prior of the topics of documents with outcomes, which the topics of documents follow."""

from typing import Any, NamedTuple

import numpy as np

from ...kernels.models import outcome as kernels
from .._counts.document_prior import DocumentPrior
from .._counts.sweeps import GeneralSweeps
from .outcomes import Outcomes

# Share of burn-in after which outcomes are read, and number of sweeps of a burn-in that reads them from the start.
_READS_FROM, _SHORT = 0.75, 4


class ActivitySums(NamedTuple):
    """Sums of the activities of documents; see `sums_of_activities`."""

    log_sums: np.ndarray
    sums: np.ndarray
    log_totals: np.ndarray


class AssignedDocuments(NamedTuple):
    """Documents in memory and the topics of their tokens, as `DocumentPrior.update` reads them."""

    documents: Any
    z: np.ndarray

    def map(self, function, *args):
        """As for `AssignedShards`."""
        return [function(self.documents, self.z, *args)]


class OutcomeStep(NamedTuple):
    """What a sweep over documents with outcomes reads and changes; see `sk_sgmcmc.kernels.models.outcome`."""

    shape: np.ndarray
    rate: np.ndarray
    log_activity: np.ndarray
    response: np.ndarray
    is_observed: np.ndarray
    offset: np.ndarray
    coef: np.ndarray
    precision: float
    is_binary: bool

    @classmethod
    def of(cls, prior, outcome, outcomes, log_activity):
        """The step under an activity prior and the parameters of an outcome."""
        shape, rate = prior.gamma_parameters()
        return cls(
            np.ascontiguousarray(shape), np.ascontiguousarray(rate), log_activity, outcomes.response,
            outcomes.is_observed, outcome.offset(outcomes), outcome.coef, 1.0 / outcome.variance, outcome.is_binary,
        )  # fmt: skip


def update_all(log_activity, outcome, outcomes, prior, tokens, rng, adapts):
    """Draw the parameters of an outcome and of the documents' prior; arguments as for `ActivityMoves.move`."""
    prior.move_with(OutcomeStep.of(prior, outcome, outcomes, log_activity), tokens, rng, adapts)
    update_given_activities(log_activity, outcome, outcomes, rng, prior)


def update_given_activities(log_activity, outcome, outcomes, rng, prior=None):
    """Draw the parameters of an outcome, and of the documents' ``prior`` if it is passed, given all activities."""
    n_docs, n_topics = log_activity.shape
    theta, sums = np.empty((n_docs, n_topics)), ActivitySums(np.empty(n_topics), np.empty(n_topics), np.empty(n_docs))
    kernels.sums_of_activities(log_activity, theta, *sums)
    outcome.update(theta, outcomes, rng)
    if prior is not None:
        shift = prior.update_given(sums, rng)
        log_activity += np.asarray(shift, dtype=np.float32).reshape(-1, 1)


class OutcomeSweeps(GeneralSweeps):
    """Steps of the topics and activities of documents given their outcomes; topics of words are integrated out."""

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Make the steps of documents start:stop by an `OutcomeStep`, with ``group`` 0 for all documents."""
        shape, rate, *rest = doc_topic_prior
        kernels.sweep(
            start, stop, data.token_ptr, data.words, data.weights, self.z, self.table, self.mass, self.column,
            self.topic, shape, group, self.beta, self.row, self.beta_sums, rng, rate, *rest,
        )  # fmt: skip


class OutcomePrior(DocumentPrior):
    """The prior of documents whose topics follow their words and, from some sweep of burn-in on, their outcomes.

    For the first three quarters of burn-in, the chain ignores the outcomes, because it finds topics sooner without
    them. From then on, the state contains the activities of documents, and the parameters of the outcome are drawn
    after each pass.

    Parameters
    ----------
    prior : FixedActivities, DirichletActivities or ScaledActivities
    outcome : GaussianOutcome
    follows_outcomes : bool
        Whether outcomes are read at all.
    """

    wants_new_sweeps = False
    log_activity = None  # float32 (n_docs, n_topics): NaN if not drawn yet; None: outcomes are not read yet.
    _cached = None, None, None  # A shard, its `Outcomes`, and group 0 of each document.

    def __init__(self, prior, outcome, follows_outcomes):
        self.prior, self.outcome, self.follows_outcomes = prior, outcome, follows_outcomes
        self.stored = True

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_cached"}

    @property
    def alpha(self):
        """A typical value of the Dirichlet parameters, (n_topics,)."""
        return self.prior.alpha

    @property
    def allows_tempering(self):
        """Whether collapsed Gibbs sampling begins at a temperature above 1."""
        return self.prior.allows_tempering

    def start(self):
        self.prior.start()

    def table(self, shard, docs=None):
        return self.prior.table(shard._replace(described=None), docs)

    def _of(self, shard):
        """The `Outcomes` of a shard, and group 0 of each of its documents."""
        of, outcomes, group = self._cached
        if of is not shard:
            outcomes, group = Outcomes.of(shard), np.zeros(shard.n_docs, dtype=np.int64)
            self._cached = shard, outcomes, group
        return outcomes, group

    def sweep_priors(self, shard):
        if self.log_activity is None:
            return self.prior.sweep_priors(shard._replace(described=None))
        outcomes, group = self._of(shard)
        return OutcomeStep.of(self.prior, self.outcome, outcomes, self.log_activity), group

    def sweeps(self, shard, z, topic_word_prior):
        self.wants_new_sweeps = False
        if self.log_activity is None:
            return self.prior.sweeps(shard._replace(described=None), z, topic_word_prior)
        return OutcomeSweeps(shard, z, topic_word_prior)

    def update(self, assigned, progress):
        """Learn from the words alone; from the last quarter of burn-in on, from activities and outcomes."""
        if self.log_activity is not None:
            rng = np.random.default_rng([progress.seed, progress.step])
            documents = assigned.documents
            tokens = documents.token_ptr, documents.weights, assigned.z
            of = self.log_activity, self.outcome, self._of(documents)[0], self.prior
            update_all(*of, tokens, rng, progress.burns_in)
            return
        documents = assigned.documents
        self.prior.update(AssignedDocuments(documents._replace(described=None), assigned.z), progress)
        is_short = progress.is_start and progress.n_burn < _SHORT
        is_late = not progress.is_start and progress.step + 1 >= _READS_FROM * progress.n_burn
        if self.follows_outcomes and (is_short or is_late):
            self.log_activity = np.full((documents.n_docs, self.alpha.size), np.nan, dtype=np.float32)
            self.wants_new_sweeps = True

    def append(self, is_new):
        self.prior.append(is_new)
        if self.log_activity is not None:
            grown = np.full((is_new.size, self.alpha.size), np.nan, dtype=np.float32)
            grown[~is_new] = self.log_activity
            self.log_activity = grown

    def in_draw(self, draw, shard):
        return self.prior.in_draw(draw, shard._replace(described=None))

    def draw(self):
        return {**self.prior.draw(), **self.outcome.draw()}

    def exchangeable_groups(self):
        return self.prior.exchangeable_groups()

    def permute(self, order):
        self.prior.permute(order)
        self.outcome.permute(order)
        if self.log_activity is not None:
            self.log_activity = np.ascontiguousarray(self.log_activity[:, order])

    def warnings(self, draws):
        return self.prior.warnings(draws)

    def release(self, assigned):
        self.log_activity = None
