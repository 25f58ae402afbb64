"""The fixed point of a Dirichlet-multinomial's parameter, against SciPy's digamma and by what it must recover."""

import numpy as np
import pytest
from scipy.special import digamma

from sk_sgmcmc.kernels.math.dirichlet import add_statistics, fixed_point

ALPHA = np.array([0.05, 0.4, 3.0])


def documents(n_docs, rng, length=40):
    """Counts of topics, (n_docs, 3); the last document has a word only, and none of the last topic."""
    counts = np.array([rng.multinomial(length, rng.dirichlet(ALPHA)) for _ in range(n_docs)], dtype=float)
    counts[-1] = [1.0, 0.0, 0.0]
    return counts


def statistics(counts, alpha):
    """Sums over documents of digamma(alpha + n) - digamma(alpha): of each topic, and of the whole."""
    lengths = counts.sum(axis=1)
    whole = (digamma(alpha.sum() + lengths) - digamma(alpha.sum())).sum()
    return np.append((digamma(alpha + counts) - digamma(alpha)).sum(axis=0), whole)


@pytest.mark.parametrize("prior_shape", [1.0, 1.5])
def test_a_step_is_equation_55_under_its_prior(prior_shape):
    counts = documents(20, np.random.default_rng(0))
    *above, below = statistics(counts, ALPHA)
    expected = (ALPHA * np.array(above) + prior_shape - 1.0 + 1e-3) / (below + 1e-3)
    np.testing.assert_allclose(fixed_point(counts, counts.sum(axis=1), ALPHA, prior_shape), expected, rtol=1e-10)


def test_a_topic_without_counts_keeps_a_positive_parameter():
    counts = documents(20, np.random.default_rng(0))
    counts[:, 1] = 0.0
    alpha = ALPHA
    for _ in range(200):
        alpha = fixed_point(counts, counts.sum(axis=1), alpha, 1.0)
    assert 1e-5 <= alpha[1] < 1e-4 and np.all(alpha[[0, 2]] > 0.01)


def test_the_fixed_point_is_the_law_that_the_documents_have(global_random_seed):
    counts = documents(4000, np.random.default_rng(global_random_seed))
    alpha = np.ones(3)
    for _ in range(300):
        alpha = fixed_point(counts, counts.sum(axis=1), alpha, 1.0)
    np.testing.assert_allclose(alpha, ALPHA, rtol=0.15)


@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_of_assignments_are_those_of_their_counts(weighted):
    rng = np.random.default_rng(0)
    lengths = np.array([5, 0, 12, 1])
    token_ptr = np.concatenate([[0], np.cumsum(lengths)])
    z = rng.integers(3, size=lengths.sum(), dtype=np.uint16)
    weights = rng.uniform(0.2, 1.0, z.size) if weighted else np.empty(0)
    counts = np.zeros((4, 3))
    np.add.at(counts, (np.repeat(np.arange(4), lengths), z), weights if weighted else 1.0)
    sums = np.zeros(4)
    for start, stop in [(0, 1), (1, 4)]:
        add_statistics(start, stop, token_ptr, weights, z, ALPHA, sums)
    np.testing.assert_allclose(sums, statistics(counts, ALPHA), rtol=1e-10)
