"""
Do the intervals of a topic model's coefficients cover the truth?
=================================================================

`DMRTopicModel` estimates, with intervals, how the prevalence of topics follows metadata of the documents. Here small
corpora are drawn from the model itself, with coefficients drawn from their prior, so the truth is known. The metadata
of each document are a number and a yes-or-no answer. 90% of the 90% intervals should cover the truth.

``examples/reproduce/calibration.py`` does the same for all models and samplers, with more corpora.

In the user guide: :doc:`/user_guide/covariates` and :doc:`/user_guide/calibration`.
"""

# %%
# Fitting
# -------
# Topics have no numbers of their own, so those found are first matched with the true ones.

import numpy as np

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.datasets import make_dmr
from sk_sgmcmc.metrics import align_topics

N_SETS = 50
MASS = 0.9
PRIOR = {"metadata_prior_scale": 1.0, "intercept_prior_scale": 0.3, "doc_topic_prior": 0.3, "topic_word_prior": 0.1}


def fit(data, seed, n_iter=600):
    """Draws of the coefficients (n_draws, n_components, n_metadata + 1) and mean topics, numbered like the truth."""
    model = DMRTopicModel(3, n_iter=n_iter, thin=1, random_state=seed, **PRIOR).fit(data.counts, metadata=data.metadata)
    order = align_topics(data.components, model.components_)
    return model.samples_["coef"][0][:, order], model.components_[order]


truth, mean, low, high, distance = [], [], [], [], []
for seed in range(N_SETS):
    data = make_dmr(200, 60, 3, 2, 40, random_state=seed, **PRIOR)
    draws, topics = fit(data, seed)
    truth.append(data.coef)
    mean.append(draws.mean(axis=0))
    ends = np.quantile(draws, [(1 - MASS) / 2, (1 + MASS) / 2], axis=0)
    low.append(ends[0])
    high.append(ends[1])
    distance.append(np.abs(topics - data.components).sum(axis=1) / 2)
truth, mean, low, high, distance = map(np.array, (truth, mean, low, high, distance))

# %%
# Coverage
# --------

inside = (low <= truth) & (truth <= high)
of_set = inside.mean(axis=(1, 2))
error = of_set.std(ddof=1) / np.sqrt(N_SETS)
print(f"{N_SETS} corpora of 200 documents")
print(f"coverage of {100 * MASS:.0f}% intervals, all coefficients: {100 * inside.mean():.1f} ± {100 * error:.1f}%")
for t, name in enumerate(("intercepts", "the number", "yes or no")):
    print(f"  {name:11s} {100 * inside[..., t].mean():.1f}%")
print(f"correlation of posterior means with the truth: {np.corrcoef(mean.ravel(), truth.ravel())[0, 1]:.3f}")
print(
    f"topics, total variation distance to the truth: median {np.median(distance):.3f}, 95% below "
    f"{np.quantile(distance, 0.95):.3f}"
)

# %%
# Estimates and the truth
# -----------------------

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2, width_ratios=(1.6, 1))
for t, name in enumerate(("intercepts", "the number", "yes or no")):
    some = slice(0, 20)
    x, y = truth[some, :, t].ravel(), mean[some, :, t].ravel()
    spread = np.abs(np.stack([low[some, :, t].ravel(), high[some, :, t].ravel()]) - y)
    axes[0].errorbar(x, y, spread, fmt="o", ms=3, lw=0.7, color=f"C{t}", label=name)
axes[0].axline((0, 0), slope=1, color="0.3", lw=0.8)
axes[0].set(xlabel="true coefficient", ylabel="posterior mean and 90% interval")
axes[0].legend()
axes[1].hist(distance.ravel(), bins=20)
axes[1].set(xlabel="distance of a topic to the truth", ylabel="topics")
plt.show()

# %%
# **Nearly: slightly fewer than nine in ten of the 90% intervals cover the true coefficients, and the model finds the
# topics.**
