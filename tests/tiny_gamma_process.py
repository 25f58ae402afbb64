"""A small gamma process topic model: data drawn from it, and chains on them."""

import numpy as np
from scipy import sparse

from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.datasets import CountBlocks
from sk_sgmcmc.samplers import SCIR
from sk_sgmcmc.samplers._registry import make_sampler
from sk_sgmcmc.samplers.schedules import ConstantStep
from sk_sgmcmc.topic._counts.chain import CollapsedChain
from sk_sgmcmc.topic._counts.word_prior import WordPrior
from sk_sgmcmc.topic._gamma_process.atoms import ProcessPrior
from sk_sgmcmc.topic._gamma_process.document_prior import GammaProcessPrior
from sk_sgmcmc.topic._minibatch.chain import MinibatchChain
from tests.corpora import block_corpus, token_corpus

K, N_WORDS, N_DOCS, BETA = 4, 3, 6, 0.7
PRIOR = ProcessPrior(K, K, (4.0, 2.0), (6.0, 3.0), (8.0, 3.0))


def draw_process(rng, prior=PRIOR, size=()):
    """Weights (*size, K), concentration and rate (*size) from the prior."""
    shape, rate = prior.concentration
    concentration, c = rng.gamma(shape, 1.0 / rate, size), rng.gamma(prior.rate[0], 1.0 / prior.rate[1], size)
    a = concentration * prior.n_rounds / prior.n_atoms
    of_round = rng.integers(1, prior.n_rounds + 1, (*size, prior.n_atoms))
    T = rng.gamma(of_round) / np.asarray(a)[..., None]
    return rng.exponential(1.0, T.shape) / np.asarray(c)[..., None] * np.exp(-T), concentration, c


def draw_model(rng, prior=PRIOR):
    """Weights, concentration, rate, topics and counts from the model."""
    weights, concentration, c = draw_process(rng, prior)
    topics = rng.dirichlet(np.full(N_WORDS, BETA), K)
    p = rng.beta(*prior.scale, N_DOCS)
    activity = rng.gamma(np.maximum(weights, 1e-300), (p / (1.0 - p))[:, None], (N_DOCS, K))
    return weights, concentration, c, topics, rng.poisson(activity @ topics)


def statistics(weights, concentration, rate, topics):
    """Numbers that do not depend on the order of topics, (..., 6)."""
    words = np.einsum("...k,...kv->...v", weights, topics)
    return np.stack(
        [
            weights.sum(axis=-1),
            (weights**2).sum(axis=-1),
            concentration,
            rate,
            words[..., 0],
            (weights[..., None] * topics**2).sum(axis=(-1, -2)),
        ],
        axis=-1,
    )


def make_chain(seed, sampler, counts, n_iter, *, burn_in=0, thin=1, make=None, n_batch=None, n_inner=10, n_warm=0,
               shard_tokens=None):  # fmt: skip
    """A chain bound to the counts, or to shards of so many tokens; not run yet."""
    X = sparse.csr_array(counts.astype(float))
    data = token_corpus(X, K, n_batch=n_batch)
    if shard_tokens is not None:
        data, make = block_corpus(CountBlocks([X], shard_tokens=shard_tokens), K), CollapsedChain
    sampler = make_sampler(sampler)
    moves_flat = any(geometry == "euclidean" for geometry, _ in sampler._fits)
    weights_sampler = sampler._resolved(ConstantStep(0.1 if moves_flat else np.inf))
    topics_sampler = SCIR(np.inf)._resolved(None) if moves_flat else weights_sampler
    if make is None:
        make = CollapsedChain if sampler._name == "gibbs" else MinibatchChain
    plan = DrawPlan(n_iter, burn_in, thin)
    doc_prior = GammaProcessPrior(
        np.full(K, 0.1), True, process=PRIOR, weights_sampler=weights_sampler, moves_flat=moves_flat, n_inner=n_inner,
        n_burn=plan.n_burn,
    )  # fmt: skip
    parts = np.random.SeedSequence(seed), plan, topics_sampler, WordPrior(BETA, counts.shape[1], K), doc_prior
    more = {} if make is CollapsedChain else {"stored": True, "n_warm": n_warm}
    return make(*parts, init="random", **more).bind(data)


def ranks(seed, n_replicates, sampler, *, burn_in=40, thin=6, n_draws=7, **kwargs):
    """Ranks of true statistics among draws given their data, (n_replicates, n_statistics)."""
    out = []
    for s in range(n_replicates):
        weights, concentration, rate, topics, counts = draw_model(np.random.default_rng([seed, s]))
        chain = make_chain(
            [seed, s], sampler, counts, burn_in + n_draws * thin, burn_in=burn_in, thin=thin, **kwargs
        ).run(burn_in + n_draws * thin)
        draws = chain.draws()
        drawn = statistics(draws["weights"], draws["concentration"], draws["rate"], draws["components"].astype(float))
        out.append((drawn < statistics(weights, concentration, rate, topics)).sum(axis=0))
    return np.array(out)
