"""Laws of Dirichlet-multinomial regression: assignments under priors of groups, coefficients given assignments."""

import pickle

import numpy as np
import pytest
from scipy import optimize, sparse, special

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.datasets import CountBlocks, make_dmr
from sk_sgmcmc.dense.rows import DenseRows
from sk_sgmcmc.metrics import align_topics
from sk_sgmcmc.samplers import SGHMC, SGLD, SGNHT
from sk_sgmcmc.topic._counts import sweeps
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.document_prior import DocumentPrior
from sk_sgmcmc.topic._dmr import coefficients as _coefficients
from sk_sgmcmc.topic._dmr.coefficients import Coefficients, DiagonalWhitener, QuadraticSummary, expansion
from sk_sgmcmc.topic._dmr.group_counts import counts_of_rows, information, likelihood
from sk_sgmcmc.topic._minibatch.chain import MinibatchChain
from tests.cases import THRESHOLD, z_scores
from tests.common.compare import assert_same_draws
from tests.naive import dmr as naive
from tests.tiny_lda import INFINITE, batch_means, exact_law, make_chain, statistics

# ------------------------------------------------------------------------- assignments, every one of them enumerated

PRIORS, GROUP = np.array([[0.2, 1.5], [2.0, 0.1]]), np.array([0, 0, 1])


class Grouped(DocumentPrior):
    """Documents have priors of their own, which stand still."""

    def table(self, shard, docs=None):
        return PRIORS, GROUP if docs is None else GROUP[docs]

    def exchangeable_groups(self):
        return np.arange(2)


class FirstPrior(DocumentPrior):
    """Mistake: all documents get the first one's prior."""

    def table(self, shard, docs=None):
        return PRIORS, np.zeros(3 if docs is None else docs.size, dtype=np.int64)

    def exchangeable_groups(self):
        return np.arange(2)


def z_of(make, seed, step_size=INFINITE, n_steps=8000, prior=Grouped, **params):
    chain = make_chain(seed, step_size, n_steps + 200, make=make, doc_prior=prior(PRIORS[0]), **params)
    law = exact_law(alpha=PRIORS[GROUP], beta=0.4)
    draws = chain.run(n_steps + 200).draws()["components"]
    return np.abs(z_scores(batch_means(statistics(draws)), law)).max()


CHAINS = {
    "stored": (MinibatchChain, {}),
    "stored, one document at a time": (MinibatchChain, {"n_batch": 1}),
    "collapsed": (CollapsedChain, {"step_size": 1.0}),
    "collapsed, weights": (CollapsedChain, {"step_size": 1.0, "beta": np.full((3, 1), 0.4)}),
}


def test_tiny_laws_of_one_prior_and_of_several_differ():
    assert np.abs(exact_law(alpha=PRIORS[GROUP]) - exact_law(alpha=PRIORS[0])).max() > 0.01


@pytest.mark.parametrize("key", CHAINS)
def test_assignments_under_priors_of_groups_have_the_exact_law(key, global_random_seed):
    make, params = CHAINS[key]
    assert z_of(make, global_random_seed, **{"alpha": PRIORS[0], **params}) < THRESHOLD


def test_a_prior_of_the_wrong_group_is_rejected(global_random_seed):
    assert z_of(CollapsedChain, global_random_seed, 1.0, prior=FirstPrior) > 1.3 * THRESHOLD


# ----------------------------------------------------------------------------------- coefficients given assignments

DESIGN = np.array([[-1.0], [1.0]])  # two groups, one column beside the intercept
TOPIC_COUNTS = np.array([[4.0, 1.0], [0.0, 6.0], [3.0, 0.0], [7.0, 2.0], [5.0, 0.0], [2.0, 1.0]])
OF_GROUP = np.array([0, 0, 0, 1, 1, 1])
SCALES, CENTRE = (0.8, 1.2), 0.5


def exact_moments():
    """Means and second moments of the four coefficients, on a grid."""
    axis = np.linspace(-4.0, 4.0, 31)
    grid = np.stack(np.meshgrid(axis, axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 2, 2)
    grid = grid * [SCALES[0], SCALES[1]] + [0.0, np.log(CENTRE)]
    rows = np.column_stack([DESIGN, np.ones(2)])
    log_p = -0.5 * np.sum(((grid - [0.0, np.log(CENTRE)]) / SCALES) ** 2, axis=(1, 2))
    from scipy.special import gammaln

    for g in range(2):
        alpha = np.exp(grid @ rows[g])
        whole = alpha.sum(axis=1)
        for n in TOPIC_COUNTS[g == OF_GROUP]:
            log_p += gammaln(whole) - gammaln(whole + n.sum()) + np.sum(gammaln(alpha + n) - gammaln(alpha), axis=1)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    flat = grid.reshape(-1, 4)
    return np.concatenate([p @ flat, p @ flat**2])


@pytest.fixture(scope="module")
def law():
    return exact_moments()


def drawn_moments(sampler, n_steps, *, residual_of=None, coordinates="joint", seed=0):
    """Batch means of the coefficients and their squares under a sampler."""
    rows = DenseRows(DESIGN, np.zeros(1), np.ones(1), True)
    coefficients = Coefficients(sampler, True, np.full(2, CENTRE), 1, SCALES)
    known, prior = counts_of_rows(TOPIC_COUNTS, OF_GROUP), coefficients.doc_priors(rows)
    parts = information(known, prior)
    coefficients.choose_coordinates(coefficients.curvature(rows, prior, parts, jointly=coordinates == "joint"))
    if coordinates == "diagonal":
        sums = parts[0].sum(axis=0), rows.pull(parts[0]), rows.squares(parts[0])
        coefficients.whitener = DiagonalWhitener(*sums, coefficients.prior.diagonal)
    rng = np.random.default_rng(seed)

    def usual(prior):
        return likelihood(known, prior)[1]

    def slope_of(value):
        return rows.pull((residual_of or usual)(coefficients.doc_priors(rows, value)))

    values = np.empty((n_steps, 4))
    for t in range(-200, n_steps):
        coefficients.move(slope_of, rng)
        values[t] = coefficients.value.ravel()
    return batch_means(np.hstack([values, values**2]))


SAMPLERS = {"sghmc": (SGHMC(0.3), 10_000), "sgnht": (SGNHT(0.15), 10_000), "sgld": (SGLD(0.01), 15_000)}


@pytest.mark.parametrize("name", SAMPLERS)
def test_coefficients_have_their_law_given_assignments(name, law, global_random_seed):
    sampler, n_steps = SAMPLERS[name]
    z = z_scores(drawn_moments(sampler, n_steps, seed=global_random_seed), law)
    assert np.abs(z).max() < THRESHOLD


@pytest.mark.parametrize("coordinates", ["by topic", "diagonal"])
def test_other_coordinates_have_the_same_law(coordinates, law, global_random_seed):
    z = z_scores(drawn_moments(SGHMC(0.3), 10_000, coordinates=coordinates, seed=global_random_seed), law)
    assert np.abs(z).max() < THRESHOLD


def a_quarter_of_the_likelihood(prior):
    """Mistake: a factor N/n forgotten, here 4."""
    return 0.25 * likelihood(counts_of_rows(TOPIC_COUNTS, OF_GROUP), prior)[1]


def digamma_of_mean_counts(prior):
    """Mistake: digamma of the mean of counts instead of the mean of digammas."""
    mean = np.stack([TOPIC_COUNTS[g == OF_GROUP].mean(axis=0) for g in (0, 1)]).repeat(3, axis=0)
    return likelihood(counts_of_rows(mean, OF_GROUP), prior)[1]


@pytest.mark.parametrize("wrong", [a_quarter_of_the_likelihood, digamma_of_mean_counts])
def test_wrong_gradients_are_rejected(wrong, law, global_random_seed):
    z = z_scores(drawn_moments(SGHMC(0.25), 20_000, residual_of=wrong, seed=global_random_seed), law)
    assert np.abs(z).max() > 1.3 * THRESHOLD


def test_the_bias_of_sgld_is_of_order_h(law):
    spread = law[4:] - law[:4] ** 2
    excess = []
    for h in (0.2, 0.5):
        mean = drawn_moments(SGLD(h), 20_000).mean(axis=0)
        excess.append(np.mean((mean[4:] - mean[:4] ** 2) / spread) - 1.0)
    # Of a Gaussian, h / (2 - h): 0.11 and 0.33.
    assert 0.04 < excess[0] < 0.2 and 2.0 < excess[1] / excess[0] < 5.0


def test_gradient_of_the_log_posterior_equals_finite_differences():
    rng = np.random.default_rng(0)
    rows = DenseRows(rng.normal(size=(2, 3)), np.zeros(3), np.ones(3), True)
    coefficients = Coefficients(SGLD(), True, np.full(2, CENTRE), 3, SCALES)
    value = rng.normal(size=(2, 4))
    known, scale = counts_of_rows(TOPIC_COUNTS, OF_GROUP), np.array([*[SCALES[0]] * 3, SCALES[1]])
    found = coefficients.gradient(rows.pull(likelihood(known, np.exp(rows.predict(value)))[1]), value)
    design = rows.Z[OF_GROUP]
    for k in range(2):
        for t in range(4):
            step = np.zeros((2, 4))
            step[k, t] = 1e-5
            ends = [
                naive.log_posterior(value + s * step, design, TOPIC_COUNTS, coefficients.mean, scale) for s in (1, -1)
            ]
            assert found[k, t] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("limits, moved", [({}, np.s_[:]), ({"_MAX_JOINT": 1}, 1), ({"_MAX_CELLS": 1}, (1, 0))])
def test_documents_left_behind_have_the_slope_of_their_likelihood_nearby(limits, moved, monkeypatch):
    for name, limit in limits.items():
        monkeypatch.setattr(_coefficients, name, limit)
    rng = np.random.default_rng(0)
    rows = DenseRows(rng.normal(size=(400, 1)), np.zeros(1), np.ones(1), True)
    coefficients = Coefficients(SGLD(), True, np.full(3, CENTRE), 1, SCALES)
    coefficients.value = np.array([[1.0, 0.0], [-1.0, 0.2], [0.3, -0.5]])
    prior, group = coefficients.doc_priors(rows), np.arange(400)
    counts = np.array([rng.multinomial(30, rng.dirichlet(alpha)) for alpha in prior]).astype(float)
    known = counts_of_rows(counts, group)

    def slope(value):
        return rows.pull(likelihood(known, coefficients.doc_priors(rows, value))[1])

    left = QuadraticSummary(coefficients.value, *expansion(rows, prior, information(known, prior)))
    at = coefficients.value
    np.testing.assert_allclose(left.gradient(at), slope(at))
    near = at.copy()
    near[moved] += 0.003 * rng.normal(size=(3, 2))[moved]
    change = (slope(near) - slope(at))[moved]
    np.testing.assert_allclose((left.gradient(near) - left.slope)[moved], change, atol=0.02 * np.abs(change).max())
    order = np.array([2, 0, 1])
    expected = left.gradient(near)[order]
    left.reorder(order)
    np.testing.assert_allclose(left.gradient(near[order]), expected)


@pytest.mark.filterwarnings("ignore:total_samples")
def test_a_stream_after_fit_remembers_the_fitted_documents():
    rng = np.random.default_rng(0)
    topics = np.kron(np.eye(3), np.full(5, 0.17)) + 0.01

    def draw(n, sign):
        x = rng.standard_normal((n, 1))
        prior = np.exp(sign * x * [2.0, -2.0, 0.0] - 0.7)
        return np.array([rng.multinomial(40, rng.dirichlet(p) @ topics / topics.sum(axis=1)[0]) for p in prior]), x

    X, x = draw(300, 1)
    model = DMRTopicModel(3, topic_word_prior=0.1, n_iter=120, random_state=0).fit(X, metadata=x)
    first, last = align_topics(topics / topics.sum(axis=1, keepdims=True), model.components_)[:2]
    before = model.coef_[first, 1] - model.coef_[last, 1]
    model.set_params(total_samples=40, batch_size=8)
    X, x = draw(40, -1)
    assert_same_draws(*(each.partial_fit(X, metadata=x) for each in (pickle.loads(pickle.dumps(model)), model)))
    for _ in range(60):
        model.partial_fit(X, metadata=x)
    # Less than before, by what 40 reversed documents say against 300; forgotten, it would be negative.
    assert 0.25 * before < model.coef_[first, 1] - model.coef_[last, 1] < 0.9 * before


# ------------------------------------------------------------------------------------------------------ the whole model


@pytest.mark.parametrize("params", [{}, {"sampler": "gibbs"}, {"batch_size": 20}, {"assignments": "fresh"}], ids=str)
def test_with_coefficients_held_and_metadata_constant_the_draws_are_those_of_lda(params, monkeypatch):
    monkeypatch.setattr(sweeps, "_MAX_TEMPERATURE", 1.0)  # burn-in of LDA alone is warm
    data = make_dmr(60, 30, 3, document_length=20, random_state=0)
    shared = {
        "n_components": 3,
        "doc_topic_prior": 0.2,
        "topic_word_prior": 0.01,
        "n_iter": 12,
        "random_state": 0,
        **params,
    }
    lda = BayesianLDA(**shared).fit(data.counts)
    dmr = DMRTopicModel(**shared, intercept_prior_scale=1e-8, metadata_prior_scale=1e-8)
    dmr.fit(data.counts, metadata=np.full(60, 7.0))
    np.testing.assert_allclose(dmr.samples_["components"], lda.samples_["components"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.exp(dmr.coef_[:, 0] + 7.0 * dmr.coef_[:, 1]), 0.2, rtol=1e-4)


def ranks(n_replicates, seed, n_draws=7, thin=4, burn_in=30, shard_tokens=None):
    """Ranks of s_t = sum_k lambda_kt phi_k0, which has no labels, among draws given data of the model itself."""
    out = []
    for s in range(n_replicates):
        truth = make_dmr(
            12, 4, 2, 1, np.full(12, 10), doc_topic_prior=1.0, intercept_prior_scale=0.5, metadata_prior_scale=0.7,
            topic_word_prior=0.5, random_state=np.random.SeedSequence([seed, s]),
        )  # fmt: skip
        model = DMRTopicModel(
            2, doc_topic_prior=1.0, intercept_prior_scale=0.5, metadata_prior_scale=0.7, topic_word_prior=0.5,
            n_iter=burn_in + n_draws * thin, burn_in=burn_in, thin=thin, random_state=s, init="random",
        )  # fmt: skip
        # 0 and 1 are not standardised, so that the prior is that of the truth.
        metadata = (truth.metadata > 0).astype(float)
        truth_alpha = np.exp(truth.coef[:, 0] + metadata @ truth.coef[:, 1:].T)
        rng = np.random.default_rng([seed, s])
        counts = [rng.multinomial(10, rng.dirichlet(alpha) @ truth.components) for alpha in truth_alpha]
        X = sparse.csr_array(np.array(counts))
        model.fit(X if shard_tokens is None else CountBlocks([X], shard_tokens=shard_tokens), metadata=metadata)
        draws = np.einsum("skt,sk->st", model.samples_["coef"][0], model.samples_["components"][0, :, :, 0])
        out.append((draws < truth.coef.T @ truth.components[:, 0]).sum(axis=0))
    return np.array(out)


def test_the_model_is_calibrated(global_random_seed):
    from tests import calibration

    assert calibration.p_values(ranks(120, global_random_seed)).min() > 1e-5


def test_the_model_over_shards_is_calibrated(global_random_seed):
    from tests import calibration

    assert calibration.p_values(ranks(60, global_random_seed, thin=6, shard_tokens=40)).min() > 1e-5


def test_planted_coefficients_and_topics_are_recovered(global_random_seed):
    from sk_sgmcmc.metrics import align_topics

    data = make_dmr(600, 100, 3, 2, 60, random_state=global_random_seed)
    model = DMRTopicModel(3, topic_word_prior=0.1, n_iter=150, random_state=0).fit(data.counts, metadata=data.metadata)
    order = align_topics(data.components, model.components_)
    assert np.abs(model.components_[order] - data.components).sum(axis=1).max() < 0.3
    draws = model.samples_["coef"].reshape(-1, 3, 3)[:, order]
    z = (draws.mean(axis=0) - data.coef) / draws.std(axis=0)
    assert np.abs(z).max() < 5.5
    assert np.abs(draws.mean(axis=0) - data.coef)[:, 1].max() < 0.5


# -------------------------------------------------------------------------------------- coefficients at their mode


def optimum(data, z, alpha, scales, start):
    """Coefficients of standardised columns at the mode given the assignments, by SciPy on a density of one's own."""
    counts = np.zeros((data.n_docs, alpha.size))
    np.add.at(counts, (np.repeat(np.arange(data.n_docs), np.diff(data.token_ptr)), z.astype(int)), 1.0)
    design = np.column_stack([data.rows.predict(np.eye(start.shape[1]))[data.group]])
    mean = np.zeros(start.shape)
    mean[:, -1] = np.log(alpha)
    precision = np.append(np.full(start.shape[1] - 1, scales[0] ** -2.0), scales[1] ** -2.0)

    def negative(flat):
        value = flat.reshape(start.shape)
        prior = np.exp(design @ value.T)
        total, n = prior.sum(axis=1), counts.sum(axis=1)
        log_p = (special.gammaln(total) - special.gammaln(total + n)).sum()
        log_p += (special.gammaln(prior + counts) - special.gammaln(prior)).sum()
        own = special.digamma(prior + counts) - special.digamma(prior)
        common = special.digamma(total) - special.digamma(total + n)
        slope = (prior * (own + common[:, None])).T @ design - precision * (value - mean)
        return 0.5 * np.sum(precision * (value - mean) ** 2) - log_p, -slope.ravel()

    found = optimize.minimize(negative, start.ravel(), jac=True, method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    return found.x.reshape(start.shape)


@pytest.mark.parametrize("in_blocks", [False, True])
def test_l_bfgs_keeps_coefficients_at_their_mode_after_burn_in_too(in_blocks):
    data = make_dmr(80, 30, 3, 2, 25, random_state=0)
    X = CountBlocks([data.counts[:40], data.counts[40:]]) if in_blocks else data.counts
    params = {"coef_sampler": "l-bfgs", "random_state": 0, "n_iter": 12, "thin": 1, "doc_topic_prior": 0.1}
    model = DMRTopicModel(3, **params).fit(X, metadata=data.metadata)
    kept = model.samples_["coef"][0]
    assert len(np.unique(kept[:, 0, 0])) == 6  # the mode moves with the assignments, at every kept draw
    if in_blocks:
        return
    chain = model._chains[0]
    coefficients = chain.doc_prior.coefficients
    found = optimum(chain.data.documents, chain.z, np.full(3, 0.1), (1.0, 1.0), coefficients.value)
    np.testing.assert_allclose(coefficients.value, found, atol=5e-3)
    last = chain.doc_prior.coefficients.value
    np.testing.assert_allclose(model._encoder.as_given(last[None, None])[0, 0], kept[-1], atol=1e-5)
