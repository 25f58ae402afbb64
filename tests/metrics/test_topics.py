import itertools
from functools import partial

import numpy as np
import pytest

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.metrics import (
    align_draws,
    align_topics,
    coherence,
    exclusivity,
    hellinger_distances,
    top_word_indices,
    topic_diversity,
    topic_stability,
)
from tests.naive import diagnostics as naive


@pytest.fixture(scope="module")
def data():
    return make_lda(200, 60, 4, document_length=40, random_state=0)


# ---------------------------------------------------------------------------------------------------------- coherence


@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_coherence_equals_its_slow_twin(measure, data):
    result = coherence(data.components, data.data, measure, n_words=6)
    present = data.data.toarray() > 0
    expected = [naive.coherence(np.argsort(-topic)[:6], present, measure) for topic in data.components]
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_forms_of_topics_agree(data):
    expected = coherence(data.components, data.data, n_words=5)
    top = top_word_indices(data.components, 5)
    np.testing.assert_array_equal(coherence(top, data.data, n_words=5), expected)
    words = data.feature_names[top]
    for given in (words, words.astype(object), words.tolist()):
        result = coherence(given, data.data, n_words=5, feature_names=data.feature_names)
        np.testing.assert_array_equal(result, expected)
    stack = np.stack([data.components, data.components[::-1]])[None]
    np.testing.assert_array_equal(coherence(stack, data.data, n_words=5), [[expected, expected[::-1]]])


def test_true_topics_cohere_more_than_random_words(data):
    random = np.random.default_rng(0).random(data.components.shape)
    for measure in ("npmi", "umass"):
        true, other = (coherence(topics, data.data, measure).mean() for topics in (data.components, random))
        assert true > other + 0.05


@pytest.mark.parametrize("measure", ["npmi", "umass"])
def test_zero_counts_follow_the_documented_policy(measure):
    #             always, always, twin,  twin, never together,   absent
    X = np.array([[1, 1, 1, 1, 1, 0, 0], [1, 2, 1, 1, 0, 1, 0], [1, 1, 0, 0, 0, 0, 0], [5, 1, 0, 0, 1, 0, 0]])
    pairs = np.array([[0, 1], [2, 3], [4, 5], [4, 6], [6, 4]])
    expected = {"npmi": [0, 1, -1, -1, -1], "umass": np.log([5 / 4, 3 / 2, 1 / 2, 1 / 2, 1])}[measure]
    np.testing.assert_allclose(coherence(pairs, X, measure), expected, atol=1e-12)
    assert np.isfinite(coherence(np.full((2, 7), 1 / 7), np.zeros((3, 7)), measure)).all()


def test_coherence_of_bad_input(data):
    with pytest.raises(ValueError, match='"npmi" or "umass"'):
        coherence(data.components, data.data, "c_v")
    with pytest.raises(ValueError, match="same vocabulary"):
        coherence(data.components[:, :-1], data.data)
    with pytest.raises(ValueError, match="at least 2 top words"):
        coherence(data.components, data.data, n_words=1)
    with pytest.raises(ValueError, match="feature_names="):
        coherence([["a", "b"]], data.data)
    with pytest.raises(ValueError, match="not among feature_names"):
        coherence([["a", "b"]], data.data, feature_names=data.feature_names)
    with pytest.raises(ValueError, match="columns 0 to 59"):
        coherence([[1, 60]], data.data)
    with pytest.raises(ValueError, match="NaN"):
        coherence(data.components * np.nan, data.data)
    with pytest.raises(TypeError, match="sparse matrix, as counts are"):
        coherence(data.data, data.components)
    for function in (partial(coherence, X=data.data), exclusivity, topic_diversity):
        with pytest.raises(TypeError, match="give its components_"):
            function(BayesianLDA())
    with pytest.raises(ValueError, match="Negative"):
        coherence(data.components, -data.data)
    with pytest.raises(ValueError, match="word probabilities, of a float dtype, got int64"):
        exclusivity(np.argsort(-data.components)[:, :10])


def test_diversity():
    assert topic_diversity(np.eye(4), 1) == 1
    assert topic_diversity(np.tile(np.arange(8.0), (4, 1)), 3) == 0.25
    assert topic_diversity([["a", "b"], ["b", "c"]]) == 0.75
    np.testing.assert_array_equal(topic_diversity(np.stack([np.eye(4), np.ones((4, 4))]), 1), [1, 0.25])


def test_top_words_break_ties_by_column():
    np.testing.assert_array_equal(top_word_indices([[0.2, 0.3, 0.3, 0.2]], 3), [[1, 2, 0]])
    with pytest.raises(ValueError, match="n_words"):
        top_word_indices([[1.0]], 0)


# ---------------------------------------------------------------------------------------------------------- alignment


def noisy(topics, rng, concentration=2000):
    return np.array([rng.dirichlet(concentration * topic + 1e-3) for topic in topics])


def test_hellinger_distances():
    p, q = np.array([[0.5, 0.5, 0]]), np.array([[0.5, 0.5, 0], [0, 0, 1.0], [0.1, 0.4, 0.5]])
    expected = [np.linalg.norm(np.sqrt(p[0]) - np.sqrt(row)) / np.sqrt(2) for row in q]
    np.testing.assert_allclose(hellinger_distances(p, q)[0], expected, atol=1e-12)


def test_alignment_is_the_best_of_all_permutations():
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet(np.ones(6), (2, 4))
    cost = hellinger_distances(a, b)
    best = min(itertools.permutations(range(4)), key=lambda order: sum(cost[range(4), order]))
    np.testing.assert_array_equal(align_topics(a, b), best)


def test_alignment_undoes_a_permutation(data):
    rng = np.random.default_rng(0)
    order = rng.permutation(4)
    np.testing.assert_array_equal(align_topics(data.components, noisy(data.components, rng)[order]), np.argsort(order))
    more = np.vstack([rng.dirichlet(np.ones(60), 2), data.components])
    np.testing.assert_array_equal(align_topics(data.components, more), [2, 3, 4, 5])


def test_draws_of_several_chains_are_aligned_without_a_reference(data):
    rng = np.random.default_rng(0)
    orders = np.array([[rng.permutation(4) for _ in range(5)] for _ in range(3)])
    draws = np.array([[noisy(data.components, rng)[order] for order in chain] for chain in orders])
    found = align_draws(draws)
    assert found.shape == (3, 5, 4)
    aligned = np.take_along_axis(draws, found[..., None], axis=-2)
    true_topics = np.take_along_axis(orders, found, axis=-1)
    assert np.all(true_topics == true_topics[0, 0])
    assert aligned.std(axis=(0, 1)).max() < 0.05 < draws.std(axis=(0, 1)).max()
    # the last draw of the first chain, to which all are matched first, keeps its own order
    np.testing.assert_array_equal(found[0, -1], np.arange(4))
    assert not np.array_equal(orders[0, -1], orders[0, 0])


def test_draws_are_numbered_alike_within_groups_only(data):
    rng = np.random.default_rng(0)
    draws = np.array([[noisy(data.components, rng) for _ in range(3)] for _ in range(2)])
    draws[1] = draws[1][:, [2, 3, 0, 1]]
    groups = [0.1, 5.0, 0.1, 7.0]  # topics 0 and 2 may change places, 1 and 3 may not
    expected = np.tile(np.arange(4), (2, 3, 1))
    expected[1] = [2, 1, 0, 3]
    np.testing.assert_array_equal(align_draws(draws, groups=groups), expected)
    np.testing.assert_array_equal(align_draws(draws, groups=np.ones(4)), align_draws(draws))
    for each in (groups, np.ones(4)):
        order = align_topics(draws[0, -1], draws[1, 0], groups=each)
        np.testing.assert_array_equal(order, align_draws(draws, groups=each)[1, 0])
    with pytest.raises(ValueError, match=r"groups has shape \(3,\).*4 topics"):
        align_topics(draws[0, 0], draws[0, 1], groups=[1, 2, 3])


def test_stability_tells_the_stable_topic_from_the_others(data):
    rng = np.random.default_rng(0)
    draws = np.array([[noisy(data.components, rng) for _ in range(6)] for _ in range(2)])
    draws[:, :, 2] = rng.dirichlet(np.full(60, 0.1), (2, 6))
    stability = topic_stability(draws, aligned=True)
    assert stability[2] < 0.6 < 0.85 < np.delete(stability, 2).min()
    shuffled = np.array([[draw[rng.permutation(4)] for draw in chain] for chain in draws])
    np.testing.assert_allclose(np.sort(topic_stability(shuffled)), np.sort(stability), atol=1e-12)
    assert topic_stability(shuffled, aligned=True).max() < 0.8
    np.testing.assert_allclose(topic_stability(np.stack([data.components] * 3)), 1, atol=1e-7)


def test_stability_of_directions_is_by_the_cosine():
    angle = np.array([0.1, -0.1])
    draws = np.stack([np.cos(angle), np.sin(angle)], axis=1)[:, None]  # two draws of one topic, 0.1 to either side
    stability = topic_stability(draws, aligned=True, metric="cosine")
    np.testing.assert_allclose(stability, 1 - np.sqrt(1 - np.cos(0.1)))
    with pytest.raises(ValueError, match="metric='euclid'"):
        topic_stability(draws, metric="euclid")


def test_alignment_of_bad_input(data):
    with pytest.raises(ValueError, match="same number of columns"):
        align_topics(data.components, data.components[:, :-1])
    with pytest.raises(ValueError, match="exchange the two arguments"):
        align_topics(data.components, data.components[:-1])
    for function in (align_draws, topic_stability):
        with pytest.raises(ValueError, match="n_components, n_features"):
            function(data.components)
