"""Tables of the words of topics that differ between two groups of documents."""

import numpy as np

from ...utils._numbers import check_count, interval_ends
from ...utils._tables import as_table

_LEAST = 1e-30  # Smaller probabilities count as this one.


def contrasts(model, k, groups):
    """Draws of the log ratios of the words of topic ``k`` between two groups, (n_draws, n_words)."""
    first, second = (np.log(np.maximum(model._draws_in_group(g, k), _LEAST)) for g in groups)
    return first - second


def contrast_table(model, groups, topics, n, ends):
    """The table of `StructuralTopicModel.word_contrast`.

    Parameters
    ----------
    model : StructuralTopicModel
    groups : pair of int
        Indices of the groups.
    topics : sequence of int
    n : int
        Words for each group.
    ends : tuple of float
        Probabilities of the quantiles that bound an interval.
    """
    check_count("n", n)
    names, words = np.asarray(model.topic_names_, dtype=object), model._word_names(model.components_.shape[1])
    rows = {name: [] for name in ("topic", "name", "word", "log_ratio", "low", "high", "a", "b")}
    for k in topics:
        draws = contrasts(model, k, groups)
        mean = draws.mean(axis=0)
        score = mean / np.maximum(draws.std(axis=0), 1e-12)
        order = np.argsort(-score, kind="stable")
        first, last = order[:n], order[::-1][:n]
        chosen = np.concatenate([first[score[first] > 0], last[score[last] < 0]])
        low, high = interval_ends(draws[:, chosen].astype(np.float64), ends)
        found = {
            "topic": np.full(chosen.size, k), "name": np.full(chosen.size, names[k]), "word": words[chosen],
            "log_ratio": mean[chosen], "low": low, "high": high,
            "a": model.content_components_[groups[0], k, chosen], "b": model.content_components_[groups[1], k, chosen],
        }  # fmt: skip
        for name, values in found.items():
            rows[name].append(values)
    return as_table({name: np.concatenate(values) for name, values in rows.items()})
