"""What a report shows: numbers and texts, computed from a fitted topic model and documents."""

from __future__ import annotations

import re
import warnings
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from ...covariates.effects import effects_of
from ...topic._results import documents, topics
from ...utils._numbers import interval_tails
from ...utils._tables import aligned, checked_names, declared_levels
from ...utils._warnings import warn_user
from .._similarity import checked_distance, distances_between, names_of_content, scaled_positions

_MOST_GROUPS = 50  # largest number of groups of documents
_SEARCHED, _IN_LABEL, _IN_SHORT = 50, 4, 2  # words of a topic: found by the search, in its label, and on the map
_RELATED = 3  # number of similar topics, and of correlated ones, that are listed
_MOST_CONTRASTS = 12  # largest number of contrasts of a covariate that are shown


@dataclass
class Interval:
    """Means and ends of intervals, arrays of one shape."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of_draws(cls, draws, tails):
        """From draws, over their first axis."""
        return cls(*documents.spread(draws, tails))

    @classmethod
    def of_table(cls, table, mean, shape):
        """From a table with columns ``low``, ``high`` and the column ``mean``."""
        return cls(*(np.asarray(table[name], dtype=np.float64).reshape(shape) for name in (mean, "low", "high")))

    def __getitem__(self, place):
        return Interval(self.mean[place], self.low[place], self.high[place])

    @property
    def ends(self):
        """Mean, low and high."""
        return self.mean, self.low, self.high


@dataclass
class Split:
    """Shares of topics by time or group, (n_topics, n_times).

    Groups also have differences, (n_topics, n_compared), between the groups ``compared`` and what is named ``against``.
    """

    values: np.ndarray
    n_documents: np.ndarray
    share: Interval
    compared: list = field(default_factory=list)
    against: str = ""
    difference: Interval | None = None

    @property
    def is_ordered(self):
        """Whether the values are numbers or dates, so that lines between them have a meaning."""
        return self.values.dtype.kind in "iufM" and self.values.size > 2


@dataclass
class Effect:
    """Differences in the prevalence of topics, (n_topics, n_compared), between values of a covariate and a reference.

    ``notes`` are warnings about them.
    """

    covariate: str
    compared: list
    against: str
    difference: Interval
    notes: list


@dataclass
class Contents:
    """All that a report shows. Arrays have an entry for each topic shown; ``topics`` are their numbers in the model."""

    model: str
    interval: float
    n_documents: int
    n_filled: int
    n_words: int
    n_draws: int
    n_share_draws: int
    n_chains: int
    topics: np.ndarray
    labels: list
    short_labels: list
    n_unused: int
    words: list
    word_interval: Interval
    word_unit: str
    other_words: dict
    searched: list
    share: Interval
    quality: dict
    distance: str
    distances: np.ndarray
    positions: np.ndarray
    correlation: Any
    documents: list
    proportion: Interval
    texts: list
    has_texts: bool
    times: Split | None = None
    groups: Split | None = None
    of: str = "population"
    has_periods: bool = False
    effects: list = field(default_factory=list)
    outcome: Interval | None = None
    words_by_group: dict = field(default_factory=dict)
    keyword_rate: dict = field(default_factory=dict)
    n_topics: list = field(default_factory=list)
    checks: list = field(default_factory=list)
    diagnostics: Any = None
    chain_distances: Any = None
    chains_agree: Any = None
    reference_chain: int = 0
    stability: Any = None


def named(estimator, labels, feature_names):
    """A copy of the estimator with the given names of topics and words."""
    out, n_words = copy(estimator), estimator.components_.shape[1]
    if feature_names is not None:
        out._feature_names = checked_names(feature_names, n_words)
    elif np.asarray(out._word_names(n_words)).dtype.kind not in "OU":
        out._feature_names = np.array([f"word {j}" for j in range(n_words)], dtype=object)
    if labels is not None:
        try:
            out.topic_names_ = labels
        except (TypeError, ValueError) as error:
            raise type(error)(f"`labels` must be names of the topics: {error}") from None
    return out


def gather(estimator, X, shown, texts, *, metadata, groups, times, n_bins, of, interval, n_words, n_documents):
    """Compute the `Contents` of a report on the topics ``shown``, indices of topics of a fitted model."""
    params = {} if metadata is None else {"metadata": metadata}
    metadata, groups, times, texts = aligned(X, metadata=metadata, groups=groups, times=times, texts=texts)
    estimator._refuse_unknown(params, "topic_report")
    counts, filled = estimator._filled(X, **params)
    texts = documents.checked_texts(texts, filled.size)
    groups = None if groups is None else _checked_groups(groups, filled.size)
    times = None if times is None else documents.checked_times(times, filled.size, n_bins)
    draws = estimator._draws_to_average(X, np.zeros(filled.size), 0, params)
    tails, names = interval_tails(interval), estimator._word_names(estimator.components_.shape[1])
    apart = distances_between(estimator.components_[shown], checked_distance(estimator, None))
    chosen = documents.candidates(np.asarray(estimator._transform(X, **params)), counts, n_documents)[shown]
    means = np.mean([each[chosen, shown[:, None]] for each in draws], axis=0)
    chosen = documents.most_typical(chosen, means, n_documents)
    proportion = np.stack([each[chosen, shown[:, None]] for each in draws])

    def weights(index):
        return documents.random_weights(counts, index, len(draws), 0) if of == "population" else None

    return Contents(
        model=type(estimator).__name__,
        interval=interval,
        n_documents=filled.size,
        n_filled=int(filled.sum()),
        n_words=estimator.components_.shape[1],
        n_draws=estimator.samples_["components"].shape[1],
        n_share_draws=len(draws),
        topics=shown,
        labels=_labels(estimator, shown, names, _IN_LABEL),
        short_labels=_labels(estimator, shown, names, _IN_SHORT),
        n_unused=len(estimator.components_) - shown.size,
        **_words_of(estimator, shown, n_words, interval),
        searched=[[str(names[w]) for w in topics.largest(row, _SEARCHED)] for row in estimator.components_[shown]],
        share=Interval.of_draws(documents.mean_proportions(draws, filled)[:, shown], tails),
        quality=_quality(estimator, counts, draws, filled, interval, shown),
        distance=checked_distance(estimator, None),
        distances=apart,
        positions=scaled_positions(apart),
        correlation=_correlation(draws, filled, shown, tails),
        documents=chosen,
        proportion=Interval.of_draws(proportion, tails),
        texts=[[_text(texts, counts, names, d) for d in row] for row in chosen.tolist()],
        has_texts=texts is not None,
        times=None if times is None else _over_times(draws, *times, filled, shown, tails, weights(times[1])),
        groups=None if groups is None else _by_groups(draws, *groups, filled, shown, tails, weights(groups[1])),
        of=of,
        has_periods=n_bins is not None,
        **_of_model(estimator, X, params, of, shown, interval, n_words),
        **_convergence(estimator, shown),
    )  # fmt: skip


# -- words and names -------------------------------------------------------------------------------------------------


def _labels(estimator, shown, names, n_words):
    """Names that the user set, else top words."""
    top = [", ".join(str(names[w]) for w in topics.largest(row, n_words)) for row in estimator.components_[shown]]
    if estimator._given_topic_names is None:
        return top
    default = topics.default_names(estimator.components_, names)
    given = names_of_content(estimator, shown)
    return [words if name in ("", default[k]) else name for k, name, words in zip(shown, given, top, strict=True)]


def _words_of(estimator, shown, n_words, interval):
    """The words of topics with their intervals, and further lists of words without numbers, by their titles."""
    table = estimator.top_words(n_words, interval)
    n_topics = len(estimator.components_)
    unit = "probability" if "probability" in table else "weight"
    words = np.asarray(table["word"], dtype=object).reshape(n_topics, -1)[shown]
    values, others = Interval.of_table(table, unit, (n_topics, -1))[shown], {}
    if unit == "weight":  # directions, of which half of the words are the most absent ones
        n = words.shape[1] // 2
        words, others["Words that are rarer than on average"] = words[:, :n], words[:, n:]
        values = values[:, :n]
    else:
        frex = estimator.top_words(min(n_words, 10), None, by="frex")
        others["Distinctive words (FREX)"] = np.asarray(frex["word"], dtype=object).reshape(n_topics, -1)[shown]
    return {"words": words, "word_interval": values, "word_unit": unit, "other_words": others}


def _text(texts, counts, names, d):
    """The text of document d, with single spaces; without texts its most frequent words and their counts."""
    if texts is not None:
        text = texts.iloc[d] if hasattr(texts, "iloc") else texts[d]
        return "" if text is None or text != text else re.sub(r"\s+", " ", str(text)).strip()
    row = counts[[d]].tocsr()
    order = np.lexsort((row.indices, -row.data))[:30]
    return [(str(names[row.indices[i]]), float(row.data[i])) for i in order if row.data[i] > 0]


# -- shares ----------------------------------------------------------------------------------------------------------


def _quality(estimator, counts, draws, filled, interval, shown):
    """Coherence and exclusivity of topics, by name; empty for topics that are not probabilities of words."""
    if not hasattr(estimator, "topic_info"):
        return {}
    table = documents.info_table(
        estimator.components_, counts, documents.mean_proportions(draws, filled), np.zeros(len(estimator.components_)),
        estimator.chains_agree_, 1, interval, estimator._word_names(estimator.components_.shape[1]),
        estimator.topic_names_,
    )  # fmt: skip
    return {name: np.asarray(table[name])[shown] for name in ("coherence", "exclusivity")}


def _correlation(draws, filled, shown, tails):
    """Correlations between the topics shown, (n_topics, n_topics); None if there are too few documents or topics."""
    if filled.sum() < 3 or shown.size < 2:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        each = [np.nan_to_num(np.corrcoef(one[filled][:, shown], rowvar=False)) for one in draws]
    return Interval.of_draws(np.stack(each), tails)


def _over_times(draws, times, index, filled, shown, tails, weights):
    means, held, n_docs = documents.means_by_time(draws, index, filled, times.size, weights)
    values = documents.starts_of_periods(times[held])
    return Split(values, n_docs, Interval.of_draws(np.swapaxes(means[..., shown], 1, 2), tails))


def _checked_groups(groups, n_docs):
    """Groups in order, and the index of each document in them."""
    levels, values = declared_levels(groups), np.asarray(groups)
    if values.shape != (n_docs,):
        raise ValueError(f"groups has shape {values.shape}; pass one group for each of the {n_docs} documents of X.")
    values = values.tolist()
    missing = sum(value is None or value != value for value in values)
    if missing:
        raise ValueError(f"groups holds {missing} missing values; replace them, for example by 'unknown'.")
    found = set(values)
    if len(found) > _MOST_GROUPS:
        raise ValueError(
            f"groups holds {len(found)} different values; pass at most {_MOST_GROUPS}, for example the most frequent "
            "ones and 'other'. Pass numbers and dates as times=."
        )
    if levels is None:
        is_one_kind = len({isinstance(value, str) for value in found}) == 1
        levels = sorted(found) if is_one_kind else sorted(found, key=str)
    levels = [level for level in levels if level in found]
    place = {level: i for i, level in enumerate(levels)}
    return np.array([str(level) for level in levels], dtype=object), np.array([place[value] for value in values])


def _by_groups(draws, names, index, filled, shown, tails, weights):
    """Shares by group; differences compare two groups, or each of several groups with all other documents."""
    means, held, n_docs = documents.means_by_time(draws, index, filled, names.size, weights)
    names = names[held]
    split = Split(names, n_docs, Interval.of_draws(np.swapaxes(means[..., shown], 1, 2), tails))
    if names.size == 2:
        split.compared, split.against = [names[1]], names[0]
        differences = (means[:, 1] - means[:, 0])[:, None]
    elif names.size > 2:
        split.compared, split.against = list(names), "all others"
        pairs = [documents.means_by_time(draws, (index == g).astype(int), filled, 2, weights)[0] for g in held]
        differences = np.stack([pair[:, 1] - pair[:, 0] for pair in pairs], axis=1)
    else:
        return split
    split.difference = Interval.of_draws(np.swapaxes(differences[..., shown], 1, 2), tails)
    return split


# -- what only some models have ----------------------------------------------------------------------------------------


def _of_model(estimator, X, params, of, shown, interval, n_words):
    """Effects of covariates, coefficients of an outcome, words by group, keywords, and the number of topics."""
    found = {}
    if hasattr(estimator, "effects") and estimator._encoder.levels:
        found["effects"] = _effects(estimator, X, params, of, shown, interval)
    if hasattr(estimator, "contrast"):  # topics that explain an outcome
        table = estimator.coef_table(interval)
        rows = np.asarray(table["term"]) == "topic"
        columns = {name: np.asarray(table[name])[rows] for name in ("mean", "low", "high")}
        found["outcome"] = Interval.of_table(columns, "mean", -1)[shown]
    if getattr(estimator, "content_components_", None) is not None:
        found["words_by_group"] = {
            str(group): np.asarray(
                estimator.top_words(min(n_words, 10), None, group=group)["word"], dtype=object
            ).reshape(len(estimator.components_), -1)[shown]
            for group in estimator.groups_
        }
    if getattr(estimator, "_fitted_keywords", None) is not None:
        table = estimator.keyword_table(interval)
        columns = zip(*(np.asarray(table[name]).tolist() for name in ("topic", "rate", "low", "high")), strict=True)
        found["keyword_rate"] = {k: ends for k, *ends in columns}
    if hasattr(estimator, "n_topics_posterior"):
        table = estimator.n_topics_posterior()
        found["n_topics"] = list(zip(np.asarray(table["n_topics"]).tolist(), np.asarray(table["probability"]).tolist(),
                                     strict=True))  # fmt: skip
    return found


def _effects(estimator, X, params, of, shown, interval):
    """The `Effect` of each covariate.

    The regressions are on the fitted documents if their topics were recorded, else on X.
    """
    is_known = estimator._recorded_counts() is not None and estimator._observed is not None
    X, metadata = (None, None) if is_known else (X, params.get("metadata"))
    comparison = estimator._comparison(of, X, metadata)
    comparison = comparison._replace(made=cache(comparison.made))  # the regressions are the same for all covariates
    found = []
    for covariate, levels in zip(estimator._encoder.covariates, estimator._encoder.levels, strict=True):
        at = None if levels is None else list(levels[: _MOST_CONTRASTS + 1])
        if at is not None and len(at) < 2:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = effects_of(
                comparison, covariate, at, kind="difference", reference=None, pairwise=False, interval=interval
            )
        notes = [str(each.message) for each in caught if each.category is UserWarning]
        for note in notes:
            warn_user(note)
        shape = (len(estimator.components_), -1)
        values, references = (np.asarray(table[name]).reshape(shape)[0] for name in ("value", "reference"))
        difference = Interval.of_table(table, "difference", shape)[shown]
        compared = [_plain(value) for value in values]
        found.append(Effect(str(covariate), compared, _plain(references[0]), difference, notes))
    return found


def _plain(value):
    return f"{value:g}" if isinstance(value, float) else str(value)


# -- convergence -------------------------------------------------------------------------------------------------------


def _convergence(estimator, shown):
    definitions = {each.name: each for each in estimator._check_definitions}
    agree = estimator.chains_agree_[:, shown]
    return {
        "checks": [(check, definitions.get(check.name)) for check in getattr(estimator, "_check_results", [])],
        "diagnostics": getattr(estimator, "diagnostics_", None),
        "n_chains": len(agree),
        "chain_distances": estimator.chain_distances_[:, shown],
        "chains_agree": agree,
        "reference_chain": estimator.reference_chain_,
        "stability": estimator.topic_stability_[shown],
    }


def related(contents):
    """For each topic the most similar topics and the most correlated ones, as places among those shown."""
    n = contents.topics.size
    near = [
        [j for j in np.argsort(row, kind="stable") if j != i][:_RELATED] for i, row in enumerate(contents.distances)
    ]
    if contents.correlation is None:
        return near, [[] for _ in range(n)]
    mean, low, _ = contents.correlation.ends
    together = [
        [j for j in np.argsort(-mean[i], kind="stable") if j != i and low[i, j] > 0.0][:_RELATED] for i in range(n)
    ]
    return near, together
