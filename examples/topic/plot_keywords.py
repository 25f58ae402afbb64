"""
Topics with keywords
====================

You may know which topics you look for before you fit. With ``keywords=``, `StructuralTopicModel` gives the first topics
a name and words of their own, as keyATM does. Other topics stay free. How much a topic uses its keywords is learnt, so
that you see whether it is about what its name says.

The addresses are the sample that comes with the package, every third paragraph (`sk_sgmcmc.datasets.load_sotu`), from
1930 on.
"""

# %%
# Choosing keywords
# -----------------
# Keywords should be frequent, and belong to one topic. Here is the share of each in all words, in percent.

import numpy as np

from sk_sgmcmc import StructuralTopicModel
from sk_sgmcmc.datasets import load_sotu
from sk_sgmcmc.inspection import KeywordDisplay, PrevalenceDisplay

data = load_sotu()
year, party = (np.asarray(data.metadata[name]) for name in ("year", "party"))
some = np.flatnonzero(np.isin(party, ["Democratic", "Republican"]) & (year >= 1930))
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
    print(f"{name:<8}", ", ".join(f"{word} {share[list(words).index(word)]:.2f}" for word in own))

# %%
# Fitting
# -------
# Prevalence depends on the party and the year, as in `DMRTopicModel`. Of ten topics, four have keywords.

model = StructuralTopicModel(10, formula="~ party + bs(year, df=4)", keywords=keywords, n_iter=800, random_state=0)
model.fit(counts, metadata=metadata, feature_names=words)
print(model.top_words(7, format="wide").iloc[:, :4].to_string())

# %%
# Do topics use their keywords?
# -----------------------------
# A token of a topic comes from its keywords with the rate on the right. Bars show the share of the keywords in all
# documents. ``fit`` warns if a rate is below 0.01, or if keywords are more probable in another topic.

print(model.keyword_table().to_string(index=False, float_format="%.3f"))
KeywordDisplay.from_estimator(model)

# %%
# Who speaks of them, and when?
# -----------------------------
# Shares of the topics in the addresses of each year, with 90% intervals, by party.

PrevalenceDisplay.from_estimator(model, "year", by="party", topics=range(4))

# %%
# The same in R
# -------------
# keyATM needs a list of tokens, a list of keywords, a data frame of covariates, and a call each to check the keywords,
# fit, list words, and plot rates. Its intervals of rates and of prevalence are given the topics of one chain.
#
# .. list-table::
#    :header-rows: 1
#    :widths: 40 60
#
#    * - keyATM
#      - here
#    * - ``keyATM_read``
#      - a matrix of counts, from any ``CountVectorizer``
#    * - ``visualize_keywords``
#      - ``keyword_table()``, column ``in_corpus``
#    * - ``keyATM(model="base")``
#      - ``StructuralTopicModel(formula="~ 1", keywords=...)``
#    * - ``keyATM(model="covariates")``
#      - ``StructuralTopicModel(formula="~ party", keywords=...)``
#    * - ``keyATM(model="dynamic")``
#      - ``formula="~ bs(year, df=4)"``: a smooth curve, not regimes
#    * - ``weightedLDA``
#      - `BayesianLDA`; words are not weighted
#    * - ``top_words``, ``top_docs``
#      - ``top_words()``, ``representative_docs(X, texts)``
#    * - ``plot_pi``
#      - `KeywordDisplay <sk_sgmcmc.inspection.KeywordDisplay>`
#    * - ``by_strata_DocTopic``, ``plot_timetrend``
#      - ``effects("party")``, `PrevalenceDisplay <sk_sgmcmc.inspection.PrevalenceDisplay>`
#    * - ``plot_modelfit``, ``plot_alpha``
#      - `TraceDisplay <sk_sgmcmc.inspection.TraceDisplay>`, ``diagnostics_``
