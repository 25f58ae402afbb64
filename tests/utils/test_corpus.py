import pickle

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc.utils import Corpus, as_table, check_counts

DENSE = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 0.5, 2.25]])


def canonical(X):
    return X.has_canonical_format and np.all(X.data != 0)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("container", ["array", "matrix"])
def test_every_sparse_format_gives_the_same_csr(form, container):
    X = getattr(sparse, f"{form}_{container}")(DENSE)
    counts = check_counts(X)
    assert isinstance(counts, sparse.csr_array)
    assert counts.dtype == np.float64
    assert canonical(counts)
    np.testing.assert_array_equal(counts.toarray(), DENSE)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int32, np.int64, np.float32, np.float64])
def test_index_widths_and_dtypes(index, dtype):
    X = sparse.csr_array(DENSE.astype(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    np.testing.assert_array_equal(check_counts(X).toarray(), DENSE.astype(dtype).astype(float))


def test_mixed_index_widths():
    X = sparse.csr_array(DENSE)
    X.indptr = X.indptr.astype(np.int64)
    X.indices = X.indices.astype(np.int32)
    np.testing.assert_array_equal(check_counts(X)[np.array([2, 0])].toarray(), DENSE[[2, 0]])


@pytest.mark.parametrize("sparse_frame", [False, True])
def test_data_frames(sparse_frame, importorskip):
    pandas = importorskip("pandas")
    frame = pandas.DataFrame(DENSE, columns=list("abcd"))
    if sparse_frame:
        frame = frame.astype(pandas.SparseDtype("float64", 0.0))
    np.testing.assert_array_equal(check_counts(frame).toarray(), DENSE)


def test_read_only_memory_maps(tmp_path):
    np.save(tmp_path / "dense.npy", DENSE)
    np.testing.assert_array_equal(check_counts(np.load(tmp_path / "dense.npy", mmap_mode="r")).toarray(), DENSE)
    messy = messy_matrix()
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(messy, name))
        parts.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    mapped = sparse.csr_array(tuple(parts), shape=messy.shape, copy=False)
    counts = check_counts(mapped)
    assert canonical(counts)
    np.testing.assert_array_equal(counts.toarray(), [[1, 0, 3]])


def messy_matrix():
    """Not sorted, a duplicate, a stored zero."""
    return sparse.csr_array((np.array([2.0, 0.0, 1.0, 1.0]), np.array([2, 1, 0, 2]), np.array([0, 4])), shape=(1, 3))


def test_the_input_is_left_unchanged():
    messy = messy_matrix()
    before = {name: getattr(messy, name).copy() for name in ("data", "indices", "indptr")}
    np.testing.assert_array_equal(check_counts(messy).toarray(), [[1, 0, 3]])
    for name, array in before.items():
        np.testing.assert_array_equal(getattr(messy, name), array)
    assert "_has_sorted_indices" not in vars(messy) or messy._has_sorted_indices is not True


def test_a_wrong_flag_of_the_input_is_not_believed():
    messy = messy_matrix()
    messy.has_sorted_indices = messy.has_canonical_format = True
    np.testing.assert_array_equal(check_counts(messy).indices, [0, 2])


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(
    "value, message",
    [
        (-1.0, "Negative values in data.*-1.*CountVectorizer"),
        (np.nan, "contains NaN.*nan_to_num"),
        (np.inf, "infinity"),
        (1e19, r"largest entry of X is 1e\+19"),
    ],
)
def test_bad_values_are_named_with_the_remedy(wrap, value, message):
    X = DENSE.copy()
    X[0, 1] = value
    with pytest.raises(ValueError, match=message):
        check_counts(wrap(X))


def test_infinities_of_both_signs_do_not_hide_as_nan():
    with pytest.raises(ValueError, match="infinity"):
        check_counts([[np.inf, -np.inf]])


@pytest.mark.parametrize(
    "X", [DENSE + 1j, sparse.csr_array(DENSE + 1j), [["a", "b"]], DENSE[0], np.empty((0, 3)), np.empty((3, 0))]
)
def test_what_is_no_table_of_numbers_is_refused(X):
    with pytest.raises(ValueError):
        check_counts(X)


def test_indices_outside_the_matrix_are_refused():
    X = sparse.csr_array(DENSE)
    X.indices = X.indices.copy()
    X.indices[0] = 9
    with pytest.raises(ValueError):
        check_counts(X)


def test_corpus_expands_tokens():
    corpus = Corpus.from_counts(DENSE)
    indptr, words, weights = corpus.expand_tokens()
    np.testing.assert_array_equal(indptr, [0, 3, 3, 10])
    np.testing.assert_array_equal(words, [1, 1, 3, 0, 0, 0, 2, 3, 3, 3])
    np.testing.assert_array_equal(weights, [1, 1, 1, 1, 1, 1, 0.5, 1, 1, 0.25])
    assert corpus.n_tokens == 10
    np.testing.assert_array_equal(corpus.doc_lengths, DENSE.sum(axis=1))
    assert (corpus.indptr.dtype, corpus.words.dtype, corpus.counts.dtype) == (np.int64, np.int32, np.float64)


def test_corpus_rows_and_take():
    corpus = Corpus.from_counts(DENSE)
    part = corpus.rows(1, 3)
    np.testing.assert_array_equal(part.to_csr().toarray(), DENSE[1:])
    assert np.shares_memory(part.counts, corpus.counts)
    np.testing.assert_array_equal(corpus.rows(1, 1).to_csr().shape, (0, 4))
    np.testing.assert_array_equal(corpus.take([2, 0, 2]).to_csr().toarray(), DENSE[[2, 0, 2]])
    with pytest.raises(IndexError, match="0:3"):
        corpus.rows(1, 4)


def test_corpus_cannot_be_written_also_after_pickling():
    corpus = Corpus.from_counts(DENSE)
    for one in (corpus, pickle.loads(pickle.dumps(corpus))):
        np.testing.assert_array_equal(one.to_csr().toarray(), DENSE)
        with pytest.raises(ValueError, match="read-only"):
            one.counts[0] = 1
        with pytest.raises(AttributeError):
            one.n_words = 3
    copy = corpus.to_csr()
    copy.data[:] = 7  # ours alone
    np.testing.assert_array_equal(corpus.to_csr().toarray(), DENSE)


def test_as_table_without_pandas(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pandas", None)
    assert as_table({"a": [1, 2]}).a == [1, 2]
