"""
Does a mixture on a stream notice when groups come and go?
==========================================================

Rows of 0 and 1 arrive in blocks of 300. At first they come from two groups; a third appears, and later the first
disappears. ``partial_fit`` takes block after block, and nothing says how many groups there are. With
``total_samples=900``, all earlier rows together weigh as much as the last three blocks.

In the user guide: :doc:`/user_guide/mixtures`.
"""

# %%
# The stream
# ----------

import numpy as np

from sk_sgmcmc import DPCategoricalMixture

rng = np.random.default_rng(0)
profiles = np.where(rng.random((3, 16)) < 0.5, 0.85, 0.15)
presence = np.zeros((20, 3))
presence[:, 1] = 1.0
presence[:12, 0] = 1.0
presence[6:, 2] = 1.0
blocks, groups = [], []
for there in presence:
    group = rng.choice(3, 300, p=there / there.sum())
    groups.append(group)
    blocks.append((rng.random((300, 16)) < profiles[group]).astype(float))

# %%
# Fitting
# -------
# Components are matched to the true groups only for the plot. A group counts as found while the clusters nearest to its
# profile weigh more than 5%.

weights, n_clusters = np.zeros((len(blocks), 3)), []
model = DPCategoricalMixture(likelihood="bernoulli", total_samples=900, random_state=0)
for b, X in enumerate(blocks):
    model.partial_fit(X)
    of_draw = model.samples_["weights"][0]
    components = model.samples_["components"][0]
    nearest = np.abs(components[:, :, None, :] - profiles).sum(axis=3).argmin(axis=2)
    weights[b] = [(of_draw * (nearest == g)).sum(axis=1).mean() for g in range(3)]
    n_clusters.append(int(np.sum(model.weights_ > 0.05)))
born = next((b for b in range(6, 20) if weights[b, 2] > 0.05), None)
dead = next((b for b in range(12, 20) if weights[b, 0] < 0.05), None)
print(f"clusters above 5% after each block: {n_clusters}")
print(f"the third group appears in block 6 and is found after block {born}")
print(f"the first group is last seen in block 11 and weighs less than 5% after block {dead}")
labels = model.predict(blocks[-1])
right = sum(np.bincount(groups[-1][labels == c]).max() for c in np.unique(labels))
print(f"in the last block {100 * right / 300:.1f}% of the rows are in the cluster of their group")

# %%
# Weights of the groups, and number of clusters
# ---------------------------------------------

import matplotlib.pyplot as plt

figure, axes = plt.subplots(2, 1, sharex=True, height_ratios=(2.5, 1))
for g in range(3):
    axes[0].plot(presence[:, g] / presence.sum(axis=1), color=f"C{g}", ls=":", lw=1)
    axes[0].plot(weights[:, g], "o-", ms=4, color=f"C{g}", label=f"group {g}")
axes[0].set(ylabel="weight (dotted: in the block)", ylim=0)
axes[0].legend(loc="upper right", ncols=3)
axes[1].step(range(len(blocks)), n_clusters, where="mid")
axes[1].set(xlabel="block", ylabel="clusters", ylim=0, xticks=range(0, 20, 2), yticks=range(5))
plt.show()

# %%
# **A new group becomes a cluster of its own soon after it appears, and one that disappears loses its weight block by
# block, at the pace that** ``total_samples`` **sets.**
