"""A mixture of five rows whose posterior is known by enumeration of all partitions, and chains of it."""

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.mixture._dirichlet_process.cells import KIND_OF, Cells, RowData, encode_binary, encode_categories
from sk_sgmcmc.mixture._dirichlet_process.collapsed import CollapsedChain
from sk_sgmcmc.mixture._dirichlet_process.results import log_weights
from sk_sgmcmc.mixture._dirichlet_process.slice import StickChain
from sk_sgmcmc.samplers import SCIR, SliceGibbs
from tests.naive import dp_categorical as naive

A = 0.6  # the entries' Dirichlet parameter
N_LEVELS = 3
ROWS = {
    "multinomial": np.array([[3, 0, 0], [2, 1, 0], [0, 1, 3], [0, 0, 2], [1, 0, 1]], dtype=float),
    "categorical": np.array([[0, 0], [0, np.nan], [2, 1], [2, 1], [1, 0]], dtype=float),
    "bernoulli": np.array([[1, 1, 1], [1, np.nan, 1], [0, 0, 0], [0, 0, 1], [np.nan, 1, 0]], dtype=float),
}
NEW = {
    "multinomial": np.array([[2.0, 0, 1]]),
    "categorical": np.array([[0.0, 1]]),
    "bernoulli": np.array([[1.0, 0, 1]]),
}


def encoded(X, likelihood):
    """Rows as cells, and what the cells are."""
    if likelihood == "multinomial":
        return sparse.csr_array(X), Cells.make(KIND_OF[likelihood], [X.shape[1]], A)
    if likelihood == "bernoulli":
        return encode_binary(X, "a test"), Cells.make(KIND_OF[likelihood], [2] * X.shape[1], A)
    levels = [np.arange(N_LEVELS)] * X.shape[1]
    return encode_categories(X, levels), Cells.make(KIND_OF[likelihood], [N_LEVELS] * X.shape[1], A)


def statistics(z):
    """Of labels (..., n_rows): which pairs are together, and whether there are 1, 2, ... clusters."""
    i, k = np.triu_indices(z.shape[-1], 1)
    together = z[..., i] == z[..., k]
    n_clusters = np.array([np.unique(labels).size for labels in z.reshape(-1, z.shape[-1])])
    sizes = (n_clusters[:, None] == np.arange(1, z.shape[-1])).reshape(*z.shape[:-1], -1)
    return np.concatenate([together, sizes], axis=-1).astype(float)


def exact_law(likelihood, prior):
    """Posterior means of `statistics`, and the predictive probability of `NEW`."""
    X = ROWS[likelihood]
    labels = naive.partitions(len(X))
    log_p = naive.log_posterior(labels, X, likelihood, A, prior, N_LEVELS)
    p = np.exp(log_p - logsumexp(log_p))
    wider = np.vstack([X, NEW[likelihood]])
    longer = naive.partitions(len(wider))
    with_new = logsumexp(naive.log_posterior(longer, wider, likelihood, A, prior, N_LEVELS))
    if np.isscalar(prior):
        with_new -= np.log(prior + len(X))
    return np.append(p @ statistics(labels), np.exp(with_new - logsumexp(log_p)))


def make_chain(
    kind, likelihood, prior, seed, n_iter, n_batch=5, *, n_pairs=2, step_size=0.7, n_start=None, X=None, weights=None
):
    """A chain that keeps nothing: "collapsed", "slices", "stored" or "fresh"."""
    X, layout = encoded(ROWS[likelihood] if X is None else X, likelihood)
    data = RowData.make(X, weights, layout, n_batch)
    plan = DrawPlan(n_iter + 1, n_iter, 1)
    seed = np.random.SeedSequence(seed)
    if kind == "collapsed":
        return CollapsedChain(seed, plan, layout, prior, n_pairs=n_pairs, n_start=n_start).bind(data)
    sampler = SliceGibbs()._resolved(1.0) if kind == "slices" else SCIR(step_size)._resolved(step_size)
    return StickChain(seed, plan, layout, prior, sampler, stored=kind != "fresh", n_start=2).bind(data)


def run(chain, n_steps, likelihood, burn_in=100):
    """`statistics` and the predictive probability of `NEW` after each step, (n_steps, n_statistics)."""
    X, layout = encoded(NEW[likelihood], likelihood)
    base = layout.base_log_density(X)
    chain.run(burn_in)
    place = places(chain, likelihood)
    z, predictive = np.empty((n_steps, 5), dtype=int), np.empty((n_steps, 1))
    for t in range(n_steps):
        chain.run(chain.step + 1)
        z[t] = chain.z[place]
        draw = chain.current_draw()
        predictive[t] = np.exp(logsumexp(log_weights(X, draw["weights"], draw["components"], layout, base)))
    return np.concatenate([statistics(z), predictive], axis=1)


def places(chain, likelihood):
    """Where each row of `ROWS` lies in the chain's order."""
    own = chain.data.selected(np.arange(5)).toarray()
    given = encoded(ROWS[likelihood], likelihood)[0].toarray()
    place = [int(np.flatnonzero((own == row).all(axis=1))[0]) for row in given]
    if likelihood == "categorical":
        place[3] = place[2] + 1  # two rows are equal; the lighter one comes first
    return place
