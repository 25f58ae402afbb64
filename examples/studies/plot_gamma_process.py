"""
Does it matter how the weights of a gamma process move?
=======================================================

A gamma process infers how many topics a corpus needs. Its weights can be drawn from their conditionals, or moved by
Hamiltonian samplers with a mass that is given or learnt. Here six samplers fit the same docstrings: how soon do they
predict unseen words well, and do they agree on the number of topics?

In the user guide: :doc:`/user_guide/gamma_process`.
"""

# %%
# The corpus
# ----------
# Every third docstring of scientific Python, with the 800 most frequent words. One document in ten is held out.

import numpy as np
from sklearn.model_selection import train_test_split

from sk_sgmcmc.datasets import load_docstrings

STRIDE, N_ITER = 3, 60
counts = load_docstrings().counts[::STRIDE]
often = np.sort(np.argsort(-np.asarray(counts.sum(axis=0)).ravel())[:800])
X_train, X_test = train_test_split(counts[:, often], test_size=0.1, random_state=0)
print(f"{X_train.shape[0]} documents, {X_train.sum():.0f} tokens")

# %%
# Six samplers of the weights
# ---------------------------
# Each sampler makes the same number of passes over the documents, and its current state is scored every second pass.
# Sixty passes show how soon each sampler predicts well, but are too few to converge. ``fit`` warns of that; the page
# switches the warnings off.

import warnings

from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import GammaProcessTopicModel
from sk_sgmcmc.callbacks import HeldOutScore

warnings.filterwarnings("ignore", category=ConvergenceWarning)

SAMPLERS = ["scir", "gibbs", "sghmc", "sgnht-em", "sg-nphmc-em", "sgr-nphmc"]
models, perplexities = {}, {}
for name in SAMPLERS:
    model = GammaProcessTopicModel(n_components=60, sampler=name, random_state=0)
    model.set_params(n_iter=2).fit(X_train[:50])  # loads the kernels, so that this is not timed
    model.set_params(n_iter=N_ITER, callbacks=HeldOutScore(X_test, every=2))
    models[name] = model.fit(X_train)
    perplexities[name] = model.perplexity(X_test)
    print(
        f"{name:12s} perplexity {perplexities[name]:6.1f} after {model.trace_['seconds'][-1]:4.1f} s, "
        f"{model.n_topics_} topics of at least 1% of the weight"
    )
spread = max(perplexities.values()) / min(perplexities.values()) - 1
print(f"largest perplexity over the smallest: {100 * spread:+.1f}%")

# %%
# Perplexity by passes, and the weights
# -------------------------------------
# On the right, means of the weights with 90% credible intervals.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 2)
for name, model in models.items():
    axes[0].plot(model.trace_["step"], np.exp(-np.array(model.trace_["score"])), label=name)
axes[0].set(xlabel="passes", ylabel="held-out perplexity of the current state")
axes[0].legend()
table = models["scir"].topic_weights(interval=0.9)
n_shown = models["scir"].n_topics_
weight, low, high = (np.asarray(table[column])[:n_shown] for column in ("weight", "low", "high"))
axes[1].errorbar(np.arange(n_shown), weight, [weight - low, high - weight], fmt="o", ms=3, lw=1)
axes[1].set(xlabel="topic", ylabel="weight", ylim=0)
plt.show()

# %%
# The number of topics
# --------------------

posterior = models["scir"].n_topics_posterior()
for number, probability in zip(posterior["n_topics"], posterior["probability"], strict=True):
    print(f"{number} topics: {probability:.2f}")

# %%
# **It hardly matters: all six reach nearly the same perplexity and number of topics, because the weights follow the
# assignments, which all six draw in the same way.**
