"""Polya-Gamma draws: moments, and the Laplace transform."""

import numpy as np
import pytest

from sk_sgmcmc.kernels.math import polya_gamma
from tests.cases import THRESHOLD

N = 100_000


def draws(c, seed=0):
    out = np.empty(N)
    polya_gamma.polya_gamma(np.full(N, float(c)), np.random.default_rng(seed), out)
    return out


def mean_of(c):
    return 0.25 if c == 0 else np.tanh(c / 2) / (2 * c)


@pytest.mark.parametrize("c", [0, 0.3, -2, 3.1, 3.2, 12, 80, 400, -3000])
def test_draws_have_the_moments_and_the_laplace_transform(c):
    w, size = draws(c), abs(c)
    assert np.all(w > 0) and np.all(np.isfinite(w))
    assert abs(w.mean() - mean_of(size)) < THRESHOLD * w.std() / np.sqrt(N)
    for t in np.array([0.5, 2.0]) / mean_of(size):
        values = np.exp(-t * w)
        # cosh(c / 2) / cosh(sqrt(c^2 / 4 + t / 2)), without overflow
        root = np.sqrt(size**2 / 4 + t / 2)
        expected = np.exp(size / 2 - root) * (1 + np.exp(-size)) / (1 + np.exp(-2 * root))
        assert abs(values.mean() - expected) < THRESHOLD * values.std() / np.sqrt(N)


def test_draws_of_another_tilt_are_rejected():
    w = draws(2.0)
    assert abs(w.mean() - mean_of(2.2)) > THRESHOLD * w.std() / np.sqrt(N)
