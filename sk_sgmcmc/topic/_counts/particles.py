"""Particles of topics: chains with assignments of their own, whose topics move together."""

import numpy as np

from ...chains.chain import Chain
from ...metrics import align_topics
from .softmax_topics import check_finite


def _of_first(name):
    return property(lambda self: getattr(self.particles[0], name), doc=f"``{name}``, which all particles share.")


class ParticleTopicChain(Chain):
    """Topics moved by a particle sampler.

    Parameters
    ----------
    make : subclass of TopicChain
        Of one particle.
    seed, plan, sampler, *args, **kwargs
        As of ``make``.

    Notes
    -----
    Every particle is a chain that keeps, or draws, its own assignments. All read the same minibatch, and begin
    at the same assignments, so that their topics are numbered alike. The draws are the particles as they are now: none
    is kept on the way.
    """

    sampler, given_sampler, n_topics, n_words, stored, n_warm, is_started, topic_groups = map(
        _of_first,
        ("sampler", "given_sampler", "n_topics", "n_words", "stored", "n_warm", "is_started", "topic_groups"),
    )
    begins_anew = False

    def __init__(self, make, seed, plan, sampler, *args, **kwargs):
        super().__init__(seed, plan)
        self.particles = [make(s, plan, sampler, *args, **kwargs) for s in seed.spawn(sampler.n_particles)]
        self.aux = None

    @property
    def doc_topic_prior(self):
        """Of all particles, averaged."""
        return np.mean([particle.doc_topic_prior for particle in self.particles], axis=0)

    def bind(self, data):
        self.data = data
        for particle in self.particles:
            particle.waits_for_start = True
            particle.bind(data)
        return self

    def _start(self):
        z = None
        for particle in self.particles:
            z = particle._start(None if z is None else z.copy())
        self.aux = None

    def _advance(self, until):
        if not self.is_started or self.begins_anew:
            self._start()
            self.begins_anew = False
        if self.step < self.n_warm:
            for particle in self.particles:
                particle._warm_step()
        else:
            if self.particles[0].topics is None:
                for particle in self.particles:
                    particle._start_topics()
                self._number_alike()
            docs = self.particles[0]._next_batch()
            for particle in self.particles:
                particle.batches = self.particles[0].batches  # all are to know where a pass ends
                particle.one_step(docs)
            self._move_together()
        self.step += 1

    def _number_alike(self):
        """Number the topics of all particles as those of the first, from which collapsed sweeps may have led away."""
        first = self.particles[0]
        for particle in self.particles[1:]:
            if particle._has_like_topics():
                shares = ((p.topics.cells / p.topics.total).T for p in (first, particle))
                particle.renumber(align_topics(*shares, groups=particle.like_groups))

    def _begin_to_move(self):
        """Common units, the particles spread about where they are, and the sampler's own state."""
        sampler, topics = self.sampler, [particle.topics for particle in self.particles]
        spread = np.mean([t.spread for t in topics], axis=0)
        for particle, t in zip(self.particles, topics, strict=True):
            t.rescale(spread)
            t.replace_state(t.state + sampler.start_scale * particle.rng.standard_normal(t.state.shape))
        self.aux, self.scalars = sampler._state(np.stack([t.state for t in topics]), "euclidean", self.plan.n_burn)

    def _move_together(self):
        topics, sampler = [particle.topics for particle in self.particles], self.sampler
        if self.aux is None:
            # The gradients were those of the places before the spread: the first move begins at the next step.
            self._begin_to_move()
            return
        state = np.stack([t.state.ravel() for t in topics])
        told = np.stack([t.told.ravel() for t in topics])
        hyper = np.minimum(sampler._hyper(self.step, self.step + 1)[0], 1e300)
        (flow,) = sampler._kernels("euclidean")
        every = np.arange(len(topics))
        check_finite(
            flow(state, self.aux, self.scalars, told, np.zeros(1), hyper, every, self.rng), sampler, hyper, self.step
        )
        for t, moved in zip(topics, state, strict=True):
            t.replace_state(moved.reshape(t.state.shape))
        if self.particles[0].is_time_to_rescale():
            spread = np.mean([t.natural_spread() for t in topics], axis=0)
            for t in topics:
                t.rescale(spread)
            self.aux, self.scalars = sampler._state(np.stack([t.state for t in topics]), "euclidean", self.plan.n_burn)

    # -- draws and streams ---------------------------------------------------------------------------------------

    def current(self):
        draws = [particle.current() for particle in self.particles]
        return {name: np.stack([draw[name] for draw in draws]) for name in draws[0]}

    def draws(self):
        """The particles, (n_particles, ...) each."""
        return self.current()

    def present_topics(self):
        """The topics as they are, averaged over particles, (n_words, n_topics)."""
        return np.mean([particle.present_topics() for particle in self.particles], axis=0)

    def forget_batches(self):
        """Drop the minibatches planned for the rest of an epoch: other documents come."""
        for particle in self.particles:
            particle.forget_batches()

    def start_streaming(self, sampler, plan, n_sweeps):
        """Go over from stored to fresh assignments."""
        if not self.is_started:
            self._start()
        self.plan = plan
        for particle in self.particles:
            particle.start_streaming(sampler, plan, n_sweeps)
        self.aux = None

    def take_sampler(self, sampler, n_sweeps):
        """Go on with another step size of the same sampler, and other sweeps over a minibatch."""
        for particle in self.particles:
            particle.take_sampler(sampler, n_sweeps)

    def extend_vocabulary(self, word_prior, n_words):
        """Go on with ``n_words`` words: the new ones start with prior draws."""
        for particle in self.particles:
            particle.extend_vocabulary(word_prior, n_words)
        self.aux = None
