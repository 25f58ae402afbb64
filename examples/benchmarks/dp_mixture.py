"""Seconds per step of the Dirichlet-process mixture, beside a plain NumPy version of the published algorithm and peers.

    python examples/benchmarks/dp_mixture.py

* one step over a minibatch of 1,000 rows: `SCIR` with stored labels, the published sampler (counts times N/n) in this
  package, and the same in plain NumPy, all in this process, on the msweb data (synthetic rows if they are not
  available);
* a sweep of the default (collapsed Gibbs), of `SliceGibbs`, and a fit of scikit-learn's truncated variational mixture
  (Gaussian: it has none for categories) and, if it is installed, StepMix's expectation-maximisation for as many
  classes;
* growth: a sweep of the default at 10,000, 100,000 and 1,000,000 rows of the same kind, and the memory of a fit.
"""

import argparse
import time
import tracemalloc
import warnings

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from sk_sgmcmc import DPCategoricalMixture
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.datasets import fetch_msweb
from sk_sgmcmc.samplers import SCIR


class StepTimer(Callback):
    """Seconds of each step."""

    def __init__(self):
        super().__init__(1)
        self.seconds = []

    def start(self, estimator):
        """Start the clock."""
        self.clock = time.perf_counter()

    def __call__(self, estimator, step):
        """Record the time of the step that has ended."""
        self.seconds.append(time.perf_counter() - self.clock)
        self.clock = time.perf_counter()


def rows(n, n_columns=294, seed=0):
    """Sparse rows of 0 and 1 with three ones each on average, of 20 groups."""
    rng = np.random.default_rng(seed)
    cdf = np.cumsum(rng.dirichlet(np.full(n_columns, 0.1), 20), axis=1)
    lengths = 1 + rng.poisson(2.0, n)
    row = np.repeat(np.arange(n), lengths)
    group = np.repeat(rng.integers(20, size=n), lengths)
    column = np.empty(row.size, dtype=np.int64)
    for g in range(20):
        mine = group == g
        column[mine] = np.searchsorted(cdf[g], rng.random(mine.sum()) * cdf[g, -1])
    X = sparse.csr_matrix((np.ones(row.size), (row, column)), shape=(n, n_columns))
    X.data[:] = 1.0
    return X


class NumpySlice:
    """The published sampler, row by row in NumPy, with its mistakes corrected: logs, fresh draws for new components."""

    def __init__(self, X, n_batch, h=0.1, a=0.5, n_start=20, seed=0):
        self.X, self.n_batch, self.h, self.a = X, n_batch, h, a
        self.rng = np.random.default_rng(seed)
        self.z = self.rng.integers(n_start, size=X.shape[0])
        self.alpha = 1.0
        self.sticks = np.ones((n_start, 2))
        self.theta = self.rng.gamma(a, size=(n_start, X.shape[1]))

    def cir(self, theta, shape):
        """One exact CIR transition."""
        decay = np.exp(-self.h)
        extra = self.rng.poisson(theta * decay / (1 - decay))
        return np.maximum((1 - decay) * self.rng.gamma(shape + extra), 1e-300)

    def step(self):
        """Sticks, components, slices, concentration, labels, as published."""
        X, rng = self.X, self.rng
        batch = rng.choice(X.shape[0], self.n_batch, replace=False)
        scale = X.shape[0] / self.n_batch
        K = max(self.z[batch].max() + 1, len(self.sticks))
        sizes, counts = np.zeros(K), np.zeros((K, X.shape[1]))
        for i in batch:
            sizes[self.z[i]] += scale
            row = slice(X.indptr[i], X.indptr[i + 1])
            counts[self.z[i], X.indices[row]] += scale * X.data[row]
        after = sizes[::-1].cumsum()[::-1] - sizes
        self.sticks = self.cir(self.sticks, np.stack([1 + sizes, self.alpha + after], axis=1))
        self.theta = self.cir(self.theta, self.a + counts)
        v = self.sticks[:, 0] / self.sticks.sum(axis=1)
        self.alpha = rng.gamma(1 + K) / (1 - np.log1p(-np.minimum(v, 1 - 1e-12)).sum())
        omega = v * np.concatenate([[1.0], np.cumprod(1 - v)[:-1]])
        u = rng.random(self.n_batch) * omega[self.z[batch]]
        while 1 - omega.sum() > u.min() and len(omega) < 500:
            pair = rng.gamma([1.0, self.alpha])
            self.sticks = np.vstack([self.sticks, pair])
            self.theta = np.vstack([self.theta, rng.gamma(self.a, size=X.shape[1])])
            omega = np.append(omega, (1 - omega.sum()) * pair[0] / pair.sum())
        log_theta = np.log(self.theta / self.theta.sum(axis=1, keepdims=True) + 1e-300)
        for b, i in enumerate(batch):
            row = slice(X.indptr[i], X.indptr[i + 1])
            log_p = log_theta[:, X.indices[row]] @ X.data[row]
            log_p[omega <= u[b]] = -np.inf
            p = np.exp(log_p - logsumexp(log_p))
            self.z[i] = rng.choice(p.size, p=p)
        last = self.z.max() + 1
        self.sticks, self.theta = self.sticks[:last], self.theta[:last]


def step_seconds(X, n_iter, skip, **params):
    """Median seconds of the steps after the first ``skip``."""
    timer = StepTimer()
    DPCategoricalMixture(n_iter=n_iter, thin=max(1, n_iter // 4), random_state=0, callbacks=timer, **params).fit(X)
    return np.median(timer.seconds[skip:])


def memory(X):
    """Peak memory of a fit in MiB, beyond the rows themselves."""
    tracemalloc.start()
    DPCategoricalMixture(n_iter=4, thin=1, random_state=0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def peers(X, seconds_of_fit, n_classes):
    """Print the seconds of other programs' fits, if they are installed."""
    from sklearn.mixture import BayesianGaussianMixture

    dense = X.toarray()
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        BayesianGaussianMixture(n_components=n_classes, covariance_type="diag", max_iter=50, random_state=0).fit(dense)
    spent = time.perf_counter() - began
    print(f"scikit-learn's BayesianGaussianMixture, {n_classes} Gaussians, 50 iterations: {spent:.1f} s "
          f"(the default's fit of 50 passes: {seconds_of_fit:.1f} s)", flush=True)  # fmt: skip
    try:
        from stepmix.stepmix import StepMix
    except ImportError:
        print("StepMix is not installed")
        return
    began = time.perf_counter()
    StepMix(
        n_components=n_classes, measurement="binary", n_init=1, max_iter=50, verbose=0, progress_bar=0, random_state=0
    ).fit(dense)
    print(f"StepMix, {n_classes} classes of 0 and 1, at most 50 iterations: {time.perf_counter() - began:.1f} s")


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small sizes, without peers")
    options = parser.parse_args()
    n_batch = 200 if options.smoke else 1000
    n_iter = 12 if options.smoke else 400
    try:
        X = rows(2000) if options.smoke else fetch_msweb().data.tocsr().astype(float)
    except OSError:
        X = rows(32_711)
    step_seconds(X[:500], 4, 0)
    step_seconds(X[:500], 4, 0, assignments="fresh")
    ours = step_seconds(X, n_iter, n_iter // 2, batch_size=n_batch, sampler="scir")
    published = step_seconds(X, n_iter, n_iter // 2, batch_size=n_batch, assignments="fresh", sampler=SCIR(0.1))
    plain = NumpySlice(X, n_batch)
    spent = []
    for _ in range(6 if options.smoke else 40):
        began = time.perf_counter()
        plain.step()
        spent.append(time.perf_counter() - began)
    twin = np.median(spent[len(spent) // 2 :])
    print(f"a step over {n_batch} of {X.shape[0]} rows, ms: labels stored {1e3 * ours:.2f}, "
          f"published {1e3 * published:.2f}, in NumPy {1e3 * twin:.2f}")  # fmt: skip
    print(f"ratio to NumPy: labels stored {ours / twin:.4f}, published {published / twin:.4f} (target 0.02)")
    sweeps = 6 if options.smoke else 40
    a = step_seconds(X, sweeps, sweeps // 2)
    b = step_seconds(X, sweeps, sweeps // 2, sampler="slice-gibbs")
    print(f"a sweep over all rows, ms: default {1e3 * a:.1f}, slice Gibbs {1e3 * b:.1f}", flush=True)
    if not options.smoke:
        peers(X, 50 * a, 20)
    sizes = (1000, 4000) if options.smoke else (10_000, 100_000, 1_000_000)
    for n in sizes:
        big = rows(n)
        spent = step_seconds(big, 9, 2)  # before the clusters differ much
        raw = (big.data.nbytes + big.indices.nbytes + big.indptr.nbytes) / 2**20
        print(f"{n:8d} rows: a sweep {1e3 * spent:.2f} ms; "
              f"peak of a fit beyond the rows ({raw:.0f} MiB): {memory(big):.0f} MiB", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
