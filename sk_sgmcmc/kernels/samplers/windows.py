"""Adaptation in burn-in: the step size by dual averaging, and the mass from draws in windows of increasing length.

Such a sampler has a *tail* in its ``scalars``, after the blocks of its mass. It consists of `TAIL_SIZE` numbers named
below, the steps at which windows end, and the mean of the draws of the present window (D). ``scalars[TAIL]`` is the
position of the tail, or 0 if there is none. The sum of squares of a window is in block 2 of the mass.
"""

import numpy as np

from .._jit import helper
from ..math.arrays import cholesky
from .mass import ADAPTED, COUNT, FREEZE_AT, HEAD, LOG_FACTOR, N_UPDATES, block, kind_of

TAIL = 30
(
    CENTRE, SHORTFALL, N_AVERAGED, LOG_MEAN, WINDOW, N_WINDOWS, FIRST, N_DIVERGED, N_LEAPFROG, N_DEEPEST, RATES,
    N_AFTER,
) = range(12)  # fmt: skip
TAIL_SIZE = 12

_SHRINKAGE, _OFFSET, _DECAY = 0.05, 10.0, 0.75  # of dual averaging
_PRIOR_DRAWS, _PRIOR_VARIANCE = 5.0, 1e-3  # towards which the variance of a window is shrunk


@helper(inline=True)
def average_step(scalars, rate, target):
    """Adapt the logarithm of the step size's factor by dual averaging, towards the acceptance rate ``target``."""
    tail = int(scalars[TAIL])
    scalars[tail + N_AVERAGED] += 1.0
    n = scalars[tail + N_AVERAGED]
    weight = 1.0 / (n + _OFFSET)
    scalars[tail + SHORTFALL] += weight * (target - rate - scalars[tail + SHORTFALL])
    scalars[LOG_FACTOR] = scalars[tail + CENTRE] - np.sqrt(n) / _SHRINKAGE * scalars[tail + SHORTFALL]
    share = n**-_DECAY
    scalars[tail + LOG_MEAN] += share * (scalars[LOG_FACTOR] - scalars[tail + LOG_MEAN])


@helper
def begin_averaging(scalars, log_factor):
    """Start averaging again from a factor; large steps are tried first, since they cost little."""
    tail = int(scalars[TAIL])
    scalars[LOG_FACTOR] = log_factor
    scalars[tail + CENTRE] = log_factor + np.log(10.0)
    scalars[tail + SHORTFALL] = 0.0
    scalars[tail + N_AVERAGED] = 0.0
    scalars[tail + LOG_MEAN] = 0.0


@helper(inline=True)
def collect(scalars, theta):
    """Add a draw to the mean and the squares of the present window."""
    kind, D, width = kind_of(scalars), theta.size, theta.shape[1]
    squares = block(kind, D, 2)
    mean = int(scalars[TAIL]) + TAIL_SIZE + int(scalars[int(scalars[TAIL]) + N_WINDOWS])
    scalars[COUNT] += 1.0
    n = scalars[COUNT]
    before = np.empty(D)
    for i in range(D):
        before[i] = theta[i // width, i % width] - scalars[mean + i]
        scalars[mean + i] += before[i] / n
    for i in range(D):
        after = theta[i // width, i % width] - scalars[mean + i]
        if kind == 1:
            scalars[squares + i] += before[i] * after
        else:
            for j in range(D):
                scalars[squares + i * D + j] += after * before[j]


@helper(inline=True)
def shrinkage_of(W, n):
    """Fraction by which to shrink the correlations of a covariance of n draws.

    With few draws for each entry, spurious correlations would lengthen the longest trajectories. The fraction estimates
    how much of the squared correlations is due to chance (Schäfer and Strimmer 2005, Statistical Applications in
    Genetics and Molecular Biology).
    """
    chance = squares = 0.0
    for i in range(W.shape[0]):
        for j in range(i):
            square = W[i, j] * W[i, j] / (W[i, i] * W[j, j])
            chance += (1.0 - square) ** 2 / (n - 1.0)
            squares += square
    return min(1.0, chance / squares) if squares > 0.0 else 1.0


@helper(inline=True)
def learn_from_window(scalars, D):
    """Set the inverse mass to the shrunk variance of a window, and clear the window; returns whether it is usable."""
    kind, n = kind_of(scalars), scalars[COUNT]
    squares = block(kind, D, 2)
    m = D if kind == 1 else D * D
    mean = int(scalars[TAIL]) + TAIL_SIZE + int(scalars[int(scalars[TAIL]) + N_WINDOWS])
    share = n / (n + _PRIOR_DRAWS)
    usable = True
    if kind == 1:
        for i in range(D):
            w = share * scalars[squares + i] / (n - 1.0) + (1.0 - share) * _PRIOR_VARIANCE
            usable = usable and np.isfinite(w)
        if usable:
            for i in range(D):
                w = share * scalars[squares + i] / (n - 1.0) + (1.0 - share) * _PRIOR_VARIANCE
                scalars[HEAD + i] = w
                scalars[HEAD + D + i] = 1.0 / np.sqrt(w)
    else:
        W, L = np.empty((D, D)), np.zeros((D, D))
        for i in range(D):
            for j in range(D):
                W[i, j] = share * 0.5 * (scalars[squares + i * D + j] + scalars[squares + j * D + i]) / (n - 1.0)
        keep = 1.0 - shrinkage_of(W, n)
        for i in range(D):
            for j in range(D):
                W[i, j] *= 1.0 if i == j else keep
            W[i, i] += (1.0 - share) * _PRIOR_VARIANCE
        usable = cholesky(W, L)
        if usable:
            # The root of the mass is the transposed inverse of the root of W, computed column by column.
            for k in range(D):
                for i in range(D):
                    scalars[HEAD + k * D + i] = W[k, i]
                    total = 1.0 if i == k else 0.0
                    for j in range(k, i):
                        total -= L[i, j] * scalars[HEAD + m + k * D + j]
                    scalars[HEAD + m + k * D + i] = total / L[i, i] if i >= k else 0.0
    scalars[squares : squares + m] = 0.0
    scalars[mean : mean + D] = 0.0
    scalars[COUNT] = 0.0
    if usable:
        scalars[N_UPDATES] += 1.0
    return usable


@helper
def adapt(scalars, theta, rate, step_size, target):
    """Count a step of burn-in, and adapt the step size and the mass.

    Parameters
    ----------
    scalars : state
    theta : present state
    rate : acceptance rate of the step
    step_size : step size without its factor
    target : acceptance rate to which the step size adapts; 0: does not adapt
    """
    if scalars[ADAPTED] >= scalars[FREEZE_AT]:
        return
    scalars[ADAPTED] += 1.0
    n, D, tail = scalars[ADAPTED], theta.size, int(scalars[TAIL])
    if target > 0.0:
        average_step(scalars, rate, target)
    n_windows = int(scalars[tail + N_WINDOWS])
    which = int(scalars[tail + WINDOW])
    if which < n_windows and n > scalars[tail + FIRST]:
        collect(scalars, theta)
        if n >= scalars[tail + TAIL_SIZE + which]:
            scalars[tail + WINDOW] += 1.0
            if learn_from_window(scalars, D) and target > 0.0:
                # In units of the draws' spread, this step size is about right for any target.
                begin_averaging(scalars, -0.25 * np.log(1.0 * D) - np.log(step_size))
    if n >= scalars[FREEZE_AT] and target > 0.0:
        scalars[LOG_FACTOR] = scalars[tail + LOG_MEAN]
