"""First assignments of a chain of a topic model: random, by a streaming pass of EM, or led by seed words."""

from copy import copy

import numpy as np

from ...kernels.models.lda import assignments
from ...kernels.models.lda import start as start_kernels
from .corpus import Change, Done, number_of_shards, pieces, side_by_side, streams
from .forms import in_words
from .sweeps import LARGEST_PRIOR

_N_UPDATES = 5  # EM steps for the proportions of a document.
_GROWTH = 0.7  # Exponent with which the memory of the streaming pass grows.
_TOKENS_PER_CALL = 2_000_000
# Below this many tokens, there are two passes instead of one, and the memory at the start is longer.
_SMALL = 5_000_000
_FEW = 200  # Most topics for which a pass begins with twice as many, which are then merged.
# Documents after which a pass with twice as many topics ends. More documents turn the superfluous half of the topics
# into narrow topics, which take words from the others and cannot be merged with them. With planted topics and documents
# of 50 to 300 tokens, the best number was 30,000 to 40,000, for any number of topics.
_MOST_DOCS = 35_000
_TOKENS_PER_PIECE = 200_000  # Tokens searched for seeds at a time.
_WORDS_AT_ONCE = 10_000  # Words whose expected counts are drawn at a time.
_NO_ASSIGNMENTS = np.empty(0, dtype=np.uint16)


def first_assignments(corpus, doc_prior, word_prior, init, is_normal, rng, pool=None, n_coarse=None):
    """First assignments of the documents from which a chain starts, and the topics learnt from these documents.

    With ``n_coarse``, the streaming pass learns so many topics, and each of them is divided (see `divide`), unless some
    words have seeds or documents have different priors; then assignments are random.

    Parameters
    ----------
    corpus : TokenCorpus
    doc_prior : DocumentPrior
    word_prior : WordPrior
        If its topics have different priors, words begin in the topics whose priors favour them, so that topics do not
        end in each other's places.
    init : {"soft", "random"}
    is_normal : bool
        Whether ``word_prior`` is the mean of a normal prior of logarithms, not the parameter of a Dirichlet prior.
    rng : Generator
    pool : executor or None
        Threads; the result does not depend on them.
    n_coarse : int or None

    Returns
    -------
    z : ndarray of uint16, shape (n_tokens,)
        Assignments of the documents ``corpus.start``. If these are a sample, the last pass has not been made.
    topics : SoftTopics or None
        Topics from which the last pass over all documents continues; None for random assignments.
    """
    shard = word_prior.of_start(corpus.start)
    prior, group = doc_prior.table(shard)
    z, shares = random_assignments(shard, prior, group, rng), word_prior.seed_shares(is_normal)
    if shares is not None:
        seeded_start(shard, prior, group, shares, rng, z)
    if init != "soft" or (n_coarse and (shares is not None or documents_differ(prior))):
        return z, None
    n_topics = prior.shape[1]
    if n_coarse:
        prior, group = coarse_prior(prior, n_coarse), np.zeros_like(group)
    topics = learnt_topics(shard, prior, group, word_prior.common(), rng, z, shares)
    if topics is None:
        z[:] = rng.integers(prior.shape[1], size=z.size, dtype=np.uint16)
    elif corpus.starts_with_all:
        order = rng.permutation(shard.n_docs)
        if prior.shape[1] <= _FEW:
            topics.learn_in_shards(order, z, pool)
        else:  # No common pass has preceded, so each shard would number its topics in its own way.
            topics.learn(order, z=z)
    if n_coarse:
        divide(z, shard.token_ptr, n_coarse, n_topics, rng)
    return z, topics


def coarse_prior(prior, n_coarse):
    """A prior (1, n_coarse) of all documents with the sum of ``prior``, whose rows are equal."""
    return np.full((1, n_coarse), prior[0].sum() / n_coarse)


def divide(z, token_ptr, n_coarse, n_topics, rng):
    """Divide ``n_coarse`` topics of the assignments ``z`` into ``n_topics``, in place.

    Each document draws one of the new topics for each of its old ones. Documents that share a new topic by chance draw
    it apart from the others within a few sweeps, which takes much less time than to find narrow topics from the start.
    """
    first = np.arange(n_coarse + 1) * n_topics // n_coarse
    for start, stop in pieces(token_ptr, _TOKENS_PER_PIECE):
        lo, hi = token_ptr[start], token_ptr[stop]
        own = first[:-1] + (rng.random((stop - start, n_coarse)) * np.diff(first)).astype(np.int64)
        z[lo:hi] = own[np.repeat(np.arange(stop - start), np.diff(token_ptr[start : stop + 1])), z[lo:hi]]


def random_assignments(shard, prior, group, rng):
    """A random topic for each token, (n_tokens,), by its document's prior."""
    n_topics = prior.shape[1]
    z = rng.integers(n_topics, size=shard.n_tokens, dtype=np.uint16)
    if np.any(np.ptp(prior, axis=1) > 0):
        shares = prior / prior.sum(axis=1, keepdims=True)
        for start, stop in pieces(shard.token_ptr, _TOKENS_PER_PIECE):
            lo, hi = shard.token_ptr[start], shard.token_ptr[stop]
            rows = np.repeat(group[start:stop], np.diff(shard.token_ptr[start : stop + 1]))
            z[lo:hi] = np.minimum(draw_columns(shares, rows, rng), n_topics - 1)
    return z


def documents_differ(prior):
    """Whether documents have different priors, of which ``prior`` has a row for each group."""
    return len(prior) > 1 and bool(np.any(np.ptp(prior, axis=0) > 0))


def seeded_topics(shares):
    """Indices of the topics that are favoured by some word."""
    return np.flatnonzero((shares > shares.min(axis=1, keepdims=True)).any(axis=0))


def seeded_start(data, prior, group, shares, rng, z):
    """Assign seed words by their shares, and other words by the seed words of their documents; writes into ``z``.

    If some topics have no seeds, a document without seeds of a seeded topic begins without that topic, which would
    otherwise absorb words of other topics.
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
    """Draw a column index for each of ``rows`` of ``shares``, whose rows are probabilities."""
    used, place = np.unique(rows, return_inverse=True)
    ends = np.cumsum(shares[used], axis=1)
    ends[:, -1] = 1.0
    ends += np.arange(used.size)[:, None]  # Ascending over all rows, so that one search finds all columns.
    return np.searchsorted(ends.ravel(), place + rng.random(rows.size), side="right") - place * shares.shape[1]


def learnt_topics(data, prior, group, word_prior, rng, z, shares=None):
    """Learn topics by one or two passes of streaming EM over documents, or over a part of them if there are many.

    Each document moves the topics by a step that shrinks as the memory grows. Up to `_FEW` topics, the passes learn
    twice as many, and the most similar ones are then merged, which keeps this fast start out of poor optima. The caller
    makes one more pass, in which every token also draws a topic. With more topics, or if documents have different
    priors, it is the only pass. In the latter case it begins with the topics of the assignments, which have been drawn
    from these priors.

    Parameters
    ----------
    data : Shard
    prior, group : ndarray
        As from `DocumentPrior.table`.
    word_prior : float
    rng : Generator
    z : ndarray of uint16, shape (n_tokens,)
        Assignments. With ``shares`` they come from `seeded_start`, and the seeded topics begin from them.
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
    # With a memory longer than the corpus, a pass would hardly change the topics.
    window = min(window, max(1.0, data.n_docs / 20.0))
    # The cost of a pass is linear in the number of topics, and that of merging quadratic. With many topics, the single
    # pass of the caller has to do.
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
    """Topics that streaming EM learns, as expected counts.

    Parameters
    ----------
    data : Shard
    n_topics : int
    doc_prior, word_prior : float
        Dirichlet parameters of documents and of topics.
    total : float
        Number of tokens of the corpus, to which the counts are scaled.
    rng : Generator
    """

    def __init__(self, data, n_topics, doc_prior, word_prior, total, rng):
        self.data, self.total = data, total
        self.word_prior = min(word_prior, LARGEST_PRIOR)  # As in `give_prior`.
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
        """Set the documents' priors, as from `DocumentPrior.table`; values above `LARGEST_PRIOR` act alike."""
        self.prior, self.group = np.minimum(prior, LARGEST_PRIOR), group

    def learn(self, order, *, z=_NO_ASSIGNMENTS):
        """Make a pass over the documents in ``order``; if ``z`` is passed, also draw their assignments into it.

        ``self.memory`` contains the length of the memory at the start of the pass and the unit of its growth, both in
        tokens.
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
        """Make the last pass, as `learn` with ``z``, in parallel shards, each of which learns by itself."""
        n = number_of_shards(self.data.words.size, self.raw.size)
        if n == 1:
            self.learn(order, z=z)
            return
        parts, own = np.array_split(order, n), streams(self.rng, n)

        def work(i):
            self.apart(self.data, own[i]).learn(parts[i], z=z)

        side_by_side(work, n, pool)

    def apart(self, data, rng):
        """A copy that continues to learn independently, from ``data`` and with its own random stream."""
        other = copy(self)
        other.raw, other.mass, other.scale, other.seen = (
            each.copy() for each in (self.raw, self.mass, self.scale, self.seen)
        )
        other.data, other.rng = data, rng
        return other

    def without_documents(self):
        """A copy without documents, to send to workers, where `apart` lets it learn from other documents."""
        other = copy(self)
        other.data = other.rng = other.group = None
        return other

    def begin_at(self, z, n_topics, seeded):
        """Set the first topics to topics ``seeded`` of assignments ``z``, and divide other tokens among the rest."""
        data = self.data
        counts = np.zeros((data.n_words, n_topics))
        assignments.count_assignments(data.words, data.weights, z, counts)
        own, rest = counts[:, seeded], counts.sum(axis=1) - counts[:, seeded].sum(axis=1)
        self.raw[:, : seeded.size] = own
        others = self.raw[:, seeded.size :]
        others *= (rest / np.maximum(others.sum(axis=1), 1e-30))[:, None].astype(np.float32)
        self.mass = self.raw.sum(axis=0, dtype=np.float64)

    def begin_from(self, z, prior, group):
        """Continue from the topics of assignments ``z``, with the documents' priors ``prior``, ``group``."""
        n_topics = prior.shape[1]
        self.begin_at(z, n_topics, np.arange(n_topics))
        self.scale[0] = 1.0
        self.give_prior(prior, group)

    def place(self, seeded, n_topics):
        """Move the first topics to the indices ``seeded``, and the others to the remaining indices."""
        order = np.concatenate([seeded, np.setdiff1d(np.arange(n_topics), seeded)])
        places = np.argsort(order)
        self.raw, self.mass = np.ascontiguousarray(self.raw[:, places]), self.mass[places]

    def merge(self, n_topics, n_fixed=0):
        """Merge similar topics until ``n_topics`` are left, but never two of the first ``n_fixed``."""
        counts = np.ascontiguousarray(self.raw.T)
        self.raw = None  # Frees memory: this array may be large.
        counts *= np.float32(self.scale[0])
        alive = np.ones(self.mass.size, dtype=bool)
        start_kernels.merge_topics(counts, self.mass, n_topics, n_fixed, alive)
        self.raw = np.ascontiguousarray(counts[alive].T)
        self.mass = self.mass[alive]
        self.scale[0] = 1.0


class StartStep:
    """Draw first assignments of a shard, by a pass that continues from topics learnt from a sample, or at random.

    Parameters
    ----------
    topics : SoftTopics or None
        Topics without documents. None: assignments are random.
    shares : ndarray of shape (n_words, n_topics) or None
        See `WordPrior.seed_shares`.
    doc_prior : DocumentPrior
    n_groups : int, default=1
        Number of forms of each word, which start in the same topics; see `forms`.
    n_coarse : int or None, default=None
        Number of ``topics`` if they are to be divided.
    """

    def __init__(self, topics, shares, doc_prior, n_groups=1, n_coarse=None):
        self.topics, self.shares, self.doc_prior, self.n_groups = topics, shares, doc_prior, n_groups
        self.n_coarse = n_coarse

    def __call__(self, shard, z, seed):
        """Return the first `Done` of a shard, whose change consists of all its counts."""
        rng = np.random.Generator(np.random.PCG64(seed))
        in_forms, shard = shard, in_words(shard, self.n_groups)
        prior, group = self.doc_prior.table(shard)
        z = random_assignments(shard, prior, group, rng)
        if self.shares is not None:
            seeded_start(shard, prior, group, self.shares, rng, z)
        if self.topics is not None and shard.words.size:
            topics, n_coarse = self.topics.apart(shard, rng), self.n_coarse
            of_pass = (coarse_prior(prior, n_coarse), np.zeros_like(group)) if n_coarse else (prior, group)
            topics.give_prior(*of_pass)
            topics.learn(rng.permutation(shard.n_docs), z=z)
            if n_coarse:
                divide(z, shard.token_ptr, n_coarse, prior.shape[1], rng)
        rows, slot = in_forms.active()
        counts = np.zeros((rows.size, prior.shape[1]))
        assignments.count_assignments(slot[in_forms.words], shard.weights, z, counts)
        return Done(z, Change(rows, counts if shard.weights.size else counts.astype(np.int32)))
