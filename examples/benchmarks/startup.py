"""How long a user waits before the first sweep: the import, the first fit ever, the first fit of a process.

    python examples/benchmarks/startup.py
    python examples/benchmarks/startup.py --each    # the first fit ever of every estimator

Each figure is measured in new processes: the import of sk_sgmcmc beyond that of scikit-learn (median of several), a
first fit with an empty kernel cache, a first fit with kernels on disk, and the fits after it in the same process. The
first fits of BayesianLDA include ``transform`` and ``top_words``. ``--each`` prints the time of whole processes that
fit one estimator and call the methods that read it, with an empty kernel cache of its own, then with kernels on disk.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

from sk_sgmcmc.warm_up import FIRST_FITS

IMPORT = """
import time
import sklearn.base, sklearn.utils
b = time.perf_counter()
import {}
print(time.perf_counter() - b)
"""
FIT = """
import time
from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_lda
X = make_lda(n_samples=200, n_features=100, n_components=3, random_state=0).counts
for _ in range(4):
    b = time.perf_counter()
    lda = BayesianLDA(3, n_iter=20, random_state=0).fit(X)
    lda.transform(X)
    lda.top_words(5)
    print(time.perf_counter() - b)
"""


def seconds(code, cache):
    """The numbers printed by a program run in a new process with its own kernel cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return [float(line) for line in out.stdout.split()]


def print_each(names):
    """A line for each estimator: seconds, and of these the processor's, of a process that fits it first, and again."""
    print(f"{'first fit ever of':28s}{'seconds':>9s}{'processor':>11s}{'again':>9s}{'processor':>11s}")
    for name in names:
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            figures = []
            for _ in range(2):
                before, began = os.times(), time.perf_counter()
                command = [sys.executable, "-m", "sk_sgmcmc.warm_up", name]
                subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
                after = os.times()
                processor = after.children_user + after.children_system - before.children_user - before.children_system
                figures += [time.perf_counter() - began, processor]
        print(f"{name:28s}{figures[0]:9.1f}{figures[1]:11.1f}{figures[2]:9.1f}{figures[3]:11.1f}", flush=True)


def main():
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="no repeats, and the kernels that are on disk")
    parser.add_argument("--each", action="store_true", help="the first fit ever of every estimator, and nothing else")
    options = parser.parse_args()
    if options.each:
        print_each(["BayesianLDA"] if options.smoke else FIRST_FITS)
        return
    smoke = options.smoke
    repeats = 1 if smoke else 7
    with tempfile.TemporaryDirectory() as cache:
        cache = os.environ.get("NUMBA_CACHE_DIR", cache) if smoke else cache
        imports = [seconds(IMPORT.format("sk_sgmcmc"), cache)[0] for _ in range(repeats)]
        peer = [seconds(IMPORT.format("sklearn.decomposition"), cache)[0] for _ in range(repeats)]
        print(f"import sk_sgmcmc beyond scikit-learn: {statistics.median(imports):.3f} s (target 0.1)")
        print(f"import sklearn.decomposition, likewise: {statistics.median(peer):.3f} s")
        ever = seconds(FIT, cache)
        print(f"first fit ever, kernels compiled: {ever[0]:.2f} s; later fits {statistics.median(ever[1:]):.3f} s")
        later = [seconds(FIT, cache) for _ in range(repeats)]
        first = statistics.median(run[0] for run in later)
        rest = statistics.median(value for run in later for value in run[1:])
        print(f"first fit of a process, kernels on disk: {first:.2f} s; later fits {rest:.3f} s")
        print(f"first fit beyond later ones: {first - rest:.2f} s (target 1)")


if __name__ == "__main__":
    main()
