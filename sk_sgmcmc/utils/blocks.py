"""Counts that need not fit in memory: blocks of documents, which are read one after another."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ._files import load_sparse
from ._numbers import is_count
from ._typing import MatrixLike, Path
from .corpus import BASE, Corpus, check_counts

# Approximate number of stored entries of a block that is cut from one large matrix.
_ENTRIES = 2**22


class BlockSizes(NamedTuple):
    """Sizes and properties of a block, which its check determines.

    Parameters
    ----------
    n_docs, n_words, n_tokens, n_entries : int
        Numbers of documents, words, tokens, and nonzero entries.
    is_whole : bool
        Whether every count is a whole number.
    has_unit_rows, is_hardly_whole : bool
        See `Corpus`.
    checksum : int
        See `Corpus`.
    """

    n_docs: int
    n_words: int
    n_tokens: int
    n_entries: int
    is_whole: bool
    has_unit_rows: bool
    is_hardly_whole: bool
    checksum: int


def checked_block(X, name):
    """A block as a ``Corpus``; errors name the block."""
    if not sparse.issparse(X):
        raise TypeError(
            f"{name} is of type {type(X).__name__}; a block must be a sparse matrix, for example "
            "scipy.sparse.csr_array(block), or X.map_blocks(scipy.sparse.csr_array) of a Dask array X."
        )
    return Corpus.from_counts(X, input_name=name, whom="CountBlocks") if X.shape[0] else _without_rows(X)


def _without_rows(X):
    nothing = np.empty(0)
    return Corpus(np.zeros(1), nothing, nothing, X.shape[1])


def sizes_of(corpus):
    """The ``BlockSizes`` of a checked block."""
    seen = corpus.is_whole, corpus.has_unit_rows, corpus.is_hardly_whole
    return BlockSizes(corpus.n_docs, corpus.n_words, corpus.n_tokens, corpus.counts.size, *seen, corpus.checksum)


def joined_checksums(sizes):
    """The checksum of the documents of all blocks, which does not depend on their division into blocks."""
    total = 0
    for each in sizes:
        total = (total * pow(int(BASE), each.n_docs, 2**64) + each.checksum) % 2**64
    return total


class CountBlocks:
    """Counts of documents in blocks, of which only a few are in memory at a time.

    Pass it to topic models of counts in place of X; see "Corpora larger than memory" in the user guide.

    Parameters
    ----------
    blocks : list, callable, sparse matrix or Dask array
        Blocks of documents with the same columns, in one of four forms. A list contains sparse matrices, or paths of
        ``.npz`` files that `scipy.sparse.save_npz` wrote. A function without arguments returns a new iterator over
        sparse matrices at each call. A CSR matrix, whose arrays may be memory maps, is cut into blocks without a copy.
        A Dask array consists of sparse matrices, in one chunk of columns.
    shard_tokens : int or None, default=None
        Number of tokens of a shard, the documents that are processed together; see the Notes. Draws depend on it.
        None: two million, or more if topics have many cells.
    folder : str, path-like or None, default=None
        Folder for temporary files, which take six bytes for each token. None: the system's temporary folder.

    Attributes
    ----------
    shape : tuple of int
        Numbers of documents and words, over all blocks.
    n_tokens : int
        Number of tokens. A fractional entry x counts as floor(x) tokens of weight 1, and one with the rest as weight.

    Notes
    -----
    All blocks are read and checked at first use, before anything is fitted. Shards are cut by tokens and may cross the
    ends of blocks. Draws therefore do not depend on the division into blocks, on where blocks are stored, or on how
    many threads or machines process them.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from sk_sgmcmc.datasets import CountBlocks
    >>> X = sp.random_array(
    ...     (100, 20), density=0.2, format="csr", random_state=0
    ... ).ceil()
    >>> blocks = CountBlocks([X[:40], X[40:]])
    >>> blocks.shape
    (100, 20)
    """

    def __init__(self, blocks: Any, *, shard_tokens: int | None = None, folder: Path | None = None) -> None:
        if shard_tokens is not None and not is_count(shard_tokens):
            raise ValueError(
                f"shard_tokens={shard_tokens!r} must be a whole number of at least 1; use None or, say, 1_000_000."
            )
        if folder is not None and not isinstance(folder, (str, os.PathLike)):
            raise TypeError(f"folder={folder!r} must be the path of a folder, or None for the system's temporary one.")
        if folder is not None and not os.path.isdir(os.fspath(folder)):
            raise ValueError(f"folder={os.fspath(folder)!r} is not a folder; make it first, or use None.")
        self.shard_tokens = shard_tokens
        self.folder = folder
        self._made_by = self._items = None
        self.is_dask = type(blocks).__module__.startswith("dask.array")
        if self.is_dask:
            self._items = _dask_blocks(blocks)
        elif sparse.issparse(blocks):
            self._items = _cut(blocks)
        elif callable(blocks):
            self._made_by = blocks
        elif isinstance(blocks, Iterator):
            raise TypeError(
                f"blocks is a {type(blocks).__name__}, which can be read only once, but a fit reads all blocks several "
                "times; pass the function that makes it, for example CountBlocks(read_blocks) or "
                "CountBlocks(lambda: (load(path) for path in paths))."
            )
        elif isinstance(blocks, Sequence) and not isinstance(blocks, (str, bytes)):
            self._items = list(blocks)
        else:
            raise TypeError(
                f"blocks is of type {type(blocks).__name__}; pass a list of sparse matrices or of .npz paths, a "
                "function that returns an iterator over sparse matrices, a CSR matrix, or a Dask array."
            )
        if self._items is not None and not self._items:
            raise ValueError("blocks is empty; pass at least one block of documents.")

    def __repr__(self):
        n_blocks = "?" if self._items is None else len(self._items)
        return f"CountBlocks(<{n_blocks} blocks>, shard_tokens={self.shard_tokens!r}, folder={self.folder!r})"

    # -- blocks --------------------------------------------------------------------------------------------------

    def __iter__(self):
        """Iterate over the blocks as sparse matrices, without a check."""
        return (load_block(item, self.name_of(i)) for i, item in enumerate(self._all_items()))

    @property
    def items(self) -> list[Any] | None:
        """The sources from which ``load_block`` loads the blocks, a list; None if a function makes the blocks."""
        return self._items

    def _all_items(self):
        """An iterable over the sources of the blocks; if a function makes the blocks, these themselves."""
        if self._items is not None:
            return self._items
        made = self._made_by()
        if sparse.issparse(made) or not isinstance(made, Iterable):
            raise TypeError(
                f"The function that makes blocks returned a {type(made).__name__}; it must return an iterator over "
                "sparse matrices, for example iter([X1, X2])."
            )
        return made

    def name_of(self, i: int) -> str:
        """The name of block ``i`` in errors."""
        item = None if self._items is None else self._items[i]
        return f"block {i} ({os.fspath(item)!r})" if isinstance(item, (str, os.PathLike)) else f"block {i}"

    def entries(self) -> Iterator[tuple[Any, str, BlockSizes]]:
        """Iterate over the source, the name and the ``BlockSizes`` of each block; raises if their number has changed.

        A source is an argument of ``load_block``. If a function makes the blocks, sources are the blocks themselves.
        """
        sizes, n = self.sizes, 0
        for i, item in enumerate(self._all_items()):
            if i == len(sizes):
                refuse_change(f"there were more than {len(sizes)} blocks")
            yield item, self.name_of(i), sizes[i]
            n = i + 1
        if n < len(sizes):
            refuse_change(f"only {n} of {len(sizes)} blocks were there")

    def corpora(self) -> Iterator[Corpus]:
        """Iterate over blocks as ``Corpus``; raises if they have changed since they were checked."""
        return (checked_again(item, name, sizes) for item, name, sizes in self.entries())

    @cached_property
    def sizes(self):
        """The ``BlockSizes`` of all blocks; the first access reads and checks all blocks."""
        return checked_sizes(
            [sizes_of(checked_block(block, self.name_of(i))) for i, block in enumerate(self)], self.name_of
        )

    @property
    def is_elsewhere(self) -> bool:
        """Whether workers can load all blocks themselves, since these are computed by Dask or lie in files."""
        return self.is_dask or all(isinstance(item, (str, os.PathLike)) for item in self._items or [None])

    @property
    def is_checked(self) -> bool:
        """Whether the blocks have been checked."""
        return "sizes" in self.__dict__

    def take_sizes(self, sizes: list[BlockSizes]) -> None:
        """Use the ``BlockSizes`` that workers have determined, a list in the order of the blocks."""
        self.__dict__["sizes"] = checked_sizes(sizes, self.name_of)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of documents and words, over all blocks."""
        return sum(each.n_docs for each in self.sizes), self.sizes[0].n_words

    @property
    def n_tokens(self) -> int:
        """Number of tokens of all blocks."""
        return sum(each.n_tokens for each in self.sizes)

    @property
    def ndim(self) -> int:
        """Number of dimensions, 2 as for a matrix."""
        return 2

    # -- unsupported operations ----------------------------------------------------------------------------------

    def __getitem__(self, key):
        raise TypeError(
            "CountBlocks has no rows to take: cross-validation, train_test_split and indexing need a matrix in memory. "
            "Hold out whole blocks instead, for example CountBlocks(paths[:-1]) and CountBlocks(paths[-1:])."
        )

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "CountBlocks is not an array, and is not loaded into memory as one. BayesianLDA, DMRTopicModel, "
            "StructuralTopicModel and GammaProcessTopicModel take it in fit, partial_fit, transform and score; pass "
            "blocks one by one to others."
        )


CountsLike = MatrixLike | CountBlocks


def present_client():
    """The default Dask client; None if no client is connected, and within a task, which must not wait for others."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client, get_worker

    with suppress(ValueError):
        get_worker()
        return None
    try:
        client = default_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise TypeError(
            f"The Dask client {client} is asynchronous, but blocks are processed while the caller waits. Call this in "
            "a thread of its own, for example await asyncio.to_thread(model.fit, blocks), or make a client without "
            "asynchronous=True."
        )
    return client if client.status == "running" else None


def load_block(item, name):
    """Load a block from its source: a path, rows of a matrix, a delayed computation, or the block itself."""
    if isinstance(item, (str, os.PathLike)):
        try:
            return load_sparse(item)
        except (ValueError, OSError) as error:
            raise ValueError(f"{name} cannot be read: {error}") from error
    if isinstance(item, _Rows):
        return item.block()
    if not hasattr(item, "compute"):
        return item
    # Dask's default scheduler may still be a client that was closed.
    return item.compute(**({} if present_client() else {"scheduler": "threads"}))


def checked_again(item, name, sizes):
    """Load a block as a ``Corpus``; raises unless its ``BlockSizes`` are those of an earlier check."""
    corpus = checked_block(load_block(item, name), name)
    if sizes_of(corpus) != sizes:
        refuse_change(f"{name} has changed")
    return corpus


def refuse_change(what):
    """Raise because blocks differ from those that were checked; ``what`` says how."""
    raise ValueError(
        f"Reading the blocks a second time, {what}. Leave files alone during a fit; a function must return a new "
        "iterator over the same blocks each time, not one that is used up, nor other documents."
    )


def checked_sizes(sizes, name_of):
    """Return ``sizes``; raises unless all blocks have the same columns, and there is at least one document."""
    if not sizes:
        raise ValueError("blocks holds no block; the function must return an iterator over sparse matrices.")
    for i, each in enumerate(sizes):
        if each.n_words != sizes[0].n_words:
            raise ValueError(
                f"{name_of(i)} has {each.n_words} columns, but block 0 has {sizes[0].n_words}; count all blocks with "
                "the same vocabulary, for example by one fitted CountVectorizer."
            )
    if not sum(each.n_docs for each in sizes):
        raise ValueError("Found array with 0 sample(s): none of the blocks has a row, but at least one is required.")
    return sizes


class _Rows:
    """The source of a block that consists of the rows start:stop of a CSR matrix and shares its memory."""

    def __init__(self, X, start, stop):
        self.X, self.start, self.stop = X, start, stop

    def block(self):
        ptr = np.asarray(self.X.indptr[self.start : self.stop + 1])
        part = slice(int(ptr[0]), int(ptr[-1]))
        rows = sparse.csr_array((self.stop - self.start, self.X.shape[1]))
        # Set as attributes, since the constructor would copy a small part of a large array.
        rows.data, rows.indices, rows.indptr = self.X.data[part], self.X.indices[part], ptr - ptr[0]
        return rows


def _cut(X):
    """Sources of blocks with about the same number of entries of a matrix, which share its memory."""
    if X.format != "csr":
        raise TypeError(f"blocks is one {X.format} matrix; only a CSR matrix can be cut by rows: pass X.tocsr().")
    ptr = np.asarray(X.indptr)
    if ptr.size != X.shape[0] + 1 or ptr[0] != 0 or np.any(ptr[1:] < ptr[:-1]) or ptr[-1] > len(X.indices):
        check_counts(X, input_name="blocks", whom="CountBlocks")  # raises, and names the fault
    n_blocks = max(1, int(-(-ptr[-1] // _ENTRIES)))
    cuts = np.searchsorted(ptr, ptr[-1] * np.arange(1, n_blocks) / n_blocks)
    cuts = np.unique([0, *cuts, X.shape[0]])
    return [_Rows(X, int(start), int(stop)) for start, stop in pairwise(cuts)]


def _dask_blocks(X):
    """The blocks of a Dask array, a list of delayed computations."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a Dask array of shape {X.shape}; give one row for each document.")
    if X.numblocks[1] != 1:
        raise ValueError(
            f"The Dask array has chunks {X.numblocks}; it must have one chunk of columns, so that a block holds whole "
            f"documents: X.rechunk({{1: -1}})."
        )
    return list(X.to_delayed().ravel())
