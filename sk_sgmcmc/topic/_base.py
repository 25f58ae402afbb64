"""Base of all topic models: several chains draw topics, and one of them supplies all results."""

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from ..base import BaseSGMCMC
from ..metrics import topic_stability
from ._agreement import Agreement
from ._draws import TopicDraws


class BaseTopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseSGMCMC):
    """Base of topic models, whose ``samples_["components"]`` has the shape (n_chains, n_kept, n_topics, n_features).

    A subclass implements `fit` and ``_set_fitted`` (see `BaseSGMCMC`). The latter sets ``components_``, ``samples_``
    and ``_agreement``, which `number_topics` returns.
    """

    _metric = "hellinger"
    _seeds_hint = ""  # a remedy for chains that do not agree

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def _doubts(self, chains):
        names = None
        if hasattr(self, "feature_names_in_"):
            names = np.asarray(self._word_names(self.components_.shape[1]), dtype=object)
        in_use = self._topics_in_use()
        message = self._agreement.message(self.components_, in_use, self._metric, names, self._seeds_hint)
        return [*super()._doubts(chains), *([] if message is None else [message])]

    def _drift_message(self, found):
        n, more = self._planned_iter, self._longer(found.factor)
        name, unit = self._drifts
        what = f"{name} in diagnostics_ moves by {found.change:.2%} (1 % at most)"
        if unit is not None:
            what = (
                f"the log predictive probability of a word moves by {found.change:.3g}, "
                f"{np.expm1(found.change):.1%} in perplexity (1 % at most)"
            )
        return (
            f"The topics still change: between thirds of the kept draws, {what} and {found.change / found.error:.0f} "
            f"times its standard error. About {more / n:.2g} times as many steps would help: set n_iter={more}, "
            f"not {n}."
        )

    def _topics_in_use(self):
        """Which topics are worth a warning, (n_components,)."""
        return np.ones(self.components_.shape[0], dtype=bool)

    def _word_names(self, n_features):
        """Names of the words, or their indices if X had no names."""
        return getattr(self, "feature_names_in_", np.arange(n_features))

    # -- several chains --------------------------------------------------------------------------------------------

    @property
    def _agreement(self):
        return Agreement(self.reference_chain_, self.chain_distances_, self.chains_agree_)

    @_agreement.setter
    def _agreement(self, agreement):
        self.reference_chain_ = agreement.reference
        self.chain_distances_, self.chains_agree_ = agreement.distances, agreement.agree

    @property
    def _topic_draws(self):
        return getattr(self.samples_, "topic_draws", None) or TopicDraws(self.samples_["components"])

    @property
    def topic_stability_(self):
        """How similar each topic is over all draws of all chains, (n_components,); see `topic_stability`."""
        return topic_stability(self.samples_["components"], aligned=True, metric=self._metric)

    def _of_reference(self, name):
        """Draws of the reference chain, (n_kept, ...)."""
        return self.samples_[name][self.reference_chain_]

    def _flat(self, name):
        """Draws of all chains, one after the other, (n_chains * n_kept, ...)."""
        value = self.samples_[name]
        return value.reshape(-1, *value.shape[2:])
