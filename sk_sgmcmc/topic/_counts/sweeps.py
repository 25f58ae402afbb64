"""Collapsed Gibbs sweeps, which redraw each token's topic given those of all others, with topics integrated out.

The classes of the first section contain the counts of the assignments, and sweep over documents one after the other.
Shards are swept in parallel: early in burn-in by a `CollapsedStep`, which is approximate, and otherwise by a
`GivenTopicsStep`, which is exact given the topics.
"""

from itertools import pairwise

import numpy as np
from scipy import linalg, sparse
from scipy.special import gammaln

from ...kernels.math import lanes
from ...kernels.models import gamma_process
from ...kernels.models.lda import any_tokens, assignments, whole_tokens
from ...utils._memory import available_memory
from .corpus import Change, Done, cuts, side_by_side, streams

_MAX_TEMPERATURE = 1.4
# The temperature falls to 1 linearly over this share of the sweeps of burn-in, but over at most this many sweeps.
_COOLING, _MOST_TEMPERED = 0.6, 60
_SAMPLE_TOKENS = 3_000_000  # Tokens of the documents that `singular_values` reads.
_POWERS, _MORE = 2, 10  # Power iterations, and additional columns, of the randomised decomposition.
LARGEST_PRIOR = 1e15  # Larger priors act alike: this is beyond any number of tokens.
_READY = 8  # Topics without tokens that keep a column.
_ALIKE = 0.3  # Bhattacharyya coefficient above which two topics are compared.
_FEWEST_PARTS, _MOST_PARTS = 4, 16
_LARGE = 2_000_000  # Tokens from which on the vocabulary is divided into parts.
_TOKENS_PER_BLOCK = 250_000  # Tokens of a group of documents in a part of the vocabulary, about.
# During a sweep by parts, counts of topics are kept for each document if they take at most this many bytes per token,
# and at most this share of the free memory.
_BYTES_PER_TOKEN, _MEMORY_SHARE = 6, 0.25


# ------------------------------------------------------------------------------------------------------------- in turn


class CollapsedSweeps:
    """Counts of all assignments, and sweeps that redraw each token's topic given all others.

    All tokens must have weight 1, and the word prior must be one number; otherwise use `GeneralSweeps`.

    Parameters
    ----------
    data : Shard
    z : ndarray of uint16, shape (n_tokens,)
        Assignments, changed by sweeps.
    topic_word_prior : ndarray of shape (n_words, n_topics)

    Attributes
    ----------
    table : ndarray of shape (n_words, width)
        Counts in the form of the kernel: whole numbers in padded rows.
    temperature : float
        Above 1, sweeps sample a flatter distribution than the posterior, which is for burn-in only.
    """

    is_fast = True
    temperature = 1.0

    def __init__(self, data, z, topic_word_prior):
        self.z = z
        self.topic_word_prior = topic_word_prior
        n_words, n_topics = topic_word_prior.shape
        counts = np.zeros((n_words, n_topics))
        assignments.count_assignments(data.words, data.weights, z, counts)
        self.table = whole_tokens.table_of_counts(counts)
        self.topic_mass = self.counts.sum(axis=0, dtype=np.int64)
        self.beta = float(topic_word_prior[0, 0])

    @property
    def counts(self):
        """Tokens of each word in each topic, (n_words, n_topics)."""
        return self.table[:, : self.topic_word_prior.shape[1]]

    def __getstate__(self):
        # The chain pickles these two itself: joblib would store z twice, and the prior's view as a full array.
        return {name: value for name, value in self.__dict__.items() if name not in ("z", "topic_word_prior")}

    def rejoin(self, z, topic_word_prior):
        """Share the chain's arrays again, after unpickling."""
        self.z, self.topic_word_prior = z, topic_word_prior

    def set_topic_word_prior(self, topic_word_prior):
        """Set another word prior, (n_words, n_topics), all of whose entries are equal."""
        if topic_word_prior.strides != (0, 0):
            raise TypeError("A word prior that is one number at the start of the sweeps must stay one number.")
        self.topic_word_prior = topic_word_prior
        self.beta = float(topic_word_prior[0, 0])

    def step(self, doc_prior):
        """The `CollapsedStep` that sweeps shards in parallel at the present temperature."""
        return CollapsedStep(self.table, self.topic_mass, self.beta, doc_prior, self.temperature)

    def take(self, sums):
        """Continue with another table of counts, which shards have changed."""
        self.table = sums
        self.topic_mass = self.counts.sum(axis=0, dtype=np.int64)

    def add(self, counts):
        """Add counts (n_words, n_topics) of other documents, which sweeps do not change."""
        self.table = whole_tokens.table_of_counts(self.counts + counts)
        self.topic_mass = self.counts.sum(axis=0, dtype=np.int64)

    def n_parts(self, data):
        """Number of parts into which `sweep_parts` divides the vocabulary; 1 for small corpora."""
        return number_of_parts(data.n_tokens)

    def sweep_parts(self, data, doc_topic_prior, group, rng, pool):
        """Sweep over all documents by parts of the vocabulary, exactly (see `sweep_by_vocabulary`)."""
        self.topic_mass[:] = sweep_by_vocabulary(
            data, self.z, self.table, doc_topic_prior, group, self.beta, rng, self.n_parts(data), pool
        )

    def _sweep(self, data, start, stop, table, topic_mass, doc_topic_prior, group, rng):
        whole_tokens.sweep(
            start, stop, data.token_ptr, data.words, self.z, table, topic_mass, doc_topic_prior, group, self.beta, rng,
            self.temperature,
        )  # fmt: skip

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, whose priors are the rows ``group`` of ``doc_topic_prior``."""
        self._sweep(data, start, stop, self.table, self.topic_mass, doc_topic_prior, group, rng)


class GeneralSweeps(CollapsedSweeps):
    """`CollapsedSweeps` for tokens with weights, or for priors that differ between words or topics.

    Parameters
    ----------
    data, z, topic_word_prior
        As for `CollapsedSweeps`.

    Attributes
    ----------
    table : ndarray of shape (n_words, width)
        Counts of the topics that have a column, in padded rows: uint16 if the counts fit, else float64.
    mass : ndarray of shape (width,)
        Sums of the counts over words.
    column, topic : ndarray of shape (n_topics,) and (width,)
        Each topic's column and each column's topic; -1 for none.
    """

    is_fast = False

    def __init__(self, data, z, topic_word_prior):
        self.z = z
        n_words, n_topics = topic_word_prior.shape
        counts = np.zeros((n_words, n_topics))
        assignments.count_assignments(data.words, data.weights, z, counts)
        few = counts.sum(axis=1).max(initial=0.0) < any_tokens.SHORT
        self.dtype = np.uint16 if few and data.weights.size == 0 else np.float64
        self.lay(counts, np.arange(n_topics))
        self.set_topic_word_prior(topic_word_prior)

    def lay(self, counts, topics):
        """Make the table from ``counts``, (n_words, n_topics), with a column for each of ``topics``.

        All topics with tokens must be among them.
        """
        self.table = np.zeros((len(counts), lanes.padded(topics.size)), dtype=self.dtype)
        self.table[:, : topics.size] = counts[:, topics]
        self.mass = self.table.sum(axis=0, dtype=np.float64)
        self.topic = np.full(self.mass.size, -1, dtype=np.int32)
        self.topic[: topics.size] = topics
        self.column = np.full(counts.shape[1], -1, dtype=np.int32)
        self.column[topics] = np.arange(topics.size)

    @property
    def counts(self):
        """Tokens of each word in each topic, (n_words, n_topics)."""
        n_topics, used = self.column.size, self.topic >= 0
        if np.array_equal(self.topic[used], np.arange(n_topics)):
            return self.table[:, :n_topics]
        counts = np.zeros((len(self.table), n_topics), dtype=self.dtype)
        counts[:, self.topic[used]] = self.table[:, used]
        return counts

    def add(self, counts):
        """As `CollapsedSweeps.add`."""
        counts = self.counts + counts
        self.dtype = np.dtype(np.float64)  # The counts may be fractions, or too large for the smaller type.
        self.lay(counts, np.sort(self.topic[self.topic >= 0]))
        self.set_topic_word_prior(self.topic_word_prior)

    def set_topic_word_prior(self, topic_word_prior):
        """Set another word prior, (n_words, n_topics)."""
        self.topic_word_prior = topic_word_prior
        first = np.minimum(topic_word_prior[:, 0], LARGEST_PRIOR)
        differs = np.zeros(first.size, dtype=bool)
        if topic_word_prior.strides[1] != 0:
            topic_word_prior = np.minimum(topic_word_prior, LARGEST_PRIOR)
            differs = np.any(topic_word_prior != first[:, None], axis=1)
        numbers, row = np.unique(first[~differs], return_inverse=True)
        self.row = np.empty(first.size, dtype=np.int32)
        self.row[~differs] = row
        self.beta = numbers.astype(np.float32)
        width = self.mass.size
        if differs.any():  # Seed words are few, so that each can have a row of its own.
            self.row[differs] = numbers.size + np.arange(differs.sum())
            rows = np.vstack([np.tile(numbers[:, None], self.column.size), topic_word_prior[differs]])
            self.beta = np.zeros((len(rows), width), dtype=np.float32)
            self.beta[:, : self.column.size] = rows
            self.beta_sums = np.ones(width)
            self.beta_sums[: self.column.size] = topic_word_prior.sum(axis=0)
        else:
            self.beta_sums = np.full(width, float(first.sum()))

    def n_parts(self, data):
        """1: a sweep may give a column to another topic, so parts cannot be swept in parallel."""
        return 1

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, whose priors are the rows ``group`` of ``doc_topic_prior``."""
        self._sweep_from(0, data, start, stop, doc_topic_prior, group, rng)

    def _sweep_from(self, begin, data, start, stop, doc_topic_prior, group, rng):
        """As `sweep`, from token ``begin`` on; return the token before which it stopped, or `any_tokens.DONE`."""
        return any_tokens.sweep(
            begin, start, stop, data.token_ptr, data.words, data.weights, self.z, self.table, self.mass, self.column,
            self.topic, doc_topic_prior, group, self.beta, self.row, self.beta_sums, rng,
        )  # fmt: skip


class OccupiedTopicSweeps(GeneralSweeps):
    """Exact collapsed sweeps whose cost is linear in the number of topics with tokens.

    Most topics without tokens have no column in the table. A few keep one, for tokens that draw a new topic.
    """

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, which share one prior (1, n_topics)."""
        self._compact_columns(doc_topic_prior[0], _READY)
        at = self._sweep_from(0, data, start, stop, doc_topic_prior, group, rng)
        while at != any_tokens.DONE:
            self._compact_columns(doc_topic_prior[0], 3 * _READY)
            start = int(np.searchsorted(data.token_ptr, at, side="right")) - 1
            at = self._sweep_from(at, data, start, stop, doc_topic_prior, group, rng)

    def _compact_columns(self, alpha, n_ready):
        """Remove the columns of topics without tokens, but for at least ``n_ready`` with the largest prior ``alpha``.

        Nothing is done if the padded width would not change.
        """
        mass = self._mass_of_topics()
        n_used = np.count_nonzero(mass)
        n_columns = min(mass.size, lanes.padded(n_used + n_ready))
        if lanes.padded(n_columns) == self.mass.size:
            return
        order = np.lexsort((-alpha, mass == 0.0))
        self.lay(self.counts, np.sort(order[:n_columns]))
        self.set_topic_word_prior(self.topic_word_prior)

    def _mass_of_topics(self):
        mass, used = np.zeros(self.column.size), self.topic >= 0
        mass[self.topic[used]] = self.mass[used]
        return mass

    def join(self, data, doc_topic_prior, tried):
        """Merge pairs of topics if this increases the evidence; a heuristic move for burn-in only.

        The most similar pairs are tried. The evidence is estimated from the joint probability and the entropy of each
        token's choice between the two topics.

        Parameters
        ----------
        data : Shard
        doc_topic_prior : ndarray of shape (n_topics,)
        tried : set of pairs
            Pairs not to be compared again; extended in place.

        Returns
        -------
        joined : list of pairs (topic kept, topic left empty)
        """
        beta = np.ascontiguousarray(self.topic_word_prior[:, 0])
        counts = self.counts.astype(np.float64)
        mass = self._mass_of_topics()
        used = np.flatnonzero(mass > 0)
        roots = np.sqrt((counts[:, used] + beta[:, None]) / (mass[used] + beta.sum()))
        alike = np.triu(roots.T @ roots, 1)
        partner = np.full(mass.size, -1)
        pairs = np.argwhere(alike > _ALIKE)
        for j, k in used[pairs[np.argsort(-alike[tuple(pairs.T)], kind="stable")]]:
            if partner[j] < 0 and partner[k] < 0 and (j, k) not in tried:
                partner[j], partner[k] = k, j
        first = np.flatnonzero(partner > np.arange(partner.size))
        if not first.size:
            return []
        gains = np.zeros(mass.size)
        gamma_process.pair_gains(
            data.token_ptr, data.words, data.weights, self.z, partner, counts, mass, beta, float(beta.sum()),
            doc_topic_prior, gains,
        )  # fmt: skip

        def log_evidence(counts):
            """Log evidence of each topic's words, relative to a topic without tokens."""
            cells = gammaln(counts + beta[:, None]) - gammaln(beta)[:, None]
            return cells.sum(axis=0) + gammaln(beta.sum()) - gammaln(counts.sum(axis=0) + beta.sum())

        joined = []
        own, other = counts[:, first], counts[:, partner[first]]
        gains = gains[first] + log_evidence(own) + log_evidence(other) - log_evidence(own + other)
        for j, gain in zip(first.tolist(), gains, strict=True):
            k = int(partner[j])
            if gain > 0.0:
                tried.add((j, k))
                continue
            self.z[self.z == k] = j
            counts[:, j] += counts[:, k]
            counts[:, k] = 0.0
            joined.append((j, k))
        self.lay(counts, np.sort(self.topic[self.topic >= 0]))
        return joined


# -------------------------------------------------------------------------------------------------------------- shards


class ShardCounts:
    """Counts of the assignments of all shards, for shards that are not in memory.

    Parameters
    ----------
    topic_word_prior : ndarray of shape (n_words, n_topics)
    is_whole : bool
        Whether all tokens have weight 1.
    """

    temperature = 1.0

    def __init__(self, topic_word_prior, is_whole):
        n_words, n_topics = topic_word_prior.shape
        self.table = np.zeros((n_words, lanes.padded(n_topics)), dtype=np.int32 if is_whole else np.float64)
        self.topic_word_prior = topic_word_prior

    @property
    def counts(self):
        """Tokens of each word in each topic, (n_words, n_topics)."""
        return self.table[:, : self.topic_word_prior.shape[1]]

    @property
    def is_fast(self):
        """Whether all tokens have weight 1 and the word prior is one number, as `CollapsedStep` requires."""
        return self.topic_word_prior.strides == (0, 0) and self.table.dtype == np.int32

    def __getstate__(self):
        return {"table": self.table}

    def rejoin(self, z, topic_word_prior):
        """Share the chain's prior again, after unpickling."""
        self.topic_word_prior = topic_word_prior

    def set_topic_word_prior(self, topic_word_prior):
        """Set another word prior, (n_words, n_topics)."""
        self.topic_word_prior = topic_word_prior

    def step(self, doc_prior):
        """As `CollapsedSweeps.step`."""
        mass = self.counts.sum(axis=0, dtype=np.int64)
        return CollapsedStep(self.table, mass, float(self.topic_word_prior[0, 0]), doc_prior, self.temperature)

    def take(self, sums):
        """Continue with another table of counts, which shards have changed."""
        self.table = sums


def sweeps_of(shard, z, topic_word_prior, leaves_topics_empty=False):
    """The fastest sweeps for a shard and a prior; ``leaves_topics_empty`` says that many topics may have no token."""
    if leaves_topics_empty:
        return OccupiedTopicSweeps(shard, z, topic_word_prior)
    is_fast = topic_word_prior.strides == (0, 0) and shard.weights.size == 0
    return (CollapsedSweeps if is_fast else GeneralSweeps)(shard, z, topic_word_prior)


def compile_sweeps():
    """Compile all kernels of sweeps over whole tokens; which of them a corpus needs depends on its size."""
    for kernel in whole_tokens.KERNELS:
        kernel.compiled  # noqa: B018


def _generator(seed):
    """The random stream of a shard in a round."""
    return np.random.Generator(np.random.PCG64(seed))


class CollapsedStep:
    """A collapsed sweep of a shard, with the counts that other shards had before the round; for early burn-in only.

    Parameters
    ----------
    table, mass : ndarray
        Counts of all tokens and their sums over words, as `whole_tokens.sweep` takes them.
    beta : float
    doc_prior : DocumentPrior
    temperature : float
    """

    def __init__(self, table, mass, beta, doc_prior, temperature):
        self.table, self.mass, self.beta, self.doc_prior = table, mass, beta, doc_prior
        self.temperature = temperature

    def __call__(self, shard, z, seed):
        """Return the `Done` of a shard with assignments ``z``."""
        z, table, mass, rng = np.array(z), self.table.copy(), self.mass.copy(), _generator(seed)
        prior, group = self.doc_prior.table(shard)
        whole_tokens.sweep(
            0, shard.n_docs, shard.token_ptr, shard.words, z, table, mass, prior, group, self.beta, rng,
            self.temperature,
        )  # fmt: skip
        rows, n_topics = shard.active()[0], self.mass.size
        after, before = table[:, :n_topics], self.table[:, :n_topics]
        if rows.size < len(table):
            after, before = after[rows], before[rows]
        return Done(z, Change(rows, np.subtract(after, before, dtype=np.int32)))


class GivenTopicsStep:
    """A sweep of a shard given the topics, which is exact, since documents are then independent.

    Parameters
    ----------
    topics : ndarray of float32, shape (n_words, n_topics)
        Columns sum to 1.
    doc_prior : DocumentPrior
    """

    def __init__(self, topics, doc_prior):
        self.topics, self.doc_prior = topics, doc_prior

    def __call__(self, shard, z, seed):
        """Return the `Done` of a shard with assignments ``z``."""
        z, (rows, slot), n_topics = np.array(z), shard.active(), self.topics.shape[1]
        rng = _generator(seed)
        prior, group = self.doc_prior.table(shard)
        phi = np.empty((rows.size, n_topics), dtype=np.float32)
        sums = np.empty((rows.size, -(-n_topics // assignments.BLOCK) + 1), dtype=np.float32)
        cells, ones = self.topics[rows].astype(np.float64), np.ones(n_topics)
        assignments.topic_tables(cells, np.arange(rows.size), ones, prior, phi, sums)
        made_for = np.full(rows.size if len(prior) > 1 else 0, -1, dtype=np.int32)
        counts = np.zeros((rows.size, n_topics))
        assignments.draw_assignments(
            0, shard.n_docs, np.arange(shard.n_docs), shard.token_ptr, shard.words, shard.weights, slot, phi, sums,
            made_for, prior, group, np.uint64(rng.integers(2**63)), 1, 0, 1, z, counts,
            np.empty((0, shard.n_docs, n_topics)),
        )  # fmt: skip
        return Done(z, Change(rows, counts if shard.weights.size else counts.astype(np.int32)))


# ------------------------------------------------------------------------------------------- by parts of the vocabulary
#
# With topics integrated out, a token's topic depends on all other tokens through the counts of its document, of its
# word and of the topics. The topics' counts depend on every token, so tokens have to be redrawn one after the other.
#
# Divide the vocabulary into parts. The shares of a topic's mass in the parts have a Dirichlet distribution, and within
# each part the topic's words have a Dirichlet distribution of their own. Given the shares, which are drawn from the
# counts, a token depends only on the counts of its document, of its word, and of the topics within its part. Groups of
# documents and parts of the vocabulary can therefore be paired and redrawn in parallel, if no two pairs have a group or
# a part in common. In as many turns as there are parts, every document is paired with every part.
#
# This leaves the distribution of the assignments unchanged. The shares are few numbers, each determined by many tokens,
# so a sweep mixes about as well as one that also integrates them out. The number of parts depends on the size of the
# corpus, never on the number of threads, and each pair has its own random stream, so draws do not depend on threads.


def number_of_parts(n_tokens):
    """Number of parts for a corpus of ``n_tokens``; 1 for small ones."""
    if n_tokens < _LARGE:
        return 1
    return int(np.clip(np.sqrt(n_tokens / _TOKENS_PER_BLOCK), _FEWEST_PARTS, _MOST_PARTS))


def word_cuts(table, n_parts):
    """Bounds of the parts, as indices of words, (n_parts + 1,), so that parts have about equally many tokens."""
    tokens = np.concatenate([[0], np.cumsum(table.sum(axis=1, dtype=np.int64))])
    ends = np.searchsorted(tokens, tokens[-1] * np.arange(n_parts + 1) // n_parts)
    ends[0], ends[-1] = 0, len(table)
    return ends


def drawn_shares(shape, rng):
    """Draw the shares of each topic's mass in the parts, (n_parts, n_topics): Dirichlet, with the columns of ``shape``.

    Logarithms are drawn, since Gamma draws underflow if a topic has no tokens and its prior is small.
    """
    logs, is_there = np.full(shape.shape, -np.inf), shape > 0  # A part without words has no share.
    known = shape[is_there]
    logs[is_there] = np.log(rng.standard_gamma(known + 1.0)) + np.log1p(-rng.random(known.size)) / known
    share = np.exp(logs - logs.max(axis=0))
    return share / share.sum(axis=0)


def sweep_by_vocabulary(data, z, table, doc_topic_prior, group, beta, rng, n_parts, pool=None):
    """Redraw the topic of every token, exactly; returns the number of tokens of each topic, (n_topics,).

    Parameters
    ----------
    data : Shard
    z, table : ndarray
        Assignments, and their counts as from `whole_tokens.table_of_counts`; changed in place.
    doc_topic_prior, group : ndarray
        As from `DocumentPrior.table`.
    beta : float
    rng : Generator
    n_parts : int
    pool : executor or None
        Threads over the pairs of a turn.
    """
    n_topics = doc_topic_prior.shape[1]
    docs, words = cuts(data.token_ptr, n_parts), word_cuts(table, n_parts)
    n_words = np.diff(words)
    mass = np.stack([table[a:b, :n_topics].sum(axis=0, dtype=np.int64) for a, b in pairwise(words)])
    doc_counts = _room_for_doc_counts(data, table.shape[1])

    def count(i):
        whole_tokens.count_in_documents(docs[i], docs[i + 1], data.token_ptr, z, doc_counts)

    if len(doc_counts):
        side_by_side(count, n_parts, pool)
    for turn in range(n_parts):
        share = drawn_shares(mass + beta * n_words[:, None], rng)
        own = streams(rng, n_parts)

        def redraw(i, turn=turn, share=share, own=own):
            part = (i + turn) % n_parts
            whole_tokens.sweep_part(
                docs[i], docs[i + 1], data.token_ptr, data.words, z, table, mass[part], doc_topic_prior, group, beta,
                own[i], words[part], words[part + 1], share[part], doc_counts,
            )  # fmt: skip

        side_by_side(redraw, n_parts, pool)
    return mass.sum(axis=0)


def _room_for_doc_counts(data, width):
    """An array for the counts of topics in each document, without rows if memory is short; this changes no draw."""
    longest = np.diff(data.token_ptr).max(initial=0)
    room = min(_BYTES_PER_TOKEN * data.n_tokens, _MEMORY_SHARE * available_memory())
    if width * whole_tokens.NO_DOC_COUNTS.itemsize * data.n_docs > room or longest >= whole_tokens.SHORT:
        return whole_tokens.NO_DOC_COUNTS
    return np.empty((data.n_docs, width), dtype=np.uint16)


# ------------------------------------------------------------------------------------------------------------ tempering
#
# Hundreds of sweeps do not leave the mode to which the start leads. Sweeps at a temperature above 1 leave this mode,
# and if the temperature is not too high, no topic is lost.


def first_temperature(data, n_topics):
    r"""The temperature of the first sweep, about the highest at which no topic vanishes.

    If topics differ little, a sweep at temperature T multiplies their differences along a pair of singular vectors of
    the scaled counts by :math:`(1 + \sigma) / T`. The 1 stems from the counts of the document, and :math:`\sigma` from
    those of the words. The number of topics that persist at T is therefore the number of singular values above T - 1.

    Parameters
    ----------
    data : Shard
    n_topics : int

    Returns
    -------
    float
        Rounded, so that it does not depend on how many threads multiply matrices.
    """
    values = singular_values(data, n_topics)
    return min(_MAX_TEMPERATURE, 1.0 + round(float(values[-1]), 3)) if values.size else 1.0


def singular_values(data, n_values):
    r"""The largest singular values of the counts as scaled in correspondence analysis, in descending order.

    The scaled counts are :math:`n_{dw} / \sqrt{n_d n_w}`, of a random sample of the documents if there are many. The
    first singular value is 1, and belongs to the marginal totals. Two power iterations from a random subspace find the
    values. They are somewhat too small, the more so the less the values differ.
    """
    scaled = _scaled_counts(data)
    if not scaled.nnz:  # LAPACK refuses an empty matrix.
        return np.empty(0)
    wide = scaled if scaled.shape[0] <= scaled.shape[1] else scaled.T.tocsr()
    tall = wide.T.tocsr()
    n_columns = min(n_values + _MORE, wide.shape[0])
    basis = np.random.default_rng(0).standard_normal((wide.shape[0], n_columns), dtype=np.float32)
    for _ in range(_POWERS):
        basis = wide @ (tall @ basis)
    image = tall @ linalg.qr(basis, mode="economic", overwrite_a=True, check_finite=False)[0]
    squares = linalg.eigvalsh(image.T @ image, check_finite=False)[::-1]
    return np.sqrt(np.maximum(squares[:n_values], 0.0, dtype=np.float64))


def _scaled_counts(data):
    """Counts of documents, or of a sample, divided by the square roots of row and column totals; float32 csr_array."""
    n_docs, order = data.n_docs, np.arange(data.n_docs)
    if data.words.size > _SAMPLE_TOKENS:
        order = np.random.default_rng(0).permutation(n_docs)[: int(n_docs * _SAMPLE_TOKENS / data.words.size) + 1]
    lengths = np.diff(data.token_ptr)[order]
    ends = np.cumsum(lengths)
    words = data.words[np.arange(ends[-1]) + np.repeat(data.token_ptr[order] - (ends - lengths), lengths)]
    used, words, of_word = np.unique(words, return_inverse=True, return_counts=True)
    cells = np.repeat(1.0 / np.sqrt(np.maximum(lengths, 1)), lengths) / np.sqrt(of_word)[words]
    return sparse.csr_array(
        (cells.astype(np.float32), words, np.concatenate([[0], ends])), shape=(order.size, used.size)
    )


def tempered_sweeps(n_sweeps):
    """Number of sweeps above temperature 1, of ``n_sweeps`` in burn-in; it need not be whole."""
    return min(_COOLING * n_sweeps, _MOST_TEMPERED)


def temperature(first, sweep, n_sweeps):
    """The temperature of sweep number ``sweep`` of ``n_sweeps`` in burn-in; number 0 has the temperature ``first``."""
    n_warm = tempered_sweeps(n_sweeps)
    if sweep >= n_warm:
        return 1.0
    return 1.0 + (first - 1.0) * (1.0 - sweep / n_warm)
