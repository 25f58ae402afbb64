"""LDA by samplers on flat space and by particles: its law on a tiny corpus, and what is refused."""

import pickle
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.kernels.samplers import mass as at
from sk_sgmcmc.samplers import PSGHMC, SCIR, SGHMC, SGLD, SGNHT, SGRLD, Blob, Gibbs, MonteCarloEM
from sk_sgmcmc.topic._counts.growth import LONG_SWEEPS, SWEEPS
from sk_sgmcmc.topic._counts.word_prior import WordPrior
from sk_sgmcmc.topic._estimator.plan import default_steps
from sk_sgmcmc.topic._minibatch.chain import MinibatchChain
from sk_sgmcmc.topic._minibatch.particles import ParticleTopicChain
from sk_sgmcmc.topic._minibatch.softmax_topics import MovedTopics
from sk_sgmcmc.utils import Corpus
from tests.cases import THRESHOLD, z_scores
from tests.tiny_lda import batch_means, exact_law, make_chain, statistics

DIRICHLET = {"prior_scale": 0.0, "whiten": True}
N_STEPS = 8000


class DensityOfProbabilities(MinibatchChain):
    """Mistake: the exponents of the density of phi, shape - 1, taken for those of the density of theta."""

    def _shape_of(self, rows):
        return super()._shape_of(rows) - 0.5


def z_of(sampler, seed, make=MinibatchChain, n_steps=N_STEPS, **kwargs):
    make = partial(make, flat=DIRICHLET)
    chain = make_chain(seed, 1.0, n_steps + 400, make=make, sampler=sampler, burn_in=400, **kwargs).run(n_steps + 400)
    return np.abs(z_scores(batch_means(statistics(chain.draws()["components"])), exact_law())).max()


@pytest.mark.parametrize("n_batch", [None, 1])
@pytest.mark.parametrize("sampler", [SGHMC(0.4), SGNHT(0.4)], ids=["sghmc", "sgnht"])
def test_chain_has_the_exact_posterior(sampler, n_batch, global_random_seed):
    assert z_of(sampler, global_random_seed, n_batch=n_batch) < THRESHOLD


def test_a_wrong_density_is_rejected(global_random_seed):
    assert z_of(SGHMC(0.4), global_random_seed, DensityOfProbabilities) > 1.5 * THRESHOLD


def test_normal_prior_alone_has_its_own_law(global_random_seed):
    # Without tokens theta is what its prior says: moments of independent normals.
    rng = np.random.default_rng(global_random_seed)
    sampler = SGHMC(0.4)._resolved(None)
    topics = MovedTopics(sampler, np.zeros((3, 2)), 0.5, 0.7, True, 0)
    theta = np.empty((20_000, 6))
    hyper = sampler._hyper(0, 1)[0]
    for t in range(len(theta)):
        topics.update(None, None, hyper, rng)
        topics.move(None, np.full((3, 2), 0.5), np.zeros(2), hyper, rng)
        theta[t] = (topics.theta * topics.spread).ravel()
    values = np.hstack([theta, (theta - 0.5) ** 2])[200:]
    assert np.abs(z_scores(batch_means(values), np.repeat([0.5, 0.49], 6))).max() < THRESHOLD


CORPUS = make_lda(n_samples=120, n_features=60, n_components=3, document_length=40, random_state=0).counts


def particles_at(cells_of, rng, n_particles=400):
    """A chain of particles whose assignments differ, and whose topics are made from their Dirichlet parameters."""
    chain = object.__new__(ParticleTopicChain)
    chain.plan, chain.particles = SimpleNamespace(streams=False), []
    for _ in range(n_particles):
        counts = rng.poisson([[30.0, 1.0], [2.0, 50.0], [9.0, 4.0]])
        cells = cells_of(counts + 0.5)
        chain.particles.append(
            SimpleNamespace(
                topics=SimpleNamespace(cells=cells, total=cells.sum(axis=0)), counts=counts,
                word_prior=WordPrior(0.5, 3, 2), stored=True, flat={"prior_scale": 0.0},
            )
        )  # fmt: skip
    return chain


def test_the_spread_of_particles_is_one_for_draws_and_less_for_modes(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    assert particles_at(rng.standard_gamma, rng).spread() == pytest.approx(1.0, abs=0.08)
    assert particles_at(lambda shapes: shapes, rng).spread() < 0.8
    assert particles_at(rng.standard_gamma, rng, 1).spread() is None


def test_particles_too_close_together_warn():
    with pytest.warns(ConvergenceWarning, match="particles are too close together"):
        model = BayesianLDA(3, sampler="blob", n_iter=200, random_state=0).fit(CORPUS)
    table = dict(zip(model.diagnostics_["quantity"], model.diagnostics_["mean"], strict=True))
    assert 0.0 < table["particle_spread"] < 0.8


def test_particles_of_a_single_word_have_no_spread():
    model = BayesianLDA(2, sampler="gfsf", random_state=0).fit(np.ones((2, 1)))
    assert "particle_spread" not in list(model.diagnostics_["quantity"])
    np.testing.assert_allclose(model.components_, 1.0)


def test_particles_have_assignments_of_their_own_and_topics_numbered_alike():
    model = BayesianLDA(3, sampler=PSGHMC(n_particles=6), n_iter=40, random_state=0).fit(CORPUS)
    draws = model.samples_["components"]
    assert draws.shape == (1, 6, 3, 60)
    particles = model._chains[0].particles
    assert not any(np.array_equal(particles[0].z, p.z) for p in particles[1:])
    spread = draws[0].std(axis=0).max()
    assert 1e-3 < spread < 0.1  # neither one point nor topics in different orders


def test_particles_share_one_state_also_after_pickling():
    model = BayesianLDA(3, sampler=PSGHMC(n_particles=4), n_iter=20, random_state=0).fit(CORPUS)
    for chain in (model._chains[0], pickle.loads(pickle.dumps(model))._chains[0]):
        thetas = [particle.topics.theta.ravel() for particle in chain.particles]
        np.testing.assert_array_equal(chain.state.theta, thetas)
        assert len({id(particle.batches) for particle in chain.particles}) == 1
    assert all(np.shares_memory(particle.topics.theta, model._chains[0].state.theta)
               for particle in model._chains[0].particles)  # fmt: skip


def test_particles_of_a_stream_take_another_step_size():
    X, draws = make_lda(90, 20, 2, random_state=0).counts, []
    for step_size in (0.01, 5.0):
        model = BayesianLDA(2, topic_prior="normal", sampler=Blob(3, step_size=0.01), batch_size=10, random_state=0)
        model.partial_fit(X[:80]).set_params(sampler__step_size=step_size).partial_fit(X[80:])  # too few for a restart
        assert model._chains[0].state.sampler is model.sampler_
        assert all(particle.swept is None for particle in model._chains[0].particles)  # never read, and large
        draws.append(model.samples_["components"])
    assert not np.array_equal(*draws)


@pytest.mark.parametrize("sampler", [SGHMC(), Blob(3)], ids=["sghmc", "blob"])
def test_a_stream_goes_on_and_may_bring_words(sampler):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(CORPUS.toarray(), columns=[f"w{i}" for i in range(60)])
    model = BayesianLDA(3, sampler=sampler, new_features="extend", random_state=0).partial_fit(frame[:60].iloc[:, :50])
    before = model.sampler_.step_size_(0)
    model.partial_fit(frame[60:])
    assert model.components_.shape == (3, 60) and np.all(np.isfinite(model.components_))
    assert model.sampler_.step_size_(0) <= before  # more documents to be scaled to, more noise
    assert model.perplexity(frame) < 1.2 * BayesianLDA(3, random_state=0).fit(CORPUS).perplexity(CORPUS)


def test_another_sampler_cannot_take_over_a_stream():
    model = BayesianLDA(3, sampler="sghmc", n_iter=20, random_state=0).fit(CORPUS)
    for other in ("scir", "blob", "sgld"):
        with pytest.raises(ValueError, match=r"(?i)cannot (go on|continue)"):
            model.set_params(sampler=other).partial_fit(CORPUS)


def test_topics_under_a_wide_normal_prior_do_not_break_down():
    # In units of the prior's scale of 10, the default step spread topics so far that perplexity was 80.
    X = make_lda(300, 200, 5, random_state=0).counts

    def perplexity(scale):
        model = BayesianLDA(5, topic_prior="normal", topic_prior_scale=scale, n_iter=600, random_state=0)
        return model.fit(X).perplexity(X)

    assert perplexity(10.0) < 1.02 * perplexity(5.0)


@pytest.mark.parametrize("sampler", ["scir", "sgrld", "gibbs", "hmc", "sg-nphmc"])
def test_a_normal_prior_is_for_flat_space(sampler):
    with pytest.raises(ValueError, match="does not fit BayesianLDA"):
        BayesianLDA(3, sampler=sampler, topic_prior="normal").fit(CORPUS)


def test_step_sizes_without_whitening_are_those_of_the_coordinates():
    model = BayesianLDA(3, sampler="sghmc", topic_prior="normal", whiten=False, n_iter=300, random_state=0).fit(CORPUS)
    assert model.sampler_.step_size_(0) < 0.05
    whitened = BayesianLDA(3, topic_prior="normal", n_iter=300, random_state=0).fit(CORPUS)
    assert whitened.sampler_._name == "sghmc"
    assert model.perplexity(CORPUS) < 1.05 * whitened.perplexity(CORPUS)


def test_default_fits_are_long_on_small_corpora_and_their_length_is_continuous():
    corpus = Corpus.from_counts(np.full((20, 10), 2.0))
    for sampler in (SGRLD(), SGLD(), SCIR(), Gibbs()):
        assert default_steps(SWEEPS, sampler, corpus, True, 20) == 2000
        assert default_steps(SWEEPS, sampler, corpus, True, 10) == 4000
    assert default_steps(SWEEPS, SGRLD(), corpus, False, 10) == 1000
    sizes = np.geomspace(1.0, 1e9, 2000)
    for rule in (SWEEPS, LONG_SWEEPS):
        sweeps = np.array([rule.of(size) for size in sizes])
        assert np.all(np.diff(sweeps) <= 0) and np.all(sweeps[:-1] / sweeps[1:] < 1.03)
    assert [SWEEPS.of(size) for size in (0, 125_000, 1.25e6, 2.5e6, 5e6, 1e12)] == [2000, 2000, 200, 200, 100, 100]
    assert [LONG_SWEEPS.of(size) for size in (125_000, 5e5, 1e6, 2e6, 5e6, 1e12)] == [2000, 2000, 1000, 500, 200, 200]


def test_models_with_metadata_make_more_sweeps_over_large_corpora():
    assert BayesianLDA._default_sweeps is SWEEPS and DMRTopicModel._default_sweeps is LONG_SWEEPS


def test_masses_are_learnt_in_burn_in_only_however_late_topics_begin():
    counts = make_lda(n_samples=40, n_features=12, n_components=2, document_length=15, random_state=0).counts
    model = BayesianLDA(2, sampler=SGHMC(mass=MonteCarloEM(n_momenta=10)), n_iter=400, burn_in=200, random_state=0)
    state = model.fit(counts)._chains[0].topics.state
    # Topics began at a later step, after sweeps, and again when they took new units.
    assert 0 < state.scalars[at.FREEZE_AT] < 100 and state.scalars[at.LEARNING] == 0.0
