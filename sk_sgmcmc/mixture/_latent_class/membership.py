"""Prior of the classes of rows: shares with a Dirichlet prior, or a logistic regression on covariates."""

import numpy as np
from scipy import linalg
from scipy.special import gammaln, logsumexp

from ...chains.chain import TINY
from ...kernels.math import polya_gamma as kernels

_NO_ODDS = np.empty((0, 0))


class Shares:
    """Classes are independent draws from shares with a symmetric Dirichlet prior, which are integrated out.

    Parameters
    ----------
    n_classes : int
    concentration : float
        Parameter of the Dirichlet distribution.
    """

    def __init__(self, n_classes, concentration):
        self.n_classes, self.concentration = n_classes, float(concentration)

    def odds(self, data):
        """Log prior odds of the classes of each row, (n_rows, n_classes); empty if shares are integrated out."""
        return _NO_ODDS

    def update(self, data, z, sizes, rng):
        """Draw what the state contains besides labels: nothing."""

    def draw(self, data, sizes, rng):
        """Parameters of a kept draw, a dict of arrays."""
        shares = np.maximum(rng.standard_gamma(self.concentration + np.maximum(sizes, 0.0)), TINY)
        return {"weights": shares / shares.sum()}

    def log_label_prior(self, data, z, sizes):
        """Log prior probability of labels, up to a constant."""
        mean = data.mean_weight
        return mean * gammaln(sizes / mean + self.concentration).sum()


class Regression:
    r"""Classes follow a multinomial logistic regression, :math:`p(z_i = k) \propto \exp(x_i^\top \beta_k)`.

    All classes have coefficients with the same normal prior, so that no class is a reference. They are drawn by
    Polya-Gamma augmentation: given :math:`\omega_{ik} \sim PG(1, x_i^\top \beta_k - c_{ik})`, where :math:`c_{ik} =
    \log \sum_{j \ne k} \exp(x_i^\top \beta_j)`, the coefficients of class k are normal. Besides, a shift that all
    classes have in common, which the data do not determine, is drawn from its prior.

    Parameters
    ----------
    n_classes : int
    precision : ndarray of shape (width, width)
        Precision matrix of the prior of the coefficients of a class.
    """

    concentration = 1.0  # of the shares during tempered starts, which ignore covariates

    def __init__(self, n_classes, precision):
        self.n_classes, self.precision = n_classes, precision
        self.coef = np.zeros((n_classes, len(precision)))

    def odds(self, data):
        """As for `Shares`."""
        return np.ascontiguousarray(data.Z @ self.coef.T)

    def update(self, data, z, sizes, rng):
        """Draw the coefficients given the labels."""
        if self.n_classes == 1:
            return
        Z, weights = data.Z, data.weights
        eta = Z @ self.coef.T
        omega = np.empty(len(Z))
        for k in range(self.n_classes):
            others = logsumexp(np.delete(eta, k, axis=1), axis=1)
            kernels.polya_gamma(np.ascontiguousarray(eta[:, k] - others), rng, omega)
            weighted = weights * omega
            precision = self.precision + (Z.T * weighted) @ Z
            pull = Z.T @ (weights * ((z == k) - 0.5) + weighted * others)
            root = linalg.cholesky(precision, lower=True)
            mean = linalg.cho_solve((root, True), pull)
            noise = linalg.solve_triangular(root.T, rng.standard_normal(len(mean)))
            self.coef[k] = mean + noise
            eta[:, k] = Z @ self.coef[k]
        root = linalg.cholesky(self.precision * self.n_classes, lower=True)
        common = linalg.solve_triangular(root.T, rng.standard_normal(len(root)))
        self.coef += common - self.coef.mean(axis=0)

    def draw(self, data, sizes, rng):
        """As for `Shares`: coefficients of standardised covariates, and the mean shares of the rows."""
        eta = data.Z @ self.coef.T
        shares = np.exp(eta - logsumexp(eta, axis=1, keepdims=True))
        return {"weights": np.average(shares, axis=0, weights=data.weights), "coef": self.coef.copy()}

    def log_label_prior(self, data, z, sizes):
        """As for `Shares`."""
        eta = data.Z @ self.coef.T
        return float(data.weights @ (eta[np.arange(len(z)), z] - logsumexp(eta, axis=1)))
