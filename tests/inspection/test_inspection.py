"""Displays show what the estimator holds; exports are what the other packages take."""

import copy
import json
import types
import warnings

import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA, DMRTopicModel, DPCategoricalMixture, SphericalAdmixtureModel
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.inspection import TopicMapDisplay, TopicWordsDisplay, TraceDisplay, to_arviz, to_pyldavis
from sk_sgmcmc.inspection._base import GREY
from tests.conftest import importorskip


@pytest.fixture(scope="module")
def data():
    return make_lda(160, 40, 4, document_length=40, random_state=0)


@pytest.fixture(scope="module")
def lda(data):
    callback = HeldOutScore(data.counts[:40], every=5)
    return BayesianLDA(4, n_chains=2, n_iter=30, random_state=0, callbacks=callback).fit(data.counts)


@pytest.fixture
def plt():
    plt = importorskip("matplotlib.pyplot")
    yield plt
    plt.close("all")


def test_topic_words_are_those_of_top_words(lda, data, plt):
    display = TopicWordsDisplay.from_estimator(lda, n_words=6, topics=[2, 0], feature_names=data.feature_names)
    table = lda.top_words(6, interval=0.9, feature_names=data.feature_names)
    for row, topic in enumerate([2, 0]):
        expected = table[table["topic"] == topic]
        panel = display.axes_[row]
        assert [label.get_text() for label in panel.get_yticklabels()] == list(expected["word"])
        np.testing.assert_allclose([bar.get_width() for bar in panel.patches], expected["probability"])
        ends = np.array([segment[:, 0] for segment in panel.collections[0].get_segments()])
        np.testing.assert_allclose(ends, expected[["low", "high"]], atol=1e-15)  # the plot drops tiny numbers
        assert panel.get_title(loc="left") == f"topic {topic}"
        assert panel.get_ylim()[0] > panel.get_ylim()[1]  # the most probable on top
    assert "90%" in display.figure_._supxlabel.get_text()
    display.figure_.canvas.draw()


def test_topic_words_are_titled_by_given_names(lda, plt):
    model = copy.copy(lda)
    model.topic_names_ = ["economy", "war", "a name that is far too long for a title", "sport"]
    display = TopicWordsDisplay.from_estimator(model, topics=[3, 2])
    titles = [panel.get_title(loc="left") for panel in display.axes_]
    assert titles == ["topic 3: sport", "topic 2: a name that is far too long…"]


def test_topic_words_mark_topics_on_which_chains_differ(lda, plt):
    assert lda.chains_agree_.all()
    model = copy.copy(lda)
    model.chains_agree_ = np.array([[True, True, True, True], [True, False, True, True]])
    for topics in ([0, 1, 3], [1, 2]):
        panels = TopicWordsDisplay.from_estimator(model, topics=topics).axes_
        assert [panel.get_title(loc="left") for panel in panels] == [
            f"topic {k} (chains differ)" if k == 1 else f"topic {k}" for k in topics
        ]
        assert [panel._left_title.get_color() == GREY for panel in panels] == [k == 1 for k in topics]


def test_topic_words_go_where_they_are_put(lda, plt):
    figure, axes = plt.subplots(2, 2)
    display = TopicWordsDisplay.from_estimator(lda, ax=axes)
    assert display.figure_ is figure and list(display.axes_) == list(axes.ravel())
    figure = plt.figure()
    display = TopicWordsDisplay.from_estimator(lda, figure=figure, n_columns=3, interval=0.5)
    assert display.figure_ is figure and len(figure.axes) == 4
    assert display.plot().figure_ is not figure  # again, elsewhere
    for bad, message in (
        ({"ax": axes[0]}, "2 Axes"), ({"topics": [4]}, "topics"), ({"topics": []}, "topics"),
        ({"topics": [0.5]}, "topics"), ({"interval": None}, "interval"), ({"interval": 2}, "interval"),
        ({"n_words": 0}, "n=0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            TopicWordsDisplay.from_estimator(lda, **bad)


def test_the_trace_is_drawn(lda, data, plt):
    display = TraceDisplay.from_estimator(lda)
    np.testing.assert_array_equal(display.line_.get_xdata(), lda.trace_["seconds"])
    np.testing.assert_array_equal(display.line_.get_ydata(), lda.trace_["score"])
    other = TraceDisplay.from_estimator(lda, x="step", ax=display.ax_, name="again")
    assert other.ax_ is display.ax_ and list(other.line_.get_xdata()) == [5, 10, 15, 20, 25, 30]
    with pytest.raises(ValueError, match="HeldOutScore"):
        TraceDisplay.from_estimator(BayesianLDA(2, n_iter=4).fit(data.counts))
    with pytest.raises(ValueError, match="x='minutes'"):
        TraceDisplay.from_estimator(lda, x="minutes")


def test_a_missing_package_is_named(lda, data, monkeypatch):
    for module, call in (
        ("matplotlib.pyplot", lambda: TopicWordsDisplay.from_estimator(lda)),
        ("arviz", lambda: to_arviz(lda)),
    ):
        monkeypatch.setitem(__import__("sys").modules, module, None)
        with pytest.raises(ImportError, match="pip install"):
            call()


# --------------------------------------------------------------------------------------------------------------- ArviZ


def test_arviz_gets_draws_with_named_axes(lda, data):
    arviz = importorskip("arviz")
    posterior = to_arviz(lda, feature_names=data.feature_names).posterior
    components = posterior["components"]
    assert components.dims == ("chain", "draw", "topic", "word") and components.dtype == np.float32
    assert np.shares_memory(components.values, lda.samples_["components"])
    assert list(components.coords["word"].values) == list(data.feature_names)
    assert posterior["doc_topic_prior"].dims == ("chain", "draw", "topic")
    assert components.coords["topic"].values[1].startswith("1_")
    one = components.isel(topic=1).sel(word=data.feature_names[5]).values
    np.testing.assert_array_equal(one, lda.samples_["components"][:, :, 1, 5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of R-hat, where the prior is the same in all draws of a chain
        summary = arviz.summary(to_arviz(lda, words=[3, 1]))
    assert len(summary) == 4 * 2 + 4


def test_arviz_gets_the_words_asked_for(lda, data):
    importorskip("arviz")
    few = to_arviz(lda, words=2, feature_names=data.feature_names).posterior["components"]
    top = set(lda.top_words(2, feature_names=data.feature_names)["word"])
    assert set(few.coords["word"].values) == top
    named = to_arviz(lda, words=["word07", "word01"], feature_names=data.feature_names).posterior["components"]
    np.testing.assert_array_equal(named.values, lda.samples_["components"][..., [7, 1]])
    for bad in (0, ["word99"], [40], [-1], []):
        with pytest.raises(ValueError, match="words="):
            to_arviz(lda, words=bad, feature_names=data.feature_names)
    with pytest.raises(ValueError, match="feature_names"):
        to_arviz(lda, feature_names=["a"])


def test_words_of_a_model_with_metadata_columns_are_named_without_them():
    pandas = importorskip("pandas")
    frame = pandas.DataFrame(np.arange(40).reshape(10, 4) % 3, columns=["age", "b", "c", "d"])
    dmr = DMRTopicModel(2, metadata_columns=["age"], n_iter=4, random_state=0).fit(frame)
    assert to_pyldavis(dmr, frame)["vocab"] == ["b", "c", "d"]


def test_what_has_no_probabilities_of_words_is_named():
    X = np.eye(6)[np.arange(12) % 6] + np.eye(6)[np.arange(12) // 2]
    sam = SphericalAdmixtureModel(2, n_iter=4, random_state=0).fit(X)
    for show in (TopicWordsDisplay.from_estimator, lambda model: to_pyldavis(model, X)):
        with pytest.raises(TypeError, match="SphericalAdmixtureModel does not have"):
            show(sam)


def test_arviz_takes_clusters_of_categories():
    importorskip("arviz")
    dp = DPCategoricalMixture(n_iter=6, random_state=0).fit(np.eye(6)[np.arange(12) % 6])
    assert set(to_arviz(dp).posterior.data_vars) == set(dp.samples_)
    with pytest.raises(ValueError, match="labels change"):
        to_arviz(dp, words=2)


@pytest.mark.parametrize("version", ["0.20.0", "0.23.4", "1.0.0", "1.3.0"])
def test_each_arviz_is_called_in_its_own_way(lda, version, monkeypatch):
    fake = types.ModuleType("arviz")
    fake.__version__ = version
    fake.from_dict = lambda *args, **kwargs: (args, kwargs)
    monkeypatch.setitem(__import__("sys").modules, "arviz", fake)
    args, kwargs = to_arviz(lda)
    posterior = args[0]["posterior"] if version.startswith("1") else kwargs["posterior"]
    assert set(posterior) == {"components", "doc_topic_prior"}
    assert kwargs["dims"] == {"components": ["topic", "word"], "doc_topic_prior": ["topic"]}
    assert bool(args) == version.startswith("1")


# ------------------------------------------------------------------------------------------------------------ pyLDAvis


def test_pyldavis_gets_what_it_can_take(lda, data):
    X = data.counts.toarray()
    X[[3, 9]] = 0
    X[:, 5] = 0
    n_used = int((X.sum(axis=0) > 0).sum())
    arguments = to_pyldavis(lda, X, feature_names=data.feature_names)
    for name, shape in (("topic_term_dists", (4, n_used)), ("doc_topic_dists", (158, 4))):
        value = arguments[name]
        assert type(value) is np.ndarray and value.dtype == np.float64 and value.shape == shape
        np.testing.assert_allclose(value.sum(axis=1), 1, rtol=1e-14)
    assert all(type(arguments[name]) is list for name in ("doc_lengths", "vocab", "term_frequency"))
    assert len(arguments["doc_lengths"]) == 158 and min(arguments["doc_lengths"]) > 0
    assert "word05" not in arguments["vocab"] and sum(arguments["term_frequency"]) == X.sum()
    assert (arguments["n_jobs"], arguments["sort_topics"]) == (1, False)
    with pytest.raises(ValueError, match="empty"):
        to_pyldavis(lda, np.zeros((2, 40)))


@pytest.mark.filterwarnings("error")
def test_pyldavis_prepares_and_writes_json_without_a_warning(lda, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its import
        pyldavis = importorskip("pyLDAvis")
    prepared = pyldavis.prepare(**to_pyldavis(lda, data.counts))
    shown = TopicMapDisplay.from_estimator(lda, distance="jensen-shannon").positions
    # The words that no document holds are left out of the one, and not of the other.
    np.testing.assert_allclose(prepared.topic_coordinates[["x", "y"]], shown, atol=1e-3)
    assert prepared.topic_coordinates["topics"].tolist() == [1, 2, 3, 4]
    # The biggest topic of pyLDAvis is ours of the same number.
    share = lda.transform(data.counts).T @ np.asarray(data.counts.sum(axis=1)).ravel()
    assert int(prepared.topic_coordinates["Freq"].idxmax()) == int(share.argmax())
    text = prepared.to_json()
    assert "Infinity" not in text and "NaN" not in text and json.loads(text)["R"] == 30
