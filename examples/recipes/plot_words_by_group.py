"""
How do two parties speak of the same topic?
===========================================

Two parties may speak of the same topic in other words. `StructuralTopicModel` gives each topic words of its own in each
group of documents, here with ``content="party"``: for every word an interval says whether the parties differ in it.
Most words are the same in both, and the model learns how many.

The addresses are the sample that comes with the package, every third paragraph (`sk_sgmcmc.datasets.load_sotu`), from
1930 on.

The guide has a page on :doc:`covariates </user_guide/covariates>`.
"""

# %%
# The addresses
# -------------

import numpy as np

from sk_sgmcmc import DMRTopicModel, StructuralTopicModel
from sk_sgmcmc.datasets import load_sotu
from sk_sgmcmc.inspection import WordContrastDisplay

data, N_TOPICS, N_ITER = load_sotu(), 10, 1000
year, party = (
    np.asarray(data.metadata[name]) for name in ("year", "party")
)
some = np.flatnonzero(
    np.isin(party, ["Democratic", "Republican"]) & (year >= 1930)
)
held_out, fitted = some[::10], np.setdiff1d(some, some[::10])
counts, words = data.counts.tocsr(), data.feature_names


def metadata(rows):
    """The party and year of some paragraphs."""
    return {"party": party[rows], "year": year[rows]}


# %%
# Fitting
# -------
# Parties also differ in how much they say about a topic, so prevalence depends on the party and the year.

formula = "~ party + bs(year, df=4)"
model = StructuralTopicModel(
    N_TOPICS,
    formula=formula,
    content="party",
    n_iter=N_ITER,
    random_state=0,
)
model.fit(
    counts[fitted], metadata=metadata(fitted), feature_names=words
)

# %%
# Does it help to know the party? The perplexity of one paragraph in ten, which was not fitted, with and without words
# by party:

shared = DMRTopicModel(
    N_TOPICS, formula=formula, n_iter=N_ITER, random_state=0
)
shared.fit(
    counts[fitted], metadata=metadata(fitted), feature_names=words
)
for name, each in (
    ("words by party", model),
    ("the same words", shared),
):
    print(
        f"{name}: {each.perplexity(counts[held_out], metadata=metadata(held_out)):.0f}"
    )

# %%
# Words that set the parties apart
# --------------------------------
# ``log_ratio`` is the logarithm of the probability of a word among Democrats divided by that among Republicans.

for k in (3, 5):
    table = model.word_contrast(
        "Democratic", "Republican", topics=k, n=3
    )
    print(model.topic_names_[k])
    for word, ratio, low, high in zip(
        *(table[name] for name in ("word", "log_ratio", "low", "high")),
        strict=True,
    ):
        print(f"  {word:<12} {ratio:+.1f} ({low:+.1f} to {high:+.1f})")

# %%
# How many words of each topic differ for certain, of those with a probability above 0.002?

often = model.components_ > 0.002
apart, place = (
    np.zeros(N_TOPICS, dtype=int),
    {word: i for i, word in enumerate(words)},
)
table = model.word_contrast("Democratic", "Republican", n=len(words))
for k, word, low, high in zip(
    *(table[name] for name in ("topic", "word", "low", "high")),
    strict=True,
):
    apart[k] += often[k, place[word]] and (low > 0 or high < 0)
for k, name in enumerate(model.topic_names_):
    print(f"{apart[k]:>3} of {often[k].sum():>3} words  {name}")

# %%
# A picture of six topics.

import matplotlib.pyplot as plt

WordContrastDisplay.from_estimator(
    model, "Democratic", "Republican", topics=range(6), n_columns=3
)
plt.show()

# %%
# **Mostly in the same words: in every topic, most intervals include 0. The exceptions are those that a reader expects,
# such as the wars that each party's presidents led.**
