"""The chain of particle samplers, whose particles have their own assignments and move their topics together."""

from copy import deepcopy

import numpy as np

from ...chains.chain import Chain
from ...chains.checks import PARTICLES_TOO_CLOSE
from ...samplers.state import SamplerState
from .chain import MinibatchChain
from .softmax_topics import SoftmaxTopics
from .updates import pending_restart


class Particle(MinibatchChain):
    """A particle: a chain that draws assignments, while `ParticleTopicChain` moves the topics of all particles."""

    def _topics_at(self, counts):
        return SoftmaxTopics(self.sampler, counts, self.word_prior.value, **self.flat)

    def _rescale(self):
        """Do nothing: `ParticleTopicChain` rescales the topics of all particles alike."""

    def permute(self, order):
        """Reorder the topics, and the stored assignments."""
        self.z = np.argsort(order).astype(np.uint16)[self.z]
        self.counts = np.ascontiguousarray(self.counts[:, order])
        self.doc_prior.permute(order)
        self.topics.permute(order)


def _shared_property(name):
    return property(lambda self: getattr(self.particles[0], name), doc=f"``{name}``, which all particles share.")


class ParticleTopicChain(Chain):
    """A chain of topics under a particle sampler.

    Parameters
    ----------
    seed, plan, sampler, word_prior, doc_prior, **kwargs
        As for `MinibatchChain`; each particle has copies of the priors.

    Attributes
    ----------
    particles : list of Particle
    state : SamplerState or None
        The coordinates of the topics of all particles, (n_particles, n_words * n_topics); each particle has a view of
        its own. None before the first move, and after other changes of the topics.

    Notes
    -----
    Every particle is a chain with its own assignments. All particles read the same minibatches, and start from the same
    assignments, so that their topics have the same numbers. The draws are the present particles; no earlier state is
    kept.
    """

    sampler, n_topics, n_words, stored, n_warm, is_started, topic_groups, word_prior = map(
        _shared_property,
        ("sampler", "n_topics", "n_words", "stored", "n_warm", "is_started", "topic_groups", "word_prior"),
    )
    has_topics = True
    restart_due = None
    record, has_mean = None, False  # The draws are the particles, so nothing is recorded or averaged over time.

    def __init__(self, seed, plan, sampler, word_prior, doc_prior, **kwargs):
        super().__init__(seed, plan)
        self.particles = [
            Particle(s, plan, sampler, deepcopy(word_prior), deepcopy(doc_prior), **kwargs)
            for s in seed.spawn(sampler.n_particles)
        ]
        for particle in self.particles:
            particle.batches = self.particles[0].batches
        self.state = None

    @property
    def doc_topic_prior(self):
        """The documents' prior, averaged over particles."""
        return np.mean([particle.doc_topic_prior for particle in self.particles], axis=0)

    @property
    def document_priors(self):
        """The document prior of each particle."""
        return [particle.doc_prior for particle in self.particles]

    def bind(self, data):
        self.data = data
        for particle in self.particles:
            particle.bind(data)
        return self

    def forget(self):
        """As `MinibatchChain.forget`."""
        self.data = self.restart_due = None
        for particle in self.particles:
            particle.forget()
        return self

    def _ensure_started(self):
        if not self.is_started:
            self._start()

    def _start(self):
        z = None
        for particle in self.particles:
            z = particle.start(None if z is None else z.copy())
            particle.swept = None  # Particles never continue earlier sweeps.
        self.restart_due = self.state = None

    def _advance(self, until):
        if self.restart_due:
            self._start()
        self._ensure_started()
        if self.step < self.n_warm:
            for particle in self.particles:
                particle.warm_step()
        else:
            if self.particles[0].topics is None:
                for particle in self.particles:
                    particle.start_topics()
                self._number_alike()
            docs = self.particles[0].next_batch()
            for particle in self.particles:
                particle.one_step(docs)
            self._move_together()
        self.step += 1

    def _number_alike(self):
        """Number the topics of all particles as in the first, since collapsed sweeps may have switched them."""
        first = self.particles[0]
        for particle in self.particles[1:]:
            order = particle.order_like(first.topics.cells, particle.topics.cells)
            if order is not None:
                particle.permute(order)

    def _begin_to_move(self):
        """Make the sampler's state from the present particles."""
        theta = np.stack([particle.topics.theta.ravel() for particle in self.particles])
        at = self.step + 1  # The particles first move in the next step.
        self.state = SamplerState(self.sampler, theta, "euclidean", self.plan.n_burn, n_steps=at, name="The topics")

    def _move_together(self):
        topics = [particle.topics for particle in self.particles]
        if self.state is None:
            # The gradients belong to the positions before spreading.
            spread = np.mean([each.spread for each in topics], axis=0)
            for particle, each in zip(self.particles, topics, strict=True):
                each.rescale(spread)
                noise = particle.rng.standard_normal(each.theta.shape)
                each.replace(each.theta + self.sampler.start_scale * noise)
            self._begin_to_move()
            return
        self.state.step(np.stack([each.gradient.ravel() for each in topics]), np.zeros(1), self.rng)
        for each, theta in zip(topics, self.state.theta, strict=True):
            each.replace(theta.reshape(each.theta.shape))
        if self.particles[0].is_time_to_rescale():
            spread = np.mean([each.natural_spread() for each in topics], axis=0)
            for each in topics:
                each.rescale(spread)
            self._begin_to_move()

    def spread(self):
        """Standard deviation of the topics between particles, divided by its value for independent draws; or None.

        The expected variance of independent draws is the sum of two parts: the variance of the topics' means given the
        assignments, estimated over particles, and the mean variance of the Dirichlet distributions given the
        assignments. None if it is unknown (a single particle, fresh assignments or a normal prior) or 0 (a vocabulary
        of one word).
        """
        particles = self.particles
        first = particles[0]
        known = first.stored and first.flat["prior_scale"] == 0
        if len(particles) < 2 or first.topics is None or not known or self.plan.streams:
            return None
        topics = np.stack([each.topics.cells / each.topics.total for each in particles])
        shapes = np.stack([each.word_prior.table() + each.counts for each in particles])
        mass = shapes.sum(axis=1, keepdims=True)
        means = shapes / mass
        expected = ((means * (1.0 - means) / (mass + 1.0)).mean(axis=0) + means.var(axis=0, ddof=1)).sum()
        if not expected > 0.0:
            return None
        return float(np.sqrt(topics.var(axis=0, ddof=1).sum() / expected))

    def checks(self):
        spread = self.spread()
        if spread is None:
            return []
        if not spread < PARTICLES_TOO_CLOSE.limit:
            return [PARTICLES_TOO_CLOSE.passed(spread)]
        meaning = (
            f"The particles are too close together: their topics spread over {spread:.2g} of the standard deviation of "
            f"independent draws ({PARTICLES_TOO_CLOSE.limit} at least), so intervals are too narrow."
        )
        remedy = 'Where uncertainties matter, use sampler="gibbs", whose draws are exact.'
        return [PARTICLES_TOO_CLOSE.fired(spread, meaning, remedy)]

    # -- draws and streams ---------------------------------------------------------------------------------------

    def current(self):
        self._ensure_started()
        draws = [particle.current() for particle in self.particles]
        return {name: np.stack([draw[name] for draw in draws]) for name in draws[0]}

    def draws(self):
        """The particles, (n_particles, ...) each."""
        return self.current()

    def present_topics(self):
        """The present topics, averaged over particles, (n_words, n_topics)."""
        return np.mean([particle.present_topics() for particle in self.particles], axis=0)

    def begin_block(self, data, restart):
        """As `MinibatchChain.begin_block`, but without the restarts that continue earlier sweeps."""
        restart = pending_restart(self.restart_due, restart, data)
        self.restart_due = None if restart is None or restart.again else restart
        for particle in self.particles:
            particle.begin_block(data, None)
        return self.bind(data)

    def start_streaming(self, sampler, plan, n_sweeps, prior_params):
        """Switch all particles from stored to fresh assignments."""
        self._ensure_started()
        self.plan = plan
        for particle in self.particles:
            particle.start_streaming(sampler, plan, n_sweeps, prior_params)
        self.state = None

    def take_sampler(self, sampler, n_sweeps, prior_params):
        """Continue with another step size of the same sampler, and other numbers of sweeps."""
        for particle in self.particles:
            particle.take_sampler(sampler, n_sweeps, prior_params)
        if self.state is not None:
            self.state.sampler = sampler

    def extend_vocabulary(self, word_prior, n_words):
        """Extend the vocabulary to ``n_words`` words; new words start with prior draws."""
        for particle in self.particles:
            particle.extend_vocabulary(word_prior, n_words)
        self.state = None
