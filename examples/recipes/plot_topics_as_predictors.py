"""
How do you relate topics to an outcome of documents?
====================================================

After this page you can predict a label or a number from the topics of
documents, and read which topics go with it. `TopicClassifier` and
`TopicRegressor` draw topics and coefficients together, so intervals
include the uncertainty of the topics.

In the user guide: :doc:`/user_guide/covariates`.
"""

# %%
# Load documents and outcomes
# ---------------------------
# The documents are paragraphs of State of the Union addresses, and the
# outcome is the party of the president. The year is a covariate, since
# topics change over time, and so do the parties in office.

import numpy as np
import pandas as pd

from sk_sgmcmc.datasets import load_sotu

data = load_sotu()
year, party = (
    np.asarray(data.metadata[name]) for name in ("year", "party")
)
is_used = np.isin(party, ["Democratic", "Republican"]) & (year >= 1930)
X, party = data.counts.tocsr()[is_used], party[is_used]
decades = pd.DataFrame({"decades since 1980": year[is_used] / 10 - 198})
test = np.arange(party.size) % 5 == 0
print(f"{(~test).sum()} paragraphs to fit, {test.sum()} to test")

# %%
# Fit
# ---

from sk_sgmcmc import TopicClassifier

model = TopicClassifier(10, random_state=0)
model.fit(
    X[~test],
    party[~test],
    decades[~test],
    feature_names=data.feature_names,
)
accuracy = model.score(X[test], party[test], covariates=decades[test])
first, second = model.classes_
is_second = np.mean(party[test] == second)
print(f"Accuracy in held-out paragraphs: {accuracy:.0%}")
print(f"Always the larger class: {max(is_second, 1 - is_second):.0%}")

# %%
# Read the coefficients
# ---------------------
# A coefficient is the change of the log odds of a Republican if a
# paragraph is about this topic alone instead of being an average one.

table = model.coef_table()
columns = ["name", "mean", "low", "high"]
print(table[columns].round(2).to_string(index=False))

# %%
# Compare two topics
# ------------------
# ``contrast`` gives the difference of two coefficients, with its
# interval.

topics = table.iloc[:10].sort_values("mean")
most, least = topics["name"].iloc[[-1, 0]]
contrast = model.contrast(most, least)
print(contrast.round(2).to_string(index=False))

# %%
# Plot the coefficients
# ---------------------

import matplotlib.pyplot as plt

_, ax = plt.subplots()
ax.hlines(topics["name"], topics["low"], topics["high"], lw=3)
ax.plot(topics["mean"], topics["name"], "o", color="C1")
ax.axvline(0.0, color="0.6", lw=1)
ax.set(xlabel=f"log odds of {second}, 90% interval")
plt.show()

# %%
is_clear = (topics["low"] > 0) | (topics["high"] < 0)
print(f"{is_clear.sum()} of 10 topics differ from the average.")

# %%
# **Topics whose intervals are clear of 0 go with one of the parties.**
# Paragraphs of one address belong together, which the model does not
# know, so the intervals say too little about other presidents.
