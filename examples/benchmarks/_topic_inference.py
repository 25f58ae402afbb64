"""Topic proportions of new documents by several programs, and effects of a column of metadata.

`TRANSFORMS`: a class has ``name``, ``package``, ``version()``, and is made by ``(train, given, n_topics)``, where
``given`` is a `Given` or None. Programs that can take topics use these, so that only inference differs; the others
learn their own (``own = True``). ``prepared(X)`` returns documents as the program takes them,
``proportions(documents)`` their proportions (n_docs, n_topics), by its default arguments on one core, and ``topics``
its topics. With ``scores = True`` there is also ``score(X)``.

`EFFECTS`: a class has ``name``, ``package``, ``version()``, and ``fitted(counts, column, n_topics, seed)``, which fits
by default arguments and returns an `Answer`.
"""

import warnings
from copy import copy
from typing import NamedTuple

import numpy as np
from _peers import DOC_PRIOR, WORD_PRIOR
from _topic_programs import Ours, Program, as_gensim, gensim_model, in_columns, normalized, texts
from scipy.special import psi
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import BayesianLDA, DMRTopicModel

TRAIN_SWEEPS = 100
MASS = 0.9
Z = 1.6448536269514722  # Of a normal interval of this mass.


class Given(NamedTuple):
    """Topics that all programs use: tokens of each word, with the prior (n_topics, n_words); the documents' prior."""

    word_counts: np.ndarray
    doc_prior: np.ndarray

    @property
    def shares(self):
        """Word probabilities."""
        return self.word_counts / self.word_counts.sum(axis=1, keepdims=True)


class TomotopyTransform(Program):
    """`infer` of tomotopy, which learns the topics that others are given."""

    name, package, own, makes_topics = "tomotopy", "tomotopy", False, True

    def __init__(self, train, given, n_topics):
        import tomotopy

        self.model = tomotopy.LDAModel(k=n_topics, alpha=DOC_PRIOR, eta=WORD_PRIOR, seed=1)
        for document in texts(train):
            self.model.add_doc(document)
        self.model.train(TRAIN_SWEEPS, workers=1)
        dists = [self.model.get_topic_word_dist(k) for k in range(n_topics)]
        self.topics = in_columns(self.model.used_vocabs, dists, train.shape[1])
        tokens = self.model.get_count_by_topics() + WORD_PRIOR * train.shape[1]
        self.given = Given(self.topics * np.asarray(tokens)[:, None], np.array(self.model.alpha))

    def prepared(self, X):
        """Documents of the model."""
        return [self.model.make_doc(document) for document in texts(X)]

    def proportions(self, documents):
        """One document after the other."""
        return np.array(self.model.infer(documents, workers=1, together=False)[0])


class ScikitLearnTransform(Program):
    """`transform` of scikit-learn; its prior is one number."""

    name, package, own = "scikit-learn", "scikit-learn", False

    def __init__(self, train, given, n_topics):
        self.model, self.topics = LatentDirichletAllocation(n_topics, max_iter=1, random_state=0), given.shares
        self.model.fit(train[:50])
        self.model.doc_topic_prior_, self.model.components_ = given.doc_prior.mean(), given.word_counts
        expected = psi(given.word_counts) - psi(given.word_counts.sum(axis=1, keepdims=True))
        self.model.exp_dirichlet_component_ = np.exp(expected)

    prepared, scores = staticmethod(lambda X: X), True

    def proportions(self, X):
        """By `transform`."""
        return self.model.transform(X)

    def score(self, X):
        """A variational bound by one set of topics."""
        return self.model.score(X)


class OurTransform(Program):
    """`transform` of `BayesianLDA`."""

    name, package, own, version = "ours", "sk-sgmcmc", False, Ours.version

    def __init__(self, train, given, n_topics):
        self.fitted, self.topics = BayesianLDA(n_topics, n_iter=40, random_state=0).fit(train), given.shares
        self.model = copy(self.fitted)
        self.model.components_, self.model.doc_topic_prior_ = given.shares, given.doc_prior

    prepared, scores = staticmethod(lambda X: X), True

    def proportions(self, X):
        """By `transform`."""
        return self.model.transform(X)

    def score(self, X):
        """By ten draws of its own topics, for each of which proportions are inferred."""
        return self.fitted.score(X)


class GensimTransform(Program):
    """`get_document_topics` of gensim."""

    name, package, own = "gensim", "gensim", False

    def __init__(self, train, given, n_topics):
        self.model, self.topics = gensim_model(train, n_topics, 0), given.shares
        self.model.alpha = given.doc_prior.astype(self.model.dtype)
        self.model.state.sstats = (given.word_counts - self.model.eta).astype(self.model.dtype)
        self.model.sync_state()

    prepared = staticmethod(as_gensim)

    def proportions(self, documents):
        """Variational means."""
        gamma = self.model.inference(documents)[0]
        return gamma / gamma.sum(axis=1, keepdims=True)


class TopicaTransform(Program):
    """`transform` of topica, which takes no topics of others."""

    name, package, own = "topica", "topica", True

    def __init__(self, train, given, n_topics):
        import topica

        self.model = topica.LDA(n_topics, seed=1)
        self.model.fit(topica.Corpus.from_documents(texts(train)), iters=TRAIN_SWEEPS, progress=False)
        self.topics = in_columns(self.model.vocabulary, self.model.topic_word, train.shape[1])

    prepared = staticmethod(texts)

    def proportions(self, documents):
        """By `transform`."""
        return np.asarray(self.model.transform(documents))


class PyrmalletTransform(Program):
    """`infer_strings` of pyrmallet, which takes no topics of others."""

    name, package, own = "pyrmallet", "pyrmallet", True

    def __init__(self, train, given, n_topics):
        from pyrmallet import _rust_mallet

        corpus = _rust_mallet.Corpus.from_strings(self.prepared(train))
        self.model = _rust_mallet.train(corpus, num_topics=n_topics, iterations=TRAIN_SWEEPS)
        self.topics = in_columns(self.model.vocabulary, self.model.topic_word_matrix(), train.shape[1])

    @staticmethod
    def prepared(X):
        """Documents as text."""
        return [" ".join(document) for document in texts(X)]

    def proportions(self, lines):
        """By Gibbs sampling given the topics."""
        return np.asarray(self.model.infer_strings(lines))


TRANSFORMS = [
    TomotopyTransform, OurTransform, ScikitLearnTransform, GensimTransform, TopicaTransform, PyrmalletTransform,
]  # fmt: skip


class Answer(NamedTuple):
    """Topics (n_topics, n_words), and (mean, low, high) of effects and of shares of the tokens, each (3, n_topics)."""

    topics: np.ndarray
    effects: np.ndarray
    shares: np.ndarray


def interval(draws):
    """Mean, low and high of draws (n_draws, n_topics)."""
    tail = (1.0 - MASS) / 2.0
    return np.stack([draws.mean(axis=0), *np.quantile(draws, [tail, 1.0 - tail], axis=0, method="weibull")])


def least_squares(theta, column, lengths):
    """Effects by least squares, and mean proportions weighted by length, with the usual standard errors."""
    design = np.column_stack([np.ones(column.size), column])
    coef, inverse = np.linalg.lstsq(design, theta, rcond=None)[0], np.linalg.inv(design.T @ design)
    error = np.sqrt(((theta - design @ coef) ** 2).sum(axis=0) / (column.size - 2) * inverse[1, 1])
    weights = lengths / lengths.sum()
    share = weights @ theta
    spread = np.sqrt((weights**2) @ (theta - share) ** 2)
    return tuple(np.stack([mean, mean - Z * e, mean + Z * e]) for mean, e in ((coef[1], error), (share, spread)))


class OurEffects(Program):
    """`DMRTopicModel` and its table of effects."""

    name, package, version = "ours, DMRTopicModel", "sk-sgmcmc", Ours.version

    def fitted(self, counts, column, n_topics, seed):
        """Shares are those of the draws' assignments of tokens."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = DMRTopicModel(n_topics, random_state=seed).fit(counts, metadata={"x": column.astype(float)})
        table = model.effects("x", at=[0.0, 1.0], interval=MASS)
        record = model._chains[0].record
        tokens = [each.by_topic().sum(axis=1)[o] for each, o in zip(record.counts, record.orders, strict=True)]
        shares = np.array(tokens) / counts.sum()
        effects = np.stack([np.asarray(table[name]) for name in ("difference", "low", "high")])
        return Answer(model.components_, effects, interval(shares))


class TopicaEffects(Program):
    """Structural topic model of topica, and its effects by the method of composition with 25 draws."""

    name, package = "topica, STM", "topica"

    def fitted(self, counts, column, n_topics, seed):
        """Shares are those of draws of the documents' proportions."""
        import pandas
        import topica

        corpus, model = topica.Corpus.from_documents(texts(counts)), topica.STM(n_topics, seed=seed + 1)
        model.fit(corpus, prevalence=column[:, None].astype(float), num_threads=1, progress=lambda *args: None)
        data = pandas.DataFrame({"x": column.astype(float)})
        found = topica.estimate_effect(model, data=data, formula="~ x", nsims=25, ci=MASS, corpus=corpus)
        effects = np.array([[each.coef[1], each.ci_low[1], each.ci_high[1]] for each in found]).T
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        draws = topica.posterior_theta_samples(model, nsims=100, seed=seed)
        shares = np.einsum("sdk,d->sk", draws, lengths / lengths.sum())
        return Answer(in_columns(model.vocabulary, model.topic_word, counts.shape[1]), effects, interval(shares))


class OurLeastSquares(Program):
    """Least squares on `transform` of `BayesianLDA`."""

    name, package, version = "ours, LDA + least squares", "sk-sgmcmc", Ours.version

    def fitted(self, counts, column, n_topics, seed):
        """Proportions are taken for known."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = BayesianLDA(n_topics, random_state=seed).fit(counts)
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        return Answer(model.components_, *least_squares(model.transform(counts), column, lengths))


class ScikitLearnLeastSquares(Program):
    """Least squares on `transform` of LatentDirichletAllocation."""

    name, package = "scikit-learn + least squares", "scikit-learn"

    def fitted(self, counts, column, n_topics, seed):
        """Proportions are taken for known."""
        model = LatentDirichletAllocation(n_topics, random_state=seed).fit(counts)
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        return Answer(normalized(model.components_), *least_squares(model.transform(counts), column, lengths))


EFFECTS = [OurEffects(), TopicaEffects(), OurLeastSquares(), ScikitLearnLeastSquares()]
