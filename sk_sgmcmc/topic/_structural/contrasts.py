"""Tables of the words of topics that differ between two groups of documents."""

import numpy as np

from ...utils._numbers import checked_count, interval_ends
from ...utils._tables import as_table

_LEAST = 1e-30  # Smaller probabilities count as this one.


class Contrasts:
    """Log ratios of the words of topics between two groups, in the draws of all chains that agree on a topic.

    Draws are made one after the other, since all of them may not fit in memory.

    Parameters
    ----------
    draws : ConditionalDraws
        Of topics of forms.
    agree : ndarray of bool, shape (n_chains, n_topics)
        Which chains agree on each topic.
    groups : pair of int
    n_groups : int
    topics : ndarray of int
    """

    def __init__(self, draws, agree, groups, n_groups, topics):
        self.draws, self.agree, self.groups, self.n_groups, self.topics = draws, agree, groups, n_groups, topics

    def __iter__(self):
        """Pairs of the places of topics that a chain agrees on, and their log ratios, (n_topics, n_words)."""
        for c, s in np.ndindex(*self.draws.shape[:2]):
            own = np.flatnonzero(self.agree[c, self.topics])
            words = self.draws.kept_draw(c, s)[self.topics[own]]
            first, second = (np.log(np.maximum(words[:, g :: self.n_groups], _LEAST)) for g in self.groups)
            yield own, first - second

    def moments(self):
        """Means and standard deviations over draws, both (n_topics, n_words)."""
        n = np.zeros((self.topics.size, 1))
        total, squares = np.zeros((2, self.topics.size, self.draws.shape[3] // self.n_groups))
        for own, ratio in self:
            n[own] += 1
            total[own] += ratio
            squares[own] += np.square(ratio, dtype=np.float64)
        mean = total / n
        return mean, np.sqrt(np.maximum(squares / n - mean**2, 0.0))

    def of_words(self, chosen):
        """Draws of chosen words of each topic: a list of arrays (n_draws, n_chosen)."""
        found = [[] for _ in chosen]
        for own, ratio in self:
            for place, row in zip(own, ratio, strict=True):
                found[place].append(row[chosen[place]])
        return [np.array(each, dtype=np.float64) for each in found]


def contrast_table(model, groups, topics, n, ends):
    """The table of `StructuralTopicModel.word_contrast`.

    Parameters
    ----------
    model : StructuralTopicModel
    groups : pair of int
        Indices of the groups.
    topics : ndarray of int
    n : int
        Words for each group.
    ends : tuple of float
        Probabilities of the quantiles that bound an interval.
    """
    n = checked_count("n", n)
    draws = model._topic_draws.of_documents
    contrasts = Contrasts(draws, model.chains_agree_, groups, len(model.groups_), topics)
    mean, deviation = contrasts.moments()
    score, chosen = mean / np.maximum(deviation, 1e-12), []
    for own in score:
        order = np.argsort(-own, kind="stable")
        first, last = order[:n], order[::-1][:n]
        chosen.append(np.concatenate([first[own[first] > 0], last[own[last] < 0]]))
    intervals = [interval_ends(each, ends) for each in contrasts.of_words(chosen)]
    place, words = np.repeat(np.arange(topics.size), [each.size for each in chosen]), np.concatenate(chosen)
    low, high = np.concatenate(intervals, axis=1)
    a, b = (model.content_components_[g, topics[place], words] for g in groups)
    return as_table(
        {
            "topic": topics[place],
            "name": np.asarray(model.topic_names_, dtype=object)[topics[place]],
            "word": model._word_names(model.components_.shape[1])[words],
            "log_ratio": mean[place, words],
            "low": low,
            "high": high,
            "a": a,
            "b": b,
        }
    )
