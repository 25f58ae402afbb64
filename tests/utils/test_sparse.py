"""The door for sparse matrices: every damage is refused with its place, every legal oddity is taken."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc.utils._sparse import canonical, well_formed

DENSE = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 5, 7.0]])


def _changed(form, **changes):
    """DENSE in a format, where some entries of some arrays (or whole arrays) are others."""

    def make():
        X = getattr(sparse, f"{form}_array")(DENSE) if form != "bsr" else sparse.bsr_array(DENSE, blocksize=(1, 2))
        for name, (place, value) in changes.items():
            array = getattr(X, name).copy()
            if place is not None:
                array[place] = value
            setattr(X, name, array if place is not None else value)
        return X

    return make


def _coordinates(axis, value):
    X = sparse.coo_array(DENSE)
    (X.row, X.col)[axis][1] = value
    return X


def _lists(place, row):
    X = sparse.lil_array(DENSE)
    X.rows[place] = row
    return X


def _dictionary():
    X = sparse.dok_array(DENSE)
    X._dict[(0, 9)] = 1.0
    return X


DAMAGED = {
    "an index too large": (_changed("csr", indices=(3, 10**8)), "X.indices holds 100000000 in row 2.* 4 columns"),
    "an index one too large": (_changed("csr", indices=(0, 4)), "X.indices holds 4 in row 0, but X has 4 columns"),
    "a negative index": (_changed("csr", indices=(4, -1)), "X.indices holds -1 in row 2"),
    "a wide index": (_changed("csr", indices=(None, np.array([1, 3, 0, 2, 2**40]))), f"holds {2**40} in row 2"),
    "a row of CSC too large": (_changed("csc", indices=(1, 3)), "X.indices holds 3 in column 1, but X has 3 rows"),
    "pointers that fall": (_changed("csr", indptr=(1, 4)), "X.indptr falls from 4 to 2 at row 1"),
    "a negative pointer": (_changed("csr", indptr=(2, -7)), "X.indptr falls from 2 to -7 at row 1"),
    "pointers beyond the end": (_changed("csr", indptr=(3, 99)), "X.indptr ends at 99, but only 5 entries are stored"),
    "more entries than memory": (
        _changed("csr", indptr=(None, np.array([0, 2, 2, 2**40]))), f"X.indptr ends at {2**40}, but only 5",
    ),
    "pointers that begin late": (_changed("csr", indptr=(0, 1)), "X.indptr begins with 1 instead of 0"),
    "too few pointers": (
        _changed("csr", indptr=(None, np.array([0, 2, 5]))), "indptr has 3 entries, but 3 rows need 4",
    ),
    "too few values": (_changed("csr", data=(None, np.ones(2))), "X.indices has 5 entries and X.data 2"),
    "too few indices": (_changed("csc", indices=(None, np.zeros(2, int))), "X.indices has 2 entries and X.data 5"),
    "indices that are no integers": (_changed("csr", indices=(None, np.zeros(5))), "X.indices is float64"),
    "indices in two dimensions": (_changed("csr", indices=(None, np.zeros((5, 1), int))), r"of shape \(5, 1\)"),
    "values in two dimensions": (_changed("csr", data=(None, np.zeros((5, 1)))), r"X.data has shape \(5, 1\)"),
    "a block outside": (_changed("bsr", indices=(0, 7)), "X.indices holds 7 in row of blocks 0"),
    "blocks that do not tile": (_changed("bsr", data=(None, np.zeros((4, 1, 3)))), "do not tile"),
    "a column of COO": (lambda: _coordinates(1, 9), "an entry in column 9, but 4 columns"),
    "a row of COO": (lambda: _coordinates(0, -2), "an entry in row -2, but 3 rows"),
    "short values of COO": (_changed("coo", data=(None, np.ones(2))), "must be the same"),
    "diagonals without data": (_changed("dia", data=(None, np.ones((1, 4)))), "does not fit"),
    "a column of LIL": (lambda: _lists(0, [1, 9]), "an entry in column 9, but 4 columns"),
    "a short list of LIL": (lambda: _lists(0, [1]), "different lengths"),
    "a text in LIL": (lambda: _lists(0, [1, "x"]), "other than whole numbers"),
    "a key of DOK": (_dictionary, r"an entry at \(0, 9\)"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_refused_with_its_place_and_the_remedy(what):
    make, message = DAMAGED[what]
    X = make()
    before = pickle.dumps(vars(X))
    with pytest.raises(ValueError, match=f"X is a damaged sparse matrix: .*{message}.*Build it again"):
        well_formed(X)
    assert pickle.dumps(vars(X)) == before
    with pytest.raises(ValueError, match=r"^metadata is a damaged"):
        well_formed(X, "metadata")


def test_a_matrix_of_one_dimension_is_refused():
    X = sparse.coo_array(np.ones(3))
    if X.ndim == 1:  # before SciPy 1.13 it has two
        with pytest.raises(ValueError, match="Expected 2D array, got X of shape"):
            well_formed(X)


@pytest.mark.parametrize("index", [np.int8, np.int16, np.uint32, np.uint64, np.int64, ">i4", ">i8"])
def test_index_arrays_of_any_integers_are_read(index):
    X = sparse.csr_array(DENSE)
    X.indices = X.indices.astype(index)  # the pointers keep their width
    before = pickle.dumps(X)
    taken = well_formed(X)
    np.testing.assert_array_equal(taken.toarray(), DENSE)
    assert taken.indices.dtype == taken.indptr.dtype and taken.indices.dtype.isnative
    assert pickle.dumps(X) == before


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_a_sound_matrix_passes_as_it_is(form):
    X = getattr(sparse, f"{form}_matrix")(DENSE)
    assert well_formed(X) is X
    empty = getattr(sparse, f"{form}_array")((3, 4))
    assert well_formed(empty) is empty
    for other in (DENSE, [[1]], None, "X"):
        assert well_formed(other) is other


def test_room_behind_the_last_entry_is_no_damage_and_stays():
    X = sparse.csr_array(DENSE)
    X.indices, X.data = np.append(X.indices, np.int32([99, 99])), np.append(X.data, [1.0, 1.0])
    assert well_formed(X) is X
    assert X.indices.size == 7


def test_memory_maps_are_looked_at_and_not_copied(tmp_path):
    X, parts = sparse.csr_array(DENSE), {}
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(X, name))
        parts[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        setattr(X, name, parts[name])
    taken = well_formed(X)
    assert all(getattr(taken, name) is array for name, array in parts.items())
    assert all(np.shares_memory(getattr(canonical(X), name), array) for name, array in parts.items())


def test_canonical_sums_duplicates_and_believes_no_flag():
    X = sparse.csr_array((np.array([2.0, 1.0, 1.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    X.has_sorted_indices = X.has_canonical_format = True
    np.testing.assert_array_equal(canonical(X).indices, [0, 2])
    np.testing.assert_array_equal(canonical(X).data, [1.0, 3.0])
    np.testing.assert_array_equal(X.indices, [2, 0, 2])
