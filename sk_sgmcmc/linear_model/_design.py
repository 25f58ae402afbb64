"""Data and prior of a generalised linear model, in coordinates that suit a sampler."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse

from ..chains.checks import FAR_FROM_MODE
from ..chains.convergence import MIN_KEPT
from ..dense.rows import LARGEST, SMALLEST, DenseRows, SparseRows, moments
from ..kernels.models.linear import design as layout
from ._likelihoods import CLASSES

_MAX_NEWTON = 60
_EXACT, _NEAR = 1e-14, 1e-7  # relative gain in log posterior below which Newton's method stops
# Averaging the Hessian: the number of antithetic pairs of points; the width of the Gaussian from which each round draws
# them, in units of its spread; and the largest move of its mean in a round, per coefficient, in the same units.
_PAIRS = 4
_WIDTHS = (0.5, 0.7, 0.9, 1.0, 1.0, 1.0)
_REACH = 0.3
_PIVOT = 1e-7  # smallest diagonal entry of the Hessian's root, below which rounding dominates
_RIDGES = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)  # added to a diagonal of ones; the first that suffices is taken
MAX_ENTRIES = 1000  # coefficients, beyond which the Hessian's diagonal replaces its factorisation


@dataclass
class Quadratic:
    """A Gaussian prior on the coefficients of the columns as given, and on the intercept at the reference, by class.

    ``mean`` (D,), ``precision`` (D, D), or (D,) for a diagonal; D = rows x (features + intercept).
    """

    mean: np.ndarray
    precision: np.ndarray

    def tighter(self, more):
        """With a diagonal added to the precision."""
        return Quadratic(self.mean, self.precision + (more if self.precision.ndim == 1 else np.diag(more)))


def check_scale(name, scale):
    """Raise if the scale of a prior is too small to square."""
    if scale is not None and scale < SMALLEST:
        raise ValueError(f"{name}={scale!r} is too small to compute with in float64; use at least {SMALLEST:g}.")


def independent_prior(n_predictors, n_features, prior_scale, intercept_scale):
    """Independent normals; ``intercept_scale`` None for a model without intercept."""
    for name, scale in (("prior_scale", prior_scale), ("intercept_prior_scale", intercept_scale)):
        check_scale(name, scale)
    each = np.full(n_features, min(float(prior_scale), LARGEST) ** -2)
    if intercept_scale is not None:
        each = np.append(each, min(float(intercept_scale), LARGEST) ** -2)
    return Quadratic(np.zeros(n_predictors * each.size), np.tile(each, n_predictors))


def reference_of(mean, reference, fit_intercept):
    """The row at which the intercept has its prior: the columns' mean, unless earlier rows fixed it."""
    if not fit_intercept:
        return np.zeros(mean.size)
    return mean if reference is None else reference


def joined(head, parts, kinks, is_sparse, given=False):
    """``params`` as the kernels of `kernels.models.linear` read them.

    Parameters
    ----------
    head : list of float
        Its first five numbers.
    parts : list of ndarray
        What follows the head.
    kinks : Kinks or None
    is_sparse : bool
    given : bool, default=False
        Whether the quadratic matrix counts although control variates are of second order.
    """
    parts = [np.array([*head, 0.0, given], dtype=float), *parts]
    if kinks is not None:
        parts[0][layout.KINKS] = sum(part.size for part in parts)
        parts.append(kinks.rows(is_sparse).ravel())
    return np.concatenate(parts)


def check_distance_from_mode(theta, temperature):
    """The check that draws (n_chains, n_kept, D) in whitened coordinates lie near the mode, in a list."""
    if theta.shape[1] < MIN_KEPT:
        return []
    away, spread = np.abs(theta.mean(axis=(0, 1))).max(), theta.std(axis=(0, 1)).max()
    value, limit = max(away, spread), FAR_FROM_MODE.limit * max(1.0, np.sqrt(temperature))
    if value <= limit:
        return [FAR_FROM_MODE.passed(value, limit)]
    meaning = (
        f"The posterior is far from the Gaussian at its mode, in whose units the chain moves: draws lie {away:.3g} "
        f"of its standard deviations from the mode and spread over {spread:.3g} ({limit:.3g} at most). They cannot be "
        "trusted."
    )
    remedy = (
        "Where columns separate the classes, use a smaller prior_scale. Where a class has no rows yet, add some. Where "
        "a column has outliers, such as a code for missing values, correct or transform it. Otherwise use a larger "
        'n_iter, or sampler="nuts".'
    )
    return [FAR_FROM_MODE.fired(value, meaning, remedy, limit)]


def factorised(hessian):
    """Units d, and the lower root of d H d, whose diagonal is 1: so the factorisation does not depend on units.

    Directions that only the prior determines (equal columns; what is added to all classes alike) are lost to
    rounding where the columns' spread is a million times the prior's inverse. They are then held as tightly as
    rounding requires, which changes no prediction.
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
    """The matrix T with T T^T the inverse Hessian, of its `factorised` form."""
    return d[:, None] * linalg.solve_triangular(root, np.eye(d.size), lower=True).T


class Design:
    """Standardised columns, the mode of the posterior in them, and the coordinates whitened by its Hessian.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (n, n_features)
    y : ndarray of shape (n,)
        Responses; codes of the classes of `CLASSES`.
    weight : ndarray of shape (n,)
    n_predictors : int
        Linear predictors of a row: the number of classes if there are more than two, else 1.
    prior : Quadratic
    fit_intercept, control_variates : bool
    reference : ndarray of shape (n_features,), default=None
        The row at which the intercept has its prior; None for the mean of these rows.
    likelihood : object of `_likelihoods`, default=CLASSES
    start : ndarray of shape (D,), default=None
        Where the search for the mode starts: that of the same rows under a similar prior.

    Attributes
    ----------
    mode, whitener, unwhitener : (D,), (D, D), (D, D)
        Coefficients are ``mode + whitener @ theta`` in standardised columns.
    """

    kinks = None  # of a prior with kinks, see `_prior`
    is_bare = False

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
        self.unwhitener = root.T / d
        self.precision = precision
        if control_variates:
            self._linear, self._quadratic = self.whitener.T @ gradient, np.eye(self.mode.size)
            if averaged:
                self._quadratic = self.whitener.T @ hessian @ self.whitener
        else:
            self._linear = -self.whitener.T @ (precision @ (self.mode - mean))
            self._quadratic = self.whitener.T @ precision @ self.whitener
        # The Gaussian that replaces these data when more arrive, in the coordinates of the prior.
        forward = self.forward.T
        self.summary = Quadratic(self._each(back, self.mode), self._blocks(forward, self._blocks(forward, hessian).T))

    def rows(self, X):
        """The rows in standardised columns."""
        return (SparseRows if sparse.issparse(X) else DenseRows)(X, self.shift, self.scale, self.fit_intercept)

    def params(self, is_sparse, with_value):
        """Head, offset, quadratic matrix and whitener, as the kernels read them."""
        T, form = self.whitener, layout.FULL if is_sparse or self.n_predictors == 1 else layout.UPPER
        if is_sparse:  # of the columns as given, column by column
            T = self._blocks(self._back(), T)
            T = T.reshape(self.n_predictors, -1, T.shape[1]).swapaxes(0, 1)
        ones = is_sparse and self.fit_intercept
        head = [self.mode.size, layout.SECOND_ORDER * self.control, form, with_value, ones]
        parts = [self._linear, self._quadratic.ravel(), T.ravel()]
        return joined(head, parts, self.kinks, is_sparse, given=self.n_predictors > 1)

    def eta(self, rows):
        """Linear predictors at the mode."""
        return rows.predict(self.mode.reshape(self.n_predictors, -1))

    def refuse_metric(self, sampler):
        """Raise if the Fisher information cannot be computed at every step: here it can."""

    def metric_params(self):
        """The prior's precision in whitened coordinates and the whitener, as the metric's kernel reads them."""
        return np.concatenate([(self.whitener.T @ self.precision @ self.whitener).ravel(), self.whitener.ravel()])

    def _back(self, at=0.0):
        """Matrix from coefficients of standardised columns to those as given, the intercept taken at x = ``at``."""
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
        """(I x a) @ matrix, for the class-by-class layout."""
        return (a @ matrix.reshape(self.n_predictors, a.shape[0], -1)).reshape(matrix.shape)

    def _each(self, a, vector):
        """a @ vector for the coefficients of each linear predictor."""
        return (vector.reshape(self.n_predictors, -1) @ a.T).ravel()

    def _derivatives(self, rows, y, weight, eta, shift, precision):
        """Gradient of the log posterior, and minus its Hessian."""
        r, p = self.likelihood.residuals(y, weight, eta)
        gradient = rows.pull(r).ravel() - precision @ shift
        if self.n_predictors == 1:
            return gradient, rows.gram(self.likelihood.curvature(weight, p)[:, 0]) + precision
        return gradient, self._several(rows, lambda k, j: weight * (p[:, k] * ((k == j) - p[:, j])), precision)

    def _several(self, rows, curvature, precision):
        """Minus the Hessian for several classes; ``curvature(k, j)`` are weights of rows."""
        hessian, m = precision.copy(), rows.width
        for k in range(self.n_predictors):
            for j in range(k + 1):
                part = rows.gram_of_one_sign(curvature(k, j))
                hessian[k * m : (k + 1) * m, j * m : (j + 1) * m] += part
                if j < k:
                    hessian[j * m : (j + 1) * m, k * m : (k + 1) * m] += part.T
        return hessian

    def _average(self, rows, y, weight, mean, precision):
        """Move the mode to the mean of the best Gaussian, whose Hessian, averaged over it, is returned factorised.

        Where classes are rare, the posterior is skew: at its mode it looks wider in some directions than it is, and
        whitened by the Hessian there it would need tiny steps.
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
        if not move < _REACH:  # no Gaussian is near, for example where columns separate the classes
            self.mode, d, root = before
        return d, root

    def _newton(self, rows, y, weight, mean, precision, tolerance, start):
        """The mode: the log posterior is strictly concave, so damped Newton steps find it from anywhere."""
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
        """Of the coefficients (n_predictors, n_features) of the columns as given: mode, and variance by the Hessian."""
        variance = (self.whitener**2).sum(axis=1).reshape(self.n_predictors, -1)
        d = self.scale.size
        return self.mode.reshape(self.n_predictors, -1)[:, :d] / self.scale, variance[:, :d] / self.scale**2

    def off_by(self, slope):
        """By how many posterior standard deviations a further slope at the mode would move a coefficient, at most.

        ``slope`` is (D,), in the coordinates of the prior.
        """
        move = self.whitener @ (self.whitener.T @ self._each(self._back(self.reference).T, slope))
        return np.abs(move / np.sqrt((self.whitener**2).sum(axis=1))).max()

    def checks(self, theta, temperature):
        """The check that draws lie near the Gaussian at the mode, in its units; in a list."""
        return check_distance_from_mode(theta, temperature)

    def coefficients(self, theta):
        """Draws (..., D) as coefficients of the columns as given (..., n_predictors, n_features) and intercepts."""
        b = self.mode + theta @ self.whitener.T
        b = b.reshape(*theta.shape[:-1], self.n_predictors, -1) @ self._back().T
        if not self.fit_intercept:
            return b, np.zeros(b.shape[:-1])
        return np.ascontiguousarray(b[..., :-1]), b[..., -1].copy()

    def theta_of(self, coef, intercept):
        """The inverse of `coefficients`, for one draw."""
        b = np.column_stack([coef, intercept]) if self.fit_intercept else coef
        return self.unwhitener @ (self._each(self._forward(), b.ravel()) - self.mode)
