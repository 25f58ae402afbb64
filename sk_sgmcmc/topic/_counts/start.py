"""Where a chain of a topic model starts: assignments at random or by a streaming pass of EM, seed words first."""

from copy import copy

import numpy as np

from ...kernels.models.lda import assignments
from ...kernels.models.lda import start as start_kernels
from . import shards
from .tokens import total_of

_N_UPDATES = 5  # EM steps for the proportions of a document
_GROWTH = 0.7  # exponent at which the memory grows
_TOKENS_PER_CALL = 2_000_000
# Up to this many tokens the passes are repeated, and the memory at the start is longer, both in documents.
_SMALL = 5_000_000
_FEW = 200  # topics, of which a pass can afford twice as many, to be joined
# Documents after which a pass with twice as many topics ends: more of them turn the superfluous half of the topics into
# narrow ones of their own, which take words from the others and cannot be joined with them. With planted topics of
# documents of 50 to 300 tokens, the best number was 30,000 to 40,000, however many topics there were.
_MOST_DOCS = 35_000
_MOST_SOFT = 125  # topics, up to which a pass starts sweeps better than chance does
_LARGEST_PRIOR = 1e15  # beyond any number of tokens
_TOKENS_PER_PIECE = 200_000  # tokens searched for seeds at a time
_WORDS_AT_ONCE = 10_000  # words whose expected counts are drawn at a time
_NO_ASSIGNMENTS = np.empty(0, dtype=np.uint16)


def start_of(init, n_topics, only_sweeps):
    """How a chain starts, given the parameter ``init`` and whether all of its burn-in are collapsed sweeps.

    With many topics, those of a streaming pass are narrower than those that warm sweeps find by themselves, and
    hundreds of sweeps do not leave them.
    """
    return "random" if only_sweeps and n_topics > _MOST_SOFT else init


def first_assignments(data, doc_prior, word_prior, init, is_normal, rng, pool=None):
    """A topic for each token, (n_tokens,), to start a chain from.

    Parameters
    ----------
    data : TokenData
    doc_prior : ndarray of shape (n_topics,)
    word_prior : float or ndarray of shape (n_words, 1) or (n_words, n_topics)
        Where topics have priors of their own, words begin in the topics whose priors favour them, so that topics end
        where their priors are and not in each other's places.
    init : {"soft", "random"}
    is_normal : bool
        Whether ``word_prior`` are means of logarithms, not parameters of a Dirichlet law.
    rng : Generator
    pool : executor or None
        Threads; change nothing in the result.
    """
    z = rng.integers(doc_prior.size, size=data.words.size, dtype=np.uint16)
    shares = seed_shares(word_prior, is_normal)
    if shares is not None:
        seeded_start(data, doc_prior, shares, rng, z)
    if init == "soft":
        # The passes know one number for all words; a mean that seeds are part of would drown the words in it.
        common = word_prior if shares is None else word_prior.min(axis=1)
        soft_start(data, doc_prior, float(np.mean(common)), rng, z, shares, pool)
    return z


def seed_shares(word_prior, is_normal):
    """How the tokens of each word are divided among topics at the start, (n_words, n_topics); None: equally.

    Squares of the prior, so that one topic with a seed outweighs many without.
    """
    if np.ndim(word_prior) < 2 or not np.any(np.ptp(word_prior, axis=1) > 0):
        return None
    most = word_prior.max(axis=1, keepdims=True)
    weights = np.exp(2.0 * (word_prior - most)) if is_normal else (word_prior / most) ** 2
    return weights / weights.sum(axis=1, keepdims=True)


def seeded_topics(shares):
    """Numbers of the topics that some word favours."""
    return np.flatnonzero((shares > shares.min(axis=1, keepdims=True)).any(axis=0))


def seeded_start(data, doc_prior, shares, rng, z):
    """Write into ``z`` seed words' topics by their shares, and other words' by the seeds of their documents.

    A document without seeds of a topic begins without that topic, which would otherwise take in what belongs to others.
    """
    n_topics, seeds = doc_prior.size, np.ptp(shares, axis=1) > 0
    first = doc_prior.copy()
    if seeded_topics(shares).size < n_topics:
        first[seeded_topics(shares)] = 0.0
    for start, stop in pieces(data.token_ptr, _TOKENS_PER_PIECE):
        lo, hi = data.token_ptr[start], data.token_ptr[stop]
        words, docs = data.words[lo:hi], np.repeat(np.arange(stop - start), np.diff(data.token_ptr[start : stop + 1]))
        is_seed = seeds[words]
        topics = np.empty(hi - lo, dtype=np.int64)
        topics[is_seed] = draw_columns(shares, words[is_seed], rng)
        counts = np.tile(first, (stop - start, 1))
        np.add.at(counts, (docs[is_seed], topics[is_seed]), 1.0)
        topics[~is_seed] = draw_columns(counts / counts.sum(axis=1, keepdims=True), docs[~is_seed], rng)
        z[lo:hi] = np.minimum(topics, n_topics - 1)


def draw_columns(shares, rows, rng):
    """A column of ``shares``, whose rows sum to 1, for each of ``rows``."""
    used, place = np.unique(rows, return_inverse=True)
    ends = np.cumsum(shares[used], axis=1)
    ends[:, -1] = 1.0
    ends += np.arange(used.size)[:, None]  # ascending over all rows: one search finds every column
    return np.searchsorted(ends.ravel(), place + rng.random(rows.size), side="right") - place * shares.shape[1]


def soft_start(data, doc_prior, word_prior, rng, z, shares=None, pool=None):
    """Write an assignment of all tokens into ``z`` (n_tokens,).

    Topics are learnt by one or two passes over the documents, or over a part of them if there are many, each document
    moving the topics by a step that shrinks as the memory grows; first twice as many topics as wanted, of which the
    most alike are then joined, which is what keeps so fast a start out of poor optima; then one more pass, in which
    every token also draws a topic. If it is not the only one, its documents are shared out at random among shards, each
    of which goes on learning by itself.

    Parameters
    ----------
    data : TokenData
    doc_prior : ndarray of shape (n_topics,)
    word_prior : float
    rng : Generator
    z : ndarray of uint16
        Where there are ``shares``, the assignments of `seeded_start`, from which seeded topics begin.
    shares : ndarray of shape (n_words, n_topics) or None
        See `seed_shares`.
    pool : executor or None
        Threads over shards.
    """
    n_topics = doc_prior.size
    topics, memory = learnt_topics(data, doc_prior, word_prior, rng, z, shares)
    if topics is None:
        z[:] = rng.integers(n_topics, size=z.size, dtype=np.uint16)
        return
    order = rng.permutation(data.n_docs)
    if n_topics <= _FEW:
        topics.learn_in_shards(order, *memory, z, pool)
    else:  # shards that have learnt nothing together would number their topics each in its own way
        topics.learn(order, *memory, z)


def learnt_topics(data, doc_prior, word_prior, rng, z, shares=None):
    """Topics before the last pass of `soft_start`, whose parameters these are, and the memory of that pass.

    Returns
    -------
    topics : SoftTopics or None
        None if there is nothing to learn.
    memory : tuple of float
        Window and unit in tokens, see `SoftTopics.learn`.
    """
    n_topics = doc_prior.size
    total = total_of(data)
    if total == 0 or n_topics == 1:
        return None, None
    small = total < _SMALL
    mean = total / data.n_docs
    window, unit = (400.0, 80.0) if small else (200.0, 40.0)
    # A memory longer than the corpus would let one pass teach nothing.
    window = min(window, max(1.0, data.n_docs / 20.0))
    # A pass costs in proportion to the topics, and joining to their square: with many, one plain pass must do.
    few = n_topics <= _FEW
    topics = SoftTopics(data, 2 * n_topics if few else n_topics, float(doc_prior.mean()), word_prior, total, rng)
    seeded = np.empty(0, dtype=np.int64)
    if shares is not None:
        seeded = seeded_topics(shares)
        topics.begin_at(z, n_topics, seeded)
    for _ in range((2 if small else 1) if few else 0):
        topics.learn(rng.permutation(data.n_docs)[:_MOST_DOCS], window * mean, unit * mean)
    if few:
        topics.merge(n_topics, seeded.size)
    if shares is not None:
        topics.place(seeded, n_topics)
    topics.give_prior(doc_prior)
    return topics, (window * mean, unit * mean)


def pieces(token_ptr, tokens=_TOKENS_PER_CALL):
    """Ranges of documents with about ``tokens`` tokens each, so that no kernel runs for long."""
    stop, n_docs = 0, token_ptr.size - 1
    while stop < n_docs:
        start = stop
        stop = int(np.searchsorted(token_ptr, token_ptr[start] + tokens, side="right")) - 1
        stop = min(max(stop, start + 1), n_docs)
        yield start, stop


class SoftTopics:
    """Expected counts of the topics while they are learnt.

    Parameters
    ----------
    data : TokenData
    n_topics : int
    doc_prior, word_prior : float
    total : float
        Tokens of the corpus.
    rng : Generator
    """

    def __init__(self, data, n_topics, doc_prior, word_prior, total, rng):
        self.data, self.total = data, total
        self.word_prior = min(word_prior, _LARGEST_PRIOR)  # as `give_prior` does
        self.raw = np.empty((data.n_words, n_topics), dtype=np.float32)
        for start in range(0, data.n_words, _WORDS_AT_ONCE):
            rows = self.raw[start : start + _WORDS_AT_ONCE]
            rows[:] = rng.gamma(100.0, 0.01, rows.shape)
        self.raw *= np.float32(total / self.raw.sum(dtype=np.float64))
        self.mass = self.raw.sum(axis=0, dtype=np.float64)
        self.scale, self.seen = np.ones(1), np.zeros(1)
        self.rng = rng
        self.give_prior(np.full(n_topics, doc_prior))

    def give_prior(self, doc_prior):
        """Learn with this prior of documents (n_topics,) from now on; a larger one than float32 holds acts alike."""
        self.doc_prior = np.minimum(doc_prior, _LARGEST_PRIOR)

    def learn(self, order, window, unit, z=_NO_ASSIGNMENTS):
        """One pass over the documents in ``order``; with ``z``, their tokens are assigned."""
        data = self.data
        n = max(1, int(_TOKENS_PER_CALL * data.n_docs / max(1, data.words.size)))
        for start in range(0, order.size, n):
            start_kernels.soft_pass(
                start, min(start + n, order.size), order, _N_UPDATES, data.token_ptr, data.words, data.weights,
                self.raw, self.mass, self.scale, self.seen, self.doc_prior, self.word_prior, self.total, window,
                _GROWTH, unit, z, self.rng,
            )  # fmt: skip

    def learn_in_shards(self, order, window, unit, z, pool):
        """The last pass: the same as `learn`, in shards, none of which sees what the others learn."""
        n = shards.number_of_shards(self.data.words.size, self.raw.size)
        if n == 1:
            self.learn(order, window, unit, z)
            return
        parts, streams = np.array_split(order, n), shards.streams(self.rng, n)

        def work(i):
            self.apart(self.data, streams[i]).learn(parts[i], window, unit, z)

        shards.side_by_side(work, n, pool)

    def apart(self, data, rng):
        """A copy that goes on learning by itself, from ``data`` and with a random stream of its own."""
        other = copy(self)
        other.raw, other.mass, other.scale, other.seen = (
            each.copy() for each in (self.raw, self.mass, self.scale, self.seen)
        )
        other.data, other.rng = data, rng
        return other

    def begin_at(self, z, n_topics, seeded):
        """Let the first topics begin as topics ``seeded`` of assignments ``z``; the others share all other tokens."""
        data = self.data
        counts = np.zeros((data.n_words, n_topics))
        assignments.count_assignments(data.words, data.weights, z, counts)
        own, rest = counts[:, seeded], counts.sum(axis=1) - counts[:, seeded].sum(axis=1)
        self.raw[:, : seeded.size] = own
        others = self.raw[:, seeded.size :]
        others *= (rest / np.maximum(others.sum(axis=1), 1e-30))[:, None].astype(np.float32)
        self.mass = self.raw.sum(axis=0, dtype=np.float64)

    def begin_from(self, z, doc_prior):
        """Go on as the topics of assignments ``z``, which others have improved, and with another prior (n_topics,)."""
        self.begin_at(z, doc_prior.size, np.arange(doc_prior.size))
        self.scale[0] = 1.0
        self.give_prior(doc_prior)

    def place(self, seeded, n_topics):
        """Give the first topics the numbers ``seeded``, and the others those that are left."""
        order = np.concatenate([seeded, np.setdiff1d(np.arange(n_topics), seeded)])
        places = np.argsort(order)
        self.raw, self.mass = np.ascontiguousarray(self.raw[:, places]), self.mass[places]

    def merge(self, n_topics, n_fixed=0):
        """Join topics until ``n_topics`` are left, the first ``n_fixed`` not with each other."""
        counts = np.ascontiguousarray(self.raw.T)
        self.raw = None  # may be large
        counts *= np.float32(self.scale[0])
        alive = np.ones(self.mass.size, dtype=bool)
        start_kernels.merge_topics(counts, self.mass, n_topics, n_fixed, alive)
        self.raw = np.ascontiguousarray(counts[alive].T)
        self.mass = self.mass[alive]
        self.scale[0] = 1.0
