"""Topics on flat space: a softmax over words, for samplers that use a gradient."""

from copy import copy

import numpy as np

from ...kernels.models.lda import softmax
from ...samplers.state import SamplerState

_START_STEPS = 50  # Newton steps towards the mode given the first counts.
_DAMPING = 0.5
# Largest coordinate scale, which words without tokens in a topic have. With a scale of 10, as under a wide prior,
# topics of 300 documents broke down at a step size of 0.1.
_WIDEST = 5.0
MAX_LOG = 600.0


class SoftmaxTopics:
    r"""Topics as the softmax over words of coordinates on flat space.

    :math:`\phi_{kw} \propto \exp(\theta_{kw})` with :math:`\exp(\theta_{kw}) \sim \mathrm{Gamma}(\beta, 1)`, which is
    the Dirichlet prior of the topics, or with :math:`\theta_{kw} \sim N(\beta, \sigma^2)`. The sampler moves
    :math:`\theta` divided by ``spread``, which is about its posterior standard deviation given the assignments, so that
    one step size suits all cells. Here a caller moves the coordinates with `replace`; `MovedTopics` contains the state
    of a sampler.

    Parameters
    ----------
    sampler : Sampler
        Resolved: with ``step_size_``.
    counts : ndarray of shape (n_words, n_topics)
        Counts of the first assignments; topics start at the mode given them.
    word_prior : float or ndarray of shape (n_words, 1) or (n_words, n_topics)
        :math:`\beta`.
    prior_scale : float
        :math:`\sigma`; 0 for the Dirichlet prior.
    whiten : bool
        Whether to divide by ``spread``; otherwise it is 1 everywhere.

    Attributes
    ----------
    theta : ndarray of shape (n_words, n_topics)
        Logarithms of the cells divided by ``spread``.
    cells : ndarray of shape (n_words, n_topics)
        Unnormalised topics.
    total : ndarray of shape (n_topics,)
        Sums of the cells over words.
    gradient : ndarray of shape (n_words, n_topics)
        Gradient of the log density with respect to ``theta``, at the latest counts.
    """

    is_flat = True

    def __init__(self, sampler, counts, word_prior, prior_scale, whiten):
        self.sampler, self.word_prior, self.prior_scale, self.whiten = sampler, word_prior, prior_scale, whiten
        prior = np.broadcast_to(word_prior, counts.shape)
        self.counted = counts.sum(axis=0)
        self.spread = np.ones(counts.shape)
        theta = np.log(prior + counts)
        if prior_scale > 0:
            theta = self._climb(theta, counts, prior)
        else:  # The likelihood ignores the sum of a topic's cells, whose prior is Gamma(sum of the word prior).
            theta += np.log(prior.sum(axis=0)) - np.log((prior + counts).sum(axis=0))
        self.replace(theta)
        self.rescale(self.natural_spread())

    def _climb(self, theta, counts, prior):
        """Climb to the mode under the normal prior, by damped diagonal Newton steps."""
        precision = self.prior_scale**-2.0
        theta += prior.mean(axis=0) - theta.mean(axis=0)
        for _ in range(_START_STEPS):
            phi = np.exp(theta - theta.max(axis=0))
            phi /= phi.sum(axis=0)
            slope = (prior - theta) * precision + counts - self.counted * phi
            theta += _DAMPING * np.clip(slope / (precision + self.counted * phi), -2.0, 2.0)
        return theta

    def natural_spread(self):
        """Posterior standard deviations predicted by the curvature at the present topics, (n_words, n_topics).

        The average curvature of a word over topics is added to the curvature of each of its cells, so that the step
        size stays stable if the word moves to another topic.
        """
        if not self.whiten:
            return np.ones(self.theta.shape)
        expected = self.cells * (self.counted / self.total)
        normal = self.prior_scale > 0
        floor = max(self.prior_scale**-2.0, _WIDEST**-2.0) if normal else np.maximum(1.0, self.word_prior)
        return (floor + expected + expected.mean(axis=1, keepdims=True)) ** -0.5

    def rescale(self, spread):
        """Continue in coordinates divided by ``spread``."""
        self.theta = np.ascontiguousarray(self.theta * self.spread / spread)
        self.spread = spread

    def replace(self, theta):
        """Set the coordinates, after a caller has moved them."""
        self.theta = theta
        self._refresh()

    def _refresh(self):
        """Compute the cells of the softmax, and their sums."""
        self.cells, self.total = np.empty(self.theta.shape), np.empty(self.theta.shape[1])
        softmax.softmax_cells(self.theta, self.spread, self.cells, self.total)

    def permute(self, order):
        """Reorder the topics."""
        self.spread, self.counted = np.ascontiguousarray(self.spread[:, order]), self.counted[order]
        self.replace(np.ascontiguousarray(self.theta[:, order]))

    def copy(self):
        """An independent copy."""
        return copy(self)

    def linear(self):
        """The topics as non-negative cells, (n_words, n_topics)."""
        return self.cells

    def extend(self, shape, rng):
        """Append new words, drawn from their prior ``shape`` (n_new, n_topics), all of whose entries are equal.

        Returns the probabilities of the new words in each topic, (n_new, n_topics).
        """
        if self.prior_scale > 0:
            theta = shape + self.prior_scale * rng.standard_normal(shape.shape)
        else:
            theta = np.log(np.maximum(rng.standard_gamma(shape), np.exp(-MAX_LOG)))
        spread = np.vstack([self.spread, np.ones(shape.shape)])
        self.theta = np.vstack([self.theta * self.spread, theta])
        self.spread = np.ones(spread.shape)
        self.rescale(spread)
        self._refresh()
        return self.cells[-len(shape) :] / self.total

    def update(self, rows, shape, hyper, rng, pool=None):
        """The cells and their sums, as from `LazyTopics.update`."""
        return self.cells, self.total

    def move(self, rows, shape, mass, hyper, rng):
        """Compute the gradient, given ``shape``, the prior plus the counts, and ``mass``, the counts' sums."""
        self.counted, self.gradient = mass, np.empty(self.theta.shape)
        prior = np.broadcast_to(self.word_prior, self.theta.shape)
        softmax.topic_gradient(
            self.theta, self.spread, self.cells, self.total, shape, mass, prior, self.prior_scale, self.gradient
        )

    def all_up_to_date(self, shape, hyper, rng):
        """The topics (n_words, n_topics), whose columns sum to 1."""
        return self.cells / self.total


class MovedTopics(SoftmaxTopics):
    """`SoftmaxTopics` as the state of a sampler, which moves them.

    Parameters
    ----------
    sampler, counts, word_prior, prior_scale, whiten
        As for `SoftmaxTopics`.
    n_burn : float
        Number of steps during which masses may be learnt.
    n_steps : int, default=0
        Steps that the chain has already made.
    """

    def __init__(self, sampler, counts, word_prior, prior_scale, whiten, n_burn, *, n_steps=0):
        start = np.zeros(counts.shape)
        self.state = SamplerState(sampler, start, "euclidean", n_burn, n_steps=n_steps, name="The topics")
        super().__init__(sampler, counts, word_prior, prior_scale, whiten)

    @property
    def sampler(self):
        """The sampler in use."""
        return self.state.sampler

    @sampler.setter
    def sampler(self, sampler):
        self.state.sampler = sampler

    @property
    def theta(self):
        """The state."""
        return self.state.theta

    @theta.setter
    def theta(self, theta):
        self.state.theta = theta

    def rescale(self, spread):
        """Continue in coordinates divided by ``spread``; momenta and learnt masses are reset."""
        super().rescale(spread)
        self.state.begin()

    def copy(self):
        other = super().copy()
        other.state = self.state.copy()
        return other

    def update(self, rows, shape, hyper, rng, pool=None):
        """Make the part of a step that precedes the gradient, and return the cells and their sums over words."""
        self.state.advance(self.theta, np.zeros(len(self.theta)), rng, hyper=hyper)
        self._refresh()
        return self.cells, self.total

    def move(self, rows, shape, mass, hyper, rng):
        """Move all words by one step, given ``shape``, the prior plus the counts, and ``mass``, the counts' sums.

        Raises
        ------
        ChainDivergedError
            If the state leaves the finite numbers.
        """
        super().move(rows, shape, mass, hyper, rng)
        self.state.step(self.gradient, mass, rng, hyper=hyper)
        self._refresh()
