"""
Are topics about what their keywords say?
=========================================

You may know which topics you look for before you fit. With ``keywords=``, `StructuralTopicModel` gives the first topics
a name and words of their own, as keyATM does. Other topics stay free. How much a topic uses its keywords is learnt, so
that you see whether it is about what its name says.

The addresses are the sample that comes with the package, every third paragraph (`sk_sgmcmc.datasets.load_sotu`), from
1930 on.

The guide has a page on :doc:`keywords </user_guide/keywords>`.
"""

# %%
# Choosing keywords
# -----------------
# Keywords should be frequent, and belong to one topic. Here is the share of each in all words, in percent.

import numpy as np

from sk_sgmcmc import StructuralTopicModel
from sk_sgmcmc.datasets import load_sotu
from sk_sgmcmc.inspection import KeywordDisplay

data = load_sotu()
year, party = (
    np.asarray(data.metadata[name]) for name in ("year", "party")
)
some = np.flatnonzero(
    np.isin(party, ["Democratic", "Republican"]) & (year >= 1930)
)
counts, words = data.counts.tocsr()[some], data.feature_names
metadata = {"party": party[some], "year": year[some]}

keywords = {
    "Health": ["health", "care", "medical", "insurance"],
    "Budget": ["budget", "deficit", "spending", "taxes"],
    "Schools": ["education", "schools", "children", "teachers"],
    "Energy": ["energy", "oil", "gas", "fuel"],
}
share = 100 * np.asarray(counts.sum(axis=0)).ravel() / counts.sum()
for name, own in keywords.items():
    print(
        f"{name:<8}",
        ", ".join(
            f"{word} {share[list(words).index(word)]:.2f}"
            for word in own
        ),
    )

# %%
# Fitting
# -------
# Prevalence depends on the party and the year, as in `DMRTopicModel`. Of ten topics, four have keywords.

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
# Who speaks of them, and when?
# -----------------------------
# Mean shares of the topics with keywords in the addresses of three years, with 90% intervals.

table = model.effects("year", at=[1940, 1975, 2005], kind="prevalence")
shown = table[table["topic"] < len(keywords)].astype({"value": int})
print(
    shown[["name", "value", "prevalence", "low", "high"]].to_string(
        index=False, float_format="%.3f"
    )
)

# %%
# Do topics use their keywords?
# -----------------------------
# A token of a topic comes from its keywords with the rate of the point. Bars show the share of the keywords in all
# documents. ``fit`` warns if a rate is below 0.01, or if keywords are more probable in another topic. It does so here
# with the keywords "farm", "farmers", "agricultural" and "agriculture", which are rare after 1930.

import matplotlib.pyplot as plt

print(model.keyword_table().to_string(index=False, float_format="%.3f"))
KeywordDisplay.from_estimator(model)
plt.show()

# %%
# **They do: each of the four topics draws its keywords more than ten times as often as all documents do, and its other
# words belong to them.**
