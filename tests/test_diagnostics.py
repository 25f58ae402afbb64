"""The table of diagnostics that every fit keeps, and the warnings that it leads to."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import (
    BayesianGaussian,
    BayesianLDA,
    BayesianLogisticRegression,
    DMRTopicModel,
    DPCategoricalMixture,
    GammaProcessTopicModel,
    SphericalAdmixtureModel,
    VonMisesFisherMixture,
    sample,
)
from sk_sgmcmc.chains import convergence
from sk_sgmcmc.chains.checks import unsettled_meaning
from sk_sgmcmc.chains.convergence import Diagnosis, r_hat_limit, rounded_up
from sk_sgmcmc.datasets import load_sotu, make_dmr, make_lda
from sk_sgmcmc.metrics import effective_sample_size, mcse, split_r_hat
from sk_sgmcmc.samplers import GMC, SCIR, SGHMC, SGLD, SGNHT, SGRLD, GMCBGibbs
from sk_sgmcmc.targets import DirichletCategorical, GaussianMean
from sk_sgmcmc.topic._draws import TopicDraws
from sk_sgmcmc.topic._estimator.checks import check_duplicate_topics, check_variances
from sk_sgmcmc.topic._estimator.predictive import PredictiveProbe
from tests.common.compare import StopAt, assert_same_draws
from tests.common.instances import DEFAULTS, ESTIMATORS, classes
from tests.corpora import shard_of

COLUMNS = ["quantity", "mean", "r_hat", "ess", "mcse"]
each = pytest.mark.parametrize("case", ESTIMATORS, ids=lambda case: case.id)
each_class = pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: case.id)
pytestmark = pytest.mark.filterwarnings("ignore:No metadata were given")


def same(a, b):
    """Two tables hold the same."""
    return all(np.array_equal(a[name], b[name], equal_nan=name != "quantity") for name in COLUMNS)


def alarms(fit):
    """What it returns, and the messages about convergence."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit()
    return result, [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]


def waves(n_effective, n_kept, shape=(), n_chains=1, seed=0):
    """Chains of a stationary process of first order with about so many effective draws in all."""
    rng, n = np.random.default_rng(seed), n_chains * n_kept
    rho = (n - n_effective) / (n + n_effective)
    out = np.empty((n_chains, n_kept, *shape))
    out[:, 0] = rng.standard_normal((n_chains, *shape))
    for t in range(1, n_kept):
        out[:, t] = rho * out[:, t - 1] + np.sqrt(1 - rho**2) * rng.standard_normal((n_chains, *shape))
    return out


# ------------------------------------------------------------------------------------------------------- estimators


@each
def test_every_fit_has_the_table_and_it_is_right_about_finite_numbers(case):
    model = case.fitted(n_iter=60, n_chains=2)
    table = model.diagnostics_
    assert [name for name in table if name != "bias"] == COLUMNS
    assert len(table["quantity"]) and len(set(table["quantity"])) == len(table["quantity"])
    assert np.all(np.isfinite(table["mean"]))
    known = np.isfinite(table["r_hat"])
    assert known.any() == case.keeps_draws
    assert np.all(table["r_hat"][known] > 0.9) and np.all(table["ess"][known] > 0)
    assert set(model.checks_["check"]) <= {check.name for check in model._check_definitions}


@each_class
def test_a_model_that_is_not_fitted_has_no_table(case):
    model = case.new()
    assert not hasattr(model, "diagnostics_")
    with pytest.raises(AttributeError, match="'diagnostics_' before it is fitted"):
        model.diagnostics_
    with pytest.raises(AttributeError, match="'checks_' before it is fitted"):
        model.checks_


@each_class
def test_the_table_survives_a_pickle_and_a_resumed_fit_has_that_of_a_whole_one(case):
    whole = case.fitted(n_iter=60)
    assert same(pickle.loads(pickle.dumps(whole)).diagnostics_, whole.diagnostics_)
    part = case.fitted(n_iter=60, callbacks=[StopAt(30)])
    part = pickle.loads(pickle.dumps(part)).resume(*case.data_of())
    assert_same_draws(part, whole)
    assert same(part.diagnostics_, whole.diagnostics_)


@each_class
def test_draws_are_the_same_whether_anybody_looks(case, monkeypatch):
    looked = case.fitted(n_iter=60)
    monkeypatch.setattr("sk_sgmcmc.base.Diagnosis", lambda *args, **named: Diagnosis({}))
    assert_same_draws(looked, case.fitted(n_iter=60))


@pytest.mark.parametrize("case", [case for case in DEFAULTS if case.streams], ids=lambda case: case.id)
def test_a_stream_renews_the_table_and_does_not_warn_of_draws_that_should_move(case):
    X, *y = case.data_of()
    model = case.new()
    model.partial_fit(X[:45], *(part[:45] for part in y))
    before = model.diagnostics_
    fitted, messages = alarms(lambda: model.partial_fit(X[45:], *(part[45:] for part in y)))
    fitted, more = alarms(lambda: fitted.n_iter_ and fitted)  # chains of regressions run when an attribute is read
    assert not same(fitted.diagnostics_, before)
    if case.id not in ("logistic", "gaussian"):  # each of their calls runs whole chains
        assert not messages + more
    # Made when first read, and in a pickle, which lacks the data.
    assert same(pickle.loads(pickle.dumps(model)).diagnostics_, fitted.diagnostics_)


def test_numbering_clusters_or_topics_otherwise_changes_nothing():
    X = make_lda(100, 30, 3, random_state=0).counts
    model = BayesianLDA(3, n_iter=60, random_state=0).fit(X)
    before, order = model.diagnostics_, np.array([2, 0, 1])
    model.samples_.topic_draws.reorder(0, order)
    model.samples_["doc_topic_prior"] = model.samples_["doc_topic_prior"][:, :, order]
    model._diagnostics = None
    after = model.diagnostics_
    for name in ("mean", "r_hat", "ess"):
        np.testing.assert_allclose(after[name], before[name], rtol=1e-3)


# --------------------------------------------------------------------------------------------------------- warnings


@pytest.mark.parametrize(
    "model",
    [
        BayesianLogisticRegression(random_state=0),
        BayesianLogisticRegression(random_state=0, n_chains=3),
        BayesianGaussian(random_state=0),
        DPCategoricalMixture(likelihood="bernoulli", random_state=0),
        VonMisesFisherMixture(2, sampler="gibbs", random_state=0),
        BayesianLDA(4, random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.n_chains}",
)
def test_a_default_fit_of_planted_data_does_not_warn(model):
    rng, y = np.random.default_rng(3), None
    if isinstance(model, BayesianLogisticRegression):
        X, y = classes(2)
    elif isinstance(model, BayesianLDA):
        X = make_lda(200, 100, 4, random_state=1).counts
    elif isinstance(model, DPCategoricalMixture):
        X = (rng.random((120, 15)) < np.where(np.arange(120) < 70, 0.9, 0.1)[:, None]).astype(float)
    else:
        X = rng.normal(size=(200, 4)) + np.where(np.arange(200) < 120, 3.0, -3.0)[:, None]
    assert alarms(lambda: model.fit(X, y))[1] == []


def test_a_chain_of_coefficients_that_is_too_short_warns_with_the_number_and_what_to_type():
    X, y = classes(2)
    short = BayesianLogisticRegression(sampler=SGHMC(1e-3), n_iter=200, random_state=0)
    model, messages = alarms(lambda: short.fit(X, y))
    assert "split R-hat of " in messages[0] and "effective sample size" in messages[0] and "n_iter=2000" in messages[0]
    assert np.nanmax(model.diagnostics_["r_hat"]) > 1.5


def test_topics_that_still_improve_warn_with_the_change_and_a_number_of_steps():
    X = make_lda(400, 300, 10, random_state=0).counts
    fit = BayesianLDA(
        10, sampler="sgrld", assignments="fresh", init="random", batch_size=100, n_iter=60, burn_in=0, random_state=0
    ).fit
    model, messages = alarms(lambda: fit(X))
    assert "The topics still change" in messages[0] and "in perplexity (1% at most)" in messages[0]
    wanted = int(messages[0].split("set n_iter=")[1].split(",")[0])
    assert 120 <= wanted <= 1200
    assert model.diagnostics_["quantity"][0] == "log_predictive"


def test_the_recommended_length_is_enough():
    X = make_lda(400, 300, 10, random_state=0).counts
    params = {"sampler": "sgrld", "assignments": "fresh", "init": "random", "batch_size": 100, "random_state": 0}
    n_iter = 60
    for _ in range(4):
        model, messages = alarms(lambda n=n_iter: BayesianLDA(10, n_iter=n, **params).fit(X))
        if not messages:
            break
        n_iter = int(messages[0].split("set n_iter=")[1].split(",")[0])
    assert not messages
    assert model.diagnostics_["mean"][0] > BayesianLDA(10, n_iter=60, **params).fit(X).diagnostics_["mean"][0] - 0.01


@pytest.mark.parametrize(("stride", "n_tokens"), [(1, 20_000), (25, 10_000)])
def test_enough_tokens_are_predicted_that_chance_seldom_looks_like_a_change(stride, n_tokens):
    # With 4,000 tokens, correct draws of 20 topics changed by 1% and more in 2 of 24 default fits.
    counts = load_sotu().counts[::stride]
    probe = PredictiveProbe(shard_of(counts))
    held = sum(part[2].sum() for part in (probe._observed, probe._hidden))
    assert held >= min(n_tokens, counts.sum()) * 0.95
    assert probe.docs.size <= max(2 * n_tokens / counts.sum(), 1) * counts.shape[0]


def test_topics_that_share_what_should_be_two_warn_of_each_other():
    # From a random start, two topics of this set are alike for hundreds of steps, and nothing moves.
    data = make_dmr(300, 200, 4, random_state=8)

    def fit(**params):
        return alarms(lambda: DMRTopicModel(4, random_state=0, **params).fit(data.counts, metadata=data.metadata))

    best, messages = fit()
    assert messages == []
    stuck, messages = fit(init="random", n_iter=40)
    assert stuck.diagnostics_["mean"][0] < best.diagnostics_["mean"][0] - 0.02
    assert [message[:38] for message in messages] == ["Some topics have nearly the same words"]
    assert 'init="soft"' in messages[0]


def test_duplicates_are_topics_in_use_with_nearly_the_same_words():
    def message(topics, in_use=None):
        found = check_duplicate_topics(topics, np.ones(len(topics), dtype=bool) if in_use is None else in_use)
        return "".join(check.message for check in found)

    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(50, 0.2), 5)
    assert message(topics) == ""
    topics[3] = 0.9 * topics[1] + 0.1 * topics[3]
    distance = np.sqrt(1 - np.sqrt(topics[1] * topics[3]).sum())
    assert f"1 and 3 ({distance:.2f})." in message(topics)
    assert message(topics, np.arange(5) != 3) == message(topics[:1]) == ""


@pytest.mark.parametrize("sampler", [SGHMC(step_size=3.0), SGNHT(step_size=3.0)], ids=["sghmc", "sgnht"])
def test_topics_worse_than_the_unigram_model_warn(sampler):
    X = make_lda(150, 40, 3, random_state=0).counts
    model, messages = alarms(lambda: BayesianLDA(3, sampler=sampler, n_iter=300, random_state=0).fit(X))
    shares = np.asarray(X.sum(axis=0)).ravel() / X.sum()
    assert model.perplexity(X) > np.exp(-xlogy(shares, shares).sum())
    assert any("worse than the unigram model" in message for message in messages)


@pytest.mark.parametrize(
    ("sampler", "what"),
    [(SCIR(step_size=1e-5), "hardly move"), (SGLD(step_size=1e-4), "hardly move"), (SGRLD(step_size=1.0), "too wide")],
    ids=["scir short", "sgld short", "sgrld long"],
)  # fmt: skip
def test_topics_that_hardly_move_or_that_the_step_spreads_warn(sampler, what):
    # They drift no more than others do, and predict nearly as well.
    X = make_lda(200, 100, 4, random_state=0).counts
    messages = alarms(lambda: BayesianLDA(4, sampler=sampler, n_iter=400, random_state=0).fit(X))[1]
    assert len(messages) == 1, messages
    assert what in messages[0]
    assert "step_size" in messages[0]
    chains = BayesianLDA(4, sampler=type(sampler)(), n_chains=2, n_iter=400, random_state=0)
    assert alarms(lambda: chains.fit(X))[1] == []


def test_the_spread_of_topics_of_a_single_word_is_not_checked():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianLDA(3, sampler="scir", n_iter=60, random_state=0).fit(np.arange(1, 31)[:, None])


@pytest.mark.parametrize(
    ("coef_sampler", "what"),
    [(SGHMC(step_size=1e-3), "hardly move"), (SGLD(step_size=4.0), "too wide"), (SGHMC(step_size=3.0), "too wide")],
    ids=["sghmc short", "sgld long", "sghmc long"],
)  # fmt: skip
def test_coefficients_that_hardly_move_or_that_the_step_spreads_warn(coef_sampler, what):
    data = make_dmr(300, 100, 4, random_state=0)

    def fit(**params):
        model = DMRTopicModel(4, n_iter=200, random_state=0, **params)
        return alarms(lambda: model.fit(data.counts, metadata=data.metadata))[1]

    messages = fit(coef_sampler=coef_sampler)
    assert len(messages) == 1 and what in messages[0] and "Use a coef_sampler with a" in messages[0], messages
    assert fit(coef_sampler=type(coef_sampler)(), n_chains=2, n_jobs=2) == fit(sampler="scir") == []


def test_the_spread_of_topics_is_compared_with_their_tokens_and_prior():
    rng = np.random.default_rng(0)
    shares, n_tokens = np.array([0.6, 0.3999, 0.0001]), 20_000.0  # the last topic's draws are from the prior
    prior = np.full((50, 3), 0.5)
    centers = rng.dirichlet(np.full(50, 0.5), 3)
    shapes = centers * (shares[:, None] * n_tokens + 25.0)

    def message(width, temperature=1.0):
        draws = np.stack([[rng.dirichlet(shape / width**2) for shape in shapes] for _ in range(40)])[None]
        found = check_variances(
            TopicDraws(draws), lambda c: shares, np.full(50, n_tokens / 50), [prior], None, temperature
        )
        return "".join(check.message for check in found)

    assert message(1.0) == message(0.7) == message(2.0) == ""
    assert "hardly move: the standard deviations of their kept draws are 0.3" in message(0.3)
    assert "too wide: the standard deviations of their changes are 3" in message(3.2)
    assert "hardly move" in message(1.0, temperature=25.0)
    assert message(5.0, temperature=25.0) == ""


def test_directions_that_never_moved_warn():
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(3), 40, axis=0) + 0.2 * rng.standard_normal((120, 3))
    models = [
        VonMisesFisherMixture(3, sampler=GMC(step_size=10.0), random_state=0),
        SphericalAdmixtureModel(3, sampler=GMCBGibbs(step_size=50.0), n_iter=60, random_state=0),
    ]
    for model in models:
        messages = alarms(lambda model=model: model.fit(X))[1]
        assert any("The directions never moved" in message and "step_size" in message for message in messages), model


def test_a_bound_on_clusters_or_topics_that_binds_warns():
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(6), 30, axis=0) + 0.1 * rng.standard_normal((180, 6))
    model = VonMisesFisherMixture(4, weight_concentration_prior_type="dirichlet_process", random_state=0)
    assert any("n_components=4 limits the number of clusters" in message for message in alarms(lambda: model.fit(X))[1])
    topics = GammaProcessTopicModel(3, n_iter=60, random_state=0).fit(make_lda(200, 60, 6, random_state=0).counts)
    with pytest.warns(UserWarning, match="n_components=3 limits their number"):
        topics.n_topics_posterior()


@pytest.mark.parametrize(
    "model", [BayesianLDA(3, n_iter=20), VonMisesFisherMixture(2, n_iter=20), SphericalAdmixtureModel(2, n_iter=20)],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_data_without_content_warn(model):
    with pytest.warns(UserWarning, match="all draws are from the prior"):
        model.fit(np.zeros((30, 8)))


def test_intervals_of_fewer_draws_than_they_need_warn():
    X = make_lda(100, 40, 3, random_state=0).counts
    model = BayesianLDA(3, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.top_words(3)
    stream = BayesianLDA(3, sampler="scir", random_state=0).partial_fit(X)
    with pytest.warns(UserWarning, match=r"interval of 0\.9 needs at least 19 draws, but there is 1, .* no width"):
        stream.top_words(3)


def test_short_chains_are_not_checked():
    X, y = classes(2)
    model, messages = alarms(
        lambda: BayesianLogisticRegression(sampler=SGLD(1e-5), n_iter=38, random_state=0).fit(X, y)
    )
    assert not messages and np.all(np.isnan(model.diagnostics_["r_hat"]))


# --------------------------------------------------------------------------------------------------------- `sample`


def test_sample_returns_the_table_of_its_coordinates_and_its_log_density():
    result = sample(GaussianMean(np.random.default_rng(0).normal(size=(50, 2))), "hmc", n_iter=400, random_state=0)
    table = result.diagnostics_
    assert table["quantity"].tolist() == ["theta[0]", "theta[1]", "log_density"]
    draws = result.samples_["theta"]
    np.testing.assert_allclose(table["mean"][:2], draws.mean(axis=(0, 1)))
    for name, statistic in (("r_hat", split_r_hat), ("ess", effective_sample_size), ("mcse", mcse)):
        np.testing.assert_allclose(table[name][:2], statistic(draws))


def test_exact_draws_have_an_r_hat_of_1():
    target = DirichletCategorical(np.repeat([0, 1, 2], [80, 15, 5]), n_categories=3)
    result, messages = alarms(lambda: sample(target, "scir", n_iter=4000, n_chains=4, random_state=0))
    assert not messages and np.all(np.abs(result.diagnostics_["r_hat"] - 1.0) < 0.01)


def test_particles_have_no_r_hat():
    table = sample(GaussianMean(np.ones((5, 2))), "blob", n_iter=50, random_state=0).diagnostics_
    assert np.all(np.isnan(table["r_hat"])) and np.all(np.isfinite(table["mean"]))


# -------------------------------------------------------------------------------------------------- the statistics


@pytest.mark.parametrize("shape", [(1, 20, 1), (1, 20, 50), (1, 100, 5), (4, 50, 50), (1, 1000, 400)])
def test_independent_draws_hardly_ever_alarm(shape):
    n_tries = 200 if shape[2] < 100 else 40
    rng = np.random.default_rng(0)
    found = [Diagnosis({"x": rng.standard_normal(shape)}).unsettled() for _ in range(n_tries)]
    assert sum(each is not None for each in found) <= 0.02 * n_tries + 1


def test_an_alarm_names_the_quantity_with_the_fewest_effective_draws():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((1, 400, 3))
    for t in range(1, 400):
        draws[0, t, 1] += draws[0, t - 1, 1]
    alarm = Diagnosis({"x": draws}).unsettled()
    assert alarm.slowest == "x[1]" and alarm.ess < 20


def test_an_alarm_begins_with_what_exceeds_its_limit():
    drifting = np.linspace(0.0, 9.0, 100)[None] + np.random.default_rng(0).standard_normal((1, 100))
    message = unsettled_meaning(Diagnosis({"x": drifting}).unsettled())
    assert message.startswith("split R-hat of x is") and message.endswith(" (8.33 at least).")
    slow = (Diagnosis({"x": waves(8, 100, seed=seed)}).unsettled() for seed in range(100))
    alarm = next(each for each in slow if each is not None and each.r_hat < each.limit)
    message = unsettled_meaning(alarm)
    assert message.startswith(f"the effective sample size of x over all chains is {alarm.ess:.3g} (8.33 at least)")
    assert f"though split R-hat of x is {alarm.r_hat:.4g} (1.11 at most)." in message


def test_an_alarm_of_few_draws_names_a_quantity_that_has_too_few():
    found = Diagnosis({"x": waves(50, 1000), "y": waves(50, 100)})
    found.columns["r_hat"][:], found.columns["ess"][:] = 1.0, [9.5, 9.0]  # of 1000 draws ten are enough, of 100 8.3
    assert found.unsettled().slowest == "x" and found.unsettled().least == 10.0


@pytest.mark.parametrize(("n_chains", "n_kept", "n_entries"), [(1, 100, 5), (1, 1000, 5), (4, 250, 3)])
def test_slow_chains_alarm(n_chains, n_kept, n_entries):
    found = [
        Diagnosis({"x": waves(4 * n_chains, n_kept, (n_entries,), n_chains, seed)}).unsettled() for seed in range(50)
    ]
    assert sum(each is None for each in found) <= 3


def test_the_worst_of_many_entries_are_shown():
    draws = np.random.default_rng(0).standard_normal((2, 100, 30, 40))
    draws[..., 7, 3] += np.linspace(0, 3, 100)
    draws[1, :, 9, 9] += 2.0
    table = Diagnosis({"coef": draws, "log_likelihood": draws[..., 0, 0]}).columns
    assert len(table["quantity"]) == convergence.MOST_ENTRIES + 1
    assert {"coef[7, 3]", "coef[9, 9]", "log_likelihood"} <= set(table["quantity"])


def test_a_drift_is_found_in_its_unit_and_noise_is_none():
    rng = np.random.default_rng(0)
    noise = 0.005 * rng.standard_normal((1, 45))
    trend = np.linspace(-0.05, 0.0, 45)[None]

    def drift(draws, unit=1.0):
        return Diagnosis({"x": draws}).drift("x", unit)

    assert not drift(-7.0 + noise).is_large
    found = drift(-7.0 + noise + trend)
    assert found.change == pytest.approx(0.033, abs=0.006) and found.factor == 10 and found.is_large
    assert not drift(-7.0 + noise + trend, None).is_large  # 0.5% of 7
    assert drift((-7.0 + noise + trend)[:, :9]) is None  # too few to check
    loud = 0.1 * rng.standard_normal((20, 1, 45))
    assert sum(drift(-7.0 + each + 0.3 * trend).is_large for each in loud) <= 2
    assert not drift(-7.0 + 0.02 * waves(6, 45, seed=1)).is_large
    assert drift(np.zeros((1, 90)), None) is None  # zero has no size to move in


def test_limits_grow_as_draws_get_fewer_and_quantities_more():
    assert r_hat_limit(4, 1000, 100) == convergence.R_HAT
    assert r_hat_limit(1, 20, 50) > r_hat_limit(1, 20, 1) > r_hat_limit(1, 50, 1) > 1.2


@pytest.mark.parametrize(("n", "up"), [(9, 9), (99.2, 100), (101, 110), (1234.5, 1300), (20_000, 20_000)])
def test_recommended_lengths_have_two_digits(n, up):
    assert rounded_up(n) == up
