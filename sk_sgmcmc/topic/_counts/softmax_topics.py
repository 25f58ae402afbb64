"""Topics on flat space: a softmax over words, for samplers that are told a gradient."""

import numpy as np

from ...kernels.models.lda import softmax
from ...samplers.state import SamplerState

_START_STEPS = 50  # towards the mode given the first counts
_DAMPING = 0.5
MAX_LOG = 600.0


class SoftmaxTopics:
    r"""State of a sampler on flat space whose softmax over words, topic by topic, are the topics.

    :math:`\phi_{kw} \propto \exp(\theta_{kw})` with :math:`\exp(\theta_{kw}) \sim \mathrm{Gamma}(\beta, 1)`, which is
    the Dirichlet prior of the topics, or with :math:`\theta_{kw} \sim N(\beta, \sigma^2)`. What moves is theta over
    ``spread``: about its posterior deviations given the assignments, so that one step size suits all cells.

    Parameters
    ----------
    sampler : Sampler
        Resolved: with ``step_size_``.
    counts : ndarray of shape (n_words, n_topics)
        What topics begin at the mode of.
    word_prior : float or ndarray of shape (n_words, 1) or (n_words, n_topics)
        :math:`\beta`.
    prior_scale : float
        :math:`\sigma`; 0 for the Dirichlet prior.
    whiten : bool
        Whether to scale by ``spread``; otherwise it is 1 everywhere.
    n_burn : float
        Steps in which masses may be learnt.
    n_steps : int, default=0
        Steps that the chain made before.
    moved_together : bool, default=False
        Whether a sampler moves these topics together with those of other particles, from outside.
    """

    is_flat = True

    def __init__(self, sampler, counts, word_prior, prior_scale, whiten, n_burn, *, n_steps=0, moved_together=False):
        self.prior_scale, self.whiten, self.moved_together = prior_scale, whiten, moved_together
        self.word_prior = word_prior
        prior = np.broadcast_to(word_prior, counts.shape)
        self.counted = counts.sum(axis=0)
        self.spread = np.ones(counts.shape)
        theta = np.log(prior + counts)
        if prior_scale > 0:
            theta = self._climb(theta, counts, prior)
        else:  # the sum of a topic's cells is Gamma(sum of the prior)
            theta += np.log(prior.sum(axis=0)) - np.log((prior + counts).sum(axis=0))
        self.state = SamplerState(sampler, theta, "euclidean", n_burn, n_steps=n_steps, name="The topics")
        self._refresh()
        self.rescale(self.natural_spread())

    @property
    def sampler(self):
        """The sampler in use."""
        return self.state.sampler

    @property
    def theta(self):
        """The state, (n_words, n_topics): logarithms of cells over ``spread``."""
        return self.state.theta

    def _climb(self, theta, counts, prior):
        """Go up to the mode under the normal prior, by damped diagonal Newton steps."""
        precision = self.prior_scale**-2.0
        theta += prior.mean(axis=0) - theta.mean(axis=0)
        for _ in range(_START_STEPS):
            phi = np.exp(theta - theta.max(axis=0))
            phi /= phi.sum(axis=0)
            slope = (prior - theta) * precision + counts - self.counted * phi
            theta += _DAMPING * np.clip(slope / (precision + self.counted * phi), -2.0, 2.0)
        return theta

    def natural_spread(self):
        """Deviations that the curvature of the present topics leads to expect, (n_words, n_topics).

        To the curvature of a cell is added the average of its word over topics, so that the word may move to another
        topic without making the step size unstable.
        """
        if not self.whiten:
            return np.ones(self.theta.shape)
        expected = self.cells * (self.counted / self.total)
        floor = self.prior_scale**-2.0 if self.prior_scale > 0 else np.maximum(1.0, self.word_prior)
        return (floor + expected + expected.mean(axis=1, keepdims=True)) ** -0.5

    def rescale(self, spread):
        """Go on in units of ``spread``; momenta and what was learnt of them begin anew."""
        self.state.theta = np.ascontiguousarray(self.theta * self.spread / spread)
        self.spread = spread
        self.state.begin()

    def _refresh(self):
        """Cells of the softmax and their sums, from the state."""
        self.cells, self.total = np.empty(self.theta.shape), np.empty(self.theta.shape[1])
        softmax.softmax_cells(self.theta, self.spread, self.cells, self.total)

    def replace(self, theta):
        """Take a state that was moved from outside."""
        self.state.theta = theta
        self._refresh()

    def renumber(self, order):
        """Put topics into another order."""
        self.state.theta, self.spread = (np.ascontiguousarray(part[:, order]) for part in (self.theta, self.spread))
        self.state.begin()
        self.counted = self.counted[order]
        self._refresh()

    def copy(self):
        """A copy that can be moved without moving this one."""
        copy = object.__new__(SoftmaxTopics)
        copy.__dict__.update(self.__dict__)
        copy.state = self.state.copy()
        return copy

    def linear(self):
        """The topics as non-negative cells, (n_words, n_topics)."""
        return self.cells

    def extend(self, shape, rng):
        """Append words whose prior is ``shape`` (n_new, n_topics), with draws from it; needs one number as prior.

        Returns their shares in each topic, (n_new, n_topics).
        """
        if self.prior_scale > 0:
            theta = shape + self.prior_scale * rng.standard_normal(shape.shape)
        else:
            theta = np.log(np.maximum(rng.standard_gamma(shape), np.exp(-MAX_LOG)))
        spread = np.vstack([self.spread, np.ones(shape.shape)])
        self.state.theta = np.vstack([self.theta * self.spread, theta])
        self.spread = np.ones(spread.shape)
        self.rescale(spread)
        self._refresh()
        return self.cells[-len(shape) :] / self.total

    def update(self, rows, shape, hyper, rng, pool=None):
        """What the sampler does before it is told a gradient; then the cells and their sums, as `LazyTopics`."""
        if not self.moved_together:
            self.state.advance(self.theta, np.zeros(len(self.theta)), rng, hyper=hyper)
            self._refresh()
        return self.cells, self.total

    def move(self, rows, shape, mass, hyper, rng):
        """Move all words by one step, told the shapes prior + counts and the counts' sums.

        Where topics are moved together with others, from outside, only the gradient is kept here, in ``gradient``.

        Raises
        ------
        ChainDivergedError
            If the state leaves the finite numbers.
        """
        self.counted, self.gradient = mass, np.empty(self.theta.shape)
        prior = np.broadcast_to(self.word_prior, self.theta.shape)
        softmax.topic_gradient(
            self.theta, self.spread, self.cells, self.total, shape, mass, prior, self.prior_scale, self.gradient
        )
        if not self.moved_together:
            self.state.step(self.gradient, mass, rng, hyper=hyper)
            self._refresh()

    def all_up_to_date(self, shape, hyper, rng):
        """The topics (n_words, n_topics), columns summing to 1."""
        return self.cells / self.total
