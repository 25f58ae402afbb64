"""Atom weights of a constructive gamma process, given the topics' counts in documents.

Atom k has the weight r_k = E_k exp(-T_k), with E_k ~ Exp(c). T_k ~ Gamma(d_k, a) is the end of round d_k of a Poisson
clock of rate a, and d_k is uniform on 1, ..., R. With d_k summed out, T_k has the density
(a / R) Q(R, a T_k), Q the regularised upper incomplete gamma function. With K atoms, there are K/R per round on
average. The weights are a gamma process of mass a K/R and rate c, except for the atoms of rounds beyond R.

The count n_dk of topic k in document d has a probability proportional to
Gamma(n_dk + r_k) / Gamma(r_k) p_d^n_dk (1 - p_d)^r_k, where the gamma-distributed activity of the topic is integrated
out. The weights depend on the counts only through ``above`` (n_topics, n_levels), the number of documents with
n_dk > m, and through L = -sum_d log(1 - p_d).
"""

import math

import numpy as np
from numba import types

from .._jit import F1, F1_IN, F2, F2_IN, F8, I1_IN, I8, OK, RNG, helper, kernel
from ..math.random import TINY, gamma_draw, log_gamma_draw
from ..math.special import digamma
from ..runners import DENSE_SIGNAL
from ..samplers.riemannian import METRIC
from ..samplers.simplex import cox_ingersoll_ross
from .lda.assignments import I4_IN, Z_IN

_SHORT = 6  # Runs of at most this many levels are read level by level.
SMALLEST = 1e-30  # Weights below this have no effect.
# Positions in ``params``: L, rounds R, shape and rate of the Gamma priors of a and of c, a fixed number of the order of
# L, and whether to compute the log density as well as its gradient.
LOGS, ROUNDS, A_SHAPE, A_RATE, C_SHAPE, C_RATE, TYPICAL, DENSITY = range(8)
_MOST_STEPS = 10  # of stepping out, divided randomly between the two sides to keep the update exact
_MAX_SHRINKS = 200


# ---------------------------------------------------------------------------------------------------------- statistics


@kernel(I8(I1_IN, I1_IN, F1_IN, Z_IN, F8, F2))
def count_documents(docs, token_ptr, weights, z, sign, above):
    """Add ``sign`` times the documents ``docs``, given by their assignments, to ``above``.

    A token of weight w < 1 adds w at the level that its document has reached.
    """
    n = np.zeros(above.shape[0])
    weighted = weights.shape[0] > 0
    for d in docs:
        for i in range(token_ptr[d], token_ptr[d + 1]):
            weight = weights[i] if weighted else 1.0
            k = np.intp(z[i])
            above[k, int(n[k])] += sign * weight
            n[k] += weight
        for i in range(token_ptr[d], token_ptr[d + 1]):
            n[z[i]] = 0.0
    return OK


@kernel(I8(F2_IN, F8, F2))
def count_rows(doc_counts, scale, above):
    """Add ``scale`` times the documents whose topic counts are the rows of ``doc_counts`` to ``above``."""
    for d in range(doc_counts.shape[0]):
        for k in range(doc_counts.shape[1]):
            left = doc_counts[d, k]
            m = 0
            while left > 0.0:
                above[k, m] += scale * min(left, 1.0)
                left -= 1.0
                m += 1
    return OK


@kernel(types.Tuple((F2, F1))(F2_IN))
def cells_of(above):
    """Runs of equal cells of ``above``: rows (k, first m, number of levels), and their values.

    The cells of a topic end at its first 0.
    """
    cells, values = np.empty((0, 0)), np.empty(0)
    for write in range(2):
        n = 0
        for k in range(above.shape[0]):
            m = 0
            while m < above.shape[1] and above[k, m] > 0.0:
                first = m
                while m < above.shape[1] and above[k, m] == above[k, first]:
                    m += 1
                if write == 1:
                    cells[n, 0], cells[n, 1], cells[n, 2], values[n] = k, first, m - first, above[k, first]
                n += 1
        if write == 0:
            cells, values = np.empty((n, 3)), np.empty(n)
    return cells, values


@kernel(F8(I1_IN, F1_IN, F8, F8, F8, F1, RNG))
def draw_document_scales(docs, lengths, total_weight, a0, b0, logs, rng):
    """Write logs[d] = -log(1 - p_d) for new p_d ~ Beta(a0 + length, b0 + total weight); returns their sum."""
    total = 0.0
    for d in docs:
        high, low = log_gamma_draw(a0 + lengths[d], rng), log_gamma_draw(b0 + total_weight, rng)
        gap = high - low
        logs[d] = gap + math.log1p(math.exp(-gap)) if gap > 0.0 else math.log1p(math.exp(gap))
        total += logs[d]
    return total


@helper
def _binomial(n, p, rng):
    """Binomial draw for n trials; a fractional part of n is added if one more trial succeeds."""
    whole = np.floor(n)
    drawn = 0.0
    if whole > 0.0:
        drawn = (1.0 if rng.random() < p else 0.0) if whole == 1.0 else float(rng.binomial(int(whole), p))
    rest = n - whole
    return drawn + (rest if rest > 0.0 and rng.random() < p else 0.0)


@helper
def _successes(r, first, n_levels, n, rng):
    """Sum of Binomial(n, r / (r + m)) over the levels m = first, ..., for whole n.

    Most trials are skipped: candidate successes are drawn with the largest probability, and then thinned.
    """
    # np.floor returns a float64. In numba 0.61, math.floor returns an integer, which overflows: the loop would not end.
    top = r / (r + first)
    log_miss = math.log1p(-top)
    n_trials, at, drawn = n * n_levels, 0.0, 0.0
    while True:
        at += 1.0 + np.floor(math.log(1.0 - rng.random()) / log_miss)
        if not at <= n_trials:
            return drawn
        level = first + np.floor((at - 1.0) / n)
        if rng.random() * (r + level) < r + first:
            drawn += 1.0


@kernel(I8(F2_IN, F1_IN, F1_IN, F1, RNG))
def draw_tables(cells, values, weights, tables, rng):
    """Draw l_k = sum_d CRT(n_dk, r_k) (Chinese restaurant tables), a sum of Binomial(above_km, r_k / (r_k + m)) over m.

    Given l_k, the likelihood of r_k is r_k^l_k exp(-L r_k).
    """
    tables[:] = 0.0
    for i in range(cells.shape[0]):
        k, first, n_levels = int(cells[i, 0]), cells[i, 1], cells[i, 2]
        r = weights[k]
        if first == 0.0:
            tables[k] += values[i]  # The first customer always starts a new table.
            first, n_levels = 1.0, n_levels - 1.0
        if n_levels > _SHORT and values[i] == np.floor(values[i]):
            tables[k] += _successes(r, first, n_levels, values[i], rng)
        else:
            for m in range(int(first), int(first + n_levels)):
                tables[k] += _binomial(values[i], r / (r + m), rng)
    return OK


# ----------------------------------------------------------------------------------------------------------- the clock


@helper
def erlang_tail(n_rounds, x):
    """log Q(R, x) and minus its derivative, the hazard x^{R-1} e^{-x} / (Gamma(R) Q), by Erlang's recursion.

    Step j multiplies an error by j / x, or by x / j if j exceeds x. The recursion may therefore start from 1 - j / x at
    a j that is lower by a few square roots of x.
    """
    if x <= 0.0 or (x < n_rounds and n_rounds - x + n_rounds * math.log(x / n_rounds) < -40.0):
        return 0.0, 0.0  # Q is 1 and the hazard 0 up to rounding, by Chernoff's bound.
    near = min(n_rounds, x)
    begin = max(0, int(near - 10.0 * math.sqrt(near) - 10.0))
    loss = 1.0 - begin / x
    for j in range(begin + 1, int(n_rounds)):
        loss = x * loss / (j + x * loss)
    log_point = (n_rounds - 1.0) * math.log(x) - x - math.lgamma(n_rounds)
    if loss < 1e-250:
        return 0.0, 0.0
    return min(log_point - math.log(loss), 0.0), loss


@helper
def _log_rest(t, exponent, c, L, E, joint):
    """Log likelihood of T_k, with E_k integrated out, or given E_k if ``joint``."""
    if joint:
        return -(exponent - 1.0) * t - E * L * math.exp(-t)
    return -(exponent - 1.0) * t - exponent * math.log(c + L * math.exp(-t))


@helper
def _log_clock(t, exponent, c, L, E, joint, n_rounds, a):
    """Log density of T_k; ``exponent`` = 1 + l_k."""
    if not t > 0.0:
        return -np.inf
    return _log_rest(t, exponent, c, L, E, joint) + erlang_tail(n_rounds, a * t)[0]


@helper
def _redraw_clock(t, exponent, c, L, E, joint, n_rounds, a, rng):
    """One slice-sampling update of T_k, by stepping out and shrinking (Neal 2003)."""
    level = _log_clock(t, exponent, c, L, E, joint, n_rounds, a) + math.log(1.0 - rng.random())
    width = 1.0 + 0.2 * n_rounds / a
    low = t - width * rng.random()
    high = low + width
    down = rng.integers(0, _MOST_STEPS + 1)
    for _ in range(down):
        if low <= 0.0 or _log_clock(low, exponent, c, L, E, joint, n_rounds, a) <= level:
            break
        low -= width
    for _ in range(_MOST_STEPS - down):
        if _log_clock(high, exponent, c, L, E, joint, n_rounds, a) <= level:
            break
        high += width
    low = max(low, 0.0)
    for _ in range(_MAX_SHRINKS):
        new = low + (high - low) * rng.random()
        if _log_clock(new, exponent, c, L, E, joint, n_rounds, a) > level:
            return new
        if new < t:
            low = new
        else:
            high = new
    return t


@helper
def _log_number(which, log_value, E, T, tables, params, other, joint):
    """Log density of log a (0: given T, 1: given a T) or of log c (2); ``other`` = present (a, c)."""
    value = math.exp(log_value)
    L, n_rounds = params[LOGS], params[ROUNDS]
    if which == 2:
        total = (params[C_SHAPE] + T.shape[0]) * log_value - params[C_RATE] * value
        for k in range(T.shape[0]):
            total -= (1.0 + tables[k]) * math.log(value + L * math.exp(-T[k]))
        return total
    total = params[A_SHAPE] * log_value - params[A_RATE] * value
    for k in range(T.shape[0]):
        if which == 0:
            total += log_value + erlang_tail(n_rounds, value * T[k])[0]
        else:
            total += _log_rest(T[k] * other[0] / value, 1.0 + tables[k], other[1], L, E[k], joint)
    return total


@helper
def _redraw_number(which, E, T, tables, params, other, joint, rng):
    """One slice-sampling update of log a or log c; returns a or c."""
    x = math.log(other[1] if which == 2 else other[0])
    level = _log_number(which, x, E, T, tables, params, other, joint) + math.log(1.0 - rng.random())
    low = x - rng.random()
    high = low + 1.0
    down = rng.integers(0, _MOST_STEPS + 1)
    for _ in range(down):
        if _log_number(which, low, E, T, tables, params, other, joint) <= level:
            break
        low -= 1.0
    for _ in range(_MOST_STEPS - down):
        if _log_number(which, high, E, T, tables, params, other, joint) <= level:
            break
        high += 1.0
    for _ in range(_MAX_SHRINKS):
        new = low + (high - low) * rng.random()
        if _log_number(which, new, E, T, tables, params, other, joint) > level:
            return math.exp(new)
        if new < x:
            low = new
        else:
            high = new
    return math.exp(x)


@kernel(I8(F2, F1_IN, F1_IN, F8, RNG))
def draw_atoms(theta, tables, params, decay, rng):
    """Redraw the weights given the tables, by conditional updates that leave the posterior invariant.

    ``theta`` (2 K + 2, 1) contains log E, log T, log a and log c. T_k, a and c are drawn by slice sampling, and E_k
    from its Gamma distribution. a is drawn twice, given T and given a T, because either update alone mixes slowly.

    With ``decay`` = 0, T, a and c are drawn with E integrated out. Otherwise, E and c make Cox-Ingersoll-Ross
    transitions, whose autocorrelation is ``decay``.
    """
    K = tables.shape[0]
    L = params[LOGS]
    joint = decay > 0.0
    E, T, other = np.empty(K), np.empty(K), np.empty(2)
    for k in range(K):
        E[k], T[k] = math.exp(theta[k, 0]), math.exp(theta[K + k, 0])
    other[0], other[1] = math.exp(theta[2 * K, 0]), math.exp(theta[2 * K + 1, 0])
    for k in range(K):
        T[k] = _redraw_clock(T[k], 1.0 + tables[k], other[1], L, E[k], joint, params[ROUNDS], other[0], rng)
    other[0] = _redraw_number(0, E, T, tables, params, other, joint, rng)
    new = _redraw_number(1, E, T, tables, params, other, joint, rng)
    for k in range(K):
        T[k] *= other[0] / new
    other[0] = new
    if joint:
        rate = params[C_RATE] + E.sum()
        other[1] = cox_ingersoll_ross(other[1] * rate, params[C_SHAPE] + K, decay, rng) / rate
    else:
        other[1] = _redraw_number(2, E, T, tables, params, other, joint, rng)
    for k in range(K):
        rate = other[1] + L * math.exp(-T[k])
        shape = 1.0 + tables[k]
        E[k] = (cox_ingersoll_ross(E[k] * rate, shape, decay, rng) if joint else gamma_draw(shape, rng)) / rate
        theta[k, 0], theta[K + k, 0] = math.log(max(E[k], TINY)), math.log(max(T[k], TINY))
    theta[2 * K, 0], theta[2 * K + 1, 0] = math.log(other[0]), math.log(other[1])
    return OK


# ------------------------------------------------------------------------------------------------------------ gradients


@kernel(DENSE_SIGNAL, fast_sums=True)
def gamma_process(theta, X, y, weight, params, scale, signal, extra):
    """Gradient in log E, log T, log a and log c; ``X`` and ``weight`` are the results of `cells_of`."""
    K = (theta.shape[0] - 2) // 2
    L, n_rounds = scale * params[LOGS], params[ROUNDS]
    a, c = math.exp(theta[2 * K, 0]), math.exp(theta[2 * K + 1, 0])
    r = np.empty(K)
    logp = (params[A_SHAPE] + K) * theta[2 * K, 0] - params[A_RATE] * a
    logp += (params[C_SHAPE] + K) * theta[2 * K + 1, 0] - params[C_RATE] * c
    signal[2 * K, 0] = params[A_SHAPE] + K - params[A_RATE] * a
    signal[2 * K + 1, 0] = params[C_SHAPE] + K - params[C_RATE] * c
    for k in range(K):
        E, T = math.exp(theta[k, 0]), math.exp(theta[K + k, 0])
        r[k] = math.exp(max(theta[k, 0] - T, -690.0))
        log_tail, hazard = erlang_tail(n_rounds, a * T)
        logp += theta[k, 0] - c * E + theta[K + k, 0] + log_tail - L * r[k]
        signal[k, 0] = -L * r[k]  # So far, this is the likelihood's gradient in log r.
        signal[K + k, 0] = 1.0 - a * T * hazard
        signal[2 * K, 0] -= a * T * hazard
        signal[2 * K + 1, 0] -= c * E
    for i in range(X.shape[0]):
        k, first, n_levels = int(X[i, 0]), X[i, 1], X[i, 2]
        rate = 0.0
        if n_levels > _SHORT and first > 0.0:
            rate = r[k] * (digamma(r[k] + first + n_levels) - digamma(r[k] + first))
        else:
            for m in range(int(first), int(first + n_levels)):
                rate += r[k] / (r[k] + m)
        signal[k, 0] += scale * weight[i] * rate
    if params[DENSITY] > 0.0:
        for i in range(X.shape[0]):
            last = r[int(X[i, 0])] + X[i, 1]
            logp += scale * weight[i] * (math.lgamma(last + X[i, 2]) - math.lgamma(last))
    for k in range(K):
        signal[K + k, 0] -= math.exp(theta[K + k, 0]) * signal[k, 0]
        signal[k, 0] += 1.0 - c * math.exp(theta[k, 0])
    extra[0] = logp
    return OK if math.isfinite(logp) else 1


@kernel(METRIC)
def gamma_process_metric(theta, X, y, weight, params, scale, out, extra):
    """Diagonal metric: expected information of the tables and the priors, with ``params[TYPICAL]`` instead of L.

    1 + c E + r L for log E, 1 + (a T)^2 / R + T^2 r L for log T, K for log a and log c.
    """
    K = (theta.shape[0] - 2) // 2
    L, n_rounds = params[TYPICAL], params[ROUNDS]
    a, c = math.exp(theta[2 * K, 0]), math.exp(theta[2 * K + 1, 0])
    out[:] = 0.0
    rates = out.shape[0] > 1
    for k in range(K):
        E, T = math.exp(theta[k, 0]), math.exp(theta[K + k, 0])
        info = L * math.exp(max(theta[k, 0] - T, -690.0))
        end = (a * T) ** 2 / n_rounds
        out[0, k], out[0, K + k] = 1.0 + c * E + info, 1.0 + end + T * T * info
        if rates:
            out[1 + k, k], out[1 + k, K + k] = c * E + info, T * T * info
            out[1 + K + k, k], out[1 + K + k, K + k] = -T * info, 2.0 * end + T * T * (2.0 - T) * info
            out[1 + 2 * K, K + k], out[2 + 2 * K, k] = 2.0 * end, c * E
    out[0, 2 * K], out[0, 2 * K + 1] = K, K
    return OK


@kernel(I8(I1_IN, I4_IN, F1_IN, Z_IN, I1_IN, F2_IN, F1_IN, F1_IN, F8, F1_IN, F1))
def pair_gains(token_ptr, words, weights, z, partner, counts, topic_mass, beta, beta_mass, doc_prior, gains):
    """Evidence of the documents for keeping two topics separate, for each topic j with partner[j] > j.

    It is the difference of log p(z) between the present and the merged assignments, plus the entropies of the choice
    between the two topics for each token.

    Parameters
    ----------
    partner : (n_topics,), the other topic of each pair, -1 for none
    gains : (n_topics,), written
    """
    n_doc = np.zeros(counts.shape[1])
    gains[:] = 0.0
    weighted = weights.shape[0] > 0
    for d in range(token_ptr.shape[0] - 1):
        for i in range(token_ptr[d], token_ptr[d + 1]):
            n_doc[z[i]] += weights[i] if weighted else 1.0
        for i in range(token_ptr[d], token_ptr[d + 1]):
            j = np.int64(z[i])
            k = partner[j]
            if k < 0:
                continue
            w, weight = words[i], weights[i] if weighted else 1.0
            own = (n_doc[j] - weight + doc_prior[j]) * (counts[w, j] - weight + beta[w])
            own /= topic_mass[j] - weight + beta_mass
            other = (n_doc[k] + doc_prior[k]) * (counts[w, k] + beta[w]) / (topic_mass[k] + beta_mass)
            q = min(max(own / (own + other), 1e-12), 1.0 - 1e-12)
            gains[min(j, k)] -= weight * (q * math.log(q) + (1.0 - q) * math.log(1.0 - q))
        for i in range(token_ptr[d], token_ptr[d + 1]):
            j = np.int64(z[i])
            k = partner[j]
            if k >= 0 and n_doc[j] > 0.0:
                both, prior = n_doc[j] + n_doc[k], doc_prior[j] + doc_prior[k]
                gain = math.lgamma(n_doc[j] + doc_prior[j]) - math.lgamma(doc_prior[j])
                if n_doc[k] > 0.0:
                    gain += math.lgamma(n_doc[k] + doc_prior[k]) - math.lgamma(doc_prior[k])
                gains[min(j, k)] += gain - math.lgamma(both + prior) + math.lgamma(prior)
                n_doc[k] = 0.0
            n_doc[j] = 0.0
    return OK
