"""Kernels of Dirichlet-multinomial regression, and those of LDA where documents have priors of their own."""

import numpy as np
import pytest
from scipy.special import digamma

from sk_sgmcmc.kernels.models.dmr import count_cells, dirichlet_information, dirichlet_multinomial
from sk_sgmcmc.kernels.models.lda import assignments as lda
from sk_sgmcmc.topic._counts.corpus import Described, Shard
from sk_sgmcmc.topic._dmr.group_counts import counts_of_rows, group_counts
from tests.kernels.test_lda import N_TOPICS, SEED, Setting
from tests.naive import dmr as naive_dmr
from tests.naive import lda as naive

# Tiny, ordinary and large parameters; counts on both sides of the change from sums to digamma functions.
ALPHA = np.array([[1e-9, 0.1, 3.0], [2.0, 1e-5, 500.0]])
COUNTS = np.array([[3.0, 0.0, 1.0], [0.0, 19.0, 25.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.0, 40.0]])
GROUP = np.array([0, 0, 1, 1, 1])


def of_groups(values):
    return np.stack([values[g == GROUP].sum(axis=0) for g in (0, 1)])


def test_likelihood_and_its_derivative_equal_their_twin():
    residual = np.empty((2, 3))
    value = dirichlet_multinomial(*counts_of_rows(COUNTS, GROUP), ALPHA, True, residual)
    assert value == pytest.approx(naive_dmr.log_likelihood(COUNTS, ALPHA[GROUP]), rel=1e-12)
    np.testing.assert_allclose(residual, of_groups(naive_dmr.gradient(COUNTS, ALPHA[GROUP])), rtol=1e-9)
    assert dirichlet_multinomial(*counts_of_rows(COUNTS, GROUP), ALPHA, False, residual) == 0.0


def test_derivative_equals_finite_differences():
    residual, nowhere = np.empty((2, 3)), np.empty((2, 3))
    dirichlet_multinomial(*counts_of_rows(COUNTS, GROUP), ALPHA, False, residual)
    h = 1e-5
    for g in range(2):
        for k in range(3):
            ends = []
            for sign in (1.0, -1.0):
                alpha = ALPHA.copy()
                alpha[g, k] *= np.exp(sign * h)
                ends.append(dirichlet_multinomial(*counts_of_rows(COUNTS, GROUP), alpha, True, nowhere))
            assert residual[g, k] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-5)


def test_small_parameters_keep_their_digits():
    # One token in a topic of parameter a: a [psi(a + 1) - psi(a)] is 1, whatever a; a difference of digammas loses it.
    alpha, residual = np.array([[1e-12, 1e-12]]), np.empty((1, 2))
    dirichlet_multinomial(*counts_of_rows(np.array([[1.0, 0.0]]), np.array([0])), alpha, False, residual)
    np.testing.assert_allclose(residual, [[0.5, -0.5]], rtol=1e-12)


def parts(counts, group, alpha):
    own, common, tables = np.empty_like(alpha), np.empty(len(alpha)), np.empty_like(alpha)
    dirichlet_information(*counts_of_rows(counts, group), alpha, own, common, tables)
    return own, common, tables


def test_information_gives_the_second_derivatives():
    # Own and common parts, less the first derivative, are minus the Hessian exactly.
    own, common, tables = parts(COUNTS, GROUP, ALPHA)
    residual, h = np.empty((2, 3)), 1e-4
    dirichlet_multinomial(*counts_of_rows(COUNTS, GROUP), ALPHA, False, residual)
    for k in range(3):
        ends = []
        for sign in (1.0, -1.0):
            alpha, end = ALPHA.copy(), np.empty((2, 3))
            alpha[:, k] *= np.exp(sign * h)
            dirichlet_multinomial(*counts_of_rows(COUNTS, GROUP), alpha, False, end)
            ends.append(end)
        expected = -common[:, None] * ALPHA * ALPHA[:, [k]]
        expected[:, k] += own[:, k] - residual[:, k]
        np.testing.assert_allclose((ends[1] - ends[0]) / (2 * h), expected, rtol=1e-4, atol=1e-5)
    whole = ALPHA[GROUP].sum(axis=1)
    rise = digamma(whole + COUNTS.sum(axis=1)) - digamma(whole)
    np.testing.assert_allclose(tables, of_groups(ALPHA[GROUP] * rise[:, None]), rtol=1e-9)
    whole_counts = np.floor(COUNTS)
    own, _, tables = parts(whole_counts, GROUP, ALPHA)
    dirichlet_multinomial(*counts_of_rows(whole_counts, GROUP), ALPHA, False, residual)
    assert np.all(own - residual <= tables + 1e-9)


def test_the_expected_second_derivatives_are_those_of_the_information(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    alpha = np.array([[0.3, 2.0, 5.0]])
    counts = np.array([rng.multinomial(15, p) for p in rng.dirichlet(alpha[0], 20_000)]).astype(float)
    residual = np.empty((1, 3))
    dirichlet_multinomial(*counts_of_rows(counts, np.zeros(len(counts), np.int64)), alpha, False, residual)
    own, common, _ = parts(counts, np.zeros(len(counts), np.int64), alpha)
    information = np.diag(own[0]) - common[0] * np.outer(alpha, alpha)
    # The score has mean 0 and the information as its covariance.
    assert residual[0] @ np.linalg.solve(information, residual[0]) < 40
    assert np.linalg.eigvalsh(information)[0] > 0


def sorted_rows(*columns):
    rows = np.column_stack(columns)
    return rows[np.lexsort(rows.T)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("group", [[0] * 9, [0, 0, 0, 1, 1, 2, 2, 2, 3], range(9)], ids=["one", "some", "all"])
def test_cells_are_the_counts_of_the_groups_documents(group, weighted):
    setting, group = Setting(weighted), np.array(group, dtype=np.int64)
    setting.z[setting.token_ptr[4] :] %= 2  # counts on both sides of the longest that are collected
    counts = np.zeros((9, N_TOPICS))
    for d in range(9):
        for i, _, weight in setting.tokens(d):
            counts[d, setting.z[i]] += weight
    n_words, described = int(setting.words.max()) + 1, Described(group, np.empty((9, 0)))
    shard = Shard(setting.token_ptr, setting.words, setting.weights, 0, n_words, described)
    ours, plain = group_counts(shard, setting.z, N_TOPICS), counts_of_rows(counts, group)
    for (*key, times), (*key_of_plain, times_of_plain) in ((ours[:3], plain[:3]), (ours[3:], plain[3:])):
        keys, often = np.unique(sorted_rows(*key, times), axis=0, return_counts=True)
        of_plain, often_of_plain = np.unique(sorted_rows(*key_of_plain), axis=0, return_counts=True)
        total = [np.sum((keys[:, -1] * often)[(keys[:, :-1] == row).all(axis=1)]) for row in of_plain]
        np.testing.assert_array_equal(np.unique(keys[:, :-1], axis=0), of_plain)
        np.testing.assert_array_equal(total, often_of_plain * times_of_plain[0])
    n = ours.at.size
    arguments = setting.token_ptr, setting.weights, setting.z, group, N_TOPICS
    assert count_cells(*arguments, np.empty(0, np.int64), np.empty(0), np.empty(0)) == n


PRIORS = np.random.default_rng(1).gamma(0.5, 0.5, (3, N_TOPICS)) + 0.01
GROUPS = np.array([2, 0, 0, 1, 0, 2, 0, 1, 2])  # of all documents


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("stored", [True, False])
def test_assignments_under_priors_of_groups_equal_their_twin(weighted, stored):
    setting = Setting(weighted)
    docs = np.array([8, 0, 1, 5, 3, 7])
    z, counts, doc_counts = setting.z.copy(), np.zeros(setting.phi.shape), np.full((2, 6, N_TOPICS), np.nan)
    lda.draw_assignments(
        0, 6, docs, setting.token_ptr, setting.words, setting.weights, setting.slot, setting.phi,
        np.empty_like(setting.blocks), np.full(len(setting.phi), -1, np.int32), PRIORS, GROUPS[docs], np.uint64(SEED),
        int(stored), 1, 2, z, counts, doc_counts,
    )  # fmt: skip
    twin = setting.z.astype(int) if stored else np.full(setting.words.size, -1)
    summed, draws = np.zeros(setting.phi.shape), np.empty((2, 6, N_TOPICS))
    for b, d in enumerate(docs):
        alpha = PRIORS[GROUPS[d]]
        _, blocks = naive.topic_tables(setting.theta[setting.rows], setting.total, alpha)
        doc = [(d, setting.tokens(d))]
        arguments = (doc, setting.phi, blocks, alpha, SEED)
        draws[0, b] = naive.draw_assignments(*arguments, twin.copy(), 1, 1, fresh=not stored)[1][0]
        change, of_doc = naive.draw_assignments(*arguments, twin, 1, 2, fresh=not stored)
        summed, draws[1, b] = summed + change, of_doc[0]
    if stored:
        np.testing.assert_array_equal(z, twin)
    np.testing.assert_array_equal(counts, summed)
    np.testing.assert_array_equal(doc_counts, draws)
