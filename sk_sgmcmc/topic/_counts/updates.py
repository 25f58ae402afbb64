"""Updates of a model by `partial_fit`: the documents from which chains of a young stream restart, and how."""

from copy import deepcopy
from typing import NamedTuple

import numpy as np

from ...utils import Corpus
from ...utils._warnings import warn_user
from .sweeps import first_temperature, temperature

# A stream keeps its documents until they hold this many tokens, and restarts from them when they have grown this much,
# or when this much of them has come again.
START_TOKENS = 5_000_000
_GROWTH = 1.25
SWEEPS = 60  # of a restart; twice as many once documents come again, and then as many for each pass over all of them
_RECOGNISED = 100  # tokens, with which no two blocks are the same by chance


def digest_of(corpus):
    """A digest by which a stream recognises a block; None for one so small that others may well be equal to it."""
    return corpus.digest() if corpus.n_tokens >= _RECOGNISED else None


class Restart(NamedTuple):
    """How the chains of a young stream restart.

    Parameters
    ----------
    n_sweeps : int
    again : bool
        From the assignments with which the last sweeps over the same documents ended.
    """

    n_sweeps: int
    again: bool


FIRST_RESTART, LONGER_RESTART = Restart(SWEEPS, again=False), Restart(2 * SWEEPS, again=False)


def pending_restart(owed, restart, data):
    """The `Restart` due after another block, if one is ``owed`` that Ctrl-C came before; either may be None.

    Sweeps that go on are left out instead: those from which they would go on are still there.
    """
    is_owed = owed is not None and not owed.again and data.early is not None
    return owed if is_owed and (restart is None or restart.again) else restart


class YoungStream(NamedTuple):
    """The documents of a stream so far.

    Parameters
    ----------
    corpus : Corpus
    begun_at : float
        Tokens that it held when chains last started from it.
    repeated : float, default=0.0
        Tokens that have come again since then.
    is_settled : bool, default=False
        Whether chains have made the longer restart that these begin with, and no document has come since.
    """

    corpus: Corpus
    begun_at: float
    repeated: float = 0.0
    is_settled: bool = False

    @classmethod
    def begun_with(cls, corpus):
        """A stream of one block, as a copy; None if the block is too large to be kept."""
        return cls(deepcopy(corpus), corpus.n_tokens) if corpus.n_tokens <= START_TOKENS else None

    def after_block(self, corpus):
        """The stream with another block, None if it is no longer young; and the `Restart` that is due, or None."""
        if max(self.corpus.n_tokens, corpus.n_tokens) > START_TOKENS:
            return None, None
        joined = self.corpus.joined(corpus)
        if joined.n_tokens < _GROWTH * self.begun_at:
            return self._replace(corpus=joined, is_settled=False), None
        return YoungStream(joined, joined.n_tokens), FIRST_RESTART

    def after_known_block(self, corpus):
        """The same after a block that the stream holds already."""
        n_tokens, repeated = self.corpus.n_tokens, self.repeated + corpus.n_tokens
        if repeated < (_GROWTH - 1.0) * n_tokens:
            return self._replace(repeated=repeated), None
        due = Restart(round(SWEEPS * repeated / n_tokens), again=True) if self.is_settled else LONGER_RESTART
        return YoungStream(self.corpus, n_tokens, is_settled=True), due


def after_block(young, known, corpus, keeps):
    """What a stream has after a block.

    Parameters
    ----------
    young : YoungStream or None
    known : frozenset of bytes
        Digests of the blocks that it has had.
    corpus : Corpus
        The block.
    keeps : bool
        Whether a young stream begins with it.

    Returns
    -------
    young : YoungStream or None
    known : frozenset of bytes
    is_known : bool
        Whether the stream has had this block before.
    restart : Restart or None
        The one that is due.
    """
    digest, restart = digest_of(corpus), None
    is_known = digest in known
    if keeps:
        young = YoungStream.begun_with(corpus)
    elif young is not None:
        young, restart = (young.after_known_block if is_known else young.after_block)(corpus)
    return young, known if digest is None else known | {digest}, is_known, restart


def warn_if_fitted(fingerprint, data):
    """Warn if a stream that goes on from a fit begins with the documents that were fitted, of this fingerprint."""
    if data.fingerprint() == fingerprint:
        warn_user(
            "X holds the documents that fit was given, which count twice from now on. Pass new documents to "
            "partial_fit; for more steps with the same ones, fit with a larger n_iter."
        )


def refuse_whole_passes(sampler, pair):
    """Raise if a sampler of the topics, which fits by ``pair``, needs all documents at once."""
    if pair[1] == "conditionals":
        raise ValueError(
            f"{type(sampler).__name__} sweeps over all data and cannot stream; "
            'use sampler="scir" or "sgrld" for partial_fit.'
        )


def refuse_other_pair(present, present_pair, sampler, pair):
    """Raise if the sampler of a fit moves topics in another way than the one with which a stream is to go on."""
    if present_pair != pair:
        raise ValueError(
            f"The chains of {present!r}, with which this estimator was fitted, cannot go on as a stream of "
            f'{sampler!r}; fit with sampler="{sampler._name}" and the same parameters first, or set the sampler back.'
        )


class Swept(NamedTuple):
    """What the sweeps over the documents of a young stream led to.

    Parameters
    ----------
    z : ndarray of uint16, shape (n_tokens,)
        Assignments at their end.
    mean : ndarray of shape (n_words, n_topics)
        Counts of the assignments, averaged over ``n_averaged`` sweeps.
    n_averaged : int
    """

    z: np.ndarray
    mean: np.ndarray
    n_averaged: int

    def permuted(self, order):
        """The same with the topics in another order."""
        return Swept(np.argsort(order).astype(np.uint16)[self.z], self.mean[:, order], self.n_averaged)


def swept(collapsed, shard, doc_prior, rng, after_pass, restart, before):
    """Make the sweeps of a restart.

    Parameters
    ----------
    collapsed : CollapsedSweeps
    shard : Shard
    doc_prior : DocumentPrior
    rng : Generator
    after_pass : callable
        Called after each sweep, with ``collapsed`` and the number of sweeps so far.
    restart : Restart
    before : Swept or None
        What the last sweeps over the same documents led to, if these continue from there.

    Returns
    -------
    Swept
        The average is over the last third of the sweeps; if they continue, it takes them all into that of before.
    """
    (prior, group), n_sweeps = doc_prior.table(shard), restart.n_sweeps
    mean, first = 0.0, 2 * n_sweeps // 3 if before is None else 0
    n_averaged = n_sweeps - first
    tempers = doc_prior.allows_tempering and before is None and collapsed.is_fast
    hottest = first_temperature(shard, prior.shape[1]) if tempers else 1.0
    for i in range(n_sweeps):
        collapsed.temperature = temperature(hottest, i, n_sweeps)
        collapsed.sweep(shard, 0, shard.n_docs, prior, group, rng)
        after_pass(collapsed, i + 1)
        if i >= first:
            mean = mean + collapsed.counts / n_averaged
    if before is not None:  # later sweeps weigh more: in proportion to their number
        n_averaged += before.n_averaged
        new = len(mean) - len(before.mean)  # words, of which there is no token
        mean += (np.pad(before.mean, ((0, new), (0, 0))) - mean) * max(0.0, 1.0 - 2.0 * n_sweeps / n_averaged)
    return Swept(collapsed.z, mean, n_averaged)
