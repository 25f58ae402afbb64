"""However the same data arrive, the draws are the same; and what bad data get."""

import inspect
import pickle
import time
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc import BayesianLDA, BayesianPoissonRegressor, metrics
from sk_sgmcmc.callbacks import HeldOutScore
from tests.common.compare import assert_same_draws
from tests.common.instances import COUNTS, DEFAULTS, ESTIMATORS, LDA
from tests.conftest import importorskip

# Cases without metadata are about what all estimators share.
pytestmark = pytest.mark.filterwarnings("ignore:No metadata were given")
each = pytest.mark.parametrize("case", ESTIMATORS, ids=lambda case: case.id)
each_count_model = pytest.mark.parametrize("case", COUNTS, ids=lambda case: case.id)


def _wide(X):
    """With 64-bit indices."""
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _unsorted(X):
    """Entries of a row in reverse order, a stored zero, and one count split in two."""
    X = sparse.csr_array(X).astype(np.float64)
    rows = [list(zip(X[[i]].indices.tolist(), X[[i]].data.tolist(), strict=True))[::-1] for i in range(90)]
    j, value = rows[0][0]
    rows[0][0] = (j, value - 0.5)
    rows[0].append((j, 0.5))
    rows[1].append(((rows[1][0][0] + 1) % 40, 0.0))
    flat = [pair for row in rows for pair in row]
    indptr = np.cumsum([0] + [len(row) for row in rows])
    return sparse.csr_array(([v for _, v in flat], [j for j, _ in flat], indptr), shape=X.shape)


WAYS = {
    "list": lambda X: X.toarray().tolist(),
    "dense": lambda X: X.toarray(),
    "fortran": lambda X: np.asfortranarray(X.toarray()),
    "strided": lambda X: np.repeat(X.toarray(), 2, axis=1)[:, ::2],
    "int32": lambda X: X.toarray().astype(np.int32),
    "uint8": lambda X: X.toarray().astype(np.uint8),
    "int8": lambda X: X.toarray().astype(np.int8),
    "float16": lambda X: X.toarray().astype(np.float16),
    "sparse int8": lambda X: X.astype(np.int8),
    "float32": lambda X: X.toarray().astype(np.float32),
    "sparse float32": lambda X: X.astype(np.float32),
    "sparse int": lambda X: X.astype(np.int16),
    "big endian": lambda X: X.toarray().astype(">f8"),
    "object": lambda X: X.toarray().astype(object),
    "wide indices": _wide,
    "unsorted": _unsorted,
    **{
        name: getattr(sparse, name)
        for kind in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
        for name in (f"{kind}_matrix", f"{kind}_array")
    },
}


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@each_count_model
def test_the_way_data_arrive_changes_no_draw(case):
    X = sparse.csr_matrix(case.X(), dtype=np.float64)
    whole, streamed = case.new().fit(X), case.new().partial_fit(X)
    score, proportions = whole.score(X), whole.transform(X)
    # One function reads counts for all models.
    ways = WAYS if case.id == "lda" else {way: WAYS[way] for way in ("dense", "wide indices", "unsorted", "coo_array")}
    for way, arrange in ways.items():
        given = arrange(X)
        kept = pickle.dumps(given)
        model = case.new().fit(given)
        assert_same_draws(whole, model)
        assert model.score(given) == score, way
        np.testing.assert_allclose(model.transform(given), proportions, rtol=1e-6, err_msg=way)
        assert pickle.dumps(given) == kept, f"{way}: the caller's data were changed"
        assert_same_draws(streamed, case.new().partial_fit(given))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.float32])
@pytest.mark.parametrize("form", [sparse.coo_array, sparse.csr_array])
def test_entries_of_one_place_add_up_beyond_their_type(dtype, form):
    at = np.repeat(np.arange(40), 3), np.tile([0, 0, 1], 40)
    values = np.full(120, 100).astype(dtype)
    X = form((values, at[1], np.arange(0, 121, 3)) if form is sparse.csr_array else (values, at), shape=(40, 3))
    np.testing.assert_array_equal(BayesianLDA(2, n_iter=4, random_state=0).fit(X).word_counts_, [8000, 4000, 0])
    y = np.arange(40) % 3
    twice = BayesianPoissonRegressor(n_iter=60, random_state=0).fit(X, y)
    once = BayesianPoissonRegressor(n_iter=60, random_state=0).fit(np.tile([200.0, 100.0, 0.0], (40, 1)), y)
    np.testing.assert_allclose(twice.coef_, once.coef_)


@each_count_model
def test_frames_are_taken(case):
    pandas = importorskip("pandas")
    X = case.X()
    names = [f"w{i}" for i in range(40)]
    whole = case.new().fit(X)
    for frame in (
        pandas.DataFrame(X.toarray(), columns=names),
        pandas.DataFrame.sparse.from_spmatrix(X, columns=names),
        pandas.DataFrame(X.toarray(), columns=names).astype("Int64"),
    ):
        model = case.new().fit(frame)
        assert_same_draws(whole, model)
        assert list(model.feature_names_in_) == names and model.score(frame) == whole.score(X)


@each_count_model
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_few_rows_with_huge_counts_are_refused_at_once(case, form):
    X = np.random.default_rng(0).poisson(1.0, (5, 12)).astype(float)
    X[:, 3] = 1e8
    X = X if form == "dense" else sparse.csr_array(X)
    start = time.monotonic()
    for method in ("fit", "partial_fit"):
        message = r"X holds 5e\+08 tokens, its largest entry being 1e\+08.*entries that are not zero.*X \* 1e-02"
        with pytest.raises(ValueError, match=message):
            getattr(case.new(), method)(X)
    model = case.fitted()
    wide = np.pad(np.asarray(X if form == "dense" else X.toarray()), ((0, 0), (0, 28)))
    assert np.isfinite(model.score(wide)) and np.all(np.isfinite(model.transform(wide)))  # no token is made for these
    assert time.monotonic() - start < 30
    case.new().fit(X * 1e-6)  # as the message says


@each
def test_read_only_memory_maps_are_taken(case, tmp_path):
    X, *y = case.data_of()
    if sparse.issparse(X):
        X = sparse.csr_array(X).astype(np.float64)
    whole = case.new().fit(X, *y)
    joblib.dump([X, *([X.toarray()] if sparse.issparse(X) else []), *y], tmp_path / "X.joblib")
    forms = joblib.load(tmp_path / "X.joblib", mmap_mode="r")
    labels = [forms.pop() for _ in y]
    for mapped in forms:
        assert not (mapped.data if sparse.issparse(mapped) else mapped).flags.writeable
        model = case.new().fit(mapped, *labels)
        assert_same_draws(whole, model)
        assert model.score(mapped, *labels) == whole.score(X, *y)
        if case.streams:
            model.partial_fit(mapped, *labels)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, bool, object])
@pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: case.id)
def test_narrow_and_odd_types_of_numbers_are_read_as_float64(case, dtype):
    """In particular, no sum of them overflows."""
    X, *y = case.data_of()
    X = np.clip(X.toarray() if sparse.issparse(X) else X, 0, 100)
    X = np.where(X > 0, 100.0, 0.0) if dtype in (np.int8, np.uint8) and case.id != "dmr" else X
    narrow = X.astype(dtype)
    assert_same_draws(case.new().fit(narrow.astype(np.float64), *y), case.new().fit(narrow, *y))


SPARSE = [case for case in ESTIMATORS if case.new().__sklearn_tags__().input_tags.sparse]


def _damaged(X, index, form):
    """Rows as a sparse matrix with one index that it does not have room for."""
    X = getattr(sparse, f"{form}_array")(X, dtype=np.float64)
    X.indices = X.indices.copy()
    X.indices[5] = index
    return X


def _readers(model):
    """Names of the public methods whose first argument is X, and which need no metadata with it."""
    for name in dir(type(model)):
        method = getattr(type(model), name)
        if name.startswith("_") or not inspect.isfunction(method) or not hasattr(model, name):
            continue
        parameters = list(inspect.signature(method).parameters)
        if parameters[1:2] == ["X"] and "covariate" not in parameters:
            yield name


@pytest.mark.parametrize("case", SPARSE, ids=lambda case: case.id)
def test_damaged_sparse_rows_are_refused_by_every_method(case):
    """Read by compiled code, they would end the process."""
    X, *y = case.data_of()
    model = case.fitted()
    before = pickle.dumps(model)
    for bad in (_damaged(X, 10**8, "csr"), _damaged(X, -(10**8), "csr"), _damaged(X, X.shape[0], "csc")):
        _refused_by_all(case, model, bad, X, y)
    assert pickle.dumps(model) == before


def _refused_by_all(case, model, bad, X, y):
    names = set(_readers(model))
    assert {"fit", "score", "resume"} < names
    if not case.streams:
        names.discard("partial_fit")
    for name in names:
        needed = inspect.signature(getattr(model, name)).parameters
        arguments = y if "y" in needed else [np.arange(X.shape[0])] if "times" in needed else ()
        if name == "regress":
            arguments = [np.arange(float(X.shape[0]))]
        with pytest.raises(ValueError, match=r"X is a damaged sparse matrix: X\.indices holds"):
            getattr(model, name)(bad, *arguments)
    watched = case.new(callbacks=HeldOutScore(bad, *y, every=1))
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        watched.fit(X, *y)


def test_sparse_rows_are_what_all_estimators_but_two_read():
    dense = {type(case.estimator).__name__ for case in ESTIMATORS} - {type(case.estimator).__name__ for case in SPARSE}
    assert dense == {"BayesianGaussian", "LatentClassModel"}


def test_damaged_sparse_metadata_are_refused():
    case = next(case for case in ESTIMATORS if case.id == "dmr-plain")
    metadata = sparse.random_array((90, 70), density=0.3, random_state=0, format="csr")
    model = case.new().fit(case.X(), metadata=metadata)
    bad = _damaged(metadata, 10**8, "csr")
    before = pickle.dumps(model)
    for name in ("fit", "partial_fit", "transform", "score", "perplexity", "resume"):
        with pytest.raises(ValueError, match="metadata is a damaged sparse matrix"):
            getattr(model, name)(case.X(), metadata=bad)
    for name in ("predict_prevalence", "doc_topic_priors"):
        with pytest.raises(ValueError, match="metadata is a damaged sparse matrix"):
            getattr(model, name)(bad)
    assert pickle.dumps(model) == before


def test_metrics_refuse_damaged_sparse_documents():
    X, topics = COUNTS[0].X(), np.full((2, 40), 1 / 40)
    bad = _damaged(X, 10**8, "csr")
    calls = {
        "observed": lambda: metrics.document_completion(bad, X, topics),
        "hidden": lambda: metrics.document_completion(X, bad, topics),
        "X": lambda: metrics.doc_topic_proportions(bad, topics),
        "X ": lambda: metrics.split_tokens(bad),
        "X  ": lambda: metrics.coherence(topics, bad),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"{name.strip()} is a damaged sparse matrix"):
            call()


@each_count_model
def test_a_saved_model_may_be_read_as_a_memory_map(case, tmp_path):
    X = case.X()
    model = case.new(callbacks=lambda estimator, step: step == 12).fit(X)
    joblib.dump(model, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    assert mapped.score(X) == model.score(X)
    np.testing.assert_array_equal(mapped.transform(X), model.transform(X))


@each_count_model
def test_float32_in_float32_out(case):
    X = case.X()
    model = case.new().fit(X)
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.transform(X.astype(np.float64)).dtype == model.transform(X).dtype == np.float64


# ------------------------------------------------------------------------------------------------------- bad input


BAD = {
    "negative": (-1.0, ValueError, "Negative values"),
    "NaN": (np.nan, ValueError, "NaN"),
    "infinite": (np.inf, ValueError, "infinity"),
    "minus infinite": (-np.inf, ValueError, "infinity|Negative"),
}


@pytest.mark.parametrize("method", ["fit", "partial_fit", "transform", "score", "perplexity", "resume"])
@each_count_model
def test_bad_counts_are_refused_and_nothing_is_changed(case, method):
    X = case.X()
    model = case.new().fit(X)
    before = pickle.dumps(model)
    for value, error, message in BAD.values():
        wrong = X.toarray().astype(np.float64)[:, : 39 if method == "fit" else 40]
        wrong[3, 5] = value
        for rows in (wrong, sparse.csr_array(wrong)):
            with pytest.raises(error, match=message):
                getattr(model, method)(rows)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("method", ["fit", "partial_fit", "transform", "score"])
@each_count_model
def test_what_is_no_matrix_of_numbers_is_refused(case, method):
    X = case.X()
    model = case.new().fit(X)
    before = pickle.dumps(model)
    call = getattr(model, method)
    cases = [
        (None, (TypeError, ValueError), "NoneType|Expected 2D"),
        ("some text", (TypeError, ValueError), "2D|string|float"),
        (["some text", "more"], ValueError, "2D|string|float"),
        ([["a", "b"]], ValueError, "string|float|numeric"),
        (X.toarray()[0], ValueError, "2D"),
        (np.ones((2, 40, 2)), ValueError, "dim"),
        (np.ones((0, 40)), ValueError, "0 sample"),
        (np.ones((3, 40)) * 1j, ValueError, "[Cc]omplex"),
        (object(), (TypeError, ValueError), None),
    ]
    if method == "fit":
        cases.append((np.ones((3, 0)), ValueError, "0 feature"))
    for wrong, error, message in cases:
        with warnings.catch_warnings(), pytest.raises(error, match=message):
            warnings.simplefilter("ignore")
            call(wrong)
    assert pickle.dumps(model) == before


@each_count_model
def test_counts_too_large_to_store_are_refused_not_a_crash(case):
    X = np.ones((4, 5))
    X[0, 0] = 1e15
    with pytest.raises(ValueError, match=r"largest entry being 1e\+15"):
        case.new().fit(X)
    with pytest.raises(ValueError, match=r"largest entry being 1e\+15"):
        case.new().partial_fit(X)


@pytest.mark.parametrize("case", LDA, ids=lambda case: case.id)
def test_no_tokens_and_hardly_any_tokens_are_fitted(case):
    case = replace(case, estimator=case.new(batch_size="auto", n_iter=6))
    for X in (np.zeros((5, 4)), np.eye(4), np.eye(4)[:1], np.ones((1, 1)), np.zeros((1, 1)), np.full((3, 2), 1e-3)):
        model = case.new().fit(X)
        for value in model.samples_.values():
            assert np.all(np.isfinite(value))
        np.testing.assert_allclose(model.components_.sum(axis=1), 1)
        np.testing.assert_allclose(model.transform(X).sum(axis=1), 1)
        if case.streams:
            assert np.all(np.isfinite(model.partial_fit(X).components_))
