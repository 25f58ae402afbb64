"""`CountBlocks`: every way to pass blocks, and what is refused."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.model_selection import cross_val_score, train_test_split

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import CountBlocks


@pytest.fixture
def X():
    return sparse.csr_array(np.random.default_rng(0).poisson(0.5, (30, 8)).astype(float))


def stacked(blocks):
    return sparse.vstack([corpus.to_csr() for corpus in blocks.corpora()]).toarray()


def test_every_way_gives_the_same_counts(X, tmp_path):
    sparse.save_npz(tmp_path / "a.npz", X[:10])
    sparse.save_npz(tmp_path / "b.npz", sparse.csr_matrix(X[10:]))
    parts = [X[:10], X[10:]]
    ways = [parts, [tmp_path / "a.npz", str(tmp_path / "b.npz")], [X[:10].tocoo(), X[10:].tocsc()]]
    for way in (*ways, lambda: (part for part in parts), X):
        blocks = CountBlocks(way)
        assert blocks.shape == (30, 8) and blocks.n_tokens == X.sum()
        np.testing.assert_array_equal(stacked(blocks), X.toarray())


def test_a_large_matrix_is_cut_without_a_copy(X, monkeypatch):
    from sk_sgmcmc.utils import blocks as module

    monkeypatch.setattr(module, "_ENTRIES", 20)
    blocks = CountBlocks(X)
    assert len(blocks.sizes) > 3
    np.testing.assert_array_equal(stacked(blocks), X.toarray())
    for block in blocks:
        assert np.shares_memory(block.data, X.data)
        assert np.shares_memory(block.indices, X.indices)


def test_fractions_are_tokens_that_weigh_less(X):
    assert CountBlocks([0.5 * X]).n_tokens == np.ceil(0.5 * X.data).sum()


FAULTY = {
    "columns": (lambda X: [X, X[:, :7]], "block 1 has 7 columns, but block 0 has 8"),
    "negative": (lambda X: [X, -X], "smallest entry of block 1 is -"),
    "nan": (lambda X: [X, X, X * np.nan], "block 2 contains NaN"),
    "nothing": (lambda X: [], "blocks is empty"),
    "no rows": (lambda X: [X[:0]], "none of the blocks has a row"),
    "function": (lambda X: lambda: iter(()), "blocks holds no block"),
    "one path": (lambda X: "counts.npz", "blocks is of type str"),
    "one matrix of a function": (lambda X: lambda: X, "returned a csr_array; it must return an iterator"),
    "nothing of a function": (lambda X: lambda: None, "returned a NoneType; it must return an iterator"),
    "complex": (lambda X: [X, 1j * X], "Complex data not supported: block 1 is of type complex128"),
    "no file": (lambda X: [X, "nowhere.npz"], r"block 1 \('nowhere.npz'\) cannot be read"),
    "one generator": (lambda X: (part for part in [X]), "read only once.*pass the function"),
    "dense": (lambda X: [X.toarray()], "block 0 is of type ndarray"),
    "csc": (lambda X: X.tocsc(), "pass X.tocsr"),
}


@pytest.mark.parametrize("key", FAULTY)
def test_faults_are_named(key, X):
    make, message = FAULTY[key]
    with pytest.raises((ValueError, TypeError), match=message):
        CountBlocks(make(X)).shape


def test_damaged_block_is_named(X):
    damaged = X.copy()
    damaged.indices[3] = 99
    with pytest.raises(ValueError, match="block 1 is a damaged sparse matrix"):
        BayesianLDA().fit(CountBlocks([X, damaged]))


def test_a_function_that_returns_a_used_up_iterator(X):
    once = iter([X, X])
    with pytest.raises(ValueError, match="only 0 of 2 blocks were there"):
        BayesianLDA(n_iter=2).fit(CountBlocks(lambda: once))


CHANGES = {
    "rows": (lambda X: [X, X[:3]], "block 1 has changed"),
    "content": (lambda X: [X, X[::-1]], "block 1 has changed"),
    "fewer": (lambda X: [X], "only 1 of 2 blocks were there"),
    "more": (lambda X: [X, X, X], "there were more than 2 blocks"),
}


@pytest.mark.parametrize("key", CHANGES)
def test_blocks_that_change_are_noticed(key, X):
    other, message = CHANGES[key]
    turns = iter([[X, X], other(X)])
    with pytest.raises(ValueError, match=f"a second time, {message}"):
        BayesianLDA(n_iter=2).fit(CountBlocks(lambda: next(turns)))


@pytest.mark.parametrize("value", [0, -1, 1.5, "many", True])
def test_shard_tokens_are_a_count(value, X):
    with pytest.raises(ValueError, match=f"shard_tokens={value!r} must be a whole number of at least 1"):
        CountBlocks([X], shard_tokens=value)


def test_the_folder_exists_before_blocks_are_read(X, tmp_path):
    with pytest.raises(ValueError, match="not a folder; make it first"):
        CountBlocks([X], folder=tmp_path / "nowhere")
    with pytest.raises(TypeError, match="folder=3 must be the path of a folder"):
        CountBlocks([X], folder=3)


def test_rows_are_not_taken(X):
    blocks = CountBlocks([X])
    with pytest.raises(TypeError, match="cross-validation"):
        blocks[:3]
    with pytest.raises(TypeError, match="cross-validation"):
        cross_val_score(BayesianLDA(n_iter=2), blocks)
    with pytest.raises(TypeError, match="cross-validation"):
        train_test_split(blocks)
    with pytest.raises(TypeError, match="CountBlocks is not an array"):
        KMeans().fit(blocks)
