"""
How do you get intervals for coefficients and predictions?
==========================================================

After this page you can fit a linear and a logistic regression, read
coefficients with intervals, and predict new rows with intervals.
Nothing has to be tuned.

In the user guide: :doc:`/user_guide/linear_models`.
"""

# %%
# Fit a linear regression
# -----------------------
# The response is how far the diabetes of a patient has progressed after
# a year.

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

from sk_sgmcmc import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
)

X, y = load_diabetes(return_X_y=True, as_frame=True)
X, X_new, y, y_new = train_test_split(X, y, random_state=0)
linear = BayesianLinearRegression(random_state=0).fit(X, y)
print(f"R² of new patients: {linear.score(X_new, y_new):.2f}")

# %%
# Read the coefficients
# ---------------------
# ``p_positive`` is the probability that a coefficient is positive. The
# measurements s1 to s4 are correlated, so their intervals are wide.

columns = ["feature", "mean", "low", "high", "p_positive"]
print(linear.coef_table()[columns].round(2).to_string(index=False))

# %%
# Predict new rows
# ----------------
# The interval of an observation includes the noise. The interval of the
# mean is for the average of many patients with the same measurements.

mean, low, high = linear.predict_interval(X_new)
of_mean = linear.predict_interval(X_new, of="mean")
covered = np.mean((low < y_new) & (y_new < high))
print(f"90% intervals cover {covered:.0%} of the new patients.")

# %%
# Fit a logistic regression
# -------------------------
# ``prior_scale="auto"`` learns the scale of the prior, so units do not
# matter. The table shows coefficients for one standard deviation.

Z, z = load_breast_cancer(return_X_y=True, as_frame=True)
Z = Z.filter(like="mean ") / Z.std().filter(like="mean ")
Z.columns = Z.columns.str.removeprefix("mean ")
logistic = BayesianLogisticRegression("auto", random_state=0).fit(Z, z)
table = logistic.coef_table()
print(table[columns].round(2).to_string(index=False))

# %%
# Plot both
# ---------

import matplotlib.pyplot as plt

_, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
order, place = np.argsort(mean), np.arange(len(mean))
left.fill_between(
    place, low[order], high[order], alpha=0.2, label="observation"
)
left.fill_between(
    place,
    of_mean[1][order],
    of_mean[2][order],
    fc="C0",
    alpha=0.5,
    label="mean",
)
left.plot(place, y_new.to_numpy()[order], "k.", label="new patients")
left.set(xlabel="new patients by prediction", ylabel="progression")
left.legend(title="90% interval of", fontsize=9)
rows = table.iloc[1:].sort_values("mean")
right.hlines(rows["feature"], rows["low"], rows["high"], lw=3)
right.plot(rows["mean"], rows["feature"], "o", color="C1")
right.axvline(0.0, color="0.6", lw=1)
right.set(xlabel="log odds of a benign tumour, 90% interval")
plt.show()

# %%
is_clear = (rows["low"] > 0) | (rows["high"] < 0)
print(f"{is_clear.sum()} of {len(rows)} intervals are clear of 0.")

# %%
# **Draw conclusions only from coefficients whose intervals are clear of
# 0.** The others may still help to predict.
