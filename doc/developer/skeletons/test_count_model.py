"""A count model: latent Dirichlet allocation whose documents' prior is drawn, not fitted."""

import numpy as np
import pytest
from scipy import special
from scipy.sparse import csr_array

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.base import all_or_nothing, fits_anew
from sk_sgmcmc.datasets import CountBlocks, make_lda
from sk_sgmcmc.topic._counts.corpus import AssignedShards, OneShard, Shard
from sk_sgmcmc.topic._counts.document_prior import DocumentPrior, Progress


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

    def update(self, assigned, progress):
        """All documents were assigned anew: draw alpha given their counts."""
        counts = np.concatenate(assigned.map(topics_of_documents, self.alpha.size))
        alpha, rng = self.alpha[0], progress.rng
        for _ in range(self.n_steps):
            proposed = alpha * np.exp(0.5 * rng.standard_normal())
            if np.log(rng.random()) < self.log_density(proposed, counts) - self.log_density(alpha, counts):
                alpha = proposed
        self.alpha = np.full(self.alpha.size, alpha)

    def exchangeable_groups(self):
        return np.zeros(self.alpha.size)  # all topics are alike

    def draw(self):
        return {"doc_topic_prior": self.alpha.copy()}


def topics_of_documents(shard, z, n_topics):
    """Counts (n_docs, n_topics) of a shard; called where the shard is."""
    docs = np.repeat(np.arange(shard.n_docs), np.diff(shard.token_ptr))
    counts = np.zeros((shard.n_docs, n_topics))
    np.add.at(counts, (docs, z), shard.weights if shard.weights.size else 1.0)
    return counts


# the estimator
class SampledLDA(BayesianLDA):
    """`BayesianLDA` with draws of the documents' prior in ``samples_["doc_topic_prior"]``."""

    def _document_prior(self, alpha, stored, plan):
        if not stored:
            raise ValueError('SampledLDA needs stored assignments; use assignments="auto" and fit.')
        return SampledPrior(alpha, stored)


# the labels
class LabelPrior(DocumentPrior):
    """Documents have the topics of their labels, and no other."""

    def table(self, shard, docs=None):
        """A row for each distinct row of labels, and the row of each document."""
        group = shard.group if docs is None else shard.group[docs]
        return self.prior_of(shard.given), group

    def prior_of(self, labels):
        """The Dirichlet parameters of documents with these labels, (n, n_topics)."""
        return np.where(labels > 0, self.alpha, 1e-100)  # 0 is refused

    def exchangeable_groups(self):
        return np.arange(self.alpha.size)  # topic k is that of label k


class LabelledLDA(BayesianLDA):
    """`BayesianLDA` whose topics are known labels of documents, (n_samples, n_components) of 0 and 1."""

    @fits_anew
    def fit(self, X, labels):
        return self._fit(X, described=np.asarray(labels, dtype=float))

    @all_or_nothing
    def resume(self, X, labels):
        return self._resume(X, described=np.asarray(labels, dtype=float))

    def partial_fit(self, X, y=None, **params):
        raise TypeError("LabelledLDA takes all documents at once; call fit.")

    def _document_prior(self, alpha, stored, plan):
        return LabelPrior(alpha, stored)

    def _prior_of_draw(self, data, c, s, docs):
        """The documents' priors in draw ``s`` of chain ``c``, which `diagnostics_` and checks use."""
        return LabelPrior(self.doc_topic_prior_).prior_of(data.given)[data.group[docs]]

    def _prior_in_chain(self, samples, c, chain, data, docs):
        """The documents' priors in chain ``c``, by which the reference chain is chosen."""
        return chain.doc_prior.prior_of(data.given)[data.group[docs]]


# the proof
class WithoutJacobian(SampledPrior):
    """Mistake: the density of alpha where that of its logarithm belongs."""

    def log_density(self, alpha, counts):
        return super().log_density(alpha, counts) - np.log(alpha)


# Six short documents.
DOCUMENTS = Shard(np.arange(0, 19, 3), np.zeros(18, dtype=np.int32), np.empty(0), 0, 1)


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
        for step in range(300):
            prior.update(AssignedShards(OneShard(DOCUMENTS), z, None), Progress(step, 0, step, rng, seed, 1.0))
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
        SampledLDA(4, sampler="scir").partial_fit(data.counts)


def labelled():
    """Documents of 40 words with one or two of five labels, of which most words are theirs alone; counts and labels."""
    rng = np.random.default_rng(0)
    labels = np.zeros((200, 5))
    for row in labels:
        row[rng.choice(5, rng.integers(1, 3), replace=False)] = 1.0
    topics = 0.7 * np.kron(np.eye(5), np.full(8, 0.125)) + 0.3 / 40
    return np.array([rng.multinomial(40, row / row.sum() @ topics) for row in labels]), labels


@pytest.mark.parametrize("init", ["soft", "random"])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_topics_are_those_of_their_labels_and_other_labels_are_refused(in_blocks, init):
    X, labels = labelled()
    blocks = CountBlocks([csr_array(X[:80]), csr_array(X[80:])], shard_tokens=2000) if in_blocks else X
    model = LabelledLDA(5, init=init, n_iter=40, callbacks=lambda _, step: step >= 30, random_state=0)
    model.fit(blocks, labels).set_params(callbacks=None)
    with pytest.raises(ValueError, match="resume continues with the data"):
        model.resume(blocks, np.roll(labels, 1, axis=1))
    with pytest.raises(ValueError, match="have 150 rows, but X has 200 documents"):
        LabelledLDA(5).fit(blocks, labels[:150])
    components = model.resume(blocks, labels).components_
    assert np.all(np.add.reduceat(components, np.arange(0, 40, 8), axis=1).diagonal() > 0.65)
    if not in_blocks:
        shard, z = model._kept.shard, model._chains[0].z
        of_tokens = np.repeat(shard.given[shard.group], np.diff(shard.token_ptr), axis=0)
        assert np.all(of_tokens[np.arange(z.size), z] == 1.0)


@pytest.mark.filterwarnings("ignore:Some topics have nearly the same words")
@pytest.mark.parametrize("init", ["soft", "random"])
def test_first_assignments_have_the_labels_of_their_documents(init):
    X, labels = labelled()
    labels[100:] = [1.0, 1.0, 0.0, 0.0, 1.0]
    for rows in (slice(None), slice(100, None)):  # In the second case, all documents have the same labels.
        model = LabelledLDA(5, init=init, n_iter=1, burn_in=0, random_state=0)
        model.fit(X[rows], labels[rows])
        shard, z = model._kept.shard, model._chains[0].z
        of_tokens = np.repeat(shard.given[shard.group], np.diff(shard.token_ptr), axis=0)
        assert np.all(of_tokens[np.arange(z.size), z] == 1.0)
