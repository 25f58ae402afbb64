"""Rows of a stream: those in memory, and a Gaussian that represents earlier ones."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..chains.checks import SORTED_STREAM
from ..dense.rows import DenseRows, SparseRows
from ._design import Quadratic

_MAX_SHIFT_SD = 1.0  # posterior standard deviations by which the Gaussian may shift a coefficient
_MAX_NUMBERS_KEPT = 25_000_000  # entries of X that `partial_fit` keeps in memory: 200 MB if X is dense
_MAX_NUMBERS_OF_FIT = 2_000_000  # entries of X that `fit` keeps, for models that cannot summarise rows


@dataclass(frozen=True)
class Units:
    """Scale of the prior, and the units of the columns to which it refers.

    Parameters
    ----------
    prior_scale : float
    columns : ndarray of shape (n_features,)
        Units of the columns.
    unseen : ndarray of bool of shape (n_features,)
        Columns without a unit, because they have not varied yet.
    """

    prior_scale: float
    columns: np.ndarray
    unseen: np.ndarray


@dataclass(frozen=True)
class Summary:
    """The Gaussian that represents the model's prior and all rows that are no longer in memory.

    Parameters
    ----------
    gaussian : Quadratic
    reference : ndarray of shape (n_features,)
        The row at which the intercept has its prior.
    units : Units
    weight : float
        Total weight of the rows.
    is_misled : bool
        Whether an earlier Gaussian was far from the likelihood of its rows when these rows came.
    """

    gaussian: Quadratic
    reference: np.ndarray
    units: Units
    weight: float
    is_misled: bool

    def is_off(self, rows, design):
        """Whether the Gaussian is too inaccurate for the ``design`` of further rows.

        Its error is due to the change of curvature between the two modes. That depends on no responses, so the further
        rows suffice to estimate it.
        """
        X, _, weight = rows
        kind = SparseRows if sparse.issparse(X) else DenseRows
        # In the coordinates of priors: columns in their given units, and the intercept at the reference.
        rows = kind(X, design.reference, np.ones(X.shape[1]), design.fit_intercept)
        then, now = (rows.predict(mean.reshape(-1, rows.width)) for mean in (self.gaussian.mean, design.summary.mean))
        with np.errstate(invalid="ignore"):  # an infinite mean makes the shift NaN, which counts as too far
            slope = rows.pull(design.likelihood.remainder(weight, then, now)).ravel()
            shift = design.off_by(slope * (self.weight / weight.sum()))
        return not shift <= _MAX_SHIFT_SD


@dataclass(frozen=True)
class Stream:
    """The rows of a stream.

    Parameters
    ----------
    blocks : tuple of (X, y, weight)
        Rows in memory, with offsets subtracted. They include those of the last call of `partial_fit`.
    summary : Summary or None
        Represents all other rows; None if there are none.
    n_calls : int
        Number of calls of `fit` and `partial_fit`.
    """

    blocks: tuple = ()
    summary: Summary | None = None
    n_calls: int = 0

    @classmethod
    def of_fit(cls, rows, summarise):
        """The stream that begins with the rows of `fit`, which are not kept; ``summarise`` returns their `Summary`."""
        return cls((), summarise(rows), 1)

    def added(self, block, summarise):
        """The stream with another block. If memory is short, ``summarise(rows)`` first replaces the earlier rows."""
        block = copied(block)
        if self.blocks and sum(_size(each[0]) for each in (*self.blocks, block)) > _MAX_NUMBERS_KEPT:
            return type(self)((block,), summarise(self.joined().rows), self.n_calls + 1)
        return type(self)((*self.blocks, block), self.summary, self.n_calls + 1)

    def joined(self):
        """The same stream with all rows in memory in one block."""
        return self if len(self.blocks) < 2 else type(self)((_stacked(self.blocks),), self.summary, self.n_calls)

    @property
    def rows(self):
        """The block of a `joined` stream, as (X, y, weight)."""
        (block,) = self.blocks
        return block

    def check(self, design):
        """The check that the Gaussian is close to the likelihood of its rows, for the ``design`` of the others."""
        summary = self.summary
        if summary is None or not (summary.is_misled or (self.blocks and summary.is_off(self.joined().rows, design))):
            return SORTED_STREAM.passed(0)
        meaning = (
            "Earlier rows of the stream lack a class, or come sorted. They were too many to keep in memory, and the "
            "Gaussian that represents them is far from their likelihood. The draws of this call and of later calls "
            "cannot be trusted."
        )
        remedy = (
            "Shuffle the rows before you cut them into blocks, and start again with partial_fit on a clone. Or call "
            "fit with all rows."
        )
        return SORTED_STREAM.fired(1, meaning, remedy)


class ExactStream(Stream):
    """A stream whose rows all stay in memory, for models without a Gaussian summary.

    Of rows that were passed to `fit`, only those of small data stay.
    """

    @classmethod
    def of_fit(cls, rows, summarise):
        """As `Stream.of_fit`, but small data are kept."""
        return cls((rows,) if _size(rows[0]) <= _MAX_NUMBERS_OF_FIT else (), None, 1)

    def added(self, block, summarise):
        """The stream with another block."""
        if self.n_calls and not self.blocks:
            raise ValueError(
                "`partial_fit` needs all earlier rows, but `fit` keeps them only if X has at most "
                f"{_MAX_NUMBERS_OF_FIT:,} entries. Pass all rows to `fit`, or start with `partial_fit` on a clone of "
                "the estimator, which keeps all of them."
            )
        return ExactStream((*self.blocks, copied(block)), None, self.n_calls + 1)


def copied(rows):
    """Copies of (X, y, weight), for a later run, since the caller may fill the same arrays with other rows."""
    return tuple(each.copy() for each in rows)


def _size(X):
    """Number of stored entries of X."""
    return X.nnz if sparse.issparse(X) else X.size


def _stacked(blocks):
    """Concatenate tuples (X, y, weight); X is sparse if any is."""
    X, *others = zip(*blocks, strict=True)
    X = sparse.vstack(X, format="csr") if any(map(sparse.issparse, X)) else np.concatenate(X)
    return X, *(np.concatenate(parts) for parts in others)
