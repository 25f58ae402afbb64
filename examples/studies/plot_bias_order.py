"""
How fast does the bias of a sampler vanish with its step size?
==============================================================

Samplers without a Metropolis test have a bias. If you halve the step size, the bias of a first-order method is halved,
and the bias of a second-order method is quartered: on a log-log plot the slope is 1 or 2. This page measures the slope
on a density that is not Gaussian, since on a Gaussian some integrators have no bias, or one of a higher order.

In the user guide: :doc:`/user_guide/flat_space`.
"""

# %%
# The density
# -----------
# :math:`\log p = -4 \log\cosh x - (x - y)^2 / 2 - y^2 / 2`, whose second moments are computed to ten digits by a sum
# over a grid. The metric of the Riemannian sampler is a diagonal that follows the curvature in x.

import numba
import numpy as np

from sk_sgmcmc import sample
from sk_sgmcmc.samplers import SGHMC, SGLD, SGNHT, SGRNPHMC
from sk_sgmcmc.targets import Density

N_CHAINS = 20


@numba.njit
def log_density(theta, rows, scale, gradient):
    x, y = theta[0], theta[1]
    gradient[0] = -4.0 * np.tanh(x) - (x - y)
    gradient[1] = -(y - x) - y
    return -4.0 * np.log(np.cosh(x)) - 0.5 * (x - y) ** 2 - 0.5 * y**2


@numba.njit
def metric(theta, rows, scale, G, dG):
    bend = 1.0 / np.cosh(theta[0]) ** 2
    G[0], G[1] = 1.0 + bend, 1.0
    dG[:] = 0.0
    dG[0, 0] = -2.0 * bend * np.tanh(theta[0])


target = Density(log_density, dim=2, metric=metric, metric_is_diagonal=True)
x, y = np.meshgrid(np.linspace(-8, 8, 801), np.linspace(-8, 8, 801))
weight = np.exp(-4.0 * np.log(np.cosh(x)) - 0.5 * (x - y) ** 2 - 0.5 * y**2)
EXACT = np.array([np.sum(weight * square) for square in (x**2, x * y, y**2)]) / weight.sum()

# %%
# Two step sizes for each sampler
# -------------------------------
# The bias in the three moments, and the slope of the line through them, each moment weighted by its precision. A bias
# below ten standard errors has no slope to measure.

RUNS = {  # sampler, larger and smaller step size, steps of a chain, claimed order
    "SGLD": (SGLD, (0.08, 0.04), 30_000, "1"),
    "SGHMC, Euler": (lambda h: SGHMC(h, scheme="euler"), (0.2, 0.14), 80_000, "1 or better"),
    "SGHMC, baoab": (SGHMC, (0.6, 0.42), 40_000, "2 or better"),
    "SGHMC, ubu": (lambda h: SGHMC(h, scheme="ubu"), (0.5, 0.35), 40_000, "2"),
    "SGNHT, Euler": (lambda h: SGNHT(h, scheme="euler"), (0.1, 0.05), 80_000, "1"),
    "SGNHT, aboba": (SGNHT, (0.4, 0.24), 40_000, "2"),
    "SGR-NPHMC": (SGRNPHMC, (0.5, 0.3), 40_000, "2"),
}


def bias(sampler, n_iter):
    """Bias of the three moments with its standard error over chains."""
    draws = sample(target, sampler, n_iter=n_iter, burn_in=0.02, thin=2, n_chains=N_CHAINS, random_state=0)
    theta = draws.samples_["theta"]
    a, b = theta[..., 0], theta[..., 1]
    means = np.stack([np.mean(square, axis=1) for square in (a**2, a * b, b**2)], axis=1)
    return means.mean(axis=0) - EXACT, means.std(axis=0, ddof=1) / np.sqrt(N_CHAINS)


def slope(steps, biases, errors):
    """Slope of log bias in log step size, and its standard error."""
    pull = biases[0] / errors[1] ** 2
    ratio = (pull @ biases[1]) / (pull @ biases[0])
    slack = np.sqrt(pull**2 @ (errors[1] ** 2 + ratio**2 * errors[0] ** 2)) / abs(pull @ biases[1])
    scale = np.log(steps[0] / steps[1])
    return -np.log(ratio) / scale if ratio > 0 else np.nan, slack / scale


found = {}
print(f"{'':20s} {'step sizes':>12s} {'largest bias, in standard errors':>34s} {'slope':>14s}  claimed")
for name, (make, steps, n_iter, order) in RUNS.items():
    biases, errors = np.array([bias(make(h), n_iter) for h in steps]).transpose(1, 0, 2)
    z = np.abs(biases / errors).max(axis=1)
    measured, slack = slope(steps, biases, errors)
    found[name] = steps, np.abs(biases).max(axis=1), errors.max(axis=1)
    said = f"{measured:5.2f} +- {slack:4.2f}" if z[0] > 10 else "none to see"
    sizes = " ".join(f"{value:.4f} ({s:.0f})" for value, s in zip(found[name][1], z, strict=True))
    print(f"{name:20s} {steps[0]:6g} {steps[1]:5g} {sizes:>34s} {said:>14s}  {order}")

# %%
# Bias by step size
# -----------------
# Dashed lines have slopes 1 and 2; bars are two standard errors.

import matplotlib.pyplot as plt

figure, axes = plt.subplots()
for name, (steps, size, error) in found.items():
    axes.errorbar(steps, size, yerr=2.0 * error, marker="o", capsize=2, label=name)
h = np.array([0.05, 0.6])
for order in (1, 2):
    axes.plot(h, 0.3 * h**order, color="0.7", ls="--", zorder=0)
    axes.text(0.62, 0.3 * 0.6**order, f"slope {order}", color="0.4", va="center")
axes.set(xscale="log", yscale="log", xlabel="step size", ylabel="largest bias of a second moment", ylim=(3e-4, 0.3))
axes.set_xticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
axes.minorticks_off()
figure.legend(loc="outside right center")
plt.show()

# %%
# **Slopes are close to those claimed: 1 for Langevin dynamics and for Euler's thermostat, 2 for the splittings and the
# Nosé-Poincaré sampler. The "baoab" splitting of** `SGHMC` **has the smallest bias, at the largest steps.**
