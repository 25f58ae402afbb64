import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc.utils import rng_from_key, row_keys
from sk_sgmcmc.utils._seeds import seed_sequence
from tests.naive import completion as naive


def first_numbers(seeds):
    return [np.random.default_rng(seed).random() for seed in seeds]


@pytest.mark.parametrize("make", [lambda: 3, lambda: np.int64(3), lambda: np.random.SeedSequence(3)])
def test_equal_seeds_give_equal_chains_and_more_chains_change_no_other(make):
    seed = make()
    assert first_numbers(seed_sequence(seed).spawn(2)) == first_numbers(seed_sequence(seed).spawn(5))[:2]
    assert len(set(first_numbers(seed_sequence(seed).spawn(5)))) == 5


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_generators_are_advanced_and_repeat_from_the_same_state(make):
    rng = make(0)
    a, b = first_numbers(seed_sequence(rng).spawn(2)), first_numbers(seed_sequence(rng).spawn(2))
    assert a != b
    assert a == first_numbers(seed_sequence(make(0)).spawn(2))


def test_global_random_state_is_neither_read_nor_written():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = first_numbers(seed_sequence(None).spawn(2))
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert first != first_numbers(seed_sequence(None).spawn(2))


@pytest.mark.parametrize("bad, error", [(-1, ValueError), ("0", TypeError), (1.0, TypeError), (True, TypeError)])
def test_bad_seeds_are_refused(bad, error):
    with pytest.raises(error, match="random_state"):
        seed_sequence(bad).spawn(2)


@pytest.fixture
def counts():
    X = np.random.default_rng(0).poisson(0.4, (40, 30)).astype(float)
    X[3] = 0
    X[4, 5] = 1.5
    return X


def test_row_keys_equal_their_slow_twin(counts):
    np.testing.assert_array_equal(
        row_keys(sparse.csr_array(counts)), np.array([naive.row_key(row) for row in counts], dtype=np.uint64)
    )


def test_row_keys_speak_of_the_content_only(counts):
    X = sparse.csr_array(counts)
    keys = row_keys(X)
    order = np.random.default_rng(1).permutation(len(counts))
    np.testing.assert_array_equal(row_keys(X[order]), keys[order])
    np.testing.assert_array_equal(row_keys(X[7:9]), keys[7:9])
    np.testing.assert_array_equal(row_keys(sparse.csr_matrix(np.pad(counts, ((0, 0), (0, 9))))), keys)
    whole = counts.round()
    np.testing.assert_array_equal(row_keys(sparse.csr_array(whole)), row_keys(sparse.csr_array(whole.astype(np.int32))))
    wide = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    np.testing.assert_array_equal(row_keys(wide), keys)
    # stored backwards, with a stored zero and with an entry in two pieces
    messy = sparse.csr_array((np.array([2.0, 0.0, 1.0, 1.0]), np.array([4, 2, 0, 4]), np.array([0, 4])), shape=(1, 6))
    data = messy.data.copy()
    assert row_keys(messy) == row_keys(sparse.csr_array(np.array([[1.0, 0, 0, 0, 3.0, 0]])))
    np.testing.assert_array_equal(messy.data, data)


def test_row_keys_tell_rows_apart():
    X = sparse.csr_array(np.vstack([np.eye(200), 2 * np.eye(200), np.eye(200) + np.roll(np.eye(200), 1, axis=1)]))
    assert len(np.unique(row_keys(X))) == 600


def test_keys_use_all_64_bits():
    keys = row_keys(sparse.csr_array(np.arange(1.0, 2001.0)[:, None]))
    bits = (keys[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(2000)


def test_rng_from_key_depends_on_key_and_salt():
    assert rng_from_key(np.uint64(5), 1).random() == rng_from_key(5, 1).random()
    assert len({rng_from_key(k, s).random() for k in (1, 2) for s in (1, 2)}) == 4
