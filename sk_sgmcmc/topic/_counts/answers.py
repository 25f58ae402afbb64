"""What all count topic models share once they are fitted: documents in, proportions and held-out scores out."""

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ...base import BaseSGMCMC
from ...chains.chain import stacked_draws
from ...metrics import doc_topic_proportions, document_completion, split_tokens
from ...utils import Corpus, as_precise_as, as_table, check_counts
from ...utils._sklearn import validate_data
from .._several_chains import SeveralChains
from .vocabulary import aligned_counts

# Draws that held-out scores average over, evenly spaced over the kept ones; each costs a fit of all documents.
_SCORED_DRAWS = 10
_REFERENCE_DOCS = 1000  # documents by which a reference chain is chosen


def scored_draws(n_draws):
    """Numbers of the draws that held-out scores average over."""
    return np.unique(np.linspace(0, n_draws - 1, _SCORED_DRAWS).round().astype(int))


class BaseTopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SeveralChains, BaseSGMCMC):
    """Base of count topic models: `transform`, `score`, `perplexity` and `top_words` from kept draws of topics."""

    # With routing on, scikit-learn's Pipeline hands sample_weight=None to score, and fails where nobody knows the name.
    __metadata_request__score = {"sample_weight": None}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def _check_X(self, X, *, reset):
        """A checked corpus; sets or compares the number and names of features."""
        if not reset and getattr(self, "new_features", "error") == "extend" and hasattr(X, "columns"):
            return Corpus.from_counts(aligned_counts(X, self), whom=type(self).__name__)
        checked = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse=True,
            dtype=[np.float64, np.float32, np.int64, np.int32],
            ensure_all_finite=False,
        )
        return Corpus.from_counts(check_counts(checked, whom=type(self).__name__))

    # -- fitted attributes ---------------------------------------------------------------------------------------

    def _collect(self, chains, groups=None):
        """Stack the chains' kept draws into ``samples_``, topics in one order within ``groups``."""
        samples = stacked_draws(chains)
        documents = chains[0].data.start or chains[0].data
        self._number_topics(samples, groups, lambda means: self._best_chain(means, samples, chains, documents))
        self.samples_ = samples
        # Of the reference chain alone: a mean over chains may be a topic that none of them has.
        mean = samples["components"][self.reference_chain_][None].mean(axis=(0, 1), dtype=np.float64)
        self.components_ = mean / mean.sum(axis=1, keepdims=True)

    def _best_chain(self, means, samples, chains, data):
        """The chain whose mean topics predict hidden words best, of up to 1000 of the documents that were fitted."""
        some = np.unique(np.linspace(0, data.n_docs - 1, _REFERENCE_DOCS).round().astype(int))
        weights = data.weights if data.weights.size else np.ones(data.words.size)
        counts = sparse.csr_array((weights, data.words, data.token_ptr), shape=(data.n_docs, data.n_words))[some]
        counts.sum_duplicates()
        observed, hidden = split_tokens(counts)
        if hidden.nnz == 0:
            return 0
        scores = [
            document_completion(
                observed, hidden, mean, doc_topic_prior=self._prior_in_chain(samples, c, chains[c], data, some)
            ).score
            for c, mean in enumerate(means)
        ]
        return int(np.argmax(scores))

    def _prior_in_chain(self, samples, c, chain, data, docs):
        """Parameter of the documents' Dirichlet prior in chain ``c``, of documents ``docs`` of ``data``."""
        return samples["doc_topic_prior"][c].mean(axis=0) if "doc_topic_prior" in samples else chain.doc_topic_prior

    def _flat(self, name):
        value = self.samples_[name]
        return value.reshape(-1, *value.shape[2:])

    def _doc_prior(self, corpus, draws=None):
        """Parameter of the documents' Dirichlet prior as `document_completion` takes it, for draws of these numbers."""
        if draws is None or len(self._doc_priors) == 1:
            return self.doc_topic_prior_
        return self._doc_priors[draws // self.samples_["components"].shape[1]][:, None]  # each draw its chain's

    def _present_doc_prior(self, chain, corpus):
        """The same, as a chain has it now."""
        return chain.doc_topic_prior

    # -- documents -----------------------------------------------------------------------------------------------

    def transform(self, X):
        """Topic proportions of documents.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Counts.

        Returns
        -------
        proportions : ndarray of shape (n_samples, n_components)
            Rows sum to 1, given ``components_``; an empty document gets the prior. A document's row does not depend on
            the other documents or on its place.
        """
        return self._transform(X)

    def _transform(self, X, **given):
        check_is_fitted(self)
        corpus = self._check_X(X, reset=False, **given)
        proportions = doc_topic_proportions(
            corpus.to_csr(), self.components_, self._doc_prior(corpus), n_jobs=self.n_jobs
        )
        return as_precise_as(X, proportions)

    def score(self, X, y=None):
        r"""Mean log predictive probability of a hidden token by document completion, averaged over draws.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Counts of documents; each token is hidden by a fair coin that depends on its document's content alone.
        y : ignored

        Returns
        -------
        score : float
            Higher is better; see `sk_sgmcmc.metrics.document_completion` for the equation. At most 10 kept draws of
            all chains, evenly spaced, are averaged, in probability; that is right also where chains found different
            topics, since a draw predicts words with its own.
        """
        return self._completion(X).score

    def perplexity(self, X):
        """Perplexity of hidden tokens, ``exp(-score(X))``; lower is better.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Counts.

        Returns
        -------
        perplexity : float
        """
        return self._completion(X).perplexity

    def _completion(self, X, **given):
        check_is_fitted(self)
        corpus = self._check_X(X, reset=False, **given)
        observed, hidden = split_tokens(corpus.to_csr())
        draws = self._flat("components")
        chosen = scored_draws(len(draws))
        return document_completion(
            observed, hidden, draws[chosen], doc_topic_prior=self._doc_prior(corpus, chosen), n_jobs=self.n_jobs
        )

    def _score_now(self, callback):
        """Held-out score of the topics as they are, for `HeldOutScore`; the split is made once."""
        if callback._split is None:
            corpus = self._check_X(callback.X, reset=False, **callback.given)
            callback._split = corpus, *split_tokens(corpus.to_csr())
        corpus, observed, hidden = callback._split
        chain = self._chains[0]
        prior = self._present_doc_prior(chain, corpus)
        return document_completion(observed, hidden, chain.present_topics().T, doc_topic_prior=prior).score

    def _word_names(self, n_features):
        """Names of the words; their numbers where X had none."""
        return getattr(self, "feature_names_in_", np.arange(n_features))

    # -- tables --------------------------------------------------------------------------------------------------

    def top_words(self, n=10, interval=None, *, feature_names=None):
        """The most probable words of each topic, with their uncertainty.

        Parameters
        ----------
        n : int, default=10
            Words for each topic.
        interval : float or None, default=None
            Mass of the central credible interval, for example 0.9; None leaves its columns out.
        feature_names : array-like of str, default=None
            Names of the columns; None takes ``feature_names_in_``, or the columns' numbers.

        Returns
        -------
        table : DataFrame, or Bunch of columns where pandas is not installed
            One row a word: ``topic``, ``rank``, ``word``, ``probability`` (as in ``components_``); with ``interval``
            also ``low`` and ``high`` and ``top_probability``, the share of draws in which the word is among the
            topic's ``n`` most probable. These take the draws of all chains that agree on the topic.
        """
        check_is_fitted(self)
        n_features = self.components_.shape[1]
        if not n >= 1:
            raise ValueError(f"n={n} must be at least 1.")
        if interval is not None and not 0 < interval < 1:
            raise ValueError(f"interval={interval} must lie between 0 and 1; 0.9 is a common choice.")
        n = min(int(n), n_features)
        if feature_names is None:
            feature_names = self._word_names(n_features)
        feature_names = np.asarray(feature_names, dtype=object)
        if feature_names.shape != (n_features,):
            raise ValueError(f"feature_names has shape {feature_names.shape}, needed are {n_features} names.")
        top = np.argsort(-self.components_, axis=1, kind="stable")[:, :n]
        n_topics = len(top)
        table = {
            "topic": np.repeat(np.arange(n_topics), n),
            "rank": np.tile(np.arange(1, n + 1), n_topics),
            "word": feature_names[top.ravel()],
            "probability": np.take_along_axis(self.components_, top, axis=1).ravel(),
        }
        if interval is not None:
            draws = self.samples_["components"]
            low, high, often = np.empty(top.shape), np.empty(top.shape), np.empty(top.shape)
            for k in range(n_topics):
                of_topic = self._draws_of_topic(draws, k)
                tails = [(1 - interval) / 2, (1 + interval) / 2]
                low[k], high[k] = np.quantile(of_topic[:, top[k]].astype(np.float64), tails, axis=0)
                bar = np.partition(of_topic, n_features - n, axis=1)[:, n_features - n, None]
                often[k] = (of_topic[:, top[k]] >= bar).mean(axis=0)
            table |= {"low": low.ravel(), "high": high.ravel(), "top_probability": often.ravel()}
        return as_table(table)
