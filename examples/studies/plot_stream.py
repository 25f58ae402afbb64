"""
Does a posterior fitted block by block become that of all the rows?
===================================================================

`BayesianLogisticRegression.partial_fit` takes rows block by block. The chains run when you first read draws, on all
rows in memory; a Gaussian replaces rows only beyond 25 million numbers. Here the rows are synthetic, and their columns
have very different scales, which ``prior_scale="auto"`` takes into account. This page reads draws after each block, and
compares the last ones with one fit to all rows.

In the user guide: :doc:`/user_guide/linear_models`.
"""

# %%
# The stream
# ----------

import time

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from sk_sgmcmc import BayesianLogisticRegression

N_ROWS, N_BLOCKS = 20_000, 8

X, y = make_classification(N_ROWS + 5000, 12, n_informative=6, n_redundant=0, flip_y=0.2, random_state=0)
X = X * np.logspace(-2, 3, 12) + 5.0
X_test, y_test, X, y = X[N_ROWS:], y[N_ROWS:], X[:N_ROWS], y[:N_ROWS]
began = time.perf_counter()
whole = BayesianLogisticRegression(prior_scale="auto", random_state=0).fit(X, y)
print(f"fit to {N_ROWS} rows in {time.perf_counter() - began:.1f} s, minibatches of {whole.batch_size_}, "
      f"held-out log loss {log_loss(y_test, whole.predict_proba(X_test)):.4f}")  # fmt: skip

stream, seen, losses, paths = BayesianLogisticRegression(prior_scale="auto", random_state=0), [], [], []
sd = whole.samples_["coef"].std(axis=(0, 1))[0]
columns = np.argsort(-np.abs(whole.coef_[0]) / sd)[:3]
for X_block, y_block in zip(np.array_split(X, N_BLOCKS), np.array_split(y, N_BLOCKS), strict=True):
    stream.partial_fit(X_block, y_block, classes=[0, 1])
    seen.append(stream.n_samples_seen_)
    losses.append(log_loss(y_test, stream.predict_proba(X_test)))
    paths.append(np.quantile(stream.samples_["coef"][0, :, 0, columns], [0.05, 0.5, 0.95], axis=1))
    print(f"  {seen[-1]:6d} rows: held-out log loss {losses[-1]:.4f}")
off = np.abs(stream.coef_ - whole.coef_)[0] / sd
ratio = stream.samples_["coef"].std(axis=(0, 1))[0] / sd
print(f"differences of the means at the end, in posterior standard deviations: median {np.median(off):.2f}, "
      f"largest {off.max():.2f}")  # fmt: skip
print(f"ratio of the posterior standard deviations: median {np.median(ratio):.2f}")

# %%
# Three coefficients as rows arrive
# ---------------------------------

import matplotlib.pyplot as plt

paths = np.array(paths)
figure, axes = plt.subplots(1, 3, figsize=(7, 3))
for i, (ax, j) in enumerate(zip(axes, columns, strict=True)):
    ax.fill_between(seen, paths[:, 0, i], paths[:, 2, i], alpha=0.3, label="90% interval of the stream")
    ax.plot(seen, paths[:, 1, i])
    for end in np.quantile(whole.samples_["coef"][0, :, 0, j], [0.05, 0.95]):
        ax.axhline(end, color="black", ls="--", lw=1, label="ends of the interval of one fit to all rows")
    ax.set(title=f"coefficient {j}", xticks=(0, 10_000, 20_000))
    ax.locator_params(axis="y", nbins=5)
figure.supxlabel("rows seen")
figure.legend(*(part[:2] for part in axes[0].get_legend_handles_labels()), loc="outside upper center", ncols=2)
plt.show()

# %%
# **Yes: block by block, the intervals narrow to the intervals of the fit to all rows.**
