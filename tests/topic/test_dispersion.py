"""`DMRTopicModel(dispersion="topic")`: what the estimator offers and refuses."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.datasets import CountBlocks
from sk_sgmcmc.metrics import document_completion, split_tokens
from sk_sgmcmc.topic._counts.scaled_dirichlet import ScaledDirichlet
from tests.common.compare import PressCtrlC, assert_same_draws, interrupted
from tests.naive import scaled_dirichlet as naive


def planted(n_docs, seed, n_words=30, length=30):
    """Counts, metadata and topics; a topic that fills few documents beside two that occur in all of them."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(n_words, 0.15), 3)
    x = np.arange(n_docs) % 2
    shape, scale = np.array([0.05, 3.0, 3.0]), np.array([[12.0, 1.0, 1.0], [12.0, 0.5, 2.0]])[x]
    activity = rng.gamma(shape, size=(n_docs, 3)) * scale
    theta = activity / activity.sum(axis=1, keepdims=True)
    X = sparse.csr_array(np.array([rng.multinomial(length, p @ phi) for p in theta]))
    return (
        X,
        {"x": x.astype(float), "side": np.where(x > 0, "left", "right")},
        phi,
        ScaledDirichlet(shape + 0 * scale, 1 / scale),
    )


SMALL = {"n_components": 3, "dispersion": "topic", "n_iter": 60, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return planted(120, 0)


@pytest.fixture(scope="module")
def fitted(data):
    X, metadata, *_ = data
    return DMRTopicModel(**SMALL).fit(X, metadata=metadata)


def test_attributes_and_tables_have_coefficients_of_means_and_dispersions(fitted):
    assert fitted.metadata_names_ == ["x", "side=left", "side=right"]
    assert fitted.samples_["dispersion_coef"].shape == fitted.samples_["coef"].shape == (1, 30, 3, 4)
    np.testing.assert_allclose(fitted.samples_["dispersion_coef"].sum(axis=2), 0.0, atol=1e-5)
    np.testing.assert_allclose(fitted.dispersion_coef_, fitted.samples_["dispersion_coef"][0].mean(axis=0))
    table = fitted.coef_table()
    assert list(np.unique(table["parameter"])) == ["coef", "dispersion_coef"]
    np.testing.assert_allclose(table["mean"], np.r_[fitted.coef_.ravel(), fitted.dispersion_coef_.ravel()])
    assert "dispersion_coef[0, 0]" in list(fitted.diagnostics_["quantity"])


def test_prevalence_is_the_mean_of_the_distributions_in_each_draw(fitted):
    rows = {"x": [0.0, 1.0], "side": ["right", "left"]}
    found = fitted.predict_prevalence(rows)
    design = np.array([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]])
    expected = []
    for coef, dispersion in zip(fitted.samples_["coef"][0], fitted.samples_["dispersion_coef"][0], strict=True):
        mean, scale = np.exp(design @ coef.T), np.exp(design @ dispersion.T)
        expected.append([naive.mean_given_counts(np.zeros(3), m / s, 1 / s) for m, s in zip(mean, scale, strict=True)])
    np.testing.assert_allclose(found, np.mean(expected, axis=0), rtol=1e-4)
    np.testing.assert_array_equal(found, fitted.predict_prevalence(rows))
    mean, low, high = fitted.predict_prevalence(rows, interval=0.9)
    assert np.all(low <= high) and np.allclose(mean, found)
    table = fitted.effects("side", of="prior", given={"x": 0.0})
    assert np.all(np.asarray(table["low"]) <= np.asarray(table["high"]))
    assert len(fitted.prevalence_difference(rows, rows)["topic"]) == 3


def test_effects_compare_the_proportions_of_documents(data):
    X, metadata, *_ = data
    side = {"side": metadata["side"]}
    model = DMRTopicModel(**SMALL).fit(X, metadata=side)
    theta, is_right = model.transform(X), side["side"] == "right"
    expected = theta[is_right].mean(axis=0) - theta[~is_right].mean(axis=0)
    for more in ({"of": "documents"}, {"of": "population"}, {"X": X, "metadata": side}):
        table = model.effects("side", at=["left", "right"], **more)
        np.testing.assert_allclose(table["difference"], expected, atol=0.06)
        assert np.all(np.asarray(table["low"]) <= np.asarray(table["high"]))


def test_answers_about_documents(data, fitted):
    X, metadata, *_ = data
    theta = fitted.transform(X)
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    draws = fitted.transform_draws(X)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)
    assert np.abs(draws.mean(axis=0) - theta).mean() < 0.06
    one = {name: values[:1] for name, values in metadata.items()}
    np.testing.assert_array_equal(fitted.transform(X[[0]], metadata=one), theta[[0]])
    nothing = fitted.transform(sparse.csr_array((1, 30)), metadata=one)
    np.testing.assert_allclose(nothing, fitted.predict_prevalence(one), atol=0.05)
    fitted.set_params(handle_unknown="ignore")
    assert np.isfinite(fitted.perplexity(X[[5, 7]])) and np.isfinite(fitted.transform_draws(X[[5, 7]])).all()
    fitted.set_params(handle_unknown="warn")


def test_held_out_scores_prefer_the_prior_that_made_the_documents():
    X, _, phi, prior = planted(400, 1, length=12)
    parts = split_tokens(X)
    right = document_completion(*parts, phi, doc_topic_prior=prior)
    wrong = [
        document_completion(*parts, phi, doc_topic_prior=each)
        for each in (
            prior.mean() * 0.5,
            prior.mean() * 2.0,
            prior.mean() * 6.0,
            ScaledDirichlet(prior.shape, 1.0 / prior.rate),
        )
    ]
    assert all(right.score > other.score for other in wrong)


def test_merged_topics_add_up(data, fitted):
    X, metadata, *_ = data
    merged = fitted.merge_topics([0, 2])
    rows = {name: values[:2] for name, values in metadata.items()}
    before, after = fitted.predict_prevalence(rows), merged.predict_prevalence(rows)
    np.testing.assert_allclose(after, np.column_stack([before[:, 0] + before[:, 2], before[:, 1]]), rtol=1e-6)
    np.testing.assert_allclose(merged.transform(X, metadata=metadata).sum(axis=1), 1.0)
    assert not hasattr(merged, "coef_") and not hasattr(merged, "dispersion_coef_")


def test_fits_pickle_and_run_in_chains(data):
    X, metadata, *_ = data
    whole = DMRTopicModel(**SMALL, n_chains=2).fit(X, metadata=metadata)
    assert whole.samples_["coef"].shape[0] == 2
    copied = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(copied.transform(X), whole.transform(X))
    threads = DMRTopicModel(**SMALL, n_chains=2, n_jobs=2).fit(X, metadata=metadata)
    assert_same_draws(whole, threads)


def test_resume_gives_the_draws_of_an_uninterrupted_fit(data, fitted):
    X, metadata, *_ = data
    stopped = DMRTopicModel(**SMALL, callbacks=PressCtrlC(35))
    with interrupted():
        stopped.fit(X, metadata=metadata)
    again = pickle.loads(pickle.dumps(stopped))
    assert_same_draws(fitted, again.resume(X, metadata=metadata))


def test_updates_append_documents_and_take_them_in(data):
    X, metadata, *_ = data
    first, second = slice(0, 80), slice(80, 120)
    parts = [(X[part], {name: values[part] for name, values in metadata.items()}) for part in (first, second)]
    model = DMRTopicModel(**SMALL).fit(parts[0][0], metadata=parts[0][1])
    copied = pickle.loads(pickle.dumps(model))
    for each in (model, copied):
        each.partial_fit(parts[1][0], metadata=parts[1][1])
    assert_same_draws(model, copied)
    assert model.n_samples_seen_ == 120
    model.forget_documents()
    before = model.samples_["dispersion_coef"][:, -1].copy()
    model.partial_fit(*[parts[0][0][:30]], metadata={name: values[:30] for name, values in parts[0][1].items()})
    np.testing.assert_array_equal(model.samples_["dispersion_coef"][:, -1], before)
    assert np.isfinite(model.perplexity(X, metadata=metadata))


def test_fractional_counts_and_priors_of_words_are_accepted(data):
    X, metadata, *_ = data
    for counts, params in ((X * 0.7, {}), (X, {"topic_word_prior": np.full(30, 0.1)})):
        model = DMRTopicModel(**SMALL, **params).fit(counts, metadata=metadata)
        assert np.all(np.isfinite(model.coef_))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sampler": "scir"}, "requires collapsed Gibbs sampling; got SCIR"),
        ({"batch_size": 20}, "requires collapsed Gibbs sampling"),
        ({"assignments": "fresh"}, "requires collapsed Gibbs sampling"),
        ({"coef_sampler": "sgld"}, "`coef_sampler` must be None"),
        ({"dispersion": "both"}, "dispersion"),
        ({"dispersion_prior_scale": 0.0}, "dispersion_prior_scale"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_data(params, message):
    with pytest.raises(ValueError, match=message):
        DMRTopicModel(**{**SMALL, **params}).fit("not read", metadata=None)


def test_blocks_and_other_dispersions_are_refused(data, fitted):
    X, metadata, *_ = data
    with pytest.raises(ValueError, match="must be in memory"):
        DMRTopicModel(**SMALL).fit(CountBlocks([X]), metadata=metadata)
    with pytest.raises(ValueError, match='requires dispersion="shared"'):
        fitted.doc_topic_priors(metadata)
    other = pickle.loads(pickle.dumps(fitted)).set_params(dispersion="shared")
    with pytest.raises(ValueError, match="must stay as it was in fit"):
        other.partial_fit(X, metadata=metadata)
    assert clone(fitted).dispersion == "topic"


def test_a_tiny_scale_gives_all_topics_one_dispersion(data):
    X, metadata, *_ = data
    model = DMRTopicModel(**SMALL, dispersion_prior_scale=1e-3).fit(X, metadata=metadata)
    assert np.abs(model.dispersion_coef_).max() < 0.05
