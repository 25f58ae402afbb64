"""DMRTopicModel by formula, the effects of covariates, and merged topics."""

import pickle
import sys

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.datasets import make_dmr
from tests.common.compare import assert_same_draws
from tests.conftest import importorskip

DATA = make_dmr(120, 30, 3, 2, 25, random_state=0)
X = DATA.counts
YEAR = 1900.0 + np.round(30 * DATA.metadata[:, 0])
PARTY = np.where(DATA.metadata[:, 1] > 0, "whig", "tory")
PARTY[::7] = "free"
TABLE = {"year": YEAR, "party": PARTY}
SMALL = {"n_components": 3, "n_iter": 16, "random_state": 0}
SPLINE = "~ party * bs(year, df=4)"
NEW = {"year": [1880.0, 1900.0, 1910.0], "party": ["whig", "free", "tory"]}


@pytest.fixture(autouse=True)
def formulaic():
    return importorskip("formulaic")


def fitted(metadata=None, **params):
    return DMRTopicModel(**{**SMALL, **params}).fit(X, metadata=TABLE if metadata is None else metadata)


@pytest.fixture(scope="module")
def model():
    importorskip("formulaic")
    return fitted(formula=SPLINE)


@pytest.fixture(scope="module")
def plain():
    return fitted()


# -------------------------------------------------------------------------------------------------------- same draws


@pytest.mark.parametrize(
    "formula",
    ["~ party * year", "year + party", "~ 0 + party + np.log(year)", "~ party + C(year > 1900)", SPLINE,
     "~ poly(year, 2):party + scale(year)", "~ C(party, contr.sum) + cr(year, df=3)"],
)  # fmt: skip
def test_a_formula_is_the_matrix_that_it_stands_for(formula, formulaic):
    pandas = importorskip("pandas")
    frame = pandas.DataFrame(TABLE)
    matrix = formulaic.model_matrix(formula, frame)
    spec, matrix = matrix.model_spec, matrix.drop(columns="Intercept", errors="ignore")
    a = fitted(frame, formula=formula, spline_prior="independent")
    b = fitted(matrix)
    assert a.metadata_names_ == list(matrix.columns) and a.coef_.shape == (3, matrix.shape[1] + 1)
    assert_same_draws(a, b)
    new = pandas.DataFrame(NEW)
    if "poly" not in formula:
        new_matrix = spec.get_model_matrix(new).drop(columns="Intercept", errors="ignore")
        np.testing.assert_allclose(a.predict_prevalence(new), b.predict_prevalence(new_matrix))
    np.testing.assert_array_equal(a.transform(X, metadata=frame), b.transform(X, metadata=matrix))
    assert a.score(X, metadata=frame) == b.score(X, metadata=matrix)


def test_one_column_per_level_is_the_model_without_a_formula():
    a, b = fitted(formula="~ 0 + party"), fitted({"party": PARTY})
    assert a.metadata_names_ == ["party[free]", "party[tory]", "party[whig]"]
    assert_same_draws(a, b)


def test_the_form_of_the_table_changes_no_draw(model):
    pandas, polars = importorskip("pandas"), importorskip("polars")
    frame = pandas.DataFrame(TABLE)
    unused = frame.assign(day=np.datetime64("2020-01-01"), other="x")
    forms = [
        frame, frame.astype({"party": "category", "year": "Int64"}), frame[["party", "year"]], unused,
        polars.DataFrame({"party": PARTY.tolist(), "year": YEAR}),
        polars.DataFrame({"party": PARTY.tolist(), "year": YEAR}).with_columns(
            polars.lit("2020-01-01").str.to_date().alias("day")
        ),
    ]  # fmt: skip
    for metadata in forms:
        again = fitted(metadata, formula=SPLINE)
        assert_same_draws(model, again)
        np.testing.assert_array_equal(again.transform(X, metadata=metadata), model.transform(X, metadata=TABLE))
    np.testing.assert_array_equal(
        model.predict_prevalence(polars.DataFrame(NEW)), model.predict_prevalence(pandas.DataFrame(NEW))
    )


def test_knots_and_levels_are_those_of_the_fitted_documents(model):
    whole = model.transform(X, metadata=TABLE)
    some = slice(5, 9)
    part = {name: values[some] for name, values in TABLE.items()}
    np.testing.assert_array_equal(model.transform(X[some], metadata=part), whole[some])
    prevalence = model.predict_prevalence(TABLE)
    np.testing.assert_allclose(model.predict_prevalence(part), prevalence[some])
    assert model.coef_.shape == (3, 1 + 2 + 4 + 8)
    assert set(model.coef_table()["term"]) == {"intercept", *model.metadata_names_}


def test_names_of_any_kind_and_wide_formulas():
    rng = np.random.default_rng(0)
    metadata = {"the year": YEAR, "many": rng.integers(0, 40, 120).astype(str), "party": PARTY}
    model = fitted(metadata, formula="~ bs(`the year`, df=3) + many * party")
    assert sparse.issparse(model._encoder.encode(metadata, 120, "error"))
    assert len(model.metadata_names_) > 64 and len(model._encoder.smooth) == 1
    np.testing.assert_allclose(model.predict_prevalence(metadata).sum(axis=1), 1.0)
    np.testing.assert_allclose(np.asarray(model.effects("the year")["difference"]).sum(), 0.0, atol=1e-12)


# ------------------------------------------------------------------------------------------------- conventions


def test_clone_pickle_and_streams(model):
    again = clone(model)
    assert again.get_params()["formula"] == SPLINE and not hasattr(again, "coef_")
    assert_same_draws(model, again.fit(X, metadata=TABLE))
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.transform(X, metadata=TABLE), model.transform(X, metadata=TABLE))
    np.testing.assert_array_equal(loaded.predict_prevalence(NEW), model.predict_prevalence(NEW))
    halves = [slice(0, 60), slice(60, 120)]
    first = "~ party + bs(year, df=4, extrapolation='clip')"
    stream = DMRTopicModel(3, formula=first, random_state=0)
    for half in halves:
        stream.partial_fit(X[half], metadata={name: values[half] for name, values in TABLE.items()})
    assert stream.coef_.shape == (3, 1 + 2 + 4)
    np.testing.assert_array_equal(
        stream.effects("party", of="prior")["low"], stream.effects("party", of="prior", metadata=TABLE)["low"]
    )
    fresh = DMRTopicModel(3, formula=first, assignments="fresh", random_state=0).partial_fit(X, metadata=TABLE)
    with pytest.raises(ValueError, match="pass metadata="):
        fresh.effects("party", of="prior")
    assert len(fresh.effects("party", of="prior", metadata=TABLE)["topic"]) == 6


def test_a_grid_search_over_formulas():
    pandas = importorskip("pandas")
    with sklearn.config_context(enable_metadata_routing=True):
        grid = {"formula": [None, "~ party", "~ bs(year, df=3, extrapolation='clip')"]}
        search = GridSearchCV(DMRTopicModel(**SMALL), grid, cv=2, error_score="raise")
        search.fit(X, metadata=pandas.DataFrame(TABLE))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert "formula" in search.best_params_


def test_columns_of_metadata_in_a_frame_have_the_formulas_names():
    pandas = importorskip("pandas")
    table = pandas.DataFrame(X.toarray() if sparse.issparse(X) else X, columns=[f"w{i}" for i in range(30)])
    table = table.assign(**TABLE)
    model = DMRTopicModel(**SMALL, formula="~ party + year", metadata_columns=["year", "party"]).fit(table)
    assert model.metadata_names_ == ["party[T.tory]", "party[T.whig]", "year"]
    assert model.transform(table).shape == (120, 3)
    with pytest.raises(ValueError, match="needs metadata with named columns"):
        DMRTopicModel(**SMALL, formula="~ year", metadata_columns=1).fit(np.column_stack([table.iloc[:, :30], YEAR]))


# ------------------------------------------------------------------------------------------- what the model cannot know


def test_new_levels_and_missing_values(model):
    unknown = {"year": [1900.0, np.nan], "party": ["green", None]}
    message = "unknown levels in 'party': 'green'"
    for handle, check in (
        ("warn", pytest.warns(UserWarning, match=message)),
        ("error", pytest.raises(ValueError, match=message)),
    ):
        other = pickle.loads(pickle.dumps(model)).set_params(handle_unknown=handle)
        with check:
            other.predict_prevalence(unknown)
        with check:
            other.transform(X[:2], metadata=unknown)
    silent = pickle.loads(pickle.dumps(model)).set_params(handle_unknown="ignore")
    names, shares = np.unique(PARTY, return_counts=True)
    # An unknown level counts as the average of the columns of all levels, a missing number as the mean.
    known = model._encoder.encode({"year": [1900.0] * 3, "party": names}, 3, "error")
    found = silent._encoder.encode(unknown, 2, "ignore")
    np.testing.assert_allclose(found[0], shares / 120 @ known)
    known = model._encoder.encode({"year": [YEAR.mean()] * 3, "party": names}, 3, "error")
    np.testing.assert_allclose(found[1], shares / 120 @ known)
    np.testing.assert_allclose(silent.predict_prevalence(unknown).sum(axis=1), 1.0)
    everything = model._encoder.encode(TABLE, 120, "error")
    np.testing.assert_allclose(silent._encoder.encode(None, 2, "ignore"), [everything.mean(axis=0)] * 2)


def test_missing_values_in_fit():
    year, party = YEAR.copy(), PARTY.astype(object)
    year[3], party[5] = np.nan, None
    with pytest.warns(UserWarning, match="1 missing values in 'year'; 1 missing values in 'party'"):
        model = fitted({"year": year, "party": party}, formula="~ party + bs(year, df=4)")
    assert np.isfinite(model.samples_["coef"]).all()
    with pytest.raises(ValueError, match="missing values"):
        fitted({"year": year, "party": party}, formula="~ party + year", handle_unknown="error")


def test_numbers_as_categories_know_their_levels():
    decade = np.round(YEAR, -1)
    model = fitted({"decade": decade}, formula="~ C(decade)", handle_unknown="error")
    assert len(model.metadata_names_) == np.unique(decade).size - 1
    assert model.predict_prevalence({"decade": [decade[0]]}).shape == (1, 3)
    with pytest.raises(ValueError, match=r"unknown levels in 'decade': '1234\.0'"):
        model.predict_prevalence({"decade": [1234.0]})
    assert set(model.effects("decade", kind="prevalence")["value"]) == set(decade)


ERRORS = {
    "party ~ year": "several parts",
    "~ party | year": "several parts",
    "~ party +": "misplaced",
    "~ nope": r"no column of metadata, which has \['year', 'party'\]",
    "~ nope + year": r"'nope' is no column of metadata, which has \['year', 'party'\]",
    "~ foo(year)": "'foo' is not defined",
    "~ s(year)": r"s\(x\) of R packages is bs\(x, df=6\)",
    "~ bs(party)": "could not convert",
    "~ 1": "no covariates",
    "": "no covariates",
    "~ 0": "no covariates",
    "~ .": "wildcard",
    "~ lag(year)": "'lag' is not defined",
    "~ log(year, '`') + {__import__('os').system('exit 1')} + log(year, '`')": "`",
    "~ {lambda`a`: 1}": "cannot be read|No",
    "~ bs(year, _context=party)": "is no argument",
    "~ I(year - year.mean())": r"'year.mean' is not evaluated.*center\(x\)",
    "~ year + {__import__('os').system('exit 1')}": r"system. is not evaluated",
    "~ year + {().__class__.__base__.__subclasses__()}": "is not evaluated",
    "~ year + {[x for x in year]}": "is not evaluated",
    "~ year + {(lambda: year)()}": "not defined for formulas",
    "~ year + {year[0]}": "is not evaluated",
    "~ year + {np.load('x.npy')}": "'np.load' is not evaluated",
    "~ year + {log.__self__}": "is not evaluated",
    "~ year + I(eval('year'))": "'eval' is not defined",
    "~ log(*year)": "is not evaluated",
    "~ log(**year)": "is no argument",
    "~ year + {f'year'}": "is not evaluated",
    "~ year + {(x := year)}": "is not evaluated",
    "~ year + {9 ** 9 ** 9}": "is no power of a column",
    "~ year + {year + 'a' * 9}": "is no computation with numbers",
    "~ year + np": "'np' is no column",
    "~ year + {__builtins__}": "'__builtins__' is no column",
    "~ log(year - 1900)": "not finite",
    "~ bs(year, df=300)": "more functions than 'year' has values",
}


@pytest.mark.parametrize("formula", ERRORS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")
def test_bad_formulas_are_refused_before_anything_changes(formula, plain):
    model = pickle.loads(pickle.dumps(plain)).set_params(formula=formula)
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match=ERRORS[formula]) as caught:
        model.fit(X, metadata=TABLE)
    assert str(caught.value).startswith(f"formula={formula!r}")
    assert model.__dict__ == before


@pytest.mark.parametrize(
    "formula", ["~ {__import__('pathlib').Path('touched').touch()} + year", "~ year + {open('touched', 'w')}"]
)
def test_a_formula_runs_no_code(formula, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="Compute anything else first, as a further column"):
        fitted(formula=formula)
    with pytest.raises(ValueError, match="formula="):
        DMRTopicModel(**SMALL, formula=formula).partial_fit(X, metadata=TABLE)
    assert not (tmp_path / "touched").exists()


def test_known_functions_are_evaluated():
    columns = "np.sqrt(`a b`) + I(year ** 2) + np.where(year > 1930, 1, 0) + log(1 + year) + I(-year / 2)"
    columns += " + C(party, Treatment('whig')) + bs(year, knots=[1910, 1930])"
    model = fitted({**TABLE, "a b": YEAR}, formula=f"~ {columns}")
    assert "I(year ** 2)" in model.metadata_names_


def test_a_formula_needs_named_columns():
    for metadata in (YEAR, YEAR[:, None].tolist(), sparse.csr_array(YEAR[:, None])):
        with pytest.raises(ValueError, match="formula='~ year' needs metadata with named columns"):
            fitted(metadata, formula="~ year")
    with pytest.raises(ValueError, match="no metadata were given"):
        DMRTopicModel(**SMALL, formula="~ year").fit(X)
    with pytest.raises(ValueError, match="y is a table"):
        DMRTopicModel(**SMALL, formula="~ year").fit(X, TABLE)
    with pytest.raises(ValueError, match="'formula' parameter"):
        fitted(formula=3)
    with pytest.raises(ValueError, match="'spline_prior' parameter"):
        fitted(formula="~ year", spline_prior="rough")
    with pytest.raises(ValueError, match="no rows"):
        DMRTopicModel(**SMALL, formula="~ year").fit(X, metadata={"year": np.empty(0)})
    model = fitted(formula="~ year")
    with pytest.raises(ValueError, match="needs metadata with named columns"):
        model.predict_prevalence([[1900.0]])
    with pytest.raises(ValueError, match="lacks the columns"):
        model.predict_prevalence({"month": [1]})


def test_a_level_that_all_documents_share_is_named():
    with pytest.raises(ValueError, match=r"in all documents 'party' is 'whig', so nothing varies.*KFold"):
        fitted({"party": ["whig"] * len(YEAR)}, formula="~ party")


def test_beyond_the_fitted_range_a_spline_is_not_defined(model):
    with pytest.raises(ValueError, match=r'outside of the range.*extrapolation="clip"'):
        model.predict_prevalence({"year": [2500.0], "party": ["whig"]})
    clipped = fitted(formula='~ bs(year, df=4, extrapolation="clip")')
    ends = clipped.predict_prevalence({"year": [YEAR.max(), 2500.0]})
    np.testing.assert_allclose(ends[0], ends[1])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match="pip install formulaic"):
        fitted(formula="~ year")
    assert fitted(n_iter=4).coef_.shape == (3, 5)  # nor is it needed


# ---------------------------------------------------------------------------------------------------------- effects


def by_hand(model, name, value, metadata=TABLE):
    """Draws of the prevalence averaged over rows of which one covariate is set, (n_draws, n_topics)."""
    rows = {**metadata, name: [value] * len(metadata["year"])}
    priors = model.doc_topic_priors(rows)
    return (priors / priors.sum(axis=2, keepdims=True)).mean(axis=1)


@pytest.mark.parametrize("which", ["plain", "model"])
def test_effects_are_differences_of_averages_over_documents(which, request):
    model = request.getfixturevalue(which)
    table = model.effects("party", of="prior", interval=0.8)
    assert list(table["value"]) == ["tory", "whig"] * 3 and set(table["reference"]) == {"free"}
    for level in ("tory", "whig"):
        at, reference = by_hand(model, "party", level), by_hand(model, "party", "free")
        row = table["value"] == level
        np.testing.assert_allclose(table["difference"][row], (at - reference).mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(table["prevalence"][row], at.mean(axis=0))
        low, high = np.quantile(at - reference, [0.1, 0.9], axis=0, method="weibull")
        np.testing.assert_allclose(table["low"][row], low, atol=1e-12)
        np.testing.assert_allclose(table["high"][row], high, atol=1e-12)
        np.testing.assert_allclose(table["positive"][row], (at > reference).mean(axis=0))
    years = [1890.0, 1900.0, 1910.0]
    table = model.effects("year", at=years, of="prior", kind="prevalence")
    assert table["value"].tolist() == years * 3
    for year in years:
        draws = by_hand(model, "year", year)
        np.testing.assert_allclose(table["prevalence"][table["value"] == year], draws.mean(axis=0))
        ends = np.quantile(draws, [0.05, 0.95], axis=0, method="weibull")
        np.testing.assert_allclose(table[["low", "high"]][table["value"] == year].to_numpy(), ends.T)


def test_all_pairs_references_and_values_of_other_covariates(model):
    pairs = model.effects("party", pairwise=True)
    assert list(zip(pairs["reference"], pairs["value"], strict=True))[:3] == [
        ("free", "tory"), ("free", "whig"), ("tory", "whig")
    ]  # fmt: skip
    difference = np.asarray(pairs["difference"]).reshape(3, 3)
    np.testing.assert_allclose(difference[:, 0] + difference[:, 2], difference[:, 1])
    np.testing.assert_allclose(difference.sum(axis=0), 0.0, atol=1e-12)
    one = model.effects("party", at="whig", reference="tory")
    np.testing.assert_allclose(one["difference"], difference[:, 2])
    at = model.effects("party", at=["whig", "tory"], of="prior", reference="tory", given={"year": 1900.0})
    found = model.prevalence_difference({"year": [1900.0], "party": ["whig"]}, {"year": [1900.0], "party": ["tory"]})
    for column in ("difference", "low", "high", "positive"):
        np.testing.assert_allclose(at[column], found[column], atol=1e-12)
    some = {"year": YEAR[:10], "party": PARTY[:10]}
    table = model.effects("year", at=[1890.0, 1910.0], of="prior", metadata=some)
    expected = by_hand(model, "year", 1910.0, some) - by_hand(model, "year", 1890.0, some)
    np.testing.assert_allclose(table["difference"], expected.mean(axis=0), atol=1e-12)


def test_numbers_are_compared_at_their_quartiles_or_both_values(model):
    table = model.effects("year")
    ends = np.quantile(YEAR, [0.25, 0.75], method="inverted_cdf")
    assert table["reference"].iloc[0] == ends[0] and table["value"].iloc[0] == ends[1]
    binary = fitted(np.column_stack([YEAR, PARTY == "whig"]).astype(float))
    table = binary.effects("x1")
    assert table["reference"].iloc[0] == 0.0 and table["value"].iloc[0] == 1.0
    rare = fitted(np.r_[np.zeros(100), np.arange(20.0)])
    assert rare.effects("x0")["value"].iloc[0] == 19.0
    wide = sparse.random(120, 100, density=0.1, random_state=0, format="csr")
    table = fitted(wide).effects("x7", at=[0.0, 1.0])
    np.testing.assert_allclose(np.asarray(table["difference"]).sum(), 0.0, atol=1e-12)


def test_effects_refuse_what_they_cannot_answer(model, plain):
    for bad, message in (
        ({"covariate": "month"}, "'month' is not a covariate; formula='~ party"),
        ({"covariate": "party", "at": "green"}, "'green' is not a level of 'party'; these are 'free'"),
        ({"covariate": "year", "at": ["x", 1.0]}, "'year' is a number"),
        ({"covariate": "year", "at": [np.inf, 1.0]}, "'year' is a number"),
        ({"covariate": "year", "at": [1900.0, 1900.0]}, "different values"),
        ({"covariate": "year", "at": [1900.0]}, "needs two values"),
        ({"covariate": "year", "at": []}, "different values"),
        ({"covariate": "party", "kind": "ratio"}, "kind='ratio'"),
        ({"covariate": "party", "interval": 2}, "interval"),
        ({"covariate": "party", "given": {"party": "whig"}}, "leave it out"),
        ({"covariate": "party", "given": {"year": "long ago"}}, "'year' is a number"),
        ({"covariate": "party", "reference": "green"}, "'green' is not a level"),
        ({"covariate": "party", "reference": "whig", "pairwise": True}, "leave out reference"),
    ):
        with pytest.raises(ValueError, match=message):
            model.effects(**bad)
    for given in (["year"], "year", 1900.0):
        with pytest.raises(TypeError, match="must be a dict from covariates to values"):
            model.effects("party", given=given)
    with pytest.raises(ValueError, match="the metadata have 'year', 'party'"):
        plain.effects("month")
    with pytest.raises(TypeError, match="name of one covariate"):
        plain.effects(["party", "year"])
    with pytest.warns(UserWarning, match="No metadata"):
        nothing = DMRTopicModel(**SMALL).fit(X)
    with pytest.raises(ValueError, match="without metadata"):
        nothing.effects("party")


def test_effects_of_several_chains_use_those_that_agree():
    model = fitted(formula="~ party", n_chains=2)
    table = model.effects("party", of="prior")
    coef = model.samples_["coef"]
    draws = np.stack([[by_hand_of(model, each, "whig") - by_hand_of(model, each, "free") for each in c] for c in coef])
    row = table["value"] == "whig"
    np.testing.assert_allclose(table["difference"][row], draws[model.reference_chain_].mean(axis=0), atol=1e-12)
    (low, _), _ = model._agreement.summary(draws, [0.05, 0.95])
    np.testing.assert_allclose(table["low"][row], low, atol=1e-12)


def by_hand_of(model, coef, level):
    alpha = np.exp(coef[:, 0] + coef[:, 1:] @ [level == "tory", level == "whig"])
    return alpha / alpha.sum()


# ---------------------------------------------------------------------------------------------------------- merging


def test_prevalences_of_merged_topics_add_up(model):
    merged = model.merge_topics([0, 2])
    for answer in ("predict_prevalence", "doc_topic_priors"):
        whole = getattr(model, answer)(NEW)
        together = np.stack([whole[..., 0] + whole[..., 2], whole[..., 1]], axis=-1)
        np.testing.assert_allclose(getattr(merged, answer)(NEW), together)
    draws = model.doc_topic_priors(NEW)
    draws = draws / draws.sum(axis=2, keepdims=True)
    _, low, high = merged.predict_prevalence(NEW, interval=0.9)
    ends = np.quantile(draws[..., 0] + draws[..., 2], [0.05, 0.95], axis=0, method="weibull")
    np.testing.assert_allclose([low[:, 0], high[:, 0]], ends)
    effects = np.asarray(model.effects("party")["difference"]).reshape(3, 2)
    found = np.asarray(merged.effects("party")["difference"]).reshape(2, 2)
    np.testing.assert_allclose(found, [effects[0] + effects[2], effects[1]], atol=1e-12)
    difference = merged.prevalence_difference(NEW, TABLE)["difference"]
    np.testing.assert_allclose(np.sum(difference), 0.0, atol=1e-12)


def test_merged_topics_answer_but_have_no_coefficients(model):
    merged = pickle.loads(pickle.dumps(model.merge_topics([0, 2])))
    assert merged.transform(X, metadata=TABLE).shape == (120, 2)
    np.testing.assert_allclose(merged.transform(X, metadata=TABLE).sum(axis=1), 1.0)
    assert np.isfinite(merged.score(X, metadata=TABLE))
    assert merged.transform_draws(X[:3], metadata={name: v[:3] for name, v in TABLE.items()}).shape[1:] == (3, 2)
    assert not hasattr(merged, "coef_") and "coef" not in merged.samples_ and hasattr(model, "coef_")
    with pytest.raises(ValueError, match="no coefficients"):
        merged.coef_table()
    with pytest.raises(ValueError, match="merged after they were drawn"):
        merged.partial_fit(X, metadata=TABLE)
    one = merged.merge_topics([0, 1])
    np.testing.assert_allclose(one.predict_prevalence(NEW), 1.0)
    np.testing.assert_allclose(one.doc_topic_priors(NEW)[..., 0], model.doc_topic_priors(NEW).sum(axis=2))
    again = one.fit(X, metadata=TABLE)
    assert again.coef_.shape[0] == 1 and again._merged_into is None


def test_lazy_documents_of_merged_topics():
    array = importorskip("dask.array")
    counts = X.toarray() if sparse.issparse(X) else X
    metadata = np.column_stack([YEAR, PARTY == "whig"]).astype(float)
    merged = fitted(metadata).merge_topics([0, 1])
    lazy = merged.transform(array.from_array(counts, (50, 30)), metadata=array.from_array(metadata, (50, 2)))
    np.testing.assert_allclose(lazy.compute(), merged.transform(counts, metadata=metadata))


def test_topics_without_metadata_are_merged_as_before():
    lda = BayesianLDA(3, n_iter=16, random_state=0).fit(X)
    assert lda.merge_topics([0, 1]).doc_topic_prior_.sum() == pytest.approx(lda.doc_topic_prior_.sum())


def test_a_formula_given_as_metadata_is_sent_to_its_place():
    with pytest.raises(ValueError, match="formula= when you make the model"):
        DMRTopicModel(2).fit(np.eye(4), metadata="~ party")
