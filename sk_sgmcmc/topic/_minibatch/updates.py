"""Growing corpora of `partial_fit`: the documents of a stream that are still kept, and restarts of chains from them."""

from copy import deepcopy
from typing import NamedTuple

import numpy as np

from ...chains.growth import RECOGNISED, known_with
from ...utils._warnings import warn_user
from .._counts.documents import MatrixCorpus
from .._counts.sweeps import first_temperature, temperature

# A stream keeps its documents until they contain this many tokens. When they have grown by the first factor, sweeps
# over all of them continue from the assignments so far. They begin with new assignments if the documents have grown by
# the second factor since this was last done, or by the third if they were many. Blocks that repeat amount to growth.
START_TOKENS = 5_000_000
_GROWTH, _LARGE_GROWTH, _LARGER_GROWTH = 1.25, 2.0, 3.0
# Sweeps from new assignments. The first restart after blocks repeat makes twice as many, and later ones this many for
# each repeated pass over all documents.
SWEEPS = 60
_FEWEST, _MANY_TOKENS = 30, 200_000  # Beyond this many tokens, their number falls with the root to the fewest.
_MORE_SWEEPS = 12  # Sweeps that continue from the assignments so far.


def digest_of(corpus):
    """A digest by which a stream recognises a repeated block; None for small blocks, which may be equal by chance."""
    return corpus.digest() if corpus.n_tokens >= RECOGNISED else None


class Restart(NamedTuple):
    """How chains restart from a growing corpus.

    Parameters
    ----------
    n_sweeps : int
    again : bool
        Whether to continue from the last assignments of the previous sweeps. New documents begin with assignments drawn
        given the others.
    """

    n_sweeps: int
    again: bool


LONGER_RESTART, CONTINUED = Restart(2 * SWEEPS, again=False), Restart(_MORE_SWEEPS, again=True)


def restart_of(n_tokens):
    """The `Restart` from new assignments of so many tokens."""
    n_sweeps = round(SWEEPS * np.sqrt(min(1.0, _MANY_TOKENS / max(n_tokens, 1.0))))
    return Restart(max(_FEWEST, n_sweeps), again=False)


def pending_restart(owed, restart, data):
    """The `Restart` to make next, given the one that is due after a block, and one that Ctrl-C prevented, ``owed``.

    Either may be None. A prevented restart takes precedence over one that continues earlier sweeps. It is dropped if it
    continues earlier sweeps itself, since their assignments are still kept.
    """
    is_owed = owed is not None and not owed.again and data.early is not None
    return owed if is_owed and (restart is None or restart.again) else restart


class YoungStream(NamedTuple):
    """A growing corpus: all documents of a stream so far.

    Parameters
    ----------
    corpus : MatrixCorpus
    begun_at : float
        Number of its tokens when chains last made sweeps over it.
    new_at : float
        Number of its tokens when chains last began with new assignments.
    repeated : float, default=0.0
        Number of tokens in blocks repeated since then.
    is_settled : bool, default=False
        Whether chains have made the longer restart after repeated blocks, and no new document has come since.
    """

    corpus: MatrixCorpus
    begun_at: float
    new_at: float
    repeated: float = 0.0
    is_settled: bool = False

    @classmethod
    def begun_with(cls, corpus):
        """A growing corpus that begins with a copy of one block; None if the block is too large to be kept."""
        n_tokens = corpus.n_tokens
        return cls(deepcopy(corpus), n_tokens, n_tokens) if n_tokens <= START_TOKENS else None

    def after_block(self, corpus):
        """The corpus with another block, or None if it becomes too large to be kept; and the `Restart` due, or None."""
        if max(self.corpus.n_tokens, corpus.n_tokens) > START_TOKENS:
            return None, None
        joined = self.corpus.joined(corpus)
        n_tokens = joined.n_tokens
        if n_tokens < _GROWTH * self.begun_at:
            return self._replace(corpus=joined, is_settled=False), None
        if n_tokens < self.new_at * (_LARGE_GROWTH if self.new_at <= _MANY_TOKENS else _LARGER_GROWTH):
            return YoungStream(joined, n_tokens, self.new_at), CONTINUED
        return YoungStream(joined, n_tokens, n_tokens), restart_of(n_tokens)

    def after_known_block(self, corpus):
        """The corpus after a block that it already contains; and the `Restart` due, or None."""
        n_tokens, repeated = self.corpus.n_tokens, self.repeated + corpus.n_tokens
        if repeated < (_GROWTH - 1.0) * n_tokens:
            return self._replace(repeated=repeated), None
        due = Restart(round(SWEEPS * repeated / n_tokens), again=True) if self.is_settled else LONGER_RESTART
        return YoungStream(self.corpus, n_tokens, self.new_at if due.again else n_tokens, is_settled=True), due


def after_block(young, known, corpus, keeps):
    """Update the growing corpus and the known digests of a stream by a block.

    Parameters
    ----------
    young : YoungStream or None
        The growing corpus; None if documents are not kept, or no longer.
    known : frozenset of bytes
        Digests of the blocks that the stream has read.
    corpus : MatrixCorpus
        The block.
    keeps : bool
        Whether a growing corpus begins with this block.

    Returns
    -------
    young : YoungStream or None
    known : frozenset of bytes
        Both after the block.
    is_known : bool
        Whether the stream has read this block before.
    restart : Restart or None
        The restart that is due.
    """
    digest, restart = digest_of(corpus), None
    is_known = digest in known
    if keeps:
        young = YoungStream.begun_with(corpus)
    elif young is not None:
        young, restart = (young.after_known_block if is_known else young.after_block)(corpus)
    return young, known_with(known, digest), is_known, restart


def warn_if_fitted(fingerprint, data):
    """Warn if a stream that continues a fit begins with the fitted documents, recognised by their fingerprint."""
    if data.fingerprint() == fingerprint:
        warn_user(
            "X holds the documents that fit was given, which count twice from now on. Pass new documents to "
            "partial_fit; for more steps with the same ones, fit with a larger n_iter."
        )


def refuse_other_pair(present, present_pair, sampler, pair):
    """Raise if the samplers of a fit and of the stream that continues it have different geometries or signals."""
    if present_pair != pair:
        raise ValueError(
            f"The chains of {present!r}, with which this estimator was fitted, cannot go on as a stream of "
            f"{sampler!r}; fit with this sampler and the same parameters first, or set the sampler back."
        )


class Swept(NamedTuple):
    """The result of sweeps over a growing corpus.

    Parameters
    ----------
    z : ndarray of uint16, shape (n_tokens,)
        Assignments after the last sweep.
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
        The result of the previous sweeps over the same documents, if the sweeps continue from there.

    Returns
    -------
    Swept
        The mean is over the last third of the sweeps. If they continue earlier ones, all of them are added to the
        earlier mean.
    """
    (prior, group), n_sweeps = doc_prior.table(shard), restart.n_sweeps
    mean, first = 0.0, 2 * n_sweeps // 3 if before is None else 0
    n_averaged = n_sweeps - first
    tempers = doc_prior.allows_tempering and not restart.again and collapsed.is_fast
    hottest = first_temperature(shard, prior.shape[1]) if tempers else 1.0
    for i in range(n_sweeps):
        collapsed.temperature = temperature(hottest, i, n_sweeps)
        collapsed.sweep(shard, 0, shard.n_docs, prior, group, rng)
        after_pass(collapsed, i + 1)
        if i >= first:
            mean = mean + collapsed.counts / n_averaged
    if before is not None:  # Later sweeps have larger weights, in proportion to their number.
        n_averaged += before.n_averaged
        new = len(mean) - len(before.mean)  # Number of new words, which have no token in these documents.
        mean += (np.pad(before.mean, ((0, new), (0, 0))) - mean) * max(0.0, 1.0 - 2.0 * n_sweeps / n_averaged)
    return Swept(collapsed.z, mean, n_averaged)
