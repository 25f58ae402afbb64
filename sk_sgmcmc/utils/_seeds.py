"""Seeds and random generators: one seed for each chain, and one stream for the content of each row.

No function here reads or writes NumPy's global random state.
"""

import numbers

import numpy as np
from scipy import sparse

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def mix64(x):
    """Scramble 64-bit integers with the finaliser of SplitMix64, a bijection.

    Parameters
    ----------
    x : ndarray of uint64
        Not modified.

    Returns
    -------
    ndarray of uint64, same shape

    References
    ----------
    G. L. Steele, D. Lea and C. H. Flood (2014), Fast splittable pseudorandom number generators, OOPSLA, figure 7
    (the constants are D. Stafford's variant 13).
    """
    x = np.array(x, dtype=np.uint64)  # a copy: the steps below work in place
    with np.errstate(over="ignore"):
        x ^= x >> np.uint64(30)
        x *= _MIX_1
        x ^= x >> np.uint64(27)
        x *= _MIX_2
        x ^= x >> np.uint64(31)
    return x


def counter_uniforms(keys, counters):
    """Uniform numbers on [0, 1): for each i, number `counters[i]` of the SplitMix64 stream that starts at `keys[i]`.

    A number is computed without the ones before it, so a whole matrix can be drawn at once in which each row has its
    own stream.

    Parameters
    ----------
    keys, counters : ndarray of uint64, broadcastable

    Returns
    -------
    ndarray of float64
    """
    with np.errstate(over="ignore"):
        state = keys + (counters.astype(np.uint64) + np.uint64(1)) * _GOLDEN
    return (mix64(state) >> np.uint64(11)) * 2.0**-53


def seed_sequence(random_state):
    """Turn anything that scikit-learn or NumPy accept as a seed into a `numpy.random.SeedSequence`.

    Parameters
    ----------
    random_state : None, int, RandomState, Generator or SeedSequence
        None: fresh entropy from the operating system. An int or a SeedSequence leads to the same result each time. A
        RandomState or a Generator is advanced, so that a second call returns another result, as in scikit-learn.

    Returns
    -------
    numpy.random.SeedSequence
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, (bool, np.bool_)):
        if random_state < 0:
            raise ValueError(f"random_state must be a non-negative integer, got {random_state}; use for example 0.")
        return np.random.SeedSequence(int(random_state))
    if isinstance(random_state, np.random.SeedSequence):
        # A copy without children, since spawning would change the caller's object.
        return np.random.SeedSequence(
            random_state.entropy, spawn_key=random_state.spawn_key, pool_size=random_state.pool_size
        )
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(0, 2**32, size=4, dtype=np.uint32).tolist())
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(0, 2**32, size=4, dtype=np.uint32).tolist())
    raise TypeError(
        "random_state must be None, an int, a numpy RandomState, Generator or SeedSequence, "
        f"got {random_state!r} of type {type(random_state).__name__}; use for example random_state=0."
    )


def salt64(random_state):
    """A 64-bit number from a seed, which is combined with the keys of rows."""
    return seed_sequence(random_state).generate_state(1, np.uint64)[0]


def row_keys(X):
    r"""A 64-bit hash of the content of each row of a sparse matrix.

    With :math:`m` the bijection `mix64`, the key of a row is

    .. math:: m\Bigl(\sum_{j : x_j \ne 0} m\bigl(m(j + 1) \oplus \mathrm{bits}(x_j)\bigr)\Bigr) \pmod{2^{64}},

    which is a sum, so that the order of stored entries does not matter. Rows that are equal as vectors have the same
    key. It does not depend on the position of the row, other rows, the index type, stored zeros, further empty columns
    on the right, or whether values are integers or floats.

    Parameters
    ----------
    X : sparse matrix or sparse array of shape (n_rows, n_columns)
        Not modified, and not copied if it is in canonical CSR form.

    Returns
    -------
    keys : ndarray of uint64, shape (n_rows,)
    """
    X = sparse.csr_array(X)  # a new container, since checks of its format set flags
    if not X.has_sorted_indices or not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    values = np.ascontiguousarray(X.data, dtype=np.float64)
    entry = mix64(mix64(X.indices.astype(np.uint64) + np.uint64(1)) ^ values.view(np.uint64))
    entry[values == 0] = 0
    # Unsigned integers are summed modulo 2^64, so differences of running sums are exact, also for empty rows.
    running = np.zeros(entry.size + 1, dtype=np.uint64)
    np.cumsum(entry, out=running[1:])
    return mix64(running[X.indptr[1:]] - running[X.indptr[:-1]])


def keys_of_copies(keys, *beside):
    """Keys that differ between rows of equal content: the first copy keeps its key, each other copy gets a new one.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_rows,)
        From `row_keys`.
    *beside : ndarray of shape (n_rows,)
        Sort keys of the rows, the most important first, by which copies are numbered. Rows that are equal in these too
        are exchangeable, so the order of rows changes no mean over them.

    Returns
    -------
    ndarray of uint64, shape (n_rows,)
    """
    order = np.lexsort((*beside[::-1], keys))
    place, in_order = np.arange(keys.size), keys[order]
    is_first = np.append(True, in_order[1:] != in_order[:-1])[: keys.size]
    copy = np.empty(keys.size, dtype=np.uint64)
    copy[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return np.where(copy == 0, keys, mix64(keys ^ mix64(copy)))


def rng_from_key(key, salt=0):
    """A random generator for a row, determined by its key and a salt.

    Parameters
    ----------
    key : int or uint64
        From `row_keys`.
    salt : int or uint64, default=0
        From `salt64`. Different seeds, or different uses of the same row, have different salts.

    Returns
    -------
    numpy.random.Generator
    """
    return np.random.default_rng(np.random.SeedSequence([int(key), int(salt)]))
