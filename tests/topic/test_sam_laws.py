"""Spherical admixture with two topics on the circle: its posterior by quadrature, and a mistake that is rejected."""

from unittest import mock

import numpy as np
import pytest
from scipy import special

from sk_sgmcmc import SphericalAdmixtureModel
from sk_sgmcmc.kernels.models.spherical.admixture import exchange_documents
from sk_sgmcmc.topic._spherical.chain import AdmixtureChain
from tests.cases import THRESHOLD, z_scores
from tests.topic.test_sam import unit

NUMBERS = {"kappa0": 1.5, "kappa1": 6.0, "sigma": 2.0, "doc_topic_prior": 2.0}
N_CHAINS = 12


def rows():
    angle = np.array([0.1, 0.4, 1.2, 1.9, 2.6, 0.8, 2.2, -0.5])
    return np.column_stack([np.cos(angle), np.sin(angle)])


def statistics(beta, center):
    """Of topics (..., 2, 2), the same when they change places."""
    across = np.sum(beta[..., 0, :] * beta[..., 1, :], axis=-1)
    along = beta.sum(axis=-2) @ center
    return np.stack([across, across**2, along, along**2], axis=-1)


def exact():
    """Their means and deviations under the posterior: topics on a grid, proportions by Gauss-Jacobi; and the centre."""
    X = rows()
    center = unit(X.sum(axis=0))
    angle = (np.arange(120) + 0.5) / 120 * 2.0 * np.pi
    points = np.column_stack([np.cos(angle), np.sin(angle)])
    beta = np.stack(np.broadcast_arrays(points[:, None], points[None, :]), axis=2)  # (120, 120, 2 topics, 2)
    alpha = NUMBERS["doc_topic_prior"]
    nodes, weights = special.roots_jacobi(60, alpha - 1.0, alpha - 1.0)
    share = 0.5 * (nodes + 1.0)
    log_p = np.log(
        special.i0(np.linalg.norm(NUMBERS["kappa0"] * center + NUMBERS["sigma"] * beta.sum(axis=2), axis=-1))
    )
    u = unit(share[:, None] * beta[:, :, None, 0] + (1.0 - share[:, None]) * beta[:, :, None, 1])
    for x in X:
        log_p += np.log(np.exp(NUMBERS["kappa1"] * (u @ x)) @ (weights / weights.sum()))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    means = np.tensordot(p, statistics(beta, center), axes=2)
    return means, np.sqrt(np.tensordot(p, statistics(beta, center) ** 2, axes=2) - means**2), center


def chain_means(sampler, seed, center, **options):
    """Means of the statistics over each chain, (N_CHAINS, 4)."""
    model = SphericalAdmixtureModel(
        2, sampler=sampler, n_iter=2000, burn_in=0.1, thin=2, n_chains=N_CHAINS, random_state=seed, **NUMBERS,
        **options,
    )  # fmt: skip
    if not sampler.startswith("gmc"):
        model.set_params(sampler__step_size=0.025, sampler__friction=4.0)
    draws = model.fit(rows()).samples_["components"].astype(float)
    return statistics(draws, center).mean(axis=1)


@pytest.mark.parametrize("sampler", ["sggmc", "gsgnht", "gmc-b-gibbs"])
def test_two_topics_have_their_posterior(sampler, global_random_seed):
    means, _, center = exact()
    drawn = chain_means(sampler, global_random_seed, center, batch_size="auto", n_inner=5)
    assert np.abs(z_scores(drawn, means)).max() < THRESHOLD


def test_how_far_stored_proportions_of_minibatches_are_from_it(global_random_seed):
    """Two rows of eight at a time: the rest of the gradient is an epoch old, an approximation, here at its worst."""
    means, deviations, center = exact()
    drawn = chain_means("sggmc", global_random_seed, center, batch_size=2, n_inner=2)
    assert np.abs((drawn.mean(axis=0) - means) / deviations).max() < 0.5


class WithoutTheLength(AdmixtureChain):
    """Mistake: the mean direction's length is taken for a constant, so the gradient lacks -u (u'v) / |u|^3."""

    def _move_topics(self, ptr, words, values, docs, draws, numbers, center, scale, *others):
        terms, across = np.zeros((self.data.n_docs, 2)), np.zeros((2, 2))
        exchange_documents(
            self.beta, ptr, words, values, docs, draws[:, 0], terms, 1.0, np.zeros_like(self.beta), across
        )
        others = np.zeros_like(self.beta), -across
        super()._move_topics(ptr, words, values, docs, draws, numbers, center, scale, *others)


def test_a_gradient_without_the_length_is_rejected(global_random_seed):
    means, _, center = exact()
    with mock.patch("sk_sgmcmc.topic._spherical.model.AdmixtureChain", WithoutTheLength):
        drawn = chain_means("sggmc", global_random_seed, center, batch_size="auto", n_inner=1)
    assert np.abs(z_scores(drawn, means)).max() > 1.3 * THRESHOLD
