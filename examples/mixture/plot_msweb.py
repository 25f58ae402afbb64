"""
Which clusters of visitors does a web site have, and which sampler finds them?
==============================================================================

32,711 visitors of a web site, and which of its 294 areas each of them visited. A Dirichlet-process mixture finds groups
of visitors without being given their number. Several ways of fitting it are compared by the probability that they
assign to 5,000 other visitors:

* the published minibatch slice sampler by `SCIR` and by `SGRLD` (minibatches of 1,000 visitors, counts scaled by N/n),
  each with the best of a few step sizes, and SGRLD with the published one;
* the exact slice sampler over all visitors, `SliceGibbs`;
* the default, `Gibbs`: components are integrated out, and groups split and merged.

Run as a script with the data available (see `sk_sgmcmc.datasets.fetch_corpus`), this page is a study over five seeds
that takes some minutes. In the gallery, or without the data, it uses a small synthetic site and two seeds.
"""

# %%
# The visitors
# ------------

import sys

import numpy as np

from sk_sgmcmc import DPCategoricalMixture
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.datasets import fetch_msweb
from sk_sgmcmc.samplers import SCIR, SGRLD

WHOLE = "sphinx_gallery" not in sys.modules


def synthetic_site(n=4000, n_areas=60, n_groups=8, seed=0):
    """Visitors of a site with known groups; each visits an area at most once."""
    rng = np.random.default_rng(seed)
    interest = rng.dirichlet(np.full(n_areas, 0.08), n_groups) + 1e-4
    group = rng.choice(n_groups, n, p=rng.dirichlet(np.full(n_groups, 3.0)))
    visits = rng.random((n, n_areas)) < np.minimum(4.0 * interest[group], 0.9)
    visits = visits[visits.any(axis=1)].astype(float)
    return visits[:-800], visits[-800:], np.array([f"area {j}" for j in range(n_areas)])


real = None
if WHOLE:
    try:
        real = fetch_msweb()
    except OSError as error:
        print(f"{error}\nA synthetic site is fitted instead.\n")
if real is not None:
    visits = real.data.tocsr()
    train, test, areas = visits[real.train], visits[real.test], np.array(real.areas["title"])
    SEEDS, BATCH, N_STEPS, N_SWEEPS = range(5), 1000, 1000, 100
else:
    train, test, areas = synthetic_site()
    SEEDS, BATCH, N_STEPS, N_SWEEPS = range(2), 400, 200, 40

# %%
# Fitting
# -------
# Every fit keeps the same number of draws, from its second half. Kernels are compiled before timing starts, and the
# time spent on scoring is not counted.

N_KEPT = 50 if real is not None else 20
minibatch = {"assignments": "fresh", "batch_size": BATCH, "n_iter": N_STEPS, "thin": N_STEPS // 2 // N_KEPT}
sweeps = {"n_iter": N_SWEEPS, "thin": N_SWEEPS // 2 // N_KEPT}
METHODS = {
    "SCIR": {"sampler": SCIR(0.05), **minibatch},
    "SGRLD": {"sampler": SGRLD(0.01), **minibatch},
    "SGRLD, published step": {"sampler": SGRLD(0.001), **minibatch},
    "slice Gibbs": {"sampler": "slice-gibbs", **sweeps},
    "default": sweeps,
}
n_rows = train.shape[0]
passes = {name: params["n_iter"] * params.get("batch_size", n_rows) / n_rows for name, params in METHODS.items()}
traces, scores, clusters = ({name: [] for name in METHODS} for _ in range(3))
for name, params in METHODS.items():
    DPCategoricalMixture(**{**params, "n_iter": 4, "thin": 1}).fit(train)
    for seed in SEEDS:
        follow = HeldOutScore(test, every=max(1, params["n_iter"] // 25))
        model = DPCategoricalMixture(random_state=seed, callbacks=follow, **params).fit(train)
        traces[name].append(model.trace_)
        scores[name].append(model.score(test))
        clusters[name].append(model.samples_["n_clusters"].mean())


def plus_minus(values):
    """Mean and standard error."""
    return f"{np.mean(values):9.4f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.4f}"


# The wobble is how much the score moves from one evaluation to the next in the second half: little is steady.
print(f"{len(SEEDS)} seeds, {N_KEPT} draws each: mean log predictive of a test row (multinomial coefficient left out)")
columns = [f"{'averaged over draws':>19s}", f"{'last draw alone':>19s}", " wobble", " passes", " seconds", "clusters"]
print(" " * 22, *columns)
for name in METHODS:
    curves = np.array([trace["score"] for trace in traces[name]])
    wobble = np.diff(curves[:, curves.shape[1] // 2 :], axis=1).std()
    spent = np.mean([trace["seconds"][-1] for trace in traces[name]])
    print(
        f"{name:22s} {plus_minus(scores[name]):>19s} {plus_minus(curves[:, -1]):>19s} {wobble:7.4f} "
        f"{passes[name]:7.0f} {spent:8.1f} {np.mean(clusters[name]):8.1f}",
        flush=True,
    )

# %%
# What characterises the largest clusters of the last fit, that of the default:

table = model.top_categories(3)
for c in range(min(8, model.n_clusters_)):
    rows = [i for i, cluster in enumerate(table["cluster"]) if cluster == c]
    named = [f"{areas[table['feature'][i]]} ({100 * table['probability'][i]:.0f} %)" for i in rows]
    print(f"{100 * model.weights_[c]:5.1f} %  {', '.join(named)}")

# %%

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for name, colour in zip(METHODS, ("C0", "C1", "C4", "C2", "C3"), strict=True):
    curves = np.array([trace["score"] for trace in traces[name]])
    mean, error = curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
    done = np.array(traces[name][0]["step"]) / METHODS[name]["n_iter"] * passes[name]
    spent = np.mean([trace["seconds"] for trace in traces[name]], axis=0)
    for ax, x in zip(axes, (done, spent), strict=True):
        ax.plot(x, mean, color=colour, label=name)
        ax.fill_between(x, mean - error, mean + error, color=colour, alpha=0.25, lw=0)
best = max(np.mean(trace["score"][-1]) for found in traces.values() for trace in found)
axes[0].set(xlabel="passes over the visitors", ylabel="log predictive of a test visitor, one draw")
axes[0].set_ylim(best - 0.5, best + 0.03)
axes[1].set(xlabel="seconds")
axes[0].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# **As published, SCIR finds better and steadier clusters than SGRLD, but worse ones than the exact slice sampler; with
# components integrated out and groups split and merged, Gibbs sampling does as well as the slice sampler.**
