"""Latent Dirichlet allocation of more tokens than fit in memory: tokens per second, memory, disk, and topics recovered.

    python examples/benchmarks/corpus_on_disk.py --tokens 1e8
    python examples/benchmarks/corpus_on_disk.py --tokens 1e7 --in-memory   # the same data as one matrix
    python examples/benchmarks/corpus_on_disk.py --tokens 1e7 --workers 2   # on a LocalCluster of Dask
    python examples/benchmarks/corpus_on_disk.py --tokens 4e6 --only cost   # seconds of a round: predicted and measured
    python examples/benchmarks/corpus_on_disk.py --only pair --corpus wikipedia --topics 100  # two workers, processes

Documents are drawn from planted topics, block by block, twice: when blocks are checked, and when their tokens are
written. The peak is that of anonymous memory, which cannot be given back; memory maps are not part of it. With workers,
it is that of this process alone. ``--only pair`` divides the tokens a second of two workers of Dask by those of two
processes that know nothing of each other, each of which fits the whole corpus by itself at the same time.
"""

import argparse
import multiprocessing
import shutil
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy import sparse

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.datasets import CountBlocks, fetch_corpus, fetch_wikipedia
from sk_sgmcmc.kernels.math.dirichlet import dirichlet_rows
from sk_sgmcmc.metrics import align_topics, hellinger_distances


class Planted:
    """Documents of 100 tokens from planted topics whose words follow Zipf's law, made block by block."""

    def __init__(self, n_tokens, n_words, n_topics, block_tokens=2_000_000, length=100):
        rng = np.random.default_rng(0)
        base = 1.0 / np.arange(1, n_words + 1)
        cells = rng.standard_gamma(200.0 * base / base.sum(), (n_topics, n_words)) + 1e-9
        self.topics = cells / cells.sum(axis=1, keepdims=True)
        self.ends = np.cumsum(self.topics, axis=1)
        self.n_docs, self.n_words, self.length = int(n_tokens // length), n_words, length
        self.per_block = block_tokens // length

    def block(self, i):
        """Block ``i``, always the same."""
        rng = np.random.default_rng([1, i])
        n, n_topics = min(self.per_block, self.n_docs - i * self.per_block), len(self.topics)
        theta = rng.standard_gamma(5.0 / n_topics, (n, n_topics)) + 1e-12
        tokens = rng.multinomial(self.length, theta / theta.sum(axis=1, keepdims=True))
        docs, words = [], []
        for k, end in enumerate(self.ends):
            docs.append(np.repeat(np.arange(n, dtype=np.int32), tokens[:, k]))
            at = np.searchsorted(end, rng.random(docs[-1].size) * end[-1])
            words.append(np.minimum(at, self.n_words - 1).astype(np.int32))
        docs, words = np.concatenate(docs), np.concatenate(words)
        return sparse.csr_array((np.ones(docs.size, np.int32), (docs, words)), shape=(n, self.n_words))

    def __call__(self):
        """Make all blocks, one after another."""
        return (self.block(i) for i in range(-(-self.n_docs // self.per_block)))


class Peak(threading.Thread):
    """The most anonymous memory of this process, and the most disk in a folder, looked at ten times a second."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.anonymous, self.disk, self.ends = Path(folder), 0, 0, threading.Event()
        self.start()

    def run(self):
        """Watch until the end."""
        while not self.ends.wait(0.1):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    self.anonymous = max(self.anonymous, 1024 * int(line.split()[1]))
            self.disk = max(self.disk, sum(path.stat().st_blocks * 512 for path in self.folder.rglob("*.bin")))


class Clock(Callback):
    """Seconds at which each sweep ended."""

    def __init__(self):
        super().__init__(1)
        self.seconds = []

    def __call__(self, estimator, step):
        """Record the time."""
        self.seconds.append(time.perf_counter())
        return False


def seconds_of_round(n_tokens, n_words, args):
    """Median over kept rounds."""
    planted, clock = Planted(n_tokens, n_words, args.topics, block_tokens=500_000), Clock()
    source = CountBlocks(list(planted()), shard_tokens=args.shard_tokens, folder=args.folder)
    BayesianLDA(args.topics, n_iter=args.sweeps, n_jobs=args.jobs, random_state=0, callbacks=clock).fit(source)
    return np.median(np.diff(clock.seconds)[args.sweeps // 2 :])


def seconds_of_cell(n_words, n_topics):
    """To draw a cell of the topics."""
    out, seconds = np.empty((n_topics, n_words), np.float32), []
    shapes = np.random.default_rng(0).gamma(0.3, 30.0, out.shape)
    for seed in range(5):
        began = time.perf_counter()
        dirichlet_rows(shapes, np.uint64(seed), out)
        seconds.append(time.perf_counter() - began)
    return np.median(seconds) / out.size


def bytes_per_second(client):
    """From a worker to this process."""
    seconds = []
    for i in range(5):
        there = client.submit(np.full, 2**24, i % 7, np.uint8, pure=False)
        client.submit(len, there).result()
        began = time.perf_counter()
        there.result()
        seconds.append(time.perf_counter() - began)
    return 2**24 / np.median(seconds)


def cost(args, client=None):
    """The cost model of the user guide beside measured rounds: T / (M r) + V K (g + 6 / B log2 M) seconds."""
    machines, bandwidth = max(args.workers, 1), np.inf if client is None else bytes_per_second(client)
    g = seconds_of_cell(args.words, args.topics)
    steps = np.log2(machines) / bandwidth if machines > 1 else 0.0
    sizes = [(args.tokens * t, int(args.words * v)) for t, v in ((0.5, 1), (0.25, 1), (1, 1), (1, 2))]
    rounds = [seconds_of_round(*size, args) for size in sizes]
    cells = args.words * args.topics
    # The rate is that of the first size, which is not counted among the predicted ones.
    rate = sizes[0][0] / (rounds[0] - cells * (g + 6.0 * steps)) / machines
    print(
        f"{machines} machines, {rate / 1e6:.2f} million tokens a second each, {g * 1e9:.1f} ns a cell, "
        f"{bandwidth / 1e6:.3g} MB a second"
    )
    for (n_tokens, n_words), measured in zip(sizes[1:], rounds[1:], strict=True):
        predicted = n_tokens / machines / rate + n_words * args.topics * (g + 6.0 * steps)
        print(
            f"  {n_tokens:.3g} tokens, {n_words} words, {args.topics} topics: a kept round takes {measured:.2f} s, "
            f"predicted {predicted:.2f} s"
        )


def counts_of(args):
    """A real corpus, or planted documents, as one matrix."""
    if args.corpus is None:
        return sparse.vstack(list(Planted(args.tokens, args.words, args.topics)()), format="csr")
    return (fetch_wikipedia() if args.corpus == "wikipedia" else fetch_corpus(args.corpus)).counts.tocsr()


def phase_rates(args):
    """Tokens a second in burn-in and of kept sweeps, medians."""
    X, clock = counts_of(args), Clock()
    source = CountBlocks([X], shard_tokens=args.shard_tokens)
    BayesianLDA(args.topics, n_iter=args.sweeps, random_state=0, callbacks=clock).fit(source)
    sweeps, n_burn = np.diff(clock.seconds), args.sweeps // 2
    return [float(X.sum() / np.median(part)) for part in (sweeps[: n_burn - 1], sweeps[n_burn - 1 :])]


def pair(args):
    """Two workers beside two lone processes."""
    from dask.distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"):
        workers = phase_rates(args)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
        lone = np.sum(list(processes.map(phase_rates, [args] * 2)), axis=0)
    for phase, ours, theirs in zip(("burn-in", "kept"), workers, lone, strict=True):
        print(
            f"{phase}: two workers {ours / 1e6:.2f} million tokens a second, two processes {theirs / 1e6:.2f} in all, "
            f"ratio {ours / theirs:.2f} (target 0.85)",
            flush=True,
        )


def run(args):
    """Fit, and print what was measured."""
    planted = Planted(args.tokens, args.words, args.topics)
    folder, clock = tempfile.mkdtemp(dir=args.folder), Clock()
    peak, began = Peak(folder), time.perf_counter()
    X = CountBlocks(planted, shard_tokens=args.shard_tokens, folder=folder)
    if args.in_memory:
        X = sparse.vstack(list(planted()), format="csr")
    model = BayesianLDA(args.topics, n_iter=args.sweeps, n_jobs=args.jobs, random_state=0, callbacks=clock).fit(X)
    sweeps, n_burn = np.diff(clock.seconds), args.sweeps // 2
    peak.ends.set()
    order = align_topics(planted.topics, model.components_)
    apart = np.diagonal(hellinger_distances(planted.topics, model.components_[order]))
    where = "in memory" if args.in_memory else f"{args.workers} workers" if args.workers else "out of core"
    print(
        f"{where}: {planted.n_docs * planted.length:.3g} tokens, {args.words} words, {args.topics} topics, "
        f"{args.sweeps} sweeps in {time.perf_counter() - began:.0f} s, of which {clock.seconds[0] - began:.0f} s until "
        "the first ended"
    )
    for phase, part in (("burn-in", sweeps[: n_burn - 1]), ("kept", sweeps[n_burn - 1 :])):
        rate = planted.n_docs * planted.length / np.median(part)
        print(f"  {phase}: {np.median(part):.2f} s a sweep, {rate / 1e6:.2f} million tokens per second")
    print(f"  peak of anonymous memory {peak.anonymous / 2**30:.2f} GiB, disk {peak.disk / 2**30:.2f} GiB")
    print(f"  topics at a Hellinger distance below 0.2 from a planted one: {np.sum(apart < 0.2)} of {args.topics}")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=float, default=1e7)
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--sweeps", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    parser.add_argument("--workers", type=int, default=0, help="processes of a Dask LocalCluster")
    parser.add_argument("--shard-tokens", type=int, help="of a shard")
    parser.add_argument("--only", choices=["fit", "cost", "pair"], default="fit")
    parser.add_argument("--corpus", help='of "pair": wikipedia, or a name that fetch_corpus takes; else planted tokens')
    parser.add_argument("--in-memory", action="store_true", help="one matrix instead of blocks")
    parser.add_argument("--folder", help="folder for temporary files")
    parser.add_argument("--smoke", action="store_true", help="seconds")
    args = parser.parse_args()
    if args.smoke:
        args.tokens, args.words, args.topics, args.sweeps = 1e5, 500, 4, 6
    if args.only == "pair":
        pair(args)
    elif args.workers:
        from dask.distributed import Client

        with Client(n_workers=args.workers, threads_per_worker=1, dashboard_address=":0") as client:
            cost(args, client) if args.only == "cost" else run(args)
    else:
        cost(args) if args.only == "cost" else run(args)
