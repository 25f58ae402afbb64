"""The step of a shard: from its assignments to new ones and the change of the counts, without side effects.

A step depends on its arguments alone, so that it gives the same result in any thread or process, and when it is
repeated after a worker was lost.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ...kernels.models.lda import assignments, whole_tokens
from .start import seeded_start


class Described(NamedTuple):
    """Documents of a shard by groups with the same metadata.

    Parameters
    ----------
    group : ndarray of int64, shape (n_docs,)
        Ascending.
    given : ndarray or csr_array of shape (n_groups, n_metadata)
    rows : object
        The same as the documents' prior takes it.
    """

    group: np.ndarray
    given: object
    rows: object


class Shard(NamedTuple):
    """Documents that are processed together, as tokens.

    Parameters
    ----------
    token_ptr : ndarray of int64, shape (n_docs + 1,)
        The tokens of document d are ``token_ptr[d]:token_ptr[d + 1]``.
    words : ndarray of int32, shape (n_tokens,)
    weights : ndarray of float64, shape (n_tokens,), or (0,) if every token weighs 1
    first_doc : int
        Index of its first document in the corpus.
    n_words : int
        Words of the corpus.
    described : Described or None
        Metadata, if documents have any; they are then in the order of their groups.
    """

    token_ptr: np.ndarray
    words: np.ndarray
    weights: np.ndarray
    first_doc: int
    n_words: int
    described: Described | None = None

    @property
    def n_docs(self):
        """Number of documents."""
        return self.token_ptr.size - 1

    @property
    def group(self):
        """The row of each document in a table of priors."""
        return np.zeros(self.n_docs, dtype=np.int64) if self.described is None else self.described.group

    @property
    def given(self):
        """Metadata of the groups."""
        return self.described.given

    def of_docs(self, docs):
        """Some of its documents, or all in another order; without metadata."""
        starts, lengths = self.token_ptr[docs], np.diff(self.token_ptr)[docs]
        ptr = np.concatenate([[0], np.cumsum(lengths)])
        tokens = np.arange(ptr[-1]) + np.repeat(starts - ptr[:-1], lengths)
        weights = self.weights[tokens] if self.weights.size else self.weights
        return Shard(ptr, self.words[tokens], weights, self.first_doc, self.n_words)

    def active(self):
        """The words that occur, and each word's index among them, -1 for the others; all words if most of them occur.

        Rows of words left out would then save less than taking the others by an index costs.
        """
        slot, rows = np.full(self.n_words, -1, dtype=np.int32), np.empty(self.n_words, dtype=np.int64)
        n = assignments.find_active(np.arange(self.n_docs), self.token_ptr, self.words, slot, rows)
        if 2 * n > self.n_words:
            return np.arange(self.n_words), np.arange(self.n_words, dtype=np.int32)
        return rows[:n].copy(), slot


def sampled(shard, n):
    """Every ``n``-th document of the corpus, as far as it lies in a shard; a `Shard`."""
    if n == 1:
        return shard
    docs = np.arange(-shard.first_doc % n, shard.n_docs, n)
    some = shard.of_docs(docs)
    if shard.described is None:
        return some
    used, group = np.unique(shard.group[docs], return_inverse=True)
    return some._replace(described=Described(group.astype(np.int64), shard.given[used], None))


def joined(parts):
    """One shard of adjacent parts."""
    parts = [part for part in parts if part.n_docs] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    lengths = [np.diff(part.token_ptr) for part in parts]
    return Shard(
        np.concatenate([[0], np.cumsum(np.concatenate(lengths))]),
        np.concatenate([part.words for part in parts]),
        np.concatenate([part.weights for part in parts]),
        parts[0].first_doc,
        parts[0].n_words,
        None if parts[0].described is None else _joined_metadata([part.described for part in parts]),
    )


def _joined_metadata(parts):
    """The `Described` of several parts, without rows for a documents' prior."""
    firsts = np.cumsum([0, *(part.given.shape[0] for part in parts)])
    group = np.concatenate([part.group + first for part, first in zip(parts, firsts, strict=False)])
    given = [part.given for part in parts]
    return Described(
        group, sparse.csr_array(sparse.vstack(given)) if sparse.issparse(given[0]) else np.vstack(given), None
    )


class Change:
    """Change of the counts of some words.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        Words.
    values : ndarray of shape (n_rows, n_topics)
    """

    def __init__(self, rows, values):
        self.rows, self.values = rows, values

    @classmethod
    def of_whole(cls, rows, values, is_whole=True):
        """The same in as few bytes as hold whole numbers."""
        if is_whole:
            largest = int(max(values.max(initial=0), -values.min(initial=0)))
            values = values.astype(np.min_scalar_type(-largest - 1))
        return cls(rows, values)

    def add_to(self, counts):
        """Add to counts (n_words, >= n_topics) in place."""
        part = counts[:, : self.values.shape[1]]
        if _are_all(self.rows, len(counts)):
            part += self.values  # without the copies of an index
        else:
            part[self.rows] += self.values.astype(counts.dtype)

    @classmethod
    def sum_of(cls, changes):
        """The sum of several changes; they have the same sum in any order, see `summable`."""
        rows = changes[0].rows
        alike = all(np.array_equal(each.rows, rows) for each in changes)
        rows = rows if alike else np.unique(np.concatenate([each.rows for each in changes]))
        is_whole = all(each.values.dtype.kind == "i" for each in changes)
        # 32 bits, as in the table of all counts.
        values = np.zeros((rows.size, changes[0].values.shape[1]), dtype=np.int32 if is_whole else np.float64)
        for each in changes:
            if alike:
                values += each.values
            else:
                values[np.searchsorted(rows, each.rows)] += each.values
        return cls.of_whole(rows, values, is_whole)


def _are_all(rows, n_words):
    return rows.size == n_words and np.array_equal(rows, np.arange(n_words))


class Done(NamedTuple):
    """The result of a step.

    Parameters
    ----------
    z : ndarray of uint16, shape (n_tokens,)
    change : Change
    statistics : object
        What the documents' prior learns from the shard; None if it needs nothing.
    """

    z: np.ndarray
    change: Change
    statistics: object


def generator(seed):
    """The random stream of a step."""
    return np.random.Generator(np.random.PCG64(seed))


class StartStep:
    """First assignments of a shard: by a pass that goes on from topics learnt from a sample, or at random.

    Parameters
    ----------
    topics : SoftTopics or None
        None: at random.
    memory : tuple of float
        Its window and unit, see `SoftTopics.learn`.
    alpha : ndarray of shape (n_topics,)
    shares : ndarray of shape (n_words, n_topics) or None
        See `seed_shares`.
    doc_prior : DocumentPrior
    learns : bool
        Whether the documents' prior needs statistics.
    """

    def __init__(self, topics, memory, alpha, shares, doc_prior, learns):
        self.topics, self.memory, self.alpha, self.shares = topics, memory, alpha, shares
        self.doc_prior, self.learns = doc_prior, learns

    def __call__(self, shard, z, seed):
        """Return the first `Done` of a shard, whose change is all of its counts."""
        rng, n_topics = generator(seed), self.alpha.size
        z = rng.integers(n_topics, size=shard.words.size, dtype=np.uint16)
        if self.shares is not None:
            seeded_start(shard, self.alpha, self.shares, rng, z)
        if self.topics is not None and shard.words.size:
            self.topics.apart(shard, rng).learn(rng.permutation(shard.n_docs), *self.memory, z)
        rows, slot = shard.active()
        counts = np.zeros((rows.size, n_topics))
        assignments.count_assignments(slot[shard.words], shard.weights, z, counts)
        statistics = self.doc_prior.statistics(shard, z, rng) if self.learns else None
        return Done(z, Change.of_whole(rows, counts, not shard.weights.size), statistics)


class CollapsedStep:
    """A collapsed sweep, for burn-in only: other shards' counts are those of before the round.

    Parameters
    ----------
    table, mass : ndarray
        Counts of all tokens, as `whole_tokens.sweep` takes them.
    beta : float
    doc_prior : DocumentPrior
    temperature : float
    learns : bool
        Whether the documents' prior needs statistics of this round.
    """

    def __init__(self, table, mass, beta, doc_prior, temperature, learns):
        self.table, self.mass, self.beta, self.doc_prior = table, mass, beta, doc_prior
        self.temperature, self.learns = temperature, learns

    def __call__(self, shard, z, seed):
        """Return the `Done` of a shard with assignments ``z``."""
        z, table, mass, rng = np.array(z), self.table.copy(), self.mass.copy(), generator(seed)
        prior, group = self.doc_prior.of_shard(shard)
        whole_tokens.sweep(
            0, shard.n_docs, shard.token_ptr, shard.words, z, table, mass, prior, group, self.beta, rng,
            self.temperature,
        )  # fmt: skip
        rows, n_topics = shard.active()[0], self.mass.size
        after, before = table[:, :n_topics], self.table[:, :n_topics]
        change = Change.of_whole(rows, after - before if rows.size == len(table) else after[rows] - before[rows])
        return Done(z, change, self.doc_prior.statistics(shard, z, rng) if self.learns else None)


class GivenTopicsStep:
    """A sweep given the topics, in which shards are independent: exact, however documents are cut into shards.

    Parameters
    ----------
    topics : ndarray of float32, shape (n_words, n_topics)
        Columns sum to 1.
    doc_prior : DocumentPrior
    learns : bool
        Whether the documents' prior needs statistics of this round.
    """

    def __init__(self, topics, doc_prior, learns):
        self.topics, self.doc_prior, self.learns = topics, doc_prior, learns

    def __call__(self, shard, z, seed):
        """Return the `Done` of a shard with assignments ``z``."""
        z, (rows, slot), n_topics = np.array(z), shard.active(), self.topics.shape[1]
        rng = generator(seed)
        prior, group = self.doc_prior.of_shard(shard)
        phi = np.empty((rows.size, n_topics), dtype=np.float32)
        blocks = np.empty((rows.size, -(-n_topics // assignments.BLOCK) + 1), dtype=np.float32)
        cells, ones = self.topics[rows].astype(np.float64), np.ones(n_topics)
        assignments.topic_tables(cells, np.arange(rows.size), ones, prior, phi, blocks)
        made_for = np.full(rows.size if len(prior) > 1 else 0, -1, dtype=np.int32)
        counts = np.zeros((rows.size, n_topics))
        assignments.draw_assignments(
            0, shard.n_docs, np.arange(shard.n_docs), shard.token_ptr, shard.words, shard.weights, slot, phi, blocks,
            made_for, prior, group, np.uint64(rng.integers(2**63)), 1, 0, 1, z, counts,
            np.empty((0, shard.n_docs, n_topics)),
        )  # fmt: skip
        change = Change.of_whole(rows, counts, not shard.weights.size)
        return Done(z, change, self.doc_prior.statistics(shard, z, rng) if self.learns else None)
