"""
Which topics fill the State of the Union addresses, and when?
=============================================================

A notebook of a whole analysis, from counts to conclusions: choose the number of topics, read and name them, find the
ones that matter for a question, join those that belong together, and follow them through the years. Each answer is one
call, and comes as a table or a picture with intervals.

The documents are every third paragraph of the addresses from 1790 to 2020, which come with this package as counts of
words (`sk_sgmcmc.datasets.load_sotu`); the president and the year stand in for the texts.

The guide has a page on :doc:`reading topics </user_guide/reading_topics>`.
"""

# %%
# The paragraphs
# --------------

import numpy as np

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import load_sotu
from sk_sgmcmc.inspection import (
    NumberOfTopicsDisplay,
    TopicMapDisplay,
    TopicsOverTimeDisplay,
    TopicWordsDisplay,
)
from sk_sgmcmc.model_selection import search_n_components

N_ITER, STRIDE = 150, 1

paragraphs = load_sotu()
times = np.asarray(paragraphs.metadata["year"])[::STRIDE]
presidents = np.asarray(paragraphs.metadata["president"])[::STRIDE]
texts = [
    f"{president}, {year}"
    for president, year in zip(presidents, times, strict=True)
]
X, words = paragraphs.counts[::STRIDE], paragraphs.feature_names
print(
    f"{X.shape[0]:,} documents, {X.shape[1]:,} words, {X.sum():,.0f} tokens"
)

# %%
# How many topics?
# ----------------
# Held-out score, exclusivity and stability of three numbers; this page goes on with twenty. The band shows two standard
# errors of the difference from the best. Every second paragraph is enough to see this.

search = search_n_components(
    BayesianLDA(n_iter=N_ITER, random_state=0),
    X[::2],
    [10, 20, 40],
    feature_names=words,
)
print(search.round(3).to_string(index=False))
NumberOfTopicsDisplay.from_search(search)

# %%
# Twenty topics
# -------------
# Words by FREX, frequent and exclusive at once, show best how topics differ.

lda = BayesianLDA(n_components=20, n_iter=N_ITER, random_state=0).fit(
    X, feature_names=words
)
print(
    lda.top_words(6, by="frex", format="wide").T.to_string(header=False)
)

# %%
# How large, coherent and stable they are, the largest first:

info = lda.topic_info(X)
print(
    info.sort_values("share", ascending=False)
    .head(8)
    .round(3)
    .to_string(index=False)
)

# %%
TopicMapDisplay.from_estimator(lda, X)

# %%
# One question
# ------------
# Which topics contain the word "economy", and which documents show what the first of them is about?

found = lda.find_topics("economy")
print(found.head(4).round(4).to_string(index=False))
topic = int(found["topic"].iloc[0])
docs = lda.representative_docs(X, texts, n=3)
docs = docs[docs["topic"] == topic]
print(
    "\n".join(
        f"{row.proportion:.2f} ({row.low:.2f} to {row.high:.2f})  {' '.join(row.text.split()):.80}"
        for row in docs.itertuples()
    )
)

# %%
# How certain are the proportions of one document? The shorter it is, the less:

lengths = np.asarray(X.sum(axis=1)).ravel()
by_length = np.argsort(lengths, kind="stable")[
    [len(lengths) // 20, len(lengths) // 2, -len(lengths) // 20]
]
draws = lda.transform_draws(
    X[by_length]
)  # (n_draws, n_documents, n_topics)
for i, document in enumerate(by_length):
    main = draws[:, i].mean(axis=0).argmax()
    low, high = np.quantile(draws[:, i, main], [0.05, 0.95])
    print(
        f"{lengths[document]:5.0f} tokens: its main topic has a proportion of {low:.2f} to {high:.2f}"
    )

# %%
# Joining and naming
# ------------------
# Topics that occur in the same documents are candidates to be joined. They are joined in every draw, so that all
# intervals remain right.

together = lda.topic_correlation(X).sort_values(
    "correlation", ascending=False
)
print(together.head(3).round(2).to_string(index=False))
pair = together[["topic_a", "topic_b"]].iloc[0].tolist()
merged = lda.merge_topics([pair])
frex = merged.top_words(3, by="frex", format="wide")
merged.topic_names_ = [" ".join(frex[name]) for name in frex]
print(
    f"{pair} became one of {len(merged.topic_names_)}: {merged.topic_names_[min(pair)]}"
)

# %%
# The words of the six largest topics, under their new names:

shares = merged.topic_info(X)["share"]
largest = shares.sort_values(ascending=False).index[:6].tolist()
TopicWordsDisplay.from_estimator(
    merged, topics=largest, n_words=6, n_columns=3
)

# %%
# Through the years
# -----------------

import matplotlib.pyplot as plt

over_time = merged.topics_over_time(X, times, n_bins=12)
by_topic = over_time.groupby("topic")["share"]
changed = (
    (by_topic.max() - by_topic.min())
    .sort_values(ascending=False)
    .index[:6]
    .tolist()
)
peaks = over_time.loc[
    by_topic.idxmax()[changed], ["name", "time", "share", "low", "high"]
]
print(
    peaks.round({"share": 3, "low": 3, "high": 3}).to_string(
        index=False
    )
)
TopicsOverTimeDisplay.from_estimator(
    merged, X, times, topics=changed, n_bins=12, n_columns=3
)
plt.show()

# %%
# **Each age has its own: blessings and wisdom in the first years, treaties with Britain and others early in the
# nineteenth century, federal agencies in the 1960s, freedom and crime since the 1980s, and schools around 2000. The
# intervals are far narrower than these changes; those of single short paragraphs are wide.**
