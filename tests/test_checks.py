"""Checks of finished runs: each is run by some model, listed in the user guide, and able to fire."""

import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import sk_sgmcmc
from sk_sgmcmc import BayesianGaussian, BayesianLDA, LatentClassModel, TopicRegressor, VonMisesFisherMixture
from sk_sgmcmc.chains.checks import CHECKS, SEE_GUIDE, convergence_checks, warn_if_fired
from sk_sgmcmc.chains.convergence import Diagnosis
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.dense.tuning import check_gradient_at
from sk_sgmcmc.directions import check_movement
from sk_sgmcmc.linear_model._design import check_distance_from_mode
from sk_sgmcmc.linear_model._stream import Stream, Summary
from sk_sgmcmc.mixture._latent_class.checks import check_modes
from sk_sgmcmc.samplers import SGHMC
from sk_sgmcmc.targets import _checks as of_sample
from sk_sgmcmc.topic._agreement import agreement_checks, agreement_of
from sk_sgmcmc.topic._counts.word_prior import SeedWords
from sk_sgmcmc.topic._dmr.intercepts import check_intercepts
from sk_sgmcmc.topic._dmr.prevalence import check_clipped
from sk_sgmcmc.topic._estimator.checks import check_duplicate_topics, check_moves, check_shares
from sk_sgmcmc.topic._minibatch.particles import ParticleTopicChain
from sk_sgmcmc.topic._structural.keywords import KeywordPlaces, check_company, check_rates

ESTIMATORS = [
    value for name, value in vars(sk_sgmcmc).items() if isinstance(value, type) and hasattr(value, "_check_definitions")
]
GUIDE = Path(__file__).parents[1] / "doc" / "user_guide" / "diagnostics.rst"


def results(checks):
    """By name: whether it fired, and the message."""
    return {check.name: (check.fired, check.message) for check in checks}


# ------------------------------------------------------------------------------------------------------ each can fire

RISING = np.linspace(0.0, 9.0, 100)[None] + np.random.default_rng(0).standard_normal((1, 100))
CHANGING = np.linspace([10.0, 90.0], [50.0, 50.0], 60)  # tokens of two topics in each draw
TOPICS = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])


def corpus(n_topics=3):
    return make_lda(150, 40, n_topics, random_state=0).counts


def fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.set_params(random_state=0).fit(X)._check_results


def of_normal_rows(**params):
    return fit(BayesianGaussian(**params), np.random.default_rng(0).normal(size=(100, 2)))


def of_directions(**params):
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(6), 30, axis=0) + 0.01 * rng.standard_normal((180, 6))
    return fit(VonMisesFisherMixture().set_params(**params), X)


def of_few_outcomes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TopicRegressor(8, n_iter=200, random_state=0).fit(corpus()[:8], np.arange(8.0))._check_results


def of_shared_dispersion():
    """Short documents, in which one topic varies much more than the other two."""
    rng = np.random.default_rng(0)
    activity = rng.gamma([3.0, 3.0, 0.1], [0.1, 0.1, 3.0], size=(1500, 3)) + 1e-9
    theta = activity / activity.sum(axis=1, keepdims=True)
    topics = rng.dirichlet(np.full(40, 0.2), 3)
    X = np.stack([rng.multinomial(8, p / p.sum()) for p in theta @ topics])
    y = theta @ [0.0, 2.0, 1.0] + 0.1 * rng.standard_normal(1500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TopicRegressor(3, dispersion="shared", n_iter=400, random_state=0).fit(X, y)._check_results


def of_changing_topics():
    params = {"sampler": "sgrld", "assignments": "fresh", "init": "random", "batch_size": 100, "n_iter": 60}
    return fit(BayesianLDA(10, burn_in=0, **params), make_lda(400, 300, 10, random_state=0).counts)


def of_chains_apart():
    agreement = agreement_of(0, np.array([[0.0, 0.0], [0.9, 0.1]]))
    return agreement_checks(agreement, TOPICS, np.ones(2, dtype=bool), "hellinger", None, "")


def of_answers(n_classes, n_items):
    """Items that all respondents of two classes answer alike."""
    X = np.repeat([[0] * n_items, [1] * n_items], 40, axis=0)
    return fit(LatentClassModel(n_classes, weight_concentration_prior=0.1, n_iter=400), X)


def of_wrong_gradient():
    def gradient(x):
        return -0.5 * (x**2).sum(), x  # of the other sign

    gradient.dense = SimpleNamespace(n_rows=1)
    return [check_gradient_at(gradient, np.random.default_rng(0).standard_normal((30, 2)))]


def of_trajectories(bounded):
    nuts = SimpleNamespace(_n_diverged=3, _fewer_divergences=lambda: "Try a larger target_accept.")
    return of_sample._divergence_checks(nuts, bounded, "theta")


FIRES = {
    "not_converged": lambda: convergence_checks(Diagnosis({"x": RISING}), lambda _: "Use a larger n_iter."),
    "topics_still_change": of_changing_topics,
    "shares_still_change": lambda: check_shares(SimpleNamespace(shape=(1,), n_tokens=lambda c: CHANGING)),
    "chains_disagree": of_chains_apart,
    "no_draws_kept": lambda: fit(BayesianLDA(3, n_iter=20, callbacks=lambda _, step: step >= 5), corpus()),
    "too_few_draws": lambda: fit(BayesianLDA(3, n_iter=20, random_state=0), corpus()),
    "coefficient_not_identified": of_few_outcomes,
    "dispersion_matters": of_shared_dispersion,
    "spread_too_narrow": lambda: check_moves("topics", "the assignments", 0.1, 1.0, 6.0),
    "spread_too_wide": lambda: check_moves("topics", "the assignments", 1.0, 7.0, 6.0),
    "spread_collapsed": lambda: of_normal_rows(sampler=SGHMC(step_size=1e-4), n_iter=200),
    "far_from_mode": lambda: check_distance_from_mode(np.full((1, 20, 2), 9.0), 1.0),
    "velocities_too_fast": lambda: of_directions(n_components=3, n_iter=30, sampler="sggmc", sampler__step_size=1e9),
    "directions_never_moved": lambda: check_movement(np.ones((2, 5, 3))),
    "duplicate_topics": lambda: check_duplicate_topics(TOPICS[[0, 0, 1]], np.ones(3, dtype=bool)),
    "worse_than_unigram": lambda: fit(BayesianLDA(3, sampler=SGHMC(step_size=3.0), n_iter=300), corpus()),
    "seeds_lost": lambda: [SeedWords({"b": 0}).check(TOPICS, np.array(["a", "b", "c"]), ["first", "second"])],
    "keywords_apart": lambda: [
        check_company(np.array([2.0, 0.4]), KeywordPlaces(np.array([0, 1]), np.array([0, 2])), list("abc"), ["A", "B"])
    ],
    "keywords_abandoned": lambda: [check_rates(np.array([0.2, 0.003]), ["first", "second"])],
    "clipped_predictor": lambda: [check_clipped(np.array([0.0, 0.3]))],
    "intercepts_not_converged": lambda: check_intercepts(RISING, 1000),
    "particles_too_close": lambda: ParticleTopicChain.checks(SimpleNamespace(spread=lambda: 0.5)),
    "flow_too_short": lambda: of_normal_rows(sampler="svgd", n_iter=1),
    "too_few_components": lambda: of_directions(n_components=3, n_iter=40,
                                                weight_concentration_prior_type="dirichlet_process"),
    "too_few_items": lambda: of_answers(3, 2),
    "empty_classes": lambda: of_answers(6, 8),
    "several_modes": lambda: check_modes(np.array([True, False]), np.array([[0.0, 0.0], [0.1, 0.9]])),
    "sorted_stream": lambda: [Stream((), Summary(None, None, None, 9.0, is_misled=True), 2).check(None)],
    "diverging_trajectories": lambda: of_trajectories(()),
    "trajectories_lost_at_bound": lambda: of_trajectories((1,)),
    "gradient_does_not_fit": of_wrong_gradient,
    "exceptions_in_density": lambda: of_sample.exception_checks(9, 10, "RuntimeError: no more"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_can_fire_and_says_what_to_do(name):
    assert name in FIRES, "add a case in which the check fires"
    checks = FIRES[name]()
    fired, message = results(checks)[name]
    assert fired
    check = next(each for each in checks if each.name == name)
    assert check.meaning.endswith(".") and check.remedy.endswith(".") and message == f"{check.meaning} {check.remedy}"
    if CHECKS[name].at_least:
        assert check.value < check.limit
    elif name != "not_converged":  # whose effective sample size may be too small
        assert check.value > check.limit


# ------------------------------------------------------------------------------------------------ each is documented


def test_each_check_is_run_by_some_model_and_each_estimator_names_its_checks():
    listed = [set(model._check_definitions) for model in ESTIMATORS]
    assert all(listed)
    assert set().union(of_sample.DEFINITIONS, *listed) == set(CHECKS.values())


def test_the_guide_lists_the_checks_as_they_are_defined():
    assert "\n.. include:: ../generated/check_table.inc\n" in GUIDE.read_text(encoding="utf-8")
    for check in CHECKS.values():
        assert check.quantity and check.remedy and check.allowed_values and "nan" not in check.allowed_values


# ----------------------------------------------------------------------------------------------------- one warning


def test_a_run_too_short_to_be_judged_says_so_without_a_warning():
    rows = np.random.default_rng(0).normal(size=(100, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianGaussian(n_iter=30, random_state=0).fit(rows)
        assert results(model._check_results)["too_few_draws"] == (
            True,
            "Convergence was not judged: 15 draws of a chain were kept, and 20 are needed. The draws may be far "
            "from the posterior, and intervals from them are rough. Use a larger n_iter, such as n_iter=80.",
        )
        few = model._check_results
    assert "too_few_draws" not in list(model.set_params(n_iter=80).fit(rows).checks_["check"])
    with pytest.warns(ConvergenceWarning, match="Convergence was not judged"):  # a line beside others
        warn_if_fired([*few, check_distance_from_mode(np.full((1, 20, 2), 9.0), 1.0)[0]])
    assert "too_few_draws" not in list(BayesianLDA(3, sampler="blob", n_iter=4).fit(corpus()).checks_["check"])


@pytest.mark.parametrize(("shape", "fires"), [((60, 2), True), ((15, 2), None), ((60, 1), None)])
def test_changing_shares_are_judged_with_enough_draws_of_two_topics_or_more(shape, fires):
    draws = SimpleNamespace(shape=(1,), n_tokens=lambda c: CHANGING[: shape[0], : shape[1]])
    checks = check_shares(draws)
    assert [check.fired for check in checks] == ([] if fires is None else [fires])


def test_shares_of_independent_draws_rarely_count_as_changing():
    rng, fired = np.random.default_rng(0), 0
    for _ in range(200):
        n_tokens = 300 * rng.dirichlet(np.full(10, 5.0), size=60)  # as uncertain as those of a tiny corpus
        fired += check_shares(SimpleNamespace(shape=(1,), n_tokens=lambda c, found=n_tokens: found))[0].fired
    assert fired <= 2


def test_shares_that_change_are_listed_without_a_warning_and_counts_follow_the_order_of_topics():
    X = corpus()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianLDA(3, n_iter=200, random_state=0).fit(X)
        warn_if_fired(check_shares(SimpleNamespace(shape=(1,), n_tokens=lambda c: CHANGING)))
    assert "shares_still_change" in list(model.checks_["check"])
    n_tokens = model._topic_draws.n_tokens(0)
    assert n_tokens.shape == model._topic_draws.shape[1:3]
    np.testing.assert_allclose(n_tokens.sum(axis=1), X.sum())
    share = n_tokens.mean(axis=0) / X.sum()
    np.testing.assert_allclose(share, np.asarray(model.topic_info(X)["share"]), atol=0.05)


def test_a_run_issues_one_warning_with_a_line_for_each_check_that_fired():
    rows = np.random.default_rng(0).normal(size=(100, 2))
    model = BayesianGaussian(sampler=SGHMC(step_size=1e-4), n_iter=200, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(rows)
    lines = str(caught[0].message).split("\n")
    fired = [check for check in model._check_results if check.fired]
    assert len(caught) == 1 and lines == [*(check.message for check in fired), SEE_GUIDE]
    table = model.checks_
    assert list(table["check"][table["fired"]]) == [check.name for check in fired]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(sampler=None, n_iter=None).fit(rows)
        warn_if_fired([])
    assert not np.any(model.checks_["fired"]) and len(model.checks_["check"])
