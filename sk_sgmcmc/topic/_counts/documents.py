"""Documents as users pass them, in a matrix or in blocks, and the checked corpora that are made from them.

Only `input_of` asks whether X is in blocks. Both inputs have the same methods, and so have both corpora; they differ in
what they do and in what they refuse.
"""

from functools import partial
from itertools import pairwise

import numpy as np
from joblib.parallel import get_active_backend

from ...chains.growth import is_within
from ...utils import Corpus, check_counts
from ...utils._block_tables import joined_metadata, n_rows
from ...utils._containers import refuse_dask
from ...utils._memory import available_memory
from ...utils._sklearn import validate_data
from ...utils._tables import rows_of_table
from ...utils.blocks import CountBlocks, joined_checksums, present_client
from ...utils.corpus import refuse_texts
from .corpus import (
    CELLS_PER_TOKEN,
    TOPIC_BYTES,
    WEIGHT_BYTES,
    WORD_BYTES,
    InMemoryShards,
    MemoryMappedShards,
    shards_in_memory,
)
from .dask_shards import DaskShards, checked_blocks
from .forms import AS_WORDS
from .vocabulary import aligned_counts

# Counts with no more tokens than this always fit in memory, and are not checked.
_MANY_TOKENS = 2 * 10**7
# Counts with more tokens per stored entry are refused: text has a few, and expanding so many takes hours, while scaled
# counts show the same.
_TOKENS_PER_ENTRY = 1000
_COPIES_OF_WEIGHTS = 3  # Copies that are in memory while weights are made.
_SHARD_TOKENS = 2_000_000  # Tokens of a shard of blocks: some tenths of a second of work.


# -------------------------------------------------------------------------------------------------------------- inputs


def input_of(X):
    """X as a `BlockInput` if it is a `CountBlocks` or a Dask array, otherwise as a `MatrixInput`; nothing is read."""
    is_in_blocks = isinstance(X, CountBlocks) or type(X).__module__.startswith("dask.array")
    return BlockInput(X) if is_in_blocks else MatrixInput(X)


class MatrixInput:
    """Counts in memory as a user passes them, before any check.

    Parameters
    ----------
    X : object
        `corpus` raises unless it is a matrix of counts.
    """

    def __init__(self, X):
        self.X = X

    def refuse_for(self, whom):
        """Raise if X is in blocks, which the model ``whom`` does not take."""

    def refuse_with(self, parameter, alternative=""):
        """Raise if X is in blocks, since ``parameter`` requires documents in memory.

        ``alternative`` is added to the remedy, "Pass the blocks to `partial_fit`".
        """

    def refuse_minibatches(self, sampler, pair):
        """Raise if X is in blocks and ``sampler``, which uses ``pair``, reads minibatches."""

    def table(self):
        """X, from which columns of metadata can be separated; raises if it is in blocks, which contain only counts."""
        return self.X

    def parts(self, metadata=None):
        """Iterate over X and its metadata in parts that fit in memory: here all of them."""
        yield self.X, metadata

    def corpus(self, model, *, reset):
        """The checked counts; sets or compares the number and names of features of ``model``."""
        X, whom = self.X, type(model).__name__
        if not reset and model.new_features == "extend" and hasattr(X, "columns"):
            return MatrixCorpus.from_counts(aligned_counts(X, model), whom=whom)
        refuse_texts(X, whom, is_fitted=not reset)
        dtypes = [np.float64, np.float32, np.int64, np.int32]
        checked = validate_data(model, X, reset=reset, accept_sparse=True, dtype=dtypes, ensure_all_finite=False)
        return MatrixCorpus.from_counts(check_counts(checked, whom=whom))


class BlockInput:
    """Counts in blocks as a user passes them, before any check; methods are as for `MatrixInput`.

    Parameters
    ----------
    X : CountBlocks or Dask array
    """

    def __init__(self, X):
        self.X = X

    def refuse_for(self, whom):
        """As for `MatrixInput`."""
        refuse_dask(self.X)
        raise TypeError(
            f"{whom} does not take CountBlocks; BayesianLDA, DMRTopicModel, StructuralTopicModel and "
            "GammaProcessTopicModel do. Pass a matrix in memory, or block after block to partial_fit."
        )

    def refuse_with(self, parameter, alternative=""):
        """As for `MatrixInput`."""
        raise ValueError(
            f"`X` must be in memory with {parameter}; got blocks. Pass the blocks to `partial_fit`{alternative}."
        )

    def refuse_minibatches(self, sampler, pair):
        """As for `MatrixInput`."""
        if pair[1] != "conditionals":
            raise ValueError(
                f"{type(sampler).__name__} reads minibatches of documents, but fit sweeps over all blocks of "
                'CountBlocks; use sampler="gibbs", or None with batch_size="auto" and assignments="auto", or pass the '
                "blocks to partial_fit."
            )

    def table(self):
        """As for `MatrixInput`."""
        raise ValueError(
            "Blocks contain only counts. Leave metadata_columns=None, and pass metadata=, a table for each block or "
            "one for all documents."
        )

    def parts(self, metadata=None):
        """Iterate over the blocks that contain documents, as CSR matrices, and their metadata."""
        corpus = BlockCorpus(checked_blocks(self.X))
        table = corpus.joined_metadata(metadata)
        ends = np.cumsum([0, *(each.n_docs for each in corpus.blocks.sizes if each.n_docs)]).tolist()
        if table is not None and n_rows(table) != ends[-1]:
            raise ValueError(
                f"metadata has {n_rows(table)} rows and X has {ends[-1]}; give one row of metadata for each document."
            )
        for part, (start, stop) in zip(corpus.corpora(), pairwise(ends), strict=True):
            yield part.to_csr(), None if table is None else rows_of_table(table, slice(start, stop))

    def corpus(self, model, *, reset):
        """As for `MatrixInput`."""
        corpus = BlockCorpus(checked_blocks(self.X))
        validate_data(model, np.zeros((1, corpus.n_words)), reset=reset)
        return corpus


# ------------------------------------------------------------------------------------------------------------- corpora


class MatrixCorpus(Corpus):
    """Checked counts of documents in memory."""

    def in_forms(self, forms):
        """The same documents with words in `Forms`."""
        return forms.of(self)

    def last_block(self):
        """The documents that `partial_fit` reads last: here all of them."""
        return self

    def joined_metadata(self, metadata):
        """Metadata of the documents as one table, or None."""
        return metadata

    def may_be_kept(self, limit):
        """Whether the documents are kept after `fit`; ``limit`` is as for `is_within`."""
        return is_within(limit, self.n_tokens)

    def n_shards(self, n_topics):
        """Number of shards for ``n_topics`` topics."""
        return shards_in_memory(self, n_topics)

    def choose_shards(self, n_chains):
        """The class, or function, that makes the shards; raises if the tokens need too much memory."""
        refuse_too_many_tokens(self, n_chains)
        return InMemoryShards


class BlockCorpus:
    """Checked counts in blocks, for a corpus that does not fit in memory as a `MatrixCorpus`.

    Parameters
    ----------
    blocks : CountBlocks
    described : ndarray or csr_array of shape (n_docs, n_columns), or None
        Encoded metadata of the documents.
    forms : Forms
        The forms that words have in this corpus; those in the blocks have none.
    """

    word_counts = None  # Unknown until all tokens are assigned.

    def __init__(self, blocks, described=None, forms=AS_WORDS):
        self.blocks, self.described, self.forms = blocks, described, forms
        self.n_docs, self.n_words = blocks.shape[0], blocks.shape[1] * forms.n_groups
        self.n_tokens = blocks.n_tokens
        self.is_whole = all(each.is_whole for each in blocks.sizes)
        self.has_unit_rows = all(each.has_unit_rows for each in blocks.sizes)
        self.is_hardly_whole = all(each.is_hardly_whole for each in blocks.sizes if each.n_tokens)

    @property
    def checksum(self):
        """As for `Corpus`; it does not depend on how the documents are divided into blocks."""
        return self.forms.checksum(joined_checksums(self.blocks.sizes))

    def digest(self):
        """None: blocks that are fitted together are not recognised in `partial_fit`."""
        return None

    def with_described(self, described):
        """As for `Corpus`."""
        return BlockCorpus(self.blocks, described, self.forms)

    def in_forms(self, forms):
        """As for `MatrixCorpus`."""
        return BlockCorpus(self.blocks, self.described, forms)

    def corpora(self):
        """Iterate over the blocks that contain documents, as `Corpus`."""
        doc = 0
        for corpus in self.blocks.corpora():
            if corpus.n_docs:
                own = None if self.described is None else self.described[doc : doc + corpus.n_docs]
                yield self.forms.rows(doc, doc + corpus.n_docs).of(corpus).with_described(own)
            doc += corpus.n_docs

    def last_block(self):
        """As for `MatrixCorpus`; `partial_fit` reads block after block."""
        *_, last = self.corpora()
        return MatrixCorpus(last.indptr, last.words, last.counts, last.n_words, last.described)

    def in_memory(self):
        """Raise, since the counts do not fit in memory."""
        raise TypeError("X is a CountBlocks, and this needs a matrix in memory; pass some of the documents.")

    to_csr = in_memory

    def joined_metadata(self, metadata):
        """As for `MatrixCorpus`; there may be a table for each block."""
        return joined_metadata(metadata, self.blocks)

    def may_be_kept(self, limit):
        """As for `MatrixCorpus`: never."""
        return False

    def n_shards(self, n_topics):
        """As for `MatrixCorpus`."""
        least = self.n_words * n_topics / CELLS_PER_TOKEN
        return max(1, round(self.n_tokens / (self.blocks.shard_tokens or max(_SHARD_TOKENS, least))))

    def choose_shards(self, n_chains):
        """As for `MatrixCorpus`: `MemoryMappedShards`, or `DaskShards` if there is a Dask client."""
        if n_chains > 1 and not getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False):
            raise ValueError(
                f"n_chains={n_chains} over CountBlocks share the files or workers that hold the shards, and cannot run "
                "in other processes; leave out joblib.parallel_config. Where there is a Dask client, shards run on its "
                "workers by themselves."
            )
        client = present_client()
        self.refuse_too_many_tokens(n_chains, here=client is None)
        return MemoryMappedShards if client is None else partial(DaskShards, client=client)

    def refuse_too_many_tokens(self, n_chains, *, here=True):
        """Raise if few entries stand for very many tokens, or if the tokens of a block do not fit in memory.

        The tokens of all blocks lie on disk; free space is checked when their files are made. ``here`` says whether
        this process, and not a Dask worker, expands blocks into tokens.
        """
        there = available_memory() if here else np.inf
        for i, each in enumerate(self.blocks.sizes):
            needed = each.n_tokens * (WORD_BYTES + (0 if each.is_whole else _COPIES_OF_WEIGHTS * WEIGHT_BYTES))
            what = f"{self.blocks.name_of(i)} holds {each.n_tokens:.3g} tokens"
            _refuse(what, each.n_tokens, each.n_entries, needed, there, "smaller blocks")
        needed = self.n_tokens * (WORD_BYTES + n_chains * TOPIC_BYTES)
        n_entries = sum(each.n_entries for each in self.blocks.sizes)
        _refuse(f"X holds {self.n_tokens:.3g} tokens", self.n_tokens, n_entries, needed, np.inf, "smaller blocks")


def refuse_too_many_tokens(corpus, n_chains, instead="parts of its rows to partial_fit"):
    """Raise if the tokens of a `Corpus` do not fit in memory, or if few entries stand for very many tokens.

    ``instead`` completes the remedy "Pass ..." of the message.
    """
    n_tokens = float(corpus.n_tokens)
    if n_tokens <= _MANY_TOKENS:
        return
    weights = 0 if corpus.is_whole else _COPIES_OF_WEIGHTS * WEIGHT_BYTES
    needed = n_tokens * (WORD_BYTES + n_chains * TOPIC_BYTES + weights)
    what = f"X holds {n_tokens:.3g} tokens, its largest entry being {corpus.counts.max():.3g}"
    _refuse(what, n_tokens, corpus.counts.size, needed, available_memory(), instead)


def _refuse(what, n_tokens, n_entries, needed, there, instead):
    if n_tokens <= _MANY_TOKENS:
        return
    if needed > there:
        why = f"but only {there / 2**30:.3g} GiB are free"
        how = f"Pass {instead}, or scale its counts down"
    elif n_tokens > _TOKENS_PER_ENTRY * n_entries:
        why = f"for only {n_entries} entries that are not zero, and hours"
        how = "Scale its counts down"
    else:
        return
    factor = 10.0 ** np.floor(np.log10(_MANY_TOKENS / n_tokens))
    raise ValueError(
        f"{what}; giving every token a topic takes at least {needed / 2**30:.3g} GiB, {why}. {how}: X * {factor:.0e} "
        "has the same proportions, and the wider posterior of so many fewer tokens."
    )
