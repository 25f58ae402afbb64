"""Numbers of topics compared on the same held-out words, with errors of the differences, coherence and exclusivity."""

import pandas as pd

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_count_vectorizer
from sk_sgmcmc.inspection import NumberOfTopicsDisplay
from sk_sgmcmc.model_selection import search_n_components

X = make_count_vectorizer(min_df=10).fit_transform(pd.read_csv("posts.csv")["text"])
table = search_n_components(BayesianLDA(random_state=1), X, [10, 20, 40, 80])
print(table)
NumberOfTopicsDisplay.from_search(table).figure_.savefig("search.pdf")
