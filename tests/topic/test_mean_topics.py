"""Conditional means of topics that minibatches estimate, and their average over time, against dense recursions."""

import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.metrics import hellinger_distances
from sk_sgmcmc.topic._draws import AveragedDraws
from sk_sgmcmc.topic._minibatch.simplex_topics import MeanTopics

BASE = 0.1


def steps(rng, n_steps, n_words=7, n_topics=3, share=0.4):
    """Words, counts and the share forgotten of some steps."""
    for _ in range(n_steps):
        rows = np.flatnonzero(rng.random(n_words) < share)
        yield rows, rng.gamma(1.0, size=(rows.size, n_topics)), rng.random() * 0.9


def means(first, moves):
    """After each step, the mean of cells whose shapes are BASE and the counts of the step."""
    m = BASE + first
    for rows, counts, forgotten in moves:
        shape = np.full(m.shape, BASE)
        shape[rows] += counts
        m = (1.0 - forgotten) * m + forgotten * shape
        yield m


def as_topics(cells):
    return cells / cells.sum(axis=0)


@pytest.mark.parametrize("n_steps", [1, 5, 60])  # with 60 the scale is applied several times
def test_the_mean_is_that_of_the_dense_recursion(n_steps):
    rng = np.random.default_rng(0)
    first, moves = rng.gamma(1.0, size=(7, 3)), list(steps(rng, n_steps))
    mean = MeanTopics(first, worth=0.0, step=0)
    for rows, counts, forgotten in moves:
        mean.add(rows, counts, forgotten)
    *_, expected = means(first, moves)
    np.testing.assert_allclose(mean.topics(np.full((7, 3), BASE)), as_topics(expected), rtol=1e-5)


def test_an_infinite_step_forgets_everything():
    mean = MeanTopics(np.ones((3, 2)), worth=0.0, step=0)
    mean.add(np.array([1]), np.array([[2.0, 3.0]]), 1.0)
    expected = as_topics(np.array([[BASE, BASE], [BASE + 2, BASE + 3], [BASE, BASE]]))
    np.testing.assert_allclose(mean.topics(np.full((3, 2), BASE)), expected, rtol=1e-6)


@pytest.mark.parametrize("worth", [0.0, 6.0])
def test_weights_of_the_average_grow_in_proportion_to_time(worth):
    rng = np.random.default_rng(1)
    first, moves = rng.gamma(1.0, size=(7, 3)), list(steps(rng, 20))
    mean, average, time = MeanTopics(first, worth, step=0), None if worth == 0 else BASE + first, worth
    for step, (move, m) in enumerate(zip(moves, means(first, moves), strict=True), start=1):
        mean.add(*move)
        if step % 4:
            continue
        mean.look(step)
        if average is None:
            average, time = m, 0.0
        else:
            time += 4
            average = average + 8.0 / (time + 4) * (m - average)
    np.testing.assert_allclose(mean.topics(np.full((7, 3), BASE)), as_topics(average), rtol=1e-5)


def test_new_words_have_their_prior():
    mean = MeanTopics(np.ones((2, 2)), worth=1.0, step=0)
    mean.extend(1)
    expected = as_topics(np.array([[1 + BASE] * 2, [1 + BASE] * 2, [BASE] * 2]))
    np.testing.assert_allclose(mean.topics(np.full((3, 2), BASE)), expected, rtol=1e-6)


def test_means_follow_the_order_of_the_last_draw():
    rng = np.random.default_rng(2)
    topics = rng.dirichlet(np.full(40, 0.1), size=4)
    order = np.array([2, 0, 3, 1])
    draws = np.stack([topics, topics, topics[order], topics[order]])[None].astype(np.float32)
    averaged = AveragedDraws(draws, [topics[order].copy()])
    averaged.align(0, "hellinger", np.zeros(4), 2)
    assert np.all(hellinger_distances(averaged.mean_of_chain(0), draws[0].mean(axis=0)).argmin(axis=1) == np.arange(4))
    averaged.reorder(0, np.array([3, 2, 1, 0]))
    np.testing.assert_allclose(averaged.mean_of_chain(0), averaged.draw(0, -1), atol=1e-6)


def test_a_stream_has_less_noise_in_its_means_than_in_its_draws():
    truth = make_lda(n_samples=400, n_features=150, n_components=5, random_state=0)
    X = truth.counts
    model = BayesianLDA(5, batch_size=20, random_state=0)
    for start in range(0, 400, 100):
        model.partial_fit(X[start : start + 100])
    of_draws = model.samples_["components"][0].mean(axis=0, dtype=np.float64)
    both = model.components_, of_draws
    ours, theirs = (hellinger_distances(truth.components, topics).min(axis=1).mean() for topics in both)
    assert ours < theirs < 0.3
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0, rtol=1e-12)
