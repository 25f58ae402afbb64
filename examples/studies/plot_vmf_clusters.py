"""
Does a mixture of directions find the handwritten digits better than KMeans?
============================================================================

An image of a digit drawn more lightly is the same digit: only its direction as a vector of pixels matters.
`VonMisesFisherMixture` gives each cluster a von Mises-Fisher distribution, with a concentration of its own.
`~sklearn.cluster.KMeans` on the same unit rows finds clusters of equal width.

In the user guide: :doc:`/user_guide/sphere`.
"""

# %%
# Three ways to ten clusters
# --------------------------
# The digits have several good clusterings, and a chain stays near the one that it found. ``fit`` then warns that the
# draws have not converged. The scores of five seeds show how different these clusterings are, so the page switches the
# warnings off.

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.preprocessing import normalize

from sk_sgmcmc import VonMisesFisherMixture

warnings.filterwarnings("ignore", category=ConvergenceWarning)

SEEDS = range(5)
N_ITER = 200

digits = load_digits()
X = normalize(digits.data)
methods = {
    "KMeans, raw pixels": lambda seed: KMeans(10, n_init=3, random_state=seed).fit(digits.data),
    "KMeans, unit rows": lambda seed: KMeans(10, n_init=3, random_state=seed).fit(X),
    "von Mises-Fisher, one kappa": lambda seed: VonMisesFisherMixture(
        10, kappa=100.0, n_iter=N_ITER, random_state=seed
    ).fit(X),
    "von Mises-Fisher": lambda seed: VonMisesFisherMixture(10, n_iter=N_ITER, random_state=seed).fit(X),
}
fitted = {}
print(f"{'':28s}{'adjusted Rand index':>22s}{'mutual information':>22s}    mean and sd over {len(SEEDS)} seeds")
for label, fit in methods.items():
    models = [fit(seed) for seed in SEEDS]
    fitted[label] = models[0]
    scores = [
        [score(digits.target, model.labels_) for model in models]
        for score in (adjusted_rand_score, normalized_mutual_info_score)
    ]
    print(f"{label:28s}" + "".join(f"{np.mean(s):15.3f} ± {np.std(s):.3f}" for s in scores))

# %%
# What else a mixture provides
# ----------------------------
# Each cluster's concentration with an interval, and how certain each row's cluster is, given the clustering that this
# chain found.

mixture = fitted["von Mises-Fisher"]
low, high = np.quantile(mixture.samples_["kappas"][0], [0.05, 0.95], axis=0)
sure = mixture.transform(X).max(axis=1)
right = np.array([np.bincount(digits.target[mixture.labels_ == k], minlength=10).argmax() for k in range(10)])
agrees = right[mixture.labels_] == digits.target
for bottom, top in ((0.0, 0.9), (0.9, 0.999), (0.999, 1.1)):
    these = (sure >= bottom) & (sure < top)
    share = agrees[these].mean() if these.any() else np.nan
    print(f"rows whose cluster has probability {bottom:5.3f} to {min(top, 1):5.3f}: {these.sum():5d}, of its "
          f"majority's digit {share:.2f}")  # fmt: skip

# %%
# Mean directions
# ---------------

import matplotlib.pyplot as plt

figure, axes = plt.subplots(2, 5, figsize=(7, 3.4))
for k, ax in enumerate(axes.flat):
    ax.imshow(mixture.means_[k].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"$\\kappa$ {low[k]:.0f} to {high[k]:.0f}")
    ax.set_axis_off()
plt.show()

# %%
# **No: KMeans agrees with the digits at least as well. But the mixture shows which of its labels are uncertain, and
# rows in uncertain clusters have the digit of the cluster's majority much less often than the others.**
