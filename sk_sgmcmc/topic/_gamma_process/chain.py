"""Chains of the gamma process topic model: those of LDA, with documents' prior moved between two of their steps."""

import numpy as np
from scipy.special import gammaln

from ...kernels.models.lda import in_use
from .._counts.chain import TopicChain
from .._counts.collapsed import CollapsedSweeps
from .._counts.gibbs import GibbsTopicChain
from .._counts.start import pieces
from .atoms import Atoms, MovingAtoms
from .statistics import AveragedStatistics, StoredStatistics, lengths_of

_START_MASS = 5.0  # sum of the documents' prior at the start
_START_WEIGHT = 0.1  # most of one topic's
_JOIN_PASSES = (5, 10, 15, 20, 25, 30, 40, 50)  # of burn-in after which topics may be joined
_ALIKE = 0.3  # Bhattacharyya coefficient of topics that are compared
_START_SWEEPS = 12  # over the documents that a chain starts from
_START_UPDATES = 10  # of the weights by conditionals, from where they begin


class SweepsInUse(CollapsedSweeps):
    """Collapsed sweeps whose cost follows the topics that hold tokens; exact at every sweep."""

    def __init__(self, data, z, topic_word_prior):
        super().__init__(data, z, topic_word_prior)
        self.is_fast = False
        self.counts = np.asarray(self.counts, dtype=np.float64)
        self.mass = self.counts.sum(axis=0)

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, which have one prior (1, n_topics)."""
        beta = np.ascontiguousarray(self.topic_word_prior[:, 0])
        in_use.sweep_in_use(
            start, stop, data.token_ptr, data.words, data.weights, self.z, self.counts, self.mass, beta,
            float(beta.sum()), doc_topic_prior[0], rng,
        )  # fmt: skip

    def join(self, data, doc_topic_prior, tried):
        """Make one of two topics where the assignments are better explained so: a move for burn-in, not a draw.

        Pairs of the most alike are compared: evidence is estimated by the joint probability and the entropy of the
        choice between the two for each token.

        Parameters
        ----------
        data : TokenData
        doc_topic_prior : ndarray of shape (n_topics,)
        tried : set of pairs
            Not to be compared again; grows.

        Returns
        -------
        joined : list of pairs (topic kept, topic left empty)
        """
        beta = np.ascontiguousarray(self.topic_word_prior[:, 0])
        used = np.flatnonzero(self.mass > 0)
        roots = np.sqrt((self.counts[:, used] + beta[:, None]) / (self.mass[used] + beta.sum()))
        alike = np.triu(roots.T @ roots, 1)
        partner = np.full(self.mass.size, -1)
        pairs = np.argwhere(alike > _ALIKE)
        for j, k in used[pairs[np.argsort(-alike[tuple(pairs.T)], kind="stable")]]:
            if partner[j] < 0 and partner[k] < 0 and (j, k) not in tried:
                partner[j], partner[k] = k, j
        first = np.flatnonzero(partner > np.arange(partner.size))
        if not first.size:
            return []
        gains = np.zeros(self.mass.size)
        in_use.pair_gains(
            data.token_ptr, data.words, data.weights, self.z, partner, self.counts, self.mass, beta, float(beta.sum()),
            doc_topic_prior, gains,
        )  # fmt: skip

        def log_evidence(counts):
            """Of words given their topics, up to terms that a topic without tokens has too."""
            cells = gammaln(counts + beta[:, None]) - gammaln(beta)[:, None]
            return cells.sum(axis=0) + gammaln(beta.sum()) - gammaln(counts.sum(axis=0) + beta.sum())

        joined = []
        own, other = self.counts[:, first], self.counts[:, partner[first]]
        gains = gains[first] + log_evidence(own) + log_evidence(other) - log_evidence(own + other)
        for j, gain in zip(first.tolist(), gains, strict=True):
            k = int(partner[j])
            if gain > 0.0:
                tried.add((j, k))
                continue
            self.z[self.z == k] = j
            self.counts[:, j] += self.counts[:, k]
            self.counts[:, k] = 0.0
            joined.append((j, k))
        self.mass = self.counts.sum(axis=0)
        return joined


class GammaProcessChain(TopicChain):
    """Topics and assignments as in `TopicChain`; weights of topics from what assignments say of them.

    Weights see the documents through two statistics (`sk_sgmcmc.kernels.models.gamma_process`). With stored
    assignments these are of all documents, always up to date. With fresh ones they are averages over minibatches,
    forgotten as fast as the topics are.

    Parameters
    ----------
    seed, plan, sampler, word_prior, n_words, doc_topic_prior
        As for `TopicChain`.
    process : ProcessPrior
    weights_sampler : Sampler
        Resolved. On flat space, or one whose weights come from their conditionals.
    moves_flat : bool
        Whether it is on flat space.
    n_inner : int
        Steps of a sampler on flat space for each step of the chain.
    **kwargs
        As for `TopicChain`.
    """

    _sweeps = SweepsInUse

    def __init__(
        self, seed, plan, sampler, word_prior, n_words, doc_topic_prior, *, process, weights_sampler, moves_flat,
        n_inner, **kwargs
    ):  # fmt: skip
        super().__init__(seed, plan, sampler, word_prior, n_words, doc_topic_prior, **kwargs)
        weight = float(doc_topic_prior[0])
        self.weights_sampler = weights_sampler
        flat_arguments = (weights_sampler, n_inner, plan.n_burn)
        self.atoms = MovingAtoms(process, weight, *flat_arguments) if moves_flat else Atoms(process, weight)
        self.start_prior = np.array(doc_topic_prior)
        self.seen = None
        self.tried, self.just_joined = set(), False

    # -- start -----------------------------------------------------------------------------------------------------

    _unpickled = (*TopicChain._unpickled, "_lengths")

    def bind(self, data):
        self._lengths = lengths_of(data)
        if self.seen is None:
            self.seen = StoredStatistics(data, self.n_topics) if self.stored else AveragedStatistics(self.n_topics)
        return super().bind(data)

    def _start(self, z=None):
        self.doc_topic_prior = self.start_prior.copy()
        z = super()._start(z)
        if self.stored:
            self.seen.read_all(self.data, z, self.atoms, self.rng)
            for _ in range(_START_UPDATES):
                Atoms.move(self.atoms, *self.seen.values(None), self.rng)
        self.doc_topic_prior = self.atoms.weights
        return z

    def _start_from(self, data, z, doc_prior):
        """As for `TopicChain`, after a few collapsed sweeps that join topics, unless the start is to be random."""
        if self.init == "random":
            super()._start_from(data, z, doc_prior)
            return
        seen = self.seen if self.stored else StoredStatistics(data, self.n_topics)
        collapsed, tried = SweepsInUse(data, z, self.topic_word_prior), set()
        for i in range(_START_SWEEPS):
            for start, stop in pieces(data.token_ptr):
                collapsed.sweep(data, start, stop, doc_prior[None], data.group, self.rng)
            if i % 2 == 1 and i < _START_SWEEPS - 2:
                for joined in collapsed.join(data, doc_prior, tried):
                    self.atoms.join(*joined)
            seen.read_all(data, z, self.atoms, self.rng)
            Atoms.move(self.atoms, *seen.values(None), self.rng)
            doc_prior = self.atoms.weights
        if not self.stored:
            self.seen.begin(seen)
        super()._start_from(data, z, doc_prior)

    def _reorder(self, order):
        super()._reorder(order)
        self.atoms.renumber(order)
        self.seen.renumber(order)

    def _has_like_topics(self):
        return True

    # -- steps -----------------------------------------------------------------------------------------------------

    def _assign(self, docs, *args):
        if self.stored:
            self.seen.count(self.data, self.z, docs, -1.0)
        return super()._assign(docs, *args)

    def _end_minibatch(self, docs, doc_counts):
        """The weights after a step: statistics of its documents, and a move."""
        if self.stored:
            self.seen.count(self.data, self.z, docs, 1.0)
            self.seen.redraw(docs, self.atoms, self.rng)
        else:
            share = -np.expm1(-float(self._hyper()[0]))
            self.seen.remember(docs, doc_counts[-1], self._lengths, share, self.atoms, self.rng)
        self._move_atoms()

    def _move_atoms(self):
        decay = 0.0
        if self.stored and self.weights_sampler._waits:
            decay = np.exp(-self.weights_sampler._hyper(self.step, self.step + 1)[0, 0])
        if self.step >= self.plan.n_burn:
            self.atoms.settle()
        self.atoms.move(*self.seen.values(self.data.total_samples), self.rng, decay)
        self.doc_topic_prior = self.atoms.weights

    def _warm_step(self):
        """As for `TopicChain`, and the weights after it."""
        data = self.data
        docs = (self.next_doc + np.arange(min(data.n_batch, data.n_docs))) % data.n_docs
        self.seen.count(data, self.z, docs, -1.0)
        self.just_joined = False
        super()._warm_step()
        if self.just_joined:
            self.seen.read_all(data, self.z, self.atoms, self.rng)
        else:
            self.seen.count(data, self.z, docs, 1.0)
            self.seen.redraw(docs, self.atoms, self.rng)
        self._move_atoms()

    def _end_pass(self):
        """After a pass of collapsed sweeps: now and then, join topics."""
        if self.n_passes not in _JOIN_PASSES or self.step >= 0.8 * self.plan.n_burn:
            return
        if self.n_passes % 10 == 0:
            self.tried = set()
        for kept, left in self.collapsed.join(self.data, self.doc_topic_prior, self.tried):
            self.atoms.join(kept, left)
            self.just_joined = True

    def start_streaming(self, sampler, plan, n_sweeps, weights_sampler):
        """As for `TopicChain`; statistics of the stored assignments stay as they are."""
        if not self.is_started:
            self._start()
        was_stored = self.stored
        super().start_streaming(sampler, plan, n_sweeps)
        if was_stored:  # else they are averages already, and go on
            self.seen = AveragedStatistics(self.n_topics, self.seen)
        self.take_sampler(sampler, n_sweeps, weights_sampler)

    def take_sampler(self, sampler, n_sweeps, weights_sampler):
        """As for `TopicChain`, and the same for the sampler of the weights."""
        super().take_sampler(sampler, n_sweeps)
        self.weights_sampler = weights_sampler
        if isinstance(self.atoms, MovingAtoms):
            self.atoms.sampler, self.atoms.is_settled = weights_sampler, False

    # -- draws -----------------------------------------------------------------------------------------------------

    def _public(self, topics):
        atoms = self.atoms
        return {
            **super()._public(topics),
            "weights": atoms.weights,
            "concentration": np.float64(atoms.concentration),
            "rate": np.float64(atoms.rate),
        }


class GammaProcessGibbsChain(GammaProcessChain, GibbsTopicChain):
    """Collapsed sweeps over all documents, and the weights after each."""

    _with_topics = GammaProcessChain

    def _end_pass(self):
        super()._end_pass()
        self.seen.read_all(self.data, self.z, self.atoms, self.rng)
        self._move_atoms()
