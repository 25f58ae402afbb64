"""
Can a sampler on the circle take a gradient that is mostly noise?
=================================================================

A density on the circle has two modes, and its gradient carries normal noise of variance 1,000, far larger than the
gradient itself. This is figure 3 of Liu, Zhu and Song (2016). If you pass the variance, stochastic-gradient geodesic
Monte Carlo adds less noise of its own. A thermostat adapts to the noise by itself. Without either, the temperature of
the chain is too high.

In the user guide: :doc:`/user_guide/sphere`.
"""

# %%
# The density
# -----------
# :math:`\pi(x) \propto e^{5 \mu_1'x} + 2 e^{5 \mu_2'x}`, with :math:`\mu_1, \mu_2` at :math:`\pm\pi/3`. The noise comes
# from 20,000 linear terms that add up to exactly 0, of which each step draws one.

import numpy as np

from sk_sgmcmc import sample
from sk_sgmcmc.samplers import GMC, GSGNHT, SGGMC
from sk_sgmcmc.targets import ExponentialMixture

N_CHAINS, STEP_SIZE, FRICTION, NOISE = 20, 0.01, 10.0, 1000.0
EXACT = {"E[x1]": 0.446692, "E[x2]": -0.257897, "P(angle > 0)": 0.338483}

directions = 5.0 * np.array([[0.5, np.sqrt(0.75)], [0.5, -np.sqrt(0.75)]])
rng = np.random.default_rng(0)
terms = rng.standard_normal((20_000, 2))
terms -= terms.mean(axis=0)
terms = terms @ np.linalg.inv(np.linalg.cholesky(terms.T @ terms / len(terms))).T
noisy = ExponentialMixture(directions, [1.0, 2.0], linear_terms=np.sqrt(NOISE) * terms / len(terms))
clean = ExponentialMixture(directions, [1.0, 2.0])

# %%
# Three correct samplers, and one that ignores the noise
# ------------------------------------------------------
# z-scores compare the means with the exact ones.

MINIBATCH = {"n_iter": 200_000, "batch_size": 1, "with_replacement": True, "thin": 20}
runs = {
    "GMC, exact gradient": (clean, GMC(0.3, 5), {"n_iter": 20_000}),
    "SGGMC, variance given": (noisy, SGGMC(STEP_SIZE, FRICTION, gradient_noise=NOISE), MINIBATCH),
    "gSGNHT, variance unknown": (noisy, GSGNHT(STEP_SIZE, FRICTION, thermostat=15.0), MINIBATCH),
    "SGGMC, noise ignored": (noisy, SGGMC(STEP_SIZE, FRICTION), MINIBATCH),
}
angles = {}
print(f"{'':26s}" + "".join(f"{name:>26s}" for name in EXACT))
for label, (target, sampler, options) in runs.items():
    x = sample(target, sampler, n_chains=N_CHAINS, burn_in=0.1, random_state=1, **options).samples_["x"][:, :, 0]
    means = np.stack([x[..., 0].mean(axis=1), x[..., 1].mean(axis=1), (x[..., 1] > 0).mean(axis=1)], axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(N_CHAINS)
    z = (means.mean(axis=0) - list(EXACT.values())) / error
    cells = zip(means.mean(axis=0), error, z, strict=True)
    print(f"{label:26s}" + "".join(f"{m:9.4f} ± {e:.4f}, z={s:5.1f}" for m, e, s in cells))
    angles[label] = np.arctan2(x[..., 1], x[..., 0]).ravel()

# %%
# Draws and the density
# ---------------------

import matplotlib.pyplot as plt

grid = np.linspace(-np.pi, np.pi, 500)
density = np.exp(np.stack([np.cos(grid), np.sin(grid)], axis=1) @ directions.T) @ [1.0, 2.0]
density /= density.sum() * (grid[1] - grid[0])
figure, axes = plt.subplots(2, 2, sharex=True, sharey=True)
for ax, (label, angle) in zip(axes.flat, angles.items(), strict=True):
    ax.hist(angle, bins=np.arange(-3.15, 3.2, 0.1), density=True, alpha=0.5)
    ax.plot(grid, density, color="black", linewidth=1)
    ax.set_title(label)
figure.supxlabel("angle")
figure.supylabel("density")
plt.show()

# %%
# **With the variance of the noise given, or left to a thermostat, the chain draws from the density. With the noise
# ignored, the draws are too spread out, by many standard errors.**
