"""Twenty topics: sizes and words, shares by month with intervals, typical posts, a map, a tree, the course of time."""

import numpy as np
import pandas as pd
from bertopic import BERTopic
from sklearn.feature_extraction.text import CountVectorizer
from umap import UMAP

posts = pd.read_csv("posts.csv", parse_dates=["date"])
docs = posts["text"].tolist()
vectorizer = CountVectorizer(stop_words="english", min_df=10)
reducer = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=1)
model = BERTopic(nr_topics=20, umap_model=reducer, vectorizer_model=vectorizer)
topics, _ = model.fit_transform(docs)
print(model.get_topic_info())
over_time = model.topics_over_time(docs, posts["date"], nr_bins=12)
documents = pd.DataFrame({"topic": topics, "period": pd.cut(posts["date"], 12)})
rng = np.random.default_rng(1)
draws = []
for _ in range(200):
    some = documents.sample(len(documents), replace=True, random_state=rng)
    draws.append(pd.crosstab(some["period"], some["topic"], normalize="index").stack())
shares = pd.concat(draws, axis=1)
print(pd.DataFrame({"share": shares.mean(axis=1), "low": shares.quantile(0.05, axis=1),
                    "high": shares.quantile(0.95, axis=1)}))  # fmt: skip
for topic, typical in model.get_representative_docs().items():
    print(topic, typical)
model.visualize_topics().write_html("map.html")
hierarchy = model.hierarchical_topics(docs)
model.visualize_hierarchy(hierarchical_topics=hierarchy).write_html("tree.html")
model.visualize_topics_over_time(over_time, top_n_topics=12).write_html("time.html")
