"""The forms of words: in each group of documents, a word has a form of its own, and models count forms, not words.

Form ``w * n_groups + g`` is word w in documents of group g. The forms of new words thus follow those of known words,
and a corpus of forms is an ordinary corpus with a larger vocabulary.
"""

import zlib
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...kernels.models.lda import assignments
from .corpus import Change, Done


class Forms(NamedTuple):
    """The forms that the words of documents have.

    Parameters
    ----------
    group : ndarray of int64, shape (n_docs,)
        Group of each document; not read if there is one group.
    n_groups : int
    """

    group: np.ndarray
    n_groups: int

    def rows(self, start, stop):
        """The forms of documents start:stop."""
        return self._replace(group=self.group[start:stop])

    def of(self, corpus):
        """The documents, a `Corpus` of words, as one of forms."""
        if self.n_groups == 1:
            return corpus
        forms = corpus.words.astype(np.int64) * self.n_groups + np.repeat(self.group, np.diff(corpus.indptr))
        return replace(corpus, words=forms, n_words=corpus.n_words * self.n_groups)

    def checksum(self, of_words):
        """A checksum of documents whose checksum without forms is ``of_words``."""
        return of_words if self.n_groups == 1 else (of_words, zlib.crc32(self.group))


AS_WORDS = Forms(np.empty(0, dtype=np.int64), 1)  # Every word has one form, which is the word itself.


def of_words(counts, n_groups):
    """Sums over the forms of each word, from values of forms along the last axis."""
    return counts.reshape(*counts.shape[:-1], -1, n_groups).sum(axis=-1)


def in_words(shard, n_groups):
    """A `Shard` of forms as one of words, without their groups."""
    if n_groups == 1:
        return shard
    return shard._replace(words=shard.words // np.int32(n_groups), n_words=shard.n_words // n_groups)


def groups_of_documents(shard, n_groups):
    """The group of each document of a `Shard` of forms, (n_docs,); 0 for empty documents."""
    group, filled = np.zeros(shard.n_docs, dtype=np.int64), np.diff(shard.token_ptr) > 0
    group[filled] = shard.words[shard.token_ptr[:-1][filled]] % n_groups
    return group


class StepInWords:
    """A step of shards of forms, all of whose tokens have weight 1, that reads words and changes counts of forms.

    Parameters
    ----------
    step : callable
        A step of shards of words, as for `Round`.
    n_groups : int
    """

    def __init__(self, step, n_groups):
        self.step, self.n_groups = step, n_groups

    def __call__(self, shard, z, seed):
        """Return the `Done` of a shard with assignments ``z``."""
        before, (rows, slot) = np.array(z), shard.active()
        after = self.step(in_words(shard, self.n_groups), before, seed).z
        counts = np.zeros((2, rows.size, self.step.mass.size))
        for each, own in zip((before, after), counts, strict=True):
            assignments.count_assignments(slot[shard.words], shard.weights, each, own)
        return Done(after, Change(rows, (counts[1] - counts[0]).astype(np.int32)))
