"""Words of topics that differ between groups of documents, with a concentration for every word in every topic.

In group g, the words of topic k have the probabilities y_gwk / sum_w y_gwk, where y_gwk has a gamma distribution with
shape kappa_wk and mean m_wk; m_wk ~ Gamma(base_wk, 1), and kappa_wk has one of the values of a grid. A topic does not
have the words whose base_wk is 0. Let N_gk be the number of tokens of the topic in the group. Given
u_gk | y ~ Gamma(N_gk, rate sum_w y_gwk), words are independent:

- y_gwk | counts ~ Gamma(kappa_wk + n_gwk, rate kappa_wk / m_wk + u_gk);
- with y integrated out, n_gwk has a negative binomial distribution, whose likelihood is
  Gamma(kappa + n) / Gamma(kappa) (kappa / m)^kappa (kappa / m + u)^-(kappa + n);
- a token goes to topic k with a weight proportional to (n_gwk + kappa_wk) / (kappa_wk / m_wk + u_gk) u_gk / N_gk, where
  n and N are without the token.

Where N_gk is 0, y has its prior distribution and u_gk an arbitrary one, here exponential with rate M_k = sum_w m_wk
(a pseudo-prior, as in Carlin and Chib). The first token of a topic then has a weight proportional to
m_wk / (1 + m_wk u / kappa_wk) exp(M_k u - L) / M_k with L = sum_w kappa_wk log(1 + m_wk u / kappa_wk).

Counts say nothing about M_k: if all m_wk are multiplied and all u_gk with tokens divided by the same number, only the
prior of m changes, under which M_k ~ Gamma(sum_w base_wk, 1) is independent of the shares m_wk / M_k. Therefore M_k is
drawn from this distribution after each update. Without it, it would change slowly where base_wk is small.
"""

import math

import numpy as np
from numba import types

from .._jit import F1, F1_IN, F2, F2_IN, RNG, helper, kernel, read_only, writable
from ..math.random import log_gamma_draw
from ..math.special import log_rise
from ..math.vector import log_normal

U1_2, F4_2, F4_3 = writable(types.uint8, 2), writable(types.float32, 2), writable(types.float32, 3)
NOTHING = 1e-9  # sums of counts up to this number are rounding errors of sums of weights
_SMALLEST, _LARGEST = -650.0, 650.0  # bounds of log m


@helper
def _log_density(x, kappa, counts, u, base):
    """Log density of x = log m given the counts of a word in all groups, (n_groups,), up to a constant."""
    m = math.exp(x)
    total = base * x - m
    for g in range(counts.size):
        total += counts[g] * x - (kappa + counts[g]) * log_normal(1.0 + m * u[g] / kappa)
    return total


@helper
def _sliced(x, kappa, counts, u, base, rng):
    """Redraw x = log m by slice sampling."""
    level = _log_density(x, kappa, counts, u, base) + math.log(1.0 - rng.random())
    low = x - rng.random()
    high = low + 1.0
    while low > _SMALLEST and _log_density(low, kappa, counts, u, base) > level:
        low -= 1.0
    while high < _LARGEST and _log_density(high, kappa, counts, u, base) > level:
        high += 1.0
    for _ in range(200):
        new = low + (high - low) * rng.random()
        if _log_density(new, kappa, counts, u, base) > level:
            return new
        if new < x:
            low = new
        else:
            high = new
    return x


@helper
def _without_counts(x, kappa, u, base, rng):
    """Redraw x = log m of a word without counts: a proposal that is exact if all of kappa are large, or rejected."""
    total = 1.0
    for g in range(u.size):
        total += u[g]
    new = log_gamma_draw(base, rng) - math.log(total)
    new = min(max(new, _SMALLEST), _LARGEST)
    m, m_new, log_ratio = math.exp(x), math.exp(new), 0.0
    for g in range(u.size):
        log_ratio += u[g] * (m_new - m)
        log_ratio -= kappa * (log_normal(1.0 + m_new * u[g] / kappa) - log_normal(1.0 + m * u[g] / kappa))
    return new if math.log(1.0 - rng.random()) < log_ratio else x


@helper
def _drawn_index(m, counts, u, grid, log_weight, p, rng):
    """Draw the index of kappa in the grid; ``p`` is scratch of the grid's size."""
    top = -np.inf
    for i in range(grid.size):
        kappa = grid[i]
        value = log_weight[i]
        for g in range(counts.size):
            value -= (kappa + counts[g]) * log_normal(1.0 + m * u[g] / kappa)
            if counts[g] > 0.0:
                value += log_rise(kappa, counts[g]) - counts[g] * log_normal(kappa)
        p[i] = value
        top = max(top, value)
    total = 0.0
    for i in range(grid.size):
        p[i] = math.exp(p[i] - top)
        total += p[i]
    target = rng.random() * total
    for i in range(grid.size):
        target -= p[i]
        if target < 0.0:
            return i
    return grid.size - 1


def _draw_prior(tables, masses, base, grid, which, log_mean, pulls, weight, rng):
    """Redraw the means and concentrations of all words given the counts, and the auxiliary variables.

    Parameters
    ----------
    tables, masses : (n_groups, n_words, width) and (n_groups, width)
        Counts, and their sums over words.
    base : (n_words, n_topics)
    grid : (n_values,)
    which : (n_words, n_topics) uint8, index of kappa in the grid, changed in place
    log_mean : (n_words, n_topics), log m, changed in place
    pulls : (n_groups, width), u, changed in place
    weight : (n_values,), probabilities of the values of the grid, changed in place
    """
    n_groups, n_words = tables.shape[:2]
    n_topics = base.shape[1]
    counts, u, p = np.empty(n_groups), np.empty(n_groups), np.empty(grid.size)
    log_weight, size = np.log(weight), np.ones(grid.size)
    total, shapes, sums = np.zeros((n_groups, n_topics)), np.zeros(n_topics), np.zeros(n_topics)
    for w in range(n_words):
        for k in range(n_topics):
            if base[w, k] == 0.0:
                continue
            found = 0.0
            for g in range(n_groups):
                counts[g] = tables[g, w, k]
                found += counts[g]
                u[g] = pulls[g, k] if masses[g, k] > NOTHING else 0.0
            kappa = grid[which[w, k]]
            if found > 0.0:
                x = _sliced(log_mean[w, k], kappa, counts, u, base[w, k], rng)
            else:
                x = _without_counts(log_mean[w, k], kappa, u, base[w, k], rng)
            m = math.exp(x)
            i = _drawn_index(m, counts, u, grid, log_weight, p, rng)
            log_mean[w, k], which[w, k] = x, i
            size[i] += 1.0
            shapes[k] += base[w, k]
            sums[k] += m
            for g in range(n_groups):
                if u[g] > 0.0:
                    total[g, k] += rng.standard_gamma(grid[i] + counts[g]) / (grid[i] / m + u[g])
    shifts = np.zeros(n_topics)
    for k in range(n_topics):
        log_sum = max(log_gamma_draw(shapes[k], rng), _SMALLEST)
        shifts[k] = log_sum - math.log(sums[k])
        for g in range(n_groups):
            if masses[g, k] > NOTHING:
                pulls[g, k] = rng.standard_gamma(masses[g, k]) / total[g, k] * math.exp(-shifts[k])
            else:
                pulls[g, k] = rng.standard_exponential() * math.exp(-log_sum)
    for w in range(n_words):
        for k in range(n_topics):
            if base[w, k] > 0.0:
                log_mean[w, k] = min(max(log_mean[w, k] + shifts[k], _SMALLEST), _LARGEST)
    for i in range(grid.size):
        weight[i] = max(rng.standard_gamma(size[i]), 1e-12)
    weight /= weight.sum()


def _prior_signature(tables):
    return types.void(tables, F2_IN, F2_IN, F1_IN, U1_2, F2, F2, F1, RNG)


draw_prior_short = kernel(_prior_signature(read_only(types.uint16, 3)), name="draw_prior_short")(_draw_prior)
draw_prior_long = kernel(_prior_signature(read_only(types.float64, 3)), name="draw_prior_long")(_draw_prior)


def draw_prior(tables, *rest):
    """Redraw the prior by the kernel for these tables; arguments are as for `_draw_prior`."""
    (draw_prior_short if tables.dtype == np.uint16 else draw_prior_long)(tables, *rest)


@kernel(types.void(F2_IN, F1_IN, read_only(types.uint8, 2), F2_IN, F2_IN, F4_2, F4_3, F2))
def token_weights(base, grid, which, log_mean, pulls, kappa, scales, entries):
    """Compute what sweeps take of the prior; the first five arguments are as for `_draw_prior`.

    Parameters
    ----------
    kappa : (n_words, width) float32, set to the concentrations
    scales : (n_groups, n_words, width) float32, set to 1 / (kappa / m + u)
    entries : (n_groups, width), set to the factor of a topic without tokens, exp(M u - L) / M
    """
    n_groups = pulls.shape[0]
    n_words, n_topics = base.shape
    logs, sums = np.zeros((n_groups, n_topics)), np.zeros(n_topics)
    for w in range(n_words):
        for k in range(n_topics):
            if base[w, k] == 0.0:
                continue
            value, m = grid[which[w, k]], math.exp(log_mean[w, k])
            kappa[w, k] = value
            sums[k] += m
            for g in range(n_groups):
                u = pulls[g, k]
                scales[g, w, k] = 1.0 / (value / m + u)
                logs[g, k] += value * log_normal(1.0 + m * u / value)
    for g in range(n_groups):
        for k in range(n_topics):
            entries[g, k] = math.exp(min(sums[k] * pulls[g, k] - logs[g, k], 300.0)) / sums[k]
