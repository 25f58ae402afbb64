"""Agreement of several chains of topics: their topics are matched, a reference is chosen, and a check compares them.

Chains that found different modes of the posterior must not be averaged: their mean is a topic that none of them found.
Results therefore come from one reference chain, and the other chains show how certain its topics are.
"""

import numpy as np

from ..chains.agreement import Agreement
from ..chains.checks import CHAINS_DISAGREE
from ..metrics import align_topics
from ._draws import unit_rows

# Topics of two chains agree if their distance is at most this. In planted corpora of 300 to 1,000 documents, 596
# distances between chains that had found the same topic were at most 0.18, and the 4 others 0.57 or more. In 20 fits to
# 240 paragraphs of the State of the Union, versions at distances up to 0.25 shared 6 or more of their 10 top words
# (median; 3 or fewer in 0.7% of them); from 0.25 to 0.3 it was 4, to 0.35 it was 3, and to 0.4 it was 1. The limit must
# not grow with the spread of draws: draws of a topic with few tokens are further apart than topics with different
# subjects.
ALIKE = 0.25
_MOST_WORDS, _MOST_NAMED = 4, 3  # Most top words and topics quoted in a message.


def agreement_of(reference, distances):
    """Return the `Agreement` of chains from the ``distances`` between mean topics."""
    return Agreement(reference, distances, distances <= ALIKE)


def agreement_checks(agreement, components, in_use, metric, names, hint):
    """Check whether the chains found the same topics; an empty list for a single chain.

    Parameters
    ----------
    agreement : Agreement
    components : ndarray of shape (n_topics, n_words)
    in_use : ndarray of bool, shape (n_topics,)
        Topics to warn about.
    metric : {"hellinger", "cosine"}
    names : ndarray of object, shape (n_words,), or None
        Names of the words. If they are passed, the message quotes the top words of topics.
    hint : str
        A further remedy, which ends in ", "; empty if there is none.
    """
    n_chains, n_topics = agreement.agree.shape
    if n_chains == 1:
        return []
    unlike = np.flatnonzero(~agreement.agree.all(axis=0) & in_use)
    if not unlike.size:
        return [CHAINS_DISAGREE.passed(0)]
    furthest = agreement.distances.max(axis=0)
    unlike = unlike[np.argsort(-furthest[unlike], kind="stable")]
    named = ", ".join(f"{k} ({furthest[k]:.2f})" for k in unlike)
    words = ""
    if names is not None:
        top = {k: np.argsort(-components[k], kind="stable")[:_MOST_WORDS] for k in unlike[:_MOST_NAMED]}
        quoted = "; ".join(f"{k}: {' '.join(map(str, names[words]))}" for k, words in top.items())
        words = f" ({quoted}{'; ...' if unlike.size > _MOST_NAMED else ''})"
    kind = f"Hellinger distance (at most {ALIKE}: the same topic)"
    if metric != "hellinger":
        kind = "distance sqrt(1 - cosine)"
    meaning = (
        f"The {n_chains} chains found different versions of {unlike.size} of {n_topics} topics. These are, with "
        f"the {kind} to the most distant chain: {named}{words}. Chains are not averaged: all results come from "
        f"chain {agreement.reference} (reference_chain_). Intervals of these topics pool only the chains that agree "
        "with it, so they do not cover the other versions. See topic_stability_ and chain_distances_."
    )
    remedy = (
        f"Fewer topics (n_components), {hint}or a larger n_iter may help, but a corpus may have several versions "
        "that are equally good. With n_chains=1, fit finds one of them."
    )
    return [CHAINS_DISAGREE.fired(unlike.size, meaning, remedy)]


def number_topics(draws, samples, metric, groups, best_chain, n_rounds=2):
    """Put the topics of all draws into one order, in place, and choose the reference chain.

    The draws of each chain are first aligned with each other. Then chains are matched as a whole, by their mean topics,
    so that no draw is matched to a mixture of chains. The reference is matched to the first chain, which sets the order
    of topics, and the other chains are matched to the reference.

    Parameters
    ----------
    draws : TopicDraws
    samples : dict of ndarray
        Other draws, which are reordered in the same way if their third axis is that of the topics.
    metric : {"hellinger", "cosine"}
    groups : array-like of shape (n_components,)
        Group of each topic. Only topics of the same group may change places.
    best_chain : callable
        Maps the chains' mean topics, (n_chains, n_components, n_features), to the index of the reference chain.
    n_rounds : int
        As for `align_draws`.

    Returns
    -------
    agreement : Agreement
    means : ndarray of shape (n_chains, n_components, n_features)
        Mean topics of the chains.
    """
    n_chains, _, n_topics, _ = draws.shape
    for c in range(n_chains):
        for s, order in enumerate(draws.align(c, metric, groups, n_rounds)):
            _reorder(samples, (c, s), order, axis=0)
    if n_chains == 1:  # Return early, without a second copy of the means.
        return Agreement.of_one_chain(n_topics), draws.mean_of_chain(0)[None]
    means = np.stack([draws.mean_of_chain(c) for c in range(n_chains)])
    reference = best_chain(means)
    for c in (reference, *(c for c in range(n_chains) if c != reference)):
        target, own = (_scaled(means[i], metric) for i in (0 if c == reference else reference, c))
        order = align_topics(target, own, metric=metric, groups=groups)
        if not np.array_equal(order, np.arange(n_topics)):
            draws.reorder(c, order)
            _reorder(samples, (c,), order, axis=1)
            means[c] = means[c][order]
    units = unit_rows(means, metric)
    distances = np.sqrt(np.clip(1.0 - (units * units[reference]).sum(axis=-1), 0.0, None))
    distances[reference] = 0.0
    return agreement_of(reference, distances), means


def _scaled(topics, metric):
    """Topics with rows that sum to 1, if these are probabilities: the words of each of several groups may sum to 1."""
    return topics / np.round(topics.sum(axis=1, keepdims=True)) if metric == "hellinger" else topics


def _reorder(samples, place, order, axis):
    """Put topics of the draws at ``place`` into another order, in place; skips arrays without a topic axis."""
    if not np.array_equal(order, np.arange(order.size)):
        for value in samples.values():
            if value.ndim > 2:
                value[place] = np.take(value[place], order, axis=axis)
