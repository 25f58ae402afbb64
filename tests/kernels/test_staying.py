"""Tokens that keep their topic: equal to counting by NumPy."""

import numpy as np
import pytest

from sk_sgmcmc.kernels.models.lda import assignments


@pytest.mark.parametrize("n_tokens, n_topics", [(0, 3), (1, 1), (7, 2), (5000, 300), (3 * 2**20 + 5, 4)])
def test_counts_are_those_of_numpy_and_are_added(n_tokens, n_topics):
    rng = np.random.default_rng(n_tokens)
    before, other = rng.integers(n_topics, size=(2, n_tokens)).astype(np.uint16)
    now = np.where(rng.random(n_tokens) < 0.5, before, other)
    had, kept = np.arange(n_topics), 2 * np.arange(n_topics)
    assignments.count_staying(before, now, had, kept)
    np.testing.assert_array_equal(had, np.arange(n_topics) + np.bincount(before, minlength=n_topics))
    stayed = np.bincount(before[now == before], minlength=n_topics)
    np.testing.assert_array_equal(kept, 2 * np.arange(n_topics) + stayed)
