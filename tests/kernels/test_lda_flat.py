"""Topics on flat space: the softmax and its gradient."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import log_softmax, softmax

from sk_sgmcmc.kernels.models.lda.softmax import softmax_cells, topic_gradient

SHAPE = (6, 3)


def case(seed=0):
    rng = np.random.default_rng(seed)
    spread, prior = rng.uniform(0.1, 2.0, SHAPE), rng.uniform(0.01, 1.0, SHAPE)
    counts = rng.poisson(3.0, SHAPE).astype(float)
    return rng.normal(size=SHAPE), spread, prior, counts


def cells_of(state, spread):
    cells, total = np.empty(SHAPE), np.empty(SHAPE[1])
    softmax_cells(state, spread, cells, total)
    return cells, total


def log_density(state, spread, prior, counts, prior_scale):
    theta = spread * state
    if prior_scale:
        before = -0.5 * ((theta - prior) / prior_scale) ** 2
    else:  # exp(theta) ~ Gamma(prior, 1), with the derivative of exp
        before = prior * theta - np.exp(theta)
    return before.sum() + (counts * log_softmax(theta, axis=0)).sum()


@pytest.mark.parametrize("prior_scale", [0.0, 0.7])
def test_gradient_is_that_of_the_log_density(prior_scale):
    state, spread, prior, counts = case()

    def gradient(x):
        x, out = x.reshape(SHAPE), np.empty(SHAPE)
        cells, total = cells_of(x, spread)
        topic_gradient(x, spread, cells, total, prior + counts, counts.sum(axis=0), prior, prior_scale, out)
        return out.ravel()

    def value(x):
        return log_density(x.reshape(SHAPE), spread, prior, counts, prior_scale)

    assert check_grad(value, gradient, state.ravel()) < 1e-4


def test_softmax_is_safe_far_out():
    state, spread, *_ = case()
    state[0, 0], state[1, 1] = 900.0, -900.0
    spread[:] = 1.0
    cells, total = cells_of(state, spread)
    np.testing.assert_allclose(cells / total, softmax(state, axis=0), rtol=1e-12, atol=1e-290)
