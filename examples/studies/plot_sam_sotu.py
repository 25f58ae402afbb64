"""
Which words do the topics of presidents stand for, and against?
===============================================================

Twenty topics, each a direction in the space of words, for paragraphs of the State of the Union addresses, which come
with this package (`sk_sgmcmc.datasets.load_sotu`), by `SGGMC` on minibatches of 50, and by variational inference.

In the user guide: :doc:`/user_guide/sphere`.
"""

# %%
# tf-idf rows of unit length
# --------------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer

from sk_sgmcmc import SphericalAdmixtureModel
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.datasets import load_sotu

data = load_sotu()
often = np.sort(np.argsort(-np.asarray(data.counts.sum(axis=0)).ravel(), kind="stable")[:2000])
rows = TfidfTransformer(sublinear_tf=True).fit_transform(data.counts[:, often])
rows, words = rows[np.diff(rows.indptr) > 10], data.feature_names[often]
X, X_test = rows[::3], rows[1::120]
print(f"{X.shape[0]} rows of {X.shape[1]} words to fit, {X_test.shape[0]} to score")

# %%
# How soon is the fit good?
# -------------------------
# Log-perplexity of the current topics alone, by annealed importance sampling over the proportions of each held-out row:
# minus the log density of a direction. The constants are the published ones, except for the step size, which is derived
# from the curvature.

constants = {"kappa0": 1e4, "kappa1": 3e4, "sigma": 1e4, "doc_topic_prior": 10.0, "random_state": 0}
methods = {
    "SGGMC, minibatches of 50": {"batch_size": 50, "n_iter": 160},
    "VI": {"sampler": "vi", "n_iter": 60},
}
figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
models = {}
for name, params in methods.items():
    trace = HeldOutScore(X_test, every=params["n_iter"] // 5)
    models[name] = SphericalAdmixtureModel(20, callbacks=trace, **constants, **params).fit(X)
    seconds, score = (np.array(models[name].trace_[part]) for part in ("seconds", "score"))
    axis.plot(seconds, -score, "o-", label=name)
    print(f"{name}: log-perplexity {-score[-1]:.0f} after {seconds[-1]:.1f} s")
axis.set(xlabel="seconds of fitting", ylabel="held-out log-perplexity")
axis.legend()
plt.show()

# %%
# Words for and against
# ---------------------
# The entries of a direction with their 90% intervals, for the topics with the largest shares of the documents.

sam = models["SGGMC, minibatches of 50"]
table = sam.top_words(5, interval=0.9, feature_names=words)
topic, kind, word, low, high = (np.asarray(table[name]) for name in ("topic", "kind", "word", "low", "high"))
for k in np.argsort(-sam.transform(X[::20]).mean(axis=0))[:8]:
    present, against = (word[(topic == k) & (kind == which)] for which in ("present", "absent"))
    print(f"{k:2d}  for {' '.join(present):50s} against {' '.join(against)}")
sure = np.where(kind == "present", low > 0, high < 0)
print(f"{sure.mean():.0%} of the words shown have an interval that does not hold 0")

# %%
# **Each topic shows which words it stands against, and how certainly: the one on the nation's debt is for debt and
# treasury, and against the words of legislation. Four passes of minibatches end near the log-perplexity of variational
# inference, which reads all rows at every step.**
