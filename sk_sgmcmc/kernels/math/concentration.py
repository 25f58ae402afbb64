"""Draws from von Mises-Fisher distributions, and of their concentrations given directions."""

import math

from .._jit import F1_IN, F8, RNG, helper, kernel
from .special import log_vmf_normaliser

_WIDTH = 1.0  # width of the first interval of the slice sampler, in log kappa
_FARTHEST = 100.0
# A learnt kappa stays below the larger of these two bounds; the second is multiplied by the number of dimensions.
# Without a bound, equal rows would drive kappa to infinity. Above it, sums of kappa and log c(kappa) lose precision.
MAX_KAPPA, _MAX_KAPPA_PER_DIM = 1e8, 1e3
_MAX_SHRINKS = 200
VON_MISES_FISHER, DIRICHLET = 0, 1


@helper
def von_mises_fisher_draw(b, out, rng):
    """Write into ``out`` a draw of density proportional to exp(b'x) on the unit sphere.

    The cosine with b is drawn by rejection from a Beta distribution, and the direction orthogonal to b uniformly
    (Wood 1994, algorithm VM*).
    """
    n = b.shape[0]
    kappa = 0.0
    for i in range(n):
        kappa += b[i] * b[i]
    kappa = math.sqrt(kappa)
    if kappa < 1e-12:
        size = 0.0
        for i in range(n):
            out[i] = rng.standard_normal()
            size += out[i] * out[i]
        for i in range(n):
            out[i] /= math.sqrt(size)
        return
    m = n - 1.0
    c = m / (2.0 * kappa + math.sqrt(4.0 * kappa * kappa + m * m))  # (1 - x0) / (1 + x0)
    x0 = (1.0 - c) / (1.0 + c)
    # This form of 1 - x0^2 does not lose precision near x0 = 1.
    log_top = kappa * x0 + m * math.log(4.0 * c / ((1.0 + c) * (1.0 + c)))
    w = x0
    for _ in range(10_000):
        z = rng.beta(0.5 * m, 0.5 * m)
        below = 1.0 - (1.0 - c) * z
        w = (1.0 - (1.0 + c) * z) / below
        # This is 1 - x0 w, likewise.
        slack = 2.0 * c / ((1.0 + c) * below)
        if kappa * w + m * math.log(slack) - log_top >= math.log(1.0 - rng.random()):
            break
    along, size = 0.0, 0.0
    for i in range(n):
        out[i] = rng.standard_normal()
        along += out[i] * b[i] / kappa
    for i in range(n):
        out[i] -= along * b[i] / kappa
        size += out[i] * out[i]
    across = math.sqrt(max(1.0 - w * w, 0.0) / size)
    size = 0.0
    for i in range(n):
        out[i] = across * out[i] + w * b[i] / kappa
        size += out[i] * out[i]
    size = math.sqrt(size)
    for i in range(n):
        out[i] /= size


@helper
def _log_density(log_value, numbers):
    """Log posterior density of log kappa or log alpha; ``numbers`` as for `redraw_concentration`."""
    value = math.exp(log_value)
    n, total, mean, scale = numbers[2], numbers[3], numbers[4], numbers[5]
    log_prior = -0.5 * ((log_value - mean) / scale) ** 2
    if numbers[0] == DIRICHLET:
        K = numbers[1]
        return n * (math.lgamma(K * value) - K * math.lgamma(value)) + value * total + log_prior
    log_density = n * log_vmf_normaliser(numbers[1], value) + value * total
    if numbers[6] > 0.0:
        length = math.sqrt(max(numbers[7] + value * (2.0 * numbers[8] + value * numbers[9]), 0.0))
        log_density -= numbers[6] * log_vmf_normaliser(numbers[1], length)
    return log_density + log_prior


@helper
def redraw_concentration(value, numbers, rng):
    """One slice-sampling update of a concentration, which leaves its conditional distribution invariant.

    The logarithm of the concentration has the prior N(a, s^2). The log likelihood is one of

    - n log c(kappa) + kappa t - m log c(|p + kappa q|), c the von Mises-Fisher normaliser, for n directions whose
      cosines with their means sum to t. If m > 0, a mean direction is integrated out. The prior is truncated at
      `MAX_KAPPA` or at 1,000 times the number of dimensions, whichever is larger;
    - n [lgamma(K alpha) - K lgamma(alpha)] + alpha t, for n draws of a symmetric Dirichlet distribution whose
      logarithms sum to t.

    Parameters
    ----------
    value : present kappa or alpha
    numbers : (`VON_MISES_FISHER`, number of dimensions, n, t, a, s, m, |p|^2, p'q, |q|^2), or
        (`DIRICHLET`, K, n, t, a, s)

    References
    ----------
    Neal (2003), Slice sampling, Annals of Statistics 31, section 4.
    """
    x = math.log(value)
    farthest = _FARTHEST
    if numbers[0] == VON_MISES_FISHER:
        farthest = max(x, math.log(max(MAX_KAPPA, _MAX_KAPPA_PER_DIM * numbers[1])))
    level = _log_density(x, numbers) + math.log(1.0 - rng.random())
    low = x - _WIDTH * rng.random()
    high = min(low + _WIDTH, farthest)
    while _log_density(low, numbers) > level and low > -_FARTHEST:
        low -= _WIDTH
    while _log_density(high, numbers) > level and high < farthest:
        high = min(high + _WIDTH, farthest)
    for _ in range(_MAX_SHRINKS):
        new = low + (high - low) * rng.random()
        if _log_density(new, numbers) > level:
            return math.exp(new)
        if new < x:
            low = new
        else:
            high = new
    return value


@kernel(F8(F8, F1_IN, RNG))
def concentration_draw(value, numbers, rng):
    """`redraw_concentration`, callable from Python."""
    return redraw_concentration(value, numbers, rng)
