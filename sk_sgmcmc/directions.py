"""Input of models of directions: rows scaled to unit length, and checks of chains on spheres."""

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
from .utils.corpus import TRANSFORM_TEXTS

_FAST = 3.0  # mean squared velocity above which the step size is too large; defaults on text give 0.98 to 1.28
_SETTLED = 20  # steps after which velocities at a default step size are stationary


def unit_rows(X, normalize):
    """Unit rows as CSR of float64. Rows of other lengths are scaled, or raise an error if not ``normalize``.

    All-zero rows remain all-zero.
    """
    rows = sparse.csr_array(X, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()  # content keys and `has_content` expect no explicit zeros
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
    """Hash of the content of each row, rounded to float32 to ignore rounding errors of the scaling to unit length."""
    rounded = rows.copy()
    rounded.data = rounded.data.astype(np.float32).astype(np.float64)
    return row_keys(rounded)


def has_content(rows):
    """Boolean mask of the CSR rows with a non-zero entry; the others carry no information."""
    return np.diff(rows.indptr) > 0


@dataclass(frozen=True, eq=False)
class RowData:
    """Unit rows in the arrays that kernels read, shared by all chains.

    Parameters
    ----------
    ptr, words, values : ndarray
        CSR arrays: row pointers, columns and entries.
    n_words : int
        Number of columns.
    n_batch : int
        Number of rows in a minibatch.
    """

    ptr: np.ndarray
    words: np.ndarray
    values: np.ndarray
    n_words: int
    n_batch: int

    @classmethod
    def from_csr(cls, X, n_batch):
        """Convert unit rows in CSR."""
        parts = X.indptr.astype(np.int64), X.indices.astype(np.int64), np.ascontiguousarray(X.data, dtype=np.float64)
        return cls(*parts, X.shape[1], n_batch)

    def fingerprint(self):
        """Checksum by which `resume` recognises the data, from entries rounded to float32."""
        rounded = self.values.astype(np.float32)
        return zlib.crc32(self.words, zlib.crc32(self.ptr, zlib.crc32(rounded)))

    @property
    def csr(self):
        """The arrays (ptr, words, values), in the order of the arguments of kernels."""
        return self.ptr, self.words, self.values

    def as_csr(self):
        """Sparse array that shares the memory of these rows."""
        return sparse.csr_array((self.values, self.words, self.ptr), shape=(self.n_docs, self.n_words))

    @property
    def n_docs(self):
        """Number of rows."""
        return self.ptr.size - 1


def mean_square_velocity(velocity):
    """Mean squared velocity per tangent dimension, whose stationary expectation is 1."""
    with np.errstate(over="ignore"):
        return float(np.sum(velocity**2) / (velocity.shape[0] * (velocity.shape[1] - 1)))


def largest_square_velocity(velocity):
    """Largest `mean_square_velocity` without a warning."""
    n = velocity.shape[0] * (velocity.shape[1] - 1)
    # In few dimensions, a correct sampler can exceed _FAST by chance. A chi-square variable exceeds this bound with
    # probability at most exp(-20).
    return max(_FAST, 1.0 + 2.0 * np.sqrt(20.0 / n) + 40.0 / n)


def check_unit_rows(estimator, X, *, reset):
    """Check X and return it as unit rows in CSR of float64, for an estimator with a parameter ``normalize``."""
    refuse_containers(X)
    if holds_texts(X):
        remedy = "sklearn.feature_extraction.text.TfidfVectorizer().fit_transform(X)." if reset else TRANSFORM_TEXTS
        raise ValueError(
            f"X holds texts (strings), but {type(estimator).__name__} reads directions, rows of numbers; pass {remedy}"
        )
    X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
    if X.shape[1] < 2:
        raise ValueError(f"n_features = {X.shape[1]}: directions need at least 2 features.")
    rows = unit_rows(X, estimator.normalize)
    if reset and not has_content(rows).any():
        warn_user("All rows of X are zero and have no direction, so all draws are from the prior; pass other rows.")
    return rows


def rows_with_content(rows):
    """Rows with a non-zero entry, for the mean of a score; raises an error if there are none."""
    full = has_content(rows)
    if not full.any():
        raise ValueError(
            f"X must have a row with a nonzero entry; got {rows.shape[0]} rows that are all zero, which have no "
            "direction."
        )
    return rows if full.all() else rows[full]


def check_movement(draws):
    """List with the check that in each chain the draws (n_chains, n_kept, ...) are not all equal."""
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
    """List with the check that velocities are not too large, since a divergent chain on a sphere stays finite.

    Velocities are also large while a chain with a small step size still moves towards the posterior. The curvature
    distinguishes this case.

    Parameters
    ----------
    chains : list of Chain
        Chains on spheres, with `_is_too_stiff`, ``n_inner``, and velocities in ``state.aux[0]``.
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
