"""Laws of topic models with a dispersion for each topic: assignments, coefficients, and all of them together."""

import numpy as np
import pytest

from sk_sgmcmc.covariates.prior import NormalPrior
from sk_sgmcmc.dense.rows import DenseRows
from sk_sgmcmc.kernels.models import scaled_dirichlet as kernels
from sk_sgmcmc.topic._counts import scaled_dirichlet
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.corpus import AssignedShards, Described, OneShard, Shard
from sk_sgmcmc.topic._counts.document_prior import DocumentPrior, Progress
from sk_sgmcmc.topic._counts.scaled_dirichlet import ScaledDirichlet, ScaledSweeps
from sk_sgmcmc.topic._counts.sweeps import GeneralSweeps
from sk_sgmcmc.topic._dmr import dispersed_prior
from sk_sgmcmc.topic._dmr.dispersed_prior import DispersedMetadataPrior, distributions, halves
from tests.cases import THRESHOLD, z_scores
from tests.naive import lda as naive
from tests.naive import scaled_dirichlet as naive_scaled
from tests.tiny_lda import BETA, COUNTS, PAIRS, batch_means, exact_law, make_chain, statistics, tokens_of

# ------------------------------------------------------------------------- assignments, every one of them enumerated

SHAPE, RATE = np.array([[0.4, 0.7], [1.5, 0.2]]), np.array([[0.3, 4.0], [2.0, 0.5]])
GROUP = np.array([0, 1, 0])


class Scaled(DocumentPrior):
    """Documents have scaled Dirichlet distributions, which stand still."""

    rate = RATE

    def sweep_priors(self, shard):
        return ScaledDirichlet(SHAPE, self.rate), GROUP

    def sweeps(self, shard, z, topic_word_prior):
        return ScaledSweeps(shard, z, topic_word_prior)


class EqualRates(Scaled):
    """The scales of all topics are equal, so that the distributions are Dirichlet."""

    rate = np.full((2, 2), 2.5)


def with_fixed_auxiliary(module, call, *args):
    """Call a function while ``module`` sets auxiliary variables to a number instead of drawing them."""
    of = module.scaled_dirichlet  # Modules of kernels are loaded for each importing module.
    drawn, of.draw_auxiliary = of.draw_auxiliary, lambda *args: args[-1].__setitem__(slice(None), 0.05)
    try:
        call(*args)
    finally:
        of.draw_auxiliary = drawn


class FixedAuxiliary(ScaledSweeps):
    """Mistake: the auxiliary variables are not drawn again."""

    def sweep(self, *args):
        with_fixed_auxiliary(scaled_dirichlet, super().sweep, *args)


class NoWeights(GeneralSweeps):
    """Mistake: topics are not weighted by 1 / (rate + auxiliary variable)."""

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        super().sweep(data, start, stop, doc_topic_prior.shape, group, rng)


def law_of_scaled(rate):
    """As `exact_law`, with scaled Dirichlet distributions of the proportions."""
    docs, words = tokens_of(COUNTS)
    z, p = naive.posterior_of_assignments(words, docs, COUNTS.shape[1], 2, SHAPE[GROUP], BETA)
    counts = np.stack([[(z[:, docs == d] == k).sum(axis=1) for k in range(2)] for d in range(3)], axis=1)
    counts = np.moveaxis(counts, -1, 0).transpose(0, 2, 1)  # (n_assignments, n_docs, n_topics)
    ones = np.ones(2)
    for d, g in enumerate(GROUP):
        kinds, place = np.unique(counts[:, d], axis=0, return_inverse=True)
        ratio = [
            naive_scaled.log_evidence(n, SHAPE[g], rate[g]) - naive_scaled.log_evidence(n, SHAPE[g], ones)
            for n in kinds.astype(float)
        ]
        p = p * np.exp(ratio)[place.ravel()]
    mean, square = naive.moments_of_sum(z, p / p.sum(), PAIRS, words, COUNTS.shape[1], 2, BETA)
    return np.concatenate([mean, square])


def z_of(seed, law, prior=Scaled, sweeps=ScaledSweeps, n_steps=8000):
    class Own(prior):
        def sweeps(self, shard, z, topic_word_prior):
            return sweeps(shard, z, topic_word_prior)

    chain = make_chain(
        seed, 1.0, n_steps + 200, make=CollapsedChain, doc_prior=Own(SHAPE[0]), beta=np.full((3, 1), BETA)
    )
    draws = chain.run(n_steps + 200).draws()["components"]
    return np.abs(z_scores(batch_means(statistics(draws)), law)).max()


@pytest.fixture(scope="module")
def law():
    return law_of_scaled(RATE)


def test_with_equal_rates_the_law_is_that_of_dirichlet_priors():
    np.testing.assert_allclose(law_of_scaled(EqualRates.rate), exact_law(alpha=SHAPE[GROUP]), rtol=1e-6)


def test_assignments_have_the_exact_law(law, global_random_seed):
    assert z_of(global_random_seed, law) < THRESHOLD


def test_with_equal_rates_assignments_have_the_law_of_dirichlet_priors(global_random_seed):
    assert z_of(global_random_seed, exact_law(alpha=SHAPE[GROUP]), EqualRates) < THRESHOLD


def test_sweeps_without_weights_are_rejected(law, global_random_seed):
    assert z_of(global_random_seed, law, sweeps=NoWeights) > 1.3 * THRESHOLD


# ------------------------------------------------------------------- words, assignments and coefficients, all together

N_DOCS, LENGTH, N_WORDS, N_TOPICS, WORD_PRIOR = 8, 6, 4, 2, 0.5
ROWS = DenseRows(np.array([[-1.0], [1.0]]), np.zeros(1), np.ones(1), True)
DOC_GROUP = np.repeat([0, 1], N_DOCS // 2)
PRIORS = NormalPrior(1, (0.7, 0.5)), NormalPrior(1, (0.6, 0.8))
FIRST = np.array([0.6, 1.2])
PTR = LENGTH * np.arange(N_DOCS + 1)


def summaries(value, z, words):
    """What is compared: coefficients and their products, and which topics and words occur together; (n, n_numbers).

    ``value`` (n, n_topics, 4), ``z`` and ``words`` (n, n_tokens).
    """
    shapes, scales = halves(value)
    scales = scales - scales.mean(axis=1, keepdims=True)  # Their mean is drawn from the prior.
    coef = np.concatenate([shapes, scales], axis=-1)
    n_dk = (z.reshape(len(z), N_DOCS, LENGTH) == 0).sum(axis=2) / LENGTH
    first, second = n_dk[:, : N_DOCS // 2], n_dk[:, N_DOCS // 2 :]
    same = (z[:, :1] == z) & (words[:, :1] == words)
    numbers = [
        coef.reshape(len(z), -1), coef.reshape(len(z), -1) ** 2, (shapes * scales).reshape(len(z), -1),
        first.mean(axis=1)[:, None], second.mean(axis=1)[:, None], (first**2).mean(axis=1)[:, None],
        (second**2).mean(axis=1)[:, None], same.mean(axis=1)[:, None],
        coef[:, 0] * first.mean(axis=1)[:, None], coef[:, 0] * (second**2).mean(axis=1)[:, None],
    ]  # fmt: skip
    return np.hstack(numbers)


def prior_summaries(n, rng):
    """Summaries of draws of everything from the model."""
    value = np.empty((n, N_TOPICS, 4))
    for each in value:
        for k in range(N_TOPICS):
            each[k] = np.concatenate([prior.draw(rng) for prior in PRIORS])
    value[:, :, 1] += np.log(FIRST)
    eta = np.einsum("gw,nkhw->nhgk", ROWS.Z, value.reshape(n, N_TOPICS, 2, 2))
    activity = rng.gamma(np.exp(eta[:, 0])) * np.exp(eta[:, 1])  # One document of each group at a time.
    z = np.empty((n, N_DOCS * LENGTH), dtype=int)
    for d in range(N_DOCS):
        g = DOC_GROUP[d]
        activity = rng.gamma(np.exp(eta[:, 0, g])) * np.exp(eta[:, 1, g])
        share = activity[:, 0] / activity.sum(axis=1)
        z[:, PTR[d] : PTR[d + 1]] = rng.random((n, LENGTH)) >= share[:, None]
    return summaries(value, z, np.stack([words_given(each, rng) for each in z]))


def words_given(z, rng):
    """Words of tokens drawn given their topics, the distributions of topics over words integrated out."""
    phi = rng.dirichlet(np.full(N_WORDS, WORD_PRIOR), N_TOPICS)
    return np.minimum((np.cumsum(phi, axis=1)[z] < rng.random((z.size, 1))).sum(axis=1), N_WORDS - 1)


class StandingScale(DispersedMetadataPrior):
    """Mistake: the common scale is drawn from too wide a prior."""

    def update(self, assigned, progress):
        self.coefficients.redraw_common_scale = lambda rng: self._shift(rng)
        super().update(assigned, progress)

    def _shift(self, rng):
        halves(self.coefficients.value)[1][:] += rng.standard_normal(2) * 2.0


class StaleAuxiliary(DispersedMetadataPrior):
    """Mistake: coefficients move given auxiliary variables that do not belong to the assignments."""

    def update(self, assigned, progress):
        with_fixed_auxiliary(dispersed_prior, super().update, assigned, progress)


def joint_z(seed, n_steps=6000, make=DispersedMetadataPrior, sweeps=ScaledSweeps):
    """Largest z-score of a chain that also redraws words, against draws from the model.

    Words given assignments, assignments given words, and coefficients given assignments leave the joint distribution
    unchanged if each is right (Geweke 2004, Getting it right, JASA 99).
    """
    rng = np.random.default_rng([seed, 1])
    prior = make(FIRST, PRIORS)
    described = Described(DOC_GROUP.astype(np.int64), ROWS.Z[:, :1], ROWS)
    z = rng.integers(0, N_TOPICS, PTR[-1]).astype(np.uint16)
    table = np.broadcast_to(WORD_PRIOR, (N_WORDS, N_TOPICS))
    values, topics, words = np.empty((n_steps, N_TOPICS, 4)), np.empty((n_steps, z.size), int), []
    for t in range(-100, n_steps):
        words.append(words_given(z, rng))
        shard = Shard(PTR, words[-1].astype(np.int32), np.empty(0), 0, N_WORDS, described)
        sweeps(shard, z, table).sweep(shard, 0, N_DOCS, *prior.sweep_priors(shard), rng)
        progress = Progress(t + 200, 0, 2 * t + 200, rng, seed, 0.0)
        prior.update(AssignedShards(OneShard(shard), z, None), progress)
        prior._cached = None, None
        if t >= 0:
            values[t], topics[t] = prior.coefficients.value, z
    found = summaries(values, topics, np.stack(words[100:]))
    exact = prior_summaries(40_000, np.random.default_rng([seed, 2]))
    batches = batch_means(found)
    error = np.sqrt(batches.var(axis=0, ddof=1) / len(batches) + exact.var(axis=0) / len(exact))
    return np.abs((batches.mean(axis=0) - exact.mean(axis=0)) / error).max()


@pytest.mark.parametrize("longest", [dispersed_prior._LONGEST, 1.2])
def test_the_whole_sampler_leaves_the_joint_distribution_unchanged(longest, global_random_seed, monkeypatch):
    monkeypatch.setattr(dispersed_prior, "_LONGEST", longest)  # With the longer steps, many trajectories are rejected.
    assert joint_z(global_random_seed) < THRESHOLD


def test_the_mean_of_scales_is_drawn_from_its_prior(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    coefficients = dispersed_prior.DispersedCoefficients(FIRST, PRIORS)
    coefficients.value = rng.normal(size=coefficients.value.shape)
    scales = halves(coefficients.value)[1]
    before, means = scales - scales.mean(axis=0), np.empty((4000, 2))
    for each in means:
        coefficients.redraw_common_scale(rng)
        each[:] = scales.mean(axis=0)
    np.testing.assert_allclose(scales - scales.mean(axis=0), before)
    deviation = means * np.sqrt(N_TOPICS * PRIORS[1].diagonal)
    assert np.abs(deviation.mean(axis=0)).max() < 5.0 / np.sqrt(4000)
    assert np.abs(deviation.var(axis=0) - 1.0).max() < 5.0 * np.sqrt(2.0 / 4000)


WRONG = {
    "common scale": {"make": StandingScale},
    "auxiliary variables of updates": {"make": StaleAuxiliary},
    "auxiliary variables of sweeps": {"sweeps": FixedAuxiliary},
    "weights": {"sweeps": NoWeights},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_wrong_samplers_change_the_joint_distribution(wrong, global_random_seed):
    assert joint_z(global_random_seed, **wrong) > 1.3 * THRESHOLD


# --------------------------------------------------------------------------------------------------------- coefficients


def test_draws_keep_the_distributions_of_proportions():
    # Draws contain coefficients of means, and scales relative to their mean over topics.
    prior = DispersedMetadataPrior(FIRST, PRIORS)
    prior.coefficients.value = np.random.default_rng(0).normal(size=(2, 4))
    described = Described(DOC_GROUP.astype(np.int64), ROWS.Z[:, :1], ROWS)
    shard = Shard(PTR, np.zeros(PTR[-1], np.int32), np.empty(0), 0, N_WORDS, described)
    before = prior.sweep_priors(shard)[0]
    (after, _), _ = prior.in_draw(prior.draw(), shard)
    np.testing.assert_allclose(after.shape, before.shape)
    np.testing.assert_allclose(after.mean(), before.mean(), rtol=1e-7)
    np.testing.assert_allclose(prior.draw()["dispersion_coef"].sum(axis=0), 0.0, atol=1e-12)
    eta = [ROWS.predict(prior.draw()[name]) for name in ("coef", "dispersion_coef")]
    np.testing.assert_allclose(np.log(after.activity), eta[0])
    np.testing.assert_allclose(np.log(after.activity / after.shape), eta[1])


def test_proportions_are_drawn_given_a_draw_and_counts(global_random_seed):
    prior, n = DispersedMetadataPrior(FIRST, PRIORS), 20_000
    prior.coefficients.value = np.random.default_rng(0).normal(size=(2, 4))
    draw, given = prior.draw(), ROWS.Z[:, :1]
    prior.coefficients.reset()  # The present state does not matter.
    documents = Shard(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0), 0, N_WORDS,
                      Described(np.ones(n, np.int64), given, ROWS))  # fmt: skip
    counts = np.tile([2.0, 5.0], (n, 1))
    theta = prior.draw_proportions(draw, documents, counts, global_random_seed)
    assert theta.dtype == np.float32 and np.allclose(theta.sum(axis=1), 1.0)
    log_mean, log_scale = (ROWS.predict(draw[name])[1] for name in ("coef", "dispersion_coef"))
    mean = naive_scaled.mean_given_counts(counts[0], np.exp(log_mean - log_scale), np.exp(-log_scale))
    error = theta.std(axis=0) / np.sqrt(n)
    assert np.abs((theta.mean(axis=0) - mean) / error).max() < THRESHOLD


def evidence_of_counts(seed):
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1], 150)
    shape, rate = distributions(np.array([[-1.0, 0.5], [0.5, -0.5]]), np.array([[1.0, -1.0], [0.0, 0.3]]))
    activity = rng.gamma(shape[group]) / rate[group]
    counts = rng.multinomial(40, activity / activity.sum(axis=1, keepdims=True))
    ptr = 40 * np.arange(301)
    z = np.repeat(np.tile([0, 1], 300), counts.ravel()).astype(np.uint16)
    shard = Shard(ptr, np.zeros(z.size, np.int32), np.empty(0), 0, 1, Described(group, ROWS.Z[:, :1], ROWS))
    auxiliary = np.empty(300)
    kernels.draw_auxiliary(0, 300, ptr, np.empty(0), z, shape, rate, group, rng, auxiliary)
    return dispersed_prior.CountEvidence(shard, z, auxiliary)


@pytest.mark.parametrize("most_cells", [4_000_000, 1])
def test_coefficients_reach_their_mode_and_move_in_coordinates_of_unit_variance(most_cells, monkeypatch):
    monkeypatch.setattr(dispersed_prior, "_MAX_CELLS", most_cells)
    evidence, rng = evidence_of_counts(0), np.random.default_rng(0)
    coefficients = dispersed_prior.DispersedCoefficients(FIRST, PRIORS)
    for _ in range(5 if most_cells == 1 else 1):
        coefficients.maximise(evidence)
    density, gradient = coefficients.log_posterior(evidence, coefficients.value)
    assert np.abs(coefficients.coordinates.pull(gradient)).max() < (0.05 if most_cells > 1 else 1.0)
    near = coefficients.value + 0.02 * rng.normal(size=(20, 2, 4))
    assert most_cells == 1 or all(np.all(coefficients.log_posterior(evidence, each)[0] < density) for each in near)
    draws = []
    for _ in range(1500):
        coefficients.move(evidence, rng, len(draws) < 300)
        draws.append(coefficients.coordinates.forward(coefficients.value))
    spread = np.std(draws[300:], axis=0)
    assert spread.min() > 0.6 and spread.max() < (1.6 if most_cells > 1 else 4.0)
    moved = np.mean(np.any(np.diff(draws[300:], axis=0) != 0, axis=2))
    assert moved > 0.6
