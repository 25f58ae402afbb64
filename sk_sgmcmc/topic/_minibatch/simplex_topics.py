"""Topics on the simplex: updated lazily, word by word, and their conditional means."""

import numpy as np

from ...chains.chain import TINY
from ...kernels.samplers import simplex
from ...samplers.state import SamplerState

_LEAST_SCALE = 1e-6  # Scale below which it is multiplied into the matrix, to stay within the range of float32.
# Step sizes are capped at this number, which forgets the state as an infinite one does: exp(-LONGEST) is exactly 0.
LONGEST = 750.0

# Rows are drawn in parts of about this many cells. Each part has its own random stream, so that threads can share them.
_CELLS_PER_PART, _MAX_PARTS = 2**16, 16


def in_parts(work, n_rows, width, pool=None):
    """Call ``work(part, start, stop)`` for parts of the rows, in the threads of ``pool`` if it is not None.

    The parts do not depend on the number of threads.
    """
    n_parts = n_parts_of(n_rows, width)
    if n_parts == 1:
        work(0, 0, n_rows)
        return
    cuts = [n_rows * i // n_parts for i in range(n_parts + 1)]
    list((map if pool is None else pool.map)(work, range(n_parts), cuts[:-1], cuts[1:]))


def n_parts_of(n_rows, width):
    """Number of parts into which `in_parts` cuts a matrix."""
    return min(_MAX_PARTS, max(1, n_rows * width // _CELLS_PER_PART))


def shapes_of(rows, word_prior, counts, pool=None):
    """Shapes of ``rows`` between minibatches, (n_rows, n_topics): the prior, plus ``counts`` unless it is None."""
    counts = np.empty((0, word_prior.shape[1])) if counts is None else counts
    shapes = np.empty((rows.size, word_prior.shape[1]))

    def work(_, start, stop):
        simplex.lazy_shape(word_prior, counts, rows[start:stop], shapes[start:stop])

    in_parts(work, *shapes.shape, pool)
    return shapes


class LazyTopics:
    """State of a simplex sampler over (n_words, n_topics), in which words are updated lazily.

    Between two minibatches that contain it, a word has a constant Gamma shape: the prior, plus the counts of stored
    assignments if there are any. Under SCIR, a single transition over the elapsed time therefore brings the word up to
    date when it is next needed.

    Each step needs the sum over all words, which normalises the probability of each word. The sum over words that are
    out of date is replaced by its conditional mean, which is known in closed form. The relative error is of order
    1/sqrt(sum). With an infinite step size, this sum is drawn from its exact distribution instead.

    Samplers without lazy updates move all words at every step, through the same methods `update` and `move`.

    Parameters
    ----------
    sampler : Sampler
        Resolved: with ``step_size_``.
    theta : ndarray of shape (n_words, n_topics)
        Initial state, in the sampler's coordinates.
    shape_mass : ndarray of shape (n_topics,)
        Sums of the shapes over words.
    counted : float or ndarray of shape (n_topics,)
        Number of tokens of each topic, which scales new words under samplers without lazy updates.
    n_steps : int, default=0
        Steps that the chain has already made.
    """

    is_flat = False

    def __init__(self, sampler, theta, shape_mass, counted=0.0, n_steps=0):
        self.state = SamplerState(
            sampler, np.ascontiguousarray(theta, dtype=np.float64), "simplex", n_steps=n_steps, name="The topics"
        )
        self.state.aux = np.zeros((sampler._n_aux, *self.theta.shape))  # Logarithms of the cells are not needed.
        self.now = 0.0
        self.updated_at = np.zeros(self.theta.shape[0])
        self.shape_mass = np.array(shape_mass, dtype=np.float64)
        self.counted = counted
        self.mass = self.linear().sum(axis=0)

    @classmethod
    def started(cls, sampler, counts, prior, stored, rng, n_steps):
        """Topics that start from counts of assignments and the word prior, both (n_words, n_topics).

        With fresh assignments, they are drawn from their distribution given the counts, so that they are as dispersed
        as the posterior from the start. They start at the mean of this distribution if assignments are ``stored``, or
        if the sampler cannot represent draws of rare cells.
        """
        theta = sampler._simplex_start(prior + counts, None if stored else rng)
        shape = prior + counts if stored else prior
        return cls(sampler, theta, shape.sum(axis=0), counts.sum(axis=0), n_steps)

    @property
    def sampler(self):
        """The sampler in use."""
        return self.state.sampler

    @sampler.setter
    def sampler(self, sampler):
        self.state.sampler = sampler

    @property
    def theta(self):
        """The state, (n_words, n_topics), in the sampler's coordinates."""
        return self.state.theta

    def linear(self):
        """The state as non-negative cells, (n_words, n_topics); the state itself if it is linear."""
        return self.sampler._simplex_cells(self.theta)

    def copy(self):
        """An independent copy."""
        other = object.__new__(LazyTopics)
        other.__dict__.update(self.__dict__)
        for name in ("state", "updated_at", "shape_mass", "mass"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def extend(self, shape, rng):
        """Append new words, drawn from their prior ``shape`` (n_new, n_topics), all of whose entries are equal.

        Returns the expected probabilities of the new words in each topic, (n_new, n_topics).
        """
        # Without lazy updates, cells may be known only up to a factor. Their scale is then set by tokens and prior.
        whole = self.mass if self.sampler._is_lazy else self.counted + shape[0] * len(self.theta)
        share = shape / (whole + shape.sum(axis=0))
        cells = np.maximum(rng.standard_gamma(shape), TINY)
        self.mass = self.mass + cells.sum(axis=0)
        self.shape_mass = self.shape_mass + shape.sum(axis=0)
        state = self.state
        state.theta = self.sampler._simplex_extended(self.theta, shape, cells, whole)
        state.aux = np.concatenate([state.aux, np.zeros((state.aux.shape[0], *shape.shape))], axis=1)
        self.updated_at = np.append(self.updated_at, np.full(len(shape), self.now))
        return share

    def update(self, rows, shape, hyper, rng, pool=None):
        """Bring ``rows`` up to date.

        Parameters
        ----------
        rows : ndarray of int64, shape (n_active,)
        shape : ndarray of shape (n_active, n_topics)
            Shapes of these rows since their last update.
        hyper : ndarray
            The sampler's step size and further numbers at this step.
        rng : Generator
        pool : ThreadPoolExecutor or None
            Threads; draws do not depend on them.

        Returns
        -------
        cells : ndarray of shape (n_words, n_topics)
            Non-negative; rows other than ``rows`` may be out of date.
        total : ndarray of shape (n_topics,)
            Divisors that turn a row into probabilities.
        """
        if not self.sampler._is_lazy:
            cells = self.linear()
            return cells, cells.sum(axis=0)
        elapsed = self.now - self.updated_at[rows]
        updated, updated_shape = np.empty_like(self.mass), np.empty_like(self.mass)
        simplex.lazy_mass(self.theta, shape, rows, elapsed, updated, updated_shape)
        self._rest_shape = np.maximum(self.shape_mass - updated_shape, 0.0)
        if hyper[0] >= LONGEST and self.now > 0.0:
            rest = rng.standard_gamma(self._rest_shape)
        else:
            rest = np.maximum(self.mass - updated, 0.0)
        n_parts = n_parts_of(*shape.shape)
        streams = (
            [rng]
            if n_parts == 1
            else [np.random.Generator(np.random.PCG64(s)) for s in rng.integers(2**62, size=n_parts)]
        )

        def bring(i, start, stop):
            part = slice(start, stop)
            self.state.advance(shape[part], elapsed[part], streams[i], rows[part], hyper)

        in_parts(bring, *shape.shape, pool)
        self.updated_at[rows] = self.now
        self._rest, self._updated = rest, simplex.column_sums(self.theta, rows)
        return self.theta, rest + self._updated

    def defer(self, gained, hyper):
        """Defer this step of the rows updated last to their next update.

        With stored assignments, the transition of this step has the shapes that the rows keep until their next update,
        so both merge into one transition.

        Parameters
        ----------
        gained : ndarray of shape (n_topics,)
            Change of the sums of the shapes over words.
        hyper : ndarray
        """
        self.state.n_steps += 1
        h = min(float(hyper[0]), LONGEST)
        decay = np.exp(-h)
        self.now += h
        self.shape_mass = self.shape_mass + gained
        # The conditional mean of every cell, updated or not, decays towards its shape at the same rate.
        self.mass = self.shape_mass + (self._updated + self._rest - self.shape_mass) * decay

    def move(self, rows, signal, extra, hyper, rng):
        """Move ``rows`` by one step at the estimated shapes ``signal``, which hold for this step only.

        Raises
        ------
        ChainDivergedError
            If the state leaves the finite numbers.
        """
        self.state.step(signal, extra, rng, rows, hyper)
        if not self.sampler._is_lazy:
            self.counted = extra
            return
        h = min(float(hyper[0]), LONGEST)
        self.now += h
        self.updated_at[rows] = self.now
        rest = self._rest_shape + (self._rest - self._rest_shape) * np.exp(-h)
        self.mass = rest + self.theta[rows].sum(axis=0)

    def all_up_to_date(self, shape, hyper, rng):
        """Bring every word up to date, and return the topics (n_words, n_topics), whose columns sum to 1."""
        rows = np.arange(self.theta.shape[0])
        cells, _ = self.update(rows, shape, hyper, rng)
        total = cells.sum(axis=0)
        # Set the mass to the exact sum, so that rounding errors do not accumulate.
        self.mass = total.copy() if self.sampler._is_lazy else self.mass
        return cells / total


class MeanTopics:
    r"""The conditional mean of lazily updated topics given the estimated shapes, and its average over time.

    A step of length :math:`h` at shapes :math:`\hat a` moves the mean of every cell to
    :math:`e^{-h} m + (1 - e^{-h}) \hat a`. The shapes :math:`\hat a` differ from the base, the shapes between
    minibatches, only for the words of the minibatch. The difference between :math:`m` and the base is therefore stored
    as a scalar times a matrix, of which a step changes only these words.

    Parameters
    ----------
    beyond : ndarray of shape (n_words, n_topics)
        Initial difference between the mean and the base.
    worth : float
        Number of steps as which the initial difference counts in the average.
    step : int
        Present step of the chain.
    """

    def __init__(self, beyond, worth, step):
        self.beyond, self.scale = np.array(beyond, dtype=np.float32), 1.0
        self.average = self.beyond.copy() if worth > 0 else None
        self.time, self.seen = float(worth), step

    def add(self, rows, counts, forgotten):
        """Make a step at shapes that exceed the base by ``counts`` (n_rows, n_topics); ``forgotten`` is 1 - exp(-h)."""
        self.scale *= 1.0 - forgotten
        if self.scale < _LEAST_SCALE:
            self.beyond *= np.float32(self.scale)
            self.scale = 1.0
        self.beyond[rows] += (forgotten / self.scale) * counts

    def look(self, step):
        """Add the present mean to the average, with a weight proportional to time."""
        passed, self.seen = step - self.seen, step
        self.time += passed
        if self.average is None:
            self.average, self.time = self.beyond * np.float32(self.scale), 0.0
        elif passed:
            weight = 2.0 * passed / (self.time + passed)
            self.average *= np.float32(1.0 - weight)
            self.average += np.float32(weight * self.scale) * self.beyond

    def topics(self, base):
        """The average as topics (n_words, n_topics), whose columns sum to 1; ``base`` is the shape of all words."""
        cells = base + (self.scale * self.beyond if self.average is None else self.average)
        return cells / cells.sum(axis=0)

    def present(self, base):
        """The present mean as topics (n_words, n_topics), whose columns sum to 1."""
        cells = base + self.scale * self.beyond
        return cells / cells.sum(axis=0)

    def extend(self, n_new):
        """Append words that have not occurred in any minibatch."""
        new = np.zeros((n_new, self.beyond.shape[1]), dtype=np.float32)
        self.beyond = np.vstack([self.beyond, new])
        self.average = None if self.average is None else np.vstack([self.average, new])
