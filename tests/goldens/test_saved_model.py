"""Models saved by earlier versions are read and answer as they did."""

import json
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from tests.goldens.cases import counts

FOLDER = Path(__file__).parent
SAVED = sorted(path.stem for path in FOLDER.glob("*.joblib"))


@pytest.mark.parametrize("name", SAVED)
def test_a_model_saved_by_an_earlier_version_answers_as_it_did(name):
    model = joblib.load(FOLDER / f"{name}.joblib")
    answers = json.loads((FOLDER / f"{name}.json").read_text())
    X = counts()
    np.testing.assert_allclose(model.components_, answers["components"], rtol=1e-12)
    assert list(model.samples_["components"].shape) == answers["samples_shape"]
    # Fixed points of 50 steps, most of them in single precision: rounding differs between platforms.
    np.testing.assert_allclose(model.transform(X), answers["transform"], rtol=1e-6)
    assert model.score(X) == pytest.approx(answers["score"], rel=1e-7)
    assert model.perplexity(X) == pytest.approx(answers["perplexity"], rel=1e-7)
    table = model.top_words(3, interval=0.9)
    for column, values in answers["top_words"].items():
        if column == "name":
            assert list(table[column]) == values
        else:
            np.testing.assert_allclose(np.asarray(table[column], dtype=float), values, rtol=1e-9)
    clone(model).fit(X)


def test_a_model_saved_before_a_parameter_was_added_takes_its_default():
    model = joblib.load(FOLDER / "lda_0_1.joblib")
    state = model.__getstate__()
    del state["new_features"]
    earlier = object.__new__(type(model))
    earlier.__setstate__(state)
    assert earlier.new_features == "error" and clone(earlier).get_params() == model.get_params()


def test_there_is_a_saved_model():
    assert "lda_0_1" in SAVED
