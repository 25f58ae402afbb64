"""
How do two groups speak of the same topic?
==========================================

After this page you can give topics words of their own in each group of
documents, list the words that differ with intervals, and test whether
the groups help to predict. The groups are the two parties in the State
of the Union addresses since 1930.

In the user guide: :doc:`/user_guide/covariates`.
"""

# %%
# Load the documents
# ------------------
# One paragraph in ten is held out.

import numpy as np

from sk_sgmcmc.datasets import load_sotu

sotu = load_sotu()
meta = sotu.metadata[["party", "year"]]
some = meta["party"].isin(["Democratic", "Republican"])
some = np.flatnonzero(some & (meta["year"] >= 1930))
test, train = some[::10], np.setdiff1d(some, some[::10])
counts, words = sotu.counts, sotu.feature_names

# %%
# Fit
# ---
# ``content="party"`` gives each topic two versions of its words.
# ``formula`` lets parties also differ in how much they say.

from sk_sgmcmc import StructuralTopicModel

model = StructuralTopicModel(
    10,
    formula="~ party + bs(year, df=4)",
    content="party",
    n_iter=1000,
    random_state=0,
)
model = model.fit(
    counts[train], metadata=meta.iloc[train], feature_names=words
)

# %%
# Compare with shared words
# -------------------------
# The same model with the same words for both parties. A lower
# perplexity is better.

from sklearn.base import clone

shared = clone(model).set_params(content=None)
shared.fit(
    counts[train], metadata=meta.iloc[train], feature_names=words
)
scores = {"words by party": model, "shared words": shared}
for name, each in scores.items():
    score = each.perplexity(counts[test], metadata=meta.iloc[test])
    print(f"perplexity, {name}: {score:.0f}")

# %%
# List the words that differ
# --------------------------
# ``log_ratio`` is the logarithm of the probability of a word in
# Democratic documents divided by its probability in Republican ones.

table = model.word_contrast("Democratic", "Republican", n=6)
columns = ["name", "word", "log_ratio", "low", "high"]
print(
    table[columns].head(12).to_string(index=False, float_format="%.1f")
)

# %%
# Plot four topics
# ----------------

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import WordContrastDisplay

WordContrastDisplay.from_estimator(
    model, "Democratic", "Republican", topics=range(4), n_columns=2
)
plt.show()

# %%
often = model.components_ > 0.002
every = model.word_contrast("Democratic", "Republican", n=len(words))
column = every["word"].map({word: i for i, word in enumerate(words)})
every = every[often[every["topic"], column]]
apart = (every["low"] > 0) | (every["high"] < 0)
print(f"{apart.mean():.0%} of the frequent words differ")

# %%
# **Groups use a word differently if its interval excludes zero. The
# wider the interval, the rarer the word.**
