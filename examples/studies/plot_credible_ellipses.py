"""
Do credible ellipses of a Gaussian's mean have the coverage they claim?
=======================================================================

`BayesianGaussian` draws the mean and the precision of Gaussian rows. Its posterior is known exactly. This page compares
the draws with it, and counts over many data sets how often a 90% ellipse covers the true mean.

In the user guide: :doc:`/user_guide/calibration`.
"""

# %%
# One data set: draws against the exact posterior
# -----------------------------------------------

import numpy as np
from scipy import stats

from sk_sgmcmc import BayesianGaussian

N_SETS = 200
TRUTH = np.array([1.0, -2.0])
ROOT = np.array([[2.0, 0.0], [1.5, 0.8]])


def make(seed, n_rows=60):
    return TRUTH + np.random.default_rng(seed).standard_normal((n_rows, 2)) @ ROOT.T


X = make(0)
model = BayesianGaussian(random_state=0).fit(X)
draws = model.samples_["mean"][0]
exact = model.exact_samples(X, n_draws=100_000, random_state=1)
away = (draws.mean(axis=0) - exact.mean.mean(axis=0)) / exact.mean.std(axis=0)
print(f"mean of the draws: off by {np.abs(away).max():.3f} posterior deviations at most")
print(f"their spread: {np.round(draws.std(axis=0) / exact.mean.std(axis=0), 3)} of the exact one")
print(f"correlation {np.corrcoef(draws.T)[0, 1]:.3f}, exact {np.corrcoef(exact.mean.T)[0, 1]:.3f}")

# %%
# Many data sets: how often the ellipse covers the true mean
# ----------------------------------------------------------

LEVEL = 0.9
radius = stats.chi2(2).ppf(LEVEL)


def distance(point, draws):
    """Squared distance of a point from the draws' mean, in units of their covariance."""
    gap = point - draws.mean(axis=0)
    return gap @ np.linalg.solve(np.cov(draws.T), gap)


inside = []
for seed in range(N_SETS):
    fitted = BayesianGaussian(n_iter=2000, thin=5, random_state=seed).fit(make(1000 + seed))
    inside.append(distance(TRUTH, fitted.samples_["mean"][0]) < radius)
error = np.sqrt(LEVEL * (1 - LEVEL) / N_SETS)
print(f"{LEVEL:.0%} ellipses that cover the true mean: {np.mean(inside):.3f} of {N_SETS} (standard error {error:.3f})")

# %%
# The ellipse
# -----------

import matplotlib.pyplot as plt

angle = np.linspace(0.0, 2.0 * np.pi, 200)
circle = np.stack([np.cos(angle), np.sin(angle)])
figure, ax = plt.subplots()
ax.plot(*draws.T, ".", color="0.7", markersize=3, label="draws of the mean")
for sample, style, label in ((draws, "-", "90% ellipse, draws"), (exact.mean, "--", "90% ellipse, exact")):
    edge = sample.mean(axis=0)[:, None] + np.sqrt(radius) * np.linalg.cholesky(np.cov(sample.T)) @ circle
    ax.plot(*edge, style, label=label)
ax.plot(*TRUTH, "*", markersize=12, label="true mean")
ax.set(xlabel="first column", ylabel="second column", aspect="equal")
ax.legend(loc="upper left")
plt.show()

# %%
# **The ellipse of the draws is close to the exact one, and about nine in ten of the 90% ellipses cover the true mean.**
