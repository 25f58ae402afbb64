"""Automatic step sizes of samplers on flat space: the longest step whose predicted bias is small."""

import numpy as np

from ..samplers.schedules import ConstantStep
from .bias import Noise, stationary_covariance
from .tuning import DenseGradient, curvature, inverse_metric, minibatch_variance, unit_root

_BIAS = 0.05  # largest relative error of a posterior standard deviation
_SHORTER, _MOST_TRIES = 0.7, 40  # factor between the steps that are tried, and their number
_HALVINGS = 6  # of the interval between the last two of them
LONGEST_SHARE = 0.5  # of a variance as an error: a sampler without momentum then has a step of half its limit
_RANGE = 100.0  # of the curvatures for which a prediction is made
# Where no prediction is made: largest share of a posterior variance, in the worst direction, that discretisation or
# minibatches may add.
_TOLERANCE = 0.05
_REACH = 0.35  # step size of a sampler with momentum, times the square root of the largest curvature


def longest_step(sampler, largest, noise, n_batches, batch_order, limit):
    """Longest step size at which no standard deviation has a predicted error above 5%; None if that is not known.

    The prediction is made for a Gaussian: for directions of the largest curvature and of curvature 1, the smallest in
    whitened coordinates, each with the largest noise of minibatches and without noise. Thermostats react to their mean.

    Parameters
    ----------
    sampler : Sampler
    largest : float
        Largest curvature, in coordinates in which the mass is the identity.
    noise : float
        Largest variance of an entry of the minibatch gradient; 0 without minibatches.
    n_batches : float
        Minibatches in an epoch; infinite if rows are drawn with replacement.
    batch_order : str
        As for `Noise`.
    limit : float
        Longest step size to consider. Splittings have no bias on a Gaussian for any stable step, so on other densities
        it decides.

    Returns
    -------
    step_size : float, or None if the bias cannot be predicted
    """
    curvatures = np.repeat([min(largest, max(1.0, largest / _RANGE)), largest], 2)
    variances = np.tile([noise, 0.0], 2)
    exact = sampler.temperature / curvatures

    def is_good(h):
        chain = sampler._linear_chain(curvatures, h, variances)
        if chain is None or not chain.is_stable():
            return False
        biased, _ = stationary_covariance(chain, Noise(np.diag(variances), n_batches, batch_order))
        return bool(np.all(np.abs(np.sqrt(np.diag(biased) / exact) - 1.0) <= _BIAS))

    try:
        with np.errstate(all="ignore"):
            return _longest_good(is_good, limit)
    except np.linalg.LinAlgError:  # a curvature that float64 cannot square
        return None


def _longest_good(is_good, limit):
    """The longest step size up to ``limit`` that is good, to about 1%; None if none of those tried is."""
    found = next((h for h in limit * _SHORTER ** np.arange(_MOST_TRIES) if is_good(h)), None)
    if found in (None, limit):
        return found
    low, high = found, found / _SHORTER
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_good(middle) else (low, middle)
    return float(low)


def auto_step_size(sampler, dense, points, n_batch):
    """Constant step size: the longest whose predicted bias is small, or the one of the sampler's rule.

    Parameters
    ----------
    sampler : Sampler
    dense : DenseData
    points : list of ndarray
        States at which curvature and noise are measured; the largest values are used.
    n_batch : int
        Number of rows in a minibatch.
    """
    rng = np.random.default_rng(0)
    gradient = DenseGradient(dense, points[0].shape)
    D = points[0].size
    if dense.metric is None:
        inverses = [sampler._inverse_mass(D)] * len(points)
    else:
        inverses = [inverse_metric(dense, point) for point in points]
    probe = gradient if len(points) == 1 else gradient.on_some_rows()
    largest = max(curvature(probe, point, W, rng) for point, W in zip(points, inverses, strict=True))
    # Noise is measured in units in which W is the identity.
    noise = max(
        minibatch_variance(gradient, point, n_batch, rng, root=unit_root(W))
        for point, W in zip(points, inverses, strict=True)
    )
    usual = sampler._stable_step(largest, noise, share=_TOLERANCE, reach=_REACH)
    learns_mass = inverses[0] is None and getattr(sampler, "mass", None) is not None
    if dense.metric is None and not learns_mass:
        limit = sampler._stable_step(largest, 0.0, share=LONGEST_SHARE, reach=_REACH)
        n_batches = np.inf if dense.with_replacement else dense.n_rows / n_batch
        usual = longest_step(sampler, largest, noise, n_batches, "shuffled", limit) or usual
    return ConstantStep(float(usual))
