"""How an array lies in memory changes no bit of a fit or of what it says."""

import numpy as np
import pytest
from scipy import sparse

from tests.common.instances import ESTIMATORS
from tests.conftest import importorskip

ANSWERS = ("predict_proba", "transform", "score_samples")


def view_of(X):
    """The same numbers, neither rows nor columns side by side."""
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]))
    wide[::2, 1::3] = X
    return wide[::2, 1::3]


def frame_of(X):
    return importorskip("pandas").DataFrame(X)


LAYOUTS = {"Fortran": np.asfortranarray, "view": view_of, "frame": frame_of, "float32": lambda X: X.astype(np.float32)}


def answers(model, X):
    """Draws, and what the methods for rows say."""
    said = dict(model.samples_)
    for name in ANSWERS:
        if hasattr(model, name):
            value = np.asarray(getattr(model, name)(X))
            # Estimators that keep a type of rows round what they say to it.
            said[name] = value.astype(np.float32) if name == "transform" else value
    return said


@pytest.mark.parametrize("case", ESTIMATORS, ids=lambda case: case.id)
def test_the_layout_of_rows_changes_no_bit(case):
    X, *rest = case.data_of()
    X = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    X = np.ascontiguousarray(X.astype(np.float32), dtype=np.float64)  # so that float32 holds the same numbers
    expected = answers(case.new().fit(X, *rest), X)
    for name, change in LAYOUTS.items():
        rows = change(X)
        for what, value in answers(case.new().fit(rows, *rest), rows).items():
            np.testing.assert_array_equal(value, expected[what], err_msg=f"{name}: {what}")
