"""Documents whose topics have a dispersion each: scaled Dirichlet distributions of their proportions, and sweeps."""

from typing import NamedTuple

import numpy as np

from ...kernels.models import scaled_dirichlet
from ...kernels.models.lda import any_tokens
from ...utils._bit_stable import bit_stable_product
from .sweeps import GeneralSweeps


class ScaledDirichlet(NamedTuple):
    """Scaled Dirichlet distributions: proportions are independent gamma variables, divided by their sum.

    It takes the place of Dirichlet parameters in `document_completion` and elsewhere.

    Parameters
    ----------
    shape, rate : ndarray of shape (n_rows, n_topics)
        Parameters of the gamma distributions, C-contiguous; one row for all documents or groups, or one for each.
    """

    shape: np.ndarray
    rate: np.ndarray

    @classmethod
    def of_means(cls, shape, mean):
        """The distributions of gamma variables with shapes ``shape`` and means ``mean``."""
        return cls(np.ascontiguousarray(shape), np.ascontiguousarray(shape / mean))

    @property
    def mean_sum(self):
        """Sum of the shapes, averaged over the rows."""
        return self.shape.sum(axis=1).mean()

    @property
    def activity(self):
        """Means of the gamma variables, (n_rows, n_topics)."""
        return self.shape / self.rate

    def take(self, rows):
        """The distributions of some rows."""
        return ScaledDirichlet(self.shape[rows], self.rate[rows])

    def mean(self):
        """Means of the proportions, (n_rows, n_topics), by numerical integration."""
        out = np.empty(self.shape.shape)
        scaled_dirichlet.mean_proportions(self.shape, self.rate, out)
        return out

    def summed(self, new):
        """The distributions after topics were merged; ``new`` is the index of the new topic of each topic.

        A sum of gamma variables is approximated by the gamma variable with the same mean and variance.
        """
        into = np.eye(new.max() + 1)[new]
        mean = bit_stable_product(self.activity, into)
        variance = bit_stable_product(self.activity / self.rate, into)
        return ScaledDirichlet(mean**2 / variance, mean / variance)

    def proportions(self, indptr, words, counts, phi, n_updates, start, stop, theta):
        """Write the proportions of documents start:stop given topics ``phi`` into ``theta``; see the kernel."""
        scaled_dirichlet.proportions(indptr, words, counts, phi, *self, n_updates, start, stop, theta)

    def draw_proportions(self, indptr, words, counts, token_ptr, phi, *rest):
        """Draw the proportions of documents given topics ``phi``; arguments as for the kernel, without the prior."""
        scaled_dirichlet.draw_proportions(indptr, words, counts, token_ptr, phi, *self, *rest)

    def draw_given_counts(self, counts, rng):
        """Draw the proportions of documents given counts of their topics, both (n_docs, n_topics)."""
        theta = np.empty(self.shape.shape)
        scaled_dirichlet.draw_given_counts(np.ascontiguousarray(counts, dtype=np.float64), *self, rng, theta)
        return theta


def token_priors(priors, group, shard, start, stop, z, rng):
    """As `DocumentPrior.token_priors` for a `ScaledDirichlet`: its shapes, and its rates with auxiliary variables."""
    shape, rate = priors
    auxiliary = np.empty(shard.n_docs)
    scaled_dirichlet.draw_auxiliary(start, stop, shard.token_ptr, shard.weights, z, shape, rate, group, rng, auxiliary)
    return shape, {"rate": rate, "auxiliary": auxiliary}


class ScaledSweeps(GeneralSweeps):
    """`GeneralSweeps` of documents whose proportions have scaled Dirichlet distributions.

    Before a sweep, the auxiliary variables of its documents are drawn given the assignments. Given them, topics are
    independent within a document.
    """

    def sweep(self, data, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, whose priors are rows ``group`` of a `ScaledDirichlet`."""
        shape, more = token_priors(doc_topic_prior, group, data, start, stop, self.z, rng)
        any_tokens.sweep(
            0, start, stop, data.token_ptr, data.words, data.weights, self.z, self.table, self.mass, self.column,
            self.topic, shape, group, self.beta, self.row, self.beta_sums, rng, **more,
        )  # fmt: skip
