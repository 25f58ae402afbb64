"""Words in forms: a word has a form in each group of documents, and counts of forms take the place of those of words.

Form ``w * n_groups + g`` is word w in documents of group g, so that the forms of new words follow those of known ones.
Corpora, counts and draws of forms are those of an ordinary topic model with a larger vocabulary.
"""

from dataclasses import replace

import numpy as np


def in_forms(corpus, group, n_groups):
    """A `Corpus` of forms, given the group of each document, (n_docs,)."""
    forms = corpus.words.astype(np.int64) * n_groups + np.repeat(group, np.diff(corpus.indptr))
    return replace(corpus, words=forms, n_words=corpus.n_words * n_groups)


def of_words(counts, n_groups):
    """Sums over the forms of each word, from values of forms along the last axis."""
    return counts.reshape(*counts.shape[:-1], -1, n_groups).sum(axis=-1)


def in_words(shard, n_groups):
    """A `Shard` of forms as one of words, without their groups."""
    return shard._replace(words=shard.words // np.int32(n_groups), n_words=shard.n_words // n_groups)


def groups_of_documents(shard, n_groups):
    """The group of each document of a `Shard` of forms, (n_docs,); 0 for empty documents."""
    group, filled = np.zeros(shard.n_docs, dtype=np.int64), np.diff(shard.token_ptr) > 0
    group[filled] = shard.words[shard.token_ptr[:-1][filled]] % n_groups
    return group
