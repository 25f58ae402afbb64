"""The base class of chains of count topic models, and the collapsed Gibbs chain, which is the default of `fit`."""

import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np

from ...chains.chain import DRAW_MEMORY, Chain
from ...chains.growth import BLOCK_SWEEPS, in_window
from ...chains.minibatches import Minibatches
from ...exceptions import WorkersLostError
from .corpus import AssignedShards, Round, pieces
from .doc_counts import DocumentRecord, counted
from .document_prior import Progress
from .growth import drawn_given_counts, evenly_spaced, grown, runs_of, taken_in
from .split_merge import FEWEST_LEFT, find_lost_topics, next_search
from .start import StartStep, first_assignments
from .sweeps import GivenTopicsStep, first_temperature, temperature, tempered_sweeps

MOST_SOFT = 125  # Up to this number of topics, those of a streaming pass are a good start for sweeps.
_CHILDREN = 8  # Topics into which a start with more topics divides each topic of a streaming pass.


def coarse_number(n_topics):
    """Number of topics that a start divides into ``n_topics``."""
    return min(MOST_SOFT, -(-n_topics // _CHILDREN))


class TopicChain(Chain):
    """A chain of the topics and assignments of a count topic model.

    Parameters
    ----------
    seed : SeedSequence
    plan : DrawPlan or StreamPlan
    sampler : Sampler
        Resolved: with ``step_size_``.
    word_prior : WordPrior
    doc_prior : DocumentPrior
    init : {"soft", "random"}
        Whether first assignments come from a streaming pass of EM or are random.

    Attributes
    ----------
    z : ndarray of uint16, RemoteAssignments or None
        The stored assignments. None before the start, and if assignments are drawn from scratch in each minibatch.
    collapsed : object
        Counts of the stored assignments while topics are integrated out (see `sweeps`); otherwise None.
    """

    has_topics = False  # Whether topics are part of the state, or will be after collapsed sweeps.
    _unpickled = ("data", "_pool")
    _pool = None
    topics = mean = None
    has_mean = False  # Whether all draws that results use are averaged in ``mean``.
    doc_record = None  # The `DocumentRecord`, if documents' topic counts are wanted and stored assignments show them.

    def __init__(self, seed, plan, sampler, word_prior, doc_prior, *, init="soft"):
        super().__init__(seed, plan)
        self.first_sampler, self.word_prior, self.doc_prior, self.init = sampler, word_prior, doc_prior, init
        self.assignment_seed = int(self.rng.integers(2**62))
        self.z = self.collapsed = None
        self.next_doc = self.n_passes = 0
        self.batches = Minibatches(seed)
        self.restart(plan)

    @property
    def sampler(self):
        """The sampler of the topics."""
        return self.first_sampler if self.topics is None else self.topics.sampler

    @property
    def n_topics(self):
        """Number of topics."""
        return self.doc_prior.alpha.size

    @property
    def n_words(self):
        """Number of words."""
        return self.word_prior.n_words

    @property
    def doc_topic_prior(self):
        """Dirichlet parameter of the documents' prior, (n_topics,); a typical value if it differs between documents."""
        return self.doc_prior.alpha

    @property
    def document_priors(self):
        """The document priors in the state, a list: one, or one per particle."""
        return [self.doc_prior]

    @property
    def topic_groups(self):
        """A group number for each topic, (n_topics,): topics of one group are exchangeable under the posterior."""
        return self.word_prior.exchangeable_groups(self.doc_prior.exchangeable_groups())

    @property
    def is_started(self):
        """Whether the chain has a state yet."""
        return self.topics is not None or self.collapsed is not None

    def __getstate__(self):
        finished = self.step >= self.plan.n_iter and self.data is not None and self.z is not None
        return {
            **super().__getstate__(),
            "doc_prior": self.doc_prior.for_pickle(self._assigned() if finished else None),
        }

    def __setstate__(self, state):
        super().__setstate__(state)
        if self.collapsed is not None:
            self.word_prior.rejoin(self.collapsed, self.z)

    def bind(self, data):
        self.data, self._pool = data, None
        return self

    def _threads(self):
        """The chain's thread pool; None for a single thread."""
        if self._pool is None and self.data is not None and self.data.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.data.n_threads)
        return self._pool

    def _assigned(self):
        return AssignedShards(self.data.shards, self.z, self._threads(), self.collapsed)

    def _progress(self, **more):
        """The `Progress` of the chain; ``more`` sets further fields."""
        forgotten = -np.expm1(-float(self._hyper()[0]))
        return Progress(self.step, self.plan.n_burn, self.n_passes, self.rng, self.assignment_seed, forgotten, **more)

    def _hyper(self):
        return np.minimum(self.sampler._hyper(self.step, self.step + 1)[0], 1e300)

    # -- start -----------------------------------------------------------------------------------------------------

    def _first_assignments(self, init, is_normal=False, n_coarse=None):
        """Set the priors' first values, and assign the tokens of ``data.start``.

        Returns the assignments, and the `SoftTopics` learnt from these documents, or None.
        """
        self.doc_prior.start()
        self.word_prior.start()
        corpus, priors = self.data, (self.doc_prior, self.word_prior)
        z, topics = first_assignments(corpus, *priors, init, is_normal, self.rng, self._threads(), n_coarse)
        if self.doc_prior.refines_start and self.init != "random":
            if corpus.starts_with_all:
                self.doc_prior.refine(corpus.start, z, self.word_prior.table(), self.rng)
            elif topics is not None and n_coarse is None:
                self._refine_sample(z, topics)
        return z, topics

    def _refine_sample(self, z, topics):
        """Let the document prior improve the assignments of a sample, and restart the topics from them."""
        sample = self.data.start
        topics.learn(self.rng.permutation(sample.n_docs), z=z)
        self.doc_prior.refine(sample, z, self.word_prior.table(), self.rng)
        topics.begin_from(z, *self.doc_prior.table(sample))

    def _after_pass(self, progress):
        """Update the priors after a collapsed pass over all documents."""
        self.doc_prior.update(self._assigned(), progress)
        self.word_prior.follow(self.collapsed, progress)

    # -- draws -----------------------------------------------------------------------------------------------------

    def _record_documents(self):
        """Begin to record the topic counts of documents at kept draws, if the document prior wants them."""
        self.doc_record = DocumentRecord() if self.doc_prior.records_documents else None

    def keep(self, draw):
        super().keep(draw)
        if self.doc_record is not None and self.z is not None and self.kept_steps[-1:] == [self.step]:
            self.doc_record.most_bytes = DRAW_MEMORY // self.data.n_chains
            self.doc_record.offer(self.step, lambda: self._assigned().map(counted, self.n_topics))

    def keep_only(self, staying):
        super().keep_only(staying)
        if self.doc_record is not None:
            self.doc_record.keep_only(self.kept_steps)

    def _as_draw(self, topics):
        """The state as a draw; this brings all words of ``topics`` up to date."""
        if topics is None:
            components = self.word_prior.drawn(self.collapsed.counts, self.rng)
        else:
            components = self._up_to_date(topics)
        return {"components": np.ascontiguousarray(components.T, dtype=np.float32), **self.doc_prior.draw()}

    def current(self):
        self._ensure_started()
        return self.snapshot()._as_draw(None if self.topics is None else self.topics.copy())

    def present_topics(self):
        """Posterior mean of the topics given the present assignments, (n_words, n_topics)."""
        self._ensure_started()
        return self.word_prior.mean(self.collapsed.counts)

    def spread(self):
        """The spread of particles (see `ParticleTopicChain.spread`); None, since this chain has no particles."""
        return None


class CollapsedChain(TopicChain):
    """Collapsed Gibbs sampler over shards, whose step is a pass over all documents.

    Parameters are those of `TopicChain`. The chain keeps the counts of the assignments, from which topics are drawn on
    demand.

    In the first half of burn-in, if there are several shards, each is swept with the counts that the others had before
    the pass. These passes are in parallel, and approximate: tokens of a word in different shards do not agree on a
    topic as often as they should, so priors fitted to their counts would be wrong. Later passes are exact. Documents in
    memory are swept one after the other, or by parts of the vocabulary if the corpus is large. For shards that are not
    in memory, topics are drawn given all counts, and then the assignments of all shards given the topics. This is
    two-block Gibbs sampling.
    """

    _unpickled = ("data", "_pool", "checkpoint", "failure", "progress")
    stored = True
    round = checkpoint = None
    hottest = None  # The temperature of the first sweep, when it is known.
    next_search = 0  # The step after which lost topics are searched for, or a later one, when no sweep is tempered.

    def bind(self, data):
        super().bind(data)
        self.failure = None
        if self.z is not None:  # The chain was unpickled, or is bound to other shards.
            self.z = data.shards.assignments(self.z)
            if self.collapsed is not None:
                self.word_prior.rejoin(self.collapsed, self.z)
        return self

    def restart(self, plan):
        super().restart(plan)
        self.record, self.kept_docs = (
            self.word_prior.record(self.assignment_seed),
            [],
        )  # Documents with which draws were made.
        self._record_documents()

    def _ensure_started(self):
        if not self.is_started:
            self.start()

    def start(self):
        """Draw first assignments, and count them."""
        corpus = self.data
        # With many topics, a streaming pass takes long and finds too narrow topics, which hundreds of sweeps do not
        # leave. Sweeps that begin with a few topics, each divided at random, are better and soon level with the former.
        # They need no tempering, since they choose the narrow topics themselves.
        is_hard = self.n_topics > MOST_SOFT and self.plan.n_burn >= 1
        n_coarse = coarse_number(self.n_topics) if is_hard else None
        init = "random" if self.word_prior.starts_at_random else self.init
        z, topics = self._first_assignments(init, n_coarse=n_coarse)
        if n_coarse and topics is not None:
            self.hottest = 1.0
        self.word_prior.begin(corpus.start.total if corpus.shards.is_in_memory else corpus.n_tokens)
        if corpus.shards.is_in_memory:
            self.z = z
            self.collapsed = self.word_prior.sweeps(corpus.documents, z, self.doc_prior)
        else:
            self.record = self.word_prior.count_record(self.assignment_seed)
            topics = None if topics is None else topics.without_documents()
            self.z = corpus.shards.assignments()
            self.collapsed = self.word_prior.shard_counts(corpus.is_whole)
            shares, n_groups = self.word_prior.seed_shares(), self.word_prior.n_groups
            now = self._new_round(StartStep(topics, shares, deepcopy(self.doc_prior), n_groups, n_coarse))
            while now.next_shard < corpus.shards.n_shards:
                corpus.shards.proceed(now, self.z, self._threads())
            self.collapsed.take(now.sums)
        self.doc_prior.update(self._assigned(), self._progress(is_start=True))

    def _new_round(self, step):
        return Round(step, int(self.rng.integers(2**63)), self.collapsed.table)

    # -- more documents --------------------------------------------------------------------------------------------

    def append(self, data, is_new, word_prior, plan):
        """Continue over a corpus to which documents were appended, and draw the topics of these by a few sweeps.

        Kept draws stay if they were made with most of the present documents, and take in the new ones.

        Parameters
        ----------
        data : TokenCorpus
            In memory.
        is_new : ndarray of bool, shape (n_docs,)
            Which documents were appended; the others are those so far, in the same order.
        word_prior : float or ndarray
            As for `WordPrior`; of new words, if the prior is not fitted.
        plan : GrowthPlan
        """
        documents = data.documents
        if data.n_words > self.n_words:
            counts = np.zeros((data.n_words, self.n_topics))
            counts[: self.n_words] = self.collapsed.counts
            self.word_prior = self.word_prior.extended(word_prior, data.n_words)
        else:
            counts = self.collapsed.counts
        lengths = np.diff(documents.token_ptr)
        words = documents.words[np.repeat(is_new, lengths)]
        found = drawn_given_counts(words, self.word_prior.shapes(counts), self.doc_prior.alpha, self.rng)
        self.z = grown(self.z, is_new, lengths, found)
        last = self.record.last
        self.record.extend(data.n_words, None if last is None else grown(last, is_new, lengths, found))
        super().bind(data)
        self.doc_prior.append(is_new)
        self.collapsed = self.word_prior.sweeps(documents, self.z, self.doc_prior)
        priors = self.doc_prior.sweep_priors(documents)
        for _ in range(BLOCK_SWEEPS):
            for start, stop in runs_of(is_new):
                self.collapsed.sweep(documents, start, stop, *priors, self.rng)
        self.plan, self.hottest, self.next_doc, self.round = plan, None, 0, None
        self.keep_only(in_window(self.kept_docs, documents.n_docs, plan.n_draws))
        of_new = np.repeat(is_new, lengths)
        weights = documents.weights[of_new] if documents.weights.size else documents.weights
        self.record.take_in(words, self.z[of_new], weights)
        return self

    def keep(self, draw):
        super().keep(draw)
        self.kept_docs.append(0 if self.data is None else self.data.n_docs)
        recent = self.plan.recent(self.kept_docs)
        if len(recent) < self.n_kept:
            self.keep_only(recent)

    def keep_only(self, staying):
        self.kept_docs = [self.kept_docs[i] for i in staying]
        self.record.keep_only(staying)
        super().keep_only(staying)

    def take_in(self, data, word_prior, plan):
        """Let kept draws take in a block by themselves, whose documents and assignments are not kept.

        Parameters are as for `append`; ``data`` contains the block alone. At most `TAKING_IN` draws stay.
        """
        documents, n_words = data.documents, data.n_words
        if n_words > self.n_words:
            self.word_prior = self.word_prior.extended(word_prior, n_words)
        self.plan, self.doc_record = plan, None  # It would lack the documents of the block.
        if self.n_kept == 0:  # The fit ended in burn-in.
            self.record.add(self.step, self.collapsed.counts, self.z, lambda: self.topic_groups)
            self.keep(self.doc_prior.draw())
        self.keep_only(evenly_spaced(self.n_kept))
        table = self.word_prior.table()
        for s in range(self.n_kept):
            priors, alpha = self.doc_prior.in_draw({name: value[s] for name, value in self.kept.items()}, documents)
            make = self.doc_prior.block_sweeps
            self.record.counts[s] = taken_in(self.record.counts[s], documents, table, priors, alpha, make, self.rng)
        self.record.extend(n_words, None)
        return self.forget().bind(data)

    def forget(self):
        """Drop documents and their assignments; the counts of the latest draw remain as the present state."""
        if self.data is not None and self.z is not None:
            self.doc_prior.release(self._assigned())
        counts = self.collapsed.counts if self.n_kept == 0 else self.record.counts[-1].by_topic().T
        self.collapsed = self.word_prior.shard_counts(is_whole=False)
        self.collapsed.table[: len(counts), : self.n_topics] = counts
        self.z = self.data = self.doc_record = None
        return self

    # -- passes ----------------------------------------------------------------------------------------------------

    def _advance(self, until):
        self._ensure_started()
        shards = self.data.shards
        try:
            if self.round is None and self.next_doc == 0:
                if shards.wants_checkpoint(self.z, self.step):
                    self._save()
                if self.doc_prior.wants_new_sweeps:
                    self.collapsed = self.word_prior.sweeps(self.data.documents, self.z, self.doc_prior)
                self.collapsed.temperature = self._temperature()
                self.round = self._next_round()
            if not self._proceed(shards):
                return
            self._finish_pass()
        except WorkersLostError as lost:
            if self.checkpoint is None:
                raise
            self._return_to_checkpoint()
            self.failure = lost

    def _next_round(self):
        """The `Round` for the next pass; None if documents are swept in memory, without a round."""
        shards, collapsed = self.data.shards, self.collapsed
        has_rounds = collapsed.is_fast and (shards.n_shards > 1 or not shards.is_in_memory)
        if has_rounds and (self._progress().may_approximate or collapsed.temperature > 1.0):
            return self._new_round(collapsed.step(deepcopy(self.doc_prior)))
        if shards.is_in_memory:
            return None
        topics = self.word_prior.topics_of_pass(collapsed, self.rng, self._threads())
        return self._new_round(GivenTopicsStep(topics, deepcopy(self.doc_prior)))

    def _proceed(self, shards):
        """Make a part of a pass, and return whether the pass is complete.

        A part is short, so that Ctrl-C can be handled between two parts.
        """
        if self.round is not None:
            began, first = time.monotonic(), self.round.next_shard
            shards.proceed(self.round, self.z, self._threads())
            seconds, n = time.monotonic() - began, self.round.next_shard - first
            rate = n / shards.n_shards * self.data.n_tokens / max(seconds, 1e-6) / 1e6
            if not shards.is_in_memory:
                self.progress = f"shard {self.round.next_shard} of {shards.n_shards}, {rate:.3g} million tokens/s"
            return self.round.next_shard == shards.n_shards
        documents, collapsed = self.data.documents, self.collapsed
        prior, group = self.doc_prior.sweep_priors(documents)
        if self.next_doc == 0 and collapsed.temperature == 1.0 and collapsed.n_parts(documents) > 1:
            collapsed.sweep_parts(documents, prior, group, self.rng, self._threads())
            return True
        stop = self.next_doc + next(pieces(documents.token_ptr[self.next_doc :]), (0, 0))[1]
        collapsed.sweep(documents, self.next_doc, stop, prior, group, self.rng)
        self.next_doc = stop % max(1, documents.n_docs)
        return self.next_doc == 0

    def _finish_pass(self):
        """Take over the counts of all shards, update priors, and keep a draw."""
        if self.round is not None:
            self.collapsed.take(self.round.sums)
            self.round = None
        self.n_passes += 1
        self._after_pass(self._progress())
        self.step += 1
        if self._wants_search():
            self._search()
        if self.plan.wants(self.step) and self.make_room():
            self.keep(self._kept_draw())
        if self.step >= self.plan.n_iter and not self.data.shards.is_in_memory:
            self._release()

    def _wants_search(self):
        """Whether to search for lost topics now: between the tempered sweeps of a fit and the end of burn-in."""
        n_burn, are_few = self.plan.n_burn, 3 <= self.n_topics <= MOST_SOFT
        if self.plan.streams or not are_few:  # Updates of a fit keep its topics.
            return False
        if not (self.data.shards.is_in_memory and self.collapsed.is_fast):
            return False
        return max(self.next_search, tempered_sweeps(n_burn)) <= self.step <= n_burn - FEWEST_LEFT

    def _search(self):
        """Search for lost topics (see `split_merge`)."""
        documents, collapsed = self.data.documents, self.collapsed
        priors, groups = self.doc_prior.sweep_priors(documents), self.topic_groups
        n_made = find_lost_topics(documents, self.z, collapsed.counts, *priors, collapsed.beta, groups, self.rng)
        self.next_search = next_search(self.step, n_made)
        if n_made:
            self.collapsed = self.word_prior.sweeps(documents, self.z, self.doc_prior)

    def _temperature(self):
        """Temperature of the next pass: above 1 early in burn-in only."""
        if self.hottest is None:
            self.hottest = self._first_temperature()
        first = self.plan.first_step
        return temperature(self.hottest, self.step - first, self.plan.n_burn - first)

    def _first_temperature(self):
        """The temperature of the first pass; 1 without burn-in, or if the prior or the sweeps allow no tempering."""
        tempers = self.plan.n_burn > 0 and self.plan.hottest > 1.0 and self.doc_prior.allows_tempering
        if not tempers or not self.collapsed.is_fast:
            return 1.0
        return min(self.plan.hottest, first_temperature(self.data.start, self.n_topics))

    # -- shards elsewhere --------------------------------------------------------------------------------------------

    def _release(self):
        """Release the assignments and shards, which only further passes need: draws are made from counts."""
        self.doc_prior.release(self._assigned())
        self.z = self.checkpoint = None
        self.data = self.data.without_shards()

    def _save(self):
        """Save the present state, to which the chain rolls back if workers are lost."""
        z = self.data.shards.checkpoint(self.z, self.step)
        state = {name: value for name, value in self.__getstate__().items() if name != "z"}
        memo = {id(value): value for value in self.kept.values()}
        self.checkpoint = deepcopy(state, memo), z

    def _return_to_checkpoint(self):
        state, z = self.checkpoint
        self.z = None
        self.__setstate__(deepcopy(state, {id(value): value for value in self.kept.values()}))
        self.z = self.data.shards.assignments(z)
        self.checkpoint = None

    # -- draws -----------------------------------------------------------------------------------------------------

    def _kept_draw(self):
        """Record the counts, from which topics are drawn on demand, and return the draw of the document prior."""
        counts = self.collapsed.counts
        self.record.add(self.step, counts, self.z, lambda: self.topic_groups, self.word_prior.state(counts))
        return self.doc_prior.draw()

    def draws(self):
        """Kept draws, with topics made from the record."""
        if self.n_kept == 0:
            return super().draws()
        topics = [self.record.draw(s, self.word_prior.value) for s in range(self.n_kept)]
        return {"components": np.stack(topics), **super().draws()}
