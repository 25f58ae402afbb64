r"""
How do you draw from a Gaussian that is truncated by constraints?
=================================================================

Proportions :math:`x` of four ingredients, :math:`x_i \ge 0` and :math:`\sum_i x_i = 1`, are measured several times with
Gaussian noise. Under a flat prior their posterior is a Gaussian truncated by the faces of a simplex, and here most of
the untruncated one lies outside the simplex. Geodesic samplers move along straight lines and are reflected at the
faces, so every draw satisfies the constraints, whether they read all measurements or minibatches.

In the user guide: :doc:`/user_guide/sphere`.
"""

# %%
# Measurements, and the truth by rejection
# ----------------------------------------
# :math:`y_j = x + e_j` with :math:`e_j \sim N(0, \sigma^2 I)`: the log posterior is
# :math:`b'x - x'Ax/2` with :math:`b = \sum_j y_j / \sigma^2` and :math:`A = n I / \sigma^2`. `RestrictedGaussian` takes
# the terms :math:`y_j / \sigma^2` one by one, so that a minibatch can be read.

import numpy as np

from sk_sgmcmc import sample
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.samplers import GMC, GSGNHT, SGGMC
from sk_sgmcmc.targets import RestrictedGaussian

N, SIGMA = 200, 2.0

rng = np.random.default_rng(0)
truth = np.array([0.6, 0.35, 0.05, 0.0])
y = truth + SIGMA * rng.standard_normal((N, 4))
target = RestrictedGaussian(np.zeros((1, 4)), N / SIGMA**2 * np.eye(4), linear_terms=y / SIGMA**2)

# Independent draws: of those from the Gaussian in the plane, the ones that fall into the simplex.
z = y.mean(axis=0) + SIGMA / np.sqrt(N) * rng.standard_normal((2_000_000, 4))
z += (1.0 - z.sum(axis=1, keepdims=True)) / 4.0
inside = z[(z >= 0).all(axis=1)]
print(f"of the untruncated posterior {len(inside) / len(z):.4f} lies in the simplex")
print(f"{'':34s}" + "".join(f"{f'E[x{i + 1}]':>10s}" for i in range(4)) + f"{'largest |z|':>13s}{'smallest ESS':>14s}")
print(f"{'exact':34s}" + "".join(f"{m:10.4f}" for m in inside.mean(axis=0)))

# %%
# Three samplers
# --------------

N_CHAINS = 10
steps = 60_000
batch = {"n_iter": steps, "batch_size": 50, "with_replacement": True, "thin": 10}
# The sum over a minibatch times N/n, n rows drawn with replacement: N^2/n times the variance of a term.
noise = N**2 / 50 * (y / SIGMA**2).var(axis=0).mean()
runs = {
    "GMC": (GMC(), {"n_iter": steps // 20}),
    "SGGMC, 50 rows, noise known": (SGGMC(0.01, 20.0, gradient_noise=noise), batch),
    "gSGNHT, 50 rows, noise unknown": (GSGNHT(0.01, 20.0), batch),
}
draws = {}
for label, (sampler, options) in runs.items():
    result = sample(target, sampler, geometry="simplex", n_chains=N_CHAINS, burn_in=0.1, random_state=0, **options)
    x = result.samples_["x"][:, :, 0]
    assert np.all(x >= 0) and np.allclose(x.sum(axis=2), 1.0)
    means = x.mean(axis=1)
    error = np.hypot(means.std(axis=0, ddof=1) / np.sqrt(N_CHAINS), inside.std(axis=0) / np.sqrt(len(inside)))
    score = np.abs((means.mean(axis=0) - inside.mean(axis=0)) / error).max()
    ess = np.min(effective_sample_size(x))
    print(f"{label:34s}" + "".join(f"{m:10.4f}" for m in means.mean(axis=0)) + f"{score:13.1f}{ess:14.0f}")
    draws[label] = x.reshape(-1, 4)

# %%
# Marginal distributions
# ----------------------
# Dotted lines are the true proportions.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(2, 2)
for i, ax in enumerate(axes.flat):
    edges = np.linspace(0, np.quantile(inside[:, i], 0.999), 40)
    ax.hist(inside[:, i], edges, density=True, color="0.8", label="exact")
    for label, x in draws.items():
        ax.hist(x[:, i], edges, density=True, histtype="step", label=label)
    ax.axvline(truth[i], color="black", linewidth=1, linestyle=":")
    ax.set(xlabel=f"$x_{i + 1}$", yticks=[])
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
plt.show()

# %%
# **With geodesic samplers reflected at the faces: every draw satisfies the constraints, while most draws of the
# untruncated posterior do not. Minibatches of 50 rows give the same means within their errors.**
