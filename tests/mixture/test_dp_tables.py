"""What a fitted `DPCategoricalMixture` says of rows that it has not met, and what its tables rank."""

import numpy as np
import pytest

from sk_sgmcmc import DPCategoricalMixture
from sk_sgmcmc.inspection import ProfileDisplay, to_arviz
from tests.conftest import importorskip


@pytest.fixture(scope="module")
def model():
    """Three clusters of counts: a first column that is frequent in all rows, and a last one that is in none."""
    rng = np.random.default_rng(0)
    rates = np.full((3, 8), 0.2)
    rates[:, 0], rates[:, 7] = 12.0, 0.0
    for c in range(3):
        rates[c, 1 + 2 * c : 3 + 2 * c] = 6.0
    X = rng.poisson(rates[np.arange(90) % 3]).astype(float)
    X[::15] = rng.poisson(2.0, (6, 8))  # strays, which have clusters of their own in some draws
    return DPCategoricalMixture(n_iter=120, random_state=0, n_chains=2).fit(X)


def test_two_rows_of_a_component_yet_unseen_count_as_apart(model):
    unseen, known = np.eye(8)[[7, 7]] * 60.0, np.eye(8)[[0, 0]] * 12.0 + np.eye(8)[[1, 1]] * 12.0
    assert model.co_clustering(unseen)[0, 1] < 0.1
    assert model.co_clustering(known)[0, 1] > 0.6


def test_categories_are_ranked_by_probability_times_the_logarithm_of_the_lift(model):
    table = model.top_categories(n=8)
    score = np.asarray(table["probability"]) * np.log(np.asarray(table["lift"]))
    cluster, rank = np.asarray(table["cluster"]), np.asarray(table["rank"])
    for c in range(3):
        of_cluster = score[cluster == c][np.argsort(rank[cluster == c])]
        assert np.all(np.diff(of_cluster) <= 1e-12)
        # The most probable category of all marks no cluster.
        assert np.asarray(table["feature"])[(cluster == c) & (rank == 1)] != 0
        assert np.argmax(np.asarray(table["probability"])[cluster == c][np.argsort(rank[cluster == c])]) > 0


def test_components_behind_the_clusters_come_by_weight(model):
    others = model.samples_["weights"][:, :, model.n_clusters_ :]
    assert np.any(others[..., 0] > others[..., 1]), "no draw has other components, and nothing is shown"
    assert np.all(np.diff(others, axis=-1) <= 0)


def test_the_profile_holds_every_level_in_order():
    levels = np.array(["young", "mid", "old"])
    rng = np.random.default_rng(0)
    X = np.column_stack([levels[rng.integers(3, size=60)], rng.integers(2, size=60)]).astype(object)
    model = DPCategoricalMixture(likelihood="categorical", n_iter=40, random_state=0).fit(X)
    table = model.profile_table(interval=0.8)
    assert list(table)[:4] == ["cluster", "weight", "feature", "level"]
    first = table[table["cluster"] == 0]
    assert first["level"].tolist() == [*model.categories_[0], *model.categories_[1]]
    by_feature = first.groupby("feature")["probability"].sum()
    np.testing.assert_allclose(by_feature, 1.0, rtol=1e-5)
    assert np.all((table["low"] <= table["probability"]) & (table["probability"] <= table["high"]))
    top = model.top_categories(n=5, interval=0.8).set_index(["cluster", "feature", "level"]).sort_index()
    same = table.set_index(["cluster", "feature", "level"]).loc[top.index]
    np.testing.assert_array_equal(top[["probability", "low", "high"]], same[["probability", "low", "high"]])


def test_the_posterior_of_the_number_of_clusters(model):
    table = model.n_clusters_posterior()
    numbers = model.samples_["n_clusters"]
    assert table["probability"].sum() == pytest.approx(1.0)
    np.testing.assert_allclose(table["probability"], [(numbers == n).mean() for n in table["n_clusters"]])


def test_clusters_are_features_of_a_pipeline(model):
    X = np.random.default_rng(1).poisson(2.0, (5, 8))
    np.testing.assert_array_equal(model.transform(X), model.predict_proba(X))
    assert list(model.get_feature_names_out()) == [f"dpcategoricalmixture{c}" for c in range(model.n_clusters_)]


def test_texts_for_counts_name_the_likelihood_that_takes_them():
    with pytest.raises(ValueError, match='likelihood="categorical"'):
        DPCategoricalMixture().fit([["red", "blue"], ["red", "green"]])


def test_names_given_to_fit_are_in_every_table():
    X = (np.random.default_rng(0).random((60, 4)) < 0.5).astype(float)
    names = ["news", "sport", "films", "shop"]
    model = DPCategoricalMixture(likelihood="bernoulli", n_iter=20, random_state=0).fit(X, feature_names=names)
    assert np.asarray(model.profile_table()["feature"])[:4].tolist() == names
    assert set(np.asarray(model.top_categories(2)["feature"])) <= set(names)
    importorskip("matplotlib")
    assert ProfileDisplay.from_estimator(model, features=["films"]).features.tolist() == ["films"]
    importorskip("arviz")
    assert to_arviz(model).posterior["components"].coords["entry"].values.tolist() == names
    with pytest.raises(ValueError, match="must hold 4 names"):
        model.fit(X, feature_names=names[:2])
    assert np.asarray(model.fit(X).profile_table()["feature"])[:2].tolist() == [0, 1]


def test_streams_take_names_and_keep_them():
    X = (np.random.default_rng(0).random((60, 4)) < 0.5).astype(float)
    names = ["news", "sport", "films", "shop"]
    model = DPCategoricalMixture(likelihood="bernoulli", keep_rows=False, n_iter=50, random_state=0)
    model.partial_fit(X, feature_names=names)
    assert np.asarray(model.partial_fit(X).profile_table()["feature"])[:4].tolist() == names
    renamed = model.partial_fit(X, feature_names=names[::-1])
    assert np.asarray(renamed.profile_table()["feature"])[:4].tolist() == names[::-1]
    with pytest.raises(ValueError, match="must hold 4 names"):
        model.partial_fit(X, feature_names=names[:2])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_probabilities_of_clusters_come_as_a_frame(model, library):
    importorskip(library)
    X = np.random.default_rng(0).poisson(2.0, (5, 8)).astype(float)
    frame = model.set_output(transform=library).transform(X)
    model.set_output(transform="default")
    assert list(frame.columns) == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(frame.to_numpy(), model.transform(X))
