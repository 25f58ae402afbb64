"""How many tokens of each topic kept their topic between two moments of a chain."""

from numba import types

from ..._jit import I1, I8, OK, kernel, read_only

Z_IN = read_only(types.uint16, 1)


@kernel(I8(Z_IN, Z_IN, I1, I1))
def count_staying(before, now, had, kept):
    """Add to ``had`` (n_topics,) the tokens of each topic before, and to ``kept`` those that are still there."""
    for i in range(before.size):
        k = before[i]
        had[k] += 1
        kept[k] += now[i] == k
    return OK
