import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc.datasets import make_dmr, make_gamma_process, make_lda


def test_shapes_and_truth():
    data = make_lda(30, 50, 3, random_state=0)
    assert sparse.issparse(data.data)
    assert data.data.shape == (30, 50)
    assert data.counts is data.data
    assert data.data.dtype == np.int64
    assert data.feature_names.tolist()[:2] == ["word00", "word01"]
    np.testing.assert_allclose(data.components.sum(axis=1), 1)
    np.testing.assert_allclose(data.doc_topics.sum(axis=1), 1)
    assert (data.components.shape, data.doc_topics.shape) == ((3, 50), (30, 3))


def test_same_seed_same_data_and_other_seed_other_data():
    a, b, c = (make_lda(random_state=seed) for seed in (1, np.random.SeedSequence(1), 2))
    np.testing.assert_array_equal(a.data.toarray(), b.data.toarray())
    assert (a.data != c.data).nnz > 0


def test_more_documents_change_neither_topics_nor_proportions():
    few, many = (make_lda(n, random_state=0) for n in (10, 20))
    np.testing.assert_array_equal(few.components, many.components)
    np.testing.assert_array_equal(few.doc_topics, many.doc_topics[:10])


def test_words_follow_the_truth(global_random_seed):
    data = make_lda(2000, 20, 3, document_length=100, random_state=global_random_seed)
    expected = data.doc_topics @ data.components * np.asarray(data.data.sum(axis=1)).reshape(-1, 1)
    difference = np.asarray(data.data.sum(axis=0)).ravel() - expected.sum(axis=0)
    assert np.abs(difference / np.sqrt(expected.sum(axis=0) + 1)).max() < 5


def test_proportions_have_the_moments_of_their_prior(global_random_seed):
    alpha = np.array([0.05, 0.5, 2.0])
    theta = make_lda(5000, 5, 3, 1, alpha, random_state=global_random_seed).doc_topics
    total = alpha.sum()
    mean, variance = alpha / total, alpha * (total - alpha) / total**2 / (total + 1)
    assert np.abs((theta.mean(axis=0) - mean) / np.sqrt(variance / 5000)).max() < 5
    np.testing.assert_allclose(theta.var(axis=0), variance, rtol=0.25)


def test_document_lengths_as_given():
    lengths = np.arange(7)
    data = make_lda(7, document_length=lengths, random_state=0)
    np.testing.assert_array_equal(np.asarray(data.data.sum(axis=1)).ravel(), lengths)
    mean = make_lda(2000, 30, 2, 50, random_state=0).data.sum() / 2000
    assert abs(mean - 50) < 5 * np.sqrt(50 / 2000)


def test_tiny_priors_give_finite_rows():
    data = make_lda(10, 100, 3, doc_topic_prior=1e-4, topic_word_prior=1e-4, random_state=0)
    assert np.isfinite(data.components).all()
    np.testing.assert_allclose(data.components.sum(axis=1), 1)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"doc_topic_prior": -1}, "doc_topic_prior must be a positive"),
        ({"topic_word_prior": np.ones(3)}, r"topic_word_prior .* shape \((300|100),\)"),
        ({"document_length": [1, 2]}, "document_length has shape"),
        ({"document_length": -1}, "document_length must not be negative"),
    ],
)
def test_bad_arguments_are_named(change, message):
    for make in (make_lda, make_dmr):
        with pytest.raises(ValueError, match=message):
            make(**change)


def test_metadata_need_a_column():
    with pytest.raises(ValueError, match="n_metadata must be at least 1, got 0"):
        make_dmr(n_metadata=0)


def test_proportions_follow_metadata(global_random_seed):
    data = make_dmr(4000, 20, 3, 2, 10, random_state=global_random_seed)
    assert data.metadata.shape == (4000, 2) and data.coef.shape == (3, 3)
    np.testing.assert_allclose(data.metadata[:, 0].mean(), 0, atol=1e-12)
    assert set(np.unique(data.metadata[:, 1])) == {0.0, 1.0}
    alpha = np.exp(data.coef[:, 0] + data.metadata @ data.coef[:, 1:].T)
    expected = alpha / alpha.sum(axis=1, keepdims=True)
    spread = np.sqrt(expected * (1 - expected) / (alpha.sum(axis=1, keepdims=True) + 1))
    for some in (data.metadata[:, 1] == 0, data.metadata[:, 0] > 1):
        error = (data.doc_topics - expected)[some].sum(axis=0) / np.sqrt((spread[some] ** 2).sum(axis=0))
        assert np.abs(error).max() < 5
    again = make_dmr(4000, 20, 3, 2, 10, random_state=global_random_seed)
    np.testing.assert_array_equal(data.counts.toarray(), again.counts.toarray())


def test_gamma_process_counts_have_the_moments_of_the_model(global_random_seed):
    data = make_gamma_process(4000, 20, weights=[0.2, 0.7], scale_prior=(30.0, 9.0), random_state=global_random_seed)
    assert list(data.weights) == [0.7, 0.2] and data.components.shape == (2, 20)
    mean = 30.0 / 8.0  # of p / (1 - p)
    lengths = np.asarray(data.counts.sum(axis=1)).ravel()
    assert abs(lengths.mean() - 0.9 * mean) < 5 * lengths.std() / np.sqrt(4000)
    assert abs(data.activities.mean(axis=0) - mean * data.weights).max() < 0.5
    again = make_gamma_process(4000, 20, weights=[0.2, 0.7], scale_prior=(30.0, 9.0), random_state=global_random_seed)
    assert (again.counts != data.counts).nnz == 0
    assert make_gamma_process(5, 10, random_state=0).weights.size > 3
    for wrong in ({"n_samples": 0}, {"concentration": 0.0}, {"rate": -1.0}, {"weights": [1.0, 0.0]}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            make_gamma_process(**wrong)
