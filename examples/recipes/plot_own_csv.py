"""
How do you find topics in a CSV file of your own?
=================================================

After this page you can read texts from a CSV file, fit topics, compare
groups of documents, read the texts that show best what a topic is
about, and write the shares of each document to another file.

In the user guide: :doc:`/user_guide/data`.
"""

# %%
# Write an example file
# ---------------------
# Skip this step if you have a file. It needs a row for each document
# and a column of texts. Other columns may describe the documents.

import tempfile
from pathlib import Path

import pandas as pd

from sk_sgmcmc.datasets import load_sotu

path = Path(tempfile.mkdtemp()) / "documents.csv"
sotu = load_sotu(return_text=True)
table = sotu.metadata[["president", "party"]].assign(text=sotu.text)
table[sotu.metadata["year"] >= 1975].to_csv(path, index=False)

# %%
# Read the file
# -------------
# Put your path here, and the names of your columns below.

TEXT, GROUP = "text", "party"
documents = pd.read_csv(path).dropna(subset=[TEXT], ignore_index=True)
print(documents[GROUP].value_counts().to_string())

# %%
# Count the words and fit
# -----------------------
# Drop words in fewer than five documents. For texts in other languages,
# pass a list of ``stop_words``. :doc:`plot_number_of_topics` shows how
# to choose the number of topics.

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_count_vectorizer

vectorizer = make_count_vectorizer(min_df=5)
X = vectorizer.fit_transform(documents[TEXT])
words = vectorizer.get_feature_names_out()
lda = BayesianLDA(10, random_state=0).fit(X, feature_names=words)
info = lda.topic_info(X)[["name", "share", "low", "high"]]
print(info.to_string(index=False, float_format="%.3f"))

# %%
# Write the shares of each document
# ---------------------------------
# Each topic becomes a new column of your table. The column means differ
# slightly from the shares in ``topic_info``.

shares = pd.DataFrame(lda.transform(X), columns=lda.topic_names_)
result = pd.concat([documents, shares], axis=1)
result.to_csv(path.with_name("shares.csv"), index=False)
print(result.iloc[:3, -3:].to_string(float_format="%.2f"))

# %%
# Compare the groups
# ------------------
# Mean shares with 90% intervals, for the topics that differ most:

by_group = lda.topics_over_time(X, documents[GROUP])
spread = by_group.groupby("topic")["share"].agg(["min", "max"])
topics = spread.diff(axis=1)["max"].nlargest(3).index.tolist()
chosen = by_group[by_group["topic"].isin(topics)]
columns = ["name", "time", "share", "low", "high"]
print(chosen[columns].to_string(index=False, float_format="%.3f"))

# %%
# Read the texts
# --------------
# The documents with the largest shares of these topics:

import matplotlib.pyplot as plt

from sk_sgmcmc.inspection import TopicDocumentsDisplay

TopicDocumentsDisplay.from_estimator(
    lda, X, documents[TEXT], topics=topics, n=2
)
plt.show()

# %%
ends = by_group.groupby("topic").agg({"low": "max", "high": "min"})
apart = ends["low"] > ends["high"]
print(f"intervals are apart in {apart.sum()} of {len(apart)} topics")

# %%
# **Groups differ in a topic if their intervals are apart, and the texts
# say what the topic is about.**
