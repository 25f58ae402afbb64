"""Documents with an outcome: steps of the topics of their tokens and of their proportions, given the outcome.

The proportions are theta_k = G_k / sum_l G_l with independent G_k ~ Gamma(shape a_k, rate r_k), a scaled Dirichlet
distribution. The state contains the topics z of the tokens, and the activities G. The outcome y of a document has a
density that depends on its predictor f = offset + sum_k b_k theta_k. A step of a document is block Metropolis-Hastings:

1. draw u ~ Gamma(n, rate sum_k G_k), n the number of tokens of the document;
2. propose topics z' by one collapsed Gibbs sweep over its tokens given u, with G integrated out, in ascending or
   descending order with probability 1/2 each. Neither order alone is reversible; the mixture is;
3. propose G'_k ~ Gamma(a_k + n'_k, rate r_k + u);
4. accept both with probability min(1, p(y | theta') / p(y | theta)). Without an outcome they are always accepted.

The priors and the words cancel in the ratio, since steps 2 and 3 leave their distribution unchanged.
"""

import math

import numpy as np
from numba import types

from .._jit import BOOL, F1, F1_IN, F2, F2_IN, F8, I1_IN, I8, OK, RNG, helper, kernel, read_only, writable
from ..math.random import log_gamma_draw
from ..math.special import digamma, trigamma
from .lda import any_tokens
from .lda.any_tokens import F4_1_IN, F4_2_IN, I4_1, U2_2
from .lda.assignments import I4_IN, Z_IN, Z
from .scaled_dirichlet import _auxiliary_draw

BOOL1_IN, F4_2 = read_only(types.boolean, 1), writable(types.float32, 2)
_FARTHEST = 600.0  # bound of -log sum_k G_k for documents with tokens, which only fractional counts may exceed
_LARGEST = 15.0  # bound of logarithms of shapes and scales
_ROUNDS = 4  # rounds of Metropolis steps for the parameters of the documents' prior, which cost little


@helper
def log_density(y, f, precision, is_binary):
    """Log density of an outcome given its predictor: a logistic model of classes 0 and 1, or a normal distribution."""
    if is_binary:
        t = f if y > 0.5 else -f
        return -math.log1p(math.exp(-t)) if t > -35.0 else t
    return -0.5 * precision * (y - f) * (y - f)


@helper
def total_and_predictor(log_activity, coef):
    """log sum_k G_k, finite however small all G_k are, and the topics' part sum_k b_k theta_k of the predictor."""
    largest = -np.inf
    for k in range(coef.size):
        largest = max(largest, log_activity[k])
    total, weighted = 0.0, 0.0
    for k in range(coef.size):
        x = math.exp(log_activity[k] - largest)
        total += x
        weighted += coef[k] * x
    return largest + math.log(total), weighted / total


@helper
def _auxiliary(n, log_total, rng):
    """Draw u ~ Gamma(n, rate sum_k G_k); 0 without tokens."""
    return rng.standard_gamma(n) * math.exp(min(-log_total, _FARTHEST)) if n > 0.0 else 0.0


@helper
def _draw_activities(mass, rate, u, rng, out):
    """Draw G_k ~ Gamma(mass_k, rate r_k + u), and write the logarithms into ``out``."""
    for k in range(mass.size):
        out[k] = log_gamma_draw(mass[k], rng) - math.log(rate[k] + u)


@helper
def _accepts(proposed, present, y, is_observed, offset, coef, precision, is_binary, rng):
    """Whether proposed activities are accepted; ``present`` is the topics' part of the present predictor."""
    if not is_observed:
        return True
    there = log_density(y, offset + total_and_predictor(proposed, coef)[1], precision, is_binary)
    here = log_density(y, offset + present, precision, is_binary)
    return math.log(1.0 - rng.random()) < there - here


def _sweep(
    start, stop, token_ptr, words, weights, z, table, mass, column, topic, shape, group, beta, row, sums, rng, rate,
    log_activity, response, is_observed, offset, coef, precision, is_binary,
):  # fmt: skip
    """Make the step of each of the documents start:stop; topics of words are integrated out.

    Parameters
    ----------
    token_ptr, words, weights, z, table, mass, column, topic, group, beta, row, sums
        As for `any_tokens`; every topic has a column.
    shape, rate : (1, n_topics)
    log_activity : (n_docs, n_topics), changed in place
        log G. NaN in the first column: not drawn yet; it is then drawn given the assignments alone.
    response, is_observed, offset : (n_docs,)
        Outcomes, whether they are known, and the parts of the predictors that covariates contribute.
    coef : (n_topics,)
    precision : float
        1 over the variance of the noise, for outcomes that are not binary.

    Returns
    -------
    accepted : number of observed documents whose proposal was accepted
    """
    n_topics, accepted, longest = shape.shape[1], 0, 1
    for d in range(start, stop):
        longest = max(longest, token_ptr[d + 1] - token_ptr[d])
    before, u = np.empty(longest, np.uint16), np.empty(token_ptr.size)
    whole, proposed = np.empty(n_topics), np.empty(n_topics)
    inverse, envelope = np.empty(n_topics), np.empty(6)
    weighted, workspace = weights.shape[0] > 0, any_tokens.new_workspace(table.shape[1])
    total_shape = 0.0
    for k in range(n_topics):
        total_shape += shape[0, k]
    for d in range(start, stop):
        lo, hi = token_ptr[d], token_ptr[d + 1]
        n = float(hi - lo)
        if weighted:
            n = 0.0
            for i in range(lo, hi):
                n += weights[i]
        if math.isnan(log_activity[d, 0]):
            for k in range(n_topics):
                whole[k] = shape[0, k]
            for i in range(lo, hi):
                whole[z[i]] += weights[i] if weighted else 1.0
            first = _auxiliary_draw(n, total_shape, whole, rate[0], inverse, envelope, rng)
            _draw_activities(whole, rate[0], first, rng, log_activity[d])
        log_total, present = total_and_predictor(log_activity[d], coef)
        u[d] = _auxiliary(n, log_total, rng)
        if n > 0.0:
            for i in range(lo, hi):
                before[i - lo] = z[i]
            any_tokens.sweep_in(
                0, d, d + 1, token_ptr, words, weights, z, table, mass, column, topic, shape, group, beta, row, sums,
                rng, rate, u, None, None, None, rng.random() < 0.5, workspace,
            )  # fmt: skip
        for k in range(n_topics):
            whole[k] = shape[0, k]
        for i in range(lo, hi):
            whole[z[i]] += weights[i] if weighted else 1.0
        _draw_activities(whole, rate[0], u[d], rng, proposed)
        own = response[d], is_observed[d], offset[d]
        if _accepts(proposed, present, *own, coef, precision, is_binary, rng):
            accepted += is_observed[d]
            for k in range(n_topics):
                log_activity[d, k] = proposed[k]
            continue
        for i in range(lo, hi):
            old, new = np.int64(before[i - lo]), np.int64(z[i])
            if old != new:
                weight = weights[i] if weighted else 1.0
                table[words[i], column[new]] -= weight
                table[words[i], column[old]] += weight
                mass[column[new]] -= weight
                mass[column[old]] += weight
                z[i] = before[i - lo]
    return accepted


def _signature(table, beta):
    return I8(
        I8, I8, I1_IN, I4_IN, F1_IN, Z, table, F1, I4_1, I4_1, F2_IN, I1_IN, beta, I4_IN, F1_IN, RNG, F2_IN, F4_2,
        F1_IN, BOOL1_IN, F1_IN, F1_IN, F8, BOOL,
    )  # fmt: skip


# One kernel for each type of counts, with one word prior or one for each topic.
sweep_short = kernel(_signature(U2_2, F4_1_IN), name="sweep_short")(_sweep)
sweep_long = kernel(_signature(F2, F4_1_IN), name="sweep_long")(_sweep)
sweep_short_under = kernel(_signature(U2_2, F4_2_IN), name="sweep_short_under")(_sweep)
sweep_long_under = kernel(_signature(F2, F4_2_IN), name="sweep_long_under")(_sweep)


def sweep(start, stop, token_ptr, words, weights, z, table, mass, column, topic, shape, group, beta, *rest):
    """Make the steps of documents by the kernel for this table and prior; arguments and result as for `_sweep`."""
    kinds = (sweep_short, sweep_short_under) if table.dtype == np.uint16 else (sweep_long, sweep_long_under)
    args = start, stop, token_ptr, words, weights, z, table, mass, column, topic, shape, group, beta
    return kinds[beta.ndim - 1](*args, *rest)


# ------------------------------------------------------------------------------------------------ with given topics


@helper
def _redraw_given_topics(lo, hi, words, weights, z, phi, whole, rate, u, running, is_backward, rng):
    """Redraw the topics of the tokens lo:hi of a document given topics ``phi``, with G integrated out given u."""
    weighted, n_topics = weights.shape[0] > 0, whole.size
    for t in range(lo, hi):
        i = lo + hi - 1 - t if is_backward else t
        weight = weights[i] if weighted else 1.0
        whole[z[i]] -= weight
        total = 0.0
        for k in range(n_topics):
            total += whole[k] / (rate[k] + u) * phi[words[i], k]
            running[k] = total
        target, k = rng.random() * total, 0
        while k < n_topics - 1 and running[k] <= target:
            k += 1
        z[i] = k
        whole[k] += weight


@kernel(I8(I1_IN, I4_IN, F1_IN, Z, F2_IN, F2_IN, F2_IN, RNG, F4_2, F1_IN, BOOL1_IN, F1_IN, F1_IN, F8, BOOL))
def sweep_given_topics(
    token_ptr, words, weights, z, phi, shape, rate, rng, log_activity, response, is_observed, offset, coef, precision,
    is_binary,
):  # fmt: skip
    """Make the step of each document given topics ``phi``, (n_words, n_topics); otherwise as for `_sweep`."""
    n_docs, n_topics, accepted, longest = token_ptr.size - 1, shape.shape[1], 0, 1
    for d in range(n_docs):
        longest = max(longest, token_ptr[d + 1] - token_ptr[d])
    before, whole, proposed = np.empty(longest, np.uint16), np.empty(n_topics), np.empty(n_topics)
    running, inverse, envelope = np.empty(n_topics), np.empty(n_topics), np.empty(6)
    weighted = weights.shape[0] > 0
    total_shape = 0.0
    for k in range(n_topics):
        total_shape += shape[0, k]
    for d in range(n_docs):
        lo, hi, n = token_ptr[d], token_ptr[d + 1], 0.0
        for k in range(n_topics):
            whole[k] = shape[0, k]
        for i in range(lo, hi):
            weight = weights[i] if weighted else 1.0
            before[i - lo] = z[i]
            whole[z[i]] += weight
            n += weight
        if math.isnan(log_activity[d, 0]):
            first = _auxiliary_draw(n, total_shape, whole, rate[0], inverse, envelope, rng)
            _draw_activities(whole, rate[0], first, rng, log_activity[d])
        log_total, present = total_and_predictor(log_activity[d], coef)
        u = _auxiliary(n, log_total, rng)
        _redraw_given_topics(lo, hi, words, weights, z, phi, whole, rate[0], u, running, rng.random() < 0.5, rng)
        for k in range(n_topics):
            whole[k] = shape[0, k]  # again, without the rounding errors of differences
        for i in range(lo, hi):
            whole[z[i]] += weights[i] if weighted else 1.0
        _draw_activities(whole, rate[0], u, rng, proposed)
        own = response[d], is_observed[d], offset[d]
        if _accepts(proposed, present, *own, coef, precision, is_binary, rng):
            accepted += is_observed[d]
            for k in range(n_topics):
                log_activity[d, k] = proposed[k]
        else:
            for i in range(lo, hi):
                z[i] = before[i - lo]
    return accepted


# --------------------------------------------------------------------------------------------- the documents' prior


@kernel(I8(F4_2, F2, F1, F1, F1))
def sums_of_activities(log_activity, theta, log_sums, sums, log_totals):
    """Write the proportions of documents, and sums of their activities.

    Parameters
    ----------
    log_activity : (n_docs, n_topics)
        log G.
    theta : (n_docs, n_topics), written
    log_sums, sums : (n_topics,), written
        Sums of log G_dk and of G_dk over documents.
    log_totals : (n_docs,), written
        log sum_k G_dk.
    """
    n_topics = log_activity.shape[1]
    log_sums[:] = 0.0
    sums[:] = 0.0
    for d in range(log_activity.shape[0]):
        largest, total = -np.inf, 0.0
        for k in range(n_topics):
            largest = max(largest, log_activity[d, k])
        for k in range(n_topics):
            theta[d, k] = math.exp(log_activity[d, k] - largest)
            total += theta[d, k]
        unit = math.exp(largest)
        for k in range(n_topics):
            log_sums[k] += log_activity[d, k]
            sums[k] += theta[d, k] * unit
            theta[d, k] /= total
        log_totals[d] = largest + math.log(total)
    return OK


@kernel(I8(F1, F1_IN, F8, F8, F8, RNG))
def draw_dirichlet_parameters(log_shape, log_sums, n_docs, mean, precision, rng):
    """Metropolis steps of the parameters a of a Dirichlet distribution given draws of it.

    Only the sums of log theta_dk over documents matter. Under the prior, log a_k are independent normal variables. A
    step of log a_k has 2.4 times the standard deviation that the curvature of its log density implies.

    Parameters
    ----------
    log_shape : (n_topics,), changed in place
    log_sums : (n_topics,), sums of log theta_dk over documents
    mean, precision : of log a_k under its prior
    """
    total = 0.0
    for k in range(log_shape.size):
        total += math.exp(log_shape[k])
    for _ in range(_ROUNDS):
        for k in range(log_shape.size):
            x = log_shape[k]
            a = math.exp(x)
            curvature = n_docs * a * a * max(trigamma(a) - trigamma(total), 0.0) + precision
            y = x + 2.4 * rng.standard_normal() / math.sqrt(curvature)
            if y > _LARGEST or y < -_LARGEST:
                continue
            b = math.exp(y)
            new = total + b - a
            gain = n_docs * (math.lgamma(new) - math.lgamma(total) - math.lgamma(b) + math.lgamma(a))
            gain += (b - a) * log_sums[k] - 0.5 * precision * ((y - mean) * (y - mean) - (x - mean) * (x - mean))
            # The step depends on the state, so the proposal is not symmetric.
            back = n_docs * b * b * max(trigamma(b) - trigamma(new), 0.0) + precision
            gain += 0.5 * math.log(back / curvature) - 0.5 * (back - curvature) * (y - x) * (y - x) / 5.76
            if math.log(1.0 - rng.random()) < gain:
                log_shape[k] = y
                total = new
    return OK


@helper
def _gamma_fit(log_a, log_s, log_sum, total, n, mean, precision, scale_precision):
    """Log density of log a and log s of a topic, given n Gamma(a, scale s) variables."""
    a = math.exp(log_a)
    fit = a * log_sum - total * math.exp(-log_s) - n * (math.lgamma(a) + a * log_s)
    return fit - 0.5 * precision * (log_a - mean) * (log_a - mean) - 0.5 * scale_precision * log_s * log_s


@kernel(I8(F1, F1, F1_IN, F1_IN, F8, F8, F8, F8, RNG))
def draw_gamma_parameters(log_shape, log_scale, log_sums, sums, n_docs, mean, precision, scale_precision, rng):
    """Metropolis steps of shapes a and scales s of gamma distributions, one for each topic, given draws of them.

    A step moves log a_k with the mean a_k s_k fixed, or log s_k with a_k fixed, in turn.

    Parameters
    ----------
    log_shape, log_scale : (n_topics,), changed in place
    log_sums, sums : (n_topics,), sums of log G_dk and of G_dk over documents
    mean, precision : of log a_k under its prior
    scale_precision : of log s_k under its prior, whose mean is 0
    """
    for k in range(log_shape.size):
        x, t = log_shape[k], log_scale[k]
        here = _gamma_fit(x, t, log_sums[k], sums[k], n_docs, mean, precision, scale_precision)
        for step in range(4 * _ROUNDS):
            a = math.exp(x)
            along = step % 2 == 0
            curvature = n_docs * a + scale_precision
            if along:
                curvature = n_docs * (a * a * trigamma(a) - a) + precision + scale_precision
            move = 2.4 * rng.standard_normal() / math.sqrt(curvature)
            y, r = (x + move, t - move) if along else (x, t + move)
            if abs(y) > _LARGEST or abs(r) > _LARGEST:
                continue
            there = _gamma_fit(y, r, log_sums[k], sums[k], n_docs, mean, precision, scale_precision)
            gain = there - here
            if along:
                b = math.exp(y)
                back = n_docs * (b * b * trigamma(b) - b) + precision + scale_precision
                gain += 0.5 * math.log(back / curvature) - 0.5 * (back - curvature) * move * move / 5.76
            if math.log(1.0 - rng.random()) < gain:
                x, t, here = y, r, there
        log_shape[k], log_scale[k] = x, t
    return OK


@helper
def _moments_of_log(a):
    """Mean and standard deviation of the logarithm of a Gamma(a, 1) variable."""
    return digamma(a), math.sqrt(trigamma(a))


@helper
def _relative_activities(log_activity, coef, g, top, unit, totals, predictors):
    """Write the activities of documents relative to the largest, and their sums; all arrays but the first two.

    Parameters
    ----------
    g : (n_docs, n_topics), exp(log G - top)
    top, unit : (n_docs,), the largest log G of each document, and exp(top)
    totals, predictors : (n_docs,), sums over topics of g, and of coef_k g_k
    """
    for d in range(log_activity.shape[0]):
        top[d] = -np.inf
        for k in range(coef.size):
            top[d] = max(top[d], log_activity[d, k])
        for k in range(coef.size):
            g[d, k] = math.exp(log_activity[d, k] - top[d])
        unit[d] = math.exp(top[d])
        totals[d], predictors[d] = _sums_of_document(g[d], coef)


@helper
def _sums_of_document(g, coef):
    """Sums over topics of g_k, and of coef_k g_k."""
    total, weighted = 0.0, 0.0
    for k in range(coef.size):
        total += g[k]
        weighted += coef[k] * g[k]
    return total, weighted


@helper
def _sums_of_tokens(log_activity, token_ptr, weights, z, lengths, mass, weighted_log):
    """Write each document's number of tokens, and add up 1 and log G over the tokens of each topic."""
    weighted = weights.shape[0] > 0
    for d in range(log_activity.shape[0]):
        lengths[d] = 0.0
        for i in range(token_ptr[d], token_ptr[d + 1]):
            weight = weights[i] if weighted else 1.0
            lengths[d] += weight
            mass[z[i]] += weight
            weighted_log[z[i]] += weight * log_activity[d, z[i]]


@helper
def _gain_of_documents(
    k, level, slope, shapes, scales, log_activity, g, top, unit, totals, predictors, lengths, response, is_observed,
    offset, coef, precision, is_binary, changed,
):  # fmt: skip
    """Change of the log density if log G_dk becomes level + slope log G_dk in all documents.

    Writes the new values of column k of ``g`` into ``changed``. ``shapes`` and ``scales`` are present and proposed
    ones. Terms that do not depend on the document are left out.
    """
    gain, own, log_sums, sums = 0.0, coef[k], np.zeros(2), np.zeros(2)
    for d in range(log_activity.shape[0]):
        log_old, old = np.float64(log_activity[d, k]), g[d, k]
        log_new = level + slope * log_old
        new = math.exp(log_new - top[d])
        changed[d] = new
        log_sums[0] += log_old
        log_sums[1] += log_new
        sums[0] += old * unit[d]
        sums[1] += new * unit[d]
        total = max(totals[d] - old, 0.0) + new
        gain -= lengths[d] * math.log(total / totals[d])
        if is_observed[d]:
            here = offset[d] + predictors[d] / totals[d]
            there = offset[d] + (predictors[d] + own * (new - old)) / total
            gain += log_density(response[d], there, precision, is_binary)
            gain -= log_density(response[d], here, precision, is_binary)
    gain += shapes[1] * log_sums[1] - shapes[0] * log_sums[0]
    return gain + sums[0] / scales[0] - sums[1] / scales[1]


@kernel(
    I8(
        F1, F1, F4_2, I1_IN, F1_IN, Z_IN, F1_IN, BOOL1_IN, F1_IN, F1_IN, F8, BOOL, F8, F8, F8, BOOL, F2_IN, F2, RNG
    )
)  # fmt: skip
def move_with_activities(
    log_shape, log_scale, log_activity, token_ptr, weights, z, response, is_observed, offset, coef, precision,
    is_binary, mean, shape_precision, scale_precision, has_scales, steps, accepted, rng,
):  # fmt: skip
    """Metropolis steps of shapes and scales that move the activities of all documents along.

    A topic's activities keep their standardised logarithms, (log G_dk - E log G_dk) / sd(log G_dk), under the proposed
    parameters. So the step is limited by what words and outcomes say of the parameters, not by the activities, given
    which shapes and scales could hardly move. Together with steps given the activities, chains mix much better (Yu and
    Meng, 2011, To center or not to center, Journal of Computational and Graphical Statistics 20).

    Parameters
    ----------
    log_shape, log_scale : (n_topics,), changed in place
    log_activity : (n_docs, n_topics), changed in place
    token_ptr, weights, z, response, is_observed, offset, coef, precision, is_binary
        As for the sweeps.
    mean, shape_precision, scale_precision
        As for `draw_gamma_parameters`.
    has_scales : whether scales differ; otherwise only shapes move
    steps : (2, n_topics)
        Standard deviations of the proposals of log a and of log s.
    accepted : (2, n_topics), written
        Probabilities with which the proposals were accepted.
    """
    n_docs, n_topics = log_activity.shape
    g, top, unit = np.empty((n_docs, n_topics)), np.empty(n_docs), np.empty(n_docs)
    totals, predictors, lengths, changed = np.empty(n_docs), np.empty(n_docs), np.empty(n_docs), np.empty(n_docs)
    mass, weighted_log = np.zeros(n_topics), np.zeros(n_topics)
    _relative_activities(log_activity, coef, g, top, unit, totals, predictors)
    _sums_of_tokens(log_activity, token_ptr, weights, z, lengths, mass, weighted_log)
    documents = log_activity, g, top, unit, totals, predictors, lengths
    own = response, is_observed, offset, coef, precision, is_binary
    for k in range(n_topics):
        for part in range(2 if has_scales else 1):
            x, t = log_shape[k], log_scale[k]
            move = steps[part, k] * rng.standard_normal()
            y, r = (x + move, t) if part == 0 else (x, t + move)
            threshold = math.log(1.0 - rng.random())
            accepted[part, k] = 0.0
            if abs(y) > _LARGEST or abs(r) > _LARGEST:
                continue
            a, b = math.exp(x), math.exp(y)
            (old_mean, old_spread), (new_mean, new_spread) = _moments_of_log(a), _moments_of_log(b)
            slope = new_spread / old_spread
            level = r + new_mean - slope * (t + old_mean)
            gain = n_docs * (math.log(slope) + math.lgamma(a) + a * t - math.lgamma(b) - b * r)
            gain += level * mass[k] + (slope - 1.0) * weighted_log[k]
            gain -= 0.5 * shape_precision * ((y - mean) * (y - mean) - (x - mean) * (x - mean))
            gain -= 0.5 * scale_precision * (r * r - t * t)
            scales = math.exp(t), math.exp(r)
            gain += _gain_of_documents(k, level, slope, (a, b), scales, *documents, *own, changed)
            accepted[part, k] = math.exp(min(gain, 0.0)) if gain == gain else 0.0
            if threshold < gain:
                log_shape[k], log_scale[k] = y, r
                weighted_log[k] = level * mass[k] + slope * weighted_log[k]
                for d in range(n_docs):
                    log_activity[d, k] = level + slope * log_activity[d, k]
                    g[d, k] = changed[d]
                    totals[d], predictors[d] = _sums_of_document(g[d], coef)
    return OK
