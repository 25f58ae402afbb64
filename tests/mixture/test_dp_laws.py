"""Chains of Dirichlet-process mixtures against the exact posterior of five rows; broken variants rejected."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc.mixture._dirichlet_process.slice import StickChain
from tests.cases import THRESHOLD, z_scores
from tests.naive import dp_categorical as naive
from tests.tiny_dp import N_LEVELS, ROWS, A, encoded, exact_law, make_chain, run
from tests.tiny_lda import batch_means

GAMMA = (1.5, 0.8)
exact = cache(exact_law)


def z_of(kind, likelihood, prior, seed, n_steps=2000, **arguments):
    chain = make_chain(kind, likelihood, prior, seed, n_steps + 200, **arguments)
    means = batch_means(run(chain, n_steps, likelihood), 25)
    moving = means.std(axis=0) > 0
    assert moving.sum() >= 8
    return np.abs(z_scores(means[:, moving], exact(likelihood, prior)[moving])).max()


EXACT = {
    "labels, all rows": ("collapsed", GAMMA, {"n_pairs": 0}),
    "labels, splits and merges": ("collapsed", GAMMA, {"n_batch": 2, "n_pairs": 3}),
    "slices of all rows": ("slices", GAMMA, {}),
    # Its concentration moves so slowly that batches of a chain are no independent ones: it is held.
    "stored labels, a finite step, two rows": ("stored", 1.3, {"n_batch": 2, "n_steps": 4000}),
}


@pytest.mark.parametrize("key", EXACT)
def test_chain_has_the_exact_posterior_of_counts(key, global_random_seed):
    kind, prior, arguments = EXACT[key]
    assert z_of(kind, "multinomial", prior, global_random_seed, **arguments) < THRESHOLD


@pytest.mark.parametrize("likelihood", ["categorical", "bernoulli"])
@pytest.mark.parametrize("key", ["labels, splits and merges", "slices of all rows"])
def test_chain_has_the_exact_posterior_with_missing_entries(key, likelihood, global_random_seed):
    kind, _, arguments = EXACT[key]
    assert z_of(kind, likelihood, 1.3, global_random_seed, **arguments) < THRESHOLD


# Rows of 0 and 1 that share clusters in many ways, and rows so unlike that each is often alone.
SHARED = np.array([[1, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 1, 0]], dtype=float)
ALONE = np.kron(np.eye(4), np.ones(3))


def mean_number_of_clusters(X, a=A, alpha=1.3):
    """Exactly, by enumeration of all partitions."""
    labels = naive.partitions(len(X))
    log_p = naive.log_posterior(labels, X, "bernoulli", a, alpha)
    return np.exp(log_p - np.logaddexp.reduce(log_p)) @ (labels.max(axis=1) + 1)


def test_enumeration_gives_the_known_mean_number_of_clusters():
    assert mean_number_of_clusters(SHARED, a=0.5) == pytest.approx(3.248, abs=5e-4)


# The counts of a minibatch times N/n widen the posterior by a share of order step_size, most at one row of four.
@pytest.mark.parametrize(
    "X, n_batch, step_size",
    [(SHARED, 1, 0.2), (SHARED, 2, 0.2), (SHARED, 3, 0.2), (ALONE, 1, 0.05)],
    ids=["one row", "two rows", "three rows", "singletons"],
)
def test_fresh_assignments_have_the_exact_number_of_clusters(X, n_batch, step_size, global_random_seed):
    n_steps = 3000
    chain = make_chain("fresh", "bernoulli", 1.3, global_random_seed, n_steps + 200, n_batch, step_size=step_size, X=X)
    drawn = numbers_of_clusters(chain, n_steps, burn_in=200)
    means = batch_means(drawn[:, None].astype(float), 10)  # long batches: a chain forgets within some 50 steps
    assert np.abs(z_scores(means, np.array([mean_number_of_clusters(X)]))) < THRESHOLD


def test_rows_outside_the_minibatch_keep_their_components(global_random_seed):
    chain = make_chain("fresh", "bernoulli", 1.3, global_random_seed, 300, 1, step_size=0.2, X=SHARED)
    chain.run(100)
    for _ in range(100):
        before = chain.z.copy()
        after = chain.run(chain.step + 1).z
        assert after.min() >= 0
        assert (after != before).sum() <= 1
        assert chain.n_components == after.max() + 1  # later sticks are drawn from the prior when they are needed


# ---------------------------------------------------------------------------------------------------- broken variants


def test_sticks_in_the_wrong_order_are_rejected(global_random_seed, monkeypatch):
    def before_instead_of_after(self, sizes):
        return np.stack([1.0 + sizes, self.concentration + np.cumsum(sizes) - sizes])

    monkeypatch.setattr(StickChain, "_stick_shapes", before_instead_of_after)
    assert z_of("slices", "multinomial", 0.4, global_random_seed) > THRESHOLD


def test_splits_accepted_too_often_are_rejected(global_random_seed, monkeypatch):
    from sk_sgmcmc.mixture._dirichlet_process.collapsed import CollapsedChain

    move = CollapsedChain._move_groups

    def with_another_concentration(self):
        right, self.concentration = self.concentration, 4.0 * self.concentration
        move(self)
        self.concentration = right

    monkeypatch.setattr(CollapsedChain, "_move_groups", with_another_concentration)
    assert z_of("collapsed", "multinomial", 1.3, global_random_seed, n_batch=5, n_pairs=6) > 2 * THRESHOLD


# ------------------------------------------------------------------------------------------------------ other claims


@pytest.mark.parametrize("likelihood", ROWS)
def test_a_sweep_is_that_of_the_slow_version(likelihood, global_random_seed):
    from sk_sgmcmc.kernels.models.dirichlet_process.collapsed import sweep_rows

    chain = make_chain("collapsed", likelihood, 1.3, global_random_seed, 10, n_start=2)
    chain.current()  # starts it
    own = chain.data.selected(np.arange(5)).toarray()
    given = encoded(ROWS[likelihood], likelihood)[0].toarray()
    X = ROWS[likelihood][[int(np.flatnonzero((given == row).all(axis=1))[0]) for row in own]]
    slow, twin = chain.z.copy(), np.random.default_rng(global_random_seed)
    rng = np.random.default_rng(global_random_seed)
    for _ in range(30):
        sweep_rows(
            np.arange(5), 0, *chain._arrays(), 1.3, chain.z, chain.counts, chain.sizes, chain.zeros, chain.state, rng
        )
        naive.sweep(slow, X, likelihood, A, 1.3, twin, N_LEVELS)
        np.testing.assert_array_equal(chain.z, slow)


def stirling(n):
    """Unsigned Stirling numbers of the first kind, of n and 1..n."""
    numbers = np.ones(1)
    for m in range(1, n):
        numbers = np.append(numbers, 0.0) * m + np.append(0.0, numbers)
    return numbers


def numbers_of_clusters(chain, n_steps, burn_in=50):
    """How many clusters there are after each step."""
    chain.run(burn_in)
    return np.array([np.unique(chain.run(chain.step + 1).z).size for _ in range(n_steps)])


@pytest.mark.parametrize("kind", ["collapsed", "slices"])
def test_rows_that_say_nothing_leave_the_prior_of_the_number_of_clusters(kind, global_random_seed):
    alpha = 1.5
    chain = make_chain(kind, "multinomial", alpha, global_random_seed, 4000, X=np.zeros((5, 3)))
    drawn = numbers_of_clusters(chain, 3000)
    p = stirling(5) * alpha ** np.arange(1, 6)
    values = (drawn[:, None] == np.arange(1, 6)).astype(float)
    assert np.abs(z_scores(batch_means(values), p / p.sum())).max() < THRESHOLD


def calibration_ranks(seed, n_replicates, n_draws=7, thin=6, **arguments):
    """Ranks of the concentration, of the number of pairs together and of a row's probability among draws."""
    ranks = []
    for s in range(n_replicates):
        rng = np.random.default_rng([seed, s])
        alpha, z = rng.gamma(GAMMA[0]) / GAMMA[1], [0]
        for i in range(1, 8):
            z.append(int(np.searchsorted(np.cumsum(np.append(np.bincount(z), alpha)), rng.random() * (i + alpha))))
        theta = rng.dirichlet([A] * 3, max(z) + 1)
        X = np.array([rng.multinomial(4, theta[k]) for k in z], dtype=float)
        order = np.lexsort(X.T)
        chain = make_chain("collapsed", "multinomial", GAMMA, [seed, s], 100, X=X, **arguments)
        draws = []
        for _ in range(n_draws):
            chain.run(chain.step + (40 if not draws else thin))
            own = np.lexsort(chain.data.selected(np.arange(8)).toarray().T)
            draws.append(truths(chain.concentration, chain.z[own], X[order], rng))
        below = np.array(draws) < truths(alpha, np.array(z)[order], X[order], rng)
        ranks.append(below.sum(axis=0))
    return np.array(ranks)


def truths(alpha, z, X, rng):
    """The three statistics; the ties of the second are broken at random."""
    log_likelihood = sum(naive.log_marginal(X[z == k], "multinomial", A) for k in np.unique(z))
    return [alpha, (z[:, None] == z).sum() + rng.random(), log_likelihood + 1e-9 * rng.random()]


def test_chain_is_calibrated(global_random_seed):
    ranks = calibration_ranks(global_random_seed, 300, n_batch=4)
    p = [stats.chisquare(np.bincount(column, minlength=8)).pvalue for column in ranks.T]
    assert min(p) > 3e-5
