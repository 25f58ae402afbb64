"""Exceptions of the library, besides those of Python and scikit-learn."""


class ChainDivergedError(FloatingPointError, ValueError):
    """A chain became infinite or NaN; the message names the step, the parameter and a step size to try."""


class FitInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a fit between two steps; the estimator is fitted with the draws made so far.

    A plain ``KeyboardInterrupt`` from ``fit`` means, instead, that the estimator is as it was before the call.

    Attributes
    ----------
    estimator_ : estimator
        The estimator that was being fitted. In ``model = BayesianLDA().fit(X)``, the exception leaves ``model``
        unbound; in an interactive session, ``sys.last_value.estimator_`` is the estimator. Of a pipeline it is the
        step, and of a search the clone, that was being fitted. Not part of a pickle of the exception.
    """

    estimator_ = None

    def __reduce__(self):
        return type(self), self.args


class WorkersLostError(RuntimeError):
    """All workers of a Dask cluster were lost; the estimator is fitted as of the last copy of its assignments, if any.

    ``resume`` continues from there, on another cluster or without one.

    Attributes
    ----------
    estimator_ : estimator or None
        The estimator, fitted so far; None if nothing could be kept. Not part of a pickle of the exception.
    """

    estimator_ = None

    def __reduce__(self):
        return type(self), self.args


class DamagedFileError(ValueError):
    """A saved model is damaged: bytes are missing, or are not those that were written."""
