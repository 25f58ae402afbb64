"""Quantiles of mixtures of Poisson and normal distributions: one mixture in a row, and one component for each draw.

The cumulative distribution of a mixture is expanded about the mean of the components' parameters. The expansion needs
one special function for each row instead of one for each draw, and it bounds its own error. Rows for which the bound is
too large are evaluated draw by draw.
"""

import numpy as np
from scipy import special

_CELLS = 100_000  # numbers that are powered at a time, which fit in a processor's cache
_ORDER = 8  # of the moment that bounds the error of an expansion, which uses all lower ones
_FACTORIALS = special.factorial(np.arange(_ORDER + 1))
_SLACK = 1e-11  # rounding error of a cumulative distribution
_LARGEST_EXPANDED = 1e12  # mean of a Poisson mixture beyond which rounding errors count
_MAX_MOVES = 20
_SEVENTH = 14.18  # the largest absolute seventh derivative of the normal density
_PRECISION = 1e-8  # of quantiles of normal mixtures, in standard deviations of the components
_LAST_STEP = 1e-5  # of Newton's method, in the same unit
_MAX_STEPS = 200


def central_moments(values):
    """Means of the rows of ``values``, (n, m), and a list of central moments, (n,) each; those of orders 0 and 1 too.

    A row's moments do not depend on the other rows.
    """
    n, m = values.shape
    centre, moments = np.empty(n), np.empty((_ORDER + 1, n))
    moments[0], moments[1] = 1.0, 0.0
    step = max(1, _CELLS // m)
    for lo in range(0, n, step):
        rows = slice(lo, lo + step)
        centre[rows] = values[rows].mean(axis=1)
        powers = [None, values[rows] - centre[rows, None]]
        for _ in range(_ORDER // 2 - 1):
            powers.append(powers[-1] * powers[1])
        for order in range(2, _ORDER + 1):
            half = order // 2
            moments[order, rows] = np.einsum("ij,ij->i", powers[half], powers[order - half])
    moments[2:] /= m
    return centre, moments


def poisson_mixture_quantiles(means, tails):
    """The smallest counts whose probability, under mixtures of Poisson distributions, reaches each of ``tails``.

    Parameters
    ----------
    means : ndarray of shape (n_mixtures, n_parts)
        Not negative.
    tails : sequence of float

    Returns
    -------
    list of ndarray of shape (n_mixtures,)
    """
    with np.errstate(all="ignore"):
        centre, moments = central_moments(means)
        moments /= np.sqrt(centre) ** np.arange(_ORDER + 1)[:, None]
        expansion = _PoissonExpansion(centre, means.min(axis=1), moments)
        found = []
        for tail in tails:
            counts, is_certain = expansion.quantile(tail)
            rest = np.flatnonzero(~is_certain)
            counts[rest] = _poisson_by_draws(means[rest], counts[rest], tail)
            found.append(counts)
    return found


class _PoissonExpansion:
    """Mixtures of Poisson distributions, expanded about the Poisson distribution of the same mean.

    Derivatives of a Poisson probability with respect to its mean a are Charlier polynomials of the count, which are
    scaled here by powers of the square root of a, as are the moments.

    Parameters
    ----------
    centre, least : ndarray of shape (n,)
        Means and smallest means of the components.
    moments : ndarray of shape (_ORDER + 1, n)
        Central moments of the components' means, of order j divided by ``centre**(j / 2)``.
    """

    def __init__(self, centre, least, moments):
        self.centre, self.moments = centre, moments
        # A Poisson distribution is the sum of 8 others, and no probability of mean a exceeds 1 / sqrt(2 e a). Seven of
        # the eight take one difference each, whose absolute sum is twice the largest probability.
        largest = np.minimum(1.0, np.sqrt(_ORDER / (2.0 * np.e * least)))
        steepest = (2.0 * largest) ** (_ORDER - 1) * largest * centre ** (_ORDER / 2)
        self.error = steepest * moments[_ORDER] / _FACTORIALS[_ORDER] + _SLACK
        self.scaled = moments / _FACTORIALS[:, None]

    def probabilities(self, rows, counts):
        """Probabilities of at most, and of exactly, the counts."""
        a, scaled = self.centre[rows], self.scaled[:, rows]
        root = np.sqrt(a)
        exact = _poisson_probability(counts, a)
        before, polynomial = np.zeros(len(counts)), np.ones(len(counts))
        change, density, sign = np.zeros(len(counts)), np.ones(len(counts)), 1.0
        for j in range(1, _ORDER):
            sign = -sign
            change += sign * polynomial * scaled[j]
            following = (j - 1 + a - counts) / root * polynomial - (j - 1) * before
            before, polynomial = polynomial, following
            density += sign * polynomial * scaled[j]
        return special.pdtr(counts, a) + exact * root * change, exact * density

    def quantile(self, tail):
        """Counts, and whether each is certain to be the quantile."""
        a, m = self.centre, self.moments
        spread = np.sqrt(a * (1.0 + m[2]))
        skewness = (1.0 + 3.0 * m[2] + m[3] * np.sqrt(a)) * a / spread**3
        score = special.ndtri(tail)
        counts = np.ceil(np.maximum(a + spread * (score + skewness * (score**2 - 1.0) / 6.0) - 0.5, 0.0))
        # No mixture has a smaller probability of 0 than the Poisson distribution of the same mean.
        is_zero = np.exp(-a) >= tail
        counts[is_zero] = 0.0
        is_certain = is_zero.copy()
        rows = np.flatnonzero(~is_zero & (a <= _LARGEST_EXPANDED))
        for _ in range(_MAX_MOVES):
            if rows.size == 0:
                break
            k, error = counts[rows], self.error[rows]
            to, at = self.probabilities(rows, k)
            below = np.where(k > 0.0, to - at, -np.inf)
            is_low, is_high = to + error < tail, below - 3.0 * error >= tail
            is_certain[rows] = (to - error >= tail) & (below + 3.0 * error < tail)
            far = np.where(is_low, tail - to, below - tail) / at
            far = np.maximum(1.0, np.floor(np.minimum(np.where(np.isfinite(far), far, 1.0), spread[rows])))
            moves = is_low | is_high
            counts[rows] = np.where(moves, np.maximum(k + np.where(is_low, far, -far), 0.0), k)
            rows = rows[moves]
        return counts, is_certain


def _poisson_probability(counts, means):
    """Poisson probabilities, without the cancellation between large logarithms."""
    x = (counts - means) / means
    k = np.maximum(counts, 1.0)
    series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * k**2)) / k**2) / k  # Stirling's
    large = np.exp(-means * ((1.0 + x) * np.log1p(x) - x) - series) / np.sqrt(2.0 * np.pi * k)
    return np.where(counts > 20.0, large, np.exp(special.xlogy(counts, means) - means - special.gammaln(counts + 1.0)))


def _poisson_by_draws(means, counts, tail):
    """As `poisson_mixture_quantiles`, from guesses of the counts, evaluating each component's distribution."""
    score = special.ndtri(tail)
    wide = 10.0 * np.sqrt(means) + 30.0
    low, high = np.floor(np.min(means - wide, axis=1)), np.ceil(np.max(means + wide, axis=1))
    low_score, high_score = np.full(len(low), -np.inf), np.full(len(low), np.inf)
    next_count, reach = counts.copy(), np.ceil(0.1 * np.sqrt(means.mean(axis=1)) + 0.1 * means.std(axis=1))
    rows = np.arange(len(low))
    for step in range(10_000):
        middle = np.floor(0.5 * (low + high))
        rows = rows[((low < middle) & (middle < high))[rows]]
        if rows.size == 0:
            break
        k = next_count[rows]
        is_inside = (k > low[rows]) & (k < high[rows]) & (step % 4 != 3)
        k = np.where(is_inside, np.floor(k), middle[rows])
        below = special.pdtr(np.maximum(k, 0.0)[:, None], means[rows]).mean(axis=1)
        enough, scores = (k >= 0) & (below >= tail), special.ndtri(below)
        high[rows], high_score[rows] = np.where(enough, [k, scores], [high[rows], high_score[rows]])
        low[rows], low_score[rows] = np.where(enough, [low[rows], low_score[rows]], [k, scores])
        share = (score - low_score[rows]) / (high_score[rows] - low_score[rows])
        between = np.floor(low[rows] + share * (high[rows] - low[rows]))
        between = np.clip(between, low[rows] + 1.0, high[rows] - 1.0)
        outward = np.where(enough, k - reach[rows] * 2.0**step, k + reach[rows] * 2.0**step)
        has_both = np.isfinite(low_score[rows]) & np.isfinite(high_score[rows])
        next_count[rows] = np.where(has_both, between, outward)
    return np.maximum(high, 0.0)


def normal_mixture_quantile(means, scales, tail, start=None):
    """Quantiles of mixtures of normal distributions, by Newton's method between bounds.

    Parameters
    ----------
    means : ndarray of shape (n_mixtures, n_parts)
    scales : ndarray of shape (n_parts,)
        Standard deviations.
    tail : float
        Probability below the quantile.
    start : ndarray of shape (n_mixtures,), default=None
        First guess. None: the quantiles of normal distributions with the mixtures' means and variances.

    Returns
    -------
    quantiles : ndarray of shape (n_mixtures,)
    """
    step = max(1, _CELLS // means.shape[1])
    found = np.empty(len(means))
    with np.errstate(all="ignore"):
        for lo in range(0, len(means), step):
            rows = slice(lo, lo + step)
            found[rows] = _normal_block(means[rows], scales, tail, None if start is None else start[rows])
    return found


def _normal_block(means, scales, tail, start):
    """`normal_mixture_quantile` of rows that fit in a processor's cache."""
    centre = means.mean(axis=1)
    away = means - centre[:, None]
    ends = scales * special.ndtri(tail)
    low, high = away.min(axis=1) + ends.min(), away.max(axis=1) + ends.max()
    if start is None:
        found = np.sqrt(np.einsum("ij,ij->i", away, away) / away.shape[1] + np.mean(scales**2)) * special.ndtri(tail)
    else:
        found = start - centre
    found = np.clip(found, low, high)
    rate = 1.0 / scales
    mean_rate = rate.mean()
    rows = np.flatnonzero(low < high)
    for step in range(_MAX_STEPS):
        if rows.size == 0:
            break
        q = found[rows]
        below, density, is_exact = _normal_mixture(away[rows] if rows.size < len(away) else away, rate, q)
        is_low = below < tail
        low[rows], high[rows] = np.where(is_low, [q, high[rows]], [low[rows], q])
        new = q - (below - tail) / density
        middle = 0.5 * (low[rows] + high[rows])
        is_inside = (new >= low[rows]) & (new <= high[rows]) & (step % 8 != 7)
        found[rows] = np.where(is_inside, new, middle)
        # Newton's method squares its error where the density is exact, and reduces it by a factor elsewhere.
        enough = np.where(is_exact, _LAST_STEP, 0.1 * _LAST_STEP)
        rows = rows[~(np.abs(found[rows] - q) * mean_rate <= enough)]
    return centre + found


def _normal_mixture(means, rate, at):
    """Cumulative distribution and density of mixtures of normals with scales 1 / rate, and whether both are exact.

    The density is approximate where they are not.
    """
    z = (at[:, None] - means) * rate
    centre, moments = central_moments(z)
    mean_rate = rate.mean()
    shared = (z - centre[:, None]) @ (rate - mean_rate) / rate.size
    top = np.exp(-0.5 * centre**2) / np.sqrt(2.0 * np.pi)
    before, hermite, change, sign = np.zeros(len(at)), np.ones(len(at)), np.zeros(len(at)), 1.0
    for j in range(1, _ORDER):
        change += sign * hermite * moments[j] / _FACTORIALS[j]
        before, hermite, sign = hermite, centre * hermite - (j - 1) * before, -sign
    below = special.ndtr(centre) + top * change
    density = mean_rate * top * (1.0 + 0.5 * (centre**2 - 1.0) * moments[2]) - centre * top * shared
    error = _SEVENTH * moments[_ORDER] / _FACTORIALS[_ORDER]
    is_expanded = error * mean_rate <= _PRECISION * density
    rest = np.flatnonzero(~is_expanded)
    if rest.size:
        z = z[rest]
        below[rest] = special.ndtr(z).mean(axis=1)
        density[rest] = (np.exp(-0.5 * z**2) * rate).mean(axis=1) / np.sqrt(2.0 * np.pi)
    return below, density, ~is_expanded
