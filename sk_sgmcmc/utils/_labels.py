"""Checks of class labels."""

from numbers import Number

import numpy as np
from sklearn.utils.multiclass import check_classification_targets


def check_labels(y):
    """Raise if y does not contain class labels, or mixes types of labels, which cannot be sorted."""
    y = np.asarray(y)
    if y.dtype == object:
        examples = {"a number" if isinstance(label, Number) else type(label).__name__: label for label in y.ravel()}
        if len(examples) > 1:
            shown = " and ".join(f"{label!r} ({kind})" for kind, label in examples.items())
            raise ValueError(
                f"y mixes labels of different types, such as {shown}; a classifier needs one type. Drop rows without a "
                "label, and turn the others into text, for example by [str(label) for label in y]."
            )
    check_classification_targets(y)
