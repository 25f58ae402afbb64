"""
How do you put a topic model into a pipeline and a grid search?
===============================================================

After this page you can count words, fit topics and classify documents
in one pipeline of scikit-learn, and search over the parameters of all
steps. The estimators of this package are steps like any other.

In the user guide: :doc:`/user_guide/scoring` and
:doc:`/user_guide/which_sampler`.
"""

# %%
# Load texts and labels
# ---------------------
# The texts are docstrings, and the label is the package of each.

import numpy as np
import pandas as pd

from sk_sgmcmc.datasets import load_docstrings, make_count_vectorizer

docstrings = load_docstrings(
    packages=["numba", "numpy"], return_text=True
)
texts = np.array(docstrings.text, dtype=object)
package = np.asarray(docstrings.metadata["package"])
print(pd.Series(package).value_counts().to_string())

# %%
# Build the pipeline
# ------------------
# The classifier gets the topic proportions of each document. With
# ``memory``, another value of C does not fit the topics again.

import tempfile

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sk_sgmcmc import BayesianLDA

cache = tempfile.TemporaryDirectory()
pipeline = make_pipeline(
    make_count_vectorizer(min_df=5),
    BayesianLDA(n_iter=400, random_state=0),
    LogisticRegression(),
    memory=cache.name,
)

# %%
# Search
# ------
# Name a parameter by its step and two underscores, or a sampler's by
# ``bayesianlda__sampler__step_size``. Vocabulary and topics are fitted
# to the training part of each fold.

from sklearn.model_selection import GridSearchCV, StratifiedKFold

grid = {
    "bayesianlda__n_components": [5, 10, 20],
    "logisticregression__C": [0.1, 10.0],
}
folds = StratifiedKFold(3, shuffle=True, random_state=0)
search = GridSearchCV(pipeline, grid, scoring="accuracy", cv=folds)
search.fit(texts, package)
cache.cleanup()

# %%
# Compare the settings
# --------------------

names = {f"param_{name}": name.split("__")[1] for name in grid}
results = pd.DataFrame(search.cv_results_).rename(columns=names)
columns = ["n_components", "C", "mean_test_score", "std_test_score"]
print(results[columns].round(3).to_string(index=False))

# %%
# Plot the scores
# ---------------

import matplotlib.pyplot as plt

_, ax = plt.subplots()
for C, rows in results.groupby("C"):
    at, mean, sd = (rows[columns[i]] for i in (0, 2, 3))
    ax.errorbar(at, mean, sd / 3**0.5, capsize=3, label=f"C = {C:g}")
ax.set(xlabel="n_components", xticks=[5, 10, 20])
ax.set(ylabel="accuracy (mean ± s.e. of folds)")
ax.legend()
plt.show()

# %%
print(search.best_params_, f"accuracy {search.best_score_:.3f}")

# %%
# **One search finds the number of topics and the parameter of the
# classifier that go best with each other in these folds.**
