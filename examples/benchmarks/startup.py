"""How long a user waits before the first sweep: the import, the first fit ever, the first fit of a process.

    python examples/benchmarks/startup.py

Each figure is measured in new processes: the import of sk_sgmcmc beyond that of scikit-learn (median of several), a
first fit with an empty kernel cache, a first fit with kernels on disk, and the fits after it in the same process.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

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
    BayesianLDA(3, n_iter=20, random_state=0).fit(X)
    print(time.perf_counter() - b)
"""


def seconds(code, cache):
    """The numbers printed by a program run in a new process with its own kernel cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return [float(line) for line in out.stdout.split()]


def main():
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="no repeats, and the kernels that are on disk")
    smoke = parser.parse_args().smoke
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
