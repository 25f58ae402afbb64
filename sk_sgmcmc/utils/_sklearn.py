"""Every private or version-dependent scikit-learn import of this package, for scikit-learn 1.6 to 1.9.

When a scikit-learn release moves one of these names, this is the only file to change. Public and stable names
(`BaseEstimator`, `Bunch`, `check_array`, ...) are imported where they are used.
"""

from numbers import Real

import numpy as np
from sklearn.utils.validation import check_is_fitted
from sklearn.utils.validation import validate_data as _validate_data

try:  # private so far; a public name may appear, the private one may go
    from sklearn.utils.validation import _check_sample_weight
except ImportError:  # pragma: no cover - no known release
    from sklearn.utils.validation import check_sample_weight as _check_sample_weight

from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions, validate_params

try:  # scikit-learn >= 1.9 has callbacks; they are experimental there
    from sklearn import callback
except ImportError:
    callback = None

from ._numbers import real_array
from ._sparse import well_formed

# Standard deviation of a prior: its inverse square must be a number.
SCALE_CONSTRAINT = [Interval(Real, 1e-100, None, closed="left")]

__all__ = [
    "SCALE_CONSTRAINT",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "callback",
    "check_is_fitted",
    "check_sample_weight",
    "validate_data",
    "validate_params",
]


def validate_data(estimator, X="no_validation", *args, **params):
    """scikit-learn's check of an estimator's data, after our check of sparse matrices."""
    # Its search for infinite entries adds them up, and NumPy warns if two of them cancel.
    with np.errstate(over="ignore", invalid="ignore"):
        return _validate_data(estimator, well_formed(X), *args, **params)


def check_sample_weight(sample_weight, X, **params):
    """scikit-learn's check of weights, after a check with a name that they are numbers."""
    if not (sample_weight is None or isinstance(sample_weight, Real)):
        sample_weight = real_array("sample_weight", sample_weight)
    return _check_sample_weight(sample_weight, X, **params)
