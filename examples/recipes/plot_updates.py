"""
What happens to topics when documents bring new words?
======================================================

A stream of documents has no vocabulary known in advance. Here docstrings arrive in blocks: those of NumPy, SciPy, numba
and joblib throughout, those of scikit-learn from the middle on. The model takes one block after another by
``partial_fit`` and adds the words that are new to it.

The guide has a page on :doc:`adding data </user_guide/updating>`.
"""

# %%
# The stream
# ----------
# Each block is a data frame of its own, with the words of its documents as its columns. One document in eight is held
# out.

import numpy as np
import pandas as pd

from sk_sgmcmc.datasets import load_docstrings

docstrings = load_docstrings()
package = docstrings.metadata["package"].to_numpy()
rng = np.random.default_rng(0)
kept_aside = rng.random(package.size) < 1 / 8
old = rng.permutation(
    np.flatnonzero((package != "sklearn") & ~kept_aside)
)
new = rng.permutation(
    np.flatnonzero((package == "sklearn") & ~kept_aside)
)


def as_frame(rows, words=None):
    """Counts of these documents, with only the words that occur in them as columns."""
    counts = docstrings.counts[rows]
    words = np.unique(counts.indices) if words is None else words
    return pd.DataFrame.sparse.from_spmatrix(
        counts[:, words], columns=docstrings.feature_names[words]
    )


n_blocks, change = 16, 8
old_blocks = np.array_split(old, n_blocks)
new_blocks = [[]] * change + np.array_split(new, n_blocks - change)
blocks = [
    np.concatenate(pair).astype(int)
    for pair in zip(old_blocks, new_blocks, strict=True)
]

# %%
# Held-out documents of both kinds are scored on the words of the first block: with a growing vocabulary, perplexities
# at different times could not be compared.

known_first = np.unique(docstrings.counts[blocks[0]].indices)
held_out = {
    "the other packages": as_frame(
        np.flatnonzero(kept_aside & (package != "sklearn")), known_first
    ),
    "scikit-learn": as_frame(
        np.flatnonzero(kept_aside & (package == "sklearn")), known_first
    ),
}

# %%
# Fitting
# -------
# The model keeps the documents and the topics of their tokens. Each call adds the documents of a block, and sweeps over
# all of them once there are 5% more. Topics keep their numbers.

from sk_sgmcmc import BayesianLDA

lda = BayesianLDA(
    15,
    doc_topic_prior=0.05,
    topic_word_prior=0.05,
    new_features="extend",
    random_state=0,
)
seen, n_words, perplexity, shares = (
    [],
    [],
    {name: [] for name in held_out},
    [],
)
for rows in blocks:
    lda.partial_fit(as_frame(rows))
    seen.append(lda.n_samples_seen_)
    n_words.append(lda.n_features_in_)
    for name, documents in held_out.items():
        perplexity[name].append(lda.perplexity(documents))
    shares.append(lda.transform(held_out["scikit-learn"]).mean(axis=0))
shares = np.array(shares)
for name, values in perplexity.items():
    moments = {
        "first block": 0,
        "before scikit-learn": change - 1,
        "at its arrival": change,
        "end": -1,
    }
    print(
        f"{name:20s}",
        ", ".join(
            f"{moment} {values[i]:.0f}" for moment, i in moments.items()
        ),
    )
print(
    f"{n_words[0]} words after the first block, {n_words[change - 1]} before scikit-learn, {n_words[-1]} at the end"
)

# %%
# The topic that emerged is the one whose share of scikit-learn's docstrings has grown most.

emerged = int(np.argmax(shares[-1] - shares[change - 1]))
words = lda.top_words(8, interval=0.9)
words = words[words["topic"] == emerged]
print(
    words.to_string(
        index=False, float_format=lambda value: f"{value:.3f}"
    )
)

# %%

import matplotlib.pyplot as plt

figure, axes = plt.subplots(
    1,
    3,
    figsize=(12, 4),
    layout="constrained",
    width_ratios=(1.2, 1.2, 1),
)
for (name, values), colour in zip(
    perplexity.items(), ("C0", "C1"), strict=True
):
    axes[0].plot(seen, values, "o-", ms=4, color=colour, label=name)
axes[0].set(ylabel="held-out perplexity", ylim=0)
axes[0].legend(frameon=False, fontsize=8)
axes[1].plot(
    seen, 100 * np.delete(shares, emerged, axis=1), color="0.75", lw=1
)
axes[1].plot(
    seen,
    100 * shares[:, emerged],
    "o-",
    ms=4,
    color="C1",
    label=f"topic {emerged}",
)
axes[1].set(
    ylabel="share of scikit-learn's held-out documents (%)", ylim=0
)
axes[1].legend(frameon=False, fontsize=8)
for ax in axes[:2]:
    ax.axvline(seen[change - 1], color="0.4", ls=":")
    ax.set_xlabel("documents seen (dotted: scikit-learn arrives)")
place = np.arange(len(words))
axes[2].barh(place, 100 * words["probability"], color="C1", alpha=0.45)
axes[2].hlines(
    place, 100 * words["low"], 100 * words["high"], color="0.15"
)
axes[2].set_yticks(place, words["word"])
axes[2].invert_yaxis()
axes[2].set(
    xlabel="probability (%), 90% interval",
    title=f"topic {emerged} at the end",
)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# **With the first block that contains the newcomer, the perplexity of its docstrings falls by a third; in the end it is
# halved, one topic holds half of them, and nothing learnt about the other packages is lost.**
