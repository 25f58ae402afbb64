"""The number of topics, by held-out score and by what topics look like."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline

from ..metrics import coherence, exclusivity, paired_difference, topic_diversity
from ..utils import as_table
from ..utils._numbers import is_count
from ..utils._tables import aligned
from ..utils._typing import MatrixLike, Table

_ROW_PARAMS = ("metadata",)  # parameters of ``fit`` with a row for each document


def search_n_components(
    estimator: BaseEstimator,
    X: MatrixLike,
    values: Sequence[int],
    *,
    test_size: float = 0.1,
    n_words: int = 10,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
    **fit_params: Any,
) -> Table:
    """Fit a topic model with each of several numbers of topics, and compare them on the same held-out documents.

    Parameters
    ----------
    estimator : BayesianLDA, DMRTopicModel, GammaProcessTopicModel, or Pipeline that ends in one
        Parameters of all fits but ``n_components``; it is cloned, not fitted. The other steps of a Pipeline are fitted
        once, without the held-out documents.
    X : array-like or sparse of shape (n_samples, n_features), or what the first step of a Pipeline takes
        Counts.
    values : list of int
        Numbers of topics.
    test_size : float or int, default=0.1
        Share, or number, of the documents held out, as in `sklearn.model_selection.train_test_split`.
    n_words : int, default=10
        Top words of a topic for coherence, exclusivity and diversity.
    n_jobs : int or None, default=None
        Fits side by side, by joblib. The results do not depend on it.
    random_state : int, RandomState instance or None, default=0
        Chooses the held-out documents. The fits have the estimator's own.
    **fit_params
        What ``fit`` of the topic model takes: ``metadata``, divided as X is, and ``feature_names``.

    Returns
    -------
    table : DataFrame, or Bunch of columns if pandas is not installed
        One row per number, as in ``values``:

        ``n_components``
            Number of topics.
        ``score``, ``standard_error``, ``perplexity``
            Of the held-out documents, see `document_completion <sk_sgmcmc.metrics.document_completion>`.
        ``difference``, ``difference_error``
            The score minus the best score, and the standard error of that difference, computed from the differences
            document by document. Use this error to compare models. ``standard_error`` is too large for that, because
            documents differ far more from each other than two models do on one document.
        ``coherence``, ``exclusivity``, ``stability``
            Means over topics: NPMI of the top words in all documents, how much of the top words' probability is the
            topic's own, and likeness over draws (and chains).
        ``diversity``
            Share of distinct words among the top words of all topics.
        ``seconds``
            Of the fit.

    Notes
    -----
    The held-out score of these models seldom falls with more topics: where ``difference`` is within two errors of 0,
    fewer topics predict as well, and coherence, exclusivity and stability tell whether they can be read.

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.model_selection import search_n_components
    >>> X = make_lda(n_samples=300, n_features=60, n_components=4, random_state=0).counts
    >>> table = search_n_components(BayesianLDA(n_iter=60, random_state=0), X, [2, 4, 8])
    >>> bool(table["score"][1] > table["score"][0])
    True

    Texts, by a Pipeline:

    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> texts = ["the sea and the fish", "the moon and the star", "fish of the sea", "star and moon"] * 20
    >>> pipeline = make_pipeline(CountVectorizer(), BayesianLDA(n_iter=30, random_state=0))
    >>> search_n_components(pipeline, texts, [2, 3])["n_components"].tolist()
    [2, 3]
    """
    values = list(values) if np.iterable(values) else [values]
    if not values or not all(is_count(value) for value in values) or len(set(values)) < len(values):
        raise ValueError(f"values={values!r} must be different whole numbers of at least 1, such as [10, 20, 40].")
    *steps, model = (step for _, step in estimator.steps) if isinstance(estimator, Pipeline) else (estimator,)
    if isinstance(model, type) or not hasattr(model, "_completion"):
        raise TypeError(
            "search_n_components needs a topic model of counts, such as BayesianLDA(), or a Pipeline that ends in one; "
            f"got {model!r}."
        )
    X = np.asarray(X) if isinstance(X, (list, tuple)) else X
    by_row = {name: fit_params[name] for name in _ROW_PARAMS if fit_params.get(name) is not None}
    by_row = dict(zip(by_row, aligned(X, **by_row), strict=True))
    parts = train_test_split(X, *by_row.values(), test_size=test_size, random_state=random_state)
    train, test = parts[0], parts[1]
    for step in steps:
        if step is not None and not isinstance(step, str):  # None and "passthrough" are no steps
            step = clone(step)
            train, test, X = step.fit_transform(train), step.transform(test), step.transform(X)
    train_rows = dict(zip(by_row, parts[2::2], strict=True))
    test_rows = dict(zip(by_row, parts[3::2], strict=True))
    given = {name: value for name, value in fit_params.items() if name not in by_row}
    fits = Parallel(n_jobs=n_jobs)(
        delayed(_evaluated)(clone(model).set_params(n_components=int(value)), train, test, {**given, **train_rows},
                            test_rows, X, by_row, n_words)
        for value in values
    )  # fmt: skip
    completions = [completion for completion, _ in fits]
    best = max(completions, key=lambda completion: completion.score)
    differences = [paired_difference(completion, best) for completion in completions]
    columns = {
        "n_components": values,
        "score": [completion.score for completion in completions],
        "standard_error": [completion.standard_error for completion in completions],
        "perplexity": [completion.perplexity for completion in completions],
        "difference": [each.difference for each in differences],
        "difference_error": [each.standard_error for each in differences],
    }
    columns |= {name: [found[name] for _, found in fits] for name in fits[0][1]}
    return as_table({name: np.asarray(column) for name, column in columns.items()})


def _evaluated(model, train, test, fit_params, test_params, X, params, n_words):
    """The completion of held-out documents by a model fitted to others, and what its topics look like."""
    began = time.perf_counter()
    model.fit(train, **fit_params)
    seconds = time.perf_counter() - began
    topics = model.components_
    n_words = min(n_words, topics.shape[1])
    counts = model._filled(X, **params)[0]
    return model._completion(test, **test_params), {
        "coherence": float(coherence(topics, counts, n_words=n_words).mean()) if n_words > 1 else 0.0,
        "exclusivity": float(exclusivity(topics, n_words=n_words).mean()),
        "stability": float(model.topic_stability_.mean()),
        "diversity": float(topic_diversity(topics, n_words=n_words)),
        "seconds": seconds,
    }
