"""Exceptions that this package defines."""


class ChainDivergedError(FloatingPointError, ValueError):
    """A chain became infinite or NaN; the message names the step, the parameter and a step size to try."""


class FitInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a fit between two steps; the estimator is fitted with the draws made so far.

    If ``fit`` raises a plain ``KeyboardInterrupt`` instead, the estimator is unchanged.

    Attributes
    ----------
    estimator_ : estimator
        The estimator that was being fitted. The exception leaves ``model`` undefined in
        ``model = BayesianLDA().fit(X)``; in an interactive session, ``sys.last_value.estimator_`` is the estimator. In
        a pipeline it is the step, and in a search the clone, that was being fitted. Not part of a pickle of the
        exception.
    """

    estimator_ = None

    def __reduce__(self):
        return type(self), self.args


class WorkersLostError(RuntimeError):
    """All workers of a Dask cluster were lost, or the connection to it.

    If ``fit`` had copied the topic assignments before, the estimator is fitted with the draws up to the last copy, and
    ``resume`` continues from there, on another cluster or without one.

    Attributes
    ----------
    estimator_ : estimator or None
        The estimator, fitted up to the last copy of its assignments; None if there is no copy. Not part of a pickle of
        the exception.
    """

    estimator_ = None

    def __reduce__(self):
        return type(self), self.args


class DamagedFileError(ValueError):
    """A file of a saved model is damaged: bytes are missing, or differ from those that were written."""
