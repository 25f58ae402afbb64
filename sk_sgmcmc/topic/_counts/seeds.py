"""Seed words: which words a user expects to be prominent in which topics."""

import numpy as np

from .._results.topics import columns_of

_FORMS = 'words to topics, such as {"canal": 0}, or names of topics to lists of words, such as {"Water": ["canal"]}'
_MOST_QUOTED = 5  # words in a message


class SeedWords:
    """Seed words in either form that users write.

    Parameters
    ----------
    given : dict
        Words to topics, numbers or lists of numbers; or names of topics to lists of words. Names belong to the first
        topics, in their order.

    Attributes
    ----------
    topic_names : list of str
        Names of the first topics.
    """

    def __init__(self, given):
        by_name = {key: _holds_words(key, value) for key, value in given.items()}
        if len(set(by_name.values())) > 1:
            raise ValueError(
                f"seed_words must map {_FORMS}, but not both at once; got {given!r}. Write all of it in one form."
            )
        self.topic_names = list(given) if any(by_name.values()) else []
        wrong = [name for name in self.topic_names if not isinstance(name, str)]
        if wrong:
            raise ValueError(
                f"seed_words must map {_FORMS}; got {given!r}. Names of topics must be str; {wrong[0]!r} is not."
            )
        if self.topic_names:
            self._pairs = [(word, k) for k, words in enumerate(given.values()) for word in _listed(words)]
        else:
            self._pairs = [(word, _listed(topics)) for word, topics in given.items()]

    def checked(self, n_topics):
        """Self; raises for topics that do not exist."""
        if len(self.topic_names) > n_topics:
            raise ValueError(
                f"seed_words must name at most n_components={n_topics} topics; got {len(self.topic_names)} names. "
                f"Set n_components={len(self.topic_names)} or more."
            )
        for word, topics in self._pairs:
            topics = np.asarray(topics)
            if topics.dtype.kind not in "iu" or not topics.size or topics.min() < 0 or topics.max() >= n_topics:
                raise ValueError(
                    f"seed_words[{word!r}] must be a topic from 0 to {n_topics - 1}, or a list of topics; got "
                    f"{topics.tolist()!r}."
                )
        return self

    def places(self, names):
        """Topics and columns of each seed, two arrays; raises for words that are not among the ``names``."""
        topics = [np.atleast_1d(topics) for _, topics in self._pairs]
        columns = columns_of([word for word, _ in self._pairs], names)
        return np.concatenate(topics), np.repeat(columns, [each.size for each in topics])

    def in_prior(self, word_prior, weight, names, n_topics):
        """The prior of topics, (n_topics, n_words), in which seed words weigh more in their topics.

        Parameters
        ----------
        word_prior : ndarray of shape (), (n_words,) or (n_topics, n_words)
        weight : float
            What is added for a seed.
        names : ndarray of shape (n_words,)
        n_topics : int
        """
        prior = np.broadcast_to(word_prior, (n_topics, names.size)).copy()
        is_seed = np.zeros(prior.shape, dtype=bool)
        is_seed[self.checked(n_topics).places(names)] = True
        prior[is_seed] += weight
        return prior

    def doubts(self, components, names, topic_names):
        """Messages about seeded topics whose seed words are more probable together in another topic.

        Words that are seeds of the other topic too do not count.

        Parameters
        ----------
        components : ndarray of shape (n_topics, n_words)
        names : ndarray of shape (n_words,)
        topic_names : sequence of str
        """
        is_seed = np.zeros(components.shape, dtype=bool)
        is_seed[self.places(names)] = True
        lost = []
        for k in np.flatnonzero(is_seed.any(axis=1)):
            own = is_seed[k] & ~is_seed  # (n_topics, n_words): which words count against each other topic
            excess = (components * own).sum(axis=1) - own @ components[k]
            j = int(np.argmax(excess))
            if excess[j] > 0:
                lost.append((k, j, np.flatnonzero(own[j])))
        return [_lost_message(*each, components, names, topic_names) for each in lost]


def _lost_message(k, other, columns, components, names, topic_names):
    words = ", ".join(map(str, names[columns[:_MOST_QUOTED]])) + (", …" if columns.size > _MOST_QUOTED else "")
    together = " together" if columns.size > 1 else ""
    here, there = components[[k, other]][:, columns].sum(axis=1)
    return (
        f"The seed words of topic {k} ({topic_names[k]}) are more prominent in topic {other} ({topic_names[other]}): "
        f"the probability of {words}{together} is {there:.2g} there and {here:.2g} in their own topic. Check "
        f"top_words() before you interpret topic {k}. Try a larger seed_weight, more seed words, or another "
        "n_components."
    )


def _holds_words(key, value):
    """Whether a value holds words rather than topics."""
    if isinstance(value, str):
        raise ValueError(
            f"seed_words must map {_FORMS}; got {value!r} for {key!r}. If it is a word, pass a list of words."
        )
    found = {isinstance(each, str) for each in _listed(value)}
    if len(found) > 1:
        raise ValueError(f"seed_words[{key!r}] must hold either words or topics; got {value!r}.")
    if not found:
        raise ValueError(f"seed_words[{key!r}] must hold at least one word or topic; got {value!r}.")
    return found.pop()


def _listed(value):
    """A value, or the values that it holds, as a list."""
    value = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
    return np.ravel(np.asarray(value, dtype=object)).tolist()
