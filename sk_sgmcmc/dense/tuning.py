"""Curvatures and noise of gradients on Euclidean space, and checks of a user's log density, gradient and metric."""

import numpy as np

from ..chains.checks import WRONG_GRADIENT
from ..kernels._failures import Failures, recorded_in

_STIFFNESS_STEPS = 30  # largest number of power iterations
_SOME_ROWS = 20_000  # largest number of rows from which a curvature is measured
# A curvature is accepted if the secant curvature, at the distance that it implies, is at most this multiple of it.
# Kinks and plateaus exceed this.
_BEND = 100.0
_MOST_BENDS = 20  # largest number of such distances, each shorter than the last
_FEWEST_CHECKED, _MOST_CHECKED = 5, 25  # number of draws at which a gradient is compared with differences
_CHECK_STEP = 1e-3  # step of these differences, in standard deviations of the draws
_CHECKED_CELLS = 1e8  # limit on rows times entries read by these comparisons, each of three log densities
_LEAST_EIGENVALUE = 1e-12  # of a metric, relative to the largest: below it, rounding decides
_VELOCITIES, _RATE_STEP = 4, 1e-4  # number of velocities and time step by which the rate of a metric is measured
_FAR = 1e3  # distance at which to look for the end of a plateau, relative to 1 + the size of the state


class DenseGradient:
    """Gradient of a dense target, callable from Python.

    Parameters
    ----------
    dense : DenseData
    shape : tuple
        Shape of the state.

    Attributes
    ----------
    failures : Failures
        Exceptions raised by a user's function in all calls so far. Such calls return NaN.
    """

    def __init__(self, dense, shape):
        self.dense, self.shape, self.failures = dense, shape, Failures()

    def __call__(self, theta, rows=slice(None)):
        """Log density and flat gradient at theta, from ``rows`` scaled up to all rows."""
        dense = self.dense
        X, y, weight = (np.ascontiguousarray(part[rows], dtype=np.float64) for part in (dense.X, dense.y, dense.weight))
        out, extra = np.empty(self.shape), np.zeros(max(1, self.shape[1]))
        scale = dense.n_rows / X.shape[0]
        failures = self.failures
        before = failures.n
        with recorded_in(failures):
            status = dense.signal(theta.reshape(self.shape), X, y, weight, dense.params, scale, out, extra)
        failures.raise_fatal()
        if failures.n > before:
            out[:] = np.nan
        return (extra[0] if status == 0 else np.nan), out.ravel()

    def on_some_rows(self):
        """The gradient as a function of theta, from at most `_SOME_ROWS` rows, which suffice for curvatures."""
        n_rows = self.dense.n_rows
        if n_rows <= _SOME_ROWS:
            return self
        chosen = np.sort(np.random.default_rng(0).choice(n_rows, _SOME_ROWS, replace=False))
        return lambda theta: self(theta, chosen)


def _length(vector):
    """Euclidean length of a vector, also if its square overflows float64."""
    with np.errstate(over="ignore"):
        length = float(np.linalg.norm(vector))
    if np.isfinite(length):
        return length
    largest = np.abs(vector).max()
    return float(largest * np.linalg.norm(vector / largest)) if np.isfinite(largest) else np.inf


def stiffness(gradient, theta, inverse_mass, rng):
    """Largest eigenvalue of W times the negative Hessian at theta, by power iteration on differences of gradients.

    ``inverse_mass`` is the matrix W, or None for the identity. Returns 1 if gradients are infinite or constant.
    """
    theta = theta.ravel()
    base = gradient(theta)[1]
    direction = rng.standard_normal(theta.size)
    value = 0.0
    step = 1e-4 * (1.0 + np.linalg.norm(theta) / np.sqrt(theta.size))
    while not np.all(np.isfinite(gradient(theta + step * direction)[1])) and step > 1e-12:
        step *= 0.1  # the gradient overflows within this step
    for _ in range(_STIFFNESS_STEPS):
        direction /= _length(direction)
        with np.errstate(invalid="ignore", over="ignore"):  # infinite gradients return 1
            image = (base - gradient(theta + step * direction)[1]) / step
            if inverse_mass is not None:
                image = inverse_mass @ image
        previous, value = value, _length(image)
        if not np.isfinite(value) or value == 0.0:
            return 1.0
        direction = image
        if abs(value - previous) < 1e-3 * value:
            break
    return value


def curvature(gradient, theta, inverse_mass, rng):
    """`stiffness`, or a larger curvature at greater distance if gradients hardly change near theta.

    On either side of a kink, and on a plateau, differences over a short distance are rounding errors or 0, and imply a
    step that passes over the whole density. A curvature c implies a distance 1 / sqrt(c). It is accepted if gradients
    change over this distance about as much as c predicts, or if c is not small compared with the squared slope: a log
    density with slope s changes by 1 over a distance 1 / s.
    """
    found = stiffness(gradient, theta, inverse_mass, rng)
    theta = theta.ravel()
    scale = np.ones(theta.size) if inverse_mass is None else np.sqrt(np.diag(inverse_mass))
    base = gradient(theta)[1]
    slope = scale * base
    with np.errstate(over="ignore"):
        steepness = np.square(np.abs(slope).max())
    ways = [np.random.default_rng(1).standard_normal(theta.size)]
    if steepness > 0.0:  # towards the mode
        ways.append(slope)
    ways = [sign * way / _length(way) for way in ways for sign in (1.0, -1.0)]

    def secant(distance):
        """Largest change of the gradient over a distance, divided by it; 0 if no gradient is finite."""
        changes = [scale * (gradient(theta + distance * scale * way)[1] - base) for way in ways]
        return max((_length(each) / distance for each in changes if np.all(np.isfinite(each))), default=0.0)

    with np.errstate(invalid="ignore", over="ignore"):
        if steepness == 0.0 and secant(1e-3) == 0.0:
            reach = _FAR * (1.0 + np.abs(theta).max())
            return float(max(found, *(secant(distance) for distance in np.geomspace(1.0, reach, 4))))
        if not found < steepness < np.inf or secant(1.0 / np.sqrt(found)) <= _BEND * found:
            return found
        for _ in range(_MOST_BENDS):
            bent = secant(1.0 / np.sqrt(found))
            if not found < bent < np.inf:
                break
            found = bent
    return float(max(found, steepness))


def _written_metric(dense, theta, shape):
    """Evaluate the kernel of the metric into an array of NaN, from the rows that samplers use."""
    rows = dense.metric_rows(theta.size)
    out = np.full(shape, np.nan)
    scale = dense.n_rows / len(rows[0])
    dense.metric.kernel(theta.reshape(theta.size, 1), *rows, dense.metric.params, scale, out, np.zeros(1))
    return out


def metric_at(dense, theta):
    """Metric (D, D) and its derivatives (D, D, D) at theta; NaN for entries that a user's function did not write."""
    D = theta.size
    if dense.metric.diagonal:
        out = _written_metric(dense, theta, (1 + D, D))
        return np.diag(out[0]), np.stack([np.diag(rates) for rates in out[1:]])
    out = _written_metric(dense, theta, (D + D * D, D))
    return out[:D], out[D:].reshape(D, D, D)


def inverse_metric(dense, theta):
    """Inverse of the metric at theta, (D, D); of a singular metric, with the smallest eigenvalues replaced."""
    D = theta.size
    if dense.metric.diagonal:
        return np.diag(1.0 / _written_metric(dense, theta, (1, D))[0])
    metric = _written_metric(dense, theta, (D, D))
    try:
        inverse = np.linalg.inv(metric)
        np.linalg.cholesky(inverse)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(metric)
        inverse = (vectors / np.maximum(values, _LEAST_EIGENVALUE * values[-1])) @ vectors.T
    return inverse


def metric_rate(dense, theta, inverse, rng):
    """Largest relative rate of change of the metric per unit of time, along random thermal velocities at theta."""
    D = theta.size
    shape = (1, D) if dense.metric.diagonal else (D, D)
    root, here, largest = np.linalg.cholesky(inverse), _written_metric(dense, theta, shape), 0.0
    for _ in range(_VELOCITIES):
        there = _written_metric(dense, theta + _RATE_STEP * (root @ rng.standard_normal(D)), shape)
        change = (there - here) / _RATE_STEP
        change = np.diag(change[0]) if dense.metric.diagonal else change
        largest = max(largest, np.abs(np.linalg.eigvalsh(root.T @ change @ root)).max())
    return float(largest)


def difference_step(theta):
    """Step of central differences of log densities or metrics at theta."""
    return 1e-5 * (1.0 + np.abs(theta).max())


def check_finite(gradient, theta):
    """Raise an error if a user's log density or its gradient is not finite at the start."""
    failures = gradient.failures
    before = failures.n
    value, slope = gradient(theta.ravel())
    if failures.n > before:
        raise ValueError(
            f"The log density raised an exception at the start: {failures.first}. Correct it, or give a start where it "
            "is defined."
        ) from failures.error
    if not np.isfinite(value):
        raise ValueError(f"The log density at the start is {value}; give a start where it is finite.")
    bad = np.flatnonzero(~np.isfinite(slope))
    if bad.size:
        raise ValueError(
            f"The gradient at the start is {slope[bad[0]]} in entry {bad[0]} of theta, one of {bad.size} that are not "
            "finite; give a start where it is, and write every entry."
        )


def check_gradient(gradient, theta, direction=None, which="", where="at the start"):
    """Raise an error if a user's gradient does not match differences of the log density along a direction.

    Parameters
    ----------
    gradient : DenseGradient
    theta : ndarray
        Point at which to compare.
    direction : ndarray of shape (D,), default=None
        Direction in which the state can move. None: a random direction.
    which : str
        Name of the part of the gradient that is checked, for the error.
    where : str
        Name of the point, for the error.
    """
    x = theta.ravel()
    value, slope = gradient(x)
    direction = np.random.default_rng(0).standard_normal(x.size) if direction is None else direction
    step = difference_step(x)
    high, low = gradient(x + step * direction)[0], gradient(x - step * direction)[0]
    seen, given = (high - low) / (2.0 * step), slope @ direction
    slack = 1e-3 * (np.abs(slope) @ np.abs(direction) + abs(seen)) + 1e-9 * abs(value) / step + 1e-6
    if np.isfinite(seen) and not abs(seen - given) <= slack:
        raise ValueError(
            f"The gradient{which} does not fit the log density: along a random direction {where} it gives "
            f"{given:.6g}, differences of the log density give {seen:.6g}. Check its sign, and that scale is in both."
        )


def check_gradient_at(gradient, draws, project=None):
    """Check that a user's gradient matches differences of the log density at some of the draws.

    Parameters
    ----------
    gradient : DenseGradient
        Gradient on all rows.
    draws : ndarray of shape (n_draws, D)
        Draws, of which some are used, evenly spaced.
    project : callable, default=None
        Function (draw, direction) that projects a direction onto the directions in which the state can move; all have
        shape (D,).
    """
    n = int(np.clip(_CHECKED_CELLS / (draws.shape[1] * gradient.dense.n_rows), _FEWEST_CHECKED, _MOST_CHECKED))
    chosen = draws[np.unique(np.linspace(0, len(draws) - 1, n).round().astype(int))].astype(np.float64)
    spread, rng, found = draws.std(axis=0), np.random.default_rng(4), []
    for x in chosen:
        direction = np.where(spread > 0.0, spread, 1e-3 * (1.0 + np.abs(x))) * rng.standard_normal(x.size)
        direction = direction if project is None else project(x, direction)
        value, slope = gradient(x)
        low, high = (gradient(x + sign * _CHECK_STEP * direction)[0] for sign in (-1.0, 1.0))
        # At a kink, any slope between the slopes on both sides is a valid gradient.
        sides, given = np.array([value - low, high - value]) / _CHECK_STEP, slope @ direction
        slack = 1e-3 * (np.abs(slope) @ np.abs(direction) + np.abs(sides).max()) + 1e-6
        slack += 1e-9 * abs(value) / _CHECK_STEP
        if np.all(np.isfinite([given, *sides])) and not sides.min() - slack <= given <= sides.max() + slack:
            found.append((x, given, sides.mean()))
    if not found:
        return WRONG_GRADIENT.passed(0)
    x, given, seen = max(found, key=lambda each: abs(each[1] - each[2]))
    shown = np.array2string(x, precision=4, threshold=8, edgeitems=3, separator=", ")
    meaning = (
        f"The gradient does not fit the log density at {len(found)} of {len(chosen)} draws, so the draws may follow "
        f"another distribution. At the coordinates {shown}, along a random direction, the gradient gives {given:.6g}, "
        f"and differences of the log density give {seen:.6g}."
    )
    return WRONG_GRADIENT.fired(len(found), meaning, "Correct the gradient there, or leave it out.")


def points_away(gradient, theta):
    """Yield points away from the start, each with a description for errors.

    At the start, a gradient of 0 can hide a wrong sign. The points lie in random directions. One is at the distance
    over which the curvature changes the density considerably, and one at a tenth of 1 + the size of the state. Points
    without a finite log density or gradient are left out.
    """
    rng = np.random.default_rng(2)
    x = theta.ravel()
    near = 1.0 / np.sqrt(stiffness(gradient, theta, None, rng))
    for distance in (near, 0.1 * (1.0 + np.abs(x).max())):
        point = x + distance * rng.standard_normal(x.size)
        value, slope = gradient(point)
        if np.isfinite(value) and np.all(np.isfinite(slope)):
            yield point.reshape(theta.shape), f"{distance:.3g} away from the start"


def check_scale(gradient, theta):
    """Raise an error if the scaled log densities or gradients of the halves of the rows do not average to the whole."""
    n = gradient.dense.n_rows
    x = theta.ravel()
    halves = (slice(0, n // 2), slice(n // 2, n))
    parts = [np.append(*gradient(x, rows)) * (rows.stop - rows.start) / n for rows in halves]
    whole, slack = np.append(*gradient(x)), 1e-6 * (np.abs(parts).sum(axis=0) + 1e-3)
    if np.all(np.isfinite(parts)) and np.all(np.isfinite(whole)):
        off = np.abs(sum(parts) - whole) - slack
        if off.max() > 0:
            k = int(np.argmax(off))
            which = "the log density" if k == 0 else f"entry {k - 1} of the gradient"
            raise ValueError(
                f"Minibatches do not add up to the data: {which} is {whole[k]:.6g} on all rows and {sum(parts)[k]:.6g} "
                "on average over two halves of them. Multiply sums over rows by scale, and nothing else."
            )


def check_metric(dense, theta):
    """Raise an error if a user's metric is invalid at the start, or its derivatives do not match differences."""
    with recorded_in(Failures()) as failures:
        G, rates = metric_at(dense, theta)
    failures.raise_fatal()
    if failures.n:
        raise ValueError(f"The metric raised an exception at the start: {failures.first}.") from failures.error
    if not (np.all(np.isfinite(G)) and np.allclose(G, G.T) and np.linalg.eigvalsh(G).min() > 0):
        raise ValueError(f"The metric at the start is not symmetric and positive definite: {G.tolist()}.")
    direction = np.random.default_rng(1).standard_normal(theta.shape)
    step = difference_step(theta)
    seen = (metric_at(dense, theta + step * direction)[0] - metric_at(dense, theta - step * direction)[0]) / (
        2.0 * step
    )
    given = np.einsum("k,kij->ij", direction.ravel(), rates)
    slack = 1e-3 * np.abs(given).max() + 1e-9 * np.abs(G).max() / step
    if not np.abs(seen - given).max() <= slack:
        raise ValueError(
            f"The derivatives do not fit the metric: along a random direction at the start they give {given.tolist()}, "
            f"differences of the metric give {seen.tolist()}. dG[k] is the derivative of G along theta[k]."
        )


def check_density(dense, starts, derivatives=True):
    """Raise an error if a user's log density is not finite at the starts or inconsistent with itself.

    With ``derivatives``, gradients are compared with differences, minibatches with all rows, and the metric is checked.
    """
    gradient, theta = DenseGradient(dense, starts[0].shape), starts[0]
    for start in starts:
        check_finite(gradient, start)
    if derivatives:
        check_gradient(gradient, theta)
        for point, where in points_away(gradient, theta):
            check_gradient(gradient, point, where=where)
            if dense.n_batch < dense.n_rows:
                check_scale(gradient, point)
        if dense.metric is not None:
            check_metric(dense, theta)


def minibatch_variance(gradient, theta, n_batch, rng, n_probes=30, root=None):
    """Largest variance of an entry of the minibatch gradient; 0 if a minibatch is all rows.

    With ``root`` (D, D), gradients are first multiplied by its transpose, to change their units.
    """
    n_rows = gradient.dense.n_rows
    if n_batch >= n_rows:
        return 0.0
    total, squares = np.zeros(theta.size), np.zeros(theta.size)
    first = None
    for _ in range(n_probes):
        probe = gradient(theta.ravel(), rng.integers(0, n_rows, n_batch))[1]
        probe = probe if root is None else probe @ root
        first = probe if first is None else first
        total += probe - first
        squares += (probe - first) ** 2
    return float(((squares - total**2 / n_probes) / (n_probes - 1)).max())


def unit_root(inverse_mass):
    """Lower Cholesky root of an inverse mass W, or None if W is the identity."""
    if inverse_mass is None or np.array_equal(inverse_mass, np.eye(len(inverse_mass))):
        return None
    return np.linalg.cholesky(inverse_mass)
