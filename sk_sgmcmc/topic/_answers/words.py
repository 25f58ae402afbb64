"""Tables of the words of topics."""

import difflib

import numpy as np
from scipy.stats import rankdata

from ...utils import as_table
from ...utils._numbers import check_count, interval_ends, interval_tails

SCORES = ("probability", "frex", "lift", "score")
_LEAST = 1e-300  # so that a draw of 0 has a logarithm


def largest(values, n):
    """Indices of the ``n`` largest values, the largest first and equal ones in their order, without sorting all."""
    n = min(n, values.size)
    candidates = np.flatnonzero(values >= np.partition(values, values.size - n)[values.size - n])
    return candidates[np.argsort(-values[candidates], kind="stable")[:n]]


def check_choice(name, value, choices):
    """Raise unless a value is among the choices."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}.")


def default_names(components, feature_names, n_words=3):
    """A name for each topic, its number and most probable words."""
    n_words = min(n_words, components.shape[1])
    return [
        "_".join([str(k), *(str(feature_names[w]) for w in largest(topic, n_words))])
        for k, topic in enumerate(components)
    ]


def word_scores(components, by, word_counts):
    r"""How characteristic words are of topics, (n_topics, n_features), by one of `SCORES`.

    With :math:`\phi_{kw}` the probability of word w in topic k, and F the empirical distribution function over the
    words of a topic,

    =============  =====================================================================================
    probability    :math:`\phi_{kw}`
    frex           :math:`\bigl(\tfrac{1/2}{F(\phi_{kw})} + \tfrac{1/2}{F(\phi_{kw} / \sum_j \phi_{jw})}\bigr)^{-1}`
    lift           :math:`\phi_{kw}` over the share of w among the fitted documents' tokens
    score          :math:`\phi_{kw} (\log \phi_{kw} - \tfrac1K \sum_j \log \phi_{jw})`
    =============  =====================================================================================
    """
    if by == "probability":
        return components
    if by == "lift":
        share = word_counts / max(word_counts.sum(), 1.0)
        return np.divide(components, share, out=np.zeros_like(components), where=share > 0)
    if by == "score":
        logs = np.log(np.maximum(components, _LEAST))
        return components * (logs - logs.mean(axis=0))
    n_words = components.shape[1]
    often = rankdata(components, axis=1) / n_words
    total = components.sum(axis=0)
    own = np.divide(components, total, out=np.zeros_like(components), where=total > 0)
    return 1.0 / (0.5 / often + 0.5 / (rankdata(own, axis=1) / n_words))


def word_table(components, n, interval, feature_names, topic_names, draws_of_topic, *, scores=None, by="probability"):
    """The ``n`` words of each topic with the largest scores, a row each.

    Parameters
    ----------
    components : ndarray of shape (n_topics, n_features)
    n : int
    interval : float or None
    feature_names, topic_names : sequence
    draws_of_topic : callable
        Function from the index of a topic to draws of it, (n_draws, n_features), for the intervals.
    scores : ndarray of shape (n_topics, n_features) or None
        What words are ranked ``by``; None ranks by probability.
    """
    n_topics, n_features = components.shape
    check_count("n", n)
    ends = None if interval is None else interval_tails(interval)
    n = min(n, n_features)
    scores = components if scores is None else scores
    top = np.array([largest(topic, n) for topic in scores])
    table = {
        "topic": np.repeat(np.arange(n_topics), n),
        "name": np.repeat(np.asarray(topic_names, dtype=object), n),
        "rank": np.tile(np.arange(1, n + 1), n_topics),
        "word": feature_names[top.ravel()],
        "probability": np.take_along_axis(components, top, axis=1).ravel(),
    }
    if by != "probability":
        table[by] = np.take_along_axis(scores, top, axis=1).ravel()
    if ends is not None:
        low, high, often = np.empty(top.shape), np.empty(top.shape), np.empty(top.shape)
        for k in range(n_topics):
            draws = draws_of_topic(k)
            low[k], high[k] = interval_ends(draws[:, top[k]].astype(np.float64), ends)
            bar = np.partition(draws, n_features - n, axis=1)[:, n_features - n, None]
            often[k] = (draws[:, top[k]] >= bar).mean(axis=0)
        table |= {"low": low.ravel(), "high": high.ravel(), "top_probability": often.ravel()}
    return as_table(table)


def wide(table, topic_names):
    """The words of a table of `word_table` with a column for each topic."""
    words = np.asarray(table["word"], dtype=object).reshape(len(topic_names), -1)
    return as_table(dict(zip(topic_names, words, strict=True)))


def places_of(words, feature_names):
    """Columns of words, each once and ascending; raises with the nearest names for those that are none."""
    return np.unique(columns_of(words, feature_names))


def columns_of(words, feature_names):
    """Column of each word; raises with the nearest names for those that are none."""
    words = [words] if isinstance(words, str) or np.ndim(words) == 0 else list(words)
    if not words:
        raise ValueError("words is empty; give at least one word of the vocabulary.")
    place = {name: j for j, name in enumerate(feature_names)}
    unknown = [word for word in words if word not in place]
    if unknown:
        texts = [name for name in place if isinstance(name, str)]
        near = difflib.get_close_matches(str(unknown[0]), texts, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        if not texts:
            hint = "; the words have no names, so give columns of X, or fit with feature_names=."
        raise ValueError(f"words not in the vocabulary: {', '.join(map(repr, unknown[:5]))}{hint}")
    return np.array([place[word] for word in words])


def found_topics(components, columns, masses, interval, topic_names, draws_of_topic):
    """Topics by the probability that they give to some words together, the largest first."""
    probability = components[:, columns].sum(axis=1)
    held = masses * probability
    order = np.argsort(-probability, kind="stable")
    low, high = np.empty(order.size), np.empty(order.size)
    tails = interval_tails(interval)
    for k in range(order.size):
        draws = draws_of_topic(k)[:, columns].sum(axis=1, dtype=np.float64)
        low[k], high[k] = interval_ends(draws, tails)
    return as_table(
        {
            "topic": order,
            "name": np.asarray(topic_names, dtype=object)[order],
            "probability": probability[order],
            "low": low[order],
            "high": high[order],
            "share": (held / max(held.sum(), _LEAST))[order],
        }
    )


def topic_masses(components, word_counts, n_updates=100):
    """The topics' shares of all tokens, (n_topics,), by maximum likelihood given the topics and the words' counts.

    Expectation maximisation for a mixture of known distributions. The words' counts alone, which any stream can keep,
    determine the shares, since topics are far fewer than words.
    """
    masses = np.full(len(components), 1.0 / len(components))
    total = word_counts.sum()
    if total == 0.0:
        return masses
    seen = np.flatnonzero(word_counts)
    phi, share = components[:, seen], word_counts[seen] / total
    for _ in range(n_updates):
        masses = masses * (phi @ (share / np.maximum(masses @ phi, _LEAST)))
    return masses / masses.sum()
