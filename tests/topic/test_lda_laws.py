"""LDA's chains against the exact posterior of a tiny corpus, all assignments enumerated; broken variants rejected."""

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc.kernels.models.lda.assignments import count_assignments
from sk_sgmcmc.kernels.samplers import simplex
from sk_sgmcmc.kernels.samplers.simplex import add_rows
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._minibatch.chain import MinibatchChain
from tests import calibration
from tests.cases import THRESHOLD, z_scores
from tests.tiny_lda import ALPHA, BETA, COUNTS, INFINITE, batch_means, exact_law, make_chain, statistics, tokens_of

N_STEPS = 8000


@pytest.fixture(scope="module")
def law():
    return exact_law()


def z_of(law, *args, n_steps=N_STEPS, **kwargs):
    chain = make_chain(*args, n_steps + 200, **kwargs).run(n_steps + 200)
    return np.abs(z_scores(batch_means(statistics(chain.draws()["components"])), law)).max()


def test_enumeration_has_the_prior_law_where_there_are_no_tokens():
    # The oracle itself: one token tells nothing about two words that it does not name.
    law = exact_law(np.array([[1, 0, 0]]))
    assert law[0] > law[3] and law[0] > law[1]
    rng = np.random.default_rng(0)
    phi = rng.dirichlet([BETA] * 3, (200_000, 2))
    theta = rng.dirichlet(ALPHA, 200_000)
    weight = (theta * phi[:, :, 0]).sum(axis=1)
    values = statistics(phi)
    np.testing.assert_allclose(weight @ values / weight.sum(), law, atol=0.005)


# ------------------------------------------------------------------------------------------------- the exact samplers

EXACT = {
    "gibbs": (1.0, {"make": CollapsedChain}),
    "scir, infinite step, all documents": (INFINITE, {}),
    "scir, infinite step, one document at a time": (INFINITE, {"n_batch": 1}),
    "scir, infinite step, kept rarely": (INFINITE, {"n_batch": 1, "thin": 3, "n_steps": 2 * N_STEPS}),
}


@pytest.mark.parametrize("key", EXACT)
def test_chain_has_the_exact_posterior(key, law, global_random_seed):
    step_size, arguments = EXACT[key]
    assert z_of(law, global_random_seed, step_size, **arguments) < THRESHOLD


def test_warm_steps_have_the_same_law(law, global_random_seed):
    n = N_STEPS + 200
    chain = make_chain(global_random_seed, INFINITE, n, n_batch=2, n_warm=n)  # collapsed sweeps all the way
    values = statistics(chain.run(n).draws()["components"])
    assert np.abs(z_scores(batch_means(values), law)).max() < THRESHOLD


def test_gibbs_with_weights_has_the_law_of_whole_tokens(law, global_random_seed):
    # A prior given cell by cell takes the general kernel instead of the one for whole tokens and one number.
    beta = np.full((COUNTS.shape[1], 1), BETA)
    chain = make_chain(global_random_seed, 1.0, N_STEPS, make=CollapsedChain, beta=beta)
    values = statistics(chain.run(N_STEPS).draws()["components"])
    assert not chain.collapsed.is_fast
    assert np.abs(z_scores(batch_means(values[: len(values) // 50 * 50]), law)).max() < THRESHOLD


def test_stored_assignments_have_the_exact_law(global_random_seed):
    # Not of topics but of z: how often two tokens share a topic.
    from tests.naive import lda as naive

    docs, words = tokens_of(COUNTS)
    z, p = naive.posterior_of_assignments(words, docs, COUNTS.shape[1], 2, ALPHA, BETA)
    pairs = [(0, 3), (0, 4), (4, 8), (5, 9)]
    expected = np.array([p @ (z[:, i] == z[:, j]) for i, j in pairs])
    chain = make_chain(global_random_seed, INFINITE, N_STEPS, n_batch=2)
    seen = np.empty((N_STEPS, len(pairs)))
    for t in range(N_STEPS):
        chain.run(t + 1)
        seen[t] = [chain.z[i] == chain.z[j] for i, j in pairs]
    assert np.abs(z_scores(batch_means(seen[200:]), expected)).max() < THRESHOLD


@pytest.mark.parametrize("n_batch", [None, 1])
@pytest.mark.parametrize("step_size", [0.5, 2.0])
def test_stored_assignments_with_a_finite_step_have_no_large_bias(law, step_size, n_batch):
    # Approximate: the sum of a topic's cells is not drawn anew with the assignments, and words rest enter it by
    # their mean. The statistics lie between 0 and 1, and the bound is absolute.
    chain = make_chain(0, step_size, 15_000, n_batch=n_batch)
    values = statistics(chain.run(15_000).draws()["components"])
    means = batch_means(values)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    assert np.all(np.abs(means.mean(axis=0) - law) < 0.02 + 4.0 * error)


def test_fresh_assignments_are_right_for_all_documents_and_small_steps(law, global_random_seed):
    z = z_of(law, global_random_seed, 0.1, stored=False, n_sweeps=(4, 1), n_steps=12_000)
    assert z < THRESHOLD


def test_averaged_sweeps_narrow_the_posterior_at_large_steps(law):
    z = z_of(law, 0, INFINITE, stored=False, n_sweeps=(2, 8))
    assert z > 1.3 * THRESHOLD  # which is why the guide has a table of it


# --------------------------------------------------------------------------------------------------- broken variants


class ScaledStoredCounts(MinibatchChain):
    """Mistake: N/n with stored counts."""

    def _shape_of(self, rows):
        scale = self.data.n_docs / min(self.data.n_batch, self.data.n_docs)
        return self.word_prior.table()[rows] + scale * self.counts[rows]

    def one_step(self, docs):
        self.topics.shape_mass = self._shape_of(np.arange(self.n_words)).sum(axis=0)
        super().one_step(docs)


class NotSubtracted(MinibatchChain):
    """Mistake: the old assignments of a minibatch are not taken from the counts when the new ones are added."""

    def bind(self, data):
        super().bind(data)
        draw = self.minibatch.draw

        def drawn(docs, rows, *args, **kwargs):
            old, documents = np.zeros((self.n_words, self.n_topics)), self.data.documents
            for d in docs:
                lo, hi = documents.token_ptr[d : d + 2]
                count_assignments(documents.words[lo:hi], np.empty(0), self.z[lo:hi], old)
            change, doc_counts = draw(docs, rows, *args, **kwargs)
            return change + old[rows], doc_counts

        self.minibatch.draw = drawn
        return self


class DifferenceControlVariate(MinibatchChain):
    """Mistake: shape = prior + n_old + (N/n) (new - old), which looks like a control variate; negative shapes."""

    n_negative = n_moves = 0

    def _move(self, docs, rows, counts, hyper):
        self.topics.shape_mass += add_rows(self.counts, rows, counts)
        signal = self._shape_of(rows) + (self.data.n_docs / docs.size - 1.0) * counts
        self.n_moves += 1
        self.n_negative += bool(np.any(signal <= 0))
        nothing = np.zeros(self.n_topics)
        self.topics.move(rows, np.maximum(signal, 1e-3), nothing, hyper, self.rng)


BROKEN = {
    "stored counts scaled by N/n": (ScaledStoredCounts, INFINITE),
    "old assignments not subtracted": (NotSubtracted, INFINITE),
    "n_old + (N/n) (new - old)": (DifferenceControlVariate, INFINITE),
}


@pytest.mark.parametrize("key", BROKEN)
def test_broken_chain_is_rejected(key, law, global_random_seed):
    make, step_size = BROKEN[key]
    assert z_of(law, global_random_seed, step_size, make=make, n_batch=1, n_steps=2 * N_STEPS) > 1.3 * THRESHOLD


def test_the_difference_control_variate_has_negative_shapes():
    chain = make_chain(0, 0.5, 2000, make=DifferenceControlVariate, n_batch=1).run(2000)
    assert chain.n_negative / chain.n_moves > 0.1


# --------------------------------------------------------------------- averaged counts on a toy, papers.md section 003


def toy(h, averaged, seed=0, n_chains=2000, n_steps=400, burn_in=100):
    """Standard deviation of a weight of two known components, observations ambiguous; SCIR's kernel, many columns.

    Two hard cases on either side: the posterior of omega ~ Dirichlet(1/2, 1/2) given likelihood ratios of x_i.
    """
    ratio = np.array(TOY_RATIOS)[:, None]
    prior = np.full((2, 1), TOY_PRIOR)
    rng = np.random.default_rng(seed)
    theta = rng.standard_gamma(1.0, (2, n_chains)) + 0.1
    rows, values = np.arange(2), []
    for t in range(n_steps + burn_in):
        first = theta[0] * ratio / (theta[0] * ratio + theta[1])
        if not averaged:
            first = (rng.random(first.shape) < first).astype(float)
        n = first.sum(axis=0)
        signal = np.ascontiguousarray(prior + np.array([n, len(ratio) - n]))
        simplex.scir_step(theta, np.zeros((0, 2, n_chains)), np.zeros(1), signal, n, np.array([h]), rows, rng)
        if t >= burn_in:
            values.append(theta[0] / theta.sum(axis=0))
    return np.std(values)


TOY_PRIOR, TOY_RATIOS = 0.5, [3.0] * 4 + [1 / 3] * 4


def toy_exact_sd():
    """By quadrature, in the angle u with omega = sin(u)^2, which takes the poles of the prior away."""
    u = (np.arange(20_000) + 0.5) / 20_000 * np.pi / 2
    omega = np.sin(u) ** 2
    log_p = (2 * TOY_PRIOR - 1) * np.log(np.sin(u) * np.cos(u))
    for ratio in TOY_RATIOS:
        log_p += np.log(omega * ratio + 1 - omega)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return np.sqrt(p @ omega**2 - (p @ omega) ** 2)


@pytest.mark.parametrize("h", [0.1, 0.5, INFINITE])
def test_hard_draws_have_the_right_spread_at_every_step_size(h):
    assert toy(h, averaged=False) == pytest.approx(toy_exact_sd(), rel=0.01)


def test_averaged_counts_lose_spread_in_proportion_to_the_step():
    exact = toy_exact_sd()
    loss = np.array([1.0 - toy(h, averaged=True) / exact for h in (0.1, 0.5, INFINITE)])
    assert np.all(np.diff(loss) > 0.01), loss
    assert 0.01 < loss[0] < 0.08 and 0.04 < loss[1] < 0.2 and loss[2] > 0.1, loss


# -------------------------------------------------------------------------------------- simulation-based calibration


def test_stored_assignments_are_calibrated(global_random_seed):
    ranks = calibration.ranks(global_random_seed, 500, INFINITE, n_batch=4, burn_in=40, thin=12)
    assert calibration.p_values(ranks).min() > 1e-4


def test_calibration_rejects_scaled_stored_counts(global_random_seed):
    ranks = calibration.ranks(global_random_seed, 500, INFINITE, n_batch=2, make=ScaledStoredCounts)
    assert calibration.p_values(ranks).min() < 1e-6


def test_calibration_error_of_fresh_minibatches_shrinks_with_n_over_n_total():
    pauses = {"burn_in": 20, "thin": 6}
    one, every = (
        calibration.error(calibration.ranks(0, 300, 2.0, n_batch=n, stored=False, n_sweeps=(3, 1), **pauses))
        for n in (1, 8)
    )
    assert one > 0.1
    assert every < 0.6 * one


def test_p_values_of_uniform_ranks_are_uniform():
    rng = np.random.default_rng(0)
    p = [calibration.p_values(rng.integers(0, calibration.N_DRAWS + 1, (500, 1)))[0] for _ in range(300)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3
