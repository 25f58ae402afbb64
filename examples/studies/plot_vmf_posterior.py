r"""
Are both modes of a posterior on two circles found from minibatches?
====================================================================

Of a hundred directions, half come from a von Mises-Fisher distribution around :math:`v_1`, and half from one around the
normalised sum :math:`\mu \propto v_1 + v_2`. Which half is which is not known, so the posterior of :math:`(v_1, v_2)`
has two modes, near :math:`(-\pi/24, \pi/8)` and :math:`(\pi/24, -\pi/8)`. This is figure 4 of Liu, Zhu and Song (2016).
The data are mirrored, so that both modes weigh exactly the same.

In the user guide: :doc:`/user_guide/sphere`.
"""

# %%
# Data, and the truth on a grid
# -----------------------------

import numpy as np

from sk_sgmcmc import sample
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.samplers import GMC, SGGMC
from sk_sgmcmc.targets import ChainedVonMisesFisher

KAPPA, N = 20.0, 100

rng = np.random.default_rng(0)
half = np.concatenate([rng.vonmises(-np.pi / 24, KAPPA, N // 4), rng.vonmises(np.pi / 24, KAPPA, N // 4)])
angle = np.concatenate([half, -half])
target = ChainedVonMisesFisher(np.stack([np.cos(angle), np.sin(angle)], axis=1), kappa=KAPPA, prior_kappa=KAPPA)

grid = np.linspace(-np.pi, np.pi, 801)[:-1]
first, second = np.meshgrid(grid, grid, indexing="ij")
middle = np.arctan2(np.sin(first) + np.sin(second), np.cos(first) + np.cos(second))
log_posterior = KAPPA * (np.cos(first) + np.cos(second))
for a in angle:
    log_posterior += np.logaddexp(KAPPA * np.cos(first - a), KAPPA * np.cos(middle - a))
posterior = np.exp(log_posterior - log_posterior.max())
posterior /= posterior.sum()

# %%
# Two samplers
# ------------
# SGGMC reads 10 rows per step and estimates from them how noisy their gradient is.

EDGES = np.linspace(-0.8, 0.8, 21)
n_draws = 40_000
runs = {
    "GMC": (GMC(0.03, 10), {"n_iter": n_draws // 4}),
    "SGGMC": (
        SGGMC(np.sqrt(5e-4 / N), gradient_noise="estimated"),
        {"n_iter": 10 * n_draws, "thin": 10, "batch_size": 10, "with_replacement": False},
    ),
}
angles = {}
for label, (sampler, options) in runs.items():
    x = sample(target, sampler, n_chains=8, burn_in=0.375, random_state=0, **options).samples_["x"]
    phi = np.arctan2(x[..., 1], x[..., 0])  # (n_chains, n_draws, 2)
    angles[label] = phi
    right = phi[..., 0] < phi[..., 1]
    ess = float(np.min(effective_sample_size(right.astype(float)[..., None])))
    print(f"{label}: weight of the mode with v1 < v2 {right.mean():.3f} (truth 0.5), effective draws {ess:.0f}")
    for j, axis in ((0, 1), (1, 0)):
        truth = np.histogram(grid, EDGES, weights=posterior.sum(axis=axis))[0]
        seen = np.histogram(phi[..., j], EDGES)[0] / phi[..., j].size
        print(f"  v{j + 1}: total variation over {len(EDGES) - 1} bins {0.5 * np.abs(seen - truth).sum():.3f}")

# %%
# Draws and contours of the posterior
# -----------------------------------

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, figsize=(7, 3.7), sharex=True, sharey=True)
for ax, (label, phi) in zip(axes, angles.items(), strict=True):
    some = phi.reshape(-1, 2)[:: max(1, phi[..., 0].size // 3000)]
    ax.plot(some[:, 0], some[:, 1], ".", markersize=2, alpha=0.4)
    ax.contour(grid, grid, posterior.T, levels=6, colors="black", linewidths=0.7)
    ax.set(title=label, xlim=(-0.4, 0.4), ylim=(-0.8, 0.8))
figure.supxlabel("angle of $v_1$")
figure.supylabel("angle of $v_2$")
plt.show()

# %%
# **Yes: from minibatches of ten rows,** `SGGMC` **visits both modes about equally and comes close to the true marginal
# distributions, with fewer effective draws than** `GMC` **on all the data.**
