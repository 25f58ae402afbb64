"""Coordinates of models with many sparse columns: scaled by the Hessian's diagonal."""

import numpy as np
from scipy import linalg, optimize

from ..dense.rows import SparseRows
from ..kernels.models.linear import design as layout
from ._design import MAX_ENTRIES, Quadratic, joined, reference_of
from ._likelihoods import CLASSES

_MAX_LBFGS = 500
_BARE = 3.0  # rows' worth of curvature


def turn(b):
    """Turn the classes (..., K) of each column in place, as the kernels do: the first becomes their sum / sqrt(K)."""
    K = b.shape[-1]
    if K > 1:
        share = b.dtype.type(K**-0.5)
        first = share * b.sum(axis=-1)
        away = (b[..., 0] - first) * (share / (1 - share))
        b[..., 0] = first
        for k in range(1, K):  # one class at a time: no copy of all draws
            b[..., k] += away
    return b


def turned_curvature(curvature, weight, p):
    """Minus the second derivatives in the turned predictors of each row; none in what all classes share."""
    K = p.shape[1]
    if K == 1:
        return curvature
    turns = turn(np.eye(K))
    turned = weight[:, None] * np.maximum(p @ turns**2 - turn(p.copy()) ** 2, 0.0)
    turned[:, 0] = 0.0
    return turned


class DiagonalDesign:
    """Many sparse columns: the mode by L-BFGS, and coordinates scaled by the Hessian's diagonal there.

    Parameters as for `Design`, with a prior of diagonal precision. The state is stored column by column: the classes of
    a column are neighbours. They are turned, so that one coordinate is what all classes share. Intercepts are those at
    ``centre``, the mean of the columns under the weights that the Hessian gives to rows: with columns of one sign, the
    intercept at 0 would be correlated with all of them.

    Attributes
    ----------
    scale : ndarray of shape (n_features,)
        Ones: columns are not standardised.
    mode, whitener : (D,)
        Coefficients are ``mode + whitener * theta``, intercepts at the reference ``mode + root @ theta`` less
        ``(centre - reference) . (whitener * theta)``, all but ``mode`` in turned classes.
    centre, root : (n_features, n_predictors), (n_predictors, n_predictors)
    is_bare : bool
        Whether rows hardly bound some predictor from one side, as if they lack a class: no Gaussian is near then.
    """

    kinks = None  # of a prior with kinks, see `_prior`

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
        square = rows.squares(likelihood.largest_curvature(y, weight, n_predictors)).T.ravel()
        unit = 1.0 / np.sqrt(np.maximum(square, 0.0) + precision)

        def negative(u):
            b = mean + unit * u
            eta = rows.predict(b.reshape(-1, n_predictors).T)
            r, _ = likelihood.residuals(y, weight, eta)
            value = 0.5 * precision @ (b - mean) ** 2 - likelihood.value(y, weight, eta)
            return value, unit * (precision * (b - mean) - rows.pull(r).T.ravel())

        options = {"maxiter": _MAX_LBFGS, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-3}
        first = np.zeros(mean.size) if start is None else (start - mean) / unit
        if fit_intercept and start is None and not mean.any():
            first[n_coef:] = (likelihood.start(y, weight) - mean[n_coef:]) / unit[n_coef:]
        found = optimize.minimize(negative, first, jac=True, method="L-BFGS-B", options=options)
        self.mode = mean + unit * found.x
        r, p = likelihood.residuals(y, weight, self.eta(rows))
        curvature = likelihood.curvature(weight, p)
        self.is_bare = bool(curvature.sum(axis=0).min() < _BARE)
        square, each, total = rows.second_moments(turned_curvature(curvature, weight, p))
        self.centre = np.zeros((d, n_predictors))
        if fit_intercept:
            # Nothing but the prior, which is at the reference, bounds what all classes share.
            self.centre += self.reference[:, None]
            np.divide(each, total, out=self.centre, where=total > 0.0)
        away = self.away
        turns = turn(np.eye(n_predictors))
        turned_precision = (precision.reshape(-1, n_predictors) @ turns**2).ravel()
        # About the centre; rounding must not make it negative.
        hessian = np.maximum(square - self.centre * each, 0.0).ravel() + turned_precision[:n_coef]
        if fit_intercept:
            last = turned_precision[n_coef:]
            hessian += (away**2 * last).ravel()
            # The intercepts' full Hessian: only the wide prior bounds what is added to all classes alike.
            block = np.diag(total + last)
            if n_predictors > 1:
                block = turns @ (np.diag((weight @ p) + precision[n_coef:]) - (p.T * weight) @ p) @ turns
            self.root = linalg.solve_triangular(linalg.cholesky(block, lower=True), np.eye(n_predictors), lower=True).T
            hessian = np.append(hessian, np.ones(n_predictors))
        self.whitener = 1.0 / np.sqrt(hessian)
        self._precision = precision
        pull = -precision * (self.mode - mean)
        if control_variates:
            pull += rows.pull(r).T.ravel()
        turn(pull.reshape(-1, n_predictors))
        if fit_intercept:
            pull[:n_coef] -= (away * pull[n_coef:]).ravel()
        self._linear = self.whitener * pull
        if fit_intercept:
            self._linear[n_coef:] = self.root.T @ pull[n_coef:]
        square = np.maximum(rows.squares(curvature).T.ravel(), 0.0) + precision
        self.summary = Quadratic(*(each.reshape(-1, n_predictors).T.ravel() for each in (self.mode, square)))

    @property
    def away(self):
        """How far the centre of each class lies from the reference."""
        return self.centre - self.reference[:, None]

    def rows(self, X):
        """The rows less the reference."""
        return SparseRows(X, self.reference, self.scale, self.fit_intercept)

    def params(self, is_sparse, with_value):
        """As `Design.params`."""
        head = [self.mode.size, layout.FIRST_ORDER * self.control, layout.DIAGONAL, with_value, self.fit_intercept]
        parts = [self._linear, self._precision, self.whitener]
        if self.fit_intercept:
            parts += [self.centre.ravel(), self.root.ravel(), self.reference]
        return joined(head, parts, self.kinks, True)

    def eta(self, rows):
        """Linear predictors at the mode."""
        return rows.predict(self.mode.reshape(-1, self.n_predictors).T)

    def _by_column(self, vector):
        return vector.reshape(self.n_predictors, -1).T.ravel()

    def refuse_metric(self, sampler):
        """Raise: the Fisher information of so many coefficients is not computed."""
        raise ValueError(
            f"sampler={sampler!r} needs the Fisher information at every step, which is implemented for up to "
            f"{MAX_ENTRIES} coefficients; these data have {self.mode.size}. Use another, such as 'hmc'."
        )

    def coef_moments(self):
        """As `Design.coef_moments`."""
        d = len(self.centre)
        mode, variance = (each.reshape(-1, self.n_predictors)[:d] for each in (self.mode, self.whitener**2))
        return mode.T, (variance @ turn(np.eye(self.n_predictors)) ** 2).T

    def off_by(self, slope):
        """Nothing: what the diagonal leaves out is larger than what the curvature's change does."""
        return 0.0

    def checks(self, theta, temperature):
        """None: these units are not those of the posterior's spread."""
        return []

    def coefficients(self, theta):
        """Draws (..., D) as coefficients (..., n_predictors, n_features) and intercepts, float32 if the draws are."""
        b = (theta * self.whitener.astype(theta.dtype)).reshape(*theta.shape[:-1], -1, self.n_predictors)
        mode = self.mode.reshape(-1, self.n_predictors)
        if not self.fit_intercept:
            turn(b)
            b += mode.astype(b.dtype)
            return np.ascontiguousarray(np.swapaxes(b, -1, -2)), np.zeros((*theta.shape[:-1], self.n_predictors))
        intercept = b[..., -1, :] @ self.root.T
        # One class at a time: otherwise numpy would copy all draws in float64.
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
        return delta.ravel() / self.whitener
