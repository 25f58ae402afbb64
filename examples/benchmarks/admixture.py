"""Seconds per outer iteration of the spherical admixture model, and their growth with the vocabulary and the topics.

    python examples/benchmarks/admixture.py

At the sizes of Liu, Zhu and Song (2016), on 20 Newsgroups: a batch of 50 documents, 40 + 20 draws of each document's
proportions of 10 leapfrog steps each, then 10 steps of the topics; K = 20, V = 5,000. For other sizes, random sparse
rows with about as many words per document take the place of 20 Newsgroups. Their C++ took 1.56 s (SGGMC) and 1.60 s
(gSGNHT) on one core.

Processor time and wall time are printed in seconds, the smallest and the median: on a shared machine, the first is the
cost and the second the wait.
"""

import argparse
import time

import numpy as np
from scipy import sparse

from sk_sgmcmc import SphericalAdmixtureModel
from sk_sgmcmc.callbacks import Callback


class StepTimer(Callback):
    """Wall and processor seconds of each step."""

    def __init__(self):
        super().__init__(1)
        self.wall, self.cpu = [], []

    def start(self, estimator):
        """Start the clocks."""
        self.clocks = time.perf_counter(), time.process_time()

    def __call__(self, estimator, step):
        """Record the time of the step that has ended."""
        now = time.perf_counter(), time.process_time()
        self.wall.append(now[0] - self.clocks[0])
        self.cpu.append(now[1] - self.clocks[1])
        self.clocks = now
        return False


def make_rows(n_words, n_docs=500, words_a_document=100, seed=0):
    """Sparse unit rows whose words follow Zipf's law."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, n_words + 1)
    words = rng.choice(n_words, (n_docs, words_a_document), p=share / share.sum())
    X = sparse.csr_array((rng.random(words.size), (np.repeat(np.arange(n_docs), words_a_document), words.ravel())))
    X.resize(n_docs, n_words)
    return X


def time_iterations(X, sampler, n_components, n_iter):
    """The timer of a fit, without its first steps."""
    timer = StepTimer()
    SphericalAdmixtureModel(
        n_components, sampler=sampler, kappa0=2.0 * X.shape[1], kappa1=6.0 * X.shape[1], sigma=2.0 * X.shape[1],
        init="random", batch_size=50, n_inner=10, n_doc_draws=(40, 20), n_iter=n_iter + 5, burn_in=4, thin=n_iter + 1,
        random_state=0, callbacks=timer,
    ).fit(X)  # fmt: skip
    return np.array(timer.cpu[5:]), np.array(timer.wall[5:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few seconds: small sizes, random rows")
    args = parser.parse_args()
    n_iter = 3 if args.smoke else 20
    if args.smoke:
        sizes = [("random rows", make_rows(300, 100, 20), 5)]
    else:
        try:
            from sk_sgmcmc.datasets import fetch_20news_different

            data = fetch_20news_different()
            sizes = [("20 Newsgroups, three groups", data.tfidf[data.train], 20)]
        except OSError:
            sizes = []
        sizes += [("random rows", make_rows(V), 20) for V in (5_000, 20_000, 100_000)]
        sizes += [("random rows", make_rows(5_000), K) for K in (50, 100)]
    heads = "".join(f"{head:>13s}" for head in ("cpu s: min", "median", "wall s: min", "median"))
    print(f"{'data':30s}{'V':>8s}{'K':>5s}{'sampler':>9s}{heads}")
    for name, X, K in sizes:
        for sampler in ("sggmc", "gsgnht") if K == 20 and X.shape[1] == 5_000 else ("sggmc",):
            cpu, wall = time_iterations(X, sampler, K, n_iter)
            print(
                f"{name:30s}{X.shape[1]:8d}{K:5d}{sampler:>9s}{cpu.min():13.4f}{np.median(cpu):13.4f}"
                f"{wall.min():13.4f}{np.median(wall):13.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
