"""Conversions and checks of numbers that users pass: integers, numbers of threads, arrays and interval levels."""

from contextlib import contextmanager
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs

from ._warnings import warn_user

MAX_JOBS = 1024
_UNIT = 2.0**-20


def plain_integer(value):
    """Convert a NumPy integer to a Python int, which does not overflow; return anything else unchanged."""
    return int(value) if isinstance(value, np.integer) else value


@contextmanager
def plain_integers(estimator):
    """Context in which the NumPy integers and booleans for whole numbers among an estimator's parameters are ints.

    The user's objects are restored afterwards.
    """
    given = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if isinstance(value, (bool, np.bool_, np.integer)) and is_narrow(estimator, name, value)
    }
    vars(estimator).update({name: int(value) for name, value in given.items()})
    try:
        yield
    finally:
        vars(estimator).update(given)


def is_narrow(estimator, name, value):
    """Whether a parameter is a NumPy integer, or a boolean where a whole number is expected."""
    if isinstance(value, np.integer):
        return True
    asked = estimator._parameter_constraints.get(name, ())
    if "boolean" in asked:
        return False
    return isinstance(value, (bool, np.bool_)) and any(getattr(each, "type", None) is Integral for each in asked)


def is_count(value):
    """Whether a value is a whole number of at least 1; True, which equals 1 in Python, is not."""
    return isinstance(value, Integral) and not isinstance(value, bool) and value > 0


def checked_count(name, value):
    """A whole number of at least 1, or an error, as an int: unsigned ones of NumPy would turn others into floats."""
    if not is_count(value):
        raise ValueError(f"{name}={value!r} must be a whole number of at least 1.")
    return int(value)


def real_array(name, value):
    """A number or array-like of numbers as a new float64 array; the error for anything else names the parameter."""
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r} must be a number or an array of numbers.") from None


def summable(values, least=_UNIT):
    """Values rounded to multiples of 2^-20, and at least ``least``, so that sums of them are exact in any order.

    Counts then do not depend on the division of rows between threads.
    """
    return np.maximum(np.round(values / _UNIT) * _UNIT, least)


def check_n_jobs(n_jobs):
    """The number of threads or processes for ``n_jobs``; raises for 0, and for more than `MAX_JOBS`."""
    if isinstance(n_jobs, np.bool_):
        n_jobs = bool(n_jobs)  # a whole number in Python
    if n_jobs is not None and not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs={n_jobs!r} must be None or a whole number, such as 2, or -1 for all processors.")
    n_jobs = plain_integer(n_jobs)
    if n_jobs is not None and (n_jobs == 0 or n_jobs > MAX_JOBS):
        raise ValueError(
            f"n_jobs={n_jobs} must be None, a number from 1 to {MAX_JOBS}, or below 0: -1 uses all processors, -2 all "
            "but one."
        )
    return effective_n_jobs(n_jobs)


def interval_tails(interval):
    """The two probabilities at the ends of a central credible interval, a list; for example [0.05, 0.95] for 0.9."""
    if not isinstance(interval, Real) and np.ndim(interval) > 0:
        raise TypeError(f"interval must be a number between 0 and 1, such as 0.9, not a {type(interval).__name__}.")
    if not isinstance(interval, Real) or not 0 < interval < 1:
        raise ValueError(f"interval={interval!r} must lie between 0 and 1; 0.9 is a common choice.")
    return [(1 - interval) / 2, (1 + interval) / 2]


def interval_ends(draws, tails, axis=0):
    """The two ends of a central credible interval, stacked along the first axis; warns if there are too few draws.

    A new draw lies below the k-th smallest of K other draws with probability k / (K + 1), which "weibull" quantiles
    use. An interval therefore has its exact mass if there are enough draws, for example 19 for 90%. NumPy's default
    quantiles count K - 1 gaps instead: 90% intervals of 100 draws would cover 88.2%.
    """
    warn_of_few_draws(np.shape(draws)[axis], tails)
    return np.quantile(draws, tails, axis=axis, method="weibull")


def warn_of_few_draws(n, tails):
    """Warn if an interval with these tails needs more than ``n`` draws."""
    mass = tails[1] - tails[0]
    needed = int(np.ceil(2 / (1 - mass) - 1e-9)) - 1
    if n < needed:
        held = f"covers {(n - 1) / (n + 1):.0%} at most" if n > 1 else "has no width"
        warn_user(
            f"An interval of {mass:.3g} needs at least {needed} draws, but there {'are' if n > 1 else 'is'} {n}, so it "
            f"{held}. Keep more draws: fit with a larger n_iter or a smaller thin; partial_fit keeps few by design."
        )


def holds_texts(X):
    """Whether data are texts that are not numbers, or a table with a column of such texts; reads only first entries."""
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        texts = [name for name, dtype in zip(X.columns, X.dtypes, strict=True) if str(dtype).lower() in _TEXT_TYPES]
        return any(_is_text(next(iter(X[name]), None)) for name in texts)
    if isinstance(X, (list, tuple)):
        first = X[0] if len(X) else None
        first = first[0] if isinstance(first, (list, tuple)) and len(first) else first
        return _is_text(first)
    dtype = getattr(X, "dtype", None)
    if getattr(dtype, "kind", "") not in "OUS" and str(dtype).lower() not in _TEXT_TYPES:
        return False
    entries = np.asarray(X, dtype=object).ravel()
    return entries.size > 0 and _is_text(entries[0])


_TEXT_TYPES = {"object", "str", "string", "category", "categorical", "utf8"}


def _is_text(value):
    """Whether a value is a string that does not represent a number."""
    if not isinstance(value, str):
        return False
    try:
        float(value)
    except ValueError:
        return True
    return False


def indices(name, given, n):
    """Convert ``given`` to an array of indices of ``n`` topics or clusters; raises if they are not valid."""
    given = np.atleast_1d(np.asarray(given))
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= n:
        raise ValueError(f"{name}={given.tolist()} must be indices of {name}, from 0 to {n - 1}.")
    return given
