"""
How fast do 50 particles take the shape of a banana?
====================================================

In the toy example of Liu, Zhuo and Zhu (2019), fifty particles start in a corner of a curved density. They follow
Langevin dynamics (`Blob`) or Hamiltonian dynamics, with noise (`SGHMC`, fifty chains) or without (`PSGHMC`, "det" and
"fgh").

In the user guide: :doc:`/user_guide/flat_space`.
"""

# %%
# The target
# ----------
# :math:`\log p = -0.01 \, [\tfrac12 |x|^2 + 0.4 (25 x_1 + x_2^2)^2]`, with step size 0.01, friction 0.5 and particles
# from :math:`N((-2, -7), 0.25 I)`, as in the paper. In one respect the settings differ from its code: the noise of
# SGHMC is :math:`\sqrt{2 C h}`, and not :math:`C \sqrt{2 h}`.

import warnings

import numba
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import sample
from sk_sgmcmc.samplers import PSGHMC, SGHMC, Blob
from sk_sgmcmc.targets import Density


@numba.njit
def banana(theta, rows, scale, gradient):
    x, y = theta[0], theta[1]
    bend = 25.0 * x + y**2
    gradient[0] = -0.01 * (x + 20.0 * bend)
    gradient[1] = -0.01 * (y + 1.6 * bend * y)
    return -0.01 * (0.5 * (x**2 + y**2) + 0.4 * bend**2)


TARGET = Density(banana, dim=2, start=[-2.0, -7.0])
N, H, C = 50, 0.01, 0.5


def exact(n, rng):
    """Draws from the target: x_2 from its marginal on a grid, then x_1, which is normal given x_2."""
    y = np.linspace(-60.0, 60.0, 24_001)
    precision = 0.01 * (1.0 + 0.8 * 25.0**2)
    mean = -0.01 * 20.0 * y**2 / precision
    log_p = -0.005 * y**2 - 0.004 * y**4 + 0.5 * precision * mean**2
    p = np.exp(log_p - log_p.max())
    k = rng.choice(y.size, n, p=p / p.sum())
    return np.column_stack([mean[k] + rng.standard_normal(n) / np.sqrt(precision), y[k]])


truth = exact(4000, np.random.default_rng(1))
print(f"target: mean {truth.mean(axis=0).round(2)}, standard deviations {truth.std(axis=0).round(2)}")

# %%
# The distance
# ------------
# Maximum mean discrepancy (MMD) with a Gaussian kernel of width 3, to 4,000 exact draws. The distance of fifty exact
# draws is not 0 either, and is printed for comparison.


def kernel_mean(a, b):
    squares = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-squares / 18.0).mean()


TRUTH_ITSELF = kernel_mean(truth, truth)


def mmd(X):
    return np.sqrt(max(kernel_mean(X, X) - 2.0 * kernel_mean(X, truth) + TRUTH_ITSELF, 0.0))


def exact_distance(seed):
    return mmd(exact(N, np.random.default_rng([7, seed])))


# %%
# Fifty particles after 300 to 9,600 steps
# ----------------------------------------
# A run with the same seed passes through the particles of a shorter one. The chains of `SGHMC` run one by one, because
# each has its own starting point. With the noise of the paper's code, `SGHMC` has the temperature :math:`C = 0.5`, and
# so a different target.
#
# The particles on their way, not their limit, are the subject here, so the page switches off the warnings that a short
# run has not converged.

warnings.filterwarnings("ignore", category=ConvergenceWarning)

SNAPSHOTS = [300, 600, 1200, 2400, 4800, 9600]


def snapshots(sampler, seed):
    """Particles after each number of steps in `SNAPSHOTS`."""
    start = np.array([-2.0, -7.0]) + 0.5 * np.random.default_rng(seed).standard_normal((N, 2))
    if not isinstance(sampler, SGHMC):
        args = {"init": start, "burn_in": 0, "random_state": seed}
        return [sample(TARGET, sampler, n_iter=n, **args).samples_["theta"][0] for n in SNAPSHOTS]
    args = {"n_iter": SNAPSHOTS[-1], "burn_in": 0, "thin": SNAPSHOTS[0]}
    seeds = np.random.SeedSequence(seed).spawn(N)
    paths = [
        sample(TARGET, sampler, init=x, random_state=each, **args).samples_["theta"][0]
        for x, each in zip(start, seeds, strict=True)
    ]
    return [np.stack([path[n // SNAPSHOTS[0] - 1] for path in paths]) for n in SNAPSHOTS]


SAMPLERS = {
    "Blob": Blob(N, step_size=H, bandwidth="he"),
    "SGHMC": SGHMC(step_size=H, friction=C, scheme="euler"),
    "SGHMC at T=C": SGHMC(step_size=H, friction=C, scheme="euler", temperature=C),
    "PSGHMC-det": PSGHMC("det", N, step_size=H, bandwidth="he", friction=C),
    "PSGHMC-fgh": PSGHMC("fgh", N, step_size=H, bandwidth="he", friction=C),
}
clouds = {name: snapshots(sampler, 0) for name, sampler in SAMPLERS.items()}
distances = {name: [mmd(X) for X in cloud] for name, cloud in clouds.items()}
print(f"{'MMD after':13s}" + "".join(f"{n:8d}" for n in SNAPSHOTS))
for name, values in distances.items():
    print(f"{name:13s}" + "".join(f"{value:8.3f}" for value in values))
by_chance = np.mean([exact_distance(seed) for seed in range(10)])
print(f"{N} exact draws: {by_chance:.3f}")
for name, values in distances.items():
    near = [n for n, value in zip(SNAPSHOTS, values, strict=True) if value < 2.0 * by_chance]
    print(f"{name:13s} below twice that distance after {near[0] if near else 'more'} steps")

# %%
# Particles and distances
# -----------------------
# Grey points are exact draws. The distances come from one seed. Below the dashed line, they are not informative.

import matplotlib.pyplot as plt

figure = plt.figure(figsize=(7, 7))
above, below = figure.subfigures(2, 1, height_ratios=(1, 1.1))
shown = ("Blob", "SGHMC", "PSGHMC-det")
axes = above.subplots(len(shown), 4, sharex=True, sharey=True)
for row, name in zip(axes, shown, strict=True):
    for ax, i in zip(row, (0, 1, 2, 5), strict=True):
        ax.plot(*truth[:1500].T, ".", color="0.8", markersize=2)
        ax.plot(*clouds[name][i].T, ".", markersize=4)
        ax.set(xlim=(-25, 5), ylim=(-25, 25), title=f"{SNAPSHOTS[i]:,} steps" if ax in axes[0] else "")
    row[0].set_ylabel(name)
ax = below.subplots()
for name, values in distances.items():
    ax.plot(SNAPSHOTS, values, "o-", label=name)
ax.axhline(by_chance, linestyle="--", color="0.5", label=f"{N} exact draws")
ax.set(xscale="log", xlabel="steps", ylabel="MMD to the target")
ax.set_xticks(SNAPSHOTS, [f"{n:,}" for n in SNAPSHOTS])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# **Particles with momentum,** `PSGHMC`, **take the shape of the target in fewer steps than** `Blob`, **which has no
# momentum.** `SGHMC` **follows closely if its noise is corrected; the noise of the paper's code makes it slower.**
