"""Topics of documents with the same metadata: how many of them have which count of a topic."""

from typing import NamedTuple

import numpy as np

from ...kernels.models import dmr


class GroupCounts(NamedTuple):
    """Distinct counts of topics in the documents of each group, and how many documents have them.

    Parameters
    ----------
    at, count, times : ndarray
        Group and topic, as an index into the ravelled priors; tokens of that topic; documents with so many.
    group, length, docs : ndarray
        Lengths of documents likewise.
    """

    at: np.ndarray
    count: np.ndarray
    times: np.ndarray
    group: np.ndarray
    length: np.ndarray
    docs: np.ndarray


def group_counts(data, z, n_topics, lengths=None):
    """The `GroupCounts` of documents sorted by group; ``lengths`` are its last three, if they are known."""
    room = min(z.size, 16 * data.n_docs)  # usually enough
    while True:
        at, (count, times) = np.empty(room, dtype=np.int64), np.empty((2, room))
        n = dmr.count_cells(data.token_ptr, data.weights, z, data.group, n_topics, at, count, times)
        if n <= room:
            return GroupCounts(at[:n], count[:n], times[:n], *(lengths or group_lengths(data)))
        room = n


def group_lengths(data):
    """Groups, distinct lengths of their documents, and how many documents have them."""
    length = data.lengths
    order = np.lexsort((length, data.group))
    group, length = data.group[order], length[order]
    first = np.flatnonzero(np.append(True, (np.diff(group) != 0) | (np.diff(length) != 0))[: group.size])
    docs = np.diff(np.append(first, group.size)).astype(np.float64)
    return group[first], length[first], docs


def counts_of_rows(doc_counts, group):
    """The `GroupCounts` of documents given by rows of counts (n_docs, n_topics) and their groups."""
    order = np.argsort(group, kind="stable")
    doc_counts, group = doc_counts[order], group[order]
    doc, topic = np.nonzero(doc_counts)
    count = doc_counts[doc, topic]
    at = group[doc] * doc_counts.shape[1] + topic
    return GroupCounts(at, count, np.ones(at.size), group, doc_counts.sum(axis=1), np.ones(group.size))


def likelihood(counts, prior, with_value=False):
    """Log likelihood of documents' topics under their groups' priors, and its derivatives by the log priors."""
    residual = np.empty_like(prior)
    value = dmr.dirichlet_multinomial(*counts, prior, with_value, residual)
    return value, residual


def information(counts, prior):
    """Parts of the information about the logarithms of the groups' priors; see `dirichlet_information`."""
    own, common, tables = np.empty_like(prior), np.empty(len(prior)), np.empty_like(prior)
    dmr.dirichlet_information(*counts, prior, own, common, tables)
    return own, common, tables, likelihood(counts, prior)[1]
