r"""
How certain are the entries of a completed matrix that were never seen?
=======================================================================

A table with four fifths of its entries missing is modelled as a low-rank matrix with noise,
:math:`x_i = \sum_k c_{ik} u_k + e_i`. The directions :math:`u_k` are orthonormal: a point on a Stiefel manifold.
Geodesic samplers draw them from minibatches of rows, so every missing entry has a mean and a standard deviation. A
truncated singular value decomposition of the filled-in table has no standard deviations.

In the user guide: :doc:`/user_guide/sphere`.
"""

# %%
# A table with holes
# ------------------

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import sample
from sk_sgmcmc.samplers import GMC, GSGNHT, SGGMC
from sk_sgmcmc.targets import MatrixCompletion

N, WIDTH, RANK, SIGMA, SEEN = 600, 30, 3, 0.5, 0.2
SCALES = np.array([4.0, 3.0, 2.0])

rng = np.random.default_rng(0)
frame = np.linalg.qr(rng.standard_normal((WIDTH, RANK)))[0].T
whole = (SCALES * rng.standard_normal((N, RANK))) @ frame
table = whole + SIGMA * rng.standard_normal(whole.shape)
table[rng.random(table.shape) > SEEN] = np.nan
missing = np.isnan(table)

# %%
# Complete the table
# ------------------
# By iterated truncated decompositions, whose number of iterations must be chosen (the best is shown), and by draws.
# These runs are short: single entries of the directions move slowly, and `~sk_sgmcmc.sample` warns of that. Here the
# true table is known and shows whether intervals cover it, so the page switches the warnings off.

warnings.filterwarnings("ignore", category=ConvergenceWarning)


def hard_impute(table, rank, n_iter):
    """Fill in, cut off, fill in again."""
    filled = np.nan_to_num(table)
    for _ in range(n_iter):
        left, s, right = np.linalg.svd(filled, full_matrices=False)
        low = (left[:, :rank] * s[:rank]) @ right[:rank]
        filled = np.where(np.isnan(table), low, table)
    return low


def error(low_rank):
    """Root mean squared error over missing entries."""
    return np.sqrt(np.mean((low_rank - whole)[missing] ** 2))


print(f"missing entries: {missing.mean():.2f} of the table; their root mean square {error(0.0 * whole):.3f}")
best = min(error(hard_impute(table, RANK, n)) for n in (1, 3, 10, 30, 100))
print(f"{'truncated decomposition, iterated':40s} error {best:.3f}")

target = MatrixCompletion(table, SCALES, SIGMA)
runs = {
    "GMC": (GMC(), {"n_iter": 200}),
    "SGGMC, 60 rows, noise estimated": (SGGMC(gradient_noise="estimated"), {"n_iter": 8000}),
    "gSGNHT, 60 rows": (GSGNHT(), {"n_iter": 8000}),
}
completed = {}
for label, (sampler, options) in runs.items():
    frames = sample(target, sampler, batch_size=60, thin="auto", random_state=0, **options).samples_["x"][0]
    mean, deviation = target.complete(frames)
    inside = np.abs(mean - whole)[missing] < 1.645 * deviation[missing]
    print(f"{label:40s} error {error(mean):.3f}   90% intervals cover {inside.mean():.3f} of the missing entries")
    completed[label] = mean, deviation
mean, deviation = target.complete(frame[None])
print(f"{'the true directions':40s} error {error(mean):.3f}   (no method can do better)")

# %%
# Actual and predicted errors
# ---------------------------

import matplotlib.pyplot as plt

figure, ax = plt.subplots()
for label, (mean, deviation) in completed.items():
    promised = deviation[missing]
    actual = (mean - whole)[missing] ** 2
    edges = np.quantile(promised, np.linspace(0, 1, 13))
    group = np.clip(np.searchsorted(edges, promised) - 1, 0, 11)
    x = [promised[group == g].mean() for g in range(12)]
    ax.plot(x, [np.sqrt(actual[group == g].mean()) for g in range(12)], "o-", markersize=3, label=label)
ax.axline((0.5, 0.5), slope=1.0, color="black", linewidth=0.7)
ax.set(xlabel="posterior standard deviation", ylabel="error of these entries")
ax.legend()
plt.show()

# %%
# **As certain as they should be: about nine in ten of the 90% intervals cover the entry that was never seen. The
# posterior mean is nearer to these entries than the best truncated decomposition, and nearly as near as with the true
# directions.**
