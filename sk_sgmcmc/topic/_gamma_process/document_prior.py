"""The document prior whose parameters are the weights of a gamma process."""

import numpy as np

from .._counts.corpus import pieces
from .._counts.document_prior import DocumentPrior
from .._counts.sweeps import OccupiedTopicSweeps
from .atoms import Atoms, MovingAtoms
from .statistics import AveragedStatistics, StoredStatistics, SummedStatistics, statistics_of

START_MASS = 5.0  # Largest sum of the weights at the start.
START_WEIGHT = 0.1  # Largest weight of a topic at the start.
_JOIN_PASSES = (5, 10, 15, 20, 25, 30, 40, 50)  # Passes of burn-in after which topics may be merged.
_START_SWEEPS = 12  # Sweeps over the documents from which a chain starts.
_START_UPDATES = 10  # First updates of the weights, by draws from their conditionals.


class GammaProcessPrior(DocumentPrior):
    """A prior whose parameters are weights of topics, the same for all documents, drawn given the assignments.

    Weights depend on the documents through two statistics (`sk_sgmcmc.kernels.models.gamma_process`). With stored
    assignments, these are of all documents, and always up to date. With fresh ones, they are averages over minibatches,
    which forget as fast as the topics.

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Weights at the start.
    stored : bool
        As for `DocumentPrior`.
    process : ProcessPrior
    weights_sampler : Sampler
        Resolved. Unless it is on flat space, weights are drawn from their conditionals.
    moves_flat : bool
        Whether ``weights_sampler`` is on flat space.
    n_inner : int
        Steps of a sampler on flat space per step of the chain.
    n_burn : float
        Length of the chain's burn-in, in steps.
    """

    reads_batches = True
    refines_start = True
    leaves_topics_empty = True

    def __init__(self, alpha, stored, *, process, weights_sampler, moves_flat, n_inner, n_burn):
        super().__init__(alpha, stored)
        self.start_alpha = self.alpha
        self.weights_sampler = weights_sampler
        weight, flat_arguments = float(alpha[0]), (weights_sampler, n_inner, n_burn)
        self.atoms = MovingAtoms(process, weight, *flat_arguments) if moves_flat else Atoms(process, weight)
        self.seen = None if stored else AveragedStatistics(self.alpha.size)
        self.tried, self.has_joined = set(), False

    # -- start ---------------------------------------------------------------------------------------------------

    def start(self):
        self.alpha = self.start_alpha.copy()

    def refine(self, shard, z, topic_word_prior, rng):
        """Make a few collapsed sweeps, with updates of the weights, and merge topics between some of them."""
        seen = StoredStatistics(shard, self.alpha.size)
        collapsed, tried = OccupiedTopicSweeps(shard, z, topic_word_prior), set()
        for i in range(_START_SWEEPS):
            for start, stop in pieces(shard.token_ptr):
                collapsed.sweep(shard, start, stop, self.alpha[None], shard.group, rng)
            if i % 2 == 1 and i < _START_SWEEPS - 2:
                for joined in collapsed.join(shard, self.alpha, tried):
                    self.atoms.join(*joined)
            seen.read_all(shard, z, self.atoms, rng)
            self.atoms.redraw(*seen.values(None), rng)
            self.alpha = self.atoms.weights
        if not self.stored:
            self.seen.begin(seen)

    # -- all documents ---------------------------------------------------------------------------------------------

    def update(self, assigned, progress):
        """Update the weights given the assignments of all documents; some passes of burn-in first merge topics."""
        if progress.is_start:
            self._start_weights(assigned, progress)
        elif progress.is_collapsed:
            self._join(assigned, progress)
            if not progress.in_batches:
                self.seen = SummedStatistics(assigned.draw(statistics_of, progress.rng, self.alpha.size, self.atoms))
                self._move(progress, None)

    def _start_weights(self, assigned, progress):
        if self.stored:
            if progress.in_batches:
                self.seen = StoredStatistics(assigned.documents, self.alpha.size)
                self.seen.read_all(assigned.documents, assigned.z, self.atoms, progress.rng)
            else:
                self.seen = SummedStatistics(assigned.draw(statistics_of, progress.rng, self.alpha.size, self.atoms))
            for _ in range(_START_UPDATES):
                self.atoms.redraw(*self.seen.values(None), progress.rng)
        self.alpha = self.atoms.weights

    def _join(self, assigned, progress):
        """Merge topics after some passes of burn-in, if the documents are in memory."""
        if assigned.documents is None or progress.n_passes not in _JOIN_PASSES:
            return
        if progress.step >= 0.8 * progress.n_burn:
            return
        if progress.n_passes % 10 == 0:
            self.tried = set()
        for kept, left in assigned.sweeps.join(assigned.documents, self.alpha, self.tried):
            self.atoms.join(kept, left)
            self.has_joined = True

    # -- minibatches -----------------------------------------------------------------------------------------------

    def update_from_batch(self, batch, progress):
        """Update the statistics by a minibatch, and then the weights."""
        if not self.stored:
            lengths = batch.documents.of_docs(batch.docs).lengths
            self.seen.remember(batch.counts[-1], lengths, progress.forgotten, self.atoms, progress.rng)
        elif self.has_joined:
            self.seen.read_all(batch.documents, batch.z, self.atoms, progress.rng)
            self.has_joined = False
        else:
            shard = batch.documents.of_docs(batch.docs)
            tokens, _ = batch.documents.tokens_of(batch.docs)
            every = np.arange(batch.docs.size)
            self.seen.count(shard, batch.before, every, -1.0)
            self.seen.count(shard, batch.z[tokens], every, 1.0)
            self.seen.redraw(batch.docs, self.atoms, progress.rng)
        self._move(progress, batch.n_samples)

    def _move(self, progress, n_samples):
        decay = 0.0
        if self.stored and self.weights_sampler._is_lazy:
            decay = np.exp(-self.weights_sampler._hyper(progress.step, progress.step + 1)[0, 0])
        if not progress.burns_in:
            self.atoms.settle()
        self.atoms.move(*self.seen.values(n_samples), progress.rng, decay)
        self.alpha = self.atoms.weights

    # -- topics, draws and streams -------------------------------------------------------------------------------

    def exchangeable_groups(self):
        return np.zeros(self.alpha.size)  # If topics change places, so do their weights.

    def permute(self, order):
        self.atoms.permute(order)
        self.seen.permute(order)
        self.alpha = self.atoms.weights

    def draw(self):
        return {
            "weights": self.atoms.weights,
            "concentration": np.float64(self.atoms.concentration),
            "rate": np.float64(self.atoms.rate),
        }

    def set_to(self, draw):
        self.alpha = draw["weights"].astype(np.float64)

    def stream(self, sampler_params):
        """Continue with fresh assignments; the statistics of the stored ones remain, unchanged."""
        if self.stored:  # Otherwise the statistics are averages already.
            self.seen = AveragedStatistics(self.alpha.size, self.seen)
        super().stream(sampler_params)
        self.weights_sampler = sampler_params["weights_sampler"]
        self.atoms.use(self.weights_sampler)
