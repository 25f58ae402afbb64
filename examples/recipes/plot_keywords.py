"""
How do you find topics by their keywords?
=========================================

After this page you can name topics before you fit, anchor them with
keywords, and check whether they are about what their names say. Other
topics stay free, as in keyATM. The documents are paragraphs of the
State of the Union addresses since 1930.

In the user guide: :doc:`/user_guide/keywords`.
"""

# %%
# Choose keywords
# ---------------
# Choose words that are frequent and belong to one topic. The table
# shows their shares of all tokens, in percent.

import numpy as np
import pandas as pd

from sk_sgmcmc.datasets import load_sotu

sotu = load_sotu()
some = sotu.metadata["party"].isin(["Democratic", "Republican"])
some = (some & (sotu.metadata["year"] >= 1930)).to_numpy()
counts, words = sotu.counts[some], sotu.feature_names
metadata = sotu.metadata.loc[some, ["party", "year"]]

keywords = {
    "Health": ["health", "care", "medical", "insurance"],
    "Budget": ["budget", "deficit", "spending", "taxes"],
    "Schools": ["education", "schools", "children", "teachers"],
    "Energy": ["energy", "oil", "gas", "fuel"],
}
share = pd.Series(np.ravel(counts.sum(axis=0)), words)
share = share / share.sum()
for name, own in keywords.items():
    print(f"{name}:", (100 * share[own]).round(2).to_dict())

# %%
# Fit
# ---
# Four of ten topics have keywords. Prevalence depends on the party and
# the year.

from sk_sgmcmc import StructuralTopicModel

model = StructuralTopicModel(
    10,
    formula="~ party + bs(year, df=4)",
    keywords=keywords,
    n_iter=800,
    random_state=0,
)
model.fit(counts, metadata=metadata, feature_names=words)
print(model.top_words(7, format="wide").iloc[:, :4].to_string())

# %%
# Read their course
# -----------------
# Mean shares of the named topics in three years, with 90% intervals.
# They come from a regression, so an end can be just below 0.

table = model.effects("year", at=[1940, 1975, 2005], kind="prevalence")
named = table[table["topic"] < len(keywords)].astype({"value": int})
columns = ["name", "value", "prevalence", "low", "high"]
print(named[columns].to_string(index=False, float_format="%.3f"))

# %%
# Check the keywords
# ------------------
# The point is the share of a topic's tokens that come from its
# keywords. Bars show the share of the keywords in all documents.
# ``fit`` warns if a topic hardly uses its keywords, or if they are more
# probable in another topic.

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import KeywordDisplay

KeywordDisplay.from_estimator(model)
plt.show()

# %%
rates = model.keyword_table()
rates["times"] = rates["rate"] / rates["in_corpus"]
print(rates.to_string(index=False, float_format="%.3f"))

# %%
# **A topic is about its name if it uses its keywords many times as
# often as all documents do.** If not, choose more frequent keywords, or
# ask for fewer topics.
