"""
Did the two parties come to speak of different things?
======================================================

In the State of the Union addresses, the prevalence of a topic depends on the year and on the president's party, and the
year may matter differently to each. The formula ``~ party * bs(year, df=6)`` says just that: a smooth function of the
year for each party. `PrevalenceDisplay <sk_sgmcmc.inspection.PrevalenceDisplay>` draws it, and ``effects`` puts numbers
to it.

Run as a script with the data available (see `sk_sgmcmc.datasets.fetch_sotu_paragraphs`), this page fits the paragraphs
of Democrats and Republicans in about a minute. In the gallery, or without the data, it fits a small synthetic
chronicle.
"""

# %%
# The addresses
# -------------

import sys

import numpy as np

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.datasets import fetch_sotu_paragraphs, make_lda
from sk_sgmcmc.inspection import PrevalenceDisplay

WHOLE = "sphinx_gallery" not in sys.modules
N_ITER = None if WHOLE else 200


def synthetic_chronicle(n=1500):
    """Paragraphs of two parties, which part ways in the last half century."""
    data = make_lda(1, 200, 6, topic_word_prior=0.05, random_state=0)
    rng = np.random.default_rng(0)
    party = rng.integers(0, 2, n)
    year = np.round(np.where(party == 1, 1860, 1830) + rng.beta(2.0, 1.0, n) * np.where(party == 1, 160, 190))
    now = (year - 1925.0) / 95.0
    apart = np.maximum(year - 1970.0, 0.0) / 50.0 * np.where(party == 1, 1.0, -1.0)
    eta = np.column_stack([now, -now, 1.0 - 3.0 * now**2, 1.5 * apart, -1.5 * apart, 0.0 * now])
    theta = np.stack([rng.dirichlet(np.exp(each - 1.0)) for each in eta])
    counts = np.stack([rng.multinomial(30, p / p.sum()) for p in theta @ data.components])
    return counts, {"year": year, "party": np.array(["Democratic", "Republican"])[party]}, data.feature_names


real = None
if WHOLE:
    try:
        real = fetch_sotu_paragraphs()
    except OSError as error:
        print(f"{error}\nA synthetic chronicle is fitted instead.\n")
if real is not None:
    some = np.isin(np.asarray(real.metadata["party"]), ["Democratic", "Republican"])
    counts, words = real.counts.tocsr()[some], real.feature_names
    metadata = {name: np.asarray(real.metadata[name])[some] for name in ("year", "party")}
else:
    counts, metadata, words = synthetic_chronicle()

# %%
# Fitting
# -------

model = DMRTopicModel(20 if real is not None else 6, formula="~ party * bs(year, df=6)", n_iter=N_ITER, random_state=0)
model.fit(counts, metadata=metadata, feature_names=words)

# %%
# What sets the parties apart
# ---------------------------
# The same paragraphs in the year 2010, had all been spoken by Republicans, and had all been spoken by Democrats:

table = model.effects("party", given={"year": 2010.0})
difference = np.asarray(table["difference"])
for k in np.argsort(-np.abs(difference))[:4]:
    low, high = (np.asarray(table[end])[k] for end in ("low", "high"))
    print(f"{difference[k]:+.3f} ({low:+.3f} to {high:+.3f})  {model.topic_names_[k]}")

# %%
# Each party's line covers the years of its presidents.

import matplotlib.pyplot as plt

PrevalenceDisplay.from_estimator(model, "year", by="party")
plt.show()

# %%
# **They did: topics on which both parties agreed for a century part ways within the last decades, and the bands remain
# narrow to the ends of the lines, where there are few paragraphs.**
