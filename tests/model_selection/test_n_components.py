"""The search for the number of topics."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from sk_sgmcmc import BayesianLDA, DMRTopicModel, VonMisesFisherMixture
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.inspection import NumberOfTopicsDisplay
from sk_sgmcmc.metrics import coherence, exclusivity, paired_difference
from sk_sgmcmc.model_selection import search_n_components
from tests.conftest import importorskip

X = make_lda(n_samples=200, n_features=60, n_components=4, random_state=0).counts
ESTIMATOR = BayesianLDA(n_iter=40, random_state=0)


@pytest.fixture(scope="module")
def table():
    return search_n_components(ESTIMATOR, X, [2, 4, 6])


def test_each_row_is_what_a_fit_by_hand_gives(table):
    train, test = train_test_split(X, test_size=0.1, random_state=0)
    models = {k: BayesianLDA(k, n_iter=40, random_state=0).fit(train) for k in (2, 4, 6)}
    for i, model in enumerate(models.values()):
        assert table["score"][i] == model.score(test)
        assert table["perplexity"][i] == pytest.approx(model.perplexity(test))
        assert table["coherence"][i] == pytest.approx(coherence(model.components_, X).mean())
        assert table["exclusivity"][i] == pytest.approx(exclusivity(model.components_).mean())
        assert table["stability"][i] == pytest.approx(model.topic_stability_.mean())
    best = int(np.argmax(table["score"]))
    assert table["difference"][best] == table["difference_error"][best] == 0.0
    by_hand = paired_difference(models[2]._completion(test), list(models.values())[best]._completion(test))
    assert table["difference"][0] == pytest.approx(by_hand.difference)
    assert table["difference_error"][0] == pytest.approx(by_hand.standard_error)
    assert table["n_components"].tolist() == [2, 4, 6]


def test_two_topics_are_too_few_for_four(table):
    assert table["difference"][0] < -4.0 * table["difference_error"][0]


def test_fits_side_by_side_change_nothing(table):
    both = search_n_components(ESTIMATOR, X, [2, 4, 6], n_jobs=2)
    for name in set(table) - {"seconds"}:
        np.testing.assert_array_equal(both[name], table[name])


def test_warnings_say_for_which_number_of_topics_they_are():
    short = BayesianLDA(n_iter=6, random_state=0, callbacks=lambda _, step: step >= 2)
    with pytest.warns(ConvergenceWarning) as caught:
        search_n_components(short, X, [2, 3])
        short.set_params(n_components=2).fit(X)
    said = [str(each.message).split("\n")[-1] for each in caught if each.category is ConvergenceWarning]
    assert said[:2] == ["This is about n_components=2.", "This is about n_components=3."]
    assert len(said) == 3 and "This is about" not in said[2]


def test_metadata_are_divided_with_the_documents():
    polars = importorskip("polars")
    year = np.arange(200)
    for metadata in (year[:, None], polars.DataFrame({"year": year}), {"year": year}):
        table = search_n_components(DMRTopicModel(n_iter=20, random_state=0), X, [2, 3], metadata=metadata)
        assert len(table) == 2 and np.all(np.isfinite(table["score"]))


@pytest.mark.parametrize("values", [[], [0], [2, 2], [2.5], ["a"], 2.5])
def test_wrong_values_are_refused(values):
    with pytest.raises(ValueError, match="values="):
        search_n_components(ESTIMATOR, X, values)


@pytest.mark.parametrize("estimator", [VonMisesFisherMixture(), BayesianLDA, make_pipeline(VonMisesFisherMixture())])
def test_models_without_topics_of_words_are_refused(estimator):
    with pytest.raises(TypeError, match=r"such as BayesianLDA\(\), a LatentClassModel\(\), or a Pipeline"):
        search_n_components(estimator, X, [2])


def test_a_pipeline_prepares_documents_without_those_held_out():
    texts = [" ".join(np.repeat([f"w{w}" for w in range(60)], row)) for row in X.toarray().astype(int)]
    pipeline = make_pipeline(CountVectorizer(), "passthrough", ESTIMATOR)
    table = search_n_components(pipeline, texts, [2, 4])
    train, test = train_test_split(texts, test_size=0.1, random_state=0)
    vectorizer = CountVectorizer().fit(train)
    counts = vectorizer.transform(train)
    for i, k in enumerate((2, 4)):
        model = BayesianLDA(k, n_iter=40, random_state=0).fit(counts)
        assert table["score"][i] == model.score(vectorizer.transform(test))
        assert table["coherence"][i] == pytest.approx(coherence(model.components_, vectorizer.transform(texts)).mean())
    assert not hasattr(pipeline[0], "vocabulary_")


def test_the_display_draws_four_panels(table):
    importorskip("matplotlib")
    for other in (3, table[["score"]]):
        with pytest.raises(TypeError, match="the table of search_n_components, not "):
            NumberOfTopicsDisplay.from_search(other)
    display = NumberOfTopicsDisplay.from_search(table)
    assert display.axes_[0].get_title(loc="left") == "held-out score"
    np.testing.assert_array_equal(display.axes_[1].lines[0].get_ydata(), table["coherence"])
    wide = NumberOfTopicsDisplay(
        {**{name: np.linspace(0.0, 1.0, 5) for name in table}, "n_components": 5 * 2 ** np.arange(5)}
    ).plot()
    wide.figure_.canvas.draw()
    labels = [label.get_window_extent() for label in wide.axes_[2].get_xticklabels()]
    assert not any(a.overlaps(b) for a, b in pairwise(labels))
    assert not any(label.get_visible() for label in wide.axes_[0].get_xticklabels())  # written once
    again = NumberOfTopicsDisplay(table).plot(ax=display.axes_)
    assert again.figure_ is display.figure_
    with pytest.raises(ValueError, match="one for each of the 4 panels"):
        NumberOfTopicsDisplay(table).plot(ax=display.axes_[:2])
