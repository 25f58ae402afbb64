"""
Which topics go with an outcome of documents?
=============================================

A regression of an outcome on topic shares, as if shares were data, ignores that they are estimates. Where documents are
short, its intervals are too narrow and its coefficients too small. `TopicRegressor` and `TopicClassifier` draw topics,
shares and coefficients together, so that intervals include all of this uncertainty.

The documents are paragraphs of the addresses that come with the package (`sk_sgmcmc.datasets.load_sotu`), from 1930 on,
and the outcome is the party of the president. Corpora that are made up then show which intervals cover the truth.

The guide has a page on :doc:`covariates </user_guide/covariates>`.
"""

# %%
# Which topics are Republican?
# ----------------------------
# The year is a covariate: topics change over time, and so do the parties in office.

import matplotlib.pyplot as plt
import numpy as np

from sk_sgmcmc import BayesianLDA, TopicClassifier, TopicRegressor
from sk_sgmcmc.datasets import load_sotu, make_lda

data = load_sotu()
year, party = (
    np.asarray(data.metadata[name]) for name in ("year", "party")
)
some = np.flatnonzero(
    np.isin(party, ["Democratic", "Republican"]) & (year >= 1930)
)
held_out, fitted = some[::5], np.setdiff1d(some, some[::5])
counts, years = data.counts.tocsr(), year[:, None] - 1980.0

model = TopicClassifier(10, n_iter=1000, random_state=0)
model.fit(
    counts[fitted],
    party[fitted],
    years[fitted],
    feature_names=data.feature_names,
)
print(
    f"{model.classes_[1]}: {np.mean(party[held_out] == model.classes_[1]):.0%} of held-out paragraphs"
)
print(
    f"accuracy: {model.score(counts[held_out], party[held_out], covariates=years[held_out]):.0%}"
)

# %%
# Each coefficient is the change of the log odds of the second class, here Republican, if a paragraph is about this
# topic alone instead of being an average one. There is no intercept, since shares sum to 1. The model does not know
# that paragraphs of one address belong together, so these intervals say too little about other presidents.

table = model.coef_table()
names, mean, low, high = (
    np.asarray(table[name])[:10]
    for name in ("name", "mean", "low", "high")
)
order, place = np.argsort(mean.astype(float)), np.arange(10)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.hlines(place, low[order], high[order], lw=3)
ax.plot(mean[order], place, "o")
ax.axvline(0.0, color="grey", lw=1)
ax.set(
    yticks=place,
    yticklabels=names[order],
    xlabel="log odds of a Republican, relative to an average paragraph",
)
plt.show()

# %%
apart = int(
    np.sum(
        (np.asarray(table["low"])[:10] > 0)
        | (np.asarray(table["high"])[:10] < 0)
    )
)
first, last = str(names[order[-1]]), str(names[order[0]])
row = model.contrast(first, last)
print(
    f"{apart} of 10 topics are apart from the average. {first} minus {last}:"
)
print(
    f"{row['mean'][0]:.1f} [{row['low'][0]:.1f}, {row['high'][0]:.1f}]"
)

# %%
# Which intervals cover the truth?
# --------------------------------
# Ten corpora of 1,000 documents with eight words each have two topics, and an outcome that rises by 1 from one topic to
# the other. Three ways to estimate this difference, with 90% intervals:

found = {
    "TopicRegressor": [],
    "least squares on transform": [],
    "least squares on draws": [],
}
for seed in range(10):
    corpus = make_lda(
        1000,
        40,
        2,
        document_length=8,
        doc_topic_prior=0.4,
        random_state=seed,
    )
    y = corpus.doc_topics[:, 1] + 0.2 * np.random.default_rng(
        seed
    ).normal(size=1000)
    joint = TopicRegressor(2, n_iter=600, random_state=seed).fit(
        corpus.counts, y
    )
    topics = BayesianLDA(2, random_state=seed).fit(corpus.counts)
    for name, components in (
        ("joint", joint.components_),
        ("topics", topics.components_),
    ):
        is_swapped = np.sum(
            (components - corpus.components) ** 2
        ) > np.sum((components[::-1] - corpus.components) ** 2)
        if name == "joint":
            row = joint.contrast(*((0, 1) if is_swapped else (1, 0)))
            found["TopicRegressor"].append(
                [row["mean"][0], row["low"][0], row["high"][0]]
            )
            continue
        shares = {
            "least squares on transform": topics.transform(
                corpus.counts
            )
        }
        shares["least squares on draws"] = topics.transform_draws(
            corpus.counts, 1
        )[0]
        for way, theta in shares.items():
            x = (
                theta[:, 0 if is_swapped else 1]
                - theta.mean(axis=0)[0 if is_swapped else 1]
            )
            slope = x @ y / (x @ x)
            error = np.sqrt(
                ((x * (y - y.mean() - slope * x)) ** 2).sum()
            ) / (x @ x)
            found[way].append(
                [slope, slope - 1.645 * error, slope + 1.645 * error]
            )
for name, each in found.items():
    mean, low, high = np.array(each).T
    print(
        f"{name:<28}mean {mean.mean():.2f}, {np.sum((low < 1) & (high > 1))} of 10 intervals cover 1"
    )

# %%
# **Intervals of the joint model contain the truth about as often as they say.** Draws of the shares are no substitute:
# the noise of a draw shrinks the coefficient, and averaging over more draws does not help. Least squares on posterior
# means (``BayesianLDA.regress``) is about right only if the fit has converged, the documents' prior is right, and the
# topics are known well. ``python examples/benchmarks/outcomes.py`` compares them on more kinds of corpora.
