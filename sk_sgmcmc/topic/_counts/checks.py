"""Checks of topics that no drift shows: duplicates, topics worse than the unigram model, and the spread of draws.

Duplicates are topics of one chain that have nearly the same words. From a random start, where all topics are alike, two
of them can share what should be two topics. Such a state lasts, and no quantity that is monitored moves while it does.
Nor does any move under a step so short that topics stay where they are, or so long that its error spreads them.
"""

import numpy as np

from ...chains.checks import (
    DUPLICATE_TOPICS,
    TOO_NARROW,
    TOO_WIDE,
    WIDE_TOPICS,
    WORSE_THAN_UNIGRAM,
    any_fired,
    first_of_chains,
)
from ...chains.convergence import MIN_KEPT, NARROW
from .._draws import unit_rows
from .predictive import log_of_shares

_MOST_NAMED = 3
_FREQUENT = 1000  # words from which the variance is found
_TINY = 1e-12


def check_duplicate_topics(components, in_use):
    """The check that no two topics have nearly the same words; none for a single topic.

    Parameters
    ----------
    components : ndarray of shape (n_topics, n_words)
    in_use : ndarray of bool, shape (n_topics,)
        Topics to warn about.
    """
    topics, limit = np.flatnonzero(in_use), DUPLICATE_TOPICS.limit
    rows = unit_rows(components[topics], "hellinger")
    first, second = np.triu_indices(topics.size, k=1)
    if not first.size:
        return []
    distances = np.sqrt(np.clip(1.0 - (rows @ rows.T)[first, second], 0.0, None))
    close = np.flatnonzero(distances < limit)
    if not close.size:
        return [DUPLICATE_TOPICS.passed(distances.min())]
    close = close[np.argsort(distances[close], kind="stable")]
    named = ", ".join(f"{topics[first[i]]} and {topics[second[i]]} ({distances[i]:.2f})" for i in close[:_MOST_NAMED])
    more = f" and {close.size - _MOST_NAMED} more pairs" if close.size > _MOST_NAMED else ""
    meaning = (
        f"Some topics have nearly the same words, with a Hellinger distance below {limit}: {named}{more}. Chains that "
        "start at random can stay in such a state for long."
    )
    remedy = 'Set init="soft", raise n_iter, or lower n_components if the documents have fewer topics.'
    return [DUPLICATE_TOPICS.fired(distances.min(), meaning, remedy)]


def check_unigram(table, probe, word_counts):
    """The check that topics predict words no worse than the unigram model, the words' shares in the corpus.

    Parameters
    ----------
    table : dict of ndarray
        The columns of a `Diagnosis`.
    probe : PredictiveProbe
        Of the documents that the topics were fitted to.
    word_counts : ndarray of shape (n_words,)
    """
    found = dict(zip(table["quantity"], table["mean"], strict=True))
    reached, unigram = found.get("log_predictive", 0.0), log_of_shares(probe, word_counts)
    if reached > unigram - WORSE_THAN_UNIGRAM.limit:
        return [WORSE_THAN_UNIGRAM.passed(unigram - reached)]
    meaning = (
        "The topics predict the documents' words worse than the unigram model, which gives each word its share in X: "
        f"the log predictive probability of a word is {reached:.3g} under the topics and {unigram:.3g} under the "
        "unigram model. The chain is far from the posterior."
    )
    remedy = 'Use a smaller step_size, or "auto", or a larger n_iter.'
    return [WORSE_THAN_UNIGRAM.fired(unigram - reached, meaning, remedy)]


def check_spread(chains, draws, probe, prior_of, word_counts, prior_scale=None):
    """Checks of the spread of the topics, see `check_variances`, and of the documents' prior.

    Particles, which do not follow one another in time, are checked by their chains.

    Parameters
    ----------
    chains : list of Chain
    draws : TopicDraws
    probe : PredictiveProbe
    prior_of : callable
        Function of the indices of a chain, of a draw and of some documents: the prior of these documents in that draw.
    word_counts, prior_scale
        As for `check_variances`.
    """
    sampler, last = chains[0].sampler, draws.shape[1] - 1
    if probe.is_empty or last + 1 < MIN_KEPT or not sampler._draws_in_time:
        return []

    def share_of(c):
        return probe.topic_shares(draws.mean_of_chain(c)[:, probe.words].T, prior_of(c, last, probe.docs))

    priors = [chain.word_prior.table() for chain in chains]
    found = check_variances(draws, share_of, word_counts, priors, prior_scale, sampler.temperature)
    own = [
        chain.doc_prior.warnings({name: value[: chain.n_kept] for name, value in chain.kept.items()})
        for chain in chains
    ]
    return [*found, *first_of_chains(own)]


def check_variances(draws, share_of, word_counts, priors, prior_scale=None, temperature=1.0):
    """Checks that draws of topics vary no less than the assignments allow, and not far more.

    Given the assignments of ``n`` tokens, a topic has a Dirichlet distribution, so the variance of a word's share is at
    least ``share * (1 - share) / (n + prior mass + 1)``, and little more where documents tell their topics apart. A
    normal prior of softmax parameters with scale ``s`` has about the mass ``1 / (s**2 * share)``.

    Parameters
    ----------
    draws : TopicDraws
    share_of : callable
        Function of the index of a chain: the share of all tokens that each topic has, (n_topics,).
    word_counts : ndarray of shape (n_words,)
    priors : list of ndarray of shape (n_words, n_topics)
        The topics' Dirichlet prior in each chain.
    prior_scale : float or None
        Of a normal prior in its place.
    temperature : float
        Of the sampler.
    """
    words = np.argsort(-word_counts, kind="stable")[:_FREQUENT]
    results = []
    for c, prior in enumerate(priors):
        found = draws.variances(c, words)
        if found is None:
            return []
        (mean, over_all, between), share = found, share_of(c)
        mass = prior.sum(axis=0)[:, None] if prior_scale is None else 1.0 / (prior_scale**2 * np.maximum(mean, _TINY))
        conditional = mean * (1.0 - mean) / (1.0 + word_counts.sum() * share[:, None] + mass)
        least = temperature * conditional.sum(axis=1)
        moves = least > 0.0  # unlike a topic of a single word
        if not moves.any():
            return []
        narrow, wide = (
            _median(variance.sum(axis=1)[moves] / least[moves], share[moves]) for variance in (over_all, between)
        )
        results.append(check_moves("topics", "the assignments of words to topics", narrow, wide, WIDE_TOPICS))
        if any_fired(results[-1]):
            break
    return first_of_chains(results)


def check_moves(what, given, narrow, wide, widest, sampler=""):
    """Checks that the variance of kept draws is not too small, and that of their changes not too large.

    Parameters
    ----------
    what, given : str
        What was drawn, and that given which its variance is the least there can be.
    narrow, wide : float
        Both over that variance.
    widest : float
        The largest right value of ``wide``.
    sampler : str
        With what to set the step size, if there are several samplers.
    """
    moved, changed, most = (float(np.sqrt(max(value, 0.0))) for value in (narrow, wide, widest))
    if narrow < NARROW:
        meaning = (
            f"The {what} hardly move: the standard deviations of their kept draws are {moved:.2g} times those given "
            f"{given} ({TOO_NARROW.limit:.1g} at least), so intervals are too narrow."
        )
        remedy = f'Use {sampler}a larger step_size, or "auto", or a larger n_iter.'
        return [TOO_NARROW.fired(moved, meaning, remedy)]
    if wide > widest:
        meaning = (
            f"The draws of the {what} are too wide: the standard deviations of their changes are {changed:.2g} times "
            f"those given {given} ({most:.2g} at most)."
        )
        remedy = f'Use {sampler}a smaller step_size, or "auto".'
        return [TOO_NARROW.passed(moved), TOO_WIDE.fired(changed, meaning, remedy, most)]
    return [TOO_NARROW.passed(moved), TOO_WIDE.passed(changed, most)]


def _median(values, weights):
    """The weighted median."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return values[order][np.searchsorted(total, total[-1] / 2.0)]
