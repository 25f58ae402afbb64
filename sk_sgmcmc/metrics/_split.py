"""Splitting the tokens of documents into an observed and a hidden part."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ..utils import check_counts, rng_from_key, row_keys
from ..utils._seeds import counter_uniforms, mix64, salt64
from ..utils._typing import MatrixLike, Seed

# From this count on, the tokens of an entry are split by one binomial draw instead of coin by coin.
_MANY = 4096
# Coins tossed at once, so that memory does not grow with the corpus.
_BLOCK = 4_000_000


def split_tokens(
    X: MatrixLike, fraction: float = 0.5, random_state: Seed = 0
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Put every token of every document into an observed or a hidden part by the toss of a coin.

    Parameters
    ----------
    X : array-like or sparse of shape (n_samples, n_features)
        Counts, as ``sk_sgmcmc.utils.check_counts`` accepts them. An entry x that is not whole counts as floor(x) tokens
        and one of weight x - floor(x), which goes to one side as a whole.
    fraction : float, default=0.5
        Probability that a token is observed, in [0, 1].
    random_state : None, int, RandomState, Generator or SeedSequence, default=0
        Seed of the coins.

    Returns
    -------
    observed, hidden : scipy.sparse.csr_array of float64, shape (n_samples, n_features)
        They add up to X (exactly for whole numbers, else to rounding) and store no zeros.

    Notes
    -----
    The coins of a row come from a stream keyed by the row's content and the seed. So the split of a document depends
    neither on the other documents nor on their order, and scores of two models on the same document are comparable
    whatever else was passed. (Equal documents are split equally.)

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc.metrics import split_tokens
    >>> X = np.array([[8, 6, 0, 0], [0, 0, 7, 9]])
    >>> observed, hidden = split_tokens(X)
    >>> bool(np.all((observed + hidden).toarray() == X))
    True
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must lie in [0, 1], got {fraction!r}; 0.5 is the usual choice.")
    X = check_counts(X, whom="split_tokens")
    keys = mix64(row_keys(X) ^ salt64(random_state))
    kept = np.empty(X.nnz)
    indptr = X.indptr.astype(np.int64)
    whole = np.floor(X.data)
    coins = np.where(whole < _MANY, np.ceil(X.data), 0.0).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(coins)])
    start = 0
    while start < X.shape[0]:
        stop = int(np.searchsorted(ends[indptr], ends[indptr[start]] + _BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), X.shape[0])
        _toss_coins(kept, X, start, stop, indptr, whole, coins, ends, keys, fraction)
        start = stop
    for pair in np.flatnonzero(whole >= _MANY):
        row = np.searchsorted(indptr, pair, side="right") - 1
        rng = rng_from_key(keys[row], X.indices[pair])
        kept[pair] = rng.binomial(int(whole[pair]), fraction)
        kept[pair] += (X.data[pair] - whole[pair]) * (rng.random() < fraction)
    hidden = X.data - kept
    return _same_pattern(X, kept), _same_pattern(X, hidden)


def _toss_coins(kept, X, start, stop, indptr, whole, coins, ends, keys, fraction):
    """Fill kept with the observed part of the pairs of the rows start:stop, one coin for each token."""
    lo, hi = indptr[start], indptr[stop]
    if lo == hi:
        return
    tokens_of_row = ends[indptr[start + 1 : stop + 1]] - ends[indptr[start:stop]]
    # The position of a token within its row is its position in the row's stream.
    first = np.repeat(ends[indptr[start:stop]], tokens_of_row)
    counters = np.arange(ends[lo], ends[hi]) - first
    heads = counter_uniforms(np.repeat(keys[start:stop], tokens_of_row), counters) < fraction
    weights = np.ones(heads.size)
    some = coins[lo:hi] > 0
    last = (ends[lo + 1 : hi + 1] - ends[lo] - 1)[some]
    leftover = (X.data[lo:hi] - whole[lo:hi])[some]
    weights[last[leftover > 0]] = leftover[leftover > 0]
    kept[lo:hi] = 0.0
    kept[lo:hi][some] = np.add.reduceat(heads * weights, (ends[lo:hi] - ends[lo])[some]) if heads.size else 0.0


def _same_pattern(X, data):
    """A new matrix with these values at the places of X's entries, zeros dropped."""
    out = sparse.csr_array((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
    out.eliminate_zeros()
    return out
