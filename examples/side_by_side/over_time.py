"""Twenty topics: sizes and words, shares by month with intervals, typical posts, a map, a tree, the course of time."""

import pandas as pd

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_count_vectorizer
from sk_sgmcmc.inspection import TopicHierarchyDisplay, TopicMapDisplay, TopicsOverTimeDisplay

posts = pd.read_csv("posts.csv", parse_dates=["date"])
vectorizer = make_count_vectorizer(min_df=10)
X = vectorizer.fit_transform(posts["text"])
model = BayesianLDA(20, random_state=1).fit(X, feature_names=vectorizer.get_feature_names_out())
print(model.topic_info(X))
print(model.topics_over_time(X, posts["date"], n_bins=12))
print(model.representative_docs(X, posts["text"], n=3))
TopicMapDisplay.from_estimator(model, X).figure_.savefig("map.pdf")
TopicHierarchyDisplay.from_estimator(model).figure_.savefig("tree.pdf")
TopicsOverTimeDisplay.from_estimator(model, X, posts["date"], n_bins=12).figure_.savefig("time.pdf")
