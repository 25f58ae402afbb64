"""The chain of count topic models: topics by a simplex sampler, assignments by Gibbs sweeps over a minibatch."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ...chains.chain import TINY, Chain
from ...chains.minibatches import Minibatches, every_row, whole
from ...kernels.samplers import simplex
from .assignments import Assignments
from .doc_prior import Moment
from .lazy_topics import LazyTopics, shapes_of
from .mean_topics import MeanTopics
from .record import TopicRecord
from .softmax_topics import MovedTopics
from .start import first_assignments, start_of
from .stream import FIRST, Swept, still_due, swept
from .tokens import total_of
from .vocabulary import with_new_words
from .word_prior import DEFAULT, PASSES_PER_FIT, equal_topics, first_word_prior, fitted_word_prior, order_like

_GROWN = 1.5  # how many times as many documents a stream must have for topics on flat space to take new units


class TopicChain(Chain):
    """Chain of the topics and assignments of a count topic model.

    A run calls `start`, `warm_step` for each of the first ``n_warm`` steps, then `start_topics`, and `one_step` with
    each `next_batch`. `_advance` does so for a chain by itself, `ParticleTopicChain` for its particles.

    Parameters
    ----------
    seed : SeedSequence
    plan : DrawPlan
    sampler : Sampler
        Resolved: with ``step_size_``.
    word_prior : float or ndarray of shape (n_words, 1) or (n_words, n_topics)
        The prior of the topics.
    n_words : int
    doc_prior : DocumentPrior
    stored : bool
        Keep the assignment of every token (two bytes each): the shape of a topic is then the prior plus the counts of
        all of them, without N/n. Otherwise assignments are drawn afresh in each minibatch and counts scaled by N/n.
    n_sweeps : tuple of int
        Gibbs sweeps over a minibatch to discard, and to average over.
    n_warm : int
        Number of steps at the start of burn-in that are collapsed Gibbs sweeps, if assignments are stored.
    init : {"soft", "random"}
        Start from assignments by a streaming pass, see `soft_start`, or at random.
    flat : dict or None
        Arguments of `SoftmaxTopics`, for samplers on flat space; None for those on the simplex.
    fits_word_prior : bool
        Whether collapsed sweeps, of burn-in or of a young stream's restarts, fit ``word_prior``, one number.
    """

    _unpickled = ("data", "_pool")
    _pool = None
    restart_due = swept = None  # how the chain restarts before its next step; what the sweeps of the last one led to

    def __init__(
        self, seed, plan, sampler, word_prior, n_words, doc_prior, *, stored=True, n_sweeps=(0, 1), n_warm=0,
        init="soft", flat=None, fits_word_prior=False,
    ):  # fmt: skip
        super().__init__(seed, plan)
        self.first_sampler = sampler
        self.word_prior = word_prior
        self.n_words = n_words
        self.doc_prior = doc_prior
        self.n_warm = n_warm if stored else 0
        self.init = init
        self.flat = flat
        self.fits_word_prior = fits_word_prior
        self.assignments = Assignments(stored, n_sweeps, int(self.rng.integers(2**62)))
        self.topics = self.mean = self.collapsed = self.counts = None
        self.next_doc = self.n_passes = 0
        self.batches = Minibatches(seed)
        self.restart(plan)

    @property
    def sampler(self):
        """What moves the topics, or will move them once they are part of the state."""
        return self.first_sampler if self.topics is None else self.topics.sampler

    @property
    def n_topics(self):
        """Number of topics."""
        return self.doc_prior.alpha.size

    @property
    def doc_topic_prior(self):
        """Parameter of the documents' prior, (n_topics,); a typical one if documents have different priors."""
        return self.doc_prior.alpha

    @property
    def topic_word_prior(self):
        """The topics' prior, (n_words, n_topics); a view, which takes no memory if the prior is one number."""
        return np.broadcast_to(self.word_prior, (self.n_words, self.n_topics))

    @property
    def document_priors(self):
        """The documents' priors that are part of the state: a list of one, or of one for each particle."""
        return [self.doc_prior]

    @property
    def is_started(self):
        """Whether the chain has a state yet."""
        return self.topics is not None or self.collapsed is not None

    def __getstate__(self):
        finished = self.step >= self.plan.n_iter
        return {**super().__getstate__(), "doc_prior": self.doc_prior.saved(self.assignments.z if finished else None)}

    def __setstate__(self, state):
        super().__setstate__(state)
        if self.collapsed is not None:
            self.collapsed.rejoin(self.assignments.z, self.topic_word_prior)

    def bind(self, data):
        self.data = data
        self.doc_prior.bind(data)
        self.assignments.bind(data)
        self._pool = None
        return self

    def _ensure_started(self):
        if not self.is_started:
            self.start()

    def start(self, z=None):
        """Start, or start again, from assignments, ``z`` or drawn here, and return them."""
        data = self.data.start or self.data
        alpha = self.doc_prior.start()
        if z is None:
            is_normal = self.flat is not None and self.flat["prior_scale"] > 0
            init = start_of(self.init, alpha.size, self.n_warm >= max(1.0, self.plan.n_burn))
            if self.fits_word_prior:
                self.word_prior = DEFAULT
            z = first_assignments(data, alpha, self.word_prior, init, is_normal, self.rng, self._threads())
        if self.init != "random":
            alpha = self.doc_prior.refine(data, z, alpha, self.topic_word_prior, self.rng)
        if self.fits_word_prior:
            self.word_prior = first_word_prior(total_of(data), data.n_words, self.n_topics)
        if self.assignments.stored:
            self.assignments.z = z
            self.collapsed = self.doc_prior.sweeps(data, z, self.topic_word_prior)
            if self.n_warm == 0:
                self.start_topics()
            self.doc_prior.begin(data, z, alpha, self.rng)
        else:
            self._start_fresh(data, z, alpha)
        return z

    def _start_fresh(self, data, z, alpha, before=None):
        """Start from assignments; ``before`` is the `Swept` that they are from, if sweeps continue."""
        scale, has_sweeps = self.data.total_samples / data.n_docs, self.data.start is not None
        collapsed = self.doc_prior.sweeps(data, z, self.topic_word_prior)
        found = Swept(z, collapsed.counts, 1)
        if has_sweeps:  # few tokens: sweeps cost little, and lead close to the start of `fit`
            fit, due = self._fit_word_prior, self.restart_due or FIRST
            found = swept(collapsed, data, alpha, self.rng, fit, due, before, self.doc_prior.bears_heat)
        self.doc_prior.begin(data, z, alpha, self.rng, swept=has_sweeps)
        counts = scale * np.asarray(collapsed.counts, dtype=np.float64)
        order = None if self.topics is None else self.order_like(self.topics.linear(), counts + 1e-9)
        if order is not None:
            counts, found = counts[:, order], found.renumbered(order)
            self.doc_prior.renumber(order)
        self.swept = found if has_sweeps else None
        self.topics = self._topics_at(np.ascontiguousarray(counts))
        self.scaled_for = self.data.total_samples
        self._begin_mean(scale * found.mean, worth=data.n_docs / self.data.n_batch if self.plan.streams else 0.0)

    def _begin_mean(self, beyond, worth=0.0):
        """Begin to average the conditional mean of the topics, where it is known; arguments as for `MeanTopics`."""
        self.mean = MeanTopics(beyond, worth, self.step) if self.flat is None and self.sampler._is_lazy else None

    def order_like(self, before, after):
        """The function of that name, under this chain's priors."""
        return order_like(before, after, self.topic_groups, self.word_prior)

    @property
    def topic_groups(self):
        """A number for each topic; topics with equal ones can change places without changing the posterior."""
        return equal_topics(self.doc_prior.labels, self.topic_word_prior)

    def _restart(self):
        """Restart, with the topics numbered as before as far as they match, and drop the draws of the old start."""
        if self.restart_due.again and self.swept is not None:
            self._start_fresh(self.data.start, self.swept.z, self.doc_prior.alpha, self.swept)
        else:
            self.start()
        self.restart_due, self.plan.stride = None, 1
        self.restart(self.plan)

    def start_topics(self):
        """End the collapsed sweeps of burn-in, unless they have ended: topics become part of the state."""
        if self.topics is not None:
            return
        self.counts = np.array(self.collapsed.counts, dtype=np.float64)
        self.collapsed = None
        self.topics = self._topics_at(self.counts)

    def _topics_at(self, counts):
        if self.flat is None:
            prior, stored = self.topic_word_prior, self.assignments.stored
            return LazyTopics.started(self.sampler, counts, prior, stored, self.rng, self.step)
        return MovedTopics(
            self.sampler, counts, self.word_prior, n_burn=self.plan.n_burn, n_steps=self.step, **self.flat
        )

    def next_batch(self):
        """Documents of the next minibatch."""
        data = self.data
        return self.batches.next(data.n_docs, data.n_batch, every_row if self.plan.streams else whole)

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

    def warm_step(self):
        """Make a step of burn-in with stored assignments: collapsed sweeps over as many documents as a minibatch has.

        Sweeps reach the stationary law of the steps that follow sooner; in shards, they come close to it.
        """
        data = self.data
        left = min(data.n_batch, data.n_docs)
        docs = (self.next_doc + np.arange(left)) % data.n_docs
        self.doc_prior.before_minibatch(docs, self.assignments.z)
        while left > 0:
            stop = min(self.next_doc + left, data.n_docs)
            self.collapsed.sweep_shards(data, self.next_doc, stop, *self.doc_prior.table(), self.rng, self._threads())
            left -= stop - self.next_doc
            self.next_doc = stop % data.n_docs
            if self.next_doc == 0:
                self.n_passes += 1
                self._after_pass()
        self.step += 1
        self.doc_prior.after_sweep(docs, self.assignments.z, self._now())

    def _after_pass(self):
        """Collapsed sweeps have passed over all documents: fit what is fitted, in burn-in only."""
        now = self._now()
        self.doc_prior.after_pass(self.assignments.z, now, self.collapsed)
        if now.burns_in:
            self._fit_word_prior(self.collapsed, now.n_passes)

    def _fit_word_prior(self, collapsed, n_passes):
        """Fit the topics' prior, if that is wanted and due after so many passes of collapsed sweeps."""
        if self.fits_word_prior and n_passes % PASSES_PER_FIT == 0:
            self.word_prior = fitted_word_prior(collapsed.counts, self.word_prior)
            collapsed.set_topic_word_prior(self.topic_word_prior)

    def _now(self, hyper=None):
        """The `Moment` of the chain, for its document prior; ``hyper`` are the sampler's numbers if they are known."""
        forgotten = -np.expm1(-float((self._hyper() if hyper is None else hyper)[0]))
        n_warm = self.n_warm or np.inf
        return Moment(self.step, self.plan.n_burn, self.n_passes, self.rng, self.assignments.seed, forgotten, n_warm)

    def one_step(self, docs):
        """Process a minibatch: bring its words up to date, draw assignments given the topics, and move the topics."""
        hyper = self._hyper()
        rows = self.assignments.words_of(docs)
        cells, total = self.topics.update(rows, self._shape_of(rows), hyper, self.rng, pool=self._threads())
        prior, group = self.doc_prior.table(docs)
        self.doc_prior.before_minibatch(docs, self.assignments.z)
        counts, doc_counts = self._assign(docs, rows, cells, total, prior, group)
        self.doc_prior.after_minibatch(docs, doc_counts, self.assignments.z, self._now(hyper))
        if self.assignments.stored and not len(self.batches):
            self.n_passes += 1
            self.doc_prior.after_epoch(self.assignments.z, self._now(hyper))
        self._move(docs, rows, counts, hyper)
        self.step += 1

    def _assign(self, docs, *tables):
        """Draw the assignments of a minibatch given the topics; see `Assignments.draw`."""
        every_draw = self.doc_prior.reads_every_draw
        return self.assignments.draw(docs, *tables, self.step, pool=self._threads(), every_draw=every_draw)

    def _move(self, docs, rows, counts, hyper):
        """Move the topics, at the shapes that follow from the ``counts`` of the minibatch."""
        is_lazy = self.sampler._is_lazy
        moved = rows if is_lazy else np.arange(self.n_words)
        if self.assignments.stored:
            gained = simplex.add_rows(self.counts, rows, counts)
            if is_lazy:
                self.topics.defer(gained, hyper)
                return
            signal, extra = self._shape_of(moved), self.counts.sum(axis=0)
        else:
            counts *= self.data.total_samples / docs.size / self.assignments.n_sweeps[1]
            if self.mean is not None:
                self.mean.add(rows, counts, self._now(hyper).forgotten)
            signal = self._shape_of(moved)
            extra = simplex.add_rows(signal, np.arange(rows.size) if is_lazy else rows, counts)
            if not is_lazy and self.counts is not None:  # assignments stored before the stream began
                extra = extra + self.counts.sum(axis=0)
        self.topics.move(moved, signal, extra, hyper, self.rng)
        if self.topics.is_flat:
            self._rescale()

    def _rescale(self):
        """Take new units if it is time to."""
        if self.is_time_to_rescale():
            self.topics.rescale(self.topics.natural_spread())

    def is_time_to_rescale(self):
        """Whether topics on flat space are due to take new units, from their present curvature.

        In a fit, once: a quarter through the part of burn-in that follows the collapsed sweeps. In a stream, each time
        that it has grown by half.
        """
        if not self.plan.streams:
            return self.step == self.n_warm + (self.plan.n_burn - self.n_warm) // 4
        grown = self.data.total_samples > _GROWN * self.scaled_for
        if grown:
            self.scaled_for = self.data.total_samples
        return grown

    def _hyper(self):
        return np.minimum(self.sampler._hyper(self.step, self.step + 1)[0], 1e300)

    def _shape_of(self, rows):
        return shapes_of(rows, self.topic_word_prior, self.counts, self._threads())

    def _threads(self):
        """The chain's pool of threads; None if it has a single one."""
        if self._pool is None and self.data is not None and self.data.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.data.n_threads)
        return self._pool

    # -- draws ---------------------------------------------------------------------------------------------------

    def _kept_draw(self):
        """The present draw; where assignments are stored, their counts go into the record."""
        if self.record is not None:
            counts = self.counts if self.collapsed is None else self.collapsed.counts
            self.record.add(self.step, counts, self.assignments.z, lambda: self.topic_groups)
        if self.mean is not None:
            self.mean.look(self.step)
        return self._as_draw(self.topics)

    def restart(self, plan):
        super().restart(plan)
        self.record = TopicRecord(self.assignments.seed) if self.assignments.stored and self.flat is None else None

    def _as_draw(self, topics):
        """The state as a draw; brings all words of ``topics`` up to date."""
        if topics is None:
            cells = np.maximum(self.rng.standard_gamma(self.topic_word_prior + self.collapsed.counts), TINY)
            components = cells / cells.sum(axis=0)
        else:
            components = topics.all_up_to_date(self._shape_of(np.arange(self.n_words)), self._hyper(), self.rng)
        return {"components": np.ascontiguousarray(components.T, dtype=np.float32), **self.doc_prior.draw()}

    def current(self):
        self._ensure_started()
        return self.snapshot()._as_draw(None if self.topics is None else self.topics.copy())

    def mean_topics(self):
        """The conditional mean of the topics, averaged over time, (n_words, n_topics)."""
        return self.mean.topics(self._shape_of(np.arange(self.n_words)))

    def present_topics(self):
        """The present topics, (n_words, n_topics); their conditional mean where it is known."""
        if self.mean is not None:
            return self.mean.present(self._shape_of(np.arange(self.n_words)))
        if not self.assignments.stored or (self.topics is not None and self.topics.is_flat):
            return self.current()["components"].T
        self._ensure_started()
        shape = self.topic_word_prior + (self.counts if self.collapsed is None else self.collapsed.counts)
        return shape / shape.sum(axis=0)

    def spread(self):
        """The spread of particles, see `ParticleTopicChain.spread`; None: there are none."""
        return None

    # -- changes of a running chain ------------------------------------------------------------------------------

    def with_topics(self, sampler):
        """The chain with which to continue if topics, moved by a resolved ``sampler``, are part of the state: this."""
        return self

    def start_streaming(self, sampler, plan, n_sweeps, **of_prior):
        """Switch from stored to fresh assignments; the stored ones stay in the shapes, as counts."""
        self._ensure_started()
        self.start_topics()
        self.topics.all_up_to_date(self._shape_of(np.arange(self.n_words)), self._hyper(), self.rng)
        self.doc_prior.stream(self.assignments.z)
        self.assignments.stored, self.assignments.z = False, None
        self.take_sampler(sampler, n_sweeps, **of_prior)
        self._begin_mean(np.zeros(self.topics.theta.shape))
        self.restart(plan)
        self.n_warm, self.scaled_for = 0, 0.0

    def begin_block(self, data, restart):
        """Read another block of documents, after a `Restart` from ``data.start`` if one is due."""
        self.batches.forget()
        self.restart_due = still_due(self.restart_due, restart, data)
        self.swept = None if data.start is None else self.swept
        return self.bind(data)

    def take_sampler(self, sampler, n_sweeps, **of_prior):
        """Continue with another step size of the same sampler, and other sweeps over a minibatch.

        ``of_prior`` are the arguments of `DocumentPrior.use`.
        """
        self.topics.sampler = sampler
        self.assignments.n_sweeps = n_sweeps
        self.doc_prior.use(**of_prior)

    def extend_vocabulary(self, word_prior, n_words):
        """Extend the vocabulary to ``n_words`` words; new ones start with prior draws, also in the kept draws."""
        self.start_topics()
        n_old, self.n_words = self.n_words, n_words
        self.word_prior = self.word_prior if self.fits_word_prior else word_prior
        new = np.ascontiguousarray(self.topic_word_prior[n_old:])
        if self.counts is not None:
            self.counts = np.vstack([self.counts, np.zeros(new.shape)])
        share = self.topics.extend(new, self.rng).T.astype(np.float32)
        if self.mean is not None:
            self.mean.extend(n_words - n_old)
        if "components" in self.kept:
            self.kept["components"] = with_new_words(self.kept["components"], self.n_kept, share)
