"""What survey weights cost a Dirichlet-process mixture, and what happens to its clusters.

    python examples/benchmarks/dp_weights.py

Respondents of four segments answer questions with two levels; some answers are missing. Their weights are log-normal of
mean 1. Those of the smallest segment are three times as likely to be asked as the others, and weigh a third, so shares
of the sample are not those of the population.

Printed for each kind of weights: processor seconds of a fit (and their ratio to the fit without weights), number of
clusters, of clusters without rows, of components with rows (mean over draws), the adjusted Rand index of the segments,
and the largest error of the four largest clusters' shares of the population.
"""

import argparse
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score

from sk_sgmcmc import DPCategoricalMixture

SHARES = np.array([0.4, 0.3, 0.2, 0.1])  # of the segments in the population
ASKED = np.array([1.0, 1.0, 1.0, 3.0])  # relative probability of being asked


def survey(n, n_questions, seed=0):
    """Answers, weights and segments of ``n`` respondents."""
    rng = np.random.default_rng(seed)
    profiles = np.where(rng.random((4, n_questions)) < 0.5, 0.85, 0.15)
    segment = rng.choice(4, n, p=SHARES * ASKED / np.sum(SHARES * ASKED))
    X = (rng.random((n, n_questions)) < profiles[segment]).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.lognormal(0.0, 0.6, n) / ASKED[segment]
    return X, weight / weight.mean(), segment


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small sizes")
    options = parser.parse_args()
    n, n_questions, n_iter = (200, 8, 10) if options.smoke else (3000, 16, None)
    X, weight, segment = survey(n, n_questions)
    kinds = [
        ("none", "replication", None),
        ("log-normal", "replication", weight),
        ("log-normal", "survey", weight),
        ("0.3 each", "replication", np.full(n, 0.3)),
        ("2 each", "replication", np.full(n, 2.0)),
        ("2 each", "survey", np.full(n, 2.0)),
    ]
    effective = weight.sum() ** 2 / (weight**2).sum()
    print(f"{n} respondents, {n_questions} questions, effective sample size {effective:.0f}")
    for likelihood in ("categorical", "bernoulli"):
        print(f"{likelihood:22s}      s  ratio  clusters  empty  a draw   ARI  share error")
        DPCategoricalMixture(likelihood=likelihood, n_iter=12).fit(X)  # compiles
        plain = None
        for name, weights, given in kinds:
            model = DPCategoricalMixture(likelihood=likelihood, weights=weights, n_iter=n_iter, random_state=0)
            began = time.process_time()
            model.fit(X, sample_weight=given)
            seconds = time.process_time() - began
            plain = plain or seconds  # the first is without weights
            empty = np.sum(np.bincount(model.labels_, minlength=model.n_clusters_) == 0)
            found = np.sort(np.append(model.weights_, np.zeros(4)))[::-1][:4]
            print(f"{name:10s} {weights:11s} {seconds:6.2f} {seconds / plain:6.2f} {model.n_clusters_:9d} {empty:6d} "
                  f"{model.samples_['n_clusters'].mean():7.1f} {adjusted_rand_score(segment, model.labels_):5.2f} "
                  f"{np.abs(found - SHARES).max():12.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
