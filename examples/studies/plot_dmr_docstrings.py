"""
How do the docstrings of NumPy, SciPy and scikit-learn differ?
==============================================================

`DMRTopicModel` fits one set of topics to the docstrings of five packages and lets their prevalence follow the package
and the kind of a document (a function, a class, a method, a module), with intervals for every difference: a structural
topic model of documents that come with this package's dependencies.

The guide has a page on :doc:`covariates </user_guide/covariates>`.
"""

# %%
# The corpus
# ----------
# Metadata are a table of categorical columns.

from time import perf_counter

import numpy as np
from sklearn.model_selection import train_test_split

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.datasets import load_docstrings

docstrings = load_docstrings()
metadata = {name: np.asarray(docstrings.metadata[name]) for name in ("package", "kind")}
train, test = train_test_split(np.arange(docstrings.counts.shape[0]), test_size=0.1, random_state=0)


def rows(some):
    """Metadata of some documents."""
    return {name: column[some] for name, column in metadata.items()}


# %%
# Fitting
# -------
# The model takes metadata along with X; held-out documents are scored with theirs. Little is known of short texts
# except where they come from, so they gain most.

N_TOPICS, N_ITER = 20, 150
start = perf_counter()
X = docstrings.counts
dmr = DMRTopicModel(N_TOPICS, n_iter=N_ITER, random_state=0).fit(X[train], metadata=rows(train))
print(f"fitted in {perf_counter() - start:.0f} s")
lda = BayesianLDA(N_TOPICS, n_iter=N_ITER, random_state=0).fit(X[train])
lengths = np.asarray(X[test].sum(axis=1)).ravel()
for label, some in (("all", test), ("under 20 words", test[lengths < 20]), ("20 and more", test[lengths >= 20])):
    print(
        f"held-out perplexity, {label:15s} LDA {lda.perplexity(X[some]):6.0f}   "
        f"DMR {dmr.perplexity(X[some], metadata=rows(some)):6.0f}"
    )

# %%
# The differences
# ---------------
# How much more of a topic one package has than another, with the kinds of documents left as they are.

words = docstrings.feature_names[np.argsort(-dmr.components_, axis=1)[:, :4]]
packages = np.array(["numpy", "scipy", "sklearn"])
table = dmr.prevalence_difference({**metadata, "package": np.full(X.shape[0], "sklearn")},
                                  {**metadata, "package": np.full(X.shape[0], "scipy")})  # fmt: skip
order = np.argsort(np.asarray(table["difference"]))
print("\nshare of a topic, scikit-learn less SciPy, with 90% intervals")
for k in [*order[:4], *order[-4:]]:
    values = [np.asarray(table[column])[k] for column in ("difference", "low", "high")]
    print(f"  {values[0]:+.3f} ({values[1]:+.3f} to {values[2]:+.3f})  {', '.join(words[k])}")

# %%
# Prevalence of each topic in the functions of three packages:

import matplotlib.pyplot as plt

functions = {"package": packages, "kind": np.full(3, "function")}
mean, low, high = dmr.predict_prevalence(functions, interval=0.9)
figure, ax = plt.subplots(figsize=(9, 7), layout="constrained")
order = np.argsort(mean[2] - mean[1])
for i, package in enumerate(packages):
    y = np.arange(N_TOPICS) + 0.22 * (i - 1)
    spread = np.abs(np.stack([low[i], high[i]]) - mean[i])[:, order]
    ax.errorbar(mean[i, order], y, xerr=spread, fmt="o", ms=4, lw=1, color=f"C{i}", label=package)
ax.set_yticks(np.arange(N_TOPICS), [", ".join(words[k]) for k in order], fontsize=8)
ax.set(xlabel="expected share of a function's docstring, with 90% interval", xlim=(0, None))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# **They differ in most of their topics, far beyond the intervals; and knowing the package helps most where a docstring
# is short.**
