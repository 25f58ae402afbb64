"""Private or version-dependent imports from scikit-learn 1.6 to 1.9, its base classes, and typed or stricter wrappers.

When a scikit-learn release moves one of these names, this is the only file to change. Other public and stable names
(`Bunch`, `check_array`, `clone`, ...) are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _get_feature_names, _num_samples, check_array, check_is_fitted
from sklearn.utils.validation import validate_data as _validate_data

try:  # private so far; a later release may make it public
    from sklearn.utils.validation import _check_sample_weight
except ImportError:  # pragma: no cover - no known release
    from sklearn.utils.validation import check_sample_weight as _check_sample_weight

from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils._param_validation import validate_params as _validate_params
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metaestimators import available_if as _available_if

try:  # scikit-learn >= 1.9 has callbacks; they are experimental there
    from sklearn import callback
except ImportError:
    callback = None

from ._containers import refuse_containers
from ._numbers import real_array
from ._sparse import well_formed
from ._typing import AnyArray, Function
from ._warnings import warn_of_index_column

MYPY = False  # mypy takes this name for True
if MYPY:
    # scikit-learn has no types. With a base class of unknown type, mypy would accept any argument of a constructor.
    class BaseEstimator:
        def __getattr__(self, name: str) -> Any: ...
        def set_params(self, **params: Any) -> Self: ...

    class CallbackSupport: ...

    class ClassifierMixin: ...

    class ClassNamePrefixFeaturesOutMixin:
        def get_feature_names_out(self, input_features: Any = None) -> AnyArray: ...

    class ClusterMixin: ...

    class DensityMixin: ...

    class RegressorMixin:
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class TransformerMixin: ...

else:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        ClusterMixin,
        DensityMixin,
        RegressorMixin,
        TransformerMixin,
    )

    if callback is None:

        class CallbackSupport:
            """Empty base class for scikit-learn without callbacks."""

    else:
        from sklearn.callback import CallbackSupportMixin as CallbackSupport

# Standard deviation of a prior, whose inverse square must not overflow.
SCALE_CONSTRAINT = [Interval(Real, 1e-100, None, closed="left")]

__all__ = [
    "SCALE_CONSTRAINT",
    "BaseEstimator",
    "CallbackSupport",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "ClusterMixin",
    "DensityMixin",
    "Interval",
    "InvalidParameterError",
    "RegressorMixin",
    "StrOptions",
    "TransformerMixin",
    "_num_samples",
    "available_if",
    "callback",
    "check_is_fitted",
    "check_sample_weight",
    "output_container",
    "validate_data",
    "validate_params",
    "with_callbacks",
]


def available_if(check: Callable[[Any], bool]) -> Callable[[Function], Function]:
    """Decorate a method that only some estimators have, with scikit-learn's `available_if`.

    The annotation keeps the signature of the method for type checkers.
    """
    return _available_if(check)


def validate_params(
    constraints: dict[str, Any], *, prefer_skip_nested_validation: bool
) -> Callable[[Function], Function]:
    """Decorate a function to check its arguments, with scikit-learn's `validate_params`.

    The annotation keeps the signature of the function for type checkers.
    """
    return _validate_params(constraints, prefer_skip_nested_validation=prefer_skip_nested_validation)


def with_callbacks(fit):
    """Decorate ``fit`` so that scikit-learn's callbacks, if any are set, are torn down after it.

    During ``fit``, its arguments are in the attribute ``_given_to_fit``, for the callbacks.
    """
    if callback is None:
        return fit

    @callback.with_callbacks
    def managed(self, *args, **kwargs):
        self._given_to_fit = signature(fit).bind(self, *args, **kwargs).arguments
        try:
            return fit(self, *args, **kwargs)
        finally:
            self.__dict__.pop("_given_to_fit", None)

    @wraps(fit)
    def watched(self, *args, **kwargs):
        is_watched = hasattr(self, "_skl_callbacks") or hasattr(self, "_parent_callback_ctx")
        outermost = not hasattr(self, "_given_to_fit")
        return (managed if is_watched and outermost else fit)(self, *args, **kwargs)

    return watched


def validate_data(estimator, X="no_validation", y="no_validation", **params):
    """Check the data of an estimator with scikit-learn's `validate_data`, after our checks of their type and format."""
    refuse_containers(y, "y")
    # scikit-learn sums all entries to find infinite ones, and NumPy warns if two of them cancel.
    with np.errstate(over="ignore", invalid="ignore"):
        if not params.get("reset", True) and _has_given_names(estimator, X):
            checks = {name: value for name, value in params.items() if name not in ("reset", "skip_check_array")}
            skip = params.get("skip_check_array", False)
            return X if skip else check_array(X, input_name="X", estimator=estimator, **checks)
        X = well_formed(X)
        if params.get("reset", True) and hasattr(X, "columns"):
            warn_of_index_column(X.columns)
        return _validate_data(estimator, X, y, **params)


def _has_given_names(estimator, X):
    """Whether the columns of X have the names passed as ``fit(feature_names=)``; raises if they have other names.

    scikit-learn only knows the column names of the X in ``fit``, and would warn that the estimator was fitted without
    names.
    """
    given = getattr(estimator, "_feature_names", None)
    if given is None or hasattr(estimator, "feature_names_in_"):
        return False
    names = _get_feature_names(X)
    if names is None or len(names) != len(given):
        return False
    other = np.flatnonzero(names != given)
    if other.size:
        j = other[0]
        raise ValueError(
            f"The columns of X must have the names given as feature_names=, in the same order; column {j} is "
            f"{names[j]!r}, not {given[j]!r}. Take X[feature_names], or its values if it has them in another spelling."
        )
    return True


def check_sample_weight(sample_weight, X, **params):
    """Check weights with scikit-learn's function, after a check that they are numbers, whose error names them."""
    refuse_containers(sample_weight, "sample_weight")
    if not (sample_weight is None or isinstance(sample_weight, Real)):
        sample_weight = real_array("sample_weight", sample_weight)
    return _check_sample_weight(sample_weight, X, **params)


def output_container(estimator, method):
    """Container of the result of a method: "default", or "pandas" or "polars" if ``set_output`` says so.

    Only ``transform`` has another container than "default".
    """
    return _get_output_config(method, estimator)["dense"] if method == "transform" else "default"
