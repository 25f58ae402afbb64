"""Several chains of topics: a reference chain for all results, and which of its topics the others found too.

Chains that found different modes of the posterior must not be averaged: their mean is a topic that none of them has. So
one chain is the reference, and the others show how certain its topics are.
"""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..metrics import align_draws, align_topics, topic_stability
from ..utils._warnings import warn_user

# Topics of two chains agree if they are no further apart than two draws of one chain, or than this: about a twelfth
# of the words' mass. Among chains that had found the planted topics, 2 in 250 were further apart than both (by up to
# 1.5 times the draws' distance); where a topic was split or merged, distances began at 0.45.
ALIKE = 0.2
_MOST_WORDS, _MOST_NAMED = 4, 3  # top words, and topics, quoted in a warning


def unit_means(means, metric):
    """Means of topics as unit vectors whose inner product measures their similarity."""
    if metric == "hellinger":
        return np.sqrt(means / means.sum(axis=-1, keepdims=True))
    return means / np.linalg.norm(means, axis=-1, keepdims=True)


class SeveralChains:
    """Part of topic models: one numbering for all chains, one reference chain, and agreement with it."""

    _metric = "hellinger"
    _seeds_hint = ", or give topics seed words by a topic_word_prior of shape (n_components, n_features)"

    def _run(self, chains, n_iter):
        super()._run(chains, n_iter)
        self._warn_of_unlike_topics()
        return self

    def __setstate__(self, state):
        super().__setstate__(state)
        if "samples_" in state and "reference_chain_" not in state:  # saved by a version that pooled all chains
            self._set_agreement(0, np.zeros(self.samples_["components"].shape[:3:2]))
            self._doc_priors = np.tile(self.doc_topic_prior_, (len(self.chains_agree_), 1))

    # -- numbering -------------------------------------------------------------------------------------------------

    def _number_topics(self, samples, groups, best_chain, n_rounds=2):
        """Put the topics of all draws into one order, in place, and choose the reference chain.

        Each chain is aligned by itself. The numbering is that of the first chain; the other chains are matched to the
        reference as a whole, by their means, so that no draw is matched to a mixture of chains.

        Parameters
        ----------
        samples : dict of ndarray
        groups : array-like of shape (n_components,)
            Only topics of equal value change places.
        best_chain : callable
            Function from the chains' mean topics, (n_chains, n_components, n_features), to the index of the reference.
        n_rounds : int
            As for `align_draws`.
        """
        components = samples["components"]
        n_chains, n_draws, n_topics, _ = components.shape
        for c in range(n_chains):
            order = align_draws(components[c : c + 1], n_rounds, metric=self._metric, groups=groups)[0]
            for s in range(n_draws):
                reorder(samples, (c, s), order[s], axis=0)
        if n_chains == 1:
            self._set_agreement(0, np.zeros((1, n_topics)))
            return
        means = np.stack([chain.mean(axis=0, dtype=np.float64) for chain in components])
        reference = best_chain(means)
        for c in (reference, *(c for c in range(n_chains) if c != reference)):
            target = means[0 if c == reference else reference]
            order = align_topics(target, means[c], metric=self._metric, groups=groups)
            reorder(samples, (c,), order, axis=1)
            means[c] = means[c][order]
        units = unit_means(means, self._metric)
        distances = np.sqrt(np.clip(1.0 - (units * units[reference]).sum(axis=-1), 0.0, None))
        distances[reference] = 0.0
        self._set_agreement(reference, distances, self._spread(components))

    def _spread(self, components):
        """Typical distance of a draw from its chain's mean, (n_chains, n_components); 0 if there is only one draw."""
        n = components.shape[1]
        away = [1.0 - topic_stability(chain, aligned=True, metric=self._metric) for chain in components]
        return np.array(away) * np.sqrt(n / max(n - 1, 1))

    def _set_agreement(self, reference, distances, spread=0.0):
        self.reference_chain_, self.chain_distances_ = reference, distances
        spread = np.broadcast_to(spread, distances.shape)
        self.chains_agree_ = distances**2 <= np.maximum(ALIKE**2, spread**2 + spread[reference] ** 2)

    def _renumber_agreement(self, order):
        """Reorder the results to match topics in another order."""
        self.chain_distances_, self.chains_agree_ = self.chain_distances_[:, order], self.chains_agree_[:, order]

    # -- answers ---------------------------------------------------------------------------------------------------

    @property
    def topic_stability_(self):
        """How similar each topic is over all draws of all chains, (n_components,); see `topic_stability`."""
        return topic_stability(self.samples_["components"], aligned=True, metric=self._metric)

    def _of_reference(self, name):
        """Draws of the reference chain, (n_kept, ...)."""
        return self.samples_[name][self.reference_chain_]

    def _draws_of_topic(self, values, k):
        """Draws of topic ``k`` by the chains that agree on it, (n, ...), from (n_chains, n_kept, n_topics, ...)."""
        return values[:, :, k][self.chains_agree_[:, k]].reshape(-1, *values.shape[3:])

    def _summary(self, values, tails):
        """Quantiles over draws by the chains that agree, (2, n_topics, ...), and the share of these draws above 0."""
        draws = [self._draws_of_topic(values, k) for k in range(values.shape[2])]
        ends = np.stack([np.quantile(each, tails, axis=0) for each in draws], axis=1)
        return ends, np.stack([(each > 0).mean(axis=0) for each in draws])

    # -- warning ---------------------------------------------------------------------------------------------------

    def _topics_in_use(self):
        """Which topics are worth a warning, (n_components,)."""
        return np.ones(self.chains_agree_.shape[1], dtype=bool)

    def _warn_of_unlike_topics(self):
        unlike = np.flatnonzero(~self.chains_agree_.all(axis=0) & self._topics_in_use())
        if not unlike.size:
            return
        furthest = self.chain_distances_.max(axis=0)
        unlike = unlike[np.argsort(-furthest[unlike], kind="stable")]
        named = ", ".join(f"{k} ({furthest[k]:.2f})" for k in unlike)
        words = ""
        if hasattr(self, "feature_names_in_"):
            word_names = getattr(self, "_word_names", lambda n: self.feature_names_in_)
            names = np.asarray(word_names(self.components_.shape[1]), dtype=object)
            top = np.argsort(-self.components_, axis=1, kind="stable")[:, :_MOST_WORDS]
            quoted = "; ".join(f"{k}: {' '.join(map(str, names[top[k]]))}" for k in unlike[:_MOST_NAMED])
            words = f" ({quoted}{'; ...' if unlike.size > _MOST_NAMED else ''})"
        n_chains, n_topics = self.chains_agree_.shape
        kind = "Hellinger distance" if self._metric == "hellinger" else "distance sqrt(1 - cosine)"
        warn_user(
            f"The {n_chains} chains do not agree on {unlike.size} of {n_topics} topics: another chain's is further "
            f"away than draws of one chain are from each other. They are, with the {kind} to the most distant "
            f"chain: {named}{words}. Chains are not averaged: all results come from chain {self.reference_chain_} "
            "(reference_chain_), and the intervals of these topics from it and any that agree with it, so they do "
            "not cover the other topics that are possible. To make chains agree, raise n_iter, lower n_components"
            f"{self._seeds_hint}; n_chains=1 fits one of the solutions. See topic_stability_ and chain_distances_.",
            ConvergenceWarning,
        )


def reorder(samples, place, order, axis):
    """Put topics of the draws at ``place`` into another order, in place; skips arrays without a topic axis."""
    if not np.array_equal(order, np.arange(order.size)):
        for value in samples.values():
            if value.ndim > 2:
                value[place] = np.take(value[place], order, axis=axis)
