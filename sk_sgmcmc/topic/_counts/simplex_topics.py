"""Topics on the simplex: updated lazily, word by word, and their conditional means."""

import numpy as np

from ...chains.chain import TINY
from ...kernels.samplers import simplex
from ...samplers.state import SamplerState

_LEAST_SCALE = 1e-6  # of the scale, at which it is applied, so that float32 holds the numbers
# After this time the state is wholly forgotten, as after an infinite one: exp(-LONGEST) is exactly 0.
LONGEST = 750.0

# Rows are drawn in parts of about this many cells, each with a random stream of its own, so that threads share them.
_CELLS_PER_PART, _MAX_PARTS = 2**16, 16


def in_parts(work, n_rows, width, pool=None):
    """Call ``work(part, start, stop)`` for parts of the rows, in the threads of ``pool`` if there is one.

    The parts do not depend on the threads.
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
    """Shapes of ``rows`` between minibatches, (n_rows, n_topics): the prior, and ``counts`` unless it is None."""
    counts = np.empty((0, word_prior.shape[1])) if counts is None else counts
    shapes = np.empty((rows.size, word_prior.shape[1]))

    def work(_, start, stop):
        simplex.lazy_shape(word_prior, counts, rows[start:stop], shapes[start:stop])

    in_parts(work, *shapes.shape, pool)
    return shapes


class LazyTopics:
    """State of a simplex sampler over (n_words, n_topics), and the time up to which each word is up to date.

    Between minibatches that contain it, a word keeps a constant shape: the prior, plus the counts of stored assignments
    if there are any. So under SCIR one transition over the elapsed time brings it up to date when it is next needed.
    The normaliser is needed at every step, since the sum over all words enters the probability of each. The part of
    the words that are out of date is replaced by its conditional mean, which is known in closed form: an approximation
    of relative order 1/sqrt(sum). (With an infinite step this part is drawn from its exact law instead.)

    Samplers that cannot update lazily move all words at every step, through the same two methods.

    Parameters
    ----------
    sampler : Sampler
        Resolved: with ``step_size_``.
    theta : ndarray of shape (n_words, n_topics)
        Start, in the sampler's coordinates.
    shape_mass : ndarray of shape (n_topics,)
        Sum over words of their shapes.
    counted : float or ndarray of shape (n_topics,)
        Tokens of each topic: the scale of new words under samplers that do not update lazily.
    n_steps : int, default=0
        Steps that the chain has already made.
    """

    is_flat = False

    def __init__(self, sampler, theta, shape_mass, counted=0.0, n_steps=0):
        self.state = SamplerState(
            sampler, np.ascontiguousarray(theta, dtype=np.float64), "simplex", n_steps=n_steps, name="The topics"
        )
        self.state.aux = np.zeros((sampler._n_aux, *self.theta.shape))  # logarithms of the cells are not needed
        self.now = 0.0
        self.updated_at = np.zeros(self.theta.shape[0])
        self.shape_mass = np.array(shape_mass, dtype=np.float64)
        self.counted = counted
        self.mass = self.linear().sum(axis=0)

    @classmethod
    def started(cls, sampler, counts, prior, stored, rng, n_steps):
        """Topics that start from counts of assignments and the topics' prior, both (n_words, n_topics).

        From the conditional law given the counts if these are fresh, so that topics are as dispersed as the posterior
        from the start; from its mean if assignments are ``stored``, or if the sampler does not reach draws of rare
        cells.
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
        """A copy that moves without moving this one."""
        other = object.__new__(LazyTopics)
        other.__dict__.update(self.__dict__)
        for name in ("state", "updated_at", "shape_mass", "mass"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def extend(self, shape, rng):
        """Append words, with draws from their prior ``shape`` (n_new, n_topics), which is one number throughout.

        Returns the shares of each topic that are expected of them, (n_new, n_topics).
        """
        # Without lazy updates cells may be known up to a factor only: their scale is then that of tokens and prior.
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
            Their shapes since their last update.
        hyper : ndarray
            The sampler's step size and further numbers at this step.
        rng : Generator
        pool : ThreadPoolExecutor or None
            Threads for drawing; changes no draw.

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
        """Defer the step of the rows updated last, whose shapes grew by ``gained`` in sum.

        For stored assignments: the transition of this step is at the shape that the rows keep from now on, so it
        merges with the time until their next update, and is made then.

        Parameters
        ----------
        gained : ndarray of shape (n_topics,)
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
        """Move ``rows`` by one step at the estimated shapes ``signal``, after which their shapes are as before.

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
        # Take the exact sum, so that rounding errors do not accumulate.
        self.mass = total.copy() if self.sampler._is_lazy else self.mass
        return cells / total


class MeanTopics:
    r"""The conditional mean of lazily updated topics given the shapes that minibatches estimated, and its average.

    A step of length :math:`h` at shapes :math:`\hat a` moves the mean of every cell to
    :math:`e^{-h} m + (1 - e^{-h}) \hat a`, where :math:`\hat a` exceeds the shape between minibatches, the base, in the
    words of the minibatch only. So what :math:`m` has beyond the base is kept as a matrix that a step changes in these
    words, times a number.

    Parameters
    ----------
    beyond : ndarray of shape (n_words, n_topics)
        What the first shapes have beyond the base.
    worth : float
        Steps that these stand for in the average.
    step : int
        Present step of the chain.
    """

    def __init__(self, beyond, worth, step):
        self.beyond, self.scale = np.array(beyond, dtype=np.float32), 1.0
        self.average = self.beyond.copy() if worth > 0 else None
        self.time, self.seen = float(worth), step

    def add(self, rows, counts, forgotten):
        """A step at shapes that have ``counts`` (n_rows, n_topics) beyond the base, and forgets a share."""
        self.scale *= 1.0 - forgotten
        if self.scale < _LEAST_SCALE:
            self.beyond *= np.float32(self.scale)
            self.scale = 1.0
        self.beyond[rows] += (forgotten / self.scale) * counts

    def look(self, step):
        """Take the present mean into the average, in which weights grow in proportion to time."""
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
        """The present mean likewise."""
        cells = base + self.scale * self.beyond
        return cells / cells.sum(axis=0)

    def extend(self, n_new):
        """Append words that no minibatch has held."""
        new = np.zeros((n_new, self.beyond.shape[1]), dtype=np.float32)
        self.beyond = np.vstack([self.beyond, new])
        self.average = None if self.average is None else np.vstack([self.average, new])
