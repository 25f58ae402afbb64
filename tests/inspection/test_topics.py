"""Pictures of topics, their similarity, their course over time and their documents, show what the tables hold."""

import copy
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon, squareform

from sk_sgmcmc import BayesianLDA, DMRTopicModel, DPCategoricalMixture, GammaProcessTopicModel, SphericalAdmixtureModel
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.inspection import (
    TopicDocumentsDisplay,
    TopicHierarchyDisplay,
    TopicMapDisplay,
    TopicsOverTimeDisplay,
    TopicWordsDisplay,
)
from sk_sgmcmc.metrics import hellinger_distances
from tests.conftest import importorskip

DISPLAYS = (TopicMapDisplay, TopicHierarchyDisplay, TopicsOverTimeDisplay, TopicDocumentsDisplay)


@pytest.fixture(scope="module")
def data():
    return make_lda(160, 40, 6, document_length=60, topic_word_prior=0.1, random_state=0)


@pytest.fixture(scope="module")
def lda(data):
    return BayesianLDA(6, n_iter=60, random_state=0).fit(data.counts, feature_names=data.feature_names)


@pytest.fixture
def plt():
    plt = importorskip("matplotlib.pyplot")
    yield plt
    plt.close("all")


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


# ------------------------------------------------------------------------------------------------------------ map, tree


def test_the_map_puts_similar_topics_near_each_other(lda, data, plt):
    display = TopicMapDisplay.from_estimator(lda, data.counts, topics=[4, 0, 2, 5, 1, 3])
    apart = hellinger_distances(lda.components_, lda.components_)[np.ix_(display.topics, display.topics)]
    np.testing.assert_allclose(display.distances, apart, atol=1e-7)
    shown = np.linalg.norm(display.positions[:, None] - display.positions, axis=2)
    pairs = np.triu_indices(6, 1)
    assert np.corrcoef(shown[pairs], apart[pairs])[0, 1] > 0.5
    assert {"0", "5"} <= set(texts_of(display.ax_)) and display.labels[1] in texts_of(display.ax_)
    radius = np.array([patch.radius for patch in display.ax_.patches[::3]])
    order = np.argsort(-display.share)
    np.testing.assert_allclose(radius**2 / radius[0] ** 2, display.share[order] / display.share[order[0]])


def test_labels_of_the_map_stay_within_it_and_are_no_mathematics(lda, data, plt):
    named = copy.copy(lda)
    named.topic_names_ = [f"the tariff of ${k}$ and taxes" for k in range(6)]
    display = TopicMapDisplay.from_estimator(named)
    frame = display.ax_.get_window_extent()
    boxes = [text.get_window_extent() for text in display.ax_.texts]
    assert all(frame.x0 <= box.x0 and box.x1 <= frame.x1 for box in boxes) and len(boxes) > 8
    assert any(r"\$3\$" in text for text in texts_of(display.ax_))
    assert (
        TopicWordsDisplay.from_estimator(named).axes_[0].get_title(loc="left").startswith(r"topic 0: the tariff of \$0")
    )
    named.topic_names_ = {0: "tariff", 1: lda.topic_names_[1]}
    titles = [panel.get_title(loc="left") for panel in TopicWordsDisplay.from_estimator(named, topics=[0, 1]).axes_]
    assert titles == ["topic 0: tariff", lda.topic_names_[1]]


def test_titles_do_not_repeat_the_class_where_neither_words_nor_topics_have_names(data, plt):
    lda = BayesianLDA(3, n_iter=6, random_state=0).fit(data.counts)
    lda.topic_names_ = {0: "tariff"}
    assert lda.topic_names_[1] == "bayesianlda1"
    titles = [panel.get_title(loc="left") for panel in TopicWordsDisplay.from_estimator(lda).axes_]
    assert titles == ["topic 0: tariff", "topic 1", "topic 2"]
    assert TopicMapDisplay.from_estimator(lda).labels == ["tariff", "", ""]


def test_shares_on_the_map_are_those_of_topic_info(lda, data, plt):
    display = TopicMapDisplay.from_estimator(lda, data.counts, interval=0.8)
    table = lda.topic_info(data.counts, 0.8)
    for name in ("share", "low", "high"):
        np.testing.assert_allclose(getattr(display, name), table[name])
    without = TopicMapDisplay.from_estimator(lda)
    assert without.share.sum() == pytest.approx(1.0) and np.abs(without.share - display.share).max() < 0.1
    np.testing.assert_array_equal(without.positions, display.positions)  # nothing is left to chance


def test_distances_are_their_definitions(lda, plt):
    topics = lda.components_
    display = TopicMapDisplay.from_estimator(lda, distance="jensen-shannon", n_words=1)
    np.testing.assert_allclose(display.distances[0, 1:], [jensenshannon(topics[0], other) for other in topics[1:]])
    X = np.abs(np.random.default_rng(0).normal(size=(30, 6)))
    sam = SphericalAdmixtureModel(3, n_iter=6, random_state=0).fit(X)
    display = TopicMapDisplay.from_estimator(sam, X)
    np.testing.assert_allclose(np.cos(display.distances), sam.components_ @ sam.components_.T, atol=1e-6)
    assert TopicHierarchyDisplay.from_estimator(sam).distance == "angle"
    for model, bad in ((sam, "hellinger"), (lda, "angle"), (lda, "euclidean")):
        with pytest.raises(ValueError, match=f"distance='{bad}'"):
            TopicMapDisplay.from_estimator(model, distance=bad)


def test_the_tree_joins_the_nearest_topics_first(lda, plt):
    display = TopicHierarchyDisplay.from_estimator(lda)
    apart = hellinger_distances(lda.components_, lda.components_)
    np.fill_diagonal(apart, np.inf)
    first = np.unravel_index(apart.argmin(), apart.shape)
    assert set(display.linkage[0, :2].astype(int)) == set(first)
    assert display.linkage[0, 2] == pytest.approx(apart.min())
    with pytest.raises(ValueError, match="method='centroid' must be one of 'average'"):
        TopicHierarchyDisplay.from_estimator(lda, method="centroid")
    assert display.support.shape == (5,) and display.support[-1] == 1.0
    ticks = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert sorted(int(tick.split()[-1]) for tick in ticks) == list(range(6))
    display.figure_.canvas.draw()


def test_support_is_the_share_of_draws_with_the_branch(lda, plt):
    display = TopicHierarchyDisplay.from_estimator(lda, topics=[0, 1, 2], n_draws=1000)
    pair = set(display.linkage[0, :2].astype(int))
    nearest = []
    for draw in lda.samples_["components"][0][:, :3]:
        apart = squareform(hellinger_distances(draw, draw), checks=False)
        nearest.append([{0, 1}, {0, 2}, {1, 2}][apart.argmin()] == pair)
    assert display.support[0] == pytest.approx(np.mean(nearest))


def test_a_gamma_process_shows_topics_in_use_and_names_replace_words(data, plt):
    model = GammaProcessTopicModel(12, n_iter=40, random_state=0).fit(data.counts)
    display = TopicMapDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.topics, np.flatnonzero(model._topics_in_use()))
    model.topic_names_ = [f"name {k}" for k in range(12)]
    assert TopicHierarchyDisplay.from_estimator(model, topics=[3, 7]).labels == ["name 3", "name 7"]


# -------------------------------------------------------------------------------------------------- time and documents


def test_the_course_over_time_is_that_of_the_table(lda, data, plt):
    times = 1990 + np.arange(160) // 20
    display = TopicsOverTimeDisplay.from_estimator(lda, data.counts, times, topics=[3, 1], interval=0.8)
    table = lda.topics_over_time(data.counts, times, 0.8)
    for i, topic in enumerate([3, 1]):
        expected = table[table["topic"] == topic]
        line = display.axes_[i].lines[0]
        np.testing.assert_array_equal(line.get_xdata(), expected["time"])
        np.testing.assert_array_equal(line.get_ydata(), expected["share"])
        np.testing.assert_array_equal(display.low[i], expected["low"])
        assert display.axes_[i].get_title(loc="left").startswith(f"topic {topic}: ")
    assert "80%" in display.figure_._supxlabel.get_text()


@pytest.mark.parametrize(
    "times",
    [
        np.datetime64("2008-01-01") + np.arange(160) * np.timedelta64(1, "D"),
        np.array(["early", "late"])[np.arange(160) // 80],
        np.arange(160) / 16.0,
    ],
    ids=["dates", "labels", "floats"],
)
def test_times_of_every_kind_are_drawn(lda, data, times, plt):
    display = TopicsOverTimeDisplay.from_estimator(lda, data.counts, times)
    share = lda.transform_draws(data.counts).mean(axis=(0, 1))
    np.testing.assert_array_equal(display.topics, np.argsort(-share))
    display.figure_.canvas.draw()


def test_classes_are_points_without_a_line(lda, data, plt):
    display = TopicsOverTimeDisplay.from_estimator(lda, data.counts, np.array(["a", "b"])[np.arange(160) // 80])
    line = display.axes_[0].lines[0]
    assert line.get_linestyle() == "None"
    np.testing.assert_array_equal(line.get_xdata(), display.share[0])


def test_names_of_classes_are_written_once_in_each_row(lda, data, plt):
    display = TopicsOverTimeDisplay.from_estimator(
        lda, data.counts, np.array(["a", "b"])[np.arange(160) // 80], n_columns=2
    )
    for i, panel in enumerate(display.axes_):
        names = [label.get_text() for label in panel.get_yticklabels() if label.get_visible()]
        assert names == (["a", "b"] if i % 2 == 0 else [])


def test_many_names_of_times_do_not_overlap(lda, data, plt):
    pandas = importorskip("pandas")
    months = pandas.Series(pandas.period_range("2008-01", periods=16, freq="M"))[np.arange(160) % 16]
    display = TopicsOverTimeDisplay.from_estimator(lda, data.counts, months.astype(str))
    display.figure_.canvas.draw()
    labels = [label.get_window_extent() for label in display.axes_[0].get_yticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(labels))
    of_periods = TopicsOverTimeDisplay.from_estimator(lda, data.counts, months)
    assert of_periods.times[0] == np.datetime64("2008-01-01") and len(of_periods.axes_[0].lines) == 1
    np.testing.assert_array_equal(of_periods.share, display.share)


def test_documents_need_their_texts(lda, data, plt):
    with pytest.raises(TypeError, match="texts must be the documents"):
        TopicDocumentsDisplay.from_estimator(lda, data.counts, None)


def test_documents_are_those_of_the_table(lda, data, plt):
    texts = [f"The document of number {i} costs $5 and $6." for i in range(160)]
    display = TopicDocumentsDisplay.from_estimator(lda, data.counts, texts, topics=[5, 2], n=4)
    table = lda.representative_docs(data.counts, texts, 4)
    for i, topic in enumerate([5, 2]):
        expected = table[table["topic"] == topic]
        np.testing.assert_array_equal(display.documents[i], expected["document"])
        np.testing.assert_array_equal([bar.get_width() for bar in display.axes_[i].patches], expected["proportion"])
        assert texts_of(display.axes_[i])[0] == expected["text"].iloc[0].replace("$", r"\$")
    display.figure_.canvas.draw()
    long = TopicDocumentsDisplay.from_estimator(lda, data.counts, ["word " * 500] * 160, n=1)
    assert texts_of(long.axes_[0])[0].count("\n") == 2 and texts_of(long.axes_[0])[0].endswith("…")
    assert long.topics.size == 3


def test_metadata_reach_the_tables(plt):
    data = make_lda(60, 30, 3, random_state=0)
    metadata = (np.arange(60) % 2)[:, None].astype(float)
    dmr = DMRTopicModel(3, n_iter=10, random_state=0).fit(data.counts, metadata=metadata)
    given = {"metadata": metadata}
    TopicMapDisplay.from_estimator(dmr, data.counts, **given)
    TopicsOverTimeDisplay.from_estimator(dmr, data.counts, np.arange(60) // 20, **given)
    TopicDocumentsDisplay.from_estimator(dmr, data.counts, ["a"] * 60, random_state=1, **given)


# ------------------------------------------------------------------------------------------------------------- manners


def call(display, lda, data, **given):
    arguments = {
        TopicMapDisplay: (), TopicHierarchyDisplay: (), TopicsOverTimeDisplay: (data.counts, np.arange(160) // 40),
        TopicDocumentsDisplay: (data.counts, ["text"] * 160),
    }[display]  # fmt: skip
    return display.from_estimator(lda, *arguments, **given)


@pytest.mark.parametrize("display", DISPLAYS)
def test_displays_go_where_they_are_put(display, lda, data, plt):
    one = display in (TopicMapDisplay, TopicHierarchyDisplay)
    figure, axes = plt.subplots(1, 1 if one else 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = call(display, lda, data, topics=[1, 2], ax=axes)
        assert shown.figure_ is figure and (shown.ax_ is axes if one else list(shown.axes_) == list(axes))
        assert shown.plot().figure_ is not figure
        shown.figure_.canvas.draw()
    if not one:
        with pytest.raises(ValueError, match="ax holds 2 Axes"):
            call(display, lda, data, topics=[1, 2, 3], ax=axes)


@pytest.mark.parametrize("display", DISPLAYS)
def test_bad_arguments_are_named(display, lda, data, plt):
    for topics in ([6], [], [0.5], [[1]]):
        with pytest.raises(ValueError, match="topics="):
            call(display, lda, data, topics=topics)
    if display is TopicHierarchyDisplay:
        with pytest.raises(ValueError, match="at least two"):
            call(display, lda, data, topics=[1])
        with pytest.raises(ValueError, match="n_draws=0"):
            call(display, lda, data, n_draws=0)
    else:
        with pytest.raises(ValueError, match="interval=None"):
            call(display, lda, data, interval=None)
    with pytest.raises(TypeError, match="DPCategoricalMixture does not have"):
        call(display, DPCategoricalMixture(), data)


def test_topics_that_are_all_alike_share_a_place():
    lda = BayesianLDA(3, n_iter=10, random_state=0).fit(np.full((8, 1), 4))
    np.testing.assert_array_equal(TopicMapDisplay.from_estimator(lda).positions, np.zeros((3, 2)))
