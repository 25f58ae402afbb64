"""Products with standardised design matrices, dense or sparse, for modes and Hessians of linear models."""

import numpy as np
from scipy import sparse

from .chain import DenseData

LARGEST, SMALLEST = 1e75, 1e-75  # limits of entries whose fourth powers are within float64
FAR = 100.0  # sums over a column lose digits if its mean is more standard deviations than this from 0


def moments(X, weight):
    """Weighted mean and standard deviation of each column of X, dense or sparse, and a mask of those that vary."""
    total = weight.sum()
    if sparse.issparse(X):
        mean = X.T @ weight / total
        # Sum squared deviations of non-zeros and zeros separately; a difference of moments would lose digits.
        rows = np.repeat(weight, np.diff(X.indptr))
        filled = np.bincount(X.indices, rows, X.shape[1])
        apart = np.bincount(X.indices, rows * (X.data - mean[X.indices]) ** 2, X.shape[1])
        square = (apart + (total - filled) * mean**2) / total
        largest = np.zeros(X.shape[1])
        np.maximum.at(largest, X.indices, np.abs(X.data))
    else:
        mean = weight @ X / total
        square = weight @ (X - mean) ** 2 / total
        largest = np.abs(X).max(axis=0, initial=0.0)
    spread = np.sqrt(np.maximum(square, 0.0))
    return mean, spread, spread > 1e-12 * largest


def far_offsets(X, weight):
    """Mean of each column if it is more than `FAR` standard deviations from 0 (as in constant columns), else 0."""
    mean, spread, _ = moments(X, weight)
    offsets = np.zeros(mean.size)
    for j in np.flatnonzero(np.abs(mean) > FAR * spread):
        column = X[:, [j]].toarray()[:, 0] if sparse.issparse(X) else X[:, j]
        offsets[j] = column[0] + weight @ (column - column[0]) / weight.sum()  # exact for a constant column
    return offsets


def less_offsets(X, offsets):
    """Subtract an offset from each column of X. A sparse X remains sparse: columns far from 0 have few zeros."""
    columns = np.flatnonzero(offsets)
    if columns.size == 0:
        return X
    if not sparse.issparse(X):
        return X - offsets
    n = X.shape[0]
    rows = np.arange(0, n * columns.size + 1, columns.size)
    return X - sparse.csr_array((np.tile(offsets[columns], n), np.tile(columns, n), rows), shape=X.shape)


def refuse_extremes(X, names=None, of="X"):
    """Raise an error if a column of X, dense or sparse, has entries beyond `LARGEST`; ``of`` names X in the error."""
    values = X.data if sparse.issparse(X) else X
    if values.size == 0 or max(values.max(), -values.min()) <= LARGEST:
        return
    if sparse.issparse(X):
        at = int(np.argmax(np.abs(values)))
        column, value = int(X.indices[at]), values[at]
    else:
        row, column = np.unravel_index(np.argmax(np.abs(X)), X.shape)
        value = X[row, column]
    name = f" ({str(names[column])!r})" if names is not None else ""
    raise ValueError(
        f"Column {column} of {of}{name} holds {value:.6g}; numbers beyond {LARGEST:g} are too large to compute with in "
        "float64. Is it a code for a missing value? Otherwise give the column in larger units, for example by "
        "sklearn.preprocessing.MaxAbsScaler."
    )


def refuse_tiny(X, names=None):
    """Raise an error if the entries of a column of X, dense or sparse, are all below `SMALLEST` but not all 0."""
    largest = np.zeros(X.shape[1])
    if sparse.issparse(X):
        np.maximum.at(largest, X.indices, np.abs(X.data))
    else:
        largest = np.abs(X).max(axis=0, initial=0.0)
    tiny = np.flatnonzero((largest > 0) & (largest < SMALLEST))
    if tiny.size == 0:
        return
    name = f" ({str(names[tiny[0]])!r})" if names is not None else ""
    raise ValueError(
        f"Column {tiny[0]} of X{name} holds no number beyond {largest[tiny[0]]:.6g}; numbers within {SMALLEST:g} of 0 "
        "are too small to compute with in float64. Give the column in smaller units, for example by "
        "sklearn.preprocessing.MaxAbsScaler."
    )


class DenseRows:
    """Dense standardised design matrix Z (n, width), with a last column of ones for the intercept.

    Coefficients B have shape (n_predictors, width), and residuals R shape (n, n_predictors).
    """

    def __init__(self, X, shift, scale, intercept):
        Z = (X - shift) / scale
        self.Z = np.column_stack([Z, np.ones(len(Z))]) if intercept else Z
        self.width = self.Z.shape[1]

    def predict(self, B):
        """Z B^T."""
        return self.Z @ B.T

    def pull(self, R):
        """R^T Z."""
        return R.T @ self.Z

    def gram(self, c):
        """Z^T diag(c) Z."""
        return (self.Z.T * c) @ self.Z

    def gram_of_one_sign(self, c):
        """`gram` for weights of one sign, as the product of a matrix with its transpose, which is faster."""
        half = self.Z * np.sqrt(np.abs(c))[:, None]
        return np.copysign(1.0, c.sum()) * (half.T @ half)

    def squares(self, C):
        """C^T Z**2, the weighted sums of squares of columns for each column of weights C, (n_columns of C, width)."""
        return C.T @ self.Z**2

    def coupling(self, P, c):
        """Sums over rows i of c_i P_ik P_il z_i z_i^T for columns k, l of P: (n_columns, width, n_columns, width)."""
        weighted = [np.ascontiguousarray((P * (c * z)[:, None]).T) for z in self.Z.T]
        return np.stack([np.stack([a @ (P * z[:, None]) for z in self.Z.T]) for a in weighted]).transpose(2, 0, 3, 1)

    def take(self, index):
        """The rows at ``index``."""
        copy = object.__new__(DenseRows)
        copy.Z, copy.width = self.Z[index], self.width
        return copy


class SparseRows:
    """`DenseRows` for a sparse X; the dense standardised matrix Z is never formed."""

    def __init__(self, X, shift, scale, intercept):
        self.X, self.shift, self.scale, self.intercept = X, shift, scale, intercept
        self.width = X.shape[1] + intercept
        self._T = X.T.tocsr()

    def predict(self, B):
        """Z B^T."""
        b = B[:, : self.scale.size] / self.scale
        eta = self.X @ np.ascontiguousarray(b.T) - b @ self.shift
        return eta + B[:, -1] if self.intercept else eta

    def pull(self, R):
        """R^T Z."""
        total = R.sum(axis=0)
        out = ((self._T @ R).T - np.outer(total, self.shift)) / self.scale
        return np.column_stack([out, total]) if self.intercept else out

    def gram(self, c):
        """Z^T diag(c) Z."""
        weighted = self._T.multiply(c[None]).tocsr()
        G = (weighted @ self.X).toarray()
        column, total = self._T @ c, c.sum()
        both = np.outer(column, self.shift)
        G += total * np.outer(self.shift, self.shift) - both - both.T
        G /= np.outer(self.scale, self.scale)
        if not self.intercept:
            return G
        last = (column - total * self.shift) / self.scale
        return np.block([[G, last[:, None]], [last[None], np.array([[total]])]])

    gram_of_one_sign = gram

    def squares(self, C):
        """C^T Z**2, the weighted sums of squares of columns for each column of weights C, (n_columns of C, width)."""
        square, first, total = self.second_moments(C)
        out = ((square.T - 2.0 * self.shift * first.T) + np.outer(total, self.shift**2)) / self.scale**2
        return np.column_stack([out, total]) if self.intercept else out

    def take(self, index):
        """The rows at ``index``."""
        return SparseRows(self.X[index], self.shift, self.scale, self.intercept)

    def coupling(self, P, c):
        """Sums over rows i of c_i P_ik P_il z_i z_i^T for columns k, l of P: (n_columns, width, n_columns, width)."""
        out = np.empty((P.shape[1], self.width, P.shape[1], self.width))
        for k in range(P.shape[1]):
            for j in range(k + 1):
                out[k, :, j] = self.gram(c * P[:, k] * P[:, j])
                out[j, :, k] = out[k, :, j].T
        return out

    def second_moments(self, C):
        """Weighted sums of squares and of entries of columns of X, both (d, K), for weights C (n, K); and sums of C."""
        return self._T.multiply(self._T) @ C, self._T @ C, C.sum(axis=0)


def packed(X, outputs, weight, params, signal, n_batch, with_replacement):
    """Pack sparse rows into `DenseData`: the (value, column) pairs of all rows are appended to ``params``.

    Each row of ``DenseData.X`` contains the bounds of the pairs of a row. Rows are shuffled here, so that the pairs of
    a minibatch are contiguous in memory.
    """
    order = np.random.default_rng(0).permutation(X.shape[0])
    X = X[order]
    pairs = np.empty(2 * X.nnz)
    pairs[::2], pairs[1::2] = X.data, X.indices
    places = params.size + 2.0 * X.indptr
    rows = np.column_stack([places[:-1], places[1:]])
    params = np.concatenate([params, pairs])
    return DenseData(
        rows, outputs[order], weight[order], params, signal, n_batch, with_replacement, in_random_order=True
    )
