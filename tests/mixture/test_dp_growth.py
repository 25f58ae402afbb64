"""Updates of a `DPCategoricalMixture` by `partial_fit`: rows are appended, swept, kept, streamed and forgotten."""

import pickle
from functools import cache

import numpy as np
import pytest
from joblib import parallel_config
from scipy.special import logsumexp

from sk_sgmcmc import DPCategoricalMixture
from sk_sgmcmc.chains.growth import FEWEST_DRAWS
from sk_sgmcmc.mixture._dirichlet_process import model as module
from sk_sgmcmc.mixture._dirichlet_process.cells import RowData
from sk_sgmcmc.mixture._dirichlet_process.collapsed import BlockPlan, CollapsedChain
from tests.cases import THRESHOLD, z_scores
from tests.common.compare import PressCtrlC, assert_same_draws, interrupted
from tests.conftest import importorskip
from tests.naive import dp_categorical as naive
from tests.tiny_dp import ROWS, A, encoded, exact_law, make_chain, run
from tests.tiny_lda import batch_means

ALPHA = 1.3
PROFILES = np.array([[0.9] * 4 + [0.1] * 4, [0.1] * 4 + [0.9] * 4, [0.1, 0.9] * 4])
exact = cache(exact_law)


@pytest.fixture(autouse=True)
def short_updates(monkeypatch):
    """Updates that make a fifth of the usual sweeps."""
    monkeypatch.setattr(module, "_PASSES", module._PASSES._replace(most=400))


def answers(n=300, seed=0):
    """Rows of 0 and 1 from three clusters."""
    rng = np.random.default_rng(seed)
    return (rng.random((n, 8)) < PROFILES[rng.integers(3, size=n)]).astype(float)


X = answers()


def new(**params):
    return DPCategoricalMixture(**{"likelihood": "bernoulli", "n_iter": 60, "random_state": 0, **params})


@pytest.fixture(scope="module")
def saved():
    return pickle.dumps(new().fit(X[:200]))


def loaded(saved, **params):
    return pickle.loads(saved).set_params(**params)


def assert_counts_are_those_of_the_labels(model):
    kept = model._kept
    for chain in model._chains:
        counts = np.zeros_like(chain.counts)
        np.add.at(counts, (kept.cells, np.repeat(chain.z, np.diff(kept.indptr))), kept.values)
        n_cells = chain.layout.n_cells
        np.testing.assert_array_equal(chain.counts[:n_cells], counts[:n_cells])
        np.testing.assert_array_equal(chain.sizes, np.bincount(chain.z, kept.weights, chain.sizes.size))


# ------------------------------------------------------------------------------------------------------ the posterior


def grown_chain(likelihood, seed, n_pairs):
    """A chain of three rows, to which the other two were appended after 30 sweeps."""
    rows = ROWS[likelihood]
    chain = make_chain("collapsed", likelihood, ALPHA, seed, 5000, n_pairs=n_pairs, X=rows[2:]).run(30)
    encoded_rows, layout = encoded(rows[:2], likelihood)
    return chain.append(chain.data.joined(RowData.make(encoded_rows, None, layout, 5)), 2, chain.plan)


def z_of_grown_chain(likelihood, seed, n_pairs):
    means = batch_means(run(grown_chain(likelihood, seed, n_pairs), 2000, likelihood), 25)
    moving = means.std(axis=0) > 0
    assert moving.sum() >= 8
    return np.abs(z_scores(means[:, moving], exact(likelihood, ALPHA)[moving])).max()


@pytest.mark.parametrize("likelihood", ROWS)
def test_a_chain_to_which_rows_were_appended_has_the_posterior_of_all_rows(likelihood, global_random_seed):
    assert z_of_grown_chain(likelihood, global_random_seed, 2) < THRESHOLD


@pytest.mark.parametrize("likelihood", ROWS)
def test_earlier_rows_that_keep_their_labels_are_rejected(likelihood, global_random_seed, monkeypatch):
    monkeypatch.setattr(CollapsedChain, "_next_batch", lambda self: np.arange(3, self.data.n_rows))
    assert z_of_grown_chain(likelihood, global_random_seed, 0) > THRESHOLD


ONE, TWO, BOTH = [1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0, 1, 1]
# After three rows, the second is often in the cluster of another one; after three more that are equal to it, seldom.
FEW = np.array([ONE, BOTH, TWO, BOTH, BOTH, BOTH])


def z_of_updates():
    """z-scores of the probabilities that there are 1, 2, ... clusters after an update, against enumeration."""
    model = new(n_chains=30, concentration_prior=ALPHA, category_prior=A)
    drawn = model.fit(FEW[:3]).partial_fit(FEW[3:]).samples_["n_clusters"]
    assert drawn.shape == (30, 50)  # none of the fit
    labels = naive.partitions(len(FEW))
    log_p = naive.log_posterior(labels, FEW.astype(float), "bernoulli", A, ALPHA)
    p = np.bincount(labels.max(axis=1) + 1, np.exp(log_p - logsumexp(log_p)))
    values = (drawn.reshape(-1, 10, 1) == np.arange(2, 4)).mean(axis=1)
    return np.abs(z_scores(values, p[2:4])).max()


def test_an_update_has_the_number_of_clusters_of_all_rows():
    assert z_of_updates() < THRESHOLD


def test_an_update_in_which_earlier_rows_keep_their_labels_is_rejected(monkeypatch):
    monkeypatch.setattr(
        CollapsedChain, "_next_batch", lambda self: np.arange(3 * (self.data.n_rows > 3), self.data.n_rows)
    )
    monkeypatch.setattr(CollapsedChain, "_move_groups", lambda self: None)
    assert z_of_updates() > THRESHOLD


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical", "multinomial"])
def test_an_update_finds_what_a_fit_to_all_rows_finds(likelihood):
    model = new(likelihood=likelihood).fit(X[:150])
    for start in (150, 200, 250):
        model.partial_fit(X[start : start + 50])
    at_once = new(likelihood=likelihood).fit(X)
    test = answers(200, 1)
    assert model.score(test) == pytest.approx(at_once.score(test), abs=0.03)
    np.testing.assert_allclose(model.co_clustering(test[:30]), at_once.co_clustering(test[:30]), atol=0.25)
    assert model.n_samples_seen_ == 300 and model.labels_.shape == (50,)
    np.testing.assert_array_equal(model.labels_, model.predict(X[250:]))
    assert_counts_are_those_of_the_labels(model)


# -------------------------------------------------------------------------------------------------------- the schedule


def test_the_first_call_is_a_fit():
    assert_same_draws(new(n_iter=20).partial_fit(X[:100]), new(n_iter=20).fit(X[:100]))


def test_small_blocks_wait_until_there_are_enough(saved):
    model, steps = loaded(saved), []
    for start in range(200, 230, 5):
        model.partial_fit(X[start : start + 5])
        steps.append(model.n_iter_)
    assert steps[0] == 60 and len(set(steps)) in (3, 4)  # two or three times in six blocks
    assert model._kept.n_rows == 230 == model.n_samples_seen_
    assert_counts_are_those_of_the_labels(model)


def test_kept_draws_are_recent_and_no_fewer_than_twenty(saved):
    model, oldest = loaded(saved), []
    for start in (200, 240, 280):
        chain = model.partial_fit(X[start : start + 40])._chains[0]
        n_kept = model.samples_["n_clusters"].shape[1]
        assert FEWEST_DRAWS <= n_kept == chain.n_kept == len(chain.kept_rows) <= 100
        assert np.all(np.diff(chain.kept_rows) >= 0) and chain.kept_rows[-1] == chain.data.n_rows
        assert np.mean(np.array(chain.kept_rows) >= 0.8 * chain.data.n_rows) > 0.7
        oldest.append(chain.kept_rows[0])
    assert oldest[0] == 200 < oldest[-1]
    chain = loaded(saved).partial_fit(answers(400, seed=1))._chains[0]
    assert chain.n_kept >= FEWEST_DRAWS and min(chain.kept_rows) >= 0.8 * chain.data.n_rows
    model = new(n_iter=240, thin=1).fit(X[:60])
    assert model.samples_["n_clusters"].shape[1] == 120
    assert model.partial_fit(X[60:62]).samples_["n_clusters"].shape[1] == 100


def test_a_block_that_comes_again_is_swept_and_not_appended(saved):
    model = loaded(saved).partial_fit(X[200:250])
    n_iter = model.n_iter_
    model.partial_fit(X[200:250])
    assert model.n_samples_seen_ == 250 == model._kept.n_rows and model.n_iter_ > n_iter
    assert model._weight_seen == 250
    model.partial_fit(X[:200])  # the rows of fit
    assert model.n_samples_seen_ == 250
    model.partial_fit(X[200:250][::-1])  # the same rows in another order
    assert model.n_samples_seen_ == 300
    model.partial_fit(X[200:250], sample_weight=np.full(50, 2.0)).partial_fit(X[200:202]).partial_fit(X[200:202])
    assert model.n_samples_seen_ == 354 and model._kept.n_rows == 404
    assert_counts_are_those_of_the_labels(model)


# ------------------------------------------------------------------------------------------------------ reproducibility


def test_updates_are_the_same_for_any_n_jobs_and_after_a_file():
    def updated(model, *starts):
        for start in starts:
            model.partial_fit(X[start : start + 60])
        return model

    model = updated(new(n_chains=2).fit(X[:120]), 120, 180)
    assert_same_draws(model, updated(new(n_chains=2, n_jobs=2).fit(X[:120]), 120, 180))
    half = updated(new(n_chains=2).fit(X[:120]), 120)
    assert_same_draws(model, updated(pickle.loads(pickle.dumps(half)), 180))
    with parallel_config("loky", n_jobs=2):
        assert_same_draws(model, updated(half.set_params(n_jobs=2), 180))


def test_the_order_of_the_rows_of_a_block_and_later_changes_of_it_do_not_matter(saved):
    block = X[200:260].copy()
    model, other = loaded(saved).partial_fit(block), loaded(saved).partial_fit(X[200:260][::-1])
    assert_same_draws(model, other)
    block[:] = 1.0
    assert_same_draws(model.partial_fit(X[260:]), other.partial_fit(X[260:]))


def test_an_interrupted_update_is_resumed_or_made_up_for(saved):
    whole = loaded(saved).partial_fit(X[200:260])
    model = loaded(saved, callbacks=PressCtrlC(70))
    with interrupted():
        model.partial_fit(X[200:260])
    assert model.n_iter_ == 70 and model.n_samples_seen_ == 260 and model.labels_.shape == (60,)
    model = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="differs from them"):
        model.resume(X[200:250])
    later = pickle.loads(pickle.dumps(model)).partial_fit(X[260:264])
    assert later.n_iter_ >= whole.n_iter_  # the sweeps that were not made, and none for four rows
    assert_same_draws(whole, model.set_params(callbacks=None).resume(X[200:260]))


def test_a_refused_block_changes_nothing(saved):
    model = loaded(saved)
    before = pickle.dumps(model)
    for block, weights, message in (
        (X[200:] + 1.0, None, "0, 1, or NaN"),
        (X[200:, :7], None, "7 features"),
        (X[200:], -np.ones(100), "sample_weight"),
        (X[200:], np.full(100, 1e9), "sample_weight"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(block, sample_weight=weights)
        assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="n_chains=2"):
        model.set_params(n_chains=2).partial_fit(X[200:])


# --------------------------------------------------------------------------------------------------- what rows may be


def test_weights_stand_for_rows():
    weights = np.random.default_rng(0).integers(1, 4, 60)
    model = new().fit(X[:150]).partial_fit(X[150:210], sample_weight=weights)
    repeated = new().fit(X[:150]).partial_fit(X[150:210].repeat(weights, axis=0))
    assert_same_draws(model, repeated)
    assert model.n_samples_seen_ == 210 and repeated.n_samples_seen_ == 150 + weights.sum()


def test_survey_weights_of_each_call_sum_to_their_effective_size():
    weights = np.random.default_rng(0).gamma(2.0, size=200)
    model = new(weights="survey").fit(X[:120], sample_weight=weights[:120])
    model.partial_fit(X[120:200], sample_weight=1000.0 * weights[120:])
    scaled = np.concatenate([part * part.sum() / np.square(part).sum() for part in (weights[:120], weights[120:])])
    chain = model._chains[0]
    assert chain.sizes.sum() == pytest.approx(scaled.sum(), abs=1e-3)
    np.testing.assert_allclose(chain.counts[:8].sum(axis=1), scaled @ X[:200], atol=1e-3)
    assert_counts_are_those_of_the_labels(model)


def test_levels_are_those_of_the_first_call():
    pandas = importorskip("pandas")
    codes = answers(160).astype(int)
    codes[::7, 0] = 2
    frame = pandas.DataFrame(np.array(["no", "yes", "maybe"])[codes], columns=[f"q{j}" for j in range(8)])
    frame.iloc[::5, 3] = None
    model = new(likelihood="categorical").fit(frame[:80]).partial_fit(frame[80:])
    shape = model.samples_["components"].shape
    assert [len(of) for of in model.categories_] == [3] + [2] * 7 and shape[-1] == 17
    assert_counts_are_those_of_the_labels(model)
    other = frame[:40].assign(q1="never")
    with pytest.warns(UserWarning, match="never in column 'q1'"):
        model.partial_fit(other)
    assert model._kept.n_rows == 200 and model.samples_["components"].shape[-1] == 17
    assert model._kept.selected(np.arange(160, 200))[:, model._layout.block == 1].nnz == 0  # missing


# ---------------------------------------------------------------------------------------------------------- forgetting


def test_forgotten_rows_are_nowhere_in_a_pickle_and_results_stay():
    counts = np.random.default_rng(0).poisson(1.0, (120, 20))
    counts[17, 5] = 51_966
    needle = np.float64(51_966).tobytes()
    model = new(likelihood="multinomial", n_iter=20).fit(counts)
    assert needle in pickle.dumps(model)
    components, labels, diagnostics = model.samples_["components"], model.labels_, model.diagnostics_
    small = pickle.dumps(model.forget_rows())
    again = pickle.loads(small)
    assert again._kept is None and all(chain.z is None and chain.data is None for chain in again._chains)
    for chain in again._chains:  # The row may be a cluster by itself, whose counts are needed.
        chain.counts[:] = 0.0
    assert needle not in pickle.dumps(again)
    np.testing.assert_array_equal(again.samples_["components"], components)
    np.testing.assert_array_equal(again.predict(counts), labels)
    np.testing.assert_array_equal(again.diagnostics_["mean"], diagnostics["mean"])
    for each in (model, again):
        with pytest.raises(ValueError, match="forget_rows dropped them"):
            each.resume(counts)


def test_rows_that_are_not_kept_are_streamed(saved):
    streams = [
        loaded(saved).forget_rows(),
        loaded(saved, keep_rows=False),
        loaded(saved, keep_rows=int(X[:250].sum())),
        new(keep_rows=False).fit(X[:200]),
    ]
    expected = loaded(saved).forget_rows().partial_fit(X[200:260])
    for model in streams:
        assert_same_draws(model.partial_fit(X[200:260]), expected)
        assert model.n_iter_ == 70
        assert isinstance(model._chains[0].plan, BlockPlan) and model._kept is None
        assert model.n_samples_seen_ == 260 and model._chains[0].sizes.sum() == 260
        model.partial_fit(X[200:260])  # It is not recognised.
        assert model.n_samples_seen_ == 320
    limited = loaded(saved, total_samples=150).partial_fit(X[200:260])
    assert limited._chains[0].sizes.sum() < 200
    assert limited.set_params(total_samples=None).partial_fit(X[260:])._kept is None


def test_an_interrupted_stream_is_resumed(saved):
    whole = loaded(saved).forget_rows().partial_fit(X[200:260])
    model = loaded(saved, callbacks=PressCtrlC(63)).forget_rows()
    with interrupted():
        model.partial_fit(X[200:260])
    assert_same_draws(whole, pickle.loads(pickle.dumps(model)).resume(X[200:260]))


@pytest.mark.parametrize("params", [{"sampler": "scir"}, {"sampler": "slice-gibbs"}, {"assignments": "fresh"}], ids=str)
def test_other_samplers_keep_no_rows_and_forget_their_labels(params):
    model = new(n_iter=12, **params).fit(X[:60])
    assert model._kept is None
    components = model.samples_["components"]
    again = pickle.loads(pickle.dumps(model.forget_rows()))
    np.testing.assert_array_equal(again.samples_["components"], components)
    assert again._chains[0].z is None
    with pytest.raises(ValueError, match="forget_rows dropped them"):
        again.resume(X[:60])
