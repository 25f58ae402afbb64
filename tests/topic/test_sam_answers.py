"""Spherical admixture: what a fitted model answers, what it refuses."""

import copy

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc import SphericalAdmixtureModel
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.inspection import TopicsOverTimeDisplay, to_arviz
from sk_sgmcmc.samplers import SGGMC
from tests.conftest import importorskip
from tests.topic.test_sam import make_rows, unit, vmf


@pytest.fixture(scope="module")
def fitted():
    X, _, _ = make_rows()
    return SphericalAdmixtureModel(3, n_iter=40, random_state=0).fit(X), X


def test_rows_answer_for_themselves(fitted):
    model, X = fitted
    np.testing.assert_allclose(model.transform(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.transform(X[::-1][:7]), model.transform(X)[::-1][:7], atol=1e-12)
    np.testing.assert_allclose(model.transform(sparse.csr_matrix(3.0 * X)), model.transform(X), atol=1e-5)
    whole = model.score_samples(X, n_temperatures=50)
    np.testing.assert_allclose(model.score_samples(X[5:9], n_temperatures=50), whole[5:9], atol=1e-9)
    np.testing.assert_allclose(model.transform(np.zeros((1, 12))), 1.0 / 3.0)


def test_topics_that_are_all_the_same_have_a_known_density(fitted):
    model, X = fitted
    m = unit(X.mean(axis=0))
    model = copy.deepcopy(model)
    model.samples_ = {"components": np.tile(m, (1, 2, 3, 1))}
    kappa = 6 * 12
    exact = kappa * np.mean(X @ m) + vmf(12, kappa)[0]
    assert model.score(X) == pytest.approx(exact, rel=1e-7)
    assert model.log_perplexity(X) == pytest.approx(-exact, rel=1e-7)
    assert model.log_perplexity(X, method="annealed") == pytest.approx(-exact, rel=1e-7)


def test_the_last_draw_alone_is_annealed():
    X, _, _ = make_rows(40)
    model = SphericalAdmixtureModel(3, kappa1="auto", n_iter=6, thin=1, n_chains=2, random_state=0).fit(X)
    pooled, last = (model.log_perplexity(X, "annealed", pooled=which) for which in (True, False))
    assert pooled == -model.score(X)
    model.samples_ = {name: value[-1:, -1:] for name, value in model.samples_.items()}
    assert last == -model.score(X) == model.log_perplexity(X, "annealed") != pooled


def test_words_that_a_topic_stands_against_are_named(fitted):
    model, _ = fitted
    table = model.top_words(2, interval=0.9)
    assert len(table["word"]) == 3 * 4
    kinds, weights = np.asarray(table["kind"]), np.asarray(table["weight"])
    assert weights[kinds == "present"].min() > weights[kinds == "absent"].max()
    assert np.all(np.asarray(table["low"]) <= np.asarray(table["high"]))


def test_empty_rows_are_no_observations(fitted):
    model, X = fitted
    gaps, nothing = np.zeros((12, 12)), np.zeros((2, 12))
    gaps[::3] = X[:4]
    scores = model.score_samples(gaps, n_temperatures=20)
    assert np.all(scores[1::3] == 0.0) and np.all(scores[2::3] == 0.0)
    np.testing.assert_array_equal(scores[::3], model.score_samples(X[:4], n_temperatures=20))
    np.testing.assert_array_equal(model.score_samples(nothing), [0.0, 0.0])
    for answer in (model.score, model.log_perplexity, lambda rows: model.log_perplexity(rows, "annealed")):
        assert answer(gaps) == answer(X[:4])
        with pytest.raises(ValueError, match="got 2 rows that are all zero"):
            answer(nothing)
    traces = []
    for rows in (gaps, X[:4]):
        again = SphericalAdmixtureModel(3, n_iter=4, callbacks=HeldOutScore(rows, every=4), random_state=0).fit(X)
        traces.append(again.trace_["score"])
    assert traces[0] == traces[1]


@pytest.mark.parametrize("given", [{}, {"n_temperatures": 7}], ids=str)
def test_traces_are_scores_of_the_present_draw(given):
    X, _, _ = make_rows()
    trace = HeldOutScore(X[:9], every=4, **given)
    model = SphericalAdmixtureModel(3, n_iter=4, burn_in=3, thin=1, callbacks=trace, random_state=0).fit(X)
    assert model.trace_["score"] == [model.score(X[:9], **given)]
    assert model.score(X[:9], n_temperatures=given.get("n_temperatures", 400)) == model.trace_["score"][0]
    with pytest.raises(TypeError, match="n_proportions"):
        model.set_params(callbacks=HeldOutScore(X[:9], every=4, n_proportions=3)).fit(X)


def test_no_word_is_listed_for_and_against(fitted):
    model, _ = fitted
    for n, listed in ((5, 5), (6, 6), (7, 6), (10**6, 6)):
        table = model.top_words(n)
        assert len(table["word"]) == 3 * 2 * listed
        kinds, topics, words = (np.asarray(table[name]) for name in ("kind", "topic", "word"))
        for k in range(3):
            present, absent = (set(words[(topics == k) & (kinds == kind)]) for kind in ("present", "absent"))
            assert len(present) == len(absent) == listed and not present & absent
    for n in (0, 2.5, "a", None):
        with pytest.raises(ValueError, match=f"n={n!r} must be a whole number"):
            model.top_words(n)


def test_words_have_the_names_given_to_fit():
    X, _, _ = make_rows()
    names = [f"word{i}" for i in range(12)]
    model = SphericalAdmixtureModel(3, n_iter=10, random_state=0).fit(sparse.csr_array(X), feature_names=names)
    assert set(model.top_words(2)["word"]) <= set(names)
    assert model.topic_names_[0].startswith("0_word") and model.topic_names_.size == 3
    importorskip("arviz")
    assert to_arviz(model).posterior["components"].coords["word"].values.tolist() == names


def test_streams_take_names_and_keep_them():
    X, _, _ = make_rows()
    names = [f"word{i}" for i in range(12)]
    model = SphericalAdmixtureModel(3, random_state=0).partial_fit(X, feature_names=names).partial_fit(X)
    assert model.topic_names_[0].startswith("0_word")
    assert model.partial_fit(X, feature_names=[name.upper() for name in names]).topic_names_[0].startswith("0_WORD")
    with pytest.raises(ValueError, match="must hold 12 names"):
        model.partial_fit(X, feature_names=names[:3])


def test_words_stand_beside_the_names_of_topics(fitted):
    model, _ = fitted
    table = model.top_words(4)
    assert {"low", "high"} <= set(table) and "low" not in model.top_words(4, interval=None)
    assert np.unique(table["name"]).tolist() == sorted(model.topic_names_)
    wide = model.top_words(4, format="wide")
    assert list(wide) == model.topic_names_.tolist()
    first = table[(table["topic"] == 1) & (table["kind"] == "present")]
    assert wide.iloc[:, 1].tolist() == first["word"].tolist()
    with pytest.raises(ValueError, match="format='tall'"):
        model.top_words(format="tall")


def test_weights_of_words_lie_in_their_intervals():
    """Where everything is learnt draws differ, and the mean direction is longer than any interval."""
    X, _, _ = make_rows(40, V=60, kappa=60.0)
    names = ("doc_topic_prior", "kappa0", "kappa1", "sigma")
    model = SphericalAdmixtureModel(3, **dict.fromkeys(names, "auto"), n_iter=60, random_state=0).fit(X)
    table = model.top_words(10, interval=0.9)
    low, weight, high = (np.asarray(table[name]) for name in ("low", "weight", "high"))
    assert np.all((low <= weight) & (weight <= high))
    mean = model.samples_["components"].mean(axis=(0, 1), dtype=float)
    first = np.asarray(table["kind"]) == "present"
    np.testing.assert_allclose(weight[first].reshape(3, 10), -np.sort(-mean, axis=1)[:, :10])


def test_bad_input_is_named():
    X, _, _ = make_rows(10)
    with pytest.raises(ValueError, match="normalize=False"):
        SphericalAdmixtureModel(2, normalize=False).fit(2.0 * X)
    with pytest.raises(ValueError, match="n_doc_draws"):
        SphericalAdmixtureModel(2, n_doc_draws=(1, 0)).fit(X)
    with pytest.raises(ValueError, match="doc_topic_prior"):
        SphericalAdmixtureModel(2, doc_topic_prior=[1.0, 2.0, 3.0]).fit(X)
    with pytest.raises(ValueError, match="batch_size=11"):
        SphericalAdmixtureModel(2, batch_size=11).fit(X)
    with pytest.raises(ValueError, match="does not fit"):
        SphericalAdmixtureModel(2, sampler="scir").fit(X)
    model = SphericalAdmixtureModel(2, n_iter=4, random_state=0).fit(X)
    for n_temperatures in (0, -1, 2.5):
        with pytest.raises(ValueError, match=f"n_temperatures={n_temperatures} must be"):
            model.score_samples(X, n_temperatures=n_temperatures)


@pytest.mark.real_data
def test_all_topics_alike_on_20_newsgroups():
    from sk_sgmcmc.datasets import fetch_20news_different

    data = fetch_20news_different()
    train, test = data.tfidf[data.train], data.tfidf[data.test]
    model = SphericalAdmixtureModel(20, kappa0=1e4, kappa1=3e4, sigma=1e4, n_iter=2, random_state=0).fit(train)
    m = unit(np.asarray(train.mean(axis=0)).ravel())
    model.samples_ = {"components": np.tile(m, (1, 1, 20, 1))}
    assert model.log_perplexity(test) == pytest.approx(5092.60, abs=0.01)


def test_parameters_of_the_sampler_are_set_and_found_again():
    X, _, _ = make_rows(40)
    for given in (None, "gsgnht", SGGMC(step_size=0.1)):
        model = SphericalAdmixtureModel(2, sampler=given, n_iter=6, random_state=0).set_params(sampler__step_size=0.01)
        before = repr(model.sampler)
        assert model.fit(X).sampler_._hyper(0, 1)[0, 0] == 0.01
        assert repr(model.sampler) == before and not hasattr(model.sampler, "step_size_")
    frame = importorskip("pandas").DataFrame(X, columns=[f"w{i}" for i in range(12)])
    model = SphericalAdmixtureModel(2, n_iter=6, random_state=0).set_output(transform="pandas").fit(frame)
    assert [name[:3] for name in model.transform(frame).columns] == ["0_w", "1_w"]
    assert set(model.top_words(3)["word"]) <= set(frame.columns)
    # A step of the topics' default is found from the curvature, and so has no place in the sampler as given.
    assert model.sampler is None and model.sampler_.step_size == "auto" and model.sampler_.step_size_(0) > 0


def test_resume_refuses_other_rows():
    X, _, _ = make_rows(40)
    model = SphericalAdmixtureModel(2, n_iter=6, random_state=0).fit(X)
    with pytest.raises(ValueError, match="pass the same again"):
        model.resume(X[::-1])


# ----------------------------------------------------------------------------------------- draws of proportions


def test_draws_of_proportions_have_the_mean_that_transform_gives(fitted):
    model, X = fitted
    frozen = copy.copy(model)  # one and the same draw of the topics, three hundred times
    topics = np.repeat(model.components_[None, None], 300, axis=1)
    frozen.samples_ = {"components": topics}
    draws = frozen.transform_draws(X[:6])
    assert draws.shape == (300, 6, 3)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)
    np.testing.assert_allclose(draws.mean(axis=0), model.transform(X[:6]), atol=0.06)
    assert draws.std(axis=0).max() < 0.2
    nothing = frozen.transform_draws(np.zeros((1, 12)))[:, 0]  # of the prior
    np.testing.assert_allclose(nothing.mean(axis=0), 1 / 3, atol=0.06)
    np.testing.assert_allclose(nothing.var(axis=0), 2 / 9 / (model.doc_topic_prior_.sum() + 1), rtol=0.4)


def test_draws_of_a_row_depend_on_it_alone(fitted):
    model, X = fitted
    draws = model.transform_draws(X[:4], n_draws=5)
    np.testing.assert_allclose(draws[:, ::-1], model.transform_draws(sparse.csr_array(X[3::-1]), n_draws=5))
    assert np.any(draws != model.transform_draws(X[:4], n_draws=5, random_state=1))
    assert len(model.transform_draws(X[:1])) == model.samples_["components"].shape[1]


def test_means_over_equal_rows_have_the_precision_of_as_many(fitted):
    model, X = fitted
    equal, times = np.repeat(X[:1], 40, axis=0), np.zeros(40)
    alone = model.transform_draws(equal, n_draws=20)
    assert np.all(alone == alone[:, :1])
    draws = np.stack(model._draws_to_average(equal, times, 0, {}))
    # Given a draw of the topics, rows are independent, and so are their means over two halves.
    spread = draws.std(axis=1, ddof=1)
    z = (draws[:, :20].mean(axis=1) - draws[:, 20:].mean(axis=1)) / (spread * np.sqrt(2 / 20))
    assert np.abs(z).max() < 5 and 0.6 < z.std() < 1.4
    table = model.topics_over_time(equal, times)
    np.testing.assert_allclose(table["share"], draws.mean(axis=(0, 1)))
    assert np.all(table["high"] - table["low"] < 0.5 * np.ptp(alone[:, 0], axis=0))
    rows, times = np.vstack([X[:9]] * 2), np.arange(18) % 2
    order = np.random.default_rng(0).permutation(18)
    first, again = model.topics_over_time(rows, times), model.topics_over_time(rows[order], times[order])
    np.testing.assert_allclose(again["share"], first["share"], rtol=1e-6)


def test_tables_of_documents_work_for_directions(fitted):
    model, X = fitted
    times = np.arange(len(X)) % 2
    table = model.topics_over_time(X, times)
    draws = model.transform_draws(X, n_draws=20)[:, times == 1].mean(axis=1)
    np.testing.assert_allclose(table["share"][3:], draws.mean(axis=0))
    docs = model.representative_docs(X, list(map(str, range(len(X)))), n=1)
    best = np.argsort(-model.transform(X), axis=0, kind="stable")[:2]  # Of the two, draws have the larger mean.
    means = model.transform_draws(X, n_draws=20).mean(axis=0)
    own = np.take_along_axis(means, best, axis=0).argmax(axis=0)
    assert docs["document"].tolist() == best[own, range(3)].tolist()
    assert len(model.topic_correlation(X)) == 3
    assert not hasattr(model, "find_topics") and not hasattr(model, "topic_info")  # directions are no probabilities
    importorskip("matplotlib")
    assert TopicsOverTimeDisplay.from_estimator(model, X, times).share.shape == (3, 2)


def test_texts_are_referred_to_a_vectorizer():
    with pytest.raises(ValueError, match=r"SphericalAdmixtureModel reads directions.*TfidfVectorizer\(\)"):
        SphericalAdmixtureModel(2).fit(["a day at sea", "the moon"])
    model = SphericalAdmixtureModel(2, n_iter=4, random_state=0).fit(np.eye(4) + 0.1)
    with pytest.raises(ValueError, match=r"pass vectorizer\.transform\(X\)"):
        model.transform(["a day at sea", "the moon"])
