"""The Dirichlet prior of the words of topics: fixed, fitted in burn-in, or with seed words."""

import numpy as np
from scipy.special import digamma

from ...chains.chain import TINY
from ...chains.checks import SEEDS_LOST
from ...kernels.math import dirichlet
from ...metrics import align_topics
from .._results.topics import MAY_BE_RARE, columns_of
from .forms import in_words
from .record import CountRecord, TopicRecord
from .sweeps import ShardCounts

# The value of "auto" if it is not fitted, and in the passes from which chains start.
DEFAULT = 0.01
# If the prior is fitted, its first value lies between these. Under a large prior, tokens leave the first topics more
# easily, and the fit reduces it within some tens of sweeps. But a prior that outweighs the tokens of a topic hides what
# they say.
_FIRST = DEFAULT, 0.05
_FIRST_SHARE = 0.2  # Prior mass of a topic at the first value, relative to the mean number of tokens of a topic.
PASSES_PER_FIT = 5
LEAST_PASSES = 2 * PASSES_PER_FIT  # Fewest passes of burn-in for a fit: fewer leave the prior near its first value.
# With a smaller prior, words would not leave their topics; with a larger one, topics would become alike.
_SMALLEST, _LARGEST = 1e-3, 1.0
_TOPICS_AT_ONCE = 16  # Topics that a thread draws at a time.
_CELLS_PER_PIECE = 2**22  # Cells of the counts that are sorted at a time.
_FORMS = 'words to topics, such as {"canal": 0}, or names of topics to lists of words, such as {"Water": ["canal"]}'
_MOST_QUOTED = 5  # Most words quoted in a message.


class WordPrior:
    """The Dirichlet prior of the words of each topic; in this class it is fixed.

    Parameters
    ----------
    value : float or ndarray of shape (n_words, 1) or (n_words, n_topics)
        Parameter of the Dirichlet distributions: for all words, for each word, or for each word in each topic.
    n_words, n_topics : int
    """

    n_groups = 1  # Number of forms of each word; see `forms`.
    starts_at_random = False  # Whether first assignments are random, and not from a streaming pass of EM.

    def __init__(self, value, n_words, n_topics):
        self.value, self.n_words, self.n_topics = value, n_words, n_topics

    @property
    def distinguishes_topics(self):
        """Whether topics have different priors, one column each."""
        return np.ndim(self.value) == 2 and self.value.shape[1] > 1

    def start(self):
        """Set the value for drawing first assignments."""

    def begin(self, n_tokens):
        """Set the value for the first sweeps over ``n_tokens`` tokens."""

    def table(self):
        """The parameter as a view of shape (n_words, n_topics), which needs no memory if it is one number."""
        return np.broadcast_to(self.value, (self.n_words, self.n_topics))

    def update(self, counts, n_passes):
        """Update from the counts (n_words, n_topics) after a pass of collapsed sweeps; return whether it changed."""
        return False

    def of_start(self, shard):
        """The documents, a `Shard`, as first assignments read them: in words."""
        return in_words(shard, self.n_groups)

    def sweeps(self, shard, z, doc_prior):
        """The collapsed sweeps of all documents, a `Shard`, under this prior and a `DocumentPrior`."""
        return doc_prior.sweeps(shard, z, self.table())

    def shard_counts(self, is_whole):
        """The counts of shards that are not in memory, all zero; ``is_whole`` says whether all tokens weigh 1."""
        return ShardCounts(self.table(), is_whole)

    def topics_of_pass(self, collapsed, rng, pool):
        """Draw the topics under which all shards are redrawn, given their counts; the latter are a `ShardCounts`.

        Returns float32 (n_words, n_topics). ``pool`` contains threads, on which draws do not depend, or is None.
        """
        topics, seed = np.empty((self.n_words, self.n_topics), dtype=np.float32), int(rng.integers(2**62))
        prior, counts = self.table(), collapsed.counts

        def work(start):
            part = slice(start, start + _TOPICS_AT_ONCE)
            shapes = np.ascontiguousarray((prior[:, part] + counts[:, part]).T, dtype=np.float64)
            drawn = np.empty(shapes.shape, dtype=np.float32)
            dirichlet.dirichlet_rows(shapes, np.uint64(seed + start), drawn)
            topics[:, part] = drawn.T

        list((map if pool is None else pool.map)(work, range(0, self.n_topics, _TOPICS_AT_ONCE)))
        return topics

    def rejoin(self, collapsed, z):
        """Let sweeps share this prior and the assignments again, after unpickling."""
        collapsed.rejoin(z, self.table())

    def follow(self, collapsed, progress):
        """Learn from the counts of collapsed sweeps after a pass over all documents, at a `Progress`."""
        if progress.burns_in and self.update(collapsed.counts, progress.n_passes):
            collapsed.set_topic_word_prior(self.table())

    def record(self, seed):
        """A record of kept draws of topics, with the seed of draws made on demand."""
        return TopicRecord(seed)

    def count_record(self, seed):
        """The same for a chain whose assignments are not in memory."""
        return CountRecord(seed)

    def state(self, counts):
        """What the record of a kept draw contains besides the counts."""
        return None

    def shapes(self, counts):
        """Unnormalised means of topics given counts, (n_words, n_topics)."""
        return self.table() + counts

    def mean(self, counts):
        """Means of topics given counts, (n_words, n_topics)."""
        shapes = self.shapes(counts)
        return shapes / shapes.sum(axis=0)

    def drawn(self, counts, rng):
        """Draw topics given counts, (n_words, n_topics)."""
        cells = np.maximum(rng.standard_gamma(self.shapes(counts)), TINY)
        return cells / cells.sum(axis=0)

    def seed_shares(self, is_normal=False):
        """Probabilities of topics for the tokens of each word at the start, (n_words, n_topics); None: uniform.

        They are proportional to the square of the prior, so that one topic with a seed outweighs many without.
        ``is_normal`` says whether the value is the mean of a normal prior of logarithms, not a Dirichlet parameter.
        """
        value = self.value
        if not self.distinguishes_topics or not np.any(np.ptp(value, axis=1) > 0):
            return None
        most = value.max(axis=1, keepdims=True)
        weights = np.exp(2.0 * (value - most)) if is_normal else (value / most) ** 2
        return weights / weights.sum(axis=1, keepdims=True)

    def common(self):
        """The mean of the prior over words, without the seeds of single topics."""
        return float(np.mean(self.value if self.seed_shares() is None else self.value.min(axis=1)))

    def exchangeable_groups(self, of_documents):
        """A group number for each topic, (n_topics,): topics of one group are exchangeable under the posterior.

        ``of_documents`` are the group numbers under the document prior alone, (n_topics,).
        """
        labels = np.vstack([of_documents, self.value]) if self.distinguishes_topics else of_documents
        return np.unique(np.atleast_2d(labels), axis=1, return_inverse=True)[1].ravel()

    def order_like(self, before, after, groups):
        """The order of topics ``after`` that best matches topics ``before``; None if topics are not exchangeable.

        Both arrays are unnormalised topics, (n_words, n_topics). If this prior distinguishes topics, they are permuted
        only within ``groups``.
        """
        own = self.distinguishes_topics
        if np.ptp(groups) > 0 and not (own and np.unique(groups).size < groups.size):
            return None
        shares = ((cells / cells.sum(axis=0)).T for cells in (before, after))
        return align_topics(*shares, groups=groups if own else None)

    def extended(self, value, n_words):
        """The prior of a larger vocabulary, with parameter ``value``."""
        return type(self)(value, n_words, self.n_topics)


class FittedWordPrior(WordPrior):
    """One number for all words, fitted to the counts every few passes of collapsed sweeps in burn-in.

    If the first ``value`` has seeds, a column for each topic, their excess over the other words stays as it is, and the
    number is fitted to all other cells. Given the number of their tokens in a topic, these have a Dirichlet prior of
    their own, in which seeds do not occur.
    """

    seeds = None  # Words and topics of the cells with more, two arrays, and how much more.

    def __init__(self, value, n_words, n_topics):
        super().__init__(value, n_words, n_topics)
        if self.distinguishes_topics:
            cells = np.nonzero(value > self.number)
            self.seeds = cells, value[cells] - self.number

    @property
    def number(self):
        """The prior of words that are no seeds."""
        return float(np.min(self.value))

    def _set(self, number):
        self.value = number
        if self.seeds is not None:
            cells, more = self.seeds
            self.value = np.full((self.n_words, self.n_topics), number)
            self.value[cells] += more

    def start(self):
        self._set(DEFAULT)

    def begin(self, n_tokens):
        self._set(first_word_prior(n_tokens, self.n_words, self.n_topics))

    def update(self, counts, n_passes):
        if n_passes % PASSES_PER_FIT:
            return False
        self._set(fitted_word_prior(counts, self.number, seeds=None if self.seeds is None else self.seeds[0]))
        return True

    def extended(self, value, n_words):
        """The prior of a larger vocabulary, which keeps the fitted number, with the seeds of ``value``."""
        wider = FittedWordPrior(value, n_words, self.n_topics)
        wider._set(self.number)
        return wider


def first_word_prior(n_tokens, n_words, n_topics):
    """The value of a fitted prior before its first fit."""
    return float(np.clip(_FIRST_SHARE * n_tokens / (n_words * n_topics), *_FIRST))


def fitted_word_prior(counts, word_prior, n_updates=5, seeds=None):
    """The prior, one number, after some fixed-point updates (Minka) for the counts (n_words, n_topics).

    A few updates do not reach the optimum. This is intended, since early in burn-in the counts are not those of the
    posterior yet. The cells ``seeds``, arrays of words and of topics, are left out.
    """
    n_words, mass = np.full(counts.shape[1], len(counts)), counts.sum(axis=0, dtype=np.float64)
    n_pieces = -(-counts.size // _CELLS_PER_PIECE)
    found = [np.unique(part[part > 0], return_counts=True) for part in np.array_split(counts, n_pieces)]
    if seeds is not None:
        own = counts[seeds].astype(np.float64)
        n_words -= np.bincount(seeds[1], minlength=n_words.size)
        mass -= np.bincount(seeds[1], own, n_words.size)
        values, times = np.unique(own[own > 0], return_counts=True)
        found.append((values, -times))
    values, times = (np.concatenate(column).astype(np.float64) for column in zip(*found, strict=True))
    if not mass.sum() > 0:
        return word_prior
    for _ in range(n_updates):
        cells = times @ (digamma(values + word_prior) - digamma(word_prior))
        sums = n_words @ (digamma(mass + n_words * word_prior) - digamma(n_words * word_prior))
        word_prior = float(np.clip(word_prior * cells / sums, _SMALLEST, _LARGEST))
    return word_prior


class SeedWords:
    """Seed words, which users pass in one of two forms.

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
        """Return self; raise for topics that do not exist."""
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
        """Topics and columns of all seeds, two arrays; raises for words that are not among the ``names``."""
        topics = [np.atleast_1d(topics) for _, topics in self._pairs]
        columns = columns_of([word for word, _ in self._pairs], names, MAY_BE_RARE)
        return np.concatenate(topics), np.repeat(columns, [each.size for each in topics])

    def in_prior(self, word_prior, weight, names, n_topics):
        """The word prior, (n_topics, n_words), with an additional ``weight`` for seed words in their topics.

        Parameters
        ----------
        word_prior : ndarray of shape (), (n_words,) or (n_topics, n_words)
        weight : float
            Prior counts to add for a seed.
        names : ndarray of shape (n_words,)
        n_topics : int
        """
        prior = np.broadcast_to(word_prior, (n_topics, names.size)).copy()
        is_seed = np.zeros(prior.shape, dtype=bool)
        is_seed[self.checked(n_topics).places(names)] = True
        prior[is_seed] += weight
        return prior

    def check(self, components, names, topic_names):
        """Check that the seed words of a topic are not more probable, in sum, in another topic; see `check_seeds`."""
        return check_seeds(self.places(names), components, names, topic_names, "seed words", "a larger seed_weight, ")


def check_seeds(places, components, names, topic_names, what, more=""):
    """Check that the seeds of a topic are not more probable, in sum, in another topic.

    Words that are also seeds of the other topic do not count.

    Parameters
    ----------
    places : tuple of two arrays
        Topics and words of the seeds.
    components : ndarray of shape (n_topics, n_words)
    names : ndarray of shape (n_words,)
    topic_names : sequence of str
    what : str
        What seeds are called in the message.
    more : str
        A further remedy, which ends in ", ".
    """
    is_seed = np.zeros(components.shape, dtype=bool)
    is_seed[places] = True
    lost = []
    for k in np.flatnonzero(is_seed.any(axis=1)):
        own = is_seed[k] & ~is_seed  # (n_topics, n_words): the words that count against each other topic.
        excess = (components * own).sum(axis=1) - own @ components[k]
        j = int(np.argmax(excess))
        if excess[j] > 0:
            lost.append((k, j, np.flatnonzero(own[j])))
    if not lost:
        return SEEDS_LOST.passed(0)
    meaning = " ".join(_described_loss(*each, components, names, topic_names, what) for each in lost)
    remedy = (
        f"Check top_words() before you interpret topic {' or '.join(str(k) for k, *_ in lost)}. Try {more}more {what}, "
        "or another n_components."
    )
    return SEEDS_LOST.fired(len(lost), meaning, remedy)


def _described_loss(k, other, columns, components, names, topic_names, what):
    words = ", ".join(map(str, names[columns[:_MOST_QUOTED]])) + (", …" if columns.size > _MOST_QUOTED else "")
    together = " together" if columns.size > 1 else ""
    here, there = components[[k, other]][:, columns].sum(axis=1)
    return (
        f"The {what} of topic {k} ({topic_names[k]}) are more probable in topic {other} ({topic_names[other]}): "
        f"the probability of {words}{together} is {there:.2g} there and {here:.2g} in their own topic."
    )


def _holds_words(key, value):
    """Whether a value of ``seed_words`` contains words rather than topics; raises for a mixture."""
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
    """A single value, or the items of a collection, as a list."""
    value = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
    return np.ravel(np.asarray(value, dtype=object)).tolist()
