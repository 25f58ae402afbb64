"""
Which coefficients of a logistic regression can be distinguished from zero?
===========================================================================

A fitted logistic regression gives one number for each feature. How sure is it of them, and of its predictions?
`BayesianLogisticRegression` gives draws; nothing is tuned.

The tables are the breast cancer set that comes with scikit-learn, in units of each column's standard deviation, and ten
of its columns.

In the user guide: :doc:`/user_guide/linear_models`.
"""

# %%
# Fit
# ---

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sk_sgmcmc import BayesianLogisticRegression


def tables():
    """Names of tables, with rows, labels and names of columns."""
    data = load_breast_cancer()
    # The prior's scale of 1 refers to the columns as given, and some of these have units of 0.01.
    X, y, columns = data.data / data.data.std(axis=0), data.target, list(data.feature_names)
    return {"breast cancer": (X, y, columns), "breast cancer, ten columns": (X[:, :10], y, columns[:10])}


models = {}
for name, (X, y, columns) in tables().items():
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    model = BayesianLogisticRegression(n_chains=2, random_state=0).fit(X_train, y_train)
    mode = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
    table = model.coef_table(interval=0.9)
    clear = (np.asarray(table["low"]) > 0) | (np.asarray(table["high"]) < 0)
    print(f"{name}: {X.shape[0]} rows, {X.shape[1]} columns; {model.sampler_}, step {model.sampler_.step_size_(0):g}")
    print(f"  log loss held out {log_loss(y_test, model.predict_proba(X_test)):.3f}, scikit-learn's "
          f"{log_loss(y_test, mode.predict_proba(X_test)):.3f}")  # fmt: skip
    print(f"  effective draws of a coefficient: {np.min(table['ess']):.0f} or more")
    print(f"  90% intervals without 0: {np.sum(clear[1:])} of {len(columns)} coefficients")
    parts = model.predict_uncertainty(X_test)
    unsure = np.argsort(-parts.epistemic)[:3]
    low, high = (side[unsure, 1] for side in model.predict_interval(X_test)[1:])
    print("  the three rows about which most could be learnt: probability " +
          ", ".join(f"{a:.2f} to {b:.2f}" for a, b in zip(low, high, strict=True)))  # fmt: skip
    models[name] = model, columns, X_train.std(axis=0)

# %%
# Coefficients with their intervals
# ---------------------------------
# Per standard deviation of each column, so that they can be plotted on one axis.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(10, 6), layout="constrained")
for ax, (name, (model, columns, scale)) in zip(axes, models.items(), strict=True):
    draws = model.samples_["coef"].reshape(-1, len(columns)) * scale
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    order = np.argsort(draws.mean(axis=0))
    clear = (low > 0) | (high < 0)
    for place, j in enumerate(order):
        color = "C3" if clear[j] else "C7"
        ax.plot([low[j], high[j]], [place, place], color=color, linewidth=2)
        ax.plot(draws[:, j].mean(), place, "o", color=color)
    ax.axvline(0.0, color="black", linewidth=0.5)
    ax.set_yticks(range(len(columns)), [columns[j] for j in order])
    ax.set_xlabel("log odds for one standard deviation")
    ax.set_title(f"{name}, 90% intervals")
plt.show()

# %%
# **A good part of the coefficients cannot be distinguished from zero, while predictions are as good as scikit-learn's:
# the intervals show what a single number for each column hides.**
