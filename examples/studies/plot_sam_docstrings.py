"""
Which words does a topic of docstrings stand against?
=====================================================

A topic of LDA is a distribution over words, so at the least it makes a word very rare. A topic of the spherical
admixture model is a direction, whose entry for a word may be negative: where the topic is present, the word is
*absent*, more so than in documents at large. Here each entry has a 90% credible interval.

In the user guide: :doc:`/user_guide/sphere`.
"""

# %%
# Unit vectors of words
# ---------------------
# tf-idf weights of the docstrings of NumPy, SciPy, scikit-learn, numba and joblib, the 1000 most frequent words.

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split

from sk_sgmcmc import SphericalAdmixtureModel
from sk_sgmcmc.datasets import load_docstrings

SHARE = 1.0  # of the documents and steps; less is faster and less exact
N_TOPICS = 12

docstrings = load_docstrings()
often = np.sort(np.argsort(-np.asarray(docstrings.counts.sum(axis=0)).ravel(), kind="stable")[:1000])
counts = docstrings.counts[:, often]
X = TfidfTransformer(sublinear_tf=True).fit_transform(counts[np.asarray(counts.sum(axis=1)).ravel() > 20])
X, X_test = train_test_split(X[:: round(2 / SHARE)], test_size=0.1, random_state=0)
print(f"{X.shape[0]} docstrings of {X.shape[1]} words; {X_test.shape[0]} kept aside")

# %%
# Topics, and what they gain
# --------------------------
# Minibatches of 200; how concentrated documents are around their mean direction, and how many topics a document has,
# are learnt.

sam = SphericalAdmixtureModel(
    N_TOPICS, kappa1="auto", doc_topic_prior="auto", batch_size=200, n_iter=int(400 * SHARE), random_state=0
).fit(X)
alike = SphericalAdmixtureModel(1, kappa1="auto", n_iter=int(400 * SHARE), random_state=0).fit(X)
for name in ("kappa1", "doc_topic_prior"):
    low, high = np.quantile(sam.samples_[name], [0.05, 0.95])
    print(f"{name}: {low:.4g} to {high:.4g}")
gain = sam.score_samples(X_test) - alike.score_samples(X_test)
print(f"log density of a document kept aside beyond that of a single topic: {gain.mean():.1f} ± "
      f"{gain.std() / np.sqrt(len(gain)):.1f} nats")  # fmt: skip

# %%
# Words, present and absent
# -------------------------

table = sam.top_words(6, interval=0.9, feature_names=np.asarray(docstrings.feature_names)[often])
kind, topic, word, low, high = (np.asarray(table[name]) for name in ("kind", "topic", "word", "low", "high"))
sure_absent = (kind == "absent") & (high < 0)
for k in range(N_TOPICS):
    lines = {which: " ".join(word[(topic == k) & (kind == which)]) for which in ("present", "absent")}
    print(f"{k:3d}  {lines['present'][:60]:60s} | against: {lines['absent']}")
print(f"of {np.sum(kind == 'absent')} absent words {sure_absent.sum()} have an interval below 0")

# %%
# Four topics with their intervals
# --------------------------------

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 4, figsize=(10, 4), sharex=True, layout="constrained")
share = sam.transform(X).mean(axis=0)
for ax, k in zip(axes, np.argsort(-share)[:4], strict=True):
    rows = np.flatnonzero(topic == k)
    rows = np.concatenate([rows[:6], rows[6:][::-1]])  # present, then absent, the most absent last
    middle = np.asarray(table["weight"])[rows]
    at = -np.arange(len(rows))
    ax.hlines(at, low[rows], high[rows])
    ax.plot(middle, at, "o", markersize=3)
    ax.axvline(0.0, color="black", linewidth=0.7)
    ax.set_yticks(at, word[rows], fontsize="small")
    ax.set_title(f"topic {k}, {share[k]:.2f} of a document", fontsize="small")
plt.show()

# %%
# **Against words of other fields: linear algebra against "samples" and "estimator", scikit-learn's estimators against
# "matrix" and "sparse"; nearly all of the absent words have intervals below 0.**
