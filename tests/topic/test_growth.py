"""Updates of a collapsed fit by `partial_fit`: documents are appended, swept, kept or taken in, and forgotten."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc import BayesianLDA, DMRTopicModel, GammaProcessTopicModel
from sk_sgmcmc.chains.growth import FEWEST_DRAWS, in_window
from sk_sgmcmc.covariates.metadata import MetadataEncoder
from sk_sgmcmc.covariates.prior import NormalPrior
from sk_sgmcmc.datasets import CountBlocks, make_dmr, make_lda
from sk_sgmcmc.dense.rows import DenseRows
from sk_sgmcmc.metrics import align_topics, hellinger_distances
from sk_sgmcmc.topic._counts import growth
from sk_sgmcmc.topic._counts.corpus import Described, InMemoryShards, KeptCorpus, TokenCorpus
from sk_sgmcmc.topic._counts.documents import MatrixCorpus
from sk_sgmcmc.topic._dmr.coefficients import Coefficients
from sk_sgmcmc.topic._dmr.dispersed_prior import DispersedMetadataPrior
from tests.common.compare import PressCtrlC, assert_same_draws, interrupted
from tests.common.instances import LDA
from tests.conftest import importorskip
from tests.corpora import shard_of

MODEL = {"n_components": 4, "n_iter": 120, "random_state": 0}


@pytest.fixture(scope="module")
def planted():
    data = make_lda(1100, 120, 4, document_length=50, doc_topic_prior=0.2, topic_word_prior=0.1, random_state=5)
    return data.counts[:1000], data.counts[1000:]


@pytest.fixture(scope="module")
def fitted(planted):
    return pickle.dumps(BayesianLDA(**MODEL).fit(planted[0][:500]))


def loaded(fitted, **params):
    return pickle.loads(fitted).set_params(**params)


def updated(model, X, size=100):
    for start in range(0, X.shape[0], size):
        model.partial_fit(X[start : start + size])
    return model


def assert_counts_are_those_of_the_assignments(model):
    chain, shard = model._chains[0], model._kept.shard
    counts = np.zeros(chain.collapsed.counts.shape)
    np.add.at(counts, (shard.words, chain.z), shard.weights if shard.weights.size else 1.0)
    np.testing.assert_allclose(chain.collapsed.counts, counts, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------------ results


def test_an_update_is_no_worse_than_the_fit_and_means_lie_in_their_intervals(fitted, planted):
    X, test = planted
    model = loaded(fitted)
    before, topics = model.perplexity(test), model.components_
    updated(model, X[500:])
    assert model.perplexity(test) < 1.005 * before
    assert model.perplexity(test) < 1.02 * BayesianLDA(**MODEL).fit(X).perplexity(test)
    assert hellinger_distances(topics, model.components_).diagonal().max() < 0.2  # The topics keep their numbers.
    table = model.top_words(10)
    probability, low, high = (np.asarray(table[name]) for name in ("probability", "low", "high"))
    assert np.mean((probability < low) | (probability > high)) < 0.02
    assert model.n_samples_seen_ == 1000
    np.testing.assert_array_equal(model.word_counts_, np.asarray(X.sum(axis=0)).ravel())
    assert_counts_are_those_of_the_assignments(model)


@pytest.mark.parametrize("params", [{}, {"keep_documents": False}, {"keep_documents": 25_000}], ids=str)
def test_shares_of_topics_after_many_updates_are_in_their_intervals(params, global_random_seed):
    hits = []
    for seed in range(5):
        data = make_lda(900, 100, 4, 40, 0.2, 0.1, random_state=1000 * global_random_seed + seed)
        model = BayesianLDA(4, n_iter=300, random_state=seed, **params).fit(data.counts[:450])
        updated(model, data.counts[450:], 45)
        order = align_topics(data.components, model.components_)
        chain = model._chains[0]
        mass = np.array([each.mass[o] for each, o in zip(chain.record.counts, chain.record.orders, strict=True)])
        shares = (mass / mass.sum(axis=1, keepdims=True))[:, order]
        truth = (data.doc_topics * np.asarray(data.counts.sum(axis=1)).reshape(-1, 1)).sum(axis=0)
        error = np.abs(shares.mean(axis=0) - truth / truth.sum())
        hits.append(error < 4.0 * shares.std(axis=0) + 0.01)
    assert np.mean(hits) > 0.9


def test_the_window_holds_recent_draws_of_most_documents_and_never_fewer_than_twenty(fitted, planted):
    model = loaded(fitted)
    sizes = []
    for start in range(500, 1000, 100):
        chain = model.partial_fit(planted[0][start : start + 100])._chains[0]
        sizes.append(np.array(chain.kept_docs))
        assert len(sizes[-1]) == chain.n_kept == len(chain.record.counts) == model.samples_["components"].shape[1]
        assert np.all(np.diff(sizes[-1]) >= 0) and len(sizes[-1]) <= 100
        assert np.sum(sizes[-1] < 0.8 * chain.data.n_docs) <= max(0, FEWEST_DRAWS - np.sum(sizes[-1] == sizes[-1][-1]))
        assert len(sizes[-1]) >= FEWEST_DRAWS
        # Earlier draws have taken in the new documents, so that all of them describe the same ones.
        n_tokens = planted[0][: start + 100].sum()
        assert [counts.mass.sum() for counts in chain.record.counts] == [n_tokens] * chain.n_kept
    assert sizes[0][0] == 500 < sizes[-1][0]
    chain = loaded(fitted).partial_fit(planted[0][500:1000])._chains[0]
    assert FEWEST_DRAWS <= chain.n_kept == len(chain.record.counts) and set(chain.kept_docs) == {1000}
    kept = in_window([100] * 30 + [500] * 5, 500, 100)
    assert kept == list(range(15, 35))
    assert in_window([450] * 30, 500, 100) == list(range(30))
    assert in_window([450] * 300, 500, 100) == list(range(200, 300))


def test_a_fit_that_kept_more_draws_than_a_window_holds_is_updated():
    data = make_dmr(60, 30, 3, 2, 20, random_state=1)
    model = DMRTopicModel(3, n_iter=240, thin=1, random_state=0).fit(data.counts[:50], metadata=data.metadata[:50])
    assert model.samples_["coef"].shape[1] == 120
    model.partial_fit(data.counts[50:52], metadata=data.metadata[50:52])
    assert model.samples_["coef"].shape[1] == model.samples_["components"].shape[1] == 100


def test_small_blocks_wait_until_there_are_enough(fitted, planted):
    X, model = planted[0], loaded(fitted)
    steps = []
    for start in range(500, 600, 10):
        model.partial_fit(X[start : start + 10])
        steps.append(model.n_iter_)
    assert steps[:2] == [120] * 2 and len(set(steps)) in (3, 4)  # two or three times in ten blocks
    assert model._kept.n_docs == 600 == model.n_samples_seen_
    assert_counts_are_those_of_the_assignments(model)


def test_a_block_that_comes_again_is_swept_and_not_appended(fitted, planted):
    X, model = planted[0], loaded(fitted)
    model.partial_fit(X[500:600])
    n_iter = model.n_iter_
    model.partial_fit(X[500:600])
    assert model.n_samples_seen_ == 600 == model._kept.n_docs and model.n_iter_ > n_iter
    assert model._chains[0].hottest == 1.0
    model.partial_fit(X[:500])  # the documents of fit
    assert model.n_samples_seen_ == 600
    forgetful = loaded(fitted, keep_documents=False).partial_fit(X[500:600])
    before = forgetful.components_
    np.testing.assert_array_equal(forgetful.partial_fit(X[500:600]).components_, before)


def test_the_first_call_is_a_fit(planted):
    X = planted[0][:300]
    assert_same_draws(BayesianLDA(**MODEL).partial_fit(X), BayesianLDA(**MODEL).fit(X))


# ------------------------------------------------------------------------------------------------------ reproducibility


@pytest.mark.parametrize("keep_documents", ["auto", False])
def test_updates_are_the_same_for_any_n_jobs_and_after_a_file(planted, keep_documents):
    X, params = planted[0], {**MODEL, "n_chains": 2, "keep_documents": keep_documents}
    model = updated(BayesianLDA(**params).fit(X[:300]), X[300:500])
    assert_same_draws(model, updated(BayesianLDA(**params, n_jobs=2).fit(X[:300]), X[300:500]))
    half = updated(BayesianLDA(**params).fit(X[:300]), X[300:400])
    assert_same_draws(model, updated(pickle.loads(pickle.dumps(half)), X[400:500]))


def test_an_interrupted_update_is_resumed_or_made_up_for(fitted, planted):
    X = planted[0]
    whole = loaded(fitted).partial_fit(X[500:700])
    model = loaded(fitted, callbacks=PressCtrlC(130))
    with interrupted():
        model.partial_fit(X[500:700])
    assert model.n_iter_ == 130 and model.n_samples_seen_ == 700
    model = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="differs from them"):
        model.resume(X[500:600])
    later = pickle.loads(pickle.dumps(model)).partial_fit(X[700:710])
    assert later.n_iter_ > whole.n_iter_  # the sweeps that were not made, and none for ten documents
    assert_same_draws(whole, model.set_params(callbacks=None).resume(X[500:700]))


def test_a_refused_block_changes_nothing(fitted, planted):
    model = loaded(fitted)
    before = pickle.dumps(model)
    wrong = planted[0][500:600].copy()
    wrong.data[0] = -1
    for X, message in (
        (wrong, "Negative"),
        (planted[0][500:600, :100], "100 features"),
        (planted[0][500:600] * 1e9, "tokens"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X)
        assert pickle.dumps(model) == before


def test_changes_of_the_block_afterwards_change_nothing(fitted, planted):
    X = planted[0][500:600].astype(float)
    expected = updated(loaded(fitted), planted[0][500:700])
    model = loaded(fitted).partial_fit(X)
    X.data[:] = 7.0
    assert_same_draws(expected, model.partial_fit(planted[0][600:700]))


# ------------------------------------------------------------------------------------------------ what documents may be


def test_new_words_get_topics(planted):
    pandas = importorskip("pandas")
    X = pandas.DataFrame(planted[0].toarray(), columns=[f"w{j}" for j in range(120)])
    early = X.iloc[:500, :80]
    model = BayesianLDA(**MODEL, new_features="extend").fit(early)
    for start in range(500, 1000, 100):
        model.partial_fit(X.iloc[start : start + 100])
    assert model.components_.shape == (4, 120) and model.samples_["components"].shape[-1] == 120
    share = model.components_[:, 80:].sum()
    expected = BayesianLDA(**MODEL).fit(X.iloc[500:]).components_[:, 80:].sum()
    assert 0.3 * expected < share < expected
    np.testing.assert_allclose(model.samples_["components"].sum(axis=-1), 1.0, rtol=1e-4)
    assert_counts_are_those_of_the_assignments(model)
    forgetful = BayesianLDA(**MODEL, new_features="extend", keep_documents=False).fit(early).partial_fit(X.iloc[500:])
    assert 0.3 * expected < forgetful.components_[:, 80:].sum() < expected


@pytest.mark.parametrize("keep_documents", ["auto", False])
def test_fractions_count_in_part(planted, keep_documents):
    X = planted[0].astype(float)
    model = BayesianLDA(**MODEL, keep_documents=keep_documents).fit(X[:300])
    model.partial_fit(0.75 * X[300:500]).partial_fit(X[500:600])
    total = X[:300].sum() + 0.75 * X[300:500].sum() + X[500:600].sum()
    assert model._chains[0].record.counts[-1].mass.sum() == pytest.approx(total)
    assert model.perplexity(planted[1]) < 1.03 * BayesianLDA(**MODEL).fit(X[:600]).perplexity(planted[1])


@pytest.mark.parametrize("keep_documents", ["auto", False])
def test_effects_of_metadata_come_nearer_to_the_truth(keep_documents):
    data = make_dmr(1200, 100, 3, 2, 60, random_state=1)
    params = {"n_components": 3, "n_iter": 300, "random_state": 0, "keep_documents": keep_documents}
    model = DMRTopicModel(**params).fit(data.counts[:400], metadata=data.metadata[:400])
    for start in range(400, 1200, 200):
        part = slice(start, start + 200)
        model.partial_fit(data.counts[part], metadata=data.metadata[part])
    order = hellinger_distances(data.components, model.components_).argmin(axis=1)
    assert np.abs(model.coef_[order] - data.coef).max() < 0.35
    if keep_documents == "auto":
        at_once = DMRTopicModel(**params).fit(data.counts, metadata=data.metadata)
        other = hellinger_distances(data.components, at_once.components_).argmin(axis=1)
        spread = at_once.samples_["coef"][0].std(axis=0)[other]
        assert np.all(np.abs(model.coef_[order] - at_once.coef_[other]) < 5.0 * spread)
        assert_counts_are_those_of_the_assignments(model)


# Planted Dirichlet parameters of the documents of each kind.
KINDS = {"a": [0.8, 0.2, 0.2, 0.2], "b": [0.2, 0.8, 0.2, 0.2], "c": [0.1, 0.1, 0.3, 1.5]}


def of_kinds(kinds, seed=0):
    """Counts and metadata of documents of given kinds, and their topics."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(7).dirichlet(np.full(60, 0.1), 4)
    theta = [rng.dirichlet(KINDS[kind]) for kind in kinds]
    counts = np.array([rng.multinomial(30, each @ topics) for each in theta])
    return counts, {"length": rng.normal(size=len(kinds)), "kind": list(kinds)}, topics


def joined(*tables):
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


@pytest.fixture(scope="module")
def two_kinds():
    """Documents of kinds a and b, then of a and c, and a fit to the former."""
    first, later = of_kinds("ab" * 100, seed=1), of_kinds("ac" * 50, seed=2)
    return first, later, DMRTopicModel(4, n_iter=300, n_chains=2, random_state=0).fit(first[0], metadata=first[1])


def copied(model, **params):
    return pickle.loads(pickle.dumps(model)).set_params(**params)


def prevalence(model, topics, kinds="abc"):
    order = hellinger_distances(topics, model.components_).argmin(axis=1)
    return model.predict_prevalence({"length": np.zeros(len(kinds)), "kind": list(kinds)})[:, order]


@pytest.mark.parametrize("dispersion", ["shared", "topic"])
def test_new_levels_get_effects_as_in_a_fit_of_all_documents(two_kinds, dispersion):
    (X, metadata, topics), (later, more, _), _ = two_kinds
    params = {"n_components": 4, "n_iter": 300, "random_state": 0, "dispersion": dispersion}
    model = DMRTopicModel(**params).fit(X, metadata=metadata)
    with pytest.warns(UserWarning, match="metadata has new levels in 'kind': 'c'. They get coefficients"):
        model.partial_fit(later, metadata=more)
    assert model.metadata_names_ == ["length", "kind=a", "kind=b", "kind=c"]
    n_kept = model.samples_["coef"].shape[1]
    assert n_kept >= FEWEST_DRAWS and model.samples_["coef"].shape == (1, n_kept, 4, 5) == (
        1,
        n_kept,
        *model.coef_.shape,
    )
    assert_counts_are_those_of_the_assignments(model)
    at_once = DMRTopicModel(**params).fit(np.vstack([X, later]), metadata=joined(metadata, more))
    truth = np.array([np.array(each) / np.sum(each) for each in KINDS.values()])
    for found in (prevalence(model, topics), prevalence(at_once, topics)):
        assert np.abs(found - truth).max() < 0.12
    assert np.abs(prevalence(model, topics) - prevalence(at_once, topics)).max() < 0.06
    table = model.effects("kind")
    assert set(table["value"]) == {"b", "c"}
    effect = table[(table["value"] == "c") & (np.abs(table["difference"]) > 0.4)]
    assert len(effect) == 2 and np.all(effect["high"] - effect["low"] < 0.4)


def test_blocks_with_new_levels_are_known_and_others_follow(two_kinds):
    _, (later, more, _), fitted = two_kinds
    model = copied(fitted, handle_unknown="ignore").partial_fit(later, metadata=more)
    assert model.samples_["coef"].shape[0] == 2
    model.partial_fit(later, metadata=more)
    assert model.n_samples_seen_ == 300
    model.partial_fit(later[:40], metadata={"length": np.zeros(40), "kind": ["d", "c"] * 20})
    assert model.n_samples_seen_ == 340 and model.metadata_names_[-2:] == ["kind=c", "kind=d"]
    assert model.samples_["coef"].shape[1] >= FEWEST_DRAWS
    few = {"length": np.zeros(3), "kind": ["a", "d", "e"]}
    assert_allclose = np.testing.assert_allclose
    assert_allclose(copied(model).transform(later[:3], metadata=few), model.transform(later[:3], metadata=few))


def test_an_interrupted_update_with_new_levels_is_resumed(two_kinds):
    _, (later, more, _), fitted = two_kinds
    whole = copied(fitted, handle_unknown="ignore").partial_fit(later, metadata=more)
    stopped = copied(fitted, handle_unknown="ignore", callbacks=PressCtrlC(315))
    with interrupted():
        stopped.partial_fit(later, metadata=more)
    resumed = copied(stopped, callbacks=None).resume(later, metadata=more)
    assert_same_draws(resumed, whole)


def test_new_levels_are_refused_where_unknown_ones_are(two_kinds):
    _, (later, more, _), fitted = two_kinds
    model = copied(fitted, handle_unknown="error")
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="unknown levels in 'kind': 'c'"):
        model.partial_fit(later, metadata=more)
    assert model.metadata_names_ == ["length", "kind=a", "kind=b"]
    np.testing.assert_array_equal(model.coef_, before)
    model.partial_fit(later[::2], metadata={name: values[::2] for name, values in more.items()})


@pytest.mark.parametrize("why", ["forgotten", "formula"])
def test_new_levels_that_cannot_be_learnt_warn(two_kinds, why):
    (X, metadata, _), (later, more, _), fitted = two_kinds
    if why == "forgotten":
        model = copied(fitted).forget_documents()
    else:
        importorskip("formulaic")
        model = DMRTopicModel(4, formula="~ length + kind", n_iter=100, random_state=0).fit(X, metadata=metadata)
    names = list(model.metadata_names_)
    attributes = set(vars(model))
    with pytest.warns(UserWarning, match="unknown levels in 'kind': 'c'"):
        model.partial_fit(later, metadata=more)
    assert model.metadata_names_ == names and not set(vars(model)) - attributes - {"_pending"}


def test_priors_of_known_levels_stay_when_levels_are_new():
    rng = np.random.default_rng(0)
    rows, wider = (DenseRows(each, np.zeros(n), np.ones(n), True) for each, n in ((np.eye(2), 2), (np.eye(2, 4), 4)))
    coefficients = Coefficients(None, True, np.array([0.5, 1.0, 2.0]), 2, (1.0, 0.7))
    coefficients.value = rng.normal(size=(3, 3))
    before = coefficients.doc_priors(rows)
    coefficients.widen(NormalPrior(4, (1.0, 0.7)))
    np.testing.assert_allclose(coefficients.doc_priors(wider), before)
    np.testing.assert_allclose(np.exp(coefficients.mean[:, -1]), [0.5, 1.0, 2.0])
    assert not np.any(coefficients.value[:, 2:4])
    priors = NormalPrior(2, (1.0, 0.7)), NormalPrior(2, (0.6, 0.8))
    dispersed = DispersedMetadataPrior(np.array([0.5, 1.0]), priors)
    dispersed.coefficients.value = rng.normal(size=(2, 6))
    shard = shard_of(np.ones((2, 3)))
    group = np.arange(2)
    before = dispersed.sweep_priors(shard._replace(described=Described(group, None, rows)))[0]
    dispersed.widen(DispersedMetadataPrior(np.array([0.5, 1.0]), tuple(NormalPrior(4, (1.0, 0.7)) for _ in range(2))))
    after = dispersed.sweep_priors(shard._replace(described=Described(group, None, wider)))[0]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new, old)


@pytest.mark.parametrize("n_levels", [3, 80])
def test_encoded_columns_of_new_levels_come_last(n_levels):
    rng = np.random.default_rng(0)
    levels = [f"{i:02d}" for i in range(n_levels)]
    table = {"of": rng.choice(levels, size=300), "year": rng.normal(size=300), "in": rng.choice(["x", "y"], size=300)}
    encoder = MetadataEncoder().fit(table)
    assert encoder.with_levels_of(table)[0] is encoder
    wider, added = encoder.with_levels_of({"of": ["05x", "00"], "year": [0.0, 1.0], "in": ["x", "w"]})
    assert added == {"of": ["05x"], "in": ["w"]}
    assert wider.names == [*encoder.names, "of=05x", "in=w"] and encoder.n_metadata == wider.n_metadata - 2
    dense = [
        each.toarray() if sparse.issparse(each) else each
        for each in (wider.encode(table, 300, "error"), wider.widened(encoder.encode(table, 300, "error")))
    ]
    np.testing.assert_array_equal(*dense)
    known = wider.table({"of": ["05x", "00", "05x"], "year": [2.0, 1.0, 0.5], "in": ["x", "w", "w"]})
    assert sparse.issparse(known) == (n_levels > 64)
    assert wider.column_of(known, 0).tolist() == [wider.levels[0].index("05x"), 0, wider.levels[0].index("05x")]
    assert wider.column_of(known, 1).tolist() == [2.0, 1.0, 0.5] and wider.column_of(known, 2).tolist() == [0, 2, 2]
    for j, value in ((0, 1), (0, len(encoder.levels[0])), (1, 7.0), (2, 2)):
        changed = wider.with_value(known, j, value)
        assert wider.column_of(changed, j).tolist() == [value] * 3
        for other in {0, 1, 2} - {j}:
            np.testing.assert_array_equal(wider.column_of(changed, other), wider.column_of(known, other))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_documents_keep_their_metadata_when_others_are_appended(make):
    rng = np.random.default_rng(0)
    X, given = rng.poisson(0.4, size=(90, 12)), rng.integers(3, size=(90, 2)).astype(float)
    corpora = [
        MatrixCorpus.from_counts(X[part]).with_described(make(given[part]))
        for part in (slice(0, 30), slice(30, 60), slice(60, 90))
    ]
    kept = KeptCorpus(TokenCorpus(corpora[0], InMemoryShards, 2).documents)
    for corpus in corpora[1:]:
        before = documents_of(kept)
        kept, is_new = kept.append(corpus)
        after = documents_of(kept)
        assert is_new.sum() == 30 and [each for each, new in zip(after, is_new, strict=True) if not new] == before
        assert np.all(np.diff(kept.shard.group) >= 0)
    assert sorted(after) == sorted(
        (tuple(m), tuple(np.repeat(np.arange(12), x))) for m, x in zip(given, X, strict=True)
    )


def documents_of(kept):
    """The metadata and the words of each document."""
    shard, rows = kept.shard, kept.described
    rows = rows.toarray() if sparse.issparse(rows) else rows
    words = np.split(shard.words, shard.token_ptr[1:-1])
    return [(tuple(row), tuple(np.sort(own).tolist())) for row, own in zip(rows.tolist(), words, strict=True)]


def test_a_gamma_process_grows(planted):
    X, test = planted
    params = {"n_components": 12, "n_iter": 200, "random_state": 0}
    model = updated(GammaProcessTopicModel(**params).fit(X[:500]), X[500:])
    at_once = GammaProcessTopicModel(**params).fit(X)
    assert model.perplexity(test) < 1.02 * at_once.perplexity(test)
    assert_counts_are_those_of_the_assignments(model)
    model.forget_documents().partial_fit(test)
    assert np.all(np.isfinite(model.components_))


def test_blocks_are_appended_one_by_one(fitted, planted):
    X = planted[0]
    blocks = CountBlocks([sparse.csr_array(X[500:700]), sparse.csr_array(X[700:800])])
    model = loaded(fitted).partial_fit(blocks)
    assert_same_draws(model, loaded(fitted).partial_fit(X[500:700]).partial_fit(X[700:800]))


def test_a_fit_of_blocks_takes_in_others(planted):
    X, test = planted
    blocks = CountBlocks([sparse.csr_array(X[:300]), sparse.csr_array(X[300:500])])
    model = BayesianLDA(**MODEL).fit(blocks)
    before = model.perplexity(test)
    updated(model, X[500:])
    assert model.perplexity(test) < 1.005 * before
    assert model.n_samples_seen_ == 1000 and model.samples_["components"].shape[1] == growth.TAKING_IN
    np.testing.assert_array_equal(model.word_counts_, np.asarray(X.sum(axis=0)).ravel())


# ---------------------------------------------------------------------------------------------------------- forgetting


def test_forgotten_documents_are_nowhere_in_a_pickle_and_results_stay(planted):
    X = planted[0][:200].copy().tolil()
    X[17, 5] = 51_966  # two bytes that would be found
    X = X.tocsr()
    model = BayesianLDA(**{**MODEL, "n_iter": 20}).fit(X)
    kept = pickle.dumps(model)
    components, diagnostics = model.components_, model.diagnostics_
    model.forget_documents()
    small = pickle.dumps(model)
    assert len(small) < len(kept) - 6 * X.sum() + 20_000
    np.testing.assert_array_equal(model.components_, components)
    np.testing.assert_array_equal(model.diagnostics_["mean"], diagnostics["mean"])
    again = pickle.loads(small)
    assert again._kept is None and all(chain.z is None and chain.data is None for chain in again._chains)
    with pytest.raises(ValueError, match="the documents were dropped"):
        again.resume(X)
    assert again.partial_fit(planted[0][200:300]).components_.shape == components.shape


@pytest.mark.parametrize("case", LDA, ids=lambda case: case.id)
def test_every_sampler_forgets(planted, case):
    X = planted[0][:60]
    model = case.new(n_iter=12).fit(X)
    components = model.components_
    again = pickle.loads(pickle.dumps(model.forget_documents()))
    np.testing.assert_array_equal(model.components_, components)
    np.testing.assert_array_equal(again.components_, components)
    for each in (model, again):
        assert all(chain.data is None for chain in each._chains)
        if case.streams:
            assert np.all(np.isfinite(each.partial_fit(X[:30]).components_))


def test_beyond_the_limit_draws_take_in_blocks_and_memory_stays(fitted, planted):
    X, test = planted
    model = loaded(fitted, keep_documents=int(X[:600].sum()))
    model.partial_fit(X[500:550])
    assert model._kept.n_docs == 550
    before = model.perplexity(test)
    updated(model, X[550:])
    assert model._kept is None and model.n_samples_seen_ == 1000
    assert model.perplexity(test) < 1.005 * before
    assert model._chains[0].record.counts[0].mass.sum() == X.sum()


def test_draws_that_take_in_a_block_learn_its_words_and_leave_the_others(planted):
    X = planted[0]
    model = BayesianLDA(**MODEL, keep_documents=False).fit(X[:500])
    block = np.zeros((50, 120))
    block[:, 7] = 40.0
    before = model.components_.copy()
    model.partial_fit(block)
    moved = model.components_ - before
    assert moved[:, 7].max() > 0.05 and np.delete(moved, 7, axis=1).max() < 0.02
