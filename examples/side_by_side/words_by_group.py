"""Words by which parties differ within a topic: words of one party, words that set them apart, a picture."""

import pandas as pd

from sk_sgmcmc import StructuralTopicModel
from sk_sgmcmc.datasets import make_count_vectorizer
from sk_sgmcmc.inspection import WordContrastDisplay

posts = pd.read_csv("posts.csv")
vectorizer = make_count_vectorizer(min_df=10)
X = vectorizer.fit_transform(posts["text"])
model = StructuralTopicModel(20, formula="~ party", content="party", random_state=1)
model.fit(X, metadata=posts, feature_names=vectorizer.get_feature_names_out())
print(model.top_words(7, group="D", format="wide"))
print(model.word_contrast("D", "R", n=5))
WordContrastDisplay.from_estimator(model, "D", "R").figure_.savefig("words.pdf")
