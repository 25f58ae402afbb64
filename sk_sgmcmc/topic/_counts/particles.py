"""Particles of topics: chains with their own assignments, whose topics move together."""

from copy import deepcopy

import numpy as np

from ...chains.chain import Chain
from ...samplers.state import SamplerState
from .chain import TopicChain

# Standard deviation of the topics between particles over that of draws, below which intervals are clearly too narrow.
_TOO_CLOSE = 0.8


def _of_first(name):
    return property(lambda self: getattr(self.particles[0], name), doc=f"``{name}``, which all particles share.")


class ParticleTopicChain(Chain):
    """Chain of topics moved by a particle sampler.

    Parameters
    ----------
    seed, plan, sampler, word_prior, n_words, doc_prior, flat, **kwargs
        As for `TopicChain`; each particle has a copy of ``doc_prior``.

    Notes
    -----
    Every particle is a chain that keeps, or draws, its own assignments. All read the same minibatch, and start from
    the same assignments, so that their topics are numbered alike. The draws are the present particles; none is kept on
    the way.
    """

    sampler, n_topics, n_words, assignments, n_warm, is_started, topic_groups, word_prior = map(
        _of_first,
        ("sampler", "n_topics", "n_words", "assignments", "n_warm", "is_started", "topic_groups", "word_prior"),
    )
    begins_anew = False

    def __init__(self, seed, plan, sampler, word_prior, n_words, doc_prior, *, flat, **kwargs):
        super().__init__(seed, plan)
        flat = {**flat, "moved_together": True}
        self.particles = [
            TopicChain(s, plan, sampler, word_prior, n_words, deepcopy(doc_prior), flat=flat, **kwargs)
            for s in seed.spawn(sampler.n_particles)
        ]
        self.state = None

    @property
    def doc_topic_prior(self):
        """The documents' prior, averaged over particles."""
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
        self.state = None

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
                particle.batches = self.particles[0].batches  # so that all notice the end of a pass
                particle.one_step(docs)
            self._move_together()
        self.step += 1

    def _number_alike(self):
        """Number the topics of all particles like those of the first; collapsed sweeps may have switched them."""
        first = self.particles[0]
        for particle in self.particles[1:]:
            order = particle.order_like(first.topics.cells, particle.topics.cells)
            if order is not None:
                particle.renumber(order)

    def _begin_to_move(self):
        """Make the sampler's state from the present particles."""
        theta = np.stack([particle.topics.theta for particle in self.particles])
        self.state = SamplerState(self.sampler, theta, "euclidean", self.plan.n_burn, name="The topics")

    def _move_together(self):
        topics = [particle.topics for particle in self.particles]
        if self.state is None:
            # The gradients belong to the positions before spreading, so the first move is that of the next step.
            spread = np.mean([each.spread for each in topics], axis=0)
            for particle, each in zip(self.particles, topics, strict=True):
                each.rescale(spread)
                noise = particle.rng.standard_normal(each.theta.shape)
                each.replace(each.theta + self.sampler.start_scale * noise)
            self._begin_to_move()
            return
        state, (flow,) = self.state, self.sampler._kernels("euclidean")
        state.n_steps = self.step
        theta = np.stack([each.theta.ravel() for each in topics])
        gradients = np.stack([each.gradient.ravel() for each in topics])
        hyper = np.minimum(state.hypers(1)[0], 1e300)
        every = np.arange(len(topics))
        state.check(flow(theta, state.aux, state.scalars, gradients, np.zeros(1), hyper, every, self.rng))
        for each, moved in zip(topics, theta, strict=True):
            each.replace(moved.reshape(each.theta.shape))
        if self.particles[0].is_time_to_rescale():
            spread = np.mean([each.natural_spread() for each in topics], axis=0)
            for each in topics:
                each.rescale(spread)
            self._begin_to_move()

    def spread(self):
        """Standard deviation of the topics between particles over that of independent draws, 1 for these; or None.

        Draws have the variance of their means given the assignments, which is read off the particles, plus the mean
        variance given the assignments, that of Dirichlet laws. None where this is not known (a single particle, fresh
        assignments, a normal prior) and for a single word, whose share is 1 in every topic.
        """
        particles = self.particles
        first = particles[0]
        known = first.assignments is not None and first.assignments.stored and first.flat["prior_scale"] == 0
        if len(particles) < 2 or first.topics is None or not known or not np.isfinite(self.plan.n_burn):
            return None
        topics = np.stack([each.topics.cells / each.topics.total for each in particles])
        shapes = np.stack([each.topic_word_prior + each.counts for each in particles])
        mass = shapes.sum(axis=1, keepdims=True)
        means = shapes / mass
        expected = ((means * (1.0 - means) / (mass + 1.0)).mean(axis=0) + means.var(axis=0, ddof=1)).sum()
        if not expected > 0.0:
            return None
        return float(np.sqrt(topics.var(axis=0, ddof=1).sum() / expected))

    def doubts(self):
        spread = self.spread()
        if spread is None or not spread < _TOO_CLOSE:
            return []
        return [
            f"The particles are too close together, and intervals too narrow: their topics spread over {spread:.2g} of "
            f"the standard deviation of independent draws (1 is right, {_TOO_CLOSE} the least). Where uncertainties "
            'matter, use sampler="gibbs", whose draws are exact.'
        ]

    # -- draws and streams ---------------------------------------------------------------------------------------

    def current(self):
        draws = [particle.current() for particle in self.particles]
        return {name: np.stack([draw[name] for draw in draws]) for name in draws[0]}

    def draws(self):
        """The particles, (n_particles, ...) each."""
        return self.current()

    def present_topics(self):
        """The present topics, averaged over particles, (n_words, n_topics)."""
        return np.mean([particle.present_topics() for particle in self.particles], axis=0)

    def forget_batches(self):
        """Drop the minibatches planned for the rest of an epoch, as other documents follow."""
        for particle in self.particles:
            particle.forget_batches()

    def start_streaming(self, sampler, plan, n_sweeps, **of_prior):
        """Switch from stored to fresh assignments."""
        if not self.is_started:
            self._start()
        self.plan = plan
        for particle in self.particles:
            particle.start_streaming(sampler, plan, n_sweeps, **of_prior)
        self.state = None

    def take_sampler(self, sampler, n_sweeps, **of_prior):
        """Continue with another step size of the same sampler, and other sweeps over a minibatch."""
        for particle in self.particles:
            particle.take_sampler(sampler, n_sweeps, **of_prior)
        if self.state is not None:
            self.state.sampler = sampler

    def extend_vocabulary(self, word_prior, n_words):
        """Extend the vocabulary to ``n_words`` words; new words start with prior draws."""
        for particle in self.particles:
            particle.extend_vocabulary(word_prior, n_words)
        self.state = None


def particle_spreads(chains):
    """`ParticleTopicChain.spread` of each chain, in a dict of quantities for `Diagnosis`; empty where not known."""
    spreads = [chain.spread() if isinstance(chain, ParticleTopicChain) else None for chain in chains]
    return {} if None in spreads else {"particle_spread": np.array(spreads)[:, None]}
