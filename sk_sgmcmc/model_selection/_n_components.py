"""Choice of the number of topics or latent classes, by held-out score and quality of topics or classes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
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
from ..utils._warnings import warnings_about

_ROW_PARAMS = ("metadata", "sample_weight")  # parameters of ``fit`` that have a row for each row of X


def _divided(X, by_row, **options):
    """Training and test rows of X, and of tables or dicts of columns ``by_row``, as from `train_test_split`."""
    columns = {
        (name, key): column
        for name, table in by_row.items()
        for key, column in (table.items() if isinstance(table, Mapping) else [(None, table)])
    }
    train, test, *parts = train_test_split(X, *columns.values(), **options)
    found = []
    for some in (parts[::2], parts[1::2]):
        rows = {name: {} for name in by_row}
        for (name, key), part in zip(columns, some, strict=True):
            rows[name][key] = part
        found.append(
            {name: rows[name] if isinstance(table, Mapping) else rows[name][None] for name, table in by_row.items()}
        )
    return train, test, *found


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
    """Fit a model with several numbers of topics or latent classes, and compare the fits on the same held-out rows.

    Parameters
    ----------
    estimator : BayesianLDA, DMRTopicModel, GammaProcessTopicModel, LatentClassModel, or Pipeline that ends in one
        Model to fit; a clone is fitted with each ``n_components``. The other steps of a Pipeline are fitted once,
        without the held-out documents.
    X : array-like or sparse of shape (n_samples, n_features), or input of the first step of a Pipeline
        Counts of words in documents, or rows of a table for `LatentClassModel`.
    values : list of int
        Numbers of topics or classes to compare.
    test_size : float or int, default=0.1
        Share, or number, of the documents held out, as in `sklearn.model_selection.train_test_split`.
    n_words : int, default=10
        Number of top words of a topic for coherence, exclusivity and diversity.
    n_jobs : int or None, default=None
        Number of fits in parallel, as in joblib. It does not affect the results.
    random_state : int, RandomState instance or None, default=0
        Seed of the choice of held-out documents. Fits use the ``random_state`` of ``estimator``.
    **fit_params
        Parameters of ``fit`` of the model, such as ``feature_names``, and ``metadata`` and ``sample_weight``, which are
        split like X.

    Returns
    -------
    table : DataFrame, or Bunch of columns if pandas is not installed
        One row per entry of ``values``, in the same order:

        ``n_components``
            Number of topics.
        ``score``, ``standard_error``, ``perplexity``
            Score of the held-out documents, its standard error and perplexity; see
            `document_completion <sk_sgmcmc.metrics.document_completion>`.
        ``difference``, ``difference_error``
            The score minus the best score, and the standard error of this difference, from paired differences of
            documents. Compare models by this error. ``standard_error`` is too large for that, because documents
            differ far more from each other than two models do on the same document.
        ``coherence``, ``exclusivity``, ``stability``
            Means over topics: NPMI of the top words in all documents, share of the probability of the top words that
            belongs to the topic, and similarity over draws (and chains).
        ``diversity``
            Share of distinct words among the top words of all topics.
        ``seconds``
            Duration of the fit.

        For `LatentClassModel`, ``score`` is the mean log predictive density of a held-out row. In place of
        ``perplexity`` and the columns on topics, there are ``entropy`` (relative entropy of the classification of the
        fitted rows: 1 if all classes are certain, 0 if nothing is known), ``smallest_class`` (posterior mean of the
        smallest share) and ``n_warnings`` (number of checks that fired).

    Notes
    -----
    The held-out score of these models rarely decreases with more topics. If ``difference`` is within two errors of 0,
    the smaller number of topics predicts as well. Coherence, exclusivity and stability then indicate which topics are
    easier to interpret.

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.model_selection import search_n_components
    >>> X = make_lda(
    ...     n_samples=300, n_features=60, n_components=4, random_state=0
    ... ).counts
    >>> table = search_n_components(
    ...     BayesianLDA(n_iter=60, random_state=0), X, [2, 4, 8]
    ... )
    >>> bool(table["score"][1] > table["score"][0])
    True

    Pass texts to a Pipeline:

    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> texts = [
    ...     "the sea and the fish",
    ...     "the moon and the star",
    ...     "fish of the sea",
    ...     "star and moon",
    ... ] * 20
    >>> pipeline = make_pipeline(
    ...     CountVectorizer(), BayesianLDA(n_iter=30, random_state=0)
    ... )
    >>> search_n_components(pipeline, texts, [2, 3])["n_components"].tolist()
    [2, 3]

    Compare numbers of latent classes:

    >>> import numpy as np
    >>> from sk_sgmcmc import LatentClassModel
    >>> answers = (
    ...     np.random.default_rng(0).random((200, 6))
    ...     < np.repeat([[0.9], [0.1]], 100, axis=0)
    ... ).astype(int)
    >>> table = search_n_components(
    ...     LatentClassModel(n_iter=200, random_state=0), answers, [1, 2]
    ... )
    >>> (
    ...     bool(table["score"][1] > table["score"][0]),
    ...     bool(table["entropy"][1] > 0.8),
    ... )
    (True, True)
    """
    values = list(values) if np.iterable(values) else [values]
    if not values or not all(is_count(value) for value in values) or len(set(values)) < len(values):
        raise ValueError(f"values={values!r} must be different whole numbers of at least 1, such as [10, 20, 40].")
    *steps, model = (step for _, step in estimator.steps) if isinstance(estimator, Pipeline) else (estimator,)
    has_topics, has_classes = (hasattr(model, name) for name in ("_completion", "_classification"))
    if isinstance(model, type) or not (has_topics or has_classes):
        raise TypeError(
            "search_n_components needs a topic model of counts, such as BayesianLDA(), a LatentClassModel(), or a "
            f"Pipeline that ends in one; got {model!r}."
        )
    X = np.asarray(X) if isinstance(X, (list, tuple)) else X
    by_row = {name: fit_params[name] for name in _ROW_PARAMS if fit_params.get(name) is not None}
    by_row = dict(zip(by_row, aligned(X, **by_row), strict=True))
    train, test, train_rows, test_rows = _divided(X, by_row, test_size=test_size, random_state=random_state)
    for step in steps:
        if step is not None and not isinstance(step, str):  # skip None and "passthrough"
            step = clone(step)
            train, test, X = step.fit_transform(train), step.transform(test), step.transform(X)
    given = {name: value for name, value in fit_params.items() if name not in by_row}
    evaluated = _evaluated if has_topics else _classified
    fits = Parallel(n_jobs=n_jobs)(
        delayed(evaluated)(clone(model).set_params(n_components=int(value)), train, test, {**given, **train_rows},
                           test_rows, X, by_row, n_words)
        for value in values
    )  # fmt: skip
    return as_table(_of_topics(values, fits) if has_topics else _of_classes(values, fits, test_rows))


def _of_topics(values, fits):
    """The table of topic models, from what `_evaluated` returns for each value."""
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
    return {name: np.asarray(column) for name, column in columns.items()}


def _of_classes(values, fits, test_params):
    """The table of latent class models, from what `_classified` returns for each value."""
    weight = test_params.get("sample_weight")
    each = np.stack([densities for densities, _ in fits])
    weight = np.ones(each.shape[1]) if weight is None else np.asarray(weight, dtype=np.float64)
    share = weight / weight.sum()
    scores = each @ share
    apart = each - each[np.argmax(scores)]
    columns = {
        "n_components": values,
        "score": scores,
        "standard_error": _errors(each, share),
        "difference": apart @ share,
        "difference_error": _errors(apart, share),
    }
    columns |= {name: [found[name] for _, found in fits] for name in fits[0][1]}
    return {name: np.asarray(column) for name, column in columns.items()}


def _errors(values, share):
    """Standard errors of weighted means of rows of ``values``, (n_models,), whose columns have weights ``share``."""
    away = values - (values @ share)[:, None]
    n = max(2, share.size)
    return np.sqrt(n / (n - 1.0) * (away**2 @ share**2))


def _classified(model, train, test, fit_params, test_params, X, params, n_words):
    """Fit a model; return the log densities of held-out rows, and the quality of classes and duration by name."""
    began = time.perf_counter()
    with warnings_about(f"n_components={model.n_components}"):
        model.fit(train, **fit_params)
    seconds = time.perf_counter() - began
    given = {name: value for name, value in test_params.items() if name != "sample_weight"}
    of_train = {name: value for name, value in fit_params.items() if name in ("metadata", "sample_weight")}
    found = {**model._classification(train, **of_train), "seconds": seconds}
    return model.score_samples(test, **given), found


def _evaluated(model, train, test, fit_params, test_params, X, params, n_words):
    """Fit a model; return the completion of held-out documents, and the quality of topics and duration by name."""
    began = time.perf_counter()
    with warnings_about(f"n_components={model.n_components}"):
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
