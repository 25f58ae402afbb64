"""The longest step of a sampler on flat space whose predicted bias is small."""

import numpy as np

from .bias import Noise, stationary_covariance

_BIAS = 0.05  # largest relative error of a posterior standard deviation
_SHORTER, _MOST_TRIES = 0.7, 40  # factor between the steps that are tried, and their number
_HALVINGS = 6  # of the interval between the last two of them
_SHARE = 0.5  # with this share of a variance as its error, a sampler without momentum has a step of half its limit


def longest_step(sampler, curvature, noise, n_batches, batch_order, usual):
    """Longest step size at which no standard deviation has a predicted error above 5%; None if that is not known.

    The prediction is made for a Gaussian in whitened coordinates: for directions of curvature 1 and of the largest
    curvature, each with the largest noise of minibatches and without noise. Thermostats react to their mean.

    Parameters
    ----------
    sampler : Sampler
    curvature : float
        Largest curvature, of at least about 1, in coordinates in which the mass is the identity.
    noise : float
        Largest variance of an entry of the minibatch gradient; 0 without minibatches.
    n_batches : float
        Minibatches in an epoch; infinite if rows are drawn with replacement.
    batch_order : str
        As for `Noise`.
    usual : float
        Longest step size by the sampler's rule, without noise. Splittings have no bias on a Gaussian for any stable
        step, so on other densities this limits the step.

    Returns
    -------
    step_size : float, or None if the bias cannot be predicted
    """
    curvatures = np.repeat([min(1.0, curvature), curvature], 2)
    variances = np.tile([noise, 0.0], 2)
    exact = sampler.temperature / curvatures

    def is_good(h):
        chain = sampler._linear_chain(curvatures, h, variances)
        if chain is None or not chain.is_stable():
            return False
        biased, _ = stationary_covariance(chain, Noise(np.diag(variances), n_batches, batch_order))
        with np.errstate(invalid="ignore"):
            return bool(np.all(np.abs(np.sqrt(np.diag(biased) / exact) - 1.0) <= _BIAS))

    high = max(usual, sampler._stable_step(curvature, 0.0, share=_SHARE))
    steps = high * _SHORTER ** np.arange(_MOST_TRIES)
    found = next((h for h in steps if is_good(h)), None)
    if found in (None, high):
        return found
    low, high = found, found / _SHORTER
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_good(middle) else (low, middle)
    return float(low)
