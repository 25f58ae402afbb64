"""Every sampler with every estimator that it fits, on small real data, to a stated quality; all others refused."""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.metrics import log_loss

import sk_sgmcmc
from sk_sgmcmc.base import BaseSGMCMC
from sk_sgmcmc.datasets import fetch_corpus
from sk_sgmcmc.metrics import document_completion, split_tokens
from sk_sgmcmc.samplers._registry import SAMPLERS, fitting_pair, make_sampler

ESTIMATORS = {
    name: value
    for name, value in vars(sk_sgmcmc).items()
    if isinstance(value, type) and issubclass(value, BaseSGMCMC) and value is not BaseSGMCMC
}
PAIRS = [
    (estimator, name)
    for estimator in sorted(ESTIMATORS)
    for name in sorted(SAMPLERS)
    if fitting_pair(make_sampler(name), ESTIMATORS[estimator]._offers)
]
REFUSED = [(estimator, name) for estimator in ESTIMATORS for name in SAMPLERS if (estimator, name) not in PAIRS]


# ------------------------------------------------------------------------------------------- data, and what is wanted


@cache
def _abstracts():
    """Abstracts with the words that are in ten of them or more; every fifth is held out."""
    counts = fetch_corpus("acl2020_abstracts").data.tocsr()
    counts = counts[:, np.asarray((counts > 0).sum(axis=0)).ravel() >= 10]
    held_out = np.arange(counts.shape[0]) % 5 == 0
    train, halves = counts[~held_out], split_tokens(counts[held_out])
    share = np.asarray(train.sum(axis=0), dtype=float).ravel() + 0.5
    unigram = (share / share.sum())[None]
    return train, halves, document_completion(*halves, unigram, doc_topic_prior=np.ones(1)).perplexity


def _short(estimator):
    """Few steps of samplers whose steps are long: trajectories on all the data, or a metric."""
    sampler = estimator.sampler
    return estimator.set_params(n_iter=200 if sampler._reads_all_rows else 400 if sampler._uses_metric else None)


def topics(estimator):
    """Held-out perplexity of hidden tokens at most 0.85 of a unigram's."""
    train, halves, unigram = _abstracts()
    model = estimator.set_params(n_components=30, n_iter=60, thin=6).fit(train)
    draws = model.samples_["components"][0]
    return document_completion(*halves, draws, doc_topic_prior=model.doc_topic_prior_).perplexity / unigram, 0.85


def tumours(estimator):
    """Held-out log loss at least 0.1 below that of the classes' shares."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :6]
    model = _short(estimator).fit(X[::2], y[::2])
    prior = log_loss(y[1::2], np.full(len(y[1::2]), y[::2].mean()))
    return log_loss(y[1::2], model.predict_proba(X[1::2])) - prior, -0.1


def progression(estimator):
    """Share of the held-out variance or deviance explained at least 0.3."""
    X, y = load_diabetes(return_X_y=True)
    model = _short(estimator).fit(20.0 * X[::2], y[::2])
    return -model.score(20.0 * X[1::2], y[1::2]), -0.3


def flowers(estimator):
    """Mean held-out log density within 0.1 of that of the exact posterior's mean."""
    X = load_iris().data
    model = _short(estimator).fit(X[::2])
    exact = model.exact_posterior(X[::2])
    away = X[1::2] - exact.mean
    log_density = 0.5 * np.linalg.slogdet(exact.precision / (2 * np.pi))[1] - 0.5 * np.einsum(
        "ni,ij,nj->n", away, exact.precision, away
    )
    return log_density.mean() - model.score(X[1::2]), 0.1


def unit_topics(estimator):
    """Annealed log density of held-out rows above that of all topics alike, each the mean direction."""
    from sklearn.feature_extraction.text import TfidfTransformer

    train, halves, _ = _abstracts()
    tfidf = TfidfTransformer().fit(train)
    rows, test = tfidf.transform(train), tfidf.transform(halves[0] + halves[1])[:40]
    model = estimator.set_params(n_components=5, n_iter=3 if estimator.sampler._name == "gmc" else 30).fit(rows)
    alike = np.tile(np.asarray(rows.mean(axis=0)).ravel() / np.linalg.norm(rows.mean(axis=0)), (5, 1))
    twin = model.score(test)
    model.samples_ = {**model.samples_, "components": np.tile(alike, (1, 1, 1, 1)).astype(np.float32)}
    return model.score(test) - twin, 0.0


def digits(estimator):
    """Clusters of digits agree with their labels: adjusted Rand index above 0.3."""
    from sklearn.metrics import adjusted_rand_score

    X, y = load_digits(return_X_y=True)
    return -adjusted_rand_score(y, estimator.set_params(n_components=10).fit(X).predict(X)), -0.3


def _blogs():
    """Blogs of two camps, the first 2,000 words, and their camps."""
    corpus = fetch_corpus("poliblog5k")
    X = corpus.counts[:1500]
    return X, (np.asarray(corpus.metadata["rating"])[:1500] == "Liberal").astype(int)


def ratings(estimator):
    """R² of the camp of a blog, as a number, above 0.1."""
    X, y = _blogs()
    return -estimator.set_params(n_components=10).fit(X[::2], y[::2]).score(X[1::2], y[1::2]), -0.1


def camps(estimator):
    """Accuracy of the camp of a blog above 0.65."""
    X, y = _blogs()
    return -estimator.set_params(n_components=10).fit(X[::2], y[::2]).score(X[1::2], y[1::2]), -0.65


def survey(estimator):
    """Held-out log probability of a row at least 0.5 above that of independent answers."""
    X = fetch_corpus("nltcs").data[:2000].astype(float)
    train, test = X[::2], X[1::2]
    share = (train.sum(axis=0) + 0.5) / (len(train) + 1.0)
    alone = (test * np.log(share) + (1 - test) * np.log1p(-share)).sum(axis=1).mean()
    return alone - estimator.set_params(likelihood="bernoulli").fit(train).score(test), -0.5


def disability(estimator):
    """Held-out log probability of a row at least 1 above that of independent answers."""
    X = fetch_corpus("nltcs").data[:2000].astype(int)
    train, test = X[::2], X[1::2]
    share = (train.sum(axis=0) + 0.5) / (len(train) + 1.0)
    alone = (test * np.log(share) + (1 - test) * np.log1p(-share)).sum(axis=1).mean()
    return alone - estimator.set_params(n_components=4).fit(train).score(test), -1.0


WANTED = {
    "BayesianLDA": topics,
    "DMRTopicModel": topics,
    "GammaProcessTopicModel": topics,
    "StructuralTopicModel": topics,
    "TopicRegressor": ratings,
    "TopicClassifier": camps,
    "BayesianLogisticRegression": tumours,
    "BayesianLinearRegression": progression,
    "BayesianPoissonRegressor": progression,
    "BayesianNegativeBinomialRegressor": progression,
    "BayesianGaussian": flowers,
    "SphericalAdmixtureModel": unit_topics,
    "VonMisesFisherMixture": digits,
    "DPCategoricalMixture": survey,
    "LatentClassModel": disability,
}


def test_every_estimator_has_a_stated_quality():
    assert set(WANTED) == set(ESTIMATORS)
    assert len(PAIRS) >= 50


@pytest.mark.real_data
@pytest.mark.parametrize("estimator, name", PAIRS, ids=lambda value: value)
def test_every_pair_that_fits_reaches_the_stated_quality(estimator, name):
    sampler = make_sampler(name)
    if sampler._loop == "particles":
        sampler.set_params(n_particles=4)
    reached, wanted = WANTED[estimator](ESTIMATORS[estimator](sampler=sampler, random_state=0))
    assert reached <= wanted


class Untouchable:
    def __getattribute__(self, name):
        raise AssertionError("the data were looked at")


@pytest.mark.parametrize("estimator", sorted(ESTIMATORS))
def test_every_other_pair_is_refused_by_a_message_that_names_those_that_fit(estimator):
    fitting = [name for other, name in PAIRS if other == estimator]
    for name in [name for other, name in REFUSED if other == estimator]:
        with pytest.raises(ValueError, match="does not fit") as error:
            ESTIMATORS[estimator](sampler=name).fit(Untouchable(), Untouchable())
        message = str(error.value)
        assert message.endswith(f"{', '.join(fitting)}.") and type(make_sampler(name)).__name__ in message
