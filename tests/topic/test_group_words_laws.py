"""The joint law of words that differ between groups of documents: draws forward, and by turns of the chain's updates.

Both draw prior, assignments and words. The second draws words anew given the assignments after each turn, so its law
is that of the first if every update leaves the posterior unchanged (Geweke 2004, Getting it right).
"""

from functools import cache

import numpy as np
import pytest

from sk_sgmcmc.topic._counts.corpus import Shard
from sk_sgmcmc.topic._counts.sweeps import GivenTopicsStep
from sk_sgmcmc.topic._structural.shards import GroupedShardCounts
from sk_sgmcmc.topic._structural.spread import GRID
from sk_sgmcmc.topic._structural.word_prior import GroupedSweeps, GroupedWordPrior
from tests.cases import THRESHOLD
from tests.joint_law import documents_of, z_scores

N_WORDS, N_TOPICS, N_GROUPS = 4, 2, 3
BASE = 0.6
ALPHA = np.array([0.3, 0.7])
RATE = np.array([2.0, 0.4])
LENGTHS = np.array([3, 0, 2, 4, 1, 3])
GROUP = np.array([0, 0, 1, 1, 2, 0])
DOCS = np.repeat(np.arange(LENGTHS.size), LENGTHS)
PTR = np.concatenate([[0], np.cumsum(LENGTHS)])
ROW = np.zeros(LENGTHS.size, dtype=np.int64)


Dirichlet, Scaled = documents_of(ALPHA, RATE, LENGTHS.size)


def drawn_state(rng, documents):
    """Prior, assignments and words, drawn forward."""
    weight = rng.dirichlet(np.ones(GRID.size))
    which = rng.choice(GRID.size, size=(N_WORDS, N_TOPICS), p=weight)
    mean = rng.gamma(BASE, size=(N_WORDS, N_TOPICS))
    y = rng.gamma(GRID[which], size=(N_GROUPS, N_WORDS, N_TOPICS)) * (mean / GRID[which])
    theta = documents.proportions(rng)
    z = np.array([rng.choice(N_TOPICS, p=theta[d]) for d in DOCS], dtype=np.uint16)
    phi = y / y.sum(axis=1, keepdims=True)
    words = np.array([rng.choice(N_WORDS, p=phi[GROUP[d], :, k]) for d, k in zip(DOCS, z, strict=True)])
    mass = np.zeros((N_GROUPS, N_TOPICS))
    np.add.at(mass, (GROUP[DOCS], z), 1.0)
    total = y.sum(axis=1)
    pulls = np.where(
        mass > 0, rng.gamma(np.maximum(mass, 1.0)) / total, rng.exponential(size=mass.shape) / mean.sum(axis=0)
    )
    return weight, which.astype(np.uint8), np.log(mean), pulls, z, words


def statistics(weight, which, log_mean, pulls, z, words):
    """Functions of the state whose means are compared."""
    n = np.zeros((N_GROUPS, N_WORDS, N_TOPICS))
    np.add.at(n, (GROUP[DOCS], words, z), 1.0)
    mass, kappa, mean = n.sum(axis=1), GRID[which], np.exp(log_mean)
    share, pull = mean / mean.sum(axis=0), pulls / (1.0 + pulls)
    return np.concatenate([
        weight, [(weight**2).sum()], (which == 0).mean(axis=0), (which == GRID.size - 1).mean(axis=0),
        np.log(kappa).mean(axis=0), mean.mean(axis=0), log_mean.mean(axis=0).clip(-30), (share**2).sum(axis=0),
        [(mass == 0).sum(), (mass == 1).sum(), (mass**2).sum(), (n**2).sum()],
        [(n[0] * n[1]).sum(), (n.sum(axis=0) * share).sum(), (n.sum(axis=0) ** 2 / (1 + kappa)).sum()],
        pull.mean(axis=0), [(pull * mass).sum(), (pull * (mass == 0)).sum()],
        (z == 0).mean()[None], [(z[DOCS == 3] == 0).all(), (z[DOCS == 0] == z[DOCS == 0][0]).all()],
    ])  # fmt: skip


class Turns:
    """The chain's updates, and words drawn given the rest."""

    sweeps, redraw = GroupedSweeps, staticmethod(lambda prior, collapsed, rng: prior.redraw(collapsed, rng))

    def __init__(self, seed, documents):
        self.rng = np.random.default_rng(seed)
        weight, which, log_mean, pulls, self.z, words = drawn_state(self.rng, documents)
        self.prior = prior = GroupedWordPrior(BASE, N_WORDS * N_GROUPS, N_TOPICS, N_GROUPS)
        prior.is_shared, prior.weight, prior.which, prior.log_mean = False, weight, which, log_mean
        prior.pulls = np.ones((N_GROUPS, 16))
        prior.pulls[:, :N_TOPICS] = pulls
        forms = (words * N_GROUPS + GROUP[DOCS]).astype(np.int32)
        self.shard = Shard(PTR, forms, np.zeros(0), 0, N_WORDS * N_GROUPS)
        self.documents = documents
        self.collapsed = self.sweeps(self.shard, self.z, prior, documents(ALPHA))

    def turn(self):
        """Update everything once; returns the statistics."""
        prior, collapsed, rng = self.prior, self.collapsed, self.rng
        collapsed.sweep(self.shard, 0, LENGTHS.size, self.documents.priors, ROW, rng)
        self.redraw(prior, collapsed, rng)
        found = statistics(
            prior.weight, prior.which, prior.log_mean, prior.pulls[:, :N_TOPICS], self.z, collapsed.words
        )
        kappa, m = GRID[prior.which], np.exp(prior.log_mean)
        words = collapsed.words
        for i, (d, k) in enumerate(zip(DOCS, self.z, strict=True)):
            g = GROUP[d]
            collapsed.tables[g, words[i], k] -= 1
            p = (collapsed.tables[g, :, k] + kappa[:, k]) / (kappa[:, k] / m[:, k] + prior.pulls[g, k])
            words[i] = rng.choice(N_WORDS, p=p / p.sum())
            collapsed.tables[g, words[i], k] += 1
        return found


class TurnsInShards:
    """The same for documents in two shards that are not in memory."""

    counts = GroupedShardCounts
    every = 3  # Passes from one update of the prior to the next.

    def __init__(self, seed, documents):
        self.n_passes = 0
        self.rng = np.random.default_rng(seed)
        weight, which, log_mean, pulls, self.z, self.words = drawn_state(self.rng, documents)
        self.prior = prior = GroupedWordPrior(BASE, N_WORDS * N_GROUPS, N_TOPICS, N_GROUPS)
        prior.is_shared, prior.weight, prior.which, prior.log_mean = False, weight, which, log_mean
        prior.pulls = np.ones((N_GROUPS, 16))
        prior.pulls[:, :N_TOPICS] = pulls
        self.collapsed = self.counts(prior, True)
        self.documents = documents(ALPHA)
        self.recount()

    def recount(self):
        self.forms = (self.words * N_GROUPS + GROUP[DOCS]).astype(np.int32)
        self.collapsed.table[:] = 0
        np.add.at(self.collapsed.table, (self.forms, self.z), 1)

    def turn(self):
        prior, collapsed, rng = self.prior, self.collapsed, self.rng
        step = GivenTopicsStep(prior.topics_of_pass(collapsed, rng, None), self.documents)
        sums = collapsed.table.copy()
        for start, stop in ((0, 3), (3, 6)):
            part = slice(PTR[start], PTR[stop])
            shard = Shard(PTR[start : stop + 1] - PTR[start], self.forms[part], np.zeros(0), start, N_WORDS * N_GROUPS)
            done = step(shard, self.z[part], int(rng.integers(2**63)))
            self.z[part] = done.z
            done.change.add_to(sums)
        collapsed.take(sums)
        collapsed.finish(rng)
        self.n_passes += 1
        if self.n_passes % self.every == 0:
            prior.redraw(collapsed, rng)
        found = statistics(prior.weight, prior.which, prior.log_mean, prior.pulls[:, :N_TOPICS], self.z, self.words)
        kappa, m, n = GRID[prior.which], np.exp(prior.log_mean), collapsed.tables
        for i, (d, k) in enumerate(zip(DOCS, self.z, strict=True)):
            g = GROUP[d]
            n[g, self.words[i], k] -= 1
            p = (n[g, :, k] + kappa[:, k]) / (kappa[:, k] / m[:, k] + prior.pulls[g, k])
            self.words[i] = rng.choice(N_WORDS, p=p / p.sum())
            n[g, self.words[i], k] += 1
        self.recount()
        return found


@cache
def forward_draws(seed, documents, n):
    """Statistics of states drawn forward."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        found.append(statistics(*drawn_state(rng, documents)))
    return np.array(found)


def z_of(seed, documents, make=Turns, n_forward=8000, n_turns=6000, n_batches=40):
    forward = forward_draws(seed, documents, n_forward)
    chain = make(seed + 1, documents)
    turns = np.array([chain.turn() for _ in range(n_turns)])
    return z_scores(forward, turns, n_batches)


class WithoutPull(GroupedSweeps):
    """Mistake: the auxiliary variables of topics are left out of the weights of tokens."""

    def sweep(self, shard, start, stop, doc_topic_prior, group, rng):
        kept, self.word_prior.pulls = self.word_prior.pulls, np.ones_like(self.word_prior.pulls)
        super().sweep(shard, start, stop, doc_topic_prior, group, rng)
        self.word_prior.pulls = kept


class EmptyAsOne(GroupedSweeps):
    """Mistake: a topic without tokens has the factor of a topic with one."""

    def set_weights(self):
        super().set_weights()
        self.entries = self.word_prior.pulls.copy()


def without_concentrations(prior, collapsed, rng):
    """Mistake: concentrations are not drawn again, but weights are."""
    which = prior.which.copy()
    prior.redraw(collapsed, rng)
    prior.which[:] = which
    collapsed.set_weights()


def without_auxiliary(prior, collapsed, rng):
    """Mistake: auxiliary variables are not drawn again."""
    pulls = prior.pulls.copy()
    prior.redraw(collapsed, rng)
    prior.pulls[:] = pulls
    collapsed.set_weights()


@pytest.mark.parametrize("documents", [Dirichlet, Scaled])
def test_turns_have_the_joint_law(documents, global_random_seed):
    assert z_of(global_random_seed, documents).max() < THRESHOLD


def test_turns_in_shards_have_the_joint_law(global_random_seed):
    assert z_of(global_random_seed, Dirichlet, TurnsInShards).max() < THRESHOLD


def test_auxiliary_variables_of_shards_belong_to_the_counts_after_the_pass(global_random_seed):
    turns = TurnsInShards(global_random_seed, Dirichlet)
    collapsed, prior, rng = turns.collapsed, turns.prior, turns.rng
    collapsed.drawn_topics(rng)
    after = np.zeros_like(collapsed.table)
    after[0::N_GROUPS, 0], after[1::N_GROUPS, 1] = 5, [7, 0, 0, 1]  # Each topic has tokens in one of three groups.
    collapsed.take(after)
    found, n = np.zeros((N_GROUPS, N_TOPICS)), 4000
    for _ in range(n):
        collapsed.finish(rng)
        found += prior.pulls[:, :N_TOPICS] / n
    expected = np.tile(1.0 / np.exp(prior.log_mean).sum(axis=0), (N_GROUPS, 1))
    expected[0, 0], expected[1, 1] = 20.0 / collapsed.sums[0, 0], 8.0 / collapsed.sums[1, 1]
    np.testing.assert_allclose(found, expected, rtol=6.0 / np.sqrt(n))


BROKEN = {
    "without pull": {"sweeps": WithoutPull},
    "an empty topic as one of one token": {"sweeps": EmptyAsOne},
    "without concentrations": {"redraw": staticmethod(without_concentrations)},
    "without auxiliary variables": {"redraw": staticmethod(without_auxiliary)},
}


@pytest.mark.parametrize("name", BROKEN)
def test_turns_with_a_mistake_are_rejected(name, global_random_seed):
    broken = type("Broken", (Turns,), BROKEN[name])
    assert z_of(global_random_seed, Dirichlet, broken).max() > 1.3 * THRESHOLD
