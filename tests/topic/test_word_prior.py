"""The topics' prior, fitted by the collapsed sweeps of burn-in."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.datasets import CountBlocks, make_lda
from sk_sgmcmc.metrics import document_completion, split_tokens
from sk_sgmcmc.topic._counts import corpus, word_prior
from sk_sgmcmc.topic._counts.document_prior import first_doc_prior
from sk_sgmcmc.topic._counts.sweeps import sweeps_of
from sk_sgmcmc.topic._counts.word_prior import first_word_prior
from tests.conftest import importorskip
from tests.corpora import shard_of


def planted(prior, n_samples=600, seed=3):
    return make_lda(
        n_samples, 200, 5, document_length=100, doc_topic_prior=0.2, topic_word_prior=prior, random_state=seed
    ).counts


class Recorder(Callback):
    """The prior of the first chain after every step."""

    def __init__(self):
        super().__init__(1)
        self.priors = []

    def __call__(self, estimator, step):
        self.priors.append(estimator._chains[0].word_prior.value)


# ------------------------------------------------------------------------------------------------- fitting of the prior


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
@pytest.mark.parametrize("prior", [0.02, 0.5])
def test_the_fixed_point_is_the_most_likely_prior(prior, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    counts = np.stack([rng.multinomial(800, p) for p in rng.dirichlet(np.full(300, prior), size=6)], axis=1)

    def loss(log_beta):
        beta, n_words = np.exp(log_beta), len(counts)
        columns = gammaln(n_words * beta) - gammaln(counts.sum(axis=0) + n_words * beta)
        return -(columns.sum() + (gammaln(counts + beta) - gammaln(beta)).sum())

    best = np.exp(minimize_scalar(loss, bounds=(np.log(1e-3), 0.0), method="bounded", options={"xatol": 1e-8}).x)
    counts = counts.astype(dtype)
    assert word_prior.fitted_word_prior(counts, 0.05, n_updates=2000) == pytest.approx(best, rel=1e-5)
    whole = word_prior.fitted_word_prior(counts, 0.05)
    monkeypatch.setattr(word_prior, "_CELLS_PER_PIECE", 100)
    assert word_prior.fitted_word_prior(counts, 0.05) == pytest.approx(whole, rel=1e-12)


def test_seeds_are_left_out_of_the_fixed_point():
    rng = np.random.default_rng(0)
    counts = np.stack([rng.multinomial(800, p) for p in rng.dirichlet(np.full(300, 0.1), size=6)], axis=1)
    seeds = np.array([3, 7, 7, 250]), np.array([0, 0, 5, 2])
    alone = word_prior.fitted_word_prior(counts, 0.05, n_updates=2000)
    with_many = counts.copy()
    with_many[seeds] = 5000

    def loss(log_beta):
        beta, total = np.exp(log_beta), 0.0
        for k in range(6):
            cells = np.delete(counts[:, k], seeds[0][seeds[1] == k])
            total += gammaln(cells.size * beta) - gammaln(cells.sum() + cells.size * beta)
            total += (gammaln(cells + beta) - gammaln(beta)).sum()
        return -total

    best = np.exp(minimize_scalar(loss, bounds=(np.log(1e-3), 0.0), method="bounded", options={"xatol": 1e-8}).x)
    found = [word_prior.fitted_word_prior(each, 0.05, n_updates=2000, seeds=seeds) for each in (counts, with_many)]
    np.testing.assert_allclose(found, best, rtol=1e-5)
    assert best == pytest.approx(alone, rel=0.05)
    assert word_prior.fitted_word_prior(with_many, 0.05, n_updates=2000) < 0.9 * best


def test_the_prior_keeps_within_its_bounds():
    assert word_prior.fitted_word_prior(np.zeros((7, 3)), 0.05) == 0.05
    alike, apart = np.full((50, 3), 100), np.kron(np.eye(3, dtype=np.int64), np.array([[1], [0]]).repeat(3, 1))
    assert word_prior.fitted_word_prior(alike, 0.05, n_updates=500) == 1.0
    assert word_prior.fitted_word_prior(1000 * apart[:, :3], 0.05, n_updates=500) >= 1e-3


@pytest.mark.parametrize("sampler", [None, "scir"])
@pytest.mark.parametrize("prior", [0.02, 0.1, 0.3])
def test_a_planted_prior_is_recovered(prior, sampler):
    model = BayesianLDA(5, sampler=sampler, n_iter=150, random_state=0).fit(planted(prior))
    assert model.topic_word_prior_ == pytest.approx(prior, rel=0.2)


@pytest.mark.parametrize("sampler", [None, "scir", "blocks"])
def test_shards_do_not_change_fitted_priors(sampler, monkeypatch):
    # Counts of shards that are swept at the same time are too even: the prior fitted to them is 15% larger.
    ratios = []
    for seed in range(4):
        counts, model = planted(0.3, seed=seed), BayesianLDA(5, n_iter=150, random_state=0)
        whole = model.fit(counts).topic_word_prior_
        if sampler == "blocks":
            counts = CountBlocks([counts], shard_tokens=3000)
        else:
            monkeypatch.setattr(corpus, "_MIN_TOKENS", 3000)
            model.set_params(sampler=sampler)
        ratios.append(model.fit(counts).topic_word_prior_ / whole)
        monkeypatch.undo()
    assert np.exp(np.mean(np.log(ratios))) == pytest.approx(1.0, abs=0.07)


@pytest.mark.parametrize("sampler", [None, "scir"])
@pytest.mark.parametrize("kind", [BayesianLDA, DMRTopicModel])
def test_seeds_are_added_to_a_planted_prior(kind, sampler):
    params = {"topic_word_prior": "auto", "sampler": sampler, "n_iter": 150, "random_state": 0}
    seeds = {"first": ["x3", "x50"], "second": ["x7"]}
    model = kind(5, seed_words=seeds, seed_weight=4.0, **params)
    given = {} if kind is BayesianLDA else {"metadata": np.arange(600) % 2}
    found = model.fit(planted(0.1), feature_names=[f"x{j}" for j in range(200)], **given).topic_word_prior_
    assert found.shape == (5, 200) and found.min() == pytest.approx(0.1, rel=0.2)
    is_seed = np.zeros(found.shape, dtype=bool)
    is_seed[[0, 0, 1], [3, 50, 7]] = True
    np.testing.assert_allclose(found - found.min(), np.where(is_seed, 4.0, 0.0), atol=1e-12)


def test_new_words_get_the_fitted_prior_and_keep_seeds():
    first, wider = np.full((6, 2), 0.01), np.full((8, 2), 0.01)
    first[3, 1] = wider[3, 1] = 5.01
    prior = word_prior.FittedWordPrior(first, 6, 2)
    assert prior.update(np.arange(12).reshape(6, 2), word_prior.PASSES_PER_FIT)
    grown = prior.extended(wider, 8)
    assert grown.number == prior.number > 0.01 and grown.value.shape == (8, 2)
    np.testing.assert_allclose(grown.value - grown.number, wider - 0.01)
    counts, names = planted(0.1).toarray(), [f"x{j}" for j in range(200)]
    frame = importorskip("pandas").DataFrame(counts, columns=names)
    model = BayesianLDA(5, seed_words={"x3": 1}, n_iter=60, new_features="extend", random_state=0)
    found = model.fit(frame.iloc[:400, :190]).partial_fit(frame.iloc[400:]).topic_word_prior_
    assert found.min() == pytest.approx(0.1, rel=0.2)
    np.testing.assert_array_equal(np.argwhere(found > found.min()), [[1, 3]])


def test_a_fitted_prior_predicts_better_than_a_small_one():
    counts = planted(0.4, n_samples=300)
    halves = split_tokens(counts[200:], random_state=0)
    scores = [
        document_completion(
            *halves, BayesianLDA(5, topic_word_prior=prior, random_state=0).fit(counts[:200]).components_
        )
        for prior in ("auto", 0.01)
    ]
    assert scores[0].perplexity < scores[1].perplexity


@pytest.mark.parametrize("share", [1.0, 0.75])
def test_tokens_with_weights_fit_it_too(share):
    model = BayesianLDA(5, n_iter=100, random_state=0).fit(planted(0.1) * share)
    assert model.topic_word_prior_ == pytest.approx(0.1, rel=0.3)


def test_a_dmr_fits_it_where_it_is_asked_to():
    counts = planted(0.1)
    model = DMRTopicModel(5, topic_word_prior="auto", n_iter=100, random_state=0).fit(
        counts, metadata=np.ones((600, 1))
    )
    assert model.topic_word_prior_ == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize("prior", [0.02, 0.1, 0.3])
def test_the_restarts_of_a_young_stream_recover_it(prior):
    counts, stream = planted(prior), BayesianLDA(5, random_state=0)
    for block in np.array_split(np.arange(600), 3):
        stream.partial_fit(counts[block])
    assert stream.topic_word_prior_ == pytest.approx(prior, rel=0.2)


# ------------------------------------------------------------------------------------------------------- when it moves


@pytest.mark.parametrize("sampler", [None, "scir"])
def test_it_moves_in_burn_in_only(sampler):
    recorder = Recorder()
    BayesianLDA(5, sampler=sampler, n_iter=60, burn_in=30, random_state=0, callbacks=recorder).fit(planted(0.1))
    seen = np.array(recorder.priors)
    assert seen[0] == 0.05
    assert np.unique(seen[:29]).size > 3
    assert np.unique(seen[30:]).size == 1


@pytest.mark.parametrize("weight", [1.0, 0.75])
def test_sweeps_with_another_prior_are_those_of_a_new_start_from_it(weight):
    data = shard_of(planted(0.1, n_samples=50) * weight)
    z = np.random.default_rng(0).integers(5, size=data.words.size, dtype=np.uint16)
    alpha, first, then = np.full((1, 5), 0.1), *(np.broadcast_to(b, (data.n_words, 5)) for b in (0.05, 0.2))
    old = sweeps_of(data, z, first)
    assert old.is_fast == (weight == 1.0)
    old.sweep(data, 0, 50, alpha, data.group, np.random.default_rng(1))
    copy = z.copy()
    new = sweeps_of(data, copy, then)
    old.set_topic_word_prior(then)
    for sweeps in (old, new):
        sweeps.sweep(data, 0, 50, alpha, data.group, np.random.default_rng(2))
    np.testing.assert_array_equal(z, copy)
    np.testing.assert_array_equal(old.counts, new.counts)


@pytest.mark.parametrize(
    "params",
    [
        {"burn_in": 0, "n_iter": 10},
        {"n_iter": 18},
        {"sampler": "scir", "n_iter": 20, "batch_size": 600},
        {"sampler": "sghmc", "n_iter": 10},
        {"sampler": "blob", "n_iter": 4},
        {"assignments": "fresh", "n_iter": 10},
        {"topic_prior": "normal", "n_iter": 10},
    ],
    ids=lambda params: next(iter(params)),
)
def test_where_nothing_is_fitted_it_is_small(params):
    assert BayesianLDA(5, random_state=0, **params).fit(planted(0.1)).topic_word_prior_ == 0.01


@pytest.mark.parametrize(
    "params",
    [
        {"init": "random", "sampler": "scir"},
        {"sampler": "sghmc"},
        {"topic_word_prior": 0.01},
    ],
    ids=lambda params: next(iter(params)),
)
def test_other_streams_fit_none(params):
    names = [f"x{i}" for i in range(200)]
    block = importorskip("pandas").DataFrame(planted(0.1, n_samples=100).toarray(), columns=names)
    stream = BayesianLDA(5, n_iter=40, random_state=0, **params)
    for _ in range(2):
        prior = stream.partial_fit(block).topic_word_prior_
    assert np.min(prior) == 0.01


def test_streams_take_over_what_a_fit_has_found():
    counts = planted(0.1)
    model = BayesianLDA(5, n_iter=50, random_state=0).fit(counts[:300])
    found = model.topic_word_prior_
    assert found != 0.01
    assert model.set_params(sampler="scir").partial_fit(counts[300:]).topic_word_prior_ == found


def test_a_given_prior_stays():
    counts, words = planted(0.1), np.full(200, 0.3)
    assert BayesianLDA(5, topic_word_prior=0.2, n_iter=10).fit(counts).topic_word_prior_ == 0.2
    np.testing.assert_array_equal(
        BayesianLDA(5, topic_word_prior=words, n_iter=10).fit(counts).topic_word_prior_, words
    )


@pytest.mark.parametrize(
    ("n_tokens", "n_words", "n_topics", "expected"),
    [(1e7, 1000, 20, 0.05), (1e5, 1000, 500, 0.04), (1e5, 5000, 500, 0.01), (10.0, 5000, 500, 0.01)],
)
def test_the_first_prior_stands_for_a_fifth_of_a_topic_s_tokens_between_bounds(n_tokens, n_words, n_topics, expected):
    assert first_word_prior(n_tokens, n_words, n_topics) == pytest.approx(expected)


def test_the_first_prior_of_documents_has_a_bounded_sum():
    assert [first_doc_prior(k) for k in (1, 50, 100)] == [0.1, 0.1, 0.05]


def test_many_topics_share_one_fitted_prior_of_documents_that_does_not_rise():
    """Documents that are not yet concentrated on few topics would otherwise make it ever larger."""
    rng = np.random.default_rng(0)
    few, many = (
        BayesianLDA(k, n_iter=40, random_state=0, init="random").fit(rng.poisson(3.0, (50, 400))).doc_topic_prior_
        for k in (125, 126)
    )
    assert few.sum() > 5.0 and few.std() > 0.0
    np.testing.assert_allclose(many, 5.0 / 126)
    short = BayesianLDA(126, n_iter=40, random_state=0).fit(rng.poisson(0.01, (500, 400)))
    assert np.ptp(short.doc_topic_prior_) == 0.0 and short.doc_topic_prior_[0] < 5.0 / 126
