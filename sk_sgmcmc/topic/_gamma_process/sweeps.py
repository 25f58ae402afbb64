"""Collapsed sweeps at a cost linear in the occupied topics, and moves that join topics."""

import numpy as np
from scipy.special import gammaln

from ...kernels.models.lda import in_use
from .._counts.collapsed import CollapsedSweeps

_ALIKE = 0.3  # Bhattacharyya coefficient above which two topics are compared


class SweepsInUse(CollapsedSweeps):
    """Collapsed sweeps whose cost is linear in the topics that hold tokens; exact at every sweep."""

    def __init__(self, data, z, topic_word_prior):
        super().__init__(data, z, topic_word_prior)
        self.is_fast = False
        self.table = np.array(self.counts, dtype=np.float64)
        self.mass = self.counts.sum(axis=0)

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, which share one prior (1, n_topics)."""
        beta = np.ascontiguousarray(self.topic_word_prior[:, 0])
        in_use.sweep_in_use(
            start, stop, data.token_ptr, data.words, data.weights, self.z, self.counts, self.mass, beta,
            float(beta.sum()), doc_topic_prior[0], rng,
        )  # fmt: skip

    def join(self, data, doc_topic_prior, tried):
        """Join two topics if that explains the assignments better: a move for burn-in, not a draw.

        The most similar pairs are tried. The evidence is estimated from the joint probability and the entropy of each
        token's choice between the two topics.

        Parameters
        ----------
        data : TokenData
        doc_topic_prior : ndarray of shape (n_topics,)
        tried : set of pairs
            Pairs not to be compared again; extended in place.

        Returns
        -------
        joined : list of pairs (topic kept, topic left empty)
        """
        beta = np.ascontiguousarray(self.topic_word_prior[:, 0])
        used = np.flatnonzero(self.mass > 0)
        roots = np.sqrt((self.counts[:, used] + beta[:, None]) / (self.mass[used] + beta.sum()))
        alike = np.triu(roots.T @ roots, 1)
        partner = np.full(self.mass.size, -1)
        pairs = np.argwhere(alike > _ALIKE)
        for j, k in used[pairs[np.argsort(-alike[tuple(pairs.T)], kind="stable")]]:
            if partner[j] < 0 and partner[k] < 0 and (j, k) not in tried:
                partner[j], partner[k] = k, j
        first = np.flatnonzero(partner > np.arange(partner.size))
        if not first.size:
            return []
        gains = np.zeros(self.mass.size)
        in_use.pair_gains(
            data.token_ptr, data.words, data.weights, self.z, partner, self.counts, self.mass, beta, float(beta.sum()),
            doc_topic_prior, gains,
        )  # fmt: skip

        def log_evidence(counts):
            """Log evidence of words given their topics, less that of a topic without tokens."""
            cells = gammaln(counts + beta[:, None]) - gammaln(beta)[:, None]
            return cells.sum(axis=0) + gammaln(beta.sum()) - gammaln(counts.sum(axis=0) + beta.sum())

        joined = []
        own, other = self.counts[:, first], self.counts[:, partner[first]]
        gains = gains[first] + log_evidence(own) + log_evidence(other) - log_evidence(own + other)
        for j, gain in zip(first.tolist(), gains, strict=True):
            k = int(partner[j])
            if gain > 0.0:
                tried.add((j, k))
                continue
            self.z[self.z == k] = j
            self.counts[:, j] += self.counts[:, k]
            self.counts[:, k] = 0.0
            joined.append((j, k))
        self.mass = self.counts.sum(axis=0)
        return joined
