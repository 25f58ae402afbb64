"""Topic proportions of many documents through Dask, block by block: documents a second and peak memory.

    python examples/benchmarks/transform_blocks.py --documents 1000000

Documents of a real corpus are drawn with replacement and lie in blocks on disk. A process of its own loads a fitted
`BayesianLDA`, and writes ``transform`` of a Dask array over these blocks to disk, in Dask's threads. Another trains
tomotopy's LDAModel on the same documents as ours, and infers a sample of the new ones by its default arguments.

Rates are by wall time and by processor time, the latter for other load on the machine; those of Dask include reading
and writing, that of tomotopy leaves out the preparation of its documents. Compilation counts for neither. Memory is the
highest resident memory of the process, and its growth during the transform.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
from _peers import counts_of, peak_memory, split
from _topic_inference import TomotopyTransform
from scipy import sparse
from threadpoolctl import threadpool_limits

from sk_sgmcmc import BayesianLDA


def prepare(folder, options):
    """Write the fitted model, the training documents, and the blocks of new documents."""
    train, held_out = split(counts_of(options.corpus), 0)
    held_out = held_out[np.flatnonzero(held_out.sum(axis=1))]
    model = BayesianLDA(options.topics, n_iter=options.sweeps, random_state=0).fit(train)
    joblib.dump(model, folder / "model.joblib")
    sparse.save_npz(folder / "train.npz", train)
    rng = np.random.default_rng(0)
    for i, start in enumerate(range(0, options.documents, options.block)):
        n = min(options.block, options.documents - start)
        sparse.save_npz(folder / f"block{i}.npz", held_out[rng.integers(held_out.shape[0], size=n)], compressed=False)


def blocks(folder, options):
    """The new documents as a Dask array of CSR blocks."""
    import dask.array as da
    from dask import delayed

    first = sparse.load_npz(folder / "block0.npz")
    n_rows = [min(options.block, options.documents - start) for start in range(0, options.documents, options.block)]
    return da.concatenate(
        [
            da.from_delayed(
                delayed(sparse.load_npz)(folder / f"block{i}.npz"), (n, first.shape[1]), first.dtype, meta=first[:0]
            )
            for i, n in enumerate(n_rows)
        ]
    )


def timed(call):
    """Seconds of wall time and of processor time of a call."""
    wall, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - processor


def run_dask(folder, options):
    """Rates of `transform` through Dask, and memory."""
    import dask
    import dask.array as da

    model = joblib.load(folder / "model.joblib")
    sample = sparse.load_npz(folder / "block0.npz")[: options.sample]
    model.transform(sample[:2])
    lazy = model.transform(blocks(folder, options))
    before = peak_memory()
    with dask.config.set(scheduler="threads", num_workers=options.workers):
        seconds = timed(lambda: da.to_npy_stack(folder / "proportions", lazy))
    memory = {"peak": peak_memory(), "growth": peak_memory() - before}
    in_memory = timed(lambda: model.transform(sample))
    return {
        f"Dask, {options.workers} threads": [options.documents / each for each in seconds],
        "one block in memory": [sample.shape[0] / each for each in in_memory],
    }, memory


def run_tomotopy(folder, options):
    """Rates of tomotopy's `infer`, and memory."""
    model = TomotopyTransform(sparse.load_npz(folder / "train.npz"), None, options.topics)
    documents = model.prepared(sparse.load_npz(folder / "block0.npz")[: options.sample])
    seconds = timed(lambda: model.proportions(documents))
    return {"tomotopy infer": [len(documents) / each for each in seconds]}, {"peak": peak_memory()}


PROGRAMS = {"dask": run_dask, "tomotopy": run_tomotopy}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a synthetic corpus, without tomotopy")
    parser.add_argument("--corpus", default="docstrings")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--block", type=int, default=5000, help="documents of a block")
    parser.add_argument("--sample", type=int, default=2000, help="documents for tomotopy")
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--sweeps", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2, help="Dask's threads")
    parser.add_argument("--program", choices=PROGRAMS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        print(json.dumps(PROGRAMS[options.program](options.folder, options)))
        return
    given = sys.argv[1:]
    if options.smoke:
        given = "--corpus synthetic --documents 400 --block 100 --sample 50 --topics 5 --sweeps 10".split()
        options = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), options)
        print(f"{options.documents} documents of {options.corpus} in blocks of {options.block}, K = {options.topics}")
        print(f"{'program':>20s} {'docs / s':>10s} {'docs / s of processor':>22s} {'peak MiB':>10s} {'growth':>8s}")
        for program in ["dask"] if "synthetic" in given else list(PROGRAMS):
            command = [sys.executable, __file__, *given, "--program", program, "--folder", folder]
            out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            rates, memory = json.loads(out.splitlines()[-1])
            for name, (wall, processor) in rates.items():
                growth = f"{memory['growth']:8.0f}" if "growth" in memory else ""
                print(f"{name:>20s} {wall:10.0f} {processor:22.0f} {memory['peak']:10.0f} {growth}", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
