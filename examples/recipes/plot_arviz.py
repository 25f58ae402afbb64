"""
How do you read the draws of a model in ArviZ?
==============================================

After this page you can pass a fitted estimator to ArviZ. There you
can summarise its draws, compare two models by leave-one-out
cross-validation, and plot intervals. Install ArviZ with
``pip install ".[inspection]"``.

In the user guide: :doc:`/user_guide/converged`.
"""

# %%
# Fit two models
# --------------
# The rows are generated: visits to a doctor in a year. They vary more
# than a Poisson distribution allows. Fit a model with and one without
# this extra variation.

import numpy as np
import pandas as pd

from sk_sgmcmc import (
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)

rng = np.random.default_rng(0)
patients = pd.DataFrame({"age in decades": rng.uniform(2, 8, 400)})
patients["is a smoker"] = rng.integers(0, 2, 400)
patients["km to the doctor"] = rng.exponential(5, 400)
rate = np.exp(patients.to_numpy() @ [0.2, 0.3, -0.05])
visits = rng.poisson(rate * rng.gamma(2.0, 0.5, 400))
options = {"n_chains": 4, "random_state": 0}
models = {
    "Poisson": BayesianPoissonRegressor(**options),
    "negative binomial": BayesianNegativeBinomialRegressor(**options),
}
for model in models.values():
    model.fit(patients, visits)

# %%
# Convert the draws
# -----------------
# Pass the rows to `to_arviz <sk_sgmcmc.inspection.to_arviz>` as well,
# and the result includes the log likelihood of each row. ArviZ may
# announce changes of its own on import; they do not matter here.

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    import arviz as az

from sk_sgmcmc.inspection import to_arviz

data = {k: to_arviz(m, patients, visits) for k, m in models.items()}
print(dict(data["Poisson"].posterior.sizes))

# %%
# Summarise
# ---------
# Columns of the DataFrame name the coefficients. ``r_hat`` is close to
# 1 if the chains agree.

summary = az.summary(data["negative binomial"])
interval = summary.columns[2:4]
shown = ["mean", *interval, "ess_bulk", "r_hat"]
print(summary[shown].to_string())

# %%
# Compare the models
# ------------------
# The model in the first row predicts left-out rows best.

table = az.compare(data)
print(table.iloc[:, :6].round(2).to_string())

# %%
# Plot the intervals
# ------------------
# Each line is the interval of one chain, and its dot an average.

import matplotlib.pyplot as plt

chosen = data["negative binomial"]
az.plot_forest(chosen, var_names=["coef"], combined=False)
plt.gcf().set_size_inches(7, 4)
plt.show()

# %%
best, other = table.index
gap = table["elpd_diff"].abs().iloc[1]
error = table["dse"].iloc[1]
print(f"{best} is ahead of {other} by {gap:.0f} ± {error:.0f}.")

# %%
# **The model in the first row predicts better, and clearly so if the
# difference is several times its error.**
