"""
Does it matter where documents are processed?
=============================================

A corpus that does not fit in memory, or takes too long on one machine, is cut into shards, which several processes
sweep side by side. What they draw should depend on neither their number nor their fate. Here the same docstrings are
fitted three times: as one matrix in memory, as shards in this process, and as shards on two processes of a Dask
cluster, one of which is killed on the way.

The guide has a page on :doc:`corpora larger than memory </user_guide/out_of_core>`.
"""

# %%
# Three fits
# ----------
# Blocks are matrices in memory here; paths of ``.npz`` files, a function that makes blocks, or a Dask array do as well.
# Where Dask has a client, shards go to its workers by themselves. Sixty sweeps are too few for topics to settle, and
# ``fit`` says so. The three fits are compared sweep by sweep, so the warning is switched off.

import os
import signal
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.datasets import CountBlocks, load_docstrings

warnings.filterwarnings("ignore", category=ConvergenceWarning)


def fit(X, test, *more):
    """A model and its held-out score after every fifth sweep."""
    score = HeldOutScore(test, every=5)
    return BayesianLDA(
        n_components=20,
        n_iter=60,
        random_state=0,
        callbacks=[score, *more],
    ).fit(X)


class KillAWorker:
    """Kill one worker after the fortieth sweep."""

    def __init__(self, client):
        self.client = client

    def __call__(self, estimator, step):
        """Kill it, once."""
        if step == 40 and self.client is not None:
            os.kill(
                next(iter(self.client.run(os.getpid).values())),
                signal.SIGKILL,
            )
            self.client = None


def three_models():
    """The same documents, fitted in three ways."""
    from dask.distributed import Client

    counts = load_docstrings().counts
    held_out = np.random.default_rng(0).random(counts.shape[0]) < 1 / 8
    train, test = counts[~held_out], counts[held_out]
    blocks = CountBlocks(
        [
            train[start : start + 500]
            for start in range(0, train.shape[0], 500)
        ],
        shard_tokens=20_000,
    )
    print(f"{blocks.shape[0]} documents, {blocks.n_tokens} tokens")
    models = {
        "in memory": fit(train, test),
        "shards, here": fit(blocks, test),
    }
    with Client(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=":0",
        silence_logs=50,
    ) as client:
        models["shards, two processes, one killed"] = fit(
            blocks, test, KillAWorker(client)
        )
    return models


# %%
# What they draw
# --------------
# The fit of the matrix has other draws of the same posterior: it keeps collapsed sweeps after burn-in.

if (
    __name__ == "__main__"
):  # the processes that Dask starts read this file, too
    models = three_models()
    here, there = (
        models[name].samples_["components"] for name in list(models)[1:]
    )
    print(
        f"{np.mean(here == there):.0%} of the numbers in the draws of both fits of shards are equal"
    )
    fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    styles = (
        {"color": "0.6"},
        {"lw": 4, "alpha": 0.4},
        {"color": "k", "ls": "--"},
    )
    for (name, model), style in zip(
        models.items(), styles, strict=True
    ):
        ax.plot(
            model.trace_["step"],
            np.exp(-np.array(model.trace_["score"])),
            label=name,
            **style,
        )
    ax.axvline(40, color="tab:red", lw=1)
    ax.annotate(
        " a worker is killed",
        (40, ax.get_ylim()[1]),
        color="tab:red",
        ha="left",
        va="top",
    )
    ax.set(xlabel="sweep", ylabel="perplexity of held-out words")
    ax.legend()
    plt.show()

# %%
# **No: shards give the same draws, bit for bit, in one process, in two, and after one was killed; and they predict
# held-out words as well as the matrix in memory does.**
