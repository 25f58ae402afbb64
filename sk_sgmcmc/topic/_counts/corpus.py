"""The documents of a count topic model as tokens, in shards: in memory, or in memory-mapped files.

A shard is a range of documents that is processed together. The number of shards depends on the size of the corpus and
of the topics, never on the number of threads or machines, so draws do not depend on these. Shards on Dask workers are
in `dask_shards`, and the checked counts from which all of them are made in `documents`.
"""

import errno
import mmap
import os
import shutil
import tempfile
import zlib
from collections import deque
from copy import copy
from threading import Lock, RLock
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ...kernels.math import lanes
from ...kernels.models.lda import assignments
from ...utils import row_keys
from ...utils._numbers import summable

WORD_BYTES, TOPIC_BYTES, WEIGHT_BYTES = 4, 2, 8  # Bytes of a token's word, topic and weight.
# Most shards in memory, with which burn-in ends in the same state as with one; and fewest tokens of such a shard.
_MOST_SHARDS, _MIN_TOKENS = 16, 100_000
CELLS_PER_TOKEN = 4  # Most cells of the topics per token of a shard, so that copying the topics costs little.
_MANY_PER_WORD = 16  # Tokens of a shard per word of the vocabulary, with which most words occur.
SAMPLE = 5_000_000  # Tokens of the documents from which chains over blocks start.
_SHARDS_PER_CALL = 4  # Shards per thread before control returns to Python, so that Ctrl-C waits for less than a round.
_DOCS_AT_ONCE = 100_000  # Documents whose metadata are averaged at a time, to limit memory.

_lock = RLock()  # Chains in several threads share what is made at first use.


# ------------------------------------------------------------------------------------------------------------- shards


class Described(NamedTuple):
    """Metadata of the documents of a shard, one row for each group of documents with equal metadata.

    Parameters
    ----------
    group : ndarray of int64, shape (n_docs,)
        Group of each document, ascending.
    given : ndarray or csr_array of shape (n_groups, n_columns)
        Encoded metadata of the groups.
    rows : object
        The same in the form that the document prior takes; None if only ``given`` is needed.
    place : ndarray of int32, shape (n_docs,), or None
        Row of each document in X, or in all blocks so far; None for a sample.
    """

    group: np.ndarray
    given: object
    rows: object = None
    place: np.ndarray | None = None


class Shard(NamedTuple):
    """Documents that are processed together, as tokens.

    Parameters
    ----------
    token_ptr : ndarray of int64, shape (n_docs + 1,)
        The tokens of document d are ``token_ptr[d]:token_ptr[d + 1]``; it starts at 0.
    words : ndarray of int32, shape (n_tokens,)
    weights : ndarray of float64, shape (n_tokens,), or (0,) if every token weighs 1
    first_doc : int
        Index of its first document in the corpus.
    n_words : int
        Size of the vocabulary of the corpus.
    described : Described or None
        Metadata of the documents, which are then sorted by group.
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
    def n_tokens(self):
        """Number of tokens, regardless of their weights."""
        return self.words.size

    @property
    def group(self):
        """The row of each document in a table of priors, (n_docs,)."""
        return np.zeros(self.n_docs, dtype=np.int64) if self.described is None else self.described.group

    @property
    def given(self):
        """Encoded metadata of the groups, (n_groups, n_columns)."""
        return self.described.given

    @property
    def rows(self):
        """Metadata of the groups in the form that the document prior takes."""
        return self.described.rows

    @property
    def total(self):
        """Sum of the tokens' weights."""
        return float(self.weights.sum() if self.weights.size else self.words.size)

    @property
    def lengths(self):
        """Sum of the weights of each document's tokens, (n_docs,)."""
        lengths = np.diff(self.token_ptr)
        if not self.weights.size:
            return lengths.astype(np.float64)
        docs = np.repeat(np.arange(self.n_docs), lengths)
        return np.bincount(docs, self.weights, minlength=self.n_docs).astype(np.float64)

    def without_rows(self):
        """The same documents without `rows`, which can be computed from `given`."""
        return self if self.described is None else self._replace(described=self.described._replace(rows=None))

    def counts(self, docs=slice(None)):
        """Word counts of some documents, a csr_array (n_docs, n_words)."""
        weights = self.weights if self.weights.size else np.ones(self.words.size)
        counts = sparse.csr_array((weights, self.words, self.token_ptr), shape=(self.n_docs, self.n_words))[docs]
        counts.sum_duplicates()
        return counts

    def tokens_of(self, docs):
        """Indices of the tokens of some documents, and the documents' bounds among these indices, (n_docs + 1,)."""
        starts, lengths = self.token_ptr[docs], np.diff(self.token_ptr)[docs]
        ptr = np.concatenate([[0], np.cumsum(lengths)])
        return np.arange(ptr[-1]) + np.repeat(starts - ptr[:-1], lengths), ptr

    def of_docs(self, docs):
        """A shard of some of the documents, or of all in another order; without metadata."""
        tokens, ptr = self.tokens_of(docs)
        weights = self.weights[tokens] if self.weights.size else self.weights
        return Shard(ptr, self.words[tokens], weights, self.first_doc, self.n_words)

    def active(self):
        """The words that occur, and each word's index among them, or -1; all words if more than half of them occur.

        In that case indexing would cost more than leaving out the rows of the other words saves. With many tokens for
        each word, most words occur, and looking for them would cost more than that.
        """
        if self.n_tokens <= _MANY_PER_WORD * self.n_words:
            slot, rows = np.full(self.n_words, -1, dtype=np.int32), np.empty(self.n_words, dtype=np.int64)
            n = assignments.find_active(np.arange(self.n_docs), self.token_ptr, self.words, slot, rows)
            if 2 * n <= self.n_words:
                return rows[:n].copy(), slot
        return np.arange(self.n_words), np.arange(self.n_words, dtype=np.int32)


def groups_of(described):
    """Group documents by the rows of their metadata.

    Returns
    -------
    first : ndarray of int64, shape (n_groups,)
        The first document of each group, ascending.
    group : ndarray of int64, shape (n_docs,)
        Group of each document after sorting by ``order``, ascending.
    order : ndarray of int64, shape (n_docs,)
        Documents sorted by group.
    """
    _, first, group = np.unique(row_keys(sparse.csr_array(described)), return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # Number groups in the order of their first documents.
    first, group = np.sort(first), rank[group]
    order = np.argsort(group, kind="stable")
    return first, group[order].astype(np.int64), order


def sampled(shard, n):
    """A `Shard` of those documents of a shard whose index in the corpus is a multiple of ``n``."""
    if n == 1:
        return shard
    docs = np.arange(-shard.first_doc % n, shard.n_docs, n)
    some = shard.of_docs(docs)
    if shard.described is None:
        return some
    used, group = np.unique(shard.group[docs], return_inverse=True)
    return some._replace(described=Described(group.astype(np.int64), shard.given[used]))


def joined(parts):
    """Concatenate adjacent shards into one."""
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
        None if parts[0].described is None else _joined_described([part.described for part in parts]),
    )


def _joined_described(parts):
    firsts = np.cumsum([0, *(part.given.shape[0] for part in parts)])
    group = np.concatenate([part.group + first for part, first in zip(parts, firsts, strict=False)])
    given = [part.given for part in parts]
    return Described(group, sparse.csr_array(sparse.vstack(given)) if sparse.issparse(given[0]) else np.vstack(given))


def cuts(token_ptr, n_shards):
    """Bounds of the shards, as indices of documents, (n_shards + 1,), so that shards have about equally many tokens."""
    inner = token_ptr[0] + (token_ptr[-1] - token_ptr[0]) * np.arange(1, n_shards) // n_shards
    return np.concatenate([[0], np.searchsorted(token_ptr, inner), [token_ptr.size - 1]])


# --------------------------------------------------------------------------------------------------------- the corpus


class KeptCorpus:
    """A corpus of documents that are kept as tokens, so that others can be appended to them.

    Parameters
    ----------
    shard : Shard
        All documents, sorted by metadata if there are any.
    """

    def __init__(self, shard):
        self.shard = shard
        self.n_docs, self.n_words, self.n_tokens = shard.n_docs, shard.n_words, shard.n_tokens
        self.is_whole = shard.weights.size == 0

    @property
    def described(self):
        """Encoded metadata of the documents, (n_docs, n_columns), or None."""
        return None if self.shard.described is None else self.shard.given[self.shard.group]

    def n_shards(self, n_topics):
        """Number of shards for ``n_topics`` topics."""
        return shards_in_memory(self, n_topics)

    @property
    def checksum(self):
        """A checksum of the documents."""
        return zlib.crc32(self.shard.words, zlib.crc32(self.shard.token_ptr, zlib.crc32(self.shard.weights)))

    def with_given(self, given):
        """The same documents with other encoded metadata of their groups."""
        return KeptCorpus(self.shard._replace(described=self.shard.described._replace(given=given, rows=None)))

    def append(self, corpus):
        """Append a `Corpus`; returns the larger `KeptCorpus`, and which documents are new, (n_docs,).

        Earlier documents keep their order. The vocabulary may grow.
        """
        ptr, words, weights = corpus.expand_tokens()
        before, weights = self.shard, summable(weights)
        if before.weights.size or weights.size:
            parts = (before.weights, before.words), (weights, words)
            weights = np.concatenate([own if own.size else np.ones(of.size) for own, of in parts])
        joined = Shard(
            np.concatenate([before.token_ptr, before.token_ptr[-1] + ptr[1:]]),
            np.concatenate([before.words, words]),
            weights,
            0,
            corpus.n_words,
        )
        is_new = np.arange(joined.n_docs) >= before.n_docs
        if before.described is None:
            return KeptCorpus(joined), is_new
        stack = sparse.vstack if sparse.issparse(before.given) or sparse.issparse(corpus.described) else np.vstack
        rows = stack([before.given, corpus.described])
        rows = sparse.csr_array(rows) if sparse.issparse(rows) else rows
        place = np.append(before.described.place, np.arange(before.n_docs, joined.n_docs, dtype=np.int32))
        first, sorted_groups, order = groups_of(rows)
        group = np.empty(order.size, dtype=np.int64)
        group[order] = sorted_groups  # Groups that were there before keep their numbers.
        n_before = before.given.shape[0]
        group = np.concatenate([before.group, group[n_before:]])
        order = np.argsort(group, kind="stable")
        described = Described(group[order], rows[first], place=place[order])
        return KeptCorpus(joined.of_docs(order)._replace(described=described)), is_new[order]


class TokenCorpus:
    """Documents as tokens in shards, with the batch size and scale of a run; all chains of a run share it.

    Parameters
    ----------
    corpus : MatrixCorpus, BlockCorpus or KeptCorpus
    make_shards : callable
        Called with this object; returns its shards, `InMemoryShards`, `MemoryMappedShards` or `DaskShards`.
    n_topics : int
    n_batch : int, default=None
        Documents in a minibatch. None: all.
    total_samples : float, default=None
        Corpus size N in the scale N/n of minibatches. None: the documents of the corpus.
    n_threads, n_chains : int, default=1
        Threads of a chain, and number of chains. Draws do not depend on them.
    prepare : callable, default=None
        Turns encoded metadata of groups (`Described.given`) into the form of the document prior (`Described.rows`).
    early : Shard, default=None
        All documents of a growing corpus, from which chains start instead of the documents of ``corpus``.
    """

    def __init__(
        self, corpus, make_shards, n_topics, *, n_batch=None, total_samples=None, n_threads=1, n_chains=1,
        prepare=None, early=None,
    ):  # fmt: skip
        self.corpus, self.prepare, self.n_chains, self.n_threads = corpus, prepare, n_chains, n_threads
        self.n_docs, self.n_words, self.n_tokens = corpus.n_docs, corpus.n_words, corpus.n_tokens
        self.is_whole = corpus.is_whole
        self.n_batch = corpus.n_docs if n_batch is None else n_batch
        self.total_samples = float(corpus.n_docs if total_samples is None else total_samples)
        self.n_topics, self.early = n_topics, early
        self._make, self._shards, self._start = make_shards, None, None

    @property
    def shards(self):
        """The shards, which are made at first use."""
        with _lock:
            if self._shards is None:
                self._shards = self._make(self)
            return self._shards

    @property
    def n_groups(self):
        """Number of groups of documents with equal metadata; each group lies in one shard."""
        return self.shards.n_groups

    @property
    def documents(self):
        """All documents as one `Shard`, if they are in memory."""
        return self.shards.whole

    @property
    def start(self):
        """The documents from which chains start, a `Shard`: all, or an evenly spaced sample of a large corpus."""
        with _lock:
            if self._start is None:
                found = self.early if self.early is not None else self.shards.sample()
                if self.prepare is not None and found.described is not None and found.rows is None:
                    found = found._replace(described=found.described._replace(rows=self.prepare(found.given)))
                self._start = found
            return self._start

    @property
    def starts_with_all(self):
        """Whether `start` contains all documents that chains assign at their start, and not only a sample."""
        return self.early is not None or self.shards.is_in_memory

    def without_shards(self):
        """A copy without shards, for a finished chain, so that files and workers' memory are released."""
        self.start  # noqa: B018 - may be needed later, and comes from the shards
        other = object.__new__(TokenCorpus)
        other.__dict__.update(self.__dict__, _shards=None)
        return other

    def fingerprint(self):
        """A fingerprint of the data: checksums of counts and of metadata, and the number of shards."""
        described = self.corpus.described
        own = 0 if described is None else zlib.crc32(row_keys(sparse.csr_array(described)))
        return self.corpus.checksum, own, self.shards_wanted

    @property
    def shards_wanted(self):
        """Number of shards."""
        return self.corpus.n_shards(self.n_topics)

    def mean_of(self, values_of):
        """Mean over documents of ``values_of(given)``, (n,), a function of (n_groups, n_columns) to (n_groups, n)."""
        total, described = 0.0, self.corpus.described
        for start in range(0, self.n_docs, _DOCS_AT_ONCE):
            part = described[start : start + _DOCS_AT_ONCE]
            first, group, _ = groups_of(part)
            total = total + np.bincount(group) @ values_of(part[first])
        return total / self.n_docs


def shards_in_memory(corpus, n_topics):
    """Number of shards in memory of a corpus for ``n_topics`` topics."""
    return number_of_shards(corpus.n_tokens, corpus.n_words * lanes.padded(n_topics))


def number_of_shards(n_tokens, n_cells):
    """Number of shards in memory for ``n_tokens`` tokens and topics of ``n_cells`` cells; 1 for small corpora."""
    least = max(_MIN_TOKENS, n_cells / CELLS_PER_TOKEN)
    return int(min(max(n_tokens // least, 1), _MOST_SHARDS))


# ----------------------------------------------------------------------------------------------- shards on this machine


class LocalShards:
    """Shards whose tokens and assignments are arrays of this process, processed by threads.

    A subclass sets ``n_shards``, ``n_threads``, ``n_words``, ``token_ptr``, ``words``, ``weights``, ``ends`` and
    ``described``, a list with the `Described` of each shard or None.
    """

    is_in_memory = False

    @property
    def n_groups(self):
        """Number of groups of documents, each of which lies in one shard."""
        return sum(1 if each is None else each.given.shape[0] for each in self.described)

    @property
    def n_tokens(self):
        """Number of tokens."""
        return self.words.size

    def shard(self, i):
        """Shard ``i``, and the slice of its tokens."""
        start, stop = self.ends[i], self.ends[i + 1]
        ptr = self.token_ptr[start : stop + 1]
        part = slice(int(ptr[0]), int(ptr[-1]))
        weights = self.weights[part] if self.weights.size else self.weights
        return Shard(ptr - ptr[0], self.words[part], weights, int(start), self.n_words, self.described[i]), part

    def evaluate(self, z, pool, function, *args_of):
        """Values of ``function(shard, z, *args)`` for all shards, in order.

        Each of ``args_of`` is a list with an argument for each shard.
        """

        def work(i):
            shard, part = self.shard(i)
            return function(shard, z[part], *(args[i] for args in args_of))

        return list((map if pool is None else pool.map)(work, range(self.n_shards)))

    def keep(self, z, pool, function, *args_of):
        """As `evaluate`, but the values stay where they are computed; pass them to `evaluate_kept`."""
        return self.evaluate(z, pool, function, *args_of)

    def evaluate_kept(self, kept, pool, function, *args):
        """Values of ``function(shard, kept value, *args)`` for all shards, in order."""

        def work(i):
            return function(self.shard(i)[0], kept[i], *args)

        return list((map if pool is None else pool.map)(work, range(self.n_shards)))

    def wants_checkpoint(self, z, step):
        """Whether to copy the assignments before the next round: never, since local assignments cannot be lost."""
        return False

    def proceed(self, now, z, pool):
        """Process the next shards of a `Round` in the threads of ``pool``, and write their assignments into ``z``."""
        n = _SHARDS_PER_CALL * self.n_threads
        numbers, lock, results = range(now.next_shard, min(now.next_shard + n, self.n_shards)), Lock(), deque()

        def work(i):
            shard, part = self.shard(i)
            done = now.step(shard, z[part], now.seed_of(i))
            z[part] = done.z
            with lock:
                done.change.add_to(now.sums)

        results.extend(map(work, numbers) if pool is None else pool.map(work, numbers))
        now.next_shard = numbers.stop


class InMemoryShards(LocalShards):
    """Shards in memory.

    Parameters
    ----------
    data : TokenCorpus
    """

    is_in_memory = True

    def __init__(self, data):
        self.whole = self._documents(data)
        self.token_ptr, self.words, self.weights = self.whole[:3]
        described = self.whole.described
        self.n_words, self.n_threads, self.n_shards = data.n_words, data.n_threads, data.shards_wanted
        self.ends, self._prepare = cuts(self.token_ptr, self.n_shards), data.prepare
        self.described = [described]
        if self.n_shards > 1:
            self.described = [self._part(described, data.prepare, i) for i in range(self.n_shards)]

    def _documents(self, data):
        """All documents, sorted by metadata, as one `Shard`."""
        corpus, described = data.corpus, None
        if corpus.described is not None:
            first, group, order = groups_of(corpus.described)
            given = corpus.described[first]
            rows = None if data.prepare is None else data.prepare(given)
            described = Described(group, given, rows, order.astype(np.int32))
            corpus = corpus if first.size == 1 else corpus.take(order)
        ptr, words, weights = corpus.expand_tokens()
        return Shard(ptr, words, summable(weights), 0, data.n_words, described)

    def part(self, start, stop, n_shards):
        """Documents start:stop alone, in ``n_shards`` shards."""
        other = copy(self)
        other.n_shards, other.ends = n_shards, start + cuts(self.token_ptr[start : stop + 1], n_shards)
        other.described = [other._part(self.whole.described, self._prepare, i) for i in range(n_shards)]
        return other

    def _part(self, described, prepare, i):
        """The `Described` of shard ``i``, or None without metadata."""
        if described is None:
            return None
        docs = slice(self.ends[i], self.ends[i + 1])
        group, place = described.group[docs], described.place[docs]
        first, last = (group[0], group[-1]) if group.size else (0, 0)
        given = described.given[first : last + 1]
        return Described(group - first, given, None if prepare is None else prepare(given), place)

    def sample(self):
        """All documents."""
        return self.whole

    def assignments(self, z=None):
        """An array for the assignments of a chain, or ``z`` itself."""
        return np.empty(self.words.size, dtype=np.uint16) if z is None else z


class KeptShards(InMemoryShards):
    """Shards of a `KeptCorpus`.

    Parameters
    ----------
    data : TokenCorpus
    """

    def _documents(self, data):
        shard = data.corpus.shard
        if shard.described is None or data.prepare is None:
            return shard
        return shard._replace(described=shard.described._replace(rows=data.prepare(shard.given)))


class OneShard:
    """A single `Shard` in memory, for evaluations at the start of a chain that later reads other shards.

    Parameters
    ----------
    shard : Shard
    """

    is_in_memory, n_shards = True, 1

    def __init__(self, shard):
        self.whole, self.n_tokens = shard, shard.n_tokens
        self.n_groups = 1 if shard.described is None else shard.given.shape[0]

    def evaluate(self, z, pool, function, *args_of):
        """As `LocalShards.evaluate`."""
        return [function(self.whole, z, *(args[0] for args in args_of))]


class Scratch:
    """Arrays in unnamed temporary files, which the system deletes with the array, also if the process is killed.

    Parameters
    ----------
    parent : str, path-like or None
        Folder of the files. None: the system's folder for temporary files.
    needed : int
        Number of bytes that will be written; the constructor raises if they are not free.
    """

    def __init__(self, parent, needed):
        self.folder = tempfile.gettempdir() if parent is None else os.fspath(parent)
        if needed > shutil.disk_usage(self.folder).free:
            self._refuse(needed)

    def _refuse(self, needed):
        raise ValueError(
            f"Words and assignments need {needed / 2**30:.3g} GiB more, but only "
            f"{shutil.disk_usage(self.folder).free / 2**30:.3g} GiB are free in {self.folder}; name a folder with more "
            "room by CountBlocks(..., folder=...)."
        )

    def new(self, dtype, size):
        """An array in a file of its own; an ordinary one if it is empty."""
        if size == 0:
            return np.empty(0, dtype=dtype)
        n_bytes = int(size) * np.dtype(dtype).itemsize
        with tempfile.TemporaryFile(prefix="sk_sgmcmc-", dir=self.folder) as file:
            self._reserve(file, n_bytes)
            # joblib passes a numpy.memmap to other processes by the name of its file, and these files have none.
            return np.frombuffer(mmap.mmap(file.fileno(), n_bytes), dtype=dtype)

    def _reserve(self, file, n_bytes):
        """Set a file's length and reserve its disk space: Python would be killed if a write to the map found none."""
        file.truncate(n_bytes)
        try:
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        except AttributeError:  # This system has no such function.
            pass
        except OSError as error:  # Other errors mean that the file system cannot reserve space.
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                self._refuse(n_bytes)


class MemoryMappedShards(LocalShards):
    """Shards of blocks in memory-mapped files.

    Parameters
    ----------
    data : TokenCorpus
    """

    def __init__(self, data):
        corpus, blocks = data.corpus, data.corpus.blocks
        self.n_words, self.n_shards, self.n_threads = data.n_words, data.shards_wanted, data.n_threads
        self._every = max(1, -(-data.n_tokens // SAMPLE))
        per_token = WORD_BYTES + data.n_chains * TOPIC_BYTES + (0 if data.is_whole else WEIGHT_BYTES)
        self.scratch = Scratch(blocks.folder, per_token * data.n_tokens + 8 * data.n_docs)
        self.token_ptr = self.scratch.new(np.int64, data.n_docs + 1)
        self.words = self.scratch.new(np.int32, data.n_tokens)
        self.weights = self.scratch.new(np.float64, 0 if data.is_whole else data.n_tokens)
        doc = token = 0
        for part in corpus.corpora():
            ptr, words, weights = part.expand_tokens()
            self.token_ptr[doc + 1 : doc + ptr.size] = token + ptr[1:]
            self.words[token : token + words.size] = words
            if self.weights.size:
                weights = weights if weights.size else np.ones(words.size)
                self.weights[token : token + words.size] = summable(weights)
            doc, token = doc + part.n_docs, token + words.size
        self.ends = cuts(self.token_ptr, self.n_shards)
        self.described = [None] * self.n_shards
        if corpus.described is not None:
            for i in range(self.n_shards):
                self._arrange(i, corpus.described, data.prepare)

    def _arrange(self, i, described, prepare):
        """Sort the documents of shard ``i`` by metadata."""
        start = self.ends[i]
        order, self.described[i] = arranged(described[start : self.ends[i + 1]], prepare, start)
        if np.all(np.diff(order) == 1):
            return
        shard, part = self.shard(i)
        shard = shard.of_docs(order)
        self.token_ptr[start : self.ends[i + 1] + 1] = part.start + shard.token_ptr
        self.words[part] = shard.words
        if self.weights.size:
            self.weights[part] = shard.weights

    def sample(self):
        """An evenly spaced sample of the documents, a `Shard`."""
        found = joined([sampled(self.shard(i)[0], self._every) for i in range(self.n_shards)])
        # Copy, since views would keep the files open as long as the sample lives.
        return found._replace(words=found.words.copy(), weights=found.weights.copy())

    def assignments(self, z=None):
        """An array in a file for the assignments of a chain, with a copy of ``z`` if it is passed."""
        room = self.scratch.new(np.uint16, self.words.size)
        if z is not None:
            room[:] = z
        return room


def arranged(described, prepare, first_doc):
    """The order that sorts the documents of a shard by metadata, and their `Described`.

    ``first_doc`` is the index of the shard's first document in the corpus.
    """
    first, group, order = groups_of(described)
    given = described[first]
    place = (first_doc + order).astype(np.int32)
    return order, Described(group, given, None if prepare is None else prepare(given), place)


# ----------------------------------------------------------------------------------------------------- a pass over them


class AssignedShards:
    """All shards with their assignments; functions of them are evaluated where the shards are.

    Parameters
    ----------
    shards : InMemoryShards, MemoryMappedShards, DaskShards or OneShard
    z : object
        Assignments of all shards.
    pool : executor or None
        Threads.
    sweeps : object
        The counts of the assignments, if topics are integrated out; see `sweeps`.
    """

    def __init__(self, shards, z, pool, sweeps=None):
        self.shards, self.z, self.pool, self.sweeps = shards, z, pool, sweeps

    @property
    def size(self):
        """Number of groups of documents, and number of tokens."""
        return self.shards.n_groups, self.shards.n_tokens

    @property
    def documents(self):
        """All documents as one `Shard`, if they are in memory; else None."""
        return self.shards.whole if self.shards.is_in_memory else None

    def map(self, function, *args):
        """Values of ``function(shard, z, *args)``, a list in the order of the shards."""
        n = self.shards.n_shards
        return self.shards.evaluate(self.z, self.pool, function, *([arg] * n for arg in args))

    def keep(self, function, *args):
        """Values of ``function(shard, z, *args)`` as `KeptValues`, which stay where the shards are."""
        n = self.shards.n_shards
        kept = self.shards.keep(self.z, self.pool, function, *([arg] * n for arg in args))
        return KeptValues(self.shards, kept, self.pool)

    def draw(self, function, rng, *args):
        """As `map`, with a random stream as the function's last argument.

        A single shard in memory gets ``rng`` itself, otherwise each shard gets a stream derived from it.
        """
        n = self.shards.n_shards
        if n == 1 and self.shards.is_in_memory:
            return [function(self.shards.whole, self.z, *args, rng)]
        seeds = np.random.SeedSequence(int(rng.integers(2**63))).spawn(n)
        streamed = _with_stream(function)
        return self.shards.evaluate(self.z, self.pool, streamed, *([arg] * n for arg in args), seeds)


class KeptValues:
    """A value for each shard, stored where the shard is; see `AssignedShards.keep`."""

    def __init__(self, shards, kept, pool):
        self.shards, self.kept, self.pool = shards, kept, pool

    def map(self, function, *args):
        """Values of ``function(shard, kept value, *args)``, a list in the order of the shards."""
        return self.shards.evaluate_kept(self.kept, self.pool, function, *args)


class _with_stream:
    def __init__(self, function):
        self.function = function

    def __call__(self, shard, z, *args):
        *args, seed = args
        return self.function(shard, z, *args, np.random.Generator(np.random.PCG64(seed)))


class Change:
    """A change of the topic counts of some words.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        Indices of the words.
    values : ndarray of shape (n_rows, n_topics)
        What to add to their counts.
    """

    def __init__(self, rows, values):
        self.rows, self.values = rows, values

    def compacted(self):
        """The same change; if its values are integers, they have the smallest type that contains them."""
        if self.values.dtype.kind != "i":
            return self
        largest = int(max(self.values.max(initial=0), -self.values.min(initial=0)))
        return Change(self.rows, self.values.astype(np.min_scalar_type(-largest - 1)))

    def add_to(self, counts):
        """Add to counts (n_words, >= n_topics) in place."""
        part = counts[:, : self.values.shape[1]]
        if _are_all(self.rows, len(counts)):
            np.add(part, self.values, out=part, casting="unsafe")  # Avoids the copies that indexing makes.
        else:
            part[self.rows] += self.values.astype(counts.dtype)

    @classmethod
    def sum_of(cls, changes):
        """The sum of several changes, which does not depend on their order (see `summable`)."""
        rows = changes[0].rows
        alike = all(np.array_equal(each.rows, rows) for each in changes)
        rows = rows if alike else np.unique(np.concatenate([each.rows for each in changes]))
        is_whole = all(each.values.dtype.kind == "i" for each in changes)
        # Integers have 32 bits, as in the table of all counts.
        values = np.zeros((rows.size, changes[0].values.shape[1]), dtype=np.int32 if is_whole else np.float64)
        for each in changes:
            if alike:
                values += each.values
            else:
                values[np.searchsorted(rows, each.rows)] += each.values
        return cls(rows, values).compacted()


def _are_all(rows, n_words):
    return rows.size == n_words and np.array_equal(rows, np.arange(n_words))


class Done(NamedTuple):
    """The result of processing a shard.

    Parameters
    ----------
    z : ndarray of uint16, shape (n_tokens,)
        New assignments.
    change : Change
        Change of the counts.
    """

    z: np.ndarray
    change: Change


class Round:
    """The state of a round over all shards, so that a chain can be saved before the round is complete.

    Parameters
    ----------
    step : callable
        Maps a `Shard`, its assignments and a seed to a `Done`. It has no side effects, so that it gives the same result
        in any thread or process, and when it is repeated because a worker was lost.
    seed : int
    table : ndarray
        Counts before the round. Changes of the shards are added to a copy.
    """

    def __init__(self, step, seed, table):
        self.step, self.seed = step, seed
        self.sums = table.copy()
        self.next_shard = 0

    def seed_of(self, i):
        """The seed of shard ``i``."""
        return np.random.SeedSequence([self.seed, i])


# ------------------------------------------------------------------------------------------------ work in this process


def streams(rng, n):
    """Derive ``n`` random streams from ``rng``, for work that is done in parallel."""
    return [np.random.Generator(np.random.PCG64(seed)) for seed in rng.integers(2**63, size=n)]


def side_by_side(work, n, pool):
    """Call ``work(i)`` for i = 0, ..., n - 1, in the threads of ``pool``, or one after the other if it is None."""
    for _ in map(work, range(n)) if pool is None else pool.map(work, range(n)):
        pass


def pieces(token_ptr, tokens=2_000_000):
    """Ranges of documents with about ``tokens`` tokens each, so that no kernel runs for long."""
    stop, n_docs = 0, token_ptr.size - 1
    while stop < n_docs:
        start = stop
        stop = int(np.searchsorted(token_ptr, token_ptr[start] + tokens, side="right")) - 1
        stop = min(max(stop, start + 1), n_docs)
        yield start, stop
