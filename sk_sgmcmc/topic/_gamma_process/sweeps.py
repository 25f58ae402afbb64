"""Collapsed sweeps at a cost linear in the occupied topics, and moves that join topics."""

import numpy as np
from scipy.special import gammaln

from ...kernels.math import lanes
from ...kernels.models import gamma_process
from ...kernels.models.lda import any_tokens
from .._counts.general_sweeps import GeneralSweeps

_READY = 8  # topics without tokens that keep a column
_ALIKE = 0.3  # Bhattacharyya coefficient above which two topics are compared


class SweepsInUse(GeneralSweeps):
    """Collapsed sweeps whose cost is linear in the topics that hold tokens; exact at every sweep.

    Topics without tokens are set aside, but for a few, which stay ready for a token that leaves its topic.
    """

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, which share one prior (1, n_topics)."""
        self._lay_again(doc_topic_prior[0], _READY)
        at = self._sweep_from(0, data, start, stop, doc_topic_prior, group, rng)
        while at != any_tokens.DONE:
            self._lay_again(doc_topic_prior[0], 3 * _READY)
            start = int(np.searchsorted(data.token_ptr, at, side="right")) - 1
            at = self._sweep_from(at, data, start, stop, doc_topic_prior, group, rng)

    def _lay_again(self, alpha, n_ready):
        """Set aside topics without tokens, but for at least ``n_ready`` of the likeliest; unless nothing is gained."""
        mass = self._mass_of_topics()
        n_used = np.count_nonzero(mass)
        n_columns = min(mass.size, lanes.padded(n_used + n_ready))
        if lanes.padded(n_columns) == self.mass.size:
            return
        order = np.lexsort((-alpha, mass == 0.0))
        self.lay(self.counts, np.sort(order[:n_columns]))
        self.set_topic_word_prior(self.topic_word_prior)

    def _mass_of_topics(self):
        mass, used = np.zeros(self.column.size), self.topic >= 0
        mass[self.topic[used]] = self.mass[used]
        return mass

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
        counts = self.counts.astype(np.float64)
        mass = self._mass_of_topics()
        used = np.flatnonzero(mass > 0)
        roots = np.sqrt((counts[:, used] + beta[:, None]) / (mass[used] + beta.sum()))
        alike = np.triu(roots.T @ roots, 1)
        partner = np.full(mass.size, -1)
        pairs = np.argwhere(alike > _ALIKE)
        for j, k in used[pairs[np.argsort(-alike[tuple(pairs.T)], kind="stable")]]:
            if partner[j] < 0 and partner[k] < 0 and (j, k) not in tried:
                partner[j], partner[k] = k, j
        first = np.flatnonzero(partner > np.arange(partner.size))
        if not first.size:
            return []
        gains = np.zeros(mass.size)
        gamma_process.pair_gains(
            data.token_ptr, data.words, data.weights, self.z, partner, counts, mass, beta, float(beta.sum()),
            doc_topic_prior, gains,
        )  # fmt: skip

        def log_evidence(counts):
            """Log evidence of words given their topics, less that of a topic without tokens."""
            cells = gammaln(counts + beta[:, None]) - gammaln(beta)[:, None]
            return cells.sum(axis=0) + gammaln(beta.sum()) - gammaln(counts.sum(axis=0) + beta.sum())

        joined = []
        own, other = counts[:, first], counts[:, partner[first]]
        gains = gains[first] + log_evidence(own) + log_evidence(other) - log_evidence(own + other)
        for j, gain in zip(first.tolist(), gains, strict=True):
            k = int(partner[j])
            if gain > 0.0:
                tried.add((j, k))
                continue
            self.z[self.z == k] = j
            counts[:, j] += counts[:, k]
            counts[:, k] = 0.0
            joined.append((j, k))
        self.lay(counts, np.sort(self.topic[self.topic >= 0]))
        return joined
