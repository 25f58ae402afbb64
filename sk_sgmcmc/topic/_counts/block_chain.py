"""The chain over a corpus in shards: burn-in by collapsed sweeps of each, then partially collapsed Gibbs sampling."""

import time
from copy import deepcopy

import numpy as np

from ...exceptions import WorkersLostError
from ...kernels.math import dirichlet, lanes
from .collapsed_chain import CollapsedTopicChain
from .record import CountRecord
from .shard_steps import CollapsedStep, GivenTopicsStep, StartStep
from .start import learnt_topics, seed_shares, seeded_start, start_of
from .word_prior import first_word_prior

_TOPICS_AT_ONCE = 16  # drawn at a time, each such block with a stream of its own


class BlockCounts:
    """Counts of the assignments of all shards, in place of `CollapsedSweeps`.

    Parameters
    ----------
    topic_word_prior : ndarray of shape (n_words, n_topics)
    is_whole : bool
        Whether all tokens weigh 1.
    """

    def __init__(self, topic_word_prior, is_whole):
        n_words, n_topics = topic_word_prior.shape
        self.table = np.zeros((n_words, lanes.padded(n_topics)), dtype=np.int32 if is_whole else np.float64)
        self.topic_word_prior = topic_word_prior

    @property
    def counts(self):
        """Tokens of each word in each topic, (n_words, n_topics)."""
        return self.table[:, : self.topic_word_prior.shape[1]]

    @property
    def is_fast(self):
        """Whether the sweeps for whole tokens and one number as the topics' prior apply."""
        return self.topic_word_prior.strides == (0, 0) and self.table.dtype == np.int32

    def __getstate__(self):
        return {"table": self.table}

    def rejoin(self, z, topic_word_prior):
        """Share the chain's prior again, after unpickling."""
        self.topic_word_prior = topic_word_prior

    def set_topic_word_prior(self, topic_word_prior):
        """Go on with another prior, (n_words, n_topics)."""
        self.topic_word_prior = topic_word_prior


class Round:
    """A pass over all shards, in the middle of which a chain may be saved.

    Parameters
    ----------
    step : callable
        The step of a shard; see `shard_steps`.
    seed : int
    table : ndarray
        Counts, to a copy of which shards' changes are added.
    """

    def __init__(self, step, seed, table):
        self.step, self.seed = step, seed
        self.sums = table.copy()
        self.next_shard, self.statistics = 0, []

    def seed_of(self, i):
        """The seed of shard ``i``."""
        return np.random.SeedSequence([self.seed, i])


class AssignedShards:
    """All shards with their assignments, which stay where they are.

    Parameters
    ----------
    shards : LocalShards or DaskShards
    z : object
        Their assignments.
    pool : executor or None
        Threads.
    """

    def __init__(self, shards, z, pool):
        self.shards, self.z, self.pool = shards, z, pool

    def map(self, function, *args):
        """Values of ``function(shard, z, *args)``, a list in the order of the shards."""
        return self.shards.evaluate(self.z, self.pool, function, *args)


class BlockTopicChain(CollapsedTopicChain):
    """Gibbs sampler over a corpus in shards, whose assignments stay where the shards are.

    Parameters as for `TopicChain`. A step is a round over all shards. In burn-in, each is swept with its own topics
    integrated out, and the counts of the others as they were before the round. Afterwards, topics are drawn given all
    counts, then the assignments of all shards given the topics: Gibbs sampling in two blocks, which is exact.
    """

    _unpickled = ("data", "_pool", "checkpoint", "failure", "progress")
    round = checkpoint = None

    def bind(self, data):
        self.data, self.failure = data, None
        self.doc_prior.bind(data)
        self._pool = None
        if self.assignments.z is not None:  # unpickled
            self.assignments.z = data.shards.assignments(self.assignments.z)
        return self

    def restart(self, plan):
        super().restart(plan)
        self.record = CountRecord(self.assignments.seed)

    def start(self, z=None):
        data, rng, shares = self.data, self.rng, seed_shares(self.word_prior, False)
        alpha, topics, memory = self.doc_prior.start(), None, None
        if start_of(self.init, alpha.size, True) == "soft":
            first = rng.integers(alpha.size, size=data.start.words.size, dtype=np.uint16)
            if shares is not None:
                seeded_start(data.start, alpha, shares, rng, first)
            common = self.word_prior if shares is None else self.word_prior.min(axis=1)
            topics, memory = learnt_topics(data.start, alpha, float(np.mean(common)), rng, first, shares)
            if topics is not None:
                if self.doc_prior.refines:
                    topics.learn(rng.permutation(data.start.n_docs), *memory, first)
                    alpha = self.doc_prior.refine(data.start, first, alpha, self.topic_word_prior, rng)
                    topics.begin_from(first, alpha)
                topics.data = None
        if self.fits_word_prior:
            self.word_prior = first_word_prior(data.corpus.n_tokens, data.n_words, alpha.size)
        collapsed = BlockCounts(self.topic_word_prior, data.is_whole)
        z, moment, doc_prior = data.shards.assignments(), self._now(), self.doc_prior.unbound()
        learns = self.doc_prior.learns_from_round(moment)
        step = StartStep(topics, memory, alpha, shares, doc_prior, learns)
        now = Round(step, int(rng.integers(2**63)), collapsed.table)
        while now.next_shard < data.n_shards:
            data.shards.proceed(now, z, self._threads())
        self.assignments.z, collapsed.table = z, now.sums
        self.collapsed = collapsed
        if learns:
            self.doc_prior.after_round(now.statistics, moment)

    def _new_round(self, step):
        return Round(step, int(self.rng.integers(2**63)), self.collapsed.table)

    def _next_step(self):
        """The step of the next round."""
        learns, counts = self.doc_prior.learns_from_round(self._after_round()), self.collapsed
        doc_prior = self.doc_prior.unbound()
        if self.step < self.plan.n_burn and counts.is_fast:
            mass = counts.counts.sum(axis=0, dtype=np.int64)
            beta = float(self.topic_word_prior[0, 0])
            return CollapsedStep(counts.table, mass, beta, doc_prior, self._temperature(), learns)
        return GivenTopicsStep(self._drawn_topics(), doc_prior, learns)

    def _after_round(self):
        """The `Moment` at the end of the present round."""
        now = self._now()
        return now._replace(n_passes=now.n_passes + 1)

    def _drawn_topics(self):
        """Topics given all counts, float32 (n_words, n_topics), columns summing to 1."""
        topics, seed = np.empty((self.n_words, self.n_topics), dtype=np.float32), int(self.rng.integers(2**62))
        prior, counts = self.topic_word_prior, self.collapsed.counts

        def work(start):
            part = slice(start, start + _TOPICS_AT_ONCE)
            shapes = np.ascontiguousarray((prior[:, part] + counts[:, part]).T, dtype=np.float64)
            drawn = np.empty(shapes.shape, dtype=np.float32)
            dirichlet.dirichlet_rows(shapes, np.uint64(seed + start), drawn)
            topics[:, part] = drawn.T

        pool = self._threads()
        list((map if pool is None else pool.map)(work, range(0, self.n_topics, _TOPICS_AT_ONCE)))
        return topics

    def _advance(self, until):
        if not self.is_started:
            self.start()
        shards, z = self.data.shards, self.assignments.z
        try:
            if self.round is None:
                if shards.wants_checkpoint(z, self.step):
                    self._save()
                self.round = self._new_round(self._next_step())
            self._proceed(shards, z)
            if self.round.next_shard < self.data.n_shards:
                return
            self._finish_round()
            self.step += 1
            if self.plan.wants(self.step):
                self.keep(self._kept_draw())
            if self.step >= self.plan.n_iter:
                self._release()
        except WorkersLostError as lost:
            if self.checkpoint is None:
                raise
            self._go_back()
            self.failure = lost

    def _proceed(self, shards, z):
        """Process the next shards of the round, and time it."""
        began, first = time.monotonic(), self.round.next_shard
        shards.proceed(self.round, z, self._threads())
        seconds, n = time.monotonic() - began, self.round.next_shard - first
        rate = n / self.data.n_shards * self.data.corpus.n_tokens / max(seconds, 1e-6) / 1e6
        self.progress = f"shard {self.round.next_shard} of {self.data.n_shards}, {rate:.3g} million tokens/s"

    def _release(self):
        """Give back what only further rounds would need: the draws follow from counts."""
        self.doc_prior.release_shards(self._assigned())
        self.assignments, self.checkpoint = self.assignments.without_z(), None
        self.data = self.data.without_shards()
        self.doc_prior.bind(self.data)

    def _save(self):
        """Remember the present state, to which the chain returns if the workers are lost."""
        z = self.data.shards.checkpoint(self.assignments.z, self.step)
        state = {name: value for name, value in self.__getstate__().items() if name != "assignments"}
        memo = {id(value): value for value in self.kept.values()}
        self.checkpoint = deepcopy(state, memo), z

    def _go_back(self):
        """Return to the last checkpoint."""
        state, z = self.checkpoint
        self.__setstate__(deepcopy(state, {id(value): value for value in self.kept.values()}))
        self.doc_prior.bind(self.data)
        self.assignments.z = self.data.shards.assignments(z)
        self.checkpoint = None

    def _finish_round(self):
        """Take in the counts of all shards, and fit priors in burn-in."""
        now, self.round = self.round, None
        self.collapsed.table = now.sums
        moment = self._after_round()
        self.n_passes += 1
        if now.step.learns:
            self.doc_prior.after_round(now.statistics, moment)
        self.doc_prior.after_shards(self._assigned(), moment)
        if moment.burns_in:
            self._fit_word_prior(self.collapsed, self.n_passes)

    def _assigned(self):
        return AssignedShards(self.data.shards, self.assignments.z, self._threads())

    def with_topics(self, sampler):
        if self.data is not None and self.assignments.z is not None:
            self.doc_prior.release_shards(self._assigned())
        chain = super().with_topics(sampler)
        chain.assignments = chain.assignments.without_z()
        for name in ("round", "checkpoint", "failure", "progress"):  # which only a chain over shards has
            vars(chain).pop(name, None)
        return chain
