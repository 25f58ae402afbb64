"""What gets a Dirichlet-process mixture out of local modes? (left open by Baker et al. 2018, section 5)

Visitors of a web site (msweb). Chains start from one cluster, or from rows dealt at random to 20, 50 or 100 clusters;
and move

* one label at a time given all others (components integrated out), without or with split and merge proposals;
* by slice sampling of all rows, with sticks and components in the state (slice Gibbs).

Printed, as means over seeds: mean log predictive probability of the test rows, averaged over draws of the second half;
number of clusters; seconds. (The joint probability of rows and labels does not identify good modes: if labels are
uncertain, there are fewer partitions into few clusters, and each of them is more probable.)

Needs the data described by `sk_sgmcmc.datasets.fetch_corpus`, except with ``--smoke``.
"""

import argparse
import time

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.datasets import fetch_msweb
from sk_sgmcmc.mixture._dirichlet_process.cells import Cells, RowData
from sk_sgmcmc.mixture._dirichlet_process.collapsed import CollapsedChain
from sk_sgmcmc.mixture._dirichlet_process.results import log_weights
from sk_sgmcmc.mixture._dirichlet_process.slice import StickChain
from sk_sgmcmc.samplers import SliceGibbs

PRIOR, A = (1.0, 1.0), 0.5


def run(chain, test, n_passes):
    """Log predictive probability averaged over draws, number of clusters and seconds of a chain."""
    base = chain.layout.base_log_density(test)
    spent, predictive = 0.0, []
    for t in range(n_passes):
        began = time.perf_counter()
        chain.run(t + 1)
        spent += time.perf_counter() - began
        if t >= n_passes // 2 and t % max(1, n_passes // 100) == 0:
            draw = chain.current()
            weights = log_weights(test, draw["weights"], draw["components"], chain.layout, base)
            predictive.append(logsumexp(weights, axis=1))
    score = np.mean(logsumexp(predictive, axis=0) - np.log(len(predictive)))
    return score, np.unique(chain.z).size, spent


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small synthetic rows")
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if options.smoke:
        rng = np.random.default_rng(0)
        theta = rng.dirichlet(np.full(30, 0.1), 6)
        X = sparse.csr_array(np.array([rng.multinomial(5, theta[i % 6]) for i in range(900)], dtype=float))
        train, test, options.passes, options.seeds = X[:700], X[700:], 20, 1
    else:
        data = fetch_msweb()
        X = sparse.csr_array(data.data.astype(float))
        train, test = X[data.train], X[data.test]
    layout = Cells.make(0, [X.shape[1]], A)
    rows = RowData.make(train, None, layout, train.shape[0])
    plan = DrawPlan(10**6, 0.5, 10**5)
    print(f"{'':30s} {'start':>6s} {'predictive':>11s} {'clusters':>9s} {'seconds':>8s}")
    for name in ("one label at a time", "with splits and merges", "slice Gibbs"):
        for n_start in (1, 20, 50, 100):
            found = []
            for s in range(options.seeds):
                seed = np.random.SeedSequence([s, n_start])
                if name == "slice Gibbs":
                    sampler = SliceGibbs()._resolved(None)
                    chain = StickChain(seed, plan, layout, PRIOR, sampler, stored=True, n_start=n_start)
                else:
                    pairs = 0 if name == "one label at a time" else 10
                    chain = CollapsedChain(seed, plan, layout, PRIOR, n_start=n_start, n_pairs=pairs)
                found.append(run(chain.bind(rows), test, options.passes))
            score, n_clusters, spent = np.mean(found, axis=0)
            print(f"{name:30s} {n_start:6d} {score:11.4f} {n_clusters:9.1f} {spent:8.1f}", flush=True)


if __name__ == "__main__":
    main()
