"""
How do you explore the topics of a corpus?
==========================================

After this page you can do a whole analysis: map and group topics, read
the documents that show them best, join topics that belong together,
name them, and follow them over time. Every number has an interval.

In the user guide: :doc:`/user_guide/reading_topics`.
"""

# %%
# Fit
# ---
# Every third paragraph of the State of the Union addresses.
# :doc:`plot_number_of_topics` shows how to choose the number of topics.

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import load_sotu

sotu = load_sotu(return_text=True)
X, words = sotu.counts, sotu.feature_names
lda = BayesianLDA(20, n_iter=300, random_state=0)
lda.fit(X, feature_names=words)
info = lda.topic_info(X).nlargest(8, "share").iloc[:, 1:5]
print(info.to_string(index=False, float_format="%.3f"))

# %%
# Map the topics
# --------------
# Topics near each other share words. Areas are proportional to shares.

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import (
    TopicDocumentsDisplay,
    TopicHierarchyDisplay,
    TopicMapDisplay,
    TopicsOverTimeDisplay,
)

TopicMapDisplay.from_estimator(lda, X)
plt.show()

# %%
# Group the topics
# ----------------
# The tree shows the same distances without a projection. A number is
# the percentage of draws that have the branch.

tree = TopicHierarchyDisplay.from_estimator(lda, n_words=3)
plt.show()
print(f"{(tree.support >= 0.5).mean():.0%} of the branches are certain")

# %%
# Read the documents
# ------------------
# Paragraphs with most of the two topics in which a word is probable:

found = lda.find_topics("economy").head(2)
print(found.to_string(index=False, float_format="%.3f"))
first = found["topic"].tolist()
TopicDocumentsDisplay.from_estimator(lda, X, sotu.text, topics=first)
plt.show()

# %%
# Join and name topics
# --------------------
# Topics that often occur together can be joined, in every draw.

pairs = lda.topic_correlation(X).nlargest(3, "correlation")
print(pairs.to_string(index=False, float_format="%.2f"))
pair = pairs[["topic_a", "topic_b"]].iloc[0].tolist()
merged = lda.merge_topics([pair])
frex = merged.top_words(2, by="frex", format="wide")
merged.topic_names_ = [" ".join(frex[name]) for name in frex]

# %%
# Follow them over time
# ---------------------

year = sotu.metadata["year"]
table = merged.topics_over_time(X, year, n_bins=12)
shares = table.groupby("topic")["share"]
change = shares.max() - shares.min()
six = change.nlargest(6).index.tolist()
TopicsOverTimeDisplay.from_estimator(
    merged, X, year, topics=six, n_bins=12
)
plt.show()

# %%
width = (table["high"] - table["low"]).mean()
print(
    f"mean change of a share {change.mean():.2f}, interval {width:.2f}"
)

# %%
# **Shares of topics change by more than their intervals are wide. The
# tree says which groups of topics are certain.**
