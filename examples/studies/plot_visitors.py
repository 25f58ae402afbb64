"""
Which sampler finds the groups of a web site's visitors?
========================================================

A web site has 60 areas and 4,000 invented visitors from eight planted groups; the data say which areas each of them
visited. A Dirichlet-process mixture finds groups without being given their number. This page compares samplers by the
probability that they assign to 800 held-out visitors:

* the published minibatch slice sampler with `SCIR` and with `SGRLD` (minibatches of 400 visitors, counts scaled by
  N/n), each with a step size that suits it, and `SGRLD` with the published one;
* the exact slice sampler over all visitors, `SliceGibbs`;
* the default, `Gibbs`: components are integrated out, and groups split and merged.

``examples/reproduce/dp_msweb.py`` is the same study of a real web site, over five seeds.

In the user guide: :doc:`/user_guide/mixtures`.
"""

# %%
# The visitors
# ------------

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import DPCategoricalMixture
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.samplers import SCIR, SGRLD


def synthetic_site(n=4000, n_areas=60, n_groups=8, seed=0):
    """Visitors of a site with known groups; each visits an area at most once."""
    rng = np.random.default_rng(seed)
    interest = rng.dirichlet(np.full(n_areas, 0.08), n_groups) + 1e-4
    group = rng.choice(n_groups, n, p=rng.dirichlet(np.full(n_groups, 3.0)))
    visits = rng.random((n, n_areas)) < np.minimum(4.0 * interest[group], 0.9)
    visits = visits[visits.any(axis=1)].astype(float)
    return visits[:-800], visits[-800:], np.array([f"area {j}" for j in range(n_areas)])


train, test, areas = synthetic_site()
SEEDS, BATCH, N_STEPS, N_SWEEPS, N_KEPT = range(5), 400, 200, 40, 20

# %%
# Fitting
# -------
# Every fit keeps the same number of draws, from its second half. Kernels are compiled before timing starts, and the
# time spent on scoring is not counted. These runs are short, to show the differences between samplers. Some have not
# converged, and the page switches off the warnings that say so.

warnings.filterwarnings("ignore", category=ConvergenceWarning)

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


# The fluctuation is the standard deviation of changes between two evaluations of the score, in the second half.
print(f"{len(SEEDS)} seeds, {N_KEPT} draws each: mean log predictive of a test row (multinomial coefficient left out)")
columns = [f"{'averaged over draws':>19s}", f"{'last draw alone':>19s}", "  fluct.", " passes", " seconds", "clusters"]
print(" " * 22, *columns)
for name in METHODS:
    curves = np.array([trace["score"] for trace in traces[name]])
    fluctuation = np.diff(curves[:, curves.shape[1] // 2 :], axis=1).std()
    spent = np.mean([trace["seconds"][-1] for trace in traces[name]])
    print(
        f"{name:22s} {plus_minus(scores[name]):>19s} {plus_minus(curves[:, -1]):>19s} {fluctuation:8.4f} "
        f"{passes[name]:7.0f} {spent:8.1f} {np.mean(clusters[name]):8.1f}",
        flush=True,
    )

# %%
# The largest clusters of the default
# -----------------------------------
# With the areas that mark them most.

table = model.top_categories(3)
for c in range(min(8, model.n_clusters_)):
    rows = [i for i, cluster in enumerate(table["cluster"]) if cluster == c]
    named = [f"{areas[table['feature'][i]]} ({100 * table['probability'][i]:.0f}%)" for i in rows]
    print(f"{100 * model.weights_[c]:5.1f}%  {', '.join(named)}")

# %%
# Predictions by passes
# ---------------------
# Means over seeds, with one standard error. The score of `SGRLD` at its published step lies below the axis.

import matplotlib.pyplot as plt

figure, ax = plt.subplots()
for name in METHODS:
    curves = np.array([trace["score"] for trace in traces[name]])
    mean, error = curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
    done = np.array(traces[name][0]["step"]) / METHODS[name]["n_iter"] * passes[name]
    ax.plot(done, mean, label=name)
    ax.fill_between(done, mean - error, mean + error, alpha=0.25, lw=0)
best = max(np.mean(trace["score"][-1]) for found in traces.values() for trace in found)
ax.set(xlabel="passes over the visitors", ylabel="log predictive of a test visitor, one draw")
ax.set_ylim(best - 0.5, best + 0.03)
ax.legend()
plt.show()

# %%
# **Samplers that read all visitors predict best. The default needs the fewest passes and finds about as many clusters
# as were planted. In minibatches,** `SCIR` **predicts well sooner than** `SGRLD`, **which at its published step finds
# hardly any of the groups.**
