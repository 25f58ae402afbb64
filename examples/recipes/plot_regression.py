"""
How far will the disease have progressed, and how sure is that?
===============================================================

A linear regression on the diabetes data of scikit-learn: its coefficients under a normal and a Laplace prior, whose
scales are learnt, and intervals for new patients that hold what they say. The defaults draw from the exact posterior.

In the user guide: :doc:`/user_guide/linear_models`.
"""

# %%
# Fit
# ---

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from sk_sgmcmc import BayesianLinearRegression

data = load_diabetes()
X, X_new, y, y_new = train_test_split(
    data.data, data.target, random_state=0
)
models = {
    prior: BayesianLinearRegression(
        prior=prior, n_chains=2, random_state=0
    ).fit(X, y)
    for prior in ("normal", "laplace")
}
for prior, model in models.items():
    print(f"{prior}: R² of new patients {model.score(X_new, y_new):.3f}, noise {model.noise_scale_:.1f}, "
          f"scale of the prior {model.prior_scale_:.0f}")  # fmt: skip

# %%
# Intervals of new patients
# -------------------------
#
# The interval of an observation contains 90% of the new patients. The interval of the mean is where the average of many
# patients with the same measurements would lie.

model = models["normal"]
mean, low, high = model.predict_interval(X_new, interval=0.9)
_, low_mean, high_mean = model.predict_interval(
    X_new, interval=0.9, of="mean"
)
print(
    f"{np.mean((low < y_new) & (y_new < high)):.1%} of the new patients lie in their 90% intervals"
)

order = np.argsort(mean)
at = np.arange(len(order))
plt.figure(figsize=(7, 4))
plt.fill_between(
    at,
    low[order],
    high[order],
    color="C0",
    alpha=0.2,
    label="90% of observations",
)
plt.fill_between(
    at,
    low_mean[order],
    high_mean[order],
    color="C0",
    alpha=0.5,
    label="90% interval of the mean",
)
plt.plot(at, y_new[order], ".", color="k", label="new patients")
plt.xlabel("new patients by predicted progression")
plt.ylabel("progression after a year")
plt.legend()

# %%
# Coefficients
# ------------
#
# Blood measurements s1 to s4 are correlated. The Laplace prior pulls what the data leave open closer to 0.

plt.figure(figsize=(7, 4))
for shift, (prior, model) in zip(
    (-0.15, 0.15), models.items(), strict=True
):
    draws = model.samples_["coef"].reshape(-1, X.shape[1])
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    at = np.arange(X.shape[1]) + shift
    plt.vlines(at, low, high, color="C0" if prior == "normal" else "C1")
    plt.plot(
        at,
        model.coef_,
        "o",
        color="C0" if prior == "normal" else "C1",
        label=prior,
    )
plt.axhline(0.0, color="k", lw=0.5)
plt.xticks(np.arange(X.shape[1]), data.feature_names)
plt.ylabel("coefficient, 90% interval")
plt.legend()
plt.show()

# %%
# **The disease of new patients can be told to within about 90 units either way, nine times in ten; which of the
# correlated blood measurements matter, these 331 patients do not say.**
