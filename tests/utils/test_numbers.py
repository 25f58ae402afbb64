"""What is a number, and what is a text in the place of one."""

import numpy as np
import pytest
from scipy import sparse

from sk_sgmcmc.utils._numbers import check_n_jobs, holds_texts, interval_ends, interval_tails, summable
from tests.conftest import importorskip

TEXTS = ["a canal", "a tariff"]


def test_texts_are_seen_in_every_container():
    pandas, polars = importorskip("pandas"), importorskip("polars")
    for X in (
        TEXTS, tuple(TEXTS), [[text] for text in TEXTS], np.array(TEXTS), np.array(TEXTS, dtype=object),
        pandas.Series(TEXTS), polars.Series(TEXTS), pandas.DataFrame({"n": [1, 2], "text": TEXTS}),
        polars.DataFrame({"n": [1, 2], "text": TEXTS}), pandas.DataFrame({"c": pandas.Categorical(TEXTS)}),
    ):  # fmt: skip
        assert holds_texts(X)


@pytest.mark.parametrize(
    "X",
    [[[1, 2]], [["1", "2"]], np.eye(2), np.array([["1.5"]]), sparse.eye_array(2), [], None, np.array([[None]]), 3.0],
)
def test_numbers_are_none(X):
    assert not holds_texts(X)


@pytest.mark.parametrize(
    ("n_jobs", "error"), [((1.0, -1.0), TypeError), (2.0, TypeError), (0, ValueError), (1025, ValueError)]
)
def test_numbers_of_jobs_that_are_none_are_named(n_jobs, error):
    with pytest.raises(error, match="n_jobs="):
        check_n_jobs(n_jobs)


def test_frames_of_numbers_are_none():
    pandas = importorskip("pandas")
    assert not holds_texts(pandas.DataFrame({"n": [1, 2]}))
    assert not holds_texts(pandas.DataFrame.sparse.from_spmatrix(sparse.eye_array(3)))
    assert not holds_texts(pandas.DataFrame({"n": [1, 2]}, dtype=object))


def test_summable_numbers_have_the_same_sum_in_any_order():
    values = np.random.default_rng(0).exponential(size=1000) * 10.0 ** np.arange(-9, 1).repeat(100)
    assert np.cumsum(values)[-1] != np.cumsum(values[::-1])[-1]
    rounded = summable(values)
    assert np.cumsum(rounded)[-1] == np.cumsum(rounded[::-1])[-1]
    np.testing.assert_allclose(rounded, values, atol=2.0**-20)
    assert rounded.min() == 2.0**-20 and summable(values, 0.0).min() == 0.0


@pytest.mark.parametrize("n_draws", [19, 99, 100, 1000])
def test_intervals_have_their_mass_for_any_number_of_draws(n_draws):
    # A further draw lies below the k-th of n with probability k / (n + 1).
    low, high = interval_ends(np.arange(1.0, n_draws + 1.0), interval_tails(0.9))
    assert (high - low) / (n_draws + 1.0) == pytest.approx(0.9)
