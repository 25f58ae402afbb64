"""What rows say of their linear predictors, in the generalised linear models."""

import numpy as np
from scipy import special


class Classes:
    """Labels: the logistic and softmax likelihoods."""

    dtype = np.int64

    @staticmethod
    def value(y, weight, eta):
        """Weighted log likelihood of class codes under linear predictors (n, 1 or n_classes)."""
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
        """Derivative of `value` in the predictors, and the probabilities; both of the shape of ``eta``."""
        if eta.shape[1] == 1:
            p = special.expit(eta)
            return weight[:, None] * (y[:, None] - p), p
        p = special.softmax(eta, axis=1)
        return weight[:, None] * ((y[:, None] == np.arange(eta.shape[1])) - p), p

    @staticmethod
    def curvature(weight, p):
        """Minus the second derivative of `value` in each predictor alone."""
        return weight[:, None] * p * (1.0 - p)

    @staticmethod
    def remainder(weight, then, now):
        """Change of the mean responses between two linear predictors, beyond its first order; no response counts."""
        away = now - then
        if then.shape[1] == 1:
            p = special.expit(then)
            return weight[:, None] * (special.expit(now) - p - p * (1.0 - p) * away)
        p = special.softmax(then, axis=1)
        slope = p * (away - (p * away).sum(axis=1, keepdims=True))
        return weight[:, None] * (special.softmax(now, axis=1) - p - slope)

    @staticmethod
    def largest_curvature(y, weight, n_predictors):
        """A guess at `curvature` before any predictor is known."""
        most = 0.25 if n_predictors == 1 else (n_predictors - 1.0) / n_predictors**2
        return np.full((weight.size, n_predictors), most) * weight[:, None]

    @staticmethod
    def start(y, weight):
        """Intercept of centred columns at which the search for the mode starts."""
        return 0.0

    @staticmethod
    def outputs(y, eta):
        """What the kernels read of each row: class, predictors, probabilities and log total at the mode."""
        if eta.shape[1] > 1:
            return np.column_stack([y, eta, special.softmax(eta, axis=1), special.logsumexp(eta, axis=1)])
        return np.column_stack([y, eta, special.expit(eta), np.logaddexp(0.0, eta)])


class Counts:
    """Counts with a log link, and weights as exposures: the Poisson likelihood."""

    dtype = np.float64

    @staticmethod
    def value(y, weight, eta):
        """Weighted log likelihood under linear predictors (n, 1), without the factorials."""
        with np.errstate(over="ignore"):  # an infinite mean loses against any other
            return weight @ (y * eta[:, 0] - np.exp(eta[:, 0]))

    @staticmethod
    def each(y, eta):
        """Log likelihood of each row, without the factorial."""
        with np.errstate(over="ignore"):
            return y * eta[:, 0] - np.exp(eta[:, 0])

    @staticmethod
    def residuals(y, weight, eta):
        """Derivative of `value` in the predictors, and the means; both of the shape of ``eta``."""
        with np.errstate(over="ignore"):
            mean = np.exp(eta)
        return weight[:, None] * (y[:, None] - mean), mean

    @staticmethod
    def curvature(weight, mean):
        """Minus the second derivative of `value` in the predictor."""
        return weight[:, None] * mean

    @staticmethod
    def remainder(weight, then, now):
        """As `Classes.remainder`."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean, away = np.exp(then), now - then
            return weight[:, None] * (np.exp(now) - mean - mean * away)

    @staticmethod
    def largest_curvature(y, weight, n_predictors):
        """A guess at `curvature` before any predictor is known."""
        return (weight * np.maximum(y, np.average(y, weights=weight)))[:, None]

    @staticmethod
    def start(y, weight):
        """Logarithm of the mean response, at which the search for the mode starts."""
        return np.log(max(np.average(y, weights=weight), 0.5 / weight.sum()))

    @staticmethod
    def outputs(y, eta):
        """What the kernels read of each row: count, predictor at the mode and its exponential."""
        return np.column_stack([y, eta, np.exp(eta)])


CLASSES, COUNTS = Classes(), Counts()
