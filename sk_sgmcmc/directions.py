"""Rows that are directions: scaled to unit length, in the form that kernels of models on the sphere read."""

import zlib
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .chains.checks import NEVER_MOVED, TOO_FAST
from .utils import row_keys
from .utils._containers import refuse_containers
from .utils._numbers import holds_texts
from .utils._sklearn import validate_data
from .utils._warnings import warn_user

_FAST = 3.0  # mean squared velocity above which a step is too long; on text, defaults lie between 0.98 and 1.28
_SETTLED = 20  # steps after which a chain at a default step size has reached its temperature


def unit_rows(X, normalize):
    """Rows of unit length as CSR of float64; all-zero rows stay; rejects other lengths unless ``normalize``."""
    rows = sparse.csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()  # in the copy: content keys ignore them
    if normalize and rows.nnz and not 1e-100 < abs(rows).data.min() <= abs(rows).data.max() < 1e100:
        largest = abs(rows).max(axis=1).toarray().ravel()  # squares would overflow or underflow
        rows.data /= np.repeat(largest, np.diff(rows.indptr))
        rows.eliminate_zeros()
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    if not normalize and np.any(np.abs(lengths - 1.0) > 1e-4):
        worst = int(np.argmax(np.abs(lengths - 1.0)))
        raise ValueError(
            f"normalize=False needs unit rows, but row {worst} of X has length {lengths[worst]:.6g}; "
            "use normalize=True or sklearn.preprocessing.normalize."
        )
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    rows.data *= np.repeat(scale, np.diff(rows.indptr))
    return rows


def content_keys(rows):
    """A key for each row's content that ignores the last digits, in which scaling to unit length may differ."""
    rounded = rows.copy()
    rounded.data = rounded.data.astype(np.float32).astype(np.float64)
    return row_keys(rounded)


def has_content(rows):
    """Which CSR rows are not all-zero; the others carry no information."""
    return np.diff(rows.indptr) > 0


@dataclass(frozen=True, eq=False)
class RowData:
    """Unit rows in the form that kernels read, shared by all chains.

    Parameters
    ----------
    ptr, words, values : ndarray
        CSR.
    n_words : int
    n_batch : int
        Rows of a minibatch.
    """

    ptr: np.ndarray
    words: np.ndarray
    values: np.ndarray
    n_words: int
    n_batch: int

    @classmethod
    def from_csr(cls, X, n_batch):
        """From unit rows."""
        parts = X.indptr.astype(np.int64), X.indices.astype(np.int64), np.ascontiguousarray(X.data, dtype=np.float64)
        return cls(*parts, X.shape[1], n_batch)

    def fingerprint(self):
        """A number by which to recognise the data; it ignores the last digits."""
        rounded = self.values.astype(np.float32)
        return zlib.crc32(self.words, zlib.crc32(self.ptr, zlib.crc32(rounded)))

    @property
    def csr(self):
        """The three arrays, in the kernels' order."""
        return self.ptr, self.words, self.values

    def as_csr(self):
        """The rows as a sparse array that shares the memory."""
        return sparse.csr_array((self.values, self.words, self.ptr), shape=(self.n_docs, self.n_words))

    @property
    def n_docs(self):
        """Number of rows."""
        return self.ptr.size - 1


def mean_square_velocity(velocity):
    """Mean squared velocity on spheres, 1 at the right temperature."""
    with np.errstate(over="ignore"):
        return float(np.sum(velocity**2) / (velocity.shape[0] * (velocity.shape[1] - 1)))


def largest_square_velocity(velocity):
    """The largest `mean_square_velocity` that is no reason to warn."""
    n = velocity.shape[0] * (velocity.shape[1] - 1)
    # In few dimensions chance alone may exceed _FAST: take the chi-square quantile of probability exp(-20).
    return max(_FAST, 1.0 + 2.0 * np.sqrt(20.0 / n) + 40.0 / n)


def check_unit_rows(estimator, X, *, reset):
    """Unit rows of X as CSR of float64, for an estimator with a parameter ``normalize``."""
    refuse_containers(X)
    if holds_texts(X):
        raise ValueError(
            f"X holds texts (strings), but {type(estimator).__name__} reads directions, rows of numbers; pass "
            "sklearn.feature_extraction.text.TfidfVectorizer().fit_transform(X)."
        )
    X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
    if X.shape[1] < 2:
        raise ValueError(f"n_features = {X.shape[1]}: directions need at least 2 features.")
    rows = unit_rows(X, estimator.normalize)
    if reset and not has_content(rows).any():
        warn_user("All rows of X are zero and have no direction, so all draws are from the prior; pass other rows.")
    return rows


def rows_with_content(rows):
    """Unit rows that are not all-zero, for a mean over them; raises if there are none."""
    full = has_content(rows)
    if not full.any():
        raise ValueError(
            f"X has {rows.shape[0]} rows that are all zero, which have no direction, and no others; a score needs "
            "at least one row with a nonzero entry."
        )
    return rows if full.all() else rows[full]


def check_movement(draws):
    """The check that the draws of no chain, (n_chains, n_kept, ...), are all alike; in a list."""
    n_kept = draws.shape[1]
    if n_kept < 2:
        return []
    n_still = np.count_nonzero(np.all(draws == draws[:, :1], axis=tuple(range(1, draws.ndim))))
    if not n_still:
        return [NEVER_MOVED.passed(0)]
    meaning = (
        f"The directions never moved: all {n_kept} draws of a chain are alike, as every proposal was rejected "
        "(acceptance_rate_)."
    )
    return [NEVER_MOVED.fired(n_still, meaning, 'Use a smaller step_size, or "auto".')]


def check_velocities(chains):
    """The check that velocities are not too large, in a list: on a sphere, nothing becomes infinite.

    Chains that are still falling towards the posterior, by short steps, are fast too; the curvature separates them.

    Parameters
    ----------
    chains : list of Chain
        Of a model on spheres: with `_is_too_stiff`, ``n_inner``, and velocities in ``state.aux[0]``.
    """
    if not chains[0].sampler._keeps_velocity or chains[0].step < _SETTLED:
        return []
    chain = max(chains, key=lambda chain: mean_square_velocity(chain.state.aux[0]))
    square = mean_square_velocity(chain.state.aux[0])
    limit = largest_square_velocity(chain.state.aux[0])
    if square <= limit:
        return [TOO_FAST.passed(square, limit)]
    if not chain._is_too_stiff():
        return []
    start = (chain.step - 1) * chain.n_inner
    h = chain.sampler._hyper(start, start + 1)[0, 0]
    instead = f"sampler__step_size={h / 10:.2g}"
    if not isinstance(chain.sampler.step_size, str):
        instead = f'sampler__step_size="auto" or {instead}'
    meaning = (
        f"The step size of {h:.3g} is too long: at the end of the fit the mean squared velocity of "
        f"{type(chain.sampler).__name__} is {square:.3g} instead of 1, so draws are spread too widely."
    )
    return [TOO_FAST.fired(square, meaning, f"Set {instead} with set_params.", limit)]
