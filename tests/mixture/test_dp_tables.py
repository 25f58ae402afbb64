"""What a fitted `DPCategoricalMixture` says of rows that it has not met, and what its tables rank."""

import numpy as np
import pytest

from sk_sgmcmc import DPCategoricalMixture


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
