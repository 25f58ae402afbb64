"""
How do topics depend on party and year?
=======================================

After this page you can let the prevalence of topics depend on columns
of a table, compare two groups with intervals, and plot prevalence over
time for each group. The formula ``~ party * bs(year, df=6)`` is a
smooth function of the year for each party.

In the user guide: :doc:`/user_guide/covariates`.
"""

# %%
# Load the documents
# ------------------
# Every third paragraph of the State of the Union addresses, by
# presidents of the two parties of today:

import numpy as np

from sk_sgmcmc.datasets import load_sotu

sotu = load_sotu()
parties = ["Democratic", "Republican"]
some = sotu.metadata["party"].isin(parties).to_numpy()
counts, words = sotu.counts[some], sotu.feature_names
metadata = sotu.metadata.loc[some, ["year", "party"]]
print(metadata["party"].value_counts().to_string())

# %%
# Fit
# ---
# Pass the table with the counts. Its rows are the rows of X.

from sk_sgmcmc import DMRTopicModel

model = DMRTopicModel(
    20,
    formula="~ party * bs(year, df=6)",
    n_iter=200,
    random_state=0,
)
model = model.fit(counts, metadata=metadata, feature_names=words)

# %%
# Read the effects
# ----------------
# Shares in Republican minus Democratic addresses in the year 2010. The
# paragraphs of one year belong together, so ``groups`` gives each year
# the same weight.

table = model.effects(
    "party", given={"year": 2010.0}, groups=metadata["year"]
)
columns = ["name", "difference", "low", "high"]
size = table["difference"].abs().nlargest(5)
largest = table.loc[size.index, columns]
print(largest.to_string(index=False, float_format="%+.3f"))

# %%
# Plot the prevalence
# -------------------
# The six topics that vary most. ``of="prior"`` shows the curves that
# the model has fitted. A line covers the years of a party's presidents.

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import PrevalenceDisplay

PrevalenceDisplay.from_estimator(model, "year", by="party", of="prior")
plt.show()

# %%
apart = np.sign(table["low"]) == np.sign(table["high"])
print(f"parties differ in {apart.sum()} of {len(table)} topics in 2010")

# %%
# **Parties differ in a topic if the interval of the difference excludes
# zero. The figure shows since when.**
