"""Dirichlet priors of the topics of documents, which is where the count topic models differ."""

from copy import copy
from typing import NamedTuple

import numpy as np

from ...kernels.math import dirichlet
from .corpus import Shard, pieces
from .sweeps import GeneralSweeps, sweeps_of

# The first value of a fitted prior for each topic, and its largest sum over topics. With 100 to 1,000 topics on
# poliblog5k, sotu_paragraphs and wikipedia, held-out perplexity was up to 4% lower with a sum of 5 than with one of 15.
_FIRST, _FIRST_SUM = 0.1, 5.0
# With more topics, default fits end before documents have settled on few of them. A fitted sum is then too large, and
# fitted values still differ as the first assignments did. With 1,000 topics on poliblog5k and sotu_paragraphs,
# perplexity was 2% and 3% higher with one fitted value per topic, and 1% and 2% if only their sum was bounded.
_MOST_SETTLED = 125


def first_doc_prior(n_topics):
    """The first value of a fitted prior, equal for all topics, and bounded in sum because documents have few topics."""
    return min(_FIRST, _FIRST_SUM / n_topics)


class Progress(NamedTuple):
    """The progress of a chain, as document priors need it.

    Parameters
    ----------
    step : int
        Number of steps made.
    n_burn : float
        Number of steps of burn-in; infinite in a stream.
    n_passes : int
        Number of passes over all documents.
    rng : Generator
        The chain's random stream.
    seed : int
        Seed from which the chain's parts may derive random streams of their own.
    forgotten : float
        Share of their state that the topics forget in this step; 0 if the sampler has no step size.
    n_warm : float, default=inf
        Number of steps of burn-in that are collapsed sweeps; all of them if it is larger than ``n_burn``.
    is_start : bool, default=False
        Whether these are the chain's first assignments. ``n_passes`` is then the number of sweeps that improved them.
    is_collapsed : bool, default=True
        Whether topics are integrated out.
    in_batches : bool, default=False
        Whether documents were reassigned in minibatches, which `DocumentPrior.update_from_batch` has already read.
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
        """Whether adaptation is allowed and topics have formed, that is after half of the sweeps, or in a stream."""
        return self.burns_in and (2 * self.step >= min(self.n_burn, self.n_warm) or np.isinf(self.n_burn))

    @property
    def may_approximate(self):
        """Whether sweeps may be approximate: in burn-in, before the sweeps whose counts decide the fitted priors."""
        return self.burns_in and not self.is_late


class Batch(NamedTuple):
    """A minibatch of documents after their tokens were reassigned.

    Parameters
    ----------
    documents : Shard
        All documents in memory.
    docs : ndarray of int64, shape (n_docs,)
        Indices of the documents of the minibatch.
    counts : ndarray of shape (n_draws, n_docs, n_topics), or None
        Counts of topics in each document, in the last draws given the topics; None after collapsed sweeps.
    before, z : ndarray of uint16, or None
        If assignments are stored: those of the minibatch before the draw, and those of all tokens after it.
    n_samples : float
        Corpus size N for which the minibatch stands.
    """

    documents: Shard
    docs: np.ndarray
    counts: np.ndarray | None
    before: np.ndarray | None
    z: np.ndarray | None
    n_samples: float


class DocumentPrior:
    """A Dirichlet prior of the topics of documents; in this class it is fixed, and the same for all documents.

    A chain calls `start`, draws first assignments from `table`, and calls `update` with them. Then it reassigns
    documents under `table`. It calls `update` after each pass over all documents, and `update_from_batch` after each
    minibatch. `draw` returns the learnt parameters.

    A subclass overrides `table` if the prior differs between documents, and `update`, `draw` and `exchangeable_groups`
    if the prior is learnt. The same methods serve documents in memory and in shards elsewhere, so a prior stores
    nothing per document.

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Parameter of the Dirichlet distribution, or a typical value if it differs between documents.
    stored : bool
        Whether the chain stores the assignments of all documents, or draws them from scratch in each minibatch.
    allows_tempering : bool, default=False
        Whether collapsed Gibbs sampling begins at a temperature above 1.
    """

    reads_every_draw = False  # Whether `update_from_batch` needs all draws of fresh assignments, not just the last.
    reads_batches = False  # Whether `update_from_batch` needs stored assignments from before and after the draw.
    refines_start = False  # Whether `refine` improves first assignments.
    leaves_topics_empty = False  # Whether many topics may have no tokens.
    wants_new_sweeps = False  # Whether the next pass requires sweeps of another kind, by `sweeps`.
    records_documents = False  # Whether chains record the topic counts of each document at kept draws.

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
        """Reset the prior to its first value."""

    def table(self, shard, docs=None):
        """Priors of groups, (n_groups, n_topics), and the group of each of the documents ``docs`` of a `Shard`."""
        return self.alpha[None], shard.group if docs is None else np.zeros(docs.size, dtype=np.int64)

    def sweep_priors(self, shard):
        """The priors for collapsed sweeps of a `Shard`; they equal those of `table` if they are Dirichlet."""
        return self.table(shard)

    def sweeps(self, shard, z, topic_word_prior):
        """The collapsed sweeps of all documents, a `Shard`, under this prior."""
        return sweeps_of(shard, z, topic_word_prior, self.leaves_topics_empty)

    @staticmethod
    def token_priors(priors, group, shard, start, stop, z, rng):
        """The Dirichlet parameters that sweeps of documents start:stop take, and further arguments, a dict.

        ``priors`` and ``group`` come from `sweep_priors`.
        """
        return priors, {}

    def block_sweeps(self, shard, z, topic_word_prior, is_whole):
        """The collapsed sweeps of a block that a draw takes in; ``is_whole`` says whether its counts are whole."""
        return (sweeps_of if is_whole else GeneralSweeps)(shard, z, topic_word_prior)

    def refine(self, shard, z, topic_word_prior, rng):
        """Improve first assignments ``z`` of a shard in place, if the prior ``refines_start``."""

    def update(self, assigned, progress):
        """Learn from the assignments of all documents, an `AssignedShards`, at a `Progress`.

        ``assigned.map(function, *args)`` returns the list of ``function(shard, z, *args)`` for each `Shard` and its
        assignments. The function is called where the shard is, and must have no side effects.
        ``assigned.draw(function, rng, *args)`` does the same with a random stream as the function's last argument.
        """

    def update_from_batch(self, batch, progress):
        """Learn from a `Batch` at a `Progress`."""

    def draw(self):
        """The learnt parameters, as part of a draw: a dict of arrays."""
        return {}

    def exchangeable_groups(self):
        """A group number for each topic, (n_topics,): topics of one group are exchangeable under the posterior."""
        return self.alpha

    def in_draw(self, draw, shard):
        """The priors of the documents of a `Shard` as from `sweep_priors`, and a typical value, in a ``draw``."""
        other = copy(self)
        other.set_to(draw)
        return other.sweep_priors(shard), other.alpha

    def set_to(self, draw):
        """Set the learnt parameters to those of a ``draw``, a dict as from `draw`."""

    def draw_proportions(self, draw, documents, counts, seed):
        """Draw the proportions of documents given the topics of their tokens, in a kept ``draw``.

        Parameters
        ----------
        draw : dict of ndarray
            The learnt parameters, as from `draw`.
        documents : Shard
            Metadata of the documents, without words.
        counts : ndarray of shape (n_docs, n_topics)
            Topic counts of the documents, with the topics in the order of ``draw``.
        seed : uint64
            Seed of the draws.

        Returns
        -------
        proportions : ndarray of float32, shape (n_docs, n_topics)
            Rows sum to 1.
        """
        (priors, group), _ = self.in_draw(draw, documents)
        shapes = priors[group]
        shapes += counts
        out = np.empty(shapes.shape, dtype=np.float32)
        dirichlet.dirichlet_rows(shapes, seed, out)
        return out

    def append(self, is_new):
        """Prepare for more documents; ``is_new`` says which are new, (n_docs,)."""

    def permute(self, order):
        """Reorder the topics."""
        self.alpha = self.alpha[order]

    def for_pickle(self, assigned):
        """The prior as it is pickled with its chain; ``assigned`` is passed if the chain has finished, else None."""
        return self

    def warnings(self, draws):
        """Check the kept draws of the learnt parameters, a dict of arrays (n_kept, ...); returns a list of `Check`."""
        return []

    def release(self, assigned):
        """Keep what the prior needs of the stored assignments, which are then dropped and no longer change."""

    def stream(self, sampler_params):
        """Continue with fresh assignments; ``sampler_params`` are samplers of the prior's parameters, by name."""
        self.stored = False


class FittedPrior(DocumentPrior):
    """One prior for all documents, fitted by Minka's fixed point.

    With fresh assignments it is fitted throughout burn-in, and in streams always. With stored assignments it is fitted
    in the second half of the sweeps of burn-in. An earlier fit would follow the first topics: the prior of some of them
    becomes small, tokens do not return to these topics, and the chain stays in its mode. More than
    `_MOST_SETTLED` topics then share one value, which does not rise above the first.
    """

    def start(self):
        # The fitted values belong to the topics of an earlier start, so only their mean is used.
        self.alpha = np.full(self.alpha.size, self.alpha.mean())

    def update(self, assigned, progress):
        """Make an update after each late pass of collapsed sweeps, and five at a start from swept fresh assignments."""
        if progress.is_start:
            n_updates = 0 if self.stored or not progress.n_passes else 5
        else:
            n_updates = int(progress.is_late and progress.is_collapsed)
        for _ in range(n_updates):
            sums = np.sum(assigned.map(fixed_point_sums, self.alpha), axis=0)
            self.alpha = moved_prior(self.alpha, sums)
            if self.alpha.size > _MOST_SETTLED:
                self.alpha[:] = min(self.alpha.mean(), first_doc_prior(self.alpha.size))

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
        return np.zeros(self.alpha.size)  # If topics change places, so do their fitted values.

    def draw(self):
        return {"doc_topic_prior": self.alpha.copy()}

    def set_to(self, draw):
        self.alpha = draw["doc_topic_prior"].astype(np.float64)


def fixed_point_sums(shard, z, alpha):
    """Sums over documents for Minka's fixed point, (n_topics + 1,): numerators of the topics, and the denominator."""
    sums = np.zeros(alpha.size + 1)
    for start, stop in pieces(shard.token_ptr):
        dirichlet.add_statistics(start, stop, shard.token_ptr, shard.weights, z, alpha, sums)
    return sums


def moved_prior(alpha, sums):
    """One update of the fixed point from `fixed_point_sums`."""
    if not sums[-1] > 0:
        return alpha
    return np.clip(alpha * sums[:-1] / sums[-1], 1e-4, 1e3)
