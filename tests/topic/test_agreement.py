"""Several chains of topics: answers of one of them, intervals of those that agree, a warning that names the others."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import BayesianLDA, DMRTopicModel, GammaProcessTopicModel, SphericalAdmixtureModel
from sk_sgmcmc.chains.chain import stacked_draws
from sk_sgmcmc.datasets import load_sotu, make_lda
from sk_sgmcmc.metrics import doc_topic_proportions, hellinger_distances, topic_stability
from sk_sgmcmc.topic._agreement import agreement_of
from sk_sgmcmc.topic._counts.record import kept_draws
from sk_sgmcmc.topic._draws import TopicDraws
from sk_sgmcmc.topic._estimator import model as count_model
from sk_sgmcmc.topic._spherical import model as spherical_model
from tests.conftest import importorskip

N_TOPICS = 5


@pytest.fixture(scope="module")
def X():
    return make_lda(300, 100, N_TOPICS, document_length=60, doc_topic_prior=0.2, random_state=3).counts


def change_draws(monkeypatch, change):
    """Let models read draws that ``change`` has changed in place: a function of the draws of topics, and the others."""

    def changed(chains):
        samples, draws = kept_draws(chains)
        components = draws.array().copy()
        change(components, samples)
        return samples, TopicDraws(components)

    monkeypatch.setattr(count_model, "kept_draws", changed)
    monkeypatch.setattr(spherical_model, "stacked_draws", lambda chains: changed_dict(chains, change))


def changed_dict(chains, change):
    samples = stacked_draws(chains)
    change(samples["components"], samples)
    return samples


def fit_with_other_topics(monkeypatch, model, X, places, **given):
    """Fit two chains of which the second draws other topics in ``places``; also its warnings of that."""

    def change(components, samples):
        if len(components) == 1:
            return
        components[1][:, places] = components[1][:, places, ::-1].copy()  # the same probabilities, of other words
        if "coef" in samples:
            samples["coef"][1][:, places] += 3.0

    change_draws(monkeypatch, change)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, **given)
    messages = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    return [each for each in messages if "found different versions of" in each]


def named_topics(message):
    return {int(k) for k in re.findall(r"(\d+) \(\d\.\d\d\)", message)}


def mean_of(model, name, chain):
    return model.samples_[name][chain].mean(axis=0, dtype=np.float64)


# ------------------------------------------------------------------------------------------------------ unlike topics


def test_unlike_topics_are_not_averaged_and_are_named(monkeypatch, X):
    pandas = importorskip("pandas")
    table = pandas.DataFrame(X.toarray(), columns=[f"w{i}" for i in range(100)])
    model = BayesianLDA(N_TOPICS, doc_topic_prior=0.2, n_chains=2, n_iter=60, random_state=0)
    (message,) = fit_with_other_topics(monkeypatch, model, table, [1, 4])
    unlike = set(np.flatnonzero(~model.chains_agree_.all(axis=0)))
    # The second chain was changed in two topics; it predicts words worse, so the first chain is the reference.
    assert model.reference_chain_ == 0 and len(unlike) == 2 and named_topics(message) == unlike
    np.testing.assert_allclose(model.components_, mean_of(model, "components", 0), rtol=1e-5)
    mixed = model.samples_["components"].mean(axis=(0, 1), dtype=np.float64)
    for k in range(N_TOPICS):
        away = hellinger_distances(model.components_[k : k + 1], mixed[k : k + 1])[0, 0]
        assert (away > 0.3) == (k in unlike)
        apart = hellinger_distances(*(mean_of(model, "components", c)[k : k + 1] for c in (0, 1)))[0, 0]
        assert model.chain_distances_[1, k] == pytest.approx(apart, abs=1e-6)
        assert model.topic_stability_[k] < 0.7 if k in unlike else model.topic_stability_[k] > 0.8
    np.testing.assert_array_equal(model.topic_stability_, topic_stability(model.samples_["components"], aligned=True))
    # The message has the top words of the topics named, and what to type.
    for k in unlike:
        assert " ".join(f"w{i}" for i in np.argsort(-model.components_[k])[:4]) in message
    assert all(text in message for text in ("n_iter", "n_components", "n_chains=1", "seed_words", "chain 0"))


def test_intervals_pool_the_chains_that_agree_and_no_others(monkeypatch, X):
    model = BayesianLDA(N_TOPICS, doc_topic_prior=0.2, n_chains=2, n_iter=60, random_state=0)
    fit_with_other_topics(monkeypatch, model, X, [1, 4])
    words = model.top_words(3, interval=0.9)
    draws = model.samples_["components"].astype(np.float64)
    for row in range(3 * N_TOPICS):
        k, word = int(words["topic"][row]), int(words["word"][row])
        of_topic = draws[:1] if not model.chains_agree_[1, k] else draws
        low, high = np.quantile(of_topic[:, :, k, word], [0.05, 0.95], method="weibull")
        np.testing.assert_allclose((words["low"][row], words["high"][row]), (low, high), rtol=1e-12)
        assert words["probability"][row] == model.components_[k, word]


def test_transform_is_that_of_the_reference_chain_and_score_that_of_all(monkeypatch, X):
    model = BayesianLDA(N_TOPICS, doc_topic_prior=0.2, n_chains=2, n_iter=60, random_state=0)
    fit_with_other_topics(monkeypatch, model, X, [1, 4])
    expected = doc_topic_proportions(X, mean_of(model, "components", 0), model.doc_topic_prior_)
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-6)
    # In probability, over draws that each predict with topics of their own: between the two chains' scores.
    both, alone = model.score(X), []
    for c in (0, 1):
        one = BayesianLDA(N_TOPICS, doc_topic_prior=0.2, n_iter=60, random_state=0).fit(X)
        one.samples_ = {"components": model.samples_["components"][c : c + 1]}
        alone.append(one.score(X))
    assert alone[1] < both < alone[0]


def test_the_reference_is_the_chain_that_predicts_best(monkeypatch, X):
    model = BayesianLDA(N_TOPICS, doc_topic_prior=0.2, n_chains=2, n_iter=60, random_state=0)
    usual = BayesianLDA(**model.get_params()).fit(X)

    def change(components, samples):
        components[0] = components[0][..., ::-1].copy()

    change_draws(monkeypatch, change)
    with pytest.warns(ConvergenceWarning, match="5 of 5 topics.*come from chain 1"):
        model.fit(X)
    assert model.reference_chain_ == 1
    # The first chain's numbers hold, as far as topics of the two are alike.
    apart = hellinger_distances(usual.components_, model.components_)
    np.testing.assert_allclose(apart.min(axis=1), 0.0, atol=0.15)


def test_chains_in_modes_of_their_own_warn(X):
    # Fewer topics than were planted: which of them share a topic is each chain's own choice.
    model = BayesianLDA(N_TOPICS - 1, n_chains=3, n_iter=60, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"3 chains found different versions of \d of 4 topics") as caught:
        model.fit(X, feature_names=[f"word{w}" for w in range(X.shape[1])])
    message = next(str(each.message) for each in caught if "found different versions of" in str(each.message))
    assert ": word" in message
    assert re.search(r"Fewer topics \(n_components\), seed_words=\{.*\} .*, or a larger n_iter may help", message)
    c = model.reference_chain_
    words = np.arange(model.n_features_in_)
    means = [model._topic_draws.mean_of_words(c, s, words).T for s in range(30)]
    np.testing.assert_allclose(model.components_, np.mean(means, axis=0), rtol=1e-6)
    np.testing.assert_array_equal(model.chain_distances_[c], 0.0)
    np.testing.assert_allclose(model.doc_topic_prior_, model.samples_["doc_topic_prior"][c].mean(axis=0))


@pytest.mark.parametrize("params", [{}, {"sampler": "gibbs"}, {"assignments": "fresh", "n_iter": 300}, {"n_iter": 4}])
def test_chains_that_agree_do_not_warn(params, X):
    params = {"n_iter": 80, "n_chains": 3, "random_state": 1, **params}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = BayesianLDA(N_TOPICS, **params).fit(X)
    assert model.chains_agree_.all() and model.chain_distances_.max() < 0.2
    # Then intervals are those of all draws.
    words = model.top_words(1, interval=0.5)
    draws = model.samples_["components"][:, :, 0, int(words["word"][0])].astype(np.float64)
    assert words["low"][0] == np.quantile(draws, 0.25, method="weibull")


def test_one_chain_is_its_own_reference(X):
    model = BayesianLDA(N_TOPICS - 1, n_iter=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X)
    assert model.reference_chain_ == 0 and model.chains_agree_.shape == (1, 4) and model.chains_agree_.all()


# ------------------------------------------------------------------------------------------------------- other models


def test_coefficients_of_unlike_topics_are_not_averaged(monkeypatch, X):
    year = np.arange(300.0)
    model = DMRTopicModel(N_TOPICS, n_chains=2, n_iter=60, random_state=0)
    (message,) = fit_with_other_topics(monkeypatch, model, X, [2], metadata=year)
    (k,) = named_topics(message)
    assert model.reference_chain_ == 0
    coef = model.samples_["coef"]
    np.testing.assert_allclose(model.coef_, coef[0].mean(axis=0), rtol=1e-12)
    assert abs(coef[1, :, k, 0].mean() - model.coef_[k, 0]) > 1.0  # what the mean over chains would have mixed in
    table = model.coef_table()
    for topic in range(N_TOPICS):
        of_topic = coef[:1, :, topic] if topic == k else coef[:, :, topic]
        low = np.quantile(of_topic.reshape(-1, 2), 0.05, axis=0, method="weibull")
        np.testing.assert_allclose(np.asarray(table["low"]).reshape(N_TOPICS, 2)[topic], low)
    # Prevalence, and differences of it: means of the reference, intervals of the chains that agree.
    alpha = np.exp(np.einsum("rm,cskm->crsk", [[1.0, 10.0], [1.0, 200.0]], coef))
    shares = alpha / alpha.sum(axis=3, keepdims=True)
    rows = [[10.0], [200.0]]
    mean, low, high = model.predict_prevalence(rows, interval=0.9)
    np.testing.assert_allclose(mean, shares[0].mean(axis=1), rtol=1e-10)
    np.testing.assert_allclose(mean, model.predict_prevalence(rows), rtol=1e-12)
    table = model.prevalence_difference(rows[:1], rows[1:])
    np.testing.assert_allclose(table["difference"], (shares[0, 0] - shares[0, 1]).mean(axis=0), rtol=1e-8)
    for topic in range(N_TOPICS):
        of_topic = shares[: 1 if topic == k else 2, ..., topic]
        ends = [np.quantile(of_topic[:, i], [0.05, 0.95], method="weibull") for i in (0, 1)]
        np.testing.assert_allclose([low[:, topic], high[:, topic]], np.transpose(ends), rtol=1e-8)
        difference = np.quantile(of_topic[:, 0] - of_topic[:, 1], [0.05, 0.95], method="weibull")
        np.testing.assert_allclose([table["low"][topic], table["high"][topic]], difference, rtol=1e-6)


def test_weights_of_unlike_topics_are_not_averaged(monkeypatch, X):
    model = GammaProcessTopicModel(12, n_chains=2, n_iter=60, random_state=0)
    (message,) = fit_with_other_topics(monkeypatch, model, X, [0, 1, 2])
    shares = model.samples_["weights"].mean(axis=1)
    used = (shares >= 0.01 * shares.sum(axis=1, keepdims=True)).any(axis=0)
    assert named_topics(message) == set(np.flatnonzero(used & ~model.chains_agree_.all(axis=0)))
    c = model.reference_chain_
    np.testing.assert_allclose(model.weights_, model.samples_["weights"][c].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(model.components_, mean_of(model, "components", c), rtol=1e-4)
    assert np.all(np.diff(model.weights_) <= 0)
    table = model.topic_weights(0.9)
    for k in range(12):
        of_topic = model.samples_["weights"][:, :, k][model.chains_agree_[:, k]]
        assert table["low"][k] == pytest.approx(np.quantile(of_topic, 0.05, method="weibull"), rel=1e-12)


def test_topics_without_weight_are_not_named():
    X = make_lda(600, 200, N_TOPICS, document_length=100, random_state=0).counts
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = GammaProcessTopicModel(20, sampler="scir", n_chains=2, n_iter=60, random_state=0).fit(X)
    messages = [str(warning.message) for warning in caught if "found different versions of" in str(warning.message)]
    named = set().union(*map(named_topics, messages))
    unlike, used = np.flatnonzero(~model.chains_agree_.all(axis=0)), np.flatnonzero(model._topics_in_use())
    assert named == set(unlike) & set(used) and len(used) < 20


def test_directions_of_unlike_topics_are_not_averaged(monkeypatch, X):
    model = SphericalAdmixtureModel(N_TOPICS, n_chains=2, n_iter=60, kappa1="auto", random_state=0)
    (message,) = fit_with_other_topics(monkeypatch, model, X, [1])
    agree, c = model.chains_agree_.all(axis=0), model.reference_chain_
    assert named_topics(message) == set(np.flatnonzero(~agree)) and not agree.all() and agree.any()
    assert "sqrt(1 - cosine)" in message and "topic_word_prior" not in message
    mean = mean_of(model, "components", c)
    np.testing.assert_allclose(model.components_, mean / np.linalg.norm(mean, axis=1, keepdims=True), rtol=1e-6)
    assert model.kappa1_ == pytest.approx(model.samples_["kappa1"][c].mean())
    words = model.top_words(2, interval=0.9)
    draws = model.samples_["components"].astype(np.float64)
    for row in range(4 * N_TOPICS):
        topic, word = int(words["topic"][row]), int(words["word"][row])
        of_topic = draws if agree[topic] else draws[c : c + 1]
        assert words["low"][row] == pytest.approx(
            np.quantile(of_topic[:, :, topic, word], 0.05, method="weibull"), rel=1e-12
        )


def test_chains_agree_up_to_a_distance_that_does_not_grow_with_the_spread_of_draws():
    agreement = agreement_of(0, np.array([[0.0, 0.0], [0.25, 0.26]]))
    assert agreement.agree.tolist() == [[True, True], [True, False]]


def test_chains_with_other_subjects_in_a_small_corpus_do_not_agree():
    counts = load_sotu().counts
    X = counts[np.random.default_rng(1).permutation(counts.shape[0])[:300]]
    model = BayesianLDA(10, n_chains=4, n_iter=100, random_state=0)
    with pytest.warns(ConvergenceWarning, match="found different versions of"):
        model.fit(X)
    # Draws of a topic are as far from each other as these topics are.
    far = model.chain_distances_ > 0.3
    assert far.any() and not model.chains_agree_[far].any() and (model.topic_stability_ < 0.7).all()
