"""`DPCategoricalMixture` as users meet it: what rows may be, what comes out, and streams."""

import warnings

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc import DPCategoricalMixture
from sk_sgmcmc.metrics import partition_distance
from sk_sgmcmc.samplers import SGRLD
from tests.conftest import importorskip

PROFILES = np.array([[0.9] * 6 + [0.1] * 6, [0.1] * 6 + [0.9] * 6, [0.1, 0.9] * 6])


def answers(n=240, seed=0, profiles=PROFILES):
    """Rows of 0 and 1, and the cluster that each came from."""
    rng = np.random.default_rng(seed)
    z = np.arange(n) % len(profiles)
    return (rng.random((n, profiles.shape[1])) < profiles[z]).astype(float), z


def fitted(X=None, likelihood="bernoulli", **params):
    X = answers()[0] if X is None else X
    params = {"n_iter": 120, "random_state": 0, **params}
    return DPCategoricalMixture(likelihood=likelihood, **params).fit(X)


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical"])
@pytest.mark.parametrize("sampler", [None, "slice-gibbs"])
def test_clusters_are_found(likelihood, sampler):
    X, z = answers()
    if sampler:  # slices may hold one group in two parts for thousands of sweeps: it neither splits nor merges
        model = fitted(X, likelihood, sampler=sampler, n_iter=600)
        assert (model.weights_ > 0.05).sum() in (3, 4) and partition_distance(model.labels_, z) < 0.6
        return
    model = fitted(X, likelihood)
    large = model.weights_ > 0.05  # a row that fits no cluster may well be one by itself
    assert large.sum() == 3 and model.n_clusters_ <= 8
    assert partition_distance(model.labels_, z) < 0.4
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    np.testing.assert_allclose(model.weights_[:3], 1 / 3, atol=0.06)
    components = model.samples_["components"].mean(axis=(0, 1))[:3]
    ones = components if likelihood == "bernoulli" else components[:, 1::2]
    order = np.array([np.bincount(z[model.labels_ == c]).argmax() for c in range(3)])
    assert np.abs(ones - PROFILES[order]).max() < 0.2


def test_probabilities_agree_with_each_other():
    X, _ = answers()
    model = fitted(X, n_chains=2)
    proba = model.predict_proba(X)
    assert proba.shape == (240, model.n_clusters_)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    together = model.co_clustering(X[:30])
    np.testing.assert_allclose(together, together.T)
    assert np.all(np.diag(together) == 1) and together.max() <= 1 + 1e-9
    apart = ~np.eye(30, dtype=bool)
    np.testing.assert_allclose(together[apart], (proba[:30] @ proba[:30].T)[apart], atol=0.2)
    # All rows of three columns: their probabilities sum to 1.
    whole = (np.arange(8)[:, None] >> np.arange(3) & 1).astype(float)
    np.testing.assert_allclose(np.exp(fitted(X[:, :3]).score_samples(whole)).sum(), 1, rtol=1e-5)
    tokens = np.eye(12)
    np.testing.assert_allclose(np.exp(fitted(X, "multinomial").score_samples(tokens)).sum(), 1, rtol=1e-5)


def test_forms_of_the_same_rows_give_the_same_draws():
    X, _ = answers(60)
    whole = fitted(X)
    for form in (sparse.csr_array(X), sparse.csc_matrix(X), X[::-1], X.astype(bool), X.astype(int).tolist()):
        np.testing.assert_array_equal(fitted(form).samples_["weights"], whole.samples_["weights"])
    coded = fitted(X, "categorical")
    pandas = importorskip("pandas")
    frame = pandas.DataFrame(np.where(X == 1, "yes", "no"), columns=[f"q{j}" for j in range(12)])
    for form in (frame, frame.astype("category"), frame.astype("string"), frame.to_numpy(dtype=object)):
        np.testing.assert_array_equal(fitted(form, "categorical").samples_["weights"], coded.samples_["weights"])
    table = fitted(frame, "categorical").top_categories(3)
    assert set(table["feature"]) <= set(frame.columns) and set(table["level"]) <= {"yes", "no"}
    assert (table["low"] <= table["probability"]).all() and (table["probability"] <= table["high"]).all()


@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical"])
def test_missing_entries_say_nothing(likelihood):
    X, z = answers(seed=1)
    model = fitted(X, likelihood)
    row = X[:1].copy()
    row[0, 3] = np.nan
    both = row.repeat(2, axis=0)
    both[:, 3] = 0, 1
    np.testing.assert_allclose(model.score_samples(row)[0], np.logaddexp.reduce(model.score_samples(both)), rtol=1e-4)
    nothing = np.full((1, 12), np.nan)
    np.testing.assert_allclose(model.score_samples(nothing), 0, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(nothing)[0], model.weights_, atol=0.02)
    # 30% of the entries missing: the clusters are still found.
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.3, np.nan, X)
    assert partition_distance(fitted(holes, likelihood).labels_, z) < 0.7
    if likelihood == "bernoulli":
        stored = sparse.csr_array(np.nan_to_num(holes, nan=7.0))
        stored.data[stored.data == 7.0] = np.nan
        np.testing.assert_array_equal(fitted(stored).samples_["weights"], fitted(holes).samples_["weights"])


def test_levels_never_seen_count_as_missing_with_a_warning():
    pandas = importorskip("pandas")
    X, _ = answers(60)
    model = fitted(X, "categorical")
    row = X[:1].copy()
    row[0, 2] = 5
    missing = row.copy()
    missing[0, 2] = np.nan
    with pytest.warns(UserWarning, match=r"5\.0 in column 2"):
        scored = model.score_samples(row)
    np.testing.assert_array_equal(scored, model.score_samples(missing))
    # A level that a categorical declares is a cell of its own, seen or not.
    frame = pandas.DataFrame({"a": pandas.Categorical(["x", "y"] * 20, categories=["x", "y", "z"])})
    declared = fitted(frame, "categorical")
    unseen = pandas.DataFrame({"a": pandas.Categorical(["z"], categories=["x", "y", "z"])})
    assert -8 < declared.score_samples(unseen)[0] < -3


def test_text_is_a_level_also_where_it_reads_like_a_number():
    years = np.array([["1998", 0], ["2004", 1]] * 20, dtype=object)
    model = fitted(years, "categorical")
    assert [of.tolist() for of in model.categories_] == [["1998", "2004"], [0, 1]]
    np.testing.assert_array_equal(
        fitted(years[:, :1].astype(str), "categorical").samples_["weights"],
        fitted(years[:, 1:].astype(float), "categorical").samples_["weights"],
    )
    with pytest.raises(ValueError, match="holds text"):
        model.score_samples(np.array([["1998", "0"]]))


def test_whole_numbers_are_the_same_levels_beside_a_missing_one():
    pandas = importorskip("pandas")
    numbers = [None, *np.random.default_rng(0).integers(1, 4, 59).tolist()]
    texts = [None if number is None else str(number) for number in numbers]
    frames = [pandas.DataFrame({"a": pandas.Categorical(values), "b": [0, 1] * 30}) for values in (numbers, texts)]
    model, of_texts = (fitted(frame, "categorical") for frame in frames)
    np.testing.assert_array_equal(model.samples_["weights"], of_texts.samples_["weights"])
    expected = model.score_samples(frames[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no level is unknown
        for again in (frames[1], frames[0].astype({"a": float}), frames[0].assign(a=np.array(numbers, dtype=object))):
            np.testing.assert_array_equal(model.score_samples(again), expected)


RELABELLINGS = {
    "from 1": lambda X: X + 1,
    "from 3": lambda X: X + 3.0,
    "permuted": lambda X: (X + 1) % 3,
    "wide": lambda X: np.array([700, 1, 20])[X],
    "texts": lambda X: np.array(["no", "yes", "maybe"], dtype=object)[X],
    "rows": lambda X: (X[::-1] + 2) % 3,
}


@pytest.mark.parametrize("how", RELABELLINGS)
@pytest.mark.parametrize("sampler", [None, "slice-gibbs", "scir"])
def test_labels_of_levels_change_nothing(how, sampler):
    rng = np.random.default_rng(0)
    z = rng.random(60) < 0.5
    X = (rng.random((60, 4)) < np.where(z, 0.85, 0.15)[:, None]).astype(int) + 2 * (rng.random((60, 4)) < 0.1)
    X = np.minimum(X, 2)
    model = fitted(X, "categorical", sampler=sampler)
    other = fitted(RELABELLINGS[how](X), "categorical", sampler=sampler)
    for name in ("n_clusters", "weights", "concentration"):
        np.testing.assert_array_equal(other.samples_[name], model.samples_[name])
    assert [len(of) for of in other.categories_] == [3] * 4
    # The components have their levels in the order of `categories_`.
    labels = RELABELLINGS[how](np.arange(3)[:, None])[:, 0]
    labels = labels[::-1] if how == "rows" else labels
    place = np.concatenate([3 * j + np.searchsorted(other.categories_[j], labels) for j in range(4)])
    np.testing.assert_array_equal(other.samples_["components"][..., place], model.samples_["components"])
    np.testing.assert_array_equal(other.predict_proba(RELABELLINGS[how](X))[:: -1 if how == "rows" else 1],
                                  model.predict_proba(X))  # fmt: skip


def test_labels_of_levels_change_nothing_in_a_stream_or_after_resume():
    X = np.random.default_rng(0).integers(0, 3, (40, 5))
    draws = []
    for form in (X, X + 3, np.array(["c", "a", "b"], dtype=object)[X]):
        model = fitted(form[:30], "categorical").partial_fit(form[20:])
        draws.append(model.samples_["weights"])
        short = DPCategoricalMixture(likelihood="categorical", n_iter=20, random_state=0, callbacks=_stop_at_10)
        draws[-1] = np.concatenate([draws[-1].ravel(), short.fit(form).resume(form).samples_["weights"].ravel()])
    np.testing.assert_array_equal(draws[1], draws[0])
    np.testing.assert_array_equal(draws[2], draws[0])


def _stop_at_10(model, step):
    return step == 10 and not hasattr(model, "n_iter_")


@pytest.mark.parametrize("missing", [None, np.nan])
def test_levels_that_do_not_occur_have_no_probability(missing):
    X = np.array([[1, True], [3, False], [missing, True]] * 20, dtype=object)
    model = fitted(X, "categorical")
    assert [of.tolist() for of in model.categories_] == [[1, 3], [0, 1]]
    rows = np.array([[2, True], [missing, True]], dtype=object)
    with pytest.warns(UserWarning, match="2 in column 0"):
        scores = model.score_samples(rows)
    assert scores[0] == scores[1]


def test_codes_1_and_2_are_no_zeros_and_ones():
    X, _ = answers(60)
    with pytest.raises(ValueError, match=r"X - 1, or use likelihood=\"categorical\""):
        fitted(X + 1, "bernoulli")


def test_a_categorical_without_levels_says_nothing():
    pandas = importorskip("pandas")
    frame = pandas.DataFrame({"a": ["x", "y"] * 20, "b": pandas.Categorical([None] * 40)})
    model = fitted(frame, "categorical")
    assert model.samples_["components"].shape[-1] == 3 and np.isfinite(model.score(frame))
    with pytest.warns(UserWarning, match="x in column 'b'"):
        unknown = model.score_samples(frame.assign(b="x"))
    np.testing.assert_array_equal(unknown, model.score_samples(frame))


def test_an_enum_of_polars_keeps_its_order():
    pandas, polars = importorskip("pandas"), importorskip("polars")
    scale = ["never", "monthly", "daily", "unused"]
    answers = [None, *np.array(scale)[np.random.default_rng(0).integers(0, 3, 59)].tolist()]
    frame = pandas.DataFrame({"a": pandas.Categorical(answers, scale), "b": [0, 1] * 30})
    model = fitted(frame, "categorical")
    same = polars.DataFrame({"a": polars.Series(answers, dtype=polars.Enum(scale)), "b": [0, 1] * 30})
    of_polars = fitted(same, "categorical")
    assert of_polars.categories_[0].tolist() == scale
    np.testing.assert_array_equal(model.samples_["weights"], of_polars.samples_["weights"])
    np.testing.assert_array_equal(model.score_samples(same), model.score_samples(frame))


@pytest.mark.parametrize("shape, what", [((0, 3), "0 sample"), ((3, 0), "0 feature")])
def test_a_frame_without_entries_is_refused(shape, what):
    pandas = importorskip("pandas")
    with pytest.raises(ValueError, match=what):
        fitted(pandas.DataFrame(np.empty(shape)), "categorical")


def test_a_weight_is_so_many_rows():
    X, _ = answers(40)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    a = DPCategoricalMixture(likelihood="bernoulli", n_iter=30, random_state=0).fit(X, sample_weight=weights)
    b = fitted(X.repeat(weights, axis=0), n_iter=30)
    np.testing.assert_array_equal(a.samples_["components"], b.samples_["components"])


@pytest.mark.parametrize("scale", [1e-3, 300.0])
def test_counts_of_any_size_are_fitted(scale):
    X, _ = answers()
    model = fitted(scale * X, "multinomial", n_iter=40)
    assert np.all(np.isfinite(model.score_samples(scale * X)))


@pytest.mark.parametrize("seed", range(2))
def test_clusters_that_overlap_are_predicted_as_surely_as_rightly(seed):
    rng = np.random.default_rng(seed)
    profiles = np.where(rng.random((4, 12)) < 0.5, 0.2, 0.8)
    (X, _), (new, z) = answers(1000, seed, profiles), answers(4000, seed + 10, profiles)
    proba = fitted(X, n_iter=300).predict_proba(new)
    seen = np.zeros((proba.shape[1], 4))
    np.add.at(seen, (proba.argmax(axis=1), z), 1)
    right = seen.max(axis=1).sum() / len(z)
    assert right > 0.75
    assert abs(proba.max(axis=1).mean() - right) < 0.03
    for at_least in (0.6, 0.9):
        sure = proba.max(axis=1) > at_least
        hits = seen.argmax(axis=1)[proba.argmax(axis=1)] == z
        assert abs(proba.max(axis=1)[sure].mean() - hits[sure].mean()) < 0.03


def test_degenerate_rows_are_fitted():
    for X in (np.zeros((5, 4)), np.eye(4), np.eye(4)[:1], np.ones((1, 1)), np.zeros((1, 1))):
        for likelihood in ("multinomial", "bernoulli", "categorical"):
            model = fitted(X, likelihood, n_iter=6)
            assert np.isfinite(model.score(X)) and model.predict(X).shape == (len(X),)


def test_slots_are_the_same_clusters_in_all_draws():
    model = fitted(n_chains=2)
    kept = model.samples_["components"][:, :, :3].reshape(-1, 3, 12)
    assert np.abs(kept - kept.mean(axis=0)).max() < 0.35
    assert np.all(np.diff(model.weights_) <= 0.05)


# ------------------------------------------------------------------------------------------------------------ streams


@pytest.mark.parametrize("seed", range(2))
def test_clusters_are_born_and_die_on_a_stream(seed):
    model = DPCategoricalMixture(likelihood="bernoulli", total_samples=600, random_state=seed)
    for block in range(8):
        there = PROFILES[:2] if block < 4 else PROFILES[1:]  # the first leaves, the third comes
        X, z = answers(300, block, there)
        model.partial_fit(X)
        if block in (3, 7):
            assert (model.weights_ > 0.05).sum() == 2, model.weights_
            assert partition_distance(model.labels_, z) < 0.5
    last = model.samples_["weights"][0, -1]
    occupied = model.samples_["components"][0, -1][last > 0.15]
    assert len(occupied) == 2
    nearest = {int(np.abs(theta - PROFILES).sum(axis=1).argmin()) for theta in occupied}
    assert nearest == {1, 2}


def test_a_stream_goes_on_from_a_fit():
    X, _ = answers()
    model = fitted(X, keep_rows=False)
    steps = model.n_iter_
    model.partial_fit(X[:50])
    assert model.n_iter_ == steps + 10 and model.n_samples_seen_ == 290 and model.labels_.shape == (50,)
    assert model._chains[0].sizes.sum() == 290
    assert model.n_clusters_ >= 2


def test_missing_values_of_pandas_are_missing(importorskip):
    pandas = importorskip("pandas")
    column = [1, 2, None] * 20
    answer = []
    for dtype in ("Int64", "float64"):
        frame = pandas.DataFrame({"a": pandas.array(column, dtype=dtype), "b": [0, 1, 2] * 20})
        answer.append(fitted(frame, "categorical", n_iter=6).samples_["weights"])
    np.testing.assert_array_equal(*answer)


def test_a_stream_takes_another_step_size_and_refuses_another_sampler():
    X, _ = answers()
    model = DPCategoricalMixture(likelihood="bernoulli", sampler=SGRLD(0.002), random_state=0).partial_fit(X)
    model.set_params(sampler__step_size=0.001).partial_fit(X[:50])
    assert model.sampler_.step_size_(0) == 0.001 and model._chains[0].sampler is model.sampler_
    with pytest.raises(ValueError, match=r"not made for a stream|Cannot continue"):
        model.set_params(sampler="scir").partial_fit(X)
    with pytest.raises(ValueError, match="n_chains=2"):
        model.set_params(sampler=SGRLD(0.001), n_chains=2).partial_fit(X)


# ---------------------------------------------------------------------------------------------------------- bad input

BAD = [
    ({"concentration_prior": (1.0,)}, {}, "concentration_prior"),
    ({"concentration_prior": (1.0, -1.0)}, {}, "concentration_prior"),
    ({"concentration_prior": 0.0}, {}, "concentration_prior"),
    ({"category_prior": [1.0, 2.0]}, {}, "category_prior"),
    ({"category_prior": 0.0}, {}, "category_prior"),
    ({"likelihood": "poisson"}, {}, "likelihood"),
    ({"partition_loss": "l2"}, {}, "partition_loss"),
    ({"assignments": "fresh", "sampler": SGRLD(parameterization="reduced-mean")}, {}, "expanded-mean"),
    ({}, {"X": np.full((5, 12), 2.0)}, "binarize"),
    ({}, {"X": np.full((5, 12), -1.0)}, "0, 1, or NaN"),
    ({"likelihood": "categorical"}, {"X": np.full((5, 12), 0.5)}, "KBinsDiscretizer"),
    ({"likelihood": "categorical"}, {"X": np.full((5, 12), -1.0)}, "NaN"),
    ({"likelihood": "categorical"}, {"X": sparse.csr_array(np.eye(12))}, "[Ss]parse"),
    ({"likelihood": "multinomial"}, {"X": np.full((5, 12), np.nan)}, "NaN"),
    ({}, {"sample_weight": -np.ones(240)}, "sample_weight"),
    ({}, {"sample_weight": np.zeros(240)}, "non-zero"),
    ({}, {"sample_weight": np.full(240, 1e9)}, 'sample_weight sums to 2.4e\\+11; .* weights="survey"'),
    ({}, {"sample_weight": np.full(240, np.nan)}, "NaN"),
    ({}, {"sample_weight": np.full(240, np.inf)}, "infinity"),
    ({}, {"sample_weight": np.ones(239)}, "shape"),
    ({"weights": "frequency"}, {}, "weights"),
    ({"weights": "survey"}, {"sample_weight": np.zeros(240)}, "non-zero"),
]


@pytest.mark.parametrize(("params", "data", "message"), BAD)
def test_bad_input_is_named_and_nothing_is_changed(params, data, message):
    import pickle

    model = fitted(n_iter=4)
    before = {key: value for key, value in model.__dict__.items() if key not in params}
    before = pickle.dumps(before)
    model.set_params(**params)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(**{"X": answers()[0], **data})
    assert pickle.dumps({key: value for key, value in model.__dict__.items() if key not in params}) == before


def test_slices_of_all_rows_cannot_stream():
    X, _ = answers(30)
    with pytest.raises(ValueError, match="cannot stream"):
        fitted(X, n_iter=4, sampler="slice-gibbs").partial_fit(X)
    with pytest.raises(ValueError, match="not made for a stream"):
        fitted(X, n_iter=4, sampler="slice-gibbs").set_params(sampler=None).partial_fit(X)


def test_levels_whose_probability_underflows_are_not_listed_as_marked():
    X = np.random.default_rng(0).poisson(1.0, (14, 6)) * (np.arange(6) < 5)
    model = DPCategoricalMixture(category_prior=1e-6, sampler="exact-dirichlet", n_iter=40, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = model.top_categories(5)
    assert np.all(np.isfinite(np.asarray(table["lift"]))) and np.all(np.asarray(table["probability"]) >= 0)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_concentration_that_the_labels_tell_little_of_stays_in_range(seed):
    X = np.random.default_rng(seed).integers(0, 2, (3, 3)).astype(float)
    params = {"concentration_prior": (1e-3, 1e3), "likelihood": "bernoulli", "n_iter": 400, "random_state": 2}
    model = DPCategoricalMixture(sampler="exact-dirichlet", **params).fit(X)
    stream = DPCategoricalMixture(sampler="exact-dirichlet", **params).partial_fit(X).partial_fit(X)
    for draws in (model.samples_["concentration"], stream.samples_["concentration"]):
        assert np.all(draws >= 1e-10 * (1 - 1e-9)) and np.all(np.isfinite(draws))


def test_a_fitted_mixture_reads_rows_as_it_was_fitted_whatever_its_likelihood_is_set_to():
    X = np.random.default_rng(0).integers(4, size=(25, 6))
    model = DPCategoricalMixture(likelihood="multinomial", n_iter=4, random_state=0).fit(X)
    before = model.score_samples(X)
    model.set_params(likelihood="categorical")
    np.testing.assert_array_equal(model.score_samples(X), before)
    assert "level" not in model.top_categories()


def test_a_code_for_missing_entries_warns():
    X = np.random.default_rng(0).integers(0, 4, (60, 2)).astype(float)
    X[:5, 1] = 999
    with pytest.warns(UserWarning, match=r"Column 1 of X holds the codes 0 to 3, and 999"):
        model = DPCategoricalMixture(likelihood="categorical", n_iter=20, random_state=0).fit(X)
    assert model.categories_[1].tolist() == [0, 1, 2, 3, 999]


def test_weights_of_earlier_calls_count_in_a_stream():
    X = (np.random.default_rng(0).random((40, 4)) < 0.5).astype(int)
    params = {"likelihood": "bernoulli", "sampler": "scir", "assignments": "fresh", "n_iter": 20, "random_state": 0}
    weighted = DPCategoricalMixture(**params).fit(X, sample_weight=np.full(40, 3.0)).partial_fit(X[:10])
    plain = DPCategoricalMixture(**params).fit(np.tile(X, (3, 1))).partial_fit(X[:10])
    assert weighted._chains[0]._total() == plain._chains[0]._total() == 130.0


def test_a_concentration_beyond_the_largest_number_of_components_warns():
    with pytest.warns(UserWarning, match="cut off after 5000 components"):
        fitted(answers(60)[0], sampler="slice-gibbs", concentration_prior=3000.0, n_iter=3)
