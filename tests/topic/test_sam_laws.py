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
    of_sampler = {name: options.pop(name) for name in list(options) if name.startswith("sampler__")}
    model = SphericalAdmixtureModel(
        2, sampler=sampler, n_iter=2000, burn_in=0.1, thin=2, n_chains=N_CHAINS, random_state=seed, **NUMBERS,
    ).set_params(**options)  # fmt: skip
    if not sampler.startswith("gmc"):
        model.set_params(**{"sampler__step_size": 0.025, "sampler__friction": 4.0, **of_sampler})
    draws = model.fit(rows()).samples_["components"].astype(float)
    return statistics(draws, center).mean(axis=1)


@pytest.mark.parametrize("sampler", ["sggmc", "gsgnht", "gmc-b-gibbs"])
def test_two_topics_have_their_posterior(sampler, global_random_seed):
    means, _, center = exact()
    drawn = chain_means(sampler, global_random_seed, center, batch_size="auto", n_inner=5)
    assert np.abs(z_scores(drawn, means)).max() < THRESHOLD


# Half of the rows at a time, and steps chosen by default.
STORED = {"batch_size": 4, "n_inner": 10, "sampler__step_size": "auto", "sampler__friction": "auto"}


class Stale(AdmixtureChain):
    """Mistake: the topics' motion since the last visit of the other documents is left out."""

    def _since(self, docs):
        return np.empty((0, 0)), np.empty((0, 0)), 0.0


def test_stored_proportions_of_minibatches_have_it_too(global_random_seed):
    means, _, center = exact()
    drawn = chain_means("sggmc", global_random_seed, center, **STORED)
    assert np.abs(z_scores(drawn, means)).max() < THRESHOLD


def test_terms_of_documents_that_stay_as_they_were_are_rejected(global_random_seed):
    means, _, center = exact()
    with mock.patch.dict("sk_sgmcmc.topic._spherical.model.CHAINS", dense=Stale):
        drawn = chain_means("sggmc", global_random_seed, center, **STORED)
    assert np.abs(z_scores(drawn, means)).max() > 1.3 * THRESHOLD


# --------------------------------------------------------------------------- the same where everything is conjugate


def spread_of_a_location(rule, seed, n_rows=400, n_batch=50, h=4e-4, n_steps=3000, n_chains=40):
    """Deviation of a location over its exact one: rows have latent means about it, stored and redrawn by minibatches.

    Latents are N(b, 1), rows N(latent, 1), and b moves by Langevin steps along a gradient that is stored row by row.
    """
    rng = np.random.default_rng(seed)
    y = np.sqrt(2.0) * rng.standard_normal(n_rows)
    exact_sd = np.sqrt(2.0 / n_rows)
    b = y.mean() + exact_sd * rng.standard_normal(n_chains)
    z = (b[:, None] + y) / 2.0 + np.sqrt(0.5) * rng.standard_normal((n_chains, n_rows))
    stored, kept = z - b[:, None], []
    for t in range(n_steps):
        S = rng.permutation(n_rows)[:n_batch]
        before, others = z[:, S], stored.sum(axis=1) - stored[:, S].sum(axis=1)
        z[:, S] = (b[:, None] + y[S]) / 2.0 + np.sqrt(0.5) * rng.standard_normal((n_chains, n_batch))
        at = {"stale": None, "right": before, "redraw": z[:, S]}.get(rule)
        if rule == "exact":
            others = (z - b[:, None]).sum(axis=1) - (z[:, S] - b[:, None]).sum(axis=1)
        elif at is not None:
            others += (n_rows - n_batch) / n_batch * (at - b[:, None] - stored[:, S]).sum(axis=1)
        stored[:, S] = z[:, S] - b[:, None]
        b = b + h * (others + stored[:, S].sum(axis=1)) + np.sqrt(2.0 * h) * rng.standard_normal(n_chains)
        if t >= n_steps // 10:
            kept.append(b - y.mean())
    return np.std(kept) / exact_sd


@pytest.mark.parametrize("rule, ratio", [("exact", 1.04), ("right", 1.04), ("redraw", 1.29), ("stale", 1.49)])
def test_the_change_before_the_redraw_leaves_the_spread_of_a_gradient_without_age(rule, ratio, global_random_seed):
    assert spread_of_a_location(rule, global_random_seed) == pytest.approx(ratio, abs=0.05)


class WithoutTheLength(AdmixtureChain):
    """Mistake: the mean direction's length is taken for a constant, so the gradient lacks -u (u'v) / |u|^3."""

    def _move_topics(self, ptr, words, values, docs, draws, numbers, center, scale, *_):
        terms, across = np.zeros((self.data.n_docs, 2)), np.zeros((2, 2))
        exchange_documents(
            self.beta, ptr, words, values, docs, draws[:, 0], terms, 1.0, np.zeros_like(self.beta), across
        )
        others = np.zeros_like(self.beta), -across, np.empty((0, 0)), np.empty((0, 0)), 0.0
        super()._move_topics(ptr, words, values, docs, draws, numbers, center, scale, *others)


def test_a_gradient_without_the_length_is_rejected(global_random_seed):
    means, _, center = exact()
    with mock.patch.dict("sk_sgmcmc.topic._spherical.model.CHAINS", dense=WithoutTheLength):
        drawn = chain_means("sggmc", global_random_seed, center, batch_size="auto", n_inner=1)
    assert np.abs(z_scores(drawn, means)).max() > 1.3 * THRESHOLD
