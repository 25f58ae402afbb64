"""Distances of partitions against their definitions, and the partition that stands for many."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from sk_sgmcmc.metrics import co_clustering, partition_distance, point_partition


def entropy(labels):
    p = np.bincount(labels) / len(labels)
    return -np.sum(p[p > 0] * np.log(p[p > 0]))


def test_distances_are_those_of_the_definitions(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    a, b = rng.integers(4, size=50), rng.integers(3, size=50)
    vi = entropy(a) + entropy(b) - 2 * mutual_info_score(a, b)
    np.testing.assert_allclose(partition_distance(a, b), vi)
    apart = (a[:, None] == a) != (b[:, None] == b)
    np.testing.assert_allclose(partition_distance(a, b, loss="binder"), apart.mean())
    for loss in ("vi", "binder"):
        assert partition_distance(a, 10 - 3 * a, loss=loss) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_point_partition_stands_for_noisy_draws(loss, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    truth = np.sort(rng.integers(4, size=60))
    draws = np.tile(truth, (30, 1))
    wrong = rng.random(draws.shape) < 0.1
    draws[wrong] = rng.integers(4, 9, size=wrong.sum())  # small clusters of strays
    draws = np.array([rng.permutation(9)[draw] for draw in draws])  # labels that mean nothing
    partition, expected = point_partition(draws, loss=loss)
    np.testing.assert_allclose(expected, np.mean([partition_distance(partition, d, loss=loss) for d in draws]))
    assert all(expected <= np.mean([partition_distance(c, d, loss=loss) for d in draws]) + 1e-12 for c in draws)
    assert partition_distance(partition, truth, loss=loss) < np.mean(
        [partition_distance(d, truth, loss=loss) for d in draws]
    )
    np.testing.assert_array_equal(np.sort(np.bincount(partition))[::-1], np.bincount(partition))


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_merging_clusters_of_strays_beats_every_draw(loss):
    rng = np.random.default_rng(0)
    truth = np.arange(60) // 15
    draws = np.tile(truth, (30, 1))
    wrong = rng.random(draws.shape) < 0.1
    draws[wrong] = rng.integers(4, 9, size=wrong.sum())
    partition, expected = point_partition(draws, loss=loss)
    assert expected < 0.9 * min(np.mean([partition_distance(c, d, loss=loss) for d in draws]) for c in draws)
    assert partition_distance(partition, truth, loss=loss) == pytest.approx(0, abs=1e-12)


def test_co_clustering_counts_draws():
    together = co_clustering([[0, 0, 1], [1, 0, 1]])
    np.testing.assert_allclose(together, [[1, 0.5, 0.5], [0.5, 1, 0], [0.5, 0, 1]])


@pytest.mark.parametrize("call", [
    lambda: partition_distance([0, 1], [0]), lambda: partition_distance([0, 1], [0, 1], loss="l2"),
    lambda: point_partition([0, 1]), lambda: co_clustering(np.empty((2, 0))),
])  # fmt: skip
def test_bad_input_is_refused(call):
    with pytest.raises(ValueError, match=r"partitions|loss|labels"):
        call()
