"""
Which topics are in the docstrings of scientific Python?
========================================================

After this page you can fit topics to word counts, check that they
predict documents that were not fitted, and write a table and a picture
of their words with 90% credible intervals. The documents are docstrings
of NumPy, SciPy, scikit-learn, numba and joblib.

Run as a script, this page writes ``topics.csv`` and ``topics.png`` to
the folder ``output``.

In the user guide: :doc:`/user_guide/topic_models`.
"""

# %%
# Load the documents
# ------------------
# One document in ten is held out.

from sklearn.model_selection import train_test_split

from sk_sgmcmc.datasets import load_docstrings

docstrings = load_docstrings()
words = docstrings.feature_names
X_train, X_test = train_test_split(
    docstrings.counts, test_size=0.1, random_state=0
)
print(f"{X_train.shape[0]} docstrings, {len(words)} words")

# %%
# Fit
# ---
# The defaults suffice. All documents fit in memory, so ``fit`` runs
# collapsed Gibbs sampling.

from sk_sgmcmc import BayesianLDA

lda = BayesianLDA(30, random_state=0).fit(X_train, feature_names=words)
print(f"{lda.samples_['components'].shape[1]} draws")

# %%
# Score held-out documents
# ------------------------
# Half of the tokens of each document are shown and the others are
# predicted. One topic for all documents only knows how frequent words
# are.

one = BayesianLDA(1, random_state=0, n_iter=100).fit(X_train)
topics, unigram = lda.perplexity(X_test), one.perplexity(X_test)
print(f"held-out perplexity with topics: {topics:.0f}")
print(f"held-out perplexity with one topic: {unigram:.0f}")

# %%
# Read the table
# --------------
# ``top_probability`` is the share of draws in which the word is among
# the ten most probable of its topic.

table = lda.top_words(10, interval=0.9)
print(table.head(10).to_string(index=False, float_format="%.3f"))

# %%
# Plot the largest topics
# -----------------------

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import TopicWordsDisplay

share = lda.topic_info(X_train)["share"]
largest = share.nlargest(9).index.tolist()
display = TopicWordsDisplay.from_estimator(
    lda, topics=largest, n_words=7, n_columns=3
)
# The build of the gallery must leave no files behind.
building = "sphinx_gallery" in sys.modules
folder = Path(tempfile.mkdtemp() if building else "output")
folder.mkdir(parents=True, exist_ok=True)
display.figure_.savefig(folder / "topics.png")
table.to_csv(folder / "topics.csv", index=False)
print(sorted(file.name for file in folder.glob("topics.*")))
plt.show()

# %%
sure = (table["top_probability"] > 0.95).mean()
print(f"perplexity divided by {unigram / topics:.1f}")
print(f"{sure:.0%} of the words are among the top ten in 95% of draws")

# %%
# **The topics predict unseen docstrings better than the frequencies of
# words do. Where the intervals of two words overlap, their order is
# open.**
