"""Coefficients of a Dirichlet-multinomial regression: their whitened coordinates and sampler."""

from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

from ...chains.convergence import VERY_WIDE
from ...covariates.prior import NormalPrior
from ...samplers._euclidean import SGHMC
from ...samplers._thermostats import SGNHT
from ...samplers.state import SamplerState
from .._estimator.checks import check_moves

# The linear predictor is clipped to these bounds, so that its exponential is a usable prior.
_LOWEST, _HIGHEST = -20.0, 10.0
_MAX_CELLS = 4_000_000  # Most entries of all topics' whiteners; with more, each column is only scaled.
_MAX_JOINT = 600  # Most coefficients that are whitened jointly over topics.
_LEAST = 0.1  # Least curvature, as a share of an upper bound.
# In whitened coordinates, entries of the gradient are about standard normal. Exponentials are steep on one side, so a
# rare step too far out would be followed by a much longer step back. Clipping the entries prevents this.
_STEEPEST = 4.0
_ITERATIONS = 5, 20  # Fewest and most iterations of L-BFGS during burn-in.
STEPS_PER_PASS = 4  # Most steps of the coefficients' sampler per pass over stored assignments.


def widened(value, width):
    """Coefficients with further ones, which are 0, before the intercept, which is last."""
    return np.insert(value, [value.shape[1] - 1] * (width - value.shape[1]), 0.0, axis=1)


class CurvatureSums(NamedTuple):
    """Minus the second derivatives of the log likelihood, or bounds of them, summed over groups.

    Here and below, ``width`` is the number of coefficients of a topic, n_metadata + 1.

    Parameters
    ----------
    own : ndarray or tuple of ndarray
        Second derivatives within topics, (n_topics, width, width); or the first three arguments of `DiagonalWhitener`.
    coupling : ndarray of shape (n_topics, width, n_topics, width), or None
        Second derivatives between topics; its diagonal blocks are not used.
    """

    own: object
    coupling: object


class Coefficients:
    """Coefficients of all topics, and the state of their sampler.

    Parameters
    ----------
    sampler : Sampler or None
        A gradient-based sampler on flat space, without a resolved step size. None: `SGHMC`, or with the noisy gradients
        of minibatches `SGNHT`, whose thermostat absorbs the noise.
    stored : bool
        Whether gradients are computed from all documents, or estimated from minibatches.
    doc_topic_prior : ndarray of shape (n_topics,)
        Exponential of the prior mean of the intercepts.
    n_metadata : int
    scales : tuple of float
        Prior standard deviations of the coefficients of standardised columns, and of the intercept.
    smooth : list of (columns, precision), default=()
        Columns whose coefficients have a joint prior, and its precision matrix; see `smoothness`.

    Attributes
    ----------
    prior : NormalPrior
        Prior of a topic's coefficients.
    value : ndarray of shape (n_topics, n_metadata + 1)
        Coefficients of standardised columns, intercept last.
    held : QuadraticSummary or None
        Log likelihood of the coefficients given documents that are no longer in memory.
    """

    held = None
    _squares, _n_moves = 0.0, 0  # See `choose_coordinates`.
    stays_at_mode = False  # Whether the coefficients are not sampled, but optimised after every pass.

    def __init__(self, sampler, stored, doc_topic_prior, n_metadata, scales, smooth=()):
        self.given = sampler
        self.prior = NormalPrior(n_metadata, scales, smooth)
        self.mean = np.zeros((doc_topic_prior.size, n_metadata + 1))
        self.mean[:, -1] = np.log(doc_topic_prior)
        self.begin(stored)
        self.reset()

    def begin(self, stored):
        """Choose the sampler and step size for exact gradients (``stored``) or for gradients of minibatches."""
        sampler = self.given or (SGHMC() if stored else SGNHT())
        share, reach = (0.1, 0.7) if stored else (0.015, 0.1)
        step = sampler._stable_step(1.0, 0.0, share=share, reach=reach) if sampler._picks_step else None
        self.state = SamplerState(
            sampler._resolved(step), self.mean.copy(), "euclidean", name="The coefficients of the metadata",
            parameter="coef_sampler",
        )  # fmt: skip

    def continue_with(self, sampler):
        """Continue with another step size, friction or temperature of the same sampler."""
        self.given = sampler
        self.state.continue_with(sampler)

    def reset(self):
        """Restart at the prior mean."""
        self.value = self.mean.copy()
        self.whitener = self.held = None
        self._n_moves = 0

    def widen(self, prior):
        """Add coefficients of new columns, which start at 0, before the intercept; ``prior`` is for all columns."""
        n_steps = self.state.n_steps
        self._widen(prior)
        self.begin(stored=True)
        self.state.n_steps = n_steps

    def _widen(self, prior):
        self.value, self.mean = (widened(part, prior.diagonal.size) for part in (self.value, self.mean))
        self.prior, self.whitener, self.held, self._n_moves = prior, None, None, 0

    def alone(self):
        """A copy with the values but without the sampler, to send to workers."""
        other = object.__new__(Coefficients)
        other.value = self.value.copy()
        return other

    def reorder(self, order):
        """Reorder the topics."""
        self.value, self.mean, self.state.aux = self.value[order], self.mean[order], self.state.aux[:, order].copy()
        self.whitener = None  # The next step makes it again.
        if self.held is not None:
            self.held.reorder(order)

    def doc_priors(self, rows, value=None):
        """Dirichlet parameters of the groups with metadata ``rows``, (n_groups, n_topics)."""
        eta = np.ascontiguousarray(rows.predict(self.value if value is None else value))
        np.clip(eta, _LOWEST, _HIGHEST, out=eta)
        return np.exp(eta, out=eta)

    def choose_coordinates(self, sums):
        """Choose coordinates in which the posterior has about unit variance in all directions.

        ``sums`` are the `CurvatureSums` of the documents.
        """
        full = not isinstance(sums.own, tuple)
        precision = self._held_precision(full)
        self.whitener = Whitener(sums.own, precision) if full else DiagonalWhitener(*sums.own, precision)
        if sums.coupling is not None:
            self.whitener = JointWhitener(sums.coupling, self.whitener)
        # Squared changes in these coordinates from one move to the next, summed over moves.
        self._squares, self._n_moves = np.zeros(self.value.shape), 0

    def curvature(self, rows, prior, information, scale=1.0, jointly=True):
        """The `CurvatureSums` from which coordinates are chosen.

        Parameters
        ----------
        rows : DenseRows or SparseRows
            Metadata of the groups.
        prior : ndarray of shape (n_groups, n_topics)
            Dirichlet parameters of their documents.
        information : tuple of ndarray
            ``own``, ``common`` and ``tables`` (see `dirichlet_information`), and ``residual``, the derivatives of the
            log likelihood by the linear predictors. The arrays are overwritten.
        scale : float
            Factor N/n of the information.
        jointly : bool
            Whether to compute ``coupling`` for coordinates that are joint to all topics. It is skipped if there are too
            many coefficients.
        """
        curvature, common, tables, residual = information if scale == 1.0 else (scale * part for part in information)
        # Expected and observed curvature differ by the first derivative. The larger of the two keeps steps stable: a
        # group without tokens of a topic has no expected curvature, but a steep gradient.
        curvature += np.maximum(-residual, 0.0)
        curvature -= common[:, None] * prior**2
        np.maximum(curvature, np.multiply(tables, _LEAST, out=tables), out=curvature)
        coupling = -rows.coupling(prior, common) if jointly and self.value.size <= _MAX_JOINT else None
        if self.value.size * self.value.shape[1] <= _MAX_CELLS:
            return CurvatureSums(_grams(rows, curvature), coupling)
        return CurvatureSums((curvature.sum(axis=0), rows.pull(curvature), rows.squares(curvature)), coupling)

    def _held_precision(self, full):
        """Precision of the prior plus that of ``held``, for each topic: matrices if ``full``, else their diagonals."""
        own = self.prior.matrix() if full else self.prior.diagonal
        held = 0.0 if self.held is None else self.held.of_topics(full)
        return np.broadcast_to(own + held, (len(self.value), *own.shape))

    def gradient(self, slope, value):
        """Gradient of the log posterior, (n_topics, n_metadata + 1), from ``slope``, the log likelihood's gradient."""
        held = 0.0 if self.held is None else self.held.gradient(value)
        return slope + held - self.prior.slope(value - self.mean)

    def move(self, slope_of, rng, n_steps=1, noise=0.0):
        """Make steps of the sampler, given the same topics of documents.

        Parameters
        ----------
        slope_of : callable
            Maps coefficients to the gradient of the log likelihood.
        rng : Generator
        n_steps : int
        noise : float
            Variance of the estimated gradient in whitened coordinates, about N/n.
        """
        before = self.whitener.forward(self.value)
        for _ in range(n_steps):
            self._step(slope_of, rng, noise)
        self._squares += (self.state.theta - before) ** 2
        self._n_moves += 1

    def _step(self, slope_of, rng, noise):
        """Make one step of the sampler."""
        state, (n_topics, width) = self.state, self.value.shape
        state.theta = self.whitener.forward(self.value)
        state.advance(state.theta.copy(), np.zeros(n_topics), rng)
        value = self.whitener.back(state.theta)
        gradient = self.whitener.pull(self.gradient(slope_of(value), value))
        steepest = _STEEPEST * np.sqrt(1.0 + noise)
        np.clip(gradient, -steepest, steepest, out=gradient)
        state.step(gradient, np.zeros(max(1, width)), rng)
        self.value = self.whitener.back(state.theta)

    def checks(self, draws):
        """Check that the variance of draws, (n_kept, n_topics, width), is neither too small nor too large.

        It is compared with the variance given the topics' counts, which is about 1 in whitened coordinates. The change
        from one move to the next shows whether draws are too wide: the variance over all draws, and the change between
        draws that lie many sweeps apart, are larger, since the counts change too.
        """
        if self.whitener is None or not self._n_moves:
            return []
        theta = np.stack([self.whitener.forward(value) for value in draws.astype(np.float64)])
        over_all, between = theta.var(axis=0, ddof=1), self._squares / (2.0 * self._n_moves)
        narrow, wide = (np.median(variance) / self.state.sampler.temperature for variance in (over_all, between))
        return check_moves(
            "coefficients of the metadata", "the topics of all words", narrow, wide, VERY_WIDE, "a coef_sampler with "
        )

    def search(self, affordable):
        """Options of L-BFGS in burn-in, when a few iterations suffice; more are made if they are ``affordable``."""
        return {"maxiter": int(np.clip(5.0 * affordable, *_ITERATIONS)), "gtol": 1e-2}

    def maximise(self, likelihood_of, options):
        """Move to the mode given the topics of documents, by L-BFGS with the given options.

        ``likelihood_of`` maps coefficients to the log likelihood and its gradient.
        """

        def negative(theta):
            value = self.whitener.back(theta.reshape(self.value.shape))
            log_likelihood, slope = likelihood_of(value)
            shift = value - self.mean
            gradient = self.whitener.pull(self.gradient(slope, value))
            return 0.5 * self.prior.penalty(shift) - log_likelihood, -gradient.ravel()

        start = self.whitener.forward(self.value).ravel()
        found = optimize.minimize(negative, start, jac=True, method="L-BFGS-B", options=options)
        if np.all(np.isfinite(found.x)):
            self.value = self.whitener.back(found.x.reshape(self.value.shape))


class OptimisedCoefficients(Coefficients):
    """Coefficients that are not sampled, but optimised after every pass, given the topics of documents."""

    stays_at_mode = True

    def begin(self, stored):
        """Do nothing, since there is no sampler."""

    def widen(self, prior):
        """As for `Coefficients`."""
        self._widen(prior)

    def reorder(self, order):
        """Reorder the topics."""
        self.value, self.mean, self.whitener = self.value[order], self.mean[order], None

    def search(self, affordable):
        """Options of L-BFGS for convergence to about a thousandth of a standard deviation in whitened coordinates."""
        return {"maxiter": 500, "gtol": 1e-3, "ftol": 1e-14}

    def checks(self, draws):
        """No checks: the variance of a mode over passes is known to be too small."""
        return []


def _grams(rows, curvature):
    """Z^T diag(c) Z for each column c of ``curvature`` (n_groups, n_topics)."""
    return np.stack([rows.gram(each) for each in np.ascontiguousarray(curvature.T)])


class Whitener:
    """Whitened coordinates, with a matrix for each topic: their posterior is about standard normal.

    Parameters
    ----------
    own : ndarray of shape (n_topics, width, width)
        Curvature of the documents' log likelihood.
    precision : ndarray of shape (n_topics, width, width)
        Precision of the prior, plus the curvature of documents that are no longer in memory.
    """

    def __init__(self, own, precision):
        eye = np.eye(precision.shape[1])
        self.matrices, self.inverses = np.empty(precision.shape), np.empty(precision.shape)
        for k, each in enumerate(own):
            P = each + precision[k]
            d = 1.0 / np.sqrt(np.diag(P))
            root = linalg.cholesky(P * d[:, None] * d, lower=True)
            self.matrices[k] = d[:, None] * linalg.solve_triangular(root, eye, lower=True).T
            self.inverses[k] = root.T / d

    def back(self, theta):
        """Coefficients from coordinates; both are (n_topics, width)."""
        return (self.matrices @ theta[..., None])[..., 0]

    def forward(self, value):
        """Coordinates from coefficients."""
        return np.ascontiguousarray((self.inverses @ value[..., None])[..., 0])

    def pull(self, gradient):
        """Gradient with respect to coordinates, from that with respect to coefficients."""
        return np.ascontiguousarray((gradient[:, None] @ self.matrices)[:, 0])


class JointWhitener(Whitener):
    """Whitened coordinates that are joint to all topics, which are coupled by the sum of each document's prior.

    Parameters
    ----------
    coupling : ndarray of shape (n_topics, width, n_topics, width)
        Curvature between topics; overwritten.
    by_topic : Whitener
        Coordinates whitened topic by topic, which the joint ones refine.
    """

    def __init__(self, coupling, by_topic):
        matrices = by_topic.matrices
        n_topics, width = matrices.shape[:2]
        H = coupling
        H[np.arange(n_topics), :, np.arange(n_topics)] = 0.0  # The matrices contain these blocks already.
        H = np.einsum("kab,kajc,jcd->kbjd", matrices, H, matrices, optimize=True)
        H = H.reshape(n_topics * width, -1) + np.eye(n_topics * width)
        values, vectors = np.linalg.eigh(H)
        roots = np.sqrt(np.maximum(values, _LEAST))
        self.matrix = (matrices @ (vectors / roots).reshape(n_topics, width, -1)).reshape(n_topics * width, -1)
        back = np.swapaxes(by_topic.inverses, 1, 2) @ (vectors * roots).reshape(n_topics, width, -1)
        self.inverse = np.ascontiguousarray(back.reshape(n_topics * width, -1).T)

    def back(self, theta):
        """Coefficients from coordinates."""
        return (self.matrix @ theta.ravel()).reshape(theta.shape)

    def forward(self, value):
        """Coordinates from coefficients."""
        return (self.inverse @ value.ravel()).reshape(value.shape)

    def pull(self, gradient):
        """Gradient with respect to coordinates, from that with respect to coefficients."""
        return (gradient.ravel() @ self.matrix).reshape(gradient.shape)


class DiagonalWhitener(Whitener):
    """Coordinates for many columns: columns are centred, and each coefficient is scaled.

    Without centring, the intercept would be correlated with the coefficients of all columns of one sign.

    Parameters
    ----------
    total, first, second : ndarray of shape (n_topics,), (n_topics, width), (n_topics, width)
        Sums over groups of the curvature by their linear predictors, of its product with the columns, and of its
        product with their squares.
    precision : ndarray of shape (n_topics, width)
        Diagonals of the matrices that `Whitener` takes.
    """

    def __init__(self, total, first, second, precision):
        total = total[:, None]
        self.centre = np.array(first / np.maximum(total, 1e-300))
        self.centre[:, -1] = 0.0
        self.spread = 1.0 / np.sqrt(np.maximum(second - self.centre**2 * total, 0.0) + precision)

    def back(self, theta):
        """Coefficients from coordinates."""
        value = self.spread * theta
        value[:, -1] -= np.sum(self.centre * value, axis=1)
        return value

    def forward(self, value):
        """Coordinates from coefficients."""
        theta = value.copy()
        theta[:, -1] += np.sum(self.centre * value, axis=1)
        return theta / self.spread

    def pull(self, gradient):
        """Gradient with respect to coordinates, from that with respect to coefficients."""
        return self.spread * (gradient - self.centre * gradient[:, -1:])


class QuadraticSummary:
    """Second-order expansion of the log likelihood of documents that are no longer in memory.

    Parameters
    ----------
    about : ndarray of shape (n_topics, width)
        Coefficients about which the log likelihood is expanded.
    slope, matrix : ndarray
        Gradient, and minus the second derivatives; see `expansion`.

    Notes
    -----
    The second derivatives are the observed ones, with negative curvature set to 0. Up to 600 coefficients they are
    joint to all of them, otherwise topic by topic, or only diagonal if the matrices would be too large.
    """

    def __init__(self, about, slope, matrix):
        self.about, self.slope = about.copy(), slope
        if matrix.ndim == 2:
            self.matrix = np.maximum(matrix, 0.0)
        elif matrix.ndim == 3:
            self.matrix = _positive(matrix)
        else:
            self.matrix = _positive(matrix.reshape(about.size, -1)).reshape(matrix.shape)

    def reorder(self, order):
        """Reorder the topics."""
        self.about, self.slope, self.matrix = self.about[order], self.slope[order], self.matrix[order]
        if self.matrix.ndim == 4:
            self.matrix = self.matrix[:, :, order]

    def gradient(self, value):
        """Gradient with respect to the coefficients, (n_topics, width)."""
        shift = value - self.about
        if self.matrix.ndim == 2:
            return self.slope - self.matrix * shift
        if self.matrix.ndim == 3:
            return self.slope - np.einsum("kab,kb->ka", self.matrix, shift)
        return self.slope - np.tensordot(self.matrix, shift, 2)

    def of_topics(self, full):
        """Minus the second derivatives within topics, (n_topics, width, width) if ``full``, else their diagonals."""
        if self.matrix.ndim == 2:
            return self.matrix
        blocks = np.einsum("kakb->kab", self.matrix) if self.matrix.ndim == 4 else self.matrix
        return blocks if full else np.einsum("kaa->ka", blocks)


def expansion(rows, prior, information):
    """The gradient of the documents' log likelihood and minus its second derivatives, for `QuadraticSummary`.

    Parameters
    ----------
    rows : DenseRows or SparseRows
        Metadata of the groups.
    prior : ndarray of shape (n_groups, n_topics)
        Dirichlet parameters of their documents.
    information : tuple of ndarray
        As for `Coefficients.curvature`.
    """
    own, common, _, residual = information
    slope = rows.pull(residual)
    curvature = own - residual - common[:, None] * prior**2
    if slope.size * slope.shape[1] > _MAX_CELLS:
        return slope, rows.squares(curvature)
    blocks = _grams(rows, curvature)
    if slope.size > _MAX_JOINT:
        return slope, blocks
    joint = -rows.coupling(prior, common)
    topics = np.arange(len(slope))
    joint[topics, :, topics] = blocks
    return slope, joint


def _positive(matrix):
    """The nearest positive semi-definite matrix, for one matrix or a stack."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0.0)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
