"""Spherical admixture: calibration, learnt concentrations, stored proportions, streams."""

import re
import warnings
from unittest import mock

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import SphericalAdmixtureModel, VonMisesFisherMixture
from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.directions import RowData, mean_square_velocity, unit_rows
from sk_sgmcmc.kernels.models.spherical.admixture import admixture_signal, exchange_documents
from sk_sgmcmc.kernels.models.spherical.proportions import held_noise
from sk_sgmcmc.kernels.models.von_mises_fisher import exact_means
from sk_sgmcmc.samplers import GMC, SGGMC, GMCBGibbs
from sk_sgmcmc.topic._spherical.chain import AdmixtureChain, AdmixturePrior, MetropolisAdmixtureChain
from tests.calibration import p_values
from tests.cases import THRESHOLD, z_scores
from tests.topic.test_sam import csr, make_rows, unit

N_DRAWS, N_DOCS = 7, 8
CENTER = np.array([1.0, 1.0, 1.0]) / np.sqrt(3.0)
PRIOR = AdmixturePrior(
    np.ones(2), np.array([3.0, 30.0, 5.0]), CENTER, ("kappa0", "kappa1", "sigma", "doc_topic_prior"), 0.5
)


def vmf_draws(b, rng):
    out = np.empty_like(b)
    exact_means(out, b.ravel().copy(), rng)
    return out


def statistics(beta, kappa1, alpha):
    beta = np.asarray(beta, dtype=float)
    across = np.einsum("sv,sv->s", beta[:, 0], beta[:, 1])
    return np.stack([across, beta.sum(axis=1) @ CENTER, np.log(kappa1), np.log(alpha)], axis=1)


def ranks(seed, n_replicates, n_steps=100):
    """Ranks of the truth among draws given data from the model, everything learnt, by the exact sampler."""
    out = []
    thin = n_steps // 2 // N_DRAWS
    for s in range(n_replicates):
        rng = np.random.default_rng([seed, s])
        k0, k1, sigma = PRIOR.numbers * np.exp(PRIOR.scale * rng.standard_normal(3))
        alpha = np.exp(PRIOR.scale * rng.standard_normal())
        mu = vmf_draws(k0 * CENTER[None], rng)
        beta = vmf_draws(np.repeat(sigma * mu, 2, axis=0), rng)
        theta = rng.dirichlet(np.full(2, alpha), N_DOCS)
        X = vmf_draws(k1 * unit(theta @ beta), rng)
        chain = MetropolisAdmixtureChain(
            np.random.SeedSequence([seed, s]), DrawPlan(n_steps, n_steps - thin * N_DRAWS, thin),
            GMCBGibbs()._resolved(0.1), PRIOR, n_inner=3, n_draws=(3, 1), init="random", auto=True,
        ).bind(RowData.from_csr(unit_rows(X, True), N_DOCS))  # fmt: skip
        drawn = chain.run(n_steps).draws()
        given = [drawn[name] for name in ("components", "kappa1", "doc_topic_prior")]
        truth = statistics(beta[None], np.array([k1]), np.array([alpha]))
        out.append((statistics(*given) < truth).sum(axis=0))
    return np.array(out)


def test_draws_of_everything_are_calibrated(global_random_seed):
    assert p_values(ranks(global_random_seed, 60)).min() > 1e-5


@pytest.mark.parametrize("n_burn", [200, 10**9], ids=["frozen after burn-in", "adapting for ever, rejected"])
def test_proportions_given_topics_have_their_exact_law(n_burn, global_random_seed):
    """Step sizes that follow a document's state for ever bend its law; the chain lets them be after burn-in."""
    beta = np.array([[1.0, 0.0, 0.0], [0.3, np.sqrt(0.91), 0.0]])
    y, kappa, alpha = np.array([0.9, 0.2]), 30.0, 1.5
    across = (y[1] - 0.3 * y[0]) / np.sqrt(0.91)
    row = np.array([y[0], across, np.sqrt(1.0 - y[0] ** 2 - across**2)])
    grid = (np.arange(200_000) + 0.5) / 200_000
    theta = np.stack([grid, 1.0 - grid], axis=1)
    log_p = kappa * theta @ y / np.linalg.norm(theta @ beta, axis=1) + (alpha - 1.0) * np.log(theta).sum(axis=1)
    p = np.exp(log_p - log_p.max())
    exact = [p @ grid / p.sum(), p @ grid**2 / p.sum()]
    chain = AdmixtureChain(
        np.random.SeedSequence(global_random_seed), DrawPlan(10**10, n_burn, 1), GMCBGibbs()._resolved(0.1),
        AdmixturePrior(np.full(2, alpha), np.array([1.0, kappa, 1.0]), CENTER, (), 0.5), n_inner=1, n_draws=(4, 1),
        init="random", auto=True,
    ).bind(RowData.from_csr(unit_rows(np.tile(row, (100, 1)), True), 100))  # fmt: skip
    chain._start()
    chain.state.theta, sums = beta, np.zeros((100, 2))
    for chain.step in range(2300):
        draws = chain._draw_proportions(np.arange(100))
        if chain.step >= 300:
            sums += np.stack([draws[:, 0, 0], draws[:, 0, 0] ** 2], axis=1)
    worst = np.abs(z_scores(sums / 2000, exact)).max()
    assert worst < THRESHOLD if n_burn == 200 else worst > 2.0 * THRESHOLD


def test_a_stream_after_a_fit_begins_with_the_step_of_its_noisier_gradient():
    X = make_rows(600, V=90)[0]
    model = SphericalAdmixtureModel(3, n_iter=41, random_state=0).fit(X).set_params(batch_size=20, total_samples=600)
    before = model.sampler_.step_size_(0)
    chain = model.partial_fit(X[:20])._chains[0]
    assert chain.sampler.step_size_(0) < 0.5 * before
    assert np.sum(chain.state.aux[0] ** 2) / (3 * 89) < 3.0


@pytest.mark.parametrize(
    "kind, others",
    [
        (
            SphericalAdmixtureModel,
            ({}, {"sampler": "gsgnht"}, {"batch_size": 50}, {"sampler": "gmc-appr-mh"}),
        ),
        (VonMisesFisherMixture, ({}, {"sampler": "gsgnht"}, {"batch_size": 50}, {"sampler": "gibbs"})),
    ],
    ids=["admixture", "mixture"],
)
def test_a_step_that_is_too_long_is_said(kind, others):
    X, _, _ = make_rows(400, V=30, kappa=2000.0)
    for step in (1.0, 1e9):
        model = kind(3, n_iter=30, random_state=0).set_params(sampler__step_size=step)
        with pytest.warns(ConvergenceWarning, match=re.escape(f"step size of {step:.3g} is too long")) as caught:
            model.fit(X)
        assert f'"auto" or sampler__step_size={step / 10:.2g} with' in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(sampler__step_size="auto").fit(X)
        for given in others:
            kind(3, n_iter=30, random_state=0, **given).fit(X)
        # The first steps bring the heat of the start.
        kind(3, n_iter=2, random_state=0).fit(X)
        # One velocity of few dimensions is large by chance.
        for seed in range(8):
            kind(1, n_iter=20, random_state=seed).fit(X[:, :2])


def test_a_chain_still_falling_by_short_steps_is_not_told_to_shorten_them():
    X, _, _ = make_rows(2000, V=30, kappa=2000.0)
    model = SphericalAdmixtureModel(3, init="random", n_iter=20, random_state=0).set_params(sampler__step_size=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X)
    assert mean_square_velocity(model._chains[0].state.aux[0]) > 3.0


def test_metropolis_steps_of_topics_aim_at_the_acceptance_asked_for():
    X = make_rows(100, V=18)[0]
    rates = []
    for target in (0.4, 0.9):
        model = SphericalAdmixtureModel(3, sampler=GMC(target_accept=target), n_iter=200, random_state=0).fit(X)
        rates.append(float(model.sampler_.acceptance_rate_[0]))
    assert rates[0] < 0.6 < 0.8 < rates[1]


def test_stored_documents_add_what_they_would_add_anew():
    X, beta, theta = make_rows(20)
    center, prior, scale = unit(X.mean(axis=0)), np.array([30.0, 200.0, 40.0]), 1.0
    batch, rest = np.arange(6), np.arange(6, 20)
    others, across, terms = np.zeros_like(beta), np.zeros((3, 3)), np.zeros((20, 2))
    exchange_documents(beta, *csr(X), np.arange(20), theta, terms, 1.0, others, across)
    exchange_documents(beta, *csr(X), batch, theta, terms, -1.0, others, across)
    answers = []
    for docs, stored in ((batch, (others, across)), (np.arange(20), (np.empty((0, 0)),) * 2)):
        stiff, signal, extra = np.empty((3, 3)), np.empty_like(beta), np.zeros(2)
        admixture_signal(
            beta,
            *csr(X),
            docs,
            np.ascontiguousarray(theta[docs, None]),
            prior,
            center,
            scale,
            *stored,
            *(np.empty((0, 0)),) * 2,
            0.0,
            stiff,
            signal,
            extra,
        )
        answers.append((signal, stiff))
        assert extra[1] == 0.0
    np.testing.assert_allclose(answers[0][0], answers[1][0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(answers[0][1], answers[1][1], rtol=1e-9, atol=1e-9)
    exchange_documents(beta, *csr(X), rest, theta, terms, -1.0, others, across)
    np.testing.assert_allclose(others, 0.0, atol=1e-12)


def test_the_change_of_a_minibatch_makes_up_for_the_age_of_all_others():
    """Over all minibatches of two of six documents, the mean gradient is that of all of them at the present topics."""
    X, beta, theta = make_rows(6)
    center, prior, every = unit(X.mean(axis=0)), np.array([30.0, 200.0, 40.0]), np.arange(6)
    now = unit(beta + 0.2 * np.random.default_rng(3).standard_normal(beta.shape))
    others, across, terms = np.zeros_like(beta), np.zeros((3, 3)), np.zeros((6, 2))
    exchange_documents(beta, *csr(X), every, theta, terms, 1.0, others, across)
    none = (np.empty((0, 0)),) * 2

    def gradient(docs, *context):
        stiff, signal, extra = np.empty((3, 3)), np.empty_like(beta), np.zeros(2)
        draws = np.ascontiguousarray(theta[docs, None])
        admixture_signal(now, *csr(X), docs, draws, prior, center, 1.0, *context, stiff, signal, extra)
        return signal, extra[1]

    full, _ = gradient(every, *none, *none, 0.0)
    found, noise = [], []
    for docs in (np.array([j, i]) for i in every for j in range(i)):
        kept, kept_across = others.copy(), across.copy()
        exchange_documents(beta, *csr(X), docs, theta, terms, -1.0, kept, kept_across)
        signal, variance = gradient(docs, kept, kept_across, theta[docs], terms[docs], 2.0)
        found.append(signal)
        noise.append(variance)
    stale, _ = gradient(docs, kept, kept_across, *none, 0.0)
    np.testing.assert_allclose(np.mean(found, axis=0), full, rtol=1e-9, atol=1e-9)
    assert np.abs(stale - full).max() > 0.1
    assert np.mean(noise) > np.mean((np.array(found) - full) ** 2)


def test_stored_minibatches_move_almost_as_far_as_all_documents():
    X, _, _ = make_rows(400, V=30, kappa=2000.0)
    steps = {}
    for batch, proportions in (("auto", "stored"), (50, "stored"), (50, "fresh")):
        model = SphericalAdmixtureModel(3, n_iter=400, batch_size=batch, proportions=proportions, random_state=0).fit(X)
        steps[batch, proportions] = model.sampler_.step_size_(0)
    # While topics still travel, what makes up for the age of stored terms is noisy, and steps are shorter.
    assert steps[50, "stored"] > 0.6 * steps["auto", "stored"]
    assert steps[50, "stored"] > 1.5 * steps[50, "fresh"]


def test_concentrations_are_learnt():
    X, beta, _ = make_rows(400, V=30, kappa=2000.0)
    model = SphericalAdmixtureModel(
        3, doc_topic_prior="auto", kappa0="auto", kappa1="auto", sigma="auto", n_iter=150, random_state=0
    ).fit(X)
    assert set(model.samples_) == {"components", "kappa0", "kappa1", "sigma", "doc_topic_prior"}
    assert model.kappa1_ == pytest.approx(2000.0, rel=0.1)
    assert model.doc_topic_prior_ == pytest.approx(0.3, rel=0.25)
    assert (model.components_ @ beta.T).max(axis=0).min() > 0.97
    fixed = SphericalAdmixtureModel(3, n_iter=150, random_state=0).fit(X)
    assert model.score(X) > fixed.score(X) + 5.0
    with pytest.raises(ValueError, match="returns a point estimate"):
        SphericalAdmixtureModel(3, sampler="vi", sigma="auto").fit(X)


def test_a_stream_finds_the_topics():
    X, beta, _ = make_rows(2000, V=30, kappa=2000.0)
    stream = SphericalAdmixtureModel(3, doc_topic_prior=0.5, kappa1=2000.0, batch_size=100, random_state=0)
    for start in range(0, 2000, 200):
        stream.partial_fit(X[start : start + 200])
    assert stream.n_samples_seen_ == 2000 and stream.n_iter_ == 20
    assert (stream.components_ @ beta.T).max(axis=0).min() > 0.9
    stream.set_params(sampler__step_size=1e-5).partial_fit(X[:200])
    assert stream.sampler_.step_size_(7) == 1e-5 and np.all(np.isfinite(stream.components_))
    assert stream.set_params(sampler__step_size="auto").partial_fit(X[:200]).sampler_.step_size_(7) < 1.2e-5
    with pytest.raises(ValueError, match="n_chains=2"):
        stream.set_params(n_chains=2).partial_fit(X)
    stream.set_params(n_chains=1)
    with pytest.raises(ValueError, match="n_components=4"):
        stream.set_params(n_components=4).partial_fit(X)
    with pytest.raises(ValueError, match="cannot stream"):
        SphericalAdmixtureModel(3, sampler="gmc-b-gibbs").partial_fit(X)
    with pytest.raises(ValueError, match=r"(?i)cannot (go on|continue)"):
        SphericalAdmixtureModel(3, n_iter=4, random_state=0).fit(X[:200]).set_params(sampler="gsgnht").partial_fit(X)


def test_a_stream_visits_every_row_once_at_the_scale_of_its_minibatch():
    X, _, _ = make_rows(90, V=30)
    taken, draw = [], AdmixtureChain._draw_proportions

    def noted(chain, docs):
        taken.append((docs, chain.scale(docs)))
        return draw(chain, docs)

    with mock.patch.object(AdmixtureChain, "_draw_proportions", noted):
        SphericalAdmixtureModel(3, batch_size=60, total_samples=900, random_state=0).partial_fit(X)
    np.testing.assert_array_equal(np.sort(np.concatenate([docs for docs, _ in taken])), np.arange(90))
    assert [scale for _, scale in taken] == [20.0, 20.0]


def test_variational_streams_keep_dirichlet_parameters_and_their_scale():
    X, _, _ = make_rows(90, V=30)
    topics = []
    for total in (None, 9000):
        model = SphericalAdmixtureModel(3, sampler="sto-vi", batch_size=30, total_samples=total, random_state=0)
        for part in (X[:45], X[45:]):
            model.partial_fit(part)
            # The prior's 3 * 10, and as much again at the start; proportions would sum to 1.
            assert model._chains[0].theta.sum(axis=1).min() > 15.0
        topics.append(model.components_)
    assert np.abs(topics[0] - topics[1]).max() > 1e-6


@pytest.mark.parametrize("prior", [[0.3, 3.0, 30.0], 3.0])
def test_topics_with_priors_of_their_own_keep_their_places(prior):
    X, _, _ = make_rows(60, V=30, kappa=2000.0)
    model = SphericalAdmixtureModel(3, doc_topic_prior=prior, n_iter=20, n_chains=4, random_state=0).fit(X)
    as_drawn = np.stack([chain.draws()["components"] for chain in model._chains])
    assert np.array_equal(model.samples_["components"], as_drawn) == (np.ndim(prior) == 1)


@pytest.mark.parametrize("n_steps, damping", [(1, 0.3), (10, 0.1), (10, 3.0), (7, 1e-3), (5, 0.0)])
def test_noise_that_is_held_heats_as_a_solved_recursion_says(n_steps, damping):
    """Variance at each place of a block from the linear equation of stationarity, by matrices."""
    a = np.exp(-damping) if damping else 1.0 - 1e-7
    # The state is (velocity, noise of this block); a block begins with a new noise.
    step = np.array([[a, 1.0], [0.0, 1.0]])
    whole = np.linalg.matrix_power(step, n_steps)
    begin = (whole[0, 1] ** 2) / (1.0 - whole[0, 0] ** 2)
    places = [np.linalg.matrix_power(step, j)[0] for j in range(1, n_steps + 1)]
    mean = np.mean([row[0] ** 2 * begin + row[1] ** 2 for row in places])
    assert held_noise(n_steps, damping) == pytest.approx(mean * (1.0 - a * a), rel=1e-5)


def test_the_estimated_noise_of_a_minibatch_that_stays_keeps_the_temperature(global_random_seed):
    X, _, _ = make_rows(400, V=30, kappa=2000.0)
    mean_heat = []
    for noise in (0.0, "estimated"):
        model = SphericalAdmixtureModel(
            3, sampler=SGGMC(2e-4, 500.0, noise), proportions="fresh", batch_size=40, n_iter=1000,
            random_state=global_random_seed,
        ).fit(X)  # fmt: skip
        chain, heat = model._chains[0], []
        chain.plan = DrawPlan(10**6, 10**6 - 1, 1)
        for _ in range(1000):
            chain._advance(chain.step + 1)
            heat.append(np.sum(chain.state.aux[0] ** 2) / (3 * 29))
        mean_heat.append(np.mean(heat))
    assert mean_heat[0] > 1.15
    assert mean_heat[1] == pytest.approx(1.0, abs=0.05)
