"""The joint law of topics with keywords: draws forward, and by turns of the chain's updates.

As in `test_group_words_laws`: the second draws words anew given topics and columns after each turn.
"""

from functools import cache

import numpy as np
import pytest

from sk_sgmcmc.kernels.models import keyword_words
from sk_sgmcmc.topic._counts.corpus import Shard
from sk_sgmcmc.topic._counts.sweeps import GivenTopicsStep
from sk_sgmcmc.topic._structural import keyword_prior
from sk_sgmcmc.topic._structural.keyword_prior import KeywordSweeps, KeywordWordPrior
from sk_sgmcmc.topic._structural.keywords import KeywordPlaces
from sk_sgmcmc.topic._structural.shards import KeywordShardCounts
from sk_sgmcmc.topic._structural.spread import GRID
from tests.cases import THRESHOLD
from tests.joint_law import documents_of, z_scores

N_WORDS, N_TOPICS, N_KEYWORD_TOPICS = 4, 3, 2
N_COLUMNS = N_TOPICS + N_KEYWORD_TOPICS
PLACES = KeywordPlaces(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]))  # Word 1 is a keyword of two topics.
BASE, ALPHA, RATE = 0.6, np.array([0.3, 0.7, 0.4]), np.array([2.0, 0.4, 1.0])
LENGTHS = np.array([3, 0, 2, 4, 1, 3])
GROUP = np.array([0, 0, 1, 1, 1, 0])
DOCS = np.repeat(np.arange(LENGTHS.size), LENGTHS)
PTR = np.concatenate([[0], np.cumsum(LENGTHS)])
ROW = np.zeros(LENGTHS.size, dtype=np.int64)
TOPIC = np.array([0, 1, 2, 0, 1])


Dirichlet, Scaled = documents_of(ALPHA, RATE, LENGTHS.size)


class Forward:
    """Rates, prior of words, topics, columns and words, drawn forward."""

    def __init__(self, rng, documents, n_groups):
        base = np.hstack([np.full((N_WORDS, N_TOPICS), BASE), PLACES.base(N_WORDS)])
        self.rates = rng.beta(*keyword_prior.STRENGTH, N_KEYWORD_TOPICS)
        theta = documents.proportions(rng)
        self.z = np.array([rng.choice(N_TOPICS, p=theta[d]) for d in DOCS], dtype=np.uint16)
        rates = np.append(self.rates, 0.0)
        self.columns = self.z + (N_TOPICS * (rng.random(DOCS.size) < rates[self.z])).astype(np.uint16)
        if n_groups == 1:
            y, self.group = rng.gamma(base)[None], np.zeros_like(GROUP)
        else:
            self.group, self.weight = GROUP, rng.dirichlet(np.ones(GRID.size))
            self.which = rng.choice(GRID.size, size=base.shape, p=self.weight).astype(np.uint8)
            mean = rng.gamma(base)
            y = rng.gamma(GRID[self.which], size=(n_groups, *base.shape)) * (mean / GRID[self.which])
            mass = np.zeros((n_groups, N_COLUMNS))
            np.add.at(mass, (GROUP[DOCS], self.columns), 1.0)
            drawn = rng.gamma(np.maximum(mass, 1.0)) / y.sum(axis=1)
            self.pulls = np.where(mass > 0, drawn, rng.exponential(size=mass.shape) / mean.sum(axis=0))
            self.log_mean = np.log(mean, out=np.full(mean.shape, -np.inf), where=mean > 0)
        phi = y / y.sum(axis=1, keepdims=True)
        of_token = self.group[DOCS]
        self.words = np.array(
            [rng.choice(N_WORDS, p=phi[g, :, j]) for g, j in zip(of_token, self.columns, strict=True)]
        )


def statistics(rates, columns, words, group):
    """Functions of the state whose means are compared."""
    n = np.zeros((2, N_WORDS, N_COLUMNS))
    np.add.at(n, (group[DOCS], words, columns), 1.0)
    both, z = n.sum(axis=0), TOPIC[columns]
    mass, first = both.sum(axis=0), columns[DOCS == 3]
    return np.concatenate([
        rates, rates**2, rates * mass[:2], mass, mass**2, mass == 0, mass[:2] * mass[3:], (both**2).sum(axis=0),
        (both[PLACES.word, PLACES.topic] * both[PLACES.word, 3 + PLACES.topic]),
        [(n[0] * n[1]).sum(), (n[0, :, 3:] * n[1, :, 3:]).sum(), both[1, 3] * both[1, 4]],
        [(z[DOCS == 3] == 0).all(), (z[DOCS == 0] == z[DOCS == 0][0]).all(), (first == first[0]).all()],
        [(first == 3).sum() * (first == 0).sum(), (columns[DOCS == 0] >= 3).sum() * (columns[DOCS == 5] >= 3).sum()],
    ])  # fmt: skip


class Turns:
    """The chain's updates, and words drawn given the rest."""

    sweeps = KeywordSweeps

    def __init__(self, seed, documents, n_groups):
        self.rng = rng = np.random.default_rng(seed)
        start = Forward(rng, documents, n_groups)
        self.z, self.documents, self.group = start.z, documents, start.group
        self.prior = prior = KeywordWordPrior(BASE, N_WORDS * n_groups, N_TOPICS, n_groups, PLACES)
        prior.strength = keyword_prior.STRENGTH  # after burn-in
        if n_groups > 1:
            prior.is_shared, prior.weight, prior.which, prior.log_mean = (
                False, start.weight, start.which, start.log_mean,
            )  # fmt: skip
            prior.pulls = np.ones((n_groups, 16))
            prior.pulls[:, :N_COLUMNS] = start.pulls
        forms = (start.words * n_groups + start.group[DOCS]).astype(np.int32)
        self.shard = Shard(PTR, forms, np.zeros(0), 0, N_WORDS * n_groups)
        self.collapsed = self.sweeps(self.shard, self.z, prior, documents(ALPHA))
        self.collapsed.columns[:] = start.columns
        self.collapsed.lay()
        self.collapsed.set_weights()

    def turn(self):
        """Update everything once; returns the statistics."""
        prior, collapsed, rng = self.prior, self.collapsed, self.rng
        collapsed.sweep(self.shard, 0, LENGTHS.size, self.documents.priors, ROW, rng)
        if not prior.is_shared:
            prior.redraw(collapsed, rng)
        prior.observe(collapsed, rng)
        np.testing.assert_array_equal(TOPIC[collapsed.columns], self.z)
        words = collapsed.words
        found = statistics(prior.rate, collapsed.columns, words, self.group)
        for i, (d, j) in enumerate(zip(DOCS, collapsed.columns, strict=True)):
            g = self.group[d]
            collapsed.tables[g, words[i], j] -= 1
            p = (collapsed.tables[g, :, j] + collapsed.kappa[collapsed.row, j]) * collapsed.scales[g][collapsed.row, j]
            words[i] = rng.choice(N_WORDS, p=p / p.sum(dtype=np.float64))
            collapsed.tables[g, words[i], j] += 1
        return found


class TurnsInShards:
    """The same for documents in two shards that are not in memory, where no token remembers its column."""

    counts = KeywordShardCounts

    def __init__(self, seed, documents, n_groups):
        self.rng = rng = np.random.default_rng(seed)
        start = Forward(rng, documents, n_groups)
        self.z, self.columns, self.words, self.group = start.z, start.columns, start.words, start.group
        self.prior = prior = KeywordWordPrior(BASE, N_WORDS * n_groups, N_TOPICS, n_groups, PLACES)
        prior.strength, prior.rate = keyword_prior.STRENGTH, start.rates
        if n_groups > 1:
            prior.is_shared, prior.weight, prior.which, prior.log_mean = (
                False, start.weight, start.which, start.log_mean,
            )  # fmt: skip
            prior.pulls = np.ones((n_groups, 16))
            prior.pulls[:, :N_COLUMNS] = start.pulls
        self.collapsed, self.documents = self.counts(prior, True), documents(ALPHA)
        self.recount()

    def recount(self):
        n_groups, collapsed = self.prior.n_groups, self.collapsed
        self.forms = (self.words * n_groups + self.group[DOCS]).astype(np.int32)
        collapsed.table[:] = 0
        np.add.at(collapsed.table, (self.forms, self.z), 1)
        columns = np.zeros((N_WORDS * n_groups, N_COLUMNS))
        np.add.at(columns, (self.forms, self.columns), 1)
        collapsed.own = columns[PLACES.forms(n_groups), N_TOPICS + PLACES.topic[:, None]]

    def turn(self):
        prior, collapsed, rng, n_groups = self.prior, self.collapsed, self.rng, self.prior.n_groups
        step = GivenTopicsStep(prior.topics_of_pass(collapsed, rng, None), self.documents)
        sums = collapsed.table.copy()
        for start, stop in ((0, 3), (3, 6)):
            part = slice(PTR[start], PTR[stop])
            shard = Shard(PTR[start : stop + 1] - PTR[start], self.forms[part], np.zeros(0), start, N_WORDS * n_groups)
            done = step(shard, self.z[part], int(rng.integers(2**63)))
            self.z[part] = done.z
            done.change.add_to(sums)
        collapsed.take(sums)
        collapsed.finish(rng)
        if not prior.is_shared:
            prior.redraw(collapsed, rng)
        prior.observe(collapsed, rng)
        self.columns = self.z.copy()
        for i, forms in enumerate(PLACES.forms(n_groups)):
            for g, form in enumerate(forms):
                among = np.flatnonzero((self.forms == form) & (self.z == PLACES.topic[i]))
                self.columns[rng.permutation(among)[: int(collapsed.own[i, g])]] += N_TOPICS
        found = statistics(prior.rate, self.columns, self.words, self.group)
        n, base = collapsed.tables[:, :, :N_COLUMNS], prior.base()
        for i, (d, j) in enumerate(zip(DOCS, self.columns, strict=True)):
            g = self.group[d]
            n[g, self.words[i], j] -= 1
            p = n[g, :, j] + base[:, j]
            if not prior.is_shared:
                kappa = GRID[prior.which[:, j]]
                rate = kappa / np.exp(prior.log_mean[:, j].clip(-650)) + prior.pulls[g, j]
                p = np.where(base[:, j] > 0, (n[g, :, j] + kappa) / rate, 0.0)
            self.words[i] = rng.choice(N_WORDS, p=p / p.sum())
            n[g, self.words[i], j] += 1
        self.recount()
        return found


@cache
def forward_draws(seed, documents, n_groups, n):
    """Statistics of states drawn forward."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        state = Forward(rng, documents, n_groups)
        found.append(statistics(state.rates, state.columns, state.words, state.group))
    return np.array(found)


def z_of(seed, documents, n_groups, make=Turns, n_forward=8000, n_turns=6000, n_batches=40):
    forward = forward_draws(seed, documents, n_groups, n_forward)
    chain = make(seed + 1, documents, n_groups)
    turns = np.array([chain.turn() for _ in range(n_turns)])
    return z_scores(forward, turns, n_batches)


class WithoutRates(KeywordSweeps):
    """Mistake: columns of a topic are equally probable, however many tokens they have."""

    def lay(self):
        super().lay()
        self.strength = np.full_like(self.strength, 1e9)


class WithoutTwin(KeywordSweeps):
    """Mistake: tokens of the keywords of a topic do not count for it in their document."""

    def lay(self):
        super().lay()
        self.twin = np.arange(self.twin.size, dtype=np.int32)


class KeywordsOfAll(KeywordSweeps):
    """Mistake: the prior of keywords has the mass of a prior of all words."""

    def set_weights(self):
        super().set_weights()
        self.offset[N_TOPICS:N_COLUMNS] = BASE * N_WORDS
        self.entries[:, N_TOPICS:N_COLUMNS] = 1.0 / (BASE * N_WORDS)


@pytest.mark.parametrize("n_groups", [1, 2])
@pytest.mark.parametrize("documents", [Dirichlet, Scaled])
def test_turns_have_the_joint_law(documents, n_groups, global_random_seed):
    assert z_of(global_random_seed, documents, n_groups).max() < THRESHOLD


@pytest.mark.parametrize("n_groups", [1, 2])
def test_turns_in_shards_have_the_joint_law(n_groups, global_random_seed):
    assert z_of(global_random_seed, Dirichlet, n_groups, TurnsInShards).max() < THRESHOLD


class WithTheMeanShare(KeywordShardCounts):
    """Mistake: tokens come from the keywords of their topic at its rate, whatever their word."""

    def drawn_topics(self, rng):
        topics = super().drawn_topics(rng)
        self.shares = np.broadcast_to(self.word_prior.rate[PLACES.topic][:, None], self.shares.shape)
        return topics


class WithTheColumnsBefore(KeywordShardCounts):
    """Mistake: as many tokens come from keywords as before the pass."""

    def finish(self, rng):
        self.own = np.minimum(self.own, self._tokens_of_places)


@pytest.mark.parametrize("broken", [WithTheMeanShare, WithTheColumnsBefore])
def test_shards_with_a_mistake_are_rejected(broken, global_random_seed):
    made = type("Broken", (TurnsInShards,), {"counts": broken})
    assert z_of(global_random_seed, Dirichlet, 1, made).max() > 1.3 * THRESHOLD


@pytest.mark.parametrize("broken", [WithoutRates, WithoutTwin, KeywordsOfAll])
def test_turns_with_a_mistake_are_rejected(broken, global_random_seed):
    made = type("Broken", (Turns,), {"sweeps": broken})
    assert z_of(global_random_seed, Dirichlet, 1, made).max() > 1.3 * THRESHOLD


class OneDocument:
    """Random counts of other documents, and a document whose first sweep has a law that can be enumerated."""

    WIDTH, TWIN = 16, np.array([3, 4, 2, 0, 1])

    def __init__(self, rng, is_scaled, weights):
        self.words, self.start = np.array([0, 0, 0], dtype=np.int32), np.array([3, 2, 0], dtype=np.uint16)
        self.weights, self.row = np.asarray(weights, dtype=float), np.array([1, 0], dtype=np.int32)
        self.tables, self.kappa = np.zeros((1, 2, self.WIDTH)), np.zeros((2, self.WIDTH), np.float32)
        self.scales = np.zeros((1, 2, self.WIDTH), np.float32)
        self.tables[0, :, :N_COLUMNS] = rng.integers(0, 2, (2, N_COLUMNS))
        self.tables[0, :, [0, 3]] *= is_scaled  # Otherwise, all tokens of the first topic are redrawn.
        each = self.weights if self.weights.size else np.ones(3)
        np.add.at(self.tables[0], (self.words, self.start), each)
        self.kappa[:, :N_COLUMNS] = rng.gamma(2.0, size=(2, N_COLUMNS))
        self.scales[0, :, :N_COLUMNS] = rng.gamma(9.0, size=(2, N_COLUMNS))
        self.offset, self.strength, self.pulls = rng.gamma(9.0, 0.1, size=(3, self.WIDTH))
        self.entry = self.pulls / self.offset
        self.alpha = rng.gamma(9.0, 0.05, size=(1, N_TOPICS))
        self.rate, self.auxiliary = (rng.gamma(1.0, size=(1, N_TOPICS)), rng.gamma(1.0, size=1))
        if not is_scaled:
            self.rate = self.auxiliary = None

    def sweep(self, rng):
        """Columns after a sweep from the start."""
        columns, z, tables = self.start.copy(), TOPIC[self.start].astype(np.uint16), self.tables.copy()
        if not self.weights.size:
            tables = tables.astype(np.uint16)
        masses, topic = tables.sum(axis=1, dtype=float), np.full(self.WIDTH, -1, dtype=np.int32)
        topic[:N_COLUMNS], twin = TOPIC, np.arange(self.WIDTH, dtype=np.int32)
        twin[:N_COLUMNS] = self.TWIN
        keyword_words.sweep(
            0, 1, np.array([0, 3]), self.words, self.weights, z, columns, tables, masses, masses.sum(axis=0), topic,
            twin, self.strength, self.alpha, np.zeros(1, int), np.zeros(1, int), self.kappa, self.row, self.scales,
            self.offset, self.pulls[None], self.entry[None], rng, rate=self.rate, auxiliary=self.auxiliary,
        )  # fmt: skip
        return columns

    def probabilities(self, columns, i):
        """Of the columns of token i given those of the others, term by term as in the docstring of the kernel."""
        each = self.weights if self.weights.size else np.ones(3)
        n = self.tables[0, :, :N_COLUMNS].copy()
        np.add.at(n, (self.words, self.start), -each)
        others = np.arange(3) != i
        np.add.at(n, (self.words[others], columns[others]), each[others])
        of_topics = np.bincount(TOPIC[columns[others]], each[others], N_TOPICS) + self.alpha[0]
        if self.rate is not None:
            of_topics /= self.rate[0] + self.auxiliary[0]
        p, mass, r = np.zeros(N_COLUMNS), n.sum(axis=0), self.row[self.words[i]]
        for j, t in enumerate(self.TWIN):
            p[j] = of_topics[TOPIC[j]] * (n[self.words[i], j] + self.kappa[r, j]) * self.scales[0, r, j]
            p[j] *= self.pulls[j] / (mass[j] + self.offset[j])
            if t != j:
                p[j] *= (mass[j] + self.strength[j]) / (mass[j] + mass[t] + self.strength[j] + self.strength[t])
        return p / p.sum()

    def law(self):
        """Probabilities of the columns after a sweep from the start, (n_columns, n_columns, n_columns)."""
        law = np.zeros((N_COLUMNS,) * 3)
        for a, p in enumerate(self.probabilities(self.start, 0)):
            for b, q in enumerate(self.probabilities(np.array([a, *self.start[1:]]), 1)):
                law[a, b] = p * q * self.probabilities(np.array([a, b, self.start[2]]), 2)
        return law


@pytest.mark.parametrize("weights", [[], [1.5, 0.5, 2.0]], ids=["ones", "weights"])
@pytest.mark.parametrize("is_scaled", [False, True])
def test_one_sweep_has_the_exact_law(is_scaled, weights, global_random_seed):
    rng, n = np.random.default_rng(global_random_seed), 20_000
    case = OneDocument(rng, is_scaled, weights)
    counts, law = np.zeros((N_COLUMNS,) * 3), case.law()
    for _ in range(n):
        counts[tuple(case.sweep(rng))] += 1
    for axes in [(1, 2), (0, 2), (0, 1), 2, 1, 0, ()]:  # Each token, each pair, all three.
        found, p = counts.sum(axis=axes) / n, law.sum(axis=axes)
        assert np.max(np.abs(found - p) / np.sqrt(p * (1 - p) / n + 1e-6)) < 5.0
