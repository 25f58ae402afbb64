"""However the same data arrive, the draws are the same; and what bad data get."""

import pickle
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pytest
from scipy import sparse

from tests.common.compare import assert_same_draws
from tests.common.instances import COUNTS, ESTIMATORS, LDA
from tests.conftest import importorskip

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
@pytest.mark.parametrize("way", WAYS)
@each_count_model
def test_the_way_data_arrive_changes_no_draw(case, way):
    X = sparse.csr_matrix(case.X(), dtype=np.float64)
    given = WAYS[way](X)
    kept = pickle.dumps(given)
    model, whole = case.new().fit(given), case.new().fit(X)
    assert_same_draws(whole, model)
    assert model.score(given) == whole.score(X)
    np.testing.assert_allclose(model.transform(given), whole.transform(X), rtol=1e-6)
    assert pickle.dumps(given) == kept, "the caller's data were changed"
    streamed = case.new().partial_fit(given)
    assert_same_draws(case.new().partial_fit(X), streamed)


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
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("bad", BAD)
@each_count_model
def test_bad_counts_are_refused_and_nothing_is_changed(case, bad, form, method):
    value, error, message = BAD[bad]
    X = case.X()
    model = case.new().fit(X)
    before = pickle.dumps(model)
    wrong = X.toarray().astype(np.float64)[:, : 39 if method == "fit" else 40]
    wrong[3, 5] = value
    with pytest.raises(error, match=message):
        getattr(model, method)(wrong if form == "dense" else sparse.csr_array(wrong))
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
