"""Order statistics of rows."""

import math

from .._jit import F1, F2, F2_IN, F8, I8, OK, helper, kernel


@helper
def _pair(values, n, k):
    """The numbers k and k + 1 of the first n values in their order, by Hoare's selection, which moves the values.

    The number k is repeated if it is the last one.
    """
    lo, hi = 0, n - 1
    while lo < hi:
        pivot = values[(lo + hi) // 2]
        i, j = lo, hi
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            hi = j
        elif k >= i:
            lo = i
        else:
            break
    following = values[k + 1] if k + 1 < n else values[k]
    for i in range(k + 2, n):
        following = min(following, values[i])
    return values[k], following


@kernel(I8(F2_IN, I8, I8, F8, F8, F1, F1, F2), fast_sums=True)
def two_pairs(values, low, high, low_score, high_score, below, above, out):
    """The order statistics low, low + 1, high and high + 1 of each row, counted from 0, written to ``out``, (n, 4).

    A number after the last one is the last one. The search covers only the tails: numbers beyond the scores, in
    standard deviations from the mean. If a tail contains too few numbers, it covers all, so scores change no result.

    Parameters
    ----------
    values : (n, m), without NaN
    low_score, high_score : float
    below, above : (m,)
        Scratch.
    """
    n, m = values.shape
    for i in range(n):
        total, square = 0.0, 0.0
        for j in range(m):
            total += values[i, j]
        mean = total / m
        for j in range(m):
            square += (values[i, j] - mean) * (values[i, j] - mean)
        sd = math.sqrt(square / m)
        first, last = mean + low_score * sd, mean + high_score * sd
        n_below, n_above = 0, 0
        for j in range(m):
            value = values[i, j]
            below[n_below] = value
            n_below += 1 if value <= first else 0
            above[n_above] = value
            n_above += 1 if value >= last else 0
        if n_below < min(low + 2, m):
            for j in range(m):
                below[j] = values[i, j]
            n_below = m
        if n_above < m - high:
            for j in range(m):
                above[j] = values[i, j]
            n_above = m
        out[i, 0], out[i, 1] = _pair(below, n_below, low)
        out[i, 2], out[i, 3] = _pair(above, n_above, high - (m - n_above))
    return OK
