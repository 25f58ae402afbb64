"""A corpus in blocks as chains are bound to it, and its shards on this machine: tokens in memory-mapped files."""

import errno
import mmap
import os
import shutil
import tempfile
from collections import deque
from threading import Lock, RLock

import numpy as np

from ...utils._numbers import summable
from ...utils.blocks import joined_checksums
from .shard_steps import Shard, joined, sampled
from .shards import cuts

# Of a shard, unless topics have many cells: some tenths of a second of work, beside which handing it out costs little.
_SHARD_TOKENS = 2_000_000
_CELLS_PER_TOKEN = 4  # of the topics per token of a shard, so that copying the topics takes a small part of the time
WORD_BYTES, TOPIC_BYTES, WEIGHT_BYTES = 4, 2, 8  # of a token
_SAMPLE = 5_000_000  # tokens of the documents from which chains start
_SHARDS_PER_CALL = 4  # for each thread, so that Ctrl-C does not wait for a whole round

_lock = RLock()  # chains in several threads share what is made at first use


class BlockCorpus:
    """A checked corpus in blocks, in place of a `Corpus`.

    Parameters
    ----------
    blocks : CountBlocks
    """

    word_counts = None  # known once all tokens are assigned

    def __init__(self, blocks):
        self.blocks = blocks
        self.n_docs, self.n_words = blocks.shape
        self.n_tokens = blocks.n_tokens
        self.is_whole = all(each.is_whole for each in blocks.sizes)
        self.has_unit_rows = all(each.has_unit_rows for each in blocks.sizes)
        self.is_hardly_whole = all(each.is_hardly_whole for each in blocks.sizes if each.n_tokens)

    @property
    def checksum(self):
        """As for `Corpus`, however the documents are divided into blocks."""
        return joined_checksums(self.blocks.sizes)

    def shard_tokens(self, n_topics):
        """Tokens of a shard."""
        least = self.n_words * n_topics / _CELLS_PER_TOKEN
        return self.blocks.shard_tokens or max(_SHARD_TOKENS, least)

    def arranged(self, start, stop):
        """How documents start:stop are arranged and described; None leaves them as they are.

        Returns
        -------
        order : ndarray of int64, shape (n_docs,)
            In which they form groups.
        group : ndarray of int64, shape (n_docs,)
            Of the documents in that order.
        first : ndarray of int64, shape (n_groups,)
            A document of each group, by its index in the corpus.
        """
        return None

    def described(self, group, first):
        """The `Described` of arranged documents."""

    def corpora(self):
        """Iterate over the blocks that hold documents, as `Corpus`."""
        return (corpus for corpus in self.blocks.corpora() if corpus.n_docs)

    def to_csr(self):
        """Refuse to become a matrix in memory."""
        raise TypeError("Held-out documents must be a matrix in memory, not CountBlocks; pass some of the documents.")

    def fingerprint(self):
        """By which to recognise the data, however they are divided into blocks."""
        return self.checksum


class BlockData:
    """A corpus in blocks and the way that rounds over its shards are run; shared by all chains.

    Parameters
    ----------
    corpus : BlockCorpus
    n_topics, n_threads, n_chains : int
    shards : callable
        Function from this object to what runs rounds: `LocalShards` or a class with its methods.
    """

    weights = np.empty(0)

    def __init__(self, corpus, n_topics, n_threads, n_chains, shards):
        self.corpus, self.n_chains = corpus, n_chains
        self.n_docs, self.n_words, self.is_whole = corpus.n_docs, corpus.n_words, corpus.is_whole
        self.n_batch, self.total_samples, self.n_threads = corpus.n_docs, float(corpus.n_docs), n_threads
        self.n_shards = max(1, round(corpus.n_tokens / corpus.shard_tokens(n_topics)))
        self._make = shards
        self._shards = self._start = None

    def without_shards(self):
        """A copy for a chain that has finished, so that files and workers' memory are given back."""
        self.start  # noqa: B018 - may be needed later, and comes from the shards
        other = object.__new__(BlockData)
        other.__dict__.update(self.__dict__, _shards=None)
        return other

    def fingerprint(self):
        """A checksum by which to recognise the data and their shards."""
        return self.corpus.fingerprint(), self.n_shards

    @property
    def n_tokens(self):
        """Number of tokens, whatever they weigh."""
        return self.corpus.n_tokens

    @property
    def n_groups(self):
        """Groups of documents with the same metadata, each of one shard."""
        return self.shards.n_groups

    def mean_of(self, priors_of):
        """Mean over documents of ``priors_of(encoded)``, (n_topics,), where documents have metadata."""
        return self.corpus.mean_of(priors_of)

    @property
    def shards(self):
        """The shards, where they are processed; made at first use."""
        with _lock:
            if self._shards is None:
                self._shards = self._make(self)
            return self._shards

    @property
    def start(self):
        """Evenly spaced documents from which chains start, a `Shard`."""
        with _lock:
            if self._start is None:
                self._start = self.shards.sample(max(1, -(-self.corpus.n_tokens // _SAMPLE)))
            return self._start


class Scratch:
    """Arrays in files without a name, which the system deletes with the last array, and if the process is killed.

    Parameters
    ----------
    parent : str, path-like or None
        Folder of the files. None: the system's folder for temporary files.
    needed : int
        Bytes to be written.
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
            # Not numpy.memmap, which joblib would hand to other processes by the name of its file.
            return np.frombuffer(mmap.mmap(file.fileno(), n_bytes), dtype=dtype)

    def _reserve(self, file, n_bytes):
        """Give a file its length, with blocks of the disk: writing to a map of a file that has none kills Python."""
        file.truncate(n_bytes)
        try:
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        except AttributeError:  # not on this system
            pass
        except OSError as error:  # others: of file systems that cannot reserve
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                self._refuse(n_bytes)


class LocalShards:
    """Shards on this machine: words and assignments in memory-mapped files, processed by threads.

    Parameters
    ----------
    data : BlockData
    """

    def __init__(self, data):
        self.blocks = blocks = data.corpus.blocks
        self.n_words, self.n_shards, self.n_threads = data.n_words, data.n_shards, data.n_threads
        per_token = WORD_BYTES + data.n_chains * TOPIC_BYTES + (0 if data.is_whole else WEIGHT_BYTES)
        self.scratch = Scratch(blocks.folder, per_token * data.corpus.n_tokens + 8 * data.n_docs)
        n_tokens, weighted = data.corpus.n_tokens, not data.is_whole
        self.token_ptr = self.scratch.new(np.int64, data.n_docs + 1)
        self.words = self.scratch.new(np.int32, n_tokens)
        self.weights = self.scratch.new(np.float64, n_tokens if weighted else 0)
        doc = token = 0
        for corpus in blocks.corpora():
            ptr, words, weights = corpus.expand_tokens()
            self.token_ptr[doc + 1 : doc + ptr.size] = token + ptr[1:]
            self.words[token : token + words.size] = words
            if weighted:
                weights = weights if weights.size else np.ones(words.size)
                self.weights[token : token + words.size] = summable(weights)
            doc, token = doc + corpus.n_docs, token + words.size
        self.ends = cuts(self.token_ptr, data.n_shards)
        self.corpus, self.groups = data.corpus, [None] * data.n_shards
        for i in range(data.n_shards):
            self._arrange(i)
        self.n_groups = sum(1 if groups is None else groups[1].size for groups in self.groups)

    def _arrange(self, i):
        """Sort the documents of shard ``i`` by their metadata."""
        arranged = self.corpus.arranged(self.ends[i], self.ends[i + 1])
        if arranged is None:
            return
        order, *self.groups[i] = arranged
        shard, part = self.shard(i)
        if np.any(np.diff(order) != 1):
            shard = shard.of_docs(order)
            self.token_ptr[self.ends[i] : self.ends[i + 1] + 1] = part.start + shard.token_ptr
            self.words[part] = shard.words
            if self.weights.size:
                self.weights[part] = shard.weights

    def assignments(self, z=None):
        """Room for the assignments of a chain, or a copy of ``z``, in a file."""
        room = self.scratch.new(np.uint16, self.words.size)
        if z is not None:
            room[:] = z
        return room

    def sample(self, n):
        """Every n-th document, a `Shard`."""
        found = joined([sampled(self.shard(i)[0], n) for i in range(self.n_shards)])
        # Copies: it outlasts the files, which a view would keep.
        return found._replace(words=found.words.copy(), weights=found.weights.copy())

    def shard(self, i):
        """Shard ``i``, and the range of its tokens."""
        start, stop = self.ends[i], self.ends[i + 1]
        ptr = self.token_ptr[start : stop + 1]
        part = slice(int(ptr[0]), int(ptr[-1]))
        weights = self.weights[part] if self.weights.size else self.weights
        described = None if self.groups[i] is None else self.corpus.described(*self.groups[i])
        return Shard(ptr - ptr[0], self.words[part], weights, int(start), self.n_words, described), part

    def evaluate(self, z, pool, function, *args):
        """Values of a function of each shard and its assignments, in order; changes nothing."""

        def work(i):
            shard, part = self.shard(i)
            return function(shard, z[part], *args)

        return list((map if pool is None else pool.map)(work, range(self.n_shards)))

    def wants_checkpoint(self, z, step):
        """Whether assignments should be copied before the next round: never, as they cannot be lost."""
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
            return done.statistics

        results.extend(map(work, numbers) if pool is None else pool.map(work, numbers))
        now.statistics.extend(results)
        now.next_shard = numbers.stop
