"""PrevalenceDisplay shows what the model predicts."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from sk_sgmcmc import BayesianLDA, DMRTopicModel, LatentClassModel
from sk_sgmcmc.datasets import make_dmr
from sk_sgmcmc.inspection import PrevalenceDisplay
from tests.conftest import importorskip

DATA = make_dmr(120, 30, 3, 2, 25, random_state=0)
YEAR = 1900.0 + np.round(30 * DATA.metadata[:, 0])
PARTY = np.where(DATA.metadata[:, 1] > 0, "whig", "tory")
PARTY[YEAR > 1930] = "whig"
TABLE = {"year": YEAR, "party": PARTY}
AGE, SEX = 18.0 + np.arange(120) % 50, np.array(["f", "m", "m"])[np.arange(120) % 3]
PEOPLE = {"age": AGE, "sex": SEX}


@pytest.fixture
def plt():
    plt = importorskip("matplotlib.pyplot")
    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return DMRTopicModel(3, n_iter=20, random_state=0).fit(DATA.counts, metadata=TABLE)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    is_second = rng.random(120) < np.where(SEX == "f", 0.2, 0.8) * AGE / AGE.max()
    answers = rng.random((120, 6)) < np.where(is_second, 0.9, 0.2)[:, None]
    return LatentClassModel(2, n_iter=200, random_state=0).fit(answers, metadata=PEOPLE)


def test_lines_are_averages_over_documents_where_a_group_was_observed(model, plt):
    display = PrevalenceDisplay.from_estimator(model, "year", by="party", of="prior", interval=0.8)
    assert display.prevalence.shape == (3, 2, 50) and display.groups == ["tory", "whig"]
    assert np.isfinite(display.prevalence[:, 1]).all()
    beyond = display.values > YEAR[PARTY == "tory"].max() + np.diff(display.values)[0]
    assert beyond.any() and np.isnan(display.high[:, 0, beyond]).all()
    mean, low, high = model.predict_prevalence({"year": display.values, "party": ["whig"] * 50}, interval=0.8)
    for part, expected in ((display.prevalence, mean), (display.low, low), (display.high, high)):
        np.testing.assert_allclose(part[:, 1], expected.T)
    for k, panel in enumerate(display.axes_):
        assert panel.get_title(loc="left") == f"topic {k}"
        whig = panel.lines[1]
        np.testing.assert_allclose(whig.get_ydata(), display.prevalence[k, 1])
        np.testing.assert_allclose(whig.get_xdata(), display.values)
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["tory", "whig"]
    assert "80%" in display.figure_._supxlabel.get_text() and display.ax_ is display.axes_[0]
    display.figure_.canvas.draw()
    panels = [panel.get_window_extent() for panel in display.axes_]
    assert not legend.get_window_extent().count_overlaps(panels)  # it hides no line
    numbers = PrevalenceDisplay.from_estimator(model, "party", by="year", ax=plt.subplots(1, len(display.topics))[1])
    shown = [text.get_text() for text in numbers.axes_[0].get_legend().get_texts()]
    assert shown == [f"{year:g}" for year in numbers.groups] and not numbers.figure_.legends


def test_averages_are_those_of_effects(model, plt):
    display = PrevalenceDisplay.from_estimator(model, "party")
    table = model.effects("party", kind="prevalence")
    for name in ("prevalence", "low", "high"):
        np.testing.assert_allclose(getattr(display, name).ravel(), table[name])
    assert [label.get_text() for label in display.axes_[0].get_xticklabels()] == ["tory", "whig"]
    assert display.axes_[0].get_legend() is None
    display = PrevalenceDisplay.from_estimator(model, "year", at=[1910, 1890], given={"party": "whig"})
    table = model.effects("year", at=[1890, 1910], given={"party": "whig"}, kind="prevalence")
    np.testing.assert_allclose(display.prevalence.ravel(), table["prevalence"])
    some = {"year": YEAR[:9], "party": PARTY[:9]}
    display = PrevalenceDisplay.from_estimator(model, "party", average_over=some, topics=[1])
    table = model.effects("party", kind="prevalence", metadata=some)
    np.testing.assert_allclose(display.prevalence.ravel(), table["prevalence"][table["topic"] == 1])
    display.figure_.canvas.draw()


def test_two_values_of_a_number_are_points(plt):
    table = {"spoken": (PARTY == "whig").astype(float), "party": np.where(YEAR > 1900, "a", "b")}
    model = DMRTopicModel(3, n_iter=20, random_state=0).fit(DATA.counts, metadata=table)
    expected = model.effects("spoken", kind="prevalence")
    for at in (None, [1, 0]):
        display = PrevalenceDisplay.from_estimator(model, "spoken", at=at)
        assert display.values.tolist() == [0.0, 1.0] and display.values.dtype == object
        np.testing.assert_allclose(display.prevalence.ravel(), expected["prevalence"])
        assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["0", "1"]
        assert len(display.ax_.containers) == 1
    display = PrevalenceDisplay.from_estimator(model, "spoken", by="party")
    assert display.prevalence.shape == (3, 2, 2) and len(display.ax_.containers) == 2
    between = PrevalenceDisplay.from_estimator(model, "spoken", at=[0, 0.5, 1], of="prior")
    assert between.values.dtype == float and not between.ax_.containers
    one = {name: column[table["spoken"] == 1.0] for name, column in table.items()}
    display = PrevalenceDisplay.from_estimator(model, "spoken", by="party", average_over=one, of="prior")
    assert display.values.tolist() == [1.0]


@pytest.mark.parametrize("is_own", [True, False])
def test_shares_below_0_are_marked_as_those_of_a_regression(is_own, plt):
    def shown(low, of):
        mean, high = np.full((2, 1, 3), 0.2), np.full((2, 1, 3), 0.3)
        display = PrevalenceDisplay(
            topics=np.arange(2), names=np.array(["a", "b"], dtype=object), values=np.array([1.0, 2.0, 3.0]),
            groups=[None], prevalence=mean, low=np.array([0.1, np.nan, low]) * np.ones((2, 1, 3)), high=high,
            interval=0.9, covariate="year", of=of,
        )  # fmt: skip
        display.plot(ax=None if is_own else plt.subplots(1, 2)[1])
        title = display.figure_._supylabel.get_text() if is_own else display.ax_.get_ylabel()
        at_0 = [any(np.all(np.asarray(line.get_ydata()) == 0.0) for line in panel.lines) for panel in display.axes_]
        display.figure_.canvas.draw()
        return title, at_0

    note = "\n(a regression, not bounded by 0)"
    assert shown(-0.05, "population") == (f"mean share in the population{note}", [True, True])
    assert shown(-0.05, "documents") == (f"mean share in these documents{note}", [True, True])
    assert shown(0.05, "population") == ("mean share in the population", [False, False])
    assert shown(0.05, "prior") == ("expected share, before reading words", [False, False])


def test_rows_of_metadata_are_predicted_as_they_are(model, plt):
    importorskip("pandas")
    rows = {"year": [1910.0, 1890.0, 1890.0], "party": ["tory", "tory", "whig"]}
    display = PrevalenceDisplay.from_estimator(model, rows, by="party")
    expected = model.predict_prevalence(rows)
    assert display.covariate == "year" and display.values.tolist() == [1890.0, 1910.0]
    np.testing.assert_allclose(display.prevalence[:, 0], expected[[1, 0]].T)
    np.testing.assert_allclose(display.prevalence[:, 1, 0], expected[2])
    assert np.isnan(display.prevalence[:, 1, 1]).all()
    display = PrevalenceDisplay.from_estimator(model, rows, by="year")
    assert display.covariate == "party" and display.groups == [1890.0, 1910.0]


def test_panels_go_where_they_are_put(model, plt):
    figure, ax = plt.subplots()
    display = PrevalenceDisplay.from_estimator(model, "year", topics=[2], ax=ax)
    assert display.ax_ is ax and display.figure_ is figure
    assert ax.get_ylabel().startswith("mean share in the population")
    figure = plt.figure()
    display = PrevalenceDisplay.from_estimator(model, "year", figure=figure, n_columns=2)
    assert display.figure_ is figure and len(figure.axes) == 3
    assert display.plot().figure_ is not figure
    many = DMRTopicModel(8, n_iter=8, random_state=0).fit(DATA.counts, metadata=TABLE)
    display = PrevalenceDisplay.from_estimator(many, "year")
    assert display.topics.size == 6
    spread = np.ptp(display.prevalence, axis=(1, 2))
    assert np.all(np.diff(spread) <= 0)
    merged = PrevalenceDisplay.from_estimator(model.merge_topics([0, 1]), "party")
    np.testing.assert_allclose(merged.prevalence.sum(axis=0), 1.0)


def test_long_titles_keep_to_their_panels(model, plt):
    named = model.merge_topics([[0, 1]])
    named.topic_names_ = ["a topic with quite a long name", "and another with a longer name than that"]
    display = PrevalenceDisplay.from_estimator(named, "year", by="party")
    display.figure_.canvas.draw()
    first, second = display.axes_
    renderer = display.figure_.canvas.get_renderer()
    assert first._left_title.get_window_extent(renderer).x1 < second._left_title.get_window_extent(renderer).x0
    assert second._left_title.get_window_extent(renderer).x1 <= display.figure_.bbox.x1


def test_formulas_are_shown_too(plt):
    importorskip("formulaic")
    formula = DMRTopicModel(3, formula="~ party * bs(year, df=4)", n_iter=20, random_state=0)
    display = PrevalenceDisplay.from_estimator(formula.fit(DATA.counts, metadata=TABLE), "year", by="party")
    np.testing.assert_allclose(display.prevalence[:, 1].sum(axis=0), 1.0)


@pytest.mark.filterwarnings("error")
def test_shares_of_latent_classes_are_those_of_effects(classes, plt):
    ages, some = [20.0, 41.5, 60.0], {"age": AGE[:9], "sex": SEX[:9]}
    for params, to_effects in (
        ({}, {}),
        ({"given": {"sex": "f"}, "interval": 0.5}, {"given": {"sex": "f"}, "interval": 0.5}),
        ({"average_over": some}, {"metadata": some}),
    ):
        display = PrevalenceDisplay.from_estimator(classes, "age", at=ages, **params)
        table = classes.effects("age", ages, kind="prevalence", **to_effects)
        for name in ("prevalence", "low", "high"):
            np.testing.assert_array_equal(getattr(display, name).ravel(), table[name])
    assert display.names.tolist() == ["class 0", "class 1"] and display.of == "classes"
    assert display.figure_._supylabel.get_text() == "expected share of the class"
    levels = PrevalenceDisplay.from_estimator(classes, "sex", topics=[1])
    table = classes.effects("sex", kind="prevalence")
    np.testing.assert_array_equal(levels.prevalence.ravel(), table["prevalence"][table["class"] == 1])
    assert [panel.get_title(loc="left") for panel in levels.axes_] == ["class 1"]
    display.figure_.canvas.draw()


@pytest.mark.filterwarnings("error")
def test_shares_of_latent_classes_have_a_line_for_each_group(classes, plt):
    display = PrevalenceDisplay.from_estimator(classes, "age", by="sex")
    assert display.groups == ["f", "m"] and display.prevalence.shape == (2, 2, 50)
    for g, sex in enumerate(display.groups):
        table = classes.effects("age", display.values, given={"sex": sex}, kind="prevalence")
        for name in ("prevalence", "low", "high"):
            np.testing.assert_allclose(getattr(display, name)[:, g].ravel(), table[name], rtol=1e-12)
    np.testing.assert_allclose(display.prevalence.sum(axis=0), 1.0)
    assert np.abs(np.diff(display.prevalence[0], axis=0)).max() > 0.1  # the sexes differ in these data
    display.figure_.canvas.draw()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("age", {"of": "population"}), ValueError, "`of` is for topic models; leave it out"),
        (("age", {"X": np.ones((120, 3))}), ValueError, "`X` is for topic models"),
        (("age", {"groups": AGE}), ValueError, "`groups` is for topic models"),
        (("height", {}), ValueError, "'height' is not a covariate"),
        (("age", {"topics": [2]}), ValueError, "topics"),
        ((PEOPLE, {"by": "sex"}), TypeError, "LatentClassModel does not predict .* Pass the name of a covariate"),
        ((PEOPLE, {"at": [20.0]}), TypeError, "LatentClassModel does not predict"),
    ],
)
def test_what_latent_classes_do_not_have_is_refused(classes, arguments, error, message):
    with pytest.raises(error, match=message):
        PrevalenceDisplay.from_estimator(classes, arguments[0], **arguments[1])


def test_latent_classes_without_covariates_are_refused():
    model = LatentClassModel(2, n_iter=80, random_state=0)
    with pytest.raises(NotFittedError):
        PrevalenceDisplay.from_estimator(model, "age")
    model.fit(np.tile(np.eye(2, dtype=bool), (20, 3)))
    with pytest.raises(ValueError, match="without metadata"):
        PrevalenceDisplay.from_estimator(model, "age")


def test_what_cannot_be_shown_is_refused(model, plt):
    rows = {"year": [1890.0, 1890.0], "party": ["tory", "whig"]}
    for arguments, message in (
        (("month",), "'month' is not a covariate"),
        (("year", {"by": "year"}), "choose one"),
        (("year", {"given": {"year": 1.0}}), "choose one"),
        (("year", {"n_points": 1}), "n_points=1"),
        (("year", {"topics": [3]}), "topics"),
        (("year", {"interval": None}), "interval"),
        (("year", {"ax": plt.subplots()[1]}), "ax holds 1 Axes"),
        ((rows,), "several rows with one value of 'year'"),
        ((rows, {"by": "month"}), "by='month'"),
        ((rows, {"by": "party", "at": [1890.0]}), "at is for averages"),
        (({"year": [1890.0]}, {"by": "year"}), "no column for the horizontal axis"),
    ):
        with pytest.raises(ValueError, match=message):
            PrevalenceDisplay.from_estimator(model, arguments[0], **(arguments[1] if len(arguments) > 1 else {}))
    with pytest.raises(TypeError, match="got BayesianLDA"):
        PrevalenceDisplay.from_estimator(BayesianLDA(2, n_iter=4).fit(DATA.counts), "year")
    with pytest.raises(TypeError, match="name of a covariate"):
        PrevalenceDisplay.from_estimator(model, YEAR)
    with pytest.raises(ValueError, match='must be "population", "documents" or "prior"'):
        PrevalenceDisplay.from_estimator(model, "year", of="classes")
