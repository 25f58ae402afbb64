"""
How do topics change over time?
===============================

After this page you can follow the shares of topics through years or
periods, compare classes of documents, and say which changes are larger
than their uncertainty.

In the user guide: :doc:`/user_guide/reading_topics`.
"""

# %%
# Fit
# ---
# Every third paragraph of the State of the Union addresses from 1790 to
# 2020. The fit does not use the years.

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import load_sotu

sotu = load_sotu()
X, year = sotu.counts, sotu.metadata["year"]
lda = BayesianLDA(15, n_iter=300, random_state=0)
lda = lda.fit(X, feature_names=sotu.feature_names)

# %%
# Read the table
# --------------
# ``n_bins`` groups the years into periods of the same length. Without
# it, each year has its own row. Dates are allowed too.

table = lda.topics_over_time(X, year, n_bins=12)
columns = ["time", "name", "share", "low", "high", "n_documents"]
peaks = table.loc[table.groupby("topic")["share"].idxmax(), columns]
peaks = peaks.sort_values("time").astype({"time": int})
print(peaks.to_string(index=False, float_format="%.3f"))

# %%
# Plot the course of topics
# -------------------------
# The six topics that change most. Bands are 90% intervals of the mean
# share in the documents of a period.

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import TopicsOverTimeDisplay

shares = table.groupby("topic")["share"]
changed = (shares.max() - shares.min()).nlargest(6).index.tolist()
TopicsOverTimeDisplay.from_estimator(
    lda, X, year, topics=changed, n_bins=12
)
plt.show()

# %%
# Compare classes of documents
# ----------------------------
# Pass names in place of times, here the parties of the presidents.
# Parties governed in different years, so this is no effect of party:
# :doc:`plot_covariates` separates the two.

party = sotu.metadata["party"]
TopicsOverTimeDisplay.from_estimator(lda, X, party, topics=changed)
plt.show()

# %%
# Count the changes
# -----------------
# A change is larger than its uncertainty if the intervals of two
# periods are apart.

ends = table.groupby("topic").agg({"low": "max", "high": "min"})
sure = ends["low"] > ends["high"]
print(f"{sure.sum()} of {len(sure)} topics changed")

# %%
# **A topic changed if the highest interval lies above the lowest one.
# Periods with few documents have wide intervals.**
