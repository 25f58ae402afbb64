"""Parts of tests of joint laws: documents whose proportions are drawn forward, and scores of means of two samples."""

import numpy as np

from sk_sgmcmc.topic._counts.document_prior import DocumentPrior
from sk_sgmcmc.topic._counts.scaled_dirichlet import ScaledDirichlet, token_priors


def documents_of(alpha, rate, n_docs):
    """Two classes of document priors with their draws forward: Dirichlet, and scaled Dirichlet with these rates."""

    class Dirichlet(DocumentPrior):
        priors = alpha[None]

        @staticmethod
        def proportions(rng):
            return rng.dirichlet(alpha, n_docs)

    class Scaled(Dirichlet):
        token_priors = staticmethod(token_priors)
        priors = ScaledDirichlet(alpha[None], rate[None])

        @staticmethod
        def proportions(rng):
            activity = rng.gamma(alpha, size=(n_docs, alpha.size)) / rate
            return activity / activity.sum(axis=1, keepdims=True)

    return Dirichlet, Scaled


def z_scores(forward, turns, n_batches):
    """Differences between the means of independent and of successive rows, in standard errors."""
    means = turns.reshape(n_batches, -1, turns.shape[1]).mean(axis=1)
    error = np.sqrt(forward.var(axis=0) / len(forward) + means.var(axis=0, ddof=1) / n_batches)
    difference = np.abs(forward.mean(axis=0) - means.mean(axis=0))
    # A statistic may be the same number in all rows, up to rounding.
    is_constant = error < 1e-12 * (1.0 + np.abs(forward).max(axis=0))
    return difference / np.where(is_constant, 1.0, error)
