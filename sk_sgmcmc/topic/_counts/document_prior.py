"""The Dirichlet prior of every document: the part of a count topic model that a new model supplies."""

from typing import NamedTuple

import numpy as np

from ...kernels.math import dirichlet
from .corpus import Shard, pieces

_FIRST, _FIRST_SUM = 0.1, 15.0


def first_doc_prior(n_topics):
    """The value for every topic at which a fit of the prior begins, bounded in sum: a document has few topics."""
    return min(_FIRST, _FIRST_SUM / n_topics)


class Progress(NamedTuple):
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
    is_start : bool, default=False
        Whether assignments are those from which a chain starts; ``n_passes`` then counts the sweeps that they have had.
    is_collapsed : bool, default=True
        Whether topics are integrated out.
    in_batches : bool, default=False
        Whether documents were reassigned in minibatches, of which `DocumentPrior.update_from_batch` knows.
    """

    step: int
    n_burn: float
    n_passes: int
    rng: np.random.Generator
    seed: int
    forgotten: float
    n_warm: float = np.inf
    is_start: bool = False
    is_collapsed: bool = True
    in_batches: bool = False

    @property
    def burns_in(self):
        """Whether adaptation is allowed."""
        return self.step < self.n_burn

    @property
    def is_late(self):
        """Whether adaptation is allowed and topics have formed: half of the sweeps are over, or burn-in has no end."""
        return self.burns_in and (2 * self.step >= min(self.n_burn, self.n_warm) or np.isinf(self.n_burn))


class Batch(NamedTuple):
    """A minibatch of documents that were reassigned.

    Parameters
    ----------
    documents : Shard
        All documents at hand.
    docs : ndarray of int64, shape (n_docs,)
        Those of the minibatch.
    counts : ndarray of shape (n_draws, n_docs, n_topics), or None
        Topics of their tokens in the last draws given the topics; None after collapsed sweeps.
    before, z : ndarray of uint16, or None
        Assignments of their tokens before, and those of all tokens now, if assignments are stored.
    n_samples : float
        Number of documents that the minibatch stands for.
    """

    documents: Shard
    docs: np.ndarray
    counts: np.ndarray | None
    before: np.ndarray | None
    z: np.ndarray | None
    n_samples: float


class DocumentPrior:
    """A Dirichlet prior of every document; in this class a fixed one, the same for all documents.

    A chain calls `start`, draws first assignments from `table`, and calls `update` with them. Then it reassigns
    documents by their `table`, and calls `update` after each pass over all of them, and `update_from_batch` after each
    minibatch. `draw` returns the learnt parameters. A subclass overrides what its distribution needs: a prior that
    differs between documents `table`, one that learns `update`, `draw` and `exchangeable_groups`. It works in memory
    and over shards alike, and holds nothing that belongs to documents.

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Parameter of the Dirichlet distribution, or a typical one.
    stored : bool
        Whether the chain keeps the assignments of all documents, or draws them afresh in each minibatch.
    allows_tempering : bool, default=False
        Whether collapsed Gibbs sampling begins at a temperature above 1.
    """

    reads_every_draw = False  # whether `update_from_batch` needs all draws of fresh assignments, not just the last
    reads_batches = False  # whether `update_from_batch` needs to know stored assignments before and after
    refines_start = False
    leaves_topics_empty = False  # whether many topics may have no tokens

    def __init__(self, alpha, stored=True, allows_tempering=False):
        self.alpha = np.array(alpha, dtype=np.float64)
        self.stored = stored
        self.allows_tempering = allows_tempering

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "table" in vars(cls) and "exchangeable_groups" not in vars(cls):
            raise TypeError(
                f"{cls.__name__} must define `exchangeable_groups` with `table`. Return np.arange(self.alpha.size) if "
                "the priors of documents distinguish topics, or self.alpha if topics may change places."
            )

    def start(self):
        """Forget what was learnt."""

    def table(self, shard, docs=None):
        """Priors, (n_groups, n_topics), and the group of each document of a `Shard`, or of some of its documents."""
        return self.alpha[None], shard.group if docs is None else np.zeros(docs.size, dtype=np.int64)

    def refine(self, shard, z, topic_word_prior, rng):
        """Improve first assignments ``z`` of a shard in place, if the prior ``refines_start``."""

    def update(self, assigned, progress):
        """Learn from all documents at a `Progress`, after they were assigned.

        ``assigned.map(function, *args)`` returns the values of ``function(shard, z, *args)`` for each `Shard` and its
        assignments, a list; the function is called where they are, and must have no side effects.
        ``assigned.draw(function, rng, *args)`` does so with a random stream as its last argument.
        """

    def update_from_batch(self, batch, progress):
        """Learn from a `Batch` at a `Progress`."""

    def draw(self):
        """The learnt parameters, as part of a draw: a dict of arrays."""
        return {}

    def exchangeable_groups(self):
        """A number for each topic; topics with equal ones can change places without changing the posterior."""
        return self.alpha

    def permute(self, order):
        """Reorder the topics."""
        self.alpha = self.alpha[order]

    def for_pickle(self, assigned):
        """The prior as it is pickled with its chain; ``assigned`` if the chain has finished, else None."""
        return self

    def warnings(self, draws):
        """Checks of the draws of what is learnt, a dict of arrays (n_kept, ...): a list of `Check`."""
        return []

    def release(self, assigned):
        """Called before assignments of stored documents are dropped, which stay as they are."""

    def stream(self, sampler_params):
        """Continue with minibatches of fresh assignments, and other samplers of the prior's parameters, by name."""
        self.stored = False


class FittedPrior(DocumentPrior):
    """One prior for all documents, fitted by Minka's fixed point.

    Fresh assignments and streams fit it throughout, stored ones in the second half of the sweeps of burn-in. An earlier
    fit would follow the topics of the start: the prior of some of them becomes small, tokens do not come back to these,
    and the chain stays in its mode.
    """

    def start(self):
        # What was learnt belongs to the topics of an earlier start.
        self.alpha = np.full(self.alpha.size, self.alpha.mean())

    def update(self, assigned, progress):
        """Make an update after every late pass of collapsed sweeps; several at a start that sweeps have improved."""
        if progress.is_start:
            n_updates = 0 if self.stored or not progress.n_passes else 5
        else:
            n_updates = int(progress.is_late and progress.is_collapsed)
        for _ in range(n_updates):
            sums = np.sum(assigned.map(fixed_point_sums, self.alpha), axis=0)
            self.alpha = moved_prior(self.alpha, sums)

    def update_from_batch(self, batch, progress):
        """Make one damped fixed-point step during burn-in, if counts are fresh."""
        if self.stored or not progress.burns_in:
            return
        doc_counts = batch.counts[-1]
        lengths = doc_counts.sum(axis=1)
        used = lengths > 0
        new = dirichlet.fixed_point(doc_counts[used], lengths[used], self.alpha, 1.0)
        share = batch.docs.size / max(batch.docs.size, batch.n_samples)
        self.alpha = self.alpha + max(share, 0.05) * (new - self.alpha)

    def exchangeable_groups(self):
        return np.zeros(self.alpha.size)  # a learnt prior moves with its topics

    def draw(self):
        return {"doc_topic_prior": self.alpha.copy()}


def fixed_point_sums(shard, z, alpha):
    """Sums over documents of Minka's fixed point, (n_topics + 1,)."""
    sums = np.zeros(alpha.size + 1)
    for start, stop in pieces(shard.token_ptr):
        dirichlet.add_statistics(start, stop, shard.token_ptr, shard.weights, z, alpha, sums)
    return sums


def moved_prior(alpha, sums):
    """One update of the fixed point from `fixed_point_sums`."""
    if not sums[-1] > 0:
        return alpha
    return np.clip(alpha * sums[:-1] / sums[-1], 1e-4, 1e3)
