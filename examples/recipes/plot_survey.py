"""
Which groups of people answered a survey?
=========================================

After this page you can divide the respondents of a survey into latent
classes, with missing answers, ordered answers and survey weights. You
can choose the number of classes, read what marks each, say who belongs
to one for certain, and plot the shares of classes over age.

In the user guide: :doc:`/user_guide/latent_classes`.
"""

# %%
# Read the answers
# ----------------
# The survey is generated: viewers of three groups. Ordered answers are
# an ordered categorical, and gaps are missing answers. Half of the
# families were asked, and a quarter of the others. The weights make up
# for that.

import numpy as np
import pandas as pd

from sk_sgmcmc import LatentClassModel
from sk_sgmcmc.model_selection import search_n_components

SCALE = ["never", "monthly", "weekly", "daily"]
QUESTIONS = {  # the answers, and how often each group gives them
    "films": (SCALE, [[1, 2, 5, 2], [1, 1, 3, 6], [6, 3, 1, 0]]),
    "series": (SCALE, [[0, 1, 4, 5], [1, 3, 4, 1], [3, 4, 1, 1]]),
    "sport": (SCALE, [[6, 2, 1, 1], [2, 4, 3, 1], [0, 1, 3, 6]]),
    "screen": (
        ["phone", "tablet", "TV"],
        [[7, 2, 1], [1, 4, 5], [1, 1, 8]],
    ),
    "home": (
        ["alone", "couple", "family"],
        [[7, 2, 1], [0, 1, 9], [3, 5, 2]],
    ),
    "shares": (["no", "yes"], [[3, 7], [1, 9], [8, 2]]),
}
TRUE_SHARES = [0.4, 0.35, 0.25]

rng = np.random.default_rng(0)
group = rng.choice(3, 3000, p=TRUE_SHARES)
people = {}
for name, (answers, odds) in QUESTIONS.items():
    p = np.array(odds) / np.sum(odds, axis=1, keepdims=True)
    is_below = rng.random((3000, 1)) > p.cumsum(axis=1)[group]
    people[name] = pd.Categorical.from_codes(
        is_below.sum(axis=1), answers, ordered=answers is SCALE
    )
people = pd.DataFrame(people)
chance = np.where(people["home"] == "family", 1 / 2, 1 / 4)
asked = rng.random(3000) < chance
survey = people[asked].mask(rng.random((asked.sum(), 6)) < 0.08)
weight, group = 1 / chance[asked], group[asked]
print(survey.head(4).to_string(index=False, na_rep=""))

# %%
# Choose the number of classes
# ----------------------------
# Take the smallest number whose ``difference`` from the best score is
# within two of its errors of 0. With a few hundred rows, compare means
# of five folds instead (:doc:`/user_guide/latent_classes`). Short fits
# of one chain are enough to compare scores if ``fit`` does not warn;
# otherwise, raise ``n_iter``.

model = LatentClassModel(weights="survey", random_state=0)
model.set_params(n_iter=600, n_chains=1)
found = search_n_components(
    model, survey, [2, 3, 4], test_size=0.25, sample_weight=weight
)
columns = ["n_components", "difference", "difference_error"]
print(found[columns].round(3).to_string(index=False))

# %%
# Fit and read the classes
# ------------------------
# Missing answers are left out of the likelihood. With
# ``weights="survey"``, shares are shares of all people.

model.set_params(n_components=3, n_iter=None, n_chains=2)
model.fit(survey, sample_weight=weight)
profile = model.profile_table()
print(profile.groupby("class")["weight"].first().round(2).to_string())
shown = ["class", "level", "mean", "low", "high"]
sport = profile.loc[profile["feature"] == "sport", shown]
print(sport.round(2).to_string(index=False))

# %%
# Find out who belongs to a class for certain
# -------------------------------------------

proba = model.predict_proba(survey)
is_certain = proba.max(axis=1) > 0.9
print(f"{is_certain.mean():.0%} belong to a class with p > 0.9")
print(pd.crosstab(group, proba.argmax(axis=1)).to_string())

# %%
# Plot the profiles
# -----------------

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import ProfileDisplay

ProfileDisplay.from_estimator(model)
plt.show()

# %%
# Read a class by the answers whose intervals lie far from the grey
# marks: these answers tell it from the others.

# %%
# Plot the shares of classes over age
# -----------------------------------
# Pass covariates as ``metadata``. Classes then follow a regression on
# them. Ages and sexes are generated, and differ between the groups.
# Lines are the expected shares at each age, for women and for men.

from sk_sgmcmc.inspection import PrevalenceDisplay

age = rng.normal(np.array([30, 45, 60])[group], 12).clip(18, 85)
is_woman = rng.random(group.size) < np.array([0.5, 0.5, 0.3])[group]
sex = np.where(is_woman, "women", "men")
about = pd.DataFrame({"age": age, "sex": sex}, index=survey.index)
model.set_params(n_iter=1000)
model.fit(survey, sample_weight=weight, metadata=about)
PrevalenceDisplay.from_estimator(model, "age", by="sex")
plt.show()

# %%
# **A class is described by the answers far from the grey marks, and by
# the people who belong to it: here, its share depends on age and sex.**
# If you do not want to choose the number of classes, use
# `DPCategoricalMixture` with ``likelihood="mixed"``, which takes the
# same table.
