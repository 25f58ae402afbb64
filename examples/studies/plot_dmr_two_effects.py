"""
Can you separate the effects of year and venue on topics?
=========================================================

Abstracts come from ten years and two venues. `DMRTopicModel` has a coefficient of every year and every venue for each
topic, so that the two effects can be separated: a topic may grow because a venue that favours it grows, or everywhere.

The abstracts are invented, so that estimates can be compared with the planted effects.

In the user guide: :doc:`/user_guide/covariates`.
"""

# %%
# Abstracts with year and venue
# -----------------------------
# The first of six topics fades and the second grows, by a quarter of a unit a year on the scale of the linear
# predictor. Each venue prefers one of the next two. The venue "north" has more and more of the abstracts.

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.datasets import make_lda

N_DOCUMENTS, N_ITER = 1500, 800
YEARS = np.arange(2011, 2021)
planted = make_lda(1, 200, 6, topic_word_prior=0.05, random_state=0)
slope = np.array([-0.25, 0.25, 0.0, 0.0, 0.0, 0.0])
taste = {"north": np.eye(6)[2], "south": np.eye(6)[3]}


def planted_alpha(year, venue):
    """Dirichlet parameters of the topics of abstracts."""
    return np.exp(np.log(0.2) + np.outer(np.asarray(year) - 2015, slope) + np.stack([taste[each] for each in venue]))


rng = np.random.default_rng(0)
year = rng.choice(YEARS, N_DOCUMENTS)
venue = np.where(rng.random(N_DOCUMENTS) < 0.3 + 0.05 * (year - 2011), "north", "south")
p = np.stack([rng.dirichlet(alpha) for alpha in planted_alpha(year, venue)]) @ planted.components
counts = sparse.csr_array(np.stack([rng.multinomial(60, row / row.sum()) for row in p]))
metadata = {"year": year.astype(str), "venue": venue}

# %%
# Fitting
# -------
# Both columns are categorical: nothing says that the effect of the year is a line. Topics are paired with the planted
# ones by their words.

model = DMRTopicModel(6, n_iter=N_ITER, random_state=0).fit(counts, metadata=metadata)
_, order = linear_sum_assignment(-np.sqrt(planted.components) @ np.sqrt(model.components_).T)


def planted_shares(rows):
    """Expected shares of the topics."""
    alpha = planted_alpha(rows["year"].astype(int), rows["venue"])
    return alpha / alpha.sum(axis=1, keepdims=True)


# %%
# Two venues in the same year
# ---------------------------
# The difference of a topic's expected share between abstracts of the two venues in 2020, with a 90% interval:

north, south = ({"year": np.array(["2020"]), "venue": np.array([name])} for name in ("north", "south"))
difference = {name: np.asarray(column)[order] for name, column in dict(
    model.prevalence_difference(north, south).drop(columns=["name"], errors="ignore")).items()}  # fmt: skip
true = (planted_shares(north) - planted_shares(south))[0]
print("topic   planted   estimate (interval)")
for k in range(6):
    middle, low, high = (difference[column][k] for column in ("difference", "low", "high"))
    print(f"{k:5d} {true[k]:+9.3f}     {middle:+.3f} ({low:+.3f} to {high:+.3f})")
inside = (difference["low"] <= true) & (true <= difference["high"])
print(f"{inside.sum()} of 6 planted differences lie in their interval")

# %%
# One venue over the years
# ------------------------
# The expected share at one venue, with its 90% band, and as planted (dashed).

rows = {"year": YEARS.astype(str), "venue": np.full(len(YEARS), "north")}
mean, low, high = (part[:, order] for part in model.predict_prevalence(rows, interval=0.9))
true = planted_shares(rows)
figure, axes = plt.subplots(2, 3, sharex=True, sharey=True)
for k, ax in enumerate(axes.ravel()):
    ax.fill_between(YEARS, low[:, k], high[:, k], alpha=0.3, lw=0)
    ax.plot(YEARS, mean[:, k])
    ax.plot(YEARS, true[:, k], color="black", lw=1, ls="--")
    ax.set_title(["fades", "grows", "preferred by north", "preferred by south", "neither", "neither"][k])
    ax.set_xticks((2012, 2016, 2020))
axes[0, 0].set_ylim(0)
figure.supylabel("share of an abstract at the venue north")
plt.show()
inside = (low <= true) & (true <= high)
print(f"{inside.mean():.0%} of the planted shares lie in the band")

# %%
# **Yes: the model finds which topics rose and fell at one venue, and in which topics the venues differ in the same
# year, both with their uncertainty.**
