"""Seed words: a (K, V) prior of the topics leads each seeded topic to where its seeds are."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.metrics import hellinger_distances
from sk_sgmcmc.samplers import PSGHMC
from sk_sgmcmc.topic._counts.start import draw_columns
from sk_sgmcmc.topic._counts.word_prior import SeedWords, WordPrior

K, V, PLACES = 6, 200, (4, 1, 5)  # planted topics that the fitted topics 0, 1 and 2 are given the seeds of
WAYS = {
    "scir": {},
    "gibbs": {"sampler": "gibbs"},
    "fresh": {"assignments": "fresh", "n_iter": 150},
    "sgrld": {"sampler": "sgrld", "n_iter": 60},
    "sgld": {"sampler": "sgld"},
    "sghmc": {"sampler": "sghmc"},
    "particles": {"sampler": PSGHMC(n_particles=3)},
    "minibatches": {"batch_size": 100},
}


@pytest.fixture(scope="module")
def planted():
    data = make_lda(400, V, K, document_length=60, doc_topic_prior=0.1, topic_word_prior=0.05, random_state=0)
    share = data.components / data.components.sum(axis=0)
    likely = np.argsort(-data.components, axis=1)[:, :10]
    words = [likely[j][np.argsort(-share[j, likely[j]])][:4] for j in range(K)]
    return data.counts, data.components, words


def seeded_prior(words, pseudo_counts, places=PLACES):
    prior = np.full((K, V), 0.01)
    for k, j in enumerate(places):
        prior[k, words[j]] = pseudo_counts
    return prior


def assert_landed(fitted, planted, places=PLACES):
    """Each seeded topic is the nearest to the planted one whose words it was given, and has them on top."""
    _, topics, words = planted
    distances = hellinger_distances(topics, fitted)
    for k, j in enumerate(places):
        assert distances[j].argmin() == k, (k, distances[j].round(2))
        assert np.isin(words[j], np.argsort(-fitted[k])[:20]).all()


@pytest.mark.parametrize("pseudo_counts", [0.5, 50.0])
@pytest.mark.parametrize("init", ["soft", "random"])
@pytest.mark.parametrize("way", WAYS)
def test_seeded_topics_end_on_their_seeds(way, init, pseudo_counts, planted):
    params = {"n_iter": 60, "init": init, "random_state": 0, **WAYS[way]}
    model = BayesianLDA(K, topic_word_prior=seeded_prior(planted[2], pseudo_counts), **params).fit(planted[0])
    assert_landed(model.components_, planted)


@pytest.mark.parametrize("init", ["soft", "random"])
def test_seeded_topics_of_other_models_and_streams_end_on_their_seeds(init, planted):
    X, prior = planted[0], seeded_prior(planted[2], 5.0)
    params = {"topic_word_prior": prior, "init": init, "random_state": 0}
    dmr = DMRTopicModel(K, n_iter=60, **params).fit(X, metadata=np.arange(400) % 2)
    assert_landed(dmr.components_, planted)
    assert_landed(BayesianLDA(K, n_iter=60, topic_prior="normal", **params).fit(X).components_, planted)
    stream = BayesianLDA(K, batch_size=50, **params)
    for block in np.array_split(np.arange(400), 4):
        stream.partial_fit(X[block])
    assert_landed(stream.components_, planted)


def test_all_topics_seeded_and_every_chain_end_on_their_seeds(planted):
    places = (3, 0, 5, 1, 2, 4)
    prior = seeded_prior(planted[2], 5.0, places)
    model = BayesianLDA(K, topic_word_prior=prior, n_chains=3, n_iter=60, random_state=0).fit(planted[0])
    assert_landed(model.components_, planted, places)
    for chain in model.samples_["components"]:
        assert_landed(chain.mean(axis=0), planted, places)
    assert model.chains_agree_.all()


def test_topics_of_a_stream_keep_their_numbers_beside_seeded_ones(planted):
    # Each block makes the documents grow by a quarter and more, so that the chain begins anew.
    X, prior = planted[0], seeded_prior(planted[2], 5.0)
    stream = BayesianLDA(K, topic_word_prior=prior, batch_size=50, random_state=0)
    stream.partial_fit(X[:250])
    before = stream.components_
    stream.partial_fit(X[250:])
    distances = hellinger_distances(before, stream.components_)
    np.testing.assert_array_equal(distances.argmin(axis=1), np.arange(K))


def test_names_that_lead_to_words_name_topics_and_seed_them(planted):
    X, _, words = planted
    names = np.array([f"w{j}" for j in range(V)])
    by_name = {f"theme {j}": names[words[j]].tolist() for j in PLACES}
    by_word = {word: k for k, group in enumerate(by_name.values()) for word in group}
    models = [
        kind(K, n_iter=40, random_state=0, seed_words=seeds).fit(X, feature_names=names)
        for kind in (BayesianLDA, DMRTopicModel)
        for seeds in (by_name, by_word)
    ]
    for named, plain in (models[:2], models[2:]):
        np.testing.assert_array_equal(named.components_, plain.components_)
        assert_landed(named.components_, planted)
        assert named.topic_names_[:3].tolist() == list(by_name)
        np.testing.assert_array_equal(named.topic_names_[3:], plain.topic_names_[3:])
        assert plain.topic_names_[0].startswith("0_")
    named = models[0]
    assert named.merge_topics([0, 1]).topic_names_[0] == "theme 4 + theme 1"
    copied = pickle.loads(pickle.dumps(named)).set_params(seed_words=None)
    assert copied.topic_names_[2] == "theme 5"  # of the fit
    copied.topic_names_ = {0: "other"}
    assert copied.topic_names_[:2].tolist() == ["other", "theme 1"]
    copied.topic_names_ = None
    assert copied.topic_names_[0] == "theme 4"
    assert copied.fit(X, feature_names=names).topic_names_[0].startswith("0_")
    stream = BayesianLDA(K, random_state=0, seed_words=by_name).partial_fit(X[:200], feature_names=names)
    assert stream.partial_fit(X[200:]).topic_names_[0] == "theme 4"


def test_a_fit_warns_of_seeds_that_end_in_another_topic(planted):
    X, _, words = planted
    names = np.array([f"w{j}" for j in range(V)])
    # Words of one planted topic, as seeds of two: a weak prior does not keep them apart.
    seeds = {"Health": names[words[0][:1]], "Trade": names[words[0][1:3]]}
    for kind in (BayesianLDA, DMRTopicModel):
        model = kind(K, n_iter=60, seed_weight=0.01, seed_words=seeds, random_state=0)
        with pytest.warns(
            ConvergenceWarning, match="seed words of topic 0 .Health. are more probable in topic"
        ) as found:
            model.fit(X, feature_names=names)
        mass = model.components_[:, words[0][:1]].sum(axis=1)
        message = next(str(each.message) for each in found if "seed words" in str(each.message))
        assert f"in topic {mass.argmax()} (" in message and f"{mass.max():.2g} there and {mass[0]:.2g}" in message
        assert names[words[0][0]] in message and "seed_weight" in message
    # A word may belong to several topics, none of which loses it to another of them.
    shared = SeedWords({"w0": [0, 1], "w1": 0})
    assert not shared.check(np.array([[0.2, 0.8], [0.9, 0.1]]), names[:2], ["a", "b"]).fired


def test_seeds_that_stay_where_they_belong_do_not_warn(planted):
    names = np.array([f"w{j}" for j in range(V)])
    seeds = {f"theme {j}": names[planted[2][j]] for j in PLACES}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="The seed words")
        for seed in range(3):
            BayesianLDA(K, n_iter=40, random_state=seed, seed_words=seeds).fit(planted[0], feature_names=names)


@pytest.mark.parametrize(
    ("seeds", "match"),
    [
        ({"Health": []}, r"seed_words\['Health'\] must hold at least one word"),
        ({"Health": "w1"}, "If it is a word, pass a list of words"),
        ({"w0": 0, "Health": ["w1"]}, "not both at once"),
        ({"Health": ["w1", 0]}, "must hold either words or topics"),
        ({1: ["w1"]}, "Names of topics must be str"),
        ({"Health": ["w1", "health"]}, "not in the vocabulary: 'health'"),
        ({f"theme {j}": ["w1"] for j in range(7)}, "at most n_components=6 topics; got 7 names"),
        ({"w1": True}, "must be a topic from 0 to 5"),
    ],
)
def test_seed_words_in_no_form_are_refused(seeds, match, planted):
    with pytest.raises(ValueError, match=match):
        BayesianLDA(K, seed_words=seeds).fit(planted[0], feature_names=[f"w{j}" for j in range(V)])


def test_equal_priors_in_a_matrix_start_as_those_in_a_vector(planted):
    same = [
        BayesianLDA(K, topic_word_prior=prior, n_iter=10, random_state=0).fit(planted[0]).samples_["components"]
        for prior in (np.full(V, 0.1), np.full((K, V), 0.1))
    ]
    np.testing.assert_array_equal(*same)


def test_seed_words_start_in_their_topics():
    prior = np.full((3, 100), 0.01)
    prior[2, 70] = 0.5
    shares = WordPrior(prior, 3, 100).seed_shares()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert shares[2, 70] > 0.95 and np.all(shares[[0, 1]] == 0.01)
    assert all(WordPrior(each, 3, 4).seed_shares() is None for each in (0.1, np.ones((3, 1)), np.ones((3, 4))))
    rng = np.random.default_rng(0)
    rows = np.tile([2, 0], 20_000)
    drawn = draw_columns(np.array([[0.2, 0.0, 0.8], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), rows, rng)
    assert np.all(drawn[::2] == 1) and set(drawn[1::2]) == {0, 2}
    assert np.mean(drawn[1::2] == 2) == pytest.approx(0.8, abs=0.01)
