"""Variational inference for the spherical admixture model, on all the data or on minibatches."""

import numpy as np
from scipy import sparse

from ...kernels.math import bessel
from ...kernels.models.spherical import variational
from .chain import AdmixtureChain


class VariationalAdmixtureChain(AdmixtureChain):
    """As `AdmixtureChain`, with topics' mean directions in ``beta``, documents' Dirichlet parameters in ``theta``."""

    stores = is_sampled = False

    def _take_documents(self):
        super()._take_documents()
        self.theta = self.alpha + 10.0 * self.n_topics * self.theta
        self.theta_steps[:] = 1e-3

    def _advance(self, until):
        if self.beta is None:
            self._start()
        data, numbers = self.data, self.numbers
        docs = self._next_batch()
        length_topic, length_mean = _mean_length(data.n_words, numbers[2]), _mean_length(data.n_words, numbers[0])
        gram, products = self._products(docs)
        share, across = np.empty(products.shape), np.empty(gram.shape)
        variational.ascend_documents(
            gram, products, self.alpha, numbers[1], length_topic, docs, self.theta, self.theta_steps,
            self.sampler.n_inner, share, across, self.scale(docs),
        )  # fmt: skip
        X = sparse.csr_array((data.values, data.words, data.ptr), shape=(data.n_docs, data.n_words))[docs]
        pull = numbers[0] * self.prior.center + length_topic * numbers[2] * self.beta.sum(axis=0)
        pull *= numbers[2] * length_topic * length_mean / max(np.linalg.norm(pull), 1e-300)
        gradient = (X.T @ share).T - across @ self.beta + pull
        step = 1.0 / (np.linalg.eigvalsh(across)[-1] + numbers[2])
        beta = self.beta + step * gradient
        beta /= np.linalg.norm(beta, axis=1, keepdims=True)
        w = self.sampler._share(self.step)
        if w is not None:
            beta = (1.0 - w) * self.beta + w * beta
            beta /= np.linalg.norm(beta, axis=1, keepdims=True)
        self.state.theta = np.ascontiguousarray(beta)
        self.step += 1
        if self.plan.wants(self.step):
            self.keep(self.current())


def _mean_length(n_words, kappa):
    """Length of the mean of von Mises-Fisher directions with ``n_words`` coordinates."""
    out = [np.empty(1) for _ in range(3)]
    bessel.von_mises_fisher_table(float(n_words), np.array([float(kappa)]), *out)
    return float(out[2][0])
