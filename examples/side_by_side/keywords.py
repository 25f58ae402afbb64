"""Topics by keywords: their words, how often keywords are used, a picture of this, differences between parties."""

import pandas as pd

from sk_sgmcmc import StructuralTopicModel
from sk_sgmcmc.datasets import make_count_vectorizer
from sk_sgmcmc.inspection import KeywordDisplay

posts = pd.read_csv("posts.csv")
vectorizer = make_count_vectorizer(min_df=10)
X = vectorizer.fit_transform(posts["text"])
keywords = {"Economy": ["tax", "market", "budget"], "War": ["war", "troops"]}
model = StructuralTopicModel(20, formula="~ party", keywords=keywords, random_state=1)
model.fit(X, metadata=posts, feature_names=vectorizer.get_feature_names_out())
print(model.top_words(10, format="wide"))
print(model.keyword_table())
print(model.effects("party"))
KeywordDisplay.from_estimator(model).figure_.savefig("keywords.pdf")
