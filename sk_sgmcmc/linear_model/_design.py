"""Logistic regression's data and prior in coordinates that suit a sampler."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

_MAX_NEWTON = 60
MAX_ENTRIES = 4000  # coefficients, beyond which the Hessian is not factorised


@dataclass
class Quadratic:
    """A Gaussian prior on the coefficients as given: mean (D,), precision (D, D), D = rows x (features + intercept)."""

    mean: np.ndarray
    precision: np.ndarray


def independent_prior(n_rows, n_features, prior_scale, intercept_scale):
    """Independent normals; ``intercept_scale`` None for a model without intercept."""
    each = np.full(n_features, float(prior_scale) ** -2)
    if intercept_scale is not None:
        each = np.append(each, float(intercept_scale) ** -2)
    return Quadratic(np.zeros(n_rows * each.size), np.diag(np.tile(each, n_rows)))


class Design:
    """Standardised columns, the mode of the posterior in them, and the coordinates whitened by its Hessian.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    y : ndarray of int, shape (n,)
        Codes of the classes.
    weight : ndarray of shape (n,)
    n_rows : int
        Linear predictors: 1 for two classes, else the number of classes.
    prior : Quadratic
    fit_intercept, control_variates : bool

    Attributes
    ----------
    mode, whitener : (D,), (D, D)
        Coefficients are ``mode + whitener @ theta`` in standardised columns.
    """

    def __init__(self, X, y, weight, n_rows, prior, fit_intercept, control_variates):
        self.n_rows, self.fit_intercept, self.control = n_rows, fit_intercept, control_variates
        total = weight.sum()
        self.shift = weight @ X / total if fit_intercept else np.zeros(X.shape[1])
        spread = np.sqrt(np.maximum(weight @ (X - self.shift) ** 2 / total, 0.0))
        tiny = 1e-12 * np.abs(X).max(axis=0, initial=0.0)
        self.scale = np.where(spread > tiny, spread, 1.0)
        Z, back = self.columns(X), self._back()
        m = Z.shape[1]
        self.forward = linalg.inv(back)
        precision = self._blocks(back.T, self._blocks(back.T, prior.precision).T)
        mean = self._rows(self.forward, prior.mean)
        self.mode = self._newton(Z, y, weight, mean, precision)
        eta = self._eta(Z, self.mode)
        gradient, hessian = self._derivatives(Z, y, weight, eta, self.mode - mean, precision)
        # The Hessian is scaled to a unit diagonal first, so that the factorisation does not depend on units.
        d = 1.0 / np.sqrt(np.diag(hessian))
        root = linalg.cholesky(hessian * d[:, None] * d, lower=True)
        self.whitener = d[:, None] * linalg.solve_triangular(root, np.eye(d.size), lower=True).T
        self.precision = precision
        D = self.mode.size
        if control_variates:
            offset, quadratic = self.whitener.T @ gradient, np.eye(D)
        else:
            offset = -self.whitener.T @ (precision @ (self.mode - mean))
            quadratic = self.whitener.T @ precision @ self.whitener
        self.params = np.concatenate([[D, float(control_variates)], offset, quadratic.ravel(), self.whitener.ravel()])
        # The Gaussian that stands for these data when more come: in the coordinates of the columns as given.
        forward = self.forward.T
        self.summary = Quadratic(self._rows(back, self.mode), self._blocks(forward, self._blocks(forward, hessian).T))
        self.width = m

    def metric_params(self):
        """The prior's precision in whitened coordinates and the whitener, as the metric's kernel reads them."""
        return np.concatenate([(self.whitener.T @ self.precision @ self.whitener).ravel(), self.whitener.ravel()])

    def columns(self, X):
        """Standardised columns, then ones for the intercept."""
        Z = (X - self.shift) / self.scale
        return np.column_stack([Z, np.ones(len(Z))]) if self.fit_intercept else Z

    def _back(self):
        """Matrix from coefficients of standardised columns to those of the columns as given."""
        back = np.diag(1.0 / self.scale)
        if not self.fit_intercept:
            return back
        d = self.scale.size
        back = np.pad(back, ((0, 1), (0, 1)))
        back[d, :d] = -self.shift / self.scale
        back[d, d] = 1.0
        return back

    def _blocks(self, a, matrix):
        """(I x a) @ matrix, for the class-by-class layout."""
        m = a.shape[0]
        return np.einsum("ij,kjl->kil", a, matrix.reshape(self.n_rows, m, -1)).reshape(matrix.shape)

    def _rows(self, a, vector):
        return (vector.reshape(self.n_rows, -1) @ a.T).ravel()

    def _eta(self, Z, b):
        return Z @ b.reshape(self.n_rows, -1).T

    def _log_likelihood(self, y, weight, eta):
        if self.n_rows == 1:
            return weight @ (y * eta[:, 0] - np.logaddexp(0.0, eta[:, 0]))
        return weight @ (eta[np.arange(len(y)), y] - special.logsumexp(eta, axis=1))

    def _derivatives(self, Z, y, weight, eta, shift, precision):
        """Gradient of the log posterior, and minus its Hessian."""
        pull = precision @ shift
        if self.n_rows == 1:
            p = special.expit(eta[:, 0])
            gradient = Z.T @ (weight * (y - p)) - pull
            return gradient, (Z.T * (weight * p * (1.0 - p))) @ Z + precision
        K, m = self.n_rows, Z.shape[1]
        p = special.softmax(eta, axis=1)
        residual = (y[:, None] == np.arange(K)) - p
        gradient = ((weight[:, None] * residual).T @ Z).ravel() - pull
        hessian = precision.copy()
        for k in range(K):
            for j in range(k + 1):
                c = weight * (p[:, k] * ((k == j) - p[:, j]))
                part = (Z.T * c) @ Z
                hessian[k * m : (k + 1) * m, j * m : (j + 1) * m] += part
                if j < k:
                    hessian[j * m : (j + 1) * m, k * m : (k + 1) * m] += part.T
        return gradient, hessian

    def _newton(self, Z, y, weight, mean, precision):
        """The mode: the log posterior is strictly concave, so damped Newton steps find it from anywhere."""
        b = np.zeros(mean.size)

        def value(b):
            shift = b - mean
            return self._log_likelihood(y, weight, self._eta(Z, b)) - 0.5 * shift @ precision @ shift

        now = value(b)
        for _ in range(_MAX_NEWTON):
            gradient, hessian = self._derivatives(Z, y, weight, self._eta(Z, b), b - mean, precision)
            d = 1.0 / np.sqrt(np.diag(hessian))
            step = d * linalg.solve(hessian * d[:, None] * d, d * gradient, assume_a="pos")
            gain = gradient @ step
            t = 1.0
            while (new := value(b + t * step)) < now + 0.1 * t * gain - 1e-12 * abs(now) and t > 1e-8:
                t *= 0.5
            if new >= now - 1e-12 * abs(now):
                b, now = b + t * step, new
            if gain < 1e-14 * (1.0 + abs(now)) or t <= 1e-8:
                break
        return b

    def outputs(self, Z, y):
        """The class, the linear predictors at the mode, and for two classes what the kernel needs of them."""
        eta = self._eta(Z, self.mode)
        if self.n_rows > 1:
            return np.column_stack([y, eta])
        return np.column_stack([y, eta, special.expit(eta), np.logaddexp(0.0, eta)])

    def coefficients(self, theta):
        """Draws (..., D) as coefficients of the columns as given (..., n_rows, n_features) and intercepts."""
        b = self.mode + theta @ self.whitener.T
        b = b.reshape(*theta.shape[:-1], self.n_rows, -1) @ self._back().T
        if not self.fit_intercept:
            return b, np.zeros(b.shape[:-1])
        return np.ascontiguousarray(b[..., :-1]), b[..., -1].copy()

    def theta_of(self, coef, intercept):
        """The inverse of `coefficients`, for one draw."""
        b = np.column_stack([coef, intercept]) if self.fit_intercept else coef
        return linalg.solve(self.whitener, self._rows(self.forward, b.ravel()) - self.mode)
