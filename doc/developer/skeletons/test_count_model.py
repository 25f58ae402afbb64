"""A count model: latent Dirichlet allocation whose documents' prior is drawn, not fitted."""

import numpy as np
import pytest
from scipy import special

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.topic._counts.doc_prior import DocumentPrior, Moment


# the part
class SampledPrior(DocumentPrior):
    r"""A symmetric Dirichlet prior whose parameter has the prior Gamma(1, 1), and is drawn with the assignments.

    Leaves :math:`p(\alpha \mid z) \propto e^{-\alpha} \prod_d \frac{\Gamma(K\alpha)}{\Gamma(K\alpha + n_d)}
    \prod_k \frac{\Gamma(\alpha + n_{dk})}{\Gamma(\alpha)}` invariant, by Metropolis steps of its logarithm.
    """

    n_steps = 4  # after each pass

    def log_density(self, alpha, counts):
        """Of log alpha given the documents' counts (n_docs, n_topics): with the Jacobian alpha."""
        K, lengths = counts.shape[1], counts.sum(axis=1)
        of_documents = special.gammaln(K * alpha) - special.gammaln(K * alpha + lengths)
        of_topics = special.gammaln(alpha + counts) - special.gammaln(alpha)
        return np.log(alpha) - alpha + of_documents.sum() + of_topics.sum()

    def after_pass(self, z, now, collapsed):
        """All documents were assigned anew by collapsed sweeps."""
        self.after_epoch(z, now)

    def after_epoch(self, z, now):
        """All documents were assigned anew in minibatches."""
        docs = np.repeat(np.arange(self.data.n_docs), np.diff(self.data.token_ptr))
        counts = np.zeros((self.data.n_docs, self.alpha.size))
        np.add.at(counts, (docs, z), 1.0 if not self.data.weights.size else self.data.weights)
        alpha, rng = self.alpha[0], now.rng
        for _ in range(self.n_steps):
            proposed = alpha * np.exp(0.5 * rng.standard_normal())
            if np.log(rng.random()) < self.log_density(proposed, counts) - self.log_density(alpha, counts):
                alpha = proposed
        self.alpha = np.full(self.alpha.size, alpha)

    @property
    def labels(self):
        return np.zeros(self.alpha.size)  # all topics are alike

    def draw(self):
        return {"doc_topic_prior": self.alpha.copy()}


# the estimator
class SampledLDA(BayesianLDA):
    """`BayesianLDA` with draws of the documents' prior in ``samples_["doc_topic_prior"]``."""

    def _document_prior(self, alpha, stored, plan):
        if not stored:
            raise ValueError('SampledLDA needs stored assignments; use assignments="auto" and fit.')
        return SampledPrior(alpha, stored)


# the proof
class WithoutJacobian(SampledPrior):
    """Mistake: the density of alpha where that of its logarithm belongs."""

    def log_density(self, alpha, counts):
        return super().log_density(alpha, counts) - np.log(alpha)


class FewDocuments:
    """Six short documents, as a prior is bound to them."""

    n_docs, token_ptr, weights = 6, np.arange(0, 19, 3), np.empty(0)


def z_score(make, seed):
    """Of the mean of log alpha given assignments, against quadrature."""
    rng, z = (
        np.random.default_rng(seed),
        np.array([0, 0, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1, 0], dtype=np.uint16),
    )
    grid = np.linspace(-12.0, 6.0, 4001)
    counts = np.zeros((6, 2))
    np.add.at(counts, (np.repeat(np.arange(6), 3), z), 1.0)
    log_p = np.array([SampledPrior([1.0, 1.0]).log_density(np.exp(x), counts) for x in grid])
    p = np.exp(log_p - log_p.max())
    means = []
    for _ in range(40):
        prior, drawn = make([1.0, 1.0]), []
        prior.bind(FewDocuments)
        for step in range(300):
            prior.after_epoch(z, Moment(step, 0, step, rng, seed, 1.0))
            drawn.append(np.log(prior.alpha[0]))
        means.append(np.mean(drawn[20:]))
    return abs(np.mean(means) - p @ grid / p.sum()) / (np.std(means, ddof=1) / np.sqrt(40))


def test_alpha_given_assignments_has_its_law_and_a_forgotten_jacobian_is_rejected(global_random_seed):
    assert z_score(SampledPrior, global_random_seed) < 6.0 < 7.8 < z_score(WithoutJacobian, global_random_seed)


@pytest.mark.parametrize("params", [{}, {"sampler": "scir", "batch_size": 100}], ids=["gibbs", "scir"])
def test_the_planted_prior_is_in_its_interval(params):
    data = make_lda(n_samples=300, n_features=60, n_components=4, doc_topic_prior=0.3, random_state=0)
    model = SampledLDA(4, topic_word_prior=0.1, n_iter=1200, random_state=0, **params).fit(data.counts)
    drawn = model.samples_["doc_topic_prior"][..., 0]  # too few for quantiles so far out
    low, high = drawn.mean() - 3.0 * drawn.std(), drawn.mean() + 3.0 * drawn.std()
    assert low < 0.3 < high < 2.0 * low
    assert model.transform(data.counts).shape == (300, 4)
    with pytest.raises(ValueError, match="needs stored assignments"):
        SampledLDA(4).partial_fit(data.counts)
