"""Fit a small model with the installed package: ``python .ci/first_fit.py``, in any environment and from any folder.

It fails if Python imports a checkout, or if a file is missing from the distribution or one too many is in it.
"""

import importlib.metadata
import importlib.resources
import platform
from pathlib import Path

import numpy as np

import sk_sgmcmc
from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import load_sotu

ROOT = Path(__file__).resolve().parents[1]


def main():
    """Check the files of the package, and fit a topic model to the data that ship with it."""
    package = Path(sk_sgmcmc.__file__).resolve().parent
    assert package.parent != ROOT, f"{package} is the checkout; install the wheel, and do not set PYTHONPATH"
    distribution = importlib.metadata.distribution("sk-sgmcmc")
    assert distribution.version == sk_sgmcmc.__version__
    folders = {Path(str(file)).parts[0] for file in distribution.files}
    assert {name for name in folders if not name.endswith(".dist-info")} == {"sk_sgmcmc"}, sorted(folders)
    assert importlib.resources.files("sk_sgmcmc").joinpath("py.typed").is_file()

    counts = load_sotu().counts[:300]
    lda = BayesianLDA(n_components=5, n_iter=100, random_state=0).fit(counts)
    np.testing.assert_allclose(lda.components_.sum(axis=1), 1)
    perplexity, uniform = lda.perplexity(counts), counts.shape[1]
    assert perplexity < uniform / 2, perplexity
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in "numpy scipy scikit-learn numba joblib".split()
    )
    print(f"sk_sgmcmc {sk_sgmcmc.__version__} on Python {platform.python_version()} with {versions}")
    print(f"{counts.shape[0]} documents, {uniform} words: perplexity {perplexity:.0f}")


if __name__ == "__main__":
    main()
