"""The door for documents that need not fit in memory: `CountBlocks`, and Dask arrays of sparse blocks."""

from functools import partial

from joblib.parallel import get_active_backend

from ...utils._containers import refuse_dask
from ...utils._warnings import warn_user
from ...utils.blocks import CountBlocks, present_client
from .block_data import BlockCorpus, BlockData, LocalShards
from .dask_shards import DaskShards, remote_sizes
from .tokens import refuse_too_many_tokens_in_blocks


def is_in_blocks(X, model):
    """Whether X holds blocks of counts; raises if the ``model`` does not take them."""
    found = isinstance(X, CountBlocks) or type(X).__module__.startswith("dask.array")
    if found and not model._takes_blocks:
        refuse_dask(X)
        raise TypeError(
            f"{type(model).__name__} does not take CountBlocks; BayesianLDA, DMRTopicModel and GammaProcessTopicModel "
            "do. Pass a matrix in memory, or block after block to partial_fit."
        )
    return found


def refuse_blocks(X):
    """Raise if X is not a matrix in memory."""
    refuse_dask(X)
    if isinstance(X, CountBlocks):
        raise TypeError("X is a CountBlocks, and this needs a matrix in memory; pass some of the documents.")


def as_blocks(X):
    """X as `CountBlocks`; where there are Dask workers, they check the blocks that they can load."""
    blocks = X if isinstance(X, CountBlocks) else CountBlocks(X)
    client = present_client()
    if blocks.is_dask and client is None:
        warn_user(
            "X is a Dask array, but there is no Dask client: its blocks are loaded and fitted in this process. Start "
            "one first, for example client = dask.distributed.Client()."
        )
    elif client is not None and blocks.is_elsewhere and not blocks.is_checked:
        blocks.take_sizes(remote_sizes(client, blocks))
    return blocks


def blocks_of(X):
    """The blocks of X that hold documents, one after another."""
    return (corpus.to_csr() for corpus in BlockCorpus(as_blocks(X)).corpora())


def for_each_block(model, method, X, **given):
    """Results of a method of a fitted ``model``, which takes a `Corpus`, for all blocks of X, a list."""
    return [method(corpus) for corpus in model._check_X(X, reset=False, **given).corpora()]


def bound_blocks(corpus, n_topics, n_threads, n_chains=1):
    """A corpus in blocks in the form to which chains are bound."""
    if n_chains > 1 and not getattr(get_active_backend(prefer="threads")[0], "supports_sharedmem", False):
        raise ValueError(
            f"n_chains={n_chains} over CountBlocks share the files or workers that hold the shards, and cannot run in "
            "other processes; leave out joblib.parallel_config. Where there is a Dask client, shards run on its "
            "workers by themselves."
        )
    client = present_client()
    refuse_too_many_tokens_in_blocks(corpus.blocks, n_chains, here=client is None)
    shards = LocalShards if client is None else partial(DaskShards, client=client)
    return BlockData(corpus, n_topics, n_threads, n_chains, shards)
