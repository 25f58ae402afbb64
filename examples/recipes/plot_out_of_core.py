"""
How do you fit a corpus that does not fit in memory?
====================================================

After this page you can write counts to files, fit a topic model to the
files, and spread the work over a Dask cluster. Dask is optional:
``pip install ".[dask]"``.

In the user guide: :doc:`/user_guide/out_of_core`.
"""

# %%
# Write the counts to files
# -------------------------
# Each file contains the counts of some documents. All files have the
# same columns.

import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

from sk_sgmcmc.datasets import CountBlocks, load_docstrings

data = load_docstrings(packages=["numba", "numpy"])
is_test = np.random.default_rng(0).random(data.counts.shape[0]) < 0.1
train, test = data.counts[~is_test], data.counts[is_test]
folder = tempfile.TemporaryDirectory()
paths = []
for start in range(0, train.shape[0], 500):
    paths.append(Path(folder.name) / f"part-{start}.npz")
    sparse.save_npz(paths[-1], train[start : start + 500])

# %%
# Fit the files
# -------------
# `CountBlocks <sk_sgmcmc.datasets.CountBlocks>` reads one file at a
# time and cuts the documents into shards. A shard usually has two
# million tokens; here it is smaller, so that there are several.

import pandas as pd

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.callbacks import HeldOutScore

blocks = CountBlocks(paths, shard_tokens=50_000)
print(f"{blocks.shape[0]} documents, {blocks.n_tokens} tokens")


def fit(X):
    lda = BayesianLDA(10, n_iter=500, random_state=0)
    lda.set_params(callbacks=HeldOutScore(test, every=20))
    return lda.fit(X, feature_names=data.feature_names)


models = {"in memory": fit(train), "files": fit(blocks)}

# %%
# Fit on a Dask cluster
# ---------------------
# While a client is open, its workers sweep over the shards. The two
# workers here are threads. For a cluster, pass the address of its
# scheduler to ``Client`` instead.

from dask.distributed import Client

options = {"n_workers": 2, "threads_per_worker": 1}
with Client(processes=False, dashboard_address=None, **options):
    models["files, Dask"] = fit(blocks)

# %%
# Compare the fits
# ----------------

perplexity = {name: m.perplexity(test) for name, m in models.items()}
print(pd.Series(perplexity, name="perplexity").round(1).to_string())
_, here, dask = (m.samples_["components"] for m in models.values())
print("same draws with and without Dask:", np.array_equal(here, dask))
folder.cleanup()

# %%
import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import TraceDisplay

ax = None
for name, model in models.items():
    display = TraceDisplay.from_estimator(
        model, x="step", ax=ax, name=name
    )
    ax = display.ax_
ax.get_lines()[1].set(linewidth=6, alpha=0.4)
ax.legend()
plt.show()

# %%
# **The fits of files and of a matrix in memory draw from the same
# posterior, and Dask changes no draw.**
