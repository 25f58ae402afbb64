"""How many tokens of each topic kept their topic between two moments of a chain."""

import numpy as np
from numba import types

from ..._jit import I1, I8, OK, kernel, read_only

Z_IN = read_only(types.uint16, 1)

_HALF = np.int64(32)  # bits of a number
_PIECE = 2**20  # tokens, which half a number counts


@kernel(I8(Z_IN, Z_IN, I1, I1))
def count_staying(before, now, had, kept):
    """Add to ``had`` (n_topics,) the tokens of each topic before, and to ``kept`` those that are still there.

    Both are counted in one number, which halves the additions; and since neighbours often have one topic, and additions
    to one number wait for each other, by four numbers in turn.
    """
    counts = np.zeros((4, had.size), np.int64)
    for start in range(0, before.size, _PIECE):
        for i in range(np.uintp(start), np.uintp(min(start + _PIECE, before.size))):
            counts[np.uintp(i) & np.uintp(3), np.uintp(before[i])] += np.int64(1) + (
                np.int64(now[i] == before[i]) << _HALF
            )
        for turn in range(4):
            for k in range(had.size):
                had[k] += counts[turn, k] & ((np.int64(1) << _HALF) - 1)
                kept[k] += counts[turn, k] >> _HALF
                counts[turn, k] = 0
    return OK
