"""A prior of documents whose parameters are the weights of a gamma process."""

import numpy as np

from .._counts.doc_prior import DocumentPrior
from .._counts.start import pieces
from .._counts.tokens import lengths_of
from .atoms import Atoms, MovingAtoms
from .statistics import AveragedStatistics, StoredStatistics, SummedStatistics
from .sweeps import SweepsInUse

START_MASS = 5.0  # sum of the documents' prior at the start
START_WEIGHT = 0.1  # the largest start of a topic's weight
_JOIN_PASSES = (5, 10, 15, 20, 25, 30, 40, 50)  # passes of burn-in after which topics may be joined
_START_SWEEPS = 12  # sweeps over the documents from which a chain starts
_START_UPDATES = 10  # first updates of the weights, by draws from their conditionals


class GammaProcessPrior(DocumentPrior):
    """Weights of topics, the same for all documents, drawn given the assignments.

    Weights depend on the documents through two statistics (`sk_sgmcmc.kernels.models.gamma_process`). With stored
    assignments these are of all documents, always up to date. With fresh ones they are averages over minibatches,
    forgotten as fast as the topics.

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Weights at the start.
    stored : bool
        As for `DocumentPrior`.
    process : ProcessPrior
    weights_sampler : Sampler
        Resolved: one on flat space, or one under which weights are drawn from their conditionals.
    moves_flat : bool
        Whether that sampler is on flat space.
    n_inner : int
        Steps of a sampler on flat space per step of the chain.
    n_burn : float
        Length of the chain's burn-in, in steps.
    """

    refines = True
    _unpickled = (*DocumentPrior._unpickled, "_lengths")
    _lengths = None

    def __init__(self, alpha, stored, *, process, weights_sampler, moves_flat, n_inner, n_burn):
        super().__init__(alpha, stored)
        self.start_alpha = self.alpha
        self.weights_sampler = weights_sampler
        weight, flat_arguments = float(alpha[0]), (weights_sampler, n_inner, n_burn)
        self.atoms = MovingAtoms(process, weight, *flat_arguments) if moves_flat else Atoms(process, weight)
        self.seen = None
        self.tried, self.just_joined = set(), False

    def bind(self, data):
        self._lengths = None
        if self.seen is None and not self.stored:
            self.seen = AveragedStatistics(self.alpha.size)
        super().bind(data)

    # -- start ---------------------------------------------------------------------------------------------------

    def start(self):
        self.alpha = self.start_alpha.copy()
        return self.alpha

    def sweeps(self, data, z, topic_word_prior):
        return SweepsInUse(data, z, topic_word_prior)

    def refine(self, data, z, alpha, topic_word_prior, rng):
        """Make a few collapsed sweeps, which also join topics."""
        seen = StoredStatistics(data, self.alpha.size)
        collapsed, tried = SweepsInUse(data, z, topic_word_prior), set()
        for i in range(_START_SWEEPS):
            for start, stop in pieces(data.token_ptr):
                collapsed.sweep(data, start, stop, alpha[None], data.group, rng)
            if i % 2 == 1 and i < _START_SWEEPS - 2:
                for joined in collapsed.join(data, alpha, tried):
                    self.atoms.join(*joined)
            seen.read_all(data, z, self.atoms, rng)
            self.atoms.redraw(*seen.values(None), rng)
            alpha = self.atoms.weights
        if not self.stored:
            self.seen.begin(seen)
        return alpha

    def begin(self, data, z, alpha, rng, swept=True):
        if self.stored:
            self.seen = StoredStatistics(data, self.alpha.size)
            self.seen.read_all(data, z, self.atoms, rng)
            for _ in range(_START_UPDATES):
                self.atoms.redraw(*self.seen.values(None), rng)
        self.alpha = self.atoms.weights

    # -- steps ---------------------------------------------------------------------------------------------------

    def before_minibatch(self, docs, z):
        if self.stored:
            self.seen.count(self.data, z, docs, -1.0)
            self.just_joined = False

    def after_minibatch(self, docs, doc_counts, z, now):
        """Update the statistics of the documents, and move the weights."""
        if self.stored:
            self._count(docs, z, now)
        else:
            if self._lengths is None:
                self._lengths = lengths_of(self.data)
            self.seen.remember(docs, doc_counts[-1], self._lengths, now.forgotten, self.atoms, now.rng)
        self._move(now)

    def after_sweep(self, docs, z, now):
        if docs is None or self.just_joined:
            self.seen.read_all(self.data, z, self.atoms, now.rng)
        else:
            self._count(docs, z, now)
        self._move(now)

    def _count(self, docs, z, now):
        self.seen.count(self.data, z, docs, 1.0)
        self.seen.redraw(docs, self.atoms, now.rng)

    def _move(self, now):
        decay = 0.0
        if self.stored and self.weights_sampler._is_lazy:
            decay = np.exp(-self.weights_sampler._hyper(now.step, now.step + 1)[0, 0])
        if not now.burns_in:
            self.atoms.settle()
        self.atoms.move(*self.seen.values(self.data.total_samples), now.rng, decay)
        self.alpha = self.atoms.weights

    def after_pass(self, z, now, collapsed):
        """Join topics after some of the passes."""
        if now.n_passes not in _JOIN_PASSES or now.step >= 0.8 * now.n_burn:
            return
        if now.n_passes % 10 == 0:
            self.tried = set()
        for kept, left in collapsed.join(self.data, self.alpha, self.tried):
            self.atoms.join(kept, left)
            self.just_joined = True

    # -- shards ----------------------------------------------------------------------------------------------------

    def learns_from_round(self, now):
        return True

    def statistics(self, shard, z, rng):
        """`StoredStatistics` of the shard, as counts and the sum of its documents' scales."""
        seen = StoredStatistics(shard, self.alpha.size)
        seen.read_all(shard, z, self.atoms, rng)
        return seen.summed()

    def after_round(self, statistics, now):
        self.seen = SummedStatistics(statistics)
        if now.n_passes == 0:
            for _ in range(_START_UPDATES):
                self.atoms.redraw(*self.seen.values(None), now.rng)
            self.alpha = self.atoms.weights
        else:
            self._move(now)

    # -- topics, draws and streams -------------------------------------------------------------------------------

    @property
    def labels(self):
        return np.zeros(self.alpha.size)  # weights move with their topics

    def renumber(self, order):
        self.atoms.renumber(order)
        self.seen.renumber(order)
        self.alpha = self.atoms.weights

    def draw(self):
        return {
            "weights": self.atoms.weights,
            "concentration": np.float64(self.atoms.concentration),
            "rate": np.float64(self.atoms.rate),
        }

    def stream(self, z):
        """Keep the statistics of the stored assignments as they are."""
        if self.stored:  # otherwise statistics are averages already
            self.seen = AveragedStatistics(self.alpha.size, self.seen)
        super().stream(z)

    def use(self, weights_sampler):
        self.weights_sampler = weights_sampler
        self.atoms.use(weights_sampler)
