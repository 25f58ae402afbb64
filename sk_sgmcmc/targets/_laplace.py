"""Mode and curvature of a dense target, from which starts and step sizes are chosen."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, optimize

from ..dense.tuning import DenseGradient, minibatch_variance

# Largest number of entries of a state for which the Hessian is computed, with two gradients for each entry.
MAX_ENTRIES = 200
_NEWTON_STEPS = 20
_CLOSE = 1e-2  # distance from the mode at which the search stops, in standard deviations
_PROBES = 3  # draws at which the noise of minibatches is compared
_CONDITION = 1e-12  # smallest eigenvalue of the scaled precision, below which a maximum may as well be a ridge


@dataclass(frozen=True, eq=False)
class Laplace:
    """A normal approximation of a target about its mode.

    Parameters
    ----------
    mode : ndarray of shape (D,)
    precision : ndarray of shape (D, D)
        Minus the Hessian of the log density at the mode.
    slope : ndarray of shape (D,)
        Gradient at ``mode``, 0 up to rounding.
    value : float
        Log density at ``mode``.
    """

    mode: np.ndarray
    precision: np.ndarray
    slope: np.ndarray
    value: float

    def draws(self, n, rng):
        """Draws from the approximation, (n, D)."""
        upper = linalg.cholesky(self.precision)
        return self.mode + linalg.solve_triangular(upper, rng.standard_normal((self.mode.size, n))).T


def negative_hessian(gradient, theta, scale):
    """Minus the Hessian of a log density by central differences of its gradient, (D, D).

    Parameters
    ----------
    gradient : callable
        Returns log density and gradient, such as `~sk_sgmcmc.dense.tuning.DenseGradient`.
    theta : ndarray of shape (D,)
    scale : ndarray of shape (D,)
        Step of the differences for each entry.
    """
    D = theta.size
    out = np.empty((D, D))
    for k in range(D):
        shift = np.zeros(D)
        shift[k] = scale[k]
        out[k] = (gradient(theta - shift)[1] - gradient(theta + shift)[1]) / (2.0 * scale[k])
    return 0.5 * (out + out.T)


def _search(gradient, start):
    """The point at which a BFGS search for the mode ends."""
    n = gradient.dense.n_rows

    def objective(theta):
        value, slope = gradient(theta)
        return (-value / n, -slope / n) if np.isfinite(value) else (np.inf, np.zeros_like(slope))

    with np.errstate(all="ignore"):
        return optimize.minimize(objective, start, jac=True, method="BFGS").x


def laplace_approximation(gradient, start):
    """The `Laplace` approximation about the mode found from a start; None if there is no proper mode.

    Parameters
    ----------
    gradient : DenseGradient
    start : ndarray of shape (D,)
    """
    theta, probe = _search(gradient, start), gradient.on_some_rows()
    scale = 1e-4 * (1.0 + np.abs(theta))
    for _ in range(_NEWTON_STEPS):
        value, slope = gradient(theta)
        precision = negative_hessian(probe, theta, scale)
        if not np.isfinite(value) or not np.all(np.isfinite(precision)) or not is_definite(precision):
            return None
        step = linalg.solve(precision, slope, assume_a="pos")
        if slope @ step < _CLOSE**2:
            return Laplace(theta, precision, slope, value)
        for _ in range(_NEWTON_STEPS):  # halve the step until the density increases
            if gradient(theta + step)[0] > value:
                break
            step *= 0.5
        theta = theta + step
        scale = 1e-2 / np.sqrt(np.diag(precision))
    return None


def is_definite(matrix):
    """Whether a symmetric matrix is clearly positive definite, whatever the units of its entries."""
    units = np.diag(matrix)
    if not np.all(units > 0):
        return False
    root = np.sqrt(units)
    return bool(np.linalg.eigvalsh(matrix / np.outer(root, root)).min() > _CONDITION)


def with_control_variates(dense, start, approximation, controlled_signal, force=False):
    """The data with a signal that uses control variates, or ``dense`` unchanged if these do not reduce the noise.

    With control variates, minibatches estimate only the difference between the gradient and the gradient at the mode.

    Parameters
    ----------
    dense : DenseData
    start : ndarray
        Start of the search for a mode, if there is no approximation.
    approximation : Laplace or None
    controlled_signal : callable
        Returns the signal. It reads the mode, and the gradient and log density there, in this order at the beginning of
        ``params``, before the current contents.
    force : bool
        Whether to use control variates even without an approximation, or if they increase the noise of minibatches.
    """
    if approximation is None:
        if not force:
            return dense
        gradient = DenseGradient(dense, start.shape)
        mode = _search(gradient, start.ravel())
        value, slope = gradient(mode)
        if not np.isfinite(value) or not np.all(np.isfinite(slope)):
            raise ValueError(
                f"No mode was found from the start for control_variates=True: the search ended at a log density of "
                f"{value}. Give another start, or control_variates=False."
            )
    else:
        mode, slope, value = approximation.mode, approximation.slope, approximation.value
    controlled = replace(dense, signal=controlled_signal(), params=np.concatenate([mode, slope, [value], dense.params]))
    return controlled if force or _noise(controlled, approximation) < _noise(dense, approximation) else dense


def _noise(dense, approximation):
    """Variance of minibatch gradients in units of the posterior's spread; the maximum over some draws."""
    root = np.linalg.cholesky(np.linalg.inv(approximation.precision))
    rng = np.random.default_rng(0)
    points = approximation.draws(_PROBES, rng)
    gradient = DenseGradient(dense, (approximation.mode.size, 1))
    return max(minibatch_variance(gradient, point, dense.n_batch, rng, root=root) for point in points)
