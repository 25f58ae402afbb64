"""Weights of rows in `DPCategoricalMixture`: their law, what they cost, and what the two kinds of weights mean."""

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import gammaln

from sk_sgmcmc import DPCategoricalMixture
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.mixture._dirichlet_process.cells import split_weights
from sk_sgmcmc.samplers import SCIR, SGRLD
from tests.cases import THRESHOLD, z_scores
from tests.common.compare import StopAt
from tests.naive import dp_categorical as naive
from tests.tiny_dp import N_LEVELS, NEW, ROWS, A, make_chain, places, run, statistics
from tests.tiny_lda import batch_means

ALPHA = 1.3
WEIGHTS = 0.4, 0.7, 0.3, 1.3, 1.0  # of the two categorical rows that are equal, the lighter one first


# ------------------------------------------------------------------------------------------------------------- laws


class UnweightedProposals(naive.WeightedChain):
    """Splits and merges that take the probability of the way in full, whatever the weights."""

    def allocations(self, i, k, members):
        return [(sides, log_q, log_q) for sides, log_q, _ in super().allocations(i, k, members)]


@cache
def law(likelihood, n_pairs, weights=WEIGHTS, kind=naive.WeightedChain):
    """Means of `statistics` and of the probability of `NEW` under the stationary law of labels, by enumeration."""
    place = places(weighted_chain(likelihood, 0, weights=weights), likelihood)
    own = np.argsort(place)
    chain = kind(ROWS[likelihood][own], split_weights(weights)[1][own], likelihood, A, ALPHA, N_LEVELS)
    p = chain.stationary(n_pairs)
    return np.append(p @ statistics(chain.partitions[:, place]), p @ chain.predicted(NEW[likelihood][0]))


def weighted_chain(likelihood, seed, n_pairs=0, kind="collapsed", weights=WEIGHTS):
    chain = make_chain(kind, likelihood, ALPHA, seed, 5000, n_pairs=n_pairs, weights=weights)
    chain.current()  # starts it
    return chain


def z_of(chain, likelihood, expected, n_steps=3000):
    means = batch_means(run(chain, n_steps, likelihood), 25)
    return np.abs(z_scores(means, expected)).max()


@pytest.mark.parametrize("likelihood", ROWS)
@pytest.mark.parametrize("n_pairs", [0, 2])
def test_a_chain_of_weighted_rows_has_its_enumerated_law(likelihood, n_pairs, global_random_seed):
    chain = weighted_chain(likelihood, global_random_seed, n_pairs)
    assert z_of(chain, likelihood, law(likelihood, n_pairs)) < THRESHOLD


BROKEN = {
    "seats without weights": lambda data: replace(data, weights=np.ones(5)),
    "tempered labels": lambda data: replace(data, entries=data.values),
    "sums without weights": lambda data: replace(data, values=data.entries),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_weights_left_out_or_taken_twice_are_rejected(broken, global_random_seed):
    chain = make_chain("collapsed", "multinomial", ALPHA, global_random_seed, 5000, n_pairs=0, weights=WEIGHTS)
    place = places(chain, "multinomial")
    chain.bind(BROKEN[broken](chain.data)).run(100)
    drawn = np.array([chain.run(chain.step + 1).z[place] for _ in range(3000)])
    means = batch_means(statistics(drawn), 25)
    assert np.abs(z_scores(means, law("multinomial", 0)[:-1])).max() > THRESHOLD


def test_splits_that_forget_weights_are_rejected(global_random_seed):
    weights = (0.3,) * 5
    chain = weighted_chain("multinomial", global_random_seed, 6, weights=weights)
    drawn = batch_means(run(chain, 3000, "multinomial"), 25)
    assert np.abs(z_scores(drawn, law("multinomial", 6, weights))).max() < THRESHOLD
    wrong = law("multinomial", 6, weights, UnweightedProposals)
    assert np.abs(z_scores(drawn, wrong)).max() > 2 * THRESHOLD


@cache
def pseudo():
    X = ROWS["multinomial"]
    return naive.pseudo_posterior(X, np.array(WEIGHTS), A, ALPHA, NEW["multinomial"][0], np.random.default_rng(0))


def tempered_law():
    """Labels whose own likelihood and count are taken to the power of the weight: alpha^K prod Gamma(n_k) ..."""
    X, weights, labels = ROWS["multinomial"], np.array(WEIGHTS), naive.partitions(5)
    log_p = [
        sum(
            np.log(ALPHA)
            + gammaln(weights[z == k].sum())
            + naive.log_marginal(X[z == k], "multinomial", A, weights=weights[z == k])
            for k in np.unique(z)
        )
        for z in labels
    ]
    return np.exp(log_p - np.logaddexp.reduce(log_p)) @ statistics(labels)[:, :10]


@pytest.mark.parametrize("n_pairs", [0, 2])
def test_the_law_is_close_to_the_pseudo_posterior(n_pairs):
    means, errors = pseudo()
    own = law("multinomial", n_pairs)
    assert errors[:10].max() < 0.004
    assert np.abs(own[:10] - means[:10]).max() < 0.12
    assert np.abs(own[-1] / means[-1] - 1.0) < 0.06
    # With tempered labels, light rows found clusters of their own.
    assert np.abs(tempered_law() - means[:10]).max() > 0.24


def test_slices_of_weighted_rows_are_close_to_the_pseudo_posterior(global_random_seed):
    means, _ = pseudo()
    found = run(weighted_chain("multinomial", global_random_seed, kind="slices"), 2000, "multinomial").mean(axis=0)
    assert np.abs(found[:10] - means[:10]).max() < 0.12
    assert np.abs(found[-1] / means[-1] - 1.0) < 0.06


# ------------------------------------------------------------------------------------------------------ what users see


def survey(n=600, n_questions=12, seed=0):
    """Answers of four segments to questions of two levels, a tenth missing, weights of mean 1, and the segments."""
    rng = np.random.default_rng(seed)
    profiles = np.where(rng.random((4, n_questions)) < 0.5, 0.9, 0.1)
    z = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    X = (rng.random((n, n_questions)) < profiles[z]).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    weights = rng.lognormal(0.0, 0.6, n)
    return X, weights / weights.mean(), z


def fitted(X, sample_weight=None, likelihood="categorical", **params):
    params = {"n_iter": 60, "random_state": 0, **params}
    return DPCategoricalMixture(likelihood=likelihood, **params).fit(X, sample_weight=sample_weight)


def assert_same_draws(a, b):
    for name in a.samples_:
        np.testing.assert_array_equal(a.samples_[name], b.samples_[name])


@pytest.mark.parametrize("likelihood", ["categorical", "bernoulli"])
@pytest.mark.parametrize("kind", ["replication", "survey"])
def test_survey_weights_find_the_segments(likelihood, kind):
    X, weights, z = survey()
    shares = np.sort(np.bincount(z, weights) / weights.sum())[::-1]
    n_large = []
    for seed in range(3):
        model = fitted(X, weights, likelihood, weights=kind, n_iter=200, random_state=seed)
        found = np.sort(model.weights_)[::-1]
        n_large.append(int((found > 0.03).sum()))
        assert model.n_clusters_ <= 6 and model.samples_["n_clusters"].mean() < 15
        np.testing.assert_allclose(found[:4], shares, atol=0.05)
        assert np.all(np.bincount(model.labels_, minlength=model.n_clusters_) > 0)
    # A heavy row counts as several people who agree, so that now and then a few of them make a segment.
    assert np.median(n_large) == 4


def test_rows_with_weights_cost_what_whole_rows_do():
    _, weights, _ = survey(5000)
    copies, each = split_weights(weights)
    assert copies.sum() < 1.25 * 5000 and copies.min() == 1
    np.testing.assert_allclose(copies * each, weights, rtol=0, atol=1e-5)
    light, each = split_weights([0.0, 1e-9, 0.3, 1.0, 2.0, 2.4, 7.0])
    np.testing.assert_array_equal(light, [0, 1, 1, 1, 2, 2, 7])
    np.testing.assert_array_equal(each[[3, 4, 6]], 1.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("of", ["none", "whole", "fractional"])
def test_every_cluster_has_rows(of, seed):
    # After four passes there are dozens of clusters that no row is most probably in.
    X, weights, _ = survey(seed=seed)
    weights = {"none": None, "whole": np.full(len(X), 2.0), "fractional": weights}[of]
    model = fitted(X, weights, n_iter=4, random_state=seed)
    assert np.all(np.bincount(model.labels_, minlength=model.n_clusters_) > 0)
    assert model.labels_.max() + 1 == model.n_clusters_ == len(model.weights_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.predict_proba(X).shape == (len(X), model.n_clusters_)
    assert np.unique(model.top_categories(1)["cluster"]).size == model.n_clusters_
    occupied = (model.samples_["weights"] > 0).sum(axis=-1)
    np.testing.assert_array_equal(model.samples_["n_clusters"], occupied)


def test_equal_survey_weights_are_no_weights():
    X, _, _ = survey(100)
    plain = fitted(X)
    for weights in (None, np.ones(100), np.full(100, 0.3), np.full(100, 1e6), np.full(100, 1e-200)):
        assert_same_draws(fitted(X, weights, weights="survey"), plain)


def test_survey_weights_sum_to_their_effective_sample_size_whatever_their_scale():
    X, weights, _ = survey(200)
    effective = weights.sum() ** 2 / (weights**2).sum()
    models = [fitted(X, scale * weights, weights="survey") for scale in (1.0, 2.0**-20, 2.0**30)]
    assert models[0]._chains[0].sizes.sum() == pytest.approx(effective, abs=1e-3)
    for model in models[1:]:
        assert_same_draws(model, models[0])
    plain = fitted(X, weights)
    assert plain._chains[0].sizes.sum() == pytest.approx(200, abs=1e-3)


@pytest.mark.parametrize("kind", ["replication", "survey"])
def test_a_row_of_weight_0_is_left_out(kind):
    X, weights, _ = survey(100)
    zero = np.append(weights, np.zeros(20))
    with_zeros = fitted(np.vstack([X, 1.0 - X[:20]]), zero, weights=kind)
    assert_same_draws(with_zeros, fitted(X, weights, weights=kind))
    assert with_zeros.labels_.shape == (120,)


def test_the_order_of_equal_rows_with_different_weights_changes_no_draw():
    X, weights, _ = survey(60, n_questions=3)
    assert_same_draws(fitted(X, weights), fitted(X[::-1], weights[::-1]))


@pytest.mark.parametrize(
    "weights",
    [np.full(200, 0.3), np.full(200, 1e-6), np.full(200, 1e-30), np.eye(200)[7], 300 * np.eye(200)[7] + 0.3],
    ids=["0.3", "1e-6", "1e-30", "one row", "one heavy row"],
)
@pytest.mark.parametrize("likelihood", ["multinomial", "bernoulli", "categorical"])
def test_unusual_weights_are_fitted(weights, likelihood):
    X, _, _ = survey(200)
    X = np.nan_to_num(X) if likelihood == "multinomial" else X
    model = fitted(X, weights, likelihood)
    assert np.all(np.isfinite(model.score_samples(X))) and model.samples_["n_clusters"].max() < 60
    assert np.all(np.bincount(model.labels_, minlength=model.n_clusters_) > 0)


@pytest.mark.parametrize(
    "params",
    [{"sampler": "slice-gibbs"}, {"sampler": SCIR(0.5)}, {"sampler": SGRLD(0.1)}, {"assignments": "fresh"}],
    ids=["slice-gibbs", "scir", "sgrld", "fresh"],
)
@pytest.mark.parametrize("likelihood", ["multinomial", "bernoulli", "categorical"])
def test_every_sampler_gives_clusters_shares_by_weight(params, likelihood):
    # Two groups that no row can mistake; the smaller one in rows is the larger in weight.
    X = np.repeat([[1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 1]], [60, 30], axis=0) * 1.0
    weights = np.repeat([0.4, 1.6], [60, 30])
    model = fitted(X, weights, likelihood, n_iter=400, **params)
    top = model.labels_[[0, -1]]
    assert top[0] != top[1]
    assert model.weights_[top[1]] / model.weights_[top].sum() == pytest.approx(2 / 3, abs=0.07)


@pytest.mark.parametrize("kind", ["replication", "survey"])
def test_a_fit_with_weights_is_resumed_with_the_same_weights(kind):
    X, weights, _ = survey(100)
    whole = fitted(X, weights, weights=kind)
    part = fitted(X, weights, weights=kind, callbacks=StopAt(20))
    saved = pickle.dumps(part)
    for other in (None, weights[::-1], np.ones(100)):
        with pytest.raises(ValueError, match=r"X \(or sample_weight\) differs from them; pass the same again"):
            pickle.loads(saved).resume(X, sample_weight=other)
    again = pickle.loads(saved).resume(X, sample_weight=weights)
    assert again.n_iter_ == 60
    assert_same_draws(again, whole)


def test_weights_count_on_a_stream():
    X, weights, _ = survey(200)
    model = DPCategoricalMixture(likelihood="categorical", keep_rows=False, n_iter=60, random_state=0)
    model.partial_fit(X[:120], sample_weight=weights[:120]).partial_fit(X[120:], sample_weight=weights[120:])
    assert model._chains[0].sizes.sum() == pytest.approx(weights.sum(), abs=1e-3)
    assert np.all(np.bincount(model.labels_, minlength=model.n_clusters_) > 0)


def test_score_is_the_weighted_mean_of_scored_rows():
    X, weights, _ = survey(100)
    model = fitted(X)
    scores = model.score_samples(X)
    assert model.score(X, sample_weight=1e6 * weights) == pytest.approx(np.average(scores, weights=weights))
    assert model.score(X, sample_weight=np.ones(100)) == pytest.approx(model.score(X))
    with pytest.raises(ValueError, match="non-zero"):
        model.score(X, sample_weight=np.zeros(100))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.score(X, sample_weight=-weights)


def test_a_trace_of_the_held_out_score_weighs_the_held_out_rows():
    X = np.random.default_rng(0).integers(3, size=(40, 2))
    first = np.arange(40) < 20
    traces = []
    for held_out in (HeldOutScore(X, every=2, sample_weight=first.astype(float)), HeldOutScore(X[first], every=2)):
        traces.append(DPCategoricalMixture(n_iter=6, random_state=0, callbacks=held_out).fit(X).trace_["score"])
    np.testing.assert_allclose(*traces, rtol=1e-12)


def test_weights_that_repeat_few_rows_for_hours_are_refused():
    X = np.zeros((14, 6), dtype=int)
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=r'sums to 1.4e\+07 for only 14 rows.*weights="survey".*sample_weight / 7'):
            getattr(DPCategoricalMixture(), method)(X, sample_weight=np.full(14, 1e6))
