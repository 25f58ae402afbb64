"""EffectsDisplay shows the tables of `effects`, of topics and of classes."""

import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA, DMRTopicModel, LatentClassModel, StructuralTopicModel
from sk_sgmcmc.datasets import make_dmr
from sk_sgmcmc.inspection import EffectsDisplay
from tests.conftest import importorskip

DATA = make_dmr(120, 30, 3, 2, 25, random_state=0)
PARTY = np.array(["whig", "tory", "other"])[np.arange(120) % 3]
TABLE = {"party": PARTY, "year": DATA.metadata[:, 0]}


@pytest.fixture
def plt():
    plt = importorskip("matplotlib.pyplot")
    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    model = DMRTopicModel(3, n_iter=20, random_state=0).fit(DATA.counts, metadata=TABLE)
    model.topic_names_ = {1: "tariff"}
    return model


def ticks(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_rows_are_those_of_the_table_in_order(model, plt):
    params = {"at": ["whig", "tory"], "reference": "tory", "given": {"year": 0.5}, "interval": 0.8}
    display = EffectsDisplay.from_estimator(model, "party", **params, of="prior")
    table = model.effects("party", **params, of="prior")
    order = np.argsort(-np.asarray(table["difference"]))
    assert display.topics.tolist() == order.tolist() and display.contrasts == ["whig − tory"]
    for name in ("difference", "low", "high"):
        np.testing.assert_array_equal(getattr(display, name)[:, 0], np.asarray(table[name])[order])
    assert ticks(display) == [["topic 0", "topic 1: tariff", "topic 2"][k] for k in order]
    assert display.ax_.get_legend() is None and "whig − tory" in display.ax_.get_xlabel()
    assert "80%" in display.ax_.get_xlabel()
    assert any(np.all(np.asarray(line.get_xdata()) == 0.0) for line in display.ax_.lines)


def test_several_contrasts_have_a_legend(model, plt):
    display = EffectsDisplay.from_estimator(model, "party", topics=[2, 0])
    assert display.difference.shape == (2, 2) and sorted(display.topics) == [0, 2]
    assert np.diff(display.difference.mean(axis=1))[0] <= 0.0
    shown = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert shown == display.contrasts == ["tory − other", "whig − other"]
    display.figure_.canvas.draw()
    numbers = EffectsDisplay.from_estimator(model, "year", at=[0.0, 0.25])
    assert numbers.contrasts == ["0.25 − 0"]


def test_other_models_with_effects_are_shown(plt):
    rows = np.array([["yes", "often", 1], ["no", "never", 2]] * 30, dtype=object)
    classes = LatentClassModel(2, n_iter=40, random_state=0).fit(rows, metadata={"party": ["a", "b"] * 30})
    display = EffectsDisplay.from_estimator(classes, "party")
    table = classes.effects("party")
    np.testing.assert_array_equal(display.difference[:, 0], np.sort(table["difference"])[::-1])
    assert sorted(ticks(display)) == ["class 0", "class 1"]
    structural = StructuralTopicModel(3, formula="~ party", n_iter=8, random_state=0)
    display = EffectsDisplay.from_estimator(structural.fit(DATA.counts, metadata=TABLE), "party")
    assert display.difference.shape == (3, 2)


def test_long_labels_stay_within_the_figure(plt):
    names = np.array(["Constitutional Unionists and others", "Independent Democrats and others"])
    display = EffectsDisplay(
        topics=np.arange(2), names=np.array(["a topic with quite a long name", "b"], dtype=object),
        contrasts=[" − ".join(names)], difference=np.array([[0.2], [np.nan]]), low=np.array([[0.1], [np.nan]]),
        high=np.array([[0.3], [np.nan]]), interval=0.9, covariate="party",
    ).plot()  # fmt: skip
    display.figure_.canvas.draw()
    label, frame = display.ax_.xaxis.label.get_window_extent(), display.figure_.bbox
    assert frame.x0 <= label.x0 and label.x1 <= frame.x1 and frame.y0 <= label.y0


def test_the_panel_goes_where_it_is_put(model, plt):
    figure, ax = plt.subplots()
    display = EffectsDisplay.from_estimator(model, "party", ax=ax)
    assert display.ax_ is ax and display.figure_ is figure and display.plot().figure_ is not figure
    figure = plt.figure()
    assert EffectsDisplay.from_estimator(model, "party", figure=figure).figure_ is figure


def test_what_cannot_be_shown_is_refused(model, plt):
    for params, message in (
        ({"interval": None}, "interval=None"),
        ({"topics": [3]}, "topics="),
        ({"kind": "prevalence"}, "PrevalenceDisplay"),
        ({"at": ["green"]}, "'green' is not a level"),
    ):
        with pytest.raises(ValueError, match=message):
            EffectsDisplay.from_estimator(model, "party", **params)
    lda = BayesianLDA(2, n_iter=4).fit(DATA.counts)
    with pytest.raises(TypeError, match=r"EffectsDisplay requires a model with covariates.*got BayesianLDA"):
        EffectsDisplay.from_estimator(lda, "party")
