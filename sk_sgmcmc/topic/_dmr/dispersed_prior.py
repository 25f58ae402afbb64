"""The document prior that depends on metadata in which each topic has a dispersion of its own."""

import numpy as np

from ...chains.interrupts import interrupts_between_calls
from ...kernels.models import scaled_dirichlet
from ...utils._bit_stable import one_blas_thread
from .._counts.document_prior import DocumentPrior
from .._counts.scaled_dirichlet import ScaledDirichlet, ScaledSweeps, token_priors
from .coefficients import _HIGHEST, _LOWEST, _MAX_CELLS, DiagonalWhitener, Whitener, widened

# The linear predictors of the logarithms of scales are clipped to [-_FARTHEST, _FARTHEST].
_FARTHEST = 12.0
# Passes of burn-in after which the coefficients move to their mode given the assignments, and passes after which their
# coordinates are chosen again.
_FIT_AT, _PRECONDITION_AT = (2, 10, 30), (5, 20, 40, 80, 160)
_ITERATIONS, _HALVINGS = 10, 6  # Most iterations of Fisher scoring, and most times that a step is halved.
_FLAT = 0.05  # Gradients in whitened coordinates below this end the scoring.
_LEAPFROGS = 3  # Leapfrog steps of a trajectory.
# Longest step in whitened coordinates, with which a trajectory covers a quarter of a turn, and the share of accepted
# trajectories to which the step is adapted in burn-in.
_LONGEST, _ACCEPTED = 0.55, 0.8
# Passes from one trajectory to the next: at least the first, more if there are more documents times topics than tokens,
# and at most the second. A trajectory costs about as much as a pass.
_FEWEST_PASSES, _MOST_PASSES = 2, 10


def clipped_exp(eta, lowest, highest):
    """exp(eta) with eta clipped to [lowest, highest], C-contiguous; overwrites eta if it can."""
    eta = np.ascontiguousarray(eta)
    return np.exp(np.clip(eta, lowest, highest, out=eta), out=eta)


def distributions(log_shape, log_scale):
    """The `ScaledDirichlet` with given logarithms of shapes and scales, (n_rows, n_topics)."""
    shape = clipped_exp(log_shape, _LOWEST, _HIGHEST)
    return ScaledDirichlet(shape, clipped_exp(-log_scale, -_FARTHEST, _FARTHEST))


class CountEvidence:
    """The likelihood of the coefficients given the topics of documents and their auxiliary variables.

    Parameters
    ----------
    shard : Shard
        All documents.
    z : ndarray of uint16, shape (n_tokens,)
        Assignments.
    auxiliary : ndarray of shape (n_docs,)
    """

    def __init__(self, shard, z, auxiliary):
        self.rows, self.group = shard.rows, shard.group
        self.tokens = shard.token_ptr, shard.weights, z, shard.group, auxiliary

    def _parameters(self, value):
        log_shape, log_scale = (self.rows.predict(part) for part in halves(value))
        return clipped_exp(log_shape, _LOWEST, _HIGHEST), clipped_exp(log_scale, -_FARTHEST, _FARTHEST)

    def likelihood(self, value, with_value=True):
        """Log likelihood of each topic, (n_topics,), and its gradient, (n_topics, 2 width); no value if not wanted."""
        shape, scale = self._parameters(value)
        total, by_shape, by_scale = np.empty(len(value)), np.empty(shape.shape), np.empty(shape.shape)
        scaled_dirichlet.negative_binomial(*self.tokens, shape, scale, with_value, total, by_shape, by_scale)
        return total, np.hstack([self.rows.pull(by_shape), self.rows.pull(by_scale)])

    def information(self, value):
        """The information about logarithms of shapes and of scales, and about both, each (n_groups, n_topics)."""
        shape, scale = self._parameters(value)
        own, common = np.empty(shape.shape), np.empty(shape.shape)
        scaled_dirichlet.negative_binomial_information(*self.tokens, shape, scale, own, common)
        return own, common


def halves(value):
    """The coefficients of shapes and those of scales, from both, (..., 2 width)."""
    width = value.shape[-1] // 2
    return value[..., :width], value[..., width:]


class SeparateCoordinates:
    """Coordinates of both halves of the coefficients, each with its own.

    Parameters
    ----------
    parts : list of DiagonalWhitener
    """

    def __init__(self, parts):
        self.parts = parts

    def _both(self, name, value):
        return np.hstack([getattr(part, name)(of) for part, of in zip(self.parts, halves(value), strict=True)])

    def back(self, theta):
        """Coefficients from coordinates."""
        return self._both("back", theta)

    def forward(self, value):
        """Coordinates from coefficients."""
        return self._both("forward", value)

    def pull(self, gradient):
        """Gradient with respect to coordinates, from that with respect to coefficients."""
        return self._both("pull", gradient)


class DispersedCoefficients:
    """Coefficients of the shapes and scales of all topics, and their Hamiltonian Monte Carlo sampler.

    Given the assignments and the documents' auxiliary variables, topics are independent, so each has a trajectory of
    its own, which is accepted or rejected by itself. This leaves the posterior unchanged. Trajectories of all topics
    are computed together.

    Parameters
    ----------
    doc_topic_prior : ndarray of shape (n_topics,)
        Exponential of the prior mean of the intercepts of shapes.
    priors : tuple of NormalPrior
        Of the coefficients of shapes and of scales.

    Attributes
    ----------
    value : ndarray of shape (n_topics, 2 * width)
        Coefficients of standardised columns of metadata, intercept last: those of shapes, and those of scales.
    """

    def __init__(self, doc_topic_prior, priors):
        self.priors, width = priors, priors[0].diagonal.size
        self.mean = np.zeros((doc_topic_prior.size, 2 * width))
        self.mean[:, width - 1] = np.log(doc_topic_prior)
        self.reset()

    def reset(self):
        """Restart at the prior mean."""
        self.value, self.coordinates = self.mean.copy(), None
        self.step, self.n_adapted = np.full(len(self.mean), _LONGEST), 0

    def widen(self, priors):
        """Add coefficients of new columns, which start at 0; ``priors`` are for all columns."""
        width = priors[0].diagonal.size
        self.value, self.mean = (
            np.hstack([widened(half, width) for half in halves(of)]) for of in (self.value, self.mean)
        )
        self.priors, self.coordinates = priors, None

    def reorder(self, order):
        """Reorder the topics."""
        self.value, self.mean, self.step = self.value[order], self.mean[order], self.step[order]
        self.coordinates = None  # The next move chooses them again.

    def log_posterior(self, evidence, value, with_value=True):
        """Log posterior density of each topic's coefficients, and its gradient."""
        log_density, gradient = evidence.likelihood(value, with_value)
        shift = value - self.mean
        slope = np.hstack([prior.slope(of) for prior, of in zip(self.priors, halves(shift), strict=True)])
        return log_density - 0.5 * np.sum(shift * slope, axis=1), gradient - slope

    def choose_coordinates(self, evidence):
        """Choose coordinates in which the posterior given the assignments has about unit variance."""
        own, common = evidence.information(self.value)
        rows, n_topics = evidence.rows, len(self.value)
        self.step, self.n_adapted = np.full(n_topics, _LONGEST), 0
        if self.value.size * self.value.shape[1] > _MAX_CELLS:
            sums = ((each.sum(axis=0), rows.pull(each), rows.squares(each)) for each in (own, common))
            precisions = (np.tile(prior.diagonal, (n_topics, 1)) for prior in self.priors)
            parts = [DiagonalWhitener(*of, each) for of, each in zip(sums, precisions, strict=True)]
            self.coordinates = SeparateCoordinates(parts)
            return
        blocks = []
        for k in range(n_topics):
            of_shape, of_both = (rows.gram(np.ascontiguousarray(each[:, k])) for each in (own, common))
            blocks.append(np.block([[of_shape, of_both], [of_both, of_both]]))
        zero = np.zeros((self.value.shape[1] // 2,) * 2)
        prior = np.block([[self.priors[0].matrix(), zero], [zero, self.priors[1].matrix()]])
        self.coordinates = Whitener(np.stack(blocks), np.broadcast_to(prior, (n_topics, *prior.shape)))

    def maximise(self, evidence):
        """Move to the mode given the assignments and auxiliary variables, by Fisher scoring; for burn-in only."""
        log_density, gradient = self.log_posterior(evidence, self.value)
        for _ in range(_ITERATIONS):
            self.choose_coordinates(evidence)
            pulled = self.coordinates.pull(gradient)
            if np.abs(pulled).max(initial=0.0) < _FLAT:
                break
            step, length = self.coordinates.back(pulled), np.ones((len(self.value), 1))
            for _ in range(_HALVINGS):
                value = self.value + length * step
                new_density, new_gradient = self.log_posterior(evidence, value)
                rises = new_density >= log_density
                if rises.all():
                    break
                length[~rises] *= 0.5
            self.value = np.where(rises[:, None], value, self.value)
            gradient = np.where(rises[:, None], new_gradient, gradient)
            log_density = np.where(rises, new_density, log_density)

    def move(self, evidence, rng, adapts):
        """Make a trajectory for each topic; ``adapts`` says whether steps may be adapted to their acceptance."""
        coordinates, theta = self.coordinates, self.coordinates.forward(self.value)
        log_density, gradient = self.log_posterior(evidence, self.value)
        step = (self.step * rng.uniform(0.8, 1.2))[:, None]
        momentum = rng.standard_normal(theta.shape)
        energy = log_density - 0.5 * np.sum(momentum**2, axis=1)
        momentum += 0.5 * step * coordinates.pull(gradient)
        for i in range(_LEAPFROGS):
            is_last = i == _LEAPFROGS - 1
            theta = theta + step * momentum
            value = coordinates.back(theta)
            log_density, gradient = self.log_posterior(evidence, value, is_last)
            momentum += (0.5 if is_last else 1.0) * step * coordinates.pull(gradient)
        gain = log_density - 0.5 * np.sum(momentum**2, axis=1) - energy
        accepts = np.log1p(-rng.random(gain.size)) < gain  # False for NaN.
        self.value = np.where(accepts[:, None], value, self.value)
        if adapts:
            self.n_adapted += 1
            rate = np.exp(np.minimum(np.nan_to_num(gain, nan=-np.inf), 0.0))
            self.step *= np.exp((rate - _ACCEPTED) / np.sqrt(self.n_adapted))
            np.minimum(self.step, _LONGEST, out=self.step)

    def redraw_common_scale(self, rng):
        """Redraw the mean over topics of the coefficients of scales from its prior.

        A factor that is common to all topics cancels in the proportions, so only the prior determines it. The mean and
        the deviations from it are independent, and the auxiliary variables are drawn again before they are used.
        """
        scales = halves(self.value)[1]
        scales += self.priors[1].draw(rng) / np.sqrt(len(scales)) - scales.mean(axis=0)


class DispersedMetadataPrior(DocumentPrior):
    """Scaled Dirichlet priors of groups of documents, whose shapes and scales are log-linear in the metadata.

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
        Exponential of the prior mean of the intercepts of shapes.
    priors : tuple of NormalPrior
        As for `DispersedCoefficients`.
    """

    _cached = None, None  # A shard, and the `ScaledDirichlet` of its groups.

    def __init__(self, alpha, priors):
        super().__init__(alpha)
        self.coefficients = DispersedCoefficients(self.alpha, priors)

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_cached"}

    def table(self, shard, docs=None):
        """Shapes of the groups; chains start from them, with equal scales."""
        priors, group = self.sweep_priors(shard)
        return priors.shape, group if docs is None else group[docs]

    def sweep_priors(self, shard):
        of, priors = self._cached
        if of is not shard:
            with one_blas_thread():  # The last bits may depend on the number of threads.
                priors = distributions(*(shard.rows.predict(part) for part in halves(self.coefficients.value)))
            self._cached = shard, priors
        return priors, shard.group

    token_priors = staticmethod(token_priors)

    def sweeps(self, shard, z, topic_word_prior):
        return ScaledSweeps(shard, z, topic_word_prior)

    def block_sweeps(self, shard, z, topic_word_prior, is_whole):
        return ScaledSweeps(shard, z, topic_word_prior)

    def exchangeable_groups(self):
        return self.alpha  # If topics change places, so do their coefficients.

    def permute(self, order):
        super().permute(order)
        self.coefficients.reorder(order)
        self._cached = None, None

    def draw(self):
        """The coefficients of the logarithms of means, and of scales relative to their mean over topics."""
        shapes, scales = halves(self.coefficients.value)
        dispersion = scales - scales.mean(axis=0)
        return {"coef": shapes + dispersion, "dispersion_coef": dispersion}

    def set_to(self, draw):
        other = object.__new__(DispersedCoefficients)
        means, scales = (draw[name].astype(np.float64) for name in ("coef", "dispersion_coef"))
        other.value = np.hstack([means - scales, scales])
        self.coefficients, self._cached = other, (None, None)

    def widen(self, like):
        """Take the columns of metadata that another prior has."""
        self.coefficients.widen(like.coefficients.priors)
        self._cached = None, None

    def append(self, is_new):
        """Choose the coordinates of the coefficients again before their next move."""
        self.coefficients.coordinates, self._cached = None, (None, None)

    def update(self, assigned, progress):
        """Move the coefficients; after some passes of burn-in, move them to their mode or choose coordinates first."""
        if progress.is_start or (progress.burns_in and progress.n_passes < _FIT_AT[0]):
            return
        shard = assigned.documents
        fits = progress.burns_in and progress.n_passes in _FIT_AT
        adapts = self.coefficients.coordinates is None or (progress.burns_in and progress.n_passes in _PRECONDITION_AT)
        cells = max(1, shard.n_docs * self.alpha.size)
        every = round(np.clip(_FEWEST_PASSES * cells / max(1, shard.n_tokens), _FEWEST_PASSES, _MOST_PASSES))
        if progress.n_passes % every and not fits and not adapts:
            return
        rng = np.random.default_rng([progress.seed, progress.step])
        priors, group = self.sweep_priors(shard)
        auxiliary = np.empty(shard.n_docs)
        scaled_dirichlet.draw_auxiliary(
            0, shard.n_docs, shard.token_ptr, shard.weights, assigned.z, *priors, group, rng, auxiliary
        )
        evidence = CountEvidence(shard, assigned.z, auxiliary)
        with one_blas_thread():
            if fits:
                self.coefficients.maximise(evidence)
            elif adapts:
                self.coefficients.choose_coordinates(evidence)
            self.coefficients.move(evidence, rng, progress.burns_in)
        self.coefficients.redraw_common_scale(rng)
        self._cached = None, None

    def draw_proportions(self, draw, documents, counts, seed):
        """As `DocumentPrior.draw_proportions`: activities given counts are gamma variables, which are normalised."""
        (priors, group), _ = self.in_draw(draw, documents)
        with interrupts_between_calls():
            theta = priors.take(group).draw_given_counts(counts, np.random.default_rng(int(seed)))
        return theta.astype(np.float32)
