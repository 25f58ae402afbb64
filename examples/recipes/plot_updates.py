"""
How do you add documents with new words to a topic model?
=========================================================

After this page you can pass documents to a topic model as they arrive,
let it add the words that are new to it, and find a topic that emerges.

In the user guide: :doc:`/user_guide/updating`.
"""

# %%
# Cut a corpus into blocks
# ------------------------
# Docstrings arrive in blocks. Those of scikit-learn arrive from the
# middle on. Each block is a DataFrame with its own words as columns.

import numpy as np
import pandas as pd

from sk_sgmcmc.datasets import load_docstrings

data = load_docstrings()
N_BLOCKS, ARRIVAL = 10, 5
package = np.asarray(data.metadata["package"])
rng = np.random.default_rng(0)
block = rng.integers(0, N_BLOCKS, package.size)
is_new = package == "sklearn"
block[is_new] = rng.integers(ARRIVAL, N_BLOCKS, is_new.sum())
is_test = rng.random(package.size) < 1 / 8


def as_frame(counts, words):
    return pd.DataFrame.sparse.from_spmatrix(
        counts[:, words], columns=data.feature_names[words]
    )


def read_block(b):
    counts = data.counts[(block == b) & ~is_test]
    return as_frame(counts, np.unique(counts.indices))


# %%
# Update the model
# ----------------
# ``new_features="extend"`` adds new words. Topics keep their numbers.
# Score the model on the words of the first block only, since
# perplexities of different vocabularies cannot be compared.

from sk_sgmcmc import BayesianLDA

known = np.unique(data.counts[(block == 0) & ~is_test].indices)
test = {
    "scikit-learn": as_frame(data.counts[is_test & is_new], known),
    "other packages": as_frame(data.counts[is_test & ~is_new], known),
}
lda = BayesianLDA(15, new_features="extend", random_state=0)
rows, shares = [], []
for b in range(N_BLOCKS):
    lda.partial_fit(read_block(b))
    row = {name: lda.perplexity(X) for name, X in test.items()}
    rows.append({"words": lda.n_features_in_, **row})
    shares.append(lda.transform(test["scikit-learn"]).mean(axis=0))
table = pd.DataFrame(rows).rename_axis("block")
print(table.round().astype(int).to_string())

# %%
# Find the topic that emerged
# ---------------------------
# Its share of scikit-learn's held-out docstrings grew most.

shares = np.array(shares)
emerged = int(np.argmax(shares[-1] - shares[ARRIVAL - 1]))
words = lda.top_words(6, interval=0.9).query("topic == @emerged")
columns = ["name", "word", "probability", "low", "high"]
print(words[columns].round(3).to_string(index=False))

# %%
# Plot the updates
# ----------------

import matplotlib.pyplot as plt

_, axes = plt.subplots(1, 2, figsize=(8, 3.8))
table[list(test)].plot(ax=axes[0], marker="o", ms=4)
axes[0].set(ylabel="held-out perplexity", ylim=(0, None))
axes[1].plot(shares, color="0.75", lw=1)
axes[1].plot(shares[:, emerged], "C0o-", ms=4)
axes[1].set(ylabel="topic shares in scikit-learn", xlabel="block")
for ax in axes:
    ax.axvline(ARRIVAL - 0.5, color="0.4", ls=":")
plt.show()

# %%
before, after = (shares[i, emerged] for i in (ARRIVAL - 1, -1))
print(f"Topic {emerged}: {before:.0%} before, {after:.0%} at the end.")

# %%
# **The share of the topic that emerged shows how far the model has
# taken up the new documents (dotted: their arrival).**
