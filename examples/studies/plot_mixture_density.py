"""
How do you draw from a mixture whose labels can switch?
=======================================================

Write its density and order the means. Without an order, each way of labelling the components is a mode of its own.
Chains that start apart stay in different modes, R-hat is large, and the mean over chains describes no component. The
order leaves only one of these modes.

In the user guide: :doc:`/user_guide/own_density`.
"""

# %%
# Numbers from two normals
# ------------------------

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import sample
from sk_sgmcmc.targets import Positive, Simplex

N_ITER = 2000
rng = np.random.default_rng(0)
second = rng.random(400) < 0.65
data = np.where(second, rng.normal(1.5, 1.0, 400), rng.normal(-1.5, 0.8, 400))[:, None]


# %%
# With labels that may switch
# ---------------------------
# The density is the same if the components are exchanged. Four chains start at random. `~sk_sgmcmc.sample` warns that
# they disagree; the page prints R-hat instead.


def free_labels(mean, sd, p, rows):
    value = -0.5 * (mean**2).sum() / 25.0 - 0.5 * (np.log(sd) ** 2).sum() - np.log(sd).sum() + np.log(p).sum()
    for i in range(rows.shape[0]):
        value += np.log((p / sd * np.exp(-0.5 * ((rows[i, 0] - mean) / sd) ** 2)).sum())
    return value


settings = {"data": data, "n_chains": 4, "n_iter": N_ITER, "random_state": 3}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    switched = sample(free_labels, parameters={"mean": (2,), "sd": Positive(2), "p": Simplex(2)}, **settings)
print("means of the first component, by chain:", switched.samples_["mean"][..., 0].mean(axis=1).round(2))
print(f"R-hat {np.max(switched.summary()['r_hat']):.2f}")

# %%
# With means in their order
# -------------------------
# The lower mean, and a positive gap to the next. Nothing is lost: each mixture can be written in this way once.


def ordered(low, gap, sd, p, rows):
    mean = np.array([low, low + gap])
    value = -0.5 * (mean**2).sum() / 25.0 - 0.5 * (np.log(sd) ** 2).sum() - np.log(sd).sum() + np.log(p).sum()
    for i in range(rows.shape[0]):
        value += np.log((p / sd * np.exp(-0.5 * ((rows[i, 0] - mean) / sd) ** 2)).sum())
    return value


result = sample(ordered, parameters={"low": (), "gap": Positive(), "sd": Positive(2), "p": Simplex(2)}, **settings)
table = result.summary()
for name, mean, sd, r_hat in zip(table["quantity"], table["mean"], table["sd"], table["r_hat"], strict=True):
    print(f"{name:6} {mean:6.2f} ± {sd:.2f}, R-hat {r_hat:.3f}")

# %%
# Relabelling
# -----------
# You can also order draws of free labels afterwards, here by their means. This repairs labels only. Some modes differ
# in more than labels, such as a third group covered by a wide component. If some chains have missed such a mode, R-hat
# of the ordered draws is still large.

from sk_sgmcmc.metrics import split_r_hat

order = switched.samples_["mean"].argsort(axis=-1)
relabelled = {name: np.take_along_axis(draws, order, axis=-1) for name, draws in switched.samples_.items()}
print("relabelled means:", relabelled["mean"].mean(axis=(0, 1)).round(2), end=", ")
print(f"R-hat {split_r_hat(relabelled['mean']).max():.3f}")

# %%
# Chains with free labels, and the ordered mixture
# ------------------------------------------------

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(7, 3.4))
for chain in switched.samples_["mean"]:
    axes[0].plot(chain[:, 0], linewidth=0.5)
axes[0].set(xlabel="draw", ylabel="mean of the first component", title="Free labels: chains disagree")
grid = np.linspace(-5.0, 5.0, 200)
axes[1].hist(data[:, 0], bins=40, density=True, color="0.85")
draws = {name: value.reshape(-1, *value.shape[2:])[::40] for name, value in result.samples_.items()}
for low, gap, sd, p in zip(draws["low"], draws["gap"], draws["sd"], draws["p"], strict=True):
    cells = p / sd / np.sqrt(2.0 * np.pi) * np.exp(-0.5 * ((grid[:, None] - [low, low + gap]) / sd) ** 2)
    axes[1].plot(grid, cells.sum(axis=1), color="C0", linewidth=0.5, alpha=0.3)
axes[1].set(xlabel="number", ylabel="density", title="Ordered means")
plt.show()

# %%
# **With a positive gap between the means, only one way of labelling is left, and the four chains agree. An order does
# not help with modes that differ in more than labels, so start several chains apart and check that they agree.**
