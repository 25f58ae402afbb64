"""Transitions on the simplex and on (0, inf): stochastic CIR, exponential Ornstein-Uhlenbeck, SGRLD.

The state ``theta`` is (n_cells, n_columns). Each column is one simplex in unnormalised coordinates, and each row is one
cell of all columns (in a topic model: a word). ``signal`` (n_active, n_columns) contains the shape a = prior +
estimated counts of the active rows. ``extra`` (n_columns,) contains the estimated counts summed over all cells.
``hyper[0]`` is the step size h.

All transitions share the signature `TRANSITION`. An ``advance`` kernel brings lazily updated rows up to date. Its
``extra`` (n_active,) is the time since their last update, which is the sum of step sizes since then. A ``step`` kernel
makes one step of length h.
"""

import numpy as np

from .._jit import F1, F1_IN, F2, F2_IN, F8, I1_IN, I8, NOT_FINITE, OK, TRANSITION, helper, kernel, read_only
from ..math.random import TINY, gamma_draw, log_gamma_draw, mixed_gamma_row, poisson_draw, start_counter


@helper
def cox_ingersoll_ross(theta, shape, decay, rng):
    """Exact draw of the CIR process after the time -log(decay); leaves Gamma(shape, 1) invariant.

    Given P ~ Poisson(theta decay / (1 - decay)), the draw is (1 - decay) Gamma(shape + P, 1). This works for any shape,
    whereas the usual non-central chi-squared draw with a shifted normal needs shape >= 1/2. If the time is so short
    that ``decay`` rounds to 1, nothing changes.
    """
    if decay >= 1.0:
        return theta
    spread = 1.0 - decay
    if decay > 0.0:
        shape = shape + poisson_draw(theta * decay / spread, rng)
    return max(spread * gamma_draw(shape, rng), TINY)


@helper
def _cir_row(cells, shape, decay, counter, draw, rng):
    """`cox_ingersoll_ross` for a row of cells; returns the counter for the next row."""
    if decay >= 1.0:
        return counter
    spread = 1.0 - decay
    counter = mixed_gamma_row(shape, cells, decay / spread, counter, draw, rng)
    for k in range(cells.shape[0]):
        cells[k] = max(spread * draw[k], TINY)
    return counter


@kernel(TRANSITION)
def scir_advance(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Bring lazily updated rows up to date by one CIR transition over the elapsed time, at their constant shape.

    At a constant shape, one transition over the sum of the step sizes has the same distribution as all of them.
    """
    counter, draw = start_counter(rng), np.empty(theta.shape[1])
    for i in range(rows.shape[0]):
        if extra[i] > 0.0:
            counter = _cir_row(theta[rows[i]], signal[i], np.exp(-extra[i]), counter, draw, rng)
    return OK


@kernel(TRANSITION)
def scir_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """One CIR transition of length h at the estimated shape; writes log theta into ``aux[0]`` if it exists."""
    decay = np.exp(-hyper[0])
    spread = 1.0 - decay
    keep_log = aux.shape[0] > 0
    counter, draw = np.uint64(0) if keep_log else start_counter(rng), np.empty(theta.shape[1])
    for i in range(rows.shape[0]):
        r = rows[i]
        for k in range(theta.shape[1]):
            if not signal[i, k] > 0.0:
                return NOT_FINITE
        if not keep_log:
            counter = _cir_row(theta[r], signal[i], decay, counter, draw, rng)
            continue
        for k in range(theta.shape[1]):
            if decay >= 1.0:
                aux[0, r, k] = np.log(theta[r, k])
                continue
            shape = signal[i, k]
            if decay > 0.0:
                shape = shape + poisson_draw(theta[r, k] * decay / spread, rng)
            log_theta = np.log(spread) + log_gamma_draw(shape, rng)
            aux[0, r, k] = log_theta
            theta[r, k] = max(np.exp(log_theta), TINY)
    return OK


@kernel(TRANSITION)
def no_advance(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Do nothing, for samplers that move all rows at every step."""
    return OK


@kernel(TRANSITION)
def exponential_ou_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Exponential Ornstein-Uhlenbeck: log theta <- m + (log theta - m) e^{-h} + s sqrt(1 - e^{-2h}) Z.

    ``signal`` is m, and ``extra`` is s, one per column. For a fixed m, LogNormal(m, s^2) is exactly invariant.
    """
    decay = np.exp(-hyper[0])
    noise = np.sqrt(1.0 - decay * decay)
    for i in range(rows.shape[0]):
        r = rows[i]
        for k in range(theta.shape[1]):
            m = signal[i, k]
            log_theta = m + (np.log(theta[r, k]) - m) * decay + extra[k] * noise * rng.standard_normal()
            theta[r, k] = np.exp(log_theta)
            if not np.isfinite(theta[r, k]):
                return NOT_FINITE
    return OK


@kernel(TRANSITION)
def sgrld_expanded_mean(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """pi = theta / sum(theta): theta <- |theta + h (a - n pi - theta) + sqrt(2 h theta) Z|."""
    h = hyper[0]
    for k in range(theta.shape[1]):
        total = 0.0
        for r in range(theta.shape[0]):
            total += theta[r, k]
        pull = extra[k] / total + 1.0
        for i in range(rows.shape[0]):
            r = rows[i]
            x = theta[r, k]
            x = abs(x + h * (signal[i, k] - pull * x) + np.sqrt(2.0 * h * x) * rng.standard_normal())
            if not np.isfinite(x):
                return NOT_FINITE
            theta[r, k] = max(x, TINY)
    return OK


@kernel(TRANSITION)
def sgrld_expanded_natural(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """pi = softmax(theta): theta <- theta + h (e^{-theta} (a - n pi - 1) - 1) + sqrt(2 h) e^{-theta/2} Z."""
    h = hyper[0]
    for k in range(theta.shape[1]):
        total = 0.0
        for r in range(theta.shape[0]):
            total += np.exp(theta[r, k])
        for i in range(rows.shape[0]):
            r = rows[i]
            x = theta[r, k]
            inverse = np.exp(-x)
            # This form of n pi e^{-theta} = n / total does not overflow for rare cells.
            drift = inverse * (signal[i, k] - 1.0) - extra[k] / total - 1.0
            x = x + h * drift + np.sqrt(2.0 * h * inverse) * rng.standard_normal()
            if not abs(x) < 690.0:
                return NOT_FINITE
            theta[r, k] = x
    return OK


@kernel(TRANSITION)
def sgrld_reduced_mean(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """theta = pi: pi <- pi + h (a - A pi)/n + sqrt(2h/n) (sqrt(pi) Z - pi <sqrt(pi), Z>).

    A is the sum of the shapes. If a step leaves the simplex, taking absolute values and rescaling returns it there.
    The rows must be all rows in order. ``aux[0]`` is scratch for the normal draws.
    """
    h = hyper[0]
    for k in range(theta.shape[1]):
        n = max(extra[k], 1.0)
        shape_total = 0.0
        along = 0.0
        for r in range(theta.shape[0]):
            aux[0, r, k] = np.sqrt(theta[r, k]) * rng.standard_normal()
            along += aux[0, r, k]
            shape_total += signal[r, k]
        noise = np.sqrt(2.0 * h / n)
        total = 0.0
        for r in range(theta.shape[0]):
            x = theta[r, k]
            x = abs(x + h * (signal[r, k] - shape_total * x) / n + noise * (aux[0, r, k] - x * along))
            if not np.isfinite(x):
                return NOT_FINITE
            theta[r, k] = max(x, TINY)
            total += theta[r, k]
        for r in range(theta.shape[0]):
            theta[r, k] /= total
    return OK


@kernel(TRANSITION)
def sgrld_reduced_natural(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """theta_j = log(pi_j / pi_last), with drift ((a_j - 1)/pi_j - (a_last - 1)/pi_last) / n.

    The noise is sqrt(2h/n) (Z_j/sqrt(pi_j) - Z_last/sqrt(pi_last)). The last row stays 0. The rows must be all rows in
    order. For rare cells, 1/pi diverges, and the chain stops with a status.
    """
    h = hyper[0]
    last = theta.shape[0] - 1
    for k in range(theta.shape[1]):
        n = max(extra[k], 1.0)
        largest = 0.0
        for r in range(last + 1):
            largest = max(largest, theta[r, k])
        total = 0.0
        for r in range(last + 1):
            total += np.exp(theta[r, k] - largest)
        p_last = np.exp(-largest) / total
        base_drift = (signal[last, k] - 1.0) / p_last
        base_noise = rng.standard_normal() / np.sqrt(p_last)
        noise = np.sqrt(2.0 * h / n)
        for r in range(last):
            p = np.exp(theta[r, k] - largest) / total
            drift = ((signal[r, k] - 1.0) / p - base_drift) / n
            x = theta[r, k] + h * drift + noise * (rng.standard_normal() / np.sqrt(p) - base_noise)
            if not abs(x) < 690.0:
                return NOT_FINITE
            theta[r, k] = x
    return OK


@kernel(TRANSITION)
def gamma_redraw(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Independent Gamma(a, 1) draws, the limit h -> inf of SCIR, so that a column is an exact Dirichlet draw."""
    keep_log = aux.shape[0] > 0
    counter, draw = np.uint64(0) if keep_log else start_counter(rng), np.empty(theta.shape[1])
    for i in range(rows.shape[0]):
        if not keep_log:
            counter = _cir_row(theta[rows[i]], signal[i], 0.0, counter, draw, rng)
            continue
        for k in range(theta.shape[1]):
            aux[0, rows[i], k] = log_gamma_draw(signal[i, k], rng)
            theta[rows[i], k] = max(np.exp(aux[0, rows[i], k]), TINY)
    return OK


@kernel(I8(F2_IN, F2_IN, I1_IN, F1_IN, F1, F1))
def lazy_mass(theta, shape, rows, elapsed, mass, shape_mass):
    """Sum over rows the conditional means a + (theta - a) e^{-elapsed} of lazily updated cells, and their shapes a."""
    mass[:] = 0.0
    shape_mass[:] = 0.0
    for i in range(rows.shape[0]):
        decay = np.exp(-elapsed[i])
        for k in range(theta.shape[1]):
            a = shape[i, k]
            mass[k] += a + (theta[rows[i], k] - a) * decay
            shape_mass[k] += a
    return OK


@kernel(F1(F2_IN, I1_IN))
def column_sums(theta, rows):
    """Column sums of theta[rows], (n_columns,)."""
    total = np.zeros(theta.shape[1])
    for r in rows:
        for k in range(theta.shape[1]):
            total[k] += theta[r, k]
    return total


@kernel(I8(read_only(F8, 2, "A"), F2_IN, I1_IN, F2))
def lazy_shape(prior, counts, rows, shape):
    """Write prior[rows] + counts[rows] into ``shape`` (n_active, n_columns); ``counts`` may have no rows."""
    counted = counts.shape[0] > 0
    for i in range(rows.shape[0]):
        for k in range(prior.shape[1]):
            shape[i, k] = prior[rows[i], k] + (counts[rows[i], k] if counted else 0.0)
    return OK


@kernel(F1(F2, I1_IN, F2_IN))
def add_rows(target, rows, addend):
    """target[rows] += addend; returns the column sums of the addend, (n_columns,)."""
    total = np.zeros(target.shape[1])
    for i in range(rows.shape[0]):
        for k in range(target.shape[1]):
            target[rows[i], k] += addend[i, k]
            total[k] += addend[i, k]
    return total
