"""Results about topics: tables of words, and topics merged after the fit."""

import difflib
from collections.abc import Hashable
from copy import copy

import numpy as np
from scipy.stats import rankdata

from ...utils import as_table
from ...utils._numbers import checked_count, interval_ends, interval_tails

SCORES = ("probability", "frex", "lift", "score")
_LEAST = 1e-300  # lower limit of arguments of logarithms and of divisors


# The end of messages about seed words and keywords that are not in the vocabulary.
MAY_BE_RARE = " A vectorizer leaves out words that occur in fewer documents than its min_df."


def largest(values, n):
    """Indices of the ``n`` largest values in decreasing order (stable for ties), without sorting all values."""
    n = min(n, values.size)
    candidates = np.flatnonzero(values >= np.partition(values, values.size - n)[values.size - n])
    return candidates[np.argsort(-values[candidates], kind="stable")[:n]]


def check_choice(name, value, choices):
    """Raise an error unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}.")


def default_names(components, feature_names, n_words=3):
    """Default names of topics, such as "0_cat_dog_fish": the number and the most probable words."""
    n_words = min(n_words, components.shape[1])
    return [
        "_".join([str(k), *(str(feature_names[w]) for w in largest(topic, n_words))])
        for k, topic in enumerate(components)
    ]


def word_scores(components, by, word_counts):
    r"""Scores by which words are ranked in topics, (n_topics, n_features); ``by`` is one of `SCORES`.

    With :math:`\phi_{kw}` the probability of word w in topic k, and F the empirical distribution function over the
    words of a topic,

    =============  =====================================================================================
    probability    :math:`\phi_{kw}`
    frex           :math:`\bigl(\tfrac{1/2}{F(\phi_{kw})} + \tfrac{1/2}{F(\phi_{kw} / \sum_j \phi_{jw})}\bigr)^{-1}`
    lift           :math:`\phi_{kw}` over the share of w in the tokens of the fitted documents
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
    """Table of the ``n`` words of each topic with the largest scores, with a row for each word.

    Parameters
    ----------
    components : ndarray of shape (n_topics, n_features)
    n : int
    interval : float or None
    feature_names, topic_names : sequence
    draws_of_topic : callable
        Function that maps the index of a topic to its draws, (n_draws, n_features), for intervals.
    scores : ndarray of shape (n_topics, n_features) or None
        Scores by which words are ranked, named by the parameter ``by``. None: the probabilities.
    """
    n_topics, n_features = components.shape
    n = checked_count("n", n)
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
    """Reshape a `word_table` to a table of words with a column for each topic."""
    words = np.asarray(table["word"], dtype=object).reshape(len(topic_names), -1)
    return as_table(dict(zip(topic_names, words, strict=True)))


def places_of(words, feature_names):
    """Sorted distinct columns of words; a word that is unknown as it is written is looked up in lower case.

    The error for unknown words suggests similar names.
    """
    known = set(feature_names)
    words = [_in_lower_case(word, known) for word in _listed(words, feature_names)]
    return np.unique(columns_of(words, feature_names))


def _in_lower_case(word, known):
    """The word, in lower case if only that is among the names."""
    return word.lower() if isinstance(word, str) and word not in known and word.lower() in known else word


def columns_of(words, feature_names, more=""):
    """Column of each word; the error for unknown words suggests similar names, and ends with ``more``."""
    words = _listed(words, feature_names)
    place = {name: j for j, name in enumerate(feature_names)}
    unknown = [word for word in words if word not in place]
    if unknown:
        hint = _about_unknown(unknown[0], [name for name in place if isinstance(name, str)], more)
        raise ValueError(f"words not in the vocabulary: {', '.join(map(repr, unknown[:5]))}{hint}")
    return np.array([place[word] for word in words])


def _listed(words, feature_names):
    """Words as a list; raises if it is empty or contains what cannot be a word."""
    words = [words] if isinstance(words, str) or np.ndim(words) == 0 else list(words)
    if not words:
        raise ValueError("words is empty; give at least one word of the vocabulary.")
    for word in words:
        if not isinstance(word, Hashable):
            raise ValueError(f"words must be words of the vocabulary, such as {list(feature_names[:2])}; got {word!r}.")
    return words


def _about_unknown(word, names, more):
    """The end of the message about an unknown word: a remedy, or similar names."""
    if not names:
        return "; the words have no names, so give columns of X, or fit with feature_names=."
    parts = word.split() if isinstance(word, str) else []
    if len(parts) > 1:
        return (
            f". Pass several words as a list: {parts}. To count phrases as words, use CountVectorizer(ngram_range="
            f"(1, {len(parts)})).{more}"
        )
    near = difflib.get_close_matches(str(word), names, n=3)
    return (f"; did you mean {' or '.join(map(repr, near))}?" if near else ".") + more


def found_topics(components, columns, masses, interval, topic_names, draws_of_topic):
    """Table of topics in decreasing order of the total probability of the words in ``columns``."""
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
    """Share of each topic in all tokens, (n_topics,), by maximum likelihood given topics and counts of words.

    This is EM for a mixture of known distributions. The counts of words, which a stream can keep, determine the shares
    because there are far fewer topics than words.
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


_ADDED = "doc_topic_prior", "weights"  # entries of ``samples_`` that are summed when topics are merged


def new_topics(groups, n_topics):
    """Index of the merged topic that each topic joins, (n_topics,); topics outside all groups remain separate.

    A merged topic takes the position of the first topic of its group.
    """
    if not hasattr(groups, "__len__") or isinstance(groups, str):
        raise TypeError(f"groups={groups!r} must be a list of topics, such as [0, 3], or of such lists.")
    groups = list(groups)
    if not groups:
        raise ValueError("groups must name topics to join; got none. Pass a list such as [0, 3] or [[0, 3], [1, 7]].")
    groups = [groups] if groups and all(np.ndim(each) == 0 for each in groups) else groups
    first = np.arange(n_topics)
    seen = set()
    for group in groups:
        group = np.asarray(group)
        if group.dtype.kind in "OUS":
            raise TypeError(f"groups={groups!r} must name topics by number, such as [[0, 3], [1, 7]].")
        if group.ndim != 1 or group.size < 2 or group.dtype.kind not in "iu":
            raise ValueError(f"groups={groups!r} must be lists of at least two topics each, such as [[0, 3], [1, 7]].")
        if group.min() < 0 or group.max() >= n_topics:
            raise ValueError(f"groups={groups!r} name topics outside 0 to {n_topics - 1}.")
        twice = seen.intersection(group.tolist()) or np.unique(group).size < group.size
        if twice:
            raise ValueError(f"groups={groups!r} name a topic twice; each topic belongs to one group at most.")
        seen.update(group.tolist())
        first[group] = group.min()
    return np.unique(first, return_inverse=True)[1]


def summed(values, new, axis):
    """Sum the values of topics with the same index in ``new``, along an axis."""
    shape = list(values.shape)
    shape[axis] = new.max() + 1
    out = np.zeros(shape, dtype=values.dtype)
    np.add.at(np.moveaxis(out, axis, 0), new, np.moveaxis(values, axis, 0))
    return out


def mixed(topics, new, masses):
    """Average topics (..., n_topics, n_features) with the same index in ``new``, weighted by their masses.

    Topics that have no mass together count equally.
    """
    total, n_merged = np.bincount(new, masses)[new], np.bincount(new)[new]
    weights = np.divide(masses, total, out=1.0 / n_merged, where=total > 0)
    weights[n_merged == 1] = 1.0
    return summed(topics * weights[:, None].astype(topics.dtype), new, -2)


def merged(model, new):
    """Copy of a fitted model with topics merged by the indices ``new``; the copy has no chains to continue."""
    masses, out = model._masses(), copy(model)
    out.__dict__.pop("_chains", None)
    out.samples_ = {"components": mixed(model.samples_["components"], new, masses)}
    out.samples_ |= {name: summed(model.samples_[name], new, -1) for name in _ADDED if name in model.samples_}
    out.n_components = int(new.max() + 1)
    out.components_ = mixed(model.components_, new, masses)
    out.doc_topic_prior_ = summed(model.doc_topic_prior_, new, -1)
    if hasattr(model, "_doc_priors"):
        out._doc_priors = summed(model._doc_priors, new, -1)
    out._agreement = model._agreement.merged(new)
    out._topic_names, out._is_merged = merged_names(model._given_topic_names, new), True
    out._seeds = None  # seed words refer to topics before the merge
    return out


def merged_names(names, new):
    """Names of merged topics, joined by " + "; None if topics have no names of their own."""
    if names is None:
        return None
    joined = [" + ".join(names[new == k]) for k in range(new.max() + 1)]
    return np.array(joined, dtype=object)


def refuse_merged(model):
    """Raise an error if topics were merged, because no chain can continue to sample them."""
    if model._is_merged and not hasattr(model, "_chains"):
        raise ValueError(
            "These topics were merged after they were drawn, so no chain can go on from them; call partial_fit on the "
            "estimator that was merged, and merge its topics again."
        )
