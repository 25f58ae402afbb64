"""Tables that answer questions about topics: their words, documents, times and correlations, with intervals."""

import copy
import datetime
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import rankdata
from sklearn.exceptions import NotFittedError

from sk_sgmcmc import BayesianLDA, DMRTopicModel, GammaProcessTopicModel
from sk_sgmcmc.datasets import fetch_poliblog5k, make_lda
from sk_sgmcmc.metrics import coherence, exclusivity
from sk_sgmcmc.topic._results import topics as tables
from sk_sgmcmc.topic._results.documents import proportion_draws
from sk_sgmcmc.utils import Corpus
from tests.conftest import importorskip

DATA = make_lda(n_samples=120, n_features=40, n_components=3, document_length=30, random_state=0)
NAMES = DATA.feature_names


@pytest.fixture(scope="module")
def model():
    return BayesianLDA(3, n_iter=40, random_state=0).fit(DATA.counts, feature_names=NAMES)


# --------------------------------------------------------------------------------------------------------- words


def test_frex_is_the_harmonic_mean_of_two_ranks():
    phi = np.random.default_rng(0).dirichlet(np.full(12, 0.4), 4)
    expected = np.empty_like(phi)
    for k in range(4):
        often = rankdata(phi[k]) / 12
        own = rankdata(phi[k] / phi.sum(axis=0)) / 12
        expected[k] = 2.0 / (1.0 / often + 1.0 / own)
    np.testing.assert_allclose(tables.word_scores(phi, "frex", None), expected, rtol=1e-14)


@pytest.mark.real_data
def test_frex_of_political_blogs_is_its_definition_computed_by_hand():
    blogs = fetch_poliblog5k()
    model = BayesianLDA(6, n_iter=20, random_state=0).fit(blogs.counts, feature_names=blogs.feature_names)
    phi = model.components_
    own = phi / phi.sum(axis=0)
    table = model.top_words(8, by="frex")
    for k in range(6):

        def frex(w, k=k):
            ranks = []
            for values in (phi[k], own[k]):
                below, equal = np.sum(values < values[w]), np.sum(values == values[w])
                ranks.append((below + (equal + 1) / 2) / values.size)
            return 1 / (0.5 / ranks[0] + 0.5 / ranks[1])

        by_hand = np.array([frex(w) for w in range(phi.shape[1])])
        best = np.argsort(-by_hand, kind="stable")[:8]
        assert table[table["topic"] == k]["word"].tolist() == np.asarray(blogs.feature_names)[best].tolist()


def test_lift_and_score_by_hand():
    phi, counts = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]), np.array([6.0, 4.0, 0.0])
    lift = tables.word_scores(phi, "lift", counts)
    np.testing.assert_allclose(lift, [[0.5 / 0.6, 0.3 / 0.4, 0.0], [0.1 / 0.6, 0.1 / 0.4, 0.0]])
    score = tables.word_scores(phi, "score", counts)
    np.testing.assert_allclose(score, phi * (np.log(phi) - np.log(phi).mean(axis=0)))


def test_top_words_are_ranked_by_the_choice(model):
    for by in tables.SCORES:
        table = model.top_words(4, by=by)
        scores = tables.word_scores(model.components_, by, model.word_counts_)
        for k in range(3):
            expected = NAMES[np.argsort(-scores[k], kind="stable")[:4]]
            assert table["word"][table["topic"] == k].tolist() == expected.tolist()
        assert list(table)[:5] == ["topic", "name", "rank", "word", "probability"]
    wide = model.top_words(4, interval=0.9, format="wide")
    assert list(wide) == model.topic_names_.tolist() and wide.shape == (4, 3)
    assert wide.iloc[:, 1].tolist() == model.top_words(4).query("topic == 1")["word"].tolist()


def test_unknown_choices_are_refused(model):
    with pytest.raises(ValueError, match="by='best' must be one of 'probability', 'frex'"):
        model.top_words(by="best")
    with pytest.raises(ValueError, match="format='tall'"):
        model.top_words(format="tall")
    with pytest.raises(NotFittedError):
        BayesianLDA().top_words()


def test_topics_are_found_by_their_words(model):
    word = model.top_words(1).query("topic == 2")["word"].iloc[0]
    table = model.find_topics(word, interval=0.8)
    column = NAMES.tolist().index(word)
    np.testing.assert_allclose(table["probability"], np.sort(model.components_[:, column])[::-1])
    draws = model.samples_["components"][0, :, table["topic"][0], column].astype(float)
    np.testing.assert_allclose(
        table[["low", "high"]].iloc[0], np.quantile(draws, [0.1, 0.9], method="weibull"), rtol=1e-6
    )
    assert table["share"].sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(model.find_topics(word.upper(), interval=0.8)["low"], table["low"])
    phrase = r"vocabulary: 'word01 word02'\. Pass several words as a list: \['word01', 'word02'\]\. .*range=\(1, 2\)"
    with pytest.raises(ValueError, match=phrase):
        model.find_topics("word01 word02")
    both = model.find_topics([word, NAMES[0]])
    np.testing.assert_allclose(both["probability"].max(), model.components_[:, [0, column]].sum(axis=1).max())
    with pytest.raises(ValueError, match=r"'word1'; did you mean 'word\d\d'"):
        model.find_topics("word1")
    with pytest.raises(ValueError, match="empty"):
        model.find_topics([])
    with pytest.raises(ValueError, match="words must be words of the vocabulary"):
        model.find_topics({})


def test_words_without_names_are_columns():
    bare = BayesianLDA(3, n_iter=10, random_state=0).fit(DATA.counts)
    assert bare.get_feature_names_out().tolist() == [f"bayesianlda{k}" for k in range(3)]
    assert bare.find_topics(5)["probability"].max() == bare.components_[:, 5].max()
    with pytest.raises(ValueError, match="feature_names="):
        bare.find_topics("word05")


def test_masses_are_the_shares_of_tokens():
    rng = np.random.default_rng(0)
    phi, shares = rng.dirichlet(np.full(200, 0.1), 5), np.array([0.4, 0.3, 0.2, 0.07, 0.03])
    np.testing.assert_allclose(tables.topic_masses(phi, 1e6 * shares @ phi), shares, atol=1e-3)
    np.testing.assert_array_equal(tables.topic_masses(phi, np.zeros(200)), 0.2)


# --------------------------------------------------------------------------------------------------------- names


def test_names_are_used_everywhere_and_reset_by_fit(model):
    first = model.topic_names_
    assert first[0].startswith("0_") and first[0].count("_") == 3
    renamed = BayesianLDA(3, n_iter=10, random_state=0).fit(DATA.counts, feature_names=NAMES)
    renamed.topic_names_ = ["ships", "taxes", "war"]
    assert renamed.get_feature_names_out().tolist() == ["ships", "taxes", "war"]
    assert (
        set(renamed.top_words(2)["name"]) == set(renamed.topic_info(DATA.counts)["name"]) == {"ships", "taxes", "war"}
    )
    assert list(renamed.set_output(transform="pandas").transform(DATA.counts)) == ["ships", "taxes", "war"]
    with pytest.raises(ValueError, match="2 of them different"):
        renamed.topic_names_ = ["a", "a", "b"]
    renamed.topic_names_ = {1: "tolls"}
    assert renamed.topic_names_.tolist() == ["ships", "tolls", "war"]
    with pytest.raises(ValueError, match=r"\[3\]; topics are 0 to 2"):
        renamed.topic_names_ = {3: "sea"}
    with pytest.raises(TypeError, match="'sea' is one name"):
        renamed.topic_names_ = "sea"
    renamed.topic_names_ = None
    assert renamed.topic_names_[0].startswith("0_word")
    renamed.fit(DATA.counts)
    assert renamed.topic_names_[0] == "bayesianlda0"


def test_columns_have_the_names_that_fit_was_given(model):
    pandas, polars = importorskip("pandas"), importorskip("polars")
    frame = pandas.DataFrame(DATA.counts.toarray(), columns=NAMES)
    expected = model.transform(DATA.counts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for named in (frame, polars.from_pandas(frame)):
            np.testing.assert_array_equal(model.transform(named), expected)
    with pytest.raises(ValueError, match=f"column 0 is '{NAMES[1]}', not '{NAMES[0]}'"):
        model.transform(frame[[NAMES[1], NAMES[0], *NAMES[2:]]])


def test_mistakes_in_the_arguments_of_tables_are_named(model):
    for table in (model.topic_info, model.topic_correlation, model.representative_docs, model.transform_draws):
        with pytest.raises(TypeError, match="unexpected keyword argument 'n_word'"):
            table(DATA.counts, n_word=3)
    with pytest.raises(TypeError, match="not a ndarray"):
        model.topic_info(DATA.counts, np.ones((120, 2)))  # metadata in the place of interval


def test_feature_names_of_the_wrong_length_are_refused_before_anything_changes(model):
    before = model.components_.copy()
    with pytest.raises(ValueError, match=r"feature_names has shape \(39,\); it must hold 40 names"):
        model.fit(DATA.counts, feature_names=NAMES[1:])
    np.testing.assert_array_equal(model.components_, before)
    assert model.topic_names_[0].startswith("0_word")


# ---------------------------------------------------------------------------------------------- draws of proportions


def enumerated(words, phi, alpha):
    """Posterior mean and covariance of the proportions of a short document, by all assignments of its tokens."""
    K, grids = alpha.size, np.indices((alpha.size,) * len(words)).reshape(len(words), -1).T
    log_weight, means, seconds = [], [], []
    for z in grids:
        a = alpha + np.bincount(z, minlength=K)
        value, seen = 0.0, np.zeros(K)
        for k, w in zip(z, words, strict=True):
            value += np.log(phi[k, w] * (alpha[k] + seen[k]))
            seen[k] += 1
        total = a.sum()
        log_weight.append(value)
        means.append(a / total)
        seconds.append((np.outer(a, a) + np.diag(a)) / (total * (total + 1)))
    weight = np.exp(np.array(log_weight) - max(log_weight))
    weight /= weight.sum()
    mean = weight @ np.array(means)
    return mean, np.tensordot(weight, np.array(seconds), 1) - np.outer(mean, mean)


def test_draws_of_proportions_have_their_law_given_the_topics(global_random_seed):
    rng = np.random.default_rng(0)
    phi, alpha, words = rng.dirichlet(np.full(6, 0.5), 3), np.array([0.2, 0.5, 0.9]), [0, 0, 3, 4]
    corpus = Corpus.from_counts(np.bincount(words, minlength=6)[None])
    n = 4000
    draws = proportion_draws(corpus, [phi] * n, alpha, random_state=global_random_seed)
    theta = np.concatenate(list(draws))
    mean, covariance = enumerated(words, phi, alpha)
    batches = theta.reshape(40, -1, 3).mean(axis=1)  # neighbouring draws are correlated
    error = batches.std(axis=0, ddof=1) / np.sqrt(40)
    assert np.all(np.abs(theta.mean(axis=0) - mean) < 4.5 * error)
    second = ((theta - mean) ** 2).reshape(40, -1, 3).mean(axis=1)
    assert np.all(np.abs(second.mean(axis=0) - np.diag(covariance)) < 4.5 * second.std(axis=0, ddof=1) / np.sqrt(40))


def test_an_empty_document_draws_its_prior():
    empty, phi = Corpus.from_counts(np.zeros((1, 4))), np.full((2, 4), 0.25)
    theta = np.concatenate(list(proportion_draws(empty, [phi] * 4000, np.array([0.5, 1.5]))))
    assert theta[:, 0].mean() == pytest.approx(0.25, abs=0.02)
    assert theta[:, 0].var() == pytest.approx(0.25 * 0.75 / 3.0, abs=0.005)


def test_a_fraction_of_a_token_weighs_less():
    phi = np.array([[0.9, 0.1], [0.1, 0.9]])
    for count in (0.3, 1.7):
        theta = np.concatenate(list(proportion_draws(Corpus.from_counts([[count, 0.0]]), [phi] * 4000, np.ones(2))))
        whole, rest = divmod(count, 1.0)
        # Two tokens of weights 1 and rest, by enumeration over their topics.
        expected = total = 0.0
        for first in range(2) if whole else [None]:
            for last in range(2):
                a, p = np.ones(2), 1.0
                if first is not None:
                    p *= phi[first, 0] * a[first]
                    a[first] += 1.0
                p *= phi[last, 0] * a[last] / a.sum()
                a[last] += rest
                expected, total = expected + p * a[0] / a.sum(), total + p
        assert theta[:, 0].mean() == pytest.approx(expected / total, abs=0.02)


def test_draws_follow_the_document_and_the_seed_not_neighbours_or_threads(model):
    X = sparse.csr_array(DATA.counts)
    draws = model.transform_draws(X, n_draws=4)
    assert draws.shape == (4, 120, 3)
    np.testing.assert_allclose(draws.sum(axis=2), 1.0)
    np.testing.assert_array_equal(model.transform_draws(X[::-1], n_draws=4), draws[:, ::-1])
    np.testing.assert_array_equal(model.transform_draws(X[7:9], n_draws=4), draws[:, 7:9])
    assert np.all(model.transform_draws(X, n_draws=4, random_state=1) != draws)
    threads = BayesianLDA(3, n_iter=40, random_state=0, n_jobs=2).fit(DATA.counts)
    np.testing.assert_array_equal(threads.transform_draws(X, n_draws=4), draws)
    assert model.transform_draws(X[:2]).shape[0] == model.samples_["components"].shape[1]
    assert model.transform_draws(X[:2].astype(np.float32), n_draws=2).dtype == np.float32
    with pytest.raises(ValueError, match="n_draws=0"):
        model.transform_draws(X, n_draws=0)


@pytest.fixture(scope="module")
def titles():
    """200 equal documents of two words, among ten others, and a model of them."""
    equal = np.zeros((200, 12), dtype=int)
    equal[:, [0, 5]] = 1
    others = np.random.default_rng(0).poisson(0.8, (200, 12))
    return BayesianLDA(3, n_iter=60, random_state=0).fit(others), np.vstack([equal, others[:10]])


def test_means_over_equal_documents_have_the_precision_of_as_many(titles):
    lda, X = titles
    draws = lda._draws_to_average(X, np.zeros(210), 0, {})
    topics = lda.samples_["components"][0]
    chosen = np.linspace(0, len(topics) - 1, 20).round().astype(int)
    z, exact = [], []
    for theta, s in zip(draws, chosen, strict=True):
        mean, covariance = enumerated([0, 5], topics[s].astype(float), lda.doc_topic_prior_)
        z.append((theta[:200].mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / 200))
        exact.append(mean)
    assert np.abs(z).max() < 4.5 and 0.6 < np.std(z) < 1.4  # 60 of them, 40 independent
    table = lda.topic_info(X[:200])
    low, high = np.quantile(exact, [0.05, 0.95], axis=0, method="weibull")
    error = 4.5 * np.sqrt(np.diag(covariance).max() / 200)
    assert np.all(np.abs(table["low"] - low) < error) and np.all(np.abs(table["high"] - high) < error)
    assert np.all(table["high"] - table["low"] < 0.5)  # 1 with one stream for all


def test_tables_of_equal_documents_do_not_depend_on_the_order_of_rows_or_on_threads(titles):
    lda, X = titles
    times = np.arange(210) % 2
    order = np.random.default_rng(1).permutation(210)
    threads = copy.copy(lda).set_params(n_jobs=2)
    for given in (lda, threads):
        table, again = lda.topics_over_time(X, times), given.topics_over_time(X[order], times[order])
        np.testing.assert_allclose(again[["share", "low", "high"]], table[["share", "low", "high"]], rtol=1e-9)
        table, again = lda.topic_correlation(X), given.topic_correlation(X[order])
        np.testing.assert_allclose(again["correlation"], table["correlation"], rtol=1e-9)
    assert abs(lda.topic_correlation(X[:200])["correlation"]).max() < 1.0
    # What is said of a document stays a function of its content.
    draws = lda.transform_draws(X, n_draws=2)
    assert np.all(draws[:, :200] == draws[:, :1])


def test_equal_documents_with_metadata_are_numbered_within_them():
    X = np.tile([[1, 1, 0, 0], [0, 0, 1, 1]], (30, 1))
    side, order = np.arange(60) // 30, np.random.default_rng(1).permutation(60)
    model = DMRTopicModel(2, n_iter=40, random_state=0).fit(X, metadata=side)
    table = model.topic_info(X, metadata=side)
    again = model.topic_info(X[order], metadata=side[order])
    np.testing.assert_allclose(again[["share", "low", "high"]], table[["share", "low", "high"]], rtol=1e-9)


def test_a_call_with_too_many_tokens_or_draws_is_refused(model):
    huge = np.full((2, 40), 1e9)
    for method in (model.transform_draws, model.topic_info, model.topic_correlation, model.representative_docs):
        with pytest.raises(ValueError, match="scale its counts down"):
            method(huge)
    assert np.all(np.isfinite(model.transform(huge))) and np.isfinite(model.score(huge))
    with pytest.raises(ValueError, match="n_draws must be at most 20, the number of kept draws"):
        model.transform_draws(DATA.counts, n_draws=10**9)


@pytest.mark.parametrize("doc_length", [5, 60])
def test_intervals_of_proportions_cover_the_planted_ones(doc_length):
    data = make_lda(n_samples=500, n_features=60, n_components=4, document_length=60, random_state=1)
    model = BayesianLDA(4, n_iter=100, random_state=0).fit(data.counts)
    rng = np.random.default_rng(2)
    planted = rng.dirichlet(data.doc_topic_prior * np.ones(4), 400)
    counts = np.stack([rng.multinomial(doc_length, p) for p in planted @ data.components])
    place = np.argmax(np.sqrt(model.components_) @ np.sqrt(data.components).T, axis=1)
    low, high = np.quantile(model.transform_draws(counts), [0.05, 0.95], axis=0)
    covered = ((low <= planted[:, place]) & (planted[:, place] <= high)).mean()
    assert 0.86 < covered < 0.94


# ------------------------------------------------------------------------------------------------------- documents


def test_dates_may_be_objects_with_a_time_zone(model):
    moment = datetime.datetime(2008, 11, 4, 23, tzinfo=datetime.timezone(datetime.timedelta(hours=-5)))
    times = np.array([moment + datetime.timedelta(days=i // 60) for i in range(120)], dtype=object)
    table = model.topics_over_time(DATA.counts, times)
    assert table["time"][0] == np.datetime64("2008-11-05T04:00")
    assert len(model.topics_over_time(DATA.counts, times, n_bins=2)) == 6
    with pytest.raises(TypeError, match=r"`topics_over_time` got an unexpected keyword argument 'by'\.$"):
        model.topics_over_time(DATA.counts, times, by=times)
    days = np.array([datetime.date(2008, 1, 1 + i // 60) for i in range(120)], dtype=object)
    assert table.shape == model.topics_over_time(DATA.counts, days, n_bins=2).shape
    times[3] = importorskip("pandas").NaT
    with pytest.raises(ValueError, match="times holds 1 missing values"):
        model.topics_over_time(DATA.counts, times)
    with pytest.raises(ValueError, match="to_datetime makes dates of text"):
        model.topics_over_time(DATA.counts, days.astype(str), n_bins=2)


def test_topic_info_gathers_what_describes_topics(model):
    table = model.topic_info(DATA.counts, n_words=2)
    draws = model.transform_draws(DATA.counts, n_draws=20)
    shares = draws.mean(axis=1)
    np.testing.assert_allclose(table["share"], shares.mean(axis=0))
    np.testing.assert_allclose(table[["low", "high"]].T, np.quantile(shares, [0.05, 0.95], axis=0, method="weibull"))
    np.testing.assert_allclose(table["coherence"], coherence(model.components_, DATA.counts))
    np.testing.assert_allclose(table["exclusivity"], exclusivity(model.components_))
    np.testing.assert_allclose(table["stability"], model.topic_stability_)
    assert table["top_words"][1] == ", ".join(model.top_words(2).query("topic == 1")["word"])
    assert "chains_agree" not in table


def test_representative_documents_are_the_purest(model):
    texts = [f"text {i}" for i in range(120)]
    table = model.representative_docs(DATA.counts, texts, n=3)
    proportions, means = model.transform(DATA.counts), model.transform_draws(DATA.counts, n_draws=20).mean(axis=0)
    for k in range(3):
        rows = table[table["topic"] == k]
        candidates = np.argsort(-proportions[:, k], kind="stable")[:6]
        assert rows["document"].tolist() == candidates[np.argsort(-means[candidates, k], kind="stable")][:3].tolist()
        np.testing.assert_allclose(rows["proportion"], means[rows["document"], k])
        assert np.all(np.diff(rows["proportion"]) <= 0.0) and rows["rank"].tolist() == [1, 2, 3]
        assert rows["text"].tolist() == [texts[i] for i in rows["document"]]
        assert np.all((rows["low"] <= rows["proportion"]) & (rows["proportion"] <= rows["high"]))
    assert "text" not in model.representative_docs(DATA.counts)
    with pytest.raises(ValueError, match="There are 2 texts, but X has 120"):
        model.representative_docs(DATA.counts, ["a", "b"])
    some = model.representative_docs(DATA.counts, iter(texts), n=3)
    assert some["text"].tolist() == table["text"].tolist()
    for given in (0, "a text", {"a": "b"}, np.array([["a", "b"]] * 120)):
        with pytest.raises(ValueError, match="texts must be a list or an array with a text for each document; got"):
            model.representative_docs(DATA.counts, given)
    for n in (0, 1.5, "2"):
        with pytest.raises(ValueError, match=f"n={n!r} must be a whole number"):
            model.representative_docs(DATA.counts, n=n)


def test_equal_documents_are_shown_once(model):
    X = DATA.counts
    once = model.representative_docs(X, n=4)
    thrice = model.representative_docs(sparse.vstack([X, X[::-1], X]), n=4)
    for name in once:
        np.testing.assert_array_equal(once[name], thrice[name])
    few = model.representative_docs(sparse.vstack([X[:2]] * 30), n=4)
    assert len(few["rank"]) == 6 and sorted(set(few["document"])) == [0, 1]


def test_messages_name_the_method_and_what_it_takes(model):
    dmr = DMRTopicModel(2, n_iter=4, random_state=0).fit(DATA.counts, metadata={"year": np.arange(120.0)})
    for name in ("topic_info", "topic_correlation", "representative_docs", "transform_draws"):
        with pytest.raises(TypeError, match=f"BayesianLDA: `{name}` got an unexpected keyword argument 'colour'"):
            getattr(model, name)(DATA.counts, colour="red")
        with pytest.raises(TypeError, match=r"Besides its own arguments, it takes metadata\.$"):
            getattr(dmr, name)(DATA.counts, colour="red")


def test_texts_go_through_the_vectorizer_of_fit(model):
    with pytest.raises(ValueError, match=r"pass vectorizer\.transform\(X\), with the vectorizer whose counts"):
        model.transform(["a text", "another text"])
    with pytest.raises(ValueError, match=r"pass sklearn.*CountVectorizer\(\)\.fit_transform\(X\)"):
        copy.copy(model).fit(["a text", "another text"])


def test_correlations_are_those_of_the_draws(model):
    table = model.topic_correlation(DATA.counts)
    draws = model.transform_draws(DATA.counts, n_draws=20)
    each = np.array([np.corrcoef(one, rowvar=False)[0, 2] for one in draws])
    row = table[(table["topic_a"] == 0) & (table["topic_b"] == 2)].iloc[0]
    assert row["correlation"] == pytest.approx(each.mean())
    assert [row["low"], row["high"]] == pytest.approx(np.quantile(each, [0.05, 0.95], method="weibull"))
    assert len(table) == 3


def test_one_document_has_no_correlations(model):
    with pytest.raises(ValueError, match="needs at least two"):
        model.topic_correlation(DATA.counts[:1])


def test_tables_of_a_model_that_is_not_fitted_are_refused():
    for estimator in (BayesianLDA(), DMRTopicModel(), GammaProcessTopicModel()):
        for name in ("topic_info", "transform_draws", "representative_docs", "topic_correlation"):
            with pytest.raises(NotFittedError):
                getattr(estimator, name)(DATA.counts)


def test_one_topic_correlates_with_none(model):
    alone = model.merge_topics([0, 1, 2])
    assert len(alone.topic_correlation(DATA.counts)) == 0
    assert alone.topic_info(DATA.counts)["share"].tolist() == [1.0]


TEXT_DATES = {
    "%b %Y": None, "%B %Y": None, "%d %B %Y": None, "%b %d, %Y": None, "%m/%Y": None, "%Y-%b": None, "%d.%m.%Y": None,
    "%d/%m/%Y": None, "%m/%d/%y": None, "%a %b %d %H:%M:%S +0000 %Y": None,
}  # fmt: skip


@pytest.mark.parametrize("form", TEXT_DATES)
def test_dates_as_text_are_in_the_order_of_time(form, model):
    months = np.array([datetime.date(2019 + i % 2, 1 + i % 12, 17) for i in range(120)])
    texts = [f"{month:{form}}" for month in months]
    pandas = importorskip("pandas")
    for times in (texts, np.array(texts, dtype=object), pandas.Series(texts), pandas.Series(texts).astype("category")):
        table = model.topics_over_time(DATA.counts, times)
        found = np.asarray(table["time"])[::3].astype("datetime64[M]")
        np.testing.assert_array_equal(found, np.unique(months.astype("datetime64[M]")))
    assert len(model.topics_over_time(DATA.counts, texts, n_bins=2)["time"]) == 6


@pytest.mark.parametrize("texts", [["01/02/2020", "03/01/2020"], ["Q1 2020", "Q2 2019"], ["January", "May"],
                                   ["12 Floreal 1799", "6 April 1799"], ["spring 2020-1", "x 2020-2"]])  # fmt: skip
def test_dates_that_can_be_read_in_two_ways_warn(texts, model):
    with pytest.warns(UserWarning, match="sorted as text.*pandas.to_datetime"):
        table = model.topics_over_time(DATA.counts, texts * 60)
    assert np.asarray(table["time"])[::3].tolist() == sorted(texts)


@pytest.mark.parametrize("texts", [["2020-04", "2020-10"], ["2020-04-01", "2021-01-01"], ["1998", "2004"],
                                   ["red", "green"], ["Marx", "Mayer"]])  # fmt: skip
def test_texts_that_are_in_order_stay_as_they_are(texts, model, recwarn):
    table = model.topics_over_time(DATA.counts, texts * 60)
    assert np.asarray(table["time"])[::3].tolist() == sorted(texts) and not recwarn.list
    numbers = model.topics_over_time(DATA.counts, ["9", "10", "11"] * 40)
    assert np.asarray(numbers["time"])[::3].tolist() == [9, 10, 11]


@pytest.mark.parametrize("kind", ["numbers", "dates", "texts", "pandas", "polars"])
def test_shares_over_time(model, kind):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    years = np.arange(120) // 40 + 1990
    times = {
        "numbers": years,
        "dates": (years - 1970).astype("datetime64[Y]"),
        "texts": years.astype(str).tolist(),
        "pandas": pandas.Series(years),
        "polars": polars.Series(years),
    }[kind]
    table = model.topics_over_time(DATA.counts, times)
    assert len(table) == 9 and set(table["n_documents"]) == {40}
    draws = model.transform_draws(DATA.counts, n_draws=20)[:, 40:80].mean(axis=1)
    rows = table.iloc[3:6]
    np.testing.assert_allclose(rows["share"], draws.mean(axis=0))
    np.testing.assert_allclose(rows["high"], np.quantile(draws, 0.95, axis=0, method="weibull"))


def test_shares_of_a_population_vary_as_much_as_the_documents(model):
    times = np.arange(120) % 3
    own, table = (model.topics_over_time(DATA.counts, times, of=of) for of in ("documents", "population"))
    theta = model.transform(DATA.counts)
    sd = np.concatenate([theta[times == time].std(axis=0) / np.sqrt(41.0) for time in range(3)])
    width = np.asarray(table["high"] - table["low"]) / (2 * 1.645)
    assert np.all(width > np.asarray(own["high"] - own["low"]) / (2 * 1.645))
    assert 0.7 < np.median(width / sd) < 1.6
    assert np.all(np.abs(np.asarray(table["share"] - own["share"])) < 3 * width)
    order = np.random.default_rng(1).permutation(120)
    again = model.topics_over_time(DATA.counts[order], times[order], of="population")
    np.testing.assert_allclose(again[["share", "low", "high"]], table[["share", "low", "high"]], rtol=1e-9)
    with pytest.raises(ValueError, match=r'`of` must be "documents" or "population"; got \'prior\''):
        model.topics_over_time(DATA.counts, times, of="prior")


def test_times_in_bins_and_times_that_are_none(model):
    X = DATA.counts
    table = model.topics_over_time(X, np.linspace(0.0, 10.0, 120), n_bins=4)
    assert np.unique(table["time"]).tolist() == [0.0, 2.5, 5.0, 7.5]
    assert table["n_documents"].iloc[::3].sum() == 120
    days = np.datetime64("2020-01-01") + np.arange(120)
    assert model.topics_over_time(X, days, n_bins=2)["time"].iloc[0] == np.datetime64("2020-01-01")
    with pytest.raises(ValueError, match="times has shape"):
        model.topics_over_time(X, [1, 2])
    with pytest.raises(ValueError, match="1 missing values"):
        model.topics_over_time(X, [np.nan, *range(119)])
    with pytest.raises(ValueError, match="1 missing values"):
        model.topics_over_time(X, [None, *map(str, range(119))])
    with pytest.raises(ValueError, match="n_bins=3 needs times that are numbers"):
        model.topics_over_time(X, ["a"] * 120, n_bins=3)
    with pytest.raises(ValueError, match="1 infinite values"):
        model.topics_over_time(X, [np.inf, *range(119)], n_bins=3)
    for n_bins in (0, -1, 2.5, "auto"):
        with pytest.raises(ValueError, match=f"n_bins={n_bins!r} must be a whole number"):
            model.topics_over_time(X, range(120), n_bins=n_bins)


def test_levels_have_the_order_that_they_declare(model):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    levels, codes = ["low", "medium", "high", "unused"], np.arange(120) % 3
    text = np.array(levels)[codes]
    expected = model.topics_over_time(DATA.counts, codes)
    for times in (
        pandas.Categorical(text, levels), pandas.Series(pandas.Categorical(text, levels)),
        polars.Series(text, dtype=polars.Enum(levels)),
    ):  # fmt: skip
        table = model.topics_over_time(DATA.counts, times)
        assert table["time"].iloc[::3].tolist() == levels[:3]
        np.testing.assert_array_equal(table["share"], expected["share"])
    with pytest.raises(ValueError, match="1 missing values"):
        model.topics_over_time(DATA.counts, pandas.Categorical([None, *text[1:]], levels))


def test_dates_that_are_levels_are_those_of_other_columns(model):
    pandas = pytest.importorskip("pandas")
    days = pandas.Series(pandas.date_range("2008-01-01", periods=3, tz="Europe/Berlin").repeat(40))
    expected = model.topics_over_time(DATA.counts, days)
    pandas.testing.assert_frame_equal(model.topics_over_time(DATA.counts, days.astype("category")), expected)


def test_periods_can_be_binned(model):
    pandas = pytest.importorskip("pandas")
    months = pandas.Series(pandas.period_range("2008-01", periods=120, freq="M"))
    table = model.topics_over_time(DATA.counts, months, n_bins=2)
    dates = model.topics_over_time(DATA.counts, months.dt.to_timestamp(), n_bins=2)
    assert table["time"].tolist() == dates["time"].tolist() and table["time"][0] == np.datetime64("2008-01-01")
    np.testing.assert_array_equal(table["share"], dates["share"])


def test_documents_without_words_have_no_share(model):
    X = np.vstack([DATA.counts.toarray() if sparse.issparse(DATA.counts) else DATA.counts, np.zeros((30, 40))])
    np.testing.assert_allclose(model.topic_info(X)["share"], model.topic_info(X[:120])["share"])
    assert set(model.topics_over_time(X, np.arange(150) // 120)["time"]) == {0}
    with pytest.raises(ValueError, match="holds no tokens"):
        model.topic_info(X[120:])


def test_metadata_reach_every_table():
    metadata = np.arange(120)[:, None]
    model = DMRTopicModel(3, n_iter=20, random_state=0).fit(DATA.counts, metadata=metadata, feature_names=NAMES)
    assert model.topic_info(DATA.counts, metadata=metadata).shape[0] == 3
    described = model.transform_draws(DATA.counts, n_draws=2, metadata=metadata)
    assert np.any(described != model.transform_draws(DATA.counts, n_draws=2, metadata=metadata[::-1]))
    assert len(model.topics_over_time(DATA.counts, metadata[:, 0] // 60, metadata=metadata)) == 6
    assert len(model.merge_topics([0, 1]).topic_info(DATA.counts, metadata=metadata)) == 2


def test_streams_take_names_and_keep_them():
    metadata = {"year": np.arange(120)}
    for model, more in ((BayesianLDA(3, random_state=0), {}), (DMRTopicModel(3, random_state=0), metadata)):
        given = {"metadata": {"year": metadata["year"][:60]}} if more else {}
        model.partial_fit(DATA.counts[:60], feature_names=NAMES, **given)
        assert set(model.top_words(2)["word"]) <= set(NAMES)
        model.partial_fit(DATA.counts[60:], **given)
        assert model.topic_names_[0].startswith("0_word")
        model.partial_fit(DATA.counts[60:], feature_names=[name.upper() for name in NAMES], **given)
        assert model.topic_names_[0].startswith("0_WORD")
        with pytest.raises(ValueError, match="must hold 40 names"):
            model.partial_fit(DATA.counts[60:], feature_names=NAMES[:3], **given)


def test_the_gamma_process_answers():
    model = GammaProcessTopicModel(4, n_iter=20, random_state=0).fit(DATA.counts)
    assert model.topic_info(DATA.counts).shape[0] == 4
    assert model.topic_weights()["name"].tolist() == model.topic_names_.tolist()


# --------------------------------------------------------------------------------------------------------- merging


def test_merged_topics_of_the_gamma_process_add_up_their_weights():
    model = GammaProcessTopicModel(5, n_iter=30, n_chains=2, random_state=0).fit(DATA.counts, feature_names=NAMES)
    merged = model.merge_topics([[0, 2], [3, 4]])
    assert merged.components_.shape == (3, 40) and merged.n_components == 3
    weights = model.samples_["weights"]
    expected = np.stack([weights[..., [0, 2]].sum(axis=-1), weights[..., 1], weights[..., 3:].sum(axis=-1)], axis=-1)
    np.testing.assert_allclose(merged.samples_["weights"], expected)
    np.testing.assert_allclose(merged.weights_.sum(), model.weights_.sum())
    assert merged.n_topics_posterior()["n_topics"].max() <= 3 and merged.samples_["n_topics"].shape == (2, 15)
    np.testing.assert_allclose(merged.topic_weights()["share"].sum(), 1.0)
    np.testing.assert_allclose(
        merged.transform(DATA.counts)[:, 0], model.transform(DATA.counts)[:, [0, 2]].sum(axis=1), atol=0.15
    )
    assert np.isfinite(merged.score(DATA.counts)) and len(merged.topic_info(DATA.counts)) == 3
    assert merged.transform_draws(DATA.counts, n_draws=3).shape == (3, 120, 3)
    with pytest.raises(ValueError, match="merged after they were drawn"):
        merged.partial_fit(DATA.counts)


def test_merged_topics_keep_the_names_that_were_given(model):
    named = copy.copy(model)
    assert named.merge_topics([0, 2]).topic_names_[0].startswith("0_")
    named.topic_names_ = ["sea", "sky", "coast"]
    assert named.merge_topics([0, 2]).topic_names_.tolist() == ["sea + coast", "sky"]


def test_groups_are_lists_of_numbers(model):
    for groups, message in ((2, "list of topics"), ("ab", "list of topics"), ([["sea", 1]], "by number")):
        with pytest.raises(TypeError, match=message):
            model.merge_topics(groups)
    for groups in (np.array([0, 2]), {0, 2}, ((0, 2),)):
        np.testing.assert_array_equal(model.merge_topics(groups).components_, model.merge_topics([0, 2]).components_)


def test_merged_topics_without_mass_count_equally():
    topics, new = np.array([[0.5, 0.5], [0.2, 0.8], [0.1, 0.9]]), np.array([0, 1, 1])
    found = tables.mixed(topics, new, np.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(found, [[0.5, 0.5], [0.15, 0.85]])


def test_merged_topics_are_mixtures_in_every_draw(model):
    merged = model.merge_topics([0, 2])
    masses = tables.topic_masses(model.components_, model.word_counts_)
    share = masses[[0, 2]] / masses[[0, 2]].sum()
    np.testing.assert_allclose(merged.components_[0], share @ model.components_[[0, 2]])
    np.testing.assert_array_equal(merged.components_[1], model.components_[1])
    np.testing.assert_allclose(
        merged.samples_["components"][0, 3, 0], share @ model.samples_["components"][0, 3][[0, 2]], rtol=1e-5
    )
    np.testing.assert_allclose(merged.doc_topic_prior_.sum(), model.doc_topic_prior_.sum())
    assert merged.n_components == 2 and model.n_components == 3
    assert merged.transform(DATA.counts).shape == (120, 2)
    assert merged.top_words(3, interval=0.9).shape[0] == 6
    assert len(merged.topic_info(DATA.counts)) == len(merged.topic_names_) == 2
    with pytest.raises(ValueError, match="no chain can go on"):
        merged.partial_fit(DATA.counts)
    with pytest.raises(NotFittedError):
        merged.resume(DATA.counts)
    assert merged.fit(DATA.counts).components_.shape == (2, 40)
    assert merged.partial_fit(DATA.counts).n_samples_seen_ == 120  # the documents of fit, which count once


def test_one_topic_alone_is_unchanged_and_all_become_one(model):
    whole = model.merge_topics([[0, 1, 2]])
    assert whole.components_.shape == (1, 40)
    np.testing.assert_allclose(whole.components_.sum(), 1.0)


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        ([], "groups must name topics"),
        ([0], "at least two"),
        ([[0, 3]], "outside 0 to 2"),
        ([[0, 1], [1, 2]], "twice"),
        ([[0.5, 1]], "at least two"),
        ([1, 1], "twice"),
    ],
)
def test_wrong_groups_are_refused(model, groups, match):
    with pytest.raises(ValueError, match=match):
        model.merge_topics(groups)


# ------------------------------------------------------------------------------------------------------ seed words


def test_seed_words_end_in_their_topics():
    planted = [NAMES[i] for i in np.argsort(-DATA.components, axis=1)[:, :3].ravel()]
    seeds = {word: (i // 3 + 1) % 3 for i, word in enumerate(planted)}
    model = BayesianLDA(3, n_iter=60, random_state=0, seed_words=seeds).fit(DATA.counts, feature_names=NAMES)
    for k in range(3):
        assert np.argmax(np.sqrt(DATA.components[k]) @ np.sqrt(model.components_).T) == (k + 1) % 3
    assert model.topic_word_prior_.shape == (3, 40)
    prior = model.topic_word_prior_[:, NAMES.tolist().index(planted[0])]
    np.testing.assert_allclose(prior - prior.min(), np.where(np.arange(3) == seeds[planted[0]], 5.0, 0.0))


@pytest.mark.parametrize(
    ("seeds", "match"),
    [
        ({"sloop": 0}, r"not in the vocabulary: 'sloop'\. A vectorizer leaves out words .* than its min_df\.$"),
        ({"word01": 3}, "from 0 to 2"),
        ({"word01": 0.5}, "0 to 2"),
        ({0: ["word01"]}, "Names of topics must be str"),
    ],
)
def test_wrong_seed_words_are_refused(seeds, match):
    with pytest.raises(ValueError, match=match):
        BayesianLDA(3, n_iter=4, seed_words=seeds).fit(DATA.counts, feature_names=NAMES)
