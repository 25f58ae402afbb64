"""What a fitted Dirichlet-multinomial regression says: coefficients, prevalence of topics, differences of groups."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...utils import as_table
from .._counts.answers import scored_draws
from .coefficients import _HIGHEST, _LOWEST

_CELLS_AT_ONCE = 10_000_000


def doc_priors(encoded, coef):
    """Dirichlet parameters exp(x' lambda) of encoded rows, (n_rows, n_topics); ``coef`` with the intercept first."""
    eta = encoded @ np.ascontiguousarray(coef[:, 1:].T) + coef[:, 0]
    return np.exp(np.clip(eta, _LOWEST, _HIGHEST))


def prevalence(encoded, coef):
    """Expected proportions of encoded rows, (n_rows, n_topics)."""
    priors = doc_priors(encoded, coef)
    return priors / priors.sum(axis=1, keepdims=True)


def _mean_doc_priors(encoded, coef):
    """The same, averaged over some of the draws ``coef`` of one chain."""
    return np.mean([doc_priors(encoded, coef[s]) for s in scored_draws(len(coef))], axis=0)


def _over_draws(coef, answer):
    """What ``answer`` gives for each draw of the coefficients, (n_chains, n_kept, ...)."""
    return np.stack([np.stack([answer(each) for each in chain]) for chain in coef])


def _tails(interval):
    if not 0 < interval < 1:
        raise ValueError(f"interval={interval} must lie between 0 and 1; 0.9 is a common choice.")
    return [(1 - interval) / 2, (1 + interval) / 2]


class PrevalenceMixin:
    """Tables and predictions from kept draws of the coefficients."""

    def coef_table(self, interval=0.9):
        """Coefficients with their uncertainty.

        Parameters
        ----------
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns where pandas is not installed
            One row a coefficient: ``topic``, ``term`` ("intercept" or a column of the metadata), ``mean`` (as in
            ``coef_``), ``low``, ``high``, and ``positive``, the probability that it is above 0. The last three take the
            draws of all chains that agree on the topic.
        """
        check_is_fitted(self)
        (low, high), positive = self._summary(self.samples_["coef"], _tails(interval))
        n_topics, width = self.coef_.shape
        terms = np.array(["intercept", *self.metadata_names_], dtype=object)
        return as_table(
            {
                "topic": np.repeat(np.arange(n_topics), width),
                "term": np.tile(terms, n_topics),
                "mean": self.coef_.ravel(),
                "low": low.ravel(),
                "high": high.ravel(),
                "positive": positive.ravel(),
            }
        )

    def predict_prevalence(self, metadata, interval=None):
        r"""Expected topic proportions of documents with given metadata, before a word of them is read.

        Parameters
        ----------
        metadata : as for `fit`
            One row for each answer.
        interval : float or None, default=None
            Mass of the central credible interval, for example 0.9.

        Returns
        -------
        prevalence : ndarray of shape (n_rows, n_components)
            Posterior mean of :math:`\alpha_{k} / \sum_l \alpha_{l}`; rows sum to 1. With ``interval`` a tuple (mean,
            low, high) of such arrays; the interval is that of the expectation, not of a document's own proportions.
            The mean is over draws of the reference chain, a topic's interval over those of all chains that agree on it.
        """
        encoded = self._encoded(metadata)
        tails = None if interval is None else _tails(interval)
        coef = self._of_reference("coef")[None] if tails is None else self.samples_["coef"]
        reference = 0 if tails is None else self.reference_chain_
        parts = []
        n = max(1, _CELLS_AT_ONCE // (coef.shape[0] * coef.shape[1] * coef.shape[2]))
        for start in range(0, encoded.shape[0], n):
            draws = _over_draws(coef, lambda each, rows=encoded[start : start + n]: prevalence(rows, each))
            part = [draws[reference].mean(axis=0)]
            if tails is not None:
                ends, _ = self._summary(np.swapaxes(draws, 2, 3), tails)
                part += [end.T for end in ends]
            parts.append(part)
        mean, *ends = (np.concatenate(part) for part in zip(*parts, strict=True))
        mean /= mean.sum(axis=1, keepdims=True)
        return mean if interval is None else (mean, *ends)

    def doc_topic_priors(self, metadata):
        r"""Dirichlet parameters of documents with given metadata, under each draw.

        Parameters
        ----------
        metadata : as for `fit`
            One row for each document.

        Returns
        -------
        priors : ndarray of shape (n_draws, n_rows, n_components)
            :math:`\exp(x_d^\top \lambda_k)`, draws of all chains one after the other; what
            `sk_sgmcmc.metrics.document_completion` takes as ``doc_topic_prior``.
        """
        encoded = self._encoded(metadata)
        return np.stack([doc_priors(encoded, coef) for coef in self._flat("coef")])

    def prevalence_difference(self, metadata_a, metadata_b, interval=0.9):
        """How much more prevalent topics are in one group of documents than in another.

        Parameters
        ----------
        metadata_a, metadata_b : as for `fit`
            Rows of the two groups, over which prevalence is averaged.
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns where pandas is not installed
            One row a topic: ``topic``, ``difference`` (posterior mean of a less b, by the reference chain), ``low``,
            ``high``, and ``positive``, the probability that it is above 0, by all chains that agree on the topic.
        """
        a, b = (
            _over_draws(self.samples_["coef"], lambda each, rows=encoded: prevalence(rows, each).mean(axis=0))
            for encoded in (self._encoded(metadata_a), self._encoded(metadata_b))
        )
        difference = a - b
        (low, high), positive = self._summary(difference, _tails(interval))
        return as_table(
            {
                "topic": np.arange(difference.shape[2]),
                "difference": difference[self.reference_chain_].mean(axis=0),
                "low": low,
                "high": high,
                "positive": positive,
            }
        )

    def _encoded(self, metadata):
        check_is_fitted(self)
        if metadata is None or not self._encoder.levels:
            raise ValueError(
                "Answers by metadata need metadata, here and in fit; doc_topic_prior_ is the documents' mean prior."
            )
        encoded = self._encoder.encode(metadata, None, self.handle_unknown)
        if encoded.shape[0] == 0:
            raise ValueError("metadata has no rows; pass one for each answer.")
        return encoded

    # -- what the base class asks for ------------------------------------------------------------------------------

    def _set_fitted(self, chains):
        self._collect(chains, chains[0].topic_groups)
        self.samples_["coef"] = coef = self._encoder.as_given(self.samples_["coef"])
        self.coef_ = coef[self.reference_chain_][None].mean(axis=(0, 1))
        data = chains[0].data
        self._doc_priors = np.stack(
            [np.bincount(data.group) @ _mean_doc_priors(data.given, each) / data.n_docs for each in coef]
        )
        self.doc_topic_prior_ = self._doc_priors[self.reference_chain_].copy()

    def _prior_in_chain(self, samples, c, chain, data, docs):
        return doc_priors(data.given, self._encoder.as_given(samples["coef"][c].mean(axis=0)))[data.group[docs]]

    def _doc_prior(self, corpus, draws=None):
        if corpus.described is None:
            return super()._doc_prior(corpus, draws)
        if draws is not None:
            coef = self._flat("coef")
            return lambda s: doc_priors(corpus.described, coef[draws[s]])
        return _mean_doc_priors(corpus.described, self._of_reference("coef"))

    def _present_doc_prior(self, chain, corpus):
        described = chain.data.given if corpus.described is None else corpus.described
        coef = [self._encoder.as_given(c.doc_prior.coefficients.value) for c in getattr(chain, "particles", [chain])]
        priors = np.mean([doc_priors(described, each) for each in coef], axis=0)
        return np.bincount(chain.data.group) @ priors / chain.data.n_docs if corpus.described is None else priors

    def _word_names(self, n_features):
        names = super()._word_names(n_features)
        if self._metadata_in_X is None:
            return names
        return np.delete(names, self._metadata_in_X) if hasattr(self, "feature_names_in_") else names
