"""Collapsed sweeps over whole tokens: token by token equal to a slow twin, and draws of their exact law."""

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc.kernels.models.lda import whole_tokens
from tests.naive import lanes as lanes_twin
from tests.naive import lda as naive

BETA = 0.05


class Setting:
    """Some documents, one of them empty and one with a single token, with assignments and two priors."""

    def __init__(self, n_topics, n_words=9, seed=0, temperature=1.0):
        rng = np.random.default_rng(seed)
        self.temperature = temperature
        self.token_ptr = np.cumsum([0, 5, 0, 30, 1, 12, 40, 3])
        self.words = rng.integers(0, n_words, self.token_ptr[-1]).astype(np.int32)
        self.z = rng.integers(0, n_topics, self.words.size).astype(np.uint16)
        self.alpha = rng.gamma(2.0, 0.2, (2, n_topics))
        self.group = np.array([0, 1, 1, 0, 0, 1, 0])
        self.n_words, self.n_topics = n_words, n_topics

    def counts(self, z):
        counts = np.zeros((self.n_words, self.n_topics), dtype=int)
        np.add.at(counts, (self.words, z), 1)
        return counts

    def start(self, dtype=np.uint16):
        """Assignments and counts, to be changed."""
        table = whole_tokens.table_of_counts(self.counts(self.z)).astype(dtype)
        return self.z.copy(), table, table[:, : self.n_topics].sum(axis=0, dtype=np.int64)

    def sweep(self, state, rng, start=0, stop=7):
        z, table, mass = state
        whole_tokens.sweep(
            start, stop, self.token_ptr, self.words, z, table, mass, self.alpha, self.group, BETA, rng, self.temperature
        )

    def law(self, z, i, d):
        """Probabilities of the topics of token i, which is in document d."""
        others = np.arange(z.size) != i
        n_wk = np.bincount(z[others & (self.words == self.words[i])], minlength=self.n_topics)
        n_k = np.bincount(z[others], minlength=self.n_topics)
        inside = others[self.token_ptr[d] : self.token_ptr[d + 1]]
        n_dk = np.bincount(z[self.token_ptr[d] : self.token_ptr[d + 1]][inside], minlength=self.n_topics)
        p = (n_dk + self.alpha[self.group[d]]) * (n_wk + BETA) / (n_k + self.n_words * BETA)
        if self.temperature > 1.0:
            p = lanes_twin.raised(p, 1.0 / self.temperature)
        return p / p.sum()

    def tokens_of(self, d):
        """The tokens of document d."""
        return np.arange(self.token_ptr[d], self.token_ptr[d + 1])

    def slow_sweep(self, z, rng):
        """The twin: the same numbers at random, probabilities from nothing at each token."""
        for d in range(self.token_ptr.size - 1):
            if self.tokens_of(d).size == 0:
                continue
            counter = naive.mix64(int(rng.random() * 2.0**53))
            for i in self.tokens_of(d):
                counter = (counter + naive.GOLDEN) & naive.MASK
                bits = naive.mix64(counter)
                first, second = (bits >> 40) / 2.0**24, (bits >> 16 & 0xFFFFFF) / 2.0**24
                p = self.law(z, i, d)
                stay, p[z[i]] = p[z[i]], 0.0
                if first >= stay:
                    columns = np.resize(np.append(p, np.zeros(-p.size % 16)), (-(-p.size // 16), 16))
                    column = int(np.searchsorted(np.cumsum(columns.sum(axis=0)), first - stay, side="right"))
                    sums = np.cumsum(columns[:, column])
                    z[i] = column + 16 * int(np.searchsorted(sums, second * sums[-1], side="right"))


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
@pytest.mark.parametrize("n_topics", [1, 2, 16, 20, 100, 300])
@pytest.mark.parametrize("temperature", [1.0, 1.05, 1.2, 1.5])
def test_sweeps_equal_their_twin(temperature, n_topics, dtype):
    setting = Setting(n_topics, temperature=temperature)
    state, slow = setting.start(dtype), setting.z.copy()
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        setting.sweep(state, ours)
        setting.slow_sweep(slow, theirs)
        np.testing.assert_array_equal(state[0], slow)
    z, table, mass = state
    assert n_topics == 1 or np.any(z != setting.z)
    np.testing.assert_array_equal(table[:, :n_topics], setting.counts(z))
    assert not table[:, n_topics:].any()
    np.testing.assert_array_equal(mass, setting.counts(z).sum(axis=0))


def test_pieces_of_a_sweep_are_the_whole():
    setting = Setting(20)
    whole, pieces = setting.start(), setting.start()
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(2):
        setting.sweep(whole, ours)
        for start, stop in [(0, 2), (2, 3), (3, 3), (3, 7)]:
            setting.sweep(pieces, theirs, start, stop)
    for a, b in zip(whole, pieces, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("temperature", [1.0, 1.2])
@pytest.mark.parametrize("n_topics", [3, 20, 150])
def test_a_token_is_drawn_from_its_law(n_topics, temperature, global_random_seed):
    # The only token of its document: all others stand still.
    setting = Setting(n_topics, seed=1, temperature=temperature)
    state, rng = setting.start(), np.random.default_rng(global_random_seed)
    seen = np.zeros(n_topics)
    for _ in range(20_000):
        setting.sweep(state, rng, 3, 4)
        seen[state[0][setting.token_ptr[3]]] += 1
    expected = seen.sum() * setting.law(setting.z, setting.token_ptr[3], 3)
    often = expected > 5
    seen, expected = (np.append(a[often], a[~often].sum()) for a in (seen, expected))
    kept = expected > 0
    assert stats.chi2.sf(np.sum((seen - expected)[kept] ** 2 / expected[kept]), kept.sum() - 1) > 1e-5


def test_topics_with_a_prior_of_nothing_stay_empty():
    setting = Setting(20)
    setting.alpha[:, 5:] = 0.0
    setting.z %= 5
    state, rng = setting.start(), np.random.default_rng(0)
    for _ in range(50):
        setting.sweep(state, rng)
    assert state[0].max() < 5


def test_words_with_many_tokens_take_wide_counts():
    counts = np.array([[2**16 - 2, 1], [5, 0]])
    assert whole_tokens.table_of_counts(counts).dtype == np.uint16
    counts[0, 1] += 1
    table = whole_tokens.table_of_counts(counts)
    assert table.dtype == np.int32
    np.testing.assert_array_equal(table[:, :2], counts)


class PartSetting(Setting):
    """The same, words in order within documents, of which a part is swept given the topics' shares of it."""

    first, end = 3, 7

    def __init__(self, n_topics, empty=False):
        super().__init__(n_topics)
        for lo, hi in zip(self.token_ptr[:-1], self.token_ptr[1:], strict=True):
            self.words[lo:hi] = np.sort(self.words[lo:hi])
        if empty:
            self.first, self.end = 9, 9
        self.share = np.random.default_rng(1).uniform(0.1, 0.9, n_topics)

    def inside(self):
        return (self.words >= self.first) & (self.words < self.end)

    def law(self, z, i, d):
        """Probabilities of the topics of token i: topics' totals are those of the part."""
        others = np.arange(z.size) != i
        n_wk = np.bincount(z[others & (self.words == self.words[i])], minlength=self.n_topics)
        n_k = np.bincount(z[others & self.inside()], minlength=self.n_topics)
        own = others[self.token_ptr[d] : self.token_ptr[d + 1]]
        n_dk = np.bincount(z[self.token_ptr[d] : self.token_ptr[d + 1]][own], minlength=self.n_topics)
        word_share = (n_wk + BETA) / (n_k + (self.end - self.first) * BETA)
        p = (n_dk + self.alpha[self.group[d]]) * self.share * word_share
        return p / p.sum()

    def tokens_of(self, d):
        """Its tokens that are redrawn."""
        tokens = np.arange(self.token_ptr[d], self.token_ptr[d + 1])
        return tokens[self.inside()[tokens]]

    def sweep_part(self, state, rng, doc_counts):
        z, table, mass = state
        whole_tokens.sweep_part(
            0, 7, self.token_ptr, self.words, z, table, mass, self.alpha, self.group, BETA, rng, self.first, self.end,
            self.share, doc_counts,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.uint16, np.int32])
@pytest.mark.parametrize("n_topics", [1, 2, 20, 100])
@pytest.mark.parametrize("keeps_doc_counts", [False, True])
def test_sweeps_of_a_part_equal_their_twin(keeps_doc_counts, n_topics, dtype):
    setting = PartSetting(n_topics)
    (z, table, _), slow = setting.start(dtype), setting.z.copy()
    part = table[setting.first : setting.end, :n_topics]
    mass = part.sum(axis=0, dtype=np.int64)
    doc_counts = np.empty((7 if keeps_doc_counts else 0, table.shape[1]), dtype=np.uint16)
    if keeps_doc_counts:
        whole_tokens.count_in_documents(0, 7, setting.token_ptr, z, doc_counts)
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        setting.sweep_part((z, table, mass), ours, doc_counts)
        setting.slow_sweep(slow, theirs)
        np.testing.assert_array_equal(z, slow)
    assert n_topics == 1 or np.any(z != setting.z)
    assert np.array_equal(z[~setting.inside()], setting.z[~setting.inside()])
    np.testing.assert_array_equal(table[:, :n_topics], setting.counts(z))
    np.testing.assert_array_equal(mass, part.sum(axis=0))
    for d, counts in enumerate(doc_counts):
        own = z[setting.token_ptr[d] : setting.token_ptr[d + 1]]
        np.testing.assert_array_equal(counts, np.bincount(own, minlength=table.shape[1]))


def test_a_part_without_words_changes_nothing_and_takes_no_number():
    setting, rng = PartSetting(20, empty=True), np.random.default_rng(3)
    z, table, mass = setting.start()
    setting.sweep_part((z, table, np.zeros_like(mass)), rng, whole_tokens.NO_DOC_COUNTS)
    np.testing.assert_array_equal(z, setting.z)
    assert rng.random() == np.random.default_rng(3).random()
