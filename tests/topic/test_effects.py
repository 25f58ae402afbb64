"""Effects on a population: draws of proportions, random weights, regressions, and where the documents come from."""

import copy
import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.chains.agreement import Agreement
from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.covariates.effects import Counterfactuals, ObservedMetadata
from sk_sgmcmc.covariates.formula import FormulaEncoder
from sk_sgmcmc.covariates.metadata import MetadataEncoder
from sk_sgmcmc.covariates.overlap import warn_of_extrapolation
from sk_sgmcmc.datasets import CountBlocks, load_sotu, make_dmr
from sk_sgmcmc.inspection import PrevalenceDisplay
from sk_sgmcmc.samplers import Gibbs
from sk_sgmcmc.topic._counts import doc_counts
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.doc_counts import DocumentCounts, DocumentRecord
from sk_sgmcmc.topic._counts.word_prior import WordPrior
from sk_sgmcmc.topic._dmr.permutations import Comparison, KnownProportions, _Refits, permuted
from sk_sgmcmc.topic._dmr.proportions import RecordedCounts, RecordedProportions, Weights
from sk_sgmcmc.topic._dmr.regression import RegressionMean
from tests.cases import THRESHOLD, z_scores
from tests.common.compare import PressCtrlC, interrupted
from tests.conftest import importorskip
from tests.naive import lda as naive
from tests.tiny_lda import BETA, COUNTS, batch_means, tokens_of
from tests.topic.test_dmr_blocks import GROUP, PRIORS, Held, tiny_chain

DATA = make_dmr(120, 30, 3, 2, 25, random_state=0)
X = sparse.csr_array(DATA.counts)
YEAR = 1900.0 + np.round(30 * DATA.metadata[:, 0])
PARTY = np.where(DATA.metadata[:, 1] > 0, "whig", "tory")
PARTY[::7] = "free"
TABLE = {"year": YEAR, "party": PARTY}
SMALL = {"n_components": 3, "n_iter": 40, "random_state": 0}


def fitted(**params):
    return DMRTopicModel(**{**SMALL, **params}).fit(X, metadata=TABLE)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def formula():
    importorskip("formulaic")
    return fitted(formula="~ party * year")


def assert_same(a, b):
    for name in ("difference", "low", "high", "positive"):
        np.testing.assert_array_equal(np.asarray(a[name]), np.asarray(b[name]))


def assert_close(a, b):
    for name in ("difference", "low", "high"):
        np.testing.assert_allclose(np.asarray(a[name]), np.asarray(b[name]), atol=1e-10)


# -------------------------------------------------------------------------------------- proportions, by enumeration

N_STEPS = 1500


def exact_proportions():
    """Means and second moments of the documents' proportions of the first topic, given words and metadata."""
    docs, words = tokens_of(COUNTS)
    alpha = PRIORS[GROUP]
    z, p = naive.posterior_of_assignments(words, docs, COUNTS.shape[1], 2, alpha, BETA)
    counts = np.stack([(z[:, docs == d] == 0).sum(axis=1) for d in range(3)], axis=1)
    a, total = alpha[:, 0] + counts, alpha.sum(axis=1) + COUNTS.sum(axis=1)
    return np.concatenate([p @ (a / total), p @ (a * (a + 1.0) / (total * (total + 1.0)))])


class FirstPrior(Held):
    """Mistake: proportions are drawn under the prior of the first group."""

    def draw_proportions(self, draw, documents, counts, seed):
        first = documents._replace(described=documents.described._replace(group=np.zeros_like(documents.group)))
        return super().draw_proportions(draw, first, counts, seed)


def drawn_proportions(seed, prior, shard_tokens, place=None):
    chain = tiny_chain(seed, prior(), shard_tokens)
    chain.plan = DrawPlan(N_STEPS, 100, 1)
    chain.run(N_STEPS)
    metadata = GROUP[:, None].astype(float)
    recorded = RecordedCounts.of_chains([chain], np.array([chain.record.orders]))
    one = Agreement.of_one_chain(2)
    encoder = MetadataEncoder().fit(metadata)
    draws = RecordedProportions(recorded, encoder, ObservedMetadata.of(metadata), one, 3, seed)
    theta = np.array([each[:, 0] for *_, each in draws.parts()])
    return np.hstack([theta, theta**2])


@pytest.mark.parametrize("shard_tokens", [3, 100])
def test_proportions_have_their_exact_distribution_given_words_and_metadata(shard_tokens, global_random_seed):
    values = drawn_proportions(global_random_seed, Held, shard_tokens)
    assert np.abs(z_scores(batch_means(values), exact_proportions())).max() < THRESHOLD


def test_proportions_that_ignore_metadata_or_the_order_of_documents_are_rejected(global_random_seed):
    values = drawn_proportions(global_random_seed, FirstPrior, 100)
    assert np.abs(z_scores(batch_means(values), exact_proportions())).max() > 1.3 * THRESHOLD
    values = drawn_proportions(global_random_seed, Held, 100)[:, [0, 2, 1, 3, 5, 4]]  # As the shard orders them.
    assert np.abs(z_scores(batch_means(values), exact_proportions())).max() > 1.3 * THRESHOLD


# ------------------------------------------------------------------------------------------------------- the weights


class Repeated(KnownProportions):
    """The same proportions in many draws."""

    def __init__(self, theta, observed, n_draws, seed):
        super().__init__(theta, observed)
        self.shape, self.salt = (1, n_draws, theta.shape[1]), np.uint64(seed)
        self.keys = np.random.default_rng(seed).integers(2**63, size=len(theta)).astype(np.uint64)

    def parts(self):
        for s in range(self.shape[1]):
            yield 0, s, slice(None), self.theta


class Once(Weights):
    """Mistake: all draws have the weights of the first."""

    def of_draw(self, c, s, n_docs):
        return super().of_draw(c, 0, n_docs)


def contrasts(seed, make=Weights, cluster=None, n_draws=4000):
    """Draws of the difference between two groups, its square about the mean, and their exact expectations."""
    rng = np.random.default_rng(0)
    x, theta = np.arange(24) // 4 % 2, rng.dirichlet([0.5, 0.5, 0.5], size=24)
    encoder = MetadataEncoder().fit(x[:, None].astype(float))
    observed = ObservedMetadata.of(x[:, None].astype(float))
    draws = Repeated(theta, observed, n_draws, seed)
    means = RegressionMean(encoder, draws, make(draws, True, cluster)).averages(
        [{"x0": 1.0}, {"x0": 0.0}], Counterfactuals(encoder, observed, None)
    )[0]
    found = means[:, :, 0] - means[:, :, 1]
    units = theta if cluster is None else np.stack([theta[cluster == c].mean(axis=0) for c in range(cluster.max() + 1)])
    of = x if cluster is None else x[np.unique(cluster, return_index=True)[1]]
    mean = units[of == 1].mean(axis=0) - units[of == 0].mean(axis=0)
    variance = sum(units[of == g].var(axis=0) / ((of == g).sum() + 1.0) for g in (0, 1))
    return np.hstack([found, (found - mean) ** 2]), np.concatenate([mean, variance])


@pytest.mark.parametrize("cluster", [None, np.arange(24) // 4])
def test_weights_are_a_bayesian_bootstrap_of_documents_or_of_clusters(cluster, global_random_seed):
    values, exact = contrasts(global_random_seed, cluster=cluster)
    assert np.abs(z_scores(batch_means(values), exact)).max() < THRESHOLD


def test_weights_that_are_not_drawn_again_or_ignore_clusters_are_rejected(global_random_seed):
    values, exact = contrasts(global_random_seed, Once)
    assert np.ptp(values, axis=0).max() < 1e-12 and np.abs(values[0] - exact).max() > 1e-3
    _, of_clusters = contrasts(global_random_seed, cluster=np.arange(24) // 4, n_draws=1)
    values, _ = contrasts(global_random_seed)
    assert np.abs(z_scores(batch_means(values), of_clusters)).max() > 1.3 * THRESHOLD


# ---------------------------------------------------------------------------------------------------- the regression


def by_hand(model, design, settings, *, reweights=True, labels=None, seed=0):
    """Draws of the mean proportions at designs (n_settings, n_docs, n_columns), by weighted least squares in NumPy."""
    recorded = model._recorded_counts()
    draws = RecordedProportions(recorded, model._encoder, model._observed, model._agreement, X.shape[1], seed)
    cluster = None if labels is None else np.unique(labels, return_inverse=True)[1]
    weights, found = Weights(draws, reweights, cluster), []
    for c, s, _, theta in draws.parts():
        w = weights.of_draw(c, s, len(theta))
        root = np.sqrt(w)[:, None]
        coef = np.linalg.lstsq(root * design, root * theta, rcond=None)[0]
        found.append([w @ (at @ coef) / w.sum() for at in settings])
    return np.array(found)  # (n_draws, n_settings, n_topics)


def assert_differences(table, draws, mass=0.9):
    ends = np.quantile(draws, [(1 - mass) / 2, (1 + mass) / 2], axis=0, method="weibull")
    for name, expected in zip(("difference", "low", "high"), (draws.mean(axis=0), *ends), strict=True):
        np.testing.assert_allclose(np.asarray(table[name]), expected, atol=1e-9)


def columns(party, year, interact):
    party = np.broadcast_to(party, year.shape)
    levels = np.stack([party == "tory", party == "whig"], axis=1).astype(float)
    out = np.column_stack([np.ones(year.size), levels, year])
    return np.column_stack([out, levels * year[:, None]]) if interact else out


@pytest.mark.parametrize("of", ["population", "documents"])
def test_effects_are_those_of_weighted_least_squares_in_each_draw(of, model, formula):
    for each, interact in ((model, False), (formula, True)):
        design = columns(PARTY, YEAR, interact)
        ends = [columns(level, YEAR, interact) for level in ("free", "whig")]
        draws = by_hand(each, design, ends, reweights=of == "population")
        table = each.effects("party", "whig", of=of, reference="free")
        assert_differences(table, draws[:, 1] - draws[:, 0])
        np.testing.assert_allclose(np.asarray(table["prevalence"]), draws[:, 1].mean(axis=0), atol=1e-9)
        ends = [columns("tory", np.full(120, year), interact) for year in (1890.0, 1910.0)]
        draws = by_hand(each, design, ends, reweights=of == "population")
        table = each.effects("year", [1890.0, 1910.0], of=of, given={"party": "tory"}, interval=0.8)
        assert_differences(table, draws[:, 1] - draws[:, 0], 0.8)
        table = each.effects("year", [1890.0, 1910.0], of=of, given={"party": "tory"}, kind="prevalence")
        np.testing.assert_allclose(np.asarray(table["prevalence"]).reshape(3, 2), draws.mean(axis=0).T, atol=1e-9)


def test_a_single_category_compares_weighted_means_of_groups():
    model = DMRTopicModel(**SMALL).fit(X, metadata={"party": PARTY})
    draws = RecordedProportions(
        model._recorded_counts(), model._encoder, model._observed, model._agreement, X.shape[1], 0
    )
    weights, found = Weights(draws, True), []
    for c, s, _, theta in draws.parts():
        w = weights.of_draw(c, s, 120)
        whig, tory = (np.average(theta[rows], axis=0, weights=w[rows]) for rows in (PARTY == "whig", PARTY == "tory"))
        found.append(whig - tory)
    assert_differences(model.effects("party", "whig", reference="tory"), np.array(found))


def test_clusters_and_documents_over_which_to_average(formula):
    labels = np.array([f"speech {i}" for i in np.arange(120) // 6])
    design = columns(PARTY, YEAR, True)
    ends = [columns(level, YEAR, True) for level in ("free", "whig")]
    draws = by_hand(formula, design, ends, labels=labels)
    assert_differences(formula.effects("party", "whig", reference="free", groups=labels), draws[:, 1] - draws[:, 0])
    some = {"year": YEAR[:9], "party": PARTY[:9]}
    coefs = by_hand(formula, design, np.eye(6)[:, None] * np.ones((1, 120, 1)))
    row = (columns("whig", YEAR[:9], True) - columns("free", YEAR[:9], True)).mean(axis=0)
    table = formula.effects("party", "whig", reference="free", metadata=some)
    assert_differences(table, np.einsum("p,spk->sk", row, coefs))


def test_levels_that_no_document_has_give_no_number():
    pandas = importorskip("pandas")
    party = pandas.Categorical(PARTY, ["free", "tory", "whig", "green"])
    model = DMRTopicModel(**SMALL).fit(X, metadata=pandas.DataFrame({"party": party, "year": YEAR}))
    with pytest.warns(UserWarning, match="do not determine the prevalence at party='green', so these rows are NaN"):
        table = model.effects("party")
    green = table["value"] == "green"
    numbers = ["prevalence", "difference", "low", "high", "positive"]
    assert table.loc[green, numbers].isna().all(axis=None) and table.loc[~green, numbers].notna().all(axis=None)
    assert model.effects("party", of="prior")["difference"].notna().all()


# ------------------------------------------------------------------------------------------- where levels were seen

N_DOCS = 1000
YEARS = np.random.default_rng(0).integers(1800, 2001, N_DOCS).astype(float)
NARROW = np.where((YEARS >= 1841) & (YEARS <= 1852) & (np.arange(N_DOCS) % 2 == 0), "whig", "tory")
NARROW[(NARROW == "tory") & (np.arange(N_DOCS) % 3 == 0)] = "free"
ALL = ["free", "tory", "whig"]


class Regression:
    """The documents of a regression, without the regression."""

    def __init__(self, metadata, cluster=None, formula=None):
        encoder = (MetadataEncoder() if formula is None else FormulaEncoder(formula)).fit(metadata)
        self.observed = ObservedMetadata.of(encoder.table(metadata))
        self.weights = SimpleNamespace(cluster=cluster)
        self.encoder = encoder


def warned(regression, settings, given=None, observed=None, **options):
    """The warning about settings, or None."""
    average = Counterfactuals(regression.encoder, observed or regression.observed, given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_extrapolation(regression, average, settings, "X= and metadata=", **options)
    assert len(caught) <= 1
    return str(caught[0].message) if caught else None


def each_value(name, values):
    return [{name: value} for value in values]


def test_a_level_seen_in_a_narrow_range_is_named_with_both_ranges_and_what_to_type():
    regression = Regression({"party": NARROW, "year": YEARS})
    message = warned(regression, each_value("party", ALL), is_contrast=True)
    assert message.startswith("party='whig' was seen only at year=1841 to 1852, of 1800 to 2000; 9")
    assert "Pass only documents that overlap in year, by X= and metadata=" in message
    assert message.endswith("or leave such values out, by at=['free', 'tory'].")
    assert warned(regression, each_value("party", ["free", "tory"]), is_contrast=True) is None
    rows = (YEARS >= 1841) & (YEARS <= 1852)
    own = Regression({"party": NARROW[rows], "year": YEARS[rows]})
    assert warned(own, each_value("party", np.unique(NARROW[rows])), is_contrast=True) is None


def test_holding_a_number_helps_means_and_differences_in_interactions_but_not_differences_of_parallel_lines():
    importorskip("formulaic")
    table = {"party": NARROW, "year": YEARS}
    for regression, interact in (
        (Regression(table), False),
        (Regression(table, formula="~ party + bs(year, df=4)"), False),
        (Regression(table, formula="~ party * bs(year, df=4)"), True),
    ):
        for year in (1846, 1990):
            given = {"year": year}
            contrast = warned(regression, each_value("party", ALL), given, is_contrast=True)
            mean = warned(regression, each_value("party", ALL), given)
            assert (mean is None) == (year == 1846)
            if interact:
                assert contrast == mean
            else:
                assert "holding year changes no difference, as the formula has no interaction party:year" in contrast
        assert ", not with year=1990." in mean and "Hold year where it was seen with all values of party" in mean


def test_a_number_is_extrapolated_where_most_documents_have_levels_not_seen_there():
    regression = Regression({"party": np.where(YEARS < 1850, "whig", "tory"), "year": YEARS})
    message = warned(regression, each_value("year", [1900.0, 1810.0]), is_contrast=True)
    assert message.startswith("year=1810 was seen only with party='whig'; ")
    assert warned(regression, each_value("year", [1900.0, 1990.0]), is_contrast=True) is None
    message = warned(regression, each_value("year", [1900.0, 1990.0]), {"party": "whig"})
    assert message.startswith("year=1900 was seen only with party='tory', not with party='whig'")
    assert "The same holds for year=1990." in message
    message = warned(regression, each_value("year", np.linspace(1800.0, 1840.0, 9)))
    assert "The same holds for 8 other values of year." in message


def test_levels_that_never_meet_most_of_another_covariate_are_named():
    kind = np.where(NARROW == "whig", "written", np.where(np.arange(N_DOCS) % 4 == 0, "written", "spoken"))
    message = warned(Regression({"party": NARROW, "type": kind}), each_value("party", ALL))
    assert message.startswith("party='whig' was seen only with type='written'; ")
    table = {"party": NARROW, "spoken": (kind == "spoken").astype(float)}  # two numbers are levels too
    message = warned(Regression(table), each_value("party", ALL))
    assert message.startswith("party='whig' was seen only with spoken=0; ")
    message = warned(Regression(table), each_value("spoken", [0.0, 1.0]), {"party": "whig"})
    assert message.startswith("spoken=1 was seen only with party='free', 'tory', not with party='whig'.")


def test_averages_over_documents_within_the_range_are_none():
    regression = Regression({"party": NARROW, "year": YEARS})
    rows = (YEARS >= 1842) & (YEARS <= 1850)
    near = ObservedMetadata.of(regression.encoder.table({"party": NARROW[rows], "year": YEARS[rows]}))
    assert warned(regression, each_value("party", ALL), observed=near) is None


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("n_docs", [8, 30, 300])
def test_designs_that_overlap_at_random_do_not_warn(n_docs, missing, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for trial in range(60):
        n_levels = rng.integers(2, 9)
        shares = rng.dirichlet(np.full(n_levels, 0.5))  # uneven: some levels have one document
        party = np.append(rng.choice(n_levels, n_docs - 2, p=shares), [0, 1]).astype(str).astype(object)
        year = [rng.random, rng.standard_cauchy, lambda n: rng.integers(3, size=n) * 1.0][trial % 3](n_docs)
        if missing:
            year[rng.random(n_docs) < missing], party[1:-1][rng.random(n_docs - 2) < missing] = np.nan, None
        kind = np.append(rng.integers(12, size=n_docs - 2), [0, 1]).astype(str)
        regression = Regression({"party": party, "year": year, "type": kind, "old": rng.integers(2, size=n_docs) * 1.0})
        average = Counterfactuals(regression.encoder, regression.observed, None)
        for name in average.encoder.covariates:
            assert warned(regression, each_value(name, average.values(name)), is_contrast=trial % 2 == 0) is None
        seen = average.seen("year")[0]
        grid = np.linspace(seen[0], seen[-1], 5).tolist()
        if trial % 3 == 0:  # the ends of heavy tails are extrapolations
            assert warned(regression, each_value("year", grid)) is None


def test_few_clusters_in_a_narrow_range_are_chance():
    speech = np.arange(N_DOCS) // 50
    year = 1800.0 + 10.0 * np.random.default_rng(1).permutation(20)[speech]
    party = np.where(np.isin(speech, speech[np.argsort(year)][[250, 350, 375]]), "whig", "tory")
    table = {"party": party, "year": year}
    assert "was seen only at year" in warned(Regression(table), each_value("party", ["tory", "whig"]))
    assert warned(Regression(table, cluster=speech), each_value("party", ["tory", "whig"])) is None


def test_effects_and_displays_warn_once_and_name_their_own_arguments():
    counts = sparse.csr_array(np.random.default_rng(0).poisson(1.0, (N_DOCS, 12)))
    model = DMRTopicModel(2, n_iter=40, random_state=0).fit(counts, metadata={"party": NARROW, "year": YEARS})
    with pytest.warns(UserWarning, match="party='whig' was seen only at year=1841 to 1852") as caught:
        model.effects("party")
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.warns(UserWarning, match="by X= and average_over=; or leave such values out") as caught:
        PrevalenceDisplay.from_estimator(model, "party")
    assert len(caught) == 1
    rows = (YEARS >= 1841) & (YEARS <= 1852)
    metadata = {"party": NARROW[rows], "year": YEARS[rows]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.effects("party", at=["free", "tory"])
        model.effects("party", X=counts[rows], metadata=metadata)
        model.effects("party", of="prior")
        PrevalenceDisplay.from_estimator(model, "year", by="party")


def test_a_party_of_few_years_in_the_state_of_the_union():
    importorskip("formulaic")
    sotu = load_sotu()
    regression = Regression(sotu.metadata, formula="~ party + year")
    average = Counterfactuals(regression.encoder, regression.observed, None)
    message = warned(regression, each_value("party", average.values("party")), is_contrast=True)
    assert all(party in message for party in ("'Whig'", "'Federalist'", "at=['Democratic', 'Republican']"))
    assert warned(regression, each_value("year", average.values("year")), is_contrast=True) is None


# ----------------------------------------------------------------------------------- where the documents come from


def recorded_lengths(model):
    """Length of each document in each recorded draw."""
    (chain,) = model._chains
    return [np.vstack(list(each.tables(7))).sum(axis=1) for each in chain.doc_record.counts.values()]


def test_counts_are_in_the_order_of_the_documents_in_memory_in_blocks_and_after_updates():
    lengths = np.asarray(X.sum(axis=1)).ravel()
    halves = [slice(0, 70), slice(70, 120)]
    parts = [{name: values[half] for name, values in TABLE.items()} for half in halves]
    blocks = CountBlocks([X[half] for half in halves], shard_tokens=700)
    in_blocks = DMRTopicModel(**SMALL).fit(blocks, metadata=parts)
    updated = DMRTopicModel(**SMALL)
    for half, part in zip(halves, parts, strict=True):
        updated.partial_fit(X[half], metadata=part)
    weighted = DMRTopicModel(**SMALL).fit(X * 0.75, metadata=TABLE)
    for model, factor in ((fitted(), 1.0), (in_blocks, 1.0), (updated, 1.0), (weighted, 0.75)):
        found = recorded_lengths(model)
        for each in found:
            np.testing.assert_allclose(each, factor * lengths[: each.size], rtol=1e-6)
        assert found[-1].size == 120 and model._observed.place.size == 120
        assert np.isfinite(np.asarray(model.effects("party")["low"], dtype=float)).all()
    _, group = np.unique(PARTY, return_inverse=True)
    table = updated._encoder.column_of(updated._observed.table, 1)[updated._observed.place]
    np.testing.assert_array_equal(table, group)


def test_after_an_update_draws_are_those_of_all_documents():
    half = slice(0, 60)
    model = DMRTopicModel(3, n_iter=120, random_state=0)
    model.fit(X[half], metadata={name: values[half] for name, values in TABLE.items()})
    small = slice(60, 62)  # Too few to make sweeps due.
    model.partial_fit(X[small], metadata={name: values[small] for name, values in TABLE.items()})
    sizes = {each.n_docs for each in model._recorded_counts().counts[0]}
    assert sizes == {60}
    assert np.isfinite(np.asarray(model.effects("party", groups=np.arange(62) // 2)["low"], dtype=float)).all()
    rest = slice(62, 120)
    model.partial_fit(X[rest], metadata={name: values[rest] for name, values in TABLE.items()})
    assert {each.n_docs for each in model._recorded_counts().counts[0]} == {120}


def test_an_interrupted_update_knows_its_documents():
    halves = [slice(0, 60), slice(60, 120)]
    parts = [{name: values[half] for name, values in TABLE.items()} for half in halves]
    model = DMRTopicModel(**SMALL).fit(X[halves[0]], metadata=parts[0]).set_params(callbacks=PressCtrlC(45))
    with interrupted():
        model.partial_fit(X[halves[1]], metadata=parts[1])
    assert model._observed.place.size == 120
    assert np.isfinite(np.asarray(model.effects("party", groups=np.arange(120) // 2)["low"], dtype=float)).all()
    with pytest.raises(ValueError, match="`metadata` must be passed"):
        model.transform(X[halves[0]])


def test_without_counts_effects_name_the_alternatives(model):
    loaded = pickle.loads(pickle.dumps(model))
    expected = loaded.effects("party", X=X, metadata=TABLE)
    assert_same(loaded.effects("party"), model.effects("party"))
    prior = loaded.effects("party", of="prior")
    loaded.forget_documents()
    fresh = fitted(assignments="fresh", total_samples=120)
    for each in (loaded, fitted(keep_documents=False), fresh):
        for of in ("population", "documents"):
            with pytest.raises(ValueError, match=r'Pass the documents as X=.*or pass of="prior"'):
                each.effects("party", of=of)
    assert_same(loaded.effects("party", X=X, metadata=TABLE), expected)
    assert_same(loaded.effects("party", of="prior"), prior)
    assert np.isfinite(np.asarray(fresh.effects("party", X=X)["low"], dtype=float)).all()
    loaded.partial_fit(X[:9], metadata={name: values[:9] for name, values in TABLE.items()})
    with pytest.raises(ValueError, match="pass metadata="):
        loaded.effects("party")


def test_draws_given_documents_agree_with_recorded_ones_and_ignore_the_order_of_rows(model):
    given, own = model.effects("party", X=X, metadata=TABLE), model.effects("party")
    width = np.asarray(own["high"]) - np.asarray(own["low"])
    assert np.all(np.abs(np.asarray(given["difference"]) - np.asarray(own["difference"])) < width)
    order = np.random.default_rng(0).permutation(120)
    table, labels = {name: values[order] for name, values in TABLE.items()}, np.arange(120) % 9
    assert_close(model.effects("party", X=X[order], metadata=table), given)
    assert_close(
        model.effects("party", X=X[order], metadata=table, groups=labels[order]),
        model.effects("party", X=X, metadata=TABLE, groups=labels),
    )
    in_blocks = CountBlocks([X[:50], X[50:]])
    width = np.asarray(given["high"]) - np.asarray(given["low"])
    found = model.effects("party", X=in_blocks, metadata=TABLE)
    assert np.all(np.abs(np.asarray(found["difference"]) - np.asarray(given["difference"])) < width)


def test_seeds_and_threads_and_chains(model):
    assert_same(model.effects("party"), model.effects("party"))
    assert_same(fitted(n_jobs=2).effects("party"), model.effects("party"))
    other = model.effects("party", random_state=1)
    assert not np.array_equal(np.asarray(other["low"]), np.asarray(model.effects("party")["low"]))
    several = fitted(n_chains=2)
    assert several._recorded_counts().orders.shape[0] == 2
    assert_same(several.effects("party"), fitted(n_chains=2, n_jobs=2).effects("party"))


def test_recording_changes_no_draw(model):
    other = fitted(keep_documents=False)
    for name in ("coef", "components"):
        np.testing.assert_array_equal(other.samples_[name], model.samples_[name])
    assert other._chains[0].doc_record is None and len(model._chains[0].doc_record.counts) == 20


def test_effects_of_merged_topics_add_up(model):
    merged = pickle.loads(pickle.dumps(model.merge_topics([0, 2])))
    whole = np.asarray(model.effects("party")["difference"]).reshape(3, 2)
    found = np.asarray(merged.effects("party")["difference"]).reshape(2, 2)
    np.testing.assert_allclose(found, [whole[0] + whole[2], whole[1]], atol=1e-12)


def test_bad_arguments_change_nothing(model):
    before = pickle.dumps(model.effects("party"))
    for bad, message in (
        ({"of": "sample"}, r'`of` must be "population", "documents" or "prior"; got \'sample\''),
        ({"of": "documents", "groups": np.arange(120)}, "`groups` reweights"),
        ({"of": "prior", "X": X}, "`X` has no use"),
        ({"groups": np.arange(9)}, "a label for each of the 120 documents"),
        ({"groups": [None, *range(119)]}, "1 missing labels"),
        ({"groups": np.r_[np.nan, np.arange(119)]}, "1 missing labels"),
        ({"X": X[:9]}, "`metadata` must be passed with documents other than those of fit"),
        ({"X": X[:9], "metadata": TABLE}, "120 rows and X has 9"),
    ):
        with pytest.raises(ValueError, match=message):
            model.effects("party", **bad)
    assert pickle.dumps(model.effects("party")) == before
    wide = sparse.random(120, 2001, density=0.01, random_state=0, format="csr")
    many = DMRTopicModel(3, n_iter=4, random_state=0).fit(X, metadata=wide)
    with pytest.raises(ValueError, match="2001 columns"):
        many.effects("x7", at=[0.0, 1.0])


# -------------------------------------------------------------------------------------------------------- the record


def test_the_record_keeps_evenly_spaced_draws_within_its_limit(monkeypatch):
    counts = sparse.csr_array(np.array([[2, 0, 1], [0, 0, 0], [300, 1, 0]]))
    place = np.array([2, 0, 1], dtype=np.int32)
    one = DocumentCounts([(counts, place)])
    np.testing.assert_array_equal(np.vstack(list(one.tables(2))), [[0, 0, 0], [300, 1, 0], [2, 0, 1]])
    assert one.nbytes == 3 + 4 + 2 * 4
    record = DocumentRecord(most_bytes=40 * one.nbytes)
    for step in range(1, 101):
        record.offer(step, lambda: [(counts, place)])
    assert list(record.counts) == list(range(1, 101, 4)) and not record.exceeded
    record.keep_only([1, 5, 9])
    assert list(record.counts) == [1, 5, 9]
    record = DocumentRecord(most_bytes=5 * one.nbytes)
    for step in range(20):
        record.offer(step, lambda: [(counts, place)])
    assert record.exceeded and not record.counts
    monkeypatch.setattr(doc_counts, "_CELLS_AT_ONCE", 7)
    assert_same(fitted().effects("party"), fitted().effects("party"))


# ------------------------------------------------------------------------------------------------- permutation test


def test_permutations_are_of_documents_within_clusters_or_of_clusters():
    rng = np.random.default_rng(0)
    column, cluster = np.arange(12.0), np.arange(12) // 4
    assert sorted(permuted(column, None, rng)) == list(range(12))
    within = permuted(column, cluster, rng)
    assert np.array_equal(cluster[within], cluster) and sorted(within) == list(range(12))
    assert not np.array_equal(within, np.arange(12))
    unsorted = np.arange(12) % 4
    within = permuted(column, unsorted, rng)
    assert np.array_equal(unsorted[within], unsorted) and sorted(within) == list(range(12))
    constant = cluster.astype(float)
    found = {tuple(constant[permuted(constant, cluster, rng)][::4]) for _ in range(50)}
    assert len(found) == 6


@pytest.mark.parametrize("kind", ["dict", "frame", "array"])
def test_permuted_effects_are_small_beside_those_that_were_planted(kind):
    metadata, name = TABLE, "year"
    if kind == "frame":
        metadata = importorskip("pandas").DataFrame(TABLE, index=np.arange(120)[::-1])
    elif kind == "array":
        metadata, name = DATA.metadata, "x0"
    model = DMRTopicModel(**SMALL).fit(X, metadata=metadata)
    table = model.permutation_test(X, name, metadata=metadata, n_permutations=99, refit=False)
    strongest = int(np.argmax(np.abs(np.asarray(table["difference"]))))
    assert np.asarray(table["p_value"])[strongest] == 0.01 and "excluded" not in table
    assert np.all(np.asarray(table["permuted_low"]) < 0) and np.all(np.asarray(table["permuted_high"]) > 0)
    again = model.permutation_test(X, name, metadata=metadata, n_permutations=99, refit=False)
    np.testing.assert_array_equal(np.asarray(again["p_value"]), np.asarray(table["p_value"]))


def test_permutations_with_fits_compare_the_effects_of_the_fits(model):
    table = model.permutation_test(X, "party", "whig", reference="tory", metadata=TABLE, n_permutations=2)
    own = model.effects("party", "whig", reference="tory")
    np.testing.assert_array_equal(np.asarray(table["difference"]), np.asarray(own["difference"]))
    assert set(np.asarray(table["excluded"])) <= {0.0, 0.5, 1.0}
    assert set(np.round(np.asarray(table["p_value"]), 9)) <= {round(i / 3, 9) for i in (1, 2, 3)}
    for bad, message in (
        ({"n_permutations": 0}, "n_permutations"), ({"covariate": "month"}, "'month'"),
        ({"at": ["whig"]}, "needs two values"), ({"groups": [1]}, "a label for each"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            model.permutation_test(X, **{"covariate": "party", "metadata": TABLE, "n_permutations": 2, **bad})
    with pytest.raises(ValueError, match="merged"):
        model.merge_topics([0, 1]).permutation_test(X, "party", metadata=TABLE)


def test_fits_to_permuted_metadata_have_the_topics_of_the_model(model):
    compared = Comparison("party", ["tory", "whig"], [(1, 0)])
    turned, order = copy.copy(model), [1, 2, 0]
    turned.components_ = model.components_[order]
    # With the seed of the model and its metadata, the fit is the same as that of the model.
    difference, excludes = _Refits(turned, X, None, None, compared, 0.9, None).effects(TABLE, 0)
    expected = model.effects("party", "whig", reference="tory")
    np.testing.assert_array_equal(difference[:, 0], np.asarray(expected["difference"])[order])
    excluded = (np.asarray(expected["low"]) > 0) | (np.asarray(expected["high"]) < 0)
    np.testing.assert_array_equal(excludes[:, 0], excluded[order])


# -------------------------------------------------------------------------------------------------------- other chains


def test_chains_of_minibatches_with_stored_assignments_are_recorded_too():
    model = fitted(sampler="scir", assignments="stored", batch_size=40, n_iter=30)
    found = recorded_lengths(model)
    np.testing.assert_array_equal(found[-1], np.asarray(X.sum(axis=1)).ravel())
    assert np.isfinite(np.asarray(model.effects("party")["low"], dtype=float)).all()


def test_a_chain_without_metadata_records_nothing():
    assert CollapsedChain(
        np.random.SeedSequence(0), DrawPlan(4, 1, 1), Gibbs()._resolved(None), WordPrior(BETA, 3, 2), Held(),
        init="random",
    ).doc_record is not None  # fmt: skip
    with pytest.warns(UserWarning, match="No metadata"):
        model = DMRTopicModel(3, n_iter=4, random_state=0).fit(X)
    assert model._chains[0].doc_record is None
