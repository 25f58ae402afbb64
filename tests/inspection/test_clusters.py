"""Pictures of clusters show what the mixture's tables hold."""

import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA, DPCategoricalMixture
from sk_sgmcmc.inspection import CoClusteringDisplay, ProfileDisplay
from sk_sgmcmc.metrics import partition_distance
from tests.conftest import importorskip

LEVELS = ("no", "perhaps", "yes")


@pytest.fixture(scope="module")
def frame():
    pandas = importorskip("pandas")
    rng = np.random.default_rng(0)
    group = np.arange(90) % 3
    return pandas.DataFrame(
        {
            f"q{j}": pandas.Categorical.from_codes(
                np.where(rng.random(90) < 0.85, group, rng.integers(3, size=90)), LEVELS, ordered=True
            )
            for j in range(6)
        }
    )


@pytest.fixture(scope="module")
def mixture(frame):
    return DPCategoricalMixture(likelihood="categorical", n_iter=60, random_state=0).fit(frame)


@pytest.fixture
def plt():
    plt = importorskip("matplotlib.pyplot")
    yield plt
    plt.close("all")


def test_profiles_are_those_of_the_table(mixture, plt):
    display = ProfileDisplay.from_estimator(mixture, clusters=[1, 0], features=["q3", "q0"], interval=0.8)
    table = mixture.profile_table(interval=0.8).set_index(["cluster", "feature"])
    for i, cluster in enumerate([1, 0]):
        rows = [table.loc[(cluster, name)] for name in ("q3", "q0")]
        for name in ("probability", "low", "high"):
            np.testing.assert_array_equal(getattr(display, name)[i], np.concatenate([row[name] for row in rows]))
        dots = display.axes_[i].lines[0].get_xdata()
        np.testing.assert_array_equal(dots, display.probability[i])
        assert display.axes_[i].get_title(loc="left").startswith(f"cluster {cluster} (")
    labels = [label.get_text() for label in display.axes_[0].get_yticklabels()]
    assert labels == ["q3: no", "perhaps", "yes", "q0: no", "perhaps", "yes"]
    assert "80%" in display.figure_._supxlabel.get_text()
    display.figure_.canvas.draw()


def test_profiles_go_where_they_are_put(mixture, plt):
    figure, axes = plt.subplots(1, 2)
    display = ProfileDisplay.from_estimator(mixture, clusters=[0, 1], ax=axes)
    assert display.figure_ is figure and list(display.axes_) == list(axes)
    assert display.plot().figure_ is not figure
    for bad, message in (
        ({"clusters": [99]}, "clusters"), ({"clusters": []}, "clusters"), ({"features": ["q9"]}, "q9"),
        ({"interval": None}, "interval"), ({"interval": 2}, "interval"), ({"ax": [axes[0]], "clusters": [0, 1]}, "ax"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            ProfileDisplay.from_estimator(mixture, **bad)


def test_of_many_columns_those_are_shown_in_which_clusters_differ(plt):
    rng = np.random.default_rng(0)
    X = (rng.random((200, 60)) < 0.5).astype(float)
    own = [3, 7, 8, 31, 32, 50, 51, 59]
    X[:, own] = (np.arange(200) % 2)[:, None]
    mixture = DPCategoricalMixture(likelihood="bernoulli", n_iter=30, random_state=0).fit(X)
    display = ProfileDisplay.from_estimator(mixture)
    assert display.features.size == 40 and set(map(str, own)) <= set(display.features)
    assert display.features.tolist() == sorted(display.features, key=int)


def test_the_heat_map_is_co_clustering_in_another_order(mixture, frame, plt):
    display = CoClusteringDisplay.from_estimator(mixture, frame)
    together = mixture.co_clustering(frame)
    np.testing.assert_array_equal(display.together, together[np.ix_(display.rows, display.rows)])
    np.testing.assert_array_equal(display.labels, mixture.predict(frame)[display.rows])
    assert np.all(np.diff(display.labels) >= 0) and set(display.rows) == set(range(90))
    np.testing.assert_array_equal(display.image_.get_array(), display.together)
    display.figure_.canvas.draw()
    # Neighbours are together more often than in the order of the rows.
    of_neighbours = np.diag(display.together, k=1).mean()
    assert of_neighbours > np.diag(together[np.ix_(np.sort(display.rows), np.sort(display.rows))], k=1).mean()


def test_the_heat_map_of_some_rows(mixture, frame, plt):
    _, ax = plt.subplots()
    display = CoClusteringDisplay.from_estimator(mixture, frame, n_rows=10, ax=ax)
    assert display.ax_ is ax and display.together.shape == (10, 10) and display.rows.max() == 89
    with pytest.raises(ValueError, match="n_rows=1"):
        CoClusteringDisplay.from_estimator(mixture, frame, n_rows=1)


def test_what_has_no_clusters_is_named():
    for display, X in ((ProfileDisplay, ()), (CoClusteringDisplay, (np.eye(3),))):
        with pytest.raises(TypeError, match="BayesianLDA does not have"):
            display.from_estimator(BayesianLDA(2), *X)


def test_the_consensus_is_near_the_draws(mixture, frame):
    found = mixture.consensus_partition(frame, interval=0.5)
    assert partition_distance(found.labels, np.arange(90) % 3) < 0.5
    assert found.radius >= 0 and found.labels.dtype == np.int64
    wide = mixture.consensus_partition(frame, interval=0.99)
    assert wide.radius >= found.radius and wide.expected_loss == found.expected_loss
    np.testing.assert_array_equal(wide.labels, found.labels)
    sizes = np.bincount(found.labels)
    assert np.all(np.diff(sizes) <= 0)
    binder = mixture.consensus_partition(frame, loss="binder")
    # It has a smaller expected Binder loss than the draws themselves have on average.
    together = mixture.co_clustering(frame)
    loss = np.mean(((binder.labels[:, None] == binder.labels) - together) ** 2)
    assert loss <= np.mean(together * (1 - together)) + 0.01
    draws = [each.argmax(axis=1) for _, each in mixture._each_draw(mixture._encoded(frame))]
    apart = [partition_distance(binder.labels, draw, "binder") for draw in draws]
    assert binder.radius == np.quantile(apart, 0.9) > 0.0
    assert binder.expected_loss == pytest.approx(np.mean(apart))
    with pytest.raises(ValueError, match="loss='l2'"):
        mixture.consensus_partition(frame, loss="l2")
