"""GammaProcessTopicModel: the process, its conditionals, its gradient, and its chains against laws that are known."""

import itertools
import pickle

import joblib
import numpy as np
import pytest
from scipy.special import exp1, gammaincc, gammaln

from sk_sgmcmc import GammaProcessTopicModel
from sk_sgmcmc.datasets import make_gamma_process, make_lda
from sk_sgmcmc.exceptions import ChainDivergedError
from sk_sgmcmc.kernels.models import gamma_process as kernels
from sk_sgmcmc.samplers import SCIR, SGHMC, SGLD, SGNHT, SGNPHMC, SGRNPHMC, Blob, MonteCarloEM
from sk_sgmcmc.samplers.schedules import ConstantStep
from sk_sgmcmc.topic._counts import sweeps as sweeps_module
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.document_prior import DocumentPrior
from sk_sgmcmc.topic._counts.sweeps import GeneralSweeps, OccupiedTopicSweeps
from sk_sgmcmc.topic._gamma_process.atoms import Atoms, MovingAtoms, ProcessPrior
from tests import calibration, tiny_gamma_process
from tests.cases import THRESHOLD, z_scores
from tests.corpora import shard_of
from tests.naive import gamma_process as naive
from tests.tiny_gamma_process import PRIOR, draw_process
from tests.tiny_lda import ALPHA, batch_means, exact_law, make_chain, statistics

# ------------------------------------------------------------------------------------------------------- the process

LEVELS = np.array([1e-3, 1e-2, 0.1, 1.0])


def test_simulated_process_has_its_levy_measure(global_random_seed):
    """Atoms above a level are Poisson with mean: concentration E1(rate level)."""
    concentration, rate, n = 3.0, 2.0, 2000
    rng = np.random.default_rng(global_random_seed)
    from sk_sgmcmc.datasets._make import _gamma_process

    counts = np.array([(_gamma_process(rng, concentration, rate)[:, None] > LEVELS).sum(axis=0) for _ in range(n)])
    expected = concentration * exp1(rate * LEVELS)
    assert np.all(np.abs(counts.mean(axis=0) - expected) < 5.0 * np.sqrt(expected / n))
    assert np.all(np.abs(counts.var(axis=0) / expected - 1.0) < 0.25)


def test_model_s_prior_has_the_levy_measure_up_to_its_truncation(global_random_seed):
    prior = ProcessPrior(60, 60, (20.0, 4.0), (20.0, 10.0), (1.0, 1.0))
    weights, concentration, c = draw_process(np.random.default_rng(global_random_seed), prior, (4000,))
    gaps = (weights[:, :, None] > LEVELS).sum(axis=1) - concentration[:, None] * exp1(c[:, None] * LEVELS)
    assert np.abs(z_scores(gaps.reshape(50, -1, LEVELS.size).mean(axis=1), np.zeros(LEVELS.size))).max() < THRESHOLD


def test_tail_of_the_clock_is_the_incomplete_gamma_function():
    for n_rounds in (1, 2, 20, 100, 1000):
        for x in np.array([1e-9, 0.1, 0.8, 1.0, 1.3, 2.0]) * n_rounds:
            log_tail, hazard = kernels.erlang_tail(n_rounds, x)
            exact = gammaincc(n_rounds, x)
            if exact > 1e-250:
                assert log_tail == pytest.approx(np.log(exact), rel=1e-9, abs=1e-12)
                density = np.exp((n_rounds - 1.0) * np.log(x) - x - gammaln(n_rounds))
                assert hazard == pytest.approx(density / exact, rel=1e-8, abs=1e-12)


# --------------------------------------------------------------------------------------- weights given what they see


def seen():
    """Statistics of documents: cells, values, L, and a number of its size."""
    above = np.zeros((PRIOR.n_atoms, 4))
    above[0, :3], above[1, :2], above[2, 0] = [5, 3, 1], [2, 1], 0.5
    return *kernels.cells_of(above), 6.0, 8.0


def at(theta, data, params):
    signal, extra = np.empty_like(theta), np.zeros(1)
    kernels.gamma_process(theta, data[0], np.empty((0, 0)), data[1], params, 1.0, signal, extra)
    metric = np.empty((1 + theta.size, theta.size))
    kernels.gamma_process_metric(theta, data[0], np.empty((0, 0)), data[1], params, 1.0, metric, np.zeros(1))
    return extra[0], signal[:, 0], metric


def test_gradient_and_metric_have_the_derivatives_that_they_say():
    data, atoms = seen(), Atoms(PRIOR, 0.3)
    params = atoms._params(*data[2:])
    params[kernels.DENSITY] = 1.0
    rng = np.random.default_rng(0)
    for _ in range(5):
        theta = atoms.theta + rng.normal(size=atoms.theta.shape)
        _, gradient, metric = at(theta, data, params)
        for i in range(theta.size):
            step = np.zeros_like(theta)
            step[i] = 1e-5
            high, low = at(theta + step, data, params), at(theta - step, data, params)
            assert (high[0] - low[0]) / 2e-5 == pytest.approx(gradient[i], rel=1e-6, abs=1e-6)
            np.testing.assert_allclose((high[2][0] - low[2][0]) / 2e-5, metric[1 + i], rtol=1e-5, atol=1e-5)


def test_density_is_that_of_the_documents_one_by_one():
    rng = np.random.default_rng(0)
    doc_counts, p = rng.poisson(1.5, (7, PRIOR.n_atoms)), rng.beta(2.0, 2.0, 7)
    above = np.zeros((PRIOR.n_atoms, 12))
    kernels.count_rows(doc_counts.astype(float), 1.0, above)
    atoms, data = Atoms(PRIOR, 0.3), (*kernels.cells_of(above), -np.log1p(-p).sum(), 8.0)
    params = atoms._params(*data[2:])
    params[kernels.DENSITY] = 1.0
    thetas = [atoms.theta + rng.normal(size=atoms.theta.shape) for _ in range(5)]
    ours = np.array([at(theta, data, params)[0] for theta in thetas])
    plain = np.array([naive.log_density(theta[:, 0], doc_counts, p, PRIOR) for theta in thetas])
    np.testing.assert_allclose(ours - ours[0], plain - plain[0], rtol=1e-9)


def test_tables_are_those_of_a_chinese_restaurant(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    lengths, r = np.array([5, 3, 9, 60]), np.array([0.7])
    above = np.array([[(lengths > m).sum() for m in range(61)]], dtype=float)
    cells, values = kernels.cells_of(above)
    ours, plain = np.empty(3000), np.empty(3000)
    for t in range(3000):
        tables = np.empty(1)
        kernels.draw_tables(cells, values, r, tables, rng)
        ours[t], plain[t] = tables[0], sum(naive.chinese_restaurant(n, 0.7, rng) for n in lengths)
    error = np.sqrt((ours.var() + plain.var()) / 3000)
    assert abs(ours.mean() - plain.mean()) < 5 * error and abs(ours.std() / plain.std() - 1.0) < 0.1


@pytest.mark.parametrize("weight", [1e-12, 1e-20, 1e-30])  # gaps between successes may exceed all integers
def test_a_topic_of_hardly_any_weight_has_one_table_a_document(weight):
    cells, values = kernels.cells_of(np.full((1, 40), 300.0))
    tables, rng = np.empty(1), np.random.default_rng(0)
    for _ in range(200):
        kernels.draw_tables(cells, values, np.array([weight]), tables, rng)
        assert tables[0] == 300.0


def exact_moments(n=400_000):
    """Posterior means of `summary` by weighted prior draws, and their standard errors."""
    cells, values, L, _ = seen()
    weights, concentration, c = draw_process(np.random.default_rng(0), size=(n,))
    log_p = -L * weights.sum(axis=1)
    for (k, first, n_levels), value in zip(cells.astype(int), values, strict=True):
        for m in range(first, first + n_levels):
            log_p += value * np.log(weights[:, k] + m)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    rows = summary(weights, concentration, c)
    mean = p @ rows
    return mean, np.sqrt((p**2) @ (rows - mean) ** 2)


def summary(weights, concentration, c):
    return np.column_stack([weights, np.log(np.maximum(weights[:, :2], 1e-300)), concentration, np.log(c)])


@pytest.fixture(scope="module")
def law():
    return exact_moments()


def z_of(law, make, seed, n=2000, decay=0.0, data=None):
    """Largest z-score of a chain of weights at fixed statistics."""
    atoms, rng = make(), np.random.default_rng(seed)
    out = []
    for t in range(n + n // 5):
        atoms.move(*(data or seen()), rng, decay)
        if t >= n // 5:
            out.append(summary(atoms.weights[None], np.array([atoms.concentration]), np.array([atoms.rate]))[0])
    means = batch_means(np.array(out))
    error = np.sqrt(means.var(axis=0, ddof=1) / len(means) + law[1] ** 2)
    return np.abs((means.mean(axis=0) - law[0]) / error).max()


def moving(sampler, n_inner=20):
    return lambda: MovingAtoms(PRIOR, 0.3, sampler._resolved(ConstantStep(0.1)), n_inner, 200)


MOVES = {
    "conditionals": (lambda: Atoms(PRIOR, 0.3), 0.0),
    "conditionals that remember": (lambda: Atoms(PRIOR, 0.3), 0.4),
    "sghmc": (moving(SGHMC(0.1)), 0.0),
    "sghmc-em": (moving(SGHMC(0.1, mass=MonteCarloEM(n_momenta=50))), 0.0),
    "sgnht": (moving(SGNHT(0.1)), 0.0),
    "sg-nphmc": (moving(SGNPHMC(0.1)), 0.0),
    "sgr-nphmc": (moving(SGRNPHMC(0.2), 5), 0.0),
}


@pytest.mark.parametrize("key", MOVES)
def test_weights_have_their_exact_law_given_the_statistics(key, law, global_random_seed):
    make, decay = MOVES[key]
    assert z_of(law, make, global_random_seed, decay=decay) < THRESHOLD


class TablesOfDocuments(Atoms):
    """Mistake: every document that has a topic sits at one table, however many tokens it has."""

    def move(self, cells, values, *rest):
        cells, values = cells[cells[:, 1] == 0].copy(), values[cells[:, 1] == 0]
        cells[:, 2] = 1
        super().move(cells, values, *rest)


class UnitMassTwice(MovingAtoms):
    """Mistake: two of the blocks share their noise's variance with a mass that the drift does not know."""

    def move(self, *args):
        for block in (state.scalars for state in self.states[1:]):
            block[32 + (block.size - 32) // 3 : 32 + 2 * (block.size - 32) // 3] = 5.0
        super().move(*args)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TablesOfDocuments(PRIOR, 0.3),
        lambda: UnitMassTwice(PRIOR, 0.3, SGHMC(0.1, mass=np.ones(10))._resolved(None), 20, 200),
    ],
)
def test_broken_moves_are_rejected(make, law, global_random_seed):
    assert z_of(law, make, global_random_seed) > 1.3 * THRESHOLD


def test_the_mass_of_the_e_block_stays_the_identity():
    atoms = moving(SGHMC(0.05, mass=MonteCarloEM(n_momenta=20, every=2)))()
    for _ in range(60):
        atoms.move(*seen(), np.random.default_rng(0))
    assert atoms.states[0].scalars.size == 32  # no room for a mass
    K = PRIOR.n_atoms
    of_t, of_numbers = atoms.states[1].scalars[32 : 32 + K], atoms.states[2].scalars[32:34]
    assert not np.allclose(of_t, 1.0) and not np.allclose(of_numbers, 1.0)
    with pytest.raises(ValueError, match=r"mass has shape \(3,\)"):
        moving(SGHMC(mass=np.ones(3)))()
    with pytest.raises(ValueError, match=r"mass=\{\} must be"):
        moving(SGHMC(mass={}))()


class CountsDown(SGLD):
    """An array that does not start at 0, and burn-in counted down where others keep whether they have started."""

    def _state(self, theta, geometry, n_burn):
        return np.ones((1, *theta.shape)), np.array([float(n_burn)])


@pytest.mark.parametrize("n_moves, left", [(1, 199 * 20), (201, 0)])
def test_a_failed_step_restarts_a_sampler_of_its_own_layout_from_its_own_start(n_moves, left):
    atoms = moving(CountsDown(0.001))()
    for _ in range(n_moves):
        atoms.move(*seen(), np.random.default_rng(0))
    for state in atoms.states:
        state.aux[:] = np.nan
    atoms._start_anew()
    for state in atoms.states:
        np.testing.assert_array_equal(state.aux, 1.0)
        np.testing.assert_array_equal(state.scalars, left)


def test_weights_beyond_all_numbers_are_a_divergence():
    atoms = moving(SGNPHMC(1e-3))()
    atoms.theta[0] = 800.0
    with pytest.raises(ChainDivergedError, match="The weights of the topics"):
        atoms.move(*seen(), np.random.default_rng(0))


def test_counts_are_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    z, ptr = rng.integers(3, size=30, dtype=np.uint16), np.array([0, 12, 12, 30])
    above = np.zeros((3, 20))
    kernels.count_documents(np.arange(3), ptr, np.empty(0), z, 1.0, above)
    n = np.array([np.bincount(z[a:b], minlength=3) for a, b in itertools.pairwise(ptr)])
    np.testing.assert_array_equal(above, [[(n[:, k] > m).sum() for m in range(20)] for k in range(3)])
    rows = np.zeros((3, 20))
    kernels.count_rows(n.astype(float), 1.0, rows)
    np.testing.assert_array_equal(rows, above)
    cells, values = kernels.cells_of(above)
    for (k, first, n_levels), value in zip(cells.astype(int), values, strict=True):
        assert np.all(above[k, first : first + n_levels] == value)
        above[k, first : first + n_levels] = 0.0
    assert not above.any()


# ------------------------------------------------------------------------------------------------------------ chains


def test_sweeps_over_topics_in_use_have_the_exact_law(global_random_seed):
    class InUse(DocumentPrior):
        leaves_topics_empty = True

    chain = make_chain(global_random_seed, 1.0, 8000, make=CollapsedChain, doc_prior=InUse(ALPHA)).run(8000)
    law = exact_law()
    assert np.abs(z_scores(batch_means(statistics(chain.draws()["components"])), law)).max() < THRESHOLD


def occupancy(make, seed, n_steps=1500):
    """Batch means of the number of occupied topics and of the sum of squares of their sizes, 40 topics, 40 tokens."""
    rng = np.random.default_rng(0)
    data = shard_of(rng.multinomial(8, np.full(4, 0.25), size=5))
    z = np.zeros(data.words.size, dtype=np.uint16)
    prior = np.broadcast_to(np.array([0.2, 0.4, 0.3, 0.1])[:, None], (4, 40))
    sweeps, rng = make(data, z, prior), np.random.default_rng(seed)
    alpha = np.linspace(0.01, 0.1, 40)[None]
    values = np.empty((n_steps, 3))
    for t in range(-20, n_steps):
        sweeps.sweep(data, 0, 5, alpha, data.group, rng)
        n = np.bincount(z, minlength=40)
        values[t] = np.count_nonzero(n), np.sum(n**2), n @ np.arange(40)
        np.testing.assert_array_equal(sweeps.counts.sum(axis=0), n)
    return batch_means(values)


def test_topics_that_are_set_aside_come_back_as_often_as_they_should(monkeypatch, global_random_seed):
    monkeypatch.setattr(sweeps_module, "_READY", 1)
    stops = []
    lay_again = OccupiedTopicSweeps._compact_columns

    def counted(self, alpha, n_ready):
        stops.append(n_ready > 1)
        lay_again(self, alpha, n_ready)

    monkeypatch.setattr(OccupiedTopicSweeps, "_compact_columns", counted)
    own, plain = occupancy(OccupiedTopicSweeps, global_random_seed), occupancy(GeneralSweeps, global_random_seed + 1)
    assert sum(stops) > 100  # sweeps stopped for want of a column
    error = np.sqrt(own.var(axis=0, ddof=1) / len(own) + plain.var(axis=0, ddof=1) / len(plain))
    assert np.abs((own.mean(axis=0) - plain.mean(axis=0)) / error).max() < THRESHOLD


CHAINS = {
    "gibbs": ("gibbs", {}),
    "scir": ("scir", {}),
    "scir, minibatches": ("scir", {"n_batch": 2, "burn_in": 60, "thin": 10}),
    "scir, finite step": (SCIR(1.0), {}),
    "sghmc": ("sghmc", {}),
}


@pytest.mark.parametrize("key", CHAINS)
def test_chains_are_calibrated(key, global_random_seed):
    sampler, arguments = CHAINS[key]
    ranks = tiny_gamma_process.ranks(global_random_seed, 60, sampler, **arguments)
    assert calibration.p_values(ranks).min() > 1e-5


# --------------------------------------------------------------------------------------------------------- estimator


@pytest.fixture(scope="module")
def planted():
    return make_gamma_process(300, 60, weights=[0.5, 0.3, 0.2, 0.1], random_state=0)


@pytest.mark.parametrize("sampler", ["scir", "gibbs", SGNHT(mass=MonteCarloEM(n_momenta=30)), "sgr-nphmc"], ids=str)
def test_planted_topics_and_their_number_are_recovered(sampler, planted):
    right = {"scale_prior": (400.0, 5.0), "topic_word_prior": 0.1}
    model = GammaProcessTopicModel(15, sampler=sampler, n_iter=80, random_state=1, **right).fit(planted.counts)
    assert model.n_topics_ == 4
    assert np.abs(model.components_[:4] - planted.components).sum(axis=1).max() < 0.35
    assert np.abs(model.weights_[:4] / planted.weights - 1.0).max() < 0.3  # of 300 documents
    table = model.topic_weights(interval=0.9)
    low, mean, high = (np.asarray(table[column])[:4] for column in ("low", "weight", "high"))
    assert np.all(low < mean) and np.all(mean < high)
    assert sum(table["share"]) == pytest.approx(1.0)
    posterior = model.n_topics_posterior()
    assert sum(posterior["probability"]) == pytest.approx(1.0)
    if isinstance(sampler, SGNHT):
        inverse = model.sampler_.inverse_mass_[0]
        assert np.all(inverse[:15] == 1.0) and not np.any(inverse[15:] == 1.0)
        assert model.sampler_._hyper(0, 1)[0, 0] < 0.1
    assert model.samples_["n_topics"].shape == model.samples_["rate"].shape == (1, 40)


def test_a_stream_finds_the_planted_topics():
    data = make_gamma_process(2400, 60, weights=[0.5, 0.3, 0.2, 0.1], random_state=0)
    model = GammaProcessTopicModel(10, random_state=0)
    for start in range(0, 2400, 400):
        model.partial_fit(data.counts[start : start + 400])
    gaps = np.abs(model.components_[:, None] - data.components[None]).sum(axis=2).min(axis=0)
    assert gaps.max() < 0.35
    assert model.n_samples_seen_ == 2400 and model.perplexity(data.counts) < 60


def test_a_stream_after_fresh_assignments_goes_on_with_their_averages():
    X = make_lda(60, 20, 2, random_state=0).counts
    model = GammaProcessTopicModel(5, assignments="fresh", n_iter=20, random_state=0).fit(X)
    assert model.partial_fit(X)._chains[0].doc_prior.seen.n_seen == 22  # the start counts as one


def test_levels_of_counts_reach_as_far_as_the_counts_and_come_back_from_a_file():
    X = make_lda(60, 20, 2, random_state=0).counts
    seen = GammaProcessTopicModel(5, n_iter=10, random_state=0).fit(X)._chains[0].doc_prior.seen
    used = seen.used_levels()
    assert used[:, -1].any() and not seen.above[:, used.shape[1] :].any()
    again = pickle.loads(pickle.dumps(seen))
    np.testing.assert_array_equal(again.above, seen.above)


@pytest.mark.parametrize("sampler", [SGRNPHMC(step_size=0.02), SGHMC()])
def test_weights_go_on_moving_after_any_kind_of_copy(sampler, tmp_path):
    X = make_lda(60, 20, 2, random_state=0).counts
    model = GammaProcessTopicModel(5, sampler=sampler, random_state=0).partial_fit(X)
    joblib.dump(model, tmp_path / "model.joblib")
    copies = [joblib.load(tmp_path / "model.joblib"), pickle.loads(pickle.dumps(model))]
    before = model.samples_["weights"][0, -1].copy()
    after = model.partial_fit(X).samples_["weights"][0, -1]
    assert not np.array_equal(before, after)
    for each in copies:
        np.testing.assert_array_equal(each.partial_fit(X).samples_["weights"][0, -1], after)


def test_process_parameters_are_checked():
    X = make_lda(50, 20, 2, random_state=0).counts
    for params, message in [
        ({"concentration_prior": (1.0, -1.0)}, "concentration_prior"),
        ({"rate_prior": (1.0,)}, "rate_prior"),
        ({"scale_prior": ("a", 1.0)}, "scale_prior"),
        ({"atoms_per_round": 0.0}, "atoms_per_round"),
        ({"atoms_per_round": 1e-300}, r"atoms_per_round=1e-300 .* use at least 5e-05"),
        ({"topic_word_prior": np.ones(3)}, "topic_word_prior"),
        ({"sampler": Blob()}, "Blob"),
        ({"sampler": "hmc"}, "HMC"),
        ({"sampler": SGNPHMC(drive="likelihood")}, "drive"),
    ]:
        with pytest.raises(ValueError, match=message):
            GammaProcessTopicModel(5, n_iter=4, **params).fit(X)
    model = GammaProcessTopicModel(5, n_iter=4, random_state=0).fit(X)
    with pytest.raises(ValueError, match="interval=1"):
        model.topic_weights(interval=1)
    with pytest.raises(ValueError, match="min_share=2"):
        model.n_topics_posterior(2)


@pytest.mark.parametrize("sampler", [None, "scir", "sghmc"])
def test_a_check_of_the_samplers_sets_nothing(sampler):
    model = GammaProcessTopicModel(3, sampler=sampler)
    before = dict(vars(model))
    for streams in (False, True):
        model._checked_sampler(streams=streams)
    assert vars(model) == before
