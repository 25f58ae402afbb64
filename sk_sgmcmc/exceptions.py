"""Exceptions of the library, besides those of Python and scikit-learn."""


class ChainDivergedError(FloatingPointError, ValueError):
    """A chain became infinite or NaN; the message names the step, the parameter and a step size to try."""


class FitInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a fit between two steps; the estimator is fitted with the draws made so far.

    A plain ``KeyboardInterrupt`` from ``fit`` means, instead, that the estimator is as it was before the call.
    """

    estimator_id = None  # of the fit: one interrupted inside a callback of another fit leaves the outer one unfinished


class WorkersLostError(RuntimeError):
    """All workers of a Dask cluster were lost; the estimator is fitted as of the last copy of its assignments, if any.

    ``resume`` continues from there, on another cluster or without one.
    """

    estimator_id = None  # of the estimator that is fitted so far


class DamagedFileError(ValueError):
    """A saved model is damaged: bytes are missing, or are not those that were written."""
