"""
What has computational linguistics turned to, and what do its venues prefer?
============================================================================

17,018 abstracts of the ACL Anthology since 2004, each with its year and the venue it appeared at. `DMRTopicModel` gives
every year and every venue a coefficient for each topic, so that the two effects can be separated: a topic that grew
because a venue that favours it grew is not a topic that grew everywhere.

Run as a script with the data available (see `sk_sgmcmc.datasets.fetch_corpus`), this page fits the abstracts in about
half a minute. In the gallery, or without the data, it fits invented ones.
"""

# %%
# Abstracts with year and venue
# -----------------------------
# Both are categorical. Venues with few abstracts share one level.

import sys

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.datasets import fetch_corpus, make_lda

WHOLE = "sphinx_gallery" not in sys.modules
N_ITER = None if WHOLE else 100


def invented(n=1500):
    """Abstracts of two venues over ten years: one topic fades, one grows, and each venue has one of its own."""
    data = make_lda(1, 200, 6, topic_word_prior=0.05, random_state=0)
    rng = np.random.default_rng(0)
    year, venue = rng.integers(2011, 2021, n), rng.choice(["acl", "lrec"], n)
    slope = np.array([-0.25, 0.25, 0.0, 0.0, 0.0, 0.0])
    taste = {"acl": np.eye(6)[2], "lrec": np.eye(6)[3]}
    alpha = np.exp(np.log(0.2) + np.outer(year - 2015, slope) + np.stack([taste[v] for v in venue]))
    p = np.stack([rng.dirichlet(a) for a in alpha]) @ data.components
    counts = np.stack([rng.multinomial(60, row / row.sum()) for row in p])
    return sparse.csr_array(counts), year, venue, data.feature_names


real = None
if WHOLE:
    try:
        real = fetch_corpus("acl_abstracts")
    except OSError as error:
        print(f"{error}\nInvented abstracts are fitted instead.\n")
if real is not None:
    since = np.asarray(real.metadata["year"]) >= 2004  # few abstracts are older
    counts, words = real.counts.tocsr()[since], real.feature_names
    year, venue = (np.asarray(real.metadata[name])[since] for name in ("year", "venue"))
    N_TOPICS = 50
else:
    counts, year, venue, words = invented()
    N_TOPICS = 6
names, sizes = np.unique(venue, return_counts=True)
venue = np.where(np.isin(venue, names[sizes >= 300]), venue, "other venues")
metadata = {"year": year.astype(str), "venue": venue.astype(str)}

# %%
# Fitting
# -------

model = DMRTopicModel(N_TOPICS, n_iter=N_ITER, random_state=0).fit(counts, metadata=metadata)
top = np.argsort(-model.components_, axis=1)[:, :5]
print(f"{counts.shape[0]} abstracts, {len(np.unique(year))} years, {len(np.unique(venue))} venues, {N_TOPICS} topics")

# %%
# Two venues in the same year
# ---------------------------
# The expected share of a topic in an abstract of one venue minus that of another, in the last year in which both met,
# with a 90 % interval:

ONE, OTHER = "acl", "lrec"
last = max(set(year[venue == ONE]) & set(year[venue == OTHER]))
pair = [{"year": np.array([str(last)]), "venue": np.array([place])} for place in (ONE, OTHER)]
difference = {name: np.asarray(column) for name, column in dict(model.prevalence_difference(*pair)).items()}
sure = np.flatnonzero((difference["low"] > 0) | (difference["high"] < 0))
print(f"topics that tell {ONE} (+) from {OTHER} (-) in {last}:")
for k in sure[np.argsort(-np.abs(difference["difference"][sure]))][:8]:
    values = [difference[column][k] for column in ("difference", "low", "high")]
    print(f"  {values[0]:+.3f} ({values[1]:+.3f} to {values[2]:+.3f})  {', '.join(words[top[k]])}")

# %%
# One venue over the years
# ------------------------
# The three topics that lost most and the three that gained most, at one venue. For a year in which it did not meet, the
# estimate comes from the other venues of that year.

years = np.unique(year)
rows = {"year": years.astype(str), "venue": np.full(len(years), ONE)}
mean, low, high = model.predict_prevalence(rows, interval=0.9)
third = max(1, len(years) // 3)
change = mean[-third:].mean(axis=0) - mean[:third].mean(axis=0)
order = np.argsort(change)
figure, axes = plt.subplots(2, 3, figsize=(11, 5.5), layout="constrained", sharex=True)
for ax, k in zip(axes.ravel(), [*order[:3], *order[::-1][:3]], strict=True):
    colour = "C3" if change[k] < 0 else "C0"
    ax.fill_between(years, low[:, k], high[:, k], color=colour, alpha=0.3, lw=0)
    ax.plot(years, mean[:, k], color=colour, lw=1.5)
    ax.set_title(", ".join(words[top[k]]), loc="left", fontsize=9)
    ax.set_ylim(0)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.spines[["top", "right"]].set_visible(False)
figure.supylabel(f"expected share of an abstract at {ONE}, with 90 % band")
plt.show()

# %%
# **Year and venue have separate effects: the same model shows which topics rose at one venue, whatever the others did,
# and which topics two venues share unequally in the same year, both with their uncertainty.**
