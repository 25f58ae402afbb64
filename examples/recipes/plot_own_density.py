"""
How do you draw from a posterior of your own?
=============================================

Write its logarithm and its gradient in a function jitted by numba, and pass it to `sk_sgmcmc.sample`. The example is a
straight line through points, some of which are grossly wrong. The noise therefore has Student's t distribution, with an
unknown scale; no estimator of this package offers that.

In the user guide: :doc:`/user_guide/own_density`.
"""

# %%
# The density
# -----------
# With residuals :math:`r_i = y_i - a - b x_i`, scale :math:`e^s` and :math:`\nu = 4`,
# :math:`\log p = \sum_i \bigl[ -s - \tfrac{\nu+1}2 \log(1 + r_i^2 e^{-2s} / \nu) \bigr] - (a^2 + b^2 + s^2) / 200`.
# The sum over the minibatch ``rows`` is multiplied by ``scale``.

import numba
import numpy as np

from sk_sgmcmc import sample
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.targets import Density

SHARE = 1.0  # of the steps
NU = 4.0


@numba.njit
def line(theta, rows, scale, gradient):
    a, b, s = theta[0], theta[1], theta[2]
    log_density = 0.0
    for k in range(3):
        log_density -= theta[k] ** 2 / 200.0
        gradient[k] = -theta[k] / 100.0
    shrink = np.exp(-2.0 * s)
    for i in range(rows.shape[0]):
        residual = rows[i, 1] - a - b * rows[i, 0]
        square = residual**2 * shrink / NU
        log_density -= scale * (s + 0.5 * (NU + 1.0) * np.log1p(square))
        force = (
            scale * (NU + 1.0) / NU * residual * shrink / (1.0 + square)
        )
        gradient[0] += force
        gradient[1] += force * rows[i, 0]
        gradient[2] += scale * (
            (NU + 1.0) * square / (1.0 + square) - 1.0
        )
    return log_density


rng = np.random.default_rng(0)
x = rng.uniform(-1.0, 1.0, 2000)
y = 1.0 + 2.0 * x + 0.3 * rng.standard_t(NU, 2000)
wrong = rng.random(2000) < 0.05
y[wrong] += rng.uniform(5.0, 20.0, wrong.sum())
rows = np.column_stack([x, y])
target = Density(line, dim=3, data=rows)

# %%
# Draws
# -----
# Exact trajectories on all rows, and minibatches of 200 with control variates, which `sample` chooses by itself. A
# gradient that does not match the density is refused, and draws that have not converged raise a warning.

options = {"n_chains": 4, "random_state": 1}
runs = {
    "HMC, all rows": sample(
        target, "hmc", n_iter=int(2000 * SHARE), **options
    ),
    "SGHMC, 200 rows": sample(
        target,
        "sghmc",
        n_iter=int(10_000 * SHARE),
        batch_size=200,
        **options,
    ),
}
names = ("intercept", "slope", "log scale")
for label, result in runs.items():
    theta = result.samples_["theta"]
    ess = effective_sample_size(theta)
    cells = (
        f"{name} {theta[..., k].mean():.4f} ± {theta[..., k].std():.4f}"
        for k, name in enumerate(names)
    )
    print(f"{label:16s} step {float(result.sampler_.step_size_(0)):.3g}, effective draws {ess.min():.0f}: "
          + ", ".join(cells))  # fmt: skip
slope, intercept = np.polyfit(x, y, 1)
print(
    f"least squares: intercept {intercept:.3f}, slope {slope:.3f}; the rows were made with 1 and 2"
)

# %%
# The line
# --------

import matplotlib.pyplot as plt

theta = runs["HMC, all rows"].samples_["theta"][0]
grid = np.array([-1.0, 1.0])
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(x, y, ".", color="C7", markersize=2)
for draw in theta[:: max(1, len(theta) // 50)]:
    ax.plot(
        grid,
        draw[0] + draw[1] * grid,
        color="C0",
        linewidth=0.5,
        alpha=0.5,
    )
ax.plot(
    grid,
    intercept + slope * grid,
    "--",
    color="C3",
    label="least squares",
)
ax.plot([], [], color="C0", label="draws, Student's t")
ax.set_ylim(-3.0, 8.0)
ax.legend()
plt.show()

# %%
# **A density, its gradient and one call: minibatches and exact trajectories agree, and gross errors do not move the
# line.**
