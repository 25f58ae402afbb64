"""Collapsed Gibbs sweeps over stored assignments: the exact reference, and the burn-in of chains that store them."""

import numpy as np

from ...kernels.math import dirichlet
from ...kernels.models.lda import assignments, whole_tokens
from . import parts, shards
from .start import pieces


class CollapsedSweeps:
    """Counts of all assignments, and sweeps that redraw each token's topic given all others.

    All tokens weigh 1, and the topics' prior is one number; see `GeneralSweeps` for others.

    Parameters
    ----------
    data : TokenData
    z : ndarray of uint16, shape (n_tokens,)
        Assignments, changed by sweeps.
    topic_word_prior : ndarray of shape (n_words, n_topics)

    Attributes
    ----------
    table : ndarray of shape (n_words, width)
        Counts as the kernel takes them, of whole numbers in padded rows.
    temperature : float
        Above 1, sweeps draw from a flatter law than the posterior: for burn-in only.
    """

    is_fast = True
    temperature = 1.0

    def __init__(self, data, z, topic_word_prior):
        self.z = z
        self.topic_word_prior = topic_word_prior
        n_words, n_topics = topic_word_prior.shape
        counts = np.zeros((n_words, n_topics))
        assignments.count_assignments(data.words, data.weights, z, counts)
        self.table = whole_tokens.table_of_counts(counts)
        self.topic_mass = self.counts.sum(axis=0, dtype=np.int64)
        self.beta = float(topic_word_prior[0, 0])

    @property
    def counts(self):
        """Tokens of each word in each topic, (n_words, n_topics)."""
        return self.table[:, : self.topic_word_prior.shape[1]]

    def __getstate__(self):
        # These two belong to the chain: joblib would make a second array of z, and a full one of the prior's view.
        return {name: value for name, value in self.__dict__.items() if name not in ("z", "topic_word_prior")}

    def rejoin(self, z, topic_word_prior):
        """Share the chain's arrays again, after both were unpickled."""
        self.z, self.topic_word_prior = z, topic_word_prior

    def set_topic_word_prior(self, topic_word_prior):
        """Go on with another prior, (n_words, n_topics), one number as the old one was."""
        self.topic_word_prior = topic_word_prior
        self.beta = float(topic_word_prior[0, 0])

    def n_shards(self, data, start=0, stop=None):
        """In how many shards `sweep_shards` cuts documents start:stop."""
        stop = data.n_docs if stop is None else stop
        return shards.number_of_shards(data.token_ptr[stop] - data.token_ptr[start], self.table.size)

    def sweep_shards(self, data, start, stop, doc_topic_prior, group, rng, pool):
        """The same as `sweep`, for burn-in only: shards of documents see each other's counts of before the sweep.

        They run in the threads of ``pool``, whose number changes no draw. A single shard is swept exactly.
        """
        n = self.n_shards(data, start, stop)
        if n == 1:
            self.sweep(data, start, stop, doc_topic_prior, group, rng)
            return
        ends = start + shards.cuts(data.token_ptr[start : stop + 1], n)
        streams = shards.streams(rng, n)
        merger = shards.Merger(self.table, self.topic_mass)

        def work(i):
            copies = merger.copies()
            self._sweep(data, ends[i], ends[i + 1], *copies, doc_topic_prior, group, streams[i])
            merger.add(copies)

        shards.side_by_side(work, n, pool)
        merger.finish()

    def n_parts(self, data):
        """Into how many parts `sweep_parts` cuts the vocabulary; 1 where they do not pay."""
        return parts.number_of_parts(data.n_tokens)

    def sweep_parts(self, data, doc_topic_prior, group, rng, pool):
        """The same as `sweep` over all documents, and as exact, in the threads of ``pool``: see `parts`."""
        self.topic_mass[:] = parts.sweep(
            data, self.z, self.table, doc_topic_prior, group, self.beta, rng, self.n_parts(data), pool
        )

    def _sweep(self, data, start, stop, table, topic_mass, doc_topic_prior, group, rng):
        whole_tokens.sweep(
            start, stop, data.token_ptr, data.words, self.z, table, topic_mass, doc_topic_prior, group, self.beta, rng,
            self.temperature,
        )  # fmt: skip

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, whose priors are the rows ``group`` of ``doc_topic_prior``."""
        self._sweep(data, start, stop, self.table, self.topic_mass, doc_topic_prior, group, rng)


def compile_sweeps():
    """Compile all kernels of sweeps over whole tokens, of which a corpus needs some by its size."""
    for kernel in whole_tokens.KERNELS:
        kernel.compiled  # noqa: B018


def fitted_doc_prior(data, z, doc_topic_prior, n_updates=5):
    """The documents' Dirichlet prior, moved by Minka's fixed point towards the assignments; (n_topics,)."""
    for _ in range(n_updates):
        sums = np.zeros(doc_topic_prior.size + 1)
        for start, stop in pieces(data.token_ptr):
            dirichlet.add_statistics(start, stop, data.token_ptr, data.weights, z, doc_topic_prior, sums)
        doc_topic_prior = moved_prior(doc_topic_prior, sums)
    return doc_topic_prior


def moved_prior(doc_topic_prior, sums):
    """One update of the fixed point from sums over documents, (n_topics + 1,); see `dirichlet.add_statistics`."""
    if not sums[-1] > 0:
        return doc_topic_prior
    return np.clip(doc_topic_prior * sums[:-1] / sums[-1], 1e-4, 1e3)
