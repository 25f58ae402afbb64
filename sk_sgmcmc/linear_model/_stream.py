"""Earlier rows of a stream: a Gaussian represents them where it is accurate enough; otherwise they are read again."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..chains.checks import SORTED_STREAM
from ..dense.rows import DenseRows, SparseRows
from ._design import Quadratic

# The error of the Gaussian may shift a coefficient by at most `_MAX_SHIFT_SD` posterior standard deviations. Below
# `_FEW_ROWS` rows it may shift it further, since later rows outweigh the error.
_MAX_SHIFT_SD, _FEW_ROWS = 0.5, 200
_MAX_SHIFT_SD_DISCARDED = 1.0  # larger for discarded rows, whose shift can only be estimated
_MAX_NUMBERS_KEPT = 2_000_000  # entries of X that stay in memory


@dataclass(frozen=True)
class Stream:
    """The rows of a stream that are in memory, and the Gaussian that represents the discarded ones.

    Parameters
    ----------
    kept : tuple of (X, y, weight), or None
        Rows in memory, with offsets subtracted: all rows since rows were last discarded. None: there are none.
    prior : Quadratic or None
        Gaussian that represents the model's prior and the discarded rows; None if ``kept`` is.
    discarded : float
        Total weight of the discarded rows. It is 0 if all rows are kept; ``prior`` is then the model's prior.
    reread : tuple of (X, y, weight), or None
        Rows of earlier calls that the last call read again.
    is_misled : bool
        Whether the Gaussian of discarded rows is far from their likelihood.
    """

    kept: tuple | None
    prior: Quadratic | None
    discarded: float
    reread: tuple | None
    is_misled: bool

    @classmethod
    def first(cls, rows, design, keep_rows):
        """The stream that begins with these rows; pass ``keep_rows`` if further rows may follow."""
        return cls(None, None, 0.0, None, False)._with(rows, design.prior, None, False, design, keep_rows)

    def _with(self, rows, prior, reread, is_misled, design, keep_rows=True):
        if keep_rows and _size(rows[0]) <= _MAX_NUMBERS_KEPT:
            return Stream(rows, prior, self.discarded, reread, is_misled)
        return Stream(None, None, self.discarded + rows[2].sum(), reread, is_misled or design.is_bare)

    def read_with(self, *rows):
        """All rows that the last call read: its own, which are passed again, and the earlier ones that it reread."""
        return rows if self.reread is None else _stacked(self.reread, rows)

    def check(self):
        """The check that the Gaussian of the discarded rows is close to their likelihood."""
        if not self.is_misled:
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

    def next(self, new, last, first_design, design_of):
        """The rows that chains read when ``new`` rows arrive, their design, and the stream with the new rows.

        ``last`` is the design of the last call. ``first_design(rows)`` makes a design under the model's prior, and
        ``design_of(rows, prior, reference)`` one under a given prior.
        """
        rows = new if self.kept is None else _stacked(self.kept, new)
        prior = last.summary if self.kept is None else self.prior
        design = design_of(new, last.summary, last.reference)
        rereads = self.kept is not None and self._strays(last, design, rows[1].size)
        if rereads and self.discarded:
            design = design_of(rows, prior, last.reference)
        elif rereads:
            design = first_design(rows)
            prior = design.prior
        is_misled = self.is_misled or (self.discarded > 0 and self._is_misled_by(prior, new, design))
        stream = self._with(rows, prior, self.kept if rereads else None, is_misled, design)
        return rows if rereads else new, design, stream

    def _strays(self, last, design, n_rows):
        """Whether the Gaussian that represents the kept rows is too inaccurate for the next design.

        This Gaussian is the summary of ``last``, a second-order expansion about the last mode. If the kept rows lack a
        class, or if rows come sorted, the expansion is far from their likelihood at the next mode.
        """
        at = design.summary.mean
        X, y, weight = self.kept
        rows = _as_given(X, design)
        residuals, _ = design.likelihood.residuals(y, weight, rows.predict(at.reshape(-1, rows.width)))
        with np.errstate(invalid="ignore"):  # an infinite mean makes ``off`` NaN, which counts as too far
            slope = rows.pull(residuals).ravel() + _prior_gradient(self.prior, at) - _prior_gradient(last.summary, at)
            off = design.off_by(slope)
        return last.is_bare or not off <= _MAX_SHIFT_SD * np.sqrt(max(1.0, _FEW_ROWS / n_rows))

    def _is_misled_by(self, gaussian, new, design):
        """Whether the ``gaussian`` that represents the discarded rows is too inaccurate for the design.

        Its error is due to the change of curvature between the two modes. That depends on no responses, so the new rows
        suffice to estimate it.
        """
        X, _, weight = new
        rows = _as_given(X, design)
        then, now = (rows.predict(mean.reshape(-1, rows.width)) for mean in (gaussian.mean, design.summary.mean))
        with np.errstate(invalid="ignore"):
            slope = rows.pull(design.likelihood.remainder(weight, then, now)).ravel()
            off = design.off_by(slope * (self.discarded / weight.sum()))
        return not off <= _MAX_SHIFT_SD_DISCARDED


class ExactStream(Stream):
    """A stream whose rows all stay in memory, and are all read in each call; for models without a Gaussian summary.

    Of rows that were passed to `fit`, only those of small data stay.
    """

    @classmethod
    def first(cls, rows, design, keep_rows):
        """As `Stream.first`."""
        return cls(rows if keep_rows or _size(rows[0]) <= _MAX_NUMBERS_KEPT else None, None, 0.0, None, False)

    def next(self, new, last, first_design, design_of):
        """As `Stream.next`; the design is that of all rows under the model's prior."""
        if self.kept is None:
            raise ValueError(
                "`partial_fit` needs all earlier rows, but `fit` keeps them only if X has at most "
                f"{_MAX_NUMBERS_KEPT:,} entries. Pass all rows to `fit`, or start with `partial_fit` on a clone of the "
                "estimator, which keeps all of them."
            )
        rows = _stacked(self.kept, new)
        return rows, first_design(rows), ExactStream(rows, None, 0.0, self.kept, False)


def _as_given(X, design):
    """Rows in the coordinates of priors: columns in their given units, and the intercept at the reference."""
    kind = SparseRows if sparse.issparse(X) else DenseRows
    return kind(X, design.reference, np.ones(X.shape[1]), design.fit_intercept)


def _prior_gradient(prior, coef):
    """Gradient of the log density of a `Quadratic` at ``coef``."""
    away = coef - prior.mean
    return -(prior.precision * away if prior.precision.ndim == 1 else prior.precision @ away)


def _size(X):
    """Number of stored entries of X."""
    return X.nnz if sparse.issparse(X) else X.size


def _stacked(earlier, later):
    """Concatenate two tuples (X, y, weight); X is sparse if either is."""
    X = [rows[0] for rows in (earlier, later)]
    X = sparse.vstack(X, format="csr") if any(map(sparse.issparse, X)) else np.concatenate(X)
    return X, *(np.concatenate(parts) for parts in zip(earlier[1:], later[1:], strict=True))
