"""Shards on the workers of a Dask cluster: a round is a graph of tasks without side effects.

Workers load blocks and cut them into shards. In a round, the topics or counts are sent to the workers once, and the
changes of the counts come back as a tree sum. Assignments stay on the workers as results of tasks. If a worker is lost,
Dask computes its assignments again, with the same draws. Every few rounds the assignments are copied to the client and
sent out again from this copy, so that at most a few rounds are repeated.
"""

from contextlib import contextmanager
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from threading import Lock, RLock

import numpy as np

from ...utils._futures import losses, results_of, wait_for
from ...utils._numbers import summable
from ...utils._warnings import warn_user
from ...utils.blocks import CountBlocks, checked_again, checked_block, load_block, present_client, sizes_of
from .corpus import SAMPLE, TOPIC_BYTES, Change, Scratch, Shard, arranged, joined, sampled

_ROUNDS_PER_CHECKPOINT = 10
_COPIES = 2  # Copies of the assignments; each checkpoint overwrites the older one.
_FAN_IN = 8  # Changes that one task sums.
_lock = RLock()  # Dask's configuration belongs to the process, and chains run in threads.


# -- tasks -----------------------------------------------------------------------------------------------------------


def _same(value):
    return value


def _sizes(item, name):
    return sizes_of(checked_block(load_block(item, name), name))


def _parts(item, name, sizes, forms, first_doc, first_token, inner, weighted):
    """Cut a block into the parts of consecutive shards, at ``inner``, bounds of shards in tokens of the corpus."""
    corpus = forms.of(checked_again(item, name, sizes))
    ptr, words, weights = corpus.expand_tokens()
    if weighted:
        weights = summable(weights if weights.size else np.ones(words.size))
    ends = [0, *np.searchsorted(first_token + ptr, inner), corpus.n_docs]
    ends = np.minimum(ends, corpus.n_docs)
    return [
        Shard(
            ptr[start : stop + 1] - ptr[start],
            words[ptr[start] : ptr[stop]],
            weights[ptr[start] : ptr[stop]] if weighted else np.empty(0),
            first_doc + int(start),
            corpus.n_words,
        )
        for start, stop in pairwise(ends)
    ]


def _step(step, shard, z, seed):
    done = step(shard, z, seed)
    return done._replace(change=done.change.compacted())


def _change_of(done):
    return Change.sum_of([each.change for each in done])


def _arranged(shard, order, described):
    return shard.of_docs(order)._replace(described=described)


def _evaluated(function, shard, z, *args):
    return function(shard, z, *args)


def _extent(shard):
    """The first document of a shard, and its numbers of documents and tokens."""
    return shard.first_doc, shard.n_docs, shard.words.size


# -- the client's side -----------------------------------------------------------------------------------------------


class RemoteAssignments:
    """Assignments of the tokens of all shards, on the workers.

    Parameters
    ----------
    z : ndarray of uint16, shape (n_tokens,), or None
        Assignments before the first round, which are sent to the workers when they are needed.
    """

    def __init__(self, z=None):
        self.z, self.futures = z, None
        self.shards = self.saved_at = None
        self.rooms = []  # Arrays for the copies at checkpoints, the one to overwrite next last.

    def __array__(self, dtype=None, copy=None):
        z = self.z if self.futures is None else np.concatenate(self.shards.results(self.futures))
        return z if dtype is None else z.astype(dtype)

    def __reduce__(self):
        return np.asarray, (np.asarray(self),)


class DaskShards:
    """Shards on the workers of a Dask cluster.

    Parameters
    ----------
    data : TokenCorpus
    client : distributed.Client

    Attributes
    ----------
    threads : dict
        Threads of each worker, by its address.
    places : list
        The worker of each shard.
    """

    is_in_memory = False

    def __init__(self, data, client):
        self.client, self.blocks, self._forms = client, data.corpus.blocks, data.corpus.forms
        self.n_shards, self.n_tokens = data.shards_wanted, data.n_tokens
        self._every = max(1, -(-data.n_tokens // SAMPLE))
        self.scratch = Scratch(self.blocks.folder, _COPIES * TOPIC_BYTES * data.n_chains * self.n_tokens)
        self.threads, self.places, self.moves = {}, [None] * self.n_shards, Lock()
        self.shards = self._made_shards(not data.is_whole)
        extents = self.results([self._submit(_extent, each) for each in self.shards])
        self.sizes = [n_tokens for *_, n_tokens in extents]
        self.n_groups = self.n_shards
        if data.corpus.described is not None:
            self.n_groups = sum(self._arrange(i, data, *extents[i][:2]) for i in range(self.n_shards))

    def _arrange(self, i, data, first_doc, n_docs):
        """Sort the documents of shard ``i`` by metadata, send these to it, and return the number of groups."""
        order, described = arranged(data.corpus.described[first_doc : first_doc + n_docs], data.prepare, first_doc)
        with _large_graphs():
            self.shards[i] = self._submit(_arranged, self.shards[i], order, described)
        return described.given.shape[0]

    def _submit(self, function, *args, at=None):
        """Submit a task, to run on the worker ``at`` if possible, and return its future."""
        return self.client.submit(function, *args, pure=False, workers=at, allow_other_workers=at is not None)

    def _at_places(self, submit):
        """Run tasks on the workers of their shards, or anywhere if one of these workers is lost; return the futures.

        Tasks are bound to workers because Dask would give some workers twice as many shards as others. But if no worker
        is left, Dask lets bound tasks wait for ever, even if other workers may run them. Tasks are therefore unbound
        after they are done, since they may have to be repeated.

        Parameters
        ----------
        submit : callable
            Called with the places of the shards; returns two lists, futures and the keys of the bound tasks.
        """
        places = self.places
        with _large_graphs():
            futures, bound = submit(places)
        workers = set(places) - {None}
        if wait_for(self.client, futures, workers):
            self.client.sync(self.client.scheduler.set_restrictions, worker=dict.fromkeys(bound))
            if workers <= self.client.nthreads().keys():
                return futures
        with _large_graphs():
            futures, _ = submit([None] * self.n_shards)
        self._wait(futures)
        return futures

    def _settle(self):
        """Distribute the shards over the workers, if these have changed since the last call.

        Without this, most shards would stay on the worker that read their block.
        """
        with self.moves:  # Chains in several threads share the shards.
            threads = self.client.nthreads()
            if threads != self.threads:
                self.threads, self.places = threads, places_of(threads, self.n_shards)
                self.shards = self._for_each(_same, self.shards)

    def _for_each(self, function, *values):
        """Futures of a function of some values for each shard, evaluated on the shard's worker."""

        def submit(places):
            futures = [self._submit(function, *each, at=at) for *each, at in zip(*values, places, strict=True)]
            return futures, [future.key for future in futures]

        return self._at_places(submit)

    def _items(self):
        """Yield each block's source, name and sizes, and the indices of its first document and token."""
        doc = token = 0
        for item, name, sizes in self.blocks.entries():
            yield item, name, sizes, doc, token
            doc, token = doc + sizes.n_docs, token + sizes.n_tokens

    def _made_shards(self, weighted):
        """Futures of all shards."""
        from dask import delayed

        inner = self.n_tokens * np.arange(1, self.n_shards) // self.n_shards
        parts = [[] for _ in range(self.n_shards)]
        with _large_graphs():
            for item, name, sizes, doc, token in self._items():
                first, last = np.searchsorted(inner, [token, token + sizes.n_tokens], side="right")
                forms = self._forms.rows(doc, doc + sizes.n_docs)
                task = delayed(_parts, pure=False)(item, name, sizes, forms, doc, token, inner[first:last], weighted)
                cut = self.client.compute(task)
                for i in range(first, last + 1):
                    parts[i].append(self._submit(itemgetter(int(i - first)), cut))
            shards = [self._submit(joined, each) for each in parts]
        self._wait(shards)
        return shards

    def sample(self):
        """An evenly spaced sample of the documents, a `Shard`."""
        return joined(self.results([self._submit(sampled, shard, self._every) for shard in self.shards]))

    def assignments(self, z=None):
        """The assignments of a chain."""
        return RemoteAssignments(None if z is None else np.asarray(z))

    def _send(self, z):
        """Send assignments to the workers; the scheduler keeps a copy in case a worker is lost."""
        ends = np.cumsum([0, *self.sizes])
        return self._for_each(_same, [np.array(z[a:b]) for a, b in pairwise(ends)])

    def proceed(self, now, z, pool):
        """Process all shards of a `Round`; `z` is a `RemoteAssignments`."""
        with losses(self.client):
            self._proceed(now, z)

    def _proceed(self, now, z):
        self._settle()
        before = z.futures
        if before is None:
            before = [None] * self.n_shards if z.z is None else self._send(z.z)
        first = now.next_shard  # Above 0 if the round began before the chain was saved, on other shards.
        n = self.n_shards - first

        def submit(places):
            step = self._submit(_same, now.step)
            done = [
                self._submit(_step, step, self.shards[i], before[i], now.seed_of(i), at=places[i])
                for i in range(first, self.n_shards)
            ]
            new = [self._submit(itemgetter(0), each) for each in done]
            return [*new, *self._summed(done, places[first:])], [each.key for each in done]

        futures = self._at_places(submit)
        new, changes = futures[:n], self.results(futures[n:])
        # All results are here, so a lost worker no longer matters.
        for change in changes:
            change.add_to(now.sums)
        now.next_shard = self.n_shards
        z.futures, z.shards, z.z = [*before[:first], *new], self, None

    def _summed(self, done, places):
        """Sum the changes of all `Done`, first on each worker, then in a tree, and return at most two futures."""
        changes, n = [], 0
        for _, here in groupby(places):
            n_here = sum(1 for _ in here)
            for i in range(n, n + n_here, _FAN_IN):
                changes.append(self._submit(_change_of, done[i : min(i + _FAN_IN, n + n_here)]))
            n += n_here
        while len(changes) > 2:
            changes = [self._submit(Change.sum_of, changes[i : i + _FAN_IN]) for i in range(0, len(changes), _FAN_IN)]
        return changes

    def evaluate(self, z, pool, function, *args_of):
        """As `LocalShards.evaluate`."""
        with losses(self.client):
            return self.results(self.keep(z, pool, function, *args_of))

    def keep(self, z, pool, function, *args_of):
        """As `LocalShards.keep`."""
        with losses(self.client):
            self._settle()
            assigned = z.futures or self._send(z.z)
            with _large_graphs():
                args_of = [self._sent(args) for args in args_of]
            return self._for_each(partial(_evaluated, function), self.shards, assigned, *args_of)

    def evaluate_kept(self, kept, pool, function, *args):
        """As `LocalShards.evaluate_kept`."""
        with losses(self.client):
            with _large_graphs():
                args_of = [self._sent([arg] * self.n_shards) for arg in args]
            return self.results(self._for_each(partial(_evaluated, function), self.shards, kept, *args_of))

    def _sent(self, args):
        """Futures of an argument for each shard; an argument that all shards share is sent once."""
        if all(each is args[0] for each in args):
            return [self._submit(_same, args[0])] * self.n_shards
        return [self._submit(_same, each) for each in args]

    def wants_checkpoint(self, z, step):
        """Whether to copy the assignments before the next round, after ``step`` rounds."""
        return z.saved_at is None or step >= z.saved_at + _ROUNDS_PER_CHECKPOINT

    def checkpoint(self, z, step):
        """Copy the assignments to the client, send them out again from the copy, and return the copy."""
        if len(z.rooms) < _COPIES:
            z.rooms.append(self.scratch.new(np.uint16, self.n_tokens))
        copy, end = z.rooms[-1], 0
        if z.futures is None:
            copy[:] = z.z
        else:
            for i in range(0, self.n_shards, _FAN_IN):
                for part in self.results(z.futures[i : i + _FAN_IN]):
                    copy[end : end + part.size] = part
                    end += part.size
            with losses(self.client):
                z.futures = self._send(copy)
        z.rooms.reverse()
        z.saved_at = step
        return copy

    # -- waiting -------------------------------------------------------------------------------------------------

    def results(self, futures):
        """Wait for futures, and return the list of their results."""
        return results_of(self.client, futures)

    def _wait(self, futures):
        wait_for(self.client, futures)


def checked_blocks(X):
    """X as `CountBlocks`; if there is a Dask client, its workers check the blocks that Dask computes."""
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


def remote_sizes(client, blocks):
    """Let workers check the blocks that Dask computes, and return their `BlockSizes`."""
    from dask import delayed

    tasks = [delayed(_sizes, pure=False)(item, blocks.name_of(i)) for i, item in enumerate(blocks.items)]
    return results_of(client, client.compute(tasks))


def places_of(threads, n_shards):
    """The worker of each shard, so that all threads have about equally many shards; None if there is no worker.

    Parameters
    ----------
    threads : dict
        Threads of each worker, by its address.
    n_shards : int
    """
    each = [address for address, n in threads.items() for _ in range(n)] or [None]
    return [each[i * len(each) // n_shards] for i in range(n_shards)]


@contextmanager
def _large_graphs():
    """Silence Dask's warning about large graphs: the large arguments are sent only once a round."""
    import dask

    with _lock, dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
        yield
