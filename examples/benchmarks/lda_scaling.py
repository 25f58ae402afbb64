"""How the cost of LDA grows: with the vocabulary, with the number of topics, with threads; and its memory.

    python examples/benchmarks/lda_scaling.py

Nanoseconds per token of one sweep (assignments and the topic update), after the chain has left its start:

* V from 8,000 to 100,000 words, the same number of documents per minibatch, documents of the same lengths (Zipf,
  planted topics);
* K from 100 to 1,000 topics on 20 Newsgroups (or a planted corpus if it is not available), tomotopy beside it;
* a million tokens with 100 topics, default arguments: seconds of a fit on one core;
* two threads over the documents of one chain against two processes of one thread each, run together: steps of the
  sampler, and default fits of Wikipedia, whose burn-in runs in shards and whose kept sweeps run in parts of the
  vocabulary;
* default fits by 1, 2, 4, ... threads, up to the cores there are, beside as many of tomotopy's workers;
* peak memory of a default fit, and of transform and score after it: the highest resident memory of a process that maps
  the corpus from a file, beyond what it had reached after a fit of two documents (interpreter, libraries, kernels).
  What is read from the file counts, the memory used to load the corpus does not. ``--only memory`` prints this alone.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _peers import load
from scipy import sparse

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.callbacks import Callback


class SweepTimer(Callback):
    """Seconds of each step, recorded under the name of what the chain does in it."""

    def __init__(self):
        super().__init__(1)
        self.collapsed, self.sampled = [], []

    def start(self, estimator):
        """Start the clock."""
        self.clock = time.perf_counter()

    def __call__(self, estimator, step):
        """Record the time of the step that has ended."""
        chain = estimator._chains[0]
        spent = time.perf_counter() - self.clock
        (self.sampled if chain.topics is not None and step > chain.n_warm + 1 else self.collapsed).append(spent)
        self.clock = time.perf_counter()


def planted(n_docs, n_words, length, seed=0, n_topics=50):
    """Documents of two topics each and a common part; each topic's words follow Zipf's law in an order of its own."""
    rng = np.random.default_rng(seed)
    cdf = np.cumsum(1.0 / (np.arange(n_words) + 10.0))
    orders = np.array([rng.permutation(n_words) for _ in range(n_topics)])
    own = np.random.default_rng(seed + 1)  # lengths and topics of documents do not depend on the vocabulary
    lengths = own.poisson(length, n_docs) + 1
    doc = np.repeat(np.arange(n_docs), lengths)
    ranks = np.searchsorted(cdf, own.random(doc.size) * cdf[-1])
    topic = own.integers(0, n_topics, (n_docs, 2))[doc, own.integers(0, 2, doc.size)]
    words = np.where(own.random(doc.size) < 0.5, ranks, orders[topic, ranks])
    return sparse.coo_matrix((np.ones(doc.size), (doc, words)), shape=(n_docs, n_words)).tocsr()


def time_sweeps(X, n_topics, *, n_iter=20, n_jobs=1, **params):
    """Nanoseconds per token: (collapsed sweep of burn-in, step of the sampler), medians over full-batch steps."""
    timer = SweepTimer()
    model = BayesianLDA(
        n_topics, doc_topic_prior=0.1, n_iter=n_iter, thin=n_iter // 2, batch_size=X.shape[0],
        n_jobs=n_jobs, random_state=0, callbacks=timer, **params,
    ).fit(X)  # fmt: skip
    tokens = X.sum()
    collapsed = np.median(timer.collapsed[2:]) if len(timer.collapsed) > 2 else np.nan
    return 1e9 * collapsed / tokens, 1e9 * np.median(timer.sampled) / tokens, model


def time_tomotopy(X, n_topics, sweeps=6, workers=1):
    """Nanoseconds per token of tomotopy after some sweeps."""
    import tomotopy

    model = tomotopy.LDAModel(k=n_topics, alpha=0.1, eta=0.01, seed=1)
    words = np.array([str(w) for w in range(X.shape[1])])
    for d in range(X.shape[0]):
        row = slice(X.indptr[d], X.indptr[d + 1])
        model.add_doc(np.repeat(words[X.indices[row]], X.data[row].astype(int)).tolist())
    model.train(30, workers=workers)
    began = time.perf_counter()
    model.train(sweeps, workers=workers)
    return 1e9 * (time.perf_counter() - began) / sweeps / X.sum()


def throughput(corpus, n_topics, n_jobs, n_iter):
    """Tokens per second in the sampler's steps alone, in this process."""
    X = load(corpus)[0]
    _, sampled, _ = time_sweeps(X, n_topics, n_iter=n_iter, n_jobs=n_jobs)
    return 1e9 / sampled


class PhaseTimer(Callback):
    """Seconds of a fit by phase: first step with the start, rest of burn-in, kept sweeps."""

    def __init__(self):
        super().__init__(1)
        self.clocks = []

    def start(self, estimator):
        """Start the clock."""
        self.clocks = [time.perf_counter()]

    def __call__(self, estimator, step):
        """Record the time."""
        self.clocks.append(time.perf_counter())

    def seconds(self, n_burn):
        """Seconds of the three phases."""
        first, burnt, end = (self.clocks[i] - self.clocks[0] for i in (1, n_burn, -1))
        return np.array([first, burnt - first, end - burnt])


def default_fit(corpus, n_topics, n_jobs, n_iter=None):
    """Seconds of a default fit but for ``n_jobs`` and ``n_iter``, and of its phases."""
    X = load(corpus)[0]
    BayesianLDA(5, n_iter=4, n_jobs=n_jobs, random_state=0).fit(X[:200])  # kernels are loaded now
    timer = PhaseTimer()
    began = time.perf_counter()
    model = BayesianLDA(n_topics, n_jobs=n_jobs, n_iter=n_iter, random_state=0, callbacks=timer).fit(X)
    whole = time.perf_counter() - began
    return np.array([whole, *timer.seconds(model.n_iter_ // 2)])


def print_threads(corpus, n_topics, flags, with_peer, largest):
    """Print two threads against two processes, and 1, 2, 4, ... threads beside tomotopy's workers."""

    def fits(n_jobs, n_processes=1):
        printed = in_processes([*flags, "--fit", str(n_jobs), "--corpus", corpus], n_processes)
        return np.array([[float(x) for x in line.split()] for line in printed]).mean(axis=0)

    alone, together, threads = fits(1), fits(1, 2), fits(2)
    for name, seconds in (("one process", alone), ("two processes together", together), ("two threads", threads)):
        whole, first, burnt, kept = seconds
        print(f"{corpus}, K={n_topics}, default fit, {name}: {whole:.1f} s ", end="")
        print(f"(start and first sweep {first:.1f}, rest of burn-in {burnt:.1f}, kept {kept:.1f})", flush=True)
    ratio = together / (2.0 * threads)
    print(f"two threads / two processes: {ratio[0]:.2f} (target 0.9); burn-in alone {ratio[2]:.2f}", flush=True)
    n = 4
    while n <= largest:
        whole = fits(n)[0]
        print(f"{n} threads: {whole:.1f} s, {alone[0] / whole:.2f} times as fast as one", flush=True)
        n *= 2
    if with_peer:
        X = load(corpus)[0]
        n = 1
        while n <= largest:
            print(
                f"tomotopy, {n} workers: {time_tomotopy(X, n_topics, workers=n):.1f} ns a token and sweep", flush=True
            )
            n *= 2


def peak_memory():
    """Highest resident memory of this process so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux getrusage includes the parent's peak; this does not
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def memory_of_fit(folder, n_topics, n_iter=None):
    """MiB by which a fit raises the peak of this process, and a fit with transform and score after it.

    The corpus is mapped from ``folder``. Both are equal where transform and score need less than the fit.
    """
    parts = [np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr")]
    shape = tuple(np.load(folder / "shape.npy"))
    tiny = sparse.csr_array([[1.0, 1.0], [1.0, 2.0]] * 5)  # libraries and kernels are loaded now
    BayesianLDA(2, n_iter=8, random_state=0).fit(tiny).score(tiny)
    before = peak_memory()
    X = sparse.csr_matrix(tuple(parts), shape=shape)
    model = BayesianLDA(n_topics, n_iter=n_iter, random_state=0).fit(X)
    fitted = peak_memory() - before
    model.transform(X[:1000])
    model.score(X[:1000])
    return fitted, peak_memory() - before


def print_memory(X, n_topics, n_iter=None):
    """Print the peak memory of a fit in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        save_parts(X, Path(folder))
        steps = ["--steps", str(n_iter)] if n_iter else []
        line = in_processes(["--memory", str(n_topics), "--folder", folder, *steps], 1)[0]
    fitted, whole = map(float, line.split())
    floor = n_topics * X.shape[1] * 8 / 2**20
    print(
        f"peak memory beyond process and libraries, V={X.shape[1]}, K={n_topics}: {fitted:.0f} MiB in a fit, "
        f"{whole:.0f} with transform and score after it ({X.shape[0]} documents, {X.sum() / 1e6:.2f} M tokens; one "
        f"K x V array of float64: {floor:.0f})",
        flush=True,
    )


def print_seconds(X, n_topics):
    """Print the seconds of a default fit on one core, and how many a million tokens would take."""
    began = time.process_time()
    BayesianLDA(n_topics, random_state=0).fit(X)
    spent, millions = time.process_time() - began, X.sum() / 1e6
    print(
        f"default fit, K={n_topics}, {millions:.2f} M tokens, one core: {spent:.1f} s; a million tokens: "
        f"{spent / millions:.1f} s (target 45)",
        flush=True,
    )


def save_parts(X, folder):
    """Write a matrix for `memory_of_fit`."""
    for name in ("data", "indices", "indptr", "shape"):
        np.save(folder / f"{name}.npy", getattr(X, name))


def in_processes(arguments, n):
    """Run this script ``n`` times in parallel with arguments; returns what each printed last."""
    command = [sys.executable, __file__, *arguments]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(n)]
    return [process.communicate()[0].strip().splitlines()[-1] for process in running]


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small sizes, without peers")
    parser.add_argument("--corpus", default="20newsgroups")
    parser.add_argument("--throughput", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--fit", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=["seconds", "threads", "memory"], help="this part alone")
    options = parser.parse_args()
    corpus = "synthetic" if options.smoke else options.corpus
    small, large = (5, 20) if options.smoke else (100, 1000)
    n_iter = 8 if options.smoke else 20
    if options.throughput:
        print(throughput(corpus, small, options.throughput, 24))
        return
    if options.fit:
        print(*default_fit(corpus, small, options.fit, n_iter if options.smoke else None))
        return
    if options.memory:
        print(*memory_of_fit(options.folder, options.memory, options.steps))
        return

    flags = ["--smoke"] if options.smoke else []
    large_corpus = corpus if options.smoke else "wikipedia"
    cores = 2 if options.smoke else os.cpu_count()
    if options.only == "threads":
        print_threads(large_corpus, small, flags, not options.smoke, cores)
        return
    X = load(corpus)[0]
    time_sweeps(X[:50], 5)  # kernels are loaded now
    if options.only != "memory":
        print_seconds(X, small)
    if options.only != "seconds":
        for n_topics in (small, large):
            print_memory(X, n_topics, n_iter=8)
        print_memory(*((planted(500, 4000, 80), 10) if options.smoke else (planted(20_000, 1_000_000, 80), 200)))
    if options.only:
        return
    print(f"{'':34s} {'collapsed':>10s} {'sampler':>10s} {'tomotopy':>10s}   ns a token")
    table = {}
    for n_topics in (small, large):
        a, b, _ = time_sweeps(X, n_topics, n_iter=n_iter)
        peer = np.nan if options.smoke else time_tomotopy(X, n_topics)
        table[n_topics] = np.array([a, b, peer])
        print(f"{f'{corpus}, K={n_topics}':34s} {a:10.1f} {b:10.1f} {peer:10.1f}", flush=True)
    speed = table[small]
    print(f"tokens a second, ours / tomotopy at K={small}: {speed[2] / speed[0]:.2f} and {speed[2] / speed[1]:.2f}")
    ratio = table[large] / table[small]
    print(f"K {small} -> {large}: {ratio[0]:.2f} and {ratio[1]:.2f} (target 3), tomotopy {ratio[2]:.2f}\n", flush=True)

    n_docs, sizes = (500, (800, 4000)) if options.smoke else (20_000, (8_000, 100_000))
    for n_words in sizes:
        corpus_v = planted(n_docs, n_words, 80)
        a, b, _ = time_sweeps(corpus_v, small, n_iter=n_iter)
        # The streaming sampler with the same documents per minibatch: only the minibatch's words are touched.
        fresh = SweepTimer()
        BayesianLDA(
            small, doc_topic_prior=0.1, assignments="fresh", batch_size=min(256, n_docs), n_iter=60, thin=30,
            random_state=0, callbacks=fresh,
        ).fit(corpus_v)  # fmt: skip
        c = 1e9 * np.median(fresh.sampled or fresh.collapsed) / (corpus_v.sum() / n_docs * min(256, n_docs) * 10)
        peer = np.nan if options.smoke else time_tomotopy(corpus_v, small)
        table[n_words] = np.array([a, b, c, peer])
        print(f"{f'planted, V={n_words}':34s} {a:10.1f} {b:10.1f} {peer:10.1f}   minibatch SCIR {c:.1f}", flush=True)
    ratio = table[sizes[1]] / table[sizes[0]]
    print(
        f"V {sizes[0]} -> {sizes[1]}: {ratio[0]:.2f} and {ratio[1]:.2f}, minibatch SCIR {ratio[2]:.2f} (target 1.5), "
        f"tomotopy {ratio[3]:.2f}\n",
        flush=True,
    )

    print_threads(large_corpus, small, flags, not options.smoke, cores)
    flags += ["--corpus", corpus]
    one = [float(x) for x in in_processes([*flags, "--throughput", "1"], 1)]
    two = [float(x) for x in in_processes([*flags, "--throughput", "1"], 2)]
    threads = float(in_processes([*flags, "--throughput", "2"], 1)[0])
    print(f"M tokens/s: one process {one[0] / 1e6:.1f}, two processes together {sum(two) / 1e6:.1f}, ", end="")
    print(f"two threads {threads / 1e6:.1f}; threads / processes {threads / sum(two):.2f} (target 0.9)")


if __name__ == "__main__":
    main()
