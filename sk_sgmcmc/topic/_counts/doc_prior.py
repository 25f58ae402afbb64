"""The Dirichlet prior of every document: a part of a chain of topics, and the part that a new count model supplies."""

from typing import NamedTuple

import numpy as np

from ...kernels.math import dirichlet
from .collapsed import fitted_doc_prior, moved_prior
from .general_sweeps import collapsed_sweeps

_FIRST, _FIRST_SUM = 0.1, 15.0


def first_doc_prior(n_topics):
    """The value for every topic at which a fit of the prior begins, bounded in sum: a document has few topics."""
    return min(_FIRST, _FIRST_SUM / n_topics)


class Moment(NamedTuple):
    """The position of a chain in its run.

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
        Seed from which the chain's parts may derive random streams of their own.
    forgotten : float
        Share of their state that the topics forget in this step; 0 if the sampler has no step size.
    n_warm : float, default=inf
        Steps of burn-in that are collapsed sweeps; all of them if it is larger than ``n_burn``.
    """

    step: int
    n_burn: float
    n_passes: int
    rng: np.random.Generator
    seed: int
    forgotten: float
    n_warm: float = np.inf

    @property
    def burns_in(self):
        """Whether adaptation is allowed."""
        return self.step < self.n_burn

    @property
    def is_late(self):
        """Whether adaptation is allowed and topics have formed: half of the sweeps are over, or burn-in has no end."""
        return self.burns_in and (2 * self.step >= min(self.n_burn, self.n_warm) or np.isinf(self.n_burn))


class DocumentPrior:
    """A Dirichlet prior of every document; in this class a fixed one, the same for all documents.

    A chain calls `bind` with its documents, `start` for the prior from which first assignments are drawn, and `refine`
    and `begin` with these assignments. In each step it then calls `table`, `before_minibatch` and `after_minibatch`, or
    around collapsed sweeps `before_minibatch` and `after_sweep`, and it calls `after_pass` after each pass of sweeps
    over all documents. `draw` returns the learnt parameters. A subclass overrides what its law needs.

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Parameter of the Dirichlet law.
    stored : bool
        Whether the chain keeps the assignments of all documents, or draws them afresh in each minibatch.
    bears_heat : bool, default=False
        Whether collapsed Gibbs sampling begins at a temperature above 1.
    """

    reads_every_draw = False  # whether `after_minibatch` needs all draws of fresh assignments, not just the last
    refines = False  # whether `refine` improves first assignments
    _unpickled = ("data",)
    data = None

    def __init__(self, alpha, stored=True, bears_heat=False):
        self.alpha = np.array(alpha, dtype=np.float64)
        self.stored = stored
        self.bears_heat = bears_heat

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in self._unpickled}

    def bind(self, data):
        """Bind to the chain's documents, a `TokenData`, at the start and again after unpickling."""
        self.data = data

    def saved(self, z):
        """The prior as it is pickled with its chain, whose assignments are ``z``, or None if it has not finished."""
        return self

    # -- start ---------------------------------------------------------------------------------------------------

    def start(self):
        """The prior (n_topics,) from which first assignments are drawn."""
        return self.alpha

    def sweeps(self, data, z, topic_word_prior):
        """Collapsed sweeps over the documents."""
        return collapsed_sweeps(data, z, topic_word_prior)

    def refine(self, data, z, alpha, topic_word_prior, rng):
        """Improve first assignments ``z`` in place, and return the prior that belongs to them."""
        return alpha

    def begin(self, data, z, alpha, rng, swept=True):
        """Begin from assignments ``z``; ``swept`` is whether a few sweeps have improved them since they were drawn."""

    # -- steps ---------------------------------------------------------------------------------------------------

    def table(self, docs=None):
        """Priors, (n_groups, n_topics), and the group of each of the documents ``docs``, or of all if it is None."""
        return self.alpha[None], self.data.group if docs is None else np.zeros(docs.size, dtype=np.int64)

    def before_minibatch(self, docs, z):
        """Called before documents are reassigned; ``z`` holds the assignments, if they are stored."""

    def after_minibatch(self, docs, doc_counts, z, now):
        """Called with a `Moment` after documents were reassigned; ``doc_counts`` is (n_draws, n_docs, n_topics)."""

    def after_sweep(self, docs, z, now):
        """Called after collapsed sweeps over the documents ``docs``, or over all if it is None."""

    def after_pass(self, z, now, collapsed):
        """Called each time that the sweeps ``collapsed`` have passed over all documents."""

    def after_epoch(self, z, now):
        """Called each time that minibatches have passed over all documents, if assignments are stored."""

    def unbound(self):
        """A copy without the documents."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__getstate__())
        return other

    # -- shards ----------------------------------------------------------------------------------------------------

    def learns_from_round(self, now):
        """Whether `after_round` needs statistics of the round that ends at a `Moment`; after no pass, of the start."""
        return False

    def statistics(self, shard, z, rng):
        """What a round needs of a `Shard` with assignments ``z``; called wherever the shard is, with its own stream."""

    def of_shard(self, shard):
        """As `table`, of the documents of a `Shard`."""
        return self.alpha[None], shard.group

    def after_round(self, statistics, now):
        """Called after all shards were reassigned, with their `statistics` in order, if they were wanted."""

    def after_shards(self, shards, now):
        """Called after each round but the start, with the `AssignedShards`, for what takes several looks at them."""

    def release_shards(self, shards):
        """Called with the `AssignedShards` before their assignments are dropped."""

    # -- topics --------------------------------------------------------------------------------------------------

    @property
    def labels(self):
        """A number for each topic; topics with equal ones can change places without changing the posterior."""
        return self.alpha

    def renumber(self, order):
        """Reorder the topics."""
        self.alpha = self.alpha[order]

    # -- draws and streams ---------------------------------------------------------------------------------------

    def draw(self):
        """The learnt parameters, as part of a draw: a dict of arrays."""
        return {}

    def warnings(self, draws):
        """Checks of the draws of what is learnt, a dict of arrays (n_kept, ...): a list of `Check`."""
        return []

    def stream(self, z):
        """Switch from stored to fresh assignments; those in ``z`` stay as they are."""
        self.stored = False

    def use(self):
        """Continue a stream with other samplers of the prior's parameters."""


class FittedPrior(DocumentPrior):
    """One prior for all documents, fitted by Minka's fixed point.

    Fresh assignments and streams fit it throughout, stored ones in the second half of the sweeps of burn-in. An earlier
    fit would follow the topics of the start: the prior of some of them becomes small, tokens do not come back to these,
    and the chain stays in its mode.
    """

    def start(self):
        # What was learnt belongs to the topics of an earlier start.
        return np.full(self.alpha.size, self.alpha.mean())

    def begin(self, data, z, alpha, rng, swept=True):
        if not self.stored and swept:
            self.alpha = fitted_doc_prior(data, z, alpha)

    def after_pass(self, z, now, collapsed):
        """Make one update after every late pass."""
        if now.is_late:
            self.alpha = fitted_doc_prior(self.data, z, self.alpha, n_updates=1)

    def learns_from_round(self, now):
        """Every late round."""
        return now.is_late

    def statistics(self, shard, z, rng):
        """Sums of the fixed point, (n_topics + 1,)."""
        sums = np.zeros(self.alpha.size + 1)
        dirichlet.add_statistics(0, shard.n_docs, shard.token_ptr, shard.weights, z, self.alpha, sums)
        return sums

    def after_round(self, statistics, now):
        sums = np.sum(statistics, axis=0)
        self.alpha = moved_prior(self.alpha, sums)

    def after_minibatch(self, docs, doc_counts, z, now):
        """Make one damped fixed-point step during burn-in, if counts are fresh."""
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
        return np.zeros(self.alpha.size)  # a learnt prior moves with its topics

    def draw(self):
        return {"doc_topic_prior": self.alpha.copy()}
