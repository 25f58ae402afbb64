"""What the library raises beside the exceptions of Python and scikit-learn."""


class ChainDivergedError(FloatingPointError, ValueError):
    """A chain left the finite numbers; the message names the step, the parameter and a step size to try."""


class FitInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped a fit between two steps; the estimator is fitted with the draws made so far.

    A plain ``KeyboardInterrupt`` out of ``fit`` means instead that the estimator is as it was before the call.
    """

    estimator_id = None  # whose fit it was: one inside a callback of another fit leaves that other one unfinished


class DamagedFileError(ValueError):
    """A saved model is damaged: bytes are missing, or are not those that were written."""
