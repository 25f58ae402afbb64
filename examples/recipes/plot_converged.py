"""
Has the fit converged?
======================

After this page you can see whether a fit ran long enough and whether
its chains agree, read the warning of ``fit``, and choose a remedy. Do
this before you report an interval.

In the user guide: :doc:`/user_guide/converged`.
"""

# %%
# Fit four chains
# ---------------
# Chains with different starts show whether the data have one answer.
# Forty sweeps are too few, and ``fit`` warns. This page catches the
# warning to print it; in your own work, just read it.

import textwrap
import warnings

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.callbacks import HeldOutScore
from sk_sgmcmc.datasets import load_sotu

sotu = load_sotu()
recent = (sotu.metadata["year"] >= 1945).to_numpy()
X, words = sotu.counts[recent], sotu.feature_names
X_test, X_train = X[::10], X[[i % 10 > 0 for i in range(X.shape[0])]]

short = BayesianLDA(4, n_chains=4, n_iter=40, random_state=0)
short.set_params(callbacks=HeldOutScore(X_test, every=5))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    short.fit(X_train, feature_names=words)
for each in caught:
    for line in str(each.message).splitlines():
        print(textwrap.fill(line, 72))

# %%
# Read the checks
# ---------------
# The warning says which topics the chains do not agree on and what to
# try. ``checks_`` has all checks. A topic is the same in two chains if
# their Hellinger distance is at most 0.25; here are the largest ones.

checks = ["check", "value", "limit", "fired"]
print(short.checks_[checks].round(3).to_string(index=False))
print("distances:", short.chain_distances_.max(axis=0).round(2))

# %%
# Fit for longer
# --------------
# Use the ``n_iter`` that the warning suggests, or 2 to 5 times as many
# steps, until no check fires. If chains still disagree, use fewer
# topics or ``seed_words``.

longer = BayesianLDA(4, n_chains=4, n_iter=1000, random_state=0)
longer.set_params(callbacks=HeldOutScore(X_test, every=20))
longer.fit(X_train, feature_names=words)
print(longer.checks_[checks].round(3).to_string(index=False))
print("distances:", longer.chain_distances_.max(axis=0).round(2))

# %%
# Look at the traces
# ------------------
# The held-out score of a converged chain no longer rises.

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import TraceDisplay

trace = TraceDisplay.from_estimator(
    longer, x="step", name="1,000 steps"
)
TraceDisplay.from_estimator(
    short, x="step", name="40 steps", ax=trace.ax_
)
plt.show()

# %%
for name, model in (("40 steps", short), ("1,000 steps", longer)):
    agree = model.chains_agree_.all(axis=0)
    print(
        f"{name}: chains agree on {agree.sum()} of {agree.size} topics"
    )

# %%
# **A short chain can have a good score and topics that other chains do
# not find: compare the chains, not only the score.**
