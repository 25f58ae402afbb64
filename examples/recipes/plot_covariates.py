"""
Did the two parties come to speak of different things?
======================================================

In the State of the Union addresses, the prevalence of a topic depends on the year and on the president's party, and the
year may matter differently to each. The formula ``~ party * bs(year, df=6)`` says just that: a smooth function of the
year for each party. `PrevalenceDisplay <sk_sgmcmc.inspection.PrevalenceDisplay>` draws it, and ``effects`` puts numbers
to it.

The addresses are the sample that comes with the package, every third paragraph (`sk_sgmcmc.datasets.load_sotu`).

The guide has a page on :doc:`covariates </user_guide/covariates>`.
"""

# %%
# The addresses
# -------------

import numpy as np

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.datasets import load_sotu
from sk_sgmcmc.inspection import PrevalenceDisplay

data, N_TOPICS, N_ITER = load_sotu(), 20, 200
some = np.isin(
    np.asarray(data.metadata["party"]), ["Democratic", "Republican"]
)
counts, words = data.counts.tocsr()[some], data.feature_names
metadata = {
    name: np.asarray(data.metadata[name])[some]
    for name in ("year", "party")
}

# %%
# Fitting
# -------

model = DMRTopicModel(
    N_TOPICS,
    formula="~ party * bs(year, df=6)",
    n_iter=N_ITER,
    random_state=0,
)
model.fit(counts, metadata=metadata, feature_names=words)

# %%
# What sets the parties apart
# ---------------------------
# Republicans compared with Democrats in the year 2010. Addresses were given, not single paragraphs, so the paragraphs
# of a year have one weight together:

table = model.effects(
    "party", given={"year": 2010.0}, groups=metadata["year"]
)
difference = np.asarray(table["difference"])
for k in np.argsort(-np.abs(difference))[:4]:
    low, high = (np.asarray(table[end])[k] for end in ("low", "high"))
    print(
        f"{difference[k]:+.3f} ({low:+.3f} to {high:+.3f})  {model.topic_names_[k]}"
    )

# %%
# The curves that the model has fitted, its prior of paragraphs. Each party's line covers the years of its presidents.

import matplotlib.pyplot as plt

PrevalenceDisplay.from_estimator(model, "year", by="party", of="prior")
plt.show()

# %%
# **They did: topics on which both parties agreed for a century part ways within the last decades, and the bands remain
# narrow to the ends of the lines, where there are few paragraphs.**
