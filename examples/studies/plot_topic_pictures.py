"""
What do topics look like, and which of it is certain?
=====================================================

Four pictures of a fitted topic model: a map and a tree of its topics, the documents that show best what a topic is
about, and the course of topics over time. Each shows its own uncertainty.

The documents are docstrings of scientific Python, which come with this package's dependencies, and for the last picture
paragraphs of the State of the Union addresses, which come with this package.

The guide has a page on :doc:`reading topics </user_guide/reading_topics>`.
"""

# %%
# A map
# -----
# Circles that are near each other share words; areas are proportional to shares of the words. Thirty topics do not fit
# into a plane without compromise, so small differences of distance mean little.

import numpy as np

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import load_docstrings, load_sotu
from sk_sgmcmc.inspection import (
    TopicDocumentsDisplay,
    TopicHierarchyDisplay,
    TopicMapDisplay,
    TopicsOverTimeDisplay,
)

N_ITER = 80
docstrings = load_docstrings(return_text=True)
lda = BayesianLDA(n_components=30, n_iter=N_ITER, random_state=0)
lda.fit(docstrings.counts, feature_names=docstrings.feature_names)
_ = TopicMapDisplay.from_estimator(lda)

# %%
# A tree
# ------
# The same distances in all dimensions. A number is the percentage of draws whose own tree has the branch; where there
# is none, fewer than half of them have it.

tree = TopicHierarchyDisplay.from_estimator(lda)
print(f"{np.mean(tree.support >= 0.5):.0%} of the branches are in at least half of the draws")

# %%
# Documents
# ---------
# What a topic is about is seen best in the documents that hold most of it. Of every third docstring:

some = np.arange(0, docstrings.counts.shape[0], 3)
texts = [docstrings.text[i] for i in some]
_ = TopicDocumentsDisplay.from_estimator(lda, docstrings.counts[some], texts, topics=tree.topics[[3, 12]], n=3)

# %%
# Time
# ----
# Shares of topics in the paragraphs of each decade, with their intervals.

addresses = load_sotu()
model = BayesianLDA(n_components=20, n_iter=200, random_state=0)
model.fit(addresses.counts, feature_names=addresses.feature_names)
_ = TopicsOverTimeDisplay.from_estimator(model, addresses.counts, np.asarray(addresses.metadata["year"]), n_bins=23)

# %%
import matplotlib.pyplot as plt

plt.show()

# %%
# **The closest pairs of topics are found in nearly all draws; how the larger branches join is mostly open. The share of
# a topic in a period is known to within a few percentage points, and better where the period has more documents.**
