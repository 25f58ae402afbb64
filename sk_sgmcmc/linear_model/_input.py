"""Input of linear models: row weights, and offsets of columns that lie far from 0."""

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from ..dense.rows import FAR, LARGEST, SMALLEST, far_offsets, moments
from ..utils._sklearn import check_sample_weight
from ..utils._warnings import warn_user

# Above this class weight, the intervals of a class are less than 0.7 times as wide as its rows justify.
_MUCH = 2.0
_UNLIKE = 100.0  # ratio of the columns' standard deviations from which one prior scale does not suit all columns


def row_weights(X, codes, classes, y, class_weight, sample_weight):
    """Weights of rows: ``sample_weight`` times ``class_weight``; warns if class weights make intervals too narrow."""
    weight = check_sample_weight(sample_weight, X, dtype=np.float64).copy()
    if weight.min() < 0:
        raise ValueError(f"sample_weight must not be negative; its smallest entry is {weight.min():g}.")
    if weight.max() > LARGEST:
        raise ValueError(
            f"sample_weight holds {weight.max():.6g}, too large to compute with in float64. Weights count rows; divide "
            "them by their mean."
        )
    if 0 < weight.max() < SMALLEST:
        raise ValueError(
            f"sample_weight holds no number beyond {weight.max():.6g}, too small to compute with in float64. Weights "
            "count rows; divide them by their mean."
        )
    if class_weight is not None:
        each = compute_class_weight(class_weight, classes=classes, y=y)
        if not np.all(np.isfinite(each)) or each.min() < 0:
            raise ValueError(f"class_weight={class_weight!r} must give finite weights that are not negative.")
        weight *= each[codes]
        _warn_of_repeated_rows(codes, classes, class_weight, each)
    if not weight.any():
        raise ValueError("sample_weight times class_weight is zero for all rows; at least one must be positive.")
    return weight


def _warn_of_repeated_rows(codes, classes, class_weight, each):
    """Warn if the posterior counts the rows of a class more than twice, so that its intervals are too narrow."""
    n_rows = np.bincount(codes, minlength=len(classes))
    worst = int(np.argmax(np.where(n_rows > 0, each, 0.0)))
    if n_rows[worst] == 0 or each[worst] <= _MUCH:
        return
    warn_user(
        f"class_weight={class_weight!r} counts each of the {n_rows[worst]} rows of class {classes.tolist()[worst]!r} "
        f"{each[worst]:.3g} times, as if there were {each[worst] * n_rows[worst]:.4g}: intervals are up to "
        f"{np.sqrt(each[worst]):.3g} times too narrow, and probabilities are not those of the classes in the "
        "population. To trade errors of one class for those of another, fit with class_weight=None and move the "
        "threshold, for example with sklearn.model_selection.FixedThresholdClassifier."
    )


def row_offsets(X, weight, fit_intercept):
    """Offsets to subtract from columns to avoid cancellation; zeros, perhaps with a warning, without an intercept."""
    if fit_intercept:
        return far_offsets(X, weight)
    mean, spread, varies = moments(X, weight)
    distance = np.where(varies, np.abs(mean) / np.where(varies, spread, 1.0), 0.0)
    worst = int(np.argmax(distance))
    if distance[worst] > FAR:
        warn_user(
            f"Column {worst} of X has the mean {mean[worst]:.6g} and the standard deviation {spread[worst]:.3g}. "
            "Without an intercept its variation can have hardly any effect: set fit_intercept=True, or subtract the "
            "mean."
        )
    return np.zeros(X.shape[1])


def warn_of_unlike_spreads(X, weight, prior_scale, names):
    """Warn if the spreads of the columns differ too much for one prior scale in the units of the columns as given."""
    _, spread, varies = moments(X, weight)
    if not varies.any():
        return
    columns = np.flatnonzero(varies)
    least, most = columns[np.argmin(spread[columns])], columns[np.argmax(spread[columns])]
    if spread[most] < _UNLIKE * spread[least]:
        return
    shown = [f"{j}" if names is None else f"{j} ({str(names[j])!r})" for j in (most, least)]
    warn_user(
        f"Columns {shown[0]} and {shown[1]} of X have the standard deviations {spread[most]:.3g} and "
        f"{spread[least]:.3g}. prior_scale={prior_scale:g} is the scale of the prior of each coefficient in the units "
        "of the columns as given, so it shrinks effects of narrow columns far more than those of wide ones. Set "
        'prior_scale="auto", which acts on standardised columns, or standardise the columns, for example with '
        "sklearn.preprocessing.StandardScaler."
    )
