"""
How do you draw from a posterior of your own?
=============================================

After this page you can write a density with its gradient, draw from it
with exact trajectories or with minibatches, and check the draws.

In the user guide: :doc:`/user_guide/own_density`.
"""

# %%
# Make the rows
# -------------
# Points lie on a straight line, and some of them are grossly wrong.

import numba
import numpy as np
import pandas as pd

from sk_sgmcmc import sample
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.targets import Density

rng = np.random.default_rng(0)
x = rng.uniform(-1.0, 1.0, 2000)
y = 1.0 + 2.0 * x + 0.3 * rng.standard_t(4, 2000)
y += (rng.random(2000) < 0.05) * rng.uniform(5.0, 20.0, 2000)

# %%
# Write the density
# -----------------
# The noise has Student's t distribution with 4 degrees of freedom and
# an unknown scale. With residuals :math:`r_i = y_i - a - b x_i`, the
# log density is :math:`\sum_i [-s - 2.5 \log(1 + r_i^2 e^{-2s} / 4)]
# - (a^2 + b^2 + s^2) / 200`. Write the gradient to ``gradient``, and
# multiply the sum over ``rows`` by ``scale``, for minibatches.


@numba.njit
def line(theta, rows, scale, gradient):
    a, b, s = theta
    log_density = -np.sum(theta**2) / 200.0
    gradient[:] = -theta / 100.0
    shrink = np.exp(-2.0 * s) / 4.0
    for i in range(rows.shape[0]):
        residual = rows[i, 1] - a - b * rows[i, 0]
        square = residual**2 * shrink
        log_density -= scale * (s + 2.5 * np.log1p(square))
        pull = scale * 5.0 / (1.0 + square)
        gradient[0] += pull * shrink * residual
        gradient[1] += pull * shrink * residual * rows[i, 0]
        gradient[2] += pull * square - scale
    return log_density


target = Density(line, dim=3, data=np.column_stack([x, y]))

# %%
# Draw
# ----
# `~sk_sgmcmc.sample` compares the gradient with the density, and warns
# if the draws have not converged.

options = {"n_chains": 4, "random_state": 1}
runs = {"NUTS, all rows": sample(target, "nuts", **options)}
options |= {"n_iter": 10_000, "batch_size": 200}
runs["SGHMC, 200 rows"] = sample(target, "sghmc", **options)
for label, run in runs.items():
    theta = run.samples_["theta"]
    table = pd.DataFrame(index=["intercept", "slope", "log scale"])
    table["mean"], table["sd"] = theta.mean((0, 1)), theta.std((0, 1))
    table["ess"] = effective_sample_size(theta)
    print(table.round(4).rename_axis(label).to_string())

# %%
# Plot the lines
# --------------

import matplotlib.pyplot as plt

fit = np.polyfit(x, y, 1)
ends = np.array([-1.0, 1.0])
_, ax = plt.subplots()
ax.plot(x, y, ".", color="0.6", ms=2)
draws = theta.reshape(-1, 3)[::50]
lines = draws[:, :1] + draws[:, 1:2] * ends
ax.plot(ends, lines.T, color="C0", lw=0.5)
ax.plot([], [], color="C0", label="draws")
ax.plot(ends, np.polyval(fit, ends), "C1--", label="least squares")
ax.set(ylim=(-3, 8), xlabel="x", ylabel="y")
ax.legend()
plt.show()

# %%
print("least squares: {1:.2f} + {0:.2f} x".format(*fit))
print("draws: {:.2f} + {:.2f} x".format(*draws.mean(axis=0)))

# %%
# **Write the density and its gradient, and one call draws from it, with
# or without minibatches.**
