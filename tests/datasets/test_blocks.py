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
    for i in range(len(blocks.sizes)):
        assert np.shares_memory(blocks.load(i).data, X.data)
        assert np.shares_memory(blocks.load(i).indices, X.indices)


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


def test_blocks_that_change_are_noticed(X):
    turns = iter([[X, X], [X, X[:3]]])
    with pytest.raises(ValueError, match="block 1 has changed"):
        BayesianLDA(n_iter=2).fit(CountBlocks(lambda: next(turns)))


def test_shard_tokens_must_be_positive(X):
    with pytest.raises(ValueError, match="shard_tokens=0 must be at least 1"):
        CountBlocks([X], shard_tokens=0)


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
