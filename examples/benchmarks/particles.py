"""Seconds per step of particle samplers over the number of particles, beside a plain NumPy loop over their pairs.

    python examples/benchmarks/particles.py

* logistic regression on rows like those of covertype (54 columns, minibatches of 500): a step of Blob and of both
  PSGHMC, the gradients alone, the rest (the interaction), and the pairwise loop in NumPy;
* topics of a corpus (latent Dirichlet allocation, K = 20): the same, where the interaction has K x V coordinates;
* peak memory beyond the data.

Medians over the steps of one process; the target is that gradients take more than half of a step up to 100 particles.
"""

import argparse
import time
import tracemalloc

import numpy as np

from sk_sgmcmc import BayesianLDA, BayesianLogisticRegression
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.kernels import particles as kernels
from sk_sgmcmc.samplers import PSGHMC, Blob

SAMPLERS = {"blob": Blob, "psghmc-det": PSGHMC, "psghmc-fgh": lambda **params: PSGHMC("fgh", **params)}


class StepTimer(Callback):
    """Seconds between two checks of a fit."""

    def __init__(self, every):
        super().__init__(every)
        self.seconds = []

    def start(self, estimator):
        """Start the clock."""
        self.clock = time.perf_counter()

    def __call__(self, estimator, step):
        """Record the time that has passed."""
        self.seconds.append(time.perf_counter() - self.clock)
        self.clock = time.perf_counter()


def pairs_in_numpy(X):
    """Blob's interaction, one pair at a time; seconds."""
    began = time.perf_counter()
    M = len(X)
    squares = [((X[i] - X[j]) ** 2).sum() for i in range(M) for j in range(i)]
    h = 0.5 * np.median(squares) / np.log(M + 1.0) if M > 1 else 1.0
    K = np.array([[np.exp(-((X[i] - X[j]) ** 2).sum() / (2 * h)) for j in range(M)] for i in range(M)])
    S = K.sum(axis=1)
    b = np.zeros_like(X)
    for i in range(M):
        for j in range(M):
            b[i] += K[i, j] * (X[i] - X[j]) * (1.0 / S[i] + 1.0 / S[j]) / h
    return time.perf_counter() - began


def interaction_seconds(name, M, D):
    """Median seconds of a transition with given gradients."""
    sampler = SAMPLERS[name](n_particles=M, step_size=1e-6)._resolved(None)
    theta = np.random.default_rng(0).normal(size=(M, D))
    aux, scalars = sampler._state(theta[:, :, None], "euclidean", 0)
    (flow,), hyper, rng = sampler._kernels("euclidean"), sampler._hyper(0, 1)[0], np.random.default_rng(1)
    told, every, spent = np.zeros((M, D)), np.arange(M), []
    for _ in range(9):
        began = time.perf_counter()
        flow(theta, aux, scalars, told, np.zeros(1), hyper, every, rng)
        spent.append(time.perf_counter() - began)
    return np.median(spent[2:])


def step_seconds(make, data, n_steps, every):
    """Median seconds per step, and the peak memory of a second fit beyond the data, in MiB."""
    timer = StepTimer(every)
    make(n_steps, timer).fit(*data)
    tracemalloc.start()
    make(2 * every, None).fit(*data)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return np.median(timer.seconds[1:]) / every, peak


def table(title, make, data, D, counts, n_steps, every):
    """Print a row for each number of particles."""
    print(f"\n{title}: {D} coordinates, ms a step")
    print(f"{'particles':>9s} {'sampler':>11s} {'step':>9s} {'interaction':>12s} {'its share':>10s} {'MiB':>7s}")
    for M in counts:
        for name in SAMPLERS:
            sampler = SAMPLERS[name](n_particles=M, step_size=1e-6)
            step, peak = step_seconds(lambda n, c, s=sampler: make(s, n, c), data, n_steps, every)
            inner = interaction_seconds(name, M, D)
            print(
                f"{M:9d} {name:>11s} {1e3 * step:9.3f} {1e3 * inner:12.3f} {inner / step:10.2f} {peak:7.1f}", flush=True
            )
        loop = pairs_in_numpy(np.random.default_rng(0).normal(size=(M, D)))
        print(f"{M:9d} {'NumPy pairs':>11s} {'':9s} {1e3 * loop:12.3f} {loop / inner:9.0f}x of ours", flush=True)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small sizes")
    options = parser.parse_args()
    counts = (1, 5) if options.smoke else (1, 5, 10, 20, 50, 100)
    _ = kernels.langevin_flow.compiled, kernels.hamiltonian_flow.compiled  # compile before any clock starts
    rng = np.random.default_rng(0)
    n = 5_000 if options.smoke else 100_000
    X = rng.normal(size=(n, 54))
    y = (X @ rng.normal(size=54) + rng.logistic(size=n) > 0).astype(int)

    def logistic(sampler, n_iter, callback):
        return BayesianLogisticRegression(
            sampler=sampler, n_iter=n_iter, batch_size=500, control_variates=False, random_state=0, callbacks=callback
        )

    steps = 40 if options.smoke else 400
    table("Logistic regression", logistic, (X, y), 55, counts, steps, 10)
    K, V = (5, 200) if options.smoke else (20, 2000)
    docs = make_lda(
        n_samples=300 if options.smoke else 2000, n_features=V, n_components=K, document_length=80, random_state=0
    ).counts

    def topics(sampler, n_iter, callback):
        return BayesianLDA(
            K, sampler=sampler, n_iter=n_iter, batch_size=100, assignments="fresh", doc_topic_prior=0.1, init="random",
            random_state=0, callbacks=callback,
        )  # fmt: skip

    table("Topics", topics, (docs,), K * V, counts, 6, 1)


if __name__ == "__main__":
    main()
