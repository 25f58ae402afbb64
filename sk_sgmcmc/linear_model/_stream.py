"""Earlier rows of a stream: a Gaussian stands for them where it is near enough, else they are read again."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..chains.checks import SORTED_STREAM
from ..dense.rows import DenseRows, SparseRows
from ._design import Quadratic

# Posterior standard deviations by which the Gaussian may move a coefficient; more while rows are fewer than `_FEW`,
# since later ones outweigh what it adds.
_OFF, _FEW = 0.5, 200
_FAR_OFF = 1.0  # the same where rows are gone, which is only estimated
_MOST_HELD = 2_000_000  # numbers in the rows that are held


@dataclass(frozen=True)
class Stream:
    """What is known of the rows of a stream.

    Parameters
    ----------
    held : tuple of (X, y, weight), or None
        Rows, less offsets, that can be read again: those since the last time when they were too many to hold.
    prior : Quadratic or None
        What was known before the rows held.
    gone : float
        Weight of the rows before these: 0 if all rows are held, and ``prior`` is that of the model.
    joined : tuple of (X, y, weight), or None
        Rows of earlier calls that the last call has read again.
    is_misled : bool
        Whether a Gaussian stands for rows gone that is far from what they said.
    """

    held: tuple | None
    prior: Quadratic | None
    gone: float
    joined: tuple | None
    is_misled: bool

    @classmethod
    def begun(cls, rows, design, holds):
        """The stream that begins with these rows, which are kept if it ``holds`` any."""
        return cls(None, None, 0.0, None, False)._with(rows, design.prior, None, False, design, holds)

    @classmethod
    def of_gone_rows(cls, weight):
        """The stream of rows of which only the Gaussian is left."""
        return cls(None, None, float(weight), None, False)

    def _with(self, held, prior, joined, is_misled, design, holds=True):
        if holds and _size(held[0]) <= _MOST_HELD:
            return Stream(held, prior, self.gone, joined, is_misled)
        return Stream(None, None, self.gone + held[2].sum(), joined, is_misled or design.is_bare)

    def read_with(self, *rows):
        """What the last call has read, given its rows again."""
        return rows if self.joined is None else _stacked(self.joined, rows)

    def check(self):
        """The check that draws do not follow from a Gaussian that misrepresents earlier rows."""
        if not self.is_misled:
            return SORTED_STREAM.passed(0)
        meaning = (
            "The stream's earlier rows lack a class, or come sorted: the Gaussian that stands for them, since they "
            "were too many to keep, is far from what they said. These draws, and those of later calls, cannot be "
            "trusted."
        )
        remedy = (
            "Shuffle the rows before you cut them into blocks, and start again with partial_fit on a clone. Or call "
            "fit with all rows."
        )
        return SORTED_STREAM.fired(1, meaning, remedy)

    def next(self, new, last, first_design, design_of):
        """What chains read when ``new`` rows arrive, the design for it, and the stream with these rows.

        ``last`` is the design of the last call; ``first_design(rows)`` and ``design_of(rows, prior, reference)`` make
        others.
        """
        held = new if self.held is None else _stacked(self.held, new)
        prior = last.summary if self.held is None else self.prior
        design = design_of(new, last.summary, last.reference)
        joins = self.held is not None and self._strays(last, design, held[1].size)
        if joins and self.gone:
            design = design_of(held, prior, last.reference)
        elif joins:
            design = first_design(held)
            prior = design.prior
        is_misled = self.is_misled or (self.gone > 0 and self._is_misled_by(prior, new, design))
        stream = self._with(held, prior, self.held if joins else None, is_misled, design)
        return held if joins else new, design, stream

    def _strays(self, last, design, n_rows):
        """Whether the Gaussian that stands for the rows held, the summary of ``last``, misleads the next design.

        It is the second order about the last mode. If these rows lacked a class, or rows come sorted, the next mode
        lies where that is far from what they say.
        """
        at = design.summary.mean
        X, y, weight = self.held
        rows = _as_given(X, design)
        residuals, _ = design.likelihood.residuals(y, weight, rows.predict(at.reshape(-1, rows.width)))
        with np.errstate(invalid="ignore"):  # an infinite mean strays, too
            slope = rows.pull(residuals).ravel() - _pull(self.prior, at) + _pull(last.summary, at)
            off = design.off_by(slope)
        return last.is_bare or not off <= _OFF * np.sqrt(max(1.0, _FEW / n_rows))

    def _is_misled_by(self, law, new, design):
        """Whether the Gaussian ``law``, which stands for the rows gone, misleads the design.

        How far the curvature changes between the two modes depends on no response, so that the new rows tell it.
        """
        X, _, weight = new
        rows = _as_given(X, design)
        then, now = (rows.predict(mean.reshape(-1, rows.width)) for mean in (law.mean, design.summary.mean))
        with np.errstate(invalid="ignore"):
            slope = rows.pull(design.likelihood.remainder(weight, then, now)).ravel()
            off = design.off_by(slope * (self.gone / weight.sum()))
        return not off <= _FAR_OFF


def _as_given(X, design):
    """Rows whose coefficients are those of the columns as given, and whose intercept is at the reference."""
    kind = SparseRows if sparse.issparse(X) else DenseRows
    return kind(X, design.reference, np.ones(X.shape[1]), design.fit_intercept)


def _pull(law, at):
    """The precision of a `Quadratic` times the distance of ``at`` from its mean."""
    away = at - law.mean
    return law.precision * away if law.precision.ndim == 1 else law.precision @ away


def _size(X):
    """How many numbers X holds."""
    return X.nnz if sparse.issparse(X) else X.size


def _stacked(earlier, later):
    """The rows of both, sparse if either is."""
    X = [rows[0] for rows in (earlier, later)]
    X = sparse.vstack(X, format="csr") if any(map(sparse.issparse, X)) else np.concatenate(X)
    return X, *(np.concatenate(parts) for parts in zip(earlier[1:], later[1:], strict=True))
