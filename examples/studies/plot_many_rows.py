"""
Do draws from two million rows take a hundred times as long as from 20,000?
===========================================================================

Not with minibatches and control variates. This page fits a Poisson regression, written as a density of your own, to
20,000 and to 2,000,000 rows. A step costs the same for both. The search for the mode and the final check read all rows
a few dozen times, so they take longer with more rows.

In the user guide: :doc:`/user_guide/own_density`.
"""

# %%
# The density
# -----------
# Sums over ``rows`` are multiplied by ``scale``. The gradient is written by hand, as minibatches need it.

import time

import numba
import numpy as np

from sk_sgmcmc import sample

SIZES = (20_000, 2_000_000)
TRUTH = np.array([0.5, 0.3, -0.2, 0.1])


@numba.njit
def poisson(b, rows, scale, gradient):
    gradient.b[:] = -b / 100.0
    log_density = -0.5 * (b**2).sum() / 100.0
    for i in range(rows.shape[0]):
        eta = 0.0
        for k in range(b.size):
            eta += rows[i, 1 + k] * b[k]
        rate = np.exp(eta)
        log_density += scale * (rows[i, 0] * eta - rate)
        for k in range(b.size):
            gradient.b[k] += scale * (rows[i, 0] - rate) * rows[i, 1 + k]
    return log_density


def rows_of(n):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, TRUTH.size))
    X[:, 0] = 1.0
    return np.column_stack([rng.poisson(np.exp(X @ TRUTH)), X])


# %%
# Draws
# -----
# With more than 10,000 rows, `sample` reads minibatches of 500 by default. Given so many rows, the posterior is nearly
# normal: its covariance is the inverse of the Fisher information, :math:`\sum_i e^{x_i^\top \theta} x_i x_i^\top`.

runs = {}
for n in (SIZES[0], *SIZES):  # the first run also compiles; the next replaces it
    rows = rows_of(n)
    began = time.process_time()
    result = sample(poisson, parameters={"b": (TRUTH.size,)}, data=rows, n_chains=4, random_state=0)
    seconds = time.process_time() - began
    b = result.samples_["b"]
    X, mean = rows[:, 1:], b.mean(axis=(0, 1))
    information = (X * np.exp(X @ mean)[:, None]).T @ X
    ratio = b.std(axis=(0, 1)) / np.sqrt(np.diag(np.linalg.inv(information)))
    runs[n] = (
        b,
        (
            f"{n:9,} rows, {type(result.sampler_).__name__}: {seconds:.1f} s, means {mean.round(3)}, "
            f"sd over Fisher's {ratio.min():.2f} to {ratio.max():.2f}"
        ),
    )
print("\n".join(line for _, line in runs.values()))
few, many = (runs[n][0].std(axis=(0, 1)) for n in SIZES)
print(f"spread with {SIZES[1] // SIZES[0]} times the rows: {(many / few).min():.3f} to {(many / few).max():.3f} of it")

# %%
# The posteriors
# --------------

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2)
for ax, k in zip(axes, (1, 2), strict=True):
    for n, (b, _) in runs.items():
        ax.hist(b[..., k].ravel(), bins=40, density=True, alpha=0.6, label=f"{n:,} rows")
    ax.axvline(TRUTH[k], color="black", linewidth=0.8)
    ax.set(xlabel=f"coefficient {k}", yscale="log")
    ax.locator_params(axis="x", nbins=4)
axes[0].set(ylabel="density (line: true value)")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
plt.show()

# %%
# **No: a hundred times the rows give a tenth of the spread, as they should, and steps cost the same. Only the search
# for the mode and the check read all rows.**
