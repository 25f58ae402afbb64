"""Moves in burn-in that find lost topics: two topics become one, and a third is split into two.

Gibbs sweeps do not leave a mode in which one estimated topic consists of two true ones, and another true topic is
estimated twice. The moves search for a better mode. They are not draws from the posterior, and end before burn-in does.
"""

from typing import NamedTuple

import numpy as np

from ...kernels.models.lda import split_merge
from .corpus import Shard
from .sweeps import CollapsedSweeps

FEWEST_LEFT = 20  # Sweeps of burn-in that follow a search.
_AGAIN, _LATER = 10, 5  # The next search: so many sweeps after a success, and at so many times the step otherwise.
# Moves are tried on a random sample of documents with at most so many tokens, in all and for each topic.
_SAMPLE, _SAMPLE_PER_TOPIC = 300_000, 5_000
_N_POWERS, _DAMPING = 12, 10.0  # See `first_axis`.
_PARTING, _PARTED = 3, 12  # Sweeps that part every topic into halves, and further sweeps of the most promising.
_SHARE, _FEWEST = 0.25, 3  # The most promising: a share of the topics, but at least so many.
_PAIRS = 1  # Similar pairs that are considered, for each topic.
_WORTH = 0.1  # A move is tried if the gain from the split is at least this share of the loss from the merge.
_AROUND = 12  # Topics in a trial: the three of the move, and the topics most similar to them.
_STAGES, _STAGE = 3, 10  # A trial has at most so many stages, each of so many sweeps.
_LAST = 3  # Log probabilities are averaged over so many sweeps at the end of a stage.
_CLEAR = 0.002  # Difference of log probabilities per token at which a trial ends after a stage.


class Move(NamedTuple):
    """A topic that is split, and two that become one; the second of them then is the second half of the split topic."""

    split: int
    second: np.ndarray  # Indices of the tokens of the second half.
    kept: int
    left: int


class Subcorpus:
    """The tokens of some topics, and sweeps that redraw which of these topics each of them has.

    Parameters
    ----------
    documents : Shard
    at : ndarray of int64, shape (n_tokens,)
        Indices of the tokens in the corpus, in ascending order.
    part : ndarray of uint16, shape (n_tokens,)
        Topic of each token, from 0 on. Sweeps change it.
    alpha : ndarray of shape (n_groups, n_parts)
    group : ndarray of shape (n_docs,)
    beta : float
    """

    def __init__(self, documents, at, part, alpha, group, beta):
        self.documents, self.at, self.part, self.prior = documents, at, part, (alpha, group)
        shape = documents.n_words, alpha.shape[1]
        self.sweeps = CollapsedSweeps(documents, part, np.broadcast_to(np.float64(beta), shape))

    def sweep(self, n_sweeps, rng):
        """Sweep, and return the log predictive probability of the tokens, a mean over the last sweeps."""
        values = []
        for left in reversed(range(n_sweeps)):
            self.sweeps.sweep(self.documents, 0, self.documents.n_docs, *self.prior, rng)
            if left < _LAST:
                values.append(self.value())
        return float(np.mean(values))

    def value(self):
        """Sum of the log probabilities of all tokens, each given the others and that it is of one of these topics."""
        sweeps, documents = self.sweeps, self.documents
        return split_merge.log_predictive(
            documents.token_ptr, documents.words, self.part, sweeps.table, sweeps.topic_mass, *self.prior, sweeps.beta
        )


class Assigned:
    """Documents, the topics of their tokens, and the priors.

    Parameters
    ----------
    documents : Shard
        All tokens have weight 1.
    z : ndarray of uint16, shape (n_tokens,)
        Assignments.
    alpha : ndarray of shape (n_groups, n_topics)
        Dirichlet parameters of groups of documents.
    group : ndarray of int64, shape (n_docs,)
    beta : float
        Dirichlet parameter of each word.
    """

    def __init__(self, documents, z, alpha, group, beta):
        self.documents, self.z, self.alpha, self.group, self.beta = documents, z, alpha, group, beta

    def sample(self, n_tokens, rng):
        """A random sample of the documents with about ``n_tokens`` tokens, or all of them."""
        documents = self.documents
        lengths = np.diff(documents.token_ptr)
        if documents.n_tokens <= n_tokens:
            chosen = np.arange(documents.n_docs)
        else:
            order = rng.permutation(documents.n_docs)
            chosen = np.sort(order[: np.searchsorted(np.cumsum(lengths[order]), n_tokens) + 1])
        z = self.z[documents.tokens_of(chosen)[0]]
        return Assigned(documents.of_docs(chosen), z, self.alpha, self.group[chosen], self.beta)

    def of(self, topics, move=None):
        """The `Subcorpus` of some topics, after a `Move` of the first three of them, in the order kept, left, split."""
        at, part = self._tokens_of(topics)
        if move is not None:
            part[part == 1] = 0
            part[(part == 2) & np.isin(at, move.second, assume_unique=True)] = 1
        return self._subcorpus(at, part, self.alpha[:, topics])

    def halves(self, topic, rng):
        """The `Subcorpus` of a topic divided into two by the signs of its documents on its first axis."""
        at = np.flatnonzero(self.z == topic)
        docs, words = self._docs_of(at).astype(np.int32), self.documents.words[at]
        doc_counts = np.bincount(docs, minlength=self.documents.n_docs).astype(np.float64)
        word_counts = np.bincount(words, minlength=self.documents.n_words).astype(np.float64)
        scores = rng.standard_normal(doc_counts.size)
        room = np.empty(word_counts.size)
        split_merge.first_axis(docs, words, _N_POWERS, _DAMPING, doc_counts, word_counts, scores, room)
        half = (scores[docs] > 0.0).astype(np.uint16)
        return self._subcorpus(at, half, np.repeat(0.5 * self.alpha[:, [topic]], 2, axis=1))

    def united_value(self, topics):
        """The `Subcorpus.value` of some topics as one."""
        at = self._tokens_of(topics)[0]
        alpha = self.alpha[:, topics].sum(axis=1, keepdims=True)
        return self._subcorpus(at, np.zeros(at.size, dtype=np.uint16), alpha).value()

    def make(self, move, rng):
        """Make a `Move` that a sample has shown to help; the topic is first divided again, by all documents."""
        halves = self.halves(move.split, rng)
        halves.sweep(_PARTING + _PARTED, rng)
        self.z[self.z == move.left] = move.kept
        self.z[halves.at[halves.part == 1]] = move.left

    def _tokens_of(self, topics):
        """Indices of the tokens of some topics, and the place of each token's topic among these."""
        place = np.full(self.alpha.shape[1], len(topics), dtype=np.uint16)
        place[topics] = np.arange(len(topics))
        part = place[self.z]
        at = np.flatnonzero(part < len(topics))
        return at, part[at]

    def _docs_of(self, at):
        return np.searchsorted(self.documents.token_ptr, at, side="right") - 1

    def _subcorpus(self, at, part, alpha):
        lengths = np.bincount(self._docs_of(at), minlength=self.documents.n_docs)
        token_ptr = np.concatenate([[0], np.cumsum(lengths)])
        shard = Shard(token_ptr, self.documents.words[at], np.empty(0), 0, self.documents.n_words)
        return Subcorpus(shard, at, part, np.ascontiguousarray(alpha), self.group, self.beta)


def next_search(step, n_made):
    """The step after which the next search is due, given the number of moves that the one at ``step`` has made.

    A search without success is repeated when the fitted priors have changed.
    """
    return step + _AGAIN if n_made else _LATER * step


def similarities(counts, beta):
    """Bhattacharyya coefficients of all pairs of topics, (n_topics, n_topics)."""
    roots = np.sqrt((counts + beta) / (counts.sum(axis=0) + beta * len(counts)))
    return np.round(roots.T @ roots, 6)  # Rounded, so that it does not depend on how many threads multiply matrices.


def promising_halves(assigned, sizes, rng):
    """Topics that gain most if they are split: a list (gain, topic, tokens of its second half), the largest gain first.

    The gain is in log predictive probability of the topic's tokens.
    """
    found = []
    for k in np.flatnonzero(sizes).tolist():
        halves, united = assigned.halves(k, rng), assigned.united_value([k])
        found.append((united - halves.sweep(_PARTING, rng), k, united, halves))
    found.sort(key=lambda each: each[:2])
    best = [
        (united - halves.sweep(_PARTED, rng), k, halves.at[halves.part == 1])
        for _, k, united, halves in found[: max(_FEWEST, int(_SHARE * sizes.size))]
    ]
    return [(-loss, k, second) for loss, k, second in sorted(best, key=lambda each: each[:2])]


def cheap_merges(assigned, sizes, alike, groups):
    """Pairs of topics that lose least if they become one: a list (loss, topic, other), the smallest loss first."""
    j, k = np.triu_indices(sizes.size, 1)
    may = (groups[j] == groups[k]) & (sizes[j] > 0) & (sizes[k] > 0)
    j, k = j[may], k[may]
    by_words = (1.0 - alike[j, k]) * sizes[j] * sizes[k] / (sizes[j] + sizes[k])
    best = np.argsort(by_words, kind="stable")[: _PAIRS * sizes.size]
    pairs = np.column_stack([j, k])[best].tolist()
    return sorted((assigned.of(pair).value() - assigned.united_value(pair), *pair) for pair in pairs)


def proposed_moves(assigned, alike, groups, rng):
    """Moves that are worth a trial, the most promising first, without a common topic."""
    sizes = np.bincount(assigned.z, minlength=groups.size)
    free, moves = np.ones(groups.size, dtype=bool), []
    merges = cheap_merges(assigned, sizes, alike, groups)
    for gain, c, second in promising_halves(assigned, sizes, rng):
        for loss, j, k in merges:
            if free[[c, j, k]].all() and c not in (j, k) and groups[c] == groups[j]:
                if gain > _WORTH * loss:
                    moves.append(Move(c, second, j, k))
                    free[[c, j, k]] = False
                break
    return moves


def try_move(assigned, move, alike, rng):
    """Make a move if it raises the log predictive probability of the tokens, and return whether it does.

    The tokens of its topics and of the most similar ones are swept with and without the move.
    """
    moved = [move.kept, move.left, move.split]
    near = np.argsort(-alike[moved].max(axis=0), kind="stable").tolist()
    topics = moved + [k for k in near if k not in moved][: _AROUND - len(moved)]
    before, after = assigned.of(topics), assigned.of(topics, move)
    for _ in range(_STAGES):
        gain = after.sweep(_STAGE, rng) - before.sweep(_STAGE, rng)
        if abs(gain) > _CLEAR * after.at.size:
            break
    if gain > 0.0:
        assigned.z[after.at] = np.array(topics, dtype=assigned.z.dtype)[after.part]
    return gain > 0.0


def find_lost_topics(documents, z, counts, alpha, group, beta, groups, rng):
    """Search for moves that raise the log predictive probability of the tokens, and make them; returns how many.

    Parameters
    ----------
    documents : Shard
    z : ndarray of uint16, shape (n_tokens,)
        Changed in place.
    counts : ndarray of shape (n_words, n_topics)
        Of the assignments.
    alpha, group, beta
        As for `Assigned`.
    groups : ndarray of shape (n_topics,)
        Only topics with the same group number take part in a move.
    rng : Generator
    """
    assigned, alike = Assigned(documents, z, alpha, group, beta), similarities(counts, beta)
    sample = assigned.sample(max(_SAMPLE, _SAMPLE_PER_TOPIC * groups.size), rng)
    made = [move for move in proposed_moves(sample, alike, groups, rng) if try_move(sample, move, alike, rng)]
    for move in made:
        assigned.make(move, rng)
    return len(made)
