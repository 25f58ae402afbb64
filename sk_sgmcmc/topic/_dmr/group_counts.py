"""Histograms of topic counts over documents with equal metadata."""

from typing import NamedTuple

import numpy as np

from ...kernels.models import dmr


class GroupCounts(NamedTuple):
    """Distinct counts of each topic in the documents of each group, and the number of documents with each count.

    Parameters
    ----------
    at, count, times : ndarray
        Group and topic, as an index into the ravelled priors (n_groups, n_topics); a number of tokens; and the number
        of documents of this group with this many tokens of this topic.
    group, length, docs : ndarray
        Group; a document length; and the number of documents of this group with this length.
    """

    at: np.ndarray
    count: np.ndarray
    times: np.ndarray
    group: np.ndarray
    length: np.ndarray
    docs: np.ndarray


def group_counts(data, z, n_topics, lengths=None):
    """The `GroupCounts` of a shard; ``lengths`` are its last three arrays, if they are known."""
    room = min(z.size, 16 * data.n_docs)  # Usually enough; otherwise count again with the right size.
    while True:
        at, (count, times) = np.empty(room, dtype=np.int64), np.empty((2, room))
        n = dmr.count_cells(data.token_ptr, data.weights, z, data.group, n_topics, at, count, times)
        if n <= room:
            return GroupCounts(at[:n], count[:n], times[:n], *(lengths or group_lengths(data)))
        room = n


def group_lengths(data):
    """The last three arrays of `GroupCounts`: groups, distinct lengths, and numbers of documents."""
    length = data.lengths
    order = np.lexsort((length, data.group))
    group, length = data.group[order], length[order]
    first = np.flatnonzero(np.append(True, (np.diff(group) != 0) | (np.diff(length) != 0))[: group.size])
    docs = np.diff(np.append(first, group.size)).astype(np.float64)
    return group[first], length[first], docs


def counts_of_rows(doc_counts, group):
    """The `GroupCounts` of documents with topic counts ``doc_counts`` (n_docs, n_topics) and the given groups."""
    order = np.argsort(group, kind="stable")
    doc_counts, group = doc_counts[order], group[order]
    doc, topic = np.nonzero(doc_counts)
    count = doc_counts[doc, topic]
    at = group[doc] * doc_counts.shape[1] + topic
    return GroupCounts(at, count, np.ones(at.size), group, doc_counts.sum(axis=1), np.ones(group.size))


def likelihood(counts, prior, with_value=False):
    """Log likelihood of the documents' topics given their groups' priors, and its derivatives by the log priors."""
    residual = np.empty_like(prior)
    value = dmr.dirichlet_multinomial(*counts, prior, with_value, residual)
    return value, residual


def information(counts, prior):
    """The three arrays of `dirichlet_information`, and the derivatives of the log likelihood by the log priors."""
    own, common, tables = np.empty_like(prior), np.empty(len(prior)), np.empty_like(prior)
    dmr.dirichlet_information(*counts, prior, own, common, tables)
    return own, common, tables, likelihood(counts, prior)[1]
