"""Step sizes for samplers on flat space, from the curvature of the target and the noise of its minibatches."""

import numpy as np

from .samplers._mass import mass_root
from .samplers.schedules import ConstantStep

_STIFFNESS_STEPS = 30
# The largest share of the variance, in the worst direction, that discretisation or minibatches may add.
_TOLERANCE = 0.05


class DenseGradient:
    """Gradient of a dense target in Python's hands.

    Parameters
    ----------
    dense : DenseData
    shape : tuple
        Of the state.
    """

    def __init__(self, dense, shape):
        self.dense, self.shape = dense, shape

    def __call__(self, theta, rows=slice(None)):
        """Log density and gradient, flat, estimated from some of the rows or on all of them."""
        dense = self.dense
        X, y, weight = (np.ascontiguousarray(part[rows], dtype=np.float64) for part in (dense.X, dense.y, dense.weight))
        out, extra = np.empty(self.shape), np.zeros(max(1, self.shape[1]))
        scale = dense.n_rows / X.shape[0]
        status = dense.signal(theta.reshape(self.shape), X, y, weight, dense.params, scale, out, extra)
        return (extra[0] if status == 0 else np.nan), out.ravel()


def stiffness(gradient, theta, inverse_mass, rng):
    """Largest eigenvalue of W times the negative Hessian at theta, by power iteration on differences of gradients.

    ``inverse_mass`` is W, a matrix, or None for the identity.
    """
    theta = theta.ravel()
    base = gradient(theta)[1]
    direction = rng.standard_normal(theta.size)
    value = 0.0
    for _ in range(_STIFFNESS_STEPS):
        direction /= np.linalg.norm(direction)
        step = 1e-4 * (1.0 + np.linalg.norm(theta) / np.sqrt(theta.size))
        image = (base - gradient(theta + step * direction)[1]) / step
        if inverse_mass is not None:
            image = inverse_mass @ image
        previous, value = value, float(np.linalg.norm(image))
        if not np.isfinite(value) or value == 0.0:
            return 1.0
        direction = image
        if abs(value - previous) < 1e-3 * value:
            break
    return value


def metric_at(dense, theta):
    """The metric, (D, D), and its derivatives, (D, D, D), at theta on all the rows, and whether they are finite."""
    D = theta.size
    diagonal = dense.metric.diagonal
    out = np.full((1 + D, D) if diagonal else (D + D * D, D), np.nan)
    rows = (np.ascontiguousarray(part, dtype=np.float64) for part in (dense.X, dense.y, dense.weight))
    dense.metric.kernel(theta.reshape(D, 1), *rows, dense.metric.params, 1.0, out, np.zeros(1))
    if diagonal:
        return np.diag(out[0]), np.stack([np.diag(rates) for rates in out[1:]])
    return out[:D], out[D:].reshape(D, D, D)


def difference_step(theta):
    """How far to go for a difference of log densities or metrics."""
    return 1e-5 * (1.0 + np.abs(theta).max())


def check_finite(gradient, theta):
    """Raise where a user's log density or its gradient is not finite at the start."""
    value, slope = gradient(theta.ravel())
    if not np.isfinite(value):
        raise ValueError(f"The log density at the start is {value}; give a start where it is finite.")
    bad = np.flatnonzero(~np.isfinite(slope))
    if bad.size:
        raise ValueError(
            f"The gradient at the start is {slope[bad[0]]} in entry {bad[0]} of theta, one of {bad.size} that are not "
            "finite; give a start where it is, and write all of its entries."
        )


def check_gradient(gradient, theta, direction=None, which=""):
    """Raise where a user's gradient is not the slope of the log density along a direction at the start.

    Parameters
    ----------
    gradient : DenseGradient
    theta : ndarray
        The start.
    direction : ndarray of shape (D,), default=None
        One in which the state can move; None is a random one.
    which : str
        What of the gradient is looked at, for the error.
    """
    x = theta.ravel()
    value, slope = gradient(x)
    direction = np.random.default_rng(0).standard_normal(x.size) if direction is None else direction
    step = difference_step(x)
    high, low = gradient(x + step * direction)[0], gradient(x - step * direction)[0]
    seen, told = (high - low) / (2.0 * step), slope @ direction
    slack = 1e-3 * (np.abs(slope) @ np.abs(direction) + abs(seen)) + 1e-9 * abs(value) / step + 1e-6
    if np.isfinite(seen) and not abs(seen - told) <= slack:
        raise ValueError(
            f"The gradient{which} does not fit the log density: along a random direction at the start it says "
            f"{told:.6g}, differences of the log density say {seen:.6g}. Is scale in both?"
        )


def check_metric(dense, theta):
    """Raise where a user's metric is no metric at the start, or its derivatives are not those of differences."""
    G, rates = metric_at(dense, theta)
    if not (np.all(np.isfinite(G)) and np.allclose(G, G.T) and np.linalg.eigvalsh(G).min() > 0):
        raise ValueError(f"The metric at the start is not symmetric and positive definite: {G.tolist()}.")
    direction = np.random.default_rng(1).standard_normal(theta.shape)
    step = difference_step(theta)
    seen = (metric_at(dense, theta + step * direction)[0] - metric_at(dense, theta - step * direction)[0]) / (
        2.0 * step
    )
    told = np.einsum("k,kij->ij", direction.ravel(), rates)
    slack = 1e-3 * np.abs(told).max() + 1e-9 * np.abs(G).max() / step
    if not np.abs(seen - told).max() <= slack:
        raise ValueError(
            f"The derivatives do not fit the metric: along a random direction at the start they say {told.tolist()}, "
            f"differences of the metric say {seen.tolist()}. dG[k] is the derivative of G along theta[k]."
        )


def minibatch_variance(gradient, theta, n_batch, rng, n_probes=30):
    """Largest variance of an entry of the minibatch gradient; 0 where a batch is all the data."""
    n_rows = gradient.dense.n_rows
    if n_batch >= n_rows:
        return 0.0
    total, squares = np.zeros(theta.size), np.zeros(theta.size)
    first = None
    for _ in range(n_probes):
        probe = gradient(theta.ravel(), rng.integers(0, n_rows, n_batch))[1]
        first = probe if first is None else first
        total += probe - first
        squares += (probe - first) ** 2
    return float(((squares - total**2 / n_probes) / (n_probes - 1)).max())


def auto_step_size(sampler, dense, theta, n_batch):
    """A constant step that keeps the errors of discretisation and of minibatches near 5 % of a variance."""
    rng = np.random.default_rng(0)
    gradient = DenseGradient(dense, theta.shape)
    D = theta.size
    given = getattr(sampler, "preconditioner", None)
    W = np.eye(D) if given is None else np.diag(np.asarray(given, dtype=float))
    mass = getattr(sampler, "mass", None)
    if mass is not None and not hasattr(mass, "get_params"):
        mass = np.asarray(mass, dtype=float) * (np.ones(D) if np.ndim(mass) == 0 else 1.0)
        mass_root(mass, D)
        W = np.diag(1.0 / mass) if mass.ndim == 1 else np.linalg.inv(mass)
    if dense.metric is not None:
        W = np.linalg.inv(metric_at(dense, theta)[0])
    largest = stiffness(gradient, theta, W, rng)
    noise = minibatch_variance(gradient, theta, n_batch, rng) * float(np.diag(W).max())
    if sampler._overdamped:
        # Variance times 1 + h lambda / 2 + h V / 2.
        return ConstantStep(2.0 * _TOLERANCE / (largest + noise))
    h = 0.35 / np.sqrt(largest)
    friction = getattr(sampler, "friction", None)
    if friction and noise:  # temperature times 1 + h V / 2 C; thermostats take the noise out themselves
        h = min(h, 2.0 * _TOLERANCE * friction / noise)
    return ConstantStep(h)
