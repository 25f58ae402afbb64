"""
How do you choose the number of topics?
=======================================

After this page you can compare several numbers of topics on the same
held-out documents, see how precise the comparison is, and choose among
the numbers that predict equally well.

In the user guide: :doc:`/user_guide/scoring`.
"""

# %%
# Load the documents
# ------------------
# Paragraphs of the State of the Union addresses since 1945:

from sk_sgmcmc.datasets import load_sotu

sotu = load_sotu()
recent = (sotu.metadata["year"] >= 1945).to_numpy()
X, words = sotu.counts[recent], sotu.feature_names
print(f"{X.shape[0]} documents, {X.sum()} tokens")

# %%
# Compare several numbers
# -----------------------
# `search_n_components` fits each number to the same nine tenths of the
# documents, and predicts words of the others. ``difference`` is the
# score minus the best score. Pass ``n_jobs=-1`` to use all cores.

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.model_selection import search_n_components

model = BayesianLDA(n_iter=500, random_state=0)
search = search_n_components(model, X, [5, 10, 20, 40, 80])
columns = ["n_components", "difference", "difference_error"]
columns += ["coherence", "exclusivity", "stability"]
print(search[columns].to_string(index=False, float_format="%.3f"))

# %%
# Plot the comparison
# -------------------
# The band shows two standard errors of the difference from the best.
# Top words of coherent topics occur in the same documents. Exclusive
# topics share few of them. Stable topics have the same words in all
# draws.

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import NumberOfTopicsDisplay

NumberOfTopicsDisplay.from_search(search)
plt.show()

# %%
# Choose
# ------
# If the largest number has the best score, compare larger ones too.
# Numbers within two errors of the best score predict equally well. The
# smallest of them usually has the most stable topics.

equal = search[search["difference"] >= -2 * search["difference_error"]]
n_topics = int(equal["n_components"].min())
print("predict equally well:", equal["n_components"].tolist())
print("choose:", n_topics)

# %%
# **Choose the smallest number that predicts as well as the best. Take
# fewer topics if you want to read and name them all: the figure says
# what that costs.**
