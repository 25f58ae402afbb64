"""Assignment kernels: token by token equal to their slow twins, whatever the order of documents and their threads."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc.kernels.models.lda import assignments as lda
from sk_sgmcmc.kernels.samplers import simplex
from sk_sgmcmc.utils.corpus import Corpus
from tests.naive import lda as naive

N_WORDS, N_TOPICS, SEED = 12, 20, 2**61 + 12345


class Setting:
    """A small corpus, tables of some topics, and the same for the twin."""

    def __init__(self, weighted):
        rng = np.random.default_rng(7)
        X = rng.poisson(0.9, (9, N_WORDS)).astype(float)
        X[3] = 0.0
        if weighted:
            X[X > 0] += rng.integers(0, 4, (X > 0).sum()) / 4.0
        self.token_ptr, self.words, weights = Corpus.from_counts(sparse.csr_array(X)).expand_tokens()
        self.weights = np.ascontiguousarray(weights, dtype=float) if weighted else np.empty(0)
        self.docs = np.array([7, 0, 3, 5, 8, 1])
        self.theta = rng.gamma(0.3, 1.0, (N_WORDS, N_TOPICS))
        self.total = self.theta.sum(axis=0)
        self.alpha = np.tile([0.1, 0.5, 0.02, 1.0, 0.3], N_TOPICS // 5)
        self.z = rng.integers(0, N_TOPICS, self.words.size).astype(np.uint16)
        self.slot = np.full(N_WORDS, -1, dtype=np.int32)
        active = np.empty(N_WORDS, dtype=np.int64)
        n = lda.find_active(self.docs, self.token_ptr, self.words, self.slot, active)
        self.rows = active[:n].copy()
        self.phi = np.empty((n, N_TOPICS), np.float32)
        self.blocks = np.empty((n, -(-N_TOPICS // lda.BLOCK) + 1), np.float32)
        lda.topic_tables(self.theta, self.rows, self.total, self.alpha[None], self.phi, self.blocks)

    def tokens(self, d, by_slot=True):
        """(place, row, weight) of each token of a document."""
        return [
            (i, int(self.slot[self.words[i]]) if by_slot else int(self.words[i]), self.weight(i))
            for i in range(self.token_ptr[d], self.token_ptr[d + 1])
        ]

    def weight(self, i):
        return float(self.weights[i]) if self.weights.size else 1.0

    def draw(self, stored, n_burn, n_keep, docs=None, cuts=None, seed=SEED):
        docs = self.docs if docs is None else docs
        z = self.z.copy()
        counts, doc_counts = np.zeros(self.phi.shape), np.full((1, len(docs), N_TOPICS), np.nan)
        cuts = cuts or [0, len(docs)]
        for start, stop in itertools.pairwise(cuts):
            lda.draw_assignments(
                start, stop, docs, self.token_ptr, self.words, self.weights, self.slot, self.phi, self.blocks,
                np.empty(0, np.int32), self.alpha[None], np.zeros(len(docs), np.int64), np.uint64(seed), int(stored),
                n_burn, n_keep, z, counts, doc_counts,
            )  # fmt: skip
        return z, counts, doc_counts[0]


@pytest.fixture(params=[False, True], ids=["whole", "weighted"])
def setting(request):
    return Setting(request.param)


def test_splitmix_equals_its_twin_and_its_published_stream():
    for x in (0, 1, 2**63, 2**64 - 1, 123456789):
        assert int(lda.mix64(np.uint64(x))) == naive.mix64(x)
    # The first outputs of SplitMix64 seeded with 0.
    counter, out = 0, []
    for _ in range(3):
        counter = (counter + naive.GOLDEN) & naive.MASK
        out.append(naive.mix64(counter))
    assert out == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_active_words_are_the_distinct_words_of_the_batch_and_are_cleared(setting):
    words = np.concatenate([setting.words[setting.token_ptr[d] : setting.token_ptr[d + 1]] for d in setting.docs])
    assert sorted(setting.rows) == sorted(set(words))
    np.testing.assert_array_equal(setting.slot[setting.rows], np.arange(setting.rows.size))
    lda.clear_active(setting.rows, setting.slot)
    assert np.all(setting.slot == -1)


def test_tables_equal_their_twin(setting):
    phi, blocks = naive.topic_tables(setting.theta[setting.rows], setting.total, setting.alpha)
    np.testing.assert_allclose(setting.phi, phi, rtol=1e-6)
    np.testing.assert_allclose(setting.blocks, blocks, rtol=1e-6)
    assert np.all(setting.phi > 0)


@pytest.mark.parametrize("n_burn, n_keep", [(0, 1), (2, 1)])
def test_stored_assignments_equal_their_twin(setting, n_burn, n_keep):
    z, counts, doc_counts = setting.draw(True, n_burn, n_keep)
    twin = setting.z.astype(int)
    docs = [(d, setting.tokens(d)) for d in setting.docs]
    change, of_docs = naive.draw_assignments(
        docs, setting.phi, setting.blocks, setting.alpha, SEED, twin, n_burn, n_keep
    )
    np.testing.assert_array_equal(z, twin)
    np.testing.assert_array_equal(counts, change)
    np.testing.assert_array_equal(doc_counts, of_docs)
    assert np.any(z != setting.z)


@pytest.mark.parametrize("n_burn, n_keep", [(0, 1), (3, 1), (2, 4)])
def test_fresh_assignments_equal_their_twin(setting, n_burn, n_keep):
    _, counts, doc_counts = setting.draw(False, n_burn, n_keep)
    docs = [(d, setting.tokens(d)) for d in setting.docs]
    twin = np.full(setting.words.size, -1)
    summed, of_docs = naive.draw_assignments(
        docs, setting.phi, setting.blocks, setting.alpha, SEED, twin, n_burn, n_keep, fresh=True
    )
    np.testing.assert_array_equal(counts, summed)
    np.testing.assert_array_equal(doc_counts, of_docs)
    assert counts.sum() == n_keep * sum(setting.weight(i) for _, tokens in docs for i, *_ in tokens)


def test_fresh_assignments_do_not_read_what_z_holds(setting):
    first = setting.draw(False, 1, 2)[1]
    setting.z[:] = 0
    np.testing.assert_array_equal(setting.draw(False, 1, 2)[1], first)


@pytest.mark.parametrize("stored", [True, False])
def test_neither_the_order_of_documents_nor_their_cuts_change_a_draw(setting, stored):
    z, counts, doc_counts = setting.draw(stored, 1, 1)
    cut_z, cut_counts, _ = setting.draw(stored, 1, 1, cuts=[0, 1, 4, 6])
    order = np.array([3, 1, 5, 0, 2, 4])
    other_z, other_counts, other_docs = setting.draw(stored, 1, 1, docs=setting.docs[order].copy())
    if stored:
        np.testing.assert_array_equal(z, cut_z)
        np.testing.assert_array_equal(z, other_z)
    np.testing.assert_array_equal(counts, cut_counts)
    np.testing.assert_array_equal(counts, other_counts)
    np.testing.assert_array_equal(doc_counts[order], other_docs)


def test_stored_counts_stay_the_counts_of_the_assignments(setting):
    before, after = np.zeros((N_WORDS, N_TOPICS)), np.zeros((N_WORDS, N_TOPICS))
    lda.count_assignments(setting.words, setting.weights, setting.z, before)
    z, change, _ = setting.draw(True, 0, 1)
    gained = simplex.add_rows(before, setting.rows, change)
    lda.count_assignments(setting.words, setting.weights, z, after)
    np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(gained, change.sum(axis=0))
    assert np.all(after >= 0)


def test_frequencies_of_a_token_are_the_gibbs_conditional(setting, global_random_seed):
    # The last token of a document after one sweep, given what the sweep made of the others.
    d = int(setting.docs[0])
    tokens = setting.tokens(d)
    seen, expected = np.zeros(N_TOPICS), np.zeros(N_TOPICS)
    n = 20_000
    for s in range(n):
        z = setting.draw(True, 0, 1, docs=np.array([d]), seed=1000 * n * global_random_seed + s)[0]
        others = np.zeros(N_TOPICS)
        for i, _, weight in tokens[:-1]:
            others[z[i]] += weight
        p = (others + setting.alpha) * setting.phi[tokens[-1][1]]
        expected += p / p.sum()
        seen[z[tokens[-1][0]]] += 1
    z_score = (seen - expected) / np.sqrt(np.maximum(expected * (1 - expected / n), 1e-9))
    assert np.abs(z_score[expected > 20]).max() < 5
