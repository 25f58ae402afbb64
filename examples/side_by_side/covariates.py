"""Topics whose prevalence depends on party and year: words, effect of the party, course by party, typical posts."""

import pandas as pd

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.datasets import make_count_vectorizer
from sk_sgmcmc.inspection import PrevalenceDisplay

posts = pd.read_csv("posts.csv")
vectorizer = make_count_vectorizer(min_df=10)
X = vectorizer.fit_transform(posts["text"])
model = DMRTopicModel(20, formula="~ party * bs(year, df=6)", random_state=1)
model.fit(X, metadata=posts, feature_names=vectorizer.get_feature_names_out())
print(model.top_words(7, by="frex", format="wide"))
print(model.effects("party"))
PrevalenceDisplay.from_estimator(model, "year", by="party").figure_.savefig("years.pdf")
print(model.representative_docs(X, posts["text"], n=3))
