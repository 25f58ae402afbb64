"""Checks of problems that convergence diagnostics miss: duplicate topics, a worse fit than unigrams, wrong variances.

Duplicate topics have nearly the same words in one chain. After a random start, two topics can share the words of two
true topics. The chain stays in such a state for long, and no monitored quantity changes meanwhile. Nor does one change
if the step size is so small that topics hardly move, or so large that discretisation error widens their draws.
"""

import numpy as np

from ...chains.checks import (
    DUPLICATE_TOPICS,
    SHARES_CHANGE,
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
_FREQUENT = 1000  # Number of words, the most frequent ones, over which variances are summed.
_TINY = 1e-12


def check_duplicate_topics(components, in_use):
    """Check that no two topics have nearly the same words; an empty list for a single topic.

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


def check_unigram(table, probe, word_shares):
    """Check that topics predict words no worse than the unigram model, which gives each word its share of the corpus.

    Parameters
    ----------
    table : dict of ndarray
        The columns of a `Diagnosis`.
    probe : PredictiveProbe
        Some of the fitted documents.
    word_shares : ndarray of shape (n_words,)
        The probabilities of the unigram model.
    """
    found = dict(zip(table["quantity"], table["mean"], strict=True))
    reached, unigram = found.get("log_predictive", 0.0), log_of_shares(probe, word_shares)
    if reached > unigram - WORSE_THAN_UNIGRAM.limit:
        return [WORSE_THAN_UNIGRAM.passed(unigram - reached)]
    meaning = (
        "The topics predict the documents' words worse than the unigram model, which gives each word its share in X: "
        f"the log predictive probability of a word is {reached:.3g} under the topics and {unigram:.3g} under the "
        "unigram model. The chain is far from the posterior."
    )
    remedy = 'Use a smaller step_size, or "auto", or a larger n_iter.'
    return [WORSE_THAN_UNIGRAM.fired(unigram - reached, meaning, remedy)]


def check_shares(draws):
    """Check that topics have the same shares of the tokens in the first and the last third of the kept draws.

    Differences below three times their mean for independent draws pass.

    Parameters
    ----------
    draws : TopicDraws
    """
    return first_of_chains([_check_shares_of_chain(draws.n_tokens(c)) for c in range(draws.shape[0])])


def _check_shares_of_chain(n_tokens):
    """`check_shares` for one chain, given the topics' numbers of tokens in each draw, or None."""
    if n_tokens is None or len(n_tokens) < MIN_KEPT or n_tokens.shape[1] < 2:
        return []
    shares = n_tokens / n_tokens.sum(axis=1, keepdims=True)
    third = len(shares) // 3
    first, last = shares[:third].mean(axis=0), shares[-third:].mean(axis=0)
    change = np.abs(last - first).sum() / 2
    noise = (shares[:third].std(axis=0) + shares[-third:].std(axis=0)).sum() / (2 * np.sqrt(np.pi * third))
    if change <= max(SHARES_CHANGE.limit, 3 * noise):
        return [SHARES_CHANGE.passed(change)]
    k = int(np.argmax(np.abs(last - first)))
    meaning = (
        f"The shares of the topics still change: {change:.1%} of the tokens have another topic in the last third of "
        f"the kept draws than in the first. The share of topic {k} changes most, from {first[k]:.3f} to {last[k]:.3f}. "
        "Intervals of shares and of effects are too narrow."
    )
    return [SHARES_CHANGE.fired(change, meaning, "Use a larger n_iter before you report shares or effects.")]


def check_spread(chains, draws, probe, prior_of, word_counts, prior_scale=None):
    """Check the variance of the topics' draws (see `check_variances`), and the draws of the document prior.

    Draws of particle samplers are not a time series; `ParticleTopicChain.checks` checks them instead.

    Parameters
    ----------
    chains : list of Chain
    draws : TopicDraws
    probe : PredictiveProbe
    prior_of : callable
        Called with the indices of a chain, of a draw and of some documents; returns the documents' prior in that draw.
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
    """Check that the variance of topics is not below their variance given the assignments, and not far above it.

    Given the assignments of ``n`` tokens, a topic has a Dirichlet distribution, so the variance of a word's share is at
    least ``share * (1 - share) / (n + prior mass + 1)``. It is little more if documents determine their topics well. A
    normal prior of softmax parameters with scale ``s`` has about the mass ``1 / (s**2 * share)``.

    Parameters
    ----------
    draws : TopicDraws
    share_of : callable
        Called with the index of a chain; returns each topic's share of all tokens, (n_topics,).
    word_counts : ndarray of shape (n_words,)
    priors : list of ndarray of shape (n_words, n_topics)
        The topics' Dirichlet prior in each chain.
    prior_scale : float or None
        Standard deviation of a normal prior, which then replaces ``priors``.
    temperature : float
        Temperature of the sampler.
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
        moves = least > 0.0  # It is 0 for a topic of a single word.
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
    """Check that the variance of kept draws is not too small, and the variance of their changes not too large.

    Parameters
    ----------
    what, given : str
        For the messages: what was drawn, and what the conditional variance is given.
    narrow, wide : float
        The variance of the draws and the variance of their changes, both divided by the conditional variance, which
        is the least that the draws can have.
    widest : float
        The largest value of ``wide`` that passes.
    sampler : str
        For the remedy: how to set the sampler's step size, if the model has several samplers.
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
