"""Collapsed Gibbs sweeps over stored assignments: the exact reference, and the burn-in of chains that store them."""

import numpy as np

from ...kernels.math import dirichlet
from ...kernels.models.lda import assignments, whole_tokens
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
    """

    is_fast = True

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

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, whose priors are the rows ``group`` of ``doc_topic_prior``."""
        whole_tokens.sweep(
            start, stop, data.token_ptr, data.words, self.z, self.table, self.topic_mass, doc_topic_prior, group,
            self.beta, rng,
        )  # fmt: skip


def fitted_doc_prior(data, z, doc_topic_prior, n_updates=5):
    """The documents' Dirichlet prior, moved by Minka's fixed point towards the assignments; (n_topics,)."""
    for _ in range(n_updates):
        sums = np.zeros(doc_topic_prior.size + 1)
        for start, stop in pieces(data.token_ptr):
            dirichlet.add_statistics(start, stop, data.token_ptr, data.weights, z, doc_topic_prior, sums)
        if not sums[-1] > 0:
            return doc_topic_prior
        doc_topic_prior = np.clip(doc_topic_prior * sums[:-1] / sums[-1], 1e-4, 1e3)
    return doc_topic_prior
