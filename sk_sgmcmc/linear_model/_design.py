"""Generalised linear models: likelihoods, and coordinates in which the posterior has about unit spread."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg, sparse, special

from ..chains.checks import FAR_FROM_MODE
from ..chains.convergence import MIN_KEPT, evenly
from ..dense.rows import LARGEST, SMALLEST, DenseRows, SparseRows, moments
from ..kernels.models.linear import design as layout
from ._leading import unit_coordinates
from ._wide import WidePosterior

_SEEN_ROWS, _SEEN_DRAWS = 300, 300  # at most, for the log likelihood whose convergence is checked


class Classes:
    """Logistic and softmax likelihoods of class labels."""

    is_mild = True  # whether the curvature is bounded, so that steps may be large

    @staticmethod
    def value(y, weight, eta):
        """Weighted log likelihood of class codes given linear predictors (n, 1 or n_classes)."""
        if eta.shape[1] == 1:
            return weight @ (y * eta[:, 0] - np.logaddexp(0.0, eta[:, 0]))
        return weight @ (eta[np.arange(len(y)), y] - special.logsumexp(eta, axis=1))

    @staticmethod
    def each(y, eta):
        """Log likelihood of each row."""
        if eta.shape[1] == 1:
            return y * eta[:, 0] - np.logaddexp(0.0, eta[:, 0])
        return eta[np.arange(y.size), y] - special.logsumexp(eta, axis=1)

    @staticmethod
    def residuals(y, weight, eta):
        """Derivative of `value` with respect to the predictors, and the probabilities; both shaped like ``eta``."""
        if eta.shape[1] == 1:
            p = special.expit(eta)
            return weight[:, None] * (y[:, None] - p), p
        p = special.softmax(eta, axis=1)
        return weight[:, None] * ((y[:, None] == np.arange(eta.shape[1])) - p), p

    @staticmethod
    def curvature(weight, p):
        """Minus the second derivative of `value` with respect to each predictor, without the mixed ones."""
        return weight[:, None] * p * (1.0 - p)

    @staticmethod
    def curved(weight, p, away):
        """Minus the second derivative of `value` times a change of the predictors, shaped like them."""
        if p.shape[1] == 1:
            return weight[:, None] * p * (1.0 - p) * away
        weighted = p * away
        return weight[:, None] * (weighted - p * weighted.sum(axis=1, keepdims=True))

    @staticmethod
    def remainder(weight, then, now):
        """Change of the mean response from predictors ``then`` to ``now``, less its first order; needs no responses."""
        away = now - then
        if then.shape[1] == 1:
            p = special.expit(then)
            return weight[:, None] * (special.expit(now) - p - p * (1.0 - p) * away)
        p = special.softmax(then, axis=1)
        slope = p * (away - (p * away).sum(axis=1, keepdims=True))
        return weight[:, None] * (special.softmax(now, axis=1) - p - slope)

    @staticmethod
    def largest_curvature(y, weight, n_predictors):
        """A rough value of `curvature` before any predictor is known."""
        most = 0.25 if n_predictors == 1 else (n_predictors - 1.0) / n_predictors**2
        return np.full((weight.size, n_predictors), most) * weight[:, None]

    @staticmethod
    def start(y, weight):
        """Intercept of centred columns at which the search for the mode starts."""
        return 0.0

    @staticmethod
    def outputs(y, eta):
        """Columns that the kernels read: class, and at the mode predictors, probabilities and log normaliser."""
        if eta.shape[1] > 1:
            return np.column_stack([y, eta, special.softmax(eta, axis=1), special.logsumexp(eta, axis=1)])
        return np.column_stack([y, eta, special.expit(eta), np.logaddexp(0.0, eta)])

    @staticmethod
    def responses(outputs):
        """The responses in the columns of `outputs`."""
        return outputs[:, 0].astype(np.int64)


class Counts:
    """Poisson likelihood with a log link; the exposures are part of the weights."""

    is_mild = False

    @staticmethod
    def value(y, weight, eta):
        """Weighted log likelihood given linear predictors (n, 1), without the factorials."""
        with np.errstate(over="ignore"):  # an infinite mean has the value -inf, which any search rejects
            return weight @ (y * eta[:, 0] - np.exp(eta[:, 0]))

    @staticmethod
    def each(y, eta):
        """Log likelihood of each row, without the factorial."""
        with np.errstate(over="ignore"):
            return y * eta[:, 0] - np.exp(eta[:, 0])

    @staticmethod
    def residuals(y, weight, eta):
        """Derivative of `value` with respect to the predictors, and the means; both shaped like ``eta``."""
        with np.errstate(over="ignore"):
            mean = np.exp(eta)
        return weight[:, None] * (y[:, None] - mean), mean

    @staticmethod
    def curvature(weight, mean):
        """Minus the second derivative of `value` with respect to the predictor."""
        return weight[:, None] * mean

    @staticmethod
    def curved(weight, mean, away):
        """As `Classes.curved`."""
        return weight[:, None] * mean * away

    @staticmethod
    def remainder(weight, then, now):
        """As `Classes.remainder`."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean, away = np.exp(then), now - then
            return weight[:, None] * (np.exp(now) - mean - mean * away)

    @staticmethod
    def largest_curvature(y, weight, n_predictors):
        """A rough value of `curvature` before any predictor is known."""
        return (weight * np.maximum(y, np.average(y, weights=weight)))[:, None]

    @staticmethod
    def start(y, weight):
        """Logarithm of the mean response, at which the search for the mode starts."""
        return np.log(max(np.average(y, weights=weight), 0.5 / weight.sum()))

    @staticmethod
    def outputs(y, eta):
        """Columns that the kernels read: count, predictor at the mode, and its exponential."""
        return np.column_stack([y, eta, np.exp(eta)])

    @staticmethod
    def responses(outputs):
        """As `Classes.responses`."""
        return outputs[:, 0]


CLASSES, COUNTS = Classes(), Counts()


_MAX_NEWTON = 60
_EXACT, _NEAR = 1e-14, 1e-7  # relative gain in log posterior below which Newton's method stops
# For averaging the Hessian over a Gaussian: the number of antithetic pairs of points, the width of the points in each
# iteration in standard deviations, and the largest move of the mean in an iteration, in the same units per coefficient.
_PAIRS = 4
_WIDTHS = (0.5, 0.7, 0.9, 1.0, 1.0, 1.0)
_REACH = 0.3
_PIVOT = 1e-7  # smallest diagonal entry of the Hessian's root, below which rounding dominates
_RIDGES = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)  # tried in turn on a diagonal of ones until the factorisation succeeds
MAX_ENTRIES = 1000  # above this number of coefficients, `DiagonalDesign` replaces `Design`


@dataclass
class Quadratic:
    """A Gaussian prior on the coefficients of the columns as given, and on the intercept at the reference.

    ``mean`` is (D,). ``precision`` is (D, D), or (D,) if it is diagonal. D = n_predictors * (n_features + intercept);
    all entries of one predictor are contiguous.
    """

    mean: np.ndarray
    precision: np.ndarray

    def tighter(self, more):
        """The same Gaussian with the diagonal ``more`` added to its precision."""
        return Quadratic(self.mean, self.precision + (more if self.precision.ndim == 1 else np.diag(more)))


def check_scale(name, scale):
    """Raise if the scale of a prior is too small to square in float64."""
    if scale is not None and scale < SMALLEST:
        raise ValueError(f"{name}={scale!r} is too small to compute with in float64; use at least {SMALLEST:g}.")


def independent_prior(n_predictors, n_features, prior_scale, intercept_scale):
    """A `Quadratic` of independent normals; ``intercept_scale`` is None for a model without an intercept."""
    for name, scale in (("prior_scale", prior_scale), ("intercept_prior_scale", intercept_scale)):
        check_scale(name, scale)
    each = np.full(n_features, min(float(prior_scale), LARGEST) ** -2)
    if intercept_scale is not None:
        each = np.append(each, min(float(intercept_scale), LARGEST) ** -2)
    return Quadratic(np.zeros(n_predictors * each.size), np.tile(each, n_predictors))


def reference_of(mean, reference, fit_intercept):
    """The row at which the intercept has its prior: ``reference`` if earlier rows fixed it, else the columns' mean."""
    if not fit_intercept:
        return np.zeros(mean.size)
    return mean if reference is None else reference


def joined(head, parts, kinks, is_sparse, given=False, leading=None):
    """The vector ``params`` that the kernels of `kernels.models.linear` read.

    Parameters
    ----------
    head : list of float
        The first five numbers of ``params``.
    parts : list of ndarray
        Arrays that follow the head.
    kinks : Kinks or None
        Appended at the end; the head contains their position.
    is_sparse : bool
    given : bool, default=False
        Whether kernels use the quadratic matrix although control variates are of second order.
    leading : LeadingDirections, default=None
        Appended like the kinks, if there are any directions.
    """
    parts = [np.array([*head, 0.0, given, 0.0, 0.0], dtype=float), *parts]
    if leading is not None and leading.rank:
        parts[0][layout.LEADING] = sum(part.size for part in parts)
        parts.append(leading.params())
    if kinks is not None:
        parts[0][layout.KINKS] = sum(part.size for part in parts)
        parts.append(kinks.rows(is_sparse).ravel())
    return np.concatenate(parts)


def check_distance_from_mode(theta, temperature):
    """The check that draws (n_chains, n_kept, D) in whitened coordinates lie near the mode; a list of at most one."""
    if theta.shape[1] < MIN_KEPT:
        return []
    away, spread = np.abs(theta.mean(axis=(0, 1))).max(), theta.std(axis=(0, 1)).max()
    value, limit = max(away, spread), FAR_FROM_MODE.limit * max(1.0, np.sqrt(temperature))
    if value <= limit:
        return [FAR_FROM_MODE.passed(value, limit)]
    meaning = (
        "The posterior is far from the Gaussian at its mode, which defines the coordinates of the chain. Draws lie "
        f"{away:.3g} standard deviations of this Gaussian from the mode, and spread over {spread:.3g} (at most "
        f"{limit:.3g}). They cannot be trusted."
    )
    remedy = (
        "Where columns separate the classes, use a smaller prior_scale. Where a class has no rows yet, add some. Where "
        "a column has outliers, such as a code for missing values, correct or transform it. Otherwise use a larger "
        'n_iter, or sampler="nuts".'
    )
    return [FAR_FROM_MODE.fired(value, meaning, remedy, limit)]


def factorised(hessian):
    """Units d (D,) and the lower Cholesky factor of diag(d) H diag(d), which has a diagonal of ones.

    The scaling makes the factorisation independent of the columns' units. Only the prior determines some directions:
    the difference of equal columns, or a constant added to all classes. If the spread of the columns is a million times
    the inverse scale of the prior, rounding makes the matrix singular in these directions. A small ridge then bounds
    them, which changes no prediction.
    """
    d = 1.0 / np.sqrt(np.diag(hessian))
    scaled = hessian * d[:, None] * d
    for ridge in _RIDGES:
        try:
            root = linalg.cholesky(scaled + ridge * np.eye(d.size) if ridge else scaled, lower=True)
        except linalg.LinAlgError:
            continue
        if root.diagonal().min() > _PIVOT:
            return d, root
    raise ValueError("The columns of X differ too much in spread and shift for float64; standardise them.")


def whitener_of(d, root):
    """The matrix T for which T T^T is the inverse Hessian, given the result of `factorised`."""
    return d[:, None] * linalg.solve_triangular(root, np.eye(d.size), lower=True).T


class Design:
    """Coordinates of the coefficients of standardised columns: relative to the mode, and whitened by the Hessian.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (n, n_features)
    y : ndarray of shape (n,)
        Responses; with `CLASSES`, integer class codes.
    weight : ndarray of shape (n,)
    n_predictors : int
        Number of linear predictors of a row: the number of classes if there are more than two, else 1.
    prior : Quadratic
    fit_intercept, control_variates : bool
    reference : ndarray of shape (n_features,), default=None
        The row at which the intercept has its prior. None: the mean of these rows.
    likelihood : Classes or Counts, default=CLASSES
    start : ndarray of shape (D,), default=None
        Where the search for the mode starts, for example at the mode of the same rows under a similar prior.

    Attributes
    ----------
    mode, whitener : (D,), (D, D)
        Coefficients of standardised columns are ``mode + whitener @ theta``.
    summary : Quadratic
        The Gaussian that replaces these rows when a stream continues.
    """

    kinks = None  # the `Kinks` of a Laplace prior
    is_bare = is_wide = False  # see `DiagonalDesign`
    predictor_spread = 0.0  # see `DiagonalDesign`

    def __init__(
        self,
        X,
        y,
        weight,
        n_predictors,
        prior,
        fit_intercept,
        control_variates,
        reference=None,
        likelihood=CLASSES,
        start=None,
    ):
        self.n_predictors, self.fit_intercept, self.control = n_predictors, fit_intercept, control_variates
        self.likelihood, self.prior = likelihood, prior
        mean, spread, varies = moments(X, weight)
        self.reference = reference_of(mean, reference, fit_intercept)
        self.shift = mean if fit_intercept else np.zeros(X.shape[1])
        if not fit_intercept:
            spread = np.sqrt(spread**2 + mean**2)
            varies = spread > 0
        self.scale = np.where(varies, spread, 1.0)
        rows, back, self.forward = self.rows(X), self._back(self.reference), self._forward(self.reference)
        precision = np.diag(prior.precision) if prior.precision.ndim == 1 else prior.precision
        precision = self._blocks(back.T, self._blocks(back.T, precision).T)
        mean = self._each(self.forward, prior.mean)
        averaged = n_predictors > 1
        self.mode = self._newton(rows, y, weight, mean, precision, _NEAR if averaged else _EXACT, start)
        if averaged:
            d, root = self._average(rows, y, weight, mean, precision)
        gradient, hessian = self._derivatives(rows, y, weight, self.eta(rows), self.mode - mean, precision)
        if not averaged:
            d, root = factorised(hessian)
        self.whitener = whitener_of(d, root)
        self.precision = precision
        if control_variates:
            self._linear, self._quadratic = self.whitener.T @ gradient, np.eye(self.mode.size)
            if averaged:
                self._quadratic = self.whitener.T @ hessian @ self.whitener
        else:
            self._linear = -self.whitener.T @ (precision @ (self.mode - mean))
            self._quadratic = self.whitener.T @ precision @ self.whitener
        # The summary is in the coordinates of the prior, since it will be the prior of the next design.
        forward = self.forward.T
        self.summary = Quadratic(self._each(back, self.mode), self._blocks(forward, self._blocks(forward, hessian).T))

    def rows(self, X):
        """The rows in standardised columns."""
        return (SparseRows if sparse.issparse(X) else DenseRows)(X, self.shift, self.scale, self.fit_intercept)

    def params(self, is_sparse, with_value):
        """``params`` of the kernels: head, linear term, quadratic matrix and whitener."""
        T, form = self.whitener, layout.FULL if is_sparse or self.n_predictors == 1 else layout.UPPER
        if is_sparse:  # sparse rows are not standardised, and their kernels store coefficients column by column
            T = self._blocks(self._back(), T)
            T = T.reshape(self.n_predictors, -1, T.shape[1]).swapaxes(0, 1)
        ones = is_sparse and self.fit_intercept
        head = [self.mode.size, layout.SECOND_ORDER * self.control, form, with_value, ones]
        parts = [self._linear, self._quadratic.ravel(), T.ravel()]
        return joined(head, parts, self.kinks, is_sparse, given=self.n_predictors > 1)

    def eta(self, rows):
        """Linear predictors at the mode."""
        return rows.predict(self.mode.reshape(self.n_predictors, -1))

    def predictor_variances(self, rows):
        """Variance of the linear predictor of each row under the Gaussian at the mode; for a single predictor."""
        return (rows.predict(self.whitener.T) ** 2).sum(axis=1)

    @staticmethod
    def refuse_metric(sampler, n_coefficients):
        """Do nothing, because the Fisher information can be computed at every step; see `DiagonalDesign`."""

    def metric_params(self):
        """Parameters of the metric's kernel: the prior's precision in whitened coordinates, and the whitener."""
        return np.concatenate([(self.whitener.T @ self.precision @ self.whitener).ravel(), self.whitener.ravel()])

    def _back(self, at=0.0):
        """Matrix that maps coefficients of standardised columns to the columns as given; the intercept is at ``at``."""
        back = np.diag(np.append(1.0 / self.scale, np.ones(int(self.fit_intercept))))
        if self.fit_intercept:
            back[-1, :-1] = (at - self.shift) / self.scale
        return back

    def _forward(self, at=0.0):
        """The inverse of `_back`."""
        forward = np.diag(np.append(self.scale, np.ones(int(self.fit_intercept))))
        if self.fit_intercept:
            forward[-1, :-1] = self.shift - at
        return forward

    def _blocks(self, a, matrix):
        """Multiply the rows of each linear predictor by ``a``: the Kronecker product of I and a, times the matrix."""
        return (a @ matrix.reshape(self.n_predictors, a.shape[0], -1)).reshape(matrix.shape)

    def _each(self, a, vector):
        """Multiply the coefficients of each linear predictor by ``a``."""
        return (vector.reshape(self.n_predictors, -1) @ a.T).ravel()

    def _derivatives(self, rows, y, weight, eta, shift, precision):
        """Gradient of the log posterior, and minus its Hessian."""
        r, p = self.likelihood.residuals(y, weight, eta)
        gradient = rows.pull(r).ravel() - precision @ shift
        if self.n_predictors == 1:
            return gradient, rows.gram(self.likelihood.curvature(weight, p)[:, 0]) + precision
        return gradient, self._several(rows, lambda k, j: weight * (p[:, k] * ((k == j) - p[:, j])), precision)

    def _several(self, rows, curvature, precision):
        """Minus the Hessian for several classes; ``curvature(k, j)`` weights the rows in the block of classes k, j."""
        hessian, m = precision.copy(), rows.width
        for k in range(self.n_predictors):
            for j in range(k + 1):
                part = rows.gram_of_one_sign(curvature(k, j))
                hessian[k * m : (k + 1) * m, j * m : (j + 1) * m] += part
                if j < k:
                    hessian[j * m : (j + 1) * m, k * m : (k + 1) * m] += part.T
        return hessian

    def _average(self, rows, y, weight, mean, precision):
        """Replace the mode by the mean of a variational Gaussian; returns the Hessian averaged over it, factorised.

        With rare classes the posterior is skewed. The Hessian at its mode then underestimates the curvature elsewhere
        in some directions, so coordinates whitened by that Hessian would need tiny steps.
        """
        _, hessian = self._derivatives(rows, y, weight, self.eta(rows), self.mode - mean, precision)
        d, root = factorised(hessian)
        before = self.mode, d, root
        half = np.random.default_rng(0).standard_normal((_PAIRS, mean.size))
        move = 0.0
        z = np.concatenate([half, -half])
        for width in _WIDTHS:
            draws = self.mode + width * z @ whitener_of(d, root).T
            total, sides = 0.0, []
            for draw in draws:
                r, p = self.likelihood.residuals(y, weight, rows.predict(draw.reshape(self.n_predictors, -1)))
                total = total + r / len(z)
                sides.append(p.T.copy())
            sides = np.stack(sides, axis=1)  # (n_predictors, n_draws, n)

            def curvature(k, j, sides=sides):
                product = np.einsum("sn,sn->n", sides[k], sides[j]) / len(z)
                return weight * ((sides[k].mean(axis=0) if k == j else 0.0) - product)

            gradient = rows.pull(total).ravel() - precision @ (self.mode - mean)
            hessian = 0.5 * (hessian + self._several(rows, curvature, precision))
            d, root = factorised(hessian)
            step = d * linalg.cho_solve((root, True), d * gradient)
            move = np.sqrt(max(gradient @ step, 1e-300) / step.size)
            self.mode = self.mode + step * min(1.0, _REACH / move)
        if not move < _REACH:  # no Gaussian fits, for example because columns separate the classes
            self.mode, d, root = before
        return d, root

    def _newton(self, rows, y, weight, mean, precision, tolerance, start):
        """The mode, by damped Newton steps; any start will do, since the log posterior is strictly concave."""
        b = np.zeros(mean.size) if start is None else start
        if self.fit_intercept and start is None:
            b[rows.width - 1 :: rows.width] = self.likelihood.start(y, weight)

        def value(b):
            shift = b - mean
            eta = rows.predict(b.reshape(self.n_predictors, -1))
            return self.likelihood.value(y, weight, eta) - 0.5 * shift @ precision @ shift, eta

        now, eta = value(b)
        for _ in range(_MAX_NEWTON):
            gradient, hessian = self._derivatives(rows, y, weight, eta, b - mean, precision)
            d, root = factorised(hessian)
            step = d * linalg.cho_solve((root, True), d * gradient)
            gain = gradient @ step
            t = 1.0
            while True:
                new, new_eta = value(b + t * step)
                if new >= now + 0.1 * t * gain - 1e-12 * abs(now) or t <= 1e-8:
                    break
                t *= 0.5
            if new >= now - 1e-12 * abs(now):
                b, now, eta = b + t * step, new, new_eta
            if gain < tolerance * (1.0 + abs(now)) or t <= 1e-8:
                break
        return b

    def coef_moments(self):
        """Mode of the coefficients (n_predictors, n_features) of the columns as given, and variance by the Hessian."""
        variance = (self.whitener**2).sum(axis=1).reshape(self.n_predictors, -1)
        d = self.scale.size
        return self.mode.reshape(self.n_predictors, -1)[:, :d] / self.scale, variance[:, :d] / self.scale**2

    def off_by(self, slope):
        """Largest shift of a coefficient, in posterior standard deviations, if ``slope`` is added to the gradient.

        ``slope`` (D,) is in the coordinates of the prior, and the shift is a Newton step from the mode.
        """
        move = self.whitener @ (self.whitener.T @ self._each(self._back(self.reference).T, slope))
        return np.abs(move / np.sqrt((self.whitener**2).sum(axis=1))).max()

    @property
    def n_entries(self):
        """Number of coordinates."""
        return self.mode.size

    def typical_point(self, normal):
        """The draw of the Gaussian that standard normal numbers (D,) determine: here, these numbers."""
        return normal

    def forget_rows(self):
        """Do nothing, because no rows are kept; see `DiagonalDesign`."""

    def checks(self, theta, temperature):
        """The check that draws lie near the mode, in units of the Gaussian there; a list of at most one check."""
        return check_distance_from_mode(theta, temperature)

    def coefficients(self, theta):
        """Convert draws (..., D) to coefficients (..., n_predictors, n_features) of the columns as given.

        Also returns the intercepts, (..., n_predictors).
        """
        b = self.mode + theta @ self.whitener.T
        b = b.reshape(*theta.shape[:-1], self.n_predictors, -1) @ self._back().T
        if not self.fit_intercept:
            return b, np.zeros(b.shape[:-1])
        return np.ascontiguousarray(b[..., :-1]), b[..., -1].copy()


_BARE = 3.0  # total curvature of a predictor over the rows, below which `DiagonalDesign.is_bare` is set


def turn(b):
    """Reflect the classes (..., K) in place, as the kernels do, so that the first becomes their sum / sqrt(K)."""
    K = b.shape[-1]
    if K > 1:
        share = b.dtype.type(K**-0.5)
        first = share * b.sum(axis=-1)
        away = (b[..., 0] - first) * (share / (1 - share))
        b[..., 0] = first
        for k in range(1, K):  # one class at a time, to avoid a copy of all draws
            b[..., k] += away
    return b


def turned_curvature(curvature, weight, p):
    """Minus the second derivatives with respect to each row's predictors after `turn`; 0 for the shared first one."""
    K = p.shape[1]
    if K == 1:
        return curvature
    turns = turn(np.eye(K))
    turned = weight[:, None] * np.maximum(p @ turns**2 - turn(p.copy()) ** 2, 0.0)
    turned[:, 0] = 0.0
    return turned


class DiagonalDesign:
    """Coordinates for many sparse columns: relative to the mode, scaled by column, and shrunk in a few directions.

    Truncated Newton steps find the mode, and no Hessian is formed or factorised. `unit_coordinates` finds the scales
    and the directions.

    Parameters are as for `Design`; the precision of the prior must be diagonal. The state is stored column by column,
    with the classes of a column next to each other. `turn` is applied to them, so that the first coordinate is what all
    classes share. Intercepts are those at ``centre``, the mean of the columns with the rows weighted as in the Hessian.
    If columns have one sign, as counts do, the intercept at 0 would be correlated with all their coefficients.

    Attributes
    ----------
    scale : ndarray of shape (n_features,)
        Ones: columns are not standardised.
    mode, whitener : (D,)
        Coefficients are ``mode + whitener * leading.apply(theta)``. Intercepts at the reference are
        ``mode + root @ theta`` minus the product of ``centre - reference`` and the change of the coefficients. All
        terms but ``mode`` are in the coordinates of `turn`.
    leading : LeadingDirections
    centre, root : (n_features, n_predictors), (n_predictors, n_predictors)
    is_bare : bool
        Whether the rows carry hardly any information about some predictor, for example because they lack a class. No
        Gaussian then approximates the posterior.
    is_wide : bool
        Whether the coefficients have correlations that the coordinates do not remove.
    """

    kinks = None  # the `Kinks` of a Laplace prior
    is_wide = True

    def __init__(
        self,
        X,
        y,
        weight,
        n_predictors,
        prior,
        fit_intercept,
        control_variates,
        reference=None,
        likelihood=CLASSES,
        start=None,
    ):
        self.n_predictors, self.fit_intercept, self.control = n_predictors, fit_intercept, control_variates
        self.likelihood, self.prior = likelihood, prior
        self.reference = reference_of(X.T @ weight / weight.sum(), reference, fit_intercept)
        self.scale = np.ones(X.shape[1])
        rows, d = self.rows(X), X.shape[1]
        n_coef = d * n_predictors
        precision, mean = self._by_column(prior.precision), self._by_column(prior.mean)
        self._posterior = posterior = WidePosterior(rows, y, weight, n_predictors, likelihood, mean, precision)
        first = mean if start is None else start
        if fit_intercept and start is None and not mean.any():
            first = mean.copy()
            first[n_coef:] = likelihood.start(y, weight)
        posterior.find_mode(first)
        self.mode, p = posterior.mode, posterior.sides[0]
        curvature = likelihood.curvature(weight, p)
        self.is_bare = bool(curvature.sum(axis=0).min() < _BARE)
        turns = turn(np.eye(n_predictors))
        self._precision = precision
        self._turned_precision = (precision.reshape(-1, n_predictors) @ turns**2).ravel()
        self._of_mode = self._about(rows, [p])
        square = np.maximum(rows.squares(curvature).T.ravel(), 0.0) + precision
        self.summary = Quadratic(*(each.reshape(-1, n_predictors).T.ravel() for each in (self.mode, square)))

    def _about(self, rows, sides):
        """The centre, curvatures of rows averaged over ``sides``, their sum, and the diagonals of Hessian and prior."""
        weight, curvature = self._posterior.weight, self.likelihood.curvature
        turned = sum(turned_curvature(curvature(weight, p), weight, p) for p in sides) / len(sides)
        square, each, total = rows.second_moments(turned)
        centre = np.zeros_like(square)
        if self.fit_intercept:
            # Only the prior, which is at the reference, bounds what all classes share: its ``total`` is 0.
            centre += self.reference[:, None]
            np.divide(each, total, out=centre, where=total > 0.0)
        of_prior = self._turned_precision[: square.size].reshape(square.shape)
        if self.fit_intercept:
            of_prior = of_prior + (centre - self.reference[:, None]) ** 2 * self._turned_precision[square.size :]
        # The second moments are about the centre. Rounding must not make them negative.
        return centre, turned, total, np.maximum(square - centre * each, 0.0), of_prior

    @cached_property
    def _coordinates(self):
        """Centre, root, whitener, leading directions, linear term, and change from the mode to the Gaussian's mean."""
        posterior, K = self._posterior, self.n_predictors
        rows, weight, likelihood = posterior.rows, posterior.weight, self.likelihood
        n_coef = self.mode.size - K * self.fit_intercept
        pull = -self._precision * (self.mode - posterior.prior_mean)
        if self.control:
            pull += posterior.pull(likelihood.residuals(posterior.y, weight, posterior.predict(self.mode))[0])
        turn(pull.reshape(-1, K))
        posterior.average()
        sides = posterior.sides
        centre, turned, total, square, of_prior = self._about(rows, sides)
        root = None
        if self.fit_intercept:
            # Intercepts get their full Hessian, since only their wide prior bounds a constant added to all classes.
            block = np.diag(total + self._turned_precision[n_coef:])
            if K > 1:
                turns = turn(np.eye(K))
                block = sum(np.diag(weight @ p) - (p.T * weight) @ p for p in sides) / len(sides)
                block = turns @ (block + np.diag(self._precision[n_coef:])) @ turns
            root = linalg.solve_triangular(linalg.cholesky(block, lower=True), np.eye(K), lower=True).T
            pull[:n_coef] -= ((centre - self.reference[:, None]) * pull[n_coef:]).ravel()
        units, leading = unit_coordinates(rows.X, turned, of_prior, square, self.fit_intercept)
        whitener = np.append(units, np.ones(K * self.fit_intercept))
        linear = whitener * pull
        leading.apply(linear[:n_coef].reshape(units.shape))
        if self.fit_intercept:
            linear[n_coef:] = root.T @ pull[n_coef:]
        return centre, root, whitener, leading, linear, posterior.spread

    def forget_rows(self):
        """Drop the rows, which only the coordinates and `typical_point` need."""
        self._coordinates  # noqa: B018
        self._posterior = None

    @property
    def centre(self):
        """Point to which intercepts refer, (n_features, n_predictors)."""
        return self._coordinates[0]

    @property
    def root(self):
        """Whitener of the intercepts, (n_predictors, n_predictors)."""
        return self._coordinates[1]

    @property
    def whitener(self):
        """Units of the coordinates, (D,)."""
        return self._coordinates[2]

    @property
    def leading(self):
        """The `LeadingDirections` of the coefficients."""
        return self._coordinates[3]

    @property
    def predictor_spread(self):
        """Root mean square posterior standard deviation of the predictors of rows, less what classes share."""
        return self._coordinates[5]

    @property
    def away(self):
        """Centre of each class minus the reference, (n_features, n_predictors)."""
        return self.centre - self.reference[:, None]

    def rows(self, X):
        """The rows with the reference subtracted."""
        return SparseRows(X, self.reference, self.scale, self.fit_intercept)

    def params(self, is_sparse, with_value):
        """As `Design.params`."""
        head = [self.mode.size, layout.FIRST_ORDER * self.control, layout.DIAGONAL, with_value, self.fit_intercept]
        parts = [self._coordinates[4], self._precision, self.whitener]
        if self.fit_intercept:
            parts += [self.centre.ravel(), self.root.ravel(), self.reference]
        return joined(head, parts, self.kinks, True, leading=self.leading)

    def eta(self, rows):
        """Linear predictors at the mode."""
        return rows.predict(self.mode.reshape(-1, self.n_predictors).T)

    def predictor_variances(self, rows):
        """Zeros: without the covariances of the coefficients, the sum would be far too large."""
        return np.zeros(rows.X.shape[0])

    def _by_column(self, vector):
        return vector.reshape(self.n_predictors, -1).T.ravel()

    @staticmethod
    def refuse_metric(sampler, n_coefficients):
        """Raise if the sampler needs the Fisher information, which is not implemented for so many coefficients."""
        if sampler._uses_metric:
            raise ValueError(
                f"sampler={sampler!r} needs the Fisher information at every step, which is implemented for up to "
                f"{MAX_ENTRIES} coefficients; these data have {n_coefficients}. Use another, such as 'hmc'."
            )

    def coef_moments(self):
        """As `Design.coef_moments`."""
        *_, square, of_prior = self._of_mode
        mode = self.mode.reshape(-1, self.n_predictors)[: len(square)]
        return mode.T, (1.0 / (square + of_prior) @ turn(np.eye(self.n_predictors)) ** 2).T

    def off_by(self, slope):
        """Nothing: what the diagonal leaves out is larger than what the curvature's change does."""
        return 0.0

    @property
    def n_entries(self):
        """Number of coordinates."""
        return self.mode.size

    def typical_point(self, normal):
        """Map standard normal numbers (D,) to a draw of the Gaussian closest to the posterior.

        Not available after `forget_rows`.
        """
        self._coordinates  # noqa: B018
        posterior = self._posterior
        b = (posterior.mean + posterior.draw(normal)).reshape(-1, self.n_predictors).T
        if not self.fit_intercept:
            return self.theta_of(b, None)
        return self.theta_of(b[:, :-1], b[:, -1] - b[:, :-1] @ self.reference)

    def checks(self, theta, temperature):
        """An empty list: these coordinates do not have the units of the posterior's spread."""
        return []

    def coefficients(self, theta):
        """Convert draws (..., D) to coefficients (..., n_predictors, n_features) and intercepts; float32 stays so."""
        b = theta.reshape(*theta.shape[:-1], -1, self.n_predictors).copy()
        self.leading.apply(b[..., : len(self.centre), :])
        b *= self.whitener.reshape(-1, self.n_predictors).astype(b.dtype)
        mode = self.mode.reshape(-1, self.n_predictors)
        if not self.fit_intercept:
            turn(b)
            b += mode.astype(b.dtype)
            return np.ascontiguousarray(np.swapaxes(b, -1, -2)), np.zeros((*theta.shape[:-1], self.n_predictors))
        intercept = b[..., -1, :] @ self.root.T
        # One class at a time, since numpy would otherwise copy all draws in float64.
        for k in range(self.n_predictors):
            intercept[..., k] -= b[..., :-1, k] @ self.centre[:, k].astype(b.dtype)
        intercept = turn(intercept) + (mode[-1] - self.reference @ mode[:-1])
        turn(b)
        b += mode.astype(b.dtype)
        return np.ascontiguousarray(np.swapaxes(b[..., :-1, :], -1, -2)), intercept

    def theta_of(self, coef, intercept):
        """The inverse of `coefficients`, for one draw."""
        b = np.column_stack([coef, intercept + coef @ self.reference]) if self.fit_intercept else coef
        delta = turn(b.T - self.mode.reshape(-1, self.n_predictors))
        if self.fit_intercept:
            delta[-1] = linalg.solve(self.root, delta[-1] + (self.away * delta[:-1]).sum(axis=0))
        theta = delta / self.whitener.reshape(delta.shape)
        self.leading.undo(theta[: len(self.centre)])
        return theta.ravel()


def log_likelihoods(design, dense, coef, intercept, likelihood_of=None):
    """Mean log likelihood of evenly spaced rows at evenly spaced draws, (n_chains, at most `_SEEN_DRAWS`).

    Parameters
    ----------
    design : Design or DiagonalDesign
    dense : DenseData
        The data of the chains.
    coef, intercept : ndarray of shape (n_chains, n_kept, n_predictors, n_features), (n_chains, n_kept, n_predictors)
        For the columns with their offsets subtracted.
    likelihood_of : callable, default=None
        ``likelihood_of(chain, draw)`` returns the likelihood of a draw. None: the likelihood of the design for all.
    """
    some, draws = evenly(dense.n_rows, _SEEN_ROWS), evenly(coef.shape[1], _SEEN_DRAWS)
    d, y = coef.shape[3], design.likelihood.responses(dense.y[some])
    if dense.in_random_order:  # packed sparse rows, stored in ``params`` as (value, column) pairs
        bounds = dense.X[some].astype(np.int64)
        pairs = np.concatenate([dense.params[start:stop] for start, stop in bounds])
        ptr = np.concatenate([[0], np.cumsum(np.diff(bounds)[:, 0])]) // 2
        X = sparse.csr_array((pairs[::2], pairs[1::2].astype(np.int64), ptr), shape=(some.size, d))
    else:
        X = dense.X[some, :d] * design.scale + design.shift
    out = np.empty((coef.shape[0], draws.size))
    for c, s in np.ndindex(out.shape):
        eta = X @ coef[c, draws[s]].T + intercept[c, draws[s]]
        likelihood = design.likelihood if likelihood_of is None else likelihood_of(c, draws[s])
        out[c, s] = np.average(likelihood.each(y, eta), weights=dense.weight[some])
    return out
