"""Reasons to doubt a fit of topics that do not show in a drift: twins, and topics that predict poorly.

Twins are topics of one chain that have nearly the same words. From a random start, where all topics are alike, two of
them can share what should be two topics. Such a state lasts, and no quantity that is monitored moves while it does.
"""

import numpy as np

from .._draws import unit_rows
from .predictive import log_of_shares

# Hellinger distance. In 360 fits of planted topics from random starts, the nearest two were closer than this in 26 of
# the 31 that were worse than a default fit, by 2 % in perplexity, without any other warning, and in 3 of 283 that were
# as good (one set of data, two of whose planted topics are as close). The nearest of 10 to 150 topics of seven corpora
# were at 0.47 to 0.73.
TWINS = 0.4
_MOST_NAMED = 3
_WORSE = 0.1  # nats a word


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


def poor_doubts(table, data, word_counts):
    """A message, in a list, if the words' shares in the corpus predict words better than the topics do.

    Parameters
    ----------
    table : dict of ndarray
        The columns of a `Diagnosis`.
    data : TokenData
        Which the topics were fitted to.
    word_counts : ndarray of shape (n_words,)
    """
    found = dict(zip(table["quantity"], table["mean"], strict=True))
    reached, shares = found.get("log_predictive", 0.0), log_of_shares(data, word_counts)
    if reached > shares - _WORSE:
        return []
    return [
        "The topics predict the documents' words worse than the words' shares in all of X do: the log predictive "
        f"probability of a word is {reached:.3g}, that of the shares {shares:.3g}. The chain is far from the "
        'posterior: use a smaller step_size, or "auto", or a larger n_iter.'
    ]
