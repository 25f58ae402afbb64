"""
Which topics are in the docstrings of scientific Python, and how certain are they?
==================================================================================

A topic model usually gives one number for each word in each topic. Here every number is a posterior mean with a 90%
credible interval: thirty topics of the docstrings of NumPy, SciPy, scikit-learn, numba and joblib, about 5,000
documents that come with this package's dependencies.

Run as a script, this page writes a picture and a table of the topics to the folder ``output``.

The guide has a page on :doc:`fitting topic models </user_guide/topic_models>`.
"""

# %%
# The corpus
# ----------
# One document in ten is held out, to measure how well the topics predict words to which they were not fitted.

from sklearn.model_selection import train_test_split

from sk_sgmcmc.datasets import load_docstrings

docstrings = load_docstrings()
X_train, X_test = train_test_split(
    docstrings.counts, test_size=0.1, random_state=0
)
print(docstrings.DESCR)

# %%
# Topics
# ------
# The defaults suffice: all documents fit in memory, so this is collapsed Gibbs sampling, whose draws are exact.

from time import perf_counter

from sk_sgmcmc import BayesianLDA

start = perf_counter()
lda = BayesianLDA(n_components=30, random_state=0).fit(
    X_train, feature_names=docstrings.feature_names
)
print(
    f"fitted in {perf_counter() - start:.0f} s, {lda.samples_['components'].shape[1]} draws kept"
)

# %%
# How good are they? Half of the tokens of each held-out document are shown, and the other half predicted, with the
# probability averaged over the draws. The second number is that of a model that knows only the frequencies of the
# words.

import numpy as np

from sk_sgmcmc.metrics import document_completion, split_tokens

observed, hidden = split_tokens(X_test)
frequencies = (X_train.sum(axis=0) + 0.01) / (
    X_train.sum() + 0.01 * X_train.shape[1]
)
for label, topics, prior in (
    ("topics", lda.samples_["components"][0], lda.doc_topic_prior_),
    (
        "frequencies of words",
        np.asarray(frequencies).reshape(1, -1),
        1.0,
    ),
):
    result = document_completion(
        observed, hidden, topics, doc_topic_prior=prior
    )
    error = result.perplexity * result.standard_error
    print(
        f"held-out perplexity, {label}: {result.perplexity:.0f} ± {error:.0f} (standard error)"
    )

# %%
# The table
# ---------
# Posterior mean of each probability, the interval, and the share of draws in which the word is among the ten most
# probable of its topic.

table = lda.top_words(
    10, interval=0.9, feature_names=docstrings.feature_names
)
print(
    table.head(10).to_string(
        index=False, float_format=lambda value: f"{value:.3f}"
    )
)

# %%
# The picture
# -----------
# Topics in the order of their share of the corpus, which is given in brackets.

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import TopicWordsDisplay

share = lda.transform(X_train).mean(axis=0)
order = np.argsort(-share)
display = TopicWordsDisplay.from_estimator(
    lda,
    n_words=7,
    topics=order,
    feature_names=docstrings.feature_names,
    n_columns=6,
)
for i, (ax, k) in enumerate(zip(display.axes_, order, strict=True)):
    ax.set_xlim(
        0, 1.05 * display.high[i].max()
    )  # a scale of its own, so that the intervals are visible
    ax.set_title(
        f"topic {k} ({100 * share[k]:.1f}%)",
        loc="left",
        fontsize=10,
        fontweight="bold",
    )

# %%

import sys
import tempfile
from pathlib import Path

# While the gallery is built, the files go to a temporary folder.
folder = Path(
    tempfile.mkdtemp() if "sphinx_gallery" in sys.modules else "output"
)
folder.mkdir(parents=True, exist_ok=True)
display.figure_.savefig(folder / "topics.png", dpi=120)
table.to_csv(folder / "topics.csv", index=False)
print(
    f"picture: {folder / 'topics.png'}\ntable:   {folder / 'topics.csv'}"
)
plt.show()

# %%
sure = (table["top_probability"] > 0.95).mean()
print(
    f"{100 * sure:.0f}% of the words shown are among the top ten of their topic in more than 95% of the draws"
)

# %%
# **The topics more than halve the perplexity of unseen docstrings, and three in four of their words are beyond doubt;
# for the last ones of each list, whose intervals overlap, the corpus is inconclusive.**
