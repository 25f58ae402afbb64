"""Documents whose topic proportions have a scaled Dirichlet distribution.

The proportions are theta_k = G_k / sum_l G_l with independent G_k ~ Gamma(shape a_k, rate r_k). If all rates are equal,
this is Dirichlet(a). Given an auxiliary variable u | G ~ Gamma(n, rate sum_k G_k), n the number of tokens of the
document, topics are independent:

- G_k | u, counts ~ Gamma(a_k + n_k, rate r_k + u);
- with G integrated out, n_k | u has a negative binomial distribution, whose likelihood is
  Gamma(a_k + n_k) / Gamma(a_k) r_k^a_k (r_k + u)^-(a_k + n_k);
- with G integrated out, t = log u given the counts has the density exp(n t - sum_k (a_k + n_k) log(r_k + e^t)), which
  is log-concave. So u is drawn exactly given the counts, and nothing has to be stored for documents.

Rates and shapes may differ between groups of documents: arrays of shape (n_groups, n_topics), and the group of each
document.
"""

import math

import numpy as np
from numba import types

from .._jit import BOOL, F1, F1_IN, F2, F2_IN, I1_IN, I8, OK, RNG, helper, kernel, read_only
from ..completion import W1_IN
from ..math.arrays import set_to
from ..math.dirichlet import dirichlet_row
from ..math.random import GOLDEN, log_gamma_draw, mix64, unit
from ..math.special import digamma_difference, log_rise, trigamma
from ..math.vector import log_normal
from .lda.assignments import I4_IN, Z_IN, Z

U1_IN = read_only(types.uint64, 1)
_FARTHEST = 690.0  # bounds of log u, so that u is a normal float64: rates hardly matter beyond them
_STEP = 0.5  # of the trapezoidal rule in log u, at most
_NEGLIGIBLE = 1e-13
_MOST_NODES = 4000
_FEW = 20.0  # whole counts below which sums replace differences of trigamma functions
_MARGIN = 1.05  # by which the information about shapes exceeds that about scales


# ----------------------------------------------------------------------------------------------- the auxiliary variable


@helper(fast_sums=True)
def _mode(n, total_shape, weight, rate):
    """The u that solves sum_k weight_k r_k / (r_k + u) = ``total_shape``, which is the mode of log u; 0 if n is 0.

    Newton's method for the reciprocal of the sum, which is concave in u: iterates from 0 approach u from below. The
    result is about right, since it only serves as a point about which to expand.
    """
    if not n > 0.0:
        return 0.0
    u = 0.0
    for _ in range(100):
        below, slope = 0.0, 0.0
        for k in range(weight.size):
            q = 1.0 / (rate[k] + u)
            part = weight[k] * rate[k] * q
            below += part
            slope += part * q
        move = below * (below - total_shape) / (total_shape * slope)
        u = min(max(u + move, 0.0), 1e299)
        if abs(move) <= 1e-4 * u:
            break
    return u


@helper(fast_sums=True)
def _fall(t, n, at, weight, rate, inverse):
    """How far the log density of log u at t is below that at ``at``; inverse_k = 1 / (r_k + e^at)."""
    u = math.exp(t)
    total = 0.0
    for k in range(weight.size):
        total += weight[k] * log_normal((rate[k] + u) * inverse[k])
    return total - n * (t - at)


@helper(fast_sums=True)
def _slope(t, n, weight, rate):
    """Derivative of the log density of log u."""
    u = math.exp(t)
    total = n
    for k in range(weight.size):
        total -= weight[k] * (u / (rate[k] + u))
    return total


@helper
def _envelope(n, total_shape, weight, rate, inverse, out):
    """Bounds of the log density of log u, from which it is drawn by rejection; returns the mode of u.

    A log-concave density lies below its value at the mode and below its tangents. With tangents at sqrt(2) standard
    deviations from the mode, 9 of 10 proposals are accepted if the density is about normal.

    Parameters
    ----------
    inverse : (n_topics,), set to 1 / (r_k + mode)
    out : (6,), set to the log of the mode, the ends of the flat top, the slopes of the tails, and the curvature
    """
    mode = max(_mode(n, total_shape, weight, rate), 1e-299)
    curvature = 0.0
    for k in range(weight.size):
        inverse[k] = 1.0 / (rate[k] + mode)
        curvature += weight[k] * (mode * inverse[k]) * (rate[k] * inverse[k])
    at, reach = math.log(mode), math.sqrt(2.0 / max(curvature, 1e-12))
    low, high = max(at - reach, -_FARTHEST), min(at + reach, _FARTHEST)
    rise, drop = _slope(low, n, weight, rate), -_slope(high, n, weight, rate)
    rise, drop = max(rise, 1e-300), max(drop, 1e-300)
    out[0] = at
    out[1] = min(low + _fall(low, n, at, weight, rate, inverse) / rise, at)
    out[2] = max(high - _fall(high, n, at, weight, rate, inverse) / drop, at)
    out[3], out[4], out[5] = rise, drop, curvature
    return mode


@helper
def _proposal(envelope, u, v):
    """A proposal for log u by two uniform numbers, and the log of the bound there, relative to the mode's."""
    left, middle, right = 1.0 / envelope[3], envelope[2] - envelope[1], 1.0 / envelope[4]
    x = u * (left + middle + right)
    if x < middle:
        return envelope[1] + x, 0.0
    height = math.log(1.0 - v)
    if x < middle + left:
        return envelope[1] + height * left, height
    return envelope[2] - height * right, height


@helper
def _auxiliary_draw(n, total_shape, weight, rate, inverse, envelope, rng):
    """Draw u given counts, with ``weight`` = a + counts; 0 without tokens."""
    if not n > 0.0:
        return 0.0
    mode = _envelope(n, total_shape, weight, rate, inverse, envelope)
    for _ in range(1000):
        t, bound = _proposal(envelope, rng.random(), rng.random())
        if abs(t) > _FARTHEST:
            continue
        if math.log(1.0 - rng.random()) + bound <= -_fall(t, n, envelope[0], weight, rate, inverse):
            return math.exp(t)
    return mode


@helper
def _keyed_auxiliary_draw(n, total_shape, weight, rate, inverse, envelope, counter):
    """`_auxiliary_draw` by a stream that begins after ``counter``; returns the draw and the counter after it."""
    if not n > 0.0:
        return 0.0, counter
    mode = _envelope(n, total_shape, weight, rate, inverse, envelope)
    for _ in range(1000):
        t, bound = _proposal(envelope, unit(mix64(counter + GOLDEN)), unit(mix64(counter + GOLDEN + GOLDEN)))
        counter += np.uint64(3) * GOLDEN
        accepts = math.log(1.0 - unit(mix64(counter))) + bound
        if abs(t) <= _FARTHEST and accepts <= -_fall(t, n, envelope[0], weight, rate, inverse):
            return math.exp(t), counter
    return mode, counter


@kernel(I8(I8, I8, I1_IN, F1_IN, Z_IN, F2_IN, F2_IN, I1_IN, RNG, F1))
def draw_auxiliary(start, stop, token_ptr, weights, z, shape, rate, group, rng, u):
    """Draw the auxiliary variables of documents start:stop given their assignments, and write them into ``u``."""
    n_topics = shape.shape[1]
    mass, inverse, envelope = np.empty(n_topics), np.empty(n_topics), np.empty(6)
    weighted = weights.shape[0] > 0
    for d in range(start, stop):
        g = group[d]
        n, total = 0.0, 0.0
        for k in range(n_topics):
            mass[k] = shape[g, k]
            total += shape[g, k]
        for i in range(token_ptr[d], token_ptr[d + 1]):
            weight = weights[i] if weighted else 1.0
            mass[z[i]] += weight
            n += weight
        u[d] = _auxiliary_draw(n, total, mass, rate[g], inverse, envelope, rng)
    return OK


@kernel(I8(F2_IN, F2_IN, F2_IN, RNG, F2))
def draw_given_counts(counts, shape, rate, rng, theta):
    """Draw proportions given counts of topics, (n_docs, n_topics), and write them into the rows of ``theta``.

    Parameters
    ----------
    shape, rate : (n_docs, n_topics)
    """
    n_topics = counts.shape[1]
    mass, inverse, envelope = np.empty(n_topics), np.empty(n_topics), np.empty(6)
    for d in range(counts.shape[0]):
        n, total = 0.0, 0.0
        for k in range(n_topics):
            mass[k] = shape[d, k] + counts[d, k]
            n += counts[d, k]
            total += shape[d, k]
        u = _auxiliary_draw(n, total, mass, rate[d], inverse, envelope, rng)
        largest = -np.inf
        for k in range(n_topics):
            theta[d, k] = log_gamma_draw(mass[k], rng) - math.log(rate[d, k] + u)
            largest = max(largest, theta[d, k])
        total = 0.0
        for k in range(n_topics):
            theta[d, k] = math.exp(theta[d, k] - largest)
            total += theta[d, k]
        for k in range(n_topics):
            theta[d, k] /= total
    return OK


# -------------------------------------------------------------------------------------------------------- likelihood


@kernel(I8(I1_IN, F1_IN, Z_IN, I1_IN, F1_IN, F2_IN, F2_IN, BOOL, F1, F2, F2))
def negative_binomial(token_ptr, weights, z, group, u, shape, scale, with_value, value, by_shape, by_scale):
    r"""Log likelihood of each topic's counts given the auxiliary variables, and its derivatives.

    .. math:: \log p_k = \sum_d \Bigl[ \log\Gamma(a_{dk} + n_{dk}) - \log\Gamma(a_{dk}) + n_{dk} \log s_{dk}
              - (a_{dk} + n_{dk}) \log(1 + u_d s_{dk}) \Bigr].

    Parameters
    ----------
    shape, scale : (n_groups, n_topics)
        a, and s = 1 / r.
    with_value : whether to compute the log likelihood
    value : (n_topics,), written
    by_shape, by_scale : (n_groups, n_topics), written
        Derivatives by log a and log s, summed over the documents of each group.
    """
    n_topics = shape.shape[1]
    count, log_rate, share = np.zeros(n_topics), np.empty(n_topics), np.empty(n_topics)
    seen = np.empty(n_topics + 1, np.int64)
    weighted = weights.shape[0] > 0
    value[:] = 0.0
    by_shape[:] = 0.0
    by_scale[:] = 0.0
    for d in range(token_ptr.shape[0] - 1):
        lo, hi = token_ptr[d], token_ptr[d + 1]
        if lo == hi:
            continue
        g, n_seen = group[d], 0
        for i in range(lo, hi):
            k = np.intp(z[i])
            seen[n_seen] = k  # no branch, which the processor could not predict
            n_seen += count[k] == 0.0
            count[k] += weights[i] if weighted else 1.0
        a, s = shape[g], scale[g]
        of_shape, of_scale = by_shape[g], by_scale[g]
        for k in range(n_topics):
            x = u[d] * s[k]
            log_rate[k] = log_normal(1.0 + x)
            share[k] = x / (1.0 + x)
        for k in range(n_topics):
            value[k] -= a[k] * log_rate[k]
            of_shape[k] -= a[k] * log_rate[k]
            of_scale[k] -= a[k] * share[k]
        for j in range(n_seen):
            k = seen[j]
            n = count[k]
            count[k] = 0.0
            if with_value:
                value[k] += log_rise(a[k], n) + n * (math.log(s[k]) - log_rate[k])
            of_shape[k] += a[k] * digamma_difference(a[k], n)
            of_scale[k] += n * (1.0 - share[k])
    return OK


@kernel(I8(I1_IN, F1_IN, Z_IN, I1_IN, F1_IN, F2_IN, F2_IN, F2, F2))
def negative_binomial_information(token_ptr, weights, z, group, u, shape, scale, own, common):
    r"""The information about log a and log s, summed over the documents of each group.

    Minus the second derivatives of the log likelihood by log s, and by log s and log a, have the expectation
    :math:`\mathrm{common} = a u s / (1 + u s)`. By log a the information is
    :math:`\mathrm{own} = a^2 [\psi'(a) - \psi'(a + n)]` in expectation; its sum is raised where it falls below the
    other, which it can only by chance.

    Parameters
    ----------
    own, common : (n_groups, n_topics), written
    """
    n_topics = shape.shape[1]
    count = np.zeros(n_topics)
    weighted = weights.shape[0] > 0
    own[:] = 0.0
    common[:] = 0.0
    for d in range(token_ptr.shape[0] - 1):
        g = group[d]
        for i in range(token_ptr[d], token_ptr[d + 1]):
            count[z[i]] += weights[i] if weighted else 1.0
        for k in range(n_topics):
            x = u[d] * scale[g, k]
            common[g, k] += shape[g, k] * x / (1.0 + x)
        for i in range(token_ptr[d], token_ptr[d + 1]):
            k = np.intp(z[i])
            n, a = count[k], shape[g, k]
            count[k] = 0.0
            if n > 0.0:
                fall = 0.0
                if n < _FEW and n == math.floor(n):
                    for m in range(int(n)):
                        fall += 1.0 / ((a + m) * (a + m))
                else:
                    fall = trigamma(a) - trigamma(a + n)
                own[g, k] += a * a * fall
    for g in range(shape.shape[0]):
        for k in range(n_topics):
            own[g, k] = max(own[g, k], _MARGIN * common[g, k])
    return OK


# ------------------------------------------------------------------------------------------------------- proportions


@helper
def _add_node(t, n, at, weight, rate, inverse, factor, out):
    """Add ``factor`` times the integrand at t to ``out``; returns the part that the largest topic adds."""
    density = factor * math.exp(-_fall(t, n, at, weight, rate, inverse))
    u, largest = math.exp(t), 0.0
    for k in range(weight.size):
        part = density * weight[k] * (u / (rate[k] + u))
        out[k] += part
        largest = max(largest, part)
    return largest


@helper
def mean_given_counts(n, total_shape, weight, rate, inverse, out):
    """Write the mean of the proportions given counts into ``out``, with ``weight`` = a + counts.

    E[theta_k] is proportional to the integral of (a_k + n_k) u / (r_k + u) times the density of log u given the counts.
    The trapezoidal rule converges exponentially. The integrand falls exponentially in both directions, and where all
    rates are negligible, or all large, the rest of the sum is that of a geometric series. Without tokens, this is the
    mean of the distribution itself.
    """
    lowest, highest = np.inf, 0.0
    for k in range(weight.size):
        lowest, highest = min(lowest, rate[k]), max(highest, rate[k])
        out[k] = 0.0
    if highest <= lowest * (1.0 + 1e-12):
        for k in range(weight.size):
            out[k] = weight[k] / (n + total_shape)
        return
    # The integrand is the density for one more token, whose mode is that of the largest terms.
    mode = min(max(_mode(n + 1.0, total_shape, weight, rate), 1e-290), 1e290)
    curvature = 0.0
    for k in range(weight.size):
        inverse[k] = 1.0 / (rate[k] + mode)
        curvature += weight[k] * (mode * inverse[k]) * (rate[k] * inverse[k])
    at, step = math.log(mode), min(_STEP, 1.0 / math.sqrt(max(curvature, 1e-12)))
    peak = _add_node(at, n, at, weight, rate, inverse, 1.0, out)
    # On the right, terms fall as exp(-A t) once no rate matters, A the sum of the shapes.
    end = math.log(highest) + 16.0
    t = at
    for _ in range(_MOST_NODES):
        t += step
        if t > min(end, _FARTHEST):
            _add_node(t, n, at, weight, rate, inverse, -1.0 / math.expm1(-total_shape * step), out)
            break
        if _add_node(t, n, at, weight, rate, inverse, 1.0, out) < _NEGLIGIBLE * peak:
            break
    # On the left, as exp((n + 1) t) once u is small next to all rates.
    end = math.log(lowest) - 16.0
    t = at
    for _ in range(_MOST_NODES):
        t -= step
        if t < max(end, -_FARTHEST):
            _add_node(t, n, at, weight, rate, inverse, -1.0 / math.expm1(-(n + 1.0) * step), out)
            break
        if _add_node(t, n, at, weight, rate, inverse, 1.0, out) < _NEGLIGIBLE * peak:
            break
    total = 0.0
    for k in range(weight.size):
        total += out[k]
    for k in range(weight.size):
        out[k] /= total


@kernel(I8(F2_IN, F2_IN, F2))
def mean_proportions(shape, rate, out):
    """Write the mean of the scaled Dirichlet distribution of each row, (n_rows, n_topics), into ``out``."""
    n_topics = shape.shape[1]
    inverse = np.empty(n_topics)
    for g in range(shape.shape[0]):
        total = 0.0
        for k in range(n_topics):
            total += shape[g, k]
        mean_given_counts(0.0, total, shape[g], rate[g], inverse, out[g])
    return OK


@helper
def _redraw_tokens(lo, hi, words, counts, phi, a, share, is_fresh, counter, mass, running, z, i):
    """Redraw the topics of a document's tokens, ``z`` from index ``i`` on; returns the counter of the random stream.

    Topic k has the weight mass_k share_k phi_wk for a token of word w, mass the parameters ``a`` plus the counts of the
    other tokens. ``is_fresh`` says that tokens have no topics yet.
    """
    n_topics = mass.size
    for j in range(lo, hi):
        row, left = phi[words[j]], counts[j]
        while left > 0.0:
            weight = min(left, 1.0)
            left -= 1.0
            if not is_fresh:
                mass[z[i]] = max(mass[z[i]] - weight, a[z[i]])
            whole = 0.0
            for k in range(n_topics):
                whole += mass[k] * share[k] * row[k]
                running[k] = whole
            counter += GOLDEN
            target = unit(mix64(counter)) * whole
            k = 0
            while k < n_topics - 1 and running[k] <= target:
                k += 1
            z[i] = k
            mass[k] += weight
            i += 1
    return counter


@helper
def _set_shares(u, rate, share):
    for k in range(rate.size):
        share[k] = (1.0 + u) / (rate[k] + u)  # of order 1 for any u


@helper
def _key_of(lo, hi, words, counts, phi):
    """Where the random stream of a document begins, by its content and the topics alone."""
    key = np.uint64(hi - lo)
    for j in range(lo, hi):
        key = mix64(key ^ np.uint64(phi[words[j], 0] * 2.0**53)) + np.uint64(counts[j] * 1024.0)
    return mix64(key)


@kernel(I8(I1_IN, W1_IN, F1_IN, F2_IN, F2_IN, F2_IN, I8, I8, I8, F2))
def proportions(indptr, words, counts, phi, shape, rate, n_updates, start, stop, theta):
    """Mean topic proportions of documents start:stop with the topics fixed, by Gibbs sweeps over each document.

    After each sweep, u is drawn given the assignments. The mean of theta_k given the assignments is that of
    (a_k + n_k) u / (r_k + u), up to a factor, which is averaged over all sweeps but the first fifth. The fixed-point
    updates of `sk_sgmcmc.kernels.completion.proportions` would be biased: where shapes are small, they commit documents
    to too few topics. A document's random stream depends on its content and the topics.

    Parameters
    ----------
    shape, rate : (1, n_topics) or (n_docs, n_topics)
    n_updates : int
        Number of sweeps.
    """
    n_topics, longest = phi.shape[1], 0
    for d in range(start, stop):
        n = 0
        for j in range(indptr[d], indptr[d + 1]):
            n += int(np.ceil(counts[j]))
        longest = max(longest, n)
    mass, running, share, inverse, envelope, z = (
        np.empty(n_topics), np.empty(n_topics), np.empty(n_topics), np.empty(n_topics), np.empty(6),
        np.empty(longest, np.int64),
    )  # fmt: skip
    for d in range(start, stop):
        a, r = shape[d if shape.shape[0] > 1 else 0], rate[d if shape.shape[0] > 1 else 0]
        lo, hi, length, total = indptr[d], indptr[d + 1], 0.0, 0.0
        for j in range(lo, hi):
            length += counts[j]
        for k in range(n_topics):
            mass[k] = a[k]
            total += a[k]
            theta[d, k] = 0.0
        if not length > 0.0:
            mean_given_counts(0.0, total, mass, r, inverse, theta[d])
            continue
        key = _key_of(lo, hi, words, counts, phi)
        counter, aside = mix64(key), mix64(key + GOLDEN)
        _set_shares(length, r, share)  # in the first sweep, for want of counts
        for sweep in range(n_updates):
            counter = _redraw_tokens(lo, hi, words, counts, phi, a, share, sweep == 0, counter, mass, running, z, 0)
            u, aside = _keyed_auxiliary_draw(length, total, mass, r, inverse, envelope, aside)
            _set_shares(u, r, share)
            if sweep >= n_updates // 5:
                for k in range(n_topics):
                    theta[d, k] += mass[k] * (u / (r[k] + u))
        whole = 0.0
        for k in range(n_topics):
            whole += theta[d, k]
        for k in range(n_topics):
            theta[d, k] /= whole
    return OK


@kernel(I8(I1_IN, I4_IN, F1_IN, I1_IN, F2_IN, F2_IN, F2_IN, U1_IN, I8, I8, I8, I8, Z, F2))
def draw_proportions(indptr, words, counts, token_ptr, phi, shape, rate, keys, fresh, n_sweeps, start, stop, z, theta):
    """Sweep over the tokens of documents start:stop with the topics fixed, then draw their proportions.

    As `sk_sgmcmc.kernels.models.lda.proportions.draw_proportions`, with a draw of the auxiliary variable before each
    sweep and before the draw of the proportions.

    Parameters
    ----------
    shape, rate : (1, n_topics) or (n_docs, n_topics)
    """
    n_topics = phi.shape[1]
    mass, running, share, inverse, envelope = (
        np.empty(n_topics), np.empty(n_topics), np.empty(n_topics), np.empty(n_topics), np.empty(6)
    )  # fmt: skip
    for d in range(start, stop):
        a, r = shape[d if shape.shape[0] > 1 else 0], rate[d if shape.shape[0] > 1 else 0]
        lo, hi, length, total = indptr[d], indptr[d + 1], 0.0, 0.0
        counter, aside = mix64(keys[d]), mix64(keys[d] + GOLDEN + GOLDEN)
        set_to(mass, a)
        for k in range(n_topics):
            total += a[k]
        for j in range(lo, hi):
            left = counts[j]
            length += left
            if not fresh:
                for i in range(token_ptr[j], token_ptr[j + 1]):
                    mass[z[i]] += min(left, 1.0)
                    left -= 1.0
        u = length  # in the first sweep, for want of counts
        if not fresh:
            u, aside = _keyed_auxiliary_draw(length, total, mass, r, inverse, envelope, aside)
        for sweep in range(n_sweeps):
            _set_shares(u, r, share)
            is_fresh = fresh == 1 and sweep == 0
            i = token_ptr[lo]
            counter = _redraw_tokens(lo, hi, words, counts, phi, a, share, is_fresh, counter, mass, running, z, i)
            u, aside = _keyed_auxiliary_draw(length, total, mass, r, inverse, envelope, aside)
        _set_shares(u, r, share)
        # Of its own, so that the number of tokens does not decide where in the stream the draw begins.
        dirichlet_row(mass, mix64(keys[d] + GOLDEN), running)
        total = 0.0
        for k in range(n_topics):
            running[k] *= share[k]
            total += running[k]
        for k in range(n_topics):
            theta[d, k] = running[k] / total
    return OK
