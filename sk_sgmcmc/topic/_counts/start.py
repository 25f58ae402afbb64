"""Where a chain of a topic model starts: assignments at random or by a streaming pass of EM, seed words first."""

from copy import copy

import numpy as np

from ...kernels.models.lda import assignments
from ...kernels.models.lda import start as start_kernels
from .corpus import Change, Done, number_of_shards, pieces, side_by_side, streams

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


def first_assignments(corpus, doc_prior, word_prior, init, is_normal, rng, pool=None):
    """A topic for each token of the documents from which a chain starts, and topics that know them.

    Parameters
    ----------
    corpus : TokenCorpus
    doc_prior : DocumentPrior
    word_prior : WordPrior
        Where topics have priors of their own, words begin in the topics whose priors favour them, so that topics end
        where their priors are and not in each other's places.
    init : {"soft", "random"}
    is_normal : bool
        Whether ``word_prior`` are means of logarithms, not parameters of a Dirichlet distribution.
    rng : Generator
    pool : executor or None
        Threads; change nothing in the result.

    Returns
    -------
    z : ndarray of uint16, shape (n_tokens,)
        Of the documents ``corpus.start``; before the last pass, if there are further documents.
    topics : SoftTopics or None
        From which the last pass goes on; None where there is none to make.
    """
    shard = corpus.start
    prior, group = doc_prior.table(shard)
    z, shares = random_assignments(shard, prior, group, rng), word_prior.seed_shares(is_normal)
    if shares is not None:
        seeded_start(shard, prior, group, shares, rng, z)
    if init != "soft":
        return z, None
    topics = learnt_topics(shard, prior, group, word_prior.common(), rng, z, shares)
    if topics is None:
        z[:] = rng.integers(prior.shape[1], size=z.size, dtype=np.uint16)
    elif corpus.starts_with_all:
        order = rng.permutation(shard.n_docs)
        if prior.shape[1] <= _FEW:
            topics.learn_in_shards(order, z, pool)
        else:  # shards that have learnt nothing together would number their topics each in its own way
            topics.learn(order, z=z)
    return z, topics


def random_assignments(shard, prior, group, rng):
    """A random topic for each token, (n_tokens,): any, or where documents differ in their priors, by these."""
    n_topics = prior.shape[1]
    z = rng.integers(n_topics, size=shard.n_tokens, dtype=np.uint16)
    if documents_differ(prior):
        shares = prior / prior.sum(axis=1, keepdims=True)
        for start, stop in pieces(shard.token_ptr, _TOKENS_PER_PIECE):
            lo, hi = shard.token_ptr[start], shard.token_ptr[stop]
            rows = np.repeat(group[start:stop], np.diff(shard.token_ptr[start : stop + 1]))
            z[lo:hi] = np.minimum(draw_columns(shares, rows, rng), n_topics - 1)
    return z


def documents_differ(prior):
    """Whether documents have different priors, one row for each group, so that topics are known by these."""
    return len(prior) > 1 and bool(np.any(np.ptp(prior, axis=0) > 0))


def seeded_topics(shares):
    """Numbers of the topics that some word favours."""
    return np.flatnonzero((shares > shares.min(axis=1, keepdims=True)).any(axis=0))


def seeded_start(data, prior, group, shares, rng, z):
    """Write into ``z`` seed words' topics by their shares, and other words' by the seeds of their documents.

    A document without seeds of a topic begins without that topic, which would otherwise take in what belongs to others.
    """
    n_topics, seeds = prior.shape[1], np.ptp(shares, axis=1) > 0
    first = prior.copy()
    if seeded_topics(shares).size < n_topics:
        first[:, seeded_topics(shares)] = 0.0
    for start, stop in pieces(data.token_ptr, _TOKENS_PER_PIECE):
        lo, hi = data.token_ptr[start], data.token_ptr[stop]
        words, docs = data.words[lo:hi], np.repeat(np.arange(stop - start), np.diff(data.token_ptr[start : stop + 1]))
        is_seed = seeds[words]
        topics = np.empty(hi - lo, dtype=np.int64)
        topics[is_seed] = draw_columns(shares, words[is_seed], rng)
        counts = first[group[start:stop]]
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


def learnt_topics(data, prior, group, word_prior, rng, z, shares=None):
    """Topics learnt by one or two passes over documents, or over a part of them if there are many.

    Each document moves the topics by a step that shrinks as the memory grows: first twice as many topics as wanted, of
    which the most alike are then joined, which is what keeps so fast a start out of poor optima. One more pass, in
    which every token also draws a topic, is left to the caller. Where documents differ in their priors, topics begin as
    those of the assignments, which have been drawn from these priors.

    Parameters
    ----------
    data : Shard
    prior, group : ndarray
        As from `DocumentPrior.table`.
    word_prior : float
    rng : Generator
    z : ndarray of uint16, shape (n_tokens,)
        Assignments, of `seeded_start` where there are ``shares``: seeded topics begin from these.
    shares : ndarray of shape (n_words, n_topics) or None
        See `WordPrior.seed_shares`.

    Returns
    -------
    SoftTopics or None
        None if there is nothing to learn.
    """
    n_topics = prior.shape[1]
    total = data.total
    if total == 0 or n_topics == 1:
        return None
    small, mean = total < _SMALL, total / data.n_docs
    window, unit = (400.0, 80.0) if small else (200.0, 40.0)
    # A memory longer than the corpus would let one pass teach nothing.
    window = min(window, max(1.0, data.n_docs / 20.0))
    # A pass costs in proportion to the topics, and joining to their square: with many, one plain pass must do.
    few = n_topics <= _FEW and not documents_differ(prior)
    typical = prior[group].mean() if len(prior) > 1 else prior.mean()
    topics = SoftTopics(data, 2 * n_topics if few else n_topics, float(typical), word_prior, total, rng)
    topics.memory = window * mean, unit * mean
    seeded = np.empty(0, dtype=np.int64)
    if documents_differ(prior):
        topics.begin_at(z, n_topics, np.arange(n_topics))
    elif shares is not None:
        seeded = seeded_topics(shares)
        topics.begin_at(z, n_topics, seeded)
    for _ in range((2 if small else 1) if few else 0):
        topics.learn(rng.permutation(data.n_docs)[:_MOST_DOCS])
    if few:
        topics.merge(n_topics, seeded.size)
    if seeded.size:
        topics.place(seeded, n_topics)
    topics.give_prior(prior, group)
    return topics


class SoftTopics:
    """Expected counts of the topics while they are learnt.

    Parameters
    ----------
    data : Shard
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
        self.memory = None
        self.give_prior(np.full((1, n_topics), doc_prior), np.zeros(data.n_docs, dtype=np.int64))

    def give_prior(self, prior, group):
        """Learn with these priors of documents, as from `DocumentPrior.table`; beyond float32 they act alike."""
        self.prior, self.group = np.minimum(prior, _LARGEST_PRIOR), group

    def learn(self, order, *, z=_NO_ASSIGNMENTS):
        """One pass over the documents in ``order``; with ``z``, their tokens are assigned.

        ``memory`` is the length of the memory at the start of the pass, and the unit of its growth, in tokens.
        """
        window, unit = self.memory
        data = self.data
        n = max(1, int(_TOKENS_PER_CALL * data.n_docs / max(1, data.words.size)))
        for start in range(0, order.size, n):
            start_kernels.soft_pass(
                start, min(start + n, order.size), order, _N_UPDATES, data.token_ptr, data.words, data.weights,
                self.raw, self.mass, self.scale, self.seen, self.prior, self.group, self.word_prior, self.total, window,
                _GROWTH, unit, z, self.rng,
            )  # fmt: skip

    def learn_in_shards(self, order, z, pool):
        """The last pass: the same as `learn`, in shards, none of which sees what the others learn."""
        n = number_of_shards(self.data.words.size, self.raw.size)
        if n == 1:
            self.learn(order, z=z)
            return
        parts, own = np.array_split(order, n), streams(self.rng, n)

        def work(i):
            self.apart(self.data, own[i]).learn(parts[i], z=z)

        side_by_side(work, n, pool)

    def apart(self, data, rng):
        """A copy that goes on learning by itself, from ``data`` and with a random stream of its own."""
        other = copy(self)
        other.raw, other.mass, other.scale, other.seen = (
            each.copy() for each in (self.raw, self.mass, self.scale, self.seen)
        )
        other.data, other.rng = data, rng
        return other

    def without_documents(self):
        """A copy that can be sent elsewhere, and learns from other documents by `apart`."""
        other = copy(self)
        other.data = other.rng = other.group = None
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

    def begin_from(self, z, prior, group):
        """Go on as the topics of assignments ``z``, which others have improved, and with other priors of documents."""
        n_topics = prior.shape[1]
        self.begin_at(z, n_topics, np.arange(n_topics))
        self.scale[0] = 1.0
        self.give_prior(prior, group)

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


class StartStep:
    """First assignments of a shard: by a pass that goes on from topics learnt from a sample, or at random.

    Parameters
    ----------
    topics : SoftTopics or None
        Without documents. None: at random.
    shares : ndarray of shape (n_words, n_topics) or None
        See `WordPrior.seed_shares`.
    doc_prior : DocumentPrior
    """

    def __init__(self, topics, shares, doc_prior):
        self.topics, self.shares, self.doc_prior = topics, shares, doc_prior

    def __call__(self, shard, z, seed):
        """Return the first `Done` of a shard, whose change is all of its counts."""
        rng = np.random.Generator(np.random.PCG64(seed))
        prior, group = self.doc_prior.table(shard)
        z = random_assignments(shard, prior, group, rng)
        if self.shares is not None:
            seeded_start(shard, prior, group, self.shares, rng, z)
        if self.topics is not None and shard.words.size:
            topics = self.topics.apart(shard, rng)
            topics.give_prior(prior, group)
            topics.learn(rng.permutation(shard.n_docs), z=z)
        rows, slot = shard.active()
        counts = np.zeros((rows.size, prior.shape[1]))
        assignments.count_assignments(slot[shard.words], shard.weights, z, counts)
        return Done(z, Change.of_whole(rows, counts, not shard.weights.size))
