"""
Which words are rarer where a topic is present?
===============================================

A topic of LDA is a distribution over words, so it can make a word rare, but not more. A topic of the spherical
admixture model is a direction, whose entry for a word may be negative: documents with the topic use the word less than
others. Each entry has a 90% credible interval. Variational inference fits the same model without intervals.

In the user guide: :doc:`/user_guide/sphere`.
"""

# %%
# Unit vectors of words
# ---------------------
# tf-idf weights of the docstrings of NumPy, SciPy, scikit-learn, numba and joblib, the 1,000 most frequent words.

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split

from sk_sgmcmc import SphericalAdmixtureModel
from sk_sgmcmc.datasets import load_docstrings

N_TOPICS = 12

docstrings = load_docstrings()
often = np.sort(np.argsort(-np.asarray(docstrings.counts.sum(axis=0)).ravel(), kind="stable")[:1000])
counts = docstrings.counts[:, often]
X = TfidfTransformer(sublinear_tf=True).fit_transform(counts[np.asarray(counts.sum(axis=1)).ravel() > 20])
X, X_test = train_test_split(X[::2], test_size=0.1, random_state=0)
print(f"{X.shape[0]} docstrings of {X.shape[1]} words; {X_test.shape[0]} held out")

# %%
# Fit by minibatches and by variational inference
# -----------------------------------------------
# The sampler reads minibatches of 200. It learns how concentrated documents are around their mean direction
# (``kappa1``), and how many topics a document has (``doc_topic_prior``). Variational inference takes the values learnt.
# The gain is the log density of a held-out document beyond the density under a single topic.

sam = SphericalAdmixtureModel(
    N_TOPICS, kappa1="auto", doc_topic_prior="auto", batch_size=200, n_iter=400, random_state=0
).fit(X)
single = SphericalAdmixtureModel(1, kappa1="auto", n_iter=400, random_state=0).fit(X)
learnt = {name: float(sam.samples_[name].mean()) for name in ("kappa1", "doc_topic_prior")}
vi = SphericalAdmixtureModel(N_TOPICS, sampler="vi", n_iter=60, random_state=0, **learnt).fit(X)
for name in ("kappa1", "doc_topic_prior"):
    low, high = np.quantile(sam.samples_[name], [0.05, 0.95])
    print(f"{name}: {low:.4g} to {high:.4g}")
for name, model in {"SGGMC": sam, "variational inference": vi}.items():
    gain = model.score_samples(X_test) - single.score_samples(X_test)
    print(f"{name:22s} gain of a held-out document {gain.mean():.1f} ± {gain.std() / np.sqrt(len(gain)):.1f} nats")

# %%
# Words that are more frequent, and words that are rarer
# ------------------------------------------------------

table = sam.top_words(6, interval=0.9, feature_names=np.asarray(docstrings.feature_names)[often])
kind, topic, word, low, high = (np.asarray(table[name]) for name in ("kind", "topic", "word", "low", "high"))
sure_absent = (kind == "absent") & (high < 0)
for k in range(N_TOPICS):
    lines = {which: " ".join(word[(topic == k) & (kind == which)]) for which in ("present", "absent")}
    print(f"{k:3d}  {lines['present'][:60]:60s} | rarer: {lines['absent']}")
print(f"of {np.sum(kind == 'absent')} rarer words {sure_absent.sum()} have an interval below 0")

# %%
# Three topics with their intervals
# ---------------------------------

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3, sharex=True)
share = sam.transform(X).mean(axis=0)
for ax, k in zip(axes, np.argsort(-share)[:3], strict=True):
    rows = np.flatnonzero(topic == k)
    rows = np.concatenate([rows[:6], rows[6:][::-1]])  # present, then absent, the most absent last
    middle = np.asarray(table["weight"])[rows]
    at = -np.arange(len(rows))
    ax.hlines(at, low[rows], high[rows])
    ax.plot(middle, at, "o", markersize=3)
    ax.axvline(0.0, color="black", linewidth=0.7)
    ax.set_yticks(at, word[rows])
    ax.set_title(f"topic {k} ({share[k]:.0%})")
figure.supxlabel("entry of the direction, with its 90% interval")
plt.show()

# %%
# **Words of other fields: a topic on one part of the packages has negative entries for words of another, and nearly
# all of these intervals lie below 0.**
