"""Reasons to doubt a fit of topics that do not show in a drift: twins, poor topics, and draws too alike or too unlike.

Twins are topics of one chain that have nearly the same words. From a random start, where all topics are alike, two of
them can share what should be two topics. Such a state lasts, and no quantity that is monitored moves while it does.
Nor does any move under a step so short that topics stay where they are, or so long that its error spreads them.
"""

import numpy as np

from ...chains.convergence import MIN_KEPT, NARROW
from .._draws import unit_rows
from .predictive import log_of_shares

# Hellinger distance. In 360 fits of planted topics from random starts, the nearest two were closer than this in 26 of
# the 31 that were worse than a default fit, by 2 % in perplexity, without any other warning, and in 3 of 283 that were
# as good (one set of data, two of whose planted topics are as close). The nearest of 10 to 150 topics of seven corpora
# were at 0.47 to 0.73.
TWINS = 0.4
_MOST_NAMED = 3
_WORSE = 0.1  # nats a word
# The variance of draws over that given the assignments, at most. Of nine samplers on seven corpora, with 5 to 50
# topics, it was 1.0 to 3.9 at default steps, and 3.6 to 27 at steps of SGRLD that were ten to a hundred times as long.
# Steps by which topics keep their place fell below `NARROW`; the lowest at default steps was 0.6.
WIDE = 6.0
_FREQUENT = 1000  # words from which the variance is found
_TINY = 1e-12


def twin_doubts(components, in_use):
    """A message, in a list, about topics that have nearly the same words.

    Parameters
    ----------
    components : ndarray of shape (n_topics, n_words)
    in_use : ndarray of bool, shape (n_topics,)
        Topics to warn about.
    """
    topics = np.flatnonzero(in_use)
    rows = unit_rows(components[topics], "hellinger")
    first, second = np.triu_indices(topics.size, k=1)
    distances = np.sqrt(np.clip(1.0 - (rows @ rows.T)[first, second], 0.0, None))
    close = np.flatnonzero(distances < TWINS)
    if not close.size:
        return []
    close = close[np.argsort(distances[close], kind="stable")]
    named = ", ".join(f"{topics[first[i]]} and {topics[second[i]]} ({distances[i]:.2f})" for i in close[:_MOST_NAMED])
    more = f" and {close.size - _MOST_NAMED} more pairs" if close.size > _MOST_NAMED else ""
    return [
        f"Some topics have nearly the same words, with a Hellinger distance below {TWINS}: {named}{more}. Chains that "
        'start at random can stay in such a state for long. Set init="soft", raise n_iter, or lower n_components if '
        "the documents have fewer topics."
    ]


def poor_doubts(table, probe, word_counts):
    """A message, in a list, if the words' shares in the corpus predict words better than the topics do.

    Parameters
    ----------
    table : dict of ndarray
        The columns of a `Diagnosis`.
    probe : PredictiveProbe
        Of the documents that the topics were fitted to.
    word_counts : ndarray of shape (n_words,)
    """
    found = dict(zip(table["quantity"], table["mean"], strict=True))
    reached, shares = found.get("log_predictive", 0.0), log_of_shares(probe, word_counts)
    if reached > shares - _WORSE:
        return []
    return [
        "The topics predict the documents' words worse than the words' shares in all of X do: the log predictive "
        f"probability of a word is {reached:.3g}, that of the shares {shares:.3g}. The chain is far from the "
        'posterior: use a smaller step_size, or "auto", or a larger n_iter.'
    ]


def spread_doubts(chains, draws, probe, prior_of, word_counts, prior_scale=None):
    """Messages about draws of the topics, see `variance_doubts`, and of the documents' prior.

    Draws of particles, which do not follow one another in time, are not judged here.

    Parameters
    ----------
    chains : list of Chain
    draws : TopicDraws
    probe : PredictiveProbe
    prior_of : callable
        Function of the indices of a chain, of a draw and of some documents: the prior of these documents in that draw.
    word_counts, prior_scale
        As for `variance_doubts`.
    """
    sampler, last = chains[0].sampler, draws.shape[1] - 1
    if probe.is_empty or last + 1 < MIN_KEPT or not sampler._draws_in_time:
        return []

    def share_of(c):
        return probe.topic_shares(draws.mean_of_chain(c)[:, probe.words].T, prior_of(c, last, probe.docs))

    priors = [chain.word_prior.table() for chain in chains]
    found = variance_doubts(draws, share_of, word_counts, priors, prior_scale, sampler.temperature)
    own = [
        doubt
        for chain in chains
        for doubt in chain.doc_prior.warnings({name: value[: chain.n_kept] for name, value in chain.kept.items()})
    ]
    return [*found, *own[:1]]


def variance_doubts(draws, share_of, word_counts, priors, prior_scale=None, temperature=1.0):
    """A message, in a list, if draws of topics vary less than the assignments allow, or far more.

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
        if told := spread_messages("topics", "the assignments of words to topics", narrow, wide, WIDE):
            return told
    return []


def spread_messages(what, given, narrow, wide, widest, sampler=""):
    """A message, in a list, if the variance of kept draws is too small, or that of their changes too large.

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
    if narrow < NARROW:
        return [
            f"The {what} hardly move: the standard deviations of their kept draws are {np.sqrt(narrow):.2g} times "
            f"those given {given} ({np.sqrt(NARROW):.1g} at least), so intervals are too narrow. Use {sampler}a larger "
            'step_size, or "auto", or a larger n_iter.'
        ]
    if wide > widest:
        return [
            f"The draws of the {what} are too wide: the standard deviations of their changes are {np.sqrt(wide):.2g} "
            f'times those given {given} ({np.sqrt(widest):.2g} at most). Use {sampler}a smaller step_size, or "auto".'
        ]
    return []


def _median(values, weights):
    """The weighted median."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return values[order][np.searchsorted(total, total[-1] / 2.0)]
