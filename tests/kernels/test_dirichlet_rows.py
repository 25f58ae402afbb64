"""Dirichlet draws whose numbers depend on a seed alone."""

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc.kernels.math import dirichlet

N = 20_000


def draw(shape, seed, n=N):
    shapes = np.tile(np.asarray(shape, dtype=float), (n, 1))
    out = np.empty(shapes.shape, dtype=np.float32)
    dirichlet.dirichlet_rows(shapes, np.uint64(seed), out)
    return out.astype(float)


@pytest.mark.parametrize("shape", [(0.3, 1.0, 2.5, 40.0), (0.05, 0.05, 0.9), (1e-3, 1.0, 1000.0)])
def test_cells_have_beta_laws_and_rows_sum_to_one(shape, global_random_seed):
    draws, total = draw(shape, global_random_seed), sum(shape)
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, atol=1e-6)
    for cell, a in zip(draws.T, shape, strict=True):
        # float32 rounds the smallest draws to 0, and the largest to 1: compare in between.
        law = stats.beta(a, total - a)
        at = law.ppf(np.linspace(0.05, 0.95, 19))
        at = at[(at > 1e-30) & (at < 1 - 1e-5)]
        seen = (cell[:, None] <= at).mean(axis=0)
        z = (seen - law.cdf(at)) / np.sqrt(law.cdf(at) * law.sf(at) / N)
        assert np.abs(z).max() < 5


@pytest.mark.parametrize("shape", [(0.4, 1.5, 3.0), (6.4, 3.4, 0.4), (2.4, 0.4, 3.4), (0.4, 0.4, 0.4)])
def test_cells_have_the_joint_law(shape, global_random_seed):
    # A number used for two cells shows in the products of neighbours before it shows in either cell.
    shape, draws = np.array(shape), draw(shape, global_random_seed, 5 * N)
    products = draws[:, :, None] * draws[:, None]
    expected = (np.outer(shape, shape) + np.diag(shape)) / (shape.sum() * (shape.sum() + 1.0))
    z = (products.mean(axis=0) - expected) / (products.std(axis=0) / np.sqrt(5 * N))
    assert np.abs(z).max() < 5


def test_tiny_parameters_leave_one_cell_by_their_shares(global_random_seed):
    draws = draw((1e-5, 2e-5, 1e-5), global_random_seed)
    assert np.mean(draws.max(axis=1) > 0.999) > 0.99
    often = (draws.argmax(axis=1)[:, None] == np.arange(3)).mean(axis=0)
    np.testing.assert_allclose(often, [0.25, 0.5, 0.25], atol=5 * np.sqrt(0.25 / N))


def test_the_numbers_are_those_of_the_seed():
    """Written down once: they are part of what a saved model is, whatever the versions of NumPy and numba."""
    expected = [
        [4.378771e-32, 0.06199102, 0.1149383, 0.8230706],
        [2.311142e-17, 0.05348241, 0.4286381, 0.5178795],
    ]
    np.testing.assert_allclose(draw((0.01, 0.5, 1.0, 7.0), 12345, 2), expected, rtol=1e-5)
    assert not np.array_equal(draw((0.5, 1.0), 1, 3), draw((0.5, 1.0), 2, 3))
