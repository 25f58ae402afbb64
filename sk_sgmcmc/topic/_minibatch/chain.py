"""The chain of minibatch samplers: the state contains the topics, and Gibbs sweeps draw the assignments."""

import numpy as np

from ...chains.chain import ENOUGH_DRAWS
from ...chains.convergence import evenly
from ...chains.minibatches import every_row, whole
from ...kernels.models.lda import assignments
from ...kernels.samplers import simplex
from .._counts.chain import MOST_SOFT, TopicChain
from .._counts.corpus import AssignedShards, OneShard, Round, number_of_shards
from .._counts.document_prior import Batch
from .._counts.growth import drawn_given_counts
from .._counts.record import TopicRecord
from .._counts.sweeps import sweeps_of
from .._counts.vocabulary import with_new_words
from .simplex_topics import LazyTopics, MeanTopics, in_parts, shapes_of
from .softmax_topics import MovedTopics
from .updates import Swept, pending_restart, restart_of, swept

_GROWN = 1.5  # Growth of a stream, in documents, after which topics on flat space are rescaled.
# Fewest documents per thread, so that the cost of starting a task is negligible.
_MIN_DOCS_PER_THREAD = 32


class MinibatchSweeps:
    """Gibbs sweeps over a minibatch of documents, given the topics.

    Parameters
    ----------
    stored : bool
        Whether the assignment of every token is stored, in two bytes; otherwise they are drawn from scratch.
    n_sweeps : tuple of int
        Numbers of Gibbs sweeps over a minibatch to discard, and to average over.
    seed : int
        A document's random numbers depend on the seed, the step and the document, not on the thread.
    """

    _unpickled = ("data", "n_threads", "_row", "_words")

    def __init__(self, stored, n_sweeps, seed):
        self.stored = stored
        self.n_sweeps = n_sweeps
        self.seed = seed

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in self._unpickled}

    def bind(self, data, n_threads):
        """Bind to the documents, a `Shard`, at the start and again after unpickling."""
        self.data, self.n_threads = data, n_threads
        self._row = np.full(data.n_words, -1, dtype=np.int32)  # Index of each word among those of the minibatch.
        self._words = np.empty(data.n_words, dtype=np.int64)

    def unbind(self):
        """Drop the documents."""
        for name in self._unpickled:
            vars(self).pop(name, None)

    def words_of(self, docs):
        """Words that occur in documents ``docs``, (n_rows,); call it before each `draw`."""
        data = self.data
        return self._words[: assignments.find_active(docs, data.token_ptr, data.words, self._row, self._words)].copy()

    def draw(self, docs, words, cells, total, prior, group, step, z, *, pool=None, every_draw=False):
        """Make Gibbs sweeps over documents given the topics.

        Parameters
        ----------
        docs, words : ndarray
            Documents, and their words from `words_of`.
        cells, total : ndarray
            Unnormalised topics, (n_words, n_topics), of which only the rows ``words`` are read; their sums over words.
        prior, group : ndarray
            As from `DocumentPrior.table`.
        step : int
            The chain's step.
        z : ndarray of uint16, shape (n_tokens,), or None
            The stored assignments, changed in place; None if assignments are drawn from scratch.
        pool : executor or None
            Threads.
        every_draw : bool
            Whether ``doc_counts`` covers each of the averaged sweeps, or only the last one.

        Returns
        -------
        counts : ndarray of shape (n_rows, n_topics)
            Counts of words, summed over the averaged sweeps; for stored assignments, the change of these counts.
        doc_counts : ndarray of shape (n_draws, n_docs, n_topics)
            Counts of topics in each document.
        """
        phi, prior_blocks = self._tables(words, cells, total, prior, pool)
        n_draws = self.n_sweeps[1] if every_draw and not self.stored else 1
        doc_counts = np.empty((n_draws, docs.size, prior.shape[1]))
        counts = self._sweep(docs, phi, prior_blocks, prior, group, np.uint64(self.seed + step), z, doc_counts, pool)
        assignments.clear_active(words, self._row)
        return counts, doc_counts

    @staticmethod
    def _tables(words, cells, total, prior, pool):
        phi = np.empty((words.size, prior.shape[1]), dtype=np.float32)
        prior_blocks = np.empty((words.size, -(-prior.shape[1] // assignments.BLOCK) + 1), dtype=np.float32)

        def work(_, start, stop):
            part = slice(start, stop)
            assignments.topic_tables(cells, words[part], total, prior, phi[part], prior_blocks[part])

        in_parts(work, *phi.shape, pool)
        return phi, prior_blocks

    def _sweep(self, docs, phi, prior_blocks, prior, group, seed, z, doc_counts, pool):
        data, sweep = self.data, assignments.draw_assignments.compiled
        z = z if self.stored else np.empty(data.words.size, dtype=np.uint16)

        def work(start, stop):
            counts = np.zeros(phi.shape)
            blocks, made_for = prior_blocks, np.full(len(phi) if len(prior) > 1 else 0, -1, dtype=np.int32)
            if made_for.size:
                blocks = np.empty_like(prior_blocks)
            sweep(
                start, stop, docs, data.token_ptr, data.words, data.weights, self._row, phi, blocks, made_for, prior,
                group, seed, int(self.stored), *self.n_sweeps, z, counts, doc_counts,
            )  # fmt: skip
            return counts

        n_threads = min(self.n_threads, docs.size // _MIN_DOCS_PER_THREAD)
        if n_threads <= 1:
            return work(0, docs.size)
        # Cut by tokens, not by documents, so that threads finish together.
        tokens = np.cumsum(data.token_ptr[docs + 1] - data.token_ptr[docs])
        cuts = np.searchsorted(tokens, tokens[-1] * np.arange(1, n_threads) / n_threads)
        cuts = [0, *cuts.tolist(), docs.size]
        first, *others = pool.map(work, cuts[:-1], cuts[1:])
        for part in others:
            first += part
        return first


class MinibatchChain(TopicChain):
    """A chain of topics under a minibatch sampler, on the simplex or on flat space.

    A run calls `start`, then `warm_step` for each of the first ``n_warm`` steps, then `start_topics`, and then
    `one_step` with each `next_batch`. `_advance` makes these calls for a single chain, and `ParticleTopicChain` for its
    particles.

    Parameters
    ----------
    seed, plan, sampler, word_prior, doc_prior, init
        As for `TopicChain`.
    stored : bool
        Whether the assignment of every token is stored, in two bytes. The shape of a topic is then the prior plus the
        counts of all assignments, without the factor N/n. Otherwise assignments are drawn from scratch in each
        minibatch, and their counts are scaled by N/n.
    n_sweeps : tuple of int
        Numbers of Gibbs sweeps over a minibatch to discard, and to average over.
    n_warm : int
        Number of steps at the start of burn-in that are collapsed Gibbs sweeps, if assignments are stored.
    flat : dict or None
        Arguments of `SoftmaxTopics`, for samplers on flat space; None for samplers on the simplex.
    """

    has_topics = True
    restart_due = swept = None  # The `Restart` due before the next step; the `Swept` of the last such start.
    counts = None  # Counts of the stored assignments, after topics have become part of the state.

    def __init__(
        self, seed, plan, sampler, word_prior, doc_prior, *, init="soft", stored=True, n_sweeps=(0, 1), n_warm=0,
        flat=None,
    ):  # fmt: skip
        self.stored, self.flat = stored, flat
        super().__init__(seed, plan, sampler, word_prior, doc_prior, init=init)
        self.n_warm = n_warm if stored else 0
        self.minibatch = MinibatchSweeps(stored, n_sweeps, self.assignment_seed)

    def bind(self, data):
        super().bind(data)
        self.minibatch.bind(data.documents, data.n_threads)
        return self

    def restart(self, plan):
        super().restart(plan)
        self.record = self.doc_record = None
        if self.stored and self.flat is None:
            self.record = TopicRecord(self.assignment_seed)
            self._record_documents()

    def _progress(self, hyper=None, **more):
        """As `TopicChain._progress`; ``hyper`` are the step size and further numbers of the sampler, if computed."""
        more = {"n_warm": self.n_warm or np.inf, "is_collapsed": self.collapsed is not None, **more}
        progress = super()._progress(in_batches=True, **more)
        return progress if hyper is None else progress._replace(forgotten=-np.expm1(-float(hyper[0])))

    # -- start -----------------------------------------------------------------------------------------------------

    def _ensure_started(self):
        if not self.is_started:
            self.start()

    def start(self, z=None):
        """Start, or restart, from the assignments ``z``, or from new ones if it is None; return the assignments."""
        documents = self.data.start
        if z is None:
            is_normal = self.flat is not None and self.flat["prior_scale"] > 0
            z, _ = self._first_assignments(self._start_by(), is_normal)
        else:
            self.doc_prior.start()
            if self.doc_prior.refines_start and self.init != "random":
                self.doc_prior.refine(documents, z, self.word_prior.table(), self.rng)
        self.word_prior.begin(documents.total)
        if self.stored:
            self.z = z
            self.collapsed = self._sweeps_over(documents, z)
            if self.n_warm == 0:
                self.start_topics()
            self.doc_prior.update(self._assigned(), self._progress(is_start=True))
        else:
            self._start_fresh(documents, z)
        return z

    def _start_by(self):
        """How to draw first assignments; `CollapsedChain.start` explains why they are random with many topics."""
        return "random" if self.n_topics > MOST_SOFT and self.n_warm >= max(1.0, self.plan.n_burn) else self.init

    def _sweeps_over(self, documents, z):
        return sweeps_of(documents, z, self.word_prior.table(), self.doc_prior.leaves_topics_empty)

    def _start_fresh(self, documents, z, before=None):
        """Start with fresh assignments from ``z``; if sweeps continue, ``before`` is the `Swept` with this ``z``."""
        scale, is_early = self.data.total_samples / documents.n_docs, self.data.early is not None
        collapsed, n_sweeps = self._sweeps_over(documents, z), 0
        found = Swept(z, collapsed.counts, 1)
        if is_early:  # There are few tokens, so sweeps cost little, and they lead close to the start of `fit`.
            restart = self.restart_due or restart_of(documents.words.size)
            found = swept(collapsed, documents, self.doc_prior, self.rng, self._fit_to, restart, before)
            n_sweeps = restart.n_sweeps
        assigned = AssignedShards(OneShard(documents), z, None)
        self.doc_prior.update(assigned, self._progress(is_start=True)._replace(n_passes=n_sweeps))
        counts = scale * np.asarray(collapsed.counts, dtype=np.float64)
        order = None if self.topics is None else self.order_like(self.topics.linear(), counts + 1e-9)
        if order is not None:
            counts, found = counts[:, order], found.permuted(order)
            self.doc_prior.permute(order)
        self.swept = found if is_early else None
        self.topics = self._topics_at(np.ascontiguousarray(counts))
        self.scaled_for = self.data.total_samples
        worth = documents.n_docs / self.data.n_batch if self.plan.streams else 0.0
        self._begin_mean(scale * found.mean, worth)

    def _fit_to(self, collapsed, n_passes):
        """Update the word prior from sweeps over the documents of a growing corpus."""
        if self.word_prior.update(collapsed.counts, n_passes):
            collapsed.set_topic_word_prior(self.word_prior.table())

    def _begin_mean(self, beyond, worth=0.0):
        """Begin to average the conditional mean of the topics, if it is known; arguments as for `MeanTopics`."""
        self.mean = MeanTopics(beyond, worth, self.step) if self.flat is None and self.sampler._is_lazy else None

    def order_like(self, before, after):
        """`WordPrior.order_like`, under this chain's priors."""
        return self.word_prior.order_like(before, after, self.topic_groups)

    def _restart(self):
        """Make the restart that is due, and drop earlier draws; topics keep their numbers as far as they match."""
        documents, before = self.data.start, self.swept if self.restart_due.again else None
        if before is None:
            self.start()
        elif before.z.size == documents.words.size:
            self._start_fresh(documents, before.z, before)
        else:
            self.start(self._with_new_documents(documents, before))
        self.restart_due, self.plan.stride = None, 1
        self.restart(self.plan)

    def _with_new_documents(self, documents, before):
        """Assignments of ``documents``: those of the first from ``before``, and of the others drawn given these."""
        counts = np.pad(before.mean, ((0, documents.n_words - len(before.mean)), (0, 0)))
        words = documents.words[before.z.size :]
        found = drawn_given_counts(words, self.word_prior.shapes(counts), self.doc_prior.alpha, self.rng)
        return np.concatenate([before.z, found])

    def start_topics(self):
        """End the collapsed sweeps, if they have not ended yet, and make the topics part of the state."""
        if self.topics is not None:
            return
        self.counts = np.array(self.collapsed.counts, dtype=np.float64)
        self.collapsed = None
        self.topics = self._topics_at(self.counts)

    def _topics_at(self, counts):
        if self.flat is None:
            return LazyTopics.started(self.sampler, counts, self.word_prior.table(), self.stored, self.rng, self.step)
        return MovedTopics(
            self.sampler, counts, self.word_prior.value, n_burn=self.plan.n_burn, n_steps=self.step, **self.flat
        )

    # -- steps -----------------------------------------------------------------------------------------------------

    def next_batch(self):
        """Documents of the next minibatch."""
        data = self.data
        return self.batches.next(data.n_docs, data.n_batch, every_row if self.plan.streams else whole)

    def warm_step(self):
        """Make a step of burn-in with stored assignments: a collapsed sweep over ``n_batch`` documents.

        Collapsed sweeps have the same stationary distribution as the later steps, and reach it sooner; in shards, as in
        the first half of these sweeps, they have it approximately.
        """
        data = self.data
        left = min(data.n_batch, data.n_docs)
        docs = (self.next_doc + np.arange(left)) % data.n_docs
        before = self._assigned_before(docs)
        while left > 0:
            stop = min(self.next_doc + left, data.n_docs)
            self._sweep_collapsed(self.next_doc, stop)
            left -= stop - self.next_doc
            self.next_doc = stop % data.n_docs
            if self.next_doc == 0:
                self.n_passes += 1
                self._after_pass(self._progress())
        self.step += 1
        self._update_from_batch(docs, None, before, self._progress())

    def _sweep_collapsed(self, start, stop):
        """Sweep over documents start:stop with topics integrated out; many are at first swept as parallel shards."""
        documents, collapsed = self.data.documents, self.collapsed
        n_tokens = documents.token_ptr[stop] - documents.token_ptr[start]
        is_parallel = collapsed.is_fast and self._progress().may_approximate
        n_shards = number_of_shards(n_tokens, collapsed.table.size) if is_parallel else 1
        if n_shards == 1:
            collapsed.sweep(documents, start, stop, *self.doc_prior.table(documents), self.rng)
            return
        shards = self.data.shards.part(start, stop, n_shards)
        now = Round(collapsed.step(self.doc_prior), int(self.rng.integers(2**63)), collapsed.table)
        while now.next_shard < n_shards:
            shards.proceed(now, self.z, self._threads())
        collapsed.take(now.sums)

    def _assigned_before(self, docs):
        """Stored assignments of documents before they are redrawn, if the documents' prior reads them."""
        if not (self.stored and self.doc_prior.reads_batches):
            return None
        return self.z[self.data.documents.tokens_of(docs)[0]]

    def _update_from_batch(self, docs, doc_counts, before, progress):
        n_samples = self.data.total_samples
        batch = Batch(self.data.documents, docs, doc_counts, before, self.z, n_samples)
        self.doc_prior.update_from_batch(batch, progress)

    def one_step(self, docs):
        """Process a minibatch: bring its words up to date, draw assignments given the topics, and move the topics.

        ``docs`` are the indices of its documents.
        """
        hyper = self._hyper()
        rows = self.minibatch.words_of(docs)
        cells, total = self.topics.update(rows, self._shape_of(rows), hyper, self.rng, pool=self._threads())
        prior, group = self._doc_priors_of(docs)
        before = self._assigned_before(docs)
        counts, doc_counts = self.minibatch.draw(
            docs, rows, cells, total, prior, group, self.step, self.z, pool=self._threads(),
            every_draw=self.doc_prior.reads_every_draw,
        )  # fmt: skip
        self._update_from_batch(docs, doc_counts, before, self._progress(hyper))
        if self.stored and not len(self.batches):
            self.n_passes += 1
            self.doc_prior.update(self._assigned(), self._progress(hyper))
        self._move(docs, rows, counts, hyper)
        self.step += 1

    def _doc_priors_of(self, docs):
        """Priors of groups of documents, and the group of each document."""
        return self.doc_prior.table(self.data.documents, docs)

    def _move(self, docs, rows, counts, hyper):
        """Move the topics by one step, given the ``counts`` of the words ``rows`` of the minibatch."""
        is_lazy = self.sampler._is_lazy
        moved = rows if is_lazy else np.arange(self.n_words)
        if self.stored:
            gained = simplex.add_rows(self.counts, rows, counts)
            if is_lazy:
                self.topics.defer(gained, hyper)
                return
            signal, extra = self._shape_of(moved), self.counts.sum(axis=0)
        else:
            counts *= self.data.total_samples / docs.size / self.minibatch.n_sweeps[1]
            if self.mean is not None:
                self.mean.add(rows, counts, self._progress(hyper).forgotten)
            signal = self._shape_of(moved)
            extra = simplex.add_rows(signal, np.arange(rows.size) if is_lazy else rows, counts)
            if not is_lazy and self.counts is not None:  # Counts of assignments stored before the stream began.
                extra = extra + self.counts.sum(axis=0)
        self.topics.move(moved, signal, extra, hyper, self.rng)
        if self.topics.is_flat:
            self._rescale()

    def _rescale(self):
        """Rescale the coordinates of the topics if it is time to."""
        if self.is_time_to_rescale():
            self.topics.rescale(self.topics.natural_spread())

    def is_time_to_rescale(self):
        """Whether to rescale topics on flat space by their present curvature.

        In `fit` this happens once, after a quarter of the part of burn-in that follows the collapsed sweeps. In a
        stream, it happens each time that the stream has grown by half.
        """
        if not self.plan.streams:
            return self.step == self.n_warm + (self.plan.n_burn - self.n_warm) // 4
        grown = self.data.total_samples > _GROWN * self.scaled_for
        if grown:
            self.scaled_for = self.data.total_samples
        return grown

    def _shape_of(self, rows):
        return shapes_of(rows, self.word_prior.table(), self.counts, self._threads())

    def _up_to_date(self, topics):
        return topics.all_up_to_date(self._shape_of(np.arange(self.n_words)), self._hyper(), self.rng)

    # -- draws -----------------------------------------------------------------------------------------------------

    def _advance(self, until):
        if self.restart_due:
            self._restart()
        self._ensure_started()
        if self.step < self.n_warm:
            self.warm_step()
        else:
            self.start_topics()
            self.one_step(self.next_batch())
        if self.plan.wants(self.step):
            self.keep(self._kept_draw())

    def _kept_draw(self):
        """The present draw; this also records the counts, if assignments are stored, and updates the average mean."""
        if self.record is not None:
            counts = self.counts if self.collapsed is None else self.collapsed.counts
            self.record.add(self.step, counts, self.z, lambda: self.topic_groups)
        if self.mean is not None:
            self.mean.look(self.step)
        return self._as_draw(self.topics)

    def mean_topics(self):
        """The conditional mean of the topics, averaged over time, (n_words, n_topics)."""
        return self.mean.topics(self._shape_of(np.arange(self.n_words)))

    def present_topics(self):
        """The present topics, (n_words, n_topics), or their conditional mean if it is known."""
        if self.mean is not None:
            return self.mean.present(self._shape_of(np.arange(self.n_words)))
        if not self.stored or (self.topics is not None and self.topics.is_flat):
            return self.current()["components"].T
        self._ensure_started()
        if self.collapsed is not None:
            return super().present_topics()
        shape = self.word_prior.table() + self.counts
        return shape / shape.sum(axis=0)

    # -- changes of a running chain ------------------------------------------------------------------------------

    def start_streaming(self, sampler, plan, n_sweeps, prior_params):
        """Switch from stored to fresh assignments; the counts of the stored ones remain in the shapes."""
        self._ensure_started()
        self.start_topics()
        self._up_to_date(self.topics)
        if self.data is not None and self.z is not None and self.stored:
            self.doc_prior.release(self._assigned())
        self.stored, self.z = False, None
        self.minibatch = MinibatchSweeps(False, n_sweeps, self.assignment_seed)
        self.topics.sampler = sampler
        self.doc_prior.stream(prior_params)
        self._begin_mean(np.zeros(self.topics.theta.shape))
        plan.first_step, fitted = self.step, self._fitted_draws(min(ENOUGH_DRAWS, plan.n_draws // 2))
        self.restart(plan)
        for step, draw in fitted:
            super().keep(draw)
            self.kept_steps[-1] = step
        self.n_warm, self.scaled_for = 0, 0.0

    def _fitted_draws(self, most):
        """At most ``most`` of the kept draws, evenly spaced, with their steps; a list of tuples."""
        found = []
        for s in evenly(self.n_kept, most) if self.n_kept else ():
            draw = {name: value[s] for name, value in self.kept.items()}
            if "components" not in draw:  # A collapsed chain keeps counts, from which topics are drawn.
                draw["components"] = self.record.draw(s, self.word_prior.value)
            found.append((self.kept_steps[s], draw))
        return found

    @property
    def has_mean(self):
        """Whether all draws that results use are averaged in ``mean``."""
        return self.mean is not None and not self.plan.uses_fit(self.kept_steps)

    def forget(self):
        """Drop documents and their assignments; the counts of stored assignments remain in the shapes."""
        self._ensure_started()
        self.start_topics()
        if self.data is not None and self.z is not None and self.stored:
            self.doc_prior.release(self._assigned())
        self.z = self.swept = self.restart_due = self.data = self.doc_record = None
        self.minibatch.unbind()
        return self

    def begin_block(self, data, restart):
        """Bind to another block of documents; a `Restart` from ``data.early`` is made first, if one is due."""
        self.batches.forget()
        self.restart_due = pending_restart(self.restart_due, restart, data)
        self.swept = None if data.early is None else self.swept
        return self.bind(data)

    def take_sampler(self, sampler, n_sweeps, prior_params):
        """Continue a stream with another step size of the same sampler, and other numbers of sweeps.

        ``prior_params`` are samplers of the parameters of the document prior, by name.
        """
        self.topics.sampler = sampler
        self.minibatch.n_sweeps = n_sweeps
        self.doc_prior.stream(prior_params)

    def extend_vocabulary(self, word_prior, n_words):
        """Extend the vocabulary to ``n_words`` words; new ones start with prior draws, also in the kept draws."""
        self.start_topics()
        n_old = self.n_words
        self.word_prior = self.word_prior.extended(word_prior.value, n_words)
        new = np.ascontiguousarray(self.word_prior.table()[n_old:])
        if self.counts is not None:
            self.counts = np.vstack([self.counts, np.zeros(new.shape)])
        share = self.topics.extend(new, self.rng).T.astype(np.float32)
        if self.mean is not None:
            self.mean.extend(n_words - n_old)
        if self.record is not None:
            self.record.extend(n_words, self.record.last)
        if "components" in self.kept:
            self.kept["components"] = with_new_words(self.kept["components"], self.n_kept, share)
