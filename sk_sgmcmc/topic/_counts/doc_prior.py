"""The Dirichlet prior of every document: a part of a chain of topics, and what a new count model has to supply."""

from typing import NamedTuple

import numpy as np

from ...kernels.math import dirichlet
from .collapsed import CollapsedSweeps, fitted_doc_prior


class Moment(NamedTuple):
    """Where a chain is.

    Parameters
    ----------
    step : int
        Steps made.
    n_burn : float
        Steps of burn-in; infinite in a stream.
    n_passes : int
        Passes over all documents.
    rng : Generator
        The chain's stream.
    seed : int
        From which the chain's parts may make streams of their own.
    forgotten : float
        Share of their state that the topics forget in this step; 0 of a sampler without a step size.
    """

    step: int
    n_burn: float
    n_passes: int
    rng: np.random.Generator
    seed: int
    forgotten: float

    @property
    def burns_in(self):
        """Whether what adapts may do so."""
        return self.step < self.n_burn


class DocumentPrior:
    """A Dirichlet prior of every document; this one is the same for all of them, and fixed.

    A chain calls `bind` with its documents, `start` for what first assignments are drawn from, `refine` and `begin`
    with these; then, for each of its steps, `table`, `before_minibatch` and `after_minibatch`, or around collapsed
    sweeps `before_minibatch` and `after_sweep`; and `after_pass` after each pass of sweeps over all documents. Draws
    of what the prior learns come from `draw`. A subclass overrides what its law needs.

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Parameter of the Dirichlet law.
    stored : bool
        Whether the chain keeps the assignments of all documents, or draws them afresh in each minibatch.
    """

    reads_every_draw = False  # whether `after_minibatch` needs all draws of fresh assignments, not just the last
    _unpickled = ("data",)
    data = None

    def __init__(self, alpha, stored=True):
        self.alpha = np.array(alpha, dtype=np.float64)
        self.stored = stored

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in self._unpickled}

    def bind(self, data):
        """Take the chain's documents, a `TokenData`, now and again after a pickle."""
        self.data = data

    def saved(self, z):
        """What of this is saved when the chain of assignments ``z`` is; None: one that is not at its end."""
        return self

    # -- start ---------------------------------------------------------------------------------------------------

    def start(self):
        """The prior (n_topics,) that first assignments are drawn from."""
        return self.alpha

    def sweeps(self, data, z, topic_word_prior):
        """Collapsed sweeps over the documents."""
        return CollapsedSweeps(data, z, topic_word_prior)

    def refine(self, data, z, alpha, topic_word_prior, rng):
        """Improve first assignments ``z`` in place; returns the prior that goes with them."""
        return alpha

    def begin(self, data, z, alpha, rng, swept=True):
        """Begin from assignments; ``swept`` is whether they have seen a few sweeps, or are as they were drawn."""

    # -- steps ---------------------------------------------------------------------------------------------------

    def table(self, docs=None):
        """Priors, (n_groups, n_topics), and the group of each of the documents ``docs``; of all where it is None."""
        return self.alpha[None], self.data.group if docs is None else np.zeros(docs.size, dtype=np.int64)

    def before_minibatch(self, docs, z):
        """Documents are about to be assigned anew; ``z`` are the stored assignments, if they are stored."""

    def after_minibatch(self, docs, doc_counts, z, now):
        """Documents were assigned given the topics; ``doc_counts`` (n_draws, n_docs, n_topics), ``now`` a `Moment`."""

    def after_sweep(self, docs, z, now):
        """Documents ``docs``, or all where it is None, were assigned by collapsed sweeps."""

    def after_pass(self, z, now, collapsed):
        """Sweeps ``collapsed`` have passed over all documents."""

    def after_epoch(self, z, now):
        """Minibatches of stored assignments have passed over all documents."""

    # -- topics --------------------------------------------------------------------------------------------------

    @property
    def labels(self):
        """Topics of equal labels, (n_topics,), can change places without changing the posterior."""
        return self.alpha

    def renumber(self, order):
        """Put topics into another order."""
        self.alpha = self.alpha[order]

    # -- draws and streams ---------------------------------------------------------------------------------------

    def draw(self):
        """What is learnt, as part of a draw: a dict of arrays."""
        return {}

    def stream(self, z):
        """Go over from stored to fresh assignments, the documents of ``z`` staying as they are."""
        self.stored = False

    def use(self):
        """Take other samplers of the prior's parameters, on a stream."""


class FittedPrior(DocumentPrior):
    """One prior for all documents, fitted during burn-in by Minka's fixed point."""

    def start(self):
        # What was learnt belongs to the topics of another start.
        return np.full(self.alpha.size, self.alpha.mean())

    def begin(self, data, z, alpha, rng, swept=True):
        if not self.stored and swept:
            self.alpha = fitted_doc_prior(data, z, alpha)

    def after_pass(self, z, now, collapsed):
        """Fit, after the fifth pass of burn-in and every tenth."""
        if now.burns_in and now.n_passes % 10 == 5:
            self.alpha = fitted_doc_prior(self.data, z, self.alpha)

    def after_minibatch(self, docs, doc_counts, z, now):
        """One damped fixed-point step on fresh counts of burn-in."""
        if self.stored or not now.burns_in:
            return
        doc_counts = doc_counts[-1]
        lengths = doc_counts.sum(axis=1)
        used = lengths > 0
        new = dirichlet.fixed_point(doc_counts[used], lengths[used], self.alpha, 1.0)
        share = docs.size / max(docs.size, self.data.total_samples)
        self.alpha = self.alpha + max(share, 0.05) * (new - self.alpha)

    @property
    def labels(self):
        return np.zeros(self.alpha.size)  # a learnt prior goes along

    def draw(self):
        return {"doc_topic_prior": self.alpha.copy()}
