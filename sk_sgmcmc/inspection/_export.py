"""Conversion of draws and topics for ArviZ and pyLDAvis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ..topic._base import BaseTopicModel
from ..topic._estimator.model import CountTopicModel
from ..topic._results.topics import default_names
from ..utils._seeds import seed_sequence
from ..utils._tables import aligned
from ..utils._typing import AnyArray, MatrixLike, Seed
from ._similarity import topic_positions

# Names of the axes of draws of topic models, and of other estimators. ArviZ names all other axes.
_OF_TOPICS = {
    "components": ["topic", "word"], "doc_topic_prior": ["topic"], "weights": ["topic"], "coef": ["topic", "term"],
    "dispersion_coef": ["topic", "term"], "keyword_rate": ["keyword_topic"],
}  # fmt: skip
_OF_OTHERS = {
    "coef": ["class", "feature"], "intercept": ["class"], "mean": ["feature"], "precision": ["feature", "feature_2"],
    "means": ["component", "feature"], "weights": ["component"], "kappas": ["component"],
    "components": ["component", "entry"],
}  # fmt: skip


def _names(estimator, feature_names):
    n_features = estimator.samples_["components"].shape[-1]
    if feature_names is None and isinstance(estimator, BaseTopicModel):  # excludes columns of metadata
        feature_names = estimator._word_names(n_features).astype(str)
    elif feature_names is None:
        given = getattr(estimator, "_feature_names", None)
        feature_names = getattr(estimator, "feature_names_in_", np.empty(0)) if given is None else given
        # With categorical features, components have an entry for each category and names do not fit.
        feature_names = feature_names if len(feature_names) == n_features else np.arange(n_features).astype(str)
    names = np.asarray(feature_names, dtype=object)
    if names.shape != (n_features,):
        raise ValueError(f"feature_names has shape {names.shape}; it must hold {n_features} names.")
    return names.astype(str)


def check_count_model(estimator, who):
    """Raise unless an estimator is a fitted topic model whose topics are probabilities of words."""
    if not isinstance(estimator, CountTopicModel):
        raise TypeError(
            f"{who} shows topics that are probabilities of words, which {type(estimator).__name__} does not have; "
            "give a topic model of counts, such as BayesianLDA."
        )
    check_is_fitted(estimator)


def _columns(estimator, words, names):
    """Column indices of the requested ``words``, or None for all; ascending if it is a number of top words."""
    if words is None:
        return None
    if isinstance(words, (int, np.integer)) and not isinstance(words, bool):
        if words < 1:
            raise ValueError(f"words={words} must be at least 1 top word of each topic.")
        if not hasattr(estimator, "components_"):
            raise ValueError(
                f"words={words}: {type(estimator).__name__} has no average of components, whose labels change from "
                "draw to draw; give names or indices of columns."
            )
        top = np.argsort(-estimator.components_, axis=1, kind="stable")[:, :words]
        return np.unique(top)
    words = np.atleast_1d(np.asarray(words))
    if words.dtype.kind in "iu":
        bad = words[(words < 0) | (words >= names.size)]
        columns = words
    else:
        place = {name: i for i, name in enumerate(names)}
        bad = [word for word in words.astype(str) if word not in place]
        columns = np.array([place.get(word, 0) for word in words.astype(str)], dtype=int)
    if len(bad) or not len(columns):
        raise ValueError(
            f"words={list(bad)[:5]} are not among the {names.size} words; give names or indices of columns."
        )
    return columns


def to_arviz(
    estimator: Any,
    X: MatrixLike | None = None,
    y: ArrayLike | None = None,
    *,
    words: int | ArrayLike | None = None,
    feature_names: Sequence[str] | AnyArray | None = None,
    exposure: ArrayLike | None = None,
    random_state: Seed = 0,
) -> Any:
    """Convert draws to the data structure of ArviZ, with named axes.

    Parameters
    ----------
    estimator : fitted estimator, or result of `sk_sgmcmc.sample`
        Object with draws in ``samples_``.
    X : array-like, sparse or DataFrame of shape (n_samples, n_features), default=None
        Rows for the groups ``log_likelihood`` and ``posterior_predictive``, usually the rows passed to ``fit``. Topic
        models do not accept X, since the probability of a document integrates over its proportions and is known only
        approximately. Compare them by ``score``.
    y : array-like of shape (n_samples,), default=None
        Labels or responses, if the estimator has them.
    words : int, array-like of str or array-like of int, default=None
        Words of topics to include: a number of top words of each topic, names, or indices of columns. None: all,
        without copying the draws. Most functions of ArviZ copy draws to float64, so choose some words if there are
        thousands.
    feature_names : array-like of str, default=None
        Names of the columns. None: the names passed to ``fit``, or the indices of the columns.
    exposure : float or array-like of shape (n_samples,), default=None
        Exposure of each count in y, as for `BayesianPoissonRegressor.fit <sk_sgmcmc.BayesianPoissonRegressor>`. None:
        1.
    random_state : None, int, RandomState, Generator or SeedSequence, default=0
        Seed of ``posterior_predictive``.

    Returns
    -------
    data : arviz.InferenceData (ArviZ 0.x) or xarray.DataTree (ArviZ 1.x)
        ``posterior`` contains all draws. Topics have the dimensions chain, draw, topic and word, with names as
        coordinates if words have names.

        ``sample_stats`` contains quantities of ``diagnostics_`` that are not part of the posterior, such as the log
        likelihood. They refer to the steps at which they were recorded, which need not be those of the posterior.
        Estimators that were loaded from a file do not have them. For `~sk_sgmcmc.samplers.NUTS` with
        `sk_sgmcmc.sample`, there are also energies, acceptance rates, depths, divergences and step sizes, under ArviZ's
        names.

        ``log_likelihood`` contains the log likelihood of each row, if X is passed (not for topic models), or if
        `~sk_sgmcmc.sample` received ``log_likelihood``. For linear models and `BayesianGaussian` there are also
        ``posterior_predictive`` and ``observed_data``.

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import to_arviz
    >>> X = make_lda(
    ...     n_samples=100, n_features=30, n_components=3, random_state=0
    ... ).counts
    >>> lda = BayesianLDA(
    ...     n_components=3, n_chains=2, n_iter=30, random_state=0
    ... ).fit(X)
    >>> to_arviz(lda, words=2).posterior["components"].dims  # doctest: +SKIP
    ('chain', 'draw', 'topic', 'word')
    """
    if not isinstance(estimator, Bunch):
        check_is_fitted(estimator)
    elif not isinstance(estimator.get("samples_"), dict):
        raise TypeError("to_arviz takes a fitted estimator or what sample returned, and this Bunch has no samples_.")
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ, which is not installed. Try `pip install arviz`.") from error
    # All draws rather than the thinned ``samples_``, since the log likelihood of rows has an entry for each of them.
    posterior = dict(getattr(estimator, "_all_samples", estimator.samples_))
    of_topics = isinstance(estimator, BaseTopicModel)
    dims = _OF_TOPICS if of_topics else {} if isinstance(estimator, Bunch) else _OF_OTHERS
    coords, columns = {}, None
    if "components" in posterior and not isinstance(estimator, Bunch):
        names = _names(estimator, feature_names)
        columns = _columns(estimator, words, names)
        if columns is not None:
            posterior["components"] = posterior["components"][..., columns]
        kept = names if columns is None else names[columns]
        if of_topics:
            coords = {"topic": _topic_names(estimator, names), "word": kept}
        else:
            coords = {"entry": kept}
    elif words is not None:
        raise ValueError(f"words={words!r} chooses words of topics, which {type(estimator).__name__} does not have.")
    if not hasattr(estimator, "_coords_of_draws"):
        coords |= _other_coords(estimator, posterior, feature_names)
    else:
        coords |= _coords_of_draws(estimator, columns)
        dims = dims | estimator._axes_of_draws
        if "keyword_rate" in posterior:
            coords["keyword_topic"] = coords["topic"][: posterior["keyword_rate"].shape[2]]
    groups = {"posterior": posterior}
    if stats := _sample_stats(estimator, posterior):
        groups["sample_stats"] = stats
    if isinstance(estimator, Bunch) and "log_likelihood_" in estimator:
        groups["log_likelihood"] = {"rows": estimator.log_likelihood_}
        dims = dims | {"rows": ["row"]} if estimator.log_likelihood_.ndim == 3 else dims
    if X is not None:
        groups |= _groups_of_rows(estimator, X, y, exposure, random_state)
        dims = dims | {"y": ["row"], "rows": ["row"], "x": ["row", "feature"]}
    elif y is not None or exposure is not None:
        name = "exposure" if y is None else "y"
        raise ValueError(f"{name} is given without X; give the rows X that it belongs to.")
    used = {name for group in groups.values() for name in group}
    # A regression has no axis of classes, so drop the leading names of axes that draws lack.
    ndim = {name: np.ndim(values) - 2 for name, values in posterior.items()}
    dims = {name: axes[max(0, len(axes) - ndim.get(name, len(axes))) :] for name, axes in dims.items() if name in used}
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, coords=coords, dims=dims)
    return arviz.from_dict(**groups, coords=coords, dims=dims)


def _coords_of_draws(estimator, columns):
    """Coordinates that an estimator gives its draws, of the chosen ``columns`` of components; None: all of them."""
    coords = estimator._coords_of_draws()
    return coords if columns is None or "entry" not in coords else coords | {"entry": coords["entry"][columns]}


def _topic_names(estimator, words):
    """Coordinates of topics: names that were set, or default names if words have names; else indices."""
    named = estimator._given_topic_names is not None
    if named or all(word.isdecimal() for word in words):
        return estimator.topic_names_ if named else np.arange(len(estimator.components_))
    return np.array(default_names(estimator.components_, words))


def _other_coords(estimator, posterior, feature_names):
    """Coordinates of classes and features."""
    coords = {}
    width = getattr(estimator, "n_features_in_", None)
    if width is not None and {"coef", "mean", "means"} & set(posterior):
        given = (
            feature_names if feature_names is not None else getattr(estimator, "feature_names_in_", np.arange(width))
        )
        names = np.asarray(given, dtype=object).astype(str)
        if names.shape != (width,):
            raise ValueError(f"feature_names has shape {names.shape}; it must hold {width} names.")
        coords["feature"] = names
        if "precision" in posterior:
            coords["feature_2"] = names
    if hasattr(estimator, "classes_"):
        classes = np.asarray(estimator.classes_)
        coords["class"] = classes[1:] if posterior["coef"].shape[2] == 1 else classes
    return coords


def _sample_stats(estimator, posterior):
    """Quantities of ``diagnostics_`` that are one number for each draw and not part of the posterior."""
    if isinstance(estimator, Bunch):
        found = {"lp": estimator.get("log_density_"), **estimator.get("sample_stats_", {})}
        shape = next(iter(posterior.values())).shape[:2]  # samplers other than NUTS record log densities at few draws
        return {name: value for name, value in found.items() if np.shape(value) == shape}
    chains = getattr(estimator, "_chains", None)
    if not chains or getattr(chains[0], "data", None) is None or chains[0].plan.streams:
        return {}
    found = {name: np.asarray(value) for name, value in estimator._monitored(chains).items()}
    # ArviZ reserves the name log_likelihood for the log likelihood of each row.
    found = {
        "mean_log_likelihood" if name == "log_likelihood" else name: value
        for name, value in found.items()
        if value.ndim == 2 and name not in posterior
    }
    # All arrays of a group must have the same number of draws: take the most frequent, and the posterior's in a tie.
    lengths = [value.shape[1] for value in found.values()]
    n_kept = next(iter(posterior.values())).shape[1]
    n_kept = max(lengths, key=lambda n: (lengths.count(n), n == n_kept), default=n_kept)
    return {name: value for name, value in found.items() if value.shape[1] == n_kept}


def _groups_of_rows(estimator, X, y, exposure, random_state):
    """The groups of ArviZ that need rows: log likelihood and, if available, predictive draws and observed data."""
    if isinstance(estimator, Bunch):
        raise ValueError("X is given, but estimator is a result of sample: pass log_likelihood= to sample instead.")
    if not hasattr(estimator, "_log_likelihood_draws"):
        raise ValueError(
            f"X is given, but {type(estimator).__name__} has no likelihood of a row in closed form; leave X out, and "
            "compare models by score(X)."
        )
    y, exposure = aligned(X, y=y, exposure=exposure)
    given = {} if exposure is None else {"exposure": exposure}
    if given and not getattr(estimator, "_has_exposures", False):
        raise ValueError(f"exposure is given, but {type(estimator).__name__} does not model counts; leave it out.")
    groups = {"log_likelihood": {"rows": estimator._log_likelihood_draws(X, y, **given)}}
    if hasattr(estimator, "_predictive_draws"):
        rng = np.random.default_rng(seed_sequence(random_state))
        name, values = estimator._predictive_draws(X, rng, **given)
        groups["posterior_predictive"] = {name: values}
        groups["observed_data"] = {name: np.asarray(X if y is None or name == "x" else y)}
        groups["log_likelihood"] = {name if name == "y" else "rows": groups["log_likelihood"]["rows"]}
    return groups


def to_pyldavis(
    estimator: BaseTopicModel, X: MatrixLike, *, feature_names: Sequence[str] | AnyArray | None = None, **params: Any
) -> dict[str, Any]:
    """Convert a fitted topic model to the arguments of ``pyLDAvis.prepare``.

    Parameters
    ----------
    estimator : fitted topic model
    X : array-like or sparse of shape (n_samples, n_features)
        Counts. Empty documents, and words that do not occur, are left out, since pyLDAvis divides by their totals.
    feature_names : array-like of str, default=None
        Names of the columns. None: ``feature_names_in_``, or the indices of the columns.
    **params
        Further arguments of ``transform``, such as ``metadata``.

    Returns
    -------
    arguments : dict
        Arguments for ``pyLDAvis.prepare(**arguments)``. Rows of distributions sum to 1 in float64. Positions are those
        of `TopicMapDisplay` with Jensen-Shannon distances. ``sort_topics=False`` keeps the order of the topics, but
        pyLDAvis counts from 1, so its topic 1 is topic 0 of the estimator. Do not pass ``start_index=0``: its page then
        shows wrong sizes of circles.

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import to_pyldavis
    >>> X = make_lda(
    ...     n_samples=100, n_features=30, n_components=3, random_state=0
    ... ).counts
    >>> lda = BayesianLDA(n_components=3, n_iter=30, random_state=0).fit(X)
    >>> to_pyldavis(lda, X)["doc_topic_dists"].shape
    (100, 3)
    """
    check_count_model(estimator, "to_pyldavis")
    names = _names(estimator, feature_names)
    counts = estimator._filled(X, **params)[0]
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    frequency = np.asarray(counts.sum(axis=0)).ravel()
    docs, words = np.flatnonzero(lengths > 0), np.flatnonzero(frequency > 0)
    if not docs.size:
        raise ValueError(f"All {lengths.size} documents of X are empty; pass the documents that were fitted.")
    proportions = np.asarray(estimator.transform(X, **params), dtype=np.float64)[docs]
    topics = np.asarray(estimator.components_, dtype=np.float64)[:, words]
    return {
        "topic_term_dists": topics / topics.sum(axis=1, keepdims=True),
        "doc_topic_dists": proportions / proportions.sum(axis=1, keepdims=True),
        "doc_lengths": lengths[docs].tolist(),
        "vocab": names[words].tolist(),
        "term_frequency": frequency[words].tolist(),
        "mds": topic_positions,
        "n_jobs": 1,
        "sort_topics": False,
    }
