"""Samplers of a Dirichlet-process mixture on the visitors of a web site (msweb), beside Baker et al. 2018.

    python examples/reproduce/dp_msweb.py

Mean log predictive probability of 5,000 visitors after fitting 32,711, the multinomial coefficient left out, as means
and standard errors over seeds:

* the published minibatch slice sampler by SCIR and by SGRLD (minibatches of 1,000 visitors, counts scaled by N/n), each
  with the best of a few step sizes, and SGRLD with the published one;
* the exact slice sampler over all visitors;
* the default: components are integrated out, and groups split and merged.

Kernels are compiled before timing starts, and the time spent on scoring is not counted. The wobble is how much the
score moves from one evaluation to the next in the second half. Needs the data described by
`sk_sgmcmc.datasets.fetch_corpus`, except with ``--smoke``.
"""

import argparse

import numpy as np

from sk_sgmcmc import DPCategoricalMixture
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.datasets import fetch_msweb
from sk_sgmcmc.samplers import SCIR, SGRLD


def visitors(smoke):
    """Visitors to fit, and visitors held out."""
    if smoke:
        rng = np.random.default_rng(0)
        interest = np.minimum(4.0 * rng.dirichlet(np.full(20, 0.08), 4) + 1e-4, 0.9)
        visits = (rng.random((600, 20)) < interest[np.arange(600) % 4]).astype(float)
        return visits[:500], visits[500:]
    data = fetch_msweb()
    visits = data.data.tocsr()
    return visits[data.train], visits[data.test]


def methods(batch, n_steps, n_sweeps, n_kept):
    """Parameters of each way of fitting; every fit keeps the same number of draws, from its second half."""
    minibatch = {"assignments": "fresh", "batch_size": batch, "n_iter": n_steps, "thin": n_steps // 2 // n_kept}
    sweeps = {"n_iter": n_sweeps, "thin": n_sweeps // 2 // n_kept}
    return {
        "SCIR": {"sampler": SCIR(0.05), **minibatch},
        "SGRLD": {"sampler": SGRLD(0.01), **minibatch},
        "SGRLD, published step": {"sampler": SGRLD(0.001), **minibatch},
        "slice Gibbs": {"sampler": "slice-gibbs", **sweeps},
        "default": sweeps,
    }


def plus_minus(values):
    """Mean and standard error."""
    return f"{np.mean(values):9.4f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.4f}"


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="small synthetic rows, two seeds")
    options = parser.parse_args()
    train, test = visitors(options.smoke)
    setting, seeds = ((100, 40, 10, 5), range(2)) if options.smoke else ((1000, 1000, 100, 50), range(options.seeds))
    columns = [f"{'averaged over draws':>19s}", f"{'last draw alone':>19s}", " wobble", " seconds", "clusters"]
    print(" " * 22, *columns)
    for name, params in methods(*setting).items():
        DPCategoricalMixture(**{**params, "n_iter": 4, "thin": 1}).fit(train)
        traces, scores, clusters = [], [], []
        for seed in seeds:
            follow = HeldOutScore(test, every=max(1, params["n_iter"] // 25))
            model = DPCategoricalMixture(random_state=seed, callbacks=follow, **params).fit(train)
            traces.append(model.trace_)
            scores.append(model.score(test))
            clusters.append(model.samples_["n_clusters"].mean())
        curves = np.array([trace["score"] for trace in traces])
        wobble = np.diff(curves[:, curves.shape[1] // 2 :], axis=1).std()
        spent = np.mean([trace["seconds"][-1] for trace in traces])
        print(
            f"{name:22s} {plus_minus(scores):>19s} {plus_minus(curves[:, -1]):>19s} {wobble:7.4f} "
            f"{spent:8.1f} {np.mean(clusters):8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
