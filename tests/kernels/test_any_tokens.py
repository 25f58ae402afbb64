"""Collapsed sweeps of any kind: token by token equal to a slow twin, and draws of their exact law."""

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc.kernels.math.lanes import padded
from sk_sgmcmc.kernels.models.lda import any_tokens
from tests.naive import lda as naive

ONE_WORD = 3  # its documents hold a single token


class Setting:
    """Some documents, one of them empty and one with a single token, whose topics have ``n_columns`` columns."""

    def __init__(
        self, n_topics, n_columns=None, weighted=False, each=False, dtype=float, n_used=None, seed=0, scaled=False
    ):  # fmt: skip
        n_words, rng = 9, np.random.default_rng(seed)
        self.token_ptr = np.cumsum([0, 5, 0, 30, 1, 12, 40, 3])
        self.words = rng.integers(0, n_words, self.token_ptr[-1]).astype(np.int32)
        self.z = rng.integers(0, n_used or n_topics, self.words.size).astype(np.uint16)
        weights = np.round(rng.uniform(0.1, 1.0, self.words.size) * 2.0**20) * 2.0**-20
        self.given = weights if weighted else np.empty(0)
        self.weights = weights if weighted else np.ones(self.words.size)
        self.alpha = rng.gamma(2.0, 0.2, (2, n_topics))
        self.group = np.array([0, 1, 1, 0, 0, 1, 0])
        self.row = rng.integers(0, 4, n_words).astype(np.int32)
        n_columns = n_columns or n_topics
        self.width = padded(n_columns)
        self.topic = np.append(np.arange(n_columns), np.full(self.width - n_columns, -1)).astype(np.int32)
        self.column = np.append(np.arange(n_columns), np.full(n_topics - n_columns, -1)).astype(np.int32)
        self.beta = rng.gamma(1.0, 0.1, (4, self.width) if each else 4).astype(np.float32)
        self.prior = np.broadcast_to(self.beta[self.row].reshape(n_words, -1)[:, :n_topics], (n_words, n_topics))
        self.prior = self.prior.astype(float)
        self.sums = np.ones(self.width)
        self.sums[:n_columns] = self.prior.sum(axis=0)[:n_columns]
        self.n_words, self.n_topics, self.dtype = n_words, n_topics, dtype
        self.rate = self.auxiliary = self.share = None
        if scaled:
            self.rate, self.auxiliary = rng.gamma(2.0, 0.5, (2, n_topics)), rng.gamma(1.0, 5.0, 7)
            u = self.auxiliary[:, None]
            self.share = (1.0 + u) / (self.rate[self.group] + u)

    def table_of(self, z, topic):
        counts = np.zeros((self.n_words, self.n_topics))
        np.add.at(counts, (self.words, z), self.weights)
        return np.ascontiguousarray(np.where(topic >= 0, counts[:, topic], 0.0), self.dtype)

    def start(self):
        """Assignments, counts, their sums, and the columns, to be changed."""
        table = self.table_of(self.z, self.topic)
        return self.z.copy(), table, table.sum(axis=0, dtype=float), self.column.copy(), self.topic.copy()

    def sweep(self, state, rng, begin=0, start=0, stop=7):
        z, table, mass, column, topic = state
        return any_tokens.sweep(
            begin, start, stop, self.token_ptr, self.words, self.given, z, table, mass, column, topic, self.alpha,
            self.group, self.beta, self.row, self.sums, rng, rate=self.rate, auxiliary=self.auxiliary,
        )  # fmt: skip

    def slow_sweep(self, z, topic, rng):
        naive.sweep_collapsed(
            self.token_ptr, self.words, self.weights, z, self.alpha, self.group, self.prior, topic, rng, self.share
        )

    def law_of_the_single_token(self):
        """Probabilities of its topics given all others."""
        i, w = self.token_ptr[ONE_WORD], self.words[self.token_ptr[ONE_WORD]]
        others = np.arange(self.z.size) != i
        n_wk, n_k = (
            np.bincount(self.z[at], self.weights[at], self.n_topics) for at in (others & (self.words == w), others)
        )
        p = self.alpha[self.group[ONE_WORD]] * (n_wk + self.prior[w]) / (n_k + self.prior.sum(axis=0))
        p = p if self.share is None else p * self.share[ONE_WORD]
        return p / p.sum()


KINDS = {
    "whole": {"dtype": np.uint16},
    "whole, many": {},
    "weights": {"weighted": True},
    "priors of topics": {"each": True, "dtype": np.uint16},
    "weights, priors of topics": {"each": True, "weighted": True},
    "whole, scaled": {"dtype": np.uint16, "scaled": True},
    "weights, scaled": {"weighted": True, "scaled": True},
    "priors of topics, scaled": {"each": True, "dtype": np.uint16, "scaled": True},
    "weights, priors of topics, scaled": {"each": True, "weighted": True, "scaled": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_topics", [1, 2, 16, 20, 100, 300])
def test_sweeps_equal_their_twin(n_topics, kind):
    setting = Setting(n_topics, **KINDS[kind])
    state, slow, topic = setting.start(), setting.z.copy(), setting.topic.copy()
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        assert setting.sweep(state, ours) == any_tokens.DONE
        setting.slow_sweep(slow, topic, theirs)
        np.testing.assert_array_equal(state[0], slow)
    z, table, mass, *_ = state
    assert n_topics == 1 or np.any(z != setting.z)
    np.testing.assert_array_equal(table, setting.table_of(z, topic))
    np.testing.assert_array_equal(mass, table.sum(axis=0, dtype=float))


@pytest.mark.parametrize("kind", ["whole", "weights"])
def test_sweeps_with_topics_set_aside_equal_their_twin(kind):
    setting = Setting(60, 48, n_used=6, **KINDS[kind])
    state, slow, topic = setting.start(), setting.z.copy(), setting.topic.copy()
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(3):
        assert setting.sweep(state, ours) == any_tokens.DONE
        setting.slow_sweep(slow, topic, theirs)
        np.testing.assert_array_equal(state[0], slow)
        np.testing.assert_array_equal(state[4], topic)
    z, table, mass, column, topic = state
    assert np.any(z >= 48) and np.any(topic[:48] >= 48)
    np.testing.assert_array_equal(table, setting.table_of(z, topic))
    np.testing.assert_array_equal(mass, table.sum(axis=0, dtype=float))
    np.testing.assert_array_equal(column[topic], np.arange(48))
    assert np.sum(column >= 0) == 48


def test_a_sweep_stops_where_no_column_is_free():
    setting = Setting(20, 16, n_used=16)
    state = setting.start()
    assert np.all(state[2] > 0)
    assert setting.sweep(state, np.random.default_rng(0)) == 0
    np.testing.assert_array_equal(state[0], setting.z)


def test_a_sweep_goes_on_from_a_token_within_a_document():
    setting = Setting(20)
    state = setting.start()
    assert setting.sweep(state, np.random.default_rng(0), 12, 2) == any_tokens.DONE
    np.testing.assert_array_equal(state[0][:12], setting.z[:12])
    assert np.any(state[0][12:35] != setting.z[12:35])
    np.testing.assert_array_equal(state[1], setting.table_of(state[0], setting.topic))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_topics", "n_columns"), [(3, 3), (150, 150), (60, 48)])
def test_a_token_is_drawn_from_its_law(n_topics, n_columns, kind, global_random_seed):
    # The only token of its document: all others stand still.
    if n_columns < n_topics and (KINDS[kind].get("each") or KINDS[kind].get("scaled")):
        n_columns = n_topics  # topics with priors or scales of their own all have columns
    setting = Setting(n_topics, n_columns, n_used=min(n_topics, 40), seed=1, **KINDS[kind])
    state, rng = setting.start(), np.random.default_rng(global_random_seed)
    seen = np.zeros(n_topics)
    for _ in range(20_000):
        assert setting.sweep(state, rng, 0, ONE_WORD, ONE_WORD + 1) == any_tokens.DONE
        seen[state[0][setting.token_ptr[ONE_WORD]]] += 1
    expected = seen.sum() * setting.law_of_the_single_token()
    often = expected > 5
    seen, expected = (np.append(a[often], a[~often].sum()) for a in (seen, expected))
    kept = expected > 0
    assert stats.chi2.sf(np.sum((seen - expected)[kept] ** 2 / expected[kept]), kept.sum() - 1) > 1e-5


def test_pieces_of_a_sweep_are_the_whole():
    setting = Setting(20, weighted=True)
    whole, pieces = setting.start(), setting.start()
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    for _ in range(2):
        setting.sweep(whole, ours)
        for start, stop in [(0, 2), (2, 3), (3, 3), (3, 7)]:
            setting.sweep(pieces, theirs, 0, start, stop)
    for a, b in zip(whole, pieces, strict=True):
        np.testing.assert_array_equal(a, b)


def test_topics_with_a_prior_of_nothing_stay_empty():
    setting = Setting(40, 16, n_used=5)
    setting.alpha[:, 5:] = 0.0
    state, rng = setting.start(), np.random.default_rng(0)
    for _ in range(50):
        setting.sweep(state, rng)
    assert state[0].max() < 5
